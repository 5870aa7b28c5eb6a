/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disks and network interfaces whose counters are sampled: those of the
 * host and of the job's network namespaces.
 */
#ifndef NPS_HOST_DEVICES_H
#define NPS_HOST_DEVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sources/host/host_out.h"

struct nps_host_devices;

/* 0 or -ENOMEM. */
int nps_host_devices__new(struct nps_host_out *out, struct nps_host_devices **devices);
void nps_host_devices__free(struct nps_host_devices *devices);

/* Also samples the interfaces of the network namespace of process `pid`. False: there is no such process. */
bool nps_host_devices__add_namespace(struct nps_host_devices *d, pid_t pid);

/* Take one sample of each. `text` is a buffer of `size` bytes for the contents of /proc files. */
void nps_host_devices__disks(struct nps_host_devices *d, char *text, size_t size);
void nps_host_devices__cards(struct nps_host_devices *d, char *text, size_t size);

/* Devices for which there was no room, and namespaces that could not be read. */
uint64_t nps_host_devices__missed(const struct nps_host_devices *d);

/* Reads an open file of /proc from its beginning into TEXT. Number of bytes or -errno. */
ssize_t nps_read_proc(int fd, char *text, size_t size);

#endif
