/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User as whom the code of the host's driver library runs: one with no
 * rights except those to open its device nodes.
 */
#ifndef NPS_DEVICE_USER_H
#define NPS_DEVICE_USER_H

#include <stddef.h>
#include <sys/types.h>

#include "driver/driver_nodes.h"

#define NPS_DEVICE_USER_GROUPS 32

struct nps_device_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[NPS_DEVICE_USER_GROUPS];
	size_t n_groups;
	char root_alone[32]; /* a node that only root and its group may open; "": none */
};

/*
 * Chooses by the nodes below DIR ("/dev"): nobody, in the groups that may open them; if only their owner
 * may, that owner, but never root.
 */
void nps_device_user__choose(const char *dir, struct nps_device_user *user);

/* The same for one node at a time; USER is initialised as nobody. */
void nps_device_user__add_node(struct nps_device_user *user, const struct nps_node_found *node);

#endif
