#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--record-shapes: every kernel's tensors, compared with those that the simulator passed to the kernel."""

from __future__ import annotations

import csv
import re
import signal
import sqlite3
import sys
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path
from typing import Callable, NamedTuple

from harness import (DONE, PARTIAL, ROOT, SIM, Case, Result, Running, Session, environment, main, need_npusim,
                     need_root,
                     pid_list, ranks_of, test)
from records import TENSOR

sys.path.insert(0, str(ROOT / "tools" / "truth"))
from truthfile import Launch, Truth, load  # noqa: E402  pylint: disable=wrong-import-position

# Spelled by hand from the vendor's tables of names.
TYPES = {"0": "FLOAT", "1": "FLOAT16", "27": "DT_BF16"}
FORMATS = {"2": "ND", "29": "FRACTAL_NZ"}
COLUMNS = ("Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats")
NOTHING = ("",) * 6
Tally = Counter[str]


class Kernel(NamedTuple):
    """A kernel in a result or in the truth file."""

    name: str
    tensors: tuple[str, ...]  # as COLUMNS; empty where there is none


Kernels = dict[tuple[int, int, int], Kernel]  # (device, stream, task)


def spelled(fields: list[str]) -> tuple[str, ...]:
    """Six fields of the truth as the vendor's tables have them."""
    words = []
    for i, field in enumerate(fields):
        table = (None, TYPES, FORMATS)[i % 3]
        words.append("" if field == "-" else ";".join(table[n] for n in field.split(";")) if table else field)
    return tuple(words)


def reported(truth: Truth) -> dict[int, tuple[str, ...]]:
    """Launch id -> tensors of its kernel."""
    found = {}
    for line in truth.path.read_text().splitlines():
        field = line.split("\t")
        if field[0] == "launch":
            assert len(field) == 19, line
            found[int(field[1])] = spelled(field[13:])
    return found


def from_csv(folder: Path) -> Kernels:
    with open(folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(int(r["Device_id"]), int(r["Stream ID"]), int(r["Task ID"])):
            Kernel(r["Name"], tuple("" if r[c] == "N/A" else r[c].strip('"') for c in COLUMNS))
            for r in rows if r["Accelerator Core"] != "COMMUNICATION"}


def from_db(folder: Path) -> Kernels:
    path = next((folder / "ASCEND_PROFILER_OUTPUT").glob("ascend_pytorch_profiler*.db"))
    db = sqlite3.connect(path)
    text = dict(db.execute("SELECT id, value FROM STRING_IDS"))
    rows = db.execute("SELECT t.deviceId, t.streamId, t.taskId, c.name, c.inputShapes, c.inputDataTypes, "
                      "c.inputFormats,"
                      " c.outputShapes, c.outputDataTypes, c.outputFormats FROM COMPUTE_TASK_INFO c JOIN TASK t ON"
                      " t.globalTaskId = c.globalTaskId")
    return {row[:3]: Kernel(text[row[3]], tuple(("" if text.get(i, "N/A") == "N/A" else text[i].strip('"'))
                                                for i in row[4:])) for row in rows}


def plans(truth: Truth, session: Session) -> dict[int, bool]:
    """Launch id -> was the operator's first phase in the capture, be it
    that of an earlier call in the cache?"""
    begin = session.json["capture"]["begin_monotonic"]
    return {ident: truth.clock.mono(when) > begin for ident, when in truth.first_phase_begin().items()}


def hold_up(case: Case, result: Result, *, cached: bool = False) -> Tally:
    """No kernel of any process has tensors that are not its own; how many have theirs."""
    session = result.session
    tally: Tally = Counter()
    folders = {int(Path(line).name.split("_")[-4]): Path(line) for line in result.out.splitlines()
               if line.endswith("_ascend_pt")}
    for truth in load(case.path("truth")):
        folder = folders.get(truth.pid)
        if not folder:
            continue
        tensors, seen = reported(truth), plans(truth, session)
        runs = Runs(truth)
        kernels_of = Counter(runs.of(launch) for launch in truth.launches.values() if launch.aclnn)
        for kernels in (from_csv(folder), from_db(folder)):
            for launch in truth.launches.values():
                kernel = kernels.get((launch.device, launch.stream, launch.task))
                if not kernel or launch.flip:
                    continue
                knowable = kernels_of[runs.of(launch)] == 1 and (seen.get(launch.ident) or cached)
                judge(tally, launch, kernel, tensors[launch.ident], bool(knowable))
    print(dict(tally))
    assert not tally["wrong"]
    assert tally["kernels"] > 300, "too few kernels to say anything"
    return tally


class Runs:
    """Second phases of a process by thread."""

    def __init__(self, truth: Truth) -> None:
        self._begins: dict[int, list[int]] = defaultdict(list)
        for op in truth.ops:
            if op.phase == 2:
                self._begins[op.tid].append(op.begin)
        for begins in self._begins.values():
            begins.sort()

    def of(self, launch: Launch) -> tuple[int, int]:
        """Which of them made it."""
        return launch.tid, bisect_right(self._begins[launch.tid], launch.begin)


def judge(tally: Tally, launch: Launch, kernel: Kernel, tensors: tuple[str, ...], knowable: bool) -> None:
    tally["kernels"] += 1
    if kernel.tensors == NOTHING:
        tally["empty"] += 1
        if knowable:
            tally["missing"] += 1
            tally[f"missing {launch.aclnn}"] += 1
    elif kernel.tensors == tensors:
        tally["right"] += 1
        tally[f"of {launch.aclnn}"] += 1
    else:
        tally["wrong"] += 1
        if tally["wrong"] <= 5:
            print(f"{launch} has {kernel}, not {tensors}", file=sys.stderr)


def stall(run: Running) -> None:
    """The collector gets no CPU for a tenth of a second, five times."""
    for _ in range(5):
        time.sleep(0.2)
        run.signal(signal.SIGSTOP)
        time.sleep(0.1)
        run.signal(signal.SIGCONT)


def attach(case: Case, *options: str, python: bool = False, ranks: int = 1, seconds: int = 3,
           during: Callable[[Running], None] = lambda run: None, **env: str) -> Result:
    """Attach to a job that trains already."""
    need_root()
    need_npusim()
    case.path("truth").mkdir()
    full = environment(sim=True, agent=True, NPUSIM_TRUTH=case.path("truth"), **env)
    script = SIM / "bin" / "npusim-train.py"
    argv = ["/usr/bin/python3", script] if python else [SIM / "bin" / "npusim-train"]
    job = case.start([*argv, "--ranks", ranks], env=full, cwd=case.dir)
    job.wait_for(r"^ready( \d+)*$")
    time.sleep(0.5)
    run = case.record("-p", pid_list(ranks_of(job)), "-d", f"{seconds}s", "-o", case.path("out"), *options)
    during(run)
    result = run.result(seconds + 90)
    time.sleep(0.3)
    job.signal(signal.SIGTERM)
    job.wait(30)
    return result


def expect_all(tally: Tally) -> None:
    """Everything that can be known is reported, except calls that were
    open when the capture began or ended."""
    assert tally["missing"] <= 0.01 * tally["kernels"], tally
    assert tally["right"] > 0.4 * tally["kernels"], tally


@test
def both_phases_in_one_thread(case: Case) -> None:
    """Tensors made for each call; repeatable executors; two ranks; kernels of the same operator differ."""
    tally = hold_up(case, attach(case, "--record-shapes", ranks=2).expect(DONE))
    expect_all(tally)
    for operator in ("aclnnMatmul", "aclnnLayerNorm", "aclnnFlashAttentionScore", "aclnnApplyAdamW", "aclnnCast"):
        assert tally[f"of {operator}"], f"{operator}: {tally}"
    # What each of several kernels of an operator gets is not seen.
    assert not tally["of aclnnMm"]


@test
def the_operators_cache(case: Case) -> None:
    """First phases that find their plan in the operator's cache, and so have no L0 operators."""
    tally = hold_up(case, attach(case, "--record-shapes", NPUSIM_EXECUTOR_CACHE="1").expect(DONE))
    # A kernel of the job itself that follows an operator leaves open which of the two is the operator's.
    assert tally["missing"] <= 0.02 * tally["kernels"] and tally["right"] > 0.4 * tally["kernels"], tally


@test
def two_threads_and_the_cache_of_executors(case: Case) -> None:
    """From the start: first phases in one thread, runs in another, every second call through the cache."""
    need_root()
    need_npusim()
    case.path("truth").mkdir()
    env = environment(sim=True, NPUSIM_TRUTH=case.path("truth"))
    run = case.record("-o", case.path("out"), "--record-shapes", "--", "/usr/bin/python3",
                      SIM / "bin" / "npusim-train.py",
                      "--ranks", 1, "--steps", 60, env=env, wait=False)
    result = run.result(120).expect(DONE)
    tally = hold_up(case, result, cached=True)
    expect_all(tally)
    assert "have no shapes" not in result.err, result.err
    assert tally["right"] > 0.95 * tally["kernels"]


@test
def the_cache_was_filled_before(case: Case) -> None:
    """Attached later: what the cache answers is not known, and nothing else is reported instead."""
    result = attach(case, "--record-shapes", python=True).expect(DONE)
    tally = hold_up(case, result)
    found = re.search(r"process \d+: (\d+) of (\d+) kernels have no shapes: the job's cache of executors answered \d+ "
                      r"times",
                      result.err)
    assert found and 0.3 * int(found.group(2)) < int(found.group(1)) < int(found.group(2)), (result.err, tally)
    assert tally["right"] > 0.3 * tally["kernels"], tally
    assert tally["empty"] > 0.3 * tally["kernels"], tally


@test
def both_levels(case: Case) -> None:
    """At level 2 a run is recorded twice."""
    expect_all(hold_up(case, attach(case, "--record-shapes", "--level", "2").expect(DONE)))


@test
def lost_records_cost_no_truth(case: Case) -> None:
    """Rings far too small: shapes are missing, none is of another tensor."""
    result = attach(case, "--record-shapes", "--ring-size", "4K", "--host-sys", "none", during=stall).expect(PARTIAL)
    assert result.session.json["drops"]["ring"]["tensor"] > 0
    tally = hold_up(case, result)
    assert tally["right"] and tally["missing"], tally


@test
def not_without_the_option(case: Case) -> None:
    result = attach(case, seconds=2).expect(DONE)
    session = result.session
    assert not [e for e in session.events if e.kind == TENSOR]
    symbols = {p["symbol"] for p in session.json["probes"]}
    assert not symbols & {"aclCreateTensor", "aclCreateTensorList", "UnInitHugeMemThreadLocal",
                          "aclnn*GetWorkspaceSize"}
    tally = hold_up(case, result)
    assert tally["empty"] == tally["kernels"]


if __name__ == "__main__":
    sys.exit(main())
