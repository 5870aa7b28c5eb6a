/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: of the device, of the driver's modules, of allocators and of operators. */
#include "export/csv_modules.h"
#include "export/csv_op_memory.h"
#include "export/csv_tables.h"

#include <errno.h>
#include <math.h>

/* --- npu_mem, npu_module_mem --- */

static uint64_t module_key(const void *ctx, size_t row)
{
	const struct nps_npu_module_mem_table *t = ctx;

	return (uint64_t)t->device[row] << 32 | t->module[row];
}

static void put_module(struct nps_csv *csv, uint32_t module)
{
	const char *name = nps_module_name(module, csv->ex->generation);

	if (name)
		nps_csv__lit(csv, name);
	else
		nps_csv__u64(csv, module);
}

static int npu_module_mem(const struct nps_export *ex, int dirfd, bool torch)
{
	const struct nps_csv_file file = {
		.stem = "npu_module_mem",
		.header = torch ? "Component,Timestamp(us),Total Reserved(MB),Device"
				: "Component,Timestamp(us),Total Reserved(KB),Device",
		.stamped = !torch,
		.device = true
	};
	const struct nps_npu_module_mem_table *t = &ex->model->npu_module_mem;
	struct nps_csv_groups groups;
	struct nps_csv *csv;
	int err = nps_csv__group(&groups, ex->model, t->t.len, module_key, t);

	if (err)
		goto out;
	csv = nps_csv__new(ex, dirfd, &file);
	for (size_t i = 0; csv && i < groups.len; i++) {
		uint32_t row = nps_csv__grouped(&groups, i);

		nps_csv__row(csv);
		nps_csv__device(csv, t->device[row]);
		put_module(csv, t->module[row]);
		nps_csv__time(csv, t->timestamp[row]);
		nps_csv__bytes(csv, t->reserved[row], torch ? NPS_MB : NPS_KB);
		nps_csv__npu(csv, t->device[row]);
		nps_csv__end(csv);
	}
	err = nps_csv__close(csv);
out:
	nps_vec__free(&groups.order);
	return err;
}

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

/* One sample of all modules of a device: rows [*AT, end) of npu_module_mem; *AT moves behind it. False: there is none left. */
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

static int npu_mem(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "npu_mem",
					   .header = "event,ddr(KB),hbm(KB),memory(KB),timestamp(us)",
					   .stamped = true,
					   .device = true };
	const struct nps_npu_mem_table *t = &ex->model->npu_mem;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		if (!is_app(ex->model, i) && !is_device(ex->model, i))
			continue;
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__lit(csv, is_app(ex->model, i) ? "APP" : "Device");
		nps_csv__repr(csv, t->ddr[i] / NPS_KB);
		nps_csv__repr(csv, t->hbm[i] / NPS_KB);
		nps_csv__repr(csv, (t->ddr[i] + t->hbm[i]) / NPS_KB);
		nps_csv__time(csv, t->timestamp[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

/* --- memory_record --- */

struct levels {
	int64_t allocated, reserved;
};

struct records {
	const struct nps_model *m;
	struct nps_csv *csv;
	bool sums; /* the sums of framework and CANN are not in the table yet */
	struct levels pta, ge;
	int64_t active, stream; /* of the framework, latest */
};

/* The component is in the row already. */
static void record_row(struct records *r, uint64_t time, struct levels level, int64_t active, int64_t stream,
		       uint32_t device)
{
	nps_csv__time(r->csv, time);
	nps_csv__bytes(r->csv, level.allocated, NPS_MB);
	nps_csv__bytes(r->csv, level.reserved, NPS_MB);
	nps_csv__bytes(r->csv, active, NPS_MB);
	nps_csv__i64(r->csv, stream);
	nps_csv__npu(r->csv, device);
	nps_csv__end(r->csv);
}

static void app_rows(struct records *r)
{
	const struct nps_npu_mem_table *t = &r->m->npu_mem;

	for (size_t i = 0; i < t->t.len; i++) {
		double bytes = t->ddr[i] + t->hbm[i];
		struct levels level = { .allocated = NPS_NULL };

		if (!is_app(r->m, i) || !(fabs(bytes) < 1e18))
			continue;
		level.reserved = (int64_t)bytes;
		nps_csv__row(r->csv);
		nps_csv__lit(r->csv, "APP");
		record_row(r, t->timestamp[i], level, NPS_NULL, NPS_NULL, t->device[i]);
	}
}

/* The memory page of Insight needs memory_record beside npu_module_mem: what all modules of the driver hold is the process's. */
static void module_rows(struct records *r)
{
	const struct nps_npu_module_mem_table *t = &r->m->npu_module_mem;
	struct levels level = { .allocated = NPS_NULL };
	size_t at = 0, first;

	while (next_module_sample(t, &at, &first, &level.reserved)) {
		nps_csv__row(r->csv);
		nps_csv__lit(r->csv, "APP");
		record_row(r, t->timestamp[first], level, NPS_NULL, NPS_NULL, t->device[first]);
	}
}

static void sum_row(struct records *r, uint64_t time, uint32_t device)
{
	struct levels level;

	if (!r->sums)
		return;
	if (__builtin_add_overflow(r->pta.allocated, r->ge.allocated, &level.allocated) ||
	    __builtin_add_overflow(r->pta.reserved, r->ge.reserved, &level.reserved))
		return;
	nps_csv__row(r->csv);
	nps_csv__lit(r->csv, "PTA+GE");
	record_row(r, time, level, r->active, r->stream, device);
}

/* A row as the framework's profiler left it. CANN's have no active memory and no stream. */
static void recorded_row(struct records *r, size_t i)
{
	const struct nps_memory_record_table *t = &r->m->memory_record;
	const char *component = nps_model__text(r->m, t->component[i]);
	struct levels level = { t->allocated[i], t->reserved[i] };

	nps_csv__row(r->csv);
	nps_csv__text(r->csv, t->component[i]);
	record_row(r, t->timestamp[i], level, t->stream[i] == NPS_NULL ? NPS_NULL : t->active[i],
		   t->stream[i], t->device[i]);
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

	r->ge = (struct levels){ t->allocated[i], t->reserved[i] };
	nps_csv__row(r->csv);
	nps_csv__lit(r->csv, "GE");
	record_row(r, t->timestamp[i], r->ge, NPS_NULL, NPS_NULL, t->device[i]);
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

static int memory_record(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "memory_record",
		.header = "Component,Timestamp(us),Total Allocated(MB),"
			  "Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type",
		.crlf = ex->generation == NPS_GENERATION_A
	};
	const struct nps_model *m = ex->model;
	struct records r = { .m = m, .active = NPS_NULL, .stream = NPS_NULL };
	size_t i = 0, cann = has_component(m, "GE") ? m->npu_op_mem.t.len : 0;

	bool framework = m->memory_record.t.len; /* without it there is nothing to add CANN's to */

	if (!framework && !m->npu_module_mem.t.len)
		return 0;
	r.csv = nps_csv__new(ex, dirfd, &file);
	if (!r.csv)
		return -ENOMEM;
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
	return nps_csv__close(r.csv);
}

/* As module_rows, where CANN told of no operator's memory. */
static void cann_module_rows(struct nps_csv *csv)
{
	const struct nps_npu_module_mem_table *t = &csv->model->npu_module_mem;
	size_t at = 0, first;
	int64_t reserved;

	while (next_module_sample(t, &at, &first, &reserved)) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[first]);
		nps_csv__lit(csv, "APP");
		nps_csv__time(csv, t->timestamp[first]);
		nps_csv__bytes(csv, NPS_NULL, NPS_KB);
		nps_csv__bytes(csv, reserved, NPS_KB);
		nps_csv__npu(csv, t->device[first]);
		nps_csv__end(csv);
	}
}

static int cann_memory_record(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "memory_record",
					   .header = "Component,Timestamp(us),Total Allocated(KB),"
						     "Total Reserved(KB),Device",
					   .stamped = true,
					   .device = true };
	const struct nps_npu_op_mem_table *t = &ex->model->npu_op_mem;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__text(csv, t->component[i]);
		nps_csv__time(csv, t->timestamp[i]);
		nps_csv__bytes(csv, t->allocated[i], NPS_KB);
		nps_csv__bytes(csv, t->reserved[i], NPS_KB);
		nps_csv__npu(csv, t->device[i]);
		nps_csv__end(csv);
	}
	if (csv && !t->t.len)
		cann_module_rows(csv);
	return nps_csv__close(csv);
}

/* --- operator_memory --- */

static void put_time(struct nps_csv *csv, int64_t ns)
{
	if (ns < 0) /* NPS_NULL too: not released */
		nps_csv__empty(csv);
	else
		nps_csv__time(csv, ns);
}

/* Python took the difference of two strings of one operator, CANN's own are floats. */
static void put_duration(struct nps_csv *csv, int64_t ns, bool cann)
{
	if (ns < 0)
		nps_csv__empty(csv);
	else if (cann)
		nps_csv__short(csv, ns);
	else
		nps_csv__time(csv, ns);
}

static void put_name(struct nps_csv *csv, uint32_t name, bool cann)
{
	const char *text = nps_model__text_or_na(csv->model, name);
	char *at;

	if (!cann || !strncmp(text, "cann::", 6)) {
		nps_csv__text(csv, name);
		return;
	}
	if (text[strcspn(text, ",\"\r\n")]) {
		nps_csv__open_quotes(csv);
		nps_csv__piece(csv, "cann::");
		nps_csv__piece(csv, text);
		nps_csv__close_quotes(csv);
		return;
	}
	at = nps_csv__room(csv, NPS_CSV_CELL);
	csv->len += nps_put_text(at, "cann::", 6);
	nps_csv__text(csv, name);
}

static void operator_row(struct nps_csv *csv, size_t i)
{
	const struct nps_op_memory_table *t = &csv->model->op_memory;
	bool cann = t->stream[i] == NPS_NULL;

	nps_csv__row(csv);
	put_name(csv, t->name[i], cann);
	nps_csv__bytes(csv, t->size[i], NPS_KB);
	put_time(csv, t->allocation[i]);
	put_time(csv, t->release[i]);
	put_time(csv, t->active_release[i]);
	put_duration(csv, t->duration[i], cann);
	put_duration(csv, t->active_duration[i], cann);
	nps_csv__bytes(csv, t->allocation_allocated[i], NPS_MB);
	nps_csv__bytes(csv, t->allocation_reserved[i], NPS_MB);
	nps_csv__bytes(csv, t->allocation_active[i], NPS_MB);
	nps_csv__bytes(csv, t->release_allocated[i], NPS_MB);
	nps_csv__bytes(csv, t->release_reserved[i], NPS_MB);
	nps_csv__bytes(csv, t->release_active[i], NPS_MB);
	nps_csv__i64(csv, t->stream[i]);
	nps_csv__npu(csv, t->device[i]);
	nps_csv__end(csv);
}

static void put_levels(struct nps_csv *csv, uint32_t row, double unit)
{
	const struct nps_npu_op_mem_table *t = &csv->model->npu_op_mem;

	nps_csv__bytes(csv, row == NPS_NONE ? NPS_NULL : t->allocated[row], unit);
	nps_csv__bytes(csv, row == NPS_NONE ? NPS_NULL : t->reserved[row], unit);
}

static int64_t lifetime(const struct nps_npu_op_mem_table *t, uint32_t from, uint32_t to)
{
	return to == NPS_NONE || t->timestamp[to] < t->timestamp[from]
		       ? NPS_NULL
		       : (int64_t)(t->timestamp[to] - t->timestamp[from]);
}

/* CANN's operators behind the framework's, where the table does not have them yet. */
static void cann_operator_row(void *ctx, uint32_t from, uint32_t to)
{
	struct nps_csv *csv = ctx;
	const struct nps_npu_op_mem_table *t = &csv->model->npu_op_mem;

	nps_csv__row(csv);
	put_name(csv, t->name[from], true);
	nps_csv__bytes(csv, t->size[from], NPS_KB);
	nps_csv__time(csv, t->timestamp[from]);
	put_time(csv, to == NPS_NONE ? NPS_NULL : (int64_t)t->timestamp[to]);
	nps_csv__empty(csv);
	put_duration(csv, lifetime(t, from, to), true);
	nps_csv__empty(csv);
	put_levels(csv, from, NPS_MB);
	nps_csv__empty(csv);
	put_levels(csv, to, NPS_MB);
	nps_csv__empty(csv);
	nps_csv__empty(csv);
	nps_csv__npu(csv, t->device[from]);
	nps_csv__end(csv);
}

static int operator_memory(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "operator_memory",
		.header =
			"Name,Size(KB),Allocation Time(us),Release Time(us),Active Release "
			"Time(us),Duration(us),"
			"Active Duration(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
			"Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),"
			"Release Total Active(MB),Stream Ptr,Device Type",
		.crlf = ex->generation == NPS_GENERATION_A
	};
	const struct nps_op_memory_table *t = &ex->model->op_memory;
	struct nps_csv *csv;
	bool cann = false;
	int err = 0;

	if (!t->t.len)
		return 0;
	csv = nps_csv__new(ex, dirfd, &file);
	for (size_t i = 0; csv && i < t->t.len; i++) {
		operator_row(csv, i);
		cann |= t->stream[i] == NPS_NULL;
	}
	if (csv && !cann)
		err = nps_op_memory__pairs(ex->model, cann_operator_row, csv);
	if (csv && err)
		csv->err = err;
	return nps_csv__close(csv);
}

static void msprof_operator_row(void *ctx, uint32_t from, uint32_t to)
{
	struct nps_csv *csv = ctx;
	const struct nps_npu_op_mem_table *t = &csv->model->npu_op_mem;

	nps_csv__row(csv);
	nps_csv__device(csv, t->device[from]);
	nps_csv__text(csv, t->name[from]);
	nps_csv__bytes(csv, t->size[from], NPS_KB);
	nps_csv__time(csv, t->timestamp[from]);
	put_duration(csv, lifetime(t, from, to), true);
	put_levels(csv, from, NPS_KB);
	put_levels(csv, to, NPS_KB);
	nps_csv__npu(csv, t->device[from]);
	nps_csv__end(csv);
}

static int msprof_operator_memory(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "operator_memory",
		.header = "Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total Allocated(KB),"
			  "Allocation Total Reserved(KB),Release Total Allocated(KB),"
			  "Release Total Reserved(KB),Device",
		.stamped = true,
		.device = true
	};
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	int err;

	if (!csv)
		return -ENOMEM;
	err = nps_op_memory__pairs(ex->model, msprof_operator_row, csv);
	csv->err = csv->err ? csv->err : err;
	return nps_csv__close(csv);
}

static int static_op_mem(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "static_op_mem",
		.header = "Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)",
		.stamped = true,
		.device = true
	};
	const struct nps_static_op_mem_table *t = &ex->model->static_op_mem;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__text(csv, t->name[i]);
		nps_csv__text(csv, t->model[i]);
		nps_csv__u64(csv, t->graph[i]);
		nps_csv__i64(csv, t->first[i]);
		nps_csv__i64(csv, t->last[i]);
		nps_csv__bytes(csv, t->size[i], NPS_KB);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_csv__torch_memory(const struct nps_export *ex, int dirfd)
{
	int err = operator_memory(ex, dirfd);

	if (!err)
		err = memory_record(ex, dirfd);
	return err ? err : npu_module_mem(ex, dirfd, true);
}

int nps_csv__msprof_memory(const struct nps_export *ex, int dirfd)
{
	static int (*const tables[])(const struct nps_export *, int) = { npu_mem, cann_memory_record,
									 msprof_operator_memory,
									 static_op_mem };
	int err = npu_module_mem(ex, dirfd, false);

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(tables); i++)
		err = tables[i](ex, dirfd);
	return err;
}
