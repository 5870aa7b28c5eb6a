#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The head overhead of TorchAir's graphs is found in traces that were made with known parts.

Every trace is built call by call from lengths in ns; `npuscope show
--json` has to give them back within 1 us.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Optional

sys.dont_write_bytecode = True

from harness import ROOT, Skip, Tests  # noqa: E402

NPUSCOPE = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build")) / "npuscope"
BEGIN = 1_736_408_883_000_000_000
PID, TID = 4242, 4243
CANN, HARDWARE = (PID << 10) | (7 << 5), (PID << 10) | (13 << 5)
Event = dict[str, Any]
F_NAMES = "npu_fx_compiler inference", "npu_fx_compiler_inference", "cache_compiler inference"


def us(ns: int, digits: int = 3) -> str:
    """Ns as us with at least three decimals."""
    return f"{ns // 1000}.{ns % 1000:03}" + "0" * (digits - 3)


class Trace:
    """Events, in the vendor's spelling."""

    def __init__(self, numbers: bool = False, digits: int = 3, nanoseconds: bool = False) -> None:
        self.events: list[Event] = []
        self.numbers, self.digits, self.nanoseconds = numbers, digits, nanoseconds

    def stamp(self, ns: int, relative: bool) -> Any:
        if self.nanoseconds:
            return ns
        if self.numbers or relative:
            return float(us(ns)) if relative else json.loads(us(ns, self.digits))
        return us(ns, self.digits)

    def span(self, name: str, start: int, end: int, cat: Optional[str] = "cpu_op", pid: int = PID, tid: int = TID,
             **args: Any) -> None:
        event: Event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": self.stamp(start, False),
                        "dur": self.stamp(end - start, True), "args": args}
        if cat:
            event["cat"] = cat
        self.events.append(event)

    def frame(self, name: str, start: int, end: int) -> None:
        self.span(name, start, end, "python_function")

    def names(self) -> list[Event]:
        return [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
                for pid, name in ((PID, "Python"), (CANN, "CANN"), (HARDWARE, "Ascend Hardware"))]

    def write(self, path: Path, container: str = "array") -> Path:
        events = self.events + self.names()
        random.Random(5).shuffle(events)
        document: Any = events if container == "array" else {"schemaVersion": 1, "other": {"a": ["]", {"b": "{\"["}]},
                                                              "traceEvents": events, "end": [1, 2]}
        text = json.dumps(document)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode(), 1))
        else:
            path.write_text(text)
        return path


def call(trace: Trace, at: int, python: int, cpp: int, ge: int, label: str = F_NAMES[0], run: str =
         "TorchNpuGraphBase::Run", execute: str = "ExecuteGraph", cold: bool = False) -> int:
    """One call with all its parts; its end."""
    run_at, execute_at, end = at + python, at + python + cpp, at + python + cpp + ge
    trace.span(label, at, end)
    trace.span("aten::to", at + python // 8, at + python // 4)
    trace.span("aten::_to_copy", at + python // 8, at + python // 5)
    trace.span("aten::contiguous", at + python // 3, at + python // 2)
    trace.span(run, run_at, end - ge // 8)
    if cold:
        trace.span("TorchNpuGraphBase::Compile", run_at, run_at + cpp // 8)
        trace.span("LoadGraph", run_at + cpp // 4, run_at + cpp // 3)
    trace.span("AssembleInputs", run_at + cpp // 3, run_at + cpp // 2)
    trace.span("AssembleOutputs", run_at + cpp // 2, run_at + cpp * 3 // 4)
    trace.span(execute, execute_at, end - ge // 4)
    trace.span("RefreshAtTensorFromGeTensor", end - ge // 4, end - ge // 8)
    return end


def analyze(path: Path, status: int = 0) -> dict[str, Any]:
    """What `show` prints of a trace."""
    if not NPUSCOPE.exists():
        raise Skip(f"no {NPUSCOPE}: build it first")
    done = subprocess.run([NPUSCOPE, "show", "--json", path], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{path.name}: exit status {done.returncode}: {done.stderr}"
    result: dict[str, Any] = json.loads(done.stdout)["results"][0]
    return result


def same(found: Optional[float], ns: int, what: str) -> None:
    """A length within 1 us."""
    assert found is not None, f"{what} is missing"
    assert abs(found - ns / 1000) <= 1, f"{what}: {found} us, made with {ns / 1000}"


def check_row(row: dict[str, Any], frontend: Optional[int], python: int, cpp: int, ge: int) -> None:
    if frontend is None:
        assert row["frontend_us"] is None, f"frontend {row['frontend_us']} from {row['frontend_from']}"
    else:
        same(row["frontend_us"], frontend, "frontend")
    same(row["torchair_python_us"], python, "Python part")
    same(row["torchair_cpp_us"], cpp, "C++ part")
    same(row["ge_us"], ge, "GE")


def lengths(rng: random.Random) -> tuple[int, int, int, int]:
    """Frontend, Python, C++ and GE part, ns."""
    return (rng.randrange(20_000, 900_000), rng.randrange(50_000, 2_000_000), rng.randrange(30_000, 700_000),
            rng.randrange(80_000, 3_000_000))


def calls_in_steps(trace: Trace, label: str = F_NAMES[0], run: str = "TorchNpuGraphBase::Run",
                   execute: str = "ExecuteGraph") -> list[tuple[Optional[int], int, int, int]]:
    """Thirty calls, two a step: the first is measured from the step's begin, the second from the first."""
    rng, at, made = random.Random(len(label) + len(execute)), BEGIN, []
    for step in range(15):
        begin = at
        for _ in range(2):
            frontend, python, cpp, ge = lengths(rng)
            made.append((frontend, python, cpp, ge))
            at = call(trace, at + frontend, python, cpp, ge, label, run, execute)
        at += 5_000
        trace.span(f"ProfilerStep#{step}", begin, at)
    return made


def in_variant(variant: str, folder: Path) -> None:
    """The same calls, however the trace is written."""
    trace = Trace(numbers="numbers" in variant, digits=6 if "digits" in variant else 3, nanoseconds="ns" in variant)
    label = F_NAMES[2] if "cache" in variant else F_NAMES[1] if "underscores" in variant else F_NAMES[0]
    made = calls_in_steps(trace, label, "Run" if "plain" in variant else "TorchNpuGraphBase::Run",
                          "RunGraph" if "old" in variant else "ExecuteGraph")
    path = trace.write(folder / ("t.json.gz" if "gz" in variant else "t.json"),
                       "object" if "object" in variant else "array")
    section = analyze(path)["torchair"]
    assert section["calls"] == 30 and section["cold"] == 0, section["calls"]
    for row, parts in zip(section["rows"], made):
        check_row(row, *parts)
        assert abs(row["torchair_python_us"] + row["torchair_cpp_us"] + row["ge_us"] - row["call_us"]) <= 1
    assert section["frontend_from"] == {"module_entry": 0, "previous_call": 15, "step_start": 15, "unknown": 0}
    assert [graph["calls"] for graph in section["graphs"]] == [15, 15]
    for position, graph in enumerate(section["graphs"]):
        of_graph = made[position::2]
        for part, key in enumerate(("frontend", "torchair_python", "torchair_cpp", "ge")):
            values = sorted(parts[part] or 0 for parts in of_graph)
            numbers = graph["parts"][key]
            same(numbers["mean_us"], sum(values) // 15, f"mean of {key}")
            same(numbers["max_us"], values[-1], f"largest {key}")
            assert abs(numbers["p50_us"] * 1000 - values[7]) <= values[7] / 32 + 1, f"median of {key}"
        assert graph["residual_us"] <= 1
        assert graph["python_causes"]["tensors_made"] == 15 and graph["python_causes"]["copies"] == 15
        same(graph["python_causes"]["tensors_made_us"], sum(p[1] // 4 - p[1] // 8 for p in of_graph), "tensors")
        totals = [sum(p[k] or 0 for p in of_graph) for k in range(4)]
        names = "frontend", "Python part of TorchAir", "C++ part of TorchAir", "graph engine"
        assert names[totals.index(max(totals))] in graph["verdict"], graph["verdict"]


def nested(folder: Path) -> None:
    """A call within a call is counted once."""
    trace = Trace()
    end = call(trace, BEGIN, 900_000, 400_000, 700_000)
    call(trace, BEGIN + 1_301_000, 90_000, 40_000, 70_000)
    call(trace, end + 10_000, 300_000, 200_000, 100_000)
    rows = analyze(trace.write(folder / "t.json"))["torchair"]["rows"]
    assert len(rows) == 2, len(rows)
    check_row(rows[0], None, 900_000, 400_000, 700_000)
    check_row(rows[1], 10_000, 300_000, 200_000, 100_000)
    assert rows[0]["frontend_from"] == "unknown" and rows[1]["frontend_from"] == "previous call"


def missing(folder: Path) -> None:
    """Without an execution there is no C++ part and no GE part, and the
    reason is reported; the same without Run."""
    trace = Trace()
    trace.span(F_NAMES[0], BEGIN, BEGIN + 500_000)
    trace.span("fx_run_eagerly", BEGIN + 100_000, BEGIN + 400_000)
    trace.span(F_NAMES[0], BEGIN + 600_000, BEGIN + 900_000)
    trace.span("TorchNpuGraphBase::Run", BEGIN + 700_000, BEGIN + 880_000)
    trace.span(F_NAMES[0], BEGIN + 1_000_000, BEGIN + 1_900_000)
    trace.span("ExecuteGraph", BEGIN + 1_300_000, BEGIN + 1_880_000)
    section = analyze(trace.write(folder / "t.json"))["torchair"]
    eager, without, no_run = section["rows"]
    assert eager["ge_us"] is None and eager["torchair_cpp_us"] is None and eager["torchair_python_us"] is None
    assert eager["mode"] == "fx_run_eagerly" and "mode" in eager["reason"]
    same(without["torchair_python_us"], 100_000, "Python part")
    assert without["ge_us"] is None and without["torchair_cpp_us"] is None and "reason" in without
    same(no_run["ge_us"], 600_000, "GE")
    same(no_run["before_execute_us"], 300_000, "Python and C++ part")
    assert no_run["torchair_python_us"] is None and "Run" in no_run["reason"]
    graph = section["graphs"][0]
    assert (graph["calls"], graph["without_execute"], graph["without_run"]) == (3, 2, 2), graph


def cold(folder: Path) -> None:
    """Calls that compile are flagged and not in the statistics."""
    trace, at = Trace(), BEGIN
    for i in range(6):
        at = call(trace, at + 50_000, 100_000, 60_000 if i else 90_000_000, 200_000, cold=i == 0)
    section = analyze(trace.write(folder / "t.json"))["torchair"]
    assert [row["cold"] for row in section["rows"]] == [True] + [False] * 5
    graph = section["graphs"][0]
    assert (graph["calls"], graph["cold"], graph["call"]["count"]) == (6, 1, 5)
    same(graph["call"]["max_us"], 360_000, "longest call that is not cold")
    check_row(section["rows"][0], None, 100_000, 90_000_000, 200_000)


def several_graphs(folder: Path) -> None:
    """Two modules and a graph break: three graphs, each measured from its module's entry or the break."""
    trace, at = Trace(), BEGIN
    made: list[tuple[int, int, int, int]] = []
    rng = random.Random(7)
    for i in range(12):
        module, begin = i % 2, at
        frontend, python, cpp, ge = lengths(rng)
        lookup = frontend // 4
        trace.span("TorchDynamo Cache Lookup", at + frontend // 2, at + frontend // 2 + lookup)
        trace.span("aten::mul", at - 40_000, at - 30_000)       # before the module: not its affair
        at = call(trace, at + frontend, python, cpp, ge)
        made.append((frontend, python, cpp, ge))
        if module:
            trace.span("aten::nonzero", at + 1_000, at + 31_000)    # the graph break
            frontend, python, cpp, ge = lengths(rng)
            at = call(trace, at + 31_000 + frontend, python, cpp, ge)
            made.append((frontend, python, cpp, ge))
        at += 20_000
        trace.frame(f"nn.Module: OptimizedModule_{module}", begin, at)
        trace.frame("/opt/serve/model_runner.py(70): execute", begin - 10_000, at + 1_000)
        at += 200_000
    section = analyze(trace.write(folder / "t.json"))["torchair"]
    assert section["frontend_from"]["module_entry"] == 18
    for row, parts in zip(section["rows"], made):
        check_row(row, *parts)
    graphs = section["graphs"]
    assert [graph["calls"] for graph in graphs] == [6, 6, 6], [graph["graph"] for graph in graphs]
    assert all("model_runner.py(70): execute" in graph["graph"] for graph in graphs), graphs[0]["graph"]
    same(graphs[0]["frontend_split"]["cache_lookup_us"], sum(p[0] // 4 for p in made[0::3]), "cache look-up")


def device(folder: Path) -> None:
    """From the execution to the first launch and the first kernel, and what the graph computes."""
    trace, at = Trace(), BEGIN
    for i in range(8):
        begin = at + 40_000
        execute_at = begin + 100_000 + 60_000
        at = call(trace, begin, 100_000, 60_000, 900_000)
        for k in range(3):
            launch, connection = execute_at + 70_000 + k * 50_000, 1 + 10 * i + k
            trace.span("Node@launch", launch, launch + 9_000, None, CANN, connection_id=connection)
            trace.span("MatMul", launch + 200_000 + k * 100_000, launch + 300_000 + k * 100_000, None, HARDWARE, 3,
                       connection_id=connection, **{"Task Type": "AI_CORE", "Physic Stream Id": 3, "Task Id": k})
        eager = 8 + 10 * i
        trace.span("Node@launch", at + 5_000, at + 6_000, None, CANN, connection_id=eager)
        trace.span("Add", at + 600_000, at + 650_000, None, HARDWARE, 3, connection_id=eager,
                   **{"Task Type": "AI_CORE"})
        at += 900_000
    result = analyze(trace.write(folder / "t.json"))
    graph = result["torchair"]["graphs"][0]
    same(graph["execute_to_first_launch"]["mean_us"], 70_000, "first launch")
    same(graph["execute_to_first_kernel"]["mean_us"], 270_000, "first kernel")
    same(graph["device_us_per_call"], 300_000, "work on the device")
    assert "cannot hide" in graph["verdict"], graph["verdict"]
    assert result["capture"]["kernels"] == 32
    assert any(finding["id"] == "torchair_head" for finding in result["findings"])


def logging(folder: Path) -> None:
    """Log calls within a call are found: they inflate its Python part."""
    trace, at = Trace(), BEGIN
    for _ in range(4):
        begin = at + 30_000
        at = call(trace, begin, 800_000, 50_000, 100_000)
        for k in range(5):
            trace.frame("/usr/lib/python3.11/logging/__init__.py(1477): debug", begin + 300_000 + k * 60_000,
                        begin + 350_000 + k * 60_000)
            trace.frame("/usr/lib/python3.11/logging/__init__.py(1600): handle", begin + 301_000 + k * 60_000,
                        begin + 349_000 + k * 60_000)
    result = analyze(trace.write(folder / "t.json"))
    causes = result["torchair"]["graphs"][0]["python_causes"]
    assert causes["log_calls"] == 20, causes
    same(causes["log_calls_us"], 20 * 50_000, "log calls")
    assert any(finding["id"] == "torchair_logging" for finding in result["findings"])


def threads(folder: Path) -> None:
    """Calls of two threads at the same time do not mix, and a call
    that crosses the end of a step is marked."""
    trace, made = Trace(), {}
    for tid in (TID, TID + 1):
        rng, at = random.Random(tid), BEGIN
        made[tid] = []
        for _ in range(10):
            frontend, python, cpp, ge = lengths(rng)
            before, at = len(trace.events), call(trace, at + frontend, python, cpp, ge)
            for event in trace.events[before:]:
                event["tid"] = tid
            made[tid].append((frontend, python, cpp, ge))
    trace.span("ProfilerStep#1", BEGIN - 1_000, BEGIN + made[TID][0][0] + 1_000, tid=TID + 2)
    rows = analyze(trace.write(folder / "t.json"))["torchair"]["rows"]
    for tid, parts in made.items():
        mine = [row for row in rows if row["thread"] == tid]
        assert len(mine) == 10
        for row, expected in zip(mine[1:], parts[1:]):
            check_row(row, *expected)
    assert any(row["crosses_step"] for row in rows)


def hostile(folder: Path) -> None:
    """Damaged, cut and senseless traces end well; what is whole counts."""
    trace = Trace()
    end = call(trace, BEGIN, 900_000, 400_000, 700_000)
    call(trace, end + 10_000, 300_000, 200_000, 100_000)
    whole = json.dumps(trace.events)
    def rows(text: bytes, status: int = 3, name: str = "t.json") -> list[dict[str, Any]]:
        path = folder / name
        path.write_bytes(text)
        found: list[dict[str, Any]] = analyze(path, status)["torchair"]["rows"]
        return found
    assert len(rows(whole[:-1].encode())) == 2, "no end"
    assert len(rows(whole.replace('{"ph"', '{"ph":}, {"ph"', 1).encode())) == 2, "an event that is none"
    assert len(rows(whole.replace('[{', '[{"ph":"X","name":"big","args":{"a":"' + "x" * (3 << 20) + '"}},{',
                                  1).encode())) == 2
    assert len(rows(gzip.compress(whole.encode() * 1)[:-9], 3, "t.json.gz")) == 2, "a cut gz"
    extra = [{"ph": "X", "name": F_NAMES[0], "pid": -1, "tid": {"a": 1}, "ts": "1e18", "dur": -5},
             {"ph": "X", "name": None, "ts": "nan", "dur": "inf"}, {"ph": "X"}, {"ph": ["X"]},
             {"ph": "M", "name": "process_name", "args": []},
             {"ph": "X", "name": "\ud800\u0000", "ts": 1, "dur": 2 ** 70}]
    assert len(rows(json.dumps(trace.events + extra).encode())) == 2, "senseless events"
    deep = "[" + '{"a":' * 200_000 + "1" + "}" * 200_000 + "," + whole[1:]
    assert len(rows(deep.encode())) >= 0
    for text in (b"", b"[", b"{", b'{"traceEvents"', b"\x1f\x8b", b"null", os.urandom(4096)):
        (folder / "t.json").write_bytes(text)
        done = subprocess.run([NPUSCOPE, "show", folder / "t.json"], capture_output=True, check=False, timeout=60)
        assert done.returncode in (0, 1, 3), f"{text[:16]!r}: {done.returncode}"


def main() -> int:
    tests = Tests()

    def run(name: str, test: Callable[[Path], None]) -> None:
        def inner() -> None:
            with tempfile.TemporaryDirectory() as folder:
                test(Path(folder))
        tests.run(name, inner)

    for variant in ("array", "object", "numbers digits", "numbers object gz", "underscores", "cache old gz", "plain",
                    "ns",
                    "digits old"):
        run(f"known parts: {variant}", lambda folder, variant=variant: in_variant(variant, folder))
    for test in (nested, missing, cold, several_graphs, device, logging, threads, hostile):
        run(test.__name__.replace("_", " "), test)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
