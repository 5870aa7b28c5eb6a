/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

void nps_device_facts__used(struct nps_device_facts *f, pid_t pid, uid_t uid, uint32_t device, bool foreign)
{
	uint64_t bit;

	if (device >= NPS_DEVICE_MAX)
		return;
	bit = 1ULL << device;
	if (!foreign)
		f->uid[device] = !(f->wanted & bit) || f->foreign & bit || f->uid[device] == uid ? uid
												 : (uid_t)-1;
	if (foreign && !(f->wanted & bit))
		f->foreign |= bit;
	else if (!foreign)
		f->foreign &= ~bit;
	f->wanted |= bit;
	f->pid[device] = pid;
}

bool nps_device_facts__believes(const struct nps_device_facts *f, uid_t uid, uint32_t device, bool foreign)
{
	bool has_users = device < NPS_DEVICE_MAX && (f->wanted & ~f->foreign) >> device & 1;

	return !has_users || (!foreign && uid != (uid_t)-1 && f->uid[device] == uid);
}

/* What all devices of the host have in common. -ENODEV: they are of several chips, or there are none. */
static int common_info(const struct nps_driver *driver, struct nps_device_info *common)
{
	uint32_t ids[NPS_DEVICE_MAX], n = nps_driver__devices(driver, ids);

	if (!n)
		return -ENODEV;
	for (uint32_t i = 0; i < n; i++) {
		struct nps_device_info one;
		int err = nps_device_info__read(&driver->lib, ids[i], &one);

		if (err)
			return err;
		if (i && (one.platform != common->platform || strcmp(one.chip, common->chip)))
			return -ENODEV;
		if (!i)
			*common = one;
	}
	return 0;
}

struct question {
	struct nps_question q;
	uint64_t open, foreign, known; /* bit d: of device d */
	pid_t pid[NPS_DEVICE_MAX];
	struct nps_device_info info[NPS_DEVICE_MAX];
	char why[320];
};

static void ask(struct nps_question *q, struct nps_driver *driver)
{
	struct question *own = (struct question *)q;

	for (uint32_t d = 0; d < NPS_DEVICE_MAX && own->open >> d; d++) {
		struct nps_device_info *info = &own->info[d];
		bool foreign = own->foreign >> d & 1, same;
		int err;

		if (!(own->open >> d & 1))
			continue;
		if (!nps_driver__open(driver, &own->pid[d], 1)) {
			snprintf(own->why, sizeof(own->why), "%s", driver->why);
			continue;
		}
		same = nps_device_lib__numbers_for(&driver->lib, own->pid[d], foreign);
		err = same				       ? nps_device_info__read(&driver->lib, d, info)
		      : nps_device_lib__is_hosts(&driver->lib) ? common_info(driver, info)
							       : -EACCES;
		if (err) {
			snprintf(own->why, sizeof(own->why), "%s",
				 same		  ? "the driver does not know it"
				 : err == -EACCES ? "the host has no library of the driver, and another "
						    "job's is not believed"
						  : "it is in a container, and the host's devices are of "
						    "several chips");
			continue;
		}
		info->id = d;
		own->known |= 1ULL << d;
	}
}

static void answer(struct nps_question *q, void *ctx)
{
	const struct question *own = (const struct question *)q;
	struct nps_device_facts *f = ctx;

	f->asking = false;
	for (uint32_t d = 0; d < NPS_DEVICE_MAX && own->known >> d; d++) {
		/* A process of the host came meanwhile: what a container was told is not what it means. */
		if (!(own->known >> d & 1) || (own->foreign & ~f->foreign) >> d & 1)
			continue;
		f->info[d] = own->info[d];
		f->known |= 1ULL << d;
		nps_device_info__complain(&f->info[d]);
	}
	if (own->why[0])
		snprintf(f->why, sizeof(f->why), "%s", own->why);
}

void nps_device_facts__ask(struct nps_device_facts *f, struct nps_driver_ask *to, uint64_t told)
{
	uint64_t open = f->wanted & ~f->known & ~told;
	struct question *q = open && !f->asking ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return;
	q->q.ctx = f;
	q->q.ask = ask;
	q->q.answer = answer;
	q->open = open;
	q->foreign = f->foreign;
	memcpy(q->pid, f->pid, sizeof(q->pid));
	f->asking = true;
	nps_driver_ask__post(to, &q->q);
}

void nps_device_facts__say(const struct nps_device_facts *f, uint64_t told)
{
	uint64_t open = f->wanted & ~f->known & ~told;

	for (uint32_t d = 0; d < NPS_DEVICE_MAX && open >> d; d++)
		if (open >> d & 1)
			nps_warn("device %u: its chip is not known: %s: ids and kinds of its tasks are taken "
				 "for "
				 "those of a 910B",
				 d, f->asking ? "the driver does not answer" : f->why);
}

static void ask_infos(struct nps_question *q, struct nps_driver *driver)
{
	struct nps_device_infos *i = (struct nps_device_infos *)q;

	if (!nps_driver__open(driver, &i->pid, 1) ||
	    !nps_device_lib__numbers_for(&driver->lib, i->pid, false))
		return;
	for (uint32_t d = 0; d < NPS_DEVICE_MAX && i->wanted >> d; d++)
		if (i->wanted >> d & 1 && !nps_device_info__read(&driver->lib, d, &i->info[d]))
			i->known |= 1ULL << d;
}

struct nps_device_infos *nps_device_infos__new(pid_t pid, uint64_t wanted,
					       void (*answered)(struct nps_question *q, void *ctx), void *ctx)
{
	struct nps_device_infos *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->q = (struct nps_question){ .ctx = ctx, .ask = ask_infos, .answer = answered };
	i->pid = pid;
	i->wanted = wanted;
	return i;
}

void nps_device_facts__describe(const struct nps_device_facts *f, cJSON *devices)
{
	for (uint32_t d = 0; d < NPS_DEVICE_MAX && f->known >> d; d++)
		if (f->known >> d & 1)
			nps_device_info__entry(&f->info[d], devices);
}
