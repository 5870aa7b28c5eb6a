/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/tasklog/refusals.h"

#include <errno.h>
#include <stdlib.h>

#include "driver/device_lib.h"

struct nps_refusal {
	const struct nps_log_owner *owner;
	uint64_t until[NPS_DEVICE_MAX];
};

static struct nps_refusal *refusal_find(const struct nps_refusals *r, const struct nps_log_owner *owner)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].owner == owner)
			return &r->v[i];
	return NULL;
}

int nps_refusals__add(struct nps_refusals *r, const struct nps_log_owner *owner, uint32_t device,
		      uint64_t until)
{
	struct nps_refusal *found = refusal_find(r, owner), *more;

	if (!owner || device >= NPS_DEVICE_MAX)
		return 0;
	if (!found) {
		more = realloc(r->v, (r->n + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->v = more;
		found = &more[r->n++];
		*found = (struct nps_refusal){ .owner = owner };
	}
	found->until[device] = until;
	return 0;
}

bool nps_refusals__hold(const struct nps_refusals *r, const struct nps_log_owner *owner, uint32_t device,
			uint64_t now)
{
	const struct nps_refusal *found = refusal_find(r, owner);

	return found && device < NPS_DEVICE_MAX && now < found->until[device];
}

void nps_refusals__free(struct nps_refusals *r)
{
	free(r->v);
	*r = (struct nps_refusals){ 0 };
}
