# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the steps in the databases: D10, D11."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Iterator, Optional

from capture import Rank, table_names
from check_db import has, is_own
from check_schema import need
from intervals import Interval, length, minus, union
from report import Check, RuleSet, Skip

RULES = RuleSet()
FIELDS = ("computing", "communication_not_overlapped", "overlapped", "communication", "free", "stage", "bubble",
          "communication_not_overlapped_and_exclude_receive", "preparing")
Step = tuple[str, Optional[int], Optional[int]]


def _some(spans: list[Interval]) -> list[list[Interval]]:
    """Every selection of a few intervals; of many, all or none."""
    if len(spans) > 6:
        return [spans, []]
    return [[span for position, span in enumerate(spans) if mask >> position & 1] for mask in range(1 << len(spans))]


class Spans:
    """Device intervals of one step on one device."""

    def __init__(self) -> None:
        self.compute: list[Interval] = []
        self.communication: list[Interval] = []
        self.receive = 0
        # computing tasks whose launch was going on when the step began, and when it ended
        self.early: list[Interval] = []
        self.late: list[Interval] = []

    def candidates(self, begin: Optional[int]) -> Iterator[dict[str, float]]:
        """Rows of StepTraceTime in us: a launch that spans two steps can belong to either."""
        for early in _some(self.early):
            for late in _some(self.late):
                yield self._expected(begin, self.compute + early + late)

    def _expected(self, begin: Optional[int], computing: list[Interval]) -> dict[str, float]:
        every = computing + self.communication
        span = max(end for _, end in every) - min(start for start, _ in every) if every else 0
        compute, communication = length(union(computing)), length(union(self.communication))
        exposed = length(minus(self.communication, computing))
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


class Queue:
    """When what ran between a dequeue's begin and end had been put in."""

    def __init__(self, rank: Rank) -> None:
        # thread -> begin, end, number
        self.dequeued: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self.put: dict[int, int] = {}
        if not {"PYTORCH_API", "CONNECTION_IDS"} <= rank.db_tables or not is_own(rank):
            return
        for name, tid, start, end, number in need(rank).execute(
                "SELECT value, globalTid, CAST(startNs AS INTEGER), CAST(endNs AS INTEGER), c.connectionId"
                " FROM PYTORCH_API p JOIN CONNECTION_IDS c ON c.id = p.connectionId"
                " JOIN STRING_IDS s ON s.id = p.name WHERE type = 50002"):
            if name.startswith("Dequeue"):
                self.dequeued[tid].append((start, end, number))
            else:
                self.put[number] = start
        for rows in self.dequeued.values():
            rows.sort()

    def queued(self, tid: Optional[int], at: int) -> Optional[int]:
        """The enqueue of what thread TID ran at AT; None: it was not from the queue."""
        rows = self.dequeued.get(tid, [])
        position = bisect_right(rows, (at, float("inf"))) - 1
        return self.put.get(rows[position][2]) if position >= 0 and at <= rows[position][1] else None


def _collect(rank: Rank, steps: list[Step]) -> dict[tuple[int, str], Spans]:
    """Intervals by (device, step): a task belongs to the step in which it was launched."""
    db = has(rank, "TASK", "COMPUTE_TASK_INFO", "CANN_API")
    spans: dict[tuple[int, str], Spans] = defaultdict(Spans)
    single = len(steps) == 1 and not is_own(rank) or steps[0][1] is None
    bounded = "SELECT 0" if "NPUSCOPE_TASK_TIME" not in rank.db_tables else \
        "SELECT globalTaskId FROM NPUSCOPE_TASK_TIME WHERE source = 'host bounds'"

    def step_of(at: int) -> Optional[str]:
        return steps[0][0] if single else next((ident for ident, begin, end in steps if begin <= at < end), None)

    queue = Queue(rank)
    for start, end, device, tid, launch, launched in db.execute(
            "SELECT t.startNs, t.endNs, t.deviceId, a.globalTid, ifnull(a.startNs, t.startNs),"
            " ifnull(a.endNs, t.startNs) FROM TASK t JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
            " LEFT JOIN CANN_API a USING (connectionId)"
            f" WHERE globalTaskId NOT IN ({bounded})"):
        queued = queue.queued(tid, launch)
        first, last = (step_of(launch), step_of(launched)) if queued is None else (step_of(queued), step_of(queued))
        if first == last and first is not None:
            spans[device, first].compute.append((start, end))
        elif first != last:
            if first is not None:
                spans[device, first].late.append((start, end))
            if last is not None:
                spans[device, last].early.append((start, end))
    if "COMMUNICATION_OP" in rank.db_tables:
        measured = " WHERE o.opId NOT IN (SELECT opId FROM COMMUNICATION_TASK_INFO GROUP BY opId" \
            f" HAVING min(globalTaskId IN ({bounded})))" if "COMMUNICATION_TASK_INFO" in rank.db_tables else ""
        own = "o.deviceId" if rank.generation == "B" else str(next(iter(rank.devices), 0))
        for start, end, device, name, tid, launch in db.execute(
                f"SELECT o.startNs, o.endNs, {own}, value, a.globalTid, ifnull(a.startNs, o.startNs)"
                " FROM COMMUNICATION_OP o LEFT JOIN STRING_IDS ON id = opName"
                f" LEFT JOIN CANN_API a USING (connectionId){measured}"):
            queued = queue.queued(tid, launch)
            step = step_of(launch if queued is None else queued)
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
    keyed = rank.generation == "B"
    rank.one_device()
    steps = _steps(rank)
    begins = {ident: begin for ident, begin, _ in steps}
    spans = _collect(rank, steps)
    reported: set[tuple[int, str]] = set()
    query = f"SELECT {'deviceId,' if keyed else ''} step, {', '.join(FIELDS)} FROM StepTraceTime"
    for row in rank.analysis.execute(query):
        device, row = (row[0], row[1:]) if keyed else (next(iter(rank.devices), 0), row)
        key = device, str(row[0] or "")
        check.expect(key not in reported, f"step {key} occurs twice")
        reported.add(key)
        check.expect(key[1] in begins, f"step {key} is not in STEP_TIME")
        values = dict(zip(FIELDS, row[1:]))
        wrong = [[f"{name} {values[name]}, expected {value:.3f}" for name, value in right.items()
                  if abs(values[name] - value) > 0.0015] for right in spans[key].candidates(begins.get(key[1]))]
        check.inspected(len(FIELDS))
        for text in min(wrong, key=len):
            check.fail(f"step {key}: {text}")
    for key in spans.keys() - reported:
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
            check.expect(marks.get(str(ident)) == (start, end),
                         f"step {ident}: {start}..{end}, mark {marks.get(str(ident))}")
