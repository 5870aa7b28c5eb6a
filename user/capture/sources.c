/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/source.h"

#include <poll.h>
#include <string.h>

#include "capture/capture.h"
#include "core/log.h"

/* A capture that was not initialised, as in tests, has the rows too; none of them is wanted. */
static const struct nps_source_ops *const *rows_of(const struct nps_capture *c)
{
	return c->rows ? c->rows : nps_source_rows;
}

static size_t rows_count(const struct nps_capture *c)
{
	const struct nps_source_ops *const *rows = rows_of(c);
	size_t n = 0;

	while (n < NPS_SOURCES_MAX && rows[n])
		n++;
	return n;
}

static bool source_is_active(const struct nps_source *s)
{
	return s->wanted && !s->failed;
}

void nps_sources__init(struct nps_capture *c, const struct nps_source_ops *const *rows)
{
	size_t n;

	c->rows = rows;
	n = rows_count(c);
	for (size_t i = 0; i < n; i++) {
		const struct nps_source_ops *ops = rows_of(c)[i];

		c->sources[i] = (struct nps_source){ .wanted = !ops->wanted || ops->wanted(c->opts) };
	}
}

int nps_sources__start(struct nps_capture *c, enum nps_start_stage stage)
{
	size_t n = rows_count(c);

	for (size_t i = 0; i < n; i++) {
		const struct nps_source_ops *ops = rows_of(c)[i];
		struct nps_source *s = &c->sources[i];
		int err = source_is_active(s) && ops->start ? ops->start(c, s, stage) : 0;

		if (!err)
			continue;
		nps_debug("%s, stage %d of its start: %s", ops->name, stage, strerror(-err));
		if (!ops->optional)
			return err;
		s->failed = true;
		c->degraded = true;
	}
	return 0;
}

size_t nps_sources__fds(struct nps_capture *c, struct pollfd *fds, int *wait_ms)
{
	size_t n = rows_count(c), used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct nps_source_ops *ops = rows_of(c)[i];
		struct nps_source *s = &c->sources[i];
		int fd = source_is_active(s) && ops->fd ? ops->fd(c, s, wait_ms) : -1;

		if (fd >= 0)
			fds[used++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return used;
}

const char *nps_sources__turn(struct nps_capture *c, enum nps_turn_kind kind)
{
	size_t n = rows_count(c);
	const char *first = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct nps_source_ops *ops = rows_of(c)[i];
		struct nps_source *s = &c->sources[i];
		const char *reason = source_is_active(s) && ops->turn ? ops->turn(c, s, kind) : NULL;

		first = first ? first : reason;
	}
	return first;
}

int nps_sources__process(struct nps_capture *c, const struct nps_source_event *e)
{
	size_t n = rows_count(c);
	int first = 0;

	for (size_t k = 0; k < n; k++) {
		size_t i = e->kind == NPS_EVENT_EXECUTED ? n - 1 - k : k;
		const struct nps_source_ops *ops = rows_of(c)[i];
		struct nps_source *s = &c->sources[i];
		int err = source_is_active(s) && ops->process ? ops->process(c, s, e) : 0;

		first = first ? first : err;
	}
	return first;
}

/* A source that uses another's programs or libraries follows it in the table, and ends before it. */
static bool is_backwards(enum nps_end_stage stage)
{
	return stage == NPS_END_ACCOUNT || stage == NPS_END_DISARM || stage == NPS_END_STOP ||
	       stage == NPS_END_DETACH || stage == NPS_END_CANCEL;
}

void nps_sources__end(struct nps_capture *c, enum nps_end_stage stage)
{
	size_t n = rows_count(c);

	for (size_t k = 0; k < n; k++) {
		size_t i = is_backwards(stage) ? n - 1 - k : k;
		const struct nps_source_ops *ops = rows_of(c)[i];
		struct nps_source *s = &c->sources[i];

		bool undone = stage == NPS_END_RESTORE || stage == NPS_END_CANCEL;

		if (s->wanted && (undone || !s->failed) && ops->end)
			ops->end(c, s, stage);
	}
}

void nps_sources__count(const struct nps_capture *c, struct nps_lost_counts *n)
{
	size_t rows = rows_count(c);

	memset(n, 0, sizeof(*n));
	for (size_t i = 0; i < rows; i++)
		if (rows_of(c)[i]->count)
			rows_of(c)[i]->count(c, &c->sources[i], n);
}

void nps_sources__describe(const struct nps_capture *c, enum nps_section section, cJSON *session, cJSON *part)
{
	size_t n = rows_count(c);

	for (size_t i = 0; i < n; i++)
		if (rows_of(c)[i]->describe)
			rows_of(c)[i]->describe(c, &c->sources[i], section, session, part);
}

void nps_sources__programs(const struct nps_capture *c, nps_program_fn each, void *arg)
{
	size_t n = rows_count(c);

	for (size_t i = 0; i < n; i++)
		if (source_is_active(&c->sources[i]) && rows_of(c)[i]->programs)
			rows_of(c)[i]->programs(c, &c->sources[i], each, arg);
}

void nps_sources__print(const struct nps_capture *c, FILE *out)
{
	size_t n = rows_count(c);

	for (size_t i = 0; i < n; i++)
		if (source_is_active(&c->sources[i]) && rows_of(c)[i]->print)
			rows_of(c)[i]->print(c, &c->sources[i], out);
}

void nps_sources__uncosted(const struct nps_capture *c, char *text, size_t size)
{
	size_t n = rows_count(c), used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++)
		if (source_is_active(&c->sources[i]) && c->sources[i].state && rows_of(c)[i]->uncosted)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " and " : "",
						 rows_of(c)[i]->uncosted);
}

void nps_sources__free(struct nps_capture *c)
{
	for (size_t i = rows_count(c); i-- > 0;) {
		if (c->sources[i].wanted && rows_of(c)[i]->free)
			rows_of(c)[i]->free(c, &c->sources[i]);
		c->sources[i] = (struct nps_source){ 0 };
	}
}
