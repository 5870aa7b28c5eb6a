# SPDX-License-Identifier: BSD-2-Clause
"""Checks that a text and a db export of one session agree: X1..X6."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from capture import Rank, table_names
from check_csv import plain
from check_db import columns
from check_step import is_unmeasured
from report import Check, RuleSet, Skip
from tracefile import us_to_ns

RULES = RuleSet()
EDGE_NS = 1


class Pair(NamedTuple):
    """Two results of one process."""
    text: Rank
    db: Rank


def _match(check: Check, what: str, left: dict[object, list[tuple[float, ...]]],
           right: dict[object, list[tuple[float, ...]]]) -> None:
    """Compare rows by key; LEFT is of the text, RIGHT of the db."""
    for key in sorted(left.keys() | right.keys(), key=str):
        ours, theirs = sorted(left.get(key, [])), sorted(right.get(key, []))
        check.expect(len(ours) == len(theirs), f"{what} {key}: {len(ours)} in the text, {len(theirs)} in the db")
        for one, other in zip(ours, theirs):
            check.expect(all(abs(a - b) <= EDGE_NS for a, b in zip(one, other)),
                         f"{what} {key}: {one} in the text, {other} in the db")


@RULES.rule("X1", "TASK has the slices of Ascend Hardware")
def x1(pair: Pair, check: Check) -> None:
    trace, db = pair.text.trace, pair.db.db
    if not trace or not db:
        raise Skip("no trace or no database")
    left: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    right: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    for one in trace.hardware:
        left[one.pid & 31, one.tid, one.args.get("Task Id"), one.args.get("Subtask Id")].append((one.start, one.end))
    if not trace.hardware and "TASK" not in pair.db.db_tables:
        raise Skip("nothing ran on a device")
    parents = set(db.execute("SELECT deviceId, streamId, taskId FROM TASK WHERE contextId != 4294967295"))
    for start, end, device, stream, task, context in db.execute(
            "SELECT startNs, endNs, deviceId, streamId, taskId, contextId FROM TASK"):
        if context != 0xFFFFFFFF or (device, stream, task) not in parents:
            right[device, stream, task, context].append((start, end))
    _match(check, "task", left, right)


@RULES.rule("X2", "COMPUTE_TASK_INFO and COMMUNICATION_OP have the rows of kernel_details")
def x2(pair: Pair, check: Check) -> None:
    table, db = pair.text.table("kernel_details"), pair.db.db
    if not table or not db or "COMPUTE_TASK_INFO" not in pair.db.db_tables:
        raise Skip("no kernel tables")
    left: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    right: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    for row in table.dicts():
        left[plain(row["Name"])].append((us_to_ns(row["Start Time(us)"]), float(row["Duration(us)"] or 0.001) * 1000))
    queries = ["SELECT value, startNs, endNs FROM TASK JOIN COMPUTE_TASK_INFO c USING (globalTaskId)"
               " JOIN STRING_IDS ON id = c.name"]
    if "COMMUNICATION_OP" in pair.db.db_tables:
        queries.append("SELECT value, startNs, endNs FROM COMMUNICATION_OP JOIN STRING_IDS ON id = opName")
    for query in queries:
        for name, start, end in db.execute(query):
            right[plain(name)].append((start, end - start))
    _match(check, "kernel", left, right)


@RULES.rule("X3", "CANN_API has the slices of CANN")
def x3(pair: Pair, check: Check) -> None:
    trace, db = pair.text.trace, pair.db.db
    if not trace or not trace.cann or not db or "CANN_API" not in pair.db.db_tables:
        raise Skip("no calls on one of the sides")
    left: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    right: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    for one in trace.cann:
        left[one.tid, one.args.get("level"), one.name.partition("@")[2]].append((one.start, one.end))
    for tid, level, name, start, end in db.execute(
            "SELECT globalTid & 4294967295, e.name, value, startNs, endNs FROM CANN_API"
            " JOIN STRING_IDS s ON s.id = CANN_API.name JOIN ENUM_API_TYPE e ON e.id = type"):
        right[tid, level, name].append((start, end))
    _match(check, "call", left, right)


@RULES.rule("X4", "StepTraceTime has the rows of step_trace_time")
def x4(pair: Pair, check: Check) -> None:
    table, analysis = pair.text.table("step_trace_time"), pair.db.analysis
    if not table or not analysis or "StepTraceTime" not in table_names(analysis):
        raise Skip("no step tables")
    fields = ("computing, communication_not_overlapped, overlapped, communication, free, stage, bubble,"
              " communication_not_overlapped_and_exclude_receive, preparing")
    keyed = pair.db.generation == "B"
    reported = {(str(row[0]) if keyed else "", str(row[1] or "")): row[2:] for row in analysis.execute(
        f"SELECT {'deviceId' if keyed else '0'}, step, {fields} FROM StepTraceTime")}
    rows = {(row.get("Device_id", ""), row["Step"]): [row[name] for name in table.header
                                                      if name not in ("Device_id", "Step")]
            for row in table.dicts() if not is_unmeasured(row)}
    for key in sorted(reported.keys() | rows.keys()):
        check.expect(key in reported and key in rows, f"step {key} is on one side only")
        for name, one, other in zip(fields.split(", "), rows.get(key, ()), reported.get(key, ())):
            check.expect(abs(float(one) - other) <= 0.3,
                         f"step {key}: {name.strip()} {one} in the text, {other} in the db")


@RULES.rule("X5", "COMMUNICATION_OP has the operators of the communication layer")
def x5(pair: Pair, check: Check) -> None:
    trace, db = pair.text.trace, pair.db.db
    if not trace or not db or not trace.collectives and "COMMUNICATION_OP" not in pair.db.db_tables:
        raise Skip("no communication")
    left: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    right: dict[object, list[tuple[float, ...]]] = defaultdict(list)
    for one in trace.collectives:
        left[one.name].append((one.start, one.end))
    for name, start, end in db.execute(
            "SELECT value, startNs, endNs FROM COMMUNICATION_OP JOIN STRING_IDS ON id = opName"
    ) if "COMMUNICATION_OP" in pair.db.db_tables else ():
        right[name].append((start, end))
    _match(check, "operator", left, right)


@RULES.rule("X6", "OSRT_API has the slices of OS Runtime API, bounds are the same")
def x6(pair: Pair, check: Check) -> None:
    trace, db = pair.text.trace, pair.db.db
    if not trace or not db:
        raise Skip("no trace or no database")
    left = Counter((one.tid, one.name) for one in trace.layer("OS Runtime API"))
    right: Counter[tuple[int, str]] = Counter()
    if "OSRT_API" in pair.db.db_tables:
        for tid, name, count in db.execute("SELECT globalTid & 4294967295, value, count(*) FROM OSRT_API"
                                           " JOIN STRING_IDS ON id = name GROUP BY 1, 2"):
            right[tid, name] += count
    for key in left.keys() | right.keys():
        check.expect(left[key] == right[key], f"{key}: {left[key]} in the text, {right[key]} in the db")
    bounded = sum(one.args.get("time_source") == "host bounds" for one in trace.hardware)
    if bounded or columns(pair.db, "NPUSCOPE_TASK_TIME"):
        reported = db.execute("SELECT count(*) FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds'").fetchone()[0] \
            if columns(pair.db, "NPUSCOPE_TASK_TIME") else 0
        check.expect(reported == bounded, f"{bounded} bounded tasks in the text, {reported} in the db")
