/* SPDX-License-Identifier: BSD-2-Clause */
#include "tap_claims.h"

#include <errno.h>
#include <stdlib.h>

static struct nps_tap_claim *find(const struct nps_tap_list *c, const struct nps_tap_claim *like)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].pid == like->pid && c->v[i].device == like->device &&
		    c->v[i].channel == like->channel && c->v[i].tid == like->tid)
			return &c->v[i];
	return NULL;
}

static size_t count(const struct nps_tap_list *c, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->v[i].pid == pid;
	return n;
}

static int add(struct nps_tap_list *c, const struct nps_tap_claim *new)
{
	if (find(c, new))
		return 0;
	if (count(c, new->pid) >= NPS_TAP_MOST_CLAIMS)
		return -E2BIG;
	if (c->n == c->room) {
		size_t room = c->room ? 2 * c->room : 16;
		struct nps_tap_claim *v = realloc(c->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->v = v;
		c->room = room;
	}
	c->v[c->n++] = *new;
	return 0;
}

static void drop(struct nps_tap_list *c, const struct nps_tap_claim *like)
{
	struct nps_tap_claim *at = find(c, like);

	if (at)
		*at = c->v[--c->n];
}

int nps_tap_claims__enter(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			  uint32_t channel)
{
	return add(&c->now, &(struct nps_tap_claim){ pid, device, channel, tid });
}

int nps_tap_claims__read(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel)
{
	const struct nps_tap_claim held = { pid, device, channel, 0 };

	return find(&c->ended, &held) ? 0 : add(&c->now, &held);
}

int nps_tap_claims__started(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			    uint32_t channel, bool ok)
{
	const struct nps_tap_claim held = { pid, device, channel, 0 };

	drop(&c->now, &(struct nps_tap_claim){ pid, device, channel, tid });
	if (!ok)
		return 0;
	drop(&c->ended, &held);
	return add(&c->now, &held);
}

int nps_tap_claims__stopped(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel,
			    bool ok)
{
	const struct nps_tap_claim held = { pid, device, channel, 0 };

	drop(&c->now, &held);
	return ok ? add(&c->ended, &held) : 0;
}

static void drop_all(struct nps_tap_list *c, uint32_t pid)
{
	for (size_t i = c->n; i-- > 0;)
		if (c->v[i].pid == pid)
			c->v[i] = c->v[--c->n];
}

void nps_tap_claims__gone(struct nps_tap_claims *c, uint32_t pid)
{
	drop_all(&c->now, pid);
	drop_all(&c->ended, pid);
}

bool nps_tap_claims__any(const struct nps_tap_claims *c, uint32_t pid, uint32_t device)
{
	for (size_t i = 0; i < c->now.n; i++)
		if ((!pid || c->now.v[i].pid == pid) && c->now.v[i].device == device)
			return true;
	return false;
}

void nps_tap_claims__free(struct nps_tap_claims *c)
{
	free(c->now.v);
	free(c->ended.v);
	*c = (struct nps_tap_claims){ 0 };
}
