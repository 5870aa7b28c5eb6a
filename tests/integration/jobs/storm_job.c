// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes system calls as fast as it can: storm_job ROUNDS; or until SIGTERM
 * without. Output does not depend on time.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	stop = sig;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 0, i;
	uint64_t h = 1;

	signal(SIGTERM, on_term);
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (i = 0; !stop && (!rounds || i < rounds); i++)
		h = (h ^ (uint64_t)(syscall(SYS_getppid) > 0)) * 0x100000001b3ULL;
	if (rounds)
		printf("done %016llx\n", (unsigned long long)h);
	else
		printf("stopped\n");
	return 9;
}
