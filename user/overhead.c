/* SPDX-License-Identifier: BSD-2-Clause */
#include "overhead.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "clocks.h"
#include "event.h"
#include "log.h"

#define FIRST_WINDOW_NS 500000000ULL
#define WINDOW_NS 200000000ULL
#define LEAST_CPU_NS                                                                                         \
	200000000ULL /* of the job, to say anything about a share of it: the kernel counts it in 10 ms */
#define LEAST_RUNS 100 /* of a program, to believe its mean */
#define WORTH 0.02 /* of all cost: a stage that saves less is passed over */

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

double nps_overhead__spent(const struct nps_capture *c, double kinds[NPS_COST_KINDS])
{
	uint64_t counters[NPS_COUNTER_MAX] = {}, marks;
	struct nps_reader_counts n = {};
	double all = 0, call, mark;

	memset(kinds, 0, NPS_COST_KINDS * sizeof(*kinds));
	if (c->cost.probe_ns < 0 || c->cost.mark_ns < 0 || !c->reader)
		return -1;
	nps_reader__counts(c->reader, &n);
	nps_kernel_side__counters(c->kernel, counters);
	/* every entry-only hit becomes a record or a counted loss */
	marks = n.kinds[NPS_EV_MARK] + counters[NPS_COUNTER_LOST + NPS_EV_MARK];
	cost_now(c, &call, &mark);
	kinds[NPS_COST_CALL] = call * ((double)counters[NPS_COUNTER_HITS] - (double)marks);
	kinds[NPS_COST_MARK] = mark * (double)marks;
	if (c->cost.syscall_ns > 0)
		kinds[NPS_COST_SYSCALL] = c->cost.syscall_ns * (double)(n.kinds[NPS_EV_SYSCALL] + n.summed);
	if (c->cost.fault_ns > 0)
		kinds[NPS_COST_FAULT] = c->cost.fault_ns * (double)n.faults;
	if (c->cost.switch_ns > 0)
		kinds[NPS_COST_SWITCH] = c->cost.switch_ns * (double)n.kinds[NPS_EV_SCHED];
	for (int i = 0; i < NPS_COST_KINDS; i++)
		all += kinds[i];
	return all;
}

double nps_overhead__percent(const struct nps_capture *c)
{
	double kinds[NPS_COST_KINDS], ns = nps_overhead__spent(c, kinds);

	return ns < 0 || !c->job_cpu_ns ? -1 : 100 * ns / (double)c->job_cpu_ns;
}

static const char *const kind_names[] = { "calls", "marks", "syscalls", "sched", "faults" };

void nps_overhead__print(const struct nps_capture *c, FILE *out)
{
	double kinds[NPS_COST_KINDS], all = nps_overhead__spent(c, kinds);
	const char *between = ": ";

	if (all < 0 || !c->job_cpu_ns)
		return;
	fprintf(out, "watching took %.2f %% of the CPU time the job used", nps_overhead__percent(c));
	for (int i = 0; i < NPS_COST_KINDS; i++) {
		if (!(kinds[i] > 0))
			continue;
		fprintf(out, "%s%s %.2f", between, kind_names[i], 100 * kinds[i] / (double)c->job_cpu_ns);
		between = ", ";
	}
	fprintf(out, "%s\n", c->stacks ? "; stacks not counted" : "");
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

static void give_up(struct nps_capture *c, enum nps_shed what)
{
	switch (what) {
	case NPS_SHED_RECORDS:
		nps_kernel_side__sum_syscalls(c->kernel);
		break;
	case NPS_SHED_SYSCALLS:
		nps_kernel_side__drop_syscalls(c->kernel);
		break;
	case NPS_SHED_SCHED:
		nps_kernel_side__drop_sched(c->kernel);
		break;
	case NPS_SHED_DETAIL:
		nps_probes__shed(c->probes, NPS_TIER_DETAIL);
		break;
	case NPS_SHED_NAMES:
		nps_probes__shed(c->probes, NPS_TIER_NAMES);
		break;
	default:
		nps_probes__shed(c->probes, NPS_TIER_CORE);
	}
}

/* Would the stage save anything worth the loss? Costs of calls are not told apart by tier. */
static bool is_worth(enum nps_shed what, const double kinds[NPS_COST_KINDS], double all)
{
	if (what <= NPS_SHED_SYSCALLS)
		return kinds[NPS_COST_SYSCALL] > WORTH * all;
	if (what == NPS_SHED_SCHED)
		return kinds[NPS_COST_SWITCH] > WORTH * all;
	return true;
}

void nps_overhead__every_second(struct nps_capture *c)
{
	struct nps_overhead *o = &c->overhead;
	double kinds[NPS_COST_KINDS], spent = nps_overhead__spent(c, kinds), percent;
	uint64_t cpu_ns = c->job_cpu_ns - o->cpu_ns, spent_ns = (uint64_t)spent - o->spent_ns;

	if (spent < 0 || cpu_ns < LEAST_CPU_NS)
		return;
	o->cpu_ns = c->job_cpu_ns;
	o->spent_ns = (uint64_t)spent;
	percent = 100 * (double)spent_ns / (double)cpu_ns;
	if (!(c->opts->max_overhead > 0) || percent <= c->opts->max_overhead)
		return;
	while (o->stage < NPS_SHED_STAGES && !is_worth(o->stage, kinds, spent))
		o->stage++;
	if (o->stage == NPS_SHED_STAGES)
		return;
	nps_warn("the probes took %.1f %% of the job's CPU time, more than the %.4g %% allowed: no longer "
		 "recorded: %s",
		 percent, c->opts->max_overhead, stages[o->stage].words);
	give_up(c, o->stage);
	o->shed[o->n_shed].mono = nps_now(CLOCK_MONOTONIC);
	o->shed[o->n_shed].percent = percent;
	o->shed[o->n_shed++].what = o->stage++;
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
	if (o->stats_fd >= 0) { /* the window ends */
		o->programs[i].runs += info.run_cnt - o->programs[i].base_runs;
		o->programs[i].ns += info.run_time_ns - o->programs[i].base_ns;
	}
	o->programs[i].base_runs = info.run_cnt;
	o->programs[i].base_ns = info.run_time_ns;
}

void nps_overhead__turn(struct nps_capture *c, bool ending)
{
	struct nps_overhead *o = &c->overhead;
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	if (now < o->stats_at && !(ending && o->stats_fd >= 0))
		return;
	if (o->stats_fd < 0 && !ending) {
		nps_kernel_side__for_each_program(c->kernel, look_at_program, o);
		o->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
		/* Before 5.8 there is no such command: do without. */
		o->stats_at = o->stats_fd >= 0 ? now + WINDOW_NS : UINT64_MAX;
		return;
	}
	if (o->stats_fd < 0)
		return;
	nps_kernel_side__for_each_program(c->kernel, look_at_program, o);
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
	double kinds[NPS_COST_KINDS], all = nps_overhead__spent(c, kinds);
	struct nps_host_sys_counts host;

	if (c->kernel)
		nps_kernel_side__counters(c->kernel, counters);
	add_measured(cost, "attach_ms", (double)c->attach_ns / 1e6);
	add_measured(cost, "detach_ms", (double)c->detach_ns / 1e6);
	add_measured(cost, "probe_ns", c->cost.probe_ns);
	add_measured(cost, "mark_ns", c->cost.mark_ns);
	add_measured(cost, "syscall_ns", c->cost.syscall_ns);
	add_measured(cost, "sched_ns", c->cost.switch_ns);
	add_measured(cost, "fault_ns", c->cost.fault_ns);
	cJSON_AddNumberToObject(cost, "probe_hits", (double)counters[NPS_COUNTER_HITS]);
	cJSON_AddNumberToObject(cost, "job_cpu_ns", (double)c->job_cpu_ns);
	spent = cJSON_AddObjectToObject(cost, "spent_ns");
	for (int i = 0; all >= 0 && i < NPS_COST_KINDS; i++)
		cJSON_AddNumberToObject(spent, kind_names[i], (double)(uint64_t)kinds[i]);
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
