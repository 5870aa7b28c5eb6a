/* SPDX-License-Identifier: BSD-2-Clause */
/* Process Scheduling and CPU Scheduling as Insight reads them (insight 2.6). */
#include "export.h"

#include <stdio.h>

/* Sort indexes past the vendor's last: shown at the end, and never as the card's first layer. */
enum { SORT_PROCESS = 36, SORT_CPU = 37 };

struct sched {
	const struct nps_result *r;
	struct nps_writer *w;
	uint64_t process, cpu;
};

/* `comm:tid`, which Insight takes apart at the last colon. */
static void thread_lane(const struct sched *s, char *out, size_t size, uint32_t tid, uint64_t time)
{
	uint32_t comm = nps_model__comm_at(s->r->model, tid, time);

	if (comm == NPS_NONE)
		comm = s->r->proc->comm;
	snprintf(out, size, "%s:%u", comm == NPS_NONE ? "unknown" : nps_strings__get(&s->r->model->strings, comm), tid);
}

static void state(const struct sched *s, const char *lane, const char *name, uint64_t start, uint64_t end, uint32_t cpu)
{
	if (end < start)
		return;
	nps_trace__begin(s->w, name, s->process);
	nps_trace__lane(s->w, lane);
	nps_trace__time(s->w, nps_model__real(s->r->model, start), end - start);
	if (cpu != NPS_NONE) {
		nps_writer__lit(s->w, ", \"args\": {\"cpu\": ");
		nps_writer__u64(s->w, cpu);
		nps_writer__lit(s->w, "}");
	}
	nps_trace__end(s->w, "X");
}

/* The letters of the kernel's own sched_switch, R = preempted. */
static const char *state_letter(uint32_t state)
{
	static const struct {
		uint32_t bit;
		const char *letter;
	} letters[] = { { 0x1, "S" }, { 0x2, "D" }, { 0x4, "T" }, { 0x8, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" } };

	for (size_t i = 0; state && i < NPS_ARRAY_SIZE(letters); i++)
		if (state & letters[i].bit)
			return letters[i].letter;
	return state ? "?" : "R";
}

static void waited(const struct sched *s, const char *lane, const struct nps_run *run, bool was_preempted)
{
	if (!run->left || run->left > run->start)
		return;
	if (run->woken >= run->left && run->woken <= run->start) {
		state(s, lane, "Sleeping", run->left, run->woken, run->cpu);
		state(s, lane, "Runnable", run->woken, run->start, run->cpu);
	} else {
		state(s, lane, was_preempted ? "Runnable" : "Sleeping", run->left, run->start, run->cpu);
	}
}

static void on_cpu(const struct sched *s, const char *lane, const struct nps_run *run)
{
	char name[32], next[512];
	struct nps_writer *w = s->w;
	uint32_t comm;

	snprintf(name, sizeof(name), "CPU %u", run->cpu);
	nps_trace__begin(w, lane, s->cpu);
	nps_trace__lane(w, name);
	nps_trace__time(w, nps_model__real(s->r->model, run->start), run->end - run->start);
	nps_writer__lit(w, ", \"args\": {\"end_state\": ");
	nps_writer__json(w, state_letter(run->state));
	nps_writer__lit(w, ", \"prio\": ");
	nps_writer__u64(w, run->prio);
	nps_writer__lit(w, ", \"host_pid\": ");
	nps_writer__u64(w, run->tid);
	nps_writer__lit(w, "}");
	nps_trace__end(w, "X");

	nps_trace__begin(w, "sched_switch", s->cpu);
	nps_trace__lane(w, name);
	nps_trace__time(w, nps_model__real(s->r->model, run->end), 0);
	comm = nps_model__comm_at(s->r->model, run->tid, run->end);
	nps_writer__lit(w, ", \"args\": {\"prev_comm\": ");
	nps_writer__json(w, nps_strings__get(&s->r->model->strings, comm == NPS_NONE ? s->r->proc->comm : comm));
	nps_writer__lit(w, ", \"prev_pid\": ");
	nps_writer__u64(w, run->tid);
	nps_writer__lit(w, ", \"prev_prio\": ");
	nps_writer__u64(w, run->prio);
	nps_writer__lit(w, ", \"prev_state\": ");
	nps_writer__json(w, state_letter(run->state));
	comm = run->next ? nps_model__comm_at(s->r->model, run->next, run->end) : NPS_NONE;
	snprintf(next, sizeof(next), "%s", comm != NPS_NONE ? nps_strings__get(&s->r->model->strings, comm) : run->next ? "unknown" : "swapper");
	nps_writer__lit(w, ", \"next_comm\": ");
	nps_writer__json(w, next);
	nps_writer__lit(w, ", \"next_pid\": ");
	nps_writer__u64(w, run->next);
	nps_writer__lit(w, ", \"next_prio\": \"N/A\"}"); /* not observed */
	nps_trace__end(w, "X");
}

static void lane_row(const struct sched *s, uint64_t pid, const char *lane)
{
	nps_trace__begin(s->w, "thread_name", pid);
	nps_trace__lane(s->w, lane);
	nps_writer__lit(s->w, ", \"args\": {\"name\": ");
	nps_writer__json(s->w, lane);
	nps_writer__lit(s->w, "}");
	nps_trace__end(s->w, "M");
}

/* Lanes of the threads and CPUs, each once. False if there is no memory. */
static bool lanes(const struct sched *s)
{
	const struct nps_vec *runs = &s->r->proc->runs;
	struct nps_map threads = { 0 }, cpus = { 0 };
	char name[512];
	bool ok = true;

	for (size_t i = 0; ok && i < runs->len; i++) {
		const struct nps_run *run = &NPS_AT(runs, struct nps_run, i);

		thread_lane(s, name, sizeof(name), run->tid, run->start);
		if (nps_map__get(&threads, nps_hash_bytes(name, __builtin_strlen(name))) == NPS_NONE) {
			ok = !nps_map__put(&threads, nps_hash_bytes(name, __builtin_strlen(name)), 1);
			lane_row(s, s->process, name);
			/* Insight counts switches under no CPU: without this row it shows none. */
			state(s, name, "Running", run->start, run->start, NPS_NONE);
		}
		snprintf(name, sizeof(name), "CPU %u", run->cpu);
		if (nps_map__get(&cpus, run->cpu) == NPS_NONE) {
			ok = ok && !nps_map__put(&cpus, run->cpu, 1);
			lane_row(s, s->cpu, name);
		}
	}
	nps_map__free(&threads);
	nps_map__free(&cpus);
	return ok;
}

void nps_export__sched(const struct nps_result *result, struct nps_writer *w)
{
	const struct nps_vec *runs = &result->proc->runs;
	struct sched s = { result, w, nps_layer_pid(result->proc->pid, SORT_PROCESS, NPS_HOST_DEVICE),
		nps_layer_pid(result->proc->pid, SORT_CPU, NPS_HOST_DEVICE) };
	struct nps_map state_of = { 0 }; /* tid -> state it last left in */
	char lane[512];

	if (!runs->len)
		return;
	nps_trace__layer(w, s.process, "Process Scheduling", "CPU", SORT_PROCESS);
	nps_trace__layer(w, s.cpu, "CPU Scheduling", "CPU", SORT_CPU);
	if (!lanes(&s))
		w->err = -12;
	for (size_t i = 0; !w->err && i < runs->len; i++) {
		const struct nps_run *run = &NPS_AT(runs, struct nps_run, i);

		thread_lane(&s, lane, sizeof(lane), run->tid, run->start);
		waited(&s, lane, run, nps_map__get(&state_of, run->tid) == 0);
		state(&s, lane, "Running", run->start, run->end, run->cpu);
		on_cpu(&s, lane, run);
		if (nps_map__put(&state_of, run->tid, run->state))
			w->err = -12;
	}
	nps_map__free(&state_of);
}
