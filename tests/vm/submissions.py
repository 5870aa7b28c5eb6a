# SPDX-License-Identifier: BSD-2-Clause
"""Which SQEs of a result have to know their submission: the simulated device logs when each was submitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

Key = tuple[int, int, int]  # device, stream, task


@dataclass
class Sent:
    """One SQE on its way; CLOCK_MONOTONIC ns."""

    called: int  # what called halSqTaskSend was entered: not later than that itself was
    submitted: int  # by halSqTaskSend's return: later, on a machine that stops in between
    entered: int  # its ioctl was
    enter: int  # the driver's function that sees it
    exit: int
    returned: int  # halSqTaskSend has returned: not later than this


def of(directory: Path, sqes: list[list[int]]) -> dict[Key, list[Sent]]:
    """By task, in order: the mock driver's lines SQES and the simulated device's truth have the same ones."""
    by_key: dict[Key, list[Sent]] = {}
    launches = _launches(directory / "truth") if sqes else {}
    for line in sorted(sqes, key=lambda line: line[9]):
        key = (line[0], line[3], line[4])
        called, submitted, returned = launches[key].pop(0)
        by_key.setdefault(key, []).append(Sent(called, submitted, line[9], line[6], line[7], returned))
    return by_key


class Learnt:
    """From when on a capture that began at BEGIN knows whose a queue or
    stream is: a submission to it was entered."""

    def __init__(self, sqes: list[list[int]], sent: dict[Key, list[Sent]], begin: int) -> None:
        self.queues: dict[tuple[int, int], int] = {}
        self.streams: dict[tuple[int, int], int] = {}
        for line in sqes:
            one = next(s for s in sent[line[0], line[3], line[4]] if s.enter == line[6])
            if one.called >= begin:
                for positions, number in ((self.queues, line[2]), (self.streams, line[3])):
                    positions[line[0], number] = min(one.entered, positions.get((line[0], number), one.entered))

    def queue(self, device: int, number: int, time: int) -> bool:
        """At TIME."""
        return self.queues.get((device, number), time + 1) <= time

    def stream(self, device: int, number: int, time: int) -> bool:
        """The same."""
        return self.streams.get((device, number), time + 1) <= time


def calls(truth: Path) -> list[tuple[int, int]]:
    """When each call that launched something began and ended, CLOCK_MONOTONIC ns."""
    lines, ahead = _read(truth)
    return sorted({(int(line[4]) + ahead, int(line[5]) + ahead) for line in lines if line[0] == "launch"})


def _read(truth: Path) -> tuple[list[list[str]], int]:
    """The simulated device's truth by lines and fields, and how far CLOCK_MONOTONIC is ahead of its clock."""
    lines = [line.split("\t") for file in sorted(truth.glob("truth.*.tsv"))
             for line in file.read_text(encoding="utf-8").splitlines()]
    # Both clocks go at one rate, for nobody adjusts them in a machine: what the readings
    # differ by is the time between two of them.
    return lines, int(median(int(line[2]) - int(line[1]) for line in lines if line[0] == "clock"))


def _launches(truth: Path) -> dict[Key, list[tuple[int, int, int]]]:
    """(begin of the call that it was made in, submission, end of that
    call) of each SQE, by task, in order."""
    lines, ahead = _read(truth)
    submitted = {tuple(line[1:5]): int(line[7]) for line in lines if line[0] == "task"}
    found: dict[Key, list[tuple[int, int, int, int]]] = {}
    for line in lines:
        if line[0] == "launch":
            key = (int(line[6]), int(line[7]), int(line[8]))
            # One that had not ended with the job has no line of a task: long after every capture.
            began = submitted.get(tuple(line[6:10]), int(line[4]))
            found.setdefault(key, []).append((int(line[9]), int(line[4]) + ahead, began + ahead, int(line[5]) + ahead))
    return {key: [times[1:] for times in sorted(all_of)] for key, all_of in found.items()}


def wrong(rows: list[tuple[int, int, int, int, int | None]], sent: dict[Key, list[Sent]], begin: int,
          end: int) -> list[str]:
    """What is wrong of ROWS (device, stream, task, start, submission or None) of a capture from BEGIN to END.

    A submission that was entered before BEGIN has no record, nor one that had not returned
    at END: of it only the end of the whole call is known, so that of each thread one SQE,
    the last, is excused that may have had one.
    """
    notes = []
    for device, stream, task, start, submit in rows:
        same = sent.get((device, stream, task), [])
        at = next((i for i, s in enumerate(same) if s.enter <= start <= s.exit), None)
        if at is None:
            notes.append(f"the driver knows of no SQE {device}:{stream}:{task} at {start}")
        elif submit is None:
            if same[at].called >= begin and same[at].returned < end:
                notes.append(f"SQE {stream}:{task} has no submission: {same[at].submitted - begin} ns after the begin, "
                            f"{end - same[at].returned} before the end")
        elif not submit <= same[at].entered <= start or (at and submit <= same[at - 1].submitted):
            notes.append(f"SQE {stream}:{task} has another's submission: {same[at].submitted - submit} ns before it")
    return notes
