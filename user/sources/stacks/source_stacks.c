/* SPDX-License-Identifier: BSD-2-Clause */
/* --stacks: stacks of running threads, sampled by the clock, and of sleeping ones. */
#include <errno.h>

#include "capture/capture.h"
#include "core/session_json.h"
#include "sources/source_rows.h"
#include "sources/stacks/stacks.h"

static bool stacks_wanted(const struct nps_record_opts *opts)
{
	return opts->stacks.on_cpu || opts->stacks.off_cpu;
}

static int stacks_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	struct nps_stacks *st = NULL;
	int err;

	if (stage != NPS_START_ATTACH)
		return 0;
	err = nps_stacks__start(c->shared.kernel, &c->session, &c->opts->stacks, &st);
	s->state = st;
	return err;
}

static int stacks_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	int err;

	(void)c;
	if (e->kind == NPS_EVENT_WATCHED)
		e->p->unlisted = nps_stacks__watch(s->state, e->p->pid);
	if (e->kind != NPS_EVENT_SCAN || !e->p->unlisted)
		return 0;
	err = nps_stacks__list(s->state, e->p->pid, e->p->start_mono, e->budget);
	e->p->unlisted = err == -ETIME;
	return err;
}

static void stacks_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)c;
	if (stage == NPS_END_COLLECT || stage == NPS_END_CANCEL)
		nps_stacks__stop(s->state);
	else if (stage == NPS_END_FINISH)
		nps_stacks__finish(s->state);
}

static void stacks_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	(void)c;
	n->events[NPS_EV_STACK] += nps_stacks__written(s->state);
	n->lost[NPS_EV_STACK] += nps_stacks__lost(s->state);
}

static void stacks_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			    cJSON *session, cJSON *part)
{
	static const char *const ways[] = { "auto", "fp", "dwarf" };
	const struct nps_stacks_opts *o = &c->opts->stacks;
	cJSON *j;

	(void)session;
	if (section != NPS_SECTION_REQUEST || !stacks_wanted(c->opts))
		return;
	j = cJSON_AddObjectToObject(part, "stacks");
	cJSON_AddBoolToObject(j, "on_cpu", o->on_cpu);
	cJSON_AddBoolToObject(j, "off_cpu", o->off_cpu);
	cJSON_AddNumberToObject(j, "hz", o->hz);
	nps_json__add_u64(j, "off_cpu_min_ns", o->sleep_min);
	cJSON_AddStringToObject(j, "unwind", ways[o->unwind]);
	nps_json__add_u64(j, "uncopied", nps_stacks__uncopied(s->state));
}

static void stacks_free(struct nps_capture *c, struct nps_source *s)
{
	(void)c;
	nps_stacks__free(s->state);
}

const struct nps_source_ops nps_source_stacks = {
	.name = "stacks",
	.optional = true,
	.uncosted = "stacks",
	.wanted = stacks_wanted,
	.start = stacks_start,
	.process = stacks_process,
	.end = stacks_end,
	.count = stacks_count,
	.describe = stacks_describe,
	.free = stacks_free,
};
