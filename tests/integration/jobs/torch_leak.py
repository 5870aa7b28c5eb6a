#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job of PyTorch on the simulated NPU that keeps more memory with each step.

It prints `loaded PID`, waits for a line, and prints `done` at its end.
"""

import os
import sys

import torch
import torch_npu

STEPS = 12
KEPT = []


def work(weights, device):
    """Memory that the step returns."""
    x = torch.ones(64, 256, device=device)
    for _ in range(3):
        x = torch.relu(x.mm(weights))
    return x


def remember(x):
    KEPT.append(x.mul(2))  # the leak


def main():
    device = torch_npu.npu.device(0)
    print("loaded", os.getpid(), flush=True)
    sys.stdin.readline()
    weights = torch.ones(256, 256, device=device)
    for step in range(STEPS):
        torch_npu.npu.set_step(step)
        x = work(weights, device)
        remember(x)
        x.sum().item()
    torch_npu.npu.synchronize(0)
    print("done", len(KEPT), flush=True)


main()
