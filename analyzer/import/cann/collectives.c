/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/collectives.h"

#include "import/common/group_hash.h"

#include <errno.h>

#define INVALID 65535

/* What one stream has run of a call. */
struct comm_lane {
	uint64_t start; /* of the latest task */
	uint32_t launch; /* row of the latest launch */
	uint32_t run;
};

static struct nps_host_collective *open_collective_at(const struct nps_collectives *c, size_t i)
{
	return &NPS_AT(&c->capture->collectives, struct nps_host_collective, i);
}

/* Counts a row; nearly all come in order of time, so at times the rows before it are released from memory. */
static void rows_step(struct nps_collectives *c)
{
	if (++c->steps & (NPS_TABLE_HOT - 1))
		return;
	nps_vec__cool(&c->capture->collectives);
	nps_vec__cool(&c->capture->parts);
	nps_vec__cool(&c->lanes);
}

/* A group without a name is its hash. */
static void collective_name_group(struct nps_collectives *c, struct nps_collective *call)
{
	struct nps_cann_capture *capture = c->capture;

	call->numbered_with = nps_hash2(call->hash, call->device);
	if (call->hash)
		call->group = nps_dictionary__name(&capture->names, call->hash);
	if (nps_dictionary__has(&capture->names, call->hash))
		call->hash = nps_group_hash(
			nps_model__text(capture->model, nps_dictionary__name(&capture->names, call->hash)));
}

int nps_collectives__begin(struct nps_collectives *c, struct nps_cann_capture *capture)
{
	c->capture = capture;
	nps_vec__init(&c->lanes, capture->model->tmpfd, sizeof(struct comm_lane));
	for (size_t i = 0; i < capture->collectives.len; i++) {
		collective_name_group(c, &open_collective_at(c, i)->run);
		rows_step(c);
	}
	return nps_collectives__number(&capture->collectives, NULL);
}

void nps_collectives__free(struct nps_collectives *c)
{
	if (!c->capture)
		return;
	nps_vec__free(&c->lanes);
	nps_map__free(&c->lane_of);
}

/*
 * Whether the task that runs HOST, which is PART, at START begins another run of its call. It does if this
 * run has that task already. A graph's stream runs what was launched in order: where the order goes back
 * the graph was executed again, even if the log of the task that began it was lost. 1 or 0, negative errno.
 */
static int begins_run(struct nps_collectives *c, const struct nps_host_task *host,
		      const struct nps_part_info *part, uint64_t start)
{
	const struct nps_launch *launch = &NPS_AT(&c->capture->launches, struct nps_launch, host->launch);
	uint64_t key = (uint64_t)part->op << 32 | launch->stream;
	uint32_t run = nps_capture__collective(c->capture, open_collective_at(c, part->op)->latest)->run, i;
	bool begins = part->runs == run + 1;
	struct comm_lane *lane;

	if (launch->model == NPS_NO_ID)
		return begins;
	i = nps_map__get(&c->lane_of, key);
	if (i == NPS_NONE) {
		lane = nps_vec__push(&c->lanes);
		if (!lane || nps_map__put(&c->lane_of, key, c->lanes.len - 1))
			return -ENOMEM;
	} else {
		lane = &NPS_AT(&c->lanes, struct comm_lane, i);
		begins = begins || (lane->run == run && host->launch < lane->launch && start > lane->start);
	}
	*lane = (struct comm_lane){ start, host->launch, run + begins };
	return begins;
}

/* Begins the next run of CALL. 0 or negative errno. */
static int collective_next_run(struct nps_collectives *c, uint32_t call)
{
	struct nps_host_collective *next = nps_vec__push(&c->capture->collectives);

	if (!next)
		return -ENOMEM;
	next->run = *nps_capture__collective(c->capture, open_collective_at(c, call)->latest);
	next->run.run++;
	next->run.start = next->run.end = 0;
	next->run.measured = 0;
	next->run.master = false;
	open_collective_at(c, call)->latest = c->capture->collectives.len - 1;
	return 0;
}

static uint32_t enum_of(uint32_t value, uint32_t most)
{
	return value <= most || value == 255 ? value : INVALID;
}

/*
 * Counts the run of PART into that of its call; *RUN: its row. The number of the part's run decides nothing,
 * as logs may be lost. 0 or negative errno.
 */
static int assign(struct nps_collectives *c, uint32_t task, const struct nps_host_task *host,
		  struct nps_part_info *part, uint32_t *run)
{
	uint64_t start = c->capture->model->task.start[task], end = c->capture->model->task.end[task];
	struct nps_collective *latest;
	int err = begins_run(c, host, part, start);

	if (err > 0)
		err = collective_next_run(c, part->op);
	if (err)
		return err;
	*run = open_collective_at(c, part->op)->latest;
	latest = nps_capture__collective(c->capture, *run);
	part->runs = latest->run + 1;
	nps_collective__add_time(latest, start, end, true, part->master);
	return 0;
}

int nps_collectives__part(struct nps_collectives *c, uint32_t task, const struct nps_host_task *host)
{
	struct nps_cann_capture *capture = c->capture;
	struct nps_model *m = capture->model;
	struct nps_part_info *part = &NPS_AT(&capture->parts, struct nps_part_info, host->part);
	uint64_t start = m->task.start[task], end = m->task.end[task];
	struct nps_comm_task_row row = nps_comm_task__unknown(m, task);
	int err = assign(c, task, host, part, &row.op);

	if (err)
		return err;
	row.master = part->master;
	if (part->known) {
		row.type = part->name;
		row.plane = part->plane;
		row.notify = NPS_MIN(part->notify, (uint64_t)NPS_NO_NOTIFY);
		row.rdma_type = enum_of(part->rdma, 5);
		row.src = part->local;
		row.dst = part->remote;
		row.transport = enum_of(part->transport, 4);
		row.size = part->bytes;
		row.dtype = enum_of(part->dtype, 17);
		row.link = enum_of(part->link, 8);
		row.bandwidth = end > start ? part->bytes * 1e9 / (end - start) : NPS_NAN;
		row.estimate = part->estimate;
	}
	rows_step(c);
	return nps_comm_task_table__add(&m->comm_task, &row);
}

int nps_collectives__finish(struct nps_collectives *c)
{
	uint64_t unseen;
	int err;

	nps_vec__cool(&c->capture->collectives);
	nps_vec__cool(&c->capture->parts);
	nps_vec__cool(&c->lanes);
	err = nps_collectives__fill(c->capture->model, &c->capture->collectives, 0, &unseen);
	nps_model__lost(c->capture->model, unseen, "collectives that never ran");
	return err;
}
