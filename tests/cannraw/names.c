/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/* Names, their hashes and the two dictionaries. */
#include "gen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_NAME 5000
#define VERY_LONG_NAME 70000

static const struct {
	const char *type;
	uint32_t ge_type;
} kinds[OP_KINDS] = {
	{ "MatMul", GE_AI_CORE },
	{ "BatchMatMul", GE_AI_CORE },
	{ "Conv2D", GE_AI_CORE },
	{ "Add", GE_AI_VECTOR_CORE },
	{ "Mul", GE_AI_VECTOR_CORE },
	{ "Sub", GE_AI_VECTOR_CORE },
	{ "RealDiv", GE_AI_VECTOR_CORE },
	{ "Cast", GE_AI_VECTOR_CORE },
	{ "Transpose", GE_AI_VECTOR_CORE },
	{ "ReduceSum", GE_AI_VECTOR_CORE },
	{ "ReduceMean", GE_AI_VECTOR_CORE },
	{ "Softmax", GE_AI_VECTOR_CORE },
	{ "LayerNorm", GE_AI_VECTOR_CORE },
	{ "RmsNorm", GE_AI_VECTOR_CORE },
	{ "Gelu", GE_AI_VECTOR_CORE },
	{ "Silu", GE_AI_VECTOR_CORE },
	{ "Slice", GE_AI_VECTOR_CORE },
	{ "ConcatD", GE_AI_VECTOR_CORE },
	{ "GatherV2", GE_AI_VECTOR_CORE },
	{ "ScatterUpdate", GE_AI_VECTOR_CORE },
	{ "Pows", GE_AI_VECTOR_CORE },
	{ "Sqrt", GE_AI_VECTOR_CORE },
	{ "Exp", GE_AI_VECTOR_CORE },
	{ "Log", GE_AI_VECTOR_CORE },
	{ "Maximum", GE_AI_VECTOR_CORE },
	{ "Minimum", GE_AI_VECTOR_CORE },
	{ "Select", GE_AI_VECTOR_CORE },
	{ "Tile", GE_AI_VECTOR_CORE },
	{ "ZerosLike", GE_AI_VECTOR_CORE },
	{ "Fill", GE_AI_VECTOR_CORE },
	{ "Conv2DBackpropInput", GE_AI_CORE },
	{ "Conv2DBackpropFilter", GE_AI_CORE },
	{ "ApplyAdamW", GE_AI_VECTOR_CORE },
	{ "DropOutDoMask", GE_AI_VECTOR_CORE },
	{ "TopKV2", GE_AI_CPU },
	{ "Unique", GE_AI_CPU },
	{ "FlashAttentionScore", GE_MIX_AIC },
	{ "GroupedMatmul", GE_MIX_AIC },
	{ "MoeGatingTopK", GE_MIX_AIV },
	{ "FftsPlus", GE_FFTS_PLUS },
};

static const struct {
	uint32_t level, type;
	const char *name;
} types[] = {
	{ LEVEL_TX, 0, "msproftx" },
	{ LEVEL_ACL, ACL_MODEL_EXECUTE, "aclmdlExecute" },
	{ LEVEL_ACL, ACL_MODEL_LOAD, "aclmdlLoadFromFile" },
	{ LEVEL_ACL, ACL_LAUNCH, "aclrtLaunchKernel" },
	{ LEVEL_ACL, ACL_MEMCPY_ASYNC, "aclrtMemcpyAsync" },
	{ LEVEL_ACL, ACL_RECORD_EVENT, "aclrtRecordEvent" },
	{ LEVEL_ACL, ACL_STREAM_WAIT_EVENT, "aclrtStreamWaitEvent" },
	{ LEVEL_ACL, ACL_HCCL, "HcclAllReduce" },
	{ LEVEL_ACL, ACL_HCCL + 1, "HcclAllGather" },
	{ LEVEL_ACL, ACL_HCCL + 2, "HcclReduceScatter" },
	{ LEVEL_ACL, ACL_HCCL + 3, "HcclBroadcast" },
	{ LEVEL_MODEL, 0, "graph_id_map" },
	{ LEVEL_MODEL, MODEL_EXECUTE, "ModelExecute" },
	{ LEVEL_MODEL, MODEL_LOAD, "ModelLoad" },
	{ LEVEL_NODE, 0, "node_basic_info" },
	{ LEVEL_NODE, 1, "tensor_info" },
	{ LEVEL_NODE, 4, "context_id_info" },
	{ LEVEL_NODE, NODE_LAUNCH, "launch" },
	{ LEVEL_NODE, 9, "node_attr_info" },
	{ LEVEL_NODE, 10, "hccl_op_info" },
	{ LEVEL_NODE, NODE_TILING, "Tiling" },
	{ LEVEL_AICPU, 0, "aicpu_node" },
	{ LEVEL_HCCL, 4, "context_id_info" },
	{ LEVEL_HCCL, 10, "hccl_info" },
	{ LEVEL_HCCL, HCCL_MASTER, "master" },
	{ LEVEL_HCCL, HCCL_SLAVE, "slave" },
	{ LEVEL_RUNTIME, RT_AICORE, "KERNEL_AICORE" },
	{ LEVEL_RUNTIME, RT_AICPU, "KERNEL_AICPU" },
	{ LEVEL_RUNTIME, RT_EVENT_RECORD, "EVENT_RECORD" },
	{ LEVEL_RUNTIME, RT_EVENT_WAIT, "EVENT_WAIT" },
	{ LEVEL_RUNTIME, RT_MEMCPY_ASYNC, "MEMCPY_ASYNC" },
	{ LEVEL_RUNTIME, RT_MODEL_EXECUTE, "MODEL_EXECUTE" },
	{ LEVEL_RUNTIME, RT_NOTIFY_WAIT, "NOTIFY_WAIT" },
	{ LEVEL_RUNTIME, RT_NOTIFY_RECORD, "NOTIFY_RECORD" },
	{ LEVEL_RUNTIME, RT_FFTS_PLUS, "FFTS_PLUS" },
	{ LEVEL_RUNTIME, RT_AIVEC, "KERNEL_AIVEC" },
	{ LEVEL_RUNTIME, RT_FLIP, "FLIP_TASK" },
	{ LEVEL_RUNTIME, RT_MIX_AIC, "KERNEL_MIX_AIC" },
	{ LEVEL_RUNTIME, RT_MIX_AIV, "KERNEL_MIX_AIV" },
	{ LEVEL_RUNTIME, RT_DAVID_EVENT_RECORD, "DAVID_EVENT_RECORD" },
	{ LEVEL_RUNTIME, RT_DAVID_EVENT_WAIT, "DAVID_EVENT_WAIT" },
	{ LEVEL_RUNTIME, 801, "memcpy_info" },
	{ LEVEL_RUNTIME, 802, "task_track" },
	{ LEVEL_RUNTIME, RT_API_LAUNCH, "KernelLaunch" },
	{ LEVEL_RUNTIME, RT_API_EVENT_RECORD, "EventRecord" },
	{ LEVEL_RUNTIME, RT_API_EVENT_WAIT, "StreamWaitEvent" },
	{ LEVEL_RUNTIME, RT_API_MEMCPY_ASYNC, "MemcpyAsync" },
	{ LEVEL_RUNTIME, RT_API_MODEL_EXECUTE, "ModelExecute" },
};

/*
 * A newline ends the dictionary's line, so a reader can only see what stands before it; what
 * follows is a line without number or colon.
 */
static const char *const nasty_texts[NASTY_NAMES] = {
	"quote\"inside",
	"comma,inside,twice",
	"first line\nsecond line",
	"tab\there",
	"bad utf8 \xff\xfe end",
	"cut utf8 \xe4\xb8",
	"",
	NULL, /* LONG_NAME */
	NULL, /* VERY_LONG_NAME */
	"colon:in:the:middle",
	":colon first",
	"back\\slash \\u0041",
	"both \",\" and ,\"\"",
	"=cmd()",
	"\xe7\x9f\xa9\xe9\x98\xb5 \xf0\x9f\x98\x80",
	"{\"json\":[1]}",
	"surrogate \xed\xa0\x80",
	"quote\"inside", /* the text of the first under another hash */
};

static void dic_line(struct gen *g, uint64_t hash, const char *text, size_t len)
{
	char head[24];
	int n = snprintf(head, sizeof(head), "%" PRIu64 ":", hash);
	char *line = malloc((size_t)n + len + 1);

	need(line != NULL, "dictionary");
	memcpy(line, head, (size_t)n);
	memcpy(line + n, text, len);
	line[(size_t)n + len] = '\n';
	slices_put(&g->files[HF_HASH_DIC], line, (size_t)n + len + 1, 1);
	free(line);
}

/* Different classes and indices give different hashes: mix64 is a bijection. */
struct name add_name(struct gen *g, uint32_t class, uint64_t index, const char *text)
{
	struct name n = { .hash = mix64((uint64_t) class << 56 | index), .text = text };
	const char *end = strchr(text, '\n');

	n.len = end ? (size_t)(end - text) : strlen(text);
	dic_line(g, n.hash, text, strlen(text));
	return n;
}

__attribute__((format(printf, 1, 2))) static char *format(const char *pattern, ...)
{
	char *text;
	va_list args;

	va_start(args, pattern);
	need(vasprintf(&text, pattern, args) >= 0, "names");
	va_end(args);
	return text;
}

static char *long_text(size_t len)
{
	char *text = malloc(len + 1);

	need(text != NULL, "names");
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 26);
	text[len] = '\0';
	return text;
}

static void nasty_init(struct gen *g)
{
	for (uint32_t i = 0; i < NASTY_NAMES; i++) {
		char *text = nasty_texts[i] ? strdup(nasty_texts[i])
					    : long_text(i == 7 ? LONG_NAME : VERY_LONG_NAME);

		need(text != NULL, "names");
		g->nasty[i] = add_name(g, NAME_NASTY, i, text);
	}
	dic_line(g, g->nasty[1].hash, g->nasty[1].text, g->nasty[1].len); /* recorded twice */
}

void names_init(struct gen *g)
{
	g->kinds = calloc(OP_KINDS, sizeof(*g->kinds));
	g->names = calloc(ORDINARY_NAMES, sizeof(*g->names));
	g->nasty = calloc(NASTY_NAMES, sizeof(*g->nasty));
	need(g->kinds && g->names && g->nasty, "names");
	for (uint32_t i = 0; i < OP_KINDS; i++) {
		struct op_kind *k = &g->kinds[i];

		k->type = kinds[i].type;
		k->ge_type = kinds[i].ge_type;
		k->aclnn = format("aclnn%s", k->type);
		k->kernel = format("te_%s_%016" PRIx64 "_1", k->type, mix64(i));
		k->type_name = add_name(g, NAME_TYPE, i, k->type);
		k->kernel_name = add_name(g, NAME_KERNEL, i, k->kernel);
	}
	for (uint32_t i = 0; i < ORDINARY_NAMES; i++)
		g->names[i] =
			add_name(g, NAME_OP, i, format("%s_%u", kinds[i % OP_KINDS].type, i / OP_KINDS));
	if (g->o.nasty)
		nasty_init(g);
	g->small_ops[0] = add_name(g, NAME_MISC, 0, "Memcpy");
	g->small_ops[1] = add_name(g, NAME_MISC, 1, "Notify_Record");
	g->small_ops[2] = add_name(g, NAME_MISC, 2, "Notify_Wait");
	g->small_ops[3] = add_name(g, NAME_MISC, 3, "Reduce_Inline");
	g->comm_names[0] = add_name(g, NAME_MISC, 4, "hcom_allReduce_");
	g->comm_names[1] = add_name(g, NAME_MISC, 5, "hcom_allGather_");
	g->comm_names[2] = add_name(g, NAME_MISC, 6, "hcom_reduceScatter_");
	g->comm_names[3] = add_name(g, NAME_MISC, 7, "hcom_broadcast_");
	g->domain = add_name(g, NAME_MISC, 8, "training");
	g->alg = add_name(g, NAME_MISC, 9, "MESH-RING-NHR");
	g->groups[0] =
		(struct group){ add_name(g, NAME_MISC, 10, "10.20.0.11%eth0_60000_0_1764028800111"), 0, 8 };
	g->groups[1] = (struct group){ add_name(g, NAME_MISC, 11, "group_tp_0123"), 0, 4 };
}

void names_free(struct gen *g)
{
	for (uint32_t i = 0; i < OP_KINDS; i++) {
		free((char *)g->kinds[i].aclnn);
		free((char *)g->kinds[i].kernel);
	}
	for (uint32_t i = 0; i < ORDINARY_NAMES; i++)
		free((char *)g->names[i].text);
	for (uint32_t i = 0; i < NASTY_NAMES; i++)
		free((char *)g->nasty[i].text);
	free(g->kinds);
	free(g->names);
	free(g->nasty);
}

static void type_line(struct gen *g, uint32_t level, uint32_t type, const char *name, const char *suffix)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%u_%u:%s%s\n", level, type, name, suffix);

	slices_put(&g->files[HF_TYPE_DIC], line, (size_t)n, 1);
}

void type_names(struct gen *g)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		type_line(g, types[i].level, types[i].type, types[i].name, "");
	for (uint32_t i = 0; i < OP_KINDS; i++) {
		type_line(g, LEVEL_ACL, ACL_NN + 2 * i, g->kinds[i].aclnn, "GetWorkspaceSize");
		type_line(g, LEVEL_ACL, ACL_NN + 2 * i + 1, g->kinds[i].aclnn, "");
	}
}

const char *api_name(const struct gen *g, uint32_t level, uint32_t type)
{
	static char text[96];

	if (level == LEVEL_ACL && type >= ACL_NN && type < ACL_NN + 2 * OP_KINDS) {
		uint32_t i = type - ACL_NN;

		snprintf(text, sizeof(text), "%s%s", g->kinds[i / 2].aclnn, i % 2 ? "" : "GetWorkspaceSize");
		return text;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].level == level && types[i].type == type)
			return types[i].name;
	return NULL;
}

const struct name *kernel_name(struct gen *g, uint64_t k, uint32_t kind)
{
	if (g->o.nasty && k % 7 == 3)
		return &g->nasty[k / 7 % NASTY_NAMES];
	if (!g->o.unique)
		return &g->names[kind + OP_KINDS * (k / OP_KINDS % (ORDINARY_NAMES / OP_KINDS))];
	snprintf(g->unique_text, sizeof(g->unique_text), "%s%" PRIu64, g->kinds[kind].type, k);
	g->unique = add_name(g, NAME_UNIQUE, k, g->unique_text);
	return &g->unique;
}
