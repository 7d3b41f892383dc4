"""`torch.device`s that mean this machine."""

from __future__ import annotations

from typing import Any

import torch


def cpu_device() -> Any:
    """`torch.device("cpu")`."""
    return torch.device("cpu")


def means_gpu(value: object) -> bool:
    """True for `"cuda"`, `"cuda:1"` and a `torch.device` of that type."""
    if isinstance(value, str):
        return value == "cuda" or value.startswith("cuda:")
    return isinstance(value, torch.device) and value.type == "cuda"
