#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The device's task log, three ways, on every generation of chip: each task that the simulator ran is found,
at the time and by the name in its truth file, with its counters; bounds hold; and the job's own profiler gets
all that is its own."""

from __future__ import annotations

import bisect
import csv
import json
import re
import signal
import sqlite3
import statistics
import sys
import time
from collections import Counter
from decimal import Decimal
from typing import Any

from harness import (DONE, PARTIAL, Case, Result, Session, children_of, host_environment, main, test, wait_until,
                     without_events)
from records import CQE
from task_log_job import BESIDE, CLOCK_NS, EDGE_NS, Found, Job, capture, hold_up, key_of, lines_of, pmu_of, truthfile

CHIPS = ("910B", "950", "910A", "310P")


def agent_times_all(case: Case, chip: str, **more: str) -> None:
    job = Job(case, chip, **more)
    result = capture(job, 3, "--task-source", "agent").result(90).expect(DONE)
    n = hold_up(job, job.end(), Found(result, chip))
    assert n["bounded"] == 0, n


def blocks_are_true(job: Job, truth: truthfile.Truth, result: Result, chip: str, begin: int, end: int) -> None:
    """Each block that ran from BEGIN to END, CLOCK_MONOTONIC, is a row of its task, on
    the core and at the time of the truth."""
    path = next(result.session.path.parent.rglob("ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        rows: dict[tuple[int, ...], list[tuple[int, int, int, int]]] = {}
        for stream, task, block, start, stop, vector, core in db.execute(
                "SELECT streamId, taskId, blockId, startNs, endNs, vectorCore, coreId FROM NPUSCOPE_BLOCK"):
            rows.setdefault((stream, task, block), []).append((start, stop, vector, core))
    checked = 0
    for line in job.lines("block"):
        _device, stream, task, _flip, block, vector, core, start, stop = map(int, line)
        if not begin < truth.clock.mono(start) or not truth.clock.mono(stop) < end:
            continue
        found = rows.get((stream, task, block), [])
        assert found, f"block {block} of task {stream}:{task} has no row, of {len(rows)}"
        at = truth.clock.real(start)
        row = min(found, key=lambda r: abs(r[0] - at))
        assert abs(row[0] - at) < CLOCK_NS and abs(row[1] - truth.clock.real(stop)) < CLOCK_NS, (row, at)
        assert row[2:] == (vector, core), (row, vector, core)
        checked += 1
    assert checked > 1000, f"{checked} blocks"


def profiler_times_all(case: Case, chip: str) -> None:
    """The job's own profiler begins and ends within the capture; nothing of ours opens a channel."""
    job = Job(case, chip, agent=False, profiler=True, PROFILE_BESIDE=str(BESIDE[chip]), NPUSIM_BLOCKS="6")
    run = capture(job, 6, "--task-source", "profiler")
    time.sleep(1)
    case.path("start.0").touch()
    log = case.path(f"log.{job.pid}")
    wait_until(lambda: log.read_text().count("start 0") == 2, "the job's own profiler")
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(2.5)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    case.path("stop.0").touch()
    result = run.result(90).expect(DONE)
    truth = job.end()
    n = hold_up(job, truth, Found(result, chip), begin=begin, end=end)
    assert n["bounded"] == 0, n
    if BESIDE[chip] == 51:
        blocks_are_true(job, truth, result, chip, begin + EDGE_NS, end - EDGE_NS)
    files = {50: "stars_soc", 45: "hwts", 44: "ts_track", 51: "stars_block"}
    own = {int(p.name.rsplit(".", 1)[1]): p for p in case.dir.glob(f"own.{job.pid}.0.*")}
    assert sorted(re.findall(r"^(\w+) (-?\d+)", log.read_text(), re.M)) == \
        [("start", "0")] * len(own) + [("stop", "0")] * len(own), log.read_text()
    assert len(job.lines("channel")) == 2 * len(own), job.lines("channel")
    for channel, path in own.items():
        parts = [p for p in result.session.path.glob(f"PROF_*/device_*/data/{files[channel]}.data.*.slice_*")
                 if not p.name.endswith(".done")]
        copied = b"".join(p.read_bytes() for p in sorted(parts, key=lambda p: int(p.name.rsplit("_", 1)[1])))
        assert copied == path.read_bytes(), f"{len(copied)} bytes of {path} were copied, of {path.stat().st_size}"


def profiler_in_a_container(case: Case, *, dcmi: bool) -> tuple[dict[str, int], Result]:
    """Its device 0 is the host's device 3; it holds memory of that alone. DCMI: that can be queried."""
    job = Job(case, "910B", agent=False, profiler=True, inside=("unshare", "--mount", "--pid", "--fork"),
              NPUSIM_FIRST_DEVICE="3")
    (pid,) = children_of(job.main)
    assert pid != job.pid
    orders = case.open_path("orders")
    orders.write_text("" if dcmi else "error 5 * dcmi -8002 always\n")
    run = case.record("-p", pid, "-d", "6s", "-o", case.path("out"), "--export", "db", "--task-source", "profiler",
                      env=host_environment(case, **job.machine, NPUSIM_CONTROL=str(orders)))
    run.wait_for("^npuscope: recording ", err=True)
    case.path("start.0").touch()
    log = case.path(f"log.{job.pid}")
    wait_until(lambda: "start 0" in log.read_text(), "the job's own profiler")
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(3)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    case.path("stop.0").touch()
    result = run.result(90).expect(DONE, PARTIAL)
    assert result.session.process(pid)["device_numbers"] == "container"
    return hold_up(job, job.end(), Found(result, "910B"), begin=begin, end=end), result


@test(seconds=120)
def profiler_in_a_container_is_timed(case: Case) -> None:
    n, result = profiler_in_a_container(case, dcmi=True)
    assert n["bounded"] == 0 and result.status == DONE, (n, result.err)


@test(seconds=120)
def profiler_in_a_container_without_a_device(case: Case) -> None:
    """For one device nobody reports its users: it might be the job's. Nothing is guessed."""
    n, result = profiler_in_a_container(case, dcmi=False)
    assert n["measured"] == 0, n
    assert sum("cannot be read from outside its container" in line for line in result.complaints) == 1, result.err


def bounds_hold(case: Case, chip: str) -> None:
    """Nobody reads the log: tasks have their ids, names and kinds all
    the same, whatever the chip calls them."""
    job = Job(case, chip)
    result = capture(job, 2, "--task-source", "host").result(90).expect(DONE)
    n = hold_up(job, job.end(), Found(result, chip))
    assert n["measured"] == 0, n
    (device,) = result.session.json["devices"]
    assert device["platform"] == {"910A": 1, "310P": 4, "910B": 5, "950": 15}[chip], device


for _chip in CHIPS:
    for _f in (agent_times_all, profiler_times_all, bounds_hold):
        def _one(case: Case, f: Any = _f, chip: str = _chip) -> None:
            f(case, chip)
        _one.__name__ = f"{_f.__name__}_{_chip}"
        test(_one)


def ai_cpu_kernels(case: Case, chip: str) -> None:
    """What the AI CPU reports of its kernels is what the simulator reports,
    in the file that the vendor has for it."""
    job = Job(case, chip, options=("--ai-cpu",))
    result = capture(job, 2, "--task-source", "agent", "--export", "text,db", "--level", "2").result(90).expect(DONE)
    truth, found = job.end(), Found(result, chip)
    with open(next(result.session.path.parent.rglob("data_preprocess.csv")), encoding="utf-8") as file:
        rows = {(*((int(row["Stream ID"]),) if chip != "950" else ()), int(row["Task ID"])): row
                for row in csv.DictReader(file)}
    checked = 0
    for task in truth.tasks:
        launch = truth.launches.get(task.launch)
        if not launch or launch.name != "GetNextSample" or \
            not found.begin + EDGE_NS < truth.clock.mono(task.submit) or \
                not truth.clock.mono(task.end) < found.end - EDGE_NS:
            continue
        row = rows[key_of(task, chip)]
        assert row["Node"] == "GetNextSample", row
        start = Decimal(row["Timestamp(us)"].strip()) * 1000
        assert abs(int(start) - truth.clock.real(task.start)) < CLOCK_NS, (row, task)
        assert abs(float(row["Task_time(us)"]) * 1000 - (task.end - task.start)) < 1000, (row, task)
        assert abs(float(row["Total_time(us)"]) * 1000 - (task.end - task.submit)) < 2000, (row, task)
        # Whole us of the device's clock: all of the time computes, nothing is copied.
        assert abs(float(row["Compute_time(us)"]) * 1000 - (task.end - task.start)) < 2000, (row, task)
        assert float(row["Memcpy_time(us)"]) == 0, row
        checked += 1
    assert checked > 10, f"{checked} kernels of the AI CPU"


for _chip in ("910B", "950"):
    def _ai_cpu(case: Case, chip: str = _chip) -> None:
        ai_cpu_kernels(case, chip)
    _ai_cpu.__name__ = f"ai_cpu_kernels_{_chip}"
    test(_ai_cpu)


@test
def sub_tasks_overlap(case: Case) -> None:
    """FFTS+ tasks of three contexts in three threads each, open at once: every task has its times and
    cores, none of its sub-tasks is left over; and as the vendor's raw data the log has each context
    from its first thread to its last one."""
    job = Job(case, "910B", NPUSIM_FFTS="3x3")
    result = capture(job, 2, "--task-source", "agent").result(90).expect(DONE)
    truth, found = job.end(), Found(result, "910B")
    assert hold_up(job, truth, found)["bounded"] == 0
    spans: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    tasks: dict[tuple[int, int, int], int] = {}
    for line in job.lines("sub"):
        _device, stream, task, flip, context, _thread, start, stop = map(int, line)
        tasks[stream, task, flip] = start
        spans.setdefault((stream, task, flip << 16 | context), []).append((start, stop))
    path = next(result.session.path.parent.rglob("ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        mixed = {(stream, task) for stream, task in db.execute(
            "SELECT t.streamId, t.taskId FROM TASK t JOIN COMPUTE_TASK_INFO c USING (globalTaskId) "
            "WHERE (SELECT value FROM STRING_IDS WHERE id = c.taskType) = 'MIX_AIC'")}
    inside = [key for key, start in tasks.items()
              if found.begin + EDGE_NS < truth.clock.mono(start) < found.end - EDGE_NS]
    assert len(inside) > 50 and all(key[:2] in mixed for key in inside), (len(inside), len(mixed))
    raw = next(result.session.path.glob("PROF_*"))
    imported = case.analyze(raw, "-o", case.path("raw"), "--export", "db").expect(DONE, PARTIAL)
    # of a task that ran when the log began, of one that ran when it ended
    left = [int(n) for n in re.findall(r"(\d+) (?:starts|ends) of tasks without", imported.err)]
    assert all(n <= 10 for n in left), imported.err
    rows: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for path in case.path("raw").rglob("*.db"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            if db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'TASK'").fetchone()[0]:
                for stream, task, context, start, stop in db.execute(
                        "SELECT streamId, taskId, contextId, startNs, endNs FROM TASK WHERE contextId < 4294967295"):
                    rows.setdefault((stream, task, context), []).append((start, stop))
    checked = 0
    for (stream, task, context), threads in spans.items():
        start, stop = min(t[0] for t in threads), max(t[1] for t in threads)
        if not found.begin + EDGE_NS < truth.clock.mono(start) < found.end - EDGE_NS or context >> 16:
            continue
        assert len(threads) == 3, (stream, task, context, threads)
        of = rows.get((stream, task, context & 0xffff), [])
        assert of, f"context {context} of task {stream}:{task} has no row"
        # That import has one read of the clock alone: lengths are held against the truth.
        assert any(abs((b - a) - (stop - start)) < 100 for a, b in of), (of, start, stop)
        checked += 1
    assert checked > 150, f"{checked} contexts"


def timed_events_tighten(case: Case, chip: str) -> None:
    """The job times the parts of every second step with events of its own: bounds hold
    in all steps, and are tighter in those."""
    job = Job(case, chip, options=("--time-every", "2"))
    # With the sampler the device's clock is known, and aligns timestamps of events: in one of the captures.
    sampler = ("--sys-hardware-mem",) if chip == "910B" else ()
    result = capture(job, 2.5, "--task-source", "host", *sampler).result(90).expect(DONE)
    truth, found = job.end(), Found(result, chip)
    n = hold_up(job, truth, found)
    assert n["measured"] == 0, n
    widths: dict[str, dict[bool, list[int]]] = {"tasks": {True: [], False: []}, "events": {True: [], False: []}}
    steps = sorted(truth.steps, key=lambda step: step.begin)
    for task in truth.tasks:
        if not found.begin + EDGE_NS < truth.clock.mono(task.submit) or \
                not truth.clock.mono(task.end) < found.end - EDGE_NS:
            continue
        at = bisect.bisect_right([step.begin for step in steps], task.submit) - 1
        row = found.nearest(key_of(task, chip), truth.clock.real(task.start))
        if at < 0 or task.submit > steps[at].end or row is None or row["endHighNs"] is None:
            continue
        timed = steps[at].number % 2 == 0
        widths["tasks"][timed].append(row["endHighNs"] - row["startLowNs"])
        if row["endLowNs"] is not None and row["startHighNs"] is not None:
            widths["events"][timed].append(row["startHighNs"] - row["endLowNs"])
    assert min(len(w) for w in widths["tasks"].values()) > 100, {k: len(w) for k, w in widths["tasks"].items()}
    assert statistics.median(widths["tasks"][True]) < 0.6 * statistics.median(widths["tasks"][False]), \
        {timed: statistics.median(w) for timed, w in widths["tasks"].items()}
    # of an event that was queried both bounds are known, and where the runtime reports completions of the one
    # that could have been queried in the other steps
    others = sum(step.number % 2 for step in steps) if chip == "910B" else 0
    assert len(widths["events"][True]) > 10 and len(widths["events"][False]) <= others, \
        {t: len(w) for t, w in widths["events"].items()}
    assert statistics.median(widths["events"][True]) < 0.2 * statistics.median(widths["tasks"][True])


for _chip in CHIPS:
    def _timed(case: Case, chip: str = _chip) -> None:
        timed_events_tighten(case, chip)
    _timed.__name__ = f"timed_events_tighten_{_chip}"
    test(_timed)


def counter_times(job: Job, truth: truthfile.Truth, session: Session) -> int:
    """Each completion record of an event has the device's counter at the event's end,
    and came after that; how many there are."""
    (_device, hz, offset, drift), = (map(float, line) for line in job.lines("device"))
    ends: dict[tuple[int, int], list[truthfile.Task]] = {}
    for task in truth.tasks:
        ends.setdefault((task.stream, task.task), []).append(task)
    records = session.of(CQE, job.pid)
    for e in records:
        got, stream, task = e.body, e.body.stream, e.body.task
        assert got.sqe_type == 4 and got.flags == 0 and e.ret == 0 and e.flags == 0 and got.error_code == 0, got
        done = [t for t in ends[stream, task] if truth.clock.mono(t.end) <= e.start + e.dur]
        assert done, f"{stream}:{task} was told of before it had ended"
        last = max(done, key=lambda t: t.end)
        assert abs(offset + last.end * hz * (1 + drift / 1e6) / 1e9 - got.counter) < 2, (last.end, got)
    return len(records)


def completions_tighten(case: Case, *sampler: str) -> None:
    """The job times its steps and never queries them: the runtime's completion records have the events'
    times, and bounds that follow from them hold and are tighter than those without the records."""
    job = Job(case, "910B", options=("--time-every", "1", "--never-ask"))
    result = capture(job, 2.5, "--task-source", "host", *sampler).result(90).expect(DONE)
    truth, found = job.end(), Found(result, "910B")
    n = hold_up(job, truth, found)
    assert n["measured"] == 0, n
    session = result.session
    assert counter_times(job, truth, session) > 50
    blind = without_events(session.path, CQE, case.path("blind"))
    case.analyze(blind, "-o", case.path("without"), "--export", "db").expect(DONE)
    widths = []
    for rows in (found.rows, Found(result, "910B", case.path("without")).rows):
        widths.append({(row["streamId"], row["taskId"], row["startNs"]):
                       row["endHighNs"] - row["startLowNs"] for row in rows if row["endHighNs"] is not None})
    known = widths[0].keys() & widths[1].keys()
    assert len(known) > 200
    with_records, without = ([of[key] for key in known] for of in widths)
    assert all(a <= b for a, b in zip(with_records, without)), "a bound is wider for knowing more"
    assert statistics.median(with_records) < 0.5 * statistics.median(without), (statistics.median(with_records),
                                                                               statistics.median(without))


@test
def completions_of_unasked_events(case: Case) -> None:
    """Only how far the events are from each other is known."""
    completions_tighten(case)


@test
def completions_with_the_devices_clock(case: Case) -> None:
    """The sampler reads the device's clock: the moments themselves are known."""
    completions_tighten(case, "--sys-hardware-mem")


# What a column is, in events of the counters: ratios of the cycles, sums that are reported as they are.
PMU_COLUMNS = {
    "PipeUtilization": {"aic_mac_ratio": (0x416, 0x417), "aic_scalar_ratio": (0x9,), "aic_mte1_ratio": (0x302,),
                        "aic_mte2_ratio": (0xc,), "aic_fixpipe_ratio": (0x303,), "aiv_vec_ratio": (0x8,),
                        "aiv_scalar_ratio": (0x9,), "aiv_mte2_ratio": (0xc,), "aiv_mte3_ratio": (0xd,)},
    "ArithmeticUtilization": {"aic_mac_fp16_ratio": (0x49,), "aic_mac_int8_ratio": (0x4a,),
                              "aiv_vec_fp32_ratio": (0x4b,),
                              "aiv_vec_fp16_ratio": (0x4c, 0x4d), "aiv_vec_int32_ratio": (0x4e,)},
    "ResourceConflictRatio": {"aiv_vec_bankgroup_cflt_ratio": (0x64,), "aiv_vec_bank_cflt_ratio": (0x65,),
                              "aiv_vec_resc_cflt_ratio": (0x66,)},
    "L2Cache": {"aic_write_cache_hit": (0x500,), "aiv_r1_read_cache_miss_allocate": (0x50a,)},
    "Memory": {}, "MemoryL0": {}, "MemoryUB": {}, "MemoryAccess": {},
}


# The 950's have numbers of their own, and ten of them in a record.
PMU_COLUMNS_950 = {
    "PipeUtilization": {f"{core}_{name}": events for core in ("aic", "aiv") for name, events in {
        "vec_ratio": (0x501,), "mac_ratio": (0x301,), "scalar_ratio": (0x1,), "mte1_ratio": (0x701,),
        "mte2_ratio": (0x202,),
        "mte3_ratio": (0x203,), "fixpipe_ratio": (0x714,), "icache_miss_rate": (0x35, 0x34)}.items()},
}


CORES = {"aic": 24, "aiv": 48}  # of a 910B, which runs at so many MHz
MHZ = 1800


# ai_core_metrics and ai_core_profiling_events, then those of vector cores, as
# the vendor's own collector writes them.
PIPE_OF_VENDOR = {
    "910B": ("PipeUtilizationExct", "0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55",
             "PipeUtilization", "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55"),
    "950": ("PipeUtilization", "0x501,0x301,0x1,0x701,0x202,0x203,0x714,0x35,0x34") * 2,
}


def named_as_vendor_does(result: Result, metric: str, chip: str) -> None:
    """Without these keys the vendor's parser leaves the counters out; it
    reads those of the device and of the host."""
    folder, = (path for path in result.session.path.glob("PROF_*") if (path / "device_0/data").glob("stars_soc.data.*")
               and json.loads((path / "host/info.json").read_text())["pid"] != "NA")
    for directory in ("host", "device_0"):
        reported = json.loads((folder / directory / "sample.json").read_text())
        assert reported["ai_core_profiling"] == reported["aiv_profiling"] == "on", reported
        assert reported["ai_core_profiling_mode"] == reported["aiv_profiling_mode"] == "task-based", reported
        names = tuple(reported[key] for key in ("ai_core_metrics", "ai_core_profiling_events", "aiv_metrics",
                                            "aiv_profiling_events"))
        assert names == PIPE_OF_VENDOR[chip] if metric == "PipeUtilization" else names[0] == names[2] == metric, names


def counters_are_true(case: Case, metric: str, chip: str = "910B", **env: str) -> Counter[str]:
    """Every kernel of the capture has the counters that the simulator has, through the documented formulas.
    How many of each kind of cores there were."""
    job = Job(case, chip, **env)
    columns = (PMU_COLUMNS_950 if chip == "950" else PMU_COLUMNS)[metric]
    result = capture(job, 2, "--task-source", "agent", "--aic-metrics", metric).result(90).expect(DONE, PARTIAL)
    truth = job.end()
    named_as_vendor_does(result, metric, chip)
    window = result.session.json["capture"]
    times = {(t.stream, t.task, t.flip): t for t in truth.tasks}
    found, values = pmu_of(result), 0
    checked: Counter[str] = Counter()
    for device, stream, task, flip, core, blocks, cycles, events in job.lines("pmu"):
        of = times[int(stream), int(task), int(flip)]
        if not window["begin_monotonic"] + EDGE_NS < truth.clock.mono(of.submit) or \
                not truth.clock.mono(of.end) < window["end_monotonic"] - EDGE_NS:
            continue
        start = truth.clock.real(of.start)
        rows = found.get((int(stream), int(task)), [])
        assert rows, f"kernel {stream}:{task}:{flip} on {device} has no counters"
        at, row = min(rows, key=lambda r: abs(r[0] - start))
        assert abs(at - start) < CLOCK_NS
        assert row[f"{core}_total_cycles"] == int(cycles), (row, cycles)
        if chip == "910B":
            time = int(cycles) / int(blocks) * -(-int(blocks) // CORES[core]) / MHZ * 1000
            assert abs(row[f"{core}_total_time"] - time) < 1, (row, time)
        counts = {int(e, 16): int(n) for e, n in (pair.split(":") for pair in events.split(","))} if events != "-" \
            else {}
        for column, parts in columns.items():
            if not column.startswith(core) or not all(part in counts for part in parts):
                continue
            true = float(sum(counts[part] for part in parts))
            if column.endswith("_rate"):
                true = counts[parts[0]] / counts[parts[1]]
            elif column.endswith("_ratio"):
                true /= int(cycles)
            assert abs(row[column] - true) <= 1e-6 * max(1.0, true), f"{column}: {row[column]}, should be {true}"
            values += 1
        checked[core] += 1
    assert sum(checked.values()) > 200, f"{checked} kernels with counters"
    assert values > 200 or not columns, f"{values} values"
    return checked


for _metric in PMU_COLUMNS:
    def _counted(case: Case, metric: str = _metric) -> None:
        counters_are_true(case, metric)
    _counted.__name__ = f"counters_{_metric}"
    test(_counted)


def mixed_kernels(case: Case, contexts: str, mix: str) -> None:
    """FFTS+ kernels: their contexts' counters and those of each block of the other
    kind of cores are those of the kernel."""
    counted = counters_are_true(case, "PipeUtilization", NPUSIM_FFTS=contexts, NPUSIM_MIX=mix, NPUSIM_BLOCKS="48")
    assert min(counted["aic"], counted["aiv"]) > 50, counted


@test
def counters_of_two_vector_blocks_each(case: Case) -> None:
    mixed_kernels(case, "1", "aic:2")


@test
def counters_of_contexts_in_threads(case: Case) -> None:
    mixed_kernels(case, "3x2", "aic:2")


@test
def counters_of_kernels_that_vectors_lead(case: Case) -> None:
    mixed_kernels(case, "2", "aiv:1")


@test
def counters_950(case: Case) -> None:
    """Ten events a record; for a kernel on both kinds of cores each kind has a record."""
    counters_are_true(case, "PipeUtilization", "950")


@test
def a_950_without_an_answer(case: Case) -> None:
    """The log alone shows what chip it is: submissions are numbered as there, also where the capture begins
    in the middle of the numbers and their low half begins anew in it."""
    job = Job(case, "950", NPUSIM_FIRST_TASK=str((3 << 16) - 16000))  # some 15 seconds of it
    run = capture(job, 120, "--task-source", "agent", "--export", "none")
    run.wait_for("^npuscope: recording ", err=True)
    job.wait_for_task(3 << 16)
    run.signal(signal.SIGINT)
    result = run.result(90).expect(DONE, PARTIAL)
    # on a busy machine; it is not needed here
    assert all("the driver is slow" in line for line in lines_of(result)), result.err
    truth = job.end()
    path = result.session.path / "session.json"
    reported = json.loads(path.read_text())
    for device in reported["devices"]:
        assert device.pop("platform", 15 if lines_of(result) else 0) in (15, 16)
        device["chip"] = ""
    path.write_text(json.dumps(reported))
    case.analyze(result.session.path, "--export", "db").expect(DONE)
    found = Found(result, "950")
    numbers = {row["taskId"] >> 16 for row in found.rows}
    assert numbers == {2, 3}, numbers
    n = hold_up(job, truth, found)
    assert n["bounded"] == 0, n


@test
def expanded_ids(case: Case) -> None:
    agent_times_all(case, "910B", NPUSIM_IDS="expanded")


@test
def mangled_ids(case: Case) -> None:
    agent_times_all(case, "910B", NPUSIM_IDS="mangled")


@test
def helper_makes_way_and_comes_back(case: Case) -> None:
    """The job's own profiler begins while the helper has the log: its start succeeds, and no task is without
    its time but those of the moments in which the log changed hands."""
    job = Job(case, "910B", profiler=True)
    run = capture(job, 8)
    log = case.path(f"log.{job.pid}")
    for k in range(2):
        time.sleep(1)
        case.path(f"start.{k}").touch()
        wait_until(lambda: log.read_text().count("start 0") == k + 1, f"the job's own profiler: {log.read_text()}")
        time.sleep(1.5)
        case.path(f"stop.{k}").touch()
        wait_until(lambda: log.read_text().count("stop 0") == k + 1, "its end")
    result = run.result(90).expect(DONE)
    answers = re.findall(r"^(\w+) (-?\d+)", log.read_text(), re.M)
    assert answers == [("start", "0"), ("stop", "0")] * 2, log.read_text()
    waited = max(float(line.split()[2]) for line in log.read_text().splitlines() if line.startswith("start"))
    assert waited < 2000, f"the job's own profiler waited {waited} ms"
    n = hold_up(job, job.end(), Found(result, "910B"))
    assert n["measured"] > 0.9 * n["tasks"], n
    breaks = next(result.session.path.glob("PROF_*/device_*/data/npuscope.breaks")).read_text()
    assert [line.split()[3] for line in breaks.splitlines() if "stars_soc" in line] == \
        ["agent", "profiler", "agent", "profiler", "agent"], breaks


def sampler_makes_way(case: Case, agent: bool, **env: str) -> None:
    """The job's own profiler wants channels that are being sampled from outside: it gets each at its
    first try, and when it has ended they are sampled again. Witness: what the driver answered it,
    and the truth file's starts and stops."""
    wanted = {1, 3, 4, 8, 9}  # of profile_lib.c
    job = Job(case, "910B", agent=agent, profiler=True, PROFILE_SAMPLES="1", **env)
    run = capture(job, 9, "--sys-hardware-mem", "--sys-io", "--sys-interconnection")
    run.wait_for("^npuscope: recording ", err=True)
    log = case.path(f"log.{job.pid}")
    for k in range(2):
        time.sleep(1)
        case.path(f"start.{k}").touch()
        starts = (k + 1) * (len(wanted) + 1)
        wait_until(lambda: log.read_text().count("start ") == starts, f"the job's own profiler: {log.read_text()}")
        time.sleep(1)
        case.path(f"stop.{k}").touch()
        wait_until(lambda: log.read_text().count("stop ") == starts, "its end")
    result = run.result(90).expect(DONE)
    job.end()
    answers = re.findall(r"^(\w+) (-?\d+)", log.read_text(), re.M)
    assert answers == ([("start", "0")] * (len(wanted) + 1) + [("stop", "0")] * (len(wanted) + 1)) * 2, log.read_text()
    printed = [line for line in result.err.splitlines() if "the job's own profiler runs" in line]
    assert len(printed) == 1 and "device 0" in printed[0], result.err
    (sampler,) = result.session.json["device_sampler"]["devices"]
    channels = {c["id"]: c for c in sampler["channels"]}
    assert all(channels[c]["starts"] == 3 and not channels[c]["errors"] for c in wanted), channels
    begins = [s["started_raw"] for s in sampler["segments"]]
    # HBM, of the job's profiler alone
    own = [int(line[3]) for line in job.lines("channel") if line[1] == "1"]
    assert len(begins) == 3 and len(own) == 4, (begins, own)
    assert begins[0] < own[0] < own[1] < begins[1] < own[2] < own[3] < begins[2], (begins, own)
    for segment in sampler["segments"]:
        data = result.session.path / segment["prof_dir"] / "device_0" / "data"
        assert (data / "hbm.data.0.slice_0").stat().st_size > 1000, segment


@test
def sampler_makes_way_and_comes_back(case: Case) -> None:
    """At once: the profiler's start waits."""
    sampler_makes_way(case, True)


@test
def sampler_makes_way_without_the_helper(case: Case) -> None:
    """As soon as it queries which channels there are: nothing in the job can wait."""
    sampler_makes_way(case, False, PROFILE_PAUSE="2000000")


def cores_by_task(case: Case, chip: str) -> None:
    """Counters by task and samples of cores want the same channel of an old chip: the task log, which was
    requested, has it, and one line reports it."""
    job = Job(case, chip)
    result = capture(job, 3, "--task-source", "agent", "--aic-metrics", "PipeUtilization").result(90).expect(DONE)
    truth = job.end()
    assert len(lines_of(result)) == 1 and "device 0: counters of its cores are not sampled" in result.err, result.err
    (sampler,) = result.session.json["device_sampler"]["devices"]
    states = {c["id"]: c["state"] for c in sampler["channels"]}
    assert states[43] == "left" and states.get(85, "absent") in ("left", "absent"), states
    assert [line[2] for line in job.lines("channel") if line[1] == "43"] == ["start", "stop"], job.lines("channel")
    window, times = result.session.json["capture"], {(t.stream, t.task, t.flip): t for t in truth.tasks}
    found, checked = pmu_of(result), 0
    for _device, stream, task, flip, core, _blocks, cycles, _events in job.lines("pmu"):
        of = times[int(stream), int(task), int(flip)]
        if core != "aic" or not window["begin_monotonic"] + EDGE_NS < truth.clock.mono(of.submit) or \
                not truth.clock.mono(of.end) < window["end_monotonic"] - EDGE_NS:
            continue
        start = truth.clock.real(of.start)
        _at, row = min(found[int(stream), int(task)], key=lambda r: abs(r[0] - start))
        assert row["total_cycles"] == int(cycles), (row, cycles)
        checked += 1
    assert checked > 200, f"{checked} kernels with counters"


for _chip in ("910A", "310P"):
    def _by_task(case: Case, chip: str = _chip) -> None:
        cores_by_task(case, chip)
    _by_task.__name__ = f"cores_by_task_{_chip}"
    test(_by_task)


if __name__ == "__main__":
    sys.exit(main())
