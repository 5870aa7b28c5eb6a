/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The few kernel types that the BPF side looks into, for x86-64 and arm64.
 *
 * Only the members that are read are declared: CO-RE relocates each access to where
 * the running kernel keeps that member, so order and gaps do not matter here. struct pt_regs
 * is the exception: programs of the uprobe kind read it at the offsets given, which the ABI fixes.
 */
#ifndef NPS_KTYPES_H
#define NPS_KTYPES_H

#include <linux/bpf.h>
#include <linux/types.h>

/* bpf_tracing.h: use the kernel's register names of struct pt_regs. */
#define __VMLINUX_H__

typedef _Bool bool;
#define true 1
#define false 0

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
};
#else
#error "ktypes.h knows x86-64 and arm64"
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	int group_exit_code;
};

struct task_struct {
	unsigned int __state; /* since 5.14 */
	int prio;
	int pid, tgid;
	int exit_code;
	char comm[16];
	struct signal_struct *signal;
	struct task_struct *real_parent;
};

struct task_struct___before_5_14 {
	long state;
};

#pragma clang attribute pop

#endif
