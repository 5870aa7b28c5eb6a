/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM trs_core

#if !defined(NPUSIM_TRS_CORE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NPUSIM_TRS_CORE_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(trs_logic_class,
	TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_logic_cqe *c), TP_ARGS(what, inst, c),
	TP_STRUCT__entry(__array(char, what, 16) __field(u32, devid) __field(u32, tsid) __field(u32, logic_cqid)
		__field(u32, head) __field(u32, tail) __field(u32, task_id) __field(u32, stream_id)
		__field(u32, sqid) __field(u32, sq_head) __field(u32, sqe_type) __field(u32, match_flag)
		__field(u32, errcode) __field(u32, errtype) __field(u32, drop_flag) __field(u64, timestamp)),
	TP_fast_assign(strscpy(__entry->what, what, 16); __entry->devid = inst->devid; __entry->tsid = inst->tsid;
		__entry->logic_cqid = c->logic_cqid; __entry->head = c->head; __entry->tail = c->tail;
		__entry->task_id = c->task_id; __entry->stream_id = c->stream_id; __entry->sqid = c->sqid;
		__entry->sq_head = c->sq_head; __entry->sqe_type = c->sqe_type;
		__entry->match_flag = c->match_flag; __entry->errcode = c->errcode;
		__entry->errtype = c->errtype; __entry->drop_flag = c->drop_flag;
		__entry->timestamp = c->timestamp;),
	TP_printk("%s devid=%u tsid=%u logic_cqid=%u stream_id=%u task_id=%u", __entry->what, __entry->devid,
		__entry->tsid, __entry->logic_cqid, __entry->stream_id, __entry->task_id));
DEFINE_EVENT(trs_logic_class, logic_cqe,
	TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_logic_cqe *c), TP_ARGS(what, inst, c));
DEFINE_EVENT(trs_logic_class, logic_cq_recv,
	TP_PROTO(const char *what, struct trs_id_inst *inst, struct trs_trace_logic_cqe *c), TP_ARGS(what, inst, c));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trs_core_trace
#include <trace/define_trace.h>
