/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of every subcommand are sound, and what the options of `record` and `doctor` mean. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/cmd.h"
#include "cli/commands.h"
#include "cli/nearest.h"
#include "cli/option_value.h"
#include "cli/show.h"
#include "export/formats.h"
#include "sources/host/host_sys.h"

static const struct nps_command *const commands[] = {
#define COMMAND(name, unwritten) &nps_##name##_command,
	NPS_COMMANDS(COMMAND)
#undef COMMAND
};

static union {
	struct nps_record_args record;
	struct nps_analyze_opts analyze;
	struct nps_show_args show;
	struct nps_doctor_args doctor;
} opts;

static size_t size_of(const struct nps_option *option)
{
	switch (option->type) {
	case NPS_OPTION_FLAG:
	case NPS_OPTION_CLEAR:
		return sizeof(bool);
	case NPS_OPTION_TIME:
	case NPS_OPTION_SIZE:
		return sizeof(uint64_t);
	case NPS_OPTION_PERCENT:
		return sizeof(double);
	case NPS_OPTION_SET:
		return sizeof(unsigned int);
	case NPS_OPTION_TEXT:
		return sizeof(char *);
	default:
		return option->size;
	}
}

static void check_words(const struct nps_option *option)
{
	char why[NPS_OPTION_TEXT_MAX];
	size_t n = 0;

	for (; option->words[n].name; n++) {
		const struct nps_option_word *word = &option->words[n];

		assert_int_equal(!word->help, !option->words->help);
		memset(&opts, 0, sizeof(opts));
		if (!nps_option__set(option, &opts, word->name, why))
			fail_msg("--%s %s%s", option->name, word->name, why);
		if (option->type == NPS_OPTION_FLAGS && word->value)
			assert_true(((bool *)&opts)[word->offset]);
	}
	assert_in_range(n, 2, 64);
}

static void check_row(const struct nps_command *command, const struct nps_option *option)
{
	char text[NPS_OPTION_TEXT_MAX];

	assert_non_null(option->name);
	if (option->type == NPS_OPTION_GROUP)
		return;
	assert_in_range(strlen(option->name), 2, NPS_NEAREST_NAME);
	for (const char *c = option->name; *c; c++)
		assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '-');
	assert_true(!option->letter || isalpha((unsigned char)option->letter));
	assert_true(option->help && *option->help && option->help[strlen(option->help) - 1] != '.');
	assert_int_equal(option->size, size_of(option));
	assert_true(option->type != NPS_OPTION_CUSTOM || (option->parse && (option->valid || option->words)));
	for (const struct nps_option *other = command->options; other < option; other++)
		assert_true(strcmp(option->name, other->name) &&
			    (!option->letter || option->letter != other->letter));
	nps_option__valid(option, text);
	assert_true(strlen(text) < NPS_OPTION_TEXT_MAX - 100); /* whole, also in a message */
	nps_option__note(option, text);
	assert_true(strlen(text) < NPS_OPTION_TEXT_MAX - 100);
	if (option->words)
		check_words(option);
}

static void rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(commands); i++) {
		const struct nps_command *command = commands[i];
		char *argv[] = { (char *)command->name, NULL };
		struct nps_cli_operands rest;
		int status = -1;

		assert_int_equal(command->options->type, NPS_OPTION_GROUP);
		for (const struct nps_option *option = command->options; option->type; option++)
			check_row(command, option);
		memset(&opts, 0, sizeof(opts));
		assert_true(
			nps_options__parse(command, &opts, 1, argv, &rest, &status)); /* defaults are valid */
		assert_true(command->forms[0] && command->description && command->exits[0].meaning);
		assert_true(command->examples && command->examples->line);
	}
}

static char messages[4096];
static int status;

/* Parses with PARSE, blanks between arguments. The line on stderr is in MESSAGES, without its end. */
static bool run(const char *args, bool (*parse)(int argc, char **argv))
{
	static char copy[1024], *argv[32];
	FILE *file = tmpfile();
	char *save = NULL;
	int argc = 0;
	bool go_on;

	assert_non_null(file);
	snprintf(copy, sizeof(copy), "npuscope %s", args);
	for (char *arg = strtok_r(copy, " ", &save); arg && argc < 31; arg = strtok_r(NULL, " ", &save))
		argv[argc++] = arg;
	argv[argc] = NULL;
	status = -1;
	nps_msg_into(file);
	go_on = parse(argc, argv);
	nps_msg_into(NULL);
	rewind(file);
	memset(messages, 0, sizeof(messages));
	assert_true(fread(messages, 1, sizeof(messages) - 1, file) < sizeof(messages) - 1);
	fclose(file);
	messages[strcspn(messages, "\n")] = '\0';
	return go_on;
}

static bool record_parse(int argc, char **argv)
{
	return nps_record_args__parse(&opts.record, argc, argv, &status);
}

static bool doctor_parse(int argc, char **argv)
{
	return nps_doctor_args__parse(&opts.doctor, argc, argv, &status);
}

static const struct nps_record_args *record(const char *args)
{
	if (!run(args, record_parse))
		fail_msg("%s: %s", args, messages);
	return &opts.record;
}

static void refused(const char *args, const char *message)
{
	assert_false(run(args, record_parse));
	assert_int_equal(status, NPS_USAGE);
	assert_string_equal(messages, message);
}

/* Those that captures have had since there are any. */
static void record_defaults(void **state)
{
	const struct nps_record_args *a = record("-p 1");
	const struct nps_device_opts *d = &a->rec.devices;

	(void)state;
	assert_string_equal(a->rec.out, ".");
	assert_int_equal(a->rec.level, 1);
	assert_int_equal(a->rec.task_source, NPS_TASKS_AUTO);
	assert_int_equal(a->rec.host_sys_hz, 50);
	assert_int_equal(a->rec.osrt_threshold_ns, 10000);
	assert_int_equal(a->rec.max_log_rate, NPS_LOG_RATE);
	assert_int_equal(a->rec.max_size, 0);
	assert_in_range(a->rec.ring_bytes, 512 << 10, 8 << 20);
	assert_true(a->rec.max_overhead == 0 && !a->rec.duration_ns);
	assert_true(a->rec.children && a->rec.stacks.children && a->rec.osrt && !a->rec.host_sys);
	assert_true(!a->rec.all && !a->rec.inject && !a->rec.irq && !a->rec.shapes && !a->rec.keep_polled &&
		    !a->rec.host_requested && !a->rec.mstx.off);
	assert_true(!a->rec.stacks.on_cpu && !a->rec.stacks.off_cpu && !a->rec.ops);
	assert_int_equal(a->rec.stacks.hz, 99);
	assert_int_equal(a->rec.stacks.sleep_min, 1000000);
	assert_int_equal(a->rec.stacks.unwind, NPS_UNWIND_AUTO);
	assert_true(!a->rec.driver.calls && !a->rec.driver.tasks && !a->rec.driver.requested);
	assert_true(!d->io && !d->links && !d->memory && !d->l2_cache && !d->usage && !d->all && !d->chosen);
	assert_int_equal(d->metric, NPS_AIC_NONE);
	assert_int_equal(d->llc, 'r');
	assert_int_equal(d->io_hz, 100);
	assert_int_equal(d->links_hz, 50);
	assert_int_equal(d->memory_hz, 50);
	assert_int_equal(d->aic_hz, 100);
	assert_int_equal(d->usage_hz, 1);
	assert_int_equal(a->formats, NPS_FORMAT_TEXT | NPS_FORMAT_DB);
	assert_int_equal(a->rec.n_pids, 1);
	assert_int_equal(a->rec.pids[0], 1);
	assert_null(a->rec.command);
	assert_true(!a->quiet && !a->verbose && !a->show_self);
}

static void record_values(void **state)
{
	const struct nps_record_args *a = record("-p 1,2 -p 3 --no-children --level none --step-marker f@2 "
						 "--driver tasks --stacks cpu --mstx=off --export db");

	(void)state;
	assert_int_equal(a->rec.n_pids, 3);
	assert_int_equal(a->rec.pids[2], 3);
	assert_true(!a->rec.children && !a->rec.stacks.children);
	assert_int_equal(a->rec.level, NPS_LEVEL_NONE);
	assert_int_equal(a->rec.task_source, NPS_TASKS_HOST);
	assert_string_equal(a->rec.step_marker, "f");
	assert_int_equal(a->rec.step_arg, 2);
	assert_null(a->rec.step_label);
	assert_true(a->rec.driver.tasks && !a->rec.driver.calls && a->rec.driver.requested);
	assert_true(a->rec.stacks.on_cpu && !a->rec.stacks.off_cpu && a->rec.host_requested);
	assert_true(a->rec.mstx.off && !a->rec.osrt && !a->rec.host_sys);
	assert_int_equal(a->formats, NPS_FORMAT_DB);
	a = record("-a --sys-devices 3,5 --aic-metrics ACL_AICORE_MEMORY_UB --llc-profiling write");
	assert_true(a->rec.devices.chosen && !a->rec.devices.all && a->rec.devices.listed == 0x28);
	assert_int_equal(a->rec.devices.metric, NPS_AIC_MEMORY_UB);
	assert_int_equal(a->rec.devices.llc, 'w');
	assert_int_equal(a->rec.host_sys, NPS_HOST_SYS_SAMPLED);
	assert_true(!a->rec.osrt);
	assert_true(record("-a")->rec.devices.all);
	a = record("-a --step-marker label:f@2");
	assert_string_equal(a->rec.step_label, "label:f@2");
	assert_true(!a->rec.step_marker && !a->rec.step_arg);
	assert_int_equal(record("-a --ops all")->rec.ops, NPS_OPS_ALL);
	assert_int_equal(record("-a --ops npu")->rec.ops, NPS_OPS_NPU);
	assert_int_equal(record("-a --ops none")->rec.ops, NPS_OPS_NONE);
	a = record("-q -- prog -p 5 --level 9");
	assert_true(a->quiet && !a->rec.n_pids);
	assert_string_equal(a->rec.command[0], "prog");
	assert_string_equal(a->rec.command[4], "9");
	assert_null(a->rec.command[5]);
	assert_string_equal(record("-- 4242")->rec.command[0], "4242");
}

/* --host-sys has the names that sessions have. */
static void parts_of_the_host(void **state)
{
	char line[64];

	(void)state;
	for (unsigned int i = 0; i < NPS_HOST_SYS_PARTS; i++) {
		snprintf(line, sizeof(line), "-p 1 --host-sys %s", nps_host_sys__part(i));
		assert_int_equal(record(line)->host_sys, 1U << i);
		assert_true(opts.record.rec.host_requested);
	}
	assert_int_equal(record("-p 1 --host-sys osrt,cpu,cpu")->host_sys,
			 NPS_HOST_SYS_OSRT | NPS_HOST_SYS_CPU);
	assert_int_equal(record("-p 1 --host-sys none")->host_sys, 0);
	assert_false(opts.record.rec.host_requested);
}

/* As perf record has it: -- is needed only where the command begins with a dash. */
static void command(void **state)
{
	(void)state;
	assert_string_equal(record("-d 1s ./train.py --lr 1")->rec.command[0], "./train.py");
	assert_string_equal(opts.record.rec.command[1], "--lr");
	assert_string_equal(record("-d 1s -- ./train.py -d 2s")->rec.command[0], "./train.py");
	assert_int_equal(opts.record.rec.duration_ns, 1000000000);
	assert_string_equal(record("-- 4242")->rec.command[0], "4242");
}

static void what_was_meant(void **state)
{
	(void)state;
	refused("4242", "npuscope: record: '4242' is no option: did you mean -p 4242?");
	refused("-p 1 4242", "npuscope: record: '4242' is no option: did you mean -p 4242?");
	refused("4242,4243", "npuscope: record: '4242,4243' is no option: did you mean -p 4242,4243?");
	refused("-a train",
		"npuscope: record: 'train' is no option: -p and -a start no command: leave one of "
		"them out");
	refused("", "npuscope: record: give either -p PID, -a, or a command after --: see npuscope record "
		    "--help");
	refused("--", "npuscope: record: give either -p PID, -a, or a command after --: see npuscope record "
		      "--help");
	refused("-a -p 1", "npuscope: record: give either -p PID, -a, or a command after --: see npuscope "
			   "record --help");
	refused("-p 1 -- true", "npuscope: record: give either -p PID, -a, or a command after --: see "
				"npuscope record --help");
	refused("--inject -a",
		"npuscope: record: --inject needs -p PID: a command gets the helper library anyway");
	refused("-p 1 --irq --host-sys cpu",
		"npuscope: record: --irq needs --host-sys osrt: leave one of them out");
	refused("-p 1 --inject --task-source host", "npuscope: record: --inject is for device times, and "
						    "--task-source host wants none: leave one of "
						    "them out");
}

static void doctor_values(void **state)
{
	(void)state;
	assert_true(run("", doctor_parse));
	assert_true(!opts.doctor.probes && !opts.doctor.estimate && !opts.doctor.target);
	assert_true(run("--probes lib.so", doctor_parse));
	assert_true(opts.doctor.probes);
	assert_string_equal(opts.doctor.target, "lib.so");
	assert_true(run("--estimate launches=2000,locks=1", doctor_parse));
	assert_true(opts.doctor.estimate && opts.doctor.rates.launches == 2000 &&
		    opts.doctor.rates.locks == 1 && opts.doctor.rates.calls == 0 &&
		    opts.doctor.rates.seconds == 60);
	assert_false(run("42", doctor_parse));
	assert_string_equal(messages, "npuscope: doctor: '42' is not expected: did you mean --probes 42?");
	assert_false(run("--probes a b", doctor_parse));
	assert_int_equal(status, NPS_USAGE);
	assert_false(run("--estimate time=0", doctor_parse));
	assert_int_equal(status, NPS_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),		 cmocka_unit_test(record_defaults),
		cmocka_unit_test(record_values), cmocka_unit_test(parts_of_the_host),
		cmocka_unit_test(command),	 cmocka_unit_test(what_was_meant),
		cmocka_unit_test(doctor_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
