/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls to a worker, which a thread at the other end of the connection plays: what is sent, and that no reply
 * does harm.
 */
#include "driver/device_lib.h"
#include "device_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOUR_NS 3600000000000ULL

static void requests_are_as_documented(void **state)
{
	bool seen[NPS_WORKER_OPS] = { false };

	(void)state;
	for (size_t i = 0; i < DEVICE_CALLS; i++) {
		const struct device_call *c = &device_calls[i];
		struct device_answer a = device_call_full_answer(c);

		device_out.value = 0;
		device_out.got = 0;
		if (c->out)
			memset(c->out, 0, c->request.room);
		assert_int_equal(device_call_answered(c, &a), a.reply.code);
		assert_memory_equal(&device_peer.request, &c->request, sizeof(c->request));
		assert_false(device_peer_has_bytes(device_peer.fds[c->library]));
		assert_false(device_peer_has_bytes(
			device_peer.lib.fds[c->library])); /* each byte of the reply has been read */
		if (c->kept == DEVICE_KEEPS_VALUE)
			assert_int_equal(device_out.value, 0x123456789abc);
		/* a text's last byte is its end, whatever came */
		if (c->kept == DEVICE_KEEPS_DATA)
			assert_memory_equal(c->out, device_reply_data, c->request.room - 1);
		if (c->kept == DEVICE_KEEPS_DATA && c->library == NPS_WORKER_DCMI &&
		    c->request.op != NPS_WORKER_OPEN)
			assert_int_equal(device_out.got, c->request.room);
		seen[c->request.op] = true;
	}
	for (int op = NPS_WORKER_OPEN; op < NPS_WORKER_OPS; op++)
		assert_true(seen[op]);
}

/* A driver's own numbers, and that a library lacks the function. */
static void codes_are_returned(void **state)
{
	static const int codes[] = { -7, NPS_WORKER_NO_FUNCTION, INT32_MIN, 9, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < DEVICE_CALLS; i++)
		for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++) {
			const struct device_answer a = { .reply = { .op = device_calls[i].request.op,
								    .code = codes[k] },
							 .sent = DEVICE_ANSWER_WHOLE };
			/* positive, it is a number of bytes, which did not come */
			bool bytes = device_calls[i].request.op == NPS_WORKER_READ && codes[k] > 0;

			assert_int_equal(device_call_answered(&device_calls[i], &a),
					 bytes ? -EPROTO : codes[k]);
		}
}

/* So that a watchdog measures one call, not many. */
static void calls_report_when_they_begin(void **state)
{
	atomic_uint_fast64_t sign = 0;
	uint64_t before = nps_now(CLOCK_MONOTONIC);
	struct device_answer a = device_call_full_answer(&device_calls[0]);

	(void)state;
	device_peer.lib.sign = &sign;
	device_call_answered(&device_calls[0], &a);
	assert_in_range(atomic_load(&sign), before, nps_now(CLOCK_MONOTONIC));
}

static void parameters_of_a_start(void **state)
{
	static const uint32_t sizes[] = { 0, 1, NPS_PROF_PARAMETERS };
	static const uint32_t too_large[] = { NPS_PROF_PARAMETERS + 1, UINT32_MAX,
					      UINT32_MAX - sizeof(struct nps_worker_start) + 1 };
	const struct nps_worker_start expected = { .type = NPS_PROF_PERIPHERAL,
						   .period_ms = 20,
						   .real_time = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct device_answer a = { .reply = { .op = NPS_WORKER_START },
						 .sent = DEVICE_ANSWER_WHOLE };

		device_peer_begin(NPS_WORKER_HAL, &a);
		assert_int_equal(device_call_start_with(sizes[i]), 0);
		device_peer_join();
		assert_int_equal(device_peer.request.size, sizeof(expected) + sizes[i]);
		assert_memory_equal(device_peer.payload, &expected, sizeof(expected));
		assert_memory_equal(device_peer.payload + sizeof(expected), device_call_parameters, sizes[i]);
	}
	for (size_t i = 0; i < sizeof(too_large) / sizeof(*too_large); i++) {
		assert_int_equal(device_call_start_with(too_large[i]), -EINVAL);
		assert_false(device_peer_has_bytes(device_peer.fds[NPS_WORKER_HAL]));
	}
}

/* --- replies that make no sense ------------------------------------------------------------------------- */

/* The connection is of no more use: for none of the calls is anything sent. */
static void assert_exited(enum nps_worker_library library)
{
	assert_true(device_peer.lib.fds[library] >=
		    0); /* closed by who opened it, with nps_device_lib__close() alone */
	for (size_t i = 0; i < DEVICE_CALLS; i++) {
		if (device_calls[i].library != library)
			continue;
		assert_int_equal(device_calls[i].make(), NPS_DEVICE_LIB_EXITED);
		if (device_peer.fds[library] >= 0)
			assert_false(device_peer_has_bytes(device_peer.fds[library]));
	}
}

static void assert_call_breaks(const struct device_call *c, const struct device_answer *a)
{
	device_peer_close();
	device_peer_connect();
	assert_int_equal(device_call_answered(c, a), NPS_DEVICE_LIB_EXITED);
	assert_exited(c->library);
}

static void reply_to_another_request(void **state)
{
	(void)state;
	for (size_t i = 0; i < DEVICE_CALLS; i++)
		for (int k = 0; k < 3; k++) {
			struct device_answer a = device_call_full_answer(&device_calls[i]);

			a.reply.op = k == 0 ? 0 : k == 1 ? a.reply.op + 1 : a.reply.op | 1U << 31;
			assert_call_breaks(&device_calls[i], &a);
		}
}

static void reply_larger_than_its_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < DEVICE_CALLS; i++) {
		struct device_answer a = device_call_full_answer(&device_calls[i]);

		a.reply.size++;
		a.len++;
		assert_call_breaks(&device_calls[i], &a);
		a.reply.size = UINT32_MAX;
		a.len = sizeof(device_reply_data);
		assert_call_breaks(&device_calls[i], &a);
	}
}

static void connection_closed_within_a_reply(void **state)
{
	const size_t header = sizeof(struct nps_worker_reply);

	(void)state;
	for (size_t i = 0; i < DEVICE_CALLS; i++) {
		const size_t cuts[] = { 0, 1, header - 1, header, header + device_calls[i].request.room - 1 };

		for (size_t k = 0; k < sizeof(cuts) / sizeof(*cuts); k++) {
			struct device_answer a = device_call_full_answer(&device_calls[i]);

			a.sent = cuts[k];
			if (a.sent < header + a.len)
				assert_call_breaks(&device_calls[i], &a);
		}
	}
}

static void connection_closed_before_a_request(void **state)
{
	(void)state;
	for (int library = 0; library < 2; library++) {
		device_peer_close_one(library);
		assert_exited(library);
	}
}

/* Of two workers each has its own fate; of one, both libraries share it. */
static void what_a_worker_inherits(void **state)
{
	const struct device_call *hal = &device_calls[0], *dcmi = &device_calls[1];
	struct device_answer lie = device_call_full_answer(hal), truth = device_call_full_answer(dcmi);

	(void)state;
	lie.reply.op = 0;
	assert_int_equal(device_call_answered(hal, &lie), NPS_DEVICE_LIB_EXITED);
	assert_int_equal(device_call_answered(dcmi, &truth), 0);
	assert_exited(NPS_WORKER_HAL);
	device_peer_close();
	device_peer_connect();
	close(device_peer.lib.fds[NPS_WORKER_DCMI]);
	device_peer.lib.fds[NPS_WORKER_DCMI] = device_peer.lib.fds[NPS_WORKER_HAL];
	assert_int_equal(device_call_answered(hal, &lie), NPS_DEVICE_LIB_EXITED);
	assert_exited(NPS_WORKER_HAL);
	assert_exited(NPS_WORKER_DCMI);
}

/* How long a call of the library waits before it checks whether that makes sense. */
static void set_patience(unsigned int us)
{
	const struct timeval patience = { .tv_usec = us };

	for (int i = 0; i < 2; i++) {
		setsockopt(device_peer.lib.fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(device_peer.lib.fds[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
}

static void slow_workers_are_awaited(void **state)
{
	(void)state;
	set_patience(2000);
	for (size_t i = 0; i < DEVICE_CALLS; i++) {
		struct device_answer a = device_call_full_answer(&device_calls[i]);

		a.delay_us = 5000;
		assert_int_equal(device_call_answered(&device_calls[i], &a), a.reply.code);
	}
}

/* Of one that was ended nobody awaits a reply, and why it was ended is known. */
static void ended_workers_are_not_awaited(void **state)
{
	static _Alignas(
		16) char launcher[4096]; /* one that has not ended: all that is read of it here is 0 */
	static struct nps_device_worker worker = { .launcher = (void *)launcher,
						   .how = "was killed by signal 11" };

	(void)state;
	set_patience(2000);
	atomic_init(&worker.ended, true);
	device_peer.lib.launcher = worker.launcher;
	device_peer.lib.workers[NPS_WORKER_HAL] = &worker;
	assert_true(nps_device_lib__failed(&device_peer.lib));
	for (size_t i = 0; i < DEVICE_CALLS; i++)
		if (device_calls[i].library == NPS_WORKER_HAL)
			assert_int_equal(device_calls[i].make(), NPS_DEVICE_LIB_EXITED);
	assert_int_equal(device_call_load_hal(), NPS_DEVICE_LIB_EXITED);
	assert_string_equal(device_out.text, "the process that loads it was killed by signal 11");
	atomic_store(&worker.ended, false);
	assert_false(nps_device_lib__failed(&device_peer.lib));
}

static void closed_descriptors(void **state)
{
	int hal = device_peer.lib.fds[NPS_WORKER_HAL], dcmi = device_peer.lib.fds[NPS_WORKER_DCMI];

	(void)state;
	nps_device_lib__close(&device_peer.lib);
	for (int library = 0; library < 2; library++) {
		assert_int_equal(device_peer.lib.fds[library], -1);
		assert_false(device_peer.lib.has[library]);
	}
	assert_int_equal(fcntl(hal, F_GETFD), -1);
	assert_int_equal(fcntl(dcmi, F_GETFD), -1);
	for (size_t i = 0; i < DEVICE_CALLS; i++)
		assert_int_equal(device_calls[i].make(), NPS_DEVICE_LIB_EXITED);
	nps_device_lib__close(&device_peer.lib);
}

/* --- what a single function makes of its reply ---------------------------------------------------------- */

static void bytes_of_a_read(void **state)
{
	static const struct {
		int32_t code;
		uint32_t size;
		int returned;
	} replies[] = { { 100, 100, 100 },
			{ 40, 40, 40 },
			{ 1, 1, 1 },
			{ 0, 0, 0 },
			{ -5, 0, -5 },
			{ INT32_MIN, 0, INT32_MIN },
			{ 41, 40, -EPROTO },
			{ 39, 40, -EPROTO },
			{ 101, 100, -EPROTO },
			{ 101, 0, -EPROTO },
			{ 1, 0, -EPROTO },
			{ INT32_MAX, 0, -EPROTO },
			{ INT32_MAX, 8, -EPROTO } };

	(void)state;
	for (size_t i = 0; i < sizeof(device_reply_data); i++)
		device_reply_data[i] = (char)i;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		int code;

		memset(device_out.buf, 'x', sizeof(device_out.buf));
		code = device_call_answer(device_call_read,
					  (struct nps_worker_reply){ .op = NPS_WORKER_READ,
								     .code = replies[i].code,
								     .size = replies[i].size });
		assert_int_equal(code, replies[i].returned);
		assert_memory_equal(device_out.buf, device_reply_data, replies[i].size);
		for (size_t k = replies[i].size; k < sizeof(device_out.buf); k++)
			assert_int_equal(device_out.buf[k], 'x');
	}
}

/* More than a message can carry is never requested. */
static void size_of_a_read(void **state)
{
	static char large[NPS_WORKER_DATA + 64];
	const struct {
		uint32_t size, room;
	} reads[] = { { NPS_WORKER_DATA + 64, NPS_WORKER_DATA },
		      { NPS_WORKER_DATA, NPS_WORKER_DATA },
		      { 1, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		const struct device_answer a = { .reply = { .op = NPS_WORKER_READ,
							    .code = (int32_t)reads[i].room,
							    .size = reads[i].room },
						 .data = device_reply_data,
						 .len = reads[i].room,
						 .sent = DEVICE_ANSWER_WHOLE };

		memset(device_reply_data, 'd', sizeof(device_reply_data));
		memset(large, 'x', sizeof(large));
		device_peer_begin(NPS_WORKER_HAL, &a);
		assert_int_equal(nps_device_lib__read(&device_peer.lib, 7, 43, large, reads[i].size),
				 reads[i].room);
		device_peer_join();
		assert_int_equal(device_peer.request.room, reads[i].room);
		assert_memory_equal(large, device_reply_data, reads[i].room);
		assert_int_equal(large[reads[i].room], 'x');
	}
}

static void number_of_channels(void **state)
{
	static const struct {
		uint32_t passed, kept;
	} numbers[] = { { 0, 0 },
			{ 3, 3 },
			{ NPS_PROF_CHANNELS, NPS_PROF_CHANNELS },
			{ NPS_PROF_CHANNELS + 1, NPS_PROF_CHANNELS },
			{ UINT32_MAX, NPS_PROF_CHANNELS } };
	const struct nps_worker_reply reply = { .op = NPS_WORKER_GET_CHANNELS,
						.size = sizeof(device_out.channels) };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		memcpy(device_reply_data + offsetof(struct nps_prof_channels, n), &numbers[i].passed, 4);
		assert_int_equal(device_call_answer(device_call_channels, reply), 0);
		assert_int_equal(device_out.channels.n, numbers[i].kept);
	}
}

static void structures_of_another_size(void **state)
{
	static const struct {
		int (*make)(void);
		uint32_t op, size;
	} wholes[] = { { device_call_channels, NPS_WORKER_GET_CHANNELS, sizeof(device_out.channels) },
		       { device_call_chip_name, NPS_WORKER_CHIP_NAME, sizeof(device_out.name) } };

	(void)state;
	for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++) {
		const uint32_t sizes[] = { 0, 1, wholes[i].size - 1 };

		for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
			struct nps_worker_reply reply = { .op = wholes[i].op, .size = sizes[k] };

			assert_int_equal(device_call_answer(wholes[i].make, reply), -EPROTO);
			reply.code = 4; /* the driver's own reason is worth more */
			assert_int_equal(device_call_answer(wholes[i].make, reply), 4);
		}
	}
	/* dcmi_data: for its caller to judge */
	for (size_t i = 0; i < sizeof(device_out.hbm); i += 5) {
		const struct device_answer a = { .reply = { .op = NPS_WORKER_HBM, .size = (uint32_t)i },
						 .data = device_reply_data,
						 .len = i,
						 .sent = DEVICE_ANSWER_WHOLE };

		device_peer_begin(NPS_WORKER_DCMI, &a);
		assert_int_equal(device_call_hbm(), 0);
		device_peer_join();
		assert_int_equal(device_out.got, i);
	}
}

static void numbers_of_devices(void **state)
{
	struct nps_worker_reply reply = { .op = NPS_WORKER_DEVICES };

	(void)state;
	for (uint32_t n = 0; n <= NPS_DEVICE_MAX; n += 16) {
		for (uint32_t i = 0; i < n; i++)
			memcpy(device_reply_data + 4L * i, &(uint32_t){ 100 + i }, 4);
		reply.size = 4 * n;
		reply.code = 0;
		assert_int_equal(device_call_answer(device_call_devices, reply), 0);
		assert_int_equal(device_out.n_ids, n);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(device_out.ids[i], 100 + i);
		reply.code = -1;
		assert_int_equal(device_call_answer(device_call_devices, reply), -1);
		assert_int_equal(device_out.n_ids, 0);
	}
	reply = (struct nps_worker_reply){ .op = NPS_WORKER_DEVICES, .size = 7 };
	device_call_answer(device_call_devices, reply);
	assert_in_range(device_out.n_ids, 0, 1); /* part of a number is none */
}

static void texts_end(void **state)
{
	struct nps_worker_reply reply = { .op = NPS_WORKER_OPEN,
					  .size = sizeof(device_out.text),
					  .code = -ELIBACC };

	(void)state;
	memset(device_reply_data, 'a', sizeof(device_reply_data));
	memset(device_out.text, 'x', sizeof(device_out.text));
	assert_int_equal(device_call_answer(device_call_load_hal, reply), -ELIBACC);
	assert_int_equal(strnlen(device_out.text, sizeof(device_out.text)), sizeof(device_out.text) - 1);
	assert_memory_equal(device_out.text, device_reply_data, sizeof(device_out.text) - 1);
	reply.size = 0;
	memset(device_out.text, 'x', sizeof(device_out.text));
	assert_int_equal(device_call_answer(device_call_load_hal, reply), -ELIBACC);
	assert_string_equal(device_out.text, "");
	snprintf(device_reply_data, sizeof(device_reply_data), "/usr/lib64/libascend_hal.so");
	reply = (struct nps_worker_reply){ .op = NPS_WORKER_OPEN, .size = sizeof(device_out.text) };
	assert_int_equal(device_call_answer(device_call_load_hal, reply), 0);
	assert_string_equal(device_out.text, "/usr/lib64/libascend_hal.so");
	memset(device_reply_data, 'a', sizeof(device_reply_data));
	reply = (struct nps_worker_reply){ .op = NPS_WORKER_CHIP_NAME, .size = sizeof(device_out.name) };
	memset(device_out.name, 'x', sizeof(device_out.name));
	assert_int_equal(device_call_answer(device_call_chip_name, reply), 0);
	assert_int_equal(strnlen(device_out.name, sizeof(device_out.name)), sizeof(device_out.name) - 1);
	device_peer_close_one(NPS_WORKER_HAL);
	assert_int_equal(device_call_load_hal(), NPS_DEVICE_LIB_EXITED);
	assert_non_null(strstr(device_out.text, "has ended"));
}

/* --- instants of a call --------------------------------------------------------------------------------- */

static uint64_t later_than(uint64_t instant)
{
	uint64_t now;

	do
		now = nps_now(CLOCK_MONOTONIC_RAW);
	while (now <= instant);
	return now;
}

static struct nps_call_span stamped; /* what the reply holds */

static void stamp(struct nps_worker_reply *reply, uint64_t before, uint64_t after)
{
	reply->before = stamped.before = before;
	reply->after = stamped.after = after;
}

static void stamp_true(struct nps_worker_reply *reply)
{
	uint64_t now = later_than(0);

	stamp(reply, now, later_than(now));
}

static void stamp_at_once(struct nps_worker_reply *reply)
{
	uint64_t now = later_than(0);

	stamp(reply, now, now);
}

static void stamp_nothing(struct nps_worker_reply *reply)
{
	stamp(reply, 0, 0);
}

static void stamp_before(struct nps_worker_reply *reply)
{
	uint64_t now = later_than(0);

	stamp(reply, now - HOUR_NS, now);
}

static void stamp_after(struct nps_worker_reply *reply)
{
	uint64_t now = later_than(0);

	stamp(reply, now, now + HOUR_NS);
}

static void stamp_both_after(struct nps_worker_reply *reply)
{
	uint64_t now = later_than(0);

	stamp(reply, now + HOUR_NS, now + HOUR_NS);
}

static void stamp_reversed(struct nps_worker_reply *reply)
{
	uint64_t now = later_than(0);

	stamp(reply, later_than(now), now);
}

static void stamp_around_all_time(struct nps_worker_reply *reply)
{
	stamp(reply, 0, UINT64_MAX);
}

static void instants_of_a_call(void **state)
{
	static const struct {
		void (*stamp)(struct nps_worker_reply *reply);
		bool kept;
	} cases[] = { { stamp_true, true },	 { stamp_at_once, true },	  { stamp_nothing, false },
		      { stamp_before, false },	 { stamp_after, false },	  { stamp_both_after, false },
		      { stamp_reversed, false }, { stamp_around_all_time, false } };
	struct device_answer a = { .reply = { .op = NPS_WORKER_DEVICE_INFO, .value = 5 },
				   .sent = DEVICE_ANSWER_WHOLE };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t before = nps_now(CLOCK_MONOTONIC_RAW);

		a.stamp = cases[i].stamp;
		device_peer_begin(NPS_WORKER_HAL, &a);
		assert_int_equal(device_call_info(), 0);
		device_peer_join();
		if (cases[i].kept)
			assert_memory_equal(&device_out.span, &stamped, sizeof(device_out.span));
		else
			assert_memory_not_equal(&device_out.span, &stamped, sizeof(device_out.span));
		assert_in_range(device_out.span.before, before, device_out.span.after);
		assert_in_range(device_out.span.after, device_out.span.before, nps_now(CLOCK_MONOTONIC_RAW));
	}
	/* whoever does not need them */
	device_peer_begin(NPS_WORKER_HAL, &a);
	assert_int_equal(nps_device_lib__info(&device_peer.lib, 7, 3, -2, &device_out.value, NULL), 0);
	device_peer_join();
	assert_int_equal(device_out.value, 5);
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, device_peer_setup, device_peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONNECTED(requests_are_as_documented),
		CONNECTED(codes_are_returned),
		CONNECTED(calls_report_when_they_begin),
		CONNECTED(parameters_of_a_start),
		CONNECTED(reply_to_another_request),
		CONNECTED(reply_larger_than_its_room),
		CONNECTED(connection_closed_within_a_reply),
		CONNECTED(connection_closed_before_a_request),
		CONNECTED(what_a_worker_inherits),
		CONNECTED(slow_workers_are_awaited),
		CONNECTED(ended_workers_are_not_awaited),
		CONNECTED(closed_descriptors),
		CONNECTED(bytes_of_a_read),
		CONNECTED(size_of_a_read),
		CONNECTED(number_of_channels),
		CONNECTED(structures_of_another_size),
		CONNECTED(numbers_of_devices),
		CONNECTED(texts_end),
		CONNECTED(instants_of_a_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
