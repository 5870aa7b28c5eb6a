/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of CANN that the launch of a kernel passes through, each in the library that CANN has it in
 * (-DACL_RT, -DHAL, -DNNOPBASE). They do next to nothing, so their cost under a tracer is the tracer's. In
 * a library of another name no tracer probes them.
 */
#include <stddef.h>
#include <stdint.h>

/* Saves registers as a real one does, so that it begins with what compilers begin such functions with. */
#if defined(__x86_64__)
#define SAVES_REGISTERS() __asm__ volatile("" ::: "rbx", "r12", "memory")
#else
#define SAVES_REGISTERS() __asm__ volatile("" ::: "x19", "x20", "memory")
#endif

/* As in libascend_hal.so, see halSqTaskSend there. */
struct task_send_info {
	int32_t type;
	uint32_t ts, sq;
	int32_t timeout;
	uint8_t *sqes;
	uint32_t n, position, reserved[8];
};

int halSqTaskSend(uint32_t device, struct task_send_info *info);

#if defined(HAL)
int halSqTaskSend(uint32_t device, struct task_send_info *info)
{
	SAVES_REGISTERS();
	info->position++;
	return device > 63;
}
#endif

#if defined(ACL_RT)
int aclrtLaunchKernelWithHostArgs(void *function, uint32_t blocks, void *stream, void *config, void *args,
				  size_t size, void *holders, size_t n)
{
	/* type 0, AI core; a number of the task in bytes 6 and 7 */
	uint16_t sqe[32] = { 0, (uint16_t)blocks, 2 };
	static uint16_t next;
	struct task_send_info info = { .sq = 1, .sqes = (uint8_t *)sqe, .n = 1 };

	SAVES_REGISTERS();
	(void)function, (void)stream, (void)config, (void)args, (void)size, (void)holders, (void)n;
	sqe[3] = next++;
	return halSqTaskSend(0, &info);
}
#endif

#if defined(NNOPBASE)
void phase1(const char *api, void **executor) __asm__("_Z19InitL2Phase1ContextPKcPP13aclOpExecutor");
void phase2(const char *api, void *executor) __asm__("_Z19InitL2Phase2ContextPKcP13aclOpExecutor");
void l0(const char *l0_operator, void *executor) __asm__("_Z13InitL0ContextPKcP13aclOpExecutor");

static uint64_t executors[16];

void phase1(const char *api, void **executor)
{
	static unsigned next;

	SAVES_REGISTERS();
	(void)api;
	*executor = &executors[next++ % 16];
}

void phase2(const char *api, void *executor)
{
	SAVES_REGISTERS();
	(void)api;
	++*(uint64_t *)executor;
}

void l0(const char *l0_operator, void *executor)
{
	SAVES_REGISTERS();
	(void)l0_operator;
	++*(uint64_t *)executor;
}

int aclDestroyAclOpExecutor(void *executor)
{
	SAVES_REGISTERS();
	*(uint64_t *)executor = 0;
	return 0;
}
#endif
