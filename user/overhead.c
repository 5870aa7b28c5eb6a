/* SPDX-License-Identifier: BSD-2-Clause */
#include "overhead.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf_stats.h"
#include "capture.h"
#include "clocks.h"
#include "event.h"
#include "log.h"

#define FIRST_WINDOW_NS 500000000ULL
#define WINDOW_NS 200000000ULL
#define LEAST_RUNS 100 /* of a program, to believe its mean */

void nps_overhead__begin(struct nps_capture *c)
{
	memset(&c->overhead, 0, sizeof(c->overhead));
	c->overhead.stats_fd = -1;
	c->overhead.stats_gap = 2 * FIRST_WINDOW_NS;
	c->overhead.stats_at = nps_now(CLOCK_MONOTONIC) + FIRST_WINDOW_NS;
}

/* --- what it cost --- */

/* Mean of a program's runs in the windows so far; negative when there were too few. */
static double mean_of(const struct nps_overhead *o, const char *program)
{
	for (unsigned int i = 0; i < o->n_programs; i++)
		if (!strcmp(o->programs[i].name, program) && o->programs[i].runs >= LEAST_RUNS)
			return (double)o->programs[i].ns / (double)o->programs[i].runs;
	return -1;
}

/*
 * Cost of a call and of a mark as they are in this job: the trap as it was measured before the capture, and the program as
 * the kernel sees it run: it reads more arguments and colder memory than in the calibration.
 */
static void cost_now(const struct nps_capture *c, double *call, double *mark)
{
	double session = mean_of(&c->overhead, "call_session"), entry = mean_of(&c->overhead, "call_entry"),
	       leave = mean_of(&c->overhead, "call_return"), marks = mean_of(&c->overhead, "call_mark");

	*call = c->cost.probe_ns;
	*mark = c->cost.mark_ns;
	if (c->cost.probe_program_ns > 0 && session > 0)
		*call += 2 * session - c->cost.probe_program_ns;
	else if (c->cost.probe_program_ns > 0 && entry > 0 && leave > 0)
		*call += entry + leave - c->cost.probe_program_ns;
	if (c->cost.mark_program_ns > 0 && marks > 0)
		*mark += marks - c->cost.mark_program_ns;
}

static bool is_measured(const struct nps_capture *c)
{
	return c->cost.probe_ns >= 0 && c->cost.mark_ns >= 0 && c->reader;
}

void nps_overhead__start(struct nps_capture *c)
{
	int err = nps_bpf_stats__start(&c->overhead.stats);

	if (err)
		nps_debug("no run statistics of BPF programs: %s", strerror(-err));
}

void nps_overhead__free(struct nps_capture *c)
{
	nps_bpf_stats__free(c->overhead.stats);
	if (c->overhead.stats_fd >= 0)
		close(c->overhead.stats_fd);
}

void nps_overhead__check(struct nps_capture *c)
{
	if (!(c->opts->max_overhead > 0) || is_measured(c))
		return;
	nps_warn("cannot hold --max-overhead: what a probe costs cannot be measured on this kernel: nothing "
		 "will be given up");
	c->degraded = true;
}

void nps_overhead__settle(struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {}, totals[NPS_COST_KINDS], marks;
	double cost[NPS_COST_KINDS];
	struct nps_reader_counts n = {};

	if (!is_measured(c) || nps_kernel_side__counters(c->kernel, counters))
		return;
	nps_reader__counts(c->reader, &n);
	/* every entry-only hit becomes a record or a counted loss */
	marks = n.kinds[NPS_EV_MARK] + counters[NPS_COUNTER_LOST + NPS_EV_MARK];
	cost_now(c, &cost[NPS_COST_CALL], &cost[NPS_COST_MARK]);
	cost[NPS_COST_SYSCALL] = c->cost.syscall_ns;
	cost[NPS_COST_SUM] = c->cost.sum_ns;
	cost[NPS_COST_SWITCH] = c->cost.switch_ns;
	cost[NPS_COST_FAULT] = c->cost.fault_ns;
	totals[NPS_COST_CALL] = counters[NPS_COUNTER_HITS] > marks ? counters[NPS_COUNTER_HITS] - marks : 0;
	totals[NPS_COST_MARK] = marks;
	totals[NPS_COST_SYSCALL] = n.kinds[NPS_EV_SYSCALL] + counters[NPS_COUNTER_LOST + NPS_EV_SYSCALL];
	totals[NPS_COST_SUM] = n.summed;
	totals[NPS_COST_SWITCH] = n.kinds[NPS_EV_SCHED] + counters[NPS_COUNTER_LOST + NPS_EV_SCHED];
	totals[NPS_COST_FAULT] = n.faults;
	nps_account__add(&c->overhead.account, totals, cost);
}

double nps_overhead__percent(const struct nps_capture *c)
{
	if (!is_measured(c) || !c->job_cpu_ns)
		return -1;
	return 100 * nps_account__sum(c->overhead.account.spent) / (double)c->job_cpu_ns;
}

static const char *const kind_names[] = {
	"calls", "marks", "syscalls", "summed_syscalls", "sched", "faults"
};

void nps_overhead__print(const struct nps_capture *c, FILE *out)
{
	const double *kinds = c->overhead.account.spent;
	double percent = nps_overhead__percent(c);
	const char *between = ": ";

	if (percent < 0)
		return;
	fprintf(out, "watching took %.2f %% of the CPU time the job used", percent);
	for (int i = 0; i < NPS_COST_KINDS; i++) {
		if (!(kinds[i] > 0))
			continue;
		fprintf(out, "%s%s %.2f", between, kind_names[i], 100 * kinds[i] / (double)c->job_cpu_ns);
		between = ", ";
	}
	fprintf(out, "%s\n",
		c->stacks && c->driver ? "; stacks and driver calls not counted"
		: c->stacks	       ? "; stacks not counted"
		: c->driver	       ? "; driver calls not counted"
				       : "");
}

/* --- what is given up --- */

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

static void give_up(struct nps_capture *c, enum nps_shed what)
{
	switch (what) {
	case NPS_SHED_RECORDS:
		nps_kernel_side__set_threshold(c->kernel, NPS_LONGEST_SUMMED);
		break;
	case NPS_SHED_SYSCALLS:
		nps_kernel_side__drop_syscalls(c->kernel);
		break;
	case NPS_SHED_SCHED:
		nps_kernel_side__drop_sched(c->kernel);
		break;
	default:
		nps_probes__shed(c->probes, tier_of[what]);
	}
}

/* What there is that could be given up. */
static void look_what_can_go(const struct nps_capture *c, bool can[NPS_SHED_STAGES])
{
	can[NPS_SHED_RECORDS] = can[NPS_SHED_SYSCALLS] = nps_kernel_side__has_syscalls(c->kernel);
	can[NPS_SHED_SCHED] = nps_kernel_side__has_sched(c->kernel);
	for (int what = NPS_SHED_DETAIL; what < NPS_SHED_STAGES; what++)
		can[what] = nps_probes__has_tier(c->probes, tier_of[what]);
}

void nps_overhead__every_second(struct nps_capture *c)
{
	struct nps_overhead *o = &c->overhead;
	bool can[NPS_SHED_STAGES];
	double percent;
	int what;

	if (!is_measured(c))
		return;
	nps_overhead__settle(c);
	look_what_can_go(c, can);
	what = nps_account__judge(&o->account, c->job_cpu_ns, c->opts->max_overhead, can, &percent);
	if (what < 0)
		return;
	nps_warn("the probes took %.1f %% of the job's CPU time, more than the %.4g %% allowed: no longer "
		 "recorded: %s",
		 percent, c->opts->max_overhead, stages[what].words);
	give_up(c, what);
	o->shed[o->n_shed].mono = nps_now(CLOCK_MONOTONIC);
	o->shed[o->n_shed].percent = percent;
	o->shed[o->n_shed++].what = what;
	c->degraded = true;
}

/* --- what the kernel says the programs took --- */

static void look_at_program(const char *name, int fd, void *arg)
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
	if (o->stats_fd >= 0) { /* the window ends; several can have one name: the sums come right */
		o->programs[i].runs += info.run_cnt - o->programs[i].base_runs;
		o->programs[i].ns += info.run_time_ns - o->programs[i].base_ns;
		o->programs[i].base_runs = 0;
		o->programs[i].base_ns = 0;
		return;
	}
	o->programs[i].base_runs += info.run_cnt;
	o->programs[i].base_ns += info.run_time_ns;
}

static void look_at_programs(struct nps_capture *c)
{
	nps_kernel_side__for_each_program(c->kernel, look_at_program, &c->overhead);
	nps_driver_side__for_each_program(c->driver, look_at_program, &c->overhead);
}

void nps_overhead__turn(struct nps_capture *c, bool ending)
{
	struct nps_overhead *o = &c->overhead;
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	if (o->stats_requested) {
		if (!nps_bpf_stats__answered(o->stats, &o->stats_fd))
			return;
		o->stats_requested = false;
		/* Before 5.8 there is no such command: do without. */
		o->stats_at = o->stats_fd >= 0 ? now + WINDOW_NS : UINT64_MAX;
	}
	if (now < o->stats_at && !(ending && o->stats_fd >= 0))
		return;
	if (o->stats_fd < 0 && !ending && o->stats) {
		look_at_programs(c);
		nps_bpf_stats__request(o->stats);
		o->stats_requested = true;
		return;
	}
	if (o->stats_fd < 0)
		return;
	look_at_programs(c);
	close(o->stats_fd);
	o->stats_fd = -1;
	/* To switch it patches the kernel's code: ever more rarely. */
	o->stats_at = now + o->stats_gap;
	o->stats_gap *= 4;
}

/* --- the session's account --- */

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

void nps_overhead__describe(const struct nps_capture *c, cJSON *session)
{
	cJSON *cost = cJSON_AddObjectToObject(session, "cost"), *spent;
	uint64_t counters[NPS_COUNTER_MAX] = {};
	struct nps_host_sys_counts host;

	if (c->kernel)
		nps_kernel_side__counters(c->kernel, counters);
	add_measured(cost, "attach_ms", (double)c->attach_ns / 1e6);
	add_measured(cost, "detach_ms", (double)c->detach_ns / 1e6);
	add_measured(cost, "probe_ns", c->cost.probe_ns);
	add_measured(cost, "mark_ns", c->cost.mark_ns);
	add_measured(cost, "syscall_ns", c->cost.syscall_ns);
	add_measured(cost, "sum_ns", c->cost.sum_ns);
	add_measured(cost, "sched_ns", c->cost.switch_ns);
	add_measured(cost, "fault_ns", c->cost.fault_ns);
	cJSON_AddNumberToObject(cost, "probe_hits", (double)counters[NPS_COUNTER_HITS]);
	cJSON_AddNumberToObject(cost, "job_cpu_ns", (double)c->job_cpu_ns);
	spent = cJSON_AddObjectToObject(cost, "spent_ns");
	for (int i = 0; is_measured(c) && i < NPS_COST_KINDS; i++)
		cJSON_AddNumberToObject(spent, kind_names[i], (double)(uint64_t)c->overhead.account.spent[i]);
	add_measured(cost, "overhead_percent", nps_overhead__percent(c));
	if (c->host_sys) {
		nps_host_sys__counts(c->host_sys, &host);
		cJSON_AddNumberToObject(cost, "host_samples", (double)host.samples);
		cJSON_AddNumberToObject(cost, "host_samples_left_out", (double)host.late);
		cJSON_AddNumberToObject(cost, "host_sampling_ns", (double)host.cpu_ns);
	}
	add_measured(cost, "max_overhead_percent", c->opts->max_overhead > 0 ? c->opts->max_overhead : -1);
	add_programs(&c->overhead, cost);
	add_shed(&c->overhead, cost);
}
