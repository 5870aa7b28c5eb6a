# SPDX-License-Identifier: BSD-2-Clause
"""Archives that the kernel takes as its first file system (newc,
Documentation/driver-api/early-userspace)."""

from __future__ import annotations

import stat


class Writer:
    """Collects entries; finish() gives the archive."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.inode = 0

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """A regular file."""
        self._entry(name, stat.S_IFREG | mode, data)

    def folder(self, name: str) -> None:
        """A folder."""
        self._entry(name, stat.S_IFDIR | 0o755)

    def device(self, name: str, major: int, minor: int) -> None:
        """A character device."""
        self._entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def _entry(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self.inode += 1
        encoded = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0)
        entry = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.parts.append(_padded(entry))
        self.parts.append(_padded(data))

    def finish(self) -> bytes:
        """The archive with all entries."""
        self._entry("TRAILER!!!", 0)
        return b"".join(self.parts)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
