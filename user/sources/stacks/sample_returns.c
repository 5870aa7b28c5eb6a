/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/stacks/sample_returns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAITING 4096 /* per CPU: samples of four seconds */

struct returns_waiting {
	struct returns_waiting *next;
	struct nps_sample_returns message;
};

struct fifo {
	struct returns_waiting *first, **end;
	unsigned int n;
};

struct nps_sample_returns_queue {
	unsigned int cpus;
	struct returns_waiting *last; /* the last result */
	struct fifo fifos[];
};

struct nps_sample_returns_queue *nps_sample_returns__new(unsigned int cpus)
{
	struct nps_sample_returns_queue *q = calloc(1, sizeof(*q) + cpus * sizeof(q->fifos[0]));

	if (!q)
		return NULL;
	q->cpus = cpus;
	for (unsigned int i = 0; i < cpus; i++)
		q->fifos[i].end = &q->fifos[i].first;
	return q;
}

static struct returns_waiting *fifo_pop(struct fifo *f)
{
	struct returns_waiting *w = f->first;

	f->first = w->next;
	f->n--;
	if (!f->first)
		f->end = &f->first;
	return w;
}

void nps_sample_returns__free(struct nps_sample_returns_queue *q)
{
	if (!q)
		return;
	for (unsigned int i = 0; i < q->cpus; i++)
		while (q->fifos[i].first)
			free(fifo_pop(&q->fifos[i]));
	free(q->last);
	free(q);
}

int nps_sample_returns__add(struct nps_sample_returns_queue *q, const void *message, size_t size)
{
	const size_t head = offsetof(struct nps_sample_returns, pending.returns);
	const size_t without =
		offsetof(struct nps_sample_returns, user); /* size of a message without returns */
	const struct nps_sample_returns *m = message;
	struct returns_waiting *w;
	struct fifo *f;
	int err = 0;

	if (size < without || m->message != NPS_MSG_RETURNS || m->cpu >= q->cpus)
		return -EINVAL;
	if (size != without &&
	    (size < head || m->pending.n_user > NPS_STACK_USER || m->pending.n > NPS_STACK_RETURNS ||
	     m->pending.n * sizeof(m->pending.returns[0]) > size - head))
		return -EINVAL;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->next = NULL;
	w->message.pending.n = w->message.pending.n_user = 0;
	memcpy(&w->message, m,
	       size == without ? without : head + m->pending.n * sizeof(m->pending.returns[0]));
	f = &q->fifos[m->cpu];
	if (f->n == MAX_WAITING) {
		free(fifo_pop(f));
		err = -ENOSPC;
	}
	*f->end = w;
	f->end = &w->next;
	f->n++;
	return err;
}

const struct nps_sample_returns *nps_sample_returns__next(struct nps_sample_returns_queue *q, uint32_t cpu,
							  uint32_t tid, uint64_t time, uint64_t ip)
{
	struct fifo *f = cpu < q->cpus ? &q->fifos[cpu] : NULL;
	const struct nps_sample_returns *m;

	free(q->last);
	q->last = NULL;
	/* Those before the last belong to lost samples. */
	while (f && f->first && f->first->message.time <= time) {
		free(q->last);
		q->last = fifo_pop(f);
	}
	m = q->last ? &q->last->message : NULL;
	/* So does the last, if it does not match. */
	return m && m->tid == tid && (!m->exact || m->time == time) &&
			       (!m->pending.n_user || !ip || m->user[0] == ip)
		       ? m
		       : NULL;
}
