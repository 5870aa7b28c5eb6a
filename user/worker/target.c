/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the identity of the process that a worker is to run as. The process may execute another program
 * meanwhile, possibly one that changes ids: it must have the library mapped after its ids were read, and
 * the same ids at the end.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_ENVIRONMENT (1U << 20)
#define MOST_GROUPS 65536

static const struct {
	const char *name;
	int flag;
} namespaces[NS_COUNT] = {
	[NS_MNT] = { "mnt", CLONE_NEWNS },	[NS_UTS] = { "uts", CLONE_NEWUTS },
	[NS_IPC] = { "ipc", CLONE_NEWIPC },	[NS_NET] = { "net", CLONE_NEWNET },
	[NS_CGROUP] = { "cgroup", 0x02000000 }, [NS_PID] = { "pid", CLONE_NEWPID },
	[NS_USER] = { "user", CLONE_NEWUSER },
};

static FILE *open_text(int proc, const char *name)
{
	int fd = openat(proc, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* Real, effective, saved and file system id must be equal: a setuid program is refused. */
static bool same_ids(const char *line, unsigned int *id)
{
	unsigned int v[4];

	if (sscanf(line, "%u %u %u %u", &v[0], &v[1], &v[2], &v[3]) != 4)
		return false;
	*id = v[0];
	return v[0] == v[1] && v[0] == v[2] && v[0] == v[3];
}

static int target_read_groups(struct worker_target *t, const char *line)
{
	for (char *end; t->n_groups < MOST_GROUPS; line = end) {
		unsigned long id = strtoul(line, &end, 10);
		gid_t *more;

		if (end == line)
			return 0;
		more = realloc(t->groups, (t->n_groups + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->groups = more;
		more[t->n_groups++] = (gid_t)id;
	}
	return -E2BIG;
}

static int read_ids(struct worker_target *t, struct worker_error *e)
{
	FILE *f = open_text(t->proc, "status");
	bool uid = false, gid = false;
	char *line = NULL;
	size_t cap = 0;
	int err = 0;

	if (!f)
		return worker_fail(e, 0, "/proc/PID/status of the job");
	t->n_groups = 0;
	while (!err && getline(&line, &cap, f) > 0) {
		if (!strncmp(line, "Uid:", 4))
			uid = same_ids(line + 4, &t->uid);
		else if (!strncmp(line, "Gid:", 4))
			gid = same_ids(line + 4, &t->gid);
		else if (!strncmp(line, "Groups:", 7))
			err = target_read_groups(t, line + 7);
	}
	free(line);
	fclose(f);
	if (!err && !(uid && gid))
		return worker_fail(e, -EPERM, "the job runs with changed ids (setuid)");
	return err ? worker_fail(e, err, "the job's groups") : 0;
}

/* Uid 0 of the job's user namespace, whose files are trusted there. */
static void read_ns_root(struct worker_target *t)
{
	FILE *f = open_text(t->proc, "uid_map");
	unsigned int inside, outside, n;

	t->ns_root = t->uid;
	while (f && fscanf(f, "%u %u %u", &inside, &outside, &n) == 3)
		if (inside == 0 && n)
			t->ns_root = outside;
	if (f)
		fclose(f);
}

static int same_ids_still(struct worker_target *t, struct worker_error *e)
{
	struct worker_target again = { .proc = t->proc };
	int err = read_ids(&again, e);
	bool same = again.uid == t->uid && again.gid == t->gid && again.n_groups == t->n_groups;

	for (size_t i = 0; same && i < t->n_groups; i++)
		same = again.groups[i] == t->groups[i];
	free(again.groups);
	if (!err && !same)
		err = worker_fail(e, -EAGAIN, "the job changed its ids meanwhile");
	return err;
}

static int open_namespaces(struct worker_target *t, struct worker_error *e)
{
	for (int i = 0; i < NS_COUNT; i++) {
		char path[32], ours[64];
		struct stat st, own;

		t->ns[i] = -1;
		snprintf(path, sizeof(path), "ns/%s", namespaces[i].name);
		snprintf(ours, sizeof(ours), "/proc/self/ns/%s", namespaces[i].name);
		if (stat(ours, &own) && errno == ENOENT)
			continue; /* not in this kernel */
		t->ns[i] = openat(t->proc, path, O_RDONLY | O_CLOEXEC);
		if (t->ns[i] < 0 || fstat(t->ns[i], &st))
			return worker_fail(e, 0, "the job's %s namespace", namespaces[i].name);
		if (st.st_dev == own.st_dev && st.st_ino == own.st_ino) {
			close(t->ns[i]);
			t->ns[i] = -1;
		}
	}
	t->root = openat(t->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return t->root < 0 ? worker_fail(e, 0, "the job's root directory") : 0;
}

/* Label of the security module. A worker with npuscope's label could do what the job's label forbids. */
static bool read_label(int proc, char *label, size_t size)
{
	int fd = openat(proc, "attr/current", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, label, size - 1);

	if (fd >= 0)
		close(fd);
	label[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static int same_label(const struct worker_target *t, struct worker_error *e)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char ours[256], theirs[256];

	read_label(self, ours, sizeof(ours));
	read_label(t->proc, theirs, sizeof(theirs));
	close(self);
	if (strcmp(ours, theirs) != 0)
		return worker_fail(e, -EPERM, "the job is confined by a security module (AppArmor, SELinux)");
	return 0;
}

static bool is_for_the_linker(const char *variable)
{
	return !strncmp(variable, "LD_", 3) || !strncmp(variable, "GLIBC_TUNABLES=", 15) ||
	       !strncmp(variable, "MALLOC_", 7) || !strncmp(variable, "GCONV_PATH=", 11);
}

static int read_environment(struct worker_target *t, struct worker_error *e)
{
	int fd = openat(t->proc, "environ", O_RDONLY | O_CLOEXEC);
	size_t len = 0, n = 0;
	ssize_t got;

	if (fd < 0)
		return worker_fail(e, 0, "the job's environment");
	t->env_text = malloc(MOST_ENVIRONMENT);
	while (t->env_text && len < MOST_ENVIRONMENT - 1 &&
	       (got = read(fd, t->env_text + len, MOST_ENVIRONMENT - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	if (!t->env_text)
		return worker_fail(e, -ENOMEM, "the job's environment");
	t->env_text[len] = '\0';
	for (size_t at = 0; at < len; at += strlen(t->env_text + at) + 1)
		n++;
	t->env = calloc(n + 2, sizeof(*t->env)); /* one more for LD_LIBRARY_PATH */
	if (!t->env)
		return worker_fail(e, -ENOMEM, "the job's environment");
	n = 0;
	for (size_t at = 0; at < len; at += strlen(t->env_text + at) + 1)
		if (!is_for_the_linker(t->env_text + at))
			t->env[n++] = t->env_text + at;
	return 0;
}

/*
 * Is LINE of /proc/PID/maps an executable mapping of one of PATHS, which
 * are below ROOT, the root directory of the process?
 */
static bool line_is_mapping_of(const char *line, const char *root, const char *const *paths, size_t n)
{
	const char *path = strchr(line, '/');
	char permissions[8] = "";
	size_t len = strlen(root);

	if (!path || sscanf(line, "%*s %7s", permissions) != 1 || permissions[2] != 'x')
		return false;
	if (len > 1 && !strncmp(path, root, len) && path[len] == '/')
		path += len;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(path, paths[i]))
			return true;
	return false;
}

static int maps_one(const struct worker_target *t, const char *const *paths, size_t n, struct worker_error *e)
{
	FILE *f = open_text(t->proc, "maps");
	char root[PATH_MAX];
	ssize_t root_len = readlinkat(t->proc, "root", root, sizeof(root) - 1);
	bool found = false;
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!f)
		return worker_fail(e, 0, "/proc/PID/maps of the job");
	root[root_len > 0 ? root_len : 0] = '\0';
	while (!found && (len = getline(&line, &cap, f)) > 0) {
		line[len - 1] = '\0';
		found = line_is_mapping_of(line, root, paths, n);
	}
	free(line);
	fclose(f);
	return found ? 0 : worker_fail(e, -ESTALE, "the job has executed another program meanwhile");
}

/* From the name of the directory. */
static pid_t pid_of(int proc)
{
	char link[32], path[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", proc);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return strncmp(path, "/proc/", 6) ? -1 : (pid_t)atoi(path + 6);
}

int worker_target_read(struct worker_target *t, int proc, const char *const *paths, size_t n,
		       struct worker_error *e)
{
	int err;

	*t = (struct worker_target){ .proc = proc, .pid = pid_of(proc), .root = -1 };
	for (int i = 0; i < NS_COUNT; i++)
		t->ns[i] = -1;
	/* First, because it can take the process's own time. */
	err = read_environment(t, e);
	if (err)
		return err;
	err = read_ids(t, e);
	if (err)
		return err;
	err = open_namespaces(t, e);
	if (err)
		return err;
	read_ns_root(t);
	err = same_label(t, e);
	if (err)
		return err;
	err = maps_one(t, paths, n, e);
	if (err)
		return err;
	return same_ids_still(t, e);
}

/* --- entering ---------------------------------------------------------------------------------------- */

static rlim_t limit_of(const char *text)
{
	return !strcmp(text, "unlimited") ? RLIM_INFINITY : (rlim_t)strtoull(text, NULL, 10);
}

/* From /proc/PID/limits: prlimit(2) requires an extra right for processes of other users. */
static void apply_resource_limits(const struct worker_target *t)
{
	static const struct {
		const char *name;
		int resource;
	} names[] = { { "Max cpu time", RLIMIT_CPU },
		      { "Max file size", RLIMIT_FSIZE },
		      { "Max data size", RLIMIT_DATA },
		      { "Max stack size", RLIMIT_STACK },
		      { "Max resident set", RLIMIT_RSS },
		      { "Max processes", RLIMIT_NPROC },
		      { "Max open files", RLIMIT_NOFILE },
		      { "Max locked memory", RLIMIT_MEMLOCK },
		      { "Max address space", RLIMIT_AS },
		      { "Max pending signals", RLIMIT_SIGPENDING },
		      { "Max msgqueue size", RLIMIT_MSGQUEUE },
		      { "Max nice priority", RLIMIT_NICE },
		      { "Max realtime priority", RLIMIT_RTPRIO } };
	FILE *f = open_text(t->proc, "limits");
	char line[160], soft[32], hard[32];

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			size_t len = strlen(names[i].name);
			struct rlimit theirs, ours;

			if (strncmp(line, names[i].name, len) != 0 ||
			    sscanf(line + len, "%31s %31s", soft, hard) != 2 ||
			    getrlimit(names[i].resource, &ours))
				continue;
			theirs = (struct rlimit){ limit_of(soft), limit_of(hard) };
			/* without a right limits cannot be raised above ours */
			theirs.rlim_max = theirs.rlim_max < ours.rlim_max ? theirs.rlim_max : ours.rlim_max;
			theirs.rlim_cur = theirs.rlim_cur < theirs.rlim_max ? theirs.rlim_cur
									    : theirs.rlim_max;
			setrlimit(names[i].resource, &theirs);
		}
	if (f)
		fclose(f);
}

void worker_target_apply_limits(const struct worker_target *t)
{
	const struct sched_param none = { 0 };
	char text[16];
	int fd, n;

	apply_resource_limits(t);
	sched_setscheduler(0, SCHED_OTHER, &none);
	errno = 0;
	n = getpriority(PRIO_PROCESS, (id_t)t->pid);
	if (t->pid > 0 && !errno)
		setpriority(PRIO_PROCESS, 0, n);
	fd = openat(t->proc, "oom_score_adj", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : (int)read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && n > 0 && write(fd, text, (size_t)n) != n)
		errno = 0; /* lower than ours: then this process is killed before the job */
	if (fd >= 0)
		close(fd);
}

int worker_target_enter(struct worker_target *t, struct worker_error *e)
{
	struct stat theirs, ours;
	bool same;

	for (int i = 0; i < NS_USER; i++)
		if (t->ns[i] >= 0 && setns(t->ns[i], namespaces[i].flag))
			return worker_fail(e, 0, "entering the job's %s namespace", namespaces[i].name);
	if (fchdir(t->root) || fstat(t->root, &theirs) || stat("/", &ours))
		return worker_fail(e, 0, "entering the job's root directory");
	same = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
	if ((!same && chroot(".")) || chdir("/"))
		return worker_fail(e, 0, "entering the job's root directory");
	/* Ways back to the host, which a process that the job sees must not have. */
	close(t->root);
	close(t->proc);
	for (int i = 0; i < NS_USER; i++)
		if (t->ns[i] >= 0)
			close(t->ns[i]);
	return 0;
}
