/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/host_samples.h"

#include <errno.h>
#include <string.h>

void nps_host_samples__init(struct nps_host_samples *host, int tmpfd)
{
	*host = (struct nps_host_samples){ .requested = false };
	nps_vec__init(&host->cpus, tmpfd, sizeof(struct nps_host_cpu));
	nps_vec__init(&host->systems, tmpfd, sizeof(struct nps_host_system));
	nps_vec__init(&host->threads, tmpfd, sizeof(struct nps_host_thread));
	nps_vec__init(&host->processes, tmpfd, sizeof(struct nps_host_process));
	nps_vec__init(&host->memory, tmpfd, sizeof(struct nps_host_memory));
	nps_vec__init(&host->disks, tmpfd, sizeof(struct nps_host_disk));
	nps_vec__init(&host->cards, tmpfd, sizeof(struct nps_host_card));
	nps_vec__init(&host->names, tmpfd, sizeof(struct nps_host_named));
	nps_vec__init(&host->neighbours, tmpfd, sizeof(struct nps_neighbour));
}

void nps_host_samples__free(struct nps_host_samples *host)
{
	nps_vec__free(&host->cpus);
	nps_vec__free(&host->systems);
	nps_vec__free(&host->threads);
	nps_vec__free(&host->processes);
	nps_vec__free(&host->memory);
	nps_vec__free(&host->disks);
	nps_vec__free(&host->cards);
	nps_vec__free(&host->names);
	nps_vec__free(&host->neighbours);
	nps_map__free(&host->name_of);
}

static uint64_t name_key(uint32_t what, uint32_t id)
{
	return (uint64_t)what << 32 | id;
}

const struct nps_host_named *nps_host_samples__name(const struct nps_host_samples *host,
						    enum nps_host_what what, uint32_t id)
{
	uint32_t row = nps_map__get(&host->name_of, name_key(what, id));

	return row == NPS_NONE ? NULL : &NPS_AT(&host->names, struct nps_host_named, row);
}

static int add_name(struct nps_host_samples *host, struct nps_strings *strings,
		    const struct nps_host_name *name)
{
	uint32_t text = nps_strings__add(strings, name->text, strnlen(name->text, sizeof(name->text)));
	uint64_t key = name_key(name->what, name->id);
	uint32_t row = nps_map__get(&host->name_of, key);
	struct nps_host_named *to;
	int err;

	if (text == NPS_NONE)
		return -ENOMEM;
	if (row == NPS_NONE) {
		to = nps_vec__push(&host->names);
		if (!to)
			return -errno;
		err = nps_map__put(&host->name_of, key, host->names.len - 1);
		if (err)
			return err;
	} else {
		to = &NPS_AT(&host->names, struct nps_host_named, row);
	}
	to->text = text;
	to->flags |= name->flags; /* what once was the job's stays so */
	to->speed = name->speed;
	return 0;
}

static int add_names(struct nps_host_samples *host, struct nps_strings *strings, const void *payload,
		     size_t n)
{
	const struct nps_host_name *names = payload;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++)
		err = add_name(host, strings, &names[i]);
	return err;
}

/* Every kind of sample begins with its time. */
static int add_samples(struct nps_host_samples *host, struct nps_vec *to, const char *payload, size_t n,
		       uint64_t first, uint64_t last)
{
	size_t have = to->len;
	int err = have + n >= NPS_NONE ? -EOVERFLOW : nps_vec__resize(to, have + n);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		uint64_t time;

		memcpy(&time, payload + i * to->elem, sizeof(time));
		if (time < first || time > last) {
			host->strange++;
			continue;
		}
		memcpy((char *)to->data + have++ * to->elem, payload + i * to->elem, to->elem);
	}
	to->len = have;
	return 0;
}

int nps_host_samples__add(struct nps_host_samples *host, struct nps_strings *strings,
			  const struct nps_chunk *chunk, const void *payload, uint64_t first, uint64_t last)
{
	struct nps_vec *const to[] = {
		[NPS_CHUNK_HOST_CPUS - NPS_CHUNK_HOST_NAMES] = &host->cpus,
		[NPS_CHUNK_HOST_SYSTEM - NPS_CHUNK_HOST_NAMES] = &host->systems,
		[NPS_CHUNK_HOST_THREADS - NPS_CHUNK_HOST_NAMES] = &host->threads,
		[NPS_CHUNK_HOST_PROCESSES - NPS_CHUNK_HOST_NAMES] = &host->processes,
		[NPS_CHUNK_HOST_MEMORY - NPS_CHUNK_HOST_NAMES] = &host->memory,
		[NPS_CHUNK_HOST_DISKS - NPS_CHUNK_HOST_NAMES] = &host->disks,
		[NPS_CHUNK_HOST_CARDS - NPS_CHUNK_HOST_NAMES] = &host->cards,
	};
	unsigned int kind = chunk->type - NPS_CHUNK_HOST_NAMES;

	if (chunk->type == NPS_CHUNK_HOST_NAMES)
		return add_names(host, strings, payload, chunk->len / sizeof(struct nps_host_name));
	if (chunk->type < NPS_CHUNK_HOST_NAMES || kind >= NPS_ARRAY_SIZE(to))
		return 1;
	if (chunk->len < to[kind]->elem)
		return 0;
	return add_samples(host, to[kind], payload, chunk->len / to[kind]->elem, first, last);
}
