# SPDX-License-Identifier: BSD-2-Clause
"""What a capture recorded of the NPU's driver, compared with the mock driver's log."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

import submissions

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from records import (CHUNK_EVENTS, DRIVER, DRIVER_DMA, DRIVER_DONE, DRIVER_TASK, EVENT, Event,  # noqa: E402
                     chunks)

IOCTL = 3
FFTS = 0  # SQEs that the driver changes: its tracepoint does not show which they are
FAILED = 0x8000
LEFT_OUT = ("kprobe", "tracepoint")  # where the kernel runs one such program on a CPU at a time


def events(session: Path) -> Iterator[Event]:
    """Those of the driver."""
    for kind, payload in chunks(session / "events.nps"):
        for fields in EVENT.iter_unpack(payload) if kind == CHUNK_EVENTS else ():
            if DRIVER <= fields[0] <= DRIVER_DMA:
                yield Event(fields)


def on_queue(event: Event) -> tuple[int, int, int]:
    """(device, process, queue) of an SQE or a CQE."""
    return event.body.device, event.pid, event.body.queue


def reported(share: Path) -> dict[str, list[list[int]]]:
    """Lines of the mock driver by their first word."""
    lines: dict[str, list[list[int]]] = {}
    for line in (share / "driver.tsv").read_text(encoding="utf-8").splitlines():
        what, *fields = line.split("\t")
        lines.setdefault(what, []).append([int(field) for field in fields])
    return lines


def compare(share: Path, session: Path, about: dict[str, Any], mode: str, how: dict[str, str]) -> tuple[str, list[str]]:
    """What was found, in words, and what is wrong. Only what lies wholly within the capture is compared."""
    begin, end = about["capture"]["begin_monotonic"], about["capture"]["end_monotonic"]
    truth = reported(share)
    calls_within = Within(truth, begin, end)

    def within(what: str, first: int, last: int) -> list[list[int]]:
        return [line for line in truth.get(what, []) if begin < line[first] and line[last] < end]

    seen: dict[int, list[Event]] = {kind: [] for kind in (DRIVER, DRIVER_TASK, DRIVER_DONE, DRIVER_DMA)}
    for event in events(session):
        seen[event.kind].append(event)
    sent = submissions.of(share, truth.get("sqe", []))
    known = submissions.Learnt(truth.get("sqe", []), sent, begin)
    traced = how["tasks"] == "tracepoint"
    wanted = [line for line in within("sqe", 6, 7) if not traced or known.queue(line[0], line[2], line[6])]
    missing = _missing([((*line[:4], None if traced and line[5] == FFTS else line[4]), line[6], line[7])
                        for line in wanted],
                       [((*on_queue(e), e.body.stream, None if traced and e.body.type & 0x3F == FFTS else e.body.task),
                         e.start, e.end) for e in seen[DRIVER_TASK]], inside=True)
    wrong = [f"{missing} of {len(wanted)} SQEs"] if missing or (mode == "uio_d") != (not wanted) else []
    calls = [(tuple(line[2:4]), line[6], line[7]) for line in truth.get("svm", [])
             if calls_within.has(line[2], line[6], line[7])]
    missing = _missing(calls, [((e.tid, e.body.command & 0xFF), e.start, e.end) for e in seen[DRIVER]
                               if e.call_type == IOCTL and e.body.command >> 8 & 0xFF == ord("M")], inside=False)
    wrong += [f"{missing} of {len(calls)} calls of memory"] if missing else []
    copies = [((line[0], line[1], line[2], line[4]), line[5], line[7]) for line in truth.get("dma", [])
              if calls_within.has(line[4], line[5], line[7])]
    missing = _missing(copies, [((e.body.device, e.body.direction, e.body.bytes, e.tid), e.start, e.end)
                                for e in seen[DRIVER_DMA]], inside=False)
    wrong += [f"{missing} of {len(copies)} copies"] if missing else []
    came = within("cqe", 5, 5)
    if how["CQEs"] == "tracepoint":
        came = [line for line in came if known.stream(line[0], line[3], line[5])]
    done, missed, lost = _completions(came, seen[DRIVER_DONE], how["CQEs"])
    wrong += [f"{lost} of {done} completions"] if lost else []
    # The mock lets every eighth task fail, by its number.
    untrue = sum(bool(e.body.flags & FAILED) != (e.body.task % 8 == 7) for e in seen[DRIVER_DONE])
    wrong += [f"{untrue} of {len(seen[DRIVER_DONE])} completions that are told wrongly to have failed, or not to have"] if untrue else []
    counted = about["drops"]["ring"]["driver_done"]
    wrong += [f"{missed} completions, of which {counted} are counted"] if counted is not None and \
        missed > counted else []
    return (f"{len(wanted)} SQEs, {len(calls)} calls of memory, {len(copies)} copies, "
            f"{done - missed} of {done} completions"), wrong


class Within:
    """Finds which calls of a thread began and returned within the capture, as a probe sees
    it, which is around the mock's own times: something else that the thread did lies
    between the call and the begin, and the end."""

    FIELDS = {"send": (2, 6, 7), "svm": (2, 6, 7), "hdc": (2, 6, 7), "wake": (2, 5, 7), "dma": (4, 5, 7),
              "msg": (3, 4, 5)}

    def __init__(self, truth: dict[str, list[list[int]]], begin: int, end: int) -> None:
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for what, (tid, enter, leave) in self.FIELDS.items():
            for line in truth.get(what, []):
                for time in (line[enter], line[leave]):
                    if begin < time < end:
                        self.first[line[tid]] = min(time, self.first.get(line[tid], time))
                        self.last[line[tid]] = max(time, self.last.get(line[tid], time))

    def has(self, tid: int, enter: int, leave: int) -> bool:
        """Of the call that TID was in from ENTER to LEAVE."""
        return tid in self.first and self.first[tid] < enter and leave < self.last[tid]


def _completions(truth: list[list[int]], seen: list[Event], how: str) -> tuple[int, int, int]:
    """How many CQEs there were, how many have no record, and how many of those nothing excuses.

    A kernel leaves a kprobe, or the program of one or of a tracepoint, out on a CPU where another one is at
    work. The mock looks at the kernel's own words for that when the interrupt comes.
    """
    def key(device: int, pid: int, queue: int, stream: int, task: int) -> tuple[int, ...]:
        return (device, pid, stream, task) if how == "tracepoint" else (device, pid, queue, stream, task)

    lost: Counter[tuple[int, ...]] = Counter(key(*line[:5]) for line in truth)
    lost -= Counter(key(*on_queue(e), e.body.stream, e.body.task) for e in seen)
    excused = Counter(key(*line[:5]) for line in truth if line[6] and how in LEFT_OUT)
    return len(truth), sum(lost.values()), sum((lost - excused).values())


def joined(share: Path, session: Path, about: dict[str, Any], how: dict[str, str]) -> list[str]:
    """What is wrong in the result: SQEs without their submissions, and waits that
    end elsewhere than in the driver's log."""
    begin, end = about["capture"]["begin_monotonic"], about["capture"]["end_monotonic"]
    offset = about["start"]["realtime"] - about["start"]["monotonic"]
    database = next(session.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db"), None)
    if database is None:
        return ["there is no database"]
    with sqlite3.connect(database) as db:
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master")}
        rows = [(device, stream, task, start - offset, None if queued is None else start - offset - queued)
                for device, stream, task, start, queued in
                db.execute("SELECT deviceId, streamId, taskId, startNs, queuedNs FROM NPUSCOPE_DRIVER_TASK "
                           "WHERE taskId IS NOT NULL OR queuedNs IS NOT NULL")] \
            if "NPUSCOPE_DRIVER_TASK" in tables else []
        cqes = db.execute("SELECT waiterTid, streamId, taskId, timestampNs, wakeupNs "
                          "FROM NPUSCOPE_DRIVER_CQE").fetchall() \
            if "NPUSCOPE_DRIVER_CQE" in tables else []
    truth = reported(share)
    wrong = submissions.wrong(rows, submissions.of(share, truth.get("sqe", [])), begin, end)
    ours = {tuple(row[:3]): (row[3] - offset, row[3] - offset + (row[4] or 0)) for row in cqes}
    busy = {(line[3], line[4]) for line in truth.get("cqe", []) if line[6] and how["CQEs"] in LEFT_OUT}
    within = Within(truth, begin, end)
    for _device, _pid, tid, stream, task, asleep, interrupt, awake in truth.get("wake", []):
        if not within.has(tid, asleep, awake) or ((stream, task) in busy and (tid, stream, task) not in ours):
            continue
        came, returned = ours.get((tid, stream, task), (0, 0))
        if not interrupt <= came <= awake <= returned:
            wrong.append(f"the wait for task {task}: {came - interrupt} ns after the interrupt, until "
                         f"{returned - awake} "
                         "ns after it was awake")
    return wrong


def off_by(share: Path, session: Path, about: dict[str, Any]) -> dict[str, list[int]]:
    """How far durations are from what the mock stamped, ns, in order: in the driver for an SQE and for a
    copy, and from an interrupt to when the thread that waited for its CQE goes on."""
    offset = about["start"]["realtime"] - about["start"]["monotonic"]
    truth = reported(share)
    off: dict[str, list[int]] = {"SQEs": [], "copies": [], "wake-ups": []}
    stamped = {(line[0], line[1], line[2], line[4], line[6]): line[7] for line in truth.get("sqe", [])}
    begins: dict[tuple[int, ...], list[int]] = {}
    for key in sorted(stamped):
        begins.setdefault(key[:4], []).append(key[4])
    copied: dict[int, list[tuple[int, int]]] = {line[4]: [] for line in truth.get("dma", [])}
    for line in truth.get("dma", []):
        copied[line[4]].append((line[5], line[7]))
    for event in events(session):
        if event.kind == DRIVER_TASK and event.traced == 0:
            key = (*on_queue(event), event.body.task)
            inside = [at for at in begins.get(key, []) if at <= event.start]
            if inside:
                off["SQEs"].append(abs(stamped[(*key, inside[-1])] - inside[-1] - (event.end - event.start)))
        if event.kind == DRIVER_DMA:
            for begin, end in copied.get(event.tid, []):
                if event.start <= begin and end <= event.end:
                    off["copies"].append(abs(end - begin - (event.end - event.start)))
    database = next(session.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(database) as db:
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master")}
        cqes = db.execute("SELECT waiterTid, streamId, taskId, timestampNs, wakeupNs FROM NPUSCOPE_DRIVER_CQE "
                          "WHERE wakeupNs IS NOT NULL").fetchall() if "NPUSCOPE_DRIVER_CQE" in tables else []
    waits = {(line[2], line[3], line[4]): line for line in truth.get("wake", [])}
    for tid, stream, task, _time, wakeup in cqes:
        line = waits.get((tid, stream, task))
        if line:
            off["wake-ups"].append(abs(line[7] - line[6] - wakeup))
    return {what: sorted(values) for what, values in off.items()}


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
