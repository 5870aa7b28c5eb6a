/* SPDX-License-Identifier: BSD-2-Clause */
/* The device nodes of the NPU's driver: which names they have, and where they are. */
#ifndef NPS_DRIVER_NODES_H
#define NPS_DRIVER_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "bpf_shared.h"

struct nps_node_found {
	uint32_t rdev; /* as the kernel has it: major << 20 | minor */
	char name[32];
	uid_t uid;
	gid_t gid;
	mode_t mode;
	struct nps_node node;
};

/* Is NAME that of a node of the driver? Fills NODE. */
bool nps_driver_node__parse(const char *name, struct nps_node *node);

/*
 * Has the node of number RDEV a major that the driver registered? DEVICES is what /proc/devices holds, read from its
 * beginning. A node's name anybody can give.
 */
bool nps_driver_nodes__has_major(FILE *devices, uint32_t rdev);

/*
 * Calls EACH for every character device below DIR that has such a name: "/dev", or that of another root. A name that
 * stands for something else (a file, a link) is none. Returns how many there are; a DIR that cannot be read, or is a link, has
 * none. The first 4096 entries are read.
 */
unsigned int nps_driver_nodes__find(const char *dir,
				    void (*each)(void *arg, const struct nps_node_found *found), void *arg);

#endif
