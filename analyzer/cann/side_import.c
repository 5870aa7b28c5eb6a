/* SPDX-License-Identifier: BSD-2-Clause */
#include "cann/side.h"
#include "cann/side_read.h"

#include "schema/table.h"

#include <stddef.h>

/* Tables whose rows come from several files or devices, and what they are in the order of. */
#define OF(field, column, host)                                                                              \
	{                                                                                                    \
		offsetof(struct nps_model, field), offsetof(struct nps_model, field.column), host            \
	}
#define BY(field, column) OF(field, column, false)
#define OF_HOST(field, column) OF(field, column, true)

static const struct ordered {
	size_t table, column;
	bool host; /* no directory of a device fills it */
} ordered[] = {
	BY(hbm, timestamp),
	BY(llc, timestamp),
	BY(ddr, timestamp),
	BY(npu_mem, timestamp),
	BY(npu_module_mem, timestamp),
	BY(npu_op_mem, timestamp),
	BY(frequency, timestamp),
	BY(voltage, timestamp),
	BY(soc_level, timestamp),
	BY(acc_pmu, timestamp),
	BY(hccs, timestamp),
	BY(pcie, timestamp),
	BY(nic, timestamp),
	BY(roce, timestamp),
	BY(netdev, timestamp),
	BY(qos, timestamp),
	BY(sio, timestamp),
	BY(ub, timestamp),
	BY(chip_trans, timestamp),
	BY(sample_pmu, timestamp),
	OF_HOST(cpu_usage, timestamp),
	OF_HOST(host_mem, timestamp),
	OF_HOST(host_disk, timestamp),
	OF_HOST(host_network, timestamp),
	OF_HOST(osrt, start),
	BY(aicpu, timestamp),
	BY(aicpu_mi, start),
	BY(dp, timestamp),
};

static void order_all(struct nps_side *side)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(ordered) && !side->err; i++) {
		struct nps_table *table = (struct nps_table *)((char *)side->model + ordered[i].table);
		size_t cells = ordered[i].column - ordered[i].table - sizeof(*table);

		side->err = nps_table__order(table, cells / sizeof(void *));
	}
}

/*
 * Records of module memory have times in counts of the host's clock. The host's own files relate these to
 * its raw clock, and the start_info of a device relates that to the device's times.
 */
static void set_host_clock(struct nps_side *side)
{
	const struct nps_cann_dir *host = side->host, *dir = side->dir;
	const struct nps_cann_clock *raw = &dir->host_raw_clock;

	int64_t wall;

	side->host_clock = dir->host_clock;
	if (!host || !host->host_clock.known || !raw->known)
		return;
	side->host_clock = host->host_clock;
	side->host_clock.known = !__builtin_sub_overflow(raw->zero, host->host_raw_clock.zero, &wall) &&
				 !__builtin_add_overflow(host->host_clock.zero, wall, &side->host_clock.zero);
}

static void read_dir(struct nps_side *side, const struct nps_cann_dir *dir)
{
	side->dir = dir;
	if (side->err || !dir->files.n)
		return;
	side->err = nps_side_config__read(&side->config, side->model, dir);
	set_host_clock(side);
	if (dir == side->host) {
		nps_side__operators(side);
		nps_side__host(side);
		nps_side__calls(side);
	} else {
		nps_side__memory(side);
		nps_side__links(side);
		nps_side__chip(side);
		nps_side__aicpu(side);
	}
	nps_side__system(side);
}

int nps_cann_side__import(struct nps_model *model, struct nps_dictionary *names,
			  const struct nps_cann_dir *host, const struct nps_cann_dir *devices,
			  size_t ndevices, const struct nps_side_session *session)
{
	struct nps_side side = { .model = model, .names = names, .host = host, .session = session };

	nps_vec__init(&side.lasts, model->tmpfd, sizeof(struct nps_side_last));
	if (host)
		read_dir(&side, host);
	for (size_t i = 0; i < ndevices; i++)
		read_dir(&side, &devices[i]);
	order_all(&side);
	nps_vec__free(&side.lasts);
	nps_map__free(&side.of);
	return side.err;
}

int nps_cann_side__aicpu(struct nps_model *model, const struct nps_cann_dir *dir)
{
	struct nps_side side = { .model = model, .dir = dir };

	nps_vec__init(&side.lasts, model->tmpfd, sizeof(struct nps_side_last));
	nps_side__aicpu(&side);
	order_all(&side);
	nps_vec__free(&side.lasts);
	nps_map__free(&side.of);
	return side.err;
}

int nps_cann_side__clip(struct nps_model *model, uint64_t from, uint64_t to)
{
	int err = 0;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(ordered) && !err; i++) {
		struct nps_table *table = (struct nps_table *)((char *)model + ordered[i].table);
		size_t cells = ordered[i].column - ordered[i].table - sizeof(*table);

		/* A call that began before the capture is part of it. */
		if (!ordered[i].host)
			err = nps_table__clip(table, cells / sizeof(void *), from, to);
	}
	return err;
}
