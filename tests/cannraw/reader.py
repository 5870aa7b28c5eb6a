# SPDX-License-Identifier: BSD-2-Clause
"""Reads a PROF directory by the format's description, knowing nothing of its generator."""

from __future__ import annotations

import configparser
import json
import re
import struct
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterator, NamedTuple

SLICE = 2048 * 1024
SLICE_SLACK = 3 * 1024 * 1024
NO_CONTEXT = 0xFFFFFFFF
FLIP = 98
FFTS_PLUS = 52


class Wrong(Exception):
    """What the directory holds differs from the format or the truth."""


def check(ok: bool, *what: object) -> None:
    """Raise Wrong with the values in WHAT unless OK."""
    if not ok:
        raise Wrong(" ".join(str(part) for part in what))


class Api(NamedTuple):
    """A span, times as written."""

    level: int
    type: int
    tid: int
    begin: int
    end: int
    reserve: int
    item: int


class Head(NamedTuple):
    """The 24 bytes in front of compact and additional payloads."""

    level: int
    type: int
    tid: int
    length: int
    time: int


class Track(NamedTuple):
    """A task_track record."""

    tid: int
    time: int
    device: int
    stream: int
    word: int
    type: int
    kernel: int
    blocks: int
    ratio: int
    model: int


class Clock:
    """A counter and its way to the wall clock, in exact integers."""

    def __init__(self, raw: int, counter: int, khz: int, offset: int) -> None:
        self.raw, self.counter, self.khz, self.offset = raw, counter, khz, offset

    def wall(self, value: int) -> int:
        """Unix ns of a counter value, rounded down."""
        return self.raw + (value - self.counter) * 1000000 // self.khz + self.offset


def khz_of(text: str) -> int:
    """MHz as text, in kHz."""
    whole, _, part = text.partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def one_line(path: Path) -> Any:
    """The JSON of a control file, which has to be one line."""
    text = path.read_text()
    check(text.count("\n") == 1 and text.endswith("\n"), path.name, "is not one line")
    return json.loads(text)


class Folder:
    """host/ or device_N/."""

    def __init__(self, path: Path, suffix: str, done: bool) -> None:
        self.path, self.done = path, done
        self.slices: dict[str, dict[int, Path]] = defaultdict(dict)
        self.info = one_line(path / f"info.json{suffix}")
        self.sample = one_line(path / "sample.json")
        self.start = one_line(path / f"start_info{suffix}")
        check((path / f"end_info{suffix}").exists() == done, "end_info")
        if done:
            self.end = one_line(path / f"end_info{suffix}")
            check(int(self.end["collectionTimeEnd"]) > int(self.start["collectionTimeBegin"]), "end before start")
        for file in path.rglob("*"):
            if file.is_file():
                self.add(file)

    def add(self, file: Path) -> None:
        """Take note of a slice; check its .done file."""
        if file.name.endswith(".done"):
            size = int(re.match(r"filesize:(\d+)\n", file.read_text())[1])  # type: ignore[index]
            check(self.done, "unexpected", file.name)
            check(size == file.with_suffix("").stat().st_size, "size in", file.name)
            return
        check(file.with_name(file.name + ".done").exists() == self.done, "done file of", file.name)
        name, found, number = file.name.rpartition(".slice_")
        if found:
            self.slices[name][int(number)] = file

    def stream(self, name: str, cut: int = 1) -> bytes:
        """All bytes of a stream; its slices end at multiples of CUT."""
        parts = []
        numbers = sorted(self.slices.get(name, {}))
        check(numbers == list(range(len(numbers))), "slices of", name)
        for number in numbers:
            data = self.slices[name][number].read_bytes()
            last = number == numbers[-1]
            check(last or len(data) >= SLICE, "short slice", name, number)
            check(len(data) < SLICE + SLICE_SLACK and len(data) % cut == 0, "size of slice", name, number)
            parts.append(data)
        return b"".join(parts)

    def records(self, name: str, size: int, cut: int = 1) -> Iterator[bytes]:
        """The records of a stream."""
        data = self.stream(name, cut)
        check(len(data) % size == 0, name, "is not whole records")
        for at in range(0, len(data), size):
            yield data[at : at + size]

    def text(self, name: str) -> dict[str, bytes]:
        """A dictionary: what stands before and after the first colon of each line."""
        out: dict[str, bytes] = {}
        for line in self.stream(name).split(b"\n"):
            key, found, value = line.partition(b":")
            if found and re.fullmatch(rb"[\d_]+", key):
                check(out.get(key.decode(), value) == value, "two texts for", key)
                out[key.decode()] = value
        return out


def sections(path: Path) -> dict[str, int]:
    """The keys of a start log, with or without a section."""
    text = path.read_text()
    parser = configparser.ConfigParser()
    parser.read_string(text if text.startswith("[") else "[x]\n" + text)
    check(len(parser.sections()) == 1, path.name)
    return {key: int(value) for key, value in parser[parser.sections()[0]].items()}


class Host(Folder):
    """The host's records."""

    def __init__(self, path: Path, done: bool) -> None:
        super().__init__(path, "", done)
        check(self.info["DeviceInfo"] == [] and self.info["devices"] == "64", "not a host directory")
        self.chip = int(self.info["platform_version"])
        mhz = self.info["CPU"][0]["Frequency"]
        log = sections(path / "host_start.log")
        offset = int(self.start["collectionTimeBegin"]) * 1000 - int(self.start["clockMonotonicRaw"])
        if mhz:
            self.clock = Clock(log["clock_monotonic_raw"], log["cntvct"], khz_of(mhz), offset)
        else:
            self.clock = Clock(0, 0, 1000000, offset)
        self.types = {key: value.decode() for key, value in self.text("unaging.additional.type_info_dic").items()}
        self.hashes = {int(key): value for key, value in self.text("unaging.additional.hash_dic").items()}
        self.disorder = 0
        self.apis = [api for kind in ("aging", "unaging") for api in self.read_apis(f"{kind}.api_event.data")]
        self.tracks = [track for kind in ("aging", "unaging") for track in self.read_tracks(kind)]

    def read_apis(self, name: str) -> Iterator[Api]:
        """Spans, and events paired to spans."""
        opened: dict[tuple[int, ...], int] = {}
        latest = 0
        for record in self.records(name, 40):
            magic, level, kind, tid, reserve, begin, end, item = struct.unpack("<HHIIIQQQ", record)
            check(magic == 0x5A5A, name, "magic")
            check(f"{level}_{kind}" in self.types, "unnamed api", level, kind)
            self.disorder += begin < latest
            latest = begin
            if end != 2**64 - 1:
                check(begin < end, "empty span")
                yield Api(level, kind, tid, begin, end, reserve, item)
                continue
            key = (level, kind, tid, reserve, item)
            if key in opened:
                yield Api(level, kind, tid, opened.pop(key), begin, reserve, item)
            else:
                opened[key] = begin
        check(not opened, "events without an end in", name)

    def heads(self, tag: str, size: int) -> Iterator[tuple[Head, bytes, str]]:
        """Compact or additional records of both ages."""
        group = "compact" if size == 64 else "additional"
        for age in ("aging", "unaging"):
            for record in self.records(f"{age}.{group}.{tag}", size):
                magic, level, kind, tid, length, time = struct.unpack_from("<HHIIIQ", record)
                check(magic == 0x5A5A, tag, "magic")
                check(self.types.get(f"{level}_{kind}") == tag, "type of", tag)
                check(length <= size - 24, "payload of", tag)
                yield Head(level, kind, tid, length, time), record, age

    def read_tracks(self, age: str) -> Iterator[Track]:
        """Task launches and flips."""
        for head, record, of in self.heads("task_track", 64):
            if of == age:
                device, stream, word, kind, kernel, blocks, _, ratio = struct.unpack_from("<HHIQQHHB", record, 24)
                check(f"5000_{kind}" in self.types, "unnamed task type", kind)
                model = struct.unpack_from("<I", record, 48)[0]
                yield Track(head.tid, head.time, device, stream, word, kind, kernel, blocks, ratio & 7, model)

    def name(self, value: int) -> bytes:
        """The text of a hash."""
        check(value in self.hashes, "unknown hash", value)
        return self.hashes[value]


class Device(Folder):
    """The records of one device."""

    def __init__(self, path: Path, number: int, done: bool) -> None:
        super().__init__(path, f".{number}", done)
        self.number = number
        check(len(self.info["DeviceInfo"]) == 1 and self.info["devices"] == str(number), "not device", number)
        self.chip = int(self.info["platform_version"])
        host, device = sections(path / f"host_start.log.{number}"), sections(path / f"dev_start.log.{number}")
        check(host["cntvct_diff"] == 0, "cntvct_diff")
        khz = khz_of(self.info["DeviceInfo"][0]["hwts_frequency"])
        offset = int(self.start["collectionTimeBegin"]) * 1000 - int(self.start["clockMonotonicRaw"])
        self.clock = Clock(host["clock_monotonic_raw"], device["cntvct"], khz, offset)

    def ids(self, record: bytes) -> tuple[int, int]:
        """Stream and task as they really are; V6 has no stream."""
        stream, task = struct.unpack_from("<HH", record, 4)
        if self.chip == 15:
            return 0, task << 16 | stream
        if stream & 0x1000:
            return stream % 2048, (task & 0x1FFF) | (stream & 0xE000)
        if stream & 0x2000:
            return (task & 0x0FFF) % 2048, (stream & 0x0FFF) | (task & 0xF000)
        return stream % 2048, task

    def counted(self, name: str, size: int, cut: int = 1) -> Iterator[tuple[int, int, bytes]]:
        """Records with a running counter: their function, what follows the counter, their bytes."""
        for number, record in enumerate(self.records(f"{name}.{self.number}", size, cut)):
            word, magic = struct.unpack_from("<HH", record)
            check(magic == 0x6BD3, name, "magic")
            check((word >> 6 & 15) == number % 16, name, "lost records")
            yield word & 63, word >> 10, record

    def log(self) -> dict[tuple[int, int, int], list[tuple[int, int, int]]]:
        """Task runs by (stream, task, context): start, end, and queue entry or sub-task type."""
        size = 32 if self.chip == 15 else 64
        starts: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
        ends: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
        latest = 0
        for func, sqe, record in self.counted("stars_soc.data", size, size):
            time = struct.unpack_from("<Q", record, 8)[0]
            check(time >= latest, "task log out of order")
            latest = time
            check(func in (0, 1, 0x22, 0x23), "function", func)
            sub, context, ffts = struct.unpack_from("<HHH", record, 16)
            key = (*self.ids(record), context if func & 0x20 else NO_CONTEXT)
            check(not func & 0x20 or ffts >> 13 == 4, "ffts type")
            (ends if func & 1 else starts)[key].append((time, sub & 255 if func & 0x20 else sqe))
        check(starts.keys() == ends.keys(), "starts without ends")
        out = {}
        for key, found in starts.items():
            check([kind for _, kind in found] == [kind for _, kind in ends[key]], "starts and ends of", key)
            out[key] = [(start, end, kind) for (start, kind), (end, _) in zip(found, ends[key])]
        return out

    def track(self, tag: int) -> Iterator[tuple[int, bytes]]:
        """Time and bytes of the track records with TAG."""
        for record in self.records(f"ts_track.data.{self.number}", 40):
            _, found, size, _, time = struct.unpack_from("<BBHIQ", record)
            check(size == 40 and found in (0x0A, 0x0E), "track record")
            if found == tag:
                yield time, record


def batches(tasks: list[tuple[int, int]], flips: list[tuple[int, int]], device: bool) -> list[int]:
    """The batch of each (time, task), both sorted by time; flips are (time, first task behind)."""
    out = [0] * len(tasks)
    times = [time for time, _ in tasks]
    for flip, first in flips:
        # The host counts flips strictly before a task, the device also those at its time.
        at = bisect_left(times, flip if device else flip + 1)
        for i in range(at, len(tasks)):
            out[i] += 1
        back = at - 1
        while first and back >= 0 and tasks[back][1] < first:
            out[back] += 1
            back -= 1
    return out


class Spans:
    """Spans of one level by thread, none of which overlap."""

    def __init__(self, apis: list[Api], keep: Any) -> None:
        self.by_tid: dict[int, list[Api]] = defaultdict(list)
        for api in apis:
            if keep(api):
                self.by_tid[api.tid].append(api)
        self.begins: dict[int, list[int]] = {}
        for tid, spans in self.by_tid.items():
            spans.sort(key=lambda api: api.begin)
            self.begins[tid] = [api.begin for api in spans]
            for one, two in zip(spans, spans[1:]):
                check(one.end < two.begin, "overlapping spans")

    def holding(self, tid: int, time: int) -> Api | None:
        """The span whose (begin, end] holds TIME."""
        at = bisect_left(self.begins.get(tid, []), time) - 1
        if at < 0 or time > self.by_tid[tid][at].end:
            return None
        return self.by_tid[tid][at]
