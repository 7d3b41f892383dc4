"""What a kernel calls: `import blocklang.language as tl`.

Types, operators and functions of Triton's programming model. Each function builds operations of Block IR with
the current builder (`context`); none knows whether a frontend records them or an interpreter evaluates them
at once. Promotion, broadcasting and the checks of arguments are decided here, once, for every mode.

A name that Triton has and that is not built yet raises an error that says so.
"""

from __future__ import annotations

import sys
from builtins import tuple
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from blocklang.diagnostics import CompilationError
from blocklang.language.constexpr import constexpr
from blocklang.language.context import current_builder, use_builder
from blocklang.language.dtypes import (
    bfloat16,
    block_type,
    const,
    constexpr_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    str_to_ty,
    tensor_descriptor_type,
    tuple_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from blocklang.language.tensor import tensor, to_tensor  # first of those below: they need the class

from blocklang.language.casting import cast  # isort: skip
from blocklang.language.aggregate import aggregate as _aggregate
from blocklang.language.aggregate import constexpr_function
from blocklang.language.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
)
from blocklang.language.block_pointers import advance, make_block_ptr
from blocklang.language.creation import arange, full, num_programs, program_id, zeros, zeros_like
from blocklang.language.descriptors import (
    load_tensor_descriptor,
    make_tensor_descriptor,
    store_tensor_descriptor,
    tensor_descriptor,
)
from blocklang.language.events import device_assert, device_print
from blocklang.language.hints import (
    assume,
    condition,
    debug_barrier,
    max_constancy,
    max_contiguous,
    multiple_of,
    range,
    static_assert,
    static_print,
    static_range,
)
from blocklang.language.linear import dot
from blocklang.language.maths import (
    PropagateNan,
    abs,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    expm1,
    fdiv,
    floor,
    fma,
    log,
    log1p,
    log2,
    log10,
    maximum,
    minimum,
    rint,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    tan,
    tanh,
    trunc,
    umulhi,
    where,
)
from blocklang.language.memory import load, store
from blocklang.language.named import add, mul, slice, sub
from blocklang.language.order import bitonic_merge, gather, histogram, sort, topk
from blocklang.language.random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from blocklang.language.reduction import argmax, argmin, max, min, reduce, reduce_or, sum, xor_sum
from blocklang.language.scaled import dot_scaled
from blocklang.language.scan import associative_scan, cumprod, cumsum, map_elementwise
from blocklang.language.shape import (
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    flip,
    interleave,
    item,
    join,
    permute,
    ravel,
    reshape,
    split,
    squeeze,
    trans,
    unsqueeze,
    view,
)
from blocklang.language.standard import cdiv, next_power_of_2, sigmoid, softmax, swizzle2d
from blocklang.language.unsupported import NOT_BUILT_YET

from blocklang.language import target_info  # isort: skip
from blocklang.language.inline_asm import inline_asm_elementwise  # isort: skip
from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.language import extra

_MATH = (
    *(abs, ceil, cos, div_rn, erf, exp, exp2, expm1, fdiv, floor, fma, log, log1p, log2, log10),
    *(rint, rsqrt, sin, sqrt, sqrt_rn, tan, tanh, trunc, umulhi, cdiv, sigmoid, softmax),
    *(minimum, maximum, clamp),
)

math = SimpleNamespace(**{f.__name__: f for f in _MATH})
"""The mathematical functions again, as `tl.math.exp`."""

core = sys.modules[__name__]
"""The language again: kernels in the wild write `tl.core.constexpr`, and classes `@tl.core._aggregate`."""

__all__ = [
    "PropagateNan",
    "_aggregate",
    "abs",
    "add",
    "advance",
    "arange",
    "argmax",
    "argmin",
    "associative_scan",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "bfloat16",
    "bitonic_merge",
    "block_type",
    "broadcast",
    "broadcast_to",
    "cast",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "condition",
    "const",
    "constexpr",
    "constexpr_function",
    "constexpr_type",
    "core",
    "cos",
    "cumprod",
    "cumsum",
    "current_builder",
    "debug_barrier",
    "device_assert",
    "device_print",
    "div_rn",
    "dot",
    "dot_scaled",
    "dtype",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "extra",
    "fdiv",
    "flip",
    "float8e4b8",
    "float8e4b15",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "full",
    "gather",
    "histogram",
    "inline_asm_elementwise",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "interleave",
    "item",
    "join",
    "load",
    "load_tensor_descriptor",
    "log",
    "log1p",
    "log2",
    "log10",
    "make_block_ptr",
    "make_tensor_descriptor",
    "map_elementwise",
    "math",
    "max",
    "max_constancy",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "mul",
    "multiple_of",
    "next_power_of_2",
    "num_programs",
    "pair_uniform_to_normal",
    "permute",
    "philox",
    "philox_impl",
    "pi32_t",
    "pointer_type",
    "program_id",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "range",
    "ravel",
    "reduce",
    "reduce_or",
    "reshape",
    "rint",
    "rsqrt",
    "sigmoid",
    "sin",
    "slice",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "sqrt_rn",
    "squeeze",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "store_tensor_descriptor",
    "str_to_ty",
    "sub",
    "sum",
    "swizzle2d",
    "tan",
    "tanh",
    "target_info",
    "tensor",
    "tensor_descriptor",
    "tensor_descriptor_type",
    "to_tensor",
    "topk",
    "trans",
    "trunc",
    "tuple",
    "tuple_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_to_uniform_float",
    "umulhi",
    "unsqueeze",
    "use_builder",
    "view",
    "void",
    "where",
    "xor_sum",
    "zeros",
    "zeros_like",
]


_on_demand = on_demand(__name__, {"extra": "blocklang.language.extra"})


def __getattr__(name: str) -> Any:
    if name in NOT_BUILT_YET:
        raise CompilationError(f"`tl.{name}` is not built yet", help=NOT_BUILT_YET[name])
    return _on_demand(name)
