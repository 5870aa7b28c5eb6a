# SPDX-License-Identifier: BSD-2-Clause
"""The simulated torch_npu: tensors of "privateuseone:N" whose operators npusim launches."""

import atexit
import os

import torch

torch.ops.load_library(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libtorch_npu.so"))

from torch_npu import distributed, npu  # noqa: E402  pylint: disable=wrong-import-position

__all__ = ["distributed", "npu"]

atexit.register(torch.ops.npu.shut_down)
