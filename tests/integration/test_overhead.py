#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What watching costs is measured, told, and held below the limit that was asked for."""

import os
import re
import sys
import time
from typing import Any

from harness import (API, DONE, MARK, PARTIAL, SCHED, SQE, SYSCALL, USAGE, Case, Result, main, need_root, ranks_of,
                     test)

STAGES = ["syscall_records", "syscalls", "scheduling", "detail", "names", "all"]


def watch_job(case: Case, *options: str, seconds: int = 8) -> tuple[Result, Any]:
    """A capture of the simulated job, and the job."""
    need_root()
    job = case.sim_job("--ranks", 1, "--rate", 10000)
    time.sleep(0.5)
    run = case.record("-p", ranks_of(job)[0], "-d", f"{seconds}s", "-o", case.path("out"), "--export", "none", *options)
    return run.result(60), job


@test
def limit_is_kept(case: Case) -> None:
    """A limit that cannot be held: detail goes sort by sort, in order, each with a line; then nothing more is recorded."""
    result, job = watch_job(case, "--max-overhead", "0.1%", seconds=16)  # a sort a second, or every other one
    result.expect(PARTIAL)
    cost = result.session.json["cost"]
    given_up = cost["given_up"]
    names = [stage["what"] for stage in given_up]
    assert len(set(names)) == len(names) and set(names) <= set(STAGES) and "all" in names, names
    # What costs nearly nothing at first has its turn when the rest is gone.
    for sort in (("syscall_records", "syscalls"), ("detail", "names", "all")):
        assert [name for name in names if name in sort] == [name for name in sort if name in names], names
    lines = [line for line in result.complaints if "no longer recorded" in line]
    assert len(lines) == len(names), result.err
    since = {stage["what"]: int(stage["monotonic"]) for stage in given_up}
    grace = 500_000_000  # a call that was open may end, and the links take a moment to close
    for what, kinds in (("syscall_records", (SYSCALL,)), ("syscalls", (SYSCALL,)), ("scheduling", (SCHED,)), ("all", (API, MARK, SQE))):
        if what not in since:
            continue
        late = [e for e in result.session.events if e.kind in kinds and e.start > since[what] + grace]
        assert not late, f"{len(late)} records of {kinds} after {what} was given up"
    job.signal(15)
    assert job.wait(30) == 0, "the job came to harm"


@test
def generous_limit(case: Case) -> None:
    """Nothing is given up, and the account adds up: kinds to the total, the total to the percentage."""
    result, _job = watch_job(case, "--max-overhead", "100%")
    result.expect(DONE)
    cost = result.session.json["cost"]
    assert cost["given_up"] == []
    share = 100 * sum(cost["spent_ns"].values()) / cost["job_cpu_ns"]
    assert abs(share - cost["overhead_percent"]) < 0.02, cost
    assert min(ns for kind, ns in cost["spent_ns"].items() if kind != "faults") > 0, cost  # they can cost nothing
    told = {program["name"]: program for program in cost["programs"]}
    assert told["sched_switched"]["runs"] > 100 and told["sched_switched"]["mean_ns"] > 10, told
    words = re.search(r"watching took ([\d.]+) % of the CPU time", result.err)
    assert words and abs(float(words[1]) - cost["overhead_percent"]) < 0.02, result.err


FAMILY = """
import os, resource, sys, time
for i in range(40):
    if not os.fork():
        while time.thread_time() < 0.02: pass
        os._exit(0)
    os.wait()
own, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print("used", int(1e9 * (own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime)), flush=True)
"""


@test
def cpu_time_of_short_lived_processes(case: Case) -> None:
    """Processes that are gone before anybody looks at them count, or watching would seem to take many times its share."""
    need_root()
    run = case.record("-o", case.path("out"), "--export", "none", "--", sys.executable, "-c", FAMILY, wait=False)
    result = run.result().expect(PARTIAL)  # no CANN library
    used = int(re.findall(r"^used (\d+)$", result.out, re.M)[0])
    found = result.session.json["cost"]["job_cpu_ns"]
    assert used >= 40 * 20_000_000 and abs(found - used) < 0.1 * used, f"{found} ns, the job says {used}"


# The first thread is gone before the last one, and kept by the kernel: for less than the second after which anybody looks.
LAST_THREAD = """
import ctypes, os, threading, time
threading.Thread(target=lambda: (time.sleep(0.5), os._exit(0))).start()
while time.process_time() < 0.3: pass
ctypes.CDLL(None).syscall({SYS_exit}, 0)
"""


@test
def cpu_time_of_the_first_thread(case: Case) -> None:
    need_root()
    number = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
    script = LAST_THREAD.replace("{SYS_exit}", str(number))
    run = case.record("-o", case.path("out"), "--export", "none", "--", sys.executable, "-c", script, wait=False)
    found = run.result().expect(PARTIAL).session.json["cost"]["job_cpu_ns"]  # no CANN library
    assert 300_000_000 <= found < 600_000_000, f"{found} ns"


@test
def sums_cost_less(case: Case) -> None:
    """Calls with a record and calls that are summed up are accounted for apart, each at its own cost."""
    need_root()
    job = case.start([sys.executable, "-c", "import os\nprint('ready', flush=True)\nwhile True: os.getppid()"])
    job.wait_for("^ready")
    costs = {}
    for threshold in ("0", "1ms"):
        out = case.path(f"out{threshold}")
        run = case.record("-p", job.pid, "-d", "2s", "-o", out, "--export", "none", "--osrt-threshold", threshold)
        cost = run.result().expect(PARTIAL).session.json["cost"]
        assert 0 < cost["sum_ns"] and 0 < cost["syscall_ns"], cost
        costs[threshold] = cost["spent_ns"]
    assert costs["0"]["syscalls"] > 100 * costs["0"]["summed_syscalls"], costs
    assert costs["1ms"]["summed_syscalls"] > 100 * costs["1ms"]["syscalls"], costs


@test
def wrong_limits(case: Case) -> None:
    for limit in ("0", "0%", "-3%", "3%%", "101%", "x", ""):
        case.npuscope("record", "--max-overhead", limit, "-p", "1").expect(USAGE)


@test
def estimate(case: Case) -> None:
    """What doctor predicts from the rates of a capture is what the capture took on disk."""
    result, _job = watch_job(case)
    result.expect(DONE)
    session = result.session
    window = session.json["capture"]
    seconds = (int(window["end_monotonic"]) - int(window["begin_monotonic"])) / 1e9
    events = session.json["events"]
    rates = {"launches": events["sqe"], "calls": events["api"] - events["sqe"] + events["mark"] - 2 * events["sqe"],
             "syscalls": events["syscall"], "switches": events["sched"]}
    given = ",".join(f"{name}={max(0, n) / seconds:.3f}" for name, n in rates.items()) + f",time={seconds:.3f}"
    told = case.npuscope("doctor", "--estimate", given).expect(DONE).out
    found = re.search(r"session +([\d.]+) MB", told)
    assert found, told
    size = sum(file.stat().st_size for file in session.path.rglob("*") if file.is_file()) / 1e6
    assert abs(float(found[1]) - size) < 0.1 * size, f"predicted {found[1]} MB, took {size:.1f} MB: {given}"
    assert re.search(r"taken from the job +[\d.]+ % of one CPU", told), told
    for wrong in ("", "launches", "launches=-1", "frobs=3", "time=0"):
        case.npuscope("doctor", "--estimate", wrong or "=").expect(USAGE)


if __name__ == "__main__":
    sys.exit(main())
