#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Children of the job that exit before npuscope inspects them are in the session, with their own
names. Witness: the job, which prints what it started. npuscope is stopped meanwhile, which stands
for a machine on which it gets no CPU."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional

from harness import DONE, PARTIAL, Case, Result, Running, Session, main, need, need_job, need_root, test, wait_until
from records import EXEC, EXIT, FORK, PROC, Event

OPTIONS = ("--task-source", "host", "--export", "none")
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


class Children:
    """The job, and npuscope that watches it."""

    def __init__(self, case: Case, *options: str) -> None:
        need_root()
        self.case = case
        self.job = case.start([need_job("children_job")])
        self.job.wait_for("^ready")
        self.programs = case.path("programs")
        self.programs.mkdir()
        for i in range(300):
            self.programs.joinpath(f"program{i}").symlink_to(need_job("children_job"))
        self.run = case.record("-p", self.job.pid, "-o", case.path("out"), *OPTIONS, *options)
        self.born: dict[int, tuple[str, int]] = {}

    def pause(self) -> None:
        self.run.signal(signal.SIGSTOP)
        wait_until(lambda: self.state(self.run.pid) == "T", "npuscope to stop")

    def resume(self) -> None:
        self.run.signal(signal.SIGCONT)

    @staticmethod
    def state(pid: int) -> str:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def start(self, command: str) -> dict[int, tuple[str, int]]:
        """pid -> (name, status as wait(2) has it)"""
        at, before = len(self.job.out), self.job.out.count("done")
        self.job.send(command)
        wait_until(lambda: self.job.out.count("done") > before, f"{command} of the job")
        new = {int(pid): (name, int(status)) for pid, name, status in
               re.findall(r"^child (\d+) (\w+) (\d+)$", self.job.out[at:], re.M)}
        self.born.update(new)
        return new

    def end(self, *statuses: int) -> Result:
        self.job.send("quit")
        assert self.job.wait() == 0
        self.result = self.run.result().expect(*statuses)
        self.session: Session = self.result.session
        return self.result

    def listed(self) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        for process in self.session.json["processes"]:
            assert process["pid"] not in found, f"pid {process['pid']} is listed twice"
            found[process["pid"]] = process
        return found

    def check(self) -> None:
        """Each child is there, once, as it was; and nobody else."""
        listed = self.listed()
        assert set(listed) == {self.job.pid, *self.born}, sorted(set(listed) ^ {self.job.pid, *self.born})
        began = int(self.session.json["capture"]["begin_monotonic"])
        for pid, (name, status) in self.born.items():
            process = listed[pid]
            assert (process["comm"], process["exit_code"], process["ppid"]) == (name, status, self.job.pid), process
            assert began <= process["start_monotonic"] <= process["exit_monotonic"], process
        assert self.session.dropped() == 0, self.session.json["drops"]


@test
def forked_while_stopped(case: Case) -> None:
    """They executed no program: their command line is the job's, and nothing is missing."""
    children = Children(case)
    children.pause()
    children.start("fork 200")
    children.resume()
    result = children.end(DONE, PARTIAL)
    children.check()
    listed = children.listed()
    assert all(listed[pid]["cmdline"] == listed[children.job.pid]["cmdline"] for pid in children.born)
    assert all(listed[pid]["known_from"] == "parent" for pid in children.born)
    assert children.session.json["unread_processes"] == 0
    assert "ended before npuscope looked" not in result.err, result.err


@test
def executed_while_stopped(case: Case) -> None:
    """Names of programs come from the kernel; that command lines and
    libraries are missing is counted and reported."""
    children = Children(case)
    children.pause()
    children.start(f"exec 200 {children.programs}")
    children.resume()
    result = children.end(PARTIAL)
    children.check()
    listed = children.listed()
    assert all(listed[pid]["known_from"] == "kernel" and not listed[pid]["cmdline"] for pid in children.born)
    assert children.session.json["unread_processes"] == 200
    (line,) = [text for text in result.complaints if "ended before npuscope looked" in text]
    assert line.startswith("npuscope: 200 processes") and "program0" in line, line


@test
def executed_in_a_capture_of_the_host(case: Case) -> None:
    """Nothing of CANN was to be recorded: with their names, which the kernel reports, nothing is missing."""
    children = Children(case, "--level", "none", "--host-sys", "osrt")
    children.pause()
    children.start(f"exec 200 {children.programs}")
    children.resume()
    result = children.end(DONE)
    children.check()
    assert children.session.json["unread_processes"] == 200
    assert "ended before npuscope looked" not in result.err, result.err


@test
def more_than_wait(case: Case) -> None:
    """More births, programs and deaths at once than other notices can wait."""
    children = Children(case)
    children.pause()
    for _ in range(10):
        children.start(f"exec 300 {children.programs}")
    children.resume()
    children.end(PARTIAL)
    children.check()


@test
def births_are_lost(case: Case) -> None:
    """The rings are full: what they lost is counted and reported, and a child that lives is
    found without the record of its birth."""
    children = Children(case, "--ring-size", "64K", "--osrt-threshold", "0")
    children.pause()
    for _ in range(4):
        children.start(f"exec 300 {children.programs}")
    children.job.send("stay")
    companion = int(children.job.wait_for(r"^stays (\d+)$").group(1))
    children.resume()
    out = case.path("out")
    wait_until(lambda: any(p["pid"] == companion for s in out.glob("npuscope_*") for p in Session(s).json["processes"]),
               "the companion in the session")
    result = children.end(PARTIAL)
    assert children.session.json["drops"]["ring"]["proc"] > 0, children.session.json["drops"]
    assert "records were lost" in result.err, result.err
    assert children.session.process(companion)["comm"] == "companion", children.session.process(companion)
    listed = children.listed()
    unrelated = set(listed) - set(children.born) - {children.job.pid, companion}
    assert not unrelated, unrelated
    named = {listed[pid]["comm"] for pid in listed if pid in children.born
             and listed[pid]["comm"] == children.born[pid][0]}
    assert named, "what the rings had room for"


@test
def at_any_time(case: Case) -> None:
    """Not stopped: npuscope looks at each in the middle of its short life, or not at all."""
    children = Children(case)
    children.start(f"exec 200 {children.programs}")
    children.start("fork 200")
    children.end(DONE, PARTIAL)
    children.check()
    for pid, process in children.listed().items():
        if pid in children.born and children.born[pid][0].startswith("program"):
            name = f"{children.programs}/{children.born[pid][0]}"
            assert process["cmdline"] == ([] if process["known_from"] == "kernel" else [name, "child"]), process
        elif pid in children.born:
            assert process["cmdline"] == children.listed()[children.job.pid]["cmdline"], process


@test
def unread_at_the_end(case: Case) -> None:
    """What waits when the capture ends is recorded, too."""
    children = Children(case)
    children.pause()
    children.start(f"exec 100 {children.programs}")
    children.run.signal(signal.SIGINT)
    children.resume()
    result = children.run.result().expect(PARTIAL)
    children.job.send("quit")
    children.session = result.session
    children.check()


@test
def records_carry_names(case: Case) -> None:
    """In the records themselves, as the kernel reported them."""
    children = Children(case)
    children.start(f"exec 20 {children.programs}")
    children.end(DONE, PARTIAL)

    def comm(event: Event) -> str:
        return event.body.comm.split(b"\0")[0].decode()

    for pid, (name, _status) in children.born.items():
        events = [e for e in children.session.of(PROC) if (e.body.child if e.what == FORK else e.pid) == pid]
        assert [(e.what, comm(e)) for e in events] == [(FORK, "children_job"), (EXEC, name), (EXIT, name)], \
            [(e.what, comm(e)) for e in events]
        assert len({e.born for e in events}) == 1 and events[0].born, "one process, one time of birth"
        assert all(e.parent == children.job.pid for e in events)


def start_with_pid(case: Case, pid: int, argv: list[str]) -> Optional[Running]:
    """A process of that number; others of this machine may be faster."""
    for _ in range(200):
        LAST_PID.write_text(str(pid - 1))
        run = case.start(argv, stdin=subprocess.DEVNULL)
        if run.pid == pid:
            return run
        run.kill()
    return None


@test
def pid_comes_again(case: Case) -> None:
    """A foreign process has the pid of a child when npuscope reads it: the child keeps
    its name, the other is not of the job."""
    need(LAST_PID.exists() and os.access(LAST_PID, os.W_OK), "a kernel with checkpoint/restore: ns_last_pid")
    children = Children(case)
    children.pause()
    born = children.start(f"exec 1 {children.programs}")
    (pid,) = born
    time.sleep(0.05)  # the time of birth that /proc has is in steps of 10 ms
    foreign = start_with_pid(case, pid, ["sleep", "300"])
    need(foreign is not None, "a machine on which nobody else starts processes all the time")
    children.resume()
    children.end(PARTIAL)  # with the job, not with the foreign process
    children.check()
    assert foreign and foreign.alive()


if __name__ == "__main__":
    sys.exit(main())
