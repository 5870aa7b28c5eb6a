/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * npuscope_device_by_line.folded: the device time of kernels by the Python stack that launched them, a line
 * for each stack and kernel: frames, outermost first, and the kernel, joined by `;`, a blank, ns.
 */
#include "export/export.h"

#include "base/json_writer.h"
#include "derive/group_by.h"
#include "model/python_launch.h"

#include <errno.h>

#define FILE_NAME "npuscope_device_by_line.folded"

static int python_collect(const struct nps_model *m, struct nps_group_by *stacks)
{
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < m->compute.t.len; i++, nps_pace__step(&pace)) {
		uint32_t task = m->compute.task[i], row;
		struct nps_group *group;

		if (m->task.source[task] == NPS_TIME_HOST_BOUNDS)
			continue; /* nobody measured it */
		row = nps_python_launch__find(m, m->task.connection[task]);
		group = nps_group_by__get(stacks, row == NPS_NONE ? NPS_NONE : m->py_launch.frames[row],
					  m->compute.name[i]);
		if (!group)
			return -errno;
		nps_group__add(group, nps_span(m->task.start[task], m->task.end[task]), i);
	}
	return 0;
}

static void put_name(struct nps_writer *w, const char *text)
{
	for (; *text; text++)
		nps_writer__bytes(w, *text == ';' ? ":" : (unsigned char)*text < ' ' ? " " : text, 1);
}

static int python_write(const struct nps_model *m, int dirfd, const struct nps_group_by *stacks)
{
	struct nps_writer w;
	int err = nps_writer__open(&w, dirfd, FILE_NAME);

	if (err)
		return err;
	for (size_t i = 0; i < nps_group_by__len(stacks); i++) {
		const struct nps_group *g = nps_group_by__at(stacks, i);

		if (g->key == NPS_NONE)
			nps_writer__lit(&w, "[no Python stack]");
		else
			nps_writer__lit(&w, nps_model__text(m, (uint32_t)g->key));
		nps_writer__lit(&w, ";");
		put_name(&w, nps_model__text(m, (uint32_t)g->sub));
		nps_writer__lit(&w, " ");
		nps_writer__u64(&w, g->total);
		nps_writer__lit(&w, "\n");
	}
	return nps_writer__close(&w);
}

int nps_export__python(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct nps_group_by stacks;
	int err;

	if (!m->py_launch.t.len)
		return 0;
	nps_group_by__init(&stacks, m, sizeof(struct nps_group));
	err = python_collect(m, &stacks);
	if (err)
		goto out;
	nps_group_by__sort(&stacks, nps_group__by_total);
	if (nps_group_by__len(&stacks))
		err = python_write(m, dirfd, &stacks);
out:
	nps_group_by__free(&stacks);
	return err;
}
