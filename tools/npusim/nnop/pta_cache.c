/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C API that torch_npu calls around every operator. A miss is followed by the key and a first phase,
 * whose plan is kept; a hit returns an executor of its own, and there is no first phase.
 */
#include "plan.h"
#include "../truth/truth.h"

#pragma GCC visibility push(default)

bool CanUsePTACache(const char *api);
aclOpExecutor *PTAGetExecCache(uint64_t hash, uint64_t *workspaceSize);
aclOpExecutor *PTAFindExecCache(uint8_t *buf, size_t len, uint64_t *workspaceSize);
void InitPTACacheThreadLocal(void);
void SetPTAHashKey(uint64_t hash);
void SetPTACacheHashKey(uint8_t *key, size_t len);
void UnInitPTACacheThreadLocal(void);
int InitHugeMemThreadLocal(void *arg, bool sync);
void UnInitHugeMemThreadLocal(void *arg, bool sync);
void ReleaseHugeMem(void *arg, bool sync);
void AddTensorAddrToCachedList(void *addr);

static __thread struct {
	bool keyed;
	uint64_t key;
} next;

struct cached *pta_cache_pending(void)
{
	bool fresh;

	if (!next.keyed)
		return NULL;
	next.keyed = false;
	return cache_entry(next.key, &fresh);
}

static uint64_t key_of(const uint8_t *buf, size_t len)
{
	uint64_t key = 0x84222325cbf29ce4ull;

	for (size_t i = 0; i < len; i++)
		key = (key ^ buf[i]) * 0x100000001b3ull;
	return key;
}

static aclOpExecutor *find(uint64_t key, uint64_t *workspaceSize)
{
	uint64_t begin = truth_now();
	aclOpExecutor *executor;
	bool fresh;
	struct cached *entry = cache_entry(key, &fresh);

	if (fresh)
		return NULL;
	if (workspaceSize)
		*workspaceSize = 0;
	executor = cache_executor(entry);
	if (executor)
		truth_op(executor->api, executor, 0, begin);
	return executor;
}

bool CanUsePTACache(const char *api)
{
	SAVES_REGISTERS();
	return api != NULL;
}

aclOpExecutor *PTAGetExecCache(uint64_t hash, uint64_t *workspaceSize)
{
	return find(hash, workspaceSize);
}

aclOpExecutor *PTAFindExecCache(uint8_t *buf, size_t len, uint64_t *workspaceSize)
{
	SAVES_REGISTERS();
	return find(key_of(buf, len), workspaceSize);
}

void InitPTACacheThreadLocal(void)
{
	next.keyed = false;
}

void SetPTAHashKey(uint64_t hash)
{
	next.keyed = true;
	next.key = hash;
}

void SetPTACacheHashKey(uint8_t *key, size_t len)
{
	SAVES_REGISTERS();
	SetPTAHashKey(key_of(key, len));
}

void UnInitPTACacheThreadLocal(void)
{
	next.keyed = false;
}

int InitHugeMemThreadLocal(void *arg, bool sync)
{
	SAVES_REGISTERS();
	(void)arg;
	(void)sync;
	return ACLNN_SUCCESS;
}

void UnInitHugeMemThreadLocal(void *arg, bool sync)
{
	SAVES_REGISTERS();
	(void)arg;
	(void)sync;
}

void ReleaseHugeMem(void *arg, bool sync)
{
	SAVES_REGISTERS();
	(void)arg;
	(void)sync;
}

void AddTensorAddrToCachedList(void *addr)
{
	SAVES_REGISTERS();
	(void)addr;
}
