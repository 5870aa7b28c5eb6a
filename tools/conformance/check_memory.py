# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the memory tables C10..C12."""

from __future__ import annotations

from collections import Counter, defaultdict

from capture import Rank
from check_csv import need
from report import Check, RuleSet
from tracefile import us_to_ns

RULES = RuleSet()
PAIR = "PTA+GE"


@RULES.rule("C10", "memory_record: every PTA or GE row is followed by their sum")
def c10(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "memory_record")
    rows = list(table.dicts())
    if rank.prof:                               # GE alone, without sums
        _in_order(check, rows)
        return
    count = Counter(row["Component"] for row in rows)
    if count["PTA"] + count["GE"]:
        check.expect(count[PAIR] == count["PTA"] + count["GE"], f"{count}: sums and events do not match")
    latest: dict[str, int] = {}
    last: dict[str, tuple[float, float]] = {"PTA": (0.0, 0.0), "GE": (0.0, 0.0)}
    for index, row in enumerate(rows):
        name, ts = row["Component"], us_to_ns(row["Timestamp(us)"])
        check.expect(ts >= latest.get(name, 0), f"{name} at {ts} is out of order")
        latest[name] = ts
        values = tuple(float(row[key] or 0) for key in ("Total Allocated(MB)", "Total Reserved(MB)"))
        if name == PAIR:
            right = tuple(last["PTA"][i] + last["GE"][i] for i in (0, 1))
            check.expect(all(abs(values[i] - right[i]) < 1e-6 for i in (0, 1)),
                         f"{PAIR} at {ts}: {values}, expected {right}")
        elif name in last:
            last[name] = (values[0], values[1])
            follower = rows[index + 1] if index + 1 < len(rows) else {}
            check.expect(follower.get("Component") == PAIR and follower.get("Timestamp(us)") == row["Timestamp(us)"],
                         f"{name} at {ts} is not followed by its sum")


def _in_order(check: Check, rows: list[dict[str, str]]) -> None:
    last: dict[str, int] = {}
    for row in rows:
        lane, ts = row["Component"] + row["Device"], us_to_ns(row["Timestamp(us)"])
        check.expect(ts >= last.get(lane, 0), f"{lane} at {ts} is out of order")
        last[lane] = ts


@RULES.rule("C11", "operator_memory: durations are release minus allocation, rows in order")
def c11(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "operator_memory")
    latest, cann_seen = 0, False
    for row in table.dicts():
        name, start = row["Name"], us_to_ns(row["Allocation Time(us)"])
        if rank.prof:
            check.expect(not row["Duration(us)"] or float(row["Duration(us)"]) >= 0,
                         f"{name} at {start}: negative duration")
            continue
        if name.startswith("cann::"):
            cann_seen = True
        else:
            check.expect(not cann_seen, f"{name} at {start} comes after cann:: rows")
            check.expect(start >= latest, f"{name} at {start} is out of order")
            latest = start
        for release, duration in (("Release Time(us)", "Duration(us)"),
                                  ("Active Release Time(us)", "Active Duration(us)")):
            if not row[release]:
                check.expect(not row[duration], f"{name} at {start}: {duration} {row[duration]} without release")
                continue
            right = us_to_ns(row[release]) - start
            check.expect(bool(row[duration]) and abs(float(row[duration]) * 1000 - right) <= 10,
                         f"{name} at {start}: {duration} {row[duration]}, expected {right / 1000}")


@RULES.rule("C12", "npu_module_mem: every module in every sample, grouped by module")
def c12(rank: Rank, check: Check) -> None:
    (table,) = need(rank, "npu_module_mem")
    stamps: dict[str, list[int]] = defaultdict(list)
    order: list[str] = []
    for row in table.dicts():
        stamps[row["Component"]].append(us_to_ns(row["Timestamp(us)"]))
        if not order or order[-1] != row["Component"]:
            order.append(row["Component"])
    check.expect(len(order) == len(stamps), "rows of a module are not together")
    samples = {len(times) for times in stamps.values()}
    check.expect(len(samples) == 1, f"modules have {sorted(samples)} samples")
    for name, times in stamps.items():
        check.expect(times == sorted(times), f"{name}: samples are out of order")
    check.inspected(len(table.rows))
