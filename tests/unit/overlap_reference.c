/* SPDX-License-Identifier: BSD-2-Clause */
#include "overlap_reference.h"

#include "base/util.h"

#include <errno.h>

/* Walks a sorted list as merged intervals. */
struct merged {
	const struct nps_span *at, *end;
};

static int next(struct merged *m, struct nps_span *span)
{
	if (m->at == m->end)
		return 0;
	*span = *m->at++;
	/* Touching intervals stay apart: one slice for each kernel. */
	while (m->at < m->end && m->at->start < span->end) {
		span->end = NPS_MAX(span->end, m->at->end);
		m->at++;
	}
	return 1;
}

static int emit(struct nps_vec *spans, uint64_t start, uint64_t end, uint32_t type, uint32_t device)
{
	struct nps_span *span;

	if (!spans)
		return 0;
	span = nps_vec__push(spans);
	if (!span)
		return -errno;
	*span = (struct nps_span){ start, end, type, device };
	return 0;
}

static int each(struct merged m, uint32_t type, uint32_t device, struct nps_vec *spans, uint64_t *sum)
{
	struct nps_span span;
	int err = 0;

	while (!err && next(&m, &span)) {
		*sum += span.end - span.start;
		err = emit(spans, span.start, span.end, type, device);
	}
	return err;
}

/* The parts of M that no interval of CUT covers. */
static int outside(struct merged m, struct merged cut, uint32_t device, struct nps_vec *spans, uint64_t *sum)
{
	struct nps_span span, hole;
	int have = next(&cut, &hole), err = 0;

	while (!err && next(&m, &span)) {
		uint64_t from = span.start;

		while (have && hole.end <= from)
			have = next(&cut, &hole);
		while (!err && have && hole.start < span.end) {
			if (hole.start > from) {
				*sum += hole.start - from;
				err = emit(spans, from, hole.start, NPS_OVERLAP_COMM_ALONE, device);
			}
			from = NPS_MAX(from, hole.end);
			if (hole.end >= span.end)
				break;
			have = next(&cut, &hole);
		}
		if (!err && from < span.end) {
			*sum += span.end - from;
			err = emit(spans, from, span.end, NPS_OVERLAP_COMM_ALONE, device);
		}
	}
	return err;
}

/* The gaps that neither list covers. */
static int gaps(struct merged a, struct merged b, uint32_t device, struct nps_vec *spans,
		struct nps_overlap_sums *sums)
{
	uint64_t until = 0;
	int err = 0, begun = 0;

	while (!err && (a.at < a.end || b.at < b.end)) {
		const struct nps_span *span =
			a.at < a.end && (b.at == b.end || a.at->start <= b.at->start) ? a.at++ : b.at++;

		if (!begun)
			sums->first = until = span->start;
		begun = 1;
		if (span->start > until) {
			sums->free += span->start - until;
			err = emit(spans, until, span->start, NPS_OVERLAP_FREE, device);
		}
		until = NPS_MAX(until, span->end);
	}
	sums->last = until;
	return err;
}

int nps_overlap__build(const struct nps_span *compute, size_t ncompute, const struct nps_span *comm,
		       size_t ncomm, uint32_t device, struct nps_vec *spans, struct nps_overlap_sums *sums)
{
	struct merged a = { compute, compute + ncompute }, b = { comm, comm + ncomm };
	int err;

	*sums = (struct nps_overlap_sums){ 0 };
	err = each(a, NPS_OVERLAP_COMPUTE, device, spans, &sums->computing);
	if (!err)
		err = each(b, NPS_OVERLAP_COMM, device, spans, &sums->communication);
	if (!err)
		err = outside(b, a, device, spans, &sums->not_overlapped);
	if (!err)
		err = gaps(a, b, device, spans, sums);
	return err;
}
