/* SPDX-License-Identifier: BSD-2-Clause */
/* Layers of the host: CANN, OS Runtime API, MsTx (outputs 2.4). */
#include "export/run_names.h"
#include "export/trace_event.h"

#include "model/python_launch.h"

static int scan_calls(struct nps_trace *t)
{
	const struct nps_api_table *api = &t->m->api;
	int err = 0;

	for (size_t i = 0; !err && i < api->t.len; i++) {
		err = nps_trace_lanes__add(&t->cann, 0, api->gtid[i]);
		if (!err && api->connection[i] != NPS_NO_ID)
			err = nps_trace_bits__set(&t->offered, api->connection[i]);
		nps_pace__step(&t->pace);
	}
	return err;
}

static int scan_marks(struct nps_trace *t)
{
	const struct nps_mstx_table *mstx = &t->m->mstx;
	int err = 0;

	for (size_t i = 0; !err && i < mstx->t.len; i++) {
		err = nps_trace_lanes__add(&t->mstx, 0, mstx->gtid[i]);
		if (!err && mstx->connection[i] != NPS_NO_ID)
			err = nps_trace_bits__set(&t->marks, mstx->connection[i]);
		nps_pace__step(&t->pace);
	}
	return err;
}

int nps_trace__scan_host(struct nps_trace *t)
{
	const struct nps_osrt_table *osrt = &t->m->osrt;
	int err = scan_calls(t);

	if (err)
		return err;
	err = scan_marks(t);
	for (size_t i = 0; !err && i < osrt->t.len; i++) {
		err = nps_trace_lanes__add(&t->osrt, 0, osrt->gtid[i]);
		nps_pace__step(&t->pace);
	}
	for (size_t i = 0; !err && i < t->m->driver.t.len; i++)
		err = nps_trace_lanes__add(&t->driver, 0, t->m->driver.gtid[i]);
	return err;
}

void nps_trace__name_host(struct nps_trace *t)
{
	/* Also if it stays empty: a card must not begin with a scheduling layer. */
	if (t->pruned && t->gen_a)
		nps_trace__name_layer_as(t, NPS_TRACE_CANN, t->device, NULL);
	else
		nps_trace__name_layer(t, NPS_TRACE_CANN, t->device);
	if (!t->pruned || t->gen_a)
		nps_trace__name_lanes(t, &t->cann, NPS_TRACE_CANN, "Thread", true);
	if (t->m->mstx.t.len) {
		const char *name = nps_trace__text(t, t->m->process);

		nps_trace__name_layer_as(t, NPS_TRACE_MSTX, t->device, *name ? name : "MsTx");
		nps_trace__name_lanes(t, &t->mstx, NPS_TRACE_MSTX, "Thread", true);
	}
}

void nps_trace__name_osrt(struct nps_trace *t)
{
	if (t->m->osrt.t.len)
		nps_trace__name_layer(t, NPS_TRACE_OSRT, t->device);
	nps_trace__name_lanes(t, &t->osrt, NPS_TRACE_OSRT, "Thread", false);
	if (t->m->driver.t.len)
		nps_trace__name_layer(t, NPS_TRACE_DRIVER, t->device);
	nps_trace__name_lanes(t, &t->driver, NPS_TRACE_DRIVER, "Thread", false);
}

/* --- CANN --- */

static const char *acl_mode(const char *name)
{
	return !strncmp(name, "aclnn", 5)   ? "ACL_NN"
	       : !strncmp(name, "Hccl", 4)  ? "HOST_HCCL"
	       : !strncmp(name, "aclop", 5) ? "ACL_OP"
					    : "ACL_RTS";
}

/* Begins the event and returns what `level` calls its layer. */
static const char *call_layer(struct nps_writer *w, uint32_t type, bool gen_a)
{
	nps_writer__item(w);
	switch (type) {
	case NPS_API_RUNTIME:
		nps_writer__lit(w, "{\"name\":\"Runtime@");
		return "runtime";
	case NPS_API_NODE:
		nps_writer__lit(w, "{\"name\":\"Node@");
		return "node";
	case NPS_API_MODEL:
		nps_writer__lit(w, "{\"name\":\"Model@");
		return "model";
	case NPS_API_COMM:
		if (gen_a) {
			nps_writer__lit(w, "{\"name\":\"Hccl@");
			return "hccl";
		}
		nps_writer__lit(w, "{\"name\":\"Communication@");
		return "communication";
	}
	nps_writer__lit(w, "{\"name\":\"AscendCL@");
	return "acl";
}

/* The operator of a node: as recorded, else that of the kernel that it launched. */
static const char *item_of(struct nps_trace *t, size_t row)
{
	uint32_t item = t->m->api.item[row], kernel;

	if (item != NPS_NONE)
		return nps_trace__text(t, item);
	kernel = nps_trace_rows__get(&t->kernel_of, t->m->api.connection[row]);
	return kernel == NPS_NONE ? "0" : nps_trace__text(t, t->m->task.name[kernel]);
}

static void call_args(struct nps_trace *t, size_t row, const char *level, const char *name)
{
	const struct nps_api_table *api = &t->m->api;
	uint32_t type = api->type[row], mode = api->mode[row], python;
	struct nps_writer *w = &t->w;

	nps_trace__u64(w, ",\"args\":{\"Thread Id\":", (uint32_t)api->gtid[row]);
	nps_trace__string(w, ",\"Mode\":",
			  mode != NPS_NONE	 ? nps_trace__text(t, mode)
			  : *level == 'a'	 ? acl_mode(name)
			  : type == NPS_API_COMM ? "master"
						 : name);
	nps_writer__lit(w, ",\"level\":\"");
	nps_writer__lit(w, level);
	if (*level == 'a')
		nps_trace__string(w, "\",\"id\":", name);
	else
		nps_writer__lit(w, "\",\"id\":\"0\"");
	nps_trace__string(w, ",\"item_id\":",
			  type == NPS_API_COMM	 ? name
			  : type == NPS_API_NODE ? item_of(t, row)
						 : "0");
	nps_trace__u64(w, ",\"connection_id\":", api->connection[row]);
	if (nps_call__ending(api->ending[row]))
		nps_trace__string(w, ",\"end\":", nps_call__ending(api->ending[row]));
	python = nps_python_launch__find(t->m, api->connection[row]);
	if (python != NPS_NONE)
		nps_trace__string(w, ",\"python\":", nps_trace__text(t, t->m->py_launch.line[python]));
	nps_writer__lit(w, "}");
}

void nps_trace__cann(struct nps_trace *t, const struct nps_item *item)
{
	const char *name = nps_trace__text(t, item->name);
	uint64_t pid = nps_trace__pid(t, NPS_TRACE_CANN, 0);
	uint32_t tid = nps_item__tid(item), connection = item->connection;
	struct nps_writer *w = &t->w;

	if (!t->pruned) {
		const char *level = call_layer(w, t->m->api.type[item->row], t->gen_a);

		nps_writer__json_part(w, name, strlen(name));
		nps_writer__lit(w, "\"");
		nps_trace__lane(w, pid, tid);
		nps_trace__span(w, item->start, item->end);
		call_args(t, item->row, level, name);
		nps_trace__end(w);
	}
	if (connection != NPS_NO_ID && nps_trace_bits__has(&t->wanted, connection))
		nps_trace__start_links(t, connection, pid, tid, item->start);
}

/* --- MsTx --- */

static void mark_args(struct nps_trace *t, size_t row)
{
	static const char *const types[] = { "marker", "push/pop", "start/end", "marker_ex" };
	const struct nps_mstx_table *mstx = &t->m->mstx;
	const char *type = mstx->type[row] < NPS_ARRAY_SIZE(types) ? types[mstx->type[row]] : "N/A";
	struct nps_writer *w = &t->w;

	nps_writer__lit(w, ",\"args\":{");
	if (mstx->domain[row] != NPS_NONE) {
		nps_trace__string(w, "\"event_type\":", type);
		nps_trace__string(w, ",\"domain\":", nps_trace__text(t, mstx->domain[row]));
	} else {
		nps_trace__u64(w, "\"Category\":", mstx->category[row]);
		nps_writer__lit(w, ",\"Payload_type\":");
		nps_writer__i64(w, mstx->payload_type[row] == NPS_NULL ? 0 : mstx->payload_type[row]);
		nps_trace__u64(w, ",\"Payload_value\":", mstx->payload[row]);
		nps_writer__lit(w, ",\"Message_type\":");
		nps_writer__i64(w, mstx->message_type[row] == NPS_NULL ? 0 : mstx->message_type[row]);
		nps_trace__string(w, ",\"event_type\":", type);
	}
	nps_writer__lit(w, "}");
}

void nps_trace__mstx(struct nps_trace *t, const struct nps_item *item)
{
	uint64_t pid = nps_trace__pid(t, NPS_TRACE_MSTX, 0);
	uint32_t connection = item->connection;

	nps_trace__item(t, item, pid);
	mark_args(t, item->row);
	nps_trace__end(&t->w);
	/* The vendor's newer timeline begins a flow at each mark, whether or not a device came to it. */
	if (!t->gen_a || t->m->mstx.device_start[item->row] ||
	    (connection != NPS_NO_ID && nps_trace_bits__has(&t->marked, connection)))
		nps_trace__mark_link(t, connection, pid, nps_item__tid(item), item->start, true);
}
