/* SPDX-License-Identifier: BSD-2-Clause */
#include <argp.h>
#include <limits.h>

#include "capability.h"
#include "cmd.h"
#include "discover.h"
#include "probe_rows.h"

enum { OPTION_PROBES = 256 };

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	bool *probes = state->input;

	(void)arg;
	if (key != OPTION_PROBES)
		return ARGP_ERR_UNKNOWN;
	*probes = true;
	return 0;
}

static const struct argp_option options[] = {
	{ "probes", OPTION_PROBES, NULL, 0,
	  "list the functions that are probed instead, tabs between columns", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = options,
	.parser = on_option,
	.doc = "Shows what this host can deliver, and what is missing.\vExit status: 0 events can be "
	       "captured, 1 they cannot.",
};

int nps_cmd_doctor(int argc, char **argv)
{
	struct nps_capability cap;
	char agent[PATH_MAX];
	bool probes = false;

	argp_err_exit_status = NPS_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, &probes))
		return NPS_USAGE;
	if (probes) {
		nps_probe_rows__print(stdout);
		return NPS_OK;
	}
	nps_capability__probe(&cap);
	nps_capability__print(&cap, stdout);
	printf("  %-18s %-4s %s\n", "helper library",
	       nps_discover__agent_path(agent, sizeof(agent)) ? "no" : "yes",
	       "device task log of jobs started with it");
	return nps_capability__check(&cap) ? NPS_FAILED : NPS_OK;
}
