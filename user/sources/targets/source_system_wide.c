/* SPDX-License-Identifier: BSD-2-Clause */
/* record -a: processes that use an NPU become targets; BPF programs record all others, too. */
#include "capture/capture.h"
#include "capture/discover.h"
#include "core/host_names.h"
#include "sources/source_rows.h"
#include "sources/targets/system_wide.h"

static bool system_wide_wanted(const struct nps_record_opts *opts)
{
	return opts->all;
}

static int find_first(struct nps_capture *c, struct nps_source *s)
{
	struct nps_system_wide *w;
	int err;

	nps_host_names__collect(); /* of containers whose processes use an NPU later */
	err = nps_system_wide__new(&w);
	if (err)
		return err;
	s->state = w;
	nps_system_wide__scan(w, c);
	nps_discover__settle(c);
	return 0;
}

static int system_wide_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	if (stage == NPS_START_TARGETS)
		return find_first(c, s);
	if (stage == NPS_START_ARM)
		nps_bpf_loader__watch_all(c->shared.kernel, true, c->shared.costs.child);
	return 0;
}

static const char *system_wide_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	if (kind == NPS_TURN_READY)
		nps_system_wide__scan(s->state, c);
	return NULL;
}

static void system_wide_free(struct nps_capture *c, struct nps_source *s)
{
	(void)c;
	nps_system_wide__free(s->state);
}

const struct nps_source_ops nps_source_system_wide = {
	.name = "system-wide",
	.wanted = system_wide_wanted,
	.start = system_wide_start,
	.turn = system_wide_turn,
	.free = system_wide_free,
};
