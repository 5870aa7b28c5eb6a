/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a container that may trace processes can do to one that appears in its pid namespace: looks for its
 * program and its open files as fast as it can, and prints what leads to the host. Argument: a file that the
 * host has and the container has not.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *host_file;

static void try_program(int pid)
{
	char path[64], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	if (strstr(target, "npuscope-device-worker") && strncmp(target, "/memfd:", 7) != 0)
		printf("reached program %s\n", target);
	else if (strstr(target, "npuscope-device-worker"))
		printf("saw %d\n", pid);
}

static void try_files(int pid)
{
	char path[64], where[512];

	for (int fd = 0; fd < 24; fd++) {
		int dir, file = -1;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		dir = open(path, O_PATH | O_DIRECTORY);
		for (int depth = 0; dir >= 0 && file < 0 && depth < 6; depth++) {
			static const char up[] = "../../../../../..";

			snprintf(where, sizeof(where), "%s%s", up + 3 * depth, host_file);
			file = openat(dir, where, O_RDONLY);
		}
		if (file >= 0)
			printf("reached file %s\n", host_file);
		if (file >= 0)
			close(file);
		if (dir >= 0)
			close(dir);
	}
}

static void try_memory(int pid)
{
	char path[64], text[4096];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY);
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n > 0 && memmem(text, (size_t)n, "COLLECTORS_SECRET", 17))
		printf("reached environment\n");
}

int main(int argc, char **argv)
{
	int last = getpid();

	if (argc != 2)
		return 2;
	host_file = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("spying\n");
	for (;;)
		for (int pid = last + 1; pid < last + 24; pid++) {
			try_program(pid);
			try_files(pid);
			try_memory(pid);
		}
}
