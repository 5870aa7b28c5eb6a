/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps a driver of an NPU busy by its nodes alone, until it is ended: waits for tasks of a stream that
 * nobody submits to, copies, memory that is populated, messages. More of each in a second than a training job
 * has; the driver reports what there was. A second thread calls a node in bursts on the same CPU, so that
 * some interrupts stop a call that is traced.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STREAM 1500
#define WAIT_NS 300000

enum { SQCQ_RECV = 20 };
enum { SVM_MEMCPY = 5, SVM_ADVISE = 13 };
enum { HDC_CONNECT = 0x13, HDC_SEND = 0x15, HDC_RECV = 0x17 };

static int open_node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static int open_queues(void)
{
	struct {
		char name[256];
		int device;
	} part = { "TSDRV", 0 };
	int fd = open_node("/dev/davinci_manager");

	if (ioctl(fd, _IO('Z', 0), &part)) {
		perror("TSDRV");
		exit(1);
	}
	return fd;
}

static void wait_for_task(int fd, uint32_t task)
{
	struct {
		uint32_t type, ts, cq;
		int32_t timeout;
		uint64_t cqe;
		uint32_t n, came, stream, task;
		uint64_t done_in;
		uint32_t rest[6];
	} arg = { .timeout = -1, .stream = STREAM, .task = task & 0xffff, .done_in = WAIT_NS };

	ioctl(fd, _IO('X', SQCQ_RECV), &arg);
}

static void use_memory(int fd, uint32_t turn)
{
	struct {
		uint32_t logical, device, function, pad;
		uint64_t words[12];
	} copy = { .words = { 0x1000, 0x2000, 4096 + turn % 7 * 512, 0, turn & 1 } },
	  populate = { .words = { 0x100000 + (uint64_t)turn * 4096, (turn % 5 + 1) * 65536ULL, 1 } };

	ioctl(fd, _IO('M', SVM_MEMCPY), &copy);
	ioctl(fd, _IO('M', SVM_ADVISE), &populate);
}

struct message {
	int ret, device;
	uint64_t pid, check;
	int word6, session;
	void *data;
	int len;
	uint8_t rest[20];
};

static void talk(int fd, int session, uint32_t turn)
{
	static char text[4096];
	struct message send = { .word6 = session, .data = text, .len = (int)(64 + turn % 11 * 8) },
		       recv = send;

	recv.len = (int)(32 + turn % 13 * 8);
	ioctl(fd, _IO('H', HDC_SEND), &send);
	ioctl(fd, _IO('H', HDC_RECV), &recv);
}

/* What the driver refuses. */
static void *call_on(void *fd)
{
	for (int i = 0;; i++) {
		ioctl(*(int *)fd, _IO('M', 0xee), NULL);
		if (!(i % 20))
			usleep(500);
	}
	return NULL;
}

int main(void)
{
	cpu_set_t first;
	pthread_t thread;
	int queues = open_queues(), memory = open_node("/dev/devmm_svm"), hdc = open_node("/dev/hisi_hdc");
	struct message connect = { .word6 = 9 };

	if (ioctl(hdc, _IO('H', HDC_CONNECT), &connect)) {
		perror("HDC");
		return 1;
	}
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first) || pthread_create(&thread, NULL, call_on, &memory))
		return 1;
	printf("ready\n");
	fflush(stdout);
	for (uint32_t turn = 0;; turn++) {
		wait_for_task(queues, turn);
		use_memory(memory, turn);
		talk(hdc, connect.session, turn);
		usleep(5000);
	}
}
