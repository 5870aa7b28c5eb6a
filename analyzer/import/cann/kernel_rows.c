/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/kernel_rows.h"

double nps_core_clock__at(struct nps_core_clock *clock, const struct nps_model *model, uint32_t device,
			  uint64_t time)
{
	const struct nps_frequency_table *t = &model->frequency;

	for (; clock->next < t->t.len && t->timestamp[clock->next] <= time; clock->next++)
		if (t->device[clock->next] < NPS_DEVICES_MAX)
			clock->mhz[t->device[clock->next]] = t->mhz[clock->next];
	return clock->mhz[device % NPS_DEVICES_MAX];
}

int nps_kernel__add(struct nps_model *model, struct nps_tensors *tensors, uint32_t list,
		    struct nps_compute_row *row)
{
	struct nps_tensor_texts texts = { NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE };
	int err = list == NPS_NONE ? 0 : nps_tensors__texts(tensors, list, &texts);

	row->input_formats = texts.input_formats;
	row->input_types = texts.input_types;
	row->input_shapes = texts.input_shapes;
	row->output_formats = texts.output_formats;
	row->output_types = texts.output_types;
	row->output_shapes = texts.output_shapes;
	return err ? err : nps_compute_table__add(&model->compute, row);
}

int nps_pmu__add(struct nps_model *model, uint32_t task, const struct nps_pmu_plan *plan,
		 const struct nps_run_pmu *pmu, uint32_t blocks, uint32_t mix_blocks, double mhz)
{
	double values[NPS_PMU_MOST];
	int err = 0;

	nps_pmu__compute(plan, pmu, blocks, mix_blocks, mhz, values);
	for (unsigned int i = 0; !err && i < plan->n; i++)
		err = nps_pmu_table__add(&model->pmu, &(struct nps_pmu_row){ .task = task,
									     .name = plan->columns[i].name,
									     .value = values[i] });
	return err;
}

int nps_block__add(struct nps_model *model, const struct nps_block_run *run, uint64_t shift)
{
	return nps_block_table__add(&model->block, &(struct nps_block_row){ .start = run->start + shift,
									    .end = run->end + shift,
									    .device = run->device,
									    .stream = run->stream,
									    .task = run->task,
									    .block = run->block,
									    .vector = run->vector,
									    .core = run->core });
}
