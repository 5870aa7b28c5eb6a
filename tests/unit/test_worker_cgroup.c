/* SPDX-License-Identifier: BSD-2-Clause */
/* npuscope-device-worker joins the control groups of the process that it runs for: most of it needs root. */
#include "worker/worker.h"
#include "worker_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char group[PATH_MAX]; /* a group that was made; "": none */
static char group_beside[PATH_MAX]; /* another one; "": none */
static char group_mount[PATH_MAX]; /* where their hierarchy is */

static bool group_write(const char *file, const char *text)
{
	char path[PATH_MAX + 32];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return written;
}

static int group_remove(void **state)
{
	(void)state;
	if (group[0]) { /* what is frozen there does not end, and by version 1 cannot even be killed */
		group_write("freezer.state", "THAWED");
		group_write("cgroup.freeze", "0");
	}
	worker_child_kill();
	for (int i = 0; group[0] && i < 200 && rmdir(group) && errno == EBUSY; i++)
		usleep(10000); /* until what left it has been freed */
	if (group_beside[0])
		rmdir(group_beside);
	group[0] = group_beside[0] = '\0';
	return 0;
}

/* The path of process PROC in the hierarchy with CONTROLLER; "": of version 2. */
static bool group_path(int proc, const char *controller, char *path, size_t size)
{
	int fd = openat(proc, "cgroup", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[PATH_MAX + 256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *list = strchr(line, ':'), *rest = list ? strchr(list + 1, ':') : NULL, *saved = NULL;

		if (!rest)
			continue;
		*rest++ = '\0';
		rest[strcspn(rest, "\n")] = '\0';
		list++;
		found = !*controller && !*list;
		for (char *one = strtok_r(list, ",", &saved); one && !found;
		     one = strtok_r(NULL, ",", &saved))
			found = !strcmp(one, controller);
		if (found)
			snprintf(path, size, "%s", rest);
	}
	if (f)
		fclose(f);
	return found;
}

/* Makes a group below our own one. False: there is no such hierarchy that we can write to. */
static bool group_make(const char *controller)
{
	const char *type = *controller ? "cgroup" : "cgroup2";
	FILE *f = setmntent("/proc/self/mounts", "re");
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char own[PATH_MAX];
	const struct mntent *m;

	group[0] = '\0';
	while (f && !group[0] && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, type) != 0 || (*controller && !hasmntopt(m, controller)) ||
		    !group_path(self, controller, own, sizeof(own)) ||
		    snprintf(group, sizeof(group), "%s%s/npuscope-test-%d", m->mnt_dir, own, getpid()) >=
			    (int)sizeof(group) ||
		    snprintf(group_mount, sizeof(group_mount), "%s", m->mnt_dir) >=
			    (int)sizeof(group_mount) ||
		    mkdir(group, 0755))
			group[0] = '\0';
	}
	if (f)
		endmntent(f);
	close(self);
	return group[0];
}

static void enter_group(const void *arg)
{
	(void)arg;
	CHECK(group_write("cgroup.procs", "0"));
}

/* A child in a group of its own. */
static void begin_in_group(struct worker_child *c, const char *test, const char *controller)
{
	worker_child_need_root(test);
	if (!group_make(controller)) {
		printf("%s: no control group can be made here\n", test);
		skip();
	}
	worker_child_begin_or_skip(c, test, enter_group, NULL);
}

struct join {
	const struct worker_child *target;
	int error; /* that is expected */
	const char *why;
	bool without_rights;
	const char *shown; /* a part of the hierarchy, all that can be seen of it; NULL: all can */
};

/* As in a container that has a part of the hierarchy mounted, under another name. */
static void show_alone(const char *part)
{
	const char *where = worker_child_in_dir("shown");

	CHECK(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount(part, where, NULL, MS_BIND, NULL));
	CHECK(!umount2(group_mount, MNT_DETACH));
}

static void read_groups_of(pid_t pid, char *to, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	CHECK(worker_child_read_file(path, to, size) && to[0]);
}

/* Moves a process that is neither the target nor this one. */
static void join_groups(const void *arg)
{
	const struct join *j = arg;
	char before[8192], own[8192], joined[8192], theirs[8192];
	struct worker_error e = { 0 };
	int hold[2], piped = pipe2(hold, O_CLOEXEC);
	pid_t pid = fork();

	CHECK(!piped && pid >= 0);
	if (!pid) { /* ends with us; a signal would need the right to send it, which may be dropped */
		close(hold[1]);
		_exit(read(hold[0], own, 1) != 0);
	}
	read_groups_of(getpid(), before, sizeof(before));
	if (j->without_rights)
		CHECK(worker_child_drop_to(NOBODY));
	if (j->shown)
		show_alone(j->shown);
	CHECK(worker_cgroups_join(j->target->proc, pid, &e) == j->error);
	CHECK(e.error == j->error && (!j->error || strstr(e.why, j->why)));
	read_groups_of(getpid(), own, sizeof(own));
	read_groups_of(pid, joined, sizeof(joined));
	read_groups_of(j->target->pid, theirs, sizeof(theirs));
	CHECK(!strcmp(own, before));
	CHECK(!strcmp(joined, j->error ? before : theirs));
	CHECK((!strcmp(before, theirs)) == !group[0]);
	close(hold[1]); /* it may be frozen: nobody waits for it */
}

/* There is nothing to be written, and no right that it takes. */
static void groups_that_are_ours(void **state)
{
	struct worker_child c;
	struct join j = { .target = &c };

	(void)state;
	worker_child_begin(&c, NULL, NULL, NULL, NULL);
	worker_child_passes(join_groups, &j);
	j.without_rights = geteuid() == 0;
	worker_child_passes(join_groups, &j);
	worker_child_end(&c);
}

static void groups_of_a_target(const char *test, const char *controller)
{
	char path[PATH_MAX];
	struct worker_child c;
	struct join j = { .target = &c };

	begin_in_group(&c, test, controller);
	assert_true(group_path(c.proc, controller, path, sizeof(path)));
	assert_non_null(strstr(path, "/npuscope-test-"));
	worker_child_passes(join_groups, &j);
	j = (struct join){ .target = &c, .error = -EACCES, .why = path, .without_rights = true };
	worker_child_passes(join_groups, &j);
	worker_child_end(&c);
}

static void groups_of_version_1(void **state)
{
	(void)state;
	groups_of_a_target(__func__, "pids");
}

static void groups_of_version_2(void **state)
{
	(void)state;
	groups_of_a_target(__func__, "");
}

static void groups_in_a_part_of_the_hierarchy(void **state)
{
	struct worker_child c;
	struct join j = { .target = &c };

	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("shown", 0, 0, 0755);
	begin_in_group(&c, __func__, "pids");
	j.shown = group;
	worker_child_passes(join_groups, &j);
	/* a name that begins alike is beside it, not below */
	snprintf(group_beside, sizeof(group_beside), "%.*s", (int)strlen(group) - 1, group);
	assert_int_equal(mkdir(group_beside, 0755), 0);
	j = (struct join){
		.target = &c, .error = -ENOENT, .why = "no mount shows it", .shown = group_beside
	};
	worker_child_passes(join_groups, &j);
	worker_child_end(&c);
}

/* What joined them could not be ended. */
static void frozen_groups(const char *test, const char *controller, const char *file, const char *frozen,
			  const char *thawed)
{
	struct worker_child c;
	struct join j = { .target = &c, .error = -EBUSY, .why = "frozen" };

	begin_in_group(&c, test, controller);
	if (!group_write(file, frozen)) {
		worker_child_end(&c);
		printf("%s: %s has no %s\n", test, group, file);
		skip();
	}
	worker_child_passes(join_groups, &j);
	assert_true(group_write(file, thawed));
	j.error = 0;
	worker_child_passes(join_groups, &j);
	worker_child_end(&c);
}

static void frozen_groups_of_version_1(void **state)
{
	(void)state;
	frozen_groups(__func__, "freezer", "freezer.state", "FROZEN", "THAWED");
}

static void frozen_groups_of_version_2(void **state)
{
	(void)state;
	frozen_groups(__func__, "", "cgroup.freeze", "1", "0");
}

static void groups_of_one_that_died(void **state)
{
	struct worker_error e = { 0 };
	struct worker_child c;

	(void)state;
	worker_child_begin(&c, NULL, NULL, NULL, NULL);
	worker_child_kill();
	assert_int_equal(worker_cgroups_join(c.proc, getpid(), &e), -ESRCH);
	assert_int_equal(e.error, -ESRCH);
	worker_child_end(&c);
	worker_child_begin(&c, NULL, NULL, NULL, NULL);
	assert_int_equal(worker_cgroups_join(c.proc, INT_MAX, &e), -ESRCH); /* more than there are pids */
	worker_child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_that_are_ours),
		cmocka_unit_test_teardown(groups_of_version_1, group_remove),
		cmocka_unit_test_teardown(groups_of_version_2, group_remove),
		cmocka_unit_test_teardown(groups_in_a_part_of_the_hierarchy, group_remove),
		cmocka_unit_test_teardown(frozen_groups_of_version_1, group_remove),
		cmocka_unit_test_teardown(frozen_groups_of_version_2, group_remove),
		cmocka_unit_test(groups_of_one_that_died),
	};

	return cmocka_run_group_tests(tests, worker_child_setup, worker_child_teardown);
}
