#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job that is traced must not notice, and nothing may stay behind. Witnesses: bpftool, tracefs, the job's
memory against its files, and a run of the job without npuscope."""

import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from harness import (DONE, PARTIAL, SIM, Case, Running, Session, code_at, cpu_ns, kernel_leftovers, kernel_objects,
                     main, need_program, need_root, pid_list, ranks_of, test, threads_of, uprobe_events,
                     wait_for_events, wait_until)
from records import API


def result_line(job: Running) -> str:
    found = re.search(r"^result .*$", job.out, re.M)
    assert found, f"the job printed no result: {job.out} {job.err}"
    return found.group(0)


def same_steps(case: Case, job: Running) -> Running:
    """End the job; one that makes as many steps with nobody near it comes to the same result. That one."""
    ranks = len(ranks_of(job))
    job.signal(signal.SIGTERM)
    assert job.wait(90) == 0, job.err
    steps = re.search(r" steps=(\d+) ", result_line(job))
    assert steps, result_line(job)
    untouched = case.sim_job("--ranks", ranks, "--steps", steps.group(1), "--slow-every", 0, wait=False)
    assert untouched.wait(140) == 0, untouched.err
    assert result_line(job) == result_line(untouched), "the job computed something else"
    return untouched


def text_bytes(pids: list[int], probes: list[dict[str, Any]]) -> dict[tuple[int, str, int], tuple[bytes, bytes]]:
    """What the processes would execute at every probed offset, and what their files hold there."""
    found = {}
    for pid in pids:
        for probe in probes:
            memory = code_at(pid, probe["library"], probe["offset"], 8)
            if memory is None:
                continue
            with open(probe["library"], "rb") as file:
                file.seek(probe["offset"])
                found[pid, probe["symbol"], probe["offset"]] = memory, file.read(8)
    return found


def calls(session: Session, pid: int) -> int:
    return len(session.of(API, pid))


@test
def attach_detach_attach(case: Case) -> None:
    """Twice onto the same running job; afterwards no trace of it, and
    the job computes what it always does."""
    need_root()
    need_program("bpftool", "bpftool")
    # Files of its own: probes are set in files, and other tests' captures set theirs in the shared ones.
    installed = Path(shutil.copytree(SIM, case.path("Ascend"), symlinks=True))
    # until it gets the order to end, however long all this takes
    job = case.sim_job("--ranks", 2, "--slow-every", 0, installed=installed)
    pids = ranks_of(job)
    before = {pid: set(threads_of(pid).values()) for pid in pids}

    sessions = []
    for number in range(2):
        run = case.record("-p", pid_list(pids), "-o", case.path(f"out{number}"), "--export", "none")
        wanted = kernel_objects_of(run)
        assert wanted, "bpftool sees nothing of a running capture: this test would prove nothing"
        live = text_bytes(pids, Session(next(case.path(f"out{number}").glob("npuscope_*"))).json["probes"])
        changed = sum(memory != file for memory, file in live.values())
        assert changed > 20, f"only {changed} probed places changed while attached: this test would prove nothing"
        wait_for_events(case.path(f"out{number}"), 4000)
        run.signal(signal.SIGINT)
        session = run.result().expect(DONE, PARTIAL).session
        sessions.append(session)
        left = kernel_leftovers()
        assert not left, f"capture {number}: left in the kernel: {left}"
        events = uprobe_events()
        assert events is None or "npuscope" not in events and "nps_" not in events, events
        after = text_bytes(pids, session.json["probes"])
        assert len(after) >= changed
        assert all(memory == file for memory, file in after.values()), "the job's code is not restored"
        for pid in pids:
            assert set(threads_of(pid).values()) == before[pid], "threads came or went"
            assert calls(session, pid) > 100, f"capture {number} saw {calls(session, pid)} calls of {pid}"
    assert sessions[0].path != sessions[1].path

    untouched = same_steps(case, job)
    # Process ids and measured times differ from run to run.
    for of in (lambda j: j.out, lambda j: j.err):
        assert steady(of(job)) == steady(of(untouched)), f"{of(job)} instead of {of(untouched)}"


def steady(text: str) -> str:
    return re.sub(r"^ready .*$|\d+\.\d+ ms", "", text, flags=re.M)


def kernel_objects_of(run: Running) -> list[str]:
    """What that process holds, by bpftool."""
    import harness
    programs, _maps = harness._own_names()
    return [p["name"] for p in harness._bpftool("prog", "show") if p.get("name") in programs and
            any(h["pid"] == run.pid for h in p.get("pids", [{"pid": run.pid}]))]


@test
def helper_sleeps(case: Case) -> None:
    """The helper thread takes no CPU time before and after a capture, and some during it."""
    need_root()
    job = case.sim_job("--ranks", 1)
    pid = ranks_of(job)[0]
    helper = [tid for tid, name in threads_of(pid).items() if name == "npuscope_agent"]
    assert len(helper) == 1, threads_of(pid)

    def used_in(seconds: float) -> int:
        begin = cpu_ns(pid, helper[0])
        time.sleep(seconds)
        return cpu_ns(pid, helper[0]) - begin

    assert used_in(1) == 0, "the helper runs although nobody asked it"
    idle_before = cpu_ns(pid, helper[0])
    session = case.record("-p", pid, "-d", "1s", "-o", case.dir, "--export", "none").result().session
    assert cpu_ns(pid, helper[0]) > idle_before, "the helper did not run during the capture"
    assert session.process(pid)["task_source"] == "agent", session.process(pid)["task_source_reason"]
    time.sleep(0.1)
    assert used_in(1) == 0, "the helper still runs after the capture"


@test
def helper_lets_go_of_a_dead_collector(case: Case) -> None:
    """kill -9 of npuscope: within some seconds the helper closes the task log
    and sleeps; the next capture gets it."""
    need_root()
    job = case.sim_job("--ranks", 1)
    pid = ranks_of(job)[0]
    helper = next(tid for tid, name in threads_of(pid).items() if name == "npuscope_agent")
    run = case.record("-p", pid, "-o", case.dir, "--export", "none")
    time.sleep(0.5)
    run.signal(signal.SIGKILL)
    run.wait()

    def sleeps() -> bool:
        begin = cpu_ns(pid, helper)
        time.sleep(1)
        return cpu_ns(pid, helper) == begin
    wait_until(sleeps, "the helper to notice that its collector died")
    session = case.record("-p", pid, "-d", "1s", "-o", case.dir, "--export", "none").result().expect(DONE).session
    assert session.process(pid)["task_source"] == "agent", session.process(pid)["task_source_reason"]


@test
def sigint_ends_properly(case: Case) -> None:
    need_root()
    job = case.sim_job("--ranks", 1)
    pid = ranks_of(job)[0]
    # twice: as timeout(1) does, and late, as on a busy machine
    for number, times, pause in ((signal.SIGINT, 1, 0), (signal.SIGTERM, 1, 0), (signal.SIGTERM, 2, 0),
                                 (signal.SIGTERM, 4, 0.1)):
        where = case.path(f"out{number}{times}")
        run = case.record("-p", pid, "-o", where, "--export", "none")
        wait_for_events(where, 50)
        for _ in range(times):
            if run.alive():
                run.signal(number)
            time.sleep(pause)
        result = run.result().expect(DONE)
        assert result.session.json["complete"] is True
        assert result.session.json["end_reason"] == "signal"
        assert calls(result.session, pid) > 0
    assert job.alive()


@test
def second_sigint_ends_at_once(case: Case) -> None:
    """While results are written, Ctrl-C ends npuscope; the session stays."""
    need_root()
    job = case.sim_job("--ranks", 2)
    run = case.record("-p", pid_list(ranks_of(job)), "-o", case.dir)
    time.sleep(2)
    run.signal(signal.SIGINT)
    time.sleep(0.3)
    if run.alive():
        run.signal(signal.SIGINT)
    run.wait(10)
    assert (next(case.dir.glob("npuscope_*")) / "session.json").exists()
    assert job.alive()


@test
def job_killed_while_captured(case: Case) -> None:
    need_root()
    job = case.sim_job("--ranks", 1)
    pid = ranks_of(job)[0]
    run = case.record("-p", pid, "-o", case.dir, "--export", "none")
    time.sleep(0.7)
    import os
    os.kill(pid, signal.SIGKILL)
    result = run.result(30).expect(DONE, PARTIAL)
    session = result.session.json
    assert session["end_reason"] == "targets exited" and session["complete"] is True, session["end_reason"]
    ended = result.session.process(pid)
    assert ended["exit_code"] & 0x7F == signal.SIGKILL, ended["exit_code"]
    assert session["start"]["monotonic"] < ended["exit_monotonic"] <= session["end"]["monotonic"]


@test
def collector_killed(case: Case) -> None:
    """kill -9 five times, at different moments: probes detached, job unharmed, what was captured readable."""
    need_root()
    # until it gets the order to end, however long all this takes
    job = case.sim_job("--ranks", 1, "--slow-every", 0)
    pid = ranks_of(job)[0]
    for number, delay in enumerate((0.0, 0.05, 0.2, 0.8, 1.6)):
        out = case.path(f"out{number}")
        run = case.record("-p", pid, "-o", out, "--export", "none", wait=delay >= 0.2)
        if delay >= 0.8:
            wait_for_events(out, 150)
        time.sleep(delay)
        run.signal(signal.SIGKILL)
        run.wait()
        left = kernel_leftovers()
        assert not left, f"killed after {delay} s: left in the kernel: {left}"
        for path in out.glob("npuscope_*"):
            check_killed_session(case, Session(path), path.name, delay)
    same_steps(case, job)


def check_killed_session(case: Case, session: Session, name: str, delay: float) -> None:
    if not (session.path / "session.json").exists():
        assert {p.name for p in session.path.iterdir()} <= {"session.json.new"}, "session.json is not the first file"
        case.analyze(session.path, "-o", case.path("none")).expect(1)
        return
    assert session.json["complete"] is False
    if delay >= 0.8:
        assert len(session.events) > 100, f"{len(session.events)} events in {delay} s"
    out = case.path(f"analysed_{name}_{delay}")
    result = case.analyze(session.path, "-o", out)
    result.expect(*((PARTIAL,) if delay >= 0.8 else (1, PARTIAL)))
    assert result.complaints, "nothing said about a session that was cut short"


@test
def two_at_once(case: Case) -> None:
    """Two captures of one job: both see every call; only one can have
    the task log, the other reports why not."""
    need_root()
    job = case.sim_job("--ranks", 1)
    pid = ranks_of(job)[0]
    first = case.record("-p", pid, "-o", case.path("a"), "--export", "none")
    second = case.record("-p", pid, "-o", case.path("b"), "--export", "none")
    wait_for_events(case.path("b"), 4000)
    second.signal(signal.SIGINT)
    inner = second.result().expect(DONE, PARTIAL)
    first.signal(signal.SIGINT)
    outer = first.result().expect(DONE)
    sources = [r.session.process(pid)["task_source"] for r in (outer, inner)]
    assert sources[0] == "agent", sources
    if sources[1] == "host":
        assert any("no device task log" in line for line in inner.complaints), inner.err
    captures = [r.session.json["capture"] for r in (outer, inner)]
    begin = max(c["begin_monotonic"] for c in captures)
    end = min(c["end_monotonic"] for c in captures)

    def starts(result: Any) -> set[tuple[int, int]]:
        return {(e.tid, e.probe) for e in result.session.of(API, pid) if begin < e.start < e.start + e.dur < end}

    def number(result: Any) -> int:
        return sum(begin < e.start < e.start + e.dur < end for e in result.session.of(API, pid))
    assert starts(inner) == starts(outer)
    assert number(inner) > 200 and abs(number(inner) - number(outer)) <= 2, (number(inner), number(outer))


if __name__ == "__main__":
    sys.exit(main())
