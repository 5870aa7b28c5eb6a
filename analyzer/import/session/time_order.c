/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/time_order.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Sorts VEC by the uint64_t that each row has at OFFSET. */
static int sort_vec_by_time(struct nps_vec *vec, size_t offset)
{
	struct nps_vec keys, sorted;
	size_t n = vec->len;
	int err;

	nps_vec__init(&keys, vec->dirfd, sizeof(struct nps_key));
	nps_vec__init(&sorted, vec->dirfd, vec->elem);
	err = n >= NPS_NONE ? -EOVERFLOW : nps_vec__resize(&keys, 2 * n);
	err = err ? err : nps_vec__resize(&sorted, n);
	if (!err && n) {
		struct nps_key *key = keys.data;

		for (size_t i = 0; i < n; i++) {
			key[i] = (struct nps_key){ .row = i };
			memcpy(&key[i].key, (char *)vec->data + i * vec->elem + offset, sizeof(key[i].key));
		}
		nps_sort_keys(key, key + n, n);
		for (size_t i = 0; i < n; i++)
			memcpy((char *)sorted.data + i * vec->elem,
			       (char *)vec->data + key[i].row * vec->elem, vec->elem);
		nps_vec__free(vec);
		*vec = sorted;
	} else {
		nps_vec__free(&sorted);
	}
	nps_vec__free(&keys);
	return err;
}

int nps_proc__sort(struct nps_proc *proc)
{
	struct nps_vec *const events[] = { &proc->os_calls, &proc->os_spans, &proc->os_locks,
					   &proc->runs,	    &proc->irqs,     &proc->drivers };
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(events); i++)
		err = sort_vec_by_time(events[i], offsetof(struct nps_event, start));
	return err ? err : sort_vec_by_time(&proc->marks, offsetof(struct nps_mstx_mark, start));
}
