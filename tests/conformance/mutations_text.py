# SPDX-License-Identifier: BSD-2-Clause
"""Single faults in a text export."""

from __future__ import annotations

from typing import Any, Callable

from harness import Skip
from mutation import Copy, Event, Mutation, TraceCopy, shifted

MUTATIONS: list[Mutation] = []
Change = Callable[[TraceCopy], None]


def trace(name: str, expected: str, generation: str = "") -> Callable[[Change], Change]:
    """Register a change of the trace."""
    def register(change: Change) -> Change:
        def apply(copy: Copy) -> None:
            if generation:
                copy.only(generation)
            with copy.trace() as view:
                change(view)
        MUTATIONS.append(Mutation(name, expected, apply))
        return change
    return register


def csv(name: str, expected: str, table: str, row: int, column: str, change: Callable[[str], str]) -> None:
    """Register a change of one cell."""
    MUTATIONS.append(Mutation(name, expected, lambda copy: copy.cell(table, row, column, change)))


def add(amount: float) -> Callable[[str], str]:
    """Add to a numeric cell."""
    return lambda text: f"{float(text or 0) + amount:.3f}"


# ---- trace ----

@trace("an Overlap slice is gone", "T9")
def _(view: TraceCopy) -> None:
    view.remove(next((one for one in view.slices("Overlap Analysis") if one["name"] == "Computing" and one["dur"]), {}))


@trace("a Free slice is too long", "T9")
def _(view: TraceCopy) -> None:
    spans = [one for one in view.slices("Overlap Analysis") if one["name"] == "Free"]
    if len(spans) < 2:
        raise Skip("one Free slice only")
    spans[0]["dur"] = float(spans[0]["dur"]) + 5


@trace("a kernel is gone", "C1")
def _(view: TraceCopy) -> None:
    view.remove(view.kernel())


@trace("a kernel starts elsewhere", "C2")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    kernel["ts"] = shifted(kernel["ts"], 10)


@trace("a timestamp has two decimals", "T1")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    kernel["ts"] = kernel["ts"][:-1]


@trace("a timestamp is a number", "T1")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    kernel["ts"] = float(kernel["ts"])


@trace("a timestamp is zero", "V3")
def _(view: TraceCopy) -> None:
    view.kernel()["ts"] = "0.000"


@trace("B and E events", "V1")
def _(view: TraceCopy) -> None:
    one = view.slices("CANN", "Ascend Hardware")[0]
    one["ph"] = "B"
    view.events.append({**one, "ph": "E"})


@trace("a counter has an id", "V4")
def _(view: TraceCopy) -> None:
    counter = view.all(lambda event: event["ph"] == "C")[0]
    phase = counter.pop("ph")
    counter.update(id=1, ph=phase)


@trace("a counter has no number", "V4")
def _(view: TraceCopy) -> None:
    counter = view.all(lambda event: event["ph"] == "C")[0]
    counter["args"] = {"value": "many"}


@trace("a counter has no series", "V4")
def _(view: TraceCopy) -> None:
    view.all(lambda event: event["ph"] == "C")[0]["args"] = {}


def _move_process(view: TraceCopy, layer: str, change: Callable[[int], Any]) -> None:
    pid = next((pid for pid, name in view.names.items() if name == layer), None)
    if pid is None:
        raise Skip(f"no {layer}")
    for event in view.events:
        if event["pid"] == pid:
            event["pid"] = change(pid)


@trace("device bits of a pid are wrong", "V5")
def _(view: TraceCopy) -> None:
    _move_process(view, "Ascend Hardware", lambda pid: pid ^ 8)


@trace("process bits of a pid are wrong", "T2")
def _(view: TraceCopy) -> None:
    _move_process(view, "Overlap Analysis", lambda pid: pid + (1 << 10))


@trace("a pid is a string", "V5")
def _(view: TraceCopy) -> None:
    _move_process(view, "Overlap Analysis", str)


@trace("the label names another device", "V5", "B")
def _(view: TraceCopy) -> None:
    for event in view.all(lambda one: one["name"] == "process_labels" and one["args"]["labels"].startswith("NPU")):
        event["args"]["labels"] = "NPU 17"


@trace("a layer has its old name", "G1", "B")
def _(view: TraceCopy) -> None:
    for event in view.all(lambda one: one["name"] == "process_labels" and one["args"]["labels"].startswith("NPU"))[:1]:
        event["args"]["labels"] = "NPU"


@trace("ph is the first key", "V2", "B")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    copy = dict(kernel)
    kernel.clear()
    kernel.update({"ph": copy.pop("ph"), **copy})


@trace("a flow has no start", "T4")
def _(view: TraceCopy) -> None:
    view.remove(view.flows("s")[0])


@trace("a flow has no end", "T4")
def _(view: TraceCopy) -> None:
    ends = view.flows("f", "HostToDevice")
    single = [one for one in ends if sum(other["id"] == one["id"] for other in ends) == 1]
    view.remove(single[0])


@trace("a flow starts twice", "T4")
def _(view: TraceCopy) -> None:
    view.events.append(dict(view.flows("s", "HostToDevice")[0]))


@trace("a flow ends beside its slice", "T5")
def _(view: TraceCopy) -> None:
    end = view.flows("f", "HostToDevice")[0]
    end["ts"] = shifted(end["ts"], -1)


@trace("a flow ends on another lane", "T5")
def _(view: TraceCopy) -> None:
    view.flows("f", "HostToDevice")[0]["tid"] = 31337


@trace("a flow starts beside its slice", "V6", "B")
def _(view: TraceCopy) -> None:
    start = view.flows("s", "HostToDevice")[0]
    start["ts"] = shifted(start["ts"], 1)


@trace("a flow has another id", "T6")
def _(view: TraceCopy) -> None:
    ident = view.flows("f", "HostToDevice")[0]["id"]
    for event in view.all(lambda one: one["ph"] in "sf" and one["id"] == ident):
        event["id"] = str(int(ident) + 7)


@trace("async_npu has another id", "T6")
def _(view: TraceCopy) -> None:
    ident = view.flows("f", "async_npu")[0]["id"]
    for event in view.all(lambda one: one["ph"] in "sf" and one["id"] == ident):
        event["id"] = ident + 1


@trace("operators are not nested", "T7")
def _(view: TraceCopy) -> None:
    ops = view.all(lambda one: one.get("cat") == "cpu_op" and one["dur"] > 5)
    first = ops[len(ops) // 2]
    half = {**first, "ts": shifted(first["ts"], 1)}
    view.events.insert(0, half)


@trace("a connection id occurs twice", "T8")
def _(view: TraceCopy) -> None:
    one, other = view.slices("CANN")[:2]
    one["args"]["connection_id"] = other["args"]["connection_id"]


@trace("a task has an unknown connection id", "T8")
def _(view: TraceCopy) -> None:
    view.slices("CANN")
    view.kernel()["args"]["connection_id"] = 3_000_000_000


@trace("a duration is negative", "T10")
def _(view: TraceCopy) -> None:
    view.kernel()["dur"] = -1.0


@trace("a duration is a string", "T10")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    kernel["dur"] = str(kernel["dur"])


@trace("a step mark occurs twice", "T10")
def _(view: TraceCopy) -> None:
    mark = view.all(lambda one: one["ph"] == "X" and one["name"].startswith("ProfilerStep#"))[0]
    view.events.insert(0, dict(mark))


@trace("events are out of order", "T11", "A")
def _(view: TraceCopy) -> None:
    tasks = view.slices("Ascend Hardware")
    if len(tasks) < 2:
        raise Skip("one task only")
    first, last = view.events.index(tasks[0]), view.events.index(tasks[-1])
    view.events[first], view.events[last] = view.events[last], view.events[first]


def _metadata(view: TraceCopy, kind: str) -> Event:
    return view.all(lambda one: one["ph"] == "M" and one["name"] == kind
                    and view.names.get(one["pid"]) == "Ascend Hardware")[0]


@trace("a lane has no name", "T3")
def _(view: TraceCopy) -> None:
    one = view.kernel()
    view.events[:] = [event for event in view.events if not (
        event["ph"] == "M" and event["name"] == "thread_name"
        and (event["pid"], event["tid"]) == (one["pid"], one["tid"]))]


@trace("a process has no label", "T3")
def _(view: TraceCopy) -> None:
    view.remove(_metadata(view, "process_labels"))


@trace("a process has no sort index", "T3")
def _(view: TraceCopy) -> None:
    view.remove(_metadata(view, "process_sort_index"))


@trace("one lane has no sort index", "V10")
def _(view: TraceCopy) -> None:
    rows = view.all(lambda one: one["ph"] == "M" and one["name"] == "thread_sort_index")
    crowded = [one for one in rows if sum(other["pid"] == one["pid"] for other in rows) > 1]
    if not crowded:
        raise Skip("no process with two lanes")
    view.remove(crowded[0])


@trace("no Free slice", "V7")
def _(view: TraceCopy) -> None:
    view.slices("Overlap Analysis")
    view.events[:] = [one for one in view.events if not (one["ph"] == "X" and one["name"] == "Free")]


@trace("host calls are not nested", "V8")
def _(view: TraceCopy) -> None:
    calls = [one for one in view.slices("CANN") if float(one["dur"]) > 3]
    if not calls:
        raise Skip("no long call")
    view.events.append({**calls[0], "ts": shifted(calls[0]["ts"], 1)})


@trace("a slice has no name", "V11")
def _(view: TraceCopy) -> None:
    view.kernel()["name"] = ""


@trace("a task has no Task Id", "V11")
def _(view: TraceCopy) -> None:
    del view.kernel()["args"]["Task Id"]


@trace("a bounded task has a duration", "V12")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    kernel["dur"] = 7.5
    kernel["args"].update(time_source="host bounds", start_low_us="1.000", start_high_us="2.000")


@trace("bounds are the wrong way round", "V12")
def _(view: TraceCopy) -> None:
    kernel = view.kernel()
    kernel["dur"] = 0.001
    kernel["args"].update(time_source="host bounds", start_low_us="2.000", start_high_us="1.000")


def _truncate(copy: Copy) -> None:
    path = copy.file("trace_view.json")
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")


MUTATIONS.append(Mutation("the trace is cut off", "T1", _truncate))


# ---- CSV ----

def _swap(table: str, first: int, second: int) -> Callable[[Copy], None]:
    def apply(copy: Copy) -> None:
        with copy.lines(table) as lines:
            if len(lines) <= max(first, second):
                raise Skip(f"{table}.csv has too few rows")
            if lines[first].startswith('"') or "\n" not in lines[second]:
                raise Skip("a row of several lines")
            lines[first], lines[second] = lines[second], lines[first]
    return apply


def _drop_row(table: str, row: int) -> Callable[[Copy], None]:
    def apply(copy: Copy) -> None:
        with copy.lines(table) as lines:
            if len(lines) < 3:
                raise Skip(f"{table}.csv has too few rows")
            del lines[row]
    return apply


def _edit_line(table: str, row: int, change: Callable[[str], str]) -> Callable[[Copy], None]:
    def apply(copy: Copy) -> None:
        with copy.lines(table) as lines:
            if len(lines) <= row:
                raise Skip(f"{table}.csv has too few rows")
            lines[row] = change(lines[row])
    return apply


def _launches(copy: Copy) -> None:
    row = copy.row_where("api_statistic", lambda cells: cells["API Name"] == "launch")
    copy.cell("api_statistic", row, "Count", lambda text: "0")


def _sum_row(copy: Copy) -> None:
    row = copy.row_where("memory_record", lambda cells: cells["Component"] == "PTA+GE")
    copy.cell("memory_record", row, "Total Allocated(MB)", add(1))


def _preparing(copy: Copy) -> None:
    with copy.trace() as view:
        view.all(lambda one: one["ph"] == "X" and one["name"].startswith("ProfilerStep#"))
    copy.cell("step_trace_time", 1, "Preparing", add(5))


def _no_times(copy: Copy) -> None:
    with copy.lines("step_trace_time") as lines:
        columns = [name for name in lines[0].strip().split(",") if name not in ("Device_id", "Step")]
    for column in columns:
        copy.cell("step_trace_time", 1, column, lambda text: "")


def _released(copy: Copy) -> None:
    row = copy.row_where("operator_memory", lambda cells: bool(cells["Release Time(us)"].strip()))
    copy.cell("operator_memory", row, "Duration(us)", add(1))


MUTATIONS += [
    Mutation("a header is of the other generation", "H1", _edit_line(
        "kernel_details", 0, lambda line: line.replace("Block Dim", "Block Number").replace("Block Num,", "Block Dim,")
        .replace("Block Num\r", "Block Dim\r").replace("Block Num\n", "Block Dim\n"))),
    Mutation("a header has a blank", "H1",
             _edit_line("step_trace_time", 0, lambda line: line.replace(",Free", ", Free"))),
    Mutation("a row has a cell too many", "R1", _edit_line("kernel_details", 2, lambda line: "x," + line)),
    Mutation("a row has a cell too few", "R1", _edit_line("kernel_details", 2, lambda line: line.partition(",")[2])),
    Mutation("rows of kernels are swapped", "C3", _swap("kernel_details", 2, 4)),
    Mutation("a kernel's row is gone", "C1", _drop_row("kernel_details", 2)),
    Mutation("a row of op_statistic is gone", "C5", _drop_row("op_statistic", 1)),
    Mutation("rows of op_statistic are swapped", "C4", _swap("op_statistic", 1, 2)),
    Mutation("rows of api_statistic are swapped", "C6", _swap("api_statistic", 1, 2)),
    Mutation("a row of api_statistic is gone", "C6", _drop_row("api_statistic", 1)),
    Mutation("launches are missing", "C7", _launches),
    Mutation("a sample of a module is gone", "C12", _drop_row("npu_module_mem", 1)),
    Mutation("a sum of memory is wrong", "C10", _sum_row),
    Mutation("a memory duration is wrong", "C11", _released),
    Mutation("Preparing is wrong", "C15", _preparing),
    Mutation("a step that was measured has no times", "C14", _no_times),
]
csv("a timestamp is quoted", "R2", "kernel_details", 2, "Start Time(us)", lambda text: f'"{text}"')
csv("a timestamp is rounded", "R2", "kernel_details", 2, "Start Time(us)", lambda text: text[:-2])
csv("a kernel's duration is wrong", "C2", "kernel_details", 2, "Duration(us)", add(1))
csv("a kernel's name is wrong", "C2", "kernel_details", 2, "Name", lambda text: text + "x")
csv("a wait is wrong", "C3", "kernel_details", 3, "Wait Time(us)", add(1))
csv("the first row waits", "C3", "kernel_details", 1, "Wait Time(us)", add(1))
csv("a count is wrong", "C4", "op_statistic", 1, "Count", lambda text: str(int(text) + 1))
csv("a ratio is wrong", "C4", "op_statistic", 1, "Ratio(%)", add(3))
csv("a maximum is wrong", "C4", "op_statistic", 1, "Max Time(us)", add(1))
csv("communication in op_statistic", "C5", "op_statistic", 1, "Core Type", lambda text: "HCCL")
csv("a count of calls is wrong", "C6", "api_statistic", 1, "Count", lambda text: str(int(text) + 1))
csv("a variance is wrong", "C6", "api_statistic", 1, "Variance", lambda text: str(float(text) * 2 + 1))
csv("a step id is wrong", "C14", "kernel_details", 2, "Step Id", lambda text: "777")
csv("Overlapped is wrong", "C14", "step_trace_time", 1, "Overlapped", add(1))
csv("Stage is wrong", "C14", "step_trace_time", 1, "Stage", add(5))
csv("one cell of a step is empty", "C14", "step_trace_time", 1, "Stage", lambda text: "")
csv("Computing is wrong", "C16", "step_trace_time", 1, "Computing", add(5))
csv("a device is wrong", "R4", "memory_record", 1, "Device Type", lambda text: "NPU:9")
csv("a device id is wrong", "R4", "kernel_details", 1, "Device_id", lambda text: "9")
csv("a cache row has no kernel", "C13", "l2_cache", 1, "Op Name", lambda text: text + "x")
csv("a cache row has no task", "C13", "l2_cache", 1, "Task Id", lambda text: "64999")
csv("an operator's name is wrong", "C8", "operator_details", 1, "Name", lambda text: text + "x")


def _first_iteration(copy: Copy) -> None:
    copy.cell("step_trace", 1, "FP to BP Time(us)", add(1))


def _end_first(copy: Copy) -> None:
    row = copy.row_where("msprof_tx", lambda cells: cells["event_type"] == "start/end")
    copy.cell("msprof_tx", row, "End_time(us)", lambda text: shifted(text, -1000))


def _wide_mark(copy: Copy) -> None:
    row = copy.row_where("msprof_tx", lambda cells: cells["event_type"].startswith("marker"))
    copy.cell("msprof_tx", row, "End_time(us)", lambda text: shifted(text, 5))


MUTATIONS += [
    Mutation("a task's row is gone", "C17", _drop_row("task_time", 2)),
    Mutation("rows of tasks are swapped", "C17", _swap("task_time", 1, 4)),
    Mutation("a row of communication_statistic is gone", "C18", _drop_row("communication_statistic", 1)),
    Mutation("an iteration's time is wrong", "C19", _first_iteration),
    Mutation("a range ends before it starts", "C20", _end_first),
    Mutation("a mark in msprof_tx has a length", "C20", _wide_mark),
    Mutation("rows of system calls are swapped", "C21", _swap("os_runtime_statistic", 1, 4)),
]
csv("a task's time is wrong", "C17", "task_time", 2, "task_time(us)", add(1))
csv("a task's stream is wrong", "C17", "task_time", 2, "stream_id", lambda text: "31337")
csv("a count of collectives is wrong", "C18", "communication_statistic", 1, "Count", lambda text: str(int(text) + 1))
csv("a share of collectives is wrong", "C18", "communication_statistic", 1, "Ratio(%)", add(3))
csv("a count of system calls is wrong", "C21", "os_runtime_statistic", 1, "Count", lambda text: str(int(text) + 1))
csv("a share of system calls is wrong", "C21", "os_runtime_statistic", 1, "Time(%)", add(0.5))
csv("an AI CPU task has no id", "C22", "aicpu", 1, "Task ID", lambda text: "x")


def _cache_level(copy: Copy) -> None:
    with open(copy.file("kernel_details.csv"), encoding="utf-8") as file:
        by_id = "Task ID" in file.readline()
    copy.cell("l2_cache", 1, "Task Id" if by_id else "Op Name", lambda text: "64999" if by_id else text + "x")


MUTATIONS[:] = [one for one in MUTATIONS if one.expected != "C13"]
MUTATIONS.append(Mutation("a cache row has no kernel", "C13", _cache_level))


# ---- JSON ----

def _first_op(content: Any) -> Any:
    for kinds in content.values():
        for ops in kinds.values():
            for name, value in ops.items():
                if name != "Total Op Info":
                    return value
    raise Skip("no communication operator")


def _comm(group: str, key: str, amount: float, *more: str) -> Callable[[Copy], None]:
    def apply(copy: Copy) -> None:
        with copy.json(copy.file("communication.json")) as content:
            index = _first_op(content)[group]
            for name in (key, *more):
                index[name] += amount
    return apply


def _matrix(copy: Copy) -> None:
    with copy.json(copy.file("communication_matrix.json")) as content:
        for kinds in content.values():
            for ops in kinds.values():
                for name, links in ops.items():
                    if "-total@" in name:
                        next(iter(links.values()))["Transit Size(MB)"] += 1
                        return
        raise Skip("no total")


def _no_total(copy: Copy) -> None:
    with copy.json(copy.file("communication.json")) as content:
        for kinds in content.values():
            for ops in kinds.values():
                if ops.pop("Total Op Info", None):
                    return
        raise Skip("no total")


TIME = "Communication Time Info"
MUTATIONS += [
    Mutation("Idle is wrong", "J1", _comm(TIME, "Idle Time(ms)", 1)),
    Mutation("a wait ratio is wrong", "J1", _comm(TIME, "Wait Time Ratio", 0.1)),
    Mutation("no Total Op Info", "J1", _no_total),
    Mutation("Elapse is wrong", "J2", _comm(TIME, "Elapse Time(ms)", 1, "Idle Time(ms)")),
    Mutation("a start of communication is wrong", "J2", _comm(TIME, "Start Timestamp(us)", 5)),
    Mutation("a total of the matrix is wrong", "J3", _matrix),
]
