/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/host.h"

#include "base/index.h"
#include "derive/host_sums.h"
#include "derive/waits.h"
#include "model/call_class.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_ROWS (1U << 24)

struct host_window {
	uint64_t start, end;
	uint32_t text;
};

/* What a thread is known to do: all up to `settled` is counted; what begins later has not begun yet. */
struct host_thread {
	uint32_t pid, tid, comm;
	uint64_t settled;
	uint64_t device, cann, call, irq, fault; /* until when it is in one */
	uint32_t call_class;
	uint64_t ran, left, woken, start; /* on a CPU until, then from the next run's wait */
	bool uninterruptible; /* in that wait */
	size_t window;
	struct nps_host_sums sums; /* of its short calls */
	uint32_t
		slept; /* class of the summed call in which it slept last, while it waits for a CPU; 0 none */
};

struct host {
	struct nps_model *m;
	struct nps_vec windows; /* struct host_window by start, apart from each other */
	struct nps_vec threads; /* struct host_thread */
	struct nps_map thread_of; /* tid -> thread */
	struct nps_vec following; /* uint32_t: the next run of the same thread, 0 none */
	struct nps_map class_of; /* text -> class of system call, or whether it waits for the device */
	struct nps_vec cells; /* uint64_t[NPS_HOST_PARTS] of window * threads + thread */
	int err;
};

/* --- names ------------------------------------------------------------------------------------------- */

/* The class of what TEXT names, found once. 0 or -ENOMEM. */
static int call_class(struct host *h, uint32_t text, bool api, uint32_t *class)
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
	struct host_window *w;

	if (start >= end)
		return 0;
	w = nps_vec__push(&h->windows);
	if (!w)
		return -errno;
	*w = (struct host_window){ start, end, text };
	return 0;
}

/* The steps are in order of start; of two that overlap the later begins where the earlier ends. */
static int host_windows_make(struct host *h)
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
		if (err)
			return err;
		err = add_window(h, NPS_MAX(m->step.start[i], last), m->step.end[i], text);
		last = NPS_MAX(last, m->step.end[i]);
	}
	return err;
}

static struct host_thread *host_thread_find(const struct host *h, uint32_t tid)
{
	uint32_t at = nps_map__get(&h->thread_of, tid);

	return at == NPS_NONE ? NULL : &NPS_AT(&h->threads, struct host_thread, at);
}

static int host_thread_add(struct host *h, uint32_t tid)
{
	struct host_thread *t;

	if (host_thread_find(h, tid))
		return 0;
	t = nps_vec__push(&h->threads);
	if (!t)
		return -errno;
	*t = (struct host_thread){
		.pid = h->m->pid, .tid = tid, .comm = h->m->process, .settled = h->m->start
	};
	nps_host_sums__init(&t->sums, h->m->tmpfd);
	return nps_map__put(&h->thread_of, tid, h->threads.len - 1);
}

/* Threads whose calls led to tasks of the device, or put work into the queue of those that do. */
static int host_launchers_find(struct host *h)
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
			err = host_thread_add(h, (uint32_t)api->gtid[i]);
	nps_index__free(&led);
	for (size_t i = queue.begin; !err && i < queue.end; i++, nps_pace__step(&pace))
		err = host_thread_add(h, (uint32_t)torch->gtid[i]);
	return err;
}

/* Before its first run: the thread was on a CPU until its first record of leaving one. */
static void thread_begin(const struct nps_model *m, struct host_thread *t, uint32_t row)
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
	int err = host_launchers_find(h);
	bool all = !h->threads.len;

	if (err)
		return err;
	err = nps_vec__resize(&h->following, m->run.t.len);
	for (size_t i = 0; !err && i < m->run.t.len; i++, nps_pace__step(&pace)) {
		uint32_t tid = m->run.tid[i], previous;
		struct host_thread *t;

		if (all || tid == m->pid)
			err = host_thread_add(h, tid);
		t = err ? NULL : host_thread_find(h, tid);
		if (!t)
			continue;
		previous = nps_map__get(&last, tid);
		if (previous == NPS_NONE)
			thread_begin(m, t, i);
		else
			NPS_AT(&h->following, uint32_t, previous) = i;
		t->pid = nps_run__gtid(m, i) >> 32;
		if (m->run.comm[i] != NPS_NONE)
			t->comm = m->run.comm[i];
		err = nps_map__put(&last, tid, i);
	}
	nps_map__free(&last);
	return err;
}

/* --- the sweep ---------------------------------------------------------------------------------------- */

static bool is_asleep(const struct host_thread *t, uint64_t now)
{
	return now >= t->ran && now >= t->left && now < t->woken;
}

/* On a CPU, and in nothing recorded but CANN calls. */
static bool is_free(const struct host_thread *t, uint64_t now)
{
	return now < t->ran && now >= t->irq && now >= t->fault && now >= t->call;
}

/* What the thread does at NOW if it is in a system call of class CALL (0: in none). */
static enum nps_host_part part_at(const struct host_thread *t, uint64_t now, uint32_t call)
{
	bool runs = now < t->ran, gap = now < t->left, asleep = now < t->woken, waits = now < t->start;

	if (!runs && !gap && !asleep && waits)
		return NPS_HOST_CPU_WAIT;
	if (runs && now < t->irq)
		return NPS_HOST_INTERRUPTS;
	if (now < t->fault)
		return NPS_HOST_FAULTS;
	if (now < t->device)
		return NPS_HOST_DEVICE_WAIT;
	if (!runs && (gap || !asleep))
		return NPS_HOST_NOT_SEEN;
	if (!runs)
		return call == NPS_OS_LOCK				    ? NPS_HOST_LOCK_WAIT
		       : call == NPS_OS_IO || (!call && t->uninterruptible) ? NPS_HOST_IO_WAIT
									    : NPS_HOST_SLEEP;
	return call == NPS_OS_IO ? NPS_HOST_IO_CALLS
	       : call		 ? NPS_HOST_OTHER_CALLS
	       : now < t->cann	 ? NPS_HOST_CANN
				 : NPS_HOST_USER;
}

/* The next time after NOW, at most LIMIT, at which something ends. */
static uint64_t next_end(const struct host_thread *t, uint64_t now, uint64_t limit)
{
	const uint64_t ends[] = { t->device, t->cann, t->call,	t->irq,	  t->fault,
				  t->ran,    t->left, t->woken, t->start, t->sums.end };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(ends); i++)
		if (ends[i] > now)
			limit = NPS_MIN(limit, ends[i]);
	return limit;
}

static uint64_t *thread_part(const struct host *h, const struct host_thread *t, size_t window,
			     enum nps_host_part part)
{
	size_t thread = t - (struct host_thread *)h->threads.data;

	return &NPS_AT(&h->cells, uint64_t, (window * h->threads.len + thread) * NPS_HOST_PARTS + part);
}

/* Adds [FROM, TO) to the thread's part of each step it lies in. */
static void thread_add_part(struct host *h, struct host_thread *t, enum nps_host_part part, uint64_t from,
			    uint64_t to)
{
	bool spread = from < t->sums.end && (part == NPS_HOST_USER || part == NPS_HOST_CANN);

	while (t->window < h->windows.len) {
		const struct host_window *w = &NPS_AT(&h->windows, struct host_window, t->window);
		uint64_t ns = from < w->end && to > w->start ? NPS_MIN(to, w->end) - NPS_MAX(from, w->start)
							     : 0;

		*thread_part(h, t, t->window, part) += ns;
		if (ns && spread && nps_host_sums__note(&t->sums, t->window, part == NPS_HOST_CANN, ns))
			h->err = -ENOMEM;
		if (to < w->end)
			return;
		t->window++;
	}
}

/* Moves the time of calls that were summed up from the thread's own code and CANN calls to system calls. */
static void spread_sums(struct host *h, struct host_thread *t)
{
	struct nps_host_moved moved;

	while (nps_host_sums__next(&t->sums, &moved)) {
		*thread_part(h, t, moved.window, NPS_HOST_USER) -= moved.user;
		*thread_part(h, t, moved.window, NPS_HOST_CANN) -= moved.cann;
		*thread_part(h, t, moved.window, NPS_HOST_IO_CALLS) += moved.io;
		*thread_part(h, t, moved.window, NPS_HOST_OTHER_CALLS) += moved.other;
	}
}

/* Adds one span in which nothing changes, at most until TIME. */
static void settle_one(struct host *h, struct host_thread *t, uint64_t time)
{
	uint64_t now = t->settled, until = next_end(t, now, time), left = 0;
	uint32_t call = now < t->call ? t->call_class : 0, summed = 0;
	enum nps_host_part part;

	/* A thread sleeps in calls only: one without a record may have been summed up. */
	if (!call && now >= t->fault && is_asleep(t, now))
		summed = nps_host_sums__slept(&t->sums, now, t->woken - t->left, &left);
	if (summed)
		until = NPS_MIN(until, now + left);
	part = part_at(t, now, summed ? summed : call);
	if (summed)
		t->slept = summed;
	else if (part != NPS_HOST_CPU_WAIT)
		t->slept = 0;
	if (t->slept) /* it waits for a CPU in that call, too */
		nps_host_sums__spend(&t->sums, t->slept, until - now);
	else if (is_free(t, now) || (part == NPS_HOST_NOT_SEEN && !call))
		nps_host_sums__spare(&t->sums, until - now);
	thread_add_part(h, t, part, now, until);
	t->settled = until;
	if (t->sums.end && until >= t->sums.end)
		spread_sums(h, t);
}

static void thread_settle(struct host *h, struct host_thread *t, uint64_t time)
{
	while (t->settled < time)
		settle_one(h, t, time);
}

static int sweep_run(struct host *h, size_t row)
{
	const struct nps_run_table *run = &h->m->run;
	struct host_thread *t = host_thread_find(h, run->tid[row]);
	uint32_t next = NPS_AT(&h->following, uint32_t, row);
	struct nps_wait wait = { 0 };

	if (!t)
		return 0;
	thread_settle(h, t, run->start[row]);
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

static int sweep_call(struct host *h, size_t row)
{
	const struct nps_osrt_table *osrt = &h->m->osrt;
	struct host_thread *t = host_thread_find(h, (uint32_t)osrt->gtid[row]);

	if (!t)
		return 0;
	thread_settle(h, t, osrt->start[row]);
	if (osrt->shape[row] == NPS_OS_FAULT) { /* within a call, as a rule, which goes on behind it */
		t->fault = NPS_MAX(t->fault, osrt->end[row]);
		return 0;
	}
	t->call = osrt->end[row];
	return call_class(h, osrt->name[row], false, &t->call_class);
}

static int sweep_sum(struct host *h, size_t row)
{
	const struct nps_osrt_span_table *span = &h->m->osrt_span;
	struct host_thread *t = host_thread_find(h, (uint32_t)span->gtid[row]);
	uint32_t class;
	int err;

	if (!t)
		return 0;
	thread_settle(h, t, span->start[row]);
	err = call_class(h, span->name[row], false, &class);
	if (err)
		return err;
	nps_host_sums__add(&t->sums, class, t->settled, span->end[row], span->total[row], span->longest[row]);
	return 0;
}

static int sweep_api(struct host *h, size_t row)
{
	const struct nps_api_table *api = &h->m->api;
	struct host_thread *t = host_thread_find(h, (uint32_t)api->gtid[row]);
	uint32_t waits;
	int err;

	if (!t)
		return 0;
	err = call_class(h, api->name[row], true, &waits);
	thread_settle(h, t, api->start[row]);
	t->cann = NPS_MAX(t->cann, api->end[row]);
	if (waits)
		t->device = NPS_MAX(t->device, api->end[row]);
	return err;
}

static int sweep_irq(struct host *h, size_t row)
{
	const struct nps_irq_table *irq = &h->m->irq;
	struct host_thread *t = host_thread_find(h, irq->tid[row]);

	if (!t)
		return 0;
	thread_settle(h, t, irq->start[row]);
	t->irq = NPS_MAX(t->irq, irq->end[row]);
	return 0;
}

/* All rows in order of their start. */
static int host_sweep(struct host *h)
{
	const struct nps_model *m = h->m;
	const struct {
		const uint64_t *start;
		size_t len;
		int (*sweep_row)(struct host *h, size_t row);
	} sources[] = { { m->run.start, m->run.t.len, sweep_run },
			{ m->osrt.start, m->osrt.t.len, sweep_call },
			{ m->api.start, m->api.t.len, sweep_api },
			{ m->irq.start, m->irq.t.len, sweep_irq },
			{ m->osrt_span.start, m->osrt_span.t.len, sweep_sum } };
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
		err = sources[first].sweep_row(h, at[first]++);
		nps_pace__step(&pace);
	}
	for (size_t i = 0; i < h->threads.len; i++) {
		thread_settle(h, &NPS_AT(&h->threads, struct host_thread, i), m->end);
		spread_sums(h, &NPS_AT(&h->threads, struct host_thread, i));
	}
	return err ? err : h->err;
}

/* --- rows --------------------------------------------------------------------------------------------- */

static int host_add_row(struct host *h, const struct host_window *w, const struct host_thread *t,
			const uint64_t *parts)
{
	struct nps_host_breakdown_table *b = &h->m->host_breakdown;
	size_t row;
	int err;

	if (parts[NPS_HOST_NOT_SEEN] == w->end - w->start)
		return 0; /* not there */
	err = nps_table__add(&b->t, &row);
	if (err)
		return err;
	b->step[row] = w->text;
	b->start[row] = w->start;
	b->end[row] = w->end;
	b->gtid[row] = (uint64_t)t->pid << 32 | t->tid;
	b->comm[row] = t->comm;
	b->user[row] = parts[NPS_HOST_USER];
	b->cann[row] = parts[NPS_HOST_CANN];
	b->io_calls[row] = parts[NPS_HOST_IO_CALLS];
	b->other_calls[row] = parts[NPS_HOST_OTHER_CALLS];
	b->device_wait[row] = parts[NPS_HOST_DEVICE_WAIT];
	b->lock_wait[row] = parts[NPS_HOST_LOCK_WAIT];
	b->cpu_wait[row] = parts[NPS_HOST_CPU_WAIT];
	b->io_wait[row] = parts[NPS_HOST_IO_WAIT];
	b->faults[row] = parts[NPS_HOST_FAULTS];
	b->interrupts[row] = h->m->irq.t.len ? (int64_t)parts[NPS_HOST_INTERRUPTS] : NPS_NULL;
	b->sleep[row] = parts[NPS_HOST_SLEEP];
	b->unknown[row] = parts[NPS_HOST_NOT_SEEN];
	return 0;
}

void nps_host_breakdown__parts(const struct nps_model *m, size_t row, uint64_t parts[NPS_HOST_PARTS])
{
	const struct nps_host_breakdown_table *b = &m->host_breakdown;

	parts[NPS_HOST_USER] = b->user[row];
	parts[NPS_HOST_CANN] = b->cann[row];
	parts[NPS_HOST_IO_CALLS] = b->io_calls[row];
	parts[NPS_HOST_OTHER_CALLS] = b->other_calls[row];
	parts[NPS_HOST_DEVICE_WAIT] = b->device_wait[row];
	parts[NPS_HOST_LOCK_WAIT] = b->lock_wait[row];
	parts[NPS_HOST_CPU_WAIT] = b->cpu_wait[row];
	parts[NPS_HOST_IO_WAIT] = b->io_wait[row];
	parts[NPS_HOST_FAULTS] = b->faults[row];
	parts[NPS_HOST_INTERRUPTS] = b->interrupts[row] > 0 ? (uint64_t)b->interrupts[row] : 0;
	parts[NPS_HOST_SLEEP] = b->sleep[row];
	parts[NPS_HOST_NOT_SEEN] = b->unknown[row];
}

static int host_fill(struct host *h)
{
	size_t n = h->threads.len;
	int err = 0;

	for (size_t w = 0; !err && w < h->windows.len; w++)
		for (size_t t = 0; !err && t < n; t++)
			err = host_add_row(h, &NPS_AT(&h->windows, struct host_window, w),
					   &NPS_AT(&h->threads, struct host_thread, t),
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
	nps_vec__init(&h.windows, m->tmpfd, sizeof(struct host_window));
	nps_vec__init(&h.threads, m->tmpfd, sizeof(struct host_thread));
	nps_vec__init(&h.following, m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&h.cells, m->tmpfd, sizeof(uint64_t));
	err = host_windows_make(&h);
	err = err ? err : find_threads(&h);
	err = err ? err : make_cells(&h);
	if (err || !h.cells.len)
		goto out;
	err = host_sweep(&h);
	err = err ? err : host_fill(&h);
out:
	for (size_t i = 0; i < h.threads.len; i++)
		nps_host_sums__free(&NPS_AT(&h.threads, struct host_thread, i).sums);
	nps_vec__free(&h.windows);
	nps_vec__free(&h.threads);
	nps_vec__free(&h.following);
	nps_vec__free(&h.cells);
	nps_map__free(&h.thread_of);
	nps_map__free(&h.class_of);
	return err;
}
