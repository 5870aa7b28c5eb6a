/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/findings.h"

#include "base/json_writer.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void nps_find__number(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, round(value * 1000) / 1000);
	else
		cJSON_AddNullToObject(object, name);
}

void nps_find__time(cJSON *object, const char *name, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned int)(ns % 1000));
	cJSON_AddRawToObject(object, name, text);
}

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

struct ranked {
	cJSON *finding;
	int place;
};

/* The heaviest first; of equal ones the earlier. */
static int by_share(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	double p = share_of(x->finding), q = share_of(y->finding);

	return p != q ? (p < q ? 1 : -1) : x->place - y->place;
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

static uint64_t torch_ops(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	uint64_t n = 0;

	for (size_t i = 0; i < m->torch.t.len; i++) {
		nps_pace__step(&pace);
		n += m->torch.type[i] == NPS_API_TORCH_OP;
	}
	return n;
}

/* Those that were summed up, too; a page fault is none. */
static double system_calls(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	double n = 0;

	for (size_t i = 0; i < m->osrt.t.len; i++, nps_pace__step(&pace))
		n += m->osrt.shape[i] != NPS_OS_FAULT;
	for (size_t i = 0; i < m->osrt_sum.t.len; i++)
		n += (double)m->osrt_sum.count[i];
	return n;
}

/* The clock of the device in ROW of the model's table: how wrong it can be. Returns how many rows it has. */
static size_t device_clock(cJSON *list, const struct nps_model *m, size_t row)
{
	const struct nps_clock_table *t = &m->clock;
	cJSON *object = cJSON_CreateObject();
	size_t end = row;
	double length = 0, sum = 0;
	int64_t worst = 0;

	for (; end < t->t.len && t->device[end] == t->device[row]; end++) {
		double span = (double)(t->end[end] - t->start[end]);

		length += span;
		sum += span * (double)t->error[end];
		worst = NPS_MAX(worst, t->error[end]);
	}
	cJSON_AddItemToArray(list, object);
	cJSON_AddNumberToObject(object, "device", t->device[row]);
	cJSON_AddStringToObject(object, "source", nps_model__text(m, t->source[row]));
	cJSON_AddNumberToObject(object, "mean_error_us", length > 0 ? sum / length / 1e3 : 0);
	cJSON_AddNumberToObject(object, "worst_error_us", (double)worst / 1e3);
	return end - row;
}

static void capture(const struct nps_model *m, cJSON *document)
{
	cJSON *object = cJSON_AddObjectToObject(document, "capture"), *list;
	bool any = m->end > m->start;

	cJSON_AddNumberToObject(object, "pid", m->pid);
	if (m->has_rank)
		cJSON_AddNumberToObject(object, "rank", m->rank);
	nps_find__time(object, "start_us", any ? m->start : 0);
	nps_find__time(object, "end_us", any ? m->end : 0);
	cJSON_AddNumberToObject(object, "device_tasks", (double)m->task.t.len);
	cJSON_AddNumberToObject(object, "tasks_with_host_bounds_only", (double)m->bounds.t.len);
	cJSON_AddNumberToObject(object, "kernels", (double)m->compute.t.len);
	cJSON_AddNumberToObject(object, "collectives", (double)m->comm_op.t.len);
	cJSON_AddNumberToObject(object, "cann_calls", (double)m->api.t.len);
	cJSON_AddNumberToObject(object, "torch_operators", (double)torch_ops(m));
	cJSON_AddNumberToObject(object, "system_calls", system_calls(m));
	cJSON_AddNumberToObject(object, "steps", (double)m->step.t.len);
	if (m->stacks) {
		cJSON_AddNumberToObject(object, "stacks", (double)m->stacks);
		cJSON_AddNumberToObject(object, "whole_stacks", (double)m->whole_stacks);
	}
	if (m->clock.t.len) {
		list = cJSON_AddArrayToObject(object, "device_clocks");
		for (size_t i = 0; i < m->clock.t.len; i += device_clock(list, m, i))
			;
	}
	list = cJSON_AddArrayToObject(object, "lost");
	for (size_t i = 0; i < m->losses.len; i++) {
		const struct nps_lost *lost = &NPS_AT(&m->losses, struct nps_lost, i);
		cJSON *row = cJSON_CreateObject();

		cJSON_AddItemToArray(list, row);
		cJSON_AddStringToObject(row, "what", lost->what);
		cJSON_AddNumberToObject(row, "count", (double)lost->count);
	}
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
	static int (*const sections[])(struct nps_find *) = {
		nps_find__steps, nps_find__idle,	  nps_find__operators,
		nps_find__apis,	 nps_find__communication, nps_find__memory,
		nps_find__host,	 nps_find__torchair,	  nps_find__host_time,
	};
	struct nps_find find = { .model = model, .document = cJSON_CreateObject() };
	int err = 0;

	if (model->end > model->start)
		find.span_us = (model->end - model->start) / 1e3;
	find.devices = count_devices(model);
	cJSON_AddNumberToObject(find.document, "version", 1);
	capture(model, find.document);
	find.list = cJSON_AddArrayToObject(find.document, "findings");
	if (!find.list)
		err = -ENOMEM;
	if (!err)
		err = nps_submits__init(&find.submits, model);
	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(sections); i++) {
		err = sections[i](&find);
		nps_model__cool(model);
	}
	nps_submits__free(&find.submits);
	if (!err)
		err = sort_findings(find.document, find.list);
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

	if (!err) {
		nps_writer__lit(&w, text);
		nps_writer__lit(&w, "\n");
		err = nps_writer__close(&w);
	}
	cJSON_free(text);
	return err;
}
