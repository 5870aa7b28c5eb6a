/* SPDX-License-Identifier: BSD-2-Clause */
/* npusim-train: starts one process per rank and waits for them. */
#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 8
#define CONTROL_FD_ENV "NPUSIM_TRAIN_CONTROL"

static pid_t children[RANKS_MAX];
static int nchildren;

static void usage(FILE *out)
{
	fputs("npusim-train [OPTION]...\n"
	      "  --ranks N         processes, one device each (default 2)\n"
	      "  --rate N          kernel launches a second per rank (default 2000)\n"
	      "  --seconds N       stop after N seconds\n"
	      "  --steps N         stop after N steps; without either, run until SIGTERM\n"
	      "  --slow-every N    every Nth step waits for its data (default 20, 0 never)\n"
	      "  --time-every N    every Nth step times its parts with events (default 0, never)\n"
	      "  --never-ask       such a step records its events and does not ask for their times\n"
	      "  --ai-cpu          a kernel of the AI CPU in each step\n"
	      "  --quiet           print only the result\n"
	      "  --pidfile FILE    write the rank pids, one a line, when training begins\n"
	      "  --self-profile F  every rank reads its own STARS log into F.RANK\n",
	      out);
}

static int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "ranks", required_argument, NULL, 'r' },
		{ "rate", required_argument, NULL, 'R' },
		{ "seconds", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'n' },
		{ "slow-every", required_argument, NULL, 'w' },
		{ "time-every", required_argument, NULL, 't' },
		{ "never-ask", no_argument, NULL, 'k' },
		{ "ai-cpu", no_argument, NULL, 'a' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "pidfile", required_argument, NULL, 'p' },
		{ "self-profile", required_argument, NULL, 'P' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'r':
			o->ranks = atoi(optarg);
			break;
		case 'R':
			o->rate = atol(optarg);
			break;
		case 's':
			o->seconds = atof(optarg);
			break;
		case 'n':
			o->steps = atol(optarg);
			break;
		case 'w':
			o->slow_every = atol(optarg);
			break;
		case 't':
			o->time_every = atol(optarg);
			break;
		case 'k':
			o->never_query = true;
			break;
		case 'a':
			o->ai_cpu = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'p':
			o->pidfile = optarg;
			break;
		case 'P':
			o->self_profile = optarg;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			return -1;
		}
	}
	return optind == argc && o->ranks >= 1 && o->ranks <= RANKS_MAX && o->rate >= 100 ? 0 : -1;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static struct control *map_control(int fd)
{
	struct control *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (c == MAP_FAILED) {
		perror("npusim-train: control");
		exit(1);
	}
	return c;
}

static void forward_signal(int sig)
{
	for (int i = 0; i < nchildren; i++)
		kill(children[i], sig);
}

static void start_rank(int rank, const struct options *o, int control_fd, char **argv)
{
	char number[16];
	pid_t pid = fork();

	if (pid < 0) {
		perror("npusim-train: fork");
		exit(1);
	}
	if (pid > 0) {
		children[nchildren++] = pid;
		return;
	}
	snprintf(number, sizeof(number), "%d", rank);
	setenv("RANK", number, 1);
	setenv("LOCAL_RANK", number, 1);
	snprintf(number, sizeof(number), "%d", o->ranks);
	setenv("WORLD_SIZE", number, 1);
	snprintf(number, sizeof(number), "%d", control_fd);
	setenv(CONTROL_FD_ENV, number, 1);
	execv("/proc/self/exe", argv);
	perror("npusim-train: exec");
	_exit(127);
}

static void announce(const struct options *o)
{
	FILE *f = o->pidfile ? fopen(o->pidfile, "w") : NULL;

	if (o->pidfile && !f)
		fprintf(stderr, "npusim-train: %s: %s\n", o->pidfile, strerror(errno));
	printf("ready");
	for (int i = 0; i < nchildren; i++) {
		printf(" %d", children[i]);
		if (f)
			fprintf(f, "%d\n", children[i]);
	}
	printf("\n");
	fflush(stdout);
	if (f)
		fclose(f);
}

/* 0 if every rank ended well; the others are stopped when one did not. */
static int wait_for_ranks(const struct options *o, struct control *control)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int running = nchildren, failed = 0;
	bool announced = false;

	while (running > 0) {
		int status;
		pid_t pid = waitpid(-1, &status, announced ? 0 : WNOHANG);

		if (pid > 0) {
			running--;
			if (status && !failed++)
				forward_signal(SIGTERM);
		} else if (pid < 0 && errno != EINTR) {
			return 1;
		}
		if (!announced && atomic_load(&control->ready) == o->ranks) {
			announce(o);
			announced = true;
		}
		if (!announced)
			nanosleep(&pause, NULL);
	}
	return failed ? 1 : 0;
}

static int launch_ranks(const struct options *o, char **argv)
{
	struct sigaction forward = { .sa_handler = forward_signal, .sa_flags = SA_RESTART };
	int fd = memfd_create("npusim-train", 0);
	struct control *control;

	if (fd < 0 || ftruncate(fd, sizeof(*control))) {
		perror("npusim-train: control");
		return 1;
	}
	control = map_control(fd);
	for (int i = 0; i < o->ranks; i++)
		start_rank(i, o, fd, argv);
	sigaction(SIGTERM, &forward, NULL);
	sigaction(SIGINT, &forward, NULL);
	return wait_for_ranks(o, control);
}

int main(int argc, char **argv)
{
	struct options o = { .ranks = 2, .rate = 2000, .slow_every = 20 };
	const char *control_fd = getenv(CONTROL_FD_ENV);

	if (options_parse(argc, argv, &o)) {
		usage(stderr);
		return 2;
	}
	if (!control_fd)
		return launch_ranks(&o, argv);
	return rank_main(&o, map_control(atoi(control_fd)));
}
