#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--record-shapes with --ops: what PyTorch's operators are called with, seen from outside. Witness:
torch.profiler, in the same job, over the same rounds."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from harness import JOB_SOURCES, Case, Session, main, need, need_root, test
from records import API, INPUT

DIMS_MAX = 8  # of a tensor that is recorded
Call = tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]  # sizes and type of each argument


class Run(NamedTuple):
    """What one job's capture and its profiler have."""

    session: Session
    results: Path
    witness: dict[str, list[Call]]


def traced(case: Case, rounds: int, threads: int, *options: str) -> Run:
    """The capture of the first half of the job, analysed, and what the profiler saw in the second."""
    need_root()
    found = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False)
    need(found.returncode == 0, "PyTorch for /usr/bin/python3: apt-get install python3-torch")
    job = case.start(["/usr/bin/python3", JOB_SOURCES / "torch_shapes.py", rounds, threads])
    job.wait_for("^ready", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "all", *options)
    job.send("go")
    job.wait_for("^done", seconds=240)
    run.signal(2)
    session = run.result(120).expect(0).session
    job.send("count")
    assert job.wait(240) == 0, job.err
    assert not session.dropped(), session.json["drops"]
    witness = {name: [(tuple(tuple(size) for size in sizes), tuple(types)) for sizes, types in calls]
               for name, calls in json.loads(job.out.splitlines()[-1]).items()}
    return Run(session, next(case.path("out").rglob("ASCEND_PROFILER_OUTPUT")), witness)


def argument_sizes(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, sizes.split(","))) if sizes else () for sizes in text.split(";\r\n"))


def operators(results: Path) -> list[dict[str, Any]]:
    events = json.loads((results / "trace_view.json").read_text(encoding="utf-8"))
    return [e for e in events if e.get("cat") == "cpu_op" and e["name"].startswith("aten::")]


def call_of(event: dict[str, Any]) -> Call:
    """As torch 1.13 has it, which has no word for lists of numbers, nor for None."""
    types = event["args"].get("Input type", "")
    known = tuple("" if t in ("None", "ScalarList") else t for t in types.split(";\r\n"))
    return argument_sizes(event["args"].get("Input Dims", "")), known


def is_recorded(call: Call) -> bool:
    return all(len(size) <= DIMS_MAX for size in call[0])


@test(seconds=600)
def arguments_are_those_of_the_profiler(case: Case) -> None:
    """Each call of each operator, in two threads, has the sizes and types that the profiler has."""
    run = traced(case, 10, 2, "--record-shapes")
    lanes: defaultdict[int, defaultdict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for event in sorted(operators(run.results), key=lambda e: float(e["ts"])):
        lanes[event["tid"]][event["name"]].append(call_of(event))
    assert len(lanes) == 2, list(lanes)
    large, compared = 0, 0
    for lane in lanes.values():
        assert set(lane) == set(run.witness), set(lane) ^ set(run.witness)
        for name, calls in lane.items():
            expected = [call if is_recorded(call) else (((),), ("",)) for call in run.witness[name]]
            large += sum(not is_recorded(call) for call in run.witness[name])
            wrong = [(i, ours, theirs) for i, (ours, theirs) in enumerate(zip(calls, expected)) if ours != theirs]
            assert len(calls) == len(expected) and not wrong, f"{name}: {len(calls)}, {len(expected)}: {wrong[:2]}"
            compared += len(calls)
    tensors = [size for calls in run.witness.values() for call in calls for size in call[0]]
    assert large and compared > 5000 and {len(size) for size in tensors} >= {0, 1, 2, 4, 6, 8}, (large, compared)
    same_everywhere(run.results)


def same_everywhere(results: Path) -> None:
    """The database and the table of operators have what the trace has."""
    events = operators(results)
    trace = Counter((e["name"], e["args"].get("Input Dims"), e["args"].get("Input type")) for e in events)
    with sqlite3.connect(next(results.glob("ascend_pytorch_profiler*.db"))) as db:
        rows = db.execute("SELECT n.value, s.value, t.value FROM PYTORCH_API JOIN STRING_IDS n ON n.id = name "
                          "LEFT JOIN STRING_IDS s ON s.id = inputShapes LEFT JOIN STRING_IDS t ON t.id = inputDtypes "
                          "WHERE n.value LIKE 'aten::%'").fetchall()
    assert Counter(rows) == trace, (Counter(rows) - trace).most_common(3)
    with open(results / "operator_details.csv", encoding="utf-8", newline="") as file:
        table = Counter((row["Name"], row["Input Shapes"]) for row in csv.DictReader(file)
                        if row["Name"].startswith("aten::"))
    shapes = Counter((e["name"], e["args"].get("Input Dims", "")) for e in events)
    assert table == shapes, (table - shapes).most_common(3)


@test(seconds=300)
def not_without_the_option(case: Case) -> None:
    run = traced(case, 1, 1)
    assert not run.session.of(INPUT)
    assert not any(e.body.slot[2] or e.body.slot[3] for e in run.session.of(API)
                   if run.session.strings.get(e.body.slot[0], "").startswith("aten::"))
    assert not [e for e in operators(run.results) if "Input type" in e["args"] or "Input Dims" in e["args"]]


if __name__ == "__main__":
    sys.exit(main())
