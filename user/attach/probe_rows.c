/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_rows.h"

#include <stdlib.h>
#include <string.h>

static const struct nps_probe_row rows[] = {
#define ROW(id, symbol, lib, layer, call, flags, s0, s1, s2, s3)                                             \
	{ NPS_PROBE_##id,                                                                                    \
	  symbol,                                                                                            \
	  lib,                                                                                               \
	  flags,                                                                                             \
	  NPS_LAYER_##layer,                                                                                 \
	  NPS_CALL_##call,                                                                                   \
	  { { s0 }, { s1 }, { s2 }, { s3 } } },
	NPS_CATALOG(ROW)
#undef ROW
};
#define N_ROWS (sizeof(rows) / sizeof(*rows))

static const struct {
	const char *soname;
	uint32_t lib;
} libraries[] = {
	{ "libascendcl.so", NPS_LIB_ASCENDCL },	 { "libacl_rt.so", NPS_LIB_ACL_RT },
	{ "libruntime.so", NPS_LIB_RUNTIME },	 { "libascend_hal.so", NPS_LIB_HAL },
	{ "libnnopbase.so", NPS_LIB_NNOPBASE },	 { "libhccl.so", NPS_LIB_HCCL },
	{ "libhcomm.so", NPS_LIB_HCOMM },	 { "libacl_mdl.so", NPS_LIB_MDL },
	{ "libacl_op_executor.so", NPS_LIB_OP }, { "libacl_op_compiler.so", NPS_LIB_OP },
	{ "libge_runner.so", NPS_LIB_GE },	 { "libge_runner_v2.so", NPS_LIB_GE },
	{ "libms_tools_ext.so", NPS_LIB_MSTX },	 { "libnpuscope_mstx.so", NPS_LIB_MSTX },
	{ "libprofapi.so", NPS_LIB_PROF },	 { "libmsprofiler.so", NPS_LIB_ACL_PROF },
	{ "libacl_prof.so", NPS_LIB_ACL_PROF },
};
#define N_LIBRARIES (sizeof(libraries) / sizeof(*libraries))

const struct nps_probe_row *nps_probe_rows__get(unsigned id)
{
	return id && id <= N_ROWS ? &rows[id - 1] : NULL;
}

static int compare_rows(const void *a, const void *b)
{
	return strcmp((*(const struct nps_probe_row *const *)a)->symbol,
		      (*(const struct nps_probe_row *const *)b)->symbol);
}

static int compare_symbol(const void *symbol, const void *row)
{
	return strcmp(symbol, (*(const struct nps_probe_row *const *)row)->symbol);
}

const struct nps_probe_row *nps_probe_rows__find(const char *symbol)
{
	static const struct nps_probe_row *sorted[N_ROWS];
	const struct nps_probe_row *const *found;

	if (!sorted[0]) {
		for (size_t i = 0; i < N_ROWS; i++)
			sorted[i] = &rows[i];
		qsort(sorted, N_ROWS, sizeof(*sorted), compare_rows);
	}
	/* The row of the step marker has no symbol. */
	found = *symbol ? bsearch(symbol, sorted, N_ROWS, sizeof(*sorted), compare_symbol) : NULL;
	return found ? *found : NULL;
}

/* Is it a function by which the job sets marks, with mstx? */
static bool is_mark(const struct nps_probe_row *row)
{
	return row->call >= NPS_CALL_MSTX_MARK && row->call <= NPS_CALL_MSTX_DOMAIN;
}

bool nps_probe_rows__is_label(const struct nps_probe_row *row)
{
	return row->id == NPS_PROBE_TORCH_LABEL || row->id == NPS_PROBE_TORCH_RECORD ||
	       row->id == NPS_PROBE_TORCH_RECORD_END;
}

enum nps_tier nps_probe_rows__tier(const struct nps_probe_row *row)
{
	if (row->id == NPS_PROBE_SQ_TASK_SEND || row->id == NPS_PROBE_SQ_FREE ||
	    row->id == NPS_PROBE_STEP_MARKER || is_mark(row))
		return NPS_TIER_CORE;
	if (nps_probe_rows__is_label(row)) /* of each operator, too, if the job runs PyTorch's profiler */
		return NPS_TIER_NAMES;
	switch (row->call) {
	case NPS_CALL_LAUNCH:
	case NPS_CALL_SYNC_DEVICE:
	case NPS_CALL_SYNC_STREAM:
	case NPS_CALL_SYNC_EVENT:
	case NPS_CALL_SET_CONTEXT:
	case NPS_CALL_COLLECTIVE:
	case NPS_CALL_COMM_NEW:
	case NPS_CALL_COMM_END:
	case NPS_CALL_COMM_FACT:
		return NPS_TIER_CORE;
	}
	for (int i = 0; i < 4; i++)
		if (row->slot[i].meaning == NPS_M_NAME)
			return NPS_TIER_NAMES;
	return NPS_TIER_DETAIL;
}

int nps_probe_rows__level(const struct nps_probe_row *row)
{
	if (row->flags & NPS_P_TWIN)
		return 2;
	if (is_mark(row))
		return NPS_LEVEL_NONE;
	if (row->id == NPS_PROBE_NN_PHASE1_LEFT)
		return 2;
	if (row->id == NPS_PROBE_NN_PHASE2_LEFT)
		return 1;
	/* Second phases name what runs on the device. */
	if (row->id == NPS_PROBE_NN_PHASE1)
		return 1;
	return nps_probe_rows__tier(row) == NPS_TIER_DETAIL ? 1 : 0;
}

uint32_t nps_probe_rows__arguments(const struct nps_probe_row *row)
{
	/* The domain of a mark is checked before its slots are read. */
	uint32_t bits = is_mark(row) ? 1 : 0;

	if (row->id == NPS_PROBE_TORCH_NODE)
		return 1U << 2; /* the node */
	if (row->id == NPS_PROBE_TORCH_LABEL)
		return 1U << 1 | 1U; /* which of them the text is depends on the processor */

	for (int i = 0; i < 4; i++)
		if (row->slot[i].arg)
			bits |= 1U << (row->slot[i].arg - 1);
	return bits;
}

bool nps_probe_rows__reads_memory(const struct nps_probe_row *row)
{
	/* Submissions are not in a slot. */
	bool reads = row->id == NPS_PROBE_SQ_TASK_SEND || row->id == NPS_PROBE_TORCH_NODE ||
		     row->id == NPS_PROBE_TORCH_LABEL || is_mark(row);

	for (int i = 0; i < 4; i++)
		switch (row->slot[i].how) {
		case NPS_SLOT_STR:
		case NPS_SLOT_IN64:
		case NPS_SLOT_IN32:
		case NPS_SLOT_TEXT_IN:
		case NPS_SLOT_TEXT_PTR:
		case NPS_SLOT_TEXT_SIZED:
			reads = true;
			break;
		}
	return reads;
}

bool nps_probe_rows__returns(const struct nps_probe_row *row, bool submissions)
{
	return row->flags & NPS_P_RET && (submissions || row->id != NPS_PROBE_SQ_TASK_SEND);
}

bool nps_probe_rows__is_polled(const struct nps_probe_row *row)
{
	switch (row->id) {
	case NPS_PROBE_QUERY_EVENT:
	case NPS_PROBE_QUERY_EVENT_OLD:
	case NPS_PROBE_QUERY_EVENT_WAIT:
	case NPS_PROBE_GET_MEM_INFO:
	case NPS_PROBE_HCCL_COMM_ERROR:
		return true;
	}
	return false;
}

uint32_t nps_probe_rows__library(const char *basename)
{
	size_t len = strcspn(basename, " "); /* " (deleted)" */

	for (size_t i = 0; i < N_LIBRARIES; i++)
		if (strlen(libraries[i].soname) == len && memcmp(libraries[i].soname, basename, len) == 0)
			return libraries[i].lib;
	return 0;
}

const char *nps_probe_rows__soname(size_t i)
{
	return i < N_LIBRARIES ? libraries[i].soname : NULL;
}

static const char *meaning(unsigned m)
{
	static const char *const names[] = {
		[NPS_M_NONE] = "",
		[NPS_M_STREAM] = "stream",
		[NPS_M_STREAM_ID] = "stream id",
		[NPS_M_EVENT] = "event",
		[NPS_M_DEVICE] = "device",
		[NPS_M_CONTEXT] = "context",
		[NPS_M_PTR] = "address",
		[NPS_M_SIZE] = "bytes",
		[NPS_M_KIND_ACL] = "kind of copy",
		[NPS_M_KIND_RT] = "kind of copy",
		[NPS_M_FUNC] = "function",
		[NPS_M_BIN] = "binary",
		[NPS_M_NAME] = "name",
		[NPS_M_BLOCKS] = "blocks",
		[NPS_M_COUNT] = "count",
		[NPS_M_DTYPE] = "data type",
		[NPS_M_COMM] = "communicator",
		[NPS_M_PEER] = "peer",
		[NPS_M_RANK] = "rank",
		[NPS_M_RANKS] = "ranks",
		[NPS_M_EXECUTOR] = "executor",
		[NPS_M_KEY] = "key",
		[NPS_M_TIMEOUT] = "timeout",
		[NPS_M_STATUS] = "status",
		[NPS_M_ROWS] = "rows",
		[NPS_M_NOTIFY] = "notify",
		[NPS_M_MODEL] = "model",
		[NPS_M_GRAPH] = "graph",
		[NPS_M_SQ] = "queue",
		[NPS_M_TASK] = "task",
		[NPS_M_TEXT] = "text",
		[NPS_M_RANGE] = "range",
		[NPS_M_DOMAIN] = "domain",
		[NPS_M_ARG] = "argument",
	};

	return m < sizeof(names) / sizeof(*names) && names[m] ? names[m] : "argument";
}

static void print_slots(const struct nps_probe_row *row, FILE *out)
{
	const char *between = "";

	for (int i = 0; i < 4; i++) {
		const struct nps_slot *s = &row->slot[i];

		if (s->how == NPS_SLOT_NONE)
			continue;
		if (s->how == NPS_SLOT_PROBE)
			fprintf(out, "%s%s@probe", between, meaning(s->meaning));
		else if (s->how == NPS_SLOT_RESULT)
			fprintf(out, "%s%s@result", between, meaning(s->meaning));
		else
			fprintf(out, "%s%s@%u", between, meaning(s->meaning), s->arg);
		if (s->offset || s->how == NPS_SLOT_IN64)
			fprintf(out, ".%u", s->offset);
		between = ", ";
	}
}

static bool is_of_torch_npu(const struct nps_probe_row *row)
{
	return row->id == NPS_PROBE_TORCH_ENQUEUE || row->id == NPS_PROBE_TORCH_MEMORY;
}

static void print_libraries(const struct nps_probe_row *row, FILE *out)
{
	const char *between = "";

	if (row->libs & NPS_LIB_TORCH)
		fputs(is_of_torch_npu(row) ? "libtorch_npu.so" : "libtorch_cpu.so", out);
	if (row->libs & NPS_LIB_OPAPI)
		fputs("libopapi*.so libaclnn_*.so libcust_opapi.so", out);
	for (size_t i = 0; i < N_LIBRARIES; i++) {
		if (!(row->libs & libraries[i].lib))
			continue;
		fprintf(out, "%s%s", between, libraries[i].soname);
		between = " ";
	}
}

static bool shapes_alone(const struct nps_probe_row *row)
{
	return (row->flags & NPS_P_SHAPES) && !(row->flags & NPS_P_TWIN);
}

/* "end" of functions that are probed only there. */
static const char *how_probed(const struct nps_probe_row *row)
{
	if (row->id == NPS_PROBE_NN_PHASE1_LEFT || row->id == NPS_PROBE_NN_PHASE2_LEFT)
		return "end";
	if (row->flags & NPS_P_ENDS)
		return "entry and ends";
	if (!(row->flags & NPS_P_RET))
		return "entry";
	return row->flags & NPS_P_FOLD ? "outermost call" : "call";
}

static const char *level_name(const struct nps_probe_row *row)
{
	static const char *const levels[] = { "none", "0", "1", "2" };

	if (row->id == NPS_PROBE_TORCH_MEMORY)
		return "memory";
	if (row->libs & NPS_LIB_TORCH)
		return "ops";
	return shapes_alone(row) ? "shapes" : levels[nps_probe_rows__level(row) + 1];
}

bool nps_probe_rows__wanted(const struct nps_probe_row *row, int level, bool shapes)
{
	if ((row->flags & NPS_P_SHAPES || row->id == NPS_PROBE_NN_PHASE1) && shapes && level >= 0)
		return true;
	return !shapes_alone(row) && level >= nps_probe_rows__level(row);
}

void nps_probe_rows__print(FILE *out)
{
	static const char *const layers[] = { [NPS_LAYER_NONE] = "-",
					      [NPS_LAYER_RUNTIME] = "runtime",
					      [NPS_LAYER_COMM] = "communication",
					      [NPS_LAYER_NODE] = "node",
					      [NPS_LAYER_ACL] = "acl" };

	fputs("symbol\tlibraries\tlayer\tlevel\thow\targuments\n", out);
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct nps_probe_row *row = &rows[i];

		if (!*row->symbol)
			continue;
		fprintf(out, "%s\t", row->symbol);
		print_libraries(row, out);
		fprintf(out, "\t%s\t%s\t%s\t", layers[row->layer], level_name(row), how_probed(row));
		print_slots(row, out);
		fputc('\n', out);
	}
}
