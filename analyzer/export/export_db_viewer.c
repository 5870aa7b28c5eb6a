/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of npuscope's own tables, once more in those that MindStudio Insight reads (insight 5): memory of
 * the job and memory as npu-smi reports it, as lanes of NPU MEM; and the names of processes, which no table
 * of the vendor's has.
 */
#include "export/export_db.h"

#include <string.h>

static const struct nps_db_table *table_named(const struct nps_db_table *family, const char *name)
{
	while (family->name && strcmp(family->name, name))
		family++;
	return family->name ? family : NULL;
}

static bool has_type(const struct nps_model *m, enum nps_mem_type type)
{
	const char *text = nps_model__text(m, m->memory_types[type]);
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < m->npu_mem.t.len; i++, nps_pace__step(&pace))
		if (!strcmp(nps_model__text(m, m->npu_mem.type[i]), text))
			return true;
	return false;
}

struct viewer_lane {
	struct nps_db_fill *fill;
	sqlite3_stmt *insert;
};

static void memory_row(struct viewer_lane *lane, uint64_t time, uint32_t device, int64_t bytes)
{
	if (bytes < 0 || time > INT64_MAX || lane->fill->db.err)
		return;
	sqlite3_bind_int64(lane->insert, 2, bytes);
	sqlite3_bind_int64(lane->insert, 3, (sqlite3_int64)time);
	sqlite3_bind_int64(lane->insert, 4, device);
	nps_db_writer__step(&lane->fill->db, lane->insert);
}

static void job_rows(struct viewer_lane *lane)
{
	const struct nps_job_memory_table *t = &lane->fill->model->job_memory;

	for (size_t i = 0; i < t->t.len; i++)
		if (!strcmp(nps_model__text(lane->fill->model, t->kind[i]), "device"))
			memory_row(lane, t->timestamp[i], t->device[i], t->allocated[i]);
}

static void process_rows(struct viewer_lane *lane)
{
	const struct nps_model *m = lane->fill->model;

	for (size_t i = 0; i < m->npu_process.t.len; i++)
		if (m->npu_process.pid[i] == m->pid)
			memory_row(lane, m->npu_process.timestamp[i], m->npu_process.device[i],
				   m->npu_process.bytes[i]);
}

static void usage_rows(struct viewer_lane *lane)
{
	const struct nps_npu_usage_table *t = &lane->fill->model->npu_usage;

	for (size_t i = 0; i < t->t.len; i++)
		memory_row(lane, t->timestamp[i], t->device[i], t->hbm_used[i]);
}

/* Figures of npu-smi are only used without samples of the driver, which are the same and more frequent. */
static const struct source {
	enum nps_mem_type type;
	size_t table;
	void (*rows)(struct viewer_lane *lane);
	bool always;
} sources[] = {
	{ NPS_MEM_JOB, offsetof(struct nps_model, job_memory), job_rows, true },
	{ NPS_MEM_APP, offsetof(struct nps_model, npu_process), process_rows, false },
	{ NPS_MEM_DEVICE, offsetof(struct nps_model, npu_usage), usage_rows, false },
};

static bool wanted(const struct nps_model *m, const struct source *source)
{
	return ((const struct nps_table *)((const char *)m + source->table))->len &&
	       (source->always || !has_type(m, source->type));
}

static void memory_lanes(struct nps_db_fill *fill)
{
	struct viewer_lane lane = { .fill = fill };
	bool made = fill->model->npu_mem.t.len;
	char sql[512];

	for (size_t i = 0; i < NPS_ARRAY_SIZE(sources) && !fill->db.err; i++) {
		if (!wanted(fill->model, &sources[i]))
			continue;
		if (!made)
			nps_db_table__ddl(table_named(nps_db_memory_tables, "NPU_MEM"), fill->generation, sql,
					  sizeof(sql));
		if (!made)
			nps_db_writer__exec(&fill->db, sql);
		made = true;
		lane.insert = nps_db_writer__prepare(
			&fill->db,
			"INSERT INTO NPU_MEM (type,ddr,hbm,timestampNs,deviceId) VALUES(?1,0,?2,?3,?4)");
		if (lane.insert)
			sqlite3_bind_int64(lane.insert, 1,
					   nps_db_ids__get(&fill->ids, NPS_DB_MSPROF,
							   fill->model->memory_types[sources[i].type]));
		if (fill->ids.err && !fill->db.err)
			fill->db.err = fill->ids.err;
		sources[i].rows(&lane);
		sqlite3_finalize(lane.insert);
	}
}

/* --- names of processes --- */

static void insert_name(struct nps_db_fill *fill, sqlite3_stmt *insert, uint32_t pid, uint32_t name)
{
	if (!pid || name == NPS_NONE || fill->db.err)
		return;
	sqlite3_bind_int64(insert, 1, pid);
	sqlite3_bind_text(insert, 2, nps_model__text(fill->model, name), -1, SQLITE_STATIC);
	nps_db_writer__step(&fill->db, insert);
}

static void process_names(struct nps_db_fill *fill)
{
	const struct nps_model *m = fill->model;
	sqlite3_stmt *insert;

	if (!m->os_thread.t.len && !m->host_process.t.len)
		return;
	nps_db_writer__exec(&fill->db, "CREATE TABLE NPUSCOPE_PROCESS (pid INTEGER PRIMARY KEY,name TEXT)");
	insert = nps_db_writer__prepare(&fill->db, "INSERT OR IGNORE INTO NPUSCOPE_PROCESS VALUES(?,?)");
	insert_name(fill, insert, m->pid, m->process);
	/* Its first thread has the process's name; without that one, another thread's is better than none. */
	for (size_t i = 0; i < m->os_thread.t.len; i++)
		if ((uint32_t)m->os_thread.gtid[i] == m->os_thread.gtid[i] >> 32)
			insert_name(fill, insert, m->os_thread.gtid[i] >> 32, m->os_thread.name[i]);
	for (size_t i = 0; i < m->os_thread.t.len; i++)
		insert_name(fill, insert, m->os_thread.gtid[i] >> 32, m->os_thread.name[i]);
	for (size_t i = 0; i < m->host_process.t.len; i++)
		insert_name(fill, insert, m->host_process.pid[i], m->host_process.name[i]);
	sqlite3_finalize(insert);
}

void nps_db_fill__viewer(struct nps_db_fill *fill)
{
	if (!fill->model->meta.t.len) /* a copy of a database has them */
		memory_lanes(fill);
	process_names(fill);
}
