"""What concerns PyTorch itself. Nothing here is imported unless PyTorch is in use.

    device     `torch.device`s that mean this machine
    mapping    `cuda` means the CPU, for scripts that ask for a GPU (`blocklang run --device-map cuda=cpu`)
    fake_cuda  the functions of `torch.cuda` for a device that is the CPU

Tensors as arguments of kernels need none of this: see `blocklang.runtime.arrays`.
"""

from __future__ import annotations
