/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/table.h"

#include "findings/findings.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void nps_find__number(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, round(value * 1000) / 1000);
	else
		cJSON_AddNullToObject(object, name);
}

void nps_find__time(cJSON *object, const char *name, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / 1000, (unsigned int)(ns % 1000));
	cJSON_AddRawToObject(object, name, text);
}

static void add_member(cJSON *object, const char *name, enum nps_find_unit unit,
		       const union nps_find_cell *cell)
{
	char text[24];

	switch (unit) {
	case NPS_FIND_TEXT:
		cJSON_AddStringToObject(object, name, cell->text);
		break;
	case NPS_FIND_BOOL:
		cJSON_AddBoolToObject(object, name, cell->integer != 0);
		break;
	case NPS_FIND_HEX:
		snprintf(text, sizeof(text), "0x%" PRIx64, cell->integer);
		cJSON_AddStringToObject(object, name, text);
		break;
	case NPS_FIND_COUNT:
	case NPS_FIND_EXACT_US:
		cJSON_AddNumberToObject(object, name, cell->number);
		break;
	case NPS_FIND_TIME:
		nps_find__time(object, name, cell->integer);
		break;
	default:
		nps_find__number(object, name, cell->number);
	}
}

static bool cell_known(enum nps_find_unit unit, const union nps_find_cell *cell)
{
	if (unit == NPS_FIND_TEXT)
		return cell->text;
	if (unit == NPS_FIND_BOOL || unit == NPS_FIND_HEX || unit == NPS_FIND_TIME)
		return cell->integer != NPS_FIND_NEVER;
	return isfinite(cell->number);
}

/* The object within OBJECT that *KEY is a member of, made if need be; *KEY becomes the member's own name. */
static cJSON *object_of(cJSON *object, const char **key)
{
	const char *dot;
	char name[48];

	while (object && (dot = strchr(*key, '.'))) {
		cJSON *inner;

		snprintf(name, sizeof(name), "%.*s", (int)(dot - *key), *key);
		inner = cJSON_GetObjectItemCaseSensitive(object, name);
		object = inner ? inner : cJSON_AddObjectToObject(object, name);
		*key = dot + 1;
	}
	return object;
}

void nps_find__members(cJSON *object, const struct nps_find_table *table, const void *common, const void *row)
{
	union nps_find_cell cells[NPS_FIND_COLUMNS];

	table->fill(common, row, cells);
	for (size_t i = 0; i < table->len; i++) {
		const struct nps_find_column *c = &table->columns[i];
		const char *key = c->key;
		cJSON *to;

		if (c->optional && !cell_known(c->unit, &cells[i]))
			continue;
		to = object_of(object, &key);
		if (to)
			add_member(to, key, c->unit, &cells[i]);
	}
}

cJSON *nps_find__object(const struct nps_find_table *table, const void *common, const void *row)
{
	cJSON *object = cJSON_CreateObject();

	if (object)
		nps_find__members(object, table, common, row);
	return object;
}

cJSON *nps_find__rows(cJSON *document, const struct nps_find_table *table, const void *common,
		      const void *rows, size_t n, size_t size)
{
	const char *key = table->path;
	cJSON *object = object_of(document, &key), *list = cJSON_AddArrayToObject(object, key);

	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, nps_find__object(table, common, (const char *)rows + i * size));
	return list;
}
