/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

#include "attach/capability.h"
#include "attach/probe_address.h"
#include "attach/probe_rows.h"
#include "capture/discover.h"
#include "cli/cmd.h"
#include "cli/doctor_options.h"
#include "cli/doctor_python.h"
#include "cli/estimate.h"
#include "core/own_file.h"
#include "driver/device_user.h"
#include "driver/driver_nodes.h"
#include "inject/inject.h"
#include "sources/driver/driver_fn.h"

/* Prints what attaching needs: descriptors and, if each probe is a perf event of its own, time. */
static void print_budget(const struct nps_capability *cap)
{
	struct rlimit limit = { 0 };
	unsigned int links = NPS_PROBE_MAX - 1;
	char text[160];

	getrlimit(RLIMIT_NOFILE, &limit);
	if (cap->uprobe >= NPS_UPROBE_MULTI)
		snprintf(text, sizeof(text),
			 "a few links for each library, whatever the number of functions");
	else
		snprintf(text, sizeof(text), "up to %u descriptors of %llu, and 0.1 s for each to leave them",
			 2 * links, (unsigned long long)limit.rlim_max);
	printf("  %-18s %-4s %s\n", "attaching", limit.rlim_max > 2 * links ? "yes" : "no", text);
}

static void count_node(void *arg, const struct nps_node_found *found)
{
	(void)arg;
	(void)found;
}

/* Prints the row of the table for each kind of the driver's events. */
static void print_driver(const struct nps_capability *cap)
{
	unsigned int nodes = nps_driver_nodes__find("/dev", count_node, NULL);
	struct nps_driver_ways ways;

	printf("  %-18s %-4s %u device nodes%s\n", "driver: calls",
	       nodes && !nps_capability__is_legacy(cap) ? "yes" : "no", nodes,
	       nps_capability__is_legacy(cap) ? ", and a kernel that lacks BTF or ring buffers" : "");
	nps_driver_ways__find(cap, &ways);
	nps_driver_ways__print(&ways, stdout);
}

/* Prints the user as whom this host's driver libraries are called. */
static void print_worker(void)
{
	struct nps_device_user user;
	char program[PATH_MAX], text[160];
	int n;

	nps_device_user__choose("/dev", &user);
	n = snprintf(text, sizeof(text), "the driver's libraries run as uid %u", user.uid);
	for (size_t i = 0; i < user.n_groups && n < (int)sizeof(text); i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%u", i ? ", " : " with group ",
			      user.groups[i]);
	if (user.root_alone[0] && n < (int)sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, ": /dev/%s is root's alone, give it a group",
			 user.root_alone);
	printf("  %-18s %-4s %s\n", "device worker",
	       nps_own_file__find("npuscope-device-worker", program, sizeof(program)) ? "no" : "yes", text);
}

int nps_cmd_doctor(int argc, char **argv)
{
	struct nps_capability cap;
	char agent[PATH_MAX], why[128];
	struct nps_doctor_args a;
	int status = NPS_OK;

	if (!nps_doctor_args__parse(&a, argc, argv, &status))
		return status;
	if (a.target)
		return nps_probe_address__print(a.target, stdout) ? NPS_FAILED : NPS_OK;
	if (a.probes) {
		nps_probe_rows__print(stdout);
		return NPS_OK;
	}
	if (a.python)
		return nps_doctor_python__print((pid_t)a.python, stdout) ? NPS_FAILED : NPS_OK;
	nps_capability__probe(&cap);
	if (a.estimate)
		return nps_estimate__print(&cap, &a.rates, stdout) ? NPS_FAILED : NPS_OK;
	nps_capability__print(&cap, stdout);
	print_budget(&cap);
	print_driver(&cap);
	printf("  %-18s %-4s %s\n", "helper library",
	       nps_discover__agent_path(agent, sizeof(agent)) ? "no" : "yes",
	       "device task log of jobs started with it");
	print_worker();
	printf("  %-18s %-4s %s\n", "record --inject", nps_inject__possible(why, sizeof(why)) ? "yes" : "no",
	       why[0] ? why : "loads it into jobs that run, where they allow it");
	return nps_capability__check(&cap) ? NPS_FAILED : NPS_OK;
}
