/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "log.h"

#define DEFAULT_RING (8UL << 20)
#define DEFAULT_RINGS (256UL << 20) /* of all CPUs together, on large hosts */
#define SMALLEST_RING (512UL << 10)
#define SMALLEST_SESSION (1UL << 20)
#define SMALLEST_LOG_RATE (64UL << 10)
#define DEFAULT_THRESHOLD 10000UL /* ns: what blocks takes longer, what only asks the kernel takes less */

enum {
	OPT_LEVEL = 256,
	OPT_TASK_SOURCE,
	OPT_EXPORT,
	OPT_RING,
	OPT_MARKER,
	OPT_HOST_SYS,
	OPT_HOST_SYS_FREQ,
	OPT_OSRT_THRESHOLD,
	OPT_NO_CHILDREN,
	OPT_MAX_OVERHEAD,
	OPT_MAX_SIZE,
	OPT_MAX_LOG_RATE,
	OPT_IRQ,
	OPT_STACKS,
	OPT_STACK_FREQ,
	OPT_OFFCPU_MIN,
	OPT_UNWIND,
	OPT_SHAPES,
	OPT_KEEP_POLLED,
	OPT_MSTX,
	OPT_MSTX_INCLUDE,
	OPT_MSTX_EXCLUDE,
	OPT_INJECT,
	OPT_DRIVER,
	OPT_SHOW_SELF,
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID]...", 0, "Attach to these processes and their children; may be given again",
	  0 },
	{ "duration", 'd', "TIME", 0, "How long: 10s, 500ms, 1m (default: until Ctrl-C, or the job ends)",
	  0 },
	{ "output", 'o', "DIR", 0, "Where the session directory is created (default: the current directory)",
	  0 },
	{ "task-source", OPT_TASK_SOURCE, "auto|profiler|agent|host", 0,
	  "Device times: from what the job's own profiler reads, from the helper library in the job, or "
	  "bounds from what the host sees (default: auto, the best there is)",
	  0 },
	{ "inject", OPT_INJECT, 0, 0,
	  "With -p: load the helper library into NPU jobs that run without it, for exact device times; it "
	  "stays "
	  "there, asleep (default: no)",
	  0 },
	{ "step-marker", OPT_MARKER, "FUNC[@N]", 0,
	  "A step begins when the job enters this function; its Nth integer argument is the step's number "
	  "(default: no steps)",
	  0 },
	{ "all", 'a', 0, 0,
	  "Watch the whole host: its counters, and every process that uses an NPU now or later; needs no NPU "
	  "job",
	  0 },
	{ "level", OPT_LEVEL, "none|0|1|2", 0,
	  "Detail, as the vendor's profiler levels: marks of mstx alone; what runs on the device, and its "
	  "names; every call; the runtime's layer too (default: 1)",
	  0 },
	{ "irq", OPT_IRQ, 0, 0,
	  "Interrupts that stop the job's threads, with --host-sys osrt (default: no, each costs a little)",
	  0 },
	{ "driver", OPT_DRIVER, "calls,tasks|none", 0,
	  "What to record of the NPU's driver: system calls on its device nodes; tasks, completions and "
	  "copies that pass through it (default: none)",
	  0 },
	{ "host-sys", OPT_HOST_SYS, "LIST|none", 0,
	  "What to record of the host: cpu,mem,disk,network are sampled, osrt is system calls and scheduling "
	  "(default: osrt; with -a: cpu,mem,disk,network; with --level none: none)",
	  0 },
	{ "host-sys-freq", OPT_HOST_SYS_FREQ, "HZ", 0, "Samples a second, 1 to 1000 (default: 50)", 0 },
	{ "osrt-threshold", OPT_OSRT_THRESHOLD, "TIME", 0,
	  "System calls shorter than this are counted and summed up, not recorded one by one: 10us, 1ms, "
	  "up to 4s; 0 records all (default: 10us)",
	  0 },
	{ "keep-polled", OPT_KEEP_POLLED, 0, 0,
	  "Also functions that ask for a state, that the job calls more than 2000 times a second, and that "
	  "the kernel has to "
	  "single-step (default: they are not recorded any more once they are)",
	  0 },
	{ "record-shapes", OPT_SHAPES, 0, 0,
	  "Shapes, data types and formats of operators' tensors (default: no)", 0 },
	{ "export", OPT_EXPORT, "text,db|none", 0, "What to write after the capture (default: text,db)", 0 },
	{ "ring-size", OPT_RING, "SIZE", 0,
	  "Ring of each CPU: 512K, 8M, 64M (default: 8M, less when there are more than 32 CPUs)", 0 },
	{ "max-overhead", OPT_MAX_OVERHEAD, "SHARE", 0,
	  "Watching may take this much of the job's CPU time, 0.1% to 100%: when it takes more, detail is "
	  "given up, a sort a second: records of system calls, all of them, scheduling, other calls, names, "
	  "every call (default: no limit)",
	  0 },
	{ "max-size", OPT_MAX_SIZE, "SIZE", 0,
	  "The capture ends when its session directory has this many bytes: 500M, 20G (default: half of what "
	  "is free "
	  "there); of several users' jobs one ends its task logs when they have as much as is left for the "
	  "others",
	  0 },
	{ "max-log-rate", OPT_MAX_LOG_RATE, "SIZE", 0,
	  "Bytes a second that are read of all task logs; one of them, and each sampled device, can have "
	  "half: what "
	  "comes faster for long is lost (default: 256M)",
	  0 },
	{ "mstx", OPT_MSTX, "on|off", OPTION_ARG_OPTIONAL, "Marks and ranges that the job sets (default: on)",
	  0 },
	{ "mstx-domain-include", OPT_MSTX_INCLUDE, "NAME[,NAME]...", 0,
	  "Only marks of these domains; those without one are in \"default\" (default: all)", 0 },
	{ "mstx-domain-exclude", OPT_MSTX_EXCLUDE, "NAME[,NAME]...", 0,
	  "No marks of these domains; without effect where some are included (default: none)", 0 },
	{ "no-children", OPT_NO_CHILDREN, 0, 0, "Do not follow children", 0 },
	{ "stacks", OPT_STACKS, "cpu,offcpu|none", 0,
	  "Stacks of what runs, sampled by the clock, and of what sleeps, for flame graphs (default: none)",
	  0 },
	{ "stack-freq", OPT_STACK_FREQ, "HZ", 0, "Samples a second, 1 to 999 (default: 99)", 0 },
	{ "offcpu-min", OPT_OFFCPU_MIN, "TIME", 0, "Shorter sleeps have no stack (default: 1ms)", 0 },
	{ "unwind", OPT_UNWIND, "auto|fp|dwarf", 0,
	  "Callers by frame pointers alone; or by .eh_frame, for which up to 16 KiB (dwarf: 32) of the stack "
	  "are copied with each sample (default: auto, the better of both)",
	  0 },
	NPS_DEVICE_OPTIONS,
	{ "show-self", OPT_SHOW_SELF, 0, 0,
	  "In results, threads of the helper library that npuscope has in the job, too (default: left out)",
	  0 },
	{ "quiet", 'q', 0, 0, "Only complaints and the paths of the results", 0 },
	{ "verbose", 'v', 0, 0, "More detail", 0 },
	{ 0 },
};

static int parse_pids(struct nps_record_args *a, const char *text)
{
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

/* Number with a unit from `units` ("name factor" pairs); 0 for nonsense. */
static uint64_t parse_scaled(const char *text, const char *const *units, const uint64_t *factors, int n)
{
	char *end;
	double v = strtod(text, &end);

	for (int i = 0; i < n; i++)
		if (end != text && strcmp(end, units[i]) == 0 && v > 0 && v * (double)factors[i] < 1e18)
			return (uint64_t)(v * (double)factors[i] + 0.5);
	return 0;
}

static uint64_t parse_time(const char *text)
{
	static const char *const units[] = { "", "s", "ms", "us", "m", "h" };
	static const uint64_t ns[] = { 1000000000, 1000000000, 1000000, 1000, 60000000000, 3600000000000 };

	return parse_scaled(text, units, ns, 6);
}

static uint64_t parse_size(const char *text)
{
	static const char *const units[] = { "", "K", "M", "G" };
	static const uint64_t bytes[] = { 1, 1 << 10, 1 << 20, 1 << 30 };

	return parse_scaled(text, units, bytes, 4);
}

/* "3%" or "3"; 0 for nonsense. */
static double parse_percent(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	return end != text && (!*end || !strcmp(end, "%")) && v >= 0.1 && v <= 100 ? v : 0;
}

static int parse_word(const char *text, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	return -EINVAL;
}

/* "none", or words of a list, commas between; each sets its flag, and clears that of those that are not there. */
static int parse_list(const char *text, const char *const *words, bool *const *flags, int n)
{
	char copy[64], *save = NULL;
	int found = 0;

	for (int i = 0; i < n; i++)
		*flags[i] = false;
	if (strcmp(text, "none") == 0)
		return 0;
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		int i = parse_word(word, words, n);

		if (i < 0)
			return i;
		*flags[i] = true;
		found++;
	}
	return found ? 0 : -EINVAL;
}

static int parse_export(struct nps_record_args *a, const char *text)
{
	static const char *const words[] = { "text", "db" };

	return parse_list(text, words, (bool *const[]){ &a->text, &a->db }, 2);
}

static int parse_stacks(struct nps_stacks_opts *o, const char *text)
{
	static const char *const words[] = { "cpu", "offcpu" };

	return parse_list(text, words, (bool *const[]){ &o->on_cpu, &o->off_cpu }, 2);
}

static int parse_freq(struct nps_stacks_opts *o, const char *text)
{
	char *end;
	unsigned long hz = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || hz < 1 || hz > 999)
		return -EINVAL;
	o->hz = (unsigned int)hz;
	return 0;
}

static int parse_marker(struct nps_record_args *a, const char *text)
{
	const char *at = strrchr(text, '@');
	size_t len = at ? (size_t)(at - text) : strlen(text);

	if (!len || len >= sizeof(a->marker))
		return -EINVAL;
	if (at && (at[1] < '1' || at[1] > '4' || at[2]))
		return -EINVAL;
	memcpy(a->marker, text, len);
	a->marker[len] = '\0';
	a->rec.step_marker = a->marker;
	a->rec.step_arg = at ? at[1] - '0' : 0;
	return 0;
}

static int parse_hz(const char *text, unsigned int *hz)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < 1 || v > NPS_HOST_SYS_MOST_HZ)
		return -EINVAL;
	*hz = (unsigned int)v;
	return 0;
}

static const char *option_name(int key)
{
	for (size_t i = 0; options[i].name; i++)
		if (options[i].key == key)
			return options[i].name;
	return "";
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const sources[] = { "auto", "host", "agent", "profiler" },
				 *const levels[] = { "none", "0", "1", "2" },
				 *const unwinds[] = { "auto", "fp", "dwarf" },
				 *const on_off[] = { "on", "off" };
	struct nps_record_args *a = state->input;
	int v = 0;

	switch (key) {
	case 'p':
		v = parse_pids(a, arg);
		break;
	case 'd':
		a->rec.duration_ns = parse_time(arg);
		v = a->rec.duration_ns ? 0 : -EINVAL;
		break;
	case 'o':
		a->rec.out = arg;
		v = *arg ? 0 : -EINVAL;
		break;
	case OPT_SHOW_SELF:
		a->show_self = true;
		break;
	case 'q':
		a->quiet = true;
		nps_log_quiet(1);
		break;
	case 'v':
		nps_log_verbose(1);
		break;
	case OPT_TASK_SOURCE:
		v = parse_word(arg, sources, 4);
		a->rec.task_source = v;
		break;
	case OPT_MARKER:
		v = parse_marker(a, arg);
		break;
	case OPT_HOST_SYS:
		v = nps_host_sys__parse(arg, &a->host_sys);
		a->host_sys_given = true;
		break;
	case OPT_HOST_SYS_FREQ:
		v = parse_hz(arg, &a->rec.host_sys_hz);
		break;
	case 'a':
		a->rec.all = true;
		break;
	case OPT_OSRT_THRESHOLD:
		a->rec.osrt_threshold_ns = parse_time(arg);
		v = (!a->rec.osrt_threshold_ns && strcmp(arg, "0")) ||
				    a->rec.osrt_threshold_ns > NPS_LONGEST_SUMMED
			    ? -EINVAL
			    : 0;
		break;
	case OPT_LEVEL:
		v = parse_word(arg, levels, 4);
		a->rec.level = NPS_LEVEL_NONE + v;
		break;
	case OPT_EXPORT:
		v = parse_export(a, arg);
		break;
	case OPT_RING:
		a->rec.ring_bytes = parse_size(arg);
		v = a->rec.ring_bytes >= 4096 && a->rec.ring_bytes <= 1UL << 30 ? 0 : -EINVAL;
		break;
	case OPT_MAX_SIZE:
		a->rec.max_size = parse_size(arg);
		v = a->rec.max_size >= SMALLEST_SESSION ? 0 : -EINVAL;
		break;
	case OPT_MAX_LOG_RATE:
		a->rec.max_log_rate = parse_size(arg);
		v = a->rec.max_log_rate >= SMALLEST_LOG_RATE ? 0 : -EINVAL;
		break;
	case OPT_MAX_OVERHEAD:
		a->rec.max_overhead = parse_percent(arg);
		v = a->rec.max_overhead > 0 ? 0 : -EINVAL;
		break;
	case OPT_IRQ:
		a->rec.irq = true;
		break;
	case OPT_INJECT:
		a->rec.inject = true;
		break;
	case OPT_DRIVER:
		v = nps_driver_opts__parse(&a->rec.driver, arg);
		break;
	case OPT_KEEP_POLLED:
		a->rec.keep_polled = true;
		break;
	case OPT_SHAPES:
		a->rec.shapes = true;
		break;
	case OPT_MSTX:
		v = arg ? parse_word(arg, on_off, 2) : 0;
		a->rec.mstx.off = v == 1;
		break;
	case OPT_MSTX_INCLUDE:
		v = nps_mstx__parse(&a->rec.mstx.include, arg);
		break;
	case OPT_MSTX_EXCLUDE:
		v = nps_mstx__parse(&a->rec.mstx.exclude, arg);
		break;
	case OPT_NO_CHILDREN:
		a->rec.children = a->rec.stacks.children = false;
		break;
	case OPT_STACKS:
		v = parse_stacks(&a->rec.stacks, arg);
		break;
	case OPT_STACK_FREQ:
		v = parse_freq(&a->rec.stacks, arg);
		break;
	case OPT_OFFCPU_MIN:
		a->rec.stacks.sleep_min = parse_time(arg);
		v = a->rec.stacks.sleep_min ? 0 : -EINVAL;
		break;
	case OPT_UNWIND:
		v = parse_word(arg, unwinds, 3);
		a->rec.stacks.unwind = v;
		break;
	case ARGP_KEY_ARGS:
		a->rec.command = state->argv + state->next;
		break;
	case ARGP_KEY_END:
		if (a->rec.all && !a->rec.devices.chosen)
			a->rec.devices.all = true;
		if (!a->host_sys_given)
			a->host_sys = a->rec.all		       ? NPS_HOST_SYS_SAMPLED
				      : a->rec.level == NPS_LEVEL_NONE ? 0
								       : NPS_HOST_SYS_OSRT;
		a->rec.host_asked = (a->host_sys_given && a->host_sys) || a->rec.stacks.on_cpu ||
				    a->rec.stacks.off_cpu;
		if (!!a->rec.n_pids + !!a->rec.command + a->rec.all != 1)
			argp_failure(state, NPS_USAGE, 0,
				     "give either -p PID, -a, or a command after --: see --help");
		if (a->rec.inject && !a->rec.n_pids)
			argp_failure(state, NPS_USAGE, 0,
				     "--inject needs -p PID: a command gets the helper library anyway");
		if (a->rec.inject && a->rec.task_source == NPS_TASKS_HOST)
			argp_failure(
				state, NPS_USAGE, 0,
				"--inject is for device times, and --task-source host wants none: leave one "
				"of them out");
		if (a->rec.irq && !(a->host_sys & NPS_HOST_SYS_OSRT))
			argp_failure(state, NPS_USAGE, 0,
				     "--irq needs --host-sys osrt: leave one of them out");
		break;
	default:
		if (key < NPS_DEVICE_KEY || key >= NPS_DEVICE_KEY_END)
			return ARGP_ERR_UNKNOWN;
		v = nps_device_options__take(&a->rec.devices, key, arg);
	}
	if (v < 0)
		argp_failure(state, NPS_USAGE, 0, "--%s '%s': not a valid value: see --help",
			     option_name(key), arg);
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-p PID\n-a\n-- COMMAND [ARG]...",
	.doc = "Captures a job on Ascend NPUs that already runs, or one that it starts, and writes "
	       "trace_view.json, tables and databases.\v"
	       "Results are printed on stdout as paths, one a line. Exit status: 0 done; 1 failed; 2 wrong "
	       "usage; "
	       "3 done, but something was lost or unavailable.",
};

/* Locked memory: 8 MB a CPU where there are few, less where there are hundreds. */
static size_t default_ring(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t size = DEFAULT_RING;

	while (size > SMALLEST_RING && size * (size_t)(cpus > 0 ? cpus : 1) > DEFAULT_RINGS)
		size /= 2;
	return size;
}

void nps_record_args__parse(struct nps_record_args *a, int argc, char **argv)
{
	*a = (struct nps_record_args){
		.rec = { .sz = sizeof(a->rec),
			 .argc = argc,
			 .argv = argv,
			 .out = ".",
			 .level = 1,
			 .ring_bytes = default_ring(),
			 .host_sys_hz = NPS_HOST_SYS_HZ,
			 .children = true,
			 .osrt_threshold_ns = DEFAULT_THRESHOLD,
			 .max_log_rate = NPS_LOG_RATE,
			 .stacks = { .hz = 99, .sleep_min = 1000000, .children = true },
			 .devices = NPS_DEVICE_OPTS_DEFAULT,
			 .driver = { 0 } },
		.text = true,
		.db = true
	};
	argp_err_exit_status = NPS_USAGE;
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, a))
		exit(NPS_USAGE);
	a->rec.pids = a->pids;
	if (a->rec.level == NPS_LEVEL_NONE)
		a->rec.task_source = NPS_TASKS_HOST; /* no task, no log of tasks */
	a->rec.host_sys = a->host_sys & NPS_HOST_SYS_SAMPLED;
	a->rec.osrt = a->host_sys & NPS_HOST_SYS_OSRT;
	nps_mstx__settle(&a->rec.mstx);
}
