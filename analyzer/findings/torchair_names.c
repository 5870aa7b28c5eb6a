/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of TorchAir, Dynamo and PyTorch, in the spellings that occur in traces. */
#include "findings/torchair.h"

#include <ctype.h>
#include <string.h>

/* Equal but for case, and `_` is a blank. */
static bool spelled(const char *name, const char *label)
{
	for (; *name && *label; name++, label++)
		if (*name != *label && tolower((unsigned char)*name) != *label &&
		    !(*name == '_' && *label == ' '))
			return false;
	return !*name && !*label;
}

static bool name_starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool name_ends(const char *name, const char *with)
{
	size_t n = strlen(name), m = strlen(with);

	return n >= m && !strcmp(name + n - m, with);
}

/* What follows the last `::`. */
static const char *last_part(const char *name)
{
	const char *at = name;

	for (const char *p = name; *p; p++)
		if (p[0] == ':' && p[1] == ':')
			at = p + 2;
	return at;
}

static bool one_of(const char *name, const char *const *labels)
{
	for (; *labels; labels++)
		if (!strcmp(name, *labels))
			return true;
	return false;
}

static bool holds_one_of(const char *name, const char *const *labels)
{
	for (; *labels; labels++)
		if (strstr(name, *labels))
			return true;
	return false;
}

static const char *const cold_graph[] = { "TorchNpuGraphBase::Compile", "TorchNpuGraphBase::Load",
					  "TorchNpuGraphBase::SetHintShape", "TorchNpuGraphBase::AutoTune",
					  NULL };
static const char *const modes[] = { "acl_graph_replay", "acl_graph_warm_up", "acl_graph_capture",
				     "fx_run_eagerly", NULL };
static const char *const tensors[] = { "aten::to",	  "aten::_to_copy",
				       "aten::tensor",	  "aten::full",
				       "aten::full_like", "aten::scalar_tensor",
				       "aten::as_tensor", "aten::lift_fresh",
				       "aten::fill_",	  "aten::zeros",
				       "aten::ones",	  "aten::arange",
				       "aten::from_file", NULL };
static const char *const copies[] = { "aten::contiguous", "aten::clone", "aten::copy_",
				      "aten::npu_format_cast", NULL };
static const char *const frameworks[] = {
	"torch/",	 "torch_npu/",	    "torchair/", "npugraph_ex/", "functorch/",
	"contextlib.py", "<eval_with_key>", "<built-in", "<string>",	 NULL
};

static enum nps_tah_kind frame_kind(const char *name)
{
	if (strstr(name, "OptimizedModule") || (strstr(name, "_dynamo/eval_frame.py") &&
						(name_ends(name, ": __call__") || name_ends(name, ": _fn"))))
		return NPS_TAH_MODULE;
	if (strstr(name, "built-in method Run of") || strstr(name, "built-in method run of") ||
	    !strcmp(last_part(name), "Run"))
		return NPS_TAH_RUN_PLAIN;
	if (strstr(name, "logging/__init__.py") || name_ends(name, ": _summary"))
		return NPS_TAH_LOGGING;
	if (name_starts(name, "nn.Module: ") || holds_one_of(name, frameworks))
		return NPS_TAH_FRAME;
	return NPS_TAH_CALLER;
}

static enum nps_tah_kind op_kind(const char *name)
{
	const char *last;

	if (name_starts(name, "aten::"))
		return one_of(name, tensors)  ? NPS_TAH_TENSOR
		       : one_of(name, copies) ? NPS_TAH_COPY
					      : NPS_TAH_OP;
	if (name_starts(name, "ProfilerStep#"))
		return NPS_TAH_STEP;
	if (spelled(name, "npu fx compiler inference") || spelled(name, "cache compiler inference"))
		return NPS_TAH_CALL;
	last = last_part(name);
	if (!strcmp(last, "ExecuteGraph") || !strcmp(last, "RunGraph"))
		return NPS_TAH_EXECUTE;
	if (!strcmp(name, "TorchNpuGraphBase::Run"))
		return NPS_TAH_RUN;
	if (!strcmp(last, "Run"))
		return NPS_TAH_RUN_PLAIN;
	if (!strcmp(last, "LoadGraph") || one_of(name, cold_graph))
		return NPS_TAH_COLD;
	if (one_of(name, modes))
		return NPS_TAH_MODE;
	if (name_starts(name, "TorchDynamo Cache Lookup"))
		return NPS_TAH_CACHE;
	if (name_starts(name, "TorchDynamo") && (strstr(name, "uard")))
		return NPS_TAH_GUARDS;
	if (name_starts(name, "Torch-Compiled Region"))
		return NPS_TAH_REGION;
	return NPS_TAH_OP;
}

enum nps_tah_kind nps_tah__kind(const char *name, bool frame)
{
	return frame ? frame_kind(name) : op_kind(name);
}
