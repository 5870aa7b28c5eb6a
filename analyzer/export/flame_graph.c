/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/flame_graph.h"

#include "base/json_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 1024 /* frames of a stack; the importer has fewer */

static struct nps_flame_node *flame_node(const struct nps_flame *f, uint32_t i)
{
	return &NPS_AT(&f->nodes, struct nps_flame_node, i);
}

int nps_flame__init(struct nps_flame *f, int dirfd)
{
	struct nps_flame_node *root;

	memset(f, 0, sizeof(*f));
	nps_vec__init(&f->nodes, dirfd, sizeof(struct nps_flame_node));
	nps_vec__init(&f->names, dirfd, sizeof(char *));
	root = nps_vec__push(&f->nodes);
	if (!root)
		return -ENOMEM;
	root->text = NPS_NONE;
	return 0;
}

void nps_flame__free(struct nps_flame *f)
{
	for (size_t i = 0; i < f->names.len; i++)
		free(NPS_AT(&f->names, char *, i));
	nps_vec__free(&f->nodes);
	nps_vec__free(&f->names);
	nps_map__free(&f->child_of);
	nps_map__free(&f->name_of);
}

const char *nps_flame__name(const struct nps_flame *f, uint32_t node)
{
	uint32_t text = flame_node(f, node)->text;

	return text == NPS_NONE ? "all" : NPS_AT(&f->names, char *, text);
}

static uint32_t flame_name(struct nps_flame *f, const char *text, size_t len)
{
	uint64_t key = nps_hash_bytes(text, len);
	uint32_t row = nps_map__get(&f->name_of, key);
	char **name;

	if (row != NPS_NONE)
		return row;
	name = nps_vec__push(&f->names);
	if (!name)
		return NPS_NONE;
	*name = strndup(text, len);
	if (!*name || nps_map__put(&f->name_of, key, f->names.len - 1))
		return NPS_NONE;
	return f->names.len - 1;
}

/* The callee of PARENT by that name, made if need be; NPS_NONE without memory. */
static uint32_t flame_child(struct nps_flame *f, uint32_t parent, const char *text, size_t len)
{
	uint32_t name = flame_name(f, text, len), i;
	uint64_t key = (uint64_t)parent << 32 | name;
	struct nps_flame_node *node;

	if (name == NPS_NONE)
		return NPS_NONE;
	i = nps_map__get(&f->child_of, key);
	if (i != NPS_NONE)
		return i;
	node = nps_vec__push(&f->nodes);
	if (!node || nps_map__put(&f->child_of, key, f->nodes.len - 1))
		return NPS_NONE;
	node->parent = parent;
	node->text = name;
	return f->nodes.len - 1;
}

/* A thread may call itself what it likes. */
static uint32_t thread_node(struct nps_flame *f, const char *thread)
{
	char clean[256];
	size_t n = 0;

	for (; n < sizeof(clean) && thread[n]; n++)
		clean[n] = thread[n] == ';' ? ':' : (unsigned char)thread[n] < ' ' ? ' ' : thread[n];
	return n ? flame_child(f, 0, clean, n) : flame_child(f, 0, "[no name]", 9);
}

int nps_flame__add(struct nps_flame *f, const char *thread, const char *frames, uint64_t weight)
{
	uint32_t at = thread_node(f, thread);

	for (size_t len, depth = 0; *frames && at != NPS_NONE && depth < DEPTH; depth++) {
		len = strcspn(frames, ";");
		at = flame_child(f, at, frames, len);
		frames += len + (frames[len] == ';');
	}
	if (at == NPS_NONE)
		return -ENOMEM;
	flame_node(f, at)->self = nps_add_sat(flame_node(f, at)->self, weight);
	return 0;
}

static int flame_compare_name(const void *a, const void *b, void *flame)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return strcmp(nps_flame__name(flame, x), nps_flame__name(flame, y));
}

int nps_flame__finish(struct nps_flame *f)
{
	size_t n = f->nodes.len;
	uint32_t *order = malloc(n * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		order[i] = i;
		flame_node(f, i)->total = flame_node(f, i)->self;
	}
	for (uint32_t i = n - 1; i; i--)
		flame_node(f, flame_node(f, i)->parent)->total =
			nps_add_sat(flame_node(f, flame_node(f, i)->parent)->total, flame_node(f, i)->total);
	qsort_r(order, n, sizeof(*order), flame_compare_name, f);
	/* from the last name on, so that each chain begins with its first */
	for (size_t i = n; i--;) {
		struct nps_flame_node *node = flame_node(f, order[i]);

		if (!order[i])
			continue;
		node->next = flame_node(f, node->parent)->child;
		flame_node(f, node->parent)->child = order[i];
	}
	free(order);
	return 0;
}

static void write_line(const struct nps_flame *f, struct nps_writer *w, uint32_t node, uint64_t weight)
{
	uint32_t path[DEPTH + 2], n = 0;

	for (uint32_t i = node; i && n < NPS_ARRAY_SIZE(path); i = flame_node(f, i)->parent)
		path[n++] = i;
	while (n--) {
		const char *name = nps_flame__name(f, path[n]);

		nps_writer__bytes(w, name, strlen(name));
		nps_writer__lit(w, n ? ";" : " ");
	}
	nps_writer__u64(w, weight);
	nps_writer__lit(w, "\n");
}

int nps_flame__write_folded(const struct nps_flame *f, int dirfd, const char *name, uint64_t unit)
{
	struct nps_writer w;
	int err = nps_writer__open(&w, dirfd, name);

	if (err)
		return err;
	for (uint32_t i = 1; i < f->nodes.len; i++) {
		uint64_t weight = nps_add_sat(flame_node(f, i)->self, unit / 2) / unit;

		if (weight)
			write_line(f, &w, i, weight);
	}
	return nps_writer__close(&w);
}
