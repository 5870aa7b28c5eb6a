#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`npuscope analyze` and `npuscope show` while one of their calls fails: an allocation, a read, a write, ...
(jobs/fail_call_lib.c). Status 0 means results that are the same byte for byte; any other status has a reason
on stderr. No crash, no hang, no temporary files.

NPUSCOPE_FAULT_POINTS is the number of failing calls that are tried, NPUSCOPE_TEST_SEED chooses others."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NamedTuple, Optional

import synthetic
from harness import DONE, FAILED, NPUSCOPE, PARTIAL, ROOT, Case, build_library, environment, main, need, test

POINTS = int(os.environ.get("NPUSCOPE_FAULT_POINTS", "500"))
SEED = int(os.environ.get("NPUSCOPE_TEST_SEED", "1"))
FULL = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
ERRORS = {"malloc": (errno.ENOMEM,), "mmap": (errno.ENOMEM,), "open": (errno.EMFILE, errno.EACCES, errno.EIO),
          "opendir": (errno.EIO,), "stat": (errno.EIO, errno.EACCES), "read": (errno.EIO,), "write": FULL,
          "pwrite": FULL, "ftruncate": FULL, "fallocate": FULL, "fsync": (errno.EIO,),
          "rename": (errno.EIO, errno.ENOSPC),
          "close": (errno.EIO,), "mkdir": (errno.ENOSPC,), "thread": (errno.EAGAIN,), "fork": (errno.EAGAIN,)}
WEIGHTS = {"malloc": 12, "read": 6, "open": 5, "stat": 4, "pwrite": 4, "write": 4, "mmap": 3, "opendir": 3,
           "ftruncate": 2}
GEN_CANN = ROOT / "build" / "tests" / "gen-cann"
AUX = ROOT / "tests" / "cannraw_aux"
SECONDS = 100
NOTE = ".npuscope_input"
CUT = "no JSON"


class Run(NamedTuple):
    status: int
    err: str
    tree: dict[str, bytes]
    hidden: list[str]

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("npuscope")]


def tree_of(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*")
            if p.is_file() and not p.relative_to(path).parts[0].startswith(".")}


def hidden_in(*paths: Path) -> list[str]:
    """All but the file of a result that names its input: it is compared as the others are."""
    return [str(p) for path in paths for p in path.rglob(".*")
            if p.name != NOTE or p.relative_to(path).parts[0].startswith(".")]


class Failing:
    """An input, and how many calls of each kind its analysis makes."""

    def __init__(self, case: Case, library: Path, path: Path, *options: str) -> None:
        self.case, self.library, self.path, self.options = case, library, path, options
        self.name = f"{path.name} {' '.join(options)}"
        self.base = self.run("none", 0)
        assert self.base.status == DONE, f"{path} alone: {self.base.err}"
        assert CUT not in self.base.tree, f"{path} alone: {self.base.tree[CUT][-300:]!r}"
        again = self.run("none", 0)
        assert again.tree == self.base.tree, f"{path}: two analyses differ"
        self.calls = {kind: self.count(kind) for kind in ERRORS}

    def command(self, out: Path) -> list[str | Path]:
        return [NPUSCOPE, "analyze", "-o", out, *self.options, self.path]

    def result(self, out: Path, printed: bytes) -> dict[str, bytes]:
        return tree_of(out)

    def run(self, kind: str, at: int, error: int = 0, stays: bool = False, count: Optional[Path] = None) -> Run:
        out, tmp = self.case.path("out"), self.case.path("tmp")
        for path in (out, tmp):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        env = environment(LD_PRELOAD=self.library, FAIL_KIND=kind, FAIL_AT=at, FAIL_ERRNO=error, TMPDIR=tmp,
                          XDG_STATE_HOME=tmp)
        env |= {"FAIL_STAYS": "1"} if stays else {}
        env |= {"FAIL_COUNT": str(count)} if count else {}
        done = subprocess.run(self.command(out), env=env, timeout=SECONDS, stdin=subprocess.DEVNULL,
                              capture_output=True)
        return Run(done.returncode, done.stderr.decode(errors="replace"), self.result(out, done.stdout),
                   hidden_in(out, tmp))

    def reasons(self, run: Run) -> list[str]:
        """Lines that report why it failed, not what it went on without."""
        return [line for line in run.complaints if line.startswith("npuscope: cannot ") and
                line not in self.base.complaints and "the result is without it" not in line]

    def count(self, kind: str) -> int:
        path = self.case.path("count")
        path.unlink(missing_ok=True)
        self.run(kind, 0, count=path)
        return max(map(int, path.read_text().split())) if path.exists() else 0

    def fault(self, run: Run, stays: bool) -> Optional[str]:
        """What is wrong with what became of it."""
        if run.status not in (DONE, FAILED, PARTIAL):
            return f"status {run.status}"
        if run.hidden:
            # Who cannot open a directory any more cannot empty it: the next analysis does.
            subprocess.run([NPUSCOPE, "analyze", "-o", self.case.path("out"), self.path], capture_output=True,
                           timeout=SECONDS)
            left = hidden_in(self.case.path("out"))
            if left or not stays:
                return f"left behind: {left or run.hidden}"
        if run.status == DONE:
            other = {name for name in run.tree.keys() | self.base.tree.keys()
                     if run.tree.get(name) != self.base.tree.get(name)}
            return f"status 0, but these differ: {sorted(other)[:4]}" if other else None
        if CUT in run.tree:
            return f"status {run.status}, and what it printed is no JSON"
        if not run.complaints:
            return f"status {run.status} without a word"
        if run.status == FAILED and not self.reasons(run):
            return "status 1 without a reason"
        if run.status == FAILED:
            # What other processes of the session had is whole.
            roots = {Path(name).parts[0] for name in run.tree}
            whole = {name: text for name, text in self.base.tree.items() if Path(name).parts[0] in roots}
            return f"status 1, and half a result: {sorted(roots)}" if run.tree != whole else None
        return None


class Shown(Failing):
    """The same of `show`: what it prints is the result, in parts as if each process were a directory."""

    def command(self, out: Path) -> list[str | Path]:
        return [NPUSCOPE, "show", *self.options, self.path]

    def result(self, out: Path, printed: bytes) -> dict[str, bytes]:
        if "--json" in self.options:
            if not printed:
                return {}
            try:
                document = json.loads(printed)
            except ValueError:
                return {CUT: printed}
            parts = [json.dumps(part).encode() for part in document.pop("results")]
            parts += [json.dumps(document["ranks"]).encode()] if "ranks" in document else []
        else:
            printed = printed.replace(b"\n\nranks, ", b"\n\n\nranks, ")
            parts = [part.strip() for part in printed.split(b"\n\n\n")] if printed else []
        return {f"{zlib.crc32(part)}/printed": part for part in parts}


def inputs(case: Case, library: Path) -> list[Failing]:
    need(GEN_CANN.exists(), "build/tests/gen-cann: make witnesses")
    session, below, truth = synthetic.session(case), case.path("raw"), case.path("truth")
    prof = Path(case.run([GEN_CANN, "--tasks", 40, "--memcpy-every", 5, "--mstx-every", 5, "--pmu", "--truth", truth,
                          below]).expect(0).out.splitlines()[-1])
    aux = Path(case.run([sys.executable, AUX / "sidecars.py", case.path("side"), "--make", "--samples", 12]
                         ).expect(0).out.splitlines()[-1])
    torch = Path(case.run([sys.executable, AUX / "framework.py", case.path("torch"), "--memory", "--python-stacks",
                           "--gc", "--prof", prof, "--prof-truth", truth]).expect(0).out.splitlines()[-1])
    case.npuscope("analyze", "-o", case.path("results"), torch).expect(DONE)
    database = next(case.path("results").rglob("ascend_pytorch_profiler*.db"))
    every = ("--export", "text,db,perfetto,folded")
    sources = [(session, *every), (prof, *every), (aux,), (torch,), (torch, "--gzip"), (database,)]
    sources += [(Path(p), *every) for p in os.environ.get("NPUSCOPE_FAULT_INPUTS", "").split(":") if p]
    return [Failing(case, library, *words) for words in sources]


def shown(case: Case, library: Path) -> list[Failing]:
    """A session of two ranks, which are compared, a database, and a trace with tables beside it."""
    session, torch = synthetic.session(case), case.path("torch")
    torch = Path(case.run([sys.executable, AUX / "framework.py", torch, "--memory"]).expect(0).out.splitlines()[-1])
    for formats in ("db", "text"):
        case.npuscope("analyze", "--export", formats, "-o", case.path(formats), torch).expect(DONE)
    database, = case.path("db").rglob("ascend_pytorch_profiler*.db")
    trace, = case.path("text").rglob("trace_view.json")
    sources = [(session,), (session, "--json"), (torch, "--json"), (database,), (trace, "--json"), (trace,)]
    return [Shown(case, library, *words) for words in sources]


def beside_traces(case: Case, library: Path) -> list[Failing]:
    """A trace of the PyTorch profiler, with all that is read beside it, and two slices of one of msprof."""
    torch = Path(case.run([sys.executable, AUX / "framework.py", case.path("torch"), "--memory"]
                          ).expect(0).out.splitlines()[-1])
    case.npuscope("analyze", "--export", "text", "-o", case.path("text"), torch).expect(DONE)
    trace, = case.path("text").rglob("trace_view.json")
    for path in [*trace.parent.parent.glob("profiler_info*"), *trace.parent.glob("npuscope_findings.json")]:
        path.unlink()
    (trace.parent.parent / "profiler_info_3.json").write_text("{}")
    (trace.parent / "communication.json").write_text("{}")
    (trace.parent / "communication_matrix.json").write_text("{}")
    slices = case.path("slices")
    slices.mkdir()
    for number, name in enumerate(("a", "b")):
        event = {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5.0 + number, "dur": 1}
        (slices / f"trace_view_slice_{number}_1.json").write_text(json.dumps([event]))
    return [Shown(case, library, path, "--json") for path in (trace, slices / "trace_view_slice_0_1.json", slices)]


def try_all(tried: list[Failing], points: int) -> None:
    rng = random.Random(SEED)
    wrong = []
    for number in range(points):
        one = tried[number % len(tried)]
        kinds = [kind for kind, calls in one.calls.items() if calls]
        kind = rng.choices(kinds, [WEIGHTS.get(k, 1) for k in kinds])[0]
        at = rng.randint(1, one.calls[kind] if rng.random() < 0.8 else min(one.calls[kind], 40))
        error, stays = rng.choice(ERRORS[kind]), rng.random() < 0.3
        what = f"{one.name}: {kind} {at} of {one.calls[kind]}" \
               f"{' and later' if stays else ''}: {errno.errorcode[error]}"
        try:
            run = one.run(kind, at, error, stays)
            fault = one.fault(run, stays)
            tail = run.err[-300:]
        except subprocess.TimeoutExpired:
            fault, tail = "hangs", ""
        if fault:
            wrong.append(f"{what}: {fault}\n{tail}")
            if len(wrong) <= int(os.environ.get("NPUSCOPE_FAULTS_SHOWN", "0")):
                print(wrong[-1], flush=True)
    assert not wrong, f"seed {SEED}: {len(wrong)} of {points}:\n" + "\n".join(wrong[:5])


@test(seconds=max(300, POINTS * 10))
def every_failing_call_is_reported(case: Case) -> None:
    library = build_library(case, "fail_call_lib.c", "fail_call.so", case.path("lib"))
    try_all(inputs(case, library), POINTS)


@test(seconds=max(300, POINTS * 10))
def show_prints_every_failing_call(case: Case) -> None:
    library = build_library(case, "fail_call_lib.c", "fail_call.so", case.path("lib"))
    try_all(shown(case, library), POINTS)


@test(seconds=600)
def each_file_beside_a_trace(case: Case) -> None:
    """Opened, listed, looked at and read: each time that it fails."""
    library = build_library(case, "fail_call_lib.c", "fail_call.so", case.path("lib"))
    wrong = []
    kinds = ("open", "opendir", "stat", "read")
    for one in beside_traces(case, library):
        assert all(one.calls[kind] for kind in kinds), f"{one.name}: not all of these are made: {one.calls}"
        for kind in kinds:
            for at in range(1, one.calls[kind] + 1):
                run = one.run(kind, at, errno.EACCES if kind == "open" else errno.EIO)
                fault = one.fault(run, False)
                wrong += [f"{one.name}: {kind} {at}: {fault}\n{run.err[-300:]}"] if fault else []
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])


if __name__ == "__main__":
    sys.exit(main())
