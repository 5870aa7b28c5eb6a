#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Operators of PyTorch in results of sessions.

Witness: the events of the session, decoded without a line of npuscope's, and searched one by one."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple, Optional

import synthetic
from harness import DONE, ROOT, Case, Session, catalogue, main, test
from records import API, MARK, SQE, Event

KERNELS = 300
UNWOUND, UNFINISHED = 0x40, 0x80
ENDINGS = {UNWOUND: "left by an exception", UNFINISHED: "after the capture", 0: None}
OPERATOR, NODE, SEQUENCE, BACKWARD = (
    catalogue()[symbol][0]
    for symbol in ("at::_ops::*::call", "torch::autograd::Engine::evaluate_function",
                   "_ZN2at15sequence_number17get_and_incrementEv", "torch::autograd::Engine::execute"))
STEP = catalogue()[""][0]  # the function of --step-marker
# Of the types that the generator uses.
NODES = {"N5torch8autograd9generated14AddmmBackward0E": "AddmmBackward0",
         "N5torch8autograd14AccumulateGradE": "torch::autograd::AccumulateGrad",
         "N5torch8autograd7CppNodeI5ScaleEE": "torch::autograd::CppNode<Scale>",
         'no C++ name "': 'no C++ name "'}


class Op:
    """A call: times are Unix ns."""

    def __init__(self, tid: int, start: int, end: int, name: str, ending: Optional[str],
                 is_op: bool) -> None:
        self.tid, self.start, self.end, self.name, self.ending, self.is_op = tid, start, end, name, ending, is_op
        self.sequence: Optional[int] = None
        self.forward: Optional[int] = None

    @property
    def row(self) -> tuple[object, ...]:
        return self.start, self.end, self.tid, self.name, self.sequence, self.forward

    def __repr__(self) -> str:
        return f"{self.row} {self.ending}"


class Expected(NamedTuple):
    ops: list[Op]
    pairs: set[tuple[int, int, int, int, int]]  # number, then start and thread of forward and backward


def innermost(ops: list[Op], tid: int, time: int) -> Optional[Op]:
    """The one that began last of those that are open."""
    open_ones = [op for op in ops if op.tid == tid and op.start <= time <= op.end]
    return max(open_ones, key=lambda op: op.start, default=None)


def around(ops: list[Op], inner: Op) -> Optional[Op]:
    """The caller."""
    return max((op for op in ops if op.tid == inner.tid and op.start < inner.start and inner.end <= op.end),
               key=lambda op: op.start, default=None)


def name_of(event: Event, strings: dict[int, str]) -> str:
    """As torch.profiler has it."""
    if event.probe == BACKWARD:
        return "autograd::engine::execute"
    text = strings[event.body.slot[0]]
    return text.split(".")[0] if event.probe == OPERATOR else \
        "autograd::engine::evaluate_function: " + NODES[text]


def expected(session: Session, pid: int) -> Expected:
    """What the results have to show of a process."""
    start = session.json["start"]
    real = start["realtime"] - start["monotonic"]
    last = max(event.end for event in session.events if event.kind in (API, SQE, MARK))
    ops, numbers, nodes = [], [], []
    strings = session.strings
    for event in session.of(API, pid):
        if event.probe == SEQUENCE:
            numbers.append((event.start + real, event.tid, event.body.slot[0]))
        if event.probe not in (OPERATOR, NODE, BACKWARD):
            continue
        end = max(event.end, last) if event.flags & UNFINISHED else event.end
        op = Op(event.tid, event.start + real, end + real, name_of(event, strings),
                ENDINGS[event.flags & (UNWOUND | UNFINISHED)], event.probe == OPERATOR)
        ops.append(op)
        if event.probe == NODE:
            nodes.append((op, event.body.slot[1]))
    for op in ops:  # what was left ends with what called it
        if op.ending == ENDINGS[UNWOUND]:
            caller = innermost([one for one in ops if one.start < op.start], op.tid, op.start)
            op.end = min(op.end, caller.end) if caller else op.end
    pairs = set()
    for time, tid, number in numbers:
        owner = innermost(ops, tid, time)
        if owner and owner.is_op and owner.sequence is None:
            owner.sequence = number
    for node, number in nodes:
        threads = {tid for time, tid, one in numbers if one == number and time <= node.start}
        if len(threads) == 1:
            node.sequence, (node.forward,) = number, threads
    for number in {node.sequence for node, _number in nodes if node.sequence is not None}:
        makers = [op for op in ops if op.sequence == number and op.is_op]
        first = min((node for node, one in nodes if one == number and node.forward), key=lambda op: op.start)
        if makers and makers[-1].tid != first.tid:
            pairs.add((number, makers[-1].start, makers[-1].tid, first.start, first.tid))
    return Expected(ops, pairs)


def ns(text: str) -> int:
    whole, part = text.split(".")
    return int(whole) * 1000 + int(part)


def check_trace(trace: list[dict], want: Expected) -> None:
    """Slices and the arrows between them."""
    trace = [event for event in trace if not event.get("name", "").startswith("ProfilerStep#")]
    slices = [(ns(e["ts"]), ns(e["ts"]) + round(e["dur"] * 1000), e["tid"], e["name"],
               None if e["args"]["Sequence number"] == -1 else e["args"]["Sequence number"],
               e["args"]["Fwd thread id"] or None, e["args"].get("end")) for e in trace if e.get("cat") == "cpu_op"]
    assert sorted(slices, key=str) == sorted(((*op.row, op.ending) for op in want.ops), key=str)
    ends = defaultdict(dict)
    for event in trace:
        if event.get("cat") == "fwdbwd":
            ends[event["id"]][event["ph"]] = ns(event["ts"]), event["tid"]
    assert {(number, *both["s"], *both["f"]) for number, both in ends.items()} == want.pairs
    assert len(want.pairs) > 10, want.pairs


def launches(db: sqlite3.Connection, ops: list[Op]) -> list[tuple[int, int, Op]]:
    """Start and end of each kernel and copy that was queued within an operator, and the operator."""
    found = []
    for begin, end, called, gtid in db.execute(
            "SELECT t.startNs, t.endNs, c.startNs, c.globalTid FROM TASK t JOIN CANN_API c ON c.connectionId ="
            " t.connectionId WHERE t.globalTaskId IN (SELECT globalTaskId FROM COMPUTE_TASK_INFO)"):
        op = innermost(ops, gtid & 0xffffffff, called)
        if op:
            found.append((begin, end, op))
    return found


def check_arrows(trace: list[dict], queued: list[tuple[int, int, Op]]) -> None:
    """From operators to kernels."""
    ends = defaultdict(dict)
    for event in trace:
        if event.get("cat") == "async_npu":
            ends[event["id"]][event["ph"]] = ns(event["ts"]), event["tid"]
    assert {(ident, *both["s"]) for ident, both in ends.items()} == \
        {(begin, op.start, op.tid) for begin, _end, op in queued}
    assert all(both["f"][0] == ident for ident, both in ends.items())


def check_details(path: Path, ops: list[Op], queued: list[tuple[int, int, Op]]) -> None:
    """operator_details.csv"""
    own, children, total = defaultdict(int), defaultdict(int), defaultdict(int)
    for begin, end, op in queued:
        own[op] += end - begin
    for op in ops:
        caller = around(ops, op)
        if caller:
            children[caller] += op.end - op.start
        at: Optional[Op] = op
        while at:
            total[at] += own[op]
            at = around(ops, at)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ops = sorted(ops, key=lambda op: (op.start, -op.end))
    assert [row["Name"] for row in rows] == [op.name for op in ops]
    for row, op in zip(rows, ops):
        values = [float(row[f"{where}(us)"]) for where in ("Host Self Duration", "Host Total Duration",
                                                           "Device Self Duration", "Device Total Duration")]
        want = [op.end - op.start - children[op], op.end - op.start, own[op], total[op]]
        assert all(abs(value * 1000 - ref) < 1 for value, ref in zip(values, want)), f"{op}: {values} {want}"
    assert sum(total[op] > own[op] > 0 for op in ops) == 0 and sum(total[op] > own[op] for op in ops) > 20


def check_result(folder: Path, want: Expected) -> None:
    results = folder / "ASCEND_PROFILER_OUTPUT"
    db = sqlite3.connect(next(results.glob("ascend_pytorch_profiler*.db")))
    rows = db.execute("SELECT CAST(p.startNs AS INTEGER), CAST(p.endNs AS INTEGER), p.globalTid & 4294967295,"
                      " s.value, p.sequenceNumber, p.fwdThreadId FROM PYTORCH_API p JOIN STRING_IDS s ON s.id ="
                      " p.name WHERE p.type = 50001 AND s.value NOT LIKE 'ProfilerStep#%' ORDER BY p.rowid").fetchall()
    assert rows == sorted((op.row for op in want.ops), key=lambda row: (row[0], -row[1]))
    trace = json.loads((results / "trace_view.json").read_text(encoding="utf-8"))
    check_trace(trace, want)
    queued = launches(db, want.ops)
    assert len({op.tid for _begin, _end, op in queued}) > 2
    check_arrows(trace, queued)
    check_details(results / "operator_details.csv", want.ops, queued)


def analysed(case: Case, session: Path, to: str, *options: str) -> list[Path]:
    out = case.npuscope("analyze", *options, "-o", case.path(to), session).expect(DONE).out
    return sorted(Path(line) for line in out.splitlines() if line.endswith("_ascend_pt"))


@test(seconds=300)
def every_result(case: Case) -> None:
    """Rows, names, arrows and times of every operator, of two processes."""
    path = synthetic.session(case, "npuscope_session", KERNELS, "ops")
    folders = analysed(case, path, "out", "--export", "text,db")
    assert len(folders) == 2
    for folder in folders:
        match = re.search(r"_(\d+)_\d+_ascend_pt$", folder.name)
        assert match
        want = expected(Session(path), int(match[1]))
        endings = [op.ending for op in want.ops]
        assert endings.count(ENDINGS[UNWOUND]) == 14 and endings.count(ENDINGS[UNFINISHED]) == 1
        check_result(folder, want)
        case.run(["/usr/bin/python3", ROOT / "tools" / "conformance" / "check", folder]).expect(0)


def step_marks(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Start, end and thread of each ProfilerStep, as the trace and the database have it; STEP_TIME agrees."""
    results = folder / "ASCEND_PROFILER_OUTPUT"
    trace = json.loads((results / "trace_view.json").read_text(encoding="utf-8"))
    slices = [(e["name"], (ns(e["ts"]), ns(e["ts"]) + round(e["dur"] * 1000), e["tid"])) for e in trace
              if e.get("ph") == "X" and e["name"].startswith("ProfilerStep#")]
    assert all(e.get("cat") == "cpu_op" for e in trace if e.get("name", "").startswith("ProfilerStep#"))
    db = sqlite3.connect(next(results.glob("ascend_pytorch_profiler*.db")))
    if not slices and not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'PYTORCH_API'").fetchall():
        return {}   # without STEP_TIME, or with an empty one
    rows = db.execute("SELECT s.value, CAST(p.startNs AS INTEGER), CAST(p.endNs AS INTEGER), p.globalTid & 4294967295"
                      " FROM PYTORCH_API p JOIN STRING_IDS s ON s.id = p.name WHERE s.value LIKE 'ProfilerStep#%'")
    assert sorted(slices) == sorted((name, tuple(row)) for name, *row in rows)
    assert sorted((name, row[:2]) for name, row in slices) == \
        sorted((f"ProfilerStep#{number}", (start, end)) for number, start, end in
               db.execute("SELECT id, startNs, endNs FROM STEP_TIME"))
    return dict(slices)


@test(seconds=300)
def steps_among_operators(case: Case) -> None:
    """A step is one operator ProfilerStep#N, and changes nothing of the others."""
    for words in ((), ("ops",)):
        path = synthetic.session(case, "npuscope_session" + "".join(words), 10 * KERNELS, *words)
        session = Session(path)
        real = session.json["start"]["realtime"] - session.json["start"]["monotonic"]
        found = {}
        for source in ("marker", "period", "none"):
            found[source] = analysed(case, path, source + "".join(words), "--step-source", source, "--export",
                                     "text,db")
            for folder in found[source]:
                case.run(["/usr/bin/python3", ROOT / "tools" / "conformance" / "check", folder]).expect(0)
        for folders in zip(*found.values()):
            pid = int(folders[0].name.split("_")[-4])
            marker, period, none = map(step_marks, folders)
            at = [e.start + real for e in session.of(MARK, pid) if e.probe == STEP]
            assert sorted(marker.values()) == [(*step, pid) for step in zip(at, at[1:])] and len(at) > 10, (marker, at)
            # These begin with a launch: of an operator, which began before it.
            assert len(period) > 10 and {tid == pid for _start, _end, tid in period.values()} == {not words}, period
            assert not none
            details = [folder / "ASCEND_PROFILER_OUTPUT" / "operator_details.csv" for folder in folders]
            assert [file.exists() for file in details] == [bool(words)] * 3
            assert not words or len({file.read_bytes() for file in details}) == 1


@test
def perfetto_and_older_names(case: Case) -> None:
    """Other formats can be written, and the older generation's names keep all rows."""
    path = synthetic.session(case, "npuscope_session", KERNELS, "ops")
    for folder in analysed(case, path, "older", "--compat", "a", "--export", "text,db,perfetto,folded"):
        case.run(["/usr/bin/python3", ROOT / "tools" / "conformance" / "check", folder]).expect(0)
        assert b"left by an exception" in next(folder.rglob("*.pftrace")).read_bytes()


@test
def other_numbers(case: Case) -> None:
    """A session that was recorded with another catalogue has the same results."""
    path = synthetic.session(case, "npuscope_session", KERNELS, "ops")
    first = analysed(case, path, "first", "--export", "text")
    document = json.loads((path / "session.json").read_text())
    document["catalogue"] = 1
    document["probes"] = [{"id": number, "symbol": symbol} for symbol, (number, _ret) in catalogue().items()]
    (path / "session.json").write_text(json.dumps(document))
    second = analysed(case, path, "second", "--export", "text")
    for one, other in zip(first, second):
        name = Path("ASCEND_PROFILER_OUTPUT") / "operator_details.csv"
        assert (one / name).read_bytes() == (other / name).read_bytes()


@test
def launches_as_without_operators(case: Case) -> None:
    """Operators around calls change nothing of what is known of these calls."""
    path = synthetic.session(case, "npuscope_session", KERNELS, "ops")
    document = json.loads((path / "session.json").read_text())
    first = analysed(case, path, "first", "--export", "text")
    document["catalogue"] = 1  # one that has no operators
    document["probes"] = [{"id": number, "symbol": symbol} for symbol, (number, _ret) in catalogue().items()
                          if number not in (OPERATOR, NODE, SEQUENCE, BACKWARD)]
    (path / "session.json").write_text(json.dumps(document))
    out = case.npuscope("analyze", "-o", case.path("second"), "--export", "text", path).out
    second = sorted(Path(line) for line in out.splitlines() if line.endswith("_ascend_pt"))
    assert len(first) == len(second) == 2
    for one, other in zip(first, second):
        assert not (other / "ASCEND_PROFILER_OUTPUT" / "operator_details.csv").exists()
        for name in ("kernel_details.csv", "api_statistic.csv", "task_time.csv"):
            name = Path("ASCEND_PROFILER_OUTPUT") / name
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


if __name__ == "__main__":
    sys.exit(main())
