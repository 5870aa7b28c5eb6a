/* SPDX-License-Identifier: BSD-2-Clause */
/* Process Scheduling and CPU Scheduling as Insight reads them (insight 2.6). */
#include "export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Sort indexes past the vendor's last: shown at the end, and never as the card's first layer. */
enum { SORT_PROCESS = 36, SORT_CPU = 37 };

/* What an event of nps_sched.events shows of its run. */
enum what { COUNTED, SLEEPING, SLEEPING_ALL, RUNNABLE, RUNNABLE_ALL, RUNNING, ON_CPU, SWITCH };

/* `comm:tid`, which Insight takes apart at the last colon. */
static void thread_lane(const struct nps_sched *s, char *out, size_t size, uint32_t tid, uint64_t time)
{
	uint32_t comm = nps_model__comm_at(s->result->model, tid, time);

	if (comm == NPS_NONE)
		comm = s->result->proc->comm;
	snprintf(out, size, "%s:%u",
		 comm == NPS_NONE ? "unknown" : nps_strings__get(&s->result->model->strings, comm), tid);
}

static void state(const struct nps_sched *s, const char *lane, const char *name, uint64_t start, uint64_t end,
		  uint32_t cpu)
{
	if (end < start)
		return;
	nps_trace__begin(s->w, name, s->process);
	nps_trace__lane(s->w, lane);
	nps_trace__time(s->w, nps_model__real(s->result->model, start), end - start);
	if (cpu != NPS_NONE) {
		nps_writer__lit(s->w, ",\"args\":{\"cpu\":");
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
	} letters[] = { { 0x1, "S" },  { 0x2, "D" },  { 0x4, "T" },  { 0x8, "t" },
			{ 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" } };

	for (size_t i = 0; state && i < NPS_ARRAY_SIZE(letters); i++)
		if (state & letters[i].bit)
			return letters[i].letter;
	return state ? "?" : "R";
}

static void on_cpu(const struct nps_sched *s, const char *lane, const struct nps_run *run)
{
	struct nps_writer *w = s->w;
	char name[32];

	snprintf(name, sizeof(name), "CPU %u", run->cpu);
	nps_trace__begin(w, lane, s->cpu);
	nps_trace__lane(w, name);
	nps_trace__time(w, nps_model__real(s->result->model, run->start), run->end - run->start);
	nps_writer__lit(w, ",\"args\":{\"end_state\":");
	nps_writer__json(w, state_letter(run->state));
	nps_writer__lit(w, ",\"prio\":");
	nps_writer__u64(w, run->prio);
	nps_writer__lit(w, ",\"host_pid\":");
	nps_writer__u64(w, run->tid);
	nps_writer__lit(w, "}");
	nps_trace__end(w, "X");
}

static const char *comm_of(const struct nps_sched *s, uint32_t tid, uint64_t time, const char *unknown)
{
	uint32_t comm = tid ? nps_model__comm_at(s->result->model, tid, time) : NPS_NONE;

	return comm == NPS_NONE ? unknown : nps_strings__get(&s->result->model->strings, comm);
}

static void switched(const struct nps_sched *s, const struct nps_run *run)
{
	const char *own = s->result->proc->comm == NPS_NONE
				  ? "unknown"
				  : nps_strings__get(&s->result->model->strings, s->result->proc->comm);
	struct nps_writer *w = s->w;
	char name[32];

	snprintf(name, sizeof(name), "CPU %u", run->cpu);
	nps_trace__begin(w, "sched_switch", s->cpu);
	nps_trace__lane(w, name);
	nps_trace__time(w, nps_model__real(s->result->model, run->end), 0);
	nps_writer__lit(w, ",\"args\":{\"prev_comm\":");
	nps_writer__json(w, comm_of(s, run->tid, run->end, own));
	nps_writer__lit(w, ",\"prev_pid\":");
	nps_writer__u64(w, run->tid);
	nps_writer__lit(w, ",\"prev_prio\":");
	nps_writer__u64(w, run->prio);
	nps_writer__lit(w, ",\"prev_state\":");
	nps_writer__json(w, state_letter(run->state));
	nps_writer__lit(w, ",\"next_comm\":");
	nps_writer__json(w, comm_of(s, run->next, run->end, run->next ? "unknown" : "swapper"));
	nps_writer__lit(w, ",\"next_pid\":");
	nps_writer__u64(w, run->next);
	nps_writer__lit(w, ",\"next_prio\":\"N/A\"}"); /* not observed */
	nps_trace__end(w, "X");
}

static void lane_row(const struct nps_sched *s, uint64_t pid, const char *lane)
{
	nps_trace__begin(s->w, "thread_name", pid);
	nps_trace__lane(s->w, lane);
	nps_writer__lit(s->w, ",\"args\":{\"name\":");
	nps_writer__json(s->w, lane);
	nps_writer__lit(s->w, "}");
	nps_trace__end(s->w, "M");
}

static int add(struct nps_sched *s, uint64_t time, uint32_t row, enum what what)
{
	struct nps_key *key = nps_vec__push(&s->events);

	if (!key)
		return -errno;
	*key = (struct nps_key){ time, row, what };
	return 0;
}

/* How the thread waited for this run. */
static int add_wait(struct nps_sched *s, const struct nps_run *run, uint32_t row, bool was_preempted)
{
	int err;

	if (!run->left || run->left > run->start || run->left < s->result->model->begin)
		return 0;
	if (run->woken < run->left || run->woken > run->start)
		return add(s, run->left, row, was_preempted ? RUNNABLE_ALL : SLEEPING_ALL);
	err = add(s, run->left, row, SLEEPING);
	return err ? err : add(s, run->woken, row, RUNNABLE);
}

static int add_run(struct nps_sched *s, struct nps_map *state_of, uint32_t row)
{
	const struct nps_run *run = &NPS_AT(&s->result->proc->runs, struct nps_run, row);
	int err = add_wait(s, run, row, nps_map__get(state_of, run->tid) == 0);

	if (!err)
		err = add(s, run->start, row, RUNNING);
	if (!err)
		err = add(s, run->start, row, ON_CPU);
	if (!err)
		err = add(s, run->end, row, SWITCH);
	return err ? err : nps_map__put(state_of, run->tid, run->state);
}

/* Names the lanes of the run's thread and CPU unless SEEN. */
static int name_lanes(struct nps_sched *s, struct nps_map *seen, uint32_t row)
{
	const struct nps_run *run = &NPS_AT(&s->result->proc->runs, struct nps_run, row);
	char name[512];
	uint64_t key;
	int err = 0;

	thread_lane(s, name, sizeof(name), run->tid, run->start);
	key = nps_hash_bytes(name, strlen(name));
	if (nps_map__get(seen, key) == NPS_NONE) {
		lane_row(s, s->process, name);
		err = nps_map__put(seen, key, 1);
		/* Insight counts switches under no CPU: without this slice it shows none. */
		if (!err)
			err = add(s, run->start, row, COUNTED);
	}
	snprintf(name, sizeof(name), "CPU %u", run->cpu);
	key = nps_hash_bytes(name, strlen(name));
	if (!err && nps_map__get(seen, key) == NPS_NONE) {
		lane_row(s, s->cpu, name);
		err = nps_map__put(seen, key, 1);
	}
	return err;
}

int nps_sched__init(struct nps_sched *s, const struct nps_result *result, struct nps_writer *w)
{
	size_t n = result->proc->runs.len;
	struct nps_map seen = { 0 }, state_of = { 0 };
	int err = 0;

	*s = (struct nps_sched){ .result = result,
				 .w = w,
				 .process = nps_layer_pid(result->proc->pid, SORT_PROCESS, NPS_HOST_DEVICE),
				 .cpu = nps_layer_pid(result->proc->pid, SORT_CPU, NPS_HOST_DEVICE) };
	nps_vec__init(&s->events, result->model->tmpfd, sizeof(struct nps_key));
	if (!n)
		return 0;
	nps_trace__layer(w, s->process, "Process Scheduling", "CPU", SORT_PROCESS);
	nps_trace__layer(w, s->cpu, "CPU Scheduling", "CPU", SORT_CPU);
	for (size_t i = 0; !err && i < n; i++) {
		err = name_lanes(s, &seen, i);
		if (!err)
			err = add_run(s, &state_of, i);
	}
	n = s->events.len;
	if (!err)
		err = nps_vec__resize(&s->events, 2 * n);
	if (!err)
		nps_sort_keys(s->events.data, (struct nps_key *)s->events.data + n, n);
	s->events.len = n;
	nps_map__free(&seen);
	nps_map__free(&state_of);
	return err;
}

uint64_t nps_sched__time(const struct nps_sched *s)
{
	return s->next < s->events.len ? NPS_AT(&s->events, struct nps_key, s->next).key : UINT64_MAX;
}

void nps_sched__write(struct nps_sched *s)
{
	const struct nps_key *event = &NPS_AT(&s->events, struct nps_key, s->next++);
	const struct nps_run *run = &NPS_AT(&s->result->proc->runs, struct nps_run, event->row);
	char lane[512];

	thread_lane(s, lane, sizeof(lane), run->tid, run->start);
	switch ((enum what)event->group) {
	case COUNTED:
		state(s, lane, "Running", run->start, run->start, NPS_NONE);
		break;
	case SLEEPING:
		state(s, lane, "Sleeping", run->left, run->woken, run->cpu);
		break;
	case SLEEPING_ALL:
		state(s, lane, "Sleeping", run->left, run->start, run->cpu);
		break;
	case RUNNABLE:
		state(s, lane, "Runnable", run->woken, run->start, run->cpu);
		break;
	case RUNNABLE_ALL:
		state(s, lane, "Runnable", run->left, run->start, run->cpu);
		break;
	case RUNNING:
		state(s, lane, "Running", run->start, run->end, run->cpu);
		break;
	case ON_CPU:
		on_cpu(s, lane, run);
		break;
	case SWITCH:
		switched(s, run);
		break;
	}
}

void nps_sched__free(struct nps_sched *s)
{
	nps_vec__free(&s->events);
}
