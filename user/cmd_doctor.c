/* SPDX-License-Identifier: BSD-2-Clause */
#include <argp.h>
#include <limits.h>

#include "capability.h"
#include "cmd.h"
#include "discover.h"

static const struct argp argp = {
	.doc = "Shows what this host can deliver, and what is missing.\vExit status: 0 events can be "
	       "captured, 1 they cannot.",
};

int nps_cmd_doctor(int argc, char **argv)
{
	struct nps_capability cap;
	char agent[PATH_MAX];

	argp_err_exit_status = NPS_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return NPS_USAGE;
	nps_capability__probe(&cap);
	nps_capability__print(&cap, stdout);
	printf("  %-18s %-4s %s\n", "helper library",
	       nps_discover__agent_path(agent, sizeof(agent)) ? "no" : "yes",
	       "device task log of jobs started with it");
	return nps_capability__check(&cap) ? NPS_FAILED : NPS_OK;
}
