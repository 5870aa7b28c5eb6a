/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "import/common/group_hash.h"
#include "launches.h"
#include "schema/tables.h"

#include <string.h>

static void group_hashes_are_the_vendors(void **state)
{
	(void)state; /* read from real captures */
	assert_true(nps_group_hash("90.91.105.46%enp189s0f0_60000_0_1736414082311975") ==
		    11978775601474615865ULL);
	assert_true(nps_group_hash("90.91.105.46%enp189s0f0_60000_0_1736410538306028") ==
		    17148521525495523210ULL);
	assert_true(nps_group_hash("group_name_0") == 5862276093215481612ULL);
}

static void phases_in_two_threads(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 100, text("aclnnLayerNorm"), 0);
	mark(NPS_PROBE_NN_L0, 1, 110, text("Cast"), 0xe1);
	mark(NPS_PROBE_NN_L0, 1, 120, text("LayerNormV3"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 2, 200, text("aclnnLayerNorm"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 2, 210, 0xe1, 0x77);
	launch(2, 220, 0xf1, 0);
	launch(2, 240, 0xf2, 0);
	launch(2, 260, 0xf3, 0); /* more launches than operators */
	build();
	assert_string_equal(name_of(0), "aclnnLayerNorm_Cast");
	assert_string_equal(type_of(0), "Cast");
	assert_string_equal(name_of(1), "aclnnLayerNorm_LayerNormV3");
	assert_string_equal(name_of(2), "kernel@0xf3");
	assert_int_equal(NPS_AT(&model.subs, struct nps_sub, 0).kind, NPS_TASK_COMPUTE);
}

static void an_executor_runs_again_or_is_reused(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_L0, 1, 10, text("Add"), 0xe1);
	for (uint64_t t = 100; t < 300; t += 100) { /* repeatable */
		mark(NPS_PROBE_NN_PHASE2, 1, t, text("aclnnAdd"), 0xe1);
		mark(NPS_PROBE_NN_RUN, 1, t + 10, 0xe1, 0);
		launch(1, t + 20, 0xf1, 0);
	}
	mark(NPS_PROBE_NN_L0, 1, 400, text("Mul"), 0xe1); /* the same address, another operator */
	mark(NPS_PROBE_NN_PHASE2, 1, 500, text("aclnnMul"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 510, 0xe1, 0);
	launch(1, 520, 0xf2, 0);
	build();
	assert_string_equal(name_of(0), "aclnnAdd_Add");
	assert_string_equal(name_of(1), "aclnnAdd_Add");
	assert_string_equal(name_of(2), "aclnnMul_Mul");
}

static void phase_1_before_the_capture_is_learned(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnAdd"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 110, 0xe1, 0);
	launch(1, 120, 0xf1, 0);
	mark(NPS_PROBE_NN_PHASE2, 1, 130, text("aclnnMul"), 0xe9);
	mark(NPS_PROBE_NN_RUN, 1, 140, 0xe9, 0);
	launch(1, 150, 0xf9, 0); /* never seen otherwise */
	mark(NPS_PROBE_NN_PHASE1, 1, 200, text("aclnnAdd"), 0);
	mark(NPS_PROBE_NN_L0, 1, 210, text("AddV2"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 300, text("aclnnAdd"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 310, 0xe1, 0);
	launch(1, 320, 0xf1, 0);
	build();
	assert_string_equal(name_of(0), "aclnnAdd_AddV2");
	assert_string_equal(type_of(0), "AddV2");
	assert_string_equal(name_of(1), "kernel@0xf9");
	assert_string_equal(name_of(2), "aclnnAdd_AddV2");
}

static void handles_have_the_name_of_their_time(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_BIN_GET_FUNC, 1, 100, 110, text("first_kernel"), 0xf1, 0xb1);
	launch(1, 200, 0xf1, 0);
	event(NPS_EV_API, NPS_PROBE_BIN_GET_FUNC, 1, 300, 310, text("second_kernel"), 0xf1, 0xb1);
	launch(1, 400, 0xf1, 0);
	launch(1, 500, 0xabc0, 0);
	model.procs[0].json = model.json =
		cJSON_Parse("{\"symbols\": [{\"address\": 43968, \"name\": \"stub_fn\"}]}");
	build();
	assert_string_equal(name_of(0), "first_kernel");
	assert_string_equal(name_of(1), "second_kernel");
	assert_string_equal(name_of(2), "stub_fn");
}

/*
 * Calls that outlive the capture: a launch that has submitted is one, a
 * synchronisation has synchronised nothing.
 */
static void what_did_not_return(void **state)
{
	const struct nps_cann *rows;
	struct nps_event *ev;

	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 90, text("aclnnAdd"), 0);
	mark(NPS_PROBE_NN_L0, 1, 95, text("Add"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnAdd"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 110, 0xe1, 0);
	launch(1, 120, 0xf1, 0);
	ev = &NPS_AT(&model.events, struct nps_event, model.events.len - 1);
	ev->ret = -1;
	ev->flags = NPS_F_UNFINISHED;
	event(NPS_EV_API, NPS_PROBE_SYNC_DEVICE, 2, 125, 900, 0, 0, 0);
	ev = &NPS_AT(&model.events, struct nps_event, model.events.len - 1);
	ev->ret = -1;
	ev->flags = NPS_F_UNFINISHED;
	build();
	assert_string_equal(name_of(0), "aclnnAdd_Add");
	assert_int_equal(model.syncs.len, 0);
	assert_int_equal(model.procs[0].cann.len, 5);
	rows = model.procs[0].cann.data;
	assert_int_equal(rows[2].ending, NPS_ENDING_UNFINISHED);
	assert_int_equal(rows[3].ending, NPS_ENDING_SEEN); /* the node is as long as is known */
	assert_int_equal(rows[4].ending, NPS_ENDING_UNFINISHED);
	assert_int_equal(rows[4].end, 900);
}

static void the_rows_of_a_launch(void **state)
{
	const struct nps_cann *rows;

	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 90, text("aclnnAdd"), 0);
	mark(NPS_PROBE_NN_L0, 1, 95, text("Add"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnAdd"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 110, 0xe1, 0);
	launch(1, 120, 0xf1, 0);
	event(NPS_EV_API, NPS_PROBE_SYNC_DEVICE, 1, 200, 900, 0, 0, 0); /* not part of the operator */
	build();
	assert_int_equal(model.procs[0].cann.len, 5);
	rows = model.procs[0].cann.data;
	assert_string_equal(nps_strings__get(&model.strings, rows[0].name), "aclnnAddGetWorkspaceSize");
	assert_int_equal(rows[0].start, 90);
	assert_int_equal(rows[0].end, 95);
	assert_string_equal(nps_strings__get(&model.strings, rows[1].name), "aclnnAdd");
	assert_int_equal(rows[1].start, 100);
	assert_int_equal(rows[1].end, 129);
	assert_true(rows[1].ending == NPS_ENDING_LOWER_BOUND);
	assert_int_equal(rows[2].level, NPS_LAYER_ACL);
	assert_int_equal(rows[3].level, NPS_LAYER_NODE);
	assert_int_equal(rows[3].start, 120);
	assert_int_equal(rows[3].end, 129);
	assert_int_equal(rows[3].conn, 4);
	assert_string_equal(nps_strings__get(&model.strings, rows[3].item), "aclnnAdd_Add");
	assert_int_equal(NPS_AT(&model.subs, struct nps_sub, 0).cann, 3);
}

/* Ends that were probed: an operator within another one, and one that an exception left. */
static void ends_of_operators(void **state)
{
	const struct nps_cann *rows;

	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 90, text("aclnnOuter"), 0);
	mark(NPS_PROBE_NN_PHASE1_LEFT, 1, 99, text("aclnnOuter"), 0);
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnOuter"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 110, text("aclnnThrows"), 0xe2);
	mark(NPS_PROBE_NN_PHASE2, 1, 120, text("aclnnInner"), 0xe3);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 150, text("aclnnInner"), 0);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 200, text("aclnnOuter"), 0);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 210, text("aclnnThrows"), 0); /* of a call before the capture */
	mark(NPS_PROBE_NN_PHASE2, 2, 205, text("aclnnOther"), 0xe4);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 220, text("aclnnOther"), 0); /* in another thread */
	build();
	assert_int_equal(model.procs[0].cann.len, 5);
	rows = model.procs[0].cann.data;
	assert_int_equal(rows[0].end, 99);
	assert_int_equal(rows[1].end, 200);
	assert_int_equal(rows[1].ending, NPS_ENDING_SEEN);
	assert_int_equal(rows[2].ending, NPS_ENDING_LOWER_BOUND);
	assert_int_equal(rows[3].end, 150);
	assert_int_equal(rows[3].ending, NPS_ENDING_SEEN);
	assert_int_equal(rows[4].ending, NPS_ENDING_LOWER_BOUND);
}

/* What is launched after an inner operator has ended belongs to the outer one. */
static void launches_after_an_inner_operator(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 50, text("aclnnOuter"), 0);
	mark(NPS_PROBE_NN_L0, 1, 51, text("First"), 0xe1);
	mark(NPS_PROBE_NN_L0, 1, 52, text("Second"), 0xe1);
	mark(NPS_PROBE_NN_PHASE1, 1, 60, text("aclnnInner"), 0);
	mark(NPS_PROBE_NN_L0, 1, 61, text("Between"), 0xe2);
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnOuter"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 101, 0xe1, 0);
	launch(1, 105, 0xf1, 0);
	mark(NPS_PROBE_NN_PHASE2, 1, 120, text("aclnnInner"), 0xe2);
	mark(NPS_PROBE_NN_RUN, 1, 121, 0xe2, 0);
	launch(1, 125, 0xf2, 0);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 150, text("aclnnInner"), 0);
	launch(1, 160, 0xf3, 0);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 200, text("aclnnOuter"), 0);
	build();
	assert_string_equal(name_of(0), "aclnnOuter_First");
	assert_string_equal(name_of(1), "aclnnInner_Between");
	assert_string_equal(name_of(2), "aclnnOuter_Second");
}

/* An inner operator that an exception left is over when the outer one is. */
static void launches_after_an_operator_that_was_left(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 60, text("aclnnThrows"), 0);
	mark(NPS_PROBE_NN_L0, 1, 61, text("First"), 0xe2);
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnOuter"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 120, text("aclnnThrows"), 0xe2);
	mark(NPS_PROBE_NN_RUN, 1, 121, 0xe2, 0);
	mark(NPS_PROBE_NN_PHASE2_LEFT, 1, 200, text("aclnnOuter"), 0);
	launch(1, 260, 0xf1, 0);
	build();
	assert_string_equal(name_of(0), "kernel@0xf1");
}

/*
 * Begun before the capture: its kernel is named by what is learnt, from
 * the innermost of the calls that launch.
 */
static void an_operator_holds_its_whole_launch(void **state)
{
	const struct nps_cann *rows;

	(void)state;
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnAdd"), 0xe1);
	mark(NPS_PROBE_NN_RUN, 1, 110, 0xe1, 0);
	submission(1, 128, 0, 2, 7);
	event(NPS_EV_API, NPS_PROBE_RTS_LAUNCH_HOST_ARGS, 1, 125, 140, 0xf1, 8, 0x77);
	event(NPS_EV_API, NPS_PROBE_LAUNCH_HOST_ARGS, 1, 120, 150, 0xf1, 8, 0x77);
	build();
	rows = model.procs[0].cann.data;
	assert_string_equal(nps_strings__get(&model.strings, rows[0].name), "aclnnAdd");
	assert_int_equal(rows[0].start, 100);
	assert_int_equal(rows[0].end, 150);
}

static void other_tasks_have_the_vendors_names(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_MEMCPY_ASYNC, 1, 10, 20, 4096, 1, 0x77);
	sent(1, 12, 14, 17, 2, 0);
	sent(1, 30, 31, 7, 2, 0);
	sent(1, 32, 33, 63, 2, 0); /* a slot of the one before */
	build();
	assert_int_equal(model.subs.len, 2);
	assert_string_equal(name_of(0), "MEMCPY_ASYNC");
	assert_int_equal(NPS_AT(&model.subs, struct nps_sub, 0).size, 4096);
	assert_int_equal(NPS_AT(&model.subs, struct nps_sub, 0).memcpy_op, 1);
	assert_string_equal(name_of(1), "Notify Wait");
	assert_int_equal(NPS_AT(&model.subs, struct nps_sub, 1).cann, NPS_NONE);
}

static void marks_inside_a_launch(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnAdd"), 0xe1); /* its first phase was not seen */
	mark(NPS_PROBE_NN_L0, 1, 121, text("Mul"), 0xe2);
	launch(1, 120, 0xf1, 0);
	build();
	assert_string_equal(name_of(0), "kernel@0xf1");
}

static void sqe(uint32_t tid, uint64_t at, uint64_t device, unsigned int type, uint64_t stream)
{
	sent(tid, at, at + 1, type, stream, at)->sqe.device = device;
}

static const struct nps_sync *sync_at(size_t i)
{
	assert_true(i < model.syncs.len);
	return &NPS_AT(&model.syncs, struct nps_sync, i);
}

static void devices_have_the_drivers_numbers(void **state)
{
	(void)state;
	model.procs[0].json = model.json =
		cJSON_Parse("{\"env\": {\"ASCEND_RT_VISIBLE_DEVICES\": \"5,3,0\"}}");
	event(NPS_EV_API, NPS_PROBE_SET_DEVICE, 1, 10, 20, 1, 0, 0);
	event(NPS_EV_API, NPS_PROBE_SYNC_DEVICE, 1, 100, 200, 0, 0, 0); /* as in the environment */
	event(NPS_EV_API, NPS_PROBE_SET_DEVICE, 2, 10, 20, 0, 0, 0);
	sqe(2, 30, 6, 0, 2);
	event(NPS_EV_API, NPS_PROBE_SYNC_DEVICE, 2, 100, 200, 0, 0, 0);
	event(NPS_EV_API, NPS_PROBE_SET_DEVICE, 3, 10, 20, 0, 0, 0);
	event(NPS_EV_API, NPS_PROBE_SYNC_DEVICE, 3, 100, 200, 0, 0, 0); /* as thread 2 was seen to do */
	build();
	assert_int_equal(model.syncs.len, 3);
	assert_int_equal(sync_at(0)->device, 3);
	assert_int_equal(sync_at(1)->device, 6);
	assert_int_equal(sync_at(2)->device, 6);
}

static void streams_of_a_collective_are_not_the_callers(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, 1, 10, 15, 0xe7, 0x77, 0);
	sqe(1, 11, 0, NPS_SQE_EVENT_RECORD, 5);
	event(NPS_EV_API, NPS_PROBE_HCCL_ALL_REDUCE, 1, 20, 40, 8, 4, 0xc0);
	NPS_AT(&model.events, struct nps_event, 2).call.slot[3] = 0x77;
	sqe(1, 22, 0, NPS_SQE_NOTIFY_RECORD, 5);
	sqe(1, 24, 0, NPS_SQE_SDMA, 9);
	event(NPS_EV_API, NPS_PROBE_SYNC_STREAM, 1, 50, 60, 0x77, 0, 0);
	build();
	assert_int_equal(model.syncs.len, 1);
	assert_int_equal(sync_at(0)->stream, 5);
}

static void default_streams_belong_to_a_context(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_MEMCPY_ASYNC, 1, 10, 20, 64, 1, 0);
	sqe(1, 12, 0, NPS_SQE_PCIE_DMA, 2);
	event(NPS_EV_API, NPS_PROBE_MEMCPY_ASYNC, 2, 30, 40, 64, 1, 0);
	sqe(2, 32, 1, NPS_SQE_PCIE_DMA, 7);
	event(NPS_EV_API, NPS_PROBE_SYNC_STREAM, 1, 50, 60, 0, 0, 0);
	event(NPS_EV_API, NPS_PROBE_SET_DEVICE, 1, 70, 71, 1, 0, 0);
	event(NPS_EV_API, NPS_PROBE_SYNC_STREAM, 1, 80, 90, 0, 0, 0); /* which one that is was not seen */
	build();
	assert_int_equal(model.syncs.len, 1);
	assert_int_equal(sync_at(0)->device, 0);
	assert_int_equal(sync_at(0)->stream, 2);
}

static void events_stand_for_their_last_record(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, 1, 10, 20, 0xe7, 0x77, 0);
	sqe(1, 12, 0, NPS_SQE_EVENT_RECORD, 2);
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, 1, 30, 40, 0xe7, 0x77, 0);
	sqe(1, 32, 0, NPS_SQE_EVENT_RECORD, 2);
	event(NPS_EV_API, NPS_PROBE_QUERY_EVENT, 2, 35, 36, 0xe7, 1, 0); /* while it is recorded again */
	event(NPS_EV_API, NPS_PROBE_QUERY_EVENT, 2, 45, 46, 0xe7, 1, 0);
	event(NPS_EV_API, NPS_PROBE_DESTROY_EVENT, 1, 50, 51, 0xe7, 0, 0);
	event(NPS_EV_API, NPS_PROBE_QUERY_EVENT, 2, 60, 61, 0xe7, 1, 0); /* a new one: never recorded */
	build();
	assert_int_equal(model.syncs.len, 2);
	assert_int_equal(sync_at(0)->cover, 13);
	assert_int_equal(sync_at(1)->cover, 33);
}

static void histories_are_in_order_of_time(void **state)
{
	struct nps_history history;
	uint64_t value = 0;

	(void)state;
	nps_history__init(&history, AT_FDCWD);
	for (uint64_t i = 200; i-- > 0;) /* latest first, two keys in turn */
		assert_int_equal(nps_history__add(&history, i & 1, 10 * i, i), 0);
	assert_int_equal(nps_history__add(&history, 1, 10, 999), 0); /* at one time the last one counts */
	assert_int_equal(nps_history__finish(&history), 0);
	assert_false(nps_history__at(&history, 1, 9, &value));
	assert_true(nps_history__at(&history, 1, 29, &value));
	assert_int_equal(value, 999);
	for (uint64_t t = 30; t < 2100; t++) {
		assert_true(nps_history__at(&history, 1, t, &value));
		assert_int_equal(value, t >= 1990 ? 199 : (t / 10 - 1) | 1);
	}
	assert_true(nps_history__near(&history, 0, 0, &value));
	assert_int_equal(value, 0);
	assert_false(nps_history__near(&history, 5, 0, &value));
	nps_history__free(&history);
}

static void histories_do_not_cross_a_reset(void **state)
{
	static const uint64_t values[] = { NPS_NONE, NPS_NONE, NPS_NONE, 7, 7, NPS_NONE, NPS_NONE };
	struct nps_history history;

	(void)state;
	nps_history__init(&history, AT_FDCWD);
	assert_int_equal(nps_history__reset(&history, 1, 10), 0);
	assert_int_equal(nps_history__reset(&history, 1, 20), 0);
	assert_int_equal(nps_history__add(&history, 1, 30, 7), 0);
	assert_int_equal(nps_history__reset(&history, 1, 40), 0);
	assert_int_equal(nps_history__finish(&history), 0);
	for (uint64_t t = 0; t < NPS_ARRAY_SIZE(values); t++) {
		uint64_t value = NPS_NONE;

		assert_int_equal(nps_history__near(&history, 1, 9 * t, &value), values[t] != NPS_NONE);
		assert_true(values[t] == NPS_NONE || value == values[t]);
	}
	nps_history__free(&history);
}

static void names_of_a_thread_that_is_renamed(void **state)
{
	const unsigned int renames = 200000; /* each of them looked up: in a second or two, not in an hour */

	(void)state;
	assert_int_equal(nps_history__add(&model.comms, 7, 30, 1), 0);
	assert_int_equal(nps_history__add(&model.comms, 7, 20, 2), 0); /* reported late */
	assert_int_equal(nps_history__add(&model.comms, 7, 40, 2), 0);
	for (uint64_t i = 0; i < renames; i++)
		assert_int_equal(nps_history__add(&model.comms, 8, 10 * i + 10, i % 2), 0);
	assert_int_equal(nps_history__finish(&model.comms), 0);
	assert_int_equal(nps_session__comm_at(&model, 7, 1),
			 2); /* before the first: as it was called first */
	assert_int_equal(nps_session__comm_at(&model, 7, 29), 2);
	assert_int_equal(nps_session__comm_at(&model, 7, 39), 1);
	assert_int_equal(nps_session__comm_at(&model, 7, 99), 2);
	for (uint64_t i = 0; i < renames; i++)
		assert_int_equal(nps_session__comm_at(&model, 8, 10 * i + 15), i % 2);
	assert_int_equal(nps_session__comm_at(&model, 9, 15), NPS_NONE);
}

static void all_reduce(uint64_t at)
{
	event(NPS_EV_API, NPS_PROBE_HCCL_ALL_REDUCE, 1, at, at + 9, 8, 4, 0xc0);
	sqe(1, at + 2, 0, NPS_SQE_SDMA, 5);
}

static void expect_group(size_t row, const char *name, uint32_t ranks)
{
	const struct nps_comm_op *op = &NPS_AT(&model.procs[0].comms, struct nps_comm_op, row);

	assert_string_equal(nps_strings__get(&model.strings, op->run.group), name);
	assert_int_equal(op->run.ranks, ranks);
}

static uint64_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits | 0xffffffff00000000; /* the upper half is whatever was there */
}

static const struct nps_timing *timing_at(size_t i)
{
	assert_true(i < model.timings.len);
	return &NPS_AT(&model.timings, struct nps_timing, i);
}

/* Of two records of an event the one that it stood for counts, and none while it is recorded. */
static void events_have_times(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, 1, 10, 20, 0xe7, 0x77, 0);
	sqe(1, 12, 0, NPS_SQE_EVENT_RECORD, 2);
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, 1, 30, 40, 0xe8, 0x77, 0);
	sqe(1, 31, 0, NPS_SQE_PLACE_HOLDER, 2); /* numbers begin anew */
	sqe(1, 33, 0, NPS_SQE_EVENT_RECORD, 2);
	event(NPS_EV_API, NPS_PROBE_WAIT_EVENT, 1, 41, 44, 0xe8, 0x78, 0);
	sqe(1, 42, 0, NPS_SQE_EVENT_WAIT, 3);
	event(NPS_EV_API, NPS_PROBE_EVENT_ELAPSED, 2, 50, 60, 0xe7, 0xe8, float_bits(1.5F));
	event(NPS_EV_API, NPS_PROBE_EVENT_TIMESTAMP, 2, 61, 62, 0xe8, 123456, 0);
	event(NPS_EV_API, NPS_PROBE_EVENT_ELAPSED, 2, 65, 66, 0xe7, 0xe9, float_bits(1)); /* never recorded */
	event(NPS_EV_API, NPS_PROBE_EVENT_ELAPSED, 2, 75, 90, 0xe7, 0xe8, float_bits(1));
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, 1, 70, 80, 0xe8, 0x77, 0);
	sqe(1, 72, 1, NPS_SQE_EVENT_RECORD, 2);
	event(NPS_EV_API, NPS_PROBE_EVENT_ELAPSED, 2, 91, 92, 0xe7, 0xe8, float_bits(1)); /* two devices */
	build();
	assert_int_equal(model.timings.len, 3);
	assert_int_equal(timing_at(0)->kind, NPS_TIMING_WAIT);
	assert_int_equal(timing_at(0)->from.last, 2);
	assert_int_equal(timing_at(0)->to.last, 3);
	assert_int_equal(timing_at(1)->kind, NPS_TIMING_BETWEEN);
	assert_true(timing_at(1)->ns == 1500000 && timing_at(1)->error >= 1000 && timing_at(1)->error < 1001);
	assert_int_equal(timing_at(1)->from.first, 0);
	assert_int_equal(timing_at(1)->from.last, 0);
	assert_int_equal(timing_at(1)->to.first, 1);
	assert_int_equal(timing_at(1)->to.last, 2);
	assert_int_equal(timing_at(2)->kind, NPS_TIMING_AT);
	assert_int_equal(timing_at(2)->at, 123456000);
	assert_int_equal(timing_at(2)->to.last, 2);
}

static void communicators_end(void **state)
{
	(void)state;
	all_reduce(10); /* made before the capture */
	event(NPS_EV_API, NPS_PROBE_HCCL_COMM_NAME, 1, 20, 25, 0xc0, text("group_A"), 0);
	event(NPS_EV_API, NPS_PROBE_HCCL_RANK_SIZE, 1, 30, 35, 0xc0, 2, 0);
	event(NPS_EV_API, NPS_PROBE_HCCL_COMM_INIT, 2, 40, 75, 8, 0, 0xc0); /* another thread waits */
	all_reduce(50);
	event(NPS_EV_API, NPS_PROBE_HCCL_COMM_DESTROY, 1, 60, 65, 0xc0, 0, 0);
	all_reduce(80);
	event(NPS_EV_API, NPS_PROBE_HCCL_COMM_DESTROY, 1, 90, 95, 0xc0, 0, 0);
	event(NPS_EV_API, NPS_PROBE_HCCL_COMM_INIT, 1, 100, 105, 4, 0, 0xc0);
	all_reduce(110);
	event(NPS_EV_API, NPS_PROBE_HCCL_COMM_NAME, 1, 120, 125, 0xc0, text("group_A"), 0);
	build();
	expect_group(0, "group_A", 2);
	expect_group(1, "group_A", 2);
	expect_group(2, "comm@0xc0", 8); /* nobody queried it while it lived */
	expect_group(3, "group_A", 4);
	assert_int_equal(NPS_AT(&model.procs[0].comms, struct nps_comm_op, 0).run.count, 8);
}

static void counts_that_were_not_reported(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_HCCL_BARRIER, 1, 10, 19, 0, 0, 0xc0);
	sqe(1, 12, 0, NPS_SQE_NOTIFY_RECORD, 5);
	all_reduce(30);
	NPS_AT(&model.events, struct nps_event, 2).flags = NPS_F_SLOT_FAULT(0);
	build();
	assert_int_equal(model.procs[0].comms.len, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(NPS_AT(&model.procs[0].comms, struct nps_comm_op, i).run.count == UINT64_MAX);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_hashes_are_the_vendors),
		cmocka_unit_test(histories_are_in_order_of_time),
		cmocka_unit_test(histories_do_not_cross_a_reset),
		TEST(phases_in_two_threads),
		TEST(an_executor_runs_again_or_is_reused),
		TEST(phase_1_before_the_capture_is_learned),
		TEST(handles_have_the_name_of_their_time),
		TEST(the_rows_of_a_launch),
		TEST(ends_of_operators),
		TEST(launches_after_an_inner_operator),
		TEST(launches_after_an_operator_that_was_left),
		TEST(an_operator_holds_its_whole_launch),
		TEST(what_did_not_return),
		TEST(other_tasks_have_the_vendors_names),
		TEST(marks_inside_a_launch),
		TEST(devices_have_the_drivers_numbers),
		TEST(streams_of_a_collective_are_not_the_callers),
		TEST(default_streams_belong_to_a_context),
		TEST(events_stand_for_their_last_record),
		TEST(events_have_times),
		TEST(communicators_end),
		TEST(counts_that_were_not_reported),
		TEST(names_of_a_thread_that_is_renamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
