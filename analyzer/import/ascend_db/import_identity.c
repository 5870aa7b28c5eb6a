/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose database it is: the tables of one row or a few, META_DATA, and the json files beside it. */
#include "base/input_file.h"
#include "base/json.h"
#include "import/ascend_db/import_db.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- tables --- */

static sqlite3_stmt *table_open(struct nps_db_import *in, const char *table, const char *sql)
{
	return nps_db_source__has_table(&in->source, table) ? nps_db_source__prepare(&in->source, sql) : NULL;
}

/* Any text of a cell; long ones stay whole. */
static uint32_t identity_cell_text(struct nps_db_import *in, sqlite3_stmt *stmt, int i)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);

	if (!text)
		return NPS_NONE;
	return nps_strings__append_new(in->model->strings, text, sqlite3_column_bytes(stmt, i));
}

static void session_time(struct nps_db_import *in)
{
	sqlite3_stmt *stmt = table_open(in, "SESSION_TIME_INFO",
					"SELECT startTimeNs,endTimeNs FROM SESSION_TIME_INFO LIMIT 1");

	if (stmt && nps_db_source__step(&in->source, stmt) == SQLITE_ROW) {
		int64_t start = sqlite3_column_int64(stmt, 0), end = sqlite3_column_int64(stmt, 1);

		if (start > 0 && end >= start) {
			in->model->start = in->latest = start;
			in->model->end = end;
		} else {
			nps_model__lost(in->model, 1, "impossible times of SESSION_TIME_INFO");
		}
	}
	sqlite3_finalize(stmt);
}

static void import_host_info(struct nps_db_import *in)
{
	sqlite3_stmt *stmt = table_open(in, "HOST_INFO", "SELECT hostUid,hostName FROM HOST_INFO LIMIT 1");

	if (stmt && nps_db_source__step(&in->source, stmt) == SQLITE_ROW) {
		in->model->host_uid = identity_cell_text(in, stmt, 0);
		in->model->host_name = identity_cell_text(in, stmt, 1);
	}
	sqlite3_finalize(stmt);
}

#define MOST_DEVICES 1024

static int add_device(struct nps_model *model, int64_t id, uint32_t chip, size_t *row)
{
	int err = nps_table__add(&model->device.t, row);

	if (err)
		return err;
	model->device.id[*row] = id;
	model->device.chip[*row] = chip;
	model->device.rank[*row] = NPS_NULL;
	model->device.aic_mhz[*row] = NPS_NAN;
	return 0;
}

/* *WITHOUT: the database states that there is no device. */
static int import_devices(struct nps_db_import *in, bool *without)
{
	sqlite3_stmt *stmt = table_open(in, "NPU_INFO", "SELECT id,name FROM NPU_INFO");
	size_t row;
	int err = 0;

	while (stmt && !err && nps_db_source__step(&in->source, stmt) == SQLITE_ROW &&
	       in->model->device.t.len < MOST_DEVICES) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		if (id < 0)
			*without = true;
		else
			err = add_device(in->model, id, identity_cell_text(in, stmt, 1), &row);
	}
	sqlite3_finalize(stmt);
	return err;
}

static int map_rank(struct nps_model *model, int64_t rank, int64_t device, bool without)
{
	size_t row = 0;
	int err = 0;

	while (row < model->device.t.len && model->device.id[row] != device)
		row++;
	if (row == model->device.t.len && without)
		return 0;
	if (row == model->device.t.len)
		err = add_device(model, device, NPS_NONE, &row);
	if (err)
		return err;
	model->device.rank[row] = rank;
	return 0;
}

static int ranks(struct nps_db_import *in, bool without)
{
	struct nps_model *model = in->model;
	sqlite3_stmt *stmt = table_open(in, "RANK_DEVICE_MAP", "SELECT rankId,deviceId FROM RANK_DEVICE_MAP");
	int err = 0;

	while (stmt && !err && nps_db_source__step(&in->source, stmt) == SQLITE_ROW &&
	       model->device.t.len < MOST_DEVICES) {
		int64_t rank = sqlite3_column_int64(stmt, 0);

		err = map_rank(model, rank, sqlite3_column_int64(stmt, 1), without);
		if (!model->has_rank && rank >= 0 && rank < NPS_NO_ID) {
			model->has_rank = true;
			model->rank = rank;
		}
	}
	sqlite3_finalize(stmt);
	return err;
}

/* --- META_DATA --- */

/* Values that readers take for JSON objects. */
static bool is_object(const char *name)
{
	return !strcmp(name, "ENV_VARIABLES") || !strcmp(name, "parallel_group_info") ||
	       !strcmp(name, "distributed_args");
}

/* False: the value is not what its name promises. */
static bool keep_metadata(struct nps_model *model, const char *name, const char *value)
{
	cJSON *parsed = nps_fw_json__parse(value);

	if (is_object(name) && !cJSON_IsObject(parsed)) {
		cJSON_Delete(parsed);
		return false;
	}
	if (!parsed)
		parsed = cJSON_CreateString(value);
	if (!model->metadata)
		model->metadata = cJSON_CreateObject();
	if (cJSON_GetObjectItemCaseSensitive(model->metadata, name) ||
	    !cJSON_AddItemToObject(model->metadata, name, parsed))
		cJSON_Delete(parsed);
	return true;
}

static void note_unknown(struct nps_db_import *in, const char *value)
{
	cJSON *list = nps_fw_json__parse(value);
	const cJSON *table;

	nps_model__lost(in->model, !cJSON_IsArray(list), "values of META_DATA that are damaged");
	cJSON_ArrayForEach(table, list)
	{
		const char *name = cJSON_GetStringValue(table);

		for (size_t i = 0; name && i < NPS_DB_USAGES; i++)
			if (!strcmp(name, nps_db_usages[i].name))
				in->zero_is_unknown |= 1U << i;
	}
	cJSON_Delete(list);
}

static int meta_row(struct nps_db_import *in, sqlite3_stmt *stmt)
{
	struct nps_model *model = in->model;
	uint32_t name = identity_cell_text(in, stmt, 0), value = identity_cell_text(in, stmt, 1);
	size_t row;
	int err;

	if (name == NPS_NONE || value == NPS_NONE) {
		nps_model__lost(model, 1, "rows of META_DATA without a name or a value");
		return 0;
	}
	if (!strcmp(nps_model__text(model, name), NPS_DB_UNKNOWN_IS_0)) {
		note_unknown(in, nps_model__text(model, value));
		return 0;
	}
	if (strncmp(nps_model__text(model, name), "SCHEMA_VERSION", strlen("SCHEMA_VERSION")) &&
	    !keep_metadata(model, nps_model__text(model, name), nps_model__text(model, value))) {
		nps_model__lost(model, 1, "values of META_DATA that are damaged");
		return 0;
	}
	err = nps_table__add(&model->meta.t, &row);
	if (err)
		return err;
	model->meta.name[row] = name;
	model->meta.value[row] = value;
	return 0;
}

#define MOST_META 1024 /* rows; real ones are ten. Each is looked for among those before it. */

static int import_meta_data(struct nps_db_import *in)
{
	sqlite3_stmt *stmt = table_open(in, "META_DATA", "SELECT name,value FROM META_DATA");
	int rc = SQLITE_DONE, rows = 0, err = 0;

	while (stmt && !err && rows <= MOST_META &&
	       (rc = nps_db_source__step(&in->source, stmt)) == SQLITE_ROW)
		err = rows++ < MOST_META ? meta_row(in, stmt) : 0;
	sqlite3_finalize(stmt);
	nps_model__lost(in->model, rows > MOST_META, "rest of table META_DATA, which has too many rows");
	nps_model__lost(in->model, !err && rc != SQLITE_DONE && rows <= MOST_META,
			"rest of table META_DATA, which is damaged");
	return err;
}

/* The columns count more than the version: versions between the two generations have columns of both. */
static void detect_generation(struct nps_db_import *in)
{
	struct nps_model *model = in->model;
	unsigned int major = 0, minor = 0;
	const char *table = "COMPUTE_TASK_INFO";
	bool old = false;

	for (size_t i = 0; i < model->meta.t.len; i++)
		if (!strcmp(nps_model__text(model, model->meta.name[i]), "SCHEMA_VERSION") &&
		    sscanf(nps_model__text(model, model->meta.value[i]), "%u.%u", &major, &minor) == 2)
			old = major < 1 || (major == 1 && minor < 1);
	if (nps_db_source__has_column(&in->source, table, "blockNum"))
		old = false;
	else if (nps_db_source__has_column(&in->source, table, "blockDim"))
		old = true;
	model->generation = old ? NPS_GENERATION_A : NPS_GENERATION_B;
	in->generation = nps_db_generation(model->generation);
}

/* --- files beside it --- */

/* The object in file NAME of DIRFD; NULL: none. A file that is there and is not one is counted. */
static cJSON *directory_read_json(struct nps_db_import *in, int dirfd, const char *name)
{
	cJSON *json = nps_fw_json__read(dirfd, name);
	char shown[64];

	if (cJSON_IsObject(json) || (!json && errno == ENOENT))
		return json;
	cJSON_Delete(json);
	nps_model__lost(in->model, 1, "file %s, which is no json object",
			nps_db_printable(name, shown, sizeof(shown)));
	return NULL;
}

static int is_profiler_info(const struct dirent *entry)
{
	return !fnmatch("profiler_info*.json", entry->d_name, 0);
}

static cJSON *info_of(struct nps_db_import *in, int dirfd)
{
	struct dirent **entries;
	cJSON *info = NULL;
	char name[64];
	int n;

	if (in->model->has_rank) {
		snprintf(name, sizeof(name), "profiler_info_%u.json", in->model->rank);
		info = directory_read_json(in, dirfd, name);
		if (info)
			return info;
	}
	n = scandirat(dirfd, ".", &entries, is_profiler_info, alphasort);
	if (n < 0 && errno != EACCES) /* an unlisted directory may still have readable files */
		nps_input__unreadable(dirfd, ".", -errno);
	for (int i = 0; i < n; i++) {
		if (!info && n == 1) /* several: it is not known which is this rank's */
			info = directory_read_json(in, dirfd, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return info;
}

static void merge_metadata(struct nps_model *model, cJSON *file)
{
	cJSON *rows = model->metadata;

	if (!file)
		return;
	model->metadata = file;
	while (rows && rows->child) {
		cJSON *item = cJSON_DetachItemViaPointer(rows, rows->child);

		if (cJSON_GetObjectItemCaseSensitive(file, item->string) ||
		    !cJSON_AddItemToObject(file, item->string, item))
			cJSON_Delete(item);
	}
	cJSON_Delete(rows);
}

/* The json files lie in the directory above. */
static void files_beside(struct nps_db_import *in, const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];
	int dirfd;

	snprintf(above, sizeof(above), "%.*s/..", slash ? (int)(slash - path) : 1, slash ? path : ".");
	/* Files in a directory that may not be listed may still be readable. */
	dirfd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0) {
		nps_input__unreadable(AT_FDCWD, above, -errno);
		return;
	}
	in->model->info = info_of(in, dirfd);
	merge_metadata(in->model, directory_read_json(in, dirfd, "profiler_metadata.json"));
	close(dirfd);
}

/* ascend_pytorch_profiler_3.db: rank 3. */
static void from_name(struct nps_model *model, const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *last = strrchr(name, '_');
	unsigned long long rank;
	char *end;

	model->layout = !strncmp(name, "msprof_", strlen("msprof_")) ? NPS_LAYOUT_MSPROF : NPS_LAYOUT_TORCH;
	model->mindspore = !strncmp(name, "ascend_mindspore_", strlen("ascend_mindspore_"));
	if (model->layout == NPS_LAYOUT_MSPROF || !last || !isdigit((unsigned char)last[1]))
		return;
	errno = 0;
	rank = strtoull(last + 1, &end, 10);
	if (!errno && rank < NPS_NO_ID && !strcmp(end, ".db")) {
		model->has_rank = true;
		model->rank = rank;
	}
}

static void import_level(struct nps_model *model)
{
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(model->info, "config");
	const cJSON *more = cJSON_GetObjectItemCaseSensitive(config, "experimental_config");
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(more, "_profiler_level");
	const char *text = cJSON_IsString(item) ? item->valuestring : "";
	unsigned int number;

	if (sscanf(text, "Level%u", &number) == 1 && number <= 2)
		model->level = number;
}

int nps_db_identity__read(struct nps_db_import *in, const char *path)
{
	struct nps_model *model = in->model;
	bool without = false;
	int err = import_meta_data(in);

	if (err)
		return err;
	detect_generation(in);
	from_name(model, path);
	session_time(in);
	import_host_info(in);
	err = import_devices(in, &without);
	if (err)
		return err;
	err = ranks(in, without);
	if (err)
		return err;
	files_beside(in, path);
	import_level(model);
	if (!model->has_rank && model->device.t.len && model->device.id[0] >= 0)
		model->rank = model->device.id[0];
	return 0;
}
