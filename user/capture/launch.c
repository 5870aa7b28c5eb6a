/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

mode_t nps_caller_umask = 022;

static void set_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;

	if (!old || !*old) {
		setenv("LD_PRELOAD", library, 1);
		return;
	}
	if (asprintf(&value, "%s:%s", library, old) < 0)
		return;
	setenv("LD_PRELOAD", value, 1);
	free(value);
}

static void job_child(char *const argv[], const char *preload, int sock)
{
	sigset_t none;
	char go;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(nps_caller_umask);
	if (read(sock, &go, 1) != 1)
		_exit(127); /* cancelled */
	if (preload)
		set_preload(preload);
	execvp(argv[0], argv);
	err = errno;
	if (write(sock, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

pid_t nps_launch__prepare(char *const argv[], const char *preload, int *go)
{
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(sock[0]);
		close(sock[1]);
		return err;
	}
	if (pid == 0) {
		close(sock[0]);
		job_child(argv, preload, sock[1]);
	}
	close(sock[1]);
	*go = sock[0];
	return pid;
}

int nps_launch__go(int go)
{
	int err = 0;
	ssize_t n;

	if (send(go, "g", 1, MSG_NOSIGNAL) != 1) /* the child may have been killed meanwhile */
		err = errno;
	/* exec closes the other end; a failure sends its errno first */
	do
		n = read(go, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(go);
	return -err;
}

void nps_launch__cancel(pid_t pid, int go)
{
	close(go);
	waitpid(pid, NULL, 0);
}

int nps_launch__find(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size && access(path, X_OK) == 0 ? 0 : -ENOENT;
	for (; dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (snprintf(path, size, "%.*s/%s", (int)(end - dirs), dirs, name) < (int)size &&
		    access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}
