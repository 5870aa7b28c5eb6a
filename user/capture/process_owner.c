/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/process_owner.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/process.h"

#define NESTED 33 /* namespaces: the kernel's limit, and ours */

/*
 * Returns a descriptor of the outermost namespace below ours of process PID's kind NAME, and its inode
 * number; -1: the process is in ours, or it is unknown.
 */
static int outermost(pid_t pid, const char *name, uint64_t *inode)
{
	char path[48];
	struct stat own, st;
	int fd, found = -1;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &own))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < NESTED && !fstat(fd, &st); i++) {
		if (st.st_ino == own.st_ino && st.st_dev == own.st_dev) {
			close(fd);
			return found;
		}
		if (found >= 0)
			close(found);
		found = fd;
		*inode = st.st_ino;
		fd = ioctl(fd, NS_GET_PARENT);
	}
	/* Its ancestors do not lead to ours. */
	if (fd >= 0)
		close(fd);
	if (found >= 0)
		close(found);
	return -1;
}

struct nps_process_owner nps_process_owner(pid_t pid)
{
	struct nps_process_owner owner = { .uid = nps_pid_uid(pid) };
	uint64_t inode = 0;
	uid_t uid;
	int fd;

	if (owner.uid == (uid_t)-1)
		return owner;
	fd = outermost(pid, "user", &inode);
	if (fd >= 0) {
		if (!ioctl(fd, NS_GET_OWNER_UID, &uid))
			owner.uid = uid;
		close(fd);
		if (owner.uid)
			return owner;
	}
	/*
	 * Without a user namespace of its own only root can have created the outermost one, because it can
	 * become any user there.
	 */
	fd = outermost(pid, "pid", &inode);
	if (fd >= 0) {
		owner = (struct nps_process_owner){ .pid_ns = inode };
		close(fd);
	}
	return owner;
}
