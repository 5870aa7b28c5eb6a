/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/perf_probe.h"

#include <bpf/libbpf.h>
#include <errno.h>

#include "attach/trampolines.h"
#include "attach/uprobe_link.h"

int nps_perf_probe__attach(const struct nps_perf_probe *p, struct nps_links *links)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = p->returns, .bpf_cookie = p->cookie);
	struct bpf_link *link;
	int fd;

	if (p->trampolines) {
		fd = nps_trampolines__get(p->trampolines, p->which, p->cookie);
		if (fd >= 0)
			fd = nps_uprobe_perf__link(fd, p->path, p->offset, p->returns);
		return fd < 0 ? fd : nps_links__keep_fd(links, fd, p->tier);
	}
	link = bpf_program__attach_uprobe_opts(p->program, -1, p->path, p->offset, &opts);
	return link ? nps_links__keep(links, link, p->tier) : -errno;
}
