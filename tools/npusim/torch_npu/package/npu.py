# SPDX-License-Identifier: BSD-2-Clause
"""As torch_npu.npu: devices and the allocator's own counters."""

import torch

STATS = ("allocated", "reserved", "active", "allocated_peak", "reserved_peak", "allocations", "frees", "segments")


def device(index=0):
    """PyTorch 1.13 cannot rename the device type to npu."""
    return torch.device("privateuseone", index)


def device_count():
    return torch.ops.npu.device_count()


def synchronize(index=0):
    """Wait for the task queue and the stream."""
    torch.ops.npu.synchronize(index)


def set_step(step):
    """The step number of what is logged from here on."""
    torch.ops.npu.set_step(step)


def memory_stats(index=0):
    return dict(zip(STATS, torch.ops.npu.memory_stats(index)))


def memory_allocated(index=0):
    return memory_stats(index)["allocated"]


def memory_reserved(index=0):
    return memory_stats(index)["reserved"]


def empty_cache():
    torch.ops.npu.empty_cache()
