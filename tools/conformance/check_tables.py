# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the CSV files that msprof writes beside op_summary: C17..C22."""

from __future__ import annotations

from collections import Counter, defaultdict

from capture import Rank
from check_csv import COMMUNICATION_CORES, need
from report import Check, RuleSet, Skip
from tracefile import us_to_ns

RULES = RuleSet()


def _device(row: dict[str, str]) -> str:
    return row.get("Device_id", "")


@RULES.rule("C17", "task_time has the tasks of the device, in order of start")
def c17(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "task_time")
    rank.one_device()
    rows: Counter[tuple[str, int, int, int, int]] = Counter()
    last: dict[str, int] = {}
    unmeasured_rows = bounded = 0
    for row in table.dicts():
        start, name = us_to_ns(row["task_start(us)"]), row["kernel_name"]
        unmeasured = row["task_stop(us)"] == "N/A"
        unmeasured_rows += unmeasured
        stop = start + 1 if unmeasured else us_to_ns(row["task_stop(us)"])
        check.expect(row["task_time(us)"] == "N/A" if unmeasured
                     else abs(float(row["task_time(us)"]) * 1000 - (stop - start)) <= 1.5,
                     f"{name} at {start}: task_time {row['task_time(us)']}, from {start} to {stop}")
        check.expect(start >= last.get(_device(row), 0), f"{name} at {start} is out of order")
        last[_device(row)] = start
        rows[_device(row), int(row["stream_id"]), int(row["task_id"]), start, stop] += 1
    if rank.trace and rank.trace.hardware:
        one_id = {str(device) for device in rank.devices}
        for one in rank.trace.hardware:
            device = str(one.pid & 31) if rank.generation == "B" else ""
            key = device, one.tid, one.args.get("Task Id"), one.start, one.end
            check.expect(rows[key] > 0, f"{one.name} at {one.start} is in the trace only")
            rows[key] -= 1
            bounded += one.bounded
        check.expect(bounded == unmeasured_rows,
                     f"{unmeasured_rows} rows without times, {bounded} bounded tasks in the trace")
        for device in {key[0] for key in rows} - {""}:
            check.expect(device in one_id, f"device {device} has no layer in the trace")


@RULES.rule("C18", "communication_statistic is the sum of the communication rows")
def c18(rank: Rank, check: Check) -> None:
    statistic, kernels = need(rank, "communication_statistic", "kernel_details")
    rank.one_device()
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in kernels.dicts():
        if row["Accelerator Core"] in COMMUNICATION_CORES:
            groups[_device(row), row["Type"]].append(float(row["Duration(us)"]))
    ratios: dict[str, float] = defaultdict(float)
    for row in statistic.dicts():
        key = _device(row), row["OP Type"]
        times = groups.pop(key, [])
        check.expect(int(row["Count"]) == len(times), f"{key}: count {row['Count']}, there are {len(times)}")
        if times:
            for name, right, room in (("Total Time(us)", sum(times), 0.001 * len(times) + 0.001),
                                      ("Min Time(us)", min(times), 0.0015), ("Max Time(us)", max(times), 0.0015),
                                      ("Avg Time(us)", sum(times) / len(times), 0.0025)):
                check.expect(abs(float(row[name]) - right) <= room, f"{key}: {name} {row[name]}, expected {right:.3f}")
        ratios[_device(row)] += float(row["Ratio(%)"])
    for key in groups:
        check.expect(False, f"{key} is missing")
    for device, ratio in ratios.items():
        check.expect(abs(ratio - 100) <= 0.01 + 0.0005 * len(statistic.rows),
                     f"device {device}: ratios sum up to {ratio:.3f}")


@RULES.rule("C19", "step_trace: times of an iteration follow from its moments")
def c19(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "step_trace")
    for row in table.dicts():
        where = f"iteration {row['Iteration ID']} of model {row['Model ID']}"
        first, back, end = (us_to_ns(row[name]) if row[name].replace(".", "").isdigit() else None
                            for name in ("FP Start(us)", "BP End(us)", "Iteration End(us)"))
        for name, low, high in (("FP to BP Time(us)", first, back), ("Iteration Refresh(us)", back, end)):
            if low is not None and high is not None:
                check.expect(abs(float(row[name]) * 1000 - (high - low)) <= 1.5, f"{where}: {name} {row[name]},"
                             f" expected {(high - low) / 1000}")
        if first is not None and end is not None:
            check.expect(float(row["Iteration Time(us)"]) * 1000 >= end - first - 1.5,
                         f"{where}: {row['Iteration Time(us)']}"
                         f" is shorter than its parts")


@RULES.rule("C20", "msprof_tx rows do not end before they start, marks have no length")
def c20(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "msprof_tx")
    for row in table.dicts():
        for low, high in (("Start_time(us)", "End_time(us)"), ("Device Start_time(us)", "Device End_time(us)")):
            if row.get(low, "").replace(".", "").isdigit():
                start, end = us_to_ns(row[low]), us_to_ns(row[high])
                check.expect(start <= end, f"{row['message']} at {start} ends at {end}")
                check.expect(start == end or not row["event_type"].startswith("marker"), f"{row['message']} is no mark")


def summed_calls(rank: Rank) -> dict[tuple[str, str], list[tuple[int, float, float, float]]]:
    """Thread, call -> (count, total, least, most in us) of calls that the kernel summed up."""
    found = defaultdict(list)
    if rank.db and "NPUSCOPE_OSRT_SUM" in rank.db_tables:
        for thread, name, count, total, least, most in rank.db.execute(
                "SELECT globalTid & 4294967295, value, count, totalNs, minNs, maxNs FROM NPUSCOPE_OSRT_SUM"
                " JOIN STRING_IDS ON id = name WHERE totalNs IS NOT NULL AND minNs IS NOT NULL"):
            found[str(thread), name].append((count, total / 1000, least / 1000, most / 1000))
    return found


@RULES.rule("C21",
            "os_runtime_statistic is the sum of the OS Runtime API slices and of what was summed up in the kernel,"
                   " in order of total time")
def c21(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "os_runtime_statistic")
    if not rank.trace or not rank.trace.layer("OS Runtime API"):
        raise Skip("no OS Runtime API slices")
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in rank.trace.layer("OS Runtime API"):
        groups[str(one.tid), one.name].append(one.length / 1000)
    sums = summed_calls(rank)
    # Only the database has what was summed up: without it the table has at least the slices.
    hidden = not rank.db and "npuscope" in rank.metadata
    last, share = float("inf"), 0.0
    for row in table.dicts():
        key = row["Thread ID"], row["Name"]
        times, more, total = groups.pop(key, []), sums.pop(key, []), float(row["Time(us)"])
        count = len(times) + sum(one[0] for one in more)
        check.expect(int(row["Count"]) == count or (hidden and int(row["Count"]) > count),
                     f"{key}: count {row['Count']}, the trace has {count}")
        check.expect(total <= last, f"{key}: not in descending order of time")
        if count == int(row["Count"]) and count:
            whole = sum(times) + sum(one[1] for one in more)
            for name, right in (("Time(us)", whole), ("Max(us)", max(times + [one[3] for one in more])),
                                ("Min(us)", min(times + [one[2] for one in more])), ("Avg(us)", whole / count)):
                room = 1 + 0.001 * len(times)   # whole microseconds in older files
                check.expect(abs(float(row[name]) - right) <= room, f"{key}: {name} {row[name]}, expected {right:.3f}")
        last = total
        share += float(row["Time(%)"])
    for key in [*groups, *sums]:
        check.expect(False, f"{key} is missing")
    check.expect(not table.rows or abs(share - 1) <= 1e-3, f"the shares sum up to {share}")


@RULES.rule("C22", "aicpu rows: the parts are no longer than the whole, each has its task")
def c22(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "aicpu" if rank.prof else "data_preprocess")
    for row in table.dicts():
        parts = [float(row[name])
                 for name in ("Compute_time(us)", "Memcpy_time(us)", "Dispatch_time(us)", "Total_time(us)")]
        check.expect(min(parts) >= 0, f"{row['Node']} at {row['Timestamp(us)']}: a negative time")
        check.expect(row["Stream ID"].isdigit() and row["Task ID"].isdigit(),
                     f"{row['Node']}: stream {row['Stream ID']!r},"
                     f" task {row['Task ID']!r}")
