# SPDX-License-Identifier: BSD-2-Clause
"""Time from the start of npuscope until it records, beside perf, on an idle machine and a crowded one."""
import os
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

CROWDS = (0, 1, 3)  # spinning processes for each CPU
CACHE = Path("/run/npuscope/costs")


def spin(n):
    return [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(n)]


def end(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def npuscope_starts(npuscope, out, job, *options):
    """Seconds until it reports that it records."""
    begin = time.monotonic()
    with subprocess.Popen([npuscope, "record", "-p", str(job), "-o", out, "--export", "none", *options],
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if "recording " in line:
                break
        else:
            raise RuntimeError(f"npuscope record ended with {run.wait()}")
        seconds = time.monotonic() - begin
        run.send_signal(signal.SIGINT)
        text, _ = run.communicate()
    for session in text.split():
        shutil.rmtree(session, ignore_errors=True)
    return seconds


def perf_starts(out, job):
    """Seconds until its events count: then it starts its command, which prints the time."""
    begin = time.monotonic()
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-p", str(job), "-o", str(out / "perf.data"),
                           "--", "date", "+%s%N"],
                          capture_output=True, text=True, check=False)
    now, clock = time.time(), time.monotonic()
    ready = [line for line in done.stdout.splitlines() if line.isdigit()]
    if not ready:
        raise RuntimeError(f"perf record: {done.stderr[-300:]}")
    return clock - (now - int(ready[0]) / 1e9) - begin


def starts_without_cache(npuscope, out, job):
    """The first one of a boot: costs are not measured yet."""
    kept = CACHE.read_bytes() if CACHE.exists() else None
    CACHE.unlink(missing_ok=True)
    try:
        return npuscope_starts(npuscope, out, job)
    finally:
        if kept is not None:
            CACHE.write_bytes(kept)


def measure(npuscope, out, rounds, add, progress):
    """Medians of turns."""
    perf = shutil.which("perf")
    if not perf:
        progress("perf: not installed: start times have nothing to be compared with")
    # Measures the costs of probes.
    subprocess.run([npuscope, "doctor", "--estimate", "calls=1"], capture_output=True, check=True)
    job = subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"])
    try:
        for crowd in CROWDS:
            spinning = spin(crowd * os.cpu_count())
            beside = f"beside {len(spinning)} spinning processes" if spinning else "idle"
            runs = {"npuscope record -p": lambda: npuscope_starts(npuscope, out, job.pid),
                    "npuscope record -p, costs not known": lambda: starts_without_cache(npuscope, out, job.pid)}
            if perf:
                runs["perf record -p"] = lambda: perf_starts(out, job.pid)
            times = {name: [] for name in runs}
            for _ in range(rounds):
                for name, run in runs.items():
                    times[name].append(run())
            end(spinning)
            base = "perf record -p" if perf else "npuscope record -p"
            for name, values in times.items():
                add(f"{name}, {beside}", statistics.median(values), "s", f"{base}, {beside}",
                    statistics.median(times[base]))
    finally:
        end([job])
