/* SPDX-License-Identifier: BSD-2-Clause */
/* The links that keep probes attached, by tier, and how to close many at once. */
#ifndef NPS_LINK_SET_H
#define NPS_LINK_SET_H

struct bpf_link;

struct nps_links {
	struct nps_link {
		int fd; /* -1: it is in `link` */
		struct bpf_link *link;
		unsigned int tier, group;
	} * v;
	unsigned int n;
	unsigned int group; /* group of links that are added from now on; 0: none */
};

/* Add a link, which is closed if there is no room for it. 0 or -ENOMEM. */
int nps_links__keep_fd(struct nps_links *links, int fd, unsigned int tier);
int nps_links__keep(struct nps_links *links, struct bpf_link *link, unsigned int tier);

/* Closes all but the first N. */
void nps_links__undo(struct nps_links *links, unsigned int n);

/*
 * Closes those of TIER and above. At each link the kernel waits for an RCU grace period (some 40 ms); links
 * closed at once share one, so each is closed by a thread of its own.
 */
void nps_links__close(struct nps_links *links, unsigned int tier);

/* Closes those of GROUP. */
void nps_links__close_group(struct nps_links *links, unsigned int group);

void nps_links__free(struct nps_links *links);

#endif
