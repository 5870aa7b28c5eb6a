/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans kept by key, for the process; what is in is never dropped. */
#include "plan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct cached {
	struct cached *next;
	uint64_t key;
	const char *api; /* NULL: no plan yet */
	struct plan plan;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cached *buckets[BUCKETS];

void plan_copy(struct plan *to, const struct plan *from)
{
	*to = *from;
	for (int i = 0; i < to->nkernels; i++)
		if (to->kernels[i].tensors)
			to->kernels[i].tensors = strdup(to->kernels[i].tensors);
}

void plan_free(struct plan *plan)
{
	for (int i = 0; i < plan->nkernels; i++)
		free(plan->kernels[i].tensors);
	plan->nkernels = 0;
}

struct cached *cache_entry(uint64_t key, bool *fresh)
{
	struct cached **bucket = &buckets[key % BUCKETS], *entry;

	pthread_mutex_lock(&lock);
	for (entry = *bucket; entry && entry->key != key; entry = entry->next)
		;
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (entry) {
			entry->key = key;
			entry->next = *bucket;
			*bucket = entry;
		}
	}
	*fresh = !entry || !entry->api;
	pthread_mutex_unlock(&lock);
	return entry;
}

void cache_fill(struct cached *entry, const char *api, const struct plan *plan)
{
	pthread_mutex_lock(&lock);
	plan_free(&entry->plan);
	plan_copy(&entry->plan, plan);
	entry->api = api;
	pthread_mutex_unlock(&lock);
}

void cache_fetch(struct cached *entry, struct plan *plan)
{
	pthread_mutex_lock(&lock);
	plan_copy(plan, &entry->plan);
	pthread_mutex_unlock(&lock);
}

aclOpExecutor *cache_executor(struct cached *entry)
{
	aclOpExecutor *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->api = entry->api;
	cache_fetch(entry, &e->plan);
	return e;
}
