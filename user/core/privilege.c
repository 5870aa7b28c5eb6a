/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/privilege.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/linux_capabilities.h"
#include "core/log.h"

#define MOST_CAPABILITIES 64

static uint64_t bit(int capability)
{
	return 1ULL << capability;
}

/*
 * CAPABILITY or, if it is not among those we HAVE, CAP_SYS_ADMIN, which
 * includes it: older kernels do not have the former.
 */
static uint64_t or_admin(uint64_t have, int capability)
{
	return have & bit(capability) ? bit(capability) : bit(CAP_SYS_ADMIN);
}

static uint64_t kept(enum nps_privilege what, uint64_t have)
{
	uint64_t mask = 0;

	switch (what) {
	case NPS_PRIVILEGE_SWITCHES:
		mask |= bit(CAP_DAC_OVERRIDE);
		/* fallthrough */
	case NPS_PRIVILEGE_CAPTURE:
		mask |= or_admin(have, CAP_PERFMON) | bit(CAP_SYSLOG); /* names of the kernel's functions */
		/* fallthrough */
	case NPS_PRIVILEGE_RECORDS:
		mask |= or_admin(have, CAP_BPF) | or_admin(have, CAP_CHECKPOINT_RESTORE);
		/* fallthrough */
	case NPS_PRIVILEGE_PROC:
		return mask | bit(CAP_SYS_PTRACE) | bit(CAP_DAC_READ_SEARCH);
	case NPS_PRIVILEGE_STATISTICS:
		return bit(CAP_SYS_ADMIN);
	case NPS_PRIVILEGE_RESULTS: /* deleted files of the job are opened through their mappings */
		return or_admin(have, CAP_BPF) | or_admin(have, CAP_CHECKPOINT_RESTORE) |
		       bit(CAP_SYS_PTRACE) | bit(CAP_DAC_READ_SEARCH);
	case NPS_PRIVILEGE_NAMESPACES:
		return bit(CAP_SYS_PTRACE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_SYS_ADMIN);
	default:
		return 0;
	}
}

/* Makes the MASK effective, as far as D permits it. */
static int set_effective(struct __user_cap_data_struct d[2], uint64_t mask)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };

	for (int i = 0; i < 2; i++)
		d[i].effective = d[i].permitted & (uint32_t)(mask >> (32 * i));
	return (int)syscall(SYS_capset, &h, d);
}

int nps_privilege__try_without(int capability, int (*what)(void))
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct before[2] = { { 0 } }, d[2];
	int err;

	if (syscall(SYS_capget, &h, before))
		return -errno;
	memcpy(d, before, sizeof(d));
	d[capability / 32].effective &= ~(1U << capability % 32);
	if (syscall(SYS_capset, &h, d))
		return -errno;
	err = what();
	if (syscall(SYS_capset, &h, before))
		nps_debug("cannot restore capabilities: %s", strerror(errno));
	return err;
}

void nps_privilege__keep(enum nps_privilege what, bool admin)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };
	uint64_t mask;

	if (syscall(SYS_capget, &h, d))
		return;
	mask = kept(what, d[0].permitted | (uint64_t)d[1].permitted << 32);
	if (admin)
		mask |= bit(CAP_SYS_ADMIN);
	/*
	 * Drops them from the bounding set, so that programs we execute do not get them again. This needs a
	 * capability that is dropped next.
	 */
	set_effective(d, UINT64_MAX);
	for (int i = 0; i < MOST_CAPABILITIES; i++)
		if (!(mask >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) > 0 &&
		    prctl(PR_CAPBSET_DROP, i, 0, 0, 0))
			break;
	for (int i = 0; i < 2; i++) {
		d[i].permitted &= (uint32_t)(mask >> (32 * i));
		d[i].inheritable = 0;
	}
	if (set_effective(d, mask))
		nps_debug("capabilities are kept: %s", strerror(errno));
}
