/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NPU driver's own functions: which of them this kernel has, how each can be probed, and where its structs have their
 * members. Found out once; nothing is guessed: what is not known is not probed.
 */
#ifndef NPS_DRIVER_FN_H
#define NPS_DRIVER_FN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "kernel_side.h"
#include "trace_switch.h"

/* What is watched. */
enum nps_driver_kind { NPS_DRIVER_TASKS, NPS_DRIVER_COMPLETIONS, NPS_DRIVER_COPIES, NPS_DRIVER_KINDS };

/* How, best first. */
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
	char detail[192]; /* where the layout is from, or why there is none */
};

struct nps_driver_ways {
	struct nps_driver_way way[NPS_DRIVER_KINDS];
	struct nps_sqe_layout layout;
	/* The driver's tracepoints, of tasks and of completions. */
	bool traced[NPS_TRACE_SYSTEMS];
	struct nps_trace_layout trace[NPS_TRACE_SYSTEMS];
};

/* Finds out, with /proc/kallsyms, the modules' types, the table of versions and tracefs. */
void nps_driver_ways__find(const struct nps_capability *cap, struct nps_driver_ways *ways);

/* A function that is looked for, and where it is. */
struct nps_driver_symbol {
	const char *name;
	bool there;
	char module[NPS_MODULE_MAX]; /* "": in the kernel itself */
};

/*
 * Fills in where the N functions WANTED are, of which nothing is known yet; returns how many were found. SYMBOLS is what
 * /proc/kallsyms holds, read from where it is, to the last of them or to the end.
 */
size_t nps_driver_fn__look_up(FILE *symbols, struct nps_driver_symbol *wanted, size_t n);

/* The layout of the driver of that VERSION; false: it is not known. */
bool nps_driver_fn__layout(const char *version, struct nps_sqe_layout *layout);

/* The lines of `npuscope doctor`; none where there is no driver. */
void nps_driver_ways__print(const struct nps_driver_ways *ways, FILE *out);

/* Which kinds have no method, and why, into TEXT of SIZE bytes; false: all have one. */
bool nps_driver_ways__missing(const struct nps_driver_ways *ways, char *text, size_t size);

const char *nps_driver_method__name(enum nps_driver_method method);

struct nps_driver_fn;

/* Loads and attaches what WAYS has; what then cannot be attached loses its method, with the reason. *OUT NULL: nothing could. */
int nps_driver_fn__start(struct nps_kernel_side *k, struct nps_driver_ways *ways, size_t ring_bytes,
			 struct nps_driver_fn **out);
/* The capture ended at NOW, CLOCK_MONOTONIC ns: what returns later gives no record. NULL is fine, as for all that follow. */
void nps_driver_fn__end(struct nps_driver_fn *f, uint64_t now);
/* Gives up the switches of the tracepoints that it follows, which are the caller's to switch off then. NULL: there are none. */
struct nps_trace_switch *nps_driver_fn__take_switch(struct nps_driver_fn *f);
void nps_driver_fn__detach(struct nps_driver_fn *f);

/* Calls without a record, beyond what the kernel side counted, since the kernel left a probe out; complete after the detach. */
uint64_t nps_driver_fn__lost(const struct nps_driver_fn *f, enum nps_driver_kind kind);
/* True where the kernel does not count how often it left the kind's probe out: kprobes before 6.7, tracepoints. */
bool nps_driver_fn__uncounted(const struct nps_driver_fn *f, enum nps_driver_kind kind);
/* True where a tracepoint is not followed on some devices, which was told. */
bool nps_driver_fn__partly(const struct nps_driver_fn *f);
/* What was loaded; NULL for NULL. */
struct bpf_object;
const struct bpf_object *nps_driver_fn__object(const struct nps_driver_fn *f);

void nps_driver_fn__free(struct nps_driver_fn *f);

/* Adds "functions" to the session's "driver". */
void nps_driver_ways__describe(const struct nps_driver_ways *ways, cJSON *driver);

#endif
