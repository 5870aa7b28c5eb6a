/* SPDX-License-Identifier: BSD-2-Clause */
/* Small things that every module of the analyzer needs. */
#ifndef NPS_UTIL_H
#define NPS_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NPS_NONE UINT32_MAX /* no row; also the vendor's "none" for ids */

#define NPS_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* Each argument is evaluated once, as it may have side effects. */
#define NPS_MIN(a, b)                                                                                        \
	({                                                                                                   \
		__typeof__(a) a_ = (a);                                                                      \
		__typeof__(b) b_ = (b);                                                                      \
		a_ < b_ ? a_ : b_;                                                                           \
	})
#define NPS_MAX(a, b)                                                                                        \
	({                                                                                                   \
		__typeof__(a) a_ = (a);                                                                      \
		__typeof__(b) b_ = (b);                                                                      \
		a_ > b_ ? a_ : b_;                                                                           \
	})

/* Bytes of the control character at the start of TEXT, also of one with the eighth bit as UTF-8, or 0. */
size_t nps_control(const char *text);

/* Prints a text of a job or a file: its control characters, which a terminal could execute, become '?'. */
void nps_print_text(FILE *file, const char *text);

/* Prints `npuscope: ` and one line to stderr, without control characters. */
void nps_msg(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for a line that explains why a request fails: "cannot do what: why: what to do". */
void nps_msg_failure(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How many lines nps_msg_failure() has printed: whether a failure was explained. */
unsigned int nps_msg_failures(void);

/*
 * From here on this process' lines go into FILE, which stays the caller's; to stderr only if FILE cannot be
 * written. NULL: to stderr again. Not while other threads print.
 */
void nps_msg_into(FILE *file);

/* Prints the lines that another process has put into FILE, from its start. */
void nps_msg_pass_on(FILE *file);

/* "cannot analyse PATH: why: what to do" for a negative errno. */
void nps_msg_cannot(const char *path, int err);

/* a + b, stopping at the largest value: times in a session are not trusted. */
static inline uint64_t nps_add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* VALUE as a signed number, and as one of 32 bits; the largest one if it does not fit. */
static inline int64_t nps_to_i64(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static inline uint32_t nps_to_u32(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* END - START; 0 if it ends before it starts: times of an input are not trusted. */
static inline uint64_t nps_span(uint64_t start, uint64_t end)
{
	return end > start ? end - start : 0;
}

/* For qsort(), ascending: doubles of which none is NaN, int64_t. */
int nps_by_double(const void *a, const void *b);
int nps_by_i64(const void *a, const void *b);

/* PART of ALL, which is not 0, in percent down to tenths, not rounded up: 100 if that is all. */
static inline double nps_percent(uint64_t part, uint64_t all)
{
	return (double)(uint64_t)((double)part / (double)all * 1000) / 10;
}

/* Mixes two words into one hash (splitmix64's finaliser). */
static inline uint64_t nps_hash2(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ULL + b;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* A hash of LEN bytes (FNV-1a, mixed by nps_hash2()). */
uint64_t nps_hash_bytes(const void *data, size_t len);

/*
 * Copies LEN bytes into DST as valid UTF-8: every invalid byte and every NUL becomes
 * U+FFFD. DST holds at least 3 * LEN + 1 bytes and is terminated. Returns its length.
 */
size_t nps_utf8_clean(char *dst, const char *src, size_t len);

/*
 * Moves FD past a hole of its file, in which nothing was ever written, by a multiple of UNIT bytes: sparse
 * files can be of any size. Returns the bytes that were skipped; 0 where there is none, or the file system
 * does not report it.
 */
uint64_t nps_skip_hole(int fd, size_t unit);

/*
 * Bytes of TEXT, at most MAX, without a last character that is not whole: where a text may be cut. The
 * first MAX bytes of TEXT are valid UTF-8.
 */
size_t nps_utf8_fit(const char *text, size_t max);

/* Length of the valid UTF-8 sequence at P (at most LEFT bytes), 0 if invalid. */
size_t nps_utf8_len(const char *p, size_t left);

#endif
