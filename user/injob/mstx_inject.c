/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libnpuscope_mstx.so: for jobs that use mstx by its headers only. Such a job has no function that could be
 * probed; it gets the functions behind its marks and ranges, once, from the library in MSTX_INJECTION_PATH.
 * Ours number the ranges, store the names of domains, and do nothing else: probes on them record the job's
 * calls; without a capture they are a few instructions.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_shared.h"

#define MAX_DOMAINS 1024 /* a job has a handful; one that makes up names gets no more */
#define MAX_NAME 255 /* significant bytes of a domain's name, as in the vendor's implementation */

/* Facts of the interface: modules, indices of their functions, results of the entry point. */
enum { MODULE_CORE = 1, MODULE_DOMAIN = 2 };
enum { CORE_MARK = 1, CORE_START = 2, CORE_END = 3 };
enum { DOMAIN_CREATE = 1, DOMAIN_DESTROY = 2, DOMAIN_MARK = 3, DOMAIN_START = 4, DOMAIN_END = 5 };
enum { SUCCESS = 0, FAIL = 1 };

typedef void (*function)(void);
typedef int (*get_table)(int module, function ***table, unsigned int *size);

/* What a handle points at. npuscope reads it from outside the job. */
struct inject_domain {
	uint64_t magic;
	char name[MAX_NAME + 1];
	struct inject_domain *next;
};

static struct inject_domain *domains;
static unsigned int n_domains;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_range;

#define EXPORTED __attribute__((visibility("default")))
/* It begins with a nop, which the kernel need not single-step. */
#define PROBED EXPORTED __attribute__((noinline, patchable_function_entry(1)))
/* The probe is on the call: it must not be optimised away. */
#define REACHED() __asm__ volatile("" ::: "memory")

PROBED void npuscope_mstxMarkA(const char *message, void *stream);
PROBED uint64_t npuscope_mstxRangeStartA(const char *message, void *stream);
PROBED void npuscope_mstxRangeEnd(uint64_t range);
PROBED void *npuscope_mstxDomainCreateA(const char *name);
PROBED void npuscope_mstxDomainDestroy(void *domain);
PROBED void npuscope_mstxDomainMarkA(void *domain, const char *message, void *stream);
PROBED uint64_t npuscope_mstxDomainRangeStartA(void *domain, const char *message, void *stream);
PROBED void npuscope_mstxDomainRangeEnd(void *domain, uint64_t range);
EXPORTED int InitInjectionMstx(get_table get);

static uint64_t next_range(void)
{
	return __atomic_add_fetch(&last_range, 1, __ATOMIC_RELAXED);
}

static struct inject_domain *find_domain(const char *name)
{
	for (struct inject_domain *d = domains; d; d = d->next)
		if (strncmp(d->name, name, MAX_NAME) == 0)
			return d;
	return NULL;
}

static struct inject_domain *add_domain(const char *name)
{
	struct inject_domain *d = n_domains < MAX_DOMAINS ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return NULL;
	d->magic = NPS_MSTX_MAGIC;
	memcpy(d->name, name, strnlen(name, MAX_NAME));
	d->next = domains;
	domains = d;
	n_domains++;
	return d;
}

/* One handle per name, for the life of the process: marks can come after the domain's end. */
static void *get_domain(const char *name)
{
	struct inject_domain *d;

	if (!name)
		return NULL;
	pthread_mutex_lock(&lock);
	d = find_domain(name);
	if (!d)
		d = add_domain(name);
	pthread_mutex_unlock(&lock);
	return d;
}

void npuscope_mstxMarkA(const char *message, void *stream)
{
	(void)message;
	(void)stream;
	REACHED();
}

uint64_t npuscope_mstxRangeStartA(const char *message, void *stream)
{
	(void)message;
	(void)stream;
	return next_range();
}

void npuscope_mstxRangeEnd(uint64_t range)
{
	(void)range;
	REACHED();
}

void *npuscope_mstxDomainCreateA(const char *name)
{
	return get_domain(name);
}

void npuscope_mstxDomainDestroy(void *domain)
{
	(void)domain;
	REACHED();
}

void npuscope_mstxDomainMarkA(void *domain, const char *message, void *stream)
{
	(void)domain;
	(void)message;
	(void)stream;
	REACHED();
}

uint64_t npuscope_mstxDomainRangeStartA(void *domain, const char *message, void *stream)
{
	(void)domain;
	(void)message;
	(void)stream;
	return next_range();
}

void npuscope_mstxDomainRangeEnd(void *domain, uint64_t range)
{
	(void)domain;
	(void)range;
	REACHED();
}

/*
 * The same for libms_tools_ext.so, whose own functions are probed: here
 * no call may be recorded a second time.
 */
static uint64_t quiet_start(const char *message, void *stream)
{
	(void)message;
	(void)stream;
	return next_range();
}

static void *quiet_create(const char *name)
{
	return get_domain(name);
}

static uint64_t quiet_domain_start(void *domain, const char *message, void *stream)
{
	(void)domain;
	(void)message;
	(void)stream;
	return next_range();
}

struct inject_entry {
	unsigned int at;
	function probed, quiet; /* quiet NULL: without a function the caller does nothing */
};

/* clang-format off */
static const struct inject_entry core[] = {
	{ CORE_MARK, (function)npuscope_mstxMarkA, NULL },
	{ CORE_START, (function)npuscope_mstxRangeStartA, (function)quiet_start },
	{ CORE_END, (function)npuscope_mstxRangeEnd, NULL },
};

static const struct inject_entry domain[] = {
	{ DOMAIN_CREATE, (function)npuscope_mstxDomainCreateA, (function)quiet_create },
	{ DOMAIN_DESTROY, (function)npuscope_mstxDomainDestroy, NULL },
	{ DOMAIN_MARK, (function)npuscope_mstxDomainMarkA, NULL },
	{ DOMAIN_START, (function)npuscope_mstxDomainRangeStartA, (function)quiet_domain_start },
	{ DOMAIN_END, (function)npuscope_mstxDomainRangeEnd, NULL },
};
/* clang-format on */

static int fill(get_table get, int module, const struct inject_entry *v, size_t n, int quiet)
{
	unsigned int size = 0;
	function **table = NULL;

	if (get(module, &table, &size) != SUCCESS || !table)
		return FAIL;
	for (size_t i = 0; i < n; i++) {
		function f = quiet ? v[i].quiet : v[i].probed;

		if (v[i].at < size && table[v[i].at] && f)
			*table[v[i].at] = f;
	}
	return SUCCESS;
}

/* Each program and library that includes the headers has a table of its own, and calls us separately. */
static int is_tools_ext(get_table get)
{
	Dl_info info;

	return dladdr(*(void **)&get, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "libms_tools_ext.so");
}

/* Old headers have no domains: marks without one are recorded all the same. */
int InitInjectionMstx(get_table get)
{
	int quiet, status;

	if (!get)
		return FAIL;
	quiet = is_tools_ext(get);
	status = fill(get, MODULE_CORE, core, sizeof(core) / sizeof(*core), quiet);
	fill(get, MODULE_DOMAIN, domain, sizeof(domain) / sizeof(*domain), quiet);
	return status;
}
