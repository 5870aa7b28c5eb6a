# SPDX-License-Identifier: BSD-2-Clause
"""Checks of communication.json, communication_matrix.json and their tables (J1..J7)."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Iterator

from capture import Rank, table_names
from report import Check, RuleSet, Skip
from tracefile import us_to_ns
from tracemodel import Slice

RULES = RuleSet()
TRANSPORTS = ["RDMA", "HCCS", "PCIE", "SDMA", "SIO"]
TOTAL = "Total Op Info"
LOCAL_RANK = 0xFFFFFFFF
LANES = 256         # planes that a trace can have
SDMA = 0            # ENUM_HCCL_TRANSPORT_TYPE
_OF_DEVICE = re.compile(r"_dev\d+$")      # devices of one process use the same names
_OP = re.compile(r"hcom_\w+?__(\d{3})_\d+(_\d+)?")


def group_hash(name: str) -> str:
    """The number after `@`: two polynomial hashes over the group's name."""
    low = high = 0
    for char in name.encode():
        high = (high * 29 + char) & 0xFFFFFFFF
        low = (low * 131 + char) & 0xFFFFFFFF
    return str(high << 32 | low)


def need(rank: Rank, name: str) -> Any:
    """Content of a JSON file, or skip."""
    content = rank.json(name)
    if content is None:
        raise Skip(f"no {name}")
    return content


def operators(content: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(step, operator@group, value) of either file."""
    for step, kinds in content.items():
        for kind in ("p2p", "collective"):
            for name, value in kinds.get(kind, {}).items():
                yield step, name, value


@RULES.rule("J1", "communication.json: times, ratios, bandwidths and sums agree")
def j1(rank: Rank, check: Check) -> None:
    content = need(rank, "communication.json")
    for step, kinds in content.items():
        check.expect(set(kinds) == {"p2p", "collective"}, f"{step}: keys {sorted(kinds)}")
        for kind, ops in kinds.items():
            real = {name: value for name, value in ops.items() if name != TOTAL}
            for name, value in real.items():
                _operator(check, name, value)
            check.expect((TOTAL in ops) == bool(real), f"{step} {kind}: {TOTAL} and operators do not go together")
            if real and TOTAL in ops:
                _total(check, f"{step} {kind}", real, ops[TOTAL])


def _operator(check: Check, name: str, value: dict[str, Any]) -> None:
    time = value["Communication Time Info"]
    idle = time["Elapse Time(ms)"] - time["Transit Time(ms)"] - time["Wait Time(ms)"]
    check.expect(abs(time["Idle Time(ms)"] - idle) <= 1e-6, f"{name}: Idle {time['Idle Time(ms)']}, expected {idle}")
    _ratios(check, name, time)
    bands = value["Communication Bandwidth Info"]
    check.expect(list(bands) == TRANSPORTS, f"{name}: transports {list(bands)}")
    for transport, band in bands.items():
        size, length = band["Transit Size(MB)"], band["Transit Time(ms)"]
        right = round(size / length, 4) if length else 0
        check.expect(abs(band["Bandwidth(GB/s)"] - right) <= 1e-4, f"{name} {transport}: bandwidth, expected {right}")
        parts = band["Size Distribution"]
        if parts:
            check.expect(abs(sum(part[1] for part in parts.values()) - length) <= 1e-6,
                         f"{name} {transport}: time of parts")
            check.expect(abs(sum(float(key) * part[0] for key, part in parts.items()) - size) <= 1e-6,
                         f"{name} {transport}: size of parts")
    _sdma(check, name, bands)


def _ratios(check: Check, name: str, time: dict[str, Any]) -> None:
    transit = time["Transit Time(ms)"]
    for kind in ("Wait", "Synchronization"):
        part = time[f"{kind} Time(ms)"]
        right = round(part / (part + transit), 4) if part + transit else 0
        check.expect(abs(time[f"{kind} Time Ratio"] - right) <= 1e-4, f"{name}: {kind} Time Ratio, expected {right}")


def _sdma(check: Check, name: str, bands: dict[str, Any]) -> None:
    for key in ("Transit Size(MB)", "Transit Time(ms)"):
        right = sum(bands[one][key] for one in ("HCCS", "PCIE", "SIO"))
        check.expect(bands["SDMA"][key] >= right - 1e-6, f"{name}: SDMA {key} {bands['SDMA'][key]} < {right}")


def _total(check: Check, where: str, ops: dict[str, Any], total: dict[str, Any]) -> None:
    time = total["Communication Time Info"]
    for key in ("Elapse", "Transit", "Wait", "Synchronization", "Idle"):
        key += " Time(ms)"
        right = sum(value["Communication Time Info"][key] for value in ops.values())
        check.expect(abs(time[key] - right) <= 1e-6, f"{where} {TOTAL}: {key} {time[key]}, expected {right}")
    _ratios(check, f"{where} {TOTAL}", time)
    for transport, band in total["Communication Bandwidth Info"].items():
        for key in ("Transit Size(MB)", "Transit Time(ms)"):
            right = sum(value["Communication Bandwidth Info"][transport][key] for value in ops.values())
            check.expect(abs(band[key] - right) <= 1e-6, f"{where} {TOTAL} {transport}: {key}, expected {right}")


def outside_of_steps(rank: Rank) -> list[Slice]:
    """Operators of the trace that belong to no step; if there is one step only, all belong to it."""
    table = rank.table("kernel_details")
    if not rank.trace or not table or "Step Id" not in table.index or len(rank.trace.steps) < 2:
        return []
    known = {(row["Name"], us_to_ns(row["Start Time(us)"])) for row in table.dicts() if row["Step Id"]}
    return [one for one in rank.trace.collectives
            if not any((one.name, one.start + off) in known for off in (-1, 0, 1))]


def _below(planes: list[Slice], ops: list[Slice], lanes: set[tuple[Any, Any]]) -> list[Slice]:
    """The plane tasks of operators: on the lanes behind the group's, within its time."""
    found = []
    for one in planes:
        lane = max((tid for pid, tid in lanes if pid == one.pid and tid < one.tid), default=None)
        if any(op.pid == one.pid and op.tid == lane and op.start <= one.start <= op.end for op in ops):
            found.append(one)
    return found


@RULES.rule("J2", "communication.json has the operators of the trace, with their times")
def j2(rank: Rank, check: Check) -> None:
    content = need(rank, "communication.json")
    if not rank.trace:
        raise Skip("no timeline")
    in_trace: dict[str, list[Slice]] = defaultdict(list)
    for one in rank.trace.collectives:
        in_trace[one.name].append(one)
    reported = {one.name for one in outside_of_steps(rank)}
    for _, name, value in operators(content):
        if name == TOTAL:
            continue
        bare, time = _OF_DEVICE.sub("", name.partition("@")[0]), value["Communication Time Info"]
        reported.add(bare)
        if not in_trace.get(bare):
            check.expect(False, f"{name} is not in the trace")
            continue
        one = min(in_trace[bare], key=lambda other: abs(float(time["Start Timestamp(us)"]) - other.start / 1000))
        check.expect(abs(time["Elapse Time(ms)"] - one.length / 1e6) <= 1.5e-6,
                     f"{name}: Elapse, trace {one.length} ns")
        check.expect(abs(float(time["Start Timestamp(us)"]) - one.start / 1000) <= 0.3,
                     f"{name}: start, trace {one.start}")
    for name in in_trace.keys() - reported:
        check.expect(False, f"{name} is in the trace only")


def _copied(args: dict[str, Any]) -> bool:
    """Whether a plane task counts as a transfer of a link: by SDMA alone, and between known ranks."""
    return args.get("task type") in ("Memcpy", "Reduce_Inline") and args.get("transport type") == "SDMA" and \
        args["src rank"] != LOCAL_RANK


def _link(source: int, target: int) -> str:
    return f"{source}-{source if target == LOCAL_RANK else target}"


def _without_a_lane(rank: Rank) -> list[tuple[int, int, int, int]]:
    """Copies of planes that no chip has, and the trace no lane: ranks, bytes, ns, from the database."""
    if not rank.db or "COMMUNICATION_TASK_INFO" not in rank.db_tables:
        return []
    return rank.db.execute("SELECT srcRank, dstRank, size, endNs - startNs FROM COMMUNICATION_TASK_INFO"
                           " JOIN TASK USING (globalTaskId) JOIN STRING_IDS ON id = COMMUNICATION_TASK_INFO.taskType"
                           " WHERE planeId NOT BETWEEN 0 AND ? AND"
                           " value IN ('Memcpy', 'Reduce_Inline') AND transportType = ? AND srcRank != ?",
                           (LANES - 1, SDMA, LOCAL_RANK)).fetchall()


@RULES.rule("J3", "matrix totals are the sums of the plane tasks")
def j3(rank: Rank, check: Check) -> None:
    content = need(rank, "communication_matrix.json")
    if not rank.trace or not rank.trace.planes:
        raise Skip("no plane tasks in the trace")
    right: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    outside = outside_of_steps(rank)
    lanes = {(one.pid, one.tid) for one in rank.trace.collectives}
    left_out = set(map(id, _below(rank.trace.planes, outside, lanes))) if outside else set()
    for one in rank.trace.planes:
        if id(one) not in left_out and _copied(one.args):
            link = right[_link(one.args["src rank"], one.args["dst rank"])]
            link[0] += max(one.args["size(Byte)"], 0) / 1e6 if one.args["size(Byte)"] != "N/A" else 0
            link[1] += one.length / 1e6
    unseen = _without_a_lane(rank)
    if unseen and outside:
        raise Skip("plane tasks without a lane, and operators outside of steps: which belong to them is not told")
    for source, target, size, length in unseen:
        link = right[_link(source, target)]
        link[0] += max(size, 0) / 1e6
        link[1] += length / 1e6
    reported: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for _, name, links in operators(content):
        if name.partition("@")[0].endswith("-total"):
            for link, value in links.items():
                reported[link][0] += value["Transit Size(MB)"]
                reported[link][1] += value["Transit Time(ms)"]
    for link in sorted(reported.keys() | right.keys()):
        good = all(abs(reported[link][i] - right[link][i]) <= 1e-4 for i in (0, 1))
        check.expect(good, f"{link}: {reported[link]}, expected {right[link]}")


@RULES.rule("J4", "analysis.db has the rows of communication.json")
def j4(rank: Rank, check: Check) -> None:
    content, matrix = need(rank, "communication.json"), need(rank, "communication_matrix.json")
    if not rank.analysis or "CommAnalyzerTime" not in table_names(rank.analysis):
        raise Skip("no CommAnalyzerTime")
    reported = {(step, f"{name}@{group}") for step, name, group in
            rank.analysis.execute("SELECT step, hccl_op_name, group_name FROM CommAnalyzerTime")}
    right = {(step, name) for step, name, _ in operators(content) if name != TOTAL}
    check.inspected(len(right))
    for key in reported ^ right:
        check.fail(f"{key} is in one of the two only")
    rows = rank.analysis.execute("SELECT count(*) FROM CommAnalyzerMatrix").fetchone()[0]
    links = sum(len(value) for _, name, value in operators(matrix) if name != TOTAL)
    check.expect(rows == links, f"CommAnalyzerMatrix has {rows} rows, the JSON {links} links")


@RULES.rule("J5", "group numbers are the hash of the group's name")
def j5(rank: Rank, check: Check) -> None:
    names = set(rank.metadata.get("parallel_group_info", {}))
    if rank.db and "COMMUNICATION_OP" in rank.db_tables:
        names |= {row[0] for row in rank.db.execute(
            "SELECT DISTINCT value FROM COMMUNICATION_OP JOIN STRING_IDS ON STRING_IDS.id = groupName")}
    known = {group_hash(name) for name in names}
    if not known:
        raise Skip("no group has a name")
    ops = {name.rpartition("@")[2] for _, name, _ in operators(rank.json("communication.json") or {}) if name != TOTAL}
    if rank.analysis and "CommAnalyzerTime" in table_names(rank.analysis):
        ops |= {row[0] for row in rank.analysis.execute("SELECT DISTINCT group_name FROM CommAnalyzerTime")}
    for number in ops:
        check.expect(number in known, f"group {number}: names hash to {sorted(known)}")
    if rank.db and "COMMUNICATION_OP" in rank.db_tables:
        for op, group in rank.db.execute(
                "SELECT o.value, g.value FROM COMMUNICATION_OP JOIN STRING_IDS o ON o.id = opName"
                " JOIN STRING_IDS g ON g.id = groupName"):
            match = _OP.match(op)
            check.expect(not match or group_hash(group).endswith(match.group(1)), f"{op} of {group}: wrong digits")


def _both(rank: Rank) -> Iterator[tuple[str, float, float, int, int]]:
    """(operator, start us, elapsed ms, startNs, endNs) from both databases."""
    if not rank.db or not rank.analysis:
        raise Skip("not both databases")
    if "CommAnalyzerTime" not in table_names(rank.analysis) or "COMMUNICATION_OP" not in rank.db_tables:
        raise Skip("no communication tables")
    ops: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, start, end in rank.db.execute("SELECT value, startNs, endNs FROM COMMUNICATION_OP"
                                            " JOIN STRING_IDS ON id = opName"):
        ops[name].append((start, end))          # devices of one process use the same names
    for name, start, elapsed in rank.analysis.execute(
            "SELECT hccl_op_name, start_timestamp, elapse_time FROM CommAnalyzerTime"):
        name = _OF_DEVICE.sub("", name)
        if name in ops:
            yield name, start, elapsed, *min(ops[name], key=lambda span: abs(span[0] / 1000 - start))
        else:
            raise ValueError(f"{name} is not in COMMUNICATION_OP")


@RULES.rule("J6", "CommAnalyzerTime and COMMUNICATION_OP agree on durations")
def j6(rank: Rank, check: Check) -> None:
    for name, _, elapsed, start, end in _both(rank):
        check.expect(abs(elapsed * 1e6 - (end - start)) <= 1.5, f"{name}: {elapsed} ms and {end - start} ns")


@RULES.rule("J7", "CommAnalyzerTime and COMMUNICATION_OP agree on starts, to 50 us")
def j7(rank: Rank, check: Check) -> None:
    for name, reported, _, start, _ in _both(rank):
        check.expect(abs(reported - start / 1000) <= 50, f"{name}: {reported} us and {start} ns")
