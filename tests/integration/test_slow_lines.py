#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`show` names the line of Python that was planted to make steps slow, first."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from harness import DONE, PARTIAL, Case, main, need_root, test
from torch_jobs import JOB, job_environment, need_extension

SLOW_MS = 600  # so long that a busy machine does not make other steps as slow
PLANTED = 3  # steps of 24 that are slow; the last one can be the end of the capture


def planted_line(mark: str) -> str:
    """FILE(LINE) of the only line of the job with that text."""
    lines = [i for i, line in enumerate(JOB.read_text(encoding="utf-8").splitlines(), 1) if mark in line]
    assert len(lines) == 1, f"{mark}: {lines}"
    return f"{JOB}({lines[0]})"


def record(case: Case, *options: Any, py_stacks: str = "launch,op", **more: str) -> Path:
    """Record the whole job; its session."""
    need_extension()
    need_root()
    case.path("truth").mkdir()
    job = case.start(["/usr/bin/python3", JOB, "--steps", 24, "--wait", *options], cwd=case.dir,
                     env=job_environment(case, agent=True, **more))
    job.wait_for("^loaded", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--ops", "all", "--py-stacks", py_stacks,
                      "--export", "none")
    job.send("go")
    assert job.wait(240) == 0, job.err
    return run.result(240).expect(DONE, PARTIAL).session.path


def first_finding(case: Case, session: Path) -> tuple[str, str]:
    """The first finding that `show` prints, and all of it."""
    out = case.npuscope("show", session).expect(DONE, PARTIAL).out
    match = re.search(r"^findings, worst first\n *1\. +[0-9.]+%  (.*)$", out, re.M)
    assert match, out
    return match[1], out


def findings(case: Case, session: Path) -> list[dict[str, Any]]:
    case.analyze(session, "-o", case.path("result")).expect(DONE, PARTIAL)
    path, = case.path("result").glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT/npuscope_findings.json")
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["findings"]
    return found


def check_slow(case: Case, how: str, mark: str, **more: str) -> None:
    """The planted line is in the first finding that is shown, with the steps that it makes slow."""
    session = record(case, "--slow-every", 6, "--slow-ms", SLOW_MS, "--slow-how", how, **more)
    first, out = first_finding(case, session)
    assert first.startswith(planted_line(mark)) and " makes " in first, out
    found = findings(case, session)[0]
    assert found["id"] == "python_slow_steps" and found["where"]["line"].startswith(planted_line(mark)), found
    numbers = found["numbers"]
    assert numbers["slow_steps"] >= PLANTED, found
    assert numbers["line_in_slow_steps_us"] > 4 * numbers["line_in_other_steps_us"], found
    assert numbers["line_in_slow_steps_us"] >= PLANTED * SLOW_MS * 1e3 * 0.9, found
    assert (numbers["kernels"] > 0) == (how == "device"), found


@test(seconds=400)
def sleeping_line(case: Case) -> None:
    """Now and then a line of Python sleeps: the device waits."""
    check_slow(case, "sleep", "    time.sleep(seconds)")


@test(seconds=400)
def computing_line(case: Case) -> None:
    """Now and then Python computes in a loop of two lines."""
    session = record(case, "--slow-every", 6, "--slow-ms", SLOW_MS, "--slow-how", "loop")
    first, out = first_finding(case, session)
    lines = planted_line("while time.perf_counter() < end:"), planted_line("total = (total * 31 + 7) % 1000003")
    assert first.startswith(lines) and " makes " in first, out
    numbers = findings(case, session)[0]["numbers"]
    assert numbers["samples"] >= 3, numbers
    assert numbers["line_in_slow_steps_us"] > 4 * numbers["line_in_other_steps_us"], numbers


@test(seconds=400)
def device_line(case: Case) -> None:
    """Now and then a line launches a kernel that takes long."""
    check_slow(case, "device", "return scores.topk(1)", NPUSIM_SLOW_KERNEL=f"TopK:{SLOW_MS * 1000000}")


if __name__ == "__main__":
    sys.exit(main())
