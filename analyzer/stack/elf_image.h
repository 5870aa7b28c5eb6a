/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stacks need of an ELF file: its functions' names and how to step to a caller. Files of strangers: they
 * are read, not mapped, and nothing in them is trusted.
 */
#ifndef NPS_ELF_IMAGE_H
#define NPS_ELF_IMAGE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nps_elf_image;

/* Takes over FD, also when it fails. 0, -ENOEXEC (no 64-bit ELF file), -ENOMEM. */
int nps_elf_image__open(int fd, struct nps_elf_image **out);

/* The same of an image in memory, which it copies. */
int nps_elf_image__memory(const void *bytes, size_t len, struct nps_elf_image **out);
void nps_elf_image__close(struct nps_elf_image *image);

/* Its build-id, at most 20 bytes of it. Returns the length, 0: none. */
size_t nps_elf_image__build_id(const struct nps_elf_image *image, uint8_t id[20]);

/* Takes the names of another file of the same build, a debug file: it is closed, or closed with IMAGE. */
int nps_elf_image__add_symbols(struct nps_elf_image *image, struct nps_elf_image *debug);

/* True if it has a .symtab: without one only exported functions have names. */
bool nps_elf_image__has_symtab(const struct nps_elf_image *image);

/* The address that the file itself gives to OFFSET of its bytes. False: no segment loads it. */
bool nps_elf_image__vaddr(const struct nps_elf_image *image, uint64_t offset, uint64_t *vaddr);

/* Name of the function that covers VADDR, as the file spells it; NULL: it has none. Valid until close. */
const char *nps_elf_image__symbol(struct nps_elf_image *image, uint64_t vaddr);

/* How the caller of VADDR is found; the result is for free(). NULL: the file does not say. */
Dwarf_Frame *nps_elf_image__frame(struct nps_elf_image *image, uint64_t vaddr);

#endif
