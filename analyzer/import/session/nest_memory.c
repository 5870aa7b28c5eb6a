/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job's allocations: each from its outermost call, with the device from the driver's call inside; then
 * a running total for each device and kind of memory.
 */
#include "import/session/nest_walk.h"

#include <errno.h>

/* The flag of halMemAlloc: device in bits 0-9, kind in bits 10-13. */
#define HAL_DEVICE(flag) ((flag)&0x3ff)
#define HAL_KIND(flag) ((flag) >> 10 & 0xf)
enum { HAL_HOST = 2, HAL_HOST_AGENT = 4, HAL_RESERVE = 5, HAL_HOST_UVA = 6 };

struct block {
	uint64_t size;
	uint16_t device;
	uint8_t kind;
	bool live;
};

bool nps_walk__is_memory(const struct nps_probe_info *info)
{
	return info->call >= NPS_CALL_ALLOC_DEVICE && info->call <= NPS_CALL_RESERVE;
}

/* Sets A to the driver's request. False: it is no memory. */
static bool reported_by_driver(struct nps_alloc *a, const struct nps_event *ev)
{
	uint64_t flag, device;

	if (nps_event_arg(ev, NPS_M_ARG, &flag) && ev->probe == NPS_PROBE_HAL_MEM_ALLOC) {
		a->device = HAL_DEVICE(flag);
		a->kind = HAL_KIND(flag) == HAL_HOST || HAL_KIND(flag) == HAL_HOST_AGENT ||
					  HAL_KIND(flag) == HAL_HOST_UVA
				  ? NPS_MEMORY_HOST
				  : NPS_MEMORY_DEVICE;
		return HAL_KIND(flag) != HAL_RESERVE;
	}
	if (nps_event_arg(ev, NPS_M_DEVICE, &device) && ev->probe == NPS_PROBE_HAL_MEM_CREATE)
		a->device = NPS_MIN(device, (uint64_t)UINT16_MAX);
	return true;
}

/* The memory call around the current one, NULL if it is the outermost. */
static struct nps_frame *memory_call_around(struct nps_walk *w)
{
	for (int i = 0; i < w->depth; i++)
		if (nps_walk__is_memory(w->stack[i].info))
			return &w->stack[i];
	return NULL;
}

int nps_walk__memory(struct nps_walk *w, const struct nps_event *ev, struct nps_frame *frame)
{
	struct nps_frame *outer = memory_call_around(w);
	unsigned int call = frame->info->call;
	struct nps_alloc a = { .device = UINT16_MAX, .user = w->user, .handle = false };

	if (ev->ret || call == NPS_CALL_RESERVE)
		return 0;
	if (outer) {
		/* The driver's address, size and time are those of the call around it, or of a pool. */
		if (outer->alloc != NPS_NONE)
			reported_by_driver(&NPS_AT(&w->proc->allocs, struct nps_alloc, outer->alloc), ev);
		return 0;
	}
	a.free = call == NPS_CALL_FREE || call == NPS_CALL_FREE_HANDLE;
	a.handle = call == NPS_CALL_ALLOC_HANDLE || call == NPS_CALL_FREE_HANDLE;
	a.kind = call == NPS_CALL_ALLOC_HOST ? NPS_MEMORY_HOST : NPS_MEMORY_DEVICE;
	/* An address may be used again before its release returns, but not before its allocation does. */
	a.time = a.free ? ev->start : ev->start + ev->dur;
	if (!nps_event_arg(ev, NPS_M_PTR, &a.address) || !a.address)
		return 0;
	if (!a.free && !nps_event_arg(ev, NPS_M_SIZE, &a.size))
		return 0;
	if (!a.free && !reported_by_driver(&a, ev))
		return 0;
	if (w->proc->allocs.len >= NPS_NONE || !nps_vec__push(&w->proc->allocs))
		return -ENOMEM;
	NPS_AT(&w->proc->allocs, struct nps_alloc, w->proc->allocs.len - 1) = a;
	if (!a.free)
		frame->alloc = w->proc->allocs.len - 1;
	return 0;
}

/* --- running totals ---------------------------------------------------------------------------------- */

struct totals {
	struct nps_proc *proc;
	struct nps_map row_of; /* address or handle -> row of blocks */
	struct nps_vec blocks;
	int64_t bytes[NPS_MAX_DEVICES + 1][2],
		count[NPS_MAX_DEVICES + 1][2]; /* the last row: device unknown */
};

static int totals_add(struct totals *t, uint64_t time, const struct block *b, int sign)
{
	unsigned int d = NPS_MIN(b->device, (uint16_t)NPS_MAX_DEVICES);
	struct nps_memory_total *row = nps_vec__push(&t->proc->memory);

	if (!row)
		return -errno;
	t->bytes[d][b->kind] += sign * (int64_t)b->size;
	t->count[d][b->kind] += sign;
	*row = (struct nps_memory_total){ .time = time,
					  .delta = sign * (int64_t)b->size,
					  .bytes = t->bytes[d][b->kind],
					  .blocks = t->count[d][b->kind],
					  .unknown_frees = t->proc->unknown_frees,
					  .device = b->device,
					  .kind = b->kind };
	return 0;
}

static int totals_release(struct totals *t, uint64_t time, struct block *b)
{
	b->live = false;
	return totals_add(t, time, b, -1);
}

static int one_alloc(struct totals *t, const struct nps_alloc *a)
{
	uint64_t key = nps_hash2(a->address, a->handle);
	uint32_t row = nps_map__get(&t->row_of, key);
	struct block *b = row == NPS_NONE ? NULL : &NPS_AT(&t->blocks, struct block, row);
	int err = 0;

	if (a->free && (!b || !b->live)) {
		t->proc->unknown_frees++; /* from before the capture */
		return 0;
	}
	if (b && b->live) /* a new allocation of a live address: its release was lost */
		err = totals_release(t, a->time, b);
	if (err || a->free)
		return err;
	if (!b) {
		b = nps_vec__push(&t->blocks);
		if (!b)
			return -ENOMEM;
		err = nps_map__put(&t->row_of, key, t->blocks.len - 1);
	}
	if (err)
		return err;
	*b = (struct block){ a->size, a->device, a->kind, true };
	b->size = NPS_MIN(b->size, (uint64_t)INT64_MAX / 4);
	return totals_add(t, a->time, b, 1);
}

static int totals_of(struct nps_walk *w, uint32_t proc_row)
{
	struct totals t = { .proc = &w->model->procs[proc_row] };
	size_t n = t.proc->allocs.len;
	struct nps_vec keys;
	struct nps_key *key;
	int err;

	nps_vec__init(&keys, w->model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&t.blocks, w->model->tmpfd, sizeof(struct block));
	err = nps_vec__resize(&keys, 2 * n);
	key = keys.data;
	for (size_t i = 0; !err && i < n; i++)
		key[i] = (struct nps_key){ .key = NPS_AT(&t.proc->allocs, struct nps_alloc, i).time,
					   .row = i };
	if (!err && n)
		nps_sort_keys(key, key + n, n);
	for (size_t i = 0; !err && i < n; i++) {
		struct nps_alloc *a = &NPS_AT(&t.proc->allocs, struct nps_alloc, key[i].row);

		if (a->device == UINT16_MAX)
			a->device = nps_walk__thread_device(w, proc_row, a->user);
		err = one_alloc(&t, a);
	}
	nps_map__free(&t.row_of);
	nps_vec__free(&t.blocks);
	nps_vec__free(&keys);
	nps_vec__free(&t.proc->allocs);
	return err;
}

int nps_walk__finish_memory(struct nps_walk *w)
{
	int err = 0;

	for (uint32_t p = 0; !err && p < w->model->nprocs; p++)
		err = totals_of(w, p);
	return err;
}
