/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/time_namespace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NS_PER_S 1000000000

/* Inode of namespace NAME of process PID, 0: the kernel does not have that kind. */
static ino_t namespace_of(const char *pid, const char *name)
{
	char path[80];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, name);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Offset of the time namespace of PID's children, relative to the first one. */
static int read_offset(const char *pid, int64_t *offset)
{
	char path[64], line[128];
	int64_t seconds, ns;
	int err = -ENODATA;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/timens_offsets", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (err && fgets(line, sizeof(line), file)) {
		/* The kernel accepts no offset that its clocks could not represent. */
		if (sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2 &&
		    seconds > INT64_MIN / NS_PER_S && seconds < INT64_MAX / NS_PER_S - 1 && ns >= 0 &&
		    ns < NS_PER_S) {
			*offset = seconds * NS_PER_S + ns;
			err = 0;
		}
	}
	fclose(file);
	return err;
}

/* Offset of the namespace of PID itself: it can have created another one for its children. */
static int own_offset(const char *pid, int64_t *offset)
{
	if (namespace_of(pid, "time") != namespace_of(pid, "time_for_children"))
		return -ENODATA;
	return read_offset(pid, offset);
}

int nps_time_namespace__offset(pid_t pid, int64_t *offset)
{
	ino_t theirs, ours = namespace_of("self", "time");
	int64_t job = 0, own = 0;
	char number[16];
	int err;

	snprintf(number, sizeof(number), "%d", (int)pid);
	theirs = namespace_of(number, "time");
	*offset = 0;
	if (!theirs || !ours || theirs == ours)
		return 0;
	err = own_offset(number, &job);
	if (err)
		return err;
	err = own_offset("self", &own);
	if (err)
		return err;
	return __builtin_sub_overflow(job, own, offset) ? -ERANGE : 0;
}
