/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of a process, so that shared resources can be divided. A user cannot become two owners by
 * creating namespaces, or by using the many user ids of a user namespace.
 */
#ifndef NPS_PROCESS_OWNER_H
#define NPS_PROCESS_OWNER_H

#include <stdint.h>
#include <sys/types.h>

struct nps_process_owner {
	/*
	 * Of the process; in a user namespace, of the user who created the outermost one below ours; in a
	 * container of root's, 0.
	 */
	uid_t uid;
	/*
	 * In a container of root's: inode number of the outermost PID namespace below ours, which no process
	 * can leave. 0: in our namespace, or in one of another user, who can create any number of them.
	 */
	uint64_t pid_ns;
};

/*
 * Unknown facts are replaced by those of the process itself. uid -1: it has exited. Needs CAP_SYS_PTRACE
 * for processes of other users.
 */
struct nps_process_owner nps_process_owner(pid_t pid);

#endif
