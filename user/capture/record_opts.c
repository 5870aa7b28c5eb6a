/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/record_opts.h"

const char *nps_driver_opts__name(const struct nps_driver_opts *opts)
{
	return opts->calls && opts->tasks ? "calls,tasks"
	       : opts->tasks		  ? "tasks"
	       : opts->calls		  ? "calls"
					  : "none";
}

static const char *const part_names[NPS_HOST_SYS_PARTS] = { "cpu", "mem", "disk", "network", "osrt" };

const char *nps_host_sys__part(unsigned int i)
{
	return part_names[i];
}
