/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/os_calls.h"

#include "import/session/session_reader.h"
#include "import/session/syscall_names.h"
#include "model/os_thread.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULT_NR UINT16_MAX /* a row that is no call */
#define FAULT_NAME "major page fault"
#define DISK_READ 0
#define DISK_WRITE 1

/* --- what is kept of the events --- */

/* The row of KEY in LIST, made if need be; NULL without memory. */
static void *os_row(struct nps_vec *list, struct nps_map *of, uint64_t key)
{
	uint32_t row = nps_map__get(of, key);
	void *fresh;

	if (row != NPS_NONE)
		return (char *)list->data + row * list->elem;
	fresh = nps_vec__push(list);
	return fresh && !nps_map__put(of, key, list->len - 1) ? fresh : NULL;
}

static int keep_sum(struct nps_proc *proc, const struct nps_event *ev)
{
	const struct nps_event_syscall_sum *s = &ev->syscall_sum;
	uint64_t key = nps_hash2(ev->tid, ev->nr | (uint64_t)ev->flags << 16);
	struct nps_os_sum *sum = os_row(&proc->os_sums, &proc->os_sum_of, key);
	uint64_t end = nps_add_sat(ev->start, ev->dur);

	if (!sum)
		return -ENOMEM;
	if (!sum->count)
		*sum = (struct nps_os_sum){ .first = ev->start,
					    .last = end,
					    .shortest = UINT64_MAX,
					    .tid = ev->tid,
					    .nr = ev->nr,
					    .flags = ev->flags };
	sum->first = NPS_MIN(sum->first, ev->start);
	sum->last = NPS_MAX(sum->last, end);
	sum->count = nps_add_sat(sum->count, s->count);
	sum->errors = nps_add_sat(sum->errors, s->failed);
	sum->total = nps_add_sat(sum->total, s->total);
	sum->shortest = NPS_MIN(sum->shortest, (uint64_t)s->shortest);
	sum->longest = NPS_MAX(sum->longest, (uint64_t)s->longest);
	sum->bytes = nps_add_sat(sum->bytes, s->bytes);
	return nps_event__keep(&proc->os_spans, ev);
}

static struct nps_os_thread *os_thread(struct nps_proc *proc, uint32_t tid)
{
	struct nps_os_thread *thread = os_row(&proc->os_threads, &proc->os_thread_of, tid);

	if (thread)
		thread->tid = tid;
	return thread;
}

static int keep_fault(struct nps_proc *proc, const struct nps_event *ev)
{
	struct nps_os_thread *thread = os_thread(proc, ev->tid);

	if (!thread)
		return -ENOMEM;
	if (ev->what == NPS_FAULT_SUM) {
		thread->minor = nps_add_sat(thread->minor, ev->fault_sum.minor);
		thread->major = nps_add_sat(thread->major, ev->fault_sum.major);
		return 0;
	}
	thread->major_ns = nps_add_sat(thread->major_ns, ev->dur);
	return ev->dur ? nps_event__keep(&proc->os_calls, ev) : 0;
}

static int keep_io(struct nps_proc *proc, const struct nps_event *ev)
{
	struct nps_os_thread *thread = os_thread(proc, ev->tid);

	if (!thread)
		return -ENOMEM;
	if ((ev->operation != DISK_READ && ev->operation != DISK_WRITE) || !ev->io.bytes)
		return 0; /* flushes and discards move no data */
	thread->requests[ev->operation]++;
	thread->bytes[ev->operation] = nps_add_sat(thread->bytes[ev->operation], ev->io.bytes);
	thread->ns[ev->operation] = nps_add_sat(thread->ns[ev->operation], ev->dur);
	return 0;
}

int nps_os_calls__keep(struct nps_proc *proc, const struct nps_event *ev)
{
	switch (ev->kind) {
	case NPS_EV_SYSCALL:
		return nps_event__keep(&proc->os_calls, ev);
	case NPS_EV_SYSCALL_SUM:
		return keep_sum(proc, ev);
	case NPS_EV_LOCK:
		return nps_event__keep(&proc->os_locks, ev);
	case NPS_EV_FAULT:
		return keep_fault(proc, ev);
	default:
		return keep_io(proc, ev);
	}
}

/* --- what arguments of calls show --- */

static const struct {
	const char *name;
	enum nps_os_shape shape;
} shapes[] = {
	{ "copy_file_range", NPS_OS_BYTES },
	{ "creat", NPS_OS_OPEN },
	{ "epoll_pwait", NPS_OS_WAIT_FD },
	{ "epoll_pwait2", NPS_OS_WAIT_FD },
	{ "epoll_wait", NPS_OS_WAIT_FD },
	{ "clock_nanosleep", NPS_OS_WAIT },
	{ "futex", NPS_OS_FUTEX },
	{ "ioctl", NPS_OS_IOCTL },
	{ "mmap", NPS_OS_MAP },
	{ "munmap", NPS_OS_MAP },
	{ "nanosleep", NPS_OS_WAIT },
	{ "open", NPS_OS_OPEN },
	{ "openat", NPS_OS_OPEN },
	{ "openat2", NPS_OS_OPEN },
	{ "poll", NPS_OS_WAIT },
	{ "ppoll", NPS_OS_WAIT },
	{ "pread64", NPS_OS_BYTES },
	{ "preadv", NPS_OS_BYTES },
	{ "preadv2", NPS_OS_BYTES },
	{ "pselect6", NPS_OS_WAIT },
	{ "pwrite64", NPS_OS_BYTES },
	{ "pwritev", NPS_OS_BYTES },
	{ "pwritev2", NPS_OS_BYTES },
	{ "read", NPS_OS_BYTES },
	{ "readv", NPS_OS_BYTES },
	{ "recvfrom", NPS_OS_BYTES },
	{ "recvmsg", NPS_OS_BYTES },
	{ "select", NPS_OS_WAIT },
	{ "sendfile", NPS_OS_BYTES },
	{ "sendmsg", NPS_OS_BYTES },
	{ "sendto", NPS_OS_BYTES },
	{ "splice", NPS_OS_BYTES },
	{ "write", NPS_OS_BYTES },
	{ "writev", NPS_OS_BYTES },
};

enum nps_os_shape nps_os_shape_of(const char *name)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(shapes); i++)
		if (!strcmp(shapes[i].name, name))
			return shapes[i].shape;
	return NPS_OS_PLAIN;
}

/* Whether bytes of a call of that name come in; else they go out. */
static bool comes_in(const char *name)
{
	return !strncmp(name, "re", 2) || !strncmp(name, "pre", 3);
}

/* --- filling the model --- */

struct number { /* what is known of a system call number */
	uint32_t name;
	enum nps_os_shape shape;
	bool known, in;
};

struct os_fill {
	struct nps_model *m;
	const struct nps_session *rec;
	struct nps_proc *proc;
	struct number *numbers; /* 65536 */
	struct nps_map lock_of; /* hash of thread, lock, kind and holder -> row of os_lock */
	struct nps_map thread_of; /* tid -> row of os_thread */
	size_t lock; /* the next wait that may belong to a call */
	int err;
};

static const struct number *os_number(struct os_fill *f, uint16_t nr)
{
	struct number *n = &f->numbers[nr];
	const cJSON *host;
	const char *name;
	char unknown[32];

	if (n->known)
		return n;
	host = cJSON_GetObjectItemCaseSensitive(f->rec->json, "host");
	name = nr == FAULT_NR ? FAULT_NAME : nps_syscall_name(nps_json_str(host, "arch", ""), nr);
	snprintf(unknown, sizeof(unknown), "syscall_%u", nr);
	n->name = nps_model__intern(f->m, name ? name : unknown, &f->err);
	n->shape = nr == FAULT_NR ? NPS_OS_FAULT : name ? nps_os_shape_of(name) : NPS_OS_PLAIN;
	n->in = name && comes_in(name);
	n->known = true;
	return n;
}

static size_t thread_row(struct os_fill *f, uint32_t tid, uint64_t when)
{
	uint32_t known = nps_map__get(&f->thread_of, tid), comm;
	size_t row = 0;

	if (known != NPS_NONE)
		return known;
	comm = nps_session__comm_at(f->rec, tid, when);
	f->err = nps_os_thread__add(f->m, nps_proc__gtid(f->proc, tid),
				    comm == NPS_NONE ? f->proc->comm : comm, &row);
	if (!f->err)
		f->err = nps_map__put(&f->thread_of, tid, row);
	return f->err ? 0 : row;
}

static void sockets(struct os_fill *f, uint32_t tid, uint64_t when, bool in, uint64_t bytes)
{
	size_t row = thread_row(f, tid, when);
	uint64_t *sum;

	if (f->err)
		return;
	sum = in ? &f->m->os_thread.received[row] : &f->m->os_thread.sent[row];
	*sum = nps_add_sat(*sum, bytes);
}

static bool is_thread(const void *ctx, uint32_t tid)
{
	const struct os_fill *f = ctx;

	return nps_map__get(&f->thread_of, tid) != NPS_NONE;
}

static void os_add_wait(struct os_fill *f, const struct nps_event *w, enum nps_os_lock_kind kind,
			uint32_t holder)
{
	static const char *const names[] = NPS_LOCK_NAMES;
	struct nps_os_lock_table *t = &f->m->os_lock;
	uint64_t key = nps_hash2(nps_hash2(w->lock.address, w->tid), (uint64_t)kind << 32 | holder);
	uint32_t known = nps_map__get(&f->lock_of, key), name = nps_model__intern(f->m, names[kind], &f->err);
	size_t row = known;

	if (known == NPS_NONE && !f->err)
		f->err = nps_table__add(&t->t, &row);
	if (known == NPS_NONE && !f->err)
		f->err = nps_map__put(&f->lock_of, key, row);
	if (f->err)
		return;
	t->gtid[row] = nps_proc__gtid(f->proc, w->tid);
	t->kind[row] = name;
	t->address[row] = w->lock.address;
	t->holder[row] = holder;
	t->count[row]++;
	t->total[row] = nps_add_sat(t->total[row], w->dur);
	if (w->dur >= t->longest[row]) {
		t->longest[row] = w->dur;
		t->longest_start[row] = nps_session__real(f->rec, w->start);
		t->waker[row] = w->lock.waker;
	}
}

/* The wait of a futex call: its record has the same start. */
static void os_call_wait(struct os_fill *f, const struct nps_event *call, struct nps_osrt_row *row)
{
	const struct nps_event *locks = f->proc->os_locks.data;
	size_t n = f->proc->os_locks.len;

	while (f->lock < n && locks[f->lock].start < call->start)
		f->lock++;
	for (size_t i = f->lock; i < n && locks[i].start == call->start; i++) {
		uint32_t holder;

		if (locks[i].tid != call->tid)
			continue;
		row->lock = nps_os_lock_kind_of(&locks[i], is_thread, f, &holder);
		row->holder = holder;
		row->waker = locks[i].lock.waker;
		os_add_wait(f, &locks[i], row->lock, holder);
		return;
	}
}

/* A system call, or a major page fault. */
static void os_add_call(struct os_fill *f, const struct nps_event *ev)
{
	const struct number *n = os_number(f, ev->kind == NPS_EV_FAULT ? FAULT_NR : ev->nr);
	struct nps_osrt_row row = { .name = n->name,
				    .gtid = nps_proc__gtid(f->proc, ev->tid),
				    .start = nps_session__real(f->rec, ev->start),
				    .end = nps_session__real(f->rec, ev->start + ev->dur),
				    .shape = n->shape,
				    .fd_kind = ev->flags & (NPS_F_SOCKET | NPS_F_NPU_NODE),
				    .path = NPS_NONE,
				    .unfinished = !!(ev->flags & NPS_F_UNFINISHED) };

	if (row.unfinished && ev->flags & NPS_F_SLOT_FAULT(2))
		row.shape = NPS_OS_PLAIN; /* its arguments are not known */
	if (ev->kind == NPS_EV_FAULT) {
		row.arg0 = ev->major_fault.address;
	} else {
		row.arg0 = ev->syscall.arg[0];
		row.arg1 = ev->syscall.arg[1];
		row.arg2 = ev->syscall.arg[2];
		row.result = ev->syscall.result;
	}
	if (row.shape == NPS_OS_OPEN) {
		const char *name = nps_strings__get(f->m->strings, n->name);

		row.path = nps_session__text(f->rec, ev->syscall.arg[!strncmp(name, "openat", 6)]);
	}
	if (n->shape == NPS_OS_FUTEX)
		os_call_wait(f, ev, &row);
	if (!f->err)
		f->err = nps_osrt_table__add(&f->m->osrt, &row);
	if (!f->err && ev->flags & NPS_F_SOCKET && n->shape == NPS_OS_BYTES && row.result > 0 &&
	    !row.unfinished)
		sockets(f, ev->tid, ev->start, n->in, row.result);
}

static void os_add_sum(struct os_fill *f, const struct nps_os_sum *sum)
{
	const struct number *n = os_number(f, sum->nr);
	struct nps_osrt_sum_row row = { .name = n->name,
					.gtid = nps_proc__gtid(f->proc, sum->tid),
					.start = nps_session__real(f->rec, sum->first),
					.end = nps_session__real(f->rec, sum->last),
					.count = sum->count,
					.errors = sum->errors,
					.total = sum->total,
					.shortest = sum->shortest,
					.longest = sum->longest,
					.bytes = sum->bytes,
					.fd_kind = sum->flags & (NPS_F_SOCKET | NPS_F_NPU_NODE) };

	if (!f->err)
		f->err = nps_osrt_sum_table__add(&f->m->osrt_sum, &row);
	if (!f->err)
		thread_row(f, sum->tid, sum->first);
	if (!f->err && sum->flags & NPS_F_SOCKET)
		sockets(f, sum->tid, sum->first, n->in, sum->bytes);
}

static void os_add_span(struct os_fill *f, const struct nps_event *ev)
{
	struct nps_osrt_span_row row = { .name = os_number(f, ev->nr)->name,
					 .gtid = nps_proc__gtid(f->proc, ev->tid),
					 .start = nps_session__real(f->rec, ev->start),
					 .end = nps_session__real(f->rec, ev->start + ev->dur),
					 .total = ev->syscall_sum.total,
					 .longest = ev->syscall_sum.longest };

	if (!f->err)
		f->err = nps_osrt_span_table__add(&f->m->osrt_span, &row);
}

static void os_add_thread(struct os_fill *f, const struct nps_os_thread *thread)
{
	struct nps_os_thread_table *t = &f->m->os_thread;
	size_t row = thread_row(f, thread->tid, f->rec->begin);

	if (f->err)
		return;
	t->minor[row] = thread->minor;
	t->major[row] = thread->major;
	t->major_ns[row] = thread->major_ns;
	t->reads[row] = thread->requests[DISK_READ];
	t->read_bytes[row] = thread->bytes[DISK_READ];
	t->read_ns[row] = thread->ns[DISK_READ];
	t->writes[row] = thread->requests[DISK_WRITE];
	t->write_bytes[row] = thread->bytes[DISK_WRITE];
	t->write_ns[row] = thread->ns[DISK_WRITE];
}

int nps_os_calls__fill(struct nps_model *model, const struct nps_session *rec, struct nps_proc *proc)
{
	struct os_fill f = { .m = model, .rec = rec, .proc = proc };

	f.numbers = calloc(UINT16_MAX + 1, sizeof(*f.numbers));
	if (!f.numbers)
		return -ENOMEM;
	/* Threads first: whether a number is one of them is what names a holder. */
	for (size_t i = 0; !f.err && i < proc->runs.len; i++)
		thread_row(&f, NPS_AT(&proc->runs, struct nps_event, i).tid,
			   NPS_AT(&proc->runs, struct nps_event, i).start);
	for (size_t i = 0; !f.err && i < proc->os_threads.len; i++)
		os_add_thread(&f, &NPS_AT(&proc->os_threads, struct nps_os_thread, i));
	for (size_t i = 0; !f.err && i < proc->os_calls.len; i++)
		thread_row(&f, NPS_AT(&proc->os_calls, struct nps_event, i).tid, rec->begin);
	for (size_t i = 0; !f.err && i < proc->os_sums.len; i++)
		os_add_sum(&f, &NPS_AT(&proc->os_sums, struct nps_os_sum, i));
	for (size_t i = 0; !f.err && i < proc->os_spans.len; i++)
		os_add_span(&f, &NPS_AT(&proc->os_spans, struct nps_event, i));
	for (size_t i = 0; !f.err && i < proc->os_calls.len; i++)
		os_add_call(&f, &NPS_AT(&proc->os_calls, struct nps_event, i));
	nps_map__free(&f.lock_of);
	nps_map__free(&f.thread_of);
	free(f.numbers);
	return f.err;
}
