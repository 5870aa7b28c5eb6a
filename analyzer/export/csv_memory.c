/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: of the device, of the driver's modules, of allocators and of operators. */
#include "export/csv_modules.h"
#include "export/csv_op_memory.h"
#include "export/csv_tables.h"
#include "export/table.h"

#include <errno.h>
#include <math.h>

/* --- npu_module_mem --- */

static uint64_t module_key(const void *ctx, size_t row)
{
	const struct nps_npu_module_mem_table *t = ctx;

	return (uint64_t)t->device[row] << 32 | t->module[row];
}

static void put_module(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	uint32_t module = csv->model->npu_module_mem.module[row->at[0]];
	const char *name = nps_module_name(module, csv->ex->generation);

	(void)ctx;
	if (name)
		nps_csv__lit(csv, name);
	else
		nps_csv__u64(csv, module);
}

static const struct nps_csv_column module_columns[] = {
	NPS_CSV_DEVICE_ID(npu_module_mem),
	NPS_CSV_BY("Component", put_module),
	NPS_CSV_COL("Timestamp(us)", TIME, npu_module_mem, timestamp),
	NPS_CSV_COL("Total Reserved(MB)", REPR_OR_BLANK, npu_module_mem, reserved, .per = NPS_MB,
		    .when = NPS_CSV_TORCH),
	NPS_CSV_COL("Total Reserved(KB)", REPR_OR_BLANK, npu_module_mem, reserved, .per = NPS_KB,
		    .when = NPS_CSV_MSPROF),
	NPS_CSV_COL("Device", NPU, npu_module_mem, device),
};

static int npu_module_mem(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "npu_module_mem",
						    NPS_CSV_OF(npu_module_mem, module_columns) };
	const struct nps_npu_module_mem_table *t = &ex->model->npu_module_mem;
	struct nps_csv_groups groups;
	int err = nps_csv__group(&groups, ex->model, t->t.len, module_key, t);

	if (err)
		goto out;
	err = nps_csv_table__write(ex, dirfd, &table,
				   &(struct nps_csv_input){ .order = groups.order.data, .len = groups.len });
out:
	nps_vec__free(&groups.order);
	return err;
}

/* --- npu_mem --- */

static bool is_app(const struct nps_model *m, size_t row)
{
	return !strcmp(nps_model__text(m, m->npu_mem.type[row]), "app");
}

/* Others are npuscope's own lanes in databases (export_db_memory.c). */
static bool is_device(const struct nps_model *m, size_t row)
{
	return !strcmp(nps_model__text(m, m->npu_mem.type[row]), "device");
}

static bool has_app(const struct nps_model *m)
{
	for (size_t i = 0; i < m->npu_mem.t.len; i++)
		if (is_app(m, i))
			return true;
	return false;
}

/* The next sample of all modules of a device: rows [*FIRST, *AT) of npu_module_mem. False: none is left. */
static bool next_module_sample(const struct nps_npu_module_mem_table *t, size_t *at, size_t *first,
			       int64_t *reserved)
{
	*first = *at;
	*reserved = 0;
	for (; *at < t->t.len && t->timestamp[*at] == t->timestamp[*first] &&
	       t->device[*at] == t->device[*first];
	     ++*at)
		if (t->reserved[*at] > 0 && __builtin_add_overflow(*reserved, t->reserved[*at], reserved))
			*reserved = INT64_MAX;
	return *at > *first;
}

/* What a row of `npu_mem` does not hold itself. */
struct npu_mem_row {
	const struct nps_model *m;
	size_t next; /* row of `npu_mem` */
	const char *event;
	double sum;
};

static bool next_npu_mem(void *ctx, struct nps_csv_row *row)
{
	struct npu_mem_row *r = ctx;
	const struct nps_npu_mem_table *t = &r->m->npu_mem;
	size_t i = r->next;

	while (i < t->t.len && !is_app(r->m, i) && !is_device(r->m, i))
		i++;
	r->next = i + 1;
	if (i == t->t.len)
		return false;
	r->event = is_app(r->m, i) ? "APP" : "Device";
	r->sum = t->ddr[i] + t->hbm[i];
	row->at[0] = i;
	return true;
}

static const struct nps_csv_column npu_mem_columns[] = {
	NPS_CSV_DEVICE_ID(npu_mem),
	NPS_CSV_FIELD("event", WORD, struct npu_mem_row, event, .source = 1),
	NPS_CSV_COL("ddr(KB)", REPR, npu_mem, ddr, .per = NPS_KB),
	NPS_CSV_COL("hbm(KB)", REPR, npu_mem, hbm, .per = NPS_KB),
	NPS_CSV_FIELD("memory(KB)", REPR, struct npu_mem_row, sum, .source = 1, .per = NPS_KB),
	NPS_CSV_COL("timestamp(us)", TIME, npu_mem, timestamp),
};

static int write_npu_mem(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "npu_mem", NPS_CSV_OF(npu_mem, npu_mem_columns) };
	struct npu_mem_row row = { .m = ex->model };

	return nps_csv_table__write(
		ex, dirfd, &table,
		&(struct nps_csv_input){ .sources[1].structs = &row, .next = next_npu_mem, .ctx = &row });
}

/* --- memory_record --- */

struct level {
	int64_t allocated, reserved;
};

#define RECORDED 1 /* variant of rows: the component is a text of the model */

/* The one source of the table: allocators, the driver and CANN all have their part in it. */
struct memory_record {
	const char *component;
	uint32_t text, device;
	uint64_t time;
	struct level level;
	int64_t active, stream;
};

#define RECORD(title, format, member, ...)                                                                   \
	NPS_CSV_FIELD(title, format, struct memory_record, member, ##__VA_ARGS__)

static const struct nps_csv_column record_columns[] = {
	RECORD("Component", WORD, component),
	RECORD(NULL, TEXT, text, .variant = RECORDED),
	RECORD("Timestamp(us)", TIME, time),
	RECORD("Total Allocated(MB)", REPR_OR_BLANK, level.allocated, .per = NPS_MB),
	RECORD("Total Reserved(MB)", REPR_OR_BLANK, level.reserved, .per = NPS_MB),
	RECORD("Total Active(MB)", REPR_OR_BLANK, active, .per = NPS_MB),
	RECORD("Stream Ptr", NUMBER_OR_BLANK, stream),
	RECORD("Device Type", NPU, device),
};

static const struct nps_csv_column cann_record_columns[] = {
	RECORD("Device_id", DEVICE, device, .when = NPS_CSV_B),
	RECORD("Component", WORD, component),
	RECORD(NULL, TEXT, text, .variant = RECORDED),
	RECORD("Timestamp(us)", TIME, time),
	RECORD("Total Allocated(KB)", REPR_OR_BLANK, level.allocated, .per = NPS_KB),
	RECORD("Total Reserved(KB)", REPR_OR_BLANK, level.reserved, .per = NPS_KB),
	RECORD("Device", NPU, device),
};

struct records {
	const struct nps_model *m;
	struct nps_csv_rows *rows;
	struct memory_record row;
	bool sums; /* the sums of framework and CANN are not in the table yet */
	struct level pta, ge;
	int64_t active, stream; /* of the framework, latest */
};

/* COMPONENT NULL: it is TEXT. */
static void put_record(struct records *r, const char *component, uint32_t text, uint64_t time,
		       uint32_t device, struct level level)
{
	r->row.component = component;
	r->row.text = text;
	r->row.time = time;
	r->row.device = device;
	r->row.level = level;
	nps_csv_rows__put(r->rows, &(struct nps_csv_row){ .variant = component ? 0 : RECORDED });
	r->row.active = r->row.stream = NPS_NULL;
}

static void app_rows(struct records *r)
{
	const struct nps_npu_mem_table *t = &r->m->npu_mem;

	for (size_t i = 0; i < t->t.len; i++) {
		double bytes = t->ddr[i] + t->hbm[i];

		if (is_app(r->m, i) && fabs(bytes) < 1e18)
			put_record(r, "APP", NPS_NONE, t->timestamp[i], t->device[i],
				   (struct level){ NPS_NULL, (int64_t)bytes });
	}
}

/*
 * The memory page of Insight needs memory_record beside npu_module_mem: the sum over the driver's modules
 * stands for the process. Such rows are only written where no others are.
 */
static void module_rows(struct records *r)
{
	const struct nps_npu_module_mem_table *t = &r->m->npu_module_mem;
	struct level level = { .allocated = NPS_NULL };
	size_t at = 0, first;

	while (next_module_sample(t, &at, &first, &level.reserved))
		put_record(r, "APP", NPS_NONE, t->timestamp[first], t->device[first], level);
}

static void sum_row(struct records *r, uint64_t time, uint32_t device)
{
	struct level level;

	if (!r->sums || __builtin_add_overflow(r->pta.allocated, r->ge.allocated, &level.allocated) ||
	    __builtin_add_overflow(r->pta.reserved, r->ge.reserved, &level.reserved))
		return;
	r->row.active = r->active;
	r->row.stream = r->stream;
	put_record(r, "PTA+GE", NPS_NONE, time, device, level);
}

/* A row as the framework's profiler left it. CANN's have no active memory and no stream. */
static void recorded_row(struct records *r, size_t i)
{
	const struct nps_memory_record_table *t = &r->m->memory_record;
	const char *component = nps_model__text(r->m, t->component[i]);
	struct level level = { t->allocated[i], t->reserved[i] };

	r->row.active = t->stream[i] == NPS_NULL ? NPS_NULL : t->active[i];
	r->row.stream = t->stream[i];
	put_record(r, NULL, t->component[i], t->timestamp[i], t->device[i], level);
	if (!strcmp(component, "PTA")) {
		r->pta = level;
		r->active = t->active[i];
		r->stream = t->stream[i];
		sum_row(r, t->timestamp[i], t->device[i]);
	} else if (!strcmp(component, "GE")) {
		r->ge = level;
		sum_row(r, t->timestamp[i], t->device[i]);
	}
}

static void cann_row(struct records *r, size_t i)
{
	const struct nps_npu_op_mem_table *t = &r->m->npu_op_mem;

	r->ge = (struct level){ t->allocated[i], t->reserved[i] };
	put_record(r, "GE", NPS_NONE, t->timestamp[i], t->device[i], r->ge);
	sum_row(r, t->timestamp[i], t->device[i]);
}

static bool has_component(const struct nps_model *m, const char *component)
{
	struct nps_pace pace = { .model = m };
	uint32_t other = NPS_NONE;

	for (size_t i = 0; i < m->memory_record.t.len; i++) {
		nps_pace__step(&pace);
		if (m->memory_record.component[i] == other)
			continue;
		other = m->memory_record.component[i];
		if (!strcmp(nps_model__text(m, other), component))
			return true;
	}
	return false;
}

static int open_records(struct records *r, const struct nps_export *ex, int dirfd,
			const struct nps_csv_table *table)
{
	*r = (struct records){ .m = ex->model, .active = NPS_NULL, .stream = NPS_NULL };
	r->row.active = r->row.stream = NPS_NULL;
	return nps_csv_rows__open(&r->rows, ex, dirfd, table,
				  &(struct nps_csv_input){ .sources[0].structs = &r->row });
}

static int memory_record(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "memory_record", .crlf = true,
						    .columns = NPS_CSV_COLUMNS(record_columns) };
	const struct nps_model *m = ex->model;
	size_t i = 0, cann = has_component(m, "GE") ? m->npu_op_mem.t.len : 0;
	bool framework = m->memory_record.t.len; /* without it there is nothing to add CANN's to */
	struct records r;
	int err;

	if (!framework && !m->npu_module_mem.t.len)
		return 0;
	err = open_records(&r, ex, dirfd, &table);
	if (err)
		return err;
	r.sums = !has_component(m, "PTA+GE");
	if (framework || has_app(m))
		app_rows(&r);
	else
		module_rows(&r);
	while (framework && (i < m->memory_record.t.len || cann < m->npu_op_mem.t.len)) {
		if (cann == m->npu_op_mem.t.len ||
		    (i < m->memory_record.t.len &&
		     m->memory_record.timestamp[i] <= m->npu_op_mem.timestamp[cann]))
			recorded_row(&r, i++);
		else
			cann_row(&r, cann++);
	}
	return nps_csv_rows__close(r.rows, 0);
}

static int cann_memory_record(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "memory_record",
						    .columns = NPS_CSV_COLUMNS(cann_record_columns) };
	const struct nps_npu_op_mem_table *t = &ex->model->npu_op_mem;
	struct records r;
	int err = open_records(&r, ex, dirfd, &table);

	if (err)
		return err;
	for (size_t i = 0; i < t->t.len; i++)
		put_record(&r, NULL, t->component[i], t->timestamp[i], t->device[i],
			   (struct level){ t->allocated[i], t->reserved[i] });
	if (!t->t.len)
		module_rows(&r);
	return nps_csv_rows__close(r.rows, 0);
}

/* --- operator_memory --- */

enum { ALLOCATION_SOURCE, RELEASE_SOURCE, FRAMEWORK_SOURCE };

/* Variants of rows beside the framework's: an operator of CANN in the framework's row or in CANN's pair. */
enum { FRAMEWORK, CANN_RECORDED, CANN };

static void put_cann_name(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct nps_model *m = csv->model;
	uint32_t name = row->variant == CANN ? m->npu_op_mem.name[row->at[ALLOCATION_SOURCE]]
					     : m->op_memory.name[row->at[FRAMEWORK_SOURCE]];
	const char *text = nps_model__text_or_na(m, name);
	char *at;

	(void)ctx;
	if (!strncmp(text, "cann::", 6)) {
		nps_csv__text(csv, name);
		return;
	}
	if (text[strcspn(text, ",\"\r\n")]) {
		nps_csv__open_quotes(csv);
		nps_csv__part(csv, "cann::");
		nps_csv__part(csv, text);
		nps_csv__close_quotes(csv);
		return;
	}
	at = nps_csv__room(csv, NPS_CSV_CELL);
	csv->len += nps_put_text(at, "cann::", 6);
	nps_csv__text(csv, name);
}

static void put_lifetime(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const uint64_t *time = csv->model->npu_op_mem.timestamp;
	size_t from = row->at[ALLOCATION_SOURCE], to = row->at[RELEASE_SOURCE];

	(void)ctx;
	if (to == NPS_CSV_NO_ROW || time[to] < time[from])
		nps_csv__empty(csv);
	else
		nps_csv__short(csv, time[to] - time[from]);
}

#define FRAMEWORK_CELL(title, format, column, ...)                                                           \
	NPS_CSV_COL(title, format, op_memory, column, .source = FRAMEWORK_SOURCE, ##__VA_ARGS__)
#define CANN_CELL(title, format, when, column, ...)                                                          \
	NPS_CSV_COL(title, format, npu_op_mem, column, .source = when##_SOURCE, ##__VA_ARGS__)

/* Python subtracted two strings of an operator of the framework's; CANN's lifetimes are floats. */
static const struct nps_csv_column operator_columns[] = {
	FRAMEWORK_CELL("Name", TEXT, name),
	NPS_CSV_BY(NULL, put_cann_name, .variant = CANN_RECORDED),
	NPS_CSV_BY(NULL, put_cann_name, .variant = CANN),
	FRAMEWORK_CELL("Size(KB)", REPR_OR_BLANK, size, .per = NPS_KB),
	CANN_CELL(NULL, REPR_OR_BLANK, ALLOCATION, size, .per = NPS_KB, .variant = CANN),
	FRAMEWORK_CELL("Allocation Time(us)", TIME_OR_BLANK, allocation),
	CANN_CELL(NULL, TIME, ALLOCATION, timestamp, .variant = CANN),
	FRAMEWORK_CELL("Release Time(us)", TIME_OR_BLANK, release),
	CANN_CELL(NULL, TIME_OR_BLANK, RELEASE, timestamp, .variant = CANN),
	FRAMEWORK_CELL("Active Release Time(us)", TIME_OR_BLANK, active_release),
	FRAMEWORK_CELL("Duration(us)", TIME_OR_BLANK, duration),
	FRAMEWORK_CELL(NULL, SHORT_OR_BLANK, duration, .variant = CANN_RECORDED),
	NPS_CSV_BY(NULL, put_lifetime, .variant = CANN),
	FRAMEWORK_CELL("Active Duration(us)", TIME_OR_BLANK, active_duration),
	FRAMEWORK_CELL(NULL, SHORT_OR_BLANK, active_duration, .variant = CANN_RECORDED),
	FRAMEWORK_CELL("Allocation Total Allocated(MB)", REPR_OR_BLANK, allocation_allocated, .per = NPS_MB),
	CANN_CELL(NULL, REPR_OR_BLANK, ALLOCATION, allocated, .per = NPS_MB, .variant = CANN),
	FRAMEWORK_CELL("Allocation Total Reserved(MB)", REPR_OR_BLANK, allocation_reserved, .per = NPS_MB),
	CANN_CELL(NULL, REPR_OR_BLANK, ALLOCATION, reserved, .per = NPS_MB, .variant = CANN),
	FRAMEWORK_CELL("Allocation Total Active(MB)", REPR_OR_BLANK, allocation_active, .per = NPS_MB),
	FRAMEWORK_CELL("Release Total Allocated(MB)", REPR_OR_BLANK, release_allocated, .per = NPS_MB),
	CANN_CELL(NULL, REPR_OR_BLANK, RELEASE, allocated, .per = NPS_MB, .variant = CANN),
	FRAMEWORK_CELL("Release Total Reserved(MB)", REPR_OR_BLANK, release_reserved, .per = NPS_MB),
	CANN_CELL(NULL, REPR_OR_BLANK, RELEASE, reserved, .per = NPS_MB, .variant = CANN),
	FRAMEWORK_CELL("Release Total Active(MB)", REPR_OR_BLANK, release_active, .per = NPS_MB),
	FRAMEWORK_CELL("Stream Ptr", NUMBER_OR_BLANK, stream),
	FRAMEWORK_CELL("Device Type", NPU, device),
	CANN_CELL(NULL, NPU, ALLOCATION, device, .variant = CANN),
};

static const struct nps_csv_column cann_operator_columns[] = {
	NPS_CSV_DEVICE_ID(npu_op_mem),
	CANN_CELL("Name", TEXT, ALLOCATION, name),
	CANN_CELL("Size(KB)", REPR_OR_BLANK, ALLOCATION, size, .per = NPS_KB),
	CANN_CELL("Allocation Time(us)", TIME, ALLOCATION, timestamp),
	NPS_CSV_BY("Duration(us)", put_lifetime),
	CANN_CELL("Allocation Total Allocated(KB)", REPR_OR_BLANK, ALLOCATION, allocated, .per = NPS_KB),
	CANN_CELL("Allocation Total Reserved(KB)", REPR_OR_BLANK, ALLOCATION, reserved, .per = NPS_KB),
	CANN_CELL("Release Total Allocated(KB)", REPR_OR_BLANK, RELEASE, allocated, .per = NPS_KB),
	CANN_CELL("Release Total Reserved(KB)", REPR_OR_BLANK, RELEASE, reserved, .per = NPS_KB),
	CANN_CELL("Device", NPU, ALLOCATION, device),
};

static void cann_operator_row(void *ctx, uint32_t from, uint32_t to)
{
	struct nps_csv_row row = { .variant = CANN };

	row.at[ALLOCATION_SOURCE] = from;
	row.at[RELEASE_SOURCE] = to == NPS_NONE ? NPS_CSV_NO_ROW : to;
	row.at[FRAMEWORK_SOURCE] = NPS_CSV_NO_ROW;
	nps_csv_rows__put(ctx, &row);
}

/* CANN's operators stand behind the framework's, where the table does not have them yet. */
static int operator_memory(const struct nps_export *ex, int dirfd)
{
	const struct nps_op_memory_table *t = &ex->model->op_memory;
	static const struct nps_csv_table table = { "operator_memory", .crlf = true,
						    NPS_CSV_OF(npu_op_mem, operator_columns) };
	const struct nps_csv_input input = { .sources = { [RELEASE_SOURCE].table = &ex->model->npu_op_mem.t,
							  [FRAMEWORK_SOURCE].table = &t->t } };
	struct nps_csv_rows *rows;
	bool cann = false;
	int err;

	if (!t->t.len)
		return 0;
	err = nps_csv_rows__open(&rows, ex, dirfd, &table, &input);
	if (err)
		return err;
	for (size_t i = 0; i < t->t.len; i++) {
		bool recorded = t->stream[i] == NPS_NULL;

		nps_csv_rows__put(rows,
				  &(struct nps_csv_row){ .at[FRAMEWORK_SOURCE] = i,
							 .variant = recorded ? CANN_RECORDED : FRAMEWORK });
		cann |= recorded;
	}
	if (!cann)
		err = nps_op_memory__pairs(ex->model, cann_operator_row, rows);
	return nps_csv_rows__close(rows, err);
}

static int cann_operator_memory(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "operator_memory",
						    NPS_CSV_OF(npu_op_mem, cann_operator_columns) };
	const struct nps_csv_input input = { .sources[RELEASE_SOURCE].table = &ex->model->npu_op_mem.t };
	struct nps_csv_rows *rows;
	int err = nps_csv_rows__open(&rows, ex, dirfd, &table, &input);

	if (err)
		return err;
	err = nps_op_memory__pairs(ex->model, cann_operator_row, rows);
	return nps_csv_rows__close(rows, err);
}

/* --- static_op_mem --- */

static const struct nps_csv_column static_op_mem_columns[] = {
	NPS_CSV_HOST_ID,
	NPS_CSV_COL("Op Name", TEXT, static_op_mem, name),
	NPS_CSV_COL("Model Name", TEXT, static_op_mem, model),
	NPS_CSV_COL("Graph ID", NUMBER, static_op_mem, graph),
	NPS_CSV_COL("Node Index Start", NUMBER_OR_BLANK, static_op_mem, first),
	NPS_CSV_COL("Node Index End", NUMBER_OR_BLANK, static_op_mem, last),
	NPS_CSV_COL("Size(KB)", REPR_OR_BLANK, static_op_mem, size, .per = NPS_KB),
};

static int static_op_mem(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "static_op_mem",
						    NPS_CSV_OF(static_op_mem, static_op_mem_columns) };

	return nps_csv_table__write(ex, dirfd, &table, NULL);
}

int nps_csv__torch_memory(const struct nps_export *ex, int dirfd)
{
	static nps_csv_write_fn *const tables[] = { operator_memory, memory_record, npu_module_mem };

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}

int nps_csv__msprof_memory(const struct nps_export *ex, int dirfd)
{
	static nps_csv_write_fn *const tables[] = { npu_module_mem, write_npu_mem, cann_memory_record,
						    cann_operator_memory, static_op_mem };

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}
