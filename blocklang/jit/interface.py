"""What can be launched on a grid: `kernel[grid](...)`.

`JITFunction` is one, and what wraps one (an autotuner, heuristics, a library's own class) is another: it
holds what it wraps as `fn` and overrides `run`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any


class KernelInterface:
    """Something launched as `kernel[grid](...)`. Subclasses override `run`."""

    fn: Any

    @classmethod
    def __class_getitem__(cls, item: Any) -> types.GenericAlias:
        """`KernelInterface[T]`, as annotations write it."""
        return types.GenericAlias(cls, item)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch on `grid`; with `warmup`, compile only."""
        raise NotImplementedError(f"{type(self).__name__} launches nothing: it has to override run()")

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compile for these arguments without launching. A dtype stands for an aligned array of it."""
        return self.run(*map(MockTensor.wrap_dtype, args), grid=grid, warmup=True, **kwargs)


class MockTensor:
    """Stands for an aligned array of a dtype in `kernel.warmup(MockTensor(torch.float32), ...)`.

    Args:
        dtype: of PyTorch, NumPy or the language.
        shape: its extents, (1,) by default.
    """

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else shape

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A `MockTensor` for a dtype of PyTorch; anything else as it is."""
        is_dtype = type(arg).__name__ == "dtype" and type(arg).__module__ == "torch"
        return MockTensor(arg) if is_dtype else arg

    def stride(self) -> tuple[int, ...]:
        """Strides in elements, of an array whose last axis is contiguous."""
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return tuple(strides)

    @staticmethod
    def data_ptr() -> int:
        """No address; divisible by whatever code is specialised on."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """No extent in bytes is known."""
        return 0
