/* SPDX-License-Identifier: BSD-2-Clause */
/* npuscope analyze */
#include "analyze.h"
#include "base/input_file.h"
#include "base/pool.h"
#include "base/util.h"
#include "cli/analyzer_options.h"
#include "cli/exit_status.h"
#include "import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct analyze_command {
	struct nps_analyze_opts opts;
	struct nps_cli_operands dirs;
	struct nps_vec inputs; /* struct nps_input */
	size_t done, missing; /* inputs; arguments that are none */
	int status;
	bool concurrent; /* several inputs at once */
};

static int analyze_input(void *ctx, size_t i, FILE *out)
{
	struct analyze_command *cmd = ctx;
	struct nps_analyze_opts opts = cmd->opts;
	struct nps_summary summary;
	size_t n;
	int err;

	if (i && cmd->concurrent)
		opts.progress = NPS_PROGRESS_NEVER; /* there is one line for it */
	err = nps_analyze_input(&NPS_AT(&cmd->inputs, struct nps_input, i), &opts, &summary);
	n = summary.nprocs;

	/* Results that were complete before an error stay, and are reported. */
	if (fwrite(&summary, sizeof(summary), 1, out) != 1 ||
	    (n && fwrite(summary.procs, sizeof(*summary.procs), n, out) != n))
		err = err ? err : -EIO;
	nps_summary_free(&summary);
	return err;
}

static int analyzed(void *ctx, size_t i, int err, FILE *in)
{
	struct analyze_command *cmd = ctx;
	struct nps_summary summary = { 0 };
	size_t n;

	if (!in || fread(&summary, sizeof(summary), 1, in) != 1)
		summary.nprocs = 0;
	n = summary.nprocs;
	summary.procs = calloc(n + 1, sizeof(*summary.procs));
	if (!summary.procs || (n && fread(summary.procs, sizeof(*summary.procs), n, in) != n))
		summary.nprocs = 0;
	for (size_t p = 0; p < summary.nprocs; p++)
		if (summary.procs[p].path[0])
			puts(summary.procs[p].path);
	if (err) {
		cmd->status = nps_exit_worse(cmd->status, EXIT_FAILED);
		goto out;
	}
	nps_summary_print(stderr, &summary);
	if (!summary.nprocs)
		nps_msg("nothing to show in %s: no process has any event: was the job idle?",
			NPS_AT(&cmd->inputs, struct nps_input, i).path);
	cmd->done++;
	cmd->status = nps_exit_worse(cmd->status, summary.incomplete || !summary.nprocs ? EXIT_LOSSY : 0);
out:
	nps_summary_free(&summary);
	return 0;
}

/* Appends what the arguments are. */
static void analyze_find_inputs(struct analyze_command *cmd)
{
	for (int i = 0; i < cmd->dirs.argc; i++) {
		int err = nps_inputs__find(&cmd->inputs, cmd->dirs.argv[i]);

		if (!err)
			continue;
		if (err == -ENOENT && !access(cmd->dirs.argv[i], F_OK))
			nps_msg("cannot analyse %s: neither a session of npuscope nor a PROF_*, *_ascend_pt "
				"or database of "
				"the vendor's profilers: name one",
				cmd->dirs.argv[i]);
		else
			nps_msg("cannot open %s: %s: name a session directory, a PROF_* or *_ascend_pt "
				"directory or a "
				"database",
				cmd->dirs.argv[i], strerror(-err));
		cmd->missing++;
		cmd->status = EXIT_FAILED;
	}
	if (nps_input__drain_unreadable())
		cmd->status = nps_exit_worse(cmd->status, EXIT_LOSSY);
}

/* True if two inputs would have results of one name below -o. Sessions name theirs by process and time. */
static bool same_name(const struct nps_input *a, const struct nps_input *b)
{
	char x[256], y[256];

	return a->kind != NPS_INPUT_SESSION && b->kind != NPS_INPUT_SESSION &&
	       !nps_input__result_name(a, x, sizeof(x)) && !nps_input__result_name(b, y, sizeof(y)) &&
	       !strcmp(x, y);
}

static bool distinct(const struct analyze_command *cmd)
{
	const struct nps_input *inputs = cmd->inputs.data;

	for (size_t i = 0; i < cmd->inputs.len; i++)
		for (size_t k = 0; k < i; k++)
			if (same_name(&inputs[i], &inputs[k])) {
				nps_msg("cannot write the results of %s and %s below %s: they have the same "
					"name: analyse "
					"them one by one, each with its own -o",
					inputs[k].path, inputs[i].path, cmd->opts.output);
				return false;
			}
	return true;
}

/* A database is replaced by its own result unless the result goes elsewhere. */
static bool usable(const struct analyze_command *cmd)
{
	if (cmd->opts.output && cmd->opts.formats)
		return distinct(cmd);
	for (size_t i = 0; i < cmd->inputs.len && !cmd->opts.output && cmd->opts.formats; i++) {
		const struct nps_input *input = &NPS_AT(&cmd->inputs, struct nps_input, i);

		if (input->kind != NPS_INPUT_DB)
			continue;
		nps_msg("cannot write beside %s: the result would replace it: name a directory with -o",
			input->path);
		return false;
	}
	return true;
}

static int prepare_output(struct analyze_command *cmd)
{
	struct stat st;

	/* `link/` would lead through the link; the text is the caller's argv */
	for (char *o = (char *)cmd->opts.output, *end = o + strlen(o); end > o + 1 && end[-1] == '/';)
		*--end = '\0';
	if (mkdir(cmd->opts.output, 0750) && errno != EEXIST) {
		nps_msg("cannot make %s: %s: name another directory with -o", cmd->opts.output,
			strerror(errno));
		return EXIT_FAILED;
	}
	if (!lstat(cmd->opts.output, &st) && S_ISLNK(st.st_mode)) {
		nps_msg("cannot use %s: it is a symbolic link: name the directory itself", cmd->opts.output);
		return EXIT_FAILED;
	}
	return 0;
}

static int run_all(struct analyze_command *cmd)
{
	const char *shared = cmd->opts.output ? cmd->opts.output : "/tmp";
	int tmpfd = open(shared, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	size_t max = cmd->opts.processes ? cmd->opts.processes : NPS_MAX(nps_cpus() / 2, 1UL);

	if (tmpfd < 0) {
		nps_msg("cannot write into %s: %s: name another directory with -o", shared, strerror(errno));
		return EXIT_FAILED;
	}
	if (cmd->inputs.len > 1)
		cmd->opts.processes = 1; /* several inputs at once, the results of each one after the other */
	cmd->concurrent = cmd->inputs.len > 1 && max > 1;
	err = nps_pool__run(cmd->inputs.len, max, analyze_input, analyzed, cmd, tmpfd);
	close(tmpfd);
	if (err)
		nps_msg("cannot analyse: %s", strerror(-err));
	/* The results of the other inputs are there. */
	return err ? EXIT_FAILED : cmd->done && !cmd->missing ? nps_exit_partial(cmd->status) : cmd->status;
}

int nps_cmd_analyze(int argc, char **argv)
{
	struct analyze_command cmd = { .opts = { .size = sizeof(cmd.opts) } };
	int status = 0;

	if (!nps_options__parse(&nps_analyze_command, &cmd.opts, argc, argv, &cmd.dirs, &status))
		return status;
	if (!cmd.dirs.argc)
		return nps_options__wrong(&nps_analyze_command, "no input: name one or more directories");
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of the write */
	nps_vec__init(&cmd.inputs, AT_FDCWD, sizeof(struct nps_input));
	analyze_find_inputs(&cmd);
	if (!cmd.inputs.len)
		status = cmd.status;
	else if (!usable(&cmd))
		status = EXIT_USAGE;
	else
		status = cmd.opts.output ? prepare_output(&cmd) : 0;
	if (!status && cmd.inputs.len)
		status = run_all(&cmd);
	nps_vec__free(&cmd.inputs);
	return status;
}
