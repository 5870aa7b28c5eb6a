/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Stacks: what the BPF programs send for a sleep, and the records of stacks.nps. Addresses are raw; the
 * analysis resolves their names. docs/session-format.md is the full description.
 */
#ifndef NPS_STACK_H
#define NPS_STACK_H

#include <linux/types.h>

#define NPS_STACK_USER 127 /* most frames of a user stack, by frame pointers */
#define NPS_STACK_KERNEL 64
#define NPS_STACK_REGS 33 /* most registers of a sample */
#define NPS_STACK_RETURNS 64 /* most pending probed returns of a thread: the kernel's limit */
#define NPS_SLEEP_BYTES 8192 /* most bytes of a sleeper's user stack */

enum nps_stack_kind { NPS_STACK_ONCPU = 1, NPS_STACK_OFFCPU = 2 };

#define NPS_STACK_F_OPEN 0x1 /* still asleep when the capture ended */
#define NPS_STACK_F_CUT 0x2 /* the stack is larger than what was copied of it */
#define NPS_STACK_F_PYTHON 0x4 /* struct nps_stack_python is at the end of the record */

/*
 * A call whose return is probed. On the stack, and in its copy, the address of a trampoline ([uprobes])
 * replaces its return address.
 */
struct nps_return {
	__u64 stack; /* stack pointer at the function's entry; x86-64: address of the return address */
	__u64 address; /* the return address */
};

/*
 * NPS_CHUNK_STACKS: records of variable size, one after another. This header is followed by u64 kernel
 * frames and u64 user frames (innermost first; user frames by frame pointers), u64 registers, bytes of the
 * user stack from its pointer upwards, zeros up to the next 8 bytes, struct nps_return of the calls whose
 * returns are probed, innermost first, and struct nps_stack_python if it has that flag.
 *
 * Registers have DWARF's numbers. x86-64: 17, of which 7 is the stack pointer and 16 the program counter.
 * arm64: 33, of which 31 is the stack pointer and 32 the program counter.
 */
struct nps_stack {
	__u32 size; /* bytes of the record, including all that follows the header; a multiple of 8 */
	__u8 kind; /* enum nps_stack_kind */
	__u8 flags; /* NPS_STACK_F_* */
	__u16 state; /* OFFCPU: the state it slept in, as in SCHED events */
	__u32 pid;
	__u32 tid;
	__u32 cpu;
	__u16 n_kernel, n_user; /* frames */
	__u16 n_regs;
	__u16 n_returns; /* 0 in sessions of versions that did not record them */
	__u32 n_bytes; /* of the user stack, without the zeros */
	__u64 time; /* CLOCK_MONOTONIC ns: of the sample; OFFCPU: when it went to sleep */
	__u64 weight; /* ns: the sampling period; OFFCPU: time off the CPU */
};

/* The Python stack of the thread, which python.nps has. */
struct nps_stack_python {
	__u64 stack; /* id, or NPS_PY_UNREAD (python_stack.h) */
	/* an address in the C stack frame of the interpreter that runs the innermost frame; 0: unknown */
	__u64 entry;
};

enum nps_map_what {
	NPS_MAP_CODE = 1, /* code was mapped, or was mapped already when the capture began */
	NPS_MAP_FORK = 2, /* process `start` was forked with the mappings of `pid` */
	NPS_MAP_EXEC = 3, /* all mappings of `pid` were removed */
};
#define NPS_MAP_PATH 4096

/*
 * NPS_CHUNK_MAPS: records of variable size. This header is followed by the path, NUL-terminated, and zeros
 * up to the next 8 bytes.
 */
struct nps_map_record {
	__u32 size; /* bytes of the record, a multiple of 8 */
	__u8 what; /* enum nps_map_what */
	__u8 build_id_len; /* 0: the file has none, or it could not be read */
	__u16 pad;
	__u32 pid;
	__u32 pad2;
	__u64 time; /* CLOCK_MONOTONIC ns, valid from then on */
	__u64 start, end, offset; /* addresses; offset of `start` in the file */
	__u8 build_id[24];
};

/* NPS_CHUNK_KSYMS: the kernel function at an address of a stack. */
struct nps_ksym {
	__u64 address; /* as in the stack */
	char name[120]; /* NUL-terminated; a module's function is followed by [module] */
};

/* What sample.bpf.c sends; each struct begins with it. */
enum nps_stack_message { NPS_MSG_SLEEP = 1, NPS_MSG_RETURNS = 2 };

/*
 * Probed returns, and the state of the walk along the frame pointers. In memory, so that the verifier need
 * not follow their values.
 */
struct nps_pending {
	__u32 n; /* of `returns` */
	/* frames of the walk; 0: the registers are not known, and the kernel's frames are used */
	__u32 n_user;
	__u32 next; /* index after the last return address that was restored */
	__u32 candidate; /* index of the one that is tried */
	struct nps_return returns[NPS_STACK_RETURNS];
};

/* Sent when a sleeper runs again. Truncated after the last used byte of `stack`. */
struct nps_sleep {
	__u32 message; /* NPS_MSG_SLEEP */
	__u32 pad;
	__u64 since; /* 0: the thread is not asleep */
	__u64 until;
	__u32 pid, tid;
	__u32 state, cpu;
	__u32 flags; /* NPS_STACK_F_* */
	__u32 n_regs;
	__s32 kernel_bytes, user_bytes; /* of the frames; negative: none */
	__u32 n_bytes;
	__u32 pad2;
	struct nps_stack_python python; /* stack 0: none */
	__u64 regs[NPS_STACK_REGS];
	__u64 kernel[NPS_STACK_KERNEL];
	__u64 user[NPS_STACK_USER];
	struct nps_pending pending;
	__u8 stack[NPS_SLEEP_BYTES];
};

/*
 * What a sample itself cannot contain: the Python stack of its thread, and probed returns. Truncated after
 * the last used entry of `returns`, without any before `user`.
 */
struct nps_sample_returns {
	__u32 message; /* NPS_MSG_RETURNS */
	__u32 tid, cpu;
	__u32 exact; /* 1: `time` is the sample's */
	__u64 time; /* CLOCK_MONOTONIC ns: the sample's, or a little before it */
	struct nps_stack_python python; /* stack 0: none */
	__u64 user[NPS_STACK_USER]; /* by frame pointers, with the return addresses restored */
	struct nps_pending pending;
};

#endif
