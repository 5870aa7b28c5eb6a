/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/common/torch_memory.h"

#include <errno.h>

#define LIVE (1UL << 20) /* allocations that are followed until their release */

enum component { CACHING, WORKSPACE };

/* --- memory_record --- */

static int memory_add_record(struct nps_torch_memory *s, uint32_t component, uint64_t time,
			     const struct nps_memory_levels *levels, uint32_t device)
{
	struct nps_memory_record_table *t = &s->m->memory_record;
	size_t row;
	int err = nps_table__add(&t->t, &row);

	if (err)
		return err;
	t->component[row] = component;
	t->timestamp[row] = time;
	t->allocated[row] = levels->allocated;
	t->reserved[row] = levels->reserved;
	t->active[row] = levels->active;
	t->stream[row] = levels->stream;
	t->device[row] = device;
	return 0;
}

static int64_t level_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return a == NPS_NULL || b == NPS_NULL || __builtin_add_overflow(a, b, &sum) ? NPS_NULL : sum;
}

static int memory_add_sum(struct nps_torch_memory *s, uint64_t time, uint32_t device)
{
	const struct nps_memory_levels *pta = &s->of_pta[device % NPS_MEMORY_DEVICES],
				       *ge = &s->of_ge[device % NPS_MEMORY_DEVICES];
	struct nps_memory_levels sum = { .active = pta->active, .stream = pta->stream };

	sum.allocated = level_sum(pta->allocated, ge->allocated);
	sum.reserved = level_sum(pta->reserved, ge->reserved);
	return memory_add_record(s, s->sum, time, &sum, device);
}

/* CANN's rows before TIME. */
static int add_cann(struct nps_torch_memory *s, uint64_t time)
{
	const struct nps_npu_op_mem_table *t = &s->m->npu_op_mem;
	int err = 0;

	for (; !err && s->ge < t->t.len && t->timestamp[s->ge] < time; s->ge++) {
		struct nps_memory_levels levels = { t->allocated[s->ge], t->reserved[s->ge], 0, NPS_NULL };
		uint32_t device = t->device[s->ge];

		s->of_ge[device % NPS_MEMORY_DEVICES] = levels;
		err = memory_add_record(s, t->component[s->ge], t->timestamp[s->ge], &levels, device);
		err = err ? err : memory_add_sum(s, t->timestamp[s->ge], device);
	}
	return err;
}

static uint32_t memory_component(struct nps_torch_memory *s, unsigned int component)
{
	switch (component) {
	case CACHING:
		return s->pta;
	case WORKSPACE:
		return s->workspace;
	}
	return nps_strings__addf(s->m->strings, "COMPONENT_%u", component);
}

/* --- op_memory --- */

static uint64_t event_key(const struct nps_memory_event *event)
{
	return event->ptr + ((uint64_t)event->device << 56);
}

/* Rows of LIVE that are still in use, but of those at most the later ones if nearly all are. */
static int blocks_forget(struct nps_torch_memory *s,
			 bool (*in_use)(const struct nps_torch_memory *s, uint32_t row), size_t rows)
{
	size_t oldest = rows > LIVE / 2 ? rows - LIVE / 2 : 0, used = 0;
	struct nps_map kept = { 0 };
	int err = 0;

	for (size_t i = 0; i < s->live.size; i++)
		used += s->live.slots[i].used && in_use(s, s->live.slots[i].value);
	for (size_t i = 0; !err && i < s->live.size; i++) {
		uint32_t row = s->live.slots[i].value;

		if (!s->live.slots[i].used || !in_use(s, row))
			continue;
		if (used > LIVE / 4 * 3 && row < oldest)
			s->forgotten++;
		else
			err = nps_map__put(&kept, s->live.slots[i].key, row);
	}
	nps_map__free(&s->live);
	s->live = kept;
	return err;
}

static bool block_in_use(const struct nps_torch_memory *s, uint32_t row)
{
	return s->m->op_memory.release[row] == NPS_NULL || s->m->op_memory.active_release[row] == NPS_NULL;
}

/* The operator that allocated, not the one that only made the tensor: a row, NPS_NONE if there is none. */
static int find_owner(struct nps_torch_memory *s, const struct nps_memory_event *event, uint32_t *row)
{
	int err = nps_torch_owner__at(&s->owner, event->gtid, event->order.high, row);

	if (!err && *row != NPS_NONE && s->m->torch.name[*row] == s->empty)
		*row = nps_torch_owner__parent(&s->owner, *row);
	return err;
}

/* A row of which only the allocation is known. */
static int add_allocation(struct nps_torch_memory *s, uint32_t name, int64_t size, uint64_t time,
			  const struct nps_memory_levels *levels, uint32_t device, size_t *row)
{
	struct nps_op_memory_table *t = &s->m->op_memory;
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->name[i] = name;
	t->size[i] = size;
	t->allocation[i] = time;
	t->allocation_allocated[i] = levels->allocated;
	t->allocation_reserved[i] = levels->reserved;
	t->allocation_active[i] = levels->active;
	t->stream[i] = levels->stream;
	t->device[i] = device;
	t->release[i] = t->active_release[i] = t->duration[i] = t->active_duration[i] = NPS_NULL;
	t->release_allocated[i] = t->release_reserved[i] = t->release_active[i] = NPS_NULL;
	*row = i;
	return 0;
}

static void set_release(struct nps_torch_memory *s, size_t row, uint64_t time,
			const struct nps_memory_levels *levels)
{
	struct nps_op_memory_table *t = &s->m->op_memory;

	t->release[row] = time;
	t->duration[row] = (int64_t)time - t->allocation[row];
	t->release_allocated[row] = levels->allocated;
	t->release_reserved[row] = levels->reserved;
	t->release_active[row] = levels->active;
}

/* Rows of op_memory are allocations alone until all events are there. */
static int add_stack(struct nps_torch_memory *s, uint32_t owner, bool caching)
{
	int64_t chain = owner == NPS_NONE ? NPS_NULL : s->m->torch.callchain[owner];

	return nps_op_memory_stack_table__add(&s->m->op_memory_stack,
					      &(struct nps_op_memory_stack_row){ .callchain = chain,
										 .caching = caching });
}

static int allocate(struct nps_torch_memory *s, const struct nps_memory_event *event)
{
	uint32_t owner = NPS_NONE, name;
	size_t row = 0;
	int err = find_owner(s, event, &owner);

	if (err)
		return err;
	name = owner == NPS_NONE ? NPS_NONE : s->m->torch.name[owner];
	err = add_allocation(s, name, event->size, event->order.high, &event->levels, event->device, &row);
	if (err)
		return err;
	err = s->with_stacks ? add_stack(s, owner, event->component == CACHING) : 0;
	if (err)
		return err;
	err = s->live.len >= LIVE ? blocks_forget(s, block_in_use, row) : 0;
	return err ? err : nps_map__put(&s->live, event_key(event), row);
}

/* What was allocated before the capture has no row. */
static void block_release(struct nps_torch_memory *s, const struct nps_memory_event *event)
{
	struct nps_op_memory_table *t = &s->m->op_memory;
	uint32_t row = nps_map__get(&s->live, event_key(event));

	if (row == NPS_NONE)
		return;
	if (event->kind == NPS_RELEASED && t->release[row] == NPS_NULL) {
		set_release(s, row, event->order.high, &event->levels);
	} else if (event->kind == NPS_BLOCK_RELEASED && t->active_release[row] == NPS_NULL) {
		t->active_release[row] = event->order.high;
		t->active_duration[row] = (int64_t)event->order.high - t->allocation[row];
	}
}

static int memory_add_event(struct nps_torch_memory *s, const struct nps_memory_event *event)
{
	uint32_t component = memory_component(s, event->component);
	int err = component == NPS_NONE ? -ENOMEM : add_cann(s, event->order.high);

	if (err)
		return err;
	err = memory_add_record(s, component, event->order.high, &event->levels, event->device);
	if (err)
		return err;
	if (event->component == CACHING) {
		s->of_pta[event->device] = event->levels;
		err = memory_add_sum(s, event->order.high, event->device);
		if (err)
			return err;
	}
	nps_model__cover(s->m, event->order.high, event->order.high);
	if (event->kind == NPS_ALLOCATED)
		return allocate(s, event);
	block_release(s, event);
	return 0;
}

/* --- CANN's operators --- */

static int add_cann_op(struct nps_torch_memory *s, uint32_t from, uint32_t to)
{
	const struct nps_npu_op_mem_table *t = &s->m->npu_op_mem;
	struct nps_memory_levels levels = { t->allocated[from], t->reserved[from], NPS_NULL, NPS_NULL };
	size_t row;
	int err = add_allocation(s, t->name[from], t->size[from], t->timestamp[from], &levels,
				 t->device[from], &row);

	if (err || to == NPS_NONE || t->timestamp[to] < t->timestamp[from])
		return err;
	levels.allocated = t->allocated[to];
	levels.reserved = t->reserved[to];
	set_release(s, row, t->timestamp[to], &levels);
	return 0;
}

static bool op_in_use(const struct nps_torch_memory *s, uint32_t row)
{
	return NPS_AT(&s->open, uint8_t, row);
}

/* In order of release, as in CANN's own table; then those never released, in order of allocation. */
static int add_cann_ops(struct nps_torch_memory *s)
{
	const struct nps_npu_op_mem_table *t = &s->m->npu_op_mem;
	struct nps_pace pace = { .model = s->m };
	uint32_t released = nps_strings__addz(s->m->strings, "release");
	int err;

	err = released == NPS_NONE ? -ENOMEM : nps_vec__resize(&s->open, t->t.len);
	nps_map__clear(&s->live);
	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace)) {
		uint64_t key = nps_hash2(t->address[i], t->device[i]);
		uint32_t row = nps_map__get(&s->live, key);

		if (t->type[i] != released) {
			NPS_AT(&s->open, uint8_t, i) = 1;
			err = s->live.len < LIVE ? 0 : blocks_forget(s, op_in_use, i);
			err = err ? err : nps_map__put(&s->live, key, i);
		} else if (row != NPS_NONE && NPS_AT(&s->open, uint8_t, row)) {
			NPS_AT(&s->open, uint8_t, row) = 0;
			err = add_cann_op(s, row, i);
		}
	}
	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace))
		if (NPS_AT(&s->open, uint8_t, i))
			err = add_cann_op(s, i, NPS_NONE);
	return err;
}

static int memory_walk_events(struct nps_torch_memory *s)
{
	struct nps_pace pace = { .model = s->m };
	const struct nps_memory_event *event;
	int err = nps_ext_sort__finish(&s->events);

	while (!err && (event = nps_ext_sort__next(&s->events))) {
		err = memory_add_event(s, event);
		nps_pace__step(&pace);
	}
	err = err ? err : s->events.err;
	/* Without events the framework was not recorded, and CANN's memory has nothing to be added to. */
	if (err || !s->m->memory_record.t.len)
		return err;
	err = add_cann(s, UINT64_MAX);
	return err ? err : add_cann_ops(s);
}

static int memory_texts(struct nps_torch_memory *s)
{
	struct nps_strings *strings = s->m->strings;

	s->pta = nps_strings__addz(strings, "PTA");
	s->sum = nps_strings__addz(strings, "PTA+GE");
	s->workspace = nps_strings__addz(strings, "WORKSPACE");
	s->empty = nps_strings__addz(strings, "empty_tensor");
	return s->pta == NPS_NONE || s->sum == NPS_NONE || s->workspace == NPS_NONE || s->empty == NPS_NONE
		       ? -ENOMEM
		       : 0;
}

void nps_torch_memory__init(struct nps_torch_memory *s, struct nps_model *model, size_t first_op,
			    size_t end_ops)
{
	*s = (struct nps_torch_memory){ .m = model };
	for (size_t i = 0; i < NPS_MEMORY_DEVICES; i++)
		s->of_pta[i].stream = NPS_NULL;
	nps_ext_sort__init(&s->events, model->tmpfd, sizeof(struct nps_memory_event));
	nps_vec__init(&s->open, model->tmpfd, 1);
	nps_torch_owner__init(&s->owner, model, first_op, end_ops);
}

struct nps_memory_event *nps_torch_memory__add(struct nps_torch_memory *s)
{
	return nps_ext_sort__add(&s->events);
}

int nps_torch_memory__fill(struct nps_torch_memory *s)
{
	int err = memory_texts(s);

	return err ? err : memory_walk_events(s);
}

void nps_torch_memory__free(struct nps_torch_memory *s)
{
	nps_torch_owner__free(&s->owner);
	nps_ext_sort__free(&s->events);
	nps_vec__free(&s->open);
	nps_map__free(&s->live);
}
