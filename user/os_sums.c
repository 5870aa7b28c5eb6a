/* SPDX-License-Identifier: BSD-2-Clause */
#include "os_sums.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clocks.h"

#define BATCH 256 /* more than a bucket of the table will ever hold */

static void give_sum(const struct nps_sum_key *key, const struct nps_sum *sum, nps_os_sum_fn fn, void *ctx)
{
	struct nps_event e = { .kind = NPS_EV_SYSCALL_SUM,
			       .flags = (uint8_t)key->flags,
			       .probe = key->nr,
			       .pid = key->pid,
			       .tid = key->tid,
			       .start = sum->first,
			       .dur = sum->last - sum->first };

	e.args[0] = sum->count | (uint64_t)sum->errors << 32;
	e.args[1] = sum->total;
	e.args[2] = sum->shortest | (uint64_t)sum->longest << 32;
	e.args[3] = sum->bytes;
	fn(ctx, &e);
}

/* Nobody writes to the table meanwhile. */
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
			give_sum(&keys[i], &sums[i], fn, ctx);
		from = &where;
	}
	return err == -ENOENT ? 0 : err; /* that was the last of them */
}

int nps_os_sums__take(struct nps_kernel_side *k, nps_os_sum_fn fn, void *ctx)
{
	int fd = nps_kernel_side__sums_fd(k, true);
	int err = fd < 0 ? 0 : empty(fd, fn, ctx);

	nps_kernel_side__turn_sums(k);
	return err;
}

/* The kernel's own counts of a thread's page faults. */
static int read_faults(uint32_t pid, uint32_t tid, uint64_t *minor, uint64_t *major)
{
	unsigned long min, maj;
	char path[48], buf[1024], *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = '\0';
	at = strrchr(buf, ')'); /* the name before it can hold anything */
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu", &min, &maj) != 2)
		return -EPROTO;
	*minor = min;
	*major = maj;
	return 0;
}

/* Threads tell their faults when they leave a CPU, at most once a second: what came after that is here. */
static void give_faults(const struct nps_thread *t, uint32_t tid, nps_os_sum_fn fn, void *ctx)
{
	struct nps_event e = { .kind = NPS_EV_FAULT,
			       .probe = NPS_FAULT_SUM,
			       .pid = t->pid,
			       .tid = tid,
			       .start = t->faults_told };
	uint64_t minor = 0, major = 0, now = nps_now(CLOCK_MONOTONIC);

	if (read_faults(t->pid, tid, &minor, &major) || minor < t->minor || major < t->major ||
	    (minor == t->minor && major == t->major))
		return; /* it has ended, and told them then; or it has none */
	e.dur = now > e.start ? now - e.start : 0;
	e.args[0] = minor - t->minor;
	e.args[1] = major - t->major;
	fn(ctx, &e);
}

int nps_os_sums__finish(struct nps_kernel_side *k, nps_os_sum_fn fn, void *ctx)
{
	int threads = nps_kernel_side__threads_fd(k), sums = nps_kernel_side__sums_fd(k, false);
	int err = nps_os_sums__take(k, fn, ctx);
	struct nps_thread thread;
	uint32_t tid, *before = NULL;

	if (sums < 0)
		return 0;
	if (!err)
		err = empty(sums, fn, ctx);
	while (!bpf_map_get_next_key(threads, before, &tid)) {
		if (!bpf_map_lookup_elem(threads, &tid, &thread))
			give_faults(&thread, tid, fn, ctx);
		before = &tid;
	}
	return err;
}
