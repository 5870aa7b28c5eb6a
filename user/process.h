/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc says of one process of the job. */
#ifndef NPS_PROCESS_H
#define NPS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "host_names.h"
#include "proc_maps.h"
#include "work_budget.h"

struct nps_agent_client;
struct nps_channel_files;

/* Where command line and environment of a process come from. */
enum nps_process_source {
	NPS_PROCESS_READ, /* /proc */
	NPS_PROCESS_OF_PARENT, /* it ended before it was read, and had executed no program: they are its parent's */
	NPS_PROCESS_UNREAD, /* it ended before it was read: they are missing */
};

struct nps_process {
	pid_t pid, ns_pid, ppid; /* ns_pid: in its own namespace */
	uid_t uid; /* real, when it was read last; (uid_t)-1: it was not */
	bool foreign; /* its mount namespace is neither ours nor the first process's: what a container is to the driver */
	char comm[16];
	char host_name[NPS_HOST_NAME]; /* "": not known */
	int rank, world_size; /* -1 unknown */
	uint64_t start_mono; /* ns, when it was born, or first seen by us */
	uint64_t
		start_ticks; /* since boot, as /proc/PID/stat has it; with the pid that is one process. 0 unknown */
	uint64_t start_boot; /* the same in CLOCK_BOOTTIME ns, as the kernel side told it; 0 unknown */
	uint64_t exit_mono; /* 0 while it lives */
	int exit_code;
	cJSON *cmdline; /* array of strings */
	cJSON *env; /* object: the variables worth recording */
	char *maps; /* JSON array: executable mappings, as of the last scan; NULL: none */
	size_t maps_bytes, text_bytes; /* of it; of cmdline and env */
	cJSON *symbols; /* array: functions whose address a launch named */
	size_t n_symbols;
	uint64_t *stubs; /* addresses of such functions that are not named yet */
	size_t n_stubs;
	struct nps_budget budget; /* of our work for it */
	struct nps_process *root; /* the process that was named to us, of which this one is born; itself */
	unsigned int n_born; /* of a root: that are listed */
	size_t listed; /* of a root: bytes of texts of all of them */
	size_t counted; /* bytes of it that are this process' own */
	bool refresh; /* it has executed a program, and was not read since */
	bool unlisted; /* stacks.nps has not all of its mappings yet */
	enum nps_process_source source; /* of cmdline and env */
	bool executed; /* a program, since it was born */
	uint64_t read_mono; /* when reading them from /proc began, 0: never */
	bool has_cann;
	bool submits; /* tasks to a device */
	bool rescan; /* it has mapped something */
	uint64_t scanned; /* when we looked last, CLOCK_MONOTONIC ns */
	bool alive;
	bool missed; /* it was gone a second ago, and its EXIT record had not come */
	bool born; /* during the capture: all of its CPU time is the capture's */
	uint64_t cpu_last; /* ns of CPU time at the last look, 0: not looked */
	bool busy; /* it had used some since the look before */
	struct nps_channel_files *files; /* of the driver's channels, NULL: none */
	uint64_t tapped; /* bytes that its own profiler read */
	const char *log_end; /* why its task log ended before the capture did; NULL: it did not */
	bool signalled; /* its helper's signal is known to the kernel side */
	struct nps_agent_client *agent; /* NULL: none */
	struct nps_agent_client *former; /* of programs before exec that delivered; NULL: none */
	char agent_reason[128]; /* why there is none */
	struct nps_process *next;
	struct nps_process *next_of_pid; /* in the same slot of the table by pid */
};

/* Is it in a container of its own? It calls devices by other numbers than the driver gives them to us, then. */
static inline bool nps_process__foreign(const struct nps_process *p)
{
	return p->foreign;
}

/* Reads numbers of a live process; its texts are left to nps_process__refresh(). -ESRCH when it is gone, -ENOMEM. */
int nps_process__read(pid_t pid, struct nps_process **out);

/* A process of which nothing is known but its pid: it may be gone. NULL: no memory. */
struct nps_process *nps_process__new(pid_t pid);
void nps_process__free(struct nps_process *p);

/* Is it alive, and not another that has its pid now? */
bool nps_process__is_alive(const struct nps_process *p);

/* The same; if so *CPU_NS is the CPU time that it has used. One read of /proc. */
bool nps_process__look(const struct nps_process *p, uint64_t *cpu_ns);

/* Does STARTED, CLOCK_BOOTTIME ns as the kernel has it, mean this process? Of two unknown times it is taken to. */
bool nps_process__has_started(const struct nps_process *p, uint64_t started);

/* Nothing is known any more of the program that it executes. */
void nps_process__forget_program(struct nps_process *p);

/* Reads again what exec changes; what cannot be read is empty, and p->source says so. */
void nps_process__refresh(struct nps_process *p);

/* Reads its user again, if it is alive: who starts a job for others becomes them after it was born. */
void nps_process__read_uid(struct nps_process *p);

/* Remembers the executable mappings for session.json. */
void nps_process__set_maps(struct nps_process *p, const struct nps_maps *maps);

/* Forgets them, its command line and its path of libraries: there are too many. */
void nps_process__drop_texts(struct nps_process *p);

/* What it has of texts counts as its root's; they are dropped where there are too many. After they were read, or inherited. */
void nps_process__count_texts(struct nps_process *p);

/* Remembers an address whose function is to be named. */
void nps_process__add_stub(struct nps_process *p, uint64_t address);

/*
 * Names functions at those addresses; those without a name are forgotten. -ETIME: the budget is spent, some
 * are left.
 */
int nps_process__name_stubs(struct nps_process *p, const struct nps_maps *maps);

/*
 * Calls EACH for process PID and all its living DESCENDANTS, but not for those below one for which it returns
 * non-zero. Returns what it returned for PID; -E2BIG: there are too many threads or descendants to find all
 * of them.
 */
int nps_tree__for_each(pid_t pid, bool descendants, int (*each)(pid_t pid, void *arg), void *arg);

bool nps_pid_exists(pid_t pid);

/* Its real user; (uid_t)-1: it is gone. Not the owner of /proc/PID: that is root's of a process that cannot be dumped. */
uid_t nps_pid_uid(pid_t pid);

/* The process that thread TID belongs to; 0: there is none. */
pid_t nps_pid_of_thread(pid_t tid);

/* Is that pid a live process of this program's name? */
bool nps_pid_is_kin(pid_t pid);

#endif
