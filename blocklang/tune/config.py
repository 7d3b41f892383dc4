"""`Config`: one way to launch a kernel, for the autotuner to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")


class Config:
    """Values of a kernel's constants, and of launch options, to try together.

    Args:
        kwargs: values of the kernel's parameters by name.
        num_warps, num_stages, num_ctas, maxnreg, ir_override: launch options.
        pre_hook: called with all arguments by name before each launch with this config.

    Example:
        >>> import blocklang as bl
        >>> print(bl.Config({"BLOCK": 128}, num_warps=8))
        BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], object] | None = None,
        ir_override: str | None = None,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_ctas = num_ctas
        self.num_stages = num_stages
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """The keywords of a launch with this config: those that say something."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return {**self.kwargs, **{n: v for n, v in options.items() if v is not None}}

    def __str__(self) -> str:
        words = [f"{name}: {value}" for name, value in self.kwargs.items()]
        words += [f"{name}: {getattr(self, name)}" for name in _OPTIONS[:4]]
        return ", ".join(words)

    def in_words(self) -> str:
        """The values of the kernel's constants, and the options that are not the usual ones."""
        usual = Config({}).all_kwargs()
        words = [f"{name}={value}" for name, value in self.all_kwargs().items() if usual.get(name) != value]
        return " ".join(words) or "the defaults"

    def __repr__(self) -> str:
        return f"Config({self})"

    def _identity(self) -> tuple[Any, ...]:
        # Two configs that differ in their hook alone are two.
        return (*sorted(self.all_kwargs().items(), key=lambda item: item[0]), self.pre_hook)

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._identity() == other._identity()
