/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of sampled counters (outputs 3.4). Most say in a few lines what the samples were in the least, the most and the
 * mean, for each device: one walk over the samples fills a few groups.
 */
#include "base/map.h"
#include "export/counter_csv.h"
#include "export/csv_pmu.h"
#include "export/port_rates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MB 1048576.0
#define STATS 7
#define NO_MINIMUM 999999.0 /* MB/s: 0xFFFFF B/us, PCIe had no transfer to measure */
#define WRITE (1U << 31) /* of a group's id: what was written, not read */

struct stat {
	double sum, least, most;
	uint64_t count;
};

struct group {
	uint32_t device, id;
	struct stat stat[STATS];
};

struct groups {
	struct nps_vec rows; /* struct group */
	struct nps_map of; /* device and id -> row */
	struct nps_pace pace;
};

static void groups_init(struct groups *g, const struct nps_model *m)
{
	*g = (struct groups){ .pace = { .model = m } };
	nps_vec__init(&g->rows, m->tmpfd, sizeof(struct group));
}

static void groups_free(struct groups *g)
{
	nps_vec__free(&g->rows);
	nps_map__free(&g->of);
}

/* The group of a sample; NULL: no memory. */
static struct group *group_of(struct groups *g, uint32_t device, uint32_t id)
{
	uint64_t key = (uint64_t)device << 32 | id;
	uint32_t row = nps_map__get(&g->of, key);
	struct group *group;

	nps_pace__step(&g->pace);
	if (row != NPS_NONE)
		return &NPS_AT(&g->rows, struct group, row);
	group = nps_vec__push(&g->rows);
	if (!group || nps_map__put(&g->of, key, g->rows.len - 1))
		return NULL;
	group->device = device;
	group->id = id;
	return group;
}

static void see(struct stat *stat, double least, double most, double mean)
{
	if (!isfinite(least) || !isfinite(most) || !isfinite(mean))
		return;
	stat->least = stat->count ? NPS_MIN(stat->least, least) : least;
	stat->most = stat->count ? NPS_MAX(stat->most, most) : most;
	stat->sum += mean;
	stat->count++;
}

static void join(struct stat *to, const struct stat *from)
{
	to->sum += from->sum;
	to->count += from->count;
}

static double mean(const struct stat *stat)
{
	return stat->count ? stat->sum / stat->count : NAN;
}

static int by_device(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void sort_groups(struct groups *g)
{
	if (g->rows.data)
		qsort(g->rows.data, g->rows.len, sizeof(struct group), by_device);
}

/* --- links of the device --- */

static int hccs(const struct nps_export *ex, int dirfd)
{
	static const char *const modes[] = { "Tx (MB/s)", "Rx (MB/s)" };
	const struct nps_csv_file file = { .stem = "hccs",
					   .header = "Mode,Max,Min,Average",
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	const struct nps_hccs_table *t = &ex->model->hccs;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct groups g;

	groups_init(&g, ex->model);
	for (size_t i = 0; csv && !csv->err && i < t->t.len; i++) {
		struct group *group = group_of(&g, t->device[i], 0);

		if (!group) {
			csv->err = -ENOMEM;
			break;
		}
		see(&group->stat[0], t->tx[i] / MB, t->tx[i] / MB, t->tx[i] / MB);
		see(&group->stat[1], t->rx[i] / MB, t->rx[i] / MB, t->rx[i] / MB);
	}
	sort_groups(&g);
	for (size_t i = 0; csv && i < nps_counter__rows(&g.rows); i++) {
		const struct group *group = &NPS_AT(&g.rows, struct group, i);

		for (size_t k = 0; k < NPS_ARRAY_SIZE(modes); k++) {
			nps_csv__row(csv);
			nps_csv__device(csv, group->device);
			nps_csv__lit(csv, modes[k]);
			nps_counter__cell(csv, group->stat[k].most);
			nps_counter__cell(csv, group->stat[k].least);
			nps_counter__cell(csv, mean(&group->stat[k]));
			nps_csv__end(csv);
		}
	}
	groups_free(&g);
	return nps_csv__close(csv);
}

static void see_pcie(struct group *group, const struct nps_pcie_table *t, size_t i)
{
	struct stat *s = group->stat;

	see(&s[0], t->tx_post_min[i] / MB, t->tx_post_max[i] / MB, t->tx_post_avg[i] / MB);
	see(&s[1], t->tx_nonpost_min[i] / MB, t->tx_nonpost_max[i] / MB, t->tx_nonpost_avg[i] / MB);
	see(&s[2], t->tx_cpl_min[i] / MB, t->tx_cpl_max[i] / MB, t->tx_cpl_avg[i] / MB);
	see(&s[3], t->latency_min[i] / 1000, t->latency_max[i] / 1000, t->latency_avg[i] / 1000);
	see(&s[4], t->rx_post_min[i] / MB, t->rx_post_max[i] / MB, t->rx_post_avg[i] / MB);
	see(&s[5], t->rx_nonpost_min[i] / MB, t->rx_nonpost_max[i] / MB, t->rx_nonpost_avg[i] / MB);
	see(&s[6], t->rx_cpl_min[i] / MB, t->rx_cpl_max[i] / MB, t->rx_cpl_avg[i] / MB);
}

static int pcie(const struct nps_export *ex, int dirfd)
{
	static const char *const modes[STATS] = { "Tx_p_avg(MB/s)",	"Tx_np_avg(MB/s)", "Tx_cpl_avg(MB/s)",
						  "Tx_latency_avg(us)", "Rx_p_avg(MB/s)",  "Rx_np_avg(MB/s)",
						  "Rx_cpl_avg(MB/s)" };
	const struct nps_csv_file file = { .stem = "pcie",
					   .header = "Mode,Min,Max,Avg",
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	const struct nps_pcie_table *t = &ex->model->pcie;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct groups g;

	groups_init(&g, ex->model);
	for (size_t i = 0; csv && !csv->err && i < t->t.len; i++) {
		struct group *group = group_of(&g, t->device[i], 0);

		if (group)
			see_pcie(group, t, i);
		else
			csv->err = -ENOMEM;
	}
	sort_groups(&g);
	for (size_t i = 0; csv && i < nps_counter__rows(&g.rows); i++) {
		const struct group *group = &NPS_AT(&g.rows, struct group, i);

		for (size_t k = 0; k < STATS; k++) {
			const struct stat *s = &group->stat[k];

			nps_csv__row(csv);
			nps_csv__device(csv, group->device);
			nps_csv__lit(csv, modes[k]);
			nps_counter__cell(csv, s->least >= NO_MINIMUM ? 0 : s->least);
			nps_counter__cell(csv, s->most);
			nps_counter__cell(csv, mean(s));
			nps_csv__end(csv);
		}
	}
	groups_free(&g);
	return nps_csv__close(csv);
}

/* --- ports: counters that only grow, and rates when there is one sample --- */

struct port {
	uint32_t device;
	int64_t function;
	size_t first, last; /* samples */
};

static int by_function(const void *a, const void *b)
{
	const struct port *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static int find_ports(const struct nps_model *m, const struct nps_port_table *t, struct nps_vec *ports)
{
	struct nps_pace pace = { .model = m };
	struct nps_map of = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace)) {
		uint64_t key = nps_hash2(t->device[i], t->function[i]);
		uint32_t row = nps_map__get(&of, key);
		struct port *port = row == NPS_NONE ? nps_vec__push(ports) : &NPS_AT(ports, struct port, row);

		if (!port) {
			err = -ENOMEM;
			break;
		}
		if (row == NPS_NONE) {
			*port = (struct port){ .device = t->device[i],
					       .function = t->function[i],
					       .first = i };
			err = nps_map__put(&of, key, ports->len - 1);
		}
		port->last = i;
	}
	nps_map__free(&of);
	return err;
}

/* What a counter that only grows grew by; of a single sample its value. */
static double growth(const struct port *port, const int64_t *counter)
{
	int64_t first = counter[port->first], last = counter[port->last];

	if (first == NPS_NULL || last == NPS_NULL)
		return NAN;
	if (port->first == port->last)
		return last;
	return last > first ? (double)last - (double)first : 0;
}

static void put_direction(struct nps_csv *csv, const struct nps_port_table *t, const struct port *port,
			  bool rx)
{
	double seconds = ((double)t->timestamp[port->last] - (double)t->timestamp[port->first]) / 1e9;
	double packets = growth(port, rx ? t->rx_packets : t->tx_packets);
	double bytes = growth(port, rx ? t->rx_bytes : t->tx_bytes);
	double errors = growth(port, rx ? t->rx_errors : t->tx_errors);
	double dropped = growth(port, rx ? t->rx_dropped : t->tx_dropped);
	double rate = rx ? t->rx_packet_rate[port->last] : t->tx_packet_rate[port->last];
	double byte_rate = rx ? t->rx_byte_rate[port->last] : t->tx_byte_rate[port->last];

	if (seconds > 0) {
		rate = isnan(packets) ? rate : packets / seconds;
		byte_rate = isnan(bytes) ? byte_rate : bytes / seconds;
	}
	nps_counter__cell(csv, nps_port_efficiency(byte_rate, t->bandwidth[port->first]));
	nps_counter__cell(csv, rate);
	nps_counter__cell(csv, packets > 0 ? 100 * errors / packets : 0);
	nps_counter__cell(csv, packets > 0 ? 100 * dropped / packets : 0);
}

static int ports(const struct nps_export *ex, int dirfd, const char *stem, const struct nps_port_table *t)
{
	const struct nps_csv_file file = {
		.stem = stem,
		.header = "Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,"
			  "rxError rate(%),rxDropped rate(%),Tx Bandwidth efficiency(%),txPacket/s,"
			  "txError rate(%),txDropped rate(%),funcId",
		.stamped = nps_counter__stamped(ex),
		.device = true
	};
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct nps_vec rows;

	nps_vec__init(&rows, ex->model->tmpfd, sizeof(struct port));
	if (csv)
		csv->err = find_ports(ex->model, t, &rows);
	if (rows.data)
		qsort(rows.data, rows.len, sizeof(struct port), by_function);
	for (size_t i = 0; csv && i < nps_counter__rows(&rows); i++) {
		const struct port *port = &NPS_AT(&rows, struct port, i);
		int64_t bandwidth = t->bandwidth[port->first];

		nps_csv__row(csv);
		nps_csv__device(csv, port->device);
		nps_csv__time(csv, t->timestamp[port->last]);
		nps_counter__cell(csv, bandwidth == NPS_NULL ? NAN : bandwidth / MB);
		put_direction(csv, t, port, true);
		put_direction(csv, t, port, false);
		nps_csv__i64(csv, port->function);
		nps_csv__end(csv);
	}
	nps_vec__free(&rows);
	return nps_csv__close(csv);
}

/* --- memory of the device --- */

static int ddr(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = nps_counter__stem(ex, "npuscope_ddr"),
					   .header = "Metric,Read(MB/s),Write(MB/s)",
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	const struct nps_ddr_table *t = &ex->model->ddr;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct groups g;

	groups_init(&g, ex->model);
	for (size_t i = 0; csv && !csv->err && i < t->t.len; i++) {
		struct group *group = group_of(&g, t->device[i], 0);

		if (!group) {
			csv->err = -ENOMEM;
			break;
		}
		see(&group->stat[0], 0, 0, t->read[i] / MB);
		see(&group->stat[1], 0, 0, t->write[i] / MB);
	}
	sort_groups(&g);
	for (size_t i = 0; csv && i < nps_counter__rows(&g.rows); i++) {
		const struct group *group = &NPS_AT(&g.rows, struct group, i);

		nps_csv__row(csv);
		nps_csv__device(csv, group->device);
		nps_csv__lit(csv, "Average");
		nps_counter__cell(csv, mean(&group->stat[0]));
		nps_counter__cell(csv, mean(&group->stat[1]));
		nps_csv__end(csv);
	}
	groups_free(&g);
	return nps_csv__close(csv);
}

static bool is_write(const struct nps_model *m, uint32_t text)
{
	const char *word = nps_model__text(m, text);

	return *word == 'w' || *word == 'W';
}

/* The groups from I on that agree with it in DEVICE and, but for the lowest bits, in id; their sum in *ALL. */
static size_t run(const struct groups *g, size_t i, struct group *all)
{
	const struct group *rows = g->rows.data;
	size_t end = i;

	*all = (struct group){ .device = rows[i].device, .id = rows[i].id & WRITE };
	for (; end < g->rows.len && rows[end].device == all->device && (rows[end].id & WRITE) == all->id;
	     end++)
		for (size_t k = 0; k < STATS; k++)
			join(&all->stat[k], &rows[end].stat[k]);
	return end;
}

/* MODE NULL: the table has no such column. ID NPS_NONE: all. */
static void put_means(struct nps_csv *csv, const struct group *group, const char *mode, uint32_t id)
{
	nps_csv__row(csv);
	nps_csv__device(csv, group->device);
	if (mode)
		nps_csv__lit(csv, mode);
	if (id == NPS_NONE)
		nps_csv__lit(csv, "Average");
	else
		nps_csv__u64(csv, id);
	nps_counter__cell(csv, mean(&group->stat[0]));
	nps_counter__cell(csv, mean(&group->stat[1]));
	nps_csv__end(csv);
}

/* Means of all ids, and of each. */
static void put_runs(struct nps_csv *csv, const struct groups *g, bool modes)
{
	for (size_t i = 0; csv && i < nps_counter__rows(&g->rows);) {
		struct group all;
		size_t end = run(g, i, &all);
		const char *mode = !modes ? NULL : all.id & WRITE ? "write" : "read";

		put_means(csv, &all, mode, NPS_NONE);
		for (; i < end; i++) {
			const struct group *group = &NPS_AT(&g->rows, struct group, i);

			put_means(csv, group, mode, group->id & ~WRITE);
		}
	}
}

static int hbm(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = nps_counter__stem(ex, "npuscope_hbm"),
					   .header = "Metric,Read(MB/s),Write(MB/s)",
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	const struct nps_hbm_table *t = &ex->model->hbm;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct groups g;

	groups_init(&g, ex->model);
	for (size_t i = 0; csv && !csv->err && i < t->t.len; i++) {
		struct group *group = group_of(&g, t->device[i], t->id[i] & ~WRITE);

		if (group)
			see(&group->stat[is_write(ex->model, t->type[i])], 0, 0, t->bandwidth[i] / MB);
		else
			csv->err = -ENOMEM;
	}
	sort_groups(&g);
	put_runs(csv, &g, false);
	groups_free(&g);
	return nps_csv__close(csv);
}

static int llc(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = nps_counter__stem(ex, "npuscope_llc_read_write"),
					   .header = "Mode,Task,Hit Rate(%),Throughput(MB/s)",
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	const struct nps_llc_table *t = &ex->model->llc;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct groups g;

	groups_init(&g, ex->model);
	for (size_t i = 0; csv && !csv->err && i < t->t.len; i++) {
		uint32_t mode = is_write(ex->model, t->mode[i]) ? WRITE : 0;
		struct group *group = group_of(&g, t->device[i], (t->id[i] & ~WRITE) | mode);

		if (!group) {
			csv->err = -ENOMEM;
			break;
		}
		see(&group->stat[0], 0, 0, t->hit_rate[i]);
		see(&group->stat[1], 0, 0, t->throughput[i] / MB);
	}
	sort_groups(&g);
	put_runs(csv, &g, true);
	groups_free(&g);
	return nps_csv__close(csv);
}

/* --- tables that are told as they are --- */

/* As the vendor numbers and names them; another one is its number. */
static void put_engine(struct nps_csv *csv, uint32_t type)
{
	static const char *const names[] = { "VDEC", "JPEGD", "PNGD", "JPEGE", "VPC", "VENC", "SCD" };

	if (type < NPS_ARRAY_SIZE(names))
		nps_csv__lit(csv, names[type]);
	else
		nps_csv__u64(csv, type);
}

static int dvpp(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "dvpp",
		.header = "Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)",
		.stamped = true,
		.device = true
	};
	const struct nps_dvpp_table *t = &ex->model->dvpp;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__u64(csv, t->id[i]);
		put_engine(csv, t->engine_type[i]);
		nps_csv__u64(csv, t->engine[i]);
		nps_csv__repr(csv, t->time[i]);
		nps_csv__repr(csv, t->frames[i]);
		nps_csv__repr(csv, t->utilization[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static int ub(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = nps_counter__stem(ex, "npuscope_ub"),
		.header = "PortId,TimeStamp,UBRxPortBandWidth(MB/s),UBTxPortBandWidth(MB/s)",
		.stamped = nps_counter__stamped(ex),
		.device = true
	};
	const struct nps_ub_table *t = &ex->model->ub;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__u64(csv, t->port[i]);
		nps_csv__time(csv, t->timestamp[i]);
		nps_counter__cell(csv, t->rx[i] / MB);
		nps_counter__cell(csv, t->tx[i] / MB);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

/* --- what cores did, sampled: a row for each, a column for each metric --- */

#define METRICS 100
#define CORES 65536
#define HEADER 8192
#define NUMBERS 600 /* bytes that the header has left for METRICS numbers and memory_bound */

struct core {
	uint32_t device, id; /* id NPS_NONE: the mean, as another profiler made it */
	double values[METRICS];
};

struct cores {
	const struct nps_model *m;
	bool vector;
	uint32_t metrics[METRICS]; /* texts */
	size_t nmetrics;
	int mte2, mac, vec; /* metrics of which memory_bound is made; -1: there is none */
	struct nps_vec rows; /* struct core */
	struct nps_map of; /* device and id -> row */
};

static bool ours(const struct cores *c, size_t row)
{
	return !strpbrk(nps_model__text(c->m, c->m->sample_summary.core_type[row]), "vV") == !c->vector;
}

/* The column of a metric; METRICS: there are too many. */
static size_t metric_column(struct cores *c, uint32_t metric)
{
	for (size_t i = 0; i < c->nmetrics; i++)
		if (c->metrics[i] == metric)
			return i;
	if (c->nmetrics < METRICS)
		c->metrics[c->nmetrics++] = metric;
	else
		return METRICS;
	return c->nmetrics - 1;
}

static int see_core(struct cores *c, size_t i)
{
	const struct nps_sample_summary_table *t = &c->m->sample_summary;
	uint64_t key = (uint64_t)t->device[i] << 32 | t->core[i];
	uint32_t row = nps_map__get(&c->of, key);
	size_t column = metric_column(c, t->metric[i]);
	struct core *core;

	if (row == NPS_NONE) {
		if (c->rows.len == CORES)
			return 0;
		core = nps_vec__push(&c->rows);
		if (!core)
			return -ENOMEM;
		core->device = t->device[i];
		core->id = t->core[i];
		for (size_t k = 0; k < METRICS; k++)
			core->values[k] = NAN;
		row = c->rows.len - 1;
		if (nps_map__put(&c->of, key, row))
			return -ENOMEM;
	}
	if (column < METRICS)
		NPS_AT(&c->rows, struct core, row).values[column] = t->value[i];
	return 0;
}

static int by_core(const void *a, const void *b)
{
	const struct core *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The metric whose name ends with SUFFIX, -1 if there is none. */
static int find_metric(const struct cores *c, const char *suffix)
{
	for (size_t i = 0; i < c->nmetrics; i++) {
		const char *name = nps_model__text(c->m, c->metrics[i]);
		size_t len = strlen(name);

		if (len >= strlen(suffix) && !strcmp(name + len - strlen(suffix), suffix))
			return i;
	}
	return -1;
}

/* Names that would break the header are numbers there. */
static void utilization_header(const struct cores *c, char *header)
{
	size_t at = snprintf(header, HEADER, "Core ID");

	for (size_t i = 0; i < c->nmetrics; i++) {
		const char *name = nps_model__text(c->m, c->metrics[i]);

		if (at + strlen(name) + NUMBERS < HEADER && !strpbrk(name, ",\"\r\n"))
			at += snprintf(header + at, HEADER - at, ",%s%s", name, nps_pmu__unit(name));
		else
			at += snprintf(header + at, HEADER - at, ",%zu", i);
	}
	if (c->mte2 >= 0)
		snprintf(header + at, HEADER - at, ",memory_bound");
}

static double share(double part, double a, double b)
{
	double whole = fmax(a, b); /* of the one that there is */

	return whole > 0 ? part / whole : NAN;
}

static void put_core(struct nps_csv *csv, const struct cores *c, const struct core *core, bool average)
{
	char name[32];

	snprintf(name, sizeof(name), "Core%u", core->id);
	nps_csv__row(csv);
	nps_csv__device(csv, core->device);
	nps_csv__lit(csv, average ? "Average" : name);
	for (size_t i = 0; i < c->nmetrics; i++)
		nps_counter__cell(csv, nps_pmu__is_time(nps_model__text(c->m, c->metrics[i]))
					       ? core->values[i] / 1000
					       : core->values[i]);
	if (c->mte2 >= 0)
		nps_counter__cell(csv, share(core->values[c->mte2], c->mac < 0 ? NAN : core->values[c->mac],
					     c->vec < 0 ? NAN : core->values[c->vec]));
	nps_csv__end(csv);
}

/* Cores of a device, and their mean behind them. */
static size_t put_cores(struct nps_csv *csv, const struct cores *c, size_t from)
{
	const struct core *rows = c->rows.data;
	struct core average = { .device = rows[from].device, .id = NPS_NONE };
	size_t end = from;

	while (end < c->rows.len && rows[end].device == average.device && rows[end].id != NPS_NONE)
		put_core(csv, c, &rows[end++], false);
	if (end < c->rows.len && rows[end].device == average.device) {
		put_core(csv, c, &rows[end], true);
		return end + 1;
	}
	for (size_t k = 0; k < c->nmetrics; k++) {
		struct stat stat = { 0 };

		for (size_t i = from; i < end; i++)
			see(&stat, 0, 0, rows[i].values[k]);
		average.values[k] = mean(&stat);
	}
	put_core(csv, c, &average, true);
	return end;
}

static int utilization(const struct nps_export *ex, int dirfd, bool vector)
{
	struct cores c = { .m = ex->model, .vector = vector };
	char *header = calloc(1, HEADER);
	const struct nps_csv_file file = { .stem = nps_counter__stem(
						   ex, vector ? "npuscope_ai_vector_core_utilization"
							      : "npuscope_ai_core_utilization"),
					   .header = header,
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	struct nps_csv *csv = NULL;
	int err = header ? 0 : -ENOMEM;

	nps_vec__init(&c.rows, c.m->tmpfd, sizeof(struct core));
	for (size_t i = 0; !err && i < c.m->sample_summary.t.len; i++)
		if (ours(&c, i))
			err = see_core(&c, i);
	if (err)
		goto out;
	if (c.rows.data)
		qsort(c.rows.data, c.rows.len, sizeof(struct core), by_core);
	c.mte2 = find_metric(&c, "mte2_ratio");
	c.mac = find_metric(&c, "mac_ratio");
	c.vec = find_metric(&c, "vec_ratio");
	if (c.mac < 0 && c.vec < 0)
		c.mte2 = -1;
	utilization_header(&c, header);
	csv = nps_csv__new(ex, dirfd, &file);
	for (size_t i = 0; csv && i < nps_counter__rows(&c.rows);)
		i = put_cores(csv, &c, i);
	err = nps_csv__close(csv);
out:
	nps_vec__free(&c.rows);
	nps_map__free(&c.of);
	free(header);
	return err;
}

/* --- what npu-smi tells --- */

static int npu_usage(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "npuscope_npu_usage",
		.header = "Timestamp(us),AI Core(%),Vector Core(%),AI CPU(%),Control CPU(%),Memory(%),"
			  "Memory Bandwidth(%),HBM Bandwidth(%),Temperature(C),HBM Temperature(C),Power(W),"
			  "Health,HBM Total(KB),HBM Used(KB)",
		.device = true
	};
	const struct nps_npu_usage_table *t = &ex->model->npu_usage;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		const double values[] = {
			t->ai_core[i],
			t->vector[i],
			t->ai_cpu[i],
			t->ctrl_cpu[i],
			t->memory[i],
			t->bandwidth[i],
			t->hbm_bandwidth[i],
			t->temperature[i],
			t->hbm_temperature[i],
			t->power[i],
			t->health[i] == NPS_NULL ? NPS_NAN : (double)t->health[i],
			t->hbm_total[i] == NPS_NULL ? NPS_NAN : (double)t->hbm_total[i] / 1024,
			t->hbm_used[i] == NPS_NULL ? NPS_NAN : (double)t->hbm_used[i] / 1024
		};

		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__time(csv, t->timestamp[i]);
		for (size_t k = 0; k < NPS_ARRAY_SIZE(values); k++)
			nps_counter__cell(csv, values[k]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

/* --- all --- */

static int links(const struct nps_export *ex, int dirfd)
{
	int err = pcie(ex, dirfd);

	if (!err)
		err = hccs(ex, dirfd);
	if (!err)
		err = ports(ex, dirfd, "nic", &ex->model->nic);
	return err ? err : ports(ex, dirfd, "roce", &ex->model->roce);
}

/* Tables that the torch profiler does not take over from msprof. */
static int others(const struct nps_export *ex, int dirfd)
{
	int err = ddr(ex, dirfd);

	if (!err)
		err = hbm(ex, dirfd);
	if (!err)
		err = llc(ex, dirfd);
	if (!err)
		err = ub(ex, dirfd);
	if (!err)
		err = utilization(ex, dirfd, false);
	return err ? err : utilization(ex, dirfd, true);
}

int nps_export__counter_csv(const struct nps_export *ex, int dirfd)
{
	int err = links(ex, dirfd);

	if (!err && (nps_counter__stamped(ex) || ex->model->sampled))
		err = others(ex, dirfd);
	if (!err && nps_counter__stamped(ex))
		err = dvpp(ex, dirfd);
	if (!err && nps_counter__stamped(ex))
		err = nps_counter__system(ex, dirfd);
	if (!err)
		err = npu_usage(ex, dirfd);
	return err ? err : nps_counter__host(ex, dirfd);
}
