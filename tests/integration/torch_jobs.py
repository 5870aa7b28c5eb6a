# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of the simulated torch_npu, and what it wrote of its own calls."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple, Optional

from harness import JOB_SOURCES, ROOT, Arg, Case, environment, need, need_npusim

sys.path.insert(0, str(ROOT / "tools" / "truth"))
from truthfile import Launch, Truth, load  # noqa: E402  pylint: disable=wrong-import-position

TORCH = ROOT / "build" / "npusim" / "torch"
JOB = JOB_SOURCES / "torch_train.py"
Line = dict[str, Any]


class Log(NamedTuple):
    """What the extension wrote of one process."""

    ops: list[Line]
    launches: list[Line]
    memory: list[Line]
    collectives: list[Line]


def need_extension() -> None:
    need_npusim()
    need((TORCH / "plain" / "torch_npu" / "lib" / "libtorch_npu.so").exists(),
         "build/npusim/torch: sudo sh tools/setup.sh torch, then make torchsim")


def job_environment(case: Case, package: str = "plain", agent: bool = False, **more: Arg) -> dict[str, str]:
    own: dict[str, Arg] = {"NPUSIM_TRUTH": case.path("truth"), "PYTHONPATH": TORCH / package,
                           "PYTHONDONTWRITEBYTECODE": "1"}
    return environment(sim=True, agent=agent, **(own | more))


def read_log(case: Case, pid: Optional[int] = None) -> Log:
    """The extension's log, of the only process that has one unless PID states which."""
    paths = list(case.path("truth").glob(f"truth.{pid or '*'}.torch.jsonl"))
    assert len(paths) == 1, paths
    lines = [json.loads(line) for line in paths[0].read_text(encoding="ascii").splitlines()]
    assert lines[-1] == {"kind": "end"}, "the log has no end"
    kinds: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        kinds[line["kind"]].append(line)
    return Log(kinds["op"], kinds["launch"], kinds["memory"], kinds["collective"])


def read_truth(case: Case) -> Truth:
    truths = load(case.path("truth"))
    assert len(truths) == 1 and truths[0].complete, "npusim's truth is not complete"
    return truths[0]


def kernels_of(truth: Truth, launches: list[Line]) -> dict[int, list[Launch]]:
    """Operator -> the kernels that npusim saw launched by its thread, during its run."""
    by_tid: dict[int, list[Launch]] = defaultdict(list)
    for launch in sorted(truth.launches.values(), key=lambda launch: launch.begin):
        if launch.aclnn:
            by_tid[launch.tid].append(launch)
    found = {}
    for line in launches:
        lane = by_tid[line["tid"]]
        begins = [launch.begin for launch in lane]
        found[line["id"]] = lane[bisect_left(begins, line["begin"]):bisect_right(begins, line["end"])]
    return found
