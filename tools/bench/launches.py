# SPDX-License-Identifier: BSD-2-Clause
"""What recording adds to the launch of a kernel in a job that its host limits.

Bare uprobes at the same addresses, which do nothing, are measured beside it: one job runs all the time, and
captures and bare uprobes come and go. Every other 10 ms it launches through functions that have no probe.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import cost

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from traps import of_launch as traps_of_launch  # noqa: E402

RATES = (2000, 10000, 50000)  # launches a second
LEVELS = (("", ()), (" --level 0", ("--level", "0")))
ONLY_CANN = ("--host-sys", "none", "--task-source", "host")
Window = tuple[int, int]  # CLOCK_MONOTONIC ns


def bare(out: Path, probes: list[dict[str, Any]]) -> Window:
    """A while with uprobes that do nothing at those addresses."""
    with subprocess.Popen([out / "bare_uprobes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tracer:
        try:
            for p in probes:
                tracer.stdin.write(f"{p['offset']} {int(p['how'] == 'call')} {p['library']}\n")
            tracer.stdin.close()
            if tracer.stdout.readline() != "ready\n":
                raise RuntimeError("no bare uprobes")
            begin = time.monotonic_ns()
            time.sleep(cost.WINDOW)
            end = time.monotonic_ns()
        finally:
            tracer.kill()
    return begin, end


class Launches:
    """A job, and the windows in which it ran under something, by that one's name."""

    def __init__(self, npuscope: Path, out: Path, steps: int) -> None:
        self.npuscope, self.out = npuscope, out
        libraries = out.parent / "bench_lib"
        self.job = cost.Job([out / "launches", libraries / "libplain.so", steps], libraries)
        self.windows: dict[str, list[Window]] = {}
        self.probes: dict[str, list[dict[str, Any]]] = {}  # that were hit, by level

    def turn(self) -> None:
        """Each of the tracers once."""
        for level, options in LEVELS:
            capture, session = cost.capture(self.npuscope, self.job, (*ONLY_CANN, *options))
            self.probes[level] = [p for p in session["probes"] if p["hits"]]
            self.windows.setdefault("npuscope record" + level, []).append((capture.begin, capture.end))
            self.windows.setdefault("bare uprobes" + level, []).append(bare(self.out, self.probes[level]))

    def end(self) -> tuple[float, dict[str, list[float]]]:
        """ns of a launch and the computing before it; and what each tracer adds, in each pair of 10 ms."""
        samples = self.job.end()
        inside = {name: [cost.window(samples, *window) for window in windows] for name, windows in self.windows.items()}
        alone = [(now[1] - before[1]) / (now[2] - before[2]) for windows in inside.values() for window in windows
                 for before, now in zip(window, window[1:]) if now[3] == before[3]]
        return statistics.median(alone), {name: [ns for window in windows
                                                 for ns in cost.added_by_probes(window, cost.call_ns)]
                                          for name, windows in inside.items()}


def launches(npuscope: Path, out: Path, add: Callable[..., None], progress: Callable[..., None]) -> None:
    """Medians, with their ranges."""
    # Measures the costs of probes, unless that was done before.
    subprocess.run([npuscope, "doctor", "--estimate", "calls=1"], capture_output=True, check=True)
    step = cost.step_ns(out / "calls", cost.build(out))
    probes: dict[str, list[dict[str, Any]]] = {}
    for rate in RATES:
        bench = Launches(npuscope, out, int(1e9 / rate / step))
        for _ in range(cost.PAIRS):
            bench.turn()
        probes = bench.probes
        alone, added = bench.end()
        for level, _ in LEVELS:
            recorded, least = (statistics.median(added[name + level]) for name in ("npuscope record", "bare uprobes"))
            low, high = cost.interval(added["npuscope record" + level])
            least_low, least_high = cost.interval(added["bare uprobes" + level])
            traps = traps_of_launch(probes[level])[2]
            progress(f"{rate} launches/s{level}: {recorded:.0f} ns, bare {least:.0f} ns")
            add(f"{rate} launches/s, npuscope record{level}", alone + recorded, "ns a launch", "without probes", alone)
            add(f"added to a launch by npuscope record{level} (95 %: {low:.0f} to {high:.0f})", recorded, "ns",
                f"bare uprobes{level} (95 %: {least_low:.0f} to {least_high:.0f})", least)
            add(f"of that beyond a bare uprobe, each trap{level}", (recorded - least) / traps, "ns",
                f"one bare trap{level}", least / traps)
    for level, _ in LEVELS:
        _, entered, traps, _ = traps_of_launch(probes[level])
        add(f"probes that a launch enters{level}", entered, "", "the same", entered)
        add(f"traps of a launch, returns among them{level}", traps, "", f"probes that a launch enters{level}", entered)
