#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Figures for docs/benchmarks.md: every one is a ratio of two commands of this run.

Writes build/bench/results.csv (figure,value,unit,baseline,baseline_value,ratio) and
docs/benchmarks.md from it. Tools that are not installed are left out, with a line that says so.
"""
import csv
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build/bench"
SIM = ROOT / "build/npusim/Ascend"
NPUSCOPE = ROOT / "build/npuscope"
STEPS = int(os.environ.get("BENCH_STEPS", "60"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
TASKS = [int(float(t)) for t in os.environ.get("BENCH_TASKS", "1e4,1e5,1e6").split(",")]

rows: list[tuple] = []


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def add(figure, value, unit, baseline, baseline_value):
    ratio = value / baseline_value if baseline_value else float("nan")
    rows.append((figure, f"{value:.6g}", unit, baseline, f"{baseline_value:.6g}", f"{ratio:.4g}"))
    say(f"{figure:44} {value:12.6g} {unit:10} {ratio:10.4g} x {baseline}")


def sim_env():
    """The environment that the simulated installation's set_env.sh makes."""
    text = subprocess.run(["bash", "-c", f". {SIM}/cann/set_env.sh && env -0"], capture_output=True,
                          check=True).stdout
    return dict(v.split("=", 1) for v in text.decode().split("\0") if "=" in v)


def job(steps, rate=50000):
    return [str(SIM / "bin/npusim-train"), "--ranks", "1", "--rate", str(rate), "--steps", str(steps), "--quiet"]


def job_seconds_inside(wrapper, env, rate=50000, rounds=ROUNDS):
    """Seconds that the job itself took under a wrapper: start-up and analysis of the tracer left out."""
    stamp = OUT / "stamp"
    script = 'b=$(date +%s%N); "$@"; s=$?; e=$(date +%s%N); echo $((e-b)) > ' + str(stamp) + "; exit $s"
    times = []
    for _ in range(rounds):
        command = wrapper + ["bash", "-c", script, "job"] + job(STEPS, rate)
        done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode not in (0, 3) or not stamp.exists():
            raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr.decode()[-500:]}")
        times.append(int(stamp.read_text()) / 1e9)
        stamp.unlink()
    return min(times)


def tracers(env):
    lib = SIM / "cann/latest/lib64"
    hal = next(SIM.rglob("libascend_hal.so"))
    probes = ",".join(f"uprobe:{lib}/libacl_rt.so:{f},uretprobe:{lib}/libacl_rt.so:{f}" for f in (
        "aclrtLaunchKernelWithHostArgs", "aclrtMemcpyAsync", "aclrtSynchronizeStream", "aclrtRecordEvent"))
    bt = f"uprobe:{hal}:halSqTaskSend{{@send=count();}} {probes}{{@calls[probe]=count();}} " \
         "tracepoint:raw_syscalls:sys_enter{@s=count();} tracepoint:raw_syscalls:sys_exit{@e=count();}"
    quiet = ["-q", "-o", str(OUT), "--export", "none"]
    return [
        ("npuscope record", [str(NPUSCOPE), "record"] + quiet + ["--"]),
        ("npuscope record --task-source host", [str(NPUSCOPE), "record", "--task-source", "host"] + quiet + ["--"]),
        ("npuscope record --host-sys none", [str(NPUSCOPE), "record", "--host-sys", "none"] + quiet + ["--"]),
        ("strace -f -c", ["strace", "-f", "-c", "-o", str(OUT / "strace.txt")]),
        ("ltrace -f -c -e aclrt*", ["ltrace", "-f", "-c", "-o", str(OUT / "ltrace.txt"), "-e",
                                    "aclrt*+halSqTaskSend"]),
        ("perf trace -s", ["perf", "trace", "-s", "-o", str(OUT / "perf.txt"), "--"]),
        ("bpftrace count", ["bpftrace", "-o", str(OUT / "bpftrace.txt"), "-e", bt, "-c"]),
    ], env


def slow_down(env):
    plain = job_seconds_inside([], env)
    add("job of 50000 launches/s, no tracer", plain, "s", "the same", plain)
    paced = job_seconds_inside([], env, 2000)
    add("job of 2000 launches/s, no tracer", paced, "s", "the same", paced)
    add("job of 2000 launches/s under npuscope record",
        job_seconds_inside([str(NPUSCOPE), "record", "-q", "-o", str(OUT), "--export", "none", "--"], env, 2000), "s",
        "job of 2000 launches/s, no tracer", paced)
    table, env = tracers(env)
    for name, wrapper in table:
        if not shutil.which(wrapper[0]):
            say(f"{name}: not installed, left out")
            continue
        try:
            if wrapper[0] == "bpftrace":
                script = OUT / "job.sh"
                stamp = OUT / "stamp"
                script.write_text("#!/bin/bash\nb=$(date +%s%N)\n" + " ".join(job(STEPS)) +
                                  f" > /dev/null\necho $(($(date +%s%N)-b)) > {stamp}\n")
                script.chmod(0o755)
                times = []
                for _ in range(ROUNDS):
                    subprocess.run(wrapper + ["/bin/bash " + str(script)], env=env, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, timeout=300, check=True)
                    times.append(int(stamp.read_text()) / 1e9)
                seconds = min(times)
            else:
                seconds = job_seconds_inside(wrapper, env, rounds=1 if wrapper[0] == "ltrace" else ROUNDS)
            add(f"job of 50000 launches/s under {name}", seconds, "s", "job of 50000 launches/s, no tracer", plain)
        except (RuntimeError, subprocess.SubprocessError, FileNotFoundError) as why:
            say(f"{name}: failed, left out: {str(why)[:300]}")


def record_rate(hammer, rate, ring, seconds=3):
    """Events written and lost when a job makes `rate` system calls a second."""
    done = subprocess.run([str(NPUSCOPE), "record", "-q", "-o", str(OUT), "--export", "none", "--task-source", "host",
                           "--ring-size", ring, "--", str(hammer), str(rate), str(seconds)], capture_output=True, check=False, text=True)
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
        say(f"  ring {ring}, asked {rate}/s: {got:.0f}/s to disk, {100 * lost:.2f} % lost")
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
        say("no loss at the highest rate that the job can make here")
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


def peak_and_cpu(command):
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.execv(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise RuntimeError(f"{command}: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def analyzer():
    generator = OUT / "gen_session"
    base = None
    for tasks in TASKS:
        session = OUT / f"gen_{tasks}"
        shutil.rmtree(session, ignore_errors=True)
        subprocess.run([str(generator), str(session), str(tasks)], check=True, stdout=subprocess.DEVNULL)
        begin = time.monotonic()
        cpu, rss = peak_and_cpu([str(NPUSCOPE), "analyze", str(session)])
        wall = time.monotonic() - begin
        per_million = cpu * 1e6 / tasks
        if base is None:
            base = per_million
        add(f"analyze {tasks} tasks: CPU for a million", per_million, "s",
            f"analyze {TASKS[0]} tasks: CPU for a million", base)
        add(f"analyze {tasks} tasks: wall for a million", wall * 1e6 / tasks, "s",
            f"analyze {tasks} tasks: CPU for a million", per_million)
        add(f"analyze {tasks} tasks: peak memory", rss, "MB", f"{tasks} tasks, 868 raw bytes each",
            tasks * 868 / 1e6)
        shutil.rmtree(session)


def write_results():
    with open(OUT / "results.csv", "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(("figure", "value", "unit", "baseline", "baseline_value", "ratio"))
        w.writerows(rows)
    kind = f"{os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release().split('-')[0]}, virtual machine" \
        if Path("/sys/hypervisor").exists() or "hypervisor" in Path("/proc/cpuinfo").read_text(errors="replace") \
        else f"{os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release().split('-')[0]}"
    lines = ["# Benchmarks", "", "Made by `make bench`; each ratio is of two commands of one run, on this kind of machine: "
             + kind + ".", "Absolute figures of a virtual machine say little: traps and wake-ups are dear there. "
             "The job is the simulated", f"training job of one rank, {STEPS} steps, best of {ROUNDS} rounds; "
             "the time is the job's own. The tools do not do the same: strace and perf trace see system calls only, ltrace",
             "library calls only, bpftrace counts both and keeps no record.", "", "| figure | value | unit | ratio | of |", "|---|---:|---|---:|---|"]
    lines += [f"| {f} | {v} | {u} | {r} | {b} |" for f, v, u, b, _, r in rows]
    (ROOT / "docs/benchmarks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    if os.geteuid() != 0:
        say("npuscope: make bench needs root: probes are loaded into the kernel: run it with sudo")
        return 1
    for old in OUT.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    which = sys.argv[1:] or ["job", "events", "analyzer"]
    if "job" in which:
        slow_down(sim_env())
    if "events" in which:
        event_rate()
    if "analyzer" in which:
        analyzer()
    write_results()
    say(f"wrote {OUT / 'results.csv'} and docs/benchmarks.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
