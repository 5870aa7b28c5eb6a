/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts from /proc about one process of the job. */
#ifndef NPS_PROCESS_H
#define NPS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "core/host_names.h"
#include "core/proc_maps.h"
#include "core/work_budget.h"

struct nps_agent_client;
struct nps_channel_files;

/* Where command line and environment of a process come from. */
enum nps_process_source {
	NPS_PROCESS_READ, /* /proc */
	NPS_PROCESS_OF_PARENT, /* it exited before it was read, without an exec: they are its parent's */
	NPS_PROCESS_UNREAD, /* it exited before it was read: they are missing */
};

enum nps_python_state {
	NPS_PYTHON_UNKNOWN, /* there was no interpreter when it was read last */
	NPS_PYTHON_NOT_YET, /* there is one that is not initialised */
	NPS_PYTHON_FOUND,
	NPS_PYTHON_UNREADABLE
};

struct nps_process {
	pid_t pid, ns_pid, ppid; /* ns_pid: in its own namespace */
	uid_t uid; /* real uid, when it was read last; (uid_t)-1: unknown */
	/*
	 * its mount namespace is neither ours nor the first process's, so it is in a container for the driver
	 */
	bool foreign;
	char comm[16];
	char host_name[NPS_HOST_NAME]; /* "": unknown */
	int rank, world_size; /* -1 unknown */
	uint64_t start_mono; /* ns, when it was started, or first found */
	/* start since boot, as in /proc/PID/stat; identifies the process together with its pid. 0 unknown */
	uint64_t start_ticks;
	uint64_t start_boot; /* the same in CLOCK_BOOTTIME ns, from BPF events; 0 unknown */
	uint64_t exit_mono; /* 0 while it lives */
	int exit_code;
	cJSON *cmdline; /* array of strings */
	cJSON *env; /* object: the variables worth recording */
	char *maps; /* JSON array: executable mappings, as of the last scan; NULL: none */
	size_t maps_bytes, text_bytes; /* bytes of `maps`; of cmdline and env */
	cJSON *symbols; /* array: functions whose addresses launches used */
	size_t n_symbols;
	uint64_t *host_functions; /* addresses of such functions without a name yet */
	size_t n_host_functions;
	struct nps_budget budget; /* of our work for it */
	struct nps_process *root; /* the ancestor that the user named; for that one itself */
	unsigned int n_born; /* of a root: number of listed descendants */
	size_t listed; /* of a root: bytes of the texts of all of them */
	size_t counted; /* this process's share of it */
	bool refresh; /* it has called exec, and was not read since */
	bool unlisted; /* not all of its mappings are in stacks.nps yet */
	enum nps_process_source source; /* of cmdline and env */
	bool executed; /* has called exec since it was started */
	uint64_t read_mono; /* when reading them from /proc began, 0: never */
	enum nps_python_state python; /* set by its source alone */
	unsigned int python_tries; /* to find an interpreter */
	bool has_cann;
	bool submits; /* submits tasks to a device */
	bool rescan; /* it has mapped something */
	uint64_t scanned; /* time of the last scan, CLOCK_MONOTONIC ns */
	bool alive;
	bool missed; /* it had exited a second ago, and no EXIT record had arrived */
	bool born; /* started during the capture: all of its CPU time is the capture's */
	uint64_t cpu_last; /* ns of CPU time when it was read last, 0: never read */
	bool busy; /* its CPU time had increased then */
	struct nps_channel_files *files; /* of the driver's channels, NULL: none */
	uint64_t tapped; /* bytes that its own profiler has read */
	const char *log_end; /* why its task log ended before the capture; NULL: it did not */
	bool signalled; /* the BPF programs have its helper's signal */
	struct nps_agent_client *agent; /* NULL: none */
	/* helpers of programs before an exec that have delivered; NULL: none */
	struct nps_agent_client *former;
	char agent_reason[128]; /* why there is none */
	struct nps_process *next;
	struct nps_process *next_of_pid; /* in the same slot of the table by pid */
};

/* Is it in a container? Then its device numbers differ from the driver's, which are those we see. */
static inline bool nps_process__foreign(const struct nps_process *p)
{
	return p->foreign;
}

/*
 * Reads numbers of a live process; nps_process__refresh() reads its texts. 0, -ESRCH: it has exited,
 * -ENOMEM. Free *OUT with nps_process__free().
 */
int nps_process__read(pid_t pid, struct nps_process **out);

/* A process of which only the pid is known: it may have exited. NULL: no memory. */
struct nps_process *nps_process__new(pid_t pid);
void nps_process__free(struct nps_process *p);

/* Is it alive, and its pid not reused? */
bool nps_process__is_alive(const struct nps_process *p);

/* The same; if so *CPU_NS is its CPU time. One read of /proc. */
bool nps_process__read_cpu(const struct nps_process *p, uint64_t *cpu_ns);

/*
 * Can STARTED, CLOCK_BOOTTIME ns from the kernel, be the start of this process? If either is unknown: true.
 */
bool nps_process__has_started(const struct nps_process *p, uint64_t started);

/* After an exec: drops what was known of the previous program. */
void nps_process__forget_program(struct nps_process *p);

/* Reads again what exec changes; what cannot be read is empty, and p->source shows that. */
void nps_process__refresh(struct nps_process *p);

/*
 * Reads its user again, if it is alive: a program that starts jobs for
 * others changes its user after the start.
 */
void nps_process__read_uid(struct nps_process *p);

/* Stores the executable mappings for session.json. */
void nps_process__set_maps(struct nps_process *p, const struct nps_maps *maps);

/* Frees them, its command line and its path of libraries: there are too many. */
void nps_process__drop_texts(struct nps_process *p);

/*
 * Adds its texts to its root's count; frees them if there are too many.
 * Call after they were read, or inherited.
 */
void nps_process__count_texts(struct nps_process *p);

/* Stores an address whose function is to be named. */
void nps_process__add_host_function(struct nps_process *p, uint64_t address);

/*
 * Names functions at those addresses; those without a name are dropped.
 * -ETIME: the budget is spent, some are left.
 */
int nps_process__name_host_functions(struct nps_process *p, const struct nps_maps *maps);

/*
 * Calls EACH for process PID and all its living DESCENDANTS, but not for
 * those below one for which it returns non-zero. Returns the result for PID;
 * -E2BIG: there are too many threads or descendants to find all of them.
 */
int nps_tree__for_each(pid_t pid, bool descendants, int (*each)(pid_t pid, void *arg), void *arg);

bool nps_pid_exists(pid_t pid);

/*
 * Its real user; (uid_t)-1: it has exited. Not the owner of /proc/PID,
 * which is root for processes that cannot be dumped.
 */
uid_t nps_pid_uid(pid_t pid);

/* The process that thread TID belongs to; 0: there is none. */
pid_t nps_pid_of_thread(pid_t tid);

/* Is that pid a live process with this program's name? */
bool nps_pid_is_kin(pid_t pid);

#endif
