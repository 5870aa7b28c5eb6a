#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Python stacks that are read from outside, against those that the job itself reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import DONE, FAILED, JOB_SOURCES, ROOT, Case, Running, Skip, add_test, main, need, need_job, need_root

READER = ROOT / "build" / "tests" / "python_stacks"
JOB = JOB_SOURCES / "python_stacks_job.py"
LINES_JOB = JOB_SOURCES / "python_lines_job.py"
SYSTEM = "/usr/bin/python3"

# Interpreters that are tested where they exist: those of pyenv, and of Debian's other releases, unpacked into
# NPUSCOPE_PYTHONS/SUITE, with their own libc.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
UNPACKED = Path(os.environ.get("NPUSCOPE_PYTHONS", "/nonexistent"))


def unpacked(program: Path) -> tuple[list[Any], dict[str, str]]:
    """The command of an interpreter below a folder of unpacked packages, and its environment."""
    root = program.parents[2]
    libraries = [str(root / part / f"{os.uname().machine}-linux-gnu") for part in ("lib", "usr/lib")]
    loader = next(path for library in libraries for path in Path(library).glob("ld-linux-*.so.?"))
    return ([loader, "--library-path", ":".join(libraries), program],
            {**os.environ, "PYTHONHOME": str(root / "usr")})


def interpreters() -> list[tuple[str, list[Any], dict[str, str]]]:
    """(name of the test, command, environment)."""
    found = [("system", [SYSTEM], dict(os.environ))]
    for folder in sorted(PYENV.glob("3.*")):
        minor = int(folder.name.split(".")[1])
        if 8 <= minor <= 15 and (folder / "bin" / "python3").exists():
            found.append((f"pyenv_{folder.name}", [folder / "bin" / "python3"], dict(os.environ)))
    for program in sorted(UNPACKED.glob("*/usr/bin/python3.*[0-9]")):
        found.append((f"{program.parents[2].name}_{program.name}", *unpacked(program)))
    return found


def read_stacks(pid: int, tids: list[int]) -> tuple[str, dict[int, list[list[Any]]]]:
    """The first line of the reader, and thread -> frames."""
    done = subprocess.run([READER, str(pid), *map(str, tids)], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    head, *lines = done.stdout.decode("utf-8").splitlines()
    stacks: dict[int, list[list[Any]]] = {}
    for line in lines:
        if line.startswith("thread "):
            frames = stacks.setdefault(int(line.split()[1][:-1]), [])
            continue
        name, file, number = line.split("\t")
        frames.append([name, file, int(number)])
    return head, stacks


def own_reports(job: Running) -> list[dict[str, Any]]:
    """What the threads of the job reported."""
    job.wait_for("^ready")
    return [json.loads(line) for line in job.out.splitlines() if line.startswith("{")]


def stacks_of(case: Case, command: list[Any], environment: dict[str, str]) -> None:
    """Every thread's stack is what that thread reported: names, files and lines."""
    need_root()
    need(READER.exists(), f"{READER}: make witnesses")
    job = case.start([*command, JOB], env={**environment, "PYTHONIOENCODING": "utf-8"})
    reports = own_reports(job)
    head, stacks = read_stacks(job.pid, [report["tid"] for report in reports])
    print(f"  {head}, {len(reports)} threads, {sum(len(report['frames']) for report in reports)} frames")
    assert len(reports) >= 13, f"{len(reports)} threads"
    for report in reports:
        assert stacks[report["tid"]] == report["frames"], first_difference(report, stacks[report["tid"]])
    job.kill()


def first_difference(report: dict[str, Any], frames: list[list[Any]]) -> str:
    """In words."""
    for index, (own, read) in enumerate(zip(report["frames"], frames)):
        if own != read:
            return f"{report['thread']}: frame {index} is {own}, read was {read}"
    return f"{report['thread']}: {len(report['frames'])} frames, read were {len(frames)}"


def lines_of(case: Case, command: list[Any], environment: dict[str, str]) -> None:
    """Every instruction of the standard library has the line that the interpreter has for it."""
    need(READER.exists(), f"{READER}: make witnesses")
    listed = case.run([*command, LINES_JOB], env={**environment, "PYTHONIOENCODING": "utf-8"})
    assert listed.status == 0, listed.err
    tables, own = listed.out.splitlines()[::2], listed.out.splitlines()[1::2]
    done = subprocess.run([READER, "--lines"], input="\n".join(tables), capture_output=True, text=True, check=True)
    found = done.stdout.splitlines()
    print(f"  {len(own)} functions, {sum(len(line.split()) for line in own)} instructions")
    assert len(own) > 1000 and len(found) == len(own), f"{len(own)} {len(found)}"
    wrong = [index for index, line in enumerate(own) if line != found[index]]
    assert not wrong, f"{len(wrong)} functions: {tables[wrong[0]]}: {own[wrong[0]]}: {found[wrong[0]]}"


def add_tests(name: str, command: list[Any], environment: dict[str, str]) -> None:
    """Both tests of an interpreter."""
    add_test(f"stacks_{name}", lambda case: stacks_of(case, command, environment))
    add_test(f"lines_{name}", lambda case: lines_of(case, command, environment))


def doctor_of(case: Case) -> None:
    """One line for a process that runs Python, and for one that does not."""
    need_root()
    job = case.start([SYSTEM, "-c", "import time; print('ready', flush=True); time.sleep(100)"])
    job.wait_for("^ready")
    version = "%d.%d" % sys.version_info[:2]
    result = case.npuscope("doctor", "--python", job.pid).expect(DONE)
    assert result.out == (f"process {job.pid}: Python {version}: stacks can be read, threads are found by the "
                          "interpreter's pthread key\n"), result.out
    other = case.start(["sleep", "100"])
    result = case.npuscope("doctor", "--python", other.pid).expect(FAILED)
    assert result.out == f"process {other.pid}: no Python stacks: it maps no file that exports _PyRuntime\n", result.out
    other.kill()
    result = case.npuscope("doctor", "--python", other.pid).expect(FAILED)
    assert result.complaints == [f"npuscope: process {other.pid}: no Python stacks: No such process"], result.err


def renamed_and_deleted(case: Case) -> None:
    """An interpreter of another name, whose file was deleted."""
    need_root()
    program = case.path("trainer")
    shutil.copy(os.path.realpath(SYSTEM), program)
    job = case.start([program, JOB], env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    reports = own_reports(job)
    program.unlink()
    _, stacks = read_stacks(job.pid, [report["tid"] for report in reports])
    for report in reports:
        assert stacks[report["tid"]] == report["frames"], first_difference(report, stacks[report["tid"]])
    job.kill()


RECURSION = """
import sys
sys.setrecursionlimit(5000)
def even(n):
    return odd(n - 1) if n else 0
def odd(n):
    return even(n - 1) if n else 1
print("ready", flush=True)
while True:
    for depth in range(300): even(depth)
"""


def running_thread(case: Case) -> None:
    """Stacks of a thread that calls and returns all the time: they are of its functions, or are refused."""
    need_root()
    job = case.start([SYSTEM, "-c", RECURSION])
    job.wait_for("^ready")
    done = subprocess.run([READER, str(job.pid), *[str(job.pid)] * 1000], capture_output=True, text=True, check=False)
    refused = whole = 0
    names: list[str] = []
    for line in [*done.stdout.splitlines()[1:], "thread"]:
        if not line.startswith("thread"):
            name, file, _number = line.split("\t")
            assert name in ("even", "odd", "<module>") and file == "<string>", line
            names.append(name)
            continue
        refused += line.endswith(": -14")
        calls = [name for name in names if name != "<module>"]
        whole += names[-1:] == ["<module>"] and all(a != b for a, b in zip(calls, calls[1:]))
        names = []
    print(f"  of 1000 stacks {refused} refused, {whole} whole")
    assert whole > 300, f"{whole} {refused}"
    job.kill()


def embedded(case: Case) -> None:
    """A program in C that loads libpython, and runs Python in a thread that is not its first."""
    need_root()
    library = libpython()
    job = case.start([need_job("python_embed_job"), library, JOB],
                     env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONHOME": home_of(library)})
    reports = own_reports(job)
    assert job.pid not in [report["tid"] for report in reports]
    _, stacks = read_stacks(job.pid, [report["tid"] for report in reports])
    for report in reports:
        assert stacks[report["tid"]] == report["frames"], first_difference(report, stacks[report["tid"]])
    job.kill()


def libpython() -> Path:
    """The library of Debian or of a pyenv."""
    for folder in (Path("/usr/lib"), PYENV):
        for path in sorted(folder.rglob("libpython3.1?.so.1.0")):
            return path
    raise Skip("no libpython3.1x.so.1.0: Debian's libpython3.11")


def home_of(library: Path) -> str:
    """Where the standard library of that libpython is."""
    return next(str(parent.parent) for parent in library.parents if parent.name == "lib")


def not_initialised(case: Case) -> None:
    """No thread runs Python code yet: that is reported, and is no error of the layout."""
    need_root()
    job = case.start([need_job("python_embed_job"), libpython()])
    job.wait_for("^loaded")
    result = case.npuscope("doctor", "--python", job.pid).expect(FAILED)
    assert result.out.endswith("no Python stacks: its interpreter is not initialised\n"), result.out
    job.kill()


add_test("doctor", doctor_of)
add_test("renamed_and_deleted", renamed_and_deleted)
add_test("running_thread", running_thread)
add_test("embedded", embedded)
add_test("not_initialised", not_initialised)
for _arguments in interpreters():
    add_tests(*_arguments)


if __name__ == "__main__":
    sys.exit(main())
