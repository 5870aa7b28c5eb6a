/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/texts.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define PART ((size_t)NPS_STR_MAX - 1)
#define PAGE 4096ULL /* the smallest page size */

static uint64_t fnv1a(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3ULL;
	return h ? h : 1;
}

unsigned nps_text__split(const char *text, size_t len, uint32_t pid, uint64_t time,
			 struct nps_string parts[NPS_TEXT_PARTS])
{
	size_t kept = len > NPS_TEXT_MAX ? NPS_TEXT_MAX : len;
	uint64_t id = fnv1a(text, kept);
	unsigned n = 0;

	memset(parts, 0, NPS_TEXT_PARTS * sizeof(*parts));
	for (size_t at = 0; !n || at < kept; at += PART) {
		struct nps_string *s = &parts[n++];

		s->kind = at ? NPS_STR_MORE : NPS_STR_TEXT;
		s->len = (uint16_t)(kept - at < PART ? kept - at : PART);
		s->pid = pid;
		s->id = id;
		s->time = time;
		memcpy(s->text, text + at, s->len);
	}
	if (kept < len)
		parts[n - 1].flags = NPS_STR_CUT;
	return n;
}

ssize_t nps_text__read(pid_t pid, uint64_t address, char text[NPS_TEXT_MAX + 2])
{
	size_t done = 0, len;

	/* Page by page, because the text can end just before unmapped memory. */
	while (done <= NPS_TEXT_MAX) {
		uint64_t at = address + done, page_left = PAGE - at % PAGE;
		struct iovec to = { text + done, NPS_TEXT_MAX + 1 - done };
		struct iovec from = { (void *)(uintptr_t)at, 0 };
		ssize_t n;

		if (to.iov_len > page_left)
			to.iov_len = page_left;
		from.iov_len = to.iov_len;
		n = process_vm_readv(pid, &to, 1, &from, 1, 0);
		if (n <= 0 && !done)
			return n ? -errno : -EFAULT;
		if (n <= 0)
			break;
		len = strnlen(text + done, (size_t)n);
		done += len;
		if (len < (size_t)n)
			break;
	}
	text[done] = '\0';
	return (ssize_t)done;
}
