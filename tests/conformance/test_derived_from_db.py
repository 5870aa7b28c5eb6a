#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What we derive from a database of the vendor's profiler is what the vendor derived from it.

The rows of TASK, COMMUNICATION_*, CANN_API and PYTORCH_API of each real capture in NPUSCOPE_REFERENCE_DATA go
into our derivations; StepTraceTime and CommAnalyzer* of its analysis.db, and CONNECTION_IDS, must come out.
The vendor's communication files, taken apart into rows, must come out byte by byte.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterator

sys.dont_write_bytecode = True

from harness import ROOT, Skip, Tests  # noqa: E402

PROGRAM = Path(os.environ.get("NPUSCOPE_DERIVE_ROWS", ROOT / "build/tests/test_derive_rows"))
NONE = 0xFFFFFFFF
MEMCPY, COMM, COMPUTE = 2, 4, 1        # enum nps_task_class
NODE, OPERATOR, QUEUE = 10000, 50001, 50002

Row = dict[str, str]


class Capture:
    """A copy of one result: opening a database may write to it."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        target = Path(tempfile.mkdtemp(dir=scratch))
        for path in folder.glob("*.db"):
            shutil.copy(path, target)
            (target / path.name).chmod(0o600)
        self.db = sqlite3.connect(next(target.glob("ascend_*_profiler*.db")))
        self.analysis = sqlite3.connect(target / "analysis.db")
        self.strings = dict(self.db.execute("SELECT id, value FROM STRING_IDS"))

    def has(self, table: str) -> bool:
        """Whether analysis.db has rows of TABLE."""
        found = self.analysis.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        return bool(found) and self.analysis.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0

    def rows(self) -> Iterator[str]:
        """Lines for the program."""
        yield from self.host_rows()
        yield from self.device_rows()

    def host_rows(self) -> Iterator[str]:
        """Steps, calls and operators."""
        for number, start, end in self.db.execute("SELECT id, startNs, endNs FROM STEP_TIME ORDER BY startNs"):
            yield line("step", id=number, start=start, end=end)
        for start, end, kind, thread, connection in self.db.execute(
                "SELECT startNs, endNs, type, globalTid, connectionId FROM CANN_API ORDER BY startNs"):
            yield line("api", start=start, end=end, type=kind, gtid=thread, connection=connection)
        numbers = dict(self.db.execute("SELECT id, min(connectionId) FROM CONNECTION_IDS GROUP BY id"))
        for start, end, thread, connection, name, sequence, forward, kind in self.db.execute(
                "SELECT startNs, endNs, globalTid, connectionId, name, sequenceNumber, fwdThreadId, type"
                " FROM PYTORCH_API ORDER BY rowid"):
            yield line("torch", start=start, end=end, gtid=thread, name=self.strings[name], type=kind,
                       sequence=-1 if sequence is None else sequence, forward_tid=forward or 0,
                       correlation=numbers[connection] if kind == QUEUE else "")

    def device_rows(self) -> Iterator[str]:
        """Tasks and collectives."""
        for device, in self.db.execute("SELECT DISTINCT deviceId FROM TASK"):
            yield line("device", id=device)
        compute = {row for row, in self.db.execute("SELECT globalTaskId FROM COMPUTE_TASK_INFO")}
        parts = {row[0]: row[1:] for row in self.db.execute(
            "SELECT globalTaskId, taskType, planeId, rdmaType, srcRank, dstRank, transportType, size, linkType, opId"
            " FROM COMMUNICATION_TASK_INFO")}
        device = 0
        for number, (start, end, device, connection, task, kind) in enumerate(self.db.execute(
                "SELECT startNs, endNs, deviceId, connectionId, globalTaskId, taskType FROM TASK ORDER BY startNs")):
            group = COMPUTE if task in compute else COMM if task in parts else \
                MEMCPY if self.strings[kind] == "MEMCPY_ASYNC" else 0
            yield line("task", **{"start": start, "end": end, "device": device, "connection": connection,
                                  "class": group})
            if task in parts:
                kind, plane, rdma, src, dst, transport, size, link, op = parts[task]
                yield line("comm_task", task=number, type=self.strings[kind], plane=plane, rdma_type=rdma, src=src,
                           dst=dst, transport=transport, size=size, link=link, op=op)
        for name, start, end, connection, group, number in self.db.execute(
                "SELECT opName, startNs, endNs, connectionId, groupName, opId FROM COMMUNICATION_OP ORDER BY startNs"):
            yield line("comm_op", name=self.strings[name], start=start, end=end, connection=connection,
                       group=self.strings[group], id=number, device=device)

    def derive(self, *tables: str) -> list[Row]:
        """Rows of TABLES as the program derives them."""
        done = subprocess.run([PROGRAM, *tables], input="".join(self.rows()), capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        return [dict(field.split("=", 1) for field in row.split("\t")[1:]) for row in done.stdout.splitlines()]


def line(table: str, **columns: object) -> str:
    """A row as the program reads it."""
    return "\t".join([table, *(f"{name}={value}" for name, value in columns.items())]) + "\n"


def near(what: str, ours: object, theirs: object, tolerance: float) -> None:
    """Assert that two numbers agree."""
    assert abs(float(ours) - float(theirs)) <= tolerance, f"{what}: ours {ours}, theirs {theirs}"


def step_times(capture: Capture) -> None:
    """StepTraceTime to the ns (outputs 8, D10)."""
    columns = ("computing", "communication_not_overlapped", "overlapped", "communication", "free", "stage", "bubble",
               "communication_not_overlapped_and_exclude_receive", "preparing")
    names = ("computing", "not_overlapped", "overlapped", "communication", "free", "stage", "bubble",
             "exclude_receive", "preparing")
    theirs = capture.analysis.execute(f"SELECT step, {', '.join(columns)} FROM StepTraceTime").fetchall()
    ours = capture.derive("step_trace")
    assert [row["step"] for row in ours] == [row[0] for row in theirs]
    for mine, row in zip(ours, theirs):
        for name, value in zip(names, row[1:]):
            near(f"step {row[0]}, {name}", mine[name], value, 1e-6)


def links(capture: Capture) -> None:
    """CONNECTION_IDS; copies are links of ours only."""
    nodes = {row for row, in capture.db.execute("SELECT connectionId FROM CANN_API WHERE type = ?", (NODE,))}
    calls = {row for row, in capture.db.execute("SELECT connectionId FROM CANN_API")}
    theirs: dict[int, set[int]] = defaultdict(set)
    for number, connection in capture.db.execute("SELECT id, connectionId FROM CONNECTION_IDS"):
        theirs[number].add(connection)
    expected = [theirs[number] if number is not None else set()
                for number, in capture.db.execute("SELECT connectionId FROM PYTORCH_API ORDER BY rowid")]
    rows = capture.derive("torch")
    by_id: dict[str, set[int]] = defaultdict(set)
    for row in capture.derive("link"):
        by_id[row["id"]].add(int(row["connection"]))
    assert len(rows) == len(expected)
    for row, want in zip(rows, expected):
        have = by_id[row["connection"]] if row["connection"] else set()
        extra = {number for number in have - want if number in calls - nodes}
        assert have - extra == want, f"{row['name']} at {row['start']}: ours {sorted(have)}, theirs {sorted(want)}"


def nothing(capture: Capture) -> None:
    """Level 0 has of collectives only that they were there: there are no numbers to make from it."""
    assert capture.derive("comm_time", "comm_bandwidth", "comm_matrix") == []


def parts_of(capture: Capture) -> dict[str, int]:
    """How many tasks each collective has; each may be off by 1 ns, as the database cuts times off."""
    return dict(capture.db.execute(
        "SELECT s.value, count(*) FROM COMMUNICATION_TASK_INFO t JOIN COMMUNICATION_OP o USING (opId)"
        " JOIN STRING_IDS s ON s.id = o.opName GROUP BY opId"))


def comm_time(capture: Capture) -> None:
    """CommAnalyzerTime (J4, J6, J7)."""
    theirs = capture.analysis.execute(
        "SELECT hccl_op_name, group_name, step, type, start_timestamp, elapse_time, transit_time, wait_time,"
        " synchronization_time, idle_time FROM CommAnalyzerTime").fetchall()
    ours = capture.derive("comm_time")
    parts = parts_of(capture)
    assert [(row["op"], row["group"], row["step"], row["type"]) for row in ours] == [row[:4] for row in theirs]
    for mine, row in zip(ours, theirs):
        near(f"{row[0]} start", mine["start"], row[4], 50)
        near(f"{row[0]} elapse", mine["elapse"], row[5], 1.5e-6)
        for name, value in zip(("transit", "wait", "synchronization", "idle"), row[6:]):
            near(f"{row[0]} {name}", mine[name], value, parts[row[0]] * 1e-6)


def bandwidth(capture: Capture) -> None:
    """CommAnalyzerBandwidth."""
    theirs = capture.analysis.execute(
        "SELECT hccl_op_name, group_name, transport_type, step, type, package_size, count, large_packet_ratio,"
        " transit_size, transit_time, total_duration, bandwidth FROM CommAnalyzerBandwidth").fetchall()
    ours = capture.derive("comm_bandwidth")
    parts = parts_of(capture)
    keys = ("op", "group", "transport", "step", "type")
    assert [tuple(row[key] for key in keys) for row in ours] == [row[:5] for row in theirs]
    for mine, row in zip(ours, theirs):
        for name, value in zip(("package", "count", "large_ratio", "size"), row[5:]):
            assert float(mine[name]) == value, f"{row[:3]} {name}: ours {mine[name]}, theirs {value}"
        near(f"{row[:3]} time", mine["time"], row[9], parts[row[0]] * 1e-6)
        near(f"{row[:3]} total", mine["total"], row[10], parts[row[0]] * 1e-6)
        near(f"{row[:3]} bandwidth", mine["bandwidth"], row[11], row[11] * 1e-3 + 1e-4)


def matrix(capture: Capture) -> None:
    """CommAnalyzerMatrix."""
    theirs = capture.analysis.execute(
        "SELECT hccl_op_name, group_name, src_rank, dst_rank, transport_type, step, type, op_name, transit_size,"
        " transit_time, bandwidth FROM CommAnalyzerMatrix").fetchall()
    ours = capture.derive("comm_matrix")
    keys = ("op", "group", "src", "dst", "transport", "step", "type", "name")
    assert [tuple(row[key] for key in keys) for row in ours] == [row[:7] + (row[7] or "",) for row in theirs]
    for mine, row in zip(ours, theirs):
        assert float(mine["size"]) == row[8], f"{row[:4]} size: ours {mine['size']}, theirs {row[8]}"
        near(f"{row[:4]} time", mine["time"], row[9], 100e-6)
        near(f"{row[:4]} bandwidth", mine["bandwidth"], row[10], row[10] * 5e-3 + 1e-4)


def whole_json(capture: Capture) -> None:
    """CommAnalyzer* as JSON has what its rows have (J4)."""
    lines = []
    for table, name in (("CommAnalyzerTime", "comm_time"), ("CommAnalyzerBandwidth", "comm_bandwidth"),
                        ("CommAnalyzerMatrix", "comm_matrix")):
        rows = capture.analysis.execute(f"SELECT * FROM {table}")
        columns = [COLUMNS.get(column[0], column[0]) for column in rows.description]
        if table != "CommAnalyzerTime":
            columns = ["time" if column == "transit" else column for column in columns]
        lines += [line(name, **dict(zip(columns, ("" if value is None else value for value in row)))) for row in rows]
    times, matrix_file = (json.loads(text) for text in communication_files("".join(lines)))
    step = times["step50"]["collective"]
    keys = [f"{op}@{group}" for op, group in capture.analysis.execute("SELECT hccl_op_name, group_name"
                                                                     " FROM CommAnalyzerTime")]
    assert list(step) == keys + ["Total Op Info"]
    for row in capture.analysis.execute("SELECT hccl_op_name, group_name, transport_type, transit_size, package_size,"
                                        " count, total_duration FROM CommAnalyzerBandwidth"):
        info = step[f"{row[0]}@{row[1]}"]["Communication Bandwidth Info"][row[2]]
        assert info["Transit Size(MB)"] == row[3]
        assert not row[5] or info["Size Distribution"][repr(float(row[4]))] == [row[5], row[6]]
    count = capture.analysis.execute("SELECT count(*) FROM CommAnalyzerMatrix").fetchone()[0]
    assert sum(len(entry) for entry in matrix_file["step50"]["collective"].values()) == count


def communication_files(rows: str) -> tuple[str, str]:
    """communication.json and communication_matrix.json that our exporter makes of ROWS."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM, folder], input=rows, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (Path(folder) / "communication.json").read_text(), \
            (Path(folder) / "communication_matrix.json").read_text()


def rows_of_times(step: str, kind: str, name: str, op: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Rows of an entry of communication.json."""
    op_name, group = name.split("@")
    head = {"op": op_name, "group": group, "step": step, "type": kind}
    time = op["Communication Time Info"]
    yield line("comm_time", **head, start=time["Start Timestamp(us)"], elapse=time["Elapse Time(ms)"],
               transit=time["Transit Time(ms)"], wait=time["Wait Time(ms)"],
               synchronization=time["Synchronization Time(ms)"], idle=time["Idle Time(ms)"])
    for transport, info in op["Communication Bandwidth Info"].items():
        if not info["Transit Size(MB)"]:
            continue
        for package, (count, total) in (info["Size Distribution"] or {"0": (0, 0)}).items():
            yield line("comm_bandwidth", **head, transport=transport, size=info["Transit Size(MB)"],
                       time=info["Transit Time(ms)"], bandwidth=info["Bandwidth(GB/s)"],
                       large_ratio=info["Large Packet Ratio"], package=package, count=count, total=total)


def rows_of_matrix(step: str, kind: str, name: str, entry: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Rows of an entry of communication_matrix.json."""
    op_name, group = name.split("@")
    for link, info in entry.items():
        src, dst = link.split("-")
        yield line("comm_matrix", op=op_name, group=group, step=step, type=kind, src=src, dst=dst,
                   transport=info["Transport Type"], size=info["Transit Size(MB)"], time=info["Transit Time(ms)"],
                   bandwidth=info["Bandwidth(GB/s)"], name=info.get("Op Name", ""))


def same_bytes(folder: Path) -> None:
    """The vendor's communication files, taken apart and put together by our exporter."""
    texts = [(folder / name).read_text() for name in ("communication.json", "communication_matrix.json")]
    rows = []
    for text, rows_of in zip(texts, (rows_of_times, rows_of_matrix)):
        for step, kinds in json.loads(text).items():
            for kind, entries in kinds.items():
                rows += [row for name, entry in entries.items() if name != "Total Op Info"
                         for row in rows_of(step, kind, name, entry)]
    for ours, theirs in zip(communication_files("".join(rows)), texts):
        at = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
        assert ours == theirs, f"at {at}: ours {ours[at - 40:at + 40]!r}, theirs {theirs[at - 40:at + 40]!r}"


def any_order() -> None:
    """Bandwidth rows find their collective wherever they stand in their
    table, and those of none are left out."""
    chance = random.Random(7)
    times, bandwidths = [], []
    for number in range(3000):
        head = {"op": f"hcom_{number}", "group": number % 3, "step": f"step{chance.randrange(5)}",
                "type": chance.choice(("p2p", "collective"))}
        times.append(line("comm_time", **head, start=number, elapse=number / 8, transit=number / 16))
        transports = ("HCCS", "SDMA")[:chance.randrange(3)]
        bandwidths.append([line("comm_bandwidth", **head, transport=transport, size=number + 1, time=number + 2,
                                package=package, count=1, total=package)
                           for transport in transports for package in range(1, chance.randrange(2, 5))])
    stray = line("comm_bandwidth", op="hcom_stray", group=0, step="step0", type="p2p", transport="HCCS", size=9, time=9)
    in_order = communication_files("".join(times + [row for rows in bandwidths for row in rows]))
    chance.shuffle(bandwidths)
    columns = [[rows[i] for rows in bandwidths if i < len(rows)] for i in range(8)]
    scattered = communication_files("".join(times + [row for rows in columns for row in rows + [stray]]))
    assert in_order == scattered
    read = [op for step in json.loads(scattered[0]).values() for kind in step.values() for name, op in kind.items()
            if name != "Total Op Info"]
    buckets = [size for op in read for info in op["Communication Bandwidth Info"].values()
               for size in info["Size Distribution"].items()]
    assert len(read) == len(times) and len(buckets) == sum(map(len, bandwidths))


CHECKS = {"StepTraceTime": step_times, "CONNECTION_IDS": links}
COMM_CHECKS = {"CommAnalyzerTime": comm_time, "CommAnalyzerBandwidth": bandwidth, "CommAnalyzerMatrix": matrix,
               "communication.json": whole_json}
COLUMNS = {"hccl_op_name": "op", "group_name": "group", "start_timestamp": "start", "elapse_time": "elapse",
           "transit_time": "transit", "wait_time": "wait", "synchronization_time": "synchronization",
           "idle_time": "idle", "transport_type": "transport", "transit_size": "size",
           "large_packet_ratio": "large_ratio", "package_size": "package", "total_duration": "total",
           "src_rank": "src", "dst_rank": "dst", "op_name": "name"}


def main() -> int:
    """Check every capture."""
    tests = Tests()
    if PROGRAM.exists():
        tests.run("communication files of rows in any order", any_order)
    root = os.environ.get("NPUSCOPE_REFERENCE_DATA")
    folders = sorted(path.parent for path in Path(root).rglob("analysis.db")) if root else []
    folders = [folder for folder in folders if any(folder.glob("ascend_*_profiler*.db"))]
    texts = sorted(path.parent for path in Path(root).rglob("communication.json")) if root else []
    if not (folders or texts) or not PROGRAM.exists():
        reason = f"no {PROGRAM}: make unit" if folders or texts else \
            "NPUSCOPE_REFERENCE_DATA: a directory with databases of the vendor's profiler"

        def skip() -> None:
            raise Skip(reason)
        tests.run("derived from databases", skip)
        return tests.finish()
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            capture = Capture(folder, Path(scratch))
            name = "/".join(folder.relative_to(Path(root)).parts[-3:-1])
            checks = CHECKS | (COMM_CHECKS if capture.has("CommAnalyzerTime") else {"no CommAnalyzer": nothing})
            for what, check in checks.items():
                tests.run(f"{name} {what}", lambda check=check, capture=capture: check(capture))
    for folder in texts:
        name = "/".join(folder.relative_to(Path(root)).parts[-3:-1])
        tests.run(f"{name} communication files", lambda folder=folder: same_bytes(folder))
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
