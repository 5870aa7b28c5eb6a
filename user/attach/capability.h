/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this kernel and this process can do, found out once by trying. Where a kernel refuses a program after
 * all, the BPF loader and sources use what is next best.
 */
#ifndef NPS_CAPABILITY_H
#define NPS_CAPABILITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How C functions are probed at entry and return, worst first. */
enum nps_uprobe_row {
	NPS_UPROBE_NONE = 0,
	NPS_UPROBE_PERF, /* a perf event for each probe: slow to detach */
	NPS_UPROBE_MULTI, /* one link a file for entries, one for returns */
	NPS_UPROBE_SESSION, /* one link a file for both */
};

struct nps_capability {
	char missing_caps[128]; /* names of the Linux capabilities we lack, "" = none */
	bool bpf; /* bpf(2) works at all */
	int bpf_error; /* errno of its failure */
	/* lockdown=confidentiality: no program may read the kernel's memory; known with raw_tracepoint */
	bool locked_down;
	bool btf; /* /sys/kernel/btf/vmlinux, which relocation needs */
	bool ringbuf, task_storage, raw_tracepoint, cookie;
	bool fentry; /* programs at the entry of the kernel's own functions, without a breakpoint */
	bool python_samples; /* Python frames can be walked where a sample is taken */
	enum nps_uprobe_row uprobe;
	bool uprobe_admin; /* uprobes by perf event need CAP_SYS_ADMIN; elsewhere CAP_PERFMON is enough */
	uint32_t mark_attach_type; /* of entry-only probes: uprobe multi or 0 (perf event) */
};

/*
 * Finds out. Features in the environment variable NPUSCOPE_FORBID (comma-separated: btf, ringbuf,
 * task_storage, cookie, uprobe_session, uprobe_multi, fentry, python_samples) count as missing, so that each
 * fallback can be tried on any kernel.
 */
void nps_capability__probe(struct nps_capability *c);

/* Does the kernel need bpf/legacy.bpf.c: without types or ring buffers? */
bool nps_capability__is_legacy(const struct nps_capability *c);

/* Does attaching take CAP_SYS_ADMIN, so that libraries that come later want it? NULL: nothing is attached. */
bool nps_capability__wants_admin(const struct nps_capability *c);

/*
 * 0 when events can be captured; otherwise prints one line with what is
 * missing and returns -EPERM or -ENOTSUP.
 */
int nps_capability__check(const struct nps_capability *c);

const char *nps_uprobe_row__name(enum nps_uprobe_row row);

/* Version of the running kernel, as LINUX_VERSION_CODE; 0: unknown. */
uint32_t nps_kernel_version(void);

/* Prints the table of `npuscope doctor`. */
void nps_capability__print(const struct nps_capability *c, FILE *out);

#endif
