/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/torch/records.h"

#include "base/input_file.h"
#include "base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW (1UL << 20)
#define LONGEST (16UL << 20) /* bytes of a record; those of a profiler are some KB */
#define HEAD 6 /* u16 type or id, u32 length */
#define SURE_LENGTH (WINDOW / 2) /* what is taken for a record in the middle of damage is not longer, */
#define SURE_FIELDS 64 /* and has not more fields: so looking for one costs little */

int nps_fw_file__open(struct nps_fw_file *file, struct nps_model *model, int dirfd, const char *name)
{
	struct stat st;

	*file = (struct nps_fw_file){ .name = name, .model = model };
	file->fd = nps_input_file__open(dirfd, name, &st);
	if (file->fd < 0)
		return file->fd;
	file->buf = malloc(WINDOW);
	if (!file->buf) {
		close(file->fd);
		return -ENOMEM;
	}
	file->room = WINDOW;
	file->left = st.st_size;
	posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	nps_progress__stage(model->progress, name, file->left, NULL);
	return 0;
}

/* Bytes from the next one to the end of the file. */
static uint64_t rest(const struct nps_fw_file *f)
{
	return f->len - f->at + f->left;
}

static bool window_make_room(struct nps_fw_file *f, size_t need)
{
	uint8_t *bigger;

	memmove(f->buf, f->buf + f->at, f->len - f->at);
	f->len -= f->at;
	f->at = 0;
	if (need <= f->room)
		return true;
	bigger = realloc(f->buf, need + WINDOW);
	if (!bigger) {
		f->err = -ENOMEM;
		return false;
	}
	f->buf = bigger;
	f->room = need + WINDOW;
	return true;
}

/* Brings NEED bytes into the window; false if the file has not so many or cannot be read. */
static bool window_fill(struct nps_fw_file *f, size_t need)
{
	if (f->len - f->at >= need)
		return true;
	if (f->err || rest(f) < need || !window_make_room(f, need))
		return false;
	while (f->left && f->len < f->room) {
		uint64_t hole = nps_skip_hole(f->fd, 1);
		ssize_t got;

		f->left -= NPS_MIN(hole, f->left);
		f->damaged += hole > 0;
		got = read(f->fd, f->buf + f->len, NPS_MIN(f->left, (uint64_t)(f->room - f->len)));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) { /* or it became shorter while it was read */
			f->err = got ? -errno : 0;
			if (got)
				nps_input__unreadable_fd(f->fd, f->err);
			f->left = 0;
			break;
		}
		f->len += got;
		f->left -= got;
	}
	return f->len >= need;
}

static void skip(struct nps_fw_file *f, size_t bytes)
{
	f->at += bytes;
	nps_progress__add(f->model->progress, bytes);
}

static unsigned int type_at(const uint8_t *p)
{
	return p[0] | p[1] << 8;
}

static uint32_t length_at(const uint8_t *p)
{
	return p[2] | p[3] << 8 | p[4] << 16 | (uint32_t)p[5] << 24;
}

/* Takes the LEN bytes at P as fields; false if they are not, or more than MAX. */
static bool fields(const uint8_t *p, size_t len, size_t max, struct nps_fw_record *record)
{
	for (; len; max--) {
		uint32_t size;
		unsigned int id;

		if (len < HEAD || !max)
			return false;
		id = type_at(p);
		size = length_at(p);
		if (size > len - HEAD)
			return false;
		if (record && id < NPS_FW_FIELDS)
			record->fields[id] = (struct nps_fw_text){ (const char *)p + HEAD, size, true };
		p += HEAD + size;
		len -= HEAD + size;
	}
	return true;
}

/* Whether a record of KIND could begin SKIP bytes from here, or the file ends there. */
static bool could_go_on(struct nps_fw_file *f, size_t skip, unsigned int kind, size_t fixed)
{
	const uint8_t *p;

	if (rest(f) == skip)
		return true;
	if (!window_fill(f, skip + HEAD))
		return false;
	p = f->buf + f->at + skip;
	return type_at(p) == kind && length_at(p) >= fixed && length_at(p) <= LONGEST;
}

/* Whether here is a record of KIND for sure. */
static bool surely(struct nps_fw_file *f, unsigned int kind, size_t fixed)
{
	const uint8_t *p = f->buf + f->at;
	size_t len;

	if (type_at(p) != kind)
		return false;
	len = length_at(p);
	if (len < fixed || len > SURE_LENGTH || !window_fill(f, HEAD + len))
		return false;
	return fields(f->buf + f->at + HEAD + fixed, len - fixed, SURE_FIELDS, NULL) &&
	       could_go_on(f, HEAD + len, kind, fixed);
}

/* Goes on behind damage: to the next offset that is certainly a record, or to the end. */
static void find_next(struct nps_fw_file *f, unsigned int kind, size_t fixed)
{
	do
		skip(f, 1);
	while (window_fill(f, HEAD) && !surely(f, kind, fixed));
	if (rest(f) < HEAD)
		f->at = f->len;
}

bool nps_fw_file__typed(struct nps_fw_file *f, unsigned int kind, size_t fixed, struct nps_fw_record *record)
{
	while (window_fill(f, HEAD)) {
		unsigned int type = type_at(f->buf + f->at);
		size_t len = length_at(f->buf + f->at);
		bool whole = len <= LONGEST && window_fill(f, HEAD + len);
		const uint8_t *body = f->buf + f->at + HEAD;

		if (whole && type == kind && len >= fixed) {
			*record = (struct nps_fw_record){ .fixed = body };
			if (fields(body + fixed, len - fixed, SIZE_MAX, record)) {
				skip(f, HEAD + len);
				return true;
			}
		}
		if (whole && could_go_on(f, HEAD + len, kind, fixed)) {
			*(type == kind ? &f->damaged : &f->unknown) += 1;
			skip(f, HEAD + len);
			continue;
		}
		f->damaged++;
		find_next(f, kind, fixed);
	}
	f->damaged += f->len > f->at; /* shorter than a head */
	f->at = f->len;
	return false;
}

const uint8_t *nps_fw_file__plain(struct nps_fw_file *f, size_t size)
{
	const uint8_t *p;

	if (!window_fill(f, size)) {
		f->damaged += f->len > f->at;
		f->at = f->len;
		return NULL;
	}
	p = f->buf + f->at;
	skip(f, size);
	return p;
}

void nps_fw_file__close(struct nps_fw_file *f)
{
	nps_model__lost(f->model, f->damaged, "damaged records of FRAMEWORK/%s", f->name);
	nps_model__lost(f->model, f->unknown, "records of unknown type in FRAMEWORK/%s", f->name);
	if (f->err)
		nps_model__lost(f->model, 1, "rest of FRAMEWORK/%s: %s", f->name, strerror(-f->err));
	free(f->buf);
	close(f->fd);
}
