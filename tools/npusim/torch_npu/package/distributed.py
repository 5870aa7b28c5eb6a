# SPDX-License-Identifier: BSD-2-Clause
"""Collectives: HCCL's tasks on the simulated devices, the arithmetic by torch.distributed's gloo."""

import torch
import torch.distributed as dist


def init_process_group(rank, world, device, store):
    """STORE: a file, to be made by the ranks, where they meet."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    info = torch.ops.npu.hccl_root_info() if rank == 0 else torch.zeros(4108, dtype=torch.uint8)
    dist.broadcast(info, 0)
    torch.ops.npu.hccl_init(info, world, rank, device)


def all_reduce(tensor):
    """The sum over all ranks, in place."""
    torch.ops.npu.hccl_all_reduce(tensor)
    dist.all_reduce(torch.ops.npu.host_view(tensor))


def destroy_process_group():
    dist.destroy_process_group()
