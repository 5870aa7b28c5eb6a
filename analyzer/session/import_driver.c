/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/import_driver.h"

#include "session/driver_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int nps_driver__keep(struct nps_proc *proc, const struct nps_event *ev)
{
	struct nps_driver_event *kept = nps_vec__push(&proc->drivers);

	if (!kept)
		return -errno;
	*kept = (struct nps_driver_event){ .start = ev->start,
					   .dur = ev->dur,
					   .tid = ev->tid,
					   .ret = ev->ret,
					   .probe = ev->probe,
					   .kind = ev->kind };
	memcpy(kept->args, ev->args, sizeof(kept->args));
	return 0;
}

struct fill {
	struct nps_model *m;
	const struct nps_recording *rec;
	const struct nps_proc *proc;
	/* The process uses other numbers of devices than the driver: the driver's events cannot be joined. */
	bool foreign;
	int err;
};

static uint32_t text(struct fill *f, const char *s)
{
	uint32_t id = nps_strings__addz(f->m->strings, s);

	if (id == NPS_NONE && !f->err)
		f->err = -ENOMEM;
	return id;
}

/* Does the call wait for a CQE? Then its last slot is the task. */
static bool is_wait(const struct nps_driver_event *ev)
{
	return ev->kind == NPS_EV_DRIVER && ev->probe == NPS_DRIVER_IOCTL &&
	       (uint8_t)(ev->args[2] >> 32) == NPS_NODE_MANAGER && (ev->args[1] & 0xffff) == ('X' << 8 | 20);
}

static void add_call(struct fill *f, const struct nps_driver_event *ev)
{
	char part[NPS_DRIVER_NAME_MAX], node[NPS_DRIVER_NAME_MAX], name[2 * NPS_DRIVER_NAME_MAX];
	uint16_t device = ev->args[2] >> 48;
	uint8_t kind = ev->args[2] >> 32;
	uint32_t command = ev->args[1];
	struct nps_driver_table *t = &f->m->driver;
	size_t row;

	nps_driver_part_name(ev->args[0], part);
	nps_driver_node_name(kind, device, node);
	nps_driver_call_name(ev->probe, command, kind, part, node, name, sizeof(name));
	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->name[row] = text(f, name);
	t->gtid[row] = (uint64_t)f->proc->pid << 32 | ev->tid;
	t->start[row] = nps_recording__real(f->rec, ev->start);
	t->end[row] = nps_recording__real(f->rec, ev->start + ev->dur);
	t->node[row] = text(f, node);
	t->part[row] = *part ? text(f, part) : NPS_NONE;
	t->command[row] = command;
	t->device[row] = device == NPS_DRIVER_NO_DEVICE ? NPS_NULL : device;
	t->bytes[row] = ev->args[3] > INT64_MAX || is_wait(ev) ? NPS_NULL : (int64_t)ev->args[3];
	t->result[row] = ev->ret;
}

/* A copy by PCIe, on the thread that requested it. */
static void add_copy(struct fill *f, const struct nps_driver_event *ev)
{
	uint32_t device = ev->args[0], direction = ev->args[0] >> 32;
	struct nps_driver_table *t = &f->m->driver;
	size_t row;

	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->name[row] = text(f, direction ? "PCIe copy from the device" : "PCIe copy to the device");
	t->gtid[row] = (uint64_t)f->proc->pid << 32 | ev->tid;
	t->start[row] = nps_recording__real(f->rec, ev->start);
	t->end[row] = nps_recording__real(f->rec, ev->start + ev->dur);
	t->node[row] = text(f, "PCIe");
	t->part[row] = NPS_NONE;
	t->device[row] = device < NPS_MAX_DEVICES ? (int64_t)device : NPS_NULL;
	t->bytes[row] = ev->args[3] > INT64_MAX ? NPS_NULL : (int64_t)ev->args[3];
	t->result[row] = ev->ret;
}

static uint64_t task_key(uint32_t device, uint32_t stream, uint32_t task)
{
	return (uint64_t)(device & 0xffff) << 32 | (stream & 0xffff) << 16 | (task & 0xffff);
}

/* Submissions by time, of which those before the present SQE are in `latest`. */
struct submissions {
	const struct nps_task *tasks; /* of the process */
	struct nps_vec keys; /* struct nps_key */
	struct nps_map latest; /* task_key -> row of tasks, NPS_NONE: it has its SQE */
	size_t n, at;
};

static int sort_submissions(struct submissions *s, const struct nps_recording *rec,
			    const struct nps_proc *proc, size_t n)
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
static const struct nps_task *submission_of(struct fill *f, struct submissions *s, uint64_t key,
					    uint64_t time)
{
	const struct nps_key *keys = s->keys.data;
	uint32_t row;

	for (; s->at < s->n && keys[s->at].key <= time && !f->err; s->at++) {
		const struct nps_task *task = &s->tasks[keys[s->at].row];

		f->err = nps_map__put(&s->latest, task_key(task->device, task->stream, task->task),
				      keys[s->at].row);
	}
	row = nps_map__get(&s->latest, key);
	if (row == NPS_NONE || f->err)
		return NULL;
	f->err = nps_map__put(&s->latest, key, NPS_NONE);
	return &s->tasks[row];
}

static void add_task(struct fill *f, const struct nps_driver_event *ev, struct submissions *s)
{
	uint32_t device = ev->args[0] & 0xffff, stream = ev->args[1] >> 32 & 0xffff, id = ev->args[1] >> 48;
	/* The driver's tracepoint has the ids that the driver gave these. */
	bool nameless = ev->probe == NPS_DRIVER_TRACED && (ev->args[1] & 0x3f) == NPS_SQE_FFTS;
	const struct nps_task *task = nameless ? NULL
					       : submission_of(f, s, task_key(device, stream, id), ev->start);
	struct nps_driver_task_table *t = &f->m->driver_task;
	size_t row;

	if (!f->err)
		f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->device[row] = device;
	t->stream[row] = stream;
	t->task[row] = nameless ? NPS_NULL : (int64_t)id;
	t->queue[row] = ev->args[0] >> 32;
	t->type[row] = ev->args[1] & 0x3f;
	t->gtid[row] = (uint64_t)f->proc->pid << 32 | ev->tid;
	t->start[row] = nps_recording__real(f->rec, ev->start);
	t->took[row] = ev->probe == NPS_DRIVER_TRACED ? NPS_NULL : (int64_t)ev->dur;
	t->submit[row] = task ? nps_recording__real(f->rec, task->submit) : 0;
	t->queued[row] = task ? (int64_t)(ev->start - task->submit) : NPS_NULL;
	t->name[row] = task ? task->name : NPS_NONE;
	t->connection[row] = task && task->conn != NPS_NONE ? task->conn : NPS_NO_ID;
}

/* The wait of the process that the CQE at row I ended; NULL: no thread waited for it in the driver. */
static const struct nps_driver_event *wait_of(const struct nps_proc *proc, const struct nps_map *waits,
					      size_t i)
{
	const struct nps_driver_event *cqe = &NPS_AT(&proc->drivers, struct nps_driver_event, i), *wait;
	uint32_t row = nps_map__get(waits, task_key(0, cqe->args[1] >> 32, cqe->args[1] >> 48));

	if (row == NPS_NONE)
		return NULL;
	wait = &NPS_AT(&proc->drivers, struct nps_driver_event, row);
	return wait->start <= cqe->start && cqe->start <= wait->start + wait->dur &&
			       (wait->args[2] >> 48 == NPS_DRIVER_NO_DEVICE ||
				wait->args[2] >> 48 == (cqe->args[0] & 0xffff))
		       ? wait
		       : NULL;
}

static void add_cqe(struct fill *f, const struct nps_driver_event *ev, const struct nps_driver_event *wait)
{
	struct nps_driver_cqe_table *t = &f->m->driver_cqe;
	size_t row;

	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->device[row] = ev->args[0] & 0xffff;
	t->stream[row] = ev->args[1] >> 32 & 0xffff;
	t->task[row] = ev->args[1] >> 48;
	t->queue[row] = ev->args[0] >> 32;
	t->pid[row] = f->proc->pid;
	t->timestamp[row] = nps_recording__real(f->rec, ev->start);
	t->waiter[row] = wait ? wait->tid : 0;
	t->woken[row] = wait ? nps_recording__real(f->rec, wait->start + wait->dur) : 0;
	t->wakeup[row] = wait ? (int64_t)(wait->start + wait->dur - ev->start) : NPS_NULL;
}

int nps_driver__fill(struct nps_model *model, const struct nps_recording *rec, const struct nps_proc *proc)
{
	struct fill f = { .m = model, .rec = rec, .proc = proc, .foreign = nps_proc__in_container(proc) };
	struct submissions s = { 0 };
	struct nps_map waits = { 0 }; /* task_key -> row of the latest that began */

	nps_vec__init(&s.keys, model->tmpfd, sizeof(struct nps_key));
	if (proc->drivers.len)
		f.err = sort_submissions(&s, rec, proc, f.foreign ? 0 : proc->tasks);
	for (size_t i = 0; !f.err && i < proc->drivers.len; i++) {
		const struct nps_driver_event *ev = &NPS_AT(&proc->drivers, struct nps_driver_event, i);

		if (is_wait(ev) && i < NPS_NONE)
			f.err = nps_map__put(&waits, task_key(0, ev->args[3], ev->args[3] >> 32), i);
		if (f.err)
			break;
		if (ev->kind == NPS_EV_DRIVER)
			add_call(&f, ev);
		else if (ev->kind == NPS_EV_DRIVER_TASK)
			add_task(&f, ev, &s);
		else if (ev->kind == NPS_EV_DRIVER_DONE)
			add_cqe(&f, ev, f.foreign ? NULL : wait_of(proc, &waits, i));
		else
			add_copy(&f, ev);
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
		int64_t took = m->driver_task.took[i];

		nps_model__cover(m, start, start + (took == NPS_NULL ? 0 : (uint64_t)took));
	}
	for (size_t i = 0; i < m->driver_cqe.t.len; i++)
		nps_model__cover(m, m->driver_cqe.timestamp[i], m->driver_cqe.timestamp[i]);
}
