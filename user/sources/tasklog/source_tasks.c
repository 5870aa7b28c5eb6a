/* SPDX-License-Identifier: BSD-2-Clause */
/* The job's own profiler: which devices it uses, and what it reads of their task logs. */
#include "capture/capture_parts.h"
#include "capture/channel_files.h"
#include "sources/source_rows.h"
#include "sources/tasklog/task_source.h"

#define YIELD_TURN_MS 2 /* while a thread of the job waits for the release of a device */

static bool tasks_wanted(const struct nps_record_opts *opts)
{
	return opts->task_source != NPS_TASKS_HOST || nps_device_options__channels(&opts->devices);
}

static int tasks_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	struct nps_task_source *t = NULL;
	int err;

	if (stage != NPS_START_ATTACH)
		return 0;
	err = nps_task_source__open(c, &t);
	s->state = t;
	return err;
}

static int tasks_fd(struct nps_capture *c, struct nps_source *s, int *wait_ms)
{
	(void)c;
	if (nps_task_source__waits(s->state) && *wait_ms > YIELD_TURN_MS)
		*wait_ms = YIELD_TURN_MS;
	return nps_task_source__fd(s->state); /* not if more arrives than one turn handles */
}

static const char *tasks_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)c;
	if (kind == NPS_TURN_READY)
		nps_task_source__turn(s->state);
	else if (kind == NPS_TURN_DRAIN)
		nps_task_source__drain(s->state);
	else if (kind == NPS_TURN_TICK)
		nps_task_source__tick(s->state);
	return NULL;
}

static int tasks_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	if (!s->state)
		return 0;
	switch (e->kind) {
	case NPS_EVENT_LISTED:
		e->p->files = nps_channel_files__new(e->p->pid, &c->session, &c->logs);
		break;
	case NPS_EVENT_LIBRARY:
		nps_task_source__library(s->state, e->fd, e->path, e->budget);
		break;
	case NPS_EVENT_EXECUTED:
		e->p->signalled = false;
		nps_task_source__exited(s->state, e->p);
		break;
	case NPS_EVENT_EXITED:
		nps_task_source__exited(s->state, e->p);
		break;
	default:
		break;
	}
	return 0;
}

/* Reads clocks of its devices once more, then detaches. */
static void tasks_detach(struct nps_capture *c, struct nps_task_source *t)
{
	nps_driver_query__turn(c->shared.query);
	nps_task_source__tick(t);
	nps_driver_query__wait(c->shared.query, &c->patience, nps_capture__wait_turn, c);
	nps_task_source__detach(t);
}

static void tasks_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	if (stage == NPS_END_DETACH)
		tasks_detach(c, s->state);
}

static void tasks_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	uint64_t bytes = nps_task_source__lost(s->state), calls = nps_task_source__lost_events(s->state);

	(void)c;
	n->profiler += bytes;
	n->profiler_calls += calls;
	n->dropped += (bytes + 63) / 64 + calls;
}

static void tasks_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			   cJSON *session, cJSON *part)
{
	(void)c;
	(void)session;
	if (section == NPS_SECTION_DEVICES)
		nps_task_source__describe(s->state, part);
}

static void tasks_free(struct nps_capture *c, struct nps_source *s)
{
	(void)c;
	nps_task_source__free(s->state);
}

const struct nps_source_ops nps_source_tasks = {
	.name = "profiler",
	.wanted = tasks_wanted,
	.start = tasks_start,
	.fd = tasks_fd,
	.turn = tasks_turn,
	.process = tasks_process,
	.end = tasks_end,
	.count = tasks_count,
	.describe = tasks_describe,
	.free = tasks_free,
};
