/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/session_json.h"

#define NS_PER_SECOND 1000000000LL
#define MAX_PROC_FILE (64UL << 10) /* of stat, status, comm */
#define MAX_CHILDREN (1UL << 20) /* bytes of the children's pids, of one thread */
#define TASKS 64 /* threads whose children are read between two reads of the clock */

/* The variables that the vendor's profiler records, and those with the rank. */
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

/* Reads /proc/PID/NAME up to MOST bytes, NUL-terminated. NULL on failure. */
static char *read_up_to(pid_t pid, const char *name, size_t most, size_t *len)
{
	char path[400], *buf;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	buf = malloc(most + 1);
	*len = 0;
	while (buf && *len < most && (n = read(fd, buf + *len, most - *len)) > 0)
		*len += n;
	close(fd);
	if (buf)
		buf[*len] = '\0';
	return buf;
}

static char *read_proc(pid_t pid, const char *name, size_t *len)
{
	return read_up_to(pid, name, MAX_PROC_FILE, len);
}

/* From /proc/PID/stat. */
struct process_state {
	char state;
	long threads;
	unsigned long user, system; /* clock ticks */
	unsigned long long started; /* since boot, clock ticks */
};

static bool read_state(pid_t pid, struct process_state *s)
{
	size_t len;
	/* the name before it is arbitrary */
	char *buf = read_proc(pid, "stat", &len), *at = buf ? strrchr(buf, ')') : NULL;
	bool all = at &&
		   sscanf(at + 1,
			  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu %*s %*s %*s %*s %ld %*s %llu",
			  &s->state, &s->user, &s->system, &s->threads, &s->started) == 5;

	free(buf);
	return all;
}

/* There is nothing to watch in a zombie, unless only its first thread has exited. */
static bool is_there(const struct process_state *s)
{
	return (s->state != 'Z' && s->state != 'X') || s->threads > 1;
}

bool nps_pid_exists(pid_t pid)
{
	struct process_state s;

	return read_state(pid, &s) && is_there(&s);
}

/* Start since boot, in clock ticks; 0: no such process. */
static uint64_t start_ticks(pid_t pid)
{
	struct process_state s;

	return read_state(pid, &s) ? s.started : 0;
}

/* What /proc adds to CLOCK_BOOTTIME in our time namespace, ns; constant while processes are in it. */
static uint64_t boot_offset(void)
{
	size_t len;
	char *buf = read_proc(getpid(), "timens_offsets", &len), *at = buf ? strstr(buf, "boottime") : NULL;
	long long seconds = 0, ns = 0;

	if (at && sscanf(at, "boottime %lld %lld", &seconds, &ns) != 2)
		seconds = ns = 0;
	free(buf);
	return (uint64_t)(seconds * NS_PER_SECOND + ns);
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

static void read_cmdline(struct nps_process *p)
{
	size_t len = 0, at = 0;
	char *buf = read_up_to(p->pid, "cmdline", NPS_BUDGET_CMDLINE, &len);

	cJSON_Delete(p->cmdline);
	p->cmdline = cJSON_CreateArray();
	for (int n = 0; buf && at < len && n < NPS_BUDGET_ARGS; n++, at += strlen(buf + at) + 1)
		cJSON_AddItemToArray(p->cmdline, nps_json_text(buf + at));
	if (at < len || len == NPS_BUDGET_CMDLINE)
		nps_budget__leave_out(&p->budget, NPS_LEFT_TEXTS);
	p->text_bytes += at + sizeof(cJSON) * (size_t)cJSON_GetArraySize(p->cmdline);
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

static void add_variable(struct nps_process *p, const char *name, char *value)
{
	if (cJSON_GetObjectItemCaseSensitive(p->env, name))
		return;
	if (strnlen(value, NPS_BUDGET_VALUE) == NPS_BUDGET_VALUE) {
		value[NPS_BUDGET_VALUE - 1] = '\0';
		nps_budget__leave_out(&p->budget, NPS_LEFT_TEXTS);
	}
	p->text_bytes += strlen(value) + sizeof(cJSON);
	cJSON_AddItemToObject(p->env, name, nps_json_text(value));
}

static void read_environ(struct nps_process *p)
{
	size_t len = 0;
	char *buf = read_up_to(p->pid, "environ", NPS_BUDGET_ENVIRON, &len);

	cJSON_Delete(p->env);
	p->env = cJSON_CreateObject();
	for (size_t at = 0; buf && at < len; at += strlen(buf + at) + 1) {
		char *eq = strchr(buf + at, '=');
		size_t name_len = eq ? (size_t)(eq - (buf + at)) : 0;

		for (size_t i = 0; eq && i < sizeof(recorded_env) / sizeof(*recorded_env); i++)
			if (strlen(recorded_env[i]) == name_len &&
			    memcmp(recorded_env[i], buf + at, name_len) == 0)
				add_variable(p, recorded_env[i], eq + 1);
	}
	if (len == NPS_BUDGET_ENVIRON)
		nps_budget__leave_out(&p->budget, NPS_LEFT_TEXTS);
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
		at = strrchr(at, '\t'); /* the innermost namespace is last */
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

/* If the namespace cannot be read: a container has pids of its own. */
static bool is_foreign(const struct nps_process *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)p->pid);
	if (stat(path, &st))
		return p->ns_pid != p->pid;
	return !same_mounts(&st, "self") && !same_mounts(&st, "1");
}

void nps_process__forget_program(struct nps_process *p)
{
	cJSON_Delete(p->cmdline);
	cJSON_Delete(p->env);
	free(p->maps);
	p->cmdline = cJSON_CreateArray();
	p->env = cJSON_CreateObject();
	p->maps = NULL;
	p->maps_bytes = p->text_bytes = 0;
	p->host_name[0] = '\0';
	p->rank = p->world_size = -1;
	p->source = NPS_PROCESS_UNREAD;
	/* They are addresses in another program. */
	if (p->n_host_functions)
		nps_budget__leave_out(&p->budget, NPS_LEFT_HOST_FUNCTIONS);
	p->n_host_functions = 0;
}

bool nps_process__is_alive(const struct nps_process *p)
{
	uint64_t cpu_ns;

	return nps_process__read_cpu(p, &cpu_ns);
}

bool nps_process__read_cpu(const struct nps_process *p, uint64_t *cpu_ns)
{
	struct process_state s;

	if (!read_state(p->pid, &s) || !is_there(&s) || (p->start_ticks && p->start_ticks != s.started))
		return false;
	*cpu_ns = (s.user + s.system) * (uint64_t)(NS_PER_SECOND / sysconf(_SC_CLK_TCK));
	return true;
}

/* Converts a start in CLOCK_BOOTTIME ns to ticks as in /proc/PID/stat. */
static uint64_t ticks_of(uint64_t started)
{
	return (started + boot_offset()) / (NS_PER_SECOND / sysconf(_SC_CLK_TCK));
}

bool nps_process__has_started(const struct nps_process *p, uint64_t started)
{
	if (!started || (!p->start_boot && !p->start_ticks))
		return true;
	if (p->start_boot)
		return p->start_boot == started;
	return p->start_ticks == ticks_of(started);
}

static bool has_memory(pid_t pid)
{
	size_t len;
	char *buf = read_proc(pid, "statm", &len);
	bool has = buf && strtoul(buf, NULL, 10) > 0;

	free(buf);
	return has;
}

static void read_comm(struct nps_process *p)
{
	size_t len;
	char *comm = read_proc(p->pid, "comm", &len);

	if (comm) {
		comm[strcspn(comm, "\n")] = '\0';
		snprintf(p->comm, sizeof(p->comm), "%.15s", comm);
		free(comm);
	}
}

static void read_program(struct nps_process *p)
{
	read_comm(p);
	p->foreign = is_foreign(p);
	nps_host_name__read(p->pid, p->host_name);
	read_environ(p);
	read_cmdline(p); /* last: if it can be read, so could the others */
}

void nps_process__read_uid(struct nps_process *p)
{
	uid_t uid = nps_pid_uid(p->pid);

	/* Not if the pid was reused. */
	if (uid == (uid_t)-1 || !nps_process__is_alive(p) ||
	    (!p->start_ticks && p->start_boot && start_ticks(p->pid) != ticks_of(p->start_boot)))
		return;
	p->uid = uid;
}

void nps_process__refresh(struct nps_process *p)
{
	char before[sizeof(p->comm)];
	bool foreign = p->foreign;
	uid_t uid = nps_pid_uid(p->pid);
	uint64_t ticks;

	memcpy(before, p->comm, sizeof(before));
	nps_process__forget_program(p);
	p->read_mono = nps_now(CLOCK_MONOTONIC);
	read_program(p);
	p->source = NPS_PROCESS_READ;
	ticks = start_ticks(p->pid);
	if (!p->start_ticks && p->start_boot && ticks == ticks_of(p->start_boot))
		p->start_ticks = ticks; /* it was known from BPF events only */
	if (ticks && ticks != p->start_ticks) { /* the pid was reused */
		memcpy(p->comm, before, sizeof(before));
		p->foreign = foreign;
		nps_process__forget_program(p);
		return;
	}
	if (uid != (uid_t)-1 && ticks)
		p->uid = uid;
	if (!cJSON_GetArraySize(p->cmdline) && !has_memory(p->pid)) {
		nps_process__forget_program(p); /* it was exiting already */
	}
}

struct nps_process *nps_process__new(pid_t pid)
{
	struct nps_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = p->ns_pid = pid;
	p->uid = (uid_t)-1;
	p->alive = true;
	p->start_mono = nps_now(CLOCK_MONOTONIC);
	nps_budget__init(&p->budget, NPS_BUDGET_CPU_NS, NPS_BUDGET_PERCENT, p->start_mono);
	p->symbols = cJSON_CreateArray();
	nps_process__forget_program(p);
	return p;
}

int nps_process__read(pid_t pid, struct nps_process **out)
{
	struct nps_process *p = nps_process__new(pid);
	int err;

	if (!p)
		return -ENOMEM;
	p->start_ticks = start_ticks(pid);
	err = read_status(p);
	if (err) {
		nps_process__free(p);
		return err;
	}
	nps_process__refresh(p);
	p->rescan = true;
	*out = p;
	return 0;
}

void nps_process__free(struct nps_process *p)
{
	if (!p)
		return;
	cJSON_Delete(p->cmdline);
	cJSON_Delete(p->env);
	cJSON_Delete(p->symbols);
	free(p->maps);
	free(p->host_functions);
	free(p);
}

void nps_process__set_maps(struct nps_process *p, const struct nps_maps *maps)
{
	size_t size = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);
	const char *between = "";

	if (!f)
		return;
	fputc('[', f);
	for (size_t i = 0; i < maps->n; i++) {
		const struct nps_mapping *m = &maps->v[i];
		cJSON *path = m->exec ? nps_json_text(m->path) : NULL;
		char *quoted = path ? cJSON_PrintUnformatted(path) : NULL;

		if (quoted) {
			fprintf(f,
				"%s{\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"offset\":%" PRIu64
				",\"path\":%s}",
				between, m->start, m->end, m->offset, quoted);
			between = ",";
		}
		cJSON_free(quoted);
		cJSON_Delete(path);
	}
	fputc(']', f);
	if (fclose(f)) {
		free(text);
		return;
	}
	free(p->maps);
	p->maps = text;
	p->maps_bytes = size;
}

void nps_process__drop_texts(struct nps_process *p)
{
	free(p->maps);
	p->maps = NULL;
	p->maps_bytes = 0;
	cJSON_Delete(p->cmdline);
	p->cmdline = cJSON_CreateArray();
	cJSON_Delete(p->env);
	p->env = cJSON_CreateObject();
	p->text_bytes = 0;
	nps_budget__leave_out(&p->budget, NPS_LEFT_LISTED);
}

void nps_process__count_texts(struct nps_process *p)
{
	struct nps_process *root = p->root;

	root->listed -= p->counted;
	if (root->listed + p->text_bytes + p->maps_bytes > NPS_BUDGET_LISTED)
		nps_process__drop_texts(p);
	p->counted = p->text_bytes + p->maps_bytes;
	root->listed += p->counted;
}

/* --- host addresses that stand for kernel functions --- */

static bool is_host_function_known(const struct nps_process *p, uint64_t address)
{
	for (size_t i = 0; i < p->n_host_functions; i++)
		if (p->host_functions[i] == address)
			return true;
	return false;
}

void nps_process__add_host_function(struct nps_process *p, uint64_t address)
{
	if (is_host_function_known(p, address))
		return;
	if (p->n_host_functions + p->n_symbols >= NPS_BUDGET_HOST_FUNCTIONS) {
		nps_budget__leave_out(&p->budget, NPS_LEFT_HOST_FUNCTIONS);
		return;
	}
	if (!p->host_functions)
		p->host_functions = malloc(NPS_BUDGET_HOST_FUNCTIONS * sizeof(*p->host_functions));
	if (p->host_functions)
		p->host_functions[p->n_host_functions++] = address;
}

static void add_symbol(struct nps_process *p, uint64_t address, const char *name)
{
	cJSON *s = cJSON_CreateObject();
	char hex[24], cut[256];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, address);
	snprintf(cut, sizeof(cut), "%s", name);
	cJSON_AddStringToObject(s, "address", hex);
	cJSON_AddItemToObject(s, "name", nps_json_text(cut));
	cJSON_AddItemToArray(p->symbols, s);
	p->n_symbols++;
}

/* Names N of those addresses, which are all in one mapping. */
static int name_in_file(struct nps_process *p, const struct nps_mapping *m, const uint64_t *addresses,
			size_t n)
{
	struct nps_elf_name *functions = calloc(n, sizeof(*functions));
	int fd = functions ? nps_mapping__open(p->pid, m, O_RDONLY) : -ENOMEM, err;
	struct nps_elf *elf = NULL;

	if (fd < 0) {
		free(functions);
		return fd;
	}
	for (size_t i = 0; i < n; i++)
		functions[i] = (struct nps_elf_name){ .offset = addresses[i] - m->start + m->offset,
						      .tag = addresses[i] };
	err = nps_elf__open(fd, &p->budget, &elf);
	if (!err)
		err = nps_elf__name(elf, functions, n);
	if (err == -E2BIG)
		nps_budget__leave_out(&p->budget, NPS_LEFT_HOST_FUNCTIONS);
	for (size_t i = 0; elf && err != -ETIME && i < n; i++)
		if (functions[i].name)
			add_symbol(p, functions[i].tag, functions[i].name);
	nps_elf__close(elf);
	close(fd);
	free(functions);
	return err;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Number of addresses from AT on, which are in order, below END. */
static size_t host_functions_below(const struct nps_process *p, size_t at, uint64_t end)
{
	size_t n = 0;

	while (at + n < p->n_host_functions && p->host_functions[at + n] < end)
		n++;
	return n;
}

int nps_process__name_host_functions(struct nps_process *p, const struct nps_maps *maps)
{
	size_t at = 0;
	int err = 0;

	if (!p->n_host_functions)
		return 0;
	qsort(p->host_functions, p->n_host_functions, sizeof(*p->host_functions), compare_addresses);
	/* in address order, as the kernel lists them */
	for (size_t i = 0; i < maps->n && at < p->n_host_functions; i++) {
		const struct nps_mapping *m = &maps->v[i];
		size_t n;

		at += host_functions_below(p, at, m->start); /* those in no mapping */
		n = host_functions_below(p, at, m->end);
		err = n && m->exec ? name_in_file(p, m, p->host_functions + at, n) : 0;
		if (err == -ETIME)
			break;
		at += n;
	}
	if (err != -ETIME)
		at = p->n_host_functions;
	p->n_host_functions -= at;
	memmove(p->host_functions, p->host_functions + at, p->n_host_functions * sizeof(*p->host_functions));
	return err == -ETIME ? err : 0;
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

/* --- descendants --- */

struct pids {
	pid_t *v;
	size_t n, room;
};

static bool pids_add(struct pids *pids, pid_t pid)
{
	if (pids->n == NPS_BUDGET_BORN)
		return false;
	if (pids->n == pids->room) {
		size_t room = pids->room ? 2 * pids->room : 64;
		pid_t *v = realloc(pids->v, room * sizeof(*v));

		if (!v)
			return false;
		pids->v = v;
		pids->room = room;
	}
	pids->v[pids->n++] = pid;
	return true;
}

/* Adds the children of one thread; false: there is no room for all of them. */
static bool add_children_of(pid_t pid, const char *tid, struct pids *pids)
{
	char name[300], *list, *end;
	bool all = true;
	size_t len;

	snprintf(name, sizeof(name), "task/%s/children", tid);
	list = read_up_to(pid, name, MAX_CHILDREN, &len);
	for (char *at = list; at && *at && all; at = end) {
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		all = pids_add(pids, (pid_t)child);
		while (*end == ' ')
			end++;
	}
	free(list);
	return all;
}

static bool add_children(pid_t pid, struct pids *pids, struct nps_budget *budget)
{
	const struct dirent *task;
	bool all = true;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	for (unsigned int n = 0; tasks && all && (task = readdir(tasks)); n++)
		if (isdigit((unsigned char)task->d_name[0]))
			all = (n % TASKS != TASKS - 1 || !nps_budget__spent(budget)) &&
			      add_children_of(pid, task->d_name, pids);
	if (tasks)
		closedir(tasks);
	return all;
}

int nps_tree__for_each(pid_t pid, bool descendants, int (*each)(pid_t pid, void *arg), void *arg)
{
	struct nps_budget budget;
	struct pids pids = { 0 };
	bool all = pids_add(&pids, pid);
	int err = 0;

	nps_budget__init(&budget, NPS_BUDGET_CPU_NS, NPS_BUDGET_PERCENT, nps_now(CLOCK_MONOTONIC));
	/* One open directory at a time, and no recursion, because a tree can be as deep as there are pids. */
	for (size_t i = 0; i < pids.n; i++) {
		int failed = each(pids.v[i], arg);

		if (!i)
			err = failed;
		if (failed || !descendants)
			continue;
		if (!nps_budget__ready(&budget, nps_now(CLOCK_MONOTONIC))) {
			all = false;
			continue;
		}
		nps_budget__begin_once(&budget);
		all &= add_children(pids.v[i], &pids, &budget);
		nps_budget__end(&budget);
	}
	free(pids.v);
	return err ? err : all ? 0 : -E2BIG;
}
