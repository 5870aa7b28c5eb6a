#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Training steps of real PyTorch on the CPU, in some threads; the second half under torch.profiler, the
witness.

Prints "ready PID" and waits for a line; N steps in each thread; "done" and waits; the same N steps for the
profiler, whose counts it prints as JSON. Some operators fail: their exceptions cross operators.
Arguments: N, threads.
"""

import json
import os
import sys
import threading
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

STEPS, THREADS = int(sys.argv[1]), int(sys.argv[2])


class Trainer:
    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.step()

    def step(self) -> None:
        x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()
        for fails in (lambda: torch.zeros(3) + torch.zeros(4), lambda: torch.nn.functional.linear(x, torch.ones(2, 2))):
            try:
                fails()
            except RuntimeError:
                pass


def work(trainer: Trainer) -> None:
    for _ in range(STEPS):
        trainer.step()


def run_all(trainers: "list[Trainer]") -> None:
    threads = [threading.Thread(target=work, args=(t,)) for t in trainers[1:]]
    for thread in threads:
        thread.start()
    work(trainers[0])
    for thread in threads:
        thread.join()
    torch.zeros(1)  # whatever failed last in this thread is over


def count(trainers: "list[Trainer]") -> "Counter[str]":
    """What the profiler counts, in one thread, the only one that it sees. It can lose an event on a busy
    machine: what it counts twice is right."""
    seen: "list[Counter[str]]" = []
    while len(seen) < 9:
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            for trainer in trainers:
                work(trainer)
            torch.zeros(1)
        seen.append(Counter(e.name for e in prof.events() if e.name.startswith(("aten::", "autograd::engine::eval"))))
        if seen[-1] in seen[:-1]:
            return seen[-1]
    sys.exit("the profiler counted something else each time")


def main() -> None:
    torch.set_num_threads(1)
    trainers = [Trainer(i) for i in range(THREADS)]
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    run_all(trainers)
    print("done", flush=True)
    sys.stdin.readline()
    print(json.dumps(count(trainers)), flush=True)


if __name__ == "__main__":
    main()
