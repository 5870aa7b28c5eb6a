// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Bytes that processes send and receive over internet sockets, counted for each thread group. This is the
 * payload of sockets, not the traffic on the wire: no headers, no retransmissions. The sampler reads the
 * totals.
 *
 * Since Linux 6.3 there is a tracepoint behind every send and receive. Before, the four functions that
 * all of them call return the length; they do not distinguish a read that leaves the data queued
 * (MSG_PEEK) from a receive.
 */
#include "common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Processes that got no entry because the map was full. */
__u64 net_lost = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_TARGETS);
	__type(key, __u32); /* thread group */
	__type(value, struct nps_net_bytes);
} net_bytes SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
};

#pragma clang attribute pop

#define FAMILY_INET 2
#define FAMILY_INET6 10
#define FLAG_PEEK 2

static __always_inline void carried(int bytes, bool sent)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct nps_net_bytes fresh = {}, *n;

	if (bytes <= 0 || !target_flags(pid))
		return;
	n = bpf_map_lookup_elem(&net_bytes, &pid);
	if (!n) {
		bpf_map_update_elem(&net_bytes, &pid, &fresh, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&net_bytes, &pid);
	}
	if (!n) {
		__sync_fetch_and_add(&net_lost, 1);
		return;
	}
	/* threads of one process run here at once */
	__sync_fetch_and_add(sent ? &n->sent : &n->received, (__u64)bytes);
}

static __always_inline bool is_internet(const struct sock *sk)
{
	unsigned short family = BPF_CORE_READ(sk, __sk_common.skc_family);

	return family == FAMILY_INET || family == FAMILY_INET6;
}

SEC("raw_tp/sock_send_length")
int socket_sent(struct bpf_raw_tracepoint_args *ctx)
{
	const struct sock *sk = (const struct sock *)ctx->args[0];
	int bytes = (int)ctx->args[1];

	if (bytes > 0 && is_internet(sk))
		carried(bytes, true);
	return 0;
}

SEC("raw_tp/sock_recv_length")
int socket_received(struct bpf_raw_tracepoint_args *ctx)
{
	const struct sock *sk = (const struct sock *)ctx->args[0];
	int bytes = (int)ctx->args[1], flags = (int)ctx->args[2];

	if (bytes > 0 && !(flags & FLAG_PEEK) && is_internet(sk))
		carried(bytes, false);
	return 0;
}

SEC("kretprobe/inet_sendmsg")
int inet_sent(struct pt_regs *ctx)
{
	carried((int)PT_REGS_RC(ctx), true);
	return 0;
}

SEC("kretprobe/inet6_sendmsg")
int inet6_sent(struct pt_regs *ctx)
{
	carried((int)PT_REGS_RC(ctx), true);
	return 0;
}

SEC("kretprobe/inet_recvmsg")
int inet_received(struct pt_regs *ctx)
{
	carried((int)PT_REGS_RC(ctx), false);
	return 0;
}

SEC("kretprobe/inet6_recvmsg")
int inet6_received(struct pt_regs *ctx)
{
	carried((int)PT_REGS_RC(ctx), false);
	return 0;
}
