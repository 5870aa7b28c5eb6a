#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`record --inject` loads the helper library into jobs that run, and they notice nothing; where it cannot,
the job is as it was. Witnesses: what the jobs find changed in themselves (jobs/inject_job.c), their results
without us, the simulator's log, /proc before and after, strace.

NPUSCOPE_INJECT_ROUNDS: how often each is done, each time with a new job (1); killed
at every step from 100 on, else at some.
"""

import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Optional

from harness import AGENT, DONE, FAILED, JOB_SOURCES, NPUSCOPE, PARTIAL, SIM, SOAK, USAGE, Case, Result, Running, \
    add_test, environment, main, mappings, need, need_job, need_mounts, need_npusim, need_program, pid_list, ranks_of, \
    test, threads_of

ROUNDS = int(os.environ.get("NPUSCOPE_INJECT_ROUNDS", "1"))
SECONDS = 120 + 12 * ROUNDS
LIBRARY = SIM / "cann" / "latest" / f"{os.uname().machine}-linux" / "lib64" / "libacl_rt.so"
MEMORY = "/memfd:npuscope-agent (deleted)"
LOADED = re.compile(r"helper library is loaded: thread \d+ was led astray for ([\d.]+) ms; (\d+) stops, the longest of "
                    r"([\d.]+) ms")
REFUSED = re.compile(r"^npuscope: pid \d+: the helper library was not loaded: (.*): the job goes on as it was$", re.M)


def start_job(case: Case, mode: str, seconds: float = 60, program: Optional[Path] = None) -> Running:
    """Start inject_job, for that long; MODE python: the one in CPython."""
    need_npusim()
    what = [sys.executable, JOB_SOURCES / "inject_job.py"] if mode == "python" \
        else [program or need_job("inject_job"), mode]
    job = case.start([*what, seconds, LIBRARY], env=environment(sim=True))
    job.wait_for(r"^ready \d+$")
    return job


def inject(case: Case, pid: int, *more: str) -> Result:
    need(AGENT.exists(), "the helper library: make")
    return case.record("--inject", "-d", "100ms", "--host-sys", "none", "--export", "none", "-o", case.dir, "-p",
                       str(pid),
                       *more, wait=False).result(60)


def snapshot(pid: int) -> tuple[object, object, object]:
    """Mappings, threads and descriptors."""
    return mappings(pid), sorted(threads_of(pid)), sorted(os.listdir(f"/proc/{pid}/fd"))


def has_helper(pid: int) -> bool:
    return any(m[4] == MEMORY for m in mappings(pid)) and "npuscope_agent" in threads_of(pid).values()


def expect_loaded(run: Result, pid: int) -> tuple[float, float]:
    """The longest stop of a thread of it, and how long one was led astray, ms."""
    found = LOADED.search(run.err)
    assert found and has_helper(pid), run
    return float(found.group(3)), float(found.group(1))


def expect_unhurt(job: Running) -> int:
    """End the job: its own account of itself; how late its slowest sleep ended, us."""
    assert job.process.stdin
    job.process.stdin.close()
    found = job.wait_for(r"^result \w+ rounds=(\d+) wrong=(\d+) eintr=(\d+) slowest_us=(\d+)$")
    assert int(found.group(1)) > 0 and found.group(2) == "0" and found.group(3) == "0", found.group(0)
    return int(found.group(4))


def report(name: str, times: list[tuple[float, float]]) -> None:
    for what, values in zip(("longest stop", "led astray"), zip(*times)):
        print(f"{name}: {what}: median {statistics.median(values):.2f} ms, worst {max(values):.2f} ms of {len(values)}",
              file=sys.stderr)


def mode_test(mode: str) -> None:
    def run(case: Case) -> None:
        times, late = [], []
        for _ in range(ROUNDS):
            job = start_job(case, mode)
            times.append(expect_loaded(inject(case, job.pid), job.pid))
            late.append(expect_unhurt(job))
            assert job.result().status == 0
        report(mode, times)
        print(f"{mode}: slowest sleep {max(late)} us late", file=sys.stderr)
    run.__doc__ = "A job in CPython." if mode == "python" else f"A job whose only thread does nothing but {mode}."
    add_test(f"job_in_{mode}_notices_nothing", run, SECONDS)


for _mode in ("nanosleep", "clock", "poll", "select", "futex", "epoll", "recv", "read", "malloc", "vfork", "spin",
              "masked",
              "filter_clone3", "python"):
    mode_test(_mode)


@test
def helper_is_scheduled_as_any_thread(case: Case) -> None:
    """Whatever the thread was that made it: here one that gets only what others leave."""
    job = start_job(case, "nanosleep")
    os.sched_setscheduler(job.pid, os.SCHED_IDLE, os.sched_param(0))
    expect_loaded(inject(case, job.pid), job.pid)
    helper = [tid for tid, name in threads_of(job.pid).items() if name == "npuscope_agent"]
    assert len(helper) == 1 and os.sched_getscheduler(helper[0]) == os.SCHED_OTHER
    assert os.sched_getscheduler(job.pid) == os.SCHED_IDLE
    expect_unhurt(job)


FORKED = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1])
child = os.fork()
if child:
    os.waitpid(child, 0)
else:
    print("child", os.getpid(), flush=True)
    sys.stdin.read()
"""


@test
def forked_child_gets_a_helper_of_its_own(case: Case) -> None:
    """It has the library's code from its parent, but neither the helper's thread nor its memory."""
    need_npusim()
    need(AGENT.exists(), "the helper library: make")
    job = case.start([sys.executable, "-c", FORKED, LIBRARY], env=environment(sim=True, agent=True))
    child = int(job.wait_for(r"^child (\d+)$").group(1))
    assert has_helper(job.pid) and not has_helper(child)
    expect_loaded(inject(case, child), child)


@test
def two_at_once_load_it_once(case: Case) -> None:
    job = start_job(case, "malloc")
    args = ("--inject", "-d", "100ms", "--host-sys", "none", "--export", "none", "-o", case.dir, "-p", str(job.pid))
    runs = [run.result(60) for run in [case.record(*args, wait=False) for _ in range(4)]]
    assert has_helper(job.pid) and sum(bool(LOADED.search(run.err)) for run in runs) == 1, [run.err for run in runs]
    assert len([m for m in mappings(job.pid) if m[4] == MEMORY]) == 1
    assert list(threads_of(job.pid).values()).count("npuscope_agent") == 1
    expect_unhurt(job)


def refuse(case: Case, pid: int, why: str) -> None:
    """The job is refused for that reason, and is as it was."""
    before = snapshot(pid)
    run = inject(case, pid).expect(PARTIAL, DONE)
    found = REFUSED.search(run.err)
    assert found and re.search(why, found.group(1)), f"not refused for {why!r}: {run}"
    assert run.status == PARTIAL, run
    after = snapshot(pid)
    assert after == before, f"the job changed: {set(map(str, after)) ^ set(map(str, before))}"


def filter_test(mode: str, why: str) -> None:
    def run(case: Case) -> None:
        job = start_job(case, mode)
        time.sleep(0.2)  # its filter comes with the second round
        refuse(case, job.pid, why)
        expect_unhurt(job)
    run.__doc__ = f"Found out without trying: {mode}."
    add_test(f"{mode}_is_refused", run)


filter_test("filter_mmap", "seccomp. refuses mmap")
filter_test("filter_memfd", "seccomp. refuses memfd_create")


@test
def handler_that_interrupted_the_allocator_is_left_alone(case: Case) -> None:
    """Its only thread holds the allocator's lock, though it runs code of the job's own."""
    job = start_job(case, "handler", 12)
    job.wait_for("^in the allocator$")
    refuse(case, job.pid, "no thread was at a safe point")
    expect_unhurt(job)


def compile_job(case: Case, *compiler: str) -> Path:
    out = case.path("job")
    case.run([*compiler, "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-DNO_LOADER", "-idirafter", "/usr/include",
              "-idirafter",
              f"/usr/include/{os.uname().machine}-linux-gnu", JOB_SOURCES / "inject_job.c", "-o", out]).expect(0)
    return out


@test
def job_of_musl_is_refused(case: Case) -> None:
    job = start_job(case, "nanosleep", 60, compile_job(case, need_program("musl-gcc", "musl-tools")))
    refuse(case, job.pid, "C library is musl")
    expect_unhurt(job)


@test
def static_job_is_refused(case: Case) -> None:
    job = start_job(case, "nanosleep", 60, compile_job(case, need_program("gcc", "gcc"), "-static"))
    refuse(case, job.pid, "no glibc")
    expect_unhurt(job)


@test
def job_under_a_debugger_is_refused(case: Case) -> None:
    job = start_job(case, "nanosleep")
    strace = case.start([need_program("strace", "strace"), "-p", job.pid], stdin=subprocess.DEVNULL)
    strace.wait_for("nanosleep", err=True)
    refuse(case, job.pid, f"pid {strace.pid} traces it")
    strace.signal(signal.SIGINT)
    expect_unhurt(job)


@test
def stopped_job_is_refused_and_stays_stopped(case: Case) -> None:
    job = start_job(case, "malloc")
    os.kill(job.pid, signal.SIGSTOP)
    time.sleep(0.2)
    refuse(case, job.pid, "it is stopped")
    assert Path(f"/proc/{job.pid}/stat").read_text().split()[2] == "T"
    os.kill(job.pid, signal.SIGCONT)
    expect_unhurt(job)


@test
def job_without_npu_is_refused(case: Case) -> None:
    job = case.start(["sh", "-c", "echo ready; read line"])
    job.wait_for("^ready$")
    before = snapshot(job.pid)
    run = inject(case, job.pid).expect(PARTIAL)
    assert "no NPU library is mapped" in run.err, run
    assert snapshot(job.pid) == before


@test
def command_line_is_checked(case: Case) -> None:
    case.npuscope("record", "--inject", "--", "true").expect(USAGE)
    case.npuscope("record", "--inject", "-a").expect(USAGE)
    case.npuscope("record", "--inject", "-p", "1", "--task-source", "host").expect(USAGE)
    ended = subprocess.Popen(["true"])
    ended.wait()
    case.npuscope("record", "--inject", "-p", ended.pid, "-o", case.dir).expect(FAILED)
    assert re.search(r"^  record --inject +yes ", case.npuscope("doctor").out, re.M)


@test
def job_without_access_to_the_library_gets_it(case: Case) -> None:
    """As in a container: its root does not hold the directory with the library."""
    need_mounts()
    nsenter = need_program("nsenter", "util-linux")
    need_npusim()
    job = case.start(["unshare", "-m", "--propagation", "private", need_job("inject_job"), "nanosleep", "60", LIBRARY],
                     env=environment(sim=True))
    pid = int(job.wait_for(r"^ready (\d+)$").group(1))
    case.run([nsenter, "-t", pid, "-m", "mount", "-t", "tmpfs", "none", AGENT.resolve().parent]).expect(0)
    expect_loaded(inject(case, pid), pid)
    left = [os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()]
    assert not any("memfd" in f for f in left), left
    expect_unhurt(job)


# ---- the demo ------------------------------------------------------------------

def timed_tasks(case: Case, session: Path) -> tuple[int, int]:
    """Tasks of a capture, and how many of them the device timed."""
    run = case.analyze(session, "--export", "text", seconds=100).expect(DONE, PARTIAL)
    found = re.search(r"device tasks: (\d+) \((\d+) timed by the device", run.err)
    assert found, run
    return int(found.group(1)), int(found.group(2))


def checksum(job: Running) -> str:
    return job.wait_for(r"^result .*$").group(0)


def same_without_us(case: Case, job: Running, python: bool) -> None:
    """End the job; one that makes as many steps with nobody near it comes to the same result."""
    os.kill(ranks_of(job)[0], signal.SIGTERM)
    found = checksum(job)
    assert job.result().status == 0
    steps = re.search(r" steps=(\d+) ", found)
    assert steps and int(steps.group(1)) > 0, found
    plain = case.sim_job("--ranks", 1, "--steps", steps.group(1), agent=False, python=python, wait=False)
    assert plain.wait(100) == 0 and checksum(plain) == found, f"{found!r} was {plain.out!r}"


def demo_test(name: str, python: bool) -> None:
    def run(case: Case) -> None:
        times = []
        for _ in range(ROUNDS):
            job = case.sim_job("--ranks", 1, agent=False, python=python)
            pid = ranks_of(job)[0]
            load = [case.start(["sh", "-c", "while :; do :; done"]) for _ in range(3)]
            # The results later: there is no load then.
            record = ("--inject", "--export", "none", "-o", case.dir, "-p", str(pid), "-d")
            capture = case.record(*record, "1s", wait=False).result(100)
            for busy in load:
                busy.kill()
            capture.expect(DONE, PARTIAL)
            times.append(expect_loaded(capture, pid))
            before = snapshot(pid)
            again = case.record(*record, "500ms", wait=False).result(100)
            assert "it has the helper library" in again.err and not LOADED.search(again.err), again
            assert snapshot(pid)[1] == before[1], "a thread more"
            same_without_us(case, job, python)
            tasks, timed = timed_tasks(case, capture.session.path)
            assert 0 < timed and timed > tasks * 0.9, capture
            assert timed_tasks(case, again.session.path)[1] > 0, again
            shutil.rmtree(capture.session.path)
            shutil.rmtree(again.session.path)
        report(name, times)
    run.__doc__ = f"npusim's {name}, under load until it is captured: same result, tasks timed by the device, " \
                  "a second capture " \
                  "needs nothing."
    add_test(f"demo_in_{name}_is_the_same", run, SECONDS + 20 * ROUNDS)


demo_test("c", False)
demo_test("python", True)


# ---- our own death -----------------------------------------------------------------

STEPS = "ptrace,pwrite64,process_vm_readv,process_vm_writev,wait4,timer_settime"


def killed_at(case: Case, pid: int, step: int) -> bool:
    """Inject, and kill whoever makes that call when it does it for the Nth time. Was anybody killed?"""
    strace = need_program("strace", "strace")
    run = case.run([strace, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={STEPS}", "-e",
                    f"inject={STEPS}:signal=KILL:when={step}",
                    NPUSCOPE, "record", "-q", "--inject", "-d", "1ms", "--host-sys", "none", "--level", "none",
                    "--export", "none",
                    "-o", case.dir, "-p", pid])
    return "has ended" in run.err or run.status < 0 or run.status > 128


DEATHS = ("spin", "nanosleep", "malloc")


def death_test(mode: str) -> None:
    def run(case: Case) -> None:
        # There are about 45. Each mode has others of them, and all in make soak.
        every = 1 if ROUNDS >= 100 or SOAK else 9
        steps = list(range(1 + DEATHS.index(mode) * every // 3, 400, every))
        job, killed = start_job(case, mode, 600), 0
        for step in steps:
            if has_helper(job.pid):
                job.kill()
                job = start_job(case, mode, 600)
            if not killed_at(case, job.pid, step):
                break
            killed += 1
            assert job.process.poll() is None, \
                f"the job died when we were killed at step {step}: {job.process.returncode}"
        assert killed > 3, f"only {killed} of {steps}"
        job.kill()
        job = start_job(case, mode, 600)
        for step in random.Random(1).sample(range(1, steps[killed - 1]), 2):
            killed_at(case, job.pid, step)
        expect_unhurt(job)
        print(f"{mode}: killed {killed} times", file=sys.stderr)
    run.__doc__ = "Killed at any of its steps, the injector leaves a job that runs."
    add_test(f"killed_injector_leaves_job_in_{mode}_running", run, 240 + 4 * ROUNDS + (600 if SOAK else 0))


for _mode in DEATHS:
    death_test(_mode)


if __name__ == "__main__":
    sys.exit(main())
