/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's sampler on every CPU: stacks of running threads, and mappings, forks and execs meanwhile. A
 * BPF program decides whose samples are kept; the other records are of the whole host.
 */
#ifndef NPS_PERF_SAMPLER_H
#define NPS_PERF_SAMPLER_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program;
struct nps_perf_sampler;

struct nps_perf_sampler_opts {
	unsigned int hz; /* 0: only mappings, forks and execs */
	unsigned int copy_bytes; /* of the user stack in each sample; 0: none, and no registers */
	const struct bpf_program *wanted; /* loaded; returns 0 for samples to drop */
};

/* One sample; all pointers are into the record, and valid during the call. */
struct nps_perf_sample {
	uint32_t pid, tid, cpu;
	uint64_t time; /* CLOCK_MONOTONIC ns */
	const uint64_t *chain; /* with PERF_CONTEXT_* marks */
	uint64_t n_chain;
	uint64_t regs[33]; /* in DWARF's order */
	uint32_t n_regs; /* 0: none */
	const uint8_t *stack;
	uint32_t n_stack; /* bytes */
};

/* PERF_RECORD_MMAP2 of code. */
struct nps_perf_map {
	uint32_t pid;
	uint64_t time, start, end, offset;
	const uint8_t *build_id;
	uint32_t build_id_len; /* 0: unknown */
	const char *path;
};

/* Receives the records; those of different CPUs come in no particular order. */
struct nps_perf_sink {
	void (*sample)(void *ctx, const struct nps_perf_sample *sample);
	void (*map)(void *ctx, const struct nps_perf_map *map);
	void (*fork)(void *ctx, uint32_t parent, uint32_t child, uint64_t time);
	void (*exec)(void *ctx, uint32_t pid, uint64_t time);
	void (*lost)(void *ctx, uint64_t n); /* records lost because the ring was full */
	/* Before the first record of a drain; all that BPF sent of its samples has arrived. May be NULL. */
	void (*begin)(void *ctx);
	void *ctx;
};

/* Opens and starts the sampler. 0, or -errno with nothing left open. */
int nps_perf_sampler__open(const struct nps_perf_sampler_opts *opts, struct nps_perf_sampler **out);
void nps_perf_sampler__close(struct nps_perf_sampler *s);

/* Nothing new is recorded after this; records in the rings can still be drained. */
void nps_perf_sampler__stop(struct nps_perf_sampler *s);

/* Passes all records in the rings to SINK. */
void nps_perf_sampler__drain(struct nps_perf_sampler *s, const struct nps_perf_sink *sink);

/* Sleeps until a ring is half full, for up to MS. */
void nps_perf_sampler__wait(struct nps_perf_sampler *s, int ms);

/* Parses one record of `size` bytes, for tests too: nothing in it is trusted. */
void nps_perf_sampler__parse(const void *record, size_t size, const struct nps_perf_sink *sink);

#endif
