/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline of a model as one sequence of items in order of time: slices, samples and intervals of the
 * scheduler. What a row is (whether it is shown, when, on which lane, under which name, which connection)
 * is decided here, once; a sink decides how its format writes it.
 *
 * A sink reads items and switches on their kind. nps_timeline__next() is inlined into its loop, so no item
 * costs a call through a pointer. Nothing is sorted but what Python's frames need: tables are in order of
 * time, and the next rows of all of them are merged.
 */
#ifndef NPS_TIMELINE_H
#define NPS_TIMELINE_H

#include "base/ext_sort.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/model.h"
#include "export/counters.h"

/* The order of items of the same time. Of those that nest, the longer first, then the outer kind. */
enum nps_item_kind {
	/* host threads; these nest */
	NPS_ITEM_PYTHON,
	NPS_ITEM_OPERATOR,
	NPS_ITEM_TORCH_MARK,
	NPS_ITEM_CALL,
	/* the device; a parent of tasks is no item, its parts are */
	NPS_ITEM_TASK,
	NPS_ITEM_COLLECTIVE,
	NPS_ITEM_COLLECTIVE_TASK,
	NPS_ITEM_OVERLAP,
	/* host threads, on lanes of their own */
	NPS_ITEM_SYSTEM_CALL,
	NPS_ITEM_DRIVER_CALL,
	NPS_ITEM_MARK,
	NPS_ITEM_DEVICE_MARK,
	NPS_ITEM_ITERATION,
	NPS_ITEM_ITERATION_PART,
	NPS_ITEM_SAMPLE,
	/* the scheduler: rows of `irq`, then of `run` */
	NPS_ITEM_INTERRUPT,
	NPS_ITEM_SLEEPING, /* before its run; how it waited is read with the run before */
	NPS_ITEM_RUNNABLE,
	NPS_ITEM_FIRST, /* no interval: the first run of a thread of that name */
	NPS_ITEM_RUNNING,
	NPS_ITEM_SWITCH,
	/* what only some formats have */
	NPS_ITEM_STEP,
	NPS_ITEM_COLLECTION, /* of Python's garbage */
	NPS_ITEM_QUEUE,
	NPS_ITEM_KINDS
};

#define NPS_ITEM(kind) (1U << NPS_ITEM_##kind)
#define NPS_ITEMS_SCHED                                                                                      \
	(NPS_ITEM(SLEEPING) | NPS_ITEM(RUNNABLE) | NPS_ITEM(FIRST) | NPS_ITEM(RUNNING) | NPS_ITEM(SWITCH))

struct nps_item {
	enum nps_item_kind kind;
	uint32_t row; /* of the kind's table */
	uint32_t name; /* text; of a run the thread's name at that time; NPS_NONE: the row has none */
	uint32_t connection; /* NPS_NO_ID: none */
	uint64_t start, end; /* Unix ns; of input that is wrong, the end may be before the start */
	/*
	 * Host: pid << 32 | tid. Device << 32 | stream, group (text) of a collective or its task, type of
	 * overlap, model of an iteration. Scheduler: CPU << 32 | tid.
	 */
	uint64_t lane;
	union {
		const struct nps_counter_table *table; /* of a sample */
		uint32_t before; /* of the scheduler: the thread's run before, NPS_NONE not known */
	};
};

static inline uint32_t nps_item__device(const struct nps_item *item)
{
	return item->lane >> 32;
}

static inline uint32_t nps_item__tid(const struct nps_item *item)
{
	return (uint32_t)item->lane;
}

static inline uint64_t nps_item__length(const struct nps_item *item)
{
	return nps_span(item->start, item->end);
}

/* What `overlap` has, by its type. */
#define NPS_OVERLAP_TYPES 4
extern const char *const nps_overlap_names[NPS_OVERLAP_TYPES];

#define NPS_TIMELINE_NESTING (NPS_ITEM_CALL + 1)
#define NPS_TIMELINE_SOURCES (NPS_ITEM_KINDS + NPS_COUNTER_TABLES)

/* The rows of one kind that are still to come. Pointers are columns, NULL: it has none. */
struct nps_timeline_source {
	enum nps_item_kind kind;
	bool sorted; /* rows come from an external sort */
	size_t at, len; /* the next row, and where they end */
	const uint64_t *start, *end, *gtid;
	const uint32_t *name, *connection, *device, *lane;
	const uint32_t *rows; /* the row of start, end and device of each of its rows; NULL: the same */
	const struct nps_counter_table *table;
};

struct nps_timeline {
	const struct nps_model *m;
	int err; /* 0 or negative errno, sticky */
	uint32_t wanted;
	struct nps_pace pace;
	size_t nsources;
	uint8_t order[NPS_TIMELINE_SOURCES]; /* sources by their next item */
	uint64_t next[NPS_TIMELINE_SOURCES]; /* time of each source's next item, UINT64_MAX after the last */
	struct nps_timeline_source sources[NPS_TIMELINE_SOURCES];
	struct nps_ext_sort sorts[NPS_TIMELINE_NESTING];

	/* Items of the scheduler come later than the runs that they are read from. */
	size_t heap; /* the source of them */
	struct nps_vec pending; /* struct nps_item, a heap by time */
	struct nps_vec following; /* uint32_t: the next run of the same thread, 0 none */
	struct nps_map named; /* thread and name -> 1: its first run was an item */
};

/* Begins the items of MODEL of the kinds in WANTED, NPS_ITEM() each. nps_timeline__close() returns errors. */
void nps_timeline__open(struct nps_timeline *timeline, const struct nps_model *model, uint32_t wanted);

/* 0 or negative errno. */
int nps_timeline__close(struct nps_timeline *timeline);

/*
 * The scheduler's items of run ROW in order of time: the wait before it, with BEFORE the thread's previous
 * run (NPS_NONE: not known); and the run itself, with FIRST if it is the thread's first of that name. Both
 * return the number of items.
 */
size_t nps_timeline__wait(const struct nps_model *model, uint32_t row, uint32_t before,
			  struct nps_item out[2]);
size_t nps_timeline__run(const struct nps_model *model, uint32_t row, bool first, struct nps_item out[3]);

/* Parts of nps_timeline__next() that are not hot. */
void nps_timeline__step_sorted(struct nps_timeline *timeline, size_t source);
void nps_timeline__push_run(struct nps_timeline *timeline, uint32_t row);
void nps_timeline__pop(struct nps_timeline *timeline, struct nps_item *item);

/* Whether source A's next item comes before that of B, which has the same time. */
bool nps_timeline__wins_tie(const struct nps_timeline *timeline, size_t a, size_t b);

static inline bool nps_timeline__before(const struct nps_timeline *t, size_t a, size_t b)
{
	return t->next[a] != t->next[b] ? t->next[a] < t->next[b] : nps_timeline__wins_tie(t, a, b);
}

/* The source whose next item is the first, NPS_TIMELINE_SOURCES: there are no more. */
static inline size_t nps_timeline__first(const struct nps_timeline *t)
{
	return t->nsources && t->next[t->order[0]] != UINT64_MAX ? t->order[0] : NPS_TIMELINE_SOURCES;
}

/* SOURCE, one of the first in order, has a later next item. It moves back a few steps at most, as a rule. */
static inline void nps_timeline__move_back(struct nps_timeline *t, size_t source)
{
	size_t at = 0;

	while (t->order[at] != source)
		at++;
	for (; at + 1 < t->nsources && nps_timeline__before(t, t->order[at + 1], source); at++)
		t->order[at] = t->order[at + 1];
	t->order[at] = (uint8_t)source;
}

/* Whether all items have been read. */
static inline bool nps_timeline__ended(const struct nps_timeline *timeline)
{
	return timeline->err || nps_timeline__first(timeline) == NPS_TIMELINE_SOURCES;
}

static inline uint64_t nps_timeline__time(const struct nps_timeline_source *s, size_t row)
{
	return s->start[s->rows ? s->rows[row] : row];
}

static inline void nps_timeline__step(struct nps_timeline *t, size_t source)
{
	struct nps_timeline_source *s = &t->sources[source];

	if (s->sorted)
		nps_timeline__step_sorted(t, source);
	else
		s->at++;
	t->next[source] = s->at < s->len ? nps_timeline__time(s, s->at) : UINT64_MAX;
	nps_timeline__move_back(t, source);
}

static inline void nps_timeline__fill(const struct nps_timeline_source *s, struct nps_item *item)
{
	size_t row = s->at, timed = s->rows ? s->rows[row] : row;

	*item = (struct nps_item){ .kind = s->kind,
				   .row = (uint32_t)row,
				   .name = s->name ? s->name[row] : NPS_NONE,
				   .connection = s->connection ? s->connection[row] : NPS_NO_ID,
				   .start = s->start[timed],
				   .end = s->end ? s->end[timed] : s->start[timed],
				   .table = s->table };
	if (s->gtid)
		item->lane = s->gtid[row];
	else
		item->lane = (uint64_t)(s->device ? s->device[timed] : 0) << 32 |
			     (s->lane ? s->lane[row] : 0);
}

/* Reads the next item. False: there are no more, or an error. */
static inline bool nps_timeline__next(struct nps_timeline *t, struct nps_item *item)
{
	size_t i;

	while (!t->err && (i = nps_timeline__first(t)) < NPS_TIMELINE_SOURCES) {
		const struct nps_timeline_source *s = &t->sources[i];

		nps_pace__step(&t->pace);
		if (s->kind == NPS_ITEM_SWITCH) {
			nps_timeline__pop(t, item);
			if (t->wanted >> item->kind & 1)
				return true;
			continue;
		}
		/* Something at time 0 would stretch a viewer's axis over half a century. */
		if (t->next[i] && s->kind == NPS_ITEM_RUNNING) {
			nps_timeline__push_run(t, s->at);
		} else if (t->next[i] &&
			   (s->kind != NPS_ITEM_TASK || t->m->task.class[s->at] != NPS_CLASS_PARENT)) {
			nps_timeline__fill(s, item);
			nps_timeline__step(t, i);
			return true;
		}
		nps_timeline__step(t, i);
	}
	return false;
}

#endif
