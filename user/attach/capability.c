/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/capability.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "attach/uprobe_link.h"
#include "core/linux_capabilities.h"
#include "core/log.h"
#include "core/privilege.h"

#define INIT_PID_NAMESPACE 0xeffffffcU /* inode of the first one, fixed by the kernel */

/* Required capabilities, and what for. CAP_SYS_ADMIN includes the first ones. */
#define IN_SYS_ADMIN 3
static const struct {
	int cap;
	const char *name;
} needed_caps[] = {
	{ CAP_BPF, "CAP_BPF" }, /* load programs */
	{ CAP_PERFMON, "CAP_PERFMON" }, /* attach them */
	{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE" }, /* files behind mappings */
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" }, /* maps and environment of other users' jobs */
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" }, /* their libraries */
};

static uint64_t effective_caps(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = {};

	return syscall(SYS_capget, &h, d) ? UINT64_MAX : d[0].effective | (uint64_t)d[1].effective << 32;
}

static void note_missing_cap(struct nps_capability *c, const char *name)
{
	size_t at = strlen(c->missing_caps);

	snprintf(c->missing_caps + at, sizeof(c->missing_caps) - at, "%s%s", at ? ", " : "", name);
}

static void find_missing_caps(struct nps_capability *c)
{
	uint64_t have = effective_caps();

	for (size_t i = 0; i < sizeof(needed_caps) / sizeof(*needed_caps); i++)
		if (!(have >> needed_caps[i].cap & 1) && !(i < IN_SYS_ADMIN && have >> CAP_SYS_ADMIN & 1))
			note_missing_cap(c, needed_caps[i].name);
}

static bool has_map(enum bpf_map_type type)
{
	return libbpf_probe_bpf_map_type(type, NULL) == 1;
}

static bool kernel_has_helper(enum bpf_prog_type type, enum bpf_func_id id)
{
	return libbpf_probe_bpf_helper(type, id, NULL) == 1;
}

/* By a real call: libbpf matches messages of the verifier, which Linux 6.12 has changed. */
static bool can_call_to_read_kernel(enum bpf_func_id id)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3 },
		{ .code = BPF_JMP | BPF_CALL, .imm = (int)id },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", insns,
				 sizeof(insns) / sizeof(*insns), NULL);

	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

/* A program that can be loaded may not be attachable: arm64 before 6.4. */
static bool has_fentry(void)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	/* A function that does nothing and exists for tests. */
	int id = libbpf_find_vmlinux_btf_id("bpf_fentry_test1", BPF_TRACE_FENTRY), prog, link;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = (uint32_t)(id > 0 ? id : 0));

	if (id <= 0)
		return false;
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", insns, 2, &opts);
	if (prog < 0)
		return false;
	link = bpf_raw_tracepoint_open(NULL, prog);
	close(prog);
	if (link >= 0)
		close(link);
	return link >= 0;
}

/* The rows that can be forbidden; a row that needs another one comes after it. */
static const char *const forbidable[] = { "btf",    "ringbuf",	      "task_storage",
					  "cookie", "uprobe_session", "uprobe_multi",
					  "fentry", "python_samples" };

/* Is NAME in NPUSCOPE_FORBID? */
static bool is_forbidden(const char *name)
{
	const char *at = getenv("NPUSCOPE_FORBID");
	size_t len = strlen(name);

	while (at && *at) {
		size_t n = strcspn(at, ",");

		if (n == len && !strncmp(at, name, n))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

static void warn_of_unknown_names(void)
{
	const char *at = getenv("NPUSCOPE_FORBID");

	while (at && *at) {
		size_t n = strcspn(at, ","), i = 0;

		while (i < sizeof(forbidable) / sizeof(*forbidable) &&
		       (strlen(forbidable[i]) != n || strncmp(forbidable[i], at, n)))
			i++;
		if (n && i == sizeof(forbidable) / sizeof(*forbidable))
			nps_warn("NPUSCOPE_FORBID: nothing is called %.*s: it is ignored", (int)n, at);
		at += n + (at[n] == ',');
	}
}

/*
 * Some kernels, and some settings of perf_event_paranoid, require
 * CAP_SYS_ADMIN where others require CAP_PERFMON.
 */
static void find_uprobe_limits(struct nps_capability *c)
{
	int err = nps_privilege__try_without(CAP_SYS_ADMIN, nps_uprobe_perf__check);

	c->uprobe_admin = err == -EACCES || err == -EPERM;
	if (c->uprobe_admin && c->uprobe == NPS_UPROBE_PERF && !*c->missing_caps &&
	    !(effective_caps() >> CAP_SYS_ADMIN & 1))
		note_missing_cap(c, "CAP_SYS_ADMIN");
}

void nps_capability__probe(struct nps_capability *c)
{
	int fd;

	memset(c, 0, sizeof(*c));
	libbpf_set_print(NULL);
	find_missing_caps(c);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "nps_probe", 4, 8, 1, NULL);
	c->bpf_error = fd < 0 ? -fd : 0;
	c->bpf = fd >= 0;
	if (fd >= 0)
		close(fd);
	warn_of_unknown_names();
	c->btf = !is_forbidden("btf") && access("/sys/kernel/btf/vmlinux", R_OK) == 0;
	if (!c->bpf)
		return;
	c->ringbuf = !is_forbidden("ringbuf") && has_map(BPF_MAP_TYPE_RINGBUF);
	c->task_storage = !is_forbidden("task_storage") && has_map(BPF_MAP_TYPE_TASK_STORAGE) &&
			  kernel_has_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_task_storage_get);
	c->python_samples = c->ringbuf && c->btf && c->task_storage && !is_forbidden("python_samples") &&
			    kernel_has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_storage_get) &&
			    kernel_has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_ringbuf_output);
	c->raw_tracepoint = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL) == 1;
	/* Found by a call that lockdown refuses, because a program without it can be loaded. */
	c->locked_down = c->raw_tracepoint && !can_call_to_read_kernel(BPF_FUNC_probe_read_kernel) &&
			 !can_call_to_read_kernel(BPF_FUNC_probe_read); /* name until 5.5 */
	c->fentry = !is_forbidden("fentry") && c->btf && has_fentry();
	c->cookie = !is_forbidden("cookie") &&
		    kernel_has_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie);
	/* Multi links use cookies to distinguish their probes. */
	if (c->cookie && !is_forbidden("uprobe_multi") &&
	    nps_uprobe_multi__supported(NPS_BPF_TRACE_UPROBE_MULTI))
		c->mark_attach_type = NPS_BPF_TRACE_UPROBE_MULTI;
	if (c->mark_attach_type && !is_forbidden("uprobe_session") &&
	    nps_uprobe_multi__supported(NPS_BPF_TRACE_UPROBE_SESSION))
		c->uprobe = NPS_UPROBE_SESSION;
	else if (c->mark_attach_type)
		c->uprobe = NPS_UPROBE_MULTI;
	else if (access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0)
		c->uprobe = NPS_UPROBE_PERF;
	find_uprobe_limits(c);
}

int nps_capability__check(const struct nps_capability *c)
{
	struct stat st;

	if (*c->missing_caps) {
		nps_warn("cannot attach: this process lacks %s: run as root, or grant them with setcap",
			 c->missing_caps);
		return -EPERM;
	}
	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != INIT_PID_NAMESPACE) {
		nps_warn("cannot attach: this is a pid namespace of its own, and the kernel reports pids of "
			 "the host: run npuscope on the host, or the container with the host's pids");
		return -ENOTSUP;
	}
	if (!c->bpf) {
		nps_warn("cannot attach: bpf(2) is refused: %s: the kernel needs CONFIG_BPF_SYSCALL and must "
			 "not be locked down",
			 strerror(c->bpf_error));
		return -ENOTSUP;
	}
	if (!c->raw_tracepoint || (!c->locked_down && !c->uprobe)) {
		nps_warn("cannot attach: this kernel lacks %s: `npuscope doctor` shows what is there",
			 !c->raw_tracepoint ? "raw tracepoints for BPF"
					    : "uprobes by perf events (Linux 4.17)");
		return -ENOTSUP;
	}
	if (c->locked_down) {
		nps_warn("cannot attach: this kernel is locked down for confidentiality, and lets no probe "
			 "read its memory: "
			 "boot it with lockdown=integrity, or without");
		return -ENOTSUP;
	}
	return 0;
}

bool nps_capability__is_legacy(const struct nps_capability *c)
{
	return !c->btf || !c->ringbuf;
}

bool nps_capability__wants_admin(const struct nps_capability *c)
{
	return c && c->uprobe == NPS_UPROBE_PERF && c->uprobe_admin;
}

const char *nps_uprobe_row__name(enum nps_uprobe_row row)
{
	static const char *const names[] = { "none", "perf event", "multi link", "session link" };

	return names[row];
}

static void row(FILE *out, const char *what, bool have, const char *detail)
{
	fprintf(out, "  %-18s %-4s %s\n", what, have ? "yes" : "no", detail);
}

#define OF_OLD_KERNELS                                                                                       \
	"relocation and rings: calls, submissions, marks and system calls by perf buffers instead"

void nps_capability__print(const struct nps_capability *c, FILE *out)
{
	struct utsname u = {};

	uname(&u);
	fprintf(out, "kernel %s %s\n", u.release, u.machine);
	row(out, "privileges", !*c->missing_caps, *c->missing_caps ? c->missing_caps : "");
	row(out, "bpf(2)", c->bpf, c->bpf ? "" : strerror(c->bpf_error));
	if (c->raw_tracepoint)
		row(out, "kernel memory", !c->locked_down,
		    c->locked_down ? "locked down for confidentiality" : "read by probes");
	else
		fprintf(out, "  %-18s %-4s %s\n", "kernel memory", "?",
			"not known: no program can be loaded to try");
	row(out, "BTF", c->btf, c->btf ? "relocation of kernel types" : OF_OLD_KERNELS);
	row(out, "ring buffer", c->ringbuf, c->ringbuf ? "one ring for each CPU" : OF_OLD_KERNELS);
	row(out, "task storage", c->task_storage,
	    c->task_storage ? "open calls of a thread" : "open calls of a thread: in hashes instead");
	row(out, "raw tracepoints", c->raw_tracepoint, "system calls and scheduling");
	row(out, "attach cookies", c->cookie,
	    c->cookie ? "one program for all probes" : "a small program for each probe instead");
	row(out, "fentry", c->fentry,
	    c->fentry ? "page faults that may wait" : "page faults: every one is looked at instead");
	row(out, "Python at samples", c->python_samples,
	    c->python_samples ? "frames in stacks" : "stacks are without frames of Python");
	row(out, "uprobes", c->uprobe != NPS_UPROBE_NONE, nps_uprobe_row__name(c->uprobe));
}

uint32_t nps_kernel_version(void)
{
	unsigned int major = 0, minor = 0, patch = 0;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u.%u", &major, &minor, &patch) < 2)
		return 0;
	return KERNEL_VERSION(major, minor > 255 ? 255 : minor, patch > 255 ? 255 : patch);
}
