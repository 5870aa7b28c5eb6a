/* SPDX-License-Identifier: BSD-2-Clause */
/* libms_tools_ext.so as it is: functions with names, made of the headers. */
#include "mstx_header.h"

void mstxMarkA(const char *message, void *stream);
uint64_t mstxRangeStartA(const char *message, void *stream);
void mstxRangeEnd(uint64_t range);
void *mstxDomainCreateA(const char *name);
void mstxDomainMarkA(void *domain, const char *message, void *stream);
uint64_t mstxDomainRangeStartA(void *domain, const char *message, void *stream);
void mstxDomainRangeEnd(void *domain, uint64_t range);

void mstxMarkA(const char *message, void *stream)
{
	(void)stream;
	mark(message);
}

uint64_t mstxRangeStartA(const char *message, void *stream)
{
	(void)stream;
	return range_start(message);
}

void mstxRangeEnd(uint64_t range)
{
	range_end(range);
}

void *mstxDomainCreateA(const char *name)
{
	return domain_create(name);
}

void mstxDomainMarkA(void *domain, const char *message, void *stream)
{
	(void)stream;
	domain_mark(domain, message);
}

uint64_t mstxDomainRangeStartA(void *domain, const char *message, void *stream)
{
	(void)stream;
	return domain_start(domain, message);
}

void mstxDomainRangeEnd(void *domain, uint64_t range)
{
	domain_end(domain, range);
}
