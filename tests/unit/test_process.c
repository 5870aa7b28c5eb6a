/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc has of a process, and of one that has exited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/process.h"

#define TICK 10000000ULL /* ns */

static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	return pid;
}

static void kill_child(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0); /* it is a zombie now */
}

static void reap_child(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void one_start_is_one_process(void **state)
{
	struct nps_process *p;
	pid_t pid = start_child();

	(void)state;
	assert_int_equal(nps_process__read(pid, &p), 0);
	assert_true(p->start_ticks);
	assert_int_equal(p->ppid, getpid());
	assert_int_equal(p->source, NPS_PROCESS_READ);
	assert_true(cJSON_GetArraySize(p->cmdline) > 0);
	assert_true(nps_process__is_alive(p));
	/* /proc has it in ticks, the BPF programs in ns */
	assert_true(nps_process__has_started(p, p->start_ticks * TICK));
	assert_true(nps_process__has_started(p, p->start_ticks * TICK + TICK - 1));
	assert_false(nps_process__has_started(p, p->start_ticks * TICK - 1));
	assert_false(nps_process__has_started(p, p->start_ticks * TICK + TICK));
	assert_true(nps_process__has_started(p, 0));
	p->start_boot = p->start_ticks * TICK + 5;
	assert_true(nps_process__has_started(p, p->start_boot));
	assert_false(nps_process__has_started(p, p->start_boot + 1));
	/* The pid is another's: nothing of what can be read is this one's. */
	p->start_ticks++;
	assert_false(nps_process__is_alive(p));
	snprintf(p->comm, sizeof(p->comm), "mine");
	nps_process__refresh(p);
	assert_string_equal(p->comm, "mine");
	assert_int_equal(p->source, NPS_PROCESS_UNREAD);
	assert_int_equal(cJSON_GetArraySize(p->cmdline), 0);
	nps_process__free(p);
	kill_child(pid);
	reap_child(pid);
}

static void dead_ones_are_unread(void **state)
{
	struct nps_process *p, *zombie, *none;
	pid_t pid = start_child();

	(void)state;
	assert_int_equal(nps_process__read(pid, &p), 0);
	kill_child(pid);
	assert_false(nps_process__is_alive(p));
	assert_int_equal(nps_process__read(pid, &zombie), 0);
	assert_int_equal(zombie->source, NPS_PROCESS_UNREAD);
	assert_string_equal(zombie->comm, p->comm); /* this much is left of it */
	nps_process__refresh(p);
	assert_int_equal(p->source, NPS_PROCESS_UNREAD);
	assert_int_equal(cJSON_GetArraySize(p->cmdline) + cJSON_GetArraySize(p->env), 0);
	reap_child(pid);
	assert_int_equal(nps_process__read(pid, &none), -ESRCH);
	nps_process__free(p);
	nps_process__free(zombie);
}

/*
 * Launchers give a child its user after they made it; the BPF programs may report it before it was ever read.
 */
static void user_is_that_of_the_last_read(void **state)
{
	pid_t pid = start_child();
	struct nps_process *p = nps_process__new(pid), *q = nps_process__new(pid);

	(void)state;
	assert_non_null(p);
	assert_non_null(q);
	nps_process__refresh(p); /* it is not known when it began: it may be another */
	assert_int_equal(p->uid, (uid_t)-1);
	nps_process__free(p);
	assert_int_equal(nps_process__read(pid, &p), 0);
	assert_int_equal(p->uid, getuid());
	p->uid = getuid() + 1; /* as it was when it was born */
	nps_process__read_uid(p);
	assert_int_equal(p->uid, getuid());
	p->uid = getuid() + 1;
	nps_process__refresh(p);
	assert_int_equal(p->uid, getuid());
	/* one that only the BPF programs reported */
	q->start_boot = p->start_ticks * TICK + 5;
	nps_process__read_uid(q);
	assert_int_equal(q->uid, getuid());
	q->uid = (uid_t)-1;
	nps_process__refresh(q);
	assert_int_equal(q->uid, getuid());
	/* another has its pid now */
	p->uid = q->uid = getuid() + 1;
	p->start_ticks++;
	q->start_ticks = 0;
	q->start_boot += 2 * TICK;
	nps_process__read_uid(p);
	nps_process__refresh(p);
	nps_process__read_uid(q);
	nps_process__refresh(q);
	assert_int_equal(p->uid, getuid() + 1);
	assert_int_equal(q->uid, getuid() + 1);
	nps_process__free(p);
	nps_process__free(q);
	kill_child(pid);
	reap_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_start_is_one_process),
		cmocka_unit_test(dead_ones_are_unread),
		cmocka_unit_test(user_is_that_of_the_last_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
