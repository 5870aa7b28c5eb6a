# SPDX-License-Identifier: BSD-2-Clause
"""The records of FRAMEWORK/: type, length, fixed part, then fields with id and length of their own."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Callable, Iterable, TypeVar

from fw_clock import Clock
from fw_extras import C_CALL, C_RETURN, CALL, MALLOC, RETURN, STREAM, Event, Frame
from fw_job import Mark, Op

OP_RANGE, OP_MARK, MEMORY, TRACER_HASH, PARAMS = 1, 2, 3, 4, 5
UNKNOWN_TYPE, UNKNOWN_FIELD = 77, 99
BURST = 48                  # records that a thread hands over at a time
NPU = 20

Item = TypeVar("Item")


def field(number: int, data: bytes) -> bytes:
    return struct.pack("<HI", number, len(data)) + data


def record(kind: int, fixed: bytes, fields: Iterable[tuple[int, bytes]] = ()) -> bytes:
    body = fixed + b"".join(field(number, data) for number, data in fields)
    return struct.pack("<HI", kind, len(body)) + body


def bursts(items: Iterable[Item], thread: Callable[[Item], int], when: Callable[[Item], int]) -> list[Item]:
    """The order of a file that threads fill in turns: sorted within each, not between them."""
    open_blocks: dict[int, list[Item]] = {}
    blocks: list[list[Item]] = []
    for item in sorted(items, key=when):
        block = open_blocks.setdefault(thread(item), [])
        if not block:
            blocks.append(block)
        block.append(item)
        if len(block) == BURST:
            open_blocks[thread(item)] = []
    blocks.sort(key=lambda block: when(block[-1]))
    return [item for block in blocks for item in block]


class Folder:
    """FRAMEWORK/ of one result."""

    def __init__(self, path: Path, pid: int, clock: Clock, nasty: bool) -> None:
        self.path, self.pid, self.clock, self.nasty = path, pid, clock, nasty
        path.mkdir(parents=True)

    def _write(self, name: str, records: list[bytes], typed: bool = True) -> None:
        if not records:
            return
        data = b"".join(records)
        if self.nasty:
            if typed:
                middle = sum(len(item) for item in records[:len(records) // 2])
                data = data[:middle] + record(UNKNOWN_TYPE, b"\xff" * 13) + data[middle:]
            # the job died while it wrote one more
            data += records[-1][:len(records[-1]) // 2]
        (self.path / name).write_bytes(data)

    def op_range(self, ops: list[Op]) -> None:
        value, out = self.clock.value, []
        for op in bursts(ops, lambda op: op.tid, lambda op: op.end):
            fixed = struct.pack("<qqqQQQQBB", value(op.start), value(op.end), op.sequence, self.pid, op.tid, op.tid,
                                op.forward, op.scope, 0)
            texts = ((3, op.dtypes), (4, op.shapes), (5, op.tensors), (8, ";".join(op.stack)),
                     (9, ";".join(op.modules)), (10, op.extra))
            fields = [(2, op.name)] + [(number, text.encode()) for number, text in texts if text]
            if self.nasty and len(out) % 5 == 0:
                fields.insert(1, (UNKNOWN_FIELD, b"from a later version"))
            if self.nasty and len(out) % 7 == 0 and not op.extra:
                fields.append((10, b""))
            out.append(record(OP_RANGE, fixed, fields))
        self._write("torch.op_range", out)

    def op_mark(self, marks: list[Mark]) -> None:
        value, events = self.clock.value, []
        for mark in marks:
            first = 2 if mark.dequeue else 0
            for category, when in ((first, mark.start), (first + 1, mark.end)):
                fixed = struct.pack("<qQQQQ", value(when), category, mark.correlation, mark.tid, self.pid)
                events.append((when, mark.tid, record(OP_MARK, fixed, [(1, mark.name.encode())])))
        self._write("torch.op_mark", [item[2] for item in bursts(events, lambda e: e[1], lambda e: e[0])])

    def memory_usage(self, events: list[Event], device: int) -> None:
        out = []
        for event in events:
            block = event.block
            size = block.size if event.kind == MALLOC else -block.size
            out.append(record(MEMORY, struct.pack(
                "<7qbbBBBQQ", block.address, self.clock.value(event.when), size, event.allocated, event.reserved,
                event.active, stream_of(block.component), NPU, device, block.component, event.kind, 0, block.tid,
                self.pid)))
        self._write("torch.memory_usage", out)

    def python(self, frames: list[Frame]) -> None:
        keys: dict[bytes, int] = {}
        calls: list[tuple[int, int, bytes]] = []
        for number, frame in enumerate(frames):
            key = keys.setdefault(frame.name, 0x7000_0000_0000 + len(keys) * 64)
            for when, tag, order in ((frame.start, C_CALL if frame.c_call else CALL, number),
                                     (frame.end, C_RETURN if frame.c_call else RETURN, -number)):
                if when is not None:
                    calls.append((when, order, struct.pack("<QQQQB", self.clock.value(when), frame.tid, self.pid, key,
                                                           tag)))
        calls.sort(key=lambda item: (item[0], item[1]))
        self._write("torch.python_tracer_func", [item[2] for item in calls], typed=False)
        self._write("torch.python_tracer_hash", [record(TRACER_HASH, struct.pack("<Q", key), [(1, name)])
                                                 for name, key in keys.items()])

    def gc_record(self, spans: list[tuple[int, int]]) -> None:
        value = self.clock.value
        self._write("torch.gc_record", [struct.pack("<QQQ", self.pid, value(start), value(end))
                                        for start, end in spans], typed=False)

    def params(self, items: list[tuple[int, str, str]]) -> None:
        self._write("torch.param_tensor_info", [
            record(PARAMS, struct.pack("<Q", key), [(number, text.encode()) for number, text in
                                                    ((1, module), (2, optimizer)) if text])
            for key, module, optimizer in items])


def stream_of(component: int) -> int:
    """The stream pointer of an allocator's events; the workspace's are without."""
    return 0 if component else STREAM
