/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic int failure;
static sqlite3_mem_methods sqlite; /* SQLite's own */

static void *json_malloc(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		nps_memory__fail(-ENOMEM);
	return memory;
}

static void *sqlite_malloc(int size)
{
	void *memory = sqlite.xMalloc(size);

	if (!memory)
		nps_memory__fail(-ENOMEM);
	return memory;
}

static void *sqlite_realloc(void *old, int size)
{
	void *memory = sqlite.xRealloc(old, size);

	if (!memory && size)
		nps_memory__fail(-ENOMEM);
	return memory;
}

static void watch(void)
{
	cJSON_Hooks hooks = { .malloc_fn = json_malloc, .free_fn = free };
	sqlite3_mem_methods watched;

	cJSON_InitHooks(&hooks);
	/* If SQLite was used before, its allocations stay as they are. */
	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite) != SQLITE_OK)
		return;
	watched = sqlite;
	watched.xMalloc = sqlite_malloc;
	watched.xRealloc = sqlite_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &watched);
}

void nps_memory__watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}

int nps_memory__fail(int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&failure, &none, err);
	return err;
}

int nps_memory__failure(void)
{
	return failure;
}

void nps_memory__reset(void)
{
	failure = 0;
}
