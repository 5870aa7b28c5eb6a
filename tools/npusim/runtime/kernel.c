/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel binaries and the names in them. */
#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAVE_NS_MIN 600
#define WAVE_NS_SPREAD 1800
#define BINARY_BYTES_MAX (64u << 20)

struct binary {
	size_t size;
	char *image;
	void *device_copy;
	pthread_mutex_t lock;
	struct kernel *kernels;
};

struct stub {
	struct stub *next;
	const void *function;
	char *name;
	const struct kernel *kernel;
};

static pthread_mutex_t stubs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stub *stubs;

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s)
		h = (h ^ (uint8_t)*s++) * 16777619u;
	return h ^ h >> 15;
}

static rtError_t copy_to_device(struct binary *b, const char *image, size_t size)
{
	rtError_t err = rtMalloc(&b->device_copy, size, 0, 0);

	if (err)
		return err;
	return rtMemcpy(b->device_copy, size, image, size, RT_MEMCPY_HOST_TO_DEVICE);
}

static rtError_t load(char *image, size_t size, rtBinHandle *handle)
{
	struct binary *b = calloc(1, sizeof(*b));
	rtError_t err = b ? copy_to_device(b, image, size) : ACL_ERROR_RT_MEMORY_ALLOCATION;

	if (err) {
		free(b);
		free(image);
		return err;
	}
	b->image = image;
	b->size = size;
	pthread_mutex_init(&b->lock, NULL);
	*handle = b;
	return ACL_SUCCESS;
}

static char *read_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *image = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size <= BINARY_BYTES_MAX)
		image = malloc((size_t)st.st_size);
	if (image && read(fd, image, (size_t)st.st_size) != st.st_size) {
		free(image);
		image = NULL;
	}
	close(fd);
	if (image)
		*size = (size_t)st.st_size;
	return image;
}

rtError_t rtsBinaryLoadFromFile(const char *path, const void *options, rtBinHandle *handle)
{
	size_t size;
	char *image;

	(void)options;
	if (!path || !handle)
		return ACL_ERROR_RT_PARAM_INVALID;
	image = read_file(path, &size);
	return image ? load(image, size, handle) : ACL_ERROR_RT_PARAM_INVALID;
}

rtError_t rtsBinaryLoadFromData(const void *data, uint64_t length, const void *options, rtBinHandle *handle)
{
	char *image;

	(void)options;
	if (!data || length == 0 || length > BINARY_BYTES_MAX || !handle)
		return ACL_ERROR_RT_PARAM_INVALID;
	image = malloc(length);
	if (!image)
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	memcpy(image, data, length);
	return load(image, length, handle);
}

rtError_t rtsBinaryUnload(rtBinHandle handle)
{
	struct binary *b = handle;

	if (!b)
		return ACL_ERROR_RT_INVALID_HANDLE;
	while (b->kernels) {
		struct kernel *k = b->kernels;

		b->kernels = k->next;
		free(k->name);
		free(k);
	}
	rtFree(b->device_copy);
	free(b->image);
	free(b);
	return ACL_SUCCESS;
}

/* As the compiler names them. */
static enum stars_core core_of(const char *name)
{
	if (strstr(name, "_mix_"))
		return STARS_MIX;
	return strncmp(name, "MatMul", 6) ? STARS_VECTOR : STARS_CUBE;
}

/* NPUSIM_SLOW_KERNEL=NAME:NS; time of a block of kernels whose names begin like that. */
static uint32_t wave_ns_of(const char *name)
{
	const char *slow = getenv("NPUSIM_SLOW_KERNEL"), *ns = slow ? strrchr(slow, ':') : NULL;

	if (ns && ns > slow && !strncmp(name, slow, (size_t)(ns - slow)))
		return (uint32_t)strtoul(ns + 1, NULL, 10);
	return WAVE_NS_MIN + hash(name) % WAVE_NS_SPREAD;
}

static struct kernel *new_kernel(struct binary *b, const char *name)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->name = strdup(name);
	if (!k->name) {
		free(k);
		return NULL;
	}
	k->pc = (uintptr_t)b->device_copy + hash(name) % b->size / 4 * 4;
	k->core = core_of(name);
	k->wave_ns = wave_ns_of(name);
	k->next = b->kernels;
	b->kernels = k;
	return k;
}

static struct kernel *find_kernel(struct binary *b, const char *name)
{
	struct kernel *k;

	pthread_mutex_lock(&b->lock);
	for (k = b->kernels; k && strcmp(k->name, name); k = k->next)
		;
	if (!k)
		k = new_kernel(b, name);
	pthread_mutex_unlock(&b->lock);
	return k;
}

/* The name must be in the image's string table. */
rtError_t rtsFuncGetByName(const rtBinHandle handle, const char *kernelName, rtFuncHandle *function)
{
	struct binary *b = handle;

	if (!b || !kernelName || !function)
		return ACL_ERROR_RT_PARAM_INVALID;
	if (!memmem(b->image, b->size, kernelName, strlen(kernelName) + 1))
		return ACL_ERROR_RT_INVALID_HANDLE;
	*function = find_kernel(b, kernelName);
	return *function ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

/* What is found by tiling key has no name but the one made of the key. */
rtError_t rtsFuncGetByEntry(const rtBinHandle handle, uint64_t entry, rtFuncHandle *function)
{
	if (!handle || !function)
		return ACL_ERROR_RT_PARAM_INVALID;
	*function = (void *)(uintptr_t)kernel_by_key(handle, entry);
	return *function ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

rtError_t rtsFuncGetName(const rtFuncHandle function, uint32_t maxLen, char *name)
{
	const struct kernel *k = function;

	if (!k || !name || snprintf(name, maxLen, "%s", k->name) >= (int)maxLen)
		return ACL_ERROR_RT_PARAM_INVALID;
	return ACL_SUCCESS;
}

rtError_t rtDevBinaryRegister(const rtDevBinary_t *bin, void **hdl)
{
	return bin ? rtsBinaryLoadFromData(bin->data, bin->length, NULL, hdl) : ACL_ERROR_RT_PARAM_INVALID;
}

rtError_t rtRegisterAllKernel(const rtDevBinary_t *bin, void **hdl)
{
	return rtDevBinaryRegister(bin, hdl);
}

rtError_t rtDevBinaryUnRegister(void *hdl)
{
	return rtsBinaryUnload(hdl);
}

static struct stub *new_stub(const void *function, const char *name, const struct kernel *kernel)
{
	struct stub *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->name = strdup(name);
	if (!s->name) {
		free(s);
		return NULL;
	}
	s->function = function;
	s->kernel = kernel;
	return s;
}

rtError_t rtFunctionRegister(void *binHandle, const void *stubFunc, const char *stubName,
			     const void *kernelInfoExt, uint32_t funcMode)
{
	struct kernel *k;
	struct stub *s;

	(void)kernelInfoExt;
	(void)funcMode;
	if (!binHandle || !stubFunc || !stubName)
		return ACL_ERROR_RT_PARAM_INVALID;
	k = find_kernel(binHandle, stubName);
	s = k ? new_stub(stubFunc, stubName, k) : NULL;
	if (!s)
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	pthread_mutex_lock(&stubs_lock);
	s->next = stubs;
	stubs = s;
	pthread_mutex_unlock(&stubs_lock);
	return ACL_SUCCESS;
}

const struct kernel *kernel_by_stub(const void *stub)
{
	const struct stub *s;

	pthread_mutex_lock(&stubs_lock);
	for (s = stubs; s && s->function != stub; s = s->next)
		;
	pthread_mutex_unlock(&stubs_lock);
	return s ? s->kernel : NULL;
}

const struct kernel *kernel_by_key(void *binary, uint64_t tiling_key)
{
	char name[32];

	snprintf(name, sizeof(name), "kernel_%llu", (unsigned long long)tiling_key);
	return binary ? find_kernel(binary, name) : NULL;
}

rtError_t rtGetFunctionByName(const char *stubName, void **stubFunc)
{
	const struct stub *s;

	pthread_mutex_lock(&stubs_lock);
	for (s = stubs; s && strcmp(s->name, stubName); s = s->next)
		;
	pthread_mutex_unlock(&stubs_lock);
	if (!s)
		return ACL_ERROR_RT_INVALID_HANDLE;
	*stubFunc = (void *)(uintptr_t)s->function;
	return ACL_SUCCESS;
}

rtError_t rtQueryFunctionRegistered(const char *stubName)
{
	void *stub;

	return rtGetFunctionByName(stubName, &stub);
}
