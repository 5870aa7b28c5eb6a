# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of Debian, ready to boot: fetched once into a cache outside of the tree.

A kernel's folder holds `kernel` (what QEMU boots), `btf` (its own types, raw), `release`, `base.cpio` (the
first file system, with busybox and what it takes to reach the share) and `headers` (to build modules with).
"""

from __future__ import annotations

import fcntl
import lzma
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools/cross"))

import cpio  # noqa: E402
import debian  # noqa: E402

MODULES = ("virtio_pci", "9pnet_virtio", "9p")
MODULE_DIRS = ("drivers/virtio", "net/9p", "fs/9p", "fs/netfs", "fs/fscache")
BTF_MAGIC = bytes.fromhex("9feb010018000000")


@dataclass
class Kernel:
    """One line of kernels.tsv, and where it is once it was fetched."""

    name: str
    arch: str
    metapackage: str
    suites: tuple[str, ...]
    sets: str
    lacks: frozenset[str]
    directory: Path = Path()

    @property
    def label(self) -> str:
        """What tables call it."""
        return f"{self.name} {'x86-64' if self.arch == 'amd64' else self.arch}"

    @property
    def release(self) -> str:
        """As `uname -r` has it."""
        return (self.directory / "release").read_text(encoding="utf-8").strip()


def listed() -> list[Kernel]:
    """All of kernels.tsv."""
    found = []
    for line in (HERE / "kernels.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, arch, metapackage, suites, sets, lacks = line.split("\t")
            found.append(Kernel(name, arch, metapackage, tuple(suites.split(",")), sets,
                                frozenset(lacks.split(",")) - {"-"}))
    return found


def fetch(kernel: Kernel, cache: Path) -> None:
    """Fills KERNEL.directory from the cache or from the archive. Raises debian.Unavailable."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{kernel.name}-{kernel.arch}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _fetch(kernel, cache)


def _fetch(kernel: Kernel, cache: Path) -> None:
    archive = debian.Archive(cache, kernel.arch, kernel.suites)
    reasons = []
    try:
        archive.update()
        choices = archive.depends(kernel.metapackage)
    except debian.Unavailable as reason:
        # Without a network the kernel of another day serves.
        choices, reasons = [], [str(reason)]
    for version, names in choices:
        image = next((name for name in names if name.startswith("linux-image-")), None)
        if not image:
            continue
        directory = cache / f"{kernel.name}-{kernel.arch}-{version}"
        try:
            if not (directory / "complete").exists():
                _fill(archive, image, version, directory)
            kernel.directory = directory
            return
        except debian.Unavailable as reason:
            reasons.append(str(reason))
    for directory in sorted(cache.glob(f"{kernel.name}-{kernel.arch}-*/complete"), reverse=True):
        kernel.directory = directory.parent
        return
    raise debian.Unavailable("; ".join(reasons) or f"no version of {kernel.metapackage} is listed")


def _fill(archive: debian.Archive, image: str, version: str, directory: Path) -> None:
    """Fetches one version into DIRECTORY: all of it or nothing."""
    work = directory.with_name(directory.name + ".part")
    shutil.rmtree(work, ignore_errors=True)
    try:
        _fill_part(archive, image, version, work)
        shutil.rmtree(directory, ignore_errors=True)
        work.rename(directory)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fill_part(archive: debian.Archive, image: str, version: str, work: Path) -> None:
    release = image.removeprefix("linux-image-").removesuffix("-unsigned")
    names = [f"{image}={version}", f"linux-headers-{release}={version}"]
    package, headers = _pair(archive.download(names, work / "deb"))
    tools = debian.Archive(cache_of(archive), archive.arch, ("bookworm",))
    tools.update()
    busybox = tools.download(["busybox-static"], work / "deb")[0]
    root = work / "root"
    _unpack_some(package, root)
    modules = next(iter(sorted(root.glob("**/lib/modules/*/kernel"))), None)
    if modules is None:
        raise debian.Unavailable(f"{image}: has no modules")
    _kernel_file(next(iter(root.glob("boot/vmlinuz-*"))), archive.arch, work)
    debian.unpack(busybox, root / "busybox")
    _base(work, modules, next(root.glob("busybox/**/bin/busybox")))
    _headers(archive, headers, release, version, work)
    (work / "release").write_text(release + "\n", encoding="utf-8")
    shutil.rmtree(root)
    shutil.rmtree(work / "deb")
    (work / "complete").touch()


def cache_of(archive: debian.Archive) -> Path:
    """The cache that ARCHIVE keeps its lists in."""
    return archive.root.parents[1]


def _pair(files: list[Path]) -> tuple[Path, Path]:
    """(image, headers)"""
    headers = next(file for file in files if file.name.startswith("linux-headers"))
    return next(file for file in files if file != headers), headers


def _unpack_some(package: Path, root: Path) -> None:
    """The kernel and a few folders of modules: not the 400 MB of all."""
    root.mkdir(parents=True)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as archive:
        wanted = ["./boot/vmlinuz-*", *(f"*/kernel/{folder}/*" for folder in MODULE_DIRS)]
        # A folder that this version has not makes tar complain: what is needed is looked for afterwards.
        subprocess.run(["tar", "-x", "-C", str(root), "--wildcards", *wanted], stdin=archive.stdout,
                       stderr=subprocess.DEVNULL, check=False)


def _kernel_file(vmlinuz: Path, arch: str, work: Path) -> None:
    data = vmlinuz.read_bytes()
    if arch == "amd64":
        data = decompressed(data)
    (work / "kernel").write_bytes(data)
    types = raw_btf(data)
    if types:
        (work / "btf").write_bytes(types)


def decompressed(bzimage: bytes) -> bytes:
    """The ELF file in an x86 bzImage, which QEMU boots without running the
    guest's decompressor (boot protocol 2.08)."""
    sectors = bzimage[0x1F1] or 4
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = bzimage[start:start + length]
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        # The last four bytes are the size, not of the stream.
        return subprocess.run(["zstd", "-dc"], input=payload[:-4], capture_output=True, check=True).stdout
    raise debian.Unavailable("the kernel is compressed in an unknown way")


def raw_btf(image: bytes) -> bytes:
    """The longest thing in IMAGE that is BTF: header, types and
    strings back to back; b'' if there is none."""
    best, at = b"", image.find(BTF_MAGIC)
    while at >= 0:
        if at + 24 <= len(image):
            type_off, type_len, str_off, str_len = struct.unpack_from("<IIII", image, at + 8)
            end = at + 24 + str_off + str_len
            if (type_off == 0 and str_off == type_len and str_len and end <= len(image)
                    and not image[at + 24 + str_off] and not image[end - 1] and end - at > len(best)):
                best = image[at:end]
        at = image.find(BTF_MAGIC, at + 8)
    return best


def _base(work: Path, modules: Path, busybox: Path) -> None:
    """The first file system but for init: busybox, and the modules
    without which the share cannot be mounted."""
    order: list[str] = []
    files: dict[str, bytes] = {}
    present = {module.name.split(".ko")[0].replace("-", "_"): module for module in modules.glob("**/*.ko*")}

    def need(name: str) -> None:
        path = present.get(name.replace("-", "_"))
        if path is None or name in order:
            return  # built in, or done
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        for field in data.split(b"\0"):
            if field.startswith(b"depends="):
                for other in field[len(b"depends="):].decode().split(","):
                    if other:
                        need(other)
        order.append(name)
        files[f"mods/{name}.ko"] = data

    for name in MODULES:
        need(name)
    out = cpio.Writer()
    for folder in ("bin", "dev", "mods"):
        out.folder(folder)
    out.device("dev/console", 5, 1)
    out.device("dev/null", 1, 3)
    out.file("bin/busybox", busybox.read_bytes(), 0o755)
    out.file("mods/order", "".join(f"{name}.ko\n" for name in order).encode())
    for name, data in files.items():
        out.file(name, data)
    (work / "base.cpio").write_bytes(out.finish())


def _headers(archive: debian.Archive, package: Path, release: str, version: str, work: Path) -> None:
    """Headers and build tools of the kernel, the tools always of the host's own processor."""
    directory = work / "headers"
    control = subprocess.run(["dpkg-deb", "-f", str(package), "Depends"], capture_output=True, text=True,
                             check=True).stdout
    names = [name.split()[0] for name in control.split(",")]
    common = [f"{name}={version}" for name in names if "common" in name]
    tools = next(name for name in names if name.startswith("linux-kbuild"))
    debian.unpack(package, directory)
    for file in archive.download(common, work / "deb"):
        debian.unpack(file, directory)
    host = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    if host != archive.arch:
        archive = debian.Archive(cache_of(archive), host, archive.suites)
        archive.update()
    for file in archive.download([f"{tools}={version}"], work / "deb"):
        debian.unpack(file, directory)
    top = directory / "usr/src" / f"linux-headers-{release}"
    makefile = top / "Makefile"
    # It names its other half by where the package would have put it: the folder moves when it is complete.
    text = makefile.read_text(encoding="utf-8").replace("/usr/src/",
                                                        "$(dir $(abspath $(lastword $(MAKEFILE_LIST))))../")
    makefile.write_text(text, encoding="utf-8")
    os.symlink(top.relative_to(work), work / "build")
