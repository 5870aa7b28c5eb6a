#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`npuscope analyze` without room on the disk, memory or open files, killed, and beside others of its kind.

Whatever happens, only whole results have a name: each is the one of an analysis that nothing disturbed.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from damage import (BESIDE_TORCH, DONE, FAILED, GEN_CANN, NPUSCOPE, PARTIAL, SECONDS, SEED, Outcome, analyze, copy_of,
                    database_copy, digest, fresh, good_cann, good_session, good_torch, main, no_temporary, run, same,
                    test)
from harness import Skip


def inputs() -> list[Path]:
    """One of each kind that can be made here."""
    found = [good_session(3000), database_copy()]
    if GEN_CANN.exists():
        found += [good_cann(BESIDE_TORCH)[0], good_torch()]
    return found


ALL = ("-e", "text,db,perfetto,folded")


def whole_result(path: Path) -> Path:
    out = fresh("whole")
    outcome = analyze(path, "-o", out, *ALL)
    assert outcome.status in (DONE, PARTIAL), outcome.err
    return out


@test
def twice_the_same() -> None:
    for path in inputs():
        one, other = whole_result(path), whole_result(path)
        same(one, other)
        outcome = analyze(path, "-o", one, *ALL)
        assert outcome.status in (DONE, PARTIAL)
        same(one, other)
        no_temporary(one)


def nothing_half(what: str, out: Path, outcome: Outcome, whole: Path) -> None:
    """Only whole results have a name, whatever the status."""
    no_temporary(out)
    for entry in out.iterdir():
        assert str(out / entry.name) in outcome.out, f"{what}: {entry.name} was left, but not named"
        same(entry, whole / entry.name)


@test
def no_space() -> None:
    """A disk that is too small by more or less."""
    if os.geteuid() != 0:
        raise Skip("needs root: mounts")
    for path in inputs():
        whole = whole_result(path)
        size = sum(p.stat().st_size for p in whole.rglob("*") if p.is_file())
        full = 0
        for share in (0.02, 0.2, 0.5, 0.8, 0.97):
            disk = fresh("disk")
            disk.mkdir()
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(4096, int(size * share))}", "none", disk],
                                  check=False, capture_output=True, text=True)
            if done.returncode:
                raise Skip(f"needs tmpfs: {done.stderr.strip()}")
            try:
                outcome = analyze(path, "-o", disk, *ALL)
                full += outcome.status == FAILED
                assert outcome.status != FAILED or "No space left" in outcome.err, outcome.err
                assert len(outcome.complaints) <= 3, f"many words: {outcome.err}"
                nothing_half(f"{path.name} on {share} of what it needs", disk, outcome, whole)
            finally:
                subprocess.run(["umount", "-l", disk], check=False)
        assert full >= 3, f"{path.name}: {full} of 5 disks were too small"


@test
def file_size_limit() -> None:
    """ulimit -f: an error, not a signal."""
    for path in inputs():
        whole = whole_result(path)
        for limit in (1, 4096, 65536, 300000):
            out = fresh()
            outcome = analyze(path, "-o", out, *ALL,
                              before=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
            if outcome.status == FAILED:
                assert "cannot" in outcome.err and len(outcome.complaints) <= 3, outcome.err
            if out.exists():
                nothing_half(f"{path.name} with files of {limit}", out, outcome, whole)


@test
def no_memory() -> None:
    """Little address space: an error, not a crash."""
    for path in inputs():
        whole = whole_result(path)
        for megabytes in (40, 80, 160, 320):
            out = fresh()
            outcome = analyze(path, "-o", out, *ALL, before=lambda n=megabytes: resource.setrlimit(
                resource.RLIMIT_AS, (n << 20, n << 20)))
            if out.exists():
                nothing_half(f"{path.name} with {megabytes} MB", out, outcome, whole)


@test
def no_files() -> None:
    """Few open files."""
    for path in inputs():
        whole = whole_result(path)
        for files in (8, 16, 32):
            out = fresh()
            outcome = analyze(path, "-o", out, *ALL, before=lambda n=files: resource.setrlimit(
                resource.RLIMIT_NOFILE, (n, n)))
            if out.exists():
                nothing_half(f"{path.name} with {files} files", out, outcome, whole)


@test
def killed() -> None:
    """kill -9 at random moments: nothing half under a name; the next run clears what was left."""
    rng = random.Random(SEED)
    for path in inputs():
        begin = time.monotonic()
        whole = whole_result(path)
        elapsed = time.monotonic() - begin
        out = fresh()
        for number in range(12):
            run = subprocess.Popen([NPUSCOPE, "analyze", path, "-o", out, *ALL], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(rng.random() * elapsed)
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            for entry in out.iterdir() if out.exists() else ():
                if not entry.name.startswith("."):
                    same(entry, whole / entry.name)
            if number % 4 == 3:
                assert analyze(path, "-o", out, *ALL).status in (DONE, PARTIAL)
                same(out, whole)
                no_temporary(out)
                shutil.rmtree(out)


@test
def killed_beside_input() -> None:
    """The same in the input's own directory."""
    rng = random.Random(SEED)
    for path in (p for p in inputs() if p.is_dir()):
        copy = copy_of(path)
        begin = time.monotonic()
        assert analyze(copy).status in (DONE, PARTIAL)
        elapsed = time.monotonic() - begin
        whole = digest(copy)
        for _ in range(6):
            run = subprocess.Popen([NPUSCOPE, "analyze", copy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
            time.sleep(rng.random() * elapsed)
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            now = {name: content for name, content in digest(copy).items() if not name.startswith(".")}
            assert all(whole.get(name) == content for name, content in now.items()), "half of a result"
        assert analyze(copy).status in (DONE, PARTIAL)
        assert digest(copy) == whole
        no_temporary(copy)


@test
def two_at_once() -> None:
    """Several analyses into one directory: each one ends well, and the result is one of theirs, whole."""
    for path in inputs():
        whole = whole_result(path)
        for _ in range(3):
            out = fresh()
            runs = [subprocess.Popen([NPUSCOPE, "analyze", path, "-o", out, *ALL], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True) for _ in range(3)]
            for run in runs:
                _, err = run.communicate(timeout=SECONDS)
                assert run.returncode in (DONE, PARTIAL), f"{path.name}: status {run.returncode}: {err[-600:]}"
            same(out, whole)
            no_temporary(out)


if __name__ == "__main__":
    sys.exit(main())
