#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The operator and the line of Python of every kernel, with the task queue of torch_npu and without it.

Witness: what the simulated torch_npu wrote of its own calls."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Optional

from harness import DONE, PARTIAL, ROOT, Case, main, need_root, test
from torch_jobs import JOB, job_environment, kernels_of, need_extension, read_log, read_truth

# Operators that do the work of one that the extension's log names, within it.
INNER = {"aten::_copy_from": "aten::copy_"}


def record(case: Case, *options: str, steps: int = 12, **more: str) -> Path:
    """Record the whole job; the results of its process."""
    need_extension()
    need_root()
    case.path("truth").mkdir()
    job = case.start(["/usr/bin/python3", JOB, "--steps", steps, "--wait"], cwd=case.dir,
                     env=job_environment(case, agent=True, **more))
    job.wait_for("^loaded", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "all", "--export", "text,db", *options)
    job.send("go")
    assert job.wait(120) == 0, job.err
    result = run.result(240).expect(DONE, PARTIAL)
    folder = next(Path(line) for line in result.out.splitlines() if line.endswith("_ascend_pt"))
    return folder / "ASCEND_PROFILER_OUTPUT"


class Expected:
    """Of each kernel, by (device, stream, task) in order: the operator's line in the extension's log."""

    def __init__(self, case: Case) -> None:
        self.truth, self.log = read_truth(case), read_log(case)
        ops = {op["id"]: op for op in self.log.ops}
        self.clock = self.truth.clock
        self.op_of = {kernel.ident: ops[ident]
                      for ident, kernels in kernels_of(self.truth, self.log.launches).items() for kernel in kernels}


class Results:
    """Kernels of the database and the operators that list them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = sqlite3.connect(next(folder.glob("ascend_pytorch_profiler*.db")))
        self.kernels = self.db.execute(
            "SELECT t.connectionId, s.value, c.startNs, c.endNs, c.globalTid & 4294967295, t.startNs, t.endNs FROM"
            " COMPUTE_TASK_INFO k JOIN TASK t ON t.globalTaskId = k.globalTaskId JOIN STRING_IDS s ON s.id = k.name"
            " LEFT JOIN CANN_API c ON c.connectionId = t.connectionId ORDER BY c.startNs").fetchall()
        self.op_of = {connection: op for connection, *op in self.db.execute(
            "SELECT l.connectionId, s.value, p.startNs, p.endNs, p.globalTid & 4294967295, p.callchainId FROM"
            " PYTORCH_API p JOIN CONNECTION_IDS l ON l.id = p.connectionId JOIN STRING_IDS s ON s.id = p.name"
            " WHERE p.type = 50001")}
        # Where the job's helper began late its first kernels have bounds, and no time.
        self.bounded = {connection for connection, in self.db.execute(
            "SELECT t.connectionId FROM TASK t JOIN NPUSCOPE_TASK_TIME n USING (globalTaskId) WHERE"
            " n.source = 'host bounds'")}


def launch_of(expected: Expected, kernel: tuple[Any, ...]) -> Optional[int]:
    """The simulator's launch that the call of the results is."""
    _connection, _name, begin, end, tid, *_ = kernel
    mine = [launch for launch in expected.truth.launches.values()
            if launch.tid == tid and begin <= expected.clock.real(launch.end) and
            expected.clock.real(launch.begin) <= end]
    assert len(mine) <= 1, f"{kernel}: {mine}"
    return mine[0].ident if mine else None


def check_operators(expected: Expected, results: Results) -> int:
    """Each kernel of an operator is listed by that operator, others by none. Returns how many are."""
    found = 0
    for kernel in results.kernels:
        op = results.op_of.get(kernel[0])
        logged = expected.op_of.get(launch_of(expected, kernel))
        if not logged:
            assert not op, f"{kernel} is no operator's, but of {op}"
            continue
        assert op, f"{kernel} has no operator, the log has {logged}"
        name, begin, end, tid, _chain = op
        assert INNER.get(name, name) == logged["aten"].split(".")[0] and tid == logged["tid"], \
            f"{kernel}: {op}, but {logged}"
        assert int(begin) <= expected.clock.real(logged["end"]) and \
            expected.clock.real(logged["begin"]) <= int(end), f"{kernel}: {op}, but {logged}"
        found += 1
    assert found == len(expected.op_of), f"{found} kernels, the log has {len(expected.op_of)}"
    return found


def check_tables(results: Results) -> None:
    """operator_details.csv has the device times, trace_view.json the arrows, of the operators' kernels."""
    kernels = [(end - begin, begin) for connection, _name, _b, _e, _tid, begin, end in results.kernels
               if connection in results.op_of]
    with open(results.folder / "operator_details.csv", newline="", encoding="utf-8") as file:
        times = [float(row["Device Self Duration(us)"]) for row in csv.DictReader(file)]
    assert abs(sum(times) * 1000 - sum(ns for ns, _begin in kernels)) < len(kernels), f"{sum(times)} us"
    trace = json.loads((results.folder / "trace_view.json").read_text(encoding="utf-8"))
    arrows = Counter(int(event["id"]) for event in trace if event.get("cat") == "async_npu" and event["ph"] == "f")
    missing = Counter(begin for _ns, begin in kernels) - arrows
    assert not missing, f"{len(missing)} of {len(kernels)} kernels have no arrow"


def own_line(frames: list[str]) -> Optional[tuple[str, int, str]]:
    """File, line and function of the innermost frame, of FRAMES innermost first, that is not PyTorch's."""
    for frame in frames:
        match = re.fullmatch(r"(.*)\((\d+)\): (.*)", frame)
        if match and "-packages/torch/" not in match[1] and "/torch_npu/" not in match[1] and match[1][0] != "<":
            return match[1], int(match[2]), match[3].split(".")[-1]
    return None


def line_of(op: Optional[dict[str, Any]]) -> Optional[tuple[str, int, str]]:
    """The same, of an operator in the extension's log."""
    return (op["file"], op["line"], op["function"]) if op and "line" in op else None


def check_lines(expected: Expected, results: Results) -> None:
    """Device time by Python stack is that of the kernels whose operators have that line in the log."""
    wanted: Counter[Any] = Counter()
    measured = [kernel for kernel in results.kernels if kernel[0] not in results.bounded]
    assert len(measured) > len(results.kernels) / 2
    for kernel in measured:
        _connection, name, *_call, begin, end = kernel
        wanted[name, line_of(expected.op_of.get(launch_of(expected, kernel)))] += end - begin
    found: Counter[Any] = Counter()
    for line in (results.folder / "npuscope_device_by_line.folded").read_text(encoding="utf-8").splitlines():
        stack, ns = line.rsplit(" ", 1)
        *frames, name = stack.split(";")
        found[name, own_line(frames[::-1])] += int(ns)
    assert found == wanted, f"too much: {found - wanted}, missing: {wanted - found}"
    assert sum(found.values()) == sum(kernel[-1] - kernel[-2] for kernel in measured)
    assert len({line for _name, line in found}) > 5, found


def check_chains(expected: Expected, results: Results) -> None:
    """Stacks of operators: the database has the log's lines; table and trace have the database's stacks."""
    chains: dict[int, list[str]] = {}
    for chain, frame, depth in results.db.execute(
            "SELECT c.id, s.value, c.stackDepth FROM PYTORCH_CALLCHAINS c JOIN STRING_IDS s ON s.id = c.stack"
            " ORDER BY c.id, c.stackDepth"):
        chains.setdefault(chain, []).append(frame)
        assert len(chains[chain]) == depth + 1
    for kernel in results.kernels:
        logged = expected.op_of.get(launch_of(expected, kernel))
        if logged:
            chain = results.op_of[kernel[0]][-1]
            assert own_line(chains.get(chain, [])) == line_of(logged), f"{kernel}: {chains.get(chain)}, {logged}"
    stacks = [";\r\n".join(chains.get(chain, [])) for chain, in results.db.execute(
        "SELECT callchainId FROM PYTORCH_API p JOIN STRING_IDS s ON s.id = p.name WHERE type = 50001 AND"
        " s.value NOT LIKE 'ProfilerStep#%' ORDER BY p.rowid")]
    assert len(set(stacks)) > 20 and "" in stacks
    with open(results.folder / "operator_details.csv", newline="", encoding="utf-8") as file:
        assert [row["Call Stack"] for row in csv.DictReader(file)] == stacks
    trace = json.loads((results.folder / "trace_view.json").read_text(encoding="utf-8"))
    slices = [event["args"].get("Call stack", "") for event in trace if event.get("cat") == "cpu_op"
              and not event["name"].startswith("ProfilerStep#")]
    assert Counter(slices) == Counter(stacks)


def check_everything(case: Case, folder: Path) -> None:
    expected, results = Expected(case), Results(folder)
    assert check_operators(expected, results) > 300
    check_tables(results)
    assert any(op["cached"] for op in expected.op_of.values())
    assert len({op["tid"] for op in expected.op_of.values()}) == 2, "main thread and autograd's"


@test(seconds=300)
def operators_with_a_queue(case: Case) -> None:
    """Another thread launches what an operator queued."""
    folder = record(case)
    check_everything(case, folder)
    log = read_log(case)
    assert not {line["tid"] for line in log.launches} & {op["tid"] for op in log.ops}


def check_stacks(case: Case, *options: str, **more: str) -> Results:
    folder = record(case, "--py-stacks", *options, **more)
    expected, results = Expected(case), Results(folder)
    check_operators(expected, results)
    check_lines(expected, results)
    return results


@test(seconds=300)
def lines_with_a_queue(case: Case) -> None:
    results = check_stacks(case, "op,launch")
    check_chains(Expected(case), results)
    case.run(["/usr/bin/python3", ROOT / "tools" / "conformance" / "check", results.folder.parent]).expect(0)


@test(seconds=300)
def lines_without_a_queue(case: Case) -> None:
    check_stacks(case, "op,launch", TASK_QUEUE_ENABLE="0")


@test(seconds=300)
def lines_of_operators_alone(case: Case) -> None:
    check_stacks(case, "op")


@test(seconds=300)
def lines_of_launches_alone(case: Case) -> None:
    check_stacks(case, "launch")


@test(seconds=300)
def operators_without_a_queue(case: Case) -> None:
    check_everything(case, record(case, TASK_QUEUE_ENABLE="0"))


if __name__ == "__main__":
    sys.exit(main())
