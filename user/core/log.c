/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

static int quiet, verbose;

void nps_log_quiet(int q)
{
	quiet = q;
}

void nps_log_verbose(int v)
{
	verbose = v;
}

int nps_log_is_verbose(void)
{
	return verbose;
}

/* Replaces control characters, because the job controls names of files and processes. */
static void emit(const char *fmt, va_list ap)
{
	char line[1024];
	int n = vsnprintf(line, sizeof(line), fmt, ap);

	for (int i = 0; i < n && i < (int)sizeof(line) - 1; i++)
		if (iscntrl((unsigned char)line[i]) ||
		    ((unsigned char)line[i] >= 0x80 && (unsigned char)line[i] < 0xa0))
			line[i] = '?';
	fprintf(stderr, "npuscope: %s\n", line);
}

void nps_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}

void nps_info(const char *fmt, ...)
{
	va_list ap;

	if (quiet)
		return;
	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}

void nps_debug(const char *fmt, ...)
{
	va_list ap;

	if (!verbose)
		return;
	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}
