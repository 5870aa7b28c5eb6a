/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of CANN by level and name: how often, how long, and where the longest is. */
#include "findings/findings.h"

#include "derive/group_by.h"

#include <cjson/cJSON.h>
#include <errno.h>

#define ROWS 200

static int apis_collect(const struct nps_model *m, struct nps_group_by *apis)
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
		nps_group__add(api, nps_span(t->start[i], t->end[i]), i);
	}
	return 0;
}

static const char *api_level_name(uint32_t type)
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

#define LONGEST(column) m->api.column[r->longest]

#define API_COLUMNS(C)                                                                                       \
	C("name", TEXT, "name", nps_model__text(m, (uint32_t)r->key))                                        \
	C("level", TEXT, "level", api_level_name((uint32_t)r->sub))                                          \
	C("count", COUNT, "count", r->count)                                                                 \
	C("total_us", NS, "total", r->total)                                                                 \
	C("mean_us", US, "mean", r->total / 1e3 / r->count)                                                  \
	C("max_us", NS, "max", r->most)                                                                      \
	C("longest_at_us", TIME, "longest at, ms", LONGEST(start))                                           \
	C("longest_in_thread", COUNT, "longest in thread", LONGEST(gtid) & UINT32_MAX, .print = 7)

NPS_FIND_TABLE(table, "apis.rows", "CANN calls, by time, us", struct nps_model, struct nps_group, API_COLUMNS)

static void apis_report(const struct nps_model *m, cJSON *document, struct nps_group_by *apis)
{
	nps_group_by__sort(apis, nps_group__by_total);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(document, "apis"), "names",
				(double)nps_group_by__len(apis));
	nps_find__rows(document, &table, m, apis->rows.data, NPS_MIN(apis->rows.len, (size_t)ROWS),
		       apis->rows.elem);
}

static int apis_find(struct nps_find *find)
{
	struct nps_group_by apis;
	int err;

	if (!find->model->api.t.len)
		return 0;
	nps_group_by__init(&apis, find->model, sizeof(struct nps_group));
	err = apis_collect(find->model, &apis);
	if (err || !nps_group_by__len(&apis))
		goto out;
	apis_report(find->model, find->document, &apis);
out:
	nps_group_by__free(&apis);
	return err;
}

const struct nps_find_question nps_question_apis = { .find = apis_find, .tables = { &table } };
