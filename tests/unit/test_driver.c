/* SPDX-License-Identifier: BSD-2-Clause */
/* The NPU's driver: names of nodes, parts and commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "driver_nodes.h"
#include "event.h"
#include "session/driver_names.h"

static void expect_node(const char *name, uint8_t kind, uint16_t device)
{
	struct nps_node node;

	assert_true(nps_driver_node__parse(name, &node));
	assert_int_equal(node.kind, kind);
	assert_int_equal(node.device, device);
}

static void nodes_by_name(void **state)
{
	static const char *const none[] = { "davinci",	 "davinci-1", "davinci_managerx", "davinci1x",
					    "null",	 "",	      "davinci99999",	  "hisi_hdc2",
					    "davinci 1", "devmm" };
	struct nps_node node;

	(void)state;
	expect_node("davinci_manager", NPS_NODE_MANAGER, NPS_DRIVER_NO_DEVICE);
	expect_node("davinci_manager_docker", NPS_NODE_MANAGER, NPS_DRIVER_NO_DEVICE);
	expect_node("davinci0", NPS_NODE_DEVICE, 0);
	expect_node("davinci63", NPS_NODE_DEVICE, 63);
	expect_node("vdavinci100", NPS_NODE_DEVICE, NPS_DRIVER_NO_DEVICE);
	expect_node("devmm_svm", NPS_NODE_SVM, NPS_DRIVER_NO_DEVICE);
	expect_node("hisi_hdc", NPS_NODE_HDC, NPS_DRIVER_NO_DEVICE);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_false(nps_driver_node__parse(none[i], &node));
}

static uint64_t bytes_of(const char *text)
{
	uint64_t bytes = 0;

	memcpy(&bytes, text, strnlen(text, 8));
	return bytes;
}

static void parts_by_their_first_bytes(void **state)
{
	char name[NPS_DRIVER_NAME_MAX];

	(void)state;
	nps_driver_part_name(0, name);
	assert_string_equal(name, "");
	nps_driver_part_name(bytes_of("TSDRV"), name);
	assert_string_equal(name, "TSDRV");
	nps_driver_part_name(bytes_of("TSDRV_MMAP"), name);
	assert_string_equal(name, "TSDRV_MMAP");
	nps_driver_part_name(bytes_of("eight456"), name);
	assert_string_equal(name, "eight456");
	nps_driver_part_name(bytes_of("a\n\xff"), name);
	assert_string_equal(name, "a??");
}

static void expect_call(uint16_t call, uint32_t command, uint8_t kind, const char *part, const char *text)
{
	char node[NPS_DRIVER_NAME_MAX], name[2 * NPS_DRIVER_NAME_MAX];

	nps_driver_node_name(kind, 2, node);
	nps_driver_call_name(call, command, kind, part, node, name, sizeof(name));
	assert_string_equal(name, text);
}

#define IO(magic, number) ((uint32_t)(magic) << 8 | (number))

static void calls_are_named(void **state)
{
	(void)state;
	expect_call(NPS_DRIVER_OPEN, 0, NPS_NODE_DEVICE, "", "open davinci2");
	expect_call(NPS_DRIVER_CLOSE, 0, NPS_NODE_MANAGER, "TSDRV", "close TSDRV");
	expect_call(NPS_DRIVER_IOCTL, IO('Z', 0), NPS_NODE_MANAGER, "TSDRV", "ioctl davinci_manager OPEN");
	expect_call(NPS_DRIVER_IOCTL, IO('X', 19), NPS_NODE_MANAGER, "TSDRV", "ioctl TSDRV SQCQ_SEND");
	/* handed over before the capture */
	expect_call(NPS_DRIVER_IOCTL, IO('X', 20), NPS_NODE_MANAGER, "", "ioctl TSDRV SQCQ_RECV");
	expect_call(NPS_DRIVER_IOCTL, IO('X', 14), NPS_NODE_MANAGER, "TSDRV", "ioctl TSDRV 0x580e");
	expect_call(NPS_DRIVER_IOCTL, IO('X', 255), NPS_NODE_MANAGER, "TSDRV", "ioctl TSDRV 0x58ff");
	expect_call(NPS_DRIVER_IOCTL, IO('M', 3), NPS_NODE_SVM, "", "ioctl devmm_svm ALLOC");
	expect_call(NPS_DRIVER_IOCTL, IO('M', 3), NPS_NODE_HDC, "", "ioctl hisi_hdc 0x4d03");
	expect_call(NPS_DRIVER_IOCTL, IO('H', 0x15), NPS_NODE_HDC, "", "ioctl hisi_hdc SEND");
	/* one magic, two parts */
	expect_call(NPS_DRIVER_IOCTL, IO('U', 30), NPS_NODE_MANAGER, "SVM", "ioctl SVM MPL_POPULATE");
	expect_call(NPS_DRIVER_IOCTL, IO('U', 2), NPS_NODE_MANAGER, "uda", "ioctl uda GET_DEV_LIST");
	expect_call(NPS_DRIVER_IOCTL, IO('U', 2), NPS_NODE_MANAGER, "", "ioctl davinci_manager 0x5502");
	expect_call(999, 0, 200, "", "call unknown node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_by_name),
		cmocka_unit_test(parts_by_their_first_bytes),
		cmocka_unit_test(calls_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
