/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/link_set.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 64

static void close_link(const struct nps_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	else
		bpf_link__destroy(link->link);
}

static int links_keep(struct nps_links *links, struct nps_link link)
{
	struct nps_link *v = realloc(links->v, (links->n + 1) * sizeof(*v));

	if (!v) {
		close_link(&link);
		return -ENOMEM;
	}
	links->v = v;
	link.group = links->group;
	v[links->n++] = link;
	return 0;
}

int nps_links__keep_fd(struct nps_links *links, int fd, unsigned int tier)
{
	return links_keep(links, (struct nps_link){ .fd = fd, .tier = tier });
}

int nps_links__keep(struct nps_links *links, struct bpf_link *link, unsigned int tier)
{
	return links_keep(links, (struct nps_link){ .fd = -1, .link = link, .tier = tier });
}

void nps_links__undo(struct nps_links *links, unsigned int n)
{
	while (links->n > n)
		close_link(&links->v[--links->n]);
}

struct closing {
	const struct nps_link *v;
	unsigned int n;
	atomic_uint next;
};

static void *close_some(void *arg)
{
	struct closing *closing = arg;
	unsigned int i;

	while ((i = atomic_fetch_add(&closing->next, 1)) < closing->n)
		close_link(&closing->v[i]);
	return NULL;
}

/* Closes those after the first KEPT. */
static void close_rest(struct nps_links *links, unsigned int kept)
{
	struct closing closing = { .v = links->v + kept, .n = links->n - kept };
	pthread_t threads[MOST_THREADS];
	unsigned int started = 0;

	links->n = kept;
	while (started < MOST_THREADS && started + 1 < closing.n &&
	       !pthread_create(&threads[started], NULL, close_some, &closing))
		started++;
	close_some(&closing);
	for (unsigned int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* Moves link I to those that stay, which come first. */
static void keep_first(struct nps_links *links, unsigned int i, unsigned int *kept)
{
	struct nps_link link = links->v[i];

	links->v[i] = links->v[*kept];
	links->v[(*kept)++] = link;
}

void nps_links__close(struct nps_links *links, unsigned int tier)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < links->n; i++)
		if (links->v[i].tier < tier)
			keep_first(links, i, &kept);
	close_rest(links, kept);
}

void nps_links__close_group(struct nps_links *links, unsigned int group)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < links->n; i++)
		if (links->v[i].group != group)
			keep_first(links, i, &kept);
	close_rest(links, kept);
}

void nps_links__free(struct nps_links *links)
{
	nps_links__close(links, 0);
	free(links->v);
	links->v = NULL;
}
