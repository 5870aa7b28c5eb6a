/* SPDX-License-Identifier: BSD-2-Clause */
/* Drops ids and capabilities, in an order in which each step still has the capability that it needs. */
#include "worker.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_CAPABILITIES 64

/* Which of the permitted capabilities are effective afterwards; NONE_LEFT: none are permitted, either. */
enum confine_right { ALL_IN_EFFECT, NONE_IN_EFFECT, NONE_LEFT };

static int set_capabilities(enum confine_right what)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (what != NONE_LEFT && syscall(SYS_capget, &header, data))
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].effective = what == ALL_IN_EFFECT ? data[i].permitted : 0;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* Otherwise execve(2) as uid 0 would give the worker all capabilities of the bounding set. */
static int drop_bounding_set(void)
{
	for (int i = 0; i < MOST_CAPABILITIES; i++) {
		int has = prctl(PR_CAPBSET_READ, i, 0, 0, 0);

		if (has < 0)
			break; /* past the last one */
		if (has && prctl(PR_CAPBSET_DROP, i, 0, 0, 0))
			return -errno;
	}
	return 0;
}

/* Does this process have exactly those supplementary groups? */
static bool has_groups(const struct worker_ids *ids)
{
	static gid_t ours[65536];
	int n = getgroups(sizeof(ours) / sizeof(*ours), ours);

	if (n < 0 || (size_t)n != ids->n_groups)
		return false;
	for (int i = 0; i < n; i++)
		if (ours[i] != ids->groups[i])
			return false;
	return true;
}

/* A collector that is not root cannot change ids, which is no error if they are right already. */
static int set_ids(const struct worker_ids *ids, struct worker_error *e)
{
	bool same_gid = getgid() == ids->gid && getegid() == ids->gid;
	bool same_uid = getuid() == ids->uid && geteuid() == ids->uid;

	if (!ids->own_groups && setgroups(ids->n_groups, ids->groups) && !has_groups(ids))
		return worker_fail(e, -EPERM, "setgroups");
	if (!same_gid && setresgid(ids->gid, ids->gid, ids->gid))
		return worker_fail(e, 0, "setresgid(%u)", ids->gid);
	/* Entering a user namespace takes capabilities, which the change of ids would drop. */
	if (!same_uid && (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresuid(ids->uid, ids->uid, ids->uid)))
		return worker_fail(e, 0, "setresuid(%u)", ids->uid);
	return 0;
}

/*
 * A change of the bounding set and of securebits needs CAP_SETPCAP. Without it uid is not 0, and
 * no_new_privs is enough.
 */
static int lock_capabilities(struct worker_error *e)
{
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	bool root = geteuid() == 0;

	if (drop_bounding_set() && root)
		return worker_fail(e, 0, "the capability bounding set");
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) && root)
		return worker_fail(e, 0, "PR_SET_SECUREBITS");
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (set_capabilities(NONE_LEFT))
		return worker_fail(e, 0, "capset");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return worker_fail(e, 0, "PR_SET_NO_NEW_PRIVS");
	return 0;
}

int worker_set_ids(const struct worker_ids *ids, struct worker_error *e)
{
	const struct rlimit none = {
		1, 1
	}; /* the kernel runs a program in core_pattern even for a limit of 0 */
	int err;

	setrlimit(RLIMIT_CORE, &none);
	err = set_ids(ids, e);
	/*
	 * Processes with the same ids must not trace this one. Each change of ids may make it dumpable again.
	 */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!err && set_capabilities(NONE_IN_EFFECT))
		err = worker_fail(e, 0, "capset");
	return err;
}

int worker_drop_privileges(const struct worker_ids *ids, struct worker_error *e)
{
	int err;

	if (set_capabilities(ALL_IN_EFFECT))
		return worker_fail(e, 0, "capset");
	if (ids->user_ns >= 0 && setns(ids->user_ns, CLONE_NEWUSER))
		return worker_fail(e, 0, "entering the job's user namespace");
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	err = lock_capabilities(e);
	/* The kernel clears it with each change of ids. */
	if (!err && prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0))
		err = worker_fail(e, 0, "PR_SET_PDEATHSIG");
	return err;
}
