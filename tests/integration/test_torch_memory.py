#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Memory of PyTorch on the NPU: record --profile-memory.

Witness: the log that the simulated torch_npu's allocator writes of its own counters."""

from __future__ import annotations

import csv
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any, NamedTuple, Optional

from harness import DONE, PARTIAL, Case, main, need_root, test
from records import EVENT, MEMORY, CHUNK_EVENTS, Event, chunks
from torch_jobs import JOB, Line, Log, job_environment, need_extension, read_log, read_truth

WHAT = ("malloc", "free", "block_free")
MB, KB = 1 << 20, 1 << 10


def record(case: Case, *options: str, package: str = "plain", job_options: tuple[str, ...] = (), **more: str) -> Path:
    """Record the whole job; the results of its process."""
    need_extension()
    need_root()
    case.path("truth").mkdir()
    job = case.start(["/usr/bin/python3", JOB, "--steps", "8", "--batch", "256", "--wait", *job_options], cwd=case.dir,
                     env=job_environment(case, package, agent=True, **more))
    job.wait_for("^loaded", seconds=120)
    run = case.record("-p", job.pid, "-o", case.path("out"), "--profile-memory", "--export", "text,db", *options)
    job.send("go")
    assert job.wait(120) == 0, job.err
    result = run.result(240).expect(DONE, PARTIAL)
    folder = next(Path(line) for line in result.out.splitlines() if line.endswith("_ascend_pt"))
    case.path("record.err").write_text(result.err, encoding="utf-8")
    return folder / "ASCEND_PROFILER_OUTPUT"


def logged(line: Line) -> tuple[Any, ...]:
    return (line["what"], line["device"], int(line["ptr"], 16), line["size"], line["allocated"], line["reserved"],
            line["active"], int(line["stream"], 16), line["tid"])


def recorded(event: Event) -> tuple[Any, ...]:
    """The same of a record, decoded by hand."""
    assert event.flags == 0
    device, component, what, allocator = event.ret.to_bytes(4, "little", signed=True)
    assert (component, allocator) == (0, 0)
    numbers = [high * (1 << 32) + low for low, high in zip(event.body.low, event.body.high)]
    return (WHAT[what], device, event.dur, *numbers, event.body.stream, event.tid)


def records_of(folder: Path) -> list[Event]:
    session = next(path.parent for path in folder.parents[1].rglob("events.nps"))
    events = [Event(fields) for kind, payload in chunks(session / "events.nps") if kind == CHUNK_EVENTS
              for fields in EVENT.iter_unpack(payload) if fields[0] == MEMORY]
    return sorted(events, key=lambda event: event.start)


class Block(NamedTuple):
    """An allocation of the log: its own line, and those of its release and of its block's."""

    malloc: Line
    free: Optional[Line]
    block_free: Optional[Line]


def blocks_of(lines: list[Line]) -> list[Block]:
    """Lines of one address follow each other as malloc, free, block_free."""
    found, live = [], {}
    for line in lines:
        if line["what"] == "malloc":
            assert line["ptr"] not in live
            live[line["ptr"]] = len(found)
            found.append(Block(line, None, None))
        else:
            at = live[line["ptr"]] if line["what"] == "free" else live.pop(line["ptr"])
            found[at] = found[at]._replace(**{line["what"]: line})
    return found


def rows_of(folder: Path, table: str) -> list[dict[str, str]]:
    with open(folder / f"{table}.csv", newline="", encoding="utf-8") as file:
        return [{name: value.strip() for name, value in row.items()} for row in csv.DictReader(file)]


def levels(line: Optional[Line]) -> list[Optional[int]]:
    return [line[name] if line else None for name in ("allocated", "reserved", "active")]


# ---- events -----------------------------------------------------------------------

def check_events(folder: Path, lines: list[Line]) -> None:
    """Each event of the log is a record with the same numbers, in the same order."""
    events = records_of(folder)
    assert len(lines) > 200 and {line["what"] for line in lines} == set(WHAT)
    assert len({line["reserved"] for line in lines}) > 1, "the allocator's segments never changed"
    assert [recorded(event) for event in events] == [logged(line) for line in lines]


def check_record_tables(folder: Path, lines: list[Line]) -> None:
    """memory_record.csv: each event, followed by the sum with CANN's memory, of which there is none."""
    wanted = []
    for line in lines:
        for component in ("PTA", "PTA+GE"):
            wanted.append((component, *[number / MB for number in levels(line)], int(line["stream"], 16),
                           f"NPU:{line['device']}"))
    found = [(row["Component"], float(row["Total Allocated(MB)"]), float(row["Total Reserved(MB)"]),
              float(row["Total Active(MB)"]), int(row["Stream Ptr"]), row["Device Type"])
             for row in rows_of(folder, "memory_record") if row["Component"] != "APP"]
    assert found == wanted
    with sqlite3.connect(next(folder.glob("ascend_pytorch_profiler*.db"))) as db:
        table = db.execute("SELECT s.value, totalAllocated, totalReserved, totalActive, streamPtr, deviceId FROM"
                           " MEMORY_RECORD m JOIN STRING_IDS s ON s.id = m.component ORDER BY m.rowid").fetchall()
    assert table == [(component, *levels(line), int(line["stream"], 16), line["device"])
                     for line in lines for component in ("PTA", "PTA+GE")]


def check_operator_tables(folder: Path, lines: list[Line]) -> list[tuple[Optional[str], Block]]:
    """operator_memory.csv and OP_MEMORY: each allocation with its release. Returns their names."""
    blocks = blocks_of(lines)
    assert any(block.free is None for block in blocks) and any(block.block_free for block in blocks)
    with sqlite3.connect(next(folder.glob("ascend_pytorch_profiler*.db"))) as db:
        table = db.execute(
            "SELECT s.value, size, allocationTime, releaseTime, activeReleaseTime, duration, activeDuration,"
            " allocationTotalAllocated, allocationTotalReserved, allocationTotalActive, releaseTotalAllocated,"
            " releaseTotalReserved, releaseTotalActive, streamPtr, deviceId FROM OP_MEMORY m LEFT JOIN STRING_IDS s"
            " ON s.id = m.name ORDER BY m.rowid").fetchall()
    assert len(table) == len(blocks)
    for row, block in zip(table, blocks):
        _name, size, begin, release, active_release, duration, active_duration, *totals = row
        assert size == block.malloc["size"], (row, block)
        assert totals == [*levels(block.malloc), *levels(block.free), int(block.malloc["stream"], 16),
                          block.malloc["device"]], (row, block)
        assert (release is None, active_release is None) == (block.free is None, block.block_free is None)
        assert duration == (None if release is None else release - begin)
        assert active_duration == (None if active_release is None else active_release - begin)
    text = rows_of(folder, "operator_memory")
    assert [float(row["Size(KB)"]) * KB for row in text] == [block.malloc["size"] for block in blocks]
    assert [row["Name"] for row in text] == [row[0] or "" for row in table], "names"
    assert [bool(row["Release Time(us)"]) for row in text] == [bool(block.free) for block in blocks]
    assert [bool(row["Active Release Time(us)"]) for row in text] == [bool(block.block_free) for block in blocks]
    return [(row[0], block) for row, block in zip(table, blocks)]


def check_times(case: Case, folder: Path, lines: list[Line]) -> None:
    """A report is before its line in the log, and behind the line before it."""
    clock = read_truth(case).clock
    before = 0
    session_rows = [row for row in rows_of(folder, "memory_record") if row["Component"] == "PTA"]
    for row, line in zip(session_rows, lines):
        at, after = float(row["Timestamp(us)"]) * 1000, clock.real(line["at"])
        assert before - 1e6 <= at <= after + 1e6, (row, line, before, after)
        before = after


@test(seconds=300)
def every_event(case: Case) -> None:
    folder = record(case)
    lines = read_log(case).memory
    check_events(folder, lines)
    check_record_tables(folder, lines)
    names = check_operator_tables(folder, lines)
    assert {name for name, _block in names} == {"N/A"}, "names without --ops"
    check_times(case, folder, lines)


def check_names(log: Log, names: list[tuple[Optional[str], Block]]) -> None:
    """A kernel's operator owns what is allocated while it runs in its thread; the rest is of empty tensors."""
    owned = 0
    for name, block in names:
        at, tid = block.malloc["at"], block.malloc["tid"]
        around = [op for op in log.ops if op["tid"] == tid and op["begin"] <= at <= op["end"]]
        if around:
            inner = min(around, key=lambda op: op["end"] - op["begin"])
            assert name == inner["aten"].split(".")[0], (name, inner, block)
            owned += 1
        else:
            assert name and name.startswith("aten::empty"), (name, block)
    assert owned > len(names) / 2 and len({name for name, _block in names}) > 8
    assert len({block.malloc["tid"] for _name, block in names}) == 2, "main thread and autograd's"


@test(seconds=300)
def names_of_operators(case: Case) -> None:
    folder = record(case, "--ops", "all")
    log = read_log(case)
    check_events(folder, log.memory)
    check_names(log, check_operator_tables(folder, log.memory))


@test(seconds=300)
def without_a_queue(case: Case) -> None:
    folder = record(case, "--ops", "npu", job_options=("--model", "linear"), TASK_QUEUE_ENABLE="0")
    lines = read_log(case).memory
    check_events(folder, lines)
    check_operator_tables(folder, lines)


@test(seconds=300)
def a_stripped_library(case: Case) -> None:
    """A line reports what is missing, and nothing is made up."""
    folder = record(case, package="stripped")
    said = [line for line in case.path("record.err").read_text(encoding="utf-8").splitlines()
            if "reportMemoryDataToNpuProfiler" in line]
    assert len(said) == 1 and "stripped" in said[0] and "libtorch_npu.so" in said[0], said
    assert not records_of(folder) and not list(folder.glob("operator_memory*"))
    assert read_log(case).memory


@test
def without_pytorch(case: Case) -> None:
    need_root()
    run = case.npuscope("record", "--profile-memory", "-o", case.path("out"), "--export", "none", "--", "/bin/true")
    run.expect(PARTIAL)
    assert re.search("no process has libtorch_npu.so mapped.*--profile-memory", run.err), run.err


if __name__ == "__main__":
    sys.exit(main())
