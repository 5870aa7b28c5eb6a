/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the operating system (outputs 3.4): calls by thread and name, threads, waits for locks. */
#include "derive/group_by.h"
#include "export/counter_csv.h"
#include "export/table.h"

#include <errno.h>

/* --- calls by thread and name: those with a row, and those that were summed up --- */

struct os_call {
	struct nps_group sum; /* key: gtid */
	uint32_t name;
	double share, mean; /* cells: fraction of the time of all, us */
};

struct os_calls {
	struct nps_group_by list; /* struct os_call */
	uint64_t total;
};

static struct os_call *os_call_find(struct os_calls *calls, uint64_t gtid, uint32_t name)
{
	struct os_call *call = nps_group_by__get(&calls->list, gtid, name);

	if (call)
		call->name = name;
	return call;
}

static int count_calls(const struct nps_model *m, struct os_calls *calls)
{
	const struct nps_osrt_sum_table *sums = &m->osrt_sum;
	const struct nps_osrt_table *t = &m->osrt;
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		uint64_t ns = nps_span(t->start[i], t->end[i]);
		struct os_call *call = os_call_find(calls, t->gtid[i], t->name[i]);

		if (!call)
			return -errno;
		nps_group__add(&call->sum, ns, i);
		calls->total = nps_add_sat(calls->total, ns);
	}
	for (size_t i = 0; i < sums->t.len; i++, nps_pace__step(&pace)) {
		struct os_call *call;

		if (!sums->count[i])
			continue;
		call = os_call_find(calls, sums->gtid[i], sums->name[i]);
		if (!call)
			return -errno;
		nps_group__add_sum(&call->sum, sums->count[i], sums->total[i], sums->shortest[i],
				   sums->longest[i]);
		calls->total = nps_add_sat(calls->total, sums->total[i]);
	}
	return 0;
}

#define CALL(title, format, member, ...) NPS_CSV_FIELD(title, format, struct os_call, member, ##__VA_ARGS__)

static const struct nps_csv_column call_columns[] = {
	NPS_CSV_HOST_ID,
	CALL("Process ID", PID, sum.key),
	CALL("Thread ID", TID, sum.key),
	CALL("Name", TEXT, name),
	CALL("Time(%)", FINE, share), /* a fraction, in spite of the title */
	CALL("Time(us)", SHORT, sum.total),
	CALL("Count", NUMBER, sum.count),
	CALL("Avg(us)", FINE, mean),
	CALL("Max(us)", SHORT, sum.most),
	CALL("Min(us)", SHORT, sum.least),
};

static int os_runtime(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "os_runtime_statistic",
						    .columns = NPS_CSV_COLUMNS(call_columns) };
	struct os_calls calls = { 0 };
	int err;

	nps_group_by__init(&calls.list, ex->model, sizeof(struct os_call));
	err = count_calls(ex->model, &calls);
	if (err)
		goto out;
	for (size_t i = 0; i < nps_group_by__len(&calls.list); i++) {
		struct os_call *call = nps_group_by__at(&calls.list, i);

		call->share = calls.total ? (double)call->sum.total / calls.total : 0;
		call->mean = call->sum.total / 1000.0 / call->sum.count;
	}
	nps_group_by__sort(&calls.list, nps_group__by_total);
	err = nps_csv_table__write_structs(ex, dirfd, &table, &calls.list.rows);
out:
	nps_group_by__free(&calls.list);
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

static int write_threads(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "npuscope_threads", .requested = NPS_REQUESTED_OS,
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

static int locks(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "npuscope_locks", .requested = NPS_REQUESTED_OS,
						    NPS_CSV_OF(os_lock, lock_columns) };

	return nps_csv_table__write(ex, dirfd, &table, NULL);
}

int nps_counter__os(const struct nps_export *ex, int dirfd)
{
	static nps_csv_write_fn *const tables[] = { os_runtime, write_threads, locks };

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}
