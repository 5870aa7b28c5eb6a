/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

void nps_device_facts__used(struct nps_device_facts *f, pid_t pid, uint32_t device, bool foreign)
{
	uint64_t bit;

	if (device >= NPS_DEVICE_MAX)
		return;
	bit = 1ULL << device;
	if (foreign && !(f->wanted & bit))
		f->foreign |= bit;
	else if (!foreign)
		f->foreign &= ~bit;
	f->wanted |= bit;
	f->pid[device] = pid;
}

static bool has_lib(struct nps_device_facts *f, pid_t pid)
{
	if (f->lib.hal)
		return true;
	if (pid == f->failed)
		return false;
	if (!nps_device_lib__open(&f->lib, &pid, 1, f->why, sizeof(f->why)))
		return true;
	f->failed = pid;
	return false;
}

/* What all devices of the host have in common. -ENODEV: they are of several chips, or there are none. */
static int common_info(const struct nps_device_lib *lib, struct nps_device_info *common)
{
	uint32_t ids[NPS_DEVICE_MAX], n = 0;

	if (lib->device_count(&n) || !n)
		return -ENODEV;
	n = n < NPS_DEVICE_MAX ? n : NPS_DEVICE_MAX;
	for (uint32_t i = 0; i < n; i++)
		ids[i] = i;
	if (lib->device_ids && lib->device_ids(ids, n))
		return -ENODEV;
	for (uint32_t i = 0; i < n; i++) {
		struct nps_device_info one;
		int err = nps_device_info__read(lib, ids[i], &one);

		if (err)
			return err;
		if (i && (one.platform != common->platform || strcmp(one.chip, common->chip)))
			return -ENODEV;
		if (!i)
			*common = one;
	}
	return 0;
}

void nps_device_facts__ask(struct nps_device_facts *f, uint64_t told)
{
	uint64_t open = f->wanted & ~f->known & ~told;

	for (uint32_t d = 0; d < NPS_DEVICE_MAX && open >> d; d++) {
		struct nps_device_info *info = &f->info[d];
		int err;

		if (!(open >> d & 1) || !has_lib(f, f->pid[d]))
			continue;
		err = f->foreign >> d & 1 ? common_info(&f->lib, info)
					  : nps_device_info__read(&f->lib, d, info);
		if (err) {
			snprintf(f->why, sizeof(f->why), "%s",
				 f->foreign >> d & 1
					 ? "it is in a container, and the host's devices are of several chips"
					 : "the driver does not know it");
			continue;
		}
		info->id = d;
		nps_device_info__complain(info);
		f->known |= 1ULL << d;
	}
}

void nps_device_facts__say(const struct nps_device_facts *f, uint64_t told)
{
	uint64_t open = f->wanted & ~f->known & ~told;

	for (uint32_t d = 0; d < NPS_DEVICE_MAX && open >> d; d++)
		if (open >> d & 1)
			nps_warn("device %u: its chip is not known: %s: ids and kinds of its tasks are taken "
				 "for "
				 "those of a 910B",
				 d, f->why);
}

static bool is_listed(const cJSON *devices, uint32_t id)
{
	const cJSON *d;

	cJSON_ArrayForEach(d, devices)
	{
		if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(d, "id")) == id)
			return true;
	}
	return false;
}

void nps_device_facts__describe(const struct nps_device_facts *f, cJSON *devices)
{
	for (uint32_t d = 0; d < NPS_DEVICE_MAX && f->known >> d; d++) {
		cJSON *j;

		if (!(f->known >> d & 1) || is_listed(devices, d))
			continue;
		j = cJSON_CreateObject();
		nps_device_info__describe(&f->info[d], j);
		cJSON_AddItemToArray(devices, j);
	}
}
