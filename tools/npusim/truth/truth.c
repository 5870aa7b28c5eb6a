/* SPDX-License-Identifier: BSD-2-Clause */
#include "truth.h"
#include "buffer.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALL_SQES 16
#define COLLECTIVE_TASKS 256

struct submission {
	struct truth_task task;
	const char *name, *aclnn_api, *l0_operator, *tensors;
};

/* What this thread is doing. */
static __thread struct {
	int depth;
	const char *api;
	uint64_t begin;
	const char *kernel, *aclnn_api, *l0_operator, *tensors;
	int nsqes;
	struct submission sqes[CALL_SQES];
	bool collecting;
	int ntasks;
	struct truth_task tasks[COLLECTIVE_TASKS];
} self;

static __thread int self_tid;
static atomic_uint_fast64_t next_launch = 1;

static int tid(void)
{
	if (!self_tid)
		self_tid = (int)syscall(SYS_gettid);
	return self_tid;
}

uint64_t truth_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

void truth_start(void)
{
	buffer_start();
}

void truth_device(uint32_t device, uint64_t hz, uint64_t offset, double drift_ppm)
{
	char *p = line_open("device");

	if (!p)
		return;
	p = put_u64(p, device);
	p = put_u64(p, hz);
	p = put_u64(p, offset);
	p += snprintf(p, 32, "\t%.3f", drift_ppm);
	line_close(p);
}

void truth_flush(void)
{
	buffer_flush();
}

void truth_line(const char *kind, const char *format, ...)
{
	char *p = line_open(kind);
	va_list args;
	int n;

	if (!p)
		return;
	*p++ = '\t';
	va_start(args, format);
	n = vsnprintf(p, LINE_MAX_BYTES - 64, format, args);
	va_end(args);
	line_close(p + (n < LINE_MAX_BYTES - 65 ? n : LINE_MAX_BYTES - 65));
}

static bool is_kernel(const struct truth_task *t)
{
	return t->kind <= 1;
}

static const char *task_name(const struct truth_task *t)
{
	switch (t->kind) {
	case 0:
	case 1:
		return self.kernel;
	case 3:
		return "PLACE_HOLDER";
	case 4:
		return "EVENT_RECORD";
	case 5:
		return "EVENT_WAIT";
	case 6:
		return "NOTIFY_RECORD";
	case 7:
		return "NOTIFY_WAIT";
	case 8:
		return "WRITE_VALUE";
	case 11:
		return "SDMA";
	case 17:
		return "MEMCPY_ASYNC";
	default:
		return NULL;
	}
}

static void put_launches(void)
{
	uint64_t end = truth_now();

	for (int i = 0; i < self.nsqes; i++) {
		const struct submission *s = &self.sqes[i];
		char *p = line_open("launch");

		if (!p)
			break;
		p = put_u64(p, s->task.launch);
		p = put_u64(p, (uint64_t)tid());
		p = put_str(p, self.api);
		p = put_u64(p, self.begin);
		p = put_u64(p, end);
		p = put_u64(p, s->task.device);
		p = put_u64(p, s->task.stream);
		p = put_u64(p, s->task.task);
		p = put_u64(p, s->task.flip);
		p = put_str(p, s->name);
		p = put_str(p, s->aclnn_api);
		p = put_str(p, s->l0_operator);
		line_close(put_str(p, s->tensors ? s->tensors : "-\t-\t-\t-\t-\t-"));
	}
	self.nsqes = 0;
}

const char *truth_enter(const char *api)
{
	if (!buffer_running())
		return NULL;
	if (self.depth++ == 0) {
		self.api = api;
		self.begin = truth_now();
	}
	return api;
}

void truth_leave(const char **api)
{
	if (*api && --self.depth == 0 && self.nsqes)
		put_launches();
}

void truth_kernel_name(const char *name)
{
	self.kernel = name;
}

void truth_operator(const char *aclnn_api, const char *l0_operator)
{
	self.aclnn_api = aclnn_api;
	self.l0_operator = l0_operator;
}

void truth_tensors(const char *fields)
{
	self.tensors = fields;
}

_Bool truth_is_written(void)
{
	return buffer_running();
}

uint64_t truth_sqe(const struct truth_task *task)
{
	struct submission *s;

	if (!buffer_running())
		return 0;
	if (self.nsqes == CALL_SQES)
		put_launches();
	s = &self.sqes[self.nsqes++];
	s->task = *task;
	s->task.launch = atomic_fetch_add(&next_launch, 1);
	s->name = task_name(task);
	s->aclnn_api = is_kernel(task) ? self.aclnn_api : NULL;
	s->l0_operator = is_kernel(task) ? self.l0_operator : NULL;
	s->tensors = is_kernel(task) ? self.tensors : NULL;
	if (self.collecting && self.ntasks < COLLECTIVE_TASKS)
		self.tasks[self.ntasks++] = *task;
	return s->task.launch;
}

void truth_task_done(const struct truth_task *task)
{
	char *p = line_open("task");

	if (!p)
		return;
	p = put_u64(p, task->device);
	p = put_u64(p, task->stream);
	p = put_u64(p, task->task);
	p = put_u64(p, task->flip);
	p = put_u64(p, task->launch);
	p = put_u64(p, task->type);
	p = put_u64(p, task->submit);
	p = put_u64(p, task->start);
	line_close(put_u64(p, task->end));
}

void truth_op(const char *aclnn_api, const void *executor, int phase, uint64_t begin)
{
	char *p = line_open("op");

	if (!p)
		return;
	p = put_u64(p, (uint64_t)tid());
	p = put_str(p, aclnn_api);
	p = put_hex(p, (uintptr_t)executor);
	p = put_i64(p, phase);
	p = put_u64(p, begin);
	line_close(put_u64(p, truth_now()));
}

void truth_collective_begin(void)
{
	self.collecting = true;
	self.ntasks = 0;
}

void truth_collective_end(const char *api, uint64_t begin, uint64_t count, int dtype, const char *group)
{
	char *p = line_open("collective");

	self.collecting = false;
	if (!p)
		return;
	p = put_u64(p, (uint64_t)tid());
	p = put_str(p, api);
	p = put_u64(p, begin);
	p = put_u64(p, truth_now());
	p = put_u64(p, count);
	p = put_i64(p, dtype);
	p = put_str(p, group);
	if (self.ntasks == 0)
		p = put_str(p, NULL);
	else
		*p++ = '\t';
	for (int i = 0; i < self.ntasks; i++)
		p += sprintf(p, "%s%u:%u:%u", i ? "," : "", self.tasks[i].stream, self.tasks[i].task,
			     self.tasks[i].flip);
	line_close(p);
}
