# SPDX-License-Identifier: BSD-2-Clause
"""What a guest gets to run: programs, and the libraries that they need, in a folder that it mounts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
INTERPRETERS = {"amd64": "lib64/ld-linux-x86-64.so.2", "arm64": "lib/ld-linux-aarch64.so.1"}


def host_arch() -> str:
    """This host's architecture, in Debian's words."""
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def build_folder(arch: str) -> Path:
    """Where make puts what it builds for ARCH."""
    return ROOT / "build" if arch == host_arch() else ROOT / "build" / arch


def make(arch: str, directory: Path) -> None:
    """Fills DIRECTORY: npuscope/ (program, libraries), Ascend/ (the simulated stack), jobs/, lib/."""
    build = build_folder(arch)
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "npuscope").mkdir(parents=True)
    for name in ("npuscope", "npuscope-device-worker", "libnpuscope_agent.so", "libnpuscope_mstx.so"):
        shutil.copy2(build / name, directory / "npuscope")
    shutil.copytree(build / "npusim/Ascend", directory / "Ascend", symlinks=True)
    if (build / "jobs").is_dir():
        shutil.copytree(build / "jobs", directory / "jobs", ignore=shutil.ignore_patterns("*.d"))
    _libraries(arch, directory)


def _search(arch: str) -> list[Path]:
    top = Path("/") if arch == host_arch() else build_folder(arch) / "sysroot"
    return [top / folder / TRIPLETS[arch] for folder in ("lib", "usr/lib")]


def _needed(path: Path) -> list[str]:
    text = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def _libraries(arch: str, directory: Path) -> None:
    """All that anything in DIRECTORY is linked with, flat in lib/, which every dynamic linker looks into."""
    lib = directory / "lib"
    lib.mkdir(exist_ok=True)
    own = {path.name for path in (directory / "Ascend").rglob("*.so*")}
    todo = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink() and _is_elf(path)
            and path.suffix != ".o"]
    done: set[str] = set()
    while todo:
        for name in _needed(todo.pop()):
            if name in done or name in own:
                continue
            done.add(name)
            found = next((folder / name for folder in _search(arch) if (folder / name).exists()), None)
            if not found:
                raise FileNotFoundError(f"{name} for {arch} is nowhere: make ARCH={arch}")
            shutil.copy2(found.resolve(), lib / name)
            todo.append(lib / name)
    interpreter = directory / INTERPRETERS[arch]
    interpreter.parent.mkdir(exist_ok=True)
    if not interpreter.exists():
        shutil.copy2(lib / interpreter.name, interpreter)


def _is_elf(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
