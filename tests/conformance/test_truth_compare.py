#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks tools/truth/compare on a small truth and results with known errors."""

from __future__ import annotations

import copy
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

sys.dont_write_bytecode = True

from harness import Tests, execute  # noqa: E402

PID, TID = 4242, 4243
RAW = 1_000_000_000
MONO = 5_000_000_000                    # mono = raw + 4 s
REAL = 1_736_000_000_000_000_000        # real at raw == RAW; runs 1000 ppm fast to catch plain offsets
WINDOW = {"begin_monotonic": MONO + 10_000_000, "end_monotonic": MONO + 900_000_000}

# name, aclnn, l0, API, offset of the launch in raw us
LAUNCHES = [
    ("MatMulV2_kernel", "aclnnMatmul", "MatMulV2", "aclnnMatmul", 5_000),           # before the window
    # phase 1 before the window
    ("MatMulV2_kernel", "aclnnMatmul", "MatMulV2", "aclnnMatmul", 10_050),
    ("MatMulV2_kernel", "aclnnMatmul", "MatMulV2", "aclnnMatmul", 20_000),
    ("plain_kernel", "-", "-", "aclrtLaunchKernel", 30_000),
    ("MEMCPY_ASYNC", "-", "-", "aclrtMemcpyAsync", 40_000),
    ("EVENT_RECORD", "-", "-", "aclrtRecordEvent", 50_000),
    ("NOTIFY_WAIT", "-", "-", "aclrtWaitAndResetNotify", 60_000),
    ("plain_kernel", "-", "-", "aclrtLaunchKernel", 120_000),
    ("plain_kernel", "-", "-", "aclrtLaunchKernel", 895_000),
    ("plain_kernel", "-", "-", "aclrtLaunchKernel", 950_000),                       # after the window
]
STEPS = [(3, 1_000, 9_000), (4, 15_000, 70_000), (5, 100_000, 150_000), (6, 890_000, 990_000)]
SPELLING = {"NOTIFY_WAIT": "Notify Wait"}
KERNEL = {"MatMulV2_kernel", "plain_kernel"}


def raw(us: int) -> int:
    """Raw ns of an offset in us."""
    return RAW + us * 1000


def real(us: int) -> int:
    """Unix ns of an offset in us."""
    return REAL + us * 1000 + us


def write_truth(folder: Path) -> None:
    """One process, written by hand from the constants above."""
    lines = [f"proc\t{PID}\t0\tdemo", "device\t0\t50000000\t123\t5.5"]
    for at in range(0, 1_100_000, 100_000):
        lines.append(f"clock\t{raw(at)}\t{raw(at) - RAW + MONO}\t{real(at)}")
    for index, (name, aclnn, l0, api, at) in enumerate(LAUNCHES):
        lines.append(f"launch\t{index}\t{TID}\t{api}\t{raw(at)}\t{raw(at + 20)}\t0\t2\t{index}\t0\t"
                     f"{name}\t{aclnn}\t{l0}")
        lines.append(f"task\t0\t2\t{index}\t0\t{index}\tSQE\t{raw(at + 10)}\t{raw(at + 100)}\t{raw(at + 150)}")
        if aclnn != "-":
            lines.append(f"op\t{TID}\t{aclnn}\t{0x1000 + index:x}\t1\t{raw(at - 100)}\t{raw(at - 50)}")
            lines.append(f"op\t{TID}\t{aclnn}\t{0x1000 + index:x}\t2\t{raw(at - 10)}\t{raw(at + 30)}")
    lines += [f"step\t{number}\t{raw(begin)}\t{raw(end)}" for number, begin, end in STEPS]
    (folder / f"truth.{PID}.tsv").write_text("\n".join(lines + ["end\texit"]) + "\n")


def perfect() -> dict[str, Any]:
    """Rows of a result that has exactly the truth of the window."""
    model: dict[str, Any] = {"tasks": [], "apis": [], "steps": [], "assigned": {}}
    for index, (name, aclnn, l0, _, at) in enumerate(LAUNCHES):
        if not 2 <= index <= 8:
            continue
        shown = f"{aclnn}_{l0}" if aclnn != "-" else SPELLING.get(name, name)
        model["apis"].append({"link": 100 + index, "start": real(at), "end": real(at + 20), "tid": TID,
                              "level": "node" if name in KERNEL else "acl", "name": "launch"})
        model["tasks"].append({"task": index, "link": 100 + index, "name": shown, "start": real(at + 100),
                               "end": real(at + 150), "kernel": name in KERNEL, "bounds": None})
    model["steps"] = [{"id": step[0], "start": real(step[1]), "end": real(after[1])}
                      for step, after in zip(STEPS[1:3], STEPS[2:4])]
    for task in model["tasks"]:
        at = LAUNCHES[task["task"]][4]
        task["step"] = next((str(n) for n, begin, end in STEPS[1:3] if begin <= at < end), "")
    return model


def us(ns: int) -> str:
    """Microseconds with three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def write_text(folder: Path, model: dict[str, Any]) -> None:
    """The model as trace_view.json and kernel_details.csv."""
    out = folder / f"host_{PID}_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    out.mkdir(parents=True)
    cann, device = PID << 10 | 7 << 5 | 31, PID << 10 | 14 << 5
    events: list[dict[str, Any]] = [
        {"name": "process_name", "pid": cann, "tid": 0, "args": {"name": "CANN"}, "ph": "M"},
        {"name": "process_name", "pid": device, "tid": 0, "args": {"name": "Ascend Hardware"}, "ph": "M"}]
    for api in model["apis"]:
        events.append({"name": f"Node@{api['name']}", "pid": cann, "tid": api["tid"], "ts": us(api["start"]),
                       "dur": (api["end"] - api["start"]) / 1000,
                       "args": {"level": api["level"], "connection_id": api["link"]}, "ph": "X"})
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num"]
    for task in model["tasks"]:
        args = {"Physic Stream Id": 2, "Task Id": task["task"], "connection_id": task["link"]}
        if task["bounds"]:
            args["time_source"] = "host bounds"
            names = ("start_low_us", "start_high_us", "end_low_us", "end_high_us")
            args.update({key: us(value) for key, value in zip(names, task["bounds"]) if value is not None})
        events.append({"name": task["name"], "pid": device, "tid": 2, "ts": us(task["start"]),
                       "dur": (task["end"] - task["start"]) / 1000, "args": args, "ph": "X"})
        if task["kernel"]:
            rows.append(f"{task['step']},{task['name']},N/A,N/A,{us(task['start'])}\t,1,0,0")
    for step in model["steps"]:
        events.append({"name": f"ProfilerStep#{step['id']}", "pid": PID, "tid": TID, "ts": us(step["start"]),
                       "dur": (step["end"] - step["start"]) / 1000, "args": {}, "ph": "X"})
    (out / "trace_view.json").write_text(json.dumps(events))
    (out / "kernel_details.csv").write_text("\n".join(rows) + "\n")


def write_db(folder: Path, model: dict[str, Any]) -> None:
    """The model as ascend_pytorch_profiler_0.db."""
    out = folder / f"host_{PID}_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    out.mkdir(parents=True)
    strings: dict[str, int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    db = sqlite3.connect(out / "ascend_pytorch_profiler_0.db")
    db.executescript("""
        CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);
        CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY,name TEXT);
        INSERT INTO ENUM_API_TYPE VALUES (10000,'node'),(20000,'acl');
        CREATE TABLE CANN_API (startNs,endNs,type,globalTid,connectionId INTEGER PRIMARY KEY,name);
        CREATE TABLE TASK (startNs,endNs,deviceId,connectionId,globalTaskId,globalPid,taskType,contextId,streamId,
                           taskId,modelId);
        CREATE TABLE COMPUTE_TASK_INFO (name,globalTaskId INTEGER PRIMARY KEY);
        CREATE TABLE STEP_TIME (id,startNs,endNs);
        CREATE TABLE NPUSCOPE_TASK_TIME (globalTaskId INTEGER PRIMARY KEY,source TEXT,startLowNs,startHighNs,endLowNs,
                                         endHighNs);""")
    for api in model["apis"]:
        db.execute("INSERT INTO CANN_API VALUES (?,?,?,?,?,?)",
                   (api["start"], api["end"], 10000 if api["level"] == "node" else 20000, PID << 32 | api["tid"],
                    api["link"], text(api["name"])))
    for number, task in enumerate(model["tasks"]):
        kind = "KERNEL_AICORE" if task["kernel"] else task["name"]
        db.execute("INSERT INTO TASK VALUES (?,?,0,?,?,?,?,4294967295,2,?,4294967295)",
                   (task["start"], task["end"], task["link"], number, PID, text(kind), task["task"]))
        if task["kernel"]:
            db.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (?,?)", (text(task["name"]), number))
        if task["bounds"]:
            db.execute("INSERT INTO NPUSCOPE_TASK_TIME VALUES (?,'host bounds',?,?,?,?)", (number, *task["bounds"]))
    db.executemany("INSERT INTO STEP_TIME VALUES (:id,:start,:end)", model["steps"])
    db.executemany("INSERT INTO STRING_IDS VALUES (?,?)", ((ident, value) for value, ident in strings.items()))
    db.commit()
    db.close()


def shift(index: int, ns: int) -> Callable[[dict[str, Any]], None]:
    """Move one task in time."""
    def change(model: dict[str, Any]) -> None:
        model["tasks"][index]["start"] += ns
        model["tasks"][index]["end"] += ns
    return change


def put(kind: str, index: int, **values: Any) -> Callable[[dict[str, Any]], None]:
    """Overwrite fields of one row."""
    return lambda model: model[kind][index].update(values)


def drop(kind: str, index: int) -> Callable[[dict[str, Any]], None]:
    """Remove one row."""
    return lambda model: model[kind].pop(index)


def extra(model: dict[str, Any]) -> None:
    """Append a task that never was."""
    model["tasks"].append({**model["tasks"][0], "task": 77})


def bounds(low: int, high: int) -> Callable[[dict[str, Any]], None]:
    """Make task 1 one whose time is only bounded, between the offsets LOW and HIGH us."""
    def change(model: dict[str, Any]) -> None:
        model["tasks"][1].update(start=real(low), end=real(low), bounds=(real(low), real(high), real(low), None))
    return change


SAME: dict[str, Any] = {}
# name, change, drops, expected exit status, expected numbers, forms
CASES: list[tuple[str, Callable[[dict[str, Any]], None], int, int, dict[str, Any], str]] = [
    ("perfect", lambda model: None, 0, 0, SAME, "text db"),
    ("perfect with drops", lambda model: None, 4, 0, {"dropped": 4}, "text db"),
    ("lost task", drop("tasks", 2), 0, 1, {"tasks_found": 6, "launches_found": 7}, "text db"),
    ("lost task, admitted", drop("tasks", 2), 3, 3, {"tasks_found": 6, "dropped": 3}, "text db"),
    ("lost last task", drop("tasks", 6), 0, 1, {"tasks_missing_last_100ms": 1, "tasks_found": 6}, "text db"),
    ("lost launch", drop("apis", 1), 0, 1, {"launches_found": 6}, "text db"),
    ("launch on another thread", put("apis", 1, tid=9), 0, 1, {"launches_found": 6}, "text db"),
    ("wrong connection", put("tasks", 1, link=105), 0, 1, {"launches_found": 6, "causality_violations": 1}, "text db"),
    ("invented task", extra, 0, 1, {"tasks_extra": 1, "tasks_found": 7}, "text db"),
    ("wrong name", put("tasks", 0, name="MatMulV2_kernel"), 0, 1, {"name_mismatches": 1}, "text db"),
    ("wrong SQE", put("tasks", 3, name="EVENT_WAIT"), 0, 1, {"name_mismatches": 1}, "text db"),
    ("late by 12 us", shift(5, 12_000), 0, 1, {"start_error_us_max": 12.0, "end_error_us_max": 12.0}, "text db"),
    ("late by 4 us", shift(5, 4_000), 0, 0, {"start_error_us_max": 4.0}, "text db"),
    ("starts before its launch", shift(5, -101_000), 0, 1, {"causality_violations": 1}, "text db"),
    ("bounds that hold", bounds(30_020, 30_500), 0, 0, {"bounds_tasks": 1, "bounds_violations": 0}, "text db"),
    ("bounds too late", bounds(30_120, 30_500), 0, 1, {"bounds_tasks": 1, "bounds_violations": 1}, "text db"),
    ("bounds too early", bounds(30_020, 30_090), 0, 1, {"bounds_violations": 1}, "text db"),
    ("lost step", drop("steps", 1), 0, 1, {"steps_found": 1}, "text db"),
    ("step end off by 7 us", put("steps", 1, end=real(890_007)), 0, 0, {"step_boundary_error_us_max": 7.007},
     "text db"),
    ("kernel in the wrong step", put("tasks", 1, step="5"), 0, 1, {"step_assignment_errors": 1}, "text"),
    ("kernel without its step", put("tasks", 1, step=""), 0, 1, {"step_assignment_errors": 1}, "text"),
    ("neither call nor step", put("tasks", 1, step="", link=999), 0, 1,
     {"steps_unknown": 1, "step_assignment_errors": 0}, "text"),
    ("neither call nor step, admitted", put("tasks", 1, step="", link=999), 3, 3,
     {"steps_unknown": 1, "step_assignment_errors": 0}, "text"),
    ("no call but the wrong step", put("tasks", 1, step="5", link=999), 3, 1,
     {"steps_unknown": 0, "step_assignment_errors": 1}, "text"),
]
GOOD = {"launches_expected": 7, "launches_found": 7, "tasks_expected": 7, "tasks_found": 7, "tasks_extra": 0,
        "name_mismatches": 0, "start_error_us_max": 0.0, "end_error_us_p99": 0.0, "causality_violations": 0,
        "steps_expected": 2, "steps_found": 2, "step_boundary_error_us_max": 0.0, "step_assignment_errors": 0,
        "steps_renumbered": 0, "steps_unknown": 0, "dropped": 0, "job_step_ms_before": 8.0, "job_step_ms_during": 52.5}


def check(change: Callable[[dict[str, Any]], None], drops: int, status: int, numbers: dict[str, Any],
          form: str) -> None:
    """Write a changed result, compare it, look at the numbers."""
    with tempfile.TemporaryDirectory(prefix="truth-test-") as scratch:
        folder = Path(scratch)
        write_truth(folder)
        model = copy.deepcopy(perfect())
        change(model)
        (write_text if form == "text" else write_db)(folder / "result", model)
        session = {"capture": WINDOW, "drops": {"ring": {"runtime": drops, "sched": 0}}}
        (folder / "session.json").write_text(json.dumps(session))
        done = execute("tools/truth/compare", "--truth", folder, "--result", folder / "result", "--session", folder,
                       "--json", folder / "out.json", "--format", form)
        assert done.returncode == status, f"exit {done.returncode}, expected {status}\n{done.stdout}{done.stderr}"
        report = json.loads((folder / "out.json").read_text())
        expected = {**(GOOD if numbers in ({}, {"dropped": drops}) else {}), **numbers}
        for key, value in expected.items():
            close = report[key] == value or isinstance(value, float) and abs(report[key] - value) < 1e-6
            assert close, f"{key} is {report[key]}, expected {value}"


def wrong_usage() -> None:
    """No truth file is a wrong use, not a failed comparison."""
    with tempfile.TemporaryDirectory(prefix="truth-test-") as scratch:
        done = execute("tools/truth/compare", "--truth", scratch, "--result", scratch)
        assert done.returncode == 2 and "no truth file" in done.stderr, done.stderr


def main() -> int:
    """Entry point."""
    tests = Tests()
    for name, change, drops, status, numbers, forms in CASES:
        for form in forms.split():
            tests.run(f"{name} ({form})", lambda: check(change, drops, status, numbers, form))
    tests.run("no truth", wrong_usage)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
