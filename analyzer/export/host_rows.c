/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/host_rows.h"

/* A row with its place among those that nest: by start, of the same start the longer first. */
struct placed {
	struct nps_sort_key key;
	uint32_t row;
};

static struct nps_sort_key place_of(const struct nps_model *m, size_t i)
{
	return (struct nps_sort_key){ m->torch.start[i], ~m->torch.end[i] };
}

static void step(struct nps_host_rows *r, struct nps_host_layer *l)
{
	const struct placed *next;

	if (!l->sorted) {
		l->at++;
		return;
	}
	next = nps_ext_sort__next(&l->sort);
	if (l->sort.err && !r->err)
		r->err = l->sort.err;
	l->at = next ? next->row : l->end;
}

/* Sorts the layer's rows unless they are. */
static void sort_rows(struct nps_host_rows *r, struct nps_host_layer *l)
{
	const struct nps_model *m = r->pace.model;
	size_t i = l->at;

	while (i + 1 < l->end && !nps_sort_key__less(place_of(m, i + 1), place_of(m, i))) {
		nps_pace__step(&r->pace);
		i++;
	}
	if (i + 1 >= l->end)
		return;
	nps_ext_sort__init(&l->sort, m->tmpfd, sizeof(struct placed));
	l->sorted = true;
	for (i = l->at; i < l->end && !l->sort.err; i++) {
		struct placed *placed = nps_ext_sort__add(&l->sort);

		if (placed)
			*placed = (struct placed){ place_of(m, i), (uint32_t)i };
		nps_pace__step(&r->pace);
	}
	r->err = nps_ext_sort__finish(&l->sort);
	if (!r->err)
		step(r, l);
}

void nps_host_rows__begin(struct nps_host_rows *r, const struct nps_model *m, bool marks)
{
	static const uint32_t types[] = { NPS_API_PYTHON, NPS_API_TORCH_OP, NPS_API_TORCH_MSTX };
	const size_t n = NPS_ARRAY_SIZE(types);

	*r = (struct nps_host_rows){ .pace = { .model = m } };
	for (size_t i = 0; i < n && !r->err; i++) {
		struct nps_rows rows = nps_model__torch_rows(m, types[i]);

		if (types[i] == NPS_API_TORCH_MSTX && !marks)
			continue;
		r->layers[i].at = rows.begin;
		r->layers[i].end = rows.end;
		sort_rows(r, &r->layers[i]);
	}
	r->layers[n].api = true;
	r->layers[n].end = m->api.t.len;
}

static void span_of(const struct nps_model *m, const struct nps_host_layer *l, uint64_t *start, uint64_t *end)
{
	*start = *end = UINT64_MAX;
	if (l->at == l->end)
		return;
	*start = l->api ? m->api.start[l->at] : m->torch.start[l->at];
	*end = l->api ? m->api.end[l->at] : m->torch.end[l->at];
}

/* The layer whose row is the first, of the same start the longer; NULL: there are no more. */
static struct nps_host_layer *first_of(struct nps_host_rows *r)
{
	struct nps_host_layer *first = NULL;
	uint64_t best = UINT64_MAX, best_end = 0;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(r->layers); i++) {
		uint64_t start, end;

		span_of(r->pace.model, &r->layers[i], &start, &end);
		if (start < best || (start == best && start != UINT64_MAX && end > best_end)) {
			first = &r->layers[i];
			best = start;
			best_end = end;
		}
	}
	return first;
}

bool nps_host_rows__next(struct nps_host_rows *r, bool *api, size_t *row)
{
	struct nps_host_layer *first = r->err ? NULL : first_of(r);

	if (!first)
		return false;
	*api = first->api;
	*row = first->at;
	step(r, first);
	nps_pace__step(&r->pace);
	return true;
}

int nps_host_rows__end(struct nps_host_rows *r)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(r->layers); i++)
		if (r->layers[i].sorted)
			nps_ext_sort__free(&r->layers[i].sort);
	return r->err;
}
