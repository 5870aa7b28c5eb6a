/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a trace with everything that the writer can write: make_pftrace DIR NAME [SLICES]. */
#include "export/pftrace_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define T0 1736408883704643212ULL /* realtime ns */
#define US 1000ULL

/* A call that submits work, and the work on the device, joined by a flow. */
static void submits(struct nps_pftrace *w, uint64_t thread, uint64_t stream, uint64_t n)
{
	char name[64];

	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = T0 + i * 20 * US;

		nps_pftrace__slice(w, thread, at, 15 * US, "acl", "aclnnMatMul");
		nps_pftrace__slice(w, thread, at + 2 * US, 8 * US, "runtime", "rtKernelLaunch");
		nps_pftrace__arg_u64(w, "connection_id", i);
		nps_pftrace__flow(w, UINT64_MAX - i);
		snprintf(name, sizeof(name), "MatMulV2_%d", (int)(i % 50));
		nps_pftrace__slice(w, stream, at + 12 * US, 10 * US, "hardware", name);
		nps_pftrace__arg_u64(w, "task_id", UINT64_MAX - i);
		nps_pftrace__arg_i64(w, "delta", -(int64_t)i);
		nps_pftrace__arg_double(w, "ratio", 0.25);
		nps_pftrace__arg_text(w, "shape", "[16,1024];\"\xe7\x9f\xa9\xe9\x98\xb5\"");
		nps_pftrace__arg_pointer(w, "kernel", 0xffff800012345678);
		nps_pftrace__arg_bool(w, "aicore", true);
		nps_pftrace__flow_end(w, UINT64_MAX - i);
	}
}

/* What one row cannot show: overlaps without nesting, equal times, no duration, no end. */
static void overlaps(struct nps_pftrace *w, uint64_t track)
{
	nps_pftrace__slice(w, track, T0, 100 * US, "comm", "allReduce");
	nps_pftrace__slice(w, track, T0, 40 * US, "comm", "same begin, nested");
	nps_pftrace__slice(w, track, T0 + 30 * US, 40 * US, "comm", "overlaps the nested one");
	nps_pftrace__slice(w, track, T0 + 50 * US, 100 * US, "comm", "overlaps allReduce");
	nps_pftrace__slice(w, track, T0 + 100 * US, 0, "comm", "nothing");
	nps_pftrace__slice(w, track, T0 + 100 * US, 10 * US, "comm", "begins at an end");
	nps_pftrace__slice(w, track, T0 + 60 * US, 10 * US, "comm", "out of order");
	nps_pftrace__slice(w, track, T0 + 200 * US, NPS_PFTRACE_ENDLESS, "", "endless");
	nps_pftrace__instant(w, track, T0 + 80 * US, "mark", "step");
}

static void hostile(struct nps_pftrace *w, uint64_t thread, uint64_t after)
{
	static char text[200000];

	memset(text, 'x', sizeof(text) - 1);
	nps_pftrace__slice(w, thread, after, US, text, text);
	nps_pftrace__arg_text(w, text, text);
	nps_pftrace__slice(w, thread, after + 2 * US, US, "\"\n", "bad \xff\xfe bytes \x01");
	nps_pftrace__slice(w, thread, after + 4 * US, US, "", "");
	for (unsigned int i = 0; i < 150; i++)
		nps_pftrace__slice(w, thread, after + 10 * US + i, 1000 - 2 * i, "deep", "nested");
}

int main(int argc, char **argv)
{
	int dir = argc > 2 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1, err;
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000;
	const struct nps_pftrace_clock clocks[] = { { NPS_PFTRACE_REALTIME, T0 },
						    { NPS_PFTRACE_MONOTONIC, 1000000000000ULL },
						    { NPS_PFTRACE_BOOTTIME, 1000000500000ULL } };
	uint64_t process, thread, device, stream, counter;
	struct nps_pftrace *w;

	if (dir < 0) {
		fprintf(stderr, "make_pftrace: no folder to write to\n");
		return 2;
	}
	err = nps_pftrace__open(&w, dir, argv[2]);
	if (err) {
		fprintf(stderr, "make_pftrace: %s: %s\n", argv[2], strerror(-err));
		return 1;
	}
	nps_pftrace__clocks(w, clocks, 3);
	process = nps_pftrace__process(w, 4242, "python3 train.py", 1);
	thread = nps_pftrace__thread(w, process, 4243, "\xe8\xae\xad\xe7\xbb\x83 loop", 2);
	device = nps_pftrace__track(w, 0, "Ascend Hardware", 14);
	stream = nps_pftrace__track(w, device, "Stream 7", 7);
	counter = nps_pftrace__counter(w, device, "AI Core Freq", "MHz", 20);
	submits(w, thread, stream, n);
	overlaps(w, nps_pftrace__track(w, device, "Group 0", 8));
	hostile(w, thread, T0 + (n + 1) * 20 * US);
	for (unsigned int i = 0; i < 100; i++)
		nps_pftrace__value(w, counter, T0 + i * 50 * US, 800 + i * 0.5);
	err = nps_pftrace__close(w);
	if (err)
		fprintf(stderr, "make_pftrace: %s: %s\n", argv[2], strerror(-err));
	close(dir);
	return err != 0;
}
