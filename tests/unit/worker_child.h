/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of npuscope-device-worker's parts share: children, in which rights are given up, and a
 * directory of root's. worker_child.c uses nothing of cmocka's, which is for the parent alone; this header
 * does.
 */
#ifndef WORKER_CHILD_H
#define WORKER_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#define NOBODY 65534
#define OTHER 65533

/* Of a group of tests: the second leaves no child and no file behind. */
int worker_child_setup(void **state);
int worker_child_teardown(void **state);

/* --- what a child finds --------------------------------------------------------------------------------- */

/*
 * The first thing that was wrong, for the parent to report: an assertion of cmocka's that fails in a child
 * would go on with the next test there. "": nothing.
 */
extern char *worker_child_wrong;

/* Unless it HOLDS, and nothing was wrong before, that is WHAT, with errno. */
void worker_child_check(bool holds, const char *what, const char *file, int line);

#define CHECK_AS(holds, what) worker_child_check(holds, what, __FILE__, __LINE__)
#define CHECK(what) CHECK_AS(what, #what)

/* --- children: killed when they hang, and they leave no core -------------------------------------------- */

/* One that stays until it is ended. There is one at a time. */
struct worker_child {
	pid_t pid;
	int proc; /* /proc/PID, O_PATH */
	int hold; /* it ends when that is closed */
};

/* Runs BODY in a child. STATUS: as wait(2) has it. False: there was no child. */
bool worker_child_run(void (*body)(const void *arg), const void *arg, int *status);

/*
 * Begins one that stays, after PREPARE (may be NULL), as itself or as PROGRAM, which is to read its standard
 * input. 1; 0: PREPARE failed; -1: it could not be made. Unless 1, worker_child_wrong has the reason.
 */
int worker_child_start(struct worker_child *c, void (*prepare)(const void *arg), const void *arg,
		       const char *program, char *const *env);

/* Ends it, and closes what is open of it. */
void worker_child_end(struct worker_child *c);

/* Kills the one that stays, if any: where a test failed before it ended that. */
void worker_child_kill(void);

/* For a child to do: false, or a check that fails, if it may not. FLAGS: an int, as unshare(2) has them. */
bool worker_child_drop_to(uid_t uid);
void worker_child_unshare(const void *flags);

/* Writes TEXT to FILE of /proc/PID. */
bool worker_child_write(const struct worker_child *c, const char *file, const char *text);

/* Reads the file, as a string, as far as it fits. False: it could not be read. */
bool worker_child_read_file(const char *path, char *to, size_t size);

/* BODY, in a child, finds nothing wrong, or the test fails. */
static inline void worker_child_passes(void (*body)(const void *arg), const void *arg)
{
	int status;

	assert_true(worker_child_run(body, arg, &status));
	if (worker_child_wrong[0])
		fail_msg("%s", worker_child_wrong);
	assert_int_equal(status, 0);
}

/* As worker_child_start(), or the test fails. */
static inline void worker_child_begin(struct worker_child *c, void (*prepare)(const void *arg),
				      const void *arg, const char *program, char *const *env)
{
	if (worker_child_start(c, prepare, arg, program, env) != 1)
		fail_msg("%s", worker_child_wrong);
}

/* The same, but where PREPARE cannot do what it is to do, TEST is skipped. */
static inline void worker_child_begin_or_skip(struct worker_child *c, const char *test,
					      void (*prepare)(const void *arg), const void *arg)
{
	int begun = worker_child_start(c, prepare, arg, NULL, NULL);

	if (begun < 0)
		fail_msg("%s", worker_child_wrong);
	if (begun)
		return;
	worker_child_end(c);
	printf("%s: not possible here: %s\n", test, worker_child_wrong);
	skip();
}

/* One in a user namespace with the ids of MAP, as user_namespaces(7) has them. */
static inline void worker_child_begin_in_user_ns(struct worker_child *c, const char *test, const char *map)
{
	static const int flags = CLONE_NEWUSER;

	worker_child_begin_or_skip(c, test, worker_child_unshare, &flags);
	assert_true(worker_child_write(c, "uid_map", map));
	assert_true(worker_child_write(c, "gid_map", map));
}

static inline void worker_child_need_root(const char *test)
{
	if (geteuid() == 0)
		return;
	printf("%s: needs root\n", test);
	skip();
}

/* --- files: in a directory of this run's, all of whose parents are root's alone ------------------------- */

/* Is there one? */
bool worker_child_has_dir(void);

/* DIR/NAME, until ten more have been requested. */
const char *worker_child_in_dir(const char *name);

/* Make a file; a directory with a file f that is root's alone. */
bool worker_child_put_file(const char *name, uid_t uid, gid_t gid, mode_t mode);
bool worker_child_put_dir(const char *name, uid_t uid, gid_t gid, mode_t mode);

#define PUT_FILE(...) assert_true(worker_child_put_file(__VA_ARGS__))
#define PUT_DIR(...) assert_true(worker_child_put_dir(__VA_ARGS__))

static inline void worker_child_need_dir(const char *test)
{
	worker_child_need_root(test);
	if (worker_child_has_dir())
		return;
	printf("%s: cannot write to /opt nor to /var/lib\n", test);
	skip();
}

#endif
