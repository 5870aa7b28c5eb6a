/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a driver's channel gives to the collector: the first byte chooses the channel, the second how the
 * bytes after it are split into reads. Nothing may be stored that was not read, and each byte is stored,
 * counted as torn, or was text.
 */
#include "sources/device/device_stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *data;
	size_t len, at, most;
} driver;

static int read_some(char *buf, size_t size)
{
	size_t n = driver.len - driver.at;

	n = n < driver.most ? n : driver.most;
	n = n < size ? n : size;
	memcpy(buf, driver.data + driver.at, n);
	driver.at += n;
	return (int)n;
}

static int exchange(const struct nps_device_lib *of, enum nps_worker_library library,
		    const struct nps_worker_request *r, const void *payload, struct nps_worker_reply *reply,
		    void *data)
{
	(void)of;
	(void)library;
	(void)payload;
	*reply = (struct nps_worker_reply){ .op = r->op };
	if (r->op == NPS_WORKER_START)
		reply->code = r->size > sizeof(struct nps_worker_start) + 128;
	if (r->op == NPS_WORKER_READ) {
		reply->code = read_some(data, r->room);
		reply->size = (uint32_t)reply->code;
	}
	return 0;
}

static const struct nps_device_lib lib = { .exchange = exchange };

static void clear(int dirfd, const char *path)
{
	char done[300];

	snprintf(done, sizeof(done), "%s.done", path);
	unlinkat(dirfd, path, 0);
	unlinkat(dirfd, done, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t platforms[] = { NPS_PLATFORM_910B, NPS_PLATFORM_910A, NPS_PLATFORM_310P,
					      NPS_PLATFORM_950 };
	static char buf[64 << 10];
	struct nps_device_info info = { .counter_khz = 50000, .aic_cores = 24, .aiv_cores = 48 };
	struct nps_device_opts opts = { .io = true,
					.links = true,
					.memory = true,
					.l2_cache = true,
					.metric = NPS_AIC_PIPE,
					.llc = 'r',
					.io_hz = 100,
					.links_hz = 50,
					.memory_hz = 50,
					.aic_hz = 100 };
	struct nps_device_stream s = { .state = NPS_STREAM_WAITS };
	const char *folder = getenv("FUZZ_TMP");
	struct nps_session_writer session = { .dir_fd = -1 };
	char dir[128], path[256];
	struct stat st = { 0 };
	int disk = 0;

	if (size < 2)
		return 0;
	s.ch = nps_channel__at(data[0] % nps_channels__count());
	info.platform = platforms[data[1] & 3];
	driver.data = data + 2;
	driver.len = size - 2;
	driver.at = 0;
	driver.most = 1 + (size_t)(data[1] >> 2) * 61;
	snprintf(dir, sizeof(dir), "%s/stream.XXXXXX", folder ? folder : "/dev/shm");
	if (!mkdtemp(dir))
		abort();
	session.dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	mkdirat(session.dir_fd, "P", 0700);
	mkdirat(session.dir_fd, "P/device_0", 0700);
	mkdirat(session.dir_fd, "P/device_0/data", 0700);
	if (nps_device_stream__start(&s, &lib, &opts, &info, "P"))
		abort();
	while (driver.at < driver.len)
		if (nps_device_stream__drain(&s, &lib, &info, &session, buf, sizeof(buf), &disk))
			abort();
	if (nps_device_stream__stop(&s, &lib, &info, &session, buf, sizeof(buf), &disk) || disk)
		abort();
	snprintf(path, sizeof(path), "P/device_0/data/%s.0.slice_0", s.ch->file);
	fstatat(session.dir_fd, path, &st, 0);
	if (s.bytes != driver.len || (uint64_t)st.st_size + s.torn != s.bytes)
		abort();
	clear(session.dir_fd, path);
	unlinkat(session.dir_fd, "P/device_0/data", AT_REMOVEDIR);
	unlinkat(session.dir_fd, "P/device_0", AT_REMOVEDIR);
	unlinkat(session.dir_fd, "P", AT_REMOVEDIR);
	close(session.dir_fd);
	rmdir(dir);
	return 0;
}
