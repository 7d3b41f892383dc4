"""Recipe of tanh.

An odd polynomial near 0; beyond, 1 - 2 / (exp(2|x|) + 1), where the subtraction no longer cancels. Both are
computed on every lane and one is selected.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.maths import coefficients, exponential
from blocklang.maths.exponential import ExponentialTable
from blocklang.maths.formats import Lanes
from blocklang.maths.steps import Steps, V


@dataclass(frozen=True)
class TanhTable:
    """What one format needs: where the polynomial ends, and where the result rounds to 1."""

    exponential: ExponentialTable
    near: float
    far: float
    polynomial: tuple[float, ...]


TABLE_F32 = TanhTable(exponential.TABLE_F32, 1.0, 9.25, coefficients.TANH_F32)
TABLE_F64 = TanhTable(exponential.TABLE_F64, 0.625, 19.25, coefficients.TANH_F64)


def tanh(steps: Steps[V], table: TanhTable, x: V) -> V:
    lanes = Lanes(steps, table.exponential.format)
    size = steps.abs(x)
    square = steps.mul(size, size)
    head = steps.fma(steps.mul(size, square), lanes.polynomial(square, table.polynomial), size)
    clamped = lanes.at_most(size, table.far)
    value, power = exponential.exp_parts(lanes, table.exponential, steps.add(clamped, clamped))
    divisor = steps.fma(value, power, lanes.number(1.0))
    tail = steps.sub(lanes.number(1.0), steps.div(lanes.number(2.0), divisor))
    near = steps.lt(size, lanes.number(table.near))
    return lanes.with_sign_of(steps.select(near, head, tail), x)


def tanh_f32(steps: Steps[V], x: V) -> V:
    return tanh(steps, TABLE_F32, x)


def tanh_f64(steps: Steps[V], x: V) -> V:
    return tanh(steps, TABLE_F64, x)
