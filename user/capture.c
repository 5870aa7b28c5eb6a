/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_client.h"
#include "catalog.h"
#include "clocks.h"
#include "discover.h"
#include "launch.h"
#include "log.h"
#include "open_slices.h"
#include "system_wide.h"

#define TURN_MS 50
#define SECOND 1000000000ULL
#define DEVICE_CLOCK_NS (SECOND / 5) /* between two requests for device clock samples */
#define RESCAN_NS (SECOND / 10) /* between two looks at one process */
#define RESCAN_BUDGET_NS (SECOND / 20) /* for all looks of one turn */
#define AGENT_START_MS 500 /* how long the task logs may take to open */
#define AGENT_LINGER_MS 100 /* how long tasks in flight are given to end */
#define AGENT_STOP_MS 3000 /* how long the helpers may take to flush */

#define FOR_EACH_AGENT(c, p)                                                                                 \
	for (struct nps_process *p = (c)->processes; p; p = p->next)                                         \
		if (p->agent)

/* `durable`: down to the disk, which can take seconds. */
static void save(struct nps_capture *c, bool durable)
{
	cJSON *j = nps_capture__describe(c);
	int err = nps_session__write_json(&c->session, j, durable);

	if (err)
		nps_debug("session.json: %s", strerror(-err));
	cJSON_Delete(j);
}

static void sample_clocks(struct nps_capture *c, struct nps_clock *clock)
{
	nps_clock__sample(clock);
	nps_stream__append(&c->session.clocks, NPS_CHUNK_CLOCKS, 0, clock, sizeof(*clock));
}

static void drain_agents(struct nps_capture *c)
{
	FOR_EACH_AGENT(c, p)
	{
		int err = nps_agent_client__drain(p->agent);

		if (err == -EPROTO)
			nps_warn("pid %d: its helper's memory makes no sense: its task log ends here",
				 p->pid);
		if (err && !atomic_load(&c->session.events.error))
			atomic_store(&c->session.clocks.error, err);
	}
}

static bool all_agents(struct nps_capture *c, bool (*is)(const struct nps_agent_client *))
{
	FOR_EACH_AGENT(c, p)
	if (p->alive && !is(p->agent))
		return false;
	return true;
}

static void wait_for_agents(struct nps_capture *c, bool (*is)(const struct nps_agent_client *), int ms)
{
	for (; ms > 0 && !all_agents(c, is); ms -= 5) {
		usleep(5000);
		drain_agents(c);
	}
	drain_agents(c);
}

static void mark_exited(struct nps_process *p, uint64_t when, int code)
{
	if (!p || !p->alive)
		return;
	p->alive = false;
	p->exit_mono = when;
	p->exit_code = code;
}

static void handle_exec(struct nps_process *p)
{
	/* A new program: new memory, new helper. The log of the old one, if it left any, stays. */
	nps_process__refresh(p);
	if (p->agent)
		nps_agent_client__drain(p->agent);
	if (p->agent && !nps_agent_client__delivered(p->agent)) {
		nps_agent_client__free(p->agent);
		p->agent = NULL;
	}
	p->rescan = true;
	p->scanned = 0;
}

static void handle_notice(struct nps_capture *c, const struct nps_notice *n)
{
	struct nps_process *p = nps_discover__find(c, (pid_t)n->pid);

	if (n->what == NPS_NOTICE_FORK && !c->ending)
		nps_discover__add_born(c, (pid_t)n->arg);
	if (!p)
		return;
	switch (n->what) {
	case NPS_NOTICE_EXIT:
		mark_exited(p, n->time, (int)n->arg);
		break;
	case NPS_NOTICE_STUB:
		nps_process__name_address(p, n->arg);
		break;
	case NPS_NOTICE_EXEC:
		handle_exec(p);
		break;
	case NPS_NOTICE_CODE_MAPPED:
		p->rescan = true;
		break;
	case NPS_NOTICE_SUBMITS:
	case NPS_NOTICE_DEVICE:
		p->submits |= n->what == NPS_NOTICE_SUBMITS;
		if (c->ending)
			break;
		if (!p->agent) /* its helper may have come after we looked */
			nps_discover__scan(c, p);
		if (p->agent)
			nps_agent_client__poke(p->agent);
		break;
	default:
		break;
	}
}

/* One batch a turn: a job that maps code all the time must not keep us from everything else. */
static void handle_notices(struct nps_capture *c)
{
	struct nps_notice v[256];
	int overflow = 0, n = nps_reader__notices(c->reader, v, 256, &overflow);

	for (int i = 0; i < n; i++)
		handle_notice(c, &v[i]);
	if (overflow)
		for (struct nps_process *p = c->processes; p; p = p->next)
			p->rescan = true;
}

/* Looks at processes that have mapped something: each a few times a second, and not too long at once. */
static void rescan(struct nps_capture *c)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);

	for (struct nps_process *p = c->processes; p; p = p->next) {
		uint64_t now = nps_now(CLOCK_MONOTONIC);

		if (now - begin > RESCAN_BUDGET_NS)
			return;
		if (!p->rescan || !p->alive || now - p->scanned < RESCAN_NS)
			continue;
		p->rescan = false;
		p->scanned = now;
		nps_discover__scan(c, p);
	}
}

static uint64_t cpu_time(pid_t pid)
{
	char path[32], buf[1024], *at;
	unsigned long user = 0, sys = 0;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = '\0';
	at = strrchr(buf, ')'); /* the name before it can hold anything */
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
		return 0;
	return (user + sys) * (SECOND / sysconf(_SC_CLK_TCK));
}

static void account_cpu(struct nps_capture *c)
{
	for (struct nps_process *p = c->processes; p; p = p->next) {
		uint64_t now = p->alive ? cpu_time(p->pid) : 0;

		if (!now)
			continue;
		if (p->cpu_last)
			c->job_cpu_ns += now > p->cpu_last ? now - p->cpu_last : 0;
		p->cpu_last = now;
	}
}

static void every_second(struct nps_capture *c)
{
	struct nps_clock clock;

	sample_clocks(c, &clock);
	FOR_EACH_AGENT(c, p)
	nps_agent_client__tick(p->agent);
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (p->alive && !nps_pid_exists(p->pid))
			mark_exited(p, clock.mono,
				    0); /* its EXIT record was lost, or it died before we attached */
	account_cpu(c);
	nps_overhead__every_second(c);
	save(c, false);
}

static bool any_alive(const struct nps_capture *c)
{
	for (const struct nps_process *p = c->processes; p; p = p->next)
		if (p->alive)
			return true;
	return false;
}

/* Returns why the capture ends. */
static const char *watch(struct nps_capture *c, int signals)
{
	struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
				{ .fd = nps_reader__notice_fd(c->reader), .events = POLLIN } };
	uint64_t second = c->begin_mono + SECOND, device_clock = c->begin_mono + DEVICE_CLOCK_NS;
	uint64_t end = c->begin_mono + c->opts->duration_ns;

	for (;;) {
		uint64_t now = nps_now(CLOCK_MONOTONIC);
		uint64_t left = c->opts->duration_ns && end > now ? (end - now) / 1000000 + 1 : TURN_MS;
		int err;

		if (c->opts->duration_ns && now >= end)
			return "duration";
		if (poll(fds, 2, left < TURN_MS ? (int)left : TURN_MS) < 0 && errno != EINTR)
			return "error";
		if (fds[0].revents & POLLIN)
			return "signal";
		handle_notices(c);
		rescan(c);
		drain_agents(c);
		nps_overhead__turn(c, false);
		err = nps_session__error(&c->session);
		if (err) {
			nps_warn("capture stopped: cannot write to %s: %s: free space or choose another "
				 "directory with -o; what was captured is kept",
				 c->session.path, strerror(-err));
			c->degraded = true;
			return err == -ENOSPC || err == -EDQUOT ? "disk full" : "error";
		}
		if (c->opts->all)
			nps_system_wide__look(c->system_wide, c);
		else if (!any_alive(c))
			return "targets exited";
		if (nps_now(CLOCK_MONOTONIC) >= device_clock) {
			FOR_EACH_AGENT(c, p)
			nps_agent_client__tick(p->agent);
			device_clock += DEVICE_CLOCK_NS;
		}
		if (nps_now(CLOCK_MONOTONIC) >= second) {
			every_second(c);
			second += SECOND;
		}
	}
}

/* The first Ctrl-C ends the capture properly; a second one, while we tidy up, ends it at once. */
static int catch_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, NULL);
	return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void release_signals(int fd, const sigset_t *set)
{
	struct signalfd_siginfo si;

	while (read(fd, &si, sizeof(si)) > 0)
		;
	close(fd);
	sigprocmask(SIG_UNBLOCK, set, NULL);
}

static int add_targets(struct nps_capture *c)
{
	int err = 0;

	if (c->child)
		return nps_discover__add(c, c->child);
	if (c->opts->all) {
		err = nps_system_wide__new(&c->system_wide);
		if (!err)
			nps_system_wide__look(c->system_wide, c);
		return err;
	}
	for (int i = 0; i < c->opts->n_pids; i++) {
		err = nps_discover__add_tree(c, c->opts->pids[i]);
		if (err) {
			nps_warn("cannot watch pid %d: %s: check it with ps", c->opts->pids[i],
				 err == -ESRCH ? "no such process" : strerror(-err));
			return err;
		}
	}
	return 0;
}

static int prepare_child(struct nps_capture *c)
{
	char agent[PATH_MAX];
	bool preload = c->opts->task_source != NPS_TASKS_HOST;
	pid_t pid;

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

/* Without them the capture is poorer, but there. */
static void start_stacks(struct nps_capture *c)
{
	const struct nps_stacks_opts *o = &c->opts->stacks;

	if ((o->on_cpu || o->off_cpu) && nps_stacks__start(c->kernel, &c->session, o, &c->stacks))
		c->degraded = true;
}

static int start_host_sys(struct nps_capture *c)
{
	struct nps_host_sys_opts opts = { .sz = sizeof(opts),
					  .parts = c->opts->host_sys,
					  .hz = c->opts->host_sys_hz,
					  .all = c->opts->all,
					  .net_map = nps_kernel_side__net_map(c->kernel),
					  .begin = nps_now(CLOCK_MONOTONIC) };
	int err;

	if (!opts.parts)
		return 0;
	c->degraded |= opts.parts & NPS_HOST_SYS_NETWORK && opts.net_map < 0;
	err = nps_host_sys__start(&opts, &c->session.host, &c->host_sys);
	if (err)
		nps_warn("cannot sample the host: %s: leave out --host-sys, or allow more memory and threads",
			 strerror(-err));
	return err;
}

/* Everything up to the first moment at which all probes are in place. */
static int begin(struct nps_capture *c)
{
	struct nps_kernel_side_opts kopts = { .sz = sizeof(kopts),
					      .ring_bytes = c->opts->ring_bytes,
					      .osrt = c->opts->osrt,
					      .irq = c->opts->irq,
					      .network = c->opts->host_sys & NPS_HOST_SYS_NETWORK,
					      .osrt_threshold_ns = c->opts->osrt_threshold_ns,
					      .shapes = c->opts->shapes,
					      .mstx = &c->opts->mstx };
	int err;

	nps_capability__probe(&c->cap);
	err = nps_capability__check(&c->cap);
	if (err)
		return err;
	for (int i = 0; i < c->opts->n_pids; i++) {
		if (nps_pid_exists(c->opts->pids[i]))
			continue;
		nps_warn("cannot watch pid %d: no such process: check it with ps", c->opts->pids[i]);
		return -ESRCH;
	}
	err = nps_session__create(c->opts->out, &c->session);
	if (!err && c->opts->host_sys)
		err = nps_session__open_host(&c->session);
	if (!err && c->opts->command)
		err = prepare_child(c);
	if (!err)
		err = nps_kernel_side__open(&c->cap, &kopts, &c->kernel);
	if (!err)
		err = nps_probes__new(c->kernel, c->opts->level, c->opts->shapes, &c->operators, &c->probes);
	if (!err)
		err = nps_kernel_side__attach(c->kernel);
	if (err)
		return err;
	if (c->opts->mstx.off)
		nps_probes__leave_out(c->probes, NPS_LIB_MSTX);
	nps_calibrate(c->kernel, c->probes, c->opts->osrt, &c->cost);
	if (c->opts->all && c->opts->osrt)
		nps_info("system calls and switches of every process are recorded: each call takes %.0f ns "
			 "longer, each switch %.0f ns",
			 c->cost.syscall_ns, c->cost.switch_ns);
	nps_kernel_side__reset_counters(c->kernel);
	err = nps_reader__start(c->kernel, &c->session, &c->operators, &c->reader);
	if (err) {
		nps_warn("cannot start reading: %s", strerror(-err));
		return err;
	}
	start_stacks(c);
	sample_clocks(c, &c->start);
	err = start_host_sys(c);
	if (err)
		return err;
	if (c->child)
		nps_discover__before_exec(c, c->opts->command[0]);
	err = add_targets(c);
	if (err)
		return err;
	wait_for_agents(c, nps_agent_client__recording, AGENT_START_MS);
	err = nps_discover__arm(c);
	if (err)
		return err;
	if (c->opts->all)
		nps_kernel_side__watch_all(c->kernel, true);
	c->begin_mono = nps_now(CLOCK_MONOTONIC);
	if (c->child) {
		err = nps_launch__go(c->child_go);
		c->child_go = -1;
		if (err)
			nps_warn("cannot run %s: %s", c->opts->command[0], strerror(-err));
	}
	return err;
}

static void say_what_is_missing(struct nps_capture *c)
{
	bool cann = nps_probes__count(c->probes) > 0;

	for (struct nps_process *p = c->processes; p && cann; p = p->next) {
		char reason[160];

		if (!p->submits || c->opts->task_source == NPS_TASKS_HOST ||
		    (p->agent && nps_agent_client__delivered(p->agent)))
			continue;
		snprintf(reason, sizeof(reason), "%s", p->agent_reason);
		if (p->agent)
			nps_agent_client__reason(p->agent, reason, sizeof(reason));
		nps_warn("pid %d: no device task log: %s: device times are bounds from submission and "
			 "synchronisation",
			 p->pid, reason);
		c->degraded |= c->opts->task_source == NPS_TASKS_AGENT || p->agent;
	}
	FOR_EACH_AGENT(c, p)
	if (nps_agent_client__interrupted(p->agent)) {
		nps_warn("pid %d: a gap in its task log: npuscope was not scheduled for seconds: tasks of "
			 "that time have bounds",
			 p->pid);
		c->degraded = true;
	}
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (p->has_cann)
			cann = true;
	if (c->opts->all) {
		if (!c->processes)
			nps_info("no process used an NPU: only the host was recorded");
	} else if (cann && c->opts->level >= 0 && !nps_probes__count(c->probes) &&
		   nps_probes__a_file(c->probes)) {
		nps_warn(
			"none of the functions that npuscope knows could be probed in %s: only what the host "
			"saw was recorded: npuscope doctor --probes lists them",
			nps_probes__a_file(c->probes));
		c->degraded = true;
	} else if ((!cann || !nps_probes__count(c->probes)) && c->opts->level >= 0) {
		nps_warn("no process has a CANN library mapped: only what the host saw was recorded: is "
			 "this the NPU job?");
		c->degraded = true;
	}
	if (c->opts->irq && !nps_kernel_side__has_irq(c->kernel))
		c->degraded = true;
	if (c->opts->step_marker && !c->marker_found) {
		nps_warn("no function %s in the job: there are no steps: check the name with nm -D or "
			 "--step-marker",
			 c->opts->step_marker);
		c->degraded = true;
	}
}

/* What is going on now ends with the capture. */
static void collect_open_slices(struct nps_capture *c, struct nps_open_slices *slices)
{
	*slices = (struct nps_open_slices){ .begin = c->begin_mono, .end = c->end_mono };
	if (!c->opts->osrt)
		return;
	nps_open_slices__collect(slices, c->kernel);
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (!p->exit_mono && p->start_mono < c->begin_mono)
			nps_open_slices__collect_unseen(slices, c->kernel, p->pid);
}

/* Where domains are asked for by name, those that were made before we came have none. */
static void say_what_is_unnamed(struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {};
	enum nps_mstx_mode mode = nps_mstx__mode(&c->opts->mstx);
	uint64_t cut = nps_capture__texts_cut(c);

	nps_kernel_side__counters(c->kernel, counters);
	if (mode != NPS_MSTX_ALL && counters[NPS_COUNTER_DOMAIN_UNKNOWN]) {
		nps_warn("%" PRIu64
			 " mstx domains were made before the capture and have no name: their marks "
			 "are %s: start the capture first, or the job with libnpuscope_mstx.so",
			 counters[NPS_COUNTER_DOMAIN_UNKNOWN],
			 mode == NPS_MSTX_INCLUDE ? "left out" : "kept");
		c->degraded = true;
	}
	if (cut)
		nps_warn("%" PRIu64 " texts were longer than %d bytes: they are cut, and end in [cut]", cut,
			 NPS_TEXT_MAX);
}

static void finish(struct nps_capture *c)
{
	struct nps_open_slices slices;
	uint64_t begin;

	c->ending = true;
	nps_stacks__stop(c->stacks);
	account_cpu(c);
	nps_overhead__turn(c, true);
	nps_host_sys__stop(c->host_sys); /* while the processes it looks at are still there */
	if (c->opts->all)
		nps_kernel_side__watch_all(c->kernel, false);
	nps_discover__disarm(c);
	collect_open_slices(c, &slices);
	wait_for_agents(c, nps_agent_client__idle, AGENT_LINGER_MS);
	FOR_EACH_AGENT(c, p)
	nps_agent_client__stop(p->agent);
	wait_for_agents(c, nps_agent_client__idle, AGENT_STOP_MS);
	begin = nps_now(CLOCK_MONOTONIC);
	nps_kernel_side__detach(c->kernel);
	nps_probes__detach(c->probes);
	c->detach_ns = nps_now(CLOCK_MONOTONIC) - begin;
	nps_reader__stop(c->reader);
	nps_open_slices__write(&slices, c->reader);
	nps_stacks__finish(c->stacks);
	for (int i = 0; i < 16; i++)
		handle_notices(c); /* who exited last */
	sample_clocks(c, &c->end);
	say_what_is_missing(c);
	say_what_is_unnamed(c);
	if (nps_capture__dropped(c))
		c->degraded = true;
	c->complete = true;
	save(c, true);
}

int nps_capture__run(struct nps_capture *c, const struct nps_record_opts *opts)
{
	sigset_t set;
	int signals, err;

	memset(c, 0, sizeof(*c));
	c->opts = opts;
	c->session.dir_fd = c->session.events.fd = c->session.strings.fd = c->session.clocks.fd = -1;
	c->session.host.fd = -1;
	c->child_go = -1;
	nps_overhead__begin(c);
	signals = catch_signals(&set);
	if (signals < 0)
		return -errno;
	err = begin(c);
	if (!err) {
		account_cpu(c);
		save(c, true);
		nps_info("recording %u probes in %u files%s: Ctrl-C ends it", nps_probes__count(c->probes),
			 nps_probes__files(c->probes), opts->command ? " while the command runs" : "");
		c->end_reason = watch(c, signals);
		c->end_mono = nps_now(CLOCK_MONOTONIC);
	}
	release_signals(signals, &set);
	if (!err)
		finish(c);
	if (err) {
		nps_host_sys__stop(c->host_sys);
		nps_reader__stop(c->reader); /* they write until they are stopped */
		nps_stacks__stop(c->stacks);
		nps_session__discard(&c->session);
	}
	return err;
}

void nps_capture__free(struct nps_capture *c)
{
	struct nps_process *p, *next;

	if (c->child_go >= 0)
		nps_launch__cancel(c->child, c->child_go);
	nps_stacks__free(c->stacks);
	nps_host_sys__free(c->host_sys);
	nps_system_wide__free(c->system_wide);
	nps_reader__free(c->reader);
	nps_probes__free(c->probes);
	nps_operators__free(&c->operators);
	nps_kernel_side__close(c->kernel);
	for (p = c->processes; p; p = next) {
		next = p->next;
		nps_agent_client__free(p->agent);
		nps_process__free(p);
	}
	free(c->searched);
	nps_session__close(&c->session);
}
