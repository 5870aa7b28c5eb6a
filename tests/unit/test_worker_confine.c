/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which rights are left to the driver's code in npuscope-device-worker. They are given up in forked children,
 * by the kernel's answers; it needs root.
 */
#include "worker/worker.h"
#include "worker_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static rlim_t core_limit; /* the hard one, which worker_set_ids() lowers */
static const char *const capability_sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

/* What follows KEY, in hexadecimal; -1: it is not there. */
static long long status_value(const char *status, const char *key)
{
	char line[32];
	const char *at;

	snprintf(line, sizeof(line), "\n%s:", key);
	at = strstr(status, line);
	return at ? (long long)strtoull(at + strlen(line), NULL, 16) : -1;
}

static bool has_no_capability(const char *status)
{
	for (size_t i = 0; i < sizeof(capability_sets) / sizeof(*capability_sets); i++)
		if (status_value(status, capability_sets[i]) != 0)
			return false;
	return true;
}

/* Every set has something that can be lost. */
static void capabilities_raise(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	const gid_t group = OTHER;
	char status[8192];

	CHECK(!syscall(SYS_capget, &header, data));
	for (int i = 0; i < 2; i++)
		data[i].inheritable = data[i].permitted;
	CHECK(!syscall(SYS_capset, &header, data));
	CHECK(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
	CHECK(worker_child_read_file("/proc/self/status", status, sizeof(status)));
	for (size_t i = 0; i < sizeof(capability_sets) / sizeof(*capability_sets); i++)
		CHECK(status_value(status, capability_sets[i]) > 0);
	CHECK(!setgroups(1, &group));
}

static void check_ids(const struct worker_ids *ids)
{
	uid_t uid[3];
	gid_t gid[3], groups[8];

	CHECK(!getresuid(&uid[0], &uid[1], &uid[2]));
	CHECK(!getresgid(&gid[0], &gid[1], &gid[2]));
	for (int i = 0; i < 3; i++)
		CHECK(uid[i] == ids->uid && gid[i] == ids->gid);
	CHECK(getgroups(8, groups) == (int)ids->n_groups);
	for (size_t i = 0; i < ids->n_groups; i++)
		CHECK(groups[i] == ids->groups[i]);
}

static void check_locked(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct kill[2] = { { .permitted = 1 << CAP_KILL } };
	const unsigned long locks = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	struct rlimit core;
	int signal = 0;

	CHECK((unsigned long)prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) == locks);
	CHECK(syscall(SYS_capset, &header, kill) == -1);
	CHECK(setgroups(0, NULL) == -1);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(!prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0) && signal == SIGKILL);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(!getrlimit(RLIMIT_CORE, &core));
	CHECK(core.rlim_max == (core_limit ? 1 : 0) && core.rlim_cur == core.rlim_max);
}

/* Both steps. */
static int confine_by(const struct worker_ids *ids, struct worker_error *e)
{
	int err = worker_set_ids(ids, e);

	return err ? err : worker_drop_privileges(ids, e);
}

static void confine(const struct worker_ids *ids)
{
	struct worker_error e = { 0 };
	struct rlimit core;

	CHECK(!getrlimit(RLIMIT_CORE, &core));
	core_limit = core.rlim_max;
	capabilities_raise();
	if (confine_by(ids, &e))
		CHECK_AS(false, e.why);
	CHECK(!e.error);
}

/* What happens between the steps, among files of the job's, happens with the rights of who owns them. */
static void set_ids_and_check(const void *arg)
{
	const struct worker_ids *ids = arg;
	const char *secret = worker_child_in_dir("secret");
	struct worker_error e = { 0 };
	char status[8192];

	capabilities_raise();
	CHECK(!access(secret, R_OK));
	CHECK(!worker_set_ids(ids, &e) && !e.error);
	check_ids(ids);
	CHECK(worker_child_read_file("/proc/self/status", status, sizeof(status)));
	CHECK(status_value(status, "CapEff") == 0 && status_value(status, "CapInh") == 0);
	CHECK(status_value(status, "CapPrm") > 0);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(open(secret, O_RDONLY | O_CLOEXEC) == -1 && errno == EACCES);
	CHECK(!worker_drop_privileges(ids, &e) && !e.error);
	check_ids(ids);
	CHECK(worker_child_read_file("/proc/self/status", status, sizeof(status)) &&
	      has_no_capability(status));
}

static void confine_and_check(const void *arg)
{
	const struct worker_ids *ids = arg;
	char status[8192];

	confine(ids);
	check_ids(ids);
	CHECK(worker_child_read_file("/proc/self/status", status, sizeof(status)));
	CHECK(has_no_capability(status));
	CHECK(status_value(status, "NoNewPrivs") == 1);
	check_locked();
	if (!ids->uid)
		return;
	CHECK(setuid(0) == -1 && errno == EPERM);
	CHECK(setresuid((uid_t)-1, 0, (uid_t)-1) == -1 && errno == EPERM);
	CHECK(setgid(0) == -1 && errno == EPERM);
	CHECK(getuid() == ids->uid && getgid() == ids->gid);
}

static const gid_t two_groups[] = { 64001, 64002 }, other_groups[] = { 64001, 64003 };
static const struct worker_ids as_nobody = { .uid = NOBODY, .gid = NOBODY, .user_ns = -1 };
static const struct worker_ids as_root = { .uid = 0, .gid = 0, .user_ns = -1 };
static const struct worker_ids as_nobody_in_groups = {
	.uid = NOBODY, .gid = OTHER, .groups = two_groups, .n_groups = 2, .user_ns = -1
};

static void rights_that_are_left(void **state)
{
	(void)state;
	worker_child_need_root(__func__);
	worker_child_passes(confine_and_check, &as_nobody);
	worker_child_passes(confine_and_check, &as_nobody_in_groups);
	worker_child_passes(confine_and_check, &as_root);
}

static void rights_between_the_steps(void **state)
{
	(void)state;
	worker_child_need_dir(__func__);
	PUT_FILE("secret", OTHER, OTHER, 0600);
	worker_child_passes(set_ids_and_check, &as_nobody);
	worker_child_passes(set_ids_and_check, &as_root);
}

struct execution {
	const struct worker_ids *ids; /* NULL: it is not confined */
	int to;
};

static void execute_cat(const void *arg)
{
	const struct execution *x = arg;

	capabilities_raise();
	if (x->ids)
		confine(x->ids);
	if (dup2(x->to, 1) == 1)
		execl("/bin/cat", "cat", "/proc/self/status", NULL);
	CHECK(!"execl");
}

static void execute_and_read(const struct worker_ids *ids, char *status, size_t size)
{
	struct execution x = { .ids = ids };
	ssize_t n;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 65536) >= 0); /* all of it, before anybody reads */
	x.to = fds[1];
	worker_child_passes(execute_cat, &x);
	close(fds[1]);
	n = read(fds[0], status, size - 1);
	close(fds[0]);
	assert_true(n > 0);
	status[n] = '\0';
}

/* Root's gets its capabilities back when it executes a program, unless that is prevented. */
static void programs_gain_nothing(void **state)
{
	char status[8192];

	(void)state;
	worker_child_need_root(__func__);
	execute_and_read(NULL, status, sizeof(status));
	assert_false(has_no_capability(status));
	execute_and_read(&as_root, status, sizeof(status));
	assert_non_null(strstr(status, "\nUid:\t0\t0\t0\t0\n"));
	assert_true(has_no_capability(status));
	assert_int_equal(status_value(status, "NoNewPrivs"), 1);
	execute_and_read(&as_nobody, status, sizeof(status));
	assert_non_null(strstr(status, "\nUid:\t65534\t65534\t65534\t65534\n"));
	assert_true(has_no_capability(status));
}

/* What becomes of an ordinary user's. */
static const struct worker_ids as_they_are = {
	.uid = NOBODY, .gid = NOBODY, .groups = two_groups, .n_groups = 2, .user_ns = -1
};
static const struct worker_ids with_own_groups = {
	.uid = NOBODY, .gid = NOBODY, .own_groups = true, .user_ns = -1
};

static void check_refused(const struct worker_ids *ids, int error, const char *why)
{
	struct worker_error e = { 0 };

	CHECK(confine_by(ids, &e) == error && e.error == error);
	CHECK_AS(strstr(e.why, why) != NULL, why);
}

/* What cannot be changed is as it is to be already, or that is an error. */
static void confine_without_rights(const void *arg)
{
	const struct worker_ids *same = arg;
	struct worker_ids other = as_they_are;
	struct worker_error e = { 0 };
	char status[8192];
	int signal = 0;

	CHECK(!setgroups(2, two_groups) && !setresgid(NOBODY, NOBODY, NOBODY));
	CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
	other.uid = OTHER;
	check_refused(&other, -EPERM, "setresuid(65533)");
	other = as_they_are;
	other.gid = OTHER;
	check_refused(&other, -EPERM, "setresgid(65533)");
	other = as_they_are;
	other.user_ns = open("/dev/null", O_RDONLY | O_CLOEXEC);
	check_refused(&other, -EINVAL, "user namespace");
	other = as_they_are;
	other.n_groups = 1;
	check_refused(&other, -EPERM, "setgroups");
	other.n_groups = 0;
	check_refused(&other, -EPERM, "setgroups");
	other.n_groups = 2;
	other.groups = other_groups;
	check_refused(&other, -EPERM, "setgroups");
	CHECK(!confine_by(same, &e));
	check_ids(&as_they_are);
	CHECK(worker_child_read_file("/proc/self/status", status, sizeof(status)));
	CHECK(status_value(status, "CapPrm") == 0 && status_value(status, "CapEff") == 0);
	CHECK(status_value(status, "NoNewPrivs") == 1);
	CHECK(!prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0) && signal == SIGKILL);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static void confining_an_ordinary_user(void **state)
{
	(void)state;
	worker_child_need_root(__func__);
	worker_child_passes(confine_without_rights, &as_they_are);
	worker_child_passes(confine_without_rights, &with_own_groups);
}

static void confine_in_user_ns(const void *arg)
{
	const struct worker_ids inside = { .uid = 0, .gid = 0, .user_ns = -1 }, *ids = arg;
	struct stat own, other;
	char status[8192];

	confine(ids);
	check_ids(&inside); /* 65534, as it is called there */
	CHECK(!stat("/proc/self/ns/user", &own) && !fstat(ids->user_ns, &other) &&
	      own.st_ino == other.st_ino);
	CHECK(worker_child_read_file("/proc/self/status", status, sizeof(status)));
	CHECK(has_no_capability(status));
	check_locked();
}

/* Whoever enters one has all capabilities there. */
static void rights_in_a_user_namespace(void **state)
{
	struct worker_ids ids = as_nobody;
	struct worker_child c;

	(void)state;
	worker_child_need_root(__func__);
	worker_child_begin_in_user_ns(&c, __func__, "0 65534 1\n"); /* nobody, who is root there */
	ids.user_ns = openat(c.proc, "ns/user", O_RDONLY | O_CLOEXEC);
	assert_true(ids.user_ns >= 0);
	worker_child_passes(confine_in_user_ns, &ids);
	close(ids.user_ns);
	worker_child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rights_that_are_left),	      cmocka_unit_test(rights_between_the_steps),
		cmocka_unit_test(programs_gain_nothing),      cmocka_unit_test(confining_an_ordinary_user),
		cmocka_unit_test(rights_in_a_user_namespace),
	};

	return cmocka_run_group_tests(tests, worker_child_setup, worker_child_teardown);
}
