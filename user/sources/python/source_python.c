/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --py-stacks: finds the interpreters of the job's processes, so that BPF programs can walk their frames.
 * An interpreter that is not initialised yet is tried again.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/python/python_find.h"
#include "attach/python_records.h"
#include "attach/python_sampler.h"
#include "capture/capture.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/session_json.h"
#include "python_stack.h"
#include "sources/source_rows.h"

#define SOON_TRIES                                                                                           \
	200 /* of an interpreter that is not initialised, one each turn, 50 ms; then one a second */
#define LATE_TRIES 30 /* to find one, one a second */

struct python_source {
	int processes; /* map: pid -> struct nps_py_process */
	uint32_t programs; /* number of those that were found: distinguishes them in hashes of stacks */
	unsigned found, unreadable;
	struct nps_python_sampler *sampler; /* NULL: nothing is sampled */
};

static bool python_wanted(const struct nps_record_opts *opts)
{
	return opts->python_at;
}

/* Between operators: which line the thread was in. Without it the capture continues. */
static void python_sample(struct nps_capture *c, struct python_source *py)
{
	int err;

	if (!(c->opts->python_at & NPS_PY_AT_OP))
		return;
	err = nps_python_sampler__open(c->shared.kernel, &py->sampler);
	if (err == 0)
		return;
	nps_warn("no Python stacks of what runs or sleeps between operators: %s: the line that makes a step "
		 "slow is not found",
		 strerror(-err));
	c->degraded = true;
}

static int python_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	struct python_source *py;

	if (stage != NPS_START_ATTACH)
		return 0;
	py = calloc(1, sizeof(*py));
	s->state = py;
	if (!py)
		return -ENOMEM;
	py->processes = nps_bpf_loader__python_fd(c->shared.kernel);
	if (py->processes >= 0) {
		python_sample(c, py);
		return 0;
	}
	nps_warn("no Python stacks: they need the BPF programs of Linux 5.8 and later: `npuscope doctor` "
		 "shows "
		 "what this kernel lacks");
	return -ENOTSUP;
}

static void python_watch(struct python_source *py, struct nps_process *p, struct nps_py_process *process)
{
	uint32_t pid = (uint32_t)p->pid;

	process->reserved = ++py->programs;
	p->python = NPS_PYTHON_UNREADABLE;
	if (bpf_map_update_elem(py->processes, &pid, process, BPF_ANY)) {
		nps_warn("no Python stacks of process %u: %s: are there thousands of such processes?", pid,
			 strerror(errno));
		py->unreadable++;
		return;
	}
	p->python = NPS_PYTHON_FOUND;
	py->found++;
}

/* A child without a program of its own has the interpreter of its parent. */
static void python_inherit(struct python_source *py, struct nps_process *p)
{
	struct nps_py_process process;
	uint32_t parent = (uint32_t)p->ppid;

	if (!p->executed && !bpf_map_lookup_elem(py->processes, &parent, &process))
		python_watch(py, p, &process);
}

/* 0, or -ETIME: the budget was spent. */
static int python_try(struct python_source *py, struct nps_process *p, struct nps_budget *budget)
{
	struct nps_py_process process = { 0 };
	const char *why = NULL;
	int err = nps_python__find(p->pid, budget, &process, &why);

	switch (err) {
	case -ETIME:
		return err;
	case -EAGAIN:
		p->python = NPS_PYTHON_NOT_YET;
		break;
	case -ENOTSUP:
		p->python = NPS_PYTHON_UNREADABLE;
		if (py->unreadable++ < NPS_BUDGET_LINES)
			nps_warn("no Python stacks of process %d: %s", p->pid, why ? why : strerror(-err));
		break;
	case 0:
		nps_debug("process %d: Python %u.%u%s", p->pid, process.layout.version >> 8,
			  process.layout.version & 0xff,
			  process.tls_offset == NPS_PY_NO_TLS ? ", threads by number" : "");
		python_watch(py, p, &process);
		break;
	}
	return 0;
}

static void python_forget(struct python_source *py, struct nps_process *p)
{
	uint32_t pid = (uint32_t)p->pid;

	if (p->python == NPS_PYTHON_FOUND)
		bpf_map_delete_elem(py->processes, &pid);
	p->python = NPS_PYTHON_UNKNOWN;
	p->python_tries = 0;
}

static int python_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	struct python_source *py = s->state;

	(void)c;
	switch (e->kind) {
	case NPS_EVENT_WATCHED:
		python_inherit(py, e->p);
		break;
	case NPS_EVENT_SCAN:
		if (e->p->python == NPS_PYTHON_UNKNOWN && e->mapped)
			return python_try(py, e->p, e->budget);
		break;
	case NPS_EVENT_EXECUTED:
	case NPS_EVENT_EXITED:
		python_forget(py, e->p);
		break;
	default:
		break;
	}
	return 0;
}

/* Is P to be tried in this turn? */
static bool python_is_due(const struct nps_process *p, bool second)
{
	if (!p->alive)
		return false;
	if (p->python == NPS_PYTHON_NOT_YET)
		return second || p->python_tries < SOON_TRIES;
	return p->python == NPS_PYTHON_UNKNOWN && second && p->python_tries < LATE_TRIES;
}

static void python_retry(struct nps_capture *c, struct python_source *py, bool second)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	for (struct nps_process *p = c->processes; p; p = p->next) {
		if (!python_is_due(p, second) || !nps_budget__ready(&p->budget, now) ||
		    !nps_budget__ready(&c->work, now))
			continue;
		nps_budget__begin(&p->budget);
		python_try(py, p, &p->budget);
		nps_budget__pay(&c->work, nps_budget__end(&p->budget));
		p->python_tries += p->python_tries < SOON_TRIES;
	}
}

static const char *python_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	if (kind == NPS_TURN_READY || kind == NPS_TURN_SECOND)
		python_retry(c, s->state, kind == NPS_TURN_SECOND);
	return NULL;
}

/* What python.nps had no room for. */
static uint64_t python_left_out(const struct nps_capture *c)
{
	struct nps_reader_counts n = {};

	if (c->shared.reader)
		nps_reader__counts(c->shared.reader, &n);
	return n.python_left_out;
}

static void python_report_full(struct nps_capture *c)
{
	uint64_t n = python_left_out(c);

	if (!n)
		return;
	nps_warn("python.nps reached its limit of %llu MiB: %llu Python stacks and code objects are missing: "
		 "does "
		 "the job make code (exec, lambdas in a loop) all the time?",
		 NPS_PYTHON_BYTES_MAX >> 20, (unsigned long long)n);
	c->degraded = true;
}

static void python_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	struct python_source *py = s->state;

	if (stage == NPS_END_DETACH) {
		nps_python_sampler__close(py->sampler);
		py->sampler = NULL;
	}
	if (stage != NPS_END_RELEASE)
		return;
	c->degraded |= py->unreadable > 0;
	python_report_full(c);
	if (py->found)
		return;
	nps_warn("no process ran a Python that npuscope knows: there are no Python stacks: --verbose lists "
		 "why");
	c->degraded = true;
}

static void python_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			    cJSON *session, cJSON *part)
{
	static const struct {
		uint32_t at;
		const char *word;
	} words[] = { { NPS_PY_AT_LAUNCH, ",launch" },
		      { NPS_PY_AT_OP, ",op" },
		      { NPS_PY_AT_SAMPLE, ",sample" },
		      { NPS_PY_AT_OFFCPU, ",offcpu" } };
	char text[64] = "";

	(void)s;
	if (section == NPS_SECTION_TOTALS)
		nps_json__add_u64(session, "python_left_out", python_left_out(c));
	if (section != NPS_SECTION_REQUEST || !c->opts->python_at)
		return;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (c->opts->python_at & words[i].at)
			strcat(text, words[i].word);
	cJSON_AddStringToObject(part, "py_stacks", text + 1);
}

static void python_free(struct nps_capture *c, struct nps_source *s)
{
	struct python_source *py = s->state;

	(void)c;
	if (py)
		nps_python_sampler__close(py->sampler);
	free(py);
}

const struct nps_source_ops nps_source_python = {
	.name = "python",
	.optional = true,
	.wanted = python_wanted,
	.start = python_start,
	.turn = python_turn,
	.process = python_process,
	.end = python_end,
	.describe = python_describe,
	.free = python_free,
};
