/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of the job: those that the user named or started, and those whose start BPF events report.
 * Other sources get what happens to them as events.
 */
#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent_client.h"
#include "capture/channel_files.h"
#include "capture/discover.h"
#include "capture/job_processes.h"
#include "capture/launch.h"
#include "core/clocks.h"
#include "core/host_names.h"
#include "core/log.h"
#include "sources/source_rows.h"
#include "sources/targets/target_state.h"

#define MOST_BATCHES 2048 /* of notices, at the end: more than can be pending */
#define LEAST_BATCHES 16 /* even if no time is left */

struct targets {
	uint64_t births_lost; /* lost records of forks, execs and exits, at the last check */
};

static void process_event(struct nps_capture *c, struct nps_process *p, enum nps_source_event_kind kind)
{
	nps_sources__process(c, &(struct nps_source_event){ .kind = kind, .p = p });
}

/* --- notices --- */

static void handle_exec(struct nps_capture *c, struct nps_process *p, const struct nps_notice *n)
{
	/* Data read after the exec belongs to this program, or to a later one. */
	if ((p->source != NPS_PROCESS_READ || p->read_mono < n->time) &&
	    (!c->end_mono || n->time < c->end_mono))
		nps_discover__refresh(c, p);
	if (n->comm[0])
		memcpy(p->comm, n->comm, sizeof(p->comm));
	p->executed = true;
	/* A new program has new memory and a new helper. The old one's log, if there is any, is kept. */
	process_event(c, p, NPS_EVENT_EXECUTED);
	p->rescan = true;
}

static void targets_handle_device(struct nps_capture *c, struct nps_process *p, const struct nps_notice *n)
{
	bool submits = n->what == NPS_NOTICE_SUBMITS;

	p->submits |= submits;
	if (submits)
		nps_process__read_uid(p);
	nps_sources__process(c, &(struct nps_source_event){ .kind = NPS_EVENT_DEVICE,
							    .p = p,
							    .device = (uint32_t)n->arg,
							    .submits = submits });
}

static bool notice_is_process(const struct nps_notice *n)
{
	return n->what == NPS_NOTICE_FORK || n->what == NPS_NOTICE_EXEC || n->what == NPS_NOTICE_EXIT;
}

static void handle_notice(struct nps_capture *c, const struct nps_notice *n)
{
	struct nps_process *p = notice_is_process(n) ? nps_job_processes__of_notice(c, n)
						     : nps_discover__find(c, (pid_t)n->pid);

	/* One of too many processes to list: its CPU time is the job's all the same. */
	if (!p && n->what == NPS_NOTICE_EXIT && !c->opts->all)
		c->job_cpu_ns += n->cpu_ns;
	if (!p)
		return;
	switch (n->what) {
	case NPS_NOTICE_EXIT:
		if (p->alive || p->exit_code == NPS_EXIT_UNKNOWN)
			nps_job_processes__add_cpu(c, p, n->cpu_ns);
		process_event(c, p, NPS_EVENT_EXITED);
		nps_job_processes__exited(p, n->time, (int)n->arg);
		break;
	case NPS_NOTICE_HOST_FUNCTION:
		nps_process__add_host_function(p, n->arg);
		break;
	case NPS_NOTICE_EXEC:
		handle_exec(c, p, n);
		break;
	case NPS_NOTICE_CODE_MAPPED:
		p->rescan = true;
		break;
	case NPS_NOTICE_SUBMITS:
	case NPS_NOTICE_DEVICE:
		targets_handle_device(c, p, n);
		break;
	default:
		break;
	}
}

/* Children whose fork was not reported; BPF programs watch them all the same. */
static void add_missed(void *arg, pid_t pid)
{
	struct nps_capture *c = arg;

	if (!c->ending)
		nps_job_processes__missed(c, pid);
}

/*
 * Handles one batch, because a job that maps code all the time must not
 * block everything else. Returns its size.
 */
static int handle_notices(struct nps_capture *c)
{
	struct nps_notice v[256];
	int overflow = 0, n = nps_reader__notices(c->shared.reader, v, 256, &overflow);

	if (n) /* what a process read comes before its exit */
		nps_sources__turn(c, NPS_TURN_DRAIN);
	for (int i = 0; i < n; i++)
		handle_notice(c, &v[i]);
	if (!overflow)
		return n;
	nps_bpf_loader__for_each_target(c->shared.kernel, add_missed, c);
	for (struct nps_process *p = c->processes; p; p = p->next)
		p->rescan = true;
	return n;
}

/* Handles processes that have exited by now, and names functions that launches used. */
static void handle_last_notices(struct nps_capture *c)
{
	/* A live job may create processes faster than that: at least some are handled. */
	for (int i = 0; i < MOST_BATCHES && (i < LEAST_BATCHES || nps_deadline__left(&c->patience)) &&
			handle_notices(c) > 0;
	     i++)
		;
	nps_discover__turn(c);
}

/* If the ring had no room for a fork record, the child itself is in the map of targets. */
static void add_unreported(struct nps_capture *c, struct targets *t)
{
	uint64_t counters[NPS_COUNTER_MAX] = {}, lost;

	nps_bpf_loader__counters(c->shared.kernel, counters);
	lost = counters[NPS_COUNTER_LOST + NPS_EV_PROC];
	if (lost != t->births_lost)
		nps_bpf_loader__for_each_target(c->shared.kernel, add_missed, c);
	t->births_lost = lost;
}

/* --- start --- */

static int check_pid(pid_t pid)
{
	pid_t process = nps_pid_exists(pid) ? nps_pid_of_thread(pid) : 0;

	if (!process) {
		nps_warn("cannot watch pid %d: no such process: check it with ps", pid);
		return -ESRCH;
	}
	/* /proc has an entry for it, too, but nothing would be recorded. */
	if (process != pid) {
		nps_warn("cannot watch pid %d: it is a thread of process %d: give that number", pid, process);
		return -EINVAL;
	}
	return 0;
}

static int prepare(struct nps_capture *c, struct nps_source *s)
{
	int err = 0;

	s->state = calloc(1, sizeof(struct targets));
	if (!s->state) {
		nps_warn("not enough memory to begin: free some");
		return -ENOMEM;
	}
	for (int i = 0; i < c->opts->n_pids && !err; i++)
		err = check_pid(c->opts->pids[i]);
	return err;
}

/* The command is held before its exec; the loop starts it when records arrive. */
static int fork_command(struct nps_capture *c)
{
	char agent[PATH_MAX];
	bool preload = c->opts->task_source != NPS_TASKS_HOST;
	pid_t pid;

	if (!c->opts->command)
		return 0;
	if (preload && nps_discover__agent_path(agent, sizeof(agent))) {
		nps_warn("libnpuscope_agent.so is not beside this program: device times will be bounds only");
		c->degraded = true;
		preload = false;
	}
	pid = nps_launch__prepare(c->opts->command, preload ? agent : NULL, &c->child_go);
	if (pid < 0) {
		nps_warn("cannot start %s: %s", c->opts->command[0], strerror(-pid));
		return pid;
	}
	c->child = pid;
	return 0;
}

static int add_named(struct nps_capture *c)
{
	for (int i = 0; i < c->opts->n_pids; i++) {
		int err = nps_discover__add_tree(c, c->opts->pids[i]);

		if (err == -EINTR)
			return err;
		if (err) {
			nps_warn("cannot watch pid %d: %s: check it with ps", c->opts->pids[i],
				 err == -ESRCH ? "no such process" : strerror(-err));
			return err;
		}
		c->degraded |= nps_target_state__report(c->opts->pids[i]);
	}
	return 0;
}

static int add_targets(struct nps_capture *c)
{
	int err;

	if (c->child)
		nps_discover__before_exec(c, c->opts->command[0]);
	err = c->child ? nps_discover__add(c, c->child) : add_named(c);
	if (err)
		return err;
	nps_discover__settle(c);
	return 0;
}

static int targets_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	switch (stage) {
	case NPS_START_PREPARE:
		return prepare(c, s);
	case NPS_START_FORK:
		return fork_command(c);
	case NPS_START_TARGETS:
		return add_targets(c);
	case NPS_START_ARM:
		nps_job_processes__account_cpu(c);
		return nps_discover__arm(c);
	default:
		return 0;
	}
}

/* --- turns --- */

static int targets_fd(struct nps_capture *c, struct nps_source *s, int *wait_ms)
{
	(void)s;
	(void)wait_ms;
	return nps_reader__notice_fd(c->shared.reader);
}

static bool any_alive(const struct nps_capture *c)
{
	for (const struct nps_process *p = c->processes; p; p = p->next)
		if (p->alive)
			return true;
	return false;
}

static const char *targets_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	switch (kind) {
	case NPS_TURN_READY:
		handle_notices(c);
		nps_discover__turn(c);
		return c->opts->all || any_alive(c) ? NULL : "targets exited";
	case NPS_TURN_ENDING:
		handle_last_notices(c);
		return NULL;
	case NPS_TURN_SECOND:
		nps_job_processes__poll(c, nps_now(CLOCK_MONOTONIC));
		add_unreported(c, s->state);
		return NULL;
	default:
		return NULL;
	}
}

/* --- end --- */

static void targets_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)s;
	switch (stage) {
	case NPS_END_COLLECT:
		nps_job_processes__account_cpu(c);
		break;
	case NPS_END_FINISH:
		handle_last_notices(c);
		break;
	case NPS_END_RELEASE:
		nps_discover__finish(c);
		nps_job_processes__report(c);
		break;
	default:
		break;
	}
}

static void targets_free(struct nps_capture *c, struct nps_source *s)
{
	struct nps_process *next;

	for (struct nps_process *p = c->processes; p; p = next) {
		next = p->next;
		nps_agent_client__free(p->agent);
		nps_agent_client__free(p->former);
		nps_channel_files__free(p->files);
		nps_process__free(p);
	}
	c->processes = NULL;
	nps_host_names__free();
	free(c->refused);
	free(c->searched);
	free(s->state);
}

const struct nps_source_ops nps_source_targets = {
	.name = "targets",
	.start = targets_start,
	.fd = targets_fd,
	.turn = targets_turn,
	.end = targets_end,
	.free = targets_free,
};
