/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

void nps_device_facts__used(struct nps_device_facts *f, pid_t pid, uid_t uid, uint32_t device, bool foreign)
{
	bool was_foreign, fresh;
	uint64_t bit;
	uid_t users;

	if (device >= NPS_DEVICE_MAX)
		return;
	bit = 1ULL << device;
	was_foreign = f->foreign & bit;
	if (foreign && f->wanted & bit && !was_foreign)
		return; /* in a container the number means another device */
	fresh = !(f->wanted & bit) || (was_foreign && !foreign);
	users = fresh || f->uid[device] == uid ? uid : (uid_t)-1;
	if (f->of_job & bit && (was_foreign != foreign || users != f->uid[device])) {
		f->known &= ~bit;
		f->of_job &= ~bit;
	}
	f->uid[device] = users;
	f->foreign = foreign ? f->foreign | bit : f->foreign & ~bit;
	f->wanted |= bit;
	f->pid[device] = pid;
}

bool nps_device_facts__believes(const struct nps_device_facts *f, uid_t uid, uint32_t device, bool foreign)
{
	if (device >= NPS_DEVICE_MAX || !(f->wanted >> device & 1))
		return true;
	return (!foreign || f->foreign >> device & 1) && uid != (uid_t)-1 && f->uid[device] == uid;
}

/* Properties that all devices of the host share. -ENODEV: they have different chips, or there are none. */
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

static const char not_believed[] = "the host has no library of the driver, and another job's is not believed";

struct question {
	struct nps_question q;
	/* bit d: of device d; of_job: reported by a library other than the host's */
	uint64_t open, foreign, known, of_job;
	pid_t pid[NPS_DEVICE_MAX];
	uid_t uid[NPS_DEVICE_MAX]; /* owner of the processes; of_job: user whose report it is */
	struct nps_device_info info[NPS_DEVICE_MAX];
	char why[320];
};

/*
 * The user responsible for what a job's library reports of device D. For
 * root's library: the user for whom it was queried.
 */
static uid_t teller(const struct question *q, const struct nps_device_lib *lib, uint32_t d)
{
	uid_t owner = lib->numbers[NPS_WORKER_HAL].uid;

	return owner ? owner : q->uid[d];
}

static void facts_query(struct nps_question *q, struct nps_driver *driver)
{
	struct question *own = (struct question *)q;

	for (uint32_t d = 0; d < NPS_DEVICE_MAX && own->open >> d; d++) {
		struct nps_device_info *info = &own->info[d];
		bool foreign = own->foreign >> d & 1, is_hosts, same;
		int err;

		if (!(own->open >> d & 1))
			continue;
		if (!nps_driver__open(driver, &own->pid[d], 1)) {
			snprintf(own->why, sizeof(own->why), "%s", driver->why);
			continue;
		}
		is_hosts = nps_device_lib__is_hosts(&driver->lib);
		same = nps_device_lib__numbers_for(&driver->lib, own->pid[d], foreign) &&
		       (is_hosts ||
			(own->uid[d] != (uid_t)-1 && own->uid[d] == teller(own, &driver->lib, d)));
		err = same	 ? nps_device_info__read(&driver->lib, d, info)
		      : is_hosts ? common_info(driver, info)
				 : -EACCES;
		if (err) {
			snprintf(own->why, sizeof(own->why), "%s",
				 same		  ? "the driver does not know it"
				 : err == -EACCES ? not_believed
						  : "it is in a container, and the host's devices are of "
						    "several chips");
			continue;
		}
		info->id = d;
		own->of_job |= is_hosts ? 0 : 1ULL << d;
		own->known |= 1ULL << d;
	}
}

static void facts_answer(struct nps_question *q, void *ctx)
{
	const struct question *own = (const struct question *)q;
	struct nps_device_facts *f = ctx;

	f->querying = false;
	for (uint32_t d = 0; d < NPS_DEVICE_MAX && own->known >> d; d++) {
		bool foreign = own->foreign >> d & 1, of_job = own->of_job >> d & 1;

		/*
		 * A process of the host has used the number meanwhile: facts for
		 * containers do not apply to it.
		 */
		if (!(own->known >> d & 1) || (foreign && !(f->foreign >> d & 1)))
			continue;
		if (of_job && !nps_device_facts__believes(f, own->uid[d], d, foreign)) {
			snprintf(f->why, sizeof(f->why), "%s", not_believed);
			continue;
		}
		f->info[d] = own->info[d];
		f->known |= 1ULL << d;
		f->of_job |= of_job ? 1ULL << d : 0;
		nps_device_info__complain(&f->info[d]);
	}
	if (own->why[0])
		snprintf(f->why, sizeof(f->why), "%s", own->why);
}

void nps_device_facts__query(struct nps_device_facts *f, struct nps_driver_query *to, uint64_t reported)
{
	uint64_t open = f->wanted & ~f->known & ~reported;
	struct question *q = open && !f->querying ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return;
	q->q.ctx = f;
	q->q.query = facts_query;
	q->q.answer = facts_answer;
	q->open = open;
	q->foreign = f->foreign;
	memcpy(q->pid, f->pid, sizeof(q->pid));
	memcpy(q->uid, f->uid, sizeof(q->uid));
	f->querying = true;
	nps_driver_query__post(to, &q->q);
}

void nps_device_facts__report(const struct nps_device_facts *f, uint64_t reported)
{
	uint64_t open = f->wanted & ~f->known & ~reported;

	for (uint32_t d = 0; d < NPS_DEVICE_MAX && open >> d; d++)
		if (open >> d & 1)
			nps_warn("device %u: its chip is not known: %s: ids and kinds of its tasks are taken "
				 "for "
				 "those of a 910B",
				 d, f->querying ? "the driver does not answer" : f->why);
}

static void query_infos(struct nps_question *q, struct nps_driver *driver)
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
	i->q = (struct nps_question){ .ctx = ctx, .query = query_infos, .answer = answered };
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
