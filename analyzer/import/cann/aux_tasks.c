/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of 256 bytes: AI CPU work and the memory of graph operators; and the older files of AI CPU work. */
#include "import/cann/aux_read.h"

#include <stdlib.h>
#include <string.h>

#define LEVEL_AICPU 6000
#define LEVEL_NODE 10000
#define NODE_MEMORY 6
#define NODE_STATIC 11
#define MODEL_GRAPH 0
#define LEVEL_MODEL 15000
#define PAYLOAD 24

enum aicpu_kind { AICPU_NODE, AICPU_DP, AICPU_MODEL, AICPU_MI };

#define TAG_NODE 60 /* of the older files */
#define TAG_DP 100
#define GET_NEXT 1

/* --- AI CPU --- */

/* Device counter to device counter, in us. */
static double ticks_us(const struct nps_aux *aux, const uint8_t *from, const uint8_t *to)
{
	uint64_t first = nps_u64(from), last = nps_u64(to), ns;

	if (!first || last < first || !aux->dir->device_hz ||
	    !nps_cann_ticks__ns(last - first, aux->dir->device_hz, &ns))
		return NPS_NAN;
	return ns / 1000.0;
}

static double passed(const uint8_t *from, const uint8_t *to)
{
	return nps_u64(to) >= nps_u64(from) ? (double)(nps_u64(to) - nps_u64(from)) : NPS_NAN;
}

/* P: times begin 8 bytes on; both generations agree from there. */
static void node(struct nps_aux *aux, uint64_t stream, uint64_t task, const uint8_t *p)
{
	enum {
		START_TICK = 16,
		COMPUTE = 24,
		COPY = 32,
		COPIED = 40,
		END_TICK = 56,
		SUBMIT = 72,
		AFTER = 96,
		DISPATCH = 108
	};
	struct nps_aicpu_table *t = &aux->model->aicpu;
	uint64_t ns;
	size_t row;

	if (!nps_aux__time(aux, NPS_AUX_TICKS, nps_u64(p + START_TICK), &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->node[row] = NPS_NONE;
	t->compute[row] = passed(p + COMPUTE, p + COPY);
	t->memcpy[row] = passed(p + COPY, p + COPIED);
	t->task_time[row] = ticks_us(aux, p + START_TICK, p + END_TICK);
	t->dispatch[row] = nps_u32(p + DISPATCH);
	t->total[row] = ticks_us(aux, p + SUBMIT, p + AFTER);
	t->stream[row] = nps_cann_dir__v6(aux->dir) ? stream : stream % 2048;
	t->task[row] = task;
}

/* The text of LEN bytes that ends at its first NUL. */
static uint32_t short_text(struct nps_aux *aux, const uint8_t *p, size_t len)
{
	char text[65];

	memcpy(text, p, len);
	text[len] = 0;
	return nps_aux__text(aux, text);
}

static void put_dp(struct nps_aux *aux, enum nps_aux_clock clock, uint64_t time, const uint8_t *p)
{
	enum { ACTION = 16, SOURCE = 64, SIZE = ACTION + SOURCE + 8 };
	struct nps_dp_table *t = &aux->model->dp;
	uint64_t ns;
	size_t row;

	if (!nps_aux__time(aux, clock, time, &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->action[row] = short_text(aux, p, ACTION);
	t->source[row] = short_text(aux, p + ACTION, SOURCE);
	t->size[row] = nps_u64(p + SIZE);
}

/* START, END: us of the device's clock. */
static void mi(struct nps_aux *aux, const char *name, uint64_t queue, uint64_t start, uint64_t end)
{
	struct nps_aicpu_mi_table *t = &aux->model->aicpu_mi;
	uint64_t from, to;
	size_t row;

	if (start > NPS_AUX_MOST_TIME / 1000 || end > NPS_AUX_MOST_TIME / 1000 || end < start) {
		aux->bad++;
		return;
	}
	if (!nps_aux__time(aux, NPS_AUX_RAW, start * 1000, &from) ||
	    !nps_aux__time(aux, NPS_AUX_RAW, end * 1000, &to) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->node[row] = nps_aux__text(aux, name);
	t->start[row] = from;
	t->end[row] = to;
	t->queue[row] = queue;
}

static void aicpu(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	const uint8_t *p = record + PAYLOAD;

	if (v[0] != LEVEL_AICPU) {
		aux->bad++;
		return;
	}
	/* Other records are about collectives, which are imported with the tasks, or have no table. */
	switch (v[1]) {
	case AICPU_NODE:
		node(aux, nps_u16(p), nps_u16(p + 2), p);
		break;
	case AICPU_DP:
		put_dp(aux, NPS_AUX_TICKS, v[2], p);
		break;
	case AICPU_MI:
		mi(aux, nps_u32(p) == GET_NEXT ? "GetNext_dequeue_wait" : "N/A", nps_u64(p + 8),
		   nps_u64(p + 16), nps_u64(p + 24));
		break;
	}
}

static void old_node(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	if (v[0] == TAG_NODE)
		node(aux, v[1], v[2], record);
	else
		aux->bad++;
}

/* Its times are those of the host. */
static void old_dp(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	if (v[0] == TAG_DP)
		put_dp(aux, NPS_AUX_HOST_RAW, v[1], record + 16);
	else
		aux->bad++;
}

/* `Node:NAME, queue size:N, Run start:US, Run end:US`; a NUL follows each line, and so begins the next. */
static const char *line_field(const char *text, const char *key, uint64_t *value)
{
	const char *p = strstr(text, key);

	if (!p)
		return NULL;
	p += strlen(key);
	return nps_aux__number(&p, value) ? p : NULL;
}

static bool old_mi(struct nps_aux *aux, const char *text)
{
	uint64_t queue, start, end;
	char name[128];
	size_t len;

	if (!*text)
		return true;
	if (strncmp(text, "Node:", 5) || !line_field(text, "queue size:", &queue) ||
	    !line_field(text, "Run start:", &start) || !line_field(text, "Run end:", &end))
		return false;
	len = NPS_MIN(strcspn(text + 5, ","), sizeof(name) - 1);
	memcpy(name, text + 5, len);
	name[len] = 0;
	mi(aux, name, queue, start, end);
	return true;
}

/* --- operators --- */

static bool is_node(struct nps_aux *aux, const uint64_t *v, uint64_t level, uint64_t type)
{
	if (v[0] == level && v[1] == type)
		return true;
	aux->bad++;
	return false;
}

static void task_memory(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_npu_op_mem_table *t = &aux->model->npu_op_mem;
	const uint8_t *p = record + PAYLOAD;
	int64_t size = (int64_t)nps_u64(p + 8);
	uint64_t ns;
	size_t row;

	if (!is_node(aux, v, LEVEL_NODE, NODE_MEMORY) || !nps_aux__time(aux, NPS_AUX_HOST, v[3], &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return;
	t->name[row] = nps_aux__name(aux, nps_u64(p + 16));
	t->address[row] = (int64_t)nps_u64(p);
	t->type[row] = nps_aux__text(aux, size < 0 ? "release" : "allocate");
	t->size[row] = size < 0 ? -NPS_MAX(size, -INT64_MAX) : size;
	t->timestamp[row] = ns;
	t->gtid[row] = (uint64_t)aux->dir->pid << 32 | v[2];
	t->allocated[row] = nps_u64(p + 24) & INT64_MAX;
	t->reserved[row] = nps_u64(p + 32) & INT64_MAX;
	t->component[row] = nps_aux__text(aux, "GE");
	t->device[row] = nps_u32(p + 40);
}

static void static_memory(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_static_op_mem_table *t = &aux->model->static_op_mem;
	const uint8_t *p = record + PAYLOAD;
	size_t row;

	if (!is_node(aux, v, LEVEL_NODE, NODE_STATIC) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->size[row] = (int64_t)nps_u64(p);
	t->name[row] = nps_aux__name(aux, nps_u64(p + 8));
	t->first[row] = (int64_t)nps_u64(p + 16);
	t->last[row] = (int64_t)nps_u64(p + 24);
	t->graph[row] = nps_u32(p + 48);
	t->model[row] = NPS_NONE;
}

/* Names of models by graph: values[0] is the text. */
static void put_graph_name(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	const uint8_t *p = record + PAYLOAD;
	struct nps_aux_last *last;
	bool first;

	if (!is_node(aux, v, LEVEL_MODEL, MODEL_GRAPH))
		return;
	last = nps_aux__last(aux, nps_u32(p + 8), &first);
	if (last)
		last->values[0] = nps_aux__name(aux, nps_u64(p));
}

static void end_graphs(struct nps_aux *aux)
{
	const struct nps_static_op_mem_table *t = &aux->model->static_op_mem;

	for (size_t i = 0; i < t->t.len; i++) {
		uint32_t row = nps_map__get(&aux->of, t->graph[i]);

		if (row != NPS_NONE)
			t->model[i] = NPS_AT(&aux->lasts, struct nps_aux_last, row).values[0];
	}
}

#define CANN ((struct nps_magic){ .value = 0x5a5a, .offset = 0 })
#define HEADER                                                                                               \
	{ 2, 2, 1, 0 }, { 4, 4, 1, 0 }, { 8, 4, 1, 0 },                                                      \
	{                                                                                                    \
		16, 8, 1, 0                                                                                  \
	} /* level, type, thread, time */

static const struct nps_aux_format device_formats[] = {
	{ "aicpu.data", 256, CANN, { { 2, 2, 1, 0 }, { 4, 4, 1, 0 }, { 16, 8, 1, 0 } }, aicpu, NULL },
	{ "DATA_PREPROCESS.AICPU",
	  128,
	  CANN,
	  { { 2, 2, 1, 0 }, { 4, 2, 1, 0 }, { 6, 2, 1, 0 } },
	  old_node,
	  NULL },
	{ "DATA_PREPROCESS.DP", 128, CANN, { { 2, 2, 1, 0 }, { 8, 8, 1, 0 } }, old_dp, NULL },
};

/* The names of graphs come last: they are put where operators are. */
static const struct nps_aux_format host_formats[] = {
	{ "unaging.additional.task_memory_info", 256, CANN, { HEADER }, task_memory, NULL },
	{ "aging.additional.task_memory_info", 256, CANN, { HEADER }, task_memory, NULL },
	{ "unaging.additional.static_op_mem", 256, CANN, { HEADER }, static_memory, NULL },
	{ "aging.additional.static_op_mem", 256, CANN, { HEADER }, static_memory, NULL },
	{ "unaging.additional.graph_id_map", 256, CANN, { HEADER }, put_graph_name, end_graphs },
	{ "aging.additional.graph_id_map", 256, CANN, { HEADER }, put_graph_name, end_graphs },
};

void nps_aux__aicpu(struct nps_aux *aux)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(device_formats); i++)
		nps_aux__records(aux, &device_formats[i]);
	nps_aux__lines(aux, "DATA_PREPROCESS.AICPUMI", old_mi, NULL);
}

void nps_aux__operators(struct nps_aux *aux)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(host_formats); i++)
		if (host_formats[i].row != put_graph_name || aux->model->static_op_mem.t.len)
			nps_aux__records(aux, &host_formats[i]);
}
