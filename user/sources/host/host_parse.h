/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses texts of /proc into samples of the host. Nothing is allocated and nothing beyond `len` is read; a
 * text in an unknown format yields the values up to there. Times of the samples are left to the caller.
 */
#ifndef NPS_HOST_PARSE_H
#define NPS_HOST_PARSE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

#define NPS_HOST_ALL_CPUS 0xffffffffU

/*
 * /proc/stat: up to `max` CPUs (first the sum of all, as in the file) and the host's counters; missing ones
 * are NPS_HOST_UNKNOWN. `tick_ns`: length of a clock tick. Returns the number of CPUs.
 */
size_t nps_host_parse__stat(const char *text, size_t len, uint64_t tick_ns, struct nps_host_cpu *cpus,
			    size_t max, struct nps_host_system *system);

/* /proc/PID/task/TID/schedstat into run, wait and switches. */
bool nps_host_parse__schedstat(const char *text, size_t len, struct nps_host_thread *thread);

/* The used members of /proc/PID/stat and /proc/PID/task/TID/stat. */
struct nps_task_stat {
	char comm[16]; /* arbitrary, the process can set it */
	char state;
	uint32_t cpu; /* the CPU that it ran on last */
	uint64_t ticks; /* user and system time */
	uint64_t start; /* ticks after boot: distinguishes processes with the same pid */
};
bool nps_host_parse__task(const char *text, size_t len, struct nps_task_stat *task);

/* /proc/PID/statm into resident. `page`: bytes of one. */
bool nps_host_parse__statm(const char *text, size_t len, uint64_t page, struct nps_host_process *process);

/* /proc/PID/io into read, written and cancelled. */
bool nps_host_parse__io(const char *text, size_t len, struct nps_host_process *process);

/* /proc/meminfo; false if even the total is missing. */
bool nps_host_parse__meminfo(const char *text, size_t len, struct nps_host_memory *memory);

/* A device or interface with its name. */
struct nps_named_disk {
	struct nps_host_disk disk;
	char name[NPS_HOST_NAME_MAX];
};

struct nps_named_card {
	struct nps_host_card card; /* id stays 0 */
	char name[NPS_HOST_NAME_MAX];
};

/* /proc/diskstats: up to `max` devices that have been used. Returns their number. */
size_t nps_host_parse__disks(const char *text, size_t len, struct nps_named_disk *disks, size_t max);

/* /proc/PID/net/dev: up to `max` interfaces. Returns their number. */
size_t nps_host_parse__cards(const char *text, size_t len, struct nps_named_card *cards, size_t max);

#endif
