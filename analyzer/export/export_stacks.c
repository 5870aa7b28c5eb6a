/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks as folded lines and flame graphs: on the CPU a weight is a sample, off it time; a line has us.
 */
#include "export/export.h"
#include "export/flame_graph.h"

#include "stack.h"

#include <stdio.h>

struct stack_view {
	uint8_t kind;
	unsigned int requested; /* NPS_REQUESTED_* */
	const char *folded, *svg, *title;
	struct nps_flame_labels labels;
	uint64_t unit; /* of the lines */
};

static const struct stack_view views[] = {
	{ NPS_STACK_ONCPU,
	  NPS_REQUESTED_ONCPU,
	  "npuscope_oncpu.folded",
	  "flamegraph_oncpu.svg",
	  "on the CPU",
	  { NULL, "samples", 1 },
	  1 },
	{ NPS_STACK_OFFCPU,
	  NPS_REQUESTED_OFFCPU,
	  "npuscope_offcpu.folded",
	  "flamegraph_offcpu.svg",
	  "off the CPU, asleep",
	  { NULL, "ms", 1e-6 },
	  1000 },
};

static int stacks_collect(struct nps_flame *flame, const struct nps_model *m, uint8_t kind)
{
	struct nps_pace pace = { .model = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->stack.t.len; i++) {
		if (m->stack.kind[i] == kind)
			err = nps_flame__add(flame, nps_model__text(m, m->stack.comm[i]),
					     nps_model__text(m, m->stack.frames[i]),
					     kind == NPS_STACK_ONCPU ? 1 : m->stack.weight[i]);
		nps_pace__step(&pace);
	}
	return err ? err : nps_flame__finish(flame);
}

static int one_view(const struct nps_export *ex, int dirfd, const struct stack_view *view)
{
	const struct nps_model *m = ex->model;
	struct nps_flame_labels labels = view->labels;
	struct nps_flame flame;
	char title[256];
	int err = nps_flame__init(&flame, m->tmpfd);

	err = err ? err : stacks_collect(&flame, m, view->kind);
	if (err || (!nps_flame__node(&flame, 0)->total && !(m->requested & view->requested)))
		goto out;
	snprintf(title, sizeof(title), "%.64s (process %u) %s", nps_model__text(m, m->process), m->pid,
		 view->title);
	labels.title = title;
	if (nps_flame__node(&flame, 0)->total) /* scripts stumble over files without a line */
		err = nps_flame__write_folded(&flame, dirfd, view->folded, view->unit);
	err = err ? err : nps_flame__write_svg(&flame, dirfd, view->svg, &labels);
out:
	nps_flame__free(&flame);
	return err;
}

int nps_export__stacks(const struct nps_export *ex, int dirfd)
{
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(views); i++)
		if (ex->model->stack.t.len || ex->model->requested & views[i].requested)
			err = one_view(ex, dirfd, &views[i]);
	return err;
}
