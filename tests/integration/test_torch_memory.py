#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Memory of PyTorch on the NPU: record --profile-memory.

Witness: the log that the simulated torch_npu's allocator writes of its own counters."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, Optional

from harness import DONE, JOB_SOURCES, PARTIAL, Case, main, need_root, test
from records import EVENT, MEMORY, CHUNK_EVENTS, Event, chunks
from torch_jobs import JOB, Line, Log, job_environment, need_extension, read_log, read_truth

WHAT = ("malloc", "free", "block_free")
MB, KB = 1 << 20, 1 << 10
LEAK = JOB_SOURCES / "torch_leak.py"
# Of the simulated torch_npu, which the jobs call with the step's number.
STEPS = ("--step-marker", "_ZN6npusimL12npu_set_stepEl@1")


def record(case: Case, *options: str, package: str = "plain", source: Path = JOB, job_options: tuple[str, ...] = (),
           **more: str) -> Path:
    """Record the whole job; the results of its process."""
    need_extension()
    need_root()
    case.path("truth").mkdir()
    if source == JOB:
        job_options = ("--steps", "8", "--batch", "256", "--wait", *job_options)
    job = case.start(["/usr/bin/python3", source, *job_options], cwd=case.dir,
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
    assert len({line["reserved"] for line in lines}) > 1, "the allocator's segments never changed"
    check_record_tables(folder, lines)
    names = check_operator_tables(folder, lines)
    assert {name for name, _block in names} == {"N/A"}, "names without --ops"
    check_times(case, folder, lines)


def operator_of(log: Log, line: Line) -> Optional[Line]:
    """The operator of the log that ran in the thread then."""
    around = [op for op in log.ops if op["tid"] == line["tid"] and op["begin"] <= line["at"] <= op["end"]]
    return min(around, key=lambda op: op["end"] - op["begin"], default=None)


def findings_of(folder: Path) -> Any:
    return json.loads((folder / "npuscope_findings.json").read_text(encoding="utf-8"))


def check_names(log: Log, names: list[tuple[Optional[str], Block]]) -> None:
    """What is allocated while an operator runs in its thread is its own; the rest is of empty tensors."""
    owned = 0
    for name, block in names:
        op = operator_of(log, block.malloc)
        if op:
            assert name == op["aten"].split(".")[0], (name, op, block)
            owned += 1
        else:
            assert name and name.startswith("aten::empty"), (name, block)
    assert owned > len(names) / 2 and len({name for name, _block in names}) > 8
    assert len({block.malloc["tid"] for _name, block in names}) == 2, "main thread and autograd's"


@test(seconds=300)
def names_of_operators(case: Case) -> None:
    folder = record(case, "--ops", "all", *STEPS)
    log = read_log(case)
    check_events(folder, log.memory)
    check_names(log, check_operator_tables(folder, log.memory))
    found = findings_of(folder)
    assert found["allocations"]["steps"] == 5 and not found["allocations"]["growth"], found["allocations"]["growth"]
    assert not [finding for finding in found["findings"] if finding["id"] == "memory_growth"], "it keeps no memory"


@test(seconds=300)
def without_a_queue(case: Case) -> None:
    folder = record(case, "--ops", "npu", job_options=("--model", "linear"), TASK_QUEUE_ENABLE="0")
    lines = read_log(case).memory
    check_events(folder, lines)
    check_operator_tables(folder, lines)


def owner_of(log: Log, block: Block) -> tuple[Optional[str], str]:
    """Line and operator as in findings; operators that only make tensors are not in the log."""
    op = operator_of(log, block.malloc)
    return (f"{op['file']}({op['line']}): {op['function']}", op["aten"].split(".")[0]) if op else (None, "aten::empty")


def check_peak(log: Log, found: Any) -> None:
    """Whose blocks were in use when most was: by line and operator, from the log."""
    most = max(line["allocated"] for line in log.memory)
    at = next(i for i, line in enumerate(log.memory) if line["allocated"] == most)
    live = [block for block in blocks_of(log.memory[:at + 1]) if block.free is None]
    assert sum(block.malloc["size"] for block in live) == most
    assert abs(found["peak_mib"] - most / MB) < 1e-3 and found["peak_mib"] == found["allocated_in_the_capture_mib"]
    wanted: Counter[Any] = Counter()
    counts: Counter[Any] = Counter()
    for block in live:
        wanted[owner_of(log, block)] += block.malloc["size"]
        counts[owner_of(log, block)] += 1
    assert len(wanted) > 3
    rows: Counter[Any] = Counter()
    blocks: Counter[Any] = Counter()
    for row in found["peak"]:
        key = (row["line"] if row["operator"] != "aten::empty" else None, row["operator"])
        rows[key] += round(row["mib"] * MB / KB / 4)
        blocks[key] += row["blocks"]
    assert blocks == counts and rows == {key: round(size / KB / 4) for key, size in wanted.items()}, (rows, wanted)


def line_of_source(path: Path, text: str) -> int:
    found = [number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if text in line]
    assert len(found) == 1, found
    return found[0]


@test(seconds=300)
def a_leak(case: Case) -> None:
    """The line that keeps memory, how much a step, and whose memory was in use at the peak."""
    folder = record(case, "--ops", "all", "--py-stacks", "op", *STEPS, source=LEAK)
    log = read_log(case)
    check_events(folder, log.memory)
    check_operator_tables(folder, log.memory)
    findings = findings_of(folder)
    found = findings["allocations"]
    check_peak(log, found)
    kept = [block for block in blocks_of(log.memory) if owner_of(log, block)[1] == "aten::mul"]
    assert len(kept) == 12 and not any(block.free for block in kept)
    size = kept[0].malloc["size"] / MB
    line = f"{LEAK}({line_of_source(LEAK, '# the leak')}): remember"
    assert found["steps"] == 9, "those that the marker ends, without the last two"
    assert [(row["line"], row["operator"], row["steps"]) for row in found["growth"]] == [(line, "aten::mul", 9)]
    assert abs(found["growth"][0]["mib_per_step"] - size) < 1e-3 and abs(found["growth"][0]["mib"] - 9 * size) < 1e-3
    grown = [finding for finding in findings["findings"] if finding["id"] == "memory_growth"]
    assert len(grown) == 1 and grown[0]["where"] == {"line": line, "operator": "aten::mul"}, grown
    shown = case.npuscope("show", "--only", "allocations", folder.parent).expect(DONE).out
    assert "aten::mul" in shown and "grows with each step" in shown, shown


@test(seconds=300)
def a_stripped_library(case: Case) -> None:
    """A line reports what is missing, and nothing is made up."""
    folder = record(case, package="stripped")
    lines = [line for line in case.path("record.err").read_text(encoding="utf-8").splitlines()
            if "reportMemoryDataToNpuProfiler" in line]
    assert len(lines) == 1 and "stripped" in lines[0] and "libtorch_npu.so" in lines[0], lines
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
