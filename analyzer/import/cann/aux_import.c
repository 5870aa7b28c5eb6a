/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/aux_files.h"
#include "import/cann/aux_read.h"

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

static void order_all(struct nps_aux *aux)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(ordered) && !aux->err; i++) {
		struct nps_table *table = (struct nps_table *)((char *)aux->model + ordered[i].table);
		size_t cells = ordered[i].column - ordered[i].table - sizeof(*table);

		aux->err = nps_table__order(table, cells / sizeof(void *));
	}
}

/*
 * Records of module memory have times in counts of the host's clock. The host's own files relate these to
 * its raw clock, and the start_info of a device relates that to the device's times.
 */
static void set_host_clock(struct nps_aux *aux)
{
	const struct nps_cann_dir *host = aux->host, *dir = aux->dir;
	const struct nps_cann_clock *raw = &dir->host_raw_clock;

	int64_t wall;

	aux->host_clock = dir->host_clock;
	if (!host || !host->host_clock.known || !raw->known)
		return;
	aux->host_clock = host->host_clock;
	aux->host_clock.known = !__builtin_sub_overflow(raw->zero, host->host_raw_clock.zero, &wall) &&
				!__builtin_add_overflow(host->host_clock.zero, wall, &aux->host_clock.zero);
}

static void read_dir(struct nps_aux *aux, const struct nps_cann_dir *dir)
{
	aux->dir = dir;
	if (aux->err || !dir->files.n)
		return;
	aux->err = nps_aux_config__read(&aux->config, aux->model, dir);
	set_host_clock(aux);
	if (dir == aux->host) {
		nps_aux__operators(aux);
		nps_aux__host(aux);
		nps_aux__calls(aux);
	} else {
		nps_aux__memory(aux);
		nps_aux__links(aux);
		nps_aux__chip(aux);
		nps_aux__aicpu(aux);
	}
	nps_aux__system(aux);
}

int nps_cann_aux__import(struct nps_model *model, struct nps_dictionary *names,
			 const struct nps_cann_dir *host, const struct nps_cann_dir *devices, size_t ndevices,
			 const struct nps_aux_session *session)
{
	struct nps_aux aux = { .model = model, .names = names, .host = host, .session = session };

	nps_vec__init(&aux.lasts, model->tmpfd, sizeof(struct nps_aux_last));
	if (host)
		read_dir(&aux, host);
	for (size_t i = 0; i < ndevices; i++)
		read_dir(&aux, &devices[i]);
	order_all(&aux);
	nps_vec__free(&aux.lasts);
	nps_map__free(&aux.of);
	return aux.err;
}

int nps_cann_aux__aicpu(struct nps_model *model, const struct nps_cann_dir *dir)
{
	struct nps_aux aux = { .model = model, .dir = dir };

	nps_vec__init(&aux.lasts, model->tmpfd, sizeof(struct nps_aux_last));
	nps_aux__aicpu(&aux);
	order_all(&aux);
	nps_vec__free(&aux.lasts);
	nps_map__free(&aux.of);
	return aux.err;
}

int nps_cann_aux__clip(struct nps_model *model, uint64_t from, uint64_t to)
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
