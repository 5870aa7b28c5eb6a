// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The job's own profiler: which channels of the driver it has open, and what it reads from them. The bytes
 * are copied at the return of the driver's call and in the calling thread, before the buffer can be reused.
 */
#include "common.bpf.h"
#include "agent.h"
#include "cookie.bpf.h"
#include "proftap.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Only what is read: whether a signal's handler is still ours, and
 * whether the thread has the signal unblocked.
 */
struct sigaction___tap {
	void *sa_handler;
} __attribute__((preserve_access_index));

struct k_sigaction___tap {
	struct sigaction___tap sa;
} __attribute__((preserve_access_index));

struct sighand_struct___tap {
	struct k_sigaction___tap action[64];
} __attribute__((preserve_access_index));

struct signals___tap {
	unsigned long sig[1];
} __attribute__((preserve_access_index));

struct task_struct___tap {
	struct sighand_struct___tap *sighand;
	struct signals___tap blocked;
} __attribute__((preserve_access_index));

struct tap_call {
	__u32 what, device, channel, pad;
	__u64 buf;
};

struct channel_key {
	__u32 pid, device, channel;
};

struct channel_state {
	__u64 position;
	__u32 epoch;
	__u32 aligned; /* a record begins at position 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH); /* LRU, because a call that an exception leaves has no return */
	__uint(max_entries, 4096);
	__type(key, __u64); /* thread */
	__type(value, struct tap_call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct channel_key);
	__type(value, struct channel_state);
} channels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* thread group */
	__type(value, struct nps_tap_helper);
} helpers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} tap_ring SEC(".maps");

const volatile bool copy = true; /* false: only the owners of channels are reported */
__u64 lost_events = 0; /* that report owners of channels */
__u64 lost_bytes = 0; /* that were read, but found no room here or could not be copied */

/* Is it a thread of our helper? */
static __always_inline bool is_helper(void)
{
	const char name[] = NPS_AGENT_COMM;
	char comm[16];

	if (bpf_get_current_comm(comm, sizeof(comm)))
		return false;
	for (int i = 0; i < (int)sizeof(name) - 1; i++)
		if (comm[i] != name[i])
			return false;
	return true;
}

static __always_inline void fill(struct nps_tap_event *e, __u32 what, const struct tap_call *c, __u64 id)
{
	e->what = what;
	e->pid = id >> 32;
	e->tid = (__u32)id;
	e->device = c->device;
	e->channel = c->channel;
	e->ret = 0;
	e->len = 0;
	e->epoch = 0;
	e->position = 0;
}

static __always_inline void tap_send_flags(__u32 what, const struct tap_call *c, __u64 id, __s32 ret,
					   __u64 flags)
{
	struct nps_tap_event *e = bpf_ringbuf_reserve(&tap_ring, sizeof(*e), 0);

	if (!e) {
		__sync_fetch_and_add(&lost_events, 1);
		return;
	}
	fill(e, what, c, id);
	e->ret = ret;
	bpf_ringbuf_submit(e, flags);
}

static __always_inline void tap_send(__u32 what, const struct tap_call *c, __u64 id, __s32 ret)
{
	tap_send_flags(what, c, id, ret, BPF_RB_NO_WAKEUP);
}

/* Reports the parameters of a start, which include the events of counters. */
static __always_inline void tap_send_enter(const struct tap_call *c, __u64 id)
{
	struct nps_tap_start *s = bpf_ringbuf_reserve(&tap_ring, sizeof(*s), 0);
	struct {
		__s32 type;
		__u32 period, real_time, pad;
		__u64 data;
		__u32 size, pad2;
	} para = {};
	__u32 size;

	if (!s) {
		__sync_fetch_and_add(&lost_events, 1);
		return;
	}
	fill(&s->e, NPS_TAP_ENTER, c, id);
	if (!bpf_probe_read_user(&para, sizeof(para), (void *)c->buf) && para.data) {
		size = para.size;
		if (size > NPS_TAP_PARA)
			size = NPS_TAP_PARA;
		if (!bpf_probe_read_user(s->para, size, (void *)para.data))
			s->e.len = size;
	}
	bpf_ringbuf_submit(s, BPF_RB_FORCE_WAKEUP); /* the thread waits until the collector has reacted */
}

static __always_inline void hold_up(__u32 pid)
{
	struct task_struct___tap *task = (void *)bpf_get_current_task();
	struct nps_tap_helper *h = bpf_map_lookup_elem(&helpers, &pid);
	struct sighand_struct___tap *sighand;
	void *handler = NULL;
	__u32 number;

	if (!h)
		return;
	number = h->signal;
	if (number < 1 || number > 64)
		return;
	/*
	 * With the signal blocked, the handler would run long after this call,
	 * when there is nothing to wait for.
	 */
	if (BPF_CORE_READ(task, blocked.sig[0]) >> (number - 1) & 1)
		return;
	sighand = BPF_CORE_READ(task, sighand);
	if (bpf_probe_read_kernel(&handler, sizeof(handler),
				  (char *)__builtin_preserve_access_index(&sighand->action[0].sa.sa_handler) +
					  (number - 1) * bpf_core_type_size(struct k_sigaction___tap)))
		return;
	if ((__u64)handler == h->handler)
		bpf_send_signal_thread(number);
}

SEC("uprobe")
int tap_enter(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct tap_call c = { .what = (__u32)cookie_of(ctx),
			      .device = (__u32)PT_REGS_PARM1(ctx),
			      .channel = (__u32)PT_REGS_PARM2(ctx),
			      .buf = PT_REGS_PARM3(ctx) };

	if (!target_flags(id >> 32) || is_helper())
		return 0;
	if (c.what == NPS_TAP_CALL_LIST) {
		c.channel = 0;
		tap_send_flags(NPS_TAP_LIST, &c, id, 0, BPF_RB_FORCE_WAKEUP);
		return 0;
	}
	if (bpf_map_update_elem(&calls, &id, &c, BPF_ANY))
		__sync_fetch_and_add(&lost_events, 1);
	if (c.what != NPS_TAP_CALL_START)
		return 0;
	tap_send_enter(&c, id);
	hold_up(id >> 32);
	return 0;
}

static __always_inline void started(const struct tap_call *c, __u64 id, __s32 ret)
{
	struct channel_key key = { .pid = id >> 32, .device = c->device, .channel = c->channel };
	struct channel_state fresh = { .epoch = 1, .aligned = 1 }, *have;

	tap_send(NPS_TAP_START, c, id, ret);
	if (ret)
		return;
	have = bpf_map_lookup_elem(&channels, &key);
	if (have)
		fresh.epoch = have->epoch + 1;
	bpf_map_update_elem(&channels, &key, &fresh, BPF_ANY);
}

static __always_inline void fill_data(struct nps_tap_event *e, const struct tap_call *c, __u64 id,
				      const struct channel_state *st, __u32 at, __u32 len)
{
	fill(e, NPS_TAP_DATA, c, id);
	e->len = len;
	e->epoch = st->epoch;
	e->position = st->position + at;
}

/*
 * The gap between positions shows where bytes are missing, but only once later ones arrive, which may never
 * happen. So they are counted as well.
 */
static __always_inline void lose(__u32 n)
{
	__sync_fetch_and_add(&lost_bytes, n);
}

static __always_inline bool copy_large(const struct tap_call *c, __u64 id, const struct channel_state *st,
				       __u32 at)
{
	struct nps_tap_large *d = bpf_ringbuf_reserve(&tap_ring, sizeof(*d), 0);

	if (!d)
		return false;
	fill_data(&d->e, c, id, st, at, sizeof(d->data));
	if (bpf_probe_read_user(d->data, sizeof(d->data), (void *)(c->buf + at))) {
		lose(sizeof(d->data));
		bpf_ringbuf_discard(d, BPF_RB_NO_WAKEUP);
	} else {
		bpf_ringbuf_submit(d, BPF_RB_NO_WAKEUP);
	}
	return true;
}

static __always_inline bool copy_small(const struct tap_call *c, __u64 id, const struct channel_state *st,
				       __u32 at, __u32 len)
{
	struct nps_tap_small *d = bpf_ringbuf_reserve(&tap_ring, sizeof(*d), 0);

	if (!d)
		return false;
	/*
	 * Without this the compiler compares one register and reads with a copy of it, and older verifiers
	 * do not know that both are equal.
	 */
	asm volatile("" : "+r"(len));
	if (len > NPS_TAP_SMALL)
		len = NPS_TAP_SMALL;
	fill_data(&d->e, c, id, st, at, len);
	if (bpf_probe_read_user(d->data, len, (void *)(c->buf + at))) {
		lose(len);
		bpf_ringbuf_discard(d, BPF_RB_NO_WAKEUP);
	} else {
		bpf_ringbuf_submit(d, BPF_RB_NO_WAKEUP);
	}
	return true;
}

/* Always 0, which the verifier does not know. */
__u32 nothing;

/* Copies N bytes. Returns how many were handled. */
static __always_inline __u32 copy_out(const struct tap_call *c, __u64 id, const struct channel_state *st,
				      __u32 n)
{
	__u32 at = 0;

	for (__u32 i = 0; i < NPS_TAP_MOST_LARGE; i++) {
		if (n - at < NPS_TAP_LARGE)
			break;
		if (!copy_large(c, id, st, at))
			return at;
		at += NPS_TAP_LARGE;
	}
	/*
	 * Older verifiers would follow the rest once for each exit of the loop above, and exceed their limit.
	 */
	at += nothing;
	for (__u32 i = 0; i < NPS_TAP_LARGE / NPS_TAP_SMALL; i++) {
		if (at >= n)
			break;
		if (!copy_small(c, id, st, at, n - at))
			return at;
		at += NPS_TAP_SMALL;
	}
	return at;
}

static __always_inline void was_read(const struct tap_call *c, __u64 id, __s32 ret)
{
	struct channel_key key = { .pid = id >> 32, .device = c->device, .channel = c->channel };
	struct channel_state *st = bpf_map_lookup_elem(&channels, &key);
	struct channel_state unseen = {};
	__u32 past;

	if (ret < 0)
		return;
	if (!st) {
		tap_send(NPS_TAP_EMPTY, c, id, ret);
		bpf_map_update_elem(&channels, &key, &unseen, BPF_ANY);
		st = bpf_map_lookup_elem(&channels, &key);
		if (!st) {
			lose((__u32)ret);
			return;
		}
	}
	if (!ret && !st->aligned) {
		st->aligned = 1;
		st->position = 0;
	}
	if (!ret)
		return;
	if (copy && st->aligned) {
		past = copy_out(c, id, st, (__u32)ret);
		if (past < (__u32)ret)
			lose((__u32)ret - past);
	}
	st->position += (__u32)ret;
}

SEC("uretprobe")
int tap_leave(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct tap_call *found = bpf_map_lookup_elem(&calls, &id), c;
	__s32 ret = (__s32)PT_REGS_RC(ctx);

	if (!found)
		return 0;
	c = *found;
	bpf_map_delete_elem(&calls, &id);
	if (c.what == NPS_TAP_CALL_START)
		started(&c, id, ret);
	else if (c.what == NPS_TAP_CALL_STOP)
		tap_send(NPS_TAP_STOP, &c, id, ret);
	else
		was_read(&c, id, ret);
	return 0;
}
