/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of what the operating system did: calls by thread and name (outputs 3.4), threads, waits for locks. */
#include "base/map.h"
#include "export/counter_csv.h"
#include "export/table.h"

#include <errno.h>
#include <stdlib.h>

/* --- calls by thread and name: those with a row, and those that were summed up --- */

struct call {
	uint64_t gtid, sum, least, most, count;
	uint32_t name;
	double share, mean; /* cells: fraction of the time of all, us */
};

struct calls {
	struct nps_vec list; /* struct call */
	struct nps_map of;
	uint64_t total;
};

static int by_time(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->sum != y->sum)
		return x->sum > y->sum ? -1 : 1;
	if (x->gtid != y->gtid)
		return x->gtid < y->gtid ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int add(struct calls *calls, const struct call *more)
{
	uint64_t key = nps_hash2(more->gtid, more->name);
	uint32_t row = nps_map__get(&calls->of, key);
	struct call *call = row == NPS_NONE ? nps_vec__push(&calls->list)
					    : &NPS_AT(&calls->list, struct call, row);

	if (!call || (row == NPS_NONE && nps_map__put(&calls->of, key, calls->list.len - 1)))
		return -ENOMEM;
	calls->total = nps_add_sat(calls->total, more->sum);
	if (row == NPS_NONE) {
		*call = *more;
		return 0;
	}
	call->sum = nps_add_sat(call->sum, more->sum);
	call->least = NPS_MIN(call->least, more->least);
	call->most = NPS_MAX(call->most, more->most);
	call->count = nps_add_sat(call->count, more->count);
	return 0;
}

static int count_calls(const struct nps_model *m, struct calls *calls)
{
	const struct nps_osrt_sum_table *sums = &m->osrt_sum;
	const struct nps_osrt_table *t = &m->osrt;
	struct nps_pace pace = { .model = m };
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace)) {
		uint64_t ns = t->end[i] > t->start[i] ? t->end[i] - t->start[i] : 0;

		err = add(calls, &(struct call){ .gtid = t->gtid[i],
						 .name = t->name[i],
						 .sum = ns,
						 .least = ns,
						 .most = ns,
						 .count = 1 });
	}
	for (size_t i = 0; !err && i < sums->t.len; i++, nps_pace__step(&pace))
		if (sums->count[i])
			err = add(calls, &(struct call){ .gtid = sums->gtid[i],
							 .name = sums->name[i],
							 .sum = sums->total[i],
							 .least = sums->shortest[i],
							 .most = sums->longest[i],
							 .count = sums->count[i] });
	return err;
}

#define CALL(title, format, member, ...) NPS_CSV_FIELD(title, format, struct call, member, ##__VA_ARGS__)

static const struct nps_csv_column call_columns[] = {
	NPS_CSV_HOST_ID,
	CALL("Process ID", PID, gtid),
	CALL("Thread ID", TID, gtid),
	CALL("Name", TEXT, name),
	CALL("Time(%)", FINE, share), /* a fraction, whatever the title says */
	CALL("Time(us)", SHORT, sum),
	CALL("Count", NUMBER, count),
	CALL("Avg(us)", FINE, mean),
	CALL("Max(us)", SHORT, most),
	CALL("Min(us)", SHORT, least),
};

static int os_runtime(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "os_runtime_statistic",
						    .columns = NPS_CSV_COLUMNS(call_columns) };
	struct calls calls = { 0 };
	int err;

	nps_vec__init(&calls.list, ex->model->tmpfd, sizeof(struct call));
	err = count_calls(ex->model, &calls);
	for (size_t i = 0; i < calls.list.len; i++) {
		struct call *call = &NPS_AT(&calls.list, struct call, i);

		call->share = calls.total ? (double)call->sum / calls.total : 0;
		call->mean = call->sum / 1000.0 / call->count;
	}
	if (calls.list.data)
		qsort(calls.list.data, calls.list.len, sizeof(struct call), by_time);
	if (!err)
		err = nps_csv_table__write(
			ex, dirfd, &table,
			&(struct nps_csv_input){ .sources[0] = { NULL, calls.list.data, sizeof(struct call) },
						 .len = calls.list.len });
	nps_vec__free(&calls.list);
	nps_map__free(&calls.of);
	return err;
}

/* --- tables of our own --- */

/* The thread that woke the row's thread, or took its CPU, most often: without a row if there is none. */
enum { WAKER_SOURCE = 1, PREEMPTOR_SOURCE };

struct thread_row {
	const struct nps_os_thread_table *t;
	size_t next;
};

static bool next_thread(void *ctx, struct nps_csv_row *row)
{
	struct thread_row *r = ctx;
	size_t i = r->next++;

	if (i >= r->t->t.len)
		return false;
	row->at[0] = i;
	row->at[WAKER_SOURCE] = r->t->waker[i] ? i : NPS_CSV_NO_ROW;
	row->at[PREEMPTOR_SOURCE] = r->t->preemptor[i] ? i : NPS_CSV_NO_ROW;
	return true;
}

#define THREAD(title, format, column, ...) NPS_CSV_COL(title, format, os_thread, column, ##__VA_ARGS__)

/* N/A where there is no record of the thread's scheduling. */
static const struct nps_csv_column thread_columns[] = {
	NPS_CSV_HOST_ID,
	THREAD("Process ID", PID, gtid),
	THREAD("Thread ID", TID, gtid),
	THREAD("Thread Name", TEXT, name),
	THREAD("Running(us)", SHORT, running),
	THREAD("Runnable(us)", SHORT, runnable),
	THREAD("Sleeping(us)", SHORT, sleeping),
	THREAD("Uninterruptible(us)", SHORT, blocked),
	THREAD("Slices", NUMBER, slices),
	THREAD("Voluntary Switches", NUMBER, waits),
	THREAD("Preemptions", NUMBER, preemptions),
	THREAD("Migrations", NUMBER, migrations),
	THREAD("CPUs", NUMBER, cpus),
	THREAD("Waker Thread ID", NUMBER_OR_BLANK, waker, .source = WAKER_SOURCE),
	THREAD("Waker Name", TEXT_OF_ROW, waker_comm, .source = WAKER_SOURCE),
	THREAD("Wake-ups", NUMBER_OR_BLANK, wakes, .source = WAKER_SOURCE),
	THREAD("Preemptor Thread ID", NUMBER_OR_BLANK, preemptor, .source = PREEMPTOR_SOURCE),
	THREAD("Preemptor Name", TEXT_OF_ROW, preemptor_comm, .source = PREEMPTOR_SOURCE),
	THREAD("Preempted", NUMBER_OR_BLANK, preempted, .source = PREEMPTOR_SOURCE),
	THREAD("Minor Faults", NUMBER, minor),
	THREAD("Major Faults", NUMBER, major),
	THREAD("Major Fault Time(us)", SHORT, major_ns),
	THREAD("Disk Reads", NUMBER, reads),
	THREAD("Disk Read(B)", NUMBER, read_bytes),
	THREAD("Disk Read Time(us)", SHORT, read_ns),
	THREAD("Disk Writes", NUMBER, writes),
	THREAD("Disk Written(B)", NUMBER, write_bytes),
	THREAD("Disk Write Time(us)", SHORT, write_ns),
	THREAD("Socket Received(B)", NUMBER, received),
	THREAD("Socket Sent(B)", NUMBER, sent),
};

static int threads(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "npuscope_threads", .asked = NPS_ASKED_OS,
						    NPS_CSV_OF(os_thread, thread_columns) };
	struct thread_row row = { .t = &ex->model->os_thread };

	return nps_csv_table__write(
		ex, dirfd, &table,
		&(struct nps_csv_input){
			.sources = { [WAKER_SOURCE].table = &row.t->t, [PREEMPTOR_SOURCE].table = &row.t->t },
			.next = next_thread,
			.ctx = &row });
}

#define LOCK(title, format, column) NPS_CSV_COL(title, format, os_lock, column)

static const struct nps_csv_column lock_columns[] = {
	NPS_CSV_HOST_ID,
	LOCK("Process ID", PID, gtid),
	LOCK("Thread ID", TID, gtid),
	LOCK("Lock", TEXT, kind),
	LOCK("Address", HEX, address),
	LOCK("Holder", NUMBER_NOT_0, holder),
	LOCK("Waits", NUMBER, count),
	LOCK("Time(us)", SHORT, total),
	LOCK("Max(us)", SHORT, longest),
	LOCK("Max Start(us)", TIME, longest_start),
	LOCK("Max Woken By", NUMBER_NOT_0, waker),
};

static const struct nps_csv_table lock_table = { "npuscope_locks", .asked = NPS_ASKED_OS,
						 NPS_CSV_OF(os_lock, lock_columns) };

int nps_counter__os(const struct nps_export *ex, int dirfd)
{
	int err = os_runtime(ex, dirfd);

	if (!err)
		err = threads(ex, dirfd);
	return err ? err : nps_csv_table__write(ex, dirfd, &lock_table, NULL);
}
