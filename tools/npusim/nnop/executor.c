/* SPDX-License-Identifier: BSD-2-Clause */
/* The executor: phase 1 plans kernels into it, phase 2 launches them. */
#define _GNU_SOURCE
#include "opbase.h"
#include "../truth/truth.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_MAX 4
#define KERNEL_DIR "built-in/op_impl/ai_core/tbe/kernel/ascend910b"

struct loaded {
	struct loaded *next;
	const char *name;
	aclrtFuncHandle function;
};

struct planned {
	const char *l0_operator;
	const char *kernel;
	uint32_t blocks;
};

struct aclOpExecutor {
	const char *api;
	const char *l0_operator;
	bool repeatable;
	int nkernels;
	struct planned kernels[KERNELS_MAX];
};

static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loaded *loaded;

void InitL2Phase1Context(const char *api, aclOpExecutor **executor)
{
	aclOpExecutor *e = calloc(1, sizeof(*e));

	if (e)
		e->api = api;
	*executor = e;
}

void InitL2Phase2Context(const char *api, aclOpExecutor *executor)
{
	executor->api = api;
}

void InitL0Context(const char *l0_operator, aclOpExecutor *executor)
{
	executor->l0_operator = l0_operator;
}

aclnnStatus AddToKernelLauncher(aclOpExecutor *executor, const char *kernel, uint32_t blocks)
{
	struct planned *p;

	if (executor->nkernels == KERNELS_MAX)
		return ACLNN_ERR_INNER;
	p = &executor->kernels[executor->nkernels++];
	p->l0_operator = executor->l0_operator;
	p->kernel = kernel;
	p->blocks = blocks;
	return ACLNN_SUCCESS;
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
	uint64_t args[4] = { 0 };
	aclError err;

	if (!function)
		return ACLNN_ERR_INNER;
	truth_operator(e->api, p->l0_operator);
	err = aclrtLaunchKernelWithHostArgs(function, p->blocks, stream, NULL, args, sizeof(args), NULL, 0);
	truth_operator(NULL, NULL);
	return err;
}

aclnnStatus CommonOpExecutorRun(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
				aclrtStream stream)
{
	aclnnStatus err = ACLNN_SUCCESS;

	if (workspaceSize && !workspace)
		return ACLNN_ERR_PARAM_NULLPTR;
	for (int i = 0; !err && i < executor->nkernels; i++)
		err = launch_planned(executor, &executor->kernels[i], stream);
	if (!executor->repeatable)
		free(executor);
	return err;
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
	if (!executor)
		return ACLNN_ERR_PARAM_NULLPTR;
	executor->repeatable = true;
	return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
	free(executor);
	return ACLNN_SUCCESS;
}
