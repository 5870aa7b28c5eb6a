/* SPDX-License-Identifier: BSD-2-Clause */
/* What the capture holds, what of it was lost, and how well the clocks of its devices are known. */
#include "findings/findings.h"

#include <cjson/cJSON.h>

static uint64_t torch_ops(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	uint64_t n = 0;

	for (size_t i = 0; i < m->torch.t.len; i++) {
		nps_pace__step(&pace);
		n += m->torch.type[i] == NPS_API_TORCH_OP;
	}
	return n - m->step_marks;
}

/* Those that were summed up, too; a page fault is none. */
static double count_system_calls(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	double n = 0;

	for (size_t i = 0; i < m->osrt.t.len; i++, nps_pace__step(&pace))
		n += m->osrt.shape[i] != NPS_OS_FAULT;
	for (size_t i = 0; i < m->osrt_sum.t.len; i++)
		n += (double)m->osrt_sum.count[i];
	return n;
}

#define CAPTURE_COLUMNS(C)                                                                                   \
	C("pid", COUNT, NULL, m->pid)                                                                        \
	C("rank", COUNT, NULL, m->has_rank ? m->rank : NPS_NAN, .optional = true)                            \
	C("start_us", TIME, NULL, m->end > m->start ? m->start : 0)                                          \
	C("end_us", TIME, NULL, m->end > m->start ? m->end : 0)                                              \
	C("device_tasks", COUNT, "device tasks", m->task.t.len)                                              \
	C("tasks_with_host_bounds_only", COUNT, "  of these known from the host only", m->bounds.t.len)      \
	C("kernels", COUNT, "kernels", m->compute.t.len)                                                     \
	C("collectives", COUNT, "collectives", m->comm_op.t.len)                                             \
	C("cann_calls", COUNT, "CANN calls", m->api.t.len)                                                   \
	C("torch_operators", COUNT, "torch operators", torch_ops(m))                                         \
	C("system_calls", COUNT, "system calls", count_system_calls(m))                                      \
	C("steps", COUNT, "steps", m->step.t.len, .print = 1)                                                \
	C("stacks", COUNT, NULL, m->stacks ? m->stacks : NPS_NAN, .optional = true)                          \
	C("whole_stacks", COUNT, NULL, m->stacks ? m->whole_stacks : NPS_NAN, .optional = true)

NPS_FIND_TABLE(capture, NULL, "overview", struct nps_model, void, CAPTURE_COLUMNS)

#define LOST_COLUMNS(C)                                                                                      \
	C("what", TEXT, "what", r->what)                                                                     \
	C("count", COUNT, "count", r->count)

NPS_FIND_TABLE(losses, "capture.lost", "lost or not read", struct nps_model, struct nps_lost, LOST_COLUMNS)

/* The clock of a device: how wrong it can be. */
struct device_clock {
	uint32_t device, source;
	double length, sum; /* of its pieces: ns, ns * ns */
	int64_t worst; /* ns */
};

#define CLOCK_COLUMNS(C)                                                                                     \
	C("device", COUNT, "NPU", r->device)                                                                 \
	C("source", TEXT, "known by", nps_model__text(m, r->source), .print = 4)                             \
	C("mean_error_us", EXACT_US, "error, mean", r->length > 0 ? r->sum / r->length / 1e3 : 0)            \
	C("worst_error_us", EXACT_US, "at most", (double)r->worst / 1e3)

NPS_FIND_TABLE(clocks, "capture.device_clocks", "device clocks against the host's, us", struct nps_model,
	       struct device_clock, CLOCK_COLUMNS)

/* Adds the device in ROW of the model's table. Returns how many rows it has. */
static size_t add_clock(cJSON *list, const struct nps_model *m, size_t row)
{
	const struct nps_clock_table *t = &m->clock;
	struct device_clock clock = { .device = t->device[row], .source = t->source[row] };
	size_t end = row;

	for (; end < t->t.len && t->device[end] == t->device[row]; end++) {
		double span = (double)(t->end[end] - t->start[end]);

		clock.length += span;
		clock.sum += span * (double)t->error[end];
		clock.worst = NPS_MAX(clock.worst, t->error[end]);
	}
	cJSON_AddItemToArray(list, nps_find__object(&clocks, m, &clock));
	return end - row;
}

static int overview_find(struct nps_find *find)
{
	const struct nps_model *m = find->model;
	cJSON *list;

	nps_find__members(cJSON_AddObjectToObject(find->document, "capture"), &capture, m, NULL);
	list = m->clock.t.len ? nps_find__rows(find->document, &clocks, m, NULL, 0, 0) : NULL;
	for (size_t i = 0; i < m->clock.t.len; i += add_clock(list, m, i))
		;
	nps_find__rows(find->document, &losses, m, m->losses.data, m->losses.len, m->losses.elem);
	return 0;
}

static void print_count(const struct nps_view *v, const char *title, double value)
{
	fprintf(v->out, "%-36s %12.0f\n", title, value);
}

static void overview_show(const struct nps_view *v)
{
	const cJSON *object = nps_view__at(v, "capture");
	double stacks = nps_view__number(object, "stacks");

	fprintf(v->out, "\noverview\n");
	if (cJSON_HasObjectItem(object, "rank"))
		print_count(v, "rank", nps_view__number(object, "rank"));
	if (nps_view__number(object, "pid") > 0)
		print_count(v, "process", nps_view__number(object, "pid"));
	fprintf(v->out, "%-36s %12.3f\n", "length, ms",
		(nps_view__number(object, "end_us") - v->start_us) / 1e3);
	nps_view__counts(v, &capture, object);
	if (stacks > 0)
		fprintf(v->out, "%-36s %12.0f, %.1f %% of them whole, down to where the thread began\n",
			"stacks", stacks,
			nps_percent((uint64_t)nps_view__number(object, "whole_stacks"), (uint64_t)stacks));
	nps_view__table(v, &losses);
	nps_view__table(v, &clocks);
	nps_view__table(v, nps_find_devices);
}

const struct nps_find_question nps_question_overview = { .find = overview_find, .show = overview_show };
