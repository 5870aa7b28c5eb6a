/* SPDX-License-Identifier: BSD-2-Clause */
/* How each thread was scheduled, who woke it and who took its CPU. */
#include "derive/host.h"
#include "derive/waits.h"

#include "base/map.h"
#include "base/vec.h"
#include "model/os_thread.h"

#include <errno.h>

/* The roles of other threads. */
enum role { WAKER, PREEMPTOR, ROLES };

struct sched_thread {
	uint64_t gtid;
	uint32_t row; /* of os_thread */
	uint32_t last; /* its latest run, NPS_NONE none, or it was another thread's that had the number */
	struct {
		uint32_t tid, comm;
		uint64_t count;
	} best[ROLES]; /* the most frequent one so far */
};

struct sched_state {
	struct nps_model *m;
	struct nps_vec threads; /* struct sched_thread: those with runs */
	struct nps_map thread_of; /* gtid -> row of threads */
	struct nps_map known; /* gtid -> row of os_thread */
	struct nps_map met[ROLES]; /* (thread, other) -> times */
	struct nps_map cpus; /* (thread, cpu) seen */
};

/* From here on there are records of its scheduling. */
static void thread_sched_begin(struct nps_os_thread_table *t, size_t row)
{
	t->running[row] = t->runnable[row] = t->sleeping[row] = t->blocked[row] = 0;
	t->slices[row] = t->waits[row] = t->preemptions[row] = 0;
	t->migrations[row] = t->cpus[row] = 0;
}

static int sched_thread(struct sched_state *s, size_t run, uint32_t *at)
{
	uint64_t gtid = nps_run__gtid(s->m, run);
	struct sched_thread *t;
	uint32_t known;
	size_t row;
	int err = 0;

	*at = nps_map__get(&s->thread_of, gtid);
	if (*at != NPS_NONE)
		return 0;
	known = nps_map__get(&s->known, gtid);
	row = known;
	if (known == NPS_NONE)
		err = nps_os_thread__add(s->m, gtid, s->m->run.comm[run], &row);
	t = err ? NULL : nps_vec__push(&s->threads);
	if (!t)
		return err ? err : -errno;
	thread_sched_begin(&s->m->os_thread, row);
	*t = (struct sched_thread){ .gtid = gtid, .row = row, .last = NPS_NONE };
	for (int role = 0; role < ROLES; role++)
		t->best[role].comm = NPS_NONE;
	*at = s->threads.len - 1;
	return nps_map__put(&s->thread_of, gtid, *at);
}

static int thread_add_peer(struct sched_state *s, uint32_t at, enum role role, uint32_t other, uint32_t comm)
{
	struct sched_thread *t = &NPS_AT(&s->threads, struct sched_thread, at);
	uint64_t key = (uint64_t)at << 32 | other;
	uint32_t times = nps_map__get(&s->met[role], key);

	times = times == NPS_NONE ? 1 : times + 1;
	if (times > t->best[role].count) {
		t->best[role].tid = other;
		t->best[role].comm = comm;
		t->best[role].count = times;
	}
	return nps_map__put(&s->met[role], key, times);
}

static void thread_add_wait(struct sched_state *s, const struct sched_thread *t, size_t run)
{
	struct nps_os_thread_table *table = &s->m->os_thread;
	struct nps_wait wait = nps_run__wait(s->m, run, t->last);
	bool blocked = t->last != NPS_NONE && s->m->run.state[t->last] & NPS_STATE_UNINTERRUPTIBLE;

	if (!wait.known)
		return;
	*(blocked ? &table->blocked[t->row] : &table->sleeping[t->row]) += (int64_t)(wait.woken - wait.left);
	table->runnable[t->row] += (int64_t)(wait.start - wait.woken);
}

/* Why the stretch ended: it waits, or somebody took its CPU. */
static int add_end(struct sched_state *s, uint32_t at, size_t run)
{
	const struct sched_thread *t = &NPS_AT(&s->threads, struct sched_thread, at);
	const struct nps_run_table *runs = &s->m->run;

	if (runs->state[run] & (NPS_RUN_OPEN | NPS_STATE_EXITED))
		return 0;
	if (runs->state[run]) {
		s->m->os_thread.waits[t->row]++;
		return 0;
	}
	s->m->os_thread.preemptions[t->row]++;
	return runs->next[run] ? thread_add_peer(s, at, PREEMPTOR, runs->next[run], runs->next_comm[run]) : 0;
}

static int thread_add_run(struct sched_state *s, size_t run)
{
	const struct nps_run_table *runs = &s->m->run;
	struct nps_os_thread_table *table = &s->m->os_thread;
	bool ran = runs->end[run] > runs->start[run] || !(runs->state[run] & NPS_RUN_OPEN);
	struct sched_thread *t;
	uint32_t at;
	uint64_t key;
	int err = sched_thread(s, run, &at);

	if (err)
		return err;
	t = &NPS_AT(&s->threads, struct sched_thread, at);
	thread_add_wait(s, t, run);
	table->name[t->row] = runs->comm[run];
	if (runs->waker[run] && runs->woken[run])
		err = thread_add_peer(s, at, WAKER, runs->waker[run], runs->waker_comm[run]);
	if (err)
		return err;
	err = add_end(s, at, run);
	if (err || !ran) /* it was not on a CPU when the capture ended */
		return err;
	table->slices[t->row]++;
	table->running[t->row] +=
		runs->end[run] > runs->start[run] ? (int64_t)(runs->end[run] - runs->start[run]) : 0;
	table->migrations[t->row] += t->last != NPS_NONE && runs->cpu[t->last] != runs->cpu[run];
	t->last = runs->state[run] & NPS_STATE_EXITED ? NPS_NONE : (uint32_t)run;
	key = (uint64_t)at << 32 | runs->cpu[run];
	if (nps_map__get(&s->cpus, key) != NPS_NONE)
		return 0;
	table->cpus[t->row]++;
	return nps_map__put(&s->cpus, key, 1);
}

static void name_others(struct sched_state *s)
{
	struct nps_os_thread_table *table = &s->m->os_thread;

	for (size_t i = 0; i < s->threads.len; i++) {
		const struct sched_thread *t = &NPS_AT(&s->threads, struct sched_thread, i);

		table->waker[t->row] = t->best[WAKER].tid;
		table->waker_comm[t->row] = t->best[WAKER].comm;
		table->wakes[t->row] = t->best[WAKER].count;
		table->preemptor[t->row] = t->best[PREEMPTOR].tid;
		table->preemptor_comm[t->row] = t->best[PREEMPTOR].comm;
		table->preempted[t->row] = t->best[PREEMPTOR].count;
	}
}

int nps_derive__threads(struct nps_model *m)
{
	struct nps_pace pace = { m, 0 };
	struct sched_state s = { .m = m };
	int err = 0;

	if (!m->run.t.len)
		return 0;
	nps_vec__init(&s.threads, m->tmpfd, sizeof(struct sched_thread));
	for (size_t i = 0; !err && i < m->os_thread.t.len; i++)
		err = nps_map__put(&s.known, m->os_thread.gtid[i], i);
	for (size_t i = 0; !err && i < m->run.t.len; i++, nps_pace__step(&pace))
		err = thread_add_run(&s, i);
	if (err)
		goto out;
	name_others(&s);
out:
	nps_vec__free(&s.threads);
	nps_map__free(&s.thread_of);
	nps_map__free(&s.known);
	for (int role = 0; role < ROLES; role++)
		nps_map__free(&s.met[role]);
	nps_map__free(&s.cpus);
	return err;
}
