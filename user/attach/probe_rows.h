/* SPDX-License-Identifier: BSD-2-Clause */
/* The catalogue as rows: which functions to probe in which library. */
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

/* Tiers in which probes are dropped when watching costs too much, the last one first. */
enum nps_tier {
	NPS_TIER_CORE, /* launches, submissions, collectives, synchronisation, steps and marks */
	NPS_TIER_NAMES, /* calls that name kernels */
	NPS_TIER_DETAIL, /* everything else */
	NPS_TIERS
};

enum nps_tier nps_probe_rows__tier(const struct nps_probe_row *row);

/*
 * The lowest --level at which it is attached, with the vendor's meaning: NPS_LEVEL_NONE (marks only), 0
 * (what runs on the device and its names), 1 (every call), 2 (also the runtime's layer).
 */
#define NPS_LEVEL_NONE (-1)
int nps_probe_rows__level(const struct nps_probe_row *row);

/* Is it attached at LEVEL, with --record-shapes or without? */
bool nps_probe_rows__wanted(const struct nps_probe_row *row, int level, bool shapes);

/* The arguments that are read at its entry: bit n - 1 for argument n. */
uint32_t nps_probe_rows__arguments(const struct nps_probe_row *row);

/* Is memory that one of them points to read then? */
bool nps_probe_rows__reads_memory(const struct nps_probe_row *row);

/*
 * Is its return probed? That of a submission costs a trap per launched kernel, and only shows its duration
 * and whether it failed, so only with SUBMISSIONS.
 */
bool nps_probe_rows__returns(const struct nps_probe_row *row, bool submissions);

/* Is it one of those of labels of PyTorch? */
bool nps_probe_rows__is_label(const struct nps_probe_row *row);

/* Does it only query a state, so that jobs call it in a loop until the state changes? */
bool nps_probe_rows__is_polled(const struct nps_probe_row *row);

/* The row of probe ID, NULL if there is none. */
const struct nps_probe_row *nps_probe_rows__get(unsigned id);

/* The row of the function SYMBOL, NULL if it is not probed. */
const struct nps_probe_row *nps_probe_rows__find(const char *symbol);

/*
 * NPS_LIB_* of a library by its base name, which may end with " (deleted)"; 0: it has no functions to probe.
 */
uint32_t nps_probe_rows__library(const char *basename);

/* The i-th library with functions to probe, NULL after the last. */
const char *nps_probe_rows__soname(size_t i);

/*
 * Prints the catalogue, a line each, tabs between columns: symbol, libraries, layer, lowest level (or the
 * option that it is attached with: shapes, ops, memory), how it is probed, what is read of each argument
 * (name@argument, with .offset if it is in memory; result: the return value).
 */
void nps_probe_rows__print(FILE *out);

#endif
