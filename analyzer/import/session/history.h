/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that change over time: what a handle meant when it was used. */
#ifndef NPS_HISTORY_H
#define NPS_HISTORY_H

#include "base/map.h"
#include "base/vec.h"

struct nps_history {
	struct nps_vec rows;
	struct nps_map last; /* key -> its latest row, after finish its first */
};

void nps_history__init(struct nps_history *history, int dirfd);

/* From TIME on KEY has VALUE. In any order, before finish; a repeated value may be left out. */
int nps_history__add(struct nps_history *history, uint64_t key, uint64_t time, uint64_t value);

/* From TIME on KEY stands for something else that is not known: NPS_NONE. As nps_history__add(). */
int nps_history__reset(struct nps_history *history, uint64_t key, uint64_t time);

/* Orders what was added. 0 or a negative errno. */
int nps_history__finish(struct nps_history *history);

/* The value of KEY at TIME, in *VALUE: the latest one from before, false if there is none. */
bool nps_history__at(const struct nps_history *history, uint64_t key, uint64_t time, uint64_t *value);

/* The same, or if nothing was known of KEY at TIME, its next value before a reset. */
bool nps_history__near(const struct nps_history *history, uint64_t key, uint64_t time, uint64_t *value);

/* Puts into MAP each key that ever had VALUE. After finish. 0 or a negative errno. */
int nps_history__keys(const struct nps_history *history, uint64_t value, struct nps_map *map);

void nps_history__free(struct nps_history *history);

#endif
