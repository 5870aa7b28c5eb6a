/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/estimate.h"

#include <errno.h>
#include <unistd.h>

#include "capture/cost_source.h"
#include "event.h"
#include "session.h"

/*
 * Records of one launch: the call, its submission, probed at entry only, and two marks that name it
 * (session-format.md).
 */
#define CALLS_OF_LAUNCH 1
#define SUBMISSIONS_OF_LAUNCH 1
#define MARKS_OF_LAUNCH 2
#define LOG_OF_TASK 168 /* bytes: begin and end, 64 each (stars_soc), and its type, 40 (ts_track) */
#define FLUSHES 10 /* chunks a second of each CPU at least (reader.c) */
#define CLOCK_BYTES 2000 /* a second: host clocks, and five samples of eight reads of a device's */

/* Unknown costs, or those of events that this kernel does not have, are negative. */
static double cost_or_zero(double ns)
{
	return ns > 0 ? ns : 0;
}

/* ns a second, with probes of the class. */
static double estimate_ns(const struct nps_cost *cost, enum nps_probe_class class, const struct nps_rates *r)
{
	return cost->call_ns[class] * (r->calls + CALLS_OF_LAUNCH * r->launches) +
	       cost->mark_ns[class] * (SUBMISSIONS_OF_LAUNCH + MARKS_OF_LAUNCH) * r->launches +
	       cost_or_zero(cost->syscall_ns) * r->syscalls + cost_or_zero(cost->switch_ns) * r->switches;
}

static void print_cost(const struct nps_cost_source *s, const struct nps_rates *r, FILE *out)
{
	static const char *const basis[] = { [NPS_COST_ESTIMATED] = "estimated",
					     [NPS_COST_CACHED] = "measured since boot",
					     [NPS_COST_MEASURED] = "measured here" };
	const struct nps_cost *cost = &s->cost;

	for (enum nps_probe_class class = 0; class < NPS_PROBE_CLASSES; class ++)
		fprintf(out, "  %-18s %.0f ns a probed call, %.0f an entry mark, %s\n",
			class ? "" : basis[s->basis], cost->call_ns[class], cost->mark_ns[class],
			nps_cost__where(class));
	if (cost->syscall_ns >= 0 && cost->switch_ns >= 0)
		fprintf(out, "  %-18s %.0f ns a system call, %.0f a switch\n", "", cost->syscall_ns,
			cost->switch_ns);
	fprintf(out, "  %-18s %.2f %% of one CPU, %.2f %% if every probe is single-stepped\n",
		"taken from the job", estimate_ns(cost, NPS_PROBE_EMULATED, r) / 1e7,
		estimate_ns(cost, NPS_PROBE_STEPPED, r) / 1e7);
}

int nps_estimate__print(const struct nps_capability *cap, const struct nps_rates *r, FILE *out)
{
	double records = r->calls + r->syscalls + r->switches + r->locks +
			 (CALLS_OF_LAUNCH + SUBMISSIONS_OF_LAUNCH + MARKS_OF_LAUNCH) * r->launches;
	double bytes = records * sizeof(struct nps_event) + r->launches * LOG_OF_TASK + CLOCK_BYTES +
		       (double)sysconf(_SC_NPROCESSORS_ONLN) * FLUSHES * sizeof(struct nps_chunk);
	struct nps_cost_source costs;

	fprintf(out, "capture of %g s\n", r->seconds);
	fprintf(out, "  %-18s %.0f a second\n", "records", records);
	fprintf(out, "  %-18s %.3f MB a second\n", "to disk", bytes / 1e6);
	fprintf(out, "  %-18s %.1f MB\n", "session", bytes * r->seconds / 1e6);
	fflush(out);
	nps_cost_source__open(&costs, cap);
	nps_cost_source__start(&costs);
	nps_cost_source__wait(&costs);
	if (nps_cost__is_valid(&costs.cost))
		print_cost(&costs, r, out);
	else
		fprintf(out, "  %-18s nothing: this kernel has no probes\n", "taken from the job");
	nps_cost_source__close(&costs);
	return ferror(out) ? -EIO : 0;
}
