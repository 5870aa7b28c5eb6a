/* SPDX-License-Identifier: BSD-2-Clause */
/* The operators with the most device time, and why: their shapes, waits in the queue, worst cases. */
#include "findings/findings.h"

#include "derive/group_by.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#define TOP 40 /* types that are looked at closely */
#define SHAPES 64 /* of each */
#define OFTEN 3 /* times that a shape occurs before its mean is used */
#define VARIES 2.0 /* p99 over median from which an operator varies */

struct shape {
	uint32_t text;
	uint64_t count, total;
};

struct hot {
	struct nps_group sum; /* of a type and a core */
	struct nps_histogram time, wait; /* ns on the device; from submission to start */
	uint64_t worst_ns;
	uint32_t worst; /* row of compute */
	struct shape shapes[SHAPES];
	uint32_t nshapes;
	uint64_t unknown_shapes, other_shapes;
};

struct op_ranking {
	const struct nps_model *m;
	const struct nps_submits *submits;
	struct nps_group_by totals; /* by type and core */
	struct nps_map top_of; /* (type, core) -> index of top */
	struct hot *top;
	size_t ntop;
	uint64_t all; /* ns */
	uint64_t unmeasured;
};

static uint32_t op_type(const struct nps_model *m, size_t i)
{
	return nps_model__kernel_type(m, i);
}

static uint64_t op_key(const struct nps_model *m, size_t i)
{
	return (uint64_t)op_type(m, i) << 32 | m->compute.core[i];
}

static bool op_is_measured(const struct nps_model *m, size_t i)
{
	return m->task.source[m->compute.task[i]] != NPS_TIME_HOST_BOUNDS;
}

static uint64_t duration(const struct nps_model *m, size_t i)
{
	return nps_span(m->task.start[m->compute.task[i]], m->task.end[m->compute.task[i]]);
}

static int op_add_total(struct op_ranking *o, size_t i)
{
	struct nps_group *t = nps_group_by__get(&o->totals, op_type(o->m, i), o->m->compute.core[i]);

	if (!t)
		return -errno;
	nps_group__add(t, duration(o->m, i), i);
	o->all += duration(o->m, i);
	return 0;
}

static int total_up(struct op_ranking *o)
{
	struct nps_pace pace = { .model = o->m };
	int err = 0;

	for (size_t i = 0; !err && i < o->m->compute.t.len; i++) {
		nps_pace__step(&pace);
		if (op_is_measured(o->m, i))
			err = op_add_total(o, i);
		else
			o->unmeasured++;
	}
	return err;
}

/* Sorts the totals; the first become `top`. */
static int operators_choose(struct op_ranking *o)
{
	nps_group_by__sort(&o->totals, nps_group__by_total);
	o->ntop = NPS_MIN(nps_group_by__len(&o->totals), (size_t)TOP);
	o->top = calloc(o->ntop + 1, sizeof(*o->top));
	if (!o->top)
		return -ENOMEM;
	for (size_t i = 0; i < o->ntop; i++) {
		const struct nps_group *t = nps_group_by__at(&o->totals, i);

		o->top[i].sum = *t;
		if (nps_map__put(&o->top_of, t->key << 32 | t->sub, i))
			return -ENOMEM;
	}
	return 0;
}

static void add_shape(struct hot *op, uint32_t text, uint32_t na, uint64_t ns)
{
	uint32_t i = 0;

	if (text == NPS_NONE || text == na) {
		op->unknown_shapes++;
		return;
	}
	while (i < op->nshapes && op->shapes[i].text != text)
		i++;
	if (i == SHAPES) {
		op->other_shapes++;
		return;
	}
	if (i == op->nshapes)
		op->shapes[op->nshapes++].text = text;
	op->shapes[i].count++;
	op->shapes[i].total += ns;
}

static void operators_inspect(struct op_ranking *o, size_t i)
{
	const struct nps_model *m = o->m;
	uint32_t slot = nps_map__get(&o->top_of, op_key(m, i)), task = m->compute.task[i];
	uint64_t ns = duration(m, i), submit = nps_submits__of_task(o->submits, task);
	struct hot *op;

	if (slot == NPS_NONE)
		return;
	op = &o->top[slot];
	nps_histogram__add(&op->time, ns);
	if (ns > op->worst_ns || op->time.count == 1) {
		op->worst_ns = ns;
		op->worst = i;
	}
	if (submit && submit <= m->task.start[task])
		nps_histogram__add(&op->wait, m->task.start[task] - submit);
	add_shape(op, m->compute.input_shapes[i], m->na, ns);
}

/* Means of the slowest and the fastest shape that occur often enough to have one. */
static double shape_spread(const struct hot *op)
{
	double least = 0, most = 0;

	for (uint32_t i = 0; i < op->nshapes; i++) {
		double mean = (double)op->shapes[i].total / op->shapes[i].count;

		if (op->shapes[i].count < OFTEN)
			continue;
		most = NPS_MAX(most, mean);
		least = least <= 0 || mean < least ? mean : least;
	}
	return least > 0 ? most / least : 0;
}

static const char *why(const struct hot *op)
{
	double p50 = nps_histogram__quantile(&op->time, 0.5), p99 = nps_histogram__quantile(&op->time, 0.99);

	if (op->time.count < 20 || p50 <= 0 || p99 < VARIES * p50)
		return "takes about the same time each time";
	if (op->unknown_shapes)
		return "varies; its shapes are not known";
	return shape_spread(op) >= VARIES ? "varies with its shapes"
					  : "varies although its shapes explain little of it";
}

static double device_share(const struct op_ranking *o, const struct hot *op)
{
	return o->all ? (double)op->sum.total / o->all : 0;
}

static const char *type_text(const struct op_ranking *o, const struct hot *op)
{
	return nps_model__text_or_na(o->m, (uint32_t)op->sum.key);
}

#define WORST(column) m->m->task.column[m->m->compute.task[r->worst]]

#define OPERATOR_COLUMNS(C)                                                                                  \
	C("count", COUNT, "count", r->sum.count)                                                             \
	C("total_us", NS, "total", r->sum.total)                                                             \
	C("share_of_device_time", SHARE, "share", device_share(m, r))                                        \
	C("mean_us", US, "mean", r->sum.total / 1e3 / r->sum.count)                                          \
	C("p50_us", NS, "p50", nps_histogram__quantile(&r->time, 0.5))                                       \
	C("p99_us", NS, "p99", nps_histogram__quantile(&r->time, 0.99))                                      \
	C("max_us", NS, "max", r->time.most)                                                                 \
	C("queue_wait_p50_us", US, "in queue p50", nps_histogram__quantile_us(&r->wait, 0.5))                \
	C("queue_wait_max_us", US, NULL, nps_histogram__quantile_us(&r->wait, 1))                            \
	C("shapes", COUNT, "shapes", r->nshapes)                                                             \
	C("slowest_shape_over_fastest", NUMBER, NULL, r->nshapes > 1 ? shape_spread(r) : NPS_NAN)            \
	C("why", TEXT, NULL, why(r))                                                                         \
	C("type", TEXT, "type", type_text(m, r), .print = 1)                                                 \
	C("core", TEXT, "core", nps_model__text_or_na(m->m, (uint32_t)r->sum.sub), .print = 2)               \
	C("slowest.name", TEXT, NULL, nps_model__text(m->m, m->m->compute.name[r->worst]))                   \
	C("slowest.device", COUNT, NULL, WORST(device))                                                      \
	C("slowest.stream", COUNT, NULL, WORST(stream))                                                      \
	C("slowest.start_us", TIME, "slowest at, ms", WORST(start))                                          \
	C("slowest.end_us", TIME, NULL, WORST(end))                                                          \
	C("slowest.input_shapes", TEXT, NULL,                                                                \
	  nps_model__text_or_null(m->m, m->m->compute.input_shapes[r->worst]), .optional = true)

NPS_FIND_TABLE(table, "operators.rows", "operators, by time on the device, us", struct op_ranking, struct hot,
	       OPERATOR_COLUMNS)

static int slow_operator(struct nps_find *find, const struct op_ranking *o, const struct hot *op)
{
	cJSON *numbers = nps_find__object(&table, o, op);
	cJSON *where = cJSON_DetachItemFromObjectCaseSensitive(numbers, "slowest");

	/* The title has them. */
	cJSON_DeleteItemFromObjectCaseSensitive(numbers, "type");
	cJSON_DeleteItemFromObjectCaseSensitive(numbers, "core");
	return nps_find__add(find, "slow_operator", nps_find__mean_share(find, op->sum.total / 1e3), numbers,
			     where,
			     "open the slowest one in the trace; compare its shapes and PMU columns in "
			     "kernel_details with the others",
			     "%s takes %.1f %% of the kernels' time in %llu calls and %s; the slowest "
			     "takes %.1f us",
			     type_text(o, op), 100 * device_share(o, op), (unsigned long long)op->sum.count,
			     why(op), op->worst_ns / 1e3);
}

static int operators_report(struct nps_find *find, const struct op_ranking *o)
{
	cJSON *section = cJSON_AddObjectToObject(find->document, "operators");
	int err = 0;

	cJSON_AddNumberToObject(section, "tasks_left_out", (double)o->unmeasured);
	cJSON_AddNumberToObject(section, "types", (double)nps_group_by__len(&o->totals));
	nps_find__number(section, "total_us", nps_group_by__len(&o->totals) ? o->all / 1e3 : NPS_NAN);
	nps_find__rows(find->document, &table, o, o->top, o->ntop, sizeof(o->top[0]));
	for (size_t i = 0; !err && i < NPS_MIN(o->ntop, 5UL); i++)
		if (device_share(o, &o->top[i]) >= 0.1)
			err = slow_operator(find, o, &o->top[i]);
	return err;
}

static int operators_find(struct nps_find *find)
{
	struct op_ranking o = { .m = find->model, .submits = &find->submits };
	struct nps_pace pace = { .model = find->model };
	int err;

	nps_group_by__init(&o.totals, o.m, sizeof(struct nps_group));
	err = total_up(&o);
	err = err ? err : operators_choose(&o);
	if (err)
		goto out;
	for (size_t i = 0; i < o.m->compute.t.len; i++) {
		nps_pace__step(&pace);
		nps_submits__step(o.submits, i);
		if (op_is_measured(o.m, i))
			operators_inspect(&o, i);
	}
	if (nps_group_by__len(&o.totals) || o.unmeasured)
		err = operators_report(find, &o);
out:
	free(o.top);
	nps_group_by__free(&o.totals);
	nps_map__free(&o.top_of);
	return err;
}

static void operators_show(const struct nps_view *v)
{
	nps_view__unmeasured(v, &table, "operators.tasks_left_out", "kernels");
}

const struct nps_find_question nps_question_operators = { operators_find, { &table }, operators_show };
