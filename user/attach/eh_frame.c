/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/eh_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/work_budget.h"

#define INDIRECT 0x80 /* DW_EH_PE_indirect: of a personality routine's address */
/* as linkers write .eh_frame_hdr: offsets, a number, offsets from its own start */
#define HEADER 0x1b, 0x03, 0x3b
#define HEADER_SIZE 12
#define ENTRY 8 /* bytes of an entry of the table: offsets of code and of description */
#define MAX_ENTRIES (2UL << 20) /* libtorch_cpu.so has 220,000 */
#define BLOCK (1UL << 20) /* bytes of the table read at once */
#define MAX_RULES 4096 /* bytes of the unwind rules of one function */
#define MAX_SAVED 8 /* rules that DW_CFA_remember_state keeps */

uint64_t nps_eh_bytes__read(struct nps_eh_bytes *b, size_t n)
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

uint64_t nps_eh_bytes__read_leb(struct nps_eh_bytes *b)
{
	uint64_t v = 0, byte;
	unsigned int shift = 0;

	do {
		byte = nps_eh_bytes__read(b, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

uint64_t nps_eh_bytes__read_address(struct nps_eh_bytes *b)
{
	uint64_t from = b->address;
	int32_t offset = (int32_t)nps_eh_bytes__read(b, 4);

	return offset ? from + (uint64_t)(int64_t)offset : 0;
}

struct nps_eh_bytes nps_eh_bytes__at(const struct nps_elf *elf, uint64_t address, uint8_t *buf, size_t size)
{
	int n = nps_elf__data(elf, address, buf, size);

	return (struct nps_eh_bytes){ buf, buf + (n > 0 ? n : 0), address, n <= 0 };
}

int nps_eh_frame__init(struct nps_eh_frame *f, const struct nps_elf *elf)
{
	static const uint8_t begin[] = { 1, HEADER };
	uint8_t buf[HEADER_SIZE];
	struct nps_eh_bytes b;

	*f = (struct nps_eh_frame){ .elf = elf, .header = nps_elf__unwind_header(elf) };
	if (!f->header)
		return 0;
	b = nps_eh_bytes__at(elf, f->header, buf, sizeof(buf));
	if (b.end - b.at < HEADER_SIZE || memcmp(buf, begin, sizeof(begin)) != 0)
		return -EINVAL;
	nps_eh_bytes__read(&b, 8);
	f->n = nps_eh_bytes__read(&b, 4);
	return 0;
}

void nps_eh_frame__free(struct nps_eh_frame *f)
{
	free(f->table);
	f->table = NULL;
}

/* An offset in the table, from its header. */
static uint64_t address_of(const struct nps_eh_frame *f, const uint8_t *offset)
{
	int32_t v;

	memcpy(&v, offset, sizeof(v));
	return f->header + (uint64_t)(int64_t)v;
}

static bool is_sorted(const struct nps_eh_frame *f)
{
	for (uint64_t i = 1; i < f->n; i++)
		if (address_of(f, f->table + ENTRY * (i - 1)) > address_of(f, f->table + ENTRY * i))
			return false;
	return true;
}

int nps_eh_frame__read_table(struct nps_eh_frame *f)
{
	size_t size = ENTRY * f->n;
	bool spent = false;
	int n = 0;

	if (f->n > MAX_ENTRIES)
		return -E2BIG;
	f->table = malloc(size + !size);
	if (!f->table)
		return -ENOMEM;
	for (size_t at = 0; at < size && !spent; at += (size_t)n) {
		n = nps_elf__data(f->elf, f->header + HEADER_SIZE + at, f->table + at,
				  size - at < BLOCK ? size - at : BLOCK);
		if (n <= 0)
			break;
		spent = nps_budget__spent(nps_elf__budget(f->elf));
	}
	if (!spent && n >= 0 && (!size || n) && is_sorted(f))
		return 0;
	nps_eh_frame__free(f);
	return spent ? -ETIME : -EINVAL;
}

/* Reads entry I of the table. */
static int read_entry(const struct nps_eh_frame *f, uint64_t i, uint64_t *start, uint64_t *description)
{
	uint8_t buf[ENTRY];
	const uint8_t *entry = buf;

	if (f->table)
		entry = f->table + ENTRY * i;
	else if (nps_elf__data(f->elf, f->header + HEADER_SIZE + ENTRY * i, buf, ENTRY) != ENTRY)
		return -EINVAL;
	*start = address_of(f, entry);
	*description = address_of(f, entry + 4);
	return 0;
}

/* The address of the last description whose code begins at ADDRESS or before it; 0: none does. */
static int find_description(const struct nps_eh_frame *f, uint64_t address, uint64_t *description)
{
	uint64_t low = 0, high = f->header ? f->n : 0;

	*description = 0;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2, start, at;
		int err = read_entry(f, mid, &start, &at);

		if (err)
			return err;
		if (start > address) {
			high = mid;
		} else {
			*description = at;
			low = mid + 1;
		}
	}
	return 0;
}

uint64_t nps_eh_frame__next_start(const struct nps_eh_frame *f, uint64_t address)
{
	uint64_t low = 0, high = f->table ? f->n : 0;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (address_of(f, f->table + ENTRY * mid) > address)
			high = mid;
		else
			low = mid + 1;
	}
	return f->table && low < f->n ? address_of(f, f->table + ENTRY * low) : UINT64_MAX;
}

/* The common part (CIE) of frame descriptions. */
struct common {
	uint64_t code_factor;
	int64_t data_factor;
	bool has_pads; /* descriptions contain the address of a table of landing pads */
	bool has_size; /* ... and the size of such data */
	uint64_t rules, end;
};

static int64_t read_signed_leb(struct nps_eh_bytes *b)
{
	const uint8_t *from = b->at;
	uint64_t v = nps_eh_bytes__read_leb(b);
	unsigned int bits = (unsigned int)(b->at - from) * 7;

	if (bits && bits < 64 && (v >> (bits - 1) & 1))
		v |= ~0ULL << bits;
	return (int64_t)v;
}

/* Reads what the augmentation string stands for. */
static int read_augmentation(struct nps_eh_bytes *b, const char *augmentation, struct common *common)
{
	uint8_t encoding;

	for (const char *c = augmentation; *c; c++) {
		if (*c == 'S' || *c == 'B') /* a signal's frame; signed with the second key */
			continue;
		encoding = (uint8_t)nps_eh_bytes__read(b, 1);
		if (*c == 'L' && encoding != NPS_EH_OMITTED)
			common->has_pads = true;
		if (*c == 'P')
			nps_eh_bytes__read(b, (encoding & ~INDIRECT) == NPS_EH_RELATIVE ? 4 : 8);
		else if ((*c != 'L' && *c != 'R') ||
			 (encoding != NPS_EH_RELATIVE && encoding != NPS_EH_OMITTED))
			return -EINVAL;
	}
	return 0;
}

static int read_common(const struct nps_elf *elf, uint64_t address, struct common *common)
{
	uint8_t buf[64];
	struct nps_eh_bytes b = nps_eh_bytes__at(elf, address, buf, sizeof(buf));
	char augmentation[8] = "";
	uint64_t version, length = nps_eh_bytes__read(&b, 4), data = 0;

	*common = (struct common){ .end = b.address + length };
	if (length == UINT32_MAX || nps_eh_bytes__read(&b, 4))
		return -EINVAL;
	version = nps_eh_bytes__read(&b, 1);
	for (size_t i = 0; i < sizeof(augmentation) && (!i || augmentation[i - 1]); i++)
		augmentation[i] = (char)nps_eh_bytes__read(&b, 1);
	common->code_factor = nps_eh_bytes__read_leb(&b);
	common->data_factor = read_signed_leb(&b);
	if (version == 1)
		nps_eh_bytes__read(&b, 1);
	else
		nps_eh_bytes__read_leb(&b);
	if (b.failed || augmentation[sizeof(augmentation) - 1] || (version != 1 && version != 3))
		return -EINVAL;
	if (*augmentation && *augmentation != 'z')
		return -EINVAL;
	common->has_size = *augmentation;
	if (common->has_size)
		data = nps_eh_bytes__read_leb(&b);
	common->rules = b.address + data;
	if (common->has_size && read_augmentation(&b, augmentation + 1, common))
		return -EINVAL;
	return b.failed ? -EINVAL : 0;
}

/* Reads the description at DESCRIPTION. -ENOENT: it does not cover ADDRESS. */
static int read_description(const struct nps_elf *elf, uint64_t description, uint64_t address,
			    struct nps_fde *fde)
{
	uint8_t buf[64];
	struct nps_eh_bytes b = nps_eh_bytes__at(elf, description, buf, sizeof(buf));
	uint64_t length = nps_eh_bytes__read(&b, 4), data = 0;
	struct common common;
	int err;

	*fde = (struct nps_fde){ .common = b.address, .end = b.address + length };
	if (length == UINT32_MAX)
		return -EINVAL;
	fde->common -= nps_eh_bytes__read(&b, 4);
	fde->start = nps_eh_bytes__read_address(&b);
	fde->size = nps_eh_bytes__read(&b, 4);
	if (b.failed || address < fde->start)
		return -EINVAL;
	if (address - fde->start >= fde->size)
		return -ENOENT;
	err = read_common(elf, fde->common, &common);
	if (err)
		return err;
	if (common.has_size)
		data = nps_eh_bytes__read_leb(&b);
	fde->rules = b.address + data;
	if (common.has_pads)
		fde->landing_pads = nps_eh_bytes__read_address(&b);
	return b.failed ? -EINVAL : 0;
}

int nps_eh_frame__find(const struct nps_eh_frame *f, uint64_t address, struct nps_fde *fde)
{
	uint64_t description;
	int err = find_description(f, address, &description);

	if (err)
		return err;
	return description ? read_description(f->elf, description, address, fde) : -ENOENT;
}

/* Runs unwind rules, which make up a table of addresses, up to the row of an address. */
struct unwinder {
	struct nps_eh_bytes b;
	const struct common *common;
	uint64_t row, address;
	struct nps_cfa cfa, saved[MAX_SAVED];
	unsigned int n_saved;
	bool expression; /* the rule is one */
	bool passed; /* the next row begins after the address */
};

static void unwinder_advance(struct unwinder *u, uint64_t delta)
{
	delta *= u->common->code_factor;
	if (delta > u->address - u->row)
		u->passed = true;
	else
		u->row += delta;
}

static void define_cfa(struct unwinder *u, uint64_t reg, uint64_t offset)
{
	u->cfa = (struct nps_cfa){ reg, offset };
	u->expression = false;
}

static void skip_bytes(struct nps_eh_bytes *b, uint64_t n)
{
	if (n > (uint64_t)(b->end - b->at)) {
		b->failed = true;
		return;
	}
	b->at += n;
	b->address += n;
}

/* Rules about other registers than the frame address: only their operands are skipped. */
static int skip_rule(struct nps_eh_bytes *b, uint64_t op)
{
	/* DW_CFA_*: number of operands in LEB128; 'b': one and a block */
	static const char operands[] = {
		[0x00] = 1, [0x05] = 3, [0x06] = 2, [0x07] = 2,	  [0x08] = 2, [0x09] = 3, [0x10] = 'b',
		[0x11] = 3, [0x14] = 3, [0x15] = 3, [0x16] = 'b', [0x2d] = 1, [0x2e] = 2, [0x2f] = 3,
	}; /* one more than there are */
	char n = op < sizeof(operands) ? operands[op] : 0;

	if (!n)
		return -EINVAL;
	if (n == 'b') {
		nps_eh_bytes__read_leb(b);
		skip_bytes(b, nps_eh_bytes__read_leb(b));
	}
	for (; n != 'b' && n > 1; n--)
		nps_eh_bytes__read_leb(b);
	return 0;
}

static int unwinder_restore(struct unwinder *u)
{
	if (!u->n_saved)
		return -EINVAL;
	u->cfa = u->saved[--u->n_saved];
	u->expression = false; /* such a rule is not saved */
	return 0;
}

static int unwinder_save(struct unwinder *u)
{
	if (u->n_saved == MAX_SAVED || u->expression)
		return -ENOTSUP;
	u->saved[u->n_saved++] = u->cfa;
	return 0;
}

static int run_rule(struct unwinder *u, uint64_t op)
{
	struct nps_eh_bytes *b = &u->b;
	uint64_t reg;

	switch (op) {
	case 0x02: /* DW_CFA_advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		unwinder_advance(u, nps_eh_bytes__read(b, 1U << (op - 2)));
		return 0;
	case 0x0a: /* DW_CFA_remember_state */
		return unwinder_save(u);
	case 0x0b: /* DW_CFA_restore_state */
		return unwinder_restore(u);
	case 0x0c: /* DW_CFA_def_cfa */
		reg = nps_eh_bytes__read_leb(b);
		define_cfa(u, reg, nps_eh_bytes__read_leb(b));
		return 0;
	case 0x0d: /* DW_CFA_def_cfa_register */
		define_cfa(u, nps_eh_bytes__read_leb(b), u->cfa.offset);
		return 0;
	case 0x0e: /* DW_CFA_def_cfa_offset */
		define_cfa(u, u->cfa.reg, nps_eh_bytes__read_leb(b));
		return 0;
	case 0x0f: /* DW_CFA_def_cfa_expression */
		skip_bytes(b, nps_eh_bytes__read_leb(b));
		u->expression = true;
		return 0;
	default:
		return skip_rule(b, op);
	}
}

static int run_rules(struct unwinder *u)
{
	int err = 0;

	while (!err && !u->passed && u->b.at < u->b.end) {
		uint64_t op = nps_eh_bytes__read(&u->b, 1), operand = op & 0x3f;

		if (op >> 6 == 1) /* DW_CFA_advance_loc */
			unwinder_advance(u, operand);
		else if (op >> 6 == 2) /* DW_CFA_offset */
			nps_eh_bytes__read_leb(&u->b);
		else if (!(op >> 6))
			err = run_rule(u, op);
		if (!err && u->b.failed)
			err = -EINVAL;
	}
	return err;
}

/* Runs the rules from ADDRESS to END. */
static int run_rules_at(struct unwinder *u, const struct nps_elf *elf, uint64_t address, uint64_t end)
{
	uint8_t buf[MAX_RULES];
	int err;

	if (end < address)
		return -EINVAL;
	if (end - address > sizeof(buf))
		return -ENOTSUP;
	if (end == address)
		return 0;
	u->b = nps_eh_bytes__at(elf, address, buf, (size_t)(end - address));
	err = (uint64_t)(u->b.end - u->b.at) == end - address ? run_rules(u) : -EINVAL;
	u->b = (struct nps_eh_bytes){ 0 };
	return err;
}

int nps_fde__cfa(const struct nps_elf *elf, const struct nps_fde *fde, uint64_t address, struct nps_cfa *cfa)
{
	struct common common;
	struct unwinder u = { .common = &common, .row = fde->start, .address = address };
	int err = read_common(elf, fde->common, &common);

	if (err)
		return err;
	err = run_rules_at(&u, elf, common.rules, common.end);
	if (err)
		return err;
	err = run_rules_at(&u, elf, fde->rules, fde->end);
	if (err)
		return err;
	if (u.expression)
		return -ENOTSUP;
	*cfa = u.cfa;
	return 0;
}
