#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labels of record_function() in real PyTorch, seen from outside. Witness: torch.profiler, in the same job,
over the same rounds."""

import csv
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from harness import JOB_SOURCES, Case, Session, catalogue, main, need, need_root, test
from records import API
from torch_jobs import JOB, job_environment, need_extension, read_truth

NO_RESULT, UNWOUND, UNFINISHED = 0x20, 0x40, 0x80
LABEL, OP = "torch::autograd::profiler::record_function_enter*", "at::_ops::*::call"
OPEN = "outlasts the capture"


def need_torch() -> None:
    found = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False)
    need(found.returncode == 0, "PyTorch for /usr/bin/python3: apt-get install python3-torch")


def traced(case: Case, rounds: int, threads: int, *options: str) -> tuple[Any, "Counter[str]", int]:
    """The capture of the first half of the job, and what the profiler counted in the second."""
    need_root()
    need_torch()
    job = case.start(["/usr/bin/python3", JOB_SOURCES / "torch_labels_job.py", rounds, threads])
    job.wait_for("^ready", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "all", *options)
    job.send("go")
    job.wait_for("^done", seconds=180)
    run.signal(2)
    result = run.result(120).expect(0)
    pid = job.pid
    job.send("count")
    assert job.wait(240) == 0, job.err
    return result, shortened(json.loads(job.out.splitlines()[-1])), pid


def shortened(counts: dict[str, int]) -> "Counter[str]":
    """Counts by the beginning of the names: longer texts are cut."""
    found: "Counter[str]" = Counter()
    for name, n in counts.items():
        found[name[:100]] += n
    return found


def calls(session: Session, pid: int, symbol: str) -> list[Any]:
    number = catalogue()[symbol][0]
    return [e for e in session.of(API, pid) if e.probe == number]


def labels_are_equal(case: Case, threads: int) -> None:
    rounds = 30
    result, profiler, pid = traced(case, rounds, threads, "--export", "none")
    session = result.session
    assert not session.dropped(), session.json["drops"]
    labels = calls(session, pid, LABEL)
    texts = session.strings
    found = shortened(Counter(texts[e.body.slot[0]] for e in labels))
    assert found.pop(OPEN) == 1
    assert found == profiler, [(name[:40], found[name], profiler[name]) for name in found | profiler
                               if found[name] != profiler[name]]
    assert profiler["deep"] == 21 * rounds * threads and profiler["forward.x"] == rounds * threads, profiler
    assert profiler["Optimizer.step#SGD.step"] == profiler["Optimizer.zero_grad#SGD.zero_grad"] == rounds * threads
    assert all(e.flags & NO_RESULT for e in labels)
    left = [(texts[e.body.slot[0]][:40], e.tid, e.start, e.end) for e in labels if e.flags & UNWOUND]
    assert not left, left
    assert [texts[e.body.slot[0]] for e in labels if e.flags & UNFINISHED] == [OPEN]
    assert len({e.tid for e in labels}) == threads
    contain_operators(session, pid, labels, rounds * threads)


def contain_operators(session: Session, pid: int, labels: list[Any], rounds: int) -> None:
    """Operators are in the label that the job opened around them, and their thread's."""
    texts = session.strings
    ops = defaultdict(list)
    for e in calls(session, pid, OP):
        ops[e.tid, texts[e.body.slot[0]]].append(e)
    for label, operator in (("forward.x", "aten::linear"), ("Optimizer.step#SGD.step", "aten::add_.Tensor"),
                            ("inner of an exception", "aten::add.Tensor")):
        spans = [e for e in labels if texts[e.body.slot[0]] == label]
        around = [e for e in spans if any(e.start < op.start < e.end for op in ops[e.tid, operator])]
        assert len(around) == len(spans) == rounds, f"{operator} is in {len(around)} of {len(spans)} {label}"


@test
def labels_of_one_thread(case: Case) -> None:
    labels_are_equal(case, 1)


@test
def labels_of_three_threads(case: Case) -> None:
    labels_are_equal(case, 3)


@test
def labels_in_results(case: Case) -> None:
    """The trace and the table of operators have the labels of the session as rows like operators."""
    result, profiler, pid = traced(case, 5, 1, "--export", "text")
    output = next(result.session.path.glob(f"*_{pid}_*_ascend_pt")) / "ASCEND_PROFILER_OUTPUT"
    trace = json.loads((output / "trace_view.json").read_text(encoding="utf-8"))
    rows = shortened(Counter(e["name"] for e in trace if e.get("cat") == "cpu_op" and
                             not e["name"].startswith(("aten::", "autograd::", "ProfilerStep#"))))
    assert rows.pop(OPEN) == 1
    rows[""] = rows.pop(" ")  # no row of the trace is without a name
    assert rows == profiler, (rows - profiler, profiler - rows)
    longest = max((e["name"] for e in trace), key=len)
    assert re.fullmatch(r"y{500,512} \[cut\]", longest), longest
    table = (output / "operator_details.csv").read_text(encoding="utf-8")
    assert "\nOptimizer.step#SGD.step," in table and "\nforward.x," in table


def steps_of(output: Path) -> tuple[list[tuple[int, int]], str]:
    """Begin and end of each step, and their source: a marker, unless another one is written."""
    results = output / "ASCEND_PROFILER_OUTPUT"
    db = sqlite3.connect(next(results.glob("ascend_pytorch_profiler*.db")))
    steps = db.execute("SELECT startNs, endNs FROM STEP_TIME ORDER BY CAST(startNs AS INTEGER)").fetchall()
    own = json.loads((output / "profiler_metadata.json").read_text(encoding="utf-8"))["npuscope"]
    table = results / "npuscope_steps.csv"
    source = own.get("step_source", "marker")
    if table.exists():
        rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
        assert len(rows) == len(steps) and {row["Source"] for row in rows} == {source}, rows
        assert all(abs(float(row["Confidence"]) - own["step_confidence"]) < 0.002 for row in rows), (rows[0], own)
        assert 0.6 <= own["step_confidence"] <= 1, own
    return [(int(start), int(end)) for start, end in steps], source


def one_in_each(bounds: list[int], log: list[Any], session: Session) -> None:
    """Each step that the job wrote down has one of these bounds in it, and there are no others."""
    started = session.json["start"]
    raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    raw += started["realtime"] - started["monotonic"]
    spans = sorted((step.begin + raw, step.end + raw) for step in log)
    inside = [sum(begin <= at <= end for at in bounds) for begin, end in spans]
    assert inside == [1] * len(spans) and len(bounds) == len(spans), (len(bounds), inside)


@test(seconds=400)
def steps_are_those_of_the_job(case: Case) -> None:
    """Steps from a label as marker, the optimizer, and a label that recurs, against the job's log."""
    need_root()
    need_extension()
    case.path("truth").mkdir()
    job = case.start(["/usr/bin/python3", JOB, "--wait", "--labels", "--steps", 25, "--accumulate", 2],
                     env=job_environment(case), cwd=case.dir)
    job.wait_for("^loaded", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "all", "--export", "none", "--step-marker",
                      "label:loop")
    job.send("go")
    assert job.wait(200) == 0, job.err
    session = run.result(120).expect(0, 3).session
    assert not session.dropped(), session.json["drops"]
    assert session.json["request"]["step_marker"] == "label:loop"
    log = read_truth(case).steps
    assert len(log) == 25
    for source, expected, n in (("auto", "marker", 24), ("optimizer", "optimizer", 24), ("label", "label", 25)):
        output = case.path(source)
        case.analyze(session.path, "-o", output, "--step-source", source, "--export", "text,db").expect(0)
        steps, found = steps_of(next(output.glob("**/*_ascend_pt")))
        assert found == expected and len(steps) == n, (source, found, len(steps))
        assert all(a[1] == b[0] for a, b in zip(steps, steps[1:])), "steps with gaps"
        if source == "label":
            one_in_each([(start + end) // 2 for start, end in steps[:-1]] +
                        [steps[-1][0] + 1 + (steps[-1][1] - steps[-1][0]) // 2], log, session)
        elif source == "optimizer":
            one_in_each([steps[0][0]] + [end for _, end in steps], log, session)
        else:
            one_in_each([(start + end) // 2 for start, end in steps], log[:-1], session)


if __name__ == "__main__":
    sys.exit(main())
