/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks for flame graphs, a line each: frames from the outermost, joined by `;`, a blank, us.
 * npuscope.folded: time that host threads spent in Python functions, operators and CANN calls, less what
 * they called. npuscope_device.folded: time of the device tasks that were launched there.
 */
#include "export/export.h"
#include "export/timeline.h"

#include "base/json_writer.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOT 0
#define DEPTH 512 /* frames of one stack; deeper ones count for the last */

struct node { /* a stack: a frame on top of another stack */
	uint32_t parent, text;
	int64_t host_ns; /* self time */
	uint64_t device_ns;
};

struct frame {
	uint64_t end;
	uint32_t node;
};

struct folded_thread {
	uint32_t depth, room;
	struct frame *stack;
};

struct folder {
	const struct nps_model *m;
	struct nps_vec nodes; /* struct node; 0 is no frame */
	struct nps_map child_of; /* (parent, text) -> node */
	struct nps_map thread_of; /* gtid -> row of threads */
	struct nps_vec threads; /* struct folded_thread */
	struct nps_vec launched; /* uint32_t: connection -> node, 0 none */
	int err;
};

static struct node *folded_node(const struct folder *f, uint32_t i)
{
	return &NPS_AT(&f->nodes, struct node, i);
}

static uint32_t folded_child(struct folder *f, uint32_t parent, uint32_t text)
{
	uint64_t key = (uint64_t)parent << 32 | text;
	uint32_t i = nps_map__get(&f->child_of, key);
	struct node *node;

	if (i != NPS_NONE)
		return i;
	node = nps_vec__push(&f->nodes);
	if (!node || nps_map__put(&f->child_of, key, f->nodes.len - 1)) {
		f->err = -ENOMEM;
		return ROOT;
	}
	i = f->nodes.len - 1;
	node->parent = parent;
	node->text = text;
	return i;
}

static struct folded_thread *folded_thread(struct folder *f, uint64_t gtid)
{
	uint32_t row = nps_map__get(&f->thread_of, gtid);
	struct folded_thread *t;

	if (row != NPS_NONE)
		return &NPS_AT(&f->threads, struct folded_thread, row);
	t = nps_vec__push(&f->threads);
	if (!t || nps_map__put(&f->thread_of, gtid, f->threads.len - 1)) {
		f->err = -ENOMEM;
		return NULL;
	}
	return t;
}

static void folded_enter(struct folder *f, struct folded_thread *t, uint64_t end, uint32_t node)
{
	if (t->depth == DEPTH)
		return;
	/* An input can have more threads than rows are nested in any of them. */
	if (t->depth == t->room) {
		uint32_t room = t->room ? 2 * t->room : 4;
		struct frame *stack = realloc(t->stack, room * sizeof(*stack));

		if (!stack) {
			f->err = -ENOMEM;
			return;
		}
		t->stack = stack;
		t->room = room;
	}
	t->stack[t->depth++] = (struct frame){ end, node };
}

static void folded_add_time(int64_t *to, int64_t ns)
{
	if (__builtin_add_overflow(*to, ns, to))
		*to = ns > 0 ? INT64_MAX : INT64_MIN;
}

/* A frame of a host thread; they come in order of start. Returns its stack. */
static uint32_t folded_call(struct folder *f, const struct nps_item *item)
{
	struct folded_thread *t = folded_thread(f, item->lane);
	int64_t ns = (int64_t)NPS_MIN(nps_item__length(item), (uint64_t)INT64_MAX);
	uint32_t parent, node;

	if (!t)
		return ROOT;
	while (t->depth && t->stack[t->depth - 1].end <= item->start)
		t->depth--;
	parent = t->depth ? t->stack[t->depth - 1].node : ROOT;
	node = folded_child(f, parent, item->name);
	folded_add_time(&folded_node(f, node)->host_ns, ns);
	if (parent)
		folded_add_time(&folded_node(f, parent)->host_ns, -ns);
	folded_enter(f, t, item->end, node);
	return node;
}

static void note_launch(struct folder *f, uint32_t connection, uint32_t node)
{
	if (connection < f->launched.len)
		NPS_AT(&f->launched, uint32_t, connection) = node;
}

/* Python frames, operators and CANN calls. */
static void add_host_time(struct folder *f)
{
	struct nps_timeline timeline;
	struct nps_item item;
	int err;

	nps_timeline__open(&timeline, f->m, NPS_ITEM(PYTHON) | NPS_ITEM(OPERATOR) | NPS_ITEM(CALL));
	while (!f->err && nps_timeline__next(&timeline, &item))
		if (item.kind != NPS_ITEM_OPERATOR || !nps_model__is_step_mark(f->m, item.row))
			note_launch(f, item.connection, folded_call(f, &item));
	err = nps_timeline__close(&timeline);
	f->err = f->err ? f->err : err;
}

/* After all calls: of clocks that differ, a task may begin before the call that launched it. */
static void add_device_time(struct folder *f)
{
	struct nps_timeline timeline;
	struct nps_item item;

	nps_timeline__open(&timeline, f->m, NPS_ITEM(TASK));
	while (nps_timeline__next(&timeline, &item))
		if (item.connection < f->launched.len && f->m->task.source[item.row] != NPS_TIME_HOST_BOUNDS)
			folded_node(f, NPS_AT(&f->launched, uint32_t, item.connection))->device_ns +=
				item.end - item.start;
	f->err = nps_timeline__close(&timeline);
}

static void put_frame_text(struct nps_writer *w, const char *text)
{
	for (; *text; text++)
		nps_writer__bytes(w, *text == ';' ? ":" : (unsigned char)*text < ' ' ? " " : text, 1);
}

static void line(const struct folder *f, struct nps_writer *w, uint32_t node, uint64_t us)
{
	uint32_t path[DEPTH + 1], n = 0;

	for (uint32_t i = node; i != ROOT && n < NPS_ARRAY_SIZE(path); i = folded_node(f, i)->parent)
		path[n++] = i;
	while (n--) {
		put_frame_text(w, nps_model__text(f->m, folded_node(f, path[n])->text));
		nps_writer__lit(w, n ? ";" : " ");
	}
	nps_writer__u64(w, us);
	nps_writer__lit(w, "\n");
}

static int write_file(const struct folder *f, int dirfd, const char *name, bool device)
{
	struct nps_writer w;
	bool any = false;
	int err;

	for (size_t i = 1; !any && i < f->nodes.len; i++)
		any = device ? folded_node(f, i)->device_ns >= 1000 : folded_node(f, i)->host_ns >= 1000;
	if (!any)
		return 0;
	err = nps_writer__open(&w, dirfd, name);
	if (err)
		return err;
	for (size_t i = 1; i < f->nodes.len; i++) {
		const struct node *node = folded_node(f, i);
		uint64_t ns = device ? node->device_ns : (uint64_t)NPS_MAX(node->host_ns, 0L);

		if (ns >= 1000)
			line(f, &w, i, ns / 1000);
	}
	return nps_writer__close(&w);
}

static int folded_init(struct folder *f, const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	uint32_t most = 0;

	*f = (struct folder){ .m = m };
	nps_vec__init(&f->nodes, m->tmpfd, sizeof(struct node));
	nps_vec__init(&f->threads, m->tmpfd, sizeof(struct folded_thread));
	nps_vec__init(&f->launched, m->tmpfd, sizeof(uint32_t));
	for (size_t i = 0; i < m->api.t.len; i++) {
		if (m->api.connection[i] != NPS_NO_ID)
			most = NPS_MAX(most, m->api.connection[i]);
		nps_pace__step(&pace);
	}
	/* Connections are numbers of calls; an input with very large numbers has no device stacks. */
	if (most <= 16 * m->api.t.len + 65536)
		f->err = nps_vec__resize(&f->launched, (size_t)most + 1);
	if (!f->err && !nps_vec__push(&f->nodes))
		f->err = -ENOMEM;
	return f->err;
}

int nps_export__folded(const struct nps_export *ex, int dirfd)
{
	struct folder f;
	int err = folded_init(&f, ex->model);

	if (err)
		goto out;
	add_host_time(&f);
	if (!f.err)
		add_device_time(&f);
	err = f.err;
	err = err ? err : write_file(&f, dirfd, "npuscope.folded", false);
	err = err ? err : write_file(&f, dirfd, "npuscope_device.folded", true);
out:
	for (size_t i = 0; i < f.threads.len; i++)
		free(NPS_AT(&f.threads, struct folded_thread, i).stack);
	nps_vec__free(&f.nodes);
	nps_vec__free(&f.threads);
	nps_vec__free(&f.launched);
	nps_map__free(&f.child_of);
	nps_map__free(&f.thread_of);
	return err;
}
