#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions that are probed behind their start are counted there as often
as at the start, with the same arguments.

Witness: the kernel's own probes, at the start and at both points of every function of a program
and a library that a job runs through; hits and sums of the six argument registers and of the
stack pointer are held against each other."""

from __future__ import annotations

import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import DONE, PARTIAL, ROOT, Case, Result, Running, Skip, build_library, main, need_job, need_root, test
from records import API

SURVEY = ROOT / "build/tests/probe_survey"
WHY = "the stack pointer moves before the first instruction that is emulated, and its return is probed"
KERNEL = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
UNFINISHED = 0x80
VALUES = 8  # hits, six arguments, stack pointer

# Waits until the probes are in, then walks through much of the interpreter and of SQLite.
WORK = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
import json, re, sqlite3, decimal, collections, hashlib
base = sqlite3.connect(":memory:")
base.execute("create table t (a integer primary key, b text, c real)")
base.executemany("insert into t values (?, ?, ?)", [(i, f"row {i}", i / 7) for i in range(200)])
base.execute("create index i on t (b)")
print(base.execute("select count(*), sum(c), max(upper(b)) from t where b like 'row 1%' and a > 3").fetchall())
for text in ("[1, 2.5, {\\"a\\": null}]", "{}"):
    json.dumps(json.loads(text), indent=1)
print(re.sub(r"(\\w+) (\\d+)", r"\\2", "row 12 row 13"), sorted({3, 1, 2}), int("123" * 9) ** 3 % 1009)
try:
    {}["missing"]
except KeyError:
    pass
class C(collections.OrderedDict):
    pass
C(a=1).popitem(); "%s %r %5.2f" % ("a", b"b", 3.14); [i * i for i in range(99)]; "ä".encode("utf-16").decode("utf-16")
"""


def mapped(pid: int, word: str) -> str:
    """The file of a process that has a word in its name."""
    for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        if word in line.split("/")[-1]:
            return line.split(maxsplit=5)[5]
    return ""


def held_against(interpreter: str, library: str) -> None:
    """Probes one file of a run."""
    need_root()
    if platform.machine() != "x86_64":
        raise Skip("the survey's program reads registers of x86-64")
    if KERNEL < (6, 6):
        raise Skip("this kernel has no links of many uprobes")
    if not SURVEY.exists():
        raise Skip("build/tests/probe_survey is not built: make witnesses")
    script = WORK if not library else "import sqlite3\n" + WORK
    job = subprocess.Popen([interpreter, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout and job.stdout.readline() == "ready\n"
        path = mapped(job.pid, library) if library else str(Path(interpreter).resolve())
        if not path:
            raise Skip(f"the interpreter has no {library}")
        done = subprocess.run([str(SURVEY), path, str(job.pid)], capture_output=True, text=True, check=False,
                              timeout=140)
        assert not done.returncode, done.stderr
        assert not job.wait(10), "the job failed"
    finally:
        job.kill()
        job.wait()
    functions = hits = 0
    for line in done.stdout.splitlines():
        name, call, entry, *rest = line.split("\t")
        numbers = list(map(int, rest))
        start, as_call, as_entry = (numbers[i * VALUES:(i + 1) * VALUES] for i in range(3))
        functions += 1
        hits += start[0]
        assert as_entry[:-1] == start[:-1], f"{name}+{entry}: {as_entry}, at the start {start}"
        assert call == "0" or as_call == start, f"{name}+{call}: {as_call}, at the start {start}"
    print(f"  {path}: {functions} functions that were moved and called, {hits} calls")
    assert functions >= 30 and hits > functions, f"{functions} functions, {hits} calls"


@test
def points_of_the_interpreter(_case: Case) -> None:
    """Hundreds of functions of the program."""
    if not shutil.which("/usr/bin/python3"):
        raise Skip("no /usr/bin/python3")
    held_against("/usr/bin/python3", "")


@test
def points_of_sqlite(_case: Case) -> None:
    """A library."""
    held_against("/usr/bin/python3", "libsqlite3")


def polled(case: Case, *options: str) -> tuple[dict[str, dict[str, Any]], Result]:
    """A job that polls is captured until it gets the order, or for a
    while; the probes of the session, by name."""
    library = build_library(case, "polled_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("polls"), library])
    job.wait_for(r"^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--host-sys", "none", *options)
    if "-d" not in options:
        run.wait_for(r"aclrtQueryEventStatus of .* is not recorded any more: the job polls it", err=True)
        run.signal(signal.SIGINT)
    result = run.result().expect(DONE, PARTIAL)
    return {probe["symbol"]: probe for probe in result.session.json["probes"]}, result


@test
def polled_functions_are_detached(case: Case) -> None:
    """Single-stepped, and entered thousands of times a second; another one, which nobody polls, stays."""
    probes, _ = polled(case)
    assert probes["aclrtQueryEventStatus"]["class"] == probes["aclrtSetDevice"]["class"] == "single-stepped", probes
    assert probes["aclrtQueryEventStatus"]["taken_out_monotonic"] > 0, probes
    assert "taken_out_monotonic" not in probes["aclrtSetDevice"], probes


@test
def polled_functions_can_be_kept(case: Case) -> None:
    """--keep-polled."""
    probes, result = polled(case, "--keep-polled", "-d", "4s")
    assert "taken_out_monotonic" not in probes["aclrtQueryEventStatus"], probes
    assert "is not recorded any more" not in result.err, result.err


DETACHED = r"aclrtQueryEventStatus of .* is not recorded any more: the job polls it"


def detach(case: Case, *job_args: Any) -> tuple[Running, Running]:
    """A capture of a job that has a signal to wait for."""
    job = case.start([need_job("polls"), build_library(case, "polled_lib.c", "libacl_rt.so", case.path("lib")),
                      *job_args])
    job.wait_for(r"^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--host-sys", "none", "--verbose")
    return job, run


@test
def launches_after_a_call_that_outlasts_its_probe(case: Case) -> None:
    """The thread is in a polled function while that is taken out: what it launches afterwards is recorded."""
    job, run = detach(case, "inside", build_library(case, "polled_lib.c", "libruntime.so", case.path("lib")))
    job.signal(signal.SIGUSR1)
    run.wait_for(DETACHED, err=True)
    time.sleep(3)  # its links go with the next turn
    job.signal(signal.SIGUSR2)
    job.wait_for(r"^launched")
    run.signal(signal.SIGINT)
    session = run.result().expect(DONE, PARTIAL).session
    launches = {probe["symbol"]: probe["hits"] for probe in session.json["probes"]}["rtKernelLaunch"]
    assert launches == 100, launches
    open_calls = [e for e in session.of(API, job.pid) if e.flags & UNFINISHED]
    assert not open_calls, open_calls


@test
def the_same_function_of_a_file_that_comes_later(case: Case) -> None:
    """It is not polled there, so that it stays."""
    other = build_library(case, "polled_lib.c", "libacl_rt.so", case.path("other"))
    job, run = detach(case, "later", other)
    run.wait_for(DETACHED, err=True)
    job.signal(signal.SIGUSR1)
    run.wait_for(r"other/libacl_rt.so: 2 probes", err=True)
    time.sleep(4)  # turns
    run.signal(signal.SIGINT)
    session = run.result().expect(DONE, PARTIAL).session
    detached = {Path(probe["library"]).parent.name: "taken_out_monotonic" in probe
             for probe in session.json["probes"] if probe["symbol"] == "aclrtQueryEventStatus"}
    assert detached == {"lib": True, "other": False}, detached


@test
def doctor_lists_what_is_single_stepped(case: Case) -> None:
    """Of a library, and of a process that has it mapped; the witness is the source of the library."""
    library = build_library(case, "polled_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("polls"), library])
    job.wait_for(r"^ready")
    for target in (library, job.pid):
        rows = [line.split("\t") for line in case.npuscope("doctor", "--probes", target).expect(DONE).out.splitlines()]
        assert rows[0] == ["symbol", "library", "level", "how", "bytes from its start", "class", "why"], rows
        found = {row[0]: row[1:] for row in rows[1:]}
        assert sorted(found) == ["aclrtQueryEventStatus", "aclrtSetDevice"], rows
        for symbol, level in (("aclrtQueryEventStatus", "1"), ("aclrtSetDevice", "0")):
            assert found[symbol][:5] == [str(library), level, "call", "0", "single-stepped"], rows
            assert found[symbol][5] == WHY, rows
    for wrong, status in ((case.path("nothing.so"), 1), (1 << 30, 1)):
        assert len(case.npuscope("doctor", "--probes", wrong).expect(status).complaints) == 1


if __name__ == "__main__":
    sys.exit(main())
