/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/dictionary.h"

#include "import/common/memo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A decimal number that ends before END; NULL if there is none. */
static const char *digits(const char *p, const char *end, uint64_t *value)
{
	const char *first = p;

	for (*value = 0; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *p - '0', value))
			return NULL;
	return p > first ? p : NULL;
}

/* The first text of a key counts: nothing was ever renamed, so another one is damage. */
static int text_put(struct nps_dictionary *dict, struct nps_map *map, uint64_t key, const char *text,
		    size_t len)
{
	uint32_t id;

	if (nps_map__get(map, key) != NPS_NONE)
		return 0;
	id = nps_fw_intern(dict->strings, text, len);
	return id == NPS_NONE ? -ENOMEM : nps_map__put(map, key, id);
}

static uint64_t type_key(uint32_t level, uint32_t type)
{
	return (uint64_t)level << 32 | type;
}

/* `<hash>:<text>` */
static int add_hash(struct nps_dictionary *dict, const char *line, size_t len, uint64_t *bad)
{
	const char *end = line + len, *p;
	uint64_t hash;

	p = digits(line, end, &hash);
	if (!p || p == end || *p != ':') {
		++*bad;
		return 0;
	}
	return text_put(dict, &dict->hashes, hash, p + 1, end - p - 1);
}

/* `<level>_<type>:<text>` */
static int add_type(struct nps_dictionary *dict, const char *line, size_t len, uint64_t *bad)
{
	const char *end = line + len, *p;
	uint64_t level, type = 0;

	p = digits(line, end, &level);
	if (p && p < end && *p == '_')
		p = digits(p + 1, end, &type);
	else
		p = NULL;
	if (!p || p == end || *p != ':' || level > UINT32_MAX || type > UINT32_MAX) {
		++*bad;
		return 0;
	}
	return text_put(dict, &dict->types, type_key(level, type), p + 1, end - p - 1);
}

static int read_lines(struct nps_dictionary *dict, struct nps_model *model, const struct nps_slices *files,
		      const char *base,
		      int (*add)(struct nps_dictionary *dict, const char *line, size_t len, uint64_t *bad))
{
	struct nps_slice_reader reader;
	uint64_t bad = 0;
	const char *line;
	size_t len;
	int err = nps_slice_reader__open(&reader, model, files, base, 1, NPS_NO_MAGIC);

	while (!err && (line = nps_slice_reader__line(&reader, &len)))
		if (len)
			err = add(dict, line, len, &bad);
	/* Every line ends with a newline; else the loss of a name's end would not be noticed. */
	nps_model__lost(model, reader.unended, "end of %s, which is cut", base);
	nps_slice_reader__close(&reader);
	nps_model__lost(model, bad, "lines of %s without an entry", base);
	return err;
}

int nps_dictionary__read(struct nps_dictionary *dict, struct nps_model *model, const struct nps_slices *files)
{
	static const char *const hash_files[] = { "unaging.additional.hash_dic",
						  "aging.additional.hash_dic" };
	static const char *const type_files[] = { "unaging.additional.type_info_dic",
						  "aging.additional.type_info_dic" };
	int err = 0;

	*dict = (struct nps_dictionary){ .strings = model->strings };
	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(hash_files); i++)
		err = read_lines(dict, model, files, hash_files[i], add_hash);
	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(type_files); i++)
		err = read_lines(dict, model, files, type_files[i], add_type);
	return err;
}

void nps_dictionary__free(struct nps_dictionary *dict)
{
	nps_map__free(&dict->hashes);
	nps_map__free(&dict->types);
	nps_map__free(&dict->numbers);
}

bool nps_dictionary__has(const struct nps_dictionary *dict, uint64_t hash)
{
	return nps_map__get(&dict->hashes, hash) != NPS_NONE;
}

static uint32_t key_number(struct nps_dictionary *dict, struct nps_map *map, uint64_t key, uint64_t value)
{
	uint32_t id = nps_strings__addf(dict->strings, "%" PRIu64, value);

	if (id != NPS_NONE && nps_map__put(map, key, id))
		id = NPS_NONE;
	return id;
}

uint32_t nps_dictionary__name(struct nps_dictionary *dict, uint64_t hash)
{
	uint32_t id = nps_map__get(&dict->hashes, hash);

	if (id == NPS_NONE)
		id = nps_map__get(&dict->numbers, hash);
	return id != NPS_NONE ? id : key_number(dict, &dict->numbers, hash, hash);
}

uint32_t nps_dictionary__type(struct nps_dictionary *dict, uint32_t level, uint32_t type)
{
	uint32_t id = nps_map__get(&dict->types, type_key(level, type));

	return id != NPS_NONE ? id : key_number(dict, &dict->types, type_key(level, type), type);
}
