#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables made from real databases are those that the documented rules give.

Each database of NPUSCOPE_REFERENCE_DATA is read twice: by `npuscope analyze`, and here with SQL and the rules
written down again. The tables are compared cell by cell, in both generations of the formats.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any, Optional

sys.dont_write_bytecode = True

from harness import ROOT, Skip, Tests  # noqa: E402

NPUSCOPE = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build")) / "npuscope"
NO_ID = 0xFFFFFFFF
MB = 1 << 20
Table = list[list[str]]

PIPES = ("mac", "scalar", "mte1", "mte2", "fixpipe"), ("vec", "scalar", "mte2", "mte3")
SHAPES = ["Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats"]
SHAPE_COLUMNS = "inputShapes", "inputDataTypes", "inputFormats", "outputShapes", "outputDataTypes", "outputFormats"
LEVELS = {5000: "runtime", 10000: "node", 15000: "model", 20000: "acl"}


def pmu_columns() -> list[tuple[str, str]]:
    """(name in the database, column) of PipeUtilization; every counter of it is in these captures."""
    out = []
    for core, title, pipes in (("aic", "aicore_time(us)", PIPES[0]), ("aiv", "aiv_time(us)", PIPES[1])):
        out += [(core + "_total_time", title), (core + "_total_cycles", core + "_total_cycles")]
        for pipe in pipes:
            out += [(f"{core}_{pipe}_time", f"{core}_{pipe}_time(us)"),
                    (f"{core}_{pipe}_ratio", f"{core}_{pipe}_ratio")]
        out.append((core + "_icache_miss_rate", core + "_icache_miss_rate"))
    return out


# ---- how cells are spelled ---------------------------------------------------------------------------------

def us(ns: int) -> str:
    """Three decimals."""
    return f"{ns // 1000}.{ns % 1000:03}"


def stamp(ns: Optional[int]) -> str:
    """An absolute time."""
    return "" if ns is None else us(ns) + "\t"


def short(text: str) -> str:
    """Without trailing zeros but one."""
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}"


def size(value: Optional[int], unit: int) -> str:
    """Bytes as a float of another unit."""
    return "" if value is None else repr(value / unit)


class Capture:
    """A database and what its tables have together."""

    def __init__(self, path: Path, late: bool) -> None:
        self.db = sqlite3.connect(path)
        self.db.row_factory = sqlite3.Row
        self.late = late
        self.strings: dict[int, str] = dict(tuple(row) for row in self.db.execute("SELECT id, value FROM STRING_IDS"))
        self.device = self.db.execute("SELECT deviceId FROM TASK LIMIT 1").fetchone()[0]
        self.compute = {row["globalTaskId"]: row for row in self.rows("COMPUTE_TASK_INFO")}
        self.comm_tasks = {row[0] for row in self.db.execute("SELECT globalTaskId FROM COMMUNICATION_TASK_INFO")}
        self.tasks = self.rows("TASK", "ORDER BY startNs")
        self.comm_ops = self.rows("COMMUNICATION_OP", "ORDER BY startNs")
        self.steps = self.rows("STEP_TIME")
        self.detailed = any(self.text(row["taskType"]) != "N/A" for row in self.compute.values())

    def rows(self, table: str, rest: str = "") -> list[sqlite3.Row]:
        """All rows, none if there is no such table."""
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return []
        return self.db.execute(f"SELECT * FROM {table} {rest}").fetchall()

    def text(self, ident: Optional[int]) -> str:
        """A text by its id."""
        return "" if ident is None else self.strings[ident]

    def span(self, text: str) -> str:
        """A number of CANN's tables: the early generation shortens it."""
        return text if self.late else short(text)

    def lead(self, *device: Any) -> list[str]:
        """Device_id of the late generation."""
        return [str(*device)] if self.late else []

    # ---- kernels -------------------------------------------------------------------------------------------

    def step_windows(self) -> list[tuple[int, int, str]]:
        """From the first kernel launched in a step to the end of the last one or of the step."""
        launched: dict[int, int] = {row["connectionId"]: row["startNs"] for row in self.rows("CANN_API")}
        kernels = [(row["startNs"], row["endNs"], launched.get(row["connectionId"], 0)) for row in self.tasks
                   if row["globalTaskId"] in self.compute]
        kernels += [(row["startNs"], row["endNs"], launched.get(row["connectionId"], 0)) for row in self.comm_ops]
        windows = []
        for step in self.steps:
            mine = [one for one in kernels if step["startNs"] <= one[2] < step["endNs"]]
            if mine:
                windows.append((min(one[0] for one in mine), max(step["endNs"], *(one[1] for one in mine)),
                                str(step["id"])))
        return windows

    def counters(self) -> dict[int, dict[str, float]]:
        """Counters by task."""
        out: dict[int, dict[str, float]] = defaultdict(dict)
        for row in self.rows("TASK_PMU_INFO"):
            out[row["globalTaskId"]][self.text(row["name"])] = row["value"]
        return out

    def counter_cells(self, values: dict[str, float]) -> list[str]:
        """The pivoted counters of one kernel."""
        cells = []
        for name, _ in pmu_columns():
            if name not in values:
                cells.append("N/A")
            elif name.endswith("_cycles"):
                cells.append(str(round(values[name])))
            else:
                cells.append(short(f"{values[name] / 1000 if name.endswith('_time') else values[name]:.3f}"))
        cycles = values.get("aic_total_cycles")
        zero = "0.000" if self.late else "0"
        return cells + ["N/A" if cycles is None else "?" if cycles else zero]

    def kernel_details(self) -> Table:
        """kernel_details; ? is a cell that the database does not know."""
        number = "Num" if self.late else "Dim"
        times = ["Start Time(us)", "Duration(us)", "Wait Time(us)"]
        counters = self.counters()
        windows = self.step_windows()
        head = ["Step Id"] + self.lead("Device_id")
        if self.detailed:
            head += ["Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core", *times,
                     f"Block {number}", f"Mix Block {number}", "HF32 Eligible", *SHAPES, "Context ID"]
            head += [column for _, column in pmu_columns()] + ["cube_utilization(%)"]
        else:
            head += ["Name", "Type", "Accelerator Core", *times, f"Block {number}"]
        merged = [(row["startNs"], 0, row) for row in self.tasks if row["globalTaskId"] in self.compute]
        merged += [(row["startNs"], 1, row) for row in self.comm_ops]
        merged.sort(key=lambda one: one[:2])
        table, before = [head], None
        for start, is_comm, row in merged:
            step = next((name for first, last, name in windows if first <= start < last), "")
            wait = "0" if before is None else self.span(us(max(0, start - before)))
            before = row["endNs"]
            timing = [stamp(start), self.span(us(row["endNs"] - start)), wait]
            cells = [step] + self.lead(self.device)
            if is_comm:
                core = "COMMUNICATION" if self.late else "HCCL"
                name, kind = self.text(row["opName"]), self.text(row["opType"])
                if self.detailed:
                    cells += [str(NO_ID), "N/A", "N/A", name, kind, "N/A", core, *timing, "0",
                              "0" if self.late else "N/A"]
                    cells += ["N/A"] * (len(head) - len(cells))
                else:
                    cells += [name, kind, core, *timing, "0"]
            else:
                info = self.compute[row["globalTaskId"]]
                name, kind, core = (self.text(info[key]) for key in ("name", "opType", "taskType"))
                if self.detailed:
                    context = "N/A" if row["contextId"] == NO_ID else str(row["contextId"])
                    cells += [str(row["modelId"]), str(row["taskId"]), str(row["streamId"]), name, kind, "N/A", core,
                              *timing, str(info["blockDim"]), str(info["mixBlockDim"]), "N/A"]
                    cells += [self.text(info[key]) for key in SHAPE_COLUMNS]
                    cells += [context, *self.counter_cells(counters.get(row["globalTaskId"], {}))]
                else:
                    cells += [name, kind, core, *timing, str(info["blockDim"])]
            table.append(cells)
        return table

    # ---- sums ----------------------------------------------------------------------------------------------

    def op_statistic(self) -> Table:
        """op_statistic."""
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row in self.tasks:
            if row["globalTaskId"] in self.compute:
                info = self.compute[row["globalTaskId"]]
                groups[self.text(info["opType"]), self.text(info["taskType"])].append(row["endNs"] - row["startNs"])
        total = sum(map(sum, groups.values()))
        table = [self.lead("Device_id") + ["OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)",
                                           "Avg Time(us)", "Max Time(us)", "Ratio(%)"]]
        for (kind, core), times in sorted(groups.items(), key=lambda one: (-sum(one[1]), one[0])):
            every = sum(times)
            table.append(self.lead(self.device) + [kind, core, str(len(times))] + [self.span(text) for text in (
                us(every), us(min(times)), f"{every / 1000 / len(times):.3f}", us(max(times)),
                f"{100 * every / total:.3f}")])
        return table

    def api_statistic(self) -> Table:
        """api_statistic."""
        levels = {**LEVELS, 5500: "communication" if self.late else "hccl"}
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row in self.rows("CANN_API"):
            groups[self.text(row["name"]), levels[row["type"]]].append(row["endNs"] - row["startNs"])
        table = [self.lead("Device_id")
                 + ["Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance"]]
        for (name, level), times in sorted(groups.items(), key=lambda one: (one[0][0].encode(), one[0][1])):
            every = sum(times)
            variance = statistics.pvariance([Fraction(time, 1000) for time in times])
            table.append(self.lead("host") + [level, name, self.span(us(every)), str(len(times))]
                         + [self.span(text) for text in (
                f"{every / 1000 / len(times):.3f}", us(min(times)), us(max(times)), f"{float(variance):.3f}")])
        return table

    def step_trace_time(self, analysis: Path) -> Table:
        """step_trace_time, from what the vendor derived."""
        table = [self.lead("Device_id") + [
            "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage",
            "Bubble",
            "Communication(Not Overlapped and Exclude Receive)", "Preparing"]]
        for row in sqlite3.connect(analysis).execute("SELECT * FROM StepTraceTime"):
            cells = [f"{value:.3f}" if self.late else repr(float(value)) for value in row[1:]]
            if not row[7]:
                cells[6] = "0"
            table.append(self.lead(self.device) + [row[0]] + cells)
        return table

    # ---- operators -----------------------------------------------------------------------------------------

    def device_times(self) -> dict[int, list[tuple[int, bool]]]:
        """(ns, it is AI_CORE's) of what ran because of a call, by connection."""
        out: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for row in self.tasks:
            ident, kind = row["globalTaskId"], self.text(row["taskType"])
            parent = ident not in self.compute and kind in ("AI_CORE", "KERNEL_AICORE")
            if ident in self.comm_tasks or parent:
                continue
            aicore = ident in self.compute and kind != "STARS_COMMON" and row["contextId"] == NO_ID
            out[row["connectionId"]].append((row["endNs"] - row["startNs"], aicore))
        for row in self.comm_ops:
            out[row["connectionId"]].append((row["endNs"] - row["startNs"], False))
        return out

    def copies(self, ops: list[sqlite3.Row]) -> dict[int, list[int]]:
        """ns of copies that no operator lists, by the number of the operator that ran them: the innermost one
        around the call, or what the queue's thread had taken out when it called was put in within."""
        listed = {row["connectionId"] for row in self.rows("CONNECTION_IDS")}
        numbers = {row["id"]: row["connectionId"] for row in self.rows("CONNECTION_IDS")}
        queue = [row for row in self.rows("PYTORCH_API", "WHERE type = 50002 AND connectionId IS NOT NULL")]
        calls = {row["connectionId"]: row for row in self.rows("CANN_API")}
        put = {numbers[row["connectionId"]]: row for row in queue if self.text(row["name"]).startswith("Enqueue")}
        dequeues = [row for row in queue if self.text(row["name"]).startswith("Dequeue")]
        out: dict[int, list[int]] = defaultdict(list)
        for task in self.tasks:
            call = calls.get(task["connectionId"])
            if self.text(task["taskType"]) != "MEMCPY_ASYNC" or task["connectionId"] in listed or call is None:
                continue
            thread, when = call["globalTid"], int(call["startNs"])
            inside = [row for row in dequeues if row["globalTid"] == thread
                      and int(row["startNs"]) <= when <= int(row["endNs"])]
            if inside:
                enqueue = put.get(numbers[max(inside, key=lambda row: int(row["startNs"]))["connectionId"]])
                if enqueue is None:
                    continue
                thread, when = enqueue["globalTid"], int(enqueue["startNs"])
            around = [n for n,
                      op in enumerate(ops) if op["globalTid"] == thread
                      and int(op["startNs"]) <= when <= int(op["endNs"])]
            if around:
                out[max(around, key=lambda n: (int(ops[n]["startNs"]), n))].append(task["endNs"] - task["startNs"])
        return out

    def shapes(self, row: dict[str, Any]) -> str:
        """torch_npu of early 2025 stored the types in the column of the
        shapes, and these in that of the types."""
        texts = [self.text(row[name]) for name in ("inputShapes", "inputDtypes")]
        return texts[1] if re.search("[A-Za-z]", texts[0] or "") else texts[0]

    def operator_details(self) -> Table:
        """operator_details."""
        links, frames = defaultdict(list), defaultdict(list)
        for row in self.rows("CONNECTION_IDS"):
            links[row["id"]].append(row["connectionId"])
        for row in self.rows("PYTORCH_CALLCHAINS", "ORDER BY id, stackDepth"):
            frames[row["id"]].append(self.text(row["stack"]))
        ran = self.device_times()
        ops: list[dict[str, Any]] = []
        open_ops: dict[int, list[dict[str, Any]]] = defaultdict(list)
        rows = self.rows("PYTORCH_API", "WHERE type = 50001 ORDER BY CAST(startNs AS INTEGER)")
        copies = self.copies(rows)
        for number, row in enumerate(rows):
            name, start, end = self.text(row["name"]), int(row["startNs"]), int(row["endNs"])
            if name.startswith("ProfilerStep#"):
                continue
            mine = [one for link in links.get(row["connectionId"], []) for one in ran.get(link, [])]
            own = [sum(ns for ns, _ in mine) + sum(copies.get(number, [])), sum(ns for ns, aicore in mine if aicore)]
            op = {"end": end, "children": 0, "own": own, "total": [0, 0], "ns": end - start, "name": name,
                  "shapes": self.shapes(row), "stack": ";\r\n".join(frames.get(row["callchainId"], []))}
            around = open_ops[row["globalTid"]]
            while around and around[-1]["end"] <= start:
                around.pop()
            if around:
                around[-1]["children"] += end - start
            around.append(op)
            for one in around:
                one["total"] = [one["total"][0] + own[0], one["total"][1] + own[1]]
            ops.append(op)
        table = [["Name", "Input Shapes", "Call Stack", "Host Self Duration(us)", "Host Total Duration(us)",
                  "Device Self Duration(us)", "Device Total Duration(us)", "Device Self Duration With AICore(us)",
                  "Device Total Duration With AICore(us)"]]
        for op in ops:
            device = [op["own"][0], op["total"][0], op["own"][1], op["total"][1]]
            table.append([op["name"], op["shapes"], op["stack"], repr((op["ns"] - op["children"]) / 1000),
                          repr(op["ns"] / 1000)]
                         + [repr(ns / 1000) if ns else "0" for ns in device])
        return table

    # ---- memory --------------------------------------------------------------------------------------------

    def operator_memory(self) -> Table:
        """operator_memory."""
        table = [["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)",
                  "Duration(us)",
                  "Active Duration(us)", *(f"{when} Total {what}(MB)" for when in ("Allocation", "Release")
                                           for what in ("Allocated", "Reserved", "Active")), "Stream Ptr",
                  "Device Type"]]
        for row in self.rows("OP_MEMORY"):
            cann = row["streamPtr"] is None
            times = [row[key] for key in ("duration", "activeDuration")]
            table.append(
                [("cann::" if cann else "") + self.text(row["name"]), size(row["size"], 1024)]
                + [stamp(row[key]) for key in ("allocationTime", "releaseTime", "activeReleaseTime")]
                + [short(us(ns)) if cann and ns is not None else stamp(ns) for ns in times]
                + [size(row[f"{when}Total{what}"], MB) for when in ("allocation", "release")
                   for what in ("Allocated", "Reserved", "Active")]
                + ["" if cann else str(row["streamPtr"]), f"NPU:{row['deviceId']}"])
        return table

    def memory_record(self) -> Table:
        """memory_record."""
        table = [["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)",
                  "Stream Ptr",
                  "Device Type"]]
        for row in self.rows("NPU_MEM"):
            if self.text(row["type"]) == "app":
                table.append(["APP", stamp(row["timestampNs"]), "", size(row["ddr"] + row["hbm"], MB), "", "",
                              f"NPU:{row['deviceId']}"])
        for row in self.rows("MEMORY_RECORD"):
            none = row["streamPtr"] is None
            table.append([self.text(row["component"]), stamp(row["timestamp"]), size(row["totalAllocated"], MB),
                          size(row["totalReserved"], MB), "" if none else size(row["totalActive"], MB),
                          "" if none else str(row["streamPtr"]), f"NPU:{row['deviceId']}"])
        return table

    def npu_module_mem(self) -> Table:
        """npu_module_mem."""
        names = dict(tuple(row) for row in self.db.execute("SELECT id, name FROM ENUM_MODULE"))
        names[74] = "AML"
        if self.late:
            names.update({2: "SCC", 5: "CCU", 11: "NET"})
        table = [self.lead("Device_id") + ["Component", "Timestamp(us)", "Total Reserved(MB)", "Device"]]
        for row in self.rows("NPU_MODULE_MEM", "ORDER BY moduleId, timestampNs"):
            table.append(self.lead(row["deviceId"]) + [names[row["moduleId"]], stamp(row["timestampNs"]),
                                                       size(row["totalReserved"], MB), f"NPU:{row['deviceId']}"])
        return table


# ---- the comparison ----------------------------------------------------------------------------------------

def read(path: Path) -> Table:
    """All cells of a file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def close(one: str, other: str) -> bool:
    """The same but for the last decimal."""
    try:
        return abs(float(one) - float(other)) <= 0.00101
    except ValueError:
        return False


def compare(name: str, written: Table, right: Table) -> None:
    """Cells of one table; sums of squares may differ in the last decimal."""
    assert written[0] == right[0], f"{name}: header {written[0]}, expected {right[0]}"
    assert len(written) == len(right), f"{name}: {len(written)} rows, expected {len(right)}"
    for number, (mine, expected) in enumerate(zip(written, right), 1):
        assert len(mine) == len(expected), f"{name} row {number}: {len(mine)} cells, expected {len(expected)}"
        for title, one, other in zip(right[0], mine, expected):
            same = one == other or other == "?" or (title == "Variance" and close(one, other))
            assert same, f"{name} row {number}: {title} is {one!r}, expected {other!r}"


def analyze(database: Path, generation: str, out: Path) -> Path:
    """The folder with the tables."""
    if not NPUSCOPE.exists():
        raise Skip(f"{NPUSCOPE} is not built")
    done = subprocess.run([NPUSCOPE, "analyze", "--export=text", f"--compat={generation}", "-o", out, database],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"analyze: exit status {done.returncode}: {done.stderr.strip()[-500:]}"
    found = list(out.rglob("kernel_details.csv"))
    assert len(found) == 1, f"{len(found)} results: {done.stderr.strip()[-500:]}"
    return found[0].parent


def check(database: Path, generation: str) -> None:
    """All tables of one database in one generation."""
    with tempfile.TemporaryDirectory(prefix="csv-from-db-") as scratch:
        source = Path(scratch) / "source"
        shutil.copytree(database.parent.parent, source / database.parent.parent.name)
        subprocess.run(["chmod", "-R", "u+w", source], check=True)
        copy = source / database.parent.parent.name / database.parent.name / database.name
        out = Path(scratch) / "out"
        out.mkdir()
        folder = analyze(copy, generation, out)
        capture = Capture(copy, generation == "b")
        right = {"kernel_details": capture.kernel_details(), "operator_details": capture.operator_details(),
                 "operator_memory": capture.operator_memory(), "memory_record": capture.memory_record(),
                 "npu_module_mem": capture.npu_module_mem(),
                 "step_trace_time": capture.step_trace_time(copy.parent / "analysis.db")}
        if capture.detailed:
            right.update(op_statistic=capture.op_statistic(), api_statistic=capture.api_statistic())
        else:
            for name in ("op_statistic", "api_statistic"):
                assert not (folder / f"{name}.csv").exists(), f"{name}.csv at level 0"
        wrong = []
        for name, table in right.items():
            try:
                assert (folder / f"{name}.csv").exists(), f"{name}.csv is missing"
                compare(name, read(folder / f"{name}.csv"), table)
            except AssertionError as error:
                wrong.append(str(error))
        assert not wrong, "\n  ".join(wrong)


def main() -> int:
    """Entry point."""
    tests = Tests()
    root = os.environ.get("NPUSCOPE_REFERENCE_DATA")
    found = sorted(Path(root).rglob("ascend_pytorch_profiler*.db")) if root else []

    def nothing() -> None:
        raise Skip("NPUSCOPE_REFERENCE_DATA names no databases")

    if not found:
        tests.run("tables from databases", nothing)
    for database in found:
        for generation in "ab":
            tests.run(f"{database.parent.parent.parent.name} {database.parent.parent.name} generation {generation}",
                      lambda path=database, gen=generation: check(path, gen))
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
