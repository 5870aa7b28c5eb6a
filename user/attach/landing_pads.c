/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/landing_pads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OMITTED 0xff /* DW_EH_PE_omit */
#define RELATIVE 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define INDIRECT 0x80 /* DW_EH_PE_indirect: of a personality routine's address */
/* as linkers write .eh_frame_hdr: offsets, a number, offsets from its own start */
#define HEADER 0x1b, 0x03, 0x3b
#define TABLE 32768 /* bytes of a function's table of calls, at most */

/* Bytes of the file from an address on. `failed` is set by a read beyond the end. */
struct bytes {
	const uint8_t *at, *end;
	uint64_t address; /* of `at` */
	bool failed;
};

static uint64_t bytes_read(struct bytes *b, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->at) < n) {
		b->failed = true;
		return 0;
	}
	memcpy(&v, b->at, n); /* little endian, as both processors */
	b->at += n;
	b->address += n;
	return v;
}

static uint64_t read_leb(struct bytes *b)
{
	uint64_t v = 0, byte;
	unsigned int shift = 0;

	do {
		byte = bytes_read(b, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

/* Reads an address in the encoding RELATIVE. 0: none. */
static uint64_t read_address(struct bytes *b)
{
	uint64_t from = b->address;
	int32_t offset = (int32_t)bytes_read(b, 4);

	return offset ? from + (uint64_t)(int64_t)offset : 0;
}

/* Reads up to SIZE bytes at ADDRESS. */
static struct bytes bytes_at(const struct nps_elf *elf, uint64_t address, uint8_t *buf, size_t size)
{
	int n = nps_elf__data(elf, address, buf, size);

	return (struct bytes){ buf, buf + (n > 0 ? n : 0), address, n <= 0 };
}

/* Finds the address of the description of the function at ADDRESS, in .eh_frame_hdr; 0: it has none. */
static int find_description(const struct nps_elf *elf, uint64_t address, uint64_t *description)
{
	static const uint8_t begin[] = { 1, HEADER };
	uint64_t header = nps_elf__unwind_header(elf), low = 0, high;
	uint8_t buf[12];
	struct bytes b;

	*description = 0;
	if (!header)
		return 0; /* no exception passes through such a file */
	b = bytes_at(elf, header, buf, sizeof(buf));
	if (b.end - b.at < 12 || memcmp(buf, begin, sizeof(begin)) != 0)
		return -EINVAL;
	bytes_read(&b, 8);
	high = bytes_read(&b, 4);
	while (low < high) {
		uint64_t mid = low + (high - low) / 2, start;

		b = bytes_at(elf, header + 12 + 8 * mid, buf, 8);
		start = header + (uint64_t)(int64_t)(int32_t)bytes_read(&b, 4);
		if (b.failed)
			return -EINVAL;
		if (start > address) {
			high = mid;
		} else {
			*description = header + (uint64_t)(int64_t)(int32_t)bytes_read(&b, 4);
			low = mid + 1;
		}
		if (b.failed)
			return -EINVAL;
	}
	return 0;
}

/* Does the common part at ADDRESS define that descriptions contain the address of a table? Sets *HAS. */
static int read_common(const struct nps_elf *elf, uint64_t address, bool *has)
{
	uint8_t buf[64], encoding;
	struct bytes b = bytes_at(elf, address, buf, sizeof(buf));
	char augmentation[8] = "";
	uint64_t version;

	*has = false;
	if (bytes_read(&b, 4) == UINT32_MAX || bytes_read(&b, 4))
		return -EINVAL;
	version = bytes_read(&b, 1);
	for (size_t i = 0; i < sizeof(augmentation) && (!i || augmentation[i - 1]); i++)
		augmentation[i] = (char)bytes_read(&b, 1);
	read_leb(&b);
	read_leb(&b);
	if (version == 1)
		bytes_read(&b, 1);
	else
		read_leb(&b);
	if (b.failed || augmentation[sizeof(augmentation) - 1] || (version != 1 && version != 3))
		return -EINVAL;
	if (*augmentation != 'z')
		return *augmentation ? -EINVAL : 0;
	read_leb(&b);
	for (const char *c = augmentation + 1; *c; c++) {
		if (*c == 'S' || *c == 'B') /* a signal's frame; signed with the second key */
			continue;
		encoding = (uint8_t)bytes_read(&b, 1);
		if (*c == 'L' && encoding != OMITTED)
			*has = true;
		if (*c == 'P')
			bytes_read(&b, (encoding & ~INDIRECT) == RELATIVE ? 4 : 8);
		else if ((*c != 'L' && *c != 'R') || (encoding != RELATIVE && encoding != OMITTED))
			return -EINVAL;
	}
	return b.failed ? -EINVAL : 0;
}

/* Sets *START to the start of the function described at ADDRESS, and *TABLE; 0: it has none. */
static int read_description(const struct nps_elf *elf, uint64_t address, uint64_t function, uint64_t *start,
			    uint64_t *table)
{
	uint8_t buf[64];
	struct bytes b = bytes_at(elf, address, buf, sizeof(buf));
	uint64_t common, size;
	bool has;
	int err;

	*table = 0;
	if (bytes_read(&b, 4) == UINT32_MAX)
		return -EINVAL;
	common = b.address;
	common -= bytes_read(&b, 4);
	*start = read_address(&b);
	size = bytes_read(&b, 4);
	if (b.failed || function < *start)
		return -EINVAL;
	if (function - *start >= size)
		return 0; /* it describes another function */
	err = read_common(elf, common, &has);
	if (err || !has)
		return err;
	read_leb(&b);
	*table = read_address(&b);
	return b.failed ? -EINVAL : 0;
}

/* Reads the table of a function, which maps calls to landing pads. */
static int read_table(struct bytes *b, uint64_t start, int64_t base, void (*each)(int64_t at, void *arg),
		      void *arg)
{
	uint64_t from = start, encoding = bytes_read(b, 1), size, pad;

	if (encoding == RELATIVE)
		from = read_address(b);
	else if (encoding != OMITTED)
		return -EINVAL;
	if (bytes_read(b, 1) != OMITTED)
		read_leb(b); /* address of the types that it catches */
	encoding = bytes_read(b, 1);
	size = read_leb(b);
	if (b->failed || (encoding != 0x01 && encoding != 0x03))
		return -EINVAL;
	if (size > (size_t)(b->end - b->at))
		return -E2BIG;
	b->end = b->at + size;
	while (b->at < b->end) {
		for (int i = 0; i < 2; i++) /* the range of calls: start, bytes */
			encoding == 0x01 ? read_leb(b) : bytes_read(b, 4);
		pad = encoding == 0x01 ? read_leb(b) : bytes_read(b, 4);
		read_leb(b);
		if (b->failed)
			return -EINVAL;
		if (pad)
			each((int64_t)(from + pad - start) + base, arg);
	}
	return 0;
}

int nps_landing_pads__each(const struct nps_elf *elf, const struct nps_elf_function *fn,
			   void (*each)(int64_t at, void *arg), void *arg)
{
	uint64_t description, start = 0, table = 0;
	uint8_t *buf;
	struct bytes b;
	int err = find_description(elf, fn->vaddr, &description);

	if (!err && description)
		err = read_description(elf, description, fn->vaddr, &start, &table);
	if (err || !table)
		return err;
	buf = malloc(TABLE);
	if (!buf)
		return -ENOMEM;
	b = bytes_at(elf, table, buf, TABLE);
	err = read_table(&b, start, (int64_t)(start - fn->vaddr), each, arg);
	free(buf);
	return err;
}
