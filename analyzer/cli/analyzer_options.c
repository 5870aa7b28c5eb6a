/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/analyzer_options.h"

#include "cli/show.h"

static const struct nps_option_word progress_words[] = {
	{ "auto", NPS_PROGRESS_AUTO, .help = "if stderr is a terminal" },
	{ "always", NPS_PROGRESS_ALWAYS, .help = "a line each, for logs" },
	{ "never", NPS_PROGRESS_NEVER, .help = "nothing" },
	{ NULL },
};

/* --- analyze -------------------------------------------------------------------------------------------- */

#define AT(type, member) NPS_OPTION_MEMBER(type, struct nps_analyze_opts, member)

static const struct nps_option_word format_words[] = {
	{ "text", NPS_FORMAT_TEXT, .help = "trace_view.json and CSV tables" },
	{ "db", NPS_FORMAT_DB, .help = "SQLite databases" },
	{ "perfetto", NPS_FORMAT_PERFETTO, .help = "npuscope.pftrace" },
	{ "folded", NPS_FORMAT_FOLDED, .help = "stacks for flame graphs" },
	{ "none", 0, .help = "nothing but a summary on stderr" },
	{ NULL },
};

static const struct nps_option_word generation_words[] = {
	{ "auto", NPS_COMPAT_AUTO, .help = "that of the input; b for raw data" },
	{ "a", NPS_COMPAT_A, .help = "CANN 8.0 and before" },
	{ "b", NPS_COMPAT_B, .help = "current" },
	{ NULL },
};

const struct nps_option_word nps_step_source_words[] = {
	{ "auto", NPS_STEPS_AUTO,
	  .help = "the first of these that there is; of other profilers' data, markers" },
	{ "marker", NPS_STEPS_MARKER, .help = "markers only" },
	{ "optimizer", NPS_STEPS_OPTIMIZER, .help = "from one Optimizer.step of PyTorch to the next" },
	{ "label", NPS_STEPS_LABEL, .help = "from one label of PyTorch to the next, of one that recurs" },
	{ "period", NPS_STEPS_PERIOD, .help = "what repeats in the launches, also where there are markers" },
	{ "none", NPS_STEPS_NONE, .help = "no steps" },
	{ NULL },
};

static const struct nps_option analyze_options[] = {
	{ NPS_OPTION_GROUP, .name = "Results" },
	{ NPS_OPTION_TEXT, 'o', "output", "DIR", "Write results into DIR", AT(const char *, output),
	  .otherwise = "each input's own directory", .complete = NPS_COMPLETE_DIRECTORIES },
	{ NPS_OPTION_SET, 'e', "export", "LIST", "Formats, separated by commas", AT(unsigned int, formats),
	  .words = format_words, .value = "text,db" },
	{ NPS_OPTION_FLAG, 0, "gzip", .help = "Write trace_view.json.gz in place of trace_view.json",
	  AT(bool, gzip) },
	{ NPS_OPTION_WORD, 0, "compat", "GEN", "Generation of column and layer names",
	  AT(enum nps_compat, compat), .words = generation_words, .value = "auto" },
	{ NPS_OPTION_FLAG, 0, "show-self",
	  .help = "Include threads of the helper library that npuscope has in the job", AT(bool, show_self),
	  .otherwise = "left out" },
	{ NPS_OPTION_WORD, 0, "step-source", "SOURCE", "Where steps come from",
	  AT(enum nps_step_source, steps), .words = nps_step_source_words, .value = "auto" },
	{ NPS_OPTION_GROUP, .name = "Work" },
	{ NPS_OPTION_NUMBER, 0, "max-process-number", .help = "Results made at the same time",
	  AT(unsigned int, processes), .min = 1, .max = 4096, .otherwise = "half of the CPUs" },
	{ NPS_OPTION_GROUP, .name = "Messages" },
	{ NPS_OPTION_WORD, 0, "progress", "WHEN", "Report progress on stderr",
	  AT(enum nps_progress_mode, progress), .words = progress_words, .value = "auto" },
	NPS_OPTION_HELP_ROWS,
};

static const struct nps_example analyze_examples[] = {
	{ "npuscope analyze /data/captures/npuscope_*", "Analyse sessions again, later or on a laptop." },
	{ "npuscope analyze -o out PROF_000001_*", "Analyse raw data of CANN's profiler." },
	{ "npuscope analyze --export perfetto -o out SESSION", "Write a trace for ui.perfetto.dev alone." },
	{ NULL },
};

const struct nps_command nps_analyze_command = {
	.name = "analyze",
	.summary = "write results from captured sessions, here or on another machine",
	.forms = { "DIR..." },
	.description =
		"Turns what was recorded into results for MindStudio Insight, msprof-analyze, Perfetto and "
		"chrome://tracing. DIR is a session of `npuscope record`, a PROF_* directory of CANN's "
		"profiler, a *_ascend_pt directory of the PyTorch profiler, one of their databases, or a "
		"directory that holds several of these. Prints the path of each result.",
	.options = analyze_options,
	.operands = NPS_COMPLETE_FILES,
	.exits = { { 0, "done" },
		   { 1, "failed" },
		   { 2, "wrong usage" },
		   { 3, "done, but something was lost or cut" } },
	.examples = analyze_examples,
};

#undef AT

/* --- show ----------------------------------------------------------------------------------------------- */

#define AT(type, member) NPS_OPTION_MEMBER(type, struct nps_show_args, member)

static const struct nps_option_word section_words[] = {
#define WORD(section) { .name = #section, .value = NPS_SHOW_BIT(section) },
	NPS_SHOW_SECTIONS(WORD)
#undef WORD
		{ .name = "ranks", .value = NPS_SHOW_RANKS },
	{ NULL },
};

static const struct nps_option show_options[] = {
	{ NPS_OPTION_GROUP, .name = "Tables" },
	{ NPS_OPTION_SET, 0, "only", "LIST", "Tables, separated by commas", AT(unsigned int, only),
	  .words = section_words, .otherwise = "all that have rows" },
	{ NPS_OPTION_NUMBER, 0, "top", .help = "Rows of each table", AT(size_t, top), .min = 1, .max = 1000,
	  .value = "10" },
	{ NPS_OPTION_FLAG, 0, "json", .help = "Print all numbers as JSON", AT(bool, json),
	  .otherwise = "tables" },
	{ NPS_OPTION_FLAG, 0, "show-self",
	  .help = "Of sessions: include threads of the helper library that npuscope has in the job",
	  AT(bool, show_self), .otherwise = "left out" },
	{ NPS_OPTION_WORD, 0, "step-source", "SOURCE", "Where steps come from",
	  AT(enum nps_step_source, steps), .words = nps_step_source_words, .value = "auto" },
	{ NPS_OPTION_GROUP, .name = "Messages" },
	{ NPS_OPTION_WORD, 0, "progress", "WHEN", "Report progress on stderr",
	  AT(enum nps_progress_mode, progress), .words = progress_words, .value = "auto" },
	NPS_OPTION_HELP_ROWS,
};

static const struct nps_example show_examples[] = {
	{ "npuscope show out/*_ascend_pt", "Tables and findings of results; several ranks are compared." },
	{ "npuscope show --only steps,operators --top 20 SESSION", "Two tables of a session." },
	{ NULL },
};

const struct nps_command nps_show_command = {
	.name = "show",
	.summary = "print where the time of a job went",
	.forms = { "DIR..." },
	.description =
		"Prints where the time of a job went. DIR is a session of `npuscope record`, a PROF_* "
		"directory of CANN's profiler, a *_ascend_pt directory of the PyTorch profiler, one of "
		"their databases, a trace_view.json or msprof_*.json (also .gz), or a directory that holds "
		"several of these: then the ranks are compared, too. No files are written.",
	.options = show_options,
	.operands = NPS_COMPLETE_FILES,
	.exits = { { 0, "done" },
		   { 1, "failed" },
		   { 2, "wrong usage" },
		   { 3, "done, but something was lost or cut" } },
	.examples = show_examples,
};
