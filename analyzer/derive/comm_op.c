/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One collective: how long it transferred, waited and idled on its master plane, and what went over which
 * transport on all planes (outputs 5.1). Sums are in the vendor's order, plane by plane, so that they are
 * equal to the last bit.
 */
#include "derive/comm.h"
#include "derive/round4.h"

#include <errno.h>

#define LINK_ON_CHIP 0
#define LINK_HCCS 1
#define LINK_PCIE 2
#define LINK_SIO 4
#define LINK_HCCS_SW 5
#define MB 1e6
#define MS 1e6 /* ns */
#define LARGE_RDMA 0.5 /* MB: a larger packet is a large one */
#define LARGE 32.0
#define LONGEST_GROUP 5 /* tasks of an RDMA transfer with one payload: payload, notify, wait, notify, wait */
#define LONGEST_GROUP_PEER 3
#define KEPT_SLOTS 4096 /* a map that has grown beyond is freed */

struct plane {
	int64_t id;
	uint32_t first, last; /* parts */
	bool transfers, master;
};

struct size_bucket { /* of one transport and size */
	double size, time;
	uint64_t count;
	uint8_t transport;
};

struct link_traffic {
	double size, time;
	uint64_t packets, large;
};

struct comm_times {
	double transit, wait, synchronization;
};

void nps_comm_stats__init(struct nps_comm_stats *stats, struct nps_model *m,
			  const struct nps_comm_texts *texts, struct nps_matrix *matrix)
{
	*stats = (struct nps_comm_stats){ .m = m, .texts = texts, .matrix = matrix };
	nps_vec__init(&stats->planes, m->tmpfd, sizeof(struct plane));
	nps_vec__init(&stats->sizes, m->tmpfd, sizeof(struct size_bucket));
}

void nps_comm_stats__free(struct nps_comm_stats *stats)
{
	nps_vec__free(&stats->planes);
	nps_vec__free(&stats->sizes);
	nps_map__free(&stats->plane_of);
	nps_map__free(&stats->size_of);
}

static void reset(struct nps_map *map, struct nps_vec *rows)
{
	rows->len = 0;
	if (map->size > KEPT_SLOTS)
		nps_map__free(map);
	else
		nps_map__clear(map);
}

static bool off_chip(const struct nps_part *part)
{
	return part->kind == NPS_PART_COPY && part->link != LINK_ON_CHIP;
}

static uint8_t transport_of(uint32_t link)
{
	switch (link) {
	case LINK_HCCS:
	case LINK_HCCS_SW:
		return NPS_TRANSPORT_HCCS;
	case LINK_PCIE:
		return NPS_TRANSPORT_PCIE;
	case LINK_SIO:
		return NPS_TRANSPORT_SIO;
	case NPS_NONE:
		return NPS_TRANSPORT_RDMA;
	}
	return NPS_TRANSPORT_SDMA;
}

static int chain_planes(struct nps_comm_stats *s, const struct nps_whole_op *op, struct nps_part *parts)
{
	for (uint32_t i = op->first; i != NPS_NONE; i = parts[i].next) {
		uint32_t at = nps_map__get(&s->plane_of, parts[i].plane);
		struct plane *plane;

		parts[i].next_of_plane = NPS_NONE;
		if (at == NPS_NONE) {
			plane = nps_vec__push(&s->planes);
			if (!plane || nps_map__put(&s->plane_of, parts[i].plane, s->planes.len - 1))
				return -ENOMEM;
			*plane = (struct plane){ .id = parts[i].plane, .first = i, .last = i };
		} else {
			plane = &NPS_AT(&s->planes, struct plane, at);
			parts[plane->last].next_of_plane = i;
			plane->last = i;
		}
		plane->master |= parts[i].master != 0;
		plane->transfers |= off_chip(&parts[i]) || parts[i].kind == NPS_PART_PAYLOAD;
	}
	return 0;
}

/*
 * The plane that decides about times. Old databases do not mark it: there it is the one with the most
 * transfers, which is the main stream's in all known captures.
 */
static size_t master_plane(const struct nps_comm_stats *s)
{
	const struct plane *planes = s->planes.data;
	size_t best = 0;

	for (size_t i = 0; i < s->planes.len; i++)
		if (planes[i].master)
			return i;
	for (size_t i = 1; i < s->planes.len; i++)
		if (planes[i].transfers > planes[best].transfers ||
		    (planes[i].transfers == planes[best].transfers && planes[i].id < planes[best].id))
			best = i;
	return best;
}

static int count_transfer(struct nps_comm_stats *s, struct link_traffic *traffic,
			  const struct nps_transfer *t)
{
	uint8_t transport = transport_of(t->link);
	uint64_t key = (uint64_t)t->bytes * NPS_TRANSPORTS + transport;
	uint32_t at = nps_map__get(&s->size_of, key);
	double large = transport == NPS_TRANSPORT_RDMA ? LARGE_RDMA : LARGE;
	struct size_bucket *bucket;

	if (at == NPS_NONE) {
		bucket = nps_vec__push(&s->sizes);
		if (!bucket || nps_map__put(&s->size_of, key, s->sizes.len - 1))
			return -ENOMEM;
		*bucket = (struct size_bucket){ .size = t->size, .transport = transport };
	} else {
		bucket = &NPS_AT(&s->sizes, struct size_bucket, at);
	}
	bucket->count++;
	bucket->time += t->time;
	traffic[transport].size += t->size;
	traffic[transport].time += t->time;
	traffic[transport].packets++;
	traffic[transport].large += t->size > large;
	return 0;
}

static int part_add_copy(struct nps_comm_stats *s, struct link_traffic *traffic, const struct nps_part *part)
{
	struct nps_transfer t = { .src = part->src,
				  .dst = part->dst,
				  .link = part->link,
				  .bytes = part->size,
				  .size = part->size / MB,
				  .time = (part->end - part->start) / MS };
	int err = off_chip(part) ? count_transfer(s, traffic, &t) : 0;

	return err ? err : nps_matrix__transfer(s->matrix, &t);
}

/*
 * Payloads that follow one another are one transfer, which ends with the wait that closes the group; *AT
 * moves behind it. Returns -ENODATA if the group is not closed.
 */
static int payloads(const struct nps_part *parts, uint32_t *at, bool peer, struct nps_transfer *t)
{
	uint64_t start = parts[*at].start;
	uint32_t close, i = *at;
	uint64_t bytes = 0;

	*t = (struct nps_transfer){ .src = parts[i].src, .dst = parts[i].dst, .link = NPS_NONE };
	for (; i != NPS_NONE && parts[i].kind == NPS_PART_PAYLOAD; i = parts[i].next_of_plane)
		bytes = nps_add_sat(bytes, parts[i].size);
	*at = i;
	close = i;
	for (int n = peer ? LONGEST_GROUP_PEER : LONGEST_GROUP; n > 2 && close != NPS_NONE; n--)
		close = parts[close].next_of_plane;
	if (close == NPS_NONE)
		return -ENODATA;
	*at = parts[close].next_of_plane;
	t->bytes = NPS_MIN(bytes, (uint64_t)INT64_MAX / NPS_TRANSPORTS);
	t->size = bytes / MB;
	t->time = parts[close].end > start ? (parts[close].end - start) / MS : 0;
	return 0;
}

/* Walks a plane; TIMES is NULL unless it is the master. */
static int walk_plane(struct nps_comm_stats *s, const struct plane *plane, const struct nps_part *parts,
		      bool peer, struct link_traffic *traffic, struct comm_times *times)
{
	bool before = true; /* the first transfer */
	uint32_t i = plane->first;
	int err = 0;

	while (!err && i != NPS_NONE) {
		const struct nps_part *part = &parts[i];
		double ms = (part->end - part->start) / MS;

		if (part->kind == NPS_PART_PAYLOAD) {
			struct nps_transfer t;

			if (payloads(parts, &i, peer, &t))
				continue;
			err = count_transfer(s, traffic, &t);
			err = err ? err : nps_matrix__transfer(s->matrix, &t);
			if (times)
				times->transit += t.time;
			before = false;
			continue;
		}
		if (part->kind == NPS_PART_COPY)
			err = part_add_copy(s, traffic, part);
		if (times && off_chip(part)) {
			times->transit += ms;
			before = false;
		}
		if (times && part->kind == NPS_PART_WAIT) {
			times->wait += ms;
			times->synchronization += before ? ms : 0;
		}
		i = part->next_of_plane;
	}
	return err;
}

/* Devices of one process use the same names, but readers distinguish collectives by name and group alone. */
static uint32_t collective_name(const struct nps_comm_stats *s, uint32_t row)
{
	uint32_t name = s->m->comm_op.name[row], device = s->m->comm_op.device[row];

	if (name == NPS_NONE)
		name = s->m->na;
	if (s->m->device.t.len < 2 || device == (uint64_t)s->m->device.id[0])
		return name;
	return nps_strings__addf(s->m->strings, "%s_dev%u", nps_model__text(s->m, name), device);
}

static int time_row(struct nps_comm_stats *s, const struct nps_whole_op *op, const struct comm_times *times)
{
	const struct nps_comm_op_table *from = &s->m->comm_op;
	struct nps_comm_time_table *to = &s->m->comm_time;
	uint64_t start = from->start[op->row], end = from->end[op->row];
	double elapse = end > start ? (end - start) / MS : 0;
	size_t row;
	int err = nps_table__add(&to->t, &row);

	if (err)
		return err;
	to->op[row] = collective_name(s, op->row);
	if (to->op[row] == NPS_NONE)
		return -ENOMEM;
	to->group[row] = op->group;
	to->start[row] = start / 1000.0;
	to->elapse[row] = elapse;
	to->transit[row] = times->transit;
	to->wait[row] = times->wait;
	to->synchronization[row] = times->synchronization;
	to->idle[row] = elapse - times->transit - times->wait;
	to->step[row] = op->step;
	to->type[row] = op->type;
	return 0;
}

/* A row of a size of a transport; BUCKET NULL: the sum alone, as for SDMA. */
static int bandwidth_row(struct nps_comm_stats *s, const struct nps_whole_op *op, uint8_t transport,
			 const struct link_traffic *traffic, const struct size_bucket *bucket)
{
	struct nps_comm_bandwidth_table *to = &s->m->comm_bandwidth;
	size_t row;
	int err = nps_table__add(&to->t, &row);

	if (err)
		return err;
	to->op[row] = collective_name(s, op->row);
	if (to->op[row] == NPS_NONE)
		return -ENOMEM;
	to->group[row] = op->group;
	to->transport[row] = s->texts->transport[transport];
	to->size[row] = traffic->size;
	to->time[row] = traffic->time;
	to->bandwidth[row] = traffic->time != 0 ? nps_round4(traffic->size / 1000 / (traffic->time / 1000))
						: 0;
	to->large_ratio[row] = traffic->packets && transport != NPS_TRANSPORT_SDMA
				       ? nps_round4((double)traffic->large / traffic->packets)
				       : 0;
	to->package[row] = bucket ? bucket->size : 0;
	to->count[row] = bucket ? bucket->count : 0;
	to->total[row] = bucket ? bucket->time : 0;
	to->step[row] = op->step;
	to->type[row] = op->type;
	return 0;
}

static int bandwidth_rows(struct nps_comm_stats *s, const struct nps_whole_op *op,
			  struct link_traffic *traffic)
{
	struct link_traffic *sdma = &traffic[NPS_TRANSPORT_SDMA];
	uint64_t unclassified = sdma->packets;
	int err = 0;

	sdma->size += traffic[NPS_TRANSPORT_HCCS].size + traffic[NPS_TRANSPORT_PCIE].size +
		      traffic[NPS_TRANSPORT_SIO].size;
	sdma->time += traffic[NPS_TRANSPORT_HCCS].time + traffic[NPS_TRANSPORT_PCIE].time +
		      traffic[NPS_TRANSPORT_SIO].time;
	sdma->packets += traffic[NPS_TRANSPORT_HCCS].packets + traffic[NPS_TRANSPORT_PCIE].packets +
			 traffic[NPS_TRANSPORT_SIO].packets;
	for (uint8_t transport = 0; !err && transport < NPS_TRANSPORTS; transport++) {
		if (!traffic[transport].packets)
			continue;
		for (size_t i = 0; !err && i < s->sizes.len; i++) {
			const struct size_bucket *bucket = &NPS_AT(&s->sizes, struct size_bucket, i);

			if (bucket->transport == transport)
				err = bandwidth_row(s, op, transport, &traffic[transport], bucket);
		}
		if (err || transport != NPS_TRANSPORT_SDMA || unclassified)
			continue;
		err = bandwidth_row(s, op, transport, &traffic[transport], NULL);
	}
	return err;
}

int nps_comm_stats__op(struct nps_comm_stats *s, const struct nps_whole_op *op, struct nps_part *parts)
{
	struct link_traffic traffic[NPS_TRANSPORTS] = { 0 };
	struct comm_times times = { 0 };
	size_t master;
	int err;

	reset(&s->plane_of, &s->planes);
	reset(&s->size_of, &s->sizes);
	err = chain_planes(s, op, parts);
	if (err)
		return err;
	master = master_plane(s);
	for (size_t i = 0; !err && i < s->planes.len; i++)
		err = walk_plane(s, &NPS_AT(&s->planes, struct plane, i), parts, op->peer, traffic,
				 i == master ? &times : NULL);
	if (err)
		return err;
	err = time_row(s, op, &times);
	if (err)
		return err;
	err = bandwidth_rows(s, op, traffic);
	return err ? err : nps_matrix__op(s->matrix, op);
}
