#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labels of record_function(), in some threads; the second half under torch.profiler, the witness.

Prints "ready PID" and waits for a line; N rounds in each thread; "done" and waits; the same N rounds for the
profiler, in one thread, whose counts of labels it prints as JSON.
Arguments: N, threads.
"""

import json
import os
import re
import sys
import threading
from collections import Counter
from typing import Iterator

import torch
from torch.profiler import ProfilerActivity, profile, record_function

ROUNDS, THREADS = int(sys.argv[1]), int(sys.argv[2])


class Label2(record_function):
    """As PyTorch 2 begins labels: with another function."""

    def __enter__(self) -> "Label2":
        self.handle = torch.ops.profiler._record_function_enter_new(self.name, self.args)
        return self


def fails() -> None:
    with record_function("outer of an exception"):
        with Label2("inner of an exception"):
            torch.zeros(3) + torch.zeros(4)  # pylint: disable=expression-not-assigned


def suspended() -> Iterator[int]:
    with record_function("suspended"):
        yield 1


class Trainer:
    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = torch.nn.Linear(16, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.round(0)

    def round(self, number: int) -> None:
        with record_function(f"round {number % 7}"):
            self.optimizer.zero_grad()
            with Label2("forward.x"):
                loss = self.model(torch.randn(8, 16)).sum()
            loss.backward()
            self.optimizer.step()
            self.labelled()
            try:
                fails()
            except RuntimeError:
                pass
        with record_function('"quoted" \\ and \n <é>', "arguments"), Label2(""), record_function("y" * 3000):
            pass
        crossing = [record_function("first"), Label2("second")]
        for label in crossing:
            label.__enter__()
        for label in crossing:  # not the innermost first
            label.__exit__(None, None, None)
        for _ in suspended():
            with record_function("while it is suspended"):
                pass
        with Label2("nested"):
            self.nested(20)

    def labelled(self) -> None:
        @record_function("of a function")  # one label, which threads must not share
        def function() -> None:
            torch.zeros(1)

        function()

    def nested(self, depth: int) -> None:
        with record_function("deep"):
            if depth:
                self.nested(depth - 1)


def work(trainer: Trainer) -> None:
    for i in range(ROUNDS):
        trainer.round(i)


def run_all(trainers: "list[Trainer]") -> None:
    threads = [threading.Thread(target=work, args=(t,)) for t in trainers[1:]]
    for thread in threads:
        thread.start()
    work(trainers[0])
    for thread in threads:
        thread.join()


def count(trainers: "list[Trainer]") -> "Counter[str]":
    """What the profiler counts. It can lose an event on a busy machine, so the largest count of a name is
    right."""
    best: "Counter[str]" = Counter()
    for _ in range(3):
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            for trainer in trainers:
                work(trainer)
        best |= Counter(e.name for e in prof.events() if
                        not e.name.startswith(("aten::", "autograd::", "torch::")) and
                        not re.search(r"Backward\d+$", e.name))
    return best


def main() -> None:
    torch.set_num_threads(1)
    trainers = [Trainer(i) for i in range(THREADS)]
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    unfinished = record_function("outlasts the capture")
    unfinished.__enter__()
    run_all(trainers)
    print("done", flush=True)
    sys.stdin.readline()
    unfinished.__exit__(None, None, None)
    print(json.dumps(count(trainers)), flush=True)


if __name__ == "__main__":
    main()
