/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/mstx.h"

#include <errno.h>
#include <string.h>

#include "core/log.h"

#define DEFAULT_DOMAIN "default"

static bool domains_has(const struct nps_mstx_list *list, const char *name, size_t len)
{
	for (unsigned i = 0; i < list->n; i++)
		if (strlen(list->name[i]) == len && memcmp(list->name[i], name, len) == 0)
			return true;
	return false;
}

int nps_mstx__parse(struct nps_mstx_list *list, const char *text)
{
	for (const char *end;; text = end + 1) {
		size_t len;

		end = strchrnul(text, ',');
		len = (size_t)(end - text);
		if (!len || len >= NPS_STR_MAX)
			return -EINVAL;
		if (!domains_has(list, text, len)) {
			if (list->n == NPS_MSTX_DOMAINS)
				return -EINVAL;
			memcpy(list->name[list->n++], text, len);
		}
		if (!*end)
			return 0;
	}
}

void nps_mstx__settle(struct nps_mstx_opts *opts)
{
	if (opts->off && (opts->include.n || opts->exclude.n)) {
		nps_warn("--mstx off: no marks are recorded: --mstx-domain-include and --mstx-domain-exclude "
			 "have no effect");
		opts->include.n = opts->exclude.n = 0;
	}
	if (opts->include.n && opts->exclude.n) {
		nps_warn("--mstx-domain-include and --mstx-domain-exclude are both given: only the first is "
			 "used");
		opts->exclude.n = 0;
	}
}

enum nps_mstx_mode nps_mstx__mode(const struct nps_mstx_opts *opts)
{
	return opts->include.n ? NPS_MSTX_INCLUDE : opts->exclude.n ? NPS_MSTX_EXCLUDE : NPS_MSTX_ALL;
}

const struct nps_mstx_list *nps_mstx__list(const struct nps_mstx_opts *opts)
{
	return opts->include.n ? &opts->include : opts->exclude.n ? &opts->exclude : NULL;
}

bool nps_mstx__wants_default(const struct nps_mstx_opts *opts)
{
	if (opts->include.n)
		return domains_has(&opts->include, DEFAULT_DOMAIN, strlen(DEFAULT_DOMAIN));
	return !domains_has(&opts->exclude, DEFAULT_DOMAIN, strlen(DEFAULT_DOMAIN));
}
