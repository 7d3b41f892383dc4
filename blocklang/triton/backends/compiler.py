"""`triton.backends.compiler`: the names of targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GPUTarget:
    """What is compiled for.

    Attributes:
        backend: "cpu" here; "cuda" and "hip" for sources that compare.
        arch: the level of the CPU, "x86-64-v3" for instance.
        warp_size: 1: a program is not divided among threads.
    """

    backend: str
    arch: int | str
    warp_size: int


class BaseBackend:
    """What compiles for a target; for sources that name it."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def hash(self) -> str:
        """A name of what code depends on besides its source."""
        return f"{self.target.backend}-{self.target.arch}"

    def parse_options(self, options: Any) -> Any:
        """The options as they are."""
        return options
