/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What operators' calls meant, once they ended: which kernels their launches run, as one task or as
 * contexts of a graph, and which launches are parts of a collective (prof-raw 4.1, 4.4).
 */
#include "import/cann/host_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GE_FFTS_PLUS 6
#define GE_HCCL 9
#define FEW_DESCS 16 /* up to which looking at all is the quickest */
#define CONTEXTS_MOST 4096 /* of one collective */
#define TASKS_MOST (1U << 14) /* of one call with several launches: each may run all that is described */
#define MAX_LOOKUPS (1U << 24) /* at the records of a call's parts */

/* What a node's records state about one operator in it. */
struct nps_desc {
	uint64_t name; /* hash */
	uint64_t type, attributes;
	uint32_t core, blocks; /* as recorded */
	uint32_t tensors;
	uint32_t contexts, last_contexts; /* infos with the first list of them, NPS_NONE, and the last */
	uint64_t ncontexts;
	bool described; /* by node_basic_info */
	bool has_attributes;
	uint8_t hf32, state;
};

static const char *const cores[] = { "AI_CORE", "AI_CPU",  "AI_VECTOR_CORE", "WRITE_BACK",
				     "MIX_AIC", "MIX_AIV", "FFTS_PLUS",	     "DSA_SQE",
				     "DVPP",	"HCCL",	   "FUSION",	     "INVALID" };

static uint32_t core_name(struct nps_host_tree *tree, uint32_t core)
{
	struct nps_strings *strings = tree->capture->model->strings;

	if (core >= NPS_ARRAY_SIZE(cores))
		return nps_strings__addf(strings, "%u", core);
	if (tree->core_names[core] == NPS_NONE)
		tree->core_names[core] = nps_strings__addz(strings, cores[core]);
	return tree->core_names[core];
}

void nps_host_tree__free_descs(struct nps_host_tree *tree)
{
	free(tree->descs);
	nps_map__free(&tree->desc_of);
	tree->descs = NULL;
	tree->ndescs = tree->desc_room = 0;
}

/* --- rows ----------------------------------------------------------------------------------------- */

static void node_add_task(struct nps_host_tree *tree, struct nps_host_task row)
{
	struct nps_host_task *task = nps_cann_capture__push(tree->capture, &tree->capture->host_tasks);

	if (!task)
		return;
	*task = row;
	nps_cann_capture__step(&tree->capture->host_tasks, &tree->task_steps);
}

/* The number of the row, NPS_NONE without memory. */
static uint32_t node_add_kernel(struct nps_host_tree *tree, const struct nps_kernel_info *row)
{
	struct nps_kernel_info *kernel = nps_cann_capture__push(tree->capture, &tree->capture->kernels);

	if (!kernel)
		return NPS_NONE;
	*kernel = *row;
	nps_cann_capture__step(&tree->capture->kernels, &tree->kernel_steps);
	return tree->capture->kernels.len - 1;
}

static struct nps_kernel_info unknown_kernel(uint32_t name)
{
	return (struct nps_kernel_info){ .name = name,
					 .core = NPS_NONE,
					 .type = NPS_NONE,
					 .attributes = NPS_NONE,
					 .tensors = NPS_NONE,
					 .grid = NPS_NONE,
					 .block_dim = NPS_NONE,
					 .state = NPS_STATE_UNKNOWN,
					 .hf32 = 2 };
}

static struct nps_launch *launch_of(const struct nps_host_tree *tree, uint32_t row)
{
	return &NPS_AT(&tree->capture->launches, struct nps_launch, row);
}

static bool runs_kernel(uint8_t kind)
{
	return kind == NPS_LAUNCH_KERNEL || kind == NPS_LAUNCH_MIX || kind == NPS_LAUNCH_FFTS;
}

void nps_host_tree__bare_launch(struct nps_host_tree *tree, const struct nps_host_launch *track, uint32_t row,
				const struct nps_launch_type *type)
{
	struct nps_host_task task = { row, NPS_NO_CONTEXT, NPS_NONE, NPS_NONE };

	if (type->kernel) {
		struct nps_kernel_info kernel = unknown_kernel(
			track->kernel ? nps_dictionary__name(&tree->capture->names, track->kernel)
				      : type->text);

		kernel.core = type->core;
		kernel.blocks = track->blocks;
		kernel.mix_blocks = track->blocks * track->ratio;
		task.kernel = node_add_kernel(tree, &kernel);
		if (type->kind == NPS_LAUNCH_MIX)
			task.context = 0;
	}
	node_add_task(tree, task);
}

/* --- descriptions of a node's operators ----------------------------------------------------------- */

static void clear_descs(struct nps_host_tree *tree)
{
	if (tree->desc_of.size > 4096)
		nps_map__free(&tree->desc_of);
	else
		nps_map__clear(&tree->desc_of);
	tree->ndescs = 0;
}

static uint32_t find_desc(const struct nps_host_tree *tree, uint64_t name)
{
	if (tree->ndescs > FEW_DESCS)
		return nps_map__get(&tree->desc_of, name);
	for (size_t i = 0; i < tree->ndescs; i++)
		if (tree->descs[i].name == name)
			return i;
	return NPS_NONE;
}

/* The description of operator NAME; NULL without memory. */
static struct nps_desc *desc_of(struct nps_host_tree *tree, uint64_t name)
{
	uint32_t found = find_desc(tree, name);

	if (found != NPS_NONE)
		return &tree->descs[found];
	if (tree->ndescs == tree->desc_room) {
		size_t room = tree->desc_room ? tree->desc_room * 2 : FEW_DESCS;
		struct nps_desc *descs = realloc(tree->descs, room * sizeof(*descs));

		if (!descs) {
			tree->capture->err = -ENOMEM;
			return NULL;
		}
		tree->descs = descs;
		tree->desc_room = room;
	}
	/* The map is needed from the moment when there are too many. */
	for (size_t i = tree->ndescs == FEW_DESCS ? 0 : tree->ndescs;
	     tree->ndescs >= FEW_DESCS && i <= tree->ndescs; i++)
		if (nps_map__put(&tree->desc_of, i == tree->ndescs ? name : tree->descs[i].name, i))
			tree->capture->err = -ENOMEM;
	tree->descs[tree->ndescs] =
		(struct nps_desc){ .name = name, .tensors = NPS_NONE, .contexts = NPS_NONE };
	return &tree->descs[tree->ndescs++];
}

static void node_describe(struct nps_host_tree *tree, uint32_t i)
{
	struct nps_host_info *info = nps_info(tree, i);
	const struct nps_host_event *event = &info->event;
	struct nps_desc *desc;

	switch ((enum nps_host_kind)info->kind) {
	case NPS_HOST_NODE:
		desc = desc_of(tree, event->node.name);
		if (!desc)
			return;
		desc->described = true;
		desc->type = event->node.type;
		desc->core = event->node.core;
		desc->blocks = event->node.blocks;
		desc->hf32 = event->node.hf32;
		desc->state = event->node.state;
		break;
	case NPS_HOST_TENSORS:
		desc = desc_of(tree, event->tensors.name);
		if (desc)
			desc->tensors = desc->tensors == NPS_NONE
						? event->tensors.list
						: nps_tensors__join(&tree->capture->tensors, desc->tensors,
								    event->tensors.list);
		break;
	case NPS_HOST_ATTRIBUTES:
		desc = desc_of(tree, event->attributes.name);
		if (!desc)
			return;
		desc->has_attributes = true;
		desc->attributes = event->attributes.attributes;
		break;
	case NPS_HOST_CONTEXTS:
		desc = desc_of(tree, event->contexts.name);
		if (!desc)
			return;
		info->event.contexts.more = NPS_NONE;
		if (desc->contexts == NPS_NONE)
			desc->contexts = i;
		else
			nps_info(tree, desc->last_contexts)->event.contexts.more = i;
		desc->last_contexts = i;
		desc->ncontexts += event->contexts.count;
		break;
	default:
		break;
	}
}

static void describe_all(struct nps_host_tree *tree, const struct nps_open_call *call)
{
	clear_descs(tree);
	for (uint32_t i = call->infos; i != NPS_NONE && !tree->capture->err; i = nps_info(tree, i)->next)
		node_describe(tree, i);
}

/* --- kernels of a node ---------------------------------------------------------------------------- */

static struct nps_kernel_info kernel_of(struct nps_host_tree *tree, const struct nps_desc *desc,
					const struct nps_host_launch *track, bool alone)
{
	struct nps_dictionary *names = &tree->capture->names;
	uint32_t ratio = desc->blocks >> 16;
	struct nps_kernel_info kernel = {
		.name = nps_dictionary__name(names, desc->name),
		.core = core_name(tree, desc->core),
		.type = nps_dictionary__name(names, desc->type),
		.attributes = desc->has_attributes ? nps_dictionary__name(names, desc->attributes) : NPS_NONE,
		.tensors = desc->tensors,
		.blocks = desc->blocks & 0xffff,
		.grid = NPS_NONE,
		.block_dim = NPS_NONE,
		.state = desc->state,
		.hf32 = desc->hf32
	};

	/* The runtime knows best how many blocks it launched; for a graph it reports those of the whole. */
	if (alone && track->blocks) {
		kernel.blocks = track->blocks;
		ratio = track->ratio ? track->ratio : ratio;
	}
	kernel.mix_blocks = kernel.blocks * ratio;
	return kernel;
}

/* A task for each context of DESC, or one without. */
static void add_contexts(struct nps_host_tree *tree, const struct nps_desc *desc, uint32_t launch,
			 uint32_t kernel)
{
	const struct nps_host_event *event;

	if (desc->contexts == NPS_NONE) {
		node_add_task(tree, (struct nps_host_task){ launch, NPS_NO_CONTEXT, kernel, NPS_NONE });
		return;
	}
	for (uint32_t i = desc->contexts; i != NPS_NONE; i = event->contexts.more) {
		event = &nps_info(tree, i)->event;
		for (uint32_t c = 0; c < event->contexts.count; c++)
			node_add_task(tree, (struct nps_host_task){ launch,
								    NPS_AT(&tree->records.contexts, uint32_t,
									   event->contexts.first + c),
								    kernel, NPS_NONE });
	}
}

/* At profiling level 0 there are no descriptions, only the call's own name. */
static void add_undescribed(struct nps_host_tree *tree, const struct nps_open_call *call,
			    const struct nps_host_launch *track, uint32_t launch)
{
	struct nps_kernel_info kernel =
		unknown_kernel(call->item      ? nps_dictionary__name(&tree->capture->names, call->item)
			       : track->kernel ? nps_dictionary__name(&tree->capture->names, track->kernel)
					       : launch_of(tree, launch)->type);
	bool contexts = false;
	uint32_t row;

	kernel.blocks = track->blocks;
	kernel.mix_blocks = track->blocks * track->ratio;
	row = node_add_kernel(tree, &kernel);
	for (size_t i = 0; i < tree->ndescs; i++) {
		if (tree->descs[i].contexts == NPS_NONE)
			continue;
		add_contexts(tree, &tree->descs[i], launch, row);
		contexts = true;
	}
	if (!contexts)
		node_add_task(tree, (struct nps_host_task){ launch, NPS_NO_CONTEXT, row, NPS_NONE });
}

static void add_kernels(struct nps_host_tree *tree, const struct nps_open_call *call,
			const struct nps_host_info *info)
{
	const struct nps_host_launch *track = &info->launch.track;
	uint32_t launch = info->launch.row, described = 0, graphs = 0;

	for (size_t i = 0; i < tree->ndescs; i++) {
		described += tree->descs[i].described && tree->descs[i].core != GE_HCCL;
		graphs += tree->descs[i].described && tree->descs[i].core == GE_FFTS_PLUS;
	}
	if (!described) {
		add_undescribed(tree, call, track, launch);
		return;
	}
	for (size_t i = 0; i < tree->ndescs; i++) {
		const struct nps_desc *desc = &tree->descs[i];
		struct nps_kernel_info kernel;

		if (!desc->described || desc->core == GE_HCCL)
			continue;
		/* The graph itself is none of its operators. */
		if (desc->core == GE_FFTS_PLUS && described > graphs)
			continue;
		kernel = kernel_of(tree, desc, track, described == 1);
		add_contexts(tree, desc, launch, node_add_kernel(tree, &kernel));
	}
}

/* Some calls of operators launch kernels that are not theirs. */
static bool holds_kernels(const struct nps_host_tree *tree, const struct nps_open_call *call)
{
	const char *name;

	if (!call->item)
		return true;
	name = nps_model__text(tree->capture->model, nps_dictionary__name(&tree->capture->names, call->item));
	return strncmp(name, "Lccl", 4) && strcmp(name, "step_info");
}

static void end_collective(struct nps_host_tree *tree, const struct nps_open_call *call)
{
	struct nps_collective *op = nps_capture__collective(tree->capture, call->collective);

	for (uint32_t i = call->infos; i != NPS_NONE; i = nps_info(tree, i)->next) {
		const struct nps_host_info *info = nps_info(tree, i);
		const struct nps_host_event *event = &info->event;

		if (info->kind == NPS_HOST_NODE && !call->item) {
			op->type = nps_dictionary__name(&tree->capture->names, event->node.name);
		} else if (info->kind == NPS_HOST_COMM_OP) {
			op->hash = event->comm_op.group;
			op->algorithm = nps_dictionary__name(&tree->capture->names, event->comm_op.algorithm);
			op->count = event->comm_op.count;
			op->dtype = event->comm_op.dtype;
			op->relay = event->comm_op.flags & 1;
			op->retry = event->comm_op.flags >> 1 & 1;
		}
	}
}

/* Drops the descriptions if CALL's launches would run them too many times: there is no such operator. */
static void bound_tasks(struct nps_host_tree *tree, const struct nps_open_call *call)
{
	uint64_t launches = 0, tasks = 0;

	for (uint32_t i = call->launches; i != NPS_NONE; i = nps_info(tree, i)->next)
		launches += runs_kernel(launch_of(tree, nps_info(tree, i)->launch.row)->kind);
	for (size_t i = 0; i < tree->ndescs; i++)
		tasks += 1 + tree->descs[i].ncontexts;
	if (launches < 2 || tasks < 2 || launches * tasks <= TASKS_MOST)
		return;
	nps_model__lost(tree->capture->model, tree->ndescs,
			"operators of calls with impossibly many launches");
	clear_descs(tree);
}

void nps_host_tree__end_node(struct nps_host_tree *tree, const struct nps_open_call *call)
{
	bool kernels = call->launches != NPS_NONE && holds_kernels(tree, call);

	if (call->collective != NPS_NONE)
		end_collective(tree, call);
	if (call->launches == NPS_NONE)
		return;
	describe_all(tree, call);
	bound_tasks(tree, call);
	for (uint32_t i = call->launches; i != NPS_NONE && !tree->capture->err; i = nps_info(tree, i)->next) {
		const struct nps_host_info *info = nps_info(tree, i);
		struct nps_launch *launch = launch_of(tree, info->launch.row);

		if (kernels && runs_kernel(launch->kind)) {
			launch->connection = call->connection;
			add_kernels(tree, call, info);
		} else {
			node_add_task(tree, (struct nps_host_task){ info->launch.row, NPS_NO_CONTEXT,
								    NPS_NONE, NPS_NONE });
		}
	}
}

/* --- collectives ---------------------------------------------------------------------------------- */

/* The collective that the NODE call around CALL is, NPS_NONE if there is no such call or no memory. */
static uint32_t collective_of(struct nps_host_tree *tree, const struct nps_open_call *call, uint32_t device)
{
	struct nps_open_call *node = call->node == NPS_NONE ? NULL : nps_call(tree, call->node);
	struct nps_host_collective *op;

	if (!node)
		return NPS_NONE;
	if (node->collective != NPS_NONE)
		return node->collective;
	op = nps_cann_capture__push(tree->capture, &tree->capture->collectives);
	if (!op)
		return NPS_NONE;
	node->collective = tree->capture->collectives.len - 1;
	op->latest = node->collective;
	op->run = (struct nps_collective){
		.begin = node->begin,
		.count = UINT64_MAX,
		.type = node->item ? nps_dictionary__name(&tree->capture->names, node->item) : NPS_NONE,
		.group = NPS_NONE,
		.algorithm = NPS_NONE,
		.name = NPS_NONE,
		.connection = node->connection,
		.model = node->model,
		.device = device,
		.dtype = NPS_HCCL_NOT_KNOWN,
		.step = NPS_NONE,
		.relay = 2,
		.retry = 2
	};
	return node->collective;
}

/* The records of a call's parts. */
struct reported_parts {
	uint32_t from,
		left; /* info to look from, as parts come in order, and how many may still be looked at */
	bool graph; /* with contexts FIRST to LAST */
	uint32_t first, last;
};

/* The part recorded for CONTEXT; the search begins where the one before ended. NULL: none. */
static const struct nps_part_info *node_find_part(const struct nps_host_tree *tree,
						  const struct nps_open_call *call,
						  struct reported_parts *reported, uint32_t context)
{
	uint32_t start = reported->from, i = start;

	do {
		const struct nps_host_info *info;

		if (i == NPS_NONE) {
			i = call->infos;
			if (i == start || i == NPS_NONE)
				break;
		}
		if (!reported->left)
			break;
		reported->left--;
		info = nps_info(tree, i);
		if (info->kind == NPS_HOST_COMM_PART) {
			const struct nps_part_info *part =
				&NPS_AT(&tree->records.parts, struct nps_part_info, info->event.part.row);

			if (part->context == context) {
				reported->from = info->next;
				return part;
			}
		}
		i = info->next;
	} while (i != start);
	return NULL;
}

static void node_add_part(struct nps_host_tree *tree, const struct nps_open_call *call,
			  const struct nps_part_info *reported, uint32_t op_row, uint32_t launch,
			  uint32_t context)
{
	struct nps_cann_capture *capture = tree->capture;
	struct nps_collective *op = nps_capture__collective(capture, op_row);
	struct nps_part_info *part = nps_cann_capture__push(capture, &capture->parts);

	if (!part)
		return;
	nps_cann_capture__step(&capture->parts, &tree->part_steps);
	*part = reported ? *reported : (struct nps_part_info){ .name = NPS_NONE, .bytes = NPS_NULL };
	part->op = op_row;
	part->context = context;
	part->master = call->type == tree->master_type;
	op->tasks++;
	if (reported) {
		op->hash = op->hash ? op->hash : reported->group;
		op->ranks = op->ranks ? op->ranks : reported->ranks;
	}
	launch_of(tree, launch)->connection = op->connection;
	node_add_task(tree, (struct nps_host_task){ launch, context, NPS_NONE, capture->parts.len - 1 });
}

/* First and last context of a graph. */
static void read_contexts(const struct nps_host_tree *tree, const struct nps_open_call *call,
			  struct reported_parts *reported)
{
	for (uint32_t i = call->infos; i != NPS_NONE; i = nps_info(tree, i)->next) {
		const struct nps_host_event *event = &nps_info(tree, i)->event;
		const uint32_t *ids = tree->records.contexts.data;

		if (nps_info(tree, i)->kind != NPS_HOST_CONTEXTS)
			continue;
		reported->first = ids[event->contexts.first];
		reported->last = ids[event->contexts.first + 1];
		reported->graph = reported->first <= reported->last;
		return;
	}
}

static void node_add_parts(struct nps_host_tree *tree, const struct nps_open_call *call, uint32_t launch,
			   struct reported_parts *reported)
{
	uint32_t op = collective_of(tree, call, launch_of(tree, launch)->device);

	if (op == NPS_NONE) {
		node_add_task(tree, (struct nps_host_task){ launch, NPS_NO_CONTEXT, NPS_NONE, NPS_NONE });
		return;
	}
	if (launch_of(tree, launch)->kind != NPS_LAUNCH_FFTS || !reported->graph) {
		node_add_part(tree, call, node_find_part(tree, call, reported, NPS_NO_CONTEXT), op, launch,
			      NPS_NO_CONTEXT);
		return;
	}
	if (reported->last - reported->first >= CONTEXTS_MOST) {
		nps_model__lost(tree->capture->model, 1, "collectives with impossible contexts");
		return;
	}
	for (uint32_t context = reported->first; context <= reported->last && !tree->capture->err;
	     context++) {
		node_add_part(tree, call, node_find_part(tree, call, reported, context), op, launch, context);
		if (context == UINT32_MAX)
			break;
	}
}

void nps_host_tree__end_comm(struct nps_host_tree *tree, const struct nps_open_call *call)
{
	struct reported_parts reported = { .from = call->infos, .left = MAX_LOOKUPS };

	read_contexts(tree, call, &reported);
	for (uint32_t i = call->launches; i != NPS_NONE && !tree->capture->err; i = nps_info(tree, i)->next)
		node_add_parts(tree, call, nps_info(tree, i)->launch.row, &reported);
	if (!reported.left)
		nps_model__lost(tree->capture->model, 1, "collectives with impossibly many tasks");
}
