#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Put the files below a directory into one fuzzer input, or an input's files into a directory (archive.h)."""

from __future__ import annotations

import argparse
import struct
import sys
from pathlib import Path

MAGIC = b"NFZ"
HEAD = struct.Struct("<HI")


def pack(folder: Path, options: int) -> bytes:
    """The archive of all files below a folder, by name."""
    out = bytearray(MAGIC + bytes([options]))
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name, data = str(path.relative_to(folder)).encode(), path.read_bytes()
        out += HEAD.pack(len(name), len(data)) + name + data
    return bytes(out)


def unpack(data: bytes, folder: Path) -> None:
    """The archive's files, below a folder."""
    at = len(MAGIC) + 1
    while len(data) - at >= HEAD.size:
        name_size, size = HEAD.unpack_from(data, at)
        at += HEAD.size
        name, content = data[at:at + name_size], data[at + name_size:at + name_size + size]
        at += name_size + size
        path = folder / name.decode(errors="surrogateescape")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unpack", action="store_true")
    parser.add_argument("--options", type=int, default=0, help="bit 0: older generation, bit 1: gzip")
    parser.add_argument("archive", type=Path)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    if chosen.unpack:
        data = chosen.archive.read_bytes()
        if not data.startswith(MAGIC):
            print(f"{chosen.archive}: not a fuzzer input", file=sys.stderr)
            return 1
        unpack(data, chosen.folder)
    else:
        chosen.archive.write_bytes(pack(chosen.folder, chosen.options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
