/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/host_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x5A5A
#define TENSORS_MOST 5 /* of a record */
#define CONTEXTS_MOST 55
#define ORIGINALS_MOST 8
#define TRANSFER_MOST (1LL << 50) /* bytes that one task of a collective may move */
#define DEVICE_DPU 1 /* upper bits of a device number */
#define TASK_MAINTENANCE 6
#define TASK_FLIP 98
#define TASK_SIMT 600
#define SINGLE_EVENT 0xFFFF /* request of an event that has no pair */
#define LEVEL_SHIFT 40 /* of a call's key: below are 40 bits of duration */
#define DURATION_MOST ((1ULL << LEVEL_SHIFT) - 1)

struct host_file {
	const char *name; /* without "aging." or "unaging." */
	const char *instead; /* read only if there is none of these */
	size_t size;
	void (*record)(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
		       bool aging);
};

/* Begin or end of a call, before the pairs are found. */
struct half_call {
	struct nps_sort_key key; /* high: hash of what both ends have in common, low: time */
	uint64_t item;
	uint32_t tid, type, request;
	uint16_t level;
};

static struct nps_host_event *host_event_add(struct nps_host_records *records,
					     struct nps_cann_capture *capture, enum nps_host_kind kind,
					     const uint8_t *p)
{
	struct nps_host_event *event = nps_cann_capture__sort(capture, &records->events);

	if (event) {
		memset(event, 0, sizeof(*event));
		event->key.high = nps_u64(p + 16);
		event->key.low = (uint64_t)kind << 56 | (uint64_t)nps_u32(p + 8) << 16;
	}
	return event;
}

static void host_call_add(struct nps_host_records *records, struct nps_cann_capture *capture,
			  const struct half_call *call, uint64_t begin, uint64_t end)
{
	struct nps_host_event *event;
	uint64_t duration = end - begin;

	if (end < begin) {
		nps_model__lost(capture->model, 1, "calls that end before they begin");
		return;
	}
	if (!begin) { /* it was not recorded: all calls of its thread would be inside of it */
		nps_model__lost(capture->model, 1, "calls without a begin time");
		return;
	}
	event = nps_cann_capture__sort(capture, &records->events);
	if (!event)
		return;
	memset(event, 0, sizeof(*event));
	/* Outer calls before inner ones. */
	event->key.high = begin;
	event->key.low = (uint64_t)NPS_HOST_CALL << 56 | (uint64_t)(UINT16_MAX - call->level) << LEVEL_SHIFT |
			 (DURATION_MOST - NPS_MIN(duration, (uint64_t)DURATION_MOST));
	event->call.end = end;
	event->call.item = call->item;
	event->call.tid = call->tid;
	event->call.type = call->type;
	event->call.request = call->request;
	event->call.level = call->level;
}

/* --- calls ---------------------------------------------------------------------------------------- */

static struct half_call call_decode(const uint8_t *p)
{
	return (struct half_call){ .item = nps_u64(p + 32),
				   .tid = nps_u32(p + 8),
				   .type = nps_u32(p + 4),
				   .request = nps_u32(p + 12),
				   .level = nps_u16(p + 2) };
}

static bool same_call(const struct half_call *a, const struct half_call *b)
{
	return a->key.high == b->key.high && a->item == b->item && a->tid == b->tid && a->type == b->type &&
	       a->request == b->request && a->level == b->level;
}

/* Begins and ends sorted by what they have in common: the first is a begin, the second its end, and so on. */
static void pair_halves(struct nps_host_records *records, struct nps_cann_capture *capture,
			struct nps_ext_sort *halves)
{
	const struct half_call *half;
	struct half_call open;
	bool waiting = false;
	uint64_t unpaired = 0;

	capture->err = capture->err ? capture->err : nps_ext_sort__finish(halves);
	while (!capture->err && (half = nps_ext_sort__next(halves))) {
		if (waiting && same_call(&open, half)) {
			host_call_add(records, capture, half, open.key.low, half->key.low);
			waiting = false;
			continue;
		}
		unpaired += waiting;
		open = *half;
		waiting = true;
	}
	unpaired += waiting;
	capture->err = capture->err ? capture->err : halves->err;
	nps_model__lost(capture->model, unpaired, "begins or ends of calls without the other");
}

static void read_calls_of(struct nps_host_records *records, struct nps_cann_capture *capture,
			  const char *base, struct nps_ext_sort *halves)
{
	struct nps_slice_reader reader;
	const uint8_t *p;
	int err = nps_slice_reader__open(&reader, capture->model, &capture->host.files, base, 40,
					 (struct nps_magic){ MAGIC, 0 });

	capture->err = capture->err ? capture->err : err;
	while (!capture->err && (p = nps_slice_reader__next(&reader))) {
		struct half_call call = call_decode(p), *half;
		uint64_t begin = nps_u64(p + 16), end = nps_u64(p + 24);

		if (end != UINT64_MAX) {
			host_call_add(records, capture, &call, begin, end);
			continue;
		}
		if (call.request == SINGLE_EVENT) {
			host_call_add(records, capture, &call, begin, begin);
			continue;
		}
		half = nps_cann_capture__sort(capture, halves);
		if (!half)
			break;
		*half = call;
		half->key.high = nps_hash2(nps_hash2((uint64_t)call.level << 32 | call.type, call.item),
					   (uint64_t)call.tid << 32 | call.request);
		half->key.low = begin;
	}
	nps_slice_reader__close(&reader);
}

static void read_calls(struct nps_host_records *records, struct nps_cann_capture *capture)
{
	struct nps_ext_sort halves;

	nps_ext_sort__init(&halves, capture->model->tmpfd, sizeof(struct half_call));
	read_calls_of(records, capture, "unaging.api_event.data", &halves);
	read_calls_of(records, capture, "aging.api_event.data", &halves);
	pair_halves(records, capture, &halves);
	nps_ext_sort__free(&halves);
}

/* --- compact records ---------------------------------------------------------------------------------- */

/* NULL: it is none that counts, or there is no memory. */
static struct nps_host_launch *launch(struct nps_host_records *records, struct nps_cann_capture *capture,
				      const uint8_t *p, uint32_t type)
{
	uint16_t device = nps_u16(p + 24) & 0xfff;
	struct nps_host_event *event;
	struct nps_host_launch *to;

	if (type == TASK_MAINTENANCE || nps_u16(p + 24) >> 12 == DEVICE_DPU)
		return NULL;
	if (device >= NPS_DEVICES_MAX) {
		nps_model__lost(capture->model, 1, "launches on impossible devices");
		return NULL;
	}
	event = host_event_add(records, capture, type == TASK_FLIP ? NPS_HOST_FLIP : NPS_HOST_LAUNCH, p);
	if (!event)
		return NULL;
	to = &event->launch;
	to->tid = nps_u32(p + 8);
	to->type = type;
	to->kernel = nps_u64(p + 40);
	to->device = device;
	if (type != TASK_SIMT) {
		to->blocks = nps_u16(p + 48);
		to->ratio = p[52] & 7;
	}
	return to;
}

static void task_track(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
		       bool aging)
{
	uint64_t type = nps_u64(p + 32);
	struct nps_host_launch *to = launch(records, capture, p, NPS_MIN(type, (uint64_t)UINT32_MAX));

	(void)aging;
	if (!to)
		return;
	to->stream = nps_u16(p + 26);
	to->task = nps_u32(p + 28);
}

static void task_track_v2(struct nps_host_records *records, struct nps_cann_capture *capture,
			  const uint8_t *p, bool aging)
{
	struct nps_host_launch *to = launch(records, capture, p, nps_u32(p + 36));

	(void)aging;
	if (!to)
		return;
	to->stream = nps_u32(p + 28);
	to->task = nps_u32(p + 32);
}

static void node_basic_info(struct nps_host_records *records, struct nps_cann_capture *capture,
			    const uint8_t *p, bool aging)
{
	struct nps_host_event *event = host_event_add(records, capture, NPS_HOST_NODE, p);

	if (!event)
		return;
	event->node.name = nps_u64(p + 24);
	event->node.core = nps_u32(p + 32);
	event->node.type = nps_u64(p + 36);
	event->node.blocks = nps_u32(p + 44);
	event->node.hf32 = nps_u32(p + 48) != 0;
	event->node.state = aging ? NPS_STATE_DYNAMIC : NPS_STATE_STATIC;
	event->node.tid = nps_u32(p + 8);
}

static void node_attr_info(struct nps_host_records *records, struct nps_cann_capture *capture,
			   const uint8_t *p, bool aging)
{
	struct nps_host_event *event = host_event_add(records, capture, NPS_HOST_ATTRIBUTES, p);

	(void)aging;
	if (!event)
		return;
	event->attributes.name = nps_u64(p + 24);
	event->attributes.attributes = nps_u64(p + 36);
	event->attributes.tid = nps_u32(p + 8);
}

static void hccl_op_info(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
			 bool aging)
{
	struct nps_host_event *event = host_event_add(records, capture, NPS_HOST_COMM_OP, p);

	(void)aging;
	if (!event)
		return;
	event->comm_op.flags = p[24];
	event->comm_op.dtype = p[25];
	event->comm_op.algorithm = nps_u64(p + 26);
	event->comm_op.count = nps_u64(p + 34);
	event->comm_op.group = nps_u64(p + 42);
	event->comm_op.tid = nps_u32(p + 8);
}

/* OPERATION_AT: where the record has the kind of the copy. */
static void copy_info(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
		      size_t operation_at)
{
	struct nps_host_event *event = host_event_add(records, capture, NPS_HOST_COPY, p);

	if (!event)
		return;
	event->copy.bytes = nps_u64(p + 24);
	event->copy.operation = nps_u16(p + operation_at);
	event->copy.tid = nps_u32(p + 8);
}

static void memcpy_info(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
			bool aging)
{
	(void)aging;
	copy_info(records, capture, p, 40);
}

static void memcpy_ext_info(struct nps_host_records *records, struct nps_cann_capture *capture,
			    const uint8_t *p, bool aging)
{
	(void)aging;
	copy_info(records, capture, p, 32);
}

static void captured(struct nps_host_records *records, struct nps_cann_capture *capture,
		     struct nps_captured row)
{
	struct nps_captured *to = nps_cann_capture__push(capture, &records->captured);

	if (to)
		*to = row;
}

/* The record is a begin or an end: they are joined when all are known. */
static void capture_stream_info(struct nps_host_records *records, struct nps_cann_capture *capture,
				const uint8_t *p, bool aging)
{
	uint64_t time = nps_u64(p + 16);
	bool end = nps_u16(p + 24);

	(void)aging;
	captured(records, capture,
		 (struct nps_captured){ .begin = time,
					.end = end ? 0 : UINT64_MAX,
					.device = nps_u16(p + 32) & 0xfff,
					.stream = nps_u16(p + 26),
					.model = nps_u16(p + 30) });
}

static void capture_stream_info_v2(struct nps_host_records *records, struct nps_cann_capture *capture,
				   const uint8_t *p, bool aging)
{
	uint64_t time = nps_u64(p + 16);

	(void)aging;
	captured(records, capture,
		 (struct nps_captured){ .begin = time,
					.end = p[26] ? 0 : UINT64_MAX,
					.device = nps_u16(p + 24) & 0xfff,
					.stream = nps_u32(p + 28),
					.model = nps_u32(p + 36) });
}

/* --- additional records ------------------------------------------------------------------------------- */

static void tensor_info(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
			bool aging)
{
	uint32_t n = nps_u32(p + 32), list;
	struct nps_host_event *event;

	(void)aging;
	if (n > TENSORS_MOST) {
		nps_model__lost(capture->model, 1, "records of tensor_info with impossible counts");
		return;
	}
	list = nps_tensors__add(&capture->tensors, p + 36, n);
	if (list == NPS_NONE)
		capture->err = -ENOMEM;
	event = host_event_add(records, capture, NPS_HOST_TENSORS, p);
	if (!event)
		return;
	event->tensors.name = nps_u64(p + 24);
	event->tensors.list = list;
	event->tensors.tid = nps_u32(p + 8);
}

static void context_id_info(struct nps_host_records *records, struct nps_cann_capture *capture,
			    const uint8_t *p, bool aging)
{
	uint32_t n = nps_u32(p + 32), first = records->contexts.len;
	struct nps_host_event *event;

	(void)aging;
	if (n > CONTEXTS_MOST || (nps_u16(p + 2) == NPS_LEVEL_COMM && n != 2)) {
		nps_model__lost(capture->model, 1, "records of context_id_info with impossible counts");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *id = nps_cann_capture__push(capture, &records->contexts);

		if (!id)
			return;
		*id = nps_u32(p + 36 + 4 * i);
	}
	event = host_event_add(records, capture, NPS_HOST_CONTEXTS, p);
	if (!event)
		return;
	event->contexts.name = nps_u64(p + 24);
	event->contexts.first = first;
	event->contexts.count = n;
	event->contexts.level = nps_u16(p + 2);
	event->contexts.tid = nps_u32(p + 8);
}

static void hccl_info(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
		      bool aging)
{
	struct nps_part_info *part = nps_cann_capture__push(capture, &records->parts);
	struct nps_host_event *event;
	uint64_t bits = nps_u64(p + 88);

	(void)aging;
	if (!part)
		return;
	part->known = 1;
	part->context = nps_u32(p + 68);
	part->name = nps_dictionary__name(&capture->names, nps_u64(p + 24));
	part->group = nps_u64(p + 40);
	part->local = nps_u32(p + 48);
	part->remote = nps_u32(p + 52);
	part->ranks = nps_u32(p + 56);
	part->plane = nps_u32(p + 64);
	part->notify = nps_u64(p + 72);
	memcpy(&part->estimate, &bits, sizeof(bits));
	part->bytes = nps_u64(p + 112);
	if (part->bytes < 0 || part->bytes > TRANSFER_MOST) {
		nps_model__lost(capture->model, 1, "records of hccl_info with impossible sizes");
		part->bytes = 0;
	}
	part->dtype = nps_u32(p + 124);
	part->link = nps_u32(p + 128);
	part->transport = nps_u32(p + 132);
	part->rdma = nps_u32(p + 136);
	event = host_event_add(records, capture, NPS_HOST_COMM_PART, p);
	if (!event)
		return;
	event->part.row = records->parts.len - 1;
	event->part.tid = nps_u32(p + 8);
}

static void fusion_op_info(struct nps_host_records *records, struct nps_cann_capture *capture,
			   const uint8_t *p, bool aging)
{
	struct nps_fusion *fusion;
	struct nps_host_event *event;

	(void)aging;
	if (nps_u32(p + 32) > ORIGINALS_MOST) {
		nps_model__lost(capture->model, 1, "records of fusion_op_info with impossible counts");
		return;
	}
	fusion = nps_cann_capture__push(capture, &records->fusions);
	if (!fusion)
		return;
	fusion->name = nps_u64(p + 24);
	fusion->noriginals = nps_u32(p + 32);
	fusion->input = nps_u64(p + 36);
	fusion->output = nps_u64(p + 44);
	fusion->weight = nps_u64(p + 52);
	fusion->workspace = nps_u64(p + 60);
	fusion->total = nps_u64(p + 68);
	for (int i = 0; i < ORIGINALS_MOST; i++)
		fusion->originals[i] = nps_u64(p + 76 + 8 * i);
	event = host_event_add(records, capture, NPS_HOST_FUSION, p);
	if (!event)
		return;
	event->fusion.row = records->fusions.len - 1;
	event->fusion.tid = nps_u32(p + 8);
}

static void graph_id_map(struct nps_host_records *records, struct nps_cann_capture *capture, const uint8_t *p,
			 bool aging)
{
	uint32_t name = nps_dictionary__name(&capture->names, nps_u64(p + 24));

	(void)aging;
	if (nps_map__put(&records->graphs, nps_u32(p + 36), name))
		capture->err = -ENOMEM;
}

/* --- all of them -------------------------------------------------------------------------------------- */

static const struct host_file files[] = {
	{ "compact.task_track", NULL, 64, task_track },
	{ "compact.task_track_v2", "compact.task_track", 64, task_track_v2 },
	{ "compact.node_basic_info", NULL, 64, node_basic_info },
	{ "compact.node_attr_info", NULL, 64, node_attr_info },
	{ "compact.hccl_op_info", NULL, 64, hccl_op_info },
	{ "compact.memcpy_info", NULL, 64, memcpy_info },
	{ "compact.memcpy_ext_info", "compact.memcpy_info", 64, memcpy_ext_info },
	{ "compact.capture_stream_info", NULL, 64, capture_stream_info },
	{ "compact.capture_stream_info_v2", "compact.capture_stream_info", 64, capture_stream_info_v2 },
	{ "additional.tensor_info", NULL, 256, tensor_info },
	{ "additional.context_id_info", NULL, 256, context_id_info },
	{ "additional.hccl_info", NULL, 256, hccl_info },
	{ "additional.fusion_op_info", NULL, 256, fusion_op_info },
	{ "additional.graph_id_map", NULL, 256, graph_id_map },
};

static const char *const ages[] = { "unaging.", "aging." };

static bool host_file_exists(const struct nps_cann_capture *capture, const char *name)
{
	char base[96];

	for (size_t i = 0; name && i < NPS_ARRAY_SIZE(ages); i++) {
		snprintf(base, sizeof(base), "%s%s", ages[i], name);
		if (nps_slices__size(&capture->host.files, base))
			return true;
	}
	return false;
}

static void host_file_read(struct nps_host_records *records, struct nps_cann_capture *capture,
			   const struct host_file *file, size_t age)
{
	struct nps_slice_reader reader;
	const uint8_t *p;
	char base[96];
	int err;

	snprintf(base, sizeof(base), "%s%s", ages[age], file->name);
	err = nps_slice_reader__open(&reader, capture->model, &capture->host.files, base, file->size,
				     (struct nps_magic){ MAGIC, 0 });
	capture->err = capture->err ? capture->err : err;
	while (!capture->err && (p = nps_slice_reader__next(&reader)))
		file->record(records, capture, p, age == 1);
	nps_slice_reader__close(&reader);
	nps_vec__cool(&records->parts);
}

static int compare_captured(const void *a, const void *b)
{
	const struct nps_captured *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* A capture ends with the next end of its stream, or with the next begin. */
static void close_captured(struct nps_host_records *records)
{
	struct nps_captured *rows = records->captured.data;
	size_t n = 0;

	if (!records->captured.len)
		return;
	qsort(rows, records->captured.len, sizeof(*rows), compare_captured);
	for (size_t i = 0; i < records->captured.len; i++) {
		struct nps_captured *last = n ? &rows[n - 1] : NULL;

		if (last && last->end == UINT64_MAX && last->device == rows[i].device &&
		    last->stream == rows[i].stream)
			last->end = rows[i].begin;
		if (rows[i].end)
			rows[n++] = rows[i];
	}
	records->captured.len = n;
}

int nps_host_records__read(struct nps_host_records *records, struct nps_cann_capture *capture)
{
	int tmpfd = capture->model->tmpfd;

	*records = (struct nps_host_records){ 0 };
	nps_ext_sort__init(&records->events, tmpfd, sizeof(struct nps_host_event));
	nps_vec__init(&records->contexts, tmpfd, sizeof(uint32_t));
	nps_vec__init(&records->parts, tmpfd, sizeof(struct nps_part_info));
	nps_vec__init(&records->fusions, tmpfd, sizeof(struct nps_fusion));
	nps_vec__init(&records->captured, tmpfd, sizeof(struct nps_captured));
	read_calls(records, capture);
	for (size_t i = 0; !capture->err && i < NPS_ARRAY_SIZE(files); i++) {
		if (host_file_exists(capture, files[i].instead))
			continue;
		for (size_t age = 0; age < NPS_ARRAY_SIZE(ages); age++)
			host_file_read(records, capture, &files[i], age);
	}
	close_captured(records);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&records->events);
	return capture->err;
}

void nps_host_records__free(struct nps_host_records *records)
{
	nps_ext_sort__free(&records->events);
	nps_vec__free(&records->contexts);
	nps_vec__free(&records->parts);
	nps_vec__free(&records->fusions);
	nps_vec__free(&records->captured);
	nps_map__free(&records->graphs);
}
