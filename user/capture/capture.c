/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/statvfs.h>

#include "capture/capture_parts.h"
#include "capture/launch.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/session_end.h"

#define TURN_MS 50
#define SECOND 1000000000ULL
#define TICK_NS (SECOND / 5)
/* in which ticks are four times as frequent: there are no samples before them */
#define FIRST_TICKS_NS (2 * SECOND)
#define SAVE_SHARE 20 /* rewriting session.json uses at most one part in so many of our time */
#define LEAST_SIZE (64ULL << 20) /* of a session without --max-size */
#define BEGIN_NS (60 * SECOND) /* for all waits before it begins: each wait has a limit of its own */

void nps_capture__save(struct nps_capture *c, bool durable)
{
	cJSON *j = nps_capture__describe(c);

	c->save_error = nps_session_writer__write_json(&c->session, j, durable);
	if (c->save_error)
		nps_debug("session.json: %s", strerror(-c->save_error));
	else
		c->described |= c->begin_mono != 0;
	cJSON_Delete(c->saved);
	c->saved = j;
}

/*
 * session.json grows with the list of processes: with thousands it uses
 * a twentieth of our time, not all of it.
 */
static void save_now_and_then(struct nps_capture *c)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC), elapsed;

	if (begin < c->save_after)
		return;
	nps_capture__save(c, false);
	elapsed = nps_now(CLOCK_MONOTONIC) - begin;
	c->save_after = begin + SAVE_SHARE * elapsed;
}

void nps_capture__wait_turn(void *arg)
{
	struct nps_capture *c = arg;

	nps_sources__turn(c, NPS_TURN_KEEPALIVE);
	nps_sources__turn(c, NPS_TURN_DRAIN);
	/* While the capture begins: after an interruption nothing is waited for. */
	if (!c->begin_mono && nps_capture__interrupted(c))
		c->patience.left = 0;
}

/* --- the loop --- */

/* Has the session reached its maximum size? */
static bool capture_is_full(struct nps_capture *c)
{
	if (nps_session_writer__bytes(&c->session) < c->logs.max_size)
		return false;
	nps_warn("capture stopped: %s has %" PRIu64
		 " MiB: a larger --max-size allows more; what was captured "
		 "is kept",
		 c->session.path, c->logs.max_size >> 20);
	c->degraded = true;
	return true;
}

/* Why nothing more can be written; NULL: it can. */
static const char *check_output(struct nps_capture *c)
{
	int err = nps_session_writer__error(&c->session);

	if (err) {
		nps_warn("capture stopped: cannot write to %s: %s: %s: what was captured is kept",
			 c->session.path, strerror(-err), nps_session_end__advice(err));
		c->degraded = c->write_error_reported = true;
		return err == -ENOSPC || err == -EDQUOT ? "disk full" : "error";
	}
	if (capture_is_full(c))
		return "size limit";
	/* Writes to a deleted directory would fill the disk with data that nobody can access. */
	return nps_session_writer__is_deleted(&c->session) ? "error" : NULL;
}

/* Waits for input, or until something is due: for WAIT_MS at most. 1: a signal ends the capture; -errno. */
static int wait_for_input(struct nps_capture *c, int wait_ms)
{
	struct pollfd fds[1 + NPS_SOURCES_MAX] = { { .fd = c->signals, .events = POLLIN } };
	size_t n = nps_sources__fds(c, fds + 1, &wait_ms);

	if (poll(fds, 1 + n, wait_ms) < 0 && errno != EINTR)
		return -errno;
	return !!(fds[0].revents & POLLIN);
}

/* Milliseconds until the next turn at the latest; 0: the capture ends, because END has passed. */
static int time_left(const struct nps_capture *c, uint64_t end)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC), left;

	if (!c->opts->duration_ns)
		return TURN_MS;
	if (now >= end)
		return 0;
	left = (end - now) / 1000000 + 1;
	return left < TURN_MS ? (int)left : TURN_MS;
}

/* Runs the loop. Returns why the capture ends. */
static const char *capture_watch(struct nps_capture *c)
{
	uint64_t second = c->begin_mono + SECOND, tick = c->begin_mono + TICK_NS;
	uint64_t end = c->begin_mono + c->opts->duration_ns;

	for (;;) {
		const char *reason, *broken;
		int wait_ms = time_left(c, end), signal;

		if (!wait_ms)
			return "duration";
		signal = wait_for_input(c, wait_ms);
		if (signal)
			return signal > 0 ? "signal" : "error";
		reason = nps_sources__turn(c, NPS_TURN_READY);
		broken = check_output(c);
		if (broken || reason)
			return broken ? broken : reason;
		if (nps_now(CLOCK_MONOTONIC) >= tick) {
			nps_sources__turn(c, NPS_TURN_TICK);
			tick += tick < c->begin_mono + FIRST_TICKS_NS ? TICK_NS / 4 : TICK_NS;
		}
		if (nps_now(CLOCK_MONOTONIC) >= second) {
			nps_sources__turn(c, NPS_TURN_SECOND);
			save_now_and_then(c);
			second += SECOND;
		}
	}
}

/* --- begin and end --- */

/*
 * The option, else half of the free space, so that others still have room. On a nearly full disk all of it.
 */
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

/*
 * Creates the session with a session.json that shows that nothing is
 * recorded yet: it is readable even after a SIGKILL.
 */
static int create_session(struct nps_capture *c)
{
	cJSON *j = nps_capture__describe(c);
	int err = nps_session_writer__create_with(c->opts->out, j, &c->session);

	cJSON_Delete(j);
	if (err)
		return err;
	nps_log_budget__init(&c->logs, &c->session, max_size(c), c->opts->max_log_rate);
	return 0;
}

/* Lets the command of -- CMD exec. */
static int run_command(struct nps_capture *c)
{
	int err;

	if (!c->child)
		return 0;
	err = nps_launch__go(c->child_go);
	c->child_go = -1;
	if (err)
		nps_warn("cannot run %s: %s", c->opts->command[0], strerror(-err));
	return err;
}

/* Everything up to the moment when all probes are attached. */
static int capture_begin(struct nps_capture *c)
{
	int err = nps_sources__start(c, NPS_START_PREPARE);

	if (err)
		return err;
	err = create_session(c);
	if (err)
		return err;
	for (enum nps_start_stage stage = NPS_START_FORK; stage <= NPS_START_TARGETS; stage++) {
		err = nps_sources__start(c, stage);
		if (err)
			return err;
	}
	/* From now on there is something to analyse if this process is killed. */
	c->begin_mono = nps_now(CLOCK_MONOTONIC);
	nps_capture__save(c, false);
	err = nps_sources__start(c, NPS_START_ARM);
	if (err)
		return err;
	if (nps_capture__interrupted(c))
		return -EINTR;
	c->begin_mono = nps_now(CLOCK_MONOTONIC);
	return run_command(c);
}

static void init(struct nps_capture *c, const struct nps_record_opts *opts,
		 const struct nps_source_ops *const *rows)
{
	memset(c, 0, sizeof(*c));
	c->opts = opts;
	nps_budget__init(&c->work, NPS_BUDGET_ALL_CPU_NS, NPS_BUDGET_ALL_PERCENT, nps_now(CLOCK_MONOTONIC));
	if (!opts->all)
		nps_budget__advance(&c->work, NPS_BUDGET_NAMED_ALL_CPU_NS);
	nps_deadline__init(&c->patience, BEGIN_NS);
	c->session.dir_fd = c->session.events.fd = c->session.strings.fd = c->session.clocks.fd = -1;
	c->session.host.fd = c->session.device.fd = c->session.python.fd = -1;
	c->child_go = c->signals = -1;
	c->shared.privilege = NPS_PRIVILEGE_CAPTURE;
	nps_sources__init(c, rows);
}

/* Records until the capture ends. Returns whether SIGTERM ended it. */
static bool record(struct nps_capture *c)
{
	nps_privilege__keep(c->shared.privilege, nps_capability__wants_admin(c->shared.kernel_cap));
	nps_capture__save(c, false); /* before that, seconds without a heartbeat would count as our end */
	if (nps_sources__start(c, NPS_START_RUN)) {
		c->end_reason = "error";
		c->degraded = true;
	} else {
		c->end_reason = capture_watch(c);
	}
	return nps_capture__end(c);
}

int nps_capture__run_sources(struct nps_capture *c, const struct nps_record_opts *opts,
			     const struct nps_source_ops *const *rows)
{
	bool terminated = false;
	sigset_t set;
	int err;

	init(c, opts, rows);
	c->signals = nps_capture__catch_signals(&set);
	if (c->signals < 0)
		return -errno;
	err = capture_begin(c);
	if (err == -EINTR)
		nps_warn("nothing was recorded: a signal ended npuscope before recording began");
	if (err)
		nps_capture__read_signals(c->signals);
	else
		terminated = record(c);
	/* Before a second Ctrl-C can kill this process: undo what would outlive it. */
	nps_sources__end(c, NPS_END_RESTORE);
	nps_capture__release_signals(c->signals, &set, terminated);
	c->signals = -1;
	if (err) {
		nps_capture__discard(c);
		return err;
	}
	nps_privilege__keep(NPS_PRIVILEGE_CAPTURE, false);
	nps_capture__finish(c);
	return nps_capture__check_session(c);
}

int nps_capture__run(struct nps_capture *c, const struct nps_record_opts *opts)
{
	return nps_capture__run_sources(c, opts, nps_source_rows);
}

void nps_capture__free(struct nps_capture *c)
{
	if (c->child_go >= 0)
		nps_launch__cancel(c->child, c->child_go);
	nps_sources__free(c);
	cJSON_Delete(c->saved);
	if (!c->shared.hung) /* else a thread may still use it */
		nps_log_budget__free(&c->logs);
	nps_session_writer__close(&c->session);
}
