/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/calibrate_probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <unistd.h>

#include "attach/perf_probe.h"
#include "attach/uprobe_link.h"
#include "catalog.h"

#define OWN_FILE "/proc/self/exe"

/* Rows of the catalogue with one plain argument. */
#define CALL_ROW NPS_PROBE_FREE
#define MARK_ROW NPS_PROBE_STEP_MARKER

/*
 * Functions that begin with an instruction of the class and do nothing else, in assembly because the compiler
 * would choose another one. Aligned so that the 5-byte nop is within a page, or the kernel does not patch it.
 */
#define FUNCTION(name, body)                                                                                 \
	void name(void *arg);                                                                                \
	asm(".pushsection .text\n.balign 16\n.globl " #name "\n.hidden " #name "\n.type " #name              \
	    ", %function\n" #name ":\n" body ".size " #name ", . - " #name "\n.popsection\n")

#define PLAIN "ret\n"

#if defined(__x86_64__)
#define EMULATED "push %rbx\npop %rbx\nret\n"
#define NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\nret\n"
#define STEPPED "sub $24, %rsp\nadd $24, %rsp\nret\n"
#elif defined(__aarch64__)
#define EMULATED "b 1f\n1: ret\n"
#define NOP "nop\nret\n" /* no class of its own on arm64 */
#define STEPPED "stp x29, x30, [sp, #-16]!\nldp x29, x30, [sp], #16\nret\n"
#else
#error "which instructions begin a function?"
#endif

FUNCTION(nps_calibration_call_emulated, EMULATED);
FUNCTION(nps_calibration_call_nop, NOP);
FUNCTION(nps_calibration_call_stepped, STEPPED);
FUNCTION(nps_calibration_mark_emulated, EMULATED);
FUNCTION(nps_calibration_mark_nop, NOP);
FUNCTION(nps_calibration_mark_stepped, STEPPED);
FUNCTION(nps_calibration_plain, PLAIN);

nps_calibration_function nps_calibration__function(enum nps_probe_class class, bool returns)
{
	static const nps_calibration_function functions[2][NPS_PROBE_CLASSES] = {
		{ nps_calibration_mark_emulated, nps_calibration_mark_nop, nps_calibration_mark_stepped },
		{ nps_calibration_call_emulated, nps_calibration_call_nop, nps_calibration_call_stepped },
	};

	return functions[returns][class];
}

struct program_address {
	uint64_t address, offset;
};

static int find_in_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct program_address *p = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t begin = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && p->address >= begin && p->address - begin < ph->p_filesz)
			p->offset = p->address - begin + ph->p_offset;
	}
	return 1; /* the first is the program itself */
}

/*
 * Offset of the function in the program's file, from its address in
 * memory: a stripped file has no symbols. 0: not found.
 */
static uint64_t file_offset(nps_calibration_function function)
{
	struct program_address p = { .address = (uint64_t)(uintptr_t)function };

	dl_iterate_phdr(find_in_program, &p);
	return p.offset;
}

struct ways {
	uint64_t offsets[NPS_PROBE_CLASSES], cookies[NPS_PROBE_CLASSES];
};

static int attach_multi(struct nps_bpf_loader *k, struct nps_links *links, const struct ways *ways,
			enum nps_program which, uint32_t attach_type)
{
	int prog = bpf_program__fd(nps_bpf_loader__program(k, which));
	int fd = nps_uprobe_multi__link(prog, attach_type, OWN_FILE, ways->offsets, ways->cookies,
					NPS_PROBE_CLASSES, which == NPS_PROG_RETURN, getpid());

	return fd < 0 ? fd : nps_links__keep_fd(links, fd, 0);
}

static int attach_perf(struct nps_bpf_loader *k, struct nps_links *links, const struct ways *ways,
		       enum nps_program which)
{
	int err = 0;

	for (int i = 0; i < NPS_PROBE_CLASSES && !err; i++) {
		struct nps_perf_probe probe = { .program = nps_bpf_loader__program(k, which),
						.trampolines = nps_bpf_loader__trampolines(k),
						.which = which,
						.path = OWN_FILE,
						.offset = ways->offsets[i],
						.cookie = ways->cookies[i],
						.returns = which == NPS_PROG_RETURN };

		err = nps_perf_probe__attach(&probe, links);
	}
	return err;
}

static int attach_program(struct nps_bpf_loader *k, struct nps_links *links, const struct ways *ways,
			  enum nps_program which)
{
	if (nps_bpf_loader__uprobe_row(k) == NPS_UPROBE_PERF)
		return attach_perf(k, links, ways, which);
	return attach_multi(k, links, ways, which,
			    which == NPS_PROG_SESSION ? NPS_BPF_TRACE_UPROBE_SESSION
						      : NPS_BPF_TRACE_UPROBE_MULTI);
}

int nps_calibration__attach(struct nps_bpf_loader *k, struct nps_links *links)
{
	struct ways calls, marks;
	int err;

	for (enum nps_probe_class class = 0; class < NPS_PROBE_CLASSES; class ++) {
		calls.offsets[class] = file_offset(nps_calibration__function(class, true));
		marks.offsets[class] = file_offset(nps_calibration__function(class, false));
		calls.cookies[class] = NPS_COOKIE(CALL_ROW, 0, 0, class, 0);
		marks.cookies[class] = NPS_COOKIE(MARK_ROW, 0, 0, class, 0);
		if (!calls.offsets[class] || !marks.offsets[class])
			return -ENOENT;
	}
	err = attach_program(k, links, &marks, NPS_PROG_MARK);
	if (err)
		return err;
	if (nps_bpf_loader__uprobe_row(k) == NPS_UPROBE_SESSION)
		return attach_program(k, links, &calls, NPS_PROG_SESSION);
	/* The return first, as in a capture. */
	err = attach_program(k, links, &calls, NPS_PROG_RETURN);
	if (err)
		return err;
	return attach_program(k, links, &calls, NPS_PROG_ENTRY);
}
