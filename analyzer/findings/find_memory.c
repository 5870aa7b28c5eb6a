/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: the highest level, and how much of what is reserved is in use then. */
#include "findings/findings.h"

#include <cjson/cJSON.h>
#include <string.h>

#define COMPONENTS 16
#define MIB 1048576.0

struct component {
	uint32_t text, device;
	uint64_t records;
	int64_t reserved, allocated; /* at the highest reserved; NPS_NULL unknown */
	uint64_t when;
};

static struct component *component_find(struct component *list, size_t *n, uint32_t text, uint32_t device)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].text == text && list[i].device == device)
			return &list[i];
	if (*n == COMPONENTS)
		return NULL;
	list[*n] = (struct component){
		.text = text, .device = device, .reserved = NPS_NULL, .allocated = NPS_NULL
	};
	return &list[(*n)++];
}

static int fragmented(struct nps_find *find, const struct component *c)
{
	cJSON *numbers, *where;
	double unused = 1 - (double)c->allocated / c->reserved;

	if (c->reserved < 1 << 30 || c->allocated == NPS_NULL || unused < 0.3)
		return 0;
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "reserved_mib", c->reserved / MIB);
	nps_find__number(numbers, "allocated_mib", c->allocated / MIB);
	where = cJSON_CreateObject();
	nps_find__time(where, "start_us", c->when);
	cJSON_AddNumberToObject(where, "device", c->device);
	return nps_find__add(find, "memory_reserved", 0, numbers, where,
			     "reserved memory that nothing uses is fragmentation or a peak that is over: see "
			     "PYTORCH_NPU_ALLOC_CONF",
			     "at its highest the allocator holds %.0f MiB of which %.0f %% are not in use",
			     c->reserved / MIB, 100 * unused);
}

#define MIB_OF(bytes) ((bytes) == NPS_NULL ? NPS_NAN : (bytes) / MIB)

#define MEMORY_COLUMNS(C)                                                                                    \
	C("component", TEXT, "component", nps_model__text(m, r->text))                                       \
	C("device", COUNT, "NPU", r->device)                                                                 \
	C("records", COUNT, "records", r->records)                                                           \
	C("peak_reserved_mib", NUMBER, "peak reserved", MIB_OF(r->reserved))                                 \
	C("allocated_then_mib", NUMBER, "in use then", MIB_OF(r->allocated))                                 \
	C("peak_us", TIME, "peak at, ms", r->when)

NPS_FIND_TABLE(table, "memory.rows", "memory, MiB", struct nps_model, struct component, MEMORY_COLUMNS)

static int memory_find(struct nps_find *find)
{
	const struct nps_memory_record_table *t = &find->model->memory_record;
	struct nps_pace pace = { .model = find->model };
	struct component list[COMPONENTS];
	size_t n = 0;
	int err = 0;

	if (!t->t.len)
		return 0;
	for (size_t i = 0; i < t->t.len; i++) {
		struct component *c = component_find(list, &n, t->component[i], t->device[i]);

		nps_pace__step(&pace);
		if (!c)
			continue;
		c->records++;
		if (t->reserved[i] != NPS_NULL && t->reserved[i] > c->reserved) {
			c->reserved = t->reserved[i];
			c->allocated = t->allocated[i];
			c->when = t->timestamp[i];
		}
	}
	nps_find__rows(find->document, &table, find->model, list, n, sizeof(list[0]));
	for (size_t i = 0; !err && i < n; i++)
		if (!strcmp(nps_model__text(find->model, list[i].text), "PTA"))
			err = fragmented(find, &list[i]);
	return err;
}

const struct nps_find_question nps_question_memory = { .find = memory_find, .tables = { &table } };
