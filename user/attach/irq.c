/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/irq.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "irq.skel.h"
#include "attach/bpf_loader.h"
#include "core/log.h"

#define MAX_LINKS 16

struct nps_irq_tracer {
	struct irq_bpf *skel;
	struct bpf_link *links[MAX_LINKS];
	int n_links;
};

static int irq_load(struct nps_irq_tracer *irq, struct nps_bpf_loader *k, uint64_t wake_bytes)
{
	int err;

	irq->skel = irq_bpf__open();
	if (!irq->skel)
		return -errno;
	memcpy((void *)&irq->skel->rodata->wake_bytes, &wake_bytes, sizeof(wake_bytes));
	err = nps_bpf_loader__share_maps(k, irq->skel->obj);
	if (err)
		return err;
	return irq_bpf__load(irq->skel);
}

int nps_irq_tracer__open(struct nps_bpf_loader *k, uint64_t wake_bytes, struct nps_irq_tracer **out)
{
	struct nps_irq_tracer *irq = calloc(1, sizeof(*irq));
	int err = irq ? irq_load(irq, k, wake_bytes) : -ENOMEM;

	if (err) {
		nps_warn("interrupts are not recorded: cannot load their BPF programs: %s: %s",
			 strerror(-err), nps_bpf_loader__advice(err));
		nps_irq_tracer__close(irq);
		irq = NULL;
	}
	*out = irq;
	return err;
}

void nps_irq_tracer__close(struct nps_irq_tracer *irq)
{
	if (!irq)
		return;
	nps_irq_tracer__detach(irq);
	irq_bpf__destroy(irq->skel);
	free(irq);
}

void nps_irq_tracer__detach(struct nps_irq_tracer *irq)
{
	for (int i = 0; irq && i < irq->n_links; i++)
		bpf_link__destroy(irq->links[i]);
	if (irq)
		irq->n_links = 0;
}

/* Programs of a CPU's local interrupts are optional: only x86 kernels that trace their vectors have them. */
static bool is_needed(const struct bpf_program *prog)
{
	const char *name = bpf_program__name(prog);

	return !strncmp(name, "hard", 4) || !strncmp(name, "soft", 4);
}

int nps_irq_tracer__attach(struct nps_irq_tracer *irq)
{
	struct bpf_program *prog;
	int missing = 0;

	bpf_object__for_each_program(prog, irq->skel->obj)
	{
		struct bpf_link *link = irq->n_links < MAX_LINKS ? bpf_program__attach(prog) : NULL;

		if (link)
			irq->links[irq->n_links++] = link;
		else if (is_needed(prog))
			missing = -errno;
		else
			nps_debug("no tracepoint for %s: %s", bpf_program__name(prog), strerror(errno));
	}
	if (missing) {
		nps_warn("interrupts are not recorded: cannot attach to their tracepoints: %s: the kernel "
			 "needs "
			 "CONFIG_TRACEPOINTS",
			 strerror(-missing));
		nps_irq_tracer__detach(irq);
	}
	return missing;
}

static void add_name(cJSON *interrupts, const char *number)
{
	char path[300], name[128];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/irq/%s/actions", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, sizeof(name) - 1);
		close(fd);
	}
	if (n <= 0)
		return;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (name[0])
		cJSON_AddStringToObject(interrupts, number, name);
}

void nps_irq_tracer__names(cJSON *interrupts)
{
	DIR *dir = opendir("/sys/kernel/irq");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			add_name(interrupts, entry->d_name);
	if (dir)
		closedir(dir);
}
