#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Analyse generated captures of every kind and hold all results to the formats' invariants.

Each result is checked by tools/conformance/check, in both generations of names, and its text is compared with
its databases by a reader of its own. NPUSCOPE names a program to use instead, NPS_BUILD another build
directory. Arguments choose captures by name.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple, Optional

from harness import ROOT, SOAK, Skip, Tests, execute

BUILD = Path(os.environ.get("NPS_BUILD", ROOT / "build"))
PROGRAM = Path(os.environ.get("NPUSCOPE", BUILD / "npuscope"))
GENERATOR = ROOT / "build" / "tests" / "gen-cann"
NONE = 0xFFFFFFFF
SLICE_ROWS = 1_000_000
# what a database without a task does not have: Insight shows empty lanes for them
NO_TASKS = """
CREATE TEMP TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, globalPid, taskType, contextId, streamId,
                        taskId, modelId);
CREATE TEMP TABLE COMPUTE_TASK_INFO (globalTaskId, name);
CREATE TEMP TABLE COMMUNICATION_TASK_INFO (globalTaskId, opId, srcRank, dstRank, size);
CREATE TEMP TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId);
CREATE TEMP TABLE OVERLAP_ANALYSIS (deviceId, startNs, endNs, type);
"""


class Case(NamedTuple):
    """A capture: options of the three generators; None: without."""
    name: str
    tasks: Optional[str] = None
    framework: Optional[str] = None
    aux: Optional[str] = None


CASES = [
    Case("level 2", "--tasks 800"),
    Case("level 1", "--tasks 500 --level 1 --pmu"),
    Case("level 0", "--tasks 500 --level 0"),
    Case("copies and events", "--tasks 800 --pmu --memcpy-every 7 --event-every 9 --aicpu-every 11"),
    Case("ffts", "--tasks 600 --ffts-every 3 --pmu --comm-ffts"),
    Case("ffts entries", "--tasks 600 --ffts-every 3 --ffts-parent --memcpy-every 9"),
    Case("graphs", "--tasks 600 --model 20 --step-trace"),
    Case("marks", "--tasks 600 --mstx-every 5 --threads 3"),
    Case("wrapping ids", f"--tasks {30000 if SOAK else 8000} --flip --level 0 --threads 1"),
    Case("chip 15", "--tasks 600 --chip 15 --pmu --memcpy-every 9"),
    Case("nasty names", "--tasks 600 --nasty-names --shapes --mstx-every 9 --bare-every 13"),
    Case("devices", "--tasks 900 --devices 3 --threads 6 --memcpy-every 9 --event-every 9"),
    Case("mangled", "--tasks 600 --mangle --straddle --no-done --host-counter none"),
    Case("no collectives", "--tasks 300 --comm-every 0 --threads 1 --streams 1"),
    Case("one kernel", "--tasks 1 --comm-every 0"),
    Case("side files", "--tasks 600 --pmu", aux=""),
    Case("side files 2.0", "--tasks 600 --aicpu-every 9", aux="--version2"),
    Case("framework", "--tasks 1200", "--task-queue --memory --python-stacks --gc --mstx"),
    Case("framework, no queue", "--tasks 900 --threads 2", ""),
    Case("framework, one thread", "--tasks 900 --threads 1 --level 1 --pmu", "--threads 1 --steps 1 --memory"),
    Case("framework, steps", "--tasks 2500 --threads 2 --memcpy-every 9 --mstx-every 11",
         "--steps 6 --task-queue --gc"),
    Case("framework, level 0", "--tasks 900 --level 0", "--task-queue --steps 3 --memory"),
    Case("framework, nasty", "--tasks 700 --nasty-names --shapes",
         "--nasty --task-queue --memory --python-stacks --gc --mstx"),
    Case("framework, side files", "--tasks 700 --pmu --memcpy-every 5", "--memory --task-queue", ""),
    Case("framework, devices", "--tasks 900 --devices 2", "--memory --task-queue --steps 2"),
    Case("framework, host only", None, "--task-queue --memory --python-stacks --gc --mstx --steps 3"),
]


# --- captures and results -----------------------------------------------------------------------------------

def run(*command: object, allowed: tuple[int, ...] = (0,)) -> str:
    """What a command prints; one that fails is a failed test."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise AssertionError(f"{Path(str(command[0])).name}: exit {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def capture(case: Case, where: Path) -> Path:
    """Generate a capture; what to analyse."""
    aux, prof = ROOT / "tests" / "cannraw_aux", None
    more: list[object] = []
    if case.tasks is not None:
        run(GENERATOR, *case.tasks.split(), "--truth", where / "tasks.jsonl", where / "cann")
        prof = next((where / "cann").glob("PROF_*"))
        more = ["--prof", prof, "--prof-truth", where / "tasks.jsonl"]
    if case.aux is not None:
        run(sys.executable, aux / "sidecars.py", prof, *case.aux.split())
    if case.framework is None:
        assert prof
        return prof
    run(sys.executable, aux / "framework.py", where / "torch", *more, *case.framework.split(),
        "--truth", where / "torch.jsonl")
    return where / "torch"


def analyse(source: Path, target: Path, generation: str, formats: str = "text,db,perfetto,folded") -> Path:
    """The result's folder; something in nasty captures cannot be read, which the exit status reports."""
    run(PROGRAM, "analyze", "--compat", generation, "--export", formats, "-o", target, source, allowed=(0, 3))
    results = [path for path in target.iterdir() if path.is_dir()]
    assert len(results) == 1, f"{len(results)} results"
    return results[0]


class Result:
    """The text of a result, read as plainly as possible, and its databases."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.prof = path.name.startswith("PROF_")
        self.out = path / ("mindstudio_profiler_output" if self.prof else "ASCEND_PROFILER_OUTPUT")
        self.more = path / "analyze" if self.prof else self.out
        self.db = sqlite3.connect(next((path if self.prof else self.out).glob(
            "msprof_*.db" if self.prof else "ascend_pytorch_profiler*.db")))
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'TASK'").fetchone():
            self.db.executescript(NO_TASKS)
        self.analysis = sqlite3.connect(self.more / "analysis.db") if (self.more / "analysis.db").exists() else None
        trace = next(self.out.glob("msprof_*.json" if self.prof else "trace_view.json"))
        self.events: list[dict[str, Any]] = json.loads(trace.read_text(encoding="utf-8"))
        self.process = {one["pid"]: one["args"]["name"] for one in self.events if one["name"] == "process_name"}
        self.lane = {(one["pid"], one["tid"]): one["args"]["name"] for one in self.events
                     if one["name"] == "thread_name"}

    def tables(self) -> set[str]:
        """Tables of the database."""
        return {name for name, in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def slices(self, *layers: str) -> list[dict[str, Any]]:
        """Slices of processes by name."""
        return [one for one in self.events if one["ph"] == "X" and self.process.get(one["pid"]) in layers]

    def csv(self, stem: str) -> Optional[list[dict[str, str]]]:
        """Rows of a CSV file without the TABs."""
        path = next(iter(self.out.glob(f"{stem}_[0-9]*.csv" if self.prof else f"{stem}.csv")), None)
        if not path:
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return [{key: cell.rstrip("\t") for key, cell in row.items()} for row in csv.DictReader(file)]


def ns(text: Any) -> int:
    """Nanoseconds of microseconds as text."""
    whole, _, part = str(text).strip().partition(".")
    return int(whole) * 1000 + (round(float("0." + part) * 1000) if part else 0)


def span(one: dict[str, Any]) -> tuple[int, int]:
    """Start and end of a slice."""
    start = ns(one["ts"])
    return start, start + ns(one["dur"])


def plain(name: str) -> str:
    """Blanks in names are not kept by CSV files."""
    return " ".join(name.split())


def same(what: str, text: Iterable[Any], db: Iterable[Any]) -> int:
    """Compare two bags; how many there were."""
    left, right = Counter(text), Counter(db)
    if left != right:
        raise AssertionError(f"{what}: only in the text {list((left - right).items())[:3]}, only in the database"
                             f" {list((right - left).items())[:3]}, {sum(left.values())} and {sum(right.values())}")
    return sum(left.values())


# --- text against database ----------------------------------------------------------------------------------

def tasks(result: Result) -> int:
    """Ascend Hardware and TASK; entries of graphs, whose parts are there, too, are in the database only."""
    text = [(one["pid"] & 31, one["tid"], one["args"]["Task Id"], one["args"]["Subtask Id"], *span(one))
            for one in result.slices("Ascend Hardware") if "Subtask Id" in one["args"]]
    rows = result.db.execute("SELECT deviceId, streamId, taskId, contextId, startNs, endNs FROM TASK").fetchall()
    parents = {row[:3] for row in rows if row[3] != NONE}
    return same("tasks", text, (row for row in rows if row[3] != NONE or row[:3] not in parents))


def calls(result: Result) -> int:
    """CANN and CANN_API; the profiler leaves the layer out at level 0."""
    text = [(one["tid"], one["args"]["level"], plain(one["name"].partition("@")[2]), one["args"]["connection_id"],
             *span(one)) for one in result.slices("CANN")]
    if not text:
        return 0
    return same("calls", text, ((tid, level, plain(name), link, start, end) for tid, level, name, link, start, end
                                in result.db.execute("SELECT globalTid & 4294967295, e.name, s.value, connectionId, "
                                                     "startNs, endNs"
                                                     " FROM CANN_API a JOIN STRING_IDS s ON s.id = a.name"
                                                     " JOIN ENUM_API_TYPE e ON e.id = a.type")))


def kernels(result: Result) -> int:
    """kernel_details or op_summary against the tables of computing tasks and collectives."""
    rows = result.csv("op_summary" if result.prof else "kernel_details") or []
    columns = ("Op Name", "Task Start Time(us)", "Task Duration(us)") if result.prof else \
        ("Name", "Start Time(us)", "Duration(us)")
    text = [(plain(row[columns[0]]), ns(row[columns[1]]), ns(row[columns[2]])) for row in rows]
    db = [(plain(name), start, end - start) for name, start, end in result.db.execute(
        "SELECT value, startNs, endNs FROM TASK JOIN COMPUTE_TASK_INFO c USING (globalTaskId) JOIN STRING_IDS ON id = "
        "c.name"
        " UNION ALL SELECT value, startNs, endNs FROM COMMUNICATION_OP JOIN STRING_IDS ON id = opName")]
    return same("kernels", text, db)


def collectives(result: Result) -> int:
    """The communication layer against COMMUNICATION_OP, its planes against COMMUNICATION_TASK_INFO."""
    layer = result.slices("Communication", "HCCL")
    planes = [one for one in layer if result.lane[one["pid"], one["tid"]].startswith("Plane")]
    layer_rows = [one for one in layer if not result.lane[one["pid"], one["tid"]].startswith("Plane")]
    count = same("collectives", ((one["name"], *span(one)) for one in layer_rows), result.db.execute(
        "SELECT value, startNs, endNs FROM COMMUNICATION_OP JOIN STRING_IDS ON id = opName"))
    if planes:
        same("tasks of collectives",
             ((one["args"]["src rank"], one["args"]["dst rank"], one["args"]["size(Byte)"], *span(one))
                                      for one in planes),
             result.db.execute("SELECT srcRank, dstRank, size, startNs, endNs FROM COMMUNICATION_TASK_INFO"
                               " JOIN TASK USING (globalTaskId)"))
    return count


def steps(result: Result) -> int:
    """step_trace_time against StepTraceTime, step marks against STEP_TIME."""
    if result.analysis is None:
        return 0
    # The database lacks what was not measured.
    rows = [row for row in result.csv("step_trace_time") or () if row["Computing"]]
    names = [name for name in rows[0] if name not in ("Device_id", "Step")] if rows else []
    if rows:
        query = result.analysis.execute("SELECT * FROM StepTraceTime")
        keyed = query.description[0][0] == "deviceId"
        same("rows of steps", ((row.get("Device_id", ""), row["Step"], *(ns(row[name]) if not row[name].startswith("-")
                                                                          else -ns(row[name][1:]) for name in names))
                               for row in rows),
             ((str(row[0]) if keyed else "", str(row[keyed] or ""), *(round(value * 1000) for value in row[keyed + 1:]))
              for row in query))
    marks = [one for one in result.slices("Python") if one["name"].startswith("ProfilerStep#")]
    db = result.db.execute("SELECT id, startNs, endNs FROM STEP_TIME").fetchall() if "STEP_TIME" in result.tables() \
        else []
    return same("step marks", ((int(one["name"][13:]), *span(one)) for one in marks), db)


def framework(result: Result) -> int:
    """Slices of Python against PYTORCH_API; generation A leaves an
    enqueued operator's name out of the text."""
    if "PYTORCH_API" not in result.tables():
        return 0
    kind = {"cpu_op": 50001, "enqueue": 50002, "dequeue": 50002, "python_function": 50003}
    text = [(kind[one["cat"]], one["tid"], "" if one["cat"] == "enqueue" else plain(one["name"]), *span(one))
            for one in result.slices("Python") if one.get("cat") in kind]
    db = [(kind, tid, "" if kind == 50002 and name.startswith("Enqueue") else plain(name), int(start), int(end))
          for kind, tid, name, start, end in result.db.execute(
              "SELECT type, globalTid & 4294967295, value, startNs, endNs FROM PYTORCH_API JOIN STRING_IDS ON id = name"
              " WHERE type != 50004")]
    return same("framework", text, db)


def memory(result: Result) -> int:
    """memory_record and operator_memory against their tables."""
    count = 0
    rows = result.csv("memory_record")
    if rows and not result.prof:
        count += same("records of memory",
                      ((row["Component"], ns(row["Timestamp(us)"]), round(float(row["Total Allocated(MB)"]) * 2 ** 20))
                                            for row in rows if row["Total Allocated(MB)"]),
                      result.db.execute("SELECT value, timestamp, totalAllocated FROM MEMORY_RECORD"
                                        " JOIN STRING_IDS ON id = component"))
    rows = result.csv("operator_memory")
    if rows and not result.prof:
        count += same("memory of operators", ((ns(row["Allocation Time(us)"]), round(float(row["Size(KB)"]) * 1024),
                                               ns(row["Duration(us)"]) if row["Duration(us)"] else None) for row in rows
                                              if not row["Name"].startswith("cann::")),
                      result.db.execute("SELECT allocationTime, size, duration FROM OP_MEMORY WHERE streamPtr IS NOT "
                                        "NULL"))
    return count


def communication(result: Result) -> int:
    """Values of communication.json and the matrix against the CommAnalyzer tables."""
    path = result.more / "communication.json"
    if not path.exists() or result.analysis is None:
        return 0
    times, links, widths = [], [], []
    fields = ("Start Timestamp(us)", "Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)",
              "Idle Time(ms)")
    for step, kind, name, value in _entries(path):
        op, _, group = name.partition("@")
        times.append((step, kind, op, group, *(round(value["Communication Time Info"][field], 6) for field in fields)))
        for transport, band in value["Communication Bandwidth Info"].items():
            for size, (count, time) in band["Size Distribution"].items():
                widths.append((step, kind, op, group, transport, round(float(size), 6), count, round(time, 6)))
    for step, kind, name, value in _entries(result.more / "communication_matrix.json"):
        op, _, group = name.partition("@")
        links += [(step, kind, op, group, link, one["Transport Type"], round(one["Transit Size(MB)"], 6),
                   round(one["Transit Time(ms)"], 6), one["Bandwidth(GB/s)"]) for link, one in value.items()]
    rounded = [lambda row: tuple(round(cell, 6) if isinstance(cell, float) else cell for cell in row)][0]
    query = result.analysis.execute
    same("times of collectives", times, map(rounded, query(
        "SELECT step, type, hccl_op_name, group_name, start_timestamp, elapse_time, transit_time, wait_time,"
        " synchronization_time, idle_time FROM CommAnalyzerTime")))
    same("packets of collectives", widths, map(rounded, query(
        "SELECT step, type, hccl_op_name, group_name, transport_type, package_size, count, total_duration"
        " FROM CommAnalyzerBandwidth WHERE count > 0")))
    return same("links", links, map(rounded, query(
        "SELECT step, type, hccl_op_name, group_name, src_rank || '-' || dst_rank, transport_type, transit_size,"
        " transit_time, bandwidth FROM CommAnalyzerMatrix")))


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    assert len(result) == len(pairs), f"a key occurs twice among {[key for key, _ in pairs][:10]}"
    return result


def _entries(path: Path) -> Iterable[tuple[str, str, str, Any]]:
    content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_twins)
    for step, kinds in content.items():
        for kind, ops in kinds.items():
            for name, value in ops.items():
                if name != "Total Op Info":
                    yield step, kind, name, value


COUNTERS = {"AI Core Freq": "AICORE_FREQ", "HBM": "HBM", "DDR": "DDR", "LLC": "LLC", "QoS": "QOS",
            "CPU Usage": "CPU_USAGE",
            "Memory Usage": "HOST_MEM_USAGE", "Network Usage": "HOST_NETWORK_USAGE", "Disk Usage": "HOST_DISK_USAGE",
            "HCCS": "HCCS", "PCIe": "PCIE", "NPU MEM": "NPU_MEM", "Acc PMU": "ACC_PMU",
            "Stars Soc Info": "SOC_BANDWIDTH_LEVEL"}


def counters(result: Result) -> int:
    """Moments of counters that the trace shows are in their tables, and the other way round."""
    moments: dict[str, set[int]] = {}
    for one in result.events:
        if one["ph"] == "C":
            moments.setdefault(result.process[one["pid"]], set()).add(ns(one["ts"]))
    for layer, table in COUNTERS.items():
        db = {when for when, in result.db.execute(f"SELECT timestampNs FROM {table}")} if table in result.tables() \
            else set()
        shown = moments.get(layer, set())
        # traces end the last frequency with the session, older ones in whole us
        if layer == "AI Core Freq":
            end = result.db.execute("SELECT endTimeNs FROM SESSION_TIME_INFO").fetchone()[0]
            shown -= {end, end // 1000 * 1000} - db
        assert shown == db, f"{layer}: only in the text {sorted(shown - db)[:3]}, only in {table} {sorted(db - shown)[:3]}"
    return sum(map(len, moments.values()))


def marks(result: Result) -> int:
    """MSTX_EVENTS against the host's marks; generation and domain decide
    on lanes, so only times are compared."""
    if "MSTX_EVENTS" not in result.tables():
        return 0
    text = [span(one) for one in result.events if one["ph"] == "X" and "event_type" in one.get("args", {})]
    return same("marks", text, result.db.execute("SELECT startNs, endNs FROM MSTX_EVENTS"))


COMPARISONS: list[Callable[[Result], int]] = [tasks, calls, kernels, collectives, steps, framework, memory,
                                              communication,
                                              counters, marks]


# --- arrows -------------------------------------------------------------------------------------------------

def arrows(result: Result, truth: Path) -> None:
    """From the innermost forward operator in the trace; the database has a pair of rows for each arrow."""
    rows = [json.loads(line) for line in truth.read_text(encoding="utf-8").splitlines()]
    ops = {row["i"]: row for row in rows if row["k"] == "op"}
    right = [(row["sequence"], ops[row["forward"]]["start_ns"], ops[row["backward"]]["start_ns"])
             for row in rows if row["k"] == "fwdbwd" and row["flow"]]
    ends = {"s": {}, "f": {}}
    for one in result.events:
        if one.get("cat") == "fwdbwd":
            ends[one["ph"]][one["id"]] = ns(one["ts"])
    same("arrows", right, ((ident, start, ends["f"].get(ident)) for ident, start in ends["s"].items()))


# --- slices -------------------------------------------------------------------------------------------------

def slices(where: Path) -> None:
    """More rows than a file of msprof may have: slices that count
    from 0, all with a header, none too long."""
    run(GENERATOR, "--tasks", SLICE_ROWS + 1000, "--level", 0, "--comm-every", 0, where)
    target = analyse(next(where.glob("PROF_*")), where / "out", "b", "text")
    for stem in ("op_summary", "task_time"):
        paths = sorted((target / "mindstudio_profiler_output").glob(f"{stem}_*.csv"))
        assert [re.sub(r"_\d{14}", "", path.name) for path in paths] == [f"{stem}_slice_0.csv",
                                                                         f"{stem}_slice_1.csv"], paths
        heads, counts, last = set(), [], 0
        for path in paths:
            with open(path, encoding="utf-8", newline="") as file:
                heads.add(file.readline())
                rows = [line.split("\t", 1)[0].rsplit(",", 1)[1] for line in file]
            counts.append(len(rows))
            assert ns(rows[0]) >= last, f"{path.name} begins before the slice before it ends"
            last = ns(rows[-1])
        assert len(heads) == 1, f"{stem}: headers {heads}"
        assert counts == [SLICE_ROWS, 1000], f"{stem}: {counts} rows"


def planes(where: Path) -> None:
    """Plane tasks for which a trace has no lane, and operators outside of
    steps: the checker has nothing against it."""
    source = capture(Case("planes", "--tasks 900", "--steps 4"), where)
    for path in source.rglob("*hccl_info*[0-9]"):
        data = bytearray(path.read_bytes())
        for at in range(64, len(data), 3 * 256):        # planeID of every third record
            data[at:at + 4] = (1000).to_bytes(4, "little")
        path.write_bytes(data)
    marks_of_steps, = source.rglob("torch.op_range")
    content = marks_of_steps.read_bytes()
    for name in re.findall(rb"ProfilerStep#\d+", content)[1:3]:
        content = content.replace(name, name.replace(b"Step", b"Stop"))
    marks_of_steps.write_bytes(content)
    result = analyse(source, where / "out", "b")
    done = execute("tools/conformance/check", result)
    assert done.returncode == 0, done.stdout
    assert "PASS J3" not in done.stdout, "there is nothing of that kind"


def mindspore(where: Path) -> None:
    """A directory that MindSpore named gets its database, not that of
    PyTorch, and the next analysis reads it."""
    source = capture(Case("mindspore", "--tasks 300", "--steps 2"), where)
    [source] = source.glob("*_ascend_pt")
    named = source.rename(where / source.name.replace("_ascend_pt", "_ascend_ms"))
    result = analyse(named, where / "out", "b", "text,db")
    assert result.name == named.name, result
    names = [path.name for path in result.rglob("*profiler*.db")]
    assert names == ["ascend_mindspore_profiler.db"] or \
        re.fullmatch(r"ascend_mindspore_profiler_[1-9]\d*\.db", names[0]), names
    again = analyse(result / "ASCEND_PROFILER_OUTPUT" / names[0], where / "again", "b", "db")
    assert [path.name for path in again.rglob("*profiler*.db")] == names, again


# --- the tests ----------------------------------------------------------------------------------------------

def conforming(case: Case, generation: str, result: Path) -> None:
    """The checker's word on a result, and a comparison of its text and databases."""
    # the generator's system calls of a thread overlap each other
    ignored = ["--ignore", "V8"] if case.aux is not None else []
    done = execute("tools/conformance/check", result, "--generation", generation.upper(), *ignored)
    bad = [line for line in done.stdout.splitlines() if line.startswith(("FAIL", "  "))]
    assert done.returncode == 0, "\n".join(["the checker found", *bad[:20], done.stderr[-300:]])
    view = Result(result)
    seen = {check.__name__: check(view) for check in COMPARISONS}
    wanted = {"tasks", "kernels"} if case.tasks is not None else set()
    wanted |= {"framework"} if case.framework is not None else set()
    wanted |= {"memory"} if "--memory" in (case.framework or "") else set()
    wanted |= {"counters"} if case.aux is not None else set()
    wanted |= {"marks"} if "--mstx-every" in (case.tasks or "") else set()
    assert all(seen[name] for name in wanted), f"nothing was compared: {seen}"
    for name in ("npuscope.pftrace", "npuscope.folded"):
        assert (view.out / name).stat().st_size or case.name == "one kernel", f"{name} is empty"


def main() -> int:
    """Entry point."""
    tests = Tests()

    def missing() -> None:
        raise Skip(f"{PROGRAM} or {GENERATOR} is missing: make all witnesses")

    if not PROGRAM.exists() or not GENERATOR.exists():
        tests.run("results", missing)
        return tests.finish()
    for case in CASES:
        if sys.argv[1:] and case.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="results-") as folder:
            where = Path(folder)
            made: list[Path] = []
            tests.run(f"{case.name}: generated", lambda: made.append(capture(case, where)), quiet_skip=True)
            for generation in "ba" if made else "":
                tests.run(f"{case.name}: generation {generation}", lambda: conforming(
                    case, generation, analyse(made[0], where / generation, generation)))
            truth = where / "torch.jsonl"
            if made and truth.exists() and "nasty" not in case.name:
                tests.run(f"{case.name}: arrows", lambda: arrows(Result(next((where / "b").iterdir())), truth))
    # build/tests/test_export_csv_msprof counts the rows of slices, too
    if SOAK if not sys.argv[1:] else "slices" in sys.argv[1:]:
        with tempfile.TemporaryDirectory(prefix="results-") as folder:
            tests.run("slices", lambda: slices(Path(folder)))
    for test in (planes, mindspore):
        if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
            with tempfile.TemporaryDirectory(prefix="results-") as folder:
                tests.run(test.__name__, lambda: test(Path(folder)))
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
