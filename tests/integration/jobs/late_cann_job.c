/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linked with nothing of CANN, as a program whose NPU code is a plugin. Prints "ready"; a line on stdin makes
 * it load CANN and copy to the device, N times: "copied N". The next line ends it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TO_DEVICE 1

static void load(void *handle, const char *name, void *f, size_t size)
{
	void *symbol = handle ? dlsym(handle, name) : NULL;

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(f, &symbol, size);
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: error %d\n", what, err);
	exit(1);
}

int main(int argc, char **argv)
{
	const long times = argc > 1 ? atol(argv[1]) : 200;
	int (*set_device)(int), (*create_stream)(void **), (*get_memory)(void **, size_t, int),
		(*synchronize)(void *);
	int (*copy)(void *, size_t, const void *, size_t, int, void *);
	void *cann, *stream, *memory;
	static char data[4096];
	char line[8];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	cann = dlopen("libacl_rt.so", RTLD_NOW);
	load(cann, "aclrtSetDevice", &set_device, sizeof(set_device));
	load(cann, "aclrtCreateStream", &create_stream, sizeof(create_stream));
	load(cann, "aclrtMalloc", &get_memory, sizeof(get_memory));
	load(cann, "aclrtMemcpyAsync", &copy, sizeof(copy));
	load(cann, "aclrtSynchronizeStream", &synchronize, sizeof(synchronize));
	must(set_device(0), "aclrtSetDevice");
	must(create_stream(&stream), "aclrtCreateStream");
	must(get_memory(&memory, sizeof(data), 0), "aclrtMalloc");
	for (long i = 0; i < times; i++) {
		must(copy(memory, sizeof(data), data, sizeof(data), TO_DEVICE, stream), "aclrtMemcpyAsync");
		must(synchronize(stream), "aclrtSynchronizeStream");
		usleep(5000);
	}
	printf("copied %ld\n", times);
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin);
}
