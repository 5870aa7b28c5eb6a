/* SPDX-License-Identifier: BSD-2-Clause */
/* How each thread was scheduled, who woke it and who took its CPU. */
#include "derive/host.h"
#include "derive/waits.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>

/* The two sorts of other threads. */
enum role { WAKER, PREEMPTOR, ROLES };

struct thread {
	uint32_t last; /* its latest run, NPS_NONE none */
	struct {
		uint32_t tid, comm;
		uint64_t count;
	} best[ROLES]; /* the most frequent one so far */
};

struct state {
	struct nps_model *m;
	struct nps_vec threads; /* struct thread: a row each of sched_thread */
	struct nps_map thread_of; /* tid -> row */
	struct nps_map met[ROLES]; /* (tid, other) -> times */
	struct nps_map cpus; /* (tid, cpu) seen */
};

static int thread_of(struct state *s, uint32_t tid, uint32_t *at)
{
	struct thread *t;
	size_t row;
	int err;

	*at = nps_map__get(&s->thread_of, tid);
	if (*at != NPS_NONE)
		return 0;
	t = nps_vec__push(&s->threads);
	if (!t)
		return -errno;
	err = nps_table__add(&s->m->sched_thread.t, &row);
	if (err)
		return err;
	*t = (struct thread){ .last = NPS_NONE };
	for (int role = 0; role < ROLES; role++)
		t->best[role].comm = NPS_NONE;
	s->m->sched_thread.gtid[row] = (uint64_t)s->m->pid << 32 | tid;
	*at = row;
	return nps_map__put(&s->thread_of, tid, row);
}

static int meet(struct state *s, struct thread *t, enum role role, uint32_t tid, uint32_t other,
		uint32_t comm)
{
	uint64_t key = (uint64_t)tid << 32 | other;
	uint32_t times = nps_map__get(&s->met[role], key);

	times = times == NPS_NONE ? 1 : times + 1;
	if (times > t->best[role].count) {
		t->best[role].tid = other;
		t->best[role].comm = comm;
		t->best[role].count = times;
	}
	return nps_map__put(&s->met[role], key, times);
}

static void add_wait(struct state *s, uint32_t at, size_t row, uint32_t previous)
{
	struct nps_sched_thread_table *table = &s->m->sched_thread;
	struct nps_wait wait = nps_run__wait(s->m, row, previous);
	bool blocked = previous != NPS_NONE && s->m->run.state[previous] & NPS_STATE_UNINTERRUPTIBLE;

	if (!wait.known)
		return;
	if (blocked)
		table->blocked[at] += wait.woken - wait.left;
	else
		table->sleeping[at] += wait.woken - wait.left;
	table->runnable[at] += wait.start - wait.woken;
}

/* Why the stretch ended: it waits, or somebody took its CPU. */
static int add_end(struct state *s, uint32_t at, struct thread *t, size_t row)
{
	const struct nps_run_table *run = &s->m->run;
	struct nps_sched_thread_table *table = &s->m->sched_thread;

	if (run->state[row] & NPS_RUN_OPEN)
		return 0;
	if (run->state[row]) {
		table->waits[at]++;
		return 0;
	}
	table->preemptions[at]++;
	return run->next[row] ? meet(s, t, PREEMPTOR, run->tid[row], run->next[row], run->next_comm[row]) : 0;
}

static int add_run(struct state *s, size_t row)
{
	const struct nps_run_table *run = &s->m->run;
	struct nps_sched_thread_table *table = &s->m->sched_thread;
	bool ran = run->end[row] > run->start[row] || !(run->state[row] & NPS_RUN_OPEN);
	uint64_t key = (uint64_t)run->tid[row] << 32 | run->cpu[row];
	struct thread *t;
	uint32_t at;
	int err = thread_of(s, run->tid[row], &at);

	if (err)
		return err;
	t = &NPS_AT(&s->threads, struct thread, at);
	add_wait(s, at, row, t->last);
	table->comm[at] = run->comm[row];
	if (run->waker[row] && run->woken[row])
		err = meet(s, t, WAKER, run->tid[row], run->waker[row], run->waker_comm[row]);
	if (!err)
		err = add_end(s, at, t, row);
	if (!ran) /* it was not on a CPU when the capture ended */
		return err;
	table->slices[at]++;
	table->running[at] += run->end[row] > run->start[row] ? run->end[row] - run->start[row] : 0;
	table->migrations[at] += t->last != NPS_NONE && run->cpu[t->last] != run->cpu[row];
	t->last = row;
	if (!err && nps_map__get(&s->cpus, key) == NPS_NONE) {
		table->cpus[at]++;
		err = nps_map__put(&s->cpus, key, 1);
	}
	return err;
}

static void name_others(struct state *s)
{
	struct nps_sched_thread_table *table = &s->m->sched_thread;

	for (size_t i = 0; i < s->threads.len; i++) {
		const struct thread *t = &NPS_AT(&s->threads, struct thread, i);

		table->waker[i] = t->best[WAKER].tid;
		table->waker_comm[i] = t->best[WAKER].comm;
		table->wakes[i] = t->best[WAKER].count;
		table->preemptor[i] = t->best[PREEMPTOR].tid;
		table->preemptor_comm[i] = t->best[PREEMPTOR].comm;
		table->preempted[i] = t->best[PREEMPTOR].count;
	}
}

int nps_derive__threads(struct nps_model *m)
{
	struct nps_pace pace = { m, 0 };
	struct state s = { .m = m };
	int err = 0;

	nps_vec__init(&s.threads, m->tmpfd, sizeof(struct thread));
	for (size_t i = 0; !err && i < m->run.t.len; i++, nps_pace__step(&pace))
		err = add_run(&s, i);
	if (!err)
		name_others(&s);
	nps_vec__free(&s.threads);
	nps_map__free(&s.thread_of);
	for (int role = 0; role < ROLES; role++)
		nps_map__free(&s.met[role]);
	nps_map__free(&s.cpus);
	return err;
}
