#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Figures for docs/benchmarks.md: every one is a ratio of two commands of this run.

Writes build/bench/results.csv (figure,value,unit,baseline,baseline_value,ratio) and the sections of
docs/benchmarks.md. Arguments choose sections: launches, job, start, cost, attach, torch, osrt, device,
events, ingest, driver, soak, sessions, raw. Tools that are not installed are left out, which a line reports.
"""
import csv
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import analyzer
import attach
import cost
import device
import driver
import host
import ingest
import launches
import soak
import start
import torch_ops

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build/bench"
SIM = ROOT / "build/npusim/Ascend"
NPUSCOPE = ROOT / "build/npuscope"
DEVICE_SECONDS = int(os.environ.get("BENCH_DEVICE_SECONDS", "20"))
SOAK_SECONDS = int(os.environ.get("BENCH_SOAK_SECONDS", "600"))
STEPS = int(os.environ.get("BENCH_STEPS", "60"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
TASKS = [int(float(t)) for t in os.environ.get("BENCH_TASKS", "1e4,1e5,1e6").split(",")]
RAW_TASKS = [int(float(t)) for t in os.environ.get("BENCH_RAW_TASKS", "1e4,1e5,1e6,1e7").split(",")]

rows: list[tuple] = []


def progress(*words):
    print(*words, file=sys.stderr, flush=True)


def add(figure, value, unit, baseline, baseline_value):
    ratio = value / baseline_value if baseline_value else float("nan")
    rows.append((figure, f"{value:.6g}", unit, baseline, f"{baseline_value:.6g}", f"{ratio:.4g}"))
    progress(f"{figure:44} {value:12.6g} {unit:10} {ratio:10.4g} x {baseline}")


def sim_env():
    """The environment that the simulated installation's set_env.sh makes."""
    text = subprocess.run(["bash", "-c", f". {SIM}/cann/set_env.sh && env -0"], capture_output=True,
                          check=True).stdout
    return dict(v.split("=", 1) for v in text.decode().split("\0") if "=" in v)


def job(steps, rate=50000):
    return [str(SIM / "bin/npusim-train"), "--ranks", "1", "--rate", str(rate), "--steps", str(steps), "--quiet"]


# Runs its arguments and leaves the nanoseconds they took in $STAMP.
TIMED = 'b=$(date +%s%N); "$@"; s=$?; e=$(date +%s%N); echo $((e-b)) > "$STAMP"; exit $s'


def job_seconds(wrapper, env, rate=50000, steps=STEPS):
    """Seconds that the job itself took under a wrapper: start-up and analysis of the tracer left out."""
    stamp = OUT / "stamp"
    words = job(steps, rate)
    if wrapper and wrapper[0] == "bpftrace":  # it wants one word
        path = OUT / "job.sh"
        path.write_text(f"#!/bin/bash\nset -- {shlex.join(words)}\n{TIMED}\n")
        path.chmod(0o755)
        command = wrapper + ["/bin/bash " + str(path)]
    elif wrapper and wrapper[0] == "uftrace":
        # It does not survive the end of a shell: its own start and end are timed too.
        command = ["bash", "-c", TIMED, "job"] + wrapper + words
    else:
        command = wrapper + ["bash", "-c", TIMED, "job"] + words
    done = subprocess.run(command, env=env | {"STAMP": str(stamp)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=600)
    if done.returncode not in (0, 3) or not stamp.exists():
        raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr.decode()[-500:]}")
    seconds = int(stamp.read_text()) / 1e9
    stamp.unlink()
    return seconds, done.stdout.decode()


def tracers():
    lib = SIM / "cann/latest/lib64"
    hal = next(SIM.rglob("libascend_hal.so"))
    probes = ",".join(f"uprobe:{lib}/libacl_rt.so:{f},uretprobe:{lib}/libacl_rt.so:{f}" for f in (
        "aclrtLaunchKernelWithHostArgs", "aclrtMemcpyAsync", "aclrtSynchronizeStream", "aclrtRecordEvent"))
    bt = f"uprobe:{hal}:halSqTaskSend{{@send=count();}} {probes}{{@calls[probe]=count();}} " \
         "tracepoint:raw_syscalls:sys_enter{@s=count();} tracepoint:raw_syscalls:sys_exit{@e=count();}"
    quiet = ["-q", "-o", str(OUT), "--export", "none"]
    table = [
        ("npuscope record", [str(NPUSCOPE), "record"] + quiet + ["--"]),
        ("npuscope record --osrt-threshold 0", [str(NPUSCOPE), "record", "--osrt-threshold", "0"] + quiet + ["--"]),
        ("npuscope record --task-source host", [str(NPUSCOPE), "record", "--task-source", "host"] + quiet + ["--"]),
        ("npuscope record --host-sys none", [str(NPUSCOPE), "record", "--host-sys", "none"] + quiet + ["--"]),
        ("strace -f -c", ["strace", "-f", "-c", "-o", str(OUT / "strace.txt")]),
        ("perf trace -s", ["perf", "trace", "-s", "-o", str(OUT / "perf.txt"), "--"]),
        ("uftrace record", ["uftrace", "record", "--force", "--no-event", "-d", str(OUT / "uftrace")]),
        ("bpftrace count", ["bpftrace", "-o", str(OUT / "bpftrace.txt"), "-e", bt, "-c"]),
    ]
    for name, wrapper in table:
        if not shutil.which(wrapper[0]):
            progress(f"{name}: not installed, left out")
    return {name: wrapper for name, wrapper in table if shutil.which(wrapper[0])}


def slow_down(env):
    """At rising rates of launches, then under other tracers."""
    record = [str(NPUSCOPE), "record", "-q", "-o", str(OUT), "--export", "none", "--"]
    runs = {}
    for rate in (2000, 10000, 20000, 50000):
        runs[f"job of {rate} launches/s, no tracer"] = lambda rate=rate: job_seconds([], env, rate)[0]
        runs[f"job of {rate} launches/s under npuscope record"] = lambda rate=rate: job_seconds(record, env, rate)[0]
    for name, wrapper in tracers().items():
        if name != "npuscope record":
            runs[f"job of 50000 launches/s under {name}"] = lambda wrapper=wrapper: job_seconds(wrapper, env)[0]
    found = host.medians(runs, ROUNDS, progress)
    for name, seconds in found.items():
        base = re.sub(r"(launches/s).*", r"\1, no tracer", name)
        add(name, seconds, "s", base, found[base])
    cost_of_a_call(env, record)


def cost_of_a_call(env, record):
    """What a probed call costs the job, beside ltrace's: few steps, as ltrace is slow."""
    steps = 5
    plain = min(job_seconds([], env, steps=steps)[0] for _ in range(ROUNDS))
    seconds, text = min(job_seconds(record, env, steps=steps) for _ in range(ROUNDS))
    own = (seconds - plain) / host.probed_calls(Path(next(w for w in text.splitlines() if w.startswith("/")))) * 1e9
    add("added to a call by npuscope record", own, "ns", "the same", own)
    if not shutil.which("ltrace"):
        progress("ltrace: not installed, left out")
        return
    report = OUT / "ltrace.txt"
    seconds, _ = job_seconds(["ltrace", "-f", "-c", "-o", str(report), "-e", "aclrt*+halSqTaskSend"], env, steps=steps)
    calls = host.ltrace_calls(report)
    if calls:
        add("added to a call by ltrace -f -c", (seconds - plain) / calls * 1e9, "ns", "npuscope record", own)


def record_rate(hammer, rate, ring, seconds=3):
    """Events written and lost when a job makes `rate` system calls a second."""
    done = subprocess.run([str(NPUSCOPE), "record", "-q", "-o", str(OUT), "--export", "none", "--task-source", "host",
                           "--osrt-threshold", "0", "--ring-size", ring, "--", str(hammer), str(rate), str(seconds)],
                          capture_output=True, check=False, text=True)
    paths = [p for p in done.stdout.splitlines() if p.startswith("/")]
    session = Path(paths[-1])
    info = json.loads((session / "session.json").read_text())
    shutil.rmtree(session)
    written = info["events"]["syscall"]
    lost = info["drops"]["ring"]["syscall"]
    return written / seconds, lost / max(1, lost + written)


def sweep(hammer, ring):
    """Highest rate without loss, and the rate at which loss begins (None: not reached)."""
    rate, sustained = 100_000, 0.0
    while rate <= 12_800_000:
        got, lost = record_rate(hammer, rate, ring)
        progress(f"  ring {ring}, asked {rate}/s: {got:.0f}/s to disk, {100 * lost:.2f} % lost")
        if lost > 0:
            return sustained, got / (1 - lost)
        if got < 1.05 * sustained:
            break
        sustained = max(sustained, got)
        rate *= 2
    return sustained, None


def event_rate():
    hammer = OUT / "hammer"
    sustained, first_loss = sweep(hammer, "8M")
    add("events to disk without loss", sustained, "1/s", "the same", sustained)
    if first_loss:
        add("events made when loss begins", first_loss, "1/s", "events to disk without loss", sustained)
    else:
        progress("no loss at the highest rate that the job can make here")
    for ring in ("256K", "64K"):
        _, first_loss = sweep(hammer, ring)
        if first_loss:
            add(f"events made when loss begins, rings of {ring}", first_loss, "1/s", "events to disk without loss",
                sustained)
            break
    plain = subprocess.run([str(hammer), "0", "3"], capture_output=True, check=True, text=True).stdout
    done = subprocess.run([str(NPUSCOPE), "record", "-q", "-o", str(OUT), "--export", "none", "--task-source",
                           "host", "--", str(hammer), "0", "3"], capture_output=True, check=False, text=True)
    traced = [line for line in done.stdout.splitlines() if line.isdigit()]
    add("system calls as fast as they go, traced", float(traced[0]) / 3, "1/s", "the same untraced", float(plain) / 3)


def attach_detach():
    """Probes on a running job."""
    base = None
    for probes, came, went in attach.measure(NPUSCOPE, OUT, (1, 1000, 4000, 10000), ROUNDS):
        base = base or (came, went)
        add(f"{probes} probes attached", came, "ms", "1 probe attached", base[0])
        add(f"{probes} probes gone", went, "ms", "1 probe gone", base[1])


def analyze_sessions():
    """Sessions of npuscope itself."""
    generator = OUT / "gen_session"
    base = None
    for tasks in TASKS:
        session = OUT / f"gen_{tasks}"
        shutil.rmtree(session, ignore_errors=True)
        subprocess.run([str(generator), str(session), str(tasks)], check=True, stdout=subprocess.DEVNULL)
        cpu, wall, peak, _ = analyzer.run([str(NPUSCOPE), "analyze", str(session)])
        per_million = cpu * 1e6 / tasks
        base = base or per_million
        add(f"session of {tasks} tasks: CPU for a million", per_million, "s",
            f"session of {TASKS[0]} tasks: CPU for a million", base)
        add(f"session of {tasks} tasks: wall for a million", wall * 1e6 / tasks, "s",
            f"session of {tasks} tasks: CPU for a million", per_million)
        add(f"session of {tasks} tasks: peak memory", peak, "MB", f"{tasks} tasks, 868 raw bytes each",
            tasks * 868 / 1e6)
        shutil.rmtree(session)


def analyze_raw():
    """Raw data of CANN's profiler."""
    results = analyzer.measure(ROOT / "build/tests/gen-cann", NPUSCOPE, OUT, RAW_TASKS, progress)
    base = {}
    for tasks, formats, cpu, wall, peak, temporary, raw, result in results:
        name = f"{tasks} kernels to {formats}"
        per_million = cpu * 1e6 / tasks
        base.setdefault(formats, (per_million, tasks))
        add(f"{name}: CPU for a million", per_million, "s", f"{base[formats][1]} kernels to {formats}",
            base[formats][0])
        add(f"{name}: wall for a million", wall * 1e6 / tasks, "s", "its CPU", per_million)
        add(f"{name}: peak memory", peak, "MB", "its raw data", raw / 1e6)
        add(f"{name}: temporary files", temporary / 1e6, "MB", "its raw data", raw / 1e6)
        add(f"{name}: result", result / 1e6, "MB", "its raw data", raw / 1e6)
    if results:
        analyzer.picture(results, ROOT / "docs/analyze.svg")


TEXTS = {
    "launches": """## Launches of a job that its host limits

Such a job loses the time that its probes take. It never waits: it launches each kernel as an aclnn operator with both
phases, through libraries that do next to nothing, and between two launches it computes over 256 KB
(`tools/bench/launches.c`). It runs all the time, with captures, with bare uprobes, and without; in every other 10 ms
it launches through functions without probes instead, for comparison. CPU time, medians; the range is that of the
median, by bootstrap. Only probes of CANN are recorded (`--host-sys none`). Bare uprobes are the same ones, entries
and returns, with a program that does nothing: the lower limit for any tracer of this kind. A trap costs more in a
virtual machine than on a real processor.""",
    "driver": """## Calls of the NPU's driver

ioctls on a device node with the name of one of the driver's, as fast as possible, and one after every 20 us of
computing, like a job that launches through the kernel; medians of turns. There is no driver: its own time would add
to both values of a ratio, and make the ratios smaller. System calls are not recorded beside them.

Launches through a driver are those of the simulated job through the mock driver (`tools/npusim/kmod`), in an emulated
machine whose clock advances by its instructions, so the unit is instructions. Median of one capture each of 2 s; they
do not contain the higher cost of traps and memory of a real processor.""",
    "job": f"""## The job under tracers

Absolute figures of a virtual machine mean little, since traps and wake-ups are expensive there. The job is the
simulated training job of one rank, {STEPS} steps, median of {ROUNDS} rounds in turns; the time is the job's own. The
tools do not do the same work: strace and perf trace record only system calls, ltrace and uftrace only library calls,
bpftrace counts both and keeps no record.""",
    "start": f"""## Until recording begins

From the start of the program until it records a process with one thread, median of {ROUNDS} rounds in turns; perf
samples by cpu-clock. Costs of probes are measured once per boot, beside the first capture, which does not wait for
that.""",
    "cost": f"""## Accuracy of the reported overhead

A job computes over 256 KB and calls one function at a time, whose first instruction is that of the row; in every
other 10 ms it calls one without a probe instead. It runs all the time, with and without {cost.PAIRS} captures of
{cost.WINDOW:g} s. The share is of the job's CPU time, measured by the cost of a call during each capture and in the
pauses before and after it. A probed call is compared with one without a probe 10 ms before: by the CPU time of
everything between two calls, and, "near it", by the time of the call and some 5 us of computing behind it if nothing
interrupted them. Medians; the range is that of the median, by bootstrap. The job that is asleep in between sleeps
before each call. The cost of tracing its system calls and switches is in the share, not in the call. It wakes to
colder caches than those of the cost measurement, so its calls are reported too low. Shares below the noise are left
out. "told" means reported by npuscope.""",
    "attach": f"""## Attaching and detaching

A job with as many operators as probes, one library, best of {ROUNDS} rounds. "gone" means detached. The time at the
end is that of the kernel: it waits once until no CPU can be in a probe any more.""",
    "osrt": f"""## The operating system under tracers

Fixed work (`tools/bench/workload.c`): 300,000 system calls in a loop, 400,000 turns of four threads that contend for
a mutex, 1.5 GB copied in blocks of 64 KB; median of {host.ROUNDS} rounds in turns, by the program's own clock.
`npuscope record` keeps a record of each long call, sums of the short ones, and every switch; with `--osrt-threshold
0` a record of every call.""",
    "soak": f"""## A long capture

{soak.RATE} system calls a second for {SOAK_SECONDS} s, a record of each, default rings; the collector's memory is
read each second.""",
    "device": """## Sampling devices

One device at the default rates: CPU time of the thread that samples it, and in a row of its own the CPU time of the
process without privileges that calls the driver's libraries. Most of the latter is the simulated device, which
produces the samples.""",
    "events": "## Events to disk",
    "sessions": "## Analysis of npuscope's sessions\n\nText and database.",
    "ingest": """## Task log

CPU time of one core for the device's log of tasks: two records of 64 bytes each, in blocks of 256 KiB as the helper
library delivers them, best of three rounds of a million tasks. The target is a million tasks a second and core.""",
    "raw": """## Analysis of CANN's raw data

Input of `tests/cannraw` with its defaults: 868 raw bytes a kernel. The vendor's parser needed 503 CPU s, 392 s of wall
time and 8.4 GB for timeline, summary and database of a million kernels of such data on a machine of the same size.

![CPU time and memory over size](analyze.svg)""",
}


def kind():
    virtual = Path("/sys/hypervisor").exists() or "hypervisor" in Path("/proc/cpuinfo").read_text(errors="replace")
    return f"{os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release().split('-')[0]}" + \
        (", virtual machine" if virtual else "")


def section(name, table):
    lines = [f"<!-- {name} -->", TEXTS[name], "", f"Measured on {kind()} by `make bench BENCH={name}`.", "",
             "| figure | value | unit | ratio | of |", "|---|---:|---|---:|---|"]
    rows = [f"| {f} | {v} | {u} | {r} | {b} |" for f, v, u, b, _, r in table]
    return "\n".join(lines + rows) + f"\n<!-- end {name} -->\n"


def write_results(measured):
    """Replaces the measured sections of docs/benchmarks.md; the others stay."""
    page = ROOT / "docs/benchmarks.md"
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    kept = dict((m[1], m[0]) for m in re.finditer(r"<!-- (\w+) -->\n.*?<!-- end \1 -->\n", old, re.S))
    kept.update((name, section(name, table)) for name, table in measured.items())
    head = "# Benchmarks\n\nMade by `make bench`; each ratio is of two commands of one run.\n"
    page.write_text("\n".join([head] + [kept[name] for name in TEXTS if name in kept]), encoding="utf-8")
    with open(OUT / "results.csv", "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(("figure", "value", "unit", "baseline", "baseline_value", "ratio"))
        for table in measured.values():
            w.writerows(table)


def main():
    if os.geteuid() != 0:
        progress("npuscope: make bench needs root: probes are loaded into the kernel: run it with sudo")
        return 1
    for old in OUT.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sections = {"launches": lambda: launches.launches(NPUSCOPE, OUT, add, progress),
                "job": lambda: slow_down(sim_env()),
                "start": lambda: start.measure(NPUSCOPE, OUT, ROUNDS, add, progress),
                "cost": lambda: cost.measure(NPUSCOPE, OUT, OUT / "calls", add, progress),
                "attach": attach_detach,
                "torch": lambda: torch_ops.torch_ops(NPUSCOPE, OUT, ROUNDS, add, progress),
                "osrt": lambda: host.operating_system(NPUSCOPE, OUT, add, progress),
                "device": lambda: device.sampling(NPUSCOPE, SIM, OUT, sim_env(), DEVICE_SECONDS, add),
                "driver": lambda: (driver.calls(NPUSCOPE, OUT, add, progress), driver.in_machines(OUT, add, progress)),
                "events": event_rate,
                "ingest": lambda: ingest.ingest(ROOT / "build/bench/ingest", OUT, add),
                "soak": lambda: soak.soak(NPUSCOPE, OUT, SOAK_SECONDS, add),
                "sessions": analyze_sessions, "raw": analyze_raw}
    measured = {}
    for name in sys.argv[1:] or sections:
        rows.clear()
        sections[name]()
        measured[name] = list(rows)
    write_results(measured)
    progress(f"wrote {OUT / 'results.csv'} and docs/benchmarks.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
