/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the readers of the small files share. Files of fixed-size records are described as data: where the
 * fields are and how large they can be, which also distinguishes whole records from the rest of one whose
 * beginning was deleted.
 */
#ifndef NPS_AUX_READ_H
#define NPS_AUX_READ_H

#include "import/cann/control.h"
#include "import/cann/dictionary.h"
#include "import/cann/aux_config.h"

#define NPS_AUX_VALUES 32 /* fields of a record */
#define NPS_AUX_TEXT 8192 /* bytes of a line that count */

/* What is known of the sample before, by a key of the file's own. */
struct nps_aux_last {
	uint64_t key, time;
	uint64_t values[10];
};

struct nps_aux {
	struct nps_model *model;
	const struct nps_cann_dir *host; /* NULL: there is none */
	const struct nps_cann_dir *dir; /* the one that is being read */
	struct nps_aux_config config; /* of `dir` */
	struct nps_cann_clock host_clock; /* host counters, by the Unix time of `dir` */
	struct nps_dictionary *names; /* of the host */
	const struct nps_aux_session *session; /* NULL: of another profiler */
	uint64_t start_raw; /* of the file that is being read */
	int err; /* the first one: allocation or disk */

	/* of the file that is being read */
	char file[64];
	uint64_t bad, untimed, early;
	uint64_t epoch, wrapped; /* of 32-bit times: what was wrapped away, and the value before */
	struct nps_vec lasts; /* struct nps_aux_last */
	struct nps_map of; /* key -> row of lasts */
	void *state; /* of a reader that needs more than that */
};

enum nps_aux_clock {
	NPS_AUX_TICKS, /* counter of the device */
	NPS_AUX_RAW, /* CLOCK_MONOTONIC_RAW of the device */
	NPS_AUX_SAMPLED, /* us since the device was synchronised */
	NPS_AUX_SAMPLED32, /* the same in 32 bits, which wrap */
	NPS_AUX_UNIX,
	NPS_AUX_HOST, /* counter of the host */
	NPS_AUX_HOST_RAW /* CLOCK_MONOTONIC_RAW of the host */
};

/* COUNT numbers of WIDTH bytes; `most`: the largest that is sane, 0: any. */
struct nps_aux_field {
	uint16_t offset;
	uint8_t width, count;
	uint64_t most;
};

struct nps_aux_format {
	const char *file; /* without the device */
	size_t size;
	struct nps_magic magic;
	struct nps_aux_field fields[8]; /* in the order in which `row` gets them; width 0 ends them */
	void (*row)(struct nps_aux *aux, const uint64_t *values, const uint8_t *record);
	void (*end)(struct nps_aux *aux); /* NULL: nothing to do after the last record */
};

#define NPS_AUX_MOST_TIME (1ULL << 62)
#define NPS_AUX_MOST_TIME32 UINT32_MAX /* a time of 32 bits */
#define NPS_AUX_MOST_COUNT (1ULL << 52) /* exact as a double */

/* Reads the file of FORMAT in the current directory, if it is there. */
void nps_aux__records(struct nps_aux *aux, const struct nps_aux_format *format);

/* Reads a text file; LINE gets each line, ended with NUL. LINE returns false if the line is damaged. */
void nps_aux__lines(struct nps_aux *aux, const char *file,
		    bool (*line)(struct nps_aux *aux, const char *text), void (*end)(struct nps_aux *aux));

/* Is there such a file? NAME as in a format. */
bool nps_aux__has(const struct nps_aux *aux, const char *file);

/* Unix ns of a time of the file. False, and counted, if it is none or before the capture. */
bool nps_aux__time(struct nps_aux *aux, enum nps_aux_clock clock, uint64_t value, uint64_t *ns);

/* A row in TABLE. False, and the error is kept, without memory or disk. */
bool nps_aux__add(struct nps_aux *aux, struct nps_table *table, size_t *row);

/*
 * The entry of KEY; *FIRST: it is new, of zeros. NULL without memory, then the error is kept. Moves on the
 * next call.
 */
struct nps_aux_last *nps_aux__last(struct nps_aux *aux, uint64_t key, bool *first);

/* A text's id. */
uint32_t nps_aux__text(struct nps_aux *aux, const char *text);

/* The text of a hash of the host's dictionary. */
uint32_t nps_aux__name(struct nps_aux *aux, uint64_t hash);

/* --- text --- */

/* A decimal number at *P that fits 64 bits; blanks before it are skipped. */
bool nps_aux__number(const char **p, uint64_t *value);

/* A number with decimals, times 10^SCALE; what is finer is cut off. */
bool nps_aux__fixed(const char **p, unsigned int scale, uint64_t *value);

/* `sec:nsec` in ns. */
bool nps_aux__stamp(const char **p, uint64_t *ns);

/* The start of the next word, NULL at the end of the line. */
const char *nps_aux__word(const char *p);

/* --- numbers --- */

/* VALUE with six decimals. */
static inline double nps_aux__round6(double value)
{
	return nearbyint(value * 1e6) / 1e6;
}

/* COUNT a second over NS, whole; 0 without a duration. */
static inline double nps_aux__rate(uint64_t count, uint64_t ns)
{
	return ns ? (double)(uint64_t)((unsigned __int128)count * NPS_NS_PER_S / ns) : 0;
}

/* --- the readers, each of all its files in the current directory --- */

void nps_aux__memory(struct nps_aux *aux); /* hbm, llc, ddr, npu_mem, npu_module_mem */
void nps_aux__links(struct nps_aux *aux); /* pcie, ub, hccs, nic, roce, netdev_stats, dvpp */
void nps_aux__chip(struct nps_aux *aux); /* qos, lpm, stars_soc_profile, l2_cache, socpmu, sampled PMU */
void nps_aux__aicpu(struct nps_aux *aux); /* aicpu, DATA_PREPROCESS */
void nps_aux__operators(struct nps_aux *aux); /* task_memory_info, static_op_mem */
void nps_aux__host(struct nps_aux *aux); /* host_cpu, host_mem, host_network, host_disk */
void nps_aux__calls(struct nps_aux *aux); /* host_syscall, host_pthreadcall */
void nps_aux__system(struct nps_aux *aux); /* samples of /proc, of the host or the device */

#endif
