/* SPDX-License-Identifier: BSD-2-Clause */
/* polls LIBRARY: calls two functions of it as often as it can, until it is ended. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*query)(void *, int *), (*set)(long, int *), status;

	if (!library) {
		fprintf(stderr, "polls: %s\n", dlerror());
		return 1;
	}
	query = (int (*)(void *, int *))dlsym(library, "aclrtQueryEventStatus");
	set = (int (*)(long, int *))dlsym(library, "aclrtSetDevice");
	if (!query || !set)
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;) {
		query(library, &status);
		set(0, &status);
	}
}
