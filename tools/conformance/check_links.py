# SPDX-License-Identifier: BSD-2-Clause
"""Checks between tables of the databases, and of them with the JSON files: D15..D18, J8, J9."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from capture import Rank, table_names
from check_comm import TOTAL, need, operators
from check_db import NONE_ID, has
from intervals import Interval, length, minus, union
from report import Check, RuleSet, Skip

RULES = RuleSet()
OWN_IDS = 5 << 28               # generation B: numbers of connections that are not CANN's
COMPUTING, COMMUNICATION, EXPOSED, FREE = range(4)
QUEUE, TRACE, OP, MSTX = 50002, 50003, 50001, 50004
POSITION = {QUEUE: 0, TRACE: 1, OP: 2, MSTX: 3}


@RULES.rule("D15", "OVERLAP_ANALYSIS follows from the intervals of the tasks")
def d15(rank: Rank, check: Check) -> None:
    db = has(rank, "OVERLAP_ANALYSIS", "TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP")
    reported: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    for device, kind, start, end in db.execute("SELECT deviceId, type, startNs, endNs FROM OVERLAP_ANALYSIS"):
        reported[device, kind].append((start, end))
    bounded = "SELECT 0" if "NPUSCOPE_TASK_TIME" not in rank.db_tables else \
        "SELECT globalTaskId FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds'"
    spans: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    for device, start, end in db.execute("SELECT deviceId, startNs, endNs FROM TASK"
                                         " JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
                                         f" WHERE globalTaskId NOT IN ({bounded})"):
        spans[device, COMPUTING].append((start, end))
    measured = " WHERE opId NOT IN (SELECT opId FROM COMMUNICATION_TASK_INFO GROUP BY opId" \
        f" HAVING min(globalTaskId IN ({bounded})))" if "COMMUNICATION_TASK_INFO" in rank.db_tables else ""
    for device, start, end in db.execute(f"SELECT deviceId, startNs, endNs FROM COMMUNICATION_OP{measured}"):
        spans[device, COMMUNICATION].append((start, end))
    for device in {key[0] for key in reported.keys() | spans.keys()}:
        compute, comm = spans[device, COMPUTING], spans[device, COMMUNICATION]
        for kind, right in ((COMPUTING, union(compute)), (COMMUNICATION, union(comm)), (EXPOSED, minus(comm, compute))):
            check.expect(length(minus(reported[device, kind], right)) == 0
                         and length(minus(right, reported[device, kind])) == 0,
                         f"device {device}, type {kind}: {len(reported[device, kind])} spans of"
                         f" {length(union(reported[device, kind]))} ns, expected {length(right)} ns")
        busy = union(compute + comm)
        gaps = [(one[1], other[0]) for one, other in zip(busy, busy[1:])]
        free = union(reported[device, FREE])
        least = not length(busy) and not gaps and length(free) == 1     # where nothing was measured: I5
        check.expect(free == union(gaps) or least, f"device {device}: {len(reported[device, FREE])} free spans,"
                     f" expected {len(gaps)}")


@RULES.rule("D16", "PYTORCH_API: queue, Python, operators, marks, in this order; numbers apart from CANN's")
def d16(rank: Rank, check: Check) -> None:
    db = has(rank, "PYTORCH_API")
    before = -1
    for kind, link in db.execute("SELECT type, connectionId FROM PYTORCH_API ORDER BY rowid"):
        position = POSITION.get(kind, -1)
        check.expect(position >= before, f"a row of type {kind} comes after type {before}")
        before = max(position, before)
        check.expect(link is None or kind in (QUEUE, OP, MSTX), f"a row of type {kind} has connection {link}")
    if rank.generation == "B" and "CONNECTION_IDS" in rank.db_tables:
        cann = {row[0] for row in db.execute("SELECT connectionId FROM CANN_API")}
        for (link,) in db.execute("SELECT DISTINCT connectionId FROM CONNECTION_IDS"):
            check.expect(link in cann or link >= OWN_IDS, f"connection {link} is neither CANN's nor above {OWN_IDS}")


@RULES.rule("D17", "PYTORCH_API: an enqueue and its dequeue, a forward and its backward operator share a number")
def d17(rank: Rank, check: Check) -> None:
    db = has(rank, "PYTORCH_API", "CONNECTION_IDS")
    kinds: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for link, kind, name, start in db.execute(
            "SELECT c.connectionId, p.type, value, CAST(p.startNs AS INTEGER) FROM PYTORCH_API p JOIN CONNECTION_IDS c"
            " ON c.id = p.connectionId JOIN STRING_IDS s ON s.id = p.name"
            " WHERE c.connectionId NOT IN (SELECT connectionId FROM CANN_API)"):
        kinds[link].append((start, name, kind))
    for link, rows in kinds.items():
        rows.sort()
        check.expect(len({kind for _, _, kind in rows}) == 1, f"connection {link} joins rows of several types: {rows}")
        if rows[0][2] == QUEUE:
            check.expect(rows[0][1].startswith("Enqueue") and rows[-1][1].startswith("Dequeue"),
                         f"connection {link}: {rows}")


@RULES.rule("D18", "MSTX_EVENTS: marks have no length, connections are none or their own")
def d18(rank: Rank, check: Check) -> None:
    db = has(rank, "MSTX_EVENTS", "ENUM_MSTX_EVENT_TYPE")
    links: Counter[int] = Counter()
    for start, end, kind, link in db.execute("SELECT startNs, endNs, name, connectionId FROM MSTX_EVENTS"
                                             " LEFT JOIN ENUM_MSTX_EVENT_TYPE ON id = eventType"):
        check.expect(start == end or not str(kind).startswith("marker"), f"a mark from {start} to {end}")
        links[link] += link != NONE_ID
    for link, count in links.items():
        check.expect(count <= 1, f"connection {link} is on {count} rows")


def _analyzer(rank: Rank) -> Any:
    if not rank.analysis or "CommAnalyzerTime" not in table_names(rank.analysis):
        raise Skip("no CommAnalyzerTime")
    return rank.analysis


@RULES.rule("J8", "CommAnalyzer tables add up")
def j8(rank: Rank, check: Check) -> None:
    db = _analyzer(rank)
    for name, elapsed, transit, wait, sync, idle in db.execute(
            "SELECT hccl_op_name, elapse_time, transit_time, wait_time, synchronization_time, idle_time"
            f" FROM CommAnalyzerTime WHERE hccl_op_name != '{TOTAL}'"):
        check.expect(abs(idle - (elapsed - transit - wait)) <= 1e-6, f"{name}: idle {idle}")
        check.expect(sync <= wait + 1e-9, f"{name}: synchronization {sync} > wait {wait}")
    for table in {"CommAnalyzerBandwidth", "CommAnalyzerMatrix"} & table_names(db):
        for name, size, time, rate in db.execute("SELECT hccl_op_name, transit_size, transit_time, bandwidth"
                                                 f" FROM {table}"):
            right = round(size / time, 4) if time else 0
            check.expect(abs(rate - right) <= 1e-4 + 1e-12 * right,
                         f"{table} {name}: bandwidth {rate}, expected {right}")


@RULES.rule("J9", "CommAnalyzer tables have the values of the JSON files")
def j9(rank: Rank, check: Check) -> None:
    content, matrix, db = need(rank, "communication.json"), need(rank, "communication_matrix.json"), _analyzer(rank)
    times = {(step, f"{name}@{group}"): row for step, name, group, *row in db.execute(
        "SELECT step, hccl_op_name, group_name, start_timestamp, elapse_time, transit_time, wait_time,"
        " synchronization_time, idle_time FROM CommAnalyzerTime")}
    fields = ("Start Timestamp(us)", "Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)",
              "Idle Time(ms)")
    for step, name, value in operators(content):
        for field, shown in zip(fields, times.get((step, name), ())):
            right = value["Communication Time Info"][field]
            check.expect(abs(shown - right) <= 1e-6, f"{name}: {field} {shown}, in the JSON {right}")
    if "CommAnalyzerMatrix" not in table_names(db):      # a table without rows is not written
        check.expect(not any(value for _, _, value in operators(matrix)),
                     "the JSON has links, the database no CommAnalyzerMatrix")
        return
    links = {(step, f"{name}@{group}", link): row for step, name, group, link, *row in db.execute(
        "SELECT step, hccl_op_name, group_name, src_rank || '-' || dst_rank, transit_size, transit_time, bandwidth"
        " FROM CommAnalyzerMatrix")}
    for step, name, value in operators(matrix):
        for link, one in value.items():
            for field, shown in zip(("Transit Size(MB)", "Transit Time(ms)", "Bandwidth(GB/s)"),
                                   links.get((step, name, link), ())):
                check.expect(abs(shown - one[field]) <= 1e-6, f"{name} {link}: {field} {shown}, in the JSON {one[field]}")
