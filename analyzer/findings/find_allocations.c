/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of PyTorch: whose blocks are in use when most is, and whose grow with each step. */
#include "findings/findings.h"

#include "base/map.h"
#include "derive/group_by.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 200
#define FINDINGS 5 /* of growth, at most */
#define UNFINISHED 2 /* the last steps, whose tensors the next ones would release */
#define FEWEST 4 /* steps before them */
#define MOST 0.8 /* of the steps: what survives from so many of them grows */
#define MIB 1048576.0

/* Of a line of Python, the key, and an operator, the sub key. */
struct allocator {
	struct nps_group group;
	uint64_t blocks, bytes; /* in use at the peak */
	uint64_t steps, grown; /* steps of which blocks outlive all steps, and bytes of these */
	size_t last; /* number of the latest such step, from 1 */
};

struct allocations {
	const struct nps_model *m;
	struct nps_map lines; /* call chain -> text of its line */
	struct nps_group_by allocators; /* struct allocator */
	size_t peak; /* row of memory_record */
	uint64_t known; /* bytes in use at the peak that were allocated in the capture */
	struct nps_vec keys; /* struct nps_key: starts of steps, ascending, and as much room again */
	size_t steps; /* that growth is looked for in */
	uint64_t end; /* of the last step */
};

/* The caching allocator's record with the most bytes allocated. False: there is none. */
static bool peak_find(struct allocations *a)
{
	const struct nps_memory_record_table *t = &a->m->memory_record;
	struct nps_pace pace = { .model = a->m };
	int64_t most = 0;

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		if (t->allocated[i] <= most || strcmp(nps_model__text(a->m, t->component[i]), "PTA") != 0)
			continue;
		most = t->allocated[i];
		a->peak = i;
	}
	return most > 0;
}

/* Is it a frame, "FILE(LINE): FUNCTION", of PyTorch's own Python? */
static bool is_frame_of_torch(const char *frame)
{
	return *frame == '<' || *frame == '[' || strstr(frame, "-packages/torch/") ||
	       strstr(frame, "/torch_npu/");
}

/* The line of a chain is its innermost one that is not PyTorch's; the innermost if all are. */
static int lines_index(struct allocations *a)
{
	const struct nps_frame_table *t = &a->m->frame;
	struct nps_pace pace = { .model = a->m };
	uint32_t chain = NPS_NONE;
	bool own = false;
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace)) {
		bool new_chain = t->id[i] != chain;

		if (!new_chain && own)
			continue;
		chain = t->id[i];
		own = !is_frame_of_torch(nps_model__text(a->m, t->stack[i]));
		if (new_chain || own)
			err = nps_map__put(&a->lines, chain, t->stack[i]);
	}
	return err;
}

static int steps_sort(struct allocations *a)
{
	const struct nps_step_table *t = &a->m->step;
	size_t n = t->t.len;
	int err = nps_vec__resize(&a->keys, 2 * n);

	if (err || n < FEWEST + UNFINISHED || n >= NPS_NONE)
		return err;
	for (size_t i = 0; i < n; i++) {
		NPS_AT(&a->keys, struct nps_key, i) = (struct nps_key){ .key = t->start[i], .row = i };
		a->end = NPS_MAX(a->end, t->end[i]);
	}
	nps_sort_keys(a->keys.data, &NPS_AT(&a->keys, struct nps_key, n), n);
	a->steps = n - UNFINISHED;
	return 0;
}

/* The number of the step that TIME is in, from 1; 0: none that growth is looked for in. */
static size_t step_number(const struct allocations *a, uint64_t time)
{
	size_t low = 0, high = a->steps;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (NPS_AT(&a->keys, struct nps_key, middle).key <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low && time < a->m->step.end[NPS_AT(&a->keys, struct nps_key, low - 1).row] ? low : 0;
}

static void allocator_add(struct allocations *a, struct allocator *one, size_t row)
{
	const struct nps_op_memory_table *t = &a->m->op_memory;
	uint64_t begin = (uint64_t)t->allocation[row], size = (uint64_t)t->size[row];
	/* The block's own release where the record of the owner's was lost. */
	int64_t release = t->release[row] == NPS_NULL ? t->active_release[row] : t->release[row];
	uint64_t end = release == NPS_NULL ? UINT64_MAX : (uint64_t)release;
	uint64_t peak = a->m->memory_record.timestamp[a->peak];
	size_t step = step_number(a, begin);

	if (t->device[row] == a->m->memory_record.device[a->peak] && begin <= peak && end > peak) {
		one->blocks++;
		one->bytes = nps_add_sat(one->bytes, size);
		a->known = nps_add_sat(a->known, size);
	}
	if (!step || end <= a->end)
		return;
	one->steps += one->last != step;
	one->last = step;
	one->grown = nps_add_sat(one->grown, size);
}

static int allocators_collect(struct allocations *a)
{
	const struct nps_model *m = a->m;
	size_t n = NPS_MIN(m->op_memory.t.len, m->op_memory_stack.t.len);
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < n; i++, nps_pace__step(&pace)) {
		int64_t chain = m->op_memory_stack.callchain[i];
		uint32_t line = chain == NPS_NULL ? NPS_NONE : nps_map__get(&a->lines, (uint64_t)chain);
		struct allocator *one;

		if (!m->op_memory_stack.caching[i] || m->op_memory.size[i] <= 0) /* unknown, or nonsense */
			continue;
		one = nps_group_by__get(&a->allocators, line, m->op_memory.name[i]);
		if (!one)
			return -errno;
		allocator_add(a, one, i);
	}
	return 0;
}

static const char *text_or_null(const struct nps_model *m, uint64_t text)
{
	return text == NPS_NONE ? NULL : nps_model__text(m, (uint32_t)text);
}

#define OWNER_COLUMNS(C)                                                                                     \
	C("line", TEXT, "line of Python", text_or_null(m->m, r->group.key), .optional = true)                \
	C("operator", TEXT, "operator", text_or_null(m->m, r->group.sub), .optional = true)

#define PEAK_COLUMNS(C)                                                                                      \
	OWNER_COLUMNS(C)                                                                                     \
	C("blocks", COUNT, "blocks", r->blocks)                                                              \
	C("mib", NUMBER, "MiB", (double)r->bytes / MIB)                                                      \
	C("share", SHARE, "share", (double)r->bytes / (double)m->m->memory_record.allocated[m->peak])

NPS_FIND_TABLE(peak_table, "allocations.peak", "PyTorch's memory when most is in use", struct allocations,
	       struct allocator, PEAK_COLUMNS)

#define GROWTH_COLUMNS(C)                                                                                    \
	OWNER_COLUMNS(C)                                                                                     \
	C("steps", COUNT, "steps", r->steps)                                                                 \
	C("mib_per_step", NUMBER, "MiB a step", (double)r->grown / MIB / (double)m->steps)                   \
	C("mib", NUMBER, "MiB", (double)r->grown / MIB)

NPS_FIND_TABLE(growth_table, "allocations.growth", "PyTorch's memory that grows with each step",
	       struct allocations, struct allocator, GROWTH_COLUMNS)

static int by_bytes(const void *x, const void *y)
{
	const struct allocator *a = x, *b = y;

	return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1)
				    : nps_group__by_key(&a->group, &b->group);
}

static int by_growth(const void *x, const void *y)
{
	const struct allocator *a = x, *b = y;

	return a->grown != b->grown ? (a->grown < b->grown ? 1 : -1)
				    : nps_group__by_key(&a->group, &b->group);
}

static struct allocator *allocator_at(const struct allocations *a, size_t i)
{
	return nps_group_by__at(&a->allocators, i);
}

static void peak_report(struct allocations *a, cJSON *document)
{
	const struct nps_memory_record_table *t = &a->m->memory_record;
	cJSON *section = cJSON_AddObjectToObject(document, "allocations");
	size_t n = 0;

	cJSON_AddNumberToObject(section, "device", t->device[a->peak]);
	nps_find__time(section, "peak_us", t->timestamp[a->peak]);
	nps_find__number(section, "peak_mib", (double)t->allocated[a->peak] / MIB);
	nps_find__number(section, "allocated_in_the_capture_mib", (double)a->known / MIB);
	cJSON_AddNumberToObject(section, "steps", (double)a->steps);
	nps_group_by__sort(&a->allocators, by_bytes);
	while (n < NPS_MIN(nps_group_by__len(&a->allocators), (size_t)ROWS) && allocator_at(a, n)->bytes)
		n++;
	nps_find__rows(document, &peak_table, a, a->allocators.rows.data, n, a->allocators.rows.elem);
}

static int growth_add(struct nps_find *find, const struct allocations *a, const struct allocator *one)
{
	const char *line = text_or_null(a->m, one->group.key), *name = text_or_null(a->m, one->group.sub);
	double per_step = (double)one->grown / MIB / (double)a->steps;
	cJSON *numbers = cJSON_CreateObject(), *where = cJSON_CreateObject();

	nps_find__number(numbers, "mib_per_step", per_step);
	cJSON_AddNumberToObject(numbers, "steps", (double)one->steps);
	nps_find__number(numbers, "mib", (double)one->grown / MIB);
	if (line)
		cJSON_AddStringToObject(where, "line", line);
	if (name)
		cJSON_AddStringToObject(where, "operator", name);
	return nps_find__add(find, "memory_growth", 0, numbers, where,
			     "something keeps these tensors: a list that grows, or a loss that is summed up "
			     "with its graph",
			     "%s allocates %.3f MiB a step that are not released: in %zu of %zu steps",
			     line   ? line
			     : name ? name
				    : "an unknown operator",
			     per_step, (size_t)one->steps, a->steps);
}

/* Those that grow, the fastest first. */
static int growth_collect(struct allocations *a, struct nps_vec *rows)
{
	nps_group_by__sort(&a->allocators, by_growth);
	for (size_t i = 0; i < nps_group_by__len(&a->allocators) && rows->len < ROWS; i++) {
		const struct allocator *one = allocator_at(a, i);
		struct allocator *row;

		if (one->steps < FEWEST || (double)one->steps < MOST * (double)a->steps)
			continue;
		row = nps_vec__push(rows);
		if (!row)
			return -errno;
		*row = *one;
	}
	return 0;
}

static int growth_report(struct nps_find *find, struct allocations *a)
{
	struct nps_vec rows;
	int err;

	if (!a->steps)
		return 0;
	nps_vec__init(&rows, a->m->tmpfd, sizeof(struct allocator));
	err = growth_collect(a, &rows);
	if (err)
		goto out;
	nps_find__rows(find->document, &growth_table, a, rows.data, rows.len, rows.elem);
	for (size_t i = 0; !err && i < NPS_MIN(rows.len, (size_t)FINDINGS); i++)
		err = growth_add(find, a, &NPS_AT(&rows, struct allocator, i));
out:
	nps_vec__free(&rows);
	return err;
}

static int allocations_find(struct nps_find *find)
{
	struct allocations a = { .m = find->model };
	int err;

	if (!a.m->op_memory_stack.t.len || !peak_find(&a))
		return 0;
	nps_group_by__init(&a.allocators, a.m, sizeof(struct allocator));
	nps_vec__init(&a.keys, a.m->tmpfd, sizeof(struct nps_key));
	err = lines_index(&a);
	if (err)
		goto out;
	err = steps_sort(&a);
	if (err)
		goto out;
	err = allocators_collect(&a);
	if (err)
		goto out;
	peak_report(&a, find->document);
	err = growth_report(find, &a);
out:
	nps_group_by__free(&a.allocators);
	nps_vec__free(&a.keys);
	nps_map__free(&a.lines);
	return err;
}

const struct nps_find_question nps_question_allocations = { .find = allocations_find,
							    .tables = { &peak_table, &growth_table } };
