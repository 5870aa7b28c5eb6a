/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/torch/clock.h"

#include "base/input_file.h"
#include "base/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A time that is farther from the beginning of the capture is none: a wild one would stretch everything. */
#define FARTHEST (366LL * 86400 * 1000000000)
#define DECIMALS 6

static int64_t divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* MHZ as text: "100", "38.4". False if it is no frequency; the clock is then unchanged. */
static bool set_frequency(struct nps_fw_clock *clock, const char *mhz)
{
	int64_t value = 0, ns = 1000;
	int digits = 0, decimals = -1;

	for (; (*mhz >= '0' && *mhz <= '9') || (*mhz == '.' && decimals < 0); mhz++) {
		if (*mhz == '.') {
			decimals = 0;
			continue;
		}
		if (decimals >= 0 && ++decimals > DECIMALS)
			continue;
		if (++digits > 12)
			return false;
		value = value * 10 + (*mhz - '0');
		ns *= decimals > 0 ? 10 : 1;
	}
	if (*mhz || value <= 0)
		return false;
	clock->ns = ns / divisor(ns, value);
	clock->counts = value / divisor(ns, value);
	return true;
}

static void from_info(struct nps_fw_clock *clock, const cJSON *info)
{
	const cJSON *start = cJSON_GetObjectItemCaseSensitive(info, "start_info");
	const cJSON *end = cJSON_GetObjectItemCaseSensitive(info, "end_info");
	const cJSON *freq = cJSON_GetObjectItemCaseSensitive(start, "freq");
	int64_t real, monotonic;
	char mhz[40] = "";

	clock->known = cJSON_IsObject(start);
	clock->counter = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(start, "syscnt_enable"));
	nps_fw_json__i64(start, "start_cnt", &clock->base);
	nps_fw_json__i64(start, "start_monotonic", &clock->raw);
	if (cJSON_IsNumber(freq))
		snprintf(mhz, sizeof(mhz), "%.15g", freq->valuedouble);
	else if (cJSON_IsString(freq))
		snprintf(mhz, sizeof(mhz), "%s", freq->valuestring);
	set_frequency(clock, mhz);
	if (nps_fw_json__i64(end, "collectionTimeEnd", &real) &&
	    nps_fw_json__i64(end, "MonotonicTimeEnd", &monotonic))
		clock->has_offset = !__builtin_sub_overflow(real, monotonic, &clock->offset);
}

/* The number behind `NAME:` at the beginning of a line. */
static bool line_number(const char *text, const char *name, int64_t *value)
{
	size_t len = strlen(name);

	while (text) {
		if (!strncmp(text, name, len) && text[len] == ':') {
			*value = strtoll(text + len + 1, NULL, 10);
			return true;
		}
		text = strchr(text, '\n');
		text += text ? 1 : 0;
	}
	return false;
}

/* Where the counter and the raw clock were sampled together. */
static void host_start(struct nps_fw_clock *clock, int hostfd)
{
	char text[4096];
	int64_t raw, count, diff = 0;
	int fd = nps_input_file__open(hostfd, "host_start.log", NULL);
	ssize_t len;

	if (fd < 0)
		return;
	len = read(fd, text, sizeof(text) - 1);
	if (len < 0)
		nps_input__unreadable_fd(fd, -errno);
	close(fd);
	text[len < 0 ? 0 : len] = 0;
	if (!line_number(text, "clock_monotonic_raw", &raw) || !line_number(text, "cntvct", &count) ||
	    raw <= 0)
		return;
	line_number(text, "cntvct_diff", &diff);
	clock->raw = raw;
	if (__builtin_sub_overflow(count, diff, &clock->base))
		clock->base = count;
}

static void from_prof(struct nps_fw_clock *clock, int proffd)
{
	int hostfd = nps_input_dir__open(proffd, "host");
	cJSON *info, *start;
	const cJSON *cpu;
	int64_t us, raw;

	if (hostfd < 0)
		return;
	info = nps_fw_json__read(hostfd, "info.json");
	cpu = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(info, "CPU"), 0);
	cpu = cJSON_GetObjectItemCaseSensitive(cpu, "Frequency");
	/* Without a frequency CANN's own times are ns, and its pair is not one of the counter. */
	if (cJSON_IsString(cpu) && set_frequency(clock, cpu->valuestring)) {
		clock->counter |= !clock->known;
		host_start(clock, hostfd);
	}
	clock->known |= cpu != NULL;
	start = nps_fw_json__read(hostfd, "start_info");
	if (nps_fw_json__i64(start, "collectionTimeBegin", &us) &&
	    nps_fw_json__i64(start, "clockMonotonicRaw", &raw) && us > 0 && us <= INT64_MAX / 1000 &&
	    !__builtin_sub_overflow(us * 1000, raw, &clock->offset))
		clock->has_offset = true;
	cJSON_Delete(info);
	cJSON_Delete(start);
	close(hostfd);
}

void nps_fw_clock__init(struct nps_fw_clock *clock, const cJSON *info, int proffd)
{
	*clock = (struct nps_fw_clock){ .ns = 1, .counts = 1 };
	from_info(clock, info);
	if (proffd >= 0)
		from_prof(clock, proffd);
}

/* delta * ns / counts, rounded down. */
static bool scale(const struct nps_fw_clock *clock, int64_t delta, int64_t *ns)
{
	__int128 product = (__int128)delta * clock->ns, whole;

	if (clock->counts == 1) {
		whole = product;
	} else if (product == (int64_t)product) {
		int64_t small = product;

		whole = small / clock->counts - (small % clock->counts < 0);
	} else {
		whole = product / clock->counts - (product % clock->counts < 0);
	}
	*ns = whole;
	return whole == *ns;
}

bool nps_fw_clock__ns(const struct nps_fw_clock *clock, int64_t value, uint64_t *ns)
{
	int64_t delta, raw, unix_ns;

	if (value <= 0)
		return false;
	if (!clock->counter)
		raw = value;
	else if (__builtin_sub_overflow(value, clock->base, &delta) || !scale(clock, delta, &raw) ||
		 __builtin_add_overflow(raw, clock->raw, &raw))
		return false;
	if (clock->raw &&
	    (__builtin_sub_overflow(raw, clock->raw, &delta) || delta > FARTHEST || delta < -FARTHEST))
		return false;
	if (__builtin_add_overflow(raw, clock->offset, &unix_ns) || unix_ns <= 0)
		return false;
	*ns = unix_ns;
	return true;
}
