/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/findings.h"

static bool needs_call(const struct nps_task_table *t, size_t i)
{
	return !t->submit[i] && t->connection[i] != NPS_NO_ID && t->class[i] != NPS_CLASS_EVENT;
}

static bool any_needs_call(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };

	if (m->comm_op.t.len)
		return true;
	for (size_t i = 0; i < m->task.t.len; i++) {
		nps_pace__step(&pace);
		if (needs_call(&m->task, i))
			return true;
	}
	return false;
}

int nps_submits__init(struct nps_submits *s, const struct nps_model *m)
{
	const struct nps_api_table *api = &m->api;
	struct nps_pace pace = { .model = m };
	uint64_t low = NPS_NO_ID, high = 0, count = 0;
	int err = 0;

	*s = (struct nps_submits){ .model = m };
	if (!any_needs_call(m))
		return 0;
	for (size_t i = 0; i < api->t.len; i++) {
		nps_pace__step(&pace);
		if (api->connection[i] == NPS_NO_ID)
			continue;
		low = NPS_MIN(low, (uint64_t)api->connection[i]);
		high = NPS_MAX(high, (uint64_t)api->connection[i]);
		count++;
	}
	if (!count)
		return 0;
	nps_index__init(&s->calls, m->tmpfd, low, high, count);
	s->indexed = true;
	for (size_t i = 0; !err && i < api->t.len; i++) {
		nps_pace__step(&pace);
		if (api->connection[i] != NPS_NO_ID)
			err = nps_index__put(&s->calls, api->connection[i], i);
		nps_submits__step(s, i);
	}
	return err;
}

void nps_submits__free(struct nps_submits *s)
{
	if (s->indexed)
		nps_index__free(&s->calls);
	s->indexed = false;
}

uint64_t nps_submits__of_connection(const struct nps_submits *s, uint32_t connection, uint64_t start)
{
	uint32_t row = s->indexed && connection != NPS_NO_ID ? nps_index__get(&s->calls, connection)
							     : NPS_NONE;

	/* Somewhere within the call: what began before the call returned was submitted by then. */
	return row == NPS_NONE ? 0 : NPS_MIN(s->model->api.end[row], start);
}

uint64_t nps_submits__of_task(const struct nps_submits *s, size_t i)
{
	const struct nps_task_table *t = &s->model->task;

	return t->submit[i] ? t->submit[i] : nps_submits__of_connection(s, t->connection[i], t->start[i]);
}
