# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the databases' form: S1..S5."""

from __future__ import annotations

import json
import sqlite3

import schema
from capture import OWN_TABLES, Rank, table_names
from report import Check, RuleSet, Skip

RULES = RuleSet()
VERSION = {"A": "1.0.0", "B": "1.2.0"}


def need(rank: Rank) -> sqlite3.Connection:
    """The profiler database, or skip."""
    if not rank.db:
        raise Skip("no profiler database")
    return rank.db


@RULES.rule("S1", "the tables that must exist do, and no unknown ones")
def s1(rank: Rank, check: Check) -> None:
    need(rank)
    known = schema.tables(rank.generation)
    for name in schema.required(rank.generation):
        check.expect(name in rank.db_tables, f"table {name} is missing")
    for name in rank.db_tables:
        other = name in schema.tables("B") and rank.db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        check.expect(name in known or name.startswith(OWN_TABLES) or bool(other),
                     f"table {name} is not part of schema {VERSION[rank.generation]}")
    if rank.analysis:
        for name in table_names(rank.analysis):
            check.expect(name in schema.analysis(rank.generation), f"analysis.db: unknown table {name}")


@RULES.rule("S2", "columns have the right names, order, types and primary key")
def s2(rank: Rank, check: Check) -> None:
    need(rank)
    for database, known in ((rank.db, schema.tables(rank.generation)),
                            (rank.analysis, schema.analysis(rank.generation))):
        for name in sorted(table_names(database) & known.keys()) if database else ():
            columns = [(row[1], row[2].upper(), bool(row[5])) for row in database.execute(f"PRAGMA table_info({name})")]
            right = known[name]
            tail = schema.OPTIONAL_TAIL.get(name, ())
            short = [column for column in right if not (column[0] in tail and column in right[-len(tail):])] \
                if tail and rank.generation == "B" else right
            wrong = next((f"{one} should be {other}" for one, other in zip(columns, right) if one != other),
                         f"{len(columns)} columns, expected {len(right)}")
            check.expect(columns in (right, short), f"{name}: {wrong}")


@RULES.rule("S3", "enumeration tables have exactly the known rows")
def s3(rank: Rank, check: Check) -> None:
    db = need(rank)
    for name, right in schema.ENUMS[rank.generation].items():
        if name not in rank.db_tables:
            continue
        optional = schema.OPTIONAL_ENUM_ROWS.get(name, {})
        names = dict(db.execute(f"SELECT id, name FROM {name}"))
        for key in sorted(names.keys() | right.keys()):
            good = names.get(key) == right.get(key) or key in optional and names.get(key) == optional[key]
            check.expect(good, f"{name}: {key} is {names.get(key)!r}, expected {right.get(key)!r}")


@RULES.rule("S4", "the files are sound SQLite databases that a reader can alter")
def s4(rank: Rank, check: Check) -> None:
    need(rank)
    right = {"journal_mode": "delete", "page_size": 4096, "encoding": "UTF-8", "user_version": 0, "application_id": 0,
             "auto_vacuum": 0}
    for name, database in (("profiler database", rank.db), ("analysis.db", rank.analysis)):
        if database:
            state = database.execute("PRAGMA quick_check").fetchone()[0]
            check.expect(state == "ok", f"{name}: {state}")
            for pragma, value in right.items():
                found = database.execute(f"PRAGMA {pragma}").fetchone()[0]
                check.expect(found == value, f"{name}: {pragma} is {found}, expected {value}")


@RULES.rule("S5", "META_DATA states the schema version, other values are JSON")
def s5(rank: Rank, check: Check) -> None:
    rows = need(rank).execute("SELECT name, value FROM META_DATA").fetchall()
    found = dict(rows)
    check.expect(len(found) == len(rows), "a name occurs twice")
    version = VERSION[rank.generation]
    major, minor, micro = version.split(".")
    for name, right in (("SCHEMA_VERSION", version), ("SCHEMA_VERSION_MAJOR", major), ("SCHEMA_VERSION_MINOR", minor),
                        ("SCHEMA_VERSION_MICRO", micro)):
        check.expect(found.get(name) == right, f"{name} is {found.get(name)!r}, expected {right!r}")
    for name in ("ENV_VARIABLES", "parallel_group_info", "distributed_args"):
        if name in found:
            check.expect(isinstance(json.loads(found[name]), dict), f"{name} is no JSON object")
