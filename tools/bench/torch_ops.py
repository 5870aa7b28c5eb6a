# SPDX-License-Identifier: BSD-2-Clause
"""What recording PyTorch's operators adds to a training step that only its host limits, beside
torch.profiler.

One job runs all the time; captures, and profilers in the job, come and go in turns.
"""

import json
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Optional

PYTHON = "/usr/bin/python3"
BLOCK_SECONDS = 1.0
ONLY_CALLS = ("--host-sys", "none", "--task-source", "host", "--osrt-threshold", "1s")

# Tiny tensors: the operators' own work is next to nothing. Answers each line with the ns of a step.
JOB = """
import sys, time
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))

def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()

def block(seconds):
    begin, steps = time.perf_counter_ns(), 0
    while time.perf_counter_ns() - begin < seconds * 1e9:
        step()
        steps += 1
    return (time.perf_counter_ns() - begin) / steps

block(1)
print("ready", flush=True)
for line in sys.stdin:
    word, seconds = line.split()
    if word == "plain":
        ns = block(float(seconds))
    else:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=word == "stacks"):
            block(0.1)
            ns = block(float(seconds))
    print(ns, flush=True)
"""

# Figure, options of record (None: no capture), what the job does.
TURNS: list[tuple[str, Optional[tuple[str, ...]], str]] = [
    ("no tracer", None, "plain"),
    ("record --ops none", ("--ops", "none"), "plain"),
    ("record --ops all", ("--ops", "all"), "plain"),
    ("record --ops all --py-stacks op", ("--ops", "all", "--py-stacks", "op"), "plain"),
    ("torch.profiler", None, "profile"),
    ("torch.profiler with_stack", None, "stacks"),
]


def step_ns(job: "subprocess.Popen[str]", word: str) -> float:
    assert job.stdin and job.stdout
    job.stdin.write(f"{word} {BLOCK_SECONDS}\n")
    job.stdin.flush()
    return float(job.stdout.readline())


def recorded(npuscope: Path, out: Path, job: "subprocess.Popen[str]", options: tuple[str, ...]) -> tuple[float, Path]:
    """ns of a step while it is recorded, and the session."""
    with subprocess.Popen([npuscope, "record", "-p", str(job.pid), "-o", out, "--export", "none", *ONLY_CALLS,
                           *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr and tracer.stdout
        for line in tracer.stderr:
            if "Ctrl-C ends" in line:
                break
        found = step_ns(job, "plain")
        tracer.send_signal(signal.SIGINT)
        tracer.stderr.read()
        session = Path(tracer.stdout.read().split()[0])
        if tracer.wait() not in (0, 3):
            raise RuntimeError(f"npuscope record {' '.join(options)} failed")
    return found, session


def traps_of_operator(session: Path) -> float:
    """Traps of PyTorch's probes for each operator: an entry, an end; entry and return where a number is
    taken."""
    hits = {}
    for p in json.loads((session / "session.json").read_text())["probes"]:
        if p["library"].rsplit("/", 1)[-1].startswith("libtorch_cpu.so"):
            hits[p["symbol"], p.get("operator"), p["how"]] = p["hits"]
    traps = sum(n * (2 if how == "call" else 1) for (_s, _o, how), n in hits.items())
    return traps / sum(n for (s, _o, how), n in hits.items() if s == "at::_ops::*::call" and how == "entry")


def torch_ops(npuscope: Path, out: Path, rounds: int, add: Callable[..., Any], progress: Callable[..., Any]) -> None:
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        progress(f"no PyTorch for {PYTHON}: apt-get install python3-torch: left out")
        return
    script = out / "torch_job.py"
    script.write_text(JOB)
    found: dict[str, list[float]] = {name: [] for name, _options, _word in TURNS}
    traps = 0.0
    with subprocess.Popen([PYTHON, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdin and job.stdout
        job.stdout.readline()
        for _ in range(rounds):
            for name, options, word in TURNS:
                if options is None:
                    found[name].append(step_ns(job, word))
                    continue
                ns, session = recorded(npuscope, out, job, options)
                found[name].append(ns)
                if options == ("--ops", "all"):
                    traps = traps_of_operator(session)
        job.stdin.close()
    base = TURNS[0][0]
    for name, values in found.items():
        add(f"training step, {name}", statistics.median(values) / 1000, "us", f"training step, {base}",
            statistics.median(found[base]) / 1000)
    add("traps of an operator", traps, "", "an entry and an end", 2)


if __name__ == "__main__":
    torch_ops(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), print, print)
