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

#define NPS_SESSION_FILE_MAX 256 /* bytes of a path below the session directory */

struct nps_session {
	char path[PATH_MAX];
	int dir_fd;
	int reserve; /* an unnamed file that holds room for the last session.json: fd + 1, 0: none */
	atomic_uint failures; /* writes that failed; nps_session__failed() */
	char failed_path[NPS_SESSION_FILE_MAX]; /* of the first one */
	int failed_error; /* -errno */
	unsigned int deleted; /* streams whose files somebody deleted */
	const char *deleted_name; /* of the first one */
	struct nps_stream events, strings, clocks;
	struct nps_stream host; /* only if the host is sampled */
	struct nps_stream device; /* only if devices are */
	atomic_ullong other_bytes; /* of files beside those */
};

/*
 * Creates OUT/npuscope_{host}_{time}/, in it session.json with DESCRIPTION (NULL: none) and then the streams' files; OUT
 * itself too when it does not exist. session.json is the first file: a capture can be killed at any moment, and the
 * directory must be readable then. OUT must not be a symbolic link. On failure prints one line and returns -errno.
 */
int nps_session__create_with(const char *out, const cJSON *description, struct nps_session *s);
int nps_session__create(const char *out, struct nps_session *s);
void nps_session__close(struct nps_session *s);

/* host.nps, for samples of the host. -errno. */
int nps_session__open_host(struct nps_session *s);

/* device.nps, for clocks and use of devices. -errno. */
int nps_session__open_device(struct nps_session *s);

enum nps_session_location {
	NPS_SESSION_THERE, /* where it was made */
	NPS_SESSION_MOVED, /* s->path is where it is now */
	NPS_SESSION_UNREACHABLE, /* it exists, but no path of ours leads to it */
	NPS_SESSION_DELETED,
};

/* Where the directory is now: somebody may have renamed or deleted it, or a directory above it. */
enum nps_session_location nps_session__locate(struct nps_session *s);

/* Was it deleted, or its events? Two system calls, for between two turns. */
bool nps_session__is_deleted(const struct nps_session *s);

/* Frees the room that is kept for the last session.json: to be written next. */
void nps_session__release_reserve(struct nps_session *s);

/* Removes a session that never began: the whole directory, session.json last. */
void nps_session__discard(struct nps_session *s);

/* Appends one chunk. -errno, now and at every later call. */
int nps_stream__append(struct nps_stream *st, uint16_t type, uint32_t cpu, const void *payload, uint32_t len);

/* Replaces session.json; `durable`: with fsync of it and of the directory. -errno; the caller reports it. */
int nps_session__write_json(struct nps_session *s, const cJSON *json, bool durable);

/* First error of any stream, 0 if all is well. */
int nps_session__error(const struct nps_session *s);

/* Bytes that were written so far. From any thread. */
uint64_t nps_session__bytes(const struct nps_session *s);

/* BYTES were written to a file that is not one of its streams. From any thread. */
void nps_session__add_bytes(struct nps_session *s, uint64_t bytes);

/* Notes that a write of the file PATH below the session directory failed; session_end.h reports it. Any thread. */
void nps_session__failed(struct nps_session *s, const char *path, int err);

/*
 * Opens for writing a file of that path below the session directory, creating directories (0750) on the way. -errno,
 * which is noted with nps_session__failed().
 */
int nps_session__open_file(struct nps_session *s, const char *path);

/* Opens one that nps_session__open_file() made, for appending. */
int nps_session__append_file(struct nps_session *s, const char *path);

/* write(2) until done. -errno. */
int nps_write_all(int fd, const void *buf, size_t len);

/* fsync(2), where the file system has it. -errno. */
int nps_sync(int fd);

#endif
