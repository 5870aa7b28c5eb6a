# SPDX-License-Identifier: BSD-2-Clause
"""Clocks of a PROF_* directory, in exact arithmetic: every conversion returns a Fraction of nanoseconds."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path


def first_line_json(path: Path) -> dict:
    """Control files are one line; nothing after it counts."""
    with open(path, encoding="utf-8") as file:
        return json.loads(file.readline())


def find(folder: Path, stem: str) -> Path:
    """A control file with or without the device's number behind its name."""
    for path in sorted(folder.glob(stem + "*")):
        if re.fullmatch(re.escape(stem) + r"(\.\d+)?", path.name):
            return path
    raise FileNotFoundError(f"{folder}: no {stem}")


def marks(path: Path) -> dict[str, int]:
    """The `key: number` lines of a start log."""
    text = path.read_text(encoding="utf-8")
    return {key: int(value) for key, value in re.findall(r"^(\w+):\s*(\d+)\s*$", text, re.M)}


def whole(value: Fraction) -> int:
    """Rounded down: the one rounding that a truth file uses for time."""
    return value.numerator // value.denominator


class Wall:
    """As in start_info: raw nanoseconds to Unix nanoseconds."""

    def __init__(self, folder: Path) -> None:
        info = first_line_json(find(folder, "start_info"))
        self.begin_us = int(info["collectionTimeBegin"])
        self.offset = self.begin_us * 1000 - int(info["clockMonotonicRaw"])


class Clocks:
    """Host counter, device counter, device raw clock and sampling
    time to host raw ns, and that to Unix ns."""

    def __init__(self, prof: Path, device: int) -> None:
        host, dev = prof / "host", prof / f"device_{device}"
        self.host_info = first_line_json(find(host, "info.json"))
        self.dev_info = first_line_json(find(dev, "info.json"))
        text = str(self.host_info["CPU"][0]["Frequency"])
        self.host_mhz = Fraction(text) if text else None
        self.dev_mhz = Fraction(str(self.dev_info["DeviceInfo"][0]["hwts_frequency"]))
        self.host_mark = marks(find(host, "host_start.log"))
        self.dev_host_mark = marks(find(dev, "host_start.log"))
        self.dev_mark = marks(find(dev, "dev_start.log"))
        self.host_wall, self.dev_wall = Wall(host), Wall(dev)

    def _host_ns(self, ticks: int) -> Fraction:
        return Fraction(ticks) if self.host_mhz is None else Fraction(ticks * 1000) / self.host_mhz

    def host(self, counter: int) -> Fraction:
        """Host counter (or raw ns, where the host has no frequency) to host raw ns."""
        if self.host_mhz is None:
            return Fraction(counter)
        mark = self.host_mark
        return (mark["clock_monotonic_raw"] + self._host_ns(mark.get("cntvct_diff", 0))
                + self._host_ns(counter - mark["cntvct"]))

    def to_host(self, raw_ns: int) -> int:
        """The last host counter value not after a raw time."""
        if self.host_mhz is None:
            return raw_ns
        mark = self.host_mark
        ticks = (raw_ns - mark["clock_monotonic_raw"]) * self.host_mhz / 1000
        return mark["cntvct"] - mark.get("cntvct_diff", 0) + whole(ticks)

    @property
    def sync(self) -> int:
        """Host raw ns at which the device was synchronised."""
        mark = self.dev_host_mark
        return mark["clock_monotonic_raw"] + whole(self._host_ns(mark.get("cntvct_diff", 0)))

    def ticks(self, counter: int) -> Fraction:
        """Device counter to host raw ns."""
        return self.sync + Fraction((counter - self.dev_mark["cntvct"]) * 1000) / self.dev_mhz

    def to_ticks(self, raw_ns: int) -> int:
        """The last device counter value not after a host raw time."""
        return self.dev_mark["cntvct"] + whole((raw_ns - self.sync) * self.dev_mhz / 1000)

    def dev_raw(self, value: int) -> Fraction:
        """Device raw ns to host raw ns."""
        return Fraction(value + self.dev_host_mark["clock_monotonic_raw"] - self.dev_mark["clock_monotonic_raw"])

    def to_dev_raw(self, raw_ns: int) -> int:
        """Host raw ns to device raw ns."""
        return raw_ns - self.dev_host_mark["clock_monotonic_raw"] + self.dev_mark["clock_monotonic_raw"]

    def sampled(self, micros: int) -> Fraction:
        """Sampling microseconds to host raw ns."""
        return Fraction(self.dev_host_mark["clock_monotonic_raw"] + micros * 1000)

    def to_sampled(self, raw_ns: int) -> int:
        """Host raw ns to sampling microseconds."""
        return (raw_ns - self.dev_host_mark["clock_monotonic_raw"]) // 1000
