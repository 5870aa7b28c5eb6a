/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves a process to the control groups of another. They decide which devices it may open, and whose memory
 * and CPU time it uses.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does the comma separated LIST have all names of the list WANTED? */
static bool has_controllers(const char *list, const char *wanted)
{
	while (*wanted) {
		size_t len = strcspn(wanted, ",");
		const char *at = list;

		while (*at && !(!strncmp(at, wanted, len) && (at[len] == ',' || !at[len]))) {
			at += strcspn(at, ",");
			at += *at == ',';
		}
		if (!*at)
			return false;
		wanted += len;
		wanted += *wanted == ',';
	}
	return true;
}

/* Is PATH in the subtree ROOT that a mount shows? *LEN: the length of ROOT, 0 for "/". */
static bool is_below(const char *path, const char *root, size_t *len)
{
	size_t n = strlen(path);

	*len = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(path, root, *len) != 0 || (path[*len] && path[*len] != '/'))
		return false;
	return !strstr(path, "/../") && !(n >= 3 && !strcmp(path + n - 3, "/.."));
}

/*
 * The directory of the group PATH in the hierarchy with those controllers ("": cgroup v2). A mount may show
 * only a subtree of a hierarchy, so all mounts are tried. False: none shows it.
 */
static bool find_group(const char *controllers, const char *path, char *dir, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0, len;
	bool found = false;

	while (f && !found && getline(&line, &cap, f) > 0) {
		char where[PATH_MAX], shown[PATH_MAX], type[32], options[512];
		const char *rest = strstr(line, " - ");

		if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", shown, where) != 2 ||
		    sscanf(rest + 3, "%31s %*s %511s", type, options) != 2)
			continue;
		found = *controllers ? !strcmp(type, "cgroup") && has_controllers(options, controllers)
				     : !strcmp(type, "cgroup2");
		found = found && is_below(path, shown, &len) &&
			snprintf(dir, size, "%s%s", where, path + len) < (int)size;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool file_has(const char *dir, const char *name, const char *text)
{
	char path[2 * PATH_MAX + 32], have[256] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, have, sizeof(have) - 1);
	if (fd >= 0)
		close(fd);
	return n > 0 && strstr(have, text);
}

/* Is it frozen by the freezer controller of v1, or by cgroup.freeze of v2? */
static bool is_frozen(const char *dir)
{
	return file_has(dir, "freezer.state", "FROZEN") || file_has(dir, "freezer.state", "FREEZING") ||
	       file_has(dir, "cgroup.events", "frozen 1") || file_has(dir, "cgroup.freeze", "1");
}

/* LINE: "7:blkio:/path", of /proc/PID/cgroup. */
static int join_group(char *line, pid_t pid, struct worker_error *e)
{
	char dir[2 * PATH_MAX], file[2 * PATH_MAX + 32], number[16];
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	int fd, n;
	bool ok;

	if (!path)
		return worker_fail(e, -EPROTO, "/proc/PID/cgroup of the job");
	*path++ = '\0';
	controllers++;
	if (!find_group(controllers, path, dir, sizeof(dir)))
		return worker_fail(e, -ENOENT, "control group %s: no mount shows it", path);
	if (is_frozen(dir))
		return worker_fail(e, -EBUSY, "the job is frozen: control group %s", path);
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	n = snprintf(number, sizeof(number), "%d", pid);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, number, (size_t)n) == n;
	if (!ok)
		worker_fail(e, 0, "joining control group %s", path);
	if (fd >= 0)
		close(fd);
	return ok ? 0 : e->error;
}

static char *cgroup_read(int proc)
{
	int fd = openat(proc, "cgroup", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *text = NULL;
	size_t cap = 0;

	if (f && getdelim(&text, &cap, '\0', f) < 0) {
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return text;
}

static char *read_groups_of(pid_t pid)
{
	char path[32], *text;
	int proc;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	text = proc < 0 ? NULL : cgroup_read(proc);
	if (proc >= 0)
		close(proc);
	return text;
}

/* Does TEXT have a line equal to LINE, which has no newline? */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (!strncmp(at, line, len) && (at[len] == '\n' || !at[len]))
			return true;
	return false;
}

int worker_cgroups_join(int proc, pid_t pid, struct worker_error *e)
{
	char *theirs = cgroup_read(proc), *ours = read_groups_of(pid), *now = NULL, *rest = NULL;
	char *copy = theirs ? strdup(theirs) : NULL;
	int err = copy && ours ? 0 : worker_fail(e, -ESRCH, "the job's control groups");

	for (char *line = err ? NULL : strtok_r(copy, "\n", &rest); line && !err;
	     line = strtok_r(NULL, "\n", &rest))
		if (!has_line(ours, line))
			err = join_group(line, pid, e);
	if (err)
		goto out;
	/*
	 * A job may be able to create a device node that its groups keep it from opening: that must apply
	 * to the worker, too.
	 */
	now = read_groups_of(pid);
	if (!now || strcmp(now, theirs) != 0)
		err = worker_fail(e, -EPERM, "the job's control groups");
out:
	free(theirs);
	free(ours);
	free(copy);
	free(now);
	return err;
}
