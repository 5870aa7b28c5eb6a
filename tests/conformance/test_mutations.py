#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Damages copies of good results, one fault at a time, and asserts that the checker finds it.

Results to use: the folders given as arguments, else those of NPUSCOPE_REFERENCE_DATA
(real captures) and NPUSCOPE_RESULT_DIR (our own). Without any, captures are generated and
analysed, and each fault is tried on the first result that can have it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

import mutations_db  # noqa: E402
import mutations_text  # noqa: E402
import mutations_viewer  # noqa: E402
import test_results  # noqa: E402
from harness import ROOT, Skip, Tests, execute, loaded  # noqa: E402
from mutation import Copy, Mutation  # noqa: E402

sys.path.insert(0, str(ROOT / "tools" / "conformance"))
import capture  # noqa: E402

CHECK = "tools/conformance/check"
VARIABLES = ("NPUSCOPE_REFERENCE_DATA", "NPUSCOPE_RESULT_DIR")
MUTATIONS = mutations_text.MUTATIONS + mutations_db.MUTATIONS + mutations_viewer.MUTATIONS


def roots() -> list[Path]:
    """Folders to search for results."""
    if sys.argv[1:]:
        return [Path(argument) for argument in sys.argv[1:]]
    return [Path(os.environ[name]) for name in VARIABLES if os.environ.get(name)]


SESSIONS = ROOT / "build" / "bench" / "gen_session"
GENERATED = [
    test_results.Case("torch", "--tasks 300 --memcpy-every 9 --aicpu-every 11 --pmu",
                      "--task-queue --memory --python-stacks --gc --steps 3", ""),
    test_results.Case("msprof", "--tasks 200 --mstx-every 9 --aicpu-every 9 --model 5 --step-trace"),
    test_results.Case("counters", "--tasks 200", aux="--version2"),
]


def generate(where: Path) -> list[Path]:
    """Results of generated captures, in both generations."""
    found = []
    for case in GENERATED:
        (where / case.name).mkdir()
        source = test_results.capture(case, where / case.name)
        for generation in "ba":
            found.append(test_results.analyse(source, where / case.name / generation, generation))
    return found + (session(where) if SESSIONS.exists() else [])


def session(where: Path) -> list[Path]:
    """Results of a generated session of ours: of a rank, and of the whole
    host, where nothing runs on a device."""
    source, out = where / "session", where / "of_session"
    test_results.run(SESSIONS, source, 300, "more")
    document = json.loads((source / "session.json").read_text())
    document["request"]["all"] = True
    (source / "session.json").write_text(json.dumps(document))
    test_results.run(test_results.PROGRAM, "analyze", "-o", out, source)
    return [min((out / "ranks").iterdir()), *(out / "whole_host").iterdir()]


def fresh(folder: Path, scratch: Path, generation: str) -> Copy:
    """A writable copy of FOLDER."""
    target = scratch / folder.name
    for old in scratch.iterdir():
        shutil.rmtree(old)
    shutil.copytree(folder, target, symlinks=True)
    if generation == "A":                       # modes matter in our own results only
        for path in (target, *target.rglob("*")):
            path.chmod(0o750 if path.is_dir() else 0o640)
    return Copy(target, generation)


def baseline(folder: Path, made: bool) -> str:
    """The generation of an undamaged result, which must pass."""
    # system calls of the one generator overlap each other, the threads of the other run on one CPU
    ignored = ("--ignore", "V8", "--ignore", "E2") if made else ()
    done = execute(CHECK, *ignored, folder)
    assert done.returncode == 0, f"the undamaged result fails:\n{done.stdout}{done.stderr}"
    return re.search(r"generation (\w)", done.stdout).group(1)


def all_but(ident: str) -> list[str]:
    """Options that leave every other check out: they would read the whole result once more for nothing."""
    tool = loaded(CHECK)
    idents = {rule[0] for part in (*tool.PARTS, tool.check_session) for rule in part.RULES.rules}
    assert ident in idents, f"no check is called {ident}"
    return [word for other in sorted(idents - {ident}) for word in ("--ignore", other)]


def damage(folder: Path, scratch: Path, generation: str, mutation: Mutation, tried: set[tuple[str, str]]) -> None:
    """Apply one fault to a fresh copy; the check that it breaks must report it."""
    copy = fresh(folder, scratch, generation)
    mutation.apply(copy)
    tried.add(mutation[:2])
    pair = ("--same-session", copy.path) if mutation.expected.startswith("X") else ()
    done = execute(CHECK, "--generation", generation, *all_but(mutation.expected), *pair, copy.path)
    failed = re.findall(r"^FAIL (\S+)", done.stdout, re.M)
    assert done.returncode == 1, f"exit {done.returncode}: {done.stderr}"
    assert mutation.expected in failed, f"expected {mutation.expected} to fail, failed were {failed}"


def main() -> int:
    """Entry point."""
    tests = Tests()
    folders = [folder for root in roots() for folder in capture.find(root)]
    with tempfile.TemporaryDirectory(prefix="mutations-") as scratch:
        made = not folders
        if made and test_results.PROGRAM.exists() and test_results.GENERATOR.exists():
            folders = generate(Path(scratch))
        if not folders:
            def nothing() -> None:
                raise Skip(f"neither {' nor '.join(VARIABLES)} names a result, and none can be made: make all "
                           "witnesses")
            tests.run("mutations", nothing)
            return tests.finish()
        tried: set[tuple[str, str]] = set()
        (Path(scratch) / "copy").mkdir()
        for folder in folders:
            name = "/".join(folder.parts[-3:])
            found: list[str] = []
            tests.run(f"{name}: undamaged", lambda: found.append(baseline(folder, made)))
            for mutation in MUTATIONS if found else ():
                if made and mutation[:2] in tried:
                    continue
                tests.run(f"{name}: {mutation.name}",
                          lambda: damage(folder, Path(scratch) / "copy", found[0], mutation, tried),
                          quiet_skip=True)  # a fault in what this capture does not hold
    print(f"{len(tried)} of {len(MUTATIONS)} faults were tried")
    for mutation in MUTATIONS:
        if made and mutation[:2] not in tried:
            print(f"not tried: {mutation.name} ({mutation.expected})")
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
