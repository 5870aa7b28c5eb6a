/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/reader.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/operators.h"
#include "attach/os_sums.h"
#include "attach/python_records.h"
#include "catalog.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/privilege.h"
#include "core/texts.h"
#include "event.h"

#define TURN_MS 20 /* longest stay of records in a ring */
#define FLUSH_NS 100000000ULL /* longest stay in our buffers */
#define LOSS_NS 1000000000ULL
#define BUFFER_BYTES (1U << 20)
#define MAX_NOTICES 4096
#define MAX_PROCESS_NOTICES (1 << 18) /* 16 MiB of them */
#define SEEN_SLOTS 4096 /* power of two */
#define WAKERS 4096 /* power of two */

struct chunk_buffer {
	struct nps_reader *reader;
	uint32_t cpu, used;
	char *data;
};

struct nps_reader {
	struct nps_bpf_loader *k;
	struct nps_session_writer *s;
	const struct nps_operators *operators;
	uint64_t operator_ids[NPS_OPERATORS_MAX]; /* ids of their names in the session, 0: not written yet */
	struct ring_buffer *rb;
	struct perf_buffer *pb; /* on old kernels instead */
	int epoll_fd;
	struct chunk_buffer *cpus;
	struct chunk_buffer strings;
	struct nps_python_records *python; /* NULL: none are requested */
	int n_cpus;
	uint32_t own_pid;
	pthread_t thread;
	bool running;
	atomic_bool stop;
	uint64_t hits[NPS_PROBE_MAX], operator_hits[NPS_OPERATORS_MAX];
	atomic_ullong kinds[NPS_KIND_END], bytes, summed, faults, sums_failed;
	atomic_ullong cut; /* texts that were truncated */
	uint64_t seen[SEEN_SLOTS];
	uint32_t wakers[WAKERS]; /* tids whose names were read: entries are overwritten, too */
	int notice_fd;
	pthread_mutex_t lock;
	struct nps_notice *notices; /* pending ones are [first_notice, n_notices) */
	size_t first_notice, n_notices, notice_room;
	int overflow;
	atomic_ullong processes_lost;
};

static bool notice_kind_is_process(enum nps_notice_what what)
{
	return what == NPS_NOTICE_FORK || what == NPS_NOTICE_EXEC || what == NPS_NOTICE_EXIT;
}

/*
 * Makes room for one more notice; the caller holds the lock. Forks and exits are not reported again, so
 * their limit is high.
 */
static bool notice_reserve(struct nps_reader *r, enum nps_notice_what what)
{
	size_t waiting = r->n_notices - r->first_notice, room = r->notice_room ? 2 * r->notice_room : 256;
	struct nps_notice *v;

	if (waiting >= (notice_kind_is_process(what) ? MAX_PROCESS_NOTICES : MAX_NOTICES))
		return false;
	if (r->first_notice > r->notice_room / 2) {
		memmove(r->notices, r->notices + r->first_notice, waiting * sizeof(*v));
		r->first_notice = 0;
		r->n_notices = waiting;
	}
	if (r->n_notices < r->notice_room)
		return true;
	v = realloc(r->notices, room * sizeof(*v));
	if (!v)
		return false;
	r->notices = v;
	r->notice_room = room;
	return true;
}

static void notice_fill(struct nps_notice *n, enum nps_notice_what what, const struct nps_event *e,
			uint64_t arg)
{
	*n = (struct nps_notice){ .what = what, .pid = e->pid, .arg = arg, .time = e->start };
	if (!notice_kind_is_process(what))
		return;
	n->cpu_ns = what == NPS_NOTICE_EXIT ? e->proc.cpu_ns : 0;
	n->started = e->born;
	n->parent = e->parent <= INT32_MAX ? e->parent : 0;
	memcpy(n->comm, e->proc.comm, sizeof(n->comm));
	n->comm[sizeof(n->comm) - 1] = '\0';
}

static void wake_control(struct nps_reader *r)
{
	uint64_t one = 1;

	if (write(r->notice_fd, &one, sizeof(one)) < 0)
		nps_debug("eventfd: %s", strerror(errno));
}

static void notify(struct nps_reader *r, enum nps_notice_what what, const struct nps_event *e, uint64_t arg)
{
	bool room;

	pthread_mutex_lock(&r->lock);
	room = notice_reserve(r, what);
	if (room)
		notice_fill(&r->notices[r->n_notices++], what, e, arg);
	else
		r->overflow = 1;
	pthread_mutex_unlock(&r->lock);
	if (!room && notice_kind_is_process(what))
		atomic_fetch_add_explicit(&r->processes_lost, 1, memory_order_relaxed);
	wake_control(r);
}

int nps_reader__notices(struct nps_reader *r, struct nps_notice *v, int max, int *overflow)
{
	bool more;
	uint64_t n;
	int n_read;

	if (read(r->notice_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		nps_debug("eventfd: %s", strerror(errno));
	pthread_mutex_lock(&r->lock);
	n = r->n_notices - r->first_notice;
	n_read = n < (uint64_t)max ? (int)n : max;
	if (n_read)
		memcpy(v, r->notices + r->first_notice, n_read * sizeof(*v));
	r->first_notice += n_read;
	more = r->first_notice < r->n_notices;
	if (!more)
		r->first_notice = r->n_notices = 0;
	*overflow = r->overflow;
	r->overflow = 0;
	pthread_mutex_unlock(&r->lock);
	if (more)
		wake_control(r);
	return n_read;
}

/* A set whose entries are overwritten: at worst something is reported twice. */
static bool is_new(struct nps_reader *r, uint32_t pid, uint64_t address)
{
	uint64_t key = address ^ (uint64_t)pid << 40;
	uint64_t *slot = &r->seen[(key * 0x9e3779b97f4a7c15ULL) >> 52 & (SEEN_SLOTS - 1)];

	if (*slot == key)
		return false;
	*slot = key;
	return true;
}

static void reader_note_call(struct nps_reader *r, const struct nps_event *e)
{
	switch (e->probe) {
	case NPS_PROBE_SET_DEVICE:
	case NPS_PROBE_RT_SET_DEVICE:
		notify(r, NPS_NOTICE_DEVICE, e, e->call.slot[0]);
		break;
	case NPS_PROBE_RT_LAUNCH:
	case NPS_PROBE_RT_LAUNCH_FLAG:
	case NPS_PROBE_RT_LAUNCH_FLAG_V2:
		if (is_new(r, e->pid, e->call.slot[0]))
			notify(r, NPS_NOTICE_HOST_FUNCTION, e, e->call.slot[0]);
		break;
	}
}

/* The row of the catalogue that a record of --record-shapes comes from; one call can write several. */
static unsigned tensor_probe(const struct nps_event *e)
{
	switch (e->tensor_head.what) {
	case NPS_TENSOR_TENSOR:
		return NPS_PROBE_CREATE_TENSOR;
	case NPS_TENSOR_LIST:
		return NPS_PROBE_CREATE_TENSOR_LIST;
	case NPS_TENSOR_OPERANDS:
		return NPS_PROBE_NN_OPERANDS;
	default:
		return NPS_PROBE_NN_PHASE1_END;
	}
}

static void notify_process(struct nps_reader *r, const struct nps_event *e)
{
	if (e->what == NPS_PROC_FORK)
		notify(r, NPS_NOTICE_FORK, e, e->proc.child);
	else if (e->what == NPS_PROC_EXEC)
		notify(r, NPS_NOTICE_EXEC, e, 0);
	else
		notify(r, NPS_NOTICE_EXIT, e, (uint64_t)e->proc.exit_code);
}

static void reader_note(struct nps_reader *r, const struct nps_event *e)
{
	switch (e->kind) {
	case NPS_EV_API:
	case NPS_EV_MARK:
		if (e->probe < NPS_PROBE_MAX)
			r->hits[e->probe]++;
		reader_note_call(r, e);
		break;
	case NPS_EV_SQE:
		r->hits[NPS_PROBE_SQ_TASK_SEND]++;
		if (is_new(r, e->pid, e->sqe.device)) /* no function has such an address */
			notify(r, NPS_NOTICE_SUBMITS, e, e->sqe.device);
		break;
	case NPS_EV_CQE:
		r->hits[NPS_PROBE_CQ_REPORT_RECV]++;
		break;
	case NPS_EV_MEMORY:
		r->hits[NPS_PROBE_TORCH_MEMORY]++;
		break;
	case NPS_EV_TENSOR:
		r->hits[tensor_probe(e)]++;
		break;
	case NPS_EV_SYSCALL:
		if ((e->nr == NPS_NR_MMAP && (e->syscall.arg[2] & NPS_PROT_EXEC)) ||
		    e->nr == NPS_NR_MEMFD_CREATE)
			notify(r, NPS_NOTICE_CODE_MAPPED, e, 0);
		break;
	case NPS_EV_PROC:
		notify_process(r, e);
		break;
	}
}

static const struct {
	struct nps_slot slot[4];
} catalog[NPS_PROBE_MAX] = {
#define SLOTS(id, symbol, lib, layer, call, flags, s0, s1, s2, s3)                                           \
	[NPS_PROBE_##id] = { { { s0 }, { s1 }, { s2 }, { s3 } } },
	NPS_CATALOG(SLOTS)
#undef SLOTS
};

static void buffer_put(struct chunk_buffer *b, struct nps_stream *st, uint16_t type, const void *data,
		       uint32_t size);

static uint64_t write_text(struct nps_reader *r, const struct nps_event *e, const char *text, size_t len)
{
	struct nps_string parts[NPS_TEXT_PARTS];
	unsigned n = nps_text__split(text, len, e->pid, e->start, parts);

	for (unsigned i = 0; i < n; i++)
		buffer_put(&r->strings, &r->s->strings, NPS_CHUNK_STRINGS, &parts[i], sizeof(parts[i]));
	if (parts[n - 1].flags & NPS_STR_CUT)
		atomic_fetch_add_explicit(&r->cut, 1, memory_order_relaxed);
	return parts[0].id;
}

/* Writes a text of the job that BPF programs could not read; 0 if it cannot be read here either. */
static uint64_t reader_read_text(struct nps_reader *r, const struct nps_event *e, uint64_t address)
{
	char text[NPS_TEXT_MAX + 2];
	ssize_t n = nps_text__read((pid_t)e->pid, address, text);

	return n < 0 ? 0 : write_text(r, e, text, (size_t)n);
}

/* The number of an operator, where E has one; NULL elsewhere. */
static __u64 *operator_number(struct nps_event *e)
{
	if (e->kind == NPS_EV_MARK &&
	    (e->probe == NPS_PROBE_NN_EXPORT || e->probe == NPS_PROBE_NN_PHASE1_LEFT ||
	     e->probe == NPS_PROBE_NN_PHASE2_LEFT))
		return &e->call.slot[0];
	if (e->kind == NPS_EV_API && e->probe == NPS_PROBE_TORCH_OP)
		return &e->call.slot[0];
	if (e->kind == NPS_EV_TENSOR && e->tensor_head.what == NPS_TENSOR_OPERANDS)
		return &e->handle;
	return NULL;
}

static void name_operator(struct nps_reader *r, struct nps_event *e)
{
	__u64 *slot = operator_number(e), number = slot ? *slot : 0;
	const char *name = slot ? nps_operators__name(r->operators, number) : NULL;

	if (!slot)
		return;
	if (name)
		r->operator_hits[number]++;
	if (name && !r->operator_ids[number])
		r->operator_ids[number] = write_text(r, e, name, strlen(name));
	*slot = name ? r->operator_ids[number] : 0;
}

/* BPF programs send names of threads that get a CPU; the name of one that only wakes others is read here. */
static void name_waker(struct nps_reader *r, const struct nps_event *e)
{
	struct nps_string s = { .kind = NPS_STR_COMM, .pid = e->pid, .id = e->waker, .time = e->start };
	uint32_t *known = &r->wakers[e->waker & (WAKERS - 1)];
	char path[64];
	ssize_t n;
	int fd;

	if (!e->waker || *known == e->waker)
		return;
	*known = e->waker;
	snprintf(path, sizeof(path), "/proc/%u/comm", e->waker);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* it has exited */
	n = read(fd, s.text, 16);
	close(fd);
	if (n <= 1)
		return;
	s.len = n - 1; /* without the newline */
	s.text[s.len] = '\0';
	buffer_put(&r->strings, &r->s->strings, NPS_CHUNK_STRINGS, &s, sizeof(s));
}

/* TEXT, slot SLOT of E, is the address of a text that the kernel could not read. It becomes an id, or 0. */
static void read_missing_text(struct nps_reader *r, struct nps_event *e, int slot, __u64 *text)
{
	*text = *text ? reader_read_text(r, e, *text) : 0;
	if (*text)
		e->flags &= ~NPS_F_SLOT_FAULT(slot);
}

static void read_missing_texts(struct nps_reader *r, struct nps_event *e)
{
	if ((e->kind != NPS_EV_API && e->kind != NPS_EV_MARK) || !e->flags || e->probe >= NPS_PROBE_MAX)
		return;
	for (int i = 0; i < 4; i++) {
		uint8_t how = catalog[e->probe].slot[i].how;

		if (!(e->flags & NPS_F_SLOT_FAULT(i)) ||
		    (how != NPS_SLOT_STR && how != NPS_SLOT_TEXT_IN && how != NPS_SLOT_TEXT_PTR &&
		     how != NPS_SLOT_TEXT_SIZED))
			continue;
		read_missing_text(r, e, i, &e->call.slot[i]);
	}
}

static void buffer_flush(struct chunk_buffer *b, struct nps_stream *st, uint16_t type)
{
	if (b->used)
		nps_stream__append(st, type, b->cpu, b->data, b->used);
	atomic_fetch_add_explicit(&b->reader->bytes, b->used, memory_order_relaxed);
	b->used = 0;
}

static void buffer_put(struct chunk_buffer *b, struct nps_stream *st, uint16_t type, const void *data,
		       uint32_t size)
{
	if (b->used + size > BUFFER_BYTES) {
		/* Texts first, so that an event on disk never refers to a text that is not. */
		if (type == NPS_CHUNK_EVENTS) {
			buffer_flush(&b->reader->strings, &b->reader->s->strings, NPS_CHUNK_STRINGS);
			nps_python_records__flush(b->reader->python);
		}
		buffer_flush(b, st, type);
	}
	memcpy(b->data + b->used, data, size);
	b->used += size;
}

static void count_faults(struct nps_reader *r, const struct nps_event *e)
{
	if (e->kind == NPS_EV_FAULT && e->what == NPS_FAULT_SUM)
		atomic_fetch_add_explicit(&r->faults, e->fault_sum.minor + e->fault_sum.major,
					  memory_order_relaxed);
}

/* The parts of a text come together. */
static bool is_text(const void *data, size_t size)
{
	return size && size % sizeof(struct nps_string) == 0 &&
	       size <= NPS_TEXT_PARTS * sizeof(struct nps_string) && *(const uint8_t *)data >= NPS_STR_TEXT;
}

static int reader_add_event(void *ctx, void *data, size_t size)
{
	struct chunk_buffer *b = ctx;
	struct nps_reader *r = b->reader;
	const struct nps_event *e = data;
	struct nps_event copy;
	int kind;

	if (r->python && nps_python_records__is(data, size)) {
		nps_python_records__add(r->python, data, size);
		return 0;
	}
	if (is_text(data, size)) {
		for (size_t at = 0; at < size; at += sizeof(struct nps_string))
			buffer_put(&r->strings, &r->s->strings, NPS_CHUNK_STRINGS, (const char *)data + at,
				   sizeof(struct nps_string));
		kind = NPS_KIND_STRING;
	} else if (size == sizeof(*e) && e->kind < NPS_EV_KIND_MAX) {
		if (e->pid == r->own_pid)
			return 0; /* ours, if our parent is watched */
		reader_note(r, e);
		copy = *e;
		read_missing_texts(r, &copy);
		name_operator(r, &copy);
		if (e->kind == NPS_EV_SCHED)
			name_waker(r, e);
		count_faults(r, &copy);
		buffer_put(b, &r->s->events, NPS_CHUNK_EVENTS, &copy, size);
		kind = e->kind;
	} else {
		return 0;
	}
	atomic_fetch_add_explicit(&r->kinds[kind], 1, memory_order_relaxed);
	return 0;
}

/* Sums have no CPU and no order: they are stored with the records of the first CPU. */
static void keep_sum(void *ctx, const struct nps_event *e)
{
	struct nps_reader *r = ctx;

	if (e->pid == r->own_pid)
		return;
	buffer_put(&r->cpus[0], &r->s->events, NPS_CHUNK_EVENTS, e, sizeof(*e));
	atomic_fetch_add_explicit(&r->kinds[e->kind], 1, memory_order_relaxed);
	count_faults(r, e);
	if (e->kind == NPS_EV_SYSCALL_SUM)
		atomic_fetch_add_explicit(&r->summed, e->syscall_sum.count, memory_order_relaxed);
}

static void drain_sums(struct nps_reader *r, int (*drain)(struct nps_bpf_loader *, nps_os_sum_fn, void *))
{
	int err = drain(r->k, keep_sum, r);

	if (!err)
		return;
	nps_debug("sums of system calls: %s", strerror(-err));
	atomic_fetch_add_explicit(&r->sums_failed, 1, memory_order_relaxed);
}

static void flush_all(struct nps_reader *r)
{
	buffer_flush(&r->strings, &r->s->strings, NPS_CHUNK_STRINGS); /* texts first, as above */
	nps_python_records__flush(r->python);
	for (int i = 0; i < r->n_cpus; i++)
		buffer_flush(&r->cpus[i], &r->s->events, NPS_CHUNK_EVENTS);
}

static void write_loss(struct nps_reader *r)
{
	uint64_t counters[NPS_COUNTER_MAX];
	struct nps_loss loss[NPS_KIND_END];
	int n = 0;

	if (nps_bpf_loader__counters(r->k, counters))
		return;
	memset(loss, 0, sizeof(loss));
	for (int kind = 1; kind < NPS_KIND_END; kind++) {
		if (!counters[NPS_COUNTER_LOST + kind])
			continue;
		loss[n].kind = kind == NPS_KIND_STRING ? NPS_STR_TEXT : kind;
		loss[n].cpu = UINT32_MAX;
		loss[n++].lost = counters[NPS_COUNTER_LOST + kind];
	}
	if (n)
		nps_stream__append(&r->s->events, NPS_CHUNK_LOSS, 0, loss, n * sizeof(*loss));
}

/*
 * Records are lost when this thread gets no CPU. It sleeps most of the time, so a high priority does no harm.
 */
static void request_priority(void)
{
	struct sched_param prio = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_RR, &prio))
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -10);
}

struct perf_sample {
	struct perf_event_header header;
	uint32_t size;
	char data[];
};

/* The kernel pads records, with 4 bytes in front, to 8 bytes: use the records' own size. */
static enum bpf_perf_event_ret on_perf_sample(void *ctx, int cpu, struct perf_event_header *header)
{
	struct nps_reader *r = ctx;
	const struct perf_sample *s = (const void *)header;
	union {
		struct nps_event event;
		struct nps_string text;
	} copy;
	size_t size;

	/* BPF programs have counted records that found no room. */
	if (header->type != PERF_RECORD_SAMPLE || cpu < 0 || cpu >= r->n_cpus)
		return LIBBPF_PERF_EVENT_CONT;
	size = s->size >= sizeof(copy.text) ? sizeof(copy.text) : sizeof(copy.event);
	if (s->size >= size) {
		memcpy(&copy, s->data, size);
		reader_add_event(&r->cpus[cpu], &copy, size);
	}
	return LIBBPF_PERF_EVENT_CONT;
}

static void consume(struct nps_reader *r)
{
	if (r->pb)
		perf_buffer__consume(r->pb);
	else
		ring_buffer__consume(r->rb);
}

/*
 * Edge-triggered, so that a ring that only holds records does not make
 * this loop spin, but one that wakes the reader does.
 */
static void wait_for_turn(struct nps_reader *r)
{
	struct epoll_event ev[8];

	epoll_wait(r->epoll_fd, ev, 8, TURN_MS);
}

static void *read_rings(void *arg)
{
	struct nps_reader *r = arg;
	uint64_t flushed = 0, loss = 0;

	prctl(PR_SET_NAME, "nps_reader");
	request_priority();
	nps_privilege__keep(NPS_PRIVILEGE_RECORDS, false);
	while (!atomic_load(&r->stop)) {
		uint64_t now;

		wait_for_turn(r);
		consume(r);
		now = nps_now(CLOCK_MONOTONIC);
		if (now - flushed >= FLUSH_NS) {
			flush_all(r);
			flushed = now;
		}
		if (now - loss >= LOSS_NS) {
			drain_sums(r, nps_os_sums__drain);
			write_loss(r);
			loss = now;
		}
	}
	consume(r);
	drain_sums(r, nps_os_sums__finish);
	flush_all(r);
	write_loss(r);
	return NULL;
}

static int buffer_init(struct nps_reader *r, struct chunk_buffer *b, uint32_t cpu)
{
	b->reader = r;
	b->cpu = cpu;
	b->data = malloc(BUFFER_BYTES);
	return b->data ? 0 : -ENOMEM;
}

/* Without wake-ups: the reader polls in turns. */
static int add_perf_buffers(struct nps_reader *r, int fd)
{
	size_t bytes = nps_bpf_loader__ring_bytes(r->k), pages = bytes / (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_BPF_OUTPUT,
					.sample_type = PERF_SAMPLE_RAW,
					.sample_period = 1,
					.watermark = 1,
					.wakeup_watermark = (uint32_t)(bytes / 2) };

	for (int i = 0; i < r->n_cpus; i++) {
		int err = buffer_init(r, &r->cpus[i], i);

		if (err)
			return err;
	}
	r->pb = perf_buffer__new_raw(fd, pages, &attr, on_perf_sample, r, NULL);
	return r->pb ? 0 : -errno;
}

static int add_rings(struct nps_reader *r)
{
	int records = nps_bpf_loader__records_fd(r->k);

	if (records >= 0)
		return add_perf_buffers(r, records);
	for (int i = 0; i < r->n_cpus; i++) {
		int fd = nps_bpf_loader__ring_fd(r->k, i), err = buffer_init(r, &r->cpus[i], i);
		struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

		if (err)
			return err;
		if (!r->rb) {
			r->rb = ring_buffer__new(fd, reader_add_event, &r->cpus[i], NULL);
			err = r->rb ? 0 : -errno;
		} else {
			err = ring_buffer__add(r->rb, fd, reader_add_event, &r->cpus[i]);
		}
		if (!err && epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
			err = -errno;
		if (err)
			return err;
	}
	return 0;
}

int nps_reader__start(struct nps_bpf_loader *k, struct nps_session_writer *s,
		      const struct nps_operators *operators, struct nps_reader **out)
{
	struct nps_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->k = k;
	r->s = s;
	r->operators = operators;
	r->own_pid = getpid();
	r->n_cpus = nps_bpf_loader__cpus(k);
	pthread_mutex_init(&r->lock, NULL);
	r->notice_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->cpus = calloc(r->n_cpus, sizeof(*r->cpus));
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = r->notice_fd < 0 || r->epoll_fd < 0 ? -errno
	      : !r->cpus			  ? -ENOMEM
						  : buffer_init(r, &r->strings, 0);
	if (!err && s->python.fd >= 0) {
		r->python = nps_python_records__new(&s->python, NPS_PYTHON_BYTES_MAX);
		err = r->python ? 0 : -ENOMEM;
	}
	if (err)
		goto fail;
	err = add_rings(r);
	if (err)
		goto fail;
	err = -pthread_create(&r->thread, NULL, read_rings, r);
	if (err)
		goto fail;
	r->running = true;
	*out = r;
	return 0;
fail:
	nps_reader__free(r);
	return err;
}

void nps_reader__stop(struct nps_reader *r)
{
	if (!r || !r->running)
		return;
	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
	r->running = false;
}

void nps_reader__append(struct nps_reader *r, const struct nps_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct nps_event e = events[i];

		if (e.pid == r->own_pid)
			continue; /* ours, if our parent is watched */
		if (e.kind == NPS_EV_SCHED)
			name_waker(r, &e);
		read_missing_texts(r, &e);
		name_operator(r, &e);
		/* the path of a call that has not returned */
		for (int slot = 0; slot < 2 && e.kind == NPS_EV_SYSCALL; slot++)
			if (e.flags & NPS_F_SLOT_FAULT(slot))
				read_missing_text(r, &e, slot, &e.syscall.arg[slot]);
		count_faults(r, &e);
		buffer_put(&r->cpus[0], &r->s->events, NPS_CHUNK_EVENTS, &e, sizeof(e));
		atomic_fetch_add_explicit(&r->kinds[e.kind], 1, memory_order_relaxed);
	}
	flush_all(r);
}

void nps_reader__free(struct nps_reader *r)
{
	if (!r)
		return;
	nps_reader__stop(r);
	ring_buffer__free(r->rb);
	perf_buffer__free(r->pb);
	for (int i = 0; r->cpus && i < r->n_cpus; i++)
		free(r->cpus[i].data);
	free(r->cpus);
	free(r->notices);
	free(r->strings.data);
	nps_python_records__free(r->python);
	if (r->notice_fd >= 0)
		close(r->notice_fd);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int nps_reader__notice_fd(const struct nps_reader *r)
{
	return r->notice_fd;
}

void nps_reader__counts(const struct nps_reader *r, struct nps_reader_counts *c)
{
	for (int i = 0; i < NPS_KIND_END; i++)
		c->kinds[i] = atomic_load_explicit(&r->kinds[i], memory_order_relaxed);
	c->summed = atomic_load_explicit(&r->summed, memory_order_relaxed);
	c->faults = atomic_load_explicit(&r->faults, memory_order_relaxed);
	c->sums_failed = atomic_load_explicit(&r->sums_failed, memory_order_relaxed);
	c->processes_lost = atomic_load_explicit(&r->processes_lost, memory_order_relaxed);
	c->texts_cut = atomic_load_explicit(&r->cut, memory_order_relaxed);
	c->python_left_out = nps_python_records__left_out(r->python);
	c->bytes = atomic_load_explicit(&r->bytes, memory_order_relaxed);
}

uint64_t nps_reader__hits(const struct nps_reader *r, unsigned int probe, unsigned int operator)
{
	if (operator)
		return operator<NPS_OPERATORS_MAX ? r->operator_hits[operator] : 0;
	return probe < NPS_PROBE_MAX ? r->hits[probe] : 0;
}
