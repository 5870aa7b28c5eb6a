#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What watching costs is measured, told, and held below the limit that was asked for."""

import re
import sys
import time
from typing import Any

from harness import (API, DONE, MARK, PARTIAL, SCHED, SQE, SYSCALL, USAGE, Case, Result, main, need_root, ranks_of,
                     test)

STAGES = ["syscall_records", "syscalls", "scheduling", "detail", "names", "all"]


def watch_job(case: Case, *options: str) -> tuple[Result, Any]:
    """A capture of eight seconds of the simulated job, and the job."""
    need_root()
    job = case.sim_job("--ranks", 1, "--rate", 10000)
    time.sleep(0.5)
    run = case.record("-p", ranks_of(job)[0], "-d", "8s", "-o", case.path("out"), "--export", "none", *options)
    return run.result(60), job


@test
def limit_is_kept(case: Case) -> None:
    """A limit that cannot be held: detail goes sort by sort, in order, each with a line; then nothing more is recorded."""
    result, job = watch_job(case, "--max-overhead", "0.1%")
    result.expect(PARTIAL)
    cost = result.session.json["cost"]
    given_up = cost["given_up"]
    names = [stage["what"] for stage in given_up]
    assert names == [stage for stage in STAGES if stage in names] and names[-1] == "all", names
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
