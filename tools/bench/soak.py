# SPDX-License-Identifier: BSD-2-Clause
"""A long capture at a steady rate: memory of the collector, lost records, size against the estimate."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

RATE = 50000


def resident_kb(pid: int) -> int:
    """Anonymous memory and what is mapped of files."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) if found else 0


def watch(command: list[str], seconds: int) -> tuple[list[int], str]:
    """Resident kB each second of the capture, and what it printed."""
    sizes = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        end = time.monotonic() + seconds
        while time.monotonic() < end and run.poll() is None:
            time.sleep(1)
            try:
                sizes.append(resident_kb(run.pid))
            except OSError:
                break
        text = run.communicate()[0]
    return [size for size in sizes if size], text


def soak(npuscope: Path, out: Path, seconds: int, add: Callable[..., None]) -> None:
    """System calls at a steady rate, each a record."""
    command = [str(npuscope), "record", "-q", "-o", str(out), "--export", "none", "--task-source", "host",
               "--osrt-threshold", "0", "--", str(out / "hammer"), str(RATE), str(seconds)]
    sizes, text = watch(command, seconds)
    lines = text.splitlines()
    made = int(next(line for line in lines if line.isdigit()))
    session = Path(next(line for line in lines if line.startswith("/")))
    facts = json.loads((session / "session.json").read_text())
    calls, lost = facts["events"]["syscall"], sum(n or 0 for n in facts["drops"]["ring"].values())
    naps = calls + facts["drops"]["ring"]["syscall"] - made
    written_mb = sum(file.stat().st_size for file in session.rglob("*") if file.is_file()) / 1e6
    window = facts["capture"]
    length = (int(window["end_monotonic"]) - int(window["begin_monotonic"])) / 1e9
    rates = f"syscalls={calls / length:.3f},switches={facts['events']['sched'] / length:.3f},time={length:.3f}"
    done = subprocess.run([str(npuscope), "doctor", "--estimate", rates], capture_output=True, check=True, text=True)
    predicted = re.search(r"session +([\d.]+) MB", done.stdout)
    shutil.rmtree(session)
    early = max(sizes[: max(1, len(sizes) // 10)])
    add("records a second", calls / length, "1/s", "asked for", RATE)
    add("memory of the collector at the end", sizes[-1] / 1024, "MB", "the most in the first tenth", early / 1024)
    add("largest memory of the collector", max(sizes) / 1024, "MB", "the most in the first tenth", early / 1024)
    add("records lost and counted", lost, "", "records", calls)
    add("calls neither recorded nor counted", max(0, -naps), "", "calls the program made", made)
    add("other calls of the program", max(0, naps), "", "calls the program made", made)
    if predicted:
        add("session", written_mb, "MB", "doctor --estimate", float(predicted[1]))
