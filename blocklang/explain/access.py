"""How the accesses of a loop over lanes run: what the code generator makes of each address (`codegen.lanes`).

Where lanes run, a value is the same in all lanes, or grows by a step from lane to lane, or is a vector: the
last is a gather, and then there is one operation that broke the form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blocklang.explain.words import words
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import I64, PointerType, ScalarType
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Cast, IntegerDiv, Mul, Rem, Select, Sub
from blocklang.ops.memory import Load, Offset
from blocklang.ops.tile import Lanes, Read


@dataclass(frozen=True)
class Form:
    """How a value changes from lane to lane.

    Attributes:
        step: what each lane adds, if that is a constant (of addresses, in elements).
        symbol: the step in words, if it is known at run time only.
        reason: what makes it differ from lane to lane in no steady way; "" if it does not.
        times: lanes in a row that have one value, of values that repeat.
    """

    step: int = 0
    symbol: str = ""
    reason: str = ""
    times: int = 1

    @property
    def is_uniform(self) -> bool:
        return not (self.step or self.symbol or self.reason)


UNIFORM = Form()


class LaneForms:
    """Answers for the values of one loop over lanes."""

    def __init__(self, loop: Lanes) -> None:
        self.loop = loop
        self._known: dict[Value, Form] = {loop.body.args[0]: Form(1)}

    def of(self, value: Value) -> Form:
        """The form of a value, found without recursion into long chains."""
        stack = [value]
        while stack:
            current = stack[-1]
            op = current.defining_op
            if current in self._known:
                stack.pop()
            elif op is None or not self.loop.body.encloses(op):
                inside = op is None and current.owner is not self.loop.body and self._is_inner(current)
                self._known[current] = (
                    Form(reason="it is carried by a loop of each lane") if inside else UNIFORM
                )
            elif missing := [v for v in op.operands if v not in self._known]:
                stack += missing
            else:
                self._known[current] = self._combine(op, [self._known[v] for v in op.operands])
        return self._known[value]

    def _is_inner(self, value: Value) -> bool:
        parent = getattr(value.owner, "parent", None)
        return isinstance(parent, Operation) and self.loop.body.encloses(parent)

    def _combine(self, op: Operation, forms: list[Form]) -> Form:
        if all(f.is_uniform for f in forms):
            return UNIFORM
        match op:
            case Add() | Sub() | Offset():
                return self._sum(op, *forms)
            case Mul():
                return self._product(op, *forms)
            case Cast() if _is_steady_cast(op):
                return forms[0]
            case IntegerDiv() | Rem():
                return self._divided(op, forms[0])
            case Select() if forms[0].is_uniform and forms[1] == forms[2]:
                return forms[1]
        if reason := next((f.reason for f in forms if f.reason), ""):
            return Form(reason=reason)
        return Form(reason=_reason(op))

    def _sum(self, op: Operation, a: Form, b: Form) -> Form:
        offset = op.operands[1]
        if isinstance(op, Offset) and offset.type != I64 and not b.is_uniform and not b.reason:
            return Form(reason=f"{words(offset)} may wrap around in {offset.type}, and no test rules it out")
        if a.reason or b.reason:
            return Form(reason=a.reason or b.reason)
        if a.times != b.times and not (a.is_uniform or b.is_uniform):
            return Form(reason=f"{words(op.results[0])} does not grow by one step")
        sign = -1 if isinstance(op, Sub) else 1
        symbols = [text for text in (a.symbol, b.symbol) if text]
        times = max(a.times, b.times)
        if symbols and (a.step or b.step or len(symbols) > 1):
            return Form(symbol=" + ".join([*symbols, *(str(f.step) for f in (a, b) if f.step)]), times=times)
        return Form(a.step + sign * b.step, symbols[0] if symbols else "", times=times)

    def _product(self, op: Operation, a: Form, b: Form) -> Form:
        if a.reason or b.reason:
            return Form(reason=a.reason or b.reason)
        if not (a.is_uniform or b.is_uniform):
            return Form(reason=f"{words(op.results[0])} is a product of two indices")
        factor, form = (op.operands[0], b) if a.is_uniform else (op.operands[1], a)
        made_by = factor.defining_op
        if isinstance(made_by, Constant):
            scaled = f"{form.symbol} * {made_by.value}" if form.symbol else ""
            return replace(form, step=form.step * int(made_by.value), symbol=scaled)
        text = words(factor)
        return replace(
            form, step=0, symbol=text if form.step == 1 else f"{form.symbol or form.step} * {text}"
        )

    def _divided(self, op: Operation, dividend: Form) -> Form:
        """Quotients and remainders of the index that have a period (`codegen.periods`)."""
        if dividend.reason:
            return dividend
        divisor = op.operands[1].defining_op
        width = self.loop.width
        if dividend.step == 1 and isinstance(divisor, Constant) and op.results[0].type == I64:
            r = int(divisor.value)
            if r > 0 and r % width == 0:
                return UNIFORM if isinstance(op, IntegerDiv) else Form(1)
            if r > 0 and width % r == 0 and isinstance(op, IntegerDiv):
                return Form(1, times=r)
        what = "quotient" if isinstance(op, IntegerDiv) else "remainder"
        return Form(reason=f"it is computed from the {what} {words(op.results[0])}")


def _is_steady_cast(op: Cast) -> bool:
    source, target = op.source.type, op.result.type
    return (
        isinstance(source, ScalarType)
        and isinstance(target, ScalarType)
        and not (source.is_float or target.is_float)
        and target.bits <= source.bits
    )


def _reason(op: Operation) -> str:
    match op:
        case Load():
            return f"it is computed from what line {op.location.line} loads"
        case Read():
            name = op.buffer.name.removesuffix("_buf") or "a value"
            return f"it is computed from {name}, which is kept in memory"
        case Cast():
            return f"{words(op.source)} may wrap around in {op.source.type}, and no test rules it out"
        case Select():
            return "it is chosen lane by lane"
    return f"it is computed by {op.name} of {', '.join(words(v, 2) for v in op.operands)}"


@dataclass(frozen=True)
class Way:
    """How an access runs: its class, the bytes from lane to lane, and why it is not better."""

    form: str
    step: int | None
    why: str


def way_of(op: Operation, loop: Lanes | None, forms: LaneForms | None) -> Way:
    """The way that an access in `loop` takes; None as loop for one outside of all."""
    pointer = op.segment("pointer")[0]
    assert isinstance(pointer.type, PointerType)
    size, is_load = pointer.type.element.bytes, isinstance(op, Load)
    if loop is None or forms is None:
        return Way("scalar", 0, "")
    if loop.width == 1:
        return Way("one lane a step", None, "")
    form = forms.of(pointer)
    if form.reason:
        return Way("gather" if is_load else "scatter", None, f"the address is not affine: {form.reason}")
    if form.symbol:
        return Way(
            "strided", None, f"the step from lane to lane is known at run time only: {form.symbol} elements"
        )
    if form.times > 1:
        if is_load and form.step == 1:
            return Way("repeated", None, "")
        return Way("gather" if is_load else "scatter", None, f"{form.times} lanes in a row share an element")
    step = form.step * size
    known = {0: "broadcast", 1: "consecutive", -1: "backwards"} | ({2: "every second"} if is_load else {})
    if form.step in known:
        return Way(known[form.step], step, "")
    return Way("strided", step, f"a step of {step} bytes from lane to lane")
