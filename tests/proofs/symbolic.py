"""Integer code of Block IR and placed Tile IR as z3 terms, so that a rewrite can be proved for all inputs.

A scalar integer is a bit vector of its width, i1 a Bool, a pointer a 64-bit address. Memory is an
uninterpreted function of the address, which is right as long as no kernel under proof loads what it stores.
A `lanes` or `group` loop is executed once, for one symbolic index per depth of nesting: what it does there
is an `Event` under the condition that the loop reaches that index. Two kernels do the same if, for every
value of their arguments and of the indices, their events have the same conditions, addresses and values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import z3

from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import PointerType, ScalarType
from blocklang.ops import elementwise as ops
from blocklang.ops.control import If
from blocklang.ops.creation import Constant
from blocklang.ops.memory import Load, Offset, Store
from blocklang.ops.tile import Group, InBounds, Lanes

Term = Any  # z3 has no types of its own


@dataclass(frozen=True)
class Event:
    """Something that a kernel does at one index: `condition` says whether, `values` what.

    Attributes:
        kind: "store", "load" or the name of a fold.
        values: address and value of a store, the address of a load, what a fold takes.
    """

    kind: str
    condition: Term
    values: tuple[Term, ...]


def width_of(value: Value) -> int:
    return value.type.bits if isinstance(value.type, ScalarType) else 64


def is_signed(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and bool(value.type.is_signed)


def number(value: int | bool, type: ScalarType) -> Term:
    if type.bits == 1:
        return z3.BoolVal(bool(value))
    return z3.BitVecVal(int(value), type.bits)


def as_bits(term: Term) -> Term:
    """A Bool as a bit vector of width 1, anything else as it is."""
    return z3.If(term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if z3.is_bool(term) else term


def resized(term: Term, signed: bool, width: int) -> Term:
    bits = as_bits(term)
    if width <= bits.size():
        return z3.Extract(width - 1, 0, bits)
    return (z3.SignExt if signed else z3.ZeroExt)(width - bits.size(), bits)


def _quotient(a: Term, b: Term, signed: bool) -> Term:
    """Truncated; 0 for a divisor of 0. z3's own MIN / -1 wraps to MIN, as declared."""
    quotient = a / b if signed else z3.UDiv(a, b)
    return z3.If(b == 0, z3.BitVecVal(0, a.size()), quotient)


def _remainder(a: Term, b: Term, signed: bool) -> Term:
    return z3.If(b == 0, a, z3.SRem(a, b) if signed else z3.URem(a, b))


def _shift_left(a: Term, b: Term, signed: bool) -> Term:
    return a << b  # a count of the width or more gives 0 in z3 too


def _shift_right(a: Term, b: Term, signed: bool) -> Term:
    return a >> b if signed else z3.LShR(a, b)


def _less(a: Term, b: Term, signed: bool) -> Term:
    return a < b if signed else z3.ULT(a, b)


def _high_product(a: Term, b: Term, signed: bool) -> Term:
    width = a.size()
    product = z3.ZeroExt(width, a) * z3.ZeroExt(width, b)
    return z3.Extract(2 * width - 1, width, product)


BINARY: dict[type[Operation], Callable[[Term, Term, bool], Term]] = {
    ops.Add: lambda a, b, _: a + b,
    ops.Sub: lambda a, b, _: a - b,
    ops.Mul: lambda a, b, _: a * b,
    ops.IntegerDiv: _quotient,
    ops.Rem: _remainder,
    ops.And: lambda a, b, _: a & b,
    ops.Or: lambda a, b, _: a | b,
    ops.Xor: lambda a, b, _: a ^ b,
    ops.Shl: _shift_left,
    ops.Shr: _shift_right,
    ops.Minimum: lambda a, b, s: z3.If(_less(b, a, s), b, a),
    ops.Maximum: lambda a, b, s: z3.If(_less(a, b, s), b, a),
    ops.UnsignedMulHigh: _high_product,
}

COMPARISONS: dict[str, Callable[[Term, Term, bool], Term]] = {
    "lt": _less,
    "le": lambda a, b, s: z3.Not(_less(b, a, s)),
    "gt": lambda a, b, s: _less(b, a, s),
    "ge": lambda a, b, s: z3.Not(_less(a, b, s)),
    "eq": lambda a, b, _: a == b,
    "ne": lambda a, b, _: a != b,
}


@dataclass
class Execution:
    """One symbolic run of a kernel.

    Attributes:
        inputs: terms of arguments and indices by name, shared by the runs that are compared.
        events: what the kernel did, in order.
    """

    inputs: dict[str, Term]
    terms: dict[Value, Term] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def run(self, kernel: Kernel) -> list[Event]:
        for argument in kernel.args:
            self.terms[argument] = self.input(argument.name, argument)
        self.region(kernel.body, z3.BoolVal(True), 0)
        return self.events

    def input(self, name: str, value: Value) -> Term:
        if name not in self.inputs:
            self.inputs[name] = z3.Bool(name) if width_of(value) == 1 else z3.BitVec(name, width_of(value))
        return self.inputs[name]

    def region(self, region: Region, path: Term, depth: int) -> None:
        for op in region.ops:
            self.operation(op, path, depth)

    def operation(self, op: Operation, path: Term, depth: int) -> None:
        match op:
            case If():
                condition = self.terms[op.condition]
                for region, holds in zip(op.regions, (condition, z3.Not(condition)), strict=False):
                    self.region(region, z3.And(path, holds), depth)
                # Results of an `if` under proof are folds of its loops, which are events already.
            case Lanes() | Group():
                self.loop(op, path, depth)
            case Store():
                live = path if op.mask is None else z3.And(path, self.terms[op.mask])
                self.events.append(Event("store", live, (self.terms[op.pointer], self.terms[op.value])))
            case Load():
                self.terms[op.result] = self.load(op, path)
            case _ if op.results:
                self.terms[op.result] = self.value(op)

    def loop(self, op: Lanes | Group, path: Term, depth: int) -> None:
        index = self.input(f"index{depth}", op.low)
        self.terms[op.body.args[0]] = index
        low, high = self.terms[op.low], self.terms[op.high]
        inside = z3.And(path, low <= index, index < high)
        self.region(op.body, inside, depth + 1)
        if isinstance(op, Lanes) and op.combines:
            yielded = tuple(self.terms[v] for v in op.body.ops[-1].operands)
            self.events.append(Event("fold", inside, yielded))
            if op.pads:
                beyond = z3.And(path, high <= index, index < op.extent)
                self.events.append(Event("fold", beyond, tuple(self.terms[v] for v in op.pads)))

    def load(self, op: Load, path: Term) -> Term:
        address = self.terms[op.pointer]
        width = width_of(op.result)
        memory = z3.Function(f"memory{width}", z3.BitVecSort(64), z3.BitVecSort(width))
        loaded = memory(address) if width > 1 else memory(address) != 0
        if op.mask is None:
            self.events.append(Event("load", path, (address,)))
            return loaded
        mask = self.terms[op.mask]
        self.events.append(Event("load", z3.And(path, mask), (address,)))
        assert isinstance(op.result.type, ScalarType)
        other = number(0, op.result.type) if op.other is None else self.terms[op.other]
        return z3.If(mask, loaded, other)

    def value(self, op: Operation) -> Term:
        operands = [self.terms[v] for v in op.operands]
        match op:
            case Constant():
                assert isinstance(op.result.type, ScalarType)
                return number(op.value, op.result.type)
            case ops.Compare():
                a, b = map(as_bits, operands)
                return COMPARISONS[op.predicate](a, b, is_signed(op.lhs))
            case ops.Select():
                return z3.If(*operands)
            case ops.Cast() if width_of(op.result) == 1:
                return operands[0] if z3.is_bool(operands[0]) else operands[0] != 0
            case ops.Cast():
                return resized(operands[0], is_signed(op.source), width_of(op.result))
            case ops.Bitcast():
                return operands[0]
            case ops.Neg():
                return -operands[0]
            case ops.Abs():
                (a,) = operands
                return z3.If(a < 0, -a, a) if is_signed(op.source) else a
            case Offset():
                assert isinstance(op.result.type, PointerType)
                step = resized(operands[1], is_signed(op.offset), 64)
                return operands[0] + step * op.result.type.element.bytes
            case InBounds():
                return z3.And(operands[1] <= operands[0], operands[0] < operands[2])
        a, b = map(as_bits, operands)
        bits = BINARY[type(op)](a, b, is_signed(op.operands[0]))
        return bits == 1 if width_of(op.result) == 1 else bits


def difference(before: Kernel, after: Kernel) -> Term:
    """A term that is satisfiable exactly by the inputs for which two kernels differ.

    Every event of the one must be an event of the other: its condition is covered there, with equal values.
    A load may be left out or repeated, so only the loads of `after` must be loads of `before`.
    """
    inputs: dict[str, Term] = {}
    first, second = Execution(inputs).run(before), Execution(inputs).run(after)
    uncovered = [_uncovered(event, second) for event in first if event.kind != "load"]
    uncovered += [_uncovered(event, first) for event in second]
    return z3.Or(*uncovered)


def _uncovered(event: Event, others: list[Event]) -> Term:
    same = [
        z3.And(other.condition, *(a == b for a, b in zip(event.values, other.values, strict=True)))
        for other in others
        if other.kind == event.kind and [v.sort() for v in other.values] == [v.sort() for v in event.values]
    ]
    return z3.And(event.condition, z3.Not(z3.Or(*same)))


def counterexample(claim: Term, *, seconds: float = 20) -> str | None:
    """None if no input satisfies the term; else the input, as text.

    Raises:
        TimeoutError: z3 gave up.
    """
    solver = z3.SolverFor("QF_UFBV")
    solver.set("timeout", int(seconds * 1000))
    solver.add(claim)
    verdict = solver.check()
    if verdict == z3.unsat:
        return None
    if verdict == z3.sat:
        return str(solver.model())
    raise TimeoutError(f"z3 gave no answer within {seconds} s")
