/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HostToDevice: from a CANN call to what it started on the device (outputs 2.6). A start has at least one
 * end and an end has exactly one start, so all calls and tasks are read before the first event is written.
 */
#include "export/trace_event.h"

#include <errno.h>

#define NONE_SUCH (NPS_NONE - 1) /* no text's id, and not "unknown" */

/* Databases of generation A have no details of memcpys: the host's type of the task decides. */
static bool trace_is_copy(const struct nps_trace *t, size_t task)
{
	return t->m->task.class[task] == NPS_CLASS_MEMCPY ||
	       (t->m->task.class[task] == NPS_CLASS_OTHER && t->m->task.type[task] == t->copy_type);
}

bool nps_trace__is_launch(const struct nps_trace *t, size_t task)
{
	return t->m->task.class[task] == NPS_CLASS_COMPUTE || trace_is_copy(t, task);
}

static void find_copy_type(struct nps_trace *t)
{
	const struct nps_task_table *task = &t->m->task;
	uint32_t other = NPS_NONE;

	t->copy_type = NONE_SUCH;
	for (size_t i = 0; i < task->t.len && t->copy_type == NONE_SUCH; i++) {
		nps_pace__step(&t->pace);
		if (task->class[i] != NPS_CLASS_OTHER || task->type[i] == other)
			continue;
		other = task->type[i];
		if (!strcmp(nps_trace__text(t, other), "MEMCPY_ASYNC"))
			t->copy_type = other;
	}
}

/* Whether the task ends a flow. Collectives end theirs as a whole. */
static bool ends_flow(const struct nps_trace *t, size_t task)
{
	return t->m->task.connection[task] != NPS_NO_ID &&
	       (nps_trace__is_launch(t, task) || (!t->gen_a && t->m->task.class[task] == NPS_CLASS_EVENT));
}

size_t nps_trace__connections(const struct nps_trace *t)
{
	return NPS_MAX(t->launches, t->m->api.t.len);
}

static void link_launched(struct nps_trace *t, uint32_t connection)
{
	t->first_conn = NPS_MIN(t->first_conn, connection);
	t->last_conn = NPS_MAX(t->last_conn, connection);
	t->launches++;
}

static int scan_task(struct nps_trace *t, size_t i)
{
	uint32_t connection = t->m->task.connection[i];
	int err;

	if (nps_trace__is_launch(t, i))
		link_launched(t, connection);
	err = ends_flow(t, i) ? nps_trace_bits__set(&t->wanted, connection) : 0;
	if (err)
		return err;
	err = t->gen_a && trace_is_copy(t, i) ? nps_trace_bits__set(&t->copies, connection) : 0;
	if (err || !nps_trace_bits__has(&t->marks, connection))
		return err;
	return nps_trace_bits__set(&t->marked, connection);
}

static int scan_collective(struct nps_trace *t, size_t i)
{
	uint32_t connection = t->m->comm_op.connection[i];
	int err;

	link_launched(t, connection);
	err = nps_trace_bits__set(&t->wanted, connection);
	return err || !t->gen_a ? err : nps_trace_bits__set(&t->collectives, connection);
}

int nps_trace__scan_links(struct nps_trace *t)
{
	const struct nps_task_table *task = &t->m->task;
	const struct nps_comm_op_table *op = &t->m->comm_op;
	int err = 0;

	find_copy_type(t);
	t->first_conn = UINT32_MAX;
	for (size_t i = 0; !err && i < task->t.len; i++) {
		if (task->connection[i] == NPS_NO_ID)
			continue;
		err = scan_task(t, i);
		nps_pace__step(&t->pace);
	}
	for (size_t i = 0; !err && i < op->t.len; i++) {
		if (op->connection[i] == NPS_NO_ID)
			continue;
		err = scan_collective(t, i);
		nps_pace__step(&t->pace);
	}
	if (err)
		return err;
	err = nps_trace_rows__init(&t->kernel_of, t->m->tmpfd, t->first_conn,
				   t->gen_a && t->launches ? t->last_conn : 0, nps_trace__connections(t));
	/* Generation A names a flow after its kernel: the first of a call has it. */
	for (size_t i = task->t.len; !err && t->gen_a && i-- > 0;) {
		if (task->class[i] == NPS_CLASS_COMPUTE)
			nps_trace_rows__put(&t->kernel_of, task->connection[i], i);
		nps_pace__step(&t->pace);
	}
	return err;
}

static unsigned __int128 kernel_id(const struct nps_trace *t, size_t task)
{
	const struct nps_task_table *a = &t->m->task;

	/* Devices of one process number their streams alike. */
	unsigned int device = t->devices & (t->devices - 1) ? a->device[task] : 0;

	return ((unsigned __int128)device << 80) + ((unsigned __int128)a->stream[task] << 64) +
	       ((unsigned __int128)a->task[task] << 48) + ((unsigned __int128)a->batch[task] << 32) +
	       a->context[task];
}

static void host_to_device(struct nps_trace *t, unsigned __int128 id, uint64_t pid, uint64_t tid,
			   uint64_t time, bool begin)
{
	nps_trace__flow(t, "HostToDevice", "HostToDevice", id, pid, tid, time, begin);
}

void nps_trace__start_links(struct nps_trace *t, uint32_t connection, uint64_t pid, uint64_t tid,
			    uint64_t time)
{
	uint32_t kernel;

	if (!t->links || nps_trace_bits__has(&t->started, connection))
		return;
	if (nps_trace_bits__set(&t->started, connection) && !t->w.err)
		t->w.err = -ENOMEM;
	if (!t->gen_a) {
		host_to_device(t, (uint64_t)connection << 32, pid, tid, time, true);
		return;
	}
	if (nps_trace_bits__has(&t->copies, connection))
		host_to_device(t, connection, pid, tid, time, true);
	if (nps_trace_bits__has(&t->collectives, connection))
		host_to_device(t, ((uint64_t)connection << 32) - 1, pid, tid, time, true);
	kernel = nps_trace_rows__get(&t->kernel_of, connection);
	if (kernel != NPS_NONE)
		host_to_device(t, kernel_id(t, kernel), pid, tid, time, true);
}

static bool is_offered(const struct nps_trace *t, uint32_t connection)
{
	return t->links && connection != NPS_NO_ID && nps_trace_bits__has(&t->offered, connection);
}

void nps_trace__end_link(struct nps_trace *t, size_t task, uint64_t pid, uint64_t tid)
{
	const struct nps_task_table *a = &t->m->task;
	uint32_t connection = a->connection[task];

	if (!is_offered(t, connection) || !ends_flow(t, task))
		return;
	if (!t->gen_a)
		host_to_device(t, (uint64_t)connection << 32, pid, tid, a->start[task], false);
	else if (trace_is_copy(t, task))
		host_to_device(t, connection, pid, tid, a->start[task], false);
	else if (nps_trace_rows__get(&t->kernel_of, connection) == task)
		host_to_device(t, kernel_id(t, task), pid, tid, a->start[task], false);
}

void nps_trace__end_comm_link(struct nps_trace *t, size_t op, uint64_t pid, uint64_t tid)
{
	uint32_t connection = t->m->comm_op.connection[op];

	if (is_offered(t, connection))
		host_to_device(t, ((uint64_t)connection << 32) - t->gen_a, pid, tid, t->m->comm_op.start[op],
			       false);
}

void nps_trace__mark_link(struct nps_trace *t, uint32_t connection, uint64_t pid, uint64_t tid, uint64_t time,
			  bool begin)
{
	if (connection != NPS_NO_ID)
		nps_trace__flow(t, "MsTx", "MsTx_", connection, pid, tid, time, begin);
}
