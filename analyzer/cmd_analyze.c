/* SPDX-License-Identifier: BSD-2-Clause */
/* npuscope analyze */
#include "analyze.h"
#include "base/input_file.h"
#include "base/pool.h"
#include "base/util.h"
#include "exit_status.h"
#include "input.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_COMPAT = 0x100, OPT_PROCESSES, OPT_GZIP, OPT_PROGRESS, OPT_SHOW_SELF };

struct command {
	struct nps_analyze_opts opts;
	char **dirs;
	int ndirs;
	struct nps_vec inputs; /* struct nps_input */
	size_t done, missing; /* inputs; arguments that are none */
	int status;
	bool side_by_side; /* several inputs at once */
};

static const struct argp_option options[] = {
	{ "output", 'o', "DIR", 0, "write results into DIR (default: each input's own directory)", 0 },
	{ "export", 'e', "LIST", 0,
	  "formats, separated by commas: text, db, perfetto, folded; or none (default: text,db)", 0 },
	{ "gzip", OPT_GZIP, NULL, 0, "write trace_view.json.gz in place of trace_view.json (default: no)",
	  0 },
	{ "show-self", OPT_SHOW_SELF, NULL, 0,
	  "threads of the helper library that npuscope has in the job, too (default: left out)", 0 },
	{ "compat", OPT_COMPAT, "GEN", 0,
	  "generation of column and layer names: a (CANN 8.0 and before), b (current) or auto: that of the "
	  "input, b for "
	  "raw data (default: auto)",
	  0 },
	{ "max-process-number", OPT_PROCESSES, "N", 0,
	  "results made at the same time (default: half of the CPUs)", 0 },
	{ "progress", OPT_PROGRESS, "WHEN", 0,
	  "tell on stderr what is being done: always, never or auto: if it is a terminal (default: auto)",
	  0 },
	{ 0 },
};

static const struct {
	const char *name;
	unsigned int format;
} formats[] = { { "text", NPS_FORMAT_TEXT },
		{ "db", NPS_FORMAT_DB },
		{ "perfetto", NPS_FORMAT_PERFETTO },
		{ "folded", NPS_FORMAT_FOLDED } };

/* Parses a list of formats. -1 if it is none. */
static int parse_export(const char *list)
{
	unsigned int what = 0;

	if (!strcmp(list, "none"))
		return 0;
	while (*list) {
		size_t len = strcspn(list, ","), i = 0;

		while (i < NPS_ARRAY_SIZE(formats) &&
		       (strlen(formats[i].name) != len || strncmp(list, formats[i].name, len)))
			i++;
		if (i == NPS_ARRAY_SIZE(formats))
			return -1;
		what |= formats[i].format;
		list += len;
		list += *list == ',';
	}
	return what ? (int)what : -1;
}

/* The position of WORD in WORDS, -1 if it is none of them. */
static int one_of(const char *word, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(word, words[i]))
			return i;
	return -1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const generations[] = {
		[NPS_COMPAT_AUTO] = "auto", [NPS_COMPAT_A] = "a", [NPS_COMPAT_B] = "b"
	};
	static const char *const when[] = {
		[NPS_PROGRESS_AUTO] = "auto", [NPS_PROGRESS_ALWAYS] = "always", [NPS_PROGRESS_NEVER] = "never"
	};
	struct command *cmd = state->input;
	char *end;
	long n;
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
			argp_error(state,
				   "--export %s: unknown format: use text, db, perfetto, folded, several of "
				   "them with "
				   "commas, or none",
				   arg);
		cmd->opts.formats = what;
		return 0;
	case OPT_GZIP:
		cmd->opts.gzip = true;
		return 0;
	case OPT_SHOW_SELF:
		cmd->opts.show_self = true;
		return 0;
	case OPT_COMPAT:
		what = one_of(arg, generations, NPS_ARRAY_SIZE(generations));
		if (what < 0)
			argp_error(state, "--compat %s: unknown generation: use a, b or auto", arg);
		cmd->opts.compat = what;
		return 0;
	case OPT_PROCESSES:
		errno = 0;
		n = strtol(arg, &end, 10);
		if (errno || *end || end == arg || n < 1 || n > 4096)
			argp_error(state, "--max-process-number %s: not a number from 1 to 4096", arg);
		cmd->opts.processes = n;
		return 0;
	case OPT_PROGRESS:
		what = one_of(arg, when, NPS_ARRAY_SIZE(when));
		if (what < 0)
			argp_error(state, "--progress %s: use always, never or auto", arg);
		cmd->opts.progress = what;
		return 0;
	case ARGP_KEY_ARGS:
		cmd->dirs = state->argv + state->next;
		cmd->ndirs = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no input: name one or more directories");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int analyze_input(void *ctx, size_t i, FILE *out)
{
	struct command *cmd = ctx;
	struct nps_analyze_opts opts = cmd->opts;
	struct nps_summary summary;
	size_t n;
	int err;

	if (i && cmd->side_by_side)
		opts.progress = NPS_PROGRESS_NEVER; /* there is one line for it */
	err = nps_analyze_input(&NPS_AT(&cmd->inputs, struct nps_input, i), &opts, &summary);
	n = summary.nprocs;

	/* What was done before an error stays, and is told. */
	if (fwrite(&summary, sizeof(summary), 1, out) != 1 ||
	    (n && fwrite(summary.procs, sizeof(*summary.procs), n, out) != n))
		err = err ? err : -EIO;
	nps_summary_free(&summary);
	return err;
}

static int analyzed(void *ctx, size_t i, int err, FILE *in)
{
	struct command *cmd = ctx;
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
	if (!err)
		nps_summary_print(stderr, &summary);
	if (!err && !summary.nprocs)
		nps_msg("nothing to show in %s: no process has any event: was the job idle?",
			NPS_AT(&cmd->inputs, struct nps_input, i).path);
	cmd->done += !err;
	cmd->status = nps_exit_worse(cmd->status, err					  ? EXIT_FAILED
						  : summary.incomplete || !summary.nprocs ? EXIT_LOSSY
											  : 0);
	nps_summary_free(&summary);
	return 0;
}

/* Appends what the arguments are. */
static void find_inputs(struct command *cmd)
{
	for (int i = 0; i < cmd->ndirs; i++) {
		int err = nps_inputs__find(&cmd->inputs, cmd->dirs[i]);

		if (!err)
			continue;
		if (err == -ENOENT && !access(cmd->dirs[i], F_OK))
			nps_msg("cannot analyse %s: neither a session of npuscope nor a PROF_*, *_ascend_pt "
				"or database of "
				"the vendor's profilers: name one",
				cmd->dirs[i]);
		else
			nps_msg("cannot open %s: %s: name a session directory, a PROF_* or *_ascend_pt "
				"directory or a "
				"database",
				cmd->dirs[i], strerror(-err));
		cmd->missing++;
		cmd->status = EXIT_FAILED;
	}
	if (nps_input__take_unreadable())
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

static bool distinct(const struct command *cmd)
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
static bool usable(const struct command *cmd)
{
	if (cmd->opts.output && cmd->opts.formats)
		return distinct(cmd);
	for (size_t i = 0; i < cmd->inputs.len && !cmd->opts.output && cmd->opts.formats; i++) {
		const struct nps_input *input = &NPS_AT(&cmd->inputs, struct nps_input, i);

		if (input->kind != NPS_INPUT_DB)
			continue;
		nps_msg("cannot write beside %s: the result would take its place: name a directory with -o",
			input->path);
		return false;
	}
	return true;
}

static int prepare_output(struct command *cmd)
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

static int run_all(struct command *cmd)
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
	cmd->side_by_side = cmd->inputs.len > 1 && max > 1;
	err = nps_pool__run(cmd->inputs.len, max, analyze_input, analyzed, cmd, tmpfd);
	close(tmpfd);
	if (err)
		nps_msg("cannot analyse: %s", strerror(-err));
	/* The results of the other inputs are there. */
	return err ? EXIT_FAILED : cmd->done && !cmd->missing ? nps_exit_partial(cmd->status) : cmd->status;
}

int nps_cmd_analyze(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "DIR...",
		.doc = "Turn what was recorded into results for MindStudio Insight, msprof-analyze, Perfetto "
		       "and "
		       "chrome://tracing. DIR is a session of `npuscope record`, a PROF_* directory of "
		       "CANN's profiler, a "
		       "*_ascend_pt directory of the PyTorch profiler, one of their databases, or a "
		       "directory that holds "
		       "several of these. Prints the path of each result."
		       "\vExit status: 0 done, 1 failed, 2 wrong usage, 3 done but something was lost or "
		       "cut.",
	};
	struct command cmd = { .opts = { .size = sizeof(cmd.opts), .formats = NPS_FORMAT_DEFAULT } };
	int status, err;

	argp_err_exit_status = EXIT_USAGE;
	err = argp_parse(&argp, argc, argv, 0, NULL, &cmd);
	if (err) {
		nps_msg("cannot read the options: %s", strerror(err));
		return EXIT_FAILED;
	}
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of the write */
	nps_vec__init(&cmd.inputs, AT_FDCWD, sizeof(struct nps_input));
	find_inputs(&cmd);
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
