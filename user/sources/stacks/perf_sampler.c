/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/stacks/perf_sampler.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"

#define RING_SMALL (512UL << 10)
#define RING_COPY (4UL << 20) /* with copies of stacks in it */
#define RINGS_MAX (256UL << 20) /* of all CPUs together, because the memory is locked */
#define RECORD_MAX 65536 /* sizes of records have 16 bits */
#define SECOND 1000000000ULL

#if defined(__x86_64__)
/* ax bx cx dx si di bp sp ip, r8..r15 of enum perf_event_x86_regs, in the kernel's order */
#define REGS_MASK 0xff01ffULL
static const uint8_t dwarf_of[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
#else
#define REGS_MASK 0x1ffffffffULL
static const uint8_t dwarf_of[] = { 0,	1,  2,	3,  4,	5,  6,	7,  8,	9,  10, 11, 12, 13, 14, 15, 16,
				    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#endif
#define N_REGS (sizeof(dwarf_of) / sizeof(*dwarf_of))

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page;
	struct bpf_link *link;
	uint64_t head; /* end of the records to drain */
};

struct nps_perf_sampler {
	struct cpu_ring *rings;
	struct pollfd *fds;
	int n_rings;
	size_t ring_bytes, page_bytes;
	uint8_t record[RECORD_MAX]; /* a record that wraps around the end of its ring */
};

static void fill_attr(struct perf_event_attr *attr, const struct nps_perf_sampler_opts *opts, size_t ring)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*attr),
		.config = opts->hz ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_DUMMY,
		.sample_period = opts->hz ? SECOND / opts->hz : 0,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.disabled = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.watermark = 1,
		.wakeup_watermark = ring / 2,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.build_id = 1,
	};
	if (opts->hz)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	if (opts->hz && opts->copy_bytes) {
		attr->sample_regs_user = REGS_MASK;
		attr->sample_stack_user = opts->copy_bytes;
	} else {
		attr->sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	}
}

static int open_event(struct perf_event_attr *attr, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	/* Before 5.12 the kernel does not read build-ids. */
	if (fd < 0 && errno == EINVAL && attr->build_id) {
		attr->build_id = 0;
		fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : (int)fd;
}

static int open_ring(struct nps_perf_sampler *s, struct cpu_ring *r, struct perf_event_attr *attr, int cpu,
		     const struct nps_perf_sampler_opts *opts)
{
	void *at;

	r->fd = open_event(attr, cpu);
	if (r->fd < 0)
		return r->fd;
	at = mmap(NULL, s->page_bytes + s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	r->page = at;
	if (opts->hz) {
		r->link = bpf_program__attach_perf_event(opts->wanted, r->fd);
		if (!r->link)
			return -errno;
		/* the link owns the descriptor from now on */
	} else if (ioctl(r->fd, PERF_EVENT_IOC_ENABLE, 0)) {
		return -errno;
	}
	return 0;
}

static size_t sampler_ring_size(const struct nps_perf_sampler_opts *opts, long cpus)
{
	size_t bytes = opts->hz && opts->copy_bytes ? RING_COPY : RING_SMALL;

	while (bytes * (size_t)cpus > RINGS_MAX && bytes > 4 * (size_t)RECORD_MAX)
		bytes /= 2;
	return bytes;
}

int nps_perf_sampler__open(const struct nps_perf_sampler_opts *opts, struct nps_perf_sampler **out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct nps_perf_sampler *s = calloc(1, sizeof(*s));
	struct perf_event_attr attr;
	int err = 0;

	if (!s)
		return -ENOMEM;
	cpus = cpus > 0 ? cpus : 1;
	s->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	s->ring_bytes = sampler_ring_size(opts, cpus);
	s->rings = calloc((size_t)cpus, sizeof(*s->rings));
	s->fds = calloc((size_t)cpus, sizeof(*s->fds));
	if (!s->rings || !s->fds)
		err = -ENOMEM;
	fill_attr(&attr, opts, s->ring_bytes);
	for (int cpu = 0; cpu < cpus && !err; cpu++) {
		struct cpu_ring *r = &s->rings[s->n_rings];

		err = open_ring(s, r, &attr, cpu, opts);
		if (r->fd == -ENODEV) { /* a CPU that is offline */
			err = 0;
			continue;
		}
		s->fds[s->n_rings++] = (struct pollfd){ .fd = r->fd, .events = POLLIN };
	}
	if (!err && !s->n_rings)
		err = -ENODEV;
	if (err) {
		nps_perf_sampler__close(s);
		return err;
	}
	*out = s;
	return 0;
}

void nps_perf_sampler__stop(struct nps_perf_sampler *s)
{
	for (int i = 0; i < s->n_rings; i++)
		if (s->rings[i].fd >= 0 && ioctl(s->rings[i].fd, PERF_EVENT_IOC_DISABLE, 0))
			nps_debug("perf event: %s", strerror(errno));
}

void nps_perf_sampler__close(struct nps_perf_sampler *s)
{
	if (!s)
		return;
	for (int i = 0; s->rings && i < s->n_rings; i++) {
		struct cpu_ring *r = &s->rings[i];

		if (r->page)
			munmap(r->page, s->page_bytes + s->ring_bytes);
		if (r->link)
			bpf_link__destroy(r->link); /* closes the descriptor */
		else if (r->fd >= 0)
			close(r->fd);
	}
	free(s->rings);
	free(s->fds);
	free(s);
}

/* --- records ----------------------------------------------------------------------------------------- */

struct record_cursor {
	const uint8_t *at;
	size_t left;
};

static const void *cursor_skip(struct record_cursor *c, size_t n)
{
	const void *at = c->at;

	if (n > c->left)
		return NULL;
	c->at += n;
	c->left -= n;
	return at;
}

static bool cursor_u64(struct record_cursor *c, uint64_t *v)
{
	const void *at = cursor_skip(c, sizeof(*v));

	if (at)
		memcpy(v, at, sizeof(*v));
	return at;
}

/* Only samples configured for it have registers and a stack, at the end. */
static void parse_copy(struct record_cursor *c, struct nps_perf_sample *s)
{
	uint64_t abi, size, used, reg[N_REGS];
	const void *at, *stack;

	if (!cursor_u64(c, &abi) || abi != PERF_SAMPLE_REGS_ABI_64 || !(at = cursor_skip(c, sizeof(reg))))
		return; /* a kernel thread, or a 32-bit program */
	memcpy(reg, at, sizeof(reg));
	if (!cursor_u64(c, &size) || !size || !(stack = cursor_skip(c, size)) || !cursor_u64(c, &used))
		return;
	for (size_t i = 0; i < N_REGS; i++)
		s->regs[dwarf_of[i]] = reg[i];
	s->n_regs = N_REGS;
	s->stack = stack;
	s->n_stack = (uint32_t)(used < size ? used : size);
}

static void parse_sample(struct record_cursor *c, const struct nps_perf_sink *sink)
{
	struct nps_perf_sample s = { 0 };
	uint64_t ids, cpu;

	if (!cursor_u64(c, &ids) || !cursor_u64(c, &s.time) || !cursor_u64(c, &cpu) ||
	    !cursor_u64(c, &s.n_chain) || s.n_chain > c->left / 8)
		return;
	s.pid = (uint32_t)ids;
	s.tid = (uint32_t)(ids >> 32);
	s.cpu = (uint32_t)cpu;
	s.chain = cursor_skip(c, s.n_chain * 8);
	parse_copy(c, &s);
	sink->sample(sink->ctx, &s);
}

struct mmap2 {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint8_t build_id_size, pad[3];
	uint8_t build_id[20];
	uint32_t prot, flags;
	char filename[];
};
#define PROT_EXEC_BIT 4

static void parse_map(const struct perf_event_header *h, uint64_t time, size_t size,
		      const struct nps_perf_sink *sink)
{
	const struct mmap2 *m = (const void *)h;
	struct nps_perf_map map;

	if (size <= sizeof(*m) || !memchr(m->filename, 0, size - sizeof(*m)) || !(m->prot & PROT_EXEC_BIT))
		return;
	map = (struct nps_perf_map){ .pid = m->pid,
				     .time = time,
				     .start = m->addr,
				     .end = m->addr + m->len,
				     .offset = m->pgoff,
				     .path = m->filename };
	if ((h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && m->build_id_size <= sizeof(m->build_id)) {
		map.build_id = m->build_id;
		map.build_id_len = m->build_id_size;
	}
	sink->map(sink->ctx, &map);
}

#define ID_BYTES 24 /* thread, time and CPU after every record except samples */

void nps_perf_sampler__parse(const void *record, size_t size, const struct nps_perf_sink *sink)
{
	const struct perf_event_header *h = record;
	struct record_cursor c = { (const uint8_t *)(h + 1), size - sizeof(*h) };
	uint64_t time = 0, a = 0, b = 0;

	if (h->type == PERF_RECORD_SAMPLE) {
		parse_sample(&c, sink);
		return;
	}
	if (size < sizeof(*h) + ID_BYTES)
		return;
	memcpy(&time, (const char *)record + size - 16, sizeof(time));
	c.left -= ID_BYTES;
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		parse_map(h, time, size - ID_BYTES, sink);
		break;
	case PERF_RECORD_FORK: /* pid, ppid, tid, ptid */
		if (cursor_u64(&c, &a) && (uint32_t)a != (uint32_t)(a >> 32))
			sink->fork(sink->ctx, (uint32_t)(a >> 32), (uint32_t)a, time);
		break;
	case PERF_RECORD_COMM:
		if ((h->misc & PERF_RECORD_MISC_COMM_EXEC) && cursor_u64(&c, &a))
			sink->exec(sink->ctx, (uint32_t)a, time);
		break;
	case PERF_RECORD_LOST: /* id, how many */
		if (cursor_u64(&c, &a) && cursor_u64(&c, &b))
			sink->lost(sink->ctx, b);
		break;
	case PERF_RECORD_THROTTLE: /* the kernel skipped samples, an unknown number of them */
		sink->lost(sink->ctx, 1);
		break;
	}
}

static void drain_ring(struct nps_perf_sampler *s, struct cpu_ring *r, const struct nps_perf_sink *sink)
{
	const uint8_t *data = (const uint8_t *)r->page + s->page_bytes;
	uint64_t head = r->head, tail = r->page->data_tail, mask = s->ring_bytes - 1;

	while (tail < head) {
		const struct perf_event_header *h = (const void *)(data + (tail & mask));
		size_t size = h->size, first = s->ring_bytes - (tail & mask);

		if (size < sizeof(*h) || size > head - tail)
			break; /* impossible, because the kernel wrote it */
		if (size > first) {
			memcpy(s->record, h, first);
			memcpy(s->record + first, data, size - first);
			h = (const void *)s->record;
		}
		nps_perf_sampler__parse(h, size, sink);
		tail += size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

void nps_perf_sampler__drain(struct nps_perf_sampler *s, const struct nps_perf_sink *sink)
{
	for (int i = 0; i < s->n_rings; i++)
		s->rings[i].head = __atomic_load_n(&s->rings[i].page->data_head, __ATOMIC_ACQUIRE);
	if (sink->begin)
		sink->begin(sink->ctx);
	for (int i = 0; i < s->n_rings; i++)
		drain_ring(s, &s->rings[i], sink);
}

void nps_perf_sampler__wait(struct nps_perf_sampler *s, int ms)
{
	if (poll(s->fds, (nfds_t)s->n_rings, ms) < 0 && errno != EINTR)
		nps_debug("poll: %s", strerror(errno));
}
