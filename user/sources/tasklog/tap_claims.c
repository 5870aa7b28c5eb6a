/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/tasklog/tap_claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/device_lib.h"
#include "session.h"

#define MOST_STARTING 256 /* threads of a process that start a channel at the same time */
#define WORDS ((NPS_PROF_CHANNELS + 63) / 64)

struct channels {
	uint64_t bits[NPS_DEVICE_MAX][WORDS];
};

struct nps_tap_process {
	uint32_t pid;
	struct channels held;
	struct channels ended; /* stopped, and not started since: a read in progress then claims nothing */
	struct starting {
		uint32_t tid, device, channel;
	} starting[MOST_STARTING];
	size_t n_starting;
};

static bool channels_has(const struct channels *c, uint32_t device, uint32_t channel)
{
	return c->bits[device][channel / 64] >> channel % 64 & 1;
}

static void set(struct channels *c, uint32_t device, uint32_t channel, bool on)
{
	uint64_t bit = 1ULL << channel % 64, *word = &c->bits[device][channel / 64];

	*word = on ? *word | bit : *word & ~bit;
}

static bool is_one(uint32_t device, uint32_t channel)
{
	return device < NPS_DEVICE_MAX && channel < NPS_PROF_CHANNELS;
}

/* Index of the first process whose pid is not less. */
static size_t lower_bound(const struct nps_tap_claims *c, uint32_t pid)
{
	size_t from = 0, to = c->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (c->v[middle]->pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct nps_tap_process *process_find(const struct nps_tap_claims *c, uint32_t pid)
{
	size_t i = lower_bound(c, pid);

	return i < c->n && c->v[i]->pid == pid ? c->v[i] : NULL;
}

static struct nps_tap_process *process_get(struct nps_tap_claims *c, uint32_t pid)
{
	size_t i = lower_bound(c, pid);
	struct nps_tap_process *p;

	if (i < c->n && c->v[i]->pid == pid)
		return c->v[i];
	if (c->n == c->room) {
		size_t room = c->room ? 2 * c->room : 16;
		struct nps_tap_process **v = realloc(c->v, room * sizeof(*v));

		if (!v)
			return NULL;
		c->v = v;
		c->room = room;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	memmove(c->v + i + 1, c->v + i, (c->n - i) * sizeof(*c->v));
	c->v[i] = p;
	c->n++;
	return p;
}

static bool starting_is(const struct starting *s, uint32_t tid, uint32_t device, uint32_t channel)
{
	return s->tid == tid && s->device == device && s->channel == channel;
}

static void starting_drop(struct nps_tap_process *p, uint32_t tid, uint32_t device, uint32_t channel)
{
	for (size_t i = p->n_starting; i-- > 0;)
		if (starting_is(&p->starting[i], tid, device, channel))
			p->starting[i] = p->starting[--p->n_starting];
}

int nps_tap_claims__enter(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			  uint32_t channel)
{
	struct nps_tap_process *p = is_one(device, channel) ? process_get(c, pid) : NULL;

	if (!p)
		return is_one(device, channel) ? -ENOMEM : 0;
	starting_drop(p, tid, device, channel);
	if (p->n_starting == MOST_STARTING)
		return -E2BIG;
	p->starting[p->n_starting++] = (struct starting){ tid, device, channel };
	return 0;
}

int nps_tap_claims__read(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel)
{
	struct nps_tap_process *p = is_one(device, channel) ? process_get(c, pid) : NULL;

	if (!p)
		return is_one(device, channel) ? -ENOMEM : 0;
	if (!channels_has(&p->ended, device, channel))
		set(&p->held, device, channel, true);
	return 0;
}

int nps_tap_claims__started(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			    uint32_t channel, bool ok)
{
	struct nps_tap_process *p = is_one(device, channel) ? process_get(c, pid) : NULL;

	if (!p)
		return is_one(device, channel) ? -ENOMEM : 0;
	starting_drop(p, tid, device, channel);
	if (!ok)
		return 0;
	set(&p->ended, device, channel, false);
	set(&p->held, device, channel, true);
	return 0;
}

int nps_tap_claims__stopped(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel,
			    bool ok)
{
	struct nps_tap_process *p = is_one(device, channel) ? process_get(c, pid) : NULL;

	if (!p)
		return is_one(device, channel) ? -ENOMEM : 0;
	set(&p->held, device, channel, false);
	if (ok)
		set(&p->ended, device, channel, true);
	return 0;
}

void nps_tap_claims__exited(struct nps_tap_claims *c, uint32_t pid)
{
	size_t i = lower_bound(c, pid);

	if (i == c->n || c->v[i]->pid != pid)
		return;
	free(c->v[i]);
	c->n--;
	memmove(c->v + i, c->v + i + 1, (c->n - i) * sizeof(*c->v));
}

static bool holds(const struct nps_tap_process *p, uint32_t device)
{
	for (size_t i = 0; i < WORDS; i++)
		if (p->held.bits[device][i])
			return true;
	for (size_t i = 0; i < p->n_starting; i++)
		if (p->starting[i].device == device)
			return true;
	return false;
}

bool nps_tap_claims__any(const struct nps_tap_claims *c, uint32_t pid, uint32_t device)
{
	const struct nps_tap_process *p = pid ? process_find(c, pid) : NULL;

	if (device >= NPS_DEVICE_MAX)
		return false;
	if (pid)
		return p && holds(p, device);
	for (size_t i = 0; i < c->n; i++)
		if (holds(c->v[i], device))
			return true;
	return false;
}

bool nps_tap_claims__any_device(const struct nps_tap_claims *c, uint32_t pid)
{
	const struct nps_tap_process *p = process_find(c, pid);

	for (uint32_t d = 0; p && d < NPS_DEVICE_MAX; d++)
		if (holds(p, d))
			return true;
	return false;
}

void nps_tap_claims__free(struct nps_tap_claims *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i]);
	free(c->v);
	*c = (struct nps_tap_claims){ 0 };
}
