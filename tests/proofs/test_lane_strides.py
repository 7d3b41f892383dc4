"""The axis analysis, proved: along an axis a value grows by its stride, modulo two to the power of its
bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import z3

from blocklang.analysis.lane_strides import LaneStrides
from blocklang.ir.core import Kernel, Region, Value
from blocklang.ir.index_map import Binary, Const, Dim, IndexExpr
from blocklang.ir.types import PointerType, ScalarType, element_type, shape_of
from blocklang.ops.tile import Iterate
from blocklang.passes.lower_to_tile import lower_to_tile
from tests.passes.cases import read_kernel
from tests.proofs.symbolic import Execution, Term, counterexample


def index_term(expr: IndexExpr, point: Sequence[Term]) -> Term:
    match expr:
        case Dim(position):
            return point[position]
        case Const(value):
            return z3.BitVecVal(value, 64)
        case Binary(op, lhs, rhs):
            a, b = index_term(lhs, point), index_term(rhs, point)
            return {"+": a + b, "*": a * b, "//": z3.UDiv(a, b), "%": z3.URem(a, b)}[op]
    raise AssertionError(expr)


def lane(inputs: dict[str, Term], value: Value, point: Sequence[Term]) -> Term:
    """The term of one lane of a block, or of a scalar argument."""
    op = value.defining_op
    if isinstance(op, Iterate):
        run = Execution(inputs)
        rank = len(op.space)
        for arg, term in zip(op.body.args[:rank], point, strict=True):
            run.terms[arg] = term
        for arg, operand, map in zip(op.body.args[rank:], op.inputs, op.maps, strict=True):
            run.terms[arg] = lane(inputs, operand, [index_term(e, point) for e in map.exprs])
        for inner in op.body.ops[:-1]:
            for operand in inner.operands:
                if operand not in run.terms:
                    run.terms[operand] = lane(inputs, operand, [])
            run.operation(inner, z3.BoolVal(True), 0)
        result = op.body.ops[-1].operands[op.results.index(value)]
        return run.terms[result] if result in run.terms else lane(inputs, result, [])
    run = Execution(inputs)
    if op is None:
        assert isinstance(value.owner, Region)
        return run.input(value.name, value)
    for operand in op.operands:
        run.terms[operand] = lane(inputs, operand, [])
    run.operation(op, z3.BoolVal(True), 0)
    return run.terms[value]


def prove_strides(kernel: Kernel) -> int:
    """Prove every known stride of every integer or pointer block; returns how many there were."""
    lower_to_tile(kernel)
    strides, proved = LaneStrides(kernel), 0
    for op in kernel.walk():
        for value in op.results:
            shape, element = shape_of(value.type), element_type(value.type)
            if not shape or (isinstance(element, ScalarType) and element.bits == 1):
                continue
            form = strides.of(value)
            scale = element.element.bytes if isinstance(element, PointerType) else 1
            for axis, stride in enumerate(form.strides):
                if stride is None or form.bits == 0:
                    continue
                point = [z3.BitVec(f"d{k}", 64) for k in range(len(shape))]
                inside = [z3.And(p >= 0, p < n) for p, n in zip(point, shape, strict=True)]
                following = [p + (k == axis) for k, p in enumerate(point)]
                inputs: dict[str, Term] = {}
                here, there = lane(inputs, value, point), lane(inputs, value, following)
                width = min(form.bits, here.size())
                grown = z3.Extract(width - 1, 0, there - here)
                wrong = grown != z3.BitVecVal(stride * scale, width)
                claim = z3.And(*inside, following[axis] < shape[axis], wrong)
                assert counterexample(claim) is None, f"{value}: {form}"
                proved += 1
    return proved


@pytest.mark.parametrize("type", ["i8", "u8", "i32"])
def test_strides_of_index_arithmetic(type: str) -> None:
    kernel = read_kernel(
        f"kernel @k(%x: ptr<i16>, %s: {type}) {{\n"
        "  %i = arange start=0, end=6 : block<6xi32>\n  %j = arange start=3, end=7 : block<4xi32>\n"
        f"  %a0 = cast %i : block<6x{type}>\n  %b0 = cast %j : block<4x{type}>\n"
        f"  %a1 = expand_dims %a0, axis=1 : block<6x1x{type}>\n"
        f"  %b1 = expand_dims %b0, axis=0 : block<1x4x{type}>\n"
        f"  %a = broadcast %a1, shape=[6, 4] : block<6x4x{type}>\n"
        f"  %b = broadcast %b1, shape=[6, 4] : block<6x4x{type}>\n"
        f"  %five = constant value=5 : {type}\n  %c = mul %a, %five : block<6x4x{type}>\n"
        f"  %d = add %c, %b : block<6x4x{type}>\n  %e = sub %d, %s : block<6x4x{type}>\n"
        f"  %f = mul %b, %s : block<6x4x{type}>\n  %g = mul %b, %a : block<6x4x{type}>\n"
        f"  %h = add %f, %e : block<6x4x{type}>\n  %l = cast %e : block<6x4xi64>\n"
        f"  %t = trans %d, order=[1, 0] : block<4x6x{type}>\n  %u = add %t, %five : block<4x6x{type}>\n"
        f"  %r = reshape %d, shape=[24] : block<24x{type}>\n  %v = add %r, %s : block<24x{type}>\n"
        f"  %p = offset %x, %e : block<6x4xptr<i16>>\n  %q = offset %x, %v : block<24xptr<i16>>\n"
        "  %w = load %p : block<6x4xi16>\n  store %p, %w\n  return\n}\n"
    )
    assert prove_strides(kernel) >= 12


@pytest.mark.parametrize(("rows", "columns"), list(itertools.product((1, 2, 4), (3, 8))))
def test_strides_through_reshapes(rows: int, columns: int) -> None:
    total = rows * columns
    kernel = read_kernel(
        "kernel @k(%x: ptr<i8>, %s: i16) {\n"
        f"  %i = arange start=0, end={total} : block<{total}xi32>\n"
        f"  %m = reshape %i, shape=[{rows}, {columns}] : block<{rows}x{columns}xi32>\n"
        f"  %a = cast %m : block<{rows}x{columns}xi16>\n  %b = add %a, %s : block<{rows}x{columns}xi16>\n"
        f"  %p = offset %x, %b : block<{rows}x{columns}xptr<i8>>\n"
        f"  %v = load %p : block<{rows}x{columns}xi8>\n  store %p, %v\n  return\n}}\n"
    )
    assert prove_strides(kernel) >= 2
