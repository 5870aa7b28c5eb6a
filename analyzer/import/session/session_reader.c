/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/session_reader.h"

#include "base/input_file.h"
#include "base/util.h"
#include "stack.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define JSON_MAX (64UL << 20)
#define DOUBLE_DIGITS 15 /* integers up to here survive a double */

/* Reads LEN bytes. Fewer at the end of the file; negative errno, which has been reported. */
static ssize_t read_full(int fd, void *buf, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = read(fd, (char *)buf + have, len - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			n = -errno;
			nps_input__unreadable_fd(fd, (int)n);
			return n;
		}
		if (!n)
			break;
		have += n;
	}
	return have;
}

/* Bytes of one record, 0 for a type that this version does not know. */
static size_t record_size(unsigned int type)
{
	static const size_t sizes[] = {
		[NPS_CHUNK_EVENTS] = sizeof(struct nps_event),
		[NPS_CHUNK_STRINGS] = sizeof(struct nps_string),
		[NPS_CHUNK_CLOCKS] = sizeof(struct nps_clock),
		[NPS_CHUNK_DEVICE_CLOCKS] = sizeof(struct nps_device_clock),
		[NPS_CHUNK_LOSS] = sizeof(struct nps_loss),
		/* bytes: the records have their own sizes */
		[NPS_CHUNK_STACKS] = 1,
		[NPS_CHUNK_MAPS] = 1,
		[NPS_CHUNK_KSYMS] = sizeof(struct nps_ksym),
		[NPS_CHUNK_VDSO] = 1,
		[NPS_CHUNK_HOST_NAMES] = sizeof(struct nps_host_name),
		[NPS_CHUNK_HOST_CPUS] = sizeof(struct nps_host_cpu),
		[NPS_CHUNK_HOST_SYSTEM] = sizeof(struct nps_host_system),
		[NPS_CHUNK_HOST_THREADS] = sizeof(struct nps_host_thread),
		[NPS_CHUNK_HOST_PROCESSES] = sizeof(struct nps_host_process),
		[NPS_CHUNK_HOST_MEMORY] = sizeof(struct nps_host_memory),
		[NPS_CHUNK_HOST_DISKS] = sizeof(struct nps_host_disk),
		[NPS_CHUNK_HOST_CARDS] = sizeof(struct nps_host_card),
		[NPS_CHUNK_DEVICE_RAWS] = sizeof(struct nps_device_clock),
		[NPS_CHUNK_NPU_USAGE] = sizeof(struct nps_npu_usage),
		[NPS_CHUNK_NPU_PROCESSES] = sizeof(struct nps_npu_process),
		[NPS_CHUNK_PY_STACKS] = 1,
		[NPS_CHUNK_PY_CODES] = 1,
	};

	return type < NPS_ARRAY_SIZE(sizes) ? sizes[type] : 0;
}

/* Reads the next chunk into CHUNK and BUF. 1 good, 0 end: see RESULT. */
static int next_chunk(int fd, struct nps_chunk *chunk, void *buf, struct nps_chunks *result)
{
	ssize_t n = read_full(fd, chunk, sizeof(*chunk));

	result->end = n < 0 ? NPS_CHUNKS_UNREADABLE : NPS_CHUNKS_COMPLETE;
	if (n <= 0)
		return 0;
	if ((size_t)n < sizeof(*chunk)) {
		result->end = NPS_CHUNKS_CUT;
		return 0;
	}
	result->end = NPS_CHUNKS_DAMAGED;
	if (chunk->magic != NPS_CHUNK_MAGIC)
		return 0;
	if (chunk->version != NPS_SESSION_VERSION) {
		result->end = NPS_CHUNKS_VERSION;
		result->version = chunk->version;
		return 0;
	}
	if (chunk->len > NPS_CHUNK_MAX || chunk->seq != result->chunks)
		return 0;
	n = read_full(fd, buf, chunk->len);
	if (n < 0) {
		result->end = NPS_CHUNKS_UNREADABLE;
		return 0;
	}
	if ((size_t)n < chunk->len) {
		result->end = NPS_CHUNKS_CUT;
		return 0;
	}
	if (crc32(crc32(0, NULL, 0), buf, chunk->len) != chunk->crc)
		return 0;
	if (record_size(chunk->type) && chunk->len % record_size(chunk->type))
		return 0;
	result->end = NPS_CHUNKS_COMPLETE;
	return 1;
}

int nps_chunks__read(int dirfd, const char *name, nps_chunk_fn fn, void *ctx, struct nps_chunks *result)
{
	struct nps_chunk chunk;
	struct stat st;
	void *buf = NULL;
	int fd, err;

	*result = (struct nps_chunks){ 0 };
	fd = nps_input_file__open(dirfd, name, &st);
	if (fd < 0) {
		result->end = fd == -ENOENT ? NPS_CHUNKS_MISSING : NPS_CHUNKS_UNREADABLE;
		return 0;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	buf = malloc(NPS_CHUNK_MAX);
	err = buf ? 0 : -ENOMEM;
	while (!err && (err = next_chunk(fd, &chunk, buf, result)) > 0) {
		err = record_size(chunk.type) ? fn(ctx, &chunk, buf) : 0;
		result->unknown += !record_size(chunk.type);
		result->chunks++;
		result->bytes += sizeof(chunk) + chunk.len;
	}
	free(buf);
	close(fd);
	return err;
}

/* Copies SRC to DST (twice its size), putting quotes around integers that a double would round. */
static void quote_long_integers(char *dst, const char *src)
{
	bool string = false;

	while (*src) {
		size_t digits = strspn(src, "0123456789");
		bool whole = digits && !strchr(".eE", src[digits] ? src[digits] : ' ');

		if (string || !digits) {
			if (string && *src == '\\' && src[1])
				*dst++ = *src++;
			else if (*src == '"')
				string = !string;
			*dst++ = *src++;
			continue;
		}
		if (whole && digits > DOUBLE_DIGITS && dst[-1] != '-' && dst[-1] != '.' && dst[-1] != '+')
			*dst++ = '"';
		else
			whole = false;
		memcpy(dst, src, digits);
		dst += digits;
		src += digits;
		if (whole)
			*dst++ = '"';
	}
	*dst = 0;
}

/* TEXT of LEN bytes as a document; NULL with errno. What is not UTF-8 would come out in every result. */
static struct cJSON *json_parse(const char *text, size_t len)
{
	char *clean = malloc(len * 3 + 1), *quoted = NULL;
	struct cJSON *json = NULL;

	if (clean) {
		len = nps_utf8_clean(clean, text, len);
		quoted = malloc(len * 2 + 4);
	}
	errno = ENOMEM;
	if (quoted) {
		quoted[0] = ' '; /* so that there is always a character before */
		quote_long_integers(quoted + 1, clean);
		json = cJSON_Parse(quoted);
		errno = EILSEQ;
	}
	free(clean);
	free(quoted);
	return json;
}

/* The SIZE bytes of FD as a document; NULL with errno. */
static struct cJSON *json_read(int fd, size_t size)
{
	struct cJSON *json;
	ssize_t n;
	char *text;
	int err;

	if (size > JSON_MAX) {
		errno = EFBIG;
		return NULL;
	}
	text = malloc(size + 1);
	if (!text) {
		errno = ENOMEM;
		return NULL;
	}
	n = read_full(fd, text, size);
	json = n < 0 ? NULL : json_parse(text, n);
	err = n < 0 ? -n : errno;
	free(text);
	errno = err;
	return json;
}

struct cJSON *nps_session__json(int dirfd, const char *name)
{
	struct stat st = { 0 };
	int fd = nps_input_file__open(dirfd, name, &st), err;
	struct cJSON *json;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	json = json_read(fd, (size_t)st.st_size);
	err = errno;
	close(fd);
	errno = err;
	return json;
}

bool nps_json_has_u64(const struct cJSON *object, const char *name, uint64_t *value)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	char *end;

	if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 9e15) {
		*value = item->valuedouble;
		return true;
	}
	if (!cJSON_IsString(item) || !isdigit((unsigned char)item->valuestring[0]))
		return false;
	errno = 0;
	*value = strtoull(item->valuestring, &end, 10);
	return !*end && !errno;
}

uint64_t nps_json_u64(const struct cJSON *object, const char *name, uint64_t def)
{
	uint64_t value;

	return nps_json_has_u64(object, name, &value) ? value : def;
}

const char *nps_json_str(const struct cJSON *object, const char *name, const char *def)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : def;
}
