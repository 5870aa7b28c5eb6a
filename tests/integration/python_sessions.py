# SPDX-License-Identifier: BSD-2-Clause
"""python.nps of a session, decoded without npuscope."""

import struct
from pathlib import Path
from typing import Optional

from records import chunks

STACK = struct.Struct("<BBHIQQ")  # struct nps_py_stack, without its frames
FRAME = struct.Struct("<QIi")
CODE = struct.Struct("<IIQIIHBBHHII")  # struct nps_py_code_record
STACKS, CODES = 64, 65
CUT, MOST_FRAMES = 1, 64
TEXT_MOST = 1024  # bytes of a name

Frames = list[tuple[str, Optional[int], str]]


class Code:
    def __init__(self, first: int, file: str, name: str, table: bytes) -> None:
        self.file, self.name = file, name
        # The interpreter decodes the table: it needs a code object that has it.
        code = (lambda: 0).__code__.replace(co_firstlineno=first, co_linetable=table)
        self.lines = list(code.co_lines())

    def line(self, at: int) -> Optional[int]:
        return next((line for begin, end, line in self.lines if begin <= at < end), None)


class Stacks:
    """python.nps"""

    def __init__(self, session: Path) -> None:
        self.codes: dict[tuple[int, int, int], Code] = {}
        self.stacks: dict[int, Frames] = {}
        self.flags: dict[int, int] = {}
        self.missing = self.cut = 0
        raw = []
        for kind, payload in chunks(session / "python.nps"):
            at = 0
            while at < len(payload):
                if kind == CODES:
                    at += self.add_code(payload, at)
                else:
                    _kind, flags, n, pid, stack, _time = STACK.unpack_from(payload, at)
                    at += STACK.size
                    raw.append((pid, stack, flags, [FRAME.unpack_from(payload, at + i * FRAME.size)
                                                    for i in range(n)]))
                    at += n * FRAME.size
        for pid, stack, flags, frames in raw:
            self.flags[stack] = flags
            self.stacks[stack] = [self.frame(pid, *frame) for frame in frames]

    def add_code(self, payload: bytes, at: int) -> int:
        size, pid, code, mark, first, _version, flags, _r, file_len, name_len, lines, _r2 = CODE.unpack_from(
            payload, at)
        texts = payload[at + CODE.size:at + size]
        file, name, table = texts[:file_len], texts[file_len:][:name_len], texts[file_len + name_len:][:lines]
        self.cut += flags & 1
        self.codes[pid, code, mark] = Code(first, file.decode(), name.decode(), table)
        return size

    def frame(self, pid: int, code: int, mark: int, at: int) -> tuple[str, Optional[int], str]:
        found = self.codes.get((pid, code, mark))
        if not found:
            self.missing += 1
            return "?", None, "?"
        return found.file, found.line(at), found.name
