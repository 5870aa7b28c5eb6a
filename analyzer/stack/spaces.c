/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/spaces.h"

#include "base/input_file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GENERATIONS 64 /* of births that a mapping is followed through */
#define MAX_MODULES 65536
#define MAX_CODES 65536 /* entries of a space: no job maps code so often */
#define ANSWERS 16384 /* that are kept: most samples are of the same addresses */

/* An answer of nps_spaces__find(), which holds for times from `from` to before `until`. */
struct nps_answer {
	uint64_t address, from, until;
	const struct nps_code *code;
	uint32_t pid;
};

void nps_spaces__init(struct nps_spaces *s, int dirfd)
{
	memset(s, 0, sizeof(*s));
	s->limits = NPS_ELF_LIMITS;
	nps_vec__init(&s->spaces, dirfd, sizeof(struct nps_vec));
	nps_vec__init(&s->modules, dirfd, sizeof(struct nps_module));
}

void nps_spaces__free(struct nps_spaces *s)
{
	for (size_t i = 0; i < s->spaces.len; i++)
		nps_vec__free(&NPS_AT(&s->spaces, struct nps_vec, i));
	for (size_t i = 0; i < s->modules.len; i++) {
		struct nps_module *m = &NPS_AT(&s->modules, struct nps_module, i);

		nps_elf_image__close(m->image);
		free(m->path);
	}
	nps_elf_image__close(s->vdso);
	free(s->answers);
	nps_vec__free(&s->spaces);
	nps_vec__free(&s->modules);
	nps_map__free(&s->space_of);
	nps_map__free(&s->module_of);
}

static struct nps_vec *space_of(struct nps_spaces *s, uint32_t pid)
{
	uint32_t row = nps_map__get(&s->space_of, pid);
	struct nps_vec *space;

	if (row != NPS_NONE)
		return &NPS_AT(&s->spaces, struct nps_vec, row);
	space = nps_vec__push(&s->spaces);
	if (!space || nps_map__put(&s->space_of, pid, s->spaces.len - 1))
		return NULL;
	nps_vec__init(space, s->spaces.dirfd, sizeof(struct nps_code));
	return space;
}

static uint32_t module_of(struct nps_spaces *s, const struct nps_map_record *r, const char *path)
{
	uint64_t key = nps_hash2(nps_hash_bytes(path, strlen(path)),
				 nps_hash_bytes(r->build_id, NPS_MIN(r->build_id_len, (__u8)20)));
	uint32_t row = nps_map__get(&s->module_of, key);
	struct nps_module *m;

	if (row != NPS_NONE || s->modules.len >= MAX_MODULES)
		return row;
	m = nps_vec__push(&s->modules);
	if (!m)
		return NPS_NONE;
	m->path = strdup(path);
	if (!m->path)
		nps_memory__fail(-ENOMEM);
	m->pid = r->pid;
	m->build_id_len = NPS_MIN(r->build_id_len, (__u8)20);
	memcpy(m->build_id, r->build_id, m->build_id_len);
	if (!m->path || nps_map__put(&s->module_of, key, s->modules.len - 1))
		return NPS_NONE;
	return s->modules.len - 1;
}

/* Is it what the space has as its last entry, but for the time? */
static bool is_last(const struct nps_vec *space, const struct nps_code *code)
{
	const struct nps_code *last = space->len ? &NPS_AT(space, struct nps_code, space->len - 1) : NULL;

	return last && last->time <= code->time && last->module == code->module &&
	       last->start == code->start && last->end == code->end && last->offset == code->offset;
}

int nps_spaces__add(struct nps_spaces *s, const struct nps_map_record *r, const char *path)
{
	uint32_t pid = r->what == NPS_MAP_FORK ? (uint32_t)r->start : r->pid;
	struct nps_code code = { .time = r->time, .module = NPS_NONE };
	struct nps_code *row;
	struct nps_vec *space;

	if (r->what == NPS_MAP_FORK) {
		code.parent = r->pid;
	} else if (r->what == NPS_MAP_CODE) {
		code.start = r->start;
		code.end = r->end;
		code.offset = r->offset;
		code.module = module_of(s, r, path);
		if (code.module == NPS_NONE)
			return s->modules.len >= MAX_MODULES ? 0 : -ENOMEM;
	} else if (r->what != NPS_MAP_EXEC) {
		return 0;
	}
	space = space_of(s, pid);
	/*
	 * A job may map a file again and again at one address: that is one mapping, or each address of each
	 * stack would be searched among many.
	 */
	if (space && code.module != NPS_NONE && is_last(space, &code))
		return 0;
	if (space && space->len >= MAX_CODES) {
		s->left_out++;
		return 0;
	}
	row = space ? nps_vec__push(space) : NULL;
	if (!row)
		return -ENOMEM;
	*row = code;
	return 0;
}

void nps_spaces__set_vdso(struct nps_spaces *s, const void *bytes, size_t len)
{
	if (!s->vdso && nps_elf_image__memory(bytes, len, &s->limits, &s->vdso))
		s->vdso = NULL;
}

int nps_spaces__finish(struct nps_spaces *s)
{
	for (size_t i = 0; i < s->spaces.len; i++) {
		struct nps_vec *space = &NPS_AT(&s->spaces, struct nps_vec, i);
		struct nps_key *keys = calloc(2 * space->len + 1, sizeof(*keys));
		struct nps_code *copy = malloc((space->len + 1) * sizeof(*copy)), *rows = space->data;

		if (!keys || !copy) {
			free(keys);
			free(copy);
			return -ENOMEM;
		}
		for (size_t k = 0; k < space->len; k++) {
			keys[k] = (struct nps_key){ .key = rows[k].time, .row = k };
			copy[k] = rows[k];
		}
		nps_sort_keys(keys, keys + space->len, space->len);
		for (size_t k = 0; k < space->len; k++)
			rows[k] = copy[keys[k].row];
		free(keys);
		free(copy);
	}
	s->answers = calloc(ANSWERS, sizeof(*s->answers));
	return s->answers ? 0 : -ENOMEM;
}

/*
 * The last entry of a space that decides what ADDRESS was at TIME: a mapping, a birth or an exec; NULL:
 * none. Narrows the times for which that holds.
 */
static const struct nps_code *last_entry(const struct nps_vec *space, uint64_t time, uint64_t address,
					 uint64_t *from, uint64_t *until)
{
	for (size_t i = space->len; i; i--) {
		const struct nps_code *c = &NPS_AT(space, struct nps_code, i - 1);

		if (c->module != NPS_NONE && (address < c->start || address >= c->end))
			continue;
		if (c->time <= time) {
			*from = c->time;
			return c;
		}
		*until = c->time;
	}
	return NULL;
}

static const struct nps_code *spaces_lookup(const struct nps_spaces *s, uint32_t pid, uint64_t time,
					    uint64_t address, uint64_t *from, uint64_t *until)
{
	uint64_t ignored;

	for (int generation = 0; generation < GENERATIONS; generation++) {
		uint32_t row = nps_map__get(&s->space_of, pid);
		const struct nps_code *c = row == NPS_NONE
						   ? NULL
						   : last_entry(&NPS_AT(&s->spaces, struct nps_vec, row),
								time, address, from, until);

		if (!c || c->module != NPS_NONE)
			return c;
		if (!c->parent)
			return NULL;
		time = c->time; /* as it was when it was born, not what came later */
		pid = c->parent;
		from = until = &ignored;
	}
	return NULL;
}

const struct nps_code *nps_spaces__find(const struct nps_spaces *s, uint32_t pid, uint64_t time,
					uint64_t address)
{
	struct nps_answer *known = s->answers ? &s->answers[nps_hash2(address, pid) % ANSWERS] : NULL;
	struct nps_answer answer = { .address = address, .until = UINT64_MAX, .pid = pid };

	if (known && known->address == address && known->pid == pid && time >= known->from &&
	    time < known->until)
		return known->code;
	answer.code = spaces_lookup(s, pid, time, address, &answer.from, &answer.until);
	if (known)
		*known = answer;
	return answer.code;
}

/* --- files ---------------------------------------------------------------------------------------- */

/* FD, which this takes, as an image if it is the build of M; NULL: it is not. */
static struct nps_elf_image *image_of(struct nps_spaces *s, int fd, const struct nps_module *m)
{
	struct nps_elf_image *image;
	uint8_t id[20];
	size_t n;

	if (fd < 0 || nps_elf_image__open(fd, &s->limits, &image))
		return NULL;
	n = nps_elf_image__build_id(image, id);
	if (n == m->build_id_len && !memcmp(id, m->build_id, n))
		return image;
	nps_elf_image__close(image);
	return NULL;
}

/*
 * The file that the process itself has mapped, while it lives: needed if it is in a container, if its file
 * was deleted, or if we may not read the host's. Only the build-id proves that it is the same process, and
 * the same file.
 */
static struct nps_elf_image *open_live(struct nps_spaces *s, const struct nps_module *m,
				       const struct nps_code *code)
{
	const uint64_t refused = s->limits.refused;
	struct nps_elf_image *image;
	char path[96];

	if (!m->build_id_len)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%u/root", m->pid);
	image = image_of(s, nps_input_file__open_in(path, m->path), m);
	if (image || s->limits.refused > refused)
		return image;
	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, m->pid, code->start,
		 code->end);
	return image_of(s, nps_input_file__open_link(path), m);
}

/* A process can map devices and what is no file any more: that is nothing that could be read. */
static void report_unreadable(const char *path, int err)
{
	if (err < 0 && err != -ENOENT && err != -ENOTDIR && err != -EINVAL)
		nps_input__unreadable(AT_FDCWD, path, err);
}

static struct nps_elf_image *open_debug(struct nps_spaces *s, const struct nps_module *m)
{
	char path[128] = "/usr/lib/debug/.build-id/";
	size_t len = strlen(path);
	int fd;

	if (m->build_id_len < 2)
		return NULL;
	for (size_t i = 0; i < m->build_id_len; i++)
		len += (size_t)snprintf(path + len, sizeof(path) - len, i == 1 ? "/%02x" : "%02x",
					m->build_id[i]);
	snprintf(path + len, sizeof(path) - len, ".debug");
	fd = nps_input_file__open_in("/", path);
	report_unreadable(path, fd);
	return image_of(s, fd, m);
}

static void load_module(struct nps_spaces *s, struct nps_module *m, const struct nps_code *code)
{
	const uint64_t refused = s->limits.refused;
	struct nps_elf_image *debug;
	int fd;

	m->tried = true;
	if (m->path[0] != '/' || m->path[1] == '/') /* [vdso], //anon, ... */
		return;
	fd = nps_input_file__open_in("/", m->path);
	m->image = image_of(s, fd, m);
	/* The process has the same file: it would need too much memory again. */
	if (!m->image && s->limits.refused == refused)
		m->image = open_live(s, m, code);
	if (!m->image)
		report_unreadable(m->path, fd);
	debug = m->image && nps_elf_image__has_symtab(m->image) ? NULL : open_debug(s, m);
	if (!m->image)
		m->image = debug; /* names, but no way to the callers */
	else if (debug)
		nps_elf_image__add_symbols(m->image, debug);
	s->limits.refused =
		NPS_MIN(s->limits.refused, refused + 1); /* the library, whichever of its files it was */
}

struct nps_elf_image *nps_spaces__image(struct nps_spaces *s, const struct nps_code *code)
{
	struct nps_module *m = &NPS_AT(&s->modules, struct nps_module, code->module);

	if (!strcmp(m->path, "[vdso]"))
		return s->vdso;
	if (!m->tried)
		load_module(s, m, code);
	return m->image;
}

size_t nps_spaces__missing(const struct nps_spaces *s, const char **example)
{
	size_t n = 0;

	for (size_t i = 0; i < s->modules.len; i++) {
		const struct nps_module *m = &NPS_AT(&s->modules, struct nps_module, i);

		if (!m->tried || m->image || m->path[0] != '/' || m->path[1] == '/')
			continue;
		*example = m->path;
		n++;
	}
	return n;
}
