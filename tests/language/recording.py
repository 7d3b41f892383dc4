"""Language functions called without a frontend: operations are recorded in a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blocklang.language as tl
from blocklang.ir import Builder, Kernel, verify
from blocklang.ir.types import BlockType, ScalarType, Type
from blocklang.language.dtypes import DTYPES, dtype
from blocklang.ops.control import Return

ALL_DTYPES = DTYPES
FLOATS = tuple(d for d in DTYPES if d.is_floating())
INTEGERS = tuple(d for d in DTYPES if d.is_int())


def record(function: Callable[..., Any], *types: Type) -> tuple[Any, Kernel]:
    """Call a function with arguments of these types; its result, and the verified kernel that it recorded.

    Blocks come from splats of scalar arguments, since a kernel takes no blocks.
    """
    scalars = [t.element if isinstance(t, BlockType) else t for t in types]
    kernel = Kernel("recorded", scalars, [f"arg{i}" for i in range(len(types))])
    builder = Builder(kernel.body)
    with tl.use_builder(builder):
        arguments = [
            tl.broadcast_to(tl.tensor(value), type_.shape)
            if isinstance(type_, BlockType)
            else tl.tensor(value)
            for value, type_ in zip(kernel.args, types, strict=True)
        ]
        result = function(*arguments)
        builder.create(Return)
    verify(kernel)
    return result, kernel


def result_dtype(function: Callable[..., Any], *elements: dtype, shape: tuple[int, ...] = (8,)) -> dtype:
    """The element type of a function's result on blocks of these element types."""
    result, _ = record(function, *(block(e, shape) for e in elements))
    assert isinstance(result, tl.tensor)
    return result.dtype


def block(element: dtype, shape: tuple[int, ...] = (8,)) -> Type:
    assert isinstance(element.ir_type, ScalarType)
    return BlockType(element.ir_type, shape) if shape else element.ir_type
