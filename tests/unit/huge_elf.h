/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared libraries that are larger than any, most of them holes. */
#ifndef HUGE_ELF_H
#define HUGE_ELF_H

#include <stdint.h>

struct huge_elf {
	uint64_t symbols; /* of .dynsym, all alike */
	uint64_t
		/*
		 * bytes of .dynstr, of which all but the last are the
		 * letters of NAME, over and over, or zeros
		 */
		names;
	const char *name;
	uint64_t written; /* bytes of .dynstr that are written: the others are a hole */
	uint64_t sections; /* 0: three */
};

/* A library with one segment, which is the whole file. Returns its descriptor; it has no name any more. */
int huge_elf__make(const struct huge_elf *shape);

#endif
