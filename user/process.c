/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clocks.h"
#include "elf_file.h"

#define MAX_SYMBOLS 4096 /* of one process: no job has more stubs, a hostile one may */
#define MAX_PROC_FILE (1 << 20) /* of environ and cmdline: the rest is not worth keeping */

/* The variables that the vendor's profiler records, and those that name the rank. */
static const char *const recorded_env[] = {
	"ASCEND_GLOBAL_LOG_LEVEL",
	"HCCL_RDMA_TC",
	"HCCL_RDMA_SL",
	"ACLNN_CACHE_LIMIT",
	"HOST_CACHE_CAPACITY",
	"ASCEND_ENHANCE_ENABLE",
	"PYTORCH_NPU_ALLOC_CONF",
	"ASCEND_LAUNCH_BLOCKING",
	"HCCL_ALGO",
	"ASCEND_HOME_PATH",
	"ASCEND_RT_VISIBLE_DEVICES",
	"ASCEND_VISIBLE_DEVICES",
	"TASK_QUEUE_ENABLE",
	"RANK_ID",
	"RANK",
	"LOCAL_RANK",
	"WORLD_SIZE",
	"LD_LIBRARY_PATH",
	"MSTX_INJECTION_PATH",
};

/* The whole of /proc/PID/NAME up to MAX_PROC_FILE, NUL-terminated. NULL on failure. */
static char *read_proc(pid_t pid, const char *name, size_t *len)
{
	char path[400], *buf;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	buf = malloc(MAX_PROC_FILE + 1);
	*len = 0;
	while (buf && *len < MAX_PROC_FILE && (n = read(fd, buf + *len, MAX_PROC_FILE - *len)) > 0)
		*len += n;
	close(fd);
	if (buf)
		buf[*len] = '\0';
	return buf;
}

/* A zombie has nothing left to watch, unless only its first thread has ended. */
bool nps_pid_exists(pid_t pid)
{
	size_t len;
	char *buf = read_proc(pid, "stat", &len), *at = buf ? strrchr(buf, ')') : NULL, state = 0;
	long threads = 0;
	bool exists;

	exists = at &&
		 sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
			&state, &threads) == 2 &&
		 ((state != 'Z' && state != 'X') || threads > 1);
	free(buf);
	return exists;
}

pid_t nps_pid_of_thread(pid_t tid)
{
	size_t len;
	char *buf = read_proc(tid, "status", &len), *at = buf ? strstr(buf, "\nTgid:") : NULL;
	pid_t pid = at ? atoi(at + 6) : 0;

	free(buf);
	return pid;
}

uid_t nps_pid_uid(pid_t pid)
{
	size_t len;
	char *buf = read_proc(pid, "status", &len), *at = buf ? strstr(buf, "\nUid:") : NULL;
	uid_t uid = at ? (uid_t)strtoul(at + 5, NULL, 10) : (uid_t)-1;

	free(buf);
	return uid;
}

/* cJSON wants UTF-8; arguments and variables can be any bytes. */
cJSON *nps_json_text(const char *s)
{
	size_t n = strlen(s);
	char *copy = malloc(n + 1);
	cJSON *j;

	if (!copy)
		return NULL;
	for (size_t i = 0; i <= n; i++)
		copy[i] = (unsigned char)s[i] >= 0x80 ? '?' : s[i];
	j = cJSON_CreateString(copy);
	free(copy);
	return j;
}

static void read_cmdline(struct nps_process *p)
{
	size_t len;
	char *buf = read_proc(p->pid, "cmdline", &len);

	cJSON_Delete(p->cmdline);
	p->cmdline = cJSON_CreateArray();
	for (size_t at = 0; buf && at < len; at += strlen(buf + at) + 1)
		cJSON_AddItemToArray(p->cmdline, nps_json_text(buf + at));
	free(buf);
}

static int env_number(const cJSON *env, const char *name)
{
	const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(env, name));
	char *end;
	long n;

	if (!v || !*v)
		return -1;
	n = strtol(v, &end, 10);
	return *end || n < 0 || n > 1000000 ? -1 : (int)n;
}

static void read_environ(struct nps_process *p)
{
	size_t len;
	char *buf = read_proc(p->pid, "environ", &len);

	cJSON_Delete(p->env);
	p->env = cJSON_CreateObject();
	for (size_t at = 0; buf && at < len; at += strlen(buf + at) + 1) {
		char *eq = strchr(buf + at, '=');
		size_t name_len = eq ? (size_t)(eq - (buf + at)) : 0;

		for (size_t i = 0; eq && i < sizeof(recorded_env) / sizeof(*recorded_env); i++)
			if (strlen(recorded_env[i]) == name_len &&
			    memcmp(recorded_env[i], buf + at, name_len) == 0 &&
			    !cJSON_GetObjectItemCaseSensitive(p->env, recorded_env[i]))
				cJSON_AddItemToObject(p->env, recorded_env[i], nps_json_text(eq + 1));
	}
	free(buf);
	p->rank = env_number(p->env, "RANK");
	if (p->rank < 0)
		p->rank = env_number(p->env, "RANK_ID");
	p->world_size = env_number(p->env, "WORLD_SIZE");
}

static int read_status(struct nps_process *p)
{
	size_t len;
	char *buf = read_proc(p->pid, "status", &len), *at;

	if (!buf)
		return -ESRCH;
	at = strstr(buf, "\nPPid:");
	p->ppid = at ? atoi(at + 6) : 0;
	p->ns_pid = p->pid;
	at = strstr(buf, "\nNSpid:");
	if (at) {
		char *eol = strchr(at + 1, '\n');

		if (eol)
			*eol = '\0';
		at = strrchr(at, '\t'); /* the innermost namespace comes last */
		if (at)
			p->ns_pid = atoi(at + 1);
	}
	free(buf);
	return 0;
}

static bool same_mounts(const struct stat *of, const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
	return !stat(path, &st) && st.st_dev == of->st_dev && st.st_ino == of->st_ino;
}

/* Where that cannot be looked at, a container has pids of its own. */
static bool is_foreign(const struct nps_process *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)p->pid);
	if (stat(path, &st))
		return p->ns_pid != p->pid;
	return !same_mounts(&st, "self") && !same_mounts(&st, "1");
}

void nps_process__refresh(struct nps_process *p)
{
	size_t len;
	char *comm = read_proc(p->pid, "comm", &len);

	if (comm) {
		comm[strcspn(comm, "\n")] = '\0';
		snprintf(p->comm, sizeof(p->comm), "%.15s", comm);
		free(comm);
	}
	p->foreign = is_foreign(p);
	read_cmdline(p);
	read_environ(p);
}

int nps_process__read(pid_t pid, struct nps_process **out)
{
	struct nps_process *p = calloc(1, sizeof(*p));
	struct utsname uts;
	int err;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->alive = true;
	p->start_mono = nps_now(CLOCK_MONOTONIC);
	err = read_status(p);
	if (err) {
		free(p);
		return err;
	}
	if (!uname(&uts))
		snprintf(p->host_name, sizeof(p->host_name), "%s", uts.nodename);
	p->symbols = cJSON_CreateArray();
	p->maps = cJSON_CreateArray();
	nps_process__refresh(p);
	*out = p;
	return 0;
}

void nps_process__free(struct nps_process *p)
{
	if (!p)
		return;
	cJSON_Delete(p->cmdline);
	cJSON_Delete(p->env);
	cJSON_Delete(p->maps);
	cJSON_Delete(p->symbols);
	free(p);
}

void nps_process__set_maps(struct nps_process *p, const struct nps_maps *maps)
{
	cJSON_Delete(p->maps);
	p->maps = cJSON_CreateArray();
	for (size_t i = 0; i < maps->n; i++) {
		cJSON *m;

		if (!maps->v[i].exec)
			continue;
		m = cJSON_CreateObject();
		cJSON_AddNumberToObject(m, "start", (double)maps->v[i].start);
		cJSON_AddNumberToObject(m, "end", (double)maps->v[i].end);
		cJSON_AddNumberToObject(m, "offset", (double)maps->v[i].offset);
		cJSON_AddItemToObject(m, "path", nps_json_text(maps->v[i].path));
		cJSON_AddItemToArray(p->maps, m);
	}
}

static int name_in_file(pid_t pid, const struct nps_mapping *m, uint64_t address, char *name, size_t size)
{
	struct nps_elf *elf = NULL;
	int fd = nps_mapping__open(pid, m, O_RDONLY), err;

	if (fd < 0)
		return fd;
	err = nps_elf__open(fd, &elf);
	if (!err)
		err = nps_elf__name_at(elf, address - m->start + m->offset, name, size);
	nps_elf__close(elf);
	close(fd);
	return err;
}

void nps_process__name_address(struct nps_process *p, uint64_t address)
{
	struct nps_maps maps;
	char name[256], hex[24];

	if (cJSON_GetArraySize(p->symbols) >= MAX_SYMBOLS || nps_maps__read(p->pid, &maps))
		return;
	for (size_t i = 0; i < maps.n; i++) {
		cJSON *s;

		if (!maps.v[i].exec || address < maps.v[i].start || address >= maps.v[i].end)
			continue;
		if (name_in_file(p->pid, &maps.v[i], address, name, sizeof(name)))
			break;
		s = cJSON_CreateObject();
		snprintf(hex, sizeof(hex), "0x%" PRIx64, address);
		cJSON_AddStringToObject(s, "address", hex);
		cJSON_AddItemToObject(s, "name", nps_json_text(name));
		cJSON_AddItemToArray(p->symbols, s);
		break;
	}
	nps_maps__free(&maps);
}

bool nps_pid_is_kin(pid_t pid)
{
	size_t len;
	char *ours = read_proc(getpid(), "comm", &len), *theirs = read_proc(pid, "comm", &len);
	bool kin = ours && theirs && strcmp(ours, theirs) == 0;

	free(ours);
	free(theirs);
	return kin;
}

void nps_children__for_each(pid_t pid, void (*each)(pid_t child, void *arg), void *arg)
{
	char path[64];
	struct dirent *task;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	while ((task = readdir(tasks))) {
		char name[300], *list, *at, *end;
		size_t len;

		if (!isdigit((unsigned char)task->d_name[0]))
			continue;
		snprintf(name, sizeof(name), "task/%s/children", task->d_name);
		list = read_proc(pid, name, &len);
		for (at = list; at && *at; at = end) {
			long child = strtol(at, &end, 10);

			if (end == at)
				break;
			each((pid_t)child, arg);
			while (*end == ' ')
				end++;
		}
		free(list);
	}
	closedir(tasks);
}
