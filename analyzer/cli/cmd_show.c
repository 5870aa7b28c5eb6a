/* SPDX-License-Identifier: BSD-2-Clause */
/* npuscope show */
#include "analyze.h"
#include "base/input_file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/util.h"
#include "cli/analyzer_options.h"
#include "cli/exit_status.h"
#include "cli/show.h"
#include "findings/findings.h"
#include "findings/ranks.h"
#include "import/input.h"
#include "import/trace/trace_slices.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct show_command {
	struct nps_cli_operands dirs;
	struct nps_show_args args;
	struct nps_vec inputs; /* struct nps_input */
	struct nps_ranks ranks;
	const struct nps_input *input; /* the current one */
	cJSON *results; /* of --json */
	size_t shown, missing; /* inputs; arguments that are none */
	int status;
};

/*
 * npuscope_findings.json in DIR, if it is one of this version. NULL: it is not there, or could not be read,
 * which was reported.
 */
static cJSON *read_findings(const char *dir)
{
	static const char name[] = "npuscope_findings.json";
	const cJSON *version;
	cJSON *document;
	int fd;

	/* Files in a directory that may not be listed may still be readable. */
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT)
			nps_input__unreadable(AT_FDCWD, dir, -errno);
		return NULL;
	}
	document = nps_fw_json__read(fd, name);
	if (!document && errno == EILSEQ)
		nps_input__unusable(fd, name, "it is no JSON");
	close(fd);
	version = cJSON_GetObjectItemCaseSensitive(document, "version");
	if (document && (!cJSON_IsNumber(version) || version->valuedouble != 1 ||
			 !cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(document, "findings")))) {
		cJSON_Delete(document);
		document = NULL;
	}
	return document;
}

/*
 * What `analyze` found when it wrote the result: it read the whole session, while a database or a trace has
 * only a part of it. NULL: the input is no result of npuscope.
 */
static cJSON *stored_findings(const struct nps_input *input)
{
	const char *slash = strrchr(input->path, '/');
	char dir[PATH_MAX];
	cJSON *document;
	int len = slash ? (int)(slash - input->path) : 1;

	if (input->kind != NPS_INPUT_DB && input->kind != NPS_INPUT_TRACE)
		return NULL;
	if (input->one_of_many ||
	    snprintf(dir, sizeof(dir), "%.*s", len, slash ? input->path : ".") >= PATH_MAX)
		return NULL;
	document = read_findings(dir);
	if (document)
		return document;
	if (snprintf(dir, sizeof(dir), "%.*s/mindstudio_profiler_output", len, slash ? input->path : ".") >=
	    PATH_MAX)
		return NULL;
	return read_findings(dir);
}

static int show_model(void *ctx, const struct nps_model *model)
{
	struct show_command *cmd = ctx;
	cJSON *document = stored_findings(cmd->input);
	int err;

	errno = ENOMEM;
	if (!document)
		document = nps_findings__make(model);

	if (!document)
		return -errno;
	if (cmd->args.json)
		cJSON_AddStringToObject(document, "path", cmd->input->path);
	err = nps_memory__failure();
	err = err ? err : nps_ranks__add(&cmd->ranks, model, cmd->input->path);
	if (err)
		goto out;
	if (cmd->args.json) {
		cJSON_AddItemToArray(cmd->results, document);
		return 0;
	}
	if (cmd->args.only == NPS_SHOW_RANKS)
		goto out;
	fputs(cmd->ranks.list.len > 1 ? "\n\n" : "", stdout);
	nps_print_text(stdout, cmd->input->path);
	putchar('\n');
	nps_show__result(stdout, document, cmd->args.only, cmd->args.top);
out:
	cJSON_Delete(document);
	return err;
}

static void show_input(struct show_command *cmd, const char *tmp)
{
	struct nps_analyze_opts opts = { .size = sizeof(opts),
					 .output = tmp,
					 .processes = 1,
					 .progress = cmd->args.progress,
					 .show_self = cmd->args.show_self,
					 .steps = cmd->args.steps,
					 .inspect = show_model,
					 .ctx = cmd };
	struct nps_summary summary;
	int err = nps_analyze_input(cmd->input, &opts, &summary);
	bool reported = nps_input__drain_unreadable() > 0; /* by show_model() */

	if (!err && !summary.nprocs)
		nps_msg("nothing to show in %s: no process has any event: was the job idle?",
			cmd->input->path);
	else if (!err && summary.incomplete)
		nps_msg("part of %s was lost or cannot be read: \"lost\" lists it", cmd->input->path);
	cmd->shown += !err;
	cmd->status = nps_exit_worse(cmd->status, err ? EXIT_FAILED
						  : summary.incomplete || reported || !summary.nprocs
							  ? EXIT_LOSSY
							  : 0);
	nps_summary_free(&summary);
}

static int print_ranks(struct show_command *cmd, cJSON **ranks)
{
	int err = nps_ranks__compare(&cmd->ranks, ranks);

	err = err ? err : nps_memory__failure();
	if (err)
		return err;
	if (*ranks && !cmd->args.json && cmd->args.only & NPS_SHOW_RANKS)
		nps_show__ranks(stdout, *ranks, cmd->args.top);
	return 0;
}

static int print_json(struct show_command *cmd, cJSON *ranks)
{
	cJSON *document = cJSON_CreateObject();
	char *text;
	int err;

	cJSON_AddNumberToObject(document, "version", 1);
	cJSON_AddItemToObject(document, "results", cmd->results);
	if (ranks)
		cJSON_AddItemToObject(document, "ranks", ranks);
	text = cJSON_Print(document);
	err = nps_memory__failure();
	if (!err)
		puts(text);
	cJSON_free(text);
	cJSON_Delete(document);
	return err;
}

static int show_all(struct show_command *cmd)
{
	const char *tmp = getenv("TMPDIR");
	cJSON *ranks = NULL;
	int fd, err = 0;

	tmp = tmp && *tmp ? tmp : "/tmp";
	fd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		nps_msg("cannot open %s: %s: set TMPDIR to another directory", tmp, strerror(errno));
		return EXIT_FAILED;
	}
	nps_ranks__init(&cmd->ranks, fd);
	cmd->results = cmd->args.json ? cJSON_CreateArray() : NULL;
	if (cmd->args.json && !cmd->results) {
		nps_msg("cannot show anything: %s", strerror(ENOMEM));
		nps_ranks__free(&cmd->ranks);
		close(fd);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < cmd->inputs.len; i++) {
		cmd->input = &NPS_AT(&cmd->inputs, struct nps_input, i);
		show_input(cmd, tmp);
	}
	nps_memory__reset(); /* what failed until now was reported as that of an input */
	if (cmd->ranks.list.len)
		err = print_ranks(cmd, &ranks);
	if (cmd->args.json && !err)
		err = print_json(cmd, ranks);
	else
		cJSON_Delete(ranks);
	if (err)
		nps_msg("cannot compare the results: %s", strerror(-err));
	nps_ranks__free(&cmd->ranks);
	close(fd);
	/* What could be read has been shown: the rest is what was lost. */
	return err ? EXIT_FAILED : cmd->shown && !cmd->missing ? nps_exit_partial(cmd->status) : cmd->status;
}

/* Whether a trace lies below a directory that is an input, beside a database that is one, or is its slice. */
static bool trace_is_covered(const struct nps_vec *inputs, size_t n, const char *trace)
{
	for (size_t i = 0; i < n; i++) {
		const struct nps_input *input = &NPS_AT(inputs, struct nps_input, i);
		size_t len = strlen(input->path);

		if (input->kind == NPS_INPUT_DB)
			while (len && input->path[len - 1] != '/')
				len--;
		while (len > 1 && input->path[len - 1] == '/')
			len--;
		if (!strncmp(input->path, trace, len) && trace[len] == '/')
			return true;
		if (input->kind == NPS_INPUT_TRACE && nps_trace_slices__same(input->path, trace))
			return true;
	}
	return false;
}

/* Appends what PATH is: what `analyze` takes, and traces that are all there is of a result. */
static int find_input(struct show_command *cmd, const char *path)
{
	size_t n;
	struct nps_vec traces;
	int err, other;

	nps_vec__init(&traces, AT_FDCWD, sizeof(struct nps_input));
	err = nps_show__find_traces(&traces, path);
	if (!err && traces.len == 1 && !strcmp(NPS_AT(&traces, struct nps_input, 0).path, path))
		other = -ENOENT; /* the file itself, which is no database */
	else
		other = nps_inputs__find(&cmd->inputs, path);
	n = cmd->inputs.len;
	for (size_t i = 0; !err && i < traces.len; i++) {
		const struct nps_input *trace = &NPS_AT(&traces, struct nps_input, i);
		struct nps_input *input;

		if (trace_is_covered(&cmd->inputs, n, trace->path))
			continue;
		input = nps_vec__push(&cmd->inputs);
		if (!input)
			err = -errno;
		else
			*input = *trace;
	}
	nps_vec__free(&traces);
	return err == -ENOENT ? other : err;
}

static void show_find_inputs(struct show_command *cmd)
{
	for (int i = 0; i < cmd->dirs.argc; i++) {
		int err = find_input(cmd, cmd->dirs.argv[i]);

		if (!err)
			continue;
		if (err == -ENOENT && !access(cmd->dirs.argv[i], F_OK))
			nps_msg("cannot show %s: neither a session of npuscope nor a PROF_*, *_ascend_pt, "
				"database or "
				"trace of the vendor's profilers: name one",
				cmd->dirs.argv[i]);
		else
			nps_msg("cannot open %s: %s: name a session, a PROF_* or *_ascend_pt directory, a "
				"database or a trace",
				cmd->dirs.argv[i], strerror(-err));
		cmd->missing++;
		cmd->status = EXIT_FAILED;
	}
	if (nps_input__drain_unreadable())
		cmd->status = nps_exit_worse(cmd->status, EXIT_LOSSY);
}

int nps_cmd_show(int argc, char **argv)
{
	struct show_command cmd = { .args = { .only = ~0U } };
	int status = 0;

	if (!nps_options__parse(&nps_show_command, &cmd.args, argc, argv, &cmd.dirs, &status))
		return status;
	if (!cmd.dirs.argc)
		return nps_options__wrong(&nps_show_command, "no input: name one or more directories");
	nps_memory__watch();
	nps_vec__init(&cmd.inputs, AT_FDCWD, sizeof(struct nps_input));
	show_find_inputs(&cmd);
	status = show_all(&cmd);
	nps_vec__free(&cmd.inputs);
	return fflush(stdout) ? EXIT_FAILED : status;
}
