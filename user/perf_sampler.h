/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's sampler on every CPU: stacks of what runs, and what is mapped, born and executed meanwhile. A
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
	unsigned int hz; /* 0: only mappings, births and executions */
	unsigned int copy_bytes; /* of the user stack in each sample; 0: none, and no registers */
	const struct bpf_program *wanted; /* loaded; returns 0 for samples to drop */
};

/* One sample; all pointers are into the record and end with the call. */
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
	uint32_t build_id_len; /* 0: the kernel does not say */
	const char *path;
};

/* Where records go; any may come in any order as far as CPUs differ. */
struct nps_perf_sink {
	void (*sample)(void *ctx, const struct nps_perf_sample *sample);
	void (*map)(void *ctx, const struct nps_perf_map *map);
	void (*fork)(void *ctx, uint32_t parent, uint32_t child, uint64_t time);
	void (*exec)(void *ctx, uint32_t pid, uint64_t time);
	void (*lost)(void *ctx, uint64_t n); /* records for which there was no room */
	void (*begin)(
		void *ctx); /* before the first of a drain: what BPF sent of all samples that follow is there; or NULL */
	void *ctx;
};

/* Opens and starts. -errno, nothing is left then. */
int nps_perf_sampler__open(const struct nps_perf_sampler_opts *opts, struct nps_perf_sampler **out);
void nps_perf_sampler__close(struct nps_perf_sampler *s);

/* Nothing new comes after this; what is in the rings can still be taken. */
void nps_perf_sampler__stop(struct nps_perf_sampler *s);

/* Takes all that is there. */
void nps_perf_sampler__drain(struct nps_perf_sampler *s, const struct nps_perf_sink *sink);

/* Sleeps until a ring is half full, at most so long. */
void nps_perf_sampler__wait(struct nps_perf_sampler *s, int ms);

/* Parses one record of `size` bytes, for tests too: nothing in it is trusted. */
void nps_perf_sampler__parse(const void *record, size_t size, const struct nps_perf_sink *sink);

#endif
