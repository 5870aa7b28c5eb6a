/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/landing_pads.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE 32768 /* bytes of a function's table of calls, at most */

/* Reads the table of a function, which maps calls to landing pads. */
static int read_table(struct nps_eh_bytes *b, uint64_t start,
		      int (*each)(const struct nps_landing_pad *pad, void *arg), void *arg)
{
	uint64_t from = start, encoding = nps_eh_bytes__read(b, 1), size;

	if (encoding == NPS_EH_RELATIVE)
		from = nps_eh_bytes__read_address(b);
	else if (encoding != NPS_EH_OMITTED)
		return -EINVAL;
	if (nps_eh_bytes__read(b, 1) != NPS_EH_OMITTED)
		nps_eh_bytes__read_leb(b); /* address of the types that it catches */
	encoding = nps_eh_bytes__read(b, 1);
	size = nps_eh_bytes__read_leb(b);
	if (b->failed || (encoding != 0x01 && encoding != 0x03))
		return -EINVAL;
	if (size > (size_t)(b->end - b->at))
		return -E2BIG;
	b->end = b->at + size;
	while (b->at < b->end) {
		struct nps_landing_pad pad;
		uint64_t fields[3];
		int err;

		for (int i = 0; i < 3; i++) /* the range of calls: start, bytes; the pad */
			fields[i] = encoding == 0x01 ? nps_eh_bytes__read_leb(b) : nps_eh_bytes__read(b, 4);
		nps_eh_bytes__read_leb(b);
		if (b->failed)
			return -EINVAL;
		if (!fields[2])
			continue;
		pad = (struct nps_landing_pad){ start + fields[0], fields[1], from + fields[2] };
		err = each(&pad, arg);
		if (err)
			return err;
	}
	return 0;
}

int nps_landing_pads__of(const struct nps_elf *elf, const struct nps_fde *fde,
			 int (*each)(const struct nps_landing_pad *pad, void *arg), void *arg)
{
	struct nps_eh_bytes b;
	uint8_t *buf;
	int err;

	if (!fde->landing_pads)
		return 0;
	buf = malloc(TABLE);
	if (!buf)
		return -ENOMEM;
	b = nps_eh_bytes__at(elf, fde->landing_pads, buf, TABLE);
	err = read_table(&b, fde->start, each, arg);
	free(buf);
	return err;
}

struct pad_offsets {
	uint64_t start; /* of the function */
	void (*each)(int64_t at, void *arg);
	void *arg;
};

static int offset_of_pad(const struct nps_landing_pad *pad, void *arg)
{
	const struct pad_offsets *offsets = arg;

	offsets->each((int64_t)(pad->address - offsets->start), offsets->arg);
	return 0;
}

int nps_landing_pads__each(const struct nps_elf *elf, const struct nps_elf_function *fn,
			   void (*each)(int64_t at, void *arg), void *arg)
{
	struct pad_offsets offsets = { fn->vaddr, each, arg };
	struct nps_eh_frame frames;
	struct nps_fde fde;
	int err = nps_eh_frame__init(&frames, elf);

	if (err)
		return err;
	err = nps_eh_frame__find(&frames, fn->vaddr, &fde);
	if (err)
		return err == -ENOENT ? 0 : err;
	return nps_landing_pads__of(elf, &fde, offset_of_pad, &offsets);
}
