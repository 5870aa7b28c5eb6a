/* SPDX-License-Identifier: BSD-2-Clause */
/* Device time by the line of Python that launched the kernels. */
#include "findings/findings.h"

#include "derive/group_by.h"
#include "findings/slow_lines.h"
#include "model/python_launch.h"

#include <cjson/cJSON.h>
#include <errno.h>

#define ROWS 200

struct python_lines {
	const struct nps_model *model;
	struct nps_group_by lines;
	uint64_t total; /* ns of all kernels */
};

static int lines_collect(struct python_lines *p)
{
	const struct nps_model *m = p->model;
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < m->compute.t.len; i++, nps_pace__step(&pace)) {
		uint32_t task = m->compute.task[i], row;
		uint64_t ns = nps_span(m->task.start[task], m->task.end[task]);
		struct nps_group *line;

		if (m->task.source[task] == NPS_TIME_HOST_BOUNDS)
			continue; /* nobody measured it */
		row = nps_python_launch__find(m, m->task.connection[task]);
		line = nps_group_by__get(&p->lines, row == NPS_NONE ? NPS_NONE : m->py_launch.line[row], 0);
		if (!line)
			return -errno;
		nps_group__add(line, ns, i);
		p->total = nps_add_sat(p->total, ns);
	}
	return 0;
}

static const char *line_name(const struct nps_model *m, uint64_t text)
{
	return text == NPS_NONE ? "[no Python stack]" : nps_model__text(m, (uint32_t)text);
}

#define LINE_COLUMNS(C)                                                                                      \
	C("line", TEXT, "line", line_name(m->model, r->key))                                                 \
	C("kernels", COUNT, "kernels", r->count)                                                             \
	C("total_us", NS, "total", r->total)                                                                 \
	C("share", SHARE, "share", m->total ? (double)r->total / (double)m->total : 0)                       \
	C("mean_us", US, "mean", (double)r->total / 1e3 / (double)r->count)                                  \
	C("max_us", NS, "max", r->most)                                                                      \
	C("slowest", TEXT, "slowest kernel", nps_model__text(m->model, m->model->compute.name[r->longest]))

NPS_FIND_TABLE(table, "python.rows", "device time by line of Python, us", struct python_lines,
	       struct nps_group, LINE_COLUMNS)

static void lines_report(struct python_lines *p, cJSON *document)
{
	cJSON *section = cJSON_AddObjectToObject(document, "python");

	nps_group_by__sort(&p->lines, nps_group__by_total);
	cJSON_AddNumberToObject(section, "lines", (double)nps_group_by__len(&p->lines));
	nps_find__number(section, "kernels_us", (double)p->total / 1e3);
	nps_find__rows(document, &table, p, p->lines.rows.data, NPS_MIN(p->lines.rows.len, (size_t)ROWS),
		       p->lines.rows.elem);
}

static int python_find(struct nps_find *find)
{
	struct python_lines p = { .model = find->model };
	int err = 0;

	if (find->model->py_launch.t.len || find->model->py_sample.t.len)
		err = nps_slow_lines__find(find);
	if (err || !find->model->py_launch.t.len)
		return err;
	nps_group_by__init(&p.lines, find->model, sizeof(struct nps_group));
	err = lines_collect(&p);
	if (!err && nps_group_by__len(&p.lines))
		lines_report(&p, find->document);
	nps_group_by__free(&p.lines);
	return err;
}

const struct nps_find_question nps_question_python = { .find = python_find, .tables = { &table } };
