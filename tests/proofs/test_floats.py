"""Float rewrites keep every bit but the payload of a NaN: proved for all halves, which have every kind of
value.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import z3

from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.printer import print_kernel
from blocklang.ops import elementwise as ops
from blocklang.ops.creation import Constant
from blocklang.ops.memory import Store
from blocklang.passes.canonicalise import canonicalise
from tests.passes.cases import read_kernel
from tests.proofs.symbolic import Term

HALF = z3.Float16()
NEAREST = z3.RNE()
NUMBERS = ("0.0", "-0.0", "1.0", "-1.0", "2.0", "inf", "-inf")


def identical(a: Term, b: Term) -> Term:
    """The same value: NaN is NaN, and -0.0 is not +0.0 (z3's own `==` of floats is IEEE's)."""
    return z3.ExprRef.__eq__(a, b)


def _extremum(a: Term, b: Term, larger: bool) -> Term:
    zeros = z3.And(z3.fpIsZero(a), z3.fpIsZero(b))
    first_is_less = z3.If(zeros, z3.fpIsNegative(a), z3.fpLT(a, b))
    chosen = z3.If(first_is_less, b, a) if larger else z3.If(first_is_less, a, b)
    return z3.If(z3.fpIsNaN(a), b, z3.If(z3.fpIsNaN(b), a, chosen))


def term_of(value: Value, known: dict[Value, Term]) -> Term:
    if value in known:
        return known[value]
    op = value.defining_op
    if op is None:
        return z3.Bool(value.name) if str(value.type) == "i1" else z3.FP(value.name, HALF)
    known[value] = _evaluate(op, [term_of(v, known) for v in op.operands])
    return known[value]


def _evaluate(op: Operation, terms: list[Term]) -> Term:
    match op:
        case Constant() if isinstance(op.value, bool):
            return z3.BoolVal(op.value)
        case Constant():
            return z3.FPVal(float(op.value), HALF)
        case ops.Add():
            return z3.fpAdd(NEAREST, *terms)
        case ops.Sub():
            return z3.fpSub(NEAREST, *terms)
        case ops.Mul():
            return z3.fpMul(NEAREST, *terms)
        case ops.Div():
            return z3.fpDiv(NEAREST, *terms)
        case ops.Minimum() | ops.Maximum():
            first, second = terms
            return _extremum(first, second, isinstance(op, ops.Maximum))
        case ops.Neg():
            return z3.fpNeg(*terms)
        case ops.Abs():
            return z3.fpAbs(*terms)
        case ops.Select():
            return z3.If(*terms)
        case ops.Xor():
            return z3.Xor(*terms)
        case ops.Compare():
            compare: dict[str, Any] = {
                "lt": z3.fpLT,
                "le": z3.fpLEQ,
                "gt": z3.fpGT,
                "ge": z3.fpGEQ,
                "eq": z3.fpEQ,
                "ne": z3.fpNEQ,
            }
            return compare[op.attributes["predicate"]](*terms)
    raise AssertionError(f"{op.name} has no term")


def stored(kernel: Kernel) -> Term:
    (store,) = [op for op in kernel.walk() if isinstance(op, Store)]
    return term_of(store.value, {})


def prove(body: str, result: str = "f16") -> bool:
    """True if `canonicalise` changed the kernel, after a proof that nobody can tell."""
    text = f"kernel @k(%p: ptr<{result}>, %x: f16, %y: f16, %c: i1) {{\n{body}  store %p, %r\n  return\n}}\n"
    before, after = read_kernel(text), read_kernel(text)
    canonicalise(after)
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(z3.Not(identical(stored(before), stored(after))))
    assert solver.check() == z3.unsat, f"{text}\nbecame\n{print_kernel(after)}"
    return print_kernel(before) != print_kernel(after)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "minimum", "maximum"])
def test_an_operation_with_a_constant(op: str) -> None:
    for number in NUMBERS:
        constant = f"  %k = constant value={number} : f16\n"
        prove(constant + f"  %r = {op} %x, %k : f16\n")
        prove(constant + f"  %r = {op} %k, %x : f16\n")
    prove(f"  %r = {op} %x, %x : f16\n")


def test_the_identities_apply() -> None:
    for op, number in (("add", "-0.0"), ("sub", "0.0"), ("mul", "1.0"), ("div", "1.0")):
        assert prove(f"  %k = constant value={number} : f16\n  %r = {op} %x, %k : f16\n")
    assert prove("  %r = minimum %x, %x : f16\n")


@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(predicate: str) -> None:
    prove(f'  %r = cmp %x, %x, predicate="{predicate}" : i1\n', "i1")
    prove(f'  %k = constant value=1.0 : f16\n  %r = cmp %k, %x, predicate="{predicate}" : i1\n', "i1")
    prove(
        f'  %s = cmp %x, %y, predicate="{predicate}" : i1\n  %t = constant value=true : i1\n'
        "  %r = xor %s, %t : i1\n",
        "i1",
    )


def test_signs_and_choices() -> None:
    for first, second in itertools.product(("neg", "abs"), repeat=2):
        prove(f"  %s = {first} %x : f16\n  %r = {second} %s : f16\n")
    assert prove("  %r = select %c, %x, %x : f16\n")
