/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of probes.h: probes.c knows the files, probe_operators.c finds the probes of operators,
 * probes_link.c attaches what was found in a file.
 */
#ifndef NPS_PROBES_IMPL_H
#define NPS_PROBES_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/link_set.h"
#include "attach/probed_files.h"
#include "attach/probes.h"

struct nps_probes {
	struct nps_bpf_loader *k;
	int level;
	bool shapes;
	uint32_t left_out; /* enum nps_lib */
	bool with_caches; /* queries of the job's cache of executors at every level but none */
	struct nps_operators *operators;
	struct nps_probed_file *files;
	struct nps_links links;
	enum nps_tier shed; /* this tier and those above are not attached */
	unsigned refused; /* probes that the kernel refused */
	bool keeps_polled, whole_submissions;
	unsigned groups; /* number of the newest group with one probe only */
	uint64_t turned; /* CLOCK_MONOTONIC */
};

/* A file whose probes are collected. */
struct nps_probe_match {
	struct nps_elf *elf;
	struct nps_budget *budget;
	struct nps_probes *p;
	uint32_t lib;
	bool second; /* attach to second phases of operators */
	struct nps_exit_finder *exits; /* NULL: ends are not probed */
	struct nps_torch_probes *torch;
	struct nps_probed_file *file;
};

/* Attaches what COLLECT finds in a file that is not known yet. As nps_probes__attach_file(). */
int nps_probes__attach_new(struct nps_probes *p, int fd, const char *path, struct nps_probe_match *m,
			   int (*collect)(struct nps_probe_match *m));

/*
 * The number of the operator of that name, which is copied if it is new; -E2BIG: there are too many of this
 * process, or of all; -ENOMEM.
 */
int nps_probes__operator(struct nps_probe_match *m, const char *name);

/*
 * Adds probes in front of the returns of FN, for row ID. number: of the operator. 0, also if it has none that
 * are safe (*n: their number); -ENOMEM, -ETIME.
 */
int nps_probes__add_ends(struct nps_probe_match *m, const struct nps_elf_function *fn, uint16_t id,
			 uint16_t number, unsigned *n);

enum nps_tier nps_attached__tier(const struct nps_attached *a);

/* Name of the function for messages. */
const char *nps_probes__name(const struct nps_probes *p, const struct nps_attached *a);

/* The kernel needs a path; this one leads to the open file even if it was deleted. */
void nps_probes__fd_path(int fd, char *buf, size_t size);

/* Attaches probes of one file: all of them or none, except those marked in REFUSED. 0 or a negative errno. */
int nps_probes__link(struct nps_probes *p, const char *path, const struct nps_attached *probes, unsigned n,
		     bool *refused);

/* Attaches the collected probes of a file, without those that the kernel refuses. Their number, or -errno. */
int nps_probes__link_file(struct nps_probes *p, int fd, struct nps_probe_match *m);

#endif
