/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session directory while it is written (docs/session-format.md). Each stream has one writing thread.
 * What is on disk stays readable whatever happens: a chunk that could not be written whole is removed again.
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

struct nps_session_writer {
	char path[PATH_MAX];
	int dir_fd;
	int reserve; /* an unnamed file that reserves space for the last session.json: fd + 1, 0: none */
	atomic_uint failures; /* writes that failed; nps_session_writer__failed() */
	char failed_path[NPS_SESSION_FILE_MAX]; /* of the first one */
	int failed_error; /* -errno */
	unsigned int deleted; /* streams whose files were deleted */
	const char *deleted_name; /* of the first one */
	struct nps_stream events, strings, clocks;
	struct nps_stream host; /* only if the host is sampled */
	struct nps_stream device; /* only if devices are */
	struct nps_stream python; /* only if Python stacks are recorded */
	atomic_ullong other_bytes; /* bytes of other files */
};

/*
 * Creates OUT/npuscope_{host}_{time}/, in it session.json with DESCRIPTION (NULL: none) and then the
 * streams' files; also OUT if it does not exist. session.json is first, because a capture can be killed at
 * any moment, and the directory must be readable then. OUT must not be a symbolic link. 0; prints a failure
 * and returns -errno.
 */
int nps_session_writer__create_with(const char *out, const cJSON *description, struct nps_session_writer *s);
int nps_session_writer__create(const char *out, struct nps_session_writer *s);
void nps_session_writer__close(struct nps_session_writer *s);

/* Opens host.nps, for samples of the host. 0 or -errno. */
int nps_session_writer__open_host(struct nps_session_writer *s);

/* Opens python.nps, for Python stacks. 0 or -errno. */
int nps_session_writer__open_python(struct nps_session_writer *s);

/* Opens device.nps, for clocks and use of devices. 0 or -errno. */
int nps_session_writer__open_device(struct nps_session_writer *s);

enum nps_session_location {
	NPS_SESSION_THERE, /* where it was created */
	NPS_SESSION_MOVED, /* s->path is its current path */
	NPS_SESSION_UNREACHABLE, /* it exists, but its path is unknown */
	NPS_SESSION_DELETED,
};

/* Finds the directory: it, or a directory above it, may have been renamed or deleted. Updates s->path. */
enum nps_session_location nps_session_writer__locate(struct nps_session_writer *s);

/* Was it, or its events file, deleted? Two system calls, cheap enough for each turn. */
bool nps_session_writer__is_deleted(const struct nps_session_writer *s);

/* Frees the space that is reserved for the last session.json, which has to be written next. */
void nps_session_writer__release_reserve(struct nps_session_writer *s);

/* Removes a session that never began: the whole directory, session.json last. */
void nps_session_writer__discard(struct nps_session_writer *s);

/* Appends one chunk. 0 or -errno, which all later calls return too. */
int nps_stream__append(struct nps_stream *st, uint16_t type, uint32_t cpu, const void *payload, uint32_t len);

/*
 * Replaces session.json; `durable`: with fsync of it and of the
 * directory. 0 or -errno; the caller reports it.
 */
int nps_session_writer__write_json(struct nps_session_writer *s, const cJSON *json, bool durable);

/* First error of any stream, 0: none. */
int nps_session_writer__error(const struct nps_session_writer *s);

/* Bytes written so far. From any thread. */
uint64_t nps_session_writer__bytes(const struct nps_session_writer *s);

/* Adds BYTES written to a file that is not one of its streams. From any thread. */
void nps_session_writer__add_bytes(struct nps_session_writer *s, uint64_t bytes);

/*
 * Records that a write of the file PATH below the session directory
 * failed; session_end.h reports it. From any thread.
 */
void nps_session_writer__failed(struct nps_session_writer *s, const char *path, int err);

/*
 * Opens a file of that path below the session directory for writing, and creates directories (0750) on the
 * way. Returns a descriptor or -errno, which is recorded with nps_session_writer__failed().
 */
int nps_session_writer__open_file(struct nps_session_writer *s, const char *path);

/* Opens a file that nps_session_writer__open_file() created, for appending. */
int nps_session_writer__append_file(struct nps_session_writer *s, const char *path);

/* write(2) until all is written. 0 or -errno. */
int nps_write_all(int fd, const void *buf, size_t len);

/* fsync(2), if the file system supports it. 0 or -errno. */
int nps_sync(int fd);

#endif
