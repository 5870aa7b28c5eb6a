# SPDX-License-Identifier: BSD-2-Clause
"""The simulated job on one chip, what its truth file has, and what a result has to have of its tasks."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, Optional

from harness import (RATE, ROOT, SIM, Case, Result, Running, build_library, children_of, environment, need_npusim,
                     need_root, ranks_of)

sys.path.insert(0, str(ROOT / "tools" / "truth"))
import truthfile  # noqa: E402

LOG_CHANNEL = {"910B": 50, "950": 50, "910A": 45, "310P": 45}
# the log of blocks; where only the scheduler logs copies its track
BESIDE = {"910B": 51, "950": 51, "910A": 44, "310P": 44}
EDGE_NS = 200_000_000  # of the capture, in which tasks are not held to be there
CLOCK_NS = 20_000  # by which a measured time may be off its truth


class Job:
    """The simulated job on one chip, with a truth file; it can be ordered about by a control file."""

    def __init__(self, case: Case, chip: str, *, agent: bool = True, profiler: bool = False, ranks: int = 1,
                 options: tuple[str, ...] = (), inside: tuple[str, ...] = (), **more: str) -> None:
        need_root()
        need_npusim()
        self.case, self.chip = case, chip
        self.truth_dir, self.control = case.path("truth"), case.path("control")
        self.truth_dir.mkdir()
        self.control.write_text("")
        # One board for each test: its chip is what the first process on it
        # sets. The collector queries the same driver.
        self.machine = {"NPUSIM_CHIP": chip, "NPUSIM_BOARD": f"{os.environ.get('NPUSIM_BOARD', 'tests')}-{case.name}"}
        case.at_end.append(lambda: [path.unlink()
                                    for path in Path("/dev/shm").glob(f"*{self.machine['NPUSIM_BOARD']}*")])
        env = environment(sim=True, agent=agent, NPUSIM_TRUTH=self.truth_dir, NPUSIM_CONTROL=self.control,
                          **self.machine,
                          **more)
        if profiler:
            library = build_library(case, "profile_lib.c", "libprofile.so", case.path("lib"))
            env["LD_PRELOAD"] = f"{env.get('LD_PRELOAD', '')} {library}".strip()
            env["PROFILE_DIR"], env["PROFILE_CHANNEL"] = str(case.dir), str(LOG_CHANNEL[chip])
            if LOG_CHANNEL[chip] == 45:
                env.setdefault("PROFILE_BESIDE", str(BESIDE[chip]))
        rate = () if {"--rate", "--time-every"} & set(options) else ("--rate", RATE)
        self.run = case.start([*inside, SIM / "bin" / "npusim-train", "--ranks", ranks, *rate, *options], env=env,
                              cwd=case.dir)
        self.run.wait_for(r"^ready( \d+)*$")
        self.pid = ranks_of(self.run)[0]  # as the job itself knows it
        self.main = next(iter(children_of(self.run.pid))) if inside else self.run.pid
        time.sleep(0.5)

    def order(self, *lines: str) -> None:
        """Write orders for the simulated driver; it looks when the file
        changes, and shall not see half of it."""
        fresh = self.control.with_suffix(".new")
        fresh.write_text("".join(line + "\n" for line in lines))
        fresh.rename(self.control)

    def end(self) -> truthfile.Truth:
        """Let it end by itself: what really happened."""
        time.sleep(0.4)
        os.kill(self.main, signal.SIGTERM)
        self.run.wait(30)
        return truthfile.load(self.truth_dir, {self.pid})[0]

    def wait_for_task(self, number: int) -> None:
        """Until it has launched that one, of a chip whose numbers
        have no flips, and the truth file has it."""
        deadline = time.monotonic() + 100
        while not any(len(line) > 7 and int(line[7]) >= number for line in self.lines("launch")):
            assert time.monotonic() < deadline, f"no task {number}"
            time.sleep(0.2)

    def lines(self, what: str) -> list[list[str]]:
        """Lines of the truth file of one kind, without their first field."""
        text = (self.truth_dir / f"truth.{self.pid}.tsv").read_text()
        return [line.split("\t")[1:] for line in text.splitlines() if line.startswith(what + "\t")]


class Found:
    """A result's tasks; WHERE it is, if not beside the session."""

    def __init__(self, result: Result, chip: str, where: Optional[Path] = None) -> None:
        self.session, self.err = result.session, result.err
        window = self.session.json["capture"]
        self.begin, self.end = window["begin_monotonic"], window["end_monotonic"]
        path = next((where or self.session.path.parent).rglob("ascend_pytorch_profiler_*.db"))
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            db.row_factory = sqlite3.Row
            self.rows = [dict(row) for row in db.execute(
                "SELECT t.*, n.*, (SELECT value FROM STRING_IDS WHERE id = c.name) AS kernel, "
                "(SELECT value FROM STRING_IDS WHERE id = t.taskType) AS kind FROM TASK t "
                "JOIN NPUSCOPE_TASK_TIME n USING (globalTaskId) LEFT JOIN COMPUTE_TASK_INFO c USING (globalTaskId)")]
        self.by_id: dict[tuple[int, ...], list[dict[str, Any]]] = {}
        for row in self.rows:
            key = (row["taskId"],) if chip == "950" else (row["streamId"], row["taskId"])
            self.by_id.setdefault(key, []).append(row)

    def nearest(self, key: tuple[int, ...], real: int) -> Optional[dict[str, Any]]:
        """The task of those ids that is nearest to a time."""
        rows = self.by_id.get(key, [])
        return min(rows, key=lambda row: abs(row["startNs"] - real), default=None)


def key_of(task: truthfile.Task, chip: str) -> tuple[int, ...]:
    return (task.task,) if chip == "950" else (task.stream, task.task)


def name_of(launch: truthfile.Launch) -> Optional[str]:
    """What a kernel is called in the result; None: it is no kernel."""
    if launch.l0 not in ("", "-"):
        return f"{launch.aclnn}_{launch.l0}"
    return None


# What is reported for a kernel, by the chip's own number of its kind.
KERNELS = {"950": {0: "KERNEL_AICORE", 1: "KERNEL_AIVEC", 2: "KERNEL_AICORE", 4: "KERNEL_AICPU", 5: "KERNEL_AICPU"}}
OLDER_KERNELS = {0: "KERNEL_AICORE", 1: "KERNEL_AICPU"}


def kind_of(task: truthfile.Task, launch: truthfile.Launch, chip: str) -> str:
    """What the result is to call the kind of a task. Of other tasks
    than kernels the truth has it in words."""
    return launch.name if launch.name.isupper() else KERNELS.get(chip, OLDER_KERNELS)[int(task.sqe)]


def hold_up(job: Job, truth: truthfile.Truth, found: Found, *, begin: int = 0, end: int = 1 << 63,
            overwritten: bool = False) -> dict[str, int]:
    """Each task of the truth that began well within the capture; BEGIN, END: narrower, CLOCK_MONOTONIC. Was
    the driver's ring overwritten?"""
    assert ("was overwritten before it was read" in found.err) == overwritten, found.err
    n = {"tasks": 0, "missing": 0, "measured": 0, "bounded": 0, "late": 0, "outside": 0, "names": 0, "kinds": 0}
    begin, end = max(begin, found.begin + EDGE_NS), min(end, found.end - EDGE_NS)
    # by stream, task, flip: they have sub-tasks
    mixed = {tuple(map(int, line[1:4])) for line in job.lines("sub")}
    for task in truth.tasks:
        if not begin < truth.clock.mono(task.submit) or not truth.clock.mono(task.end) < end:
            continue
        n["tasks"] += 1
        start, stop = truth.clock.real(task.start), truth.clock.real(task.end)
        row = found.nearest(key_of(task, job.chip), start)
        if row is None:
            n["missing"] += 1
            continue
        launch = truth.launches.get(task.launch)
        name = name_of(launch) if launch else None
        n["names"] += name is not None and row["kernel"] != name
        kind = "MIX_AIC" if (task.stream, task.task, task.flip) in mixed else launch and kind_of(task, launch, job.chip)
        n["kinds"] += launch is not None and row["kind"] != kind
        if row["source"] == "host bounds":
            n["bounded"] += 1
            for bound, at in (("start", start), ("end", stop)):
                low, high = row[f"{bound}LowNs"], row[f"{bound}HighNs"]
                n["outside"] += (low is not None and low > at + 1000) or (high is not None and high < at - 1000)
            continue
        n["measured"] += 1
        n["late"] += abs(row["startNs"] - start) > CLOCK_NS or abs(row["endNs"] - stop) > CLOCK_NS
    assert n["tasks"] > 200, f"too few tasks to say anything: {n}"
    assert not any(n[wrong] for wrong in ("missing", "late", "outside", "names", "kinds")), n
    return n


def capture(job: Job, seconds: float, *options: Any) -> Running:
    return job.case.record("-p", job.pid, "-d", f"{int(seconds * 1000)}ms", "-o", job.case.path("out"), "--export",
                           "db",
                           *options, env={**os.environ, **job.machine})


def pmu_of(result: Result) -> dict[tuple[int, int], list[tuple[int, dict[str, float]]]]:
    """Counters of kernels: (stream, task) -> start, columns."""
    path = next(result.session.path.parent.rglob("ascend_pytorch_profiler_*.db"))
    found: dict[tuple[int, int], list[tuple[int, dict[str, float]]]] = {}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        tasks: dict[int, tuple[int, int, int]] = {}
        columns: dict[int, dict[str, float]] = {}
        for ident, stream, task, start, name, value in db.execute(
                "SELECT t.globalTaskId, t.streamId, t.taskId, t.startNs, (SELECT value FROM STRING_IDS WHERE id = "
                "p.name), "
                "p.value FROM TASK_PMU_INFO p JOIN TASK t USING (globalTaskId)"):
            tasks[ident] = (stream, task, start)
            columns.setdefault(ident, {})[name] = value
    for ident, (stream, task, start) in tasks.items():
        found.setdefault((stream, task), []).append((start, columns[ident]))
    return found


def lines_of(result: Result) -> list[str]:
    """Messages other than the usual ones."""
    return [line for line in result.complaints if not re.search(r"^npuscope: (recording|session in) ", line)]
