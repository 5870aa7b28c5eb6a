/* SPDX-License-Identifier: BSD-2-Clause */
#include "summary.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct total {
	uint32_t type;
	uint64_t count, ns;
};

static int by_time(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->count > y->count ? -1 : x->count < y->count;
}

static int top(struct nps_summary_proc *proc, const struct nps_result *r)
{
	struct nps_map rows = { 0 };
	struct nps_vec totals;
	int err = 0;

	nps_vec__init(&totals, r->model->tmpfd, sizeof(struct total));
	for (size_t i = 0; !err && i < r->kernels.len; i++) {
		const struct nps_kernel *k = &NPS_AT(&r->kernels, struct nps_kernel, i);
		const struct nps_comm_op *op = k->comm ? nps_result__comm(r, k->row) : NULL;
		const struct nps_task *task = k->comm ? NULL : &r->tasks[k->row];
		uint32_t type, row;
		struct total *t;

		assert(op || task);
		type = op ? op->type : task->type;
		row = nps_map__get(&rows, type);
		t = row == NPS_NONE ? nps_vec__push(&totals) : &NPS_AT(&totals, struct total, row);
		if (!t) {
			err = -errno;
			break;
		}
		if (row == NPS_NONE) {
			t->type = type;
			err = nps_map__put(&rows, type, totals.len - 1);
		}
		t->count++;
		t->ns += op ? op->end - op->start : task->end - task->start;
	}
	assert(totals.data || !totals.len);
	if (totals.len)
		qsort(totals.data, totals.len, totals.elem, by_time);
	for (size_t i = 0; !err && i < NPS_MIN(totals.len, NPS_ARRAY_SIZE(proc->top)); i++) {
		const struct total *t = &NPS_AT(&totals, struct total, i);

		proc->top[i] = (struct nps_summary_op){ strdup(nps_strings__get(&r->model->strings, t->type)),
							t->count, t->ns };
	}
	nps_map__free(&rows);
	nps_vec__free(&totals);
	return err;
}

int nps_summary__add(struct nps_summary *summary, const struct nps_result *r, char *path)
{
	struct nps_summary_proc *more = realloc(summary->procs, (summary->nprocs + 1) * sizeof(*more)), *proc;
	const struct nps_proc *p = r->proc;
	int err;

	if (!more)
		return -ENOMEM;
	summary->procs = more;
	proc = &more[summary->nprocs];
	*proc = (struct nps_summary_proc){ .pid = p->pid,
					   .rank = r->rank,
					   .has_rank = p->has_rank,
					   .device_tasks = r->ntasks,
					   .matched = p->matched,
					   .host_bounds = p->bounded,
					   .before_capture = p->unsubmitted,
					   .launches = p->launches,
					   .collectives = r->comm_order.len,
					   .api_calls = p->cann.len,
					   .os_calls = p->os_calls.len,
					   .switches = p->runs.len,
					   .steps = p->steps.len };
	err = top(proc, r);
	if (err)
		return err;
	proc->comm = strdup(p->comm == NPS_NONE ? "" : nps_strings__get(&r->model->strings, p->comm));
	proc->path = path;
	for (size_t i = 0; i < r->model->logs.len; i++) {
		const struct nps_device_log *log = &NPS_AT(&r->model->logs, struct nps_device_log, i);

		if (log->proc != r->proc_row || !log->fitted)
			continue;
		proc->clock_residual_us = NPS_MAX(proc->clock_residual_us, log->fit.residual_ns / 1000);
		if (fabs(log->fit.drift_ppm) > fabs(proc->clock_drift_ppm))
			proc->clock_drift_ppm = log->fit.drift_ppm;
	}
	summary->nprocs++;
	return 0;
}

void nps_summary__losses(struct nps_summary *s, const struct nps_model *model)
{
	const struct nps_losses *lost = &model->losses;

	for (unsigned int kind = 0; kind < NPS_EV_KIND_MAX; kind++)
		s->events_lost = nps_add_sat(s->events_lost, lost->ring[kind]);
	s->strings_lost = nps_add_sat(lost->ring[NPS_STR_TEXT], lost->ring[NPS_STR_COMM]);
	s->agent_bytes_lost = lost->agent_bytes;
	s->device_records_lost = lost->device_records;
	s->submissions_truncated = lost->sqe;
	s->cut = lost->cut;
	s->incomplete = s->cut || s->events_lost || s->strings_lost || s->agent_bytes_lost ||
			s->device_records_lost || s->submissions_truncated || lost->pids;
}

static void print_proc(FILE *file, const struct nps_summary_proc *p)
{
	fprintf(file, "process %u (%s)", p->pid, p->comm ? p->comm : "");
	if (p->has_rank)
		fprintf(file, ", rank %u", p->rank);
	fprintf(file,
		": %" PRIu64 " API calls, %" PRIu64 " kernel launches, %" PRIu64 " collectives, %" PRIu64
		" steps\n",
		p->api_calls, p->launches, p->collectives, p->steps);
	fprintf(file,
		"  device tasks: %" PRIu64 " (%" PRIu64 " timed by the device, %" PRIu64
		" with host bounds only, %" PRIu64 " submitted before the capture)\n",
		p->device_tasks, p->matched + p->before_capture, p->host_bounds, p->before_capture);
	if (p->matched)
		fprintf(file, "  device clock: residual %.2f us, drift %.2f ppm\n", p->clock_residual_us,
			p->clock_drift_ppm);
	if (p->os_calls || p->switches)
		fprintf(file, "  host: %" PRIu64 " system calls, %" PRIu64 " runs on a CPU\n", p->os_calls,
			p->switches);
	if (p->top[0].name)
		fprintf(file, "  %-40s %10s %14s\n", "operator", "count", "total (us)");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(p->top) && p->top[i].name; i++)
		fprintf(file, "  %-40.40s %10" PRIu64 " %10" PRIu64 ".%03u\n", p->top[i].name,
			p->top[i].count, p->top[i].total_ns / 1000,
			(unsigned int)(p->top[i].total_ns % 1000));
}

void nps_summary_print(FILE *file, const struct nps_summary *s)
{
	for (size_t i = 0; i < s->nprocs; i++)
		print_proc(file, &s->procs[i]);
	if (s->incomplete)
		fprintf(file,
			"npuscope: lost: %" PRIu64 " events, %" PRIu64 " strings, %" PRIu64
			" bytes of the device log, %" PRIu64 " device records, %" PRIu64 " submissions%s\n",
			s->events_lost, s->strings_lost, s->agent_bytes_lost, s->device_records_lost,
			s->submissions_truncated, s->cut ? "; the capture was cut short" : "");
}

void nps_summary_free(struct nps_summary *s)
{
	for (size_t i = 0; i < s->nprocs; i++) {
		for (size_t t = 0; t < NPS_ARRAY_SIZE(s->procs[i].top); t++)
			free(s->procs[i].top[t].name);
		free(s->procs[i].comm);
		free(s->procs[i].path);
	}
	free(s->procs);
	*s = (struct nps_summary){ 0 };
}
