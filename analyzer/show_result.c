/* SPDX-License-Identifier: BSD-2-Clause */
/* Which tables there are, and which columns they have. */
#include "base/util.h"
#include "show.h"

#include <cjson/cJSON.h>
#include <string.h>

struct view {
	FILE *out;
	const cJSON *document;
	size_t top;
	double start_us;
};

static const cJSON *part(const struct view *v, const char *section, const char *list)
{
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(v->document, section);

	return list ? cJSON_GetObjectItemCaseSensitive(object, list) : object;
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	double value = 0;

	if (cJSON_IsRaw(item) && item->valuestring && sscanf(item->valuestring, "%lf", &value) == 1)
		return value;
	return cJSON_IsNumber(item) ? cJSON_GetNumberValue(item) : 0;
}

static void table(const struct view *v, const char *title, const cJSON *rows,
		  const struct nps_show_column *columns, size_t n)
{
	nps_show__table(v->out, title, rows, columns, n, v->top, v->start_us);
}

#define TABLE(view, title, rows, ...)                                                                        \
	do {                                                                                                 \
		static const struct nps_show_column columns_[] = { __VA_ARGS__ };                            \
		table(view, title, rows, columns_, NPS_ARRAY_SIZE(columns_));                                \
	} while (0)

static void overview(const struct view *v)
{
	static const struct {
		const char *name, *key;
	} counts[] = {
		{ "steps", "steps" },
		{ "device tasks", "device_tasks" },
		{ "  of these known from the host only", "tasks_with_host_bounds_only" },
		{ "kernels", "kernels" },
		{ "collectives", "collectives" },
		{ "CANN calls", "cann_calls" },
		{ "torch operators", "torch_operators" },
		{ "system calls", "system_calls" },
	};
	const cJSON *capture = part(v, "capture", NULL);
	double stacks = number(capture, "stacks");
	double length = number(capture, "end_us") - v->start_us;

	fprintf(v->out, "\noverview\n");
	if (cJSON_HasObjectItem(capture, "rank"))
		fprintf(v->out, "%-36s %12.0f\n", "rank", number(capture, "rank"));
	if (number(capture, "pid") > 0)
		fprintf(v->out, "%-36s %12.0f\n", "process", number(capture, "pid"));
	fprintf(v->out, "%-36s %12.3f\n", "length, ms", length / 1e3);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(counts); i++)
		if (number(capture, counts[i].key) > 0)
			fprintf(v->out, "%-36s %12.0f\n", counts[i].name, number(capture, counts[i].key));
	if (stacks > 0)
		fprintf(v->out, "%-36s %12.0f, %.1f %% of them whole, down to where the thread began\n",
			"stacks", stacks,
			nps_percent((uint64_t)number(capture, "whole_stacks"), (uint64_t)stacks));
	TABLE(v, "lost or not read", part(v, "capture", "lost"), { "what", "what", NPS_SHOW_TEXT },
	      { "count", "count", NPS_SHOW_COUNT });
	TABLE(v, "device clocks against the host's, us", part(v, "capture", "device_clocks"),
	      { "NPU", "device", NPS_SHOW_COUNT }, { "error, mean", "mean_error_us", NPS_SHOW_US },
	      { "at most", "worst_error_us", NPS_SHOW_US }, { "known by", "source", NPS_SHOW_TEXT });
	TABLE(v, "devices, us", part(v, "idle", "devices"), { "NPU", "device", NPS_SHOW_COUNT },
	      { "span", "span_us", NPS_SHOW_US }, { "idle", "idle_us", NPS_SHOW_US },
	      { "host too late", "host_bound_us", NPS_SHOW_US },
	      { "on device", "device_side_us", NPS_SHOW_US }, { "unknown", "unknown_us", NPS_SHOW_US },
	      { "gaps", "gaps", NPS_SHOW_COUNT }, { "kernels", "kernels", NPS_SHOW_COUNT },
	      { "mean kernel", "mean_kernel_us", NPS_SHOW_US },
	      { "launch every", "mean_launch_interval_us", NPS_SHOW_US });
}

static void print_findings(FILE *out, const cJSON *list, size_t top)
{
	const cJSON *finding;
	size_t n = 0;

	fprintf(out, "\nfindings, worst first\n");
	if (!cJSON_GetArraySize(list))
		fprintf(out, "nothing stands out\n");
	cJSON_ArrayForEach(finding, list)
	{
		const char *title = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(finding, "title"));
		const char *advice =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(finding, "advice"));

		if (n++ == top)
			break;
		fprintf(out, "%2zu. %5.1f%%  ", n, 100 * number(finding, "share"));
		nps_print_text(out, title ? title : "");
		fprintf(out, "\n            ");
		nps_print_text(out, advice ? advice : "");
		putc('\n', out);
	}
}

static void findings(const struct view *v)
{
	print_findings(v->out, part(v, "findings", NULL), v->top);
}

static void steps(const struct view *v)
{
	TABLE(v, "steps, slowest first, us", part(v, "steps", "rows"), { "NPU", "device", NPS_SHOW_COUNT },
	      { "step", "step", NPS_SHOW_TEXT }, { "total", "total_us", NPS_SHOW_US },
	      { "computing", "computing_us", NPS_SHOW_US },
	      { "communication", "communication_us", NPS_SHOW_US },
	      { "not overlapped", "communication_not_overlapped_us", NPS_SHOW_US },
	      { "free", "free_us", NPS_SHOW_US }, { "preparing", "preparing_us", NPS_SHOW_US });
}

/* How many of SECTION nobody measured: MEMBER of it. */
static void print_unmeasured(const struct view *v, const char *section, const char *member, const char *what)
{
	double n = number(cJSON_GetObjectItemCaseSensitive(v->document, section), member);

	if (n > 0)
		fprintf(v->out, "%s%.0f %s are in no total: their time on the device was not measured\n",
			cJSON_GetArraySize(part(v, section, "rows")) ? "" : "\n", n, what);
}

static void operators(const struct view *v)
{
	TABLE(v, "operators, by time on the device, us", part(v, "operators", "rows"),
	      { "type", "type", NPS_SHOW_TEXT }, { "core", "core", NPS_SHOW_TEXT },
	      { "count", "count", NPS_SHOW_COUNT }, { "total", "total_us", NPS_SHOW_US },
	      { "share", "share_of_device_time", NPS_SHOW_SHARE }, { "mean", "mean_us", NPS_SHOW_US },
	      { "p50", "p50_us", NPS_SHOW_US }, { "p99", "p99_us", NPS_SHOW_US },
	      { "max", "max_us", NPS_SHOW_US }, { "in queue p50", "queue_wait_p50_us", NPS_SHOW_US },
	      { "shapes", "shapes", NPS_SHOW_COUNT },
	      { "slowest at, ms", "slowest.start_us", NPS_SHOW_WHEN });
	print_unmeasured(v, "operators", "tasks_left_out", "kernels");
}

static void apis(const struct view *v)
{
	TABLE(v, "CANN calls, by time, us", part(v, "apis", "rows"), { "name", "name", NPS_SHOW_TEXT },
	      { "level", "level", NPS_SHOW_TEXT }, { "count", "count", NPS_SHOW_COUNT },
	      { "total", "total_us", NPS_SHOW_US }, { "mean", "mean_us", NPS_SHOW_US },
	      { "max", "max_us", NPS_SHOW_US }, { "longest in thread", "longest_in_thread", NPS_SHOW_COUNT },
	      { "longest at, ms", "longest_at_us", NPS_SHOW_WHEN });
}

static void communication(const struct view *v)
{
	const cJSON *numbers = part(v, "communication", "wait_and_transfer");

	TABLE(v, "collectives, by time, us", part(v, "communication", "rows"),
	      { "type", "type", NPS_SHOW_TEXT }, { "group", "group", NPS_SHOW_TEXT },
	      { "count", "count", NPS_SHOW_COUNT }, { "total", "total_us", NPS_SHOW_US },
	      { "mean", "mean_us", NPS_SHOW_US }, { "max", "max_us", NPS_SHOW_US },
	      { "slowest", "slowest.name", NPS_SHOW_TEXT },
	      { "slowest at, ms", "slowest.start_us", NPS_SHOW_WHEN });
	print_unmeasured(v, "communication", "without_measured_tasks", "collectives");
	if (cJSON_IsObject(numbers))
		fprintf(v->out,
			"of %.3f us they waited %.3f us (%.3f us for the first synchronization) and "
			"transferred %.3f us\n",
			number(numbers, "elapse_us"), number(numbers, "wait_us"),
			number(numbers, "synchronization_us"), number(numbers, "transit_us"));
}

static void memory(const struct view *v)
{
	TABLE(v, "memory, MiB", part(v, "memory", "rows"), { "component", "component", NPS_SHOW_TEXT },
	      { "NPU", "device", NPS_SHOW_COUNT }, { "records", "records", NPS_SHOW_COUNT },
	      { "peak reserved", "peak_reserved_mib", NPS_SHOW_NUMBER },
	      { "in use then", "allocated_then_mib", NPS_SHOW_NUMBER },
	      { "peak at, ms", "peak_us", NPS_SHOW_WHEN });
}

static void idle(const struct view *v)
{
	TABLE(v, "longest gaps that the host caused, by time, us", part(v, "idle", "longest_gaps"),
	      { "NPU", "device", NPS_SHOW_COUNT }, { "at, ms", "start_us", NPS_SHOW_WHEN },
	      { "host too late", "host_us", NPS_SHOW_US }, { "next", "next_task", NPS_SHOW_TEXT },
	      { "torch operator", "torch_op.name", NPS_SHOW_TEXT },
	      { "for", "torch_op.within_us", NPS_SHOW_US }, { "CANN call", "host_call.name", NPS_SHOW_TEXT },
	      { "for", "host_call.within_us", NPS_SHOW_US },
	      { "system call", "system_call.name", NPS_SHOW_TEXT },
	      { "for", "system_call.within_us", NPS_SHOW_US });
}

static void host(const struct view *v)
{
	TABLE(v, "system calls, by time, us", part(v, "host", "system_calls"),
	      { "call", "call", NPS_SHOW_TEXT }, { "count", "count", NPS_SHOW_COUNT },
	      { "total", "total_us", NPS_SHOW_US }, { "max", "max_us", NPS_SHOW_US },
	      { "longest in thread", "longest_in_thread", NPS_SHOW_COUNT },
	      { "longest at, ms", "longest_at_us", NPS_SHOW_WHEN });
	TABLE(v, "threads that waited for a CPU, us", part(v, "host", "waits_for_cpu"),
	      { "thread", "thread", NPS_SHOW_COUNT }, { "count", "count", NPS_SHOW_COUNT },
	      { "total", "total_us", NPS_SHOW_US }, { "max", "max_us", NPS_SHOW_US },
	      { "longest at, ms", "longest_at_us", NPS_SHOW_WHEN });
}

static void host_time(const struct view *v)
{
	TABLE(v, "time of host threads over all steps, us", part(v, "host_time", NULL),
	      { "thread", "thread", NPS_SHOW_COUNT }, { "name", "name", NPS_SHOW_TEXT },
	      { "total", "total_us", NPS_SHOW_US }, { "own code", "user_us", NPS_SHOW_US },
	      { "CANN", "cann_us", NPS_SHOW_US }, { "I/O calls", "io_calls_us", NPS_SHOW_US },
	      { "other calls", "other_calls_us", NPS_SHOW_US },
	      { "for device", "device_wait_us", NPS_SHOW_US }, { "for locks", "lock_wait_us", NPS_SHOW_US },
	      { "for a CPU", "cpu_wait_us", NPS_SHOW_US }, { "for I/O", "io_wait_us", NPS_SHOW_US },
	      { "page faults", "page_faults_us", NPS_SHOW_US },
	      { "interrupts", "interrupts_us", NPS_SHOW_US }, { "sleep", "sleep_us", NPS_SHOW_US },
	      { "not seen", "not_observed_us", NPS_SHOW_US });
}

static void torchair(const struct view *v)
{
	const cJSON *graph, *graphs = part(v, "torchair", "graphs");
	size_t n = 0;

	TABLE(v, "TorchAir graphs, mean of calls that are not cold, us", graphs,
	      { "graph", "graph", NPS_SHOW_TEXT }, { "calls", "calls", NPS_SHOW_COUNT },
	      { "cold", "cold", NPS_SHOW_COUNT }, { "mode", "mode", NPS_SHOW_TEXT },
	      { "frontend", "parts.frontend.mean_us", NPS_SHOW_US },
	      { "TorchAir Python", "parts.torchair_python.mean_us", NPS_SHOW_US },
	      { "TorchAir C++", "parts.torchair_cpp.mean_us", NPS_SHOW_US },
	      { "GE", "parts.ge.mean_us", NPS_SHOW_US }, { "call", "call.mean_us", NPS_SHOW_US },
	      { "call p99", "call.p99_us", NPS_SHOW_US }, { "call max", "call.max_us", NPS_SHOW_US },
	      { "to first kernel", "execute_to_first_kernel.mean_us", NPS_SHOW_US },
	      { "on device", "device_us_per_call", NPS_SHOW_US });
	cJSON_ArrayForEach(graph, graphs)
	{
		const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(graph, "graph"));
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(graph, "verdict"));

		if (n++ == v->top)
			break;
		nps_print_text(v->out, name ? name : "");
		fprintf(v->out, ": ");
		nps_print_text(v->out, text ? text : "");
		putc('\n', v->out);
	}
	TABLE(v, "TorchAir calls, by time, us", part(v, "torchair", "rows"),
	      { "at, ms", "start_us", NPS_SHOW_WHEN }, { "graph", "graph", NPS_SHOW_COUNT },
	      { "cold", "cold", NPS_SHOW_TEXT }, { "frontend", "frontend_us", NPS_SHOW_US },
	      { "from", "frontend_from", NPS_SHOW_TEXT },
	      { "TorchAir Python", "torchair_python_us", NPS_SHOW_US },
	      { "TorchAir C++", "torchair_cpp_us", NPS_SHOW_US }, { "GE", "ge_us", NPS_SHOW_US },
	      { "call", "call_us", NPS_SHOW_US }, { "mode", "mode", NPS_SHOW_TEXT });
}

static void (*const sections[])(const struct view *v) = {
#define SECTION(name) [NPS_SHOW_INDEX_##name] = (name),
	NPS_SHOW_SECTIONS(SECTION)
#undef SECTION
};

void nps_show__result(FILE *out, const cJSON *document, unsigned int only, size_t top)
{
	const cJSON *capture = cJSON_GetObjectItemCaseSensitive(document, "capture");
	struct view v = { out, document, top, number(capture, "start_us") };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(sections); i++)
		if (only & 1U << i)
			sections[i](&v);
}

void nps_show__ranks(FILE *out, const cJSON *document, size_t top)
{
	struct view v = { out, document, top, 0 };
	const cJSON *arrivals = part(&v, "arrivals", NULL);

	TABLE(&v, "ranks, sums of all steps, us", part(&v, "rows", NULL), { "rank", "rank", NPS_SHOW_TEXT },
	      { "steps", "steps", NPS_SHOW_COUNT }, { "total", "total_us", NPS_SHOW_US },
	      { "computing", "computing_us", NPS_SHOW_US },
	      { "communication", "communication_us", NPS_SHOW_US }, { "free", "free_us", NPS_SHOW_US },
	      { "collectives", "common_collectives", NPS_SHOW_COUNT },
	      { "last in", "last_in", NPS_SHOW_COUNT }, { "late by", "late_us", NPS_SHOW_US },
	      { "waits", "wait_us", NPS_SHOW_US }, { "clock ahead", "clock_offset_us", NPS_SHOW_US });
	if (number(arrivals, "common_collectives") > 0)
		fprintf(out,
			"\nranks arrive apart in %.0f collectives: %.3f us on average, median %.3f, p99 "
			"%.3f, at "
			"most %.3f\n",
			number(arrivals, "common_collectives"), number(arrivals, "mean_skew_us"),
			number(arrivals, "p50_skew_us"), number(arrivals, "p99_skew_us"),
			number(arrivals, "max_skew_us"));
	else if (!(number(arrivals, "collectives_not_matched") > 0))
		fprintf(out, "\nwho arrives late is not known: no collective has the same name and group in "
			     "two ranks\n");
	if (number(arrivals, "collectives_not_matched") > 0)
		fprintf(out,
			"\nwho arrives late is not known of %.0f collectives: those of the same name and "
			"group in other ranks end at other times\n",
			number(arrivals, "collectives_not_matched"));
	TABLE(&v, "collectives with the largest distance between arrivals, us",
	      cJSON_GetObjectItemCaseSensitive(arrivals, "worst"), { "name", "name", NPS_SHOW_TEXT },
	      { "distance", "skew_us", NPS_SHOW_US }, { "first", "first", NPS_SHOW_TEXT },
	      { "last", "last", NPS_SHOW_TEXT });
	TABLE(&v, "steps of all ranks, us", part(&v, "steps", NULL), { "step", "step", NPS_SHOW_TEXT },
	      { "ranks", "ranks", NPS_SHOW_COUNT }, { "total from", "least_total_us", NPS_SHOW_US },
	      { "to", "most_total_us", NPS_SHOW_US }, { "by", "most_total_us_by", NPS_SHOW_TEXT },
	      { "computing from", "least_computing_us", NPS_SHOW_US },
	      { "to", "most_computing_us", NPS_SHOW_US }, { "by", "most_computing_us_by", NPS_SHOW_TEXT },
	      { "communication from", "least_communication_us", NPS_SHOW_US },
	      { "to", "most_communication_us", NPS_SHOW_US },
	      { "by", "most_communication_us_by", NPS_SHOW_TEXT });
	print_findings(out, part(&v, "findings", NULL), top);
}
