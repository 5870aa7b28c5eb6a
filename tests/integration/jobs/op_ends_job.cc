// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls operators that return, throw, are left by longjmp or by the end of their thread, and are nested.
 * Prints "ready PID", waits for a line on stdin, and prints what came of the calls: counts, no times.
 * N: how many times.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

class aclOpExecutor;

namespace
{

template <typename T> T find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);
	T typed;

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&typed, &symbol, sizeof(typed));
	return typed;
}

void *load(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

int (*first)(void *, unsigned long *, aclOpExecutor **);
int (*second)(void *, unsigned long, aclOpExecutor *, void *);
int (*deep)(void *, unsigned long, aclOpExecutor *, void *);
int *how;
jmp_buf *jump;
aclOpExecutor *const executor = reinterpret_cast<aclOpExecutor *>(0x1000);

void *leave_thread(void *)
{
	second(nullptr, 0, executor, nullptr);
	return executor;
}

long thrown(bool in_first)
{
	aclOpExecutor *one = executor;
	unsigned long size;

	try {
		if (in_first)
			first(nullptr, &size, &one);
		else
			second(nullptr, 0, executor, nullptr);
	} catch (const std::runtime_error &) {
		return 1;
	}
	return 0;
}

long jumped()
{
	if (setjmp(*jump)) /* NOLINT(cert-err52-cpp): what is tested */
		return 1;
	second(nullptr, 0, executor, nullptr);
	return 0;
}

long ended_thread()
{
	pthread_t thread;
	void *result = nullptr;

	if (pthread_create(&thread, nullptr, leave_thread, nullptr) || pthread_join(thread, &result))
		return 0;
	return !result;
}

} // namespace

int main(int argc, char **argv)
{
	long times = argc > 1 ? atol(argv[1]) : 1000, returned = 0, caught = 0, jumps = 0, ends = 0,
	     nested = 0;
	void *opapi;
	char go[8];

	load("libnnopbase.so");
	opapi = load("libopapi.so");
	first = find<int (*)(void *, unsigned long *, aclOpExecutor **)>(opapi, "aclnnPlainGetWorkspaceSize");
	second = find<int (*)(void *, unsigned long, aclOpExecutor *, void *)>(opapi, "aclnnPlain");
	deep = find<int (*)(void *, unsigned long, aclOpExecutor *, void *)>(opapi, "aclnnDeep");
	how = find<int *>(opapi, "op_how");
	jump = find<jmp_buf *>(opapi, "op_jump");
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(go, sizeof(go), stdin))
		return 1;
	for (long i = 0; i < times; i++) {
		aclOpExecutor *one = executor;
		unsigned long size;

		*how = 0;
		returned += !first(nullptr, &size, &one) + !second(nullptr, 0, executor, nullptr);
		*how = 1;
		caught += thrown(true) + thrown(false);
		nested += deep(nullptr, 3, executor, nullptr) == 7;
		*how = 2;
		jumps += jumped();
		*how = i % 50 ? 0 : 3;
		ends += *how ? ended_thread() : 0;
	}
	*how = 0;
	printf("returned %ld caught %ld nested %ld jumps %ld ends %ld\n", returned, caught, nested, jumps,
	       ends);
	return 11;
}
