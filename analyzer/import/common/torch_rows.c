/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/common/torch_rows.h"

int nps_torch_rows__add(struct nps_model *model, uint64_t start, uint64_t end, uint64_t gtid, uint32_t name,
			uint32_t type, size_t *row)
{
	struct nps_torch_table *t = &model->torch;
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->start[i] = start;
	t->end[i] = end;
	t->gtid[i] = gtid;
	t->name[i] = name;
	t->type[i] = type;
	t->connection[i] = t->sequence[i] = t->forward_tid[i] = t->callchain[i] = t->correlation[i] =
		NPS_NULL;
	t->python_id[i] = t->python_parent[i] = t->python_module[i] = NPS_NULL;
	t->input_types[i] = t->input_shapes[i] = t->modules[i] = t->extra[i] = NPS_NONE;
	t->ending[i] = NPS_ENDING_SEEN;
	t->label[i] = 0;
	nps_model__cover(model, start, end);
	*row = i;
	return 0;
}
