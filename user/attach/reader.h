/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that reads records from the rings and writes them into the session.
 * It wakes periodically, or when a ring fills; what concerns the control thread
 * (forks, exits, new libraries, new devices) it passes on as notices.
 */
#ifndef NPS_READER_H
#define NPS_READER_H

#include <stdint.h>
#include <sys/types.h>

#include "event.h"
#include "attach/bpf_loader.h"
#include "core/session_writer.h"

struct nps_reader;

enum nps_notice_what {
	NPS_NOTICE_FORK, /* arg = new pid, which the last members describe */
	NPS_NOTICE_EXEC, /* comm is the new one */
	NPS_NOTICE_EXIT, /* arg = exit code */
	NPS_NOTICE_CODE_MAPPED, /* a library may have been loaded */
	NPS_NOTICE_DEVICE, /* a device was set */
	NPS_NOTICE_SUBMITS, /* the process submitted its first task to device arg */
	NPS_NOTICE_HOST_FUNCTION, /* arg = host address that stands for a kernel function, at its first use */
};

struct nps_notice {
	enum nps_notice_what what;
	uint32_t pid;
	uint64_t arg, time; /* CLOCK_MONOTONIC ns */
	uint64_t cpu_ns; /* EXIT: CPU time of the process */
	/* FORK, EXEC, EXIT: the kernel's data of the process at that time */
	uint64_t started; /* CLOCK_BOOTTIME ns, 0 unknown */
	pid_t parent; /* 0 unknown */
	char comm[NPS_COMM_SIZE]; /* "" unknown */
};

struct nps_operators;

struct nps_reader_counts {
	uint64_t kinds[NPS_KIND_END]; /* records by enum nps_kind; [NPS_KIND_STRING] strings */
	uint64_t summed; /* system calls in the NPS_EV_SYSCALL_SUM records */
	uint64_t faults; /* page faults in the NPS_EV_FAULT records */
	uint64_t sums_failed; /* times that sums could not be read: their calls are missing */
	uint64_t bytes;
	uint64_t processes_lost; /* notices of forks, execs and exits for which there was no memory */
	uint64_t python_left_out; /* Python stacks and code objects, once python.nps was full */
	uint64_t texts_cut; /* by the reader; BPF programs count their own */
};

/* Starts the thread. It writes s->events and s->strings, with the names of `operators`. 0 or -errno. */
int nps_reader__start(struct nps_bpf_loader *k, struct nps_session_writer *s,
		      const struct nps_operators *operators, struct nps_reader **out);

/* Reads what is left in the rings, writes it, ends the thread. Call after detaching. */
void nps_reader__stop(struct nps_reader *r);
void nps_reader__free(struct nps_reader *r);

/* Writes N events that the collector made itself. Call once the thread has stopped. */
struct nps_event;
void nps_reader__append(struct nps_reader *r, const struct nps_event *events, size_t n);

/* Descriptor that is readable when there are notices. */
int nps_reader__notice_fd(const struct nps_reader *r);

/*
 * Reads up to `max` notices; returns their number. *overflow is set when some were lost: scan everything
 * again. Notices of forks, execs and exits are kept as long as there is memory.
 */
int nps_reader__notices(struct nps_reader *r, struct nps_notice *v, int max, int *overflow);

void nps_reader__counts(const struct nps_reader *r, struct nps_reader_counts *c);

/*
 * Number of records of a probe; OPERATOR: of one operator, if many share the row; else 0. Final after
 * nps_reader__stop().
 */
uint64_t nps_reader__hits(const struct nps_reader *r, unsigned int probe, unsigned int operator);

#endif
