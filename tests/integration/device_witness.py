# SPDX-License-Identifier: BSD-2-Clause
"""What test_device*.py hold results against: npusim's truth files, and the raw records
of the sampler's PROF_* directories, decoded here as the vendor's format description
has them. Nothing of npuscope's is used."""

import bisect
import json
import re
import sqlite3
import struct
from collections import defaultdict
from pathlib import Path
from typing import Iterator, Optional

from harness import Case, Result, Running, Session, environment, host_environment, pid_list, ranks_of

Series = list[tuple[int, int, int]]  # begin, end (raw), amount

HBM = struct.Struct("<QQII")
CORE = struct.Struct("<BBHHH8QQQBB6x")
CORE_950 = struct.Struct("<BBHHH10QQQBB6x")


class Truth:
    """All truth files of a directory."""

    def __init__(self, folder: Path) -> None:
        self.counters: dict[tuple[int, str, str], Series] = defaultdict(list)
        self.sampled: dict[tuple[int, int, str, str], Series] = defaultdict(list)
        self.lost: dict[tuple[int, int], int] = defaultdict(int)
        # us since the start of the channel
        self.samples: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.channels: list[tuple[int, int, str]] = []
        self.clocks: list[tuple[int, int, int]] = []
        for path in sorted(folder.glob("truth.*.tsv")):
            for line in path.read_text().splitlines():
                self._add(line.split("\t"))
        self.clocks.sort()

    def _add(self, f: list[str]) -> None:
        if f[0] == "counter":
            self.counters[int(f[1]), f[2], f[3]].append((int(f[4]), int(f[5]), int(f[6])))
        elif f[0] == "sampled":
            self.sampled[int(f[1]), int(f[2]), f[3], f[4]].append((int(f[5]), int(f[6]), int(f[7])))
        elif f[0] == "lost":
            self.lost[int(f[1]), int(f[2])] += int(f[3])
        elif f[0] == "sample":
            self.samples[int(f[1]), int(f[2])].append(int(f[3]))
        elif f[0] == "channel":
            self.channels.append((int(f[1]), int(f[2]), f[3]))
        elif f[0] == "clock":
            self.clocks.append((int(f[1]), int(f[2]), int(f[3])))

    def raw(self, session: Session, unix: int) -> int:
        """CLOCK_MONOTONIC_RAW of a time of a result: results have the wall
        clock as it was when the capture began."""
        start = session.json["start"]
        mono = unix - int(start["realtime"]) + int(start["monotonic"])
        at = max(bisect.bisect_left([c[1] for c in self.clocks], mono) - 1, 0)
        return mono + self.clocks[at][0] - self.clocks[at][1]

    def moved(self, device: int, link: str, way: str, begin: int, end: int) -> tuple[float, float]:
        """What was moved in a span of time, and what was moved in the 12 ms around its two ends."""
        amount = edges = 0.0
        for first, last, n in self.counters[device, link, way]:
            inside = min(last, end) - max(first, begin)
            amount += n * max(inside, 0) / (last - first)
            if any(first - 12_000_000 <= edge <= last + 12_000_000 for edge in (begin, end)):
                edges += n
        return amount, edges


def sample(case: Case, job: Optional[Running], *args: str, seconds: str = "3s", truth: Optional[Path] = None,
           wait: bool = False, command: tuple[str, ...] = (), **env: str) -> Running:
    """Start a capture of the job, or of a command, with samples of devices; analysis included."""
    more = {"NPUSIM_TRUTH": str(truth)} if truth else {}
    target = ["-p", pid_list(ranks_of(job)), "-d", seconds] if job else []
    out = case.path("out")
    surroundings = environment(**more, **env) if job else host_environment(case, **more, **env)
    return case.record(*target, "-o", out, *args, *(("--", *command) if command else ()), wait=wait, env=surroundings)


def sampler(session: Session) -> dict[int, dict]:
    """session.json's account of each device."""
    return {d["id"]: d for d in session.json["device_sampler"]["devices"]}


def channel(session: Session, device: int, number: int) -> dict:
    return next(c for c in sampler(session)[device]["channels"] if c["id"] == number)


def stored(session: Session, device: int, file: str) -> bytes:
    """A file of the sampler's directories, all slices and segments."""
    found = b""
    for segment in sampler(session)[device]["segments"]:
        folder = session.path / segment["prof_dir"] / f"device_{device}" / "data"
        slices = sorted(folder.glob(f"{file}.{device}.slice_*[0-9]"), key=lambda p: int(p.name.rsplit("_", 1)[1]))
        found += b"".join(p.read_bytes() for p in slices)
    return found


def database(result: Result, rank: int = 0) -> sqlite3.Connection:
    """The database of one rank's result."""
    found = [path for folder in result.out.splitlines()[1:]
             for path in (Path(folder) / "ASCEND_PROFILER_OUTPUT").glob(f"ascend_pytorch_profiler_{rank}.db")]
    assert len(found) == 1, (rank, result.out)
    return sqlite3.connect(found[0])


def complaints(result: Result, pattern: str) -> list[str]:
    """Lines of stderr of that form."""
    return [line for line in result.err.splitlines() if re.search(pattern, line)]


def cores(data: bytes, v6: bool = False) -> Iterator[tuple[int, int, int, list[int]]]:
    """(core, time, cycles, events) of sampled records."""
    record = CORE_950 if v6 else CORE
    events = 10 if v6 else 8
    assert len(data) % record.size == 0, len(data)
    for fields in record.iter_unpack(data):
        assert fields[2] == record.size, fields
        values = list(fields[5:5 + events])
        cycles, time, _count, core = fields[5 + events:9 + events]
        yield core, time, cycles, values


def control(folder: Path, name: str) -> dict:
    """A control file: one line of JSON, and a .done beside it."""
    path = folder / name
    text = path.read_text()
    assert "\n" not in text.strip(), f"{path}: its readers take the first line alone"
    assert (folder / (name + ".done")).exists(), f"{name}.done"
    return json.loads(text)
