# SPDX-License-Identifier: BSD-2-Clause
"""The mock driver's modules for a kernel, built against its headers: as
a vendor builds them, and with types."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from kernels import Kernel
from payload import ROOT, host_arch

SOURCE = ROOT / "tools/npusim/kmod"
VERSION = b"version=ef377e9"  # of MODULE_VERSION: followed by the end of the text
COMPILER = "gcc-12"  # of Debian 12; older kernels want older ones, and do not need them


def build(kernel: Kernel) -> dict[str, Path]:
    """Folders with the .ko files: `plain` has no BTF, as where no vmlinux is at hand; `btf` has, where it can
    be had; of `refused` the kernel lets nobody probe ts_agent."""
    key = hashlib.sha256()
    for file in sorted(SOURCE.iterdir()):
        if file.is_file():
            key.update(file.name.encode() + file.read_bytes())
    directory = kernel.directory / f"driver-{key.hexdigest()[:16]}"
    if not (directory / "complete").exists():
        for old in kernel.directory.glob("driver-*"):
            shutil.rmtree(old)
        _build(kernel, directory)
    return {name: directory / name for name in ("plain", "btf", "refused") if (directory / name).is_dir()}


def _build(kernel: Kernel, directory: Path) -> None:
    work = directory / "work"
    shutil.copytree(SOURCE, work)
    prefix = "" if kernel.arch == host_arch() else {"amd64": "x86_64", "arm64": "aarch64"}[kernel.arch] + "-linux-gnu-"
    command = ["make", "-s", "-C", str(kernel.directory / "build"), f"M={work}",
               f"ARCH={'x86_64' if kernel.arch == 'amd64' else kernel.arch}", f"CC={prefix}{COMPILER}",
               f"CROSS_COMPILE={prefix}", "modules"]
    modules = _make(kernel, work, command)
    for module in modules:
        _strip(module, directory / "plain", prefix)
    # Types of modules refer to the kernel's own: since 5.11.
    if tuple(int(part) for part in kernel.name.split(".")) >= (5, 11) and (kernel.directory / "btf").exists():
        _with_types(modules, directory / "btf", kernel.directory / "btf", prefix)
    shutil.copytree(directory / "plain", directory / "refused")
    _make(kernel, work, [*command, "NPUSIM_AGENT=-DNPUSIM_NOKPROBE"])
    _strip(work / "ts_agent.ko", directory / "refused", prefix)
    shutil.rmtree(work)
    (directory / "complete").touch()


def _make(kernel: Kernel, work: Path, command: list[str]) -> list[Path]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    modules = sorted(work.glob("*.ko"))
    if done.returncode or not modules:
        raise RuntimeError(f"the mock driver does not build for {kernel.label}:\n{done.stderr[-4000:]}")
    return modules


def _strip(module: Path, directory: Path, prefix: str) -> None:
    directory.mkdir(exist_ok=True)
    subprocess.run([f"{prefix}objcopy", "--remove-section=.BTF", "--strip-debug", str(module),
                    str(directory / module.name)],
                   check=True)


def _with_types(modules: list[Path], directory: Path, base: Path, prefix: str) -> None:
    directory.mkdir()
    environment = {**os.environ, "LLVM_OBJCOPY": f"{prefix}objcopy"}
    for module in modules:
        copy = directory / module.name
        shutil.copy2(module, copy)
        sections = subprocess.run(["readelf", "-SW", str(copy)], capture_output=True, text=True, check=True).stdout
        if " .BTF " not in sections:
            subprocess.run(["pahole", "-J", "--btf_base", str(base), str(copy)], env=environment, check=True,
                           capture_output=True)
        subprocess.run([f"{prefix}objcopy", "--strip-debug", str(copy)], check=True)


def age(plain: Path, directory: Path, names: tuple[str, ...]) -> None:
    """Copies the modules of PLAIN to DIRECTORY; those of NAMES claim to be of another version there."""
    shutil.copytree(plain, directory)
    for name in names:
        data = (directory / f"{name}.ko").read_bytes()
        if data.count(VERSION) != 1:
            raise RuntimeError(f"{name} does not tell its version once")
        (directory / f"{name}.ko").write_bytes(data.replace(VERSION, VERSION[:-1] + b"8"))
