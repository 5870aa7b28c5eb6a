/* SPDX-License-Identifier: BSD-2-Clause */
/* The task queue: a ring with one consumer, who sleeps on an eventfd when there is nothing to do. */
#include "queue.h"
#include "log.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace c10_npu
{

static constexpr unsigned int kQueueCapacity = 4096;

struct RepositoryLayout {
	static_assert(offsetof(Repository, datas) == 8 && offsetof(Repository, efd_read) == 24 &&
			      offsetof(Repository, device_idx) == 36 &&
			      offsetof(Repository, error_msg) == 40 &&
			      offsetof(Repository, read_idx) + offsetof(sring_idx, idx) == 76 &&
			      offsetof(Repository, write_idx) + offsetof(sring_idx, idx) == 84 &&
			      offsetof(Repository, repo_status) == 88,
		      "layout of Repository");
};

std::atomic<uint64_t> queue::QueueParas::g_correlation_id{ 0 };
std::atomic<uint64_t> queue::ExecuteParas::g_pta_correlation_id{ 0 };

bool queue_is_enabled()
{
	static const int level = [] {
		const char *blocking = getenv("ASCEND_LAUNCH_BLOCKING"), *value = getenv("TASK_QUEUE_ENABLE");
		int n = value ? atoi(value) : 1;

		if (n < 0 || n > 2)
			throw std::runtime_error("TASK_QUEUE_ENABLE should be 0, 1 or 2");
		return blocking && atoi(blocking) ? 0 : n;
	}();

	return level > 0;
}

static void signal_eventfd(int fd)
{
	if (eventfd_write(fd, 1))
		throw std::runtime_error("torch_npu: eventfd_write failed");
}

static void wait_eventfd(int fd)
{
	eventfd_t value;

	while (eventfd_read(fd, &value))
		if (errno != EINTR)
			throw std::runtime_error("torch_npu: eventfd_read failed");
}

Repository::~Repository()
{
	Stop();
	free(datas);
}

RepoStatus Repository::GetStatus() const
{
	return repo_status.load();
}

void Repository::SetStatus(RepoStatus desired)
{
	repo_status.store(desired);
}

void Repository::ChangeStatus(RepoStatus expected, RepoStatus desired)
{
	repo_status.compare_exchange_strong(expected, desired);
}

void *Repository::slot(unsigned int i) const
{
	return static_cast<char *>(datas) + i * queue::SLOT_BYTES;
}

bool Repository::IsEmptyQueue() const
{
	return read_idx.idx == write_idx.idx;
}

bool Repository::IsFullQueue() const
{
	return (write_idx.idx + 1) % kQueueCapacity == read_idx.idx;
}

/* As torch_npu's CopyFunc: the parameters move into the slot, a V2 task becomes one of V1. */
static void copy_task(void *to, const queue::QueueParas *from)
{
	auto *paras = new (to) queue::QueueParas(*from);
	void *payload = static_cast<char *>(to) + sizeof(*paras);

	paras->paramVal = payload;
	if (from->paramType == queue::EXECUTE_OPAPI) {
		new (payload) queue::ExecuteParasOpApi(
			std::move(*static_cast<queue::ExecuteParasOpApi *>(from->paramVal)));
	} else if (from->paramType == queue::COMPILE_AND_EXECUTE) {
		new (payload)
			queue::ExecuteParas(std::move(*static_cast<queue::ExecuteParas *>(from->paramVal)));
	} else if (from->paramType == queue::EXECUTE_OPAPI_V2) {
		auto *v2 = static_cast<queue::ExecuteParasOpApiV2 *>(from->paramVal);
		auto *v1 = new (payload) queue::ExecuteParasOpApi();

		v2->opName->copy(v1->opType, sizeof(v1->opType) - 1);
		v1->customHandler = *v2->customHandler;
		paras->paramType = queue::EXECUTE_OPAPI;
	} else {
		new (payload) queue::CopyParas(*static_cast<queue::CopyParas *>(from->paramVal));
	}
}

template <class T> static int run_handler(void *value)
{
	auto *task = static_cast<T *>(value);
	int err = task->customHandler();

	task->~T();
	return err;
}

static int run_task(queue::QueueParas *paras)
{
	auto *copy = static_cast<queue::CopyParas *>(paras->paramVal);

	npusim::log_correlation(paras->correlation_id);
	if (paras->paramType == queue::EXECUTE_OPAPI)
		return run_handler<queue::ExecuteParasOpApi>(paras->paramVal);
	if (paras->paramType == queue::COMPILE_AND_EXECUTE)
		return run_handler<queue::ExecuteParas>(paras->paramVal);
	return aclrtMemcpyAsync(copy->dst, copy->dstLen, copy->src, copy->srcLen, copy->kind,
				paras->paramStream);
}

PROBED bool Repository::WriteQueue(void *cur_paras)
{
	if (IsFullQueue())
		return false;
	copy_task(slot(write_idx.idx), static_cast<queue::QueueParas *>(cur_paras));
	std::atomic_thread_fence(std::memory_order_seq_cst);
	write_idx.idx = (write_idx.idx + 1) % kQueueCapacity;
	return true;
}

PROBED bool Repository::ReadQueue()
{
	unsigned int i = read_idx.idx;
	int err;

	if (IsEmptyQueue())
		return false;
	at_npu::native::NpuUtils::ProfReportMarkDataToNpuProfiler(2, datas, i);
	err = run_task(static_cast<queue::QueueParas *>(slot(i)));
	at_npu::native::NpuUtils::ProfReportMarkDataToNpuProfiler(3, datas, i);
	if (err && GetStatus() == RUN) {
		error_msg = "a task of the queue failed: error " + std::to_string(err);
		SetStatus(ERROR_EXIT);
	}
	std::atomic_thread_fence(std::memory_order_seq_cst);
	read_idx.idx = (i + 1) % kQueueCapacity;
	return true;
}

void Repository::ThrowError()
{
	if (GetStatus() == ERROR_EXIT)
		throw std::runtime_error("torch_npu: " + error_msg);
}

PROBED void Repository::Enqueue(void *cur_paras)
{
	std::lock_guard<std::mutex> lock(mu_enqueue);

	ThrowError();
	write_idx.working = true;
	while (!WriteQueue(cur_paras)) {
		write_idx.working = false;
		std::atomic_thread_fence(std::memory_order_seq_cst);
		if (IsFullQueue())
			wait_eventfd(efd_write);
		write_idx.working = true;
	}
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (!read_idx.working)
		signal_eventfd(efd_read);
	write_idx.working = false;
}

PROBED void Repository::Dequeue()
{
	read_idx.working = true;
	while (!ReadQueue()) {
		read_idx.working = false;
		std::atomic_thread_fence(std::memory_order_seq_cst);
		if (IsEmptyQueue()) {
			if (GetStatus() == NEED_EXIT) {
				ChangeStatus(NEED_EXIT, CAN_EXIT);
				return;
			}
			wait_eventfd(efd_read);
		}
		read_idx.working = true;
	}
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (need_empty.load() && IsEmptyQueue())
		signal_eventfd(efd_empty);
	if (!write_idx.working)
		signal_eventfd(efd_write);
	read_idx.working = false;
}

PROBED void Repository::MakeSureQueueEmpty()
{
	std::lock_guard<std::mutex> lock(mu_enqueue);

	need_empty = true;
	std::atomic_thread_fence(std::memory_order_seq_cst);
	while (!IsEmptyQueue())
		wait_eventfd(efd_empty);
	need_empty = false;
	ThrowError();
}

static void consume(Repository *repo, int device)
{
	prctl(PR_SET_NAME, "acl_thread");
	npusim::use_device(device);
	while (repo->GetStatus() != CAN_EXIT)
		repo->Dequeue();
}

void Repository::InitRepo(int8_t device_id)
{
	datas = calloc(kQueueCapacity, queue::SLOT_BYTES);
	efd_read = eventfd(0, EFD_CLOEXEC);
	efd_write = eventfd(0, EFD_CLOEXEC);
	efd_empty = eventfd(0, EFD_CLOEXEC);
	if (!datas || efd_read < 0 || efd_write < 0 || efd_empty < 0)
		throw std::runtime_error("torch_npu: no memory or files for a queue");
	device_idx = device_id;
	SetStatus(RUN);
	consumer = std::thread(consume, this, device_id);
}

void Repository::Stop()
{
	if (!consumer.joinable())
		return;
	SetStatus(NEED_EXIT);
	signal_eventfd(efd_read);
	consumer.join();
	close(efd_read);
	close(efd_write);
	close(efd_empty);
}

} // namespace c10_npu
