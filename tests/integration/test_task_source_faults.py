#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The device's task log when something goes wrong: records are lost, calls of the driver fail, are slow or
hang, the job is killed or its device reset. What is lost is counted, to the record; what has no time has
bounds; and one line reports it."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from harness import (DONE, PARTIAL, SIM, Case, Result, build_library, children_of, environment, host_environment,
                     main, need, need_root, pid_list, ranks_of, test, wait_until)
from task_log_job import Found, Job, capture, hold_up, lines_of, pmu_of, truthfile


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


@test(seconds=600)
def a_ring_that_is_overwritten(case: Case) -> None:
    """A read that comes back after the driver's ring was written twice over: the running numbers
    show nothing of it, and ids have come round since. The number of missing records is exact,
    and no task has the times of another."""
    job = Job(case, "910B", options=("--rate", "15000"))
    run = capture(job, 11, "--task-source", "agent")
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(1)
    job.order("slow 0 50 read 6000")
    time.sleep(2.5)
    job.order("")
    result = run.result(300).expect(PARTIAL)
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
                             # on a busy machine records of the task log are overwritten, too
                             "AND globalTaskId NOT IN (SELECT globalTaskId FROM NPUSCOPE_TASK_TIME "
                             "WHERE source = 'host bounds') "
                             "ORDER BY endNs").fetchall()
    missing, pending = 0, {}
    for start, stream, task, kind in kernels:
        if (start, (stream, task)) in with_counters:
            missing += pending.get(kind, 0)
            pending[kind] = 0
        elif kind in pending:
            pending[kind] += 1
    # Bytes of the log that a busy machine lost are reported as such: what was in them is not counted again.
    lost = sum(result.session.json["drops"]["agent"].values())
    assert missing > 50 and (int(reported[1]) <= missing if lost else int(reported[1]) == missing), \
        (reported[0], missing, lost)


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


if __name__ == "__main__":
    sys.exit(main())
