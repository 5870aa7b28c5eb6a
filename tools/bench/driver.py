# SPDX-License-Identifier: BSD-2-Clause
"""What recording the NPU's driver adds to each call of it, and to each launch."""

import json
import subprocess
from pathlib import Path
from typing import Callable

from host import ROUNDS, Run, medians, traced

KINDS = {"ioctls": 300000, "launches": 30000}
MACHINES = (("6.1:amd64", "btf", "fexit"),
            ("6.1:amd64", "plain", "kprobes"))  # kernel, its driver's modules, how that is probed
LAUNCHES = Path(__file__).resolve().parents[2] / "tests/vm/launches.py"


def calls(npuscope: Path, out: Path, add: Callable[..., None], progress: Callable[..., None]) -> None:
    """ioctls on a node of the driver's name, alone and as part of a launch."""
    quiet = [str(npuscope), "record", "-q", "-o", str(out), "--export", "none", "--task-source", "host",
             "--host-sys", "none"]
    for kind, count in KINDS.items():
        program = str(out / "workload")
        command = [program, kind, str(count)]

        def run(prefix: list[str], program: str = program, words: list[str] = command) -> Run:
            return lambda: traced([program, "within", *prefix, *words], out)

        found = medians({"without": run([]), "none": run([*quiet, "--driver", "none", "--"]),
                         "calls": run([*quiet, "--driver", "calls", "--"])}, ROUNDS, progress)
        if "without" not in found:
            continue
        for name in sorted(set(found) - {"without"}):
            add(f"{kind}, --driver {name}", found[name], "s", f"{kind}, no tracer", found["without"])
        if {"none", "calls"} <= set(found):
            add(f"added to one of {kind} by --driver calls", (found["calls"] - found["none"]) / count * 1e9, "ns",
                f"one of {kind}, no tracer", found["without"] / count * 1e9)


def in_machines(out: Path, add: Callable[..., None], progress: Callable[..., None]) -> None:
    """A launch of the demo job through the mock driver, which needs a kernel that loads its modules."""
    for kernel, modules, how in MACHINES:
        done = subprocess.run(["/usr/bin/python3", str(LAUNCHES), kernel, modules, str(out / "machines")],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            progress(f"left out: launches through a driver on {kernel}: {done.stderr.strip()}")
            continue
        found = json.loads(done.stdout)
        alone, recorded = found["no tracer"], found["none"]
        what = f"launch through a driver, {kernel}, {how}"
        add(f"{what}, --driver none", recorded, "instructions", f"{what}, no tracer", alone)
        for way in ("calls", "calls,tasks"):
            add(f"{what}, --driver {way}", found[way], "instructions", f"{what}, no tracer", alone)
            add(f"added to it by --driver {way}", found[way] - recorded, "instructions", f"{what}, --driver none",
                recorded)
