/* SPDX-License-Identifier: BSD-2-Clause */
#include "summary.h"

#include "derive/group_by.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct summary_total {
	struct nps_group sum; /* key: the type, or the hash of a part of a name */
	uint32_t text, len; /* the type: so much of a text */
};

static int by_time(const void *a, const void *b)
{
	const struct nps_group *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->count > y->count ? -1 : x->count < y->count;
}

/* NS: UINT64_MAX if it was not measured. */
static int totals_count(struct nps_group_by *totals, uint64_t key, uint32_t text, uint32_t len, uint64_t ns)
{
	struct summary_total *t = nps_group_by__get(totals, key, 0);

	if (!t)
		return -errno;
	if (!t->sum.count) {
		t->text = text;
		t->len = len;
	}
	if (ns == UINT64_MAX)
		nps_group__count(&t->sum, 0);
	else
		nps_group__add(&t->sum, ns, 0);
	return 0;
}

static int count_collective(struct nps_group_by *totals, const struct nps_model *m, size_t i)
{
	uint64_t ns = nps_model__comm_measured(m, i) ? m->comm_op.end[i] - m->comm_op.start[i] : UINT64_MAX;
	uint32_t type = m->comm_op.type[i];
	const char *name = nps_model__text(m, m->comm_op.name[i]), *number = strstr(name, "__");
	uint32_t len;

	if (strcmp(nps_model__text_or_na(m, type), "N/A"))
		return totals_count(totals, type, type, UINT32_MAX, ns);
	/* At level 0 there are no types: hcom_allReduce_ of hcom_allReduce__612_0_1. */
	len = number ? (size_t)(number + 1 - name) : strlen(name);
	return totals_count(totals, nps_hash_bytes(name, len), m->comm_op.name[i], len, ns);
}

static int count_all(struct nps_group_by *totals, const struct nps_model *model)
{
	struct nps_pace pace = { .model = model };
	int err = 0;

	for (size_t i = 0; !err && i < model->compute.t.len; i++) {
		uint32_t task = model->compute.task[i], type = nps_model__kernel_type(model, i);

		err = totals_count(totals, type, type, UINT32_MAX,
				   nps_model__task_measured(model, task)
					   ? model->task.end[task] - model->task.start[task]
					   : UINT64_MAX);
		nps_pace__step(&pace);
	}
	for (size_t i = 0; !err && i < model->comm_op.t.len; i++)
		err = count_collective(totals, model, i);
	return err;
}

static void summary_copy_text(char *to, size_t size, const char *text, size_t most)
{
	size_t len = nps_utf8_fit(text, NPS_MIN(size - 1, most));

	memcpy(to, text, len);
	to[len] = 0;
}

static int top(struct nps_summary_proc *proc, const struct nps_model *model)
{
	struct nps_group_by totals;
	int err;

	nps_group_by__init(&totals, model, sizeof(struct summary_total));
	err = count_all(&totals, model);
	nps_group_by__sort(&totals, by_time);
	for (size_t i = 0; !err && i < NPS_MIN(nps_group_by__len(&totals), NPS_ARRAY_SIZE(proc->top)); i++) {
		const struct summary_total *t = nps_group_by__at(&totals, i);

		summary_copy_text(proc->top[i].name, sizeof(proc->top[i].name),
				  nps_model__text_or_na(model, t->text), t->len);
		proc->top[i].count = t->sum.count;
		proc->top[i].total_ns = t->sum.total;
		proc->top[i].measured = t->sum.measured;
	}
	nps_group_by__free(&totals);
	return err;
}

static uint64_t summary_system_calls(const struct nps_model *m)
{
	uint64_t n = m->osrt.t.len;

	for (size_t i = 0; i < m->osrt_sum.t.len; i++)
		n = nps_add_sat(n, m->osrt_sum.count[i]);
	return n;
}

int nps_summary__fill(struct nps_summary_proc *proc, const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	uint64_t unmeasured = NPS_MIN(m->bounds.t.len, m->task.t.len);

	*proc = (struct nps_summary_proc){ .pid = m->pid,
					   .rank = m->rank,
					   .has_rank = m->has_rank,
					   .device_tasks = m->task.t.len,
					   .host_bounds = m->bounds.t.len,
					   .measured = m->task.t.len - unmeasured,
					   .collectives = m->comm_op.t.len,
					   .api_calls = m->api.t.len,
					   .os_calls = summary_system_calls(m),
					   .switches = m->run.t.len,
					   .samples = m->host_process.t.len,
					   .stacks = m->stacks,
					   .whole_stacks = m->whole_stacks,
					   .steps = m->step.t.len };
	summary_copy_text(proc->comm, sizeof(proc->comm), nps_model__text(m, m->process), SIZE_MAX);
	for (size_t i = 0; i < m->api.t.len; i++) {
		proc->launches += m->api.type[i] == NPS_API_NODE;
		nps_pace__step(&pace);
	}
	for (size_t i = 0; i < m->torch.t.len; i++) {
		proc->torch_ops += m->torch.type[i] == NPS_API_TORCH_OP;
		nps_pace__step(&pace);
	}
	proc->torch_ops -= m->step_marks;
	for (size_t i = 0; i < NPS_MIN(m->losses.len, NPS_ARRAY_SIZE(proc->losses)); i++)
		proc->losses[i] = NPS_AT(&m->losses, struct nps_lost, i);
	return top(proc, m);
}

void nps_summary__process(struct nps_summary_proc *proc, const struct nps_session *rec, uint32_t proc_row)
{
	const struct nps_proc *p = &rec->procs[proc_row];

	proc->launches = p->launches;
	proc->before_capture = p->unsubmitted;
	proc->helper_threads = p->helper_threads;
	for (size_t i = 0; i < rec->logs.len; i++) {
		const struct nps_device_log *log = &NPS_AT(&rec->logs, struct nps_device_log, i);

		if (log->proc != proc_row || !log->fitted)
			continue;
		proc->clock_error_us = NPS_MAX(proc->clock_error_us, log->clock.error / 1000);
		proc->clock_worst_us = NPS_MAX(proc->clock_worst_us, log->clock.worst / 1000);
		if (fabs(log->clock.drift_ppm) > fabs(proc->clock_drift_ppm))
			proc->clock_drift_ppm = log->clock.drift_ppm;
	}
}

int nps_summary__add(struct nps_summary *summary, const struct nps_summary_proc *proc)
{
	struct nps_summary_proc *more = realloc(summary->procs, (summary->nprocs + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	summary->procs = more;
	more[summary->nprocs++] = *proc;
	summary->incomplete |= proc->losses[0].count > 0;
	return 0;
}

void nps_summary__losses(struct nps_summary *s, const struct nps_session *model)
{
	const struct nps_losses *lost = &model->losses;

	for (unsigned int kind = 0; kind < NPS_EV_KIND_MAX; kind++)
		s->events_lost = nps_add_sat(s->events_lost, lost->ring[kind]);
	s->strings_lost = nps_add_sat(lost->ring[NPS_STR_TEXT], lost->ring[NPS_STR_COMM]);
	s->agent_bytes_lost = lost->agent_bytes;
	s->device_records_lost = lost->device_records;
	s->submissions_truncated = lost->sqe;
	s->host_lost = lost->host;
	s->cut = lost->cut;
	s->incomplete |= s->cut || s->events_lost || s->strings_lost || s->agent_bytes_lost ||
			 s->device_records_lost || s->submissions_truncated || s->host_lost || lost->pids;
}

void nps_summary__neighbours(struct nps_summary *s, const struct nps_session *rec)
{
	for (size_t i = 0; i < NPS_MIN(rec->host.neighbours.len, NPS_ARRAY_SIZE(s->neighbours)); i++) {
		const struct nps_neighbour *n = &NPS_AT(&rec->host.neighbours, struct nps_neighbour, i);

		s->neighbours[i].pid = n->pid;
		s->neighbours[i].run_ns = n->run;
		s->neighbours[i].contended_ns = n->contended;
		summary_copy_text(s->neighbours[i].comm, sizeof(s->neighbours[i].comm),
				  n->name == NPS_NONE ? "" : nps_strings__get(&rec->strings, n->name),
				  SIZE_MAX);
	}
}

/* Texts of a job on their way to a terminal: control characters could be commands to it. */
static void print_clean(FILE *file, const char *text, int width)
{
	int n = 0;

	while (*text) {
		bool begins = (*text & 0xc0) != 0x80;
		size_t skip = nps_control(text);

		if (begins && n == width)
			break;
		n += begins;
		fputc(skip ? '?' : *text, file);
		text += skip ? skip : 1;
	}
	fprintf(file, "%*s", width < 100 ? width - n : 0, "");
}

static void print_neighbours(FILE *file, const struct nps_summary *s)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(s->neighbours) && s->neighbours[i].contended_ns; i++) {
		const struct nps_summary_neighbour *n = &s->neighbours[i];

		if (!i)
			fprintf(file, "CPU taken from the processes that use an NPU, by:\n");
		fprintf(file, "  process %u (", n->pid);
		print_clean(file, n->comm, 128);
		fprintf(file, "): %.3f s while they waited for that CPU, of %.3f s that it ran\n",
			n->contended_ns / 1e9, n->run_ns / 1e9);
	}
}

static void print_top(FILE *file, const struct nps_summary_proc *p)
{
	uint64_t unmeasured = 0;

	if (p->top[0].name[0])
		fprintf(file, "  %-40s %10s %14s\n", "operator", "count", "total (us)");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(p->top) && p->top[i].name[0]; i++) {
		const struct nps_summary_op *op = &p->top[i];

		fprintf(file, "  ");
		print_clean(file, op->name, 40);
		if (op->measured)
			fprintf(file, " %10" PRIu64 " %10" PRIu64 ".%03u\n", op->count, op->total_ns / 1000,
				(unsigned int)(op->total_ns % 1000));
		else
			fprintf(file, " %10" PRIu64 " %14s\n", op->count, "N/A");
		unmeasured += op->count - op->measured;
	}
	if (unmeasured)
		fprintf(file,
			"  %" PRIu64 " of these are in no total: their time on the device was not measured\n",
			unmeasured);
}

static void print_proc(FILE *file, const struct nps_summary_proc *p)
{
	if (!p->pid && p->samples) {
		fprintf(file,
			"host: %" PRIu64 " system calls, %" PRIu64 " runs on a CPU, %" PRIu64
			" samples of processes\n",
			p->os_calls, p->switches, p->samples);
		return;
	}
	fprintf(file, "process %u (", p->pid);
	print_clean(file, p->comm, 128);
	fprintf(file, ")");
	if (p->has_rank)
		fprintf(file, ", rank %u", p->rank);
	if (p->api_calls || p->device_tasks || p->steps)
		fprintf(file,
			": %" PRIu64 " API calls, %" PRIu64 " kernel launches, %" PRIu64
			" collectives, %" PRIu64 " steps\n",
			p->api_calls, p->launches, p->collectives, p->steps);
	else
		fprintf(file, ": no NPU call\n");
	if (p->torch_ops)
		fprintf(file, "  framework: %" PRIu64 " operators\n", p->torch_ops);
	if (p->device_tasks)
		fprintf(file,
			"  device tasks: %" PRIu64 " (%" PRIu64 " timed by the device, %" PRIu64
			" with host bounds only, %" PRIu64 " submitted before the capture)\n",
			p->device_tasks, p->measured, p->host_bounds, p->before_capture);
	if (p->clock_error_us > 0)
		fprintf(file,
			"  device clock: within %.2f us of the host's (worst %.2f us), drift %.2f ppm\n",
			p->clock_error_us, p->clock_worst_us, p->clock_drift_ppm);
	if (p->os_calls || p->switches)
		fprintf(file, "  host: %" PRIu64 " system calls, %" PRIu64 " runs on a CPU\n", p->os_calls,
			p->switches);
	if (p->stacks)
		fprintf(file,
			"  stacks: %" PRIu64 ", %.1f %% of them whole, down to where the thread began\n",
			p->stacks, nps_percent(p->whole_stacks, p->stacks));
	if (p->helper_threads)
		fprintf(file,
			"  left out: %u threads of npuscope's helper library (--show-self shows them)\n",
			p->helper_threads);
	print_top(file, p);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(p->losses) && p->losses[i].count; i++) {
		fprintf(file, "npuscope: not in the result: %" PRIu64 " ", p->losses[i].count);
		nps_print_text(file, p->losses[i].what);
		fputc('\n', file);
	}
}

static bool lost_in_capture(const struct nps_summary *s)
{
	return s->cut || s->events_lost || s->strings_lost || s->agent_bytes_lost || s->device_records_lost ||
	       s->submissions_truncated || s->host_lost;
}

void nps_summary_print(FILE *file, const struct nps_summary *s)
{
	for (size_t i = 0; i < s->nprocs; i++)
		print_proc(file, &s->procs[i]);
	print_neighbours(file, s);
	if (lost_in_capture(s))
		fprintf(file,
			"npuscope: lost: %" PRIu64 " events, %" PRIu64 " strings, %" PRIu64
			" bytes of the device log, %" PRIu64 " device records, %" PRIu64
			" submissions, %" PRIu64 " processes or devices of the host%s\n",
			s->events_lost, s->strings_lost, s->agent_bytes_lost, s->device_records_lost,
			s->submissions_truncated, s->host_lost, s->cut ? "; the capture was cut short" : "");
}

void nps_summary_free(struct nps_summary *s)
{
	free(s->procs);
	*s = (struct nps_summary){ 0 };
}
