/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NPU driver's own functions: which of them this kernel has, how each can be probed, and the layout of
 * its structs. Found out once; nothing is guessed: without a known layout nothing is probed.
 */
#ifndef NPS_DRIVER_FN_H
#define NPS_DRIVER_FN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "attach/bpf_loader.h"
#include "sources/driver/trace_switch.h"

/* What is recorded. */
enum nps_driver_kind { NPS_DRIVER_TASKS, NPS_DRIVER_COMPLETIONS, NPS_DRIVER_COPIES, NPS_DRIVER_KINDS };

/* How it is probed, worst first. */
enum nps_driver_method {
	NPS_DRIVER_BY_NONE,
	NPS_DRIVER_BY_TRACEPOINT,
	NPS_DRIVER_BY_KPROBE,
	NPS_DRIVER_BY_FEXIT
};

#define NPS_MODULE_MAX 56 /* bytes of a module's name with its NUL: MODULE_NAME_LEN of the kernel */

struct nps_driver_way {
	enum nps_driver_method method;
	char function[48], module[NPS_MODULE_MAX];
	char detail[192]; /* source of the layout, or why there is none */
};

struct nps_driver_ways {
	struct nps_driver_way way[NPS_DRIVER_KINDS];
	struct nps_sqe_layout layout;
	/* The driver's tracepoints, of tasks and of completions. */
	bool traced[NPS_TRACE_SYSTEMS];
	struct nps_trace_layout trace[NPS_TRACE_SYSTEMS];
};

/* Finds out from /proc/kallsyms, the modules' types, the table of versions and tracefs. */
void nps_driver_ways__find(const struct nps_capability *cap, struct nps_driver_ways *ways);

/* A function to search, and the module that has it. */
struct nps_driver_symbol {
	const char *name;
	bool there;
	char module[NPS_MODULE_MAX]; /* "": in the kernel itself */
};

/*
 * Completes the N functions WANTED, all still unknown; returns how many were found. SYMBOLS is
 * /proc/kallsyms, read from its current position up to the last of them, or to the end.
 */
size_t nps_driver_fn__resolve(FILE *symbols, struct nps_driver_symbol *wanted, size_t n);

/* The layout of the driver's VERSION; false: unknown. */
bool nps_driver_fn__layout(const char *version, struct nps_sqe_layout *layout);

/* Prints the lines of `npuscope doctor`; none if there is no driver. */
void nps_driver_ways__print(const struct nps_driver_ways *ways, FILE *out);

/* Writes the kinds that have no method, and why, into TEXT of SIZE bytes; false: all have one. */
bool nps_driver_ways__missing(const struct nps_driver_ways *ways, char *text, size_t size);

const char *nps_driver_method__name(enum nps_driver_method method);

struct nps_driver_fn;

/*
 * Loads and attaches what WAYS has; a kind that cannot be attached loses
 * its method, and gets the reason. *OUT NULL: none could.
 */
int nps_driver_fn__start(struct nps_bpf_loader *k, struct nps_driver_ways *ways, size_t ring_bytes,
			 struct nps_driver_fn **out);
/*
 * The capture ended at NOW, CLOCK_MONOTONIC ns: later returns are not
 * recorded. NULL is allowed, here and below.
 */
void nps_driver_fn__end(struct nps_driver_fn *f, uint64_t now);
/* Returns the switches of the attached tracepoints, which the caller has to switch off. NULL: none. */
struct nps_trace_switch *nps_driver_fn__release_switch(struct nps_driver_fn *f);
void nps_driver_fn__detach(struct nps_driver_fn *f);

/*
 * Calls without a record because the kernel skipped the probe, beyond those that BPF programs count;
 * complete after the detach.
 */
uint64_t nps_driver_fn__lost(const struct nps_driver_fn *f, enum nps_driver_kind kind);
/* True if the kernel does not count skipped runs of the kind's probe: kprobes before 6.7, tracepoints. */
bool nps_driver_fn__uncounted(const struct nps_driver_fn *f, enum nps_driver_kind kind);
/* True if a tracepoint does not cover some devices, which was reported. */
bool nps_driver_fn__partly(const struct nps_driver_fn *f);
/* The loaded object; NULL for NULL. */
struct bpf_object;
const struct bpf_object *nps_driver_fn__object(const struct nps_driver_fn *f);

void nps_driver_fn__free(struct nps_driver_fn *f);

/* Adds "functions" to the session's "driver". */
void nps_driver_ways__describe(const struct nps_driver_ways *ways, cJSON *driver);

#endif
