/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls to a worker, which a thread at the other end of the connection plays: what is sent, and that no reply
 * does harm. As which user the worker for the host's driver runs.
 */
#include "driver/device_lib.h"
#include "driver/device_user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE SIZE_MAX
#define PATIENCE_S 5 /* of the worker's, for a request */
#define TEST_S 60
#define HOUR_NS 3600000000000ULL
#define NOBODY 65534

/* --- the worker ----------------------------------------------------------------------------------------- */

struct answer {
	struct nps_worker_reply reply;
	const void *data;
	size_t len; /* bytes of data that follow the reply, whatever size it states */
	size_t sent; /* bytes of both before the connection is closed; WHOLE: it stays open */
	unsigned int delay_us; /* before the first of them */
	void (*stamp)(struct nps_worker_reply *reply); /* sets the instants; NULL: they are as given */
};

static struct {
	struct nps_device_lib lib;
	int fds[2]; /* the workers' ends */
	pthread_t thread;
	bool runs; /* the thread */
	enum nps_worker_library library; /* that the thread plays */
	struct answer answer;
	bool received; /* a whole request, which is: */
	struct nps_worker_request request;
	char payload[1024];
} peer;

/* What the driver's functions return, between redzones of the sanitizer. */
static char data_of_replies[NPS_WORKER_DATA + 64];
static struct nps_prof_channels channels;
static struct nps_call_span span;
static struct nps_dcmi_hbm hbm;
static struct nps_dcmi_process processes[NPS_DCMI_PROCESSES];
static struct nps_dcmi_packets packets;
static char text[NPS_WORKER_TEXT], name[NPS_CHIP_TEXT], buf[100];
static uint32_t ids[NPS_DEVICE_MAX], n_ids;
static int cards[8];
static int64_t value;
static size_t got;

static void workers_connect(void)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };

	memset(&peer, 0, sizeof(peer));
	nps_device_lib__init(&peer.lib, NULL);
	for (int i = 0; i < 2; i++) {
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		for (int end = 0; end < 2; end++) {
			setsockopt(fds[end], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
			setsockopt(fds[end], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		}
		peer.lib.fds[i] = fds[0];
		peer.fds[i] = fds[1];
		peer.lib.has[i] = true; /* but no worker that could be ended */
	}
}

static void worker_close(enum nps_worker_library library)
{
	if (peer.fds[library] >= 0)
		close(peer.fds[library]);
	peer.fds[library] = -1;
}

static void workers_close(void)
{
	nps_device_lib__close(&peer.lib);
	worker_close(NPS_WORKER_HAL);
	worker_close(NPS_WORKER_DCMI);
}

static int setup(void **state)
{
	(void)state;
	alarm(TEST_S); /* a call that nobody answers would wait for ever */
	workers_connect();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (peer.runs) { /* a test failed meanwhile */
		nps_device_lib__close(&peer.lib);
		pthread_join(peer.thread, NULL);
	}
	workers_close();
	alarm(0);
	return 0;
}

static bool receive_whole(int fd, void *to, size_t len)
{
	return !len || recv(fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

/* Piece by piece: no reply comes with one recv(2). Stops after LEFT bytes. */
static size_t send_parts(int fd, const char *at, size_t len, size_t part, size_t left)
{
	len = len < left ? len : left;
	for (size_t done = 0, n; done < len; done += n) {
		n = len - done < part ? len - done : part;
		if (send(fd, at + done, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
	}
	return left - len;
}

static void *worker_run(void *arg)
{
	const struct answer *a = &peer.answer;
	struct nps_worker_reply reply = a->reply;
	int fd = peer.fds[peer.library];
	size_t left;

	(void)arg;
	peer.received = receive_whole(fd, &peer.request, sizeof(peer.request)) &&
			peer.request.size <= sizeof(peer.payload) &&
			receive_whole(fd, peer.payload, peer.request.size);
	if (a->stamp)
		a->stamp(&reply);
	usleep(a->delay_us);
	left = send_parts(fd, (const char *)&reply, sizeof(reply), 7, a->sent);
	send_parts(fd, a->data, a->len, 4099, left);
	if (a->sent != WHOLE || !peer.received)
		worker_close(peer.library);
	if (!peer.received) /* it may have been sent to the other one, whose reply is awaited */
		worker_close(!peer.library);
	return NULL;
}

static void worker_begin(enum nps_worker_library library, const struct answer *a)
{
	peer.library = library;
	peer.answer = *a;
	peer.received = false;
	assert_int_equal(pthread_create(&peer.thread, NULL, worker_run, NULL), 0);
	peer.runs = true;
}

static void worker_join(void)
{
	assert_int_equal(pthread_join(peer.thread, NULL), 0);
	peer.runs = false;
	assert_true(peer.received);
}

static bool has_bytes(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* --- each of the driver's functions --------------------------------------------------------------------- */

static const char parameters[NPS_PROF_PARAMETERS + 1] = "parameters";

static int call_load_hal(void)
{
	return nps_device_lib__load(&peer.lib, NPS_WORKER_HAL, text);
}

static int call_load_dcmi(void)
{
	return nps_device_lib__load(&peer.lib, NPS_WORKER_DCMI, text);
}

static int call_channels(void)
{
	return nps_device_lib__channels(&peer.lib, 7, &channels);
}

static int start_with(uint32_t data_size)
{
	const struct nps_prof_start start = { .type = NPS_PROF_PERIPHERAL,
					      .period_ms = 20,
					      .real_time = 1,
					      .data = data_size ? parameters : NULL,
					      .data_size = data_size };

	return nps_device_lib__start(&peer.lib, 7, 43, &start);
}

static int call_start(void)
{
	return start_with(10);
}

static int call_stop(void)
{
	return nps_device_lib__stop(&peer.lib, 7, 43);
}

static int call_read(void)
{
	return nps_device_lib__read(&peer.lib, 7, 43, buf, sizeof(buf));
}

static int call_flush(void)
{
	return nps_device_lib__flush(&peer.lib, 7, 43);
}

static int call_info(void)
{
	return nps_device_lib__info(&peer.lib, 7, 3, -2, &value, &span);
}

static int call_devices(void)
{
	return nps_device_lib__devices(&peer.lib, ids, &n_ids);
}

static int call_api_version(void)
{
	return nps_device_lib__api_version(&peer.lib, &value);
}

static int call_chip_name(void)
{
	return nps_device_lib__chip_name(&peer.lib, 7, name);
}

static int call_cards(void)
{
	return nps_device_lib__dcmi_data(&peer.lib, NPS_WORKER_CARDS, 0, 0, cards, sizeof(cards), &got);
}

static int call_card_devices(void)
{
	return nps_device_lib__dcmi_value(&peer.lib, NPS_WORKER_CARD_DEVICES, 5, 0, 0, &value);
}

static int call_logic_id(void)
{
	return nps_device_lib__dcmi_value(&peer.lib, NPS_WORKER_LOGIC_ID, 5, 1, 0, &value);
}

static int call_rate(void)
{
	return nps_device_lib__dcmi_value(&peer.lib, NPS_WORKER_RATE, 5, 1, 10, &value);
}

static int call_hbm(void)
{
	return nps_device_lib__dcmi_data(&peer.lib, NPS_WORKER_HBM, 5, 1, &hbm, sizeof(hbm), &got);
}

static int call_temperature(void)
{
	return nps_device_lib__dcmi_value(&peer.lib, NPS_WORKER_TEMPERATURE, 5, 1, 0, &value);
}

static int call_power(void)
{
	return nps_device_lib__dcmi_value(&peer.lib, NPS_WORKER_POWER, 5, 1, 0, &value);
}

static int call_health(void)
{
	return nps_device_lib__dcmi_value(&peer.lib, NPS_WORKER_HEALTH, 5, 1, 0, &value);
}

static int call_processes(void)
{
	return nps_device_lib__dcmi_data(&peer.lib, NPS_WORKER_PROCESSES, 5, 1, processes, sizeof(processes),
					 &got);
}

static int call_packets(void)
{
	return nps_device_lib__dcmi_data(&peer.lib, NPS_WORKER_PACKETS, 5, 1, &packets, sizeof(packets),
					 &got);
}

/* Where a wrapper leaves what comes back. */
enum kept { NOTHING, VALUE, DATA };

static const struct call {
	int (*make)(void);
	enum nps_worker_library library;
	struct nps_worker_request request; /* that kheaders/device_worker.h documents for it */
	enum kept kept;
	void *out; /* DATA */
} calls[] = {
	{ call_load_hal,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_OPEN, .room = NPS_WORKER_TEXT, .library = NPS_WORKER_HAL },
	  DATA,
	  text },
	{ call_load_dcmi,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_OPEN, .room = NPS_WORKER_TEXT, .library = NPS_WORKER_DCMI },
	  DATA,
	  text },
	{ call_channels,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_GET_CHANNELS, .device = 7, .room = sizeof(channels) },
	  DATA,
	  &channels },
	{ call_start,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_START,
	    .size = sizeof(struct nps_worker_start) + 10,
	    .device = 7,
	    .channel = 43 },
	  NOTHING,
	  NULL },
	{ call_stop, NPS_WORKER_HAL, { .op = NPS_WORKER_STOP, .device = 7, .channel = 43 }, NOTHING, NULL },
	{ call_read,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_READ, .device = 7, .channel = 43, .room = sizeof(buf) },
	  DATA,
	  buf },
	{ call_flush, NPS_WORKER_HAL, { .op = NPS_WORKER_FLUSH, .device = 7, .channel = 43 }, NOTHING, NULL },
	{ call_info,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_DEVICE_INFO, .device = 7, .kind = 3, .info = -2 },
	  VALUE,
	  NULL },
	{ call_devices, NPS_WORKER_HAL, { .op = NPS_WORKER_DEVICES, .room = sizeof(ids) }, DATA, ids },
	{ call_api_version, NPS_WORKER_HAL, { .op = NPS_WORKER_API_VERSION }, VALUE, NULL },
	{ call_chip_name,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_CHIP_NAME, .device = 7, .room = sizeof(name) },
	  DATA,
	  name },
	{ call_cards, NPS_WORKER_DCMI, { .op = NPS_WORKER_CARDS, .room = sizeof(cards) }, DATA, cards },
	{ call_card_devices, NPS_WORKER_DCMI, { .op = NPS_WORKER_CARD_DEVICES, .device = 5 }, VALUE, NULL },
	{ call_logic_id,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_LOGIC_ID, .device = 5, .channel = 1 },
	  VALUE,
	  NULL },
	{ call_rate,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_RATE, .device = 5, .channel = 1, .kind = 10 },
	  VALUE,
	  NULL },
	{ call_hbm,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_HBM, .device = 5, .channel = 1, .room = sizeof(hbm) },
	  DATA,
	  &hbm },
	{ call_temperature,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_TEMPERATURE, .device = 5, .channel = 1 },
	  VALUE,
	  NULL },
	{ call_power, NPS_WORKER_DCMI, { .op = NPS_WORKER_POWER, .device = 5, .channel = 1 }, VALUE, NULL },
	{ call_health, NPS_WORKER_DCMI, { .op = NPS_WORKER_HEALTH, .device = 5, .channel = 1 }, VALUE, NULL },
	{ call_processes,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_PROCESSES, .device = 5, .channel = 1, .room = sizeof(processes) },
	  DATA,
	  processes },
	{ call_packets,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_PACKETS, .device = 5, .channel = 1, .room = sizeof(packets) },
	  DATA,
	  &packets },
};

#define N_CALLS (sizeof(calls) / sizeof(*calls))

/*
 * The reply to C that fills all of its room. A number of channels is among the bytes: 32 lie within the list.
 */
static struct answer full_answer(const struct call *c)
{
	memset(data_of_replies, 32, sizeof(data_of_replies));
	memset(data_of_replies + offsetof(struct nps_prof_channels, n) + 1, 0, 3);
	return (struct answer){
		.reply = { .op = c->request.op,
			   .size = c->request.room,
			   .code = c->request.op == NPS_WORKER_READ ? (int32_t)c->request.room : 0,
			   .value = 0x123456789abc },
		.data = data_of_replies,
		.len = c->request.room,
		.sent = WHOLE,
	};
}

static int call_answered(const struct call *c, const struct answer *a)
{
	int code;

	worker_begin(c->library, a);
	code = c->make();
	worker_join();
	return code;
}

static int answer_call(int (*make)(void), struct nps_worker_reply reply)
{
	const struct answer a = { .reply = reply, .data = data_of_replies, .len = reply.size, .sent = WHOLE };
	int code;

	worker_begin(NPS_WORKER_HAL, &a);
	code = make();
	worker_join();
	return code;
}

static void requests_are_as_documented(void **state)
{
	bool seen[NPS_WORKER_OPS] = { false };

	(void)state;
	for (size_t i = 0; i < N_CALLS; i++) {
		const struct call *c = &calls[i];
		struct answer a = full_answer(c);

		value = 0;
		got = 0;
		if (c->out)
			memset(c->out, 0, c->request.room);
		assert_int_equal(call_answered(c, &a), a.reply.code);
		assert_memory_equal(&peer.request, &c->request, sizeof(c->request));
		assert_false(has_bytes(peer.fds[c->library]));
		assert_false(has_bytes(peer.lib.fds[c->library])); /* each byte of the reply has been read */
		if (c->kept == VALUE)
			assert_int_equal(value, 0x123456789abc);
		/* a text's last byte is its end, whatever came */
		if (c->kept == DATA)
			assert_memory_equal(c->out, data_of_replies, c->request.room - 1);
		if (c->kept == DATA && c->library == NPS_WORKER_DCMI && c->request.op != NPS_WORKER_OPEN)
			assert_int_equal(got, c->request.room);
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
	for (size_t i = 0; i < N_CALLS; i++)
		for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++) {
			const struct answer a = { .reply = { .op = calls[i].request.op, .code = codes[k] },
						  .sent = WHOLE };
			/* positive, it is a number of bytes, which did not come */
			bool bytes = calls[i].request.op == NPS_WORKER_READ && codes[k] > 0;

			assert_int_equal(call_answered(&calls[i], &a), bytes ? -EPROTO : codes[k]);
		}
}

/* So that a watchdog measures one call, not many. */
static void calls_report_when_they_begin(void **state)
{
	atomic_uint_fast64_t sign = 0;
	uint64_t before = nps_now(CLOCK_MONOTONIC);
	struct answer a = full_answer(&calls[0]);

	(void)state;
	peer.lib.sign = &sign;
	call_answered(&calls[0], &a);
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
		const struct answer a = { .reply = { .op = NPS_WORKER_START }, .sent = WHOLE };

		worker_begin(NPS_WORKER_HAL, &a);
		assert_int_equal(start_with(sizes[i]), 0);
		worker_join();
		assert_int_equal(peer.request.size, sizeof(expected) + sizes[i]);
		assert_memory_equal(peer.payload, &expected, sizeof(expected));
		assert_memory_equal(peer.payload + sizeof(expected), parameters, sizes[i]);
	}
	for (size_t i = 0; i < sizeof(too_large) / sizeof(*too_large); i++) {
		assert_int_equal(start_with(too_large[i]), -EINVAL);
		assert_false(has_bytes(peer.fds[NPS_WORKER_HAL]));
	}
}

/* --- replies that make no sense ------------------------------------------------------------------------- */

/* The connection is of no more use: for none of the calls is anything sent. */
static void assert_exited(enum nps_worker_library library)
{
	assert_true(peer.lib.fds[library] >=
		    0); /* closed by who opened it, with nps_device_lib__close() alone */
	for (size_t i = 0; i < N_CALLS; i++) {
		if (calls[i].library != library)
			continue;
		assert_int_equal(calls[i].make(), NPS_DEVICE_LIB_EXITED);
		if (peer.fds[library] >= 0)
			assert_false(has_bytes(peer.fds[library]));
	}
}

static void assert_call_breaks(const struct call *c, const struct answer *a)
{
	workers_close();
	workers_connect();
	assert_int_equal(call_answered(c, a), NPS_DEVICE_LIB_EXITED);
	assert_exited(c->library);
}

static void reply_to_another_request(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_CALLS; i++)
		for (int k = 0; k < 3; k++) {
			struct answer a = full_answer(&calls[i]);

			a.reply.op = k == 0 ? 0 : k == 1 ? a.reply.op + 1 : a.reply.op | 1U << 31;
			assert_call_breaks(&calls[i], &a);
		}
}

static void reply_larger_than_its_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_CALLS; i++) {
		struct answer a = full_answer(&calls[i]);

		a.reply.size++;
		a.len++;
		assert_call_breaks(&calls[i], &a);
		a.reply.size = UINT32_MAX;
		a.len = sizeof(data_of_replies);
		assert_call_breaks(&calls[i], &a);
	}
}

static void connection_closed_within_a_reply(void **state)
{
	const size_t header = sizeof(struct nps_worker_reply);

	(void)state;
	for (size_t i = 0; i < N_CALLS; i++) {
		const size_t cuts[] = { 0, 1, header - 1, header, header + calls[i].request.room - 1 };

		for (size_t k = 0; k < sizeof(cuts) / sizeof(*cuts); k++) {
			struct answer a = full_answer(&calls[i]);

			a.sent = cuts[k];
			if (a.sent < header + a.len)
				assert_call_breaks(&calls[i], &a);
		}
	}
}

static void connection_closed_before_a_request(void **state)
{
	(void)state;
	for (int library = 0; library < 2; library++) {
		worker_close(library);
		assert_exited(library);
	}
}

/* Of two workers each has its own fate; of one, both libraries share it. */
static void what_a_worker_inherits(void **state)
{
	const struct call *hal = &calls[0], *dcmi = &calls[1];
	struct answer lie = full_answer(hal), truth = full_answer(dcmi);

	(void)state;
	lie.reply.op = 0;
	assert_int_equal(call_answered(hal, &lie), NPS_DEVICE_LIB_EXITED);
	assert_int_equal(call_answered(dcmi, &truth), 0);
	assert_exited(NPS_WORKER_HAL);
	workers_close();
	workers_connect();
	close(peer.lib.fds[NPS_WORKER_DCMI]);
	peer.lib.fds[NPS_WORKER_DCMI] = peer.lib.fds[NPS_WORKER_HAL];
	assert_int_equal(call_answered(hal, &lie), NPS_DEVICE_LIB_EXITED);
	assert_exited(NPS_WORKER_HAL);
	assert_exited(NPS_WORKER_DCMI);
}

/* How long a call of the library waits before it checks whether that makes sense. */
static void set_patience(unsigned int us)
{
	const struct timeval patience = { .tv_usec = us };

	for (int i = 0; i < 2; i++) {
		setsockopt(peer.lib.fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(peer.lib.fds[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
}

static void slow_workers_are_awaited(void **state)
{
	(void)state;
	set_patience(2000);
	for (size_t i = 0; i < N_CALLS; i++) {
		struct answer a = full_answer(&calls[i]);

		a.delay_us = 5000;
		assert_int_equal(call_answered(&calls[i], &a), a.reply.code);
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
	peer.lib.launcher = worker.launcher;
	peer.lib.workers[NPS_WORKER_HAL] = &worker;
	assert_true(nps_device_lib__failed(&peer.lib));
	for (size_t i = 0; i < N_CALLS; i++)
		if (calls[i].library == NPS_WORKER_HAL)
			assert_int_equal(calls[i].make(), NPS_DEVICE_LIB_EXITED);
	assert_int_equal(call_load_hal(), NPS_DEVICE_LIB_EXITED);
	assert_string_equal(text, "the process that loads it was killed by signal 11");
	atomic_store(&worker.ended, false);
	assert_false(nps_device_lib__failed(&peer.lib));
}

static void closed_descriptors(void **state)
{
	int hal = peer.lib.fds[NPS_WORKER_HAL], dcmi = peer.lib.fds[NPS_WORKER_DCMI];

	(void)state;
	nps_device_lib__close(&peer.lib);
	for (int library = 0; library < 2; library++) {
		assert_int_equal(peer.lib.fds[library], -1);
		assert_false(peer.lib.has[library]);
	}
	assert_int_equal(fcntl(hal, F_GETFD), -1);
	assert_int_equal(fcntl(dcmi, F_GETFD), -1);
	for (size_t i = 0; i < N_CALLS; i++)
		assert_int_equal(calls[i].make(), NPS_DEVICE_LIB_EXITED);
	nps_device_lib__close(&peer.lib);
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
	for (size_t i = 0; i < sizeof(data_of_replies); i++)
		data_of_replies[i] = (char)i;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		int code;

		memset(buf, 'x', sizeof(buf));
		code = answer_call(call_read, (struct nps_worker_reply){ .op = NPS_WORKER_READ,
									 .code = replies[i].code,
									 .size = replies[i].size });
		assert_int_equal(code, replies[i].returned);
		assert_memory_equal(buf, data_of_replies, replies[i].size);
		for (size_t k = replies[i].size; k < sizeof(buf); k++)
			assert_int_equal(buf[k], 'x');
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
		const struct answer a = { .reply = { .op = NPS_WORKER_READ,
						     .code = (int32_t)reads[i].room,
						     .size = reads[i].room },
					  .data = data_of_replies,
					  .len = reads[i].room,
					  .sent = WHOLE };

		memset(data_of_replies, 'd', sizeof(data_of_replies));
		memset(large, 'x', sizeof(large));
		worker_begin(NPS_WORKER_HAL, &a);
		assert_int_equal(nps_device_lib__read(&peer.lib, 7, 43, large, reads[i].size), reads[i].room);
		worker_join();
		assert_int_equal(peer.request.room, reads[i].room);
		assert_memory_equal(large, data_of_replies, reads[i].room);
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
	const struct nps_worker_reply reply = { .op = NPS_WORKER_GET_CHANNELS, .size = sizeof(channels) };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		memcpy(data_of_replies + offsetof(struct nps_prof_channels, n), &numbers[i].passed, 4);
		assert_int_equal(answer_call(call_channels, reply), 0);
		assert_int_equal(channels.n, numbers[i].kept);
	}
}

static void structures_of_another_size(void **state)
{
	static const struct {
		int (*make)(void);
		uint32_t op, size;
	} wholes[] = { { call_channels, NPS_WORKER_GET_CHANNELS, sizeof(channels) },
		       { call_chip_name, NPS_WORKER_CHIP_NAME, sizeof(name) } };

	(void)state;
	for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++) {
		const uint32_t sizes[] = { 0, 1, wholes[i].size - 1 };

		for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
			struct nps_worker_reply reply = { .op = wholes[i].op, .size = sizes[k] };

			assert_int_equal(answer_call(wholes[i].make, reply), -EPROTO);
			reply.code = 4; /* the driver's own reason is worth more */
			assert_int_equal(answer_call(wholes[i].make, reply), 4);
		}
	}
	/* dcmi_data: for its caller to judge */
	for (size_t i = 0; i < sizeof(hbm); i += 5) {
		const struct answer a = { .reply = { .op = NPS_WORKER_HBM, .size = (uint32_t)i },
					  .data = data_of_replies,
					  .len = i,
					  .sent = WHOLE };

		worker_begin(NPS_WORKER_DCMI, &a);
		assert_int_equal(call_hbm(), 0);
		worker_join();
		assert_int_equal(got, i);
	}
}

static void numbers_of_devices(void **state)
{
	struct nps_worker_reply reply = { .op = NPS_WORKER_DEVICES };

	(void)state;
	for (uint32_t n = 0; n <= NPS_DEVICE_MAX; n += 16) {
		for (uint32_t i = 0; i < n; i++)
			memcpy(data_of_replies + 4L * i, &(uint32_t){ 100 + i }, 4);
		reply.size = 4 * n;
		reply.code = 0;
		assert_int_equal(answer_call(call_devices, reply), 0);
		assert_int_equal(n_ids, n);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(ids[i], 100 + i);
		reply.code = -1;
		assert_int_equal(answer_call(call_devices, reply), -1);
		assert_int_equal(n_ids, 0);
	}
	reply = (struct nps_worker_reply){ .op = NPS_WORKER_DEVICES, .size = 7 };
	answer_call(call_devices, reply);
	assert_in_range(n_ids, 0, 1); /* part of a number is none */
}

static void texts_end(void **state)
{
	struct nps_worker_reply reply = { .op = NPS_WORKER_OPEN, .size = sizeof(text), .code = -ELIBACC };

	(void)state;
	memset(data_of_replies, 'a', sizeof(data_of_replies));
	memset(text, 'x', sizeof(text));
	assert_int_equal(answer_call(call_load_hal, reply), -ELIBACC);
	assert_int_equal(strnlen(text, sizeof(text)), sizeof(text) - 1);
	assert_memory_equal(text, data_of_replies, sizeof(text) - 1);
	reply.size = 0;
	memset(text, 'x', sizeof(text));
	assert_int_equal(answer_call(call_load_hal, reply), -ELIBACC);
	assert_string_equal(text, "");
	snprintf(data_of_replies, sizeof(data_of_replies), "/usr/lib64/libascend_hal.so");
	reply = (struct nps_worker_reply){ .op = NPS_WORKER_OPEN, .size = sizeof(text) };
	assert_int_equal(answer_call(call_load_hal, reply), 0);
	assert_string_equal(text, "/usr/lib64/libascend_hal.so");
	memset(data_of_replies, 'a', sizeof(data_of_replies));
	reply = (struct nps_worker_reply){ .op = NPS_WORKER_CHIP_NAME, .size = sizeof(name) };
	memset(name, 'x', sizeof(name));
	assert_int_equal(answer_call(call_chip_name, reply), 0);
	assert_int_equal(strnlen(name, sizeof(name)), sizeof(name) - 1);
	worker_close(NPS_WORKER_HAL);
	assert_int_equal(call_load_hal(), NPS_DEVICE_LIB_EXITED);
	assert_non_null(strstr(text, "has ended"));
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
	struct answer a = { .reply = { .op = NPS_WORKER_DEVICE_INFO, .value = 5 }, .sent = WHOLE };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t before = nps_now(CLOCK_MONOTONIC_RAW);

		a.stamp = cases[i].stamp;
		worker_begin(NPS_WORKER_HAL, &a);
		assert_int_equal(call_info(), 0);
		worker_join();
		if (cases[i].kept)
			assert_memory_equal(&span, &stamped, sizeof(span));
		else
			assert_memory_not_equal(&span, &stamped, sizeof(span));
		assert_in_range(span.before, before, span.after);
		assert_in_range(span.after, span.before, nps_now(CLOCK_MONOTONIC_RAW));
	}
	/* whoever does not need them */
	worker_begin(NPS_WORKER_HAL, &a);
	assert_int_equal(nps_device_lib__info(&peer.lib, 7, 3, -2, &value, NULL), 0);
	worker_join();
	assert_int_equal(value, 5);
}

/* --- device_user.h -------------------------------------------------------------------------------------- */

static struct nps_device_user user;

static void user_begin(void)
{
	user = (struct nps_device_user){ .uid = NOBODY, .gid = NOBODY };
}

static void node_add(const char *node, mode_t mode, uid_t uid, gid_t gid)
{
	struct nps_node_found found = { .uid = uid, .gid = gid, .mode = S_IFCHR | mode };

	snprintf(found.name, sizeof(found.name), "%s", node);
	nps_device_user__add_node(&user, &found);
}

static void assert_user(uid_t uid, size_t n_groups, const char *root_alone)
{
	assert_int_equal(user.uid, uid);
	assert_int_equal(user.gid, NOBODY);
	assert_int_equal(user.n_groups, n_groups);
	assert_string_equal(user.root_alone, root_alone);
}

static void nodes_that_anybody_opens(void **state)
{
	(void)state;
	user_begin();
	node_add("davinci0", 0666, 0, 0);
	node_add("davinci1", 0666, 1000, 1000);
	node_add("davinci2", 0606, 0, 1000);
	assert_user(NOBODY, 0, "");
	nps_device_user__choose("/nonexistent", &user);
	assert_user(NOBODY, 0, "");
}

static void nodes_of_groups(void **state)
{
	static const gid_t groups[] = { 1003, 1001, 1003, 1002, 1001, 1002 };

	(void)state;
	user_begin();
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		node_add("davinci0", 0660, i % 2 ? 0 : 1000, groups[i]);
	assert_user(NOBODY, 3, "");
	assert_int_equal(user.groups[0], 1003);
	assert_int_equal(user.groups[1], 1001);
	assert_int_equal(user.groups[2], 1002);
}

/* Reading alone, or writing alone, does not open a device. */
static void nodes_of_their_owner(void **state)
{
	(void)state;
	user_begin();
	node_add("davinci0", 0600, 1000, 1001);
	assert_user(1000, 0, "");
	user_begin();
	node_add("davinci0", 0644, 1000, 1001);
	assert_user(1000, 0, "");
	user_begin();
	node_add("davinci0", 0622, 1000, 1001);
	assert_user(1000, 0, "");
	node_add("davinci1", 0660, 0, 1001);
	node_add("davinci2", 0666, 0, 0);
	assert_user(1000, 1, "");
	assert_int_equal(user.groups[0], 1001);
}

static void nodes_of_root(void **state)
{
	static const mode_t modes[] = { 0600, 0640, 0644, 0620, 0000 };

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		user_begin();
		node_add("davinci_manager", modes[i], 0, 1001);
		assert_user(NOBODY, 0, "davinci_manager");
	}
	user_begin();
	node_add("davinci0", 0400, 1000, 1001); /* its owner may not write either */
	assert_user(NOBODY, 0, "davinci0");
	node_add("davinci1", 0600, 1000, 1001); /* one of both can be had */
	assert_user(1000, 0, "davinci0");
}

/* Being in it opens more than the device. */
static void nodes_of_the_group_of_root(void **state)
{
	(void)state;
	user_begin();
	node_add("davinci0", 0660, 0, 0);
	assert_user(NOBODY, 0, "davinci0");
	user_begin();
	node_add("davinci0", 0660, 1000, 0);
	assert_user(1000, 0, "");
}

static void more_groups_than_there_is_room(void **state)
{
	(void)state;
	user_begin();
	for (gid_t i = 0; i < NPS_DEVICE_USER_GROUPS + 5; i++)
		node_add("davinci0", 0660, 0, 1000 + i);
	node_add("davinci0", 0660, 0, 1000);
	assert_user(NOBODY, NPS_DEVICE_USER_GROUPS, "");
	for (gid_t i = 0; i < NPS_DEVICE_USER_GROUPS; i++)
		assert_int_equal(user.groups[i], 1000 + i);
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
		cmocka_unit_test(nodes_that_anybody_opens),
		cmocka_unit_test(nodes_of_groups),
		cmocka_unit_test(nodes_of_their_owner),
		cmocka_unit_test(nodes_of_root),
		cmocka_unit_test(nodes_of_the_group_of_root),
		cmocka_unit_test(more_groups_than_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
