/* SPDX-License-Identifier: BSD-2-Clause */
/* --host-sys: use of CPUs, memory, disks and network by processes and the whole host. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/capture.h"
#include "core/clocks.h"
#include "core/log.h"
#include "sources/host/host_sys.h"
#include "sources/source_rows.h"

static bool host_wanted(const struct nps_record_opts *opts)
{
	return opts->host_sys;
}

static int start_sampling(struct nps_capture *c, struct nps_source *s)
{
	struct nps_host_sys_opts opts = { .sz = sizeof(opts),
					  .parts = c->opts->host_sys,
					  .hz = c->opts->host_sys_hz,
					  .all = c->opts->all,
					  .net_map = nps_bpf_loader__net_map(c->shared.kernel),
					  .begin = nps_now(CLOCK_MONOTONIC) };
	struct nps_host_sys *h = NULL;
	int err;

	c->degraded |= opts.parts & NPS_HOST_SYS_NETWORK && opts.net_map < 0;
	err = nps_host_sys__start(&opts, &c->session.host, &h);
	if (err)
		nps_warn("cannot sample the host: %s: leave out --host-sys, or allow more memory and threads",
			 strerror(-err));
	else
		s->state = h;
	return err;
}

static int host_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	if (stage == NPS_START_FORK)
		return nps_session_writer__open_host(&c->session);
	return stage == NPS_START_ATTACH ? start_sampling(c, s) : 0;
}

static int host_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	(void)c;
	if (e->kind == NPS_EVENT_WATCHED)
		nps_host_sys__target(s->state, e->p->pid);
	return 0;
}

static void host_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)c;
	/*
	 * Now, while the sampled processes exist. The thread may sleep, and a
	 * second Ctrl-C must not wait for that.
	 */
	if (stage == NPS_END_COLLECT)
		nps_host_sys__end(s->state);
	else if (stage == NPS_END_STOP || stage == NPS_END_CANCEL)
		nps_host_sys__stop(s->state);
}

static void host_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	struct nps_host_sys_counts host;

	(void)c;
	nps_host_sys__counts(s->state, &host);
	n->host += host.missed;
	n->dropped += host.missed;
}

static void host_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			  cJSON *session, cJSON *part)
{
	struct nps_host_sys_counts host;

	(void)c;
	(void)session;
	if (section != NPS_SECTION_COST_PART || !s->state)
		return;
	nps_host_sys__counts(s->state, &host);
	cJSON_AddNumberToObject(part, "host_samples", (double)host.samples);
	cJSON_AddNumberToObject(part, "host_samples_left_out", (double)host.late);
	cJSON_AddNumberToObject(part, "host_sampling_ns", (double)host.cpu_ns);
}

static void host_print(const struct nps_capture *c, const struct nps_source *s, FILE *out)
{
	struct nps_host_sys_counts n;

	if (!s->state)
		return;
	nps_host_sys__counts(s->state, &n);
	fprintf(out, "host: %" PRIu64 " samples, %" PRIu64 " records, for %.2f %% of one CPU\n", n.samples,
		n.records,
		c->end_mono > c->begin_mono ? 100 * (double)n.cpu_ns / (double)(c->end_mono - c->begin_mono)
					    : 0);
	if (n.late > n.samples / 20) /* a few on a busy host need no action; session.json has them all */
		nps_warn("%" PRIu64 " samples of the host were skipped: sampling took too long: lower "
			 "--host-sys-freq; totals are complete all the same",
			 n.late);
}

static void host_free(struct nps_capture *c, struct nps_source *s)
{
	(void)c;
	nps_host_sys__free(s->state);
}

const struct nps_source_ops nps_source_host = {
	.name = "host",
	.wanted = host_wanted,
	.start = host_start,
	.process = host_process,
	.end = host_end,
	.count = host_count,
	.describe = host_describe,
	.print = host_print,
	.free = host_free,
};
