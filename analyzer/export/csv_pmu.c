/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/csv_pmu.h"

#include <stdio.h>

#define TOTALS "total_time,total_cycles,"

/* Counters by aic_metrics, in the order of columns. Chips collect some more that have no meaning there. */
static const struct pivot_metric {
	const char *aic, *aiv;
	bool cube; /* cube_utilization(%) follows */
} metrics[] = {
	{ TOTALS "mac_time,mac_ratio,scalar_time,scalar_ratio,mte1_time,mte1_ratio,mte2_time,mte2_ratio,"
		 "fixpipe_time,fixpipe_ratio,icache_miss_rate",
	  TOTALS "vec_time,vec_ratio,scalar_time,scalar_ratio,mte2_time,mte2_ratio,mte3_time,mte3_ratio,"
		 "icache_miss_rate",
	  true },
	{ TOTALS "mac_fp16_ratio,mac_int8_ratio,cube_fops",
	  TOTALS "vec_fp32_ratio,vec_fp16_ratio,vec_int32_ratio,vec_misc_ratio,vector_fops", false },
	{ TOTALS "l1_read_bw,l1_write_bw,main_mem_read_bw,main_mem_write_bw,l2_read_bw,l2_write_bw",
	  TOTALS "ub_read_bw,ub_write_bw,main_mem_read_bw,main_mem_write_bw,l2_read_bw,l2_write_bw", false },
	{ TOTALS "l0a_read_bw,l0a_write_bw,l0b_read_bw,l0b_write_bw,l0c_read_bw_cube,l0c_write_bw_cube",
	  TOTALS "l0c_read_bw,l0c_write_bw", false },
	{ TOTALS "ub_read_bw_scalar,ub_write_bw_scalar",
	  TOTALS "ub_read_bw_vector,ub_write_bw_vector,ub_read_bw_scalar,ub_write_bw_scalar", false },
	{ TOTALS, TOTALS "vec_bankgroup_cflt_ratio,vec_bank_cflt_ratio,vec_resc_cflt_ratio", false },
	{ TOTALS "write_cache_hit,write_cache_miss_allocate,r0_read_cache_hit,r0_read_cache_miss_allocate,"
		 "r1_read_cache_hit,r1_read_cache_miss_allocate",
	  TOTALS "write_cache_hit,write_cache_miss_allocate,r0_read_cache_hit,r0_read_cache_miss_allocate,"
		 "r1_read_cache_hit,r1_read_cache_miss_allocate",
	  false },
	{ TOTALS
	  "read_main_memory_datas,write_main_memory_datas,GM_to_L1_datas,L0C_to_L1_datas,L0C_to_GM_datas,"
	  "GM_to_UB_datas,UB_to_GM_datas",
	  TOTALS
	  "read_main_memory_datas,write_main_memory_datas,GM_to_L1_datas,L0C_to_L1_datas,L0C_to_GM_datas,"
	  "GM_to_UB_datas,UB_to_GM_datas",
	  false },
};

struct pivot_metrics {
	uint32_t text[NPS_PMU_MAX];
	size_t len;
};

/* Names of the table in order of appearance. They repeat kernel by kernel. */
static void metrics_collect(const struct nps_model *m, struct pivot_metrics *names)
{
	struct nps_pace pace = { .model = m };
	size_t next = 0;

	for (size_t i = 0; i < m->pmu.t.len; i++) {
		uint32_t name = m->pmu.name[i];
		size_t at = 0;

		if (next < names->len && names->text[next] == name) {
			at = next;
		} else {
			while (at < names->len && names->text[at] != name)
				at++;
			if (at == names->len && at < NPS_PMU_MAX && name != NPS_NONE)
				names->text[names->len++] = name;
		}
		next = at + 1 < names->len ? at + 1 : 0;
		nps_pace__step(&pace);
	}
}

static uint32_t metric_find(const struct nps_model *m, const struct pivot_metrics *names, const char *name)
{
	for (size_t i = 0; i < names->len; i++)
		if (!strcmp(nps_model__text(m, names->text[i]), name))
			return names->text[i];
	return NPS_NONE;
}

/* One name of LIST after the other as PREFIX_name; false at the end. */
static bool next_name(const char **list, const char *prefix, char *name, size_t size)
{
	size_t len = strcspn(*list, ",");

	if (!len)
		return false;
	snprintf(name, size, "%s_%.*s", prefix, (int)len, *list);
	*list += len + ((*list)[len] == ',');
	return true;
}

static size_t metrics_count(const struct nps_model *m, const struct pivot_metrics *names, const char *list,
			    const char *prefix)
{
	char name[64];
	size_t found = 0;

	while (next_name(&list, prefix, name, sizeof(name)))
		found += metric_find(m, names, name) != NPS_NONE;
	return found;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);

	return len >= tail && !strcmp(text + len - tail, end);
}

bool nps_pmu__is_time(const char *name)
{
	return ends_with(name, "_time");
}

const char *nps_pmu__unit(const char *name)
{
	if (ends_with(name, ")") || ends_with(name, "_cycles"))
		return "";
	if (nps_pmu__is_time(name))
		return "(us)";
	return strstr(name, "bw") ? "(GB/s)" : strstr(name, "datas") ? "(KB)" : "";
}

static void pivot_add(struct nps_pmu_pivot *p, const char *name, uint32_t text)
{
	size_t at = p->counters;
	struct nps_csv_column *column = &p->columns[at];
	const char *unit = nps_pmu__unit(name);

	/* A column that no kernel has would be N/A throughout; names with other letters are refused. */
	if (text == NPS_NONE || at == NPS_PMU_MAX || strlen(name) > sizeof(p->titles[at]) - 8 ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")])
		return;
	*column = (struct nps_csv_column)NPS_CSV_FIELD(p->titles[at], DECIMAL, struct nps_pmu_pivot,
						       values[0], .source = p->source);
	column->offset += at * sizeof(p->values[0]);
	if (nps_pmu__is_time(name))
		column->per = 1000; /* ns in the model, us in the table */
	else if (ends_with(name, "_cycles"))
		column->format = NPS_CSV_COUNT;
	if (!strcmp(name, "aic_total_time") || !strcmp(name, "total_time"))
		name = "aicore_time";
	else if (!strcmp(name, "aiv_total_time"))
		name = "aiv_time";
	snprintf(p->titles[at], sizeof(p->titles[at]), "%s%s", name, unit);
	p->names[at] = text;
	p->counters++;
}

static void pivot_add_list(struct nps_pmu_pivot *p, const struct pivot_metrics *names, const char *list,
			   const char *prefix)
{
	char name[64];

	while (next_name(&list, prefix, name, sizeof(name)))
		pivot_add(p, name, metric_find(p->model, names, name));
}

/* cube_utilization, if CYCLES is the name of a column. */
static void add_cube(struct nps_pmu_pivot *p, uint32_t cycles)
{
	size_t at = 0;

	while (at < p->counters && p->names[at] != cycles)
		at++;
	if (at == p->counters)
		return;
	p->cycles = at;
	p->columns[p->counters] = (struct nps_csv_column)NPS_CSV_FIELD("cube_utilization(%)", DECIMAL_INT_0,
								       struct nps_pmu_pivot, cube,
								       .source = p->source,
								       .when = NPS_CSV_A);
	p->columns[p->counters + 1] =
		(struct nps_csv_column)NPS_CSV_FIELD("cube_utilization(%)", FIXED, struct nps_pmu_pivot, cube,
						     .source = p->source, .when = NPS_CSV_B);
}

void nps_pmu__init(struct nps_pmu_pivot *p, const struct nps_model *m, uint8_t source)
{
	const struct pivot_metric *best = NULL;
	struct pivot_metrics names = { .len = 0 };
	size_t most = 4; /* the totals, which every metric has */

	*p = (struct nps_pmu_pivot){ .model = m, .source = source, .cycles = NPS_PMU_MAX };
	metrics_collect(m, &names);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(metrics); i++) {
		size_t found = metrics_count(m, &names, metrics[i].aic, "aic") +
			       metrics_count(m, &names, metrics[i].aiv, "aiv");

		if (found > most) {
			most = found;
			best = &metrics[i];
		}
	}
	if (best) {
		pivot_add_list(p, &names, best->aic, "aic");
		pivot_add_list(p, &names, best->aiv, "aiv");
		if (best->cube)
			add_cube(p, metric_find(m, &names, "aic_total_cycles"));
	} else { /* a chip without separate vector cores, or a metric that is new */
		for (size_t i = 0; i < names.len; i++)
			pivot_add(p, nps_model__text(m, names.text[i]), names.text[i]);
	}
	for (size_t i = 0; i < NPS_PMU_MAX; i++)
		p->seen[i] = NPS_NONE - 1; /* no name at all */
}

struct nps_csv_columns nps_pmu__columns(const struct nps_pmu_pivot *p)
{
	return (struct nps_csv_columns){ p->columns, p->counters + (p->cycles < NPS_PMU_MAX ? 2 : 0) };
}

/* First row of TASK or later. Kernels without counters are few, so it is near; a new device begins anew. */
static size_t seek(const struct nps_pmu_pivot *p, uint32_t task)
{
	const uint32_t *tasks = p->model->pmu.task;
	size_t len = p->model->pmu.t.len, low = p->at, step = 1, high;

	if (low && low <= len && tasks[low - 1] >= task)
		low = 0;
	for (high = low; high < len && tasks[high] < task; step *= 2) {
		low = high + 1;
		high = high + step < len ? high + step : len;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tasks[middle] < task)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The column of counter number I of a kernel, which is called NAME; `counters` if it has none. */
static size_t pivot_column(struct nps_pmu_pivot *p, size_t i, uint32_t name)
{
	size_t column = 0;

	if (i < NPS_PMU_MAX && p->seen[i] == name)
		return p->seen_column[i];
	while (column < p->counters && p->names[column] != name)
		column++;
	if (i < NPS_PMU_MAX) {
		p->seen[i] = name;
		p->seen_column[i] = column;
	}
	return column;
}

/* Percent of what all cube units could have done in the kernel's time; NaN if the chip is not known. */
static double cube_utilization(const struct nps_model *m, uint32_t task, double cycles)
{
	uint32_t device = m->task.device[task];
	double us = (double)(m->task.end[task] - m->task.start[task]) / 1000, mhz, cores;

	if (cycles == 0 || us == 0)
		return 0;
	for (size_t i = 0; i < m->device.t.len; i++) {
		if (m->device.id[i] != (int64_t)device)
			continue;
		mhz = m->device.aic_mhz[i];
		cores = m->device.aic_cores[i];
		return mhz > 0 && cores > 0 ? cycles / (mhz * cores * us) * 100 : NPS_NAN;
	}
	return NPS_NAN;
}

void nps_pmu__read(struct nps_pmu_pivot *p, uint32_t task)
{
	const struct nps_pmu_table *t;

	if (!p->counters)
		return;
	for (size_t c = 0; c < p->counters; c++)
		p->values[c] = NPS_NAN;
	p->cube = NPS_NAN;
	if (task == NPS_NONE)
		return;
	t = &p->model->pmu;
	p->at = seek(p, task);
	for (size_t i = 0; p->at < t->t.len && t->task[p->at] == task; p->at++, i++) {
		size_t column = pivot_column(p, i, t->name[p->at]);

		if (column < p->counters)
			p->values[column] = t->value[p->at];
	}
	if (p->cycles < NPS_PMU_MAX && !isnan(p->values[p->cycles]))
		p->cube = cube_utilization(p->model, task, p->values[p->cycles]);
}
