/* SPDX-License-Identifier: BSD-2-Clause */
#include "estimate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate.h"
#include "event.h"
#include "kernel_side.h"
#include "operators.h"
#include "probes.h"
#include "session.h"

/* Records of one launch: the call, its submission, and two marks that name it (session-format.md). */
#define CALLS_OF_LAUNCH 1
#define SUBMISSIONS_OF_LAUNCH 1
#define MARKS_OF_LAUNCH 2
#define LOG_OF_TASK 128 /* bytes: the device logs a begin and an end */
#define FLUSHES 10 /* chunks a second of each CPU at least (reader.c) */
#define CLOCK_BYTES 2000 /* a second: host clocks, and five brackets of eight reads of a device's */
#define DEFAULT_SECONDS 60

int nps_rates__parse(const char *text, struct nps_rates *rates)
{
	static char *const names[] = { "launches", "calls", "syscalls", "switches", "time", NULL };
	double *const values[] = { &rates->launches, &rates->calls, &rates->syscalls, &rates->switches,
				   &rates->seconds };
	char *copy = strdup(text), *at = copy;
	int err = copy ? 0 : -ENOMEM;

	*rates = (struct nps_rates){ .seconds = DEFAULT_SECONDS };
	while (!err && *at) {
		char *value = NULL, *end = NULL;
		int which = getsubopt(&at, names, &value);

		if (which < 0 || !value) {
			err = -EINVAL;
			break;
		}
		*values[which] = strtod(value, &end);
		if (end == value || *end || !(*values[which] >= 0) || *values[which] > 1e9)
			err = -EINVAL;
	}
	if (!err && !(rates->seconds > 0))
		err = -EINVAL;
	free(copy);
	return err;
}

static int measure(const struct nps_capability *cap, struct nps_cost *cost)
{
	struct nps_kernel_side_opts opts = { .sz = sizeof(opts), .ring_bytes = 1 << 19, .osrt = true };
	struct nps_operators operators = { 0 };
	struct nps_kernel_side *kernel = NULL;
	struct nps_probes *probes = NULL;
	int err = nps_kernel_side__open(cap, &opts, &kernel);

	if (!err)
		err = nps_probes__new(kernel, 1, false, &operators, &probes);
	if (!err)
		err = nps_kernel_side__attach(kernel);
	if (!err)
		nps_calibrate(kernel, probes, true, cost);
	nps_probes__free(probes);
	nps_operators__free(&operators);
	nps_kernel_side__close(kernel);
	return err;
}

static void print_cost(const struct nps_cost *cost, const struct nps_rates *r, FILE *out)
{
	double ns = cost->probe_ns * (r->calls + (CALLS_OF_LAUNCH + SUBMISSIONS_OF_LAUNCH) * r->launches) +
		    cost->mark_ns * MARKS_OF_LAUNCH * r->launches + cost->syscall_ns * r->syscalls +
		    cost->switch_ns * r->switches;

	fprintf(out, "  %-18s %.0f ns a probed call, %.0f an entry mark, %.0f a system call, %.0f a switch\n",
		"measured here", cost->probe_ns, cost->mark_ns, cost->syscall_ns, cost->switch_ns);
	fprintf(out, "  %-18s %.2f %% of one CPU\n", "taken from the job", ns / 1e7);
}

int nps_estimate__print(const struct nps_capability *cap, const struct nps_rates *r, FILE *out)
{
	double records = r->calls + r->syscalls + r->switches +
			 (CALLS_OF_LAUNCH + SUBMISSIONS_OF_LAUNCH + MARKS_OF_LAUNCH) * r->launches;
	double bytes = records * sizeof(struct nps_event) + r->launches * LOG_OF_TASK + CLOCK_BYTES +
		       (double)sysconf(_SC_NPROCESSORS_ONLN) * FLUSHES * sizeof(struct nps_chunk);
	struct nps_cost cost = { .probe_ns = -1 };

	fprintf(out, "capture of %g s\n", r->seconds);
	fprintf(out, "  %-18s %.0f a second\n", "records", records);
	fprintf(out, "  %-18s %.3f MB a second\n", "to disk", bytes / 1e6);
	fprintf(out, "  %-18s %.1f MB\n", "session", bytes * r->seconds / 1e6);
	if (*cap->missing_caps || cap->uprobe < NPS_UPROBE_MULTI)
		fprintf(out, "  %-18s cannot be measured %s\n", "taken from the job",
			*cap->missing_caps ? "without the privileges of a capture" : "on this kernel");
	else if (!measure(cap, &cost) && cost.probe_ns >= 0)
		print_cost(&cost, r, out);
	return ferror(out) ? -EIO : 0;
}
