/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/targets/target_state.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

#define KERNEL_THREAD 0x00200000U /* PF_KTHREAD of the kernel's sched.h, in the flags of /proc/PID/stat */

static ssize_t state_read_file(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	return n;
}

/* State letter and flags of PID; its name, in parentheses, is arbitrary. */
static bool state_read_stat(pid_t pid, char *state, unsigned int *flags)
{
	char text[1024];
	ssize_t n = state_read_file(pid, "stat", text, sizeof(text) - 1);
	const char *after;

	if (n <= 0)
		return false;
	text[n] = '\0';
	after = strrchr(text, ')');
	return after && sscanf(after + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

static bool is_32_bit(pid_t pid)
{
	unsigned char ident[EI_NIDENT];

	return state_read_file(pid, "exe", (char *)ident, sizeof(ident)) == sizeof(ident) &&
	       !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
}

bool nps_target_state__report(pid_t pid)
{
	unsigned int flags;
	char state;

	if (!state_read_stat(pid, &state, &flags))
		return false;
	if (flags & KERNEL_THREAD)
		nps_warn("pid %d is a thread of the kernel: it calls no library, only its time on CPUs is "
			 "recorded: "
			 "name a process",
			 (int)pid);
	else if (state == 'T')
		nps_warn("pid %d is stopped: it does nothing until it continues: kill -CONT %d", (int)pid,
			 (int)pid);
	else if (state == 't')
		nps_warn("pid %d is stopped by a debugger: it does nothing until that lets it go on",
			 (int)pid);
	else if (is_32_bit(pid))
		nps_warn("pid %d runs a 32-bit program: CANN has no 32-bit libraries, and its system calls "
			 "are counted, "
			 "not recorded: is this the NPU job?",
			 (int)pid);
	else
		return false;
	return true;
}
