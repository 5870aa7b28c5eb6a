/* SPDX-License-Identifier: BSD-2-Clause */
/* Mappings of a process, from /proc/PID/maps, and the files behind them. */
#ifndef NPS_PROC_MAPS_H
#define NPS_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct nps_budget;

struct nps_mapping {
	uint64_t start, end, offset;
	uint64_t dev, ino; /* as in maps */
	bool exec, write, shared;
	char *path; /* as the process sees it, " (deleted)" kept; never NULL */
};

struct nps_maps {
	struct nps_mapping *v;
	size_t n, path_bytes;
	bool cut; /* there are more of them than are kept: NPS_BUDGET_MAPPINGS, NPS_BUDGET_PATHS */
};

/*
 * Reads the mappings that have a file behind them. BUDGET: of the process, NULL: none. -errno; -ESRCH when
 * the process is gone, -ETIME when the budget is spent.
 */
int nps_maps__read(pid_t pid, struct nps_budget *budget, struct nps_maps *maps);

/* The same with those that have none: [vdso], and //anon for what has no name. */
int nps_maps__read_all(pid_t pid, struct nps_budget *budget, struct nps_maps *maps);
/* The same from an open file of that form, ALL or those of files. Lines that make no sense are left out. */
int nps_maps__parse(FILE *f, bool all, struct nps_budget *budget, struct nps_maps *maps);
void nps_maps__free(struct nps_maps *maps);

/*
 * Opens the file of a mapping whatever became of its name: through map_files, which
 * also works for deleted files, else through the process' root directory.
 * `flags` as for open(2). Returns a descriptor or -errno; -EINVAL if it is no regular file, which is not opened.
 */
int nps_mapping__open(pid_t pid, const struct nps_mapping *m, int flags);

/*
 * Opens a regular file by its absolute path as a process sees it: links, absolute ones too, are followed
 * inside its root. Nothing but a regular file is opened: opening a device can have effects. pid 0: our own root.
 * Returns a descriptor or -errno.
 */
int nps_open_in_root(pid_t pid, const char *path);

/* Last component of a path. */
const char *nps_basename(const char *path);

#endif
