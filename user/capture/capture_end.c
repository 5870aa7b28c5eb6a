/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/capture_parts.h"

#include <string.h>

#include "core/clocks.h"
#include "core/log.h"
#include "core/session_end.h"

#define SECOND 1000000000ULL
#define SENT_TWICE_NS (SECOND / 5) /* too fast for two Ctrl-C of a user */

/*
 * Discards repeated signals since BEGIN: they are no second request, because the capture did not end by a
 * signal, or the sender repeated it, as timeout(1) does.
 */
static void read_repeated(const struct nps_capture *c, uint64_t begin)
{
	if (strcmp(c->end_reason, "signal") || nps_now(CLOCK_MONOTONIC) - begin < SENT_TWICE_NS)
		nps_capture__read_signals(c->signals);
}

bool nps_capture__end(struct nps_capture *c)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	bool terminated = nps_capture__read_signals(c->signals);

	c->ending = true;
	c->armed = false;
	nps_deadline__init(&c->patience, NPS_END_WAIT_NS);
	nps_sources__end(c, NPS_END_ACCOUNT);
	c->end_mono = nps_now(CLOCK_MONOTONIC);
	nps_sources__end(c, NPS_END_DISARM);
	read_repeated(c, begin); /* the next stage can take longer than a repeated signal is late */
	nps_sources__end(c, NPS_END_COLLECT);
	read_repeated(c, begin);
	return terminated;
}

void nps_capture__finish(struct nps_capture *c)
{
	for (enum nps_end_stage stage = NPS_END_STOP; stage < NPS_END_LAST; stage++)
		nps_sources__end(c, stage);
	c->complete = !nps_session_writer__error(&c->session);
	nps_capture__save(c, false);
	nps_sources__end(c, NPS_END_LAST);
	if (nps_capture__dropped(c))
		c->degraded = true;
	nps_session_end__sync(&c->session);
	c->complete = !nps_session_writer__error(&c->session);
	nps_session_writer__release_reserve(&c->session);
	nps_capture__save(c, true);
}

/* Rewrites the last session.json, because nothing can be queried from the kernel and devices any more. */
void nps_capture__unwound(struct nps_capture *c, uint64_t n, uint64_t whole)
{
	cJSON *stacks = n && c->saved ? cJSON_AddObjectToObject(c->saved, "stacks") : NULL;
	int err;

	if (!stacks)
		return;
	cJSON_AddNumberToObject(stacks, "unwound", (double)n);
	cJSON_AddNumberToObject(stacks, "whole", (double)whole);
	err = nps_session_writer__write_json(&c->session, c->saved, true);
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
	nps_deadline__init(&c->patience, NPS_END_WAIT_NS);
	nps_sources__end(c, NPS_END_CANCEL);
	nps_session_writer__discard(&c->session);
}
