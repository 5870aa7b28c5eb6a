# SPDX-License-Identifier: BSD-2-Clause
"""The cost of watching as npuscope reports it, beside its real cost: one job runs all the time, and
captures of it come and go. Nothing is compared across processes. The whole cost: CPU time of a call
inside captures against that before and after each. The cost of a probed call: against one without a
probe, which the job makes every other 10 ms; that pair is so near in time that both have the machine's
noise.
"""
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "tests/integration/jobs/probe_classes_lib.c"
PAIRS = int(os.environ.get("BENCH_COST_PAIRS", "7"))  # of windows with a capture and without one
KINDS = os.environ.get("BENCH_COST_KINDS", "push,nop5,sub,mixed").split(",")
RATES = [int(rate) for rate in os.environ.get("BENCH_COST_RATES", "2000,10000,50000").split(",")]
WINDOW = 1.0  # seconds
EDGE_NS = 100_000_000  # of a window at both ends, where probes come and go
ASLEEP_STEPS = 4000  # of computing before each call of a job that sleeps in between
SAMPLE = struct.Struct("=5Q")  # struct sample of alternate.h


@dataclass
class Capture:
    reported_percent: float
    reported_ns: float  # of a probed call, without what else is watched
    begin: int
    end: int


def build(out):
    """The library whose functions begin with one instruction each."""
    folder = out / "cost"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libacl_rt.so"
    subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-Wl,-soname,libacl_rt.so", LIBRARY, "-o", library], check=True)
    return library


class Job:
    """A program of tools/bench/alternate.h, with its samples in memory: their file is its last argument."""

    def __init__(self, words, libraries):
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.samples = self.folder / "samples"
        self.process = subprocess.Popen([*map(str, words), self.samples], stdin=subprocess.PIPE,
                                        env=os.environ | {"LD_LIBRARY_PATH": str(libraries)})
        time.sleep(0.5)

    def end(self):
        """(CLOCK_MONOTONIC ns, CPU time ns, calls, those of them that can be probed, near_ns) every 10 ms."""
        self.process.stdin.close()
        status = self.process.wait()
        found = list(SAMPLE.iter_unpack(self.samples.read_bytes()))
        shutil.rmtree(self.folder)
        if status:
            raise RuntimeError(f"the job ended with status {status}")
        return [sample for sample in found if sample[0]]


def calls(program, library, kind, rate, steps):
    """tools/bench/calls.c"""
    return Job([program, library, kind, rate, steps], library.parent)


def capture(npuscope, job, options):
    """A capture of the job: what it reported, and its session.json."""
    done = subprocess.run([npuscope, "record", "-q", "-p", str(job.process.pid), "-d", f"{WINDOW}s", "-o", job.folder,
                           "--export", "none", *options], capture_output=True, check=False, text=True)
    paths = [line for line in done.stdout.splitlines() if line.startswith("/")]
    if not paths:
        raise RuntimeError(f"npuscope record: {done.stderr}")
    session = json.loads((Path(paths[0]) / "session.json").read_text())
    shutil.rmtree(paths[0])
    cost = session["cost"]
    if cost["source"] != "cached":
        raise RuntimeError(f"costs are {cost['source']}, not measured before")
    hits = sum(kind["calls"] + kind["marks"] for kind in cost["probes"].values())
    return Capture(cost["overhead_percent"], (cost["spent_ns"]["calls"] + cost["spent_ns"]["marks"]) / max(1, hits),
                   int(session["capture"]["begin_monotonic"]), int(session["capture"]["end_monotonic"])), session


def window(samples, begin, end):
    inside = [sample for sample in samples if begin + EDGE_NS <= sample[0] <= end - EDGE_NS]
    if len(inside) < 2 or inside[0][2] == inside[-1][2]:
        raise RuntimeError("the job did nothing in a window")
    return inside


def call_ns(inside):
    """CPU time of a call, the computing before it included."""
    return (inside[-1][1] - inside[0][1]) / (inside[-1][2] - inside[0][2])


def added_by_probes(inside, figure):
    """The figure of 10 ms with probed calls, less that of the 10 ms before without; pairs do not overlap."""
    segments = [(figure([a, b]), b[3] > a[3]) for a, b in zip(inside, inside[1:])]
    return [now - before for (before, plain), (now, probed) in zip(segments, segments[1:]) if probed and not plain]


def near_ns(inside):
    """A call and the little that is computed next, if nothing interrupts them."""
    return inside[-1][4]


def interval(figures):
    """Bootstrap interval of the median, 95 %."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(figures, k=len(figures))) for _ in range(1000))
    return medians[25], medians[974]


@dataclass
class Result:
    reported_percent: float
    percent: float
    percent_range: tuple
    reported_ns: float
    ns: float
    ns_range: tuple
    near: float
    near_range: tuple


def reported_and_real(npuscope, job, options=()):
    """Medians over the pairs. The reported cost is the median of what captures reported."""
    pauses, captures = [], []
    for turn in range(PAIRS + 1):
        begin = time.monotonic_ns()
        time.sleep(WINDOW)
        pauses.append((begin, time.monotonic_ns()))
        if turn < PAIRS:
            captures.append(capture(npuscope, job, options)[0])
    samples = job.end()
    without = [call_ns(window(samples, *pause)) for pause in pauses]
    added, near, share = [], [], []
    for before, after, c in zip(without, without[1:], captures):
        inside = window(samples, c.begin, c.end)
        # Not against the mean of both: noise that only ever adds makes that larger than the median.
        share += [100 * (1 - pause / call_ns(inside)) for pause in (before, after)]
        added += added_by_probes(inside, call_ns)
        near += added_by_probes(inside, near_ns)
    return Result(statistics.median(c.reported_percent for c in captures), statistics.median(share), interval(share),
                  statistics.median(c.reported_ns for c in captures), statistics.median(added), interval(added),
                  statistics.median(near), interval(near))


def step_ns(program, library):
    """How long a step of computing takes."""
    steps = 10000
    job = calls(program, library, "push", 0, steps)
    time.sleep(1)
    samples = job.end()
    return (samples[-1][1] - samples[0][1]) / (samples[-1][2] - samples[0][2]) / steps


def measure(npuscope, out, program, add, progress):
    """Rows for each kind of function and rate of calls: of a job that computes, and of one that sleeps."""
    library = build(out)
    # Measures the costs of probes, unless that was done before.
    subprocess.run([npuscope, "doctor", "--estimate", "calls=1"], capture_output=True, check=True)
    step = step_ns(program, library)
    jobs = [(f"{kind}, {rate} calls/s", kind, 0, int(1e9 / rate / step), ()) for kind in KINDS for rate in RATES]
    jobs += [(f"push, {rate} calls/s, asleep in between", "push", rate, ASLEEP_STEPS, ()) for rate in RATES[:2]]
    for name, kind, rate, steps, options in jobs:
        r = reported_and_real(npuscope, calls(program, library, kind, rate, steps), options)
        progress(f"{name}: told {r.reported_percent:.2f} %, really {r.percent:.2f} %")
        if r.percent_range[0] > 0:  # else it is less than the noise
            add(f"{name}: share told", r.reported_percent, "%",
                f"measured (95 %: {r.percent_range[0]:.3g} to {r.percent_range[1]:.3g})", r.percent)
        add(f"{name}: a probed call told", r.reported_ns, "ns",
            f"measured (95 %: {r.ns_range[0]:.0f} to {r.ns_range[1]:.0f})", r.ns)
        if kind != "mixed":  # the median of calls that cost differently is none of theirs
            add(f"{name}: the same", r.reported_ns, "ns",
                f"measured near it (95 %: {r.near_range[0]:.0f} to {r.near_range[1]:.0f})", r.near)
