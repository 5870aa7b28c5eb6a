#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Traces as people hand them on: in slices, through links, one of many ranks
damaged, of several nodes with one name.

    test_trace_inputs.py [NAME...]
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

sys.dont_write_bytecode = True

from harness import ROOT, Skip, Tests  # noqa: E402

PROGRAM = ROOT / "build" / "npuscope"
DONE, FAILED, USAGE, PARTIAL = 0, 1, 2, 3
JOB, START = 5000, 1_750_000_000_000_000
TESTS: list[Callable[[Path], None]] = []


def test(function: Callable[[Path], None]) -> Callable[[Path], None]:
    TESTS.append(function)
    return function


# --- traces -------------------------------------------------------------------------------------------------

def layer(name: str, index: int, device: int | None = None, job: int = JOB) -> tuple[int, list[dict[str, Any]]]:
    """A process of the vendor's trace: its number and the events that name it."""
    pid = job if name == "Python" else job << 10 | index << 5 | (device or 0)
    metadata = {"process_name": {"name": name}, "process_sort_index": {"sort_index": index},
            "process_labels": {"labels": "CPU" if device is None else f"NPU {device}"}}
    return pid, [{"ph": "M", "name": key, "pid": pid, "tid": 0, "args": args} for key, args in metadata.items()]


def event(name: str, pid: int, tid: int, us: float, dur: float, **args: Any) -> dict[str, Any]:
    cat = {"cat": "cpu_op"} if pid == JOB else {}
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{START + us:.3f}", "dur": dur, "args": args, **cat}


def trace(kernels: int = 12, device: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What names the processes, and the events: operators, their calls,
    kernels, two steps and two collectives."""
    python, heads = layer("Python", 0)
    cann, more = layer("CANN", 1)
    hardware, last = layer("Ascend Hardware", 5, device)
    group, named = layer("Communication", 7, device)
    heads += more + last + named
    heads.append({"ph": "M", "name": "thread_name", "pid": group, "tid": 0, "args": {"name": "Group 0 Communication"}})
    events = []
    for i in range(kernels):
        at = i * 100
        events += [event("aten::mm", python, 7, at, 40),
                   event("AscendCL@aclnnMatmul", cann, 7, at + 5, 20, connection_id=i),
                   event(f"aclnnMatmul_MatMulV{i % 2}", hardware, 3, at + 30, 50,
                         **{"Task Type": "AI_CORE", "Stream Id": 3, "Task Id": i, "connection_id": i})]
    half = kernels * 50
    for step in (1, 2):
        begin = (step - 1) * half
        events += [event(f"ProfilerStep#{step}", python, 7, begin, half),
                   event(f"hcom_allReduce__123_{step}_1", group, 0, begin + half - 20, 15, connection_id=500 + step,
                         count=64)]
    return heads, sorted(events, key=lambda e: e["ts"])


def write(path: Path, events: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(events))
    return path


def rank(where: Path, number: int, events: list[dict[str, Any]] | None = None) -> Path:
    """A result of the PyTorch profiler that came as text only."""
    folder = where / f"r{number}_ascend_pt"
    write(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json",
          sum(trace(device=number), []) if events is None else events)
    (folder / f"profiler_info_{number}.json").write_text("{}")
    return folder


# --- the program --------------------------------------------------------------------------------------------

def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)


def shown(*paths: object, status: int = DONE) -> list[dict[str, Any]]:
    """The results of `show --json`."""
    done = run("show", "--json", *paths)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)["results"]


def capture(result: dict[str, Any], key: str) -> Any:
    return result["capture"].get(key)


# --- slices -------------------------------------------------------------------------------------------------

def sliced(where: Path, stem: str, end: str = "_20250101010102.json") -> list[Path]:
    """A trace in three slices, of which the first alone names the processes;
    ten before two by name, not by number."""
    heads, events = trace()
    third = len(events) // 3
    return [write(where / f"{stem}_slice_{n}{end}", part) for n, part in (
        (2, heads + events[:third]), (9, events[third:2 * third]), (10, events[2 * third:]))]


@test
def slices_are_one_result(where: Path) -> None:
    for stem in ("msprof", "trace_view"):
        paths = sliced(where / stem / "PROF_1" / "mindstudio_profiler_output", stem)
        for words in ([where / stem], paths, [paths[2]]):
            (result,) = shown(*words)
            assert capture(result, "kernels") == 12 and capture(result, "steps") == 2, result["capture"]
            assert capture(result, "torch_operators") == 14, result["capture"]


@test
def slices_of_two_traces(where: Path) -> None:
    """Those of one time are not those of another."""
    sliced(where, "msprof")
    sliced(where, "msprof", "_20250101010103.json")
    assert [capture(result, "kernels") for result in shown(where)] == [12, 12]


# --- links and ranks ----------------------------------------------------------------------------------------

@test
def ranks_behind_links(where: Path) -> None:
    store, cluster = where / "store", where / "cluster"
    cluster.mkdir()
    for number in (0, 1):
        (cluster / f"r{number}_ascend_pt").symlink_to(rank(store, number))
    assert [result["capture"]["rank"] for result in shown(cluster)] == [0, 1]
    (cluster / "loop").symlink_to(cluster)
    (cluster / "whole").symlink_to("/")
    (cluster / "nowhere").symlink_to("nothing")
    assert [result["capture"]["rank"] for result in shown(cluster)] == [0, 1]
    inside = where / "inside" / "r2_ascend_pt"
    inside.mkdir(parents=True)
    (inside / "ASCEND_PROFILER_OUTPUT").symlink_to(store / "r0_ascend_pt" / "ASCEND_PROFILER_OUTPUT")
    assert len(shown(where / "inside")) == 1
    file = where / "file" / "r3_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    file.mkdir(parents=True)
    (file / "trace_view.json").symlink_to(store / "r0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")
    assert len(shown(where / "file")) == 1


@test
def one_rank_is_empty(where: Path) -> None:
    """The others are shown: that is not nothing."""
    rank(where, 0)
    broken = rank(where, 1) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    broken.write_text("")
    (result,) = shown(where, status=PARTIAL)
    assert result["capture"]["rank"] == 0
    assert run("show", broken).returncode == FAILED


def database(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as db:
        db.executescript("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);"
                         "INSERT INTO STRING_IDS VALUES(0,'KERNEL_AICORE'),(1,'Mul'),(2,'AI_CORE');"
                         "CREATE TABLE TASK "
                         "(startNs,endNs,deviceId,connectionId,globalTaskId,globalPid,taskType,contextId,"
                         "streamId,taskId,modelId);"
                         "CREATE TABLE COMPUTE_TASK_INFO (name,globalTaskId,blockNum,mixBlockNum,taskType,opType);"
                         "INSERT INTO TASK VALUES(1750000000000000000,1750000000000050000,0,7,70,1,0,4294967295,0,0,0);"
                         "INSERT INTO COMPUTE_TASK_INFO VALUES(1,70,1,1,2,1);")
    return path


@test
def two_nodes_have_one_name(where: Path) -> None:
    """The result of the first node is not replaced by that of the
    second; the same input again is no other."""
    out, node = where / "out", {n: where / f"node{n}" for n in (1, 2)}
    for folder in node.values():
        database(folder / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_2.db")
    assert run("analyze", "-o", out, *node.values()).returncode == USAGE
    assert run("analyze", "-o", out, node[1]).returncode == PARTIAL  # it lacks columns
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    done = run("analyze", "-o", out, node[2])
    assert done.returncode == FAILED and str(node[1]) in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert run("analyze", "-o", out, node[1]).returncode == PARTIAL
    assert run("analyze", "-o", where / "other", node[2]).returncode == PARTIAL


@test
def one_database_is_broken(where: Path) -> None:
    good = database(where / "a_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db")
    bad = database(where / "b_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_1.db")
    bad.write_bytes(b"no database at all")
    done = run("analyze", "-o", where / "out", where)
    assert done.returncode == PARTIAL, (done.returncode, done.stderr)
    assert (where / "out" / "a_ascend_pt").is_dir(), good
    assert run("analyze", "-o", where / "none", bad.parent.parent).returncode == FAILED


# --- steps --------------------------------------------------------------------------------------------------

@test
def steps_without_work(where: Path) -> None:
    """A step of which no launch is known has its collective; one without any work takes its time."""
    heads, events = trace()
    second = [e for e in events if e["pid"] == JOB or e["ts"] < f"{START + 600:.3f}" or "hcom" in e["name"]]
    (result,) = shown(write(where / "trace_view.json", heads + second))
    rows = {row["step"]: row for row in result["steps"]["rows"]}
    assert rows["2"]["communication_us"] == 15, rows
    (result,) = shown(write(where / "trace_view.json", heads + [e for e in second if "_2_1" not in e["name"]]))
    rows = {row["step"]: row for row in result["steps"]["rows"]}
    assert rows["2"]["total_us"] == 600 and rows["2"]["free_us"] == 600, rows


# --- tables beside a trace ----------------------------------------------------------------------------------

KERNELS = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim,Input Shapes,Input Data Types,Input Formats"


@test
def tables_beside_a_trace(where: Path) -> None:
    """The types, shapes, memory and waits are in the tables; what is wrong in them is counted."""
    folder = rank(where, 0) / "ASCEND_PROFILER_OUTPUT"
    rows = [f'aclnnMatmul_MatMulV{i % 2},Mat"Mul{i % 3},AI_VECTOR_CORE,{START + i * 100 + 30}.000\t,50.0,20,'
            f'"""{i},2""",FLOAT,ND'
            for i in range(11)]
    rows = [row.replace('Mat"Mul', '"Mat,""Mul') .replace(",AI_VECTOR", '",AI_VECTOR', 1) for row in rows]
    rows += ["hcom_allReduce__123_1_1,hcom_allReduce_,HCCL,1.0,2", "aclnnMatmul_MatMulV1,x,AI_CORE,no time,2",
             "a" + ",b" * 300]
    (folder / "kernel_details.csv").write_text("\n".join([KERNELS, *rows]))
    (folder / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
        f"PTA,{START}.500\t,10.5,2048.0,10.0,,NPU:0\nPTA,{START}.700\t,20.5,1024.25,,,NPU:0\n"
        f"APP,{START}.800\t,,4096,,,NPU:0\n")
    info = {"Start Timestamp(us)": 1.5, "Elapse Time(ms)": 4.0, "Transit Time(ms)": 1.0, "Wait Time(ms)": 2.5,
            "Synchronization Time(ms)": 2.0, "Idle Time(ms)": 0.5}
    (folder / "communication.json").write_text(json.dumps({"step1": {"p2p": {}, "collective": {
        "hcom_allReduce__123_1_1@99": {"Communication Time Info": info, "Communication Bandwidth Info": {}},
        "Total Op Info": {"Communication Time Info": {**info, "Wait Time(ms)": 99}}}}}))
    (result,) = shown(where, status=PARTIAL)
    types = {row["type"]: row for row in result["operators"]["rows"]}
    assert set(types) == {'Mat,"Mul0', 'Mat,"Mul1', 'Mat,"Mul2', "aclnnMatmul_MatMulV1"}, types.keys()
    assert types['Mat,"Mul0']["count"] == 4 and types['Mat,"Mul0']["core"] == "AI_VECTOR_CORE", types
    assert types['Mat,"Mul0']["shapes"] == 4, types
    memory = {row["component"]: row for row in result["memory"]["rows"]}
    assert memory["PTA"]["peak_reserved_mib"] == 2048 and memory["PTA"]["allocated_then_mib"] == 10.5, memory
    assert memory["APP"]["peak_reserved_mib"] == 4096, memory
    waits = result["communication"]["wait_and_transfer"]
    assert (waits["wait_us"], waits["transit_us"], waits["elapse_us"]) == (2500, 1000, 4000), waits
    lost = {entry["what"]: entry["count"] for entry in result["capture"]["lost"]}
    assert lost == {"kernel_details.csv: rows that are damaged": 2}, lost


@test
def memory_beside_a_trace_of_msprof(where: Path) -> None:
    """Of several exports that of the trace counts, of one in slices all, and without one the last."""
    folder = where / "PROF_000001_20250101010101000_AAAA" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    heads, events = trace()
    write(folder / "msprof_20250101010102.json", heads + events)
    title = "Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device\n"

    def record(name: str, component: str, reserved: int) -> Path:
        path = folder / f"memory_record_{name}.csv"
        path.write_text(f"{title}3,{component},{START}.500\t,1024.5,{reserved},NPU:3\n")
        return path

    def read() -> dict[tuple[str, int], dict[str, Any]]:
        (result,) = shown(folder / "msprof_20250101010102.json")
        return {(row["component"], row["device"]): row for row in result["memory"]["rows"]}

    record("20250101010101", "GE", 1024)
    assert read()["GE", 3]["peak_reserved_mib"] == 1, read()
    record("20250101010103", "GE", 2048)
    assert read()["GE", 3]["peak_reserved_mib"] == 2, read()
    for number in range(2):
        record(f"slice_{number}_20250101010102", f"GE{number}", 4096)
    found = read()
    assert set(found) == {("GE0", 3), ("GE1", 3)} and found["GE0", 3]["peak_reserved_mib"] == 4, found


@test
def tables_that_are_none(where: Path) -> None:
    folder = rank(where, 0) / "ASCEND_PROFILER_OUTPUT"
    for name, text in (("kernel_details.csv", ""), ("memory_record.csv", "a,b\n1,2\n"), ("communication.json", "[1"),
                       ("communication_matrix.json", '{"a": [1, {"b": 2}], "c": {"d": {"e": {"f": 1, "g-h": 3}}}}')):
        (folder / name).write_text(text)
    (result,) = shown(where, status=PARTIAL)
    lost = {entry["what"] for entry in result["capture"]["lost"]}
    assert lost == {f"{name}, which cannot be read" for name in ("kernel_details.csv", "memory_record.csv",
                                                                 "communication.json")}, lost
    (folder / "kernel_details.csv").unlink()
    (folder / "kernel_details.csv").symlink_to("kernel_details.csv")
    (folder / "communication.json").unlink()
    os.mkfifo(folder / "communication.json")
    shown(where, status=PARTIAL)


@test
def types_of_real_captures(where: Path) -> None:
    """As the vendor's own op_statistic.csv has them."""
    data = os.environ.get("NPUSCOPE_REFERENCE_DATA")
    if not data:
        raise Skip("NPUSCOPE_REFERENCE_DATA does not name the folder of real captures")
    found = list(Path(data).rglob("op_statistic.csv"))
    assert found
    for path in found:
        result = shown(path.parent)[0]
        ours = {(row["type"], row["core"]): (row["count"], round(row["total_us"], 3))
                for row in result["operators"]["rows"]}
        with open(path, encoding="utf-8", newline="") as file:
            theirs = {(row["OP Type"], row["Core Type"]): (int(row["Count"]), round(float(row["Total Time(us)"]), 3))
                      for row in csv.DictReader(file)}
        assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
        for key, (count, total) in theirs.items():
            assert ours[key][0] == count and abs(ours[key][1] - total) < 0.001 * count + 0.001, \
                (key, ours[key], count, total)


def main() -> int:
    """Entry point."""
    tests = Tests()

    def missing() -> None:
        raise Skip(f"{PROGRAM} is missing: make")

    for function in TESTS:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="trace-inputs-") as folder:
            tests.run(function.__name__, (lambda f=function, w=folder: f(Path(w))) if PROGRAM.exists() else missing)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
