/* SPDX-License-Identifier: BSD-2-Clause */
/* What a capture records, and how: for each source, too, so that the loop needs none of their headers. */
#ifndef NPS_RECORD_OPTS_H
#define NPS_RECORD_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/mstx.h"
#include "bpf_shared.h"
#include "driver/device_options.h"

enum nps_task_source_kind { NPS_TASKS_AUTO, NPS_TASKS_HOST, NPS_TASKS_AGENT, NPS_TASKS_PROFILER };

enum nps_unwind { NPS_UNWIND_AUTO, NPS_UNWIND_FP, NPS_UNWIND_DWARF };

struct nps_stacks_opts {
	bool on_cpu, off_cpu;
	unsigned int hz; /* samples a second of each CPU */
	uint64_t sleep_min; /* ns */
	enum nps_unwind unwind;
	bool children; /* children of the job's processes belong to the job */
	uint32_t python_at; /* NPS_PY_AT_STACKS: those with Python frames */
};

struct nps_driver_opts {
	bool calls; /* system calls on device nodes */
	bool tasks; /* SQEs, CQEs and copies that pass through the driver */
	/* requested explicitly: what is not available is reported, and makes the capture incomplete */
	bool requested;
};

/* OPTS as an argument of --driver. */
const char *nps_driver_opts__name(const struct nps_driver_opts *opts);

/* Parts of --host-sys. */
#define NPS_HOST_SYS_CPU 0x1U
#define NPS_HOST_SYS_MEM 0x2U
#define NPS_HOST_SYS_DISK 0x4U
#define NPS_HOST_SYS_NETWORK 0x8U
#define NPS_HOST_SYS_OSRT 0x10U
#define NPS_HOST_SYS_SAMPLED 0xfU /* those that the host's thread samples */
#define NPS_HOST_SYS_PARTS 5

#define NPS_HOST_SYS_MOST_HZ 1000

/* Name of part number `i` < NPS_HOST_SYS_PARTS, whose bit is 1 << i. */
const char *nps_host_sys__part(unsigned int i);

struct nps_record_opts {
	size_t sz;
	int argc; /* of the command line, for the session */
	char **argv;
	const pid_t *pids;
	int n_pids;
	char **command; /* NULL-terminated; NULL: attach to pids */
	uint64_t duration_ns; /* 0: until a signal, or until the job ends */
	const char *out;
	int level;
	enum nps_task_source_kind task_source;
	const char *step_marker; /* function name, NULL: none */
	const char *step_label; /* "label:" and its text, NULL: none; the analyzer finds it */
	int step_arg; /* argument that carries the step's number, 0: none */
	size_t ring_bytes;
	uint64_t max_size; /* bytes of the session, 0: half of what is free on its disk */
	/* bytes a second of all task logs; half of it for a single one, or for a sampled device */
	uint64_t max_log_rate;
	double max_overhead; /* percent of the job's CPU time, 0: no limit */
	bool osrt, children;
	bool inject; /* load the helper library into processes that were started without it */
	bool irq; /* interrupts that stop the job's threads */
	struct nps_stacks_opts stacks; /* neither on_cpu nor off_cpu: none */
	/* the whole host: processes that use an NPU are found and recorded, the others are sampled */
	bool all;
	bool host_requested; /* the host was requested explicitly: a job without CANN is no error */
	unsigned int host_sys, host_sys_hz; /* NPS_HOST_SYS_* to sample, and samples a second */
	uint64_t osrt_threshold_ns; /* system calls shorter than this are summed up */
	bool shapes; /* of operators' tensors */
	enum nps_ops ops; /* operators of PyTorch */
	bool torch_memory; /* what torch_npu's allocator does */
	uint32_t python_at; /* NPS_PY_AT_*: where Python stacks are walked */
	bool keep_polled; /* keep probes on functions that the job polls and the kernel single-steps */
	struct nps_mstx_opts mstx;
	struct nps_device_opts devices; /* what is sampled of them */
	struct nps_driver_opts driver; /* what is recorded of the NPU's driver */
};

#endif
