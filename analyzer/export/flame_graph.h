/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks merged into a tree, and the tree as folded lines and as a picture. */
#ifndef NPS_FLAME_GRAPH_H
#define NPS_FLAME_GRAPH_H

#include "base/map.h"
#include "base/vec.h"

struct nps_flame_node { /* a frame on top of another one */
	uint32_t parent, text; /* text: of the names; of the root NPS_NONE */
	uint32_t child, next; /* the first of its callees, and its neighbour, by name; 0: none */
	uint64_t self, total; /* total: with what it called */
};

struct nps_flame {
	struct nps_vec nodes; /* struct nps_flame_node; 0 is the root; parents stand before their children */
	struct nps_map child_of; /* (parent, text) -> node */
	struct nps_vec names; /* char *, owned */
	struct nps_map name_of; /* hash -> row of names */
};

int nps_flame__init(struct nps_flame *flame, int dirfd);
void nps_flame__free(struct nps_flame *flame);

/* Adds WEIGHT to the stack of THREAD and FRAMES, joined by `;`, outermost first. 0 or -ENOMEM. */
int nps_flame__add(struct nps_flame *flame, const char *thread, const char *frames, uint64_t weight);

/* Sums up, orders children by name. Nothing is added after it. 0 or -ENOMEM. */
int nps_flame__finish(struct nps_flame *flame);

/* The name of NODE, "all" of the root; valid as long as FLAME. */
const char *nps_flame__name(const struct nps_flame *flame, uint32_t node);

static inline const struct nps_flame_node *nps_flame__node(const struct nps_flame *flame, uint32_t node)
{
	return &NPS_AT(&flame->nodes, struct nps_flame_node, node);
}

/* Lines `thread;frames weight`, weights divided by UNIT; those that round to 0 are left out. 0 or < 0. */
int nps_flame__write_folded(const struct nps_flame *flame, int dirfd, const char *name, uint64_t unit);

struct nps_flame_labels {
	const char *title;
	const char *unit; /* what a weight of 1 is */
	double scale; /* factor for weights in tooltips */
};

/* A picture for a browser: click zooms, / searches. Of an empty tree it states that. 0 or negative errno. */
int nps_flame__write_svg(const struct nps_flame *flame, int dirfd, const char *name,
			 const struct nps_flame_labels *labels);

#endif
