// SPDX-License-Identifier: BSD-2-Clause
/*
 * A few functions of CANN's C interface, as small as they can be: libacl_rt.so of the
 * tests that need no device. What a call does besides is the job's choice, through a callback.
 */
#include <stddef.h>

typedef void (*callback)(int what, void *arg);

static callback hook;
static volatile long calls;

void test_set_callback(callback f);
long test_calls(void);
int aclInit(const char *config);
int aclrtSetDevice(int device);
int aclrtSynchronizeDevice(void);
int aclrtSynchronizeStream(void *stream);
int aclrtMalloc(void **ptr, size_t size, int policy);
int aclrtLaunchKernel(void *func, unsigned blocks, const void *args, size_t size, void *stream);

void test_set_callback(callback f)
{
	hook = f;
}

long test_calls(void)
{
	return calls;
}

/* Something of the frame is needed after the callback, so that this is a real frame. */
static int act(int what, void *arg)
{
	volatile int keep = what;

	calls++;
	if (hook)
		hook(what, arg);
	return keep - what;
}

int aclInit(const char *config)
{
	return act(1, (void *)config);
}

int aclrtSetDevice(int device)
{
	int status = act(2, NULL);

	return status + (device < 0 ? 1 : 0);
}

int aclrtSynchronizeDevice(void)
{
	volatile int status = act(3, NULL);

	return status;
}

int aclrtSynchronizeStream(void *stream)
{
	volatile int status = act(4, stream);

	return status;
}

int aclrtMalloc(void **ptr, size_t size, int policy)
{
	int status = act(5, ptr);

	*ptr = (void *)(size + policy);
	return status;
}

int aclrtLaunchKernel(void *func, unsigned blocks, const void *args, size_t size, void *stream)
{
	volatile int status = act(6, func);

	(void)blocks;
	(void)args;
	(void)size;
	(void)stream;
	return status;
}
