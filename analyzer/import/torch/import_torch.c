/* SPDX-License-Identifier: BSD-2-Clause */
/* A ..._ascend_pt directory: profiler_info, profiler_metadata and FRAMEWORK/ (prof-raw 5). */
#include "import/import.h"
#include "base/ext_sort.h"
#include "base/input_file.h"
#include "base/json.h"
#include "import/torch/framework.h"
#include "import/torch/records.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GC_SIZE 24
#define INFO "profiler_info"
#define NAME_SIZE 256

/* --- rows --- */

uint64_t nps_framework__gtid(struct nps_framework *fw, uint64_t pid, uint64_t tid)
{
	if (!fw->has_pid) {
		fw->model->pid = pid;
		fw->has_pid = true;
	}
	return pid << 32 | (uint32_t)tid;
}

/* --- garbage collection --- */

struct collection {
	struct nps_sort_key order; /* start, end */
	uint64_t gtid;
};

static int read_collections(struct nps_framework *fw, struct nps_ext_sort *sorter)
{
	struct nps_fw_file file;
	const uint8_t *p;
	int err = nps_fw_file__open(&file, fw->model, fw->dirfd, "torch.gc_record");

	if (err)
		return err == -ENOMEM ? err : 0;
	while (!err && (p = nps_fw_file__plain(&file, GC_SIZE))) {
		struct collection *c;
		uint64_t start, end;

		if (!nps_framework__ns(fw, nps_fw_i64(p + 8), &start) ||
		    !nps_framework__ns(fw, nps_fw_i64(p + 16), &end) || end < start) {
			file.damaged++;
			continue;
		}
		c = nps_ext_sort__add(sorter);
		err = sorter->err;
		if (c) {
			c->order = (struct nps_sort_key){ start, end };
			c->gtid = nps_framework__gtid(fw, nps_fw_u64(p), 0);
		}
	}
	nps_fw_file__close(&file);
	return err;
}

/* Records do not name the thread that collected. */
int nps_framework__gc(struct nps_framework *fw)
{
	struct nps_gc_table *t = &fw->model->gc;
	struct nps_ext_sort sorter;
	const void *next;
	int err;

	nps_ext_sort__init(&sorter, fw->model->tmpfd, sizeof(struct collection));
	err = read_collections(fw, &sorter);
	err = err ? err : nps_ext_sort__finish(&sorter);
	while (!err && (next = nps_ext_sort__next(&sorter))) {
		const struct collection *c = next;
		size_t row;

		err = nps_table__add(&t->t, &row);
		if (err)
			break;
		t->start[row] = c->order.high;
		t->end[row] = c->order.low;
		t->gtid[row] = c->gtid;
		nps_model__cover(fw->model, c->order.high, c->order.low);
	}
	err = err ? err : sorter.err;
	nps_ext_sort__free(&sorter);
	return err;
}

/* --- the profiler's configuration --- */

/* profiler_info.json, or profiler_info_12.json with *RANK 12. */
static bool is_framework_info(const char *name, bool *has_rank, uint32_t *rank)
{
	unsigned long number;
	char *end;

	*has_rank = false;
	if (!strcmp(name, INFO ".json"))
		return true;
	if (strncmp(name, INFO "_", sizeof(INFO)) || name[sizeof(INFO)] < '0' || name[sizeof(INFO)] > '9')
		return false;
	number = strtoul(name + sizeof(INFO), &end, 10);
	if (strcmp(end, ".json") || number >= NPS_NO_ID)
		return false;
	*has_rank = true;
	*rank = number;
	return true;
}

/* The first entry of DIRFD, in order of names, that begins with PREFIX and that ALSO accepts, into NAME. */
static bool first_entry(int dirfd, const char *prefix, bool (*also)(const char *), char *name)
{
	DIR *dir = nps_input_dir__list(dirfd);
	struct dirent *entry;

	*name = 0;
	if (!dir)
		return false;
	while ((entry = nps_input_dir__next(dir))) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) || (also && !also(entry->d_name)))
			continue;
		if (!*name || strcmp(entry->d_name, name) < 0)
			snprintf(name, NAME_SIZE, "%s", entry->d_name);
	}
	closedir(dir);
	return *name;
}

static bool any_info(const char *name)
{
	bool has_rank;
	uint32_t rank;

	return is_framework_info(name, &has_rank, &rank);
}

static unsigned int level_of(const cJSON *info)
{
	const cJSON *at = cJSON_GetObjectItemCaseSensitive(info, "config");
	const char *text;

	at = cJSON_GetObjectItemCaseSensitive(at, "experimental_config");
	at = cJSON_GetObjectItemCaseSensitive(at, "_profiler_level");
	text = cJSON_IsString(at) ? at->valuestring : "";
	return !strcmp(text, "Level2") ? 2 : !strcmp(text, "Level1") ? 1 : 0;
}

/* A JSON object in place of *TO. */
static void metadata_read_json(struct nps_model *model, int dirfd, const char *name, cJSON **to)
{
	cJSON *json = nps_fw_json__read(dirfd, name);

	if (!json && errno == ENOENT)
		return;
	if (!cJSON_IsObject(json)) {
		nps_model__lost(model, 1, "%s: %s", name,
				json || errno == EILSEQ ? "no JSON object" : strerror(errno));
		cJSON_Delete(json);
		return;
	}
	cJSON_Delete(*to);
	*to = json;
}

static void read_settings(struct nps_model *model, int dirfd)
{
	char name[NAME_SIZE];
	uint32_t rank = 0;

	metadata_read_json(model, dirfd, "profiler_metadata.json", &model->metadata);
	if (!first_entry(dirfd, INFO, any_info, name))
		return;
	is_framework_info(name, &model->has_rank, &rank);
	if (model->has_rank)
		model->rank = rank;
	metadata_read_json(model, dirfd, name, &model->info);
	if (model->info)
		model->level = level_of(model->info);
}

/* --- all of it --- */

/* False if the times cannot be converted. */
static bool read_clock(struct nps_framework *fw, int dirfd)
{
	char name[NAME_SIZE];
	int proffd = -1;

	if (first_entry(dirfd, "PROF_", NULL, name))
		proffd = nps_input_dir__open(dirfd, name);
	nps_fw_clock__init(&fw->clock, fw->model->info, proffd);
	if (proffd >= 0)
		close(proffd);
	if (!fw->clock.known)
		nps_model__lost(fw->model, 1, "all of FRAMEWORK/: no file has the clock of its times");
	else if (!fw->clock.has_offset)
		nps_model__lost(fw->model, 1, "offset of FRAMEWORK/'s clock: times are not Unix times");
	return fw->clock.known;
}

static int read_framework(struct nps_framework *fw)
{
	int (*const parts[])(struct nps_framework *) = { nps_framework__queue, nps_framework__python,
							 nps_framework__ops, nps_framework__memory,
							 nps_framework__gc };
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(parts); i++) {
		err = parts[i](fw);
		nps_model__cool(fw->model);
	}
	return err;
}

/* PATH, which has no slash at its end, is named by its profiler: {worker}_{pid}_{time}_ascend_ms. */
static bool is_mindspore(const char *path)
{
	static const char suffix[] = "_ascend_ms";
	size_t len = strlen(path);

	return len >= sizeof(suffix) && !strcmp(path + len - (sizeof(suffix) - 1), suffix);
}

int nps_import__torch(struct nps_model *model, const char *path)
{
	struct nps_framework fw = { .model = model, .has_pid = model->pid, .dirfd = -1 };
	int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (dirfd < 0) {
		err = -errno;
		nps_msg_cannot(path, err);
		return err;
	}
	model->layout = NPS_LAYOUT_TORCH;
	model->mindspore = is_mindspore(path);
	model->generation = NPS_GENERATION_B;
	read_settings(model, dirfd);
	fw.dirfd = nps_input_dir__open(dirfd, "FRAMEWORK");
	if (fw.dirfd >= 0) {
		nps_fw_memo__init(&fw.texts, model->tmpfd);
		if (read_clock(&fw, dirfd))
			err = read_framework(&fw);
		nps_fw_memo__free(&fw.texts);
		close(fw.dirfd);
	}
	close(dirfd);
	if (err)
		nps_msg_cannot(path, err);
	return err;
}
