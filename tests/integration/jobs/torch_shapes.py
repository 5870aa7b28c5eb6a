#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Operators of real PyTorch with arguments of all kinds; at the end under torch.profiler, the witness.

Prints "ready PID" and waits for a line; N rounds in each thread; "done" and waits; one thread's rounds for
the profiler, of which it prints the operators as JSON: name -> [[sizes of each argument, type of each], ...]
of its calls in order. Arguments: N, threads.
"""

import json
import os
import sys
import threading
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

ROUNDS, THREADS = int(sys.argv[1]), int(sys.argv[2])
TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64, torch.complex64, torch.complex128, torch.bool]


class Worker:
    def __init__(self) -> None:
        nn = torch.nn
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 5, 2),
                                 nn.Flatten(), nn.Linear(5 * 3 * 3, 7), nn.LayerNorm(7))
        self.lstm = nn.LSTM(3, 4, num_layers=2)
        self.embedding = nn.Embedding(10, 6)
        self.round()

    def round(self) -> None:
        loss = torch.nn.functional.cross_entropy(self.net(torch.ones(2, 3, 6, 6)), torch.tensor([1, 2]))
        loss.backward()
        self.lstm(torch.ones(3, 2, 3))[0].sum().backward()
        self.embedding(torch.tensor([[1, 2, 3], [4, 5, 6]])).mean(dim=(0, 1), keepdim=True)
        for size in ((), (0,), (3, 0, 2), (2, 3, 1, 2, 1, 3), (1, 2, 1, 2, 1, 2, 1, 3)):
            for dtype in TYPES:
                torch.zeros(size, dtype=dtype).fill_(1)
            x = torch.ones(size)
            x.add_(x, alpha=2).clamp_(min=0)
            torch.stack([x, x + 1])
        a, b = torch.ones(4, 5), torch.ones(5, 4)
        torch.addmm(a, a @ b, a, out=torch.empty(4, 5))
        a[torch.tensor([1, 2]), 1:3].sum()
        for numbers in ({"nan": 1.0}, {"posinf": 2.0}, {"neginf": 3.0}, {}):
            torch.nan_to_num(a, **numbers)
        torch.quantile(a, torch.tensor([0.1, 0.9]), dim=1)
        torch.nn.functional.interpolate(torch.ones(1, 2, 4, 4), scale_factor=2.0, mode="bilinear")
        torch.nn.functional.gelu(b.t().contiguous()).to("cpu", torch.float64).sum(dim=1)
        try:
            torch.nn.functional.linear(a, torch.ones(2, 2))
        except RuntimeError:
            pass
        torch.zeros([1] * 9).neg_()  # more dimensions than are recorded


def work(worker: Worker) -> None:
    for _ in range(ROUNDS):
        worker.round()


def watched(worker: Worker) -> "dict[str, list[Any]]":
    """What the profiler saw of each operator. It can lose an event on a busy machine, so the longest list of
    three is right."""
    best: "dict[str, list[Any]]" = {}
    for _ in range(3):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            work(worker)
        found: "dict[str, list[Any]]" = {}
        for event in sorted(prof.profiler.kineto_results.events(), key=lambda e: e.start_us()):
            if event.name().startswith("aten::"):
                found.setdefault(event.name(), []).append([event.shapes(), event.dtypes()])
        for name, calls in found.items():
            if len(calls) > len(best.get(name, [])):
                best[name] = calls
    return best


def main() -> None:
    torch.set_num_threads(1)
    workers = [Worker() for _ in range(THREADS)]
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    threads = [threading.Thread(target=work, args=(w,)) for w in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done", flush=True)
    sys.stdin.readline()
    print(json.dumps(watched(workers[0])), flush=True)


if __name__ == "__main__":
    main()
