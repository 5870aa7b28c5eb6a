# SPDX-License-Identifier: BSD-2-Clause
"""The little that the tests of this folder share: run, count, report."""

from __future__ import annotations

import functools
import gc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path
from types import ModuleType
from typing import Callable, Iterable

ROOT = Path(__file__).resolve().parents[2]
SOAK = bool(os.environ.get("NPUSCOPE_SOAK"))    # `make soak`: the same tests with inputs that take minutes


class Skip(Exception):
    """Raised by a test that cannot run; the text has the reason."""


class Tests:
    """Runs functions and counts what became of them."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def run(self, name: str, test: Callable[[], None], quiet_skip: bool = False) -> None:
        """Run one test and print its outcome; with `quiet_skip`, not that it does not apply."""
        try:
            test()
        except Skip as reason:
            if quiet_skip:
                return
            self.skipped += 1
            print(f"SKIP {name}: {reason}")
        except AssertionError as error:
            self.failed += 1
            text = str(error).replace("\n", "\n    ")  # a line of it can begin as an outcome does
            print(f"FAIL {name}: {text}")
        except Exception:                       # a broken test is a failed test
            self.failed += 1
            print(f"FAIL {name}:\n{textwrap.indent(traceback.format_exc(), '    ')}")
        else:
            self.passed += 1
            print(f"PASS {name}")

    def finish(self) -> int:
        """Print the totals as the last line; the exit status."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


@functools.cache
def loaded(tool: str) -> ModuleType:
    """A tool's module, not yet run."""
    loader = importlib.machinery.SourceFileLoader(Path(tool).name, str(ROOT / tool))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def execute(tool: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a tool of this tree, which is written in Python, and capture what it prints.

    In a child of this process, where it is loaded already: that takes
    longer than what it does to most inputs.
    """
    command = [str(ROOT / tool), *map(str, arguments)]
    module = loaded(tool)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            status = 1
            gc.disable()  # it ends soon, and has no cycles worth looking for among all that it reads
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.argv = command
                status = module.main()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except BaseException:  # as the interpreter prints it
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, status, out.read().decode(), err.read().decode())


def compile_to(output: Path, sources: Iterable[object], *options: str) -> Path:
    """Build a program of this tree; its path."""
    command = ["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-o", str(output), *map(str, sources), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{output.name}: {done.stderr[:2000]}")
    return output


def dump_program(name: str, build: Path, scratch: Path) -> Path:
    """tests/NAME.c, which prints what an importer of the library in BUILD made."""
    archive = build / "libnps_analyzer.a"
    if not archive.exists():
        raise Skip(f"{archive} is missing: make")
    return compile_to(scratch / name, [f"tests/{name}.c", archive], "-Ikheaders", "-Ianalyzer", "-lsqlite3", "-lcjson",
                      "-lz", "-lm", "-lpthread")


def raw_data_program(build: Path, scratch: Path) -> Path:
    """The generator of CANN's raw data."""
    known = build / "tests" / "gen-cann"
    return known if known.exists() else compile_to(
        scratch / "gen-cann", sorted((ROOT / "tests" / "cannraw").glob("*.c")), "-lm")
