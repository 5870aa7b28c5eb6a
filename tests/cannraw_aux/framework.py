#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make what the Ascend PyTorch Profiler leaves behind before its analysis, and a truth file beside it."""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import sys
import time
from fractions import Fraction
from pathlib import Path

from fw_clock import UNIX_NS, Clock
from fw_extras import collections, frames, memory
from fw_files import Folder
from fw_job import (FIRST_SEQUENCE, LAYERS, Builder, Launch, direct_slots, extent, invent, jobs_of, queue_slots,
                    tensor_text)
from fw_truth import FrameworkTruth, lines

RANK, DEVICE = 0, 0
OPS_PER_TEN_SLOTS = 26
QUEUE_NEAREST, QUEUE_PAD = 600, 400
DIRECT_NEAREST, DIRECT_PAD = 1_500, 500
LEVELS = {"node": "launch", "10000": "launch", "acl": "call", "20000": "call"}
ENVIRONMENT = ("ASCEND_GLOBAL_LOG_LEVEL", "HCCL_RDMA_TC", "HCCL_RDMA_SL", "ACLNN_CACHE_LIMIT", "HOST_CACHE_CAPACITY",
               "ASCEND_ENHANCE_ENABLE", "PYTORCH_NPU_ALLOC_CONF", "ASCEND_LAUNCH_BLOCKING", "HCCL_ALGO")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("out", type=Path, help="where to make the ..._ascend_pt directory")
    parser.add_argument("--ops", type=int, default=300, help="about so many operators; --prof decides otherwise")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=2, help="2: backward has a thread of its own")
    parser.add_argument("--task-queue", action="store_true", help="operators hand their launches to another thread")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help="allocator events")
    parser.add_argument("--python-stacks", action="store_true", help="Python and C calls, module parameters")
    parser.add_argument("--gc", action="store_true", help="garbage collections")
    parser.add_argument("--mstx", action="store_true", help="user ranges and marks")
    parser.add_argument("--nasty", action="store_true", help="odd names, unknown records and fields, cut files")
    parser.add_argument("--prof", type=Path, help="a PROF_* directory to put under the result")
    parser.add_argument("--prof-truth", type=Path, help="truth file of that directory; its NODE spans are the launches")
    parser.add_argument("--truth", type=Path, help="where to write what a reader must find")
    parser.add_argument("--syscnt", choices=("on", "off"), default="on", help="times are counter values or ns")
    parser.add_argument("--mhz", type=Fraction, default=Fraction(100), help="the counter, without --prof")
    parser.add_argument("--worker", default="node-17")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if (chosen.prof is None) != (chosen.prof_truth is None):
        parser.error("--prof and --prof-truth belong together")
    if chosen.ops < 1 or chosen.steps < 1 or chosen.mhz <= 0:
        parser.error("--ops, --steps and --mhz must be positive")
    if chosen.prof and not any(chosen.prof.glob("device_*")):
        parser.error(f"{chosen.prof}: not a PROF_* directory with a device")
    return chosen


def captured(path: Path) -> dict[str, list[Launch]]:
    """The NODE spans of a truth file, which launch kernels, and the ACL spans around and between them."""
    out: dict[str, list[Launch]] = {"launch": [], "call": []}
    for item in lines(str(path)):
        kind = LEVELS.get(str(item.get("level")).lower()) if item.get("k") == "api" else None
        if kind:
            out[kind].append((item["tid"], item["begin_ns"], item["end_ns"]))
    if not out["launch"]:
        raise SystemExit(f"framework: {path}: no NODE spans")
    return out


def link_tree(source: Path, target: Path) -> None:
    """The same files under another name, without a second copy where the file system can do that."""
    def address(one: str, two: str) -> str:
        try:
            os.link(one, two)
        except OSError:
            shutil.copy2(one, two)
        return two
    shutil.copytree(source, target, copy_function=address)


def profiler_info(args: argparse.Namespace, clock: Clock, end: int) -> dict:
    schedule = {"wait": 0, "active": args.steps, "warmup": 1, "repeat": 1, "skip_first": 2}
    common = {"activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "schedule": schedule,
              "record_shapes": True, "profile_memory": args.memory, "with_stack": args.python_stacks,
              "with_flops": True, "with_modules": args.python_stacks}
    experimental = {"_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION", "_l2_cache": False,
                    "_msprof_tx": args.mstx, "_mstx": args.mstx, "_data_simplification": True, "record_op_args": False,
                    "_export_type": ["text", "db"], "_host_sys": [], "_op_attr": False,
                    "_gc_detect_threshold": 1.0 if args.gc else None}
    if args.prof is None:
        common["activities"] = ["ProfilerActivity.CPU"]
    return {"config": {"common_config": common, "experimental_config": experimental},
            "start_info": clock.start_info(), "end_info": clock.end_info(end), "torch_npu_version": "2.7.1",
            "cann_version": "9.1.0", "rank_id": RANK}


def process(clock: Clock) -> int:
    text = str(clock.clocks.host_info.get("pid", "")) if clock.clocks else ""
    return int(text) if text.isdigit() else 3_096_504


def parameters() -> list[tuple[int, str, str]]:
    return [(0x7F00_0000_0000 + number * 4096, f"weight;{tensor_text(0x1242_0000_0000 + number * 4096)}",
             "" if number else f"exp_avg;{tensor_text(0x1243_0000_0000)}") for number in range(len(LAYERS))]


def main() -> int:
    args = options()
    rng = random.Random(f"{args.seed}:framework")
    clock = Clock(args.syscnt == "on", args.prof, args.mhz)
    pid = process(clock)
    if args.prof:
        spans = captured(args.prof_truth)
    else:
        tids = (pid, pid + 8571 if args.threads == 2 else pid, pid + 3198)
        count = max(args.steps, args.ops * 10 // OPS_PER_TEN_SLOTS)
        spans = {"launch": invent(count, UNIX_NS + 700_000_000, args.task_queue, args.steps, tids, rng)}
    together = [span for part in spans.values() for span in part]
    seen = {tid for tid, _, _ in together}
    if args.task_queue:
        jobs = jobs_of(together, QUEUE_NEAREST, QUEUE_PAD)
        main_thread = next(tid for tid in range(pid, pid + len(seen) + 1) if tid not in seen)
        backward = main_thread if args.threads == 1 else next(
            tid for tid in range(pid + 8571, pid + 8572 + len(seen)) if tid not in seen)
        slots = queue_slots(jobs, main_thread)
    else:
        jobs = jobs_of(together, DIRECT_NEAREST, DIRECT_PAD)
        main_thread = min(seen, key=lambda tid: next(job.begin for job in jobs if job.tid == tid))
        backward = main_thread
        slots = direct_slots(jobs)
    loop = Builder(slots, main_thread, backward, args.task_queue, args.steps, 8000 + FIRST_SEQUENCE, args.nasty).build()
    if not args.mstx:
        loop.ops = [op for op in loop.ops if not op.mstx]
    events = memory(loop, slots, rng) if args.memory else []
    begin, end = extent(loop)
    calls = frames(loop, begin - 20_000, args.nasty) if args.python_stacks else []
    garbage = collections(loop, rng) if args.gc else []
    params = parameters() if args.python_stacks else []

    stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(begin // 10**9)) + f"{begin // 10**6 % 1000:03}"
    result = args.out / f"{args.worker}_{pid}_{stamp}_ascend_pt"
    folder = Folder(result / "FRAMEWORK", pid, clock, args.nasty)
    folder.op_range(loop.ops)
    folder.op_mark(loop.marks)
    folder.memory_usage(events, DEVICE)
    folder.python(calls)
    folder.gc_record(garbage)
    folder.params(params)
    info = profiler_info(args, clock, end + 1_000_000)
    (result / f"profiler_info_{RANK}.json").write_text(json.dumps(info, indent=4), encoding="utf-8")
    metadata = {"ENV_VARIABLES": dict.fromkeys(ENVIRONMENT, "")}
    (result / "profiler_metadata.json").write_text(json.dumps(metadata, indent=4), encoding="utf-8")
    if args.prof:
        link_tree(args.prof, result / args.prof.name)
    with open(args.truth, "w", encoding="utf-8") if args.truth else io.StringIO() as file:
        truth = FrameworkTruth(file, clock, loop, pid)
        truth.ops()
        truth.queue()
        for kind, part in spans.items():
            truth.inside(kind, part)
        truth.memory(events, DEVICE)
        truth.python(calls)
        truth.collections(garbage)
        truth.params(params)
        truth.finish()
    print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
