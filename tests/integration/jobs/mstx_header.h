/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How mstx works for those who include its headers: no exported symbol, a table of functions that a library
 * named in MSTX_INJECTION_PATH fills when the first of them is used. What failed once is not tried again.
 */
#ifndef MSTX_HEADER_H
#define MSTX_HEADER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*mstx_function)(void);

static mstx_function mstx_core[5], mstx_domain[6];
static mstx_function *mstx_core_table[] = { NULL, &mstx_core[1], &mstx_core[2], &mstx_core[3],
					    &mstx_core[4] };
static mstx_function *mstx_domain_table[] = {
	NULL, &mstx_domain[1], &mstx_domain[2], &mstx_domain[3], &mstx_domain[4], &mstx_domain[5]
};
static int mstx_tried;

static inline int mstx_get_table(int module, mstx_function ***table, unsigned int *size)
{
	if (module == 1) {
		*table = mstx_core_table;
		*size = 5;
	} else if (module == 2) {
		*table = mstx_domain_table;
		*size = 6;
	} else {
		return 1;
	}
	return 0;
}

static inline void mstx_init(void)
{
	int (*init)(int (*)(int, mstx_function ***, unsigned int *));
	const char *path = getenv("MSTX_INJECTION_PATH");
	void *symbol;

	if (mstx_tried)
		return;
	mstx_tried = 1;
	symbol = dlsym(path ? dlopen(path, RTLD_LAZY) : RTLD_DEFAULT, "InitInjectionMstx");
	memcpy(&init, &symbol, sizeof(init));
	if (symbol && init(mstx_get_table)) {
		memset(mstx_core, 0, sizeof(mstx_core));
		memset(mstx_domain, 0, sizeof(mstx_domain));
	}
}

static inline void mark(const char *message)
{
	mstx_init();
	if (mstx_core[1])
		((void (*)(const char *, void *))mstx_core[1])(message, NULL);
}

static inline uint64_t range_start(const char *message)
{
	mstx_init();
	return mstx_core[2] ? ((uint64_t(*)(const char *, void *))mstx_core[2])(message, NULL) : 0;
}

static inline void range_end(uint64_t range)
{
	mstx_init();
	if (mstx_core[3])
		((void (*)(uint64_t))mstx_core[3])(range);
}

static inline void *domain_create(const char *name)
{
	mstx_init();
	return mstx_domain[1] ? ((void *(*)(const char *))mstx_domain[1])(name) : NULL;
}

static inline void domain_mark(void *domain, const char *message)
{
	mstx_init();
	if (mstx_domain[3])
		((void (*)(void *, const char *, void *))mstx_domain[3])(domain, message, NULL);
}

static inline uint64_t domain_start(void *domain, const char *message)
{
	mstx_init();
	return mstx_domain[4]
		       ? ((uint64_t(*)(void *, const char *, void *))mstx_domain[4])(domain, message, NULL)
		       : 0;
}

static inline void domain_end(void *domain, uint64_t range)
{
	mstx_init();
	if (mstx_domain[5])
		((void (*)(void *, uint64_t))mstx_domain[5])(domain, range);
}

#endif
