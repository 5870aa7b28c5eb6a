/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/common/torch_owner.h"

#include <errno.h>

void nps_torch_owner__init(struct nps_torch_owner *o, const struct nps_model *model, size_t first, size_t end)
{
	*o = (struct nps_torch_owner){ .torch = &model->torch, .first = first, .next = first, .end = end };
	nps_vec__init(&o->parents, model->tmpfd, sizeof(uint32_t));
}

void nps_torch_owner__free(struct nps_torch_owner *o)
{
	nps_map__free(&o->tops);
	nps_vec__free(&o->parents);
}

uint32_t nps_torch_owner__parent(const struct nps_torch_owner *o, uint32_t row)
{
	return NPS_AT(&o->parents, uint32_t, row - o->first);
}

/* From operator ROW outwards, the first that has not ended before TIME. */
static uint32_t owner_still_open(const struct nps_torch_owner *o, uint32_t row, uint64_t time)
{
	while (row != NPS_NONE && o->torch->end[row] < time)
		row = nps_torch_owner__parent(o, row);
	return row;
}

/* Begins the operators that start at TIME or before. What ends within an operator is not around it. */
static int owner_advance(struct nps_torch_owner *o, uint64_t time)
{
	const struct nps_torch_table *torch = o->torch;
	int err = 0;

	for (; !err && o->next < o->end && torch->start[o->next] <= time; o->next++) {
		uint32_t around = nps_map__get(&o->tops, torch->gtid[o->next]);
		uint32_t *parent = nps_vec__push(&o->parents);

		if (!parent)
			return -errno;
		*parent = NPS_NONE; /* while it is looked for */
		*parent = owner_still_open(o, around, torch->end[o->next]);
		err = nps_map__put(&o->tops, torch->gtid[o->next], o->next);
		if (!(o->parents.len % NPS_TABLE_HOT)) {
			nps_vec__cool(&o->parents);
			nps_table__cool(&torch->t);
		}
	}
	return err;
}

int nps_torch_owner__at(struct nps_torch_owner *o, uint64_t gtid, uint64_t time, uint32_t *row)
{
	int err = owner_advance(o, time);
	uint32_t top;

	if (err)
		return err;
	top = nps_map__get(&o->tops, gtid);
	*row = owner_still_open(o, top, time);
	return *row == top ? 0 : nps_map__put(&o->tops, gtid, *row);
}
