/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * npuscope-device-worker: loads the driver's libraries, so that no npuscope process with rights has to. It
 * uses nothing of npuscope except kheaders/device_worker.h, no library except libc, and works in a
 * container as on the host.
 */
#ifndef NPS_WORKER_H
#define NPS_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "device_worker.h"

/* Why a launch failed: the step, for messages, and its errno. */
struct worker_error {
	int error; /* -errno, 0: none */
	char why[sizeof(((struct nps_launch_reply *)0)->why)];
};

/* Fills E from errno, or from ERROR if that is not 0; returns -errno. */
int worker_fail(struct worker_error *e, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- launcher.c: as root ------------------------------------------------------------------------------ */

/*
 * Starts workers requested on NPS_WORKER_FD until it is closed; then all
 * have ended. ARGV: ours. Returns the exit status.
 */
int worker_launch(char **argv);

/* --- become_worker.c: a child of the launcher, until it executes a worker ------------------------------ */

#define WORKER_MOST_LIBRARIES 128 /* paths of each of the driver's libraries in a request */

/* What a starting worker writes to the launcher's pipe. The pipe is closed when it executes its program. */
struct worker_progress {
	enum {
		WORKER_CONFINED =
			1, /* has no capability left, and waits to be moved to the job's control groups */
		WORKER_FORKED, /* `pid` replaces it, and is the launcher's child */
		WORKER_FAILED
	} what;
	pid_t pid;
	struct worker_error e;
};

/*
 * Gives up all rights and executes the worker that R requests; does not return. FDS: its connection, and
 * the job's /proc/PID. SEALED: the program runs from memory. It reports to the pipe REPORT, and reads from GO
 * before it enters the job's pid namespace.
 */
void worker_become(const struct nps_launch_request *r, const int fds[2], bool sealed, int go, int report)
	__attribute__((noreturn));

/* A sealed copy of this program in memory, to execute; -1 with errno. The launcher calls it, too. */
int worker_copy_program(mode_t mode);

/* --- serve.c: as nobody, or as the job ---------------------------------------------------------------- */

/* Serves connections; ARGV: paths of libascend_hal.so, "--", paths of libdcmi.so. Returns the exit status. */
int worker_serve(char **argv);

/* --- target.c: the process whose namespaces and limits a worker gets ---------------------------------- */

enum worker_ns { NS_MNT, NS_UTS, NS_IPC, NS_NET, NS_CGROUP, NS_PID, NS_USER, NS_COUNT };

struct worker_target {
	int proc; /* /proc/PID, O_PATH */
	pid_t pid; /* can be reused by another process: only used for its limits */
	uid_t uid, ns_root; /* ns_root: id of root in its user namespace */
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
	int ns[NS_COUNT]; /* descriptors; -1: the same as ours */
	int root; /* its root directory, O_PATH */
	char **env; /* without variables that control the dynamic linker */
	char *env_text;
};

/*
 * Reads the process, in which file PATH (one of N) must be mapped executable: an execve(2) of another
 * program meanwhile, which may have other ids, is an error. 0 or -errno with E filled.
 */
int worker_target_read(struct worker_target *t, int proc, const char *const *paths, size_t n,
		       struct worker_error *e);

/*
 * Sets T's limits, its nice value and its OOM score for this process, so that it never has more than the job.
 */
void worker_target_apply_limits(const struct worker_target *t);

/*
 * Enters T's namespaces except the user namespace, and its root directory. Children are then in its pid
 * namespace. Closes descriptors of T's that are not needed any more.
 */
int worker_target_enter(struct worker_target *t, struct worker_error *e);

/* --- cgroup.c ----------------------------------------------------------------------------------------- */

/*
 * Moves process PID to all control groups of the process whose /proc/PID is open as PROC. None of them may
 * be frozen, because PID could not be ended there. 0 or -errno with E filled.
 */
int worker_cgroups_join(int proc, pid_t pid, struct worker_error *e);

/* --- confine.c ---------------------------------------------------------------------------------------- */

struct worker_ids {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t n_groups;
	bool own_groups; /* keep the current groups: only root can change them */
	int user_ns; /* user namespace to enter in between; -1: none */
};

/* Changes to those ids; no capability is effective then, but some are kept for worker_drop_privileges(). */
int worker_set_ids(const struct worker_ids *ids, struct worker_error *e);

/* Enters the user namespace, and drops every capability for good. */
int worker_drop_privileges(const struct worker_ids *ids, struct worker_error *e);

/* filter.c: installs the system call filter, which allows what the driver's libraries need. */
int worker_filter_calls(void);

/* --- trusted_path.c ----------------------------------------------------------------------------------- */

/* Whose files are trusted: root's, and for the job's own those of its user. */
struct worker_trust {
	uid_t owners[3]; /* besides root; 0: none */
	bool by_group; /* `group` may write, too */
	gid_t group;
	/* allow directories on the way in which all users create files but cannot remove each other's */
	bool sticky;
};

/*
 * Can only those users have created PATH, absolute: is each directory and link on the way, and the file or
 * directory at its end, owned and writable only by them? False also if it does not exist.
 */
bool worker_path_trusted(const char *path, const struct worker_trust *trust);

#endif
