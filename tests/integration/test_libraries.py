#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Libraries that come late, have lost their name or have several. Witness: the job's own number of calls."""

import os
import re
import shutil
import subprocess
import sys

from harness import (DONE, PARTIAL, Case, Running, Session, build_library, catalogue, environment, main, need_job,
                     need_mounts, need_root, test)
from records import API


def loader(case: Case, *libs: object, **kwargs: object) -> Running:
    job = case.start([need_job("loader_job")], env=environment(libs=[str(x) for x in libs]), **kwargs)
    job.wait_for("^ready")
    return job


def command(job: Running, line: str, answer: str) -> None:
    job.send(line)
    job.wait_for("^" + re.escape(answer))


def finish(run: Running, *jobs: Running) -> Session:
    for job in jobs:
        job.send("quit 3")
        assert job.wait() == 3, job.out
    return run.result().expect(DONE, PARTIAL).session


def counted(session: Session, symbol: str, pid: int) -> int:
    return sum(e.probe == catalogue()[symbol][0] for e in session.of(API, pid))


@test
def loaded_later(case: Case) -> None:
    """dlopen after the attach, from a directory nobody named: calls a moment later are seen."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("later"))
    job = loader(case)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    command(job, f"load {library}", "loaded")
    run_until_probed(case)
    command(job, "call aclrtSynchronizeDevice 1000", "called aclrtSynchronizeDevice 1000")
    session = finish(run, job)
    assert counted(session, "aclrtSynchronizeDevice", job.pid) == 1000
    assert [lib["path"] for lib in session.json["libraries"]] == [str(library)]


def run_until_probed(case: Case) -> None:
    """Until session.json names a library: it is rewritten every second."""
    from harness import wait_until
    wait_until(lambda: any(Session(p).json["libraries"] for p in case.dir.glob("npuscope_*")), "the probes")


@test
def loaded_later_on_the_search_path(case: Case) -> None:
    """In a directory of LD_LIBRARY_PATH the library is probed before the
    job loads it: not one call is missed."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = loader(case, library.parent)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("load libacl_rt.so")
    job.send("call aclInit 1")
    job.send("call aclrtSynchronizeDevice 500")
    job.wait_for("^called aclrtSynchronizeDevice")
    session = finish(run, job)
    assert counted(session, "aclInit", job.pid) == 1, "the very first call was missed"
    assert counted(session, "aclrtSynchronizeDevice", job.pid) == 500


@test
def from_the_start(case: Case) -> None:
    """record -- CMD: every call from the first on."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    case.path("commands").write_text("load libacl_rt.so\ncall aclInit 1\ncall aclrtSynchronizeDevice 300\nquit 3\n")
    with open(case.path("commands"), "rb") as commands:
        run = case.record("-o", case.dir, "--export", "none", "--", need_job("loader_job"), wait=False,
                          env=environment(libs=[library.parent]), stdin=commands)
    session = run.result().expect(DONE, PARTIAL).session
    pid = int(re.search(r"^ready (\d+)", run.out, re.M).group(1))  # type: ignore[union-attr]
    assert counted(session, "aclInit", pid) == 1
    assert counted(session, "aclrtSynchronizeDevice", pid) == 300


@test
def deleted_file(case: Case) -> None:
    """An upgrade removed the library under the job."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = loader(case)
    command(job, f"load {library}", "loaded")
    os.unlink(library)
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    command(job, "call aclrtSynchronizeDevice 400", "called")
    session = finish(run, job)
    assert counted(session, "aclrtSynchronizeDevice", job.pid) == 400
    assert len(session.json["libraries"]) == 1, session.json["libraries"]


@test
def replaced_file(case: Case) -> None:
    """An upgrade replaced it: old processes run the deleted file, new ones the new file; both are probed."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    old = loader(case)
    command(old, f"load {library}", "loaded")
    shutil.copy(library, f"{library}.new")
    os.rename(f"{library}.new", library)
    new = loader(case)
    command(new, f"load {library}", "loaded")
    run = case.record("-p", f"{old.pid},{new.pid}", "-o", case.dir, "--export", "none")
    command(old, "call aclrtSynchronizeDevice 40", "called")
    command(new, "call aclrtSynchronizeDevice 70", "called")
    session = finish(run, old, new)
    assert counted(session, "aclrtSynchronizeDevice", old.pid) == 40
    assert counted(session, "aclrtSynchronizeDevice", new.pid) == 70


def probed_once(case: Case, other_path: str, unshared: bool = False) -> None:
    library = case.path("lib") / "libacl_rt.so"
    jobs = [loader(case), loader(case)] if not unshared else [loader(case)]
    command(jobs[0], f"load {library}", "loaded")
    if not unshared:
        command(jobs[1], f"load {other_path}", "loaded")
    run = case.record("-p", ",".join(str(j.pid) for j in jobs), "-o", case.dir, "--export", "none")
    for job in jobs:
        command(job, "call aclrtSynchronizeDevice 250", "called")
    session = finish(run, *jobs)
    for job in jobs:
        assert counted(session, "aclrtSynchronizeDevice", job.pid) == 250, "a call has more than one record, or none"
    with_probes = [lib for lib in session.json["libraries"] if lib["probes"]]
    assert len(with_probes) == 1, with_probes
    hits = [p["hits"] for p in session.json["probes"] if p["symbol"] == "aclrtSynchronizeDevice"]
    assert hits == [250 * len(jobs)], hits


@test
def two_paths_by_symlink(case: Case) -> None:
    need_root()
    build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    case.path("link").symlink_to(case.path("lib"))
    probed_once(case, f"{case.path('link')}/libacl_rt.so")


@test
def two_paths_by_hard_link(case: Case) -> None:
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    case.path("hard").mkdir()
    os.link(library, case.path("hard") / "libacl_rt.so")
    probed_once(case, f"{case.path('hard')}/libacl_rt.so")


@test
def two_paths_by_bind_mount(case: Case) -> None:
    need_mounts()
    build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    bound = case.path("bound")
    bound.mkdir()
    done = subprocess.run(["mount", "--bind", case.path("lib"), bound], check=False, capture_output=True, text=True)
    if done.returncode:
        from harness import Skip
        raise Skip(f"needs bind mounts: {done.stderr.strip()}")
    case.at_end.append(lambda: subprocess.run(["umount", bound], check=False) and None)
    probed_once(case, f"{bound}/libacl_rt.so")


@test
def other_mount_namespace(case: Case) -> None:
    """The job's path means nothing outside its container."""
    need_mounts()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    inside = case.path("inside")
    inside.mkdir()
    job = case.start(["unshare", "-m", "sh", "-c",
                      f"mount -t tmpfs none '{inside}' && cp '{library}' '{inside}/' && exec "
                      f"'{need_job('loader_job')}'"])
    job.wait_for("^ready")
    command(job, f"load {inside}/libacl_rt.so", "loaded")
    assert not list(inside.iterdir())
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    command(job, "call aclrtSynchronizeDevice 90", "called")
    session = finish(run, job)
    assert counted(session, "aclrtSynchronizeDevice", job.pid) == 90


@test
def only_the_job_is_recorded(case: Case) -> None:
    """A neighbour that uses the same library is not in the session."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job, neighbour = loader(case), loader(case)
    for j in (job, neighbour):
        command(j, f"load {library}", "loaded")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    for j in (job, neighbour):
        command(j, "call aclrtSynchronizeDevice 100", "called")
    session = finish(run, job)
    assert {e.pid for e in session.events} == {job.pid}
    assert counted(session, "aclrtSynchronizeDevice", job.pid) == 100


@test
def values_are_those_of_the_job(case: Case) -> None:
    """Arguments, results and times of every call against what the job passed."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = loader(case)
    command(job, f"load {library}", "loaded")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    command(job, "call aclrtMalloc 60", "called")
    session = finish(run, job)
    mine = sorted((e for e in session.of(API, job.pid) if e.probe == catalogue()["aclrtMalloc"][0]),
                  key=lambda e: e.start)
    # loader_job passes (&out, i, 0, ...); the library writes size + policy = i to *ptr
    assert [e.body.slot[0] for e in mine] == list(range(60)), "the pointer that the call wrote"
    assert [e.body.slot[1] for e in mine] == list(range(60)), "size"
    assert all(e.ret == 0 and e.dur > 0 and e.tid == job.pid for e in mine)
    assert all(a.start + a.dur <= b.start for a, b in zip(mine, mine[1:])), "calls of one thread overlap"


if __name__ == "__main__":
    sys.exit(main())
