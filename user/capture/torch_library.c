/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/torch_library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/torch_inputs.h"
#include "capture/capture.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/proc_maps.h"

#define VERSION_FILE_BYTES 4096

bool nps_torch_library__wanted(const struct nps_capture *c, const char *path)
{
	const char *name = nps_basename(path);

	if (nps_probes__is_torch_npu(name))
		return c->opts->ops || c->opts->torch_memory;
	return c->opts->ops && nps_probes__is_torch(name);
}

/* Compiled from the headers of 1.13, 2.6 and 2.14; the same on both processors. */
unsigned nps_torch_library__sequence_at(unsigned major, unsigned minor)
{
	if ((major == 1 && minor >= 13) || (major == 2 && minor <= 6))
		return 24;
	return major == 2 && minor == 14 ? 16 : 0;
}

bool nps_torch_library__version(const char *text, unsigned *major, unsigned *minor)
{
	const char *at = strstr(text, ".so.");

	if (at)
		return sscanf(at, ".so.%3u.%3u", major, minor) == 2;
	at = strstr(text, "__version__ = '");
	return at && sscanf(at, "__version__ = '%3u.%3u", major, minor) == 2;
}

/* Wheels have no version in the library's name: torch/lib/libtorch_cpu.so, torch/version.py. */
static bool torch_version_read(pid_t pid, const char *path, unsigned *major, unsigned *minor)
{
	char file[PATH_MAX], text[VERSION_FILE_BYTES + 1];
	int fd;
	ssize_t n;

	if (nps_torch_library__version(nps_basename(path), major, minor))
		return true;
	if (snprintf(file, sizeof(file), "%.*s../version.py", (int)(nps_basename(path) - path), path) >=
	    (int)sizeof(file))
		return false;
	fd = nps_open_in_root(pid, file);
	if (fd < 0)
		return false;
	n = read(fd, text, VERSION_FILE_BYTES);
	close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	return nps_torch_library__version(text, major, minor);
}

static const char *reason(int err)
{
	if (err == -ENOTSUP)
		return "this kernel wants an event for each operator (no uprobe_multi)";
	return err == -EINVAL ? "its unwind tables cannot be used" : strerror(-err);
}

static void report_unknown(const struct nps_capture *c, const struct nps_torch_probes *what, unsigned major,
			   unsigned minor, const char *path)
{
	if (!what->sequence_at)
		nps_info("the layout of PyTorch %u.%u is not known: backward nodes of %s have no sequence "
			 "numbers",
			 major, minor, path);
	if (c->opts->shapes && what->tensors == NPS_LAYOUT_UNKNOWN)
		nps_info("the layout of PyTorch %u.%u is not known: operators of %s have no shapes", major,
			 minor, path);
}

static void report_memory_missing(struct nps_capture *c, const char *path, int err)
{
	const char *why = err == -ENOENT
				  ? "it has no symbol torch_npu::profiler::reportMemoryDataToNpuProfiler "
				    "(it is stripped): use a build with its symbol table"
			  : err == -ENOTSUP ? "this kernel lacks BTF or ring buffers"
			  : err == -E2BIG   ? "its symbol table is too large"
					    : strerror(-err);

	nps_warn("cannot record PyTorch's memory of the NPU: %s: %s", path, why);
	c->degraded = true;
}

int nps_torch_library__attach(struct nps_capture *c, struct nps_process *p, int fd, const char *path)
{
	bool npu = nps_probes__is_torch_npu(nps_basename(path));
	struct nps_torch_probes what = { .operators = c->opts->ops,
					 .numbers = c->opts->ops == NPS_OPS_ALL,
					 .memory = npu && c->opts->torch_memory };
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	unsigned major = 0, minor = 0;
	int n;

	c->torch_npu_found |= npu;
	/* Each scan of a process calls this: the version is read once. */
	if (nps_probes__knows(c->shared.probes, fd))
		return nps_budget__spent(&p->budget) ? -ETIME : 0;
	if (!npu && torch_version_read(p->pid, path, &major, &minor)) {
		what.sequence_at = (uint8_t)nps_torch_library__sequence_at(major, minor);
		what.tensors = nps_torch_inputs__layout(major, minor);
		what.major = major;
	}
	n = nps_probes__attach_torch(c->shared.probes, fd, path, &what, &p->budget);
	if (n > 0 && !npu)
		report_unknown(c, &what, major, minor, path);
	if (n >= 0 && what.operators_missing) {
		nps_warn("cannot probe operators of %s: %s: they will be missing", path,
			 reason(what.operators_missing));
		c->degraded = true;
	}
	if (n < 0 && n != -ETIME) {
		nps_warn("cannot probe %s: %s: its %s will be missing", path, reason(n),
			 c->opts->ops ? "operators" : "memory");
		c->degraded = true;
	} else if (n >= 0 && what.memory_missing) {
		report_memory_missing(c, path, what.memory_missing);
	}
	c->attach_ns += nps_now(CLOCK_MONOTONIC) - begin;
	return nps_budget__spent(&p->budget) ? -ETIME : 0;
}
