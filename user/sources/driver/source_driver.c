/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's view of the NPU's driver. */
#include "capture/capture_parts.h"
#include "core/clocks.h"
#include "sources/driver/driver_tracer.h"
#include "sources/source_rows.h"

/*
 * Also if nothing of the driver is recorded: tracepoints that a killed capture left on are switched off. A
 * part that cannot start degrades the capture, and the others continue.
 */
static int driver_begin(struct nps_capture *c, struct nps_source *s)
{
	struct nps_driver_tracer *d = NULL;

	c->degraded |=
		nps_driver_tracer__start(c->shared.kernel, &c->opts->driver, c->opts->ring_bytes, &d) != 0;
	s->state = d;
	if (d && c->opts->driver.tasks)
		c->shared.privilege = NPS_PRIVILEGE_SWITCHES;
	nps_driver_tracer__copy_proc(d, &c->session, false);
	return 0;
}

static int driver_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	if (stage == NPS_START_ATTACH)
		return driver_begin(c, s);
	if (stage == NPS_START_ARM && c->opts->all)
		nps_driver_tracer__watch_all(s->state, true);
	return 0;
}

static const char *driver_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)c;
	if (kind == NPS_TURN_SECOND)
		nps_driver_tracer__scan(s->state);
	return NULL;
}

static int driver_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	(void)c;
	if (e->kind == NPS_EVENT_SCAN && e->mapped)
		nps_driver_tracer__scan_process(s->state, e->p->pid);
	return 0;
}

static void driver_detach(struct nps_capture *c, struct nps_driver_tracer *d)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);

	nps_driver_tracer__detach(d);
	c->detach_ns += nps_now(CLOCK_MONOTONIC) - begin;
}

static void driver_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	struct nps_driver_tracer *d = s->state;

	switch (stage) {
	case NPS_END_DISARM:
		nps_driver_tracer__end(d, c->end_mono);
		break;
	case NPS_END_RESTORE:
		c->degraded |= !nps_driver_tracer__silence(d, c->ending ? nps_capture__wait_turn : NULL, c);
		break;
	case NPS_END_DETACH:
		driver_detach(c, d);
		/* Before the reader ends, which writes the last losses. */
		nps_driver_tracer__settle(d, c->shared.kernel);
		break;
	case NPS_END_LAST:
		nps_driver_tracer__copy_proc(d, &c->session, true);
		c->degraded |= nps_driver_tracer__lacks(d, c->shared.kernel, c->shared.reader);
		break;
	default:
		break;
	}
}

static void driver_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	(void)c;
	for (int kind = 1; kind < NPS_KIND_END; kind++)
		n->uncounted[kind] |= nps_driver_tracer__uncounted(s->state, kind);
}

static void driver_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			    cJSON *session, cJSON *part)
{
	(void)c;
	(void)part;
	if (section == NPS_SECTION_SESSION)
		nps_driver_tracer__describe(s->state, session);
}

static void driver_programs(const struct nps_capture *c, const struct nps_source *s, nps_program_fn each,
			    void *arg)
{
	(void)c;
	nps_driver_tracer__for_each_program(s->state, each, arg);
}

static void driver_free(struct nps_capture *c, struct nps_source *s)
{
	(void)c;
	nps_driver_tracer__free(s->state);
}

const struct nps_source_ops nps_source_driver = {
	.name = "driver",
	.uncosted = "driver calls",
	.start = driver_start,
	.turn = driver_turn,
	.process = driver_process,
	.end = driver_end,
	.count = driver_count,
	.describe = driver_describe,
	.programs = driver_programs,
	.free = driver_free,
};
