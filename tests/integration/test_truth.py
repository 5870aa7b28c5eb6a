#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whole captures of the simulated job, compared with the simulator's log."""

import bisect
import json
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional

from harness import (DONE, PARTIAL, ROOT, SIM, Case, Result, Running, environment, main, need_npusim, need_root,
                     pid_list, ranks_of, test)

COMPARE = ROOT / "tools" / "truth" / "compare"


def hold_up(case: Case, session: Path, form: str, *options: str, result: Optional[Path] = None,
            statuses: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run tools/truth/compare; its numbers."""
    out = case.path(f"truth_{form}.json")
    run = case.run(["/usr/bin/python3", COMPARE, "--truth", case.path("truth"), "--result", result or session,
                    "--session", session, "--format", form, "--json", out, *options], seconds=120)
    assert run.status in statuses, f"{form}: {run.out} {run.err}"
    numbers: dict[str, Any] = json.loads(out.read_text())
    assert numbers["tasks_found"] > 500, f"too few tasks to say anything: {numbers['tasks_found']}"
    return numbers


def stop(job: Any) -> None:
    """Let the job end by itself, so that its truth file has an end."""
    time.sleep(0.5)
    job.signal(signal.SIGTERM)
    job.wait(30)


def capture(case: Case, seconds: int, *options: str, python: bool = False, ranks: int = 2, agent: bool = True,
            during: Callable[[Running], None] = lambda run: None) -> Result:
    """Attach to a job that has been running for a while; DURING is called with
    the run when all probes are in place."""
    need_root()
    case.path("truth").mkdir()
    job = case.sim_job("--ranks", ranks, python=python, agent=agent, truth=case.path("truth"))
    time.sleep(1)
    run = case.record("-p", pid_list(ranks_of(job)), "-d", f"{seconds}s", "-o", case.path("out"), *options)
    during(run)
    result = run.result(seconds + 90)
    stop(job)
    return result


def expect_measured(numbers: dict[str, Any], bounds_share: float = 0) -> None:
    """Times of the device's own log: clocks agree within microseconds, half of the tasks within two."""
    assert numbers["bounds_tasks"] <= bounds_share * numbers["tasks_found"], \
        f"{numbers['bounds_tasks']} of {numbers['tasks_found']} tasks have bounds instead of the device's times"
    assert numbers["bounds_violations"] == 0
    assert numbers["start_error_us_p50"] < 2 and numbers["end_error_us_p50"] < 2, numbers
    assert numbers["start_error_us_p99"] < 20 and numbers["end_error_us_p99"] < 20, numbers


@test
def attached_with_helper(case: Case) -> None:
    result = capture(case, 10, "--step-marker", "train_step@1").expect(DONE)
    session = result.session
    assert session.dropped() == 0
    for form in ("db", "text"):
        expect_measured(hold_up(case, session.path, form, "--require-steps"))


@test
def attached_without_helper(case: Case) -> None:
    """--task-source host: no measurement, but the truth of every task lies within its bounds."""
    result = capture(case, 5, "--step-marker", "train_step@1", "--task-source", "host").expect(DONE)
    for form in ("db", "text"):
        numbers = hold_up(case, result.session.path, form, "--require-steps")
        assert numbers["bounds_violations"] == 0
        assert numbers["bounds_tasks"] >= numbers["tasks_found"], "a bound is dressed up as a measurement"


@test
def job_without_helper(case: Case) -> None:
    """The job was started as usual, without the helper: as above, and stderr has the reason."""
    result = capture(case, 3, "--step-marker", "train_step@1", agent=False).expect(DONE)
    assert any("no device task log" in line for line in result.complaints), result.err
    numbers = hold_up(case, result.session.path, "db", "--require-steps")
    assert numbers["bounds_tasks"] >= numbers["tasks_found"] and numbers["bounds_violations"] == 0


@test
def from_the_start(case: Case) -> None:
    """record -- CMD: from the first call to the exit."""
    need_root()
    need_npusim()
    case.path("truth").mkdir()
    env = environment(sim=True, NPUSIM_TRUTH=case.path("truth"))
    run = case.record("-o", case.path("out"), "--step-marker", "train_step@1", "--", SIM / "bin" / "npusim-train",
                      "--ranks", 2, "--steps", 60, env=env, wait=False)
    result = run.result(120).expect(DONE)
    session = result.session
    assert session.json["end_reason"] == "targets exited"
    assert sorted(p["rank"] for p in session.json["processes"] if p["rank"] is not None) == [0, 1]
    for form in ("db", "text"):
        # The task log can be opened once the job has set its device: what it submits before has bounds.
        expect_measured(hold_up(case, session.path, form, "--require-steps"), bounds_share=0.05)


@test
def python_job(case: Case) -> None:
    """Phase 1 of an operator in one thread, phase 2 in another, calls through ctypes."""
    result = capture(case, 5, "--step-marker", "train_step_begin@1", python=True).expect(DONE)
    for form in ("db", "text"):
        expect_measured(hold_up(case, result.session.path, form, "--require-steps"))


@test
def one_rank_of_two(case: Case) -> None:
    """Only the ranks that were requested are in the results."""
    need_root()
    case.path("truth").mkdir()
    job = case.sim_job("--ranks", 2, truth=case.path("truth"))
    pid = ranks_of(job)[1]
    result = case.record("-p", pid, "-d", "3s", "-o", case.path("out")).result(60).expect(DONE)
    stop(job)
    assert [p["pid"] for p in result.session.json["processes"]] == [pid]
    folders = [line for line in result.out.splitlines() if line.endswith("_ascend_pt")]
    assert len(folders) == 1 and f"_{pid}_" in folders[0], result.out
    expect_measured(hold_up(case, result.session.path, "db", "--pid", str(pid)))


def stall(run: Running) -> None:
    """The collector gets no CPU for a tenth of a second, five times."""
    for _ in range(5):
        time.sleep(0.2)
        run.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        run.process.send_signal(signal.SIGCONT)


@test
def small_rings_admit_their_losses(case: Case) -> None:
    """With rings far too small records are lost: status 3, the number on
    stderr, and nothing that remains is wrong."""
    result = capture(case, 3, "--ring-size", "4K", "--step-marker", "train_step@1", ranks=1, during=stall)
    result.expect(PARTIAL)
    lost = result.session.dropped()
    assert lost > 0, result
    assert any(str(lost) in line and "lost" in line for line in result.complaints), f"{lost}: {result.err}"
    numbers = hold_up(case, result.session.path, "db", statuses=(0, 1, 3))
    # A lost mark can cost names beside it, never a time, a task that was not, or a kernel in a wrong step.
    assert numbers["name_mismatches"] <= 4 * lost and numbers["steps_unknown"] <= lost, numbers
    for figure in ("tasks_extra", "causality_violations", "bounds_violations", "step_assignment_errors"):
        assert numbers[figure] == 0, f"{figure}: {numbers}"
    for figure in ("start_error_us_p99", "end_error_us_p99"):
        assert (numbers[figure] or 0) <= 5, f"{figure}: {numbers}"


@test
def another_profilers_log_is_read_along(case: Case) -> None:
    """The job reads its own task log, and did before the capture: npuscope
    copies what it reads, and leaves it alone."""
    need_root()
    case.path("truth").mkdir()
    job = case.sim_job("--ranks", 1, "--self-profile", case.path("own"), truth=case.path("truth"))
    result = case.record("-p", ranks_of(job)[0], "-d", "3s", "-o", case.path("out")).result(60).expect(DONE)
    stop(job)
    # Until the channel was read empty nobody knows where a record begins.
    expect_measured(hold_up(case, result.session.path, "db"), bounds_share=0.1)
    check = case.run(["/usr/bin/python3", ROOT / "tools" / "npusim" / "selftest.py", case.path("truth"),
                      case.path("own")], seconds=60)
    assert check.status == 0, f"the job's own profile suffered: {check.out} {check.err}"


# --- steps without any marker -------------------------------------------------------------------------------

def truth_lines(path: Path, kind: str) -> list[list[str]]:
    return [fields for fields in (line.split("\t") for line in path.read_text().splitlines()) if fields[0] == kind]


def first_kernels(case: Case, pid: int) -> tuple[list[int], list[int]]:
    """By the job's own log, in Unix ns: when the first kernel of each step was launched, and every kernel."""
    whole = case.path("truth") / f"truth.{pid}.tsv"
    clocks = sorted((int(raw), int(real)) for _kind, raw, _mono, real in truth_lines(whole, "clock"))

    def real(raw: int) -> int:
        at = max(bisect.bisect_right(clocks, (raw, 0)) - 1, 0)
        return raw - clocks[at][0] + clocks[at][1]

    # A launch of a kernel names it; SQEs that are none are named in words.
    kernels = sorted(int(f[4]) for f in truth_lines(whole, "launch") if f[10] not in NO_KERNELS)
    steps = []
    for _kind, _number, begin, end in truth_lines(whole.with_suffix(".steps.tsv"), "step"):
        at = bisect.bisect_left(kernels, int(begin))
        assert at < len(kernels) and kernels[at] < int(end), "a step without a kernel"
        steps.append(real(kernels[at]))
    return sorted(steps), [real(kernel) for kernel in kernels]


def found_steps(result: Path) -> list[tuple[int, int]]:
    database = next(result.rglob("ascend_pytorch_profiler_*.db"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'STEP_TIME'").fetchone():
            return []
        return sorted(db.execute("SELECT startNs, endNs FROM STEP_TIME"))


NO_KERNELS = {"MEMCPY_ASYNC", "EVENT_RECORD", "EVENT_WAIT", "NOTIFY_WAIT", "NOTIFY_RECORD", "SDMA", "WRITE_VALUE",
              "PLACE_HOLDER"}


def unmarked_steps(case: Case, *options: str) -> Path:
    """Steps found in the sequence of launches are those that the job counts, from their first kernel on."""
    session = capture(case, 6, *options, ranks=1).expect(DONE).session
    pid = int(next(case.path("truth").glob("truth.*.steps.tsv")).name.split(".")[1])
    found, (truth, kernels) = found_steps(session.path), first_kernels(case, pid)
    assert len(found) >= 30, f"{len(found)} steps"
    starts = [start for start, _end in found]

    def step_of(start: int) -> Optional[int]:
        """Whose first kernel that is. A thread that lost its CPU in the call logged it late, but next."""
        near = min(truth, key=lambda first: abs(first - start))
        following = kernels[min(bisect.bisect_left(kernels, start), len(kernels) - 1)]
        return near if abs(near - start) <= SLACK_NS else following if following in truth else None
    steps = [step_of(start) for start in starts]
    inside = [first for first in truth if starts[0] - SLACK_NS <= first <= starts[-1] + SLACK_NS]
    missed = set(inside) - set(steps)
    assert steps.count(None) <= 0.02 * len(found), \
        f"{steps.count(None)} of {len(found)} steps begin in others: {[n for n, step in enumerate(steps) if not step]}"
    assert len(missed) <= 0.02 * len(inside), f"{len(missed)} of {len(inside)} steps are missing"
    return session.path


SLACK_NS = 200_000  # a step takes some 20 ms


@test
def steps_without_a_marker(case: Case) -> None:
    path = unmarked_steps(case)
    metadata = json.loads(next(path.rglob("profiler_metadata.json")).read_text())["npuscope"]
    assert metadata["step_source"] == "period" and metadata["step_confidence"] > 0.9, metadata


@test
def steps_without_a_marker_or_device_log(case: Case) -> None:
    unmarked_steps(case, "--task-source", "host")


@test
def no_steps_on_request(case: Case) -> None:
    result = capture(case, 3, "--step-source", "none", ranks=1).expect(DONE)
    assert not found_steps(result.session.path)


if __name__ == "__main__":
    sys.exit(main())
