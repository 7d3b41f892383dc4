"""What to write instead: names of NumPy, PyTorch and Python's `math` that newcomers write in kernels."""

from __future__ import annotations

import types
from typing import Any

import blocklang.language as language

# Methods and attributes of arrays that a block does not have.
_ATTRIBUTES = {
    "all": "write `tl.min(x.to(tl.int32), axis=0) != 0`",
    "any": "write `tl.max(x.to(tl.int32), axis=0) != 0`",
    "astype": "write `x.to(tl.float32)`",
    "bfloat16": "write `x.to(tl.bfloat16)`",
    "bool": "write `x != 0`",
    "clip": "write `tl.clamp(x, low, high)`",
    "contiguous": "leave it out: a block has no strides",
    "copy": "leave it out: nothing changes a value",
    "double": "write `x.to(tl.float64)`",
    "fill": "write `tl.full(shape, value, dtype)`",
    "flatten": "write `tl.ravel(x)`",
    "float": "write `x.to(tl.float32)`",
    "half": "write `x.to(tl.float16)`",
    "int": "write `x.to(tl.int32)`",
    "long": "write `x.to(tl.int64)`",
    "mean": "write `tl.sum(x, axis=0) / x.shape[0]`",
    "ndim": "write `len(x.shape)`",
    "numpy": "store the block to an array",
    "pow": "write `x * x`, or `tl.exp2(y * tl.log2(x))`",
    "prod": "write `tl.reduce(x, 0, multiply)` with a function of your own",
    "size": "write `x.numel`",
    "tolist": "store the block to an array",
    "transpose": "write `tl.trans(x)`",
}
_FUNCTIONS = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "concatenate": "cat",
    "empty": "zeros",
    "fabs": "abs",
    "matmul": "dot",
    "mod": "%",
    "ones": "full",
    "power": "exp2",
    "pow": "exp2",
    "transpose": "trans",
    "float_": "float64",
    "bool_": "int1",
    "bool": "int1",
    "half": "float16",
    "single": "float32",
    "double": "float64",
}
_FOREIGN = ("numpy", "torch", "math", "jax", "cupy", "scipy")


def attribute_help(name: str) -> str | None:
    """What stands for an attribute of NumPy's or PyTorch's arrays."""
    return _ATTRIBUTES.get(name)


def function_help(value: Any) -> str | None:
    """What stands for a function or dtype of a library of the host; None for anything else."""
    if not callable(value):
        return None
    module = getattr(value, "__module__", None) or type(value).__module__ or ""
    if module.split(".")[0] not in _FOREIGN and type(value).__module__.split(".")[0] not in _FOREIGN:
        return None
    name = getattr(value, "__name__", "").rpartition(".")[2]
    name = _FUNCTIONS.get(name, name)
    if name == "%":
        return "write `x % y`"
    if not name or name.startswith("_") or not hasattr(language, name):
        return "functions of the host do not run in kernels; the functions of `tl` do"
    return f"write `tl.{name}`"


class HostFunction:
    """A function of Python's that a kernel names as `module.function`: it computes on compile-time values."""

    def __init__(self, function: Any, path: str) -> None:
        self.function = function
        self.path = path
        self.__name__: str = path

    def __repr__(self) -> str:
        return f"the Python function `{self.path}`"


def is_host_function(value: Any) -> bool:
    """True for a function of a module: of Python's `math`, of NumPy, or the user's own."""
    return (
        isinstance(value, (types.BuiltinFunctionType, types.FunctionType)) or type(value).__name__ == "ufunc"
    )
