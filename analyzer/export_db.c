/* SPDX-License-Identifier: BSD-2-Clause */
/* ascend_pytorch_profiler_{rank}.db and analysis.db (outputs 4). */
#include "export_db.h"

#include "export.h"
#include "session_reader.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_ID 4294967295LL
#define NO_NOTIFY INT64_MAX
#define NOT_KNOWN 65534 /* `N/A` of the HCCL enums */

struct fill {
	const struct nps_result *r;
	struct nps_model *m;
	struct nps_db db;
	struct nps_vec ids; /* uint32_t: text -> STRING_IDS id + 1 */
	struct nps_vec order; /* uint32_t: STRING_IDS id -> text */
	int64_t na;
};

/* --- strings --- */

static int64_t string_id(struct fill *f, uint32_t text)
{
	uint32_t *id, *order;

	if (text == NPS_NONE)
		return f->na;
	if (text >= f->ids.len && nps_vec__resize(&f->ids, NPS_MAX((size_t)text + 1, f->m->strings.at.len))) {
		f->db.err = f->db.err ? f->db.err : -ENOMEM;
		return f->na;
	}
	id = &NPS_AT(&f->ids, uint32_t, text);
	if (*id)
		return *id - 1;
	order = nps_vec__push(&f->order);
	if (!order) {
		f->db.err = f->db.err ? f->db.err : -ENOMEM;
		return f->na;
	}
	*order = text;
	*id = f->order.len;
	return *id - 1;
}

static int64_t literal(struct fill *f, const char *text)
{
	return string_id(f, nps_strings__addz(&f->m->strings, text));
}

static void strings(struct fill *f)
{
	sqlite3_stmt *stmt = nps_db__insert(&f->db, "STRING_IDS", 2);

	for (size_t i = 0; !f->db.err && i < f->order.len; i++) {
		const char *text = nps_strings__get(&f->m->strings, NPS_AT(&f->order, uint32_t, i));

		sqlite3_bind_int64(stmt, 1, i);
		sqlite3_bind_text(stmt, 2, *text ? text : " ", -1,
				  SQLITE_STATIC); /* readers drop empty names */
		nps_db__step(&f->db, stmt);
	}
	sqlite3_finalize(stmt);
}

static int64_t real(const struct fill *f, uint64_t mono)
{
	return nps_model__real(f->m, mono);
}

static int64_t global_tid(const struct fill *f, uint32_t tid)
{
	return (int64_t)f->r->proc->pid << 32 | tid;
}

/* --- tables --- */

static void cann(struct fill *f)
{
	static const int64_t types[] = { [NPS_LAYER_RUNTIME] = 5000,
					 [NPS_LAYER_COMM] = 5500,
					 [NPS_LAYER_NODE] = 10000,
					 [NPS_LAYER_ACL] = 20000 };
	const struct nps_proc *proc = f->r->proc;
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "CANN_API", NULL, 6);
	for (size_t i = 0; !f->db.err && i < proc->cann_order.len; i++) {
		const struct nps_cann *row =
			&NPS_AT(&proc->cann, struct nps_cann, NPS_AT(&proc->cann_order, uint32_t, i));
		int64_t v[] = { real(f, row->start),	 real(f, row->end), types[row->level],
				global_tid(f, row->tid), row->conn,	    string_id(f, row->name) };

		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
}

static int64_t open_time(const struct fill *f, uint64_t mono)
{
	return mono == UINT64_MAX ? NPS_DB_NULL : real(f, mono);
}

static void task_time(struct fill *f, struct nps_db_bulk *bulk, const struct nps_task *task, size_t id)
{
	bool measured = nps_task__measured(task);
	struct nps_bounds b = { task->start, task->start, task->end, task->end };

	if (!measured)
		b = NPS_AT(&f->m->bounds, struct nps_bounds, task->bounds);
	int64_t v[] = { id,
			measured,
			open_time(f, b.start_low),
			open_time(f, b.start_high),
			open_time(f, b.end_low),
			open_time(f, b.end_high) };

	nps_db_bulk__add(bulk, v);
}

static void task_times(struct fill *f)
{
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "NPUSCOPE_TASK_TIME",
			  "(?,iif(?,'device log','host bounds'),?,?,?,?)", 6);
	for (size_t i = 0; !f->db.err && i < f->r->ntasks; i++)
		task_time(f, &bulk, &f->r->tasks[i], i);
	nps_db_bulk__finish(&bulk);
}

static void tasks(struct fill *f)
{
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "TASK", NULL, 11);
	for (size_t i = 0; !f->db.err && i < f->r->ntasks; i++) {
		const struct nps_task *task = &f->r->tasks[i];
		int64_t v[] = { real(f, task->start),
				real(f, task->end),
				task->device,
				task->conn,
				i,
				f->r->proc->pid,
				literal(f, nps_task_host_type(task)),
				task->context,
				task->stream,
				task->task,
				NO_ID };

		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
	nps_db__exec(&f->db, "CREATE INDEX TaskIndex ON TASK (startNs,globalTaskId)");
}

static void compute(struct fill *f)
{
	struct nps_db_bulk bulk;
	int64_t na = f->na;

	nps_db_bulk__init(&bulk, &f->db, "COMPUTE_TASK_INFO", NULL, 17);
	for (size_t i = 0; !f->db.err && i < f->r->ntasks; i++) {
		const struct nps_task *task = &f->r->tasks[i];

		if (task->kind != NPS_TASK_COMPUTE)
			continue;
		int64_t v[] = { string_id(f, task->name),
				i,
				task->blocks,
				0,
				literal(f, nps_task_core(task)),
				string_id(f, task->type),
				na,
				na,
				na,
				na,
				na,
				na,
				na,
				na,
				na,
				na,
				na };

		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
}

static void copies(struct fill *f)
{
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "MEMCPY_INFO", NULL, 3);
	for (size_t i = 0; !f->db.err && i < f->r->ntasks; i++) {
		const struct nps_task *task = &f->r->tasks[i];
		int64_t v[] = { i, task->size, task->memcpy_op == 255 ? 65535 : task->memcpy_op };

		if (task->kind == NPS_TASK_MEMCPY)
			nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
}

static void collectives(struct fill *f, int64_t *op_ids)
{
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "COMMUNICATION_OP", NULL, 14);
	for (size_t i = 0; !f->db.err && i < f->r->comm_order.len; i++) {
		uint32_t row = NPS_AT(&f->r->comm_order, uint32_t, i);
		const struct nps_comm_op *op = nps_result__comm(f->r, row);
		int64_t v[] = { string_id(f, op->name),
				real(f, op->start),
				real(f, op->end),
				op->conn,
				string_id(f, op->group),
				i + 1,
				0,
				0,
				op->dtype,
				f->na,
				NPS_MIN(op->count, (uint64_t)INT64_MAX),
				string_id(f, op->type),
				op->device,
				op->ranks };

		op_ids[row] = i + 1;
		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
}

static void collective_tasks(struct fill *f, const int64_t *op_ids)
{
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "COMMUNICATION_TASK_INFO", NULL, 16);
	for (size_t i = 0; !f->db.err && i < f->r->ntasks; i++) {
		const struct nps_task *task = &f->r->tasks[i];
		const struct nps_comm_op *op;

		if (task->comm == NPS_NONE)
			continue;
		op = nps_result__comm(f->r, task->comm);
		int64_t v[] = { string_id(f, op->name),
				i,
				literal(f, nps_comm_task_type(task)),
				nps_result__plane(f->r, task),
				string_id(f, op->group),
				NO_NOTIFY,
				NOT_KNOWN,
				NO_ID,
				NO_ID,
				NOT_KNOWN,
				-1,
				NOT_KNOWN,
				NOT_KNOWN,
				op_ids[task->comm],
				0,
				NPS_DB_NULL };

		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
	nps_db__exec(&f->db, "CREATE INDEX CommunicationTaskIndex ON COMMUNICATION_TASK_INFO (globalTaskId)");
}

static void communication(struct fill *f)
{
	int64_t *op_ids = calloc(f->r->proc->comms.len + 1, sizeof(*op_ids));

	if (!op_ids) {
		f->db.err = -ENOMEM;
		return;
	}
	collectives(f, op_ids);
	collective_tasks(f, op_ids);
	free(op_ids);
}

static void system_calls(struct fill *f)
{
	const char *arch = nps_json_str(cJSON_GetObjectItemCaseSensitive(f->m->json, "host"), "arch", "");
	const struct nps_vec *calls = &f->r->proc->os_calls;
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "OSRT_API", NULL, 4);
	for (size_t i = 0; !f->db.err && i < calls->len; i++) {
		const struct nps_os_call *call = &NPS_AT(calls, struct nps_os_call, i);
		const char *name = nps_syscall_name(arch, call->nr);
		char number[32];

		snprintf(number, sizeof(number), "syscall_%u", call->nr);
		int64_t v[] = { literal(f, name ? name : number), global_tid(f, call->tid),
				real(f, call->start), real(f, call->end) };

		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
}

static void overlap(struct fill *f)
{
	struct nps_db_bulk bulk;

	nps_db_bulk__init(&bulk, &f->db, "OVERLAP_ANALYSIS", NULL, 5);
	for (size_t i = 0; !f->db.err && i < f->r->overlap.len; i++) {
		const struct nps_span *span = &NPS_AT(&f->r->overlap, struct nps_span, i);
		int64_t v[] = { i, span->device, real(f, span->start), real(f, span->end), span->type };

		nps_db_bulk__add(&bulk, v);
	}
	nps_db_bulk__finish(&bulk);
}

static void steps(struct fill *f)
{
	sqlite3_stmt *stmt = nps_db__insert(&f->db, "STEP_TIME", 3);

	for (size_t i = 0; !f->db.err && i < f->r->proc->steps.len; i++) {
		const struct nps_step *step = &NPS_AT(&f->r->proc->steps, struct nps_step, i);
		int64_t v[] = { step->number, real(f, step->start), real(f, step->end) };

		nps_db__row(&f->db, stmt, v, NPS_ARRAY_SIZE(v));
	}
	sqlite3_finalize(stmt);
}

static void pair(struct fill *f, sqlite3_stmt *stmt, const char *name, const char *value)
{
	if (f->db.err)
		return;
	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(stmt, 2, value, -1, SQLITE_TRANSIENT);
	nps_db__step(&f->db, stmt);
}

static void meta_data(struct fill *f)
{
	sqlite3_stmt *stmt = nps_db__insert(&f->db, "META_DATA", 2);
	cJSON *meta = nps_export__metadata(f->r), *item;

	pair(f, stmt, "SCHEMA_VERSION_MICRO", "0");
	pair(f, stmt, "SCHEMA_VERSION_MINOR", "2");
	pair(f, stmt, "SCHEMA_VERSION_MAJOR", "1");
	pair(f, stmt, "SCHEMA_VERSION", "1.2.0");
	if (!meta)
		f->db.err = f->db.err ? f->db.err : -ENOMEM;
	cJSON_ArrayForEach(item, meta)
	{
		char *value = cJSON_PrintUnformatted(item);

		if (value)
			pair(f, stmt, item->string, value);
		cJSON_free(value);
	}
	cJSON_Delete(meta);
	sqlite3_finalize(stmt);
}

/* The vendor's uid is a decimal number; a machine id of another form is hashed into one. */
static void host_uid(const char *uid, char *out, size_t size)
{
	size_t digits = strspn(uid, "0123456789");

	if (digits && !uid[digits] && digits < 20)
		snprintf(out, size, "%s", uid);
	else
		snprintf(out, size, "%llu", (unsigned long long)nps_hash_bytes(uid, strlen(uid)));
}

static void identity(struct fill *f)
{
	sqlite3_stmt *host = nps_db__insert(&f->db, "HOST_INFO", 2),
		     *npu = nps_db__insert(&f->db, "NPU_INFO", 2);
	sqlite3_stmt *rank = nps_db__insert(&f->db, "RANK_DEVICE_MAP", 2),
		     *window = nps_db__insert(&f->db, "SESSION_TIME_INFO", 2);
	const cJSON *json = cJSON_GetObjectItemCaseSensitive(f->m->json, "host");
	int64_t span[] = { real(f, f->r->first), real(f, f->r->last) };
	char uid[32];

	host_uid(nps_json_str(json, "uid", ""), uid, sizeof(uid));
	pair(f, host, uid, nps_json_str(json, "name", "unknown"));
	nps_db__row(&f->db, window, span, 2);
	for (unsigned int d = 0; !f->db.err && d < NPS_MAX_DEVICES; d++) {
		int64_t map[] = { f->r->rank, d };

		if (!(f->r->proc->devices >> d & 1) && (d || f->r->proc->devices))
			continue;
		sqlite3_bind_int64(npu, 1, f->r->proc->devices ? (int)d : -1);
		sqlite3_bind_text(npu, 2,
				  !f->r->proc->devices || !f->m->devices[d].chip ? "UNKNOWN"
										 : f->m->devices[d].chip,
				  -1, SQLITE_STATIC);
		nps_db__step(&f->db, npu);
		nps_db__row(&f->db, rank, map, 2);
	}
	sqlite3_finalize(host);
	sqlite3_finalize(npu);
	sqlite3_finalize(rank);
	sqlite3_finalize(window);
}

static int profiler_db(const struct nps_result *result, const char *path)
{
	struct fill f = { .r = result, .m = result->model };
	int err = nps_db__open(&f.db, path);

	nps_vec__init(&f.ids, f.m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&f.order, f.m->tmpfd, sizeof(uint32_t));
	if (!err) {
		nps_db__schema(&f.db);
		f.na = literal(&f, "N/A");
		identity(&f);
		meta_data(&f);
		cann(&f);
		tasks(&f);
		task_times(&f);
		compute(&f);
		copies(&f);
		communication(&f);
		system_calls(&f);
		overlap(&f);
		steps(&f);
		strings(&f);
	}
	err = nps_db__close(&f.db);
	nps_vec__free(&f.ids);
	nps_vec__free(&f.order);
	return err;
}

/* ns as the number of µs that StepTraceTime holds: an integer where it is one. */
static void bind_us(sqlite3_stmt *stmt, int column, uint64_t ns)
{
	if (ns % 1000)
		sqlite3_bind_double(stmt, column, ns / 1000.0);
	else
		sqlite3_bind_int64(stmt, column, ns / 1000);
}

static int analysis_db(const struct nps_result *result, const char *path)
{
	const struct nps_step *steps = result->proc->steps.data;
	sqlite3_stmt *stmt;
	struct nps_db db;
	int err = nps_db__open(&db, path);

	if (err)
		return nps_db__close(&db);
	nps_db__exec(
		&db,
		"CREATE TABLE StepTraceTime (deviceId INTEGER, step TEXT, computing NUMERIC, "
		"communication_not_overlapped NUMERIC, "
		"overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
		"communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC)");
	stmt = nps_db__insert(&db, "StepTraceTime", 11);
	for (size_t i = 0; !db.err && i < result->steps.len; i++) {
		const struct nps_step_row *row = &NPS_AT(&result->steps, struct nps_step_row, i);
		const struct nps_overlap_sums *s = &row->sums;
		uint64_t span = s->last - s->first;
		char step[32] = "";

		if (row->step != NPS_NONE)
			snprintf(step, sizeof(step), "%llu", (unsigned long long)steps[row->step].number);
		sqlite3_bind_int64(stmt, 1, row->device);
		sqlite3_bind_text(stmt, 2, step, -1, SQLITE_TRANSIENT);
		bind_us(stmt, 3, s->computing);
		bind_us(stmt, 4, s->not_overlapped);
		bind_us(stmt, 5, s->communication - s->not_overlapped);
		bind_us(stmt, 6, s->communication);
		bind_us(stmt, 7, s->free);
		bind_us(stmt, 8, span > row->bubble ? span - row->bubble : 0);
		bind_us(stmt, 9, row->bubble);
		bind_us(stmt, 10, s->not_overlapped > row->bubble ? s->not_overlapped - row->bubble : 0);
		bind_us(stmt, 11, row->preparing);
		nps_db__step(&db, stmt);
	}
	sqlite3_finalize(stmt);
	return nps_db__close(&db);
}

int nps_export__db(const struct nps_result *result, int dirfd, const char *path)
{
	char name[4300];
	int err;

	(void)dirfd;
	snprintf(name, sizeof(name), "%s/ascend_pytorch_profiler_%u.db", path, result->rank);
	err = profiler_db(result, name);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%s/analysis.db", path);
	return analysis_db(result, name);
}
