#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real databases, read and written again, are the same: every row, every value, every type.

Needs real captures: NPUSCOPE_REFERENCE_DATA names their folder. They are copied before anything opens them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import ROOT, Skip, Tests

CONVERT = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build")) / "tests" / "test_ascend_db"

# Rows that the model keeps by time or by task, while the vendor groups them by another column.
ORDER_OF_ITS_OWN = {"NPU_MEM", "LLC", "AICORE_FREQ", "TASK_PMU_INFO"}

# Tables that a copy has beyond the original.
ADDED: set[str] = set()

# What a copy of schema 1.0.0 has as schema 1.2.0.
COMPAT_COLUMNS = {
    "COMPUTE_TASK_INFO": ({"blockDim", "mixBlockDim"},
                          {"blockNum", "mixBlockNum", "opState", "hf32Eligible", "gridDim", "blockDim"}),
    "COMMUNICATION_TASK_INFO": (set(), {"isMaster", "bandwidth"}),
    "COMMUNICATION_OP": (set(), {"deviceId", "rankSize"}),
    "AICORE_FREQ": (set(), {"dieId"}),
}
COMPAT_TABLES = {"ENUM_MEMCPY_OPERATION", "ENUM_OVERLAP_ANALYSIS_TYPE"}


def schema(db: sqlite3.Connection) -> dict[str, str]:
    """The statement that made each table."""
    return dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))


def indexes(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))


def rows(db: sqlite3.Connection, table: str, columns: list[str] | None = None) -> list[tuple[object, ...]]:
    """Values with their storage classes, in the order in which they are stored."""
    names = columns or column_names(db, table)
    cells = ",".join(f'"{name}", typeof("{name}")' for name in names)
    found = db.execute(f'SELECT {cells} FROM "{table}" ORDER BY rowid').fetchall()
    return sorted(found, key=repr) if table in ORDER_OF_ITS_OWN else found


def column_names(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def exchanged(db: sqlite3.Connection) -> bool:
    """Whether types of operands stand where their shapes belong, as torch_npu of early 2025 stored them."""
    return any(re.search("[A-Za-z]", text) for (text,) in db.execute(
        "SELECT value FROM STRING_IDS WHERE id IN (SELECT inputShapes FROM PYTORCH_API)"))


def right_columns(db: sqlite3.Connection, table: str, names: list[str]) -> list[str]:
    """The columns that NAMES name."""
    other = {"inputShapes": "inputDtypes", "inputDtypes": "inputShapes"}
    return [other.get(name, name) for name in names] if table == "PYTORCH_API" and exchanged(db) else names


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def convert(database: Path, out: Path, generation: str = "") -> str:
    """Import DATABASE, export it into OUT; the messages on the way."""
    out.mkdir()
    command = [str(CONVERT), "--convert", str(database), str(out), *([generation] if generation else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
    return done.stderr


def compare(before: Path, after: Path) -> None:
    old, new = opened(before), opened(after)
    have, made = schema(old), schema(new)
    assert "PYTORCH_API" not in made or not exchanged(new), "types of operands stand where their shapes belong"
    assert set(have) <= set(made), f"tables missing: {sorted(set(have) - set(made))}"
    assert set(made) - set(have) <= ADDED, f"tables too many: {sorted(set(made) - set(have))}"
    assert indexes(old) == indexes(new), f"indexes {indexes(new)} in place of {indexes(old)}"
    for table in sorted(have):
        assert have[table] == made[table], f"{made[table]} in place of {have[table]}"
        names = column_names(old, table)
        expected, got = rows(old, table, right_columns(old, table, names)), rows(new, table, names)
        assert len(expected) == len(got), f"{table}: {len(got)} rows in place of {len(expected)}"
        for number, (want, found) in enumerate(zip(expected, got)):
            assert want == found, f"{table} row {number}: {found} in place of {want}"
    for pragma in ("page_size", "journal_mode", "encoding", "user_version", "application_id", "auto_vacuum"):
        want, found = (db.execute(f"PRAGMA {pragma}").fetchone() for db in (old, new))
        assert want == found, f"{pragma} is {found} in place of {want}"
    assert new.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def compare_generations(before: Path, after: Path) -> None:
    old, new = opened(before), opened(after)
    have, made = schema(old), schema(new)
    assert set(made) - set(have) == COMPAT_TABLES, f"tables added: {sorted(set(made) - set(have))}"
    assert set(have) <= set(made), f"tables missing: {sorted(set(have) - set(made))}"
    for table in have:
        was, is_now = column_names(old, table), column_names(new, table)
        removed, come = COMPAT_COLUMNS.get(table, (set(), set()))
        assert set(was) - removed | come == set(is_now), f"{table}: columns {is_now}"
        shared = [name for name in was if name not in removed]
        if table == "META_DATA":
            assert ("SCHEMA_VERSION", "1.2.0") in new.execute("SELECT * FROM META_DATA").fetchall()
        elif table == "STRING_IDS":
            assert set(rows(old, table)) <= set(rows(new, table)), "texts are missing"
        elif not table.startswith("ENUM_"):
            assert rows(old, table, right_columns(old, table, shared)) == rows(new, table, shared), \
                f"{table}: other values"
    numbers = [list(db.execute(f"SELECT {a}, {b} FROM COMPUTE_TASK_INFO"))
               for db, a, b in ((old, "blockDim", "mixBlockDim"), (new, "blockNum", "mixBlockNum"))]
    assert numbers[0] == numbers[1], "numbers of blocks differ"
    assert new.execute("SELECT name FROM ENUM_API_TYPE WHERE id = 5500").fetchone() == ("communication",)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy_of(folder: Path, scratch: Path) -> Path:
    """A writable copy of one result directory."""
    copied = scratch / "in"
    shutil.copytree(folder, copied)
    for path in copied.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    copied.chmod(0o755)
    return copied / "ASCEND_PROFILER_OUTPUT"


def check_same(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        source = copy_of(folder, scratch)
        database = next(source.glob("ascend_*_profiler*.db"))
        originals = {path: digest(path) for path in source.iterdir()}
        printed = convert(database, scratch / "out")
        assert "lost" not in printed, printed
        assert {path: digest(path) for path in source.iterdir()} == originals, "the input was changed"
        for path in originals:
            compare(path, scratch / "out" / path.name)
        convert(database, scratch / "again")
        for path in originals:
            name = path.name
            assert digest(scratch / "out" / name) == digest(scratch / "again" / name), f"{name} is not repeatable"
        # What was written reads back as the same, too.
        convert(scratch / "out" / database.name, scratch / "third")
        compare(database, scratch / "third" / database.name)


def check_compat(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        database = next(copy_of(folder, scratch).glob("ascend_*_profiler*.db"))
        convert(database, scratch / "out", "B")
        compare_generations(database, scratch / "out" / database.name)
        analysis = opened(scratch / "out" / "analysis.db")
        assert column_names(analysis, "StepTraceTime")[0] == "deviceId"


def missing() -> None:
    raise Skip("NPUSCOPE_REFERENCE_DATA does not name the folder of real captures")


def not_built() -> None:
    raise Skip(f"{CONVERT} is not built: make unit")


def main() -> int:
    tests = Tests()
    data = os.environ.get("NPUSCOPE_REFERENCE_DATA")
    if not data:
        tests.run("roundtrip", missing)
    elif not CONVERT.exists():
        tests.run("roundtrip", not_built)
    else:
        folders = sorted(path.parent.parent for path in Path(data).rglob("ascend_*_profiler*.db"))
        for folder in folders:
            name = f"{folder.parent.name}/{folder.name}"
            tests.run(f"roundtrip {name}", lambda folder=folder: check_same(folder))
            tests.run(f"roundtrip as schema 1.2.0 {name}", lambda folder=folder: check_compat(folder))
        assert folders, f"no database below {data}"
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
