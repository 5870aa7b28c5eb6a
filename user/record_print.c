/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "event.h"
#include "log.h"

void nps_record_print__losses(const struct nps_capture *c)
{
	uint64_t dropped = nps_capture__dropped(c);

	if (dropped)
		nps_warn("%" PRIu64 " records were lost: \"drops\" in %s/session.json says which: where it "
			 "says ring, a larger --ring-size helps",
			 dropped, c->session.path);
}

static const struct nps_process *command_process(const struct nps_capture *c)
{
	const struct nps_process *p = c->child ? c->processes : NULL;

	while (p && p->pid != c->child)
		p = p->next;
	return p;
}

void nps_record_print__command(const struct nps_capture *c)
{
	const struct nps_process *p = command_process(c);

	if (!p || p->alive || p->exit_code == NPS_EXIT_UNKNOWN)
		return;
	if (WIFSIGNALED(p->exit_code))
		nps_warn("the command was killed by signal %d (%s)%s", WTERMSIG(p->exit_code),
			 strsignal(WTERMSIG(p->exit_code)), WCOREDUMP(p->exit_code) ? ", core dumped" : "");
	else if (WEXITSTATUS(p->exit_code))
		nps_warn("the command ended with status %d", WEXITSTATUS(p->exit_code));
}

static void print_host_sys(const struct nps_capture *c)
{
	struct nps_host_sys_counts n;

	nps_host_sys__counts(c->host_sys, &n);
	if (!c->host_sys)
		return;
	fprintf(stderr, "host: %" PRIu64 " samples, %" PRIu64 " records, for %.2f %% of one CPU\n", n.samples,
		n.records,
		c->end_mono > c->begin_mono ? 100 * (double)n.cpu_ns / (double)(c->end_mono - c->begin_mono)
					    : 0);
	if (n.late >
	    n.samples / 20) /* a few on a busy host are nothing to act on; session.json has them all */
		nps_warn("%" PRIu64 " samples of the host were left out: sampling took too long: a lower "
			 "--host-sys-freq has none to leave out, totals are right all the same",
			 n.late);
}

void nps_record_print__capture(const struct nps_capture *c)
{
	struct nps_reader_counts n;
	uint64_t counters[NPS_COUNTER_MAX] = {};

#define NAME(id, name, words) [id] = (words),
	static const char *const kinds[NPS_KIND_END] = { NPS_EVENT_KINDS(NAME)[NPS_KIND_STRING] = "strings" };
#undef NAME

	nps_reader__counts(c->reader, &n);
	nps_kernel_side__counters(c->kernel, counters);
	n.kinds[NPS_EV_STACK] = nps_stacks__written(c->stacks);
	counters[NPS_COUNTER_LOST + NPS_EV_STACK] += nps_stacks__lost(c->stacks);
	fprintf(stderr, "\n%-16s %12s %12s\n", "source", "events", "dropped");
	for (int kind = 1; kind < NPS_KIND_END; kind++)
		if (n.kinds[kind] || counters[NPS_COUNTER_LOST + kind])
			fprintf(stderr, "%-16s %12" PRIu64 " %12" PRIu64 "\n", kinds[kind], n.kinds[kind],
				counters[NPS_COUNTER_LOST + kind]);
	nps_capture__print_agents(c, stderr);
	print_host_sys(c);
	nps_device_sampler__print(c->devices, c->end_mono - c->begin_mono, stderr);
	fprintf(stderr, "\nprobes: %u in %u files, attached in %.0f ms, gone in %.0f ms\n",
		nps_probes__count(c->probes), nps_probes__files(c->probes), (double)c->attach_ns / 1e6,
		(double)c->detach_ns / 1e6);
	nps_overhead__print_costs(c, stderr);
	nps_overhead__print(c, stderr);
}
