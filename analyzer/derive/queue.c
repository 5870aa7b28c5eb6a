/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/queue.h"

#include <string.h>

#define DEQUEUE "Dequeue"

static bool row_is_dequeue(const struct nps_model *m, size_t row)
{
	return !strncmp(nps_model__text(m, m->torch.name[row]), DEQUEUE, sizeof(DEQUEUE) - 1);
}

void nps_queue__init(struct nps_queue *queue, const struct nps_model *m)
{
	const struct nps_torch_table *torch = &m->torch;
	struct nps_pace pace = { m, 0 };
	size_t i = 0;

	for (; i < torch->t.len && torch->type[i] == NPS_API_TORCH_QUEUE && !row_is_dequeue(m, i); i++)
		nps_pace__step(&pace);
	*queue = (struct nps_queue){ .torch = torch, .dequeues = i, .next = i };
	for (; i < torch->t.len && torch->type[i] == NPS_API_TORCH_QUEUE; i++)
		nps_pace__step(&pace);
	queue->end = i;
}

int nps_queue__at(struct nps_queue *queue, uint64_t gtid, uint64_t time, uint32_t *row)
{
	const struct nps_torch_table *torch = queue->torch;
	int err = 0;

	for (; !err && queue->next < queue->end && torch->start[queue->next] <= time; queue->next++)
		err = nps_map__put(&queue->running, torch->gtid[queue->next], queue->next);
	*row = nps_map__get(&queue->running, gtid);
	if (*row != NPS_NONE && time > torch->end[*row])
		*row = NPS_NONE;
	return err;
}

void nps_queue__restart(struct nps_queue *queue)
{
	nps_map__clear(&queue->running);
	queue->next = queue->dequeues;
}

void nps_queue__free(struct nps_queue *queue)
{
	nps_map__free(&queue->running);
}
