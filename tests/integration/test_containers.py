#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs in containers: own mounts, process numbers and users, own or shared copies of the libraries.

Witnesses: the jobs' own numbers of calls, /proc, and the simulator's truth files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Optional, Sequence

from harness import (AGENT, DONE, PARTIAL, ROOT, SIM, Arg, Case, Running, Session, Skip, build_library, catalogue,
                     children_of, environment, main, need_job, need_mounts, need_npusim, pid_list, test, threads_of,
                     wait_until)
from records import API

COMPARE = ROOT / "tools" / "truth" / "compare"
CONTAINER = ["unshare", "--mount", "--pid", "--user", "--fork", "--map-root-user", "--kill-child"]


def need_containers() -> None:
    need_mounts()
    run = subprocess.run([*CONTAINER, "true"], capture_output=True, text=True, check=False)
    if run.returncode:
        raise Skip(f"needs user namespaces: {run.stderr.strip()}")


def in_container(case: Case, script: str, env: Optional[dict[str, str]] = None) -> Running:
    """A shell script as the first process of new mount, pid and user namespaces."""
    return case.start([*CONTAINER, "sh", "-ec", script], env=env)


def host_pid(job: Running) -> int:
    """Of the container's first process: the child of unshare."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    return int(wait_until(lambda: children.read_text().split(), "the container's first process")[0])


def loader_in(case: Case, library: Arg, before: str = "") -> tuple[Running, int]:
    """(loader_job in a container with the library loaded, its pid on
    the host); `before` prepares the mounts."""
    job = in_container(case, f"{before}\nexec '{need_job('loader_job')}'")
    assert job.wait_for(r"^ready (\d+)").group(1) == "1", "the job is not the first of its namespace"
    send(job, f"load {library}", "loaded")
    return job, host_pid(job)


def send(job: Running, line: str, answer: str) -> None:
    job.send(line)
    job.wait_for("^" + re.escape(answer))


def counted(session: Session, symbol: str, pid: int) -> int:
    return sum(e.probe == catalogue()[symbol][0] for e in session.of(API, pid))


def record_calls(case: Case, jobs: Sequence[tuple[Running, int]]) -> Session:
    """Captures while each job makes calls of its own number; checks that
    each was seen once, under the right pids."""
    run = case.record("-p", pid_list([pid for _, pid in jobs]), "-o", case.dir, "--export", "none")
    for i, (job, _) in enumerate(jobs):
        send(job, f"call aclrtSynchronizeDevice {100 + i}", "called")
    for job, _ in jobs:
        job.send("quit 3")
        assert job.wait() == 3, job.err
    session = run.result().expect(DONE, PARTIAL).session
    for i, (_, pid) in enumerate(jobs):
        seen = counted(session, "aclrtSynchronizeDevice", pid)
        assert seen == 100 + i, f"{seen} calls of pid {pid} instead of {100 + i}"
        assert session.process(pid)["ns_pid"] == 1, session.process(pid)
        assert session.process(pid)["comm"] == "loader_job"
    assert {e.pid for e in session.of(API)} == {pid for _, pid in jobs}
    assert not session.dropped()
    return session


def probed(session: Session) -> list[str]:
    return [lib["path"] for lib in session.json["libraries"] if lib["probes"]]


@test
def own_namespaces_own_library(case: Case) -> None:
    """The library is in a tmpfs that only the container sees."""
    need_containers()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    inside = case.path("inside")
    inside.mkdir()
    before = f"mount -t tmpfs none '{inside}'; cp '{library}' '{inside}/'"
    job = loader_in(case, f"{inside}/libacl_rt.so", before)
    assert not list(inside.iterdir()), "the host sees the container's file"
    assert probed(record_calls(case, [job])) == [f"{inside}/libacl_rt.so"]


@test
def copies_with_the_same_numbers(case: Case) -> None:
    """Two containers unpack the same image into memory: same path, size,
    build-id and inode number, two files."""
    need_containers()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    inside = case.path("inside")
    inside.mkdir()
    before = f"mount -t tmpfs none '{inside}'; cp '{library}' '{inside}/'"
    jobs = [loader_in(case, f"{inside}/libacl_rt.so", before) for _ in range(2)]
    stats = [os.stat(f"/proc/{pid}/root{inside}/libacl_rt.so") for _, pid in jobs]
    assert stats[0].st_dev != stats[1].st_dev
    assert stats[0].st_ino == stats[1].st_ino, "this kernel numbers them apart: this test proves nothing"
    assert probed(record_calls(case, jobs)) == [f"{inside}/libacl_rt.so"] * 2


@test
def one_file_bound_twice(case: Case) -> None:
    """Two containers see one file of the host under different paths: one set of probes."""
    need_containers()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    jobs = []
    for name in ("a", "b"):
        tree = case.path(name)
        tree.mkdir()
        jobs.append(loader_in(case, f"{tree}/libacl_rt.so", f"mount --bind '{library.parent}' '{tree}'"))
    assert len(probed(record_calls(case, jobs))) == 1


def overlay(case: Case, name: str, lower: Path, change: str = "") -> str:
    """Commands that mount an overlay of `lower` at the case's folder `name`."""
    tree = case.path(name)
    tree.mkdir()
    # The upper directory may not be on an overlay itself, as this tree may be.
    return (f"mount -t tmpfs none '{tree}'; mkdir '{tree}/u' '{tree}/w' '{tree}/m'; "
            f"mount -t overlay -o 'lowerdir={lower},upperdir={tree}/u,workdir={tree}/w' none '{tree}/m'; {change}")


def need_overlay(case: Case, lower: Path) -> None:
    need_containers()
    run = case.run(["unshare", "--mount", "sh", "-ec", overlay(case, "try", lower)])
    if run.status:
        raise Skip(f"needs overlay mounts: {run.err.strip()}")


@test
def one_file_below_two_overlays(case: Case) -> None:
    """Containers of one image: the kernel's probes are on the file below,
    once, whatever device numbers they show."""
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    need_overlay(case, library.parent)
    jobs = [loader_in(case, f"{case.path(n)}/m/libacl_rt.so", overlay(case, n, library.parent)) for n in ("a", "b")]
    below = case.start([need_job("loader_job")])
    below.wait_for("^ready")
    send(below, f"load {library}", "loaded")
    assert len(probed(record_calls(case, jobs))) == 1
    below.kill()


@test
def copied_up_in_one_overlay(case: Case) -> None:
    """One container changed its library's mode: the overlay copied it, two files under one number."""
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    need_overlay(case, library.parent)
    jobs = [loader_in(case, f"{case.path(n)}/m/libacl_rt.so",
                      overlay(case, n, library.parent,
                              f"chmod 700 '{case.path(n)}/m/libacl_rt.so'" if n == "b" else ""))
            for n in ("a", "b")]
    assert len(probed(record_calls(case, jobs))) == 2


def sim_container(case: Case, name: str, *args: Arg, agent: bool) -> tuple[Running, int]:
    """npusim's job in a container that has the whole installation in a
    tmpfs of its own: (job, pid on the host)."""
    need_containers()
    need_npusim()
    tree, truth = case.path(name), case.path("truth")
    tree.mkdir()
    truth.mkdir(exist_ok=True)
    env = environment(sim=True, NPUSIM_TRUTH=truth)
    env = {k: v.replace(str(SIM), f"{tree}/Ascend") for k, v in env.items()}
    preload = f"export LD_PRELOAD='{tree}/{AGENT.name}';" if agent else ""
    job = in_container(case,
                       f"mount -t tmpfs none '{tree}'; cp -a '{SIM}' '{AGENT}' '{tree}/'; mount -t proc proc /proc; "
                       f"{preload} "
                             f"exec '{tree}/Ascend/bin/npusim-train' --ranks 1 " + " ".join(map(str, args)), env)
    rank = int(job.wait_for(r"^ready (\d+)").group(1))
    return job, next(pid for pid in family(host_pid(job)) if inner_pid(pid) == rank)


def family(pid: int) -> Iterator[int]:
    """A process and what it started."""
    yield pid
    for child in children_of(pid):
        yield from family(child)


def inner_pid(pid: int) -> int:
    """The number of a process in its innermost namespace, by the kernel."""
    found = re.search(r"^NSpid:.*\t(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert found
    return int(found.group(1))


def thread_numbers(pid: int) -> dict[str, str]:
    """Thread numbers of a process in its innermost namespace -> on the host, by the kernel."""
    found = {}
    for tid in threads_of(pid):
        status = Path(f"/proc/{pid}/task/{tid}/status").read_text()
        found[re.search(r"^NSpid:.*\t(\d+)$", status, re.M).group(1)] = str(tid)  # type: ignore[union-attr]
    return found


def on_the_host(line: str, numbers: dict[str, str]) -> str:
    """A line of a truth file with the host's numbers (tools/npusim/TRUTH.md describes where they are)."""
    fields = line.split("\t")
    at = {"proc": 1, "launch": 2, "op": 1, "collective": 1}.get(fields[0])
    if at:
        fields[at] = numbers[fields[at]]
    return "\t".join(fields)


def truth_of(case: Case, session: Session, pid: int, inner: int, numbers: dict[str, str]) -> None:
    """The simulator knows the numbers of its own namespace only."""
    truth = case.path("truth")
    for file in truth.glob(f"truth.{inner}.*"):
        lines = file.read_text().splitlines()
        file.unlink()
        (truth / file.name.replace(f"truth.{inner}.", f"truth.{pid}.")).write_text(
            "".join(on_the_host(line, numbers) + "\n" for line in lines))
    case.run(["/usr/bin/python3", COMPARE, "--truth", truth, "--result", session.path, "--session", session.path,
              "--json", case.path("numbers.json")]).expect(0)


@test
def npu_job_in_a_container(case: Case) -> None:
    """Everything of it: calls, device times through the helper, results; held against the truth."""
    job, pid = sim_container(case, "inside", agent=True)
    inner, numbers = inner_pid(pid), thread_numbers(pid)
    session = case.record("-p", pid, "-d", "2s", "-o", case.dir).result().expect(DONE).session
    described = session.process(pid)
    assert described["ns_pid"] == inner != pid
    assert described["task_source"] == "agent", described["task_source_reason"]
    os.kill(host_pid(job), signal.SIGTERM)  # the job's order to end
    assert job.wait() == 0, job.err
    truth_of(case, session, pid, inner, numbers)


@test
def npu_job_in_a_container_without_helper(case: Case) -> None:
    """The helper is not in the image: one line reports what is missing and why."""
    _job, pid = sim_container(case, "inside", agent=False)
    result = case.record("-p", pid, "-d", "1s", "-o", case.dir, "--export", "none").result().expect(DONE, PARTIAL)
    complaint = f"pid {pid}: no device task log: the job was started without the helper library (--inject loads it)"
    assert sum(complaint in line for line in result.complaints) == 1, result.err
    assert result.session.process(pid)["task_source"] == "host"


@test
def npu_job_in_a_container_with_its_own_driver(case: Case) -> None:
    """The host has no driver: the container's is loaded there, and its devices have the
    job's numbers, the host's 3 being its 0."""
    os.environ["NPUSIM_FIRST_DEVICE"] = "3"
    try:
        _job, pid = sim_container(case, "inside", "--rate", 300, "--seconds", 60, agent=False)
    finally:
        del os.environ["NPUSIM_FIRST_DEVICE"]
    result = case.record("-p", pid, "-d", "3s", "-o", case.dir, "--export", "db", "--sys-hardware-mem", "--npu-usage",
                         env=environment()).result().expect(DONE)
    session = result.session
    sampled = session.json["device_sampler"]
    assert sampled["driver"].startswith(f"{case.path('inside')}/Ascend/"), sampled["driver"]
    described = session.process(pid)
    assert (described["device_numbers"], described["sampled_devices"]) == ("container", [0]), described
    assert [d["id"] for d in sampled["devices"]] == [0] == [d["id"] for d in session.json["devices"]], sampled
    hbm = next(c for c in sampled["devices"][0]["channels"] if c["name"] == "HBM")
    assert hbm["records"] > 100, hbm
    assert [d["chip"] for d in session.json["devices"]] == ["910B3"], session.json["devices"]


if __name__ == "__main__":
    sys.exit(main())
