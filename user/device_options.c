/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device_lib.h"

static int take_hz(unsigned int *hz, const char *text, unsigned int most)
{
	char *end;
	unsigned long v;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	v = strtoul(text, &end, 10);
	if (*end || v < 1 || v > most)
		return -EINVAL;
	*hz = (unsigned int)v;
	return 0;
}

static int take_devices(struct nps_device_opts *o, const char *text)
{
	char *end;

	o->chosen = true;
	o->all = !strcmp(text, "all");
	o->listed = 0;
	if (o->all || !strcmp(text, "job"))
		return 0;
	for (;; text = end + 1) {
		unsigned long id;

		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		id = strtoul(text, &end, 10);
		if (id >= NPS_DEVICE_MAX || (*end && *end != ','))
			return -EINVAL;
		o->listed |= 1ULL << id;
		if (!*end)
			return 0;
	}
}

int nps_device_options__take(struct nps_device_opts *o, int key, const char *arg)
{
	switch (key) {
	case NPS_OPT_SYS_IO:
		o->io = true;
		return 0;
	case NPS_OPT_SYS_IO_HZ:
		return take_hz(&o->io_hz, arg, 100);
	case NPS_OPT_SYS_LINKS:
		o->links = true;
		return 0;
	case NPS_OPT_SYS_LINKS_HZ:
		return take_hz(&o->links_hz, arg, 50);
	case NPS_OPT_SYS_MEMORY:
		o->memory = true;
		return 0;
	case NPS_OPT_SYS_MEMORY_HZ:
		return take_hz(&o->memory_hz, arg, 100);
	case NPS_OPT_LLC:
		o->llc = *arg;
		return strcmp(arg, "read") && strcmp(arg, "write") ? -EINVAL : 0;
	case NPS_OPT_L2_CACHE:
		o->l2_cache = true;
		return 0;
	case NPS_OPT_AIC_METRICS:
		return nps_aic_metrics__parse(arg, &o->metric);
	case NPS_OPT_AIC_HZ:
		return take_hz(&o->aic_hz, arg, 100);
	case NPS_OPT_NPU_USAGE:
		o->usage = true;
		return 0;
	case NPS_OPT_NPU_USAGE_HZ:
		return take_hz(&o->usage_hz, arg, 10);
	case NPS_OPT_SYS_DEVICES:
		return take_devices(o, arg);
	default:
		return -ENOENT;
	}
}

bool nps_device_options__channels(const struct nps_device_opts *o)
{
	return o->io || o->links || o->memory || o->l2_cache || o->metric != NPS_AIC_NONE;
}

bool nps_device_options__any(const struct nps_device_opts *o)
{
	return nps_device_options__channels(o) || o->usage;
}
