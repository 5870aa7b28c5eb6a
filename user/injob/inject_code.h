/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared between the injector and the code that runs in the job (inject_code.c). That code is one section
 * of this program, copied as it is: it refers to nothing outside of itself.
 */
#ifndef NPS_INJECT_CODE_H
#define NPS_INJECT_CODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Follows the code; the injector fills it in, and the job only reads it. The assembly code uses the offsets
 * of the first four members.
 */
struct nps_inject_input {
	uint64_t resume; /* where the job's thread continues; on arm64 the landing, which jumps there */
	uint64_t area, area_size; /* memory that the code maps, struct nps_inject_area, and unmaps */
	uint64_t munmap; /* addresses of functions in the job, from here on */
	uint64_t pthread_create, pthread_detach, dlopen, dlerror;
};

#define NPS_INJECT_WAIT_MS 5000 /* how long the loading thread waits for the injector, which may have died */
#define NPS_INJECT_FAIL_MS 20 /* how long the job's thread waits for the reason of a failure to be read */
#define NPS_INJECT_VECTORS (16U << 10) /* of vector registers */
#define NPS_INJECT_STACK (64U << 10)

enum nps_inject_go { NPS_INJECT_WAIT = 0, NPS_INJECT_LOAD = 1, NPS_INJECT_ABORT = 2 };

struct nps_inject_area {
	const struct nps_inject_input *input;
	uint32_t created; /* 1: create_error is valid */
	int32_t create_error; /* of pthread_create, errno */
	uint32_t left; /* 1: the job's thread is back in its own code, except for a few instructions */
	uint32_t go; /* injector: enum nps_inject_go */
	uint32_t done; /* 1: loaded and message are valid */
	uint32_t loaded;
	uint32_t bye; /* injector: 1: the result was read */
	uint32_t pad;
	uint64_t thread; /* pthread_t of the loading thread */
	/* CLOCK_MONOTONIC: when the job's thread was redirected, and when it left */
	uint64_t began_ns, left_ns;
	uint64_t library_bytes; /* 0: the library is at path, else its contents are in `library` */
	char message[256]; /* of dlerror */
	char path[4096];
	char vectors[NPS_INJECT_VECTORS] __attribute__((aligned(64)));
	/* of the job's thread, while it runs our code */
	char stack[NPS_INJECT_STACK] __attribute__((aligned(64)));
	char library[] __attribute__((aligned(64)));
};

/*
 * The code, from start to stop: entry of the job's thread, entry of the new thread, the input; on arm64 the
 * landing, whose last instruction is a branch that the injector completes. It must reach the point where
 * the thread continues, so a copy of the landing may be at another address.
 */
#define NPS_INJECT_LABEL extern const char __attribute__((visibility("hidden")))
NPS_INJECT_LABEL __start_nps_inject[], __stop_nps_inject[];
NPS_INJECT_LABEL nps_inject_entry[], nps_inject_loader[], nps_inject_input[], nps_inject_landing[];

#define NPS_INJECT_OFFSET(label) ((size_t)((uintptr_t)(label) - (uintptr_t)__start_nps_inject))
#define NPS_INJECT_BYTES NPS_INJECT_OFFSET(__stop_nps_inject)
#define NPS_INJECT_LANDING 16 /* bytes */

#endif
