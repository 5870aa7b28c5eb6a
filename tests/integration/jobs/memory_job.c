/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gets and gives back memory through every layer and keeps its own account: after each change a line
 * "device BYTES" or "host BYTES" with what it holds of that kind since the order to begin.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define HAL_DEVICE_MEMORY (1UL << 10) /* kind of memory in halMemAlloc's flag */
#define THREADS 4
#define ROUNDS 200

struct property {
	int a, b, c;
	struct {
		unsigned int id;
		int type;
	} location;
	uint64_t reserve;
};

static int (*acl_malloc)(void **, size_t, int), (*acl_free)(void *);
static int (*acl_malloc_host)(void **, size_t), (*acl_free_host)(void *);
static int (*rt_malloc)(void **, uint64_t, uint32_t, uint16_t), (*rt_free)(void *);
static int (*hal_alloc)(void **, unsigned long long, unsigned long long), (*hal_free)(void *);
static int (*acl_reserve)(void **, size_t, size_t, void *, uint64_t), (*acl_release)(void *);
static int (*acl_physical)(void **, size_t, const void *, uint64_t), (*acl_free_physical)(void *);
static int (*set_device)(int);
static long device, host;

static void *function(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL), *f = handle ? dlsym(handle, name) : NULL;

	if (!f) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return f;
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: error %d\n", what, err);
	exit(1);
}

static void held(long *account, long bytes)
{
	*account += bytes;
	printf("%s %ld\n", account == &device ? "device" : "host", *account);
}

static void every_layer(void *from_before)
{
	struct property property = { 0 };
	void *p, *q, *r;

	must(acl_malloc(&p, 1000, 0), "aclrtMalloc");
	held(&device, 1000);
	must(rt_malloc(&q, 5000, 2, 0), "rtMalloc");
	held(&device, 5000);
	must(hal_alloc(&r, 70000, HAL_DEVICE_MEMORY), "halMemAlloc");
	held(&device, 70000);
	must(acl_free(p), "aclrtFree");
	held(&device, -1000);
	must(acl_free(from_before), "aclrtFree"); /* not in the account */
	if (!hal_alloc(&p, 0, HAL_DEVICE_MEMORY)) /* refused: not in the account */
		exit(1);
	must(acl_malloc_host(&p, 4096), "aclrtMallocHost");
	held(&host, 4096);
	must(rt_free(q), "rtFree");
	held(&device, -5000);
	must(hal_free(r), "halMemFree");
	held(&device, -70000);
	must(acl_reserve(&q, 1 << 21, 0, NULL, 0), "aclrtReserveMemAddress"); /* addresses only */
	must(acl_physical(&r, 1 << 21, &property, 0), "aclrtMallocPhysical");
	held(&device, 1 << 21);
	must(acl_free_physical(r), "aclrtFreePhysical");
	held(&device, -(1 << 21));
	must(acl_release(q), "aclrtReleaseMemAddress");
	must(acl_free_host(p), "aclrtFreeHost");
	held(&host, -4096);
}

/* Addresses go from one thread to another. */
static void *thread(void *arg)
{
	void *kept[8] = { 0 };

	must(set_device(0), "aclrtSetDevice");
	for (int i = 0; i < ROUNDS; i++) {
		void **slot = &kept[i % 8];

		if (*slot)
			must(acl_free(*slot), "aclrtFree");
		must(acl_malloc(slot, (size_t)(i % 7 + 1) * 512, 0), "aclrtMalloc");
	}
	for (int i = 1; i < 8; i++)
		must(acl_free(kept[i]), "aclrtFree");
	*(size_t *)arg = (size_t)((ROUNDS - 8) % 7 + 1) * 512; /* kept[0] is the last round's but seven */
	return NULL;
}

static void threads(void)
{
	pthread_t id[THREADS];
	size_t left[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, thread, &left[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(id[i], NULL);
		device += (long)left[i];
	}
	printf("end device %ld host %ld blocks %d\n", device, host, THREADS);
}

int main(void)
{
	static const char acl[] = "libascendcl.so", rt[] = "libruntime.so", hal[] = "libascend_hal.so";
	int (*init)(const char *) = function(acl, "aclInit");
	void *from_before;

	set_device = function(acl, "aclrtSetDevice");
	acl_malloc = function(acl, "aclrtMalloc");
	acl_free = function(acl, "aclrtFree");
	acl_malloc_host = function(acl, "aclrtMallocHost");
	acl_free_host = function(acl, "aclrtFreeHost");
	acl_reserve = function(acl, "aclrtReserveMemAddress");
	acl_release = function(acl, "aclrtReleaseMemAddress");
	acl_physical = function(acl, "aclrtMallocPhysical");
	acl_free_physical = function(acl, "aclrtFreePhysical");
	rt_malloc = function(rt, "rtMalloc");
	rt_free = function(rt, "rtFree");
	hal_alloc = function(hal, "halMemAlloc");
	hal_free = function(hal, "halMemFree");
	must(init(NULL), "aclInit");
	must(set_device(0), "aclrtSetDevice");
	must(acl_malloc(&from_before, 12345, 0), "aclrtMalloc");
	puts("ready");
	fflush(stdout);
	getchar();
	every_layer(from_before);
	threads();
	return 0;
}
