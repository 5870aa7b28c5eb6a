/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the layers of the trace share: its state and the pieces of an event. "ph" is the
 * last key of every event, so that a viewer that looks for the ends of events is not led astray by
 * braces in a name.
 */
#ifndef NPS_TRACE_EVENT_H
#define NPS_TRACE_EVENT_H

#include "base/json_writer.h"
#include "export/export.h"
#include "export/timeline.h"
#include "export/trace_ids.h"
#include "export/counters.h"

#define NPS_TRACE_DEVICES 64 /* numbers of devices that are distinguished */

struct nps_trace;

struct nps_trace_group { /* lanes of a communication group */
	uint32_t text, device;
	uint32_t lane; /* tid of the group's lane; plane p has lane + 1 + p */
	uint32_t planes;
};

/* The latest sample of a value that holds until the next one, which is repeated at the end of the capture. */
struct nps_trace_held {
	const struct nps_counter_table *table;
	uint64_t key; /* of its device and track */
	size_t row;
};

struct nps_trace {
	const struct nps_export *ex;
	const struct nps_model *m;
	struct nps_writer w;
	struct nps_pace pace;
	bool gen_a;
	bool pruned; /* level 0: no CANN slices, no planes */
	bool own; /* not another profiler's times: each slice has the source of its time */
	uint32_t device; /* the first */
	uint64_t devices; /* a bit each */

	struct nps_timeline timeline;

	struct nps_trace_lanes cann, hardware, osrt, driver, mstx, steps;
	struct nps_trace_bits offered; /* connections of CANN calls */
	struct nps_trace_bits wanted,
		started; /* those that lead to the device, and whose start was written */
	struct nps_trace_bits copies, collectives; /* generation A: those of memcpys and collectives */
	struct nps_trace_rows kernel_of; /* generation A: the kernel of a connection */
	bool links; /* HostToDevice is written */
	struct nps_trace_bits marks, marked; /* connections of MsTx marks, and those that reach the device */
	uint32_t first_conn, last_conn; /* of what an operator may have launched */
	size_t launches;
	uint64_t last_flow; /* from an operator to the device: its id */
	uint32_t copy_type; /* text: the host's word for a memcpy */

	size_t memcpy, compute; /* next rows of details */

	uint32_t reduces; /* parts of the iteration so far */

	struct nps_vec groups; /* struct nps_trace_group */
	struct nps_map group_of;

	uint64_t counted_on[NPS_COUNTER_TABLES]; /* a bit for each device that has the counter */
	struct nps_counter_view counters;
	struct nps_vec held; /* struct nps_trace_held */

	struct nps_vec sched_lanes; /* uint32_t: runs that are the first on a lane */
	struct nps_vec
		/* uint32_t[2]: the iterations before and after of the same model, row + 1, 0 none */
		iterations;
};

/* --- pieces of events --- */

static inline uint32_t nps_trace__device(const struct nps_trace *t, uint32_t device)
{
	return device < NPS_TRACE_DEVICES ? device : t->device;
}

/* pid of LAYER; DEVICE does not matter to layers of the host. */
uint64_t nps_trace__pid(const struct nps_trace *t, enum nps_trace_layer layer, uint32_t device);

static inline const char *nps_trace__text(const struct nps_trace *t, uint32_t id)
{
	return nps_strings__get(t->m->strings, id);
}

static inline void nps_trace__u64(struct nps_writer *w, const char *key, uint64_t value)
{
	nps_writer__lit(w, key);
	nps_writer__u64(w, value);
}

static inline void nps_trace__string(struct nps_writer *w, const char *key, const char *value)
{
	nps_writer__lit(w, key);
	nps_writer__json(w, value);
}

/* Begins an event: its name and lane. */
static inline void nps_trace__lane(struct nps_writer *w, uint64_t pid, uint64_t tid)
{
	nps_trace__u64(w, ",\"pid\":", pid);
	nps_trace__u64(w, ",\"tid\":", tid);
}

static inline void nps_trace__begin(struct nps_writer *w, const char *name, uint64_t pid, uint64_t tid)
{
	nps_writer__item(w);
	nps_trace__string(w, "{\"name\":", *name ? name : " "); /* as the databases have it */
	nps_trace__lane(w, pid, tid);
}

static inline void nps_trace__at(struct nps_writer *w, uint64_t time)
{
	nps_writer__lit(w, ",\"ts\":\"");
	nps_writer__time(w, time);
	nps_writer__lit(w, "\"");
}

static inline void nps_trace__span(struct nps_writer *w, uint64_t start, uint64_t end)
{
	nps_writer__lit(w, ",\"ts\":\"");
	nps_writer__time(w, start);
	nps_writer__lit(w, "\",\"dur\":");
	if (end > start)
		nps_writer__us(w, end - start);
	else
		nps_writer__lit(w, "0");
}

/* A slice of TABLE's row is begun: name, lane, time. */
static inline void nps_trace__slice(struct nps_writer *w, const char *name, uint64_t pid, uint64_t tid,
				    uint64_t start, uint64_t end)
{
	nps_trace__begin(w, name, pid, tid);
	nps_trace__span(w, start, end);
}

/* The slice of ITEM is begun, on its lane of the layer whose pid is PID. */
static inline void nps_trace__item(struct nps_trace *t, const struct nps_item *item, uint64_t pid)
{
	nps_trace__slice(&t->w, nps_trace__text(t, item->name), pid, nps_item__tid(item), item->start,
			 item->end);
}

static inline void nps_trace__end(struct nps_writer *w)
{
	nps_writer__lit(w, ",\"ph\":\"X\"}");
}

/* The rows that name a layer, and a thread of it. */
void nps_trace__name_layer(struct nps_trace *t, enum nps_trace_layer layer, uint32_t device);
void nps_trace__name_layer_as(struct nps_trace *t, enum nps_trace_layer layer, uint32_t device,
			      const char *name);
void nps_trace__name_thread(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *name);
void nps_trace__sort_thread(struct nps_writer *w, uint64_t pid, uint64_t tid, uint64_t index);
/* A row each of LANES: "PREFIX tid", with a sort index if SORTED. */
void nps_trace__name_lanes(struct nps_trace *t, const struct nps_trace_lanes *lanes,
			   enum nps_trace_layer layer, const char *prefix, bool sorted);

/* An end of a flow of category CAT whose name is PREFIX and ID. */
void nps_trace__flow(struct nps_trace *t, const char *cat, const char *prefix, unsigned __int128 id,
		     uint64_t pid, uint64_t tid, uint64_t time, bool begin);

/* Where a time came from, as arguments. */
void nps_trace__time_source(struct nps_trace *t, uint8_t source, size_t task);

/* --- layers: what they contain is found first, then lanes are named, then events merged --- */

int nps_trace__scan_links(struct nps_trace *t);
/* How many connections there are, roughly: calls that launch nothing have one too. */
size_t nps_trace__connections(const struct nps_trace *t);
bool nps_trace__is_launch(const struct nps_trace *t, size_t task);
void nps_trace__start_links(struct nps_trace *t, uint32_t connection, uint64_t pid, uint64_t tid,
			    uint64_t time);
void nps_trace__end_link(struct nps_trace *t, size_t task, uint64_t pid, uint64_t tid);
void nps_trace__end_comm_link(struct nps_trace *t, size_t op, uint64_t pid, uint64_t tid);
void nps_trace__mark_link(struct nps_trace *t, uint32_t connection, uint64_t pid, uint64_t tid, uint64_t time,
			  bool begin);

int nps_trace__scan_host(struct nps_trace *t);
void nps_trace__name_host(struct nps_trace *t);
void nps_trace__name_osrt(struct nps_trace *t);
void nps_trace__cann(struct nps_trace *t, const struct nps_item *item);
void nps_trace__osrt(struct nps_trace *t, const struct nps_item *item);
void nps_trace__driver(struct nps_trace *t, const struct nps_item *item);
void nps_trace__mstx(struct nps_trace *t, const struct nps_item *item);

int nps_trace__scan_device(struct nps_trace *t);
void nps_trace__name_device(struct nps_trace *t);
void nps_trace__name_overlap(struct nps_trace *t);
void nps_trace__task(struct nps_trace *t, const struct nps_item *item);
void nps_trace__overlap(struct nps_trace *t, const struct nps_item *item);
void nps_trace__device_mark(struct nps_trace *t, const struct nps_item *item);

int nps_trace__scan_steps(struct nps_trace *t);
void nps_trace__name_steps(struct nps_trace *t);
void nps_trace__iteration(struct nps_trace *t, const struct nps_item *item);
void nps_trace__iteration_part(struct nps_trace *t, const struct nps_item *item);

int nps_trace__scan_comm(struct nps_trace *t);
void nps_trace__name_comm(struct nps_trace *t);
void nps_trace__comm_op(struct nps_trace *t, const struct nps_item *item);
void nps_trace__comm_task(struct nps_trace *t, const struct nps_item *item);
/* tid of the group of a collective. */
uint32_t nps_trace__comm_lane(const struct nps_trace *t, const struct nps_item *item);

int nps_trace__scan_counters(struct nps_trace *t);
void nps_trace__sample(struct nps_trace *t, const struct nps_item *item);
void nps_trace__name_counters(struct nps_trace *t);
void nps_trace__close_counters(struct nps_trace *t);

int nps_trace__scan_sched(struct nps_trace *t);
int nps_trace__name_sched(struct nps_trace *t);
/* An interval of the scheduler, or an interrupt. */
void nps_trace__sched(struct nps_trace *t, const struct nps_item *item);

/* The framework's blocks before msprof's events, and its flows to the device after them. */
int nps_trace__torch(struct nps_trace *t);
int nps_trace__torch_to_npu(struct nps_trace *t);

#endif
