# SPDX-License-Identifier: BSD-2-Clause
"""What recording the launch of a kernel adds to a job whose host limits it, beside uprobes that do nothing in the same places."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Callable

from host import last_number

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from traps import of_launch as traps_of_launch  # noqa: E402

RATES = (2000, 10000, 50000)  # launches a second
SECONDS = 1  # of a run without a tracer
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
LEVELS = (("", ()), (" --level 0", ("--level", "0")))


class Launches:
    """The job, and what it runs under."""

    def __init__(self, npuscope: Path, out: Path) -> None:
        self.npuscope, self.out = npuscope, out
        self.env = os.environ | {"LD_LIBRARY_PATH": str(out.parent / "bench_lib")}
        self.probes: dict[str, list[dict]] = {}  # that were hit, by level

    def run(self, command: list[str], text: str = "") -> float:
        """CPU seconds that the job says it took."""
        done = subprocess.run(command, cwd=self.out, env=self.env, input=text, capture_output=True, check=False, text=True,
                              timeout=120)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr[-300:]}")
        return last_number(done.stdout)

    def job(self, rate: int) -> list[str]:
        """The command."""
        return [str(self.out / "launches"), str(rate), str(rate * SECONDS)]

    def alone(self, rate: int) -> float:
        """Without a tracer."""
        return self.run(self.job(rate))

    def recorded(self, rate: int, level: str, options: tuple[str, ...]) -> float:
        """Under npuscope, with nothing but its probes of CANN."""
        seconds = self.run([str(self.npuscope), "record", "-q", "-o", str(self.out), "--export", "none", "--host-sys", "none",
                            "--task-source", "host", *options, "--", *self.job(rate)])
        for session in self.out.glob("npuscope_*"):
            info = json.loads((session / "session.json").read_text(encoding="utf-8"))
            self.probes[level] = [p for p in info["probes"] if p["hits"]]
            shutil.rmtree(session)
        return seconds

    def bare(self, rate: int, level: str) -> float:
        """With uprobes that do nothing at the places that were hit."""
        lines = "".join(f"{p['offset']} {int(p['how'] == 'call')} {p['library']}\n" for p in self.probes[level])
        return self.run([str(self.out / "bare_uprobes"), *self.job(rate)], lines)


def launches(npuscope: Path, out: Path, add: Callable[..., None], say: Callable[..., None]) -> None:
    """Medians of runs in turns; what is added is the median of the differences within a turn."""
    bench = Launches(npuscope, out)
    for rate in RATES:
        times: dict[str, list[float]] = {}

        def note(name: str, seconds: float, times: dict[str, list[float]] = times) -> None:
            times.setdefault(name, []).append(seconds)

        for _ in range(ROUNDS):
            note("", bench.alone(rate))
            for level, options in LEVELS:
                note("npuscope record" + level, bench.recorded(rate, level, options))
                note("bare uprobes" + level, bench.bare(rate, level))
        base = f"{rate} launches/s, no tracer"
        alone = statistics.median(times[""])
        add(base, alone, "s", base, alone)
        for level, _ in LEVELS:
            recorded, bare = (added(times, f"{what}{level}", rate) for what in ("npuscope record", "bare uprobes"))
            add(f"{rate} launches/s, npuscope record{level}", statistics.median(times["npuscope record" + level]), "s", base, alone)
            add(f"{rate} launches/s, bare uprobes{level}", statistics.median(times["bare uprobes" + level]), "s", base, alone)
            traps = traps_of_launch(bench.probes[level])[2]
            add(f"added to a launch by npuscope record{level}", recorded, "ns", f"bare uprobes{level}", bare)
            add(f"of that beyond a bare uprobe, each trap{level}", (recorded - bare) / traps, "ns",
                f"one bare trap{level}", bare / traps)
    for level, _ in LEVELS:
        _, entered, traps, _ = traps_of_launch(bench.probes[level])
        add(f"probes that a launch enters{level}", entered, "", "the same", entered)
        add(f"traps of a launch, returns among them{level}", traps, "", f"probes that a launch enters{level}", entered)


def added(times: dict[str, list[float]], name: str, rate: int) -> float:
    """ns that each launch takes longer."""
    return statistics.median(t - alone for t, alone in zip(times[name], times[""])) / (rate * SECONDS) * 1e9
