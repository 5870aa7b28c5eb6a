/* SPDX-License-Identifier: BSD-2-Clause */
/* npuscope analyze */
#include "analyze.h"
#include "util.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_LOSSY = 3 };

struct command {
	struct nps_analyze_opts opts;
	char **dirs;
	int ndirs;
};

static const struct argp_option options[] = {
	{ "output", 'o', "DIR", 0, "write results into DIR (default: each session's own directory)", 0 },
	{ "export", 'e', "LIST", 0, "formats, separated by commas: text, db; or none (default: text,db)", 0 },
	{ 0 },
};

/* Parses a list of formats. -1 if it is none. */
static int parse_export(const char *list)
{
	unsigned int what = 0;

	if (!strcmp(list, "none"))
		return 0;
	while (*list) {
		size_t len = strcspn(list, ",");

		if (len == 4 && !strncmp(list, "text", 4))
			what |= NPS_EXPORT_TEXT;
		else if (len == 2 && !strncmp(list, "db", 2))
			what |= NPS_EXPORT_DB;
		else
			return -1;
		list += len;
		list += *list == ',';
	}
	return what ? (int)what : -1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *cmd = state->input;
	int what;

	switch (key) {
	case ARGP_KEY_INIT:
		state->name = "npuscope analyze";
		return 0;
	case 'o':
		cmd->opts.output = arg;
		return 0;
	case 'e':
		what = parse_export(arg);
		if (what < 0)
			argp_error(state, "--export %s: unknown format: use text, db, text,db or none", arg);
		cmd->opts.export = what;
		return 0;
	case ARGP_KEY_ARGS:
		cmd->dirs = state->argv + state->next;
		cmd->ndirs = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no session directory: name one or more");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int analyze_one(const char *dir, const struct nps_analyze_opts *opts)
{
	struct nps_summary summary;
	int err = nps_analyze(dir, opts, &summary), status = 0;

	for (size_t i = 0; i < summary.nprocs; i++)
		if (summary.procs[i].path)
			puts(summary.procs[i].path);
	if (!err)
		nps_summary_print(stderr, &summary);
	if (!err && !summary.nprocs) {
		nps_msg("nothing to show in %s: no process has any event: was the job idle?", dir);
		status = EXIT_LOSSY;
	}
	if (err)
		status = EXIT_FAILED;
	else if (summary.incomplete)
		status = EXIT_LOSSY;
	nps_summary_free(&summary);
	return status;
}

int nps_cmd_analyze(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "DIR...",
		.doc = "Turn session directories of `npuscope record` into results for MindStudio Insight, "
		       "msprof-analyze, Perfetto and "
		       "chrome://tracing. Prints the path of each result."
		       "\vExit status: 0 done, 1 failed, 2 wrong usage, 3 done but something was lost or "
		       "cut.",
	};
	struct command cmd = { .opts = { .size = sizeof(cmd.opts), .export = NPS_EXPORT_DEFAULT } };
	struct stat st;
	int status = 0;

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &cmd);
	if (cmd.opts.output) /* `link/` would lead through the link; the text is the caller's argv */
		for (char *o = (char *)cmd.opts.output, *end = o + strlen(o); end > o + 1 && end[-1] == '/';)
			*--end = '\0';
	if (cmd.opts.output && mkdir(cmd.opts.output, 0750) && errno != EEXIST) {
		nps_msg("cannot make %s: %s: name another directory with -o", cmd.opts.output,
			strerror(errno));
		return EXIT_FAILED;
	}
	if (cmd.opts.output && !lstat(cmd.opts.output, &st) && S_ISLNK(st.st_mode)) {
		nps_msg("cannot use %s: it is a symbolic link: name the directory itself", cmd.opts.output);
		return EXIT_FAILED;
	}
	for (int i = 0; i < cmd.ndirs; i++) {
		int one = analyze_one(cmd.dirs[i], &cmd.opts);

		/* A failure outweighs a loss. */
		status = one == EXIT_FAILED || status == EXIT_FAILED ? EXIT_FAILED : NPS_MAX(status, one);
	}
	return fflush(stdout) ? EXIT_FAILED : status;
}
