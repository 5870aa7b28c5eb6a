# SPDX-License-Identifier: BSD-2-Clause
"""Packages of another Debian suite or architecture, fetched and unpacked without touching the host's own.

An apt of its own (lists, cache, an empty status) is kept for each architecture; packages are verified with
the Debian archive's keys and only ever unpacked into a folder.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITES = ("bullseye", "bullseye-security", "bookworm", "bookworm-security")
FRESH_SECONDS = 24 * 3600  # how long lists of packages serve


class Unavailable(Exception):
    """A package that is listed nowhere, or listed and no longer there."""


def default_cache() -> Path:
    """Where packages and kernels are kept: NPUSCOPE_VM_CACHE, /var/cache for root, else the user's cache."""
    configured = os.environ.get("NPUSCOPE_VM_CACHE")
    if configured:
        return Path(configured)
    if os.geteuid() == 0:
        return Path("/var/cache/npuscope-vm")
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "npuscope-vm"


def mirrors() -> dict[str, str]:
    """Suite -> address, from the configuration of this host's apt. Raises Unavailable where it has none."""
    wanted = ("bookworm", "bookworm-security")
    found: dict[str, str] = {}
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)",
                            "Created-By: Packages"], capture_output=True, text=True, check=False).stdout
    for line in lines.splitlines():
        suite, _, address = line.partition(" ")
        if suite in wanted:
            found[suite] = address
    missing = [suite for suite in wanted if suite not in found]
    if missing:
        raise Unavailable(f"apt knows no address of {', '.join(missing)}: run apt-get update on a Debian 12")
    return found


class Archive:
    """Debian's packages for one architecture.

    SUITES_WANTED: which suites to look in; each set has lists of its own.
    """

    def __init__(self, cache: Path, arch: str, suites: tuple[str, ...] = SUITES) -> None:
        self.arch = arch
        self.suites = suites
        self.root = cache / "apt" / f"{arch}-{'-'.join(suites)}"
        self.config = self.root / "apt.conf"
        self.environment = {**os.environ, "APT_CONFIG": str(self.config), "LC_ALL": "C"}

    def update(self) -> None:
        """Fetches the lists, unless they are of today.

        Several kernels may need tools from one archive at once: one of them fetches.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._update()

    def _update(self) -> None:
        stamp = self.root / "updated"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < FRESH_SECONDS:
            return
        for part in ("lists/partial", "cache/archives/partial"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        sites = mirrors()
        lines = []
        for suite in self.suites:
            site = sites["bookworm-security" if suite.endswith("-security") else "bookworm"]
            lines.append(f"deb [arch={self.arch} signed-by={KEYRING}] {site} {suite} main\n")
        (self.root / "sources.list").write_text("".join(lines), encoding="utf-8")
        self.config.write_text(
            f'Dir::Etc::sourcelist "{self.root}/sources.list"; Dir::Etc::sourceparts "/dev/null";\n'
            f'Dir::State::lists "{self.root}/lists"; Dir::State::status "{self.root}/status";\n'
            f'Dir::Cache "{self.root}/cache"; APT::Architecture "{self.arch}"; APT::Architectures {{"{self.arch}";}};\n'
            'Acquire::Languages "none"; Acquire::Retries "3"; APT::Sandbox::User "root"; Debug::NoLocking "1";\n',
            encoding="utf-8")
        self._apt("apt-get", "-qq", "update")
        stamp.touch()

    def depends(self, package: str) -> list[tuple[str, list[str]]]:
        """(version, names it depends on) of PACKAGE, in the order that apt prefers them."""
        text = self._apt("apt-cache", "show", package)
        found = []
        for paragraph in text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in paragraph.splitlines()
                          if ": " in line and not line.startswith(" "))
            if fields.get("Package") == package:
                names = [name.split("|")[0].split()[0] for name in fields.get("Depends", "").split(",") if name.strip()]
                found.append((fields["Version"], names))
        return found

    def download(self, packages: list[str], folder: Path) -> list[Path]:
        """Each package as a file in FOLDER; `name=version` is understood. Raises Unavailable."""
        folder.mkdir(parents=True, exist_ok=True)
        before = set(folder.glob("*.deb"))
        try:
            self._apt("apt-get", "-qq", "download", *packages, cwd=folder)
        except Unavailable:
            for stray in set(folder.glob("*.deb")) - before:
                stray.unlink()
            raise
        return sorted(set(folder.glob("*.deb")) - before)

    def with_dependencies(self, packages: list[str]) -> list[Path]:
        """The files of PACKAGES and of all that they depend on, in apt's own cache."""
        self._apt("apt-get", "-qq", "--yes", "--no-install-recommends", "--download-only", "install", *packages)
        planned = self._apt("apt-get", "-qq", "--yes", "--no-install-recommends", "--print-uris", "--reinstall",
                            "install", *packages)
        if planned.strip():
            raise Unavailable(f"apt fetched less than it planned: {planned.splitlines()[0]}")
        return sorted((self.root / "cache" / "archives").glob("*.deb"))

    def _apt(self, *command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(command, env=self.environment, cwd=cwd, capture_output=True, text=True, check=False)
        if done.returncode:
            words = [line for line in done.stderr.splitlines() if line.startswith("E:")] or [done.stderr.strip()]
            raise Unavailable(f"{' '.join(command[:3])}: {words[0] if words else 'failed'}")
        return done.stdout


def unpack(package: Path, folder: Path) -> None:
    """The files of PACKAGE below the directory."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
