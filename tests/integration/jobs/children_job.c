/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job whose children live for a moment. Commands on stdin: "fork N": N children that name themselves and
 * exit; "exec N DIR": N children that execute DIR/program0, DIR/program1, ... (links to this program);
 * "stay": one that lives as long as the job; "quit". Prints "child PID NAME STATUS" for each, in the order of
 * their births, then "done"; of the one that stays "stays PID".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void live(const char *name, const char *dir)
{
	char path[4200];

	if (!dir[0]) {
		prctl(PR_SET_NAME, name);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	execl(path, path, "child", NULL);
	_exit(99);
}

static void have_children(int n, const char *dir)
{
	for (int i = 0; i < n; i++) {
		int code = i % 50, status = 0;
		char name[24];
		pid_t pid;

		snprintf(name, sizeof(name), "%s%d", dir[0] ? "program" : "child", i);
		pid = fork();
		if (!pid) {
			live(name, dir);
			_exit(code);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			exit(1);
		printf("child %d %s %d\n", pid, name, status);
	}
	puts("done");
}

static void have_companion(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "companion");
		for (;;)
			pause();
	}
	printf("stays %d\n", pid);
}

int main(int argc, char **argv)
{
	char line[4200], dir[4096];
	int n;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return 7;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n")) {
		dir[0] = '\0';
		if (sscanf(line, "fork %d", &n) == 1 || sscanf(line, "exec %d %4095s", &n, dir) == 2)
			have_children(n, dir);
		else if (!strcmp(line, "stay\n"))
			have_companion();
	}
	return 0;
}
