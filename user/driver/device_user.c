/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_user.h"

#include <stdio.h>
#include <sys/stat.h>

#define NOBODY 65534

static bool may_both(mode_t mode, mode_t read, mode_t write)
{
	return mode & read && mode & write;
}

static void user_add_group(struct nps_device_user *user, gid_t gid)
{
	for (size_t i = 0; i < user->n_groups; i++)
		if (user->groups[i] == gid)
			return;
	if (user->n_groups < NPS_DEVICE_USER_GROUPS)
		user->groups[user->n_groups++] = gid;
}

void nps_device_user__add_node(struct nps_device_user *user, const struct nps_node_found *node)
{
	if (may_both(node->mode, S_IROTH, S_IWOTH))
		return;
	if (may_both(node->mode, S_IRGRP, S_IWGRP) && node->gid)
		user_add_group(user, node->gid);
	else if (may_both(node->mode, S_IRUSR, S_IWUSR) && node->uid)
		user->uid = node->uid;
	else
		snprintf(user->root_alone, sizeof(user->root_alone), "%s", node->name);
}

static void user_add_found(void *arg, const struct nps_node_found *node)
{
	nps_device_user__add_node(arg, node);
}

void nps_device_user__choose(const char *dir, struct nps_device_user *user)
{
	*user = (struct nps_device_user){ .uid = NOBODY, .gid = NOBODY };
	nps_driver_nodes__find(dir, user_add_found, user);
}
