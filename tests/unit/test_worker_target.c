/* SPDX-License-Identifier: BSD-2-Clause */
/* What npuscope-device-worker takes from the process that it runs for: most of it needs root. */
#include "worker/worker.h"
#include "worker_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *const no_environment[] = { NULL };
static const char *const ns_names[NS_COUNT] = { "mnt", "uts", "ipc", "net", "cgroup", "pid", "user" };

static void target_free(struct worker_target *t)
{
	for (int i = 0; i < NS_COUNT; i++)
		if (t->ns[i] > 0)
			close(t->ns[i]);
	if (t->root >= 0)
		close(t->root);
	free(t->groups);
	free(t->env);
	free(t->env_text);
}

/* PATH: NULL: of this program. */
static int target_read(struct worker_target *t, const struct worker_child *c, const char *path,
		       struct worker_error *e)
{
	const char *paths[] = { "/nonexistent/libascend_hal.so", path };
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[n > 0 ? n : 0] = '\0';
	paths[1] = path ? path : own;
	*e = (struct worker_error){ 0 };
	return worker_target_read(t, c->proc, paths, 2, e);
}

/* The error, with nothing left. */
static int target_error(const struct worker_child *c, const char *path, struct worker_error *e)
{
	struct worker_target t;
	int err = target_read(&t, c, path, e);

	target_free(&t);
	assert_int_equal(err, e->error);
	return err;
}

struct ids {
	uid_t uid[3];
	gid_t gid[3], groups[3];
	size_t n_groups;
};

static void set_ids(const void *arg)
{
	const struct ids *ids = arg;

	if (geteuid() != 0)
		return;
	CHECK(!setgroups(ids->n_groups, ids->groups));
	CHECK(!setresgid(ids->gid[0], ids->gid[1], ids->gid[2]));
	CHECK(!setresuid(ids->uid[0], ids->uid[1], ids->uid[2]));
}

static char cat[PATH_MAX]; /* as it is mapped */

static void begin_cat(struct worker_child *c, const struct ids *ids, char *const *env)
{
	assert_non_null(realpath("/bin/cat", cat));
	worker_child_begin(c, set_ids, ids, cat, env);
}

/* FD is open on what PATH, from AT, leads to. */
static void assert_same_file(int fd, int at, const char *path)
{
	struct stat kept, theirs;

	assert_int_equal(fstat(fd, &kept), 0);
	assert_int_equal(fstatat(at, path, &theirs, 0), 0);
	assert_true(kept.st_dev == theirs.st_dev && kept.st_ino == theirs.st_ino);
}

/* A root directory and namespaces as ours. */
static void assert_at_home(const struct worker_target *t)
{
	for (int i = 0; i < NS_COUNT; i++)
		assert_int_equal(t->ns[i], -1);
	assert_same_file(t->root, AT_FDCWD, "/");
}

static void ids_of_a_target(void **state)
{
	static const struct ids all[] = {
		{ { NOBODY, NOBODY, NOBODY }, { OTHER, OTHER, OTHER }, { 64001, 64002, 64003 }, 3 },
		{ { OTHER, OTHER, OTHER }, { NOBODY, NOBODY, NOBODY }, { 0 }, 0 },
		{ { 0, 0, 0 }, { 0, 0, 0 }, { 64001 }, 1 },
	};

	(void)state;
	worker_child_need_root(__func__);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct worker_target t;
		struct worker_error e;
		struct worker_child c;

		begin_cat(&c, &all[i], no_environment);
		assert_int_equal(target_read(&t, &c, cat, &e), 0);
		assert_int_equal(t.uid, all[i].uid[0]);
		assert_int_equal(t.gid, all[i].gid[0]);
		assert_int_equal(t.ns_root, 0);
		assert_int_equal(t.n_groups, all[i].n_groups);
		for (size_t k = 0; k < t.n_groups; k++)
			assert_int_equal(t.groups[k],
					 all[i].groups[k]); /* in order, as the kernel has them */
		assert_at_home(&t);
		target_free(&t);
		worker_child_end(&c);
	}
}

/*
 * What it can do by others' rights, or will by those it saved, is not
 * what the driver's library may do for it.
 */
static void target_with_changed_ids(void **state)
{
	static const struct ids changed[] = {
		{ { NOBODY, OTHER, NOBODY }, { NOBODY, NOBODY, NOBODY }, { 0 }, 0 },
		{ { NOBODY, NOBODY, OTHER }, { NOBODY, NOBODY, NOBODY }, { 0 }, 0 },
		{ { NOBODY, NOBODY, 0 }, { NOBODY, NOBODY, NOBODY }, { 0 }, 0 },
		{ { NOBODY, NOBODY, NOBODY }, { NOBODY, OTHER, NOBODY }, { 0 }, 0 },
		{ { NOBODY, NOBODY, NOBODY }, { NOBODY, NOBODY, 0 }, { 0 }, 0 },
	};

	(void)state;
	worker_child_need_root(__func__);
	for (size_t i = 0; i < sizeof(changed) / sizeof(*changed); i++) {
		struct worker_error e;
		struct worker_child c;

		worker_child_begin(&c, set_ids, &changed[i], NULL, NULL);
		assert_int_equal(target_error(&c, NULL, &e), -EPERM);
		assert_non_null(strstr(e.why, "ids"));
		worker_child_end(&c);
	}
}

static void environment_of_a_target(void **state)
{
	static char *const env[] = { (char *)"FIRST=1",
				     (char *)"LD_PRELOAD=/nonexistent/a.so",
				     (char *)"LD_LIBRARY_PATH=/nonexistent",
				     (char *)"LDX=kept",
				     (char *)"GLIBC_TUNABLES=glibc.malloc.check=0",
				     (char *)"MALLOC_ARENA_MAX=1",
				     (char *)"GCONV_PATH=/nonexistent",
				     (char *)"NOT_LD_PRELOAD=kept",
				     (char *)"EMPTY=",
				     (char *)"no equals sign",
				     (char *)"LD_AUDIT=/nonexistent/b.so",
				     (char *)"LAST=LD_PRELOAD=x",
				     NULL };
	static char *const kept[] = { (char *)"FIRST=1",
				      (char *)"LDX=kept",
				      (char *)"NOT_LD_PRELOAD=kept",
				      (char *)"EMPTY=",
				      (char *)"no equals sign",
				      (char *)"LAST=LD_PRELOAD=x",
				      NULL };
	static char *const *const envs[] = { env, kept };
	static const struct ids own = { .n_groups = 0 };
	const size_t n = sizeof(kept) / sizeof(*kept) - 1;
	struct worker_target t;
	struct worker_error e;
	struct worker_child c;

	(void)state;
	worker_child_need_root(__func__);
	for (size_t k = 0; k < 2; k++) {
		begin_cat(&c, &own, envs[k]);
		assert_int_equal(target_read(&t, &c, cat, &e), 0);
		for (size_t i = 0; i < n; i++) {
			assert_non_null(t.env[i]);
			assert_string_equal(t.env[i], kept[i]);
		}
		assert_null(t.env[n]);
		t.env[n] = (char *)"LD_LIBRARY_PATH=/x"; /* there is room for that */
		assert_null(t.env[n + 1]);
		target_free(&t);
		worker_child_end(&c);
	}
	begin_cat(&c, &own, no_environment);
	assert_int_equal(target_read(&t, &c, cat, &e), 0);
	assert_null(t.env[0]);
	target_free(&t);
	worker_child_end(&c);
}

struct mapping {
	const char *path;
	int protection;
};

static void map_file(const void *arg)
{
	const struct mapping *m = arg;
	int fd = open(m->path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(mmap(NULL, 4096, m->protection, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
}

/* It must run what it ran when its files were looked at. */
static void target_that_executed_another_program(void **state)
{
	struct mapping m = { .path = worker_child_in_dir("mapped"), .protection = PROT_READ };
	static const struct ids own = { .n_groups = 0 };
	struct worker_error e;
	struct worker_child c;

	(void)state;
	worker_child_need_dir(__func__);
	begin_cat(&c, &own, no_environment);
	assert_int_equal(target_error(&c, cat, &e), 0);
	assert_int_equal(target_error(&c, NULL, &e), -ESTALE); /* this program, which it was before */
	assert_int_equal(target_error(&c, "/nonexistent", &e), -ESTALE);
	assert_int_equal(target_error(&c, "cat", &e), -ESTALE);
	worker_child_end(&c);
	PUT_FILE("mapped", 0, 0, 0755);
	assert_int_equal(truncate(m.path, 4096), 0);
	worker_child_begin(&c, map_file, &m, NULL, NULL);
	assert_int_equal(target_error(&c, m.path, &e), -ESTALE); /* as data */
	worker_child_end(&c);
	m.protection = PROT_READ | PROT_EXEC;
	worker_child_begin(&c, map_file, &m, NULL, NULL);
	assert_int_equal(target_error(&c, m.path, &e), 0);
	assert_int_equal(unlink(m.path), 0);
	assert_int_equal(target_error(&c, m.path, &e), -ESTALE); /* another file may have that name now */
	worker_child_end(&c);
}

static void map_and_chroot(const void *arg)
{
	map_file(arg);
	CHECK(!chroot(worker_child_in_dir("jail")) && !chdir("/"));
}

/* Paths are those that it would open itself. */
static void target_in_another_root(void **state)
{
	const struct mapping m = { .path = worker_child_in_dir("jail/f"),
				   .protection = PROT_READ | PROT_EXEC };
	struct worker_target t;
	struct worker_error e;
	struct worker_child c;

	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("jail", 0, 0, 0755);
	assert_int_equal(truncate(m.path, 4096), 0);
	worker_child_begin(&c, map_and_chroot, &m, NULL, NULL);
	assert_int_equal(target_read(&t, &c, "/f", &e), 0);
	assert_same_file(t.root, AT_FDCWD, worker_child_in_dir("jail"));
	target_free(&t);
	assert_int_equal(target_error(&c, m.path, &e), -ESTALE);
	assert_int_equal(target_error(&c, "f", &e), -ESTALE);
	worker_child_end(&c);
}

static void target_that_died(void **state)
{
	struct worker_error e;
	siginfo_t info;
	struct worker_child c;

	(void)state;
	worker_child_begin(&c, NULL, NULL, NULL, NULL);
	assert_int_equal(target_error(&c, NULL, &e), 0);
	kill(c.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(target_error(&c, NULL, &e) < 0); /* what waits for its parent has no memory */
	assert_true(e.why[0]);
	worker_child_kill();
	assert_true(target_error(&c, NULL, &e) < 0);
	assert_true(e.why[0]);
	worker_child_end(&c);
}

static void namespaces_of_a_target(void **state)
{
	const int flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET;
	struct worker_target t;
	struct worker_error e;
	struct worker_child c;

	(void)state;
	worker_child_need_root(__func__);
	worker_child_begin_or_skip(&c, __func__, worker_child_unshare, &flags);
	assert_int_equal(target_read(&t, &c, NULL, &e), 0);
	for (int i = 0; i < NS_COUNT; i++) {
		char path[32];

		if (i > NS_NET) {
			assert_int_equal(t.ns[i], -1);
			continue;
		}
		snprintf(path, sizeof(path), "ns/%s", ns_names[i]);
		assert_true(t.ns[i] >= 0);
		assert_same_file(t.ns[i], c.proc, path);
		assert_true(fcntl(t.ns[i], F_GETFD) & FD_CLOEXEC);
	}
	target_free(&t);
	worker_child_end(&c);
}

/* Who is root there, or else nobody but its own user. */
static void target_in_a_user_namespace(void **state)
{
	static const char *const maps[] = { "0 65534 1\n", "5 65534 1\n" };

	(void)state;
	worker_child_need_root(__func__);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		struct worker_target t;
		struct worker_error e;
		struct worker_child c;

		worker_child_begin_in_user_ns(&c, __func__, maps[i]);
		assert_int_equal(target_read(&t, &c, NULL, &e), 0);
		assert_true(t.ns[NS_USER] >= 0);
		assert_int_equal(t.uid, 0); /* it is root of the host, still */
		assert_int_equal(t.ns_root, i ? 0 : NOBODY);
		for (int k = 0; k < NS_USER; k++)
			assert_int_equal(t.ns[k], -1);
		target_free(&t);
		worker_child_end(&c);
	}
}

/* --- target.c: limits ----------------------------------------------------------------------------------- */

static void write_oom_score(const char *text)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void check_limit(int resource, rlim_t soft, rlim_t hard, const char *what)
{
	struct rlimit have = { 0 };

	CHECK_AS(!getrlimit(resource, &have) && have.rlim_cur == soft && have.rlim_max == hard, what);
}

static void limit_itself(const void *arg)
{
	(void)arg;
	CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 100, 200 }));
	CHECK(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1 << 20, 1 << 21 }));
	CHECK(!setrlimit(RLIMIT_NPROC, &(struct rlimit){ 50, 60 }));
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 4096, 8192 }));
	CHECK(!setpriority(PRIO_PROCESS, 0, 7));
	write_oom_score("300");
}

static void apply_limits(const void *arg)
{
	const struct worker_child *c = arg;
	const struct worker_target t = { .proc = c->proc, .pid = c->pid };
	char text[16] = "";
	struct rlimit cpu;

	/* less than the target may have: of all, and of what it may raise its own to */
	CHECK(!setrlimit(RLIMIT_NPROC, &(struct rlimit){ 30, 40 }));
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 6000, 6000 }));
	CHECK(!getrlimit(RLIMIT_CPU, &cpu));
	worker_target_apply_limits(&t);
	check_limit(RLIMIT_NOFILE, 100, 200, "open files");
	check_limit(RLIMIT_FSIZE, 1 << 20, 1 << 21, "file size");
	check_limit(RLIMIT_NPROC, 40, 40, "processes");
	check_limit(RLIMIT_MEMLOCK, 4096, 6000, "locked memory");
	check_limit(RLIMIT_CPU, cpu.rlim_cur, cpu.rlim_max, "CPU time");
	CHECK(getpriority(PRIO_PROCESS, 0) == 7);
	CHECK(worker_child_read_file("/proc/self/oom_score_adj", text, sizeof(text)) &&
	      !strcmp(text, "300\n"));
}

static void limits_of_a_target(void **state)
{
	struct worker_target t;
	struct worker_error e;
	struct worker_child c;

	(void)state;
	worker_child_begin(&c, limit_itself, NULL, NULL, NULL);
	worker_child_passes(apply_limits, &c);
	assert_int_equal(target_read(&t, &c, NULL, &e), 0);
	assert_int_equal(t.pid, c.pid);
	target_free(&t);
	worker_child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_a_target),
		cmocka_unit_test(target_with_changed_ids),
		cmocka_unit_test(environment_of_a_target),
		cmocka_unit_test(target_that_executed_another_program),
		cmocka_unit_test(target_in_another_root),
		cmocka_unit_test(target_that_died),
		cmocka_unit_test(limits_of_a_target),
		cmocka_unit_test(namespaces_of_a_target),
		cmocka_unit_test(target_in_a_user_namespace),
	};

	return cmocka_run_group_tests(tests, worker_child_setup, worker_child_teardown);
}
