# SPDX-License-Identifier: BSD-2-Clause
"""Reader of npusim's truth files (tools/npusim/TRUTH.md)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple, Optional


class TruthError(ValueError):
    """A truth file that breaks its own format."""


class Launch(NamedTuple):
    """One SQE submitted by a call of the job; times are raw ns."""
    ident: int
    tid: int
    api: str
    begin: int
    end: int
    device: int
    stream: int
    task: int
    flip: int
    name: str
    aclnn: str
    l0: str


class Task(NamedTuple):
    """One task that the device finished; times are raw ns."""
    device: int
    stream: int
    task: int
    flip: int
    launch: int
    sqe: str
    submit: int
    start: int
    end: int


class Op(NamedTuple):
    """One phase of an aclnn operator; times are raw ns."""
    tid: int
    api: str
    executor: str
    phase: int
    begin: int
    end: int


class Step(NamedTuple):
    """One step of the demo job; times are raw ns."""
    number: int
    begin: int
    end: int


class Clock:
    """Converts CLOCK_MONOTONIC_RAW to the other host clocks by interpolation.

    Integer arithmetic throughout: a double cannot hold Unix time in ns.
    """

    def __init__(self, samples: list[tuple[int, int, int]]) -> None:
        if not samples:
            raise TruthError("no clock line: nothing can be converted")
        self._samples = sorted(set(samples))
        self._raw = [sample[0] for sample in self._samples]

    def mono(self, raw: int) -> int:
        """CLOCK_MONOTONIC at the instant RAW."""
        return self._convert(raw, 1)

    def real(self, raw: int) -> int:
        """CLOCK_REALTIME at the instant RAW."""
        return self._convert(raw, 2)

    def _convert(self, raw: int, column: int) -> int:
        if len(self._samples) == 1:
            return raw + self._samples[0][column] - self._raw[0]
        index = min(max(bisect_right(self._raw, raw), 1), len(self._raw) - 1)
        low, high = self._samples[index - 1], self._samples[index]
        return low[column] + (raw - low[0]) * (high[column] - low[column]) // (high[0] - low[0])


class Truth:
    """Everything one process wrote."""

    def __init__(self, paths: list[Path]) -> None:
        self.path = paths[0]
        self.pid = 0
        self.rank: Optional[int] = None
        self.launches: dict[int, Launch] = {}
        self.tasks: list[Task] = []
        self.ops: list[Op] = []
        self.steps: list[Step] = []
        # tid -> begin, end; raw ns
        self.collectives: dict[int, list[tuple[int, int]]] = defaultdict(list)
        samples: list[tuple[int, int, int]] = []
        self.complete = all([self._read(path, samples) for path in paths])
        if not self.pid:
            raise TruthError(f"{self.path}: no proc line")
        self.clock = Clock(samples)

    def _read(self, path: Path, samples: list[tuple[int, int, int]]) -> bool:
        """Read one file; did its writer end properly?"""
        ended = False
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    ended = self._parse(line.rstrip("\n").split("\t"), samples)
                except (ValueError, IndexError, TypeError) as error:
                    if not line.endswith("\n"):
                        break                   # killed in the middle of a line
                    raise TruthError(f"{path}:{number}: {error}") from None
        return ended

    def _parse(self, field: list[str], samples: list[tuple[int, int, int]]) -> bool:
        """Read one line; is it the last?"""
        kind = field[0]
        if kind == "launch":
            ident, tid = int(field[1]), int(field[2])
            if ident in self.launches:
                raise ValueError(f"launch id {ident} is used twice")
            begin, end, device, stream, task, flip = map(int, field[4:10])
            self.launches[ident] = Launch(ident, tid, field[3], begin, end, device, stream, task, flip,
                                          field[10], _text(field[11]), _text(field[12]))
        elif kind == "task":
            device, stream, task, flip = map(int, field[1:5])
            launch = -1 if field[5] == "-" else int(field[5])
            submit, start, end = map(int, field[7:10])
            self.tasks.append(Task(device, stream, task, flip, launch, field[6], submit, start, end))
        elif kind == "op":
            self.ops.append(Op(int(field[1]), field[2], field[3], int(field[4]), int(field[5]), int(field[6])))
        elif kind == "step":
            self.steps.append(Step(int(field[1]), int(field[2]), int(field[3])))
        elif kind == "collective":
            self.collectives[int(field[1])].append((int(field[3]), int(field[4])))
        elif kind == "clock":
            samples.append((int(field[1]), int(field[2]), int(field[3])))
        elif kind == "proc":
            self.pid = int(field[1])
            self.rank = None if field[2] == "-" else int(field[2])
        return kind == "end"

    def collective_spans(self) -> dict[int, tuple[int, int]]:
        """Launch id -> raw begin and end of the collective call that made it."""
        result: dict[int, tuple[int, int]] = {}
        lanes = {tid: sorted(spans) for tid, spans in self.collectives.items()}
        starts = {tid: [span[0] for span in spans] for tid, spans in lanes.items()}
        for launch in self.launches.values():
            at = bisect_right(starts.get(launch.tid, []), launch.begin) - 1
            if at >= 0 and launch.begin <= lanes[launch.tid][at][1]:
                result[launch.ident] = lanes[launch.tid][at]
        return result

    def first_phase_begin(self) -> dict[int, int]:
        """Launch id -> raw ns at which the first phase of its aclnn operator began, or the cache returned
        its executor.

        Only launches inside the second phase of an operator are listed.
        """
        first: dict[str, list[int]] = defaultdict(list)
        second: dict[int, list[Op]] = defaultdict(list)
        for op in self.ops:
            if op.phase < 2:
                first[op.executor].append(op.begin)
            else:
                second[op.tid].append(op)
        for begins in first.values():
            begins.sort()
        starts: dict[int, list[int]] = {}
        for tid, ops in second.items():
            ops.sort(key=lambda op: op.begin)
            starts[tid] = [op.begin for op in ops]
        result: dict[int, int] = {}
        for launch in self.launches.values():
            if not launch.aclnn or launch.tid not in second:
                continue
            index = bisect_right(starts[launch.tid], launch.begin) - 1
            if index < 0:
                continue
            op = second[launch.tid][index]
            if launch.begin > op.end:
                continue
            begins = first.get(op.executor, [])
            index = bisect_right(begins, op.begin) - 1
            result[launch.ident] = begins[index] if index >= 0 else op.begin
        return result


def _text(field: str) -> str:
    return "" if field == "-" else field


def load(directory: Path, pids: Optional[set[int]] = None) -> list[Truth]:
    """The truth of every process in DIRECTORY, or of some; steps may have a file of their own."""
    files: dict[int, list[Path]] = defaultdict(list)
    for path in sorted(directory.glob("truth.*.tsv"), key=lambda path: (len(path.name), path.name)):
        number = path.name.split(".")[1]
        if number.isdigit() and (pids is None or int(number) in pids):
            files[int(number)].append(path)
    return [Truth(paths) for _, paths in sorted(files.items())]
