/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/control.h"

#include "base/input_file.h"
#include "base/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTROL_BYTES (4UL << 20) /* no honest control file is larger */

char *nps_cann_read_file(int dirfd, const char *name, size_t most)
{
	struct stat st;
	int fd = nps_input_file__open(dirfd, name, &st);
	size_t len = 0;
	char *text;

	if (fd < 0)
		return NULL;
	most = NPS_MIN(most, (size_t)st.st_size);
	text = malloc(most + 1);
	if (!text)
		nps_memory__fail(-ENOMEM);
	while (text && len < most) {
		ssize_t n = read(fd, text + len, most - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			nps_input__unreadable_fd(fd, -errno);
		if (n <= 0)
			break;
		len += n;
	}
	if (text)
		text[len] = 0;
	close(fd);
	return text;
}

/* NAME, or if NUMBERED NAME.N in a device's directory. */
static void control_name(const struct nps_cann_dir *dir, const char *name, bool numbered, char *out,
			 size_t size)
{
	if (numbered && dir->device != NPS_CANN_HOST)
		snprintf(out, size, "%s.%u", name, dir->device);
	else
		snprintf(out, size, "%s", name);
}

static char *read_control(const struct nps_cann_dir *dir, const char *name)
{
	char path[64];

	control_name(dir, name, true, path, sizeof(path));
	return nps_cann_read_file(dir->fd, path, CONTROL_BYTES);
}

/* The first line is all there is. */
cJSON *nps_cann_dir__json(const struct nps_cann_dir *dir, const char *name, bool numbered)
{
	char path[64], *text;
	cJSON *json;

	control_name(dir, name, numbered, path, sizeof(path));
	text = nps_cann_read_file(dir->fd, path, CONTROL_BYTES);
	if (!text)
		return NULL;
	text[strcspn(text, "\n")] = 0;
	json = cJSON_Parse(text);
	if (!json)
		nps_input__unusable(dir->fd, path, "it is no JSON");
	free(text);
	return json;
}

const char *nps_cann_text(const cJSON *json, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

	return text ? text : "";
}

size_t nps_cann_events(const char *text, uint32_t *events, size_t most)
{
	size_t n = 0;

	while (n < most && *text && *text != ';') {
		char *end;
		unsigned long value = strtoul(text, &end, 0);

		if (end == text)
			break;
		events[n++] = NPS_MIN(value, (unsigned long)UINT32_MAX);
		text = end + strspn(end, ", ");
	}
	return n;
}

/* A decimal number, as a number or a text. */
static bool json_u64(const cJSON *json, const char *key, uint64_t *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
	char *end;

	if (cJSON_IsNumber(item)) {
		if (!(item->valuedouble >= 0 && item->valuedouble < 9007199254740992.0))
			return false;
		*value = item->valuedouble;
		return true;
	}
	if (!cJSON_IsString(item) || item->valuestring[0] < '0' || item->valuestring[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(item->valuestring, &end, 10);
	return !*end && !errno;
}

/* MHz with up to six decimals, in Hz; 0: none. */
static uint64_t hertz_of(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
	uint64_t hz = 0;
	const char *p;
	char digits[32] = "";
	int decimals = -1;

	if (cJSON_IsNumber(item))
		snprintf(digits, sizeof(digits), "%.6f", item->valuedouble);
	p = cJSON_IsNumber(item) ? digits : nps_cann_text(json, key);
	for (; *p && decimals < 6; p++) {
		if (*p == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (*p < '0' || *p > '9' || hz > NPS_CANN_HZ_MAX)
			return 0;
		hz = hz * 10 + (*p - '0');
		decimals += decimals >= 0;
	}
	for (decimals = NPS_MAX(decimals, 0); decimals < 6 && hz <= NPS_CANN_HZ_MAX; decimals++)
		hz *= 10;
	return hz <= NPS_CANN_HZ_MAX ? hz : 0;
}

static double json_mhz(const cJSON *json, const char *key)
{
	return hertz_of(json, key) / 1e6;
}

static uint32_t small_of(const cJSON *json, const char *key)
{
	uint64_t value;

	return json_u64(json, key, &value) && value < 65536 ? value : 0;
}

static void json_copy_text(char *to, size_t size, const cJSON *json, const char *key)
{
	snprintf(to, size, "%s", nps_cann_text(json, key));
}

bool nps_chip_known(uint64_t number)
{
	return number <= NPS_CHIP_910B || (number >= NPS_CHIP_310B && number <= NPS_CHIP_NANO) ||
	       number == NPS_CHIP_V1_1_3 || number == NPS_CHIP_950 || number == NPS_CHIP_950_1;
}

/* Records of a chip whose format is not known are read as the 910B's. */
static uint32_t chip_of(const struct nps_cann_dir *dir, const cJSON *json)
{
	uint64_t number;

	if (!json_u64(json, "platform_version", &number))
		return NPS_CHIP_910B;
	if (nps_chip_known(number))
		return (uint32_t)number;
	if (dir->device != NPS_CANN_HOST)
		nps_msg("device %u: its chip has the number %" PRIu64
			", which is unknown: it is read as a 910B: is "
			"there a newer npuscope?",
			dir->device, number);
	return NPS_CHIP_910B;
}

static void read_info(struct nps_cann_dir *dir, struct nps_model *model)
{
	cJSON *json = nps_cann_dir__json(dir, "info.json", true);
	const cJSON *item, *rank;
	uint64_t value;

	if (!json) {
		nps_model__lost(model, 1, "info.json files that are missing or no JSON");
		return;
	}
	dir->chip = chip_of(dir, json);
	dir->second_version = !strcmp(nps_cann_text(json, "version"), "2.0");
	dir->pid = json_u64(json, "pid", &value) && value <= UINT32_MAX ? value : 0;
	json_copy_text(dir->process, sizeof(dir->process), json, "pid_name");
	json_copy_text(dir->host_name, sizeof(dir->host_name), json, "hostname");
	json_copy_text(dir->host_uid, sizeof(dir->host_uid), json, "hostUid");
	rank = cJSON_GetObjectItemCaseSensitive(json, "rank_id");
	if (json_u64(json, "rank_id", &value) && value < NPS_NONE &&
	    !(cJSON_IsNumber(rank) && rank->valuedouble < 0))
		dir->rank = value;
	json_u64(json, "drvVersion", &dir->driver);
	json_u64(json, "memoryTotal", &dir->memory_kb);
	json_u64(json, "cpuNums", &dir->cpus);
	json_u64(json, "sysClockFreq", &dir->user_hz);
	if (sscanf(nps_cann_text(json, "cannVersion"), "%3u.%3u", &dir->cann_major, &dir->cann_minor) < 1)
		dir->cann_major = dir->cann_minor = 0;
	dir->host_hz =
		hertz_of(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "CPU"), 0), "Frequency");
	item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "DeviceInfo"), 0);
	if (item) {
		dir->device_hz = hertz_of(item, "hwts_frequency");
		dir->aic_mhz = json_mhz(item, "aic_frequency");
		dir->aiv_mhz = json_mhz(item, "aiv_frequency");
		dir->aic_cores = small_of(item, "ai_core_num");
		dir->aiv_cores = small_of(item, "aiv_num");
	}
	cJSON_Delete(json);
}

static void read_metrics(struct nps_cann_metrics *metrics, const cJSON *json, const char *name,
			 const char *events)
{
	json_copy_text(metrics->name, sizeof(metrics->name), json, name);
	metrics->nevents = nps_cann_events(nps_cann_text(json, events), metrics->events, NPS_CANN_EVENTS);
}

static void sample_json_read(struct nps_cann_dir *dir)
{
	cJSON *json = nps_cann_dir__json(dir, "sample.json", false);
	const char *level;

	if (!json)
		return;
	level = nps_cann_text(json, "prof_level");
	if (!*level)
		level = nps_cann_text(json, "profLevel");
	if (level[0] == 'l' || level[0] == 'L')
		level += strspn(level, "levelLEVEL");
	if (*level >= '0' && *level <= '9')
		dir->level = NPS_MIN(*level - '0', 3);
	dir->sampled_pmu = !strcmp(nps_cann_text(json, "ai_core_profiling_mode"), "sample-based");
	read_metrics(&dir->aic, json, "ai_core_metrics", "ai_core_profiling_events");
	read_metrics(&dir->aiv, json, "aiv_metrics", "aiv_profiling_events");
	cJSON_Delete(json);
}

static void read_session(struct nps_cann_dir *dir)
{
	cJSON *json = nps_cann_dir__json(dir, "start_info", true);

	dir->has_begin = json_u64(json, "collectionTimeBegin", &dir->begin_us) &&
			 json_u64(json, "clockMonotonicRaw", &dir->begin_raw) &&
			 dir->begin_us < INT64_MAX / 1000 && dir->begin_raw < INT64_MAX;
	cJSON_Delete(json);
	json = nps_cann_dir__json(dir, "end_info", true);
	dir->has_end = json_u64(json, "collectionTimeEnd", &dir->end_us) && dir->end_us < INT64_MAX / 1000;
	cJSON_Delete(json);
}

/* The number after `KEY:` at the start of a line. */
static bool log_number(const char *text, const char *key, uint64_t *value)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): it ends with NUL */
		if (!strncmp(text, key, len) && text[len] == ':') {
			text += len + 1;
			text += strspn(text, " \t");
			return *text >= '0' && *text <= '9' && sscanf(text, "%" SCNu64, value) == 1;
		}
		if (!*text)
			break;
	}
	return false;
}

static void read_starts(struct nps_cann_dir *dir)
{
	char *text = read_control(dir, "host_start.log");
	uint64_t diff = 0, ns;

	if (text) {
		dir->has_host_start = log_number(text, "clock_monotonic_raw", &dir->start_raw) &&
				      log_number(text, "cntvct", &dir->start_count) &&
				      dir->start_raw < INT64_MAX;
		if (log_number(text, "cntvct_diff", &diff) && dir->host_hz && diff < UINT32_MAX &&
		    nps_cann_ticks__ns(diff, dir->host_hz, &ns))
			dir->start_raw += ns;
	}
	free(text);
	text = dir->device == NPS_CANN_HOST ? NULL : read_control(dir, "dev_start.log");
	if (text)
		dir->has_device_start = log_number(text, "clock_monotonic_raw", &dir->device_raw) &&
					log_number(text, "cntvct", &dir->device_count);
	free(text);
}

int nps_cann_dir__open(struct nps_cann_dir *dir, struct nps_model *model, int parentfd, const char *name,
		       uint32_t device)
{
	int err;

	*dir = (struct nps_cann_dir){
		.datafd = -1, .device = device, .chip = NPS_CHIP_910B, .rank = -1, .level = -1
	};
	dir->fd = nps_input_dir__open(parentfd, name);
	if (dir->fd < 0)
		return dir->fd;
	read_info(dir, model);
	sample_json_read(dir);
	read_session(dir);
	read_starts(dir);
	dir->datafd = nps_input_dir__open(dir->fd, "data");
	err = nps_slices__open(&dir->files, dir->datafd);
	if (err)
		nps_cann_dir__close(dir);
	return err;
}

void nps_cann_dir__close(struct nps_cann_dir *dir)
{
	nps_slices__close(&dir->files);
	if (dir->datafd >= 0)
		close(dir->datafd);
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = dir->datafd = -1;
}

static void set_clock(struct nps_cann_clock *clock, bool known, uint64_t count, uint64_t raw, uint64_t hz,
		      int64_t wall)
{
	clock->count0 = count;
	clock->hz = hz ? hz : 1;
	clock->known = known && hz && !__builtin_add_overflow((int64_t)raw, wall, &clock->zero);
}

void nps_cann_dir__clocks(struct nps_cann_dir *dir, const struct nps_cann_dir *other)
{
	bool wall_known;
	int64_t wall;

	if (!dir->has_begin && other && other->has_begin) {
		dir->has_begin = true;
		dir->begin_us = other->begin_us;
		dir->begin_raw = other->begin_raw;
	}
	if (!dir->has_end && other && other->has_end) {
		dir->has_end = true;
		dir->end_us = other->end_us;
	}
	if (!dir->has_host_start && other && other->has_host_start) {
		dir->has_host_start = true;
		dir->start_raw = other->start_raw;
		dir->start_count = other->start_count;
	}
	if (!dir->host_hz && other)
		dir->host_hz = other->host_hz;
	wall_known = dir->has_begin;
	wall = wall_known ? (int64_t)(dir->begin_us * 1000) - (int64_t)dir->begin_raw : 0;
	set_clock(&dir->host_raw_clock, wall_known, 0, 0, NPS_NS_PER_S, wall);
	if (dir->host_hz)
		set_clock(&dir->host_clock, wall_known && dir->has_host_start, dir->start_count,
			  dir->start_raw, dir->host_hz, wall);
	else
		dir->host_clock = dir->host_raw_clock;
	if (dir->device == NPS_CANN_HOST)
		return;
	set_clock(&dir->device_clock, wall_known && dir->has_host_start && dir->has_device_start,
		  dir->device_count, dir->start_raw, dir->device_hz, wall);
	set_clock(&dir->device_raw_clock, wall_known && dir->has_host_start && dir->has_device_start,
		  dir->device_raw, dir->start_raw, NPS_NS_PER_S, wall);
}
