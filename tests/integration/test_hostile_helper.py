#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that forge the memory of npuscope's helper (jobs/hostile_helper_job.c), each beside a job that does no harm: the capture ends in
time, the other job is recorded whole, and the forger loses its own task log alone. Witness of the other job: its truth file."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Optional

from harness import (DONE, PARTIAL, ROOT, USAGE, Case, Result, Running, add_test, main, need_job, need_npusim, need_root, pid_list,
                     ranks_of, test)

MB = 1 << 20
MAX_SIZE = 192 * MB
COMPARE = ROOT / "tools" / "truth" / "compare"
# How each attacks, and what is said of it.
WAYS = {"flood": "comes faster than|its task log ends here", "breaks": "comes faster than|its task log ends here", "devices": "", "clocks": "comes faster than|its task log ends here",
        "garbage": "makes no sense", "head": "makes no sense", "errors": "", "deaf": "comes faster than|its task log ends here|had not read the rest", "running": ""}
# Two seconds are what the user was promised. What the machine adds to every end is measured without an attacker.
END_S = 2.0


def forger(case: Case, way: str, processes: int = 1) -> list[int]:
    """Processes of an ordinary user that attack in that way."""
    run = case.start(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", need_job("hostile_helper_job"), way, processes],
                     cwd="/")
    run.wait_for(r"(^ready \d+\n){%d}" % processes)
    return [int(pid) for pid in re.findall(r"^ready (\d+)$", run.out, re.M)]


def schedule(pid: int) -> Optional[tuple[float, float]]:
    """Seconds that the main thread of a process ran, and that it waited for a CPU."""
    try:
        ran, waited, _slices = Path(f"/proc/{pid}/schedstat").read_text().split()
    except OSError:
        return None
    return int(ran) / 1e9, int(waited) / 1e9


def end_of_capture(run: Running) -> float:
    """Seconds from SIGINT to the last word of the capture, before its results are made, in which it was not kept from a CPU."""
    before = schedule(run.pid)
    assert before, run.err
    begin, waited = time.monotonic(), before[1]
    run.signal(signal.SIGINT)
    while run.alive() and "session in /" not in run.err:
        now = schedule(run.pid)
        waited = now[1] if now else waited
        time.sleep(0.01)
    return time.monotonic() - begin - (waited - before[1])


class Scene:
    """A job that does no harm, and a capture of it and of others."""

    def __init__(self, case: Case, name: str, others: list[int], *options: str) -> None:
        self.case, self.name = case, name
        truth = case.path(f"truth-{name}")
        truth.mkdir()
        self.job = case.sim_job("--ranks", 1, truth=truth)
        time.sleep(0.5)
        self.pid = ranks_of(self.job)[0]
        # In memory: how long a disk takes is not what is measured.
        self.out = Path(tempfile.mkdtemp(prefix="npuscope-test.", dir="/dev/shm"))
        case.at_end.append(lambda: shutil.rmtree(self.out, ignore_errors=True))
        self.run = case.record("-p", pid_list([self.pid, *others]), "-o", self.out, "--max-size", str(MAX_SIZE), *options)

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
        run = self.case.run(["/usr/bin/python3", COMPARE, "--truth", self.case.path(f"truth-{self.name}"), "--result", result.session.path,
                             "--session", result.session.path, "--format", "db", "--json", numbers], seconds=120)
        found = json.loads(numbers.read_text())
        assert run.status == 0, f"{run.out} {run.err}"
        assert found["tasks_found"] > 300 and found["bounds_tasks"] == 0, found
        assert result.session.process(self.pid)["agent_lost_bytes"] == 0, result.session.process(self.pid)


def attacked(case: Case, way: str) -> None:
    need_root()
    need_npusim()
    calm = Scene(case, "calm", [], "--export", "none")
    time.sleep(1)
    usual = end_of_capture(calm.run)
    calm.result()
    attacker, = forger(case, way)
    scene = Scene(case, way, [attacker], "--export", "db")
    time.sleep(3)
    took = end_of_capture(scene.run)
    result = scene.result()
    assert took < END_S + usual, f"the capture took {took:.2f} s to end, {usual:.2f} s without the attacker: {result.err}"
    assert re.search(WAYS[way], result.err), result.err
    assert "capture stopped" not in result.err, result.err
    assert len(re.findall(rf"pid {attacker}\b", result.err)) < 40, result.err
    scene.recorded_whole(result)


for _way in WAYS:
    add_test(f"helper_that_is_forged_{_way}", lambda case, way=_way: attacked(case, way), 150)


if __name__ == "__main__":
    sys.exit(main())
