/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of CANN by level and name: how often, how long, and where the longest is. */
#include "findings/findings.h"

#include "base/map.h"
#include "base/vec.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#define ROWS 200

struct api {
	uint32_t name, type, worst; /* worst: row of the longest */
	uint64_t count, total, worst_ns;
};

struct apis {
	const struct nps_model *m;
	struct nps_map rows; /* (type, name) -> row of list */
	struct nps_vec list; /* struct api */
};

static int add(struct apis *a, size_t i)
{
	const struct nps_api_table *t = &a->m->api;
	uint64_t ns = nps_find__ns(t->start[i], t->end[i]);
	uint64_t key = (uint64_t)t->type[i] << 32 | t->name[i];
	uint32_t row = nps_map__get(&a->rows, key);
	struct api *api;

	if (t->name[i] == NPS_NONE)
		return 0;
	if (row == NPS_NONE) {
		api = nps_vec__push(&a->list);
		if (!api || nps_map__put(&a->rows, key, a->list.len - 1))
			return -ENOMEM;
		api->name = t->name[i];
		api->type = t->type[i];
		api->worst = i;
	} else {
		api = &NPS_AT(&a->list, struct api, row);
	}
	api->count++;
	api->total = nps_add_sat(api->total, ns);
	if (ns > api->worst_ns) {
		api->worst_ns = ns;
		api->worst = i;
	}
	return 0;
}

static int by_total(const void *a, const void *b)
{
	const struct api *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->name != y->name)
		return x->name > y->name ? 1 : -1;
	return (x->type > y->type) - (x->type < y->type);
}

static const char *level(uint32_t type)
{
	switch (type) {
	case NPS_API_RUNTIME:
		return "runtime";
	case NPS_API_COMM:
		return "communication";
	case NPS_API_NODE:
		return "node";
	case NPS_API_MODEL:
		return "model";
	case NPS_API_ACL:
		return "acl";
	}
	return "other";
}

static void report(cJSON *document, struct apis *a)
{
	cJSON *section = cJSON_AddObjectToObject(document, "apis"), *list;
	const struct nps_api_table *t = &a->m->api;

	qsort(a->list.data, a->list.len, a->list.elem, by_total);
	cJSON_AddNumberToObject(section, "names", (double)a->list.len);
	list = cJSON_AddArrayToObject(section, "rows");
	for (size_t i = 0; i < NPS_MIN(a->list.len, (size_t)ROWS); i++) {
		const struct api *api = &NPS_AT(&a->list, struct api, i);
		cJSON *row = cJSON_CreateObject();

		cJSON_AddItemToArray(list, row);
		cJSON_AddStringToObject(row, "name", nps_model__text(a->m, api->name));
		cJSON_AddStringToObject(row, "level", level(api->type));
		cJSON_AddNumberToObject(row, "count", (double)api->count);
		nps_find__number(row, "total_us", api->total / 1e3);
		nps_find__number(row, "mean_us", api->total / 1e3 / api->count);
		nps_find__number(row, "max_us", api->worst_ns / 1e3);
		nps_find__time(row, "longest_at_us", t->start[api->worst]);
		cJSON_AddNumberToObject(row, "longest_in_thread", (double)(t->gtid[api->worst] & UINT32_MAX));
	}
}

int nps_find__apis(struct nps_find *find)
{
	struct apis a = { .m = find->model };
	struct nps_pace pace = { .model = find->model };
	int err = 0;

	if (!a.m->api.t.len)
		return 0;
	nps_vec__init(&a.list, a.m->tmpfd, sizeof(struct api));
	for (size_t i = 0; !err && i < a.m->api.t.len; i++) {
		nps_pace__step(&pace);
		err = add(&a, i);
	}
	if (!err && a.list.len)
		report(find->document, &a);
	nps_vec__free(&a.list);
	nps_map__free(&a.rows);
	return err;
}
