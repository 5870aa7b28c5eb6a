/* SPDX-License-Identifier: BSD-2-Clause */
#include "kmod.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device.h"

#define DEVICES 16
#define HDC_SERVICE_TSD 9
#define GREETING 64

enum { SVM_ALLOC = 3, SVM_FREE_PAGES = 4, SVM_MEMCPY = 5, SVM_SETUP_DEVICE = 26 };
enum { SQCQ_ALLOC = 15, SQCQ_FREE = 16, SQCQ_SEND = 19, SQCQ_RECV = 20 };
enum { HDC_CONNECT = 0x13, HDC_CLOSE = 0x14, HDC_SEND = 0x15, HDC_RECV = 0x17 };

struct open_arg {
	char module_name[256];
	int device_id;
};

struct svm_arg {
	uint32_t logical_devid, devid, vfid, pad;
	union {
		struct {
			uint64_t va, size;
		} alloc;
		struct {
			uint64_t dst, src, bytes;
			uint8_t is_async;
			uint32_t direction;
		} copy;
		uint8_t room[96];
	} data;
};

struct hdc_arg {
	int first, dev_id;
	uint64_t pid, check;
	int word6, session_out; /* service type and session of a connect, session of a send */
	void *data;
	int len;
	uint8_t rest[20];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool tried;
	int queues, memory; /* descriptors, -1 where the driver is not loaded */
	bool past; /* the driver sees no SQEs */
} devices[DEVICES];

static int open_part(const char *name, uint32_t device)
{
	struct open_arg arg = { .device_id = (int)device };
	int fd = open("/dev/davinci_manager", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -1;
	snprintf(arg.module_name, sizeof(arg.module_name), "%s", name);
	if (ioctl(fd, _IO('Z', 0), &arg)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* As the library greets the device's scheduler of processes. */
static void greet(uint32_t device)
{
	int fd = open("/dev/hisi_hdc", O_RDWR | O_CLOEXEC), session;
	char text[GREETING] = "npusim";
	struct hdc_arg arg = { .dev_id = (int)device, .pid = (uint64_t)getpid(), .word6 = HDC_SERVICE_TSD };

	if (fd < 0)
		return;
	if (!ioctl(fd, _IO('H', HDC_CONNECT), &arg)) {
		session = arg.session_out;
		arg = (struct hdc_arg){ .dev_id = (int)device,
					.pid = (uint64_t)getpid(),
					.word6 = session,
					.data = text,
					.len = GREETING };
		if (!ioctl(fd, _IO('H', HDC_SEND), &arg))
			ioctl(fd, _IO('H', HDC_RECV), &arg);
		arg = (struct hdc_arg){ .dev_id = (int)device, .session_out = session };
		ioctl(fd, _IO('H', HDC_CLOSE), &arg);
	}
	close(fd);
}

static void open_device(uint32_t device)
{
	struct svm_arg setup = { .logical_devid = device, .devid = device };

	devices[device].queues = open_part("TSDRV", device);
	devices[device].memory = open("/dev/devmm_svm", O_RDWR | O_CLOEXEC);
	if (devices[device].memory >= 0)
		ioctl(devices[device].memory, _IO('M', SVM_SETUP_DEVICE), &setup);
	if (devices[device].queues >= 0)
		greet(device);
}

/* false: no such device. */
static bool have(uint32_t device)
{
	if (device >= DEVICES)
		return false;
	pthread_mutex_lock(&lock);
	if (!devices[device].tried) {
		open_device(device);
		devices[device].tried = true;
	}
	pthread_mutex_unlock(&lock);
	return true;
}

static bool have_queues(uint32_t device)
{
	return have(device) && devices[device].queues >= 0;
}

void kmod_queue(uint32_t device, const struct halSqCqInputInfo *in, const struct halSqCqOutputInfo *out)
{
	struct halSqCqInputInfo arg = *in;

	arg.sqId = out->sqId;
	arg.cqId = out->cqId;
	if (have_queues(device))
		ioctl(devices[device].queues, _IO('X', SQCQ_ALLOC), &arg);
}

void kmod_queue_freed(uint32_t device, const struct halSqCqFreeInfo *info)
{
	if (have_queues(device))
		ioctl(devices[device].queues, _IO('X', SQCQ_FREE), info);
}

void kmod_send(uint32_t device, const struct halTaskSendInfo *info)
{
	struct halTaskSendInfo arg = *info;

	if (!have_queues(device) || devices[device].past)
		return;
	if (ioctl(devices[device].queues, _IO('X', SQCQ_SEND), &arg) && errno == EOPNOTSUPP)
		devices[device].past = true;
}

void kmod_wait(uint32_t device, uint16_t stream, uint16_t task, uint64_t ns)
{
	struct halReportRecvInfo arg = { .timeout = -1, .stream_id = stream, .task_id = task };

	memcpy(arg.res, &ns, sizeof(ns)); /* the mock's own: reserved words of the real one */
	if (!have_queues(device) || ioctl(devices[device].queues, _IO('X', SQCQ_RECV), &arg))
		sleep_ns(ns);
}

static bool have_memory(uint32_t device)
{
	return have(device) && devices[device].memory >= 0;
}

void kmod_memory(uint32_t device, const void *address, uint64_t size, int freed)
{
	struct svm_arg arg = { .logical_devid = device, .devid = device };

	arg.data.alloc.va = (uint64_t)(uintptr_t)address;
	arg.data.alloc.size = size;
	if (have_memory(device))
		ioctl(devices[device].memory, freed ? _IO('M', SVM_FREE_PAGES) : _IO('M', SVM_ALLOC), &arg);
}

void kmod_copy(uint32_t device, const void *dst, const void *src, uint64_t size, int direction)
{
	struct svm_arg arg = { .logical_devid = device, .devid = device };

	arg.data.copy.dst = (uint64_t)(uintptr_t)dst;
	arg.data.copy.src = (uint64_t)(uintptr_t)src;
	arg.data.copy.bytes = size;
	arg.data.copy.direction = (uint32_t)direction;
	if (have_memory(device))
		ioctl(devices[device].memory, _IO('M', SVM_MEMCPY), &arg);
}
