/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/csv_device_time.h"

#include <errno.h>
#include <string.h>

static int device_time_add(struct nps_device_times *t, uint32_t connection, uint64_t ns, bool aicore)
{
	uint32_t row = nps_index__get(&t->rows, connection);
	struct nps_device_time *time;
	int err;

	if (row == NPS_NONE) {
		err = nps_index__put(&t->rows, connection, t->times.len);
		if (err)
			return err;
		time = nps_vec__push(&t->times);
		if (!time)
			return -errno;
	} else {
		time = &NPS_AT(&t->times, struct nps_device_time, row);
	}
	time->all = nps_add_sat(time->all, ns);
	if (aicore)
		time->aicore = nps_add_sat(time->aicore, ns);
	return 0;
}

static bool is_aicore(const struct nps_model *m, uint32_t text, uint32_t *known)
{
	if (text == *known)
		return true;
	if (strcmp(nps_model__text(m, text), "AI_CORE"))
		return false;
	*known = text;
	return true;
}

/* A collective counts as one, and the parts of a parent count themselves. */
static bool counts(const struct nps_model *m, size_t task)
{
	return m->task.class[task] != NPS_CLASS_COMM && m->task.class[task] != NPS_CLASS_PARENT &&
	       m->task.connection[task] != NPS_NO_ID && m->task.end[task] > m->task.start[task];
}

static bool comm_counts(const struct nps_model *m, size_t op)
{
	return m->comm_op.connection[op] != NPS_NO_ID && m->comm_op.end[op] > m->comm_op.start[op];
}

static void find_range(struct nps_device_times *t, const struct nps_model *m, struct nps_pace *pace)
{
	uint64_t low = UINT64_MAX, high = 0, count = 0, connection;

	for (size_t i = 0; i < m->task.t.len; i++) {
		nps_pace__step(pace);
		if (!counts(m, i))
			continue;
		connection = m->task.connection[i];
		low = NPS_MIN(low, connection);
		high = NPS_MAX(high, connection);
		count++;
	}
	for (size_t i = 0; i < m->comm_op.t.len; i++) {
		nps_pace__step(pace);
		if (!comm_counts(m, i))
			continue;
		connection = m->comm_op.connection[i];
		low = NPS_MIN(low, connection);
		high = NPS_MAX(high, connection);
		count++;
	}
	nps_index__init(&t->rows, m->tmpfd, low, high, count);
}

int nps_device_times__init(struct nps_device_times *t, const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	uint32_t known = NPS_NONE - 1; /* no text */
	int err = 0;

	nps_vec__init(&t->times, m->tmpfd, sizeof(struct nps_device_time));
	find_range(t, m, &pace);
	for (size_t i = 0; !err && i < m->task.t.len; i++) {
		nps_pace__step(&pace);
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_device_times__cool(t);
		if (counts(m, i))
			err = device_time_add(t, m->task.connection[i], m->task.end[i] - m->task.start[i],
					      is_aicore(m, m->task.hw_type[i], &known));
	}
	for (size_t i = 0; !err && i < m->comm_op.t.len; i++) {
		nps_pace__step(&pace);
		if (comm_counts(m, i))
			err = device_time_add(t, m->comm_op.connection[i],
					      m->comm_op.end[i] - m->comm_op.start[i], false);
	}
	return err;
}

struct nps_device_time nps_device_times__get(const struct nps_device_times *t, uint32_t connection)
{
	uint32_t row = nps_index__get(&t->rows, connection);
	struct nps_device_time time = { 0 };

	if (row != NPS_NONE)
		time = NPS_AT(&t->times, struct nps_device_time, row);
	return time;
}

void nps_device_times__cool(const struct nps_device_times *t)
{
	nps_index__cool(&t->rows);
	nps_vec__cool(&t->times);
}

void nps_device_times__free(struct nps_device_times *t)
{
	nps_index__free(&t->rows);
	nps_vec__free(&t->times);
}
