/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "analyze.h"
#include "cli/cmd.h"
#include "cli/record_options.h"
#include "cli/record_print.h"
#include "core/log.h"
#include "core/privilege.h"

/* Analyses what was captured. Returns the exit status. */
static int analyze(const struct nps_record_args *a, struct nps_capture *c)
{
	struct nps_analyze_opts opts = {
		.size = sizeof(opts), .formats = a->formats, .show_self = a->show_self, .steps = a->steps
	};
	struct nps_summary sum = { 0 };
	int err = nps_analyze(c->session.path, &opts, &sum), status = NPS_OK;
	uint64_t stacks = 0, whole = 0;

	if (err < 0) {
		nps_warn("the session is kept in %s: npuscope analyze can be run on it again",
			 c->session.path);
		nps_summary_free(&sum);
		return NPS_PARTIAL; /* the session is usable */
	}
	if (!a->quiet)
		nps_summary_print(stderr, &sum);
	for (size_t i = 0; i < sum.nprocs; i++) {
		stacks += sum.procs[i].stacks;
		whole += sum.procs[i].whole_stacks;
	}
	nps_capture__unwound(c, stacks, whole);
	for (size_t i = 0; i < sum.nprocs; i++)
		if (sum.procs[i].path[0])
			printf("%s\n", sum.procs[i].path);
	if (sum.incomplete)
		status = NPS_PARTIAL;
	nps_summary_free(&sum);
	return status;
}

int nps_cmd_record(int argc, char **argv)
{
	struct nps_record_args a;
	struct nps_capture c;
	int status = NPS_OK;

	if (!nps_record_args__parse(&a, argc, argv, &status))
		return status;
	if (nps_capture__run(&c, &a.rec)) {
		nps_capture__free(&c);
		return NPS_FAILED;
	}
	if (!c.unreachable) {
		nps_info("session in %s (%s)", c.session.path, c.end_reason);
		printf("%s\n", c.session.path);
	}
	nps_record_print__command(&c);
	nps_record_print__losses(&c);
	if (!c.unreachable && a.formats) {
		nps_capture__heed_sigterm();
		/* From now on only files of the session are read. */
		nps_privilege__keep(NPS_PRIVILEGE_RESULTS, false);
		status = analyze(&a, &c);
	}
	if (!a.quiet)
		nps_record_print__capture(&c);
	if (status == NPS_OK && c.degraded)
		status = NPS_PARTIAL;
	nps_capture__free(&c);
	return status;
}
