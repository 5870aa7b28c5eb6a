/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/agent_errors.h"

#include "capture/log_budget.h"
#include "core/clocks.h"
#include "core/log.h"
#include "driver/device_report.h"

#define LONG_NS 1000000000ULL /* time that a driver may take to open a channel before the user is informed */

static const char *name_of(uint32_t channel)
{
	static const struct {
		uint32_t channel;
		const char *name;
	} names[] = { { 0, "list of channels" },	   { 43, "counters of AI Cores by task" },
		      { 44, "log of the scheduler" },	   { 45, "task log" },
		      { 48, "task log of vector cores" },  { 50, "task log" },
		      { 53, "counters of cores by task" }, { 85, "counters of vector cores by task" } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].channel == channel)
			return names[i].name;
	return "a channel";
}

static bool is_log(uint32_t channel)
{
	return channel == 45 || channel == 50;
}

static uint32_t count(const struct nps_agent_device *d)
{
	uint32_t n = __atomic_load_n(&d->n_errors, __ATOMIC_ACQUIRE);

	return n < NPS_AGENT_MAX_ERRORS ? n : NPS_AGENT_MAX_ERRORS;
}

/* Limits the lines that a job can make us print. False: the limit is reached. */
static bool may_print(unsigned int *lines, pid_t pid)
{
	if (*lines < NPS_LOG_LINES && ++*lines == NPS_LOG_LINES)
		nps_warn("pid %d: its helper met more errors of the driver: they are not printed", pid);
	return *lines < NPS_LOG_LINES;
}

static void print_error(unsigned int *lines, pid_t pid, uint32_t device, const struct nps_agent_error *e,
			const char *then)
{
	static const char *const calls[] = { "list", "start", "read", "flush", "stop" };
	const char *what, *usual;

	if (!may_print(lines, pid))
		return;
	nps_device_report__words(e->code, &what, &usual);
	nps_warn("pid %d: device %u: %s: %s (%s of channel %u: code %d): %s", pid, device,
		 name_of(e->channel), what, calls[e->call % (sizeof(calls) / sizeof(*calls))], e->channel,
		 e->code, then ? then : usual);
}

/* Errors of starts are reported at the end, because most are temporary. */
static void print_new(unsigned int *lines, pid_t pid, uint32_t device, const struct nps_agent_error *e)
{
	if (e->call == NPS_AGENT_CALL_READ)
		print_error(lines, pid, device, e, NULL);
	else if (e->call == NPS_AGENT_CALL_FLUSH)
		print_error(lines, pid, device, e, "its last records may be missing");
	else if (e->call == NPS_AGENT_CALL_STOP)
		print_error(lines, pid, device, e,
			    "the stop is tried again, or the channel may stay in use until the job ends");
}

/* Reported once the device is open: if it never opens the reason is reported at the end. */
static void print_opening(struct nps_agent_errors *e, unsigned int *lines, pid_t pid, uint32_t device,
			  uint32_t status)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC), since = e->opening[device];

	if (since == UINT64_MAX || (since && status == NPS_AGENT_S_OPENING))
		return;
	e->opening[device] = status == NPS_AGENT_S_OPENING ? now : 0;
	if (!since || status != NPS_AGENT_S_ON || now - since < LONG_NS || !may_print(lines, pid))
		return;
	nps_info("pid %d: the driver took %.1f s to open the task log of device %u: tasks until then have "
		 "bounds",
		 pid, (double)(now - since) / 1e9, device);
	e->opening[device] = UINT64_MAX;
}

void nps_agent_errors__report(struct nps_agent_errors *e, pid_t pid, const struct nps_agent_control *ctl,
			      unsigned int *lines)
{
	for (uint32_t d = 0; d < NPS_AGENT_MAX_DEVICES; d++) {
		uint32_t n = count(&ctl->device[d]);

		print_opening(e, lines, pid, d, __atomic_load_n(&ctl->device[d].status, __ATOMIC_ACQUIRE));
		for (; e->printed[d] < n; e->printed[d]++) {
			struct nps_agent_error copy = ctl->device[d].errors[e->printed[d]];

			print_new(lines, pid, d, &copy);
		}
	}
}

/*
 * Reports why the log was refused at first. If it never opened, the reason is reported for the whole process.
 */
static void print_recovered(unsigned int *lines, pid_t pid, uint32_t device, const struct nps_agent_device *d)
{
	uint32_t n = d->started_raw ? count(d) : 0;

	for (uint32_t i = 0; i < n; i++) {
		struct nps_agent_error e = d->errors[i];

		if (e.call == NPS_AGENT_CALL_CHANNELS ||
		    (e.call == NPS_AGENT_CALL_START && is_log(e.channel)))
			print_error(lines, pid, device, &e,
				    "it was opened at a later try: tasks until then have bounds");
	}
}

static bool print_refused(unsigned int *lines, pid_t pid, uint32_t device, const struct nps_agent_device *d,
			  const struct nps_agent_control *ctl)
{
	bool any = false;

	for (uint32_t i = 0; d->started_raw && i < NPS_AGENT_MAX_WANTS; i++) {
		struct nps_agent_error e = { .channel = ctl->want[i].channel,
					     .call = NPS_AGENT_CALL_START,
					     .code = d->want_error[i] };

		if (!(d->refused >> i & 1) || is_log(e.channel) || !e.code)
			continue;
		print_error(lines, pid, device, &e, "it is not recorded");
		any = true;
	}
	return any;
}

bool nps_agent_errors__sum_up(pid_t pid, const struct nps_agent_control *ctl, unsigned int *lines)
{
	bool any = false;

	for (uint32_t d = 0; d < NPS_AGENT_MAX_DEVICES; d++) {
		print_recovered(lines, pid, d, &ctl->device[d]);
		any |= print_refused(lines, pid, d, &ctl->device[d], ctl);
	}
	return any;
}
