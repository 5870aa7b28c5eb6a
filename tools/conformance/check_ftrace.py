# SPDX-License-Identifier: BSD-2-Clause
"""Checks of ftrace_data.db, the scheduling layers as MindStudio Insight reads them: E1..E4."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from typing import NamedTuple

from capture import Rank
from report import Check, RuleSet, Skip

RULES = RuleSet()
COLUMNS = {
    "process": ["pid", "process_name", "label", "process_sort_index", "parentPid"],
    "thread": ["track_id", "tid", "pid", "thread_name", "thread_sort_index"],
    "slice": ["id", "timestamp", "duration", "name", "depth", "track_id", "cat", "args", "cname", "end_time",
              "flag_id"],
    "counter": ["id", "name", "pid", "timestamp", "cat", "args"],
    "flow": ["id", "flow_id", "name", "cat", "track_id", "timestamp", "type"],
}
THREADS, CPUS = "Process Scheduling", "CPU Scheduling"
STATES = ("Running", "Runnable", "Sleeping")


class Row(NamedTuple):
    """A slice with its lane."""
    layer: str
    lane: str
    name: str
    start: int
    end: int
    cpu: object


def _open(rank: Rank) -> sqlite3.Connection:
    path = rank.out / "ftrace_data.db"
    if not path.is_file():
        raise Skip("no ftrace_data.db")
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)


def _rows(rank: Rank) -> list[Row]:
    return [Row(*row) for row in _open(rank).execute(
        "SELECT t.pid, t.tid, s.name, s.timestamp, s.end_time, json_extract(s.args, '$.cpu') FROM slice s"
        " JOIN thread t USING (track_id) ORDER BY s.timestamp, s.end_time")]


def _overlap(rows: list[Row]) -> list[tuple[Row, Row]]:
    pairs, last = [], None
    for row in sorted(rows, key=lambda row: (row.start, row.end)):
        if last and row.start < last.end and row.end > row.start:
            pairs.append((last, row))
        if not last or row.end >= last.end:
            last = row
    return pairs


@RULES.rule("E1", "ftrace_data.db has the tables and lanes that the viewer asks for")
def e1(rank: Rank, check: Check) -> None:
    db = _open(rank)
    for table, columns in COLUMNS.items():
        found = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        check.expect(found == columns, f"{table}: {found}")
    names = {row[0] for row in db.execute("SELECT pid FROM process WHERE pid = process_name AND parentPid = '0'")}
    check.expect(names == {THREADS, CPUS}, f"processes {sorted(names)}")
    for track, tid, pid, name in db.execute("SELECT track_id, tid, pid, thread_name FROM thread"):
        good = tid.rpartition(":")[2].isdigit() if pid == THREADS else tid.startswith("CPU ") and tid[4:].isdigit()
        check.expect(good and name == tid and pid in names, f"lane {track}: {pid} {tid!r} {name!r}")
    lost = db.execute("SELECT count(*) FROM slice WHERE track_id NOT IN (SELECT track_id FROM thread)"
                      " OR end_time != timestamp + duration OR timestamp <= 0 OR duration < 0").fetchone()[0]
    check.expect(lost == 0, f"{lost} slices without a lane or with strange times")


@RULES.rule("E2", "a thread is in one state at a time, a CPU runs one thread at a time")
def e2(rank: Rank, check: Check) -> None:
    lanes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in _rows(rank):
        if row.layer == THREADS:
            check.expect(row.name in STATES, f"{row.lane}: {row.name!r} is no state")
            lanes[row.layer, row.lane.rpartition(":")[2]].append(row)
        elif row.name not in ("sched_switch", "irq", "softirq"):
            lanes[row.layer, row.lane].append(row)
    for (layer, lane), rows in lanes.items():
        check.inspected(len(rows))
        for one, other in _overlap(rows):
            check.fail(f"{layer} {lane}: {one.name} {one.start}..{one.end} and {other.name} {other.start}..{other.end}")


@RULES.rule("E3", "states of a thread follow each other, and its time on CPUs is the CPUs' time with it")
def e3(rank: Rank, check: Check) -> None:
    on_cpus: Counter[str] = Counter()
    running: Counter[str] = Counter()
    states: dict[str, list[Row]] = defaultdict(list)
    for row in _rows(rank):
        if row.layer == CPUS and row.name not in ("sched_switch", "irq", "softirq"):
            on_cpus[row.name] += row.end - row.start
        elif row.layer == THREADS:
            running[row.lane] += (row.end - row.start) * (row.name == "Running")
            if row.end > row.start:
                states[row.lane.rpartition(":")[2]].append(row)
    for lane in running.keys() | on_cpus.keys():
        check.expect(running[lane] == on_cpus[lane], f"{lane}: {running[lane]} ns running, {on_cpus[lane]} ns on CPUs")
    for tid, rows in states.items():
        whole = max(row.end for row in rows) - rows[0].start
        holes = sum(max(0, after.start - before.end) for before, after in zip(rows, rows[1:]))
        total = sum(row.end - row.start for row in rows)
        check.expect(total + holes == whole, f"thread {tid}: {total} ns in states, {holes} ns in holes, of {whole} ns")
        if holes:   # a kernel leaves out a switch now and then, in its own traces too
            check.note(f"thread {tid}: nothing is known of {holes} of {whole} ns")


@RULES.rule("E4", "ftrace_data.db has the slices of the trace's scheduling layers")
def e4(rank: Rank, check: Check) -> None:
    if not rank.trace or not rank.trace.layer(THREADS):
        raise Skip("no scheduling layers in a trace")
    ours: Counter[tuple[str, str, str, int, int]] = Counter()
    theirs: Counter[tuple[str, str, str, int, int]] = Counter(row[:5] for row in _rows(rank))
    for layer in (THREADS, CPUS):
        for one in rank.trace.layer(layer):
            lane = one.tid if isinstance(one.tid, str) else rank.trace.thread_name.get((one.pid, one.tid), "")
            ours[layer, lane, one.name, one.start, one.end] += 1
    check.inspected(sum(ours.values()))
    for key, count in ((ours - theirs) + (theirs - ours)).items():
        check.fail(f"{key}: {ours[key]} in the trace, {theirs[key]} in the database ({count})")
