#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Loads results in a real browser, offline: trace_view.json in the viewer of chrome://tracing and in
Perfetto's trace processor, .pftrace in the latter. Their models must hold what the files hold, read
independently. Results of each kind of input are made here, and .pftrace is compared with the database that
the same run writes.

Further results: the folders given as arguments, else those of NPUSCOPE_REFERENCE_DATA (real captures) and
NPUSCOPE_RESULT_DIR (our own). Screenshots are kept in build/test-logs.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import re
import shutil
import sqlite3
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Optional

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from harness import BUILD, ROOT, SOAK, Case, Skip, add_test, main, need, need_program, test  # noqa: E402
from pftrace import Trace  # noqa: E402
from webdriver import close_shared, serve, shared  # noqa: E402

VARIABLES = ("NPUSCOPE_REFERENCE_DATA", "NPUSCOPE_RESULT_DIR")
VIEWER = Path("/usr/share/go-1.19/src/cmd/trace/static")  # the viewer as Debian has it
PROCESSOR = ROOT / "build" / "browser" / "trace-processor"
WRITER = BUILD / "browser" / "make_pftrace"
LOGS = ROOT / "build" / "test-logs"
LARGEST = 200 << 20  # the viewer keeps a file as one string
# Complete events of JSON that overlap without nesting, which trace processor leaves out.
OVERLAPPING = "slice_drop_overlapping_complete_event"
HOMELESS = "flow_no_enclosing_slice"
# Warnings of the viewer on flows that it does not show.
UNSEEN = ("Found flow phase f", "does not end at an actual slice", "does not start at an actual slice",
          "already seen when encountering start of flow event")


def need_viewer() -> None:
    need((VIEWER / "trace_viewer_full.html").exists(), "the trace viewer: package golang-1.19-src")


def need_processor() -> None:
    need((PROCESSOR / "trace_processor.wasm").exists(), "the trace processor: tests/browser/fetch.sh")


class Pages:
    """The browser, and a server for the pages of one test."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._folder = case.path("served")
        self._folder.mkdir(exist_ok=True)
        self._base = serve(case, pages=[HERE], processor=[PROCESSOR, HERE], viewer=[VIEWER], data=[self._folder])
        self._browser = shared()

    def load(self, page: str, trace: Path, picture: str = "") -> dict[str, Any]:
        """What the page reports of the trace, with a screenshot. The trace is not looked at where it is."""
        shutil.copy(trace, self._folder / "trace")
        try:
            return self._load(page, picture)
        except BaseException:
            close_shared()  # nothing of it shall be in the next test
            raise

    def _load(self, page: str, picture: str) -> dict[str, Any]:
        self._browser.open(f"{self._base}/pages/{page}.html?trace=/data/trace")
        try:
            report = self._browser.report()
            errors = self._browser.errors()
            assert not errors, f"the page complains: {errors}"
        finally:
            name = re.sub("[^A-Za-z0-9]+", "-", self._case.name + picture)
            self._browser.screenshot(LOGS / f"browser-{name}.png")
        return report


def load(case: Case, page: str, trace: Path) -> dict[str, Any]:
    return Pages(case).load(page, trace)


def same(what: str, shown: Any, expected: Any) -> None:
    assert shown == expected, f"{what}: the page has {str(shown)[:500]}, the file {str(expected)[:500]}"


# ---- trace_view.json ---------------------------------------------------------

class TraceView:
    """What a viewer must find in a trace_view.json."""

    def __init__(self, path: Path) -> None:
        events = json.loads(path.read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        names = {(e["name"], e["pid"], e["tid"] if e["name"] == "thread_name" else 0): e["args"]["name"]
                 for e in events if e["ph"] == "M" and e["name"] in ("process_name", "thread_name")}
        slices = [e for e in events if e["ph"] == "X"]
        rows = Counter((e["pid"], e["tid"]) for e in slices)
        self.processes = sorted(names["process_name", pid, 0] for pid in
                                {e["pid"] for e in events if ("process_name", e["pid"], 0) in names})
        self.rows = sorted([names.get(("process_name", pid, 0), ""), names.get(("thread_name", pid, tid), ""), n]
                           for (pid, tid), n in rows.items())
        self.slices = len(slices)
        self.names = Counter(e["name"] for e in slices)
        self.duration = sum(Decimal(str(e["dur"])) for e in slices)  # us
        self.counters = sorted([names.get(("process_name", pid, 0), ""), name, n] for (pid, name), n in
                               Counter((e["pid"], e["name"]) for e in events if e["ph"] == "C").items())
        # Every series of a counter is a track.
        self.series = Counter(len(e["args"]) for e in events if e["ph"] == "C")
        self.values: dict[str, list[float]] = {}
        for e in events:
            for series, value in e["args"].items() if e["ph"] == "C" else ():
                if not series.lower().endswith("id"):
                    self.values.setdefault(e["name"], []).append(value)
        self.flow_ends = sum(e["ph"] == "f" for e in events)
        self.ends = [(e["cat"], int(Decimal(str(e["ts"])) * 1000)) for e in events if e["ph"] == "f"]
        self._find_flows(events, rows)

    def _find_flows(self, events: list[dict[str, Any]], rows: Counter[tuple[Any, Any]]) -> None:
        # Flows from and to rows without slices, such as those of calls that level 0 leaves out, are left out.
        drawn = [e for e in events if e["ph"] in "sf" and (e["pid"], e["tid"]) in rows]
        self.homeless = sum(e["ph"] in "sf" for e in events) - len(drawn)
        begun = {(e.get("cat"), e["name"], str(e["id"])) for e in drawn if e["ph"] == "s"}
        self.flows = sum(e["ph"] == "f" and (e.get("cat"), e["name"], str(e["id"])) in begun for e in drawn)
        # The viewer's numbers are doubles. Times have a quarter of a microsecond, so that it may miss what
        # lies that near to a border, and ids that are times in nanoseconds are the same for neighbours.
        long = {(e["pid"], e["tid"], str(e["ts"])) for e in events if e["ph"] == "X" and e["dur"] >= 0.5}
        ids = Counter((e.get("cat"), e["name"], e["id"] if isinstance(e["id"], str) else float(e["id"]))
                      for e in drawn if e["ph"] == "s")
        starts = {(e.get("cat"), e["name"], str(e["id"])): float(e["ts"]) for e in drawn if e["ph"] == "s"}
        self.blurred = sum(n for n in ids.values() if n > 1)
        # A flow ends once there.
        ends = Counter((e.get("cat"), e["name"], str(e["id"])) for e in drawn if e["ph"] == "f")
        self.blurred += sum(n - 1 for n in ends.values())
        for e in drawn:
            start = starts.get((e.get("cat"), e["name"], str(e["id"])))
            self.blurred += (e["pid"], e["tid"], str(e["ts"])) not in long or \
                (e["ph"] == "f" and start is not None and float(e["ts"]) - start < 0.5)


def compare_viewer(report: dict[str, Any], expected: TraceView) -> None:
    same("slices", report["slices"], expected.slices)
    same("rows", sorted(r for r in report["threads"] if r[2]), expected.rows)
    same("processes", sorted(filter(None, report["processes"])), expected.processes)
    same("counters", sorted(report["counters"]), expected.counters)
    assert abs(report["duration"] - float(expected.duration) / 1000) < 1e-3 * len(expected.rows) + 1, \
        f"durations: the page has {report['duration']} ms, the file {expected.duration} us"
    kinds = Counter(next((k for k in UNSEEN if k in w), w) for w in report["warnings"])
    unmatched, nowhere, homeless, again = (kinds.pop(k, 0) for k in UNSEEN)
    assert not kinds, f"the viewer warns: {list(kinds)[:5]}"
    same("flows with those that the viewer could not place", report["flows"] + unmatched + nowhere, expected.flow_ends)
    assert report["flows"] >= expected.flows - expected.blurred, \
        f"{report['flows']} of {expected.flows} flows are shown, {expected.blurred} need not be"
    assert homeless <= expected.homeless + expected.blurred, f"{homeless} flows begin nowhere"
    assert again <= expected.blurred, f"{again} flows begin twice"
    assert report["drawn"] >= len(expected.rows), f"{report['drawn']} headings for {len(expected.rows)} rows"


def compare_processor_json(report: dict[str, Any], expected: TraceView) -> None:
    problems = dict(report["problems"])
    dropped = problems.pop(OVERLAPPING, 0)
    homeless = problems.pop(HOMELESS, 0)
    assert homeless <= expected.homeless + dropped, f"{homeless} flows without a slice, not {expected.homeless}"
    assert not problems, f"the trace processor complains: {problems}"
    same("slices with those that overlap", report["slices"][0][0] + dropped, expected.slices)
    same("processes", sorted(name for _pid, name in report["processes"] if name), expected.processes)
    same("values of counters", sum(row[2] for row in report["counters"]),
         sum(series * n for series, n in expected.series.items()))
    extra = {name: n for name, n in report["names"] if n > expected.names[name]}
    assert not extra, f"names that the file does not have so often: {extra}"
    flows = report["flows"][0][0]
    assert expected.flows * 0.9 - dropped <= flows <= expected.flow_ends, f"{flows} of {expected.flows} flows are shown"


def viewer_shows(case: Case, path: Path) -> None:
    need_viewer()
    compare_viewer(load(case, "viewer", path), TraceView(path))


def processor_reads_json(case: Case, path: Path) -> None:
    need_processor()
    compare_processor_json(load(case, "processor", path), TraceView(path))


# ---- .pftrace --------------------------------------------------------------------

def compare_pftrace(report: dict[str, Any], expected: Trace) -> None:
    same("problems", report["problems"], [])
    same("slices", report["slices"][0][:2],
         [len(expected.slices), sum(s[3] == -1 for s in expected.slices)])
    # Rows of the same name are one: where slices overlap, the trace processor may choose another of them.
    tracks: Counter[tuple[str, str]] = Counter()
    for track, _name, _begin, duration in expected.slices:
        tracks[expected.names[track], "n"] += 1
        tracks[expected.names[track], "dur"] += max(duration, 0)
    shown_tracks: Counter[tuple[str, str]] = Counter()
    for name, n, duration in report["tracks"]:
        shown_tracks[name, "n"] += n
        shown_tracks[name, "dur"] += int(duration)
    same("tracks", dict(shown_tracks), dict(tracks))
    same("names", dict(report["names"]), dict(Counter(s[1] for s in expected.slices)))
    same("categories", dict(report["categories"]), dict(expected.categories))
    same("processes", sorted(map(tuple, report["processes"])), sorted(set(expected.processes)))
    # A process always has its first thread there.
    same("threads", sorted((tid, name or "", pid) for tid, name, pid in report["threads"]
                           if name or (tid, "", pid) in expected.threads), sorted(set(expected.threads)))
    shown_counters = sorted((name, n, float(total)) for name, _unit, n, total in report["counters"])
    counters = sorted((expected.names[t], len(v), math.fsum(v)) for t, v in expected.counters.items())
    same("counters", [c[:2] for c in shown_counters], [c[:2] for c in counters])
    for (name, _n, found), (*_same, total) in zip(shown_counters, counters):
        assert math.isclose(found, total, rel_tol=1e-9), f"{name}: the page sums {found}, the file {total}"
    same("flows", report["flows"][0][0], expected.flows)
    same("arguments", report["arguments"][0][0], expected.arguments)


def processor_reads_pftrace(case: Case, path: Path) -> None:
    need_processor()
    compare_pftrace(load(case, "processor", path), Trace(path))


def written(case: Case, *args: str) -> Path:
    need(WRITER.exists(), f"{WRITER.relative_to(ROOT) if WRITER.is_relative_to(ROOT) else WRITER}: make browser")
    case.run([WRITER, case.dir, "written.pftrace", *args]).expect(0)
    return case.path("written.pftrace")


@test
def everything_written_is_read(case: Case) -> None:
    need_processor()
    path = written(case)
    trace = Trace(path)
    assert len(trace.slices) == 3000 + 9 + 153, len(trace.slices)
    report = load(case, "processor", path)
    compare_pftrace(report, trace)
    same("clocks", {name: int(ns) for name, ns in report["clocks"]},
         {"BOOTTIME": 1000000500000, "MONOTONIC": 1000000000000, "REALTIME": 1736408883704643212})
    same("unit", report["counters"][0][1], "MHz")


@test
def many_events_are_read(case: Case) -> None:
    need_processor()
    many = 200000 if SOAK else 20000
    path = written(case, str(many))
    report = load(case, "processor", path)
    same("problems", report["problems"], [])
    same("slices", report["slices"][0][0], 3 * many + 9 + 153)
    same("flows", report["flows"][0][0], many)


# ---- that the tests can fail -----------------------------------------------------

SMALL = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "CANN"}},
         {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "Thread 2"}},
         {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": "1736408883688177.930", "dur": 10},
         {"ph": "X", "name": "b", "pid": 1, "tid": 2, "ts": "1736408883688178.930", "dur": 3},
         {"ph": "C", "name": "c", "pid": 1, "tid": 0, "ts": "1736408883688177.930", "args": {"KB": 1}}]


def fails(compare: Any, *args: Any) -> None:
    try:
        compare(*args)
    except AssertionError:
        return
    raise AssertionError(f"{compare.__name__} did not notice")


@test
def a_lost_slice_is_noticed(case: Case) -> None:
    need_viewer()
    need_processor()
    whole, less = case.path("whole.json"), case.path("less.json")
    whole.write_text(json.dumps(SMALL))
    less.write_text(json.dumps(SMALL[:-2] + SMALL[-1:]))
    for page, compare in (("viewer", compare_viewer), ("processor", compare_processor_json)):
        report = load(case, page, less)
        compare(report, TraceView(less))
        fails(compare, report, TraceView(whole))


@test
def a_broken_file_is_an_error(case: Case) -> None:
    need_viewer()
    broken = case.path("broken.json")
    broken.write_text(json.dumps(SMALL)[:-70] + '"ts": nothing}]')
    fails(load, case, "viewer", broken)


# ---- results of each kind ------------------------------------------------------------

KERNELS = "800"
MANY = "200000" if SOAK else "20000"  # of two ranks: a database has the number for each rank
AUX = ROOT / "tests" / "cannraw_aux"

# Tables of which each row with a time is a slice, and the category that it has in npuscope.pftrace.
LAYERS = (("cann", "SELECT startNs, endNs FROM CANN_API"),
          ("npu", "SELECT startNs, endNs FROM TASK"),
          ("communication", "SELECT startNs, endNs FROM COMMUNICATION_OP"),
          ("communication", "SELECT startNs, endNs FROM COMMUNICATION_TASK_INFO JOIN TASK USING (globalTaskId)"),
          ("queue", "SELECT startNs, endNs FROM PYTORCH_API WHERE type = 50002"),
          ("python", "SELECT startNs, endNs FROM PYTORCH_API WHERE type = 50003"),
          ("cpu_op", "SELECT startNs, endNs FROM PYTORCH_API WHERE type NOT IN (50002, 50003)"),
          ("step", "SELECT startNs, endNs FROM STEP_TIME"),
          ("gc", "SELECT startNs, endNs FROM GC_RECORD"),
          ("mstx", "SELECT startNs, endNs FROM MSTX_EVENTS"),
          ("osrt", "SELECT startNs, endNs FROM OSRT_API"),
          ("overlap", "SELECT startNs, endNs FROM OVERLAP_ANALYSIS"))
NESTING = ("SELECT globalTid & 0xffffffff, startNs, endNs FROM CANN_API",
           "SELECT globalTid & 0xffffffff, startNs, endNs FROM PYTORCH_API WHERE type != 50002")
MARKS = ("SELECT p.globalTid & 0xffffffff, p.startNs, p.endNs FROM PYTORCH_API p JOIN STRING_IDS s ON s.id = p.name"
         " WHERE s.value LIKE 'ProfilerStep#%'")
# Groups in the order in which a page shows them, by the beginnings of their names.
ORDER = ("PROCESS", "Steps", "Ascend Hardware", "Communication", "Overlap Analysis", "Counters", "Host counters",
         "CPUs")


# Counters of trace_view.json, those of npuscope.pftrace, and what the values differ by.
COUNTERS = ((r"HBM \d+/.*", r"HBM \d+ .*", 1 << 20), (r"DDR/.*", r"DDR .*", 1 << 20), (r"QoS .*", r"QoS .*", 1 << 20),
            (r"PCIe_(post|nonpost|cpl)", r"PCIe (posted|not posted|completions) .*", 1 << 20),
            (r"PCIe_nonpost_latency", r"PCIe latency .*", 1000), (r"UB .*", r"UB .*", 1 << 20),
            (r"(req|rsp|snp|dat)_[rt]x", r"SIO .*", 1 << 20), (r"[RT]x", r"HCCS .*", 1 << 20),
            (r"LLC .*/Throughput", r"LLC .* throughput", 1 << 20), (r"LLC .*/Hit Rate", r"LLC .* hit rate", 100),
            (r"(APP|Device)/(HBM|DDR)", r"Memory of .*", 1024), (r"(read|write)_(bandwidth|ost)", r"Accelerator .*", 1),
            (r"(PA Link|PCIE) .*", r"PA link .*|PCIe \d+ .*", 1), (r".* Bw Level", r".* bandwidth level", 1),
            (r"CPU \w+", r"CPU \w+", 1), (r"(Memory|Disk|Network) Usage", r"(Memory|Disk|Network) usage", 1))


def generator(case: Case) -> Path:
    """The program that makes sessions with known content."""
    made = BUILD / "bench" / "gen_session"
    if not made.exists():
        made = case.path("gen_session")
        case.run([need_program("gcc", "gcc"), "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-o", made,
                  f"-I{ROOT}/kheaders", f"-I{ROOT}/analyzer", f"-I{ROOT}/tests/unit",
                  ROOT / "tools" / "bench" / "gen_session_main.c", ROOT / "tests" / "unit" / "gen_session.c",
                  "-lz", "-lm"]).expect(0)
    return made


def a_session(case: Case, tasks: str = KERNELS) -> Path:
    case.run([generator(case), case.path("session"), tasks]).expect(0)
    return case.path("session")


def a_capture(case: Case) -> Path:
    """PROF_*, with counters where they can be made."""
    gen = ROOT / "build" / "tests" / "gen-cann"
    need(gen.exists(), "build/tests/gen-cann: make witnesses")
    case.run([gen, "--tasks", KERNELS, "--truth", case.path("cann.jsonl"), case.path("capture")]).expect(0)
    prof = next(case.path("capture").glob("PROF_*"))
    case.run([sys.executable, AUX / "sidecars.py", prof]).expect(0)
    return prof


def a_framework(case: Case) -> Path:
    """*_ascend_pt as the PyTorch profiler leaves it."""
    gen = ROOT / "build" / "tests" / "gen-cann"
    need(gen.exists(), "build/tests/gen-cann: make witnesses")
    truth = case.path("cann.jsonl")
    case.run([gen, "--tasks", KERNELS, "--truth", truth, case.path("capture")]).expect(0)
    case.run([sys.executable, AUX / "framework.py", case.path("framework"), "--task-queue", "--memory", "--gc",
              "--mstx",
              "--python-stacks", "--prof", next(case.path("capture").glob("PROF_*")), "--prof-truth", truth]).expect(0)
    return next(case.path("framework").glob("*_ascend_pt"))


def a_database(case: Case) -> Path:
    """The database of a framework's result, alone."""
    case.analyze(a_framework(case), "-e", "db", "-o", case.path("first")).expect(0)
    found = next(case.path("first").rglob("ascend_pytorch_profiler_*.db"))
    case.path("database").mkdir()
    return Path(shutil.copy(found, case.path("database") / found.name))


class Result:
    """Files of the first rank's result."""

    def __init__(self, case: Case, source: Path) -> None:
        out = case.path("result")
        case.analyze(source, "-e", "text,db,perfetto", "-o", out).expect(0, 3)
        self.pftrace = sorted(out.rglob("npuscope.pftrace"))[0]
        output = self.pftrace.parent
        self.json = next(iter([*output.glob("trace_view.json*"), *output.glob("msprof_*.json")]))
        self.db = next(iter([*output.glob("ascend_pytorch_profiler*.db"), *output.parent.glob("msprof_*.db")]))


def rows(db: sqlite3.Connection, query: str) -> list[tuple[int, ...]]:
    """Numbers; none where the table does not exist because nothing of its kind happened."""
    try:
        return [tuple(map(int, row)) for row in db.execute(query)]
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error), error
        return []


def nested(calls: list[tuple[int, int]]) -> tuple[int, int]:
    """How many of a thread's calls cross an earlier one, and how deep the others nest."""
    crossing = deepest = 0
    ends: list[int] = []
    for start, negative in sorted((start, -end) for start, end in calls):
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and -negative > ends[-1]:
            crossing += 1
            continue
        ends.append(-negative)
        deepest = max(deepest, len(ends) - 1)
    return crossing, deepest


def compare_with_database(report: dict[str, Any], path: Path, view: Optional[TraceView] = None) -> None:
    """The trace has each row of the database that the same run wrote, at the same nanosecond."""
    first = int(report["bounds"][0][0])
    layers: dict[str, list[int]] = {}
    threads: dict[int, list[tuple[int, int]]] = {}
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        for category, query in LAYERS:
            for start, end in rows(db, query):
                if start:
                    row = layers.setdefault(category, [0, 0, 0])
                    row[0] += 1
                    row[1] += start - first
                    row[2] += max(end - start, 0)
        for query in NESTING:
            for tid, start, end in rows(db, query):
                threads.setdefault(tid, []).append((start, end))
        memory = len(rows(db, "SELECT timestamp FROM MEMORY_RECORD WHERE totalAllocated IS NOT NULL"))
        marks = rows(db, MARKS)
    assert layers, "the database has no rows"
    found = {c: list(map(int, v)) for c, *v in report["layers"] if c != "sched"}
    # Marks of a session of npuscope stand for its steps, which the page has; others are operators.
    if marks and found.get("cpu_op", [0])[0] + len(marks) == layers["cpu_op"][0]:
        for tid, start, end in marks:
            threads[tid].remove((start, end))
            layers["cpu_op"] = [a - b for a, b in zip(layers["cpu_op"], (1, start - first, max(end - start, 0)))]
        layers = {category: row for category, row in layers.items() if row[0]}
        threads = {tid: calls for tid, calls in threads.items() if calls}
    if "overlap" not in layers:  # older databases have no table for it
        found.pop("overlap", None)
    if view and found["npu"] != layers["npu"]:
        # Tasks that stand for the tasks of a graph are in no trace.
        same("tasks", found.pop("npu")[0], sum(n for name, _row, n in view.rows if name == "Ascend Hardware"))
        layers.pop("npu")
    same("layers", found, layers)
    # A real thread's calls nest: on its row are all that cross no other.
    calls = {tid: (n, depth) for tid, n, depth in report["calls"]}
    for tid, list_ in threads.items():
        crossing, depth = nested(list_)
        same(f"thread {tid}", calls.get(tid), (len(list_) - crossing, depth))
    same("values of allocators", sum(n for name, _unit, n, _ in report["counters"] if name.endswith(" allocated")),
         memory)


def compare_arrows(report: dict[str, Any], expected: TraceView, real: bool) -> None:
    """Arrows lead from the call to what it started, forwards, and to
    the slices that trace_view.json names."""
    first = int(report["bounds"][0][0])
    found = [0, 0]
    for source, target, n, start, back, _same in report["arrows"]:
        assert back == 0, f"{back} arrows from {source} to {target} go back in time"
        if target == "queue":
            same("arrows of queues", n, sum(cat == "async_task_queue" for cat, _ts in expected.ends))
            continue
        # Where clocks do not fit, a task comes before its call; of two tasks
        # of a call the second follows the first.
        assert source == "cann" or (real and source == "npu"), f"{n} arrows from {source} to {target}"
        found = [found[0] + n, found[1] + int(start)]
    ends = [ts - first for cat, ts in expected.ends if cat == "HostToDevice"]
    assert ends, "no call leads anywhere"
    if real:  # generation A has no arrows to events
        assert found[0] >= len(ends), f"{found[0]} arrows, trace_view.json has {len(ends)}"
    else:
        same("arrows from calls", found, [len(ends), sum(ends)])


def compare_counters(report: dict[str, Any], expected: TraceView) -> None:
    for ours, shown_as, factor in COUNTERS:
        total = sum(sum(v) for name, v in expected.values.items() if re.fullmatch(ours, name)) * factor
        found = sum(row[3] for row in report["counters"] if re.fullmatch(shown_as, row[0]))
        assert math.isclose(total, found, rel_tol=1e-4), f"{shown_as}: the page sums {found}, trace_view.json {total}"


def compare_order(report: dict[str, Any]) -> None:
    processes = {name for _pid, name in report["processes"]}
    groups = ["PROCESS" if name in processes else name for level, name in report["order"] if level == 0]
    ranks = [next((i for i, start in enumerate(ORDER) if name.startswith(start)), None) for name in groups]
    assert None not in ranks, f"groups without a place: {groups}"
    assert ranks == sorted(ranks) and ranks[0] == 0, f"groups are shown in this order: {groups}"


def shown(case: Case, source: Path, *, real: bool = False) -> None:
    """A result's files as each page has them, and the same in all."""
    need_viewer()
    need_processor()
    result = Result(case, source)
    expected = TraceView(result.json)
    pages = Pages(case)
    report = pages.load("processor", result.pftrace, "-pftrace")
    compare_pftrace(report, Trace(result.pftrace))
    compare_with_database(report, result.db, expected)
    compare_arrows(report, expected, real)
    compare_counters(report, expected)
    compare_order(report)
    same("clock", list(dict(report["clocks"])), ["REALTIME"])
    compare_viewer(pages.load("viewer", result.json, "-viewer"), expected)
    compare_processor_json(pages.load("processor", result.json, "-json"), expected)


@test
def a_session_is_shown(case: Case) -> None:
    shown(case, a_session(case))


@test
def a_capture_is_shown(case: Case) -> None:
    shown(case, a_capture(case))


@test
def a_framework_is_shown(case: Case) -> None:
    shown(case, a_framework(case))


@test
def a_database_is_shown(case: Case) -> None:
    shown(case, a_database(case))


@test
def a_compressed_trace_is_the_same(case: Case) -> None:
    source = a_session(case)
    plain = Result(case, source).json
    packed = case.path("packed")
    case.analyze(source, "-e", "text", "--gzip", "-o", packed).expect(0)
    found = sorted(packed.rglob("trace_view.json*"))[0]
    same("name", found.name, "trace_view.json.gz")
    assert gzip.decompress(found.read_bytes()) == plain.read_bytes(), "trace_view.json.gz holds something else"


@test
def many_kernels_load(case: Case) -> None:
    need_processor()
    result = Result(case, a_session(case, MANY))
    report = Pages(case).load("processor", result.pftrace)
    same("problems", report["problems"], [])
    compare_with_database(report, result.db)
    tasks = next(n for category, n, *_times in report["layers"] if category == "npu")
    assert tasks > int(MANY) * 0.45, f"only {tasks} tasks"


# ---- results that are there -----------------------------------------------------------

def roots() -> list[Path]:
    """Folders to search for results; they are no names of tests."""
    folders = [a for a in sys.argv[1:] if os.path.isdir(a)]
    sys.argv[1:] = [a for a in sys.argv[1:] if a not in folders]
    return [Path(a) for a in folders or [os.environ[v] for v in VARIABLES if os.environ.get(v)]]


def no_results(_case: Case) -> None:
    raise Skip(f"needs results: folders in {' or '.join(VARIABLES)}")


def add_results() -> None:
    found = False
    for root in roots():
        for path in sorted([*root.rglob("trace_view.json"), *root.rglob("*.pftrace")]):
            name = ":".join(path.relative_to(root.parent).parts)
            if path.stat().st_size > LARGEST:
                print(f"{name} is too large for a browser")
                continue
            found = True
            if path.suffix == ".json":
                add_test(f"viewer_shows_{name}", lambda case, path=path: viewer_shows(case, path))
                add_test(f"processor_reads_{name}", lambda case, path=path: processor_reads_json(case, path))
            else:
                add_test(f"processor_reads_{name}", lambda case, path=path: processor_reads_pftrace(case, path))
        for path in sorted(root.rglob("ascend_pytorch_profiler*.db")):
            if not list(path.parent.glob("trace_view.json*")):
                found = True
                name = ":".join(path.relative_to(root.parent).parts)
                add_test(f"our_result_of_{name}", lambda case, path=path: shown(case, path.parents[1], real=True))
    if not found:
        add_test("results_are_shown", no_results)


if __name__ == "__main__":
    add_results()
    sys.exit(main())
