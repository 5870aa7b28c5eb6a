#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every file of every kind of input, in turn something else that cannot be read: a file without permissions,
a FIFO, a device, a directory, links to nothing, to a device and to itself. Either stderr names it and the
status is not 0, or the results are those of the input as it was: then it is a file that nobody reads."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Callable, NamedTuple

import synthetic
from harness import (DONE, FAILED, NPUSCOPE, PARTIAL, ROOT, Case, add_test, environment, main, need, need_root, test)

GEN_CANN = ROOT / "build" / "tests" / "gen-cann"
AUX = ROOT / "tests" / "cannraw_aux"
NOBODY = 65534
SECONDS = 60


class Outcome(NamedTuple):
    status: int
    err: str
    results: dict[str, bytes]


def no_permissions(path: Path) -> None:
    path.chmod(0)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


def link_to_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("not_there")


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


SITUATIONS: tuple[Callable[[Path], None], ...] = (no_permissions, fifo, device, link_to_device, folder, link_to_nothing,
                                                  link_to_itself)


def as_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class Input:
    """A copy of an input that belongs to an ordinary user, who analyses it."""

    def __init__(self, case: Case, made: Path, command: str = "analyze") -> None:
        need_root()
        self.top = case.open_path(f"unreadable_{made.name}", folder=True).resolve()
        self.path, self.out, self.command = self.top / made.name, self.top / "out", command
        copy = shutil.copytree if made.is_dir() else shutil.copy
        copy(made, self.path)
        for path in [self.top, *self.top.rglob("*")]:
            os.lchown(path, NOBODY, NOBODY)
        self.base = self.run()
        assert self.base.status == DONE, f"{made} as it is: {self.base.err}"

    def run(self) -> Outcome:
        shutil.rmtree(self.out, ignore_errors=True)
        where = ["-o", self.out] if self.command == "analyze" else []
        done = subprocess.run([self.program(), self.command, *where, self.path], env=environment(HOME="/nonexistent"),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, preexec_fn=as_nobody,
                              cwd=self.top)
        results = {str(p.relative_to(self.out)): p.read_bytes() for p in self.out.rglob("*") if p.is_file()}
        if self.command == "show":
            results["stdout"] = done.stdout
        return Outcome(done.returncode, done.stderr.decode(errors="replace"), results)

    def program(self) -> Path:
        """Where an ordinary user can run it."""
        copy = self.top / "npuscope"
        if not copy.exists():
            shutil.copy(NPUSCOPE, copy)
        return copy

    def files(self) -> list[Path]:
        return sorted(p for p in ([self.path] if self.path.is_file() else self.path.rglob("*")) if p.is_file())

    def folders(self) -> list[Path]:
        return sorted(p for p in self.path.rglob("*") if p.is_dir())

    def silence(self, path: Path, what: str) -> str:
        """What is wrong with what became of the present state of PATH."""
        name = path.relative_to(self.top)
        try:
            got = self.run()
        except subprocess.TimeoutExpired:
            return f"{name}, {what}: it hangs"
        if got.status == DONE:
            return "" if got.results == self.base.results else f"{name}, {what}: status 0, and other results"
        if got.status not in (FAILED, PARTIAL):
            return f"{name}, {what}: status {got.status}: {got.err}"
        lines = [line for line in got.err.splitlines() if line.startswith("npuscope: ") and path.name in line]
        return "" if lines else f"{name}, {what}: status {got.status}, and no line names it: {got.err[-300:]}"

    def all_silences(self) -> list[str]:
        found = []
        for path in self.files():
            mode, kept = path.stat().st_mode, path.read_bytes()
            for situation in SITUATIONS:
                situation(path)
                if not path.is_symlink():
                    os.chown(path, NOBODY, NOBODY)
                found.append(self.silence(path, situation.__name__))
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
                path.write_bytes(kept)
                path.chmod(mode)
                os.chown(path, NOBODY, NOBODY)
        for path in self.folders():
            mode = path.stat().st_mode
            path.chmod(0)
            found.append(self.silence(path, "no_permissions"))
            path.chmod(mode)
        return [text for text in found if text]


def prof(case: Case, *options: str) -> Path:
    need(GEN_CANN.exists(), "build/tests/gen-cann: make witnesses")
    done = case.run([GEN_CANN, "--tasks", 20, "--truth", case.path("truth"), *options, case.path("raw")]).expect(0)
    return Path(done.out.splitlines()[-1])


def aux_input(case: Case) -> Path:
    done = case.run([sys.executable, AUX / "sidecars.py", case.path("side"), "--make", "--samples", 6]).expect(0)
    return Path(done.out.splitlines()[-1])


def torch(case: Case) -> Path:
    done = case.run([sys.executable, AUX / "framework.py", case.path("torch"), "--memory", "--python-stacks", "--gc",
                     "--prof", prof(case), "--prof-truth", case.path("truth")]).expect(0)
    return Path(done.out.splitlines()[-1])


BESIDE = ("kernel_details.csv", "memory_record.csv", "communication.json", "communication_matrix.json")
COLLECTIVE = {"step1": {"collective": {"hcom_allReduce__1_0@17": {
    "Communication Time Info": {"Start Timestamp(us)": 1736412474757059.8, "Elapse Time(ms)": 1.5},
    "0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 2, "Transit Time(ms)": 1, "Bandwidth(GB/s)": 2}}}}}


def results(case: Case, kind: str) -> Path:
    """A folder of results of which only the database, or only the
    trace and what is read beside it, is left."""
    case.npuscope("analyze", "-o", case.path("results"), torch(case)).expect(DONE)
    made = next(case.path("results").glob("*_ascend_pt"))
    for path in list(made.rglob("*")):
        beside = kind == ".trace" and path.name in BESIDE
        if path.is_file() and not beside and path.suffix not in (kind, ".json") or \
                path.name == "trace_view.json" and kind != ".trace":
            path.unlink()
    for name in BESIDE[2:] if kind == ".trace" else ():
        (made / "ASCEND_PROFILER_OUTPUT" / name).write_text(json.dumps(COLLECTIVE))
    found = {path.name for path in made.rglob("*") if path.name in BESIDE}
    assert kind != ".trace" or found == set(BESIDE), found
    return made


def msprof_results(case: Case) -> Path:
    """The trace of a result in msprof's layout, in slices, and the tables beside it."""
    made = case.path("msprof")
    case.npuscope("analyze", "--export", "text", "-o", case.path("results"), prof(case)).expect(DONE)
    folder = next(case.path("results").rglob("mindstudio_profiler_output"))
    made.mkdir()
    trace, = folder.glob("msprof_*.json")
    for number in range(2):
        shutil.copy(trace, made / f"msprof_slice_{number}_20250109000000.json")
    for path in folder.glob("op_summary_*.csv"):
        shutil.copy(path, made)
    return made


def everything_is_reported(case: Case, made: Path, command: str = "analyze") -> None:
    found = Input(case, made, command).all_silences()
    assert not found, f"{len(found)}:\n" + "\n".join(found[:60])


add_test("session", lambda case: everything_is_reported(case, synthetic.session(case)), 300)
add_test("cann", lambda case: everything_is_reported(case, prof(case, "--memcpy-every", "5", "--mstx-every", "5")), 300)
add_test("cann_side", lambda case: everything_is_reported(case, aux_input(case)), 300)
add_test("torch_raw", lambda case: everything_is_reported(case, torch(case)), 300)
add_test("database", lambda case: everything_is_reported(case, results(case, ".db")), 300)
add_test("database_shown", lambda case: everything_is_reported(case, results(case, ".db"), "show"), 300)
add_test("trace_shown", lambda case: everything_is_reported(case, results(case, ".trace"), "show"), 300)
add_test("trace_slices_shown", lambda case: everything_is_reported(case, msprof_results(case), "show"), 300)


@test(seconds=300)
def recorded_session(case: Case) -> None:
    """One with the device's log, stacks and samples."""
    need_root()
    job = case.sim_job("--ranks", 1)
    pid = job.wait_for(r"^ready (\d+)").group(1)
    run = case.record("-p", pid, "-d", "500ms", "-o", case.path("live"), "--export", "none", "--stacks", "cpu",
                      "--host-sys", "cpu,mem", "--npu-usage", "--sys-hardware-mem")
    made = run.result().expect(DONE).session.path
    job.kill()
    everything_is_reported(case, made)


@test
def ranks_that_are_links(case: Case) -> None:
    """Collected with links to folders, to what is in them and to databases: as if they were there."""
    made = results(case, ".db")
    cluster = case.path("cluster")
    (cluster / "r1_ascend_pt").mkdir(parents=True)
    (cluster / "r0_ascend_pt").symlink_to(made)
    (cluster / "r1_ascend_pt" / "ASCEND_PROFILER_OUTPUT").symlink_to(made / "ASCEND_PROFILER_OUTPUT")
    (cluster / "again").symlink_to(cluster)
    for command in (["analyze", "-o", case.path("out")], ["show"]):
        result = case.npuscope(*command, cluster).expect(DONE)
        assert not result.complaints, result.err
    made_of = [p.name for p in case.path("out").iterdir()]
    assert made_of == ["r1_ascend_pt"], f"one database by two ways, links to directories come last: {made_of}"
    raw = case.path("raw_cluster")
    raw.mkdir()
    (raw / "PROF_000001_20250101010101000_AAAA").symlink_to(next(case.path("raw").glob("PROF_*")))
    case.npuscope("analyze", "-o", case.path("out_raw"), raw).expect(DONE)


@test
def session_that_cannot_be_listed(case: Case) -> None:
    """The names of its files are known: who may enter it has all of them. What else it may be is unknown."""
    for command in ("analyze", "show"):
        one = Input(case, synthetic.session(case, f"session_{command}"), command)
        one.path.chmod(0o311)
        outcome = one.run()
        assert outcome.status == DONE and outcome.results == one.base.results, outcome.err
        shutil.rmtree(one.path)
        one.path.mkdir(mode=0o311)
        os.chown(one.path, NOBODY, NOBODY)
        outcome = one.run()
        assert outcome.status == FAILED, outcome
        assert one.path.name in outcome.err and "Permission denied" in outcome.err, outcome.err


@test
def rank_that_cannot_be_searched(case: Case) -> None:
    """The others are analysed, and the one is named."""
    need_root()
    cluster = case.path("cluster")
    cluster.mkdir()
    shutil.copytree(results(case, ".db"), cluster / "r0_ascend_pt")
    (cluster / "r1_ascend_pt").mkdir()
    shutil.copytree(cluster / "r0_ascend_pt", cluster / "r2_ascend_pt")
    one = Input(case, cluster)
    for name in ("r1_ascend_pt", "r2_ascend_pt"):
        folder = one.path / name
        folder.chmod(0)
        assert not one.silence(folder, "no_permissions"), one.silence(folder, "no_permissions")
        assert one.run().status == PARTIAL and (one.out / "r0_ascend_pt").exists(), one.run().err
        folder.chmod(0o755)
    (one.path / "r3_ascend_pt").symlink_to("nowhere")
    outcome = one.run()
    assert outcome.status == PARTIAL and "r3_ascend_pt" in outcome.err, outcome.err


if __name__ == "__main__":
    sys.exit(main())
