/* SPDX-License-Identifier: BSD-2-Clause */
/* Where host time went, and how threads were scheduled: tables of our own. */
#include "base/csv_writer.h"

static void put_step(struct nps_csv *csv, uint32_t step)
{
	if (*nps_model__text(csv->model, step))
		nps_csv__text(csv, step);
	else
		nps_csv__empty(csv);
}

static int breakdown(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "npuscope_host_breakdown",
		.header = "Step,Process ID,Thread ID,Thread Name,Start(us),Duration(us),User Code(us),CANN "
			  "Calls(us),"
			  "I/O Calls(us),Other System Calls(us),Device Wait(us),Lock Wait(us),CPU Wait(us),"
			  "I/O Wait(us),Interrupts(us),Other Sleep(us),Not Observed(us)"
	};
	const struct nps_host_breakdown_table *t = &ex->model->host_breakdown;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		const uint64_t before[] = { t->user[i],	       t->cann[i],	  t->io_calls[i],
					    t->other_calls[i], t->device_wait[i], t->lock_wait[i],
					    t->cpu_wait[i],    t->io_wait[i] };

		nps_csv__row(csv);
		put_step(csv, t->step[i]);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->gtid[i] & UINT32_MAX);
		nps_csv__text(csv, t->comm[i]);
		nps_csv__time(csv, t->start[i]);
		nps_csv__milli(csv, t->end[i] - t->start[i]);
		for (size_t part = 0; part < NPS_ARRAY_SIZE(before); part++)
			nps_csv__milli(csv, before[part]);
		if (t->interrupts[i] == NPS_NULL)
			nps_csv__lit(csv, "N/A");
		else
			nps_csv__milli(csv, t->interrupts[i]);
		nps_csv__milli(csv, t->sleep[i]);
		nps_csv__milli(csv, t->unknown[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

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

static int threads(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "npuscope_host_threads",
		.header = "Process ID,Thread ID,Thread Name,Running(us),Runnable(us),Sleeping(us),"
			  "Uninterruptible(us),Slices,Voluntary Switches,Preemptions,Migrations,CPUs,"
			  "Waker Thread ID,Waker Name,Wake-ups,Preemptor Thread ID,Preemptor Name,Preempted"
	};
	const struct nps_sched_thread_table *t = &ex->model->sched_thread;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->gtid[i] & UINT32_MAX);
		nps_csv__text(csv, t->comm[i]);
		nps_csv__milli(csv, t->running[i]);
		nps_csv__milli(csv, t->runnable[i]);
		nps_csv__milli(csv, t->sleeping[i]);
		nps_csv__milli(csv, t->blocked[i]);
		nps_csv__u64(csv, t->slices[i]);
		nps_csv__u64(csv, t->waits[i]);
		nps_csv__u64(csv, t->preemptions[i]);
		nps_csv__u64(csv, t->migrations[i]);
		nps_csv__u64(csv, t->cpus[i]);
		put_other(csv, t->waker[i], t->waker_comm[i], t->wakes[i]);
		put_other(csv, t->preemptor[i], t->preemptor_comm[i], t->preempted[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_export__host_csv(const struct nps_export *ex, int dirfd)
{
	int err = breakdown(ex, dirfd);

	return err ? err : threads(ex, dirfd);
}
