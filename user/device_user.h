/* SPDX-License-Identifier: BSD-2-Clause */
/* As whom the code of the host's driver library runs: a user with no rights but those that its device nodes ask for. */
#ifndef NPS_DEVICE_USER_H
#define NPS_DEVICE_USER_H

#include <stddef.h>
#include <sys/types.h>

#include "driver_nodes.h"

#define NPS_DEVICE_USER_GROUPS 32

struct nps_device_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[NPS_DEVICE_USER_GROUPS];
	size_t n_groups;
	char root_alone[32]; /* a node that root and its group alone may open; "": none */
};

/*
 * Chooses by the nodes below DIR ("/dev"): nobody, in the groups that may open them; where their owner alone may, as that owner, but
 * never as root.
 */
void nps_device_user__choose(const char *dir, struct nps_device_user *user);

/* The same, one node after another, of a USER that begins as nobody. */
void nps_device_user__add_node(struct nps_device_user *user, const struct nps_node_found *node);

#endif
