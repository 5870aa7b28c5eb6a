// SPDX-License-Identifier: BSD-2-Clause
/*
 * Throws exceptions through every C++ function that npuscope probes, and below C functions that it
 * probes at their return. Prints what it caught; the output does not depend on time.
 * Prints "ready PID" and waits for a line on stdin. N: how many times.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
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

struct Own {
	int which;
};

struct Functions {
	int (*phase1)(const char *, aclOpExecutor **);
	int (*phase2)(const char *, aclOpExecutor *);
	int (*run)(void *, unsigned long, aclOpExecutor *, void *);
	int (*l0)(const char *, aclOpExecutor *);
	int *what;
	long *destroyed;
	void (**callback)(int);
};

long callbacks;
int throw_in_callback;

void job_callback(int which)
{
	callbacks++;
	if (throw_in_callback == which)
		throw Own{ which };
}

/* Caught inside: nothing leaves the probed C function. */
void c_callback(int what, void *)
{
	try {
		throw Own{ what };
	} catch (const Own &own) {
		callbacks += own.which == what;
	}
}

int call(const Functions &f, int which)
{
	aclOpExecutor *executor = reinterpret_cast<aclOpExecutor *>(0x1000);

	switch (which) {
	case 1:
		return f.phase1("aclnnMatmul", &executor);
	case 2:
		return f.phase2("aclnnMatmul", executor);
	case 3:
		return f.run(executor, 1, executor, executor);
	default:
		return f.l0("MatMulV2", executor);
	}
}

long throw_through(const Functions &f, long times)
{
	long caught = 0;

	for (long i = 0; i < times; i++) {
		for (int which = 1; which <= 4; which++) {
			try {
				*f.what = i % 2 ? which : 0;
				throw_in_callback = i % 2 ? 0 : which;
				call(f, which);
			} catch (const Own &own) {
				caught += own.which == which;
			} catch (const std::runtime_error &error) {
				caught += strcmp(error.what(), "thrown in the library") == 0;
			}
		}
	}
	*f.what = throw_in_callback = 0;
	return caught;
}

/* Functions called before and after still return what they should. */
long call_through(const Functions &f)
{
	long sum = 0;

	for (int which = 1; which <= 4; which++)
		sum += call(f, which);
	return sum;
}

} // namespace

int main(int argc, char **argv)
{
	long times = argc > 1 ? atol(argv[1]) : 10000;
	void *nnop = load("libnnopbase.so"), *acl = load("libacl_rt.so");
	Functions f = {
		find<int (*)(const char *, aclOpExecutor **)>(nnop,
							      "_Z19InitL2Phase1ContextPKcPP13aclOpExecutor"),
		find<int (*)(const char *, aclOpExecutor *)>(nnop,
							     "_Z19InitL2Phase2ContextPKcP13aclOpExecutor"),
		find<int (*)(void *, unsigned long, aclOpExecutor *, void *)>(
			nnop, "_Z19CommonOpExecutorRunPvmP13aclOpExecutorS_"),
		find<int (*)(const char *, aclOpExecutor *)>(nnop, "_Z13InitL0ContextPKcP13aclOpExecutor"),
		find<int *>(nnop, "test_throw_what"),
		find<long *>(nnop, "test_destroyed"),
		find<void (**)(int)>(nnop, "test_throw_callback")
	};
	auto synchronize = find<int (*)()>(acl, "aclrtSynchronizeDevice");
	char go[8];

	*f.callback = job_callback;
	find<void (*)(void (*)(int, void *))>(acl, "test_set_callback")(c_callback);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(go, sizeof(go), stdin))
		return 1;
	printf("before %ld\n", call_through(f));
	printf("caught %ld\n", throw_through(f, times));
	for (long i = 0; i < times; i++)
		if (synchronize())
			return 1;
	printf("after %ld\n", call_through(f));
	printf("destroyed %ld callbacks %ld\n", *f.destroyed, callbacks);
	return 11;
}
