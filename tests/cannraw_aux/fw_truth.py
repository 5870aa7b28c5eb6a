# SPDX-License-Identifier: BSD-2-Clause
"""What a reader of a generated FRAMEWORK/ must find."""

from __future__ import annotations

import json
from typing import Iterator, Optional, TextIO

from fw_clock import Clock
from fw_extras import BLOCK_FREE, CACHING, FREE, MALLOC, Event, Frame
from fw_files import stream_of
from fw_job import Launch, Loop, Op

Tree = tuple[list[Op], list[Optional[int]], dict[int, int]]


def name_of(name: bytes) -> dict[str, str]:
    """A name as text, and as bytes where text cannot hold it."""
    try:
        return {"name": name.decode("utf-8")}
    except UnicodeDecodeError:
        return {"name": name.decode("utf-8", "replace"), "name_hex": name.hex()}


def tree_of(ops: list[Op], clock: Clock) -> Tree:
    """Operators by start, outer first; the index of each one's parent; the index of each by identity."""
    order = sorted((op for op in ops if not op.mstx), key=lambda op: (clock.value(op.start), -clock.value(op.end)))
    parents: list[Optional[int]] = []
    stacks: dict[int, list[int]] = {}
    for number, op in enumerate(order):
        stack = stacks.setdefault(op.tid, [])
        while stack and clock.value(order[stack[-1]].end) < clock.value(op.end):
            stack.pop()
        parents.append(stack[-1] if stack else None)
        stack.append(number)
    return order, parents, {id(op): number for number, op in enumerate(order)}


class Innermost:
    """Which operator of a thread holds a moment."""

    def __init__(self, tree: Tree) -> None:
        self.ops, self.parents, _ = tree
        self.threads: dict[int, list[int]] = {}
        for number, op in enumerate(self.ops):
            self.threads.setdefault(op.tid, []).append(number)

    def at(self, tid: int, when: int) -> Optional[int]:
        """The deepest one that holds the moment, found from the last that began before it."""
        blocks = self.threads.get(tid, [])
        low, high = 0, len(blocks)
        while low < high:
            middle = (low + high) // 2
            if self.ops[blocks[middle]].start <= when:
                low = middle + 1
            else:
                high = middle
        number = blocks[low - 1] if low else None
        while number is not None and self.ops[number].end < when:
            number = self.parents[number]
        return number


class FrameworkTruth:
    """Writes the lines, one kind after the other."""

    def __init__(self, file: TextIO, clock: Clock, loop: Loop, pid: int) -> None:
        self.file, self.clock, self.loop, self.pid = file, clock, loop, pid
        self.counts: dict[str, int] = {}
        self.tree = tree_of(loop.ops, clock)
        self.inner = Innermost(self.tree)
        self.dequeued: list[tuple[int, int, int, int]] = []
        self.owner: dict[int, Optional[int]] = {}

    def put(self, kind: str, **more: object) -> None:
        """One line."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.file.write(json.dumps({"k": kind, **more}) + "\n")

    def span(self, start: int, end: Optional[int]) -> dict[str, Optional[int]]:
        """Both ends, in Unix ns rounded down and as recorded."""
        first, last = self.clock.value(start), None if end is None else self.clock.value(end)
        return {"start_ns": self.clock.floor(first), "end_ns": None if last is None else self.clock.floor(last),
                "start": first, "end": last}

    def moment(self, when: Optional[int]) -> Optional[int]:
        """One recorded moment in Unix ns."""
        return None if when is None else self.clock.floor(self.clock.value(when))

    def ops(self) -> None:
        """Steps, operators with parent and self time, user ranges, pairs of forward and backward."""
        for step in self.loop.steps:
            self.put("step", id=step.number, name=f"ProfilerStep#{step.number}", **self.span(step.start, step.end))
        order, parents, positions = self.tree
        spans = [self.span(op.start, op.end) for op in order]
        lasts = [int(item["end_ns"] or 0) - int(item["start_ns"] or 0) for item in spans]
        own = list(lasts)
        for number, parent in enumerate(parents):
            if parent is not None:
                own[parent] -= lasts[number]
        for number, op in enumerate(order):
            self.put("op", i=number, **name_of(op.name), **spans[number], dur_ns=lasts[number], self_ns=own[number],
                     tid=op.tid, pid=self.pid, parent=parents[number], sequence=op.sequence, forward=op.forward,
                     scope=op.scope, shapes=op.shapes, dtypes=op.dtypes, stack=op.stack, modules=op.modules,
                     tensors=op.tensors, extra=op.extra)
        for op in self.loop.ops:
            if op.mstx:
                self.put("mstx", **name_of(op.name), **self.span(op.start, op.end), tid=op.tid)
        for sequence, forward, backward in self.loop.pairs:
            self.put("fwdbwd", sequence=sequence, forward=positions[id(forward)], backward=positions[id(backward)],
                     flow=forward.tid != backward.tid)

    def queue(self) -> None:
        """Both ends of the task queue; an operator is that of the enqueue."""
        for mark in self.loop.marks:
            if mark.dequeue:
                self.dequeued.append((mark.tid, mark.start, mark.end, mark.correlation))
            else:
                self.owner[mark.correlation] = self.inner.at(mark.tid, mark.start)
            self.put("dequeue" if mark.dequeue else "enqueue", correlation=mark.correlation, name=mark.name,
                     tid=mark.tid, **self.span(mark.start, mark.end), op=self.owner[mark.correlation])
        self.dequeued.sort()

    def inside(self, kind: str, spans: list[Launch]) -> None:
        """Which task of the queue and which operator each call of the runtime belongs to."""
        holders = iter(self.dequeued)
        holder = next(holders, None)
        for tid, begin, end in sorted(spans):
            while holder and (holder[0] < tid or holder[0] == tid and holder[2] < begin):
                holder = next(holders, None)
            correlation = holder[3] if holder and holder[0] == tid and holder[1] <= begin else None
            op = self.owner[correlation] if correlation is not None else self.inner.at(tid, begin)
            self.put(kind, tid=tid, begin_ns=begin, end_ns=end, correlation=correlation, op=op)

    def memory(self, events: list[Event], device: int) -> None:
        """Rows of memory_record and of operator_memory, in bytes and ns."""
        order, parents, _ = self.tree
        kinds = {MALLOC: "malloc", FREE: "free", BLOCK_FREE: "block_free"}
        ends: dict[int, dict[int, Event]] = {}
        for event in events:
            ends.setdefault(id(event.block), {})[event.kind] = event
            self.put("memory_record", component="PTA" if event.block.component == CACHING else "WORKSPACE",
                     ns=self.moment(event.when), event=kinds[event.kind], totalAllocated=event.allocated,
                     totalReserved=event.reserved, totalActive=event.active, streamPtr=stream_of(event.block.component),
                     deviceId=device)
        for event in events:
            if event.kind != MALLOC:
                continue
            block = event.block
            within = self.inner.at(block.tid, event.when)
            if within is not None and order[within].name == b"empty_tensor":
                within = parents[within]
            free = ends[id(block)].get(FREE)
            start, end, active = self.moment(event.when), self.moment(block.free), self.moment(block.block_free)
            self.put("operator_memory", op=within, **name_of(order[within].name if within is not None else b""),
                     component="PTA" if block.component == CACHING else "WORKSPACE", size=block.size,
                     allocationTime=start, releaseTime=end, activeReleaseTime=active,
                     duration=None if end is None or start is None else end - start,
                     activeDuration=None if active is None or start is None else active - start,
                     allocationTotalAllocated=event.allocated, allocationTotalReserved=event.reserved,
                     allocationTotalActive=event.active, releaseTotalAllocated=free.allocated if free else None,
                     releaseTotalReserved=free.reserved if free else None,
                     releaseTotalActive=free.active if free else None, streamPtr=stream_of(block.component),
                     deviceId=device)

    def python(self, frames: list[Frame]) -> None:
        """Frames with their parents; module numbers count each class by first appearance."""
        seen: dict[str, dict[bytes, int]] = {}
        for number, frame in enumerate(frames):
            extra: dict[str, object] = {}
            if frame.module:
                module_rows = seen.setdefault(frame.module, {})
                extra = {"module": f"nn.Module: {frame.module}_{module_rows.setdefault(frame.name, len(module_rows))}"}
            self.put("frame", i=number, **name_of(frame.name), **self.span(frame.start, frame.end), tid=frame.tid,
                     parent=frame.parent, c_call=frame.c_call, **extra)

    def collections(self, spans: list[tuple[int, int]]) -> None:
        """Runs of the garbage collector."""
        for start, end in spans:
            self.put("gc", pid=self.pid, **self.span(start, end))

    def params(self, items: list[tuple[int, str, str]]) -> None:
        """Parameters, as recorded."""
        for key, module, optimizer in items:
            self.put("param", rule="raw", key=key, module=module, optimizer=optimizer)

    def finish(self) -> None:
        """The last line."""
        self.file.write(json.dumps({"k": "end", "counts": self.counts}) + "\n")


def lines(path: str) -> Iterator[dict]:
    """A truth file's objects."""
    with open(path, encoding="utf-8") as file:
        for text in file:
            yield json.loads(text)
