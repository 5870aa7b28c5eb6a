#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The device's task log, three ways, on every generation of chip: each task that the simulator ran is found,
at the time and by the name in its truth file; what is lost is counted, to the record; bounds hold; and the
job's own profiler gets all that is its own."""

from __future__ import annotations

import bisect
import csv
import json
import os
import re
import signal
import sqlite3
import statistics
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Optional

from harness import (DONE, PARTIAL, RATE, ROOT, SIM, Case, Result, Running, Session, build_library, children_of,
                     environment, host_environment, main, need, need_npusim, need_root, pid_list, ranks_of, test,
                     wait_until, without_events)
from records import CQE

sys.path.insert(0, str(ROOT / "tools" / "truth"))
import truthfile  # noqa: E402

CHIPS = ("910B", "950", "910A", "310P")
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


def agent_times_all(case: Case, chip: str, **more: str) -> None:
    job = Job(case, chip, **more)
    result = capture(job, 3, "--task-source", "agent").result(90).expect(DONE)
    n = hold_up(job, job.end(), Found(result, chip))
    assert n["bounded"] == 0, n


def blocks_are_true(job: Job, truth: truthfile.Truth, result: Result, chip: str, begin: int, end: int) -> None:
    """Each block that ran from BEGIN to END, CLOCK_MONOTONIC, is a row of its task, on
    the core and at the time of the truth."""
    path = next(result.session.path.parent.rglob("ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        rows: dict[tuple[int, ...], list[tuple[int, int, int, int]]] = {}
        for stream, task, block, start, stop, vector, core in db.execute(
                "SELECT streamId, taskId, blockId, startNs, endNs, vectorCore, coreId FROM NPUSCOPE_BLOCK"):
            rows.setdefault((stream, task, block), []).append((start, stop, vector, core))
    checked = 0
    for line in job.lines("block"):
        _device, stream, task, _flip, block, vector, core, start, stop = map(int, line)
        if not begin < truth.clock.mono(start) or not truth.clock.mono(stop) < end:
            continue
        found = rows.get((stream, task, block), [])
        assert found, f"block {block} of task {stream}:{task} has no row, of {len(rows)}"
        at = truth.clock.real(start)
        row = min(found, key=lambda r: abs(r[0] - at))
        assert abs(row[0] - at) < CLOCK_NS and abs(row[1] - truth.clock.real(stop)) < CLOCK_NS, (row, at)
        assert row[2:] == (vector, core), (row, vector, core)
        checked += 1
    assert checked > 1000, f"{checked} blocks"


def profiler_times_all(case: Case, chip: str) -> None:
    """The job's own profiler begins and ends within the capture; nothing of ours opens a channel."""
    job = Job(case, chip, agent=False, profiler=True, PROFILE_BESIDE=str(BESIDE[chip]), NPUSIM_BLOCKS="6")
    run = capture(job, 6, "--task-source", "profiler")
    time.sleep(1)
    case.path("start.0").touch()
    log = case.path(f"log.{job.pid}")
    wait_until(lambda: log.read_text().count("start 0") == 2, "the job's own profiler")
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(2.5)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    case.path("stop.0").touch()
    result = run.result(90).expect(DONE)
    truth = job.end()
    n = hold_up(job, truth, Found(result, chip), begin=begin, end=end)
    assert n["bounded"] == 0, n
    if BESIDE[chip] == 51:
        blocks_are_true(job, truth, result, chip, begin + EDGE_NS, end - EDGE_NS)
    files = {50: "stars_soc", 45: "hwts", 44: "ts_track", 51: "stars_block"}
    own = {int(p.name.rsplit(".", 1)[1]): p for p in case.dir.glob(f"own.{job.pid}.0.*")}
    assert sorted(re.findall(r"^(\w+) (-?\d+)", log.read_text(), re.M)) == \
        [("start", "0")] * len(own) + [("stop", "0")] * len(own), log.read_text()
    assert len(job.lines("channel")) == 2 * len(own), job.lines("channel")
    for channel, path in own.items():
        parts = [p for p in result.session.path.glob(f"PROF_*/device_*/data/{files[channel]}.data.*.slice_*")
                 if not p.name.endswith(".done")]
        copied = b"".join(p.read_bytes() for p in sorted(parts, key=lambda p: int(p.name.rsplit("_", 1)[1])))
        assert copied == path.read_bytes(), f"{len(copied)} bytes of {path} were copied, of {path.stat().st_size}"


def profiler_in_a_container(case: Case, *, dcmi: bool) -> tuple[dict[str, int], Result]:
    """Its device 0 is the host's device 3; it holds memory of that alone. DCMI: that can be queried."""
    job = Job(case, "910B", agent=False, profiler=True, inside=("unshare", "--mount", "--pid", "--fork"),
              NPUSIM_FIRST_DEVICE="3")
    (pid,) = children_of(job.main)
    assert pid != job.pid
    orders = case.open_path("orders")
    orders.write_text("" if dcmi else "error 5 * dcmi -8002 always\n")
    run = case.record("-p", pid, "-d", "6s", "-o", case.path("out"), "--export", "db", "--task-source", "profiler",
                      env=host_environment(case, **job.machine, NPUSIM_CONTROL=str(orders)))
    run.wait_for("^npuscope: recording ", err=True)
    case.path("start.0").touch()
    log = case.path(f"log.{job.pid}")
    wait_until(lambda: "start 0" in log.read_text(), "the job's own profiler")
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(3)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    case.path("stop.0").touch()
    result = run.result(90).expect(DONE, PARTIAL)
    assert result.session.process(pid)["device_numbers"] == "container"
    return hold_up(job, job.end(), Found(result, "910B"), begin=begin, end=end), result


@test(seconds=120)
def profiler_in_a_container_is_timed(case: Case) -> None:
    n, result = profiler_in_a_container(case, dcmi=True)
    assert n["bounded"] == 0 and result.status == DONE, (n, result.err)


@test(seconds=120)
def profiler_in_a_container_without_a_device(case: Case) -> None:
    """For one device nobody reports its users: it might be the job's. Nothing is guessed."""
    n, result = profiler_in_a_container(case, dcmi=False)
    assert n["measured"] == 0, n
    assert sum("cannot be read from outside its container" in line for line in result.complaints) == 1, result.err


def bounds_hold(case: Case, chip: str) -> None:
    """Nobody reads the log: tasks have their ids, names and kinds all
    the same, whatever the chip calls them."""
    job = Job(case, chip)
    result = capture(job, 2, "--task-source", "host").result(90).expect(DONE)
    n = hold_up(job, job.end(), Found(result, chip))
    assert n["measured"] == 0, n
    (device,) = result.session.json["devices"]
    assert device["platform"] == {"910A": 1, "310P": 4, "910B": 5, "950": 15}[chip], device


for _chip in CHIPS:
    for _f in (agent_times_all, profiler_times_all, bounds_hold):
        def _one(case: Case, f: Any = _f, chip: str = _chip) -> None:
            f(case, chip)
        _one.__name__ = f"{_f.__name__}_{_chip}"
        test(_one)


def ai_cpu_kernels(case: Case, chip: str) -> None:
    """What the AI CPU reports of its kernels is what the simulator reports,
    in the file that the vendor has for it."""
    job = Job(case, chip, options=("--ai-cpu",))
    result = capture(job, 2, "--task-source", "agent", "--export", "text,db", "--level", "2").result(90).expect(DONE)
    truth, found = job.end(), Found(result, chip)
    with open(next(result.session.path.parent.rglob("data_preprocess.csv")), encoding="utf-8") as file:
        rows = {(*((int(row["Stream ID"]),) if chip != "950" else ()), int(row["Task ID"])): row
                for row in csv.DictReader(file)}
    checked = 0
    for task in truth.tasks:
        launch = truth.launches.get(task.launch)
        if not launch or launch.name != "GetNextSample" or \
            not found.begin + EDGE_NS < truth.clock.mono(task.submit) or \
                not truth.clock.mono(task.end) < found.end - EDGE_NS:
            continue
        row = rows[key_of(task, chip)]
        assert row["Node"] == "GetNextSample", row
        start = Decimal(row["Timestamp(us)"].strip()) * 1000
        assert abs(int(start) - truth.clock.real(task.start)) < CLOCK_NS, (row, task)
        assert abs(float(row["Task_time(us)"]) * 1000 - (task.end - task.start)) < 1000, (row, task)
        assert abs(float(row["Total_time(us)"]) * 1000 - (task.end - task.submit)) < 2000, (row, task)
        # Whole us of the device's clock: all of the time computes, nothing is copied.
        assert abs(float(row["Compute_time(us)"]) * 1000 - (task.end - task.start)) < 2000, (row, task)
        assert float(row["Memcpy_time(us)"]) == 0, row
        checked += 1
    assert checked > 10, f"{checked} kernels of the AI CPU"


for _chip in ("910B", "950"):
    def _ai_cpu(case: Case, chip: str = _chip) -> None:
        ai_cpu_kernels(case, chip)
    _ai_cpu.__name__ = f"ai_cpu_kernels_{_chip}"
    test(_ai_cpu)


@test
def sub_tasks_overlap(case: Case) -> None:
    """FFTS+ tasks of three contexts in three threads each, open at once: every task has its times and
    cores, none of its sub-tasks is left over; and as the vendor's raw data the log has each context
    from its first thread to its last one."""
    job = Job(case, "910B", NPUSIM_FFTS="3x3")
    result = capture(job, 2, "--task-source", "agent").result(90).expect(DONE)
    truth, found = job.end(), Found(result, "910B")
    assert hold_up(job, truth, found)["bounded"] == 0
    spans: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    tasks: dict[tuple[int, int, int], int] = {}
    for line in job.lines("sub"):
        _device, stream, task, flip, context, _thread, start, stop = map(int, line)
        tasks[stream, task, flip] = start
        spans.setdefault((stream, task, flip << 16 | context), []).append((start, stop))
    path = next(result.session.path.parent.rglob("ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        mixed = {(stream, task) for stream, task in db.execute(
            "SELECT t.streamId, t.taskId FROM TASK t JOIN COMPUTE_TASK_INFO c USING (globalTaskId) "
            "WHERE (SELECT value FROM STRING_IDS WHERE id = c.taskType) = 'MIX_AIC'")}
    inside = [key for key, start in tasks.items()
              if found.begin + EDGE_NS < truth.clock.mono(start) < found.end - EDGE_NS]
    assert len(inside) > 50 and all(key[:2] in mixed for key in inside), (len(inside), len(mixed))
    raw = next(result.session.path.glob("PROF_*"))
    imported = case.analyze(raw, "-o", case.path("raw"), "--export", "db").expect(DONE, PARTIAL)
    # of a task that ran when the log began, of one that ran when it ended
    left = [int(n) for n in re.findall(r"(\d+) (?:starts|ends) of tasks without", imported.err)]
    assert all(n <= 10 for n in left), imported.err
    rows: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for path in case.path("raw").rglob("*.db"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            if db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'TASK'").fetchone()[0]:
                for stream, task, context, start, stop in db.execute(
                        "SELECT streamId, taskId, contextId, startNs, endNs FROM TASK WHERE contextId < 4294967295"):
                    rows.setdefault((stream, task, context), []).append((start, stop))
    checked = 0
    for (stream, task, context), threads in spans.items():
        start, stop = min(t[0] for t in threads), max(t[1] for t in threads)
        if not found.begin + EDGE_NS < truth.clock.mono(start) < found.end - EDGE_NS or context >> 16:
            continue
        assert len(threads) == 3, (stream, task, context, threads)
        of = rows.get((stream, task, context & 0xffff), [])
        assert of, f"context {context} of task {stream}:{task} has no row"
        # That import has one read of the clock alone: lengths are held against the truth.
        assert any(abs((b - a) - (stop - start)) < 100 for a, b in of), (of, start, stop)
        checked += 1
    assert checked > 150, f"{checked} contexts"


def timed_events_tighten(case: Case, chip: str) -> None:
    """The job times the parts of every second step with events of its own: bounds hold
    in all steps, and are tighter in those."""
    job = Job(case, chip, options=("--time-every", "2"))
    # With the sampler the device's clock is known, and aligns timestamps of events: in one of the captures.
    sampler = ("--sys-hardware-mem",) if chip == "910B" else ()
    result = capture(job, 2.5, "--task-source", "host", *sampler).result(90).expect(DONE)
    truth, found = job.end(), Found(result, chip)
    n = hold_up(job, truth, found)
    assert n["measured"] == 0, n
    widths: dict[str, dict[bool, list[int]]] = {"tasks": {True: [], False: []}, "events": {True: [], False: []}}
    steps = sorted(truth.steps, key=lambda step: step.begin)
    for task in truth.tasks:
        if not found.begin + EDGE_NS < truth.clock.mono(task.submit) or \
                not truth.clock.mono(task.end) < found.end - EDGE_NS:
            continue
        at = bisect.bisect_right([step.begin for step in steps], task.submit) - 1
        row = found.nearest(key_of(task, chip), truth.clock.real(task.start))
        if at < 0 or task.submit > steps[at].end or row is None or row["endHighNs"] is None:
            continue
        timed = steps[at].number % 2 == 0
        widths["tasks"][timed].append(row["endHighNs"] - row["startLowNs"])
        if row["endLowNs"] is not None and row["startHighNs"] is not None:
            widths["events"][timed].append(row["startHighNs"] - row["endLowNs"])
    assert min(len(w) for w in widths["tasks"].values()) > 100, {k: len(w) for k, w in widths["tasks"].items()}
    assert statistics.median(widths["tasks"][True]) < 0.6 * statistics.median(widths["tasks"][False]), \
        {timed: statistics.median(w) for timed, w in widths["tasks"].items()}
    # of an event that was queried both bounds are known, and where the runtime reports completions of the one
    # that could have been queried in the other steps
    others = sum(step.number % 2 for step in steps) if chip == "910B" else 0
    assert len(widths["events"][True]) > 10 and len(widths["events"][False]) <= others, \
        {t: len(w) for t, w in widths["events"].items()}
    assert statistics.median(widths["events"][True]) < 0.2 * statistics.median(widths["tasks"][True])


for _chip in CHIPS:
    def _timed(case: Case, chip: str = _chip) -> None:
        timed_events_tighten(case, chip)
    _timed.__name__ = f"timed_events_tighten_{_chip}"
    test(_timed)


def counter_times(job: Job, truth: truthfile.Truth, session: Session) -> int:
    """Each completion record of an event has the device's counter at the event's end,
    and came after that; how many there are."""
    (_device, hz, offset, drift), = (map(float, line) for line in job.lines("device"))
    ends: dict[tuple[int, int], list[truthfile.Task]] = {}
    for task in truth.tasks:
        ends.setdefault((task.stream, task.task), []).append(task)
    records = session.of(CQE, job.pid)
    for e in records:
        got, stream, task = e.body, e.body.stream, e.body.task
        assert got.sqe_type == 4 and got.flags == 0 and e.ret == 0 and e.flags == 0 and got.error_code == 0, got
        done = [t for t in ends[stream, task] if truth.clock.mono(t.end) <= e.start + e.dur]
        assert done, f"{stream}:{task} was told of before it had ended"
        last = max(done, key=lambda t: t.end)
        assert abs(offset + last.end * hz * (1 + drift / 1e6) / 1e9 - got.counter) < 2, (last.end, got)
    return len(records)


def completions_tighten(case: Case, *sampler: str) -> None:
    """The job times its steps and never queries them: the runtime's completion records have the events'
    times, and bounds that follow from them hold and are tighter than those without the records."""
    job = Job(case, "910B", options=("--time-every", "1", "--never-ask"))
    result = capture(job, 2.5, "--task-source", "host", *sampler).result(90).expect(DONE)
    truth, found = job.end(), Found(result, "910B")
    n = hold_up(job, truth, found)
    assert n["measured"] == 0, n
    session = result.session
    assert counter_times(job, truth, session) > 50
    blind = without_events(session.path, CQE, case.path("blind"))
    case.analyze(blind, "-o", case.path("without"), "--export", "db").expect(DONE)
    widths = []
    for rows in (found.rows, Found(result, "910B", case.path("without")).rows):
        widths.append({(row["streamId"], row["taskId"], row["startNs"]):
                       row["endHighNs"] - row["startLowNs"] for row in rows if row["endHighNs"] is not None})
    known = widths[0].keys() & widths[1].keys()
    assert len(known) > 200
    with_records, without = ([of[key] for key in known] for of in widths)
    assert all(a <= b for a, b in zip(with_records, without)), "a bound is wider for knowing more"
    assert statistics.median(with_records) < 0.5 * statistics.median(without), (statistics.median(with_records),
                                                                               statistics.median(without))


@test
def completions_of_unasked_events(case: Case) -> None:
    """Only how far the events are from each other is known."""
    completions_tighten(case)


@test
def completions_with_the_devices_clock(case: Case) -> None:
    """The sampler reads the device's clock: the moments themselves are known."""
    completions_tighten(case, "--sys-hardware-mem")


# What a column is, in events of the counters: ratios of the cycles, sums that are reported as they are.
PMU_COLUMNS = {
    "PipeUtilization": {"aic_mac_ratio": (0x416, 0x417), "aic_scalar_ratio": (0x9,), "aic_mte1_ratio": (0x302,),
                        "aic_mte2_ratio": (0xc,), "aic_fixpipe_ratio": (0x303,), "aiv_vec_ratio": (0x8,),
                        "aiv_scalar_ratio": (0x9,), "aiv_mte2_ratio": (0xc,), "aiv_mte3_ratio": (0xd,)},
    "ArithmeticUtilization": {"aic_mac_fp16_ratio": (0x49,), "aic_mac_int8_ratio": (0x4a,),
                              "aiv_vec_fp32_ratio": (0x4b,),
                              "aiv_vec_fp16_ratio": (0x4c, 0x4d), "aiv_vec_int32_ratio": (0x4e,)},
    "ResourceConflictRatio": {"aiv_vec_bankgroup_cflt_ratio": (0x64,), "aiv_vec_bank_cflt_ratio": (0x65,),
                              "aiv_vec_resc_cflt_ratio": (0x66,)},
    "L2Cache": {"aic_write_cache_hit": (0x500,), "aiv_r1_read_cache_miss_allocate": (0x50a,)},
    "Memory": {}, "MemoryL0": {}, "MemoryUB": {}, "MemoryAccess": {},
}


# The 950's have numbers of their own, and ten of them in a record.
PMU_COLUMNS_950 = {
    "PipeUtilization": {f"{core}_{name}": events for core in ("aic", "aiv") for name, events in {
        "vec_ratio": (0x501,), "mac_ratio": (0x301,), "scalar_ratio": (0x1,), "mte1_ratio": (0x701,),
        "mte2_ratio": (0x202,),
        "mte3_ratio": (0x203,), "fixpipe_ratio": (0x714,), "icache_miss_rate": (0x35, 0x34)}.items()},
}


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


CORES = {"aic": 24, "aiv": 48}  # of a 910B, which runs at so many MHz
MHZ = 1800


# ai_core_metrics and ai_core_profiling_events, then those of vector cores, as
# the vendor's own collector writes them.
PIPE_OF_VENDOR = {
    "910B": ("PipeUtilizationExct", "0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55",
             "PipeUtilization", "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55"),
    "950": ("PipeUtilization", "0x501,0x301,0x1,0x701,0x202,0x203,0x714,0x35,0x34") * 2,
}


def named_as_vendor_does(result: Result, metric: str, chip: str) -> None:
    """Without these keys the vendor's parser leaves the counters out; it
    reads those of the device and of the host."""
    folder, = (path for path in result.session.path.glob("PROF_*") if (path / "device_0/data").glob("stars_soc.data.*")
               and json.loads((path / "host/info.json").read_text())["pid"] != "NA")
    for directory in ("host", "device_0"):
        reported = json.loads((folder / directory / "sample.json").read_text())
        assert reported["ai_core_profiling"] == reported["aiv_profiling"] == "on", reported
        assert reported["ai_core_profiling_mode"] == reported["aiv_profiling_mode"] == "task-based", reported
        names = tuple(reported[key] for key in ("ai_core_metrics", "ai_core_profiling_events", "aiv_metrics",
                                            "aiv_profiling_events"))
        assert names == PIPE_OF_VENDOR[chip] if metric == "PipeUtilization" else names[0] == names[2] == metric, names


def counters_are_true(case: Case, metric: str, chip: str = "910B", **env: str) -> Counter[str]:
    """Every kernel of the capture has the counters that the simulator has, through the documented formulas.
    How many of each kind of cores there were."""
    job = Job(case, chip, **env)
    columns = (PMU_COLUMNS_950 if chip == "950" else PMU_COLUMNS)[metric]
    result = capture(job, 2, "--task-source", "agent", "--aic-metrics", metric).result(90).expect(DONE, PARTIAL)
    truth = job.end()
    named_as_vendor_does(result, metric, chip)
    window = result.session.json["capture"]
    times = {(t.stream, t.task, t.flip): t for t in truth.tasks}
    found, values = pmu_of(result), 0
    checked: Counter[str] = Counter()
    for device, stream, task, flip, core, blocks, cycles, events in job.lines("pmu"):
        of = times[int(stream), int(task), int(flip)]
        if not window["begin_monotonic"] + EDGE_NS < truth.clock.mono(of.submit) or \
                not truth.clock.mono(of.end) < window["end_monotonic"] - EDGE_NS:
            continue
        start = truth.clock.real(of.start)
        rows = found.get((int(stream), int(task)), [])
        assert rows, f"kernel {stream}:{task}:{flip} on {device} has no counters"
        at, row = min(rows, key=lambda r: abs(r[0] - start))
        assert abs(at - start) < CLOCK_NS
        assert row[f"{core}_total_cycles"] == int(cycles), (row, cycles)
        if chip == "910B":
            time = int(cycles) / int(blocks) * -(-int(blocks) // CORES[core]) / MHZ * 1000
            assert abs(row[f"{core}_total_time"] - time) < 1, (row, time)
        counts = {int(e, 16): int(n) for e, n in (pair.split(":") for pair in events.split(","))} if events != "-" \
            else {}
        for column, parts in columns.items():
            if not column.startswith(core) or not all(part in counts for part in parts):
                continue
            true = float(sum(counts[part] for part in parts))
            if column.endswith("_rate"):
                true = counts[parts[0]] / counts[parts[1]]
            elif column.endswith("_ratio"):
                true /= int(cycles)
            assert abs(row[column] - true) <= 1e-6 * max(1.0, true), f"{column}: {row[column]}, should be {true}"
            values += 1
        checked[core] += 1
    assert sum(checked.values()) > 200, f"{checked} kernels with counters"
    assert values > 200 or not columns, f"{values} values"
    return checked


for _metric in PMU_COLUMNS:
    def _counted(case: Case, metric: str = _metric) -> None:
        counters_are_true(case, metric)
    _counted.__name__ = f"counters_{_metric}"
    test(_counted)


def mixed_kernels(case: Case, contexts: str, mix: str) -> None:
    """FFTS+ kernels: their contexts' counters and those of each block of the other
    kind of cores are those of the kernel."""
    counted = counters_are_true(case, "PipeUtilization", NPUSIM_FFTS=contexts, NPUSIM_MIX=mix, NPUSIM_BLOCKS="48")
    assert min(counted["aic"], counted["aiv"]) > 50, counted


@test
def counters_of_two_vector_blocks_each(case: Case) -> None:
    mixed_kernels(case, "1", "aic:2")


@test
def counters_of_contexts_in_threads(case: Case) -> None:
    mixed_kernels(case, "3x2", "aic:2")


@test
def counters_of_kernels_that_vectors_lead(case: Case) -> None:
    mixed_kernels(case, "2", "aiv:1")


@test
def counters_950(case: Case) -> None:
    """Ten events a record; for a kernel on both kinds of cores each kind has a record."""
    counters_are_true(case, "PipeUtilization", "950")


@test
def a_950_without_an_answer(case: Case) -> None:
    """The log alone shows what chip it is: submissions are numbered as there, also where the capture begins
    in the middle of the numbers and their low half begins anew in it."""
    job = Job(case, "950", NPUSIM_FIRST_TASK=str((3 << 16) - 9000))  # some eight seconds of it
    run = capture(job, 120, "--task-source", "agent", "--export", "none")
    run.wait_for("^npuscope: recording ", err=True)
    job.wait_for_task(3 << 16)
    run.signal(signal.SIGINT)
    result = run.result(90).expect(DONE, PARTIAL)
    # on a busy machine; it is not needed here
    assert all("the driver is slow" in line for line in lines_of(result)), result.err
    truth = job.end()
    path = result.session.path / "session.json"
    reported = json.loads(path.read_text())
    for device in reported["devices"]:
        assert device.pop("platform", 15 if lines_of(result) else 0) in (15, 16)
        device["chip"] = ""
    path.write_text(json.dumps(reported))
    case.analyze(result.session.path, "--export", "db").expect(DONE)
    found = Found(result, "950")
    numbers = {row["taskId"] >> 16 for row in found.rows}
    assert numbers == {2, 3}, numbers
    n = hold_up(job, truth, found)
    assert n["bounded"] == 0, n


@test
def expanded_ids(case: Case) -> None:
    agent_times_all(case, "910B", NPUSIM_IDS="expanded")


@test
def mangled_ids(case: Case) -> None:
    agent_times_all(case, "910B", NPUSIM_IDS="mangled")


@test
def helper_makes_way_and_comes_back(case: Case) -> None:
    """The job's own profiler begins while the helper has the log: its start succeeds, and no task is without
    its time but those of the moments in which the log changed hands."""
    job = Job(case, "910B", profiler=True)
    run = capture(job, 8)
    log = case.path(f"log.{job.pid}")
    for k in range(2):
        time.sleep(1)
        case.path(f"start.{k}").touch()
        wait_until(lambda: log.read_text().count("start 0") == k + 1, f"the job's own profiler: {log.read_text()}")
        time.sleep(1.5)
        case.path(f"stop.{k}").touch()
        wait_until(lambda: log.read_text().count("stop 0") == k + 1, "its end")
    result = run.result(90).expect(DONE)
    answers = re.findall(r"^(\w+) (-?\d+)", log.read_text(), re.M)
    assert answers == [("start", "0"), ("stop", "0")] * 2, log.read_text()
    waited = max(float(line.split()[2]) for line in log.read_text().splitlines() if line.startswith("start"))
    assert waited < 2000, f"the job's own profiler waited {waited} ms"
    n = hold_up(job, job.end(), Found(result, "910B"))
    assert n["measured"] > 0.9 * n["tasks"], n
    breaks = next(result.session.path.glob("PROF_*/device_*/data/npuscope.breaks")).read_text()
    assert [line.split()[3] for line in breaks.splitlines() if "stars_soc" in line] == \
        ["agent", "profiler", "agent", "profiler", "agent"], breaks


def sampler_makes_way(case: Case, agent: bool, **env: str) -> None:
    """The job's own profiler wants channels that are being sampled from outside: it gets each at its
    first try, and when it has ended they are sampled again. Witness: what the driver answered it,
    and the truth file's starts and stops."""
    wanted = {1, 3, 4, 8, 9}  # of profile_lib.c
    job = Job(case, "910B", agent=agent, profiler=True, PROFILE_SAMPLES="1", **env)
    run = capture(job, 9, "--sys-hardware-mem", "--sys-io", "--sys-interconnection")
    run.wait_for("^npuscope: recording ", err=True)
    log = case.path(f"log.{job.pid}")
    for k in range(2):
        time.sleep(1)
        case.path(f"start.{k}").touch()
        starts = (k + 1) * (len(wanted) + 1)
        wait_until(lambda: log.read_text().count("start ") == starts, f"the job's own profiler: {log.read_text()}")
        time.sleep(1)
        case.path(f"stop.{k}").touch()
        wait_until(lambda: log.read_text().count("stop ") == starts, "its end")
    result = run.result(90).expect(DONE)
    job.end()
    answers = re.findall(r"^(\w+) (-?\d+)", log.read_text(), re.M)
    assert answers == ([("start", "0")] * (len(wanted) + 1) + [("stop", "0")] * (len(wanted) + 1)) * 2, log.read_text()
    printed = [line for line in result.err.splitlines() if "the job's own profiler runs" in line]
    assert len(printed) == 1 and "device 0" in printed[0], result.err
    (sampler,) = result.session.json["device_sampler"]["devices"]
    channels = {c["id"]: c for c in sampler["channels"]}
    assert all(channels[c]["starts"] == 3 and not channels[c]["errors"] for c in wanted), channels
    begins = [s["started_raw"] for s in sampler["segments"]]
    # HBM, of the job's profiler alone
    own = [int(line[3]) for line in job.lines("channel") if line[1] == "1"]
    assert len(begins) == 3 and len(own) == 4, (begins, own)
    assert begins[0] < own[0] < own[1] < begins[1] < own[2] < own[3] < begins[2], (begins, own)
    for segment in sampler["segments"]:
        data = result.session.path / segment["prof_dir"] / "device_0" / "data"
        assert (data / "hbm.data.0.slice_0").stat().st_size > 1000, segment


@test
def sampler_makes_way_and_comes_back(case: Case) -> None:
    """At once: the profiler's start waits."""
    sampler_makes_way(case, True)


@test
def sampler_makes_way_without_the_helper(case: Case) -> None:
    """As soon as it queries which channels there are: nothing in the job can wait."""
    sampler_makes_way(case, False, PROFILE_PAUSE="2000000")


@test
def losses_are_counted_to_the_record(case: Case) -> None:
    """Fewer than a round of the 4-bit numbers, a round exactly, and many."""
    for lost in (5, 16, 100):
        sub = Case(f"lose{lost}")
        sub.running, sub.at_end = case.running, case.at_end
        try:
            job = Job(sub, "910B")
            run = capture(job, 3, "--task-source", "agent")
            time.sleep(1)
            job.order(f"lose 0 50 {lost}")
            result = run.result(90)
            job.end()
            true = sum(int(line[2]) for line in job.lines("lost"))
            assert true == lost, job.lines("lost")
            found = re.search(r"(\d+) (?:device|task log) records", result.err)
            meta = json.loads(next(sub.dir.rglob("profiler_metadata.json")).read_text())
            clocks = meta["npuscope"]["device_clocks"]
            assert [c["records_lost"] for c in clocks] == [lost], f"{lost} records were lost, told are {clocks} {found}"
            result.expect(PARTIAL)
        finally:
            sub.running = []
            sub.clean_up()


def records_lost(result: Result) -> int:
    meta = json.loads(next(result.session.path.parent.rglob("profiler_metadata.json")).read_text())
    return sum(log["records_lost"] for log in meta["npuscope"]["device_clocks"])


@test(seconds=240)
def a_ring_that_is_overwritten(case: Case) -> None:
    """A read that comes back after the driver's ring was written twice over: the running numbers
    show nothing of it, and ids have come round since. The number of missing records is exact,
    and no task has the times of another."""
    job = Job(case, "910B", options=("--rate", "15000"))
    run = capture(job, 11, "--task-source", "agent")
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(1)
    job.order("slow 0 50 read 6000")
    time.sleep(1)
    job.order("")
    result = run.result(150).expect(PARTIAL)
    truth = job.end()
    overwritten = [int(line[2]) for line in job.lines("lost") if line[1] == "50" and line[4] == "overrun"]
    assert overwritten, job.lines("lost")
    assert records_lost(result) == sum(overwritten), (result.err, overwritten)
    n = hold_up(job, truth, Found(result, "910B"), overwritten=True)
    assert abs(n["bounded"] - sum(overwritten) / 2) < 100, (n, overwritten)


@test
def a_read_that_does_not_come_back(case: Case) -> None:
    """Tasks that the helper did not read have bounds, and one line reports it."""
    job = Job(case, "910B")
    run = capture(job, 3, "--task-source", "agent")
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(1)
    job.order("slow 0 50 read 6000")
    result = run.result(90).expect(PARTIAL)
    # which it can be on a busy machine
    reported = [line for line in lines_of(result) if "the driver is slow: " not in line]
    assert len(reported) == 1 and "its helper had not read the rest of the task log" in reported[0], result.err
    n = hold_up(job, job.end(), Found(result, "910B"))
    assert n["measured"] > 100 and n["bounded"] > 100, n


@test
def a_killed_job_is_not_reported_as_slow(case: Case) -> None:
    """Killed while it is watched, and, started by npuscope, together with it:
    there is nobody who could read the rest."""
    job = Job(case, "910B")
    run = capture(job, 60, "--task-source", "agent")
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(1)
    os.kill(job.pid, signal.SIGKILL)
    result = run.result(30)
    assert result.status in (DONE, PARTIAL) and "had not read the rest" not in result.err, result.err
    run = case.record("-o", case.path("child"), "--export", "none", "--", SIM / "bin" / "npusim-train", "--ranks", 1,
                      "--seconds", 60,
                      env=environment(sim=True, **job.machine))
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(1)
    for pid in children_of(run.pid):
        os.kill(pid, signal.SIGKILL)
    run.signal(signal.SIGINT)
    result = run.result()
    assert "had not read the rest" not in result.err, result.err


@test
def counters_that_are_overwritten(case: Case) -> None:
    """Each block of mixed kernels is counted, more than can be read: kernels that have none are counted, and
    those that are reported have all of theirs."""
    job = Job(case, "910B", NPUSIM_FFTS="1", NPUSIM_MIX="aic:2")
    result = capture(job, 3, "--task-source", "agent", "--aic-metrics", "PipeUtilization").result(90).expect(PARTIAL)
    truth = job.end()
    reported = re.search(r"not in the result: (\d+) counters of kernels", result.err)
    assert reported, result.err
    with_counters = {(at, key) for key, rows in pmu_of(result).items() for at, _row in rows}
    path = next(result.session.path.parent.rglob("ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        kernels = db.execute("SELECT startNs, streamId, taskId, (SELECT value FROM STRING_IDS WHERE id = c.taskType) "
                             "FROM TASK "
                             "JOIN COMPUTE_TASK_INFO c USING (globalTaskId) WHERE endNs > startNs "
                             "ORDER BY endNs").fetchall()
    missing, pending = 0, {}
    for start, stream, task, kind in kernels:
        if (start, (stream, task)) in with_counters:
            missing += pending.get(kind, 0)
            pending[kind] = 0
        elif kind in pending:
            pending[kind] += 1
    assert missing > 50 and int(reported[1]) == missing, (reported[0], missing)


@test
def driver_errors_are_reported(case: Case) -> None:
    """Each code that the driver may answer a start with, and no list of channels: one line,
    bounds instead of times, the job unharmed."""
    for call, code, words in (("50 start", -1, "code -1"), ("50 start", -8, "code -8"), ("* channels", -1, "code -1"),
                              ("50 start", -10, "in use by another profiler"),
                              ("50 start", -11, "in use by another profiler"), ("50 start", 115, "set no device")):
        sub = Case(f"error{call[-5:]}{code}")
        sub.running, sub.at_end = case.running, case.at_end
        try:
            job = Job(sub, "910B")
            job.order(f"error 0 {call} {code} always")
            result = capture(job, 1.5, "--task-source", "agent").result(90).expect(PARTIAL)
            printed = [line for line in result.complaints if "task log" in line]
            assert len(printed) == 1 and words in printed[0], f"{code}: {result.err}"
            n = hold_up(job, job.end(), Found(result, "910B"))
            assert n["measured"] == 0, n
        finally:
            sub.running = []
            sub.clean_up()


@test
def busy_channel_is_left_alone(case: Case) -> None:
    """--task-source agent while the job's own profiler has the log: bounds, one
    line, and the profiler's log is whole."""
    job = Job(case, "910B", profiler=True)
    case.path("start.0").touch()
    log = case.path(f"log.{job.pid}")
    wait_until(lambda: "start 0" in log.read_text(), "the job's own profiler")
    result = capture(job, 1.5, "--task-source", "agent").result(90).expect(PARTIAL)
    case.path("stop.0").touch()
    wait_until(lambda: "stop 0" in log.read_text(), "its end")
    printed = [line for line in result.complaints if "task log" in line]
    assert len(printed) == 1 and re.search("in use by another profiler|the job's own profiler", printed[0]), result.err
    assert hold_up(job, job.end(), Found(result, "910B"))["measured"] == 0


PROFILER = """
import ctypes, sys
hal, buffer = ctypes.CDLL(sys.argv[1]), ctypes.create_string_buffer(8 << 20)
print("ready", flush=True)
for line in sys.stdin:
    assert hal.prof_drv_start(0, 50, None) == 0
    for _ in range(int(line)):
        assert hal.prof_channel_read(0, 50, buffer, len(buffer)) == len(buffer)
    assert hal.prof_stop(0, 50) == 0
    print("read", line, flush=True)
"""


@test
def what_found_no_room_is_counted(case: Case) -> None:
    """The job's profiler reads 40 MiB at once while the collector is stopped, and nothing after that would
    show a gap: each byte is stored, or counted as lost."""
    need_root()
    library = build_library(case, "full_log_lib.c", "libascend_hal.so", case.path("lib"))
    job = case.start([sys.executable, "-c", PROFILER, library])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.path("out"), "--export", "none")
    os.kill(run.pid, signal.SIGSTOP)
    job.send("5")
    job.wait_for("^read 5")
    os.kill(run.pid, signal.SIGCONT)
    assert job.process.stdin
    job.process.stdin.close()
    result = run.result(60).expect(PARTIAL)
    files = result.session.path.glob("PROF_*/device_0/data/stars_soc.data.*")
    stored = sum(p.stat().st_size for p in files if not p.name.endswith(".done"))
    assert 8 << 20 < stored <= 16 << 20, stored
    assert stored + result.session.json["drops"]["profiler"] == 40 << 20, (stored, result.session.json["drops"])
    assert result.session.json["drops"]["profiler_calls"] in (0, 1), "its last call, told into a full ring"


@test
def slow_driver_holds_up_one_device(case: Case) -> None:
    """A start that takes the driver seconds on one device: the other one's tasks are timed all the same."""
    need_root()
    need(os.cpu_count() is not None, "CPUs")
    job = Job(case, "910B", ranks=2)
    pids = ranks_of(job.run)
    job.order("slow 1 50 read 3000")
    result = case.record("-p", pid_list(pids), "-d", "3s", "-o", case.path("out"), "--export", "db",
                         "--task-source", "agent", env={**os.environ, **job.machine}).result(90).expect(DONE, PARTIAL)
    slices = [p for p in result.session.path.glob("PROF_*/device_0/data/stars_soc.data.*")
              if not p.name.endswith(".done")]
    assert sum(p.stat().st_size for p in slices) > 64 * 1000, result.err


class Sick:
    """A capture of the job, in whose own calls alone the driver hangs on request."""

    def __init__(self, job: Job, *options: Any, orders: str = "") -> None:
        self.job, self.orders = job, job.case.open_path("sick")
        self.orders.write_text(orders)
        self.run = job.case.record("-p", job.pid, "-o", job.case.path("out"), "--export", "db", *options, wait=False,
                                   env=host_environment(job.case, **job.machine, NPUSIM_CONTROL=self.orders))

    def stop(self) -> Result:
        """Ctrl-C; it has four seconds to end, and a few to analyse."""
        begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        elapsed = self.run.seconds_to_end("npuscope: session in ", signal.SIGINT)
        result = self.run.result(60).expect(PARTIAL)
        assert elapsed < 4, f"{elapsed:.2f} s until the end, and {self.run.kept:.2f} s without a CPU: {result.err}"
        noticed = (result.session.json["capture"]["end_monotonic"] - begun) / 1e9
        assert noticed < 0.2 + self.run.kept, f"{noticed:.2f} s until it noticed, {self.run.kept:.2f} s without a CPU"
        printed = [line for line in lines_of(result) if "the driver does not answer: a call" in line]
        assert len(printed) == 1, result.err
        assert not any(value if isinstance(value, int) else any(value.values())
                       for value in result.session.json["drops"].values()), result.session.json["drops"]
        return result


@test(seconds=120)
def driver_that_hangs_from_the_start(case: Case) -> None:
    """No query of the collector returns: the job's tasks are all
    there, with bounds, and Ctrl-C is answered."""
    job = Job(case, "910B", agent=False)
    sick = Sick(job, "--npu-usage", "--sys-hardware-mem", orders="slow * * info 600000\nslow * * dcmi 600000\n")
    elapsed = sick.run.seconds_to_end("npuscope: recording ")
    assert elapsed < 8, f"{elapsed:.1f} s until it recorded, and {sick.run.kept:.1f} s without a CPU: {sick.run.err}"
    sick.run.wait_for("^npuscope: recording ", err=True)
    time.sleep(4)
    result = sick.stop()
    n = hold_up(job, job.end(), Found(result, "910B"))
    assert n["measured"] == 0 and n["bounded"] > 200, n


@test(seconds=120)
def driver_that_begins_to_hang(case: Case) -> None:
    """What the job's own profiler reads is copied to the byte all the same, and is
    timed by the clock as it was read before."""
    job = Job(case, "910B", agent=False, profiler=True)
    sick = Sick(job, "--task-source", "profiler")
    sick.run.wait_for("^npuscope: recording ", err=True)
    case.path("start.0").touch()
    log = case.path(f"log.{job.pid}")
    wait_until(lambda: "start 0" in log.read_text(), "the job's own profiler")
    time.sleep(2)
    sick.orders.write_text("slow * * info 600000\n")
    time.sleep(4)
    case.path("stop.0").touch()
    wait_until(lambda: "stop 0" in log.read_text(), "its end")
    time.sleep(0.3)
    result = sick.stop()
    assert hold_up(job, job.end(), Found(result, "910B"))["measured"] > 500
    own = b"".join(p.read_bytes() for p in case.dir.glob(f"own.{job.pid}.0.50"))
    parts = [p for p in result.session.path.glob("PROF_*/device_*/data/stars_soc.data.*.slice_*")
             if not p.name.endswith(".done")]
    copied = b"".join(p.read_bytes() for p in sorted(parts, key=lambda p: int(p.name.rsplit("_", 1)[1])))
    assert own and copied == own, f"{len(copied)} bytes were copied, of {len(own)}"


def lines_of(result: Result) -> list[str]:
    """Messages other than the usual ones."""
    return [line for line in result.complaints if not re.search(r"^npuscope: (recording|session in) ", line)]


READ_CODES = (-1, -2, -5, -6, -8, -9)


@test(seconds=120)
def errors_of_the_task_log(case: Case) -> None:
    """Its calls fail one after the other, with each code that the driver has: a read now and then
    costs nothing, one that goes on failing costs a moment, and each is reported once. The log is
    closed in the end, as the truth file shows."""
    job = Job(case, "910B")
    orders = ["error 0 * channels -1", "error 0 50 start -2"]
    job.order(*orders)
    run = capture(job, 7, "--task-source", "agent")
    run.wait_for("^npuscope: recording ", err=True)
    for code in READ_CODES:
        time.sleep(0.3)
        orders.append(f"error 0 50 read {code}")
        job.order(*orders)
    time.sleep(0.5)
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(0.2)  # what the device holds back is lost with the channel
    job.order(*orders, "error 0 50 read -11 3", "error 0 50 flush -1", "error 0 50 stop -2", "error 0 * poll -1 always")
    time.sleep(1)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    result = run.result(90).expect(DONE)
    truth, found = job.end(), Found(result, "910B")
    printed = [line for line in result.complaints if "device 0:" in line]
    reported = sorted(re.findall(r"\((\w+) of channel (\d+): code (-\d+)\)", "\n".join(printed)))
    expected = [("read", "50", str(code)) for code in (*READ_CODES, -11)] + [("list", "0", "-1"), ("start", "50", "-2"),
                                                                         ("flush", "50", "-1"), ("stop", "50", "-2")]
    assert reported == sorted(expected) and len(printed) == len(reported), result.err
    channels = [line[2] for line in job.lines("channel") if line[1] == "50"]
    assert channels == ["start", "stop"] * 2, channels
    n = hold_up(job, truth, found, begin=found.begin + 500_000_000, end=begin)
    assert n["bounded"] == 0, n
    assert hold_up(job, truth, found, begin=end)["bounded"] == 0


@test(seconds=120)
def driver_that_starts_slowly(case: Case) -> None:
    """Tasks until then have bounds, and one line gives the reason."""
    job = Job(case, "910B")
    job.order("slow 0 50 start 2500")
    result = capture(job, 6, "--task-source", "agent").result(90).expect(DONE)
    printed = lines_of(result)
    assert len(printed) == 1 and re.search(r"the driver took [\d.]+ s to open the task log of device 0", printed[0]), \
        result.err
    n = hold_up(job, job.end(), Found(result, "910B"))
    assert n["measured"] > 200 and n["bounded"] > 200, n


@test(seconds=120)
def driver_that_does_not_come_back(case: Case) -> None:
    """The capture ends all the same; the channel, once it is open, is closed again."""
    job = Job(case, "910B")
    job.order("slow 0 50 start 8000")
    result = capture(job, 1.5, "--task-source", "agent").result(90).expect(PARTIAL)
    assert len(lines_of(result)) == 1 and "has not answered yet" in result.err, result.err
    wait_until(lambda: [line[2] for line in job.lines("channel")] == ["start", "stop"], "the channel is closed", 30)
    assert hold_up(job, job.end(), Found(result, "910B"))["measured"] == 0


@test(seconds=120)
def job_that_blocks_all_signals(case: Case) -> None:
    """The helper works in it; and its own profiler, which cannot be held up, is refused at most once, with a
    line that reports it, and gets no signal later."""
    job = Job(case, "910B", profiler=True, PROFILE_BLOCK="1")
    run = capture(job, 7, "--task-source", "auto")
    run.wait_for("^npuscope: recording ", err=True)
    log = case.path(f"log.{job.pid}")
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(1.5)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    case.path("start.0").touch()
    wait_until(lambda: "start" in log.read_text(), "its profiler")
    refused = "start 0" not in log.read_text()
    if refused:
        time.sleep(0.5)
        case.path("start.1").touch()
        wait_until(lambda: "start 0" in log.read_text(), f"the second try: {log.read_text()}")
    pending = [line for path in Path(f"/proc/{job.pid}/task").glob("*/status") for line in path.read_text().splitlines()
               if re.match("(Sig|Shd)Pnd:.*[1-9a-f]", line)]
    assert not pending, pending
    time.sleep(0.5)
    for k in (0, 1):
        case.path(f"stop.{k}").touch()
    wait_until(lambda: "stop 0" in log.read_text(), "its end")
    result = run.result(90).expect(DONE)
    printed = [line for line in result.err.splitlines() if "was refused channel 50" in line]
    assert len(printed) == refused, result.err
    n = hold_up(job, job.end(), Found(result, "910B"), begin=begin, end=end)
    assert n["bounded"] == 0, n


@test(seconds=120)
def reset_of_the_device(case: Case) -> None:
    """The log ends with it; what was read until then is there, and the job ends as it would without us."""
    alone = Job(case, "910B", agent=False)
    alone.order("reset 0")
    expected = alone.run.wait(30)
    alone.control.unlink()
    sub = Case("with")
    sub.running, sub.at_end = case.running, case.at_end
    try:
        job = Job(sub, "910B")
        run = capture(job, 30, "--task-source", "agent")
        run.wait_for("^npuscope: recording ", err=True)
        time.sleep(2)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        job.order("reset 0")
        assert job.run.wait(30) == expected
        result = run.result(90).expect(DONE)
        assert len([line for line in result.complaints if "the device was reset" in line]) <= 1, result.err
        truth = truthfile.load(job.truth_dir, {job.pid})[0]
        assert hold_up(job, truth, Found(result, "910B"), end=end)["bounded"] == 0
    finally:
        sub.running = []
        sub.clean_up()


def cores_by_task(case: Case, chip: str) -> None:
    """Counters by task and samples of cores want the same channel of an old chip: the task log, which was
    requested, has it, and one line reports it."""
    job = Job(case, chip)
    result = capture(job, 3, "--task-source", "agent", "--aic-metrics", "PipeUtilization").result(90).expect(DONE)
    truth = job.end()
    assert len(lines_of(result)) == 1 and "device 0: counters of its cores are not sampled" in result.err, result.err
    (sampler,) = result.session.json["device_sampler"]["devices"]
    states = {c["id"]: c["state"] for c in sampler["channels"]}
    assert states[43] == "left" and states.get(85, "absent") in ("left", "absent"), states
    assert [line[2] for line in job.lines("channel") if line[1] == "43"] == ["start", "stop"], job.lines("channel")
    window, times = result.session.json["capture"], {(t.stream, t.task, t.flip): t for t in truth.tasks}
    found, checked = pmu_of(result), 0
    for _device, stream, task, flip, core, _blocks, cycles, _events in job.lines("pmu"):
        of = times[int(stream), int(task), int(flip)]
        if core != "aic" or not window["begin_monotonic"] + EDGE_NS < truth.clock.mono(of.submit) or \
                not truth.clock.mono(of.end) < window["end_monotonic"] - EDGE_NS:
            continue
        start = truth.clock.real(of.start)
        _at, row = min(found[int(stream), int(task)], key=lambda r: abs(r[0] - start))
        assert row["total_cycles"] == int(cycles), (row, cycles)
        checked += 1
    assert checked > 200, f"{checked} kernels with counters"


for _chip in ("910A", "310P"):
    def _by_task(case: Case, chip: str = _chip) -> None:
        cores_by_task(case, chip)
    _by_task.__name__ = f"cores_by_task_{_chip}"
    test(_by_task)


if __name__ == "__main__":
    sys.exit(main())
