// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Requests that watched threads send to block devices, and their page faults that had to wait for one. A
 * request belongs to the thread that sent it: what the kernel writes back later belongs to nobody here.
 */
#include "threads.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- requests --- */

#define OPERATION 0xff /* of bi_opf; above it are flags */

struct request_made {
	__u64 start, bytes, sector;
	__u32 pid, tid, device, flags;
	__u32 call; /* 1 + number of the system call that it was made in, 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_IO);
	__type(key, __u64); /* address of the bio */
	__type(value, struct request_made);
} requests SEC(".maps");

static __always_inline __u32 device_of(struct bio *bio)
{
	struct bio___before_5_12 *old = (void *)bio;

	if (bpf_core_field_exists(bio->bi_bdev))
		return BPF_CORE_READ(bio, bi_bdev, bd_dev);
	return BPF_CORE_READ(old, bi_disk, major) << 20 |
	       (BPF_CORE_READ(old, bi_disk, first_minor) + BPF_CORE_READ(old, bi_partno));
}

static __always_inline int made(struct bio *bio)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), key = (__u64)bio;
	struct request_made r = {};
	struct open_syscall *s;

	if (!(target_flags(pid_tgid >> 32) & NPS_TARGET_OSRT))
		return 0;
	s = local_find(&syscalls);
	r.call = s && s->start ? s->nr + 1 : 0;
	r.start = bpf_ktime_get_ns();
	r.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	r.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	r.flags = BPF_CORE_READ(bio, bi_opf);
	r.device = device_of(bio);
	r.pid = pid_tgid >> 32;
	r.tid = (__u32)pid_tgid;
	if (bpf_map_update_elem(&requests, &key, &r, BPF_ANY))
		count_up(NPS_COUNTER_LOST + NPS_EV_IO);
	return 0;
}

SEC("raw_tp/block_bio_queue")
int BPF_PROG(request_made, struct bio *bio)
{
	return made(bio);
}

/* Before 5.11 the first argument was the queue. */
SEC("raw_tp/block_bio_queue")
int BPF_PROG(request_made_old, void *queue, struct bio *bio)
{
	return made(bio);
}

static __always_inline void done(struct bio *bio, __s32 status)
{
	__u64 key = (__u64)bio;
	struct request_made *r = bpf_map_lookup_elem(&requests, &key);
	struct nps_event *e;
	void *ring;

	if (!r)
		return;
	ring = this_ring();
	e = event_reserve(ring, NPS_EV_IO);
	if (e) {
		e->operation = r->flags & OPERATION;
		e->pid = r->pid;
		e->tid = r->tid;
		e->ret = status;
		e->start = r->start;
		e->dur = bpf_ktime_get_ns() - r->start;
		e->io = (struct nps_event_io){ .bytes = r->bytes,
					       .device = r->device,
					       .call = r->call,
					       .sector = r->sector,
					       .op_flags = r->flags & ~OPERATION };
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
	bpf_map_delete_elem(&requests, &key);
}

/* For devices without a queue of their own, such as the device mapper. */
SEC("raw_tp/block_bio_complete")
int BPF_PROG(request_done, void *queue, struct bio *bio)
{
	done(bio, BPF_CORE_READ(bio, bi_status));
	return 0;
}

#define MERGED 256 /* most requests merged into one: a device has no more segments */

/* Devices with a queue complete requests that were merged together, as far as the bytes reach. */
SEC("raw_tp/block_rq_complete")
int BPF_PROG(merged_done, struct request *rq, __s32 status, __u32 bytes)
{
	__u32 left = bytes;
	struct bio *bio = BPF_CORE_READ(rq, bio);

	for (int i = 0; i < MERGED && bio; i++) {
		__u32 size = BPF_CORE_READ(bio, bi_iter.bi_size);

		if (size > left)
			break;
		left -= size;
		done(bio, status);
		bio = BPF_CORE_READ(bio, bi_next);
	}
	return 0;
}

/* --- major page faults --- */

#define PAGE_OF(address) ((address) & ~4095ULL)

/* Is it the same fault, retried after the data was read? */
static __always_inline bool is_second(const struct vm_fault *vmf)
{
	const struct vm_fault___before_5_13 *old = (const void *)vmf;

	if (bpf_core_field_exists(vmf->flags))
		return BPF_CORE_READ(vmf, flags) & FAULT_FLAG_TRIED;
	return BPF_CORE_READ(old, flags) & FAULT_FLAG_TRIED;
}

static __always_inline int begun(__u64 address)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct open_syscall *s;

	if (!(target_flags(pid) & NPS_TARGET_OSRT))
		return 0;
	s = local_get(&syscalls, &no_syscall);
	if (!s)
		return 0; /* its fault will have no duration */
	s->fault_page = PAGE_OF(address);
	s->fault_start = bpf_ktime_get_ns();
	return 0;
}

/*
 * Where the kernel supports fentry: only the functions in which a fault
 * may wait, since most faults do not reach them.
 */
SEC("fentry/filemap_fault")
int BPF_PROG(file_fault, struct vm_fault *vmf)
{
	return is_second(vmf) ? 0 : begun(vmf->address);
}

SEC("fentry/do_swap_page")
int BPF_PROG(swap_fault, struct vm_fault *vmf)
{
	return is_second(vmf) ? 0 : begun(vmf->address);
}

/* Without fentry, on x86-64: every fault. */
SEC("raw_tp/page_fault_user")
int BPF_PROG(user_fault, unsigned long address)
{
	return begun(address);
}

SEC("raw_tp/page_fault_kernel")
int BPF_PROG(kernel_fault, unsigned long address)
{
	return begun(address);
}

/* As in linux/bpf_perf_event.h. */
struct bpf_perf_event_data {
#if defined(__TARGET_ARCH_x86)
	struct pt_regs regs;
#else
	struct user_pt_regs regs;
#endif
	__u64 sample_period;
	__u64 addr;
};

/* The kernel's software event of major faults, which fires at the end of each. */
SEC("perf_event")
int major_fault(struct bpf_perf_event_data *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now;
	struct open_syscall *s;
	struct nps_event *e;

	if (!(target_flags(pid_tgid >> 32) & NPS_TARGET_OSRT))
		return 0;
	e = event_reserve(this_ring(), NPS_EV_FAULT);
	if (!e)
		return 0;
	now = bpf_ktime_get_ns();
	s = local_find(&syscalls);
	e->what = NPS_FAULT_MAJOR;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = 0;
	e->start = s && s->fault_page == PAGE_OF(ctx->addr) ? s->fault_start : now;
	e->dur = now - e->start;
	e->major_fault = (struct nps_event_major_fault){ .address = ctx->addr };
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}
