/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"

#define DEFAULT_SECONDS 60
#define MOST_A_SECOND 1e9
#define MOST_PID 4194304

/*
 * Parses "launches=2000,calls=500,syscalls=5000,switches=1000,locks=200,time=600",
 * each optional. 0 or a negative errno.
 */
static int rates_parse(void *opts, const char *text)
{
	static char *const names[] = { "launches", "calls", "syscalls", "switches", "locks", "time", NULL };
	struct nps_doctor_args *args = opts;
	struct nps_rates *rates = &args->rates;
	double *const values[] = { &rates->launches, &rates->calls, &rates->syscalls,
				   &rates->switches, &rates->locks, &rates->seconds };
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
		if (end == value || *end || !(*values[which] >= 0) || *values[which] > MOST_A_SECOND)
			err = -EINVAL;
	}
	if (!err && !(rates->seconds > 0))
		err = -EINVAL;
	free(copy);
	args->estimate = true;
	return err;
}

static const struct nps_option doctor_options[] = {
	{ NPS_OPTION_GROUP, .name = "What to print in place of the table" },
	{ NPS_OPTION_FLAG, 0, "probes",
	  .help = "The functions that are probed, tabs between columns; of a library, or of those that a "
		  "process has mapped: where, how the kernel runs what is there, and why it has to "
		  "single-step it",
	  NPS_OPTION_MEMBER(bool, struct nps_doctor_args, probes) },
	{ NPS_OPTION_CUSTOM, 0, "estimate", "NAME=N[,NAME=N]...",
	  "What a capture will take on disk and of the job's CPU time, from launches, other calls, "
	  "syscalls, switches and waits for locks a second, and its time in seconds (60): "
	  "launches=2000,syscalls=5000,switches=2000,locks=200,time=600",
	  .parse = rates_parse,
	  .valid = "a list of NAME=N, of launches, calls, syscalls, switches, locks (N a second) and time "
		   "(seconds)" },
	{ NPS_OPTION_NUMBER, 0, "python", "PID",
	  "The Python of a process, and whether its stacks can be read",
	  NPS_OPTION_MEMBER(unsigned int, struct nps_doctor_args, python), .min = 1, .max = MOST_PID,
	  .otherwise = "none", .complete = NPS_COMPLETE_PIDS },
	{ NPS_OPTION_GROUP, .name = "Messages" },
	NPS_OPTION_HELP_ROWS,
};

static const struct nps_example doctor_examples[] = {
	{ "npuscope doctor", "What this host can deliver." },
	{ "npuscope doctor --probes 4242", "Where functions of that process are probed." },
	{ "npuscope doctor --estimate launches=2000,time=600",
	  "What a capture will take on disk and of the job's CPU time." },
	{ "npuscope doctor --python 4242", "Whether Python stacks of that process can be read." },
	{ NULL },
};

const struct nps_command nps_doctor_command = {
	.name = "doctor",
	.summary = "what this host can deliver, and what is missing",
	.forms = { "", "--probes [PID|LIBRARY]", "--estimate NAME=N[,NAME=N]...", "--python PID" },
	.description = "Shows what this host can deliver, and what is missing.",
	.options = doctor_options,
	.operands = NPS_COMPLETE_FILES | NPS_COMPLETE_PIDS,
	.exits = { { NPS_OK, "events can be captured" },
		   { NPS_FAILED, "they cannot" },
		   { NPS_USAGE, "wrong usage" } },
	.examples = doctor_examples,
};

bool nps_doctor_args__parse(struct nps_doctor_args *args, int argc, char **argv, int *status)
{
	struct nps_cli_operands rest;

	*args = (struct nps_doctor_args){ 0 };
	if (!nps_options__parse(&nps_doctor_command, args, argc, argv, &rest, status))
		return false;
	if (rest.argc > 1)
		*status = nps_options__wrong(&nps_doctor_command,
					     "'%s' is not expected: only one process or library at a time",
					     rest.argv[1]);
	else if (rest.argc && !args->probes)
		*status = nps_options__wrong(&nps_doctor_command,
					     "'%s' is not expected: did you mean --probes %s?", rest.argv[0],
					     rest.argv[0]);
	else
		args->target = rest.argc ? rest.argv[0] : NULL;
	return !rest.argc || args->target;
}
