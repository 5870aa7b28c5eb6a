/* SPDX-License-Identifier: BSD-2-Clause */
/* Libraries of PyTorch in a process of the job: which version it is, and their probes. */
#ifndef NPS_TORCH_LIBRARY_H
#define NPS_TORCH_LIBRARY_H

#include <stdbool.h>

struct nps_capture;
struct nps_process;

/* Is it one of them, and is something of it recorded? path: of a mapping. */
bool nps_torch_library__wanted(const struct nps_capture *c, const char *path);

/* Attaches to the open file. 0, or -ETIME: the process's budget is spent; other failures are reported. */
int nps_torch_library__attach(struct nps_capture *c, struct nps_process *p, int fd, const char *path);

/*
 * Bytes from the start of a node of the backward pass to its sequence number; 0: not known of that version.
 */
unsigned nps_torch_library__sequence_at(unsigned major, unsigned minor);

/* Reads "1.13" of "libtorch_cpu.so.1.13.0" or "__version__ = '2.6.0+cpu'". False: TEXT has no version. */
bool nps_torch_library__version(const char *text, unsigned *major, unsigned *minor);

#endif
