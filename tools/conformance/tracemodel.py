# SPDX-License-Identifier: BSD-2-Clause
"""The scanned form of a trace_view.json: everything the checks need, in one pass.

What can be judged event by event is judged here and kept as a `Flaw`; slices
and flows are kept as tuples, counters only as counts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Optional

from tracefile import Number, events, is_exact_us, us_to_ns

PHASES = frozenset("MXICstf")
TORCH_CATS = frozenset(("cpu_op", "python_function", "enqueue", "dequeue"))
HOST_DEVICE = 31
HOST_BOUNDS = "host bounds"
MARK_KEYS = {"Physic Stream Id", "Task Id"}
NO_CONTEXT = NO_CONNECTION = 0xFFFFFFFF
KEPT = 5
OVERLAP_LANES = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
HOST_LAYERS = frozenset(("CANN", "CPU Usage", "Memory Usage", "Network Usage", "Disk Usage", "OS Runtime API"))
SCHEDULING = frozenset(("Process Scheduling", "CPU Scheduling"))
COMMUNICATION = frozenset(("HCCL", "Communication", "COMMUNICATION"))
KERNEL_TYPES = ("AI_", "AIC", "AIV", "FUSION", "MIX_", "DSA_SQE", "KERNEL_")


class Slice(NamedTuple):
    """An X or I event; times in ns, the length may have a fraction."""
    pid: Any
    tid: Any
    start: int
    length: float
    name: str
    cat: Optional[str]
    args: Any                   # the arguments of device and CANN slices, else just the tuple of their keys

    @property
    def bounded(self) -> bool:
        """Was the time of this task never measured?"""
        return isinstance(self.args, dict) and self.args.get("time_source") == HOST_BOUNDS

    @property
    def unlinked(self) -> bool:
        """Does this task state that its launch is unknown?"""
        return isinstance(self.args, dict) and self.args.get("connection_id") == NO_CONNECTION

    @property
    def end(self) -> int:
        """Where the slice ends; a double would lose hundreds of ns of a Unix time."""
        return self.start + round(self.length)


class Flow(NamedTuple):
    """One end of an arrow."""
    phase: str
    cat: str
    ident: Any
    pid: Any
    tid: Any
    ts: int


@dataclass
class Flaw:
    """Events that break one syntactic rule."""
    count: int = 0
    samples: list[str] = field(default_factory=list)

    def add(self, event: dict[str, Any]) -> None:
        """Count EVENT, keep the first few."""
        self.count += 1
        if len(self.samples) < KEPT:
            self.samples.append(f"{event!r:.160}")


class Trace:
    """All layers of one trace file."""

    def __init__(self) -> None:
        self.error = ""
        self.events = 0
        self.phases: Counter[str] = Counter()
        self.flaws: dict[str, Flaw] = defaultdict(Flaw)
        self.bare_freq = 0                      # closing AI Core Freq samples printed without decimals
        self.name: dict[Any, str] = {}
        self.label: dict[Any, str] = {}
        self.sort_index: dict[Any, int] = {}
        self.thread_name: dict[tuple[Any, Any], str] = {}
        self.thread_sort: dict[tuple[Any, Any], int] = {}
        self.slices: list[Slice] = []
        self.flows: list[Flow] = []
        self.pids: set[Any] = set()
        self.last_us = 0.0
        self.freq_names: Counter[str] = Counter()

    def layer(self, *names: str) -> list[Slice]:
        """Slices of the processes with one of NAMES."""
        return [one for name in names for one in self._by_name.get(name, [])]

    @cached_property
    def _by_name(self) -> dict[str, list[Slice]]:
        result: dict[str, list[Slice]] = defaultdict(list)
        for one in self.slices:
            result[self.name.get(one.pid, "")].append(one)
        return result

    @cached_property
    def hardware(self) -> list[Slice]:
        """Device tasks; neither marks nor iterations of graphs, which are in that layer, too."""
        return [one for one in self.layer("Ascend Hardware") if isinstance(one.args, dict)
                and set(one.args) != MARK_KEYS
                and self.thread_name.get((one.pid, one.tid), "Stream").startswith("Stream")]

    @cached_property
    def kernels(self) -> list[Slice]:
        """Device tasks that compute."""
        return [one for one in self.hardware if str(one.args.get("Task Type", "")).startswith(KERNEL_TYPES)]

    @cached_property
    def cann(self) -> list[Slice]:
        """Host calls."""
        return self.layer("CANN")

    @cached_property
    def cann_by_connection(self) -> dict[Any, Slice]:
        """Host calls by connection id."""
        return {one.args.get("connection_id"): one for one in self.cann}

    @cached_property
    def collectives(self) -> list[Slice]:
        """The big operators on the group lanes."""
        return [one for one in self.layer(*COMMUNICATION)
                if not self.thread_name.get((one.pid, one.tid), "").startswith("Plane")]

    @cached_property
    def planes(self) -> list[Slice]:
        """The tasks below the big operators."""
        return [one for one in self.layer(*COMMUNICATION)
                if self.thread_name.get((one.pid, one.tid), "").startswith("Plane")]

    def torch(self, cat: str) -> list[Slice]:
        """Slices of the framework layer by category."""
        return self._by_cat.get(cat, [])

    @cached_property
    def _by_cat(self) -> dict[str, list[Slice]]:
        result: dict[str, list[Slice]] = defaultdict(list)
        for one in self.slices:
            if one.cat:
                result[one.cat].append(one)
        return result

    @cached_property
    def steps(self) -> dict[str, list[Slice]]:
        """Step marks by number."""
        result: dict[str, list[Slice]] = defaultdict(list)
        for one in self.slices:
            if one.name.startswith("ProfilerStep#"):
                result[one.name.partition("#")[2]].append(one)
        return result

    @cached_property
    def lanes(self) -> dict[tuple[Any, Any], "Lane"]:
        """Slices by lane."""
        groups: dict[tuple[Any, Any], list[Slice]] = defaultdict(list)
        for one in self.slices:
            groups[one.pid, one.tid].append(one)
        return {key: Lane(group) for key, group in groups.items()}

    def at(self, pid: Any, tid: Any, ts: int) -> list[Slice]:
        """Slices of a lane that start at TS."""
        lane = self.lanes.get((pid, tid))
        return lane.starting(ts) if lane else []

    def devices(self) -> set[int]:
        """Device ids in the pids of the device layers."""
        return {pid & 31 for pid, name in self.name.items()
                if isinstance(pid, int) and name in ("Ascend Hardware", "Overlap Analysis", *COMMUNICATION)}

    def process_id(self) -> Optional[int]:
        """The process id that the layers of the trace agree on."""
        votes = Counter(pid >> 10 for pid, name in self.name.items()
                        if isinstance(pid, int) and name not in ("Python", *SCHEDULING))
        return votes.most_common(1)[0][0] if votes else None

    def markers(self) -> dict[str, str]:
        """What in the trace speaks for a generation."""
        found: dict[str, str] = {}
        for pid, label in self.label.items():
            if label.startswith("NPU"):
                found[f"label {label!r}"] = "A" if label == "NPU" else "B"
        for name in self.name.values():
            if name in COMMUNICATION:
                found[f"layer {name}"] = "A" if name == "HCCL" else "B"
        return found


class Lane:
    """Slices of one thread, stream or plane, by start."""

    def __init__(self, group: list[Slice]) -> None:
        self.slices = sorted(group, key=lambda one: (one.start, -one.length))
        self.starts = array("q", (one.start for one in self.slices))
        self.longest = max(one.length for one in group)

    def starting(self, ts: int) -> list[Slice]:
        """Slices that start at TS."""
        low = bisect_left(self.starts, ts)
        return self.slices[low:bisect_right(self.starts, ts, low)]

    def holding(self, ts: int) -> Optional[Slice]:
        """A slice that TS lies in."""
        low = bisect_left(self.starts, ts - int(self.longest) - 1)
        for one in self.slices[low:bisect_right(self.starts, ts)]:
            if one.start <= ts <= one.end:
                return one
        return None


def scan(paths: list[Path]) -> Trace:
    """Read a trace file, or its slices."""
    trace = Trace()
    key_sets: dict[tuple[str, ...], tuple[str, ...]] = {}
    names: dict[str, str] = {}
    for path in paths:
        try:
            for event in events(path):
                trace.events += 1
                _read_event(trace, event, key_sets, names)
        except ValueError as error:
            trace.error = str(error)
    return trace


def _read_event(trace: Trace, event: dict[str, Any], key_sets: dict[Any, Any], names: dict[str, str]) -> None:
    phase = event.get("ph")
    trace.phases[phase] += 1
    if next(reversed(event), "") != "ph":
        trace.flaws["ph is not the last key"].add(event)
    if phase not in PHASES:
        trace.flaws["phase"].add(event)
        return
    trace.pids.add(event.get("pid"))
    if phase == "M":
        _read_metadata(trace, event)
        return
    ts = _timestamp(trace, event)
    if ts is None:
        return
    if phase in "XI":
        _read_slice(trace, event, ts, key_sets, names)
    elif phase == "C":
        _read_counter(trace, event)
    else:
        trace.flows.append(Flow(phase, event.get("cat", ""), event.get("id"), event.get("pid"), event.get("tid"), ts))


def _timestamp(trace: Trace, event: dict[str, Any]) -> Optional[int]:
    value = event.get("ts")
    if not is_exact_us(value) or isinstance(value, Number):
        if event.get("name") == "AI Core Freq" and isinstance(value, str) and value.isdigit():
            trace.bare_freq += 1
        else:
            trace.flaws["ts"].add(event)
    try:
        ts = us_to_ns(value)
    except ValueError:
        trace.flaws["ts <= 0"].add(event)
        return None
    if ts <= 0:
        trace.flaws["ts <= 0"].add(event)
    if event.get("cat") not in _OWN_ORDER and event.get("args", {}).keys() != MARK_KEYS and \
            not trace.thread_name.get((event.get("pid"), event.get("tid")), "").startswith("Step Trace"):
        now = float(value)
        if now < trace.last_us - 0.25:
            trace.flaws["order"].add(event)
        trace.last_us = max(now, trace.last_us)
    return ts


_OWN_ORDER = TORCH_CATS | {"async_npu", "async_task_queue", "fwdbwd", "GC", "MsTx", "Data_aug Bound", "GetNext Time"}


def _read_metadata(trace: Trace, event: dict[str, Any]) -> None:
    kind, pid, args = event.get("name"), event.get("pid"), event.get("args") or {}
    if kind == "process_name":
        trace.name[pid] = str(args.get("name"))
    elif kind == "process_labels":
        trace.label[pid] = str(args.get("labels"))
    elif kind == "process_sort_index":
        trace.sort_index[pid] = args.get("sort_index")
    elif kind == "thread_name":
        trace.thread_name[pid, event.get("tid")] = str(args.get("name"))
    elif kind == "thread_sort_index":
        trace.thread_sort[pid, event.get("tid")] = args.get("sort_index")
    else:
        trace.flaws["metadata"].add(event)


def _read_slice(trace: Trace, event: dict[str, Any], ts: int, key_sets: dict[Any, Any], names: dict[str, str]) -> None:
    dur = event.get("dur", 0 if event["ph"] == "I" else None)
    if isinstance(dur, bool) or not isinstance(dur, (int, Number)):
        trace.flaws["dur"].add(event)
        dur = 0
    length = float(dur) * 1000
    if length < 0:
        trace.flaws["dur < 0"].add(event)
    name, args = event.get("name"), event.get("args") or {}
    if not isinstance(name, str) or not name or event.get("tid") is None:
        trace.flaws["slice without name or tid"].add(event)
        name = str(name)
    keep = "connection_id" in args or "Physic Stream Id" in args or "task type" in args
    kept = args if keep else key_sets.setdefault(tuple(args), tuple(args))
    trace.slices.append(Slice(event.get("pid"), event.get("tid"), ts, length, names.setdefault(name, name),
                              event.get("cat"), kept))


def _read_counter(trace: Trace, event: dict[str, Any]) -> None:
    if "id" in event:
        trace.flaws["counter with id"].add(event)
    args = event.get("args")
    if not isinstance(args, dict) or not args:
        trace.flaws["counter without series"].add(event)
        return
    for value in args.values():
        try:
            float(value)
        except (TypeError, ValueError):
            trace.flaws["counter without series"].add(event)
            return
