#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Operators of real PyTorch, seen from outside. Witness: torch.profiler, in the same job, over the same
steps."""

import json
import re
import subprocess
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Any

from harness import (JOB_SOURCES, ROOT, Case, Session, catalogue, environment, main, need, need_npusim, need_root,
                     test, wait_for_events)
from records import API, MARK

NO_RESULT, UNWOUND, UNFINISHED = 0x20, 0x40, 0x80
OP, NODE = "at::_ops::*::call", "torch::autograd::Engine::evaluate_function"
ENQUEUE = "at_npu::native::OpCommand::RunOpApi*"
PHASE1, PHASE2 = "_Z19InitL2Phase1ContextPKcPP13aclOpExecutor", "_Z19InitL2Phase2ContextPKcP13aclOpExecutor"
SEQUENCE, BACKWARD = "_ZN2at15sequence_number17get_and_incrementEv", "torch::autograd::Engine::execute"


def need_torch() -> None:
    found = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False)
    need(found.returncode == 0, "PyTorch for /usr/bin/python3: apt-get install python3-torch")


def node_name(mangled: str) -> str:
    """N5torch8autograd9generated12MulBackward0E as torch.profiler prints it."""
    parts, at = [], 1
    while mangled[at] != "E":
        length = re.match(r"\d+", mangled[at:])
        assert length, mangled
        at += len(length[0])
        parts.append(mangled[at:at + int(length[0])])
        at += int(length[0])
    name = parts[-1] if parts[:-1] == ["torch", "autograd", "generated"] else "::".join(parts)
    return "autograd::engine::evaluate_function: " + name


def traced(case: Case, steps: int, threads: int) -> tuple[Session, "Counter[str]", int]:
    """The session of the first half of the job, and what the profiler counted in the second."""
    need_root()
    need_torch()
    job = case.start(["/usr/bin/python3", JOB_SOURCES / "torch_job.py", steps, threads])
    job.wait_for("^ready", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "all", "--export", "none")
    job.send("go")
    job.wait_for("^done", seconds=300)
    run.signal(2)
    result = run.result(120).expect(0, 3)
    pid = job.pid
    job.send("count")
    assert job.wait(600) == 0, job.err
    return result.session, Counter(json.loads(job.out.splitlines()[-1])), pid


def calls(session: Session, pid: int, symbol: str) -> list[Any]:
    number = catalogue()[symbol][0]
    return [e for e in session.of(API, pid) if e.probe == number]


def counted(session: Session, pid: int) -> "Counter[str]":
    texts = session.strings
    found = Counter(texts[e.body.slot[0]].split(".")[0] for e in calls(session, pid, OP))
    return found + Counter(node_name(texts[e.body.slot[0]]) for e in calls(session, pid, NODE))


def counts_are_equal(case: Case, threads: int) -> None:
    steps = 100
    session, profiler, pid = traced(case, steps, threads)
    assert not session.dropped(), session.json["drops"]
    found = counted(session, pid)
    differ = {name: (found[name], profiler[name]) for name in found | profiler if found[name] != profiler[name]}
    assert not differ and found.total() > 100 * steps * threads, f"(ours, the profiler's): {differ}"
    ops, nodes = calls(session, pid, OP), calls(session, pid, NODE)
    # Two fail in each step: add alone, linear with addmm in it, and what those call.
    left = [e for e in ops if e.flags & UNWOUND]
    names = Counter(session.strings[e.body.slot[0]] for e in left)
    assert names["aten::add.Tensor"] == names["aten::linear"] == steps * threads, names
    assert all(e.flags & NO_RESULT and not e.flags & UNFINISHED for e in ops + nodes)
    assert len(calls(session, pid, BACKWARD)) == steps * threads
    nest(ops)
    sequence_numbers(session, pid, nodes)


def nest(ops: list[Any]) -> None:
    """Of two operators of a thread, one is in the other, or they do not overlap; those left by
    exceptions end late."""
    for tid in {e.tid for e in ops}:
        open_ops: list[Any] = []
        for e in sorted((e for e in ops if e.tid == tid), key=lambda e: (e.start, -e.end)):
            while open_ops and open_ops[-1].end <= e.start:
                open_ops.pop()
            assert not open_ops or open_ops[-1].end >= e.end, "operators of a thread overlap"
            open_ops.append(e)


def sequence_numbers(session: Session, pid: int, nodes: list[Any]) -> None:
    """Each node runs once, with the number that its forward operator took. Leaves have no number: 2**64
    - 1."""
    known = Counter(e.body.slot[0] for e in calls(session, pid, SEQUENCE))
    used = Counter(e.body.slot[1] for e in nodes if e.body.slot[1] != 2**64 - 1)
    assert used and not used - known, f"{len(used - known)} nodes have numbers that nobody took"


@test(seconds=900)
def counts_of_one_thread(case: Case) -> None:
    counts_are_equal(case, 1)


@test(seconds=900)
def counts_of_three_threads(case: Case) -> None:
    counts_are_equal(case, 3)


@test
def only_those_that_reach_the_npu(case: Case) -> None:
    """--ops npu: each operator has a call of the NPU in it, and what torch_npu queues is in an operator."""
    need_root()
    need_npusim()
    package = ROOT / "build" / "npusim" / "torch" / "plain"
    need((package / "torch_npu" / "lib" / "libtorch_npu.so").exists(),
         "build/npusim/torch: sudo sh tools/setup.sh torch, then make torchsim")
    job = case.start(["/usr/bin/python3", JOB_SOURCES / "torch_train.py", "--steps", 0, "--model", "linear"],
                     env=environment(sim=True, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1"), cwd=case.dir)
    job.wait_for("^ready", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "npu", "--export", "none")
    wait_for_events(case.path("out"), 10000)
    run.signal(2)
    session = run.result(90).expect(0, 3).session
    pid = job.pid
    job.kill()
    assert not session.dropped(), session.json["drops"]
    ids = catalogue()
    begin, end = (int(session.json["capture"][f"{which}_monotonic"]) for which in ("begin", "end"))
    queued = sorted((e.tid, e.start) for e in session.of(MARK, pid)
                    if e.probe == ids[ENQUEUE][0] and begin < e.start < end)
    called = re.compile(r"aclrt(Launch|Memcpy|Synchronize)|rt(Kernel|s?Launch|Memcpy)")
    reach = {ids[symbol][0] for symbol in ids if called.match(symbol) or symbol in (PHASE1, PHASE2, ENQUEUE)}
    calls_of_npu = sorted((e.tid, e.start) for e in session.events if e.pid == pid and e.probe in reach)
    ops = calls(session, pid, OP) + calls(session, pid, NODE)
    assert len(queued) > 100 and len(ops) > 100, f"{len(queued)} queued, {len(ops)} operators"
    idle = [e for e in ops if not e.flags & UNFINISHED and
            bisect_left(calls_of_npu, (e.tid, e.start)) == bisect_right(calls_of_npu, (e.tid, e.end))]
    assert not idle, f"{len(idle)} operators without a call: {session.strings[idle[0].body.slot[0]]}"
    spans = {tid: sorted((e.start, e.end) for e in ops if e.tid == tid) for tid in {e.tid for e in ops}}
    # An operator that had begun before the capture, and so has no record, is over when 20 others have begun.
    bare = [(tid, at) for tid, at in queued if at > spans[tid][20][0] and
            not any(start <= at <= end for start, end in spans[tid])]
    assert not bare, f"{len(bare)} of {len(queued)} were queued in no operator"
    assert not calls(session, pid, SEQUENCE)


@test
def no_probes_by_default(case: Case) -> None:
    need_root()
    need_torch()
    job = case.start(["/usr/bin/python3", JOB_SOURCES / "torch_job.py", 1, 1])
    job.wait_for("^ready", seconds=120)
    run = case.record("-p", job.pid, "-d", "0.5s", "-o", case.path("out"), "--export", "none")
    session = run.result(60).expect(0, 3).session
    assert not [p for p in session.json["probes"] if "torch" in p["library"]]
    job.kill()


if __name__ == "__main__":
    sys.exit(main())
