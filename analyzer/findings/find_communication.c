/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives: by type and group; where sub-tasks were recorded, waiting for peers against transfer. */
#include "findings/findings.h"

#include "derive/group_by.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 50
#define SLOW_LINK 3.0 /* times that another link is faster */

struct collectives {
	const struct nps_model *m;
	struct nps_group_by kinds; /* by type and group */
	uint64_t total, unmeasured;
};

/* Imported collectives have no counts of tasks: they were measured. */
static bool collective_is_measured(const struct nps_model *m, size_t i)
{
	return m->comm_op.measured[i] || !m->comm_op.tasks[i];
}

static int collective_add(struct collectives *c, size_t i)
{
	const struct nps_comm_op_table *t = &c->m->comm_op;
	struct nps_group *kind = nps_group_by__get(&c->kinds, t->type[i], t->group[i]);
	uint64_t ns = nps_span(t->start[i], t->end[i]);

	if (!kind)
		return -errno;
	if (!collective_is_measured(c->m, i)) {
		nps_group__count(kind, i);
		c->unmeasured++;
		return 0;
	}
	nps_group__add(kind, ns, i);
	c->total += ns;
	return 0;
}

/* The longest total first; of equal ones that whose longest collective began before. */
static int collective_compare_total(const void *a, const void *b)
{
	const struct nps_group *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->longest > y->longest) - (x->longest < y->longest);
}

#define SLOWEST(column) m->comm_op.column[r->longest]
#define KNOWN(number) (r->measured ? (number) : NPS_NAN)

#define KIND_COLUMNS(C)                                                                                      \
	C("type", TEXT, "type", nps_model__text_or_na(m, (uint32_t)r->key))                                  \
	C("group", TEXT, "group", nps_model__text_or_na(m, (uint32_t)r->sub))                                \
	C("count", COUNT, "count", r->count)                                                                 \
	C("total_us", US, "total", KNOWN(r->total / 1e3))                                                    \
	C("mean_us", US, "mean", KNOWN(r->total / 1e3 / r->measured))                                        \
	C("max_us", US, "max", KNOWN(r->most / 1e3))                                                         \
	C("slowest.name", TEXT, "slowest", r->measured ? nps_model__text(m, SLOWEST(name)) : NULL,           \
	  .optional = true)                                                                                  \
	C("slowest.device", COUNT, NULL, KNOWN(SLOWEST(device)), .optional = true)                           \
	C("slowest.start_us", TIME, "slowest at, ms", r->measured ? SLOWEST(start) : NPS_FIND_NEVER,         \
	  .optional = true)                                                                                  \
	C("slowest.end_us", TIME, NULL, r->measured ? SLOWEST(end) : NPS_FIND_NEVER, .optional = true)

NPS_FIND_TABLE(table, "communication.rows", "collectives, by time, us", struct nps_model, struct nps_group,
	       KIND_COLUMNS)

/* Sums of the statistics of the single collectives, ms; those of steps and totals are not in the table. */
static int report_waits(struct nps_find *find, cJSON *section)
{
	const struct nps_comm_time_table *t = &find->model->comm_time;
	double elapse = 0, wait = 0, transit = 0, sync = 0;
	cJSON *numbers;

	if (!t->t.len) {
		cJSON_AddStringToObject(section, "wait_and_transfer",
					"not known: the tasks of the collectives were not recorded with "
					"their sizes and links");
		return 0;
	}
	for (size_t i = 0; i < t->t.len; i++) {
		elapse += t->elapse[i];
		wait += t->wait[i];
		transit += t->transit[i];
		sync += t->synchronization[i];
	}
	numbers = cJSON_AddObjectToObject(section, "wait_and_transfer");
	nps_find__number(numbers, "elapse_us", elapse * 1e3);
	nps_find__number(numbers, "wait_us", wait * 1e3);
	nps_find__number(numbers, "synchronization_us", sync * 1e3);
	nps_find__number(numbers, "transit_us", transit * 1e3);
	if (wait + transit <= 0 || wait < 0.3 * (wait + transit) || find->span_us <= 0)
		return 0;
	return nps_find__add(
		find, "communication_wait", nps_find__mean_share(find, wait * 1e3),
		cJSON_Duplicate(numbers, 1), NULL,
		"the peers arrive late or unevenly: compare the ranks (`npuscope show` over all of them) and "
		"look at the rank that waits least",
		"collectives wait for their peers for %.1f %% of wait and transfer (%.1f of %.1f us)",
		100 * wait / (wait + transit), wait * 1e3, (wait + transit) * 1e3);
}

/* What went over a link between two ranks of a group, in all operators. */
struct link_sums {
	uint32_t transport, group, src, dst; /* ranks are numbered within their group */
	double size, time; /* MB, ms */
};

#define LINKS 65536

/* The row holds all transfers of its operator over the link; other rows of it are single ones of these. */
static bool is_total(const struct nps_model *m, size_t i)
{
	const char *op = nps_model__text(m, m->comm_matrix.op[i]);
	size_t len = strlen(op);

	return len >= 6 && !strcmp(op + len - 6, "-total");
}

/* Without sums, as in the layout of 2023, each row is a collective of its own. */
static bool any_totals(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < m->comm_matrix.t.len; i++, nps_pace__step(&pace))
		if (is_total(m, i))
			return true;
	return false;
}

static int collect_links(const struct nps_model *m, struct nps_vec *links)
{
	const struct nps_comm_matrix_table *t = &m->comm_matrix;
	struct nps_map rows = { 0 };
	struct nps_pace pace = { .model = m };
	bool totals = any_totals(m);
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++) {
		uint64_t key = nps_hash2((uint64_t)t->src[i] << 32 | t->dst[i],
					 (uint64_t)t->transport[i] << 32 | t->group[i]);
		uint32_t row = nps_map__get(&rows, key);
		struct link_sums *link;

		nps_pace__step(&pace);
		if ((totals && !is_total(m, i)) || t->src[i] == t->dst[i] || !(t->size[i] > 0) ||
		    !(t->time[i] > 0) || (row == NPS_NONE && links->len == LINKS))
			continue;
		link = row == NPS_NONE ? nps_vec__push(links) : &NPS_AT(links, struct link_sums, row);
		if (!link || (row == NPS_NONE && nps_map__put(&rows, key, links->len - 1)))
			err = -ENOMEM;
		if (err)
			break;
		link->transport = t->transport[i];
		link->group = t->group[i];
		link->src = t->src[i];
		link->dst = t->dst[i];
		link->size += t->size[i];
		link->time += t->time[i];
	}
	nps_map__free(&rows);
	return err;
}

static double speed(const struct link_sums *link)
{
	return link->size / link->time;
}

static int report_slow_link(struct nps_find *find, const struct link_sums *slow, const struct link_sums *fast)
{
	const struct nps_model *m = find->model;
	cJSON *numbers = cJSON_CreateObject(), *where = cJSON_CreateObject();

	nps_find__number(numbers, "slow_gb_per_s", speed(slow));
	nps_find__number(numbers, "fast_gb_per_s", speed(fast));
	nps_find__number(numbers, "slow_mb", slow->size);
	nps_find__number(numbers, "slow_us", slow->time * 1e3);
	cJSON_AddStringToObject(where, "group", nps_model__text_or_na(m, slow->group));
	cJSON_AddStringToObject(where, "slow_link_from", nps_model__text(m, slow->src));
	cJSON_AddStringToObject(where, "slow_link_to", nps_model__text(m, slow->dst));
	return nps_find__add(find, "slow_link", nps_find__share(find, slow->time * 1e3), numbers, where,
			     "compare packet sizes of the two links in communication_matrix.json; small "
			     "packets, a busy or a degraded link are the usual reasons",
			     "%s from rank %s to %s of group %s carries %.2f GB/s, while another link "
			     "reaches %.2f GB/s",
			     nps_model__text(m, slow->transport), nps_model__text(m, slow->src),
			     nps_model__text(m, slow->dst), nps_model__text_or_na(m, slow->group),
			     speed(slow), speed(fast));
}

/*
 * The link that is furthest below the best one of its transport; links that carry little are not
 * judged: their packets are small.
 */
static int slow_links(struct nps_find *find)
{
	const struct link_sums *slow = NULL, *fast = NULL;
	struct nps_map best = { 0 }; /* transport -> link */
	struct nps_vec links;
	int err;

	nps_vec__init(&links, find->model->tmpfd, sizeof(struct link_sums));
	err = collect_links(find->model, &links);
	for (size_t i = 0; !err && i < links.len; i++) {
		const struct link_sums *link = &NPS_AT(&links, struct link_sums, i);
		uint32_t row = nps_map__get(&best, link->transport);

		if (row == NPS_NONE || speed(link) > speed(&NPS_AT(&links, struct link_sums, row)))
			err = nps_map__put(&best, link->transport, i);
	}
	for (size_t i = 0; !err && i < links.len; i++) {
		const struct link_sums *link = &NPS_AT(&links, struct link_sums, i);
		const struct link_sums *top =
			&NPS_AT(&links, struct link_sums, nps_map__get(&best, link->transport));

		if (speed(top) < SLOW_LINK * speed(link) || link->size < 0.1 * top->size || link->size < 1)
			continue;
		if (!slow || speed(top) / speed(link) > speed(fast) / speed(slow)) {
			slow = link;
			fast = top;
		}
	}
	if (err || !slow)
		goto out;
	err = report_slow_link(find, slow, fast);
out:
	nps_map__free(&best);
	nps_vec__free(&links);
	return err;
}

static int communication_report(struct nps_find *find, struct collectives *c)
{
	cJSON *section = cJSON_AddObjectToObject(find->document, "communication");
	int err;

	nps_group_by__sort(&c->kinds, collective_compare_total);
	nps_find__number(section, "total_us", c->unmeasured < c->m->comm_op.t.len ? c->total / 1e3 : NPS_NAN);
	cJSON_AddNumberToObject(section, "collectives", (double)c->m->comm_op.t.len);
	cJSON_AddNumberToObject(section, "without_measured_tasks", (double)c->unmeasured);
	nps_find__rows(find->document, &table, c->m, c->kinds.rows.data,
		       NPS_MIN(c->kinds.rows.len, (size_t)ROWS), c->kinds.rows.elem);
	err = report_waits(find, section);
	return err ? err : slow_links(find);
}

static int communication_find(struct nps_find *find)
{
	struct collectives c = { .m = find->model };
	struct nps_pace pace = { .model = find->model };
	int err = 0;

	nps_group_by__init(&c.kinds, c.m, sizeof(struct nps_group));
	for (size_t i = 0; !err && i < c.m->comm_op.t.len; i++) {
		err = collective_add(&c, i);
		nps_pace__step(&pace);
	}
	if (err || !nps_group_by__len(&c.kinds))
		goto out;
	err = communication_report(find, &c);
out:
	nps_group_by__free(&c.kinds);
	return err;
}

static void communication_show(const struct nps_view *v)
{
	const cJSON *numbers = nps_view__at(v, "communication.wait_and_transfer");

	nps_view__unmeasured(v, &table, "communication.without_measured_tasks", "collectives");
	if (cJSON_IsObject(numbers))
		fprintf(v->out,
			"of %.3f us they waited %.3f us (%.3f us for the first synchronization) and "
			"transferred %.3f us\n",
			nps_view__number(numbers, "elapse_us"), nps_view__number(numbers, "wait_us"),
			nps_view__number(numbers, "synchronization_us"),
			nps_view__number(numbers, "transit_us"));
}

const struct nps_find_question nps_question_communication = { communication_find,
							      { &table },
							      communication_show };
