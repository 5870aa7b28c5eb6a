/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/torch_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/work_budget.h"

#define BLOCK (1UL << 20) /* bytes read at once */
#define SCHEMA_MAX (8UL << 10) /* bytes of a schema's text; the longest of real ones has 1 KiB */
#define DATA_MAX (256UL << 20) /* bytes that are read of a file */
#define SCHEMAS_MAX 16384 /* libtorch_cpu.so has 3,600 */
#define SLOTS (2 * SCHEMAS_MAX) /* of the hash, a power of two */
#define PROBES_MAX 128 /* slots that a name is looked for in; of real ones the longest search is 20 */
#define TAILS_MAX 256 /* names that are looked for at the ends of others; of real ones it is 20 */
#define NAMESPACE "aten::"
#define NAMESPACE_LEN (sizeof(NAMESPACE) - 1)

struct schema {
	char name[NPS_TORCH_NAME_MAX - NAMESPACE_LEN]; /* add.Tensor */
	bool unclear; /* another one has the same struct */
	uint8_t result; /* enum nps_torch_result */
};

struct nps_torch_names {
	struct schema *v;
	size_t n, room;
	unsigned int tails; /* searched so far */
	uint16_t slots[SLOTS]; /* number + 1, 0: unused */
};

/* --- the table of schemas, by the names of their structs --- */

static char struct_char(char c)
{
	return c == '.' ? '_' : c;
}

/* Do both, of which the first LEN bytes count, name one struct? */
static bool is_same_struct(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (struct_char(a[i]) != struct_char(b[i]))
			return false;
	return true;
}

/*
 * The slot of the struct that NAME, of LEN bytes, belongs to, or the free one where it would be. NULL: the
 * file is made so that its names meet in a few slots.
 */
static uint16_t *schema_slot(struct nps_torch_names *names, const char *name, size_t len)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)struct_char(name[i])) * 16777619U;
	hash ^= hash >> 15;
	for (unsigned int i = 0; i < PROBES_MAX; i++) {
		uint16_t *slot = &names->slots[(hash + i) % SLOTS];
		const char *there = *slot ? names->v[*slot - 1].name : NULL;

		if (!there || (strlen(there) == len && is_same_struct(there, name, len)))
			return slot;
	}
	return NULL;
}

/* What is beyond SCHEMAS_MAX is left out, so that half of the slots is always free. */
static int schema_add(struct nps_torch_names *names, const char *name, size_t len,
		      enum nps_torch_result result)
{
	uint16_t *slot = schema_slot(names, name, len);
	struct schema *schema;

	if (!slot)
		return 0;
	if (*slot) {
		schema = &names->v[*slot - 1];
		schema->unclear |= memcmp(schema->name, name, len) != 0;
		if (schema->result != result)
			schema->result = NPS_TORCH_RESULT_UNKNOWN;
		return 0;
	}
	if (names->n == SCHEMAS_MAX)
		return 0;
	if (names->n == names->room) {
		size_t room = names->room ? 2 * names->room : 512;
		struct schema *more = realloc(names->v, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		names->v = more;
		names->room = room;
	}
	schema = &names->v[names->n++];
	*schema = (struct schema){ .result = (uint8_t)result };
	memcpy(schema->name, name, len);
	*slot = (uint16_t)names->n;
	return 0;
}

/* --- the texts: NAME[.OVERLOAD](ARGUMENTS) -> RESULT, with aten:: before some of them --- */

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The bytes of the name that ends before TEXT[END], 0: none ends there. At most one `.` is in it. */
static size_t name_before(const char *text, size_t end)
{
	size_t at = end;
	bool dot = false;

	while (at && end - at < sizeof(((struct schema *)0)->name) &&
	       (is_name_char(text[at - 1]) || (text[at - 1] == '.' && !dot))) {
		at--;
		dot |= text[at] == '.';
	}
	if (at == end || text[at] == '.' || text[end - 1] == '.' ||
	    end - at >= sizeof(((struct schema *)0)->name))
		return 0;
	if (at >= NAMESPACE_LEN + 1 && !memcmp(text + at - NAMESPACE_LEN, NAMESPACE, NAMESPACE_LEN))
		return text[at - NAMESPACE_LEN - 1] ? 0 : end - at;
	return !at || text[at - 1] ? 0 : end - at;
}

/* Is TEXT, of LEN bytes, one tensor with its alias: Tensor(a), Tensor(a!)? */
static bool is_alias(const char *text, size_t len)
{
	static const char tensor[] = "Tensor(";

	return len > sizeof(tensor) && !memcmp(text, tensor, sizeof(tensor) - 1) &&
	       memchr(text, ')', len) == text + len - 1;
}

/*
 * Of the results of operators as TEXT, the end of a schema, has them. References are in registers; values of
 * classes with a destructor, and all tuples of libstdc++, are in memory. Some schemas have one result in
 * parentheses.
 */
static enum nps_torch_result result_of(const char *text, size_t len)
{
	static const struct {
		const char *text;
		enum nps_torch_result result;
	} known[] = {
		{ "()", NPS_TORCH_RESULT_IN_REGISTERS },	 { "bool", NPS_TORCH_RESULT_IN_REGISTERS },
		{ "int", NPS_TORCH_RESULT_IN_REGISTERS },	 { "float", NPS_TORCH_RESULT_IN_REGISTERS },
		{ "ScalarType", NPS_TORCH_RESULT_IN_REGISTERS }, { "QScheme", NPS_TORCH_RESULT_IN_REGISTERS },
		{ "Tensor", NPS_TORCH_RESULT_IN_MEMORY },	 { "Tensor[]", NPS_TORCH_RESULT_IN_MEMORY },
		{ "Tensor(a)[]", NPS_TORCH_RESULT_IN_MEMORY },	 { "Scalar", NPS_TORCH_RESULT_IN_MEMORY },
		{ "SymInt", NPS_TORCH_RESULT_IN_MEMORY },
	};

	if (len > 2 && text[0] == '(' && text[len - 1] == ')') {
		if (memmem(text, len, ", ", 2))
			return NPS_TORCH_RESULT_IN_MEMORY;
		text++;
		len -= 2;
	}
	if (is_alias(text, len))
		return text[len - 2] == '!' ? NPS_TORCH_RESULT_IN_REGISTERS : NPS_TORCH_RESULT_IN_MEMORY;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i].text) == len && !memcmp(known[i].text, text, len))
			return known[i].result;
	return NPS_TORCH_RESULT_UNKNOWN;
}

/* Texts whose `(` is in [FROM, TO) of the LEN bytes at TEXT. */
static int schemas_find(struct nps_torch_names *names, const char *text, size_t from, size_t to, size_t len)
{
	const char *at = text + from, *open;

	while (at < text + to && (open = memchr(at, '(', (size_t)(text + to - at)))) {
		size_t left = (size_t)(text + len - open), name = name_before(text, (size_t)(open - text));
		const char *end = name ? memchr(open, '\0', left < SCHEMA_MAX ? left : SCHEMA_MAX) : NULL;
		const char *arrow = end ? memmem(open, (size_t)(end - open), ") -> ", 5) : NULL;
		int err;

		at = open + 1;
		if (!arrow)
			continue;
		err = schema_add(names, open - name, name, result_of(arrow + 5, (size_t)(end - arrow - 5)));
		if (err)
			return err;
		at = end;
	}
	return 0;
}

/* Blocks overlap by SCHEMA_MAX on both ends of what is searched, so that no text is cut. */
static int schemas_read(struct nps_torch_names *names, struct nps_elf *elf, struct nps_elf_range range,
			char *block, uint64_t *budget)
{
	size_t before = 0;
	int err = 0;

	for (uint64_t at = range.address; !err && at - range.address < range.size && *budget;) {
		int len = nps_elf__data(elf, at, block, BLOCK);
		size_t to;

		if (nps_elf__spent(elf))
			return -ETIME;
		if (len <= 0 || (size_t)len <= before)
			return 0; /* the file was truncated meanwhile */
		to = (size_t)len == BLOCK ? BLOCK - SCHEMA_MAX : (size_t)len;
		err = schemas_find(names, block, before, to, (size_t)len);
		*budget -= to < *budget ? to : *budget;
		if ((size_t)len < BLOCK)
			break;
		at += to - SCHEMA_MAX;
		before = SCHEMA_MAX;
	}
	return err;
}

/* Some linkers put read-only data into the segment of the code. */
static int schemas_read_all(struct nps_torch_names *names, struct nps_elf *elf, char *block)
{
	uint64_t budget = DATA_MAX;
	struct nps_elf_range range;
	int err = 0;

	for (int code = 0; !err && !names->n && code < 2; code++)
		for (size_t i = 0; !err && nps_elf__read_only(elf, code, i, &range); i++)
			err = range.size ? schemas_read(names, elf, range, block, &budget) : 0;
	return err;
}

int nps_torch_names__new(struct nps_elf *elf, struct nps_torch_names **out)
{
	struct nps_torch_names *names = calloc(1, sizeof(*names));
	char *block = malloc(BLOCK);
	int err = names && block ? schemas_read_all(names, elf, block) : -ENOMEM;

	free(block);
	if (err)
		nps_torch_names__free(names);
	else
		*out = names;
	return err;
}

void nps_torch_names__free(struct nps_torch_names *names)
{
	if (!names)
		return;
	free(names->v);
	free(names);
}

/* --- from a symbol to a name --- */

/* The struct's name in SYMBOL, _ZN2at4_ops10add_Tensor4callE..., and its bytes; NULL: it has another form. */
static const char *struct_of(const char *symbol, size_t *len)
{
	static const char prefix[] = "_ZN2at4_ops", suffix[] = "4callE";
	char *name;
	unsigned long n;

	if (strncmp(symbol, prefix, sizeof(prefix) - 1) ||
	    !isdigit((unsigned char)symbol[sizeof(prefix) - 1]))
		return NULL;
	n = strtoul(symbol + sizeof(prefix) - 1, &name, 10);
	if (!n || strnlen(name, n) < n || strncmp(name + n, suffix, sizeof(suffix) - 1))
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(name[i]))
			return NULL;
	*len = n;
	return name;
}

/*
 * A linker stores a text once that is the end of another one: "erfinv.out(" is in "special_erfinv.out(".
 * Returns a schema that has NAME, of LEN bytes, at the end of its name, NULL: none has, or they have other
 * overloads there.
 */
static const struct schema *schema_tail(struct nps_torch_names *names, const char *name, size_t len,
					bool *same_result)
{
	const struct schema *found = NULL;
	const char *known = NULL;

	*same_result = true;
	if (names->tails++ >= TAILS_MAX)
		return NULL;
	for (size_t i = 0; i < names->n; i++) {
		size_t whole = strlen(names->v[i].name);
		const char *tail;

		if (whole <= len)
			continue;
		tail = names->v[i].name + whole - len;
		if (!is_same_struct(tail, name, len))
			continue;
		if (found && strcmp(known, tail) != 0)
			return NULL;
		*same_result &= !found || found->result == names->v[i].result;
		found = &names->v[i];
		known = tail;
	}
	return found;
}

int nps_torch_names__of(struct nps_torch_names *names, const char *symbol, char *buf, size_t size,
			enum nps_torch_result *result)
{
	size_t len;
	const char *name = struct_of(symbol, &len);
	const struct schema *schema = NULL;
	bool same_result = true;
	const uint16_t *slot;

	if (!name)
		return -ENOENT;
	if (len + sizeof(NAMESPACE) > size)
		return -ENAMETOOLONG;
	slot = schema_slot(names, name, len);
	if (slot && !*slot)
		schema = schema_tail(names, name, len, &same_result);
	else if (slot && !names->v[*slot - 1].unclear)
		schema = &names->v[*slot - 1];
	if (schema)
		name = schema->name + strlen(schema->name) - len;
	snprintf(buf, size, NAMESPACE "%.*s", (int)len, name);
	if (result)
		*result = schema && same_result ? schema->result : NPS_TORCH_RESULT_UNKNOWN;
	return 0;
}
