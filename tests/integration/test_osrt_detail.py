#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sums of short calls, locks, page faults, I/O, arguments. Witnesses: the job's clocks
and counts, getrusage, /proc/self/io."""

import csv
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

from harness import Case, Session, main, need_job, need_root, test
from records import FAULT, FAULT_MAJOR, FAULT_SUM, IO, SYSCALL, SYSCALL_SUM, Event

X86 = os.uname().machine == "x86_64"
GETPPID, PREAD64 = (110, 17) if X86 else (173, 67)
READ, WRITE = 0, 1


class Capture:
    """The job's facts, the session and the tables and trace made of it."""

    def __init__(self, case: Case, *options: str) -> None:
        need_root()
        node = case.path("davinci7")
        # the name is the driver's, the device is /dev/null
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        job = case.start([need_job("wait_job"), case.path("data"), node])
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-o", case.dir, "--export", "text", *options)
        job.send("go")
        assert job.wait() == 5, f"the job ended with {job.process.returncode}: {job.err}"
        self.result = run.result().expect(3)  # no CANN library in this job
        self.facts = {name: int(value) for name, value in re.findall(r"^(\w+) \d+ (\d+)$", job.out, re.M)}
        self.pid = job.pid
        self.session: Session = self.result.session
        found = list(Path(self.session.path).glob(f"*_{job.pid}_*_ascend_pt/ASCEND_PROFILER_OUTPUT"))
        assert len(found) == 1, found
        self.out = found[0]
        assert not self.session.dropped(), self.result.err

    def fact(self, name: str) -> int:
        return self.facts[name]

    def table(self, name: str) -> list[dict[str, str]]:
        with open(self.out / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def slices(self, name: str) -> list[dict[str, Any]]:
        """Of the trace, by name."""
        return [e for e in json.loads((self.out / "trace_view.json").read_text())
                if e["name"] == name and e.get("ph") == "X"]

    def of(self, kind: int) -> list[Event]:
        return self.session.of(kind, self.pid)

    def thread(self) -> dict[str, str]:
        return next(t for t in self.table("npuscope_threads") if int(t["Thread ID"]) == self.pid)


def near(found: float, own: float, share: float, slack: float = 0) -> bool:
    return abs(found - own) <= share * own + slack


def summed(sums: list[Event]) -> int:
    return sum(e.body.count for e in sums)


@test
def a_million_short_calls(case: Case) -> None:
    """They are all counted, by a handful of records."""
    capture = Capture(case)
    sums = [e for e in capture.of(SYSCALL_SUM) if e.nr == GETPPID]
    records = [e for e in capture.of(SYSCALL) if e.nr == GETPPID]
    assert summed(sums) + len(records) == capture.fact("getppid"), f"{summed(sums)} + {len(records)}"
    assert len(sums) < 60, f"{len(sums)} sums"
    assert all(e.dur >= 10_000 for e in records), sorted(e.dur for e in records)[:3]
    for e in sums:
        total = e.body.total
        assert 0 < e.body.shortest <= total // e.body.count <= e.body.longest < 10_000, e.body
        assert total <= e.dur, f"{total} ns of calls in {e.dur} ns"
    row = next(r for r in capture.table("os_runtime_statistic")
               if r["Name"] == "getppid" and int(r["Thread ID"]) == capture.pid)
    total = sum(e.body.total for e in sums) + sum(e.dur for e in records)
    assert int(row["Count"]) == capture.fact("getppid"), row
    assert near(float(row["Time(us)"]), total / 1000, 0, 0.01), (row, total)


@test
def threshold_zero_records_all(case: Case) -> None:
    need_root()
    result = case.record("-o", case.dir, "--export", "none", "--osrt-threshold", "0", "--", need_job("storm_job"),
                         "20000", wait=False).result().expect(3)
    session = result.session
    assert not session.of(SYSCALL_SUM), len(session.of(SYSCALL_SUM))
    assert sum(e.nr == GETPPID for e in session.of(SYSCALL)) == 20000


@test
def mutex_holder_is_named(case: Case) -> None:
    capture = Capture(case)
    holder, waiter = capture.fact("holder_tid"), capture.fact("waiter_tid")
    rows = [r for r in capture.table("npuscope_locks") if int(r["Address"], 16) == capture.fact("mutex_address")
            and int(r["Thread ID"]) == waiter]
    assert len(rows) == 1, rows
    row = rows[0]
    assert row["Lock"] == "mutex" and int(row["Holder"]) == holder, row
    assert int(row["Waits"]) == capture.fact("rounds"), row
    assert int(row["Max Woken By"]) == holder, row
    own = capture.fact("waited_ns") / 1000
    assert near(float(row["Time(us)"]), own, 0.02), f"waited {row['Time(us)']} us, the job measured {own}"
    # One that found the lock free after all did not wait; what lasts microseconds is
    # the mutex changing hands, not a round.
    waits = [s for s in capture.slices("futex") if s["args"].get("lock") == "mutex" and s["tid"] == waiter
             and "error" not in s["args"] and s["dur"] > 1000]
    assert len(waits) == capture.fact("rounds"), len(waits)
    assert all(s["args"]["holder"] == holder and s["args"]["woken_by"] == holder for s in waits), waits[0]


@test
def joins_and_conditions_are_distinguished(case: Case) -> None:
    capture = Capture(case)
    locks = capture.table("npuscope_locks")
    joins = [r for r in locks if r["Lock"] == "join" and int(r["Thread ID"]) == capture.pid]
    first = next(r for r in joins if int(r["Holder"]) == capture.fact("holder_tid"))
    assert near(float(first["Time(us)"]), capture.fact("join_ns") / 1000, 0.02), first
    assert {int(r["Holder"]) for r in joins} <= {capture.fact("holder_tid"), capture.fact("waiter_tid")}, joins
    signals = [r for r in locks if r["Lock"] == "condition or semaphore"]
    assert signals and all(r["Holder"] == "N/A" for r in signals), locks
    # No lock that is none of the job's mutexes is called a mutex.
    named = {int(r["Address"], 16) for r in locks if r["Lock"] == "mutex"}
    assert capture.fact("mutex_address") in named, named


@test
def page_faults_are_counted(case: Case) -> None:
    capture = Capture(case)
    faults = capture.of(FAULT)
    major = sum(e.body.major for e in faults if e.what == FAULT_SUM)
    assert major == capture.fact("major"), f"{major} major faults, getrusage says {capture.fact('major')}"
    single = [e for e in faults if e.what == FAULT_MAJOR and e.tid == capture.pid]
    first = capture.fact("fault_address")
    mine = [e for e in single if first <= e.body.address < first + (8 << 20)]
    assert len(mine) == capture.fact("touch_major") > 0, f"{len(mine)}, getrusage says {capture.fact('touch_major')}"
    waited, own = sum(e.dur for e in mine), capture.fact("touch_ns")
    assert 0.5 * own < waited <= own, f"{waited} ns in major faults, the job touched for {own}"
    row = capture.thread()
    sums = [e.body for e in faults if e.what == FAULT_SUM and e.tid == capture.pid]
    assert int(row["Major Faults"]) == sum(s.major for s in sums), row
    minor = sum(e.body.minor for e in faults if e.what == FAULT_SUM)
    # What came before the job was first seen is not ours; what came after its last look at its clock is.
    own = capture.fact("minor")
    assert capture.fact("touch_minor") < minor, f"{minor} minor faults, of it {capture.fact('touch_minor')} in one go"
    assert abs(minor - own) < 150, f"{minor} minor faults, getrusage says {own} with those before the capture"
    assert len(capture.slices("major page fault")) >= len(mine)


@test
def disk_requests_belong_to_their_thread(case: Case) -> None:
    capture = Capture(case)
    io = [e for e in capture.of(IO) if e.tid == capture.pid and e.body.bytes]
    for direction, name in ((READ, "read"), (WRITE, "written")):
        found = sum(e.body.bytes for e in io if e.operation == direction)
        own = capture.fact(f"{name}_after") - capture.fact(f"{name}_before")
        # The job's own reads of /proc between the two looks read no disk.
        assert near(found, own, 0.01, 64 << 10), f"{name} {found} bytes, /proc/self/io says {own}"
    assert all(0 < e.dur < 60_000_000_000 and e.ret == 0 for e in io), [(e.dur, e.ret) for e in io][:5]
    direct = [e for e in io if e.body.call == PREAD64 + 1]
    assert sum(e.body.bytes for e in direct) == capture.fact("direct_bytes"), "requests made in pread64"
    device = os.stat(case.dir).st_dev
    majors = {e.body.device >> 20 for e in io}
    assert os.major(device) in majors, (majors, device)
    row = capture.thread()
    assert int(row["Disk Read(B)"]) == sum(e.body.bytes for e in io if e.operation == READ), row


@test
def socket_bytes_are_counted(case: Case) -> None:
    """Half of them by calls that are made for sockets only, half by read and write."""
    for threshold in ("10us", "0"):
        row = Capture(case, "--osrt-threshold", threshold).thread()
        case.path("davinci7").unlink()
        assert int(row["Socket Received(B)"]) == int(row["Socket Sent(B)"]) == 500_000, row


@test
def arguments_are_shown(case: Case) -> None:
    capture = Capture(case, "--osrt-threshold", "0")
    paths = {s["args"]["path"] for s in capture.slices("openat")}
    assert {str(case.path("data")), str(case.path("davinci7"))} <= paths, paths
    requested = [s["args"] for s in capture.slices("ioctl") if s["args"]["fd"] == capture.fact("device_fd")
             and s["args"]["cmd"] == "0x5a03"]
    assert len(requested) == 1 and requested[0]["npu"] is True and requested[0]["error"] == "ENOTTY", requested
    assert [s["args"]["timeout_us"] for s in capture.slices("poll")] == [30000], capture.slices("poll")
    assert [s["args"]["timeout_us"] for s in capture.slices("epoll_wait")] == [40000], capture.slices("epoll_wait")
    writes = [s["args"] for s in capture.slices("write") if s["args"].get("bytes") == 1 << 20]
    assert len(writes) == 8, writes
    assert {s["args"]["length"] for s in capture.slices("mmap")} >= {8 << 20, 64 * 4096}
    naps = [s["args"]["timeout_us"] for s in capture.slices("clock_nanosleep") + capture.slices("nanosleep")]
    assert naps.count(20000) == capture.fact("rounds"), naps


if __name__ == "__main__":
    sys.exit(main())
