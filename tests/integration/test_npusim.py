#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The witness itself: the simulated device's channels, parsed a second time, against its truth file."""

from __future__ import annotations

import sys

from harness import ROOT, SIM, Case, main, need_npusim, test


@test(seconds=600)
def every_channel_of_every_chip(case: Case) -> None:
    """Records of each chip's channels, exclusive use, errors, losses, a reset, clocks."""
    need_npusim()
    run = case.run(["/usr/bin/python3", ROOT / "tools" / "npusim" / "selftest_device.py", SIM], seconds=500)
    assert run.status == 0, f"{run.out} {run.err}"


if __name__ == "__main__":
    sys.exit(main())
