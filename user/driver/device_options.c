/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/device_lib.h"

int nps_device_options__choose(struct nps_device_opts *o, const char *text)
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

bool nps_device_options__channels(const struct nps_device_opts *o)
{
	return o->io || o->links || o->memory || o->l2_cache || o->metric != NPS_AIC_NONE;
}

bool nps_device_options__any(const struct nps_device_opts *o)
{
	return nps_device_options__channels(o) || o->usage;
}
