# SPDX-License-Identifier: BSD-2-Clause
"""Reads a Perfetto trace without a line of npuscope's or Perfetto's: what a viewer must find in it."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of a message's fields; a value is a number or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, data[at:at + 8]
            at += 8
        elif tag & 7 == 2:
            size = varint()
            assert at + size <= len(data), "a field goes beyond its message"
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            raise AssertionError(f"wire type {tag & 7}")


def message(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


class Trace:
    """Tracks with their slices as their begins and ends nest, counters, flows, arguments."""

    def __init__(self, path: Path) -> None:
        self.names: dict[int, str] = {}  # of tracks
        self.processes: list[tuple[int, str]] = []
        self.threads: list[tuple[int, str, int]] = []
        self.slices: list[tuple[int, str, int, int]] = []  # track, name, begin, duration (-1: no end)
        self.counters: dict[int, list[float]] = {}
        self.categories: Counter[str] = Counter()
        self.arguments = 0
        self._flows: dict[int, int] = {}  # open ones -> events
        self.flows = 0
        self._texts: dict[tuple[int, int], str] = {}
        events: list[tuple[int, dict[int, list[Any]], str]] = []
        for number, packet in fields(path.read_bytes()):
            assert number == 1, f"field {number} of Trace"
            self._packet(message(packet), events)
        events.sort(key=lambda e: e[0])  # stable, as readers sort
        self._play(events)

    def _packet(self, packet: dict[int, list[Any]], events: list[tuple[int, dict[int, list[Any]], str]]) -> None:
        if packet.get(13) == [1]:
            self._texts.clear()
        for kind, entries in message(packet[12][0]).items() if 12 in packet else ():
            for entry in map(message, entries):
                self._texts[kind, entry[1][0]] = entry[2][0].decode()
        if 60 in packet:
            self._track(message(packet[60][0]))
        if 11 in packet:
            event = message(packet[11][0])
            name = self._text(event, 2, 10, 23)
            category = self._text(event, 1, 3, 22)
            if category:
                self.categories[category] += 1
            for argument in map(message, event.get(4, [])):
                assert self._text(argument, 3, 1, 10) is not None
                self.arguments += 1
            events.append((packet[8][0], event, name))

    def _text(self, event: dict[int, list[Any]], kind: int, by_number: int, in_full: int) -> str:
        if by_number in event:
            return self._texts[kind, event[by_number][0]]
        return event[in_full][0].decode() if in_full in event else ""

    def _track(self, track: dict[int, list[Any]]) -> None:
        self.names[track[1][0]] = track.get(2, [b""])[0].decode()
        if 3 in track:
            process = message(track[3][0])
            self.processes.append((process[1][0], process[6][0].decode()))
        if 4 in track:
            thread = message(track[4][0])
            self.threads.append((thread[2][0], thread.get(5, [b""])[0].decode(), thread[1][0]))

    def _play(self, events: list[tuple[int, dict[int, list[Any]], str]]) -> None:
        stacks: dict[int, list[tuple[str, int]]] = {}
        for ts, event, name in events:
            track, kind = event[11][0], event[9][0]
            assert track in self.names, f"track {track} has no description"
            stack = stacks.setdefault(track, [])
            if kind == BEGIN:
                stack.append((name, ts))
            elif kind == END:
                assert stack, f"an end without a begin on {self.names[track]}"
                what, begin = stack.pop()
                self.slices.append((track, what, begin, ts - begin))
            elif kind == INSTANT:
                self.slices.append((track, name, ts, 0))
            else:
                self.counters.setdefault(track, []).append(struct.unpack("<d", event[44][0])[0])
            for number in (47, 48):
                for ident in (int.from_bytes(i, "little") for i in event.get(number, [])):
                    self.flows += ident in self._flows
                    self._flows[ident] = self._flows.get(ident, 0) + 1
                    if number == 48:
                        del self._flows[ident]
        for track, stack in stacks.items():
            self.slices += [(track, what, begin, -1) for what, begin in stack]
