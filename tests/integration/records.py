# SPDX-License-Identifier: BSD-2-Clause
"""Files of a session, decoded without a line of npuscope's.

Chunks, and the records of events.nps by the names of kheaders/event.h.
"""

from __future__ import annotations

import struct
import zlib
from operator import attrgetter
from pathlib import Path
from typing import Any, Iterator

VERSION = 2
MAGIC = 0x4B43504E
CHUNK = struct.Struct("<IHHQIIII")
CHUNK_EVENTS, CHUNK_STRINGS, CHUNK_CLOCKS, CHUNK_DEVICE_CLOCKS, CHUNK_LOSS = 1, 2, 3, 4, 5
EVENT = struct.Struct("<BBHIIi2Q32s")
STRING = struct.Struct("<BBHIQQ128s")
API, SQE, MARK, SYSCALL, SCHED, PROC, SYSCALL_SUM, LOCK, FAULT, IO, IRQ = range(1, 12)
TENSOR, DRIVER, DRIVER_TASK, DRIVER_DONE, DRIVER_DMA, CQE, PYSTACK, INPUT, MEMORY = range(13, 22)
FORK, EXEC, EXIT = 1, 2, 3
FAULT_SUM, FAULT_MAJOR = 0, 1

# Members of each kind's struct, in their order: NAME:FORMAT; :FORMAT is reserved.
CALL = "slot:4Q"
HEAD = "type:B flags:B blocks:H stream:H task:H rest:8s"  # struct nps_sqe_head
BODIES = {
    API: CALL,
    MARK: CALL,
    SQE: f"device:H index:H count:H :H {HEAD} queue:I :I",
    CQE: "device:H index:H count:H :H stream:H task:H error_code:I error_type:B sqe_type:B queue:H queue_head:H "
         "flags:H counter:Q",
    SYSCALL: "arg:3Q result:q",
    SYSCALL_SUM: "count:I failed:I total:Q shortest:I longest:I bytes:Q",
    LOCK: "address:Q waker:I value:I word:I owner:I users:I mutex_kind:H op_flags:H",
    (FAULT, FAULT_SUM): "minor:Q major:Q :2Q",
    (FAULT, FAULT_MAJOR): "address:Q :3Q",
    IO: "bytes:Q device:I call:H :H sector:Q op_flags:I :I",
    SCHED: "off:Q runnable:Q cpu:I next:I state:I prio:H :H",
    (PROC, FORK): "child:Q cpu_ns:Q comm:16s",
    (PROC, EXEC): ":Q cpu_ns:Q comm:16s",
    (PROC, EXIT): "exit_code:q cpu_ns:Q comm:16s",
    IRQ: "what:I cpu:I :3Q",
    TENSOR: "size:8I",
    DRIVER: "part:8s command:I fd:I rdev:I node:B :B device:H bytes:Q",
    DRIVER_TASK: f"device:H tsid:H queue:I {HEAD} position:I sqe_size:I",
    DRIVER_DONE: "device:H tsid:H queue:I flags:H queue_head:H stream:H task:H rest:8s :Q",
    DRIVER_DMA: "device:I direction:I source:Q destination:Q bytes:Q",
    PYSTACK: "stack:Q :3Q",
    INPUT: "size:8I",
    MEMORY: "stream:Q low:4I high:4h",
}


def _members(layout: str) -> dict[str, tuple[struct.Struct, int]]:
    """Where each member is, and how it is written."""
    found, at = {}, 0
    for name, form in (member.split(":") for member in layout.split()):
        if name:
            found[name] = struct.Struct("<" + form), at
        at += struct.calcsize("<" + form)
    assert at == 32, f"{layout} has {at} bytes"
    return found


MEMBERS = {kind: _members(layout) for kind, layout in BODIES.items()}
MEMBERS[CQE]["head"] = struct.Struct("<24s"), 8  # the CQE as it was collected


class Body:
    """What a record has behind its header: the struct of its kind."""

    __slots__ = ("_members", "_data")

    def __init__(self, members: dict[str, tuple[struct.Struct, int]], data: bytes) -> None:
        self._members, self._data = members, data

    def __getattr__(self, name: str) -> Any:
        """A number, bytes, or several numbers."""
        if name not in self._members:
            raise AttributeError(f"{name}: it has {' '.join(self._members)}")
        layout, at = self._members[name]
        values = layout.unpack_from(self._data, at)
        return values[0] if len(values) == 1 else values

    def __repr__(self) -> str:
        return " ".join(f"{name}={getattr(self, name)!r}" for name in self._members)


class Event:
    """struct nps_event"""

    __slots__ = ("kind", "flags", "probe", "pid", "tid", "ret", "start", "dur", "_data")
    nr = operation = what = number = call_type = traced = property(attrgetter("probe"))
    waker = parent = property(attrgetter("ret"))
    born = property(attrgetter("dur"))

    def __init__(self, fields: tuple[Any, ...]) -> None:
        self.kind, self.flags, self.probe, self.pid, self.tid, self.ret, self.start, self.dur, self._data = fields

    @property
    def body(self) -> Body:
        return Body(MEMBERS.get((self.kind, self.probe)) or MEMBERS[self.kind], self._data)

    @property
    def end(self) -> int:
        return self.start + self.dur


def chunk(kind: int, number: int, payload: bytes) -> bytes:
    """A chunk as it is in a file, as its NUMBERth."""
    return CHUNK.pack(MAGIC, VERSION, kind, number, len(payload), zlib.crc32(payload), 0, 0) + payload


def chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    """(type, payload) of every good chunk."""
    data = path.read_bytes()
    at = seq = 0
    while at + CHUNK.size <= len(data):
        magic, version, kind, number, length, crc, _cpu, _pad = CHUNK.unpack_from(data, at)
        payload = data[at + CHUNK.size:at + CHUNK.size + length]
        if (magic, version, number) != (MAGIC, VERSION, seq) or (len(payload), zlib.crc32(payload)) != (length, crc):
            return
        yield kind, payload
        at += CHUNK.size + length
        seq += 1
