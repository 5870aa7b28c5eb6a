/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of the host's counters (outputs 3.4): the highest use, and what the vendor recommends to have,
 * which is a quarter more than the 98th percentile of all use.
 */
#include "base/map.h"
#include "export/counter_csv.h"
#include "export/table.h"

#include <errno.h>
#include <stdlib.h>

#define PERCENTILE 0.98
#define HEADROOM 0.8

/* --- the most and the recommended of a column of samples --- */

struct used {
	double peak, recommend; /* 0: nothing was used */
};

static int find_used(const struct nps_model *m, const double *samples, size_t len, struct used *used)
{
	struct nps_pace pace = { .model = m };
	struct nps_vec positive;
	int err = 0;

	*used = (struct used){ 0 };
	nps_vec__init(&positive, m->tmpfd, sizeof(double));
	for (size_t i = 0; !err && i < len; i++, nps_pace__step(&pace)) {
		double *to;

		if (!(samples[i] > 0) || !isfinite(samples[i]))
			continue;
		to = nps_vec__push(&positive);
		err = to ? 0 : -ENOMEM;
		if (to)
			*to = samples[i];
	}
	if (err || !positive.len)
		goto out;
	qsort(positive.data, positive.len, sizeof(double), nps_by_double);
	used->peak = NPS_AT(&positive, double, positive.len - 1);
	used->recommend = NPS_AT(&positive, double, (size_t)ceil((positive.len - 1) * PERCENTILE)) / HEADROOM;
out:
	nps_vec__free(&positive);
	return err;
}

/* What the host has, NaN: not known. */
static double host_memory(const struct nps_model *m)
{
	return m->host.t.len && m->host.memory[0] > 0 ? m->host.memory[0] : NPS_NAN;
}

static double network(const struct nps_model *m)
{
	return m->host.t.len && m->host.network[0] > 0 ? m->host.network[0] : NPS_NAN;
}

/* --- cpu, memory, disk, network --- */

/* The content of these tables' one row, which is of no device. NaN, of `memory` and `cpus` 0: not known. */
struct usage {
	double network;
	struct used used, written;
	uint64_t memory, cpus, cpus_seen, cpus_busy;
};

#define USAGE(title, format, member, ...) NPS_CSV_FIELD(title, format, struct usage, member, ##__VA_ARGS__)

static const struct nps_csv_column cpu_columns[] = {
	NPS_CSV_HOST_ID,
	USAGE("Total Cpu Numbers", NUMBER_NOT_0, cpus),
	USAGE("Occupied Cpu Numbers", NUMBER, cpus_seen),
	USAGE("Recommend Cpu Numbers", NUMBER, cpus_busy),
};

static const struct nps_csv_column mem_columns[] = {
	NPS_CSV_HOST_ID,
	USAGE("Total Memory(KB)", NUMBER_NOT_0, memory),
	USAGE("Peak Used Memory(KB)", DECIMAL_INT_0, used.peak),
	USAGE("Recommend Memory(KB)", DECIMAL_INT_0, used.recommend),
};

static const struct nps_csv_column disk_columns[] = {
	NPS_CSV_HOST_ID,
	USAGE("Peak Disk Read(KB/s)", DECIMAL_INT_0, used.peak, .per = NPS_KB),
	USAGE("Recommend Disk Read(KB/s)", DECIMAL_INT_0, used.recommend, .per = NPS_KB),
	USAGE("Peak Disk Write(KB/s)", DECIMAL_INT_0, written.peak, .per = NPS_KB),
	USAGE("Recommend Disk Write(KB/s)", DECIMAL_INT_0, written.recommend, .per = NPS_KB),
};

static const struct nps_csv_column network_columns[] = {
	NPS_CSV_HOST_ID,
	USAGE("Netcard Speed(KB/s)", FINE, network, .per = NPS_KB),
	USAGE("Peak Used Speed(KB/s)", FINE, used.peak, .per = NPS_KB),
	USAGE("Recommend Speed(KB/s)", FINE, used.recommend, .per = NPS_KB),
};

static int write_usage(const struct nps_export *ex, int dirfd, const struct nps_csv_table *table,
		       const struct usage *usage)
{
	return nps_csv_table__write(ex, dirfd, table,
				    &(struct nps_csv_input){ .sources[0].structs = usage, .len = 1 });
}

struct host_cpus {
	struct nps_map of; /* text -> 1: was busy, 0: was seen */
	size_t seen, busy;
};

static int model_count_cpus(const struct nps_model *m, struct host_cpus *cpus)
{
	const struct nps_cpu_usage_table *t = &m->cpu_usage;
	struct nps_pace pace = { .model = m };
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace)) {
		uint32_t before;

		if (!strcmp(nps_model__text(m, t->cpu[i]), "Avg"))
			continue;
		before = nps_map__get(&cpus->of, t->cpu[i]);
		if (before == 1 || (before == 0 && !(t->usage[i] > 0)))
			continue;
		cpus->seen += before == NPS_NONE;
		cpus->busy += t->usage[i] > 0;
		err = nps_map__put(&cpus->of, t->cpu[i], t->usage[i] > 0);
	}
	return err;
}

static int write_host_cpu(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "host_cpu_usage",
						    .columns = NPS_CSV_COLUMNS(cpu_columns) };
	const struct nps_model *m = ex->model;
	struct host_cpus cpus = { 0 };
	int err;

	if (!m->cpu_usage.t.len)
		return 0;
	err = model_count_cpus(m, &cpus);
	nps_map__free(&cpus.of);
	if (err)
		return err;
	return write_usage(ex, dirfd, &table,
			   &(struct usage){ .cpus = m->host.t.len ? m->host.cpus[0] : 0,
					    .cpus_seen = cpus.seen,
					    .cpus_busy = cpus.busy });
}

static int host_mem(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "host_mem_usage",
						    .columns = NPS_CSV_COLUMNS(mem_columns) };
	const struct nps_model *m = ex->model;
	struct usage usage = { 0 };
	double total = host_memory(m);
	int err;

	if (!m->host_mem.t.len)
		return 0;
	err = find_used(m, m->host_mem.usage, m->host_mem.t.len, &usage.used);
	if (err)
		return err;
	usage.memory = total > 0 ? (uint64_t)NPS_MIN(total, 1e18) : 0;
	/* samples are percentages */
	usage.used.peak = usage.used.peak * total / 100;
	usage.used.recommend = usage.used.recommend * total / 100;
	return write_usage(ex, dirfd, &table, &usage);
}

static int write_host_disk(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "host_disk_usage",
						    .columns = NPS_CSV_COLUMNS(disk_columns) };
	const struct nps_model *m = ex->model;
	struct usage usage = { 0 };
	int err;

	if (!m->host_disk.t.len)
		return 0;
	err = find_used(m, m->host_disk.read, m->host_disk.t.len, &usage.used);
	if (err)
		return err;
	err = find_used(m, m->host_disk.write, m->host_disk.t.len, &usage.written);
	return err ? err : write_usage(ex, dirfd, &table, &usage);
}

static int write_host_network(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "host_network_usage",
						    .columns = NPS_CSV_COLUMNS(network_columns) };
	const struct nps_model *m = ex->model;
	struct usage usage = { .network = network(m) };
	int err;

	if (!m->host_network.t.len)
		return 0;
	err = find_used(m, m->host_network.speed, m->host_network.t.len, &usage.used);
	return err ? err : write_usage(ex, dirfd, &table, &usage);
}

int nps_counter__host(const struct nps_export *ex, int dirfd)
{
	static nps_csv_write_fn *const tables[] = { write_host_cpu, host_mem, write_host_disk,
						    write_host_network, nps_counter__os };

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}

/* --- the whole system, msprof's layout --- */

/* As the vendor numbers and names them; another one is its number. */
static void put_engine(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	static const char *const names[] = { "VDEC", "JPEGD", "PNGD", "JPEGE", "VPC", "VENC", "SCD" };
	uint32_t type = csv->model->dvpp.engine_type[row->at[0]];

	(void)ctx;
	if (type < NPS_ARRAY_SIZE(names))
		nps_csv__lit(csv, names[type]);
	else
		nps_csv__u64(csv, type);
}

static const struct nps_csv_column dvpp_columns[] = {
	NPS_CSV_DEVICE_ID(dvpp),
	NPS_CSV_COL("Dvpp Id", NUMBER, dvpp, id),
	NPS_CSV_BY("Engine Type", put_engine),
	NPS_CSV_COL("Engine ID", NUMBER, dvpp, engine),
	NPS_CSV_COL("All Time(us)", REPR, dvpp, time),
	NPS_CSV_COL("All Frame", REPR, dvpp, frames),
	NPS_CSV_COL("All Utilization(%)", REPR, dvpp, utilization),
};

static const struct nps_csv_column cpu_share_columns[] = {
	NPS_CSV_DEVICE_ID(cpu_share),
	NPS_CSV_COL("Cpu Type", TEXT, cpu_share, type),
	NPS_CSV_COL("User(%)", FIXED, cpu_share, user),
	NPS_CSV_COL("Sys(%)", FIXED, cpu_share, sys),
	NPS_CSV_COL("IoWait(%)", FIXED, cpu_share, iowait),
	NPS_CSV_COL("Irq(%)", FIXED, cpu_share, irq),
	NPS_CSV_COL("Soft(%)", FIXED, cpu_share, soft),
	NPS_CSV_COL("Idle(%)", FIXED, cpu_share, idle),
};

static const struct nps_csv_column process_cpu_columns[] = {
	NPS_CSV_DEVICE_ID(process_cpu),
	NPS_CSV_COL("PID", NUMBER, process_cpu, pid),
	NPS_CSV_COL("Name", TEXT, process_cpu, name),
	NPS_CSV_COL("CPU(%)", DECIMAL, process_cpu, cpu),
};

static const struct nps_csv_column sys_mem_columns[] = {
	NPS_CSV_DEVICE_ID(sys_mem),
	NPS_CSV_COL("Memory Total(kB)", NUMBER, sys_mem, total),
	NPS_CSV_COL("Memory Free(kB)", NUMBER, sys_mem, free),
	NPS_CSV_COL("Buffers(kB)", NUMBER, sys_mem, buffers),
	NPS_CSV_COL("Cached(kB)", NUMBER, sys_mem, cached),
	NPS_CSV_COL("Share Memory(kB)", NUMBER, sys_mem, shared),
	NPS_CSV_COL("Commit Limit(kB)", NUMBER, sys_mem, commit_limit),
	NPS_CSV_COL("Committed AS(kB)", NUMBER, sys_mem, committed),
	NPS_CSV_COL("Huge Pages Total(pages)", NUMBER, sys_mem, huge_total),
	NPS_CSV_COL("Huge Pages Free(pages)", NUMBER, sys_mem, huge_free),
};

static const struct nps_csv_column process_mem_columns[] = {
	NPS_CSV_DEVICE_ID(process_mem),
	NPS_CSV_COL("PID", NUMBER, process_mem, pid),
	NPS_CSV_COL("Name", TEXT, process_mem, name),
	NPS_CSV_COL("Size(pages)", NUMBER, process_mem, size),
	NPS_CSV_COL("Resident(pages)", NUMBER, process_mem, resident),
	NPS_CSV_COL("Shared(pages)", NUMBER, process_mem, shared),
};

int nps_counter__system(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table tables[] = {
		{ "dvpp", NPS_CSV_OF(dvpp, dvpp_columns) },
		{ "cpu_usage", NPS_CSV_OF(cpu_share, cpu_share_columns) },
		{ "process_cpu_usage", NPS_CSV_OF(process_cpu, process_cpu_columns) },
		{ "sys_mem", NPS_CSV_OF(sys_mem, sys_mem_columns) },
		{ "process_mem", NPS_CSV_OF(process_mem, process_mem_columns) },
	};

	return nps_csv_tables__write(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}
