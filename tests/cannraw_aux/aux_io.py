# SPDX-License-Identifier: BSD-2-Clause
"""What every generator shares: sliced streams, the truth file, the context of one directory."""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Callable, Iterable, NamedTuple, Optional, TextIO

from aux_clock import Clocks, find, first_line_json, whole

HOST, DEVICE = "host", "device"
SLICE_BYTES = 2048 * 1024
CHUNK = 4099                # no multiple of any record size, so that slices end in the middle of records

Fields = dict
Record = tuple[bytes, Fields]
Line = dict


class Product(NamedTuple):
    """One file: its name without slice, where it goes, what makes its records and what they must become."""

    name: str
    part: str
    make: Callable[["Context"], list[Record]]
    truth: Callable[["Context", list[Fields]], Iterable[Line]]
    text: bool = False


class Context:
    """One PROF_* directory and what the options request."""

    def __init__(self, prof: Path, device: int, samples: int, seed: int, version2: bool, us_base: int = 0) -> None:
        self.prof, self.device, self.samples, self.seed = prof, device, samples, seed
        self.version2, self.us_base = version2, us_base
        self.clocks = Clocks(prof, device)
        self.sample = first_line_json(find(prof / "host", "sample.json"))
        pid = str(self.clocks.host_info.get("pid", "NA"))
        self.pid = int(pid) if pid.isdigit() else 4242
        self.texts: dict[str, int] = {}
        self.osrt: list[tuple[str, int, Fraction]] = []
        begin = self.clocks.sync + 1_000_000
        self.period = 20_000_000
        end = self.session_end()
        if end is not None and begin + self.period * (samples + 1) > end:
            self.period = max((end - begin) // (samples + 1) // 1000 * 1000, 2000)
        self.times = [begin + i * self.period for i in range(samples)]

    def session_end(self) -> Optional[int]:
        """Host raw ns at which the collection ended, or None if end_info does not have it."""
        try:
            text = first_line_json(find(self.prof / f"device_{self.device}", "end_info"))["collectionTimeEnd"]
            return int(text) * 1000 - self.clocks.dev_wall.offset if text else None
        except FileNotFoundError:
            return None

    def rng(self, name: str) -> random.Random:
        """A generator of its own for each file, so that leaving one out changes no other."""
        return random.Random(f"{self.seed}:{name}")

    def hash(self, text: str) -> int:
        """A stable number for a text, to be listed in hash_dic."""
        value = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        self.texts[text] = value
        return value

    def wall_dev(self, raw: Fraction) -> Fraction:
        """Host raw ns to Unix ns by the device directory's start_info."""
        return raw + self.clocks.dev_wall.offset

    def wall_host(self, raw: Fraction) -> Fraction:
        """Host raw ns to Unix ns by the host directory's start_info."""
        return raw + self.clocks.host_wall.offset


def line(table: Optional[str], wall: Optional[Fraction], row: dict, rule: str = "exact", **more: object) -> Line:
    """One expectation; `ns` is rounded down, `ns_exact` has what was cut off."""
    out: Line = {"table": table, "rule": rule}
    if wall is not None:
        out["ns"] = whole(wall)
        if wall.denominator != 1:
            out["ns_exact"] = f"{wall.numerator}/{wall.denominator}"
    out["row"] = row
    out.update(more)
    return out


def decimals(value: Fraction, digits: int) -> float:
    """A number of the truth with so many decimals, rounded half to even from the exact value."""
    return float(round(value, digits))


def free_slice(folder: Path, name: str) -> int:
    """The number that the next slice of a stream has."""
    pattern = re.compile(re.escape(name) + r"\.slice_(\d+)")
    numbers = [int(m.group(1)) for p in folder.iterdir() if (m := pattern.fullmatch(p.name))]
    return max(numbers, default=-1) + 1


def write_slices(folder: Path, name: str, data: bytes, limit: int, done: bool, first: int = 0) -> int:
    """Write a stream as its collector would: a slice is closed by the write that fills it."""
    number, start = first, 0
    while start < len(data) or number == first:
        end = start
        while end < len(data) and end - start < limit:
            end = min(end + min(CHUNK, limit), len(data))
        path = folder / f"{name}.slice_{number}"
        path.write_bytes(data[start:end])
        if done:
            path.with_name(path.name + ".done").write_text(
                f"filesize:{end - start}\nstarttime:0\nendtime  :0\n", encoding="ascii")
        start, number = end, number + 1
    return number - first


def append_dic(folder: Path, name: str, entries: Iterable[str], done: bool) -> None:
    """Add lines to a text dictionary as one more slice of its stream."""
    number = free_slice(folder, name)
    text = "".join(entry + "\n" for entry in entries)
    if number:
        last = (folder / f"{name}.slice_{number - 1}").read_bytes()
        if last and not last.endswith(b"\n"):
            text = "\n" + text
    if text:
        write_slices(folder, name, text.encode(), SLICE_BYTES, done, number)


class Truth:
    """The truth file: JSON objects, one a line, and counts at the end."""

    def __init__(self, file: Optional[TextIO]) -> None:
        self.file = file
        self.counts: dict[str, int] = {}

    def write(self, product: str, lines: Iterable[Line]) -> None:
        """All expectations of one file."""
        for number, item in enumerate(lines):
            self.counts[product] = number + 1
            if self.file:
                self.file.write(json.dumps({"file": product, **item}) + "\n")

    def end(self) -> None:
        """The last line."""
        if self.file:
            self.file.write(json.dumps({"file": None, "end": self.counts}) + "\n")


def warn(text: str) -> None:
    """A message that does not stop the program."""
    print(f"sidecars: {text}", file=sys.stderr)
