/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of the host's counters (outputs 3.4): what was used at most and what the vendor recommends to have, which is a
 * quarter more than the 98th percentile of what was used at all.
 */
#include "base/map.h"
#include "export/counter_csv.h"

#include <errno.h>
#include <stdlib.h>

#define KB 1024.0
#define PERCENTILE 0.98
#define HEADROOM 0.8

/* --- the most and the recommended of a column of samples --- */

struct used {
	double peak, recommend; /* 0: nothing was used */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

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
	if (!err && positive.data) {
		const double *sorted = positive.data;

		qsort(positive.data, positive.len, sizeof(double), by_value);
		used->peak = sorted[positive.len - 1];
		used->recommend = sorted[(size_t)ceil((positive.len - 1) * PERCENTILE)] / HEADROOM;
	}
	nps_vec__free(&positive);
	return err;
}

/* What the host has, and 0 for what nobody knows. */
static double memory(const struct nps_model *m)
{
	return m->host.t.len && m->host.memory[0] > 0 ? m->host.memory[0] : 0;
}

static double network(const struct nps_model *m)
{
	return m->host.t.len && m->host.network[0] > 0 ? m->host.network[0] : 0;
}

static double or_na(double value, bool known)
{
	return known ? value : NAN;
}

/* An amount: nothing is written as an integer. */
static void put_amount(struct nps_csv *csv, double value)
{
	if (value == 0)
		nps_csv__lit(csv, "0");
	else
		nps_counter__cell(csv, value);
}

/* --- cpu, memory, disk, network --- */

/* The table STEM with its one row begun, which is about no device. NULL: no memory. */
static struct nps_csv *only_row(const struct nps_export *ex, int dirfd, const char *stem, const char *header)
{
	const struct nps_csv_file file = {
		.stem = stem, .header = header, .stamped = nps_counter__stamped(ex), .device = true
	};
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	if (csv) {
		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
	}
	return csv;
}

struct cpus {
	struct nps_map of; /* text -> 1: was busy, 0: was seen */
	size_t seen, busy;
};

static int count_cpus(const struct nps_model *m, struct cpus *cpus)
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

static int host_cpu(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	uint32_t total = m->host.t.len ? m->host.cpus[0] : 0;
	struct cpus cpus = { 0 };
	struct nps_csv *csv;
	int err;

	if (!m->cpu_usage.t.len)
		return 0;
	err = count_cpus(m, &cpus);
	nps_map__free(&cpus.of);
	if (err)
		return err;
	csv = only_row(ex, dirfd, "host_cpu_usage",
		       "Total Cpu Numbers,Occupied Cpu Numbers,Recommend Cpu Numbers");
	if (!csv)
		return -ENOMEM;
	if (total)
		nps_csv__u64(csv, total);
	else
		nps_csv__lit(csv, "N/A");
	nps_csv__u64(csv, cpus.seen);
	nps_csv__u64(csv, cpus.busy);
	nps_csv__end(csv);
	return nps_csv__close(csv);
}

static int host_mem(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	double total = memory(m);
	struct nps_csv *csv;
	struct used used;
	int err;

	if (!m->host_mem.t.len)
		return 0;
	err = find_used(m, m->host_mem.usage, m->host_mem.t.len, &used);
	if (err)
		return err;
	csv = only_row(ex, dirfd, "host_mem_usage",
		       "Total Memory(KB),Peak Used Memory(KB),Recommend Memory(KB)");
	if (!csv)
		return -ENOMEM;
	if (total > 0)
		nps_csv__u64(csv, (uint64_t)NPS_MIN(total, 1e18));
	else
		nps_csv__lit(csv, "N/A");
	put_amount(csv, or_na(used.peak * total / 100, total > 0));
	put_amount(csv, or_na(used.recommend * total / 100, total > 0));
	nps_csv__end(csv);
	return nps_csv__close(csv);
}

static int host_disk(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct used read, write;
	struct nps_csv *csv;
	int err;

	if (!m->host_disk.t.len)
		return 0;
	err = find_used(m, m->host_disk.read, m->host_disk.t.len, &read);
	if (!err)
		err = find_used(m, m->host_disk.write, m->host_disk.t.len, &write);
	if (err)
		return err;
	csv = only_row(ex, dirfd, "host_disk_usage",
		       "Peak Disk Read(KB/s),Recommend Disk Read(KB/s),Peak Disk Write(KB/s),"
		       "Recommend Disk Write(KB/s)");
	if (!csv)
		return -ENOMEM;
	put_amount(csv, read.peak / KB);
	put_amount(csv, read.recommend / KB);
	put_amount(csv, write.peak / KB);
	put_amount(csv, write.recommend / KB);
	nps_csv__end(csv);
	return nps_csv__close(csv);
}

static int host_network(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct nps_csv *csv;
	struct used used;
	int err;

	if (!m->host_network.t.len)
		return 0;
	err = find_used(m, m->host_network.speed, m->host_network.t.len, &used);
	if (err)
		return err;
	csv = only_row(ex, dirfd, "host_network_usage",
		       "Netcard Speed(KB/s),Peak Used Speed(KB/s),Recommend Speed(KB/s)");
	if (!csv)
		return -ENOMEM;
	nps_counter__fine(csv, or_na(network(m) / KB, network(m) > 0));
	nps_counter__fine(csv, used.peak / KB);
	nps_counter__fine(csv, used.recommend / KB);
	nps_csv__end(csv);
	return nps_csv__close(csv);
}

int nps_counter__host(const struct nps_export *ex, int dirfd)
{
	int err = host_cpu(ex, dirfd);

	if (!err)
		err = host_mem(ex, dirfd);
	if (!err)
		err = host_disk(ex, dirfd);
	if (!err)
		err = host_network(ex, dirfd);
	return err ? err : nps_counter__os(ex, dirfd);
}

/* --- the whole system, msprof's layout --- */

static int cpu_usage(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "cpu_usage",
					   .header =
						   "Cpu Type,User(%),Sys(%),IoWait(%),Irq(%),Soft(%),Idle(%)",
					   .stamped = true,
					   .device = true };
	const struct nps_cpu_share_table *t = &ex->model->cpu_share;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		const double shares[] = { t->user[i], t->sys[i],  t->iowait[i],
					  t->irq[i],  t->soft[i], t->idle[i] };

		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__text(csv, t->type[i]);
		for (size_t k = 0; k < NPS_ARRAY_SIZE(shares); k++) {
			if (isnan(shares[k]))
				nps_csv__lit(csv, "N/A");
			else
				nps_csv__milli(csv, nps_thousandths(shares[k]));
		}
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static int process_cpu(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "process_cpu_usage", .header = "PID,Name,CPU(%)", .stamped = true, .device = true
	};
	const struct nps_process_cpu_table *t = &ex->model->process_cpu;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__u64(csv, t->pid[i]);
		nps_csv__text(csv, t->name[i]);
		nps_counter__cell(csv, t->cpu[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static int sys_mem(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "sys_mem",
		.header = "Memory Total(kB),Memory Free(kB),Buffers(kB),Cached(kB),Share Memory(kB),"
			  "Commit Limit(kB),Committed AS(kB),Huge Pages Total(pages),Huge Pages Free(pages)",
		.stamped = true,
		.device = true
	};
	const struct nps_sys_mem_table *t = &ex->model->sys_mem;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		const uint64_t cells[] = { t->total[i],	    t->free[i],	      t->buffers[i],
					   t->cached[i],    t->shared[i],     t->commit_limit[i],
					   t->committed[i], t->huge_total[i], t->huge_free[i] };

		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		for (size_t k = 0; k < NPS_ARRAY_SIZE(cells); k++)
			nps_csv__u64(csv, cells[k]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static int process_mem(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "process_mem",
					   .header = "PID,Name,Size(pages),Resident(pages),Shared(pages)",
					   .stamped = true,
					   .device = true };
	const struct nps_process_mem_table *t = &ex->model->process_mem;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__u64(csv, t->pid[i]);
		nps_csv__text(csv, t->name[i]);
		nps_csv__u64(csv, t->size[i]);
		nps_csv__u64(csv, t->resident[i]);
		nps_csv__u64(csv, t->shared[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_counter__system(const struct nps_export *ex, int dirfd)
{
	int err = cpu_usage(ex, dirfd);

	if (!err)
		err = process_cpu(ex, dirfd);
	if (!err)
		err = sys_mem(ex, dirfd);
	return err ? err : process_mem(ex, dirfd);
}
