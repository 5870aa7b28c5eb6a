#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""System calls, sleeping and running time. Witnesses: the job's own
counts, strace, getrusage, clock_gettime."""

import re
import sys
import time
from collections import Counter, defaultdict
from typing import Optional

from harness import (Case, Result, Session, build_library, environment, main, need_job, need_program, need_root,
                     stolen_by_host, test)
from records import EXEC, EXIT, FORK, PROC, SCHED, SYSCALL, SYSCALL_SUM, Event

X86 = {"getppid": 110, "getpriority": 140, "openat": 257, "write": 1, "futex": 202, "clock_nanosleep": 230}
ARM = {"getppid": 173, "getpriority": 141, "openat": 56, "write": 64, "futex": 98, "clock_nanosleep": 115}
NR = X86 if __import__("platform").machine() == "x86_64" else ARM
FUTEX_WAIT, FUTEX_WAKE = 0, 1
DEAD = 0x10  # state of a thread at its last switch
NAP_NS, LONG_NAP_NS, LONG_NAPS = 2_000_000, 30_000_000, 10

Facts = dict[str, dict[int, list[int]]]  # name -> pid -> values


def facts_of(text: str) -> Facts:
    found: Facts = defaultdict(lambda: defaultdict(list))
    for name, pid, value in re.findall(r"^(\w+) (\d+) (\d+)$", text, re.M):
        found[name][int(pid)].append(int(value))
    return found


def capture(case: Case, *options: str, command: bool = False, threshold: str = "0"
            ) -> tuple[Facts, int, Session, Result]:
    """Run the job under npuscope; its facts, its pid, the session."""
    need_root()
    options = ("--osrt-threshold", threshold, *options)
    program = need_job("osrt_job")
    if command:
        case.path("go").write_text("go\n")
        with open(case.path("go"), "rb") as go:
            run = case.record("-o", case.dir, "--export", "none", *options, "--", program, stdin=go, wait=False)
        result = run.result()
        text = result.out
    else:
        job = case.start([program])
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", *options)
        job.send("go")
        assert job.wait() == 5, f"the job ended with {job.process.returncode}"
        result = run.result()
        text = job.out
    result.expect(3)  # no CANN library in this job
    pid = next(iter(facts_of(text)["cpu_ns"]))
    return facts_of(text), pid, result.session, result


def count(session: Session, pid: int, name: str, first: Optional[int] = None) -> int:
    return sum(e.nr == NR[name] and first in (None, e.body.arg[0]) for e in session.of(SYSCALL, pid))


def family(facts: Facts, pid: int) -> tuple[int, int, int]:
    child = facts["child"][pid][0]
    return pid, child, facts["child"][child][0]


def system_calls_are_counted(case: Case, command: bool) -> None:
    facts, pid, session, result = capture(case, command=command)
    assert session.dropped() == 0, f"records lost on a small job: {result.err}"
    for who in family(facts, pid):
        for name in ("getppid", "getpriority"):
            seen = count(session, who, name)
            assert seen == facts[name][who][0], f"{name} of {who}: {seen}, not {facts[name][who][0]}"
        writes = count(session, who, "write", facts["null_fd"][who][0])
        assert writes == facts["null_writes"][who][0], f"write of {who}: {writes}"


@test
def system_calls_attached(case: Case) -> None:
    system_calls_are_counted(case, command=False)


@test
def system_calls_from_the_start(case: Case) -> None:
    system_calls_are_counted(case, command=True)


def calls_by_number(session: Session) -> "Counter[int]":
    """Those that have a record, and those that were summed up."""
    calls = Counter(e.nr for e in session.of(SYSCALL))
    for e in session.of(SYSCALL_SUM):
        calls[e.nr] += e.body.count
    return calls


def compare_with_strace(case: Case, threshold: str) -> None:
    """Same job, counted by strace: same numbers, over the whole family."""
    strace = need_program("strace", "strace")
    # Without the helper, which would make calls of its own in the job.
    _facts, _pid, session, result = capture(case, "--task-source", "host", command=True, threshold=threshold)
    table = case.path("strace.txt")
    traced = case.start([strace, "-f", "-c", "-U", "name,calls", "-o", table, need_job("osrt_job")])
    traced.send("go")
    assert traced.wait() == 5, f"strace: {traced.err}"
    other = {name: int(calls) for name, calls in re.findall(r"^\s*(\w+)\s+(\d+)\s*$", table.read_text(), re.M)}
    ours = calls_by_number(session)
    assert session.dropped() == 0, result.err
    assert bool(session.of(SYSCALL_SUM)) == (threshold != "0")
    for name in ("getppid", "getpriority", "openat", "write"):
        assert ours[NR[name]] == other[name], f"{name}: {ours[NR[name]]}, strace says {other[name]}"
    # A sleep that a signal interrupts is started again; futex waits depend on who is first.
    assert abs(ours[NR["clock_nanosleep"]] - other["clock_nanosleep"]) <= 2, ours[NR["clock_nanosleep"]]


@test
def system_calls_against_strace(case: Case) -> None:
    compare_with_strace(case, "0")


@test
def sums_against_strace(case: Case) -> None:
    compare_with_strace(case, "10us")


@test
def sums_of_all_against_strace(case: Case) -> None:
    """All calls, sleeping ones too, are shorter than the threshold."""
    compare_with_strace(case, "3s")


@test
def sleeps_and_futex_waits(case: Case) -> None:
    facts, pid, session, _result = capture(case)
    naps = [e for e in session.of(SYSCALL, pid) if e.nr == NR["clock_nanosleep"] and e.tid == pid]
    assert len(naps) == facts["naps"][pid][0], len(naps)
    assert all(e.dur >= NAP_NS for e in naps), sorted(e.dur for e in naps)
    total, own = sum(e.dur for e in naps), facts["naps_wall_ns"][pid][0]
    assert 0.8 * own < total <= own, f"naps of {total} ns, the job measured {own}"

    address = facts["futex_address"][pid][0]
    futex = [e for e in session.of(SYSCALL, pid) if e.nr == NR["futex"] and e.body.arg[0] == address]
    assert facts["player0_waits"][pid][0] + facts["player1_waits"][pid][0] > 100, facts
    for player in ("player0", "player1"):
        mine = [e for e in futex if e.tid == facts[f"{player}_tid"][pid][0]]
        waits = [e for e in mine if e.body.arg[1] & 0xFF == FUTEX_WAIT]
        wakes = sum(e.body.arg[1] & 0xFF == FUTEX_WAKE for e in mine)
        assert len(waits) == facts[f"{player}_waits"][pid][0], f"{player}: {len(waits)} waits"
        assert wakes == facts[f"{player}_wakes"][pid][0], f"{player}: {wakes} wakes"
        waited, own = sum(e.dur for e in waits), facts[f"{player}_waited_ns"][pid][0]
        # The job's clock reads lie outside the call, and it can be preempted between them.
        assert 0.8 * own < waited <= own, f"{player}: waited {waited} ns, it measured {own}"


def slices(session: Session, pid: int, tid: Optional[int] = None) -> list[Event]:
    return [e for e in session.of(SCHED, pid) if tid in (None, e.tid)]


def close_to(found: int, own: int, share: float, slack: int, stolen: int = 0) -> bool:
    return -share * own - slack <= found - own <= share * own + slack + stolen


@test
def running_time(case: Case) -> None:
    """Tolerance 5 % and 10 ms: the job reads its clocks a little before its threads leave the CPU for good.
    They do not show what the host took from a CPU, during which one of them has it all the same."""
    stolen = stolen_by_host()
    facts, pid, session, _result = capture(case)
    stolen = stolen_by_host() - stolen
    spun = slices(session, pid, facts["spin_tid"][pid][0])
    found, own = sum(e.dur for e in spun), facts["spin_cpu_ns"][pid][0]
    assert close_to(found, own, 0.05, 10_000_000, stolen), \
        f"spinning thread: {found} ns on the CPU, it measured {own}, {stolen} stolen"
    wall = facts["spin_wall_ns"][pid][0]
    assert found <= wall + 10_000_000, f"spinning thread: {found} ns on the CPU, it lived {wall}"
    found, own = sum(e.dur for e in slices(session, pid)), facts["cpu_ns"][pid][0]
    assert close_to(found, own, 0.05, 20_000_000, stolen), \
        f"all threads: {found} ns on the CPU, getrusage says {own}, {stolen} stolen"
    brief = sum(sum(e.dur for e in slices(session, pid, tid)) for tid in facts["brief_tid"][pid])
    own = facts["brief_cpu_ns"][pid][0]
    assert close_to(brief, own, 0.1, 10_000_000, stolen), \
        f"brief threads: {brief} ns on the CPU, they measured {own}, {stolen} stolen"
    wall = facts["brief_wall_ns"][pid][0]
    assert brief <= wall + 10_000_000, f"brief threads: {brief} ns on the CPU, they lived {wall}"
    states = [e.body.state for e in slices(session, pid)]
    preempted, dead = states.count(0), states.count(DEAD)
    voluntary = len(states) - preempted - dead
    own = facts["switches"][pid][0]
    assert close_to(voluntary, own, 0.02, 10), f"{voluntary} slices ended by waiting, getrusage counts {own}"
    own = facts["preempted"][pid][0]
    assert close_to(preempted, own, 0.02, 10), f"{preempted} slices ended by preemption, getrusage counts {own}"
    ended = Counter(e.tid for e in slices(session, pid) if e.body.state == DEAD)
    assert max(ended.values()) == 1, f"ended more than once: {ended}"
    assert dead == len({e.tid for e in slices(session, pid)}), f"{dead} threads ended"


@test
def sleeping_time(case: Case) -> None:
    facts, pid, session, _result = capture(case)
    mine = sorted(slices(session, pid, facts["sleep_tid"][pid][0]), key=lambda e: e.start)
    slept = sum(e.body.runnable - e.body.off for e in mine if e.body.off and e.body.runnable)
    wall = facts["sleep_wall_ns"][pid][0]
    assert LONG_NAPS * LONG_NAP_NS * 0.99 <= slept <= wall + 5_000_000, f"slept {slept} of {wall} ns"
    for before, after in zip(mine, mine[1:]):
        assert before.start + before.dur <= after.start, "two slices of a thread overlap"
        slept = after.body
        assert not slept.runnable or slept.off <= slept.runnable <= after.start, "woken before it slept"
        assert slept.off == before.start + before.dur, "a slice says when the one before it ended"


SLEEPER = """
import os, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
r, w = os.pipe()
spinner = os.fork()
if not spinner:
    os.write(1, b"spinner %d\\n" % os.getpid())
    while True: pass
os.write(1, b"ready\\n")
input()
for i in range(100): time.sleep(0.002)
waker = os.fork()
if not waker:
    for i in range(20):
        time.sleep(0.002)
        os.write(w, b"x")
    os._exit(0)
for i in range(20): os.read(r, 1)
print("waker", waker, flush=True)
os.kill(spinner, 9)
"""


@test
def timers_are_nobody(case: Case) -> None:
    """A thread whose sleep a timer ends has no waker, though another thread always has the CPU
    then; one whom a thread wakes has it."""
    need_root()
    job = case.start([sys.executable, "-c", SLEEPER])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("go")
    waker = int(job.wait_for(r"^waker (\d+)").group(1))
    spinner = int(job.wait_for(r"^spinner (\d+)").group(1))
    session = run.result().session
    slept = [e for e in slices(session, job.pid, job.pid) if e.body.off and e.body.runnable]
    wakers = Counter(e.waker for e in slept)
    assert wakers[0] >= 90 and not wakers[spinner], f"of {len(slept)} sleeps: {wakers}, the spinner is {spinner}"
    assert wakers[waker] >= 15, f"{wakers}, it was woken 20 times by {waker}"


EXECUTING_THREAD = """
import os, sys, threading, time
def run():
    print("thread", threading.get_native_id(), flush=True)
    time.sleep(0.02)
    os.execv(sys.executable, [sys.executable, "-c", "import time; print('executed', flush=True); time.sleep(60)"])
print("ready", flush=True)
input()
threading.Thread(target=run).start()
time.sleep(60)
"""


@test
def a_thread_executes(case: Case) -> None:
    """One that is not the first takes the number of the first: nothing
    stays of its own, and its time goes on."""
    need_root()
    job = case.start([sys.executable, "-c", EXECUTING_THREAD])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("go")
    job.wait_for("^executed")
    old = int(job.wait_for(r"^thread (\d+)").group(1))
    time.sleep(0.1)  # it sleeps
    run.signal(2)
    session = run.result().session
    open_at_end = [e.tid for e in slices(session, job.pid) if e.flags & 0x20]
    assert open_at_end == [job.pid], \
        f"threads at the end: {open_at_end}; {old} is none of them, the process is {job.pid}"
    executed = next(e.start for e in session.of(PROC, job.pid) if e.what == EXEC)
    across = [e for e in slices(session, job.pid, job.pid) if e.start <= executed < e.start + e.dur]
    assert len(across) == 1 and across[0].body.off, \
        "the stretch in which it executed began before, with the thread's own number"


UNTIL = """
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
class Time(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
print("ready", flush=True)
input()
for clock, milliseconds in ((time.CLOCK_MONOTONIC, 30), (time.CLOCK_REALTIME, 40), (time.CLOCK_BOOTTIME, 50)):
    until = time.clock_gettime_ns(clock) + milliseconds * 1000000
    at = Time(until // 1000000000, until % 1000000000)
    assert libc.clock_nanosleep(clock, 1, ctypes.byref(at), None) == 0
at = Time(1, 0)
assert libc.clock_nanosleep(time.CLOCK_MONOTONIC, 1, ctypes.byref(at), None) == 0
"""


@test
def sleeps_until_a_moment(case: Case) -> None:
    """The time that such a call was given is what was left, not how long the host runs."""
    need_root()
    job = case.start([sys.executable, "-c", UNTIL])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--osrt-threshold", "0")
    job.send("go")
    assert job.wait() == 0, job.err
    naps = [e for e in run.result().session.of(SYSCALL, job.pid) if e.nr == NR["clock_nanosleep"]]
    assert [e.body.arg[0] for e in naps] == [1, 0, 7, 1], [e.body for e in naps]
    for event, milliseconds in zip(naps, (30, 40, 50, 0)):
        # It is queried a moment after the job has computed it; the sleep ends with it.
        left = event.body.arg[2]
        assert left <= milliseconds * 1_000_000 and left <= event.dur, (event.body, event.dur)
        assert bool(left) == bool(milliseconds), event.body


FOREIGN = """
int main(void)
{
	char c;

	if (read(0, &c, 1) != 1)
		return 1;
	for (int i = 0; i < 7; i++)
		syscall(-1);
	for (int i = 0; i < 5; i++)
		syscall(0xffff);
#if defined(__x86_64__)
	int pid = -1;

	for (int i = 0; i < 11; i++) /* getpid of 32-bit programs; 20 is writev elsewhere */
		__asm__ volatile("int $0x80" : "=a"(pid) : "a"(20) : "memory");
	return pid == getpid() ? 11 : 2;
#endif
	return 0;
}
"""


@test
def numbers_of_other_calls(case: Case) -> None:
    """Calls of 32-bit programs are numbered in another way: they are
    counted, not recorded under wrong names."""
    need_root()
    source, program = case.path("foreign.c"), case.path("foreign")
    source.write_text("#include <unistd.h>\n#include <sys/syscall.h>\n" + FOREIGN)
    case.run([need_program("gcc", "gcc"), "-D_GNU_SOURCE", "-Wno-pointer-to-int-cast", source, "-o", program]).expect(0)
    job = case.start([program])
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--osrt-threshold", "0")
    job.send("go")
    status = job.wait()
    # a kernel without them kills the program, or answers something else
    compat = status if status == 11 else 0
    result = run.result().expect(3)
    session = result.session
    assert session.json["foreign_syscalls"] >= 12 + compat, session.json["foreign_syscalls"]
    odd = [e.nr for e in session.of(SYSCALL, job.pid) if e.nr in (20, 0xFFFF)]
    assert not odd, f"told as calls of these numbers: {odd}"
    assert len([line for line in result.complaints if "32-bit" in line]) == 1, result.err


@test
def family_is_followed(case: Case) -> None:
    """Threads, a child by fork, a grandchild by fork and exec: seen, named, with their exit codes."""
    facts, pid, session, _result = capture(case)
    _, child, grandchild = family(facts, pid)
    forks = {(e.pid, e.body.child) for e in session.of(PROC) if e.what == FORK}
    assert (pid, child) in forks and (child, grandchild) in forks, forks
    assert [e.pid for e in session.of(PROC) if e.what == EXEC] == [grandchild]
    exits = {e.pid: e.body.exit_code for e in session.of(PROC) if e.what == EXIT}
    assert exits == {pid: 5 << 8, child: 6 << 8, grandchild: 7 << 8}, exits
    assert [session.process(p)["exit_code"] >> 8 for p in (pid, child, grandchild)] == [5, 6, 7]
    assert session.process(child)["ppid"] == pid and session.process(grandchild)["ppid"] == child
    assert session.process(grandchild)["cmdline"][1:] == ["leaf"], session.process(grandchild)["cmdline"]
    assert session.json["end_reason"] == "targets exited"


@test
def no_children(case: Case) -> None:
    need_root()
    job = case.start([need_job("osrt_job")])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--no-children")
    job.send("go")
    assert job.wait() == 5
    session = run.result().session
    assert {e.pid for e in session.of(SYSCALL)} == {job.pid}, "children were recorded"
    assert len(session.json["processes"]) == 1


@test
def no_osrt(case: Case) -> None:
    """--host-sys none: no system calls, no time slices, and the job does not pay for them."""
    need_root()
    where = case.path("lib")
    build_library(case, "acl_rt_lib.c", "libacl_rt.so", where)
    job = case.start([need_job("loader_job")], env=environment(libs=[where]))
    job.send("load libacl_rt.so")
    job.wait_for("^loaded")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--host-sys", "none")
    job.send("call aclrtSynchronizeDevice 50")
    job.send("quit 4")
    assert job.wait() == 4
    session = run.result().expect(0, 3).session
    assert not session.of(SYSCALL) and not session.of(SCHED)
    assert len(session.of(1)) == 50, len(session.of(1))


if __name__ == "__main__":
    sys.exit(main())
