/* SPDX-License-Identifier: BSD-2-Clause */
/* The executor: phase 1 plans kernels into it, phase 2 launches them. */
#define _GNU_SOURCE
#include "plan.h"
#include "../truth/truth.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_DIR "built-in/op_impl/ai_core/tbe/kernel/ascend910b"

struct loaded {
	struct loaded *next;
	const char *name;
	aclrtFuncHandle function;
};

static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loaded *loaded;

void InitL2Phase1Context(const char *api, aclOpExecutor **executor)
{
	aclOpExecutor *e = calloc(1, sizeof(*e));

	if (e) {
		e->api = api;
		e->fills[0] = pta_cache_pending();
	}
	*executor = e;
}

void InitL2Phase2Context(const char *api, aclOpExecutor *executor)
{
	SAVES_REGISTERS();
	executor->api = api;
}

void InitL0Context(const char *l0_operator, aclOpExecutor *executor)
{
	SAVES_REGISTERS();
	executor->l0_operator = l0_operator;
}

static void fill_caches(const aclOpExecutor *e)
{
	for (int i = 0; i < 2; i++)
		if (e->fills[i])
			cache_fill(e->fills[i], e->api, &e->plan);
}

aclnnStatus AddToKernelLauncher(aclOpExecutor *executor, const char *kernel, uint32_t blocks)
{
	struct plan *plan = &executor->plan;

	if (plan->nkernels == KERNELS_MAX)
		return ACLNN_ERR_INNER;
	plan->kernels[plan->nkernels++] = (struct planned){ executor->l0_operator, kernel, blocks, NULL };
	fill_caches(executor);
	return ACLNN_SUCCESS;
}

/* Three fields: shapes, types, formats; "-" where there is no tensor. */
static int describe(char *to, int room, const aclTensor *const *tensors, int n)
{
	int len = 0;

	for (int what = 0; what < 3; what++) {
		int before;

		if (what)
			to[len++] = '\t';
		before = len;
		for (int i = 0; i < n; i++) {
			if (!tensors[i] || len + 256 > room)
				continue;
			if (len > before)
				to[len++] = ';';
			len += DescribeTensor(tensors[i], what, to + len, room - len);
		}
		if (len == before)
			to[len++] = '-';
	}
	to[len] = '\0';
	return len;
}

void SetKernelTensors(aclOpExecutor *executor, const aclTensor *const *in, int nin,
		      const aclTensor *const *out, int nout)
{
	struct planned *p = &executor->plan.kernels[executor->plan.nkernels - 1];
	char fields[FIELDS_MAX];
	int len;

	if (!truth_is_written())
		return;
	len = describe(fields, sizeof(fields) / 2, in, nin);
	fields[len++] = '\t';
	describe(fields + len, (int)sizeof(fields) - len, out, nout);
	free(p->tensors);
	p->tensors = strdup(fields);
	fill_caches(executor);
}

/* FNV-1a over everything that makes two calls of an operator alike. */
static uint64_t call_key(const char *api, const aclTensor *const *in, int nin, const aclTensor *const *out,
			 int nout)
{
	char text[FIELDS_MAX];
	uint64_t key = 0xcbf29ce484222325ull;
	int len = snprintf(text, sizeof(text) / 4, "%s\t", api);

	len += describe(text + len, (int)sizeof(text) / 2 - len, in, nin);
	text[len++] = '\t';
	len += describe(text + len, (int)sizeof(text) - len, out, nout);
	for (int i = 0; i < len; i++)
		key = (key ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return key;
}

bool PlanFromCache(aclOpExecutor *executor, const aclTensor *const *in, int nin, const aclTensor *const *out,
		   int nout)
{
	static int on = -1;
	struct cached *entry;
	bool fresh;

	if (on < 0)
		on = getenv("NPUSIM_EXECUTOR_CACHE") != NULL;
	if (!on)
		return false;
	entry = cache_entry(call_key(executor->api, in, nin, out, nout), &fresh);
	if (!entry)
		return false;
	if (fresh) {
		executor->fills[1] = entry;
		return false;
	}
	cache_fetch(entry, &executor->plan);
	if (executor->fills[0])
		cache_fill(executor->fills[0], executor->api, &executor->plan);
	return true;
}

/* $ASCEND_OPP_PATH, or the opp directory beside the library directory of this library. */
static int kernel_path(char *path, size_t size, const char *kernel)
{
	const char *opp = getenv("ASCEND_OPP_PATH");
	char self[PATH_MAX];
	Dl_info info;
	int n;

	if (opp && *opp) {
		n = snprintf(path, size, "%s/" KERNEL_DIR "/%s.o", opp, kernel);
	} else {
		if (!dladdr((void *)(uintptr_t)kernel_path, &info) || !realpath(info.dli_fname, self))
			return -1;
		*strrchr(self, '/') = '\0';
		n = snprintf(path, size, "%s/../../opp/" KERNEL_DIR "/%s.o", self, kernel);
	}
	return n < 0 || (size_t)n >= size ? -1 : 0;
}

static struct loaded *load_kernel(const char *kernel)
{
	struct loaded *l = calloc(1, sizeof(*l));
	char path[PATH_MAX * 2];
	aclrtBinHandle binary;

	if (!l)
		return NULL;
	if (kernel_path(path, sizeof(path), kernel) || aclrtBinaryLoadFromFile(path, NULL, &binary) ||
	    aclrtBinaryGetFunction(binary, kernel, &l->function)) {
		fprintf(stderr, "npusim: kernel %s: cannot load it; is ASCEND_OPP_PATH right?\n", kernel);
		free(l);
		return NULL;
	}
	l->name = kernel;
	return l;
}

/* Loaded on first use, kept for the process. */
static aclrtFuncHandle kernel_function(const char *kernel)
{
	struct loaded *l;

	pthread_mutex_lock(&loaded_lock);
	for (l = loaded; l && strcmp(l->name, kernel); l = l->next)
		;
	if (!l) {
		l = load_kernel(kernel);
		if (l) {
			l->next = loaded;
			loaded = l;
		}
	}
	pthread_mutex_unlock(&loaded_lock);
	return l ? l->function : NULL;
}

static aclnnStatus launch_planned(const aclOpExecutor *e, const struct planned *p, aclrtStream stream)
{
	aclrtFuncHandle function = kernel_function(p->kernel);
	uint64_t host_args[4] = { 0 };
	aclError err;

	if (!function)
		return ACLNN_ERR_INNER;
	truth_operator(e->api, p->l0_operator);
	truth_tensors(p->tensors);
	err = aclrtLaunchKernelWithHostArgs(function, p->blocks, stream, NULL, host_args, sizeof(host_args),
					    NULL, 0);
	truth_operator(NULL, NULL);
	truth_tensors(NULL);
	return err;
}

aclnnStatus CommonOpExecutorRun(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
				aclrtStream stream)
{
	aclnnStatus err = ACLNN_SUCCESS;

	if (workspaceSize && !workspace)
		return ACLNN_ERR_PARAM_NULLPTR;
	for (int i = 0; !err && i < executor->plan.nkernels; i++)
		err = launch_planned(executor, &executor->plan.kernels[i], stream);
	if (!executor->repeatable)
		aclDestroyAclOpExecutor(executor);
	return err;
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
	SAVES_REGISTERS();
	if (!executor)
		return ACLNN_ERR_PARAM_NULLPTR;
	executor->repeatable = true;
	return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
	if (executor)
		plan_free(&executor->plan);
	free(executor);
	return ACLNN_SUCCESS;
}
