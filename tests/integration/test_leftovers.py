#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a killed `npuscope analyze` leaves is removed by the next one of the same input, wherever the first
wrote, or into the same directory. What a living one has is not, nor what npuscope did not make."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import Optional

import synthetic
from harness import (DONE, NPUSCOPE, ROOT, Case, Running, build_library, environment, main, need, need_root, test,
                     wait_until)

GEN_CANN = ROOT / "build" / "tests" / "gen-cann"
NOBODY = 65534
AT_ONCE = 6
HOST = f"{zlib.crc32(platform.node().encode()):08x}"  # as it is in the names of temporary directories


def prof(case: Case, name: str, seed: int = 1) -> Path:
    need(GEN_CANN.exists(), "build/tests/gen-cann: make witnesses")
    done = case.run([GEN_CANN, "--tasks", 30, "--seed", seed, case.path(name)]).expect(0)
    return Path(done.out.splitlines()[-1])


def home(case: Case, **more: object) -> dict[str, str]:
    state = case.path("state")
    state.mkdir(mode=0o700, exist_ok=True)
    return environment(XDG_STATE_HOME=state, **more)


def stopped(case: Case, source: Path, out: Path, *, env: Optional[dict[str, str]] = None) -> Running:
    """An analysis that stands still with all of its result in a temporary directory."""
    library = build_library(case, "fail_call_lib.c", "fail_call.so", case.path("lib"))
    env = dict(env or home(case)) | {"LD_PRELOAD": str(library), "FAIL_KIND": "rename", "FAIL_AT": "1",
                                     "FAIL_STOP": "1"}
    run = case.start([NPUSCOPE, "analyze", "-o", out, source], env=env)
    wait_until(lambda: Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "the stop")
    assert len(hidden(out)) == 1 and files(hidden(out)[0]), f"{hidden(out)}"
    return run


def killed(case: Case, source: Path, out: Path, *, env: Optional[dict[str, str]] = None) -> Path:
    run = stopped(case, source, out, env=env)
    left = hidden(out)[0]
    run.signal(signal.SIGKILL)
    run.wait()
    assert left.exists()
    return left


def hidden(path: Path) -> list[Path]:
    return sorted(path.glob(".*"))


def files(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def analyze(case: Case, source: Path, out: Path, env: Optional[dict[str, str]] = None) -> Path:
    case.npuscope("analyze", "-o", out, source, env=env or home(case)).expect(DONE)
    return out / source.name


@test
def of_the_same_input(case: Case) -> None:
    """The second writes elsewhere, also into the input's own directory,
    and is given the input by another path."""
    source = prof(case, "raw")
    link = case.path("link")
    link.symlink_to(source)
    for number, args in enumerate((["-o", case.path("other"), source], [source], ["-o", case.path("third"), link])):
        left = killed(case, source, case.path(f"out{number}"))
        case.npuscope("analyze", *args, env=home(case)).expect(DONE)
        assert not left.exists() and not hidden(case.path(f"out{number}")), f"{args}: {left} is still there"
    notes = [p for p in case.path("state").rglob("*") if p.is_file()]
    assert not notes, f"notes of what is gone: {notes}"


@test
def into_the_same_directory(case: Case) -> None:
    """By the analysis of another input, also of a user who has no directory for notes."""
    first, second = prof(case, "raw"), prof(case, "raw2", 2)
    for env in (home(case), environment(HOME="/nonexistent", XDG_STATE_HOME="")):
        left = killed(case, first, case.path("out"), env=env)
        analyze(case, second, case.path("out"), env)
        assert not left.exists() and not hidden(case.path("out")), hidden(case.path("out"))
        shutil.rmtree(case.path("out"))


@test
def in_the_inputs_own_directory(case: Case) -> None:
    source = prof(case, "raw")
    copy = case.path("copy")
    shutil.copytree(source, copy / source.name)
    left = killed(case, copy, copy / source.name)
    analyze(case, copy, case.path("out"))
    assert not left.exists()


@test
def of_one_that_lives(case: Case) -> None:
    """It has not run for long, and others analyse the same input into
    the same directory: its result is whole."""
    source = prof(case, "raw")
    run = stopped(case, source, case.path("out"))
    left = hidden(case.path("out"))[0]
    os.utime(left, (1, 1))
    before = files(left)
    expected = files(analyze(case, source, case.path("other")))
    analyze(case, source, case.path("out"))
    assert files(left) == before, "a living analysis lost its files"
    run.signal(signal.SIGCONT)
    run.result().expect(DONE)
    assert files(case.path("out") / source.name) == expected and not hidden(case.path("out"))


@test
def of_somebody_else(case: Case) -> None:
    """Names like ours, of other kinds, of other users and behind links: nothing of it is touched."""
    need_root()
    source, out, precious = prof(case, "raw"), case.path("out"), case.path("precious")
    precious.mkdir()
    (precious / "file").write_text("x")
    for name in (".note.1.0.tmp", ".npuscope-x.tmp", ".npuscope-x.1.0.tmp.d", ".npuscope-x.1.0x.tmp",
                 ".npuscope.1.tmp"):
        (out / name).mkdir(parents=True)
        (out / name / "file").write_text("x")
    (out / ".npuscope-x.1.1.tmp").symlink_to(precious)
    (out / ".npuscope-x.1.2.tmp").write_text("a file")
    foreign = out / ".npuscope-x.1.3.tmp"
    foreign.mkdir()
    (foreign / "file").write_text("x")
    os.chown(foreign, NOBODY, NOBODY)
    elsewhere = out / ".npuscope-x@01234567.1.5.tmp"  # a host that has the same file system
    elsewhere.mkdir()
    old = out / ".npuscope-x@01234567.1.6.tmp"
    old.mkdir()
    os.utime(old, (time.time() - 90000, time.time() - 90000))
    ours = out / f".npuscope-x@{HOST}.1.4.tmp"
    ours.mkdir()
    (ours / "link").symlink_to(precious)
    # Notes with false content.
    env = home(case)
    left = killed(case, source, case.path("first"), env=env)
    notes = [p for p in case.path("state").rglob("*") if p.is_file()]
    assert len(notes) == 1, notes
    text = notes[0].read_text()
    for number, (temp, where) in enumerate((("precious", case.dir), ("../precious", out), (".npuscope-x.1.1.tmp", out),
                                            (".npuscope-x.1.3.tmp", out), ("", case.dir))):
        lines = text.split("\n")
        (notes[0].parent / f"{notes[0].name.split('.')[0]}.{number}").write_text("\n".join([lines[0], temp,
                                                                                            str(where)]))
    (notes[0].parent / f"{notes[0].name.split('.')[0]}.link").symlink_to("/dev/zero")
    os.mkfifo(notes[0].parent / f"{notes[0].name.split('.')[0]}.fifo")
    before = files(out) | {p.name: b"" for p in out.iterdir() if p not in (ours, old)}
    analyze(case, source, out, env)
    shutil.rmtree(out / source.name)
    after = files(out) | {p.name: b"" for p in out.iterdir()}
    assert after == before, f"gone: {before.keys() - after.keys()}"
    assert (precious / "file").exists() and not left.exists()


@test
def of_the_whole_host(case: Case) -> None:
    """The results of such a session are one directory further down; a link there is not followed."""
    source = synthetic.of_the_whole_host(synthetic.session(case))
    out, elsewhere = case.path("out"), case.path("elsewhere")
    case.npuscope("analyze", "-o", out, source, env=home(case)).expect(DONE)
    assert {p.name for p in out.iterdir()} == {"ranks", "whole_host"}, list(out.iterdir())
    left = [below / f".npuscope-x@{HOST}.1.0.tmp" for below in (out / "ranks", out / "whole_host", elsewhere)]
    for path in left:
        path.mkdir(parents=True)
        (path / "file").write_text("x")
    case.npuscope("analyze", "-o", out, source, env=home(case)).expect(DONE)
    assert [path.exists() for path in left] == [False, False, True], left
    shutil.rmtree(out / "ranks")
    (out / "ranks").symlink_to(elsewhere)
    case.npuscope("analyze", "-o", out, prof(case, "raw"), env=home(case)).expect(DONE)
    assert left[2].exists()


@test
def notes_of_what_is_nowhere(case: Case) -> None:
    """The directory that a note names may be on a disk that is away, but not for good."""
    source = prof(case, "raw")
    killed(case, source, case.path("out"))
    [note] = [p for p in case.path("state").rglob("*") if p.is_file()]
    shutil.rmtree(case.path("out"))
    for days in (29, 31):
        os.utime(note, (0, time.time() - days * 86400))
        analyze(case, source, case.path("other"))
        assert note.exists() == (days == 29), f"after {days} days"


@test
def at_once(case: Case) -> None:
    """Several analyses of one input into one directory: all are done, and what is there is whole."""
    source = prof(case, "raw")
    expected = files(analyze(case, source, case.path("alone")))
    for _ in range(5):
        killed(case, source, case.path("out"))
        argv = [NPUSCOPE, "analyze", "-o", case.path("out"), source]
        runs = [case.start(argv, env=home(case)) for _ in range(AT_ONCE)]
        for run in runs:
            run.result().expect(DONE)
        assert files(case.path("out") / source.name) == expected
        assert not hidden(case.path("out")), hidden(case.path("out"))


if __name__ == "__main__":
    sys.exit(main())
