/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the job's libraries, system calls, scheduling, interrupts: the BPF programs of bpf_loader.h,
 * the probes that run them, and the thread that reads their records. Most other sources use these.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/irq.h"
#include "capture/capture.h"
#include "capture/job_processes.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/priority.h"
#include "core/session_json.h"
#include "python_stack.h"
#include "sources/calls/open_slices.h"
#include "sources/source_rows.h"

/* State at the end of the capture; written when the reader has ended. */
struct calls_source {
	struct nps_open_slices slices;
};

static int find_out_kernel(struct nps_capture *c, struct nps_source *s)
{
	int before = nps_priority__raise();

	nps_capability__probe(&c->shared.cap);
	nps_priority__restore(before);
	s->state = calloc(1, sizeof(struct calls_source));
	if (s->state)
		return nps_capability__check(&c->shared.cap);
	nps_warn("not enough memory to begin: free some");
	return -ENOMEM;
}

/* The BPF objects, and the tracepoints that they need. */
static int load_programs(struct nps_capture *c)
{
	struct nps_bpf_loader_opts opts = { .sz = sizeof(opts),
					    .ring_bytes = c->opts->ring_bytes,
					    .osrt = c->opts->osrt,
					    .irq = c->opts->irq,
					    .network = c->opts->host_sys & NPS_HOST_SYS_NETWORK,
					    .osrt_threshold_ns = c->opts->osrt_threshold_ns,
					    .shapes = c->opts->shapes,
					    .ops = c->opts->ops,
					    .torch_memory = c->opts->torch_memory,
					    .python_at = c->opts->python_at,
					    .mstx = &c->opts->mstx };
	struct nps_shared *shared = &c->shared;
	int before = nps_priority__raise();
	int err = nps_bpf_loader__open(&c->shared.cap, &opts, &shared->kernel);

	nps_priority__restore(before);
	if (err)
		return err;
	shared->kernel_cap = nps_bpf_loader__cap(shared->kernel);
	if (nps_bpf_loader__is_legacy(shared->kernel)) {
		nps_warn("this kernel lacks BTF or ring buffers: only calls, submissions, marks and system "
			 "calls are recorded, without scheduling, locks, children of the job and kinds of "
			 "descriptors: `npuscope doctor` shows what it lacks");
		c->degraded = true;
	}
	err = nps_probes__new(shared->kernel, c->opts->level,
			      c->opts->shapes && !nps_bpf_loader__is_legacy(shared->kernel),
			      &shared->operators, &shared->probes);
	if (!err && (c->opts->ops || c->opts->python_at & NPS_PY_AT_LAUNCH))
		nps_probes__with_caches(shared->probes);
	return err ? err : nps_bpf_loader__attach(shared->kernel);
}

static int calls_begin(struct nps_capture *c)
{
	struct nps_shared *shared = &c->shared;
	int err = load_programs(c);

	if (err)
		return err;
	if (c->opts->mstx.off)
		nps_probes__leave_out(shared->probes, NPS_LIB_MSTX);
	if (c->opts->driver.tasks)
		nps_probes__watch_submissions(shared->probes);
	if (c->opts->keep_polled)
		nps_probes__keep_polled(shared->probes);
	if (c->opts->all && c->opts->osrt)
		nps_info("system calls and switches of every process are recorded: each call takes %.0f ns "
			 "longer, each switch %.0f ns%s",
			 c->opts->osrt_threshold_ns ? shared->costs.cost.sum_ns
						    : shared->costs.cost.syscall_ns,
			 shared->costs.cost.switch_ns,
			 shared->costs.basis == NPS_COST_ESTIMATED ? ", by estimate" : "");
	if (nps_bpf_loader__python_fd(shared->kernel) >= 0)
		err = nps_session_writer__open_python(&c->session);
	if (err) {
		nps_warn("cannot write python.nps: %s", strerror(-err));
		return err;
	}
	nps_bpf_loader__reset_counters(shared->kernel);
	err = nps_reader__start(shared->kernel, &c->session, &shared->operators, &shared->reader);
	if (err)
		nps_warn("cannot start reading: %s", strerror(-err));
	return err;
}

static int calls_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	if (stage == NPS_START_PREPARE)
		return find_out_kernel(c, s);
	if (stage == NPS_START_ATTACH)
		return calls_begin(c);
	if (stage == NPS_START_RUN)
		nps_info("recording %u probes in %u files%s: Ctrl-C ends it",
			 nps_probes__count(c->shared.probes), nps_probes__files(c->shared.probes),
			 c->opts->command ? " while the command runs" : "");
	return 0;
}

static const char *calls_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)s;
	if (kind == NPS_TURN_READY)
		nps_probes__turn(c->shared.probes, nps_now(CLOCK_MONOTONIC));
	return NULL;
}

/* Collects what was open at the end. */
static void collect_open(struct nps_capture *c, struct nps_open_slices *slices)
{
	struct nps_bpf_loader *k = c->shared.kernel;

	*slices = (struct nps_open_slices){ .begin = c->begin_mono, .end = c->end_mono };
	if (nps_open_calls__collect(slices, k, nps_probes__shed_tier(c->shared.probes)))
		c->degraded = true;
	if (!c->opts->osrt)
		return;
	nps_open_slices__collect(slices, k);
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (!p->exit_mono && p->start_mono < c->begin_mono)
			nps_open_slices__collect_unseen(slices, k, p->pid);
}

static uint64_t texts_cut(const struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {};
	struct nps_reader_counts n = {};

	if (c->shared.reader)
		nps_reader__counts(c->shared.reader, &n);
	if (c->shared.kernel)
		nps_bpf_loader__counters(c->shared.kernel, counters);
	return n.texts_cut + counters[NPS_COUNTER_TEXT_CUT];
}

static void report_libraries(struct nps_capture *c)
{
	const struct nps_probes *probes = c->shared.probes;
	bool cann = nps_probes__count(probes) > 0;

	for (struct nps_process *p = c->processes; p; p = p->next)
		if (p->has_cann)
			cann = true;
	if (c->opts->all) {
		if (!c->processes)
			nps_info("no process used an NPU: only the host was recorded");
	} else if (cann && c->opts->level >= 0 && !nps_probes__count(probes) && nps_probes__a_file(probes)) {
		nps_warn(
			"none of the functions that npuscope knows could be probed in %s: only what the host "
			"saw was recorded: npuscope doctor --probes lists them",
			nps_probes__a_file(probes));
		c->degraded = true;
	} else if (!cann && c->opts->host_requested && c->opts->level >= 0) {
		nps_info("no process has a CANN library mapped: only what the host saw was recorded");
	} else if ((!cann || !nps_probes__count(probes)) && c->opts->level >= 0) {
		nps_warn("no process has a CANN library mapped: only what the host saw was recorded: is "
			 "this the NPU job? --level none records the host alone, without this message");
		c->degraded = true;
	}
	if ((c->opts->irq && !nps_bpf_loader__has_irq(c->shared.kernel)) || nps_probes__refused(probes))
		c->degraded = true;
	if (c->opts->torch_memory && !c->torch_npu_found && !c->opts->all) {
		nps_warn("no process has libtorch_npu.so mapped: there is nothing for --profile-memory: is "
			 "this "
			 "a job of PyTorch on the NPU?");
		c->degraded = true;
	}
	if (c->opts->step_marker && !c->marker_found) {
		nps_warn("no function %s in the job: there are no steps: check the name with nm -D or "
			 "--step-marker",
			 c->opts->step_marker);
		c->degraded = true;
	}
}

/* If domains are selected by name, those created before the capture have no name. */
static void report_unnamed(struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {};
	enum nps_mstx_mode mode = nps_mstx__mode(&c->opts->mstx);
	uint64_t cut = texts_cut(c);

	nps_bpf_loader__counters(c->shared.kernel, counters);
	if (mode != NPS_MSTX_ALL && counters[NPS_COUNTER_DOMAIN_UNKNOWN]) {
		nps_warn("%" PRIu64
			 " mstx domains were made before the capture and have no name: their marks "
			 "are %s: start the capture first, or the job with libnpuscope_mstx.so",
			 counters[NPS_COUNTER_DOMAIN_UNKNOWN],
			 mode == NPS_MSTX_INCLUDE ? "left out" : "kept");
		c->degraded = true;
	}
	if (counters[NPS_COUNTER_FOREIGN]) {
		nps_warn("%" PRIu64 " system calls were made in the way of 32-bit programs, or with a number "
			 "of none: they are "
			 "not recorded",
			 counters[NPS_COUNTER_FOREIGN]);
		c->degraded = true;
	}
	if (cut)
		nps_warn("%" PRIu64 " texts were longer than %d bytes: they are cut, and end in [cut]", cut,
			 NPS_TEXT_MAX);
}

static void calls_detach(struct nps_capture *c)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);

	nps_bpf_loader__detach(c->shared.kernel);
	nps_probes__detach(c->shared.probes);
	c->detach_ns += nps_now(CLOCK_MONOTONIC) - begin;
}

static void calls_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	struct calls_source *calls = s->state;

	switch (stage) {
	case NPS_END_DISARM:
		nps_bpf_loader__end(c->shared.kernel,
				    c->end_mono); /* also waits for running programs of other sources */
		break;
	case NPS_END_COLLECT:
		collect_open(c, &calls->slices);
		break;
	case NPS_END_DETACH:
		calls_detach(c);
		break;
	case NPS_END_SETTLE:
	case NPS_END_CANCEL:
		nps_reader__stop(c->shared.reader); /* it writes until then */
		break;
	case NPS_END_FINISH:
		if (nps_open_slices__write(&calls->slices, c->shared.reader))
			c->degraded = true;
		break;
	case NPS_END_RELEASE:
		report_libraries(c);
		report_unnamed(c);
		break;
	default:
		break;
	}
}

static void calls_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	uint64_t counters[NPS_COUNTER_MAX] = {};
	struct nps_reader_counts read = {};
	uint64_t net = c->shared.kernel ? nps_bpf_loader__net_lost(c->shared.kernel) : 0;

	(void)s;
	if (c->shared.reader)
		nps_reader__counts(c->shared.reader, &read);
	if (c->shared.kernel)
		nps_bpf_loader__counters(c->shared.kernel, counters);
	for (int kind = 1; kind < NPS_KIND_END; kind++) {
		n->events[kind] += read.kinds[kind];
		n->lost[kind] += counters[NPS_COUNTER_LOST + kind];
	}
	n->summed += read.summed;
	n->sums += read.sums_failed;
	n->sqe += counters[NPS_COUNTER_SQE_CUT];
	n->processes += read.processes_lost;
	n->host += net; /* processes whose sockets were not counted */
	n->dropped += read.sums_failed + counters[NPS_COUNTER_SQE_CUT] + read.processes_lost + net;
}

static void describe_totals(const struct nps_capture *c, cJSON *session)
{
	const struct nps_bpf_loader *k = c->shared.kernel;
	uint64_t counters[NPS_COUNTER_MAX] = {};

	if (k)
		nps_bpf_loader__counters(k, counters);
	cJSON_AddStringToObject(session, "kernel_side",
				k && nps_bpf_loader__is_legacy(k) ? "legacy" : "full");
	nps_json__add_u64(session, "unread_processes", nps_job_processes__unread(c));
	nps_json__add_u64(session, "unreturned", counters[NPS_COUNTER_UNRETURNED]);
	nps_json__add_u64(session, "unreadable", counters[NPS_COUNTER_FAULT]);
	nps_json__add_u64(session, "texts_cut", texts_cut(c));
	nps_json__add_u64(session, "mstx_filtered", counters[NPS_COUNTER_MSTX_FILTERED]);
	nps_json__add_u64(session, "mstx_unnamed_domains", counters[NPS_COUNTER_DOMAIN_UNKNOWN]);
	nps_json__add_u64(session, "foreign_syscalls", counters[NPS_COUNTER_FOREIGN]);
}

static void calls_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			   cJSON *session, cJSON *part)
{
	(void)s;
	(void)part;
	if (section == NPS_SECTION_REQUEST && c->opts->irq)
		nps_irq_tracer__names(cJSON_AddObjectToObject(session, "interrupts"));
	else if (section == NPS_SECTION_SESSION && c->shared.probes)
		nps_probes__describe(c->shared.probes, c->shared.reader, session);
	else if (section == NPS_SECTION_TOTALS)
		describe_totals(c, session);
}

static void calls_programs(const struct nps_capture *c, const struct nps_source *s, nps_program_fn each,
			   void *arg)
{
	(void)s;
	nps_bpf_loader__for_each_program(c->shared.kernel, each, arg);
}

static void calls_free(struct nps_capture *c, struct nps_source *s)
{
	nps_reader__free(c->shared.reader);
	nps_probes__free(c->shared.probes);
	nps_operators__free(&c->shared.operators);
	nps_bpf_loader__close(c->shared.kernel);
	free(s->state);
}

const struct nps_source_ops nps_source_calls = {
	.name = "calls",
	.start = calls_start,
	.turn = calls_turn,
	.end = calls_end,
	.count = calls_count,
	.describe = calls_describe,
	.programs = calls_programs,
	.free = calls_free,
};
