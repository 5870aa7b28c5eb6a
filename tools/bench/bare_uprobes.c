/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uprobes whose program does nothing, until this process or its parent is killed. Standard input has a line
 * for each: the offset in the file, 1 if its return is probed too, the file's path, blanks between them.
 * Prints "ready" when all are attached.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attach/uprobe_link.h"

static int load(uint32_t attach_type)
{
	struct bpf_insn p[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
				{ .code = BPF_JMP | BPF_EXIT } };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", p, 2, &opts);
}

int main(void)
{
	uint32_t session = NPS_BPF_TRACE_UPROBE_SESSION, multi = NPS_BPF_TRACE_UPROBE_MULTI;
	bool sessions = nps_uprobe_multi__supported(session);
	int entry = load(multi), both = sessions ? load(session) : entry, returns;
	unsigned long long offset;
	char path[4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing else would end it, and its probes */
	if (getppid() == 1)
		return 1;
	if (entry < 0 || both < 0) {
		fprintf(stderr, "bare_uprobes: no program: %s\n", strerror(errno));
		return 1;
	}
	while (scanf("%llu %d %4095[^\n]", &offset, &returns, path) == 3) {
		uint64_t at = offset, cookie = 1;
		uint32_t type = returns && sessions ? session : multi;
		int link =
			nps_uprobe_multi__link(returns ? both : entry, type, path, &at, &cookie, 1, false, 0);

		if (link >= 0 && returns && !sessions)
			link = nps_uprobe_multi__link(entry, multi, path, &at, &cookie, 1, true, 0);
		if (link < 0) {
			fprintf(stderr, "bare_uprobes: %s: %s\n", path, strerror(-link));
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
