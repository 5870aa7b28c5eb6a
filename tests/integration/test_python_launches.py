#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Python stacks of launches. Witnesses: the interpreter's own view, and its decoder of line tables."""

import csv
import functools
import json
import platform
import struct
import sys
from collections import defaultdict
from pathlib import Path
from typing import Optional

from harness import (DONE, JOB_SOURCES, PARTIAL, USAGE, Case, Running, Session, add_test, build_library, environment,
                     main, need, need_npusim, test)
from python_sessions import CUT, MOST_FRAMES, TEXT_MOST, Code, Frames, Stacks
from records import API, EVENT, PYSTACK, Event, chunks


def events_of(session: Path, kind: int) -> list[Event]:
    return [event for _type, payload in chunks(session / "events.nps") if _type == 1
            for event in map(Event, EVENT.iter_unpack(payload)) if event.kind == kind]


def cut(text: str) -> str:
    return text.encode(errors="replace")[:TEXT_MOST].decode(errors="ignore")


def logged(path: Path) -> dict[int, list[Frames]]:
    found = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        tid, frames = json.loads(line)
        found[tid].append([(cut(file), at, cut(name)) for file, at, name in frames][:MOST_FRAMES])
    return found


def recorded(session: Path) -> tuple[Stacks, dict[int, list[Frames]]]:
    stacks, found = Stacks(session), defaultdict(list)
    for event in sorted(events_of(session, PYSTACK), key=lambda e: e.start):
        found[event.tid].append(stacks.stacks[event.body.stack])
    return stacks, found


def job(case: Case, kind: str = "shapes", python: Path = Path("/usr/bin/python3")) -> tuple[Running, Path]:
    need_npusim()
    log = case.path("log")
    run = case.start([python, JOB_SOURCES / "python_launches_job.py", log, kind],
                     env=environment(sim=True, agent=True))
    run.wait_for(r"^ready$")
    return run, log


def capture(case: Case, kind: str, *options: str,
            python: Path = Path("/usr/bin/python3")) -> tuple[Session, dict[int, list[Frames]]]:
    run, log = job(case, kind, python)
    record = case.record("-p", run.pid, "-o", case.path("out"), "--py-stacks", "launch", *options)
    run.send("")
    run.wait_for(r"^done$")
    run.send("")
    result = record.result().expect(DONE)
    assert result.status == 0, result.err
    return result.session, logged(log)


def same(found: dict[int, list[Frames]], expected: dict[int, list[Frames]]) -> None:
    assert found.keys() == expected.keys(), f"{found.keys()} {expected.keys()}"
    for tid, stacks in expected.items():
        assert len(found[tid]) == len(stacks), f"{tid}: {len(found[tid])} stacks of {len(stacks)} launches"
        for i, (one, other) in enumerate(zip(found[tid], stacks)):
            assert one == other, f"{tid}: stack {i}:\n{one}\n{other}"


@test
def launches(case: Case) -> None:
    """Every launch has the stack that the interpreter reported, in all kinds of code, in four threads."""
    session, log = capture(case, "shapes", "--export", "none")
    stacks, found = recorded(session.path)
    same(found, log)
    assert not stacks.missing
    assert any(flags & CUT for flags in stacks.flags.values()), "a stack of 90 frames is not cut"
    cost = session.json["cost"]
    assert cost["python_stacks"] >= sum(map(len, found.values())) and cost["python_stack_ns"] > 0, cost
    expected = cost["python_stacks"] * cost["python_stack_ns"]  # rounded to 0.01 ns a walk
    assert abs(cost["spent_ns"]["python_stacks"] - expected) <= cost["python_stacks"], cost
    assert session.json["python_left_out"] == 0
    starts = {(e.tid, e.start) for e in events_of(session.path, API)}
    assert all((e.tid, e.start) in starts for e in events_of(session.path, PYSTACK))


def output(result: Path) -> Path:
    """Where the tables of the only result are."""
    found = list(result.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT"))
    assert len(found) == 1, found
    return found[0]


def line_of(stack: Frames) -> str:
    frames = [f"{file}({line}): {name}".replace(";", ":") for file, line, name in reversed(stack)]
    return ";".join((["[cut]"] if len(stack) == MOST_FRAMES else []) + frames)


@test
def device_time(case: Case) -> None:
    """Device time by Python stack: as many lines as stacks, and the time of all kernels."""
    session, log = capture(case, "shapes", "--export", "none")
    case.analyze(session.path, "-o", case.path("result")).expect(DONE)
    out = output(case.path("result"))
    folded: dict[str, int] = {}
    for line in (out / "npuscope_device_by_line.folded").read_text(encoding="utf-8").splitlines():
        frames, ns = line.rsplit(" ", 1)
        stack, kernel = frames.rsplit(";", 1)
        assert kernel.startswith("kernel@0x"), kernel  # it was loaded before the capture: it has no name
        assert stack not in folded, stack
        folded[stack] = int(ns)
    expected = {line_of(stack) for stacks in log.values() for stack in stacks}
    assert set(folded) == expected, [set(folded) - expected, expected - set(folded)]
    with open(out / "kernel_details.csv", encoding="utf-8") as table:
        kernels = [round(1000 * float(row["Duration(us)"])) for row in csv.DictReader(table)]
    assert len(kernels) == sum(map(len, log.values())) and sum(folded.values()) == sum(kernels)
    findings = json.loads((out / "npuscope_findings.json").read_text())["python"]
    assert findings["rows"][0]["kernels"] == len(kernels) and findings["rows"][0]["share"] == 1, findings
    assert findings["rows"][0]["line"] == line_of([log.popitem()[1][0][0]]), findings
    calls = [e for e in json.loads((out / "trace_view.json").read_text()) if e.get("ph") == "X"]
    named = [e["args"]["python"] for e in calls if e["name"] in ("AscendCL@aclrtLaunchKernel", "Node@launch")]
    assert len(named) == 2 * len(kernels) and set(named) == {findings["rows"][0]["line"]}
    assert not any("python" in e.get("args", {}) for e in calls if e["name"] == "AscendCL@aclrtSynchronizeStream")
    shown = case.npuscope("show", session.path).expect(DONE).out
    assert "device time by line of Python" in shown, shown


def version(case: Case, python: Path) -> None:
    """Another interpreter: the analysis has its stacks as the interpreter reported them."""
    session, log = capture(case, "shapes", "--export", "none", python=python)
    case.analyze(session.path, "-o", case.path("result")).expect(DONE)
    folded = (output(case.path("result")) / "npuscope_device_by_line.folded").read_text(encoding="utf-8")
    found = {line.rsplit(";", 1)[0] for line in folded.splitlines()}
    expected = {line_of(stack) for stacks in log.values() for stack in stacks}
    assert found == expected, [sorted(found - expected)[:3], sorted(expected - found)[:3]]
    assert session.json["events"]["pystack"] == sum(map(len, log.values()))


for _python in sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3")):
    _version = _python.parents[1].name
    if int(_version.split(".")[1]) >= 8:
        add_test(f"python_{_version}", functools.partial(version, python=_python))


@test
def not_requested(case: Case) -> None:
    run, _log = job(case)
    record = case.record("-p", run.pid, "-o", case.path("out"))
    run.send("")
    run.wait_for(r"^done$")
    run.send("")
    session = record.result().expect(DONE).session
    assert not (session.path / "python.nps").exists()
    assert not list(case.dir.rglob("npuscope_device_by_line.folded"))
    case.npuscope("record", "--py-stacks", "kernels", "--", "/bin/true").expect(USAGE)


@test
def fresh_code(case: Case) -> None:
    """Code objects that are freed at once, and whose memory the next one gets."""
    session, log = capture(case, "fresh", "--export", "none")
    stacks, found = recorded(session.path)
    same(found, log)
    assert not stacks.missing
    addresses = {code for _pid, code, _mark in stacks.codes}
    assert len(addresses) < len(stacks.codes) / 2, "no address was used again: the test shows nothing"


@test
def made_up_states(case: Case) -> None:
    """Thread states, frames and code objects that make no sense: each walk ends, and nothing else is lost."""
    need(platform.machine() == "x86_64", "x86-64")
    library = build_library(case, "python_evil_lib.c", "libevil.so", case.path("lib"))
    session, log = capture(case, f"evil:{library}", "--export", "none")
    stacks, found = recorded(session.path)
    assert session.json["drops"]["ring"]["pystack"] == 0, session.json["drops"]
    real = {tid: [stack for stack in of_thread if stack in log[tid]] for tid, of_thread in found.items()}
    same(real, log)
    launched = [e for e in events_of(session.path, API) if e.probe == events_of(session.path, PYSTACK)[0].probe]
    assert len(launched) == 2 * sum(map(len, log.values())), "not every launch is recorded"
    cycles = [frames for stack, frames in stacks.stacks.items() if stacks.flags[stack] & CUT]
    assert cycles and all(len(frames) == MOST_FRAMES and len(set(frames)) == 1 for frames in cycles), cycles
    wild = [frames for of_thread in found.values() for frames in of_thread if frames not in sum(log.values(), [])]
    assert {len(frames) for frames in wild} <= {1, MOST_FRAMES}, wild
    case.analyze(session.path, "-o", case.path("result")).expect(DONE, PARTIAL)


if __name__ == "__main__":
    sys.exit(main())
