/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What host threads did, Python frames, operators, marks and CANN calls, in the order in which it nests: by start, of the same start
 * the longer first, of the same length the outer layer. Databases have Python's frames by their end: they are sorted.
 */
#ifndef NPS_HOST_ROWS_H
#define NPS_HOST_ROWS_H

#include "base/ext_sort.h"
#include "model/model.h"

#define NPS_HOST_LAYERS 4

struct nps_host_rows {
	int err; /* 0 or negative errno */
	struct nps_pace pace;
	struct nps_host_layer {
		size_t at, end; /* the next row, and where they end */
		bool api; /* rows of `api`, else of `torch` */
		bool sorted; /* the rows come from SORT */
		struct nps_ext_sort sort;
	} layers[NPS_HOST_LAYERS];
};

/* MARKS: with those of mstx. Errors are told by nps_host_rows__end(), too. */
void nps_host_rows__begin(struct nps_host_rows *rows, const struct nps_model *model, bool marks);

/* Steps on to the next row, which is one of `api` or of `torch`. False: there are no more, or an error. */
bool nps_host_rows__next(struct nps_host_rows *rows, bool *api, size_t *row);

/* 0 or negative errno. */
int nps_host_rows__end(struct nps_host_rows *rows);

#endif
