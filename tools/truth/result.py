# SPDX-License-Identifier: BSD-2-Clause
"""The content of a result: device tasks, their launches and steps, from text or db.

Both forms become the same rows, so that the comparison does not know which one it holds. All times are Unix
ns.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import sys
import tempfile
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Optional

sys.path.append(str(Path(__file__).resolve().parent.parent / "conformance"))
from tracefile import events, us_to_ns  # noqa: E402

NO_CONTEXT = 0xFFFFFFFF
HOST_BOUNDS = "host bounds"
SESSION_TASKS = ("PROFILING_ENABLE", "PROFILING_DISABLE")
_DB_NAME = re.compile(r"ascend_pytorch_profiler(_\d{1,16})?\.db")


class Api(NamedTuple):
    """A host call: one row of CANN_API or one slice of the CANN layer."""
    tid: int
    start: int
    end: int
    level: str
    name: str


class Bounds(NamedTuple):
    """Bounds of a task without measured times; None is open."""
    start_low: Optional[int]
    start_high: Optional[int]
    end_low: Optional[int]
    end_high: Optional[int]


@dataclass
class DeviceTask:
    """One device task as exported."""
    device: int
    stream: int
    task: int
    name: str
    start: int
    end: int
    connection: int
    context: int = NO_CONTEXT
    source: str = ""
    bounds: Optional[Bounds] = None
    kernel: bool = False
    step: Optional[str] = None
    error: Optional[int] = None         # ns that the clock may be off in either direction, by the result


class ResultStep(NamedTuple):
    """A step; times are None if only its number was exported."""
    ident: str
    start: Optional[int]
    end: Optional[int]


@dataclass
class Result:
    """Everything of one process in one result folder."""
    path: Path
    form: str
    pid: int = 0
    tasks: list[DeviceTask] = field(default_factory=list)
    apis: dict[int, Api] = field(default_factory=dict)
    steps: list[ResultStep] = field(default_factory=list)


class ResultError(ValueError):
    """A result folder that cannot be read."""


def find_folders(root: Path) -> list[Path]:
    """ROOT itself, or the result folders below it."""
    if _files(root, "db") or _files(root, "text"):
        return [root]
    return sorted(path for path in root.rglob("*_ascend_pt") if path.is_dir())


def load(root: Path, form: str) -> Iterator[Result]:
    """Read every result below ROOT; FORM (db, text) is preferred, the other is the fallback."""
    for folder in find_folders(root):
        for kind in (form, "text" if form == "db" else "db"):
            files = _files(folder, kind)
            if files:
                reader = _read_db if kind == "db" else _read_text
                for path in files:
                    result = reader(folder, path)
                    result.pid = result.pid or _pid_of_name(folder)
                    if _steps_were_found(folder):
                        _forget_steps(result)
                    yield result
                break


def _steps_were_found(folder: Path) -> bool:
    """Do its steps come from what repeats in the launches? Then they are not the job's own, nor have its
    numbers."""
    path = folder / "profiler_metadata.json"
    if not path.is_file():
        return False
    own = json.loads(path.read_text(encoding="utf-8")).get("npuscope") or {}
    return isinstance(own, dict) and own.get("step_source") == "period"


def _forget_steps(result: Result) -> None:
    result.steps = []
    for task in result.tasks:
        task.step = None


def _files(folder: Path, form: str) -> list[Path]:
    for below in (folder / "ASCEND_PROFILER_OUTPUT", folder):
        if form == "text":
            found = [path for path in (below / "trace_view.json",) if path.is_file()]
        else:
            found = sorted(path for path in below.glob("*.db") if _DB_NAME.fullmatch(path.name))
        if found:
            return found
    return []


def _pid_of_name(folder: Path) -> int:
    match = re.fullmatch(r".*_(\d+)_\d{14,17}_ascend_pt", folder.name)
    return int(match.group(1)) if match else 0


# ---- db ----

def _read_db(folder: Path, path: Path) -> Result:
    result = Result(folder, "db")
    with tempfile.TemporaryDirectory(prefix="truth-") as scratch:
        copy = Path(scratch) / path.name
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        connection = sqlite3.connect(copy)
        try:
            _fill_from_db(result, connection)
        except sqlite3.Error as error:
            raise ResultError(f"{path}: {error}") from None
        finally:
            connection.close()
    _steps_from_launches(result)
    _steps_from_csv(result, folder)
    return result


def _fill_from_db(result: Result, db: sqlite3.Connection) -> None:
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def rows(table: str, query: str) -> Iterator[tuple[Any, ...]]:
        return iter(db.execute(query)) if table in tables else iter(())

    strings = dict(rows("STRING_IDS", "SELECT id, value FROM STRING_IDS"))
    levels = dict(rows("ENUM_API_TYPE", "SELECT id, name FROM ENUM_API_TYPE"))
    kernels = dict(rows("COMPUTE_TASK_INFO", "SELECT globalTaskId, name FROM COMPUTE_TASK_INFO"))
    times = {row[0]: row[1:] for row in rows(
        "NPUSCOPE_TASK_TIME",
        "SELECT globalTaskId, source, startLowNs, startHighNs, endLowNs, endHighNs FROM NPUSCOPE_TASK_TIME")}
    errors = _clock_errors(rows("NPUSCOPE_CLOCK", "SELECT deviceId, startNs, endNs, errorNs FROM NPUSCOPE_CLOCK"
                                " ORDER BY deviceId, startNs"))
    pids: dict[int, int] = defaultdict(int)
    for start, end, kind, tid, link, name in rows(
            "CANN_API", "SELECT startNs, endNs, type, globalTid, connectionId, name FROM CANN_API"):
        result.apis[link] = Api(tid & 0xFFFFFFFF, start, end, levels.get(kind, ""), strings.get(name, ""))
        pids[tid >> 32] += 1
    for start, end, device, link, ident, pid, kind, context, stream, task in rows(
            "TASK", "SELECT startNs, endNs, deviceId, connectionId, globalTaskId, globalPid, taskType, contextId,"
            " streamId, taskId FROM TASK"):
        name = strings.get(kernels.get(ident, kind), "?")
        source, *bounds = times.get(ident, ("",))
        result.tasks.append(DeviceTask(device, stream, task, name, start, end, link, context, source,
                                       Bounds(*bounds) if source == HOST_BOUNDS else None, ident in kernels,
                                       error=errors(device, start)))
        pids[pid] += 1
    if pids:
        result.pid = max(pids, key=pids.__getitem__)
    result.steps = [ResultStep(str(ident), start, end) for ident, start, end in rows(
        "STEP_TIME", "SELECT id, startNs, endNs FROM STEP_TIME")]


def _clock_errors(rows: Iterator[tuple[Any, ...]]) -> Callable[[int, int], Optional[int]]:
    """A function that returns the error of the clock on a device at a time, by the result."""
    lanes: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for device, start, end, error in rows:
        lanes[device].append((start, end, error))

    def at(device: int, time: int) -> Optional[int]:
        lane = lanes.get(device, [])
        index = bisect_right(lane, (time, time, 1 << 63)) - 1
        return lane[index][2] if index >= 0 and time <= lane[index][1] else None
    return at


def _steps_from_launches(result: Result) -> None:
    """A database has no step per kernel: it is the step in which the launch began."""
    steps = sorted(result.steps, key=lambda step: step.start)
    starts = [step.start for step in steps]
    for task in result.tasks:
        api = result.apis.get(task.connection)
        if not task.kernel or not api or not steps:
            continue
        index = bisect_right(starts, api.start) - 1
        task.step = steps[index].ident if index >= 0 and api.start < steps[index].end else ""


# ---- text ----

def _read_text(folder: Path, path: Path) -> Result:
    result = Result(folder, "text")
    process: dict[Any, str] = {}
    slices: list[tuple[Any, ...]] = []
    starts: list[tuple[Any, ...]] = []
    for event in events(path):
        phase = event.get("ph")
        if phase == "X":
            args = event.get("args")
            name = event.get("name", "")
            if args and ("Physic Stream Id" in args or "level" in args) or name.startswith("ProfilerStep#"):
                slices.append((event.get("pid"), event.get("tid"), name, us_to_ns(event["ts"]),
                               us_to_ns(event.get("dur", 0)), args))
        elif phase == "s" and event.get("cat") == "HostToDevice":
            starts.append((event.get("tid"), us_to_ns(event["ts"]), event.get("id")))
        elif phase == "M" and event.get("name") == "process_name":
            process[event.get("pid")] = event["args"]["name"]
    pids: dict[int, int] = defaultdict(int)
    for pid, tid, name, start, length, args in slices:
        layer = process.get(pid, "")
        if layer == "Ascend Hardware":
            result.tasks.append(_task_of_slice(pid, tid, name, start, start + length, args))
            pids[int(pid) >> 10] += 1
        elif layer == "CANN":
            api = name.partition("@")[2]
            result.apis[args.get("connection_id", -len(result.apis))] = Api(
                tid, start, start + length, args.get("level", ""), api)
            pids[int(pid) >> 10] += 1
        elif name.startswith("ProfilerStep#"):
            result.steps.append(ResultStep(name.partition("#")[2], start, start + length))
    if not result.apis:
        _apis_of_flows(result, starts)
    if pids:
        result.pid = max(pids, key=pids.__getitem__)
    _steps_from_csv(result, folder)
    return result


def _task_of_slice(pid: Any, tid: Any, name: str, start: int, end: int, args: dict[str, Any]) -> DeviceTask:
    source = args.get("time_source", "")
    bounds = None
    if source == HOST_BOUNDS:
        bounds = Bounds(*(us_to_ns(args[key]) if args.get(key) is not None else None
                          for key in ("start_low_us", "start_high_us", "end_low_us", "end_high_us")))
    return DeviceTask(int(pid) & 0x1F, int(tid), int(args["Task Id"]), name, start, end,
                      args.get("connection_id", -1), args.get("Subtask Id", NO_CONTEXT), source, bounds,
                      error=us_to_ns(args["clock_error_us"]) if "clock_error_us" in args else None)


def _apis_of_flows(result: Result, starts: list[tuple[Any, ...]]) -> None:
    """Level 0 has no CANN slices: the flow starts are all that is left of the launches."""
    for tid, start, ident in starts:
        number = int(ident)
        if number >= 1 << 32 and number & NO_CONTEXT == 0:
            number >>= 32
        result.apis[number] = Api(tid, start, start, "flow", "launch")


def _steps_from_csv(result: Result, folder: Path) -> None:
    """Read kernels and their steps from kernel_details.csv, where there is one."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    steps = output / "step_trace_time.csv"
    if not result.steps and steps.is_file():
        with open(steps, newline="", encoding="utf-8") as file:
            result.steps = [ResultStep(row["Step"], None, None) for row in csv.DictReader(file) if row.get("Step")]
    kernels = output / "kernel_details.csv"
    if not kernels.is_file():
        return
    index = {(task.name, task.start): task for task in result.tasks}
    with open(kernels, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            task = index.get((row["Name"], us_to_ns(row["Start Time(us)"].strip())))
            if task:
                task.kernel = True
                task.step = row.get("Step Id")
