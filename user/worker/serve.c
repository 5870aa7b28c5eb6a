/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls the driver's functions for the collector. Each connection has a thread: a call may take seconds
 * or never return, and must not delay those of other connections. The process exits when NPS_WORKER_FD is
 * closed, whatever its threads do.
 */
#include "worker.h"
#include "library.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_CARDS 64

/* Shared by all connections. The collector opens each library once, before it calls its functions. */
static struct {
	struct driver driver;
	char **paths[2]; /* by enum nps_worker_library */
	pthread_mutex_t opening;
} shared = { .opening = PTHREAD_MUTEX_INITIALIZER };

struct connection {
	int fd;
	struct nps_worker_request request;
	struct nps_worker_reply reply;
	/* Payload of the request, then of its reply. */
	_Alignas(8) char data[NPS_WORKER_DATA];
};

static uint64_t now_raw(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static bool socket_transfer(int fd, void *buf, size_t len, bool out)
{
	char *at = buf;

	while (len) {
		ssize_t n = out ? send(fd, at, len, MSG_NOSIGNAL) : recv(fd, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* --- the driver's functions ---------------------------------------------------------------------------- */

/* LEN cleared bytes of payload for the reply; NULL: the collector does not have that much room. */
static void *reply_data(struct connection *c, size_t len)
{
	if (len > c->request.room || len > sizeof(c->data))
		return NULL;
	memset(c->data, 0, len);
	c->reply.size = (uint32_t)len;
	return c->data;
}

static int do_open(struct connection *c)
{
	uint32_t library = c->request.library & 1;
	int err;

	if (!reply_data(c, NPS_WORKER_TEXT))
		return -EPROTO;
	pthread_mutex_lock(&shared.opening);
	err = worker_library_open(library, shared.paths[library], &shared.driver, c->data, NPS_WORKER_TEXT);
	pthread_mutex_unlock(&shared.opening);
	return err;
}

static int do_get_channels(struct connection *c)
{
	struct nps_prof_channels *list = reply_data(c, sizeof(*list));

	return list ? shared.driver.get_channels(c->request.device, list) : -EPROTO;
}

static int do_start(struct connection *c)
{
	const struct nps_worker_start *s = (const struct nps_worker_start *)c->data;
	struct prof_start start = { 0 };

	if (c->request.size < sizeof(*s) || c->request.size > sizeof(*s) + NPS_PROF_PARAMETERS)
		return -EPROTO;
	start.type = s->type;
	start.period_ms = s->period_ms;
	start.real_time = s->real_time;
	start.data_size = c->request.size - (uint32_t)sizeof(*s);
	start.data = start.data_size ? c->data + sizeof(*s) : NULL;
	return shared.driver.start(c->request.device, c->request.channel, &start);
}

static int do_stop(struct connection *c)
{
	return shared.driver.stop(c->request.device, c->request.channel);
}

static int do_read(struct connection *c)
{
	uint32_t room = c->request.room < sizeof(c->data) ? c->request.room : (uint32_t)sizeof(c->data);
	int n = shared.driver.read(c->request.device, c->request.channel, c->data, room);

	c->reply.size = n > 0 && (uint32_t)n <= room ? (uint32_t)n : 0;
	return n;
}

static int do_flush(struct connection *c)
{
	unsigned int len = 0;

	return shared.driver.flush ? shared.driver.flush(c->request.device, c->request.channel, &len)
				   : NPS_WORKER_NO_FUNCTION;
}

static int do_device_info(struct connection *c)
{
	int64_t value = 0;
	int code;

	c->reply.before = now_raw();
	code = shared.driver.device_info(c->request.device, c->request.kind, c->request.info, &value);
	c->reply.after = now_raw();
	c->reply.value = value;
	return code;
}

static int do_devices(struct connection *c)
{
	uint32_t n = 0, *ids;
	int code = shared.driver.device_count(&n);

	n = n < NPS_DEVICE_MAX ? n : NPS_DEVICE_MAX;
	ids = code ? NULL : reply_data(c, n * sizeof(*ids));
	for (uint32_t i = 0; ids && i < n; i++)
		ids[i] = i;
	if (ids && shared.driver.device_ids)
		code = shared.driver.device_ids(ids, n);
	return code;
}

static int do_api_version(struct connection *c)
{
	int version = 0, code;

	if (!shared.driver.api_version)
		return NPS_WORKER_NO_FUNCTION;
	code = shared.driver.api_version(&version);
	c->reply.value = version;
	return code;
}

static int do_chip_name(struct connection *c)
{
	struct chip_info info = { 0 };
	char *name = reply_data(c, sizeof(info.name));
	int code = name && shared.driver.chip_info ? shared.driver.chip_info(c->request.device, &info)
						   : NPS_WORKER_NO_FUNCTION;

	if (name)
		memcpy(name, info.name, sizeof(info.name));
	return code;
}

static int do_cards(struct connection *c)
{
	int cards[MOST_CARDS] = { 0 }, n = 0, code;
	void *list;

	code = shared.driver.card_list(&n, cards, MOST_CARDS);
	n = n < 0 || code ? 0 : n < MOST_CARDS ? n : MOST_CARDS;
	list = reply_data(c, (size_t)n * sizeof(*cards));
	if (list)
		memcpy(list, cards, (size_t)n * sizeof(*cards));
	return code;
}

static int do_card_devices(struct connection *c)
{
	int n = 0, code = shared.driver.devices_in_card((int)c->request.device, &n);

	c->reply.value = n;
	return code;
}

static int do_logic_id(struct connection *c)
{
	int id = 0, code = shared.driver.logic_id(&id, (int)c->request.device, (int)c->request.channel);

	c->reply.value = id;
	return code;
}

static int do_rate(struct connection *c)
{
	unsigned int percent = 0;
	int code = shared.driver.utilization
			   ? shared.driver.utilization((int)c->request.device, (int)c->request.channel,
						       c->request.kind, &percent)
			   : NPS_WORKER_NO_FUNCTION;

	c->reply.value = percent;
	return code;
}

static int do_hbm(struct connection *c)
{
	struct nps_dcmi_hbm *hbm = reply_data(c, sizeof(*hbm));

	return hbm && shared.driver.hbm
		       ? shared.driver.hbm((int)c->request.device, (int)c->request.channel, hbm)
		       : NPS_WORKER_NO_FUNCTION;
}

static int one_int(struct connection *c, int (*function)(int card, int device, int *value))
{
	int value = 0, code;

	if (!function)
		return NPS_WORKER_NO_FUNCTION;
	code = function((int)c->request.device, (int)c->request.channel, &value);
	c->reply.value = value;
	return code;
}

static int do_temperature(struct connection *c)
{
	return one_int(c, shared.driver.temperature);
}

static int do_power(struct connection *c)
{
	return one_int(c, shared.driver.power);
}

static int do_health(struct connection *c)
{
	unsigned int health = 0;
	int code = shared.driver.health
			   ? shared.driver.health((int)c->request.device, (int)c->request.channel, &health)
			   : NPS_WORKER_NO_FUNCTION;

	c->reply.value = health;
	return code;
}

static int do_processes(struct connection *c)
{
	struct nps_dcmi_process *list = reply_data(c, NPS_DCMI_PROCESSES * sizeof(*list));
	int n = NPS_DCMI_PROCESSES, code;

	if (!list || !shared.driver.processes)
		return NPS_WORKER_NO_FUNCTION;
	code = shared.driver.processes((int)c->request.device, (int)c->request.channel, list, &n);
	n = n < 0 || code ? 0 : n < NPS_DCMI_PROCESSES ? n : NPS_DCMI_PROCESSES;
	c->reply.size = (uint32_t)((size_t)n * sizeof(*list));
	return code;
}

static int do_packets(struct connection *c)
{
	struct nps_dcmi_packets *packets = reply_data(c, sizeof(*packets));

	return packets && shared.driver.packets
		       ? shared.driver.packets((int)c->request.device, (int)c->request.channel,
					       c->request.kind, packets)
		       : NPS_WORKER_NO_FUNCTION;
}

static const struct {
	int (*call)(struct connection *c);
	uint32_t library;
} calls[NPS_WORKER_OPS] = {
	[NPS_WORKER_OPEN] = { do_open, 2 },
	[NPS_WORKER_GET_CHANNELS] = { do_get_channels, NPS_WORKER_HAL },
	[NPS_WORKER_START] = { do_start, NPS_WORKER_HAL },
	[NPS_WORKER_STOP] = { do_stop, NPS_WORKER_HAL },
	[NPS_WORKER_READ] = { do_read, NPS_WORKER_HAL },
	[NPS_WORKER_FLUSH] = { do_flush, NPS_WORKER_HAL },
	[NPS_WORKER_DEVICE_INFO] = { do_device_info, NPS_WORKER_HAL },
	[NPS_WORKER_DEVICES] = { do_devices, NPS_WORKER_HAL },
	[NPS_WORKER_API_VERSION] = { do_api_version, NPS_WORKER_HAL },
	[NPS_WORKER_CHIP_NAME] = { do_chip_name, NPS_WORKER_HAL },
	[NPS_WORKER_CARDS] = { do_cards, NPS_WORKER_DCMI },
	[NPS_WORKER_CARD_DEVICES] = { do_card_devices, NPS_WORKER_DCMI },
	[NPS_WORKER_LOGIC_ID] = { do_logic_id, NPS_WORKER_DCMI },
	[NPS_WORKER_RATE] = { do_rate, NPS_WORKER_DCMI },
	[NPS_WORKER_HBM] = { do_hbm, NPS_WORKER_DCMI },
	[NPS_WORKER_TEMPERATURE] = { do_temperature, NPS_WORKER_DCMI },
	[NPS_WORKER_POWER] = { do_power, NPS_WORKER_DCMI },
	[NPS_WORKER_HEALTH] = { do_health, NPS_WORKER_DCMI },
	[NPS_WORKER_PROCESSES] = { do_processes, NPS_WORKER_DCMI },
	[NPS_WORKER_PACKETS] = { do_packets, NPS_WORKER_DCMI },
};

static bool is_open(uint32_t library)
{
	return library == NPS_WORKER_HAL    ? shared.driver.get_channels != NULL
	       : library == NPS_WORKER_DCMI ? shared.driver.card_list != NULL
					    : true;
}

static void *serve_connection(void *arg)
{
	struct connection *c = arg;
	struct nps_worker_request *r = &c->request;

	while (socket_transfer(c->fd, r, sizeof(*r), false)) {
		c->reply = (struct nps_worker_reply){ .op = r->op, .code = -EPROTO };
		if (r->size > sizeof(c->data) || !socket_transfer(c->fd, c->data, r->size, false))
			break;
		if (r->op < NPS_WORKER_OPS && calls[r->op].call && is_open(calls[r->op].library))
			c->reply.code = calls[r->op].call(c);
		if (!socket_transfer(c->fd, &c->reply, sizeof(c->reply), true) ||
		    !socket_transfer(c->fd, c->data, c->reply.size, true))
			break;
	}
	close(c->fd);
	free(c);
	return NULL;
}

/* --- connections ---------------------------------------------------------------------------------------- */

/* False: the collector has closed NPS_WORKER_FD. *FD: -1 if the limit of open files was reached. */
static bool accept_connection(int *fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(NPS_WORKER_FD, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	*fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n > 0;
}

int worker_serve(char **argv)
{
	pthread_attr_t attr;
	int fd;

	prctl(PR_SET_NAME, "npuscope-device", 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	shared.paths[NPS_WORKER_HAL] = argv;
	while (*argv && strcmp(*argv, "--") != 0)
		argv++;
	shared.paths[NPS_WORKER_DCMI] = *argv ? argv + 1 : argv;
	*argv = NULL;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (accept_connection(&fd)) {
		struct connection *c = fd < 0 ? NULL : calloc(1, sizeof(*c));
		pthread_t thread;

		if (c)
			c->fd = fd;
		if (!c || pthread_create(&thread, &attr, serve_connection, c)) {
			free(c);
			if (fd >= 0)
				close(fd);
		}
	}
	_exit(0); /* destructors of the libraries could hang */
}
