/* SPDX-License-Identifier: BSD-2-Clause */
/* Iterations of graphs and steps of training, as the devices' step trace has them (prof-raw 2.5). */
#include "import/cann/capture.h"

#include <string.h>

#define OPEN_MOST 64 /* parts that have begun */

enum iteration_tag {
	TAG_START = 0,
	TAG_MODEL_END = 1,
	TAG_FORWARD = 2,
	TAG_BACKWARD = 3,
	TAG_END = 4,
	TAG_REDUCE = 10000,
	TAG_GET_NEXT = 20000,
	TAG_STEP_START = 60000,
	TAG_STEP_END = 60001
};

struct iterations {
	struct nps_cann_capture *capture;
	uint64_t of; /* device << 32 | model */
	uint64_t id, start, forward, backward, end;
	bool open;
	uint64_t last_end; /* of the iteration before, 0 none */
	struct {
		uint32_t tag;
		uint64_t start;
	} parts[OPEN_MOST];
	unsigned int nparts;
	uint64_t unpaired;
};

static void iteration_flush(struct iterations *s)
{
	struct nps_model *m = s->capture->model;

	s->unpaired += s->nparts;
	s->nparts = 0;
	if (!s->open)
		return;
	s->open = false;
	s->capture->err = nps_iteration_table__add(&m->iteration,
						   &(struct nps_iteration_row){ .device = s->of >> 32,
										.model = s->of & UINT32_MAX,
										.id = s->id,
										.fp_start = s->forward,
										.bp_end = s->backward,
										.start = s->start,
										.end = s->end });
	if (s->capture->err)
		return;
	nps_model__cover(m, s->start, NPS_MAX(s->start, s->end));
	s->last_end = s->end;
}

/* The iteration that a mark belongs to. One without a start of its own begins where the one before ended. */
static void iteration_enter(struct iterations *s, const struct nps_step_mark *mark)
{
	if (s->open && s->id == mark->index)
		return;
	iteration_flush(s);
	s->open = true;
	s->id = mark->index;
	s->start = s->last_end;
	s->forward = s->backward = s->end = 0;
}

/* Parts begin with an even tag and end with the odd one behind it. */
static void iteration_part(struct iterations *s, const struct nps_step_mark *mark)
{
	unsigned int i = 0;

	iteration_enter(s, mark);
	if (mark->tag % 2 == 0) {
		if (s->nparts == OPEN_MOST) {
			s->unpaired++;
			return;
		}
		s->parts[s->nparts].tag = mark->tag;
		s->parts[s->nparts++].start = mark->key.low;
		return;
	}
	while (i < s->nparts && s->parts[i].tag != mark->tag - 1)
		i++;
	if (i == s->nparts) {
		s->unpaired++;
		return;
	}
	s->capture->err = nps_iteration_part_table__add(
		&s->capture->model->iteration_part,
		&(struct nps_iteration_part_row){ .device = s->of >> 32,
						  .model = s->of & UINT32_MAX,
						  .id = mark->index,
						  .kind = mark->tag >= TAG_GET_NEXT,
						  .start = s->parts[i].start,
						  .end = mark->key.low });
	s->parts[i] = s->parts[--s->nparts];
}

static void iteration_add_mark(struct iterations *s, const struct nps_step_mark *mark)
{
	if (mark->key.high != s->of) {
		iteration_flush(s);
		s->of = mark->key.high;
		s->last_end = 0;
	}
	switch (mark->tag) {
	case TAG_START:
	case TAG_STEP_START:
		iteration_flush(s);
		iteration_enter(s, mark);
		s->start = mark->key.low;
		break;
	case TAG_FORWARD:
		iteration_enter(s, mark);
		s->forward = mark->key.low;
		break;
	case TAG_BACKWARD:
		iteration_enter(s, mark);
		s->backward = mark->key.low;
		break;
	case TAG_END:
	case TAG_STEP_END:
		iteration_enter(s, mark);
		s->end = mark->key.low;
		break;
	case TAG_MODEL_END:
		if (s->open && s->id == mark->index && !s->end)
			s->end = mark->key.low;
		break;
	default:
		if (mark->tag >= TAG_REDUCE && mark->tag < TAG_STEP_START)
			iteration_part(s, mark);
		else
			nps_model__lost(s->capture->model, 1, "step trace rows of unknown tags");
	}
}

int nps_cann_capture__steps(struct nps_cann_capture *capture)
{
	struct iterations s = { .capture = capture, .of = UINT64_MAX };
	const struct nps_step_mark *mark;

	capture->err = nps_ext_sort__finish(&capture->steps);
	while (!capture->err && (mark = nps_ext_sort__next(&capture->steps)))
		iteration_add_mark(&s, mark);
	if (!capture->err)
		capture->err = capture->steps.err;
	if (!capture->err)
		iteration_flush(&s);
	nps_model__lost(capture->model, s.unpaired, "parts of iterations without begin or end");
	return capture->err;
}
