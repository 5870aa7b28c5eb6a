/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libms_tools_ext.so: numbers its ranges, or, like the real one without a
 * consumer, gives them all 0 (NUMBERS=0).
 */
#include <stdint.h>
#include <stdlib.h>

static volatile uint64_t last;

static uint64_t number(void)
{
	const char *numbers = getenv("NUMBERS");

	return numbers && *numbers == '0' ? 0 : ++last;
}

void mstxMarkA(const char *message, void *stream)
{
	(void)message;
	(void)stream;
	last += 0;
}

uint64_t mstxRangeStartA(const char *message, void *stream)
{
	(void)message;
	(void)stream;
	return number();
}

void mstxRangeEnd(uint64_t range)
{
	last += range & 0;
}

void *mstxDomainCreateA(const char *name)
{
	return (void *)((uintptr_t)name | 1);
}

uint64_t mstxDomainRangeStartA(void *domain, const char *message, void *stream)
{
	(void)domain;
	(void)message;
	(void)stream;
	return number() << 1;
}

void mstxDomainRangeEnd(void *domain, uint64_t range)
{
	(void)domain;
	last += range & 0;
}
