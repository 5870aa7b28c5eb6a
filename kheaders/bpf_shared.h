/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Sizes and indices on which the BPF objects and the collector agree. */
#ifndef NPS_BPF_SHARED_H
#define NPS_BPF_SHARED_H

#define NPS_MAX_TARGETS 8192
#define NPS_MAX_CPUS 1024
#define NPS_MAX_THREADS 65536
#define NPS_MAX_SQE 32 /* records of one halSqTaskSend call */
#define NPS_MAX_DEPTH 16 /* probed calls nested in one thread */

/* Value in the targets map. */
#define NPS_TARGET_WATCH 0x1
#define NPS_TARGET_FOLLOW 0x2 /* children become targets too */
#define NPS_TARGET_OSRT 0x4 /* system calls and scheduling as well */

/* Per-CPU counters: losses are a base plus the event kind; strings count as kind 31. */
#define NPS_KIND_STRING 31
#define NPS_KIND_END 32 /* room for more kinds */
enum nps_counter {
	NPS_COUNTER_LOST = 0, /* no room in the ring */
	NPS_COUNTER_UNRETURNED =
		NPS_KIND_END, /* calls left by longjmp or an exception: no loss, there is no return */
	NPS_COUNTER_SQE_CUT = 33, /* SQEs beyond NPS_MAX_SQE in one call */
	NPS_COUNTER_FAULT = 34, /* job memory could not be read */
	NPS_COUNTER_HITS = 35, /* uprobe programs run for a watched process */
	NPS_COUNTER_TEXT_CUT = 36, /* texts longer than NPS_TEXT_MAX */
	NPS_COUNTER_DOMAIN_UNKNOWN = 37, /* domains of mstx that were made before the capture */
	NPS_COUNTER_MSTX_FILTERED = 38, /* marks and ranges of domains that were not asked for */
	NPS_COUNTER_MAX = 39,
};

/* What the domains of mstx in the map of names mean. */
enum nps_mstx_mode { NPS_MSTX_ALL = 0, NPS_MSTX_INCLUDE = 1, NPS_MSTX_EXCLUDE = 2 };
#define NPS_MSTX_DOMAINS 256 /* names that can be given */

/* A domain's handle of our injection library points at this, and its name comes after. */
#define NPS_MSTX_MAGIC 0x316d6f6478746d6eULL /* "nmtxdom1" */

/* System calls after which a library, or our helper, may be there. */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define NPS_NR_MMAP 9
#define NPS_NR_MEMFD_CREATE 319
#else
#define NPS_NR_MMAP 222
#define NPS_NR_MEMFD_CREATE 279
#endif
#define NPS_PROT_EXEC 4

#endif
