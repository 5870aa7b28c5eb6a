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
	bool cut; /* there are more mappings than are kept: NPS_BUDGET_MAPPINGS, NPS_BUDGET_PATHS */
};

/*
 * Reads the mappings of files. BUDGET: of the process, NULL: none. 0 or -errno; -ESRCH: the process has
 * exited, -ETIME: the budget is spent. Free *MAPS with nps_maps__free().
 */
int nps_maps__read(pid_t pid, struct nps_budget *budget, struct nps_maps *maps);

/* The same with mappings without a file: [vdso], and //anon for those without a name. */
int nps_maps__read_all(pid_t pid, struct nps_budget *budget, struct nps_maps *maps);
/* The same from an open file of that format; ALL: also those without a file. Invalid lines are skipped. */
int nps_maps__parse(FILE *f, bool all, struct nps_budget *budget, struct nps_maps *maps);
void nps_maps__free(struct nps_maps *maps);

/*
 * Opens the file of a mapping even if it was renamed or deleted: through map_files, else through the
 * process's root directory. `flags` as for open(2). Returns a descriptor or -errno; -EINVAL if it is no
 * regular file, which is not opened.
 */
int nps_mapping__open(pid_t pid, const struct nps_mapping *m, int flags);

/*
 * Opens a regular file by its absolute path as a process sees it: links, absolute ones too, are followed
 * inside its root. Other files are not opened, because opening a device can have effects. pid 0: our own
 * root. Returns a descriptor or -errno.
 */
int nps_open_in_root(pid_t pid, const char *path);

/* Last component of a path. */
const char *nps_basename(const char *path);

#endif
