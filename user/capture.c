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
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_client.h"
#include "capture_agents.h"
#include "capture_parts.h"
#include "clocks.h"
#include "discover.h"
#include "host_names.h"
#include "inject.h"
#include "job_processes.h"
#include "launch.h"
#include "log.h"
#include "priority.h"
#include "privilege.h"
#include "session_end.h"
#include "system_wide.h"
#include "target_state.h"

#define TURN_MS 50
#define YIELD_TURN_MS 2 /* while a thread of the job waits for us to let go of a device */
#define SECOND 1000000000ULL
#define DEVICE_CLOCK_NS (SECOND / 5) /* between two requests for device clock samples */
#define FIRST_CLOCKS_NS (2 * SECOND) /* in which they are four times as many: nothing comes before them */
#define DEVICE_START_MS 500 /* how long the devices' channels may take to start */
#define SAVE_SHARE 20 /* of our time, one part is for rewriting session.json */
#define LEAST_SIZE (64ULL << 20) /* of a session, unless --max-size says otherwise */
#define AGENT_START_MS 500 /* how long the task logs may take to open */
#define BEGIN_NS                                                                                             \
	(60 * SECOND) /* for all that is waited for before it begins: each wait has a limit of its own */
void nps_capture__save(struct nps_capture *c, bool durable)
{
	cJSON *j = nps_capture__describe(c);

	c->save_error = nps_session__write_json(&c->session, j, durable);
	if (c->save_error)
		nps_debug("session.json: %s", strerror(-c->save_error));
	else
		c->described |= c->begin_mono != 0;
	cJSON_Delete(c->saved);
	c->saved = j;
}

/* It begins with a session.json that says that nothing is recorded yet: whoever finds it after a SIGKILL can read that. */
static int create_session(struct nps_capture *c)
{
	cJSON *j = nps_capture__describe(c);
	int err = nps_session__create_with(c->opts->out, j, &c->session);

	cJSON_Delete(j);
	return err;
}

void nps_capture__sample_clocks(struct nps_capture *c, struct nps_clock *clock)
{
	nps_clock__sample(clock);
	nps_stream__append(&c->session.clocks, NPS_CHUNK_CLOCKS, 0, clock, sizeof(*clock));
}

void nps_capture__take_what_comes(void *arg)
{
	struct nps_capture *c = arg;

	nps_agents__keep(c);
	nps_task_source__drain(c->tasks);
	/* While it begins: what is waited for then is not needed. */
	if (!c->begin_mono && nps_capture__interrupted(c))
		c->patience.left = 0;
}

static void handle_exec(struct nps_capture *c, struct nps_process *p, const struct nps_notice *n)
{
	/* What was read after it began is of this program, or of a later one. */
	if ((p->source != NPS_PROCESS_READ || p->read_mono < n->time) &&
	    (!c->end_mono || n->time < c->end_mono))
		nps_discover__refresh(c, p);
	if (n->comm[0])
		memcpy(p->comm, n->comm, sizeof(p->comm));
	p->executed = true;
	/* A new program: new memory, new helper. The log of the old one, if it left any, stays. */
	nps_task_source__gone(c->tasks, p);
	p->signalled = false;
	if (p->agent)
		nps_agents__retire(c, p);
	p->rescan = true;
}

static bool is_about_process(const struct nps_notice *n)
{
	return n->what == NPS_NOTICE_FORK || n->what == NPS_NOTICE_EXEC || n->what == NPS_NOTICE_EXIT;
}

static void handle_notice(struct nps_capture *c, const struct nps_notice *n)
{
	struct nps_process *p = is_about_process(n) ? nps_job_processes__of_notice(c, n)
						    : nps_discover__find(c, (pid_t)n->pid);

	/* One of those that are too many to be listed: its time is the job's all the same. */
	if (!p && n->what == NPS_NOTICE_EXIT && !c->opts->all)
		c->job_cpu_ns += n->cpu_ns;
	if (!p)
		return;
	switch (n->what) {
	case NPS_NOTICE_EXIT:
		if (p->alive || p->exit_code == NPS_EXIT_UNKNOWN)
			nps_job_processes__add_cpu(c, p, n->cpu_ns);
		nps_task_source__gone(c->tasks, p);
		nps_job_processes__exited(p, n->time, (int)n->arg);
		break;
	case NPS_NOTICE_STUB:
		nps_process__add_stub(p, n->arg);
		break;
	case NPS_NOTICE_EXEC:
		handle_exec(c, p, n);
		break;
	case NPS_NOTICE_CODE_MAPPED:
		p->rescan = true;
		break;
	case NPS_NOTICE_SUBMITS:
	case NPS_NOTICE_DEVICE:
		p->submits |= n->what == NPS_NOTICE_SUBMITS;
		nps_device_sampler__uses(c->devices, p->pid, nps_process__foreign(p), (uint32_t)n->arg);
		if (n->what == NPS_NOTICE_SUBMITS) {
			nps_process__read_uid(p);
			nps_device_facts__used(&c->facts, p->pid, p->uid, (uint32_t)n->arg,
					       nps_process__foreign(p));
		}
		if (c->ending)
			break;
		if (!p->agent) /* its helper may have come after we looked */
			nps_discover__scan(c, p);
		if (p->agent)
			nps_agent_client__poke(p->agent);
		else /* at once: a process that ends soon takes the driver's library with it */
			nps_device_facts__ask(&c->facts, c->ask, nps_agents__told(c));
		break;
	default:
		break;
	}
}

/* Births that were not told: the kernel side watches them all the same. */
static void add_missed(void *arg, pid_t pid)
{
	struct nps_capture *c = arg;

	if (!c->ending)
		nps_job_processes__missed(c, pid);
}

int nps_capture__handle_notices(struct nps_capture *c)
{
	struct nps_notice v[256];
	int overflow = 0, n = nps_reader__notices(c->reader, v, 256, &overflow);

	if (n) /* what a process read is told before its end is */
		nps_task_source__drain(c->tasks);
	for (int i = 0; i < n; i++)
		handle_notice(c, &v[i]);
	if (!overflow)
		return n;
	nps_kernel_side__for_each_target(c->kernel, add_missed, c);
	for (struct nps_process *p = c->processes; p; p = p->next)
		p->rescan = true;
	return n;
}

/* Where a ring had no room for a birth, the child itself is in the kernel side's list. */
static void look_for_missed(struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {}, lost;

	nps_kernel_side__counters(c->kernel, counters);
	lost = counters[NPS_COUNTER_LOST + NPS_EV_PROC];
	if (lost != c->births_lost)
		nps_kernel_side__for_each_target(c->kernel, add_missed, c);
	c->births_lost = lost;
}

/* It is as long as the list of processes: where there are thousands it may take a twentieth of our time, not all of it. */
static void save_now_and_then(struct nps_capture *c)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC), took;

	if (begin < c->save_after)
		return;
	nps_capture__save(c, false);
	took = nps_now(CLOCK_MONOTONIC) - begin;
	c->save_after = begin + SAVE_SHARE * took;
}

/* Devices whose task log a helper reads are the job's; others it holds memory of. */
static void find_devices(struct nps_capture *c)
{
	struct nps_device_counts counts;

	if (!c->devices)
		return;
	FOR_EACH_AGENT(c, p)
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (nps_agent_client__uses(p->agent, d))
			nps_device_sampler__uses(c->devices, p->pid, nps_process__foreign(p), d);
	nps_device_sampler__look(c->devices);
	nps_device_sampler__counts(c->devices, &counts); /* tells the session of a full disk */
}

/* Without them the capture is poorer, but there. */
static void start_devices(struct nps_capture *c)
{
	pid_t pids[64];
	size_t n = 0;
	bool answered;

	if (!nps_device_options__any(&c->opts->devices))
		return;
	for (const struct nps_process *p = c->processes; p && n < sizeof(pids) / sizeof(*pids); p = p->next)
		pids[n++] = p->pid;
	if (nps_device_sampler__start(&c->opts->devices, &c->session, &c->logs, c->ask, pids, n,
				      nps_agents__counted(c), &c->devices)) {
		c->degraded = true;
		return;
	}
	answered = nps_driver_ask__wait(c->ask, &c->patience, nps_capture__take_what_comes, c);
	if (nps_device_sampler__failed(c->devices)) {
		nps_device_sampler__free(c->devices);
		c->devices = NULL;
		c->degraded = true;
		return;
	}
	for (const struct nps_process *p = c->processes; p; p = p->next)
		nps_device_sampler__process(c->devices, p->pid, nps_process__foreign(p));
	find_devices(c);
	if (answered) /* else that was the time that the driver gets */
		nps_driver_ask__wait(c->ask, &c->patience, nps_capture__take_what_comes, c);
	nps_device_sampler__settle(c->devices, DEVICE_START_MS);
}

static void every_second(struct nps_capture *c)
{
	struct nps_clock clock;

	nps_capture__sample_clocks(c, &clock);
	FOR_EACH_AGENT(c, p)
	nps_agent_client__tick(p->agent);
	nps_job_processes__look(c, clock.mono);
	look_for_missed(c);
	nps_overhead__every_second(c);
	find_devices(c);
	nps_device_facts__ask(&c->facts, c->ask, nps_agents__told(c));
	nps_driver_side__look(c->driver);
	nps_agents__report(c);
	save_now_and_then(c);
}

static bool any_alive(const struct nps_capture *c)
{
	for (const struct nps_process *p = c->processes; p; p = p->next)
		if (p->alive)
			return true;
	return false;
}

/* Has the capture all the bytes that it may have? */
static bool is_full(struct nps_capture *c)
{
	if (nps_session__bytes(&c->session) < c->logs.max_size)
		return false;
	nps_warn("capture stopped: %s has %" PRIu64
		 " MiB: a larger --max-size allows more; what was captured "
		 "is kept",
		 c->session.path, c->logs.max_size >> 20);
	c->degraded = true;
	return true;
}

/* Returns why the capture ends. */
static const char *watch(struct nps_capture *c)
{
	struct pollfd fds[] = { { .fd = c->signals, .events = POLLIN },
				{ .fd = nps_reader__notice_fd(c->reader), .events = POLLIN },
				{ .fd = nps_task_source__fd(c->tasks), .events = POLLIN } };
	uint64_t second = c->begin_mono + SECOND, device_clock = c->begin_mono + DEVICE_CLOCK_NS;
	uint64_t end = c->begin_mono + c->opts->duration_ns;

	for (;;) {
		uint64_t now = nps_now(CLOCK_MONOTONIC);
		uint64_t left = c->opts->duration_ns && end > now ? (end - now) / 1000000 + 1 : TURN_MS;
		int most = nps_task_source__waits(c->tasks) ? YIELD_TURN_MS : TURN_MS;
		int err;

		if (c->opts->duration_ns && now >= end)
			return "duration";
		fds[2].fd = nps_task_source__fd(c->tasks); /* not where more comes than one turn takes */
		if (poll(fds, 3, left < (uint64_t)most ? (int)left : most) < 0 && errno != EINTR)
			return "error";
		if (fds[0].revents & POLLIN)
			return "signal";
		nps_capture__handle_notices(c);
		nps_discover__turn(c);
		nps_agents__drain(c);
		nps_task_source__turn(c->tasks);
		nps_driver_ask__turn(c->ask);
		nps_device_sampler__counted(c->devices, nps_agents__counted(c));
		nps_overhead__turn(c, false);
		nps_overhead__look(c);
		nps_probes__turn(c->probes, nps_now(CLOCK_MONOTONIC));
		err = nps_session__error(&c->session);
		if (err) {
			nps_warn("capture stopped: cannot write to %s: %s: %s: what was captured is kept",
				 c->session.path, strerror(-err), nps_session_end__advice(err));
			c->degraded = c->write_error_reported = true;
			return err == -ENOSPC || err == -EDQUOT ? "disk full" : "error";
		}
		if (is_full(c))
			return "size limit";
		if (nps_session__is_deleted(&c->session))
			return "error"; /* what else is written fills a disk where nobody can see it */
		if (c->opts->all)
			nps_system_wide__look(c->system_wide, c);
		else if (!any_alive(c))
			return "targets exited";
		if (nps_now(CLOCK_MONOTONIC) >= device_clock) {
			FOR_EACH_AGENT(c, p)
			{
				nps_agent_client__tick(p->agent);
				nps_agent_client__say(p->agent, false);
			}
			nps_task_source__tick(c->tasks);
			device_clock += device_clock < c->begin_mono + FIRST_CLOCKS_NS ? DEVICE_CLOCK_NS / 4
										       : DEVICE_CLOCK_NS;
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

bool nps_capture__take_signals(int fd)
{
	struct signalfd_siginfo si;
	bool terminated = false;

	while (read(fd, &si, sizeof(si)) > 0)
		terminated |= si.ssi_signo == SIGTERM;
	return terminated;
}

static void release_signals(int fd, sigset_t *set, bool terminated)
{
	close(fd);
	if (terminated)
		sigdelset(set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, set, NULL);
}

void nps_capture__heed_sigterm(void)
{
	const struct timespec at_once = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int add_targets(struct nps_capture *c)
{
	int err = 0;

	if (c->child)
		return nps_discover__add(c, c->child);
	if (c->opts->all) {
		nps_host_names__collect(); /* of containers whose processes use an NPU later */
		err = nps_system_wide__new(&c->system_wide);
		if (!err)
			nps_system_wide__look(c->system_wide, c);
		return err;
	}
	for (int i = 0; i < c->opts->n_pids; i++) {
		err = nps_discover__add_tree(c, c->opts->pids[i]);
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

static int check_pid(pid_t pid)
{
	pid_t process = nps_pid_exists(pid) ? nps_pid_of_thread(pid) : 0;

	if (!process) {
		nps_warn("cannot watch pid %d: no such process: check it with ps", pid);
		return -ESRCH;
	}
	/* /proc has it under its number too, but nothing is recorded of that. */
	if (process != pid) {
		nps_warn("cannot watch pid %d: it is a thread of process %d: give that number", pid, process);
		return -EINVAL;
	}
	return 0;
}

/* What was asked for, else half of what is free, so that others still have room. A disk that is nearly full is used up. */
static uint64_t max_size(const struct nps_capture *c)
{
	struct statvfs fs;
	uint64_t half;

	if (c->opts->max_size)
		return c->opts->max_size;
	if (fstatvfs(c->session.dir_fd, &fs))
		return UINT64_MAX;
	half = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
	return half < LEAST_SIZE ? LEAST_SIZE : half;
}

bool nps_capture__interrupted(const struct nps_capture *c)
{
	struct pollfd fd = { .fd = c->signals, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLIN;
}

/* The BPF objects, and the tracepoints that they need. */
static int open_kernel_side(struct nps_capture *c, const struct nps_kernel_side_opts *opts)
{
	int before = nps_priority__raise();
	int err = nps_kernel_side__open(&c->cap, opts, &c->kernel);

	nps_priority__restore(before);
	if (err)
		return err;
	if (nps_kernel_side__is_legacy(c->kernel)) {
		nps_warn(
			"this kernel is old to npuscope: only calls, submissions, marks and system calls are "
			"recorded, without scheduling, locks, children of the job and what descriptors are: "
			"`npuscope doctor` shows what it lacks");
		c->degraded = true;
	}
	err = nps_probes__new(c->kernel, c->opts->level,
			      c->opts->shapes && !nps_kernel_side__is_legacy(c->kernel), &c->operators,
			      &c->probes);
	return err ? err : nps_kernel_side__attach(c->kernel);
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
	int err, before = nps_priority__raise();

	nps_capability__probe(&c->cap);
	nps_priority__restore(before);
	err = nps_capability__check(&c->cap);
	if (err)
		return err;
	for (int i = 0; i < c->opts->n_pids && !err; i++)
		err = check_pid(c->opts->pids[i]);
	if (err)
		return err;
	/* Before this process has threads, and before anything is watched. */
	nps_cost_source__open(&c->costs, &c->cap);
	for (int i = 0; i < c->opts->n_pids && c->opts->inject; i++)
		c->degraded |= nps_inject__tree(c->opts->pids[i], c->opts->children) != 0;
	/* With all rights that we have, some of which we then give up. */
	err = nps_device_launcher__start(&c->launcher);
	if (err)
		nps_warn("npuscope-device-worker cannot be started: %s: what the driver alone tells of "
			 "devices "
			 "and their clocks will be missing: is the installation complete?",
			 strerror(-err));
	c->degraded |= err != 0;
	err = create_session(c);
	if (!err)
		nps_log_budget__init(&c->logs, &c->session, max_size(c), c->opts->max_log_rate);
	if (!err && c->opts->host_sys)
		err = nps_session__open_host(&c->session);
	if (!err && c->opts->command)
		err = prepare_child(c);
	if (!err)
		err = open_kernel_side(c, &kopts);
	if (err)
		return err;
	if (c->opts->mstx.off)
		nps_probes__leave_out(c->probes, NPS_LIB_MSTX);
	if (c->opts->driver.tasks)
		nps_probes__watch_submissions(c->probes);
	if (c->opts->keep_polled)
		nps_probes__keep_polled(c->probes);
	if (c->opts->all && c->opts->osrt)
		nps_info("system calls and switches of every process are recorded: each call takes %.0f ns "
			 "longer, each switch %.0f ns%s",
			 c->opts->osrt_threshold_ns ? c->costs.cost.sum_ns : c->costs.cost.syscall_ns,
			 c->costs.cost.switch_ns,
			 c->costs.basis == NPS_COST_ESTIMATED ? ", by estimate" : "");
	nps_kernel_side__reset_counters(c->kernel);
	err = nps_reader__start(c->kernel, &c->session, &c->operators, &c->reader);
	if (err) {
		nps_warn("cannot start reading: %s", strerror(-err));
		return err;
	}
	nps_overhead__start(c);
	err = nps_driver_ask__new(c->launcher, &c->ask);
	if (!err)
		err = nps_task_source__open(c, &c->tasks);
	if (err)
		return err;
	if (c->costs.failed)
		nps_overhead__check(c);
	start_stacks(c);
	c->degraded |= nps_driver_side__start(c->kernel, &c->opts->driver, c->opts->ring_bytes, &c->driver) !=
		       0;
	nps_driver_side__copy_proc(c->driver, &c->session, false);
	nps_capture__sample_clocks(c, &c->start);
	err = start_host_sys(c);
	if (err)
		return err;
	if (c->child)
		nps_discover__before_exec(c, c->opts->command[0]);
	err = add_targets(c);
	if (err)
		return err;
	nps_discover__settle(c);
	nps_agents__wait(c, nps_agent_client__recording, AGENT_START_MS);
	start_devices(c);
	/* From now on there is something to analyse, should we be killed. */
	c->begin_mono = nps_now(CLOCK_MONOTONIC);
	nps_capture__save(c, false);
	err = nps_discover__arm(c);
	if (err)
		return err;
	if (c->opts->all) {
		nps_kernel_side__watch_all(c->kernel, true, c->costs.child);
		nps_driver_side__watch_all(c->driver, true);
	}
	if (nps_capture__interrupted(c))
		return -EINTR;
	c->begin_mono = nps_now(CLOCK_MONOTONIC);
	if (c->child) {
		err = nps_launch__go(c->child_go);
		c->child_go = -1;
		if (err)
			nps_warn("cannot run %s: %s", c->opts->command[0], strerror(-err));
	}
	return err;
}

int nps_capture__run(struct nps_capture *c, const struct nps_record_opts *opts)
{
	struct nps_open_slices slices;
	bool terminated = false;
	sigset_t set;
	int err;

	memset(c, 0, sizeof(*c));
	nps_budget__init(&c->work, NPS_BUDGET_ALL_CPU_NS, NPS_BUDGET_ALL_PERCENT, nps_now(CLOCK_MONOTONIC));
	if (!opts->all)
		nps_budget__advance(&c->work, NPS_BUDGET_NAMED_ALL_CPU_NS);
	c->opts = opts;
	c->session.dir_fd = c->session.events.fd = c->session.strings.fd = c->session.clocks.fd = -1;
	c->session.host.fd = c->session.device.fd = -1;
	c->child_go = c->costs.socket = -1;
	nps_overhead__begin(c);
	c->signals = catch_signals(&set);
	if (c->signals < 0)
		return -errno;
	nps_deadline__init(&c->patience, BEGIN_NS);
	err = begin(c);
	if (err == -EINTR)
		nps_warn("nothing was recorded: a signal ended npuscope before recording began");
	if (!err) {
		nps_privilege__keep(c->driver && opts->driver.tasks ? NPS_PRIVILEGE_SWITCHES
								    : NPS_PRIVILEGE_CAPTURE,
				    nps_kernel_side__cap(c->kernel));
		nps_job_processes__account_cpu(c);
		nps_capture__save(c, false); /* helpers would take seconds of silence for our end */
		nps_info("recording %u probes in %u files%s: Ctrl-C ends it", nps_probes__count(c->probes),
			 nps_probes__files(c->probes), opts->command ? " while the command runs" : "");
		nps_cost_source__start(&c->costs);
		c->end_reason = watch(c);
	}
	if (err)
		nps_capture__take_signals(c->signals);
	else
		terminated = nps_capture__end(c, &slices);
	/* Before a second Ctrl-C can kill us: nothing else would outlive us. */
	c->degraded |= !nps_driver_side__silence(c->driver, err ? NULL : nps_capture__take_what_comes, c);
	release_signals(c->signals, &set, terminated);
	c->signals = -1;
	if (!err) {
		nps_privilege__keep(NPS_PRIVILEGE_CAPTURE, NULL);
		nps_capture__finish(c, &slices);
		err = nps_capture__check_session(c);
	} else {
		nps_capture__discard(c);
	}
	return err;
}

void nps_capture__free(struct nps_capture *c)
{
	struct nps_process *p, *next;
	bool freed;

	if (c->child_go >= 0)
		nps_launch__cancel(c->child, c->child_go);
	nps_cost_source__close(&c->costs);
	nps_overhead__free(c);
	nps_stacks__free(c->stacks);
	nps_driver_side__free(c->driver);
	nps_host_sys__free(c->host_sys);
	nps_device_launcher__end(c->launcher); /* calls into the driver that hang come back with an error */
	freed = nps_device_sampler__free(c->devices);
	freed &= nps_driver_ask__free(c->ask);
	if (freed)
		nps_device_launcher__free(c->launcher);
	nps_task_source__free(c->tasks);
	nps_system_wide__free(c->system_wide);
	nps_reader__free(c->reader);
	nps_probes__free(c->probes);
	nps_operators__free(&c->operators);
	nps_kernel_side__close(c->kernel);
	for (p = c->processes; p; p = next) {
		next = p->next;
		nps_agent_client__free(p->agent);
		nps_agent_client__free(p->former);
		nps_channel_files__free(p->files);
		nps_process__free(p);
	}
	nps_host_names__free();
	free(c->refused);
	free(c->searched);
	cJSON_Delete(c->saved);
	if (freed) /* else a thread may come back */
		nps_log_budget__free(&c->logs);
	nps_session__close(&c->session);
}
