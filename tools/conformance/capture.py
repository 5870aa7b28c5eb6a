# SPDX-License-Identifier: BSD-2-Clause
"""A result folder: which files it has, which generation wrote them."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Iterator, Optional

from tracemodel import Trace, scan

DB_NAME = re.compile(r"ascend_pytorch_profiler(_(\d{1,16}))?\.db")
INFO_NAME = re.compile(r"profiler_info(_(\d{1,5}))?\.json")
RESULT_NAME = re.compile(r".+_(\d+)_\d{17}_ascend_pt")
OUTPUT = "ASCEND_PROFILER_OUTPUT"
OWN_TABLES = "NPUSCOPE_"


class Table:
    """A CSV file; rows whose length differs from the header are kept apart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            self.header = next(reader, [])
            self.rows: list[list[str]] = []
            self.broken: list[int] = []
            for row in reader:
                if len(row) == len(self.header):
                    self.rows.append(row)
                else:
                    self.broken.append(reader.line_num)
        self.index = {name: place for place, name in enumerate(self.header)}

    def column(self, *names: str) -> list[str]:
        """Cells of the first of NAMES that exists, without blanks and the trailing TAB."""
        place = next(self.index[name] for name in names if name in self.index)
        return [row[place].strip() for row in self.rows]

    def dicts(self) -> Iterator[dict[str, str]]:
        """Rows by column name, without blanks and the trailing TAB."""
        for row in self.rows:
            yield dict(zip(self.header, (cell.strip() for cell in row)))


class Rank:
    """One `*_ascend_pt` folder. Databases are opened as copies only."""

    def __init__(self, path: Path, scratch: Path, generation: Optional[str] = None) -> None:
        self.path = path
        self.out = path / OUTPUT if (path / OUTPUT).is_dir() else path
        self._scratch = scratch
        self._forced = generation
        self._tables: dict[str, Optional[Table]] = {}

    # ---- files ----

    @property
    def has_text(self) -> bool:
        """Is there anything of a text export?"""
        return any(self.out.glob("*.csv")) or (self.out / "trace_view.json").exists()

    @property
    def has_db(self) -> bool:
        """Is there a profiler database?"""
        return bool(self.db_paths)

    @cached_property
    def db_paths(self) -> list[Path]:
        """Profiler databases; analysis.db is none."""
        return sorted(path for path in self.out.glob("*.db") if DB_NAME.fullmatch(path.name))

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
        path = self.out / name
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
            path = self.out / f"{name}.csv"
            self._tables[name] = Table(path) if path.is_file() else None
        return self._tables[name]

    @cached_property
    def csv_names(self) -> list[str]:
        """Stems of all CSV files."""
        return sorted(path.stem for path in self.out.glob("*.csv"))

    @cached_property
    def trace(self) -> Optional[Trace]:
        """The scanned trace_view.json."""
        path = self.out / "trace_view.json"
        return scan(path) if path.is_file() else None

    # ---- databases ----

    @cached_property
    def db(self) -> Optional[sqlite3.Connection]:
        """A copy of the profiler database."""
        return self._open(self.db_paths[0]) if self.db_paths else None

    @cached_property
    def analysis(self) -> Optional[sqlite3.Connection]:
        """A copy of analysis.db."""
        path = self.out / "analysis.db"
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
            if name in ("kernel_details", "op_statistic", "api_statistic", "step_trace_time", "l2_cache"):
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
        """`Level0`, `Level1`, ... as profiler_info says."""
        return self.info.get("config", {}).get("experimental_config", {}).get("_profiler_level", "")

    @cached_property
    def devices(self) -> set[int]:
        """Device ids of this result, from whatever says so."""
        if self.trace and self.trace.devices():
            return self.trace.devices()
        if self.db and "NPU_INFO" in self.db_tables:
            return {row[0] for row in self.db.execute("SELECT id FROM NPU_INFO")}
        return set()


def table_names(db: sqlite3.Connection) -> set[str]:
    """All tables of a database."""
    return {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'"
                                         " AND name NOT LIKE 'sqlite_%'")}


def find(root: Path) -> list[Path]:
    """The result folders at or below ROOT."""
    if (root / OUTPUT).is_dir() or root.name == OUTPUT or any(root.glob("trace_view.json")) or \
            any(DB_NAME.fullmatch(path.name) for path in root.glob("*.db")):
        return [root.parent if root.name == OUTPUT else root]
    return sorted({path.parent for path in root.rglob(OUTPUT) if path.is_dir()} |
                  {path for path in root.rglob("*_ascend_pt") if path.is_dir()})
