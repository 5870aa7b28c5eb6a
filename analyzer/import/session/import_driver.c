/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/import_driver.h"

#include "import/session/driver_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct driver_fill {
	struct nps_model *m;
	const struct nps_session *rec;
	const struct nps_proc *proc;
	/* The process uses other numbers of devices than the driver: the driver's events cannot be joined. */
	bool foreign;
	int err;
};

/* Does the call wait for a CQE? */
static bool event_is_wait(const struct nps_event *ev)
{
	return ev->kind == NPS_EV_DRIVER && ev->call_type == NPS_DRIVER_IOCTL &&
	       ev->driver.node == NPS_NODE_MANAGER && (ev->driver.command & 0xffff) == ('X' << 8 | 20);
}

static void driver_add_call(struct driver_fill *f, const struct nps_event *ev)
{
	char part[NPS_DRIVER_NAME_MAX], node[NPS_DRIVER_NAME_MAX], name[2 * NPS_DRIVER_NAME_MAX];
	const struct nps_event_driver *d = &ev->driver;
	struct nps_driver_table *t = &f->m->driver;
	size_t row;

	nps_driver_part_name(d->part, part);
	nps_driver_node_name(d->node, d->device, node);
	nps_driver_call_name(ev->call_type, d->command, d->node, part, node, name, sizeof(name));
	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->name[row] = nps_model__intern(f->m, name, &f->err);
	t->gtid[row] = nps_proc__gtid(f->proc, ev->tid);
	t->start[row] = nps_session__real(f->rec, ev->start);
	t->end[row] = nps_session__real(f->rec, ev->start + ev->dur);
	t->node[row] = nps_model__intern(f->m, node, &f->err);
	t->part[row] = *part ? nps_model__intern(f->m, part, &f->err) : NPS_NONE;
	t->command[row] = d->command;
	t->device[row] = d->device == NPS_DRIVER_NO_DEVICE ? NPS_NULL : d->device;
	t->bytes[row] = d->bytes > INT64_MAX || event_is_wait(ev) ? NPS_NULL : (int64_t)d->bytes;
	t->result[row] = ev->ret;
}

/* A copy by PCIe, on the thread that requested it. */
static void driver_add_copy(struct driver_fill *f, const struct nps_event *ev)
{
	const struct nps_event_driver_dma *dma = &ev->driver_dma;
	struct nps_driver_table *t = &f->m->driver;
	size_t row;

	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->name[row] = nps_model__intern(
		f->m, dma->direction ? "PCIe copy from the device" : "PCIe copy to the device", &f->err);
	t->gtid[row] = nps_proc__gtid(f->proc, ev->tid);
	t->start[row] = nps_session__real(f->rec, ev->start);
	t->end[row] = nps_session__real(f->rec, ev->start + ev->dur);
	t->node[row] = nps_model__intern(f->m, "PCIe", &f->err);
	t->part[row] = NPS_NONE;
	t->device[row] = dma->device < NPS_MAX_DEVICES ? (int64_t)dma->device : NPS_NULL;
	t->bytes[row] = dma->bytes > INT64_MAX ? NPS_NULL : (int64_t)dma->bytes;
	t->result[row] = ev->ret;
}

static uint64_t driver_task_key(uint32_t device, uint32_t stream, uint32_t task)
{
	return (uint64_t)(device & 0xffff) << 32 | (stream & 0xffff) << 16 | (task & 0xffff);
}

/* Submissions by time, of which those before the present SQE are in `latest`. */
struct submissions {
	const struct nps_task *tasks; /* of the process */
	struct nps_vec keys; /* struct nps_key */
	struct nps_map latest; /* driver_task_key -> row of tasks, NPS_NONE: it has its SQE */
	size_t n, at;
};

static int sort_submissions(struct submissions *s, const struct nps_session *rec, const struct nps_proc *proc,
			    size_t n)
{
	struct nps_key *keys;
	int err = nps_vec__resize(&s->keys, 2 * n);

	if (err || !n)
		return err;
	s->tasks = (const struct nps_task *)rec->tasks.data + proc->first_task;
	keys = s->keys.data;
	for (size_t i = 0; i < n; i++)
		if (s->tasks[i].submit)
			keys[s->n++] = (struct nps_key){ .key = s->tasks[i].submit, .row = (uint32_t)i };
	nps_sort_keys(keys, keys + s->n, s->n);
	return 0;
}

/* The submission of an SQE that the driver saw at TIME; NULL: none is known. */
static const struct nps_task *submission_of(struct driver_fill *f, struct submissions *s, uint64_t key,
					    uint64_t time)
{
	const struct nps_key *keys = s->keys.data;
	uint32_t row;

	for (; s->at < s->n && keys[s->at].key <= time && !f->err; s->at++) {
		const struct nps_task *task = &s->tasks[keys[s->at].row];

		f->err = nps_map__put(&s->latest, driver_task_key(task->device, task->stream, task->task),
				      keys[s->at].row);
	}
	row = nps_map__get(&s->latest, key);
	if (row == NPS_NONE || f->err)
		return NULL;
	f->err = nps_map__put(&s->latest, key, NPS_NONE);
	return &s->tasks[row];
}

static void driver_add_task(struct driver_fill *f, const struct nps_event *ev, struct submissions *s)
{
	const struct nps_event_driver_task *sent = &ev->driver_task;
	uint8_t type = sent->sqe.type & NPS_SQE_TYPE_BITS;
	/* The driver's tracepoint has the ids that the driver gave these. */
	bool nameless = ev->traced == NPS_DRIVER_TRACED && type == NPS_SQE_FFTS;
	uint64_t key = driver_task_key(sent->device, sent->sqe.stream, sent->sqe.task);
	const struct nps_task *task = nameless ? NULL : submission_of(f, s, key, ev->start);
	struct nps_driver_task_table *t = &f->m->driver_task;
	size_t row;

	if (!f->err)
		f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->device[row] = sent->device;
	t->stream[row] = sent->sqe.stream;
	t->task[row] = nameless ? NPS_NULL : sent->sqe.task;
	t->queue[row] = sent->queue;
	t->type[row] = type;
	t->gtid[row] = nps_proc__gtid(f->proc, ev->tid);
	t->start[row] = nps_session__real(f->rec, ev->start);
	t->driver_ns[row] = ev->traced == NPS_DRIVER_TRACED ? NPS_NULL : (int64_t)ev->dur;
	t->submit[row] = task ? nps_session__real(f->rec, task->submit) : 0;
	t->queued[row] = task ? (int64_t)(ev->start - task->submit) : NPS_NULL;
	t->name[row] = task ? task->name : NPS_NONE;
	t->connection[row] = task && task->conn != NPS_NONE ? task->conn : NPS_NO_ID;
}

/* The wait of the process that the CQE at row I ended; NULL: no thread waited for it in the driver. */
static const struct nps_event *cqe_wait(const struct nps_proc *proc, const struct nps_map *waits, size_t i)
{
	const struct nps_event *cqe = &NPS_AT(&proc->drivers, struct nps_event, i), *wait;
	const struct nps_event_driver_done *done = &cqe->driver_done;
	uint32_t row = nps_map__get(waits, driver_task_key(0, done->stream, done->task));

	if (row == NPS_NONE)
		return NULL;
	wait = &NPS_AT(&proc->drivers, struct nps_event, row);
	return wait->start <= cqe->start && cqe->start <= wait->start + wait->dur &&
			       (wait->driver.device == NPS_DRIVER_NO_DEVICE ||
				wait->driver.device == done->device)
		       ? wait
		       : NULL;
}

static void add_cqe(struct driver_fill *f, const struct nps_event *ev, const struct nps_event *wait)
{
	struct nps_driver_cqe_table *t = &f->m->driver_cqe;
	size_t row;

	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->device[row] = ev->driver_done.device;
	t->stream[row] = ev->driver_done.stream;
	t->task[row] = ev->driver_done.task;
	t->queue[row] = ev->driver_done.queue;
	t->pid[row] = f->proc->pid;
	t->timestamp[row] = nps_session__real(f->rec, ev->start);
	t->waiter[row] = wait ? wait->tid : 0;
	t->woken[row] = wait ? nps_session__real(f->rec, wait->start + wait->dur) : 0;
	t->wakeup[row] = wait ? (int64_t)(wait->start + wait->dur - ev->start) : NPS_NULL;
}

int nps_driver__fill(struct nps_model *model, const struct nps_session *rec, const struct nps_proc *proc)
{
	struct driver_fill f = {
		.m = model, .rec = rec, .proc = proc, .foreign = nps_proc__in_container(proc)
	};
	struct submissions s = { 0 };
	struct nps_map waits = { 0 }; /* driver_task_key -> row of the latest that began */

	nps_vec__init(&s.keys, model->tmpfd, sizeof(struct nps_key));
	if (proc->drivers.len)
		f.err = sort_submissions(&s, rec, proc, f.foreign ? 0 : proc->tasks);
	for (size_t i = 0; !f.err && i < proc->drivers.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->drivers, struct nps_event, i);

		if (event_is_wait(ev) && i < NPS_NONE)
			f.err = nps_map__put(&waits,
					     driver_task_key(0, ev->driver.waits_for.stream,
							     ev->driver.waits_for.task),
					     i);
		if (f.err)
			break;
		if (ev->kind == NPS_EV_DRIVER)
			driver_add_call(&f, ev);
		else if (ev->kind == NPS_EV_DRIVER_TASK)
			driver_add_task(&f, ev, &s);
		else if (ev->kind == NPS_EV_DRIVER_DONE)
			add_cqe(&f, ev, f.foreign ? NULL : cqe_wait(proc, &waits, i));
		else
			driver_add_copy(&f, ev);
	}
	nps_vec__free(&s.keys);
	nps_map__free(&s.latest);
	nps_map__free(&waits);
	return f.err;
}

void nps_driver__cover(struct nps_model *m)
{
	for (size_t i = 0; i < m->driver.t.len; i++)
		nps_model__cover(m, m->driver.start[i], m->driver.end[i]);
	for (size_t i = 0; i < m->driver_task.t.len; i++) {
		uint64_t start = m->driver_task.start[i];
		int64_t driver_ns = m->driver_task.driver_ns[i];

		nps_model__cover(m, start, start + (driver_ns == NPS_NULL ? 0 : (uint64_t)driver_ns));
	}
	for (size_t i = 0; i < m->driver_cqe.t.len; i++)
		nps_model__cover(m, m->driver_cqe.timestamp[i], m->driver_cqe.timestamp[i]);
}
