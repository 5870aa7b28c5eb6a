/* SPDX-License-Identifier: BSD-2-Clause */
/* The C API that torch_npu calls around every operator. The cache is always empty here: phase 1 always runs. */
#include "opbase.h"

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

bool CanUsePTACache(const char *api)
{
	(void)api;
	return false;
}

aclOpExecutor *PTAGetExecCache(uint64_t hash, uint64_t *workspaceSize)
{
	(void)hash;
	(void)workspaceSize;
	return NULL;
}

aclOpExecutor *PTAFindExecCache(uint8_t *buf, size_t len, uint64_t *workspaceSize)
{
	(void)buf;
	(void)len;
	(void)workspaceSize;
	return NULL;
}

void InitPTACacheThreadLocal(void)
{
}

void SetPTAHashKey(uint64_t hash)
{
	(void)hash;
}

void SetPTACacheHashKey(uint8_t *key, size_t len)
{
	(void)key;
	(void)len;
}

void UnInitPTACacheThreadLocal(void)
{
}

int InitHugeMemThreadLocal(void *arg, bool sync)
{
	(void)arg;
	(void)sync;
	return ACLNN_SUCCESS;
}

void UnInitHugeMemThreadLocal(void *arg, bool sync)
{
	(void)arg;
	(void)sync;
}

void ReleaseHugeMem(void *arg, bool sync)
{
	(void)arg;
	(void)sync;
}

void AddTensorAddrToCachedList(void *addr)
{
	(void)addr;
}
