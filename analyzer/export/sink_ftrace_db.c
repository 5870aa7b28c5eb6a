/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ftrace_data.db: the scheduling layers for MindStudio Insight, which its profiler database has no tables
 * for and of which it makes its own statistics (insight 2.6, 2.7). The items of trace_view.json, but run by
 * run, as the rows are numbered in that order.
 */
#include "base/map.h"
#include "event.h"
#include "export/db_writer.h"
#include "export/export.h"
#include "export/run_names.h"
#include "export/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 1024

static const char schema[] =
	"CREATE TABLE process (pid TEXT PRIMARY KEY, process_name TEXT, label TEXT, process_sort_index "
	"INTEGER, "
	"parentPid TEXT DEFAULT '0');"
	"CREATE TABLE thread (track_id INTEGER PRIMARY KEY, tid TEXT, pid TEXT, thread_name TEXT, "
	"thread_sort_index INTEGER);"
	"CREATE TABLE slice (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp INTEGER, duration INTEGER, name "
	"TEXT, "
	"depth INTEGER, track_id INTEGER, cat TEXT, args TEXT, cname TEXT, end_time INTEGER, flag_id TEXT);"
	"CREATE TABLE counter (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, pid TEXT, timestamp INTEGER, "
	"cat TEXT, args TEXT);"
	"CREATE TABLE flow (id INTEGER PRIMARY KEY AUTOINCREMENT, flow_id TEXT, name TEXT, cat TEXT, "
	"track_id INTEGER, timestamp INTEGER, type TEXT);"
	"INSERT INTO process (pid, process_name) VALUES ('Process Scheduling', 'Process Scheduling'), "
	"('CPU Scheduling', 'CPU Scheduling');";

/* Made when the rows are there. */
static const char indexes[] =
	"CREATE INDEX track_id_cat_index ON slice (track_id, cat);"
	"CREATE INDEX track_id_timestamp_end_time_index ON slice (timestamp, end_time, track_id);";

/*
 * Kinds of slices by their arguments, written by SQLite as JSON. Values are strings: Insight fails at
 * numbers.
 */
enum ftrace_track { PLAIN, ON_CPU, ASLEEP, RUNNABLE, SLICE, SWITCH, IRQ, SOFTIRQ, WHATS };

#define INSERT(args)                                                                                         \
	"INSERT INTO slice (timestamp, duration, end_time, name, track_id, args) VALUES (?1, ?2 - ?1, ?2, "  \
	"?3, ?4, " args ")"

#define TEXT(number) "CAST(?" #number " AS TEXT)"

static const char *const inserts[WHATS] = {
	[PLAIN] = INSERT("NULL"),
	[ON_CPU] = INSERT("json_object('cpu', " TEXT(5) ")"),
	[ASLEEP] = INSERT("json_object('cpu', " TEXT(5) ", 'state', ?6)"),
	[RUNNABLE] = INSERT("json_object('cpu', " TEXT(5) ", 'waker', ?6)"),
	[SLICE] = INSERT("json_object('end_state', ?5, 'prio', " TEXT(6) ", 'host_pid', " TEXT(7) ")"),
	[SWITCH] = INSERT("json_object('prev_comm', ?5, 'prev_pid', " TEXT(6) ", 'prev_prio', " TEXT(
		7) ", 'prev_state', "
		   "?8, 'next_comm', ?9, 'next_pid', " TEXT(10) ", 'next_prio', 'N/A')"),
	[IRQ] = INSERT("json_object('task', ?5, 'name', ?6)"),
	[SOFTIRQ] = INSERT("json_object('task', ?5, 'action', ?6)"),
};

struct ftrace {
	const struct nps_model *m;
	struct nps_db_writer db;
	sqlite3_stmt *insert[WHATS], *thread;
	struct nps_map tracks; /* lane -> track */
	struct nps_map named; /* the same lanes: their first run was written */
	struct nps_map last; /* tid -> run */
	uint32_t ntracks;
	struct nps_pace pace;
};

static void ftrace_keep_error(struct ftrace *f, int err)
{
	if (err && !f->db.err)
		f->db.err = err;
}

/* `comm:tid`, which the viewer takes apart at the last colon. */
static void ftrace_thread_name(const char *comm, uint32_t tid, char out[NAME_BYTES])
{
	char clean[NAME_BYTES - 16];
	size_t len = nps_utf8_clean(clean, comm, NPS_MIN(strlen(comm), sizeof(clean) / 4));

	snprintf(out, NAME_BYTES, "%.*s:%u", (int)len, clean, tid);
}

/* The lane NAME of LAYER, made when it is first used. */
static uint32_t track(struct ftrace *f, uint64_t key, const char *layer, const char *name)
{
	uint32_t id = nps_map__get(&f->tracks, key);

	if (id != NPS_NONE || f->db.err)
		return id;
	id = ++f->ntracks;
	ftrace_keep_error(f, nps_map__put(&f->tracks, key, id));
	sqlite3_bind_int64(f->thread, 1, id);
	sqlite3_bind_text(f->thread, 2, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(f->thread, 3, layer, -1, SQLITE_STATIC);
	nps_db_writer__step(&f->db, f->thread);
	return id;
}

static uint32_t cpu_track(struct ftrace *f, uint32_t cpu)
{
	char name[32];

	snprintf(name, sizeof(name), "CPU %u", cpu);
	return track(f, nps_hash2(cpu, ~0ULL), "CPU Scheduling", name);
}

/* Begins the slice of ITEM; the arguments of its kind follow from parameter 5. */
static sqlite3_stmt *ftrace_begin(struct ftrace *f, enum ftrace_track what, uint32_t track_id,
				  const char *name, const struct nps_item *item)
{
	sqlite3_stmt *insert = f->insert[what];

	sqlite3_bind_int64(insert, 1, (sqlite3_int64)item->start);
	sqlite3_bind_int64(insert, 2, (sqlite3_int64)NPS_MAX(item->start, item->end));
	sqlite3_bind_text(insert, 3, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(insert, 4, track_id);
	return insert;
}

static void ftrace_end(struct ftrace *f, sqlite3_stmt *insert)
{
	nps_db_writer__step(&f->db, insert);
}

/* A state of the thread on LANE, which is WHAT, with TEXT as its second argument. */
static void state(struct ftrace *f, const struct nps_item *item, uint32_t lane, enum ftrace_track what,
		  const char *name, const char *text)
{
	sqlite3_stmt *s = ftrace_begin(f, what, lane, name, item);

	if (what != PLAIN)
		sqlite3_bind_int64(s, 5, nps_item__device(item));
	if (text)
		sqlite3_bind_text(s, 6, text, -1, SQLITE_STATIC);
	ftrace_end(f, s);
}

static void ftrace_queued(struct ftrace *f, const struct nps_item *item, uint32_t lane)
{
	uint32_t waker = f->m->run.waker[item->row];
	char name[NAME_BYTES];

	if (waker)
		ftrace_thread_name(nps_run__waker(f->m, item->row), waker, name);
	state(f, item, lane, waker ? RUNNABLE : ON_CPU, "Runnable", waker ? name : NULL);
}

static void ftrace_on_cpu(struct ftrace *f, const struct nps_item *item, const char *name)
{
	const struct nps_run_table *run = &f->m->run;
	sqlite3_stmt *s = ftrace_begin(f, SLICE, cpu_track(f, nps_item__device(item)), name, item);

	sqlite3_bind_text(s, 5, nps_run__letter(run->state[item->row]), -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 6, run->prio[item->row]);
	sqlite3_bind_int64(s, 7, nps_item__tid(item));
	ftrace_end(f, s);
}

static void ftrace_switched(struct ftrace *f, const struct nps_item *item, const char *name)
{
	const struct nps_run_table *run = &f->m->run;
	uint32_t row = item->row;
	char comm[NAME_BYTES], next[NAME_BYTES];
	const char *next_comm = nps_run__next(f->m, row);
	sqlite3_stmt *s = ftrace_begin(f, SWITCH, cpu_track(f, nps_item__device(item)), "sched_switch", item);

	snprintf(comm, sizeof(comm), "%.*s", (int)(strrchr(name, ':') - name), name);
	next[nps_utf8_clean(next, next_comm, NPS_MIN(strlen(next_comm), sizeof(next) / 4))] = 0;
	sqlite3_bind_text(s, 5, comm, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 6, nps_item__tid(item));
	sqlite3_bind_int64(s, 7, run->prio[row]);
	sqlite3_bind_text(s, 8, nps_run__letter(run->state[row]), -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 9, next, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 10, run->next[row]);
	ftrace_end(f, s);
}

/* An item of the thread that is called NAME and has LANE. */
static void put_item(struct ftrace *f, const struct nps_item *item, uint32_t lane, const char *name)
{
	switch (item->kind) {
	case NPS_ITEM_SLEEPING:
		state(f, item, lane, ASLEEP, "Sleeping", nps_run__left(f->m, item->before));
		break;
	case NPS_ITEM_RUNNABLE:
		ftrace_queued(f, item, lane);
		break;
	case NPS_ITEM_FIRST:
		state(f, item, lane, PLAIN, "Running", NULL);
		break;
	case NPS_ITEM_RUNNING:
		state(f, item, lane, ON_CPU, "Running", NULL);
		ftrace_on_cpu(f, item, name);
		break;
	case NPS_ITEM_SWITCH:
		ftrace_switched(f, item, name);
		break;
	default:
		break;
	}
}

static void one_run(struct ftrace *f, uint32_t row)
{
	const struct nps_run_table *run = &f->m->run;
	uint64_t thread = nps_hash2(run->tid[row], run->comm[row]);
	struct nps_item items[5];
	char name[NAME_BYTES];
	uint32_t lane;
	size_t n = nps_timeline__wait(f->m, row, nps_map__get(&f->last, run->tid[row]), items);

	ftrace_thread_name(nps_run__comm(f->m, run->comm[row]), run->tid[row], name);
	lane = track(f, thread, "Process Scheduling", name);
	ftrace_keep_error(f, nps_map__put(&f->last, run->tid[row], row));
	n += nps_timeline__run(f->m, row, nps_map__get(&f->named, thread) == NPS_NONE, items + n);
	if (nps_run__ran(f->m, row))
		ftrace_keep_error(f, nps_map__put(&f->named, thread, 1));
	for (size_t i = 0; i < n; i++)
		put_item(f, &items[i], lane, name);
}

static void ftrace_interrupt(struct ftrace *f, const struct nps_item *item)
{
	const struct nps_irq_table *irq = &f->m->irq;
	bool soft = irq->what[item->row] == NPS_IRQ_SOFT;
	char task[NAME_BYTES], name[NAME_BYTES];
	const char *text = nps_model__text(f->m, item->name);
	sqlite3_stmt *s = ftrace_begin(f, soft ? SOFTIRQ : IRQ, cpu_track(f, nps_item__device(item)),
				       soft ? "softirq" : "irq", item);

	ftrace_thread_name(nps_run__comm(f->m, irq->comm[item->row]), nps_item__tid(item), task);
	name[nps_utf8_clean(name, text, NPS_MIN(strlen(text), sizeof(name) / 4))] = 0;
	sqlite3_bind_text(s, 5, task, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 6, name, -1, SQLITE_STATIC);
	ftrace_end(f, s);
}

static void ftrace_interrupts(struct ftrace *f)
{
	struct nps_timeline timeline;
	struct nps_item item;

	nps_timeline__open(&timeline, f->m, NPS_ITEM(INTERRUPT));
	while (!f->db.err && nps_timeline__next(&timeline, &item))
		ftrace_interrupt(f, &item);
	ftrace_keep_error(f, nps_timeline__close(&timeline));
}

static void ftrace_fill(struct ftrace *f)
{
	nps_db_writer__exec(&f->db, schema);
	f->thread = nps_db_writer__prepare(&f->db, "INSERT INTO thread (track_id, tid, pid, thread_name, "
						   "thread_sort_index) VALUES (?1, ?2, ?3, ?2, 0)");
	for (int i = 0; i < WHATS; i++)
		f->insert[i] = nps_db_writer__prepare(&f->db, inserts[i]);
	for (size_t i = 0; !f->db.err && i < f->m->run.t.len; i++, nps_pace__step(&f->pace))
		one_run(f, i);
	ftrace_interrupts(f);
	sqlite3_finalize(f->thread);
	for (int i = 0; i < WHATS; i++)
		sqlite3_finalize(f->insert[i]);
	nps_db_writer__exec(&f->db, indexes);
}

int nps_export__ftrace_db(const struct nps_export *ex, int dirfd, const char *path)
{
	struct ftrace f = { .m = ex->model, .pace = { .model = ex->model } };
	char name[4300];
	int err;

	(void)dirfd;
	if (!ex->model->run.t.len && !ex->model->irq.t.len)
		return 0;
	if (snprintf(name, sizeof(name), "%s/ftrace_data.db", path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	if (!nps_db_writer__open(&f.db, name))
		ftrace_fill(&f);
	err = nps_db_writer__close(&f.db);
	nps_map__free(&f.tracks);
	nps_map__free(&f.named);
	nps_map__free(&f.last);
	return err;
}
