/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads a libpython and runs a script in a thread of its own: python_embed_job LIBPYTHON [SCRIPT]. Without a
 * script the interpreter is never initialised.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const char *script;

static void *run(void *library)
{
	void (*initialize)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
	int (*run_file)(FILE *, const char *, int, void *) =
		(int (*)(FILE *, const char *, int, void *))dlsym(library, "PyRun_SimpleFileExFlags");
	FILE *f = fopen(script, "r");

	if (!initialize || !run_file || !f)
		return NULL;
	initialize(0);
	run_file(f, script, 1, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	pthread_t thread;

	if (!library) {
		fprintf(stderr, "python_embed_job: %s\n", dlerror());
		return 1;
	}
	script = argv[2];
	if (script && pthread_create(&thread, NULL, run, library))
		return 1;
	printf("loaded\n");
	fflush(stdout);
	pause();
	return 0;
}
