/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls device nodes that bear the names of the NPU driver's, in a /dev of its own: of a device that is
 * always there, whose driver refuses such ioctls, and of one that no driver has. Prints what it did and the
 * results: the witness. `driver_job loop` calls a node every millisecond from the beginning, until it gets
 * the order to end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ZERO makedev(1, 5) /* can be mapped, knows no ioctl */
#define NOBODY makedev(235, 77) /* a number that no driver has */
#define IOCTLS 5

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void make_nodes(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("t", "/dev", "tmpfs", 0, NULL))
		fail("mount");
	if (mknod("/dev/devmm_svm", S_IFCHR | 0600, ZERO) ||
	    mknod("/dev/davinci_manager", S_IFCHR | 0600, NOBODY) ||
	    mknod("/dev/null", S_IFCHR | 0600, makedev(1, 3)))
		fail("mknod");
}

static void report(const char *what, long result)
{
	printf("%s %ld\n", what, result < 0 ? -errno : result);
}

static void call(void)
{
	struct {
		unsigned int logical, device, function, pad;
		unsigned long long address, size;
		char rest[80];
	} arg = { 3, 3, 0, 0, 0x1000, 1 << 20, { 0 } };
	int fd = open("/dev/devmm_svm", O_RDWR | O_CLOEXEC), copy, null = open("/dev/null", O_RDWR);
	void *at;

	report("open devmm_svm", fd);
	for (int i = 0; i < IOCTLS; i++)
		report("ioctl devmm_svm ALLOC", ioctl(fd, _IO('M', 3), &arg));
	report("ioctl devmm_svm 0x4dee", ioctl(fd, _IO('M', 0xee), &arg));
	ioctl(null, _IO('M', 3), &arg); /* of no concern */
	at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	report("mmap devmm_svm", at == MAP_FAILED ? -1 : 0);
	copy = dup(fd);
	report("close devmm_svm", close(copy));
	report("close devmm_svm", close(fd));
	close(null);
	report("open davinci_manager", open("/dev/davinci_manager", O_RDWR));
}

/* Is there something to read? */
static int reported(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 1) != 0;
}

static int loop(void)
{
	int fd = open("/dev/devmm_svm", O_RDWR | O_CLOEXEC);
	char arg[112] = { 0 };

	printf("ready\n");
	while (!reported())
		ioctl(fd, _IO('M', 3), arg);
	return 0;
}

int main(int argc, char **argv)
{
	char line[16];

	setbuf(stdout, NULL);
	make_nodes();
	if (argc > 1 && !strcmp(argv[1], "loop"))
		return loop();
	printf("ready\n");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	call();
	return 0;
}
