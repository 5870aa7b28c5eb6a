/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/host/host_tasks.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf_shared.h"
#include "core/clocks.h"
#include "sources/host/host_parse.h"

#define RESCAN_NS 100000000ULL /* between two reads of a list of threads or processes */
#define IDLE_NS 200000000ULL /* between two reads of an idle process that is not the job's */
#define CLOSE_NS 5000000000ULL /* the files of a process that was idle for so long are closed */
#define CHECK_NS 1000000000ULL /* between two checks whether the pid was reused */
#define MOST_PIDS (1U << 22) /* the kernel's own limit */
#define MOST_PROCESSES 65536
#define MOST_THREADS 262144
#define CPUCLOCK_SCHED 2

struct task_thread {
	struct nps_host_thread last;
	int schedstat, stat; /* descriptors */
	bool put; /* `last` is written to the file */
	uint32_t round; /* of the list that contained it last */
	uint32_t next; /* next one of its process, or free one; 0: none */
	char comm[16];
};

struct task_process {
	struct nps_host_process last;
	int tasks, statm, io; /* descriptors, -1: not open */
	bool target, put, open, named;
	uint32_t round, next_free;
	uint32_t threads; /* first one, 0: none */
	uint32_t n_threads;
	uint64_t start; /* ticks after boot */
	/* CLOCK_MONOTONIC ns of the last read, change, list and check */
	uint64_t scanned, changed, listed, checked;
	char comm[16];
};

/* Indices of rows begin at 1, so that a table of zeros is empty. */
struct nps_host_tasks {
	struct nps_host_tasks_opts opts;
	struct nps_host_out *out;
	uint32_t pids; /* size of both tables */
	uint32_t *process_of, *thread_of; /* by pid, by tid */
	struct task_process *processes;
	struct task_thread *threads;
	uint32_t n_processes, room_processes, free_process;
	uint32_t n_threads, room_threads, free_thread;
	uint32_t round;
	int proc; /* directory /proc, -1: not needed */
	uint64_t listed;
	uint64_t page, tick_ns;
	uint64_t missed;
	char text[4096];
	char list[32768];
};

/* --- rows -------------------------------------------------------------------------------------------- */

/* Makes room for one more row of SIZE bytes; may move `rows`. */
static bool grow(void **rows, uint32_t n, uint32_t *room, uint32_t most, size_t size)
{
	uint32_t want = *room ? *room * 2 : 64;
	void *more;

	if (n + 1 < *room)
		return true;
	if (n + 1 >= most)
		return false;
	more = realloc(*rows, want * size);
	if (!more)
		return false;
	*rows = more;
	*room = want;
	return true;
}

static uint32_t new_process(struct nps_host_tasks *t)
{
	uint32_t row = t->free_process;

	if (row) {
		t->free_process = t->processes[row].next_free;
		return row;
	}
	if (!grow((void **)&t->processes, t->n_processes, &t->room_processes, MOST_PROCESSES,
		  sizeof(*t->processes)))
		return 0;
	return ++t->n_processes;
}

static uint32_t new_thread(struct nps_host_tasks *t)
{
	uint32_t row = t->free_thread;

	if (row) {
		t->free_thread = t->threads[row].next;
		return row;
	}
	if (!grow((void **)&t->threads, t->n_threads, &t->room_threads, MOST_THREADS, sizeof(*t->threads)))
		return 0;
	return ++t->n_threads;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void put_thread(struct nps_host_tasks *t, struct task_thread *h)
{
	if (!h->put)
		nps_host_out__put(t->out, NPS_CHUNK_HOST_THREADS, &h->last, sizeof(h->last));
	h->put = true;
}

static void put_process(struct nps_host_tasks *t, struct task_process *p)
{
	if (!p->put)
		nps_host_out__put(t->out, NPS_CHUNK_HOST_PROCESSES, &p->last, sizeof(p->last));
	p->put = true;
}

static void drop_thread(struct nps_host_tasks *t, struct task_process *p, uint32_t row)
{
	struct task_thread *h = &t->threads[row];
	uint32_t *link = &p->threads;

	put_thread(t, h);
	close_fd(&h->schedstat);
	close_fd(&h->stat);
	if (t->thread_of[h->last.tid] == row)
		t->thread_of[h->last.tid] = 0;
	while (*link && *link != row)
		link = &t->threads[*link].next;
	*link = h->next;
	h->next = t->free_thread;
	t->free_thread = row;
	p->n_threads--;
}

static void shut_process(struct nps_host_tasks *t, struct task_process *p)
{
	while (p->threads)
		drop_thread(t, p, p->threads);
	close_fd(&p->tasks);
	close_fd(&p->statm);
	close_fd(&p->io);
	p->open = false;
}

static void drop_process(struct nps_host_tasks *t, uint32_t row)
{
	struct task_process *p = &t->processes[row];
	uint32_t pid = p->last.pid;

	if (p->named)
		put_process(t, p);
	shut_process(t, p);
	if (t->opts.net_map >= 0)
		bpf_map_delete_elem(t->opts.net_map, &pid);
	t->process_of[pid] = 0;
	p->last.pid = 0;
	p->next_free = t->free_process;
	t->free_process = row;
}

/* --- reading ----------------------------------------------------------------------------------------- */

/* Reads an open file of /proc, as far as the buffer holds it; 0 if the process has exited. */
static size_t task_read_text(struct nps_host_tasks *t, int fd)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, t->text, sizeof(t->text), 0);

	return n > 0 ? (size_t)n : 0;
}

static bool task_read_stat(struct nps_host_tasks *t, int fd, struct nps_task_stat *stat)
{
	size_t n = task_read_text(t, fd);

	return n && nps_host_parse__task(t->text, n, stat);
}

/* Converts ticks after boot to CLOCK_MONOTONIC ns, which does not advance while the host is suspended. */
static uint64_t born(const struct nps_host_tasks *t, uint64_t ticks)
{
	uint64_t mono = nps_now(CLOCK_MONOTONIC), boot = nps_now(CLOCK_BOOTTIME), slept, ns;

	slept = boot - mono; /* in that order: never negative */
	if (__builtin_mul_overflow(ticks, t->tick_ns, &ns) || ns < slept)
		return 0;
	return ns - slept;
}

static void name_thread(struct nps_host_tasks *t, struct task_thread *h, const char *comm, uint64_t time)
{
	struct nps_host_name name = {
		.what = NPS_HOST_THREAD, .id = h->last.tid, .pid = h->last.pid, .time = time
	};

	memcpy(h->comm, comm, sizeof(h->comm));
	nps_host_out__name(t->out, name, comm);
}

static void name_process(struct nps_host_tasks *t, struct task_process *p, uint64_t time)
{
	struct nps_host_name name = { .what = NPS_HOST_PROCESS,
				      .flags = p->target ? NPS_HOST_TARGET : 0,
				      .id = p->last.pid,
				      .pid = p->last.pid,
				      .time = time };

	nps_host_out__name(t->out, name, p->comm);
	p->named = true;
}

/* --- threads ----------------------------------------------------------------------------------------- */

static void add_thread(struct nps_host_tasks *t, uint32_t process, uint32_t tid)
{
	struct task_process *p = &t->processes[process];
	uint32_t row = new_thread(t), fresh = row;
	struct nps_task_stat stat;
	struct task_thread *h;
	uint64_t birth;
	char path[40];

	if (!row) {
		t->missed++;
		return;
	}
	h = &t->threads[row];
	*h = (struct task_thread){ .schedstat = -1, .stat = -1, .round = t->round, .next = p->threads };
	snprintf(path, sizeof(path), "%u/schedstat", tid);
	h->schedstat = openat(p->tasks, path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%u/stat", tid);
	h->stat = openat(p->tasks, path, O_RDONLY | O_CLOEXEC);
	h->last = (struct nps_host_thread){ .pid = p->last.pid, .tid = tid };
	p->threads = fresh;
	p->n_threads++;
	t->thread_of[tid] = fresh;
	if (h->schedstat < 0 || h->stat < 0) {
		t->missed += errno == EMFILE || errno == ENFILE;
		h->put = true;
		drop_thread(t, p, fresh);
		return;
	}
	if (!task_read_stat(t, h->stat, &stat)) {
		h->put = true;
		drop_thread(t, p, fresh);
		return;
	}
	birth = born(t, stat.start);
	name_thread(t, h, stat.comm, birth > t->opts.begin ? birth : t->opts.begin);
	h->last.cpu = stat.cpu;
	h->last.time = birth;
	/*
	 * For a thread started during the capture: its counters began at 0. What
	 * other threads used before is unknown.
	 */
	if (birth >= t->opts.begin) {
		put_thread(t, h);
		return;
	}
	h->last.time = 0;
	h->put = true;
}

/* False: it has exited. */
static bool scan_thread(struct nps_host_tasks *t, struct task_thread *h)
{
	struct nps_host_thread now = h->last;
	struct nps_task_stat stat;
	size_t n = task_read_text(t, h->schedstat);
	bool changed;

	now.time = nps_now(CLOCK_MONOTONIC);
	if (!n || !nps_host_parse__schedstat(t->text, n, &now))
		return false;
	changed = now.run != h->last.run || now.wait != h->last.wait || !h->last.time;
	if (changed && task_read_stat(t, h->stat, &stat)) {
		now.cpu = stat.cpu;
		if (memcmp(stat.comm, h->comm, sizeof(h->comm)) != 0)
			name_thread(t, h, stat.comm, now.time);
	}
	/* The sample from which it changed: it may have been idle for long before. */
	if (changed && h->last.time)
		put_thread(t, h);
	h->last = now;
	h->put = false;
	if (changed)
		put_thread(t, h);
	return true;
}

/* Calls `each` for the numbers that directory `fd` lists. False: it cannot be read. */
static bool list_numbers(struct nps_host_tasks *t, int fd,
			 void (*each)(struct nps_host_tasks *t, uint32_t arg, uint32_t number), uint32_t arg)
{
	/* struct linux_dirent64, which libc's headers do not define under that name */
	struct dir_entry {
		uint64_t ino, off;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	long n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return false;
	while ((n = syscall(SYS_getdents64, fd, t->list, sizeof(t->list))) > 0)
		for (long at = 0; at < n;) {
			const struct dir_entry *e = (const struct dir_entry *)(t->list + at);
			unsigned long number = isdigit((unsigned char)e->name[0]) ? strtoul(e->name, NULL, 10)
										  : 0;

			if (number && number < t->pids)
				each(t, arg, (uint32_t)number);
			at += e->len;
		}
	return n == 0;
}

static void seen_thread(struct nps_host_tasks *t, uint32_t process, uint32_t tid)
{
	uint32_t row = t->thread_of[tid];

	if (row && t->threads[row].last.pid != t->processes[process].last.pid) {
		/* the tid belonged to a thread of another process before */
		uint32_t other = t->process_of[t->threads[row].last.pid];

		if (other)
			drop_thread(t, &t->processes[other], row);
		row = 0;
	}
	if (row)
		t->threads[row].round = t->round;
	else
		add_thread(t, process, tid);
}

static void process_list_threads(struct nps_host_tasks *t, uint32_t process)
{
	struct task_process *p = &t->processes[process];

	t->round++;
	p->listed = nps_now(CLOCK_MONOTONIC);
	if (!list_numbers(t, p->tasks, seen_thread, process))
		return;
	for (uint32_t row = p->threads, next; row; row = next) {
		next = t->threads[row].next;
		if (t->threads[row].round != t->round)
			drop_thread(t, p, row);
	}
}

/* A directory of threads has two links of its own and one for each thread. */
static bool threads_changed(struct task_process *p, uint64_t now)
{
	struct stat st;

	if (now - p->listed >= RESCAN_NS)
		return true;
	return !fstat(p->tasks, &st) && st.st_nlink != p->n_threads + 2 && now - p->listed >= RESCAN_NS / 10;
}

static void scan_threads(struct nps_host_tasks *t, uint32_t process)
{
	struct task_process *p = &t->processes[process];

	if (threads_changed(p, nps_now(CLOCK_MONOTONIC)))
		process_list_threads(t, process);
	for (uint32_t row = p->threads, next; row; row = next) {
		next = t->threads[row].next;
		if (!scan_thread(t, &t->threads[row]))
			drop_thread(t, p, row);
	}
}

/* --- processes --------------------------------------------------------------------------------------- */

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC | flags);
}

/* Identity of the process that has the pid now. False: none. */
static bool identify(struct nps_host_tasks *t, pid_t pid, struct nps_task_stat *stat)
{
	int fd = open_of(pid, "stat", 0);
	bool ok = fd >= 0 && task_read_stat(t, fd, stat);

	close_fd(&fd);
	return ok;
}

/* Opens the files of a process that are read repeatedly. */
static void process_open_files(struct nps_host_tasks *t, struct task_process *p)
{
	pid_t pid = (pid_t)p->last.pid;

	if (t->opts.cpu)
		p->tasks = open_of(pid, "task", O_DIRECTORY);
	if (t->opts.mem)
		p->statm = open_of(pid, "statm", 0);
	if (t->opts.disk)
		p->io = open_of(pid, "io", 0);
	if ((t->opts.cpu && p->tasks < 0) || (t->opts.mem && p->statm < 0) || (t->opts.disk && p->io < 0))
		t->missed += errno == EMFILE || errno == ENFILE;
	p->open = true;
}

static uint32_t add_process(struct nps_host_tasks *t, pid_t pid, bool target)
{
	struct nps_task_stat stat;
	struct task_process *p;
	uint64_t birth;
	uint32_t row;

	if (!identify(t, pid, &stat))
		return 0;
	row = new_process(t);
	if (!row) {
		t->missed++;
		return 0;
	}
	p = &t->processes[row];
	birth = born(t, stat.start);
	*p = (struct task_process){
		.tasks = -1, .statm = -1, .io = -1, .target = target, .start = stat.start
	};
	memcpy(p->comm, stat.comm, sizeof(p->comm));
	memset(&p->last, 0xff, sizeof(p->last)); /* NPS_HOST_UNKNOWN */
	p->last.pid = (uint32_t)pid;
	p->last.threads = 0;
	p->last.time = 0;
	p->put = true;
	t->process_of[pid] = row;
	if (birth >= t->opts.begin) { /* its counters began at 0 */
		struct nps_host_process *l = &p->last;

		l->time = birth;
		l->run = l->resident = 0;
		l->read = l->written = l->cancelled = t->opts.disk ? 0 : NPS_HOST_UNKNOWN;
		l->received = l->sent = t->opts.net_map >= 0 ? 0 : NPS_HOST_UNKNOWN;
		p->put = false;
	}
	if (target)
		process_open_files(t, p);
	return row;
}

/* Bytes over its sockets; a process that never used one has no entry. */
static void read_network(struct nps_host_tasks *t, struct nps_host_process *now)
{
	struct nps_net_bytes bytes = {};
	uint32_t pid = now->pid;

	if (t->opts.net_map < 0)
		return;
	if (bpf_map_lookup_elem(t->opts.net_map, &pid, &bytes) && errno != ENOENT)
		return;
	now->received = bytes.received;
	now->sent = bytes.sent;
}

static void read_files(struct nps_host_tasks *t, struct task_process *p, struct nps_host_process *now)
{
	size_t n;

	if (p->statm >= 0 && (n = task_read_text(t, p->statm)))
		nps_host_parse__statm(t->text, n, t->page, now);
	if (p->io >= 0 && (n = task_read_text(t, p->io)))
		nps_host_parse__io(t->text, n, now);
	read_network(t, now);
	now->threads = p->n_threads;
}

static bool differs(const struct nps_host_process *a, const struct nps_host_process *b)
{
	return memcmp((const char *)a + sizeof(a->time), (const char *)b + sizeof(b->time),
		      sizeof(*a) - sizeof(a->time)) != 0;
}

/* CPU time of all its threads, including those that exited. False: there is no such process. */
static bool cpu_time(struct nps_host_process *p)
{
	clockid_t clock = (clockid_t)(~p->pid << 3 | CPUCLOCK_SCHED); /* as from clock_getcpuclockid(3) */
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return false;
	p->run = (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
	return true;
}

static void process_keep(struct nps_host_tasks *t, struct task_process *p, const struct nps_host_process *now)
{
	bool changed = differs(now, &p->last) || !p->last.time;

	if (!p->named && (changed || p->target))
		name_process(t, p, now->time);
	if (changed && p->last.time)
		put_process(t, p);
	p->last = *now;
	p->put = false;
	if (changed)
		put_process(t, p);
}

/* Has the pid not been reused? */
static bool still_the_same(struct nps_host_tasks *t, struct task_process *p)
{
	struct nps_task_stat stat;

	if (!identify(t, (pid_t)p->last.pid, &stat) || stat.start != p->start)
		return false;
	if (memcmp(p->comm, stat.comm, sizeof(p->comm)) != 0) { /* exec */
		memcpy(p->comm, stat.comm, sizeof(p->comm));
		p->named = false;
	}
	return true;
}

static bool process_is_due(const struct task_process *p, uint64_t now)
{
	return p->target || now - p->scanned >= IDLE_NS || now - p->changed < IDLE_NS;
}

/* For a process that is not the job's and used no CPU: the last time at which it is known to be idle. */
static void stay_idle(struct nps_host_tasks *t, struct task_process *p, const struct nps_host_process *now)
{
	if (p->open && now->time - p->changed > CLOSE_NS)
		shut_process(t, p);
	p->last.run = now->run;
	p->last.time = now->time;
	p->put = false;
}

/* False: it has exited. */
static bool scan_process(struct nps_host_tasks *t, uint32_t row, uint64_t now)
{
	struct task_process *p = &t->processes[row];
	struct nps_host_process sample = p->last;
	bool used;

	if (!process_is_due(p, now))
		return true;
	if (!cpu_time(&sample))
		return false;
	sample.time = nps_now(CLOCK_MONOTONIC);
	/* What it used before the first read is not part of the capture. */
	used = p->last.time && p->last.run != sample.run;
	p->scanned = now;
	if (!p->target && !used) {
		stay_idle(t, p, &sample);
		return true;
	}
	if (!p->open || now - p->checked >= CHECK_NS) {
		if (!still_the_same(t, p))
			return false;
		p->checked = now;
	}
	if (!p->open)
		process_open_files(t, p);
	if (p->tasks >= 0 && (used || !p->listed))
		scan_threads(t, row);
	read_files(t, p, &sample);
	if (used)
		p->changed = now;
	process_keep(t, p, &sample);
	return true;
}

static void seen_process(struct nps_host_tasks *t, uint32_t arg, uint32_t pid)
{
	uint32_t row = t->process_of[pid];

	(void)arg;
	if (!row)
		row = add_process(t, (pid_t)pid, false);
	if (row)
		t->processes[row].round = t->round;
}

static void host_list_processes(struct nps_host_tasks *t, uint64_t now)
{
	if (!t->opts.all || now - t->listed < RESCAN_NS)
		return;
	t->listed = now;
	if (t->proc < 0)
		t->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->proc >= 0)
		list_numbers(t, t->proc, seen_process, 0);
}

void nps_host_tasks__scan(struct nps_host_tasks *t)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	host_list_processes(t, now);
	for (uint32_t row = 1; row <= t->n_processes; row++)
		if (t->processes[row].last.pid && !scan_process(t, row, now))
			drop_process(t, row);
}

void nps_host_tasks__last(struct nps_host_tasks *t)
{
	for (uint32_t row = 1; row <= t->n_processes; row++) {
		struct task_process *p = &t->processes[row];

		if (!p->last.pid || !p->named)
			continue;
		put_process(t, p);
		for (uint32_t h = p->threads; h; h = t->threads[h].next)
			put_thread(t, &t->threads[h]);
	}
}

void nps_host_tasks__target(struct nps_host_tasks *t, pid_t pid)
{
	uint32_t row;

	if (pid <= 0 || (uint32_t)pid >= t->pids)
		return;
	row = t->process_of[pid];
	if (!row) {
		add_process(t, pid, true);
		return;
	}
	t->processes[row].target = true;
	t->processes[row].named = false;
}

uint64_t nps_host_tasks__missed(const struct nps_host_tasks *t)
{
	return t->missed;
}

int nps_host_tasks__new(const struct nps_host_tasks_opts *opts, struct nps_host_out *out,
			struct nps_host_tasks **tasks)
{
	struct nps_host_tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->opts = *opts;
	t->out = out;
	t->proc = -1;
	t->pids = MOST_PIDS;
	t->page = (uint64_t)sysconf(_SC_PAGESIZE);
	t->tick_ns = 1000000000U / (uint64_t)sysconf(_SC_CLK_TCK);
	/* 16 MB each, of which only pages with used numbers occupy memory. */
	t->process_of = calloc(t->pids, sizeof(*t->process_of));
	t->thread_of = calloc(t->pids, sizeof(*t->thread_of));
	if (!t->process_of || !t->thread_of) {
		nps_host_tasks__free(t);
		return -ENOMEM;
	}
	*tasks = t;
	return 0;
}

void nps_host_tasks__free(struct nps_host_tasks *t)
{
	if (!t)
		return;
	for (uint32_t row = 1; row <= t->n_processes; row++)
		if (t->processes[row].last.pid)
			shut_process(t, &t->processes[row]);
	close_fd(&t->proc);
	free(t->processes);
	free(t->threads);
	free(t->process_of);
	free(t->thread_of);
	free(t);
}
