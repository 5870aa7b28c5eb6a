/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/launch.h"
#include "cli/cmd.h"
#include "cli/commands.h"
#include "cli/nearest.h"
#include "cli/show.h"
#include "core/log.h"

static const struct runner {
	const struct nps_command *command;
	char *full_name; /* argv[0] of the command, which the session records */
	int (*run)(int argc, char **argv);
	int unwritten; /* exit status if its standard output is lost */
} runners[] = {
#define RUNNER(name, unwritten) { &nps_##name##_command, "npuscope " #name, nps_cmd_##name, unwritten },
	NPS_COMMANDS(RUNNER)
#undef RUNNER
};
#define N_RUNNERS (sizeof(runners) / sizeof(*runners))

static void usage(FILE *out)
{
	fprintf(out, "Usage: npuscope COMMAND [OPTION]...\n\n");
	for (size_t i = 0; i < N_RUNNERS; i++)
		fprintf(out, "  %-10s %s\n", runners[i].command->name, runners[i].command->summary);
	fprintf(out, "\n`npuscope COMMAND --help` describes its options, `man npuscope-COMMAND` has "
		     "examples, too.\n");
}

/* Was all of stdout written? Prints a warning if not. */
static bool is_written(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	nps_warn("cannot write to standard output: %s: free space, or write somewhere else", strerror(errno));
	return false;
}

/*
 * Exit status of a command that returned STATUS; UNWRITTEN if its standard output was lost and that is worse.
 */
static int written(int status, int unwritten)
{
	if (is_written() || status == NPS_USAGE || status == NPS_FAILED)
		return status;
	return unwritten;
}

static const struct runner *runner_find(const char *name)
{
	for (size_t i = 0; i < N_RUNNERS; i++)
		if (strcmp(name, runners[i].command->name) == 0)
			return &runners[i];
	return NULL;
}

/* Prints a warning about an unknown command, with the most similar one. */
static int wrong_command(const char *name)
{
	unsigned int distance, least = UINT_MAX;
	const char *nearest = NULL;

	for (size_t i = 0; i < N_RUNNERS; i++)
		if (nps_is_near(name, runners[i].command->name, &distance) && distance < least) {
			least = distance;
			nearest = runners[i].command->name;
		}
	if (nearest)
		nps_warn("no command '%s': did you mean %s?", name, nearest);
	else if (*name == '-')
		nps_warn("no command before '%s': use npuscope COMMAND [OPTION]...: see npuscope --help",
			 name);
	else
		nps_warn("no command '%s': see npuscope --help", name);
	return NPS_USAGE;
}

/* `npuscope help`, `npuscope help COMMAND` */
static int help(const char *name)
{
	const struct runner *runner = name ? runner_find(name) : NULL;

	if (runner) {
		char *argv[] = { runner->full_name, "--help", NULL };

		return written(runner->run(2, argv), NPS_FAILED);
	}
	if (name)
		return wrong_command(name);
	usage(stdout);
	return written(NPS_OK, NPS_FAILED);
}

int main(int argc, char **argv)
{
	const struct runner *runner;

	/* Captures contain arguments and file names of other users: no access for others. */
	nps_caller_umask = umask(0027);
	if (argc < 2) {
		usage(stderr);
		return NPS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	if (strcmp(argv[1], "--version") == 0) {
		printf("npuscope %s\n", NPS_VERSION);
		return written(NPS_OK, NPS_FAILED);
	}
	runner = runner_find(argv[1]);
	if (!runner)
		return wrong_command(argv[1]);
	argv[1] = runner->full_name;
	return written(runner->run(argc - 1, argv + 1), runner->unwritten);
}
