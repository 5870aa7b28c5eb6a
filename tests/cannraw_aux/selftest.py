#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generate with many option sets, read everything anew and compare with the truth files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import check_framework
import check_sidecars

HERE = Path(__file__).resolve().parent
SIDECARS = ["", "--samples 1", "--samples 700 --seed 9", "--version2", "--aged --slice-bytes 777",
            "--slice-bytes 1000",
            "--host-mhz none --no-done", "--host-mhz 2399.87 --device-mhz 48.5", "--wrap --samples 200", "--device 3",
            "--version2 --aged --slice-bytes 4096 --seed 4"]
FRAMEWORK = ["", "--task-queue", "--task-queue --memory --python-stacks --gc --mstx", "--threads 1 --memory",
             "--threads 1 --task-queue --memory --mstx", "--syscnt off --python-stacks --memory",
             "--mhz 24 --memory --gc",
             "--mhz 2399.87 --task-queue --steps 7 --ops 3000 --memory --python-stacks --mstx",
             "--nasty --task-queue --memory --python-stacks --gc --mstx", "--nasty --threads 1 --syscnt off",
             "--ops 1 --steps 1", "--ops 5 --steps 5 --task-queue --mstx --memory"]

# options of the generator of device tasks, which is named on the command line, and of the framework over them
TASKS = ["--tasks 2000", "--tasks 2000 --threads 3 --streams 4 --level 2", "--tasks 500 --host-counter none",
         "--tasks 2000 --ffts-every 7 --mstx-every 9 --memcpy-every 5 --event-every 11"]
OVER = ["--task-queue --memory --python-stacks --mstx --steps 3", "--memory --gc", "--syscnt off --nasty"]


def generate(program: str, where: Path, arguments: list[str]) -> tuple[Path, Path]:
    truth = where / f"{program}.truth"
    command = [sys.executable, str(HERE / program), *arguments, "--truth", str(truth)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program}: {done.stderr}"
    return Path(done.stdout.splitlines()[-1]), truth


def sidecars(where: Path, text: str) -> str:
    arguments = text.split()
    result, truth = generate("sidecars.py", where, [str(where), "--make", *arguments])
    device = int(arguments[arguments.index("--device") + 1]) if "--device" in arguments else 0
    return f"{check_sidecars.check(result, truth, device)} rows"


def framework(where: Path, text: str) -> str:
    result, truth = generate("framework.py", where, [str(where), *text.split()])
    return check_framework.check(result, truth)


def over_tasks(where: Path, generator: str, tasks: str, text: str) -> str:
    """Both generators on top of the directory that the generator of device tasks makes."""
    truth = where / "tasks.truth"
    done = subprocess.run([generator, *tasks.split(), "--truth", str(truth), str(where)], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    prof = Path(done.stdout.splitlines()[-1])
    _, output = generate("sidecars.py", where, [str(prof)])
    rows = check_sidecars.check(prof, output)
    result, output = generate("framework.py", where, [str(where / "pt"), "--prof", str(prof), "--prof-truth", str(truth),
                                                    *text.split()])
    return f"{rows} rows; " + check_framework.check(result, output, truth)


def main() -> int:
    passed = failed = 0
    cases = [("sidecars", sidecars, (text,)) for text in SIDECARS]
    cases += [("framework", framework, (text,)) for text in FRAMEWORK]
    if len(sys.argv) > 1:
        cases += [("over tasks", over_tasks, (sys.argv[1], tasks, text)) for tasks in TASKS for text in OVER]
    for kind, test, arguments in cases:
        name = f"{kind} {' | '.join(text for text in arguments if text not in sys.argv)}".strip()
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"PASS {name}: {test(Path(folder), *arguments)}")
                passed += 1
            except AssertionError as error:
                print(f"FAIL {name}: {error}")
                failed += 1
            except Exception:               # a broken test is a failed test
                print(f"FAIL {name}:\n{traceback.format_exc()}")
                failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
