/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"

#include <atomic>
#include <cinttypes>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

/* CPython's, from the program that loaded the extension. */
extern "C" {
typedef struct _object PyObject;
void *PyGILState_GetThisThreadState(void);
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
PyObject *PyEval_GetFrame(void);
PyObject *PyFrame_GetBack(PyObject *frame);
PyObject *PyFrame_GetCode(PyObject *frame);
int PyFrame_GetLineNumber(PyObject *frame);
PyObject *PyObject_GetAttrString(PyObject *object, const char *name);
const char *PyUnicode_AsUTF8(PyObject *text);
void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);
void PyErr_Clear(void);
}

namespace npusim
{

static std::atomic<long> step{ -1 };
static std::atomic<uint64_t> next_id{ 1 };
static std::mutex lock;
static thread_local uint64_t correlation;

uint64_t now()
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static FILE *log_file()
{
	static FILE *const file = [] {
		const char *directory = getenv("NPUSIM_TRUTH");
		char path[PATH_MAX];
		FILE *f = nullptr;

		if (directory && *directory) {
			snprintf(path, sizeof(path), "%s/truth.%d.torch.jsonl", directory, getpid());
			f = fopen(path, "we");
			if (!f)
				perror(path);
		}
		return f;
	}();

	return file;
}

bool log_is_written()
{
	return log_file() != nullptr;
}

static int tid()
{
	static thread_local const int id = (int)syscall(SYS_gettid);

	return id;
}

__attribute__((format(printf, 1, 2))) static void put_line(const char *format, ...)
{
	FILE *f = log_file();
	va_list args;

	if (!f)
		return;
	std::lock_guard<std::mutex> guard(lock);
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
}

static std::string quoted(const char *text)
{
	std::string to = "\"";

	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			to += '\\';
		if ((unsigned char)*text >= ' ')
			to += *text;
	}
	return to + '"';
}

static std::string text_of(PyObject *object, const char *attribute)
{
	PyObject *value = PyObject_GetAttrString(object, attribute);
	const char *text = value ? PyUnicode_AsUTF8(value) : nullptr;
	std::string to = text ? text : "";

	if (value)
		Py_DecRef(value);
	if (!text)
		PyErr_Clear();
	return to;
}

static bool is_of_torch(const std::string &file)
{
	return file.find("-packages/torch/") != std::string::npos ||
	       file.find("/torch_npu/") != std::string::npos || file.compare(0, 1, "<") == 0;
}

/* Innermost line of Python that is not PyTorch's, as members of an object; of a thread with the GIL. */
static std::string find_line()
{
	PyObject *frame = PyEval_GetFrame();
	std::string to;

	if (frame)
		Py_IncRef(frame);
	while (frame) {
		PyObject *code = PyFrame_GetCode(frame), *back;
		std::string file = text_of(code, "co_filename");

		if (!is_of_torch(file)) {
			to = ",\"file\":" + quoted(file.c_str()) +
			     ",\"line\":" + std::to_string(PyFrame_GetLineNumber(frame)) +
			     ",\"function\":" + quoted(text_of(code, "co_name").c_str());
			Py_DecRef(code);
			Py_DecRef(frame);
			break;
		}
		Py_DecRef(code);
		back = PyFrame_GetBack(frame);
		Py_DecRef(frame);
		frame = back;
	}
	return to;
}

static std::string python_line()
{
	std::string to;
	int state;

	if (!PyGILState_GetThisThreadState())
		return to;
	state = PyGILState_Ensure();
	to = find_line();
	PyGILState_Release(state);
	return to;
}

void log_step(long number)
{
	step = number;
}

uint64_t log_next_id()
{
	return next_id++;
}

void log_op(const char *aten, const char *aclnn, uint64_t id, const void *executor, bool cached,
	    uint64_t begin)
{
	uint64_t end = now();

	if (!log_is_written())
		return;
	put_line("{\"kind\":\"op\",\"aten\":\"%s\",\"aclnn\":%s,\"id\":%" PRIu64 ",\"executor\":\"%" PRIxPTR
		 "\",\"cached\":%s,\"tid\":%d,\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",\"step\":%ld%s}\n",
		 aten, aclnn ? quoted(aclnn).c_str() : "null", id, (uintptr_t)executor,
		 cached ? "true" : "false", tid(), begin, end, step.load(), python_line().c_str());
}

void log_correlation(uint64_t id)
{
	correlation = id;
}

void log_launch(uint64_t id, const char *aclnn, uint64_t begin)
{
	put_line("{\"kind\":\"launch\",\"id\":%" PRIu64 ",\"aclnn\":\"%s\",\"correlation\":%" PRIu64
		 ",\"tid\":%d,\"begin\":%" PRIu64 ",\"end\":%" PRIu64 "}\n",
		 id, aclnn, correlation, tid(), begin, now());
}

void log_copy(const char *direction, uint64_t bytes, uint64_t begin)
{
	put_line("{\"kind\":\"copy\",\"direction\":\"%s\",\"bytes\":%" PRIu64 ",\"tid\":%d,\"begin\":%" PRIu64
		 ",\"end\":%" PRIu64 ",\"step\":%ld}\n",
		 direction, bytes, tid(), begin, now(), step.load());
}

void log_memory(const char *kind, int device, const void *ptr, int64_t size, int64_t allocated,
		int64_t reserved, int64_t active, const void *stream)
{
	put_line("{\"kind\":\"memory\",\"what\":\"%s\",\"device\":%d,\"ptr\":\"%" PRIxPTR
		 "\",\"size\":%" PRId64 ",\"allocated\":%" PRId64 ",\"reserved\":%" PRId64
		 ",\"active\":%" PRId64 ",\"stream\":\"%" PRIxPTR "\",\"tid\":%d,\"at\":%" PRIu64
		 ",\"step\":%ld}\n",
		 kind, device, (uintptr_t)ptr, size, allocated, reserved, active, (uintptr_t)stream, tid(),
		 now(), step.load());
}

void log_collective(const char *api, uint64_t count, uint64_t begin)
{
	put_line("{\"kind\":\"collective\",\"api\":\"%s\",\"count\":%" PRIu64 ",\"tid\":%d,\"begin\":%" PRIu64
		 ",\"end\":%" PRIu64 ",\"step\":%ld}\n",
		 api, count, tid(), begin, now(), step.load());
}

void log_end()
{
	FILE *f = log_file();

	put_line("{\"kind\":\"end\"}\n");
	if (f)
		fflush(f);
}

} // namespace npusim
