/* SPDX-License-Identifier: BSD-2-Clause */
/* As which user the worker for the host's driver runs. */
#include "driver/device_user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/stat.h>

#define NOBODY 65534

static struct nps_device_user user;

static void user_begin(void)
{
	user = (struct nps_device_user){ .uid = NOBODY, .gid = NOBODY };
}

static void node_add(const char *node, mode_t mode, uid_t uid, gid_t gid)
{
	struct nps_node_found found = { .uid = uid, .gid = gid, .mode = S_IFCHR | mode };

	snprintf(found.name, sizeof(found.name), "%s", node);
	nps_device_user__add_node(&user, &found);
}

static void assert_user(uid_t uid, size_t n_groups, const char *root_alone)
{
	assert_int_equal(user.uid, uid);
	assert_int_equal(user.gid, NOBODY);
	assert_int_equal(user.n_groups, n_groups);
	assert_string_equal(user.root_alone, root_alone);
}

static void nodes_that_anybody_opens(void **state)
{
	(void)state;
	user_begin();
	node_add("davinci0", 0666, 0, 0);
	node_add("davinci1", 0666, 1000, 1000);
	node_add("davinci2", 0606, 0, 1000);
	assert_user(NOBODY, 0, "");
	nps_device_user__choose("/nonexistent", &user);
	assert_user(NOBODY, 0, "");
}

static void nodes_of_groups(void **state)
{
	static const gid_t groups[] = { 1003, 1001, 1003, 1002, 1001, 1002 };

	(void)state;
	user_begin();
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		node_add("davinci0", 0660, i % 2 ? 0 : 1000, groups[i]);
	assert_user(NOBODY, 3, "");
	assert_int_equal(user.groups[0], 1003);
	assert_int_equal(user.groups[1], 1001);
	assert_int_equal(user.groups[2], 1002);
}

/* Reading alone, or writing alone, does not open a device. */
static void nodes_of_their_owner(void **state)
{
	(void)state;
	user_begin();
	node_add("davinci0", 0600, 1000, 1001);
	assert_user(1000, 0, "");
	user_begin();
	node_add("davinci0", 0644, 1000, 1001);
	assert_user(1000, 0, "");
	user_begin();
	node_add("davinci0", 0622, 1000, 1001);
	assert_user(1000, 0, "");
	node_add("davinci1", 0660, 0, 1001);
	node_add("davinci2", 0666, 0, 0);
	assert_user(1000, 1, "");
	assert_int_equal(user.groups[0], 1001);
}

static void nodes_of_root(void **state)
{
	static const mode_t modes[] = { 0600, 0640, 0644, 0620, 0000 };

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		user_begin();
		node_add("davinci_manager", modes[i], 0, 1001);
		assert_user(NOBODY, 0, "davinci_manager");
	}
	user_begin();
	node_add("davinci0", 0400, 1000, 1001); /* its owner may not write either */
	assert_user(NOBODY, 0, "davinci0");
	node_add("davinci1", 0600, 1000, 1001); /* one of both can be had */
	assert_user(1000, 0, "davinci0");
}

/* Being in it opens more than the device. */
static void nodes_of_the_group_of_root(void **state)
{
	(void)state;
	user_begin();
	node_add("davinci0", 0660, 0, 0);
	assert_user(NOBODY, 0, "davinci0");
	user_begin();
	node_add("davinci0", 0660, 1000, 0);
	assert_user(1000, 0, "");
}

static void more_groups_than_there_is_room(void **state)
{
	(void)state;
	user_begin();
	for (gid_t i = 0; i < NPS_DEVICE_USER_GROUPS + 5; i++)
		node_add("davinci0", 0660, 0, 1000 + i);
	node_add("davinci0", 0660, 0, 1000);
	assert_user(NOBODY, NPS_DEVICE_USER_GROUPS, "");
	for (gid_t i = 0; i < NPS_DEVICE_USER_GROUPS; i++)
		assert_int_equal(user.groups[i], 1000 + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_that_anybody_opens),
		cmocka_unit_test(nodes_of_groups),
		cmocka_unit_test(nodes_of_their_owner),
		cmocka_unit_test(nodes_of_root),
		cmocka_unit_test(nodes_of_the_group_of_root),
		cmocka_unit_test(more_groups_than_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
