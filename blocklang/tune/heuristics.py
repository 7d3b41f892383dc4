"""`heuristics`: arguments of a kernel that are computed from the others at every launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blocklang.jit import KernelInterface

Values = Mapping[str, Callable[[dict[str, Any]], Any]]


class Heuristics(KernelInterface):
    """A kernel with computed arguments; see `heuristics`.

    Attributes:
        fn: the kernel, or what wraps it.
        arg_names: names of its parameters.
        values: the functions, by the name of the argument that each computes.
    """

    def __init__(self, fn: Any, arg_names: Sequence[str], values: Values) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.values = values
        self.__name__ = getattr(fn, "__name__", "kernel")

    def _complete(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        complete = dict(kwargs)
        named = dict(zip(self.arg_names, args, strict=False))
        for name, compute in self.values.items():
            complete[name] = compute({**named, **complete})
        return complete

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn.run(*args, **self._complete(args, kwargs))

    def written_arrays(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arrays among the arguments of a launch that the kernel stores to, by parameter."""
        arrays: dict[str, Any] = self.fn.written_arrays(*args, **self._complete(args, kwargs))
        return arrays

    def uncompiled(self, *args: Any, **kwargs: Any) -> Any:
        """What a launch with these arguments would have to compile (`JITFunction.uncompiled`)."""
        return self.fn.uncompiled(*args, **self._complete(args, kwargs))


def heuristics(values: Values) -> Callable[[Any], Heuristics]:
    """Compute arguments of a kernel at every launch; used above `@jit`, or above or below `@autotune`.

    Args:
        values: a function of all arguments by name, for each argument that is computed. They are evaluated in
            order, and later ones see what earlier ones gave.

    Example:
        >>> import numpy as np
        >>> import blocklang as bl
        >>> import blocklang.language as tl
        >>> @bl.heuristics({"BLOCK": lambda args: bl.next_power_of_2(args["n"])})
        ... @bl.jit
        ... def fill(x, n, BLOCK: bl.constexpr):
        ...     i = tl.arange(0, BLOCK)
        ...     tl.store(x + i, i, mask=i < n)
        >>> x = np.zeros(5, np.int32)
        >>> _ = fill[(1,)](x, 5)
        >>> x
        array([0, 1, 2, 3, 4], dtype=int32)
    """
    return lambda fn: Heuristics(fn, fn.arg_names, values)
