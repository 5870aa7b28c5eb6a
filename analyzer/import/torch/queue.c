/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch.op_mark: the begin and the end of what a thread put into the task queue and of what another one
 * took out. An end belongs to the latest begin with its thread, name and number. First the rows of
 * enqueues, then those of dequeues, each by start.
 */
#include "base/ext_sort.h"
#include "import/torch/framework.h"
#include "import/torch/records.h"

#include <errno.h>

#define KIND 2
#define FIXED 40
#define NAME 1
#define DEQUEUE (1ULL << 63) /* in keys of rows: behind all that was put in */
#define DEPTH 256 /* open marks among which the beginning of an end is looked for */

/* Categories are enqueue start, enqueue end, dequeue start, dequeue end. */
struct queue_mark {
	struct nps_sort_key order; /* time; 0 */
	uint64_t gtid;
	int64_t correlation;
	uint32_t name, category;
};

struct queue_span {
	struct nps_sort_key order; /* start; 0 */
	uint64_t end, gtid;
	int64_t correlation;
	uint32_t name;
};

struct open_mark {
	uint64_t start;
	int64_t correlation;
	uint32_t below, unused;
};

struct queue {
	struct nps_framework *fw;
	struct nps_ext_sort marks, spans;
	struct nps_map threads; /* gtid -> number */
	struct nps_map tops; /* thread, name, queue end -> innermost open mark */
	struct nps_vec open; /* struct open_mark */
	uint32_t spare; /* first unused one of them */
	struct nps_map labels; /* name, queue end -> text of the row */
	uint64_t unpaired;
};

static int read_marks(struct queue *q)
{
	struct nps_fw_record record;
	struct nps_fw_file file;
	int err = nps_fw_file__open(&file, q->fw->model, q->fw->dirfd, "torch.op_mark");

	if (err)
		return err == -ENOMEM ? err : 0;
	while (!err && nps_fw_file__typed(&file, KIND, FIXED, &record)) {
		const struct nps_fw_text *name = &record.fields[NAME];
		const uint8_t *p = record.fixed;
		struct queue_mark *mark;
		uint64_t ns;

		if (!nps_framework__ns(q->fw, nps_fw_i64(p), &ns) || nps_fw_u64(p + 8) > 3 ||
		    nps_fw_i64(p + 16) < 0) {
			file.damaged++;
			continue;
		}
		mark = nps_ext_sort__add(&q->marks);
		if (!mark) {
			err = q->marks.err;
			break;
		}
		*mark = (struct queue_mark){
			.order.high = ns,
			.category = nps_fw_u64(p + 8),
			.correlation = nps_fw_i64(p + 16),
			.gtid = nps_framework__gtid(q->fw, nps_fw_u64(p + 32), nps_fw_u64(p + 24)),
		};
		mark->name = nps_fw_memo__text(&q->fw->texts, q->fw->model->strings,
					       name->there ? name->text : "", name->len);
		err = mark->name == NPS_NONE ? -ENOMEM : 0;
	}
	nps_fw_file__close(&file);
	return err;
}

static struct open_mark *open_at(const struct queue *q, uint32_t i)
{
	return &NPS_AT(&q->open, struct open_mark, i);
}

/* Puts a mark on the stack TOP; the new top, NPS_NONE if there is no memory. */
static uint32_t queue_mark_begin(struct queue *q, const struct queue_mark *mark, uint32_t top)
{
	uint32_t at = q->spare;

	if (at != NPS_NONE) {
		q->spare = open_at(q, at)->below;
	} else {
		at = q->open.len;
		if (at == NPS_NONE || !nps_vec__push(&q->open))
			return NPS_NONE;
	}
	*open_at(q, at) = (struct open_mark){ mark->order.high, mark->correlation, top, 0 };
	return at;
}

static uint32_t drop(struct queue *q, uint32_t top)
{
	uint32_t below = open_at(q, top)->below;

	open_at(q, top)->below = q->spare;
	q->spare = top;
	return below;
}

/* Takes the beginning of MARK, and those that were left open inside it, from the stack *TOP. */
static int queue_mark_end(struct queue *q, const struct queue_mark *mark, uint32_t *top)
{
	uint32_t at = *top;
	struct queue_span *span;

	for (int depth = 0; at != NPS_NONE && open_at(q, at)->correlation != mark->correlation; depth++)
		at = depth < DEPTH ? open_at(q, at)->below : NPS_NONE;
	if (at == NPS_NONE) {
		q->unpaired++;
		return 0;
	}
	for (; *top != at; q->unpaired++)
		*top = drop(q, *top);
	span = nps_ext_sort__add(&q->spans);
	if (!span)
		return q->spans.err;
	*span = (struct queue_span){
		.order.high = open_at(q, at)->start | (mark->category > 1 ? DEQUEUE : 0),
		.end = mark->order.high,
		.gtid = mark->gtid,
		.correlation = mark->correlation,
		.name = mark->name,
	};
	*top = drop(q, *top);
	return 0;
}

static int queue_add_mark(struct queue *q, const struct queue_mark *mark)
{
	uint32_t thread = nps_map__get(&q->threads, mark->gtid), top, old;
	uint64_t key;
	int err = 0;

	if (thread == NPS_NONE) {
		thread = q->threads.len;
		if (thread >= 1U << 31)
			return -EOVERFLOW;
		err = nps_map__put(&q->threads, mark->gtid, thread);
		if (err)
			return err;
	}
	key = (uint64_t)thread << 33 | (uint64_t)mark->name << 1 | (mark->category > 1);
	top = old = nps_map__get(&q->tops, key);
	if (mark->category & 1) {
		err = queue_mark_end(q, mark, &top);
	} else {
		top = queue_mark_begin(q, mark, top);
		err = top == NPS_NONE ? -ENOMEM : 0;
	}
	return err || top == old ? err : nps_map__put(&q->tops, key, top);
}

static int queue_pair(struct queue *q)
{
	const struct queue_mark *mark;
	int err = nps_ext_sort__finish(&q->marks);

	while (!err && (mark = nps_ext_sort__next(&q->marks)))
		err = queue_add_mark(q, mark);
	err = err ? err : q->marks.err;
	for (uint32_t i = q->spare; i != NPS_NONE; i = open_at(q, i)->below)
		q->unpaired--; /* what is not spare is still open */
	q->unpaired += q->open.len;
	return err;
}

/* --- rows --- */

/* Enqueue@NAME or Dequeue@NAME. */
static uint32_t queue_label(struct queue *q, uint32_t name, bool dequeue)
{
	static const char *const prefixes[] = { "Enqueue@", "Dequeue@" };
	struct nps_strings *strings = q->fw->model->strings;
	uint64_t key = (uint64_t)name << 1 | dequeue;
	uint32_t id = nps_map__get(&q->labels, key);
	size_t prefix = strlen(prefixes[dequeue]), len;
	struct nps_vec text;

	if (id != NPS_NONE)
		return id;
	len = strlen(nps_strings__get(strings, name));
	nps_vec__init(&text, q->fw->model->tmpfd, 1);
	if (!nps_vec__resize(&text, prefix + len)) {
		memcpy(text.data, prefixes[dequeue], prefix);
		memcpy((char *)text.data + prefix, nps_strings__get(strings, name), len);
		id = nps_fw_intern(strings, text.data, prefix + len);
	}
	nps_vec__free(&text);
	return id == NPS_NONE || nps_map__put(&q->labels, key, id) ? NPS_NONE : id;
}

static int queue_add_span(struct queue *q, const struct queue_span *span)
{
	struct nps_torch_table *t = &q->fw->model->torch;
	bool dequeue = span->order.high & DEQUEUE;
	uint32_t name = queue_label(q, span->name, dequeue);
	size_t row;
	int err;

	if (name == NPS_NONE)
		return -ENOMEM;
	err = nps_torch_rows__add(q->fw->model, span->order.high & ~DEQUEUE, span->end, span->gtid, name,
				  NPS_API_TORCH_QUEUE, &row);
	if (err)
		return err;
	t->correlation[row] = span->correlation;
	return 0;
}

int nps_framework__queue(struct nps_framework *fw)
{
	struct queue q = { .fw = fw, .spare = NPS_NONE };
	const struct queue_span *span;
	int err;

	nps_ext_sort__init(&q.marks, fw->model->tmpfd, sizeof(struct queue_mark));
	nps_ext_sort__init(&q.spans, fw->model->tmpfd, sizeof(struct queue_span));
	nps_vec__init(&q.open, fw->model->tmpfd, sizeof(struct open_mark));
	err = read_marks(&q);
	err = err ? err : queue_pair(&q);
	nps_ext_sort__free(&q.marks);
	nps_vec__free(&q.open);
	nps_map__free(&q.threads);
	nps_map__free(&q.tops);
	err = err ? err : nps_ext_sort__finish(&q.spans);
	while (!err && (span = nps_ext_sort__next(&q.spans)))
		err = queue_add_span(&q, span);
	err = err ? err : q.spans.err;
	nps_ext_sort__free(&q.spans);
	nps_map__free(&q.labels);
	nps_model__lost(fw->model, q.unpaired, "ends of FRAMEWORK/torch.op_mark without their other end");
	return err;
}
