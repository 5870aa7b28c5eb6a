#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The simulated torch_npu: results are as on the CPU; its log agrees with npusim and torch.profiler."""

from __future__ import annotations

import csv
import json
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

from harness import DONE, Arg, Case, Running, main, need_root, test, threads_of, wait_until
from torch_jobs import (JOB, TORCH, Log, Truth, job_environment, kernels_of, load, need_extension, read_log,
                        read_truth)

# Operators that are called on the host too, for batches and within the arithmetic of others.
HOST_TOO = {"aten::copy_", "aten::fill_", "aten::zero_"}


def start(case: Case, *options: Arg, package: str = "plain", **more: Arg) -> Running:
    case.path("truth").mkdir(exist_ok=True)
    return case.start(["/usr/bin/python3", JOB, *options], env=job_environment(case, package, **more), cwd=case.dir)


def run_job(case: Case, *options: Arg, package: str = "plain", **more: Arg) -> str:
    """Run the job to its end; what it printed. Only a job on the NPU writes truth files."""
    if "cpu" in options:
        more["NPUSIM_TRUTH"] = ""
    job = start(case, *options, package=package, **more)
    status = job.wait(120)
    assert status == 0, f"the job ended with {status}: {job.err[-2000:]}"
    return job.out


def result_of(out: str) -> str:
    found = re.search(r"^result .*$", out, re.M)
    assert found, f"the job printed no result: {out}"
    return found.group(0)


def expect_agreement(truth: Truth, log: Log) -> None:
    """Each operator launched the kernels of its name, and no kernel is nobody's."""
    kernels = kernels_of(truth, log.launches)
    assert len(log.ops) > 100 and len(log.launches) == len(log.ops) == len(kernels), (len(log.ops), len(kernels))
    for op in log.ops:
        assert op["aclnn"], f"an operator without a kernel: {op}"
        assert kernels[op["id"]], f"{op} launched nothing"
        assert {kernel.aclnn for kernel in kernels[op["id"]]} == {op["aclnn"]}, f"{op}: {kernels[op['id']]}"
    mine = [kernel.ident for each in kernels.values() for kernel in each]
    known = [launch.ident for launch in truth.launches.values() if launch.aclnn]
    assert sorted(mine) == sorted(known), f"{len(mine)} kernels of operators, {len(known)} of the simulator"
    assert len(mine) > len(log.ops), "no operator has several kernels"
    assert {task.launch for task in truth.tasks} >= set(known), "a kernel did not run"
    planned = Counter((op.tid, op.api) for op in truth.ops if op.phase == 1)
    assert planned == Counter((op["tid"], op["aclnn"]) for op in log.ops if not op["cached"]), "first phases"


# ---- results --------------------------------------------------------------------

def expect_same_results(case: Case, *options: Arg) -> None:
    need_extension()
    on_cpu = result_of(run_job(case, "--device", "cpu", *options))
    on_npu = result_of(run_job(case, "--device", "npu", *options))
    assert on_cpu == on_npu, f"CPU: {on_cpu} NPU: {on_npu}"
    losses = re.search(r"losses=(\S*)", on_cpu)
    assert losses and len(set(losses.group(1).split(","))) > 3, f"losses that say nothing: {on_cpu}"


@test
def training_is_as_on_the_cpu(case: Case) -> None:
    expect_same_results(case, "--steps", 10)


@test
def adam_is_as_on_the_cpu(case: Case) -> None:
    expect_same_results(case, "--steps", 6, "--model", "linear", "--optimizer", "adam", "--loss", "mse")


@test
def accumulated_gradients_and_workers(case: Case) -> None:
    expect_same_results(case, "--steps", 5, "--accumulate", 3, "--workers", 2)


@test
def inference_is_as_on_the_cpu(case: Case) -> None:
    expect_same_results(case, "--steps", 12, "--inference")


@test
def more_layers(case: Case) -> None:
    expect_same_results(case, "--steps", 6, "--model", "deep")
    expect_agreement(read_truth(case), read_log(case))


@test
def two_ranks_are_as_on_the_cpu(case: Case) -> None:
    need_extension()
    on_cpu = result_of(run_job(case, "--device", "cpu", "--steps", 5, "--ranks", 2))
    job = start(case, "--steps", 5, "--ranks", 2)
    assert job.wait(120) == 0, job.err
    assert result_of(job.out) == on_cpu
    one = result_of(run_job(case, "--device", "cpu", "--steps", 5))
    assert one != on_cpu, "no rank has the other's gradients"
    pids = [int(pid) for pid in job.wait_for(r"^ready( \d+)*$").group(0).split()[1:]]
    truths = {truth.pid: truth for truth in load(case.path("truth"))}
    for pid in pids:
        log = read_log(case, pid)
        seen = [span for spans in truths[pid].collectives.values() for span in spans]
        assert len(log.collectives) == len(seen) == 5 * 6, "not one for each parameter and step"


# ---- operators and kernels --------------------------------------------------------

@test
def kernels_of_a_queue(case: Case) -> None:
    need_extension()
    run_job(case, "--steps", 10)
    log = read_log(case)
    expect_agreement(read_truth(case), log)
    threads = {line["tid"] for line in log.launches}
    assert len(threads) == 1 and not threads & {op["tid"] for op in log.ops}, "launched outside of the queue's thread"
    assert [line["correlation"] for line in log.launches] == sorted({line["correlation"] for line in log.launches})
    assert len({op["tid"] for op in log.ops}) == 2, "main thread and autograd's"
    assert any(op["cached"] for op in log.ops) and not all(op["cached"] for op in log.ops)


@test
def kernels_without_a_queue(case: Case) -> None:
    need_extension()
    out = run_job(case, "--steps", 10, TASK_QUEUE_ENABLE="0")
    log = read_log(case)
    expect_agreement(read_truth(case), log)
    where = {op["id"]: op["tid"] for op in log.ops}
    assert all(where[line["id"]] == line["tid"] and line["correlation"] == 0 for line in log.launches)
    assert result_of(out) == result_of(run_job(case, "--steps", 10, "--device", "cpu"))


FULL_QUEUE = """
import os, threading, time, torch, torch_npu
ones = torch.zeros(4, device=torch_npu.npu.device())
torch_npu.npu.synchronize()
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
consumer, = [tid for tid in map(int, os.listdir("/proc/self/task"))
             if open(f"/proc/self/task/{tid}/comm").read() == "acl_thread\\n"]
os.sched_setaffinity(consumer, {cpu})
os.sched_setscheduler(consumer, os.SCHED_IDLE, os.sched_param(0))

def wake_when_full():
    asleep = 0
    while asleep < 20:
        time.sleep(0.01)
        state = open(f"/proc/self/task/{os.getpid()}/stat").read().rsplit(")", 1)[1].split()[0]
        asleep = asleep + 1 if state == "S" else 0
    os.sched_setscheduler(consumer, os.SCHED_OTHER, os.sched_param(0))

threading.Thread(target=wake_when_full, daemon=True).start()
for _ in range(20000):
    ones.add_(1)
print(ones.tolist())
"""


@test
def a_full_queue(case: Case) -> None:
    """The consumer gets what CPU time is left, until the ring is full and the producer waits."""
    need_extension()
    case.path("truth").mkdir()
    run = case.run(["/usr/bin/python3", "-c", FULL_QUEUE], env=job_environment(case), seconds=120).expect(DONE)
    assert run.out.strip() == "[20000.0, 20000.0, 20000.0, 20000.0]", run
    log = read_log(case)
    events = sorted([(op["end"], 1) for op in log.ops] + [(line["end"], -1) for line in log.launches])
    queued = most = 0
    for _, change in events:
        queued += change
        most = max(most, queued)
    assert queued == 0 and 4090 <= most <= 4097, f"{most} tasks were in the queue, {queued} are left"


@test
def kernels_of_other_versions(case: Case) -> None:
    """Other functions between operator and queue."""
    need_extension()
    results = set()
    for api in ("V1", "V3", "RUN"):
        case.path("truth").mkdir(exist_ok=True)
        for old in case.path("truth").iterdir():
            old.unlink()
        results.add(result_of(run_job(case, "--steps", 3, NPUSIM_TORCH_API=api)))
        expect_agreement(read_truth(case), read_log(case))
    assert len(results) == 1, results


@test
def the_profiler_counts_the_same_operators(case: Case) -> None:
    """PyTorch's own profiler is the witness for the extension's log."""
    need_extension()
    counts_file = case.path("counts.json")
    run_job(case, "--steps", 8, "--profile", counts_file)
    counts: dict[str, int] = json.loads(counts_file.read_text())
    logged = Counter(op["aten"].split(".")[0] for op in read_log(case).ops if op["step"] >= 0)
    assert len(logged) > 15, logged
    for name, number in logged.items():
        seen = counts.get(name, 0)
        assert seen == number or (name in HOST_TOO and seen >= number), f"{name}: logged {number}, profiled {seen}"


@test
def lines_of_python(case: Case) -> None:
    """The log has the job's line, not PyTorch's, and the step."""
    need_extension()
    run_job(case, "--steps", 4, "--model", "linear")
    source = JOB.read_text().splitlines()
    ops = [op for op in read_log(case).ops if op["step"] >= 0]
    for name, text in (("aten::relu", "torch.relu"), ("aten::addmm", "self.classes(torch.relu(self.hidden(")):
        lines = {op.get("line") for op in ops if op["aten"] == name}
        assert lines and all(line and text in source[line - 1] for line in lines), f"{name}: {lines}"
    backward = [op for op in ops if op["aten"] == "aten::threshold_backward"]
    assert len(backward) == 4 and not any("line" in op for op in backward), backward
    assert Counter(op["step"] for op in backward) == {0: 1, 1: 1, 2: 1, 3: 1}


@test
def threads_are_named(case: Case) -> None:
    need_extension()
    job = start(case, "--steps", 0, "--model", "linear")
    job.wait_for("^ready")
    wait_until(lambda: "acl_thread" in threads_of(job.pid).values(), "the queue's thread")
    steps = case.path("truth") / f"truth.{job.pid}.steps.tsv"
    wait_until(lambda: steps.exists() and steps.read_text().count("\n") > 10, "ten steps")
    job.process.terminate()
    assert job.wait(60) == 0, job.err
    expect_agreement(read_truth(case), read_log(case))


# ---- memory -----------------------------------------------------------------------

@test
def the_allocators_counters(case: Case) -> None:
    """Replayed from its reports by arithmetic of our own; the last ones are what the job read."""
    need_extension()
    out = run_job(case, "--steps", 10, "--batch", 512)
    live: dict[int, int] = {}
    peak = reserved = 0
    for line in read_log(case).memory:
        pointer, size = int(line["ptr"], 16), line["size"]
        if line["what"] == "malloc":
            assert not any(p < pointer + size and pointer < p + n for p, n in live.items()), f"overlap: {line}"
            assert size % 512 == 0
            live[pointer] = size
        elif line["what"] == "free":
            assert live.pop(pointer) == -size, line
        allocated = sum(live.values())
        peak, reserved = max(peak, allocated), max(reserved, line["reserved"])
        assert line["allocated"] == allocated, f"{line}: {allocated} are live"
        assert line["active"] == (allocated - size if line["what"] == "free" else allocated), line
        assert line["active"] <= line["reserved"], line
    stats = json.loads(out.split("memory ", 1)[1].splitlines()[0])
    assert stats["allocated_peak"] == peak and stats["reserved_peak"] == reserved, stats
    assert stats["allocations"] - stats["frees"] > 5 and stats["segments"] > 1, stats


# ---- symbols ----------------------------------------------------------------------

EXPORTED = ("_ZN6at_npu6native9OpCommand8RunOpApiERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
            "St8functionIFivEEb",
            "_ZN6at_npu6native9OpCommand10RunOpApiV2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
            "RKSt8functionIFivEEb",
            "_ZN6at_npu6native9OpCommand10RunOpApiV3ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
            "RKSt8functionIFivEEbPN7c10_npu9NPUStreamE",
            "_ZN6at_npu6native9OpCommand3RunEv",
            "_ZN7c10_npu19NPUCachingAllocator9allocatorE")
HIDDEN = ("_ZN7c10_npu10Repository7EnqueueEPv", "_ZN7c10_npu10Repository7DequeueEv",
          "_ZN7c10_npu18enCurrentNPUStreamEPva",
          "_ZN9torch_npu8profiler29reportMemoryDataToNpuProfilerERKNS0_11MemoryUsageE")


def symbols(path: Path, wanted: int) -> set[str]:
    """Names of the defined symbols of the table of type WANTED."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, number = struct.unpack_from("<HH", data, 0x3a)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(number)]
    names = set()
    for section in sections:
        if section[1] != wanted:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, _, _, index = struct.unpack_from("<IBBH", data, at)
            if index:
                names.add(data[strings + name:data.index(b"\0", strings + name)].decode())
    return names


@test
def exported_and_hidden_symbols(case: Case) -> None:
    need_extension()
    symtab, dynsym = 2, 11
    for package in ("plain", "stripped"):
        library = TORCH / package / "torch_npu" / "lib" / "libtorch_npu.so"
        exported, named = symbols(library, dynsym), symbols(library, symtab)
        assert exported >= set(EXPORTED) and not exported & set(HIDDEN), package
        assert named >= set(HIDDEN) if package == "plain" else not named, package
    stripped = run_job(case, "--steps", 3, package="stripped")
    assert result_of(stripped) == result_of(run_job(case, "--steps", 3))


# ---- under record -----------------------------------------------------------------

@test
def recorded(case: Case) -> None:
    """record shows each kernel with its aclnn name, and does not change the job's result."""
    need_extension()
    need_root()
    options = ("--steps", "12", "--workers", "1")
    alone = result_of(run_job(case, *options, "--device", "cpu"))
    run = case.record("-o", case.path("out"), "--", "/usr/bin/python3", JOB, *options, wait=False,
                      env=job_environment(case), cwd=case.dir)
    result = run.result(120).expect(DONE)
    assert result_of(result.out) == alone
    folder = next(Path(line) for line in result.out.splitlines() if line.endswith("_ascend_pt"))
    with open(folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", newline="", encoding="utf-8") as file:
        names = Counter(row["Name"] for row in csv.DictReader(file))
    truth = read_truth(case)
    known = Counter(f"{launch.aclnn}_{launch.l0}" for launch in truth.launches.values() if launch.aclnn)
    assert sum(known.values()) > 300
    assert Counter({name: number for name, number in names.items() if name.startswith("aclnn")}) == known, \
        f"missing {known - names}, too many {names - known}"
    expect_agreement(truth, read_log(case))


@test
def checkpoints_and_slow_steps(case: Case) -> None:
    need_extension()
    run_job(case, "--steps", 8, "--model", "linear", "--checkpoint-every", 4, "--checkpoint", case.path("model.pt"),
            "--slow-every", 4, "--slow-ms", 80, "--slow-how", "loop")
    code = f"import torch; print(torch.load({str(case.path('model.pt'))!r})['step'])"
    loaded = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "7", loaded
    steps = {step.number: step.end - step.begin for step in read_truth(case).steps}
    assert len(steps) == 8
    slow = {number for number, ns in steps.items() if ns >= 80e6}
    assert slow >= {3, 7}, steps


if __name__ == "__main__":
    sys.exit(main())
