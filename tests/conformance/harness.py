# SPDX-License-Identifier: BSD-2-Clause
"""The little that the tests of this folder share: run, count, report."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]


class Skip(Exception):
    """Raised by a test that cannot run; the text says why."""


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
            print(f"FAIL {name}: {error}")
        except Exception:                       # a broken test is a failed test
            self.failed += 1
            print(f"FAIL {name}:\n{traceback.format_exc()}")
        else:
            self.passed += 1
            print(f"PASS {name}")

    def finish(self) -> int:
        """Print the totals as the last line; the exit status."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def execute(tool: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a tool of this tree and capture what it prints."""
    command = [sys.executable, str(ROOT / tool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
