# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the CSV files: headers (H1), syntax (R1..R5) and contents (C1..C13)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import Optional

import headers
from capture import Rank, Table
from report import Check, RuleSet, Skip
from tracefile import us_to_ns

RULES = RuleSet()
AICORE = ("AI_CORE", "AIC", "AIC_SQE")
COMMUNICATION_CORES = ("HCCL", "COMMUNICATION")
_QUOTED_TIME = re.compile(r'"\s*\d{13,}(\.\d+)?\s*"')
_TIME = re.compile(r"\d+\.\d{3}\t")
_PMU_NAME = re.compile(r"[A-Za-z0-9 _-]+")
_UNITS = re.compile(r"\((us|%|GB/s|KB)\)")
MAY_BE_EMPTY = ("Release Time(us)", "Active Release Time(us)")


def need(rank: Rank, *names: str) -> list[Table]:
    """The named tables, or skip."""
    tables = [rank.table(name) for name in names]
    for name, table in zip(names, tables):
        if table is None:
            raise Skip(f"no {name}.csv")
    return [table for table in tables if table]


def every(rank: Rank) -> list[Table]:
    """All CSV files, or skip."""
    if not rank.csv_names:
        raise Skip("no CSV file")
    return need(rank, *rank.csv_names)


def split_kernels(table: Table) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Rows of kernel_details: computing, communication."""
    compute: list[dict[str, str]] = []
    communication: list[dict[str, str]] = []
    for row in table.dicts():
        (communication if row["Accelerator Core"] in COMMUNICATION_CORES else compute).append(row)
    return compute, communication


def plain(name: str) -> str:
    """A name as it can be compared: in a cell, control characters are blanks, and no name is N/A."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", name).split()) or "N/A"


@RULES.rule("H1", "header lines are those of the generation")
def h1(rank: Rank, check: Check) -> None:
    for table in every(rank):
        known = headers.allowed(table.name, rank.generation, rank.prof)
        if not known:
            check.note(f"{table.name}.csv: no header is known for this file")
            continue
        for line in map(",".join, table.headers):
            check.expect(any(one.fullmatch(line) if isinstance(one, re.Pattern) else one == line for one in known),
                         f"{table.name}.csv: {line}")


@RULES.rule("R1", "every row has as many cells as the header")
def r1(rank: Rank, check: Check) -> None:
    for table in every(rank):
        check.inspected(len(table.rows) + len(table.broken))
        for line in table.broken:
            check.fail(f"{line}: another number of cells than the header")
        index = table.index.get("Device_id")
        if index is not None:
            for row in table.rows:
                if not (row[index].isdigit() or row[index] == "host"):
                    check.fail(f"{table.name}.csv: Device_id {row[index]!r}")


@RULES.rule("R2", "timestamps have three decimals and a TAB and no quotes")
def r2(rank: Rank, check: Check) -> None:
    for table in every(rank):
        for path in table.paths:
            with open(path, encoding="utf-8", newline="") as file:
                for number, line in enumerate(file, 1):
                    if '"' in line and _QUOTED_TIME.search(line):
                        check.fail(f"{path.name}:{number}: a quoted timestamp")
        for name in headers.TIME_COLUMNS:
            index = table.index.get(name)
            for row in table.rows if index is not None else ():
                cell = row[index]
                good = _TIME.fullmatch(cell) is not None or not cell and name in MAY_BE_EMPTY or \
                    cell == "N/A" and name == "task_stop(us)"      # of a task that nobody measured: C17
                check.expect(good, f"{table.name}.csv: {name} {cell!r}")


@RULES.rule("R3", "column names and their number are what the viewer accepts")
def r3(rank: Rank, check: Check) -> None:
    for table in every(rank):
        check.expect(len(table.header) <= 100, f"{table.name}.csv: {len(table.header)} columns")
        start = table.index.get("aicore_time(us)", len(table.header))
        for name in table.header[start:]:
            plain = _UNITS.sub("", name)
            check.expect(_PMU_NAME.fullmatch(plain) is not None and "--" not in plain, f"{table.name}.csv: {name!r}")


@RULES.rule("R4", "device columns name the device of this result")
def r4(rank: Rank, check: Check) -> None:
    for table in every(rank):
        for name in ("Device Type", "Device", "Device_id"):
            for cell in table.column(name) if name in table.index else ():
                number = cell.rpartition(":")[2]
                good = cell == "host" or number.isdigit() and (not rank.devices or int(number) in rank.devices)
                good = good and (name == "Device_id" or cell.startswith("NPU:"))
                check.expect(good, f"{table.name}.csv: {name} {cell!r}, devices {sorted(rank.devices)}")


@RULES.rule("C1", "kernel_details has a row per computing task and per communication operator")
def c1(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "kernel_details")
    compute, communication = split_kernels(table)
    if not rank.trace:
        raise Skip("no timeline")
    check.expect(len(compute) == len(rank.trace.kernels),
                 f"{len(compute)} computing rows, {len(rank.trace.kernels)} tasks in the trace")
    check.expect(len(communication) == len(rank.trace.collectives),
                 f"{len(communication)} communication rows, {len(rank.trace.collectives)} operators in the trace")


def _length(row: dict[str, str]) -> float:
    """ns; what was not measured has an empty cell, and the least length in the trace."""
    return float(row["Duration(us)"]) * 1000 if row["Duration(us)"] else 1.0


@RULES.rule("C2", "kernel_details rows are the tasks of the trace")
def c2(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "kernel_details")
    if not rank.trace:
        raise Skip("no timeline")
    compute, communication = split_kernels(table)
    left: dict[tuple[str, int], list[float]] = defaultdict(list)
    for one in rank.trace.kernels + rank.trace.collectives:
        left[plain(one.name), one.start].append(round(one.length) if one.bounded else one.length)
    for row, reach in [(row, 0) for row in compute] + [(row, 1) for row in communication]:
        start, length = us_to_ns(row["Start Time(us)"]), _length(row)
        key = next((key for key in ((plain(row["Name"]), start + off) for off in range(-reach, reach + 1))
                    if left.get(key)),
                   None)
        if key is None:
            check.expect(False, f"{row['Name']} at {start} ns is not in the trace")
            continue
        nearest = min(left[key], key=lambda other: abs(other - length))
        left[key].remove(nearest)
        check.expect(abs(nearest - length) <= (1.5 if row["Duration(us)"] else 0),
                     f"{key}: duration {length:.1f} ns, in the trace {nearest:.1f}")


@RULES.rule("C3", "kernel_details is in order of start and Wait Time follows from it")
def c3(rank: Rank, check: Check) -> None:
    rank.one_device()
    (table,) = need(rank, "kernel_details")
    slack = 2 if rank.generation == "A" else 300
    before: Optional[tuple[str, int, float]] = None
    before_measured = True
    seen: set[str] = set()
    for row in table.dicts():
        device = row.get("Device_id", "")
        start, measured = us_to_ns(row["Start Time(us)"]), bool(row["Duration(us)"])
        length, wait = (float(row[name] or 0) * 1000 for name in ("Duration(us)", "Wait Time(us)"))
        if before and before[0] == device and not (measured and before_measured):
            check.expect(start >= before[1] and not row["Wait Time(us)"],
                         f"{row['Name']} at {start}: a wait that nobody knows")
        elif before and before[0] == device:
            check.expect(start >= before[1], f"{row['Name']} at {start} comes after {before[1]}")
            right = max(0.0, start - before[1] - before[2])
            check.expect(abs(wait - right) <= slack,
                         f"{row['Name']} at {start}: wait {wait:.0f} ns, expected {right:.0f}")
        elif not before:
            check.expect(wait == 0, f"first row waits {wait:.0f} ns")
        else:
            check.expect(device not in seen, f"rows of device {device} are not together")
        seen.add(device)
        before, before_measured = (device, start, length), measured


Groups = dict[tuple[str, str, str], list[float]]


def _group_kernels(table: Table, left_out: frozenset[tuple[str, int]] = frozenset()) -> Groups:
    groups: Groups = defaultdict(list)
    for row in split_kernels(table)[0]:
        if not left_out or (row["Name"], us_to_ns(row["Start Time(us)"])) not in left_out:
            key = row.get("Device_id", ""), row["Type"], row["Accelerator Core"]
            groups[key].append(float(row["Duration(us)"] or 0))
    return groups


@RULES.rule("C4", "op_statistic is the sum of kernel_details, in order of total time")
def c4(rank: Rank, check: Check) -> None:
    rank.one_device()
    statistic, kernels = need(rank, "op_statistic", "kernel_details")
    groups = _group_kernels(kernels)
    kernels_of_trace = rank.trace.kernels if rank.trace else []
    bounded = frozenset((one.name, one.start) for one in kernels_of_trace if one.bounded)
    measured = _group_kernels(kernels, bounded)
    last: dict[str, float] = {}
    ratios: dict[str, float] = defaultdict(float)
    for row in statistic.dicts():
        device = row.get("Device_id", "")
        key = device, row["OP Type"], row["Core Type"]
        times = groups.get(key, [])
        check.expect(int(row["Count"]) == len(times), f"{key}: count {row['Count']}, kernel_details has {len(times)}")
        times = measured.get(key, [])
        if times:
            total, slack = sum(times), 0.001 * len(times) + 0.001
            for name, right, room in (("Total Time(us)", total, slack), ("Min Time(us)", min(times), 0.0015),
                                      ("Max Time(us)", max(times), 0.0015),
                                      ("Avg Time(us)", total / len(times), 0.0025)):
                check.expect(abs(float(row[name]) - right) <= room, f"{key}: {name} {row[name]}, expected {right:.3f}")
        else:
            check.expect(row["Total Time(us)"] == "N/A" and row["Ratio(%)"] == "N/A",
                         f"{key}: {row['Total Time(us)']} us, but no task was measured")
        total = float(row["Total Time(us)"]) if times else 0.0
        check.expect(total <= last.get(device, math.inf), f"{key}: not in descending order of total time")
        last[device] = total
        ratios[device] += float(row["Ratio(%)"]) if times else 0.0
    for device, total in last.items():
        every_total = sum(sum(times) for key, times in groups.items() if key[0] == device)
        room = 0.01 + 0.0005 * len(statistic.rows)
        check.expect(every_total == 0 or abs(ratios[device] - 100) <= room, f"ratios sum up to {ratios[device]:.3f}")
    if not statistic.rows:
        check.expect(not groups, "op_statistic is empty")


@RULES.rule("C5", "op_statistic lacks communication and nothing else")
def c5(rank: Rank, check: Check) -> None:
    statistic, kernels = need(rank, "op_statistic", "kernel_details")
    reported = {(row.get("Device_id", ""), row["OP Type"], row["Core Type"]) for row in statistic.dicts()}
    for key in reported:
        check.expect(key[2] not in COMMUNICATION_CORES, f"{key} is communication")
    for key in _group_kernels(kernels):
        check.expect(key in reported, f"{key} is missing")


@RULES.rule("C6", "api_statistic is the sum of the CANN slices, in order of name and level")
def c6(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "api_statistic")
    rows = list(table.dicts())
    order = [(row["API Name"].encode(), row["Level"]) for row in rows]
    for one, other in zip(order, order[1:]):
        check.expect(one < other, f"{other} comes after {one}")
    if not rank.trace or not rank.trace.cann:
        raise Skip("no CANN slices")
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in rank.trace.cann:
        groups[one.args.get("level", ""), one.name.partition("@")[2]].append(one.length / 1000)
    check.expect(len(groups) == len(rows), f"{len(rows)} rows, {len(groups)} kinds of calls in the trace")
    for row in rows:
        key = row["Level"], row["API Name"]
        times = groups.get(key, [])
        check.expect(int(row["Count"]) == len(times), f"{key}: count {row['Count']}, the trace has {len(times)}")
        if times:
            mean = sum(times) / len(times)
            variance = sum((time - mean) ** 2 for time in times) / len(times)
            for name, right, room in (("Time(us)", sum(times), 0.002), ("Avg(us)", mean, 0.002),
                                      ("Min(us)", min(times), 0.002), ("Max(us)", max(times), 0.002),
                                      ("Variance", variance, 0.01 + 1e-4 * variance)):
                check.expect(abs(float(row[name]) - right) <= room, f"{key}: {name} {row[name]}, expected {right:.3f}")
    if rank.generation == "B":
        check.expect(set(table.column("Device_id")) <= {"host"}, "Device_id is not host")


@RULES.rule("C7", "there is a launch for every kernel and every communication operator")
def c7(rank: Rank, check: Check) -> None:
    api, kernels = need(rank, "api_statistic", "kernel_details")
    compute, communication = split_kernels(kernels)
    count: Counter[str] = Counter()
    for row in api.dicts():
        if row["Level"] in ("hccl", "communication"):
            count["communication"] += int(row["Count"])
        elif row["Level"] == "node" and row["API Name"] == "launch":
            count["launch"] += int(row["Count"])
    rows = len(compute)
    if rank.trace and rank.trace.cann:          # a launch can make several kernels, and some have none
        links = {one.args.get("connection_id") for one in rank.trace.kernels}
        calls = rank.trace.cann_by_connection
        rows = sum(calls[link].args.get("level") == "node" for link in links if link in calls)
    check.expect(count["launch"] >= rows, f"{count['launch']} launches, {rows} rows")
    check.expect(count["communication"] >= len(communication),
                 f"{count['communication']} communication launches, {len(communication)} rows")


@RULES.rule("C8", "operator_details has a row per operator, in order of start")
def c8(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "operator_details")
    ops = [one for one in rank.trace.torch("cpu_op") if not one.name.startswith("ProfilerStep#")] if rank.trace else []
    if not ops:
        raise Skip("no cpu_op slices")
    check.expect(len(ops) == len(table.rows), f"{len(table.rows)} rows, {len(ops)} operators")
    ops.sort(key=lambda one: one.start)
    for row, one in zip(table.dicts(), ops):
        check.expect(plain(row["Name"]) == plain(one.name), f"row {row['Name']}, expected {one.name} at {one.start}")
        own, total = float(row["Host Self Duration(us)"]), float(row["Host Total Duration(us)"])
        check.expect(own <= total + 0.001, f"{one.name}: self {own} > total {total}")
        check.expect(abs(total * 1000 - one.length) <= 1.5,
                     f"{one.name}: total {total}, in the trace {one.length / 1000}")


@RULES.rule("C9", "device time of operators is the time of the tasks they launched")
def c9(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "operator_details")
    if not rank.trace or not rank.trace.torch("cpu_op"):
        raise Skip("no cpu_op slices")
    reached = {(flow.pid, flow.tid, flow.ts) for flow in rank.trace.flows
               if flow.cat == "async_npu" and flow.phase == "f"}
    times = {ts for _, _, ts in reached}
    twins = {(flow.pid, flow.tid, flow.ts) for flow in rank.trace.flows
             if flow.cat == "HostToDevice" and flow.phase == "f" and flow.ts in times} - reached
    # one arrow a time: it is the id
    low, high = (_device_time(rank, points) for points in (reached, reached | twins))
    for index, name in enumerate(("Device Self Duration(us)", "Device Self Duration With AICore(us)")):
        reported = sum(map(float, table.column(name)))
        check.expect(low[index] - 0.01 <= reported <= high[index] + 0.01,
                     f"sum of {name} is {reported:.3f}, expected {low[index]:.3f} to {high[index]:.3f}")


def _device_time(rank: Rank, points: set[tuple[int, int, int]]) -> tuple[float, float]:
    """Time of the tasks that start at these (pid, tid, ts), and of those on AI cores; us."""
    tasks = [one for point in points for one in rank.trace.at(*point)[:1]]
    return (sum(one.length for one in tasks) / 1000,
            sum(one.length for one in tasks if one.args.get("Task Type") in AICORE) / 1000)


@RULES.rule("C13", "l2_cache and soc_pmu rows are of kernels, or of other tasks that ran")
def c13(rank: Rank, check: Check) -> None:
    (kernels,) = need(rank, "kernel_details")
    tables = [rank.table(name) for name in ("l2_cache", "soc_pmu") if rank.table(name)]
    if not tables:
        raise Skip("no l2_cache.csv, no soc_pmu.csv")
    by_id = "Task ID" in kernels.index
    known = {(row["Stream ID"], row["Task ID"]) if by_id else row["Name"] for row in kernels.dicts()}
    tasks = rank.table("task_time")
    if by_id and tasks:
        known |= {(row["stream_id"], row["task_id"]) for row in tasks.dicts()}
    elif by_id and rank.trace:
        known |= {(str(one.tid), str(one.args.get("Task Id"))) for one in rank.trace.hardware}
    for table in tables:
        for row in table.dicts():
            key = (row["Stream Id"], row["Task Id"]) if by_id else row["Op Name"]
            check.expect(key in known, f"{table.name}.csv: {key} is no task that ran")
