/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stacks need of an ELF file: its functions' names and how to step to a caller. The files are the
 * job's: they are read, not mapped, and nothing in them is trusted.
 */
#ifndef NPS_ELF_IMAGE_H
#define NPS_ELF_IMAGE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nps_elf_image;

/*
 * What all files of one job together may take: one file is limited by constants of elf_image.c, but a job can
 * have any number of them. The 1,500 files of a job of PyTorch have some 1.5 million symbols with 200 MiB of
 * names, and 150 MiB of .eh_frame.
 */
struct nps_elf_limits {
	uint64_t bytes; /* that are read, and 128 for each symbol */
	uint64_t slow_ns; /* CPU time of steps to a caller that take long */
	bool exceeded; /* something of a file was left out */
	uint64_t refused; /* files of which something takes more memory than is to be had */
};
#define NPS_ELF_LIMITS                                                                                       \
	(struct nps_elf_limits)                                                                              \
	{                                                                                                    \
		.bytes = 2ULL << 30, .slow_ns = 5000000000ULL                                                \
	}

/*
 * Takes over FD, also when it fails; LIMITS has to live as long as the image. 0, -ENOEXEC (no 64-bit ELF
 * file), -ENOMEM.
 */
int nps_elf_image__open(int fd, struct nps_elf_limits *limits, struct nps_elf_image **out);

/* The same of an image in memory, which it copies. */
int nps_elf_image__memory(const void *bytes, size_t len, struct nps_elf_limits *limits,
			  struct nps_elf_image **out);
void nps_elf_image__close(struct nps_elf_image *image);

/* Its build-id, at most 20 bytes of it. Returns the length, 0: none. */
size_t nps_elf_image__build_id(struct nps_elf_image *image, uint8_t id[20]);

/* Takes the names of another file of the same build, a debug file: it is closed, or closed with IMAGE. */
int nps_elf_image__add_symbols(struct nps_elf_image *image, struct nps_elf_image *debug);

/* True if it has a .symtab: without one only exported functions have names. */
bool nps_elf_image__has_symtab(struct nps_elf_image *image);

/* The address that the file itself gives to OFFSET of its bytes. False: no segment loads it. */
bool nps_elf_image__vaddr(const struct nps_elf_image *image, uint64_t offset, uint64_t *vaddr);

/* Name of the function that covers VADDR, as the file spells it; NULL: it has none. Valid until close. */
const char *nps_elf_image__symbol(struct nps_elf_image *image, uint64_t vaddr);

/* How the caller of VADDR is found; the result is for free(). NULL: the file has no rule. */
Dwarf_Frame *nps_elf_image__frame(struct nps_elf_image *image, uint64_t vaddr);

#endif
