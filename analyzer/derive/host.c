/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/host.h"

#include "derive/index.h"
#include "derive/waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_ROWS (1U << 24)

struct window {
	uint64_t start, end;
	uint32_t text;
};

/* What a thread is known to do: everything up to `settled` is counted, and what begins later has not begun yet. */
struct thread {
	uint32_t tid, comm;
	uint64_t settled;
	uint64_t device, cann, call, irq; /* until when it is in one */
	uint32_t call_class;
	uint64_t ran, left, woken, start; /* on a CPU until, then from the next run's wait */
	bool uninterruptible; /* in that wait */
	size_t window;
};

struct host {
	struct nps_model *m;
	struct nps_vec windows; /* struct window by start, apart from each other */
	struct nps_vec threads; /* struct thread */
	struct nps_map thread_of; /* tid -> thread */
	struct nps_vec following; /* uint32_t: the next run of the same thread, 0 none */
	struct nps_map class_of; /* text -> class of system call, or whether it waits for the device */
	struct nps_vec cells; /* uint64_t[NPS_HOST_PARTS] of window * threads + thread */
};

/* --- names ------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

enum nps_os_call_class nps_os_call_class(const char *name)
{
	static const char *const locks[] = { "futex",	   "futex_wait",    "futex_waitv",
					     "futex_wake", "futex_requeue", "flock",
					     "semop",	   "semtimedop",    "futex_time64" };
	static const char *const io[] = {
		"read",
		"write",
		"pread64",
		"pwrite64",
		"readv",
		"writev",
		"preadv",
		"pwritev",
		"preadv2",
		"pwritev2",
		"recvfrom",
		"recvmsg",
		"recvmmsg",
		"sendto",
		"sendmsg",
		"sendmmsg",
		"sendfile",
		"splice",
		"tee",
		"vmsplice",
		"copy_file_range",
		"fsync",
		"fdatasync",
		"sync",
		"syncfs",
		"msync",
		"readahead",
		"sync_file_range",
		"open",
		"openat",
		"openat2",
		"creat",
		"close",
		"connect",
		"accept",
		"accept4",
		"io_submit",
		"fallocate",
		"truncate",
		"io_getevents",
		"getdents",
		"getdents64",
		"ftruncate",
		"unlink",
		"unlinkat",
		"rename",
		"renameat",
		"renameat2",
		"mkdir",
		"mkdirat",
		"rmdir",
		"stat",
		"fstat",
		"lstat",
		"newfstatat",
		"statx",
		"fadvise64",
		"lseek",
		"access",
		"faccessat",
		"readlink",
		"readlinkat",
		"io_uring_enter",
	};

	return is_one_of(name, locks, NPS_ARRAY_SIZE(locks)) ? NPS_OS_LOCK
	       : is_one_of(name, io, NPS_ARRAY_SIZE(io))     ? NPS_OS_IO
							     : NPS_OS_OTHER;
}

bool nps_is_device_wait(const char *name)
{
	static const char *const blocking[] = {
		"aclrtMemcpy",	   "aclrtMemcpy2d",	   "rtMemcpy",	      "rtMemcpy2d",
		"rtsMemcpy",	   "aclmdlExecute",	   "aclmdlExecuteV2", "rtModelExecuteSync",
		"aclmdlRIExecute", "aclrtFreeWithDevSync", "aclrtMemcpyBatch"
	};

	return strstr(name, "Synchronize") || is_one_of(name, blocking, NPS_ARRAY_SIZE(blocking));
}

/* The class of what TEXT names, found once. 0 or -ENOMEM. */
static int class_of(struct host *h, uint32_t text, bool api, uint32_t *class)
{
	uint64_t key = (uint64_t)api << 32 | text;
	const char *name = nps_model__text(h->m, text);

	*class = nps_map__get(&h->class_of, key);
	if (*class != NPS_NONE)
		return 0;
	*class = api ? nps_is_device_wait(name) : nps_os_call_class(name);
	return nps_map__put(&h->class_of, key, *class);
}

/* --- windows and threads ------------------------------------------------------------------------------ */

static int step_text(struct nps_model *m, int64_t id, uint32_t *text)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRId64, id);
	*text = nps_strings__addz(m->strings, number);
	return *text == NPS_NONE ? -ENOMEM : 0;
}

static int add_window(struct host *h, uint64_t start, uint64_t end, uint32_t text)
{
	struct window *w;

	if (start >= end)
		return 0;
	w = nps_vec__push(&h->windows);
	if (!w)
		return -errno;
	*w = (struct window){ start, end, text };
	return 0;
}

/* The steps, which stand by start; of two that overlap the later begins where the earlier ends. */
static int make_windows(struct host *h)
{
	struct nps_model *m = h->m;
	uint64_t last = m->start;
	uint32_t text;
	int err = 0;

	if (!m->step.t.len) {
		text = nps_strings__addz(m->strings, "");
		return text == NPS_NONE ? -ENOMEM : add_window(h, m->start, m->end, text);
	}
	for (size_t i = 0; !err && i < m->step.t.len; i++) {
		err = step_text(m, m->step.id[i], &text);
		if (!err)
			err = add_window(h, NPS_MAX(m->step.start[i], last), m->step.end[i], text);
		last = NPS_MAX(last, m->step.end[i]);
	}
	return err;
}

static struct thread *find_thread(const struct host *h, uint32_t tid)
{
	uint32_t at = nps_map__get(&h->thread_of, tid);

	return at == NPS_NONE ? NULL : &NPS_AT(&h->threads, struct thread, at);
}

static int add_thread(struct host *h, uint32_t tid)
{
	struct thread *t;

	if (find_thread(h, tid))
		return 0;
	t = nps_vec__push(&h->threads);
	if (!t)
		return -errno;
	*t = (struct thread){ .tid = tid, .comm = h->m->process, .settled = h->m->start };
	return nps_map__put(&h->thread_of, tid, h->threads.len - 1);
}

/* Threads whose calls led to tasks of the device, or put work into the queue of those that do. */
static int find_launchers(struct host *h)
{
	const struct nps_api_table *api = &h->m->api;
	const struct nps_task_table *task = &h->m->task;
	const struct nps_torch_table *torch = &h->m->torch;
	struct nps_rows queue = nps_model__torch_rows(h->m, NPS_API_TORCH_QUEUE);
	struct nps_pace pace = { h->m, 0 };
	uint64_t low = NPS_NO_ID, high = 0;
	struct nps_index led;
	int err = 0;

	for (size_t i = 0; i < task->t.len; i++, nps_pace__step(&pace)) {
		if (task->connection[i] == NPS_NO_ID)
			continue;
		low = NPS_MIN(low, (uint64_t)task->connection[i]);
		high = NPS_MAX(high, (uint64_t)task->connection[i]);
	}
	nps_index__init(&led, h->m->tmpfd, low, high, task->t.len);
	for (size_t i = 0; !err && i < task->t.len; i++, nps_pace__step(&pace))
		if (task->connection[i] != NPS_NO_ID)
			err = nps_index__put(&led, task->connection[i], 1);
	for (size_t i = 0; !err && i < api->t.len; i++, nps_pace__step(&pace))
		if (api->connection[i] != NPS_NO_ID && nps_index__get(&led, api->connection[i]) != NPS_NONE)
			err = add_thread(h, (uint32_t)api->gtid[i]);
	nps_index__free(&led);
	for (size_t i = queue.begin; !err && i < queue.end; i++, nps_pace__step(&pace))
		err = add_thread(h, (uint32_t)torch->gtid[i]);
	return err;
}

/* Before a thread's first run: until it was first seen to leave a CPU it must have been on one. */
static void begin(const struct nps_model *m, struct thread *t, uint32_t row)
{
	struct nps_wait wait = nps_run__wait(m, row, NPS_NONE);

	if (!wait.known)
		return;
	t->ran = m->runs_lost ? 0 : wait.left;
	t->left = wait.left;
	t->woken = wait.woken;
	t->start = wait.start;
}

static int find_threads(struct host *h)
{
	const struct nps_model *m = h->m;
	struct nps_pace pace = { m, 0 };
	struct nps_map last = { 0 };
	int err = find_launchers(h);
	bool all = !h->threads.len;

	if (!err)
		err = nps_vec__resize(&h->following, m->run.t.len);
	for (size_t i = 0; !err && i < m->run.t.len; i++, nps_pace__step(&pace)) {
		uint32_t tid = m->run.tid[i], previous;
		struct thread *t;

		if (all || tid == m->pid)
			err = add_thread(h, tid);
		t = err ? NULL : find_thread(h, tid);
		if (!t)
			continue;
		previous = nps_map__get(&last, tid);
		if (previous == NPS_NONE)
			begin(m, t, i);
		else
			NPS_AT(&h->following, uint32_t, previous) = i;
		if (m->run.comm[i] != NPS_NONE)
			t->comm = m->run.comm[i];
		err = nps_map__put(&last, tid, i);
	}
	nps_map__free(&last);
	return err;
}

/* --- the sweep ---------------------------------------------------------------------------------------- */

/* What the thread does at NOW, and, in *UNTIL, how long nothing changes if that is earlier. */
static enum nps_host_part part_at(const struct thread *t, uint64_t now, uint64_t *until)
{
	const uint64_t ends[] = { t->device, t->cann, t->call, t->irq, t->ran, t->left, t->woken, t->start };
	bool runs = now < t->ran, gap = now < t->left, asleep = now < t->woken, waits = now < t->start;
	uint32_t call = now < t->call ? t->call_class : 0;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(ends); i++)
		if (ends[i] > now)
			*until = NPS_MIN(*until, ends[i]);
	if (!runs && !gap && !asleep && waits)
		return NPS_HOST_CPU_WAIT;
	if (runs && now < t->irq)
		return NPS_HOST_INTERRUPTS;
	if (now < t->device)
		return NPS_HOST_DEVICE_WAIT;
	if (!runs && (gap || !asleep))
		return NPS_HOST_UNKNOWN;
	if (!runs)
		return call == NPS_OS_LOCK				    ? NPS_HOST_LOCK_WAIT
		       : call == NPS_OS_IO || (!call && t->uninterruptible) ? NPS_HOST_IO_WAIT
									    : NPS_HOST_SLEEP;
	return call == NPS_OS_IO ? NPS_HOST_IO_CALLS
	       : call		 ? NPS_HOST_OTHER_CALLS
	       : now < t->cann	 ? NPS_HOST_CANN
				 : NPS_HOST_USER;
}

/* Adds [FROM, TO) to the thread's part of each step it lies in. */
static void give(struct host *h, struct thread *t, enum nps_host_part part, uint64_t from, uint64_t to)
{
	size_t thread = t - (struct thread *)h->threads.data;

	while (t->window < h->windows.len) {
		const struct window *w = &NPS_AT(&h->windows, struct window, t->window);
		uint64_t *cell = &NPS_AT(&h->cells, uint64_t,
					 (t->window * h->threads.len + thread) * NPS_HOST_PARTS + part);

		if (from < w->end && to > w->start)
			*cell += NPS_MIN(to, w->end) - NPS_MAX(from, w->start);
		if (to < w->end)
			return;
		t->window++;
	}
}

static void settle(struct host *h, struct thread *t, uint64_t time)
{
	while (t->settled < time) {
		uint64_t until = time;
		enum nps_host_part part = part_at(t, t->settled, &until);

		give(h, t, part, t->settled, until);
		t->settled = until;
	}
}

static int take_run(struct host *h, size_t row)
{
	const struct nps_run_table *run = &h->m->run;
	struct thread *t = find_thread(h, run->tid[row]);
	uint32_t next = NPS_AT(&h->following, uint32_t, row);
	struct nps_wait wait = { 0 };

	if (!t)
		return 0;
	settle(h, t, run->start[row]);
	if (next)
		wait = nps_run__wait(h->m, next, row);
	t->ran = run->end[row];
	t->left = wait.known ? NPS_MAX(wait.left, t->ran) : 0;
	t->woken = wait.known ? wait.woken : 0;
	t->start = wait.known ? wait.start : 0;
	/* The state is that of this wait only if no run was lost in between. */
	t->uninterruptible = wait.left == run->end[row] && run->state[row] & NPS_STATE_UNINTERRUPTIBLE;
	return 0;
}

static int take_call(struct host *h, size_t row)
{
	const struct nps_osrt_table *osrt = &h->m->osrt;
	struct thread *t = find_thread(h, (uint32_t)osrt->gtid[row]);

	if (!t)
		return 0;
	settle(h, t, osrt->start[row]);
	t->call = osrt->end[row];
	return class_of(h, osrt->name[row], false, &t->call_class);
}

static int take_api(struct host *h, size_t row)
{
	const struct nps_api_table *api = &h->m->api;
	struct thread *t = find_thread(h, (uint32_t)api->gtid[row]);
	uint32_t waits;
	int err;

	if (!t)
		return 0;
	err = class_of(h, api->name[row], true, &waits);
	settle(h, t, api->start[row]);
	t->cann = NPS_MAX(t->cann, api->end[row]);
	if (waits)
		t->device = NPS_MAX(t->device, api->end[row]);
	return err;
}

static int take_irq(struct host *h, size_t row)
{
	const struct nps_irq_table *irq = &h->m->irq;
	struct thread *t = find_thread(h, irq->tid[row]);

	if (!t)
		return 0;
	settle(h, t, irq->start[row]);
	t->irq = NPS_MAX(t->irq, irq->end[row]);
	return 0;
}

/* All rows in order of their start. */
static int sweep(struct host *h)
{
	const struct nps_model *m = h->m;
	const struct {
		const uint64_t *start;
		size_t len;
		int (*take)(struct host *h, size_t row);
	} sources[] = { { m->run.start, m->run.t.len, take_run },
			{ m->osrt.start, m->osrt.t.len, take_call },
			{ m->api.start, m->api.t.len, take_api },
			{ m->irq.start, m->irq.t.len, take_irq } };
	size_t at[NPS_ARRAY_SIZE(sources)] = { 0 };
	struct nps_pace pace = { m, 0 };
	int err = 0;

	while (!err) {
		size_t first = 0;
		uint64_t best = UINT64_MAX;

		for (size_t i = 0; i < NPS_ARRAY_SIZE(sources); i++) {
			if (at[i] < sources[i].len && sources[i].start[at[i]] < best) {
				best = sources[i].start[at[i]];
				first = i;
			}
		}
		if (best == UINT64_MAX)
			break;
		err = sources[first].take(h, at[first]++);
		nps_pace__step(&pace);
	}
	for (size_t i = 0; i < h->threads.len; i++)
		settle(h, &NPS_AT(&h->threads, struct thread, i), m->end);
	return err;
}

/* --- rows --------------------------------------------------------------------------------------------- */

static int add_row(struct host *h, const struct window *w, const struct thread *t, const uint64_t *parts)
{
	struct nps_host_breakdown_table *b = &h->m->host_breakdown;
	size_t row;
	int err;

	if (parts[NPS_HOST_UNKNOWN] == w->end - w->start)
		return 0; /* not there */
	err = nps_table__add(&b->t, &row);
	if (err)
		return err;
	b->step[row] = w->text;
	b->start[row] = w->start;
	b->end[row] = w->end;
	b->gtid[row] = (uint64_t)h->m->pid << 32 | t->tid;
	b->comm[row] = t->comm;
	b->user[row] = parts[NPS_HOST_USER];
	b->cann[row] = parts[NPS_HOST_CANN];
	b->io_calls[row] = parts[NPS_HOST_IO_CALLS];
	b->other_calls[row] = parts[NPS_HOST_OTHER_CALLS];
	b->device_wait[row] = parts[NPS_HOST_DEVICE_WAIT];
	b->lock_wait[row] = parts[NPS_HOST_LOCK_WAIT];
	b->cpu_wait[row] = parts[NPS_HOST_CPU_WAIT];
	b->io_wait[row] = parts[NPS_HOST_IO_WAIT];
	b->interrupts[row] = h->m->irq.t.len ? (int64_t)parts[NPS_HOST_INTERRUPTS] : NPS_NULL;
	b->sleep[row] = parts[NPS_HOST_SLEEP];
	b->unknown[row] = parts[NPS_HOST_UNKNOWN];
	return 0;
}

static int fill(struct host *h)
{
	size_t n = h->threads.len;
	int err = 0;

	for (size_t w = 0; !err && w < h->windows.len; w++)
		for (size_t t = 0; !err && t < n; t++)
			err = add_row(h, &NPS_AT(&h->windows, struct window, w),
				      &NPS_AT(&h->threads, struct thread, t),
				      &NPS_AT(&h->cells, uint64_t, (w * n + t) * NPS_HOST_PARTS));
	return err;
}

static int make_cells(struct host *h)
{
	size_t n = h->threads.len, rows = h->windows.len * n;

	if (rows > MAX_ROWS) {
		nps_model__lost(h->m, rows,
				"rows of the breakdown of host time: %zu threads in %zu steps are too many",
				n, h->windows.len);
		h->windows.len = 0;
		rows = 0;
	}
	return nps_vec__resize(&h->cells, rows * NPS_HOST_PARTS);
}

int nps_derive__host(struct nps_model *m)
{
	struct host h = { .m = m };
	int err;

	if (!m->run.t.len || m->start >= m->end)
		return 0;
	nps_vec__init(&h.windows, m->tmpfd, sizeof(struct window));
	nps_vec__init(&h.threads, m->tmpfd, sizeof(struct thread));
	nps_vec__init(&h.following, m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&h.cells, m->tmpfd, sizeof(uint64_t));
	err = make_windows(&h);
	if (!err)
		err = find_threads(&h);
	if (!err)
		err = make_cells(&h);
	if (!err && h.cells.len)
		err = sweep(&h);
	if (!err && h.cells.len)
		err = fill(&h);
	nps_vec__free(&h.windows);
	nps_vec__free(&h.threads);
	nps_vec__free(&h.following);
	nps_vec__free(&h.cells);
	nps_map__free(&h.thread_of);
	nps_map__free(&h.class_of);
	return err;
}
