// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * System calls of the watched processes on device nodes of the NPU's driver: open, close, ioctl and mmap,
 * one record each. The collector passes the numbers of these nodes. Nothing else of the driver is used, so
 * this works with each of its versions. Only tracepoints of these calls are attached, so other calls of the
 * host cost nothing.
 */
#include "local.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_NODES);
	__type(key, __u32); /* major << 20 | minor */
	__type(value, struct nps_node);
} npu_nodes SEC(".maps");

/* CLOCK_MONOTONIC ns; 0: the capture goes on. Calls that return later are not part of it. */
volatile __u64 ended_at = 0;

/* The part of the driver that davinci_manager handed a descriptor over to. */
struct iov_part {
	__u64 name; /* first 8 bytes of its name */
	__u32 device;
	__u32 rdev; /* of the descriptor: the address can be reused for a file of another node */
};

/* By address of struct file, which all copies of a descriptor share, so closing one copy removes no entry. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NPS_MAX_NPU_FILES);
	__type(key, __u64);
	__type(value, struct iov_part);
} npu_files SEC(".maps");

struct driver_call {
	__u64 start; /* 0: none is open */
	__u64 file, bytes;
	__u64 text; /* open: address of the path */
	/* of the descriptor; for a hand-over the new one, which counts once the call has succeeded */
	struct iov_part part;
	__u32 cmd, fd, rdev;
	__u16 device;
	__u8 call, node; /* enum nps_driver_call, enum nps_npu_node */
	bool hands_over, returns_memory;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct driver_call);
} driver_calls SEC(".maps");

static const struct driver_call no_call;

/* Records of the tracepoints, as their format files in tracefs describe them. */
struct tracepoint_head {
	__u64 common;
	long nr;
};

struct ioctl_enter {
	struct tracepoint_head head;
	__u64 fd, cmd, arg;
};

struct close_enter {
	struct tracepoint_head head;
	__u64 fd;
};

struct mmap_enter {
	struct tracepoint_head head;
	__u64 address, length, protection, flags, fd, offset;
};

struct openat_enter {
	struct tracepoint_head head;
	__u64 directory, path, flags, mode;
};

struct open_enter {
	struct tracepoint_head head;
	__u64 path, flags, mode;
};

struct exit_args {
	struct tracepoint_head head;
	long ret;
};

#define S_IFMT_ 0170000
#define S_IFCHR_ 0020000

/* The node that descriptor FD of this thread refers to; NULL: none of the driver's. */
static __always_inline struct nps_node *node_of(__u32 fd, __u64 *at, __u32 *rdev)
{
	struct task_struct *task = this_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL, **files = BPF_CORE_READ(table, fd);
	struct inode *inode;

	if (fd >= BPF_CORE_READ(table, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), files + fd) ||
	    !file)
		return NULL;
	inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT_) != S_IFCHR_)
		return NULL;
	*rdev = BPF_CORE_READ(inode, i_rdev);
	*at = (__u64)file;
	return bpf_map_lookup_elem(&npu_nodes, rdev);
}

#define IOC_MAGIC(cmd) ((cmd) >> 8 & 0xff)
#define IOC_NR(cmd) ((cmd)&0xff)
#define HAND_OVER_DEVICE 256 /* offset, in bytes, of the device's number from the part's name */

static __always_inline __u32 driver_read_u32(__u64 at)
{
	__u32 v;

	if (!bpf_probe_read_user(&v, sizeof(v), (void *)at))
		return v;
	count_up(NPS_COUNTER_FAULT);
	return ~0U;
}

static __always_inline __u64 driver_read_u64(__u64 at)
{
	__u64 v;

	if (!bpf_probe_read_user(&v, sizeof(v), (void *)at))
		return v;
	count_up(NPS_COUNTER_FAULT);
	return NPS_DRIVER_NO_BYTES;
}

static __always_inline __u16 as_device(__u32 number)
{
	return number < 64 ? number : NPS_DRIVER_NO_DEVICE;
}

/* Memory: struct devmm_ioctl_arg. */
static __always_inline void read_svm(struct driver_call *s, __u64 arg)
{
	s->device = as_device(driver_read_u32(arg + 4));
	switch (IOC_NR(s->cmd)) {
	case 3: /* ALLOC */
	case 13: /* ADVISE, which populates */
		s->bytes = driver_read_u64(arg + 24);
		break;
	case 5: /* MEMCPY */
	case 7: /* ASYNC_MEMCPY */
		s->bytes = driver_read_u64(arg + 32);
		break;
	}
}

/* Messages: struct hdcdrv_cmd_send. Of other commands only the offset of the device is known. */
static __always_inline void read_hdc(struct driver_call *s, __u64 arg)
{
	s->device = as_device(driver_read_u32(arg + 4));
	if (IOC_NR(s->cmd) == 0x15)
		s->bytes = driver_read_u32(arg + 40);
}

/* Reads what the argument of an ioctl contains: device, bytes, the part of the driver it is for. */
static __always_inline void read_argument(struct driver_call *s, __u64 arg)
{
	__u32 magic = IOC_MAGIC(s->cmd);

	if (s->node == NPS_NODE_SVM && magic == 'M')
		read_svm(s, arg);
	else if (s->node == NPS_NODE_HDC && magic == 'H')
		read_hdc(s, arg);
	else if (s->node == NPS_NODE_MANAGER && magic == 'X' && IOC_NR(s->cmd) == 19) /* SQCQ_SEND */
		s->bytes = 64ULL * driver_read_u32(arg + 24);
	else if (s->node == NPS_NODE_MANAGER && magic == 'X' && IOC_NR(s->cmd) == 20) /* SQCQ_RECV */
		s->bytes = driver_read_u64(arg + 32);
	if (s->node != NPS_NODE_MANAGER || magic != 'Z')
		return;
	s->returns_memory = IOC_NR(s->cmd) == 1;
	s->hands_over = IOC_NR(s->cmd) == 0;
	if (!s->hands_over)
		return;
	s->part.rdev = s->rdev;
	s->part.name = driver_read_u64(arg);
	s->part.device = driver_read_u32(arg + HAND_OVER_DEVICE);
	s->device = as_device(s->part.device);
}

/*
 * Is the thread that enters a call watched? A call of the thread that is
 * still open has returned without a return event.
 */
static __always_inline bool enters(void)
{
	struct driver_call *s;

	if (!target_flags(bpf_get_current_pid_tgid() >> 32))
		return false;
	s = local_find(&driver_calls);
	if (s && s->start) {
		s->start = 0;
		count_up(NPS_COUNTER_LOST + NPS_EV_DRIVER);
	}
	return true;
}

static __always_inline struct driver_call *begin(__u8 call)
{
	struct driver_call *s = local_get(&driver_calls, &no_call);

	if (!s) {
		count_up(NPS_COUNTER_LOST + NPS_EV_DRIVER);
		return NULL;
	}
	__builtin_memset(s, 0, sizeof(*s));
	s->call = call;
	s->device = NPS_DRIVER_NO_DEVICE;
	s->bytes = NPS_DRIVER_NO_BYTES;
	return s;
}

static __always_inline void describe(struct driver_call *s, const struct nps_node *node, __u32 fd, __u64 file,
				     __u32 rdev)
{
	struct iov_part *part = NULL;

	s->fd = fd;
	s->file = file;
	s->rdev = rdev;
	s->node = node->kind;
	s->device = node->device;
	if (node->kind == NPS_NODE_MANAGER)
		part = bpf_map_lookup_elem(&npu_files, &file);
	if (part && part->rdev == rdev) {
		s->part = *part;
		s->device = as_device(part->device);
	}
}

static __always_inline int driver_entered(__u8 call, __u32 fd, __u32 cmd, __u64 arg, __u64 bytes)
{
	struct driver_call *s;
	struct nps_node *node;
	__u64 file = 0;
	__u32 rdev = 0;

	/* Most descriptors are not the driver's: nothing is kept for those. */
	if (!enters())
		return 0;
	node = node_of(fd, &file, &rdev);
	s = node ? begin(call) : NULL;
	if (!s)
		return 0;
	describe(s, node, fd, file, rdev);
	s->cmd = cmd;
	s->bytes = bytes;
	if (call == NPS_DRIVER_IOCTL)
		read_argument(s, arg);
	s->start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp/syscalls/sys_enter_ioctl")
int ioctl_entered(struct ioctl_enter *ctx)
{
	return driver_entered(NPS_DRIVER_IOCTL, ctx->fd, ctx->cmd, ctx->arg, NPS_DRIVER_NO_BYTES);
}

SEC("tp/syscalls/sys_enter_close")
int close_entered(struct close_enter *ctx)
{
	return driver_entered(NPS_DRIVER_CLOSE, ctx->fd, 0, 0, NPS_DRIVER_NO_BYTES);
}

#define MAP_ANONYMOUS_ 0x20

SEC("tp/syscalls/sys_enter_mmap")
int mmap_entered(struct mmap_enter *ctx)
{
	if (!(ctx->flags & MAP_ANONYMOUS_))
		return driver_entered(NPS_DRIVER_MMAP, ctx->fd, 0, 0, ctx->length);
	enters();
	return 0;
}

static __always_inline int open_entered(__u64 path)
{
	struct driver_call *s = enters() ? begin(NPS_DRIVER_OPEN) : NULL;

	if (!s)
		return 0;
	s->text = path;
	s->start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp/syscalls/sys_enter_openat")
int openat_entered(struct openat_enter *ctx)
{
	return open_entered(ctx->path);
}

#if defined(__TARGET_ARCH_x86)
SEC("tp/syscalls/sys_enter_open")
int open2_entered(struct open_enter *ctx)
{
	return open_entered(ctx->path);
}
#endif

#define PATH_WORDS 3 /* little-endian; with the NUL, longer than any of the prefixes */

/*
 * Compares whole words without branches, because the verifier follows
 * each branch of a comparison by characters.
 */
static __always_inline bool begins_with(const __u64 *text, const char *prefix, int length)
{
	__u64 differs = 0;

	for (int w = 0; w < PATH_WORDS; w++) {
		__u64 word = 0, mask = 0;

		for (int i = 0; i < 8; i++) {
			if (w * 8 + i >= length)
				continue;
			word |= (__u64)(__u8)prefix[w * 8 + i] << (i * 8);
			mask |= 0xffULL << (i * 8);
		}
		differs |= (text[w] ^ word) & mask;
	}
	return !differs;
}

#define BEGINS_WITH(text, prefix)                                                                            \
	({                                                                                                   \
		_Static_assert(sizeof(prefix) <= PATH_WORDS * 8, "a longer path has to be read");            \
		begins_with(text, prefix, sizeof(prefix) - 1);                                               \
	})

/* The node that an open that failed was for: only its path shows that. */
static __always_inline __u8 node_of_path(__u64 path)
{
	__u64 text[PATH_WORDS] = {};

	if (bpf_probe_read_user_str(text, sizeof(text), (void *)path) < 0)
		return 0;
	return BEGINS_WITH(text, "/dev/davinci_manager") ? NPS_NODE_MANAGER
	       : BEGINS_WITH(text, "/dev/davinci")	 ? NPS_NODE_DEVICE
	       : BEGINS_WITH(text, "/dev/devmm_svm")	 ? NPS_NODE_SVM
	       : BEGINS_WITH(text, "/dev/hisi_hdc")	 ? NPS_NODE_HDC
							 : 0;
}

/* False: it was no node of the driver. */
static __always_inline bool opened(struct driver_call *s, long ret)
{
	struct nps_node *node;
	__u64 file = 0;
	__u32 rdev = 0;

	if (ret < 0) {
		s->node = node_of_path(s->text);
		return s->node;
	}
	node = node_of(ret, &file, &rdev);
	if (!node)
		return false;
	/* A new file: an entry at its address describes a file that has been closed. */
	if (node->kind == NPS_NODE_MANAGER)
		bpf_map_delete_elem(&npu_files, &file);
	describe(s, node, ret, file, rdev);
	return true;
}

static __always_inline void driver_send(const struct driver_call *s, long ret, __u64 now)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	void *ring = this_ring();
	struct nps_event *e = event_reserve(ring, NPS_EV_DRIVER);

	if (!e)
		return;
	e->call_type = s->call;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = ret < 0 && ret >= -4095 ? ret : s->call == NPS_DRIVER_MMAP ? 0 : ret;
	e->start = s->start;
	e->dur = now - s->start;
	__builtin_memcpy(e->driver.part, &s->part.name, sizeof(e->driver.part));
	e->driver.command = s->cmd;
	e->driver.fd = s->fd;
	e->driver.rdev = s->rdev;
	e->driver.node = s->node;
	e->driver.reserved = 0;
	e->driver.device = s->device;
	e->driver.bytes = s->bytes; /* or the task that is waited for */
	bpf_ringbuf_submit(e, wake_flag(ring));
}

static __always_inline int returned(__u8 call, long ret)
{
	struct driver_call *s = local_find(&driver_calls);
	__u64 now;

	if (!s || !s->start)
		return 0;
	now = bpf_ktime_get_ns();
	if (s->call != call) {
		count_up(NPS_COUNTER_LOST + NPS_EV_DRIVER);
	} else if (!ended_at && target_flags(bpf_get_current_pid_tgid() >> 32) &&
		   (call != NPS_DRIVER_OPEN || opened(s, ret))) {
		driver_send(s, ret, now);
		if (s->hands_over && !ret)
			bpf_map_update_elem(&npu_files, &s->file, &s->part, BPF_ANY);
		else if (s->returns_memory && !ret)
			bpf_map_delete_elem(&npu_files, &s->file);
	}
	s->start = 0;
	return 0;
}

#define RETURNS(name, call)                                                                                  \
	SEC("tp/syscalls/sys_exit_" #name)                                                                   \
	int name##_returned(struct exit_args *ctx)                                                           \
	{                                                                                                    \
		return returned(call, ctx->ret);                                                             \
	}

RETURNS(ioctl, NPS_DRIVER_IOCTL)
RETURNS(close, NPS_DRIVER_CLOSE)
RETURNS(mmap, NPS_DRIVER_MMAP)
RETURNS(openat, NPS_DRIVER_OPEN)
#if defined(__TARGET_ARCH_x86)
RETURNS(open, NPS_DRIVER_OPEN)
#endif

SEC("raw_tp/sched_process_exit")
int driver_thread_ended(struct bpf_raw_tracepoint_args *ctx)
{
	local_forget(&driver_calls);
	return 0;
}
