// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * What the NPU driver's own functions do for the watched processes: SQEs that go to the device, CQEs that
 * come back, copies by PCIe. They are in kernel modules of another vendor, so nothing here is relocated
 * against their types: the collector finds the offsets of members, or attaches none of this
 * (user/sources/driver/driver_fn.c).
 */
#include "common.bpf.h"
#include "streams.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct nps_sqe_layout layout = {};

/* CLOCK_MONOTONIC ns; 0: the capture goes on. Calls that return later are not part of it. */
volatile __u64 ended_at = 0;

/*
 * What is known of a call when it begins. The driver may change what its arguments point to during the call.
 */
struct open_fn {
	__u64 start;
	union { /* the record's members, by kind */
		struct nps_event_driver_task task;
		struct nps_event_driver_done done; /* without the CQE */
		struct nps_event_driver_dma copy;
	};
	__u64 cqe; /* its address */
	__u32 pid; /* of the process that it is for */
	__u32 pad;
};

struct open_fns {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct open_fn);
};
struct open_fns open_sqes SEC(".maps");
struct open_fns open_cqes SEC(".maps");
struct open_fns open_copies SEC(".maps");

/* Key of the running thread; the idle thread, tid 0, runs on every CPU, so it gets one key per CPU. */
static __always_inline __u32 this_thread(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	return tid ? tid : bpf_get_smp_processor_id() | 1U << 31;
}

/*
 * Called at each entry: a call that is still open has returned without a return event, and would be paired
 * with the return of this one.
 */
static __always_inline void drop_stale(void *fns, __u32 kind)
{
	__u32 key = this_thread();

	if (!bpf_map_lookup_elem(fns, &key))
		return;
	bpf_map_delete_elem(fns, &key);
	count_up(NPS_COUNTER_LOST + kind);
}

static __always_inline int enter(void *fns, __u32 kind, const struct open_fn *fn)
{
	__u32 key = this_thread();

	if (bpf_map_update_elem(fns, &key, fn, BPF_ANY))
		count_up(NPS_COUNTER_LOST + kind);
	return 0;
}

static __always_inline struct nps_event *reserve(void *ring, __u8 kind, const struct open_fn *fn)
{
	struct nps_event *e = event_reserve(ring, kind);

	if (!e)
		return NULL;
	e->probe = 0;
	e->pid = fn->pid;
	e->tid = (__u32)bpf_get_current_pid_tgid();
	e->start = fn->start;
	if (kind == NPS_EV_DRIVER_TASK)
		e->driver_task = fn->task;
	else if (kind == NPS_EV_DRIVER_DONE)
		e->driver_done = fn->done;
	else
		e->driver_dma = fn->copy;
	return e;
}

/* Return of SQEs and copies, whose records have a duration. */
static __always_inline int leave(void *fns, __u8 kind, int ret)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 key = this_thread();
	struct open_fn *fn = bpf_map_lookup_elem(fns, &key);
	struct nps_event *e;
	void *ring;

	if (!fn)
		return 0;
	ring = this_ring();
	e = ended_at ? NULL : reserve(ring, kind, fn);
	if (e) {
		e->ret = ret;
		e->dur = now - fn->start;
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
	bpf_map_delete_elem(fns, &key);
	return 0;
}

static __always_inline __u32 drvfn_read_u32(__u64 at)
{
	__u32 v = 0;

	if (bpf_probe_read_kernel(&v, sizeof(v), (void *)at))
		count_up(NPS_COUNTER_FAULT);
	return v;
}

static __always_inline __u64 drvfn_read_u64(__u64 at)
{
	__u64 v = 0;

	if (bpf_probe_read_kernel(&v, sizeof(v), (void *)at))
		count_up(NPS_COUNTER_FAULT);
	return v;
}

/* --- SQEs --- */

/*
 * The driver writes other ids into some SQEs, and makes others invalid:
 * only at entry are they as the job sent them.
 */
static __always_inline int sqe_entered(__u32 device, __u32 tsid, __u64 info)
{
	struct open_fn fn = { .start = bpf_ktime_get_ns() };

	drop_stale(&open_sqes, NPS_EV_DRIVER_TASK);
	fn.pid = drvfn_read_u32(info + layout.pid);
	if (!(target_flags(fn.pid) & NPS_TARGET_WATCH))
		return 0;
	if (bpf_probe_read_kernel(&fn.task.sqe, sizeof(fn.task.sqe),
				  (void *)drvfn_read_u64(info + layout.sqe)))
		count_up(NPS_COUNTER_FAULT);
	fn.task.device = device;
	fn.task.tsid = tsid;
	fn.task.queue = drvfn_read_u32(info + layout.sqid);
	fn.task.position = drvfn_read_u32(info + layout.sqeid);
	fn.task.sqe_size = drvfn_read_u32(info + layout.size);
	return enter(&open_sqes, NPS_EV_DRIVER_TASK, &fn);
}

static __always_inline int sqe_left(int ret)
{
	return leave(&open_sqes, NPS_EV_DRIVER_TASK, ret);
}

/* (u32 device, u32 tsid, struct trs_sqe_update_info *) of ts_agent */
SEC("kprobe")
int agent_sqe_entered(struct pt_regs *ctx)
{
	return sqe_entered(PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx));
}

/* (struct trs_id_inst *, struct trs_sqe_update_info *); called before the function decodes it */
SEC("kprobe")
int chan_sqe_entered(struct pt_regs *ctx)
{
	__u64 inst = PT_REGS_PARM1(ctx);

	return sqe_entered(drvfn_read_u32(inst), drvfn_read_u32(inst + 4), PT_REGS_PARM2(ctx));
}

SEC("kretprobe")
int sqe_returned(struct pt_regs *ctx)
{
	return sqe_left((int)PT_REGS_RC(ctx));
}

SEC("fentry/tsagent_sqe_update")
int agent_sqe_fentry(__u64 *ctx)
{
	return sqe_entered(ctx[0], ctx[1], ctx[2]);
}

SEC("fexit/tsagent_sqe_update")
int agent_sqe_fexit(__u64 *ctx)
{
	return sqe_left((int)ctx[3]);
}

SEC("fentry/trs_chan_ops_sqe_update")
int chan_sqe_fentry(__u64 *ctx)
{
	return sqe_entered(drvfn_read_u32(ctx[0]), drvfn_read_u32(ctx[0] + 4), ctx[1]);
}

SEC("fexit/trs_chan_ops_sqe_update")
int chan_sqe_fexit(__u64 *ctx)
{
	return sqe_left((int)ctx[2]);
}

/* --- CQEs: their time is that of the entry; the driver's function decodes their ids during the call --- */

static __always_inline int cqe_entered(__u32 device, __u32 tsid, __u32 pid, __u32 cqid, __u64 cqe)
{
	struct open_fn fn = { .start = bpf_ktime_get_ns(),
			      .done = { .device = device, .tsid = tsid, .queue = cqid },
			      .cqe = cqe,
			      .pid = pid };

	drop_stale(&open_cqes, NPS_EV_DRIVER_DONE);
	return target_flags(pid) & NPS_TARGET_WATCH ? enter(&open_cqes, NPS_EV_DRIVER_DONE, &fn) : 0;
}

static __always_inline int cqe_left(void)
{
	__u32 key = this_thread();
	struct open_fn *fn = bpf_map_lookup_elem(&open_cqes, &key);
	struct nps_event *e;
	void *ring;

	if (!fn)
		return 0;
	ring = this_ring();
	e = ended_at ? NULL : reserve(ring, NPS_EV_DRIVER_DONE, fn);
	if (e) {
		e->ret = 0;
		e->dur = 0;
		if (bpf_probe_read_kernel(e->driver_done.head, sizeof(e->driver_done.head), (void *)fn->cqe))
			count_up(NPS_COUNTER_FAULT);
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
	bpf_map_delete_elem(&open_cqes, &key);
	return 0;
}

/* (u32 device, u32 tsid, int pid, u32 cqid, void *cqe) */
SEC("kprobe")
int agent_cqe_entered(struct pt_regs *ctx)
{
	return cqe_entered(PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx),
			   PT_REGS_PARM5(ctx));
}

SEC("kretprobe")
int agent_cqe_returned(struct pt_regs *ctx)
{
	return cqe_left();
}

SEC("fentry/tsagent_cqe_update")
int agent_cqe_fentry(__u64 *ctx)
{
	return cqe_entered(ctx[0], ctx[1], ctx[2], ctx[3], ctx[4]);
}

SEC("fexit/tsagent_cqe_update")
int agent_cqe_fexit(__u64 *ctx)
{
	return cqe_left();
}

/*
 * --- tracepoints of the driver, used where its functions cannot be probed. They have a time but no
 * duration, no process, and ids as the driver has changed them ---
 */

const volatile struct nps_trace_layout sqe_trace = {}, cqe_trace = {};

static __always_inline __u32 field(void *ctx, __u32 at)
{
	return drvfn_read_u32((__u64)ctx + at);
}

/* Reserves a record without a duration; NULL if FN is of no watched process. */
static __always_inline struct nps_event *traced(__u8 kind, const struct open_fn *fn, void *ring)
{
	struct nps_event *e = NULL;

	if (fn->pid && !ended_at && target_flags(fn->pid) & NPS_TARGET_WATCH)
		e = reserve(ring, kind, fn);
	if (e) {
		e->traced = NPS_DRIVER_TRACED;
		e->ret = 0;
		e->dur = 0;
	}
	return e;
}

/* trs_chan:sqe. The driver has already changed the ids of some, so the stream is found by the queue. */
SEC("tp")
int sqe_traced(void *ctx)
{
	__u32 device = field(ctx, sqe_trace.device), queue = field(ctx, sqe_trace.queue);
	__u32 type = field(ctx, sqe_trace.type) & 0x3f, key = STREAM_KEY(device, queue);
	struct queue_owner *owner = bpf_map_lookup_elem(&queue_owners, &key);
	struct open_fn fn = {
		.start = bpf_ktime_get_ns(),
		.task = { .device = device, .tsid = field(ctx, sqe_trace.tsid), .queue = queue },
		.pid = owner ? owner->pid : 0
	};
	void *ring = this_ring();
	struct nps_event *e = traced(NPS_EV_DRIVER_TASK, &fn, ring);

	if (!e)
		return 0;
	e->driver_task.sqe.type = type;
	if (type == NPS_SQE_FFTS && owner) {
		e->driver_task.sqe.stream = owner->stream;
	} else {
		e->driver_task.sqe.stream = field(ctx, sqe_trace.stream);
		e->driver_task.sqe.task = field(ctx, sqe_trace.task);
	}
	bpf_ringbuf_submit(e, wake_flag(ring));
	return 0;
}

/* Where the tracepoint does not report errors, any task may have failed. */
static __always_inline bool may_have_failed(void *ctx)
{
	if (!cqe_trace.error || !cqe_trace.error_type || !cqe_trace.dropped)
		return true;
	return field(ctx, cqe_trace.error) || field(ctx, cqe_trace.error_type) ||
	       field(ctx, cqe_trace.dropped);
}

/* trs_core:logic_cqe, after the ids were decoded */
SEC("tp")
int cqe_traced(void *ctx)
{
	__u32 device = field(ctx, cqe_trace.device), stream = field(ctx, cqe_trace.stream);
	__u32 key = STREAM_KEY(device, stream), *pid = bpf_map_lookup_elem(&stream_owners, &key);
	struct open_fn fn = { .start = bpf_ktime_get_ns(),
			      .done = { .device = device,
					.tsid = field(ctx, cqe_trace.tsid),
					.queue = field(ctx, cqe_trace.queue) },
			      .pid = pid ? *pid : 0 };
	void *ring = this_ring();
	struct nps_event *e = traced(NPS_EV_DRIVER_DONE, &fn, ring);

	if (!e)
		return 0;
	e->driver_done.flags = may_have_failed(ctx) ? NPS_CQE_FAILED : 0;
	e->driver_done.stream = stream;
	e->driver_done.task = field(ctx, cqe_trace.task);
	bpf_ringbuf_submit(e, wake_flag(ring));
	return 0;
}

/* --- copies by PCIe, of the thread that requested them --- */

static __always_inline int copy_entered(__u32 device, __u64 src, __u64 dst, __u32 size, __u32 direction)
{
	struct open_fn fn = { .start = bpf_ktime_get_ns(),
			      .copy = { .device = device,
					.direction = direction,
					.source = src,
					.destination = dst,
					.bytes = size },
			      .pid = bpf_get_current_pid_tgid() >> 32 };

	drop_stale(&open_copies, NPS_EV_DRIVER_DMA);
	return target_flags(fn.pid) & NPS_TARGET_WATCH ? enter(&open_copies, NPS_EV_DRIVER_DMA, &fn) : 0;
}

static __always_inline int copy_left(int ret)
{
	return leave(&open_copies, NPS_EV_DRIVER_DMA, ret);
}

/*
 * (u32 device, type, u64 src, u64 dst, u32 size, direction); x86-64 and
 * arm64 pass the sixth argument in a register
 */
#if defined(__TARGET_ARCH_x86)
#define SIXTH(ctx) ((ctx)->r9)
#else
#define SIXTH(ctx) ((ctx)->user_regs.regs[5])
#endif

SEC("kprobe")
int dma_entered(struct pt_regs *ctx)
{
	return copy_entered(PT_REGS_PARM1(ctx), PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx),
			    SIXTH(ctx));
}

SEC("kretprobe")
int dma_returned(struct pt_regs *ctx)
{
	return copy_left((int)PT_REGS_RC(ctx));
}

SEC("fentry/hal_kernel_devdrv_dma_sync_copy")
int dma_fentry(__u64 *ctx)
{
	return copy_entered(ctx[0], ctx[2], ctx[3], ctx[4], ctx[5]);
}

SEC("fexit/hal_kernel_devdrv_dma_sync_copy")
int dma_fexit(__u64 *ctx)
{
	return copy_left((int)ctx[6]);
}
