/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session directory while it is written (docs/session-format.md). Each stream
 * has one writing thread. What is on disk stays readable whatever happens: a chunk that
 * could not be written whole is taken back.
 */
#ifndef NPS_SESSION_WRITER_H
#define NPS_SESSION_WRITER_H

#include <limits.h>
#include <linux/types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <cjson/cJSON.h>

#include "session.h"

struct nps_stream {
	int fd;
	uint64_t seq;
	atomic_ullong size; /* bytes */
	atomic_int error; /* first -errno; nothing is written after it */
};

struct nps_session {
	char path[PATH_MAX];
	int dir_fd;
	struct nps_stream events, strings, clocks;
	struct nps_stream host; /* only if the host is sampled */
	struct nps_stream device; /* only if devices are */
	atomic_ullong other_bytes; /* of files beside those */
};

/*
 * Creates OUT/npuscope_{host}_{time}/ and its files; OUT itself too when it does not exist.
 * OUT must not be a symbolic link. On failure prints one line and returns -errno.
 */
int nps_session__create(const char *out, struct nps_session *s);
void nps_session__close(struct nps_session *s);

/* host.nps, for samples of the host. -errno. */
int nps_session__open_host(struct nps_session *s);

/* device.nps, for clocks and use of devices. -errno. */
int nps_session__open_device(struct nps_session *s);

/* Removes a session that never began. */
void nps_session__discard(struct nps_session *s);

/* Appends one chunk. -errno, now and at every later call. */
int nps_stream__append(struct nps_stream *st, uint16_t type, uint32_t cpu, const void *payload, uint32_t len);

/* Replaces session.json; `durable`: with fsync. -errno. */
int nps_session__write_json(struct nps_session *s, const cJSON *json, bool durable);

/* First error of any stream, 0 if all is well. */
int nps_session__error(const struct nps_session *s);

/* Bytes that were written so far. From any thread. */
uint64_t nps_session__bytes(const struct nps_session *s);

/* BYTES were written to a file that is not one of its streams. From any thread. */
void nps_session__add_bytes(struct nps_session *s, uint64_t bytes);

/* Opens for writing a file of that path below the session directory, creating directories (0750) on the way. */
int nps_session__open_file(struct nps_session *s, const char *path);

/* Opens one that nps_session__open_file() made, for appending. */
int nps_session__append_file(const struct nps_session *s, const char *path);

/* write(2) until done. -errno. */
int nps_write_all(int fd, const void *buf, size_t len);

#endif
