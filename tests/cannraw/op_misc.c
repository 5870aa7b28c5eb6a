/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies, events, mstx ranges and marks, steps. */
#include "gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define COMPACT_BYTES 64
#define MSTX_BYTES 256
#define MSTX_MESSAGE 156
#define COPY_MAX (64u << 20)
#define TAG_MARK 11
#define TAG_RANGE 12
#define TAG_STEP_BEGIN 60000
#define EVENT_RANGE 2
#define EVENT_MARK_EX 3

void op_memcpy(struct gen *g, struct thread *t, struct device *d)
{
	static const struct launch l = { .rt = RT_MEMCPY_ASYNC, .api = RT_API_MEMCPY_ASYNC };
	uint64_t r = gen_rnd(g), bytes = 1 + (r >> 8) % COPY_MAX;
	uint32_t direction = 1 + (uint32_t)(r % 3);
	struct task task = new_task("memcpy", direction == 3 ? SQE_SDMA : SQE_PCIE_DMA);
	struct stream *st = pick_stream(g, t, d);
	struct span acl = span_begin(g, t, LEVEL_ACL, ACL_MEMCPY_ASYNC, NULL);
	struct truth *tr = &g->truth;
	uint8_t rec[COMPACT_BYTES];

	task.conn = (int64_t)acl.id;
	submit(g, t, st, &l, &task);
	record_head(g, t, rec, sizeof(rec), LEVEL_RUNTIME, 801, task.track, 18);
	put64(rec + 24, bytes);
	put64(rec + 32, COPY_MAX);
	put16(rec + 40, direction);
	burst_put(g, t, HF_MEMCPY, rec);
	advance(g, t, 100, 300);
	span_end(g, t, &acl, false);
	run_task(g, d, st, &task, 1200 + bytes / 400);
	g->n.memcpys++;
	truth_begin(tr, "memcpy");
	truth_task_key(g, &task);
	truth_uint(tr, "bytes", bytes);
	truth_uint(tr, "max", COPY_MAX);
	truth_uint(tr, "direction", direction);
	truth_uint(tr, "tid", t->tid);
	truth_int(tr, "stamp_ns", host_wall(g, task.track));
	truth_int(tr, "conn", task.conn);
	truth_end(tr);
}

void op_event(struct gen *g, struct thread *t, struct device *d, uint64_t index)
{
	const bool wait = index & 1, v6 = g->o.chip == 15;
	struct launch l = { .rt = wait ? RT_EVENT_WAIT : RT_EVENT_RECORD,
			    .api = wait ? RT_API_EVENT_WAIT : RT_API_EVENT_RECORD };
	struct task task = new_task("event", wait ? SQE_EVENT_WAIT : SQE_EVENT_RECORD);
	struct stream *st = pick_stream(g, t, d);
	struct span acl = span_begin(g, t, LEVEL_ACL, wait ? ACL_STREAM_WAIT_EVENT : ACL_RECORD_EVENT, NULL);

	if (v6)
		l.rt = wait ? RT_DAVID_EVENT_WAIT : RT_DAVID_EVENT_RECORD;
	task.conn = (int64_t)acl.id;
	submit(g, t, st, &l, &task);
	advance(g, t, 100, 300);
	span_end(g, t, &acl, false);
	run_task(g, d, st, &task, wait ? kernel_ns(g) : 100);
}

/* Before 9.1 marks and both ends of a range have the same tag. */
static bool ranges_have_tag(const struct gen *g)
{
	unsigned int major = 0, minor = 0;

	if (sscanf(g->o.cann, "%u.%u", &major, &minor) < 1)
		return false;
	return major > 9 || (major == 9 && minor >= 1);
}

static uint64_t device_mark(struct gen *g, struct thread *t, struct device *d, const struct mark *m,
			    uint32_t tag)
{
	struct stream *st = m->stream;

	st->device_end = device_slot(g, d, st, t->now);
	device_step(g, d, tag, m->id, NO_MODEL, st, 0, st->device_end);
	return st->device_end;
}

/* Of three, one is a range on host and device, one a mark on both, one a range on the host alone. */
struct mark op_mstx_begin(struct gen *g, struct thread *t, struct device *d, uint64_t index)
{
	struct mark m = { .id = ++g->mark_ids, .index = index, .begin = t->now };
	const uint32_t range_tag = ranges_have_tag(g) ? TAG_RANGE : TAG_MARK;

	if (index % 3 != 2) {
		m.stream = pick_stream(g, t, d);
		m.device_begin = device_mark(g, t, d, &m, index % 3 ? TAG_MARK : range_tag);
	}
	advance(g, t, 100, 300);
	return m;
}

static void mstx_records(struct gen *g, struct thread *t, const struct mark *m, uint64_t end,
			 const char *text, size_t len)
{
	const size_t part = MSTX_MESSAGE - 1;
	uint8_t r[MSTX_BYTES];
	uint32_t segment = 0;

	do {
		size_t here = len < part ? len : part;

		record_head(g, t, r, sizeof(r), LEVEL_TX, 0, end, 232);
		put16(r + 24, 1);
		put16(r + 26, segment++);
		put16(r + 32, 0x5A5A);
		put16(r + 34, 120);
		put32(r + 36, g->o.pid);
		put32(r + 40, t->tid);
		put32(r + 48, m->index % 3 == 1 ? EVENT_MARK_EX : EVENT_RANGE);
		put64(r + 64, host_value(g, m->begin));
		put64(r + 72, host_value(g, end));
		put64(r + 80, m->id);
		put64(r + 88, g->domain.hash);
		memcpy(r + 100, text, here);
		burst_put(g, t, HF_MSTX, r);
		text += here;
		len -= here;
	} while (len);
}

void op_mstx_end(struct gen *g, struct thread *t, struct device *d, const struct mark *m)
{
	const bool mark = m->index % 3 == 1;
	struct truth *tr = &g->truth;
	uint64_t device_end = m->device_begin, end;
	char text[800];
	int len;

	len = snprintf(text, sizeof(text), "%s %" PRIu64, mark ? "mark" : "range", m->index);
	if (m->index % 5 == 4)
		for (int i = 0; len < 400 + (int)(m->index % 300); i++)
			text[len++] = (char)('A' + i % 26);
	if (g->o.nasty && m->index % 4 == 0)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " \"q\", line\nbreak\t\xff");
	if (!mark && m->stream)
		device_end = device_mark(g, t, d, m, ranges_have_tag(g) ? TAG_RANGE : TAG_MARK);
	end = mark ? m->begin : advance(g, t, 50, 200);
	mstx_records(g, t, m, end, text, (size_t)len);
	advance(g, t, 50, 100);
	g->n.mstx++;
	if (!tr->path)
		return;
	truth_begin(tr, "mstx");
	truth_str(tr, "event", mark ? "mark" : "range");
	truth_uint(tr, "mark_id", m->id);
	truth_uint(tr, "tid", t->tid);
	truth_str(tr, "domain", g->domain.text);
	truth_bytes(tr, "message", text, (size_t)len);
	truth_int(tr, "start_ns", host_wall(g, m->begin));
	truth_int(tr, "end_ns", host_wall(g, end));
	if (m->stream) {
		truth_uint(tr, "device", d->id);
		truth_uint(tr, "stream", m->stream->id);
		truth_device_time(g, d, "dev_start", m->device_begin);
		truth_device_time(g, d, "dev_end", device_end);
	}
	truth_end(tr);
}

/* The begin or the end of a training step, on the first stream. */
void op_step(struct gen *g, struct thread *t, struct device *d, uint64_t step, bool begin)
{
	struct stream *st = &d->streams[0];

	st->device_end = device_slot(g, d, st, t->now);
	device_step(g, d, TAG_STEP_BEGIN + !begin, step, NO_MODEL, st, 0, st->device_end);
}
