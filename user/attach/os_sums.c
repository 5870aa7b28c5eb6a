/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/os_sums.h"

#include <bpf/bpf.h>
#include <errno.h>

#define BATCH 256 /* more than a bucket of the table ever holds */

static void report_sum(const struct nps_sum_key *key, const struct nps_sum *sum, nps_os_sum_fn fn, void *ctx)
{
	struct nps_event e = { .kind = NPS_EV_SYSCALL_SUM,
			       .flags = (uint8_t)key->flags,
			       .nr = key->nr,
			       .pid = key->pid,
			       .tid = key->tid,
			       .start = sum->first,
			       .dur = sum->last - sum->first,
			       .syscall_sum = { .count = sum->count,
						.failed = sum->errors,
						.total = sum->total,
						.shortest = sum->shortest,
						.longest = sum->longest,
						.bytes = sum->bytes } };

	fn(ctx, &e);
}

/* Drains a table that no program writes to meanwhile. */
static int empty(int fd, nps_os_sum_fn fn, void *ctx)
{
	struct nps_sum_key keys[BATCH];
	struct nps_sum sums[BATCH];
	uint32_t where, *from = NULL;
	int err = 0;

	while (!err) {
		uint32_t n = BATCH;

		err = bpf_map_lookup_and_delete_batch(fd, from, &where, keys, sums, &n, NULL) ? -errno : 0;
		for (uint32_t i = 0; (!err || err == -ENOENT) && i < n; i++)
			report_sum(&keys[i], &sums[i], fn, ctx);
		from = &where;
	}
	return err == -ENOENT ? 0 : err; /* that was the last one */
}

int nps_os_sums__drain(struct nps_bpf_loader *k, nps_os_sum_fn fn, void *ctx)
{
	int fd = nps_bpf_loader__sums_fd(k, true);
	int err = fd < 0 ? 0 : empty(fd, fn, ctx);

	nps_bpf_loader__turn_sums(k);
	return err;
}

int nps_os_sums__finish(struct nps_bpf_loader *k, nps_os_sum_fn fn, void *ctx)
{
	int sums = nps_bpf_loader__sums_fd(k, false), err = nps_os_sums__drain(k, fn, ctx);

	return sums < 0 || err ? err : empty(sums, fn, ctx);
}
