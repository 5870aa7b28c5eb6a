/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/findings.h"

#include "base/json_writer.h"
#include "findings/slow_lines.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int nps_find__add(struct nps_find *find, const char *id, double share, cJSON *numbers, cJSON *where,
		  const char *advice, const char *title, ...)
{
	cJSON *finding = cJSON_CreateObject();
	char text[512];
	va_list ap;

	if (!finding) {
		cJSON_Delete(numbers);
		cJSON_Delete(where);
		return -ENOMEM;
	}
	va_start(ap, title);
	vsnprintf(text, sizeof(text), title, ap);
	va_end(ap);
	text[nps_utf8_fit(text, sizeof(text))] = 0;
	cJSON_AddStringToObject(finding, "id", id);
	cJSON_AddStringToObject(finding, "title", text);
	nps_find__number(finding, "share", share);
	cJSON_AddStringToObject(finding, "advice", advice);
	cJSON_AddItemToObject(finding, "numbers", numbers);
	if (where)
		cJSON_AddItemToObject(finding, "where", where);
	cJSON_AddItemToArray(find->list, finding);
	return 0;
}

static double share_of(const cJSON *finding)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(finding, "share"));
}

/*
 * The line that makes steps slow is the cause of what other findings describe, and what can be changed. So it
 * stands first, unless it hardly matters.
 */
static bool is_cause(const cJSON *finding)
{
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(finding, "id"));

	return id && !strcmp(id, NPS_FIND_SLOW_STEPS) && share_of(finding) >= 0.01;
}

struct ranked {
	cJSON *finding;
	int ordinal;
};

/* Causes, then the heaviest first; of equal ones the earlier. */
static int by_share(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	double p = share_of(x->finding), q = share_of(y->finding);

	if (is_cause(x->finding) != is_cause(y->finding))
		return is_cause(y->finding) - is_cause(x->finding);
	return p != q ? (p < q ? 1 : -1) : x->ordinal - y->ordinal;
}

static int sort_findings(cJSON *document, cJSON *list)
{
	int n = cJSON_GetArraySize(list);
	struct ranked *ranked = calloc(n + 1, sizeof(*ranked));
	cJSON *sorted = cJSON_CreateArray();

	if (!ranked || !sorted) {
		free(ranked);
		cJSON_Delete(sorted);
		return -ENOMEM;
	}
	for (int i = 0; i < n; i++)
		ranked[i] = (struct ranked){ cJSON_DetachItemFromArray(list, 0), i };
	qsort(ranked, n, sizeof(*ranked), by_share);
	for (int i = 0; i < n; i++)
		cJSON_AddItemToArray(sorted, ranked[i].finding);
	free(ranked);
	cJSON_ReplaceItemInObjectCaseSensitive(document, "findings", sorted);
	return 0;
}

/* Devices that have tasks, collectives or steps. */
static unsigned int count_devices(const struct nps_model *m)
{
	const struct {
		const uint32_t *device;
		size_t rows;
	} tables[] = { { m->task.device, m->task.t.len },
		       { m->comm_op.device, m->comm_op.t.len },
		       { m->step_trace.device, m->step_trace.t.len } };
	struct nps_pace pace = { .model = m };
	uint64_t seen = 0;

	for (size_t t = 0; t < NPS_ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < tables[t].rows; i++, nps_pace__step(&pace))
			if (tables[t].device[i] < NPS_FIND_DEVICES)
				seen |= 1ULL << tables[t].device[i];
	return NPS_MAX(__builtin_popcountll(seen), 1);
}

cJSON *nps_findings__make(const struct nps_model *model)
{
	static const struct nps_find_question *const sections[] = {
		&nps_question_steps,  &nps_question_idle,	   &nps_question_operators,
		&nps_question_apis,   &nps_question_communication, &nps_question_memory,
		&nps_question_host,   &nps_question_torchair,	   &nps_question_host_time,
		&nps_question_python, &nps_question_allocations,
	};
	struct nps_find find = { .model = model, .document = cJSON_CreateObject() };
	int err;

	if (model->end > model->start)
		find.span_us = (model->end - model->start) / 1e3;
	find.devices = count_devices(model);
	cJSON_AddNumberToObject(find.document, "version", 1);
	nps_question_overview.find(&find);
	find.list = cJSON_AddArrayToObject(find.document, "findings");
	err = find.list ? nps_submits__init(&find.submits, model) : -ENOMEM;
	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(sections); i++) {
		err = sections[i]->find(&find);
		nps_model__cool(model);
	}
	nps_submits__free(&find.submits);
	err = err ? err : sort_findings(find.document, find.list);
	if (err) {
		cJSON_Delete(find.document);
		errno = -err;
		return NULL;
	}
	return find.document;
}

int nps_findings__write(const cJSON *document, int dirfd)
{
	char *text = cJSON_Print(document);
	struct nps_writer w;
	int err = text ? nps_writer__open(&w, dirfd, "npuscope_findings.json") : -ENOMEM;

	if (err)
		goto out;
	nps_writer__lit(&w, text);
	nps_writer__lit(&w, "\n");
	err = nps_writer__close(&w);
out:
	cJSON_free(text);
	return err;
}

static void findings_show(const struct nps_view *v)
{
	const cJSON *finding, *list = nps_view__at(v, "findings");
	size_t n = 0;

	fprintf(v->out, "\nfindings, worst first\n");
	if (!cJSON_GetArraySize(list))
		fprintf(v->out, "nothing stands out\n");
	cJSON_ArrayForEach(finding, list)
	{
		if (n++ == v->top)
			break;
		fprintf(v->out, "%2zu. %5.1f%%  ", n, 100 * nps_view__number(finding, "share"));
		nps_print_text(v->out, nps_view__text(finding, "title"));
		fprintf(v->out, "\n            ");
		nps_print_text(v->out, nps_view__text(finding, "advice"));
		putc('\n', v->out);
	}
}

const struct nps_find_question nps_question_findings = { .show = findings_show };

void nps_question__show(const struct nps_find_question *question, const struct nps_view *v)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(question->tables) && question->tables[i]; i++)
		nps_view__table(v, question->tables[i]);
	if (question->show)
		question->show(v);
}
