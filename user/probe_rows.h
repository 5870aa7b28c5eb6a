/* SPDX-License-Identifier: BSD-2-Clause */
/* The catalogue as the collector needs it: which functions to look for in which library. */
#ifndef NPS_PROBE_ROWS_H
#define NPS_PROBE_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "catalog.h"

struct nps_probe_row {
	uint16_t id;
	const char *symbol;
	uint32_t libs; /* NPS_LIB_* */
	uint32_t flags; /* NPS_P_* */
	uint8_t layer; /* enum nps_layer */
	uint8_t call; /* enum nps_call */
	struct nps_slot slot[4];
};

/* What is given up first when watching costs too much is last. */
enum nps_tier {
	NPS_TIER_CORE, /* launches, submissions, collectives, synchronisation, steps and marks */
	NPS_TIER_NAMES, /* what names a kernel */
	NPS_TIER_DETAIL, /* everything else */
	NPS_TIERS
};

enum nps_tier nps_probe_rows__tier(const struct nps_probe_row *row);

/* The lowest --level at which it is attached, as the vendor's: NPS_LEVEL_NONE (marks alone), 0 (what runs on the device
 * and its names), 1 (every call), 2 (the runtime's layer too). */
#define NPS_LEVEL_NONE (-1)
int nps_probe_rows__level(const struct nps_probe_row *row);

/* Is it attached at LEVEL, with --record-shapes or without? */
bool nps_probe_rows__wanted(const struct nps_probe_row *row, int level, bool shapes);

/* The arguments that are read when it is entered: bit n - 1 for argument n. */
uint32_t nps_probe_rows__arguments(const struct nps_probe_row *row);

/* Is something behind one of them read then? */
bool nps_probe_rows__reads_memory(const struct nps_probe_row *row);

/*
 * Is its return probed? That of a submission costs a trap for each kernel that is launched, and tells only how long it took and
 * whether it failed: not but for SUBMISSIONS.
 */
bool nps_probe_rows__returns(const struct nps_probe_row *row, bool submissions);

/* Does it do nothing but ask for a state, so that jobs call it in a loop until that changes? */
bool nps_probe_rows__is_polled(const struct nps_probe_row *row);

/* The row of probe ID, NULL if there is none. */
const struct nps_probe_row *nps_probe_rows__get(unsigned id);

/* The row of the function SYMBOL, NULL if it is not probed. */
const struct nps_probe_row *nps_probe_rows__find(const char *symbol);

/* NPS_LIB_* of a library by its base name, which may end with " (deleted)"; 0: it carries no probes. */
uint32_t nps_probe_rows__library(const char *basename);

/* The i-th library that carries probes, NULL behind the last. */
const char *nps_probe_rows__soname(size_t i);

/*
 * The catalogue, a line each, tabs between columns: symbol, libraries, layer, level from which it is attached
 * (shapes: with --record-shapes), how,
 * what is read of each argument (name@argument, with .offset where it is behind a pointer; result: what the call gave
 * back).
 */
void nps_probe_rows__print(FILE *out);

#endif
