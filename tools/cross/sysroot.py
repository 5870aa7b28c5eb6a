#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unpacks Debian's headers and libraries for another processor into a folder to compile against.

Usage: sysroot.py ARCH FOLDER (as Debian names it: arm64). The host's own packages are not touched.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import debian  # noqa: E402

PACKAGES = ("libc6-dev libbpf-dev libelf-dev libdw-dev libsqlite3-dev libcjson-dev zlib1g-dev libcapstone-dev "
            "libnanopb-dev libcmocka-dev libstdc++-12-dev").split()


def main() -> int:
    """Entry point."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    arch, folder = sys.argv[1], Path(sys.argv[2])
    cache = debian.default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with open(cache / f"sysroot-{arch}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            archive = debian.Archive(cache, arch, ("bookworm", "bookworm-security"))
            archive.update()
            packages = archive.with_dependencies(PACKAGES)
            shutil.rmtree(folder, ignore_errors=True)
            for package in packages:
                debian.unpack(package, folder)
        mend_links(folder)
    except (debian.Unavailable, OSError, subprocess.CalledProcessError) as error:
        print(f"sysroot: no {arch} packages: {error}: check the network and the sources of apt", file=sys.stderr)
        return 1
    return 0


def mend_links(folder: Path) -> None:
    """Absolute links would lead to the host's own files."""
    for path in folder.rglob("*"):
        if path.is_symlink() and str(path.readlink()).startswith("/"):
            target = folder / str(path.readlink()).lstrip("/")
            path.unlink()
            if target.exists():
                path.symlink_to("../" * (len(path.relative_to(folder).parts) - 1) + str(target.relative_to(folder)))


if __name__ == "__main__":
    sys.exit(main())
