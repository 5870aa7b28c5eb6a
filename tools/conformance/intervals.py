# SPDX-License-Identifier: BSD-2-Clause
"""Arithmetic on sets of half-open intervals."""

from __future__ import annotations

from typing import Iterable

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same set as sorted intervals that neither overlap nor touch; empty ones vanish."""
    result: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[1] > interval[0]):
        if result and start <= result[-1][1]:
            if end > result[-1][1]:
                result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result


def minus(left: Iterable[Interval], right: Iterable[Interval]) -> list[Interval]:
    """What of LEFT is not in RIGHT."""
    holes = union(right)
    result: list[Interval] = []
    index = 0
    for start, end in union(left):
        while index and holes[index - 1][1] > start:
            index -= 1
        while index < len(holes) and holes[index][1] <= start:
            index += 1
        at = index
        while at < len(holes) and holes[at][0] < end:
            if holes[at][0] > start:
                result.append((start, holes[at][0]))
            start = max(start, holes[at][1])
            at += 1
        if start < end:
            result.append((start, end))
    return result


def length(intervals: Iterable[Interval]) -> int:
    """Total length of intervals that do not overlap."""
    return sum(end - start for start, end in intervals)


def first_not_nested(intervals: Iterable[Interval], slack: int = 0) -> tuple[Interval, Interval] | None:
    """Two intervals that overlap without one holding the other, if there are such."""
    stack: list[Interval] = []
    for start, end in sorted(intervals, key=lambda interval: (interval[0], -interval[1])):
        while stack and stack[-1][1] <= start + slack:
            stack.pop()
        if stack and end > stack[-1][1] + slack:
            return stack[-1], (start, end)
        stack.append((start, end))
    return None
