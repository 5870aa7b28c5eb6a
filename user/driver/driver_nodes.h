/* SPDX-License-Identifier: BSD-2-Clause */
/* The device nodes of the NPU's driver: their names, and how to find them. */
#ifndef NPS_DRIVER_NODES_H
#define NPS_DRIVER_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "bpf_shared.h"

struct nps_node_found {
	uint32_t rdev; /* in the kernel's encoding: major << 20 | minor */
	char name[32];
	uid_t uid;
	gid_t gid;
	mode_t mode;
	struct nps_node node;
};

/* Is NAME that of a node of the driver? Fills NODE. */
bool nps_driver_node__parse(const char *name, struct nps_node *node);

/*
 * Does the major of RDEV belong to the driver? DEVICES is /proc/devices, at its beginning. Names alone
 * prove nothing: any user can name a node so.
 */
bool nps_driver_nodes__has_major(FILE *devices, uint32_t rdev);

/*
 * Calls EACH for every character device with such a name below DIR: "/dev", or that of another root. Files
 * and links with such a name do not count. Returns the number of nodes; 0 if DIR cannot be read, or is a
 * link. Only the first 4096 entries are read.
 */
unsigned int nps_driver_nodes__find(const char *dir,
				    void (*each)(void *arg, const struct nps_node_found *found), void *arg);

#endif
