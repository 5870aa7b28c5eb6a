/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the NPU driver's parts, nodes and commands. */
#ifndef NPS_DRIVER_NAMES_H
#define NPS_DRIVER_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NPS_DRIVER_NAME_MAX 64
#define NPS_DRIVER_PART_BYTES 8 /* of nps_event_driver.part */

/*
 * The part of the driver whose name begins with PART, which ends with a 0 or has NPS_DRIVER_PART_BYTES bytes;
 * "" for none. What no driver calls a part has its printable bytes alone. NAME has NPS_DRIVER_NAME_MAX bytes.
 */
void nps_driver_part_name(const char *part, char *name);

/* The node of KIND (enum nps_npu_node), of DEVICE where each has one. */
void nps_driver_node_name(uint8_t kind, uint16_t device, char *name);

/*
 * The name of a call: "ioctl TSDRV SQCQ_SEND", "open devmm_svm". CALL is an enum nps_driver_call; PART and
 * NODE as above. An unknown command is named by its number.
 */
void nps_driver_call_name(uint16_t call, uint32_t command, uint8_t kind, const char *part, const char *node,
			  char *name, size_t size);

#endif
