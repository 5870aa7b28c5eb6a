/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of UTS namespaces: read by who may enter them, remembered afterwards, and never another's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "core/host_names.h"
#include "core/privilege.h"

#define CHECK(what)                                                                                          \
	do {                                                                                                 \
		if (!(what)) {                                                                               \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                   \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)

/* A process in a UTS namespace of its own, in which the host has that name. */
static pid_t start_in(const char *name)
{
	int ready[2];
	char c;
	pid_t pid;

	CHECK(!pipe(ready));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that fails */
		CHECK(!unshare(CLONE_NEWUTS) && !sethostname(name, strlen(name)));
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool is_null_in_session(struct nps_process *p)
{
	struct nps_record_opts opts = { .sz = sizeof(opts) };
	struct nps_capture *c = calloc(1, sizeof(*c));
	cJSON *j;
	bool null;

	CHECK(c);
	c->opts = &opts;
	c->processes = p;
	j = nps_capture__describe(c);
	null = cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(j, "processes"), 0), "host_name"));
	cJSON_Delete(j);
	free(c);
	return null;
}

static void is_known(pid_t pid, const char *name)
{
	char found[NPS_HOST_NAME];

	CHECK(nps_host_name__read(pid, found) && !strcmp(found, name));
}

static void is_unknown_one(pid_t pid)
{
	char found[NPS_HOST_NAME] = "x";

	CHECK(!nps_host_name__read(pid, found) && !found[0]);
}

static void is_unknown(pid_t pid)
{
	struct nps_process *p;

	is_unknown_one(pid);
	CHECK(!nps_process__read(pid, &p));
	CHECK(!p->host_name[0] && is_null_in_session(p));
	nps_process__free(p);
}

/* Whoever is found when the right to enter namespaces was given up. */
static void read_without_rights(const char *ours)
{
	pid_t seen, collected = start_in("collected"), later;

	nps_host_names__collect();
	seen = start_in("seen");
	is_known(seen, "seen");
	later = start_in("later");
	nps_privilege__keep(NPS_PRIVILEGE_PROC, false);
	is_known(seen, "seen");
	is_known(collected, "collected");
	is_known(getpid(), ours);
	is_unknown(later);
	end(seen);
	end(later);
	end(collected);
	is_unknown_one(later); /* it is no more */
	nps_host_names__free();
}

static void names_are_of_their_namespace(void **state)
{
	struct utsname ours;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(uname(&ours), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		read_without_rights(ours.nodename);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Of a process of which nothing could be read. */
static void nothing_is_known_of_an_exited_one(void **state)
{
	struct nps_process *p = nps_process__new(getpid());

	(void)state;
	assert_non_null(p);
	assert_string_equal(p->host_name, "");
	snprintf(p->host_name, sizeof(p->host_name), "parent");
	nps_process__forget_program(p);
	assert_string_equal(p->host_name, "");
	assert_true(is_null_in_session(p));
	nps_process__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_of_their_namespace),
		cmocka_unit_test(nothing_is_known_of_an_exited_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
