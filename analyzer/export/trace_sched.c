/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Process Scheduling and CPU Scheduling as the viewer reads them (insight 2.6). Runs come by start; their events wait in a
 * heap for their time. How a thread waits is known from its next run, so that the heap holds a few events of each thread.
 */
#include "derive/waits.h"
#include "event.h"
#include "export/run_names.h"
#include "export/trace_event.h"

#include <errno.h>

/* What an event shows of its run, in the order of events of one time. */
enum what { SLEEPING, RUNNABLE, SLEEPING_ALL, RUNNABLE_ALL, RUNNING, SWITCH };

/* Beside it: the state in which the thread had left its CPU. */
#define WHAT_MASK 0x7fU
#define STATE_KNOWN 0x80U
#define STATE_SHIFT 8

static uint64_t process_pid(const struct nps_trace *t)
{
	return nps_trace__pid(t, NPS_TRACE_PROCESS_SCHED, 0);
}

static uint64_t cpu_pid(const struct nps_trace *t)
{
	return nps_trace__pid(t, NPS_TRACE_CPU_SCHED, 0);
}

static const char *comm_of(const struct nps_trace *t, size_t row)
{
	return nps_run__comm(t->m, t->m->run.comm[row]);
}

/* `"comm:tid"`, which the viewer takes apart at the last colon. */
static void thread_name(struct nps_trace *t, size_t row)
{
	const char *comm = comm_of(t, row);

	nps_writer__lit(&t->w, "\"");
	nps_writer__json_part(&t->w, comm, strlen(comm));
	nps_trace__u64(&t->w, ":", t->m->run.tid[row]);
	nps_writer__lit(&t->w, "\"");
}

static void cpu_name(struct nps_trace *t, size_t row)
{
	nps_trace__u64(&t->w, "\"CPU ", t->m->run.cpu[row]);
	nps_writer__lit(&t->w, "\"");
}

static void begin_state(struct nps_trace *t, size_t row, const char *name, uint64_t start, uint64_t end)
{
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__string(w, "{\"name\":", name);
	nps_trace__u64(w, ",\"pid\":", process_pid(t));
	nps_writer__lit(w, ",\"tid\":");
	thread_name(t, row);
	nps_trace__span(w, start, end);
}

static void state(struct nps_trace *t, size_t row, const char *name, uint64_t start, uint64_t end)
{
	begin_state(t, row, name, start, end);
	nps_trace__u64(&t->w, ",\"args\":{\"cpu\":", t->m->run.cpu[row]);
	nps_writer__lit(&t->w, "}");
	nps_trace__end(&t->w);
}

static void slept(struct nps_trace *t, size_t row, uint64_t end, uint32_t what)
{
	struct nps_writer *w = &t->w;

	begin_state(t, row, "Sleeping", t->m->run.left[row], end);
	nps_trace__u64(w, ",\"args\":{\"cpu\":", t->m->run.cpu[row]);
	nps_trace__string(w,
			  ",\"state\":", what & STATE_KNOWN ? nps_run__letter(what >> STATE_SHIFT) : "N/A");
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

static void queued(struct nps_trace *t, size_t row, uint64_t start)
{
	const struct nps_run_table *run = &t->m->run;
	struct nps_writer *w = &t->w;

	begin_state(t, row, "Runnable", start, run->start[row]);
	nps_trace__u64(w, ",\"args\":{\"cpu\":", run->cpu[row]);
	if (run->waker[row]) {
		const char *comm = run->waker_comm[row] == NPS_NONE
					   ? "unknown"
					   : nps_trace__text(t, run->waker_comm[row]);

		nps_writer__lit(w, ",\"waker\":\"");
		nps_writer__json_part(w, comm, strlen(comm));
		nps_trace__u64(w, ":", run->waker[row]);
		nps_writer__lit(w, "\"");
	}
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

/* An interrupt, on the CPU whose thread it stopped. */
static void interrupt(struct nps_trace *t, size_t row)
{
	const struct nps_irq_table *irq = &t->m->irq;
	bool soft = irq->what[row] == NPS_IRQ_SOFT;
	const char *comm = nps_run__comm(t->m, irq->comm[row]);
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, soft ? "{\"name\":\"softirq\",\"pid\":" : "{\"name\":\"irq\",\"pid\":", cpu_pid(t));
	nps_trace__u64(w, ",\"tid\":\"CPU ", irq->cpu[row]);
	nps_writer__lit(w, "\"");
	nps_trace__span(w, irq->start[row], irq->end[row]);
	nps_writer__lit(w, ",\"args\":{\"task\":\"");
	nps_writer__json_part(w, comm, strlen(comm));
	nps_trace__u64(w, ":", irq->tid[row]);
	nps_trace__string(w, soft ? "\",\"action\":" : "\",\"name\":", nps_trace__text(t, irq->name[row]));
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

static void on_cpu(struct nps_trace *t, size_t row)
{
	const struct nps_run_table *run = &t->m->run;
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_writer__lit(w, "{\"name\":");
	thread_name(t, row);
	nps_trace__u64(w, ",\"pid\":", cpu_pid(t));
	nps_writer__lit(w, ",\"tid\":");
	cpu_name(t, row);
	nps_trace__span(w, run->start[row], run->end[row]);
	nps_trace__string(w, ",\"args\":{\"end_state\":", nps_run__letter(run->state[row]));
	nps_trace__u64(w, ",\"prio\":", run->prio[row]);
	nps_trace__u64(w, ",\"host_pid\":", run->tid[row]);
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

static void switched(struct nps_trace *t, size_t row)
{
	const struct nps_run_table *run = &t->m->run;
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, "{\"name\":\"sched_switch\",\"pid\":", cpu_pid(t));
	nps_writer__lit(w, ",\"tid\":");
	cpu_name(t, row);
	nps_trace__span(w, run->end[row], run->end[row]);
	nps_trace__string(w, ",\"args\":{\"prev_comm\":", comm_of(t, row));
	nps_trace__u64(w, ",\"prev_pid\":", run->tid[row]);
	nps_trace__u64(w, ",\"prev_prio\":", run->prio[row]);
	nps_trace__string(w, ",\"prev_state\":", nps_run__letter(run->state[row]));
	nps_trace__string(w, ",\"next_comm\":", nps_run__next(t->m, row));
	nps_trace__u64(w, ",\"next_pid\":", run->next[row]);
	nps_writer__lit(w, ",\"next_prio\":\"N/A\"}"); /* not observed */
	nps_trace__end(w);
}

/* --- the heap of events to come --- */

static bool before(const struct nps_trace_pending *a, const struct nps_trace_pending *b)
{
	return a->time != b->time ? a->time < b->time
	       : a->row != b->row ? a->row < b->row
				  : a->what < b->what;
}

static int push(struct nps_trace *t, uint64_t time, uint32_t row, uint32_t what)
{
	struct nps_trace_pending event = { time, row, what }, *heap;
	size_t at = t->pending.len;

	if (!nps_vec__push(&t->pending))
		return -errno;
	heap = t->pending.data;
	for (; at && before(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
	return 0;
}

static struct nps_trace_pending pop(struct nps_trace *t)
{
	struct nps_trace_pending *heap = t->pending.data, first = heap[0], last;
	size_t at = 0, n = --t->pending.len;

	last = heap[n];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < n && before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= n || !before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

static void set_next(struct nps_trace *t)
{
	t->next[t->scheduled] = t->pending.len ? NPS_AT(&t->pending, struct nps_trace_pending, 0).time
					       : UINT64_MAX;
}

/* How the thread waits for the run ROW that is to come. */
static int push_wait(struct nps_trace *t, uint32_t row, uint32_t previous)
{
	struct nps_wait wait = nps_run__wait(t->m, row, previous);
	uint32_t state =
		previous == NPS_NONE ? 0 : STATE_KNOWN | (t->m->run.state[previous] & 0xffff) << STATE_SHIFT;
	int err = 0;

	if (!wait.known)
		return 0;
	if (wait.woken > wait.left)
		err = push(t, wait.left, row, (wait.woken == wait.start ? SLEEPING_ALL : SLEEPING) | state);
	if (!err && wait.start > wait.woken)
		err = push(t, wait.woken, row, wait.woken == wait.left ? RUNNABLE_ALL : RUNNABLE);
	return err;
}

/* --- events in order of time --- */

static uint64_t lane_key(const struct nps_trace *t, size_t row)
{
	return nps_hash2(t->m->run.tid[row], t->m->run.comm[row]);
}

static void ran(struct nps_trace *t, uint32_t row)
{
	const struct nps_run_table *run = &t->m->run;

	/* Switches are counted under no CPU: without this slice the viewer shows none. */
	if (nps_map__get(&t->counted, lane_key(t, row)) == NPS_NONE) {
		begin_state(t, row, "Running", run->start[row], run->start[row]);
		nps_trace__end(&t->w);
		if (nps_map__put(&t->counted, lane_key(t, row), 1) && !t->w.err)
			t->w.err = -ENOMEM;
	}
	state(t, row, "Running", run->start[row], run->end[row]);
	on_cpu(t, row);
}

static void next_event(struct nps_trace *t, size_t at)
{
	const struct nps_run_table *run = &t->m->run;
	struct nps_trace_pending event = pop(t);
	uint32_t row = event.row;

	(void)at;
	switch ((enum what)(event.what & WHAT_MASK)) {
	case SLEEPING:
		slept(t, row, run->woken[row], event.what);
		break;
	case SLEEPING_ALL:
		slept(t, row, run->start[row], event.what);
		break;
	case RUNNABLE:
		queued(t, row, run->woken[row]);
		break;
	case RUNNABLE_ALL:
		queued(t, row, run->left[row]);
		break;
	case RUNNING:
		ran(t, row);
		break;
	case SWITCH:
		switched(t, row);
		break;
	}
	set_next(t);
}

static void next_run(struct nps_trace *t, size_t row)
{
	uint32_t following = NPS_AT(&t->following, uint32_t, row);
	bool open = t->m->run.state[row] & NPS_RUN_OPEN;
	int err = nps_run__ran(t->m, row) ? push(t, t->m->run.start[row], row, RUNNING) : 0;

	if (!err && !open)
		err = push(t, t->m->run.end[row], row, SWITCH);
	if (!err && following)
		err = push_wait(t, following, row);
	if (err && !t->w.err)
		t->w.err = err;
	set_next(t);
}

/* --- lanes --- */

/* Notes the run if it is the first on its lane or its CPU. */
static int note_lanes(struct nps_trace *t, struct nps_map *seen, uint32_t row)
{
	uint64_t thread = lane_key(t, row), cpu = nps_hash2(t->m->run.cpu[row], ~0ULL);
	uint32_t *lane;
	int err;

	if (nps_map__get(seen, thread) != NPS_NONE && nps_map__get(seen, cpu) != NPS_NONE)
		return 0;
	lane = nps_vec__push(&t->sched_lanes);
	if (!lane)
		return -errno;
	*lane = row;
	err = nps_map__put(seen, thread, 1);
	return err ? err : nps_map__put(seen, cpu, 1);
}

/* Tells the thread's run before that ROW follows. */
static int note_order(struct nps_trace *t, struct nps_map *last, uint32_t row)
{
	uint32_t tid = t->m->run.tid[row], previous = nps_map__get(last, tid);
	int err = 0;

	if (previous == NPS_NONE)
		err = push_wait(t, row, NPS_NONE);
	else
		NPS_AT(&t->following, uint32_t, previous) = row;
	return err ? err : nps_map__put(last, tid, row);
}

int nps_trace__scan_sched(struct nps_trace *t)
{
	struct nps_map seen = { 0 }, last = { 0 };
	int err = nps_vec__resize(&t->following, t->m->run.t.len);

	for (size_t i = 0; !err && i < t->m->run.t.len; i++) {
		err = note_lanes(t, &seen, i);
		if (!err)
			err = note_order(t, &last, i);
		nps_pace__step(&t->pace);
	}
	nps_map__free(&seen);
	nps_map__free(&last);
	return err;
}

static void lane_row(struct nps_trace *t, size_t row, uint64_t pid,
		     void (*name)(struct nps_trace *t, size_t row))
{
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, "{\"name\":\"thread_name\",\"pid\":", pid);
	nps_writer__lit(w, ",\"tid\":");
	name(t, row);
	nps_writer__lit(w, ",\"args\":{\"name\":");
	name(t, row);
	nps_writer__lit(w, "},\"ph\":\"M\"}");
}

int nps_trace__name_sched(struct nps_trace *t)
{
	struct nps_map seen = { 0 };
	int err = 0;

	if (!t->sched_lanes.len)
		return 0;
	nps_trace__name_layer(t, NPS_TRACE_PROCESS_SCHED, 0);
	nps_trace__name_layer(t, NPS_TRACE_CPU_SCHED, 0);
	for (size_t i = 0; !err && i < t->sched_lanes.len; i++) {
		uint32_t row = NPS_AT(&t->sched_lanes, uint32_t, i);
		uint64_t thread = lane_key(t, row), cpu = nps_hash2(t->m->run.cpu[row], ~0ULL);

		if (nps_map__get(&seen, thread) == NPS_NONE)
			lane_row(t, row, process_pid(t), thread_name);
		if (nps_map__get(&seen, cpu) == NPS_NONE)
			lane_row(t, row, cpu_pid(t), cpu_name);
		err = nps_map__put(&seen, thread, 1);
		if (!err)
			err = nps_map__put(&seen, cpu, 1);
	}
	nps_map__free(&seen);
	return err;
}

void nps_trace__add_sched(struct nps_trace *t)
{
	nps_trace__add(t, &t->m->irq.t, t->m->irq.start, NULL, interrupt);
	if (!t->m->run.t.len)
		return;
	nps_trace__add(t, &t->m->run.t, t->m->run.start, NULL, next_run);
	t->scheduled = t->nsources;
	nps_trace__add(t, &t->m->run.t, NULL, NULL, next_event);
	set_next(t);
}
