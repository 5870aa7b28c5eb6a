/* SPDX-License-Identifier: BSD-2-Clause */
/* The task queue: layouts and names as in torch_npu 2.1 to 2.12 with the new string ABI. */
#ifndef NPUSIM_TORCH_NPU_QUEUE_H
#define NPUSIM_TORCH_NPU_QUEUE_H

#include "npu.h"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>

namespace c10_npu
{
namespace queue
{

enum QueueParamType : int32_t {
	COMPILE_AND_EXECUTE = 1,
	ASYNC_MEMCPY = 2,
	EXECUTE_OPAPI = 7,
	EXECUTE_OPAPI_V2 = 8, /* as passed to Enqueue(); EXECUTE_OPAPI in the slot */
};

struct QueueParas {
	aclrtStream paramStream = nullptr;
	QueueParamType paramType = EXECUTE_OPAPI;
	size_t paramLen = 0;
	void *paramVal = nullptr;
	uint64_t correlation_id = 0;
	static std::atomic<uint64_t> g_correlation_id;
};

/* What is between the members here is of aclop operators. */
struct ExecuteParas {
	char opType[100] = {};
	char aclop_1[92];
	uint64_t pta_correlation_id = 0;
	char aclop_2[272];
	at_npu::native::PROC_FUNC customHandler;
	static std::atomic<uint64_t> g_pta_correlation_id;
};

struct ExecuteParasOpApi {
	char opType[100] = {};
	at_npu::native::PROC_FUNC customHandler;
};

struct ExecuteParasOpApiV2 {
	std::string *opName;
	const at_npu::native::PROC_FUNC *customHandler;
};

struct CopyParas {
	void *dst;
	size_t dstLen;
	void *src;
	size_t srcLen;
	aclrtMemcpyKind kind;
};

constexpr size_t TASK_PARAS_BYTES = 504;
constexpr size_t SLOT_BYTES = sizeof(QueueParas) + TASK_PARAS_BYTES;
static_assert(sizeof(QueueParas) == 40 && offsetof(ExecuteParasOpApi, customHandler) == 104 &&
		      sizeof(ExecuteParasOpApi) == 136 && SLOT_BYTES == 544 &&
		      offsetof(ExecuteParas, pta_correlation_id) == 192 &&
		      offsetof(ExecuteParas, customHandler) == 472 &&
		      sizeof(ExecuteParas) == TASK_PARAS_BYTES,
	      "layout of a slot");

} // namespace queue

enum RepoStatus : int32_t { INIT = 0, RUN = 1, NEED_EXIT = 2, CAN_EXIT = 3, ERROR_EXIT = 4 };

struct sring_idx {
	bool working = false;
	volatile unsigned int idx = 0;
};

class NPUQueueBase
{
      public:
	virtual ~NPUQueueBase() = default;
	virtual RepoStatus GetStatus() const = 0;
	virtual void SetStatus(RepoStatus desired) = 0;
	virtual void ChangeStatus(RepoStatus expected, RepoStatus desired) = 0;
	virtual void Enqueue(void *cur_paras) = 0;
	virtual void Dequeue() = 0;
	virtual void MakeSureQueueEmpty() = 0;
	virtual void InitRepo(int8_t device_id) = 0;
};

class Repository : public NPUQueueBase
{
      public:
	~Repository() override;
	RepoStatus GetStatus() const override;
	void SetStatus(RepoStatus desired) override;
	void ChangeStatus(RepoStatus expected, RepoStatus desired) override;
	void Enqueue(void *cur_paras) override;
	void Dequeue() override;
	void MakeSureQueueEmpty() override;
	void InitRepo(int8_t device_id) override;
	/* Ends the consumer after what is queued. */
	void Stop();

      private:
	bool IsEmptyQueue() const;
	bool IsFullQueue() const;
	bool WriteQueue(void *cur_paras);
	bool ReadQueue();
	void ThrowError();
	void *slot(unsigned int i) const;

	/* Offsets are checked in queue.cpp. */
	void *datas = nullptr;
	std::thread consumer;
	int efd_read = -1;
	int efd_write = -1;
	int efd_empty = -1;
	int8_t device_idx = 0;
	std::string error_msg;
	sring_idx read_idx;
	sring_idx write_idx;
	std::atomic<RepoStatus> repo_status{ INIT };
	std::atomic<bool> need_empty{ false };
	std::mutex mu_enqueue;
	friend struct RepositoryLayout;
};

/* Puts CUR_PARAS (QueueParas) with a new correlation id into the queue of the device's default stream. */
void enCurrentNPUStream(void *cur_paras, int8_t device_index = -1);
bool queue_is_enabled();

} // namespace c10_npu

#endif
