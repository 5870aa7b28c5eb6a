/* SPDX-License-Identifier: BSD-2-Clause */
/* The links that hold probes in place, by tier, and how to get rid of many at once. */
#ifndef NPS_LINK_SET_H
#define NPS_LINK_SET_H

struct bpf_link;

struct nps_links {
	struct nps_link {
		int fd; /* -1: `link` holds it */
		struct bpf_link *link;
		unsigned int tier, group;
	} * v;
	unsigned int n;
	unsigned int group; /* that links which are kept from now on belong to; 0: none */
};

/* Keep a link, which is closed when there is no room for it. 0 or -ENOMEM. */
int nps_links__keep_fd(struct nps_links *links, int fd, unsigned int tier);
int nps_links__keep(struct nps_links *links, struct bpf_link *link, unsigned int tier);

/* Closes those that came after the first N. */
void nps_links__undo(struct nps_links *links, unsigned int n);

/*
 * Closes those of TIER and above. The kernel waits for its readers at each link (some 40 ms): many at once share one
 * wait, so each is closed by a thread of its own.
 */
void nps_links__close(struct nps_links *links, unsigned int tier);

/* The same for those of GROUP. */
void nps_links__close_group(struct nps_links *links, unsigned int group);

void nps_links__free(struct nps_links *links);

#endif
