/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF programs of old kernels: bpf/legacy.bpf.c, loaded and attached. Only the implementation of
 * bpf_loader.h uses this.
 */
#ifndef NPS_LEGACY_LOADER_H
#define NPS_LEGACY_LOADER_H

#include <stdbool.h>

#include "attach/bpf_loader.h"

struct nps_legacy;
struct bpf_map;

/* Loads the object; SYSCALLS: system calls too. 0 or -errno. */
int nps_legacy__open(bool syscalls, struct nps_legacy **out);
void nps_legacy__close(struct nps_legacy *l); /* NULL: does nothing */

/* Attaches the programs for threads and system calls; probes of functions belong to probes.h. 0 or -errno. */
int nps_legacy__attach(struct nps_legacy *l);
void nps_legacy__detach(struct nps_legacy *l);
void nps_legacy__drop_syscalls(struct nps_legacy *l);
bool nps_legacy__has_syscalls(const struct nps_legacy *l);

/* As nps_bpf_loader__set_group() and nps_bpf_loader__entered(). */
void nps_legacy__set_group(struct nps_legacy *l, uint32_t group, uint8_t state);
uint64_t nps_legacy__entered(const struct nps_legacy *l, uint32_t group);

/* NULL: there is none of that kind or name. */
struct bpf_program *nps_legacy__program(const struct nps_legacy *l, enum nps_program which);
struct bpf_map *nps_legacy__map(const struct nps_legacy *l, const char *name);

#endif
