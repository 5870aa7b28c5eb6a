#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that make as much work as they can for `npuscope record` (jobs/hostile_work_job.c) do not keep it
from a job beside them. Witnesses: the CPU time and memory that the kernel counts for npuscope, and the other
job's own number of calls. No wall clock."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import struct
import time
from pathlib import Path
from typing import Any, Sequence, Union

from harness import (DONE, PARTIAL, SOAK, Case, Result, Running, Session, build_library, catalogue, environment, main,
                     need_job, need_root, pid_list, test, wait_until)
from records import API

CALLS = 3000
SECONDS = 400
NOBODY = 65534

# user/core/work_budget.h
# s of CPU time that one process can make us spend at once, and part of a CPU in the long run
ONCE, SHARE = 2.0, 0.10
ALL_ONCE, ALL_SHARE = 8.0, 0.33  # ... all of them
LISTED_BORN = 16384

Arg = Union[str, Path, int]


def attack(function: Any) -> Any:
    """Decorator: a test that `make attack` runs alone: it takes long,
    and another one here has the same limit."""
    return test(function, seconds=SECONDS) if os.environ.get("NPUSCOPE_ATTACK") else function


# ---- a capture that is measured ----------------------------------------------------------------------------

class Cost:
    """What npuscope took from its start to its end."""

    def __init__(self, cpu: float, wall: float, peak_mb: float) -> None:
        self.cpu, self.wall, self.peak_mb = cpu, wall, peak_mb


def finish(run: Running, began: float, seconds: float = 120) -> tuple[Result, Cost]:
    """End a capture with Ctrl-C."""
    # Not the value of wait4(2): that has the memory of this program in it, from before it executed npuscope.
    peak = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{run.pid}/status").read_text(), re.M)
    assert peak, "no VmHWM"
    run.signal(signal.SIGINT)
    usage: list[Any] = []

    def ended() -> bool:
        pid, status, used = os.wait4(run.pid, os.WNOHANG)
        if pid:
            run.process.returncode = os.waitstatus_to_exitcode(status)
            usage.append(used)
        return bool(pid)
    wait_until(ended, f"the end of the capture: {run.err[-1000:]}", seconds)
    used = usage[0]
    return run.result(), Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, int(peak.group(1)) / 1024)


class Innocent:
    """A job with a library of CANN's that counts its calls, and another one that it has not loaded yet."""

    def __init__(self, case: Case) -> None:
        self.library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("innocent"))
        self.later = build_library(case, "acl_rt_lib.c", "libascendcl.so", case.path("later"))
        for folder in (self.library.parent, self.later.parent):
            folder.chmod(0o755)
        self.job = case.start([need_job("loader_job")], env=environment(libs=[self.library.parent, self.later.parent]))
        self.job.wait_for("^ready")
        self.command(f"load {self.library}", "loaded")
        self.calls = 0

    def command(self, line: str, answer: str) -> None:
        answers = len(re.findall("^" + answer, self.job.out, re.M))
        self.job.send(line)
        wait_until(lambda: len(re.findall("^" + answer, self.job.out, re.M)) > answers, f"{answer} of the job", 120)

    def call(self) -> None:
        self.command(f"call aclrtSynchronizeDevice {CALLS}", "called aclrtSynchronizeDevice")
        self.calls += CALLS

    def check(self, session: Session) -> None:
        """It is recorded whole."""
        found = sum(e.probe == catalogue()["aclrtSynchronizeDevice"][0] for e in session.of(API, self.job.pid))
        assert found == self.calls, f"{found} of {self.calls} calls"
        process = session.process(self.job.pid)
        assert process["left_out"] == [], process["left_out"]
        assert "loader_job" in process["cmdline"][0]
        assert any(m["path"] == str(self.library) for m in process["maps"]), process["maps"]


_alone: list[Cost] = []


def alone(case: Case) -> Cost:
    """What a capture of the innocent job takes by itself, on this machine."""
    if not _alone:
        innocent = Innocent(case)
        began = time.monotonic()
        run = case.record("-p", innocent.job.pid, "-o", case.dir, "--export", "none")
        innocent.call()
        result, cost = finish(run, began)
        innocent.check(result.expect(DONE, PARTIAL).session)
        _alone.append(cost)
        innocent.job.kill()
    return _alone[0]


def hostile(case: Case, *order: Arg, **kwargs: Any) -> Running:
    """Start hostile_work_job, as a user without rights."""
    program = case.open_path(f"hostile{len(case.running)}", folder=True) / "hostile_work_job"
    shutil.copy(need_job("hostile_work_job"), program)
    program.chmod(0o755)
    program.parent.chmod(0o755)
    job = case.start([program, *order], preexec_fn=lambda: os.setresuid(NOBODY, NOBODY, NOBODY), **kwargs)
    job.wait_for(r"^ready \d+$")
    return job


# of a capture of processes that use all CPUs: what they can make us do at once is done in the first of them
BRIEF, LONG = (6, 10) if SOAK or os.environ.get("NPUSCOPE_ATTACK") else (2, 4)


def capture(case: Case, jobs: Sequence[Running], *options: Arg, seconds: float = BRIEF,
            **kwargs: Any) -> tuple[Session, Result, Cost]:
    """Record JOBS and an innocent one, which must be there whole. What it may cost is in docs/security.md."""
    need_root()
    usual = alone(case)
    innocent = Innocent(case)
    began = time.monotonic()
    pids = pid_list([innocent.job.pid, *(j.pid for j in jobs)])
    run = case.record("-p", pids, "-o", case.dir, "--export", "none", *options, wait=False, **kwargs)
    run.wait_for(r"^npuscope: recording ", err=True, seconds=240)
    innocent.call()
    time.sleep(seconds)
    innocent.command(f"load {innocent.later}", "loaded")  # it is probed already: it is on its search path
    innocent.call()
    result, cost = finish(run, began)
    session = result.expect(DONE, PARTIAL).session
    innocent.check(session)
    allowed = min(len(jobs) * (ONCE + SHARE * cost.wall), ALL_ONCE + ALL_SHARE * cost.wall)
    assert cost.cpu < 3 * usual.cpu + 2 + allowed, \
        f"{cost.cpu:.1f} s of CPU time in {cost.wall:.1f} s, {usual.cpu:.1f} s alone: {result}"
    assert cost.peak_mb < usual.peak_mb + 400, f"{cost.peak_mb:.0f} MB, {usual.peak_mb:.0f} MB alone"
    return session, result, cost


def left_out(session: Session, result: Result, job: Running, *kinds: str) -> None:
    """All of KINDS, and a line for each of them, once."""
    have = session.process(job.pid)["left_out"]
    assert set(kinds) <= set(have), f"{have} were left out, not {kinds}: {result}"
    lines = [line for line in result.complaints if line.startswith(f"npuscope: pid {job.pid}: ")]
    assert len(lines) == len(set(lines)) == len(have), lines
    assert result.status == PARTIAL, result


# ---- paths -------------------------------------------------------------------------------------------------

@test(seconds=SECONDS)
def paths_of_many_directories(case: Case) -> None:
    """LD_LIBRARY_PATH as long as the kernel allows, of ten processes, which map code all the time."""
    jobs = [hostile(case, "search", 40000, "remap") for _ in range(10)]
    session, result, _ = capture(case, jobs)
    for job in jobs:
        left_out(session, result, job, "directories")


@attack
def paths_through_many_links(case: Case) -> None:
    """Each directory is at the end of 39 symbolic links of 4000 bytes each."""
    folder = case.open_path("links", folder=True)
    for i in range(39):
        (folder / f"l{i}").symlink_to("./" * 1990 + f"l{i + 1}")
    (folder / "l39").mkdir()
    folder.chmod(0o755)
    job = hostile(case, "links", folder / "l0", 2000, "remap")
    session, result, _ = capture(case, [job])
    left_out(session, result, job, "looks")


# ---- ELF files ---------------------------------------------------------------------------------------------

def write_elf(path: Path, names: Sequence[str], *, symbols: int = 0, size: int = 16, apart: int = 0) -> None:
    """A library that exports NAMES, one after the other APART bytes apart, or SYMBOLS symbols of the first
    name. Each function of SIZE bytes can be probed behind its first instruction, if no branch leads there:
    endbr64, push %rbp, nops; bti, nops."""
    text, offsets = b"\0", []
    for name in names:
        offsets.append(len(text))
        text += name.encode() + b"\0"
    count = symbols or len(names)
    table = 4096
    strings = (table + 24 * count + 4095) // 4096 * 4096
    code = (strings + len(text) + 4095) // 4096 * 4096
    sections = (code + size + apart * count + 4095) // 4096 * 4096
    machine = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    with open(path, "wb") as f:
        f.write(b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) +
                struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, sections, 0, 64, 56, 1, 64, 3, 0) +
                struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, sections, sections, 4096))
        f.seek(table)
        if symbols:
            block = struct.pack("<IBBHQQ", offsets[0], 0x12, 0, 1, code, size) * 4096
            for at in range(0, symbols, 4096):
                f.write(block[:24 * (symbols - at)])
        else:
            for i, offset in enumerate(offsets):
                f.write(struct.pack("<IBBHQQ", offset, 0x12, 0, 1, code + apart * i, size))
        f.seek(strings)
        f.write(text)
        f.seek(code)
        f.write((b"\xf3\x0f\x1e\xfa\x55" + b"\x90" * 59 if machine == 62 else
                 bytes.fromhex("5f2403d5") + bytes.fromhex("1f2003d5") * 15) * ((size + apart * count) // 64))
        f.seek(sections)
        f.write(bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 11, 2, table, table, 24 * count, 2, 1, 8, 24) +
                struct.pack("<IIQQQQIIQQ", 0, 3, 2, strings, strings, len(text), 0, 0, 1, 0))
    path.chmod(0o644)


@test(seconds=SECONDS)
def libraries_of_15_million_symbols(case: Case) -> None:
    """One such file under the names of all libraries of CANN's."""
    folder = case.open_path("huge", folder=True)
    write_elf(folder / "libacl_rt.so", ["aclrtSetDevice"], symbols=15_000_000)
    for name in ("libascendcl.so", "libruntime.so", "libhccl.so", "libnnopbase.so", "libopapi.so", "libascend_hal.so"):
        os.link(folder / "libacl_rt.so", folder / name)
    folder.chmod(0o755)
    job = hostile(case, "map", *folder.iterdir(), "remap")
    session, result, _ = capture(case, [job], "--record-shapes", "--step-marker", "step_marker")
    left_out(session, result, job, "symbols")


@attack
def libraries_that_load_slowly(case: Case) -> None:
    """As many symbols as are read, in files that nobody has seen before: each takes as long as a file can."""
    folder = case.open_path("long", folder=True)
    for i in range(40):
        (folder / str(i)).mkdir()
        (folder / str(i)).chmod(0o755)
        write_elf(folder / str(i) / "libascend_hal.so", ["drvGetDevNum"], symbols=2_000_000)
    folder.chmod(0o755)
    job = hostile(case, "map", *(folder / str(i) / "libascend_hal.so" for i in range(40)), "remap")
    session, _, _ = capture(case, [job], "--step-marker", "step_marker", seconds=LONG)
    files = [lib["path"] for lib in session.json["libraries"] if lib["path"].startswith(str(folder))]
    assert len(files) == len(set(files)), files


@attack
def operators_with_large_bodies(case: Case) -> None:
    """Each function is as long as what is looked through for branches."""
    folder = case.open_path("operators", folder=True)
    names = [f"aclnnX{i}{phase}" for i in range(7000) for phase in ("", "GetWorkspaceSize")]
    write_elf(folder / "libnnopbase.so", ["NnopbaseOther"])
    write_elf(folder / "libopapi.so", names, size=65535, apart=64)
    folder.chmod(0o755)
    job = hostile(case, "map", folder / "libnnopbase.so", folder / "libopapi.so", "remap")
    capture(case, [job], "--record-shapes", seconds=LONG)


@attack
def many_libraries(case: Case) -> None:
    """Thousands of files under one of CANN's names: they do not use up
    the probes and descriptors of others."""
    folder = case.open_path("many", folder=True)
    paths = [folder / str(i) / "libacl_rt.so" for i in range(2000)]
    for path in paths:
        path.parent.mkdir()
        path.parent.chmod(0o755)
        write_elf(path, ["aclrtSetDevice", "aclrtMalloc"], apart=64)
    folder.chmod(0o755)
    job = hostile(case, "map", *paths, "remap")
    session, result, _ = capture(case, [job])
    left_out(session, result, job, "files")
    assert sum(lib["path"].startswith(str(folder)) for lib in session.json["libraries"]) <= 256


@test(seconds=SECONDS)
def a_library_that_changes_while_it_is_read(case: Case) -> None:
    """It is cut and grows again, all the time: reading it must not kill npuscope."""
    folder = case.open_path("changing", folder=True)
    path = folder / "libruntime.so"
    write_elf(path, ["rtSetDevice"], symbols=1_500_000)
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o600)
    folder.chmod(0o755)
    job = hostile(case, "change", path, "remap")
    capture(case, [job], "--step-marker", "step_marker")
    assert job.alive()


# ---- mappings, processes, threads --------------------------------------------------------------------------

@test(seconds=SECONDS)
def as_many_mappings_as_there_can_be(case: Case) -> None:
    """65,000 mappings of a file with a path of 4000 bytes, in each of three
    processes that map more all the time."""
    folder = case.open_path("pages", folder=True)
    os.chmod(folder, 0o755)
    deep = str(folder)
    here = os.open(folder, os.O_DIRECTORY)
    for _ in range(15):
        name = "d" * 250
        os.mkdir(name, 0o755, dir_fd=here)
        there = os.open(name, os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = there
        deep += "/" + name
    with open(os.open("page", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=here), "wb") as f:
        f.write(bytes(8192))
    os.close(here)
    jobs = [hostile(case, "pages", f"{deep}/page", 65000, "remap") for _ in range(3)]
    session, result, _ = capture(case, jobs, seconds=LONG)
    for job in jobs:
        left_out(session, result, job, "mappings")
        assert len(session.process(job.pid)["maps"]) < 10000


def descend(pid: int) -> list[int]:
    """PID and all that it has born, which has one thread each."""
    found = [pid]
    for one in found:
        try:
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:
            pass
    return found


@test(seconds=SECONDS)
def a_deep_tree(case: Case) -> None:
    """1,500 processes, each the child of the one before, and 512 descriptors for npuscope: all are found."""
    job = hostile(case, "chain", 1500)
    wait_until(lambda: len(descend(job.pid)) > 1500, "the processes", 240)
    session, _, _ = capture(case, [job], seconds=2,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512)))
    missing = set(descend(job.pid)) - {p["pid"] for p in session.json["processes"]}
    assert not missing, f"{len(missing)} processes are missing"


@test(seconds=SECONDS)
def children_without_end(case: Case) -> None:
    """They live for a moment; several thousands of them."""
    jobs = [hostile(case, "born") for _ in range(2)]
    session, _, _ = capture(case, jobs)
    assert len(session.json["processes"]) < 2 * LISTED_BORN + 10


@attack
def programs_without_end(case: Case) -> None:
    """One that executes itself all the time, with an environment of 1.5 MB."""
    job = hostile(case, "executes", 1_500_000)
    capture(case, [job])


@attack
def thousands_of_threads(case: Case) -> None:
    job = hostile(case, "threads", 4000, "remap")
    capture(case, [job])


if __name__ == "__main__":
    raise SystemExit(main())
