/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/trace_event.h"

#include "clock/errors.h"

#include <stdio.h>

/* Names and sort indexes of both generations (outputs 2.2). Layers that generation A lacks follow its own. */
static const struct layer {
	const char *name, *name_a;
	unsigned char sort, sort_a;
	bool host;
} layers[] = {
	[NPS_TRACE_PYTHON] = { "Python", "Python", 0, 0, true },
	[NPS_TRACE_GC] = { "Python GC", "Python GC", 1, 1, false },
	[NPS_TRACE_MSTX] = { "MsTx", "MsTx", 6, 6, true },
	[NPS_TRACE_CANN] = { "CANN", "CANN", 7, 7, true },
	[NPS_TRACE_CPU_USAGE] = { "CPU Usage", "CPU Usage", 9, 8, true },
	[NPS_TRACE_MEMORY_USAGE] = { "Memory Usage", "Memory Usage", 10, 9, true },
	[NPS_TRACE_NETWORK_USAGE] = { "Network Usage", "Network Usage", 11, 10, true },
	[NPS_TRACE_DISK_USAGE] = { "Disk Usage", "Disk Usage", 12, 11, true },
	[NPS_TRACE_OSRT] = { "OS Runtime API", "OS Runtime API", 13, 12, true },
	[NPS_TRACE_HARDWARE] = { "Ascend Hardware", "Ascend Hardware", 14, 13, false },
	[NPS_TRACE_FREQUENCY] = { "AI Core Freq", "AI Core Freq", 15, 14, false },
	[NPS_TRACE_COMM] = { "Communication", "HCCL", 16, 15, false },
	[NPS_TRACE_NPU_MEM] = { "NPU MEM", "NPU MEM", 17, 19, false },
	[NPS_TRACE_DDR] = { "DDR", "DDR", 18, 16, false },
	[NPS_TRACE_ACC_PMU] = { "Acc PMU", "Acc PMU", 19, 21, false },
	[NPS_TRACE_HCCS] = { "HCCS", "HCCS", 20, 24, false },
	[NPS_TRACE_NIC] = { "NIC", "NIC", 21, 25, false },
	[NPS_TRACE_ROCE] = { "RoCE", "RoCE", 22, 26, false },
	[NPS_TRACE_PCIE] = { "PCIe", "PCIe", 23, 27, false },
	[NPS_TRACE_HBM] = { "HBM", "HBM", 24, 17, false },
	[NPS_TRACE_SOC] = { "Stars Soc Info", "Stars Soc Info", 25, 20, false },
	[NPS_TRACE_CHIP_TRANS] = { "Stars Chip Trans", "Stars Chip Trans", 26, 28, false },
	[NPS_TRACE_LLC] = { "LLC", "LLC", 27, 18, false },
	[NPS_TRACE_SIO] = { "SIO", "SIO", 28, 29, false },
	[NPS_TRACE_QOS] = { "QoS", "QoS", 29, 22, false },
	[NPS_TRACE_OVERLAP] = { "Overlap Analysis", "Overlap Analysis", 31, 23, false },
	[NPS_TRACE_UB] = { "Ub", "Ub", 33, 30, false },
	/* Past the vendor's last: shown at the end, and never as the card's first layer. */
	[NPS_TRACE_PROCESS_SCHED] = { "Process Scheduling", "Process Scheduling", 35, 35, true },
	[NPS_TRACE_CPU_SCHED] = { "CPU Scheduling", "CPU Scheduling", 36, 36, true },
	[NPS_TRACE_HOST_USAGE] = { "Host Usage", "Host Usage", 39, 34, true },
	[NPS_TRACE_NPU_USAGE] = { "NPU Usage", "NPU Usage", 40, 37, false },
	[NPS_TRACE_VOLTAGE] = { "Voltage Info", "Voltage Info", 37, 31, false },
	[NPS_TRACE_DRIVER] = { "NPU Driver", "NPU Driver", 41, 38, true },
};

uint64_t nps_trace__pid(const struct nps_trace *t, enum nps_trace_layer layer, uint32_t device)
{
	const struct layer *l = &layers[layer];

	if (layer == NPS_TRACE_PYTHON)
		return t->m->pid;
	if (l->host)
		device = t->gen_a ? t->device : NPS_HOST_DEVICE;
	return nps_layer_pid(t->m->pid, t->gen_a ? l->sort_a : l->sort, nps_trace__device(t, device));
}

static void meta(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *what, const char *key)
{
	nps_writer__item(w);
	nps_trace__string(w, "{\"name\":", what);
	nps_trace__lane(w, pid, tid);
	nps_writer__lit(w, ",\"args\":{");
	nps_writer__json(w, key);
	nps_writer__lit(w, ":");
}

static void meta_end(struct nps_writer *w)
{
	nps_writer__lit(w, "},\"ph\":\"M\"}");
}

static void meta_text(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *what, const char *key,
		      const char *text)
{
	meta(w, pid, tid, what, key);
	nps_writer__json(w, text);
	meta_end(w);
}

void nps_trace__sort_thread(struct nps_writer *w, uint64_t pid, uint64_t tid, uint64_t index)
{
	meta(w, pid, tid, "thread_sort_index", "sort_index");
	nps_writer__u64(w, index);
	meta_end(w);
}

void nps_trace__name_thread(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *name)
{
	meta_text(w, pid, tid, "thread_name", "name", name);
}

void nps_trace__name_layer_as(struct nps_trace *t, enum nps_trace_layer layer, uint32_t device,
			      const char *name)
{
	const struct layer *l = &layers[layer];
	uint64_t pid = nps_trace__pid(t, layer, device);
	bool host = l->host || layer == NPS_TRACE_GC;
	char label[32];

	snprintf(label, sizeof(label),
		 host	    ? "CPU"
		 : t->gen_a ? "NPU"
			    : "NPU %u",
		 nps_trace__device(t, device));
	if (name)
		meta_text(&t->w, pid, 0, "process_name", "name", name);
	meta_text(&t->w, pid, 0, "process_labels", "labels", label);
	meta(&t->w, pid, 0, "process_sort_index", "sort_index");
	nps_writer__u64(&t->w, t->gen_a ? l->sort_a : l->sort);
	meta_end(&t->w);
}

void nps_trace__name_layer(struct nps_trace *t, enum nps_trace_layer layer, uint32_t device)
{
	nps_trace__name_layer_as(t, layer, device, t->gen_a ? layers[layer].name_a : layers[layer].name);
}

void nps_trace__name_lanes(struct nps_trace *t, const struct nps_trace_lanes *lanes,
			   enum nps_trace_layer layer, const char *prefix, bool sorted)
{
	char name[64];

	for (size_t i = 0; i < lanes->list.len; i++) {
		const struct nps_trace_lane *lane = &NPS_AT(&lanes->list, struct nps_trace_lane, i);
		uint64_t pid = nps_trace__pid(t, layer, lane->device);

		snprintf(name, sizeof(name), "%s %u", prefix, lane->tid);
		nps_trace__name_thread(&t->w, pid, lane->tid, name);
		if (sorted)
			nps_trace__sort_thread(&t->w, pid, lane->tid, lane->tid);
	}
}

static void put_id(struct nps_writer *w, unsigned __int128 id)
{
	char digits[40];
	size_t at = sizeof(digits);

	if (id <= UINT64_MAX) {
		nps_writer__u64(w, id);
		return;
	}
	for (; id; id /= 10)
		digits[--at] = '0' + (unsigned int)(id % 10);
	nps_writer__bytes(w, digits + at, sizeof(digits) - at);
}

void nps_trace__flow(struct nps_trace *t, const char *cat, const char *prefix, unsigned __int128 id,
		     uint64_t pid, uint64_t tid, uint64_t time, bool begin)
{
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_writer__lit(w, "{\"name\":\"");
	nps_writer__lit(w, prefix);
	put_id(w, id);
	nps_writer__lit(w, "\"");
	if (!t->gen_a)
		nps_trace__lane(w, pid, tid);
	nps_writer__lit(w, ",\"cat\":\"");
	nps_writer__lit(w, cat);
	nps_writer__lit(w, "\",\"id\":\"");
	put_id(w, id);
	nps_writer__lit(w, "\"");
	if (t->gen_a)
		nps_trace__lane(w, pid, tid);
	nps_trace__at(w, time);
	if (begin)
		nps_writer__lit(w, ",\"ph\":\"s\"}");
	else
		nps_writer__lit(w, ",\"bp\":\"e\",\"ph\":\"f\"}");
}

static void put_bound_arg(struct nps_trace *t, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		return;
	nps_writer__lit(&t->w, key);
	nps_writer__time(&t->w, value);
	nps_writer__lit(&t->w, "\"");
}

static void clock_error(struct nps_trace *t, size_t task)
{
	int64_t error = nps_clock_error_at(t->m, t->m->task.device[task], t->m->task.start[task]);

	if (error < 0)
		return;
	nps_writer__lit(&t->w, ",\"clock_error_us\":\"");
	nps_writer__time(&t->w, (uint64_t)error);
	nps_writer__lit(&t->w, "\"");
}

void nps_trace__time_source(struct nps_trace *t, uint8_t source, size_t task)
{
	const struct nps_bounds_table *b = &t->m->bounds;
	size_t row = 0, end = b->t.len;

	if (source == NPS_TIME_DEVICE_LOG) {
		nps_writer__lit(&t->w, ",\"time_source\":\"device log\"");
		clock_error(t, task);
	}
	if (source != NPS_TIME_HOST_BOUNDS)
		return;
	nps_writer__lit(&t->w, ",\"time_source\":\"host bounds\"");
	while (row < end) { /* two layers walk the tasks, at different speeds */
		size_t middle = row + (end - row) / 2;

		if (b->task[middle] < task)
			row = middle + 1;
		else
			end = middle;
	}
	if (row == b->t.len || b->task[row] != task)
		return;
	put_bound_arg(t, ",\"start_low_us\":\"", b->start_low[row]);
	put_bound_arg(t, ",\"start_high_us\":\"", b->start_high[row]);
	put_bound_arg(t, ",\"end_low_us\":\"", b->end_low[row]);
	put_bound_arg(t, ",\"end_high_us\":\"", b->end_high[row]);
}
