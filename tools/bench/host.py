# SPDX-License-Identifier: BSD-2-Clause
"""What tracers add to a job, and to plain programs that keep the operating system busy."""

import json
import re
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Callable, Optional

ROUNDS = 5
Run = Callable[[], float]


def medians(runs: dict[str, Run], rounds: int, progress: Callable[..., None]) -> dict[str, float]:
    """Median of each, measured in turns so that noise meets all of them. What fails is left out."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            if name not in times:
                continue
            try:
                times[name].append(run())
            except (RuntimeError, subprocess.SubprocessError, OSError, ValueError) as why:
                progress(f"{name}: failed, left out: {str(why)[:300]}")
                del times[name]
    return {name: statistics.median(values) for name, values in times.items()}


def tracers(npuscope: Path, out: Path) -> dict[str, list[str]]:
    """Name -> command in front of the program that is traced; those that are installed."""
    quiet = ["-q", "-o", str(out), "--export", "none", "--task-source", "host"]
    table = {
        "npuscope record": [str(npuscope), "record", *quiet, "--"],
        "npuscope record --osrt-threshold 0": [str(npuscope), "record", "--osrt-threshold", "0", *quiet, "--"],
        "strace -f -c": ["strace", "-f", "-c", "-o", str(out / "strace.txt")],
        "strace -f": ["strace", "-f", "-ttt", "-T", "-o", str(out / "strace.txt")],
        "perf trace -s": ["perf", "trace", "-s", "-o", str(out / "perf.txt"), "--"],
        "perf trace": ["perf", "trace", "-o", str(out / "perf.txt"), "--"],
    }
    return {name: command for name, command in table.items() if shutil.which(command[0])}


def last_number(text: str) -> float:
    """The workload's own figure among the output of the tracer."""
    found = re.findall(r"^(\d+)$", text, re.M)
    if not found:
        raise ValueError("the workload said nothing")
    return float(found[-1]) / 1e9


def traced(command: list[str], out: Path, timeout: int = 300) -> float:
    """Seconds that the workload took, by its own output."""
    done = subprocess.run(command, cwd=out, capture_output=True, check=False, text=True, timeout=timeout)
    for session in out.glob("npuscope_*"):
        shutil.rmtree(session)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr[-300:]}")
    return last_number(done.stdout)


def bpftrace_counts(workload: list[str], out: Path) -> Run:
    """bpftrace wants the command as one word."""
    script = "tracepoint:raw_syscalls:sys_enter{@s=count();} tracepoint:raw_syscalls:sys_exit{@e=count();}"
    return lambda: traced(["bpftrace", "-e", script, "-c", " ".join(workload)], out)


def operating_system(npuscope: Path, out: Path, add: Callable[..., None], progress: Callable[..., None]) -> None:
    """System calls as fast as they go, threads that fight for a mutex, and a copy."""
    program = str(out / "workload")
    kinds = {"system calls": ["calls", "300000"], "mutex": ["locks", "400000"], "copying": ["copy", "1500"]}
    events = {"system calls": 300000}
    for kind, words in kinds.items():
        workload = [program, *words]

        def run(prefix: list[str], command: list[str] = workload) -> Run:
            return lambda: traced([*prefix, *command], out)

        runs: dict[str, Run] = {"no tracer": run([])}
        runs |= {name: run(prefix) for name, prefix in tracers(npuscope, out).items()}
        if shutil.which("bpftrace"):
            runs["bpftrace count"] = bpftrace_counts(workload, out)
        found = medians(runs, ROUNDS, progress)
        plain = found["no tracer"]
        for name, seconds in found.items():
            add(f"{kind}, {name}", seconds, "s", f"{kind}, no tracer", plain)
        added = {name: (seconds - plain) / events[kind] * 1e9 for name, seconds in found.items()
                 if kind in events and name != "no tracer"}
        for name, ns in added.items():
            add(f"added to a system call by {name}", ns, "ns", "npuscope record", added["npuscope record"])


def probed_calls(session: Path) -> int:
    """Calls and entry marks that a session holds."""
    events = json.loads((session / "session.json").read_text())["events"]
    return int(events["api"]) + int(events["mark"]) + int(events["sqe"])


def ltrace_calls(report: Path) -> Optional[int]:
    """Calls that `ltrace -c` counted."""
    lines = [line.split() for line in report.read_text(errors="replace").splitlines()]
    totals = [int(words[-2]) for words in lines if words and words[-1] == "total" and words[-2].isdigit()]
    return totals[-1] if totals else None
