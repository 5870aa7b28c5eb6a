/* SPDX-License-Identifier: BSD-2-Clause */
/* One walk over the host's records: calls become rows of `api`; launches get a call, a batch, a size. */
#include "import/cann/host_tree.h"

#include "base/memory.h"
#include "base/progress.h"
#include "import/common/memo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 32 /* calls within calls */
#define COMM_MASTER 0x10001 /* type of HCCL calls */
#define MODEL_LOAD 2 /* type of MODEL calls */

/* --- pools -------------------------------------------------------------------------------------------- */

static uint32_t new_info(struct nps_host_tree *tree)
{
	uint32_t info = tree->free_info;

	if (info != NPS_NONE) {
		tree->free_info = nps_info(tree, info)->next;
		return info;
	}
	if (!nps_cann_capture__push(tree->capture, &tree->infos))
		return NPS_NONE;
	return tree->infos.len - 1;
}

/* Appends an empty record to a list that begins at *FIRST. */
static struct nps_host_info *info_append(struct nps_host_tree *tree, uint32_t *first, uint32_t *last)
{
	uint32_t info = new_info(tree);

	if (info == NPS_NONE)
		return NULL;
	nps_info(tree, info)->next = NPS_NONE;
	if (*first == NPS_NONE)
		*first = info;
	else
		nps_info(tree, *last)->next = info;
	*last = info;
	return nps_info(tree, info);
}

static void free_list(struct nps_host_tree *tree, uint32_t first, uint32_t last)
{
	if (first == NPS_NONE)
		return;
	nps_info(tree, last)->next = tree->free_info;
	tree->free_info = first;
}

static struct nps_call_thread *tree_thread(struct nps_host_tree *tree, uint32_t tid)
{
	uint32_t i = nps_map__get(&tree->thread_of, tid);
	struct nps_call_thread *thread;

	if (i != NPS_NONE)
		return &NPS_AT(&tree->threads, struct nps_call_thread, i);
	thread = nps_cann_capture__push(tree->capture, &tree->threads);
	if (!thread)
		return NULL;
	*thread = (struct nps_call_thread){ .tid = tid, .top = NPS_NONE, .inside = NPS_NONE };
	if (nps_map__put(&tree->thread_of, tid, tree->threads.len - 1))
		tree->capture->err = -ENOMEM;
	return thread;
}

/* --- calls that end ------------------------------------------------------------------------------------- */

static void call_end(struct nps_host_tree *tree, uint32_t i)
{
	struct nps_open_call *call = nps_call(tree, i);

	if (call->level == NPS_LEVEL_NODE)
		nps_host_tree__end_node(tree, call);
	else if (call->level == NPS_LEVEL_COMM)
		nps_host_tree__end_comm(tree, call);
	free_list(tree, call->launches, call->last_launch);
	free_list(tree, call->infos, call->last_info);
	call->below = tree->free_call;
	tree->free_call = i;
}

/* Ends the calls of THREAD that are over before TIME, inner ones first. */
static void end_calls(struct nps_host_tree *tree, struct nps_call_thread *thread, uint64_t time)
{
	uint32_t *link = &thread->top, i;

	while ((i = *link) != NPS_NONE) {
		struct nps_open_call *call = nps_call(tree, i);

		if (call->end >= time) {
			link = &call->below;
			continue;
		}
		*link = call->below;
		thread->depth--;
		call_end(tree, i);
	}
}

/* The innermost call of LEVEL that is open at TIME: it began before, and TIME may be its end. */
static uint32_t call_innermost(const struct nps_host_tree *tree, const struct nps_call_thread *thread,
			       uint32_t level, uint64_t time)
{
	uint32_t i = thread->top;

	while (i != NPS_NONE) {
		const struct nps_open_call *call = nps_call(tree, i);

		if (call->begin < time && call->end >= time && (!level || call->level == level))
			break;
		i = call->below;
	}
	return i;
}

/* --- calls that begin ----------------------------------------------------------------------------------- */

/* What an ACL call is of, by the upper half of its type (prof-raw 2.0). */
static const char *const acl_modes[NPS_ACL_MODES] = { NULL,	    "ACL_OP",	"ACL_MODEL",   "ACL_RTS",
						      "ACL_OTHERS", "ACL_NN",	"ACL_ASCENDC", "HOST_HCCL",
						      NULL,	    "ACL_DVPP", "ACL_GRAPH",   "ACL_ATB" };

static uint32_t mode_of(const struct nps_host_tree *tree, uint32_t level, uint32_t type, uint32_t name)
{
	if (level == NPS_LEVEL_ACL)
		return type >> 16 < NPS_ACL_MODES ? tree->acl_modes[type >> 16] : NPS_NONE;
	return level == NPS_LEVEL_COMM ? name : NPS_NONE;
}

/* The row of `api`. A call that ended before the capture has none, but may have launched what runs in it. */
static void call_add_api(struct nps_host_tree *tree, const struct nps_host_event *event, uint32_t name,
			 uint32_t connection)
{
	struct nps_cann_capture *capture = tree->capture;
	struct nps_model *m = capture->model;
	const struct nps_cann_dir *host = &capture->host;
	uint32_t level = event->call.level, item = NPS_NONE;
	uint64_t start, end;

	if (!nps_cann_clock__unix(&host->host_clock, event->key.high, &start) ||
	    !nps_cann_clock__unix(&host->host_clock, event->call.end, &end)) {
		nps_model__lost(m, 1, "calls at impossible times");
		return;
	}
	if (host->has_begin && end < host->begin_us * 1000) {
		nps_model__lost(m, 1, "calls before the capture");
		return;
	}
	if (event->call.item && (level == NPS_LEVEL_NODE || level == NPS_LEVEL_COMM))
		item = nps_dictionary__name(&capture->names, event->call.item);
	capture->err = nps_api_table__add(
		&m->api,
		&(struct nps_api_row){ .start = start,
				       .end = end,
				       .type = level,
				       .gtid = (uint64_t)m->pid << 32 | event->call.tid,
				       .connection = connection,
				       .name = level == NPS_LEVEL_COMM && item != NPS_NONE ? item : name,
				       .item = item,
				       .mode = mode_of(tree, level, event->call.type, name) });
	nps_model__cover(m, start, end);
}

/* An operator's own call within one of the same level adds nothing. */
static bool is_redundant(const struct nps_host_tree *tree, const struct nps_call_thread *thread,
			 uint32_t level, uint64_t begin, uint32_t name)
{
	if (level == NPS_LEVEL_NODE || name == tree->record_event || name == tree->stream_wait)
		return false;
	for (uint32_t i = thread->top; i != NPS_NONE; i = nps_call(tree, i)->below)
		if (nps_call(tree, i)->level == level && nps_call(tree, i)->end > begin)
			return true;
	return false;
}

static uint32_t new_call(struct nps_host_tree *tree)
{
	uint32_t i = tree->free_call;

	if (i != NPS_NONE) {
		tree->free_call = nps_call(tree, i)->below;
		return i;
	}
	return nps_cann_capture__push(tree->capture, &tree->calls) ? tree->calls.len - 1 : NPS_NONE;
}

static void open_call(struct nps_host_tree *tree, struct nps_call_thread *thread,
		      const struct nps_host_event *event, uint32_t connection)
{
	const struct nps_open_call *parent = NULL;
	struct nps_open_call *call;
	uint32_t i = new_call(tree);

	if (i == NPS_NONE)
		return;
	for (uint32_t p = thread->top; !parent && p != NPS_NONE; p = nps_call(tree, p)->below)
		if (nps_call(tree, p)->end >= event->call.end && nps_call(tree, p)->end > event->key.high)
			parent = nps_call(tree, p);
	call = nps_call(tree, i);
	*call = (struct nps_open_call){ .begin = event->key.high,
					.end = event->call.end,
					.item = event->call.item,
					.below = thread->top,
					.tid = event->call.tid,
					.type = event->call.type,
					.level = event->call.level,
					.connection = connection,
					.model = parent ? parent->model : NPS_NO_ID,
					.loads = parent && parent->loads,
					.node = parent ? parent->node : NPS_NONE,
					.comm = parent ? parent->comm : NPS_NONE,
					.launches = NPS_NONE,
					.infos = NPS_NONE,
					.collective = NPS_NONE };
	if (call->level == NPS_LEVEL_MODEL) {
		call->model = NPS_MIN(call->item, (uint64_t)NPS_NO_ID);
		call->loads = call->type == MODEL_LOAD;
	} else if (call->level == NPS_LEVEL_NODE) {
		call->node = i;
	} else if (call->level == NPS_LEVEL_COMM) {
		call->comm = i;
	}
	thread->top = i;
	thread->depth++;
}

static bool is_level_shown(uint32_t level)
{
	return level == NPS_LEVEL_ACL || level == NPS_LEVEL_MODEL || level == NPS_LEVEL_NODE ||
	       level == NPS_LEVEL_COMM || level == NPS_LEVEL_RUNTIME;
}

static void call_begin(struct nps_host_tree *tree, struct nps_call_thread *thread,
		       const struct nps_host_event *event)
{
	uint32_t level = event->call.level, connection, name;

	if (!is_level_shown(level)) {
		tree->unshown++;
		return;
	}
	connection = tree->connections++;
	name = nps_dictionary__type(&tree->capture->names, level, event->call.type);
	call_add_api(tree, event, name, connection);
	/* A call without length contains no record. */
	if (level == NPS_LEVEL_RUNTIME || event->call.end == event->key.high)
		return;
	end_calls(tree, thread, event->key.high);
	if (is_redundant(tree, thread, level, event->key.high, name))
		return;
	if (thread->depth == DEPTH_MOST) {
		tree->deep++;
		return;
	}
	open_call(tree, thread, event, connection);
}

/* --- launches ------------------------------------------------------------------------------------------- */

static const struct nps_launch_type *launch_type(struct nps_host_tree *tree, uint32_t number)
{
	static const struct {
		const char *name, *core;
		uint8_t kind;
		bool kernel; /* by itself, too */
	} kinds[] = {
		{ "KERNEL_MIX_AIC", "MIX_AIC", NPS_LAUNCH_MIX, true },
		{ "KERNEL_MIX_AIV", "MIX_AIV", NPS_LAUNCH_MIX, true },
		{ "KERNEL_AICORE", "AI_CORE", NPS_LAUNCH_KERNEL, true },
		{ "KERNEL_AIVEC", "AI_VECTOR_CORE", NPS_LAUNCH_KERNEL, true },
		{ "KERNEL_AICPU", "AI_CPU", NPS_LAUNCH_KERNEL, true },
		{ "KERNEL", NULL, NPS_LAUNCH_KERNEL, true },
		{ "STARS_COMMON", NULL, NPS_LAUNCH_KERNEL, false },
		{ "FFTS_PLUS", NULL, NPS_LAUNCH_FFTS, false },
		{ "MEMCPY", NULL, NPS_LAUNCH_COPY, false },
		{ "EVENT_", NULL, NPS_LAUNCH_EVENT, false },
		{ "DAVID_EVENT_", NULL, NPS_LAUNCH_EVENT, false },
		{ "IPC_EVENT_", NULL, NPS_LAUNCH_EVENT, false },
		{ "REMOTE_EVENT_", NULL, NPS_LAUNCH_EVENT, false },
	};
	struct nps_cann_capture *capture = tree->capture;
	uint32_t i = nps_map__get(&tree->launch_type_of, number);
	struct nps_launch_type type = { .core = NPS_NONE }, *to;
	const char *name;

	if (i != NPS_NONE)
		return &NPS_AT(&tree->launch_types, struct nps_launch_type, i);
	type.text = nps_dictionary__type(&capture->names, NPS_LEVEL_RUNTIME, number);
	name = nps_model__text(capture->model, type.text);
	for (i = 0; i < NPS_ARRAY_SIZE(kinds); i++)
		if (!strncmp(name, kinds[i].name, strlen(kinds[i].name)))
			break;
	if (i < NPS_ARRAY_SIZE(kinds)) {
		type.kind = kinds[i].kind;
		type.kernel = kinds[i].kernel;
		if (kinds[i].core)
			type.core = nps_strings__addz(capture->model->strings, kinds[i].core);
	}
	to = nps_cann_capture__push(capture, &tree->launch_types);
	if (!to)
		return NULL;
	*to = type;
	if (nps_map__put(&tree->launch_type_of, number, tree->launch_types.len - 1))
		capture->err = -ENOMEM;
	return to;
}

static uint32_t captured_model(const struct nps_host_tree *tree, const struct nps_host_launch *track,
			       uint64_t time)
{
	const struct nps_captured *rows = tree->records.captured.data;
	size_t low = 0, high = tree->records.captured.len;

	while (low < high) { /* the first row behind (device, stream, time) */
		size_t middle = (low + high) / 2;
		const struct nps_captured *row = &rows[middle];

		if (row->device < track->device ||
		    (row->device == track->device &&
		     (row->stream < track->stream || (row->stream == track->stream && row->begin <= time))))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || rows[low - 1].device != track->device || rows[low - 1].stream != track->stream ||
	    rows[low - 1].end < time)
		return NPS_NO_ID;
	return rows[low - 1].model;
}

/* Forgets copies and sizes of an earlier call. */
static void thread_enter_launch(struct nps_call_thread *thread, uint32_t connection)
{
	if (thread->inside == connection)
		return;
	thread->inside = connection;
	thread->ncopies = 0;
	thread->sized = false;
}

static void copy_launched(struct nps_call_thread *thread, struct nps_launch *launch, uint32_t row)
{
	if (thread->sized) {
		launch->bytes = nps_to_i64(thread->bytes);
		launch->operation = thread->operation;
		thread->sized = false;
	} else if (thread->ncopies < NPS_ARRAY_SIZE(thread->copies)) {
		thread->copies[thread->ncopies++] = row;
	}
}

static void copy_sized(struct nps_host_tree *tree, struct nps_call_thread *thread,
		       const struct nps_host_event *event)
{
	uint32_t call = call_innermost(tree, thread, 0, event->key.high);
	struct nps_launch *launch;

	thread_enter_launch(thread, call == NPS_NONE ? NPS_NONE : nps_call(tree, call)->connection);
	if (!thread->ncopies) {
		thread->sized = true;
		thread->bytes = event->copy.bytes;
		thread->operation = event->copy.operation;
		return;
	}
	launch = &NPS_AT(&tree->capture->launches, struct nps_launch, thread->copies[0]);
	launch->bytes = nps_to_i64(event->copy.bytes);
	launch->operation = event->copy.operation;
	thread->ncopies--;
	memmove(thread->copies, thread->copies + 1, thread->ncopies * sizeof(*thread->copies));
}

/* A part of a graph is launched when the graph is loaded or captured, and runs when the graph is executed. */
static struct nps_launch *add_launch(struct nps_host_tree *tree, const struct nps_host_event *event,
				     const struct nps_launch_type *type, const struct nps_open_call *call)
{
	struct nps_cann_capture *capture = tree->capture;
	struct nps_launch *launch = nps_cann_capture__push(capture, &capture->launches);
	const struct nps_host_launch *track = &event->launch;
	bool graph = call && call->loads;

	if (!launch)
		return NULL;
	nps_cann_capture__step(&capture->launches, &tree->launch_steps);
	*launch = (struct nps_launch){
		.bytes = NPS_NULL,
		.stream = track->stream,
		.task = capture->v6 ? track->task : track->task & 0xffff,
		.type = type->text,
		.kernel = track->kernel ? nps_dictionary__name(&capture->names, track->kernel) : NPS_NONE,
		.connection = call ? call->connection : NPS_NO_ID,
		.model = call ? call->model : NPS_NO_ID,
		.device = track->device,
		.operation = 65535,
		.kind = type->kind
	};
	if (launch->model == NPS_NO_ID) {
		launch->model = captured_model(tree, track, event->key.high);
		graph = launch->model != NPS_NO_ID;
	}
	if (graph || !nps_cann_clock__unix(&capture->host.host_clock, event->key.high, &launch->submit))
		launch->submit = 0;
	if (capture->batches)
		capture->err = nps_batches__task(&tree->batches, track->device, track->stream, launch->task,
						 capture->launches.len - 1);
	return launch;
}

static void thread_add_launch(struct nps_host_tree *tree, struct nps_call_thread *thread,
			      const struct nps_host_event *event)
{
	uint32_t call = call_innermost(tree, thread, 0, event->key.high), owner = NPS_NONE, row;
	const struct nps_launch_type *type = launch_type(tree, event->launch.type);
	struct nps_launch *launch;
	struct nps_open_call *in;

	if (!type)
		return;
	launch = add_launch(tree, event, type, call == NPS_NONE ? NULL : nps_call(tree, call));
	if (!launch)
		return;
	row = tree->capture->launches.len - 1;
	if (type->kind == NPS_LAUNCH_COPY) {
		thread_enter_launch(thread, launch->connection);
		copy_launched(thread, launch, row);
	}
	if (call != NPS_NONE) {
		in = nps_call(tree, call);
		owner = in->comm != NPS_NONE ? in->comm : in->node;
	}
	if (owner == NPS_NONE) {
		nps_host_tree__bare_launch(tree, &event->launch, row, type);
	} else {
		struct nps_open_call *of = nps_call(tree, owner);
		uint32_t first = of->launches, last = of->last_launch;
		struct nps_host_info *info = info_append(tree, &first, &last);

		if (!info)
			return;
		info->kind = NPS_HOST_LAUNCH;
		info->launch.track = event->launch;
		info->launch.row = row;
		of->launches = first;
		of->last_launch = last;
	}
}

/* --- other records -------------------------------------------------------------------------------- */

static void attach(struct nps_host_tree *tree, struct nps_call_thread *thread,
		   const struct nps_host_event *event, enum nps_host_kind kind, uint32_t level)
{
	uint32_t call = call_innermost(tree, thread, level, event->key.high), first, last;
	struct nps_host_info *info;

	if (call == NPS_NONE) {
		tree->outside++;
		return;
	}
	first = nps_call(tree, call)->infos;
	last = nps_call(tree, call)->last_info;
	info = info_append(tree, &first, &last);
	if (!info)
		return;
	info->kind = kind;
	info->event = *event;
	nps_call(tree, call)->infos = first;
	nps_call(tree, call)->last_info = last;
}

/* The names of the operators that became FUSION, `a;b;c`; NPS_NONE without memory. */
static uint32_t originals_of(struct nps_cann_capture *capture, const struct nps_fusion *fusion)
{
	const struct nps_model *m = capture->model;
	uint32_t names[NPS_ARRAY_SIZE(fusion->originals)], text;
	size_t room = 1;
	char *all, *to;

	/* Texts move while one is added. */
	for (uint32_t i = 0; i < fusion->noriginals; i++)
		names[i] = nps_dictionary__name(&capture->names, fusion->originals[i]);
	for (uint32_t i = 0; i < fusion->noriginals; i++)
		room += strlen(nps_model__text(m, names[i])) + 1;
	all = to = malloc(room);
	if (!all)
		nps_memory__fail(-ENOMEM);
	if (!all)
		return NPS_NONE;
	*to = 0;
	for (uint32_t i = 0; i < fusion->noriginals; i++)
		to += sprintf(to, i ? ";%s" : "%s", nps_model__text(m, names[i]));
	text = nps_fw_intern(m->strings, all, to - all);
	free(all);
	return text;
}

static void fused(struct nps_host_tree *tree, const struct nps_call_thread *thread,
		  const struct nps_host_event *event)
{
	struct nps_cann_capture *capture = tree->capture;
	struct nps_model *m = capture->model;
	const struct nps_fusion *fusion =
		&NPS_AT(&tree->records.fusions, struct nps_fusion, event->fusion.row);
	uint32_t call = call_innermost(tree, thread, NPS_LEVEL_MODEL, event->key.high), originals;

	if (call == NPS_NONE) {
		tree->outside++;
		return;
	}
	originals = originals_of(capture, fusion);
	if (originals == NPS_NONE) {
		capture->err = -ENOMEM;
		return;
	}
	capture->err = nps_fusion_op_table__add(
		&m->fusion_op,
		&(struct nps_fusion_op_row){
			.model = nps_call(tree, call)->model,
			.model_name = nps_map__get(&tree->records.graphs, nps_call(tree, call)->model),
			.name = nps_dictionary__name(&capture->names, fusion->name),
			.originals = originals,
			.input = nps_to_i64(fusion->input),
			.output = nps_to_i64(fusion->output),
			.weight = nps_to_i64(fusion->weight),
			.workspace = nps_to_i64(fusion->workspace),
			.total = nps_to_i64(fusion->total) });
}

static uint32_t tid_of(const struct nps_host_event *event, enum nps_host_kind kind)
{
	/* The keys of all records but calls hold the thread. */
	return kind == NPS_HOST_CALL ? event->call.tid : event->key.low >> 16 & UINT32_MAX;
}

static void tree_add_event(struct nps_host_tree *tree, const struct nps_host_event *event)
{
	enum nps_host_kind kind = event->key.low >> 56;
	struct nps_call_thread *thread = tree_thread(tree, tid_of(event, kind));

	if (!thread)
		return;
	if (kind != NPS_HOST_CALL)
		end_calls(tree, thread, event->key.high);
	switch (kind) {
	case NPS_HOST_CALL:
		call_begin(tree, thread, event);
		break;
	case NPS_HOST_LAUNCH:
		thread_add_launch(tree, thread, event);
		break;
	case NPS_HOST_FLIP:
		if (tree->capture->batches)
			tree->capture->err = nps_batches__flip(&tree->batches, event->launch.device,
							       event->launch.stream, event->launch.task >> 16,
							       event->launch.task & 0xffff);
		break;
	case NPS_HOST_COPY:
		copy_sized(tree, thread, event);
		break;
	case NPS_HOST_FUSION:
		fused(tree, thread, event);
		break;
	case NPS_HOST_COMM_PART:
		attach(tree, thread, event, kind, NPS_LEVEL_COMM);
		break;
	case NPS_HOST_CONTEXTS:
		attach(tree, thread, event, kind,
		       event->contexts.level == NPS_LEVEL_COMM ? NPS_LEVEL_COMM : NPS_LEVEL_NODE);
		break;
	default:
		attach(tree, thread, event, kind, NPS_LEVEL_NODE);
	}
}

/*
 * A record repeats where its stream was reported twice. But tensors may be alike, and so may the sizes of
 * copies while a launch waits for its size.
 */
static bool is_repeated(struct nps_host_tree *tree, const struct nps_host_event *event,
			const struct nps_host_event *last)
{
	const struct nps_call_thread *thread;

	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unequal padding lets a repeated one pass */
	if (memcmp(event, last, sizeof(*event)) != 0)
		return false;
	switch ((enum nps_host_kind)(event->key.low >> 56)) {
	case NPS_HOST_TENSORS:
	case NPS_HOST_COMM_PART:
	case NPS_HOST_CONTEXTS:
		return false;
	case NPS_HOST_COPY:
		thread = tree_thread(tree, tid_of(event, NPS_HOST_COPY));
		return thread && !thread->ncopies;
	default:
		return true;
	}
}

static void tree_walk(struct nps_host_tree *tree)
{
	struct nps_cann_capture *capture = tree->capture;
	struct nps_host_event last = { .key.low = UINT64_MAX };
	const struct nps_host_event *event;
	uint64_t repeated = 0;
	uint32_t steps = 0;

	nps_progress__stage(capture->model->progress, "matching calls", tree->records.events.total,
			    "records");
	while (!capture->err && (event = nps_ext_sort__next(&tree->records.events))) {
		nps_progress__add(capture->model->progress, 1);
		nps_cann_capture__step(&tree->records.parts, &steps);
		if (is_repeated(tree, event, &last)) {
			repeated++;
			continue;
		}
		last = *event;
		tree_add_event(tree, event);
	}
	if (!capture->err)
		capture->err = tree->records.events.err;
	for (size_t i = 0; !capture->err && i < tree->threads.len; i++)
		end_calls(tree, &NPS_AT(&tree->threads, struct nps_call_thread, i), UINT64_MAX);
	nps_model__lost(capture->model, repeated, "records of the host that repeat another one");
	nps_model__lost(capture->model, tree->outside, "records outside the calls that they describe");
	nps_model__lost(capture->model, capture->tensors.dropped, "tensors of operators that have too many");
	nps_model__lost(capture->model, tree->unshown, "calls of levels that no table shows");
	nps_model__lost(capture->model, tree->deep, "calls nested deeper than %d", DEPTH_MOST);
}

static uint32_t *tree_batch(void *arg, uint32_t row)
{
	struct nps_cann_capture *capture = arg;

	return &NPS_AT(&capture->launches, struct nps_launch, row).batch;
}

int nps_cann_capture__host(struct nps_cann_capture *capture)
{
	struct nps_host_tree tree = { .capture = capture, .free_call = NPS_NONE, .free_info = NPS_NONE };
	int tmpfd = capture->model->tmpfd;

	tree.master_type = COMM_MASTER;
	memset(tree.core_names, 0xff, sizeof(tree.core_names));
	if (capture->host.fd < 0)
		return 0;
	nps_vec__init(&tree.threads, tmpfd, sizeof(struct nps_call_thread));
	nps_vec__init(&tree.calls, tmpfd, sizeof(struct nps_open_call));
	nps_vec__init(&tree.infos, tmpfd, sizeof(struct nps_host_info));
	nps_vec__init(&tree.launch_types, tmpfd, sizeof(struct nps_launch_type));
	nps_batches__init(&tree.batches, tmpfd, tree_batch, capture);
	tree.record_event = nps_strings__addz(capture->model->strings, "aclrtRecordEvent");
	tree.stream_wait = nps_strings__addz(capture->model->strings, "aclrtStreamWaitEvent");
	for (size_t i = 0; i < NPS_ACL_MODES; i++)
		tree.acl_modes[i] = acl_modes[i] ? nps_strings__addz(capture->model->strings, acl_modes[i])
						 : NPS_NONE;
	if (!nps_host_records__read(&tree.records, capture))
		tree_walk(&tree);
	nps_host_records__free(&tree.records);
	nps_host_tree__free_descs(&tree);
	nps_vec__free(&tree.threads);
	nps_vec__free(&tree.calls);
	nps_vec__free(&tree.infos);
	nps_vec__free(&tree.launch_types);
	nps_batches__free(&tree.batches);
	nps_map__free(&tree.thread_of);
	nps_map__free(&tree.launch_type_of);
	return capture->err;
}
