/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_lib.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clocks.h"
#include "core/log.h"

void nps_device_lib__init(struct nps_device_lib *lib, struct nps_device_launcher *launcher)
{
	*lib = (struct nps_device_lib){ .launcher = launcher, .fds = { -1, -1 } };
}

void nps_device_lib__close(struct nps_device_lib *lib)
{
	if (lib->fds[0] >= 0)
		close(lib->fds[0]);
	if (lib->fds[1] >= 0 && lib->fds[1] != lib->fds[0])
		close(lib->fds[1]);
	lib->fds[0] = lib->fds[1] = -1;
	lib->has[0] = lib->has[1] = false;
}

/* --- one call ------------------------------------------------------------------------------------------ */

/* Can LIBRARY's worker still answer? Tests have no worker. */
static bool worker_awaited(const struct nps_device_lib *lib, enum nps_worker_library library)
{
	const struct nps_device_worker *w = lib->workers[library];

	return !w || (!atomic_load(&w->ended) && !nps_device_launcher__ended(w->launcher));
}

/* Sends LEN bytes to the worker, or receives them. False: it has ended. */
static bool worker_transfer(const struct nps_device_lib *lib, enum nps_worker_library library, bool out,
			    void *data, size_t len)
{
	int fd = lib->fds[library];
	char *at = data;

	while (len) {
		ssize_t n = out ? send(fd, at, len, MSG_NOSIGNAL) : recv(fd, at, len, 0);

		if (n < 0 && (errno == EINTR || (errno == EAGAIN && worker_awaited(lib, library))))
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* Has W loaded a library? */
static bool worker_has_open(const struct nps_device_lib *lib, const struct nps_device_worker *w)
{
	return (lib->has[0] && lib->workers[0] == w) || (lib->has[1] && lib->workers[1] == w);
}

/*
 * Writes what happened to the process to W->how, and reports it if a library was open. LIES: it runs, but
 * its answers are invalid.
 */
static void worker_lost(const struct nps_device_lib *lib, enum nps_worker_library library, bool lies)
{
	struct nps_device_worker *w = lib->workers[library];
	int status, signal;

	if (!w || nps_device_launcher__ended(w->launcher) || atomic_exchange(&w->ended, true))
		return;
	status = nps_device_worker__end(w, !lies);
	signal = status != -1 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (lies)
		snprintf(w->how, sizeof(w->how), "gives answers that make no sense");
	else if (signal)
		snprintf(w->how, sizeof(w->how), "was killed by signal %d (%.30s)", signal,
			 strsignal(signal));
	else
		snprintf(w->how, sizeof(w->how), "has ended%s",
			 worker_has_open(lib, w) ? "" : ": is the C library there older than 2.34?");
	if (worker_has_open(lib, w))
		nps_warn("the process that calls %s %s: what only the driver knows of devices and their "
			 "clocks is missing from now on: check it with npu-smi info",
			 lib->paths[library], w->how);
}

static int exchange_with_worker(const struct nps_device_lib *lib, enum nps_worker_library library,
				const struct nps_worker_request *r, const void *payload,
				struct nps_worker_reply *reply, void *data)
{
	bool answered, makes_sense;

	if (lib->fds[library] < 0)
		return NPS_DEVICE_LIB_EXITED;
	answered = worker_transfer(lib, library, true, (void *)r, sizeof(*r)) &&
		   worker_transfer(lib, library, true, (void *)payload, r->size) &&
		   worker_transfer(lib, library, false, reply, sizeof(*reply));
	makes_sense = !answered || (reply->op == r->op && reply->size <= r->room);
	if (answered && makes_sense && worker_transfer(lib, library, false, data, reply->size))
		return 0;
	shutdown(lib->fds[library], SHUT_RDWR); /* so that no later call reads the rest of this answer */
	worker_lost(lib, library, !makes_sense);
	return NPS_DEVICE_LIB_EXITED;
}

static int lib_call(const struct nps_device_lib *lib, enum nps_worker_library library,
		    const struct nps_worker_request *r, const void *payload, struct nps_worker_reply *reply,
		    void *data)
{
	int err;

	*reply = (struct nps_worker_reply){ 0 };
	/* The time counts for a single call, not for many that are slow together. */
	nps_device_lib__alive(lib);
	err = (lib->exchange ? lib->exchange : exchange_with_worker)(lib, library, r, payload, reply, data);
	if (err)
		*reply = (struct nps_worker_reply){ 0 }; /* no part of it is used */
	else if (reply->code == NPS_DEVICE_LIB_EXITED)
		err = -EIO; /* a code that only this file may return */
	return err ? err : reply->code;
}

/* --- the driver's functions ---------------------------------------------------------------------------- */

/* A call that fills exactly SIZE bytes. */
static int lib_call_sized(const struct nps_device_lib *lib, enum nps_worker_library library,
			  struct nps_worker_request *r, void *out, size_t size)
{
	struct nps_worker_reply reply;
	int code;

	r->room = (uint32_t)size;
	code = lib_call(lib, library, r, NULL, &reply, out);
	return !code && reply.size != size ? -EPROTO : code;
}

int nps_device_lib__load(const struct nps_device_lib *lib, enum nps_worker_library library,
			 char text[NPS_WORKER_TEXT])
{
	const struct nps_worker_request r = { .op = NPS_WORKER_OPEN,
					      .room = NPS_WORKER_TEXT,
					      .library = library };
	struct nps_worker_reply reply;
	int code;

	memset(text, 0, NPS_WORKER_TEXT);
	code = lib_call(lib, library, &r, NULL, &reply, text);
	text[NPS_WORKER_TEXT - 1] = '\0';
	if (code == NPS_DEVICE_LIB_EXITED)
		snprintf(text, NPS_WORKER_TEXT, "the process that loads it %s",
			 lib->workers[library] && lib->workers[library]->how[0] ? lib->workers[library]->how
										: "has ended");
	return code;
}

int nps_device_lib__channels(const struct nps_device_lib *lib, uint32_t device,
			     struct nps_prof_channels *channels)
{
	struct nps_worker_request r = { .op = NPS_WORKER_GET_CHANNELS, .device = device };
	int code = lib_call_sized(lib, NPS_WORKER_HAL, &r, channels, sizeof(*channels));

	if (code)
		channels->n = 0;
	if (channels->n > NPS_PROF_CHANNELS)
		channels->n = NPS_PROF_CHANNELS;
	return code;
}

int nps_device_lib__start(const struct nps_device_lib *lib, uint32_t device, uint32_t channel,
			  const struct nps_prof_start *start)
{
	struct {
		struct nps_worker_start start;
		char parameters[NPS_PROF_PARAMETERS];
	} payload = {
		.start = { .type = start->type, .period_ms = start->period_ms, .real_time = start->real_time }
	};
	struct nps_worker_request r = { .op = NPS_WORKER_START,
					.size = (uint32_t)sizeof(payload.start) + start->data_size,
					.device = device,
					.channel = channel };
	struct nps_worker_reply reply;

	if (start->data_size > sizeof(payload.parameters))
		return -EINVAL;
	if (start->data_size)
		memcpy(payload.parameters, start->data, start->data_size);
	return lib_call(lib, NPS_WORKER_HAL, &r, &payload, &reply, NULL);
}

int nps_device_lib__stop(const struct nps_device_lib *lib, uint32_t device, uint32_t channel)
{
	const struct nps_worker_request r = { .op = NPS_WORKER_STOP, .device = device, .channel = channel };
	struct nps_worker_reply reply;

	return lib_call(lib, NPS_WORKER_HAL, &r, NULL, &reply, NULL);
}

int nps_device_lib__read(const struct nps_device_lib *lib, uint32_t device, uint32_t channel, char *buf,
			 uint32_t size)
{
	const struct nps_worker_request r = { .op = NPS_WORKER_READ,
					      .device = device,
					      .channel = channel,
					      .room = size < NPS_WORKER_DATA ? size : NPS_WORKER_DATA };
	struct nps_worker_reply reply;
	int code = lib_call(lib, NPS_WORKER_HAL, &r, NULL, &reply, buf);

	/* Beyond the buffer, or not what arrived: the driver's answers are invalid. */
	return code > 0 && (uint32_t)code != reply.size ? -EPROTO : code;
}

int nps_device_lib__flush(const struct nps_device_lib *lib, uint32_t device, uint32_t channel)
{
	const struct nps_worker_request r = { .op = NPS_WORKER_FLUSH, .device = device, .channel = channel };
	struct nps_worker_reply reply;

	return lib_call(lib, NPS_WORKER_HAL, &r, NULL, &reply, NULL);
}

int nps_device_lib__info(const struct nps_device_lib *lib, uint32_t device, int32_t module, int32_t info,
			 int64_t *value, struct nps_call_span *span)
{
	const struct nps_worker_request r = {
		.op = NPS_WORKER_DEVICE_INFO, .device = device, .kind = module, .info = info
	};
	uint64_t before = nps_now(CLOCK_MONOTONIC_RAW), after;
	struct nps_worker_reply reply;
	int code = lib_call(lib, NPS_WORKER_HAL, &r, NULL, &reply, NULL);

	after = nps_now(CLOCK_MONOTONIC_RAW);
	*value = reply.value;
	if (!span)
		return code;
	*span = (struct nps_call_span){ before, after };
	/* The worker's own times are closer, if they are plausible. */
	if (reply.before >= before && reply.before <= reply.after && reply.after <= after)
		*span = (struct nps_call_span){ reply.before, reply.after };
	return code;
}

int nps_device_lib__devices(const struct nps_device_lib *lib, uint32_t ids[NPS_DEVICE_MAX], uint32_t *n)
{
	const struct nps_worker_request r = { .op = NPS_WORKER_DEVICES,
					      .room = NPS_DEVICE_MAX * sizeof(*ids) };
	struct nps_worker_reply reply;
	int code = lib_call(lib, NPS_WORKER_HAL, &r, NULL, &reply, ids);

	if (!code && reply.size % sizeof(*ids))
		code = -EPROTO;
	*n = code ? 0 : reply.size / (uint32_t)sizeof(*ids);
	return code;
}

int nps_device_lib__api_version(const struct nps_device_lib *lib, int64_t *version)
{
	const struct nps_worker_request r = { .op = NPS_WORKER_API_VERSION };
	struct nps_worker_reply reply;
	int code = lib_call(lib, NPS_WORKER_HAL, &r, NULL, &reply, NULL);

	*version = reply.value;
	return code;
}

int nps_device_lib__chip_name(const struct nps_device_lib *lib, uint32_t device, char name[NPS_CHIP_TEXT])
{
	struct nps_worker_request r = { .op = NPS_WORKER_CHIP_NAME, .device = device };
	int code = lib_call_sized(lib, NPS_WORKER_HAL, &r, name, NPS_CHIP_TEXT);

	name[NPS_CHIP_TEXT - 1] = '\0';
	return code;
}

int nps_device_lib__dcmi_value(const struct nps_device_lib *lib, enum nps_worker_op op, int card, int device,
			       int kind, int64_t *value)
{
	const struct nps_worker_request r = {
		.op = op, .device = (uint32_t)card, .channel = (uint32_t)device, .kind = kind
	};
	struct nps_worker_reply reply;
	int code = lib_call(lib, NPS_WORKER_DCMI, &r, NULL, &reply, NULL);

	*value = reply.value;
	return code;
}

int nps_device_lib__dcmi_data(const struct nps_device_lib *lib, enum nps_worker_op op, int card, int device,
			      void *out, size_t size, size_t *got)
{
	const struct nps_worker_request r = {
		.op = op, .device = (uint32_t)card, .channel = (uint32_t)device, .room = (uint32_t)size
	};
	struct nps_worker_reply reply;
	int code = lib_call(lib, NPS_WORKER_DCMI, &r, NULL, &reply, out);

	*got = reply.size;
	return code;
}
