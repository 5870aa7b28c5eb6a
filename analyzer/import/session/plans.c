/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/plans.h"

#include <errno.h>
#include <string.h>

#define UNCOUNTED_NS 2000000000ULL /* the collector counts losses every second */

struct plan {
	uint32_t api; /* NPS_NONE unknown */
	uint32_t outer; /* operator that was entered before and may be made of this one, NPS_NONE */
	uint32_t first, last, count; /* L0 operators */
	uint32_t operands; /* list of model->tensors */
	uint64_t opened, bound; /* when its first phase was entered, and when its executor was known */
};

#define NO_PLAN ((struct plan){ NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE, 0, NPS_NONE, 0, 0 })

struct executor {
	struct plan plan;
	uint32_t cached; /* row of plans->cached it fills, NPS_NONE */
	uint64_t since; /* when it got the plan */
	struct nps_planner planner; /* of the next run */
	bool ran, repeatable;
};

#define NO_EXECUTOR ((struct executor){ NO_PLAN, NPS_NONE, 0, { 0 }, false, false })

struct plan_thread {
	bool seen;
	uint16_t records; /* number of the next TENSOR record */
	uint32_t proc, tid;
	uint64_t last_record; /* when the last TENSOR record was written */
	/* arguments of the first phase that was entered last */
	uint32_t api, n, arrived;
	uint64_t slots[NPS_MAX_OPERANDS];
	/* first phases whose executor is not known yet; the latest one */
	uint32_t unbound;
	struct plan plan;
	struct nps_planner planner;
	uint32_t cached; /* row that the next first phase fills */
	/* the latest run */
	uint64_t run_executor;
	uint32_t run; /* its number, 0 after its second report */
};

void nps_plans__init(struct nps_plans *plans, struct nps_names *names)
{
	int tmpfd = names->model->tmpfd;

	*plans = (struct nps_plans){ .names = names };
	nps_operands__init(&plans->operands, names->model);
	nps_vec__init(&plans->executors, tmpfd, sizeof(struct executor));
	nps_vec__init(&plans->threads, tmpfd, sizeof(struct plan_thread));
	nps_vec__init(&plans->cached, tmpfd, sizeof(struct plan));
}

void nps_plans__free(struct nps_plans *plans)
{
	nps_operands__free(&plans->operands);
	nps_map__free(&plans->executor_of);
	nps_map__free(&plans->thread_of);
	nps_map__free(&plans->cached_of);
	nps_vec__free(&plans->executors);
	nps_vec__free(&plans->threads);
	nps_vec__free(&plans->cached);
}

/* The row KEY has in VEC, made if need be, in *ROW. 0 or -ENOMEM. */
static int plan_row(struct nps_map *map, struct nps_vec *vec, uint64_t key, uint32_t *row, bool *made)
{
	*row = nps_map__get(map, key);
	*made = *row == NPS_NONE;
	if (!*made)
		return 0;
	if (vec->len >= NPS_NONE || !nps_vec__push(vec))
		return -ENOMEM;
	*row = vec->len - 1;
	return nps_map__put(map, key, *row);
}

static struct executor *executor_of(struct nps_plans *plans, uint32_t proc, uint64_t address)
{
	struct executor *ex;
	uint32_t row;
	bool made;

	if (plan_row(&plans->executor_of, &plans->executors, nps_names__key(proc, address), &row, &made))
		return NULL;
	ex = &NPS_AT(&plans->executors, struct executor, row);
	if (made)
		*ex = NO_EXECUTOR;
	return ex;
}

static struct plan_thread *plan_thread(struct nps_plans *plans, const struct nps_event *ev)
{
	uint64_t key = (uint64_t)ev->pid << 32 | ev->tid;
	struct plan_thread *t;
	uint32_t row;
	bool made;

	if (plan_row(&plans->thread_of, &plans->threads, key, &row, &made))
		return NULL;
	t = &NPS_AT(&plans->threads, struct plan_thread, row);
	if (made) {
		t->api = t->cached = NPS_NONE;
		t->plan = NO_PLAN;
		t->tid = ev->tid;
	}
	return t;
}

static uint32_t plan_name(const struct nps_plans *plans, const struct nps_event *ev)
{
	uint64_t id;

	return nps_event_arg(ev, NPS_M_NAME, &id) ? nps_session__text(plans->names->model, id) : NPS_NONE;
}

/* What a later hit in the cache will find. */
static void fill_cache(struct nps_plans *plans, const struct executor *ex)
{
	if (ex->cached != NPS_NONE)
		NPS_AT(&plans->cached, struct plan, ex->cached) = ex->plan;
}

/* The executor of the thread's latest first phase is known: whatever it was before, it is this now. */
static void bind(struct nps_plans *plans, struct plan_thread *t, struct executor *ex, uint64_t at)
{
	t->plan.bound = at;
	*ex = (struct executor){ t->plan, t->cached, at, t->planner, false, false };
	t->unbound--;
	t->plan = NO_PLAN;
	t->planner.time = 0;
	t->cached = NPS_NONE;
	fill_cache(plans, ex);
}

/* --- first phases ------------------------------------------------------------------------------------ */

/* The thread is in the first phase of API, whose arguments may have been recorded. */
static void open_plan(struct nps_plans *plans, uint32_t proc, struct plan_thread *t, uint32_t api,
		      uint64_t at)
{
	const char *name = api == NPS_NONE ? NULL : nps_strings__get(&plans->names->model->strings, api);
	uint32_t outer = t->plan.api;

	t->plan = NO_PLAN;
	t->plan.api = api;
	t->plan.outer = outer;
	t->plan.opened = at;
	t->planner = (struct nps_planner){ at, t->tid };
	t->unbound++;
	if (name && t->api == api && t->arrived >= t->n)
		t->plan.operands = nps_operands__list(&plans->operands, proc, name, t->slots, t->n);
	t->api = NPS_NONE;
}

static int on_l0(struct nps_plans *plans, uint32_t proc, struct plan_thread *t, const struct nps_event *ev)
{
	struct nps_vec *l0s = &plans->names->l0s;
	struct executor *ex;
	struct nps_l0 *l0;
	uint64_t address;

	if (!nps_event_arg(ev, NPS_M_EXECUTOR, &address))
		return 0;
	ex = executor_of(plans, proc, address);
	l0 = nps_vec__push(l0s);
	if (!ex || !l0)
		return -ENOMEM;
	if (t->unbound && t->plan.api != NPS_NONE)
		bind(plans, t, ex, ev->start);
	else if (ex->ran) /* the address is used again */
		*ex = NO_EXECUTOR;
	if (t->unbound && t->planner.time) /* of a first phase whose name was lost */
		ex->planner = t->planner;
	else if (!ex->planner.time) /* first phases are not recorded at level 0 */
		ex->planner = (struct nps_planner){ ev->start, ev->tid };
	*l0 = (struct nps_l0){ plan_name(plans, ev), NPS_NONE };
	if (ex->plan.last == NPS_NONE)
		ex->plan.first = l0s->len - 1;
	else
		NPS_AT(l0s, struct nps_l0, ex->plan.last).next = l0s->len - 1;
	ex->plan.last = l0s->len - 1;
	ex->plan.count++;
	fill_cache(plans, ex);
	return 0;
}

/* Arguments that no mark of a first phase followed: CANN has no function that all of them call. */
static void open_unmarked(struct nps_plans *plans, uint32_t proc, struct plan_thread *t, uint64_t at)
{
	if (t->api != NPS_NONE)
		open_plan(plans, proc, t, t->api, at);
}

static void on_operands(struct nps_plans *plans, uint32_t proc, struct plan_thread *t,
			const struct nps_event *ev)
{
	uint32_t part = ev->tensor_head.part, n = ev->tensor_head.count;

	if (!part) {
		open_unmarked(plans, proc, t, ev->start);
		t->api = nps_session__text(plans->names->model, ev->handle);
		t->n = n;
		t->arrived = 0;
	}
	if (n > NPS_MAX_OPERANDS || part * 4 != t->arrived || t->arrived + 4 > NPS_MAX_OPERANDS ||
	    ev->flags) {
		t->n = UINT32_MAX; /* incomplete, but the first phase was entered */
		return;
	}
	memcpy(&t->slots[t->arrived], ev->tensor.member, sizeof(ev->tensor.member));
	t->arrived += 4;
}

/* Records of the thread were lost: those before the gap need not be of the call that it is in now. */
static int on_gap(struct nps_plans *plans, uint32_t proc, struct plan_thread *t, uint64_t now)
{
	int err = nps_loss_intervals__add(&plans->names->loss_intervals, proc, t->seen ? t->last_record : 0,
					  now);

	t->api = t->cached = NPS_NONE;
	return err ? err : nps_operands__forget(&plans->operands, proc);
}

/*
 * Follows the running numbers. Number 0 may be that of another thread with the same id: where records were
 * lost this cannot be decided, and the number of lost records is not known.
 */
static int count_record(struct nps_plans *plans, uint32_t proc, struct plan_thread *t,
			const struct nps_event *ev)
{
	const struct nps_losses *losses = &plans->names->model->losses;
	uint16_t gap = ev->sequence - t->records;
	int err = 0;

	if (gap && (ev->sequence || losses->ring[NPS_EV_TENSOR]))
		err = on_gap(plans, proc, t, ev->start);
	if (ev->sequence && gap <= losses->ring[NPS_EV_TENSOR])
		plans->missed += gap;
	t->seen = true;
	t->records = ev->sequence + 1;
	t->proc = proc;
	t->last_record = ev->start;
	return err;
}

static int on_tensor(struct nps_plans *plans, uint32_t proc, struct plan_thread *t,
		     const struct nps_event *ev)
{
	int err = count_record(plans, proc, t, ev);
	struct executor *ex;

	if (err)
		return err;
	switch (ev->tensor_head.what) {
	case NPS_TENSOR_TENSOR:
	case NPS_TENSOR_LIST:
		return nps_operands__add(&plans->operands, proc, ev);
	case NPS_TENSOR_OPERANDS:
		on_operands(plans, proc, t, ev);
		return 0;
	case NPS_TENSOR_EXECUTOR:
		open_unmarked(plans, proc, t, ev->start);
		if (!t->unbound || t->plan.api == NPS_NONE)
			return 0; /* its L0 operators have set it already */
		ex = executor_of(plans, proc, ev->handle);
		if (!ex)
			return -ENOMEM;
		bind(plans, t, ex, ev->start);
		return 0;
	}
	return 0;
}

/* --- the cache of executors -------------------------------------------------------------------------- */

static int on_cache(struct nps_plans *plans, uint32_t proc, struct plan_thread *t, const struct nps_event *ev)
{
	uint64_t address, key = 0;
	uint32_t row = NPS_NONE;
	struct executor *ex;
	bool made = true;
	int err = 0;

	if (!nps_event_arg(ev, NPS_M_EXECUTOR, &address))
		return 0;
	if (nps_event_arg(ev, NPS_M_ARG, &key))
		err = plan_row(&plans->cached_of, &plans->cached, nps_names__key(proc, key), &row, &made);
	if (err)
		return err;
	if (row != NPS_NONE && made)
		NPS_AT(&plans->cached, struct plan, row) = NO_PLAN;
	if (!address) { /* the first phase follows */
		t->cached = row;
		return 0;
	}
	/* The cache returned an executor without a first phase in the capture: the job had made it before. */
	if (row == NPS_NONE || NPS_AT(&plans->cached, struct plan, row).api == NPS_NONE)
		plans->names->model->procs[proc].unseen_executors++;
	ex = executor_of(plans, proc, address);
	if (!ex)
		return -ENOMEM;
	*ex = (struct executor){ row == NPS_NONE ? NO_PLAN : NPS_AT(&plans->cached, struct plan, row),
				 NPS_NONE,
				 ev->start,
				 { ev->start, ev->tid },
				 false,
				 false };
	return 0;
}

static int on_executor(struct nps_plans *plans, uint32_t proc, struct plan_thread *t,
		       const struct nps_event *ev)
{
	struct executor *ex;
	uint64_t address;

	if (ev->ret || !nps_event_arg(ev, NPS_M_EXECUTOR, &address))
		return 0;
	ex = executor_of(plans, proc, address);
	if (!ex)
		return -ENOMEM;
	/* It belongs to the thread's only open first phase: nothing else is known of either. */
	if (ev->probe == NPS_PROBE_NN_REPEATABLE && t->unbound == 1 && t->plan.api != NPS_NONE &&
	    (ex->ran || ex->plan.api == NPS_NONE))
		bind(plans, t, ex, ev->start);
	if (ev->probe == NPS_PROBE_NN_REPEATABLE)
		ex->repeatable = true;
	else
		*ex = NO_EXECUTOR;
	return 0;
}

/* --- runs -------------------------------------------------------------------------------------------- */

/* Is this the executor of the thread's only first phase without a known executor? */
static void bind_by_order(struct nps_plans *plans, struct plan_thread *t, struct executor *ex, uint32_t api,
			  uint64_t at)
{
	if (!t->unbound || api == NPS_NONE)
		return;
	if (t->api == api)
		return; /* or of a phase with recorded arguments whose entry was not recorded */
	if (t->unbound == 1 && t->plan.api == api)
		bind(plans, t, ex, at);
	else if (t->plan.api == api)
		t->unbound--; /* several are open: which of them it is, is not known */
}

/* Is the plan not of operator API? One operator may be made of another, by calling its phases. */
static bool is_another(const struct plan *plan, uint32_t api)
{
	return api != NPS_NONE && plan->api != NPS_NONE && plan->api != api && plan->outer != api;
}

/* A run without its operator, as where the mark of its second phase was lost, may be any operator's. */
static bool may_be_another(const struct nps_plans *plans, uint32_t api)
{
	const struct nps_losses *losses = &plans->names->model->losses;

	return api == NPS_NONE && (losses->ring[NPS_EV_MARK] || losses->ring[NPS_STR_TEXT] || losses->cut);
}

/*
 * A run of an operator: its launches follow on the same thread. The second phase begins it, and so does the
 * executor's run function, which is probed at level 2 only: then it is reported twice.
 */
static int on_run(struct nps_plans *plans, uint32_t proc, struct plan_thread *t, struct nps_event *ev)
{
	struct nps_vec *runs = &plans->names->runs;
	uint32_t api = plan_name(plans, ev);
	struct nps_op_run *run;
	bool unbound; /* a first phase was seen that may be the one of this executor */
	struct executor *ex;
	uint64_t address = 0;

	nps_event_arg(ev, NPS_M_EXECUTOR, &address);
	if (ev->probe == NPS_PROBE_NN_RUN && t->run && t->run_executor == address) {
		ev->call.slot[NPS_RUN_SLOT] = t->run;
		t->run = 0;
		return 0;
	}
	ex = executor_of(plans, proc, address);
	run = nps_vec__push(runs);
	if (!run || !ex)
		return -ENOMEM;
	if (ev->probe == NPS_PROBE_NN_EXPORT)
		open_unmarked(plans, proc, t, ev->start);
	unbound = t->unbound > 0;
	bind_by_order(plans, t, ex, api, ev->start);
	if (!ex->ran && !ex->since && !unbound)
		plans->names->model->procs[proc].unseen_phases++;
	/* The address again without a new first phase, or for another operator: what was planned is over. */
	if ((ex->ran && !ex->repeatable) || is_another(&ex->plan, api))
		*ex = NO_EXECUTOR;
	if (api != NPS_NONE)
		ex->plan.api = api;
	*run = (struct nps_op_run){ .api = ex->plan.api,
				    .first = ex->plan.first,
				    .count = ex->plan.count,
				    .operands = may_be_another(plans, api) ? NPS_NONE : ex->plan.operands,
				    .executor = address,
				    .opened = ex->plan.opened,
				    .bound = ex->plan.bound,
				    .since = ex->since,
				    .planner = ex->planner,
				    .begin = ev->start,
				    .end = UINT64_MAX,
				    .proc = proc };
	ex->ran = true;
	ex->planner.time = 0; /* who runs it again without a first phase is not known */
	t->run = runs->len;
	t->run_executor = address;
	ev->call.slot[NPS_RUN_SLOT] = runs->len;
	return 0;
}

/*
 * Lost records outside of gaps were the last ones of some thread, it is not known which. A thread none of
 * whose records came is not known here. The last records of a capture that was cut short were not counted.
 */
static int close_loss_interval(struct nps_plans *plans)
{
	const struct nps_losses *losses = &plans->names->model->losses;
	bool lost = losses->ring[NPS_EV_TENSOR] > plans->missed;
	uint64_t last = 0;
	int err = 0;

	for (size_t i = 0; i < plans->threads.len; i++)
		last = NPS_MAX(last, NPS_AT(&plans->threads, struct plan_thread, i).last_record);
	for (size_t i = 0; (lost || losses->cut) && !err && i < plans->threads.len; i++) {
		const struct plan_thread *t = &NPS_AT(&plans->threads, struct plan_thread, i);
		uint64_t from = t->last_record;

		if (!lost && last - from > UNCOUNTED_NS)
			from = last - UNCOUNTED_NS;
		if (t->seen)
			err = nps_loss_intervals__add(&plans->names->loss_intervals, t->proc, from,
						      UINT64_MAX);
	}
	return err;
}

int nps_plans__finish(struct nps_plans *plans)
{
	int err = close_loss_interval(plans);

	return err ? err : nps_loss_intervals__finish(&plans->names->loss_intervals);
}

bool nps_plans__wants(const struct nps_event *ev)
{
	if (ev->kind == NPS_EV_TENSOR)
		return true;
	switch (ev->probe) {
	case NPS_PROBE_NN_PHASE1:
	case NPS_PROBE_NN_PHASE2:
	case NPS_PROBE_NN_RUN:
	case NPS_PROBE_NN_L0:
	case NPS_PROBE_NN_EXPORT:
		return ev->kind == NPS_EV_MARK;
	case NPS_PROBE_PTA_GET:
	case NPS_PROBE_PTA_FIND:
	case NPS_PROBE_NN_REPEATABLE:
	case NPS_PROBE_NN_DESTROY_EXECUTOR:
		return ev->kind == NPS_EV_API;
	}
	return false;
}

int nps_plans__event(struct nps_plans *plans, uint32_t proc, struct nps_event *ev)
{
	struct plan_thread *t = plan_thread(plans, ev);

	if (!t)
		return -ENOMEM;
	if (ev->kind == NPS_EV_TENSOR)
		return on_tensor(plans, proc, t, ev);
	switch (ev->probe) {
	case NPS_PROBE_NN_PHASE1:
		open_plan(plans, proc, t, plan_name(plans, ev), ev->start);
		return 0;
	case NPS_PROBE_NN_L0:
		return on_l0(plans, proc, t, ev);
	case NPS_PROBE_PTA_GET:
	case NPS_PROBE_PTA_FIND:
		return on_cache(plans, proc, t, ev);
	case NPS_PROBE_NN_REPEATABLE:
	case NPS_PROBE_NN_DESTROY_EXECUTOR:
		return on_executor(plans, proc, t, ev);
	}
	return on_run(plans, proc, t, ev);
}
