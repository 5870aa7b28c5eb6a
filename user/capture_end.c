/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent_client.h"
#include "capture_agents.h"
#include "capture_controls.h"
#include "clocks.h"
#include "discover.h"
#include "job_processes.h"
#include "log.h"
#include "session_end.h"

#define SECOND 1000000000ULL
#define MOST_BATCHES 2048 /* of notices, at the end: more than can wait */
#define LEAST_BATCHES 16 /* whatever time is left */
#define SENT_TWICE_NS (SECOND / 5) /* no two Ctrl-C of a person */
/*
 * How long the end waits for others, in all: what is detached and written comes on top, and two seconds is what a person has
 * patience for after Ctrl-C. First for devices; then for helpers, which have a fifth of a second at least; then for the driver.
 */
#define PATIENCE_NS (3 * SECOND / 2)
#define AGENT_RESERVE_NS (3 * SECOND / 10)
#define DRIVER_RESERVE_NS (SECOND / 10)
#define AGENT_LINGER_MS 100 /* how long tasks in flight are given to end */

static void say_what_is_missing(struct nps_capture *c)
{
	bool cann = nps_probes__count(c->probes) > 0;

	for (struct nps_process *p = c->processes; p && cann; p = p->next) {
		char reason[160];

		if (!p->submits || c->opts->task_source == NPS_TASKS_HOST || p->tapped ||
		    nps_agent_client__delivered(p->agent) || nps_agent_client__delivered(p->former))
			continue;
		snprintf(reason, sizeof(reason), "%s", p->agent_reason);
		if (p->agent)
			nps_agent_client__reason(p->agent, reason, sizeof(reason));
		nps_warn("pid %d: no device task log: %s: device times are bounds from submission and "
			 "synchronisation",
			 p->pid, reason);
		c->degraded |= c->opts->task_source != NPS_TASKS_AUTO || p->agent;
	}
	FOR_EACH_AGENT(c, p)
	c->degraded |= nps_agent_client__say(p->agent, true);
	for (struct nps_process *p = c->processes; p; p = p->next) {
		if (!nps_agent_client__interrupted(p->agent) && !nps_agent_client__interrupted(p->former))
			continue;
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
	} else if (!cann && c->opts->host_asked && c->opts->level >= 0) {
		nps_info("no process has a CANN library mapped: only what the host saw was recorded");
	} else if ((!cann || !nps_probes__count(c->probes)) && c->opts->level >= 0) {
		nps_warn("no process has a CANN library mapped: only what the host saw was recorded: is "
			 "this the NPU job? --level none records the host alone, without this message");
		c->degraded = true;
	}
	if ((c->opts->irq && !nps_kernel_side__has_irq(c->kernel)) || nps_probes__refused(c->probes))
		c->degraded = true;
	if (c->opts->step_marker && !c->marker_found) {
		nps_warn("no function %s in the job: there are no steps: check the name with nm -D or "
			 "--step-marker",
			 c->opts->step_marker);
		c->degraded = true;
	}
}

/* What is going on now ends with the capture. */
static void collect_open(struct nps_capture *c, struct nps_open_slices *slices)
{
	*slices = (struct nps_open_slices){ .begin = c->begin_mono, .end = c->end_mono };
	if (nps_open_calls__collect(slices, c->kernel, nps_probes__shed_tier(c->probes)))
		c->degraded = true;
	if (!c->opts->osrt)
		return;
	nps_open_slices__collect(slices, c->kernel);
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (!p->exit_mono && p->start_mono < c->begin_mono)
			nps_open_slices__collect_unseen(slices, c->kernel, p->pid);
}

/* True if something was asked of devices that could not be had; each channel has said why. */
static bool say_what_devices_lack(struct nps_capture *c)
{
	struct nps_device_counts counts;

	if (!c->devices)
		return false;
	nps_device_sampler__counts(c->devices, &counts);
	if (!nps_device_sampler__devices(c->devices) && !nps_driver_ask__was_late(c->ask))
		nps_warn("no device was sampled: %s: --sys-devices names them",
			 nps_device_sampler__waits(c->devices)
				 ? "the driver had not told in time which the job uses"
				 : "the job used none that the driver tells of");
	return counts.refused || nps_device_sampler__limited(c->devices) ||
	       !nps_device_sampler__devices(c->devices) || nps_device_sampler__hangs(c->devices) ||
	       nps_device_sampler__lost_driver(c->devices);
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

/* Signals since BEGIN are no second ones: none ended the capture, or the one that did was sent twice, as timeout(1) does. */
static void take_repeated(const struct nps_capture *c, uint64_t begin)
{
	if (strcmp(c->end_reason, "signal") || nps_now(CLOCK_MONOTONIC) - begin < SENT_TWICE_NS)
		nps_capture__take_signals(c->signals);
}

bool nps_capture__end(struct nps_capture *c, struct nps_open_slices *slices)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	bool terminated = nps_capture__take_signals(c->signals);

	c->ending = true;
	nps_overhead__look(c);
	nps_cost_source__end(&c->costs);
	nps_deadline__init(&c->patience, PATIENCE_NS);
	nps_driver_ask__end(c->ask);
	c->end_mono = nps_discover__disarm(c);
	take_repeated(c, begin); /* what follows can take longer than a repeated one may be late */
	collect_open(c, slices);
	nps_stacks__stop(c->stacks);
	nps_job_processes__account_cpu(c);
	nps_overhead__turn(c, true);
	take_repeated(c, begin);
	return terminated;
}

static void who_ended(struct nps_capture *c)
{
	/* A job that still lives may be born faster than that: some at least are looked at. */
	for (int i = 0; i < MOST_BATCHES && (i < LEAST_BATCHES || nps_deadline__left(&c->patience)) &&
			nps_capture__handle_notices(c) > 0;
	     i++)
		;
	nps_discover__turn(c); /* names what launches pointed at */
}

void nps_capture__finish(struct nps_capture *c, struct nps_open_slices *slices)
{
	uint64_t begin;
	bool answered;

	nps_host_sys__stop(c->host_sys); /* while the processes it looks at are still there */
	nps_device_sampler__stop(c->devices, &c->patience, AGENT_RESERVE_NS, nps_capture__take_what_comes, c);
	FOR_EACH_AGENT(c, p)
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		nps_agent_client__sampled(p->agent, d, false, 0); /* nobody has to wait for it any more */
	nps_agents__wait(c, nps_agent_client__idle, AGENT_LINGER_MS);
	nps_agents__stop(c, DRIVER_RESERVE_NS, who_ended);
	nps_driver_ask__turn(c->ask);
	nps_task_source__tick(c->tasks);
	nps_driver_ask__wait(c->ask, &c->patience, nps_capture__take_what_comes, c);
	nps_task_source__detach(c->tasks);
	nps_agents__report(c);
	begin = nps_now(CLOCK_MONOTONIC);
	nps_kernel_side__detach(c->kernel);
	nps_probes__detach(c->probes);
	nps_driver_side__detach(c->driver);
	c->detach_ns = nps_now(CLOCK_MONOTONIC) - begin;
	nps_driver_side__settle(c->driver, c->kernel);
	nps_reader__stop(c->reader);
	nps_overhead__settle(c);
	if (nps_open_slices__write(slices, c->reader))
		c->degraded = true;
	nps_stacks__finish(c->stacks);
	who_ended(c);
	nps_capture__sample_clocks(c, &c->end);
	nps_device_facts__ask(&c->facts, c->ask, nps_agents__told(c));
	nps_controls__ask(c);
	answered = nps_driver_ask__wait(c->ask, &c->patience, nps_capture__take_what_comes, c);
	if (!answered && !nps_driver_ask__was_late(c->ask))
		nps_warn("the driver is slow: it had not answered everything when the capture ended: what it "
			 "alone tells of devices and their clocks is incomplete");
	c->degraded |= !answered || nps_driver_ask__was_late(c->ask);
	nps_controls__write(c);
	nps_device_facts__say(&c->facts, nps_agents__told(c));
	c->degraded |= say_what_devices_lack(c);
	nps_device_launcher__end(c->launcher); /* nobody is asked any more */
	nps_device_sampler__reap(c->devices);
	nps_discover__finish(c);
	say_what_is_missing(c);
	nps_job_processes__report(c);
	say_what_is_unnamed(c);
	/* Last, since a sick driver may keep it: all else is written by then. */
	c->complete = !nps_session__error(&c->session);
	nps_capture__save(c, false);
	nps_driver_side__copy_proc(c->driver, &c->session, true);
	c->degraded |= nps_driver_side__lacks(c->driver, c->kernel, c->reader);
	if (nps_capture__dropped(c))
		c->degraded = true;
	nps_session_end__sync(&c->session);
	c->complete = !nps_session__error(&c->session);
	nps_session__release_reserve(&c->session);
	nps_capture__save(c, true);
}

/* What was described is written again: of the kernel and of devices nothing can be asked any more. */
void nps_capture__unwound(struct nps_capture *c, uint64_t n, uint64_t whole)
{
	cJSON *stacks = n && c->saved ? cJSON_AddObjectToObject(c->saved, "stacks") : NULL;
	int err;

	if (!stacks)
		return;
	cJSON_AddNumberToObject(stacks, "unwound", (double)n);
	cJSON_AddNumberToObject(stacks, "whole", (double)whole);
	err = nps_session__write_json(&c->session, c->saved, true);
	if (err)
		nps_warn("cannot write into session.json how many stacks are whole: %s", strerror(-err));
}

int nps_capture__check_session(struct nps_capture *c)
{
	struct nps_session_end e = { .json_error = c->save_error,
				     .described = c->described,
				     .reported = c->write_error_reported };
	int err = nps_session_end__check(&c->session, &e);

	c->degraded |= e.lost;
	c->unreachable = e.unreachable;
	return err;
}

void nps_capture__discard(struct nps_capture *c)
{
	nps_host_sys__stop(c->host_sys);
	nps_deadline__init(&c->patience, PATIENCE_NS);
	nps_device_sampler__stop(c->devices, &c->patience, 0, NULL, NULL);
	nps_reader__stop(c->reader); /* they write until they are stopped */
	nps_stacks__stop(c->stacks);
	nps_session__discard(&c->session);
}
