/* SPDX-License-Identifier: BSD-2-Clause */
/* What was mapped where in each process, and when; and the files behind it. */
#ifndef NPS_SPACES_H
#define NPS_SPACES_H

#include "base/map.h"
#include "base/vec.h"
#include "stack.h"
#include "stack/elf_image.h"

/* A file that was mapped, with the build that it was. */
struct nps_module {
	char *path;
	uint8_t build_id[20];
	uint8_t build_id_len;
	uint32_t pid; /* that mapped it */
	bool tried;
	struct nps_elf_image *image; /* NULL: there is none, or none that fits */
};

struct nps_code {
	uint64_t time, start, end, offset;
	uint32_t module; /* row of modules, NPS_NONE: this is no mapping */
	uint32_t parent; /* FORK: pid whose mappings it has; 0: none, EXEC */
};

struct nps_spaces {
	struct nps_map space_of; /* pid -> row of spaces */
	struct nps_vec spaces; /* struct nps_vec of struct nps_code, by time after finish */
	struct nps_vec modules; /* struct nps_module */
	struct nps_map module_of; /* hash of path and build -> row of modules */
	struct nps_elf_image *vdso;
	struct nps_elf_limits limits; /* of all images */
	uint64_t left_out; /* entries of spaces that had too many */
	struct nps_answer *answers; /* of nps_spaces__find(), by address and process */
};

void nps_spaces__init(struct nps_spaces *spaces, int dirfd);
void nps_spaces__free(struct nps_spaces *spaces);

/* Takes a record of NPS_CHUNK_MAPS, which is whole; PATH is terminated. 0 or -ENOMEM. */
int nps_spaces__add(struct nps_spaces *spaces, const struct nps_map_record *record, const char *path);

/* The image of [vdso]; anything that is none is left alone. */
void nps_spaces__set_vdso(struct nps_spaces *spaces, const void *bytes, size_t len);

/* Orders what was added. 0 or -ENOMEM. */
int nps_spaces__finish(struct nps_spaces *spaces);

/* What ADDRESS of process PID was at TIME; NULL: nothing is known of it. */
const struct nps_code *nps_spaces__find(const struct nps_spaces *spaces, uint32_t pid, uint64_t time,
					uint64_t address);

/* The file of a mapping, opened at the first lookup; NULL: it is not here, or has changed since. */
struct nps_elf_image *nps_spaces__image(struct nps_spaces *spaces, const struct nps_code *code);

/* Modules that could not be read though their code was seen. */
size_t nps_spaces__missing(const struct nps_spaces *spaces, const char **example);

#endif
