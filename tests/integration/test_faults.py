#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What happens to jobs, libraries and the machine while npuscope is at it: one clear line
at most, nothing lost uncounted, the job as it is alone. Witnesses: the jobs' own numbers
of calls, their results, other tracers."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from harness import (DONE, FAILED, NPUSCOPE, PARTIAL, SANITIZED, Case, Result, Running, Session, Skip, cpu_seconds,
                     add_test, build_library, catalogue, code_at, environment, main, need, need_job, need_npusim,
                     need_program, need_root, pid_list, ranks_of, test, wait_until)
from records import API

SYNC = "aclrtSynchronizeDevice"
# after the start of npuscope: before, during and after its attaching
MOMENTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


def loader(case: Case, *libs: Path) -> Running:
    job = case.start([need_job("loader_job")], env=environment(libs=libs))
    job.wait_for("^ready")
    return job


def send(job: Running, line: str, answer: str) -> None:
    job.send(line)
    job.wait_for("^" + re.escape(answer))


def library_of(case: Case) -> Path:
    need_root()
    return build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))


def loaded(case: Case, library: Path) -> Running:
    job = loader(case)
    send(job, f"load {library}", "loaded")
    return job


def counted(session: Session, pid: int) -> int:
    return sum(e.probe == catalogue()[SYNC][0] for e in session.of(API, pid))


def quit_job(*jobs: Running) -> None:
    for job in jobs:
        job.send("quit 3")
        assert job.wait() == 3, f"{job.process.returncode}: {job.out}"


def about(result: Result, *words: str) -> list[str]:
    """Complaints that have all of the words."""
    return [line for line in result.complaints if all(word in line for word in words)]


# ---- the job, while npuscope attaches ----------------------------------------------------------------------

def ended_while_attaching(case: Case, how: Callable[[Running], None]) -> None:
    library = library_of(case)
    for number, moment in enumerate(MOMENTS):
        out = case.path(f"out{number}")
        job = loaded(case, library)
        run = case.record("-p", job.pid, "-o", out, "-d", "20s", "--export", "none", wait=False)
        time.sleep(moment)
        how(job)
        job.wait()
        result = run.result().expect(DONE, PARTIAL, FAILED)
        if result.status == FAILED:
            assert len(result.complaints) == 1 and str(job.pid) in result.err, result.err
            assert not out.exists() or not list(out.iterdir()), "half a session"
        else:
            assert result.session.json["end_reason"] == "targets exited", result.session.json["end_reason"]


add_test("exits_while_attaching", lambda case: ended_while_attaching(case, lambda job: job.send("quit 3")))
add_test("killed_while_attaching", lambda case: ended_while_attaching(case, lambda job: job.signal(signal.SIGKILL)))


@test
def execs_while_attaching(case: Case) -> None:
    """The process becomes another program at any moment: that program's
    calls are all there once it is probed."""
    library = library_of(case)
    for number, moment in enumerate(MOMENTS):
        out = case.path(f"out{number}")
        job = case.start(["sh", "-c", f"echo waiting; read x; exec '{need_job('loader_job')}'"],
                         env=environment(libs=[library.parent]))
        job.wait_for("^waiting")
        run = case.record("-p", job.pid, "-o", out, "--export", "none", wait=False)
        time.sleep(moment)
        job.send("now")
        job.wait_for("^ready")
        run.wait_for("^npuscope: recording", err=True)
        send(job, f"load {library}", "loaded")
        wait_until(lambda o=out: any(Session(p).json["libraries"] for p in o.glob("npuscope_*")), "the probes")
        send(job, f"call {SYNC} 77", "called")
        quit_job(job)
        session = run.result().expect(DONE, PARTIAL).session
        assert counted(session, job.pid) == 77, f"exec after {moment} s: {counted(session, job.pid)} calls"
        assert session.process(job.pid)["comm"] == "loader_job", session.process(job.pid)


@test
def stopped_while_attaching(case: Case) -> None:
    """SIGSTOP before the attach: npuscope does not wait for the job, and sees it when it goes on."""
    library = library_of(case)
    job = loaded(case, library)
    job.signal(signal.SIGSTOP)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    time.sleep(0.3)
    job.signal(signal.SIGCONT)
    send(job, f"call {SYNC} 210", "called")
    quit_job(job)
    assert counted(run.result().expect(DONE, PARTIAL).session, job.pid) == 210


@test
def stopped_with_helper(case: Case) -> None:
    """A stopped job's helper cannot answer: the capture begins and ends all the
    same, with a line, and so does the job."""
    need_npusim()
    job = case.sim_job("--ranks", 1, "--steps", 60)
    pid = ranks_of(job)[0]
    os.kill(pid, signal.SIGSTOP)
    # It would never end if it waited for the helper.
    result = case.record("-p", pid, "-d", "1s", "-o", case.dir, "--export", "none").result().expect(DONE, PARTIAL)
    os.kill(pid, signal.SIGCONT)
    assert job.wait(90) == 0, job.err
    assert len(about(result, f"pid {pid}")) <= 1, result.err


@test
def stopped_while_captured(case: Case) -> None:
    """Stopped in the middle and at the end of a capture: the end does
    not wait for it, what it did is there."""
    library = library_of(case)
    job = loaded(case, library)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    send(job, f"call {SYNC} 120", "called")
    job.signal(signal.SIGSTOP)
    run.signal(signal.SIGINT)
    result = run.result().expect(DONE, PARTIAL)  # which it would never be if the job were waited for
    job.signal(signal.SIGCONT)
    assert counted(result.session, job.pid) == 120
    send(job, "work 10", "worked")
    quit_job(job)


@test
def every_cpu_is_busy(case: Case) -> None:
    """The job and others use all CPUs: nothing is lost, and the job computes the same."""
    library = library_of(case)
    others = [case.start(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]
    alone, job = loaded(case, library), loaded(case, library)
    send(alone, "work 20000", "worked")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    send(job, f"call {SYNC} 20000", "called")
    send(job, "work 20000", "worked")
    quit_job(job, alone)
    session = run.result().expect(DONE, PARTIAL).session
    for other in others:
        other.kill()
    assert counted(session, job.pid) == 20000 and not session.dropped()
    assert re.findall("^worked.*", job.out, re.M) == re.findall("^worked.*", alone.out, re.M)


@test
def four_thousand_threads(case: Case) -> None:
    """All alive at once: each call of each thread, under its own number."""
    library = library_of(case)
    job = case.start([need_job("threads_job"), library, 4096, 5])
    try:
        job.wait_for("^ready")
    except AssertionError as error:
        raise Skip(f"needs 4,096 threads: {job.out}") from error
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--host-sys", "none")
    job.send("")
    job.wait_for("^called 20480")
    assert job.wait() == 4
    session = run.result().expect(DONE, PARTIAL).session
    assert counted(session, job.pid) + session.json["drops"]["ring"]["api"] == 4096 * 5
    assert not session.dropped()
    assert len({e.tid for e in session.of(API, job.pid)}) == 4096


@test
def ring_too_small(case: Case) -> None:
    """What did not fit is counted to the last call, on the terminal as in the session."""
    library = library_of(case)
    job = loaded(case, library)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--ring-size", "4K", "--host-sys", "none")
    run.signal(signal.SIGSTOP)  # nobody reads the ring
    send(job, f"call {SYNC} 30000", "called")
    run.signal(signal.SIGCONT)
    quit_job(job)
    result = run.result().expect(PARTIAL)
    lost = result.session.json["drops"]["ring"]["api"]
    assert lost > 0, "no loss in the smallest ring: this test proves nothing"
    assert counted(result.session, job.pid) + lost == 30000
    assert len(about(result, "records were lost", "--ring-size")) == 1, result.err


# ---- libraries ---------------------------------------------------------------------------------------------

@test
def no_known_symbol(case: Case) -> None:
    """A library of the right name and nothing in it that could be probed."""
    need_root()
    need_program("gcc", "gcc")
    case.path("empty.c").write_text("int nobody_knows(void) { return 1; }\n")
    library = case.path("libacl_rt.so")
    case.run(["gcc", "-shared", "-fPIC", case.path("empty.c"), "-o", library]).expect(0)
    job = loaded(case, library)
    result = case.record("-p", job.pid, "-d", "300ms", "-o", case.dir, "--export", "none").result().expect(PARTIAL)
    assert len(about(result, str(library), "none of the functions that npuscope knows")) == 1, result.err
    quit_job(job)


@test
def replaced_while_captured(case: Case) -> None:
    """An upgrade in the middle: the running process keeps the deleted file,
    the child it starts gets the new one."""
    library = library_of(case)
    new = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("new"))
    old_job = loaded(case, library)
    later = case.start(["sh", "-c", f"echo waiting; read x; exec '{need_job('loader_job')}'"])
    later.wait_for("^waiting")
    run = case.record("-p", pid_list([old_job.pid, later.pid]), "-o", case.dir, "--export", "none")
    os.rename(new, library)
    later.send("now")
    later.wait_for("^ready")
    send(later, f"load {library}", "loaded")
    wait_until(lambda: any(len(Session(p).json["libraries"]) == 2 for p in case.dir.glob("npuscope_*")), "both files")
    send(old_job, f"call {SYNC} 41", "called")
    send(later, f"call {SYNC} 43", "called")
    quit_job(old_job, later)
    session = run.result().expect(DONE, PARTIAL).session
    assert (counted(session, old_job.pid), counted(session, later.pid)) == (41, 43)
    assert len({lib["ino"] for lib in session.json["libraries"]}) == 2


@test
def two_layouts_at_once(case: Case) -> None:
    """Old CANN has the functions in libascendcl.so, new CANN in libacl_rt.so: two jobs, one capture."""
    need_root()
    libraries = [build_library(case, "acl_rt_lib.c", name, case.path(where)) for name, where in
                 (("libascendcl.so", "old"), ("libacl_rt.so", "new"))]
    jobs = [loaded(case, library) for library in libraries]
    run = case.record("-p", pid_list([job.pid for job in jobs]), "-o", case.dir, "--export", "none")
    for i, job in enumerate(jobs):
        send(job, f"call {SYNC} {51 + i}", "called")
    quit_job(*jobs)
    session = run.result().expect(DONE, PARTIAL).session
    assert [counted(session, job.pid) for job in jobs] == [51, 52]
    assert sorted(lib["path"] for lib in session.json["libraries"] if lib["probes"]) == sorted(map(str, libraries))


EHDR, PHDR, SHDR, SYM = struct.Struct("<16sHHIQQQIHHHHHH"), 56, 64, 24


def patched(data: bytes, at: int, fmt: str, *values: int) -> bytes:
    new = bytearray(data)
    struct.pack_into("<" + fmt, new, at, *values)
    return bytes(new)


def sections(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """(offset of the header, type, offset, size, link)"""
    shoff, shnum = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    found = []
    for i in range(shnum):
        at = shoff + i * SHDR
        kind = struct.unpack_from("<I", data, at + 4)[0]
        offset, size, link = struct.unpack_from("<QQI", data, at + 24)
        found.append((at, kind, offset, size, link))
    return found


def hostile_files(good: bytes) -> dict[str, bytes]:
    """Name -> a file made of a good library."""
    table = sections(good)
    dynsym = next(s for s in table if s[1] == 11)
    dynstr = table[dynsym[4]]
    phoff = struct.unpack_from("<Q", good, 32)[0]
    loads = [phoff + i * PHDR for i in range(struct.unpack_from("<H", good, 56)[0])
             if struct.unpack_from("<I", good, phoff + i * PHDR)[0] == 1]
    code = next(at for at in loads if struct.unpack_from("<I", good, at + 4)[0] & 1)
    files = {f"cut_at_{n}": good[:n] for n in (0, 3, 16, 64, 200, 4096, len(good) // 2, len(good) - 1)}
    files["segment_beyond_the_end"] = patched(good, code + 8, "Q", 1 << 40)
    files["segment_that_wraps"] = patched(good, code + 16, "Q", (1 << 64) - 0x800)
    files["segment_of_all_memory"] = patched(patched(good, code + 16, "Q", 0), code + 32, "QQ", (1 << 64) - 1,
                                             (1 << 64) - 1)
    files["segments_that_overlap"] = patched(good, loads[0] + 4, "I", 5)
    files["sections_65535"] = patched(good, 60, "H", 65535)
    files["sections_in_the_first"] = patched(patched(good, 60, "H", 0), table[0][0] + 32, "Q", 1 << 32)
    files["sections_beyond_the_end"] = patched(good, 40, "Q", 1 << 62)
    files["segments_65535"] = patched(good, 56, "H", 65535)
    files["names_without_end"] = good[:dynstr[2]] + good[dynstr[2]:dynstr[2] + dynstr[3]].replace(b"\0", b"A") + \
        good[dynstr[2] + dynstr[3]:]
    files["names_elsewhere"] = patched(good, dynsym[0] + 40, "I", 0xFFFFFFF0)
    files["symbols_of_odd_size"] = patched(good, dynsym[0] + 56, "Q", 1)
    files["symbols_over_everything"] = patched(good, dynsym[0] + 24, "QQ", 0, len(good))
    # A thousand symbol tables, each of the whole file.
    one = bytearray(good[dynsym[0]:dynsym[0] + SHDR])
    struct.pack_into("<QQ", one, 24, dynsym[2], dynsym[3])
    many = good + b"\0" * (-len(good) % 8)
    headers = b"".join(good[s[0]:s[0] + SHDR] for s in table) + bytes(one) * 60000
    files["tables_60000"] = patched(patched(many + headers, 40, "Q", len(many)), 60, "H", len(table) + 60000)
    # Where the first functions are, there is nothing.
    beyond = good
    for i in range(1, dynsym[3] // SYM):
        at = dynsym[2] + i * SYM
        if good[at + 4] & 15 == 2 and i % 2:
            beyond = patched(beyond, at + 8, "Q", 0x7FFFFFFFFFFF)
    files["functions_beyond_the_end"] = beyond
    return files


def hostile(case: Case, program: Path) -> None:
    """A job maps damaged files under CANN's names: a line for each at most, and its
    good library as if they were not there."""
    library = library_of(case)
    need(program.exists(), f"{program}: make SAN=1 all")
    files = hostile_files(library.read_bytes())
    job = loaded(case, library)
    for name, data in files.items():
        folder = case.path(name)
        folder.mkdir()
        (folder / "libacl_rt.so").write_bytes(data)
        if data:
            send(job, f"map {folder}/libacl_rt.so", "mapped")
    run = case.record("-p", job.pid, "-o", case.path("out"), "--export", "none", program=program)
    elapsed = cpu_seconds(run.pid)
    assert elapsed < 15, f"{elapsed:.1f} s of CPU time to attach"
    send(job, f"call {SYNC} 333", "called")
    quit_job(job)
    result = run.result().expect(DONE, PARTIAL)
    assert counted(result.session, job.pid) == 333
    for name in files:
        assert len(about(result, f"/{name}/")) <= 1, about(result, f"/{name}/")
    assert about(result, "/cut_at_64/"), result.err


add_test("hostile_files", lambda case: hostile(case, NPUSCOPE))
add_test("hostile_files_sanitized", lambda case: hostile(case, SANITIZED))


@test
def name_of_64_kib(case: Case) -> None:
    """An operator of that name: too long to be one, a line reports that
    it is left out; the others are probed."""
    need_root()
    compiler = need_program("gcc", "gcc")
    long_name = "aclnn" + "x" * 65531
    case.path("lib.c").write_text("static volatile int sink;\n" + "".join(
        f"int {name}GetWorkspaceSize(void) {{ return sink++; }}\nint {name}(void) {{ sink += 2; return sink; }}\n"
        for name in (long_name, "aclnnShort")))
    case.path("base.c").write_text("int aclnnBase(void) { return 1; }\n")
    library, base = case.path("libopapi_math.so"), case.path("libnnopbase.so")
    case.run([compiler, "-O1", "-fPIC", "-shared", case.path("lib.c"), "-o", library]).expect(0)
    case.run([compiler, "-fPIC", "-shared", case.path("base.c"), "-o", base]).expect(0)
    job = loader(case)
    for path in (library, base):
        send(job, f"load {path}", "loaded")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    send(job, "call aclnnShort 9", "called")
    quit_job(job)
    result = run.result().expect(DONE, PARTIAL)
    assert len(about(result, "1 operators", "longer than")) == 1, result.err[:3000]
    assert len(result.session.of(3, job.pid)) == 9
    assert set(result.session.strings.values()) >= {"aclnnShort"}


# ---- the machine -------------------------------------------------------------------------------------------

@test
def cpu_goes_offline(case: Case) -> None:
    """A CPU leaves and comes back during a capture: calls on all CPUs are there."""
    library = library_of(case)
    switch = Path("/sys/devices/system/cpu/cpu1/online")
    need(switch.exists() and os.access(switch, os.W_OK), "a second CPU that can be switched off")
    job = loaded(case, library)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    send(job, f"call {SYNC} 100", "called")
    try:
        try:
            switch.write_text("0")
        except OSError as error:
            run.signal(signal.SIGINT)
            raise Skip(f"needs a CPU that can be switched off: {error}") from error
        job.send(f"call {SYNC} 200")
        time.sleep(0.5)
    finally:
        if switch.read_text().strip() == "0":
            switch.write_text("1")
    job.wait_for(f"^called {SYNC} 200")
    send(job, f"call {SYNC} 300", "called")
    quit_job(job)
    session = run.result().expect(DONE, PARTIAL).session
    assert counted(session, job.pid) == 600 and not session.dropped()


def has_probe(pid: int, library: Path) -> bool:
    """Is the function's first instruction in memory another than in the file?"""
    symbols = subprocess.run([need_program("nm", "binutils"), "-D", library], capture_output=True, text=True,
                             check=True).stdout
    found = re.search(rf"^([0-9a-f]+) T {SYNC}$", symbols, re.M)
    assert found, symbols
    offset = int(found.group(1), 16)  # code stands in the file where it stands in memory
    return code_at(pid, str(library), offset, 1) != library.read_bytes()[offset:offset + 1]


def another_tracer(case: Case, start: Callable[[Case, Path, Path], Running],
                   total: Callable[[Running, Path], int]) -> None:
    """It has a probe on the same function before we come and after we went: both see
    every call, neither breaks the other."""
    library = library_of(case)
    job = loaded(case, library)
    log = case.path("tracer.log")
    tracer = start(case, library, log)
    wait_until(lambda: not tracer.alive() or has_probe(job.pid, library), "the other tracer's probe")
    if not tracer.alive():
        raise Skip(f"needs another tracer that works: {tracer.err}")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    send(job, f"call {SYNC} 500", "called")
    run.signal(signal.SIGINT)
    session = run.result().expect(DONE, PARTIAL).session
    send(job, f"call {SYNC} 70", f"called {SYNC} 70")
    quit_job(job)
    assert counted(session, job.pid) == 500
    tracer.signal(signal.SIGINT)
    tracer.wait()
    assert total(tracer, log) == 570


def start_bpftrace(case: Case, library: Path, log: Path) -> Running:
    tool = need_program("bpftrace", "bpftrace")
    return case.start([tool, "-o", log, "-e", f"uprobe:{library}:{SYNC} {{ @ = count(); }}"], stdin=subprocess.DEVNULL)


def bpftrace_total(_tracer: Running, log: Path) -> int:
    found = re.search(r"^@: (\d+)$", log.read_text(), re.M)
    return int(found.group(1)) if found else -1


def start_perf(case: Case, library: Path, _log: Path) -> Running:
    tool = need_program("perf", "linux-perf")
    event = f"nps_test_{os.getpid()}"
    made = case.run([tool, "probe", "-q", "-x", library, f"{event}={SYNC}"])
    if made.status:
        raise Skip(f"needs perf probe: {made.err.strip().splitlines()[:1]}")
    name = f"probe_libacl_rt:{event}"
    case.at_end.append(lambda: subprocess.run([tool, "probe", "-q", "-d", name], check=False, capture_output=True)
                       and None)
    return case.start([tool, "stat", "-a", "-x", ",", "-e", name, "sleep", "60"], stdin=subprocess.DEVNULL)


def perf_total(tracer: Running, _log: Path) -> int:
    found = re.search(r"^(\d+),", tracer.err, re.M)
    return int(found.group(1)) if found else -1


add_test("bpftrace_on_the_same_function", lambda case: another_tracer(case, start_bpftrace, bpftrace_total))
add_test("perf_on_the_same_function", lambda case: another_tracer(case, start_perf, perf_total))


if __name__ == "__main__":
    sys.exit(main())
