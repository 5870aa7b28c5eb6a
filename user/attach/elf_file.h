/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of an ELF file by name and by file offset. The file belongs to the watched job: it is read,
 * never mapped (if a mapped file shrinks, access raises SIGBUS), and nothing in it is trusted. How much of
 * it is read, and held, is limited (work_budget.h).
 */
#ifndef NPS_ELF_FILE_H
#define NPS_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nps_budget;
struct nps_elf;

/*
 * Reads the ELF file behind `fd`, which the caller keeps open. The CPU time is
 * charged to BUDGET; NULL: the file is trusted, no limit. 0 or -errno; -ENOEXEC:
 * not a 64-bit ELF file of this byte order; -ETIME: the budget is spent.
 */
int nps_elf__open(int fd, struct nps_budget *budget, struct nps_elf **out);
void nps_elf__close(struct nps_elf *elf);

/* e_machine: EM_X86_64, EM_AARCH64. */
int nps_elf__machine(const struct nps_elf *elf);

/* GNU build-id in hex, "" if there is none. `hex` has room for 2 * 20 + 1 bytes. */
void nps_elf__build_id(const struct nps_elf *elf, char hex[41]);

struct nps_elf_function {
	const char *name; /* valid while the file is open */
	uint64_t offset; /* in the file */
	uint64_t vaddr;
	uint64_t size; /* bytes, 0 if the file does not contain it */
};

/*
 * Can its dynamic symbols be read, even if there is no function among them? Those of a damaged file cannot.
 */
bool nps_elf__has_symbols(struct nps_elf *elf);

/*
 * Calls `each` for every defined function of .dynsym, and of .symtab when `symtab` is set, until it returns
 * non-zero; returns that, 0 at the end, or -errno. -E2BIG: a symbol table was skipped because it is too
 * large; -ETIME: the budget is spent.
 */
int nps_elf__for_each_function(struct nps_elf *elf, bool symtab,
			       int (*each)(const struct nps_elf_function *f, void *arg), void *arg);

/* The function by that name, .dynsym first. -ENOENT, -E2BIG, -ETIME. */
int nps_elf__find(struct nps_elf *elf, const char *name, bool symtab, struct nps_elf_function *out);

struct nps_elf_object {
	uint64_t vaddr, size;
};

/* The variable by that name in .dynsym. -ENOENT, -E2BIG, -ETIME. */
int nps_elf__find_object(struct nps_elf *elf, const char *name, struct nps_elf_object *out);

/*
 * From the address at which SIZE bytes of the file from `offset` on are mapped: what to add to the file's
 * addresses to get those in the process; 0 for a file that is linked to fixed addresses. -ENOENT: no segment
 * begins there.
 */
int nps_elf__bias(const struct nps_elf *elf, uint64_t start, uint64_t size, uint64_t offset, uint64_t *bias);

/* A file offset, and the function that covers it. */
struct nps_elf_name {
	uint64_t offset;
	uint64_t tag; /* for the caller, to find its offset after they have been sorted */
	const char *name; /* NULL: no function covers it. Valid while the file is open */
};

/*
 * Finds the functions of N offsets in one pass over the symbols. 0,
 * -E2BIG, -ETIME; names found until then are set.
 */
int nps_elf__name(struct nps_elf *elf, struct nps_elf_name *functions, size_t n);

/* The address of .eh_frame_hdr, 0: there is none. */
uint64_t nps_elf__unwind_header(const struct nps_elf *elf);

/* The file offset of code at an address. False: there is none. */
bool nps_elf__offset(const struct nps_elf *elf, uint64_t address, uint64_t *offset);

/* What its CPU time is charged to; NULL: nothing. */
struct nps_budget *nps_elf__budget(const struct nps_elf *elf);

/* Reads up to `len` bytes that are loaded at an address; returns their number, or -errno. */
int nps_elf__data(const struct nps_elf *elf, uint64_t address, void *buf, size_t len);

/* Addresses that a segment of the file fills. */
struct nps_elf_range {
	uint64_t address, size;
};

/* The i-th segment that is not written, of those with code or of the others; false after the last. */
bool nps_elf__read_only(const struct nps_elf *elf, bool code, size_t i, struct nps_elf_range *out);

/* Is its budget spent? For work on what was read of it: nps_budget__spent(). */
bool nps_elf__spent(const struct nps_elf *elf);

/* Reads up to `len` bytes of code at a file offset; returns their number, or -errno. */
int nps_elf__code(const struct nps_elf *elf, uint64_t offset, uint8_t *buf, size_t len);

#endif
