# SPDX-License-Identifier: BSD-2-Clause
"""What a mutation works on: a private copy of one result folder."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Optional

from harness import Skip

Event = dict[str, Any]


class Mutation(NamedTuple):
    """One single fault and the check that has to find it."""
    name: str
    expected: str
    apply: Callable[["Copy"], None]


PROFILER_DB = "ascend_pytorch_profiler*.db"
# names of kernel_details that op_summary has otherwise
IN_SUMMARY = {"Name": "Op Name", "Type": "OP Type", "Accelerator Core": "Task Type",
              "Start Time(us)": "Task Start Time(us)",
              "Duration(us)": "Task Duration(us)", "Wait Time(us)": "Task Wait Time(us)"}


class Copy:
    """A fresh copy of a result, and ways to damage it."""

    def __init__(self, path: Path, generation: str) -> None:
        self.path = path
        self.prof = (path / "mindstudio_profiler_output").is_dir()
        self.out = path / ("mindstudio_profiler_output" if self.prof else "ASCEND_PROFILER_OUTPUT")
        self.more = path / "analyze" if self.prof else self.out
        self.generation = generation

    def only(self, generation: str) -> None:
        """Skip results of the other generation."""
        if self.generation != generation:
            raise Skip(f"for generation {generation} only")

    def file(self, name: str) -> Path:
        """A file of the output folder, or skip."""
        path = self.more / name if name.startswith("communication") and name.endswith(".json") else self.out / name
        if self.prof and name == "trace_view.json":
            path = next(self.out.glob("msprof_*.json"), path)
        elif self.prof and name.endswith(".csv"):
            stem = "op_summary" if name == "kernel_details.csv" else name[:-4]
            path = next(self.out.glob(f"{stem}_[0-9]*.csv"), path)
        if not path.is_file():
            raise Skip(f"no {name}")
        return path

    def database(self, pattern: str = PROFILER_DB) -> Path:
        """A database of the result, or skip."""
        folder = self.out
        if self.prof:
            folder, pattern = (self.path, "msprof_*.db") if pattern == PROFILER_DB else (self.more, pattern)
        path = next(folder.glob(pattern), None)
        if not path:
            raise Skip(f"no {pattern}")
        return path

    # ---- trace ----

    @contextmanager
    def trace(self) -> Iterator["TraceCopy"]:
        """The events, written back afterwards."""
        path = self.file("trace_view.json")
        trace = TraceCopy(json.loads(path.read_text(encoding="utf-8")))
        yield trace
        path.write_text(json.dumps(trace.events, ensure_ascii=False), encoding="utf-8")

    # ---- CSV ----

    @contextmanager
    def lines(self, name: str) -> Iterator[list[str]]:
        """The raw lines of a CSV file with their ends, written back afterwards."""
        path = self.file(f"{name}.csv")
        with open(path, encoding="utf-8", newline="") as file:
            lines = file.readlines()
        yield lines
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.writelines(lines)

    def cell(self, name: str, row: int, column: str, change: Callable[[str], str]) -> None:
        """Change one cell; rows count from 1, negative ones from the end."""
        with self.lines(name) as lines:
            header = lines[0].rstrip("\r\n").split(",")
            if self.prof and name == "kernel_details":
                column = IN_SUMMARY.get(column, column)
            if column not in header:
                raise Skip(f"{name}.csv has no {column}")
            if len(lines) < 2 or len(lines) <= row:
                raise Skip(f"{name}.csv has too few rows")
            cells = split(lines[row])
            index = header.index(column)
            end = re.search(r"[\t\r\n]*$", cells[index]).group()
            cells[index] = change(cells[index][:len(cells[index]) - len(end)]) + end
            lines[row] = ",".join(cells)

    def row_where(self, name: str, test: Callable[[dict[str, str]], bool]) -> int:
        """Number of the first row that passes TEST, or skip."""
        with open(self.file(f"{name}.csv"), encoding="utf-8", newline="") as file:
            lines = file.readlines()
        header = lines[0].rstrip("\r\n").split(",")
        for number, line in enumerate(lines[1:], 1):
            if test(dict(zip(header, split(line)))):
                return number
        raise Skip(f"{name}.csv has no such row")

    # ---- JSON and databases ----

    @contextmanager
    def json(self, path: Path) -> Iterator[Any]:
        """The content of a JSON file, written back afterwards."""
        if not path.is_file():
            raise Skip(f"no {path.name}")
        content = json.loads(path.read_text(encoding="utf-8"))
        yield content
        path.write_text(json.dumps(content), encoding="utf-8")

    def sql(self, statement: str, needs: str = "", database: str = PROFILER_DB) -> None:
        """Run one statement that must change something; NEEDS are tables that must have rows."""
        db = sqlite3.connect(self.database(database))
        try:
            for table in needs.split():
                if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() or \
                        not db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
                    raise Skip(f"no rows in {table}")
            before = db.total_changes
            db.executescript(statement)
            ddl = statement.lstrip().upper().startswith(("CREATE", "DROP", "ALTER", "PRAGMA"))
            if not ddl and db.total_changes == before:
                raise Skip("no row to damage")
            db.commit()
        finally:
            db.close()


class TraceCopy:
    """Events of one trace with look-ups by layer."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.names = {event["pid"]: event["args"]["name"] for event in events
                      if event["ph"] == "M" and event["name"] == "process_name"}

    def all(self, test: Callable[[Event], bool]) -> list[Event]:
        """Events that pass TEST, or skip."""
        found = [event for event in self.events if test(event)]
        if not found:
            raise Skip("no such event")
        return found

    def slices(self, *layers: str) -> list[Event]:
        """Slices of the named processes, or skip."""
        return self.all(lambda event: event["ph"] == "X" and self.names.get(event["pid"]) in layers)

    def kernel(self) -> Event:
        """A slice of a computing task in the middle of the trace."""
        kernels = [one for one in self.slices("Ascend Hardware")
                   if str(one["args"].get("Task Type", "")).startswith(("AI_", "MIX_", "KERNEL_"))
                   and float(one["dur"]) > 0]
        if not kernels:
            raise Skip("no kernel with a duration")
        return kernels[len(kernels) // 2]

    def flows(self, phase: str, cat: Optional[str] = None) -> list[Event]:
        """Ends of flows, or skip."""
        return self.all(lambda event: event["ph"] == phase and (cat is None or event.get("cat") == cat))

    def remove(self, event: Event) -> None:
        """Drop one event."""
        self.events[:] = [one for one in self.events if one is not event]


def shifted(ts: str, us: int) -> str:
    """A timestamp moved by whole microseconds."""
    whole, _, fraction = ts.partition(".")
    return f"{int(whole) + us}.{fraction}"


def split(line: str) -> list[str]:
    """Cells of one CSV line; quoted cells keep their quotes."""
    return re.findall(r'((?:"(?:[^"]|"")*"|[^,"])*)(?:,|$)', line, re.S)[:line_cells(line)]


def line_cells(line: str) -> int:
    """Number of cells of one CSV line."""
    return len(re.sub(r'"(?:[^"]|"")*"', "", line).split(","))
