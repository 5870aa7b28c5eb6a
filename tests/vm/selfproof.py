# SPDX-License-Identifier: BSD-2-Clause
"""The runner, made to fail: a machine that panics, one that hangs, one that sleeps, one
whose script fails, one that succeeds."""

from __future__ import annotations

import shutil
from pathlib import Path

import guest
import verdict
from kernels import Kernel

SCRIPTS = {
    "panics": ("echo c > /proc/sysrq-trigger; sleep 100", None, "the kernel gave up"),
    "hangs": ("while :; do :; done", None, guest.USED),
    "sleeps": ("sleep 10000", None, guest.NO_END),
    "fails": ("exit 7", 7, ""),
    "succeeds": ("test -x /payload/npuscope/npuscope", 0, ""),
}
LONG_ENOUGH = 40  # seconds to boot in, and for the one that hangs to hang


def prove(kernel: Kernel, payload: Path, directory: Path) -> dict[str, verdict.Verdict]:
    """A verdict for each script: was it reported as what it is?"""
    found = {}
    for name, (script, status, why) in SCRIPTS.items():
        share = directory / name
        shutil.rmtree(share, ignore_errors=True)
        (share / "in").mkdir(parents=True)
        (share / "in/run.sh").write_text(script + "\n", encoding="utf-8")
        outcome = guest.run(kernel, payload, share, cpus=1, memory=512, seconds=LONG_ENOUGH)
        status_text = f"status {outcome.status}" if outcome.status is not None else f"no status: {outcome.why}"
        found[name] = verdict.Verdict(outcome.status == status and outcome.why.startswith(why), status_text)
    return found
