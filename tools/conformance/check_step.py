# SPDX-License-Identifier: BSD-2-Clause
"""Checks of step_trace_time (C14..C16)."""

from __future__ import annotations

from collections import defaultdict
from typing import Iterator

from capture import Rank
from check_csv import COMMUNICATION_CORES, need
from intervals import Interval, length, minus, union
from report import Check, RuleSet, Skip
from tracefile import us_to_ns

RULES = RuleSet()
ROUNDING_US = 0.3               # upstream sums float64 microseconds
Spans = dict[tuple[str, str], dict[str, list[Interval]]]


@RULES.rule("C14", "step_trace_time adds up")
def c14(rank: Rank, check: Check) -> None:
    rank.one_device()
    (table,) = need(rank, "step_trace_time")
    seen: set[tuple[str, str]] = set()
    measured = _measured_steps(rank)
    for row in table.dicts():
        key = row.get("Device_id", ""), row["Step"]
        check.expect(key not in seen, f"step {key} occurs twice")
        seen.add(key)
        if is_unmeasured(row):
            check.expect(key not in measured, f"{key}: no times, but kernel_details has some")
            continue
        if not all(value for name, value in row.items() if name != "Step"):
            check.fail(f"{key}: some of its cells are empty")
            continue
        value = {name: float(row[name]) for name in table.header if name not in ("Device_id", "Step")}
        hidden, exposed = value["Overlapped"], value["Communication(Not Overlapped)"]
        check.expect(abs(hidden - (value["Communication"] - exposed)) <= 1e-3, f"{key}: Overlapped {hidden}")
        stage = value["Computing"] + exposed + value["Free"] - value["Bubble"]
        check.expect(abs(value["Stage"] - stage) <= ROUNDING_US, f"{key}: Stage {value['Stage']}, expected {stage:.3f}")
        bare = value["Communication(Not Overlapped and Exclude Receive)"]
        check.expect(abs(bare - max(exposed - value["Bubble"], 0)) <= 1e-3, f"{key}: without receive {bare}")
        check.expect(all(one >= 0 for name, one in value.items() if name != "Preparing"), f"{key}: a negative time")
    _steps_of_kernels(rank, check, {step for _, step in seen})


def is_unmeasured(row: dict[str, str]) -> bool:
    """Nothing of it was measured: its cells are empty, all of them."""
    return not any(value for name, value in row.items() if name not in ("Device_id", "Step"))


def _measured_steps(rank: Rank) -> set[tuple[str, str]]:
    """(device, step) of kernels and collectives with a duration."""
    kernels = rank.table("kernel_details")
    return {(row.get("Device_id", ""), row.get("Step Id", "")) for row in kernels.dicts() if row["Duration(us)"]} \
        if kernels else set()


def _steps_of_kernels(rank: Rank, check: Check, known: set[str]) -> None:
    kernels = rank.table("kernel_details")
    if kernels and "Step Id" in kernels.index:
        for step in set(kernels.column("Step Id")) - {""}:
            check.expect(step in known, f"kernel_details has step {step}, step_trace_time has {sorted(known)}")


def _kernel_spans(rank: Rank) -> Spans:
    """Computing and communication spans by (device, step); ns."""
    (table,) = need(rank, "kernel_details")
    spans: Spans = defaultdict(lambda: {"compute": [], "communication": [], "receive": []})
    bounded = {(one.name, one.start) for one in rank.trace.collectives if one.bounded} if rank.trace else set()
    for row in table.dicts():
        start = us_to_ns(row["Start Time(us)"])
        if (row["Name"], start) in bounded or not row["Duration(us)"]:
            continue
        span = start, start + round(float(row["Duration(us)"]) * 1000)
        group = spans[row.get("Device_id", ""), row.get("Step Id", "")]
        communication = row["Accelerator Core"] in COMMUNICATION_CORES
        group["communication" if communication else "compute"].append(span)
        if row["Name"].startswith("hcom_receive"):
            group["receive"].append(span)
    return spans


def _rows(rank: Rank) -> Iterator[tuple[tuple[str, str], dict[str, str], dict[str, list[Interval]]]]:
    (table,) = need(rank, "step_trace_time")
    spans = _kernel_spans(rank)
    for row in table.dicts():
        key = row.get("Device_id", ""), row["Step"]
        if not is_unmeasured(row):
            yield key, row, spans[key]


@RULES.rule("C15", "Preparing is the time from the step mark to the first task")
def c15(rank: Rank, check: Check) -> None:
    rank.one_device()
    need(rank, "step_trace_time")
    steps = rank.trace.steps if rank.trace else {}
    if not steps:
        raise Skip("no ProfilerStep marks")
    for (device, step), row, spans in _rows(rank):
        tasks = spans["compute"] + spans["communication"]
        if step in steps and tasks:
            right = (min(tasks)[0] - steps[step][0].start) / 1000
            check.expect(abs(float(row["Preparing"]) - right) <= ROUNDING_US,
                         f"step {step} device {device}: Preparing {row['Preparing']}, expected {right:.3f}")


@RULES.rule("C16", "step_trace_time follows from the intervals of kernel_details")
def c16(rank: Rank, check: Check) -> None:
    rank.one_device()
    for key, row, spans in _rows(rank):
        count = len(spans["compute"]) + len(spans["communication"])
        room = 0.01 + 0.001 * count
        right = {
            "Computing": length(union(spans["compute"])),
            "Communication": length(union(spans["communication"])),
            "Communication(Not Overlapped)": length(minus(spans["communication"], spans["compute"])),
            "Bubble": sum(end - start for start, end in spans["receive"]),
        }
        for name, value in right.items():
            check.expect(abs(float(row[name]) - value / 1000) <= room,
                         f"step {key}: {name} {row[name]}, expected {value / 1000:.3f}")
