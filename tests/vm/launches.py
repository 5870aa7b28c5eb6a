# SPDX-License-Identifier: BSD-2-Clause
"""What recording the NPU's driver adds to each launch of a job: that of the demo job, in a machine whose
clock goes by its instructions.

So the figures are instructions of the program and the kernel, a nanosecond each: neither the emulator nor the
host disturbs them, and what a real processor needs for a trap or for memory that is far is not in them.

launches.py KERNEL:ARCH MODULES FOLDER: prints a JSON object, medians by way.
MODULES: btf or plain; FOLDER: its files.
"""

from __future__ import annotations

import json
import shutil
import sys
from bisect import bisect
from pathlib import Path
from statistics import median

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import driver  # noqa: E402
import guest  # noqa: E402
import kernels  # noqa: E402
import payload  # noqa: E402
import submissions  # noqa: E402
from kernels import debian  # noqa: E402

UNTRACED = "no tracer"
WAYS = ("none", "calls", "calls,tasks")  # of --driver
SECONDS = 900
ROWS = {"btf": "fexit", "plain": "kprobe"}  # how modules of a kind are probed


class Failed(Exception):
    """The machine did not do it: why."""


def measure(kernel: kernels.Kernel, modules: str, out: Path) -> dict[str, float]:
    """Median ns of a launch without a tracer, and by way; MODULES: btf or plain.
    Raises Failed and debian.Unavailable."""
    kernels.fetch(kernel, debian.default_cache())
    built = driver.build(kernel)
    if modules not in built:
        raise Failed(f"no modules of the kind {modules}")
    program = out.resolve() / "payload"
    payload.make(kernel.arch, program)
    share = out.resolve() / f"{kernel.name}-{modules}"
    shutil.rmtree(share, ignore_errors=True)
    (share / "in").mkdir(parents=True)
    shutil.copy(kernels.HERE / "guest.sh", share / "in")
    shutil.copy(kernels.HERE / "launches.sh", share / "in/run.sh")
    (share / "in/ways").write_text("".join(f"{way}\n" for way in WAYS), encoding="utf-8")
    shutil.copytree(built[modules], share / "in/modules")
    outcome = guest.run(kernel, program, share, seconds=SECONDS, counted=True)
    if outcome.status != 0:
        raise Failed(outcome.why or f"status {outcome.status}: see {outcome.out}/log")
    return _medians(outcome.out / "launches", ROWS[modules])


def _medians(directory: Path, row: str) -> dict[str, float]:
    """By the truth of the demo job and the windows of the captures; ROW: how tasks are to be recorded."""
    windows = []
    for way in WAYS:
        session = json.loads(next((directory / way).glob("*/session.json")).read_text(encoding="utf-8"))
        if "tasks" in way and session["driver"]["functions"]["tasks"]["how"] != row:
            raise Failed(f"tasks were not told by {row}: see {directory / way}")
        windows.append((session["capture"]["begin_monotonic"], session["capture"]["end_monotonic"], way))
    untouched = float((directory / "untouched").read_text(encoding="utf-8")) * 1e9
    windows.sort()
    first = [begin for begin, _end, _way in windows]
    elapsed: dict[str, list[int]] = {UNTRACED: [], **{way: [] for way in WAYS}}
    # Attaching and letting go lie around a capture: what is a capture's neighbour is none of either.
    margin = 100_000_000
    for begin, end in submissions.calls(directory / "truth"):
        at = bisect(first, begin + margin) - 1
        if at >= 0 and windows[at][0] < begin and end < windows[at][1]:
            elapsed[windows[at][2]].append(end - begin)
        elif end < untouched:
            elapsed[UNTRACED].append(end - begin)
    if not all(len(values) > 100 for values in elapsed.values()):
        raise Failed("too few launches: " + ", ".join(f"{len(values)} {way}" for way, values in elapsed.items()))
    return {way: median(values) for way, values in elapsed.items()}


def main() -> int:
    """Entry point."""
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    name, modules, out = sys.argv[1:]
    kernel = next((one for one in kernels.listed() if f"{one.name}:{one.arch}" == name), None)
    try:
        if not kernel:
            raise Failed(f"kernels.tsv does not know {name}")
        print(json.dumps(measure(kernel, modules, Path(out))))
    except (Failed, debian.Unavailable, RuntimeError, FileNotFoundError) as reason:
        print(f"{reason} (sh tools/setup.sh vm)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
