#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that forge the memory of npuscope's helper (jobs/hostile_helper_job.c), each beside a job that does no
harm: the capture ends in time, the other job is recorded whole, and the forger loses its own task log alone.
Witness of the other job: its truth file."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from harness import (DONE, PARTIAL, ROOT, USAGE, Case, Result, Running, add_test, main, need_job, need_npusim,
                     need_root, pid_list,
                     ranks_of, test)

MB = 1 << 20
MAX_SIZE = 192 * MB
COMPARE = ROOT / "tools" / "truth" / "compare"
# How each attacks, and what is reported of it; "": nothing has to be.
ENDS = r"its task log ends here|bytes of its task log are lost"
WAYS = {"flood": ENDS, "breaks": ENDS, "devices": "", "clocks": ENDS, "garbage": "makes no sense",
        "head": "makes no sense",
        "errors": "", "deaf": f"{ENDS}|had not read the rest", "running": ""}
# Two seconds are what the user was promised, and one more is for helpers and workers that a busy machine
# keeps waiting. What the machine adds to every end is measured without an attacker.
END_S = 3.0
SESSION = "session in /"  # the last word of a capture, before its results are made


def forger(case: Case, way: str, processes: int = 1) -> list[int]:
    """Processes of an ordinary user that attack in that way."""
    run = case.start(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", need_job("hostile_helper_job"),
                      way, processes],
                     cwd="/")
    run.wait_for(r"(^ready \d+\n){%d}" % processes)
    return [int(pid) for pid in re.findall(r"^ready (\d+)$", run.out, re.M)]


class Scene:
    """A job that does no harm, and a capture of it and of others."""

    def __init__(self, case: Case, name: str, others: list[int], *options: str) -> None:
        self.case, self.name = case, name
        truth = case.path(f"truth-{name}")
        truth.mkdir()
        self.job = case.sim_job("--ranks", 1, "--rate", 2000, truth=truth)
        time.sleep(0.5)
        self.pid = ranks_of(self.job)[0]
        # In memory: how long a disk takes is not what is measured.
        self.out = Path(tempfile.mkdtemp(prefix="npuscope-test.", dir="/dev/shm"))
        case.at_end.append(lambda: shutil.rmtree(self.out, ignore_errors=True))
        self.run = case.record("-p", pid_list([self.pid, *others]), "-o", self.out, "--max-size", str(MAX_SIZE),
                               *options)

    def result(self) -> Result:
        """The end of both; the capture is to have ended."""
        result = self.run.result().expect(DONE, PARTIAL)
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", result.err), repr(result.err)
        time.sleep(0.3)
        self.job.signal(signal.SIGTERM)
        self.job.wait(30)
        return result

    def recorded_whole(self, result: Result) -> None:
        """Every task of the job, with the device's own time."""
        numbers = self.case.path(f"numbers-{self.name}.json")
        run = self.case.run(["/usr/bin/python3", COMPARE, "--truth", self.case.path(f"truth-{self.name}"), "--result",
                             result.session.path,
                             "--session", result.session.path, "--format", "db", "--json", numbers], seconds=120)
        found = json.loads(numbers.read_text())
        assert run.status == 0, f"{run.out} {run.err}"
        # Where the machine let the job's own helper wait, the device overwrote records, which are counted,
        # or its log began late.
        overwritten = result.session.json["drops"]["device"]
        assert found["tasks_found"] > 300 and found["bounds_between"] <= overwritten, (found, overwritten)
        assert found["bounds_tasks"] < found["tasks_found"] / 2, found
        assert result.session.process(self.pid)["agent_lost_bytes"] == 0, result.session.process(self.pid)


def usual_end(case: Case) -> float:
    """What the machine takes to end a capture of the job that does no harm."""
    calm = Scene(case, "calm", [], "--export", "none")
    time.sleep(1)
    secs = calm.run.seconds_to_end(SESSION, signal.SIGINT)
    calm.result()
    return secs


def attacked(case: Case, way: str) -> None:
    need_root()
    need_npusim()
    usual = usual_end(case)
    attacker, = forger(case, way)
    scene = Scene(case, way, [attacker], "--export", "db")
    time.sleep(3)
    secs = scene.run.seconds_to_end(SESSION, signal.SIGINT)
    result = scene.result()
    assert secs < END_S + usual, \
        f"the capture took {secs:.2f} s to end, {usual:.2f} s without the attacker: {result.err}"
    assert re.search(WAYS[way], result.err), result.err
    assert "capture stopped" not in result.err, result.err
    assert len(re.findall(rf"pid {attacker}\b", result.err)) < 80, result.err
    scene.recorded_whole(result)


# `make attack` tries each alone, too.
for _way in WAYS if os.environ.get("NPUSCOPE_ATTACK") else ():
    add_test(f"helper_that_is_forged_{_way}", lambda case, way=_way: attacked(case, way), 150)


@test
def all_ways_at_once(case: Case) -> None:
    """Dozens of forgers: none is waited for, each loses its own log, and the job
    that does no harm has all of its own."""
    need_root()
    need_npusim()
    usual = usual_end(case)
    forgers = {way: forger(case, way, {"running": 20, "flood": 3}.get(way, 1)) for way in WAYS}
    scene = Scene(case, "all", [pid for pids in forgers.values() for pid in pids], "--export", "db", "--host-sys",
                  "none")
    time.sleep(3)
    secs = scene.run.seconds_to_end(SESSION, signal.SIGINT)
    result = scene.result()
    assert secs < END_S + usual, f"the capture took {secs:.2f} s to end, {usual:.2f} s without attackers: {result.err}"
    assert "capture stopped" not in result.err, result.err
    ended = {way: [result.session.process(pid).get("task_log_end") for pid in pids] for way, pids in forgers.items()}
    assert ended["garbage"] == ["damaged"] and ended["head"] == ["damaged"], ended
    assert ended["running"] == [None] * 20 and ended["errors"] == [None], ended
    reasons = {result.session.process(pid)["task_source_reason"] for pid in forgers["running"]}
    assert reasons == {"its helper has not let go of the capture before this one"}, reasons
    assert "task_log_end" not in result.session.process(scene.pid)
    scene.recorded_whole(result)


@test
def duration_is_kept(case: Case) -> None:
    """Whatever a job does, -d means that time."""
    need_root()
    need_npusim()
    usual = usual_end(case)
    scene = Scene(case, "duration", forger(case, "breaks") + forger(case, "devices"), "--export", "none", "-d", "3s")
    secs = scene.run.seconds_to_end(SESSION)
    result = scene.result()
    assert secs < 3 + END_S + usual, f"a capture of 3 s took {secs:.2f} s, an end usually {usual:.2f} s: {result.err}"
    assert result.session.json["end_reason"] == "duration", result.err


@test
def session_of_a_size(case: Case) -> None:
    """--max-size ends the capture, and what was captured is kept."""
    need_root()
    need_npusim()
    job = case.sim_job("--ranks", 1, "--rate", 2000)
    out = case.path("out")
    result = case.record("-p", pid_list(ranks_of(job)), "-o", out, "--export", "none", "--max-size", "2M",
                         "--osrt-threshold", "0").result(120).expect(PARTIAL)
    assert re.search("capture stopped: .* has 2 MiB: a larger --max-size allows more", result.err), result.err
    assert result.session.json["end_reason"] == "size limit"
    size = sum(file.stat().st_size for file in result.session.path.rglob("*") if file.is_file())
    # What came in the turn that found it, and what is written at the end, come on top.
    assert 2 * MB <= size < 64 * MB, size
    assert len(result.session.events) > 5000, len(result.session.events)


@test
def sizes_that_are_none(case: Case) -> None:
    for option, values in {"--max-size": ("0", "12", "1M-", "x", "-5M"), "--max-log-rate": ("0", "1K", "fast")}.items():
        for value in values:
            case.npuscope("record", option, value, "-p", "1").expect(USAGE)


if __name__ == "__main__":
    sys.exit(main())
