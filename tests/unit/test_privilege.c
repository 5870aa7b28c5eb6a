/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread has left of its capabilities; each case is a process of its own, for there is no way back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/capability.h"
#include "core/linux_capabilities.h"
#include "core/privilege.h"

#define BIT(capability) (1ULL << (capability))
#define ADMIN BIT(CAP_SYS_ADMIN)

static const struct nps_capability multi = { .uprobe = NPS_UPROBE_MULTI, .uprobe_admin = true };
static const struct nps_capability perf = { .uprobe = NPS_UPROBE_PERF };
static const struct nps_capability perf_by_admin = { .uprobe = NPS_UPROBE_PERF, .uprobe_admin = true };

static void read_caps(uint64_t *effective, uint64_t *permitted)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	assert_int_equal(syscall(SYS_capget, &h, d), 0);
	*effective = d[0].effective | (uint64_t)d[1].effective << 32;
	*permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
}

static uint64_t effective(void)
{
	uint64_t now, permitted;

	read_caps(&now, &permitted);
	return now;
}

/* What is left of all, as reported by a process that begins with them. */
static uint64_t left(enum nps_privilege what, const struct nps_capability *cap)
{
	uint64_t answer[2] = { 0 };
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		nps_privilege__keep(what, nps_capability__wants_admin(cap));
		read_caps(&answer[0], &answer[1]);
		_exit(write(ends[1], answer, sizeof(answer)) != sizeof(answer));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], answer, sizeof(answer)), sizeof(answer));
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(answer[0] == answer[1]); /* what is permitted could be had again */
	return answer[0];
}

static bool has_privileges(void)
{
	uint64_t all = ADMIN | BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE) |
		       BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYSLOG) | BIT(CAP_SETPCAP);

	return (effective() & all) == all;
}

static void who_attaches_late(void **state)
{
	uint64_t most = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_PTRACE) |
			BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYSLOG);

	(void)state;
	if (!has_privileges())
		skip();
	assert_true(left(NPS_PRIVILEGE_CAPTURE, &perf_by_admin) == (most | ADMIN));
	assert_true(left(NPS_PRIVILEGE_CAPTURE, &perf) == most);
	assert_true(left(NPS_PRIVILEGE_CAPTURE, &multi) == most); /* links of many are none of perf */
	assert_true(left(NPS_PRIVILEGE_CAPTURE, NULL) == most);
	assert_true(left(NPS_PRIVILEGE_SWITCHES, &perf_by_admin) == (most | ADMIN | BIT(CAP_DAC_OVERRIDE)));
}

static void who_attaches_nothing(void **state)
{
	(void)state;
	if (!has_privileges())
		skip();
	assert_true(left(NPS_PRIVILEGE_RECORDS, NULL) == (BIT(CAP_BPF) | BIT(CAP_CHECKPOINT_RESTORE) |
							  BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH)));
	assert_true(left(NPS_PRIVILEGE_NONE, NULL) == 0);
}

static uint64_t meanwhile;

static int note(void)
{
	meanwhile = effective();
	return -42;
}

static void without_one_for_a_while(void **state)
{
	uint64_t before = effective();

	(void)state;
	if (!has_privileges())
		skip();
	assert_int_equal(nps_privilege__try_without(CAP_SYS_ADMIN, note), -42);
	assert_true(meanwhile == (before & ~ADMIN));
	assert_true(effective() == before);
	assert_int_equal(nps_privilege__try_without(CAP_BPF, note), -42); /* of the second word */
	assert_true(meanwhile == (before & ~BIT(CAP_BPF)));
	assert_true(effective() == before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_attaches_late),
		cmocka_unit_test(who_attaches_nothing),
		cmocka_unit_test(without_one_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
