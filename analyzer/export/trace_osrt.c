/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls, with what explains them. */
#include "event.h"
#include "export/run_names.h"
#include "export/trace_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FUTEX_COMMAND 0x7f /* above it are flags */

static void put_i64(struct nps_writer *w, const char *key, int64_t value)
{
	nps_writer__lit(w, key);
	nps_writer__i64(w, value);
}

static void put_hex_arg(struct nps_writer *w, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	nps_trace__string(w, key, text);
}

static void put_time(struct nps_writer *w, uint64_t ns)
{
	if (ns == UINT64_MAX) {
		nps_writer__lit(w, ",\"timeout_us\":\"none\"");
		return;
	}
	nps_writer__lit(w, ",\"timeout_us\":");
	nps_writer__us(w, ns);
}

static const char *futex_name(uint64_t operation)
{
	static const char *const names[] = { "WAIT",	       "WAKE",	      "FD",
					     "REQUEUE",	       "CMP_REQUEUE", "WAKE_OP",
					     "LOCK_PI",	       "UNLOCK_PI",   "TRYLOCK_PI",
					     "WAIT_BITSET",    "WAKE_BITSET", "WAIT_REQUEUE_PI",
					     "CMP_REQUEUE_PI", "LOCK_PI2" };

	operation &= FUTEX_COMMAND;
	return operation < NPS_ARRAY_SIZE(names) ? names[operation] : "unknown";
}

static void put_wait_args(struct nps_trace *t, size_t row)
{
	static const char *const kinds[] = NPS_LOCK_NAMES;
	const struct nps_osrt_table *osrt = &t->m->osrt;
	uint8_t kind = osrt->lock[row];

	if (kind == NPS_LOCK_NONE || kind >= NPS_ARRAY_SIZE(kinds))
		return;
	nps_trace__string(&t->w, ",\"lock\":", kinds[kind]);
	if (osrt->holder[row])
		nps_trace__u64(&t->w, kind == NPS_LOCK_JOIN ? ",\"waited_for\":" : ",\"holder\":",
			       osrt->holder[row]);
	else
		nps_writer__lit(&t->w, ",\"holder\":\"unknown\"");
	if (osrt->waker[row])
		nps_trace__u64(&t->w, ",\"woken_by\":", osrt->waker[row]);
}

static void put_shape(struct nps_trace *t, size_t row)
{
	const struct nps_osrt_table *osrt = &t->m->osrt;
	struct nps_writer *w = &t->w;

	switch (osrt->shape[row]) {
	case NPS_OS_BYTES:
		put_i64(w, ",\"fd\":", (int32_t)osrt->arg0[row]);
		if (osrt->result[row] >= 0 && !osrt->unfinished[row])
			put_i64(w, ",\"bytes\":", osrt->result[row]);
		break;
	case NPS_OS_IOCTL:
		put_i64(w, ",\"fd\":", (int32_t)osrt->arg0[row]);
		put_hex_arg(w, ",\"cmd\":", osrt->arg1[row] & UINT32_MAX);
		nps_writer__lit(w, osrt->fd_kind[row] & NPS_F_NPU_NODE ? ",\"npu\":true" : ",\"npu\":false");
		break;
	case NPS_OS_OPEN:
		nps_trace__string(w, ",\"path\":",
				  osrt->path[row] == NPS_NONE ? "unknown"
							      : nps_trace__text(t, osrt->path[row]));
		break;
	case NPS_OS_MAP:
		nps_trace__u64(w, ",\"length\":", osrt->arg1[row]);
		break;
	case NPS_OS_FUTEX:
		nps_trace__string(w, ",\"op\":", futex_name(osrt->arg1[row]));
		put_hex_arg(w, ",\"address\":", osrt->arg0[row]);
		put_wait_args(t, row);
		break;
	case NPS_OS_WAIT_FD:
		put_i64(w, ",\"fd\":", (int32_t)osrt->arg0[row]);
		put_time(w, osrt->arg2[row]);
		break;
	case NPS_OS_WAIT:
		put_time(w, osrt->arg2[row]);
		break;
	default:
		break;
	}
	if (osrt->fd_kind[row] & NPS_F_SOCKET)
		nps_writer__lit(w, ",\"socket\":true");
}

/* What an address or a descriptor is, or which error it was. */
static void put_result(struct nps_writer *w, int64_t result, bool address)
{
	const char *error = result < 0 && result >= -4095 ? strerrorname_np((int)-result) : NULL;

	if (error)
		nps_trace__string(w, "\"error\":", error);
	else if (address)
		put_hex_arg(w, "\"result\":", (uint64_t)result);
	else
		put_i64(w, "\"result\":", result);
}

static void put_args(struct nps_trace *t, size_t row)
{
	const struct nps_osrt_table *osrt = &t->m->osrt;
	struct nps_writer *w = &t->w;

	nps_writer__lit(w, ",\"args\":{");
	if (osrt->shape[row] == NPS_OS_FAULT) {
		put_hex_arg(w, "\"address\":", osrt->arg0[row]);
	} else if (osrt->unfinished[row]) {
		nps_trace__string(w, "\"end\":", nps_call__ending(NPS_ENDING_UNFINISHED));
		put_shape(t, row);
	} else {
		put_result(w, osrt->result[row], osrt->shape[row] == NPS_OS_MAP);
		put_shape(t, row);
	}
	nps_writer__lit(w, "}");
}

void nps_trace__osrt(struct nps_trace *t, const struct nps_item *item)
{
	nps_trace__item(t, item, nps_trace__pid(t, NPS_TRACE_OSRT, 0));
	if (t->m->osrt.shape[item->row] != NPS_OS_UNKNOWN)
		put_args(t, item->row);
	nps_trace__end(&t->w);
}
