/* SPDX-License-Identifier: BSD-2-Clause */
/* What the host did, and its counters. */
#include "import/ascend_db/spec_rows.h"

#define C(...) NPS_DB_C(__VA_ARGS__)

static const struct nps_db_column api[] = {
	C(api, "startNs", INTEGER, NUMBER, start),
	C(api, "endNs", INTEGER, NUMBER, end),
	C(api, "type", INTEGER, NUMBER, type),
	C(api, "globalTid", INTEGER, NUMBER, gtid),
	C(api, "connectionId", INTEGER, NUMBER, connection),
	C(api, "name", INTEGER, STRING, name),
};

static const struct nps_db_column osrt[] = {
	C(osrt, "name", NUMERIC, STRING, name),
	C(osrt, "globalTid", NUMERIC, NUMBER, gtid),
	C(osrt, "startNs", NUMERIC, NUMBER, start),
	C(osrt, "endNs", NUMERIC, NUMBER, end),
};

/* Calls that were too many or too short for a row of OSRT_API. */
static const struct nps_db_column osrt_sum[] = {
	C(osrt_sum, "name", INTEGER, STRING, name),	C(osrt_sum, "globalTid", INTEGER, NUMBER, gtid),
	C(osrt_sum, "startNs", INTEGER, NUMBER, start), C(osrt_sum, "endNs", INTEGER, NUMBER, end),
	C(osrt_sum, "count", INTEGER, NUMBER, count),	C(osrt_sum, "errors", INTEGER, NUMBER, errors),
	C(osrt_sum, "totalNs", INTEGER, NUMBER, total), C(osrt_sum, "minNs", INTEGER, NUMBER, shortest),
	C(osrt_sum, "maxNs", INTEGER, NUMBER, longest), C(osrt_sum, "bytes", INTEGER, NUMBER, bytes),
};

static const struct nps_db_column os_lock[] = {
	C(os_lock, "globalTid", INTEGER, NUMBER, gtid),
	C(os_lock, "kind", INTEGER, STRING, kind),
	C(os_lock, "address", INTEGER, NUMBER, address),
	C(os_lock, "holderTid", INTEGER, NUMBER, holder),
	C(os_lock, "wakerTid", INTEGER, NUMBER, waker),
	C(os_lock, "count", INTEGER, NUMBER, count),
	C(os_lock, "totalNs", INTEGER, NUMBER, total),
	C(os_lock, "maxNs", INTEGER, NUMBER, longest),
	C(os_lock, "maxStartNs", INTEGER, NUMBER, longest_start),
};

static const struct nps_db_column os_thread[] = {
	C(os_thread, "globalTid", INTEGER, NUMBER, gtid),
	C(os_thread, "name", INTEGER, STRING, name),
	C(os_thread, "runningNs", INTEGER, NUMBER, running),
	C(os_thread, "runnableNs", INTEGER, NUMBER, runnable),
	C(os_thread, "sleepingNs", INTEGER, NUMBER, sleeping),
	C(os_thread, "uninterruptibleNs", INTEGER, NUMBER, blocked),
	C(os_thread, "slices", INTEGER, NUMBER, slices),
	C(os_thread, "voluntarySwitches", INTEGER, NUMBER, waits),
	C(os_thread, "preemptions", INTEGER, NUMBER, preemptions),
	C(os_thread, "migrations", INTEGER, NUMBER, migrations),
	C(os_thread, "cpus", INTEGER, NUMBER, cpus),
	C(os_thread, "wakerTid", INTEGER, NUMBER, waker),
	C(os_thread, "wakerName", TEXT, TEXT, waker_comm),
	C(os_thread, "wakeUps", INTEGER, NUMBER, wakes),
	C(os_thread, "preemptorTid", INTEGER, NUMBER, preemptor),
	C(os_thread, "preemptorName", TEXT, TEXT, preemptor_comm),
	C(os_thread, "preempted", INTEGER, NUMBER, preempted),
	C(os_thread, "minorFaults", INTEGER, NUMBER, minor),
	C(os_thread, "majorFaults", INTEGER, NUMBER, major),
	C(os_thread, "majorFaultNs", INTEGER, NUMBER, major_ns),
	C(os_thread, "diskReads", INTEGER, NUMBER, reads),
	C(os_thread, "diskReadBytes", INTEGER, NUMBER, read_bytes),
	C(os_thread, "diskReadNs", INTEGER, NUMBER, read_ns),
	C(os_thread, "diskWrites", INTEGER, NUMBER, writes),
	C(os_thread, "diskWriteBytes", INTEGER, NUMBER, write_bytes),
	C(os_thread, "diskWriteNs", INTEGER, NUMBER, write_ns),
	C(os_thread, "socketReceivedBytes", INTEGER, NUMBER, received),
	C(os_thread, "socketSentBytes", INTEGER, NUMBER, sent),
};

static const struct nps_db_column mstx[] = {
	C(mstx, "startNs", INTEGER, NUMBER, start),
	C(mstx, "endNs", INTEGER, NUMBER, end),
	C(mstx, "eventType", INTEGER, NUMBER, type),
	C(mstx, "rangeId", INTEGER, NUMBER, range),
	C(mstx, "category", INTEGER, NUMBER, category),
	C(mstx, "message", INTEGER, STRING_NO_ID, message),
	C(mstx, "globalTid", INTEGER, NUMBER, gtid),
	C(mstx, "endGlobalTid", INTEGER, NUMBER, end_gtid),
	C(mstx, "domainId", INTEGER, STRING_NO_ID, domain),
	C(mstx, "connectionId", INTEGER, NUMBER, connection),
};

COLUMNS(cpu_usage, NPS_CPU_USAGE_COLUMNS)
COLUMNS(host_mem, NPS_HOST_MEM_COLUMNS)
COLUMNS(host_disk, NPS_HOST_DISK_COLUMNS)
COLUMNS(host_network, NPS_HOST_NETWORK_COLUMNS)

static const struct nps_db_column found_step[] = {
	C(found_step, "id", INTEGER, NUMBER, id),
	C(found_step, "startNs", INTEGER, NUMBER, start),
	C(found_step, "endNs", INTEGER, NUMBER, end),
	C(found_step, "source", TEXT, TEXT, source),
	C(found_step, "confidence", NUMERIC, NUMBER, confidence),
	C(found_step, "kind", INTEGER, NUMBER, kind),
	C(found_step, "role", TEXT, TEXT, role),
	C(found_step, "irregular", INTEGER, NUMBER, irregular),
};

static const struct nps_db_column breakdown[] = {
	C(host_breakdown, "step", TEXT, TEXT, step),
	C(host_breakdown, "startNs", INTEGER, NUMBER, start),
	C(host_breakdown, "endNs", INTEGER, NUMBER, end),
	C(host_breakdown, "globalTid", INTEGER, NUMBER, gtid),
	C(host_breakdown, "threadName", TEXT, TEXT, comm),
	C(host_breakdown, "userCodeNs", INTEGER, NUMBER, user),
	C(host_breakdown, "cannCallsNs", INTEGER, NUMBER, cann),
	C(host_breakdown, "ioCallsNs", INTEGER, NUMBER, io_calls),
	C(host_breakdown, "otherCallsNs", INTEGER, NUMBER, other_calls),
	C(host_breakdown, "deviceWaitNs", INTEGER, NUMBER, device_wait),
	C(host_breakdown, "lockWaitNs", INTEGER, NUMBER, lock_wait),
	C(host_breakdown, "cpuWaitNs", INTEGER, NUMBER, cpu_wait),
	C(host_breakdown, "ioWaitNs", INTEGER, NUMBER, io_wait),
	C(host_breakdown, "pageFaultsNs", INTEGER, NUMBER, faults),
	C(host_breakdown, "interruptsNs", INTEGER, NUMBER, interrupts),
	C(host_breakdown, "otherSleepNs", INTEGER, NUMBER, sleep),
	C(host_breakdown, "notObservedNs", INTEGER, NUMBER, unknown),
};

/* Of npuscope alone. kind: 1 on the CPU, 2 off it. */
static const struct nps_db_column stack[] = {
	C(stack, "startNs", INTEGER, NUMBER, start), C(stack, "globalTid", INTEGER, NUMBER, gtid),
	C(stack, "kind", INTEGER, NUMBER, kind),     C(stack, "weightNs", INTEGER, NUMBER, weight),
	C(stack, "thread", INTEGER, STRING, comm),   C(stack, "stack", INTEGER, STRING, frames),
};

static const struct nps_db_column driver[] = {
	C(driver, "name", INTEGER, STRING, name),	C(driver, "globalTid", INTEGER, NUMBER, gtid),
	C(driver, "startNs", INTEGER, NUMBER, start),	C(driver, "endNs", INTEGER, NUMBER, end),
	C(driver, "node", INTEGER, STRING, node),	C(driver, "part", INTEGER, STRING, part),
	C(driver, "command", INTEGER, NUMBER, command), C(driver, "deviceId", INTEGER, NUMBER, device),
	C(driver, "bytes", INTEGER, NUMBER, bytes),	C(driver, "result", INTEGER, NUMBER, result),
};

static const struct nps_db_column driver_task[] = {
	C(driver_task, "deviceId", INTEGER, NUMBER, device),
	C(driver_task, "streamId", INTEGER, NUMBER, stream),
	C(driver_task, "taskId", INTEGER, NUMBER, task),
	C(driver_task, "sqId", INTEGER, NUMBER, queue),
	C(driver_task, "sqeType", INTEGER, NUMBER, type),
	C(driver_task, "globalTid", INTEGER, NUMBER, gtid),
	C(driver_task, "startNs", INTEGER, NUMBER, start),
	C(driver_task, "durationNs", INTEGER, NUMBER, driver_ns),
	C(driver_task, "submitNs", INTEGER, NUMBER, submit),
	C(driver_task, "queuedNs", INTEGER, NUMBER, queued),
	C(driver_task, "name", INTEGER, STRING, name),
	C(driver_task, "connectionId", INTEGER, NUMBER, connection),
};

static const struct nps_db_column driver_cqe[] = {
	C(driver_cqe, "deviceId", INTEGER, NUMBER, device),
	C(driver_cqe, "streamId", INTEGER, NUMBER, stream),
	C(driver_cqe, "taskId", INTEGER, NUMBER, task),
	C(driver_cqe, "cqId", INTEGER, NUMBER, queue),
	C(driver_cqe, "pid", INTEGER, NUMBER, pid),
	C(driver_cqe, "timestampNs", INTEGER, NUMBER, timestamp),
	C(driver_cqe, "waiterTid", INTEGER, NUMBER, waiter),
	C(driver_cqe, "wakeupNs", INTEGER, NUMBER, wakeup),
};

const struct nps_db_table nps_db_host_tables[] = {
	{ .name = "CANN_API",
	  NPS_DB_COLUMNS(api),
	  NPS_DB_OF(api),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_ALWAYS,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs",
	  .key = "connectionId" },
	{ .name = "OSRT_API",
	  NPS_DB_COLUMNS(osrt),
	  NPS_DB_OF(osrt),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_OWN,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs" },
	{ .name = "NPUSCOPE_STACK", NPS_DB_COLUMNS(stack), NPS_DB_OF(stack), .generations = NPS_DB_BOTH },
	{ .name = "NPUSCOPE_OSRT_SUM",
	  NPS_DB_COLUMNS(osrt_sum),
	  NPS_DB_OF(osrt_sum),
	  .generations = NPS_DB_BOTH },
	{ .name = "NPUSCOPE_LOCK", NPS_DB_COLUMNS(os_lock), NPS_DB_OF(os_lock), .generations = NPS_DB_BOTH },
	{ .name = "NPUSCOPE_THREAD",
	  NPS_DB_COLUMNS(os_thread),
	  NPS_DB_OF(os_thread),
	  .generations = NPS_DB_BOTH },
	{ .name = "NPUSCOPE_DRIVER",
	  NPS_DB_COLUMNS(driver),
	  NPS_DB_OF(driver),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs" },
	{ .name = "NPUSCOPE_DRIVER_TASK",
	  NPS_DB_COLUMNS(driver_task),
	  NPS_DB_OF(driver_task),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs" },
	{ .name = "NPUSCOPE_DRIVER_CQE",
	  NPS_DB_COLUMNS(driver_cqe),
	  NPS_DB_OF(driver_cqe),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "timestampNs" },
	{ .name = "MSTX_EVENTS",
	  NPS_DB_COLUMNS(mstx),
	  NPS_DB_OF(mstx),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs" },
	SAMPLES("CPU_USAGE", cpu_usage, cpu_usage),
	SAMPLES("HOST_MEM_USAGE", host_mem, host_mem),
	SAMPLES("HOST_DISK_USAGE", host_disk, host_disk),
	SAMPLES("HOST_NETWORK_USAGE", host_network, host_network),
	{ .name = "NPUSCOPE_STEP",
	  NPS_DB_COLUMNS(found_step),
	  NPS_DB_OF(found_step),
	  .generations = NPS_DB_BOTH },
	{ .name = "NPUSCOPE_HOST_BREAKDOWN",
	  NPS_DB_COLUMNS(breakdown),
	  NPS_DB_OF(host_breakdown),
	  .generations = NPS_DB_BOTH },
	{ 0 },
};

#define USAGE(name, field)                                                                                   \
	{                                                                                                    \
		name, offsetof(struct nps_model, field.t), offsetof(struct nps_model, field.usage)           \
	}

const struct nps_db_usage nps_db_usages[NPS_DB_USAGES] = { USAGE("CPU_USAGE", cpu_usage),
							   USAGE("HOST_MEM_USAGE", host_mem),
							   USAGE("HOST_DISK_USAGE", host_disk),
							   USAGE("HOST_NETWORK_USAGE", host_network) };
