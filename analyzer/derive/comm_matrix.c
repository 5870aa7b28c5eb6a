/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communication matrix (outputs 5.2): collectives of one type and group are a family. For each link of a
 * family there are the best, the middle and the worst collective, and the sum. Records are written as
 * collectives end, and sorted by link and bandwidth afterwards.
 */
#include "derive/comm.h"
#include "derive/round4.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KEPT_SLOTS 4096
#define NAME 256 /* bytes of a type */
#define BINS_HOT 16384 /* that stay in memory */

struct comm_link { /* of the current collective */
	uint32_t src, dst;
	uint32_t transport; /* text */
	double size, time;
};

struct comm_record { /* a link of a collective */
	struct nps_sort_key key; /* bin; bandwidth, descending */
	double bandwidth, size, time;
	uint32_t op, transport; /* texts */
};

enum rank { TOP1, MIDDLE, BOTTOM1, BOTTOM2, BOTTOM3, RANKS };

struct bin { /* a link of a family */
	uint32_t src, dst;
	uint32_t family, next; /* next: of the family */
	uint64_t count; /* records */
	struct comm_record ranked[RANKS];
	double size, time;
};

struct family {
	uint32_t name, group; /* texts: type of the collective, hash */
	uint32_t step, type; /* texts */
	uint32_t first, last; /* bins */
};

void nps_matrix__init(struct nps_matrix *x, struct nps_model *m, const struct nps_comm_texts *texts)
{
	*x = (struct nps_matrix){ .m = m, .texts = texts };
	nps_ext_sort__init(&x->records, m->tmpfd, sizeof(struct comm_record));
	nps_vec__init(&x->bins, m->tmpfd, sizeof(struct bin));
	nps_vec__init(&x->families, m->tmpfd, sizeof(struct family));
	nps_vec__init(&x->links, m->tmpfd, sizeof(struct comm_link));
}

void nps_matrix__free(struct nps_matrix *x)
{
	nps_ext_sort__free(&x->records);
	nps_vec__free(&x->bins);
	nps_vec__free(&x->families);
	nps_vec__free(&x->links);
	nps_map__free(&x->bin_of);
	nps_map__free(&x->family_of);
	nps_map__free(&x->link_of);
}

/* Counts a bin that was read. */
static void matrix_step(struct nps_matrix *x)
{
	if (!(++x->steps % BINS_HOT))
		nps_vec__cool(&x->bins);
}

static uint32_t transport_text(const struct nps_comm_texts *texts, uint32_t link)
{
	switch (link) {
	case 0:
		return texts->local;
	case 1:
	case 5:
		return texts->transport[NPS_TRANSPORT_HCCS];
	case 2:
		return texts->transport[NPS_TRANSPORT_PCIE];
	case 3:
		return texts->roce;
	case 4:
		return texts->transport[NPS_TRANSPORT_SIO];
	case 6:
		return texts->standard_roce;
	case 7:
		return texts->ub;
	case 8:
		return texts->uboe;
	case 255:
		return texts->reserved;
	case NPS_NONE:
		return texts->transport[NPS_TRANSPORT_RDMA];
	}
	return texts->invalid;
}

int nps_matrix__transfer(struct nps_matrix *x, const struct nps_transfer *t)
{
	uint32_t dst = t->dst == NPS_NO_ID ? t->src : t->dst;
	uint64_t key = (uint64_t)t->src << 32 | dst;
	struct comm_link *link;
	uint32_t at;

	if (t->src == NPS_NO_ID)
		return 0;
	at = nps_map__get(&x->link_of, key);
	if (at == NPS_NONE) {
		link = nps_vec__push(&x->links);
		if (!link || nps_map__put(&x->link_of, key, x->links.len - 1))
			return -ENOMEM;
		link->src = t->src;
		link->dst = dst;
	} else {
		link = &NPS_AT(&x->links, struct comm_link, at);
	}
	link->transport = transport_text(x->texts, t->link);
	link->size += t->size;
	link->time += t->time;
	return 0;
}

/*
 * The type of a collective, from its name: the vendor uses the first of these words that occurs, and of two
 * that begin at the same character the one listed first, which makes reduceScatter a reduce.
 */
static void matrix_collective_type(const char *name, char type[NAME])
{
	static const char *const words[] = { "send",	     "reduce",	 "invalid",   "broadcast",
					     "allreduce",    "receive",	 "allgather", "reducescatter",
					     "scatter",	     "alltoall", "alltoallv", "alltoallvc",
					     "batchsendrecv" };
	const char *end = strstr(name, "__");
	size_t len = end ? (size_t)(end - name) : strlen(name);

	for (const char *at = name; *at; at++)
		for (size_t i = 0; i < NPS_ARRAY_SIZE(words); i++)
			if (words[i][0] == tolower((unsigned char)*at) &&
			    !strncasecmp(at, words[i], strlen(words[i]))) {
				snprintf(type, NAME, "%s", words[i]);
				return;
			}
	snprintf(type, NAME, "%.*s", (int)NPS_MIN(len, (size_t)NAME - 1), name);
}

/* Finds or makes the row of KEY; a different row with the same hash takes the next free value. */
static int family_row(struct nps_matrix *x, const struct nps_whole_op *op, uint32_t *row)
{
	char type[NAME];
	uint64_t key;
	struct family *f, new = { .group = op->group, .step = op->step, .type = op->type, .first = NPS_NONE };

	matrix_collective_type(nps_model__text(x->m, x->m->comm_op.name[op->row]), type);
	new.name = nps_strings__addz(x->m->strings, type);
	if (new.name == NPS_NONE)
		return -ENOMEM;
	key = nps_hash2((uint64_t) new.name << 32 | new.group, (uint64_t) new.step << 32 | new.type);
	while ((*row = nps_map__get(&x->family_of, key)) != NPS_NONE) {
		f = &NPS_AT(&x->families, struct family, *row);
		if (f->name == new.name && f->group == new.group && f->step == new.step &&
		    f->type == new.type)
			return 0;
		key++;
	}
	f = nps_vec__push(&x->families);
	if (!f)
		return -ENOMEM;
	*f = new;
	*row = x->families.len - 1;
	return nps_map__put(&x->family_of, key, *row);
}

static int bin_row(struct nps_matrix *x, uint32_t family, const struct comm_link *link, uint32_t *row)
{
	struct family *f = &NPS_AT(&x->families, struct family, family);
	uint64_t key = nps_hash2((uint64_t)link->src << 32 | link->dst, family);
	struct bin *bin;

	while ((*row = nps_map__get(&x->bin_of, key)) != NPS_NONE) {
		bin = &NPS_AT(&x->bins, struct bin, *row);
		if (bin->src == link->src && bin->dst == link->dst && bin->family == family)
			return 0;
		key++;
	}
	bin = nps_vec__push(&x->bins);
	if (!bin)
		return -ENOMEM;
	*row = x->bins.len - 1;
	bin->src = link->src;
	bin->dst = link->dst;
	bin->family = family;
	bin->next = NPS_NONE;
	if (f->first == NPS_NONE)
		f->first = *row;
	else
		NPS_AT(&x->bins, struct bin, f->last).next = *row;
	f->last = *row;
	return nps_map__put(&x->bin_of, key, *row);
}

/* A key that ascends as a bandwidth, which is not negative, descends. */
static uint64_t descending(double bandwidth)
{
	uint64_t bits;

	memcpy(&bits, &bandwidth, sizeof(bits));
	return ~bits;
}

static int bin_add_record(struct nps_matrix *x, uint32_t bin, uint32_t op, const struct comm_link *link)
{
	struct comm_record *record = nps_ext_sort__add(&x->records);
	double bandwidth = link->time != 0 ? nps_round4(link->size / link->time) : 0;

	if (!record)
		return x->records.err;
	NPS_AT(&x->bins, struct bin, bin).count++;
	matrix_step(x);
	*record = (struct comm_record){ .key = { bin, descending(bandwidth) },
					.op = op,
					.transport = link->transport,
					.bandwidth = bandwidth,
					.size = link->size,
					.time = link->time };
	return 0;
}

int nps_matrix__op(struct nps_matrix *x, const struct nps_whole_op *op)
{
	uint32_t family, bin;
	int err = x->links.len ? family_row(x, op, &family) : 0;

	for (size_t i = 0; !err && i < x->links.len; i++) {
		const struct comm_link *link = &NPS_AT(&x->links, struct comm_link, i);

		err = bin_row(x, family, link, &bin);
		err = err ? err : bin_add_record(x, bin, x->m->comm_op.name[op->row], link);
	}
	x->links.len = 0;
	if (x->link_of.size > KEPT_SLOTS)
		nps_map__free(&x->link_of);
	else
		nps_map__clear(&x->link_of);
	return err;
}

/* Adds RECORD, number I of its bin in descending order, to the sums and to the ranks that it has. */
static void bin_count_record(struct bin *bin, uint64_t i, const struct comm_record *record)
{
	uint64_t n = bin->count;
	const uint64_t at[RANKS] = { [TOP1] = 0,
				     [MIDDLE] = n / 2,
				     [BOTTOM1] = n - 1,
				     [BOTTOM2] = n > 1 ? n - 2 : 0,
				     [BOTTOM3] = n > 2 ? n - 3 : 0 };

	for (int rank = 0; rank < RANKS; rank++)
		if (at[rank] == i)
			bin->ranked[rank] = *record;
	/* The sum of doubles depends on their order: the vendor adds them up sorted. */
	bin->size += record->size;
	bin->time += record->time;
}

static int rank(struct nps_matrix *x)
{
	const struct comm_record *record;
	uint64_t bin = UINT64_MAX, i = 0;
	int err = nps_ext_sort__finish(&x->records);

	while (!err && (record = nps_ext_sort__next(&x->records))) {
		i = record->key.high == bin ? i + 1 : 0;
		bin = record->key.high;
		bin_count_record(&NPS_AT(&x->bins, struct bin, bin), i, record);
		if (!i)
			matrix_step(x);
	}
	err = err ? err : x->records.err;
	nps_ext_sort__free(&x->records);
	return err;
}

static int matrix_add_row(struct nps_matrix *x, const struct family *f, const struct bin *bin, uint32_t name,
			  size_t *row)
{
	struct nps_comm_matrix_table *to = &x->m->comm_matrix;
	uint32_t src = nps_strings__addf(x->m->strings, "%u", bin->src);
	uint32_t dst = nps_strings__addf(x->m->strings, "%u", bin->dst);
	int err = src == NPS_NONE || dst == NPS_NONE ? -ENOMEM : nps_table__add(&to->t, row);

	if (err)
		return err;
	to->op[*row] = name;
	to->group[*row] = f->group;
	to->src[*row] = src;
	to->dst[*row] = dst;
	to->step[*row] = f->step;
	to->type[*row] = f->type;
	return 0;
}

static int ranked_row(struct nps_matrix *x, const struct family *f, const struct bin *bin, uint32_t name,
		      enum rank which)
{
	const struct comm_record *record = &bin->ranked[which];
	struct nps_comm_matrix_table *to = &x->m->comm_matrix;
	size_t row;
	int err = matrix_add_row(x, f, bin, name, &row);

	if (err)
		return err;
	to->transport[row] = record->transport;
	to->size[row] = record->size;
	to->time[row] = record->time;
	to->bandwidth[row] = record->bandwidth;
	to->name[row] = record->op;
	return 0;
}

static int total_row(struct nps_matrix *x, const struct family *f, const struct bin *bin, uint32_t name)
{
	struct nps_comm_matrix_table *to = &x->m->comm_matrix;
	size_t row;
	int err = matrix_add_row(x, f, bin, name, &row);

	if (err)
		return err;
	to->transport[row] = bin->ranked[TOP1].transport;
	to->size[row] = bin->size;
	to->time[row] = bin->time;
	to->bandwidth[row] = bin->time != 0 ? nps_round4(bin->size / bin->time) : 0;
	to->name[row] = x->texts->none;
	return 0;
}

/* The rows of a family in the vendor's order, which has the sum in the middle. */
static int family_rows(struct nps_matrix *x, const struct family *f)
{
	static const struct {
		const char *suffix;
		int rank; /* RANKS: the sum */
		unsigned int least; /* collectives */
	} kinds[] = { { "top1", TOP1, 1 },   { "middle", MIDDLE, 1 },	{ "bottom1", BOTTOM1, 1 },
		      { "total", RANKS, 1 }, { "bottom2", BOTTOM2, 2 }, { "bottom3", BOTTOM3, 3 } };
	int err = 0;

	for (size_t k = 0; !err && k < NPS_ARRAY_SIZE(kinds); k++) {
		uint32_t name = nps_strings__addf(x->m->strings, "%s-%s", nps_model__text(x->m, f->name),
						  kinds[k].suffix);

		err = name == NPS_NONE ? -ENOMEM : 0;
		for (uint32_t i = f->first; !err && i != NPS_NONE;) {
			const struct bin *bin = &NPS_AT(&x->bins, struct bin, i);

			i = bin->next;
			matrix_step(x);
			if (bin->count < kinds[k].least)
				continue;
			err = kinds[k].rank == RANKS ? total_row(x, f, bin, name)
						     : ranked_row(x, f, bin, name, kinds[k].rank);
		}
	}
	return err;
}

int nps_matrix__finish(struct nps_matrix *x)
{
	int err = rank(x);

	for (size_t i = 0; !err && i < x->families.len; i++)
		err = family_rows(x, &NPS_AT(&x->families, struct family, i));
	return err;
}
