/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators.  Ranks meet in a file in /dev/shm, where each leaves the names of the notifies that the
 * others are to record; the last one that has read them removes the file.
 */
#define _GNU_SOURCE
#include "comm.h"
#include "../truth/truth.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOTIFY_NAME_BYTES 40
#define JOIN_TIMEOUT_NS 120000000000ull
#define WORLD_GROUP "hccl_world_group"

struct rendezvous {
	_Atomic uint32_t joined, left;
	uint32_t device[RANKS_MAX];
	/* [rank that waits][rank that records] */
	char notify[RANKS_MAX][RANKS_MAX][MEETINGS][NOTIFY_NAME_BYTES];
};

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo)
{
	if (!rootInfo)
		return HCCL_E_PTR;
	memset(rootInfo, 0, sizeof(*rootInfo));
	snprintf(rootInfo->internal, sizeof(rootInfo->internal), "npusim-hccl-%d-%llx", getpid(),
		 (unsigned long long)truth_now());
	return HCCL_SUCCESS;
}

static int rendezvous_path(char *path, size_t size, const HcclRootInfo *root)
{
	size_t len = strnlen(root->internal, 64);

	if (len == 64 || strncmp(root->internal, "npusim-hccl-", 12) || strchr(root->internal, '/'))
		return -1;
	return snprintf(path, size, "/dev/shm/%s", root->internal) < (int)size ? 0 : -1;
}

static struct rendezvous *open_rendezvous(const char *path)
{
	struct rendezvous *r = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, sizeof(*r)))
		r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return r == MAP_FAILED ? NULL : r;
}

static rtError_t offer_notify(struct comm *c, struct rendezvous *r, int32_t device, uint32_t peer, int m)
{
	rtError_t err = rtNotifyCreate(device, &c->own[peer][m]);

	if (err)
		return err;
	return rtIpcSetNotifyName(c->own[peer][m], r->notify[c->rank][peer][m], NOTIFY_NAME_BYTES);
}

static rtError_t offer_notifies(struct comm *c, struct rendezvous *r)
{
	int32_t device = 0;
	rtError_t err = rtGetDevice(&device);

	if (err)
		return err;
	err = rtGetDevicePhyIdByIndex((uint32_t)device, &r->device[c->rank]);
	for (uint32_t peer = 0; peer < c->nranks && !err; peer++)
		for (int m = 0; m < MEETINGS && peer != c->rank && !err; m++)
			err = offer_notify(c, r, device, peer, m);
	return err;
}

static rtError_t open_notifies(struct comm *c, struct rendezvous *r)
{
	rtError_t err = 0;

	memcpy(c->device, r->device, sizeof(c->device));
	for (uint32_t peer = 0; peer < c->nranks && !err; peer++) {
		for (int m = 0; m < MEETINGS && peer != c->rank && !err; m++)
			err = rtIpcOpenNotify(&c->theirs[peer][m], r->notify[peer][c->rank][m]);
	}
	return err;
}

static bool wait_for_all(struct comm *c, struct rendezvous *r)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t deadline = truth_now() + JOIN_TIMEOUT_NS;

	atomic_fetch_add(&r->joined, 1);
	while (atomic_load(&r->joined) < c->nranks) {
		if (truth_now() > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static HcclResult join(struct comm *c, const char *path)
{
	struct rendezvous *r = open_rendezvous(path);
	HcclResult result;

	if (!r)
		return HCCL_E_SYSCALL;
	if (offer_notifies(c, r))
		result = HCCL_E_RUNTIME;
	else if (!wait_for_all(c, r))
		result = HCCL_E_TIMEOUT;
	else
		result = open_notifies(c, r) ? HCCL_E_RUNTIME : HCCL_SUCCESS;
	if (result || atomic_fetch_add(&r->left, 1) + 1 == c->nranks)
		unlink(path);
	munmap(r, sizeof(*r));
	return result;
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm)
{
	static atomic_uint groups;
	unsigned int group = atomic_fetch_add(&groups, 1);
	char path[PATH_MAX];
	HcclResult result;
	struct comm *c;

	if (!rootInfo || !comm)
		return HCCL_E_PTR;
	if (nRanks < 1 || nRanks > RANKS_MAX || rank >= nRanks ||
	    rendezvous_path(path, sizeof(path), rootInfo))
		return HCCL_E_PARA;
	c = calloc(1, sizeof(*c));
	if (!c)
		return HCCL_E_MEMORY;
	c->nranks = nRanks;
	c->rank = rank;
	if (group)
		snprintf(c->name, sizeof(c->name), "group_name_%u", group);
	else
		strcpy(c->name, WORLD_GROUP);
	result = join(c, path);
	if (result)
		HcclCommDestroy(c);
	else
		*comm = c;
	return result;
}

HcclResult HcclCommDestroy(HcclComm comm)
{
	struct comm *c = comm;

	if (!c)
		return HCCL_E_PTR;
	for (uint32_t peer = 0; peer < c->nranks; peer++) {
		for (int m = 0; m < MEETINGS; m++) {
			if (c->own[peer][m])
				rtNotifyDestroy(c->own[peer][m]);
			if (c->theirs[peer][m])
				rtNotifyDestroy(c->theirs[peer][m]);
		}
	}
	free(c);
	return HCCL_SUCCESS;
}

HcclResult HcclGetCommName(HcclComm comm, char *commName)
{
	struct comm *c = comm;

	if (!c || !commName)
		return HCCL_E_PTR;
	strcpy(commName, c->name);
	return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize)
{
	if (!comm || !rankSize)
		return HCCL_E_PTR;
	*rankSize = ((struct comm *)comm)->nranks;
	return HCCL_SUCCESS;
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank)
{
	if (!comm || !rank)
		return HCCL_E_PTR;
	*rank = ((struct comm *)comm)->rank;
	return HCCL_SUCCESS;
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError)
{
	if (!comm || !asyncError)
		return HCCL_E_PTR;
	*asyncError = HCCL_SUCCESS;
	return HCCL_SUCCESS;
}
