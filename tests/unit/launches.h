/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording of one process, made of events that a test writes, and what becomes of its launches. Include it
 * behind cmocka.h, in one file of a program.
 */
#ifndef NPS_TEST_LAUNCHES_H
#define NPS_TEST_LAUNCHES_H

#include <fcntl.h>

#include "import/session/join.h"
#include "import/session/names.h"

#define PID 50

static struct nps_session model;
static struct nps_names names;

static int setup(void **state)
{
	(void)state;
	nps_session__init(&model, AT_FDCWD, AT_FDCWD);
	nps_session__proc(&model, PID);
	model.end = INT64_MAX;
	names = (struct nps_names){ 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nps_names__free(&names);
	nps_session__free(&model);
	return 0;
}

static inline uint64_t text(const char *s)
{
	uint32_t id = nps_strings__addz(&model.strings, s);

	nps_map__put(&model.string_ids, 1000 + id, id);
	return 1000 + id;
}

static inline void event(unsigned int kind, unsigned int probe, uint32_t tid, uint64_t start, uint64_t end,
			 uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct nps_event *ev = nps_vec__push(&model.events);

	*ev = (struct nps_event){ .kind = kind,
				  .probe = probe,
				  .pid = PID,
				  .tid = tid,
				  .start = start,
				  .dur = end - start,
				  .call.slot = { a0, a1, a2 } };
}

static inline void mark(unsigned int probe, uint32_t tid, uint64_t at, uint64_t a0, uint64_t a1)
{
	event(NPS_EV_MARK, probe, tid, at, at, a0, a1, 0);
}

/* An SQE alone in its call. */
static inline struct nps_event *sent(uint32_t tid, uint64_t start, uint64_t end, unsigned int type,
				     uint16_t stream, uint16_t task)
{
	struct nps_event *ev;

	event(NPS_EV_SQE, NPS_PROBE_SQ_TASK_SEND, tid, start, end, 0, 0, 0);
	ev = &NPS_AT(&model.events, struct nps_event, model.events.len - 1);
	ev->sqe.count = 1;
	ev->sqe.sqe = (struct nps_sqe_head){ .type = type, .blocks = 8, .stream = stream, .task = task };
	return ev;
}

static inline void submission(uint32_t tid, uint64_t at, unsigned int type, uint16_t stream, uint16_t task)
{
	sent(tid, at + 2, at + 4, type, stream, task);
}

static inline void launch_call(uint32_t tid, uint64_t at, uint64_t handle)
{
	event(NPS_EV_API, NPS_PROBE_LAUNCH, tid, at, at + 9, handle, 8, 0x77);
}

/* A launch of HANDLE at AT with its submission of TYPE. */
static inline void launch(uint32_t tid, uint64_t at, uint64_t handle, unsigned int type)
{
	submission(tid, at, type, 2, at);
	launch_call(tid, at, handle);
}

static inline void build(void)
{
	assert_int_equal(nps_names__build(&names, &model), 0);
	assert_int_equal(nps_nest__run(&model, &names), 0);
	assert_int_equal(nps_nest__number(&model), 0);
}

static inline const char *name_of(size_t sub)
{
	return nps_strings__get(&model.strings, NPS_AT(&model.subs, struct nps_sub, sub).name);
}

static inline const char *type_of(size_t sub)
{
	return nps_strings__get(&model.strings, NPS_AT(&model.subs, struct nps_sub, sub).type);
}

#endif
