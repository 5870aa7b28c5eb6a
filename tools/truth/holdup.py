# SPDX-License-Identifier: BSD-2-Clause
"""Holds the results of a capture against the truth."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional

from result import HOST_BOUNDS, NO_CONTEXT, SESSION_TASKS, Api, DeviceTask, Result, ResultStep
from truthfile import Launch, Step, Task, Truth

LATE_NS = 100_000_000
MAX_EXAMPLES = 5
P99_LIMIT_US = 5.0
COVERAGE_LIMIT = 0.999      # of the tasks' errors must be within the clock's error that the result states


@dataclass
class Window:
    """The part of CLOCK_MONOTONIC in which every probe was attached."""
    begin: int = 0
    end: int = 1 << 63


@dataclass
class Tally:
    """Sums over all processes, and a few examples of what is wrong."""
    count: Counter[str] = field(default_factory=Counter)
    start_errors: list[float] = field(default_factory=list)
    end_errors: list[float] = field(default_factory=list)
    boundary_errors: list[float] = field(default_factory=list)
    # device, time, errors, bound; ns
    stated: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    steps_before: list[float] = field(default_factory=list)
    steps_during: list[float] = field(default_factory=list)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def note(self, key: str, text: str) -> None:
        """Count KEY once more and keep the first few texts."""
        self.count[key] += 1
        if len(self.examples[key]) < MAX_EXAMPLES:
            self.examples[key].append(text)


class Comparison:
    """One process: its truth, and all results of that process."""

    def __init__(self, truth: Truth, results: list[Result], window: Window, slack_ns: int, reach_ns: int) -> None:
        self.truth = truth
        self.window = window
        self.slack = slack_ns
        self.reach = reach_ns
        self.tasks = [task for result in results for task in result.tasks]
        self.api_of: dict[int, Optional[Api]] = {
            id(task): result.apis.get(task.connection) for result in results for task in result.tasks}
        self.apis = [api for result in results for api in result.apis.values()]
        self.steps = [step for result in results for step in result.steps]
        self.matched: dict[int, DeviceTask] = {}        # index of the truth's task -> exported task
        self.real = truth.clock.real

    def run(self, tally: Tally) -> None:
        """Add everything about this process to TALLY."""
        launches = self._expected_launches()
        extra = self._match_tasks()
        self._judge_launches(tally, launches)
        self._judge_tasks(tally, launches)
        for task in extra:
            tally.note("tasks_extra", _describe(task))
        for task in self.tasks:
            api = self.api_of[id(task)]
            if api and task.start < api.start:
                tally.note("causality_violations", f"{_describe(task)} starts {api.start - task.start} ns early")
        self._judge_steps(tally)

    def _inside(self, begin: int, end: int) -> bool:
        mono = self.truth.clock.mono
        return mono(begin) >= self.window.begin and mono(end) <= self.window.end

    def _expected_launches(self) -> set[int]:
        """Launches whose whole operator or collective lies in the window: calls are recorded at return."""
        first, spans = self.truth.first_phase_begin(), self.truth.collective_spans()
        expected = set()
        for launch in self.truth.launches.values():
            begin, end = spans.get(launch.ident, (launch.begin, launch.end))
            if self._inside(first.get(launch.ident, begin), end):
                expected.add(launch.ident)
        return expected

    # ---- tasks ----

    def _match_tasks(self) -> list[DeviceTask]:
        """Pair tasks of one (device, stream, id) by nearest start; return what is left over."""
        reported: dict[tuple[int, int, int], list[DeviceTask]] = defaultdict(list)
        true: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for task in self.tasks:
            reported[task.device, task.stream, task.task & 0xFFFF].append(task)
        for index, fact in enumerate(self.truth.tasks):
            true[fact.device, fact.stream, fact.task & 0xFFFF].append(index)
        extra: list[DeviceTask] = []
        for key, group in reported.items():
            left = self._pair(true.get(key, []), group)
            for task in left:
                subtask = task.context != NO_CONTEXT and len(left) < len(group)
                if not subtask and task.name not in SESSION_TASKS:
                    extra.append(task)
        return extra

    def _pair(self, facts: list[int], group: list[DeviceTask]) -> list[DeviceTask]:
        facts = sorted(facts, key=lambda index: self.truth.tasks[index].start)
        starts = [self.real(self.truth.tasks[index].start) for index in facts]
        pairs = []
        for number, task in enumerate(group):
            low = bisect_left(starts, task.start - self.reach)
            for at in range(low, bisect_right(starts, task.start + self.reach)):
                pairs.append((abs(starts[at] - task.start), at, number))
        used: set[int] = set()
        used_task: set[int] = set()
        for _, at, number in sorted(pairs):
            if at not in used and number not in used_task:
                used.add(at)
                used_task.add(number)
                self.matched[facts[at]] = group[number]
        return [task for number, task in enumerate(group) if number not in used_task]

    def _judge_tasks(self, tally: Tally, launches: set[int]) -> None:
        timed: list[tuple[int, bool]] = []  # end, has it the device's times?
        for index, fact in enumerate(self.truth.tasks):
            task = self.matched.get(index)
            expected = fact.launch in launches and self.truth.clock.mono(fact.end) <= self.window.end
            if expected:
                tally.count["tasks_expected"] += 1
                if not task:
                    self._missing_task(tally, fact)
            if not task:
                continue
            tally.count["tasks_found"] += expected
            self._judge_times(tally, fact, task)
            timed.append((fact.end, task.source != HOST_BOUNDS))
            launch = self.truth.launches.get(fact.launch)
            if expected and launch and not name_matches(launch, task.name):
                tally.note("name_mismatches", f"{_describe(task)} should be {expected_name(launch)}")
        measured = [end for end, by_device in timed if by_device]
        if measured:  # before the first and after the last one the device was not read
            tally.count["bounds_between"] += sum(min(measured) < end < max(measured)
                                                 for end, by_device in timed if not by_device)

    def _missing_task(self, tally: Tally, fact: Task) -> None:
        late = self.truth.clock.mono(fact.end) > self.window.end - LATE_NS
        key = "tasks_missing_last_100ms" if late else "tasks_missing"
        tally.note(key, f"pid {self.truth.pid} device {fact.device} stream {fact.stream} task {fact.task}"
                        f" flip {fact.flip} {fact.sqe} at {self.real(fact.start)}")

    def _judge_times(self, tally: Tally, fact: Task, task: DeviceTask) -> None:
        start, end = self.real(fact.start), self.real(fact.end)
        if task.source == HOST_BOUNDS:
            tally.count["bounds_tasks"] += 1
            bounds = task.bounds
            if not (bounds and self._holds(bounds.start_low, start, bounds.start_high)
                    and self._holds(bounds.end_low, end, bounds.end_high)):
                tally.note("bounds_violations", f"{_describe(task)} {bounds} truth {start}..{end}")
            return
        tally.start_errors.append((task.start - start) / 1000)
        tally.end_errors.append((task.end - end) / 1000)
        if task.error is not None:
            tally.stated.append((task.device, start, task.start - start, task.end - end, task.error))
            if max(abs(task.start - start), abs(task.end - end)) <= task.error:
                tally.count["errors_covered"] += 1
            else:
                tally.note("errors_understated",
                           f"{_describe(task)} is {task.start - start} and {task.end - end} ns off,"
                                                 f" said to be within {task.error}")

    def _holds(self, low: Optional[int], value: int, high: Optional[int]) -> bool:
        return (low is None or low <= value + self.slack) and (high is None or value - self.slack <= high)

    # ---- launches ----

    def _judge_launches(self, tally: Tally, expected: set[int]) -> None:
        task_of: dict[int, DeviceTask] = {
            self.truth.tasks[index].launch: task for index, task in self.matched.items()}
        lanes = _Lanes(self.apis)
        for ident, task in task_of.items():
            launch, api = self.truth.launches.get(ident), self.api_of[id(task)]
            if launch and api:
                lanes.claim(api, launch)
        for ident in expected:
            launch = self.truth.launches[ident]
            begin, end = self.real(launch.begin), self.real(launch.end)
            tally.count["launches_expected"] += 1
            if ident in task_of:
                api = self.api_of[id(task_of[ident])]
                found = api is not None and api.tid == launch.tid and api.start <= end and api.end >= begin
            else:
                found = lanes.free_overlap(launch, begin, end)
            if found:
                tally.count["launches_found"] += 1
            else:
                tally.note("launches_missing", f"pid {self.truth.pid} tid {launch.tid} {launch.api}"
                                               f" {launch.name} at {begin}")

    # ---- steps ----

    def _judge_steps(self, tally: Tally) -> None:
        clock, window = self.truth.clock, self.window
        steps = sorted(self.truth.steps, key=lambda step: step.begin)
        # A step reaches to the beginning of the next: what the job does in between belongs to it,
        # and one that nothing follows has no end that could be seen.
        following = {step.number: after.begin for step, after in zip(steps, steps[1:])}
        whole = [step for step in steps if step.number in following
                 and self._inside(step.begin, following[step.number])]
        for step in steps:
            outside = clock.mono(step.end) <= window.begin or clock.mono(step.begin) >= window.end
            length = (step.end - step.begin) / 1e6
            if outside:
                tally.steps_before.append(length)
            elif self._inside(step.begin, step.end):
                tally.steps_during.append(length)
        tally.count["steps_expected"] += len(whole)
        pairs = self._pair_steps(whole)
        tally.count["steps_found"] += len(pairs)
        for step, reported in pairs:
            if reported.start is not None:
                tally.boundary_errors.append(abs(reported.start - self.real(step.begin)) / 1000)
            if reported.end is not None:
                tally.boundary_errors.append(abs(reported.end - self.real(following[step.number])) / 1000)
        offsets = {int(reported.ident) - step.number for step, reported in pairs if reported.ident.isdigit()}
        offset = offsets.pop() if len(offsets) == 1 else 0
        tally.count["steps_renumbered"] += offset != 0
        found = {step.number for step, _ in pairs}
        self._judge_assignment(tally, steps, {step.number for step in whole}, found, offset)

    def _pair_steps(self, whole: list[Step]) -> list[tuple[Step, ResultStep]]:
        timed = [step for step in self.steps if step.start is not None and step.end is not None]
        if not timed:
            reported = {step.ident: step for step in self.steps}
            return [(step, reported[str(step.number)]) for step in whole if str(step.number) in reported]
        timed.sort(key=lambda step: step.start or 0)
        starts = [step.start for step in timed]
        pairs = []
        for step in whole:
            begin, end = self.real(step.begin), self.real(step.end)
            index = bisect_right(starts, (begin + end) // 2) - 1
            if index >= 0 and (timed[index].end or 0) > (begin + end) // 2:
                pairs.append((step, timed[index]))
        return pairs

    def _judge_assignment(self, tally: Tally, steps: list[Step], whole: set[int], found: set[int],
                          offset: int) -> None:
        """Every kernel is in its step; in none where the result does not have the step, which counts as
        missing.

        For a kernel whose call is not in the result only its time on the device decides about the step: if
        it is in none of them that is not wrong, but something is missing.
        """
        begins = [step.begin for step in steps]
        for index, task in self.matched.items():
            launch = self.truth.launches.get(self.truth.tasks[index].launch)
            if not launch or not task.kernel or task.step is None:
                continue
            at = bisect_right(begins, launch.begin) - 1
            inside = at >= 0 and launch.begin < steps[at].end
            number = steps[at].number if inside else None
            right = {str(number + offset)} if inside else set()
            if number not in whole or number not in found:
                right.add("")
            if task.step == "" and task.step not in right and not self.api_of[id(task)]:
                tally.note("steps_unknown", f"{_describe(task)} is in no step, should be in {number}")
            elif task.step not in right:
                tally.note("step_assignment_errors", f"{_describe(task)} is in step {task.step!r},"
                                                     f" should be {sorted(right)}")


class _Lanes:
    """Host calls by thread, to find one that no other task has claimed."""

    def __init__(self, apis: Iterable[Api]) -> None:
        self._claimed: dict[int, tuple[int, int]] = {}
        self._by_tid: dict[int, list[Api]] = defaultdict(list)
        for api in apis:
            self._by_tid[api.tid].append(api)
        self._starts: dict[int, list[int]] = {}
        self._longest: dict[int, int] = {}
        for tid, lane in self._by_tid.items():
            lane.sort(key=lambda api: api.start)
            self._starts[tid] = [api.start for api in lane]
            self._longest[tid] = max(api.end - api.start for api in lane)

    def claim(self, api: Api, launch: Launch) -> None:
        """API is known to have made LAUNCH."""
        self._claimed[id(api)] = (launch.tid, launch.begin)

    def free_overlap(self, launch: Launch, begin: int, end: int) -> bool:
        """Is there a call over [begin, end] on the launch's thread that made no other call's launch?"""
        starts = self._starts.get(launch.tid, [])
        low = bisect_left(starts, begin - self._longest.get(launch.tid, 0))
        for at in range(low, bisect_right(starts, end)):
            api = self._by_tid[launch.tid][at]
            owner = self._claimed.get(id(api), (launch.tid, launch.begin))
            if api.end < begin or owner != (launch.tid, launch.begin):
                continue
            if not launch.l0 or api.level in ("node", "flow"):
                self.claim(api, launch)
                return True
        return False


def expected_name(launch: Launch) -> str:
    """The name that a profiler shows for the task of this launch."""
    return f"{launch.aclnn}_{launch.l0}" if launch.aclnn and launch.l0 else launch.name


def name_matches(launch: Launch, name: str) -> bool:
    """Is NAME a spelling that real captures use for this launch?"""
    right = expected_name(launch)
    if name == right:
        return True
    if _plain(launch.name) not in NOT_KERNELS:
        return False
    if _plain(name) == _plain(right):
        return True
    return _plain(right) == "SDMA" and name == "MEMCPY_ASYNC" and "memcpy" in launch.api.lower()


NOT_KERNELS = {"MEMCPY_ASYNC", "EVENT_RECORD", "EVENT_WAIT", "NOTIFY_WAIT", "NOTIFY_RECORD", "SDMA",
               "WRITE_VALUE", "PLACE_HOLDER"}


def _plain(name: str) -> str:
    return name.upper().replace(" ", "_").removesuffix("_SQE")


def _describe(task: DeviceTask) -> str:
    return f"device {task.device} stream {task.stream} task {task.task} {task.name} at {task.start}"


def percentile(values: list[float], share: float) -> Optional[float]:
    """Nearest-rank percentile of the absolute values."""
    ordered = sorted(abs(value) for value in values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)] if ordered else None


def mean(values: list[float]) -> Optional[float]:
    """Arithmetic mean, None of nothing."""
    return sum(values) / len(values) if values else None


def total(drops: Any) -> int:
    """Sum of every number in a nested object."""
    if isinstance(drops, dict):
        return sum(total(value) for value in drops.values())
    if isinstance(drops, list):
        return sum(total(value) for value in drops)
    return int(drops) if isinstance(drops, (int, float)) and not isinstance(drops, bool) else 0


COUNTS = ("launches_expected", "launches_found", "tasks_expected", "tasks_found", "tasks_extra",
          "tasks_missing_last_100ms", "name_mismatches", "causality_violations", "bounds_tasks",
          "bounds_between", "bounds_violations", "steps_expected", "steps_found", "steps_renumbered", "steps_unknown",
          "step_assignment_errors")


def summary(tally: Tally, dropped: int) -> dict[str, Any]:
    """The keys of the JSON file."""
    report: dict[str, Any] = {key: tally.count[key] for key in COUNTS}
    for name, values in (("start", tally.start_errors), ("end", tally.end_errors)):
        for label, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            report[f"{name}_error_us_{label}"] = percentile(values, share)
    for label, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        report[f"step_boundary_error_us_{label}"] = percentile(tally.boundary_errors, share)
    report["bound_coverage"] = tally.count["errors_covered"] / len(tally.stated) if tally.stated else None
    report["bound_us_p50"] = percentile([row[4] / 1000 for row in tally.stated], 0.5)
    report["bound_us_max"] = percentile([row[4] / 1000 for row in tally.stated], 1.0)
    report["dropped"] = dropped
    before, during = mean(tally.steps_before), mean(tally.steps_during)
    report["job_step_ms_before"] = before
    report["job_step_ms_during"] = during
    report["job_slowdown"] = during / before - 1 if before and during else None
    return report


def verdict(report: dict[str, Any], require_steps: bool) -> int:
    """0 if all is well, 1 wrong, 3 incomplete but the loss was admitted.

    A result without any step is no fault unless REQUIRE_STEPS: not every job marks its steps.
    """
    wrong = any(report[key] for key in ("name_mismatches", "causality_violations", "bounds_violations",
                                        "tasks_extra", "step_assignment_errors"))
    wrong = wrong or any((report[key] or 0) > P99_LIMIT_US for key in ("start_error_us_p99", "end_error_us_p99"))
    wrong = wrong or report["bound_coverage"] is not None and report["bound_coverage"] < COVERAGE_LIMIT
    kinds = ["launches", "tasks"] + (["steps"] if require_steps or report["steps_found"] else [])
    missing = report["steps_unknown"] or any(report[f"{kind}_found"] != report[f"{kind}_expected"] for kind in kinds)
    if wrong:
        return 1
    return (3 if report["dropped"] else 1) if missing else 0
