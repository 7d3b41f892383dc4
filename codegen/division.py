"""Division of lanes by one number: products with its reciprocal, and the exact same result.

CPUs divide slowly, registers of 64 bytes slowest: 16 cycles each, the products here take 3. With
y = RN(1 / d), y' the rest of 1 / d, and everything far from the ends of the format,

    q = RN(x y + RN(x y'))      is one of the two numbers around x / d,
    r = x - q d                 is exact, therefore,
    RN(q + r y)                 is x / d, correctly rounded.

Source: Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990. A step
in which a lane is not far from the ends (zero is such a number) divides.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.codegen.emitter import Emitter, llvm_scalar, splat_constant, vector_of
from blocklang.codegen.floats import constant_text
from blocklang.ir.types import F32, F64, ScalarType
from blocklang.target import Target


@dataclass(frozen=True)
class _Range:
    """Powers of two between which x and d must lie, so that no step over- or underflows."""

    fraction_bits: int
    bias: int
    lanes: int
    divisor: int


_RANGES = {F32: _Range(23, 127, 64, 30), F64: _Range(52, 1023, 400, 200)}


@dataclass(frozen=True)
class Divisor:
    """What is computed of a divisor before a loop, each in every lane.

    Attributes:
        reciprocal: RN(1 / d).
        rest: what is left of 1 / d.
        negative: -d.
        reach: how far above the least usable magnitude the bits of a usable lane may be; 0 if d is not
            usable.
    """

    reciprocal: str
    rest: str
    negative: str
    reach: str


def has_slow_division(type: ScalarType, target: Target) -> bool:
    """True if products are faster than a division of vectors of this type."""
    return type in _RANGES and target.has_fma and target.vector_bytes >= 64


def prepare_divisor(emit: Emitter, type: ScalarType, text: str, width: int) -> Divisor:
    """Compute what a loop needs to divide by the scalar `text`."""
    scalar, word, ends = llvm_scalar(type), f"i{type.bits}", _RANGES[type]
    one = constant_text(type, 1.0)
    reciprocal = emit.op(f"fdiv {scalar} {one}, {text}")
    negative = emit.op(f"fneg {scalar} {text}")
    error = emit.call(
        scalar, f"llvm.fma.f{type.bits}", [(scalar, negative), (scalar, reciprocal), (scalar, one)]
    )
    rest = emit.op(f"fmul {scalar} {error}, {reciprocal}")
    is_usable = _is_within(emit, type, text, 0, ends.divisor, str(_reach(ends, ends.divisor)))
    reach = emit.op(f"select i1 {is_usable}, {word} {_reach(ends, ends.lanes)}, {word} 0")
    return Divisor(
        emit.splat(scalar, reciprocal, width),
        emit.splat(scalar, rest, width),
        emit.splat(scalar, negative, width),
        emit.splat(word, reach, width),
    )


def divide(emit: Emitter, type: ScalarType, lanes: str, by: Divisor, divisor: str, width: int) -> str:
    """`lanes` over the vector `divisor`, of which `by` was prepared."""
    vector = vector_of(llvm_scalar(type), width)
    mask = _is_within(emit, type, lanes, width, _RANGES[type].lanes, by.reach)
    usual = emit.call("i1", f"llvm.vector.reduce.and.v{width}i1", [(vector_of("i1", width), mask)])
    multiply, slow, join = (emit.new_block(n) for n in ("multiply", "divide", "divided"))
    emit.branch_if(usual, multiply, slow)
    emit.start(multiply)

    def fma(a: str, b: str, c: str) -> str:
        return emit.call(vector, f"llvm.fma.v{width}f{type.bits}", [(vector, a), (vector, b), (vector, c)])

    near = fma(lanes, by.reciprocal, emit.op(f"fmul {vector} {lanes}, {by.rest}"))
    exact = fma(fma(near, by.negative, lanes), by.reciprocal, near)
    emit.branch(join)
    emit.start(slow)
    quotient = emit.op(f"fdiv {vector} {lanes}, {divisor}")
    emit.branch(join)
    emit.start(join)
    return emit.phi(vector, [(exact, multiply), (quotient, slow)]).name


def _reach(ends: _Range, power: int) -> int:
    """Bits between the magnitudes 2**-power and 2**power, one more."""
    return (2 * power << ends.fraction_bits) + 1


def _is_within(emit: Emitter, type: ScalarType, text: str, width: int, power: int, reach: str) -> str:
    """Where the magnitude is at least 2**-power, and its bits less than `reach` above that."""
    ends, word = _RANGES[type], vector_of(f"i{type.bits}", width)

    def number(value: int) -> str:
        return splat_constant(f"i{type.bits}", str(value), width)

    bits = emit.op(f"bitcast {vector_of(llvm_scalar(type), width)} {text} to {word}")
    magnitude = emit.op(f"and {word} {bits}, {number((1 << (type.bits - 1)) - 1)}")
    above = emit.op(f"sub {word} {magnitude}, {number((ends.bias - power) << ends.fraction_bits)}")
    return emit.op(f"icmp ult {word} {above}, {reach}")
