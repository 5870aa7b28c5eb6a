/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Python stacks, walked in the frames of CPython (kheaders/python.h). Each different stack, and each code
 * object in one, is sent once; from then on the hash of a stack identifies it.
 *
 * All of it is the job's memory, which can be anything: each loop has a limit, and what cannot be read ends
 * the stack.
 */
#ifndef NPS_PYTHON_BPF_H
#define NPS_PYTHON_BPF_H

#include "local.bpf.h"
#include "python_stack.h"

const volatile __u32 python_at = 0; /* NPS_PY_AT_* */

/*
 * Can the thread be anywhere, also where the interpreter enters or leaves a function? Then frames can be of
 * before, and are checked (python_check.bpf.h). At a call of C they are always valid.
 */
const volatile bool python_checked = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* thread group */
	__type(value, struct nps_py_process);
} python_processes SEC(".maps");

/* Stacks and code objects that were sent; those that are forgotten are sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} python_sent SEC(".maps");

#define PY_THREADS 512 /* that are searched for the running one, and interpreters */
#define PY_HEAD 128 /* bytes of a code object from its first line on: names and line table are in them */

/* The verifier keeps the bound of a mask where it forgets that of a comparison. */
#define PY_AT(i, size)                                                                                       \
	({                                                                                                   \
		__u64 _i = (i);                                                                              \
		asm volatile("%0 &= %1" : "+r"(_i) : "i"((size)-1));                                         \
		_i;                                                                                          \
	})

/* Results of loops are kept in memory, where the verifier assumes any value (call_stack.bpf.h). */
struct python_state {
	__u64 thread_state; /* where the interpreter's state of this thread was found without its TLS */
	__u64 runtime; /* ... in the process with that _PyRuntime */
	__u64 interpreter; /* of the search for it */
	__u64 next; /* address of the thread state, or frame, to be read */
	__u64 hash;
	__u32 n;
	__u32 reserved;
	/* of a checked walk */
	__u64 cframe; /* whose frames are not checked against the frame that called it; 0: none */
	__u64 chunk, top; /* of frames: the one with the next frame, and the end of the innermost frame */
	__u64 inner; /* the frame inside of the next one in memory of frames; 0: none yet */
	__u64 entry; /* as in struct nps_stack_python */
	__u64 frame[NPS_PY_FRAME_BYTES / 8 + 1];
	__u64 code[PY_HEAD / 8];
	__u64 object[8];
	struct nps_py_stack stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct python_state);
} python_threads SEC(".maps");

static const struct python_state no_python_state = {};

static __always_inline __u64 py_mix(__u64 h, __u64 value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

static __always_inline __u64 py_read(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* A word of a frame that was read. */
static __always_inline __u64 frame_word(const struct python_state *s, __u16 offset)
{
	const char *at = (const char *)s->frame;

	return *(const __u64 *)(at + PY_AT(offset, NPS_PY_FRAME_BYTES));
}

/* What is read of a code object begins here: with the word that the number before its first line is in. */
static __always_inline __u16 code_head(const struct nps_py_layout *l)
{
	return (l->code_firstlineno - 4) & ~7;
}

/* A word of what was read of a code object. */
static __always_inline __u64 code_word(const struct python_state *s, const struct nps_py_layout *l,
				       __u16 offset)
{
	return s->code[PY_AT((__u16)(offset - code_head(l)) / 8, PY_HEAD / 8)];
}

static __always_inline __u32 code_number(const struct python_state *s, const struct nps_py_layout *l,
					 __u16 offset)
{
	return (__u32)(code_word(s, l, offset) >> 8 * (offset & 4));
}

static __always_inline __u32 code_line(const struct python_state *s, const struct nps_py_layout *l)
{
	return code_number(s, l, l->code_firstlineno);
}

/* The thread pointer of the running thread; 0: this kernel does not show it. */
static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *t = this_task();

#if defined(__TARGET_ARCH_x86)
	if (bpf_core_field_exists(t->thread.fsbase))
		return BPF_CORE_READ(t, thread.fsbase);
#else
	if (bpf_core_field_exists(t->thread.uw.tp_value))
		return BPF_CORE_READ(t, thread.uw.tp_value);
#endif
	return 0;
}

/* The number of the running thread in its own pid namespace, as gettid(2) returns it there. */
static __always_inline __u32 own_tid(void)
{
	struct task_struct *t = this_task();
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid number = {};

	if (level > 32) /* the kernel's limit of nested namespaces */
		return 0;
	bpf_probe_read_kernel(&number.nr, sizeof(number.nr),
			      (char *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(struct upid, nr));
	return number.nr;
}

/* Step I of the search: ends when the thread is found, or there is no other. */
static __always_inline bool search_step(struct python_state *s, const struct nps_py_process *p, __u64 tid)
{
	const struct nps_py_layout *l = &p->layout;

	if (!s->interpreter)
		return false;
	if (!s->next) {
		s->interpreter = py_read(s->interpreter + l->interpreter_next);
		s->next = s->interpreter ? py_read(s->interpreter + l->interpreter_threads) : 0;
		return true;
	}
	if (py_read(s->next + l->thread_native_id) == tid) {
		s->thread_state = s->next;
		return false;
	}
	s->next = py_read(s->next + l->thread_next);
	return true;
}

/*
 * Searches the interpreters' lists of threads for the running one, by the kernel's number of it, and sets
 * s->thread_state, 0: there is none. A global function, as python_stack_walk().
 */
__noinline int python_search_thread(__u32 pid)
{
	struct nps_py_process *p = bpf_map_lookup_elem(&python_processes, &pid);
	struct python_state *s = local_find(&python_threads);
	const struct nps_py_layout *l;
	__u64 tid;

	if (!python_at || !p || !s)
		return 0;
	l = &p->layout;
	tid = own_tid();
	if (s->thread_state && s->runtime == p->runtime &&
	    py_read(s->thread_state + l->thread_native_id) == tid)
		return 1;
	s->thread_state = 0;
	s->runtime = p->runtime;
	s->interpreter = py_read(p->runtime + l->runtime_interpreters);
	s->next = s->interpreter ? py_read(s->interpreter + l->interpreter_threads) : 0;
	for (int i = 0; i < PY_THREADS; i++)
		if (!search_step(s, p, tid))
			break;
	return 0;
}

static __always_inline bool read_code(struct python_state *s, const struct nps_py_layout *l, __u64 code)
{
	return !bpf_probe_read_user(s->code, sizeof(s->code), (void *)(code + code_head(l)));
}

#include "python_check.bpf.h"

/* The innermost frame of the running thread, 0: it runs no Python. */
static __always_inline __u64 innermost_frame(struct python_state *s, const struct nps_py_process *p,
					     __u32 pid)
{
	const struct nps_py_layout *l = &p->layout;
	__u64 state, frame;

	if (p->tls_offset == NPS_PY_NO_TLS) {
		if (l->thread_native_id == NPS_PY_NONE)
			return 0;
		python_search_thread(pid);
		state = s->thread_state;
	} else {
		state = thread_pointer();
		if (state)
			state = py_read(state + (__s64)p->tls_offset);
	}
	if (!state)
		return 0;
	frame = py_read(state + l->thread_frame);
	if (python_checked)
		check_begin(s, l, state, frame);
	if (frame && l->cframe_frame != NPS_PY_NONE)
		frame = py_read(frame + l->cframe_frame);
	return frame;
}

/* Where in its code the frame is. */
static __always_inline __s32 frame_instruction(const struct python_state *s, const struct nps_py_layout *l,
					       __u64 code)
{
	__u64 base = code + l->code_first_instruction;

	/* no branch, which the verifier would follow twice for each frame */
	base &= (__u64)(l->instruction == NPS_PY_LASTI) - 1;
	asm volatile("" : "+r"(base));
	return (__s32)(frame_word(s, l->frame_instruction) - base);
}

/* Mixes in the length and the first bytes of a str or bytes object, whose data begins at DATA. */
static __noinline __u64 mix_object(struct python_state *s, __u64 h, __u64 address, __u16 length, __u16 data)
{
	__u32 at = (__u16)(data - length) / 8;

	/* one read: what is between them changes, and is not used */
	if (bpf_probe_read_user(s->object, sizeof(s->object), (void *)(address + length)))
		__builtin_memset(s->object, 0, sizeof(s->object));
	h = py_mix(py_mix(h, address), s->object[0]);
	for (int i = 0; i < 3; i++)
		h = py_mix(h, s->object[PY_AT(at + i, 8)]);
	return h;
}

/*
 * Distinguishes code objects that were at one address one after another: memory of what they refer to is
 * used again, too.
 */
static __always_inline __u32 code_fingerprint(struct python_state *s, const struct nps_py_layout *l)
{
	__u64 h = code_line(s, l), without = (__u64)(l->code_qualname == NPS_PY_NONE), name;

	/* no branch, as above */
	asm volatile("" : "+r"(without));
	name = l->code_qualname ^ ((l->code_qualname ^ l->code_name) & -without);
	h = mix_object(s, h, code_word(s, l, l->code_filename), l->text_length, l->text_ascii);
	h = mix_object(s, h, code_word(s, l, name), l->text_length, l->text_ascii);
	h = mix_object(s, h, code_word(s, l, l->code_linetable), l->bytes_length, l->bytes_data);
	return h ^ h >> 32;
}

/* Hash of what identifies the process: its pid, and the program that it runs. */
static __always_inline __u64 process_hash(const struct nps_py_process *p, __u32 pid)
{
	return py_mix(py_mix(pid, p->runtime), p->reserved);
}

#define FRAME_BYTES_LEAST 80 /* a frame of 3.11 and later can be so close to the end of its memory */

static __always_inline bool read_frame(struct python_state *s, __u64 address)
{
	return !bpf_probe_read_user(s->frame, NPS_PY_FRAME_BYTES, (void *)address) ||
	       !bpf_probe_read_user(s->frame, FRAME_BYTES_LEAST, (void *)address);
}

/* Appends the frame that was read. False: its code object could not be read. */
static __always_inline bool append_frame(struct python_state *s, const struct nps_py_layout *l, __u64 code)
{
	struct nps_py_stack_frame *f = &s->stack.frames[PY_AT(s->n, NPS_PY_FRAMES)];

	if (!code || !read_code(s, l, code))
		return false;
	f->code = code;
	f->fingerprint = code_fingerprint(s, l);
	f->instruction = frame_instruction(s, l, code);
	s->hash = py_mix(s->hash, f->code);
	s->hash = py_mix(s->hash, (__u64)f->fingerprint << 32 | (__u32)f->instruction);
	s->n++;
	return true;
}

#define PY_STEPS (NPS_PY_FRAMES + 32) /* frames that are read: some are of the interpreter itself */

/* Reads the frame at s->next. False: it is the last one, or cannot be read. */
static __always_inline bool walk_step(struct python_state *s, const struct nps_py_layout *l)
{
	__u64 code, address = s->next;

	if (!address) {
		s->stack.flags = !python_checked || check_end(s, l) ? 0 : NPS_PY_F_INVALID;
		return false;
	}
	if (s->n >= NPS_PY_FRAMES)
		return false;
	if (!read_frame(s, address)) {
		s->stack.flags = NPS_PY_F_BROKEN;
		return false;
	}
	s->next = frame_word(s, l->frame_previous) & ~(__u64)l->pointer_tag;
	if (l->c_owner != 0xff && (__u8)frame_word(s, l->frame_owner) >= l->c_owner) {
		if (!python_checked || check_c_frame(s, l, address))
			return true;
		s->stack.flags = NPS_PY_F_INVALID;
		return false;
	}
	code = frame_word(s, l->frame_code) & ~(__u64)l->pointer_tag;
	if (!append_frame(s, l, code)) {
		s->stack.flags = NPS_PY_F_BROKEN;
		return false;
	}
	if (!python_checked || check_frame(s, l, address))
		return true;
	s->stack.flags = NPS_PY_F_INVALID;
	return false;
}

/* The frames from s->next on. A global function, as python_stack_walk(). */
__noinline int python_walk(__u32 pid)
{
	struct nps_py_process *p = bpf_map_lookup_elem(&python_processes, &pid);
	struct python_state *s = local_find(&python_threads);

	if (!python_at || !p || !s)
		return 0;
	s->n = 0;
	s->hash = process_hash(p, pid);
	s->stack.flags = NPS_PY_F_CUT;
	for (int i = 0; i < PY_STEPS; i++)
		if (!walk_step(s, &p->layout))
			break;
	return 0;
}

/* --- what is sent once --- */

static __always_inline bool sent_before(__u64 key)
{
	return bpf_map_lookup_elem(&python_sent, &key);
}

static __always_inline void remember_sent(__u64 key)
{
	__u8 one = 1;

	bpf_map_update_elem(&python_sent, &key, &one, BPF_ANY);
}

/* Its kind decides how many bytes the characters have; the collector knows it. */
static __always_inline void read_str(struct nps_py_text *t, const struct nps_py_layout *l, __u64 address)
{
	__u32 n;

	t->address = address;
	t->length = py_read(address + l->text_length);
	t->state = (__u32)py_read(address + l->text_state);
	n = t->length < NPS_PY_TEXT / 4 - 8 ? 4 * t->length + 32 : NPS_PY_TEXT;
	asm volatile("%0 &= %1" : "+r"(n) : "i"(2 * NPS_PY_TEXT - 1));
	if (n > NPS_PY_TEXT)
		n = NPS_PY_TEXT;
	if (bpf_probe_read_user(t->raw, n, (void *)(address + l->text_ascii)))
		n = 0;
	t->n = n;
}

static __always_inline void read_lines(struct nps_py_code *c, const struct nps_py_layout *l, __u64 address)
{
	__u32 n;

	c->lines_at = address;
	c->lines_length = py_read(address + l->bytes_length);
	n = c->lines_length < NPS_PY_LINES ? c->lines_length : NPS_PY_LINES;
	asm volatile("%0 &= %1" : "+r"(n) : "i"(2 * NPS_PY_LINES - 1));
	if (n > NPS_PY_LINES)
		n = NPS_PY_LINES;
	if (bpf_probe_read_user(c->lines, n, (void *)(address + l->bytes_data)))
		n = 0;
	c->n_lines = n;
}

/* Sends the code object of frame I of the running thread's stack, unless it was sent. False: no room. */
__noinline int python_send_code(__u32 pid, __u32 i)
{
	struct nps_py_process *p = bpf_map_lookup_elem(&python_processes, &pid);
	struct python_state *s = local_find(&python_threads);
	const struct nps_py_layout *l;
	struct nps_py_stack_frame *f;
	struct nps_py_code *c;
	void *ring = this_ring();
	__u64 key, name, code;

	if (!python_at || !p || !s || !ring)
		return 0;
	l = &p->layout;
	f = &s->stack.frames[PY_AT(i, NPS_PY_FRAMES)];
	code = f->code & ~NPS_PY_ENTRY;
	key = py_mix(py_mix(process_hash(p, pid), code), ~(__u64)f->fingerprint);
	if (sent_before(key) || !read_code(s, l, code))
		return 1;
	c = bpf_ringbuf_reserve(ring, sizeof(*c), 0);
	if (!c)
		return 0;
	c->kind = NPS_PY_CODE;
	c->reserved = 0;
	c->version = l->version;
	c->pid = pid;
	c->code = code;
	c->fingerprint = f->fingerprint;
	c->first_line = code_line(s, l);
	c->reserved2 = 0;
	name = l->code_qualname != NPS_PY_NONE ? l->code_qualname : l->code_name;
	read_str(&c->file, l, code_word(s, l, l->code_filename));
	read_str(&c->name, l, code_word(s, l, name));
	read_lines(c, l, code_word(s, l, l->code_linetable));
	bpf_ringbuf_submit(c, wake_flag(ring));
	remember_sent(key);
	return 1;
}

static __always_inline bool send_codes(struct python_state *s, __u32 pid)
{
	for (__u32 i = 0; i < NPS_PY_FRAMES; i++) {
		if (i >= s->n)
			return true;
		if (!python_send_code(pid, i))
			return false;
	}
	return true;
}

static __always_inline bool send_stack(struct python_state *s, __u32 pid, __u64 id)
{
	void *ring = this_ring();
	__u32 n = s->n;

	s->stack.kind = NPS_PY_STACK;
	s->stack.n = n;
	s->stack.pid = pid;
	s->stack.id = id;
	s->stack.time = bpf_ktime_get_ns();
	asm volatile("%0 &= %1" : "+r"(n) : "i"(2 * NPS_PY_FRAMES - 1));
	if (n > NPS_PY_FRAMES)
		n = NPS_PY_FRAMES;
	return ring &&
	       !bpf_ringbuf_output(ring, &s->stack, NPS_PY_STACK_HEAD + n * sizeof(struct nps_py_stack_frame),
				   wake_flag(ring));
}

/*
 * The id of the Python stack of the running thread, of process PID; 0: it runs no Python, or it could not be
 * read; NPS_PY_UNREAD: a checked one could not be read, or is invalid. A global function: the verifier checks
 * it once, not at each call, and the stacks of those that it calls are small.
 */
__noinline __u64 python_stack_walk(__u32 pid)
{
	struct nps_py_process *p;
	struct python_state *s;
	__u64 id;

	if (!python_at)
		return 0;
	p = bpf_map_lookup_elem(&python_processes, &pid);
	s = p ? local_get(&python_threads, &no_python_state) : NULL;
	if (!s)
		return 0;
	s->n = 0;
	s->next = innermost_frame(s, p, pid);
	if (!s->next)
		return 0;
	python_walk(pid);
	if (python_checked && (!s->n || s->stack.flags & NPS_PY_F_INVALID))
		return NPS_PY_UNREAD;
	if (!s->n)
		return 0;
	id = s->hash ? s->hash : 1;
	if (sent_before(id))
		return id;
	/* Not remembered when a part was lost: the next use sends it again. */
	if (send_codes(s, pid) && send_stack(s, pid, id))
		remember_sent(id);
	else
		count_up(NPS_COUNTER_LOST + NPS_EV_PYSTACK);
	return id;
}

/* Sends that STACK is that of the call, or of the sample, PROBE, which began at START and took DUR. */
static __always_inline void python_event_send(__u64 stack, __u16 probe, __u64 pid_tgid, __u64 start,
					      __u64 dur, bool may_wake)
{
	void *ring = this_ring();
	struct nps_event *e = event_reserve(ring, NPS_EV_PYSTACK);

	if (!e)
		return;
	e->probe = probe;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = 0;
	e->start = start;
	e->dur = dur;
	e->python.stack = stack;
	e->python.reserved[0] = e->python.reserved[1] = e->python.reserved[2] = 0;
	bpf_ringbuf_submit(e, may_wake ? wake_flag(ring) : BPF_RB_NO_WAKEUP);
}

#define WALK_NS_MOST 200000 /* longer: the thread had lost its CPU */

/* The same; adds the time that it took to the account. */
static __always_inline __u64 python_stack(__u32 pid, enum nps_py_walk which)
{
	__u64 begin, id, ns;

	if (!python_at)
		return 0;
	begin = bpf_ktime_get_ns();
	id = python_stack_walk(pid);
	ns = bpf_ktime_get_ns() - begin;
	if (ns > WALK_NS_MOST)
		ns = WALK_NS_MOST;
	count_some(NPS_COUNTER_PY_NS + which, (__u32)ns);
	count_up(NPS_COUNTER_PY_WALKS);
	return id;
}

#endif
