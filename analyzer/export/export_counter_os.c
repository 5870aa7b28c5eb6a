/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of what the operating system did: calls by thread and name (outputs 3.4), threads, waits for locks. */
#include "base/map.h"
#include "export/counter_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- calls by thread and name: those with a row, and those that were summed up --- */

struct call {
	uint64_t gtid, sum, least, most, count;
	uint32_t name;
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

static int os_runtime(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "os_runtime_statistic",
					   .header = "Process ID,Thread ID,Name,Time(%),Time(us),Count,"
						     "Avg(us),Max(us),Min(us)",
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct calls calls = { 0 };

	nps_vec__init(&calls.list, ex->model->tmpfd, sizeof(struct call));
	if (csv)
		csv->err = count_calls(ex->model, &calls);
	if (calls.list.data)
		qsort(calls.list.data, calls.list.len, sizeof(struct call), by_time);
	for (size_t i = 0; csv && i < nps_counter__rows(&calls.list); i++) {
		const struct call *call = &NPS_AT(&calls.list, struct call, i);

		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__u64(csv, call->gtid >> 32);
		nps_csv__u64(csv, call->gtid & UINT32_MAX);
		nps_csv__text(csv, call->name);
		/* a fraction, whatever the header says */
		nps_counter__fine(csv, calls.total ? (double)call->sum / calls.total : 0);
		nps_csv__short(csv, call->sum);
		nps_csv__u64(csv, call->count);
		nps_counter__fine(csv, call->sum / 1000.0 / call->count);
		nps_csv__short(csv, call->most);
		nps_csv__short(csv, call->least);
		nps_csv__end(csv);
	}
	nps_vec__free(&calls.list);
	nps_map__free(&calls.of);
	return nps_csv__close(csv);
}

/* --- tables of our own --- */

/* A thread, its name and how often; empty cells if there is none. */
static void put_other(struct nps_csv *csv, uint32_t tid, uint32_t comm, uint64_t count)
{
	if (!tid) {
		nps_csv__empty(csv);
		nps_csv__empty(csv);
		nps_csv__empty(csv);
		return;
	}
	nps_csv__u64(csv, tid);
	nps_csv__text(csv, comm);
	nps_csv__u64(csv, count);
}

/* N/A where there is no record of the thread's scheduling. */
static void put_scheduling(struct nps_csv *csv, const struct nps_os_thread_table *t, size_t i)
{
	const int64_t times[] = { t->running[i], t->runnable[i], t->sleeping[i], t->blocked[i] };
	const int64_t counts[] = { t->slices[i], t->waits[i], t->preemptions[i], t->migrations[i],
				   t->cpus[i] };

	for (size_t k = 0; k < NPS_ARRAY_SIZE(times); k++)
		if (times[k] == NPS_NULL)
			nps_csv__lit(csv, "N/A");
		else
			nps_csv__short(csv, times[k]);
	for (size_t k = 0; k < NPS_ARRAY_SIZE(counts); k++)
		if (counts[k] == NPS_NULL)
			nps_csv__lit(csv, "N/A");
		else
			nps_csv__i64(csv, counts[k]);
	put_other(csv, t->waker[i], t->waker_comm[i], t->wakes[i]);
	put_other(csv, t->preemptor[i], t->preemptor_comm[i], t->preempted[i]);
}

static int threads(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "npuscope_threads",
		.header = "Process ID,Thread ID,Thread Name,Running(us),Runnable(us),Sleeping(us),"
			  "Uninterruptible(us),Slices,Voluntary Switches,Preemptions,Migrations,CPUs,"
			  "Waker Thread ID,Waker Name,Wake-ups,Preemptor Thread ID,Preemptor Name,Preempted,"
			  "Minor Faults,Major Faults,Major Fault Time(us),Disk Reads,Disk Read(B),Disk Read "
			  "Time(us),"
			  "Disk Writes,Disk Written(B),Disk Write Time(us),Socket Received(B),Socket Sent(B)",
		.stamped = nps_counter__stamped(ex),
		.device = true
	};
	const struct nps_os_thread_table *t = &ex->model->os_thread;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	if (csv && !t->t.len)
		nps_csv__without_rows(csv, NPS_ASKED_OS);
	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->gtid[i] & UINT32_MAX);
		nps_csv__text(csv, t->name[i]);
		put_scheduling(csv, t, i);
		nps_csv__u64(csv, t->minor[i]);
		nps_csv__u64(csv, t->major[i]);
		nps_csv__short(csv, t->major_ns[i]);
		nps_csv__u64(csv, t->reads[i]);
		nps_csv__u64(csv, t->read_bytes[i]);
		nps_csv__short(csv, t->read_ns[i]);
		nps_csv__u64(csv, t->writes[i]);
		nps_csv__u64(csv, t->write_bytes[i]);
		nps_csv__short(csv, t->write_ns[i]);
		nps_csv__u64(csv, t->received[i]);
		nps_csv__u64(csv, t->sent[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static void put_tid(struct nps_csv *csv, uint32_t tid)
{
	if (tid)
		nps_csv__u64(csv, tid);
	else
		nps_csv__lit(csv, "N/A");
}

static int locks(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "npuscope_locks",
		.header = "Process ID,Thread ID,Lock,Address,Holder,Waits,Time(us),Max(us),Max Start(us),Max "
			  "Woken By",
		.stamped = nps_counter__stamped(ex),
		.device = true
	};
	const struct nps_os_lock_table *t = &ex->model->os_lock;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	if (csv && !t->t.len)
		nps_csv__without_rows(csv, NPS_ASKED_OS);
	for (size_t i = 0; csv && i < t->t.len; i++) {
		char address[24];

		snprintf(address, sizeof(address), "0x%" PRIx64, t->address[i]);
		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->gtid[i] & UINT32_MAX);
		nps_csv__text(csv, t->kind[i]);
		nps_csv__lit(csv, address);
		put_tid(csv, t->holder[i]);
		nps_csv__u64(csv, t->count[i]);
		nps_csv__short(csv, t->total[i]);
		nps_csv__short(csv, t->longest[i]);
		nps_csv__time(csv, t->longest_start[i]);
		put_tid(csv, t->waker[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_counter__os(const struct nps_export *ex, int dirfd)
{
	int err = os_runtime(ex, dirfd);

	if (!err)
		err = threads(ex, dirfd);
	return err ? err : locks(ex, dirfd);
}
