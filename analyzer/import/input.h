/* SPDX-License-Identifier: BSD-2-Clause */
/* What a path given to `analyze` or `show` is, and what lies below it. */
#ifndef NPS_INPUT_H
#define NPS_INPUT_H

#include "base/map.h"
#include "base/vec.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum nps_input_kind {
	NPS_INPUT_SESSION, /* directory of `npuscope record` */
	NPS_INPUT_CANN, /* PROF_* directory */
	NPS_INPUT_TORCH, /* ..._ascend_pt with FRAMEWORK/, PROF_*, or both */
	NPS_INPUT_DB, /* a database of results */
	NPS_INPUT_TRACE /* a trace file: nps_inputs__find() leaves these to others */
};

struct nps_input {
	enum nps_input_kind kind;
	char path[PATH_MAX]; /* the directory, or the database itself */
	char prof[PATH_MAX]; /* TORCH: its PROF_* directory, "" if none */
	dev_t dev; /* DEV and INO: the same for all links to it */
	ino_t ino;
	bool one_of_many; /* DB: there are others in its directory */
};

/*
 * Appends what PATH is, or what the directories below it are, to INPUTS (struct nps_input), in order of
 * names. Raw data are preferred to a database beside them. 0, -ENOENT if there is nothing to analyse, or
 * another negative errno. Symbolic links are followed, none twice and not far; several links to the same
 * input count once. What cannot be read is reported and counted (base/input_file.h).
 */
int nps_inputs__find(struct nps_vec *inputs, const char *path);

#define NPS_INPUT_DEPTH 5 /* directories below PATH, as Insight searches */

/* Notes the directories above PATH: a link to one of them leads to inputs that nobody named. 0 or -ENOMEM. */
int nps_inputs__leave_out_above(struct nps_map *visited, const char *path);

/* Is PATH itself a symbolic link? */
bool nps_input__is_link(const char *path);

/*
 * Notes that the directory PATH is searched, *DEPTH levels deep: less behind a link. 1; 0 if it was
 * searched before, or does not exist; -ENOMEM.
 */
int nps_inputs__visit(struct nps_map *visited, const char *path, int *depth);

/* True if PATH begins as SQLite's files do. */
bool nps_input__is_sqlite(const char *path);

/*
 * Name of the result of INPUT, which is no session: that of its directory, with that of the database behind
 * it if there are several. 0 or -ENAMETOOLONG.
 */
int nps_input__result_name(const struct nps_input *input, char *out, size_t size);

#endif
