/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/overhead/overhead.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/cost_source.h"
#include "core/clocks.h"
#include "core/log.h"
#include "event.h"
#include "sources/overhead/bpf_stats.h"

#define FIRST_WINDOW_NS 500000000ULL
#define WINDOW_NS 200000000ULL
#define LEAST_RUNS 100 /* of a program, for a meaningful mean */

void nps_overhead__begin(struct nps_overhead *o)
{
	memset(o, 0, sizeof(*o));
	o->stats_fd = -1;
	o->stats_gap = 2 * FIRST_WINDOW_NS;
	o->stats_at = nps_now(CLOCK_MONOTONIC) + FIRST_WINDOW_NS;
}

/* --- costs --- */

/* Mean time of a program's runs in the windows so far, ns; negative: too few. */
static double mean_of(const struct nps_overhead *o, const char *program)
{
	for (unsigned int i = 0; i < o->n_programs; i++)
		if (!strcmp(o->programs[i].name, program) && o->programs[i].runs >= LEAST_RUNS)
			return (double)o->programs[i].ns / (double)o->programs[i].runs;
	return -1;
}

static bool is_mark_program(const char *name)
{
	/* Each of the two traps of an operator counts as a mark. */
	static const char *const names[] = { "call_mark", "operands", "op_entry",
					     "op_end",	  "op_label", "torch_memory" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Mean over the programs that run for marks. */
static double mean_of_marks(const struct nps_overhead *o)
{
	uint64_t runs = 0, ns = 0;

	for (unsigned int i = 0; i < o->n_programs; i++)
		if (is_mark_program(o->programs[i].name)) {
			runs += o->programs[i].runs;
			ns += o->programs[i].ns;
		}
	return runs >= LEAST_RUNS ? (double)ns / (double)runs : -1;
}

/*
 * How much longer the programs of a call and of a mark run in this job than when costs were measured,
 * because they read more arguments, and memory that is not cached. Unknown values are 0.
 */
static void programs_differ(const struct nps_capture *c, const struct nps_overhead *o, double *call,
			    double *mark)
{
	const struct nps_cost *cost = &c->shared.costs.cost;
	double session = mean_of(o, "call_session"), entry = mean_of(o, "call_entry"),
	       leave = mean_of(o, "call_return"), marks = mean_of_marks(o);

	*call = *mark = 0;
	if (cost->call_program_ns > 0 && session > 0)
		*call = 2 * session - cost->call_program_ns - o->python_call_ns;
	else if (cost->call_program_ns > 0 && entry > 0 && leave > 0)
		*call = entry + leave - cost->call_program_ns - o->python_call_ns;
	if (cost->mark_program_ns > 0 && marks > 0)
		*mark = marks - cost->mark_program_ns - o->python_mark_ns;
}

/* Cost of one occurrence of each kind in this job. */
static void cost_now(const struct nps_capture *c, const struct nps_overhead *o, double kinds[NPS_COST_KINDS])
{
	const struct nps_cost *cost = &c->shared.costs.cost;
	double call, mark;

	programs_differ(c, o, &call, &mark);
	for (int class = 0; class < NPS_PROBE_CLASSES; class ++) {
		kinds[NPS_COST_CALL + class] = cost->call_ns[class] + call;
		kinds[NPS_COST_MARK + class] = cost->mark_ns[class] + mark;
	}
	kinds[NPS_COST_SYSCALL] = cost->syscall_ns;
	kinds[NPS_COST_SUM] = cost->sum_ns;
	kinds[NPS_COST_SWITCH] = cost->switch_ns;
	kinds[NPS_COST_FAULT] = cost->fault_ns;
	kinds[NPS_COST_PYTHON] = 1;
}

/* Are costs known, if only by an estimate? */
static bool cost_is_known(const struct nps_capture *c)
{
	return c->shared.reader && nps_cost__is_valid(&c->shared.costs.cost);
}

void nps_overhead__start(struct nps_overhead *o)
{
	int err = nps_bpf_stats__start(&o->stats);

	if (err)
		nps_debug("no run statistics of BPF programs: %s", strerror(-err));
}

void nps_overhead__free(struct nps_overhead *o)
{
	nps_bpf_stats__free(o->stats);
	if (o->stats_fd >= 0)
		close(o->stats_fd);
}

void nps_overhead__check(struct nps_capture *c, struct nps_overhead *o)
{
	double cost[NPS_COST_KINDS];

	if (!c->shared.costs.failed) {
		cost_now(c, o, cost);
		nps_account__price_anew(&o->account, cost);
	} else if (c->opts->max_overhead > 0) {
		nps_warn("what probes cost cannot be measured here: --max-overhead uses an estimate, "
			 "which is more likely too high than too low: more may be dropped than necessary");
		c->degraded = true;
	}
}

void nps_overhead__poll(struct nps_capture *c, struct nps_overhead *o)
{
	if (nps_cost_source__poll(&c->shared.costs))
		nps_overhead__check(c, o);
}

static double mean_walk(uint64_t ns, const uint64_t *probed)
{
	uint64_t n = 0;

	for (int class = 0; class < NPS_PROBE_CLASSES; class ++)
		n += probed[class];
	return n ? (double)ns / (double)n : 0;
}

static void python_account(struct nps_overhead *o, const uint64_t counters[NPS_COUNTER_MAX])
{
	const uint64_t *ns = &counters[NPS_COUNTER_PY_NS];

	o->python_walks = counters[NPS_COUNTER_PY_WALKS];
	o->python_ns = ns[NPS_PY_WALK_CALL] + ns[NPS_PY_WALK_MARK] + ns[NPS_PY_WALK_SAMPLE];
	o->python_call_ns = mean_walk(ns[NPS_PY_WALK_CALL], &counters[NPS_COUNTER_CALLS]);
	o->python_mark_ns = mean_walk(ns[NPS_PY_WALK_MARK], &counters[NPS_COUNTER_MARKS]);
}

void nps_overhead__settle(struct nps_capture *c, struct nps_overhead *o)
{
	uint64_t counters[NPS_COUNTER_MAX] = {}, totals[NPS_COST_KINDS];
	double cost[NPS_COST_KINDS];
	struct nps_reader_counts n = {};

	if (!cost_is_known(c) || nps_bpf_loader__counters(c->shared.kernel, counters))
		return;
	nps_reader__counts(c->shared.reader, &n);
	python_account(o, counters);
	cost_now(c, o, cost);
	for (int class = 0; class < NPS_PROBE_CLASSES; class ++) {
		totals[NPS_COST_CALL + class] = counters[NPS_COUNTER_CALLS + class];
		totals[NPS_COST_MARK + class] = counters[NPS_COUNTER_MARKS + class];
	}
	totals[NPS_COST_SYSCALL] = n.kinds[NPS_EV_SYSCALL] + counters[NPS_COUNTER_LOST + NPS_EV_SYSCALL];
	totals[NPS_COST_SUM] = n.summed;
	totals[NPS_COST_SWITCH] = n.kinds[NPS_EV_SCHED] + counters[NPS_COUNTER_LOST + NPS_EV_SCHED];
	totals[NPS_COST_FAULT] = n.faults;
	totals[NPS_COST_PYTHON] = o->python_ns;
	nps_account__add(&o->account, totals, cost);
}

double nps_overhead__percent(const struct nps_capture *c, const struct nps_overhead *o)
{
	if (!cost_is_known(c) || !c->job_cpu_ns)
		return -1;
	return 100 * nps_account__sum(o->account.spent) / (double)c->job_cpu_ns;
}

/* Kinds as they are reported: the classes of a kind are summed up. */
static const struct {
	const char *name;
	enum nps_cost_kind kind;
	bool classes;
} reported_kinds[] = {
	{ "calls", NPS_COST_CALL, true },
	{ "marks", NPS_COST_MARK, true },
	{ "syscalls", NPS_COST_SYSCALL, false },
	{ "summed_syscalls", NPS_COST_SUM, false },
	{ "sched", NPS_COST_SWITCH, false },
	{ "faults", NPS_COST_FAULT, false },
	{ "python_stacks", NPS_COST_PYTHON, false },
};
#define REPORTED_KINDS (sizeof(reported_kinds) / sizeof(*reported_kinds))

static double spent_for(const struct nps_overhead *o, size_t kind)
{
	const double *spent = o->account.spent;

	return reported_kinds[kind].classes ? nps_account__sum_of_classes(spent, reported_kinds[kind].kind)
					    : spent[reported_kinds[kind].kind];
}

/* Prints " (emulated 0.20, single-stepped 3.10)", unless all are cheap. */
static void print_classes(const struct nps_capture *c, const struct nps_overhead *o, enum nps_cost_kind first,
			  FILE *out)
{
	const double *spent = &o->account.spent[first];
	const char *between = " (";

	if (!(spent[NPS_PROBE_NOP] > 0) && !(spent[NPS_PROBE_STEPPED] > 0))
		return;
	for (enum nps_probe_class class = 0; class < NPS_PROBE_CLASSES; class ++) {
		if (!(spent[class] > 0))
			continue;
		fprintf(out, "%s%s %.2f", between, nps_probe_class__name(class),
			100 * spent[class] / (double)c->job_cpu_ns);
		between = ", ";
	}
	fputc(')', out);
}

static const char *basis_words(const struct nps_cost_source *s)
{
	if (s->basis != NPS_COST_ESTIMATED)
		return "";
	return s->failed ? " (estimated: what probes cost cannot be measured here)"
			 : " (estimated: the capture ended before it was measured what probes cost)";
}

void nps_overhead__print(const struct nps_capture *c, const struct nps_overhead *o, FILE *out)
{
	double percent = nps_overhead__percent(c, o);
	const char *between = ": ";
	char uncosted[128];

	if (percent < 0)
		return;
	fprintf(out, "watching took %.2f %% of the CPU time the job used%s", percent,
		basis_words(&c->shared.costs));
	for (size_t i = 0; i < REPORTED_KINDS; i++) {
		double ns = spent_for(o, i);

		if (!(ns > 0))
			continue;
		fprintf(out, "%s%s %.2f", between, reported_kinds[i].name, 100 * ns / (double)c->job_cpu_ns);
		if (reported_kinds[i].classes)
			print_classes(c, o, reported_kinds[i].kind, out);
		between = ", ";
	}
	nps_sources__uncosted(c, uncosted, sizeof(uncosted));
	if (uncosted[0])
		fprintf(out, "; %s not counted", uncosted);
	fputc('\n', out);
}

static void print_class_costs(FILE *out, const char *what, const double *ns)
{
	const char *before = what;

	for (int class = 0; class < NPS_PROBE_CLASSES; class ++) {
		if (ns[class] < 0)
			continue;
		fprintf(out, "%s %.0f ns %s", before, ns[class], nps_cost__where(class));
		before = ",";
	}
}

void nps_overhead__print_costs(const struct nps_capture *c, const struct nps_overhead *o, FILE *out)
{
	const struct nps_cost *cost = &c->shared.costs.cost;
	const struct {
		const char *what;
		double ns;
	} host[] = { { "a system call", cost->syscall_ns },
		     { "one that is summed up", cost->sum_ns },
		     { "a switch", cost->switch_ns },
		     { "a page fault", cost->fault_ns } };

	if (!cost_is_known(c))
		return;
	fprintf(out, "costs, %s:", nps_cost_basis__name(c->shared.costs.basis));
	print_class_costs(out, " a probed call", cost->call_ns);
	print_class_costs(out, "; at its entry only", cost->mark_ns);
	for (size_t i = 0; c->opts->osrt && i < sizeof(host) / sizeof(*host); i++)
		if (host[i].ns >= 0)
			fprintf(out, "%s %s %.0f ns", i ? "," : ";", host[i].what, host[i].ns);
	if (o->python_walks)
		fprintf(out, "; a Python stack %.0f ns", (double)o->python_ns / (double)o->python_walks);
	fputc('\n', out);
}

/* --- dropping --- */

static const struct {
	const char *name, *words;
} stages[] = {
	[NPS_SHED_RECORDS] = { "syscall_records", "single system calls, which are summed up" },
	[NPS_SHED_SYSCALLS] = { "syscalls", "system calls" },
	[NPS_SHED_SCHED] = { "scheduling", "scheduling" },
	[NPS_SHED_DETAIL] = { "detail", "calls that neither queue work nor wait for it" },
	[NPS_SHED_NAMES] = { "names", "names of kernels" },
	[NPS_SHED_CORE] = { "all", "every call; the device's own log goes on" },
};

const char *nps_shed__name(enum nps_shed what)
{
	return stages[what].name;
}

static const enum nps_tier tier_of[NPS_SHED_STAGES] = { [NPS_SHED_DETAIL] = NPS_TIER_DETAIL,
							[NPS_SHED_NAMES] = NPS_TIER_NAMES,
							[NPS_SHED_CORE] = NPS_TIER_CORE };

static void stage_shed(struct nps_capture *c, enum nps_shed what)
{
	switch (what) {
	case NPS_SHED_RECORDS:
		nps_bpf_loader__set_threshold(c->shared.kernel, NPS_LONGEST_SUMMED);
		break;
	case NPS_SHED_SYSCALLS:
		nps_bpf_loader__drop_syscalls(c->shared.kernel);
		break;
	case NPS_SHED_SCHED:
		nps_bpf_loader__drop_sched(c->shared.kernel);
		break;
	default:
		nps_probes__shed(c->shared.probes, tier_of[what]);
	}
}

/* Sets CAN of stages that could be dropped now. */
static void list_sheddable(const struct nps_capture *c, bool can[NPS_SHED_STAGES])
{
	can[NPS_SHED_RECORDS] = can[NPS_SHED_SYSCALLS] = nps_bpf_loader__has_syscalls(c->shared.kernel);
	can[NPS_SHED_SCHED] = nps_bpf_loader__has_sched(c->shared.kernel);
	for (int what = NPS_SHED_DETAIL; what < NPS_SHED_STAGES; what++)
		can[what] = nps_probes__has_tier(c->shared.probes, tier_of[what]);
}

#define MEASURING_NS 5000000000ULL /* time of measuring, with a margin */

void nps_overhead__every_second(struct nps_capture *c, struct nps_overhead *o)
{
	bool can[NPS_SHED_STAGES];
	double percent;
	int what;

	if (!cost_is_known(c))
		return;
	nps_overhead__settle(c, o);
	/*
	 * Not by an estimate during the measurement: costs will be known better
	 * soon, unless the machine is crowded.
	 */
	if (c->shared.costs.basis == NPS_COST_ESTIMATED && !c->shared.costs.failed &&
	    nps_now(CLOCK_MONOTONIC) - c->begin_mono < MEASURING_NS)
		return;
	list_sheddable(c, can);
	what = nps_account__judge(&o->account, c->job_cpu_ns, c->opts->max_overhead, can, &percent);
	if (what < 0)
		return;
	nps_warn("the probes took %.1f %% of the job's CPU time, more than the %.4g %% allowed: no longer "
		 "recorded: %s",
		 percent, c->opts->max_overhead, stages[what].words);
	stage_shed(c, what);
	o->shed[o->n_shed].mono = nps_now(CLOCK_MONOTONIC);
	o->shed[o->n_shed].percent = percent;
	o->shed[o->n_shed++].what = what;
	c->degraded = true;
}

/* --- run time of programs, by the kernel's count --- */

static void read_program_stats(const char *name, int fd, void *arg)
{
	struct nps_overhead *o = arg;
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info), i;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return;
	for (i = 0; i < o->n_programs; i++)
		if (!strcmp(o->programs[i].name, name))
			break;
	if (i == NPS_OVERHEAD_PROGRAMS)
		return;
	if (i == o->n_programs)
		snprintf(o->programs[o->n_programs++].name, sizeof(o->programs[i].name), "%.31s", name);
	if (o->stats_fd >= 0) { /* the window ends; programs that share a name are summed up */
		o->programs[i].runs += info.run_cnt - o->programs[i].base_runs;
		o->programs[i].ns += info.run_time_ns - o->programs[i].base_ns;
		o->programs[i].base_runs = 0;
		o->programs[i].base_ns = 0;
		return;
	}
	o->programs[i].base_runs += info.run_cnt;
	o->programs[i].base_ns += info.run_time_ns;
}

static void read_programs(const struct nps_capture *c, struct nps_overhead *o)
{
	nps_sources__programs(c, read_program_stats, o);
}

void nps_overhead__turn(struct nps_capture *c, struct nps_overhead *o, bool ending)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	if (o->stats_requested) {
		if (!nps_bpf_stats__answered(o->stats, &o->stats_fd))
			return;
		o->stats_requested = false;
		/* Before 5.8 there is no such command: never try again. */
		o->stats_at = o->stats_fd >= 0 ? now + WINDOW_NS : UINT64_MAX;
	}
	if (now < o->stats_at && !(ending && o->stats_fd >= 0))
		return;
	if (o->stats_fd < 0 && !ending && o->stats) {
		read_programs(c, o);
		nps_bpf_stats__request(o->stats);
		o->stats_requested = true;
		return;
	}
	if (o->stats_fd < 0)
		return;
	read_programs(c, o);
	close(o->stats_fd);
	o->stats_fd = -1;
	/* The switch patches the kernel's code, so it becomes less and less frequent. */
	o->stats_at = now + o->stats_gap;
	o->stats_gap *= 4;
}

/* --- "cost" of the session --- */

static void add_measured(cJSON *j, const char *name, double v)
{
	if (v >= 0)
		cJSON_AddNumberToObject(j, name, (double)(uint64_t)(v * 100 + 0.5) / 100);
	else
		cJSON_AddNullToObject(j, name);
}

static void add_programs(const struct nps_overhead *o, cJSON *cost)
{
	cJSON *list = cJSON_AddArrayToObject(cost, "programs");

	for (unsigned int i = 0; i < o->n_programs; i++) {
		cJSON *j;

		if (!o->programs[i].runs)
			continue;
		j = cJSON_CreateObject();
		cJSON_AddItemToArray(list, j);
		cJSON_AddStringToObject(j, "name", o->programs[i].name);
		cJSON_AddNumberToObject(j, "runs", (double)o->programs[i].runs);
		add_measured(j, "mean_ns", (double)o->programs[i].ns / (double)o->programs[i].runs);
	}
}

static void add_shed(const struct nps_overhead *o, cJSON *cost)
{
	cJSON *list = cJSON_AddArrayToObject(cost, "given_up");

	for (unsigned int i = 0; i < o->n_shed; i++) {
		cJSON *j = cJSON_CreateObject();
		char mono[24];

		cJSON_AddItemToArray(list, j);
		cJSON_AddStringToObject(j, "what", nps_shed__name(o->shed[i].what));
		snprintf(mono, sizeof(mono), "%llu", (unsigned long long)o->shed[i].mono);
		cJSON_AddRawToObject(j, "monotonic", mono);
		add_measured(j, "overhead_percent", o->shed[i].percent);
	}
}

static void add_classes(const struct nps_capture *c, const struct nps_overhead *o,
			const uint64_t counters[NPS_COUNTER_MAX], cJSON *cost)
{
	cJSON *classes = cJSON_AddObjectToObject(cost, "probes");
	const double *spent = o->account.spent;

	for (enum nps_probe_class class = 0; class < NPS_PROBE_CLASSES; class ++) {
		cJSON *j = cJSON_AddObjectToObject(classes, nps_probe_class__name(class));

		add_measured(j, "call_ns", c->shared.costs.cost.call_ns[class]);
		add_measured(j, "mark_ns", c->shared.costs.cost.mark_ns[class]);
		cJSON_AddNumberToObject(j, "calls", (double)counters[NPS_COUNTER_CALLS + class]);
		cJSON_AddNumberToObject(j, "marks", (double)counters[NPS_COUNTER_MARKS + class]);
		cJSON_AddNumberToObject(
			j, "spent_ns",
			(double)(uint64_t)(spent[NPS_COST_CALL + class] + spent[NPS_COST_MARK + class]));
	}
}

void nps_overhead__describe(const struct nps_capture *c, const struct nps_overhead *o, cJSON *session)
{
	cJSON *cost = cJSON_AddObjectToObject(session, "cost"), *spent;
	uint64_t counters[NPS_COUNTER_MAX] = {};

	if (c->shared.kernel)
		nps_bpf_loader__counters(c->shared.kernel, counters);
	add_measured(cost, "attach_ms", (double)c->attach_ns / 1e6);
	add_measured(cost, "detach_ms", (double)c->detach_ns / 1e6);
	cJSON_AddStringToObject(cost, "source", nps_cost_basis__name(c->shared.costs.basis));
	add_classes(c, o, counters, cost);
	add_measured(cost, "syscall_ns", c->shared.costs.cost.syscall_ns);
	add_measured(cost, "sum_ns", c->shared.costs.cost.sum_ns);
	add_measured(cost, "sched_ns", c->shared.costs.cost.switch_ns);
	add_measured(cost, "fault_ns", c->shared.costs.cost.fault_ns);
	add_measured(cost, "python_stack_ns",
		     o->python_walks ? (double)o->python_ns / (double)o->python_walks : -1);
	cJSON_AddNumberToObject(cost, "python_stacks", (double)o->python_walks);
	cJSON_AddNumberToObject(cost, "job_cpu_ns", (double)c->job_cpu_ns);
	spent = cJSON_AddObjectToObject(cost, "spent_ns");
	for (size_t i = 0; cost_is_known(c) && i < REPORTED_KINDS; i++)
		cJSON_AddNumberToObject(spent, reported_kinds[i].name, (double)(uint64_t)spent_for(o, i));
	add_measured(cost, "overhead_percent", nps_overhead__percent(c, o));
	nps_sources__describe(c, NPS_SECTION_COST_PART, session, cost);
	add_measured(cost, "max_overhead_percent", c->opts->max_overhead > 0 ? c->opts->max_overhead : -1);
	add_programs(o, cost);
	add_shed(o, cost);
}
