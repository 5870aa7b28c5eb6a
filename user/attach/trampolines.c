/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/trampolines.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/capability.h"

struct trampoline {
	unsigned int which;
	uint64_t cookie;
	int fd;
};

struct nps_trampolines {
	int cookie_map, programs;
	uint32_t loaded; /* a bit for each loaded program */
	uint32_t kernel; /* LINUX_VERSION_CODE, which kernels before 5.0 check */
	struct trampoline *v;
	size_t n, room;
};

int nps_trampolines__new(int cookie_map, const int *programs, unsigned int n, struct nps_trampolines **out)
{
	struct nps_trampolines *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->cookie_map = cookie_map;
	s->kernel = nps_kernel_version();
	s->programs = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "nps_programs", 4, 4, n, NULL);
	if (s->programs < 0)
		err = s->programs;
	for (uint32_t i = 0; !err && i < n; i++) {
		if (programs[i] < 0)
			continue;
		s->loaded |= 1U << i;
		if (bpf_map_update_elem(s->programs, &i, &programs[i], BPF_ANY))
			err = -errno;
	}
	if (err) {
		nps_trampolines__free(s);
		return err;
	}
	*out = s;
	return 0;
}

void nps_trampolines__free(struct nps_trampolines *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		close(s->v[i].fd);
	if (s->programs >= 0)
		close(s->programs);
	free(s->v);
	free(s);
}

#define OP(code_, dst, src, off_, imm_)                                                                      \
	{                                                                                                    \
		.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (int32_t)(imm_)   \
	}
#define MOVE(dst, src) OP(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value) OP(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define CALL(helper) OP(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define LOAD64(dst, how, low, high) OP(BPF_LD | BPF_DW | BPF_IMM, dst, how, 0, low), OP(0, 0, 0, 0, high)

static int trampoline_load(const struct nps_trampolines *s, unsigned int which, uint64_t cookie)
{
	const struct bpf_insn insns[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		/* r0 = address of the cookie */
		OP(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),
		MOVE(BPF_REG_2, BPF_REG_10),
		OP(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		LOAD64(BPF_REG_1, BPF_PSEUDO_MAP_FD, s->cookie_map, 0),
		CALL(BPF_FUNC_map_lookup_elem),
		OP(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 8, 0), /* to the end */
		LOAD64(BPF_REG_1, 0, cookie, cookie >> 32),
		OP(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_0, BPF_REG_1, 0, 0),
		MOVE(BPF_REG_1, BPF_REG_6),
		LOAD64(BPF_REG_2, BPF_PSEUDO_MAP_FD, s->programs, 0),
		SET(BPF_REG_3, which),
		CALL(BPF_FUNC_tail_call),
		SET(BPF_REG_0, 0),
		OP(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .kern_version = s->kernel);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nps_stub", "Dual BSD/GPL", insns,
			       sizeof(insns) / sizeof(*insns), &opts);

	return fd < 0 ? -errno : fd;
}

int nps_trampolines__get(struct nps_trampolines *s, unsigned int which, uint64_t cookie)
{
	int fd;

	if (which >= 32 || !(s->loaded >> which & 1))
		return -ENOTSUP;
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].which == which && s->v[i].cookie == cookie)
			return s->v[i].fd;
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct trampoline *v = realloc(s->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->room = room;
	}
	fd = trampoline_load(s, which, cookie);
	if (fd >= 0)
		s->v[s->n++] = (struct trampoline){ which, cookie, fd };
	return fd;
}

void nps_trampolines__each(const struct nps_trampolines *s,
			   void (*each)(unsigned int which, int fd, void *arg), void *arg)
{
	for (size_t i = 0; s && i < s->n; i++)
		each(s->v[i].which, s->v[i].fd, arg);
}
