/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's timeline.  A task gets its start and end as soon as everything it depends on has got them,
 * usually at submission: the timeline runs ahead of the wall clock, so it does not depend on when this
 * process gets a CPU.
 */
#include "device.h"

#include <string.h>

#define LAUNCH_LATENCY_NS 2000
#define LAUNCH_JITTER_NS 4000
#define TASK_GAP_NS 250
#define TASK_GAP_JITTER_NS 500
#define WAKE_NS 160 /* from a record to the end of the wait for it */
#define LINK_NS 900 /* a notify's way to another device */

static uint8_t type_of(const struct task *t)
{
	return t->facts.kind;
}

static void event_record(struct device *d, const struct task *t)
{
	struct board_event *e = &d->events[t->sqe.event.id % EVENTS_MAX];
	uint32_t i = t->sqe.event.sequence % EVENT_HISTORY;

	e->latest = t->sqe.event.sequence;
	e->sequence[i] = t->sqe.event.sequence;
	e->when[i] = t->facts.end;
}

/* 0 while the record is not scheduled. A record that was overtaken many times is as late as the oldest. */
static uint64_t event_time(struct device *d, const struct task *t)
{
	const struct board_event *e = &d->events[t->sqe.event.id % EVENTS_MAX];
	uint32_t wanted = t->sqe.event.sequence;
	uint32_t i = wanted % EVENT_HISTORY;

	if ((int32_t)(e->latest - wanted) < 0)
		return 0;
	if (e->sequence[i] != wanted)
		i = (e->latest + 1) % EVENT_HISTORY;
	return e->when[i];
}

static void notify_record(struct device *d, const struct task *t)
{
	uint32_t target = t->sqe.notify.device;
	struct device *peer = target == d->id ? d : device_get(target);

	if (peer && t->sqe.notify.id < BOARD_NOTIFIES)
		board_notify_post(&peer->board, t->sqe.notify.id, t->facts.end + (peer == d ? 0 : LINK_NS));
}

/* The instant at which the awaited thing happened; 0 if it has not. */
static uint64_t awaited(struct device *d, const struct task *t)
{
	if (type_of(t) == STARS_EVENT_WAIT)
		return event_time(d, t);
	return t->sqe.notify.id < BOARD_NOTIFIES ? board_notify_consume(&d->board, t->sqe.notify.id)
						 : t->facts.start;
}

static bool is_wait(const struct task *t)
{
	return type_of(t) == STARS_EVENT_WAIT || type_of(t) == STARS_NOTIFY_WAIT;
}

static void set_start(struct device *d, const struct sq *q, struct task *t)
{
	uint64_t arrival = t->facts.submit + LAUNCH_LATENCY_NS + model_random(d, LAUNCH_JITTER_NS);
	uint64_t turn = q->last_end + TASK_GAP_NS + model_random(d, TASK_GAP_JITTER_NS);

	t->facts.start = arrival > turn ? arrival : turn;
}

static bool schedule_next(struct device *d, struct sq *q)
{
	struct task *t = &q->ring[q->scheduled % SQ_DEPTH];

	if (!t->facts.start)
		set_start(d, q, t);
	t->facts.end = t->facts.start + model_duration(d, &t->sqe);
	if (is_wait(t)) {
		uint64_t when = awaited(d, t);

		if (!when)
			return false;
		if (when + WAKE_NS > t->facts.end)
			t->facts.end = when + WAKE_NS;
	}
	if (type_of(t) == STARS_EVENT_RECORD)
		event_record(d, t);
	else if (type_of(t) == STARS_NOTIFY_RECORD)
		notify_record(d, t);
	q->last_end = t->facts.end;
	q->scheduled++;
	return true;
}

static bool schedule_queue(struct device *d, struct sq *q)
{
	bool moved = false;

	while (q->scheduled < q->submitted && schedule_next(d, q))
		moved = true;
	return moved;
}

/* One queue's progress can be what another one waits for. */
void sched_all(struct device *d)
{
	bool moved, any = false;

	do {
		moved = false;
		for (int i = 0; i < d->nsqs; i++) {
			if (d->sqs[i]->in_use && schedule_queue(d, d->sqs[i]))
				moved = any = true;
		}
	} while (moved);
	if (any)
		pthread_cond_broadcast(&d->progress);
}

void sched_submit(struct device *d, struct sq *q, const struct stars_sqe *sqe, uint64_t submit)
{
	const struct chip *chip = board_chip(&d->board);
	struct task *t = &q->ring[q->submitted % SQ_DEPTH];
	uint8_t kind = (uint8_t)chip_kind(chip, sqe);

	memset(t, 0, sizeof(*t));
	t->sqe = *sqe;
	if (kind == STARS_PLACE_HOLDER && sqe->holder.kind == STARS_FLIP)
		q->flip = sqe->holder.flip;
	t->facts.device = d->id;
	t->facts.stream = q->stream;
	t->facts.task = chip->log == CHIP_STARS2 ? sqe->stream | (uint32_t)sqe->task << 16 : sqe->task;
	t->facts.flip = q->flip;
	t->facts.type = sqe->type & STARS_TYPE_MASK;
	t->facts.kind = kind;
	t->facts.submit = submit;
	t->facts.launch = truth_sqe(&t->facts);
	q->submitted++;
	if (kind == STARS_EVENT_RECORD || kind == STARS_NOTIFY_RECORD)
		sched_all(d);
	else
		schedule_queue(d, q);
}

/* Only what the job handed over as its own memory is really moved. */
static void move_bytes(const struct task *t)
{
	bool dma = type_of(t) == STARS_PCIE_DMA || type_of(t) == STARS_SDMA;

	if (dma && t->sqe.dma.action == STARS_DMA_COPY)
		memcpy((void *)(uintptr_t)t->sqe.dma.dst, (const void *)(uintptr_t)t->sqe.dma.src,
		       t->sqe.dma.len);
	else if (dma && t->sqe.dma.action == STARS_DMA_FILL)
		memset((void *)(uintptr_t)t->sqe.dma.dst, (int)(t->sqe.dma.src & 0xff), t->sqe.dma.len);
	else if (type_of(t) == STARS_WRITE_VALUE)
		*(volatile uint64_t *)(uintptr_t)t->sqe.write.address = t->sqe.write.value;
}

static void complete(struct device *d, const struct sq *q, const struct task *t)
{
	struct logic_cqe *cqe = &d->cq[d->cq_tail % CQ_DEPTH];

	if (d->cq_tail - d->cq_head == CQ_DEPTH)
		d->cq_head++;
	*cqe = (struct logic_cqe){ .stream = t->sqe.stream,
				   .task = t->sqe.task,
				   .sqe_type = type_of(t),
				   .sq_id = (uint16_t)q->id,
				   .sq_head = (uint16_t)(q->done % SQ_DEPTH) };
	if (type_of(t) == STARS_EVENT_RECORD || type_of(t) == STARS_PLACE_HOLDER)
		cqe->syscnt = board_counter(&d->board, t->facts.end);
	else
		cqe->sqe_index = (uint16_t)((q->done - 1) % SQ_DEPTH);
	d->cq_tail++;
}

static bool retire_queue(struct device *d, struct sq *q, uint64_t now)
{
	bool moved = false;

	while (q->done < q->scheduled) {
		struct task *t = &q->ring[q->done % SQ_DEPTH];

		if (t->facts.end > now)
			break;
		move_bytes(t);
		links_progress(d, t, t->facts.end);
		prof_task_ended(d, q, t);
		truth_task_done(&t->facts);
		q->done++;
		if (t->sqe.flags & STARS_WR_CQE)
			complete(d, q, t);
		moved = true;
	}
	if (q->done < q->scheduled && q->ring[q->done % SQ_DEPTH].facts.start < now)
		links_progress(d, &q->ring[q->done % SQ_DEPTH], now);
	return moved;
}

void sched_retire(struct device *d, uint64_t now)
{
	bool moved = false;

	for (int i = 0; i < d->nsqs; i++)
		moved |= retire_queue(d, d->sqs[i], now);
	if (moved)
		pthread_cond_broadcast(&d->progress);
}
