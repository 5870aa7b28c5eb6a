/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers: where the time went and what to look at. A document with a section for each question (`steps`,
 * `idle`, `operators`, `apis`, `communication`, `memory`, `host`, `host_time`, `torchair`, `python`,
 * `allocations`) and a list `findings`, worst first, each with its numbers and where in the trace it is.
 * Durations are us, times Unix us, shares fractions.
 */
#ifndef NPS_FINDINGS_H
#define NPS_FINDINGS_H

#include "base/index.h"
#include "findings/table.h"
#include "model/model.h"

struct cJSON;

/*
 * The document about MODEL, whose derivations are done. The caller frees it with cJSON_Delete(). NULL with
 * errno: ENOMEM or the error of a temporary file.
 */
struct cJSON *nps_findings__make(const struct nps_model *model);

/* npuscope_findings.json in DIRFD. 0 or negative errno. */
int nps_findings__write(const struct cJSON *document, int dirfd);

/* --- for the sections: each adds its object to DOCUMENT, its findings to the list. 0 or an errno --- */

/* When tasks were submitted: as recorded, or by the call with the task's connection. */
struct nps_submits {
	const struct nps_model *model;
	struct nps_index calls; /* connection -> row of `api`; empty if all times were recorded */
	bool indexed;
};

/* Indexes MODEL's calls if tasks lack their times. 0 or negative errno; free in either case. */
int nps_submits__init(struct nps_submits *submits, const struct nps_model *model);
void nps_submits__free(struct nps_submits *submits);

/* Called for each row of a walk: releases memory of the index at times, as nps_pace__step() does. */
static inline void nps_submits__step(const struct nps_submits *submits, size_t row)
{
	if (submits->indexed && !(row & (NPS_TABLE_HOT - 1)))
		nps_index__cool(&submits->calls);
}

/* The time at which what has CONNECTION and began at START was submitted, at the latest; 0 unknown. */
uint64_t nps_submits__of_connection(const struct nps_submits *submits, uint32_t connection, uint64_t start);
uint64_t nps_submits__of_task(const struct nps_submits *submits, size_t task);

#define NPS_FIND_DEVICES 64 /* devices of higher numbers are left out */

struct nps_find {
	const struct nps_model *model;
	struct nps_submits submits;
	struct cJSON *document;
	struct cJSON *list; /* document["findings"] */
	double span_us; /* of the capture */
	unsigned int devices; /* that worked, at least 1 */
};

/* A question: its section of the document, and what `show` prints of it. */
struct nps_find_question {
	int (*find)(struct nps_find *find);
	const struct nps_find_table *tables[2]; /* NULL: none, or no more */
	void (*show)(const struct nps_view *view); /* what follows them; may be NULL */
};

extern const struct nps_find_question nps_question_overview, nps_question_findings, nps_question_steps,
	nps_question_operators, nps_question_apis, nps_question_communication, nps_question_memory,
	nps_question_idle, nps_question_host, nps_question_host_time, nps_question_torchair,
	nps_question_python, nps_question_allocations;

/* Prints what QUESTION has found. */
void nps_question__show(const struct nps_find_question *question, const struct nps_view *view);

/* The devices of the section `idle`, which the overview prints. */
extern const struct nps_find_table *const nps_find_devices;

/*
 * A finding: ID names its kind; SHARE of the capture's time is its weight; NUMBERS and WHERE (may be NULL)
 * are taken over; ADVICE: what to look at. TITLE is a sentence with the numbers. 0 or -ENOMEM.
 */
int nps_find__add(struct nps_find *find, const char *id, double share, struct cJSON *numbers,
		  struct cJSON *where, const char *advice, const char *title, ...)
	__attribute__((format(printf, 7, 8)));

/*
 * The share of the capture's time that US of one device or thread are; if US is a sum over all devices, the
 * mean of their shares.
 */
static inline double nps_find__share(const struct nps_find *find, double us)
{
	return find->span_us > 0 ? us / find->span_us : 0;
}

static inline double nps_find__mean_share(const struct nps_find *find, double us)
{
	return nps_find__share(find, us / find->devices);
}

/* A number with at most three decimals; NaN becomes null. */
void nps_find__number(struct cJSON *object, const char *name, double value);

/* A time of the trace: us with three decimals, all digits. */
void nps_find__time(struct cJSON *object, const char *name, uint64_t ns);

/* Durations of one kind in fixed memory: quantiles are off by at most 1/32 of their value. */
#define NPS_HISTOGRAM_BUCKETS (61 * 16)

struct nps_histogram {
	uint64_t count, total, least, most;
	uint32_t buckets[NPS_HISTOGRAM_BUCKETS];
};

/* Adds VALUE, ns. */
void nps_histogram__add(struct nps_histogram *histogram, uint64_t value);

/* The value below which the share Q of all lies, 0 if there are none. */
uint64_t nps_histogram__quantile(const struct nps_histogram *histogram, double q);

/* The same in us, and the mean; NaN if there are none. With Q 1 the longest. */
double nps_histogram__quantile_us(const struct nps_histogram *histogram, double q);
double nps_histogram__mean_us(const struct nps_histogram *histogram);

#endif
