/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of CANN by level and name: how often, how long, and where the longest is. */
#include "findings/findings.h"

#include "derive/group_by.h"

#include <cjson/cJSON.h>
#include <errno.h>

#define ROWS 200

static int collect(const struct nps_model *m, struct nps_group_by *apis)
{
	const struct nps_api_table *t = &m->api;
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		struct nps_group *api;

		if (t->name[i] == NPS_NONE)
			continue;
		api = nps_group_by__get(apis, t->name[i], t->type[i]);
		if (!api)
			return -errno;
		nps_group__add(api, nps_find__ns(t->start[i], t->end[i]), i);
	}
	return 0;
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

static void report(const struct nps_model *m, cJSON *document, struct nps_group_by *apis)
{
	cJSON *section = cJSON_AddObjectToObject(document, "apis"), *list;
	const struct nps_api_table *t = &m->api;

	nps_group_by__sort(apis, nps_group__by_total);
	cJSON_AddNumberToObject(section, "names", (double)nps_group_by__len(apis));
	list = cJSON_AddArrayToObject(section, "rows");
	for (size_t i = 0; i < NPS_MIN(nps_group_by__len(apis), (size_t)ROWS); i++) {
		const struct nps_group *api = nps_group_by__at(apis, i);
		cJSON *row = cJSON_CreateObject();

		cJSON_AddItemToArray(list, row);
		cJSON_AddStringToObject(row, "name", nps_model__text(m, (uint32_t)api->key));
		cJSON_AddStringToObject(row, "level", level((uint32_t)api->sub));
		cJSON_AddNumberToObject(row, "count", (double)api->count);
		nps_find__number(row, "total_us", api->total / 1e3);
		nps_find__number(row, "mean_us", api->total / 1e3 / api->count);
		nps_find__number(row, "max_us", api->most / 1e3);
		nps_find__time(row, "longest_at_us", t->start[api->longest]);
		cJSON_AddNumberToObject(row, "longest_in_thread",
					(double)(t->gtid[api->longest] & UINT32_MAX));
	}
}

int nps_find__apis(struct nps_find *find)
{
	struct nps_group_by apis;
	int err;

	if (!find->model->api.t.len)
		return 0;
	nps_group_by__init(&apis, find->model, sizeof(struct nps_group));
	err = collect(find->model, &apis);
	if (!err && nps_group_by__len(&apis))
		report(find->model, find->document, &apis);
	nps_group_by__free(&apis);
	return err;
}
