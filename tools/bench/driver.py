# SPDX-License-Identifier: BSD-2-Clause
"""What recording the calls of the NPU's driver adds to each of them."""

from pathlib import Path
from typing import Callable

from host import ROUNDS, Run, medians, traced

KINDS = {"ioctls": 300000, "launches": 30000}


def calls(npuscope: Path, out: Path, add: Callable[..., None], say: Callable[..., None]) -> None:
    """ioctls on a node of the driver's name, alone and as part of a launch."""
    quiet = [str(npuscope), "record", "-q", "-o", str(out), "--export", "none", "--task-source", "host",
             "--host-sys", "none"]
    for kind, count in KINDS.items():
        program = str(out / "workload")
        command = [program, kind, str(count)]

        def run(prefix: list[str], program: str = program, words: list[str] = command) -> Run:
            return lambda: traced([program, "within", *prefix, *words], out)

        found = medians({"without": run([]), "none": run([*quiet, "--driver", "none", "--"]),
                         "calls": run([*quiet, "--driver", "calls", "--"])}, ROUNDS, say)
        if "without" not in found:
            continue
        for name in sorted(set(found) - {"without"}):
            add(f"{kind}, --driver {name}", found[name], "s", f"{kind}, no tracer", found["without"])
        if {"none", "calls"} <= set(found):
            add(f"added to one of {kind} by --driver calls", (found["calls"] - found["none"]) / count * 1e9, "ns",
                f"one of {kind}, no tracer", found["without"] / count * 1e9)
