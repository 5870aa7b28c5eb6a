/* SPDX-License-Identifier: BSD-2-Clause */
/* gen-cann: writes a PROF_* directory of raw data, and what a reader must find in it. */
#define _GNU_SOURCE
#include "gen.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, COUNT64, FLAG, TEXT_OPTION, MHZ };

struct option_row {
	const char *name;
	enum kind kind;
	size_t offset;
	uint64_t min, max;
	const char *help;
};

#define AT(field) offsetof(struct opts, field)
#define EVERY 1000000000

static const struct option_row rows[] = {
	{ "tasks", COUNT64, AT(tasks), 1, 1000000000000, "compute kernels (1000)" },
	{ "seed", COUNT64, AT(seed), 0, UINT64_MAX, "other data of the same shape (1)" },
	{ "comm-every", NUMBER, AT(comm_every), 0, EVERY,
	  "one collective operation per K kernels (20; 0: none)" },
	{ "comm-tasks", NUMBER, AT(comm_tasks), 1, 64, "tasks of a collective operation (4)" },
	{ "comm-ffts", FLAG, AT(comm_ffts), 0, 0, "a collective operation is one FFTS+ task" },
	{ "memcpy-every", NUMBER, AT(memcpy_every), 0, EVERY, "one copy per K kernels (0: none)" },
	{ "event-every", NUMBER, AT(event_every), 0, EVERY,
	  "one event record or wait per K kernels (0: none)" },
	{ "aicpu-every", NUMBER, AT(aicpu_every), 0, EVERY, "each Kth kernel runs on the AI CPU (0: none)" },
	{ "bare-every", NUMBER, AT(bare_every), 0, EVERY, "each Kth kernel has no NODE span (0: none)" },
	{ "ffts-every", NUMBER, AT(ffts_every), 0, EVERY,
	  "each Kth kernel is a MIX kernel or FFTS+ graph (0: none)" },
	{ "ffts-parent", FLAG, AT(ffts_parent), 0, 0, "an FFTS+ graph also logs its own queue entry" },
	{ "mstx-every", NUMBER, AT(mstx_every), 0, EVERY, "one mstx range or mark per K kernels (0: none)" },
	{ "model", NUMBER, AT(model_runs), 0, 1000000, "execute a loaded graph of 8 kernels R times (0)" },
	{ "step-trace", FLAG, AT(step_trace), 0, 0, "steps, and the parts of graph executions" },
	{ "streams", NUMBER, AT(streams), 1, MAX_STREAMS, "compute streams of a device (8)" },
	{ "threads", NUMBER, AT(threads), 1, MAX_THREADS, "host threads (4)" },
	{ "devices", NUMBER, AT(devices), 1, MAX_DEVICES, "devices (1)" },
	{ "level", NUMBER, AT(level), 0, 2, "profiling level (2)" },
	{ "pmu", FLAG, AT(pmu), 0, 0, "AI core counters of every compute task" },
	{ "flip", FLAG, AT(flip), 0, 0, "most tasks on one stream, whose task ids wrap at least 3 times" },
	{ "chip", NUMBER, AT(chip), 5, 15, "5 or 15 (5)" },
	{ "host-counter", MHZ, AT(host_khz), 10000, 10000000,
	  "host times in counter ticks (100), or none: raw ns" },
	{ "device-mhz", MHZ, AT(device_khz), 1000, 1000000, "device counter (50)" },
	{ "nasty-names", FLAG, AT(nasty), 0, 0, "names that break careless writers" },
	{ "shapes", FLAG, AT(shapes), 0, 0, "0 to 13 tensors of 0 to 8 dimensions" },
	{ "unique-names", FLAG, AT(unique), 0, 0, "each kernel has its own name" },
	{ "mangle", FLAG, AT(mangle), 0, 0, "device logs with stream and task bits exchanged" },
	{ "straddle", FLAG, AT(straddle), 0, 0, "host slices end inside records too" },
	{ "no-done", FLAG, AT(no_done), 0, 0, "neither .done files nor end_info" },
	{ "pid", NUMBER, AT(pid), 1, 99999999, "pid of the traced process (4242)" },
	{ "cann-version", TEXT_OPTION, AT(cann), 0, 0, "version in info.json (9.1.0)" },
	{ "slice-kib", NUMBER, AT(slice_kib), 4, 1 << 20, "size of a slice (2048)" },
	{ "truth", TEXT_OPTION, AT(truth), 0, 0, "write what must be found, as JSON lines" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int usage(FILE *out, int status)
{
	fprintf(out, "usage: gen-cann [options] OUT_DIR\n");
	for (size_t i = 0; i < ROWS; i++)
		fprintf(out, "  --%-14s %-4s %s\n", rows[i].name,
			rows[i].kind == FLAG	      ? ""
			: rows[i].kind == TEXT_OPTION ? "TEXT"
						      : "N",
			rows[i].help);
	return status;
}

static bool bad(const struct option_row *row, const char *value)
{
	fprintf(stderr, "gen-cann: --%s %s: not a value for this option\n", row->name, value);
	return false;
}

static bool parse_mhz(const char *value, uint64_t *khz)
{
	char *end;
	double mhz = strtod(value, &end);

	if (strcmp(value, "none") == 0) {
		*khz = 0;
		return true;
	}
	if (end == value || *end || !isfinite(mhz) || mhz < 0 || mhz > 1e9)
		return false;
	*khz = (uint64_t)llround(mhz * 1000);
	return *khz != 0;
}

static bool set_option(struct opts *o, const struct option_row *row, const char *value)
{
	uint8_t *at = (uint8_t *)o + row->offset;
	uint64_t number;
	char *end;

	switch (row->kind) {
	case FLAG:
		*(bool *)at = true;
		return true;
	case TEXT_OPTION:
		*(const char **)at = value;
		return true;
	case MHZ:
		if (!parse_mhz(value, &number) ||
		    (number ? number < row->min || number > row->max : row->offset != AT(host_khz)))
			return bad(row, value);
		*(uint64_t *)at = number;
		return true;
	case NUMBER:
	case COUNT64:
		break;
	}
	errno = 0;
	number = strtoull(value, &end, 10);
	if (end == value || *end || errno || *value == '-' || number < row->min || number > row->max)
		return bad(row, value);
	if (row->kind == COUNT64)
		*(uint64_t *)at = number;
	else
		*(uint32_t *)at = (uint32_t)number;
	return true;
}

static bool check(const struct opts *o)
{
	if (o->chip != 5 && o->chip != 15) {
		fprintf(stderr, "gen-cann: --chip is 5 or 15\n");
		return false;
	}
	if (o->chip == 15 && (o->ffts_every || o->comm_ffts || o->mangle || o->flip)) {
		fprintf(stderr, "gen-cann: chip 15 has neither FFTS+ nor 16-bit task ids\n");
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct gen g = { .o = { .tasks = 1000,
				.seed = 1,
				.comm_every = 20,
				.comm_tasks = 4,
				.streams = 8,
				.threads = 4,
				.devices = 1,
				.level = 2,
				.chip = 5,
				.pid = 4242,
				.slice_kib = 2048,
				.host_khz = 100000,
				.device_khz = 50000,
				.cann = "9.1.0" } };
	struct option longs[ROWS + 2] = { { "help", no_argument, NULL, 'h' } };
	int which = 0, c;

	for (size_t i = 0; i < ROWS; i++)
		longs[i + 1] = (struct option){ rows[i].name,
						rows[i].kind == FLAG ? no_argument : required_argument, NULL,
						0 };
	while ((c = getopt_long(argc, argv, "h", longs, &which)) != -1) {
		if (c == 'h')
			return usage(stdout, 0);
		if (c != 0)
			return usage(stderr, 2);
		if (!set_option(&g.o, &rows[which - 1], optarg))
			return 2;
	}
	if (optind != argc - 1)
		return usage(stderr, 2);
	g.o.out = argv[optind];
	if (!check(&g.o))
		return 2;
	slices_of(g.o.slice_kib);
	gen_run(&g);
	printf("%s\n", g.prof);
	return fflush(stdout) == 0 ? 0 : 1;
}
