"""Which type an operator computes in: pure functions on dtypes, Triton's rules (docs/semantics.md).

A Python number or `constexpr` is *weak*: it takes the other side's type unless its kind (bool < int < float)
is higher. Everything else, scalar or block, takes part with its own type.
"""

from __future__ import annotations

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.dtypes import dtype

Number = bool | int | float

_SMALLEST_NORMAL_FP32 = 2.0**-126
_LARGEST_FP32 = (2 - 2.0**-23) * 2.0**127


def literal_type(value: Number) -> dtype:
    """The type of a Python number on its own."""
    if isinstance(value, bool):
        return tl.int1
    if isinstance(value, int):
        for candidate in (tl.int32, tl.uint32, tl.int64, tl.uint64):
            if candidate.get_int_min_value() <= value <= candidate.get_int_max_value():
                return candidate
        raise CompilationError(f"the integer {value} does not fit into 64 bits")
    magnitude = abs(value)
    fits = magnitude in (0.0, float("inf")) or value != value
    if fits or _SMALLEST_NORMAL_FP32 <= magnitude <= _LARGEST_FP32:
        return tl.float32
    return tl.float64


def integer_promote(a: dtype, b: dtype) -> dtype:
    """The common integer type: the wider; on a tie of width, or if it is wider, the unsigned one."""
    if a.int_signedness == b.int_signedness:
        return a if a.int_bitwidth > b.int_bitwidth else b
    unsigned, signed = (a, b) if a.is_int_unsigned() else (b, a)
    return unsigned if unsigned.int_bitwidth >= signed.int_bitwidth else signed


def computation_type(a: dtype, a_weak: bool, b: dtype, b_weak: bool, *, division: bool = False) -> dtype:
    """The type in which an operator computes and which it returns (true division of integers apart).

    Args:
        a, b: element types of the operands, numbers.
        a_weak, b_weak: whether the operand is a Python number.
        division: True for `/`, `//` and `%`, which are computed in fp32 for fp16 and bf16.
    """
    if a_weak != b_weak:
        weak, strong = (a, b) if a_weak else (b, a)
        if weak.kind().value <= strong.kind().value:
            return tl.float32 if division and strong.name in ("fp16", "bf16") else strong
    names = {a.name, b.name}
    for wide in (tl.float64, tl.float32):
        if wide.name in names:
            return wide
    if "fp16" in names:
        return tl.float32 if division else tl.float16
    if names == {"bf16"}:
        return tl.float32 if division else tl.bfloat16
    if "bf16" in names:
        return tl.float32
    if a.is_fp8() and b.is_fp8():
        return a if a == b else tl.float16
    for eight_bits, other in ((a, b), (b, a)):
        if eight_bits.is_fp8():
            raise CompilationError(
                f"unexpected type {other} beside {eight_bits}: they have no common type",
                help="cast one side first, for instance `x.to(tl.float16)`",
            )
    if division and a.int_signedness != b.int_signedness:
        raise CompilationError(
            f"cannot divide {a} and {b}: one is signed, the other is not",
            help="cast one side first, for instance `x.to(tl.int32)`",
        )
    return integer_promote(a, b)
