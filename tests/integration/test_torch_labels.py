#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labels of record_function() in real PyTorch, seen from outside. Witness: torch.profiler, in the same job,
over the same rounds."""

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from typing import Any

from harness import JOB_SOURCES, Case, Session, catalogue, main, need, need_root, test
from records import API

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
                             not e["name"].startswith(("aten::", "autograd::"))))
    assert rows.pop(OPEN) == 1
    rows[""] = rows.pop(" ")  # no row of the trace is without a name
    assert rows == profiler, rows
    longest = max((e["name"] for e in trace), key=len)
    assert re.fullmatch(r"y{500,512} \[cut\]", longest), longest
    table = (output / "operator_details.csv").read_text(encoding="utf-8")
    assert "\nOptimizer.step#SGD.step," in table and "\nforward.x," in table


if __name__ == "__main__":
    sys.exit(main())
