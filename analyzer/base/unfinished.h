/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes about results that are being written, so that a later analysis finds what a killed one left,
 * whatever its -o was: a file in the user's state directory ($XDG_STATE_HOME or ~/.local/state,
 * npuscope/unfinished) for each temporary directory, by the path of the input. Without a state directory
 * there are no notes; then the next analysis into the same directory removes what is left.
 */
#ifndef NPS_UNFINISHED_H
#define NPS_UNFINISHED_H

#include <stdint.h>

/* A temporary directory of this program is known by its name, and unfinished while nobody has it locked. */
#define NPS_UNFINISHED_PREFIX ".npuscope-"
#define NPS_UNFINISHED_SUFFIX ".tmp"

/* The id of this host in names: 8 characters, from its name. */
const char *nps_unfinished__host(void);

struct nps_unfinished {
	int dirfd; /* of the notes; -1: there is none */
	char name[64];
};

/* Notes that TEMP in PARENT (a descriptor) belongs to the input that nps_unfinished__begin() got. */
void nps_unfinished__note(struct nps_unfinished *note, int parent, const char *temp);

/* Removes the note. */
void nps_unfinished__done(struct nps_unfinished *note);

/*
 * Before the analysis of INPUT, a path, into the directory OUTPUT: removes the temporary directories that
 * killed analyses of INPUT left anywhere, and those that any analysis left in OUTPUT or in its directories
 * BELOW, a list that NULL ends. Only directories that this program made as this user and that no living
 * process has locked are removed; symbolic links are not followed.
 */
void nps_unfinished__begin(const char *input, int output, const char *const *below);

/* Removes NAME in PARENT if it is such a directory. */
void nps_unfinished__remove(int parent, const char *name);

/* Removes NAME in PARENT and what is in it. Symbolic links are removed, not followed. Allocates nothing. */
void nps_remove_tree(int parent, const char *name);

#endif
