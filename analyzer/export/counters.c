/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/counters.h"

#include "export/port_rates.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- the rows of counter_tables.h ---------------------------------------------------------------------- */

#define KB 1024
#define MB 1048576

#define OF_JOB(i) (!strcmp(nps_model__text(m, t->type[i]), "job"))
#define WRITES(text) (tolower((unsigned char)*nps_model__text(m, text)) == 'w')

#define VALUE(table, value_name, expression, ...)                                                            \
	static double table##_##value_name(const struct nps_counter_view *x, const void *rows, size_t i)     \
	{                                                                                                    \
		const struct nps_model *m __attribute__((unused)) = x->m;                                    \
		const struct nps_##table##_table *t __attribute__((unused)) = rows;                          \
                                                                                                             \
		(void)i;                                                                                     \
		return expression;                                                                           \
	}

NPS_NPU_MEM_VALUES(VALUE)
NPS_HBM_VALUES(VALUE)
NPS_LLC_VALUES(VALUE)
NPS_PCIE_VALUES(VALUE)
NPS_PORT_VALUES(VALUE)

#define SQL(...)
#define SQL_B(...)
#define SQL_TEXT(...)
#define SQL_PLAIN(...)
#define SQL_OR_0(...)
#define TRACE(event_, series_, per_) .event = (event_), .series = (series_), .per = (per_),
#define TRACE_A(event_) .event_a = (event_),
#define TRACE_ID(series_) .id = (series_),
#define TRACK(name_, unit_) .track = (name_), .unit = (unit_),
#define CSV(title_, per_) .title = (title_), .csv_per = (per_),
#define CSV_RANGE(title_, per_) .title = (title_), .csv_per = (per_), .range = true,

#define CELL(kind, column, ...) { .name = #column, __VA_ARGS__ },
#define COMPUTED(table, value_name, expression, ...)                                                         \
	{ .name = #value_name, .value = table##_##value_name, __VA_ARGS__ },

#define NONE(V)
#define ROWS(table, COLUMNS, VALUES)                                                                         \
	static const struct nps_counter table[] = { COLUMNS(CELL) VALUES(COMPUTED) };

ROWS(npu_mem, NPS_NPU_MEM_COLUMNS, NPS_NPU_MEM_VALUES)
ROWS(job_memory, NPS_JOB_MEMORY_COLUMNS, NONE)
ROWS(memory_record, NPS_MEMORY_RECORD_COLUMNS, NONE)
ROWS(hbm, NPS_HBM_COLUMNS, NPS_HBM_VALUES)
ROWS(llc, NPS_LLC_COLUMNS, NPS_LLC_VALUES)
ROWS(ddr, NPS_DDR_COLUMNS, NONE)
ROWS(frequency, NPS_FREQUENCY_COLUMNS, NONE)
ROWS(voltage, NPS_VOLTAGE_COLUMNS, NONE)
ROWS(soc_level, NPS_SOC_LEVEL_COLUMNS, NONE)
ROWS(acc_pmu, NPS_ACC_PMU_COLUMNS, NONE)
ROWS(qos, NPS_QOS_COLUMNS, NONE)
ROWS(hccs, NPS_HCCS_COLUMNS, NONE)
ROWS(pcie, NPS_PCIE_COLUMNS, NPS_PCIE_VALUES)
ROWS(port, NPS_PORT_COLUMNS, NPS_PORT_VALUES)
ROWS(sio, NPS_SIO_COLUMNS, NONE)
ROWS(ub, NPS_UB_COLUMNS, NONE)
ROWS(chip_trans, NPS_CHIP_TRANS_COLUMNS, NONE)
ROWS(npu_usage, NPS_NPU_USAGE_COLUMNS, NONE)
ROWS(npu_process, NPS_NPU_PROCESS_COLUMNS, NONE)
ROWS(cpu_usage, NPS_CPU_USAGE_COLUMNS, NONE)
ROWS(host_mem, NPS_HOST_MEM_COLUMNS, NONE)
ROWS(host_disk, NPS_HOST_DISK_COLUMNS, NONE)
ROWS(host_network, NPS_HOST_NETWORK_COLUMNS, NONE)
ROWS(host_load, NPS_HOST_LOAD_COLUMNS, NONE)
ROWS(host_process, NPS_HOST_PROCESS_COLUMNS, NONE)
ROWS(host_thread, NPS_HOST_THREAD_COLUMNS, NONE)
ROWS(host_device, NPS_HOST_DEVICE_COLUMNS, NONE)

#define OF(field, type)                                                                                      \
	.table = offsetof(struct nps_model, field), .counters = type, .len = NPS_ARRAY_SIZE(type),           \
	.time = NPS_ORDINAL(type, timestamp)
#define HOST(layer_, field) .name = #field, OF(field, field), .layer = (layer_), .device = NPS_NO_COLUMN
#define DEVICE(layer_, field)                                                                                \
	.name = #field, OF(field, field), .layer = (layer_), .device = NPS_ORDINAL(field, device)
#define PORT(layer_, field, name_)                                                                           \
	.name = (name_), OF(field, port), .layer = (layer_), .device = NPS_ORDINAL(port, device)
#define FILE_OF(csv_, when_, stem_) .csv = (csv_), .when = (when_), .stem = (stem_)
#define MEANS(stem_, id_, mode_)                                                                             \
	FILE_OF(NPS_COUNTER_MEANS, NPS_COUNTER_OWN_UNLESS_MSPROF, stem_), .id = (id_), .mode = (mode_)

/* In the order of their events in the trace. */
const struct nps_counter_table nps_counter_tables[NPS_COUNTER_TABLES] = {
	{ HOST(NPS_TRACE_CPU_USAGE, cpu_usage) },
	{ HOST(NPS_TRACE_MEMORY_USAGE, host_mem) },
	{ HOST(NPS_TRACE_NETWORK_USAGE, host_network) },
	{ HOST(NPS_TRACE_DISK_USAGE, host_disk) },
	{ DEVICE(NPS_TRACE_FREQUENCY, frequency), .held = true },
	{ DEVICE(NPS_TRACE_VOLTAGE, voltage) },
	{ DEVICE(NPS_TRACE_NPU_MEM, npu_mem) },
	{ DEVICE(NPS_TRACE_NPU_MEM, job_memory) },
	{ DEVICE(NPS_TRACE_LAYERS, memory_record) },
	{ DEVICE(NPS_TRACE_DDR, ddr), MEANS("npuscope_ddr", NPS_NO_COLUMN, NPS_NO_COLUMN) },
	{ DEVICE(NPS_TRACE_ACC_PMU, acc_pmu) },
	{ DEVICE(NPS_TRACE_HCCS, hccs), FILE_OF(NPS_COUNTER_STATISTIC, NPS_COUNTER_ALWAYS, "hccs") },
	{ PORT(NPS_TRACE_NIC, nic, "NIC") },
	{ PORT(NPS_TRACE_ROCE, roce, "RoCE") },
	{ DEVICE(NPS_TRACE_PCIE, pcie), FILE_OF(NPS_COUNTER_RANGES, NPS_COUNTER_ALWAYS, "pcie") },
	{ DEVICE(NPS_TRACE_HBM, hbm), MEANS("npuscope_hbm", NPS_ORDINAL(hbm, id), NPS_NO_COLUMN) },
	{ DEVICE(NPS_TRACE_SOC, soc_level) },
	{ DEVICE(NPS_TRACE_CHIP_TRANS, chip_trans) },
	{ DEVICE(NPS_TRACE_LLC, llc),
	  MEANS("npuscope_llc_read_write", NPS_ORDINAL(llc, id), NPS_ORDINAL(llc, mode)) },
	{ DEVICE(NPS_TRACE_SIO, sio) },
	{ DEVICE(NPS_TRACE_QOS, qos) },
	{ DEVICE(NPS_TRACE_UB, ub),
	  FILE_OF(NPS_COUNTER_SAMPLES, NPS_COUNTER_OWN_UNLESS_MSPROF, "npuscope_ub") },
	{ HOST(NPS_TRACE_HOST_USAGE, host_load) },
	{ HOST(NPS_TRACE_HOST_USAGE, host_process) },
	{ HOST(NPS_TRACE_HOST_USAGE, host_thread) },
	{ HOST(NPS_TRACE_HOST_USAGE, host_device) },
	{ DEVICE(NPS_TRACE_NPU_USAGE, npu_usage),
	  FILE_OF(NPS_COUNTER_SAMPLES, NPS_COUNTER_OWN, "npuscope_npu_usage") },
	{ DEVICE(NPS_TRACE_NPU_USAGE, npu_process) },
};

/* --- values -------------------------------------------------------------------------------------------- */

static int read_patterns(struct nps_counter_view *x, size_t k, bool early)
{
	const struct nps_counter_table *table = &nps_counter_tables[k];

	x->names[k] = calloc((size_t)table->len * NPS_PATTERNS, sizeof(*x->names[k]));
	for (size_t i = 0; x->names[k] && i < table->len; i++) {
		const struct nps_counter *c = &table->counters[i];
		const char *const patterns[NPS_PATTERNS] = {
			[NPS_PATTERN_EVENT] = early && c->event_a ? c->event_a : c->event,
			[NPS_PATTERN_SERIES] = c->id ? c->id : c->series,
			[NPS_PATTERN_TRACK] = c->track,
		};

		for (size_t p = 0; p < NPS_PATTERNS; p++) {
			struct nps_counter_name **name = &x->names[k][i * NPS_PATTERNS + p];

			*name = patterns[p] ? nps_counter_name__new(table, patterns[p]) : NULL;
			if (patterns[p] && !*name)
				return -ENOMEM;
		}
	}
	return x->names[k] ? 0 : -ENOMEM;
}

int nps_counter_view__init(struct nps_counter_view *x, const struct nps_model *model, bool early)
{
	struct nps_pace pace = { .model = model };
	int err = 0;

	*x = (struct nps_counter_view){ .m = model };
	for (size_t i = 0; i < model->frequency.t.len && !x->dies; i++, nps_pace__step(&pace))
		x->dies = model->frequency.die[i] > 0;
	for (size_t k = 0; !err && k < NPS_COUNTER_TABLES; k++)
		if (nps_counter_table__of(model, &nps_counter_tables[k])->len)
			err = read_patterns(x, k, early);
	return err;
}

void nps_counter_view__free(struct nps_counter_view *x)
{
	for (size_t k = 0; k < NPS_COUNTER_TABLES; k++) {
		for (size_t i = 0; x->names[k] && i < (size_t)nps_counter_tables[k].len * NPS_PATTERNS; i++)
			free(x->names[k][i]);
		free(x->names[k]);
		x->names[k] = NULL;
	}
}

struct nps_counter_number nps_counter__number(const struct nps_counter_view *x,
					      const struct nps_counter_table *table, size_t i, size_t row)
{
	const struct nps_table *rows = nps_counter_table__of(x->m, table);
	struct nps_counter_number n = { .kind = NPS_NUMBER_UNSIGNED };
	const void *cells;

	if (table->counters[i].value) {
		n.real = table->counters[i].value(x, rows, row);
		n.kind = isfinite(n.real) ? NPS_NUMBER_REAL : NPS_NUMBER_UNKNOWN;
		return n;
	}
	cells = nps_table__cells(rows, i);
	switch (rows->columns[i].kind) {
	case NPS_COLUMN_u8:
		n.u = ((const uint8_t *)cells)[row];
		break;
	case NPS_COLUMN_u16:
		n.u = ((const uint16_t *)cells)[row];
		break;
	case NPS_COLUMN_u32:
		n.u = ((const uint32_t *)cells)[row];
		break;
	case NPS_COLUMN_u64:
	case NPS_COLUMN_time:
		n.u = ((const uint64_t *)cells)[row];
		break;
	case NPS_COLUMN_i64:
		n.i = ((const int64_t *)cells)[row];
		n.kind = n.i == NPS_NULL ? NPS_NUMBER_UNKNOWN : NPS_NUMBER_SIGNED;
		break;
	case NPS_COLUMN_f64:
		n.real = ((const double *)cells)[row];
		n.kind = isfinite(n.real) ? NPS_NUMBER_REAL : NPS_NUMBER_UNKNOWN;
		break;
	default:
		n.kind = NPS_NUMBER_UNKNOWN;
	}
	return n;
}

double nps_counter__value(const struct nps_counter_view *x, const struct nps_counter_table *table, size_t i,
			  size_t row)
{
	struct nps_counter_number n = nps_counter__number(x, table, i, row);

	switch (n.kind) {
	case NPS_NUMBER_REAL:
		return n.real;
	case NPS_NUMBER_SIGNED:
		return (double)n.i;
	case NPS_NUMBER_UNSIGNED:
		return (double)n.u;
	default:
		return NPS_NAN;
	}
}
