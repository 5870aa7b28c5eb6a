// SPDX-License-Identifier: BSD-2-Clause
/*
 * The four C++ functions of libnnopbase.so that npuscope probes, with their real signatures.
 * Each throws on request, itself or through a callback of the job.
 */
#include <stdexcept>

class aclOpExecutor;

extern "C" {
void (*test_throw_callback)(int) = nullptr;
int test_throw_what = 0;
}

/* A destructor in every frame: that it ran is part of the job's output. */
extern "C" long test_destroyed;
long test_destroyed = 0;

namespace
{
struct Guard {
	~Guard()
	{
		test_destroyed++;
	}
};

void maybe_throw(int which)
{
	if (test_throw_callback)
		test_throw_callback(which);
	if (test_throw_what == which)
		throw std::runtime_error("thrown in the library");
}
} // namespace

__attribute__((noinline)) int InitL2Phase1Context(const char *name, aclOpExecutor **executor)
{
	Guard guard;

	maybe_throw(1);
	return name && executor ? 1 : 0;
}

__attribute__((noinline)) int InitL2Phase2Context(const char *name, aclOpExecutor *executor)
{
	Guard guard;

	maybe_throw(2);
	return name && executor ? 2 : 0;
}

__attribute__((noinline)) int CommonOpExecutorRun(void *workspace, unsigned long size,
						  aclOpExecutor *executor, void *stream)
{
	Guard guard;

	maybe_throw(3);
	return workspace && size && executor && stream ? 3 : 0;
}

__attribute__((noinline)) int InitL0Context(const char *name, aclOpExecutor *executor)
{
	Guard guard;

	maybe_throw(4);
	return name && executor ? 4 : 0;
}
