/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/aux_config.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISK_HZ 50000000 /* 50 Hz, unless the configuration states another rate */
#define CARD_SPEED 125000 /* B/s of a Mbit/s */
#define MOST_SPEED 100000000 /* Mbit/s */

/*
 * Events of the L2 cache and of address translation by chip. A negative event is subtracted; 0 ends a list,
 * unless it is the first entry.
 */
static const struct rule {
	uint32_t chips; /* bits of platform_version */
	int16_t request[3], first[7], second[3];
} l2_rules[] = {
	{ 1 << 1, { 0x59 }, { 0x5b }, { 0x5c } },
	{ 1 << 2 | 1 << 3 | 1 << 4, { 0x78, 0x79 }, { 0x6a }, { 0x71 } },
	{ 1 << 5 | 1 << 7 | 1 << 8 | 1 << 11, { 0xfb, 0xfc }, { 0x90, 0x91 }, { 0x9c } },
	{ 1 << 15 | 1 << 16, { 0x00 }, { 0x00, -0x81, -0x82, -0x83, -0x74, -0x75 }, { 0x74, 0x75 } },
}, tlb_rules[] = {
	{ 1 << 5 | 1 << 15 | 1 << 16, { 0x8a }, { 0x8c, 0x8d }, { 0x02 } },
};

static double config_number(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
	double value = cJSON_IsNumber(item) ? item->valuedouble : strtod(nps_cann_text(json, key), NULL);

	return value > 0 && value < 1e9 ? value : 0;
}

static int read_qos(struct nps_aux_config *config, struct nps_model *model, const char *names)
{
	while (*names && config->nqos < NPS_AUX_QOS) {
		size_t len = strcspn(names, ",");

		if (len) {
			uint32_t text = nps_strings__add(model->strings, names, len);

			if (text == NPS_NONE)
				return -ENOMEM;
			config->qos[config->nqos++] = text;
		}
		names += len;
		names += *names == ',';
	}
	return 0;
}

/* Where the events of LIST are; false if one of them was not recorded. */
static bool config_find_events(int8_t *signs, const int16_t *list, const uint32_t *events, size_t n)
{
	for (size_t k = 0; !k || list[k]; k++) {
		uint32_t event = abs(list[k]);
		size_t i = 0;

		while (i < n && events[i] != event)
			i++;
		if (i == n)
			return false;
		signs[i] += list[k] < 0 ? -1 : 1;
	}
	return true;
}

static void read_rates(struct nps_aux_rates *rates, const struct rule *rules, size_t nrules, uint32_t chip,
		       const char *text)
{
	uint32_t events[NPS_AUX_EVENTS];
	size_t n = nps_cann_events(text, events, NPS_AUX_EVENTS);

	for (size_t i = 0; chip < 32 && i < nrules; i++)
		if (rules[i].chips >> chip & 1)
			rates->known = config_find_events(rates->request, rules[i].request, events, n) &&
				       config_find_events(rates->first, rules[i].first, events, n) &&
				       config_find_events(rates->second, rules[i].second, events, n);
}

static int config_read_sample(struct nps_aux_config *config, struct nps_model *model,
			      const struct nps_cann_dir *dir)
{
	cJSON *json = nps_cann_dir__json(dir, "sample.json", false);
	const char *smmu = strstr(nps_cann_text(json, "npuEvents"), "SMMU:");
	const char *llc = nps_cann_text(json, "llc_profiling");
	double hz = config_number(json, "host_disk_freq");
	int err = read_qos(config, model, nps_cann_text(json, "qosEvents"));

	config->llc = !strcmp(llc, "read") ? 'r' : !strcmp(llc, "write") ? 'w' : 0;
	config->disk_hz = hz >= 1e-3 ? (uint64_t)(hz * 1e6 + 0.5) : DISK_HZ;
	read_rates(&config->l2, l2_rules, NPS_ARRAY_SIZE(l2_rules), dir->chip,
		   nps_cann_text(json, "l2CacheTaskProfilingEvents"));
	read_rates(&config->tlb, tlb_rules, NPS_ARRAY_SIZE(tlb_rules), dir->chip,
		   smmu ? smmu + strlen("SMMU:") : "");
	cJSON_Delete(json);
	return err;
}

static void read_cards(struct nps_aux_config *config, const cJSON *cards)
{
	const cJSON *card;

	cJSON_ArrayForEach(card, cards)
	{
		double speed = config_number(card, "speed");
		struct nps_aux_card *to = &config->cards[config->ncards];

		if (speed < 1 || speed > MOST_SPEED || config->ncards == NPS_AUX_CARDS)
			continue;
		snprintf(to->name, sizeof(to->name), "%s", nps_cann_text(card, "netCardName"));
		to->speed = (uint64_t)(speed * CARD_SPEED);
		config->ncards++;
	}
}

/* `2,3,4` */
static void read_cpus(struct nps_aux_config *config, const char *list, uint8_t kind)
{
	while (*list) {
		char *end;
		unsigned long cpu = strtoul(list, &end, 10);

		if (end == list)
			break;
		if (cpu < NPS_AUX_CPUS)
			config->cpus[cpu] = kind;
		list = end + strspn(end, ", ");
	}
}

int nps_aux_config__read(struct nps_aux_config *config, struct nps_model *model,
			 const struct nps_cann_dir *dir)
{
	cJSON *json = nps_cann_dir__json(dir, "info.json", true);
	const cJSON *device;

	*config = (struct nps_aux_config){ 0 };
	read_cards(config, cJSON_GetObjectItemCaseSensitive(json, "netCard"));
	device = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "DeviceInfo"), 0);
	read_cpus(config, nps_cann_text(device, "ai_cpu"), 'a');
	read_cpus(config, nps_cann_text(device, "ctrl_cpu"), 'c');
	cJSON_Delete(json);
	return config_read_sample(config, model, dir);
}
