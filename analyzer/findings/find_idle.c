/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle devices. A gap in a device's work ends with a task. The part of the gap before the host had
 * submitted that task is the host's (the launch queue was empty), the rest is the device's: waiting for an
 * event, or the launch itself. Work is kernels, copies, collectives and their tasks, but no event or notify
 * records.
 */
#include "findings/findings.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 20 /* gaps that are listed */
#define ENOUGH 0.05 /* share of the time from which a finding is made */

struct gap {
	uint64_t start, end;
	uint64_t host; /* ns of it that were the host's */
	uint32_t device, stream, connection; /* of what ends it; stream NPS_NONE: a collective */
	uint32_t name;
	uint32_t api, call, op; /* longest in it: CANN call, system call, torch operator; NPS_NONE none */
	uint64_t api_ns, call_ns, op_ns; /* of these within the host's part */
	uint64_t launcher; /* gtid of the thread that launched what ends it, 0 unknown */
};

struct idle_device {
	bool used;
	uint64_t first, busy_until;
	uint64_t idle, host, queued, unknown; /* ns */
	uint64_t gaps, kernels, kernel_ns, submissions, first_submit, last_submit;
};

/* A task or a collective. */
struct work {
	uint64_t start, end, submit;
	uint32_t device, stream, connection, name;
	bool kernel;
};

struct idle {
	const struct nps_model *m;
	const struct nps_submits *submits;
	struct idle_device devices[NPS_FIND_DEVICES];
	struct gap longest[LONGEST]; /* by start once found */
	size_t nlongest;
	uint64_t last_end; /* of these; devices' gaps overlap */
	uint64_t unmeasured; /* tasks and collectives */
	bool any;
};

/* Keeps the gap if it is among the longest of the host's. */
static void gap_keep(struct idle *idle, const struct gap *gap)
{
	size_t least = 0;

	if (!gap->host)
		return;
	if (idle->nlongest < LONGEST) {
		idle->longest[idle->nlongest++] = *gap;
		return;
	}
	for (size_t i = 1; i < LONGEST; i++)
		if (idle->longest[i].host < idle->longest[least].host)
			least = i;
	if (gap->host > idle->longest[least].host)
		idle->longest[least] = *gap;
}

static void add_gap(struct idle *idle, struct idle_device *d, const struct work *w)
{
	struct gap gap = { .start = d->busy_until,
			   .end = w->start,
			   .device = w->device,
			   .stream = w->stream,
			   .connection = w->connection,
			   .name = w->name,
			   .api = NPS_NONE,
			   .call = NPS_NONE,
			   .op = NPS_NONE };
	uint64_t ns = gap.end - gap.start;

	d->gaps++;
	d->idle += ns;
	if (!w->submit) {
		d->unknown += ns;
		return;
	}
	gap.host = w->submit > gap.start ? NPS_MIN(w->submit, gap.end) - gap.start : 0;
	d->host += gap.host;
	d->queued += ns - gap.host;
	gap_keep(idle, &gap);
}

static void add_work(struct idle *idle, const struct work *w)
{
	struct idle_device *d = &idle->devices[w->device];

	if (!d->used)
		d->first = d->busy_until = w->start;
	d->used = true;
	if (w->start > d->busy_until)
		add_gap(idle, d, w);
	d->busy_until = NPS_MAX(d->busy_until, w->end);
	if (!w->kernel)
		return;
	d->kernels++;
	d->kernel_ns += nps_span(w->start, w->end);
	if (!w->submit)
		return;
	if (!d->submissions++)
		d->first_submit = d->last_submit = w->submit;
	d->first_submit = NPS_MIN(d->first_submit, w->submit);
	d->last_submit = NPS_MAX(d->last_submit, w->submit);
}

/* Copies without a row of details are copies, too. */
static bool row_is_copy(const struct nps_model *m, size_t i)
{
	return m->task.class[i] == NPS_CLASS_MEMCPY ||
	       (m->task.class[i] == NPS_CLASS_OTHER &&
		!strcmp(nps_model__text(m, m->task.type[i]), "MEMCPY_ASYNC"));
}

static void idle_add_task(struct idle *idle, size_t i)
{
	const struct nps_task_table *t = &idle->m->task;
	struct work w = { .start = t->start[i],
			  .end = t->end[i],
			  .device = t->device[i],
			  .stream = t->stream[i],
			  .connection = t->connection[i],
			  .name = t->name[i],
			  .kernel = t->class[i] == NPS_CLASS_COMPUTE };

	if (!w.kernel && t->class[i] != NPS_CLASS_COMM && !row_is_copy(idle->m, i))
		return;
	if (w.device >= NPS_FIND_DEVICES)
		return;
	idle->any = true;
	if (t->source[i] == NPS_TIME_HOST_BOUNDS) {
		idle->unmeasured++;
		return;
	}
	w.submit = nps_submits__of_task(idle->submits, i);
	add_work(idle, &w);
}

static void idle_add_collective(struct idle *idle, size_t i)
{
	const struct nps_comm_op_table *t = &idle->m->comm_op;
	struct work w = { .start = t->start[i],
			  .end = t->end[i],
			  .device = t->device[i],
			  .stream = NPS_NONE,
			  .connection = t->connection[i],
			  .name = t->name[i] };

	if (w.device >= NPS_FIND_DEVICES)
		return;
	idle->any = true;
	if (t->tasks[i] && !t->measured[i]) {
		idle->unmeasured++;
		return;
	}
	w.submit = nps_submits__of_connection(idle->submits, w.connection, w.start);
	add_work(idle, &w);
}

/* Tasks and collectives together by start; of equal ones the task first: its submission is known better. */
static void idle_walk(struct idle *idle)
{
	const struct nps_model *m = idle->m;
	struct nps_pace pace = { .model = m };
	size_t task = 0, op = 0;

	while (task < m->task.t.len || op < m->comm_op.t.len) {
		nps_pace__step(&pace);
		nps_submits__step(idle->submits, task + op);
		if (op == m->comm_op.t.len ||
		    (task < m->task.t.len && m->task.start[task] <= m->comm_op.start[op]))
			idle_add_task(idle, task++);
		else
			idle_add_collective(idle, op++);
	}
}

static void sort_gaps(struct idle *idle)
{
	for (size_t i = 0; i < idle->nlongest; i++)
		idle->last_end = NPS_MAX(idle->last_end, idle->longest[i].end);
	for (size_t i = 1; i < idle->nlongest; i++)
		for (size_t k = i; k && idle->longest[k].start < idle->longest[k - 1].start; k--) {
			struct gap swap = idle->longest[k];

			idle->longest[k] = idle->longest[k - 1];
			idle->longest[k - 1] = swap;
		}
}

/*
 * The share of [START, END] in the host's part of a gap, if it explains more than LONGEST: of those that
 * cover most of it the one that began last, which is the innermost; else the longest. Otherwise 0.
 */
static uint64_t causing_share(const struct gap *gap, uint64_t start, uint64_t end, uint64_t longest)
{
	uint64_t from = NPS_MAX(start, gap->start), to = NPS_MIN(end, gap->start + gap->host);
	uint64_t ns = to > from ? to - from : 0;

	return 2 * ns >= gap->host || (2 * longest < gap->host && ns >= longest) ? ns : 0;
}

/* Calls the function for each gap that [start, end] touches. */
static void with_gaps(struct idle *idle, uint64_t start, uint64_t end, size_t row,
		      void (*fn)(const struct nps_model *m, struct gap *gap, size_t row))
{
	if (end <= idle->longest[0].start || start >= idle->last_end)
		return;
	for (size_t g = 0; g < idle->nlongest; g++)
		if (end > idle->longest[g].start && start < idle->longest[g].end)
			fn(idle->m, &idle->longest[g], row);
}

static void gap_note_api(const struct nps_model *m, struct gap *gap, size_t row)
{
	uint64_t ns = causing_share(gap, m->api.start[row], m->api.end[row], gap->api_ns);

	if (m->api.connection[row] == gap->connection && gap->connection != NPS_NO_ID)
		gap->launcher = m->api.gtid[row];
	if (ns) {
		gap->api = row;
		gap->api_ns = ns;
	}
}

static void gap_note_op(const struct nps_model *m, struct gap *gap, size_t row)
{
	uint64_t ns = causing_share(gap, m->torch.start[row], m->torch.end[row], gap->op_ns);

	if (ns && strncmp(nps_model__text(m, m->torch.name[row]), "ProfilerStep#", 13)) {
		gap->op = row;
		gap->op_ns = ns;
	}
}

/*
 * Only calls of the thread that was busy with the operator or, without one, of the thread that launched:
 * others that sleep all the time explain nothing.
 */
static void gap_note_call(const struct nps_model *m, struct gap *gap, size_t row)
{
	uint64_t thread = gap->op != NPS_NONE ? m->torch.gtid[gap->op] : gap->launcher, ns;

	if (m->osrt.gtid[row] != thread)
		return;
	ns = causing_share(gap, m->osrt.start[row], m->osrt.end[row], gap->call_ns);
	if (ns) {
		gap->call = row;
		gap->call_ns = ns;
	}
}

/* What the host did in the gaps. */
static void explain_gaps(struct idle *idle)
{
	const struct nps_model *m = idle->m;
	struct nps_pace pace = { .model = m };

	if (!idle->nlongest)
		return;
	for (size_t i = 0; i < m->api.t.len; i++) {
		nps_pace__step(&pace);
		with_gaps(idle, m->api.start[i], m->api.end[i], i, gap_note_api);
	}
	for (size_t i = 0; i < m->torch.t.len; i++) {
		nps_pace__step(&pace);
		if (m->torch.type[i] == NPS_API_TORCH_OP)
			with_gaps(idle, m->torch.start[i], m->torch.end[i], i, gap_note_op);
	}
	for (size_t i = 0; i < m->osrt.t.len; i++) {
		nps_pace__step(&pace);
		with_gaps(idle, m->osrt.start[i], m->osrt.end[i], i, gap_note_call);
	}
}

/* What the host did in it longest: ROW of TABLE, unless it is NPS_NONE. */
#define DID(C, key, title, table, row, ns, at)                                                               \
	C(key ".name", TEXT, title, (row) == NPS_NONE ? NULL : nps_model__text(m, m->table.name[row]),       \
	  .optional = true, .print = (at))                                                                   \
	C(key ".thread", COUNT, NULL, (row) == NPS_NONE ? NPS_NAN : m->table.gtid[row] & UINT32_MAX,         \
	  .optional = true)                                                                                  \
	C(key ".within_us", US, "for", (row) == NPS_NONE ? NPS_NAN : (ns) / 1e3, .optional = true,           \
	  .print = (at) + 1)

#define GAP_COLUMNS(C)                                                                                       \
	C("device", COUNT, "NPU", r->device)                                                                 \
	C("start_us", TIME, "at, ms", r->start)                                                              \
	C("end_us", TIME, NULL, r->end)                                                                      \
	C("host_us", NS, "host too late", r->host)                                                           \
	C("next_task", TEXT, "next", nps_model__text(m, r->name))                                            \
	C("next_stream", COUNT, NULL, r->stream == NPS_NONE ? NPS_NAN : r->stream, .optional = true)         \
	C("launching_thread", COUNT, NULL, r->launcher ? r->launcher &UINT32_MAX : NPS_NAN,                  \
	  .optional = true)                                                                                  \
	DID(C, "host_call", "CANN call", api, r->api, r->api_ns, 7)                                          \
	DID(C, "torch_op", "torch operator", torch, r->op, r->op_ns, 5)                                      \
	DID(C, "system_call", "system call", osrt, r->call, r->call_ns, 9)

NPS_FIND_TABLE(gaps, "idle.longest_gaps", "longest gaps that the host caused, by time, us", struct nps_model,
	       struct gap, GAP_COLUMNS)

static const struct gap *longest_of(const struct idle *idle, uint32_t device)
{
	const struct gap *longest = NULL;

	for (size_t i = 0; i < idle->nlongest; i++)
		if (idle->longest[i].device == device && (!longest || idle->longest[i].host > longest->host))
			longest = &idle->longest[i];
	return longest;
}

/* ", mostly in NAME": the innermost of what covers most of the gap. */
static void mostly(const struct nps_model *m, const struct gap *gap, char *out, size_t size)
{
	const char *name = NULL;

	if (gap->call != NPS_NONE && 2 * gap->call_ns >= gap->host)
		name = nps_model__text(m, m->osrt.name[gap->call]);
	else if (gap->api != NPS_NONE && 2 * gap->api_ns >= gap->host)
		name = nps_model__text(m, m->api.name[gap->api]);
	else if (gap->op != NPS_NONE && 2 * gap->op_ns >= gap->host)
		name = nps_model__text(m, m->torch.name[gap->op]);
	*out = 0;
	if (name)
		snprintf(out, size, ", mostly in %.*s", (int)nps_utf8_fit(name, 128), name);
}

static int host_bound(struct nps_find *find, const struct idle *idle, uint32_t device)
{
	const struct idle_device *d = &idle->devices[device];
	const struct gap *gap = longest_of(idle, device);
	double span = (d->busy_until - d->first) / 1e3, host = d->host / 1e3;
	char in[160];
	cJSON *numbers;

	if (!gap || span <= 0 || host < ENOUGH * span)
		return 0;
	mostly(idle->m, gap, in, sizeof(in));
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "device_span_us", span);
	nps_find__number(numbers, "idle_us", d->idle / 1e3);
	nps_find__number(numbers, "host_bound_us", host);
	cJSON_AddNumberToObject(numbers, "gaps", (double)d->gaps);
	return nps_find__add(
		find, "host_bound", nps_find__share(find, host), numbers,
		nps_find__object(&gaps, idle->m, gap),
		"the device had nothing queued: look at what the host did in the longest gaps; fewer or "
		"larger operators, graph mode, or less synchronisation keep the queue filled",
		"NPU %u stood idle for %.1f %% of its time (%.1f us) because the host had not launched the "
		"next task; the longest such gap took %.1f us%s",
		device, 100 * host / span, host, gap->host / 1e3, in);
}

/* Without kernels, or with a single submission, NaN. */
static double mean_kernel(const struct idle_device *d)
{
	return d->kernels ? d->kernel_ns / 1e3 / d->kernels : NPS_NAN;
}

static double launch_interval(const struct idle_device *d)
{
	return d->submissions > 1 ? (d->last_submit - d->first_submit) / 1e3 / (d->submissions - 1) : NPS_NAN;
}

static int launch_bound(struct nps_find *find, const struct idle *idle, uint32_t device)
{
	const struct idle_device *d = &idle->devices[device];
	double span = (d->busy_until - d->first) / 1e3, kernel, interval;
	cJSON *numbers;

	if (d->submissions < 100 || !d->kernels || span <= 0)
		return 0;
	kernel = mean_kernel(d);
	interval = launch_interval(d);
	if (kernel >= interval || d->host / 1e3 < ENOUGH * span)
		return 0;
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "mean_kernel_us", kernel);
	nps_find__number(numbers, "mean_launch_interval_us", interval);
	cJSON_AddNumberToObject(numbers, "kernels", (double)d->kernels);
	return nps_find__add(
		find, "launch_bound", nps_find__share(find, d->host / 1e3 * (1 - kernel / interval)), numbers,
		NULL,
		"kernels are shorter than the host needs to launch the next: fuse operators, enlarge the "
		"batch or capture a graph",
		"kernels of NPU %u take %.2f us on average, but the host launches one only every %.2f us",
		device, kernel, interval);
}

#define DEVICE_COLUMNS(C)                                                                                    \
	C("device", COUNT, "NPU", r - m->devices)                                                            \
	C("span_us", NS, "span", r->busy_until - r->first)                                                   \
	C("idle_us", NS, "idle", r->idle)                                                                    \
	C("host_bound_us", NS, "host too late", r->host)                                                     \
	C("device_side_us", NS, "on device", r->queued)                                                      \
	C("unknown_us", NS, "unknown", r->unknown)                                                           \
	C("gaps", COUNT, "gaps", r->gaps)                                                                    \
	C("kernels", COUNT, "kernels", r->kernels)                                                           \
	C("mean_kernel_us", US, "mean kernel", mean_kernel(r))                                               \
	C("mean_launch_interval_us", US, "launch every", launch_interval(r))

NPS_FIND_TABLE(devices, "idle.devices", "devices, us", struct idle, struct idle_device, DEVICE_COLUMNS)

static int idle_find(struct nps_find *find)
{
	struct idle idle = { .m = find->model, .submits = &find->submits };
	cJSON *list;
	int err = 0;

	idle_walk(&idle);
	if (!idle.any)
		return 0;
	sort_gaps(&idle);
	explain_gaps(&idle);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(find->document, "idle"), "tasks_left_out",
				(double)idle.unmeasured);
	list = nps_find__rows(find->document, &devices, &idle, NULL, 0, 0);
	for (uint32_t d = 0; !err && d < NPS_FIND_DEVICES; d++) {
		if (!idle.devices[d].used)
			continue;
		cJSON_AddItemToArray(list, nps_find__object(&devices, &idle, &idle.devices[d]));
		err = host_bound(find, &idle, d);
		err = err ? err : launch_bound(find, &idle, d);
	}
	nps_find__rows(find->document, &gaps, idle.m, idle.longest, idle.nlongest, sizeof(idle.longest[0]));
	return err;
}

const struct nps_find_table *const nps_find_devices = &devices;
const struct nps_find_question nps_question_idle = { .find = idle_find, .tables = { &gaps } };
