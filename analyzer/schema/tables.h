/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The columns of the model's tables. Where a table of the vendor's database (outputs 4) has the same
 * content, columns have its units: ns, bytes, B/s, MHz. `task` columns of the detail tables are row numbers
 * of the task table and ascend, so that a task and its details are walked side by side.
 */
#ifndef NPS_TABLES_H
#define NPS_TABLES_H

#include "schema/counter_tables.h"
#include "schema/driver_tables.h"
#include "schema/os_tables.h"
#include "schema/table.h"
#include "schema/tables_host.h"

#define NPS_NO_ID 4294967295U /* the vendor's "none": model, context, rank, connection */
#define NPS_NO_NOTIFY INT64_MAX

/* --- what ran on the device, by start ---------------------------------------------------------------- */

enum nps_task_class {
	NPS_CLASS_OTHER, /* events, notifies, ... */
	NPS_CLASS_COMPUTE, /* has a row in `compute` */
	NPS_CLASS_MEMCPY, /* has a row in `memcpy` */
	NPS_CLASS_EVENT, /* event record or wait */
	NPS_CLASS_COMM, /* part of a collective: has a row in `comm_task` */
	NPS_CLASS_PARENT /* of FFTS+ tasks: in the database, not in the trace (outputs 8, D14) */
};

enum nps_time_source {
	NPS_TIME_IMPORTED, /* another profiler measured it */
	NPS_TIME_DEVICE_LOG,
	NPS_TIME_HOST_BOUNDS /* has a row in `bounds` */
};

/*
 * connection: of the CANN call, NPS_NO_ID none. id: globalTaskId. type: the host's word for it
 * (KERNEL_AIVEC), hw_type: the device's (AI_CORE). name: what the hardware lane shows. step: row of `step`
 * or NPS_NONE.
 */
#define NPS_TASK_COLUMNS(C)                                                                                  \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, device)                                                                                       \
	C(u32, connection)                                                                                   \
	C(u32, id)                                                                                           \
	C(u32, pid)                                                                                          \
	C(text, type)                                                                                        \
	C(u32, context)                                                                                      \
	C(u32, stream)                                                                                       \
	C(u32, task)                                                                                         \
	C(u32, model)                                                                                        \
	C(u32, batch)                                                                                        \
	C(text, name)                                                                                        \
	C(text, kernel)                                                                                      \
	C(text, hw_type)                                                                                     \
	C(time, submit)                                                                                      \
	C(u32, step)                                                                                         \
	C(u8, class)                                                                                         \
	C(u8, source)

/* Kernels. Texts that are not known are NPS_NONE. core: AI_CORE, AI_VECTOR_CORE, MIX_AIC, ... */
#define NPS_COMPUTE_COLUMNS(C)                                                                               \
	C(u32, task)                                                                                         \
	C(text, name)                                                                                        \
	C(text, core)                                                                                        \
	C(text, type)                                                                                        \
	C(u32, blocks)                                                                                       \
	C(u32, mix_blocks)                                                                                   \
	C(text, input_formats)                                                                               \
	C(text, input_types)                                                                                 \
	C(text, input_shapes)                                                                                \
	C(text, output_formats)                                                                              \
	C(text, output_types)                                                                                \
	C(text, output_shapes)                                                                               \
	C(text, attributes)                                                                                  \
	C(text, state)                                                                                       \
	C(text, hf32)                                                                                        \
	C(text, grid)                                                                                        \
	C(text, block_dim)

#define NPS_MEMCPY_COLUMNS(C)                                                                                \
	C(u32, task)                                                                                         \
	C(i64, size) /* bytes, NPS_NULL unknown */                                                           \
	C(u32, operation) /* ENUM_MEMCPY_OPERATION */

/* A row per kernel and counter, names without unit; times in ns. */
#define NPS_PMU_COLUMNS(C)                                                                                   \
	C(u32, task)                                                                                         \
	C(text, name)                                                                                        \
	C(f64, value)

/* Bounds of the times of a task that was not measured; UINT64_MAX: open. */
#define NPS_BOUNDS_COLUMNS(C)                                                                                \
	C(u32, task)                                                                                         \
	C(time, start_low)                                                                                   \
	C(time, start_high)                                                                                  \
	C(time, end_low)                                                                                     \
	C(time, end_high)

/*
 * Collectives by start. id: opId, unique. dtype: ENUM_HCCL_DATA_TYPE, 65534 unknown. tasks, measured: how
 * many of its tasks were seen and measured. Numbers that are not known are NPS_NULL.
 */
#define NPS_COMM_OP_COLUMNS(C)                                                                               \
	C(text, name)                                                                                        \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, connection)                                                                                   \
	C(text, group)                                                                                       \
	C(u32, id)                                                                                           \
	C(i64, relay)                                                                                        \
	C(i64, retry)                                                                                        \
	C(i64, dtype)                                                                                        \
	C(text, algorithm)                                                                                   \
	C(i64, count)                                                                                        \
	C(text, type)                                                                                        \
	C(u32, device)                                                                                       \
	C(i64, ranks)                                                                                        \
	C(u32, model)                                                                                        \
	C(u32, tasks)                                                                                        \
	C(u32, measured)                                                                                     \
	C(u32, step)

/*
 * op: id of the collective. Enums as the database has them: 65534 unknown. src, dst: ranks within the
 * group, NPS_NO_ID local. estimate: us. master: 1 if on the plane that decides the statistics.
 */
#define NPS_COMM_TASK_COLUMNS(C)                                                                             \
	C(u32, task)                                                                                         \
	C(text, name)                                                                                        \
	C(text, type)                                                                                        \
	C(i64, plane)                                                                                        \
	C(text, group)                                                                                       \
	C(i64, notify)                                                                                       \
	C(u32, rdma_type)                                                                                    \
	C(u32, src)                                                                                          \
	C(u32, dst)                                                                                          \
	C(u32, transport)                                                                                    \
	C(i64, size)                                                                                         \
	C(u32, dtype)                                                                                        \
	C(u32, link)                                                                                         \
	C(u32, op)                                                                                           \
	C(u8, master)                                                                                        \
	C(f64, bandwidth) /* B/s, NaN unknown */                                                             \
	C(f64, estimate)

/* AI CPU tasks that schedule collectives. core: as of `compute`. */
#define NPS_COMM_SCHEDULE_COLUMNS(C)                                                                         \
	C(u32, task)                                                                                         \
	C(text, name)                                                                                        \
	C(text, core)                                                                                        \
	C(text, type)

/* Tasks of a DPU; global: globalTaskId, which is not one of `task`. */
#define NPS_DPU_COLUMNS(C)                                                                                   \
	C(u32, device)                                                                                       \
	C(u64, gtid)                                                                                         \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(i64, global)                                                                                       \
	C(u32, stream)                                                                                       \
	C(u32, task)                                                                                         \
	C(text, name)                                                                                        \
	C(text, arguments)

/* Collective communication units. */
#define NPS_CCU_COLUMNS(C)                                                                                   \
	C(u32, device)                                                                                       \
	C(i64, global)                                                                                       \
	C(text, name)                                                                                        \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(text, arguments)

/* --- what the host did ------------------------------------------------------------------------------- */

/*
 * CANN calls by start. type: ENUM_API_TYPE. gtid: pid << 32 | tid. item: operator of a node row. mode:
 * ACL_OP, ACL_NN, ...; NPS_NONE: follows from the name. ending: enum nps_ending.
 */
#define NPS_API_COLUMNS(C)                                                                                   \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, type)                                                                                         \
	C(u64, gtid)                                                                                         \
	C(u32, connection)                                                                                   \
	C(text, name)                                                                                        \
	C(text, item)                                                                                        \
	C(text, mode)                                                                                        \
	C(u8, ending)

/*
 * What is known of a call's end. LOWER_BOUND: the least it can be. UNFINISHED: that of the capture.
 * UNWOUND: it did not return, its end is when that was observed.
 */
enum nps_ending {
	NPS_ENDING_SEEN,
	NPS_ENDING_LOWER_BOUND,
	NPS_ENDING_UNFINISHED,
	NPS_ENDING_UNWOUND,
};

enum nps_api_type {
	NPS_API_RUNTIME = 5000,
	NPS_API_COMM = 5500,
	NPS_API_NODE = 10000,
	NPS_API_MODEL = 15000,
	NPS_API_ACL = 20000,
	NPS_API_TORCH_OP = 50001,
	NPS_API_TORCH_QUEUE = 50002,
	NPS_API_PYTHON = 50003,
	NPS_API_TORCH_MSTX = 50004
};

/*
 * PYTORCH_API: enqueue and dequeue rows, then python frames, then operators in order of start. connection:
 * id in `link`; for queue rows `correlation` is the queue's own number. python_*: python_function events.
 * ending: enum nps_ending. label: of record_function(), in sessions.
 */
#define NPS_TORCH_COLUMNS(C)                                                                                 \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u64, gtid)                                                                                         \
	C(i64, connection)                                                                                   \
	C(text, name)                                                                                        \
	C(i64, sequence)                                                                                     \
	C(i64, forward_tid)                                                                                  \
	C(text, input_types)                                                                                 \
	C(text, input_shapes)                                                                                \
	C(i64, callchain)                                                                                    \
	C(u32, type)                                                                                         \
	C(i64, correlation)                                                                                  \
	C(text, modules)                                                                                     \
	C(text, extra)                                                                                       \
	C(i64, python_id)                                                                                    \
	C(i64, python_parent)                                                                                \
	C(i64, python_module)                                                                                \
	C(u8, ending)                                                                                        \
	C(u8, label)

/* CONNECTION_IDS: rows of one id share a link with the rows of another id that has the same connection. */
#define NPS_LINK_COLUMNS(C)                                                                                  \
	C(u32, id)                                                                                           \
	C(u32, connection)

/*
 * Kernels that another thread launched than the one that planned them, by time: when and where the job
 * entered the first phase of their operator, or got its executor from a cache.
 */
#define NPS_PLANNED_COLUMNS(C)                                                                               \
	C(time, time)                                                                                        \
	C(u64, gtid)                                                                                         \
	C(u32, connection)

/* PYTORCH_CALLCHAINS: depth 0 is innermost. */
#define NPS_FRAME_COLUMNS(C)                                                                                 \
	C(u32, id)                                                                                           \
	C(text, stack)                                                                                       \
	C(u32, depth)

#define NPS_STEP_COLUMNS(C)                                                                                  \
	C(i64, id)                                                                                           \
	C(time, start)                                                                                       \
	C(time, end)

/*
 * Steps that no marker names: rows of `step` that were found. kind: number of the sequence of launches that
 * repeats, 0: like none. role: what its kernels are known to be of, NPS_NONE unknown. irregular: 1 if it is
 * not exactly that sequence. confidence: share of all launches that repeat in steps.
 */
#define NPS_FOUND_STEP_COLUMNS(C)                                                                            \
	C(i64, id)                                                                                           \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(text, source)                                                                                      \
	C(f64, confidence)                                                                                   \
	C(u32, kind)                                                                                         \
	C(text, role)                                                                                        \
	C(u32, irregular)

#define NPS_GC_COLUMNS(C)                                                                                    \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u64, gtid)

/*
 * A time on a CPU that ended; `left` when the thread left the CPU before, `woken` when it could run; 0
 * unknown. state: of the kernel's sched_switch, 0 preempted, or NPS_RUN_OPEN. waker: thread that woke it
 * before, 0 unknown.
 */
#define NPS_RUN_OPEN (1U << 31) /* the capture ended here, not the stretch: no switch */
#define NPS_RUN_COLUMNS(C)                                                                                   \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(time, left)                                                                                        \
	C(time, woken)                                                                                       \
	C(u32, pid) /* 0: the model's */                                                                     \
	C(u32, tid)                                                                                          \
	C(u32, cpu)                                                                                          \
	C(u32, next)                                                                                         \
	C(u32, prio)                                                                                         \
	C(u32, state)                                                                                        \
	C(text, comm)                                                                                        \
	C(text, next_comm)                                                                                   \
	C(u32, waker)                                                                                        \
	C(text, waker_comm)

/* A stack: frames from the outermost, joined by `;`. kind: enum nps_stack_kind. weight: ns on or off CPU. */
#define NPS_STACK_COLUMNS(C)                                                                                 \
	C(time, start)                                                                                       \
	C(u64, gtid)                                                                                         \
	C(u8, kind)                                                                                          \
	C(u64, weight)                                                                                       \
	C(text, comm)                                                                                        \
	C(text, frames)

/*
 * Python stacks of calls by connection. frames: outermost first, joined by `;`, each "FILE(LINE): FUNCTION";
 * line: the innermost one.
 */
#define NPS_PY_LAUNCH_COLUMNS(C)                                                                             \
	C(u32, connection)                                                                                   \
	C(text, frames)                                                                                      \
	C(text, line)

/* Python stacks of threads that ran (slept 0: a sample of the clock) or slept in that time. */
#define NPS_PY_SAMPLE_COLUMNS(C)                                                                             \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u64, gtid)                                                                                         \
	C(u8, slept)                                                                                         \
	C(text, frames)

/*
 * connection: NPS_NO_ID none. device_*: of the mark on the device, 0 none; device, stream, task: of its run
 */
#define NPS_MSTX_COLUMNS(C)                                                                                  \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, type) /* ENUM_MSTX_EVENT_TYPE */                                                              \
	C(u32, range)                                                                                        \
	C(u32, category)                                                                                     \
	C(text, message)                                                                                     \
	C(u64, gtid)                                                                                         \
	C(u64, end_gtid)                                                                                     \
	C(text, domain)                                                                                      \
	C(u32, connection)                                                                                   \
	C(i64, payload_type)                                                                                 \
	C(u64, payload)                                                                                      \
	C(i64, message_type)                                                                                 \
	C(time, device_start)                                                                                \
	C(time, device_end)                                                                                  \
	C(u32, device)                                                                                       \
	C(u32, stream)                                                                                       \
	C(u32, task)

/* --- memory ------------------------------------------------------------------------------------------- */

#define NPS_OP_MEMORY_COLUMNS(C)                                                                             \
	C(text, name)                                                                                        \
	C(i64, size)                                                                                         \
	C(i64, allocation)                                                                                   \
	C(i64, release)                                                                                      \
	C(i64, active_release)                                                                               \
	C(i64, duration)                                                                                     \
	C(i64, active_duration)                                                                              \
	C(i64, allocation_allocated)                                                                         \
	C(i64, allocation_reserved)                                                                          \
	C(i64, allocation_active)                                                                            \
	C(i64, release_allocated)                                                                            \
	C(i64, release_reserved)                                                                             \
	C(i64, release_active)                                                                               \
	C(i64, stream)                                                                                       \
	C(u32, device)

/*
 * Python stacks of rows of op_memory, a row each as far as it goes: the call chain (frame.id) of the operator
 * that allocated, NPS_NULL none. Only where operators have them. caching: of the caching allocator.
 */
#define NPS_OP_MEMORY_STACK_COLUMNS(C) C(i64, callchain) C(u8, caching)

/*
 * How far the device's clock may be off the host's, ns in either direction, from start to end; by device
 * and start. source: text, `measured` by reads of both clocks, `assumed` where there is one read and an
 * oscillator is taken to be no worse than usual.
 */
#define NPS_CLOCK_COLUMNS(C)                                                                                 \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, device)                                                                                       \
	C(i64, error)                                                                                        \
	C(text, source)

/* Blocks of kernels on their cores, by start. vector: 1 on a vector core, 0 on an AI core. */
#define NPS_BLOCK_COLUMNS(C)                                                                                 \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, device)                                                                                       \
	C(u32, stream)                                                                                       \
	C(u32, task)                                                                                         \
	C(u32, block)                                                                                        \
	C(u8, vector)                                                                                        \
	C(u32, core)

#define NPS_NPU_MODULE_MEM_COLUMNS(C)                                                                        \
	C(u32, module)                                                                                       \
	C(time, timestamp)                                                                                   \
	C(i64, reserved)                                                                                     \
	C(u32, device)

/* Memory of CANN's own operators. type: allocate, release. */
#define NPS_NPU_OP_MEM_COLUMNS(C)                                                                            \
	C(text, name)                                                                                        \
	C(i64, address)                                                                                      \
	C(text, type)                                                                                        \
	C(i64, size)                                                                                         \
	C(time, timestamp)                                                                                   \
	C(u64, gtid)                                                                                         \
	C(i64, allocated)                                                                                    \
	C(i64, reserved)                                                                                     \
	C(text, component)                                                                                   \
	C(u32, device)

/* Static graphs: node indexes start and end of life. model: its name. */
#define NPS_STATIC_OP_MEM_COLUMNS(C)                                                                         \
	C(text, name)                                                                                        \
	C(text, model)                                                                                       \
	C(u32, graph)                                                                                        \
	C(i64, first)                                                                                        \
	C(i64, last)                                                                                         \
	C(i64, size)

/* Processes beside the job, the greatest first: ns on a CPU in all; of it on CPUs on which the job waited. */
#define NPS_NEIGHBOUR_COLUMNS(C)                                                                             \
	C(u32, pid)                                                                                          \
	C(text, name)                                                                                        \
	C(u64, run)                                                                                          \
	C(u64, contended)

/* --- tables of text files only -------------------------------------------------------------------- */

/* l2_cache, soc_pmu (TLB), page_fault: two values of a task by stream and task id. */
#define NPS_TASK_COUNTER_COLUMNS(C)                                                                          \
	C(u32, device)                                                                                       \
	C(u32, stream)                                                                                       \
	C(u32, task)                                                                                         \
	C(f64, first) /* NaN: N/A */                                                                         \
	C(f64, second)                                                                                       \
	C(text, name)

#define NPS_AICPU_COLUMNS(C)                                                                                 \
	C(u32, device)                                                                                       \
	C(time, timestamp)                                                                                   \
	C(text, node)                                                                                        \
	C(f64, compute) /* us */                                                                             \
	C(f64, memcpy)                                                                                       \
	C(f64, task_time)                                                                                    \
	C(f64, dispatch)                                                                                     \
	C(f64, total)                                                                                        \
	C(u32, stream)                                                                                       \
	C(u32, task)

#define NPS_AICPU_MI_COLUMNS(C)                                                                              \
	C(u32, device)                                                                                       \
	C(text, node)                                                                                        \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u64, queue)

#define NPS_DP_COLUMNS(C)                                                                                    \
	C(u32, device)                                                                                       \
	C(time, timestamp)                                                                                   \
	C(text, action)                                                                                      \
	C(text, source)                                                                                      \
	C(u64, size)

#define NPS_FUSION_OP_COLUMNS(C)                                                                             \
	C(text, model_name)                                                                                  \
	C(u32, model)                                                                                        \
	C(text, name)                                                                                        \
	C(text, originals)                                                                                   \
	C(i64, input)                                                                                        \
	C(i64, output)                                                                                       \
	C(i64, weight)                                                                                       \
	C(i64, workspace)                                                                                    \
	C(i64, total)

/* Iterations of a graph on the device; times 0 unknown. */
#define NPS_ITERATION_COLUMNS(C)                                                                             \
	C(u32, device)                                                                                       \
	C(u32, model)                                                                                        \
	C(u64, id)                                                                                           \
	C(time, fp_start)                                                                                    \
	C(time, bp_end)                                                                                      \
	C(time, start)                                                                                       \
	C(time, end)

/* Parts of an iteration, see its `id`: kind 0 reduce, 1 GetNext. */
#define NPS_ITERATION_PART_COLUMNS(C)                                                                        \
	C(u32, device)                                                                                       \
	C(u32, model)                                                                                        \
	C(u64, id)                                                                                           \
	C(u32, kind)                                                                                         \
	C(time, start)                                                                                       \
	C(time, end)

#define NPS_DVPP_COLUMNS(C)                                                                                  \
	C(u32, device)                                                                                       \
	C(u32, id)                                                                                           \
	C(u32, engine_type)                                                                                  \
	C(u32, engine)                                                                                       \
	C(f64, time)                                                                                         \
	C(f64, frames)                                                                                       \
	C(f64, utilization)

/* Shares of CPU time of a whole host or device; device NPS_NONE: the host. percent. */
#define NPS_CPU_SHARE_COLUMNS(C)                                                                             \
	C(u32, device)                                                                                       \
	C(text, type)                                                                                        \
	C(f64, user)                                                                                         \
	C(f64, sys)                                                                                          \
	C(f64, iowait)                                                                                       \
	C(f64, irq)                                                                                          \
	C(f64, soft)                                                                                         \
	C(f64, idle)

#define NPS_PROCESS_CPU_COLUMNS(C)                                                                           \
	C(u32, device)                                                                                       \
	C(u32, pid)                                                                                          \
	C(text, name)                                                                                        \
	C(f64, cpu)

#define NPS_SYS_MEM_COLUMNS(C)                                                                               \
	C(u32, device)                                                                                       \
	C(u64, total) /* kB, from here on; huge pages are pages */                                           \
	C(u64, free)                                                                                         \
	C(u64, buffers)                                                                                      \
	C(u64, cached)                                                                                       \
	C(u64, shared)                                                                                       \
	C(u64, commit_limit)                                                                                 \
	C(u64, committed)                                                                                    \
	C(u64, huge_total)                                                                                   \
	C(u64, huge_free)

#define NPS_PROCESS_MEM_COLUMNS(C)                                                                           \
	C(u32, device)                                                                                       \
	C(u32, pid)                                                                                          \
	C(text, name)                                                                                        \
	C(u64, size) /* pages */                                                                             \
	C(u64, resident)                                                                                     \
	C(u64, shared)

/* --- derived -------------------------------------------------------------------------------------- */

#define NPS_OVERLAP_COLUMNS(C)                                                                               \
	C(u32, device)                                                                                       \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, type) /* ENUM_OVERLAP_ANALYSIS_TYPE */

/* StepTraceTime: us as the vendor has them, ns / 1000. step: its text, "" without steps. */
#define NPS_STEP_TRACE_COLUMNS(C)                                                                            \
	C(u32, device)                                                                                       \
	C(text, step)                                                                                        \
	C(f64, computing)                                                                                    \
	C(f64, not_overlapped)                                                                               \
	C(f64, overlapped)                                                                                   \
	C(f64, communication)                                                                                \
	C(f64, free)                                                                                         \
	C(f64, stage)                                                                                        \
	C(f64, bubble)                                                                                       \
	C(f64, exclude_receive)                                                                              \
	C(f64, preparing)

/* CommAnalyzer*: ms, MB (10^6), GB/s, start in us. type: collective, p2p. group: the hash in decimal. */
#define NPS_COMM_TIME_COLUMNS(C)                                                                             \
	C(text, op)                                                                                          \
	C(text, group)                                                                                       \
	C(f64, start)                                                                                        \
	C(f64, elapse)                                                                                       \
	C(f64, transit)                                                                                      \
	C(f64, wait)                                                                                         \
	C(f64, synchronization)                                                                              \
	C(f64, idle)                                                                                         \
	C(text, step)                                                                                        \
	C(text, type)

#define NPS_COMM_BANDWIDTH_COLUMNS(C)                                                                        \
	C(text, op)                                                                                          \
	C(text, group)                                                                                       \
	C(text, transport)                                                                                   \
	C(f64, size)                                                                                         \
	C(f64, time)                                                                                         \
	C(f64, bandwidth)                                                                                    \
	C(f64, large_ratio)                                                                                  \
	C(f64, package)                                                                                      \
	C(f64, count)                                                                                        \
	C(f64, total)                                                                                        \
	C(text, step)                                                                                        \
	C(text, type)

#define NPS_COMM_MATRIX_COLUMNS(C)                                                                           \
	C(text, op)                                                                                          \
	C(text, group)                                                                                       \
	C(text, src)                                                                                         \
	C(text, dst)                                                                                         \
	C(text, transport)                                                                                   \
	C(f64, size)                                                                                         \
	C(f64, time)                                                                                         \
	C(f64, bandwidth)                                                                                    \
	C(text, step)                                                                                        \
	C(text, type)                                                                                        \
	C(text, name)

/* META_DATA of an imported database. */
#define NPS_META_COLUMNS(C)                                                                                  \
	C(text, name)                                                                                        \
	C(text, value)

/* Rows of ENUM_* tables that an imported database has and the schema does not. */
#define NPS_ENUM_COLUMNS(C)                                                                                  \
	C(text, table)                                                                                       \
	C(i64, id)                                                                                           \
	C(text, name)

#define NPS_DEVICE_COLUMNS(C)                                                                                \
	C(i64, id) /* -1: no device */                                                                       \
	C(text, chip)                                                                                        \
	C(i64, rank) /* NPS_NULL: not in RANK_DEVICE_MAP */                                                  \
	C(f64, aic_mhz)                                                                                      \
	C(u32, aic_cores)                                                                                    \
	C(u32, aiv_cores)

/* One row: what the host has; 0 unknown. memory: kB, network: B/s of all its cards. */
#define NPS_HOST_COLUMNS(C)                                                                                  \
	C(u32, cpus)                                                                                         \
	C(f64, memory)                                                                                       \
	C(f64, network)

/* Tables whose type is their own: T(field, COLUMNS). */
#define NPS_OWN_TABLES(T)                                                                                    \
	T(task, NPS_TASK_COLUMNS)                                                                            \
	T(compute, NPS_COMPUTE_COLUMNS)                                                                      \
	T(memcpy, NPS_MEMCPY_COLUMNS)                                                                        \
	T(pmu, NPS_PMU_COLUMNS)                                                                              \
	T(bounds, NPS_BOUNDS_COLUMNS)                                                                        \
	T(comm_op, NPS_COMM_OP_COLUMNS)                                                                      \
	T(comm_task, NPS_COMM_TASK_COLUMNS)                                                                  \
	T(api, NPS_API_COLUMNS)                                                                              \
	T(torch, NPS_TORCH_COLUMNS)                                                                          \
	T(link, NPS_LINK_COLUMNS)                                                                            \
	T(planned, NPS_PLANNED_COLUMNS)                                                                      \
	T(frame, NPS_FRAME_COLUMNS)                                                                          \
	T(step, NPS_STEP_COLUMNS)                                                                            \
	T(found_step, NPS_FOUND_STEP_COLUMNS)                                                                \
	T(gc, NPS_GC_COLUMNS)                                                                                \
	T(osrt, NPS_OSRT_COLUMNS)                                                                            \
	T(osrt_sum, NPS_OSRT_SUM_COLUMNS)                                                                    \
	T(osrt_span, NPS_OSRT_SPAN_COLUMNS)                                                                  \
	T(os_lock, NPS_OS_LOCK_COLUMNS)                                                                      \
	T(os_thread, NPS_OS_THREAD_COLUMNS)                                                                  \
	T(run, NPS_RUN_COLUMNS)                                                                              \
	T(driver_task, NPS_DRIVER_TASK_COLUMNS)                                                              \
	T(driver_cqe, NPS_DRIVER_CQE_COLUMNS)                                                                \
	T(driver, NPS_DRIVER_COLUMNS)                                                                        \
	T(irq, NPS_IRQ_COLUMNS)                                                                              \
	T(stack, NPS_STACK_COLUMNS)                                                                          \
	T(py_launch, NPS_PY_LAUNCH_COLUMNS)                                                                  \
	T(py_sample, NPS_PY_SAMPLE_COLUMNS)                                                                  \
	T(mstx, NPS_MSTX_COLUMNS)                                                                            \
	T(memory_record, NPS_MEMORY_RECORD_COLUMNS)                                                          \
	T(op_memory, NPS_OP_MEMORY_COLUMNS)                                                                  \
	T(op_memory_stack, NPS_OP_MEMORY_STACK_COLUMNS)                                                      \
	T(job_memory, NPS_JOB_MEMORY_COLUMNS)                                                                \
	T(clock, NPS_CLOCK_COLUMNS)                                                                          \
	T(block, NPS_BLOCK_COLUMNS)                                                                          \
	T(npu_mem, NPS_NPU_MEM_COLUMNS)                                                                      \
	T(npu_module_mem, NPS_NPU_MODULE_MEM_COLUMNS)                                                        \
	T(npu_op_mem, NPS_NPU_OP_MEM_COLUMNS)                                                                \
	T(static_op_mem, NPS_STATIC_OP_MEM_COLUMNS)                                                          \
	T(hbm, NPS_HBM_COLUMNS)                                                                              \
	T(llc, NPS_LLC_COLUMNS)                                                                              \
	T(ddr, NPS_DDR_COLUMNS)                                                                              \
	T(frequency, NPS_FREQUENCY_COLUMNS)                                                                  \
	T(voltage, NPS_VOLTAGE_COLUMNS)                                                                      \
	T(soc_level, NPS_SOC_LEVEL_COLUMNS)                                                                  \
	T(acc_pmu, NPS_ACC_PMU_COLUMNS)                                                                      \
	T(hccs, NPS_HCCS_COLUMNS)                                                                            \
	T(pcie, NPS_PCIE_COLUMNS)                                                                            \
	T(netdev, NPS_NETDEV_COLUMNS)                                                                        \
	T(qos, NPS_QOS_COLUMNS)                                                                              \
	T(sio, NPS_SIO_COLUMNS)                                                                              \
	T(ub, NPS_UB_COLUMNS)                                                                                \
	T(chip_trans, NPS_CHIP_TRANS_COLUMNS)                                                                \
	T(sample_pmu, NPS_SAMPLE_PMU_COLUMNS)                                                                \
	T(sample_summary, NPS_SAMPLE_SUMMARY_COLUMNS)                                                        \
	T(cpu_usage, NPS_CPU_USAGE_COLUMNS)                                                                  \
	T(host_mem, NPS_HOST_MEM_COLUMNS)                                                                    \
	T(host_disk, NPS_HOST_DISK_COLUMNS)                                                                  \
	T(host_network, NPS_HOST_NETWORK_COLUMNS)                                                            \
	T(aicpu, NPS_AICPU_COLUMNS)                                                                          \
	T(aicpu_mi, NPS_AICPU_MI_COLUMNS)                                                                    \
	T(dp, NPS_DP_COLUMNS)                                                                                \
	T(fusion_op, NPS_FUSION_OP_COLUMNS)                                                                  \
	T(iteration, NPS_ITERATION_COLUMNS)                                                                  \
	T(iteration_part, NPS_ITERATION_PART_COLUMNS)                                                        \
	T(dvpp, NPS_DVPP_COLUMNS)                                                                            \
	T(cpu_share, NPS_CPU_SHARE_COLUMNS)                                                                  \
	T(process_cpu, NPS_PROCESS_CPU_COLUMNS)                                                              \
	T(sys_mem, NPS_SYS_MEM_COLUMNS)                                                                      \
	T(process_mem, NPS_PROCESS_MEM_COLUMNS)                                                              \
	T(overlap, NPS_OVERLAP_COLUMNS)                                                                      \
	T(step_trace, NPS_STEP_TRACE_COLUMNS)                                                                \
	T(host_breakdown, NPS_HOST_BREAKDOWN_COLUMNS)                                                        \
	T(comm_time, NPS_COMM_TIME_COLUMNS)                                                                  \
	T(comm_bandwidth, NPS_COMM_BANDWIDTH_COLUMNS)                                                        \
	T(comm_matrix, NPS_COMM_MATRIX_COLUMNS)                                                              \
	T(meta, NPS_META_COLUMNS)                                                                            \
	T(device, NPS_DEVICE_COLUMNS)                                                                        \
	T(enums, NPS_ENUM_COLUMNS)                                                                           \
	T(comm_schedule, NPS_COMM_SCHEDULE_COLUMNS)                                                          \
	T(dpu, NPS_DPU_COLUMNS)                                                                              \
	T(ccu, NPS_CCU_COLUMNS)                                                                              \
	T(host, NPS_HOST_COLUMNS)                                                                            \
	T(host_process, NPS_HOST_PROCESS_COLUMNS)                                                            \
	T(host_thread, NPS_HOST_THREAD_COLUMNS)                                                              \
	T(host_device, NPS_HOST_DEVICE_COLUMNS)                                                              \
	T(host_load, NPS_HOST_LOAD_COLUMNS)                                                                  \
	T(neighbour, NPS_NEIGHBOUR_COLUMNS)                                                                  \
	T(npu_usage, NPS_NPU_USAGE_COLUMNS)                                                                  \
	T(npu_process, NPS_NPU_PROCESS_COLUMNS)

/* Tables that share a type: T(field, type, COLUMNS). */
#define NPS_SHARED_TABLES(T)                                                                                 \
	T(nic, port, NPS_PORT_COLUMNS)                                                                       \
	T(roce, port, NPS_PORT_COLUMNS)                                                                      \
	T(l2_cache, task_counter, NPS_TASK_COUNTER_COLUMNS)                                                  \
	T(soc_pmu, task_counter, NPS_TASK_COUNTER_COLUMNS)                                                   \
	T(page_fault, task_counter, NPS_TASK_COUNTER_COLUMNS)

NPS_TABLE(port, NPS_PORT_COLUMNS)
NPS_TABLE(task_counter, NPS_TASK_COUNTER_COLUMNS)
NPS_OWN_TABLES(NPS_TABLE)

#endif
