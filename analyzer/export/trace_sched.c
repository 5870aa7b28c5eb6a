/* SPDX-License-Identifier: BSD-2-Clause */
/* Process Scheduling and CPU Scheduling as the viewer reads them (insight 2.6). */
#include "event.h"
#include "export/run_names.h"
#include "export/trace_event.h"

#include <errno.h>

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
static void put_sched_thread(struct nps_trace *t, size_t row)
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

static void begin_state(struct nps_trace *t, const struct nps_item *item, const char *name)
{
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__string(w, "{\"name\":", name);
	nps_trace__u64(w, ",\"pid\":", process_pid(t));
	nps_writer__lit(w, ",\"tid\":");
	put_sched_thread(t, item->row);
	nps_trace__span(w, item->start, item->end);
}

static void write_running(struct nps_trace *t, const struct nps_item *item)
{
	begin_state(t, item, "Running");
	nps_trace__u64(&t->w, ",\"args\":{\"cpu\":", nps_item__device(item));
	nps_writer__lit(&t->w, "}");
	nps_trace__end(&t->w);
}

static void slept(struct nps_trace *t, const struct nps_item *item)
{
	struct nps_writer *w = &t->w;

	begin_state(t, item, "Sleeping");
	nps_trace__u64(w, ",\"args\":{\"cpu\":", nps_item__device(item));
	nps_trace__string(w, ",\"state\":", nps_run__left(t->m, item->before));
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

static void write_queued(struct nps_trace *t, const struct nps_item *item)
{
	const struct nps_run_table *run = &t->m->run;
	uint32_t row = item->row;
	struct nps_writer *w = &t->w;

	begin_state(t, item, "Runnable");
	nps_trace__u64(w, ",\"args\":{\"cpu\":", nps_item__device(item));
	if (run->waker[row]) {
		const char *comm = nps_run__waker(t->m, row);

		nps_writer__lit(w, ",\"waker\":\"");
		nps_writer__json_part(w, comm, strlen(comm));
		nps_trace__u64(w, ":", run->waker[row]);
		nps_writer__lit(w, "\"");
	}
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

/* An interrupt, on the CPU whose thread it stopped. */
static void write_interrupt(struct nps_trace *t, const struct nps_item *item)
{
	const struct nps_irq_table *irq = &t->m->irq;
	uint32_t row = item->row;
	bool soft = irq->what[row] == NPS_IRQ_SOFT;
	const char *comm = nps_run__comm(t->m, irq->comm[row]);
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, soft ? "{\"name\":\"softirq\",\"pid\":" : "{\"name\":\"irq\",\"pid\":", cpu_pid(t));
	nps_trace__u64(w, ",\"tid\":\"CPU ", nps_item__device(item));
	nps_writer__lit(w, "\"");
	nps_trace__span(w, item->start, item->end);
	nps_writer__lit(w, ",\"args\":{\"task\":\"");
	nps_writer__json_part(w, comm, strlen(comm));
	nps_trace__u64(w, ":", nps_item__tid(item));
	nps_trace__string(w, soft ? "\",\"action\":" : "\",\"name\":", nps_trace__text(t, item->name));
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

static void write_on_cpu(struct nps_trace *t, const struct nps_item *item)
{
	uint32_t row = item->row;
	const struct nps_run_table *run = &t->m->run;
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_writer__lit(w, "{\"name\":");
	put_sched_thread(t, row);
	nps_trace__u64(w, ",\"pid\":", cpu_pid(t));
	nps_writer__lit(w, ",\"tid\":");
	cpu_name(t, row);
	nps_trace__span(w, item->start, item->end);
	nps_trace__string(w, ",\"args\":{\"end_state\":", nps_run__letter(run->state[row]));
	nps_trace__u64(w, ",\"prio\":", run->prio[row]);
	nps_trace__u64(w, ",\"host_pid\":", run->tid[row]);
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

static void write_switched(struct nps_trace *t, const struct nps_item *item)
{
	uint32_t row = item->row;
	const struct nps_run_table *run = &t->m->run;
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, "{\"name\":\"sched_switch\",\"pid\":", cpu_pid(t));
	nps_writer__lit(w, ",\"tid\":");
	cpu_name(t, row);
	nps_trace__span(w, item->start, item->end);
	nps_trace__string(w, ",\"args\":{\"prev_comm\":", comm_of(t, row));
	nps_trace__u64(w, ",\"prev_pid\":", run->tid[row]);
	nps_trace__u64(w, ",\"prev_prio\":", run->prio[row]);
	nps_trace__string(w, ",\"prev_state\":", nps_run__letter(run->state[row]));
	nps_trace__string(w, ",\"next_comm\":", nps_run__next(t->m, row));
	nps_trace__u64(w, ",\"next_pid\":", run->next[row]);
	nps_writer__lit(w, ",\"next_prio\":\"N/A\"}"); /* not observed */
	nps_trace__end(w);
}

void nps_trace__sched(struct nps_trace *t, const struct nps_item *item)
{
	switch (item->kind) {
	case NPS_ITEM_SLEEPING:
		slept(t, item);
		break;
	case NPS_ITEM_RUNNABLE:
		write_queued(t, item);
		break;
	case NPS_ITEM_FIRST:
		begin_state(t, item, "Running");
		nps_trace__end(&t->w);
		break;
	case NPS_ITEM_RUNNING:
		write_running(t, item);
		write_on_cpu(t, item);
		break;
	case NPS_ITEM_SWITCH:
		write_switched(t, item);
		break;
	case NPS_ITEM_INTERRUPT:
		write_interrupt(t, item);
		break;
	default: /* of other layers */
		break;
	}
}

static uint64_t lane_key(const struct nps_trace *t, size_t row)
{
	return nps_hash2(t->m->run.tid[row], t->m->run.comm[row]);
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

int nps_trace__scan_sched(struct nps_trace *t)
{
	struct nps_map seen = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < t->m->run.t.len; i++) {
		err = note_lanes(t, &seen, i);
		nps_pace__step(&t->pace);
	}
	nps_map__free(&seen);
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
			lane_row(t, row, process_pid(t), put_sched_thread);
		if (nps_map__get(&seen, cpu) == NPS_NONE)
			lane_row(t, row, cpu_pid(t), cpu_name);
		err = nps_map__put(&seen, thread, 1);
		err = err ? err : nps_map__put(&seen, cpu, 1);
	}
	nps_map__free(&seen);
	return err;
}
