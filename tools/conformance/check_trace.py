# SPDX-License-Identifier: BSD-2-Clause
"""Checks of trace_view.json: T1..T11 and what MindStudio Insight needs (V1..V12)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from capture import Rank
from intervals import Interval, first_not_nested, minus, union
from report import Check, RuleSet, Skip
from tracefile import us_to_ns
from tracemodel import HOST_DEVICE, HOST_LAYERS, NO_CONTEXT, OVERLAP_LANES, SCHEDULING, Slice, Trace

RULES = RuleSet()
EDGE_NS = 2                     # real captures round starts and keep fractions of durations
PAIRED = ("async_task_queue", "fwdbwd", "async_npu")
CHAIN = "Data_aug Bound"        # has the same id for all iterations of a graph
NOT_FROM_HOST = ("PROFILING_ENABLE", "PROFILING_DISABLE")

# process -> sort index; generation A numbers some layers dynamically, those are left out
SORT_INDEX = {
    "A": {"Python": 0, "Python GC": 1, "CANN": 7, "Ascend Hardware": 13, "AI Core Freq": 14, "HCCL": 15},
    "B": {"Python": 0, "Python GC": 1, "CANN": 7, "CPU Usage": 9, "Memory Usage": 10, "Network Usage": 11,
          "Disk Usage": 12, "OS Runtime API": 13, "Ascend Hardware": 14, "AI Core Freq": 15, "Communication": 16,
          "NPU MEM": 17, "DDR": 18, "Acc PMU": 19, "HCCS": 20, "NIC": 21, "RoCE": 22, "PCIe": 23, "HBM": 24,
          "Stars Soc Info": 25, "Stars Chip Trans": 26, "LLC": 27, "SIO": 28, "QoS": 29, "CCU": 30,
          "Overlap Analysis": 31},
}
MSPROF_LAYERS = frozenset(SORT_INDEX["A"]) | frozenset(SORT_INDEX["B"]) - {"Python"}


def need(rank: Rank) -> Trace:
    """The trace, or skip."""
    if not rank.trace:
        raise Skip("no timeline")
    return rank.trace


def judge(check: Check, trace: Trace, *flaws: str) -> None:
    """Report what the scan found of some kinds."""
    for flaw in flaws:
        found = trace.flaws.get(flaw)
        if found:
            for sample in found.samples:
                check.fail(f"{flaw}: {sample}")
            check.failures += found.count - len(found.samples)


@RULES.rule("T1", "one JSON array, timestamps are strings with exactly three decimals")
def t1(rank: Rank, check: Check) -> None:
    trace = need(rank)
    check.expect(not trace.error, trace.error)
    check.inspected(trace.events)
    judge(check, trace, "ts")
    check.expect(trace.bare_freq <= (rank.generation == "A"), f"{trace.bare_freq} timestamps without decimals")


@RULES.rule("T2", "pid is process id << 10 | sort index << 5 | device")
def t2(rank: Rank, check: Check) -> None:
    trace = need(rank)
    raw = rank.name_pid or next((pid for pid, name in trace.name.items() if name == "Python"), trace.process_id())
    indexes = SORT_INDEX[rank.generation]
    for pid, name in trace.name.items():
        if name == "Python":
            check.expect(pid == raw, f"Python has pid {pid}, the process is {raw}")
        elif name in MSPROF_LAYERS:
            sort = trace.sort_index.get(pid)
            device = HOST_DEVICE if name in HOST_LAYERS and rank.generation == "B" else None
            allowed = {device, *rank.devices} - {None} or {0}
            good = isinstance(sort, int) and pid in {(raw << 10) | (sort << 5) | one for one in allowed}
            check.expect(good, f"{name}: pid {pid}, process {raw}, sort index {sort}, devices {sorted(allowed)}")
        if name in indexes:
            check.expect(trace.sort_index.get(pid) == indexes[name],
                         f"{name}: sort index {trace.sort_index.get(pid)}, expected {indexes[name]}")


@RULES.rule("T3", "every slice has a named lane, every process a name, a label and a sort index")
def t3(rank: Rank, check: Check) -> None:
    trace = need(rank)
    for (pid, tid), lane in trace.lanes.items():
        known = trace.name.get(pid) in SCHEDULING and isinstance(tid, str)
        check.expect(known or (pid, tid) in trace.thread_name,
                     f"{len(lane.slices)} slices of pid {pid} tid {tid!r}: no thread_name")
    for pid in trace.pids:
        pruned = rank.level == "Level0" and rank.generation == "A" and trace.sort_index.get(pid) == 7
        name = trace.name.get(pid)
        check.expect(pruned or name is not None, f"pid {pid}: no process_name")
        check.expect(pid in trace.sort_index, f"pid {pid} {name}: no process_sort_index")
        check.expect(pid in trace.label or name in SCHEDULING, f"pid {pid} {name}: no process_labels")


@RULES.rule("T4", "every flow has one start and at least one end")
def t4(rank: Rank, check: Check) -> None:
    trace = need(rank)
    ends: dict[tuple[str, Any], Counter[str]] = defaultdict(Counter)
    for flow in trace.flows:
        ends[flow.cat, flow.ident][flow.phase] += 1
    for (cat, ident), count in ends.items():
        if cat == CHAIN:
            check.expect(count["s"] == count["t"], f"{ident}: {count['s']} starts, {count['t']} ends")
            continue
        # a mark that no device came to begins a flow, too (generation B)
        least = 0 if cat == "MsTx" and rank.generation == "B" else 1
        good = count["s"] == 1 and (count["f"] == 1 if cat in PAIRED else count["f"] >= least)
        check.expect(good, f"{cat} {ident}: {count['s']} starts, {count['f']} ends")


@RULES.rule("T5", "flow ends lie on slices")
def t5(rank: Rank, check: Check) -> None:
    trace = need(rank)
    has_cann = bool(trace.cann)
    for flow in trace.flows:
        if flow.cat == "HostToDevice" and flow.phase == "s":
            lane = trace.lanes.get((flow.pid, flow.tid))
            if has_cann:
                check.expect(lane is not None and lane.holding(flow.ts) is not None, f"no CANN slice around {flow}")
        elif flow.cat in ("HostToDevice", "MsTx", *PAIRED):
            check.expect(bool(trace.at(flow.pid, flow.tid, flow.ts)), f"no slice starts at {flow}")


@RULES.rule("T6", "flow ids follow their rule")
def t6(rank: Rank, check: Check) -> None:
    trace = need(rank)
    for flow in trace.flows:
        if flow.cat == "async_npu":
            if flow.phase == "f":
                check.expect(flow.ident == flow.ts, f"id is not the start in ns: {flow}")
        elif flow.cat == "HostToDevice":
            check.expect(isinstance(flow.ident, str), f"id is no string: {flow}")
            ends = trace.at(flow.pid, flow.tid, flow.ts)
            if flow.phase == "f" or rank.generation == "B" and ends:
                right = {ident for one in ends for ident in _host_to_device(rank.generation, one)}
                check.expect(str(flow.ident) in right, f"expected {sorted(right)}: {flow}")


def _host_to_device(generation: str, one: Slice) -> set[str]:
    args = one.args if isinstance(one.args, dict) else {}
    link = args.get("connection_id", 0)
    if generation == "B":
        return {str(link << 32)}
    if "alg_type" in args:
        return {str((link << 32) - 1)}
    if "Task Id" not in args:
        return set()
    base = (args["Physic Stream Id"] << 64) + (args["Task Id"] << 48) + (args["Batch Id"] << 32)
    base += args.get("Subtask Id", NO_CONTEXT)
    # the latter with several devices
    return {str(link), str(base), str(base + ((one.pid & HOST_DEVICE) << 80))}


@RULES.rule("T7", "framework slices are nested per thread")
def t7(rank: Rank, check: Check) -> None:
    trace = need(rank)
    for cat in ("cpu_op", "python_function"):
        lanes: dict[Any, list[Interval]] = defaultdict(list)
        for one in trace.torch(cat):
            lanes[one.tid].append((one.start, one.end))
        for tid, spans in lanes.items():
            check.inspected(len(spans))
            pair = first_not_nested(spans)
            if pair:
                check.fail(f"{cat} of thread {tid}: {pair[0]} and {pair[1]} overlap")


@RULES.rule("T8", "connection ids are unique on the host and known to every device task")
def t8(rank: Rank, check: Check) -> None:
    trace = need(rank)
    if not trace.cann:
        raise Skip("no CANN slices")
    for link, count in Counter(one.args.get("connection_id") for one in trace.cann).items():
        check.expect(count == 1, f"connection id {link} is on {count} CANN slices")
    unseen = 0
    for one in trace.hardware + trace.collectives:
        if one.unlinked:
            unseen += 1
        elif one.name not in NOT_FROM_HOST:
            check.expect(one.args.get("connection_id") in trace.cann_by_connection,
                         f"{one.name} at {one.start}: connection id {one.args.get('connection_id')} is not in CANN")
    if unseen:
        check.note(f"{unseen} tasks state that their launch was not seen")


@RULES.rule("T9", "Overlap Analysis is what the device layers say and leaves no gap")
def t9(rank: Rank, check: Check) -> None:
    trace = need(rank)
    overlap = trace.layer("Overlap Analysis")
    if not overlap:
        raise Skip("no Overlap Analysis")
    for device in {one.pid & 31 for one in overlap}:
        spans: dict[str, list[Interval]] = {name: [] for name in OVERLAP_LANES}
        for one in overlap:
            if one.pid & 31 == device:
                check.expect(one.name in spans and trace.thread_name.get((one.pid, one.tid)) == one.name,
                             f"{one.name} is on lane {trace.thread_name.get((one.pid, one.tid))}")
                spans.setdefault(one.name, []).append((one.start, one.end))
        compute, comm = ([(one.start, one.end) for one in layer if one.pid & 31 == device and not one.bounded]
                         for layer in (trace.kernels, trace.collectives))
        _same_spans(check, "Computing", spans["Computing"], compute)
        _same_spans(check, "Communication", spans["Communication"], comm)
        _same_spans(check, "Communication(Not Overlapped)", spans["Communication(Not Overlapped)"],
                    minus(comm, compute))
        _contiguous(check, [span for name in OVERLAP_LANES if name != "Communication" for span in spans[name]])


def _same_spans(check: Check, what: str, printed: list[Interval], right: list[Interval]) -> None:
    printed, right = [_close_gaps(union(spans)) for spans in (printed, right)]
    check.expect(len(printed) == len(right), f"{what}: {len(printed)} separate spans, expected {len(right)}")
    for one, other in zip(printed, right):
        check.expect(abs(one[0] - other[0]) <= EDGE_NS and abs(one[1] - other[1]) <= EDGE_NS,
                     f"{what}: {one}, expected {other}")


def _close_gaps(spans: list[Interval]) -> list[Interval]:
    """Drop gaps and slivers that are no more than rounding."""
    result: list[Interval] = []
    for start, end in spans:
        if result and start - result[-1][1] <= EDGE_NS:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return [span for span in result if span[1] - span[0] > EDGE_NS]


def _contiguous(check: Check, spans: list[Interval]) -> None:
    covered = None
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if covered is not None:
            check.expect(abs(start - covered) <= EDGE_NS, f"{start - covered} ns between slices at {start}")
        covered = max(end, covered or end)


@RULES.rule("T10", "no negative duration, async_npu starts at operators, one mark per step")
def t10(rank: Rank, check: Check) -> None:
    trace = need(rank)
    check.inspected(len(trace.slices))
    judge(check, trace, "dur < 0", "dur")
    for flow in trace.flows:
        if flow.cat == "async_npu" and flow.phase == "s":
            check.expect(any(one.cat == "cpu_op" for one in trace.at(flow.pid, flow.tid, flow.ts)),
                         f"no cpu_op starts at {flow}")
    for number, marks in trace.steps.items():
        check.expect(len(marks) == 1, f"ProfilerStep#{number} occurs {len(marks)} times")


@RULES.rule("T11", "events other than the framework's are in order of time, to 0.25 us")
def t11(rank: Rank, check: Check) -> None:
    trace = need(rank)
    if rank.generation == "B":
        raise Skip(f"no reader needs it: {trace.flaws['order'].count} events are out of order")
    rank.one_device()
    check.inspected(trace.events - trace.phases["M"])
    judge(check, trace, "order")


@RULES.rule("V1", "only phases that the viewer draws")
def v1(rank: Rank, check: Check) -> None:
    trace = need(rank)
    check.inspected(trace.events)
    judge(check, trace, "phase")


@RULES.rule("V2", "\"ph\" is the last key of every event")
def v2(rank: Rank, check: Check) -> None:
    trace = need(rank)
    flaw = trace.flaws.get("ph is not the last key")
    if rank.generation == "A":
        raise Skip(f"generation A: {flaw.count if flaw else 0} of {trace.events} events have it elsewhere")
    check.inspected(trace.events)
    judge(check, trace, "ph is not the last key")


@RULES.rule("V3", "no timestamp at or before zero")
def v3(rank: Rank, check: Check) -> None:
    trace = need(rank)
    check.inspected(trace.events - trace.phases["M"])
    judge(check, trace, "ts <= 0")


@RULES.rule("V4", "counters have numbers and no id")
def v4(rank: Rank, check: Check) -> None:
    trace = need(rank)
    check.inspected(trace.phases["C"])
    judge(check, trace, "counter with id", "counter without series")


@RULES.rule("V5", "pids are numbers, they hold the device")
def v5(rank: Rank, check: Check) -> None:
    trace = need(rank)
    devices = _device_of_tables(rank)
    for pid in trace.pids:
        name = trace.name.get(pid, "")
        if name in SCHEDULING:
            continue
        check.expect(isinstance(pid, int), f"{name}: pid {pid!r} is no number")
        if isinstance(pid, int) and name not in HOST_LAYERS | {"Python", "Python GC", ""}:
            device = pid & 31 | (pid >> 43 & 3) << 5      # docs/outputs.md: the vendor has no device above 31
            label = trace.label.get(pid, "")
            if label.startswith("NPU "):
                check.expect(label == f"NPU {device}", f"{name}: label {label!r}, pid says {device}")
            if devices and label.startswith("NPU"):
                check.expect(device in devices, f"{name}: pid says device {device}, the tables {sorted(devices)}")


def _device_of_tables(rank: Rank) -> set[int]:
    """Devices as the CSV files name them, and the database; of several, a table may know one."""
    found: set[int] = set()
    for name in ("operator_memory", "kernel_details", "step_trace_time", "memory_record"):
        table = rank.table(name)
        if table and "Device_id" in table.index:
            found |= {int(cell) for cell in table.column("Device_id") if cell.isdigit()}
        elif table and "Device Type" in table.index:
            found |= {int(cell.partition(":")[2]) for cell in table.column("Device Type") if cell.startswith("NPU:")}
    if found and rank.db and "NPU_INFO" in rank.db_tables:
        found |= {row[0] for row in rank.db.execute("SELECT id FROM NPU_INFO")}
    return found


@RULES.rule("V6", "both ends of a flow are at the start of a slice")
def v6(rank: Rank, check: Check) -> None:
    trace = need(rank)
    if rank.generation == "A":
        raise Skip("generation A starts HostToDevice inside the launch")
    for flow in trace.flows:
        if flow.cat != CHAIN:
            check.expect(bool(trace.at(flow.pid, flow.tid, flow.ts)), f"no slice starts at {flow}")


@RULES.rule("V7", "Computing, Communication(Not Overlapped) and Free have a slice each")
def v7(rank: Rank, check: Check) -> None:
    trace = need(rank)
    if not trace.hardware:
        raise Skip("no device tasks")
    names = Counter(one.name for one in trace.layer("Overlap Analysis"))
    for name in ("Computing", "Communication(Not Overlapped)", "Free"):
        check.expect(names[name] > 0, f"no slice {name}: Overall metrics stay empty")


@RULES.rule("V8", "slices of CANN and OS Runtime API are nested per thread")
def v8(rank: Rank, check: Check) -> None:
    trace = need(rank)
    for (pid, tid), lane in trace.lanes.items():
        if trace.name.get(pid) in ("CANN", "OS Runtime API"):
            check.inspected(len(lane.slices))
            pair = first_not_nested((one.start, one.end) for one in lane.slices)
            if pair:
                check.fail(f"{trace.name[pid]} thread {tid}: {pair[0]} and {pair[1]} overlap")


@RULES.rule("V9", "scheduling layers have the shape that fills the statistics table")
def v9(rank: Rank, check: Check) -> None:
    trace = need(rank)
    for one in trace.layer("Process Scheduling"):
        check.expect(one.name in ("Running", "Runnable", "Sleeping"), f"Process Scheduling: slice {one.name!r}")
        lane = _lane_name(trace, one)
        check.expect(lane.rpartition(":")[2].isdigit(), f"Process Scheduling: lane {lane!r} is not comm:pid")
        good = "cpu" in one.args or one.name != "Running" or one.length == 0
        check.expect(good, f"Process Scheduling: {one.name} at {one.start} has no cpu")
    wanted = {"sched_switch": {"prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid",
                               "next_prio"}, "irq": {"task", "name"}, "softirq": {"task", "action"}}
    for one in trace.layer("CPU Scheduling"):
        lane = _lane_name(trace, one)
        check.expect(lane.startswith("CPU ") and lane[4:].isdigit(), f"CPU Scheduling: lane {lane!r}")
        missing = wanted.get(one.name, set()) - set(one.args)
        check.expect(not missing, f"CPU Scheduling: {one.name} at {one.start} lacks {sorted(missing)}")
        check.expect(one.name != "sched_switch" or one.length == 0, f"sched_switch at {one.start} has a length")


def _lane_name(trace: Trace, one: Slice) -> str:
    return one.tid if isinstance(one.tid, str) else trace.thread_name.get((one.pid, one.tid), "")


@RULES.rule("V10", "a process has a sort index for all of its lanes or for none")
def v10(rank: Rank, check: Check) -> None:
    trace = need(rank)
    lanes: dict[Any, set[Any]] = defaultdict(set)
    for pid, tid in trace.thread_name:
        lanes[pid].add(tid)
    for pid, tids in lanes.items():
        sorted_tids = {tid for tid in tids if (pid, tid) in trace.thread_sort}
        check.expect(not sorted_tids or sorted_tids == tids,
                     f"{trace.name.get(pid)}: no thread_sort_index for {sorted(map(str, tids - sorted_tids))[:5]}")


@RULES.rule("V11", "slices and metadata are complete")
def v11(rank: Rank, check: Check) -> None:
    trace = need(rank)
    check.inspected(len(trace.slices) + trace.phases["M"])
    judge(check, trace, "slice without name or tid", "metadata")
    for one in trace.hardware:
        missing = {"Task Type", "Physic Stream Id", "Task Id", "connection_id"} - set(one.args)
        check.expect(not missing, f"{one.name} at {one.start} lacks {sorted(missing)}")
        check.expect(one.args.get("Physic Stream Id") == one.tid, f"{one.name} at {one.start} is on lane {one.tid}")


@RULES.rule("V12", "a task whose time is only bounded says so, within consistent bounds")
def v12(rank: Rank, check: Check) -> None:
    trace = need(rank)
    for one in trace.collectives + trace.planes:
        check.expect(not one.bounded or 0 < one.length <= 1,
                     f"{one.name} at {one.start}: bounded, but lasts {one.length} ns")
    keys = ("start_low_us", "start_high_us", "end_low_us", "end_high_us")
    for one in trace.hardware:
        if not one.bounded:
            present = [key for key in keys if one.args.get(key) is not None]
            if present and one.args.get("time_source") is None:
                check.fail(f"{one.name} at {one.start} has {present} and no time_source")
            continue
        low, high, end_low, end_high = (us_to_ns(one.args[key]) if key in one.args else None for key in keys)
        check.expect(0 < one.length <= 1,
                     f"{one.name} at {one.start}: a bounded task lasts {one.length} ns, not the least, 1")
        check.expect(low is None or high is None or low <= high, f"{one.name}: start between {low} and {high}")
        check.expect(end_low is None or end_high is None or end_low <= end_high,
                     f"{one.name}: end between {end_low} and {end_high}")
        check.expect(low is None or end_high is None or low < end_high,
                     f"{one.name}: ends by {end_high} and starts at {low} or later")
        check.expect(low is not None or high is not None, f"{one.name} at {one.start}: no bound of its start")


