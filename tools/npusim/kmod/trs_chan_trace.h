/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM trs_chan

#if !defined(NPUSIM_TRS_CHAN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NPUSIM_TRS_CHAN_TRACE_H

#include <linux/tracepoint.h>

#ifndef NPUSIM_TRS_TRACE_STRUCTS
#define NPUSIM_TRS_TRACE_STRUCTS
struct trs_trace_sqe {
	u32 sqid, status, sq_head, sq_tail, chan_id, chan_type, sub_type, type, task_id, stream_id;
};
struct trs_trace_cqe {
	u32 cqid, cq_head, round, chan_id, type, sub_type, task_id, sq_id, sq_head, stream_id;
};
struct trs_trace_logic_cqe {
	u32 logic_cqid, head, tail, task_id, stream_id, sqid, sq_head, sqe_type, match_flag, errcode, errtype;
	u32 drop_flag;
	u64 timestamp;
};
#endif

TRACE_EVENT(sqe, TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_sqe *s), TP_ARGS(what, inst, s),
	TP_STRUCT__entry(__array(char, what, 16) __field(u32, devid) __field(u32, tsid) __field(u32, sqid)
		__field(u32, status) __field(u32, sq_head) __field(u32, sq_tail) __field(u32, chan_id)
		__field(u32, chan_type) __field(u32, sub_type) __field(u32, type) __field(u32, task_id)
		__field(u32, stream_id)),
	TP_fast_assign(strscpy(__entry->what, what, 16); __entry->devid = inst->devid; __entry->tsid = inst->tsid;
		__entry->sqid = s->sqid; __entry->status = s->status; __entry->sq_head = s->sq_head;
		__entry->sq_tail = s->sq_tail; __entry->chan_id = s->chan_id; __entry->chan_type = s->chan_type;
		__entry->sub_type = s->sub_type; __entry->type = s->type; __entry->task_id = s->task_id;
		__entry->stream_id = s->stream_id;),
	TP_printk("%s devid=%u tsid=%u sqid=%u type=%u stream_id=%u task_id=%u", __entry->what, __entry->devid,
		__entry->tsid, __entry->sqid, __entry->type, __entry->stream_id, __entry->task_id));

DECLARE_EVENT_CLASS(trs_cqe_class, TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_cqe *c),
	TP_ARGS(what, inst, c),
	TP_STRUCT__entry(__array(char, what, 16) __field(u32, devid) __field(u32, tsid) __field(u32, cqid)
		__field(u32, cq_head) __field(u32, round) __field(u32, chan_id) __field(u32, type)
		__field(u32, sub_type) __field(u32, task_id) __field(u32, sq_id) __field(u32, sq_head)
		__field(u32, stream_id)),
	TP_fast_assign(strscpy(__entry->what, what, 16); __entry->devid = inst->devid; __entry->tsid = inst->tsid;
		__entry->cqid = c->cqid; __entry->cq_head = c->cq_head; __entry->round = c->round;
		__entry->chan_id = c->chan_id; __entry->type = c->type; __entry->sub_type = c->sub_type;
		__entry->task_id = c->task_id; __entry->sq_id = c->sq_id; __entry->sq_head = c->sq_head;
		__entry->stream_id = c->stream_id;),
	TP_printk("%s devid=%u tsid=%u cqid=%u stream_id=%u task_id=%u", __entry->what, __entry->devid, __entry->tsid,
		__entry->cqid, __entry->stream_id, __entry->task_id));
DEFINE_EVENT(trs_cqe_class, cqe, TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_cqe *c),
	TP_ARGS(what, inst, c));
DEFINE_EVENT(trs_cqe_class, recv, TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_cqe *c),
	TP_ARGS(what, inst, c));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trs_chan_trace
#include <trace/define_trace.h>
