# SPDX-License-Identifier: BSD-2-Clause
"""A result folder: its layout, which files it has, which generation wrote them."""

from __future__ import annotations

import copy
import csv
import json
import re
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any, Iterator, Optional

from report import Skip
from tracemodel import Trace, scan

DB_NAME = re.compile(r"ascend_(?:pytorch|mindspore)_profiler(_(\d{1,16}))?\.db")
INFO_NAME = re.compile(r"profiler_info(_(\d{1,5}))?\.json")
RESULT_NAME = re.compile(r".+_(\d+)_\d{17}_ascend_(?:pt|ms)")
OUTPUT = "ASCEND_PROFILER_OUTPUT"
OWN_TABLES = "NPUSCOPE_"

# what msprof leaves in a PROF_* folder
PROF_OUTPUT = "mindstudio_profiler_output"
PROF_NAME = re.compile(r"PROF_\d+_\d+_[0-9a-zA-Z]+")
PROF_DB = re.compile(r"msprof_(\d{14})\.db")
PROF_TRACE = re.compile(r"msprof(_slice_(\d{1,2}))?_(\d{14})\.json")
PROF_CSV = re.compile(r"(.+?)(_slice_(\d+))?_(\d{14})\.csv")
# columns of op_summary that kernel_details calls otherwise
AS_KERNEL = {"Op Name": "Name", "OP Type": "Type", "Task Type": "Accelerator Core",
             "Task Start Time(us)": "Start Time(us)",
             "Task Duration(us)": "Duration(us)", "Task Wait Time(us)": "Wait Time(us)"}


# Tables that begin with Device_id in generation B alone. A trace of a host has none but the last ones.
GENERATION_TABLES = ("kernel_details", "op_summary", "op_statistic", "api_statistic", "step_trace_time", "l2_cache",
                     "host_cpu_usage", "host_mem_usage", "host_disk_usage", "host_network_usage",
                     "os_runtime_statistic")


class Table:
    """A CSV file or all of its slices; rows whose length differs from the header are kept apart."""

    def __init__(self, name: str, paths: list[Path]) -> None:
        self.name = name
        self.paths = paths
        self.rows: list[list[str]] = []
        self.broken: list[str] = []
        self.headers: list[list[str]] = []
        self.lengths: list[int] = []            # rows of each slice
        for path in paths:
            self._read(path)
        self.header = self.headers[0]
        self.index = {column: column_index for column_index, column in enumerate(self.header)}

    def _read(self, path: Path) -> None:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            before = len(self.rows)
            for row in reader:
                if len(row) == len(header):
                    self.rows.append(row)
                else:
                    self.broken.append(f"{path.name}:{reader.line_num}")
        self.headers.append(header)
        self.lengths.append(len(self.rows) - before)

    def renamed(self, name: str, columns: dict[str, str]) -> "Table":
        """The same rows under other column names."""
        other = copy.copy(self)
        other.name = name
        other.header = [columns.get(column, column) for column in self.header]
        other.index = {column: column_index for column_index, column in enumerate(other.header)}
        return other

    def column(self, *names: str) -> list[str]:
        """Cells of the first of NAMES that exists, without blanks and the trailing TAB."""
        column_index = next(self.index[name] for name in names if name in self.index)
        return [row[column_index].strip() for row in self.rows]

    def dicts(self) -> Iterator[dict[str, str]]:
        """Rows by column name, without blanks and the trailing TAB."""
        for row in self.rows:
            yield dict(zip(self.header, map(str.strip, row)))


class Rank:
    """One `*_ascend_pt` folder, or a `PROF_*` folder with msprof's output. Opens copies of databases."""

    def __init__(self, path: Path, scratch: Path, generation: Optional[str] = None) -> None:
        self.path = path
        self.prof = is_prof(path)               # msprof's layout
        output = PROF_OUTPUT if self.prof else OUTPUT
        self.out = path / output if (path / output).is_dir() or self.prof else path
        self.more = path / "analyze" if self.prof else self.out     # communication and steps
        self._scratch = scratch
        self._forced = generation
        self._tables: dict[str, Optional[Table]] = {}

    # ---- files ----

    @property
    def has_text(self) -> bool:
        """Is there anything of a text export?"""
        return any(self.out.glob("*.csv")) or bool(self.trace_paths)

    @property
    def has_db(self) -> bool:
        """Is there a profiler database?"""
        return bool(self.db_paths)

    @cached_property
    def db_paths(self) -> list[Path]:
        """Profiler databases; analysis.db is none."""
        if self.prof:
            return sorted(path for path in self.path.glob("*.db") if PROF_DB.fullmatch(path.name))
        return sorted(path for path in self.out.glob("*.db") if DB_NAME.fullmatch(path.name))

    @cached_property
    def trace_paths(self) -> list[Path]:
        """The files of the timeline, in the order of their slices."""
        if self.prof:
            named = [(PROF_TRACE.fullmatch(path.name), path) for path in self.out.glob("msprof*.json")]
            return [path for _, path in sorted((int(match.group(2) or 0), path) for match, path in named if match)]
        path = self.out / "trace_view.json"
        return [path] if path.is_file() else []

    @cached_property
    def written(self) -> list[Path]:
        """Files and folders of the result, without the raw data they may lie beside."""
        raw = ("FRAMEWORK", "PROF_", "logs")
        top = [self.out, self.more, *self.db_paths] if self.prof else \
            [path for path in self.path.iterdir() if not path.name.startswith(raw)]
        below = [path for folder in top if folder.is_dir() for path in folder.rglob("*")]
        return [self.path, *sorted({path for path in top if path.exists() or path.is_symlink()} | set(below))]

    @cached_property
    def info_paths(self) -> list[Path]:
        """profiler_info files, by which readers name the rank."""
        return sorted(path for path in self.path.glob("profiler_info*.json") if INFO_NAME.fullmatch(path.name))

    @cached_property
    def rank(self) -> Optional[int]:
        """The rank that readers see."""
        for path in self.info_paths:
            number = INFO_NAME.fullmatch(path.name).group(2)
            return int(number) if number else None
        return None

    @cached_property
    def name_pid(self) -> Optional[int]:
        """The process id in the folder's name."""
        match = RESULT_NAME.fullmatch(self.path.name)
        return int(match.group(1)) if match else None

    def json(self, name: str) -> Any:
        """Content of a JSON file of the output folder, or None."""
        path = self.more / name
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    @cached_property
    def info(self) -> dict[str, Any]:
        """Content of the first profiler_info file."""
        return json.loads(self.info_paths[0].read_text(encoding="utf-8")) if self.info_paths else {}

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Content of profiler_metadata.json."""
        path = self.path / "profiler_metadata.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def table(self, name: str) -> Optional[Table]:
        """A CSV file of the output folder, by its stem."""
        if name not in self._tables:
            if self.prof and name == "kernel_details":
                summary = self.table("op_summary")
                self._tables[name] = summary.renamed(name, AS_KERNEL) if summary else None
            else:
                paths = self.csv_paths.get(name)
                self._tables[name] = Table(name, paths) if paths else None
        return self._tables[name]

    @cached_property
    def csv_paths(self) -> dict[str, list[Path]]:
        """CSV files by their stem, in the order of their slices."""
        found: dict[str, list[tuple[int, Path]]] = defaultdict(list)
        for path in self.out.glob("*.csv"):
            match = PROF_CSV.fullmatch(path.name) if self.prof else None
            found[match.group(1) if match else path.stem].append((int(match.group(3) or 0) if match else 0, path))
        return {name: [path for _, path in sorted(paths)] for name, paths in sorted(found.items())}

    @cached_property
    def csv_names(self) -> list[str]:
        """Stems of all CSV files."""
        return list(self.csv_paths)

    @cached_property
    def trace(self) -> Optional[Trace]:
        """The scanned timeline."""
        return scan(self.trace_paths) if self.trace_paths else None

    # ---- databases ----

    @cached_property
    def db(self) -> Optional[sqlite3.Connection]:
        """A copy of the profiler database."""
        return self._open(self.db_paths[0]) if self.db_paths else None

    @cached_property
    def analysis(self) -> Optional[sqlite3.Connection]:
        """A copy of analysis.db."""
        path = self.more / "analysis.db"
        return self._open(path) if path.is_file() else None

    def _open(self, path: Path) -> sqlite3.Connection:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", folder / f"{path.name}{suffix}")
        return sqlite3.connect(folder / path.name)

    @cached_property
    def db_tables(self) -> set[str]:
        """Tables of the profiler database."""
        return table_names(self.db) if self.db else set()

    # ---- generation and level ----

    @cached_property
    def markers(self) -> dict[str, str]:
        """What speaks for a generation: marker -> A or B."""
        found: dict[str, str] = {}
        if self.db:
            row = self.db.execute("SELECT value FROM META_DATA WHERE name = 'SCHEMA_VERSION'").fetchone() \
                if "META_DATA" in self.db_tables else None
            if row:
                found["SCHEMA_VERSION"] = "A" if row[0].startswith("1.0.") else "B"
        for name in self.csv_names:
            if name in GENERATION_TABLES:
                found[f"{name}.csv"] = "B" if "Device_id" in self.table(name).header else "A"
        if self.trace:
            found.update(self.trace.markers())
        return found

    @cached_property
    def generation(self) -> str:
        """A (the real captures) or B (current); the majority of the markers wins."""
        votes = list(self.markers.values())
        return self._forced or ("B" if votes.count("B") > votes.count("A") else "A")

    @cached_property
    def level(self) -> str:
        """`Level0`, `Level1`, ... from profiler_info."""
        return self.info.get("config", {}).get("experimental_config", {}).get("_profiler_level", "")

    def one_device(self) -> None:
        """Skip what files of generation A do not have for several devices."""
        if self.generation == "A" and len(self.devices) > 1:
            raise Skip("no column tells the devices apart")

    @cached_property
    def devices(self) -> set[int]:
        """Device ids of this result, from the first file that has them."""
        if self.trace and self.trace.devices():
            return self.trace.devices()
        if self.db and "NPU_INFO" in self.db_tables:
            return {row[0] for row in self.db.execute("SELECT id FROM NPU_INFO WHERE id >= 0")}
        return set()


def table_names(db: sqlite3.Connection) -> set[str]:
    """All tables of a database."""
    return {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'"
                                         " AND name NOT LIKE 'sqlite_%'")}


def is_prof(path: Path) -> bool:
    """Does PATH hold what msprof writes?"""
    return (path / PROF_OUTPUT).is_dir() or any(PROF_DB.fullmatch(one.name) for one in path.glob("msprof_*.db"))


def find(root: Path) -> list[Path]:
    """The result folders at or below ROOT, without msprof's own within a framework's result."""
    if is_prof(root):
        return [root]
    if (root / OUTPUT).is_dir() or root.name == OUTPUT or any(root.glob("trace_view.json")) or \
            any(DB_NAME.fullmatch(path.name) for path in root.glob("*.db")):
        return [root.parent if root.name == OUTPUT else root]
    torch = {path.parent for path in root.rglob(OUTPUT) if path.is_dir()} | \
        {path for kind in ("pt", "ms") for path in root.rglob(f"*_ascend_{kind}") if path.is_dir()}
    prof = {path for path in root.rglob("PROF_*") if path.is_dir() and is_prof(path)
            and not any(parent in torch for parent in path.parents)}
    return sorted(torch | prof)
