/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives over a full mesh: every rank talks to every other.  All of it is queued on the caller's
 * stream; where ranks have to wait for each other, the stream's NOTIFY_WAIT does.
 */
#include "comm.h"
#include "../abi/stars.h"
#include "../truth/truth.h"

struct call {
	struct comm *comm;
	aclrtStream stream;
	rtError_t err;
};

static uint64_t type_bytes(HcclDataType type)
{
	static const uint8_t bytes[] = { 1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1 };

	return type >= 0 && (size_t)type < sizeof(bytes) ? bytes[type] : 0;
}

static void record(struct call *c, uint32_t peer, enum meeting m)
{
	if (!c->err)
		c->err = rtNotifyRecord(c->comm->theirs[peer][m], c->stream);
}

static void await(struct call *c, uint32_t peer, enum meeting m)
{
	if (!c->err)
		c->err = rtNotifyWait(c->comm->own[peer][m], c->stream);
}

static void meet_all(struct call *c, enum meeting m)
{
	for (uint32_t peer = 0; peer < c->comm->nranks; peer++) {
		if (peer != c->comm->rank)
			record(c, peer, m);
	}
	for (uint32_t peer = 0; peer < c->comm->nranks; peer++) {
		if (peer != c->comm->rank)
			await(c, peer, m);
	}
}

static void copy(struct call *c, void *dst, const void *src, uint64_t bytes)
{
	if (!c->err && bytes)
		c->err = rtMemcpyAsyncWithoutCheckKind(dst, bytes, src, bytes, RT_MEMCPY_DEVICE_TO_DEVICE,
						       c->stream);
}

/* A buffer like this one, in a peer's memory. */
static void *remote(const struct call *c, uint32_t peer, const void *like)
{
	uint64_t base = STARS_PEER_BASE + ((uint64_t)c->comm->device[peer] << STARS_PEER_SHIFT);

	return (void *)(uintptr_t)(base + ((uintptr_t)like & ((1ull << STARS_PEER_SHIFT) - 1)));
}

/* To every peer; alone, there is only the copy from one buffer to the other. */
static void copy_all(struct call *c, void *dst, const void *src, uint64_t bytes)
{
	copy(c, dst, src, c->comm->nranks == 1 ? bytes : 0);
	for (uint32_t peer = 0; peer < c->comm->nranks; peer++) {
		if (peer != c->comm->rank)
			copy(c, remote(c, peer, dst), src, bytes);
	}
}

/* From every peer. */
static void reduce_all(struct call *c, void *dst, const void *src, uint64_t bytes, HcclReduceOp op,
		       HcclDataType type)
{
	for (uint32_t peer = 0; peer < c->comm->nranks; peer++) {
		if (peer != c->comm->rank && !c->err && bytes)
			c->err = rtReduceAsync(dst, bytes, remote(c, peer, src), bytes, op, type, c->stream);
	}
}

static HcclResult call_finish(struct call *c, const char *api, uint64_t begin, uint64_t count,
			      HcclDataType type)
{
	truth_collective_end(api, begin, count, type, c->comm->name);
	return c->err ? HCCL_E_RUNTIME : HCCL_SUCCESS;
}

HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
			 HcclComm comm, aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };
	uint64_t part;

	if (!comm || !sendBuf || !recvBuf)
		return HCCL_E_PTR;
	part = count * type_bytes(dataType) / c.comm->nranks;
	truth_collective_begin();
	meet_all(&c, MEET_READY);
	reduce_all(&c, recvBuf, sendBuf, part, op, dataType);
	meet_all(&c, MEET_MIDDLE);
	copy_all(&c, recvBuf, sendBuf, part);
	meet_all(&c, MEET_DONE);
	return call_finish(&c, "HcclAllReduce", begin, count, dataType);
}

HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType,
			     HcclReduceOp op, HcclComm comm, aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };

	if (!comm || !sendBuf || !recvBuf)
		return HCCL_E_PTR;
	truth_collective_begin();
	meet_all(&c, MEET_READY);
	reduce_all(&c, recvBuf, sendBuf, recvCount * type_bytes(dataType), op, dataType);
	meet_all(&c, MEET_DONE);
	return call_finish(&c, "HcclReduceScatter", begin, recvCount, dataType);
}

HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType,
			 HcclComm comm, aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };

	if (!comm || !sendBuf || !recvBuf)
		return HCCL_E_PTR;
	truth_collective_begin();
	meet_all(&c, MEET_READY);
	copy_all(&c, recvBuf, sendBuf, sendCount * type_bytes(dataType));
	meet_all(&c, MEET_DONE);
	return call_finish(&c, "HcclAllGather", begin, sendCount, dataType);
}

HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
			 aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };

	if (!comm || !buf)
		return HCCL_E_PTR;
	if (root >= c.comm->nranks)
		return HCCL_E_PARA;
	truth_collective_begin();
	meet_all(&c, MEET_READY);
	if (root == c.comm->rank)
		copy_all(&c, buf, buf, count * type_bytes(dataType));
	meet_all(&c, MEET_DONE);
	return call_finish(&c, "HcclBroadcast", begin, count, dataType);
}

HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
		    aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };

	if (!comm || !sendBuf)
		return HCCL_E_PTR;
	if (destRank >= c.comm->nranks || destRank == c.comm->rank)
		return HCCL_E_PARA;
	truth_collective_begin();
	await(&c, destRank, MEET_RECEIVER);
	copy(&c, remote(&c, destRank, sendBuf), sendBuf, count * type_bytes(dataType));
	record(&c, destRank, MEET_SENDER);
	return call_finish(&c, "HcclSend", begin, count, dataType);
}

HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
		    aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };

	if (!comm || !recvBuf)
		return HCCL_E_PTR;
	if (srcRank >= c.comm->nranks || srcRank == c.comm->rank)
		return HCCL_E_PARA;
	truth_collective_begin();
	record(&c, srcRank, MEET_RECEIVER);
	await(&c, srcRank, MEET_SENDER);
	return call_finish(&c, "HcclRecv", begin, count, dataType);
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream)
{
	uint64_t begin = truth_now();
	struct call c = { .comm = comm, .stream = stream };

	if (!comm)
		return HCCL_E_PTR;
	truth_collective_begin();
	meet_all(&c, MEET_READY);
	return call_finish(&c, "HcclBarrier", begin, 0, 0);
}
