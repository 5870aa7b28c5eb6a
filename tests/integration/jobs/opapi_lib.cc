// SPDX-License-Identifier: BSD-2-Clause
/*
 * A library of operators with both phases each, as libopapi.so exports them. Operators throw on request, call
 * each other and themselves, and can be left by longjmp or the end of their thread.
 */
#include <csetjmp>
#include <pthread.h>
#include <stdexcept>

class aclOpExecutor;

extern int InitL2Phase1Context(const char *name, aclOpExecutor **executor);
extern int InitL2Phase2Context(const char *name, aclOpExecutor *executor);

extern "C" {
int op_how = 0; /* 1: throws, 2: longjmp to op_jump, 3: ends its thread */
jmp_buf op_jump;
}

namespace
{
struct Guard {
	char room[64]; /* an array, so that the function checks its stack, as those of CANN do */
	~Guard()
	{
		room[0] = 0;
	}
};

void leave()
{
	switch (op_how) {
	case 1:
		throw std::runtime_error("thrown by an operator");
	case 2:
		longjmp(op_jump, 1); /* NOLINT(cert-err52-cpp): what is tested */
	case 3:
		pthread_exit(nullptr);
	}
}
} // namespace

extern "C" {

int aclnnPlainGetWorkspaceSize(void *, unsigned long *size, aclOpExecutor **executor)
{
	Guard guard;
	int status = InitL2Phase1Context("aclnnPlain", executor);

	leave();
	guard.room[0] = 0;
	*size = 0;
	return status - 1;
}

int aclnnPlain(void *, unsigned long, aclOpExecutor *executor, void *)
{
	Guard guard;
	int status = InitL2Phase2Context("aclnnPlain", executor);

	leave();
	guard.room[0] = 0;
	return status - 2;
}

int aclnnDeepGetWorkspaceSize(int, unsigned long *size, aclOpExecutor **executor)
{
	Guard guard;
	int status = InitL2Phase1Context("aclnnDeep", executor);

	guard.room[0] = 0;
	*size = 0;
	return status - 1;
}

/* Calls itself LEVELS times; the innermost one calls aclnnPlain and catches what that throws. */
int aclnnDeep(void *workspace, unsigned long levels, aclOpExecutor *executor, void *stream)
{
	Guard guard;
	int status = InitL2Phase2Context("aclnnDeep", executor) - 2;

	guard.room[0] = 0;
	if (levels)
		return status + aclnnDeep(workspace, levels - 1, executor, stream);
	try {
		return status + aclnnPlain(workspace, 0, executor, stream);
	} catch (const std::runtime_error &) {
		return status + 7;
	}
}
}
