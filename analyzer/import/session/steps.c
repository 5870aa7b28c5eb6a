/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/steps.h"

#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

const char *nps_step_marker_label(const char *marker)
{
	static const char prefix[] = "label:";

	return marker && !strncmp(marker, prefix, sizeof(prefix) - 1) ? marker + sizeof(prefix) - 1 : NULL;
}

unsigned int nps_step_marker_arg(const char *marker)
{
	const char *at = marker ? strrchr(marker, '@') : NULL;

	if (!at || nps_step_marker_label(marker) || at[1] < '1' || at[1] > '4' || at[2])
		return 0;
	return at[1] - '0';
}

/* Appends the mark; a step's end is set by the mark after it. */
static int add_mark(struct nps_proc *proc, const struct nps_event *ev, unsigned int arg)
{
	struct nps_step *steps = proc->steps.data, *step;

	if (proc->steps.len)
		steps[proc->steps.len - 1].end = ev->start;
	step = nps_vec__push(&proc->steps);
	if (!step)
		return -errno;
	step->start = step->end = ev->start;
	step->number = proc->steps.len - 1;
	if (arg && !(ev->flags & NPS_F_SLOT_FAULT(arg - 1)))
		step->number = ev->call.slot[arg - 1];
	return 0;
}

static int sorted_marks(const struct nps_session *model, struct nps_vec *keys)
{
	size_t n;
	int err;

	for (size_t i = 0; i < model->events.len; i++) {
		const struct nps_event *ev = &NPS_AT(&model->events, struct nps_event, i);
		struct nps_key *key;

		if (ev->kind != NPS_EV_MARK || ev->probe != NPS_PROBE_STEP_MARKER)
			continue;
		key = nps_vec__push(keys);
		if (!key)
			return -errno;
		*key = (struct nps_key){ .key = ev->start, .row = i };
	}
	n = keys->len;
	err = nps_vec__resize(keys, 2 * n);
	if (!err && n)
		nps_sort_keys(keys->data, (struct nps_key *)keys->data + n, n);
	keys->len = err ? 0 : n;
	return err;
}

/* Where a mark was lost, the numbers skip: the interval before the gap holds more than one step. */
static void drop_gaps(struct nps_proc *proc)
{
	struct nps_step *steps = proc->steps.data;
	size_t kept = 0;

	for (size_t i = 0; i + 1 < proc->steps.len; i++)
		if (steps[i + 1].number == steps[i].number + 1)
			steps[kept++] = steps[i];
	proc->steps.len = kept;
}

static bool is_labelled(const struct nps_session *model, uint32_t text, const char *label)
{
	return text != NPS_NONE && !strcmp(nps_strings__get(&model->strings, text), label);
}

static int label_start_add(struct nps_vec *starts, uint64_t start)
{
	struct nps_key *key = nps_vec__push(starts);

	if (!key)
		return -errno;
	*key = (struct nps_key){ .key = start };
	return 0;
}

/* Steps of one process from labels of PyTorch, and marks and ranges of mstx, with the text LABEL. */
static int build_from_label(const struct nps_session *model, struct nps_proc *proc, const char *label,
			    struct nps_vec *starts)
{
	int err = 0;

	for (size_t i = 0; !err && i < proc->torch.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->torch, struct nps_event, i);

		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&proc->torch);
		if (ev->probe == NPS_PROBE_TORCH_LABEL &&
		    is_labelled(model, nps_session__text(model, ev->call.slot[0]), label))
			err = label_start_add(starts, ev->start);
	}
	for (size_t i = 0; !err && i < proc->marks.len; i++) {
		const struct nps_mstx_mark *mark = &NPS_AT(&proc->marks, struct nps_mstx_mark, i);

		if (is_labelled(model, mark->message, label))
			err = label_start_add(starts, mark->start);
	}
	err = err ? err : nps_vec__resize(starts, 2 * starts->len);
	if (err || !starts->len)
		return err;
	nps_sort_keys(starts->data, (struct nps_key *)starts->data + starts->len / 2, starts->len / 2);
	for (size_t i = 0; !err && i < starts->len / 2; i++) {
		struct nps_event mark = { .start = NPS_AT(starts, struct nps_key, i).key };

		err = add_mark(proc, &mark, 0);
	}
	if (proc->steps.len)
		proc->steps.len--; /* nothing ended the last one */
	return err;
}

static int build_from_labels(struct nps_session *model, const char *label)
{
	int err = 0;

	for (uint32_t p = 0; !err && p < model->nprocs; p++) {
		struct nps_vec starts;

		nps_vec__init(&starts, model->tmpfd, sizeof(struct nps_key));
		err = build_from_label(model, &model->procs[p], label, &starts);
		nps_vec__free(&starts);
	}
	return err;
}

int nps_steps__build(struct nps_session *model)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(model->json, "request");
	const char *marker = nps_json_str(request, "step_marker", NULL);
	unsigned int arg = nps_step_marker_arg(marker);
	struct nps_vec keys;
	int err;

	if (nps_step_marker_label(marker))
		return build_from_labels(model, nps_step_marker_label(marker));

	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	err = sorted_marks(model, &keys);
	for (size_t i = 0; !err && i < keys.len; i++) {
		const struct nps_event *ev =
			&NPS_AT(&model->events, struct nps_event, NPS_AT(&keys, struct nps_key, i).row);

		err = add_mark(&model->procs[nps_map__get(&model->proc_of, ev->pid)], ev, arg);
	}
	for (uint32_t p = 0; p < model->nprocs; p++) {
		if (arg && model->losses.ring[NPS_EV_MARK])
			drop_gaps(&model->procs[p]); /* and the last, which nothing ended */
		else if (model->procs[p].steps.len)
			model->procs[p].steps.len--; /* nothing ended the last one */
	}
	nps_vec__free(&keys);
	return err;
}

uint32_t nps_steps__at(const struct nps_proc *proc, uint64_t time)
{
	const struct nps_step *steps = proc->steps.data;
	size_t low = 0, high = proc->steps.len;

	while (low < high) { /* first step that starts after time */
		size_t mid = low + (high - low) / 2;

		if (steps[mid].start <= time)
			low = mid + 1;
		else
			high = mid;
	}
	return low && time < steps[low - 1].end ? low - 1 : NPS_NONE;
}
