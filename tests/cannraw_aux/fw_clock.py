# SPDX-License-Identifier: BSD-2-Clause
"""The clock that FRAMEWORK records carry, and where it comes from."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Optional

from aux_clock import Clocks

DECOY_START = 12_345        # how far profiler_info's start pair is off where CANN's own has to win
DECOY_END = 987_654         # and its end pair
UNIX_NS = 1_736_408_883_000_000_000
MONOTONIC_NS = 172_163_581_670_080
START_COUNT = 17_238_197_612_056
BOOT_TO_REAL = UNIX_NS - MONOTONIC_NS


class Clock:
    """Unix ns to the values that records carry, and back exactly."""

    def __init__(self, syscnt: bool, prof: Optional[Path], mhz: Fraction) -> None:
        self.clocks = None
        if prof is not None:
            devices = sorted(int(path.name.split("_")[1]) for path in prof.glob("device_*"))
            self.clocks = Clocks(prof, devices[0])
            if self.clocks.host_mhz is None:
                syscnt = False
            else:
                mhz = self.clocks.host_mhz
        self.syscnt, self.mhz = syscnt, mhz
        self.raw, self.count = MONOTONIC_NS, START_COUNT
        if self.clocks:
            mark = self.clocks.host_mark
            self.raw, self.count = mark["clock_monotonic_raw"], mark["cntvct"] - mark.get("cntvct_diff", 0)

    @property
    def offset(self) -> int:
        """Monotonic to Unix ns."""
        return self.clocks.host_wall.offset if self.clocks else BOOT_TO_REAL

    def value(self, unix: int) -> int:
        """The last value not after a Unix time."""
        raw = unix - self.offset
        if not self.syscnt:
            return raw
        return self.count + (raw - self.raw) * self.mhz.numerator // (1000 * self.mhz.denominator)

    def floor(self, value: int) -> int:
        """The Unix time of a value, rounded down."""
        if not self.syscnt:
            return value + self.offset
        return self.raw + (value - self.count) * 1000 * self.mhz.denominator // self.mhz.numerator + self.offset

    def start_info(self) -> dict:
        """profiler_info's start pair; beside a PROF_* directory it is a little wrong on purpose."""
        freq: object = int(self.mhz) if self.mhz.denominator == 1 else float(self.mhz)
        return {"syscnt_enable": self.syscnt, "freq": freq, "start_cnt": self.count,
                "start_monotonic": self.raw + (DECOY_START if self.clocks else 0)}

    def end_info(self, unix: int) -> dict:
        """profiler_info's end pair."""
        return {"collectionTimeEnd": unix, "MonotonicTimeEnd": unix - self.offset + (DECOY_END if self.clocks else 0)}
