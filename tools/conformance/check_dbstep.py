# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the steps in the databases: D10, D11."""

from __future__ import annotations

from collections import defaultdict
from typing import Optional

from capture import Rank, table_names
from check_db import has
from check_schema import need
from intervals import Interval, length, minus, union
from report import Check, RuleSet, Skip

RULES = RuleSet()
FIELDS = ("computing", "communication_not_overlapped", "overlapped", "communication", "free", "stage", "bubble",
          "communication_not_overlapped_and_exclude_receive", "preparing")
Step = tuple[str, Optional[int], Optional[int]]


class Spans:
    """Device intervals of one step on one device."""

    def __init__(self) -> None:
        self.compute: list[Interval] = []
        self.communication: list[Interval] = []
        self.receive = 0

    def expected(self, begin: Optional[int]) -> dict[str, float]:
        """The row of StepTraceTime in us."""
        every = self.compute + self.communication
        span = max(end for _, end in every) - min(start for start, _ in every) if every else 0
        compute, communication = length(union(self.compute)), length(union(self.communication))
        exposed = length(minus(self.communication, self.compute))
        right = {"computing": compute, "communication": communication, "communication_not_overlapped": exposed,
                 "overlapped": communication - exposed, "free": span - compute - exposed, "stage": span - self.receive,
                 "bubble": self.receive,
                 "communication_not_overlapped_and_exclude_receive": max(exposed - self.receive, 0)}
        if begin is not None and every:
            right["preparing"] = min(start for start, _ in every) - begin
        return {name: value / 1000 for name, value in right.items()}


def _steps(rank: Rank) -> list[Step]:
    if "STEP_TIME" in rank.db_tables and need(rank).execute("SELECT count(*) FROM STEP_TIME").fetchone()[0]:
        return [(str(ident), start, end) for ident, start, end in need(rank).execute(
            "SELECT id, startNs, endNs FROM STEP_TIME ORDER BY startNs")]
    return [("", None, None)]


def _collect(rank: Rank, steps: list[Step]) -> dict[tuple[int, str], Spans]:
    """Intervals by (device, step): a task belongs to the step in which its launch began."""
    db = has(rank, "TASK", "COMPUTE_TASK_INFO", "CANN_API")
    spans: dict[tuple[int, str], Spans] = defaultdict(Spans)
    single = len(steps) == 1
    bounded = "SELECT 0" if "NPUSCOPE_TASK_TIME" not in rank.db_tables else \
        "SELECT globalTaskId FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds'"

    def step_of(launch: Optional[int], start: int) -> Optional[str]:
        if single:
            return steps[0][0]
        at = start if launch is None else launch
        return next((ident for ident, begin, end in steps if begin <= at < end), None)

    for start, end, device, launch in db.execute(
            "SELECT t.startNs, t.endNs, t.deviceId, a.startNs FROM TASK t JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
            f" LEFT JOIN CANN_API a USING (connectionId) WHERE globalTaskId NOT IN ({bounded})"):
        step = step_of(launch, start)
        if step is not None:
            spans[device, step].compute.append((start, end))
    if "COMMUNICATION_OP" in rank.db_tables:
        measured = " WHERE o.opId NOT IN (SELECT opId FROM COMMUNICATION_TASK_INFO GROUP BY opId" \
            f" HAVING min(globalTaskId IN ({bounded})))" if "COMMUNICATION_TASK_INFO" in rank.db_tables else ""
        own = "o.deviceId" if rank.generation == "B" else str(next(iter(rank.devices), 0))
        for start, end, device, name, launch in db.execute(
                f"SELECT o.startNs, o.endNs, {own}, value, a.startNs FROM COMMUNICATION_OP o"
                f" LEFT JOIN STRING_IDS ON id = opName LEFT JOIN CANN_API a USING (connectionId){measured}"):
            step = step_of(launch, start)
            if step is not None:
                spans[device, step].communication.append((start, end))
                if str(name).startswith("hcom_receive"):
                    spans[device, step].receive += end - start
    return spans


@RULES.rule("D10", "StepTraceTime follows from the intervals of the tasks")
def d10(rank: Rank, check: Check) -> None:
    has(rank, "TASK")
    if not rank.analysis or "StepTraceTime" not in table_names(rank.analysis):
        raise Skip("no StepTraceTime")
    steps = _steps(rank)
    begins = {ident: begin for ident, begin, _ in steps}
    spans = _collect(rank, steps)
    keyed = rank.generation == "B"
    told: set[tuple[int, str]] = set()
    query = f"SELECT {'deviceId,' if keyed else ''} step, {', '.join(FIELDS)} FROM StepTraceTime"
    for row in rank.analysis.execute(query):
        device, row = (row[0], row[1:]) if keyed else (next(iter(rank.devices), 0), row)
        key = device, str(row[0] or "")
        check.expect(key not in told, f"step {key} occurs twice")
        told.add(key)
        check.expect(key[1] in begins, f"step {key} is not in STEP_TIME")
        right = spans[key].expected(begins.get(key[1]))
        for name, value in zip(FIELDS, row[1:]):
            if name in right:
                check.expect(abs(value - right[name]) <= 0.0015, f"step {key}: {name} {value}, expected {right[name]:.3f}")
    for key in spans.keys() - told:
        check.expect(not spans[key].compute, f"step {key} is missing")


@RULES.rule("D11", "STEP_TIME has the step marks, one after the other")
def d11(rank: Rank, check: Check) -> None:
    db = has(rank, "STEP_TIME")
    last, seen = 0, set()
    for ident, start, end in db.execute("SELECT id, startNs, endNs FROM STEP_TIME ORDER BY startNs"):
        check.expect(ident not in seen, f"step {ident} occurs twice")
        check.expect(last <= start < end, f"step {ident} from {start} to {end} overlaps the one before")
        seen.add(ident)
        last = end
    if "PYTORCH_API" not in rank.db_tables:
        return
    marks = {value.partition("#")[2]: (int(start), int(end)) for value, start, end in db.execute(
        "SELECT value, startNs, endNs FROM PYTORCH_API JOIN STRING_IDS ON STRING_IDS.id = name"
        " WHERE value LIKE 'ProfilerStep#%'")}
    for ident, start, end in db.execute("SELECT id, startNs, endNs FROM STEP_TIME"):
        if marks:
            check.expect(marks.get(str(ident)) == (start, end), f"step {ident}: {start}..{end}, mark {marks.get(str(ident))}")
