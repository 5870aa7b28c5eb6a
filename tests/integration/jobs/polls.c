/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polls LIBRARY calls two functions of it as often as it can, until it is ended polls LIBRARY inside
 * LIBRUNTIME from SIGUSR1 on a thread polls, while this one is in a call of the polled function until
 *                                    SIGUSR2; then it launches LAUNCHES kernels
 * polls LIBRARY later LIBRARY polls; from SIGUSR1 on it calls the function of
 * the other one, too, a few times a second
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LAUNCHES 100

typedef int (*function)(void (*inside)(void), int *status);

static function query, set;

static function find(void *library, const char *name)
{
	function f = library ? (function)dlsym(library, name) : NULL;

	if (!f)
		fprintf(stderr, "polls: %s\n", dlerror());
	return f;
}

static void report(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void wait_for(int number)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, number);
	sigwait(&signals, &number);
}

static void *poll_on(void *arg)
{
	int status;

	for (;;) {
		query(NULL, &status);
		if (!arg)
			set(NULL, &status);
	}
	return NULL;
}

static void while_inside(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, poll_on, ""))
		wait_for(SIGUSR2);
}

static int inside(const char *path)
{
	function launch = find(dlopen(path, RTLD_NOW), "rtKernelLaunch");
	int status;

	if (!launch)
		return 1;
	report("ready");
	wait_for(SIGUSR1);
	query(while_inside, &status);
	for (int i = 0; i < LAUNCHES; i++)
		launch(NULL, &status);
	report("launched");
	return pause();
}

static int later(const char *path)
{
	function other;
	pthread_t thread;
	int status;

	report("ready");
	if (pthread_create(&thread, NULL, poll_on, NULL))
		return 1;
	wait_for(SIGUSR1);
	other = find(dlopen(path, RTLD_NOW), "aclrtQueryEventStatus");
	while (other) {
		other(NULL, &status);
		usleep(100000);
	}
	return 1;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	query = find(library, "aclrtQueryEventStatus");
	set = find(library, "aclrtSetDevice");
	if (!query || !set)
		return 1;
	if (argc == 4)
		return strcmp(argv[2], "inside") ? later(argv[3]) : inside(argv[3]);
	report("ready");
	poll_on(NULL);
}
