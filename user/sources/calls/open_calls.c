/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the job that had begun and not returned when the capture ended: BPF maps contain the call that
 * each thread is in.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/task_iter.h"
#include "bpf_shared.h"
#include "catalog.h"
#include "core/log.h"
#include "core/proc_maps.h"
#include "event.h"
#include "sources/calls/open_slices.h"

/* An operator whose return address is not on the stack of its thread any more. */
struct left_op {
	uint32_t tid;
	uint64_t start;
};

struct collecting {
	struct nps_open_slices *slices;
	enum nps_tier shed;
	struct left_op *left;
	size_t n_left, most_left;
};

/* Calls that become records of another kind when they return. */
static bool is_special(unsigned int probe)
{
	return probe == NPS_PROBE_SQ_TASK_SEND || probe == NPS_PROBE_CQ_REPORT_RECV ||
	       probe == NPS_PROBE_CREATE_TENSOR || probe == NPS_PROBE_CREATE_TENSOR_LIST;
}

/* Clears slots of results, which are not there yet: they contain addresses. */
static void clear_results(struct nps_event *e, const struct nps_probe_row *row)
{
	for (int i = 0; i < 4; i++) {
		switch (row->slot[i].how) {
		case NPS_SLOT_OUT32:
		case NPS_SLOT_OUT64:
		case NPS_SLOT_OUTSTR:
		case NPS_SLOT_RESULT:
			e->call.slot[i] = 0;
			e->flags |= NPS_F_SLOT_FAULT(i);
		}
	}
}

static void on_call(void *arg, const void *record)
{
	const struct collecting *c = arg;
	struct nps_event e;
	const struct nps_probe_row *row;

	memcpy(&e, record, sizeof(e));
	row = nps_probe_rows__get(e.probe);
	if (!row || is_special(e.probe) || nps_probe_rows__tier(row) >= c->shed)
		return;
	clear_results(&e, row);
	nps_open_slices__keep(c->slices, &e);
}

/* Is it in the page to which the kernel redirects the returns of functions that any tool probes? */
static bool is_uprobe_page(pid_t pid, uint64_t address)
{
	struct nps_maps maps;
	bool found = false;

	if (nps_maps__read_all(pid, NULL, &maps))
		return true; /* not known: do not conclude anything */
	for (size_t i = 0; i < maps.n && !found; i++)
		found = !strcmp(maps.v[i].path, "[uprobes]") && address >= maps.v[i].start &&
			address < maps.v[i].end;
	nps_maps__free(&maps);
	return found;
}

/* Is a call over whose return address RETURN_ADDRESS was at SP? x86-64 only: 0, not known. */
static bool was_left(pid_t pid, uint64_t sp, uint64_t return_address)
{
	uint64_t now = 0;
	struct iovec to = { &now, sizeof(now) }, from = { (void *)(uintptr_t)sp, sizeof(now) };

	return return_address && process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(now) &&
	       now != return_address && !is_uprobe_page(pid, now);
}

/* Keeps which operators an exception seems to have left: bpf/operators.bpf.h describes the record. */
static void find_left(void *arg, const void *record)
{
	struct collecting *c = arg;
	struct nps_event e;

	memcpy(&e, record, sizeof(e));
	if (e.dur == NPS_OUTLASTED || c->n_left == c->most_left ||
	    !was_left((pid_t)e.pid, e.dur, e.call.slot[3]))
		return;
	c->left[c->n_left++] = (struct left_op){ .tid = e.tid, .start = e.start };
}

static bool is_left(const struct collecting *c, const struct nps_event *e)
{
	for (size_t i = 0; i < c->n_left; i++)
		if (c->left[i].tid == e->tid && c->left[i].start == e->start)
			return true;
	return false;
}

static void on_operator(void *arg, const void *record)
{
	const struct collecting *c = arg;
	struct nps_event e;
	const struct nps_probe_row *row;

	memcpy(&e, record, sizeof(e));
	row = nps_probe_rows__get(e.probe);
	if (!row || nps_probe_rows__tier(row) >= c->shed)
		return;
	if (e.dur != NPS_OUTLASTED && is_left(c, &e))
		e.flags = (e.flags & ~NPS_F_UNFINISHED) | NPS_F_UNWOUND;
	e.dur = c->slices->end > e.start ? c->slices->end - e.start : 0;
	e.call.slot[3] = 0;
	nps_open_slices__keep(c->slices, &e);
}

static void on_syscall(void *arg, const void *record)
{
	const struct collecting *c = arg;
	struct nps_event e;

	memcpy(&e, record, sizeof(e));
	nps_open_slices__keep(c->slices, &e);
}

static int iterator_run(const struct bpf_program *prog, void (*each)(void *arg, const void *record),
			struct collecting *c, const char *what)
{
	int err = nps_task_iter__run(prog, sizeof(struct nps_event), each, c);

	if (err)
		nps_warn("cannot query which %s have not returned: %s: those that outlast the capture are "
			 "missing",
			 what, strerror(-err));
	return err;
}

/*
 * The job goes on meanwhile: one that returned before its stack was read was not left, and the second pass
 * shows that.
 */
static int open_operators_collect(struct collecting *c, const struct bpf_program *prog)
{
	int err;

	c->most_left = 4096; /* more are taken for open */
	c->left = calloc(c->most_left, sizeof(*c->left));
	if (!c->left) {
		nps_warn("out of memory: operators that outlast the capture are missing");
		return -ENOMEM;
	}
	err = iterator_run(prog, find_left, c, "operators");
	if (err)
		goto out;
	err = iterator_run(prog, on_operator, c, "operators");
out:
	free(c->left);
	return err;
}

int nps_open_calls__collect(struct nps_open_slices *s, struct nps_bpf_loader *k, enum nps_tier shed)
{
	struct collecting c = { .slices = s, .shed = shed };
	int err, other = 0, operators = 0;

	if (nps_bpf_loader__is_legacy(k))
		return 0; /* old kernels have no iterators */
	err = iterator_run(nps_bpf_loader__open_calls(k), on_call, &c, "CANN calls");
	if (nps_bpf_loader__open_operators(k))
		operators = open_operators_collect(&c, nps_bpf_loader__open_operators(k));
	/* If all calls are summed up, none is reported. */
	if (nps_bpf_loader__has_syscalls(k) && nps_bpf_loader__threshold(k) < NPS_LONGEST_SUMMED)
		other = iterator_run(nps_bpf_loader__open_syscalls(k), on_syscall, &c, "system calls");
	return err ? err : operators ? operators : other;
}
