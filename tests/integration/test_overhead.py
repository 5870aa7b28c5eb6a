#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The cost of tracing is measured, reported, and kept below the requested limit."""

import os
import platform
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from harness import (DONE, NPUSCOPE, PARTIAL, USAGE, Case, Result, Running, add_test, build_library, children_of,
                     environment, kernel_leftovers, main, need, need_job, need_root, ranks_of, test, threads_of,
                     wait_until)
from records import API, MARK, SCHED, SQE, SYSCALL

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
    """A limit that cannot be held: detail goes sort by sort, in order, each with
    a line; then nothing more is recorded."""
    # a class a second, or every other one
    result, job = watch_job(case, "--max-overhead", "0.1%", seconds=16)
    result.expect(PARTIAL)
    cost = result.session.json["cost"]
    dropped = cost["given_up"]
    names = [stage["what"] for stage in dropped]
    assert len(set(names)) == len(names) and set(names) <= set(STAGES) and "all" in names, names
    # What costs nearly nothing at first has its turn when the rest is dropped.
    for sort in (("syscall_records", "syscalls"), ("detail", "names", "all")):
        assert [name for name in names if name in sort] == [name for name in sort if name in names], names
    lines = [line for line in result.complaints if "no longer recorded" in line]
    assert len(lines) == len(names), result.err
    since = {stage["what"]: int(stage["monotonic"]) for stage in dropped}
    grace = 500_000_000  # a call that was open may end, and the links take a moment to close
    for what, kinds in (("syscall_records", (SYSCALL,)), ("syscalls", (SYSCALL,)), ("scheduling", (SCHED,)),
                        ("all", (API, MARK, SQE))):
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
    # they can cost nothing
    assert min(ns for kind, ns in cost["spent_ns"].items() if kind not in ("faults", "python_stacks")) > 0, cost
    reported = {program["name"]: program for program in cost["programs"]}
    assert reported["sched_switched"]["runs"] > 100 and reported["sched_switched"]["mean_ns"] > 10, reported
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
    """Processes that exit before they are inspected count, or tracing
    would seem to cost many times its share."""
    need_root()
    run = case.record("-o", case.path("out"), "--export", "none", "--", sys.executable, "-c", FAMILY, wait=False)
    result = run.result().expect(PARTIAL)  # no CANN library
    used = int(re.findall(r"^used (\d+)$", result.out, re.M)[0])
    found = result.session.json["cost"]["job_cpu_ns"]
    assert used >= 40 * 20_000_000 and abs(found - used) < 0.1 * used, f"{found} ns, the job says {used}"


# The first thread exits before the last one, and the kernel keeps it: for
# less than the second between two reads.
LAST_THREAD = """
import ctypes, os, threading, time
def first_is_there():
    return open(f"/proc/self/task/{os.getpid()}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
def outlive():
    while first_is_there():
        time.sleep(0.01)
    time.sleep(0.2)
    os._exit(0)
threading.Thread(target=outlive).start()
begin = time.process_time()
while time.process_time() - begin < 0.3: pass
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


# Function, its class on x86-64, and how often it is called.
CLASSES = {"aclrtSetDevice": ("emulated", 300), "aclrtSynchronizeDevice": ("nop", 200),
           "aclrtSynchronizeStream": ("single-stepped", 100)}
STEPS = 50  # of step_here, single-stepped, at entry only


def capture_classes(case: Case, out: str, *options: str, **more: Any) -> Any:
    """A capture of a job that calls functions of each class; "cost" of its session."""
    need_root()
    library = build_library(case, "probe_classes_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("loader_job")], env=environment(libs=[library.parent]))
    job.wait_for("^ready")
    job.send("load libacl_rt.so")
    job.wait_for("^loaded")
    run = case.record("-p", job.pid, "-o", case.path(out), "--export", "none", "--step-marker", "step_here", *options,
                      **more)
    for function, (_, calls) in CLASSES.items():
        job.send(f"call {function} {calls}")
    job.send(f"call step_here {STEPS}")
    job.send("quit 3")
    assert job.wait() == 3
    session = run.result().expect(DONE, PARTIAL).session
    classes = {probe["symbol"]: probe["class"] for probe in session.json["probes"]}
    if platform.machine() == "x86_64":
        assert {name: classes[name] for name in CLASSES} == {name: kind for name, (kind, _) in CLASSES.items()}, classes
    return session.json["cost"]


def calls_by_class(case: Case, forbidden: str) -> None:
    """Calls are counted by how their probes work, by every way to
    attach them, and the sum is what was spent."""
    cost = capture_classes(case, "out", env={**os.environ, "NPUSCOPE_FORBID": forbidden})
    probes = cost["probes"]
    assert set(probes) == {"emulated", "nop", "single-stepped"}
    counts = {kind: (probes[kind]["calls"], probes[kind]["marks"]) for kind in probes}
    if platform.machine() == "x86_64":
        assert counts == {"emulated": (300, 0), "nop": (200, 0), "single-stepped": (100, STEPS)}, counts
    else:  # there a nop is no class of its own
        assert counts == {"emulated": (300, 0), "nop": (0, 0), "single-stepped": (300, STEPS)}, counts
    for kind in probes.values():
        assert kind["call_ns"] > 0 and kind["mark_ns"] > 0 and (kind["spent_ns"] > 0) == (kind["calls"] > 0), probes
    spent = cost["spent_ns"]["calls"] + cost["spent_ns"]["marks"]
    assert abs(spent - sum(kind["spent_ns"] for kind in probes.values())) <= 5, cost


for name, forbid in {"session_links": "", "multi_links": "uprobe_session", "perf_events": "uprobe_multi",
                     "stubs": "cookie", "legacy": "btf"}.items():
    add_test(f"calls_by_class_of_{name}", lambda case, forbid=forbid: calls_by_class(case, forbid))


class OwnRun:
    """npuscope with a /run of its own: what other captures of this machine cache is in
    nobody's way. The cache's file is `cache`."""

    def __init__(self, case: Case) -> None:
        need_root()
        run = case.path("run")
        run.mkdir(mode=0o755)
        self.cache = run / "npuscope" / "costs"
        self.program = case.path("npuscope")
        self.program.write_text(f"#!/bin/sh\nexec unshare -m sh -c 'mount --bind \"$0\" /run && exec \"$@\"' {run} "
                                f"{NPUSCOPE} \"$@\"\n")
        self.program.chmod(0o755)
        need(case.run([self.program, "--version"]).status == 0, "mounts")

    def measured(self, case: Case, out: str) -> Result:
        """A capture that goes on until the cost of probes was measured beside it, and is reported."""
        job = case.start([sys.executable, "-c",
                          "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"])
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-o", case.path(out), "--export", "none", program=self.program)
        session = wait_until(lambda: next(case.path(out).glob("*/session.json"), None), "the session")
        wait_until(lambda: '"source":"measured"' in re.sub(r"\s", "", session.read_text()), "costs that were measured",
                   90)
        job.signal(9)
        return run.result().expect(DONE, PARTIAL)


@test
def measured_once(case: Case) -> None:
    """The first capture measures beside itself and leaves a cache that only
    root can write; the next one takes that."""
    own = OwnRun(case)
    first = own.measured(case, "first").session.json["cost"]
    state, above = own.cache.stat(), own.cache.parent.stat()
    assert (state.st_uid, state.st_mode & 0o7777, above.st_uid, above.st_mode & 0o7777) == (0, 0o644, 0, 0o755)
    assert [file.name for file in own.cache.parent.iterdir()] == ["costs"]
    before = own.cache.read_bytes()
    second = capture_classes(case, "second", program=own.program)
    assert second["source"] == "cached", second
    for kind in ("emulated", "nop", "single-stepped"):
        for value in ("call_ns", "mark_ns"):
            assert abs(second["probes"][kind][value] - first["probes"][kind][value]) < 0.02, (first, second)
    assert own.cache.read_bytes() == before
    # A call counts with the cost that doctor reports for one.
    reported = case.npuscope("doctor", "--estimate", "calls=1000", program=own.program).expect(DONE).out
    words = re.search(r"measured since boot +(\d+) ns a probed call", reported)
    assert words and abs(float(words[1]) - second["probes"]["emulated"]["call_ns"]) <= 1, reported


@test
def costs_of_others_are_ignored(case: Case) -> None:
    """Those of another boot, and what somebody else could have written."""
    own = OwnRun(case)
    case.npuscope("doctor", "--estimate", "calls=1000", program=own.program).expect(DONE)  # it waits for them
    good = own.cache.read_bytes()
    for spoil in (lambda: own.cache.write_bytes(re.sub(rb"(?m)^boot .*$", b"boot 00000000-0000-0000-0000-000000000000",
                                                       good)),
                  lambda: own.cache.chmod(0o666), lambda: own.cache.parent.chmod(0o777)):
        spoil()
        result = case.record("-o", case.path("out"), "--export", "none", "--", "true", program=own.program,
                             wait=False).result()
        assert result.expect(DONE, PARTIAL).session.json["cost"]["source"] != "cached", result.err
        own.cache.parent.chmod(0o755)
        own.cache.unlink()
        own.cache.write_bytes(good)
        own.cache.chmod(0o644)
        shutil.rmtree(case.path("out"))
    result = case.record("-o", case.path("out"), "--export", "none", "--", "true", program=own.program,
                         wait=False).result()
    assert result.expect(DONE, PARTIAL).session.json["cost"]["source"] == "cached", result.err


@test
def where_nothing_can_be_kept(case: Case) -> None:
    """/run that cannot be written: each capture measures for itself, and prints nothing about it."""
    own = OwnRun(case)
    own.program.write_text(own.program.read_text().replace("/run &&", "/run && mount -o remount,ro,bind /run &&"))
    result = own.measured(case, "out")
    assert not own.cache.parent.exists() and "costs" not in " ".join(result.complaints), result.err


@test
def short_capture_is_estimated(case: Case) -> None:
    """A capture that ends before costs are measured reports it, and leaves no part of a measure."""
    own = OwnRun(case)
    result = case.record("-o", case.path("out"), "--export", "none", "--", "sh", "-c",
                         "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done",
                         program=own.program, wait=False).result().expect(DONE, PARTIAL)
    cost = result.session.json["cost"]
    assert min(kind["call_ns"] for kind in cost["probes"].values()) > 0, cost
    assert cost["source"] == "measured" or not own.cache.exists(), cost
    assert cost["source"] == "measured" or "(estimated: the capture ended before it was measured" in result.err, \
        result.err
    assert not own.cache.with_name("costs.new").exists()


@test
def killed_while_it_measures(case: Case) -> None:
    """kill -9 at any time of the measuring: the child that measures exits with it, and so are its probes."""
    own = OwnRun(case)
    job = case.start([sys.executable, "-c", "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"])
    job.wait_for("^ready")

    def measuring(run: Running) -> list[int]:
        return [pid for pid in children_of(run.pid) if threads_of(pid).get(pid) == "npuscope-cost"]

    for delay in (None, 0, 0.1, 0.3, 0.6, 1.2, 1.8):
        run = case.record("-p", job.pid, "-o", case.path(f"out{delay}"), "--export", "none", program=own.program)
        if delay is None:
            wait_until(lambda: measuring(run), "the child that measures")
        else:
            time.sleep(delay)
        children = measuring(run)
        run.signal(9)
        run.wait()
        for pid in children:
            wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists()
                       or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text(),
                       "the end of the child that measures")
        own.cache.unlink(missing_ok=True)
    wait_until(lambda: not kernel_leftovers(), "a kernel without us")


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
             "syscalls": events["syscall"], "switches": events["sched"], "locks": events["lock"]}
    rate_list = ",".join(f"{name}={max(0, n) / seconds:.3f}" for name, n in rates.items()) + f",time={seconds:.3f}"
    reported = case.npuscope("doctor", "--estimate", rate_list).expect(DONE).out
    found = re.search(r"session +([\d.]+) MB", reported)
    assert found, reported
    size = sum(file.stat().st_size for file in session.path.rglob("*") if file.is_file()) / 1e6
    assert abs(float(found[1]) - size) < 0.1 * size, f"predicted {found[1]} MB, took {size:.1f} MB: {rate_list}"
    assert re.search(r"taken from the job +[\d.]+ % of one CPU", reported), reported
    # A class of probes has one name, whoever prints what it costs.
    classes = [set(re.findall(r"\bon an? ([a-z-]+)", text))
               for text in (reported, result.err[result.err.index("\ncosts, "):].split("\n")[1])]
    assert classes[0] == classes[1] == {"emulated", "nop", "single-stepped"}, (reported, result.err)
    for wrong in ("", "launches", "launches=-1", "frobs=3", "time=0"):
        case.npuscope("doctor", "--estimate", wrong or "=").expect(USAGE)


if __name__ == "__main__":
    sys.exit(main())
