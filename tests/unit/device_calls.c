/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_S 5 /* of the worker's, for a request */
#define TEST_S 60

struct device_peer device_peer;
char device_reply_data[NPS_WORKER_DATA + 64];
struct device_out device_out;

const char device_call_parameters[NPS_PROF_PARAMETERS + 1] = "parameters";

/* --- the worker ----------------------------------------------------------------------------------------- */

void device_peer_connect(void)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };

	memset(&device_peer, 0, sizeof(device_peer));
	nps_device_lib__init(&device_peer.lib, NULL);
	for (int i = 0; i < 2; i++) {
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		for (int end = 0; end < 2; end++) {
			setsockopt(fds[end], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
			setsockopt(fds[end], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		}
		device_peer.lib.fds[i] = fds[0];
		device_peer.fds[i] = fds[1];
		device_peer.lib.has[i] = true; /* but no worker that could be ended */
	}
}

void device_peer_close_one(enum nps_worker_library library)
{
	if (device_peer.fds[library] >= 0)
		close(device_peer.fds[library]);
	device_peer.fds[library] = -1;
}

void device_peer_close(void)
{
	nps_device_lib__close(&device_peer.lib);
	device_peer_close_one(NPS_WORKER_HAL);
	device_peer_close_one(NPS_WORKER_DCMI);
}

int device_peer_setup(void **state)
{
	(void)state;
	alarm(TEST_S); /* a call that nobody answers would wait for ever */
	device_peer_connect();
	return 0;
}

int device_peer_teardown(void **state)
{
	(void)state;
	if (device_peer.runs) { /* a test failed meanwhile */
		nps_device_lib__close(&device_peer.lib);
		pthread_join(device_peer.thread, NULL);
	}
	device_peer_close();
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
	const struct device_answer *a = &device_peer.answer;
	struct nps_worker_reply reply = a->reply;
	int fd = device_peer.fds[device_peer.library];
	size_t left;

	(void)arg;
	device_peer.received = receive_whole(fd, &device_peer.request, sizeof(device_peer.request)) &&
			       device_peer.request.size <= sizeof(device_peer.payload) &&
			       receive_whole(fd, device_peer.payload, device_peer.request.size);
	if (a->stamp)
		a->stamp(&reply);
	usleep(a->delay_us);
	left = send_parts(fd, (const char *)&reply, sizeof(reply), 7, a->sent);
	send_parts(fd, a->data, a->len, 4099, left);
	if (a->sent != DEVICE_ANSWER_WHOLE || !device_peer.received)
		device_peer_close_one(device_peer.library);
	if (!device_peer.received) /* it may have been sent to the other one, whose reply is awaited */
		device_peer_close_one(!device_peer.library);
	return NULL;
}

void device_peer_begin(enum nps_worker_library library, const struct device_answer *a)
{
	device_peer.library = library;
	device_peer.answer = *a;
	device_peer.received = false;
	assert_int_equal(pthread_create(&device_peer.thread, NULL, worker_run, NULL), 0);
	device_peer.runs = true;
}

void device_peer_join(void)
{
	assert_int_equal(pthread_join(device_peer.thread, NULL), 0);
	device_peer.runs = false;
	assert_true(device_peer.received);
}

bool device_peer_has_bytes(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* --- each of the driver's functions --------------------------------------------------------------------- */

int device_call_load_hal(void)
{
	return nps_device_lib__load(&device_peer.lib, NPS_WORKER_HAL, device_out.text);
}

static int call_load_dcmi(void)
{
	return nps_device_lib__load(&device_peer.lib, NPS_WORKER_DCMI, device_out.text);
}

int device_call_channels(void)
{
	return nps_device_lib__channels(&device_peer.lib, 7, &device_out.channels);
}

int device_call_start_with(uint32_t data_size)
{
	const struct nps_prof_start start = { .type = NPS_PROF_PERIPHERAL,
					      .period_ms = 20,
					      .real_time = 1,
					      .data = data_size ? device_call_parameters : NULL,
					      .data_size = data_size };

	return nps_device_lib__start(&device_peer.lib, 7, 43, &start);
}

static int call_start(void)
{
	return device_call_start_with(10);
}

static int call_stop(void)
{
	return nps_device_lib__stop(&device_peer.lib, 7, 43);
}

int device_call_read(void)
{
	return nps_device_lib__read(&device_peer.lib, 7, 43, device_out.buf, sizeof(device_out.buf));
}

static int call_flush(void)
{
	return nps_device_lib__flush(&device_peer.lib, 7, 43);
}

int device_call_info(void)
{
	return nps_device_lib__info(&device_peer.lib, 7, 3, -2, &device_out.value, &device_out.span);
}

int device_call_devices(void)
{
	return nps_device_lib__devices(&device_peer.lib, device_out.ids, &device_out.n_ids);
}

static int call_api_version(void)
{
	return nps_device_lib__api_version(&device_peer.lib, &device_out.value);
}

int device_call_chip_name(void)
{
	return nps_device_lib__chip_name(&device_peer.lib, 7, device_out.name);
}

static int call_cards(void)
{
	return nps_device_lib__dcmi_data(&device_peer.lib, NPS_WORKER_CARDS, 0, 0, device_out.cards,
					 sizeof(device_out.cards), &device_out.got);
}

static int call_card_devices(void)
{
	return nps_device_lib__dcmi_value(&device_peer.lib, NPS_WORKER_CARD_DEVICES, 5, 0, 0,
					  &device_out.value);
}

static int call_logic_id(void)
{
	return nps_device_lib__dcmi_value(&device_peer.lib, NPS_WORKER_LOGIC_ID, 5, 1, 0, &device_out.value);
}

static int call_rate(void)
{
	return nps_device_lib__dcmi_value(&device_peer.lib, NPS_WORKER_RATE, 5, 1, 10, &device_out.value);
}

int device_call_hbm(void)
{
	return nps_device_lib__dcmi_data(&device_peer.lib, NPS_WORKER_HBM, 5, 1, &device_out.hbm,
					 sizeof(device_out.hbm), &device_out.got);
}

static int call_temperature(void)
{
	return nps_device_lib__dcmi_value(&device_peer.lib, NPS_WORKER_TEMPERATURE, 5, 1, 0,
					  &device_out.value);
}

static int call_power(void)
{
	return nps_device_lib__dcmi_value(&device_peer.lib, NPS_WORKER_POWER, 5, 1, 0, &device_out.value);
}

static int call_health(void)
{
	return nps_device_lib__dcmi_value(&device_peer.lib, NPS_WORKER_HEALTH, 5, 1, 0, &device_out.value);
}

static int call_processes(void)
{
	return nps_device_lib__dcmi_data(&device_peer.lib, NPS_WORKER_PROCESSES, 5, 1, device_out.processes,
					 sizeof(device_out.processes), &device_out.got);
}

static int call_packets(void)
{
	return nps_device_lib__dcmi_data(&device_peer.lib, NPS_WORKER_PACKETS, 5, 1, &device_out.packets,
					 sizeof(device_out.packets), &device_out.got);
}

const struct device_call device_calls[DEVICE_CALLS] = {
	{ device_call_load_hal,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_OPEN, .room = NPS_WORKER_TEXT, .library = NPS_WORKER_HAL },
	  DEVICE_KEEPS_DATA,
	  device_out.text },
	{ call_load_dcmi,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_OPEN, .room = NPS_WORKER_TEXT, .library = NPS_WORKER_DCMI },
	  DEVICE_KEEPS_DATA,
	  device_out.text },
	{ device_call_channels,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_GET_CHANNELS, .device = 7, .room = sizeof(device_out.channels) },
	  DEVICE_KEEPS_DATA,
	  &device_out.channels },
	{ call_start,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_START,
	    .size = sizeof(struct nps_worker_start) + 10,
	    .device = 7,
	    .channel = 43 },
	  DEVICE_KEEPS_NOTHING,
	  NULL },
	{ call_stop,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_STOP, .device = 7, .channel = 43 },
	  DEVICE_KEEPS_NOTHING,
	  NULL },
	{ device_call_read,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_READ, .device = 7, .channel = 43, .room = sizeof(device_out.buf) },
	  DEVICE_KEEPS_DATA,
	  device_out.buf },
	{ call_flush,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_FLUSH, .device = 7, .channel = 43 },
	  DEVICE_KEEPS_NOTHING,
	  NULL },
	{ device_call_info,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_DEVICE_INFO, .device = 7, .kind = 3, .info = -2 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ device_call_devices,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_DEVICES, .room = sizeof(device_out.ids) },
	  DEVICE_KEEPS_DATA,
	  device_out.ids },
	{ call_api_version, NPS_WORKER_HAL, { .op = NPS_WORKER_API_VERSION }, DEVICE_KEEPS_VALUE, NULL },
	{ device_call_chip_name,
	  NPS_WORKER_HAL,
	  { .op = NPS_WORKER_CHIP_NAME, .device = 7, .room = sizeof(device_out.name) },
	  DEVICE_KEEPS_DATA,
	  device_out.name },
	{ call_cards,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_CARDS, .room = sizeof(device_out.cards) },
	  DEVICE_KEEPS_DATA,
	  device_out.cards },
	{ call_card_devices,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_CARD_DEVICES, .device = 5 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ call_logic_id,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_LOGIC_ID, .device = 5, .channel = 1 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ call_rate,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_RATE, .device = 5, .channel = 1, .kind = 10 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ device_call_hbm,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_HBM, .device = 5, .channel = 1, .room = sizeof(device_out.hbm) },
	  DEVICE_KEEPS_DATA,
	  &device_out.hbm },
	{ call_temperature,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_TEMPERATURE, .device = 5, .channel = 1 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ call_power,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_POWER, .device = 5, .channel = 1 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ call_health,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_HEALTH, .device = 5, .channel = 1 },
	  DEVICE_KEEPS_VALUE,
	  NULL },
	{ call_processes,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_PROCESSES, .device = 5, .channel = 1, .room = sizeof(device_out.processes) },
	  DEVICE_KEEPS_DATA,
	  device_out.processes },
	{ call_packets,
	  NPS_WORKER_DCMI,
	  { .op = NPS_WORKER_PACKETS, .device = 5, .channel = 1, .room = sizeof(device_out.packets) },
	  DEVICE_KEEPS_DATA,
	  &device_out.packets },
};

struct device_answer device_call_full_answer(const struct device_call *c)
{
	memset(device_reply_data, 32, sizeof(device_reply_data));
	memset(device_reply_data + offsetof(struct nps_prof_channels, n) + 1, 0, 3);
	return (struct device_answer){
		.reply = { .op = c->request.op,
			   .size = c->request.room,
			   .code = c->request.op == NPS_WORKER_READ ? (int32_t)c->request.room : 0,
			   .value = 0x123456789abc },
		.data = device_reply_data,
		.len = c->request.room,
		.sent = DEVICE_ANSWER_WHOLE,
	};
}

int device_call_answered(const struct device_call *c, const struct device_answer *a)
{
	int code;

	device_peer_begin(c->library, a);
	code = c->make();
	device_peer_join();
	return code;
}

int device_call_answer(int (*make)(void), struct nps_worker_reply reply)
{
	const struct device_answer a = {
		.reply = reply, .data = device_reply_data, .len = reply.size, .sent = DEVICE_ANSWER_WHOLE
	};
	int code;

	device_peer_begin(NPS_WORKER_HAL, &a);
	code = make();
	device_peer_join();
	return code;
}
