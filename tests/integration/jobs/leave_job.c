// SPDX-License-Identifier: BSD-2-Clause
/*
 * Leaves C functions that npuscope probes at their return without returning: with longjmp and with
 * pthread_exit. Prints what happened; the output does not depend on time.
 * Prints "ready PID" and waits for a line on stdin. N: how many times.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*synchronize)(void *stream);
static int (*device)(void);
static jmp_buf back;
static long cleaned, entered;
static int depth;

static void load(const char *name, void *f, size_t size)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(f, &symbol, size);
}

static void leave(int what, void *how)
{
	(void)what;
	entered++;
	if (!how)
		return;
	if (depth-- > 0) {
		synchronize(how); /* another probed frame on top */
		return;
	}
	if (strcmp(how, "jump") == 0)
		longjmp(back, 1);
	pthread_exit(how);
}

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
}

static void *thread(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	depth = 2;
	synchronize(arg);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(int argc, char **argv)
{
	const long times = argc > 1 ? atol(argv[1]) : 10000;
	volatile long jumped = 0, exited = 0;
	void (*set_callback)(void (*)(int, void *));
	char go[8];

	if (!dlopen("libacl_rt.so", RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	load("aclrtSynchronizeStream", &synchronize, sizeof(synchronize));
	load("aclrtSynchronizeDevice", &device, sizeof(device));
	load("test_set_callback", &set_callback, sizeof(set_callback));
	set_callback(leave);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(go, sizeof(go), stdin))
		return 1;
	for (volatile long i = 0; i < times; i++) {
		depth = (int)(i % 3);
		if (setjmp(back))
			jumped++;
		else
			synchronize("jump");
		if (device())
			return 1;
	}
	for (long i = 0; i < times / 20; i++) {
		pthread_t t;
		void *result;

		if (pthread_create(&t, NULL, thread, "exit") || pthread_join(t, &result))
			return 1;
		exited += strcmp(result, "exit") == 0;
	}
	printf("jumped %ld exited %ld cleaned %ld entered %ld\n", jumped, exited, cleaned, entered);
	return 12;
}
