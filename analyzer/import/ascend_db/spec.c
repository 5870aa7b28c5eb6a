/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/ascend_db/spec.h"

#include <stdio.h>
#include <string.h>

const struct nps_db_table *const nps_db_families[] = {
	nps_db_device_tables,
	nps_db_host_tables,
	nps_db_counter_tables,
	nps_db_own_tables,
	nps_db_torch_tables,
	nps_db_memory_tables,
	NULL,
};

int nps_db_table__columns(const struct nps_db_table *table, unsigned int generation, uint8_t *columns)
{
	int n = 0;

	for (int i = 0; i < table->ncolumns; i++)
		if (table->columns[i].generations & generation)
			columns[n++] = i;
	return n;
}

int nps_db_table__ddl(const struct nps_db_table *table, unsigned int generation, char *sql, size_t size)
{
	uint8_t columns[NPS_DB_MAX_COLUMNS];
	int n = nps_db_table__columns(table, generation, columns);
	size_t len = snprintf(sql, size, "CREATE TABLE %s (", table->name);

	for (int i = 0; i < n; i++) {
		const struct nps_db_column *c = &table->columns[columns[i]];
		bool key = table->key && !strcmp(table->key, c->name);

		len += snprintf(sql + NPS_MIN(len, size), size - NPS_MIN(len, size), "%s%s %s%s%s",
				i && table->torch ? " " : "", c->name, c->type, key ? " PRIMARY KEY" : "",
				i + 1 < n ? "," : ")");
	}
	return len;
}
