/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is behind a process, so that what all share can be divided. Nobody becomes two by making namespaces or by using the
 * many user ids that a user namespace has.
 */
#ifndef NPS_PROCESS_OWNER_H
#define NPS_PROCESS_OWNER_H

#include <stdint.h>
#include <sys/types.h>

struct nps_process_owner {
	/* Of the process; in a user namespace, of the user who made the outermost one below ours; in a container of root's, 0. */
	uid_t uid;
	/*
	 * Of a container of root's: the outermost PID namespace below ours, which nobody can leave, as inode number. 0: ours, or that
	 * of another user's, who can make any number of them.
	 */
	uint64_t pid_ns;
};

/* What cannot be found out is taken from the process itself. uid -1: it is gone. Needs CAP_SYS_PTRACE for processes of others. */
struct nps_process_owner nps_process_owner(pid_t pid);

#endif
