/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which system calls are left to the driver's code in npuscope-device-worker: by
 * the kernel's answers, in forked children.
 */
#include "worker/worker.h"
#include "worker_child.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* --- what is refused --------------------------------------------------------------------------------- */

static char *const no_arguments[] = { NULL };

static long call_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0); /* under the filter that fails, whatever fork(2) did */
	return pid;
}

static long call_posix_spawn(void)
{
	pid_t pid;

	errno = posix_spawn(&pid, "/nonexistent", NULL, NULL, no_arguments, no_arguments);
	return -1;
}

static long call_execve(void)
{
	return execve("/nonexistent", no_arguments, no_arguments);
}

static long call_execveat(void)
{
	return syscall(SYS_execveat, AT_FDCWD, "/nonexistent", no_arguments, no_arguments, 0);
}

static long call_inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long call_inet6(void)
{
	return socket(AF_INET6, SOCK_DGRAM, 0);
}

static long call_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long call_vsock(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long call_bind(void)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	return bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family));
}

static long call_listen(void)
{
	return listen(-1, 1);
}

static long call_accept(void)
{
	return accept(-1, NULL, NULL);
}

static long call_kill(void)
{
	return kill(getpid(), 0);
}

static long call_tgkill(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static long call_tkill(void)
{
	return syscall(SYS_tkill, gettid(), 0);
}

static int a_socket(void)
{
	static int fd;

	return fd ? fd : (fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static long call_setown(void)
{
	return fcntl(a_socket(), F_SETOWN, getpid());
}

static long call_setown_ex(void)
{
	const struct f_owner_ex owner = { .type = F_OWNER_PID, .pid = getpid() };

	return fcntl(a_socket(), F_SETOWN_EX, &owner);
}

static long call_setsig(void)
{
	return fcntl(a_socket(), F_SETSIG, 0);
}

static long call_ioctl_setown(void)
{
	int pid = getpid();

	return ioctl(a_socket(), FIOSETOWN, &pid);
}

static long call_ioctl_spgrp(void)
{
	int pid = getpid();

	return ioctl(a_socket(), SIOCSPGRP, &pid);
}

static long call_sti(void)
{
	return ioctl(a_socket(), TIOCSTI, "x");
}

/* The kernel reads 32 bits of that number. */
static long call_sti_with_more_bits(void)
{
	return syscall(SYS_ioctl, a_socket(), 1UL << 32 | TIOCSTI, "x");
}

static long call_tioclinux(void)
{
	return ioctl(a_socket(), TIOCLINUX, "x");
}

static long call_inet_pair(void)
{
	int fds[2];

	return socketpair(AF_INET, SOCK_STREAM, 0, fds);
}

static long call_ptrace(void)
{
	return ptrace(PTRACE_CONT, getpid(), NULL, NULL);
}

static long call_process_vm_readv(void)
{
	return process_vm_readv(getppid(), NULL, 0, NULL, 0, 0);
}

static long call_process_vm_writev(void)
{
	return process_vm_writev(getppid(), NULL, 0, NULL, 0, 0);
}

static long call_pidfd_open(void)
{
	return syscall(SYS_pidfd_open, getpid(), 0);
}

static long call_prlimit_of_parent(void)
{
	struct rlimit limit;

	return prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit);
}

/*
 * By number: another process has that one in another pid namespace, and the filter does not know which it is.
 */
static long call_prlimit_by_pid(void)
{
	struct rlimit limit;

	return prlimit(getpid(), RLIMIT_NOFILE, NULL, &limit);
}

static long call_mount(void)
{
	return mount("none", "/nonexistent", "tmpfs", 0, NULL);
}

static long call_umount(void)
{
	return umount2("/nonexistent", 0);
}

static long call_chroot(void)
{
	return chroot("/nonexistent");
}

static long call_unshare(void)
{
	return unshare(0);
}

static long call_setns(void)
{
	return setns(-1, 0);
}

static long call_bpf(void)
{
	return syscall(SYS_bpf, 9999, NULL, 0);
}

static long call_perf_event_open(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static long call_keyctl(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0);
}

static long call_add_key(void)
{
	return syscall(SYS_add_key, NULL, NULL, NULL, 0, 0);
}

static long call_io_uring_setup(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static long call_userfaultfd(void)
{
	return syscall(SYS_userfaultfd, -1);
}

static long call_memfd_create(void)
{
	return syscall(SYS_memfd_create, "memory", 0);
}

static long call_mknodat(void)
{
	return mknodat(AT_FDCWD, "/nonexistent/node", S_IFCHR | 0600, makedev(1, 3));
}

static long call_symlinkat(void)
{
	return symlinkat("target", AT_FDCWD, "/nonexistent/link");
}

static long call_linkat(void)
{
	return linkat(AT_FDCWD, "/nonexistent/file", AT_FDCWD, "/nonexistent/link", 0);
}

static long call_open_by_handle_at(void)
{
	return syscall(SYS_open_by_handle_at, -1, NULL, 0);
}

static long call_openat2(void)
{
	return syscall(SYS_openat2, -1, "/nonexistent", NULL, 0);
}

static long call_setresuid(void)
{
	return setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1);
}

static long call_capset(void)
{
	return syscall(SYS_capset, NULL, NULL);
}

static long call_setsid(void)
{
	return setsid();
}

static long call_pdeathsig(void)
{
	return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
}

static long call_seccomp_by_prctl(void)
{
	return prctl(PR_SET_SECCOMP, 9999, 0, 0, 0);
}

static long call_seccomp(void)
{
	return syscall(SYS_seccomp, 9999, 0, NULL);
}

static long call_pidfd_getfd(void)
{
	return syscall(SYS_pidfd_getfd, -1, -1, 0);
}

static long call_process_madvise(void)
{
	return syscall(SYS_process_madvise, -1, NULL, 0, 0, 0);
}

static long call_futex_waitv(void)
{
	return syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0);
}

static long call_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

/* None of them does any harm, or fails with that error, if it is not refused. */
static const struct refused {
	const char *name;
	long (*make)(void);
	int error;
} refused[] = {
	{ "fork", call_fork, EPERM },
	{ "posix_spawn", call_posix_spawn, EPERM },
	{ "execve", call_execve, EPERM },
	{ "execveat of a path", call_execveat, EPERM },
	{ "socket(AF_INET)", call_inet, EPERM },
	{ "socket(AF_INET6)", call_inet6, EPERM },
	{ "socket(AF_NETLINK)", call_netlink, EPERM },
	{ "socket(AF_VSOCK)", call_vsock, EPERM },
	{ "bind", call_bind, EPERM },
	{ "listen", call_listen, EPERM },
	{ "accept", call_accept, EPERM },
	{ "kill", call_kill, EPERM },
	{ "tgkill of the parent", call_tgkill, EPERM },
	{ "tkill", call_tkill, EPERM },
	{ "fcntl(F_SETOWN)", call_setown, EPERM },
	{ "fcntl(F_SETOWN_EX)", call_setown_ex, EPERM },
	{ "fcntl(F_SETSIG)", call_setsig, EPERM },
	{ "ioctl(FIOSETOWN)", call_ioctl_setown, EPERM },
	{ "ioctl(SIOCSPGRP)", call_ioctl_spgrp, EPERM },
	{ "ioctl(TIOCSTI)", call_sti, EPERM },
	{ "ioctl(TIOCSTI) with more bits", call_sti_with_more_bits, EPERM },
	{ "ioctl(TIOCLINUX)", call_tioclinux, EPERM },
	{ "socketpair(AF_INET)", call_inet_pair, EPERM },
	{ "ptrace", call_ptrace, EPERM },
	{ "process_vm_readv", call_process_vm_readv, EPERM },
	{ "process_vm_writev", call_process_vm_writev, EPERM },
	{ "pidfd_open", call_pidfd_open, EPERM },
	{ "prlimit64 of the parent", call_prlimit_of_parent, EPERM },
	{ "prlimit64 by number", call_prlimit_by_pid, EPERM },
	{ "mount", call_mount, EPERM },
	{ "umount2", call_umount, EPERM },
	{ "chroot", call_chroot, EPERM },
	{ "unshare", call_unshare, EPERM },
	{ "setns", call_setns, EPERM },
	{ "bpf", call_bpf, EPERM },
	{ "perf_event_open", call_perf_event_open, EPERM },
	{ "keyctl", call_keyctl, EPERM },
	{ "add_key", call_add_key, EPERM },
	{ "io_uring_setup", call_io_uring_setup, EPERM },
	{ "userfaultfd", call_userfaultfd, EPERM },
	{ "memfd_create", call_memfd_create, EPERM },
	{ "mknodat", call_mknodat, EPERM },
	{ "symlinkat", call_symlinkat, EPERM },
	{ "linkat", call_linkat, EPERM },
	{ "open_by_handle_at", call_open_by_handle_at, EPERM },
	{ "openat2", call_openat2, EPERM },
	{ "setresuid", call_setresuid, EPERM },
	{ "capset", call_capset, EPERM },
	{ "setsid", call_setsid, EPERM },
	{ "prctl(PR_SET_PDEATHSIG)", call_pdeathsig, EPERM },
	{ "prctl(PR_SET_SECCOMP)", call_seccomp_by_prctl, EPERM },
	{ "seccomp", call_seccomp, EPERM },
	{ "pidfd_getfd", call_pidfd_getfd, EPERM },
	{ "process_madvise", call_process_madvise, ENOSYS },
	{ "futex_waitv", call_futex_waitv, ENOSYS },
	{ "clone3", call_clone3, ENOSYS },
};

#define N_REFUSED (sizeof(refused) / sizeof(*refused))

struct refusals {
	bool filtered;
	int *errors; /* N_REFUSED of them, shared with the child */
};

static void filter_calls(void)
{
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!worker_filter_calls());
}

static void make_refused_calls(const void *arg)
{
	const struct refusals *r = arg;

	if (r->filtered)
		filter_calls();
	for (size_t i = 0; i < N_REFUSED; i++) {
		errno = 0;
		r->errors[i] = refused[i].make() == -1 ? errno : 0;
	}
}

/* By the filter, not by what else: without it, each has another outcome. */
static void calls_that_are_refused(void **state)
{
	int without[N_REFUSED];
	struct refusals r = { .errors = mmap(NULL, sizeof(without), PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0) };

	(void)state;
	assert_true(r.errors != MAP_FAILED);
	worker_child_passes(make_refused_calls, &r);
	memcpy(without, r.errors, sizeof(without));
	r.filtered = true;
	worker_child_passes(make_refused_calls, &r);
	for (size_t i = 0; i < N_REFUSED; i++) {
		if (r.errors[i] != refused[i].error)
			fail_msg("%s: %s", refused[i].name, strerror(r.errors[i]));
		if (without[i] == refused[i].error)
			printf("%s: %s fails so without a filter, too\n", __func__, refused[i].name);
	}
	munmap(r.errors, sizeof(without));
}

/* --- what is allowed ------------------------------------------------------------------------------------ */

static void *thread_run(void *arg)
{
	*(int *)arg = 7;
	return arg;
}

static void use_files(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), size = 0;
	char bytes[8] = "";
	struct stat st;
	void *mapped;

	CHECK(fd >= 0);
	CHECK(write(fd, "content", 8) == 8);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, bytes, 8) == 8 && !strcmp(bytes, "content"));
	CHECK(ioctl(fd, FIGETBSZ, &size) == 0 && size > 0);
	CHECK(ioctl(fd, FIONREAD, &size) == 0);
	CHECK(fcntl(fd, F_GETFL) & O_RDWR && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
	CHECK(fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK }) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 8);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(mapped != MAP_FAILED && !memcmp(mapped, "content", 8));
	CHECK(munmap(mapped, 4096) == 0);
	close(fd);
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && access(path, R_OK) == 0);
	close(fd);
	CHECK(unlink(path) == 0);
}

static void use_memory_and_threads(void)
{
	char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	int value = 0;

	CHECK(memory != MAP_FAILED);
	memory[0] = 1;
	CHECK(mprotect(memory, 8192, PROT_READ | PROT_EXEC) == 0);
	CHECK(munmap(memory, 8192) == 0);
	CHECK(pthread_create(&thread, NULL, thread_run, &value) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && value == 7);
}

static void use_the_rest(void)
{
	struct timespec ts = { .tv_nsec = 1 };
	struct rlimit limit;
	cpu_set_t cpus;
	char byte = 0, name[16] = "";
	int sock[2], fd;

	CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &ts) == 0); /* not the vDSO's */
	CHECK(nanosleep(&(struct timespec){ .tv_nsec = 1 }, NULL) == 0);
	CHECK(getrandom(&byte, 1, 0) == 1);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	CHECK(send(sock[0], "s", 1, 0) == 1 &&
	      poll(&(struct pollfd){ .fd = sock[1], .events = POLLIN }, 1, 0) == 1);
	CHECK(recv(sock[1], &byte, 1, 0) == 1 && byte == 's');
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	CHECK(fd >= 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && prlimit(0, RLIMIT_NOFILE, NULL, &limit) == 0);
	CHECK(prctl(PR_SET_NAME, "filtered", 0, 0, 0) == 0);
	CHECK(prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && !strcmp(name, "filtered"));
	CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
	      sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
	CHECK(pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0); /* by the thread's number */
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR && raise(SIGUSR1) == 0);
}

static void make_allowed_calls(const void *path)
{
	filter_calls();
	use_files(path);
	use_memory_and_threads();
	use_the_rest();
}

static void calls_that_are_allowed(void **state)
{
	char path[] = "/tmp/npuscope-test-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	worker_child_passes(make_allowed_calls, path);
	assert_int_equal(access(path, F_OK), -1);
}

static void child_dies_of(int signal, void (*body)(const void *arg), const void *arg)
{
	int status;

	assert_true(worker_child_run(body, arg, &status));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal);
}

static void abort_filtered(const void *arg)
{
	(void)arg;
	filter_calls();
	abort();
}

/* How a worker ended is reported: a library's abort(3) is to be known as that. */
static void abort_is_seen(void **state)
{
	(void)state;
	child_dies_of(SIGABRT, abort_filtered, NULL);
}

/* As the worker executes its own; the dynamic linker and libc begin under the filter. */
static void execute_by_descriptor(const void *arg)
{
	char *const argv[] = { (char *)"true", NULL };
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

	(void)arg;
	CHECK(fd >= 0);
	filter_calls();
	syscall(SYS_execveat, fd, "", argv, no_arguments, AT_EMPTY_PATH);
	CHECK(!"execveat");
}

static void program_begins_under_the_filter(void **state)
{
	(void)state;
	worker_child_passes(execute_by_descriptor, NULL);
}

static void filter_without_rights(const void *arg)
{
	(void)arg;
	if (geteuid() == 0)
		CHECK(worker_child_drop_to(NOBODY));
	CHECK(worker_filter_calls() == -EACCES);
	CHECK(call_unshare() == 0);
	filter_calls();
	CHECK(call_unshare() == -1);
}

static void filter_needs_no_new_privileges(void **state)
{
	(void)state;
	worker_child_passes(filter_without_rights, NULL);
}

#if defined(__x86_64__)
static void call_x32(const void *filtered)
{
	if (filtered)
		filter_calls();
	syscall(0x40000000 + SYS_getpid);
	syscall(0x40000000 + 512); /* a number of that kind alone: rt_sigaction */
}

static void call_i386(const void *filtered)
{
	long number = 20; /* getpid */

	if (filtered)
		filter_calls();
	__asm__ volatile("int $0x80" : "+a"(number) : : "r8", "r9", "r10", "r11", "memory");
	(void)number;
}

/* Numbers of another kind mean other calls. */
static void calls_of_other_kinds_kill(void **state)
{
	int status;

	(void)state;
	worker_child_passes(call_x32, NULL);
	child_dies_of(SIGSYS, call_x32, "filtered");
	assert_true(worker_child_run(call_i386, NULL, &status));
	if (status) {
		printf("%s: this kernel has no calls of i386\n", __func__);
		return;
	}
	child_dies_of(SIGSYS, call_i386, "filtered");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_are_refused),
		cmocka_unit_test(calls_that_are_allowed),
		cmocka_unit_test(abort_is_seen),
		cmocka_unit_test(program_begins_under_the_filter),
		cmocka_unit_test(filter_needs_no_new_privileges),
#if defined(__x86_64__)
		cmocka_unit_test(calls_of_other_kinds_kill),
#endif
	};

	return cmocka_run_group_tests(tests, worker_child_setup, worker_child_teardown);
}
