// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process that makes as much work as it can for whoever inspects it. It prints `ready PID`
 * and goes on until it is killed; ORDERS:
 *   search N          LD_LIBRARY_PATH of N directories, each another one
 *   links DIR N       ... of N directories that each lead through symbolic links in DIR
 *   map FILE...       maps files as code
 *   change FILE       cuts FILE and makes it longer again, all the time, while it is mapped as code
 *   pages FILE N      N mappings of single pages of FILE, every other one as code
 *   chain N           N processes, each the child of the one before
 *   born              children that live for a moment, one after the other
 *   executes N        executes itself all the time, with N bytes of environment
 *   threads N         N threads
 *   remap             (with the others) maps and unmaps its own program as code all the time
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST 131000 /* bytes of one string of an environment */
#define MARK "HOSTILE_MARK"

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void *map_code(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	void *at;

	check(fd >= 0 && !fstat(fd, &st), path);
	at = mmap(NULL, st.st_size ? (size_t)st.st_size : 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	check(at != MAP_FAILED, "mmap");
	close(fd);
	return at;
}

/*
 * Executes this program again with that variable, once. It is named later:
 * our dynamic linker must not search there.
 */
static void execute_with_path(char **argv, const char *value)
{
	char *variable = getenv("XX_LIBRARY_PATH");

	if (variable) {
		char *name = variable - strlen("XX_LIBRARY_PATH=");

		name[0] = 'L';
		name[1] = 'D';
		return;
	}
	unsetenv("LD_LIBRARY_PATH");
	setenv("XX_LIBRARY_PATH", value, 1);
	execv("/proc/self/exe", argv);
	check(0, "execv");
}

static void search(char **argv, const char *dir, int n)
{
	char *value = malloc(LONGEST + PATH_MAX);
	size_t len = 0;

	check(value != NULL, "malloc");
	for (int i = 0; i < n && len < LONGEST; i++)
		len += (size_t)sprintf(value + len, dir ? "%s%s/%x" : "%s/%.0s%x", i ? ":" : "",
				       dir ? dir : "", i);
	if (len > LONGEST)
		*strrchr(value, ':') = '\0';
	execute_with_path(argv, value);
	free(value);
}

static void *change(void *path)
{
	for (;;) {
		struct stat st;

		check(!stat(path, &st), path);
		check(!truncate(path, 4096) && !truncate(path, st.st_size), "truncate");
	}
	return NULL;
}

static void map_pages(const char *path, int n)
{
	int fd = open(path, O_RDONLY);

	check(fd >= 0, path);
	for (int i = 0; i < n; i++) /* the kernel joins neighbours that are alike: every other one is */
		if (mmap(NULL, 4096, i % 2 ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE, fd, 0) ==
		    MAP_FAILED)
			break; /* vm.max_map_count */
	close(fd);
}

static void chain(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t parent = getpid(), child = fork();

		check(child >= 0, "fork");
		if (child)
			break;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it ended before that */
			exit(0);
		if (i == n - 1)
			for (;;) {
				close(-1);
				usleep(1000);
			}
	}
}

static void *bear(void *arg)
{
	for (;;) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		check(child > 0 && waitpid(child, NULL, 0) == child, "fork");
	}
	return arg;
}

static void execute(char **argv, size_t n)
{
	const char *mark = getenv(MARK);
	char name[32], *value = malloc(LONGEST);
	int round = mark ? atoi(mark) : 0;

	check(value != NULL, "malloc");
	memset(value, 'x', LONGEST - 1);
	value[LONGEST - 1] = '\0';
	for (size_t i = 0; !mark && i < n / LONGEST; i++) {
		snprintf(name, sizeof(name), "FILLED%zu", i);
		setenv(name, value, 1);
	}
	snprintf(name, sizeof(name), "%d", round + 1);
	setenv(MARK, name, 1);
	if (round == 1)
		printf("ready %d\n", getpid());
	fflush(stdout);
	usleep(500);
	execv("/proc/self/exe", argv);
	check(0, "execv");
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void start_threads(int n, void *(*run)(void *), void *arg)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, &small, run, arg))
			break;
}

static void remap(void)
{
	for (;;) {
		void *at = map_code("/proc/self/exe");
		struct stat st;

		check(!stat("/proc/self/exe", &st) && !munmap(at, (size_t)st.st_size), "munmap");
		usleep(500);
	}
}

int main(int argc, char **argv)
{
	const char *order = argc > 1 ? argv[1] : "";
	int last = argc, again = argc > 2 && !strcmp(argv[argc - 1], "remap");

	last -= again;
	if (!strcmp(order, "search"))
		search(argv, NULL, atoi(argv[2]));
	else if (!strcmp(order, "links"))
		search(argv, argv[2], atoi(argv[3]));
	else if (!strcmp(order, "map"))
		for (int i = 2; i < last; i++)
			map_code(argv[i]);
	else if (!strcmp(order, "change"))
		map_code(argv[2]);
	else if (!strcmp(order, "pages"))
		map_pages(argv[2], atoi(argv[3]));
	else if (!strcmp(order, "executes"))
		execute(argv, (size_t)atol(argv[2]));
	else if (!strcmp(order, "threads"))
		start_threads(atoi(argv[2]), sleep_on, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!strcmp(order, "change"))
		start_threads(1, change, argv[2]);
	else if (!strcmp(order, "chain"))
		chain(atoi(argv[2]));
	else if (!strcmp(order, "born"))
		start_threads(1, bear, NULL);
	if (again)
		remap();
	for (;;)
		pause();
}
