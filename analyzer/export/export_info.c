/* SPDX-License-Identifier: BSD-2-Clause */
/* profiler_info_{rank}.json and profiler_metadata.json (outputs 5.3, 5.4). */
#include "export/export.h"

#include "base/json_writer.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>

/* cJSON indents by tabs; the vendor's files by four spaces. */
static void write_indented(struct nps_writer *w, const char *json)
{
	bool line = true;

	for (; *json; json++) {
		if (line && *json == '\t') {
			nps_writer__lit(w, "    ");
			continue;
		}
		nps_writer__bytes(w, *json == '\t' ? " " : json, 1);
		line = *json == '\n';
	}
}

static int write_json(const cJSON *json, int dirfd, const char *name)
{
	char *text = cJSON_Print(json);
	struct nps_writer w;
	int err = text ? nps_writer__open(&w, dirfd, name) : -ENOMEM;

	if (err)
		goto out;
	write_indented(&w, text);
	err = nps_writer__close(&w);
out:
	cJSON_free(text);
	return err;
}

/* A copy that lists the formats that were written. */
static cJSON *with_formats(const cJSON *info, unsigned int formats)
{
	cJSON *copy = cJSON_Duplicate(info, 1), *config, *list;

	config = cJSON_GetObjectItemCaseSensitive(copy, "config");
	config = cJSON_GetObjectItemCaseSensitive(config, "experimental_config");
	list = cJSON_IsObject(config) ? cJSON_CreateArray() : NULL;
	if (!list)
		return copy;
	if (formats & NPS_FORMAT_TEXT)
		cJSON_AddItemToArray(list, cJSON_CreateString("text"));
	if (formats & NPS_FORMAT_DB)
		cJSON_AddItemToArray(list, cJSON_CreateString("db"));
	if (!cJSON_ReplaceItemInObjectCaseSensitive(config, "_export_type", list))
		cJSON_Delete(list);
	return copy;
}

int nps_export__info(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *model = ex->model;
	cJSON *info;
	char name[64];
	int err = 0;

	if (model->info) {
		info = with_formats(model->info, ex->formats);
		snprintf(name, sizeof(name), "profiler_info_%u.json", model->rank);
		err = info ? write_json(info, dirfd, name) : -ENOMEM;
		cJSON_Delete(info);
	}
	if (err || !model->metadata)
		return err;
	return write_json(model->metadata, dirfd, "profiler_metadata.json");
}
