/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * operator_details: a row per framework operator, with what it took on the host and on the device, itself and with
 * the operators inside it. Two passes, because an operator's children come after it: sums, then rows.
 */
#include "derive/derive.h"
#include "export/csv_device_time.h"
#include "export/csv_tables.h"

#include <errno.h>

struct sums {
	uint64_t children; /* ns of direct children on the host */
	struct nps_device_time self, total;
	uint32_t parent; /* number of the operator around, NPS_NONE */
	uint32_t row; /* of `torch` */
};

struct operators {
	const struct nps_model *m;
	struct nps_device_times times;
	struct nps_vec ops; /* struct sums, in the order of `torch` */
	struct nps_map threads; /* gtid -> open */
	struct nps_vec open; /* uint32_t: innermost open operator of a thread, NPS_NONE */
	size_t link; /* where the next operator's rows of `link` are expected */
	struct nps_map copied; /* row of `torch` -> row of `copies` */
	struct nps_vec copies; /* struct nps_device_time: of copies that operators do not list */
};

static struct sums *sums_at(const struct operators *o, uint32_t op)
{
	return &NPS_AT(&o->ops, struct sums, op);
}

static uint64_t start_of(const struct operators *o, uint32_t op)
{
	return o->m->torch.start[sums_at(o, op)->row];
}

static uint64_t end_of(const struct operators *o, uint32_t op)
{
	return o->m->torch.end[sums_at(o, op)->row];
}

static void add_time(struct nps_device_time *to, struct nps_device_time what)
{
	to->all = nps_add_sat(to->all, what.all);
	to->aicore = nps_add_sat(to->aicore, what.aicore);
}

/* First row of column CELLS, which ascends, that is not less than KEY; near HINT if possible. */
static size_t lower_bound(const uint32_t *cells, size_t len, uint32_t key, size_t hint)
{
	size_t low = hint < len && (!hint || cells[hint - 1] < key) ? hint : 0, high = len, step = 1;

	while (low + step < len && cells[low + step] < key) {
		low += step;
		step *= 2;
	}
	high = NPS_MIN(len, low + step);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cells[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What ran because of calls that were made in the operator and in none inside it. */
static struct nps_device_time own_time(struct operators *o, int64_t connection)
{
	const struct nps_link_table *link = &o->m->link;
	struct nps_device_time sum = { 0 };

	if (connection < 0 || connection >= NPS_NONE)
		return sum;
	o->link = lower_bound(link->id, link->t.len, connection, o->link);
	for (; o->link < link->t.len && link->id[o->link] == connection; o->link++)
		add_time(&sum, nps_device_times__get(&o->times, link->connection[o->link]));
	return sum;
}

static int add_copy(void *ctx, uint32_t op, uint32_t connection)
{
	struct operators *o = ctx;
	uint32_t row = nps_map__get(&o->copied, op);
	int err = 0;

	if (row == NPS_NONE) {
		row = o->copies.len;
		if (!nps_vec__push(&o->copies))
			return -errno;
		err = nps_map__put(&o->copied, op, row);
	}
	add_time(&NPS_AT(&o->copies, struct nps_device_time, row),
		 nps_device_times__get(&o->times, connection));
	return err;
}

/* The operator ends: what was in it is in the one around it. */
static uint32_t close_op(struct operators *o, uint32_t op)
{
	struct sums *s = sums_at(o, op);

	if (s->parent != NPS_NONE) {
		struct sums *around = sums_at(o, s->parent);

		around->children = nps_add_sat(around->children, end_of(o, op) - start_of(o, op));
		add_time(&around->total, s->total);
	}
	return s->parent;
}

static uint32_t *open_of(struct operators *o, uint64_t gtid)
{
	uint32_t thread = nps_map__get(&o->threads, gtid), *open;

	if (thread != NPS_NONE)
		return &NPS_AT(&o->open, uint32_t, thread);
	if (nps_map__put(&o->threads, gtid, o->open.len))
		return NULL;
	open = nps_vec__push(&o->open);
	if (open)
		*open = NPS_NONE;
	return open;
}

static bool is_step(const struct nps_model *m, uint32_t name)
{
	return !strncmp(nps_model__text(m, name), "ProfilerStep#", 13);
}

static int add_op(struct operators *o, uint32_t row)
{
	const struct nps_torch_table *t = &o->m->torch;
	uint32_t *open = open_of(o, t->gtid[row]), op = o->ops.len, copied = nps_map__get(&o->copied, row);
	struct sums *s;

	if (!open)
		return -ENOMEM;
	s = nps_vec__push(&o->ops);
	if (!s)
		return -errno;
	s->row = row;
	s->parent = NPS_NONE;
	s->self = own_time(o, t->connection[row]);
	if (copied != NPS_NONE)
		add_time(&s->self, NPS_AT(&o->copies, struct nps_device_time, copied));
	s->total = s->self;
	while (*open != NPS_NONE && (end_of(o, *open) <= t->start[row] || end_of(o, *open) < t->end[row]))
		*open = close_op(o, *open);
	sums_at(o, op)->parent = *open;
	*open = op;
	return 0;
}

static int sum_up(struct operators *o)
{
	const struct nps_torch_table *t = &o->m->torch;
	struct nps_pace pace = { .model = o->m };
	int err = nps_device_times__init(&o->times, o->m);

	if (!err)
		err = nps_derive__visit_unlisted_copies(o->m, o, add_copy);
	for (size_t i = 0; !err && i < t->t.len; i++) {
		nps_pace__step(&pace);
		if (!(i & (NPS_TABLE_HOT - 1))) {
			nps_vec__cool(&o->ops);
			nps_device_times__cool(&o->times);
		}
		if (t->type[i] == NPS_API_TORCH_OP && t->end[i] >= t->start[i] && !is_step(o->m, t->name[i]))
			err = add_op(o, i);
	}
	for (size_t i = 0; !err && i < o->open.len; i++)
		for (uint32_t op = NPS_AT(&o->open, uint32_t, i); op != NPS_NONE;)
			op = close_op(o, op);
	return err;
}

static void put_us(struct nps_csv *csv, uint64_t ns)
{
	nps_csv__repr(csv, (double)ns / 1000);
}

/* Nothing is the integer with which Python's sum begins. */
static void put_device_us(struct nps_csv *csv, uint64_t ns)
{
	if (ns)
		put_us(csv, ns);
	else
		nps_csv__lit(csv, "0");
}

static void put_lines(struct nps_csv *csv, uint32_t text)
{
	const char *bytes = text == NPS_NONE ? "" : nps_model__text(csv->model, text);

	if (!bytes[strcspn(bytes, "\r\n")]) {
		if (*bytes)
			nps_csv__text(csv, text);
		else
			nps_csv__empty(csv);
		return;
	}
	nps_csv__open_quotes(csv);
	nps_csv__piece(csv, bytes);
	nps_csv__close_quotes(csv);
}

/* Frames of a chain are together and the chains ascend. A chain of one plain line needs no quotes. */
static void put_stack(struct nps_csv *csv, int64_t chain, size_t *hint)
{
	const struct nps_frame_table *f = &csv->model->frame;
	size_t i;

	if (chain < 0 || chain >= NPS_NONE) {
		nps_csv__empty(csv);
		return;
	}
	i = lower_bound(f->id, f->t.len, chain, *hint);
	*hint = i;
	if (i == f->t.len || f->id[i] != chain) {
		nps_csv__empty(csv);
		return;
	}
	if (i + 1 == f->t.len || f->id[i + 1] != chain) {
		put_lines(csv, f->stack[i]);
		return;
	}
	nps_csv__open_quotes(csv);
	for (size_t first = i; i < f->t.len && f->id[i] == chain; i++) {
		if (i > first)
			nps_csv__piece(csv, ";\r\n");
		nps_csv__piece(csv, nps_model__text(csv->model, f->stack[i]));
	}
	nps_csv__close_quotes(csv);
}

static int write_rows(const struct operators *o, const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "operator_details",
		.header = "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),"
			  "Device Self Duration(us),Device Total Duration(us),"
			  "Device Self Duration With AICore(us),Device Total Duration With AICore(us)",
		.crlf = ex->generation == NPS_GENERATION_A
	};
	const struct nps_torch_table *t = &o->m->torch;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	size_t frame = 0;

	if (!csv)
		return -ENOMEM;
	for (size_t i = 0; i < o->ops.len; i++) {
		const struct sums *s = sums_at(o, i);
		uint64_t ns = t->end[s->row] - t->start[s->row];

		nps_csv__row(csv);
		nps_csv__text(csv, t->name[s->row]);
		put_lines(csv, t->input_shapes[s->row]);
		put_stack(csv, t->callchain[s->row], &frame);
		put_us(csv, ns > s->children ? ns - s->children : 0);
		put_us(csv, ns);
		put_device_us(csv, s->self.all);
		put_device_us(csv, s->total.all);
		put_device_us(csv, s->self.aicore);
		put_device_us(csv, s->total.aicore);
		nps_csv__end(csv);
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&o->ops);
	}
	return nps_csv__close(csv);
}

int nps_csv__operator_details(const struct nps_export *ex, int dirfd)
{
	struct operators o = { .m = ex->model };
	int err;

	nps_vec__init(&o.ops, ex->model->tmpfd, sizeof(struct sums));
	nps_vec__init(&o.open, ex->model->tmpfd, sizeof(uint32_t));
	nps_vec__init(&o.copies, ex->model->tmpfd, sizeof(struct nps_device_time));
	err = sum_up(&o);
	if (!err)
		err = write_rows(&o, ex, dirfd);
	nps_device_times__free(&o.times);
	nps_vec__free(&o.ops);
	nps_vec__free(&o.open);
	nps_map__free(&o.threads);
	nps_vec__free(&o.copies);
	nps_map__free(&o.copied);
	return err;
}
