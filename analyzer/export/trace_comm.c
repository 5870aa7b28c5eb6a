/* SPDX-License-Identifier: BSD-2-Clause */
/* Communication (HCCL in generation A): a lane for the collectives of each group, and one for each plane. */
#include "export/trace_event.h"

#include <errno.h>
#include <stdio.h>

#define PLANES 256 /* more than any chip has; tasks beyond it have no lane here, but are on their stream's */

static uint64_t group_key(uint32_t text, uint32_t device)
{
	return (uint64_t)text << 32 | device;
}

static struct nps_trace_group *trace_group(const struct nps_trace *t, uint32_t text, uint32_t device)
{
	uint32_t row = nps_map__get(&t->group_of, group_key(text, nps_trace__device(t, device)));

	return row == NPS_NONE ? NULL : &NPS_AT(&t->groups, struct nps_trace_group, row);
}

static int add_group(struct nps_trace *t, uint32_t text, uint32_t device)
{
	struct nps_trace_group *group;

	device = nps_trace__device(t, device);
	if (trace_group(t, text, device))
		return 0;
	group = nps_vec__push(&t->groups);
	if (!group)
		return -errno;
	*group = (struct nps_trace_group){ .text = text, .device = device };
	return nps_map__put(&t->group_of, group_key(text, device), t->groups.len - 1);
}

static bool has_lane(int64_t plane)
{
	return plane >= 0 && plane < PLANES;
}

/* Groups in order of their first collective; planes once all groups are known. */
static int find_groups(struct nps_trace *t)
{
	const struct nps_comm_op_table *op = &t->m->comm_op;
	const struct nps_comm_task_table *task = &t->m->comm_task;
	int err = 0;

	for (size_t i = 0; !err && i < op->t.len; i++) {
		err = add_group(t, op->group[i], op->device[i]);
		nps_pace__step(&t->pace);
	}
	for (size_t i = 0; !err && !t->pruned && i < task->t.len; i++) {
		uint32_t device = t->m->task.device[task->task[i]];
		struct nps_trace_group *group;

		nps_pace__step(&t->pace);
		if (!has_lane(task->plane[i]))
			continue;
		err = add_group(t, task->group[i], device);
		if (err)
			break;
		group = trace_group(t, task->group[i], device);
		group->planes = NPS_MAX(group->planes, (uint32_t)task->plane[i] + 1);
	}
	return err;
}

int nps_trace__scan_comm(struct nps_trace *t)
{
	int err = find_groups(t);
	uint32_t lane = 0;

	for (size_t i = 0; !err && i < t->groups.len; i++) {
		struct nps_trace_group *group = &NPS_AT(&t->groups, struct nps_trace_group, i);

		if (t->pruned && t->gen_a) /* a name is all that its level 0 has of planes */
			group->planes = 1;
		group->lane = lane;
		lane += 1 + group->planes;
		t->devices |= 1ULL << group->device;
	}
	return err;
}

static void name_group(struct nps_trace *t, const struct nps_trace_group *group, size_t number)
{
	char name[4096];

	if (t->gen_a)
		snprintf(name, sizeof(name), "Group %zu Communication", number);
	else
		snprintf(name, sizeof(name), "Group %.4000s Communication", nps_trace__text(t, group->text));
	nps_trace__name_thread(&t->w, nps_trace__pid(t, NPS_TRACE_COMM, group->device), group->lane, name);
}

void nps_trace__name_comm(struct nps_trace *t)
{
	uint64_t layers = 0;
	char name[64];

	for (size_t i = 0; i < t->groups.len; i++) {
		const struct nps_trace_group *group = &NPS_AT(&t->groups, struct nps_trace_group, i);
		uint64_t pid = nps_trace__pid(t, NPS_TRACE_COMM, group->device);
		struct nps_writer *w = &t->w;

		if (!(layers >> group->device & 1))
			nps_trace__name_layer(t, NPS_TRACE_COMM, group->device);
		layers |= 1ULL << group->device;
		name_group(t, group, i);
		nps_trace__sort_thread(w, pid, group->lane, group->lane);
		for (uint32_t p = 0; p < group->planes; p++) {
			snprintf(name, sizeof(name), "Plane %u", p);
			nps_trace__name_thread(w, pid, group->lane + 1 + p, name);
			nps_trace__sort_thread(w, pid, group->lane + 1 + p, group->lane + 1 + p);
		}
	}
}

/* --- the vendor's enums --- */

struct word {
	uint32_t number;
	const char *name;
};

static const char *word(const struct word *words, size_t len, uint64_t number)
{
	if (number == 65534)
		return "N/A";
	for (size_t i = 0; i < len; i++)
		if (words[i].number == number)
			return words[i].name;
	return "INVALID_TYPE";
}

static const char *data_type(uint64_t number)
{
	static const struct word words[] = { { 0, "INT8" },	{ 1, "INT16" },	   { 2, "INT32" },
					     { 3, "FP16" },	{ 4, "FP32" },	   { 5, "INT64" },
					     { 6, "UINT64" },	{ 7, "UINT8" },	   { 8, "UINT16" },
					     { 9, "UINT32" },	{ 10, "FP64" },	   { 11, "BFP16" },
					     { 12, "INT128" },	{ 14, "HIF8" },	   { 15, "FP8E4M3" },
					     { 16, "FP8E5M2" }, { 17, "FP8E8M0" }, { 255, "RESERVED" } };

	return word(words, NPS_ARRAY_SIZE(words), number);
}

static const char *link_type(const struct nps_trace *t, uint32_t number)
{
	static const struct word words[] = { { 0, "ON_CHIP" },	     { 1, "HCCS" }, { 2, "PCIE" },
					     { 3, "ROCE" },	     { 4, "SIO" },  { 5, "HCCS_SW" },
					     { 6, "STANDARD_ROCE" }, { 7, "UB" },   { 8, "UBoE" },
					     { 255, "RESERVED" } };

	return t->gen_a && number == 7 ? "RESERVED" : word(words, NPS_ARRAY_SIZE(words), number);
}

static const char *transport_type(uint32_t number)
{
	static const struct word words[] = { { 0, "SDMA" }, { 1, "RDMA" }, { 2, "LOCAL" },
					     { 3, "UB" },   { 4, "ROCE" }, { 255, "RESERVED" } };

	return word(words, NPS_ARRAY_SIZE(words), number);
}

/* --- events --- */

static void number_or_na(struct nps_writer *w, const char *key, int64_t value)
{
	nps_writer__lit(w, key);
	if (value < 0)
		nps_writer__lit(w, "\"N/A\"");
	else
		nps_writer__u64(w, value);
}

static void real_or_na(struct nps_writer *w, const char *key, double value)
{
	nps_writer__lit(w, key);
	if (isfinite(value))
		nps_writer__number(w, value);
	else
		nps_writer__lit(w, "\"N/A\"");
}

uint32_t nps_trace__comm_lane(const struct nps_trace *t, const struct nps_item *item)
{
	return trace_group(t, nps_item__tid(item), nps_item__device(item))->lane;
}

static const char *yes_or_no(int64_t value)
{
	return value == NPS_NULL ? "N/A" : value > 0 ? "yes" : "no";
}

static void collective_measured_args(struct nps_trace *t, size_t row)
{
	const struct nps_comm_op_table *op = &t->m->comm_op;

	if (!t->own)
		return;
	nps_trace__string(&t->w, ",\"time_source\":",
			  op->measured[row] == op->tasks[row] ? "device log"
			  : op->measured[row]		      ? "device log of a part of its tasks"
							      : "host bounds");
}

void nps_trace__comm_op(struct nps_trace *t, const struct nps_item *item)
{
	const struct nps_comm_op_table *op = &t->m->comm_op;
	uint64_t pid = nps_trace__pid(t, NPS_TRACE_COMM, nps_item__device(item));
	uint32_t row = item->row, lane = nps_trace__comm_lane(t, item);
	struct nps_writer *w = &t->w;

	nps_trace__slice(w, nps_trace__text(t, item->name), pid, lane, item->start,
			 nps_model__comm_end(t->m, row));
	nps_writer__lit(w, ",\"args\":{");
	if (!t->gen_a)
		number_or_na(w, "\"rank_size\":", op->ranks[row]);
	nps_trace__u64(w, t->gen_a ? "\"connection_id\":" : ",\"connection_id\":", item->connection);
	nps_trace__u64(w, ",\"model id\":", op->model[row]);
	nps_trace__string(w,
			  ",\"data_type\":", op->dtype[row] == NPS_NULL ? "N/A" : data_type(op->dtype[row]));
	nps_trace__string(w, ",\"alg_type\":", nps_model__text_or_na(t->m, op->algorithm[row]));
	number_or_na(w, ",\"count\":", op->count[row]);
	if (!t->gen_a) {
		nps_trace__string(w, ",\"relay\":", yes_or_no(op->relay[row]));
		nps_trace__string(w, ",\"retry\":", yes_or_no(op->retry[row]));
	}
	collective_measured_args(t, row);
	nps_writer__lit(w, "}");
	nps_trace__end(w);
	nps_trace__end_comm_link(t, row, pid, lane);
}

static void notify(struct nps_writer *w, int64_t id)
{
	nps_writer__lit(w, ",\"args\":{\"notify_id\":\"");
	if (id == NPS_NO_NOTIFY || id < 0)
		nps_writer__lit(w, "N/A");
	else
		nps_writer__u64(w, id);
	nps_writer__lit(w, "\"");
}

void nps_trace__comm_task(struct nps_trace *t, const struct nps_item *item)
{
	const struct nps_comm_task_table *a = &t->m->comm_task;
	const struct nps_task_table *task = &t->m->task;
	uint32_t row = item->row, of = a->task[row];
	const char *type = nps_trace__text(t, item->name);
	const struct nps_trace_group *group = trace_group(t, nps_item__tid(item), nps_item__device(item));
	struct nps_writer *w = &t->w;

	if (!has_lane(a->plane[row]) || !group)
		return;
	nps_trace__slice(w, type, nps_trace__pid(t, NPS_TRACE_COMM, nps_item__device(item)),
			 group->lane + 1 + a->plane[row], item->start, nps_model__task_end(t->m, of));
	notify(w, a->notify[row]);
	real_or_na(w, ",\"duration estimated(us)\":", a->estimate[row]);
	nps_trace__u64(w, ",\"stream id\":", task->stream[of]);
	nps_trace__u64(w, ",\"task id\":", task->task[of]);
	nps_trace__u64(w, ",\"context id\":", task->context[of]);
	nps_trace__string(w, ",\"task type\":", type);
	nps_trace__u64(w, ",\"src rank\":", a->src[row]);
	nps_trace__u64(w, ",\"dst rank\":", a->dst[row]);
	nps_trace__string(w, ",\"transport type\":", transport_type(a->transport[row]));
	number_or_na(w, ",\"size(Byte)\":", a->size[row]);
	nps_trace__string(w, ", \"data type\":", data_type(a->dtype[row]));
	nps_trace__string(w, ",\"link type\":", link_type(t, a->link[row]));
	real_or_na(w, ",\"bandwidth(GB/s)\":", a->bandwidth[row] / 1e9);
	nps_trace__u64(w, ",\"model id\":", task->model[of]);
	nps_trace__time_source(t, task->source[of], of);
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}
