/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Texts of the job: read from its memory and sent once; from then on the
 * hash of all their bytes identifies them.
 */
#ifndef NPS_TEXT_BPF_H
#define NPS_TEXT_BPF_H

#include "common.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} interned SEC(".maps");

/* FNV-like over 8-byte words; the text is padded with zeros to whole words. */
static __always_inline __u64 text_hash(__u64 h, const char *text, __u32 len)
{
	const __u64 *word = (const __u64 *)text;

	for (__u32 i = 0; i < NPS_STR_MAX / 8; i++) {
		if (i * 8 >= len)
			break;
		h = (h ^ word[i]) * 0x100000001b3ULL;
		h ^= h >> 29;
	}
	return h;
}

/* Reads part I. Returns the bytes with the NUL, NPS_STR_MAX when there may be more; 0 if unreadable. */
static __always_inline __u32 text_part(struct text_scratch *t, __u64 ptr, int i)
{
	struct nps_string *s = &t->part[i];
	long n;

	__builtin_memset(s->text, 0, sizeof(s->text));
	n = bpf_probe_read_user_str(s->text, sizeof(s->text), (void *)(ptr + i * (NPS_STR_MAX - 1)));
	if (n <= 0 || n > NPS_STR_MAX)
		return 0;
	s->kind = i ? NPS_STR_MORE : NPS_STR_TEXT;
	s->flags = 0;
	s->len = n - 1;
	return n;
}

/* A text that did not fit the first part. Returns the number of parts, 0 if one is unreadable. */
static __noinline __u32 text_more(struct text_scratch *t, __u64 ptr, __u64 *hash)
{
	__u64 h = *hash;
	char next = 0;

	for (int i = 1; i < NPS_TEXT_PARTS; i++) {
		__u32 n = text_part(t, ptr, i);

		if (!n)
			return 0;
		h = text_hash(h, t->part[i].text, n);
		*hash = h;
		if (n < NPS_STR_MAX)
			return n > 1 ? i + 1 : i;
	}
	bpf_probe_read_user(&next, 1, (void *)(ptr + NPS_TEXT_MAX));
	if (next)
		t->part[NPS_TEXT_PARTS - 1].flags = NPS_STR_CUT;
	return NPS_TEXT_PARTS;
}

static __always_inline int text_send(struct text_scratch *t, __u32 parts, __u32 pid, __u64 id)
{
	void *ring = this_ring();
	__u64 now = bpf_ktime_get_ns();

	for (__u32 i = 0; i < NPS_TEXT_PARTS; i++) {
		if (i >= parts)
			break;
		t->part[i].pid = pid;
		t->part[i].id = id;
		t->part[i].time = now;
	}
	if (parts > NPS_TEXT_PARTS)
		parts = NPS_TEXT_PARTS;
	/* One write, so that the parts stay together. */
	return !ring || bpf_ringbuf_output(ring, t->part, parts * sizeof(t->part[0]), BPF_RB_NO_WAKEUP);
}

/* Sends the text at a user address once and returns its id, 0: unreadable. */
static __always_inline __u64 text_intern(struct text_scratch *t, __u32 pid, __u64 ptr)
{
	__u32 parts = 1, n = text_part(t, ptr, 0);
	__u64 id = 0xcbf29ce484222325ULL;
	__u8 one = 1;

	if (!n)
		return 0;
	id = text_hash(id, t->part[0].text, n);
	if (n == NPS_STR_MAX)
		parts = text_more(t, ptr, &id);
	if (!parts)
		return 0;
	id = id ? id : 1;
	if (bpf_map_lookup_elem(&interned, &id))
		return id;
	/* Not remembered when it was lost: the next use sends it again. */
	if (text_send(t, parts, pid, id)) {
		count_up(NPS_COUNTER_LOST + NPS_KIND_STRING);
		return id;
	}
	if (parts == NPS_TEXT_PARTS && (t->part[NPS_TEXT_PARTS - 1].flags & NPS_STR_CUT))
		count_up(NPS_COUNTER_TEXT_CUT);
	bpf_map_update_elem(&interned, &id, &one, BPF_ANY);
	return id;
}

#endif
