/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/host_names.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/log.h"

#define MOST_NAMES 256 /* each keeps a descriptor open */

/* Names of other namespaces than ours. */
static struct known {
	int fd; /* of the namespace: while it is open its number is not reused */
	dev_t dev;
	ino_t ino;
	char name[NPS_HOST_NAME];
} known[MOST_NAMES];
static size_t n_known;

static struct known *known_find(const struct stat *ns)
{
	for (size_t i = 0; i < n_known; i++)
		if (known[i].dev == ns->st_dev && known[i].ino == ns->st_ino)
			return &known[i];
	return NULL;
}

static void own_name(char name[NPS_HOST_NAME])
{
	struct utsname uts;

	if (!uname(&uts))
		snprintf(name, NPS_HOST_NAME, "%s", uts.nodename);
}

/* Enters a namespace and returns, for this thread only. */
static bool enter_and_read(int ours, int theirs, char name[NPS_HOST_NAME])
{
	if (setns(theirs, CLONE_NEWUTS))
		return false;
	own_name(name);
	if (setns(ours, CLONE_NEWUTS))
		nps_debug("cannot come back from another UTS namespace: %s", strerror(errno));
	return true;
}

/* Keeps THEIRS open. */
static void name_remember(int theirs, const struct stat *ns, const char *name)
{
	struct known *k = known_find(ns);

	if (!k && n_known < MOST_NAMES) {
		k = &known[n_known++];
		*k = (struct known){ .fd = theirs, .dev = ns->st_dev, .ino = ns->st_ino };
	} else {
		if (!k)
			nps_debug("names of hosts: more than %d UTS namespaces: the rest is not kept",
				  MOST_NAMES);
		close(theirs);
	}
	if (k)
		snprintf(k->name, sizeof(k->name), "%s", name);
}

bool nps_host_name__read(pid_t pid, char name[NPS_HOST_NAME])
{
	int ours = open("/proc/thread-self/ns/uts", O_RDONLY | O_CLOEXEC), theirs;
	struct stat our, their;
	char path[64];

	name[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/ns/uts", (int)pid);
	theirs = open(path, O_RDONLY | O_CLOEXEC);
	if (ours >= 0 && theirs >= 0 && !fstat(ours, &our) && !fstat(theirs, &their)) {
		const struct known *k;

		if (our.st_dev == their.st_dev && our.st_ino == their.st_ino) {
			own_name(name);
		} else if (enter_and_read(ours, theirs, name)) {
			name_remember(theirs, &their, name);
			theirs = -1;
		} else if ((k = known_find(&their))) {
			memcpy(name, k->name, NPS_HOST_NAME);
		}
	}
	if (ours >= 0)
		close(ours);
	if (theirs >= 0)
		close(theirs);
	return name[0];
}

void nps_host_names__collect(void)
{
	const struct dirent *e;
	char name[NPS_HOST_NAME];
	DIR *proc = opendir("/proc");

	while (proc && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]))
			nps_host_name__read((pid_t)strtol(e->d_name, NULL, 10), name);
	if (proc)
		closedir(proc);
}

void nps_host_names__free(void)
{
	while (n_known)
		close(known[--n_known].fd);
}
