# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of damaged input share: analyses that have to end in order, good inputs of each kind to be
damaged, and the checks of every result.

A test is named by its kind of input first: that decides which checks of tools/conformance do not hold.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from harness import ROOT, Skip, Tests, execute

BUILD = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build"))
NPUSCOPE = BUILD / "npuscope"
GEN_CANN = ROOT / "build" / "tests" / "gen-cann"
AUX = ROOT / "tests" / "cannraw_aux"
DONE, FAILED, USAGE, PARTIAL = 0, 1, 2, 3
SECONDS = 100       # for one analysis, also of a file that claims to be huge, on a busy machine
HUGE = 100 << 30    # bytes of a sparse file
SEED = int(os.environ.get("NPUSCOPE_TEST_SEED", "1"))     # another one: other damage
# What cannot hold when the input contradicts itself, one table or event differing from the
# next: by the first word of a test's name.
CONTRADICTED = {
    "session": "T9 V8 C1 C6 C14 C16 C21 D10 D11 E2 E3 W2",
    "database": "F7 T8 T9 C6 C7 C15 C16 C17 C21 J3 J4 D2 D3 D4 D6 D9 D10 D11 D14 D15 S3 W2 W3 W4",
    "cann": "T8 T9 V8 C1 C2 C6 C7 D3 D4 D6 D14 J2 J4 J5 W1 W2",
    "torch": "T7 C9 W2",
}
BESIDE_TORCH = "--tasks 200 --comm-every 20"

all_tests: list[tuple[str, Callable[[], None]]] = []
SCRATCH = Path()    # set by main


def test(function: Callable[[], None]) -> Callable[[], None]:
    all_tests.append((function.__name__, function))
    return function


# --- running ------------------------------------------------------------------------------------------------

class Outcome(NamedTuple):
    """What became of a run."""
    status: int
    out: str
    err: str

    @property
    def results(self) -> list[Path]:
        return [Path(line) for line in self.out.splitlines()]

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("npuscope")]


def analyze(*args: object, before: Optional[Callable[[], None]] = None) -> Outcome:
    return run("analyze", *args, before=before)


def run(subcommand: str, *args: object, before: Optional[Callable[[], None]] = None) -> Outcome:
    """Run it; a signal or a run without end is a failure in every case."""
    command = [str(NPUSCOPE), subcommand, *map(str, args)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, preexec_fn=before,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{' '.join(command)} takes more than {SECONDS} s") from error
    outcome = Outcome(done.returncode, done.stdout.decode(errors="surrogateescape"),
                      done.stderr.decode(errors="backslashreplace"))
    assert done.returncode in (DONE, FAILED, USAGE, PARTIAL), f"status {done.returncode}: {outcome.err[-1500:]}"
    assert "Sanitizer" not in outcome.err and "runtime error" not in outcome.err, outcome.err[-3000:]
    if done.returncode != DONE:
        assert outcome.complaints, f"status {done.returncode} without a word"
    return outcome


def check(result: Path, loose: bool = False) -> None:
    """The checks of the formats; LOOSE: only those of their form."""
    names = CONTRADICTED[_running.partition("_")[0]].split() if loose else []
    ignored = [word for name in names for word in ("--ignore", name)]
    done = execute("tools/conformance/check", *ignored, result)
    failures = "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("PASS", "SKIP", "NOTE")))
    assert done.returncode == 0 or "nothing to check" in done.stderr, \
        f"{result.name}: {failures[:1500]} {done.stderr[:300]}"


def no_temporary(*folders: Path) -> None:
    left = [str(p) for folder in folders for p in folder.rglob(".*") if p.name.endswith((".tmp", ".old"))]
    assert not left, f"left behind: {left[:5]}"


_running = ""       # the test
_number = 0
_last: Optional[Path] = None    # the latest result of survive()


def fresh(name: str = "out") -> Path:
    """A path that does not exist."""
    global _number
    _number += 1
    return SCRATCH / f"{name}{_number}"


def survive(what: str, path: Path, *statuses: int, args: tuple[object, ...] = (), loose: bool = False) -> Outcome:
    """Analyse PATH: one of these statuses, and everything written is
    right. The result stays until the next one."""
    global _last
    if _last:
        shutil.rmtree(_last, ignore_errors=True)
    out = _last = fresh()
    outcome = analyze(path, "-o", out, *args)
    assert outcome.status in statuses, f"{what}: status {outcome.status}, not {statuses}: {outcome.err[-1500:]}"
    if outcome.status == FAILED:
        assert not outcome.out, f"{what}: failed, but named {outcome.out}"
        assert not out.exists() or not list(out.iterdir()), f"{what}: failed, but left {list(out.iterdir())}"
    for result in outcome.results:
        try:
            check_once(result, loose)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error
    no_temporary(*([out] if out.exists() else []))
    return outcome


_good: set[tuple[str, ...]] = set()     # results that have passed


def check_once(result: Path, loose: bool) -> None:
    """Both checks, unless the same bytes under the same name have
    passed them: much damage changes nothing."""
    known = (_running.partition("_")[0] if loose else "", result.name,
             *(text for file in digest(result).items() for text in file))
    if known not in _good:
        check(result, loose)
        nothing_backwards(result)
        _good.add(known)


def nothing_backwards(result: Path) -> None:
    """No interval of a database ends before it starts, whatever the input has."""
    for database in [*result.rglob("ascend_pytorch_profiler*.db"), *result.rglob("msprof_*.db")]:
        for (name,) in query(database, "SELECT name FROM sqlite_master WHERE type = 'table'"):
            columns = {row[1] for row in query(database, f"PRAGMA table_info({name})")}
            if {"startNs", "endNs"} <= columns:
                wrong = query(database,
                              f"SELECT count(*) FROM {name} WHERE CAST(endNs AS INTEGER) < CAST(startNs AS INTEGER)")
                assert wrong == [(0,)], f"{name}: {wrong[0][0]} rows end before they start"


def one_line(outcome: Outcome, *words: str) -> None:
    assert len(outcome.err.splitlines()) == 1, f"not one line: {outcome.err}"
    for word in words:
        assert word in outcome.err, f"{word!r} is not in {outcome.err}"


def digest(folder: Path) -> dict[str, str]:
    """Content of every file below, links not followed."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()}


def same(one: Path, other: Path) -> None:
    a, b = digest(one), digest(other)
    different = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    assert not different, f"{one} and {other} differ: {different[:6]}"


# --- inputs, each made once ---------------------------------------------------------------------------------

def need(path: Path, how: str) -> Path:
    if not path.exists():
        raise Skip(f"{path} is missing: {how}")
    return path


@functools.cache
def session_program() -> Path:
    made = BUILD / "bench" / "gen_session"
    if made.exists():
        return made
    made = SCRATCH / "gen_session"
    sources = [ROOT / "tools" / "bench" / "gen_session_main.c", ROOT / "tests" / "unit" / "gen_session.c"]
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-o", made, f"-I{ROOT}/kheaders",
                    f"-I{ROOT}/analyzer", f"-I{ROOT}/tests/unit", *sources, "-lz", "-lm"], check=True)
    return made


@functools.cache
def good_session(tasks: int = 400) -> Path:
    path = SCRATCH / f"session{tasks}"
    subprocess.run([session_program(), path, str(tasks)], check=True)
    return path


@functools.cache
def good_results() -> Path:
    """Of the session, in every format."""
    out = SCRATCH / "results"
    outcome = analyze(good_session(), "-o", out, "-e", "text,db,perfetto,folded")
    assert outcome.status == DONE and len(outcome.results) == 2, outcome
    return out


@functools.cache
def good_cann(options: str = "--tasks 200 --memcpy-every 16 --slice-kib 9") -> tuple[Path, Path]:
    """A PROF_* directory and its truth."""
    need(GEN_CANN, "make witnesses")
    out, truth = fresh("cann"), fresh("truth")
    done = subprocess.run([GEN_CANN, *options.split(), "--truth", truth, out], capture_output=True, text=True,
                          check=True)
    return Path(done.stdout.splitlines()[-1]), truth


@functools.cache
def good_torch() -> Path:
    """A *_ascend_pt directory over CANN's data."""
    prof, truth = good_cann(BESIDE_TORCH)
    out = fresh("torch")
    done = subprocess.run([sys.executable, AUX / "framework.py", out, "--memory", "--python-stacks", "--prof", prof,
                           "--prof-truth", truth, "--truth", fresh("truth")], capture_output=True, text=True,
                          check=True)
    return Path(done.stdout.splitlines()[-1])


def copy_of(path: Path, name: str = "copy") -> Path:
    """A copy that may be damaged, under its own name."""
    copy = fresh(name) / path.name
    if path.is_dir():
        shutil.copytree(path, copy)
    else:
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
    return copy


def database_copy() -> Path:
    """A result with its database alone."""
    made = next(good_results().glob("*_4000_*"))
    copy = fresh("database") / made.name
    shutil.copytree(made, copy,
                    ignore=shutil.ignore_patterns("*.csv", "npuscope*", "trace_view.json", "communication*"))
    return next(copy.rglob("ascend_pytorch_profiler*.db"))


def database_in(result: Path) -> Path:
    found = [*result.rglob("ascend_pytorch_profiler*.db"), *result.rglob("msprof_*.db")]
    assert len(found) == 1, f"databases in {result}: {found}"
    return found[0]


def query(database: Path, sql: str) -> list[tuple]:
    with sqlite3.connect(f"file:{database}?immutable=1", uri=True) as db:
        return db.execute(sql).fetchall()


def tasks_in(result: Path) -> list[tuple]:
    return query(database_in(result), "SELECT startNs, endNs, deviceId, streamId, taskId FROM TASK")


def expect_rows(what: str, got: list[tuple], truth: list[tuple], most_lost: int) -> None:
    """Nothing was made up, and no more is missing than was damaged."""
    strange = set(got) - set(truth)
    assert not strange, f"{what}: {len(strange)} rows that never were, such as {next(iter(strange))}"
    lost = len(truth) - len(got)
    assert lost <= most_lost, f"{what}: {lost} of {len(truth)} rows are missing, {most_lost} were damaged"


def main() -> int:
    global SCRATCH, _running
    tests = Tests()
    wanted = sys.argv[1:] or ["*"]
    if not NPUSCOPE.exists():
        raise SystemExit(f"{NPUSCOPE} is missing: make")
    with tempfile.TemporaryDirectory(prefix="npuscope-damaged-") as scratch:
        SCRATCH = Path(scratch)
        for name, function in all_tests:
            if any(fnmatch.fnmatch(name, pattern) for pattern in wanted):
                _running = name
                tests.run(name, function)
    return tests.finish()
