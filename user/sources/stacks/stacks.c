/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/stacks/stacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/task_iter.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/privilege.h"
#include "core/proc_maps.h"
#include "core/session_end.h"
#include "core/work_budget.h"
#include "event.h"
#include "sample.skel.h"
#include "sources/stacks/kallsyms.h"
#include "sources/stacks/perf_sampler.h"
#include "sources/stacks/sample_programs.h"
#include "sources/stacks/sample_returns.h"
#include "stack.h"

#define TURN_MS 50
#define BUFFER_BYTES (1U << 20)
#define COPY_AUTO (16U << 10) /* bytes of the user stack in a sample */
#define COPY_DWARF (32U << 10)
#define FILE_COPIES (1ULL << 30) /* size of stacks.nps from which on records have no copy of the stack */
#define FILE_MAX (2ULL << 30) /* and from which on nothing is written */
#define MAX_KERNEL 65536 /* addresses to name */
#define MAX_WAITING 16384 /* mappings and forks of processes that may prove to be the job's */
#define WAITING_TURNS 3
#define MOST_PIDS (1U << 22) /* the kernel's own limit */

struct stack_buffer {
	char *data;
	uint32_t used;
	uint16_t type;
};

struct stack_waiting {
	struct nps_map_record *rec;
	int turns;
};

struct nps_stacks {
	struct nps_stacks_opts opts;
	struct nps_bpf_loader *k;
	struct nps_session_writer *session;
	struct nps_stream stream;
	struct sample_bpf *bpf;
	struct nps_perf_sampler *sampler;
	struct ring_buffer *messages; /* from BPF programs */
	struct nps_sample_returns_queue *returns;
	struct stack_buffer stacks, maps;
	pthread_mutex_t lock; /* protects the file and buffers, because the control thread adds processes */
	uint64_t *ours; /* a bit per pid */
	struct stack_waiting waiting[MAX_WAITING];
	size_t n_waiting;
	uint64_t *kernel; /* addresses found: a hash table, 0 is free */
	size_t n_kernel;
	pthread_t thread;
	bool running;
	atomic_bool stop;
	atomic_ullong written, lost, uncopied;
};

/* --- the file ---------------------------------------------------------------------------------------- */

static void stacks_flush(struct nps_stacks *st, struct stack_buffer *b)
{
	int none = 0, err;

	if (!b->used)
		return;
	err = nps_stream__append(&st->stream, b->type, 0, b->data, b->used);
	nps_session_writer__add_bytes(st->session, err ? 0 : b->used);
	b->used = 0;
	/* the capture ends at the first error of any of its files */
	if (err)
		atomic_compare_exchange_strong(&st->session->clocks.error, &none, err);
}

/* Reserves a zeroed record; NULL: the file is full. */
static void *reserve(struct nps_stacks *st, struct stack_buffer *b, uint32_t size)
{
	void *at;

	if (st->stream.size + st->stacks.used + size > FILE_MAX || atomic_load(&st->stream.error))
		return NULL;
	if (b->used + size > BUFFER_BYTES)
		stacks_flush(st, b);
	at = b->data + b->used;
	memset(at, 0, size);
	b->used += size;
	return at;
}

static uint32_t padded(size_t n)
{
	return (uint32_t)((n + 7) & ~(size_t)7);
}

/* --- kernel addresses -------------------------------------------------------------------------------- */

static void note_kernel(struct nps_stacks *st, const uint64_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t at = (v[i] * 0x9e3779b97f4a7c15ULL) >> 47; /* 2^17 slots, at most half of them used */

		while (st->kernel[at] && st->kernel[at] != v[i])
			at = (at + 1) & (2 * MAX_KERNEL - 1);
		if (st->kernel[at] || st->n_kernel == MAX_KERNEL || !v[i])
			continue;
		st->kernel[at] = v[i];
		st->n_kernel++;
	}
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void write_kernel_symbols(struct nps_stacks *st)
{
	struct nps_ksym *syms = calloc(st->n_kernel + 1, sizeof(*syms));
	FILE *f = fopen("/proc/kallsyms", "re");
	const size_t most = BUFFER_BYTES / sizeof(*syms);
	size_t n = 0;
	int err = -ENOMEM;

	for (size_t i = 0; syms && i < 2 * MAX_KERNEL; i++)
		if (st->kernel[i])
			syms[n++].address = st->kernel[i];
	if (syms) {
		qsort(syms, n, sizeof(*syms), by_address);
		err = f ? nps_kallsyms__name(f, syms, n) : -errno;
	}
	for (size_t i = 0; !err && i < n; i += most)
		err = nps_stream__append(&st->stream, NPS_CHUNK_KSYMS, 0, syms + i,
					 (n - i < most ? n - i : most) * sizeof(*syms));
	if (err)
		nps_warn("cannot name the kernel's functions: %s: stacks show [kernel] for them",
			 strerror(-err));
	if (f)
		fclose(f);
	free(syms);
}

/* --- stacks ------------------------------------------------------------------------------------------ */

/* Parts of a record; head.size is not set yet. */
struct sample_parts {
	struct nps_stack head;
	const void *kernel, *user, *regs, *bytes, *returns;
	struct nps_stack_python python; /* stack 0: none */
};

static uint8_t *stacks_put(uint8_t *at, const void *v, size_t n)
{
	if (n)
		memcpy(at, v, n);
	return at + n;
}

static void write_stack(struct nps_stacks *st, struct sample_parts *p)
{
	struct nps_stack *h = &p->head;
	uint8_t *at;

	if (h->n_regs && st->stream.size > FILE_COPIES) {
		h->n_regs = h->n_bytes = 0;
		atomic_fetch_add(&st->uncopied, 1);
	}
	h->size = padded(sizeof(*h) + 8UL * (h->n_kernel + h->n_user + h->n_regs) + h->n_bytes) +
		  h->n_returns * (uint32_t)sizeof(struct nps_return);
	if (p->python.stack) {
		h->flags |= NPS_STACK_F_PYTHON;
		h->size += sizeof(p->python);
	}
	at = reserve(st, &st->stacks, h->size);
	if (!at) {
		atomic_fetch_add(&st->lost, 1);
		return;
	}
	at = stacks_put(at, h, sizeof(*h));
	at = stacks_put(at, p->kernel, 8UL * h->n_kernel);
	at = stacks_put(at, p->user, 8UL * h->n_user);
	at = stacks_put(at, p->regs, 8UL * h->n_regs);
	at = stacks_put(at, p->bytes, h->n_bytes);
	at = stacks_put(at + (padded(h->n_bytes) - h->n_bytes), p->returns,
			h->n_returns * sizeof(struct nps_return));
	if (p->python.stack)
		stacks_put(at, &p->python, sizeof(p->python));
	note_kernel(st, p->kernel, h->n_kernel);
	atomic_fetch_add(&st->written, 1);
}

/* In a chain, a mark precedes each part. */
static void split_chain(const struct nps_perf_sample *s, struct sample_parts *p)
{
	uint64_t i = 0;

	while (i < s->n_chain) {
		uint64_t mark = s->chain[i], begin;

		if (mark < PERF_CONTEXT_MAX) { /* no mark: user or kernel is unknown */
			i++;
			continue;
		}
		for (begin = ++i; i < s->n_chain && s->chain[i] < PERF_CONTEXT_MAX && i - begin < UINT16_MAX;)
			i++;
		if (mark == PERF_CONTEXT_KERNEL) {
			p->kernel = s->chain + begin;
			p->head.n_kernel = (uint16_t)(i - begin);
		} else if (mark == PERF_CONTEXT_USER) {
			p->user = s->chain + begin;
			p->head.n_user = (uint16_t)(i - begin);
		}
	}
}

static uint32_t copy_bytes(const struct nps_stacks *st)
{
	return st->opts.unwind == NPS_UNWIND_FP	     ? 0
	       : st->opts.unwind == NPS_UNWIND_DWARF ? COPY_DWARF
						     : COPY_AUTO;
}

/* Adds what the sample lacks: the addresses of probed returns, the Python stack. */
static void mend_sample(struct nps_stacks *st, const struct nps_perf_sample *s, struct sample_parts *p)
{
	const uint64_t *ip = p->head.n_user ? p->user : NULL;
	const struct nps_sample_returns *r =
		nps_sample_returns__next(st->returns, s->cpu, s->tid, s->time, ip ? *ip : 0);

	if (!r)
		return;
	if (r->pending.n_user) {
		p->user = r->user;
		p->head.n_user = (uint16_t)r->pending.n_user;
	}
	p->python = r->python;
	p->returns = r->pending.returns;
	p->head.n_returns = (uint16_t)r->pending.n;
}

static void on_sample(void *ctx, const struct nps_perf_sample *s)
{
	struct nps_stacks *st = ctx;
	struct sample_parts p = {
		.head = { .kind = NPS_STACK_ONCPU,
			  .flags = s->n_stack && s->n_stack >= copy_bytes(st) ? NPS_STACK_F_CUT : 0,
			  .pid = s->pid,
			  .tid = s->tid,
			  .cpu = s->cpu,
			  .n_regs = (uint16_t)s->n_regs,
			  .n_bytes = s->n_stack,
			  .time = s->time,
			  .weight = 1000000000ULL / st->opts.hz },
		.regs = s->regs,
		.bytes = s->stack
	};

	split_chain(s, &p);
	mend_sample(st, s, &p);
	write_stack(st, &p);
}

static uint16_t frames(int32_t bytes, uint32_t most)
{
	return bytes <= 0 ? 0 : (uint32_t)bytes / 8 > most ? most : (uint32_t)bytes / 8;
}

static void on_sleep(struct nps_stacks *st, const struct nps_sleep *s, size_t size)
{
	struct sample_parts p;

	if (size < offsetof(struct nps_sleep, stack) || s->n_regs > NPS_STACK_REGS ||
	    s->pending.n > NPS_STACK_RETURNS || s->n_bytes > size - offsetof(struct nps_sleep, stack))
		return;
	p = (struct sample_parts){ .head = { .kind = NPS_STACK_OFFCPU,
					     .flags = (uint8_t)s->flags,
					     .state = (uint16_t)s->state,
					     .pid = s->pid,
					     .tid = s->tid,
					     .cpu = s->cpu,
					     .n_kernel = frames(s->kernel_bytes, NPS_STACK_KERNEL),
					     .n_user = frames(s->user_bytes, NPS_STACK_USER),
					     .n_regs = (uint16_t)s->n_regs,
					     .n_returns = (uint16_t)s->pending.n,
					     .n_bytes = s->n_bytes,
					     .time = s->since,
					     .weight = s->until - s->since },
				   .kernel = s->kernel,
				   .user = s->user,
				   .regs = s->regs,
				   .bytes = s->stack,
				   .returns = s->pending.returns,
				   .python = s->python };
	write_stack(st, &p);
}

static int on_message(void *ctx, void *data, size_t size)
{
	struct nps_stacks *st = ctx;
	uint32_t message = 0;

	if (size >= sizeof(message))
		memcpy(&message, data, sizeof(message));
	if (message == NPS_MSG_SLEEP)
		on_sleep(st, data, size);
	/* The stack itself is complete without it. */
	else if (message == NPS_MSG_RETURNS && nps_sample_returns__add(st->returns, data, size))
		atomic_fetch_add(&st->lost, 1);
	return 0;
}

static void read_messages(void *ctx)
{
	struct nps_stacks *st = ctx;

	ring_buffer__consume(st->messages);
}

/* --- mappings ---------------------------------------------------------------------------------------- */

static bool is_ours(const struct nps_stacks *st, uint32_t pid)
{
	return pid < MOST_PIDS && st->ours[pid / 64] >> pid % 64 & 1;
}

static void make_ours(struct nps_stacks *st, uint32_t pid)
{
	if (pid < MOST_PIDS)
		st->ours[pid / 64] |= 1ULL << pid % 64;
}

/* Writes a record of a process of the job; children then belong to the job, too. */
static void write_map(struct nps_stacks *st, const struct nps_map_record *rec)
{
	void *at = reserve(st, &st->maps, rec->size);

	if (rec->what == NPS_MAP_FORK && st->opts.children)
		make_ours(st, (uint32_t)rec->start);
	if (at)
		memcpy(at, rec, rec->size);
	else
		atomic_fetch_add(&st->lost, 1);
}

/* Creates one record of `head` and a path, to be released with free(). NULL: no memory. */
static struct nps_map_record *map_record(const struct nps_map_record *head, const char *path)
{
	size_t len = strnlen(path, NPS_MAP_PATH - 1);
	uint32_t size = padded(sizeof(*head) + len + 1);
	struct nps_map_record *rec = calloc(1, size);

	if (!rec)
		return NULL;
	*rec = *head;
	rec->size = size;
	memcpy(rec + 1, path, len);
	return rec;
}

/*
 * A record of a process that is not the job's is kept for a while: its
 * fork may be in the ring of another CPU.
 */
static void stacks_on_record(struct nps_stacks *st, const struct nps_map_record *head, const char *path)
{
	struct nps_map_record *rec = map_record(head, path);

	if (!rec) {
		atomic_fetch_add(&st->lost, 1);
		return;
	}
	if (is_ours(st, rec->pid)) {
		write_map(st, rec);
	} else if (st->n_waiting < MAX_WAITING) {
		st->waiting[st->n_waiting++] = (struct stack_waiting){ rec, WAITING_TURNS };
		rec = NULL;
	} else {
		atomic_fetch_add(&st->lost, 1);
	}
	free(rec);
}

static void check_waiting(struct nps_stacks *st)
{
	size_t kept = 0;

	for (size_t i = 0; i < st->n_waiting; i++) {
		struct stack_waiting w = st->waiting[i];
		bool ours = is_ours(st, w.rec->pid);

		if (ours)
			write_map(st, w.rec);
		if (ours || --w.turns == 0)
			free(w.rec);
		else
			st->waiting[kept++] = w;
	}
	st->n_waiting = kept;
}

static void on_map(void *ctx, const struct nps_perf_map *m)
{
	struct nps_map_record head = { .what = NPS_MAP_CODE,
				       .pid = m->pid,
				       .time = m->time,
				       .start = m->start,
				       .end = m->end,
				       .offset = m->offset,
				       .build_id_len = (uint8_t)m->build_id_len };

	if (m->build_id_len && m->build_id_len <= sizeof(head.build_id))
		memcpy(head.build_id, m->build_id, m->build_id_len);
	stacks_on_record(ctx, &head, m->path);
}

static void on_fork(void *ctx, uint32_t parent, uint32_t child, uint64_t time)
{
	struct nps_map_record head = { .what = NPS_MAP_FORK, .pid = parent, .time = time, .start = child };

	stacks_on_record(ctx, &head, "");
}

static void on_exec(void *ctx, uint32_t pid, uint64_t time)
{
	struct nps_map_record head = { .what = NPS_MAP_EXEC, .pid = pid, .time = time };

	stacks_on_record(ctx, &head, "");
}

static void on_lost(void *ctx, uint64_t n)
{
	struct nps_stacks *st = ctx;

	atomic_fetch_add(&st->lost, n);
}

static uint8_t read_build_id(pid_t pid, const struct nps_mapping *m, struct nps_budget *budget,
			     uint8_t id[24])
{
	int fd = m->path[0] == '/' ? nps_mapping__open(pid, m, O_RDONLY) : -1;
	char hex[41] = "";
	struct nps_elf *elf;
	uint8_t n = 0;

	if (fd < 0)
		return 0;
	if (!nps_elf__open(fd, budget, &elf)) {
		nps_elf__build_id(elf, hex);
		nps_elf__close(elf);
	}
	close(fd);
	for (; n < 20 && hex[2 * n] && hex[2 * n + 1]; n++) {
		char byte[3] = { hex[2 * n], hex[2 * n + 1], 0 };

		id[n] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return n;
}

static void watch_mapping(struct nps_stacks *st, pid_t pid, const struct nps_mapping *m, uint64_t now,
			  struct nps_budget *budget)
{
	struct nps_map_record head = { .what = NPS_MAP_CODE,
				       .pid = (uint32_t)pid,
				       .time = now,
				       .start = m->start,
				       .end = m->end,
				       .offset = m->offset },
			      *rec;

	head.build_id_len = read_build_id(pid, m, budget, head.build_id);
	rec = map_record(&head, m->path);
	if (!rec) {
		atomic_fetch_add(&st->lost, 1);
		return;
	}
	pthread_mutex_lock(&st->lock);
	write_map(st, rec);
	pthread_mutex_unlock(&st->lock);
	free(rec);
}

bool nps_stacks__watch(struct nps_stacks *st, pid_t pid)
{
	bool known;

	if (!st)
		return false;
	pthread_mutex_lock(&st->lock);
	known = is_ours(st, (uint32_t)pid); /* it was forked since: all its mappings have been recorded */
	make_ours(st, (uint32_t)pid);
	pthread_mutex_unlock(&st->lock);
	return !known;
}

int nps_stacks__list(struct nps_stacks *st, pid_t pid, uint64_t since, struct nps_budget *budget)
{
	struct nps_maps maps;
	int err = st ? nps_maps__read_all(pid, budget, &maps) : -ENOENT;

	if (err)
		return err == -ETIME ? err : 0;
	for (size_t i = 0; i < maps.n && !err; i++) {
		if (!maps.v[i].exec)
			continue;
		watch_mapping(st, pid, &maps.v[i], since, budget);
		err = nps_budget__spent(budget) ? -ETIME : 0;
	}
	nps_maps__free(&maps);
	return err;
}

/* Writes the vDSO, which is in no file. Every process has the same. */
static void write_vdso(struct nps_stacks *st)
{
	uint64_t at = getauxval(AT_SYSINFO_EHDR);
	struct nps_maps maps;

	if (!at || nps_maps__read_all(getpid(), NULL, &maps))
		return;
	for (size_t i = 0; i < maps.n; i++)
		if (maps.v[i].start == at && maps.v[i].end - at <= BUFFER_BYTES)
			nps_stream__append(&st->stream, NPS_CHUNK_VDSO, 0, (void *)(uintptr_t)at,
					   (uint32_t)(maps.v[i].end - at));
	nps_maps__free(&maps);
}

/* --- the thread -------------------------------------------------------------------------------------- */

static void stacks_turn(struct nps_stacks *st)
{
	const struct nps_perf_sink sink = { .sample = on_sample,
					    .map = on_map,
					    .fork = on_fork,
					    .exec = on_exec,
					    .lost = on_lost,
					    .begin = read_messages,
					    .ctx = st };

	pthread_mutex_lock(&st->lock);
	nps_perf_sampler__drain(st->sampler, &sink);
	check_waiting(st);
	stacks_flush(st, &st->maps); /* first, so that the mappings of a stack on disk are on disk, too */
	stacks_flush(st, &st->stacks);
	pthread_mutex_unlock(&st->lock);
}

static void *collect_stacks(void *arg)
{
	struct nps_stacks *st = arg;

	nps_privilege__keep(NPS_PRIVILEGE_RECORDS, false);
	prctl(PR_SET_NAME, "nps_stacks");
	while (!atomic_load(&st->stop)) {
		nps_perf_sampler__wait(st->sampler, TURN_MS);
		stacks_turn(st);
	}
	stacks_turn(st);
	return NULL;
}

static int start_messages(struct nps_stacks *st)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 1)
		return cpus ? cpus : -ENODEV;
	st->returns = nps_sample_returns__new((unsigned int)cpus);
	if (!st->returns)
		return -ENOMEM;
	st->messages = ring_buffer__new(bpf_map__fd(st->bpf->maps.messages), on_message, st, NULL);
	return st->messages ? 0 : -errno;
}

static int start_sleeps(struct nps_stacks *st)
{
	if (!st->opts.off_cpu)
		return 0;
	st->bpf->links.stack_switched = bpf_program__attach(st->bpf->progs.stack_switched);
	if (st->bpf->links.stack_switched && bpf_program__autoload(st->bpf->progs.sleeper_ended))
		st->bpf->links.sleeper_ended = bpf_program__attach(st->bpf->progs.sleeper_ended);
	return st->bpf->links.stack_switched ? 0 : -errno;
}

static int allocate(struct nps_stacks *st)
{
	st->stacks.type = NPS_CHUNK_STACKS;
	st->stacks.data = malloc(BUFFER_BYTES);
	st->maps.type = NPS_CHUNK_MAPS;
	st->maps.data = malloc(BUFFER_BYTES);
	st->kernel = calloc(2UL * MAX_KERNEL, sizeof(*st->kernel));
	st->ours = calloc(MOST_PIDS / 64, sizeof(*st->ours));
	return st->stacks.data && st->maps.data && st->kernel && st->ours ? 0 : -ENOMEM;
}

static int start(struct nps_stacks *st)
{
	struct nps_perf_sampler_opts so = { .hz = st->opts.on_cpu ? st->opts.hz : 0,
					    .copy_bytes = copy_bytes(st) };
	int err = allocate(st);

	if (err)
		return err;
	st->stream.fd = nps_session_writer__open_file(st->session, "stacks.nps");
	if (st->stream.fd < 0)
		return st->stream.fd;
	write_vdso(st);
	err = nps_sample_programs__load(st->k, &st->opts, &st->bpf);
	if (err)
		return err;
	if (st->bpf) {
		so.wanted = st->bpf->progs.sample_wanted;
		err = start_messages(st);
		if (err)
			return err;
	}
	err = nps_perf_sampler__open(&so, &st->sampler);
	if (err)
		return err;
	err = start_sleeps(st);
	if (err)
		return err;
	err = -pthread_create(&st->thread, NULL, collect_stacks, st);
	st->running = !err;
	return err;
}

int nps_stacks__start(struct nps_bpf_loader *k, struct nps_session_writer *s,
		      const struct nps_stacks_opts *opts, struct nps_stacks **out)
{
	struct nps_stacks *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return -ENOMEM;
	st->opts = *opts;
	st->k = k;
	st->session = s;
	st->stream.fd = -1;
	pthread_mutex_init(&st->lock, NULL);
	err = start(st);
	if (err) {
		nps_warn("cannot record stacks: %s: run with --verbose for the kernel's messages",
			 strerror(-err));
		nps_stacks__free(st);
		return err;
	}
	*out = st;
	return 0;
}

/* Runs the iterator, which sends threads that are still asleep. */
static void send_sleepers(struct nps_stacks *st)
{
	int err = nps_task_iter__run(st->bpf->progs.stack_sleepers, 1, NULL, NULL);

	if (err)
		nps_warn("cannot query threads that are still asleep: %s: sleeps that outlast the capture "
			 "are missing",
			 strerror(-err));
}

void nps_stacks__stop(struct nps_stacks *st)
{
	if (!st || !st->running)
		return;
	nps_perf_sampler__stop(st->sampler);
	if (st->opts.off_cpu) {
		bpf_link__destroy(st->bpf->links.stack_switched);
		st->bpf->links.stack_switched = NULL;
		send_sleepers(st);
	}
	atomic_store(&st->stop, true);
	pthread_join(st->thread, NULL);
	st->running = false;
}

void nps_stacks__finish(struct nps_stacks *st)
{
	if (!st)
		return;
	nps_stacks__stop(st);
	write_kernel_symbols(st);
	nps_session_end__sync_stream(st->session, &st->stream, "stacks.nps");
	if (atomic_load(&st->uncopied))
		nps_warn("stacks.nps has reached %llu MiB: %llu stacks are by frame pointers "
			 "only: "
			 "lower --stack-freq, or --unwind fp",
			 FILE_COPIES >> 20, (unsigned long long)atomic_load(&st->uncopied));
}

void nps_stacks__free(struct nps_stacks *st)
{
	if (!st)
		return;
	nps_stacks__stop(st);
	ring_buffer__free(st->messages);
	nps_sample_returns__free(st->returns);
	nps_perf_sampler__close(st->sampler);
	sample_bpf__destroy(st->bpf);
	for (size_t i = 0; i < st->n_waiting; i++)
		free(st->waiting[i].rec);
	if (st->stream.fd >= 0)
		close(st->stream.fd);
	pthread_mutex_destroy(&st->lock);
	free(st->stacks.data);
	free(st->maps.data);
	free(st->kernel);
	free(st->ours);
	free(st);
}

uint64_t nps_stacks__written(const struct nps_stacks *st)
{
	return st ? atomic_load(&st->written) : 0;
}

uint64_t nps_stacks__lost(const struct nps_stacks *st)
{
	return st ? atomic_load(&st->lost) : 0;
}

uint64_t nps_stacks__uncopied(const struct nps_stacks *st)
{
	return st ? atomic_load(&st->uncopied) : 0;
}
