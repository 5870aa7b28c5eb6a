/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's libraries (cann-abi 1.3, 4): libascend_hal.so, through which channels are read, and
 * libdcmi.so, which npu-smi uses. They are not loaded here: a process without rights loads and calls them
 * on request (device_launcher.h). The host's own are preferred; those of a job in a container are used when
 * the host has none, and run in its container.
 *
 * The results are only as reliable as those libraries: sizes and times
 * are checked here, values by the callers.
 */
#ifndef NPS_DEVICE_LIB_H
#define NPS_DEVICE_LIB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/clocks.h"
#include "driver/device_launcher.h"

/* Result of a call when the process that makes it has ended, which has been reported. */
#define NPS_DEVICE_LIB_EXITED (-32)

/*
 * Where a library of the driver runs. It numbers devices as its mount namespace
 * does, which is a container to the driver. A job's library is only used for
 * jobs of the same user there, unless it is root's. All 0: the host's.
 */
struct nps_device_numbers {
	uint64_t dev, ino; /* of a mount namespace that is not the host's */
	bool of_job;
	uid_t uid;
};

/* A connection to the libraries. One call at a time. */
struct nps_device_lib {
	struct nps_device_launcher *launcher; /* NULL: there are no libraries */
	bool has[2]; /* by enum nps_worker_library, as all arrays here */
	struct nps_device_worker *workers[2];
	int fds[2]; /* with one worker for both, the same one */
	char paths[2][256];
	struct nps_device_numbers numbers[2];
	/* CLOCK_MONOTONIC ns: when the last call began; NULL: not recorded */
	atomic_uint_fast64_t *sign;
	/* Calls LIBRARY. DATA has room for r->room bytes. 0 or NPS_DEVICE_LIB_EXITED. Tests replace it. */
	int (*exchange)(const struct nps_device_lib *lib, enum nps_worker_library library,
			const struct nps_worker_request *r, const void *payload,
			struct nps_worker_reply *reply, void *data);
};

/* No libraries yet; LAUNCHER, which must outlive LIB, starts the processes that load them. */
void nps_device_lib__init(struct nps_device_lib *lib, struct nps_device_launcher *launcher);

/*
 * Opens libascend_hal.so; PIDS are processes of the job, whose mappings are searched for libraries that the
 * host lacks. 0; -ENOENT without the library, -ELIBACC if it cannot be loaded or lacks a function: the
 * reason is in `why`.
 */
int nps_device_lib__open(struct nps_device_lib *lib, const pid_t *pids, size_t n, char *why, size_t why_size);

/* The same of libdcmi.so; -ELIBACC has been reported. */
int nps_device_lib__open_dcmi(struct nps_device_lib *lib, const pid_t *pids, size_t n);

/* Opens another connection to what FROM has open. -errno: TO has nothing open. */
int nps_device_lib__connect(const struct nps_device_lib *from, struct nps_device_lib *to);

/* Closes the connection. The libraries stay open until their launcher ends. */
void nps_device_lib__close(struct nps_device_lib *lib);

/* CPU time, ns, of the processes that call LIB's libraries, as long as they run. */
uint64_t nps_device_lib__cpu_ns(const struct nps_device_lib *lib);

/* Has a process with libraries of LIB exited by itself, or been ended because its replies made no sense? */
bool nps_device_lib__failed(const struct nps_device_lib *lib);

/*
 * May libascend_hal.so be queried about the devices of process PID, which is in a container if FOREIGN
 * (nps_process__foreign()), by the numbers that the process has for them?
 */
bool nps_device_lib__numbers_for(const struct nps_device_lib *lib, pid_t pid, bool foreign);

/* Are its answers on devices valid for all jobs, by the host's numbers? */
bool nps_device_lib__is_hosts(const struct nps_device_lib *lib);

/* Have both libraries the same numbers for devices? */
bool nps_device_lib__same_numbers(const struct nps_device_lib *lib);

/* Records the time before a call into the driver, or before anything else that can hang as long. */
static inline void nps_device_lib__alive(const struct nps_device_lib *lib)
{
	if (lib->sign)
		atomic_store(lib->sign, nps_now(CLOCK_MONOTONIC));
}

/* Loads LIBRARY in its worker. 0, -ENOENT, -ELIBACC, NPS_DEVICE_LIB_EXITED; TEXT: its path, or the reason. */
int nps_device_lib__load(const struct nps_device_lib *lib, enum nps_worker_library library,
			 char text[NPS_WORKER_TEXT]);

/* --- the driver's functions. They return its code, NPS_WORKER_NO_FUNCTION or NPS_DEVICE_LIB_EXITED ---- */

struct nps_prof_start {
	int32_t type; /* enum nps_prof_type */
	uint32_t period_ms;
	uint32_t real_time;
	const void *data;
	uint32_t data_size;
};

/* CLOCK_MONOTONIC_RAW ns around a call. */
struct nps_call_span {
	uint64_t before, after;
};

int nps_device_lib__channels(const struct nps_device_lib *lib, uint32_t device,
			     struct nps_prof_channels *channels);
int nps_device_lib__start(const struct nps_device_lib *lib, uint32_t device, uint32_t channel,
			  const struct nps_prof_start *start);
int nps_device_lib__stop(const struct nps_device_lib *lib, uint32_t device, uint32_t channel);
/* Returns the number of bytes read into BUF of SIZE, or a code. */
int nps_device_lib__read(const struct nps_device_lib *lib, uint32_t device, uint32_t channel, char *buf,
			 uint32_t size);
int nps_device_lib__flush(const struct nps_device_lib *lib, uint32_t device, uint32_t channel);
/* halGetDeviceInfo; SPAN may be NULL. */
int nps_device_lib__info(const struct nps_device_lib *lib, uint32_t device, int32_t module, int32_t info,
			 int64_t *value, struct nps_call_span *span);
/* Stores the ids of the host's *N devices. */
int nps_device_lib__devices(const struct nps_device_lib *lib, uint32_t ids[NPS_DEVICE_MAX], uint32_t *n);
int nps_device_lib__api_version(const struct nps_device_lib *lib, int64_t *version);
int nps_device_lib__chip_name(const struct nps_device_lib *lib, uint32_t device, char name[NPS_CHIP_TEXT]);

/* For libdcmi.so: OP is one that returns a value; KIND as in enum nps_worker_op. */
int nps_device_lib__dcmi_value(const struct nps_device_lib *lib, enum nps_worker_op op, int card, int device,
			       int kind, int64_t *value);
/* ... and one that fills SIZE bytes of OUT; *GOT: the number filled. */
int nps_device_lib__dcmi_data(const struct nps_device_lib *lib, enum nps_worker_op op, int card, int device,
			      void *out, size_t size, size_t *got);

#endif
