/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/driver_names.h"

#include "event.h"
#include "base/util.h"

#include <stdio.h>
#include <string.h>

#define MAGIC(command) ((command) >> 8 & 0xff)
#define NUMBER(command) ((command)&0xff)

/* --- commands by number --- */

static const char *const intf[] = { "OPEN", "CLOSE", "STATUS" };

static const char *const tsdrv[] = {
	[0] = "ID_ALLOC",	   [1] = "ID_FREE",	      [11] = "SSID_QUERY",
	[12] = "HW_INFO_QUERY",	   [13] = "MSG_CTRL",	      [15] = "SQCQ_ALLOC",
	[16] = "SQCQ_FREE",	   [17] = "SQCQ_CONFIG",      [18] = "SQCQ_QUERY",
	[19] = "SQCQ_SEND",	   [20] = "SQCQ_RECV",	      [24] = "ID_RES_MAP",
	[25] = "UB_INFO",	   [26] = "SET_CLOSE_TYPE",   [27] = "SQCQ_GET",
	[28] = "SQCQ_RESTORE",	   [29] = "DMA_DESC_CREATE",  [30] = "CMDLIST",
	[31] = "STREAM_TASK_FILL", [32] = "SQ_SWITCH_STREAM",
};

static const char *const svm[] = {
	[0] = "MEM_QUERY_OWNER",
	[1] = "SET_ACCESS",
	[2] = "GET_ACCESS",
	[3] = "ALLOC",
	[4] = "FREE_PAGES",
	[5] = "MEMCPY",
	[6] = "MEMCPY2D",
	[7] = "ASYNC_MEMCPY",
	[9] = "SUBMIT_CONVERT_CPY",
	[10] = "WAIT_CONVERT",
	[11] = "CONVERT_ADDR",
	[12] = "DESTROY_ADDR",
	[13] = "ADVISE",
	[14] = "PREFETCH",
	[15] = "MEMSET8",
	[16] = "DESTROY_ADDR_BATCH",
	[17] = "TRANSLATE",
	[21] = "IPC_OPEN",
	[22] = "IPC_CLOSE",
	[26] = "SETUP_DEVICE",
	[27] = "IPC_CREATE",
	[28] = "IPC_DESTROY",
	[29] = "IPC_QUERY",
	[36] = "INIT_PROCESS",
	[37] = "UPDATE_HEAP",
	[42] = "CLOSE_DEVICE",
	[45] = "REMOTE_MAP",
	[46] = "REMOTE_UNMAP",
	[47] = "QUERY_MEM_USEDINFO",
	[48] = "CHECK_MEMINFO",
	[49] = "MAP_DEV_RESERVE",
	[50] = "MEM_CREATE",
	[51] = "MEM_RELEASE",
	[52] = "MEM_MAP",
	[53] = "MEM_UNMAP",
	[54] = "EXPORT",
	[55] = "IMPORT",
	[56] = "SET_PID",
	[60] = "REGISTER_DMA",
	[61] = "UNREGISTER_DMA",
	[62] = "REPAIR",
	[64] = "PREPARE_CLOSE",
	[65] = "MEMCPY_BATCH",
};

/* Of the newest chips, where memory is a part behind davinci_manager. */
static const char *const svm3[] = {
	[10] = "ASYNC_COPY_SUBMIT", [11] = "ASYNC_COPY_2D", [12] = "ASYNC_COPY_BATCH",
	[13] = "ASYNC_COPY_WAIT",   [15] = "DMA_MAP",	    [16] = "DMA_UNMAP",
	[25] = "SMM_MAP",	    [26] = "SMM_UNMAP",	    [30] = "MPL_POPULATE",
	[31] = "MPL_DEPOPULATE",    [33] = "DBI_QUERY",	    [34] = "MADVISE",
};

static const char *const hdc[] = {
	[0x10] = "SERVER_CREATE", [0x11] = "SERVER_DESTROY", [0x13] = "CONNECT",
	[0x14] = "CLOSE",	  [0x15] = "SEND",	     [0x16] = "RECV_PEEK",
	[0x17] = "RECV",	  [0x19] = "GET_STAT",	     [0x1e] = "GET_SESSION_INFO",
	[0x20] = "ALLOC_MEM",	  [0x21] = "FREE_MEM",	     [0x22] = "FAST_SEND",
	[0x23] = "FAST_RECV",	  [0x24] = "DMA_MAP",	     [0x25] = "DMA_UNMAP",
	[0x26] = "DMA_REMAP",	  [0x40] = "EPOLL_ALLOC",    [0x41] = "EPOLL_FREE",
	[0x42] = "EPOLL_CTL",	  [0x43] = "EPOLL_WAIT",
};

static const char *const uda[] = { "GET_USER_INFO", "SETUP_DEV_TABLE", "GET_DEV_LIST", "UDEVID_TO_DEVID",
				   "DEVID_TO_UDEVID" };

/* The same magic means different things to different parts. */
static const struct commands {
	uint8_t magic, node; /* enum nps_npu_node */
	const char *part; /* NULL: any */
	const char *stands_for; /* part of a descriptor of which it is not known */
	const char *const *names;
	size_t n;
} all[] = {
	{ 'Z', NPS_NODE_MANAGER, NULL, "", intf, NPS_ARRAY_SIZE(intf) },
	{ 'X', NPS_NODE_MANAGER, NULL, "TSDRV", tsdrv, NPS_ARRAY_SIZE(tsdrv) },
	{ 'U', NPS_NODE_MANAGER, "SVM", "", svm3, NPS_ARRAY_SIZE(svm3) },
	{ 'U', NPS_NODE_MANAGER, "uda", "", uda, NPS_ARRAY_SIZE(uda) },
	{ 'H', NPS_NODE_MANAGER, "HDC", "", hdc, NPS_ARRAY_SIZE(hdc) },
	{ 'M', NPS_NODE_SVM, NULL, "", svm, NPS_ARRAY_SIZE(svm) },
	{ 'H', NPS_NODE_HDC, NULL, "", hdc, NPS_ARRAY_SIZE(hdc) },
	{ 'U', NPS_NODE_DEVICE, NULL, "", uda, NPS_ARRAY_SIZE(uda) },
};

static const struct commands *commands_of(uint32_t command, uint8_t kind, const char *part)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(all); i++)
		if (all[i].magic == MAGIC(command) && all[i].node == kind &&
		    (!all[i].part || !strcmp(all[i].part, part)))
			return &all[i];
	return NULL;
}

/* --- parts and nodes --- */

/* Parts whose names are longer than what is kept of them. */
static const char *const long_parts[] = { "TSDRV_MMAP", "TRS_SHR_ID", "DP_PROC_MNG" };

void nps_driver_part_name(const char *part, char *name)
{
	size_t n = 0;

	for (; n < NPS_DRIVER_PART_BYTES && part[n]; n++)
		name[n] = part[n] > ' ' && part[n] < 0x7f ? part[n] : '?';
	name[n] = '\0';
	for (size_t i = 0; n == NPS_DRIVER_PART_BYTES && i < NPS_ARRAY_SIZE(long_parts); i++)
		if (!memcmp(name, long_parts[i], NPS_DRIVER_PART_BYTES))
			snprintf(name, NPS_DRIVER_NAME_MAX, "%s", long_parts[i]);
}

void nps_driver_node_name(uint8_t kind, uint16_t device, char *name)
{
	static const char *const names[NPS_NODE_MAX] = {
		"unknown node", "davinci_manager", "davinci",	"devmm_svm",	   "hisi_hdc",
		"dvpp_cmdlist", "event_sched",	   "xsmem_dev", "queue_manage_dev"
	};
	const char *text = names[kind < NPS_NODE_MAX ? kind : NPS_NODE_OTHER];

	if (kind == NPS_NODE_DEVICE && device != NPS_DRIVER_NO_DEVICE)
		snprintf(name, NPS_DRIVER_NAME_MAX, "%s%u", text, device);
	else
		snprintf(name, NPS_DRIVER_NAME_MAX, "%s", text);
}

void nps_driver_call_name(uint16_t call, uint32_t command, uint8_t kind, const char *part, const char *node,
			  char *name, size_t size)
{
	static const char *const calls[] = { "call", "open", "close", "ioctl", "mmap" };
	const char *what = calls[call < NPS_ARRAY_SIZE(calls) ? call : 0];
	const struct commands *c = call == NPS_DRIVER_IOCTL ? commands_of(command, kind, part) : NULL;
	const char *whose = *part && MAGIC(command) != 'Z' ? part : node;
	const char *number = c && NUMBER(command) < c->n ? c->names[NUMBER(command)] : NULL;

	if (c && !*part && *c->stands_for)
		whose = c->stands_for;
	if (call != NPS_DRIVER_IOCTL)
		snprintf(name, size, "%s %s", what, whose);
	else if (number)
		snprintf(name, size, "%s %s %s", what, whose, number);
	else
		snprintf(name, size, "%s %s 0x%x", what, whose, command);
}
