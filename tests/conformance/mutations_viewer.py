# SPDX-License-Identifier: BSD-2-Clause
"""Single faults that the formats allow, but MindStudio Insight's server does not: checks I1..I11."""

from __future__ import annotations

import sqlite3

from harness import Skip
from mutation import Copy, Mutation

FTRACE = "ftrace_data.db"
BOUNDED = "SELECT globalTaskId FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds'"
TYPE = "(SELECT id FROM STRING_IDS WHERE value = '{}')"


def _ours(copy: Copy) -> None:
    if not (copy.out / "npuscope_findings.json").exists():
        raise Skip("not written by npuscope")


def _argument(copy: Copy) -> None:
    copy.sql("UPDATE slice SET args = json_set(args, '$.cpu', 3) WHERE id = (SELECT max(id) FROM slice WHERE name = "
             "'Running'"
             " AND args IS NOT NULL)", database=FTRACE)


def _bounded_in_trace(copy: Copy) -> None:
    with copy.trace() as view:
        for one in view.all(lambda event: event["ph"] == "X" and
                            event.get("args", {}).get("time_source") == "host bounds")[:1]:
            one["dur"] = 0


def _overlap_in_trace(copy: Copy) -> None:
    with copy.trace() as view:
        for one in view.slices("Overlap Analysis"):
            one["dur"] = 0


def _host_wide(copy: Copy) -> None:
    if not copy.path.name.endswith("_ascend_pt"):
        raise Skip("no result of a rank")
    other = copy.path.parent / "PROF_000001_20250101000000000_NPUSCOPEHOSTWIDE"
    other.mkdir()
    sqlite3.connect(other / "msprof_20250101000000.db").close()


def _no_record(copy: Copy) -> None:
    _ours(copy)
    copy.file("npu_module_mem.csv")
    copy.file("memory_record.csv").unlink()


def _no_statistics(copy: Copy) -> None:
    copy.file("trace_view.json")
    if not (copy.out / FTRACE).exists():
        raise Skip("no scheduling layers")
    (copy.out / FTRACE).unlink()


def _empty_tasks(copy: Copy) -> None:
    copy.sql("CREATE TABLE TASK (startNs INTEGER,endNs INTEGER,deviceId INTEGER,connectionId INTEGER,globalTaskId "
             "INTEGER,"
             "globalPid INTEGER,taskType INTEGER,contextId INTEGER,streamId INTEGER,taskId INTEGER,modelId INTEGER)")


def _no_task_table(copy: Copy) -> None:
    with sqlite3.connect(copy.database()) as db:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'TASK'").fetchone():
            raise Skip("something ran on a device")
    _empty_tasks(copy)


def sql(name: str, expected: str, statement: str, needs: str) -> Mutation:
    """A statement that the profiler database does not get over."""
    return Mutation(name, expected, lambda copy: copy.sql(statement, needs))


MUTATIONS = [
    Mutation("an argument of a slice is a number", "I1", _argument),
    sql("the job's memory has no lane", "I4", f"DELETE FROM NPU_MEM WHERE type = {TYPE.format('job')}",
        "NPU_MEM NPUSCOPE_MEMORY"),
    sql("npu-smi's memory of the process is another", "I4", f"DELETE FROM NPU_MEM WHERE type = {TYPE.format('app')}",
        "NPU_MEM NPUSCOPE_NPU_PROCESS TASK"),
    sql("npu-smi's memory of the device is another", "I4", f"DELETE FROM NPU_MEM WHERE type = {TYPE.format('device')}",
        "NPU_MEM NPUSCOPE_NPU_USAGE"),
    Mutation("a bounded task has no length in the trace", "I5", _bounded_in_trace),
    Mutation("the overlap of the trace adds up to nothing", "I5", _overlap_in_trace),
    sql("bounded tasks have no length", "I5", f"UPDATE TASK SET endNs = startNs WHERE globalTaskId IN ({BOUNDED})",
        "TASK NPUSCOPE_TASK_TIME"),
    sql("a bounded collective has no length", "I5",
        "UPDATE NPUSCOPE_TASK_TIME SET source = 'host bounds' WHERE globalTaskId IN"
        " (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO); UPDATE COMMUNICATION_OP SET endNs = startNs",
        "COMMUNICATION_OP NPUSCOPE_TASK_TIME COMMUNICATION_TASK_INFO"),
    sql("the overlap adds up to nothing", "I5", "UPDATE OVERLAP_ANALYSIS SET endNs = startNs", "OVERLAP_ANALYSIS"),
    Mutation("a host-wide database is beside the rank's", "I6", _host_wide),
    sql("an unknown usage of disks is NULL", "I7", "UPDATE HOST_DISK_USAGE SET usage = NULL", "HOST_DISK_USAGE"),
    sql("an unknown usage of the network is NULL", "I7", "UPDATE HOST_NETWORK_USAGE SET usage = NULL",
        "HOST_NETWORK_USAGE"),
    Mutation("memory_record.csv is gone", "I8", _no_record),
    Mutation("ftrace_data.db is gone", "I9", _no_statistics),
    Mutation("an empty table of tasks", "I11", _no_task_table),
    sql("a process has no name", "I11", "DELETE FROM NPUSCOPE_PROCESS", "NPUSCOPE_PROCESS OSRT_API"),
]
