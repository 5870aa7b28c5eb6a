/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks by the headers alone: mstx_header_job N [early|late|fork]. N times: a mark, a mark and a range in the
 * domain "input", a range in "output", a range in the default domain; then texts of 127, 128, 255, 508, 509
 * and 65536 bytes. early, fork: the domains are made before "ready"; fork: a child does the rest. Prints the
 * last range, 0 where there is no consumer.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mstx_header.h"

static const int lengths[] = { 127, 128, 255, 508, 509, 65536 };

static void long_texts(void)
{
	static char text[65537];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (int k = 0; k < lengths[i]; k++)
			text[k] = (char)('a' + (k + k / 26) % 26);
		/* Those that fit differ at their end only. */
		text[0] = lengths[i] > 508 ? (char)('A' + i) : 'a';
		text[lengths[i] - 1] = (char)('A' + i);
		text[lengths[i]] = '\0';
		mark(text);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, late = argc > 2 && !strcmp(argv[2], "late");
	int forks = argc > 2 && !strcmp(argv[2], "fork"), status = 0;
	void *input = NULL, *output = NULL;
	uint64_t range = 0;

	if (!late) {
		input = domain_create("input");
		output = domain_create("output");
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	if (late) {
		input = domain_create("input");
		output = domain_create("output");
	}
	if (forks && fork() > 0) {
		wait(&status);
		return WEXITSTATUS(status);
	}
	for (int i = 0; i < n; i++) {
		mark("step");
		domain_mark(input, "batch");
		range = domain_start(input, "read");
		domain_end(input, range);
		range = domain_start(output, "write");
		domain_end(output, range);
		range = range_start("whole");
		range_end(range);
	}
	long_texts();
	printf("last %lu\n", (unsigned long)range);
	return 7;
}
