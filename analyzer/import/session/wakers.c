/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/wakers.h"

#include "base/map.h"
#include "model/call_class.h"

#include <errno.h>
#include <string.h>

enum sleep { AWAKE, ANY, TIMED, LOCK };

static enum sleep sleep_of(const char *call)
{
	if (!strcmp(call, "nanosleep") || !strcmp(call, "clock_nanosleep"))
		return TIMED;
	return nps_os_call_class(call) == NPS_OS_LOCK ? LOCK : ANY;
}

struct check {
	struct nps_model *m;
	struct nps_map sleeps; /* text -> enum sleep */
	struct nps_map call_of; /* tid -> its latest row of `osrt` + 1 */
	struct nps_map own; /* tids of the process */
};

/* How the thread of run ROW slept: in the call that had begun when it left the CPU, if that went on. */
static int find_sleep(struct check *c, size_t row, enum sleep *sleep)
{
	const struct nps_osrt_table *osrt = &c->m->osrt;
	uint32_t call = nps_map__get(&c->call_of, c->m->run.tid[row]), kind;
	uint64_t left = c->m->run.left[row];

	*sleep = ANY;
	if (call == NPS_NONE || !left || osrt->start[call - 1] > left || osrt->end[call - 1] < left)
		return 0;
	kind = nps_map__get(&c->sleeps, osrt->name[call - 1]);
	if (kind == NPS_NONE) {
		kind = sleep_of(nps_model__text(c->m, osrt->name[call - 1]));
		if (nps_map__put(&c->sleeps, osrt->name[call - 1], kind))
			return -ENOMEM;
	}
	*sleep = kind;
	return 0;
}

static int check_run(struct check *c, size_t row)
{
	struct nps_run_table *run = &c->m->run;
	enum sleep sleep;
	int err = run->waker[row] ? find_sleep(c, row, &sleep) : 0;

	if (err || !run->waker[row])
		return err;
	if (sleep != TIMED && (sleep != LOCK || nps_map__get(&c->own, run->waker[row]) != NPS_NONE))
		return 0;
	run->waker[row] = 0;
	run->waker_comm[row] = NPS_NONE;
	return 0;
}

/* Notes the calls from CALL on that began by TIME as the latest of their threads. */
static int note_calls(struct check *c, size_t *call, uint64_t time)
{
	const struct nps_osrt_table *t = &c->m->osrt;
	int err = 0;

	for (; !err && *call < t->t.len && t->start[*call] <= time; ++*call)
		if (t->shape[*call] != NPS_OS_FAULT) /* it can come inside of a call */
			err = nps_map__put(&c->call_of, (uint32_t)t->gtid[*call], *call + 1);
	return err;
}

static int check_runs(struct check *c)
{
	const struct nps_run_table *run = &c->m->run;
	size_t call = 0;

	for (size_t i = 0; i < run->t.len; i++) {
		int err = note_calls(c, &call, run->start[i]);

		if (err)
			return err;
		err = check_run(c, i);
		if (err)
			return err;
	}
	return 0;
}

int nps_wakers__check(struct nps_model *m)
{
	struct check c = { .m = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->run.t.len; i++)
		err = nps_map__put(&c.own, m->run.tid[i], 1);
	if (err)
		goto out;
	err = check_runs(&c);
out:
	nps_map__free(&c.sleeps);
	nps_map__free(&c.call_of);
	nps_map__free(&c.own);
	return err;
}
