/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_stacks PID [TID...] prints how the Python stacks of a process are read, and those of some threads: a
 * line for each frame, innermost first, with name, file and line, tabs between.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/python/python_find.h"
#include "attach/python/python_layout.h"
#include "attach/python/python_walk.h"
#include "stack/python_lines.h"

#define FRAMES 4096

static int32_t line_of(pid_t pid, const struct nps_py_process *process, const struct nps_py_frame *frame)
{
	static uint8_t table[1 << 20];
	ssize_t n = nps_python__line_table(pid, process, frame, table, sizeof(table));

	return n < 0 ? -1
		     : nps_python_line(process->layout.version, frame->first_line, table, (size_t)n,
				       frame->at);
}

static bool is_as_in_table(const struct nps_py_layout *layout)
{
#if defined(__aarch64__)
	const struct nps_py_layout *row = nps_python_layout__find(layout->version, EM_AARCH64);
#else
	const struct nps_py_layout *row = nps_python_layout__find(layout->version, EM_X86_64);
#endif

	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): its padding is that of the row */
	return !memcmp(row, layout, sizeof(*row));
}

static int print_stack(pid_t pid, const struct nps_py_process *process, pid_t tid)
{
	static struct nps_py_frame frames[FRAMES];
	int n = nps_python__walk(pid, process, tid, frames, FRAMES);

	printf("thread %d: %d\n", tid, n);
	for (int i = 0; i < n; i++)
		printf("%s\t%s\t%d\n", frames[i].name, frames[i].file, line_of(pid, process, &frames[i]));
	return n < 0;
}

static size_t from_hex(const char *hex, uint8_t *bytes, size_t size)
{
	size_t n = 0;

	for (unsigned int byte; n < size && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = (uint8_t)byte;
	return n;
}

/* For each line of stdin (version, first line, line table, bytes of code): the line of each instruction. */
static int print_lines(void)
{
	static char hex[2 << 20];
	static uint8_t table[1 << 20];
	int version, first, size;

	while (scanf("%d %d %2097151s %d", &version, &first, hex, &size) == 4) {
		size_t n = from_hex(hex, table, sizeof(table));

		for (int at = 0; at < size; at += 2)
			printf("%s%d", at ? " " : "",
			       nps_python_line((uint16_t)version, first, table, n, at));
		putchar('\n');
	}
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	struct nps_py_process process;
	const char *why;
	int err, failed = 0;

	if (argc == 2 && !strcmp(argv[1], "--lines"))
		return print_lines();
	err = nps_python__find(pid, NULL, &process, &why);
	if (err) {
		fprintf(stderr, "python_stacks: %d: %s: %s\n", pid, strerror(-err), why ? why : "no Python");
		return 1;
	}
	printf("version %d.%d, runtime 0x%llx, ", process.layout.version >> 8, process.layout.version & 0xff,
	       (unsigned long long)process.runtime);
	/* From 3.13 on the interpreter describes itself: does it agree? */
	printf("%s the table, tls ", is_as_in_table(&process.layout) ? "as" : "not as");
	printf(process.tls_offset == NPS_PY_NO_TLS ? "none\n" : "%d\n", process.tls_offset);
	for (int i = 2; i < argc; i++)
		failed |= print_stack(pid, &process, atoi(argv[i]));
	return failed;
}
