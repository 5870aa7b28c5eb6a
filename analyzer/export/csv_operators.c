/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * operator_details: a row per framework operator, with its time on the host and on the device, by itself
 * and with the operators inside it. Two passes, because an operator's children come after it: sums, then
 * rows.
 */
#include "derive/derive.h"
#include "export/csv_device_time.h"
#include "export/csv_tables.h"
#include "export/table.h"

#include <errno.h>

struct op_sums {
	uint64_t children; /* ns of direct children on the host */
	struct nps_device_time self, total;
	uint32_t parent; /* number of the operator around, NPS_NONE */
	uint32_t row; /* of `torch` */
};

struct op_totals {
	const struct nps_model *m;
	struct nps_device_times times;
	struct nps_vec ops; /* struct op_sums, in the order of `torch` */
	struct nps_map threads; /* gtid -> open */
	struct nps_vec open; /* uint32_t: innermost open operator of a thread, NPS_NONE */
	size_t link; /* where the next operator's rows of `link` are expected */
	struct nps_map copied; /* row of `torch` -> row of `copies` */
	struct nps_vec copies; /* struct nps_device_time: of copies that operators do not list */
};

static struct op_sums *sums_at(const struct op_totals *o, uint32_t op)
{
	return &NPS_AT(&o->ops, struct op_sums, op);
}

static uint64_t op_start(const struct op_totals *o, uint32_t op)
{
	return o->m->torch.start[sums_at(o, op)->row];
}

static uint64_t end_of(const struct op_totals *o, uint32_t op)
{
	return o->m->torch.end[sums_at(o, op)->row];
}

static void device_time_sum(struct nps_device_time *to, struct nps_device_time what)
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
static struct nps_device_time own_time(struct op_totals *o, int64_t connection)
{
	const struct nps_link_table *link = &o->m->link;
	struct nps_device_time sum = { 0 };

	if (connection < 0 || connection >= NPS_NONE)
		return sum;
	o->link = lower_bound(link->id, link->t.len, connection, o->link);
	for (; o->link < link->t.len && link->id[o->link] == connection; o->link++)
		device_time_sum(&sum, nps_device_times__get(&o->times, link->connection[o->link]));
	return sum;
}

static int op_add_copy(void *ctx, uint32_t op, uint32_t connection)
{
	struct op_totals *o = ctx;
	uint32_t row = nps_map__get(&o->copied, op);
	int err = 0;

	if (row == NPS_NONE) {
		row = o->copies.len;
		if (!nps_vec__push(&o->copies))
			return -errno;
		err = nps_map__put(&o->copied, op, row);
	}
	device_time_sum(&NPS_AT(&o->copies, struct nps_device_time, row),
			nps_device_times__get(&o->times, connection));
	return err;
}

/* The operator ends: what was in it is in the one around it. */
static uint32_t close_op(struct op_totals *o, uint32_t op)
{
	struct op_sums *s = sums_at(o, op);

	if (s->parent != NPS_NONE) {
		struct op_sums *around = sums_at(o, s->parent);

		around->children = nps_add_sat(around->children, end_of(o, op) - op_start(o, op));
		device_time_sum(&around->total, s->total);
	}
	return s->parent;
}

static uint32_t *open_of(struct op_totals *o, uint64_t gtid)
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

static int op_add(struct op_totals *o, uint32_t row)
{
	const struct nps_torch_table *t = &o->m->torch;
	uint32_t *open = open_of(o, t->gtid[row]), op = o->ops.len, copied = nps_map__get(&o->copied, row);
	struct op_sums *s;

	if (!open)
		return -ENOMEM;
	s = nps_vec__push(&o->ops);
	if (!s)
		return -errno;
	s->row = row;
	s->parent = NPS_NONE;
	s->self = own_time(o, t->connection[row]);
	if (copied != NPS_NONE)
		device_time_sum(&s->self, NPS_AT(&o->copies, struct nps_device_time, copied));
	s->total = s->self;
	while (*open != NPS_NONE && (end_of(o, *open) <= t->start[row] || end_of(o, *open) < t->end[row]))
		*open = close_op(o, *open);
	sums_at(o, op)->parent = *open;
	*open = op;
	return 0;
}

static int operators_sum(struct op_totals *o)
{
	const struct nps_torch_table *t = &o->m->torch;
	struct nps_pace pace = { .model = o->m };
	int err = nps_device_times__init(&o->times, o->m);

	if (err)
		return err;
	err = nps_derive__visit_unlisted_copies(o->m, o, op_add_copy);
	for (size_t i = 0; !err && i < t->t.len; i++) {
		nps_pace__step(&pace);
		if (!(i & (NPS_TABLE_HOT - 1))) {
			nps_vec__cool(&o->ops);
			nps_device_times__cool(&o->times);
		}
		if (t->type[i] == NPS_API_TORCH_OP && t->end[i] >= t->start[i] && !is_step(o->m, t->name[i]))
			err = op_add(o, i);
	}
	for (size_t i = 0; !err && i < o->open.len; i++)
		for (uint32_t op = NPS_AT(&o->open, uint32_t, i); op != NPS_NONE;)
			op = close_op(o, op);
	return err;
}

/* --- rows -------------------------------------------------------------------------------------------- */

enum { SUMS_SOURCE, TORCH_SOURCE, OWN_SOURCE };

/* What neither the sums nor a row of `torch` hold. */
struct operator_row {
	const struct op_totals *o;
	size_t next; /* operator */
	size_t frame; /* row of `frame` near which the next chain is expected */
	uint64_t host_self, host_total;
};

static bool next_operator(void *ctx, struct nps_csv_row *row)
{
	struct operator_row *r = ctx;
	const struct nps_torch_table *t = &r->o->m->torch;
	const struct op_sums *s;

	if (r->next == r->o->ops.len)
		return false;
	if (!(r->next & (NPS_TABLE_HOT - 1)))
		nps_vec__cool(&r->o->ops);
	row->at[SUMS_SOURCE] = r->next++;
	s = sums_at(r->o, row->at[SUMS_SOURCE]);
	row->at[TORCH_SOURCE] = s->row;
	r->host_total = t->end[s->row] - t->start[s->row];
	r->host_self = r->host_total > s->children ? r->host_total - s->children : 0;
	return true;
}

static void put_text_lines(struct nps_csv *csv, uint32_t text)
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
	nps_csv__part(csv, bytes);
	nps_csv__close_quotes(csv);
}

static void put_shapes(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	(void)ctx;
	put_text_lines(csv, csv->model->torch.input_shapes[row->at[TORCH_SOURCE]]);
}

/* Frames of a chain are together and the chains ascend. A chain of one plain line needs no quotes. */
static void put_stack(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	int64_t chain = csv->model->torch.callchain[row->at[TORCH_SOURCE]];
	const struct nps_frame_table *f = &csv->model->frame;
	struct operator_row *r = ctx;
	size_t i;

	if (chain < 0 || chain >= NPS_NONE) {
		nps_csv__empty(csv);
		return;
	}
	i = lower_bound(f->id, f->t.len, chain, r->frame);
	r->frame = i;
	if (i == f->t.len || f->id[i] != chain) {
		nps_csv__empty(csv);
		return;
	}
	if (i + 1 == f->t.len || f->id[i + 1] != chain) {
		put_text_lines(csv, f->stack[i]);
		return;
	}
	nps_csv__open_quotes(csv);
	for (size_t first = i; i < f->t.len && f->id[i] == chain; i++) {
		if (i > first)
			nps_csv__part(csv, ";\r\n");
		nps_csv__part(csv, nps_model__text(csv->model, f->stack[i]));
	}
	nps_csv__close_quotes(csv);
}

#define HOST_US(title, member)                                                                               \
	NPS_CSV_FIELD(title, REPR, struct operator_row, member, .source = OWN_SOURCE, .per = 1000)
/* A sum of nothing is an integer, with which Python's sum() begins. */
#define DEVICE_US(title, member) NPS_CSV_FIELD(title, REPR_INT_0, struct op_sums, member, .per = 1000)

static const struct nps_csv_column columns[] = {
	NPS_CSV_COL("Name", TEXT, torch, name, .source = TORCH_SOURCE),
	NPS_CSV_BY("Input Shapes", put_shapes),
	NPS_CSV_BY("Call Stack", put_stack),
	HOST_US("Host Self Duration(us)", host_self),
	HOST_US("Host Total Duration(us)", host_total),
	DEVICE_US("Device Self Duration(us)", self.all),
	DEVICE_US("Device Total Duration(us)", total.all),
	DEVICE_US("Device Self Duration With AICore(us)", self.aicore),
	DEVICE_US("Device Total Duration With AICore(us)", total.aicore),
};

static const struct nps_csv_table table = { "operator_details", .crlf = true,
					    .columns = NPS_CSV_COLUMNS(columns) };

static int operators_write(const struct op_totals *o, const struct nps_export *ex, int dirfd)
{
	struct operator_row row = { .o = o };

	return nps_csv_table__write(
		ex, dirfd, &table,
		&(struct nps_csv_input){
			.sources = { [SUMS_SOURCE] = { NULL, o->ops.data, sizeof(struct op_sums) },
				     [TORCH_SOURCE].table = &o->m->torch.t,
				     [OWN_SOURCE].structs = &row },
			.next = next_operator,
			.ctx = &row });
}

int nps_csv__operator_details(const struct nps_export *ex, int dirfd)
{
	struct op_totals o = { .m = ex->model };
	int err;

	nps_vec__init(&o.ops, ex->model->tmpfd, sizeof(struct op_sums));
	nps_vec__init(&o.open, ex->model->tmpfd, sizeof(uint32_t));
	nps_vec__init(&o.copies, ex->model->tmpfd, sizeof(struct nps_device_time));
	err = operators_sum(&o);
	err = err ? err : operators_write(&o, ex, dirfd);
	nps_device_times__free(&o.times);
	nps_vec__free(&o.ops);
	nps_vec__free(&o.open);
	nps_map__free(&o.threads);
	nps_vec__free(&o.copies);
	nps_map__free(&o.copied);
	return err;
}
