#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A session that cannot be written, or that somebody deletes or renames: `record` reports it, with its
status. A capture that is killed before it began leaves nothing that `analyze` does not know."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import (DONE, FAILED, PARTIAL, Case, Result, Running, Session, add_test, build_library, main,
                     need_job, need_mounts, need_root, ranks_of, test, wait_until)

SYNC = "aclrtSynchronizeDevice"
OPTIONS = ("--task-source", "host", "--export", "none")


def loaded(case: Case) -> Running:
    """A job with CANN's library: a capture of it has exit status 0."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("loader_job")])
    job.wait_for("^ready")
    job.send(f"load {library}")
    job.wait_for("^loaded")
    return job


def work(job: Running, calls: int = 1000) -> None:
    job.send(f"call {SYNC} {calls}")
    job.wait_for(f"^called {SYNC} {calls}")


def failing(case: Case, **how: object) -> dict[str, str]:
    """Environment in which some calls of npuscope fail."""
    shim = build_library(case, "fail_calls_lib.c", "libfail_calls.so", case.path("shim"))
    return {**os.environ, "LD_PRELOAD": str(shim), **{f"FAIL_{k}": str(v) for k, v in how.items()}}


def session_of(out: Path) -> Path:
    (found,) = out.glob("npuscope_*")
    return found


def finished(job: Running, run: Running) -> Result:
    run.signal(signal.SIGINT)
    result = run.result()
    job.send("quit 3")
    assert job.wait() == 3, f"the job came to harm: {job.process.returncode}"
    return result


def lines(result: Result, *words: str) -> list[str]:
    return [line for line in result.complaints if all(word in line for word in words)]


# ---- the directory -----------------------------------------------------------------------------------------

def deleted(case: Case, what: str) -> None:
    job, out = loaded(case), case.path("out")
    run = case.record("-p", job.pid, "-o", out, *OPTIONS)
    shutil.rmtree(out if what == "output" else session_of(out))
    result = run.result()  # it does not go on for nobody
    job.send("quit 3")
    assert job.wait() == 3
    result.expect(FAILED)
    assert len(lines(result, "session directory was deleted during the capture")) == 1, result.err
    assert not result.out.strip() and not lines(result, "session in "), f"a path that leads nowhere: {result}"


add_test("session_is_deleted", lambda case: deleted(case, "session"))
add_test("output_directory_is_deleted", lambda case: deleted(case, "output"))


def renamed(case: Case, what: str) -> None:
    """The path that is printed leads to the session, and the results go there."""
    job, out, to = loaded(case), case.path("out"), case.path("elsewhere")
    run = case.record("-p", job.pid, "-o", out, "--task-source", "host")
    session = session_of(out)
    if what == "output":
        out.rename(to)
        to = to / session.name
    else:
        session.rename(to)
    if what == "replaced":
        session.mkdir()
    work(job)
    result = finished(job, run)
    assert result.status == DONE, result
    assert len(lines(result, "was renamed during the capture", str(to))) == 1, result.err
    assert result.out.splitlines()[0] == str(to), result
    assert json.loads((to / "session.json").read_text())["complete"]
    assert list(to.glob("*_ascend_pt")), list(to.iterdir())
    assert not session.exists() or not list(session.iterdir()), "written into a stranger's directory"


for _what in ("session", "output", "replaced"):
    add_test(f"renamed_{_what}", lambda case, w=_what: renamed(case, w))


@test
def moved_out_of_sight(case: Case) -> None:
    """Its file system is detached from the tree: no path leads there, which
    is reported, and no other is printed."""
    need_mounts()
    job, out = loaded(case), case.path("out")
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", out], check=True)
    run = case.record("-p", job.pid, "-o", out, *OPTIONS)
    subprocess.run(["umount", "-l", out], check=True)
    result = finished(job, run)
    result.expect(PARTIAL)
    assert len(lines(result, "was moved during the capture")) == 1, result.err
    assert not result.out.strip(), result


# ---- its files ---------------------------------------------------------------------------------------------

@test
def session_json_cannot_be_replaced(case: Case) -> None:
    """At no time since recording began: the first one is used, and its lack of counts is reported."""
    job, out = loaded(case), case.path("out")
    run = case.record("-p", job.pid, "-o", out, *OPTIONS)
    session = session_of(out)
    (session / "session.json.new").mkdir()
    work(job)
    result = finished(job, run)
    result.expect(PARTIAL)
    assert len(lines(result, "session.json", os.strerror(errno.EEXIST))) == 1, result.err
    assert not Session(session).json["complete"]
    case.analyze(session, "-o", case.path("result")).expect(PARTIAL)


@test
def a_file_is_deleted(case: Case) -> None:
    job, out = loaded(case), case.path("out")
    run = case.record("-p", job.pid, "-o", out, *OPTIONS)
    (session_of(out) / "strings.nps").unlink()
    result = finished(job, run)
    result.expect(PARTIAL)
    assert len(lines(result, "strings.nps", "deleted")) == 1, result.err


@test
def all_files_are_deleted(case: Case) -> None:
    """A session.json that is written into an empty directory is no session."""
    job, out = loaded(case), case.path("out")
    run = case.record("-p", job.pid, "-o", out, *OPTIONS)
    for path in session_of(out).iterdir():
        path.unlink()
    result = run.result()
    job.send("quit 3")
    assert job.wait() == 3
    result.expect(FAILED)
    assert len(lines(result, "events.nps was deleted during the capture")) == 1, result.err
    assert not result.out.strip(), result


FAULTS = [(call, path, number) for call, path, numbers in (
    ("write", "/events.nps", (errno.ENOSPC, errno.EIO)),
    ("write", "/strings.nps", (errno.EIO,)),
    ("write", "/clocks.nps", (errno.EDQUOT,)),
    ("write", "/session.json", (errno.ENOSPC, errno.EIO)),
    ("write", "/npuscope_", (errno.ENOSPC, errno.EROFS)),
    ("fsync", "/events.nps", (errno.EIO,)),
    ("fsync", "/session.json", (errno.EIO,)),
    ("close", "/session.json", (errno.EIO,)),
    ("openat", "session.json", (errno.ENOSPC, errno.EMFILE)),
    ("renameat", "session.json", (errno.EIO,)),
) for number in numbers]


def fault(case: Case, call: str, path: str, number: int) -> None:
    """From some moment of the capture on all these calls fail. Where a stream cannot
    be written that is the capture's end."""
    job, out, begun = loaded(case), case.path("out"), case.path("begun")
    env = failing(case, CALL=call, PATH=path, ERRNO=number, WHILE=begun)
    run = case.record("-p", job.pid, "-o", out, *OPTIONS, env=env)
    begun.touch()
    work(job)
    if call == "write" and not path.endswith(".json"):
        while run.alive():
            work(job)
            time.sleep(0.1)
        result = run.result()
        assert lines(result, "capture stopped", os.strerror(number), str(out)), result.err
    else:
        run.signal(signal.SIGINT)
        result = run.result()
        assert lines(result, os.strerror(number), path.strip("/")), result.err
    result.expect(PARTIAL)
    job.send("quit 3")
    assert job.wait() == 3
    begun.unlink()
    case.analyze(session_of(out), "-o", case.path("result")).expect(DONE, PARTIAL)


for _call, _path, _number in FAULTS:
    add_test(f"fault_{_call}_{_path.strip('/_')}_{errno.errorcode[_number]}",
             lambda case, c=_call, p=_path, n=_number: fault(case, c, p, n))


def log_fault(case: Case, call: str, path: str) -> None:
    """The files of a device's task log, which no stream of the session knows of."""
    out, begun = case.path("out"), case.path("begun")
    job = case.sim_job("--ranks", 1, "--seconds", 120, "--quiet")
    env = failing(case, CALL=call, PATH=path, ERRNO=errno.EIO, WHILE=begun)
    run = case.record("-p", ranks_of(job)[0], "-o", out, "--export", "none", env=env)
    wait_until(lambda: list(out.glob("npuscope_*/PROF_*/device_*/data/*.slice_0")) or not run.alive(), "the task log")
    begun.touch()
    if path != ".slice_0":  # else it is the capture's end
        run.signal(signal.SIGINT)
    result = run.result().expect(PARTIAL)
    begun.unlink()
    assert lines(result, path, os.strerror(errno.EIO)), result.err
    case.analyze(session_of(out), "-o", case.path("result")).expect(DONE, PARTIAL)


for _call, _path in (("write", ".slice_0"), ("openat", ".done"), ("write", "/end_info"), ("close", "/end_info")):
    add_test(f"log_fault_{_call}_{_path.strip('./')}", lambda case, c=_call, p=_path: log_fault(case, c, p))


@test
def nothing_can_be_written(case: Case) -> None:
    """Not even session.json, from the beginning: status 1, one line, no directory."""
    job, out = loaded(case), case.path("out")
    for call in ("openat", "write", "fsync", "renameat"):
        env = failing(case, CALL=call, PATH="session.json", ERRNO=errno.ENOSPC)
        result = case.npuscope("record", "-p", job.pid, "-o", out, *OPTIONS, env=env).expect(FAILED)
        assert len(result.complaints) == 1 and os.strerror(errno.ENOSPC) in result.err, result.err
        assert not list(out.iterdir()), f"{call}: {list(out.iterdir())}"
    job.send("quit 3")


@test
def session_json_is_never_more_than_the_first(case: Case) -> None:
    """What it writes when recording begins cannot be written any more: nothing is usable, status 1."""
    job, out, begun = loaded(case), case.path("out"), case.path("begun")
    env = failing(case, CALL="renameat", PATH="session.json", ERRNO=errno.EIO, WHILE=begun)
    run = case.record("-p", job.pid, "-o", out, *OPTIONS, env=env, wait=False)
    wait_until(lambda: list(out.glob("npuscope_*/events.nps")), "the session")
    begun.touch()
    run.wait_for("^npuscope: recording ", err=True)
    result = finished(job, run)
    if Session(session_of(out)).json["end_reason"] != "starting":
        return  # this machine was faster: the other tests have this case
    result.expect(FAILED)
    assert len(lines(result, "session.json", os.strerror(errno.EIO), "nothing of the session can be")) == 1, result.err
    assert not result.out.strip(), result
    analyzed = case.analyze(session_of(out), "-o", case.path("result")).expect(FAILED)
    assert "nothing was recorded" in analyzed.err, analyzed


def full_disk(case: Case, kib: int) -> None:
    """A disk of that size: the session is what fitted, `record` reports
    it, and session.json is the last one."""
    need_mounts()
    job, out = loaded(case), case.path("out")
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", out], check=True)
    case.at_end.append(lambda: subprocess.run(["umount", "-l", out], check=False) and None)
    run = case.record("-p", job.pid, "-o", out, "--osrt-threshold", 0, *OPTIONS)
    while run.alive():
        work(job, 20000)
    result = run.result().expect(PARTIAL)
    assert lines(result, "capture stopped", os.strerror(errno.ENOSPC)), result.err
    session = Session(session_of(out))
    assert session.json["end_reason"] == "disk full" and not session.json["complete"], session.json["end_reason"]
    assert session.events or kib <= 1024, "less than what is written at once"
    analyzed = case.analyze(session.path, "-o", case.path("result")).expect(PARTIAL)
    assert "the disk was full" in analyzed.err, analyzed
    job.send("quit 3")
    assert job.wait() == 3


for _kib in (256, 1024, 3000, 6000):
    add_test(f"disk_of_{_kib}_kib", lambda case, k=_kib: full_disk(case, k))


@test
def another_fills_the_disk(case: Case) -> None:
    """There is no free block any more when the capture ends: the last session.json has its reserve."""
    need_mounts()
    job, out = loaded(case), case.path("out")
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6000k", "none", out], check=True)
    case.at_end.append(lambda: subprocess.run(["umount", "-l", out], check=False) and None)
    run = case.record("-p", job.pid, "-o", out, *OPTIONS)
    with open(out / "ballast", "wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
    while run.alive():
        work(job)
        time.sleep(0.1)
    result = run.result().expect(PARTIAL)
    assert lines(result, os.strerror(errno.ENOSPC)), result.err
    assert Session(session_of(out)).json["capture"]["end_monotonic"], "an older session.json"


# ---- killed before recording began -------------------------------------------------------------------------

def killed(case: Case, call: str, path: str) -> None:
    """With SIGKILL at that call: what is left is a session of which analyze and
    show report that nothing was recorded."""
    job, out = loaded(case), case.path("out")
    run = case.record("-p", job.pid, "-o", out, *OPTIONS, wait=False, env=failing(case, CALL=call, PATH=path))
    assert run.wait() == -signal.SIGKILL, run.err
    session = session_of(out)
    files = {p.name for p in session.iterdir()}
    assert "session.json" in files or files <= {"session.json.new"}, files
    for command in ("analyze", "show"):
        for folder in (session, out):
            result = case.npuscope(command, folder, cwd=case.dir).expect(FAILED)
            assert len(result.complaints) == 1 and "nothing was recorded" in result.err, result
    job.send("quit 3")
    assert job.wait() == 3


for _call, _path in (("kill", "session.json.new"), ("kill_rename", "session.json.new"), ("kill", "events.nps"),
                     ("kill", "clocks.nps")):
    add_test(f"{_call.replace('kill', 'killed')}_at_{_path}", lambda case, c=_call, p=_path: killed(case, c, p))


@test
def killed_while_starting(case: Case) -> None:
    """At any moment before recording begins: there is no directory, or one that analyze can explain."""
    job = loaded(case)
    for number, moment in enumerate((0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6)):
        out = case.path(f"out{number}")
        run = case.record("-p", job.pid, "-o", out, *OPTIONS, wait=False)
        if moment:
            wait_until(lambda o=out, r=run: list(o.glob("npuscope_*")) or not r.alive(), "a session")
            time.sleep(moment - 0.05)
        run.kill()
        for session in out.glob("npuscope_*") if out.exists() else ():
            result = case.analyze(session, "-o", case.path(f"result{number}")).expect(FAILED, PARTIAL)
            if result.status == FAILED:
                assert len(result.complaints) == 1 and "nothing was recorded" in result.err, result
            else:
                assert "not complete" in result.err, result
    job.send("quit 3")
    assert job.wait() == 3


if __name__ == "__main__":
    sys.exit(main())
