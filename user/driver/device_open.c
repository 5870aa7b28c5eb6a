/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the driver's libraries on the host and in a job, and opens them in a worker. */
#include "driver/device_lib.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc_maps.h"
#include "core/work_budget.h"
#include "driver/device_user.h"

#define HAL "libascend_hal.so"
#define DCMI "libdcmi.so"
#define MOST_MAPPINGS 16384 /* of a job, whose directories are searched */

/* Directories in which the driver is installed (cann-abi 1.1). */
static const char *const hal_dirs[] = { "/usr/local/Ascend/driver/lib64/driver",
					"/usr/local/Ascend/driver/lib64", "/usr/lib64", NULL };
static const char *const dcmi_dirs[] = { "/usr/local/dcmi",
					 "/usr/local/Ascend/driver/lib64/driver",
					 "/usr/local/Ascend/driver/lib64",
					 "/usr/local/Ascend/driver/lib64/common",
					 "/usr/lib64",
					 NULL };

/* --- contents of a request for a worker ----------------------------------------------------------------- */

struct open_request {
	struct nps_launch_request r;
	size_t used; /* bytes of r.paths */
};

/* False: there is no room. */
static bool request_add_path(struct open_request *q, const char *path, size_t len)
{
	if (len + 1 > sizeof(q->r.paths) - q->used)
		return false;
	memcpy(q->r.paths + q->used, path, len);
	q->r.paths[q->used + len] = '\0';
	q->used += len + 1;
	return true;
}

/* Calls EACH for the directories in /etc/ld.so.conf.d, which the dynamic linker searches. */
static void for_each_configured(void (*each)(struct open_request *q, const char *dir, size_t len, void *arg),
				struct open_request *q, void *arg)
{
	glob_t found;
	char line[PATH_MAX];

	if (glob("/etc/ld.so.conf.d/*.conf", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "re");

		while (f && fgets(line, sizeof(line), f))
			if (line[0] == '/')
				each(q, line, strcspn(line, " \t\r\n#"), arg);
		if (f)
			fclose(f);
	}
	globfree(&found);
}

/*
 * ... for all directories of this host that may contain a library: the user's choice first, then the
 * driver's own, DIRS.
 */
static void for_each_host_dir(void (*each)(struct open_request *q, const char *dir, size_t len, void *arg),
			      struct open_request *q, const char *const *dirs, void *arg)
{
	const char *path = getenv("LD_LIBRARY_PATH");

	for (const char *end; path && *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		each(q, path, (size_t)(end - path), arg);
	}
	for (; *dirs; dirs++)
		each(q, *dirs, strlen(*dirs), arg);
	for_each_configured(each, q, arg);
}

struct library_file {
	const char *name;
	uint32_t *n;
};

/* Adds DIR/NAME, if it is accessible: for the host's libraries. */
static void request_add_file(struct open_request *q, const char *dir, size_t len, void *arg)
{
	const struct library_file *file = arg;
	char path[PATH_MAX];

	if (!len || dir[0] != '/' ||
	    snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, file->name) >= (int)sizeof(path))
		return;
	if (access(path, F_OK) == 0 && request_add_path(q, path, strlen(path)))
		(*file->n)++;
}

static void request_add_dir(struct open_request *q, const char *dir, size_t len)
{
	if (len && dir[0] == '/' && request_add_path(q, dir, len))
		q->r.n_dirs++;
}

static void request_add_search_dir(struct open_request *q, const char *dir, size_t len, void *arg)
{
	(void)arg;
	request_add_dir(q, dir, len);
}

static void request_fill_host(struct open_request *q, bool with_hal)
{
	struct nps_device_user user;

	nps_device_user__choose("/dev", &user);
	if (user.root_alone[0] && geteuid() == 0)
		nps_debug("/dev/%s can be opened by root alone: the driver's library, which is not run as "
			  "root, cannot",
			  user.root_alone);
	*q = (struct open_request){ .r = { .from = NPS_LAUNCH_HOST,
					   .uid = user.uid,
					   .gid = user.gid,
					   .n_groups = (uint32_t)user.n_groups } };
	memcpy(q->r.groups, user.groups, user.n_groups * sizeof(*user.groups));
	if (with_hal)
		for_each_host_dir(request_add_file, q, hal_dirs, &(struct library_file){ HAL, &q->r.n_hal });
	for_each_host_dir(request_add_file, q, dcmi_dirs, &(struct library_file){ DCMI, &q->r.n_dcmi });
	for_each_host_dir(request_add_search_dir, q, dcmi_dirs, NULL);
}

/*
 * Makes the paths in MAPS those that the process itself uses: if its root directory is below that of its
 * mount namespace, as after chroot(2), they begin with that root.
 */
static void maps_strip_root(struct nps_maps *maps, pid_t pid)
{
	char name[32], root[PATH_MAX];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	n = readlink(name, root, sizeof(root) - 1);
	if (n <= 1)
		return;
	root[n] = '\0';
	for (size_t i = 0; i < maps->n; i++) {
		char *path = maps->v[i].path;

		if (!strncmp(path, root, (size_t)n) && path[n] == '/')
			memmove(path, path + n, strlen(path + n) + 1);
	}
}

/* The file of that name that is mapped as code, and still exists; NULL: none. */
static const char *maps_find(const struct nps_maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].exec && strcmp(nps_basename(maps->v[i].path), name) == 0)
			return maps->v[i].path;
	return NULL;
}

static size_t dir_len(const char *path)
{
	return (size_t)(nps_basename(path) - path) - 1;
}

/* Adds libdcmi.so in the directory of HAL, or in others of its installation, as it may not be mapped yet. */
static void request_add_beside(struct open_request *q, const char *hal)
{
	static const char *const paths[] = { "", "../", "../common/", "../../../../dcmi/", "../../dcmi/" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (snprintf(path, sizeof(path), "%.*s/%s%s", (int)dir_len(hal), hal, paths[i], DCMI) <
			    (int)sizeof(path) &&
		    request_add_path(q, path, strlen(path)))
			q->r.n_dcmi++;
}

/*
 * Adds the directories of all mapped libraries, in which the
 * dependencies are; that of the library to open comes first.
 */
static void request_add_job_dirs(struct open_request *q, const struct nps_maps *maps, const char *first)
{
	size_t begin = q->used;

	request_add_dir(q, first, dir_len(first));
	for (size_t i = 0; i < maps->n && i < MOST_MAPPINGS; i++) {
		const char *path = maps->v[i].path;
		bool seen = !maps->v[i].exec;

		for (size_t at = begin; at < q->used && !seen; at += strlen(q->r.paths + at) + 1)
			seen = strlen(q->r.paths + at) == dir_len(path) &&
			       !memcmp(q->r.paths + at, path, dir_len(path));
		if (!seen)
			request_add_dir(q, path, dir_len(path));
	}
}

/* Fills the request from the mappings of a process. False: it has no such library. */
static bool request_fill_job(struct open_request *q, pid_t pid, bool with_hal)
{
	const char *hal, *dcmi, *sudo = getenv("SUDO_UID");
	struct nps_budget budget;
	struct nps_maps maps;

	*q = (struct open_request){ .r = { .from = NPS_LAUNCH_JOB,
					   .also_trusted = sudo ? (uint32_t)strtoul(sudo, NULL, 10) : 0 } };
	nps_budget__init(&budget, NPS_BUDGET_CPU_NS, NPS_BUDGET_PERCENT, 0);
	nps_budget__begin_once(&budget);
	if (nps_maps__read(pid, &budget, &maps))
		return false;
	maps_strip_root(&maps, pid);
	hal = maps_find(&maps, HAL);
	dcmi = maps_find(&maps, DCMI);
	/* added even if another one is used: the worker uses it to check that the process is the same */
	if (hal && request_add_path(q, hal, strlen(hal)))
		q->r.n_hal = 1;
	if (dcmi && request_add_path(q, dcmi, strlen(dcmi)))
		q->r.n_dcmi = 1;
	else if (hal)
		request_add_beside(q, hal);
	if (hal || dcmi)
		request_add_job_dirs(q, &maps, hal ? hal : dcmi);
	nps_maps__free(&maps);
	return with_hal ? q->r.n_hal : q->r.n_dcmi;
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* Is PATH, from a worker's answer, one of those in its request? */
static bool is_candidate(const struct nps_device_worker *w, const char *path)
{
	const char *end = w->paths + sizeof(w->paths);

	for (const char *at = w->paths; at < end && *at; at += strlen(at) + 1)
		if (!strcmp(at, path))
			return true;
	return false;
}

static void set_path(struct nps_device_lib *lib, enum nps_worker_library library, const char *path)
{
	const char *name = library == NPS_WORKER_HAL ? HAL : DCMI;

	snprintf(lib->paths[library], sizeof(lib->paths[library]), "%.255s",
		 path && is_candidate(lib->workers[library], path) ? path : name);
}

/* The user of a process, as whom a worker for it would run. */
static uid_t uid_of(pid_t pid)
{
	char path[32], line[128];
	unsigned int uid = UINT32_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Uid: %u", &uid) != 1)
		;
	if (f)
		fclose(f);
	return uid;
}

/* Numbering of devices in the namespaces of that process; 0: the host's. */
static struct nps_device_numbers numbers_in(pid_t pid)
{
	static const char *const hosts[] = { "self", "1" };
	struct nps_device_numbers numbers = { .of_job = pid != 0, .uid = pid ? uid_of(pid) : 0 };
	struct stat job, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (!pid || stat(path, &job))
		return numbers;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		snprintf(path, sizeof(path), "/proc/%s/ns/mnt", hosts[i]);
		if (!stat(path, &ours) && ours.st_dev == job.st_dev && ours.st_ino == job.st_ino)
			return numbers;
	}
	numbers.dev = job.st_dev;
	numbers.ino = job.st_ino;
	return numbers;
}

static void set_worker(struct nps_device_lib *lib, enum nps_worker_library library,
		       struct nps_device_worker *w, int fd, struct nps_device_numbers numbers)
{
	lib->workers[library] = w;
	lib->fds[library] = fd;
	lib->numbers[library] = numbers;
}

/*
 * Starts a worker for Q in the namespaces of process PID, 0: of the host, and opens LIBRARY in it. 0,
 * -ENOENT, -ELIBACC with WHY.
 */
static int open_in_worker(struct nps_device_lib *lib, enum nps_worker_library library, struct open_request *q,
			  pid_t pid, char *why, size_t why_size)
{
	struct nps_device_numbers numbers = numbers_in(pid);
	struct nps_device_worker *w;
	char text[NPS_WORKER_TEXT];
	int fd, err;

	nps_device_lib__alive(lib);
	err = nps_device_launcher__worker(lib->launcher, &q->r, pid, &w, why, why_size);
	if (err)
		return -ENOENT;
	fd = nps_device_worker__connect(w);
	if (fd < 0) {
		snprintf(why, why_size, "%s", strerror(-fd));
		nps_device_worker__end(w, false);
		return -ENOENT;
	}
	set_worker(lib, library, w, fd, numbers);
	set_path(lib, library, NULL);
	err = nps_device_lib__load(lib, library, text);
	snprintf(why, why_size, "%s", text);
	lib->has[library] = !err;
	if (err) {
		nps_device_worker__end(w, false);
		close(fd);
		set_worker(lib, library, NULL, -1, (struct nps_device_numbers){ 0 });
		return err == -ELIBACC ? err : -ENOENT;
	}
	set_path(lib, library, text);
	nps_debug("%s is loaded %s", lib->paths[library],
		  q->r.from == NPS_LAUNCH_HOST ? "as the host has it" : "as the job has it");
	return 0;
}

int nps_device_lib__open(struct nps_device_lib *lib, const pid_t *pids, size_t n, char *why, size_t why_size)
{
	struct open_request *q = malloc(sizeof(*q));
	int err = -ENOENT;

	snprintf(why, why_size, HAL " is not found");
	if (!q)
		return -ENOMEM;
	if (!lib->launcher) {
		snprintf(why, why_size, "npuscope-device-worker, which loads " HAL ", cannot be started");
		free(q);
		return -ENOENT;
	}
	request_fill_host(q, true);
	if (q->r.n_hal)
		err = open_in_worker(lib, NPS_WORKER_HAL, q, 0, why, why_size);
	if (err == -ENOENT && q->r.n_hal)
		nps_debug("the host's " HAL " is not loaded: %s", why);
	/* An unusable library of one job does not prevent the use of another's. */
	for (size_t i = 0; err && !(err == -ELIBACC && !i) && i < n; i++)
		if (request_fill_job(q, pids[i], true))
			err = open_in_worker(lib, NPS_WORKER_HAL, q, pids[i], why, why_size);
	free(q);
	return err;
}

/* From the same installation as libascend_hal.so. */
static int open_dcmi_beside(struct nps_device_lib *lib, char why[NPS_WORKER_TEXT])
{
	int err;

	set_worker(lib, NPS_WORKER_DCMI, lib->workers[NPS_WORKER_HAL], lib->fds[NPS_WORKER_HAL],
		   lib->numbers[NPS_WORKER_HAL]);
	set_path(lib, NPS_WORKER_DCMI, NULL);
	err = nps_device_lib__load(lib, NPS_WORKER_DCMI, why);
	lib->has[NPS_WORKER_DCMI] = !err;
	if (err) {
		set_worker(lib, NPS_WORKER_DCMI, NULL, -1, (struct nps_device_numbers){ 0 });
		return err == -ELIBACC ? err : -ENOENT;
	}
	set_path(lib, NPS_WORKER_DCMI, why);
	return 0;
}

int nps_device_lib__open_dcmi(struct nps_device_lib *lib, const pid_t *pids, size_t n)
{
	struct open_request *q = malloc(sizeof(*q));
	int err = -ENOENT;
	char why[NPS_WORKER_TEXT] = "";

	if (!q)
		return -ENOMEM;
	if (lib->has[NPS_WORKER_HAL])
		err = open_dcmi_beside(lib, why);
	if (err == -ENOENT && lib->launcher) {
		request_fill_host(q, false);
		if (q->r.n_dcmi)
			err = open_in_worker(lib, NPS_WORKER_DCMI, q, 0, why, sizeof(why));
	}
	for (size_t i = 0; err == -ENOENT && lib->launcher && i < n; i++)
		if (request_fill_job(q, pids[i], false))
			err = open_in_worker(lib, NPS_WORKER_DCMI, q, pids[i], why, sizeof(why));
	free(q);
	if (err == -ELIBACC)
		nps_warn("%s cannot be used: %s: utilisation, temperature and power are not sampled: "
			 "check the device with npu-smi info",
			 DCMI, why);
	return err;
}

int nps_device_lib__connect(const struct nps_device_lib *from, struct nps_device_lib *to)
{
	*to = *from;
	to->fds[0] = to->fds[1] = -1;
	to->sign = NULL;
	for (int i = 0; i < 2; i++) {
		if (!from->has[i])
			continue;
		to->fds[i] = i && from->workers[i] == from->workers[0]
				     ? to->fds[0]
				     : nps_device_worker__connect(from->workers[i]);
		if (to->fds[i] < 0) {
			int err = to->fds[i];

			to->fds[i] = -1;
			nps_device_lib__close(to);
			return err;
		}
	}
	return 0;
}

static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

uint64_t nps_device_lib__cpu_ns(const struct nps_device_lib *lib)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++)
		if (lib->workers[i] && !(i && lib->workers[1] == lib->workers[0]))
			sum += cpu_ns_of(lib->workers[i]->pid);
	return sum;
}

bool nps_device_lib__failed(const struct nps_device_lib *lib)
{
	bool failed = false;

	for (int i = 0; i < 2; i++)
		failed |= lib->has[i] && lib->workers[i] && atomic_load(&lib->workers[i]->ended);
	return failed && !nps_device_launcher__ended(lib->launcher);
}

bool nps_device_lib__numbers_for(const struct nps_device_lib *lib, pid_t pid, bool foreign)
{
	const struct nps_device_numbers *own = &lib->numbers[NPS_WORKER_HAL];
	struct nps_device_numbers theirs;

	if (!own->of_job)
		return !foreign;
	theirs = numbers_in(pid);
	return theirs.dev == own->dev && theirs.ino == own->ino && (!own->uid || own->uid == theirs.uid);
}

bool nps_device_lib__is_hosts(const struct nps_device_lib *lib)
{
	const struct nps_device_numbers *own = &lib->numbers[NPS_WORKER_HAL];

	return !own->of_job || (!own->ino && !own->uid);
}

bool nps_device_lib__same_numbers(const struct nps_device_lib *lib)
{
	const struct nps_device_numbers *n = lib->numbers;

	return n[0].dev == n[1].dev && n[0].ino == n[1].ino && n[0].of_job == n[1].of_job &&
	       n[0].uid == n[1].uid;
}
