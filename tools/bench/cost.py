# SPDX-License-Identifier: BSD-2-Clause
"""What watching is told to cost, beside what it really costs: CPU time of a job with and without it, in turns."""
import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "tests/integration/jobs/probe_classes_lib.c"
SECONDS = float(os.environ.get("BENCH_COST_SECONDS", "2"))  # of computing in a run
KINDS = ("push", "nop5", "sub", "mixed")
RATES = (2000, 10000, 50000)


def build(out):
    """The library whose functions begin with one instruction each."""
    place = out / "cost"
    place.mkdir(parents=True, exist_ok=True)
    library = place / "libacl_rt.so"
    subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-Wl,-soname,libacl_rt.so", LIBRARY, "-o", library], check=True)
    return library


def cpu_ns(text):
    return int(next(line for line in text.splitlines() if line.isdigit()))


def plain(words, env):
    return cpu_ns(subprocess.run(words, env=env, capture_output=True, check=True, text=True).stdout)


def watched(npuscope, out, words, env):
    """(CPU time of the job, ns; "cost" of the session)"""
    done = subprocess.run([npuscope, "record", "-q", "-o", out, "--export", "none", "--", *words], env=env, capture_output=True,
                          check=False, text=True)
    session = Path(next(line for line in done.stdout.splitlines() if line.startswith("/")))
    cost = json.loads((session / "session.json").read_text())["cost"]
    shutil.rmtree(session)
    return cpu_ns(done.stdout), cost


def told_and_real(npuscope, out, words, env, rounds):
    """(percent told, percent really added, ns of a call told and really added, of calls that were seen): medians of turns."""
    told, real, told_ns, real_ns = [], [], [], []
    for _ in range(rounds):
        before = plain(words, env)
        used, cost = watched(npuscope, out, words, env)
        without = (before + plain(words, env)) / 2
        seen = sum(kind["calls"] for kind in cost["probes"].values())
        if cost["source"] != "cached":
            raise RuntimeError(f"costs are {cost['source']}, not measured before")
        told.append(cost["overhead_percent"])
        real.append(100 * (used - without) / used)
        told_ns.append(sum(cost["spent_ns"].values()) / max(1, seen))
        real_ns.append((used - without) / max(1, seen))
    return [statistics.median(figures) for figures in (told, real, told_ns, real_ns)]


def measure(npuscope, out, program, rounds, add, say):
    """Rows for each kind of function and rate of calls."""
    library = build(out)
    env = os.environ | {"LD_LIBRARY_PATH": str(library.parent)}
    subprocess.run([npuscope, "doctor", "--estimate", "calls=1"], capture_output=True, check=True)  # measures, unless it was
    steps = 2_000_000
    step_ns = plain([program, library, "push", "1", str(steps)], env) / steps
    for kind in KINDS:
        for rate in RATES:
            words = [program, library, kind, str(int(rate * SECONDS)), str(int(1e9 / rate / step_ns))]
            told, real, told_ns, real_ns = told_and_real(npuscope, out, words, env, rounds)
            say(f"{kind}, {rate} calls/s: told {told:.2f} %, really {real:.2f} %")
            add(f"{kind}, {rate} calls/s: share told", told, "%", "share really added", real)
            add(f"{kind}, {rate} calls/s: a call told", told_ns, "ns", "really added", real_ns)
