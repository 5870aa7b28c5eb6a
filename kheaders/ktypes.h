/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The few kernel types that the BPF programs read, for x86-64 and arm64.
 *
 * Only the members that are read are declared: CO-RE relocates each access to where the running kernel
 * keeps that member, so order and gaps do not matter here. struct pt_regs is the exception: programs of
 * uprobes and kprobes read it at the given offsets, which the ABI fixes.
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
	__u64 orig_x0; /* since 5.0; programs of uprobes and kprobes do not use it */
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
	unsigned long long sum_sched_runtime; /* of threads that have exited */
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct inode {
	unsigned short i_mode;
	unsigned int i_rdev;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct bvec_iter {
	unsigned long long bi_sector;
	unsigned int bi_size;
};

struct block_device {
	unsigned int bd_dev;
};

struct gendisk {
	int major, first_minor;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev; /* since 5.12 */
	unsigned int bi_opf;
	unsigned char bi_status;
	struct bvec_iter bi_iter;
};

struct bio___before_5_12 {
	struct gendisk *bi_disk;
	unsigned char bi_partno;
};

struct request {
	struct bio *bio;
};

enum fault_flag { FAULT_FLAG_TRIED = 0x20 };

struct vm_fault {
	unsigned long address;
	enum fault_flag flags;
};

struct vm_fault___before_5_13 {
	unsigned int flags;
};

struct rq;

struct cfs_rq {
	struct rq *rq; /* of the CPU */
};

struct sched_entity {
	__u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED, of every thread */
};

struct sched_info {
	unsigned long long run_delay; /* ns that it was runnable and had no CPU */
};

struct thread_info {
	unsigned long flags;
	__u32 status; /* x86-64 */
	struct {
		__u32 count;
	} preempt; /* arm64 */
};

struct mnt_namespace;

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct pid_namespace {
	struct task_struct *child_reaper; /* its first process */
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level; /* of its own namespace */
	struct upid numbers[1]; /* its number in each namespace, the host's first */
};

/* A call whose return is probed: the kernel has replaced its return address on the stack. */
struct return_instance {
	unsigned long stack; /* the stack pointer at the function's entry */
	unsigned long orig_ret_vaddr;
	struct return_instance *next; /* of the outer call */
};

struct uprobe_task {
	struct return_instance *return_instances; /* the innermost call's */
};

struct xol_area {
	unsigned long vaddr; /* of [uprobes], where the replaced return addresses point */
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state; /* with CONFIG_UPROBES */
};

/* Since 6.3 a sample is complete when its program runs. */
struct perf_sample_data {
	__u64 sample_flags; /* PERF_SAMPLE_* of the members that are set; since 6.1 */
	__u64 time;
};

struct bpf_perf_event_data_kern {
	struct perf_sample_data *data;
};

struct thread_struct {
	unsigned long fsbase; /* x86-64 */
	struct {
		unsigned long tp_value; /* arm64 */
	} uw;
};

struct task_struct {
	struct thread_info thread_info;
	struct sched_entity se;
	struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
	unsigned int __state; /* since 5.14 */
	unsigned int flags;
	int prio;
	int pid, tgid;
	int exit_state, exit_code;
	char comm[16];
	unsigned long min_flt, maj_flt;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	unsigned long long start_boottime; /* since 5.5 */
	struct files_struct *files;
	struct task_struct *real_parent;
	struct pid *thread_pid;
	struct nsproxy *nsproxy;
	struct mm_struct *mm;
	struct uprobe_task *utask; /* with CONFIG_UPROBES; NULL: no probe was hit */
	struct thread_struct thread;
};

struct task_struct___before_5_14 {
	long state;
};

struct task_struct___before_5_5 {
	unsigned long long real_start_time;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
