# SPDX-License-Identifier: BSD-2-Clause
"""Checks of what MindStudio Insight's server loses without a word, although the formats allow it: I1..I11.

Each is a rule of the server's own code; the number is the row in which it was found.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from typing import Any

from capture import PROF_DB, Rank, table_names
from check_db import has, need, one
from report import Check, RuleSet, Skip

RULES = RuleSet()
SCHEDULING = ("Process Scheduling", "CPU Scheduling")
OVERLAP = ("Computing", "Communication(Not Overlapped)", "Free")
BOUNDED = "SELECT globalTaskId FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds'"
HOST_WIDE = "NPUSCOPEHOSTWIDE"


def _ftrace(rank: Rank) -> sqlite3.Connection:
    path = rank.out / "ftrace_data.db"
    if not path.is_file():
        raise Skip("no ftrace_data.db")
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)


@RULES.rule("I1", "ftrace_data.db: every argument of a slice is a string")
def i1(rank: Rank, check: Check) -> None:
    kinds: dict[tuple[str, str], Any] = {}
    for name, args in _ftrace(rank).execute("SELECT name, args FROM slice WHERE args IS NOT NULL"):
        check.inspected()
        for key, value in json.loads(args).items():
            if not isinstance(value, str):
                kinds.setdefault((name if name in ("Running", "Runnable", "Sleeping", "sched_switch") else "slice",
                                  key), value)
    for (name, key), value in kinds.items():
        check.fail(f"{name}: {key} is {value!r}: Insight stops at the first value that is no string")


@RULES.rule("I4", "memory of the job and of npu-smi is in NPU_MEM, of which Insight makes lanes")
def i4(rank: Rank, check: Check) -> None:
    db = need(rank)
    ours = {"job": ("NPUSCOPE_MEMORY",
                    "SELECT timestampNs, deviceId, allocated FROM NPUSCOPE_MEMORY JOIN STRING_IDS ON id = kind"
                    " WHERE value = 'device'"),
            "app": ("NPUSCOPE_NPU_PROCESS", "SELECT timestampNs, deviceId, bytes FROM NPUSCOPE_NPU_PROCESS"
                    " WHERE pid IN (SELECT globalPid FROM TASK)" if "TASK" in rank.db_tables else ""),
            "device": ("NPUSCOPE_NPU_USAGE", "SELECT timestampNs, deviceId, hbmUsed FROM NPUSCOPE_NPU_USAGE"
                       " WHERE hbmUsed IS NOT NULL")}
    lanes: dict[str, set[tuple[int, int, float]]] = defaultdict(set)
    if "NPU_MEM" in rank.db_tables:
        for kind, *row in db.execute("SELECT value, timestampNs, deviceId, hbm FROM NPU_MEM"
                                     " JOIN STRING_IDS ON id = type"):
            lanes[kind].add(tuple(row))
    for kind, (table, query) in ours.items():
        if table not in rank.db_tables or not query:
            continue
        right = set(db.execute(query))
        if kind != "job" and lanes[kind] and not lanes[kind] & right:
            continue                            # the driver's own samples are the same
        check.expect(right == lanes[kind], f"{table}: {len(right)} rows, NPU_MEM has {len(lanes[kind])} of type {kind}")


@RULES.rule("I5", "nothing that a view adds up has length 0: bounded tasks, and the overlap of a device as a whole")
def i5(rank: Rank, check: Check) -> None:
    if rank.trace:
        for lane in (rank.trace.hardware, rank.trace.collectives, rank.trace.planes):
            for task in lane:
                if task.bounded:
                    check.expect(task.length > 0, f"{task.name} at {task.start}: length 0 in the trace")
        sums: dict[int, float] = defaultdict(float)
        for span in rank.trace.layer("Overlap Analysis"):
            sums[span.pid & 31] += span.length * (span.name in OVERLAP)
        for device, total in sums.items():
            check.expect(total > 0, f"device {device}: Overlap Analysis adds up to nothing: Overall fails")
    if not rank.db:
        return
    if "NPUSCOPE_TASK_TIME" in rank.db_tables:
        empty = one(rank.db, f"SELECT count(*) FROM TASK WHERE endNs <= startNs AND globalTaskId IN ({BOUNDED})")
        check.expect(empty == 0, f"TASK: {empty} bounded tasks of length 0")
        empty = one(rank.db, "SELECT count(*) FROM COMMUNICATION_OP WHERE endNs <= startNs AND endNs > 0"
                    " AND opId IN (SELECT opId FROM COMMUNICATION_TASK_INFO GROUP BY opId"
                    f" HAVING min(globalTaskId IN ({BOUNDED})))")
        check.expect(empty == 0, f"COMMUNICATION_OP: {empty} bounded collectives of length 0")
    if "OVERLAP_ANALYSIS" in rank.db_tables:
        for device, total in rank.db.execute("SELECT deviceId, sum(endNs - startNs) FROM OVERLAP_ANALYSIS"
                                             " WHERE type != 1 GROUP BY deviceId"):
            check.expect(total > 0, f"device {device}: OVERLAP_ANALYSIS adds up to nothing: Overall fails")


@RULES.rule("I6", "no host-wide database among those of ranks, which hide it and are counted with it")
def i6(rank: Rank, check: Check) -> None:
    if rank.prof or not rank.path.name.endswith("_ascend_pt"):
        raise Skip("no result of a rank")
    beside = [path for folder in rank.path.parent.glob(f"*_{HOST_WIDE}") for path in folder.iterdir()
              if PROF_DB.fullmatch(path.name)]
    check.expect(not beside, f"{[path.name for path in beside]} beside {rank.path.name}: Insight leaves it out")


@RULES.rule("I7", "usage of the host is a number in every row")
def i7(rank: Rank, check: Check) -> None:
    db = need(rank)
    for table in ("CPU_USAGE", "HOST_MEM_USAGE", "HOST_DISK_USAGE", "HOST_NETWORK_USAGE"):
        if table in rank.db_tables:
            check.inspected(one(db, f"SELECT count(*) FROM {table}"))
            lost = one(db, f"SELECT count(*) FROM {table} WHERE typeof(usage) NOT IN ('integer', 'real')")
            if lost:
                check.fail(f"{table}: {lost} rows without a number: Insight drops them")


@RULES.rule("I8", "memory_record.csv is beside npu_module_mem.csv: without it there is no memory page")
def i8(rank: Rank, check: Check) -> None:
    if not rank.table("npu_module_mem") or not (rank.out / "npuscope_findings.json").is_file():
        raise Skip("no npu_module_mem of ours")
    record = rank.table("memory_record")
    check.expect(record is not None and bool(record.rows), "no memory_record.csv with a row")
    if record and set(record.column("Component")) == {"APP"}:
        column = "Total Reserved(MB)" if "Total Reserved(MB)" in record.header else "Total Reserved(KB)"
        check.expect(all(float(value) >= 0 for value in record.column(column)), f"{column} is below 0")


@RULES.rule("I9", "a trace with scheduling layers has ftrace_data.db beside it, whose statistics alone are offered")
def i9(rank: Rank, check: Check) -> None:
    if not rank.trace or not any(rank.trace.layer(name) for name in SCHEDULING):
        raise Skip("no scheduling layers in a trace")
    check.expect((rank.out / "ftrace_data.db").is_file(), "no ftrace_data.db")


@RULES.rule("I11", "no table that makes empty lanes, and every process has a name")
def i11(rank: Rank, check: Check) -> None:
    db = need(rank)
    device = [name for name in ("TASK", "COMMUNICATION_OP", "OVERLAP_ANALYSIS") if name in rank.db_tables]
    rows = sum(one(db, f"SELECT count(*) FROM {name}") for name in ("TASK", "COMMUNICATION_OP")
               if name in rank.db_tables)
    check.expect(rows > 0 or not device, f"nothing ran on a device, but there are {device}: four lanes without a slice")
    if "NPUSCOPE_THREAD" not in rank.db_tables or "OSRT_API" not in rank.db_tables:
        return                                  # of another profiler, which has no names
    names = dict(has(rank, "NPUSCOPE_PROCESS").execute("SELECT pid, name FROM NPUSCOPE_PROCESS")) \
        if "NPUSCOPE_PROCESS" in table_names(db) else {}
    for (pid,) in db.execute("SELECT DISTINCT globalTid >> 32 FROM OSRT_API"):
        check.expect(bool(names.get(pid)), f"process {pid} has no name in NPUSCOPE_PROCESS")
