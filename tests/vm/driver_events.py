# SPDX-License-Identifier: BSD-2-Clause
"""What a capture recorded of the NPU's driver, held against what the mock driver says it did."""

from __future__ import annotations

import sqlite3
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

CHUNK, EVENT = struct.Struct("<IHHQIIII"), struct.Struct("<BBHIIiQQ4Q")
EVENTS = 1
CALL, TASK, DONE, COPY = 14, 15, 16, 17
IOCTL = 3
SETTLED = 100_000_000  # ns: what was submitted before the capture has left its queue, what woke has returned


@dataclass
class Event:
    """One record."""

    kind: int
    probe: int
    pid: int
    tid: int
    ret: int
    start: int
    end: int
    args: tuple[int, ...]


def events(session: Path) -> Iterator[Event]:
    """Those of the driver."""
    data = (session / "events.nps").read_bytes()
    at = 0
    while at + CHUNK.size <= len(data):
        _magic, _version, kind, _seq, size, _crc, _cpu, _pad = CHUNK.unpack_from(data, at)
        at += CHUNK.size
        for fields in EVENT.iter_unpack(data[at:at + size]) if kind == EVENTS else ():
            if CALL <= fields[0] <= COPY:
                yield Event(fields[0], fields[2], fields[3], fields[4], fields[5], fields[6], fields[6] + fields[7],
                            fields[8:])
        at += size


def told(place: Path) -> dict[str, list[list[int]]]:
    """Lines of the mock driver by their first word."""
    lines: dict[str, list[list[int]]] = {}
    for line in (place / "driver.tsv").read_text(encoding="utf-8").splitlines():
        what, *fields = line.split("\t")
        lines.setdefault(what, []).append([int(field) for field in fields])
    return lines


def compare(place: Path, session: Path, about: dict[str, Any], mode: str, how: str) -> tuple[str, list[str]]:
    """What was found, in words, and what is wrong. Only what lies wholly within the capture is compared."""
    begin, end = about["capture"]["begin_monotonic"], about["capture"]["end_monotonic"]
    truth = told(place)

    def within(what: str, first: int, last: int) -> list[list[int]]:
        return [line for line in truth.get(what, []) if begin < line[first] and line[last] < end]

    seen: dict[int, list[Event]] = {kind: [] for kind in (CALL, TASK, DONE, COPY)}
    for event in events(session):
        seen[event.kind].append(event)
    wrong = []
    wanted = within("sqe", 6, 7)
    missing = _missing([(tuple(line[:5]), line[6], line[7]) for line in wanted],
                       [((e.args[0] & 0xFFFF, e.pid, e.args[0] >> 32, e.args[1] >> 32 & 0xFFFF, e.args[1] >> 48),
                         e.start, e.end) for e in seen[TASK]], inside=True)
    wrong += [f"{missing} of {len(wanted)} SQEs"] if missing or (mode == "uio_d") != (not wanted) else []
    calls = [(tuple(line[2:4]), line[6], line[7]) for line in within("svm", 6, 7)]
    missing = _missing(calls, [((e.tid, e.args[1] & 0xFF), e.start, e.end) for e in seen[CALL]
                               if e.probe == IOCTL and e.args[1] >> 8 & 0xFF == ord("M")], inside=False)
    wrong += [f"{missing} of {len(calls)} calls of memory"] if missing else []
    copies = [((line[0], line[1], line[2], line[4]), line[5], line[7]) for line in within("dma", 5, 7)]
    missing = _missing(copies, [((e.args[0] & 0xFFFF, e.args[0] >> 32, e.args[3], e.tid), e.start, e.end)
                                for e in seen[COPY]], inside=False)
    wrong += [f"{missing} of {len(copies)} copies"] if missing else []
    cqes = Counter((line[0], line[1], line[2], line[3], line[4]) for line in within("cqe", 5, 5))
    ours = Counter((e.args[0] & 0xFFFF, e.pid, e.args[0] >> 32, e.args[1] >> 32 & 0xFFFF, e.args[1] >> 48)
                   for e in seen[DONE])
    missing = sum((cqes - ours).values())
    # They come in interrupts, where a kernel may leave a kprobe's program out: told, not held against it.
    wrong += [f"{missing} of {sum(cqes.values())} completions"] if missing and how == "fexit" else []
    return (f"{len(wanted)} SQEs, {len(calls)} calls of memory, {len(copies)} copies, "
            f"{sum(cqes.values()) - missing} of {sum(cqes.values())} completions"), wrong


def joined(place: Path, session: Path, about: dict[str, Any], how: str) -> list[str]:
    """What is wrong in the result: SQEs without their submissions, and waits that end elsewhere than the driver says."""
    begin, end = about["capture"]["begin_monotonic"], about["capture"]["end_monotonic"]
    offset = about["start"]["realtime"] - about["start"]["monotonic"]
    database = next(session.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db"), None)
    if database is None:
        return ["there is no database"]
    with sqlite3.connect(database) as db:
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master")}
        alone, early = db.execute("SELECT count(*) - count(queuedNs), total(queuedNs < 0) FROM NPUSCOPE_DRIVER_TASK "
                                  "WHERE startNs BETWEEN ? AND ?",
                                  (begin + offset + SETTLED, end + offset - SETTLED)).fetchone() \
            if "NPUSCOPE_DRIVER_TASK" in tables else (0, 0)
        cqes = db.execute("SELECT waiterTid, streamId, taskId, timestampNs, wakeupNs FROM NPUSCOPE_DRIVER_CQE").fetchall() \
            if "NPUSCOPE_DRIVER_CQE" in tables else []
    wrong = [f"{alone} SQEs have no submission, {early:.0f} are before theirs"] if alone or early else []
    ours = {tuple(row[:3]): (row[3] - offset, row[3] - offset + (row[4] or 0)) for row in cqes}
    for _device, _pid, tid, stream, task, asleep, interrupt, awake in told(place).get("wake", []):
        # Both the wait and its end have to lie within the capture, the return of the call too.
        if begin < asleep and awake + SETTLED < end and (how == "fexit" or (tid, stream, task) in ours):
            came, returned = ours.get((tid, stream, task), (0, 0))
            if not interrupt <= came <= awake <= returned:
                wrong.append(f"the wait for task {task}: {came - interrupt} ns after the interrupt, until {returned - awake} "
                             "ns after it was awake")
    return wrong


def _missing(truth: list[tuple[Any, int, int]], ours: list[tuple[Any, int, int]], inside: bool) -> int:
    """How many of TRUTH no record of the same key has: one that lies INSIDE it, or around it."""
    by_key: dict[Any, list[tuple[int, int]]] = {}
    for key, start, end in ours:
        by_key.setdefault(key, []).append((start, end))
    lost = 0
    for key, start, end in truth:
        fits = [pair for pair in by_key.get(key, [])
                if (start <= pair[0] and pair[1] <= end if inside else pair[0] <= start and end <= pair[1])]
        if fits:
            by_key[key].remove(fits[0])
        lost += not fits
    return lost
