/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of an ELF file and where it would be probed, a line each: name, address, size,
 * point as of a call (entry and return), its class, point as of an entry, its class. All
 * arguments in registers are taken to be read.
 *
 *   probe_survey FILE              the list
 *   probe_survey FILE PID          probes every function that can be moved at its start, and at both points,
 *                                  in PID; sends it SIGUSR1 when they are attached; when it has ended, a line
 *                                  for each that was hit: name, hits and a sum of each argument and of the
 *                                  stack pointer at the start, and at the points.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <poll.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/landing_pads.h"
#include "attach/probe_point.h"
#include "attach/uprobe_link.h"

#define MAX_BODY 65536
#define VALUES 8 /* hits, six arguments, stack pointer */

struct function {
	char *name;
	uint64_t offset, vaddr, size;
	size_t point[2]; /* of a call, of an entry */
	enum nps_probe_class class[2];
};

struct survey {
	struct nps_elf *elf;
	struct function *v;
	size_t n;
};

struct body {
	struct nps_elf *elf;
	const struct nps_elf_function *fn;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int read_near(void *arg, int64_t at, uint8_t *buf, size_t len)
{
	const struct body *body = arg;

	if (at < 0 && (uint64_t)-at > body->fn->offset)
		return -EINVAL;
	return nps_elf__code(body->elf, body->fn->offset + (uint64_t)at, buf, len);
}

static int each_pad(void *arg, void (*each)(int64_t at, void *arg), void *each_arg)
{
	const struct body *body = arg;

	return nps_landing_pads__each(body->elf, body->fn, each, each_arg);
}

static int add_function(const struct nps_elf_function *f, void *arg)
{
	static uint8_t code[MAX_BODY];
	struct survey *s = arg;
	int machine = nps_elf__machine(s->elf), n;
	struct body body = { s->elf, f };
	struct function *to;

	if (!f->size || f->size > sizeof(code))
		return 0;
	n = nps_elf__code(s->elf, f->offset, code, f->size);
	if (n != (int)f->size)
		return 0;
	s->v = realloc(s->v, (s->n + 1) * sizeof(*s->v));
	if (!s->v)
		die("memory");
	to = &s->v[s->n++];
	*to = (struct function){
		.name = strdup(f->name), .offset = f->offset, .vaddr = f->vaddr, .size = f->size
	};
	for (int entry = 0; entry < 2; entry++) {
		struct nps_probe_need need = {
			machine == EM_X86_64 ? 0x3f : 0xff, true, !entry, read_near, &body, each_pad
		};

		to->point[entry] = nps_probe_point(machine, code, (size_t)n, &need);
		to->class[entry] = nps_probe_point__class(machine, code, (size_t)n, to->point[entry]);
	}
	return 0;
}

/* One of each address: aliases and both tables of symbols have some twice. */
static int by_offset(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void print_list(const struct survey *s)
{
	static const char *const names[] = { "emulated", "nop", "stepped" };

	for (size_t i = 0; i < s->n; i++) {
		const struct function *f = &s->v[i];

		printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%zu\t%s\t%zu\t%s\n", f->name, f->vaddr, f->size,
		       f->point[0], names[f->class[0]], f->point[1], names[f->class[1]]);
	}
}

#define INSN(c, d, s, o, i)                                                                                  \
	(struct bpf_insn)                                                                                    \
	{                                                                                                    \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)                          \
	}

/* Adds to the values of the probe whose cookie it has: offsets in struct pt_regs of x86-64. */
static int load_program(int map)
{
	static const int regs[VALUES - 1] = { 112, 104, 96, 88, 72, 64, 152 };
	struct bpf_insn p[64];
	int n = 0;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = NPS_BPF_TRACE_UPROBE_MULTI);

	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	p[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_attach_cookie);
	p[n++] = INSN(BPF_STX | BPF_MEM | BPF_W, 10, 0, -4, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4);
	p[n++] = INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map);
	p[n++] = INSN(0, 0, 0, 0, 0);
	p[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
	p[n++] = INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2 + 2 * (VALUES - 1), 0);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1);
	p[n++] = INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD);
	for (int i = 0; i < VALUES - 1; i++) {
		p[n++] = INSN(BPF_LDX | BPF_MEM | BPF_DW, 1, 6, (int16_t)regs[i], 0);
		p[n++] = INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, (int16_t)(8 * (i + 1)), BPF_ADD);
	}
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	p[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", p, (size_t)n, &opts);
}

/* Address WHICH of a function: its start, its point of a call, its point of an entry. */
static uint64_t probe_address(const struct function *f, int which)
{
	return f->offset + (which ? f->point[which - 1] : 0);
}

static int link_all(const struct survey *s, int prog, const char *path, int pid)
{
	uint64_t *offsets = calloc(3 * s->n, sizeof(*offsets)), *cookies = calloc(3 * s->n, sizeof(*cookies));
	uint32_t n = 0;
	int link;

	if (!offsets || !cookies)
		die("memory");
	for (size_t i = 0; i < s->n; i++) {
		if (!s->v[i].point[1])
			continue;
		for (int which = 0; which < 3; which++) {
			/*
			 * Two at one address would be one breakpoint, but where they
			 * are the same there is nothing to compare.
			 */
			if (which == 1 && !s->v[i].point[0])
				continue;
			offsets[n] = probe_address(&s->v[i], which);
			cookies[n++] = 3 * i + (size_t)which;
		}
	}
	link = nps_uprobe_multi__link(prog, NPS_BPF_TRACE_UPROBE_MULTI, path, offsets, cookies, n, false,
				      pid);
	free(offsets);
	free(cookies);
	return link;
}

static void print_hits(const struct survey *s, int map)
{
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t values[3][VALUES];

		for (uint32_t which = 0; which < 3; which++) {
			uint32_t key = 3 * i + which;

			if (bpf_map_lookup_elem(map, &key, values[which]))
				die("map");
		}
		if (!values[0][0] && !values[1][0] && !values[2][0])
			continue;
		printf("%s\t%zu\t%zu", s->v[i].name, s->v[i].point[0], s->v[i].point[1]);
		for (int which = 0; which < 3; which++)
			for (int k = 0; k < VALUES; k++)
				printf("\t%" PRIu64, values[which][k]);
		putchar('\n');
	}
}

static void watch(const struct survey *s, const char *path, int pid)
{
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "values", 4, 8 * VALUES, (uint32_t)(3 * s->n), NULL);
	int prog, link, process = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = { .fd = process, .events = POLLIN };

	if (map < 0 || process < 0)
		die("map or process");
	prog = load_program(map);
	if (prog < 0)
		die("program");
	link = link_all(s, prog, path, pid);
	if (link < 0) {
		errno = -link;
		die("link");
	}
	if (kill(pid, SIGUSR1))
		die("signal");
	if (poll(&end, 1, 120000) != 1)
		die("the process has not ended");
	print_hits(s, map);
	close(link);
}

int main(int argc, char **argv)
{
	struct survey s = { 0 };
	size_t kept = 0;
	int fd, err;

	if (argc < 2 || (fd = open(argv[1], O_RDONLY | O_CLOEXEC)) < 0)
		die("probe_survey FILE [PID]");
	err = nps_elf__open(fd, NULL, &s.elf);
	if (!err)
		err = nps_elf__for_each_function(s.elf, true, add_function, &s);
	if (err) {
		errno = -err;
		die(argv[1]);
	}
	qsort(s.v, s.n, sizeof(*s.v), by_offset);
	for (size_t i = 0; i < s.n; i++)
		if (!i || s.v[i].offset != s.v[i - 1].offset)
			s.v[kept++] = s.v[i];
	s.n = kept;
	if (argc > 2)
		watch(&s, argv[1], atoi(argv[2]));
	else
		print_list(&s);
	return 0;
}
