/* SPDX-License-Identifier: BSD-2-Clause */
/* Overlap Analysis and the times of steps: one walk over kernels and collectives for each device. */
#include "derive/derive.h"
#include "derive/sweep.h"

#include <errno.h>
#include <string.h>

#define DEVICES 64 /* more do not fit into one host */
#define RECEIVE "hcom_receive"

struct step_sum {
	struct nps_sweep sweep;
	uint64_t bubble;
	bool bounded; /* it has tasks that were not measured */
};

struct overlap_walk {
	struct nps_model *m;
	struct nps_overlap_table *table; /* NULL: it was imported */
	struct nps_vec steps; /* struct step_sum by row of `step`; one if there are none */
	uint64_t origin; /* without steps: when the host began */
	uint32_t devices[DEVICES];
	size_t ndevices;
	bool worked; /* one of them did, as was measured */
	bool bounded; /* the current device has tasks that were not measured */
	uint64_t others; /* tasks of further devices */
};

static void overlap_add_device(struct overlap_walk *w, uint32_t device)
{
	for (size_t i = 0; i < w->ndevices; i++)
		if (w->devices[i] == device)
			return;
	if (w->ndevices < DEVICES)
		w->devices[w->ndevices++] = device;
	else
		w->others++;
}

static void overlap_find_devices(struct overlap_walk *w)
{
	const struct nps_task_table *task = &w->m->task;
	const struct nps_comm_op_table *op = &w->m->comm_op;
	struct nps_pace pace = { w->m, 0 };
	uint32_t before = NPS_NONE;

	for (size_t i = 0; i < w->m->device.t.len; i++)
		if (w->m->device.id[i] >= 0 && w->m->device.id[i] < NPS_NONE)
			overlap_add_device(w, w->m->device.id[i]);
	for (size_t i = 0; i < task->t.len; i++, nps_pace__step(&pace)) {
		if (!w->worked)
			w->worked = task->class[i] == NPS_CLASS_COMPUTE && nps_model__task_measured(w->m, i);
		if (task->device[i] == before)
			continue;
		before = task->device[i];
		overlap_add_device(w, before);
	}
	for (size_t i = 0; i < op->t.len; i++, nps_pace__step(&pace)) {
		w->worked |= nps_model__comm_measured(w->m, i);
		overlap_add_device(w, op->device[i]);
	}
	for (size_t i = 1; i < w->ndevices; i++) /* few: by number */
		for (size_t j = i; j && w->devices[j] < w->devices[j - 1]; j--) {
			uint32_t swap = w->devices[j];

			w->devices[j] = w->devices[j - 1];
			w->devices[j - 1] = swap;
		}
}

static bool is_receive(const struct nps_model *m, uint32_t name)
{
	return !strncmp(nps_model__text(m, name), RECEIVE, sizeof(RECEIVE) - 1);
}

static struct step_sum *sum_of(struct overlap_walk *w, uint32_t step)
{
	if (!w->m->step.t.len)
		return w->steps.data;
	return step < w->steps.len ? &NPS_AT(&w->steps, struct step_sum, step) : NULL;
}

static int overlap_add(struct overlap_walk *w, struct nps_sweep *all, bool comm, size_t row, uint32_t device)
{
	const struct nps_task_table *task = &w->m->task;
	const struct nps_comm_op_table *op = &w->m->comm_op;
	uint64_t start = comm ? op->start[row] : task->start[row];
	uint64_t end = comm ? op->end[row] : task->end[row];
	struct step_sum *sum = sum_of(w, comm ? op->step[row] : task->step[row]);
	int err = nps_sweep__add(all, comm, start, end, w->table, device);

	if (err || !sum)
		return err;
	if (comm && end > start && is_receive(w->m, op->name[row]))
		sum->bubble += end - start;
	return nps_sweep__add(&sum->sweep, comm, start, end, NULL, device);
}

static void note_unmeasured(struct overlap_walk *w, uint32_t step)
{
	struct step_sum *sum = sum_of(w, step);

	w->bounded = true;
	if (sum)
		sum->bounded = true;
}

/* Is the task one of DEVICE whose time counts? Notes the step of a task without measured times. */
static bool counts_task(struct overlap_walk *w, size_t row, uint32_t device)
{
	if (w->m->task.device[row] != device || w->m->task.class[row] != NPS_CLASS_COMPUTE)
		return false;
	if (!nps_model__task_measured(w->m, row))
		note_unmeasured(w, w->m->task.step[row]);
	return nps_model__task_measured(w->m, row);
}

static bool counts_comm(struct overlap_walk *w, size_t row, uint32_t device)
{
	if (w->m->comm_op.device[row] != device)
		return false;
	if (!nps_model__comm_measured(w->m, row))
		note_unmeasured(w, w->m->comm_op.step[row]);
	return nps_model__comm_measured(w->m, row);
}

/* Kernels and collectives of DEVICE merged by start. */
static int sweep_device(struct overlap_walk *w, struct nps_sweep *all, uint32_t device)
{
	const struct nps_task_table *task = &w->m->task;
	const struct nps_comm_op_table *op = &w->m->comm_op;
	struct nps_pace pace = { w->m, 0 };
	size_t t = 0, c = 0;
	int err = 0;

	while (!err) {
		bool comm;

		for (; t < task->t.len && !counts_task(w, t, device); t++)
			nps_pace__step(&pace);
		for (; c < op->t.len && !counts_comm(w, c, device); c++)
			nps_pace__step(&pace);
		if (t == task->t.len && c == op->t.len)
			break;
		comm = t == task->t.len || (c < op->t.len && op->start[c] < task->start[t]);
		err = overlap_add(w, all, comm, comm ? c++ : t++, device);
		nps_pace__step(&pace);
	}
	if (err)
		return err;
	err = nps_sweep__finish(all, w->table, device);
	for (size_t i = 0; !err && i < w->steps.len; i++)
		err = nps_sweep__finish(&NPS_AT(&w->steps, struct step_sum, i).sweep, NULL, device);
	return err;
}

/* Insight refuses the view of a device without a slice of one of these, or whose slices add up to nothing. */
static int at_least_one(struct overlap_walk *w, size_t from, const struct nps_sweep *all, uint32_t device)
{
	struct nps_pace pace = { w->m, 0 };
	bool have[4] = { [NPS_OVERLAP_COMM] = true };
	int err = 0;

	if (!all->begun && w->m->start > w->m->end)
		return 0; /* nothing was timed at all */
	for (size_t i = from; i < w->table->t.len && !(have[0] && have[2] && have[3]);
	     i++, nps_pace__step(&pace))
		have[w->table->type[i]] = true;
	for (uint32_t type = 0; !err && type < NPS_ARRAY_SIZE(have); type++) {
		size_t row;

		if (have[type])
			continue;
		err = nps_table__add(&w->table->t, &row);
		if (err)
			break;
		w->table->device[row] = device;
		w->table->start[row] = w->table->end[row] = all->begun ? all->sums.last : w->m->start;
		w->table->end[row] += type == NPS_OVERLAP_FREE && all->sums.last == all->sums.first;
		w->table->type[row] = type;
	}
	return err;
}

static double us(uint64_t ns)
{
	return ns / 1000.0;
}

static int overlap_step_row(struct overlap_walk *w, uint32_t device, uint32_t text, uint64_t origin,
			    const struct step_sum *sum)
{
	struct nps_step_trace_table *to = &w->m->step_trace;
	const struct nps_overlap_sums *s = &sum->sweep.sums;
	uint64_t span = s->last - s->first;
	size_t row;
	int err = nps_table__add(&to->t, &row);

	if (err)
		return err;
	to->device[row] = device;
	to->step[row] = text;
	to->computing[row] = us(s->computing);
	to->not_overlapped[row] = us(s->not_overlapped);
	to->overlapped[row] = us(s->communication - s->not_overlapped);
	to->communication[row] = us(s->communication);
	to->free[row] = us(s->free);
	to->stage[row] = us(span > sum->bubble ? span - sum->bubble : 0);
	to->bubble[row] = us(sum->bubble);
	to->exclude_receive[row] = us(s->not_overlapped > sum->bubble ? s->not_overlapped - sum->bubble : 0);
	to->preparing[row] = us(s->first > origin ? s->first - origin : 0);
	return 0;
}

static int unmeasured_row(struct nps_model *m, uint32_t device, uint32_t text)
{
	struct nps_unmeasured_step *row = nps_vec__push(&m->unmeasured_steps);

	if (!row)
		return -errno;
	*row = (struct nps_unmeasured_step){ device, text, m->step_trace.t.len };
	return 0;
}

static int step_rows(struct overlap_walk *w, uint32_t device)
{
	struct nps_model *m = w->m;
	int err = 0;

	for (size_t i = 0; !err && i < w->steps.len; i++) {
		const struct step_sum *sum = &NPS_AT(&w->steps, struct step_sum, i);
		bool step = m->step.t.len > 0;
		uint32_t text = step ? nps_strings__addf(m->strings, "%lld", (long long)m->step.id[i])
				     : nps_strings__addz(m->strings, "");

		if (text == NPS_NONE)
			err = -ENOMEM;
		else if (sum->bounded && !sum->sweep.begun) /* zeros would mean that the device did nothing */
			err = unmeasured_row(m, device, text);
		else
			err = overlap_step_row(w, device, text, step ? m->step.start[i] : w->origin, sum);
	}
	return err;
}

static int analyse(struct overlap_walk *w, uint32_t device)
{
	size_t from = w->table ? w->table->t.len : 0;
	struct nps_sweep all = { 0 };
	int err;

	w->bounded = false;
	w->steps.len = 0;
	err = nps_vec__resize(&w->steps, NPS_MAX(w->m->step.t.len, 1UL));
	if (err)
		return err;
	err = sweep_device(w, &all, device);
	if (err)
		return err;
	err = w->table ? at_least_one(w, from, &all, device) : 0;
	/* As in the vendor's files, idle devices of the host have no rows beside those that ran something. */
	if (err || w->m->step_traced || !(all.begun || w->bounded || !w->worked))
		return err;
	return step_rows(w, device);
}

/* Without a step, preparing counts from the first operator, or the first call of the host. */
static uint64_t host_begin(const struct nps_model *m)
{
	const struct nps_torch_table *torch = &m->torch;
	struct nps_pace pace = { m, 0 };

	for (size_t i = 0; i < torch->t.len; i++, nps_pace__step(&pace))
		if (torch->type[i] == NPS_API_TORCH_OP)
			return torch->start[i];
	return m->api.t.len ? m->api.start[0] : UINT64_MAX;
}

int nps_derive__overlap(struct nps_model *m)
{
	bool tasks = m->task.t.len || m->comm_op.t.len;
	struct overlap_walk w = { .m = m, .table = m->overlapped || !tasks ? NULL : &m->overlap };
	int err = 0;

	if (m->step_traced &&
	    m->bounds.t.len) { /* a database lacks the steps of which nothing was measured */
		m->step_traced = false;
		err = nps_table__resize(&m->step_trace.t, 0);
	}
	if (err || (m->overlapped && m->step_traced) || (!tasks && !m->step.t.len))
		return err;
	nps_vec__init(&w.steps, m->tmpfd, sizeof(struct step_sum));
	if (!m->step.t.len)
		w.origin = host_begin(m);
	overlap_find_devices(&w);
	nps_model__lost(m, w.others, "tasks of more than %d devices, not in the overlap analysis", DEVICES);
	for (size_t i = 0; !err && i < w.ndevices; i++)
		err = analyse(&w, w.devices[i]);
	nps_vec__free(&w.steps);
	return err;
}
