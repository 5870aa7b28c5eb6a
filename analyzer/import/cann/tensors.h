/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of an operator's tensors. Most operators run again and again with the same ones, so each
 * list of tensors is kept once, with its six texts as the tables print them (outputs 3.2).
 */
#ifndef NPS_CANN_TENSORS_H
#define NPS_CANN_TENSORS_H

#include "base/map.h"
#include "base/string_table.h"
#include "base/vec.h"

#define NPS_TENSOR_BYTES 44 /* u32 in or out, format, data type, shape[8] */

struct nps_tensor_texts {
	uint32_t input_formats, input_types, input_shapes;
	uint32_t output_formats, output_types, output_shapes;
};

struct nps_tensors {
	struct nps_strings *strings;
	struct nps_vec lists; /* what is known of each list */
	struct nps_vec bytes; /* the tensors of all lists as they were recorded */
	struct nps_map by_hash;
	uint64_t dropped; /* tensors of lists that are too long */
	uint32_t steps; /* after some, what is mapped may leave memory */
};

void nps_tensors__init(struct nps_tensors *tensors, struct nps_strings *strings, int dirfd);
void nps_tensors__free(struct nps_tensors *tensors);

/* The number of the list of N tensors at DATA; NPS_NONE without memory. */
uint32_t nps_tensors__add(struct nps_tensors *tensors, const uint8_t *data, uint32_t n);

/* The number of list FIRST followed by SECOND. */
uint32_t nps_tensors__join(struct nps_tensors *tensors, uint32_t first, uint32_t second);

/* The texts of a list. 0 or -ENOMEM. */
int nps_tensors__texts(struct nps_tensors *tensors, uint32_t list, struct nps_tensor_texts *texts);

/* Names of GE's data types and formats; NULL if there is none of that number. */
const char *nps_ge_type(uint32_t type);
const char *nps_ge_format(uint32_t format);

#endif
