"""What concerns PyTorch itself. Nothing here is imported unless PyTorch is in use.

    operators  `op`: kernels as operators of PyTorch, with gradients, for `torch.compile` and `torch.export`
    device     `torch.device`s that mean this machine
    mapping    `cuda` means the CPU, for scripts that ask for a GPU (`blocklang run --device-map cuda=cpu`)
    fake_cuda  the functions of `torch.cuda` for a device that is the CPU

Tensors as arguments of kernels need none of this: see `blocklang.runtime.arrays`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.torch.operators import Operator, op

__all__ = ["Operator", "op"]

__getattr__ = on_demand(__name__, dict.fromkeys(__all__, "blocklang.torch.operators"))
