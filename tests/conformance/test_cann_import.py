#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Imports raw captures of known content (tests/cannraw) and compares every row with the truth.

    test_cann_import.py [WORD...]     only the sets of options whose name holds a WORD

NPS_CANN_DUMP names another build of tests/cann_dump.c, one with sanitizers for example.
"""

from __future__ import annotations

import functools
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from cann_capture import MANY, SCRATCH, Comparison, dump, generate  # noqa: E402
from harness import SOAK, Tests  # noqa: E402

SETS = [
    "--tasks 1 --comm-every 0",
    "--tasks 4000",
    "--tasks 2000 --level 0 --ffts-every 4 --model 3",
    "--tasks 2000 --level 1 --host-counter none",
    f"--tasks 4000 {MANY}",
    f"--tasks 4000 {MANY} --level 1 --straddle --no-done --host-counter 2593.905 --device-mhz 38.4",
    f"--tasks 3000 {MANY} --nasty-names --devices 3 --threads 6 --mangle --ffts-parent --seed 12345",
    f"--tasks 3000 {MANY} --devices 4 --threads 2 --streams 3 --comm-ffts --comm-tasks 9 --cann-version 8.5.0",
    f"--tasks 2000 {MANY} --unique-names --threads 1 --streams 1",
    "--tasks 9000 --flip --threads 8 --streams 2 --event-every 9 --mangle",
    f"--tasks {60000 if SOAK else 12000} --flip --level 0 --threads 3 --comm-every 0",
    "--tasks 6000 --flip --threads 1 --devices 2 --model 5 --step-trace",
    "--tasks 6000 --chip 15 --memcpy-every 9 --event-every 4 --aicpu-every 8 --pmu --model 4 --mstx-every 7 "
    "--devices 2",
    f"--tasks {60000 if SOAK else 12000} --comm-every 10 --pmu",
]


def check_set(options: str) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        prof, truth = generate(options, Path(folder))
        Comparison(options, dump(prof), truth).all()


def main() -> int:
    words = sys.argv[1:]
    tests = Tests()
    try:
        for options in SETS:
            if not words or any(word in options for word in words):
                tests.run(options, functools.partial(check_set, options))
    finally:
        shutil.rmtree(SCRATCH)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
