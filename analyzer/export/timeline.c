/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/timeline.h"

#include "derive/waits.h"
#include "export/run_names.h"

#include <errno.h>

const char *const nps_overlap_names[NPS_OVERLAP_TYPES] = { "Computing", "Communication",
							   "Communication(Not Overlapped)", "Free" };

_Static_assert(NPS_TIMELINE_SOURCES <= UINT8_MAX, "numbers of sources are bytes");

bool nps_timeline__wins_tie(const struct nps_timeline *t, size_t a, size_t b)
{
	const struct nps_timeline_source *x = &t->sources[a], *y = &t->sources[b];

	if (t->next[a] == UINT64_MAX || x->kind >= NPS_TIMELINE_NESTING || y->kind >= NPS_TIMELINE_NESTING ||
	    x->end[x->at] == y->end[y->at])
		return a < b;
	return x->end[x->at] > y->end[y->at];
}

/* SOURCE, whose next item is earlier now or which is new and last, moves to its position. */
static void move_forward(struct nps_timeline *t, size_t source)
{
	size_t at = 0;

	while (t->order[at] != source)
		at++;
	for (; at && nps_timeline__before(t, source, t->order[at - 1]); at--)
		t->order[at] = t->order[at - 1];
	t->order[at] = (uint8_t)source;
}

/* NEXT: the time of its first item. */
static void append_source(struct nps_timeline *t, const struct nps_timeline_source *source, uint64_t next)
{
	size_t i = t->nsources++;

	t->sources[i] = *source;
	t->next[i] = next;
	t->order[i] = (uint8_t)i;
	move_forward(t, i);
}

static void add_source(struct nps_timeline *t, const struct nps_timeline_source *source)
{
	if (source->at < source->len)
		append_source(t, source, nps_timeline__time(source, source->at));
}

/* --- rows that nest: databases have Python's frames by their end --- */

struct sorted_row {
	struct nps_sort_key key;
	uint32_t row;
};

static struct nps_sort_key nesting_key(const struct nps_timeline_source *s, size_t row)
{
	return (struct nps_sort_key){ s->start[row], ~s->end[row] };
}

void nps_timeline__step_sorted(struct nps_timeline *t, size_t source)
{
	struct nps_ext_sort *sort = &t->sorts[source];
	const struct sorted_row *next = nps_ext_sort__next(sort);

	if (sort->err && !t->err)
		t->err = sort->err;
	t->sources[source].at = next ? next->row : t->sources[source].len;
}

static bool is_nested(struct nps_timeline *t, const struct nps_timeline_source *s)
{
	for (size_t i = s->at; i + 1 < s->len; i++) {
		if (nps_sort_key__less(nesting_key(s, i + 1), nesting_key(s, i)))
			return false;
		nps_pace__step(&t->pace);
	}
	return true;
}

/* Sorts the rows of SOURCE if they are not in the order in which they nest. */
static void sort_source(struct nps_timeline *t, size_t source)
{
	struct nps_timeline_source *s = &t->sources[source];
	struct nps_ext_sort *sort = &t->sorts[source];

	if (is_nested(t, s))
		return;
	nps_ext_sort__init(sort, t->m->tmpfd, sizeof(struct sorted_row));
	s->sorted = true;
	for (size_t i = s->at; i < s->len && !sort->err; i++) {
		struct sorted_row *row = nps_ext_sort__add(sort);

		if (row)
			*row = (struct sorted_row){ nesting_key(s, i), (uint32_t)i };
		nps_pace__step(&t->pace);
	}
	t->err = nps_ext_sort__finish(sort);
	if (!t->err)
		nps_timeline__step(t, source);
}

static void timeline_add_torch(struct nps_timeline *t, enum nps_item_kind kind, uint32_t type)
{
	const struct nps_torch_table *a = &t->m->torch;
	struct nps_rows rows = { 0 };
	size_t before = t->nsources;

	if (t->wanted >> kind & 1)
		rows = nps_model__torch_rows(t->m, type);
	add_source(t, &(struct nps_timeline_source){ .kind = kind,
						     .at = rows.begin,
						     .len = rows.end,
						     .start = a->start,
						     .end = a->end,
						     .gtid = a->gtid,
						     .name = a->name });
	if (t->nsources > before && kind < NPS_TIMELINE_NESTING && !t->err)
		sort_source(t, before);
}

/* --- all tables --- */

#define SPAN(item, table)                                                                                    \
	.kind = NPS_ITEM_##item, .len = m->table.t.len, .start = m->table.start, .end = m->table.end

static void add_tables(struct nps_timeline *t)
{
	const struct nps_model *m = t->m;
	const struct nps_timeline_source tables[] = {
		{ SPAN(CALL, api), .gtid = m->api.gtid, .name = m->api.name,
		  .connection = m->api.connection },
		{ SPAN(TASK, task), .device = m->task.device, .lane = m->task.stream, .name = m->task.name,
		  .connection = m->task.connection },
		{ SPAN(COLLECTIVE, comm_op), .device = m->comm_op.device, .lane = m->comm_op.group,
		  .name = m->comm_op.name, .connection = m->comm_op.connection },
		{ .kind = NPS_ITEM_COLLECTIVE_TASK,
		  .len = m->comm_task.t.len,
		  .start = m->task.start,
		  .end = m->task.end,
		  .rows = m->comm_task.task,
		  .device = m->task.device,
		  .lane = m->comm_task.group,
		  .name = m->comm_task.type },
		{ SPAN(OVERLAP, overlap), .device = m->overlap.device, .lane = m->overlap.type },
		{ SPAN(SYSTEM_CALL, osrt), .gtid = m->osrt.gtid, .name = m->osrt.name },
		{ SPAN(DRIVER_CALL, driver), .gtid = m->driver.gtid, .name = m->driver.name },
		{ SPAN(MARK, mstx), .gtid = m->mstx.gtid, .name = m->mstx.message,
		  .connection = m->mstx.connection },
		{ .kind = NPS_ITEM_DEVICE_MARK,
		  .len = m->mstx.t.len,
		  .start = m->mstx.device_start,
		  .end = m->mstx.device_end,
		  .device = m->mstx.device,
		  .lane = m->mstx.stream,
		  .name = m->mstx.message,
		  .connection = m->mstx.connection },
		{ SPAN(ITERATION, iteration), .device = m->iteration.device, .lane = m->iteration.model },
		{ SPAN(ITERATION_PART, iteration_part), .device = m->iteration_part.device,
		  .lane = m->iteration_part.model },
	};

	for (size_t i = 0; i < NPS_ARRAY_SIZE(tables); i++)
		if (t->wanted >> tables[i].kind & 1)
			add_source(t, &tables[i]);
}

static void timeline_add_counters(struct nps_timeline *t)
{
	for (size_t k = 0; k < NPS_COUNTER_TABLES && t->wanted & NPS_ITEM(SAMPLE); k++) {
		const struct nps_counter_table *table = &nps_counter_tables[k];

		add_source(t, &(struct nps_timeline_source){
				      .kind = NPS_ITEM_SAMPLE,
				      .len = nps_counter_table__of(t->m, table)->len,
				      .start = nps_counter_table__times(t->m, table),
				      .device = table->device == NPS_NO_COLUMN
							? NULL
							: nps_table__cells(nps_counter_table__of(t->m, table),
									   table->device),
				      .table = table });
	}
}

/* --- the scheduler --- */

static struct nps_item item_of_run(const struct nps_model *m, enum nps_item_kind kind, uint32_t row,
				   uint64_t start, uint64_t end)
{
	return (struct nps_item){ .kind = kind,
				  .row = row,
				  .name = m->run.comm[row],
				  .connection = NPS_NO_ID,
				  .start = start,
				  .end = end,
				  .lane = (uint64_t)m->run.cpu[row] << 32 | m->run.tid[row],
				  .before = NPS_NONE };
}

size_t nps_timeline__wait(const struct nps_model *m, uint32_t row, uint32_t before, struct nps_item out[2])
{
	struct nps_wait wait = nps_run__wait(m, row, before);
	size_t n = 0;

	if (!wait.known)
		return 0;
	if (wait.woken > wait.left)
		out[n++] = item_of_run(m, NPS_ITEM_SLEEPING, row, wait.left, wait.woken);
	if (wait.start > wait.woken)
		out[n++] = item_of_run(m, NPS_ITEM_RUNNABLE, row, wait.woken, wait.start);
	for (size_t i = 0; i < n; i++)
		out[i].before = before;
	return n;
}

/* Viewers count switches of no CPU: they show none without an item that comes before the first run. */
size_t nps_timeline__run(const struct nps_model *m, uint32_t row, bool first, struct nps_item out[3])
{
	uint64_t start = m->run.start[row], end = m->run.end[row];
	size_t n = 0;

	if (!nps_run__ran(m, row))
		return 0;
	if (first)
		out[n++] = item_of_run(m, NPS_ITEM_FIRST, row, start, start);
	out[n++] = item_of_run(m, NPS_ITEM_RUNNING, row, start, end);
	if (!(m->run.state[row] & NPS_RUN_OPEN))
		out[n++] = item_of_run(m, NPS_ITEM_SWITCH, row, end, end);
	return n;
}

static bool is_before(const struct nps_item *a, const struct nps_item *b)
{
	return a->start != b->start ? a->start < b->start
	       : a->row != b->row   ? a->row < b->row
				    : a->kind < b->kind;
}

static void push_item(struct nps_timeline *t, const struct nps_item *item)
{
	size_t at = t->pending.len;
	struct nps_item *heap;

	if (!(t->wanted >> item->kind & 1))
		return;
	if (!nps_vec__push(&t->pending)) {
		t->err = -errno;
		return;
	}
	heap = t->pending.data;
	for (; at && is_before(item, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *item;
	t->next[t->heap] = heap[0].start;
	move_forward(t, t->heap);
}

void nps_timeline__pop(struct nps_timeline *t, struct nps_item *item)
{
	struct nps_item *heap = t->pending.data;
	size_t at = 0, n = --t->pending.len;

	*item = heap[0];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= n || !is_before(&heap[child], &heap[n]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = heap[n];
	t->next[t->heap] = n ? heap[0].start : UINT64_MAX;
	nps_timeline__move_back(t, t->heap);
}

static void push_wait(struct nps_timeline *t, uint32_t row, uint32_t before)
{
	struct nps_item items[2];
	size_t n = nps_timeline__wait(t->m, row, before, items);

	for (size_t i = 0; i < n; i++)
		push_item(t, &items[i]);
}

/* Whether run ROW is its thread's first of that name. */
static bool is_first(struct nps_timeline *t, uint32_t row)
{
	uint64_t thread = nps_hash2(t->m->run.tid[row], t->m->run.comm[row]);
	int err;

	if (!(t->wanted & NPS_ITEM(FIRST)) || !nps_run__ran(t->m, row) ||
	    nps_map__get(&t->named, thread) != NPS_NONE)
		return false;
	err = nps_map__put(&t->named, thread, 1);
	if (err)
		t->err = err;
	return true;
}

/* A thread's wait begins long before the run that ends it is read: it is pushed with the run before. */
void nps_timeline__push_run(struct nps_timeline *t, uint32_t row)
{
	uint32_t following = t->following.len ? NPS_AT(&t->following, uint32_t, row) : 0;
	struct nps_item items[3];
	size_t n = nps_timeline__run(t->m, row, is_first(t, row), items);

	for (size_t i = 0; i < n; i++)
		push_item(t, &items[i]);
	if (following)
		push_wait(t, following, row);
}

/* Which run follows which, and the waits before the first run of each thread. */
static void read_order(struct nps_timeline *t)
{
	const struct nps_run_table *run = &t->m->run;
	struct nps_map last = { 0 };

	t->err = nps_vec__resize(&t->following, run->t.len);
	for (size_t i = 0; !t->err && i < run->t.len; i++) {
		uint32_t before = nps_map__get(&last, run->tid[i]);

		if (before == NPS_NONE)
			push_wait(t, i, NPS_NONE);
		else
			NPS_AT(&t->following, uint32_t, before) = i;
		if (!t->err)
			t->err = nps_map__put(&last, run->tid[i], i);
		nps_pace__step(&t->pace);
	}
	nps_map__free(&last);
}

static void add_sched(struct nps_timeline *t)
{
	const struct nps_model *m = t->m;

	if (t->wanted & NPS_ITEM(INTERRUPT))
		add_source(t, &(struct nps_timeline_source){ SPAN(INTERRUPT, irq), .device = m->irq.cpu,
							     .lane = m->irq.tid, .name = m->irq.name });
	if (!(t->wanted & NPS_ITEMS_SCHED) || !m->run.t.len)
		return;
	add_source(t, &(struct nps_timeline_source){ SPAN(RUNNING, run) });
	t->heap = t->nsources;
	append_source(t, &(struct nps_timeline_source){ .kind = NPS_ITEM_SWITCH }, UINT64_MAX);
	if (t->wanted & (NPS_ITEM(SLEEPING) | NPS_ITEM(RUNNABLE)) && !t->err)
		read_order(t);
}

void nps_timeline__open(struct nps_timeline *t, const struct nps_model *m, uint32_t wanted)
{
	*t = (struct nps_timeline){ .m = m, .wanted = wanted, .pace = { .model = m } };
	nps_vec__init(&t->pending, m->tmpfd, sizeof(struct nps_item));
	nps_vec__init(&t->following, m->tmpfd, sizeof(uint32_t));
	timeline_add_torch(t, NPS_ITEM_PYTHON, NPS_API_PYTHON);
	timeline_add_torch(t, NPS_ITEM_OPERATOR, NPS_API_TORCH_OP);
	timeline_add_torch(t, NPS_ITEM_TORCH_MARK, NPS_API_TORCH_MSTX);
	add_tables(t);
	timeline_add_counters(t);
	add_sched(t);
	if (wanted & NPS_ITEM(STEP))
		add_source(t, &(struct nps_timeline_source){ SPAN(STEP, step) });
	if (wanted & NPS_ITEM(COLLECTION))
		add_source(t, &(struct nps_timeline_source){ SPAN(COLLECTION, gc), .gtid = m->gc.gtid });
	timeline_add_torch(t, NPS_ITEM_QUEUE, NPS_API_TORCH_QUEUE);
}

int nps_timeline__close(struct nps_timeline *t)
{
	for (size_t i = 0; i < NPS_TIMELINE_NESTING; i++)
		if (t->sources[i].sorted)
			nps_ext_sort__free(&t->sorts[i]);
	nps_vec__free(&t->pending);
	nps_vec__free(&t->following);
	nps_map__free(&t->named);
	return t->err;
}
