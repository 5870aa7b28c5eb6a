# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the profiler database's contents: D1..D9, D12..D14, W1..W4."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from typing import Any, Iterator

import schema
from capture import DB_NAME, OWN_TABLES, Rank
from check_schema import need
from report import Check, RuleSet, Skip

RULES = RuleSet()
NONE_ID = 0xFFFFFFFF
NO_PMU_CORES = ("DSA_SQE", "AI_CPU")
KERNEL_TASKS = ("AI_CORE", "AI_VECTOR_CORE", "KERNEL_", "MIX_")
RANGE_BITS = 28


def columns(rank: Rank, table: str) -> list[str]:
    """Column names of a table, empty if there is no such table."""
    return [row[1] for row in need(rank).execute(f"PRAGMA table_info({table})")]


def has(rank: Rank, *tables: str) -> sqlite3.Connection:
    """The database if it has TABLES, or skip."""
    db = need(rank)
    for table in tables:
        if table not in rank.db_tables:
            raise Skip(f"no table {table}")
    return db


def is_own(rank: Rank) -> bool:
    """Did this project write the database? It then also has what the vendor's tools leave out."""
    return any(table.startswith(OWN_TABLES) for table in rank.db_tables)


def one(db: sqlite3.Connection, query: str) -> Any:
    """The single value of a query."""
    return db.execute(query).fetchone()[0]


@RULES.rule("D1", "every string id is in STRING_IDS")
def d1(rank: Rank, check: Check) -> None:
    db = has(rank, "STRING_IDS")
    for table, names in schema.STRING_COLUMNS.items():
        for name in set(names) & set(columns(rank, table)):
            check.inspected(one(db, f"SELECT count(*) FROM {table}"))
            nulls = "" if (table, name) in schema.NULL_ALLOWED else f" OR {name} IS NULL"
            none = f" AND {name} != {NONE_ID}" if (table, name) in schema.NONE_ALLOWED else ""
            for ident, count in db.execute(
                    f"SELECT {name}, count(*) FROM {table} WHERE ({name} NOT IN (SELECT id FROM STRING_IDS){nulls})"
                    f"{none} GROUP BY {name}"):
                check.fail(f"{table}.{name}: id {ident} of {count} rows is not in STRING_IDS")


@RULES.rule("D2", "task ids are unique, count from 0, and the detail tables refer to them")
def d2(rank: Rank, check: Check) -> None:
    db = has(rank, "TASK")
    count, distinct, low, high = db.execute("SELECT count(*), count(DISTINCT globalTaskId), min(globalTaskId),"
                                            " max(globalTaskId) FROM TASK").fetchone()
    check.inspected(count)
    if count != distinct or count and (low, high) != (0, count - 1):
        check.fail(f"{count} rows, {distinct} ids, from {low} to {high}")
    details = [table for table in ("COMPUTE_TASK_INFO", "COMMUNICATION_TASK_INFO") if table in rank.db_tables]
    for table in details + [t for t in ("TASK_PMU_INFO", "MEMCPY_INFO") if t in rank.db_tables]:
        for (ident,) in db.execute(f"SELECT DISTINCT globalTaskId FROM {table} WHERE globalTaskId NOT IN"
                                   " (SELECT globalTaskId FROM TASK)"):
            check.fail(f"{table}: task {ident} is not in TASK")
    if len(details) == 2:
        for (ident,) in db.execute("SELECT globalTaskId FROM COMPUTE_TASK_INFO INTERSECT"
                                   " SELECT globalTaskId FROM COMMUNICATION_TASK_INFO"):
            check.fail(f"task {ident} is in both detail tables")


@RULES.rule("D3", "tasks and communication operators lead to the call that made them")
def d3(rank: Rank, check: Check) -> None:
    db = has(rank, "TASK", "CANN_API", "STRING_IDS")
    check.inspected(one(db, "SELECT count(*) FROM TASK"))
    seen = f" AND connectionId != {NONE_ID}"
    check.note(f"{one(db, f'SELECT count(*) FROM TASK WHERE connectionId = {NONE_ID}')} tasks state that their launch"
               " was not seen")
    calls = "10000, 20000, 5000" if is_own(rank) else "10000"   # some launches never became a node
    for link, name, start in db.execute(
            "SELECT connectionId, value, startNs FROM TASK LEFT JOIN STRING_IDS ON id = taskType WHERE connectionId"
            f" NOT IN (SELECT connectionId FROM CANN_API) AND ifnull(value, '') NOT LIKE 'PROFILING_%'{seen}"):
        check.fail(f"{name} at {start}: connection id {link} is not in CANN_API")
    for (start,) in db.execute(
            "SELECT TASK.startNs FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId) LEFT JOIN CANN_API"
            f" USING (connectionId) WHERE ifnull(CANN_API.type, 0) NOT IN ({calls}){seen}"):
        check.fail(f"computing task at {start}: its connection id is not that of a launch")
    if "COMMUNICATION_OP" in rank.db_tables:
        for (start,) in db.execute("SELECT startNs FROM COMMUNICATION_OP WHERE connectionId NOT IN"
                                   f" (SELECT connectionId FROM CANN_API){seen}"):
            check.fail(f"communication operator at {start}: connection id is not in CANN_API")


@RULES.rule("D4", "there is a launch for every kernel and every communication operator")
def d4(rank: Rank, check: Check) -> None:
    db = has(rank, "COMPUTE_TASK_INFO", "CANN_API")
    kernels = one(db, "SELECT count(*) FROM COMPUTE_TASK_INFO")
    ops = one(db, "SELECT count(*) FROM COMMUNICATION_OP") if "COMMUNICATION_OP" in rank.db_tables else 0
    count = dict(db.execute("SELECT type, count(*) FROM CANN_API GROUP BY type"))
    node, master = count.get(10000, 0), count.get(5500, 0)
    if rank.generation == "A" and not is_own(rank):
        check.expect(node == kernels + ops, f"{node} node calls, {kernels} kernels and {ops} operators")
        check.expect(master == ops, f"{master} communication calls, {ops} operators")
    else:
        linked = one(db, "SELECT count(DISTINCT connectionId) FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
                     " JOIN CANN_API USING (connectionId) WHERE CANN_API.type = 10000") if node else \
            one(db, "SELECT count(DISTINCT connectionId) FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
                    f" WHERE connectionId != {NONE_ID}")
        check.expect(node >= linked, f"{node} node calls, {linked} launches of kernels")
        check.expect(master >= ops, f"{master} communication calls, {ops} operators")
    check.inspected(kernels + ops)


@RULES.rule("D5", "communication operators span their master plane's tasks, where one is told, and count from 1")
def d5(rank: Rank, check: Check) -> None:
    db = has(rank, "COMMUNICATION_OP")
    ids = [row[0] for row in db.execute("SELECT opId FROM COMMUNICATION_OP ORDER BY opId")]
    check.expect(ids == list(range(1, len(ids) + 1)) or rank.generation == "B" and ids == list(range(len(ids))),
                 f"opId {ids[:10]}")
    if "COMMUNICATION_TASK_INFO" not in rank.db_tables:
        return
    measured = "1" if "NPUSCOPE_TASK_TIME" not in rank.db_tables else \
        "globalTaskId NOT IN (SELECT globalTaskId FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds')"
    columns = {row[1] for row in db.execute("PRAGMA table_info(COMMUNICATION_TASK_INFO)")}
    master = "coalesce(isMaster, 0)" if "isMaster" in columns else "0"
    spans: dict[int, list[tuple[int, int, int | None, int | None]]] = defaultdict(list)
    for ident, *span in db.execute(
            "SELECT o.opId, o.startNs, o.endNs, min(CASE WHEN m THEN t.startNs END), max(CASE WHEN m THEN t.endNs END)"
            " FROM COMMUNICATION_OP o JOIN (SELECT opId, planeId, globalTaskId,"
            f" {measured} AND {master} >= max({master}) OVER (PARTITION BY opId) AS m FROM COMMUNICATION_TASK_INFO)"
            " USING (opId) JOIN TASK t USING (globalTaskId) GROUP BY o.opId, planeId"):
        spans[ident].append(tuple(span))
    for ident, planes in spans.items():
        (start, end), found = planes[0][:2], [(low, high) for _, _, low, high in planes if low is not None]
        if not found:
            check.expect(end == start + 1,
                         f"operator {ident}: {start}..{end}, none of its tasks was measured: the least is 1 ns")
            continue
        whole = min(low for low, _ in found), max(high for _, high in found)
        # Older tables do not mark the master's plane.
        right = [whole] if "isMaster" in columns else [whole, *found]
        check.expect((start, end) in right, f"operator {ident}: {start}..{end}, its tasks {whole[0]}..{whole[1]}")
    for (ident,) in db.execute("SELECT DISTINCT opId FROM COMMUNICATION_TASK_INFO WHERE opId NOT IN"
                               " (SELECT opId FROM COMMUNICATION_OP)"):
        check.fail(f"COMMUNICATION_TASK_INFO: operator {ident} does not exist")


@RULES.rule("D6", "nothing ends before it starts or lies outside of the session")
def d6(rank: Rank, check: Check) -> None:
    db = has(rank, "SESSION_TIME_INFO")
    rows = db.execute("SELECT startTimeNs, endTimeNs FROM SESSION_TIME_INFO").fetchall()
    check.expect(len(rows) == 1, f"SESSION_TIME_INFO has {len(rows)} rows")
    start, end = rows[0]
    check.expect(0 < start < end, f"session from {start} to {end}")
    for table in sorted(rank.db_tables):
        names = columns(rank, table)
        for name in (name for name in names if name in schema.TIME_COLUMNS):
            value = f"CAST({name} AS INTEGER)"
            count, low, high, outside = db.execute(
                f"SELECT count({name}), min({value}), max({value}), total({value} < {start} OR {value} > {end})"
                f" FROM {table}").fetchone()
            check.inspected(count)
            if outside:
                check.fail(f"{table}.{name}: {int(outside)} rows outside of the session {start}..{end}: {low}..{high}")
        if "startNs" in names and "endNs" in names:
            wrong = one(db, f"SELECT count(*) FROM {table} WHERE CAST(endNs AS INTEGER) < CAST(startNs AS INTEGER)")
            check.expect(not wrong, f"{table}: {wrong} rows end before they start")
    if rank.generation == "A" and "AICORE_FREQ" in rank.db_tables and not is_own(rank):
        span = db.execute("SELECT min(timestampNs), max(timestampNs) FROM AICORE_FREQ").fetchone()
        check.expect(span[1] == end and span[0] >= start, f"AICORE_FREQ from {span[0]} to {span[1]}")


@RULES.rule("D7", "every kernel on an AI core has the same PMU values")
def d7(rank: Rank, check: Check) -> None:
    db = has(rank, "TASK_PMU_INFO", "COMPUTE_TASK_INFO")
    names = one(db, "SELECT count(DISTINCT name) FROM TASK_PMU_INFO")
    have = dict(db.execute("SELECT globalTaskId, count(DISTINCT name) FROM TASK_PMU_INFO GROUP BY globalTaskId"))
    rows = one(db, "SELECT count(*) FROM TASK_PMU_INFO")
    check.expect(rows == names * len(have), f"{rows} rows, {names} names, {len(have)} kernels")
    for ident, core in db.execute("SELECT globalTaskId, value FROM COMPUTE_TASK_INFO LEFT JOIN STRING_IDS"
                                  " ON id = taskType"):
        if core not in NO_PMU_CORES and (rank.generation == "A" or ident in have):
            check.expect(have.get(ident) == names, f"task {ident}: {have.get(ident, 0)} of {names} values")


@RULES.rule("D8", "framework connections come in pairs")
def d8(rank: Rank, check: Check) -> None:
    db = has(rank, "CONNECTION_IDS", "PYTORCH_API")
    cann = {row[0] for row in db.execute("SELECT connectionId FROM CANN_API")}
    for link, count in db.execute("SELECT connectionId, count(*) FROM CONNECTION_IDS GROUP BY connectionId"):
        check.expect(link in cann or count == 2, f"connection id {link}: {count} rows")
    for kind, queue in (("queue", True), ("other", False)):
        values = [row[0] for row in db.execute(
            "SELECT c.connectionId FROM PYTORCH_API p JOIN CONNECTION_IDS c ON c.id = p.connectionId WHERE p.type"
            f" {'=' if queue else '!='} 50002 ORDER BY c.connectionId") if row[0] not in cann]
        distinct = sorted(set(values))
        check.expect(not distinct or distinct[-1] - distinct[0] + 1 == len(distinct), f"{kind} ids are not contiguous")
        check.inspected(len(values))
    for (ident,) in db.execute("SELECT connectionId FROM PYTORCH_API WHERE connectionId IS NOT NULL AND connectionId"
                               " NOT IN (SELECT id FROM CONNECTION_IDS)"):
        check.fail(f"PYTORCH_API: connection {ident} is not in CONNECTION_IDS")


@RULES.rule("D9", "TASK and CANN_API are in order of start")
def d9(rank: Rank, check: Check) -> None:
    db = need(rank)
    for table in ("TASK", "CANN_API"):
        last = 0
        for (start,) in db.execute(f"SELECT startNs FROM {table} ORDER BY rowid") if table in rank.db_tables else ():
            check.expect(start >= last, f"{table}: row at {start} comes after {last}")
            last = start


@RULES.rule("D12", "memory tables add up")
def d12(rank: Rank, check: Check) -> None:
    db = need(rank)
    if not rank.db_tables & {"MEMORY_RECORD", "OP_MEMORY", "NPU_OP_MEM"}:
        raise Skip("no memory tables")
    if "MEMORY_RECORD" in rank.db_tables:
        _memory_record(db, check)
    if "OP_MEMORY" in rank.db_tables:
        for name, start, release, active, length, active_length in db.execute(
                "SELECT name, allocationTime, releaseTime, activeReleaseTime, duration, activeDuration FROM OP_MEMORY"):
            for end, reported in ((release, length), (active, active_length)):
                right = end - start if end is not None else None
                check.expect(reported == right, f"OP_MEMORY {name} at {start}: duration {reported}, expected {right}")
    if "NPU_OP_MEM" in rank.db_tables:
        count = Counter(row[0] for row in db.execute("SELECT value FROM NPU_OP_MEM JOIN STRING_IDS ON id = type"))
        good = count["allocate"] == count["release"] or rank.generation == "B"
        check.expect(good, f"NPU_OP_MEM: {dict(count)}")
    if rank.generation == "A" and "NPU_MODULE_MEM" in rank.db_tables:
        samples = {row[0] for row in db.execute("SELECT count(*) FROM NPU_MODULE_MEM GROUP BY moduleId")}
        check.expect(len(samples) == 1, f"NPU_MODULE_MEM: modules have {samples} samples")


def _memory_record(db: sqlite3.Connection, check: Check) -> None:
    last: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    count: Counter[str] = Counter()
    for name, ts, allocated, reserved in db.execute(
            "SELECT value, timestamp, totalAllocated, totalReserved FROM MEMORY_RECORD"
            " JOIN STRING_IDS ON id = component ORDER BY MEMORY_RECORD.rowid"):
        count[name] += 1
        if name == "PTA+GE":
            right = tuple(last["PTA"][i] + last["GE"][i] for i in (0, 1))
            check.expect((allocated, reserved) == right, f"PTA+GE at {ts}: {(allocated, reserved)}, expected {right}")
        else:
            last[name] = allocated or 0, reserved or 0
    check.expect(not count["PTA"] + count["GE"] or count["PTA+GE"] == count["PTA"] + count["GE"],
                 f"MEMORY_RECORD: {dict(count)}")


@RULES.rule("D13", "string ids are contiguous per range and no string is empty")
def d13(rank: Rank, check: Check) -> None:
    db = has(rank, "STRING_IDS")
    for part, low, high, count, distinct in db.execute(
            f"SELECT id >> {RANGE_BITS}, min(id), max(id), count(*), count(DISTINCT value) FROM STRING_IDS"
            f" GROUP BY id >> {RANGE_BITS}"):
        check.inspected(count)
        base = part << RANGE_BITS
        if low != base or high != base + count - 1:
            check.fail(f"range {part}: {count} ids from {low} to {high}")
        if distinct != count:
            check.fail(f"range {part}: {count - distinct} strings occur twice")
        if part > 2:
            check.fail(f"range {part} does not exist")
    for (ident,) in db.execute("SELECT id FROM STRING_IDS WHERE value IS NULL OR value = ''"):
        check.fail(f"string {ident} is empty")


@RULES.rule("D14", "a kernel task without details is the parent of others")
def d14(rank: Rank, check: Check) -> None:
    db = has(rank, "TASK", "COMPUTE_TASK_INFO", "STRING_IDS")
    detailed = "SELECT globalTaskId FROM COMPUTE_TASK_INFO"
    if "COMMUNICATION_TASK_INFO" in rank.db_tables:
        detailed += " UNION SELECT globalTaskId FROM COMMUNICATION_TASK_INFO"
    children = set(db.execute(f"SELECT streamId, taskId FROM TASK WHERE contextId != {NONE_ID}"))
    check.inspected(one(db, "SELECT count(*) FROM TASK"))
    for name, stream, task, start in db.execute(
            f"SELECT value, streamId, taskId, startNs FROM TASK JOIN STRING_IDS ON id = taskType"
            f" WHERE globalTaskId NOT IN ({detailed})"):
        if name.startswith(KERNEL_TASKS) and (stream, task) not in children:
            check.fail(f"{name} of stream {stream} task {task} at {start} is in no detail table")


# ---- what the viewer needs beyond that ----

@RULES.rule("W1", "file name, RANK_DEVICE_MAP, NPU_INFO and tasks name the same rank and device")
def w1(rank: Rank, check: Check) -> None:
    db = has(rank, "RANK_DEVICE_MAP", "NPU_INFO", "TASK")
    pairs = db.execute("SELECT rankId, deviceId FROM RANK_DEVICE_MAP").fetchall()
    check.expect(bool(pairs), "RANK_DEVICE_MAP is empty: no statistics")
    npus = {row[0] for row in db.execute("SELECT id FROM NPU_INFO")}
    devices = {row[0] for row in db.execute("SELECT DISTINCT deviceId FROM TASK")}
    mapped = {device for _, device in pairs}
    check.expect(devices <= mapped, f"TASK has devices {sorted(devices)}, RANK_DEVICE_MAP {sorted(mapped)}")
    check.expect(devices <= npus, f"TASK has devices {sorted(devices)}, NPU_INFO {sorted(npus)}")
    check.expect(len(rank.db_paths) == 1, f"{len(rank.db_paths)} profiler databases in one folder")
    number = DB_NAME.fullmatch(rank.db_paths[0].name).group(2) if not rank.prof else None
    ranks = {one for one, _ in pairs}
    good = int(number) in ranks if number else -1 in ranks or rank.rank is None or len(ranks) == 1
    check.expect(good, f"{rank.db_paths[0].name} holds ranks {sorted(ranks)}")
    check.expect(rank.rank is None or rank.rank in ranks,
                 f"profiler_info says rank {rank.rank}, the map {sorted(ranks)}")
    for table in sorted(rank.db_tables):
        if "deviceId" in columns(rank, table) and not table.startswith(OWN_TABLES):
            for (device,) in db.execute(f"SELECT DISTINCT deviceId FROM {table}"):
                check.expect(device in mapped, f"{table}: device {device} is not in RANK_DEVICE_MAP")


@RULES.rule("W2", "global thread ids hold the process of the tasks")
def w2(rank: Rank, check: Check) -> None:
    db = has(rank, "TASK", "CANN_API")
    pids = {row[0] for row in db.execute("SELECT DISTINCT globalPid FROM TASK")}
    for table in sorted(rank.db_tables):
        if "globalTid" in columns(rank, table) and not table.startswith(OWN_TABLES):
            threadless = table == "GC_RECORD"   # who collected is not recorded
            for value, count in db.execute(f"SELECT globalTid, count(*) FROM {table} GROUP BY globalTid"):
                thread = isinstance(value, int) and (value & 0xFFFFFFFF > 0 or threadless)
                check.expect(thread and (not pids or value >> 32 in pids),
                             f"{table}: globalTid {value} of {count} rows, process {sorted(pids)}")


@RULES.rule("W3", "enumeration values exist")
def w3(rank: Rank, check: Check) -> None:
    db = need(rank)
    for table, column, enum in schema.ENUM_COLUMNS:
        if column in columns(rank, table) and enum in rank.db_tables:
            for value, count, known in db.execute(
                    f"SELECT {column}, count(*), {column} IN (SELECT id FROM {enum}) FROM {table} GROUP BY {column}"):
                check.expect(bool(known), f"{table}.{column}: {value} of {count} rows is not in {enum}")


@RULES.rule("W4", "bounds of task times are consistent and belong to tasks")
def w4(rank: Rank, check: Check) -> None:
    db = has(rank, "NPUSCOPE_TASK_TIME")
    check.inspected(one(db, "SELECT count(*) FROM NPUSCOPE_TASK_TIME"))
    for row in _bounded(db):
        ident, source, low, high, end_low, end_high, start, end = row
        where = f"task {ident} ({source})"
        if start is None:
            check.fail(f"{where} is not in TASK")
        for left, right in ((low, high), (end_low, end_high)):
            if left is not None and right is not None and left > right:
                check.fail(f"{where}: {left} > {right}")
        if low is not None and end_high is not None and low >= end_high:
            check.fail(f"{where}: ends by {end_high} and starts at {low} or later")
        if source == "host bounds" and end != start + 1:
            check.fail(f"{where}: lasts {end - start} ns, not the least, 1")
        if not source:
            check.fail(f"task {ident} has no source")


def _bounded(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    return db.execute("SELECT n.globalTaskId, n.source, startLowNs, startHighNs, endLowNs, endHighNs,"
                      " t.startNs, t.endNs FROM NPUSCOPE_TASK_TIME n LEFT JOIN TASK t USING (globalTaskId)")
