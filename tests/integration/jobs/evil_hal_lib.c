/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver's library that a job brings, to see what its code may do when npuscope has it loaded. In the job
 * itself it does nothing. EVIL sets what it does elsewhere: "report" writes to the file REPORT what it is and
 * what it could do, "hang" does not return from being loaded, "crash" does not survive it, "stay" refuses to
 * end, "lie" answers nonsense, "babble" writes nonsense to whoever listens, "flood" always has more, "noise"
 * always has more of what makes no sense, "hang-read" and "hang-stop" do not return from those calls.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *mode(void)
{
	const char *text = getenv("EVIL");

	return text ? text : "";
}

static void print_result(int fd, const char *what, long result)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%s %s\n", what, result < 0 ? strerrorname_np(errno) : "ok");

	if (write(fd, line, (size_t)n) != n)
		abort();
}

static void copy_lines(int out, const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (n > 0 && write(out, text, (size_t)n) != n)
		abort();
	if (fd >= 0)
		close(fd);
}

static void report_namespace(int out, const char *name)
{
	char path[64], target[64] = "", line[160];
	int n;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	n = (int)readlink(path, target, sizeof(target) - 1);
	n = snprintf(line, sizeof(line), "ns %s %s\n", name, n > 0 ? target : "?");
	if (write(out, line, (size_t)n) != n)
		abort();
}

static void report_files(int out)
{
	char path[32], target[128], line[200];

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;
		int len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0 || fd == out)
			continue;
		target[n] = '\0';
		len = snprintf(line, sizeof(line), "fd %d %s\n", fd, target);
		if (write(out, line, (size_t)len) != len)
			abort();
	}
}

/* What an attacker would try first. */
static void report(void)
{
	static const char *const names[] = { "mnt", "uts", "ipc", "net", "cgroup", "pid", "user" };
	int out = open(getenv("REPORT"), O_WRONLY | O_CREAT | O_APPEND, 0666);
	const char *disk = getenv("DISK");
	pid_t child;

	if (out < 0)
		return;
	copy_lines(out, "/proc/self/status");
	copy_lines(out, "/proc/self/cgroup");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		report_namespace(out, names[i]);
	report_files(out);
	print_result(out, "try shadow", open("/etc/shadow", O_RDONLY));
	print_result(out, "try disk", disk ? open(disk, O_RDONLY) : -1);
	print_result(out, "try mknod", mknod("/tmp/npuscope-node", S_IFBLK | 0600, makedev(8, 0)));
	print_result(out, "try setuid", setuid(0));
	print_result(out, "try ptrace", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	print_result(out, "try kill", kill(1, 0));
	print_result(out, "try inet", socket(AF_INET, SOCK_STREAM, 0));
	print_result(out, "try unshare", unshare(CLONE_NEWUSER));
	print_result(out, "try mount", mount("none", "/tmp", "tmpfs", 0, NULL));
	print_result(out, "try bpf", syscall(SYS_bpf, 0, NULL, 0));
	print_result(out, "try keyctl", syscall(SYS_keyctl, 0, -3, 0));
	print_result(out, "try pdeathsig", prctl(PR_SET_PDEATHSIG, 0));
	child = fork();
	if (!child)
		_exit(0);
	print_result(out, "try fork", child);
	print_result(out, "try exec", execl("/bin/true", "true", (char *)NULL));
	close(out);
}

static void stay(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	for (;;)
		pause();
}

static void *babble(void *arg)
{
	char noise[4096];

	memset(noise, 0x5a, sizeof(noise));
	for (;;)
		for (int fd = 3; fd < 64; fd++)
			send(fd, noise, sizeof(noise), MSG_DONTWAIT | MSG_NOSIGNAL);
	return arg;
}

__attribute__((constructor)) static void loaded(void)
{
	char name[32] = "";
	pthread_t thread;

	prctl(PR_GET_NAME, name);
	if (strncmp(name, "npuscope", 8) != 0)
		return;
	if (!strcmp(mode(), "report"))
		report();
	else if (!strcmp(mode(), "hang"))
		for (;;)
			pause();
	else if (!strcmp(mode(), "crash"))
		*(volatile int *)8 = 0;
	else if (!strcmp(mode(), "stay"))
		stay();
	else if (!strcmp(mode(), "babble"))
		pthread_create(&thread, NULL, babble, NULL);
}

static void hang_if(const char *where)
{
	while (!strcmp(mode(), where))
		pause();
}

static int lies(void)
{
	return !strcmp(mode(), "lie");
}

int drvGetDevNum(uint32_t *n)
{
	*n = lies() ? 0xfffffff0U : 1;
	return 0;
}

int drvGetDevIDs(uint32_t *ids, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		ids[i] = lies() ? 0xffffffffU - i : i;
	return 0;
}

int halGetDeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t *value)
{
	(void)device;
	(void)module;
	*value = lies() ? INT64_MIN + info : info == 25 ? 50000 : 24;
	return 0;
}

int halGetChipInfo(unsigned int device, char *text)
{
	(void)device;
	memset(text, lies() ? 0xff : 0, 96);
	if (!lies())
		strcpy(text + 32, "910B3");
	return 0;
}

int prof_drv_get_channels(unsigned int device, uint32_t *list)
{
	static const uint32_t ids[] = { 1, 8, 9, 3 };

	(void)device;
	list[0] = lies() ? 0xffffffffU : 5;
	list[1] = lies() ? 0xffffffffU : sizeof(ids) / sizeof(*ids);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		list[2 + 10 * i + 9] = ids[i];
	return 0;
}

int prof_drv_start(unsigned int device, unsigned int channel, void *start)
{
	(void)device;
	(void)channel;
	(void)start;
	return 0;
}

int prof_stop(unsigned int device, unsigned int channel)
{
	(void)device;
	(void)channel;
	hang_if("hang-stop");
	return 0;
}

int prof_channel_read(unsigned int device, unsigned int channel, char *buf, unsigned int size)
{
	(void)device;
	if (lies())
		return channel & 1 ? INT32_MAX : (int)size + 1;
	hang_if("hang-read");
	if (!strcmp(mode(), "flood")) {
		memset(buf, 0xa5, size);
		return (int)size;
	}
	if (strcmp(mode(), "noise") != 0)
		return 0;
	for (unsigned int i = 0; i < size; i++)
		buf[i] = (char)(rand() >> 7);
	return (int)size;
}
