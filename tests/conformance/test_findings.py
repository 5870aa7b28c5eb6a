#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `npuscope show` prints of real captures is what their rows have.

The databases and traces of NPUSCOPE_REFERENCE_DATA are read twice: by `show --json`, and here with SQL or as
plain JSON. So are raw data that tests/cannraw makes, whose truth is known.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Iterable, Optional

sys.dont_write_bytecode = True

from harness import ROOT, Skip, Tests  # noqa: E402

NPUSCOPE = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build")) / "npuscope"
GENERATOR = ROOT / "build" / "tests" / "gen-cann"
NO_ID = 0xFFFFFFFF
Document = dict[str, Any]
Span = tuple[int, int]
COMPUTING = {"AI_CORE", "AI_VECTOR_CORE", "AI_CPU", "MIX_AIC", "MIX_AIV", "DSA_SQE"}


def show(*paths: Path) -> Document:
    """The document of `show --json`."""
    if not NPUSCOPE.exists():
        raise Skip(f"no {NPUSCOPE}: build it first")
    done = subprocess.run([NPUSCOPE, "show", "--json", *paths], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), f"exit status {done.returncode}: {done.stderr}"
    document: Document = json.loads(done.stdout)
    return document


def near(found: Optional[float], ns: float, what: str, slack: float = 0.0011) -> None:
    """A length in us, rounded to three decimals."""
    assert found is not None and abs(found - ns / 1000) <= slack, f"{what}: {found} us, expected {ns / 1000}"


class Totals:
    """Count, sum and all lengths by name."""

    def __init__(self) -> None:
        self.lengths: dict[Any, list[int]] = defaultdict(list)

    def add(self, key: Any, ns: int) -> None:
        self.lengths[key].append(ns)

    def check(self, rows: Iterable[Document], key_of: Callable[[Document], Any], quantiles: bool, limit: int) -> None:
        """Rows are those with the largest sums, all their numbers agree."""
        rows = list(rows)
        assert len(rows) == min(limit, len(self.lengths)), f"{len(rows)} rows, expected {len(self.lengths)}"
        sums = sorted((sum(values) for values in self.lengths.values()), reverse=True)
        for row, expected in zip(rows, sums):
            key = key_of(row)
            values = sorted(self.lengths[key])
            assert values, f"{key} is not there"
            assert row["count"] == len(values), f"{key}: {row['count']} of {len(values)}"
            near(row["total_us"], sum(values), f"{key}: total")
            near(row["total_us"], expected, f"{key}: order of rows")
            near(row["mean_us"], sum(values) / len(values), f"{key}: mean")
            near(row["max_us"], values[-1], f"{key}: longest")
            for name, share in (("p50_us", 0.5), ("p99_us", 0.99)) if quantiles else ():
                exact = values[min(int(share * len(values)), len(values) - 1)]
                near(row[name], exact, f"{key}: {name}", exact / 1000 / 32 + 0.002)


class Idle:
    """Gaps in the work of one device, distinguished by their cause."""

    def __init__(self, work: list[tuple[int, int, Optional[int]]]) -> None:
        work.sort(key=lambda item: item[:2])
        self.idle = self.host = self.unknown = self.gaps = 0
        busy = work[0][0]
        for start, end, submit in work:
            if start > busy:
                self.gaps += 1
                self.idle += start - busy
                if submit is None:
                    self.unknown += start - busy
                else:
                    self.host += max(0, min(submit, start) - busy)
            busy = max(busy, end)
        self.span = busy - work[0][0]

    def check(self, row: Document) -> None:
        near(row["span_us"], self.span, "span")
        near(row["idle_us"], self.idle, "idle")
        assert abs(row["gaps"] - self.gaps) <= 1, f"{row['gaps']} gaps, expected {self.gaps}"
        near(row["host_bound_us"], self.host, "host bound", self.idle / 1000 * 0.01)
        near(row["unknown_us"], self.unknown, "unknown", self.idle / 1000 * 0.01)


def check_ranks(document: Document, collectives: list[dict[str, Span]]) -> None:
    """Two ranks, compared here by the names of their collectives."""
    common = set(collectives[0]) & set(collectives[1])
    starts = {name: [ops[name][0] for ops in collectives] for name in common}
    arrivals = document["ranks"]["arrivals"]
    assert arrivals["common_collectives"] == len(common) > 0
    near(arrivals["total_skew_us"], sum(max(s) - min(s) for s in starts.values()), "distance of arrivals")
    near(arrivals["max_skew_us"], max(max(s) - min(s) for s in starts.values()), "largest distance")
    for i, row in enumerate(document["ranks"]["rows"]):
        assert row["rank"] == f"rank {i}" and row["clock_offset_us"] == 0
        near(row["late_us"], sum(s[i] - min(s) for s in starts.values()), f"rank {i} late")
        near(row["wait_us"], sum(max(s) - s[i] for s in starts.values()), f"rank {i} waits")


# ---- databases ---------------------------------------------------------------------------------------------

class Database:
    """The rows of one database."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path)
        self.strings: dict[int, str] = dict(self.db.execute("SELECT id, value FROM STRING_IDS"))
        steps = path.parent / "analysis.db"
        self.steps = sqlite3.connect(steps) if steps.exists() else None

    def check(self, result: Document) -> None:
        self.check_counts(result["capture"])
        self.check_operators(result["operators"])
        self.check_apis(result["apis"])
        self.check_communication(result["communication"])
        self.check_idle(result["idle"])
        self.check_memory(result["memory"])
        self.check_steps(result["steps"])

    def one(self, query: str) -> Any:
        return self.db.execute(query).fetchone()[0]

    def check_counts(self, capture: Document) -> None:
        for key, table in (("device_tasks", "TASK"), ("kernels", "COMPUTE_TASK_INFO"),
                           ("collectives", "COMMUNICATION_OP"),
                           ("cann_calls", "CANN_API"), ("steps", "STEP_TIME")):
            assert capture[key] == self.one(f"SELECT count(*) FROM {table}"), key
        assert capture["torch_operators"] == self.one("SELECT count(*) FROM PYTORCH_API WHERE type = 50001")
        assert not capture["lost"]

    def check_operators(self, section: Document) -> None:
        totals = Totals()
        for name, kind, core, ns in self.db.execute("SELECT c.name, c.opType, c.taskType, t.endNs - t.startNs FROM "
                                                    "TASK t "
                                                    "JOIN COMPUTE_TASK_INFO c USING (globalTaskId)"):
            kind, core = self.strings[kind], self.strings[core]
            totals.add((self.strings[name] if kind == "N/A" else kind, core), ns)
        totals.check(section["rows"], lambda row: (row["type"], row["core"]), True, 40)
        near(section["total_us"], sum(map(sum, totals.lengths.values())), "all operators")

    def check_apis(self, section: Document) -> None:
        totals = Totals()
        for name, ns in self.db.execute("SELECT name, endNs - startNs FROM CANN_API"):
            totals.add(self.strings[name], ns)
        totals.check(section["rows"], lambda row: row["name"], False, 200)

    def check_communication(self, section: Document) -> None:
        totals = Totals()
        for kind, group, ns in self.db.execute("SELECT opType, groupName, endNs - startNs FROM COMMUNICATION_OP"):
            totals.add((self.strings[kind], self.strings[group]), ns)
        totals.check(section["rows"], lambda row: (row["type"], row["group"]), False, 50)

    def check_idle(self, section: Document) -> None:
        returned = dict(self.db.execute("SELECT connectionId, endNs FROM CANN_API"))
        tasks = self.db.execute(
            "SELECT startNs, endNs, connectionId FROM TASK WHERE globalTaskId IN (SELECT globalTaskId FROM "
            "COMPUTE_TASK_INFO) "
            "OR globalTaskId IN (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO) "
            "OR taskType IN (SELECT id FROM STRING_IDS WHERE value = 'MEMCPY_ASYNC') "
            "UNION ALL SELECT startNs, endNs, connectionId FROM COMMUNICATION_OP").fetchall()
        Idle([(start, end, min(returned[connection], start) if connection in returned else None)
              for start, end, connection in tasks]).check(section["devices"][0])

    def check_memory(self, section: Document) -> None:
        rows = {row["component"]: row for row in section["rows"]}
        for component, count, most in self.db.execute("SELECT component, count(*), max(totalReserved) FROM "
                                                      "MEMORY_RECORD "
                                                      "GROUP BY component"):
            row = rows[self.strings[component]]
            assert row["records"] == count
            assert abs(row["peak_reserved_mib"] - most / 1048576) < 0.001, row

    def check_steps(self, section: Document) -> None:
        if not self.steps:
            return
        expected = {str(row[0]): row[1:] for row in self.steps.execute(
            "SELECT step, computing, communication_not_overlapped, free, preparing FROM StepTraceTime")}
        assert len(section["rows"]) == len(expected)
        for row in section["rows"]:
            near(row["total_us"], 1000 * sum(expected[row["step"]]), "step")
            near(row["computing_us"], 1000 * expected[row["step"]][0], "computing")

    def collectives(self) -> dict[str, Span]:
        return {self.strings[name]: (start, end)
                for name, start, end in self.db.execute("SELECT opName, startNs, endNs FROM COMMUNICATION_OP")}


def test_databases(level: Path) -> None:
    """All databases of a level, one by one and as ranks."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(level, Path(folder) / "in", copy_function=shutil.copyfile)
        for path in (Path(folder) / "in").rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        paths = sorted((Path(folder) / "in").rglob("ascend_pytorch_profiler_*.db"))
        before = {path: path.read_bytes() for path in (Path(folder) / "in").rglob("*") if path.is_file()}
        document = show(Path(folder) / "in")
        databases = [Database(path) for path in paths]
        for database, result in zip(databases, document["results"]):
            database.check(result)
        if len(paths) == 2:
            check_ranks(document, [database.collectives() for database in databases])
        else:
            assert "ranks" not in document
        for database in databases:
            database.db.close()
        after = {path: path.read_bytes() for path in (Path(folder) / "in").rglob("*") if path.is_file()}
        assert before == after, "show changed its input"


# ---- traces ------------------------------------------------------------------------------------------------

def ns_of(text: Any) -> int:
    """Us with decimals as ns."""
    whole, _, rest = str(text).partition(".")
    return int(whole) * 1000 + int((rest + "000")[:3]) + (len(rest) > 3 and rest[3] >= "5")


class TraceFile:
    """The rows of one trace_view.json."""

    def __init__(self, path: Path) -> None:
        events = json.loads(path.read_text(), parse_float=str)
        self.folder = path.parent
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.layers: dict[str, list[Document]] = defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                event["start"] = ns_of(event["ts"])
                event["end"] = event["start"] + ns_of(event["dur"])
                self.layers[names[event["pid"]]].append(event)

    def of_type(self, types: set[str]) -> list[Document]:
        return [event for event in self.layers["Ascend Hardware"] if event["args"]["Task Type"] in types]

    def big_ops(self) -> list[Document]:
        return [event for event in self.layers["HCCL"] if "task type" not in event["args"]]

    def check(self, result: Document) -> None:
        capture = result["capture"]
        assert capture["device_tasks"] == len(self.layers["Ascend Hardware"])
        assert capture["cann_calls"] == len(self.layers["CANN"])
        assert capture["torch_operators"] == sum(event.get("cat") == "cpu_op" for event in self.layers["Python"])
        assert capture["collectives"] == len(self.big_ops())
        with open(self.folder / "kernel_details.csv", encoding="utf-8") as file:
            kernels = [row for row in csv.DictReader(file) if not row["Name"].startswith("hcom")]
        assert capture["kernels"] == len(kernels), f"{capture['kernels']} kernels, {len(kernels)} in the table"
        reported = {row["Name"]: (row["Type"], row["Accelerator Core"]) for row in kernels if row["Type"] != "N/A"}
        totals = Totals()
        for event in self.of_type(COMPUTING):     # the trace has no types, and AI_CORE for both kinds of core
            key = reported.get(event["name"], (event["name"], event["args"]["Task Type"]))
            totals.add(key, event["end"] - event["start"])
        totals.check(result["operators"]["rows"], lambda row: (row["type"], row["core"]), True, 40)
        totals = Totals()
        for event in self.layers["CANN"]:
            totals.add(event["name"].partition("@")[2], event["end"] - event["start"])
        totals.check(result.get("apis", {"rows": []})["rows"], lambda row: row["name"], False, 200)
        self.check_idle(result["idle"])
        self.check_steps(result["steps"])

    def check_idle(self, section: Document) -> None:
        returned = {event["args"]["connection_id"]: event["end"] for event in self.layers["CANN"]}
        work = [event for event in self.layers["Ascend Hardware"] if event["name"] == "MEMCPY_ASYNC"]
        work += self.of_type(COMPUTING) + self.big_ops()
        spans = [(event["start"], event["end"], min(returned[event["args"]["connection_id"]], event["start"])
                  if event["args"]["connection_id"] in returned else None) for event in work]
        Idle(spans).check(section["devices"][0])

    def check_steps(self, section: Document) -> None:
        with open(self.folder / "step_trace_time.csv", encoding="utf-8") as file:
            expected = {row["Step"]: row for row in csv.DictReader(file)}
        assert {row["step"] for row in section["rows"]} == set(expected)
        for row in section["rows"]:
            want = expected[row["step"]]
            for key, column in (("computing_us", "Computing"), ("free_us", "Free"), ("preparing_us", "Preparing"),
                                ("communication_not_overlapped_us", "Communication(Not Overlapped)")):
                near(row[key], float(want[column]) * 1000, column, 0.5)     # the vendor adds floats of us

    def collectives(self) -> dict[str, Span]:
        return {event["name"]: (event["start"], event["end"]) for event in self.big_ops()}


def test_traces(level: Path) -> None:
    """The traces of a level, one by one and as ranks."""
    paths = sorted(level.rglob("trace_view.json"))
    document = show(level)
    assert [result["path"] for result in document["results"]] == [str(path) for path in paths]
    traces = [TraceFile(path) for path in paths]
    for trace, result in zip(traces, document["results"]):
        trace.check(result)
    check_ranks(document, [trace.collectives() for trace in traces])


def test_text(data: Path) -> None:
    """The tables are plain lines without control characters, as wide as the
    option's default, and chosen by --only."""
    with tempfile.TemporaryDirectory() as folder:
        source = next(iter(sorted((data / "text" / "level1").rglob("trace_view.json"))))
        events = json.loads(source.read_text())
        for event in events:
            if event["name"] == "AscendCL@aclrtSynchronizeStreamWithTimeout":
                event["name"] = "AscendCL@\x1b[2J\x07evil\u009b31m\x7f"
        path = Path(folder) / "trace_view.json"
        path.write_text(json.dumps(events))
        done = subprocess.run([NPUSCOPE, "show", "--top", "3", path], capture_output=True, check=True)
        text = done.stdout.decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), "control characters"
        assert "?[2J?evil?31m?" in text
        for title in ("overview", "findings", "steps", "operators", "CANN calls", "collectives"):
            assert re.search(f"^{title}", text, re.M), f"no table {title}"
        table = text[text.index("CANN calls, by time"):].split("\n")
        assert set(table[2]) == {"-", " "} and table[6].startswith("... and "), table[:7]
        only = subprocess.run([NPUSCOPE, "show", "--only", "apis,steps", path], capture_output=True,
                              check=True).stdout.decode()
        assert "CANN calls" in only and "steps, slowest" in only and "overview" not in only
        for wrong in (["--only", "nonsense", path], ["--top", "0", path], []):
            assert subprocess.run([NPUSCOPE, "show", *wrong], capture_output=True, check=False).returncode == 2
        for missing in (Path(folder) / "none", Path(folder) / "empty"):
            (Path(folder) / "empty").mkdir(exist_ok=True)
            done = subprocess.run([NPUSCOPE, "show", missing], capture_output=True, check=False)
            assert done.returncode == 1 and done.stderr, missing
        assert sorted(entry.name for entry in Path(folder).iterdir()) == ["empty", "trace_view.json"], \
            "files were written"


# ---- raw data with known content ---------------------------------------------------------------------------

def test_generated(*options: str) -> None:
    """What gen-cann's truth has of operators, calls and collectives."""
    if not GENERATOR.exists():
        raise Skip(f"no {GENERATOR}: make witnesses")
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth.jsonl"
        made = subprocess.run([GENERATOR, "--tasks", "3000", "--truth", truth, *options, folder], capture_output=True,
                              text=True, check=True)
        result = show(Path(made.stdout.strip()))["results"][0]
        operators, calls = Totals(), Totals()
        collectives = 0
        with open(truth, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line["k"] == "task" and line["class"] == "compute":
                    operators.add(line["type"], line["end_ns"] - line["start_ns"])
                elif line["k"] == "api":
                    calls.add(line["name"], line["end_ns"] - line["begin_ns"])
                collectives += line["k"] == "comm_op"
        assert result["capture"]["collectives"] == collectives
        found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        for row in result["operators"]["rows"]:
            found[row["type"]][0] += row["count"]
            found[row["type"]][1] += row["total_us"]
        for kind, lengths in operators.lengths.items():
            assert found[kind][0] == len(lengths), f"{kind}: {found[kind][0]} of {len(lengths)}"
            near(found[kind][1], sum(lengths), kind, 0.01)
        rows = {row["name"]: row for row in result["apis"]["rows"]}
        for name in set(rows) & set(calls.lengths):
            assert rows[name]["count"] == len(calls.lengths[name]), name
            near(rows[name]["total_us"], sum(calls.lengths[name]), name, 0.01)
        assert set(rows) & set(calls.lengths), "no call of the truth is there"


def main() -> int:
    tests = Tests()
    data = os.environ.get("NPUSCOPE_REFERENCE_DATA")
    if data:
        base = Path(data) / "ascend_pt"
        for level in sorted((base / "db").iterdir()):
            tests.run(f"databases {level.name}", lambda level=level: test_databases(level))
        for level in sorted((base / "text").iterdir()):
            tests.run(f"traces {level.name}", lambda level=level: test_traces(level))
        tests.run("text", lambda: test_text(base))
    else:
        def skip() -> None:
            raise Skip("NPUSCOPE_REFERENCE_DATA is not set")
        tests.run("real captures", skip)
    for options in ((), ("--level", "1")):
        tests.run(f"generated {' '.join(options)}".strip(), lambda options=options: test_generated(*options))
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
