#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How many probes and traps each launch of a captured job passed: `traps.py SESSION`.

A probe of a call traps at its entry and at its return; one that the kernel has to single-step traps once
more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def is_launch(symbol: str) -> bool:
    """Does the function queue a kernel?"""
    return symbol.startswith(("aclrtLaunchKernel", "aclrtLaunchSIMTKernel", "rtKernelLaunch",
                              "rtVectorCoreKernelLaunch"))


def of_launch(probes: list[dict[str, Any]]) -> tuple[int, float, float, float]:
    """Launches; and of each: probes entered, traps of entries and returns, further ones by single steps."""
    launches = sum(p["hits"] for p in probes if is_launch(p["symbol"])) or 1
    entered = sum(p["hits"] for p in probes)
    traps = sum(p["hits"] * (2 if p["how"] == "call" else 1) for p in probes)
    stepped = sum(p["hits"] for p in probes if p["class"] == "single-stepped")
    return launches, entered / launches, traps / launches, stepped / launches


def main() -> int:
    """A line."""
    if len(sys.argv) != 2:
        print("usage: traps.py SESSION", file=sys.stderr)
        return 2
    info = json.loads((Path(sys.argv[1]) / "session.json").read_text(encoding="utf-8"))
    launches, entered, traps, stepped = of_launch(info["probes"])
    print(f"{launches} launches: each entered {entered:.2f} probes, of all of CANN's calls, and took {traps:.2f} traps "
          f"at entries and returns, {stepped:.2f} more by single steps; watching took "
          f"{info['cost']['overhead_percent']:.2f} % of the job's CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
