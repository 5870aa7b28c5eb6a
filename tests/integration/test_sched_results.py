#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Scheduling in results. Witnesses: the job's own clocks and getrusage, /proc, the conformance checker."""

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness import (ROOT, Case, Result, Session, Skip, cpu_ns, environment, main, need, need_job, need_root,
                     ranks_of, stolen_by_host, test)
from records import IRQ, SCHED, SYSCALL

Row = dict[str, str]
OPEN = 0x20  # flag of the records that the capture's end cut
SOFTIRQ, TIMER = 1, 1


@dataclass
class Thread:
    """What a thread reported about itself."""
    tid: int
    cpu_ns: int
    voluntary: int
    involuntary: int


@dataclass
class Run:
    """A capture of sched_job: what it printed and where the result is."""
    pid: int
    facts: dict[str, int]
    threads: dict[str, Thread]
    result: Path
    session: Session
    cpu_ns: int  # of the main thread, by the scheduler's own account when the capture ended

    def rows(self, stem: str) -> list[Row]:
        with open(self.result / f"{stem}.csv", newline="") as file:
            return list(csv.DictReader(file))

    def query(self, database: str, sql: str) -> list[tuple]:
        with sqlite3.connect(f"file:{self.result / database}?mode=ro", uri=True) as db:
            return db.execute(sql).fetchall()


def result_folders(result: Result) -> list[Path]:
    """Where the files of each process are."""
    return [Path(line) / "ASCEND_PROFILER_OUTPUT" for line in result.out.splitlines() if line.endswith("_ascend_pt")]


def capture(case: Case, *options: str) -> Run:
    """Record and analyze the job while it works; the capture ends before the job does."""
    need_root()
    job = case.start([need_job("sched_job")], env=environment())
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, *options)
    job.send("go")
    job.wait_for("^done")
    time.sleep(0.2)  # it spins
    spent = cpu_ns(job.pid, job.pid)
    run.signal(2)
    result = run.result().expect(3)  # no CANN library in this job
    job.send("end")
    assert job.wait() == 0
    facts = {name: int(value) for name, _, value in re.findall(r"^(\w+) (\d+) (\d+)$", job.out, re.M)}
    threads = {name: Thread(*map(int, rest)) for name, *rest in
               re.findall(r"^thread (\w+) (\d+) (\d+) (\d+) (\d+)$", job.out, re.M)}
    (folder,) = [path for path in result_folders(result) if f"_{job.pid}_" in path.parent.name]
    return Run(job.pid, facts, threads, folder, result.session, spent)


def close(found: float, own: float, share: float, slack_ns: float) -> bool:
    return abs(found - own) <= share * own + slack_ns


def us(row: Row, name: str) -> float:
    """A time of a table, in ns."""
    return float(row[name]) * 1000


def of_thread(rows: list[Row], tid: int) -> Row:
    (row,) = [row for row in rows if row["Thread ID"] == str(tid)]
    return row


@test
def threads_as_they_report(case: Case) -> None:
    """CPU time within 1 % (and 2 ms) of each thread's own clock; switches of
    getrusage, the waker and the preemptor."""
    stolen = stolen_by_host()
    run = capture(case)
    stolen = stolen_by_host() - stolen
    rows = run.rows("npuscope_threads")
    for name in ("holder", "rival", "steady"):
        own, row = run.threads[name], of_thread(rows, run.threads[name].tid)
        # A guest's clocks leave out what the host took from its CPUs, which to the guest look busy all the
        # same; and a thread is charged a little less than lies between two switches (ftrace has the same).
        most, switches = us(row, "Running(us)"), (20_000 if name == "rival" else 0) * int(row["Slices"])
        least = most - stolen - switches
        assert 0.99 * least - 2_000_000 <= own.cpu_ns <= 1.01 * most + 2_000_000, f"{name}: {row}, it says {own}"
        voluntary, preempted = int(row["Voluntary Switches"]), int(row["Preemptions"])  # its death is none
        assert close(voluntary, own.voluntary, 0.02, 3), f"{name}: {voluntary} waits, getrusage {own.voluntary}"
        assert close(preempted, own.involuntary, 0.02, 3), f"{name}: {preempted} preempted, getrusage {own.involuntary}"
        # Also of `steady`, which names itself while it runs its only stretch.
        assert row["Thread Name"] == name, row
    row = of_thread(rows, run.pid)
    assert (row["Waker Name"], int(row["Waker Thread ID"])) == ("holder", run.threads["holder"].tid), row
    # The rival takes its CPU; on a busy host others do so even more often.
    next_ones = Counter(e.body.next for e in run.session.of(SCHED, run.pid)
                        if e.tid == run.pid and not e.body.state and not e.flags & OPEN)
    assert next_ones[run.threads["rival"].tid] > 5, f"{next_ones}, the rival is {run.threads['rival'].tid}"
    named = next_ones[int(row["Preemptor Thread ID"])]
    assert int(row["Preempted"]) == max(next_ones.values()) == named, (row, next_ones)
    if int(row["Preemptor Thread ID"]) == run.threads["rival"].tid:
        assert row["Preemptor Name"] == "rival", row
    assert int(row["Migrations"]) >= run.facts["moves"] * 0.9 - 2, f"{row}, it moved {run.facts['moves']} times"
    # It spins when the capture ends: that stretch, which no switch has ended, counts up to there.
    # (If it lost its CPU just then, a common record has it.)
    last = max((e for e in run.session.of(SCHED, run.pid) if e.tid == run.pid), key=lambda e: e.start + e.dur)
    end = run.session.json["capture"]["end_monotonic"]
    assert last.start + last.dur >= end, f"its last record ends {end - last.start - last.dur} ns before the capture"
    most = us(row, "Running(us)")
    assert most >= 0.99 * run.cpu_ns - 5_000_000, f"{row}, the scheduler says {run.cpu_ns} before the end"
    assert run.threads["main"].cpu_ns <= run.cpu_ns


def parts_are_right(run: Run, all_summed: bool = False) -> None:
    row, facts = of_thread(run.rows("npuscope_host_breakdown"), run.pid), run.facts
    parts = ("User Code(us)", "CANN Calls(us)", "I/O Calls(us)", "Other System Calls(us)", "Device Wait(us)",
             "Lock Wait(us)", "CPU Wait(us)", "I/O Wait(us)", "Page Faults(us)", "Other Sleep(us)", "Not Observed(us)")
    total = sum(us(row, part) for part in parts)
    assert abs(total - us(row, "Duration(us)")) < 1, f"the parts add up to {total}: {row}"
    assert row["Interrupts(us)"] == "N/A" and row["Step"] == "", row
    # The job's clocks also contain the time in which it could run again and had no CPU.
    locks, naps = us(row, "Lock Wait(us)"), us(row, "Other Sleep(us)")
    most = facts["lock_ns"] + facts["join_ns"] + 2_000_000
    assert 0.95 * facts["held_ns"] <= locks <= most, f"{row}, the lock was held {facts['held_ns']}, it waited {most}"
    assert 0.99 * facts["nap_least_ns"] <= naps <= facts["nap_ns"] + 2_000_000, f"{row}, it slept {facts['nap_ns']}"
    assert us(row, "CPU Wait(us)") >= 0.9 * facts["shared_wait_ns"], f"{row}, it waited {facts['shared_wait_ns']}"
    # Where no call has a record, waits for a CPU within calls are counted as theirs, not as the job's code.
    waited = max(0, us(row, "CPU Wait(us)") - facts["shared_wait_ns"]) if all_summed else 0
    reading = us(row, "I/O Calls(us)")
    own = facts["read_cpu_ns"]
    assert 0.2 * own < reading <= 1.1 * own + 5_000_000 + waited, f"{row}, it spent {own}"
    spun = facts["spin_ns"] + 250_000_000
    assert us(row, "User Code(us)") >= 0.98 * spun - waited, f"{row}, it spun {spun}"
    # Until it got the order to begin it slept, and it was not recorded falling asleep.
    idle = facts["began_ns"] - run.session.json["capture"]["begin_monotonic"]
    assert us(row, "Not Observed(us)") < idle + 0.02 * us(row, "Duration(us)"), f"{row}, it began after {idle}"
    ours = run.query("ascend_pytorch_profiler_0.db", "SELECT globalTid & 0xffffffff, userCodeNs, lockWaitNs,"
                     " interruptsNs FROM NPUSCOPE_HOST_BREAKDOWN")
    assert (run.pid, round(us(row, "User Code(us)")), round(us(row, "Lock Wait(us)")), None) in ours, ours


# What each of the checker's rules must find.
DAMAGES = {
    "I1": "UPDATE slice SET args = json_set(args, '$.cpu', 0) WHERE json_extract(args, '$.cpu') IS NOT NULL",
    "E1": "UPDATE thread SET tid = 'CPU x' WHERE tid LIKE 'CPU %'",
    "E2": "UPDATE slice SET duration = duration + 5000000, end_time = end_time + 5000000 WHERE name = 'Running'"
          " AND id IN (SELECT id FROM slice WHERE name = 'Running' LIMIT 1 OFFSET 5)",
    "E3": "DELETE FROM slice WHERE id = (SELECT id FROM slice WHERE name = 'Running' ORDER BY duration DESC LIMIT 1)",
    "E4": "UPDATE slice SET name = 'Sleeping' WHERE id = (SELECT min(id) FROM slice WHERE name = 'Runnable')",
}


@test
def where_the_time_went(case: Case) -> None:
    """The parts of the main thread are what it did, and add up."""
    parts_are_right(capture(case, "--osrt-threshold", "0"))


@test
def where_short_calls_went(case: Case) -> None:
    """The same where short calls are summed up: the reads are."""
    parts_are_right(capture(case))


@test
def where_all_calls_went(case: Case) -> None:
    """The same where no call has a record of its own: how long it slept in which is known by the sums."""
    run = capture(case, "--osrt-threshold", "3s")
    assert not [e for e in run.session.of(SYSCALL, run.pid) if e.dur < 1_000_000_000], "calls were recorded"
    parts_are_right(run, all_summed=True)


@test
def ftrace_data(case: Case) -> None:
    """ftrace_data.db has what the tables and the trace have, and keeps the viewer's rules."""
    run = capture(case)
    states = dict(run.query("ftrace_data.db", "SELECT name, sum(duration) FROM slice JOIN thread USING (track_id)"
                            f" WHERE pid = 'Process Scheduling' AND tid LIKE '%:{run.pid}' GROUP BY name"))
    row = of_thread(run.rows("npuscope_threads"), run.pid)
    assert abs(states["Running"] - us(row, "Running(us)")) < 1, (states, row)
    assert abs(states["Runnable"] - us(row, "Runnable(us)")) < 1, (states, row)
    assert abs(states["Sleeping"] - us(row, "Sleeping(us)") - us(row, "Uninterruptible(us)")) < 1, (states, row)
    switches = run.query("ftrace_data.db", "SELECT count(*), sum(json_extract(args, '$.prev_state') = 'R') FROM slice"
                         f" WHERE name = 'sched_switch' AND json_extract(args, '$.prev_pid') = '{run.pid}'")
    assert switches == [(int(row["Voluntary Switches"]) + int(row["Preemptions"]), int(row["Preemptions"]))], switches
    check = subprocess.run([ROOT / "tools" / "conformance" / "check", "--verbose", run.result.parent], text=True,
                           capture_output=True, check=False)
    assert check.returncode == 0, check.stdout[-3000:]
    for rule in ("E1", "E2", "E3", "E4", "I1", "I9", "I11"):
        assert re.search(rf"^PASS {rule} ", check.stdout, re.M), check.stdout[-3000:]
    for rule, change in DAMAGES.items():
        folder = case.path(rule) / run.result.parent.name
        shutil.copytree(run.result.parent, folder)
        with sqlite3.connect(folder / run.result.name / "ftrace_data.db") as db:
            assert db.execute(change).rowcount != 0, change
        db.close()
        check = subprocess.run([ROOT / "tools" / "conformance" / "check", folder], text=True, capture_output=True,
                               check=False)
        assert re.search(rf"^FAIL {rule} ", check.stdout, re.M), f"{rule} lets {change} pass: {check.stdout[-2000:]}"
        shutil.rmtree(folder)


def interrupts_of_the_host() -> int:
    lines = Path("/proc/stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("intr", "softirq")))


def times_preempted(pid: int) -> int:
    """As the kernel counts."""
    found = re.search(r"nonvoluntary_ctxt_switches:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


@test
def a_thread_that_never_stops(case: Case) -> None:
    """It has a CPU for itself: no switch records it, but it is recorded as running when the capture ends."""
    need_root()
    need(os.cpu_count() != 1, "two CPUs")
    for attempt in range(8):  # until nobody else wants its CPU: before the first switch it is not seen
        job = case.start([need_job("sched_job"), "poll"], env=environment())
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-d", "300ms", "-o", case.path(f"out{attempt}"))
        before = times_preempted(job.pid)
        run.wait_for("^npuscope: session in ", err=True)
        after = times_preempted(job.pid)
        assert job.alive(), "it is to outlive the capture"
        job.kill()
        result = run.result().expect(3)
        if after == before:
            break
    else:
        raise Skip("needs a CPU that nobody else wants for 300 ms")
    (folder,) = result_folders(result)
    with open(folder / "npuscope_threads.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    window = result.session.json["capture"]
    length = window["end_monotonic"] - window["begin_monotonic"]
    assert 0.8 * length <= us(row, "Running(us)") <= length + 1, f"{row} in {length} ns"
    assert row["Voluntary Switches"] == "0", row


@test
def interrupts(case: Case) -> None:
    """--irq: interrupts stop the threads, not more often than the host has
    any; they are in the tables and layers."""
    before = interrupts_of_the_host()
    run = capture(case, "--irq")
    host = interrupts_of_the_host() - before
    seen = len([e for e in run.session.events if e.kind == 11])
    need(seen > 0, "a kernel whose interrupts are traced")
    assert seen <= host, f"{seen} interrupts, the host had {host}"
    row = of_thread(run.rows("npuscope_host_breakdown"), run.pid)
    stolen = us(row, "Interrupts(us)")
    assert 0 < stolen < 0.2 * us(row, "Duration(us)"), row
    found = run.query("ftrace_data.db", "SELECT count(*), sum(name = 'softirq'), count(json_extract(args, '$.task')),"
                      " count(coalesce(json_extract(args, '$.name'), json_extract(args, '$.action'))) FROM slice"
                      " WHERE name IN ('irq', 'softirq')")
    assert found[0][0] == seen == found[0][2] == found[0][3], (found, seen)
    ticks = [e for e in run.session.events if e.kind == IRQ and e.body.what == SOFTIRQ and e.number == TIMER]
    assert ticks or found[0][1], "a thread that spins for half a second is stopped by softirqs"


@test
def steps_of_a_training_job(case: Case) -> None:
    """Each step has its breakdown, whose parts are its length; the job's
    host work holds it up, which is found."""
    need_root()
    job = case.sim_job("--ranks", 1, "--seconds", 0, "--rate", 2000)
    (pid,) = ranks_of(job)
    result = case.record("-p", pid, "-d", "3s", "-o", case.dir, "--step-marker", "train_step@1").result().expect(0, 3)
    job.kill()
    (folder,) = result_folders(result)
    with sqlite3.connect(folder / "ascend_pytorch_profiler_0.db") as db:
        steps = {str(row[0]): row[1:] for row in db.execute("SELECT id, startNs, endNs FROM STEP_TIME")}
        rows = db.execute("SELECT * FROM NPUSCOPE_HOST_BREAKDOWN").fetchall()
        names = [column[1] for column in db.execute("PRAGMA table_info(NPUSCOPE_HOST_BREAKDOWN)")]
    assert len(steps) > 10, steps
    own = [dict(zip(names, row)) for row in rows if row[3] & 0xFFFFFFFF == pid]
    assert {row["step"] for row in own} == set(steps), "a step has no breakdown"
    for row in own:
        total = sum(value or 0 for name, value in row.items() if name[-2:] == "Ns" and name not in ("startNs", "endNs"))
        assert (row["startNs"], row["endNs"]) == steps[row["step"]] and total == row["endNs"] - row["startNs"], row
    assert sum(row["cannCallsNs"] for row in own) > 0 and sum(row["otherSleepNs"] for row in own) > 0, own[0]
    found = json.loads((folder / "npuscope_findings.json").read_text())
    ids = [finding["id"] for finding in found["findings"]]
    assert any(ident.startswith("host_") for ident in ids), ids
    shown = case.npuscope("show", "--only", "host_time", result.session.path).expect(0, 3)
    assert re.search(rf"^\s*{pid}\s", shown.out, re.M), shown.out


@test
def no_interrupts_without_scheduling(case: Case) -> None:
    need_root()
    case.npuscope("record", "--irq", "--host-sys", "none", "-p", 1).expect(2)


if __name__ == "__main__":
    sys.exit(main())
