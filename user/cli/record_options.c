/* SPDX-License-Identifier: BSD-2-Clause */
/* A new option of `npuscope record` is a row of record_options[] and its member. */
#include "cli/record_options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aic_metric_rows.h"
#include "cli/analyzer_options.h"
#include "cli/cmd.h"
#include "core/log.h"
#include "export/formats.h"
#include "python_stack.h"

#define DEFAULT_RING (8UL << 20)
#define DEFAULT_RINGS (256UL << 20) /* of all CPUs together, on large hosts */
#define SMALLEST_RING (512UL << 10)

#define STR_(text) #text
#define STR(text) STR_(text) /* of a macro's value */

/* --- values that are no number and no list of words -------------------------------------------------- */

static int pids_parse(void *opts, const char *text)
{
	struct nps_record_args *a = opts;
	char *end;

	for (;; text = end + 1) {
		long pid;

		errno = 0;
		pid = strtol(text, &end, 10);
		if (end == text || errno || pid <= 0 || pid > INT_MAX || (*end && *end != ','))
			return -EINVAL;
		if (a->rec.n_pids == NPS_RECORD_MAX_PIDS)
			return -E2BIG;
		a->pids[a->rec.n_pids++] = (pid_t)pid;
		if (!*end)
			return 0;
	}
}

#define LABEL "label:"

/* "FUNCTION", "FUNCTION@N", or "label:TEXT" */
static int marker_parse(void *opts, const char *text)
{
	struct nps_record_args *a = opts;
	const char *at = strrchr(text, '@');
	size_t len = at ? (size_t)(at - text) : strlen(text);

	if (!strncmp(text, LABEL, strlen(LABEL))) {
		if (!text[strlen(LABEL)] || strlen(text) >= sizeof(a->marker))
			return -EINVAL;
		strcpy(a->marker, text);
		a->rec.step_label = a->marker;
		a->rec.step_marker = NULL;
		a->rec.step_arg = 0;
		return 0;
	}
	if (!len || len >= sizeof(a->marker))
		return -EINVAL;
	if (at && (at[1] < '1' || at[1] > '4' || at[2]))
		return -EINVAL;
	memcpy(a->marker, text, len);
	a->marker[len] = '\0';
	a->rec.step_marker = a->marker;
	a->rec.step_label = NULL;
	a->rec.step_arg = at ? at[1] - '0' : 0;
	return 0;
}

static int include_parse(void *opts, const char *text)
{
	return nps_mstx__parse(&((struct nps_record_args *)opts)->rec.mstx.include, text);
}

static int exclude_parse(void *opts, const char *text)
{
	return nps_mstx__parse(&((struct nps_record_args *)opts)->rec.mstx.exclude, text);
}

static int metric_parse(void *opts, const char *text)
{
	return nps_aic_metrics__parse(text, &((struct nps_record_args *)opts)->rec.devices.metric);
}

static int devices_parse(void *opts, const char *text)
{
	return nps_device_options__choose(&((struct nps_record_args *)opts)->rec.devices, text);
}

/* --- words ------------------------------------------------------------------------------------------- */

static const struct nps_option_word level_words[] = {
	{ "none", NPS_LEVEL_NONE, .help = "marks of mstx alone" },
	{ "0", 0, .help = "what runs on the device, and its names" },
	{ "1", 1, .help = "every call" },
	{ "2", 2, .help = "calls of the runtime's layer, too" },
	{ NULL },
};

/* For a bool that is true for "off". */
static const struct nps_option_word mstx_words[] = {
	{ "on", false, .help = NULL },
	{ "off", true, .help = NULL },
	{ NULL },
};

static const struct nps_option_word ops_words[] = {
	{ "none", NPS_OPS_NONE, .help = "nothing" },
	{ "npu", NPS_OPS_NPU,
	  .help = "those that give the NPU work, or wait for it, without autograd's sequence numbers" },
	{ "all", NPS_OPS_ALL,
	  .help = "every one, with its calls of others, and the nodes of backward passes" },
	{ NULL },
};

static const struct nps_option_word host_words[] = {
	{ "cpu", NPS_HOST_SYS_CPU, .help = "CPU time, sampled" },
	{ "mem", NPS_HOST_SYS_MEM, .help = "memory, sampled" },
	{ "disk", NPS_HOST_SYS_DISK, .help = "reads and writes of disks, sampled" },
	{ "network", NPS_HOST_SYS_NETWORK, .help = "bytes of sockets, sampled" },
	{ "osrt", NPS_HOST_SYS_OSRT, .help = "system calls and scheduling" },
	{ "none", 0, .help = "nothing" },
	{ NULL },
};

#define FLAG_AT(member) .offset = offsetof(struct nps_record_args, member)

static const struct nps_option_word stack_words[] = {
	{ "cpu", true, .help = "of what runs, sampled by the clock", FLAG_AT(rec.stacks.on_cpu) },
	{ "offcpu", true, .help = "of what sleeps", FLAG_AT(rec.stacks.off_cpu) },
	{ "none", 0, .help = "nothing" },
	{ NULL },
};

static const struct nps_option_word python_words[] = {
	{ "launch", NPS_PY_AT_LAUNCH, .help = "of calls that launch kernels" },
	{ "op", NPS_PY_AT_OP,
	  .help = "of PyTorch's operators; and of what runs (sampled) or sleeps between them" },
	{ "sample", NPS_PY_AT_SAMPLE, .help = "of what runs, in the stacks of --stacks cpu" },
	{ "offcpu", NPS_PY_AT_OFFCPU, .help = "of what sleeps, in those of --stacks offcpu" },
	{ "none", 0, .help = "nothing" },
	{ NULL },
};

static const struct nps_option_word unwind_words[] = {
	{ "auto", NPS_UNWIND_AUTO, .help = "the better of both; copies up to 16 KiB of a stack" },
	{ "fp", NPS_UNWIND_FP, .help = "frame pointers" },
	{ "dwarf", NPS_UNWIND_DWARF, .help = ".eh_frame; copies up to 32 KiB of a stack" },
	{ NULL },
};

static const struct nps_option_word driver_words[] = {
	{ "calls", true, .help = "system calls on its device nodes", FLAG_AT(rec.driver.calls) },
	{ "tasks", true, .help = "tasks, completions and copies that pass through it",
	  FLAG_AT(rec.driver.tasks) },
	{ "none", 0, .help = "nothing" },
	{ NULL },
};

static const struct nps_option_word cache_words[] = {
	{ "read", 'r', .help = NULL },
	{ "write", 'w', .help = NULL },
	{ NULL },
};

/* As in nps_aic_metrics__parse(), which also accepts the names of the profiler's enumeration. */
static const struct nps_option_word metric_words[] = {
#define X(id, name, number) { name, id, .help = NULL },
	NPS_AIC_METRIC_ROWS(X)
#undef X
		{ NULL },
};

static const struct nps_option_word device_words[] = {
	{ "job", 0, .help = NULL },
	{ "all", 1, .help = NULL },
	{ NULL },
};

static const struct nps_option_word source_words[] = {
	{ "auto", NPS_TASKS_AUTO, .help = "the best there is" },
	{ "profiler", NPS_TASKS_PROFILER, .help = "what the job's own profiler reads" },
	{ "agent", NPS_TASKS_AGENT, .help = "the helper library in the job" },
	{ "host", NPS_TASKS_HOST, .help = "bounds, from what the host observes" },
	{ NULL },
};

static const struct nps_option_word format_words[] = {
	{ "text", NPS_FORMAT_TEXT, .help = "trace_view.json and CSV tables" },
	{ "db", NPS_FORMAT_DB, .help = "SQLite databases" },
	{ "none", 0, .help = "nothing but the session" },
	{ NULL },
};

/* --- the rows, in the order of use ------------------------------------------------------------------- */

#define AT(type, member) NPS_OPTION_MEMBER(type, struct nps_record_args, member)
#define DOMAINS_VALID                                                                                        \
	"a list of at most " STR(NPS_MSTX_DOMAINS) " names shorter than " STR(NPS_STR_MAX) " bytes"
#define REQUESTED(member) .requested = offsetof(struct nps_record_args, member)

static const struct nps_option record_options[] = {
	{ NPS_OPTION_GROUP, .name = "Targets" },
	{ NPS_OPTION_CUSTOM, 'p', "pid", "PID[,PID]...",
	  "Attach to these processes and their children; may be given again", .parse = pids_parse,
	  .valid = "a list of process ids, " STR(NPS_RECORD_MAX_PIDS) " at most",
	  .complete = NPS_COMPLETE_PIDS },
	{ NPS_OPTION_FLAG, 'a', "all",
	  .help = "Watch the whole host: its counters, and every process that uses an NPU now or later; "
		  "needs no NPU job",
	  AT(bool, rec.all) },
	{ NPS_OPTION_CLEAR, 0, "no-children", .help = "Do not follow children", AT(bool, rec.children),
	  .otherwise = "they are followed" },

	{ NPS_OPTION_GROUP, .name = "How long, and where" },
	{ NPS_OPTION_TIME, 'd', "duration", .help = "How long, as 10s, 500ms or 1m",
	  AT(uint64_t, rec.duration_ns), .min = 1, .otherwise = "until Ctrl-C, or the job ends" },
	{ NPS_OPTION_TEXT, 'o', "output", "DIR", "Where the session directory is created",
	  AT(const char *, rec.out), .value = ".", .otherwise = "the current directory",
	  .complete = NPS_COMPLETE_DIRECTORIES },

	{ NPS_OPTION_GROUP, .name = "What to record of CANN" },
	{ NPS_OPTION_WORD, 0, "level", .help = "Detail, as the vendor's profiler levels", AT(int, rec.level),
	  .words = level_words, .value = "1" },
	{ NPS_OPTION_FLAG, 0, "record-shapes", .help = "Shapes, data types and formats of operators' tensors",
	  AT(bool, rec.shapes) },
	{ NPS_OPTION_CUSTOM, 0, "step-marker", "FUNC[@N]|label:TEXT",
	  "A step begins when the job enters this function, whose Nth integer argument is the step's number, "
	  "or where this label of PyTorch (with --ops) or mark of mstx begins",
	  .parse = marker_parse, .valid = "a function's name, NAME@N with N from 1 to 4, or label:TEXT",
	  .otherwise = "no steps" },
	{ NPS_OPTION_WORD, 0, "mstx", .help = "Marks and ranges that the job sets", AT(bool, rec.mstx.off),
	  .words = mstx_words, .value = "on", .bare = "on" },
	{ NPS_OPTION_CUSTOM, 0, "mstx-domain-include", "NAME[,NAME]...",
	  "Only marks of these domains; those without one are in \"default\"", .parse = include_parse,
	  .valid = DOMAINS_VALID, .otherwise = "all" },
	{ NPS_OPTION_CUSTOM, 0, "mstx-domain-exclude", "NAME[,NAME]...",
	  "No marks of these domains; without effect where some are included", .parse = exclude_parse,
	  .valid = DOMAINS_VALID, .otherwise = "none" },
	{ NPS_OPTION_FLAG, 0, "keep-polled",
	  .help = "Also record functions that query a state, that the job calls more than 2000 times a "
		  "second, and that the kernel has to single-step",
	  AT(bool, rec.keep_polled), .otherwise = "their probes are detached" },

	{ NPS_OPTION_GROUP, .name = "What to record of PyTorch" },
	{ NPS_OPTION_WORD, 0, "ops", .help = "Operators that the job calls", AT(enum nps_ops, rec.ops),
	  .words = ops_words, .value = "none" },
	{ NPS_OPTION_FLAG, 0, "profile-memory",
	  .help = "What torch_npu's allocator of device memory does; with --ops also for which operators",
	  AT(bool, rec.torch_memory) },

	{ NPS_OPTION_GROUP, .name = "What to record of the host" },
	{ NPS_OPTION_SET, 0, "host-sys", "LIST", "Parts of the host, separated by commas",
	  AT(unsigned int, host_sys), REQUESTED(has_host_sys), .words = host_words,
	  .otherwise = "osrt; with -a: cpu,mem,disk,network; with --level none: none" },
	{ NPS_OPTION_NUMBER, 0, "host-sys-freq", "HZ", "Samples a second", AT(unsigned int, rec.host_sys_hz),
	  .min = 1, .max = NPS_HOST_SYS_MOST_HZ, .value = "50" },
	{ NPS_OPTION_TIME, 0, "osrt-threshold",
	  .help = "System calls shorter than this are counted and summed up, not recorded one by one; 0 "
		  "records all",
	  AT(uint64_t, rec.osrt_threshold_ns), .max = NPS_LONGEST_SUMMED, .value = "10us" },
	{ NPS_OPTION_FLAG, 0, "irq", .help = "Interrupts that stop the job's threads, with --host-sys osrt",
	  AT(bool, rec.irq), .otherwise = "no, each costs a little" },

	{ NPS_OPTION_GROUP, .name = "Stacks, for flame graphs" },
	{ NPS_OPTION_FLAGS, 0, "stacks", "LIST", "Which stacks, separated by commas", .words = stack_words,
	  .value = "none" },
	{ NPS_OPTION_SET, 0, "py-stacks", "LIST",
	  "Python stacks: which lines of Python launch the work of the device, run or sleep; separated by "
	  "commas",
	  AT(uint32_t, rec.python_at), .words = python_words, .value = "none" },
	{ NPS_OPTION_NUMBER, 0, "stack-freq", "HZ", "Samples a second of each CPU",
	  AT(unsigned int, rec.stacks.hz), .min = 1, .max = 999, .value = "99" },
	{ NPS_OPTION_TIME, 0, "offcpu-min", .help = "Shorter sleeps have no stack",
	  AT(uint64_t, rec.stacks.sleep_min), .min = 1, .value = "1ms" },
	{ NPS_OPTION_WORD, 0, "unwind", .help = "How callers are found",
	  AT(enum nps_unwind, rec.stacks.unwind), .words = unwind_words, .value = "auto" },

	{ NPS_OPTION_GROUP, .name = "What to sample of the devices" },
	{ NPS_OPTION_CUSTOM, 0, "sys-devices", "job|all|N[,N]...",
	  "Devices that are sampled; job: those that it uses", .parse = devices_parse, .words = device_words,
	  .valid = "job, all or a list of numbers of devices below " STR(NPS_DEVICE_MAX),
	  .otherwise = "job; with -a: all" },
	{ NPS_OPTION_CUSTOM, 0, "aic-metrics", "NAME", "Counters of the AI cores", .parse = metric_parse,
	  .words = metric_words, .value = "None" },
	{ NPS_OPTION_NUMBER, 0, "aic-freq", "HZ", "Their samples a second",
	  AT(unsigned int, rec.devices.aic_hz), .min = 1, .max = 100, .value = "100" },
	{ NPS_OPTION_FLAG, 0, "l2-cache", .help = "Hits and victims of the L2 cache by task",
	  AT(bool, rec.devices.l2_cache) },
	{ NPS_OPTION_FLAG, 0, "sys-hardware-mem",
	  .help = "Memories of the devices: HBM, DDR, last level cache, quality of service, use by the "
		  "device and its modules",
	  AT(bool, rec.devices.memory) },
	{ NPS_OPTION_NUMBER, 0, "sys-hardware-mem-freq", "HZ", "Their samples a second",
	  AT(unsigned int, rec.devices.memory_hz), .min = 1, .max = 100, .value = "50" },
	{ NPS_OPTION_WORD, 0, "llc-profiling",
	  .help = "Which accesses of the last level cache, with --sys-hardware-mem",
	  AT(char, rec.devices.llc), .words = cache_words, .value = "read" },
	{ NPS_OPTION_FLAG, 0, "sys-interconnection",
	  .help = "Links between devices and to the host: HCCS, PCIe, between chips and dies",
	  AT(bool, rec.devices.links) },
	{ NPS_OPTION_NUMBER, 0, "sys-interconnection-freq", "HZ", "Their samples a second",
	  AT(unsigned int, rec.devices.links_hz), .min = 1, .max = 50, .value = "50" },
	{ NPS_OPTION_FLAG, 0, "sys-io", .help = "Network cards and RoCE ports of the devices",
	  AT(bool, rec.devices.io) },
	{ NPS_OPTION_NUMBER, 0, "sys-io-sampling-freq", "HZ", "Their samples a second",
	  AT(unsigned int, rec.devices.io_hz), .min = 1, .max = 100, .value = "100" },
	{ NPS_OPTION_FLAG, 0, "npu-usage",
	  .help = "What npu-smi shows of devices: utilisation, memory, temperature, power, health, memory "
		  "of processes",
	  AT(bool, rec.devices.usage) },
	{ NPS_OPTION_NUMBER, 0, "npu-usage-freq", "HZ", "Its samples a second",
	  AT(unsigned int, rec.devices.usage_hz), .min = 1, .max = 10, .value = "1" },

	{ NPS_OPTION_GROUP, .name = "What to record of the NPU's driver" },
	{ NPS_OPTION_FLAGS, 0, "driver", "LIST", "Which of its events, separated by commas",
	  .words = driver_words, .value = "none" },

	{ NPS_OPTION_GROUP, .name = "Device times" },
	{ NPS_OPTION_WORD, 0, "task-source", "SOURCE", "Where the times of device tasks come from",
	  AT(enum nps_task_source_kind, rec.task_source), .words = source_words, .value = "auto" },
	{ NPS_OPTION_FLAG, 0, "inject",
	  .help = "With -p: load the helper library into NPU jobs that run without it, for exact device "
		  "times; it stays there, asleep",
	  AT(bool, rec.inject) },

	{ NPS_OPTION_GROUP, .name = "Limits" },
	{ NPS_OPTION_PERCENT, 0, "max-overhead",
	  .help = "Share of the job's CPU time that watching may take. When it takes more, one class of "
		  "events after the other is dropped, one a second: records of system calls, all system "
		  "calls, scheduling, other calls, names, every call",
	  AT(double, rec.max_overhead), .min = 0.1, .max = 100, .otherwise = "no limit" },
	{ NPS_OPTION_SIZE, 0, "max-size",
	  .help = "The capture ends when its session directory has this many bytes, as 500M or 20G; of "
		  "several users' jobs one ends its task logs when they have as much as is left for the "
		  "others",
	  AT(uint64_t, rec.max_size), .min = 1 << 20, .otherwise = "half of what is free there" },
	{ NPS_OPTION_SIZE, 0, "max-log-rate",
	  .help = "Bytes a second that are read of all task logs; one of them, and each sampled device, "
		  "can have half: what comes faster for long is lost",
	  AT(uint64_t, rec.max_log_rate), .min = 64 << 10, .value = "256M" },
	{ NPS_OPTION_SIZE, 0, "ring-size", .help = "Ring of each CPU", AT(size_t, rec.ring_bytes),
	  .min = 4096, .max = 1 << 30, .otherwise = "8M, less where there are more than 32 CPUs" },

	{ NPS_OPTION_GROUP, .name = "Results" },
	{ NPS_OPTION_SET, 0, "export", "LIST", "What to write after the capture, separated by commas",
	  AT(unsigned int, formats), .words = format_words, .value = "text,db" },
	{ NPS_OPTION_FLAG, 0, "show-self",
	  .help = "Include threads of the helper library that npuscope has in the job", AT(bool, show_self),
	  .otherwise = "left out" },
	{ NPS_OPTION_WORD, 0, "step-source", "SOURCE", "Where the steps of the results come from",
	  AT(enum nps_step_source, steps), .words = nps_step_source_words, .value = "auto" },

	{ NPS_OPTION_GROUP, .name = "Messages" },
	{ NPS_OPTION_FLAG, 'q', "quiet", .help = "Only warnings, and the paths of the results",
	  AT(bool, quiet) },
	{ NPS_OPTION_FLAG, 'v', "verbose", .help = "More detail", AT(bool, verbose) },
	NPS_OPTION_HELP_ROWS,
};

static const struct nps_example record_examples[] = {
	{ "npuscope record -p 4242 -d 10s -o /data/captures", "A job that runs; its children are followed." },
	{ "npuscope record -o /data/captures -- python3 train.py", "A job that npuscope starts." },
	{ "npuscope record -a -d 10s", "The whole host: finds the NPU jobs, and who takes their CPU time." },
	{ "npuscope record -p 4242 -d 10s --step-marker train_step@1",
	  "Steps: entries of that function, numbered by its first argument." },
	{ "npuscope record --inject -p 4242 -d 10s", "Exact device times of a job that runs." },
	{ "npuscope record -p 4242 -d 10s --stacks cpu,offcpu", "What ran and what slept, as flame graphs." },
	{ "npuscope record -p 4242 -d 10m --max-overhead 3%",
	  "Drops detail rather than take more of the job's CPU time." },
	{ NULL },
};

const struct nps_command nps_record_command = {
	.name = "record",
	.summary = "capture a job and write its results",
	.forms = { "-p PID[,PID]...", "-a", "-- COMMAND [ARG]..." },
	.description = "Captures a job on Ascend NPUs that already runs, or one that it starts, and writes "
		       "trace_view.json, tables and databases. Results are printed on stdout as paths, one "
		       "a line.",
	.options = record_options,
	.in_order = true,
	.operands = NPS_COMPLETE_COMMAND,
	.exits = { { NPS_OK, "done" },
		   { NPS_FAILED, "failed" },
		   { NPS_USAGE, "wrong usage" },
		   { NPS_PARTIAL, "done, but something was lost or unavailable" } },
	.examples = record_examples,
};

/* --- combinations of options ------------------------------------------------------------------------- */

/* Locked memory: 8 MB per CPU if there are few, less if there are hundreds. */
static size_t default_ring(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t size = DEFAULT_RING;

	while (size > SMALLEST_RING && size * (size_t)(cpus > 0 ? cpus : 1) > DEFAULT_RINGS)
		size /= 2;
	return size;
}

static bool is_pids(const char *text)
{
	return *text && !text[strspn(text, "0123456789,")];
}

/*
 * Checks for a missing `--` before a command: 0, or the exit status after a line with the likely intention.
 */
static int command_check(const struct nps_record_args *a, const struct nps_cli_operands *rest)
{
	const char *command = rest->argv[0];

	if (!rest->argc || rest->dashes)
		return 0;
	if (is_pids(command))
		return nps_options__wrong(&nps_record_command, "'%s' is no option: did you mean -p %s?",
					  command, command);
	if (a->rec.n_pids || a->rec.all)
		return nps_options__wrong(
			&nps_record_command,
			"'%s' is no option: -p and -a start no command: leave one of them out", command);
	return 0;
}

/* Checks for contradictions. 0, or the exit status after a line. */
static int contradictions_find(const struct nps_record_args *a)
{
	const char *wrong = NULL;

	if (!!a->rec.n_pids + !!a->rec.command + a->rec.all != 1)
		wrong = "give either -p PID, -a, or a command after --: see npuscope record --help";
	else if (a->rec.inject && !a->rec.n_pids)
		wrong = "--inject needs -p PID: a command gets the helper library anyway";
	else if (a->rec.inject && a->rec.task_source == NPS_TASKS_HOST)
		wrong = "--inject is for device times, and --task-source host wants none: leave one of "
			"them out";
	else if (a->rec.irq && !(a->host_sys & NPS_HOST_SYS_OSRT))
		wrong = "--irq needs --host-sys osrt: leave one of them out";
	else if (a->rec.python_at & NPS_PY_AT_SAMPLE && !a->rec.stacks.on_cpu)
		wrong = "--py-stacks sample needs --stacks cpu: add it";
	else if (a->rec.python_at & NPS_PY_AT_OFFCPU && !a->rec.stacks.off_cpu)
		wrong = "--py-stacks offcpu needs --stacks offcpu: add it";
	return wrong ? nps_options__wrong(&nps_record_command, "%s", wrong) : 0;
}

/* Defaults that depend on other options. */
static void args_settle(struct nps_record_args *a)
{
	if (a->rec.all && !a->rec.devices.chosen)
		a->rec.devices.all = true;
	if (!a->has_host_sys)
		a->host_sys = a->rec.all		       ? NPS_HOST_SYS_SAMPLED
			      : a->rec.level == NPS_LEVEL_NONE ? 0
							       : NPS_HOST_SYS_OSRT;
	a->rec.host_requested = (a->has_host_sys && a->host_sys) || a->rec.stacks.on_cpu ||
				a->rec.stacks.off_cpu;
	a->rec.host_sys = a->host_sys & NPS_HOST_SYS_SAMPLED;
	a->rec.osrt = a->host_sys & NPS_HOST_SYS_OSRT;
	a->rec.stacks.children = a->rec.children;
	a->rec.stacks.python_at = a->rec.python_at & NPS_PY_AT_STACKS;
	a->rec.driver.requested = a->rec.driver.calls || a->rec.driver.tasks;
	a->rec.pids = a->pids;
}

bool nps_record_args__parse(struct nps_record_args *a, int argc, char **argv, int *status)
{
	struct nps_cli_operands rest;

	*a = (struct nps_record_args){
		.rec = { .sz = sizeof(a->rec), .argc = argc, .argv = argv, .ring_bytes = default_ring() }
	};
	if (!nps_options__parse(&nps_record_command, a, argc, argv, &rest, status))
		return false;
	nps_log_quiet(a->quiet);
	nps_log_verbose(a->verbose);
	*status = command_check(a, &rest);
	if (*status)
		return false;
	a->rec.command = rest.argc ? rest.argv : NULL;
	args_settle(a);
	*status = contradictions_find(a);
	if (*status)
		return false;
	if (a->rec.level == NPS_LEVEL_NONE)
		a->rec.task_source = NPS_TASKS_HOST; /* no task, no log of tasks */
	nps_mstx__settle(&a->rec.mstx);
	return true;
}
