#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make a captured session an input of the golden results: `pack_session.py SESSION OUT.tar.xz`.

What identifies the machine where it was captured is replaced: names of threads that are not the job's, the
kernel's version, ids of the host and of the boot, where its kernel was built. Paths become paths that no
machine has, of the same length, and build-ids those of no file: the analysis reads the files that stacks lead
to, and debug files by build-id, and what is installed where the test runs must not change its results. What
stays: the date, sizes of memory, names of devices and of the kernel's threads and functions, the [vdso]; and
what is behind the last whole chunk of a file.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import struct
import sys
import tarfile
import zlib
from pathlib import Path
from typing import Callable

CHUNK = struct.Struct("<IHHQIIII")
MAPS = 33  # NPS_CHUNK_MAPS
MAP = struct.Struct("<IBBHIIQQQQ24s")  # struct nps_map_record
STRING = struct.Struct("<BBHIQQ128s")
COMM = 65
OWN_THREADS = re.compile(rb"exe|loader|python3|np[su]|npusim|kworker|ksoftirqd|rcu_|migration|swapper")
PATHS = ((b"/usr/lib/x86_64-linux-gnu/", b"/job/lib/x86_64-linux-gnu/"), (b"/opt/", b"/job/"))
HOST = {"uid": "3538958389648580163", "kernel": "6.1.0", "boot_id": "00000000-0000-4000-8000-000000000000"}


def no_paths(data: bytes) -> bytes:
    """Of this machine. The length stays."""
    for here, nowhere in PATHS:
        data = data.replace(here, nowhere)
    return re.sub(rb"/nix/[^\0]*", lambda found: b"k" * len(found[0]), data)


def no_threads(_kind: int, data: bytes) -> bytes:
    """Of others than the job, by name."""
    out = b""
    for kind, flags, length, pid, ident, time, text in STRING.iter_unpack(data):
        if kind == COMM and not OWN_THREADS.match(text):
            text, length = b"other", 5
        out += STRING.pack(kind, flags, length, pid, ident, time, text)
    return out


def no_files(kind: int, data: bytes) -> bytes:
    """Of this machine: neither paths nor build-ids."""
    if kind != MAPS:
        return no_paths(data)
    out, at = b"", 0
    while at + MAP.size <= len(data):
        fields = MAP.unpack_from(data, at)
        out += MAP.pack(*fields[:-1],
                        bytes(byte ^ 0x5a for byte in fields[-1])) + no_paths(data[at + MAP.size:at + fields[0]])
        at += max(fields[0], MAP.size)
    return out


def chunks(data: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """The file with each chunk's payload changed, by its kind. What is behind the last whole one stays."""
    out, at = b"", 0
    while at + CHUNK.size <= len(data):
        magic, version, kind, number, length, _crc, cpu, pad = CHUNK.unpack_from(data, at)
        if at + CHUNK.size + length > len(data):
            break
        payload = change(kind, data[at + CHUNK.size:at + CHUNK.size + length])
        out += CHUNK.pack(magic, version, kind, number, len(payload), zlib.crc32(payload), cpu, pad) + payload
        at += CHUNK.size + length
    return out + data[at:]


def session_json(data: bytes) -> bytes:
    document = json.loads(no_paths(data))
    document["host"].update(HOST)
    return json.dumps(document, indent=1).encode()


def content(path: Path) -> bytes:
    """Of a file of the session."""
    data = path.read_bytes()
    if path.name == "session.json":
        return session_json(data)
    if path.name == "info.json" or path.name.startswith("info.json."):
        return re.sub(rb'"OS":"[^"]*"', b'"OS":"Linux-6.1.0"', no_paths(data))
    if path.name == "strings.nps":
        return chunks(data, no_threads)
    if path.name == "python.nps":
        return chunks(data, lambda _kind, payload: no_paths(payload))
    if path.name == "stacks.nps":
        return chunks(data, no_files)
    return data


def main() -> int:
    """Entry point."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    session, out = Path(sys.argv[1]), io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in session.rglob("*") if path.is_file()):
            data = content(path)
            info = tarfile.TarInfo(f"{session.name}/{path.relative_to(session)}")
            info.size, info.mode = len(data), 0o640
            tar.addfile(info, io.BytesIO(data))
    Path(sys.argv[2]).write_bytes(lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    return 0


if __name__ == "__main__":
    sys.exit(main())
