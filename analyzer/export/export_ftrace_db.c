/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ftrace_data.db: the scheduling layers for MindStudio Insight, which its profiler database has no tables for and of which it
 * makes its own statistics (insight 2.6, 2.7). The same slices as in trace_view.json.
 */
#include "base/map.h"
#include "derive/waits.h"
#include "event.h"
#include "export/db_writer.h"
#include "export/export.h"
#include "export/run_names.h"

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

/* Kinds of slices by their arguments, which SQLite writes as JSON. Each value is a string: Insight gives up at a number. */
enum what { PLAIN, ON_CPU, ASLEEP, RUNNABLE, SLICE, SWITCH, IRQ, SOFTIRQ, WHATS };

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
	struct nps_map last; /* tid -> run */
	uint32_t ntracks;
	struct nps_pace pace;
};

static void keep(struct ftrace *f, int err)
{
	if (err && !f->db.err)
		f->db.err = err;
}

/* `comm:tid`, which the viewer takes apart at the last colon. */
static void thread_name(const char *comm, uint32_t tid, char out[NAME_BYTES])
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
	keep(f, nps_map__put(&f->tracks, key, id));
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

static uint32_t thread_track(struct ftrace *f, uint32_t tid, uint32_t comm, const char *name)
{
	return track(f, nps_hash2(tid, comm), "Process Scheduling", name);
}

/* Begins a slice; the arguments of its kind follow from parameter 5. */
static sqlite3_stmt *begin(struct ftrace *f, enum what what, uint32_t track_id, const char *name,
			   uint64_t start, uint64_t end)
{
	sqlite3_stmt *insert = f->insert[what];

	sqlite3_bind_int64(insert, 1, (sqlite3_int64)start);
	sqlite3_bind_int64(insert, 2, (sqlite3_int64)NPS_MAX(start, end));
	sqlite3_bind_text(insert, 3, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(insert, 4, track_id);
	return insert;
}

static void end(struct ftrace *f, sqlite3_stmt *insert)
{
	nps_db_writer__step(&f->db, insert);
}

static void waited(struct ftrace *f, size_t row, uint32_t track_id, uint32_t previous)
{
	const struct nps_run_table *run = &f->m->run;
	struct nps_wait wait = nps_run__wait(f->m, row, previous);
	char waker[NAME_BYTES];
	sqlite3_stmt *s;

	if (!wait.known)
		return;
	if (wait.woken > wait.left) {
		s = begin(f, ASLEEP, track_id, "Sleeping", wait.left, wait.woken);
		sqlite3_bind_int64(s, 5, run->cpu[row]);
		sqlite3_bind_text(s, 6, previous == NPS_NONE ? "N/A" : nps_run__letter(run->state[previous]),
				  -1, SQLITE_STATIC);
		end(f, s);
	}
	if (wait.start <= wait.woken)
		return;
	s = begin(f, run->waker[row] ? RUNNABLE : ON_CPU, track_id, "Runnable", wait.woken, wait.start);
	sqlite3_bind_int64(s, 5, run->cpu[row]);
	if (run->waker[row]) {
		thread_name(run->waker_comm[row] == NPS_NONE ? "unknown"
							     : nps_model__text(f->m, run->waker_comm[row]),
			    run->waker[row], waker);
		sqlite3_bind_text(s, 6, waker, -1, SQLITE_STATIC);
	}
	end(f, s);
}

static void on_cpu(struct ftrace *f, size_t row, const char *name)
{
	const struct nps_run_table *run = &f->m->run;
	uint32_t cpu = cpu_track(f, run->cpu[row]);
	char comm[NAME_BYTES], next[NAME_BYTES];
	const char *next_comm = nps_run__next(f->m, row);
	sqlite3_stmt *s = begin(f, SLICE, cpu, name, run->start[row], run->end[row]);

	sqlite3_bind_text(s, 5, nps_run__letter(run->state[row]), -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 6, run->prio[row]);
	sqlite3_bind_int64(s, 7, run->tid[row]);
	end(f, s);
	if (run->state[row] & NPS_RUN_OPEN)
		return;
	s = begin(f, SWITCH, cpu, "sched_switch", run->end[row], run->end[row]);
	snprintf(comm, sizeof(comm), "%.*s", (int)(strrchr(name, ':') - name), name);
	next[nps_utf8_clean(next, next_comm, NPS_MIN(strlen(next_comm), sizeof(next) / 4))] = 0;
	sqlite3_bind_text(s, 5, comm, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 6, run->tid[row]);
	sqlite3_bind_int64(s, 7, run->prio[row]);
	sqlite3_bind_text(s, 8, nps_run__letter(run->state[row]), -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 9, next, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 10, run->next[row]);
	end(f, s);
}

static void one_run(struct ftrace *f, size_t row)
{
	const struct nps_run_table *run = &f->m->run;
	bool fresh = nps_map__get(&f->tracks, nps_hash2(run->tid[row], run->comm[row])) == NPS_NONE;
	char name[NAME_BYTES];
	uint32_t lane;
	sqlite3_stmt *s;

	thread_name(nps_run__comm(f->m, run->comm[row]), run->tid[row], name);
	lane = thread_track(f, run->tid[row], run->comm[row], name);
	waited(f, row, lane, nps_map__get(&f->last, run->tid[row]));
	keep(f, nps_map__put(&f->last, run->tid[row], row));
	if (fresh) /* switches are counted under no CPU: without this slice the viewer shows none */
		end(f, begin(f, PLAIN, lane, "Running", run->start[row], run->start[row]));
	if (!nps_run__ran(f->m, row))
		return;
	s = begin(f, ON_CPU, lane, "Running", run->start[row], run->end[row]);
	sqlite3_bind_int64(s, 5, run->cpu[row]);
	end(f, s);
	on_cpu(f, row, name);
}

static void one_irq(struct ftrace *f, size_t row)
{
	const struct nps_irq_table *irq = &f->m->irq;
	bool soft = irq->what[row] == NPS_IRQ_SOFT;
	char task[NAME_BYTES], name[NAME_BYTES];
	const char *text = nps_model__text(f->m, irq->name[row]);
	sqlite3_stmt *s = begin(f, soft ? SOFTIRQ : IRQ, cpu_track(f, irq->cpu[row]),
				soft ? "softirq" : "irq", irq->start[row], irq->end[row]);

	thread_name(nps_run__comm(f->m, irq->comm[row]), irq->tid[row], task);
	name[nps_utf8_clean(name, text, NPS_MIN(strlen(text), sizeof(name) / 4))] = 0;
	sqlite3_bind_text(s, 5, task, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 6, name, -1, SQLITE_STATIC);
	end(f, s);
}

static void fill(struct ftrace *f)
{
	nps_db_writer__exec(&f->db, schema);
	f->thread = nps_db_writer__prepare(&f->db, "INSERT INTO thread (track_id, tid, pid, thread_name, "
						   "thread_sort_index) VALUES (?1, ?2, ?3, ?2, 0)");
	for (int i = 0; i < WHATS; i++)
		f->insert[i] = nps_db_writer__prepare(&f->db, inserts[i]);
	for (size_t i = 0; !f->db.err && i < f->m->run.t.len; i++, nps_pace__step(&f->pace))
		one_run(f, i);
	for (size_t i = 0; !f->db.err && i < f->m->irq.t.len; i++, nps_pace__step(&f->pace))
		one_irq(f, i);
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
		fill(&f);
	err = nps_db_writer__close(&f.db);
	nps_map__free(&f.tracks);
	nps_map__free(&f.last);
	return err;
}
