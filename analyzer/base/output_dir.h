/* SPDX-License-Identifier: BSD-2-Clause */
/* A result directory that appears under its name only when it is whole. */
#ifndef NPS_OUTPUT_DIR_H
#define NPS_OUTPUT_DIR_H

#include "base/unfinished.h"

struct nps_output_dir {
	int parent; /* not owned */
	int fd;
	struct nps_unfinished note;
	char temp[300], name[256];
};

/*
 * Makes an empty temporary directory beside where NAME will be in PARENT. If this process is killed, a
 * later nps_unfinished__begin() removes it. 0 or negative errno.
 */
int nps_output_dir__open(struct nps_output_dir *dir, int parent, const char *name);

/* Renames the directory to its name; a result of the same name is replaced. 0 or negative errno. */
int nps_output_dir__commit(struct nps_output_dir *dir);

/*
 * For results that belong into a directory with other things: renames each entry to its name in PARENT; an
 * entry of the same name is replaced. 0 or negative errno: then some may be new and some old, each of them
 * whole.
 */
int nps_output_dir__commit_entries(struct nps_output_dir *dir);

/* Removes everything. */
void nps_output_dir__abort(struct nps_output_dir *dir);

#endif
