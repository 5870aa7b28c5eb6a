// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/process.h"
#include "capture/process_owner.h"

#define USER 61234

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), err = fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return err;
}

/* Becomes the user, and makes that many user namespaces, each in the one before. 0: it could. */
static int nest(uid_t uid, int n)
{
	if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		return 1;
	prctl(PR_SET_DUMPABLE, 1); /* its maps belong to it again */
	for (int i = 0; i < n; i++) {
		char map[32];

		snprintf(map, sizeof(map), "%d %u 1", 1000 + i, i ? 999U + (unsigned int)i : uid);
		if (unshare(CLONE_NEWUSER))
			return 2;
		if (put("/proc/self/setgroups", "deny") || put("/proc/self/uid_map", map) ||
		    put("/proc/self/gid_map", map))
			return 3;
	}
	return 0;
}

/*
 * A process in N user namespaces that UID made, and in PID_NS nested PID
 * namespaces. Its number, once it is there.
 */
static pid_t start(uid_t uid, int n, int pid_ns, char *ok)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char status = (char)nest(uid, n);

		for (int i = 0; i < pid_ns; i++) {
			pid_t child;

			if (unshare(CLONE_NEWPID))
				status = 4;
			child = fork();
			if (child) {
				waitpid(child, NULL, 0);
				_exit(0);
			}
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		}
		if (write(ready[1], &status, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], ok, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The one child of a process, of the DEPTH-th generation. */
static pid_t descendant(pid_t pid, int depth)
{
	for (int i = 0; i < depth; i++) {
		char path[64];
		int child = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_int_equal(fscanf(f, "%d", &child), 1);
		fclose(f);
		pid = child;
	}
	return pid;
}

static void a_process_of_ours(void **state)
{
	struct nps_process_owner own = nps_process_owner(getpid()), exited = nps_process_owner(0x7fffffff);

	(void)state;
	assert_int_equal(own.uid, getuid());
	assert_int_equal(own.pid_ns, 0);
	assert_int_equal(exited.uid, (uid_t)-1);
}

static void ids_of_a_user_namespace_are_their_makers(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	for (int n = 0; n < 4; n++) {
		char status;
		pid_t pid = start(USER, n, 0, &status);
		struct nps_process_owner owner = nps_process_owner(pid);

		end(pid);
		if (status == 2)
			skip(); /* this kernel lets users make none */
		assert_int_equal(status, 0);
		assert_int_equal(owner.uid, USER);
		assert_int_equal(owner.pid_ns, 0);
	}
}

/* As newuidmap(1) gives a user's container ids of its own. */
static void many_ids_are_one_owner(void **state)
{
	int made[2], mapped[2], ready[2];
	struct nps_process_owner owner;
	char path[64], status = 0;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(pipe(made) || pipe(mapped) || pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		status = setresgid(USER, USER, USER) || setresuid(USER, USER, USER) ||
			 prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER);
		if (write(made[1], &status, 1) != 1 || read(mapped[0], &status, 1) != 1)
			_exit(1);
		status = setresuid(5, 5, 5) != 0;
		if (write(ready[1], &status, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(made[0], &status, 1), 1);
	assert_int_equal(status, 0);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	assert_int_equal(put(path, "0 61234 1\n1 300000 10\n"), 0);
	assert_int_equal(write(mapped[1], &status, 1), 1);
	assert_int_equal(read(ready[0], &status, 1), 1);
	assert_int_equal(status, 0);
	assert_int_equal(nps_pid_uid(pid), 300004);
	owner = nps_process_owner(pid);
	end(pid);
	assert_int_equal(owner.uid, USER);
	for (int i = 0; i < 2; i++) {
		close(made[i]);
		close(mapped[i]);
		close(ready[i]);
	}
}

static void roots_in_containers_are_distinguished(void **state)
{
	struct nps_process_owner owners[4];

	(void)state;
	if (geteuid())
		skip();
	for (int i = 0; i < 4; i++) {
		char status;
		/* With 2, one container is in another. */
		int pid_ns = i < 3 ? i : 1;
		pid_t pid = start(0, 0, pid_ns, &status), outer;

		owners[i] = nps_process_owner(descendant(pid, pid_ns));
		assert_int_equal(status, 0);
		assert_int_equal(owners[i].uid, 0);
		if (pid_ns == 2) {
			outer = descendant(pid, 1);
			assert_true(owners[i].pid_ns == nps_process_owner(outer).pid_ns);
		}
		kill(descendant(pid, pid_ns), SIGKILL);
		end(pid);
	}
	assert_int_equal(owners[0].pid_ns, 0);
	assert_true(owners[1].pid_ns && owners[3].pid_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_ours),
		cmocka_unit_test(ids_of_a_user_namespace_are_their_makers),
		cmocka_unit_test(many_ids_are_one_owner),
		cmocka_unit_test(roots_in_containers_are_distinguished),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
