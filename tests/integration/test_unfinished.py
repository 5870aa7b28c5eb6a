#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls that have not returned when the capture ends are recorded up to there.
Witness: the job's own clock before each."""

import csv
import json
import os
import re
import struct
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness import PARTIAL, ROOT, Case, Session, build_library, catalogue, main, need_job, need_root, test
from records import API, CHUNK_EVENTS, EVENT, LOCK, SCHED, SYSCALL, Event, chunk, chunks

X86 = os.uname().machine == "x86_64"
READ, OPENAT, FUTEX = (0, 257, 202) if X86 else (63, 56, 98)
UNFINISHED, SCHED_OPEN = 0x80, 0x20
CATALOGUE = catalogue()


class Stuck:
    """The job, each of its threads in a call for ever, and what a capture has of it."""

    def __init__(self, case: Case, *options: str) -> None:
        need_root()
        where = case.path("lib")
        library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", where)
        self.fifo = case.path("a fifo that nobody reads")
        os.mkfifo(self.fifo)
        job = case.start([need_job("stuck_job"), library, self.fifo])
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", *options)
        job.send("go")
        job.wait_for("^stuck")
        time.sleep(0.1)  # every wait is longer than the threshold of system calls
        run.signal(2)
        result = run.result().expect(0, PARTIAL)
        assert job.alive(), "the job came to harm"
        self.pid = job.pid
        self.session: Session = result.session
        self.threads = {name: (int(tid), int(began)) for name, tid, began in
                        re.findall(r"^thread (\w+) (\d+) (\d+)$", job.out, re.M)}
        self.end = int(self.session.json["capture"]["end_monotonic"])

    def of(self, kind: int, name: str) -> list[Event]:
        """Calls of a thread that are recorded as unfinished."""
        return [e for e in self.session.of(kind, self.pid) if e.flags & UNFINISHED and e.tid == self.threads[name][0]]

    def one(self, kind: int, name: str, probe: int) -> Event:
        """The call that the thread is in: begun after it reported that, open up to the capture's end."""
        found = self.of(kind, name)
        assert [e.probe for e in found] == [probe], f"{name}: {[(e.kind, e.probe) for e in found]}"
        (event,) = found
        assert event.start >= self.threads[name][1], f"{name} began before it did"
        assert event.start + event.dur == self.end, f"{name} does not reach the end"
        return event


@test
def calls_are_reported(case: Case) -> None:
    """CANN calls: with their arguments, without results that are not there."""
    stuck = Stuck(case)
    sync = stuck.one(API, "sync", CATALOGUE["aclrtSynchronizeStream"][0])
    assert sync.body.slot[0] == 0x5151, sync.body
    assert sync.ret == -1 and sync.flags == UNFINISHED, (sync.ret, sync.flags)
    malloc = stuck.one(API, "malloc", CATALOGUE["aclrtMalloc"][0])
    assert malloc.body.slot[:2] == (0, 4096) and malloc.flags == UNFINISHED | 1, (malloc.body, malloc.flags)
    # One that was left by a jump is none that goes on.
    assert not stuck.of(API, "jump")
    others = [e for e in stuck.session.of(API, stuck.pid) if e.flags & UNFINISHED and e is not sync and e is not malloc]
    assert not others, [(e.tid, e.probe) for e in others]
    assert stuck.session.dropped() == 0


@test
def system_calls_are_reported(case: Case) -> None:
    stuck = Stuck(case)
    read = stuck.one(SYSCALL, "read", READ)
    assert read.body.arg[2] == 1 and read.body.result == 0 and read.ret == 0, (read.body, read.ret)
    opened = stuck.one(SYSCALL, "open", OPENAT)
    assert stuck.session.strings[opened.body.arg[1]] == str(stuck.fifo), opened.body
    # The library waits in a read, too.
    stuck.one(SYSCALL, "sync", READ)
    futex, lock = stuck.one(SYSCALL, "lock", FUTEX), stuck.one(LOCK, "lock", 0)
    assert (lock.body.address, lock.start) == (futex.body.arg[0], futex.start)
    assert lock.body.owner == stuck.pid and not lock.body.waker, "the main thread has it, nobody woke it"
    for name, (tid, _began) in stuck.threads.items():
        (last,) = [e for e in stuck.session.of(SCHED, stuck.pid) if e.tid == tid and e.flags & SCHED_OPEN]
        assert last.start + last.dur == stuck.end and last.body.runnable == stuck.end, f"{name} sleeps at the end"
    main_thread = [e for e in stuck.session.of(SYSCALL, stuck.pid) if e.tid == stuck.pid and e.flags & UNFINISHED]
    assert [e.nr for e in main_thread] == [READ], "it waits for its input"


@test
def results_report_it(case: Case) -> None:
    """Slices up to the end, marked, without a result; the time of each thread is where it waits."""
    stuck = Stuck(case)
    result = case.analyze(stuck.session.path, "-o", case.path("out"), "--export", "text").expect(0, PARTIAL)
    folder = Path(result.out.split()[0])
    trace = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
    marked = [e for e in trace if e.get("ph") == "X" and e.get("args", {}).get("end") == "after the capture"]
    names = {name: sorted(e["name"] for e in marked if e["tid"] == tid) for name, (tid, _) in stuck.threads.items()}
    assert names["sync"] == ["AscendCL@aclrtSynchronizeStream", "read"] and names["lock"] == ["futex"], names
    assert names["read"] == ["read"] and names["open"] == ["openat"], names
    assert not [e for e in marked if {"result", "error", "bytes"} & e["args"].keys()], marked
    ends = {Decimal(str(e["ts"])) + Decimal(str(e["dur"])) for e in marked}
    assert max(ends) - min(ends) < Decimal("0.002"), f"they end at {ends}"
    with open(folder / "ASCEND_PROFILER_OUTPUT" / "npuscope_host_breakdown.csv", newline="") as file:
        rows = {int(row["Thread ID"]): row for row in csv.DictReader(file)}
    for name, part in (("lock", "Lock Wait(us)"), ("read", "I/O Wait(us)"), ("sync", "Device Wait(us)")):
        tid, began = stuck.threads[name]
        waited = float(rows[tid][part]) * 1000
        assert 0.9 * (stuck.end - began) < waited <= stuck.end - began, \
            f"{name}: {rows[tid]}, since {stuck.end - began}"
    check = case.run(["/usr/bin/python3", ROOT / "tools" / "conformance" / "check", folder])
    assert check.status == 0, check.out[-2000:]


def append_events(session: Session, *events: tuple[Any, ...]) -> None:
    """One more chunk of a session's events."""
    path = session.path / "events.nps"
    payload = b"".join(EVENT.pack(*event) for event in events)
    path.write_bytes(path.read_bytes() + chunk(CHUNK_EVENTS, len(list(chunks(path))), payload))


@test
def results_nest(case: Case) -> None:
    """A call that returned while the programs were being notified of the end
    ends within the open one that made it."""
    stuck = Stuck(case)
    sync = stuck.one(API, "sync", CATALOGUE["aclrtSynchronizeStream"][0])
    inner = CATALOGUE["rtStreamSynchronize"][0]
    append_events(stuck.session, (API, 0, inner, sync.pid, sync.tid, 0, stuck.end - 1000, 10000,
                                  struct.pack("<4Q", 0x5151, 0, 0, 0)))
    result = case.analyze(stuck.session.path, "-o", case.path("out"), "--export", "text").expect(0, PARTIAL)
    folder = Path(result.out.split()[0])
    check = case.run(["/usr/bin/python3", ROOT / "tools" / "conformance" / "check", folder])
    assert check.status == 0, check.out[-2000:]
    trace = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
    ends = {e["name"]: Decimal(str(e["ts"])) + Decimal(str(e["dur"])) for e in trace
            if e.get("ph") == "X" and e["tid"] == sync.tid and "ynchronize" in e["name"]}
    assert len(ends) == 2 and len(set(ends.values())) == 1, ends


@test
def calls_that_return_while_it_ends(case: Case) -> None:
    """A call that was open at the end is recorded, though it has returned when threads are
    queried. Witness: the job's own clock."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("busy_calls_job"), library, "200"])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-d", "500ms", "-o", case.dir, "--export", "none", "--host-sys", "none")
    session = run.result().expect(0).session
    time.sleep(0.2)  # those that are open end
    job.send("go")
    assert job.wait() == 0, job.err
    end = int(session.json["capture"]["end_monotonic"])
    # The job reads its clock inside the function: behind the probe at its entry, and before its return.
    open_then = {int(tid) for tid, began, ended in re.findall(r"^call (\d+) (\d+) (\d+)$", job.out, re.M)
                 if int(began) < end < int(ended)}
    # Or with its return, which came before the programs were notified of the end.
    open_threads = {e.tid for e in session.of(API, job.pid) if e.start < end <= e.start + e.dur}
    assert len(open_then) > 50, f"of 200 threads {len(open_then)} were in a call at the end"
    assert not open_then - open_threads, \
        f"{len(open_then - open_threads)} of {len(open_then)} calls that were open at the end are not told of"


@test
def nothing_without_osrt(case: Case) -> None:
    """What was not requested is not recorded at the end either."""
    stuck = Stuck(case, "--host-sys", "none")
    assert not stuck.session.of(SYSCALL) and not stuck.session.of(SCHED) and not stuck.session.of(LOCK)
    stuck.one(API, "sync", CATALOGUE["aclrtSynchronizeStream"][0])


if __name__ == "__main__":
    sys.exit(main())
