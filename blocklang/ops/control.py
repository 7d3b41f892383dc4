"""Structured control flow. Conditions and bounds are scalars; carried values and results may be scalars or
blocks.
"""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.declaration import attribute, operand, operation, region, result
from blocklang.ops.constraints import Anything, ScalarBool, ScalarInteger


class ControlFlow(Operation):
    """Base of operations that hold regions of ordinary code."""

    block_levels = frozenset({"block", "tile"})


@operation("yield", terminator=True)
class Yield(Operation):
    """End a region and hand its values to the operation around it.

    yield %a, %b
    """

    values = operand(Anything, variadic=True)


@operation("return", terminator=True)
class Return(Operation):
    """End the kernel.

    return
    """


@operation("if")
class If(ControlFlow):
    """Run one of two regions; both yield the results. The second may be absent if there are no results.

    %r = if %c : f32 {
      yield %a
    } {
      yield %b
    }
    """

    condition = operand(ScalarBool)
    outputs = result(variadic=True)
    then_region = region()
    else_region = region(optional=True)

    def verify_op(self) -> None:
        if self.results and len(self.regions) != 2:
            raise ValueError("an if with results needs both regions")
        for inner in self.regions:
            _check_yield(inner.terminator, [r.type for r in self.results])


@operation("for")
class For(ControlFlow):
    """Run the region for each index of Python's range(start, stop, step), carrying values from one round to
    the next. A step of 0 is rejected before; the step may be negative at run time. The results are the last
    values carried.

    %r = for %lo, %hi, %step, %init : f32 {
      (%i: i32, %acc: f32):
      yield %acc
    }
    """

    start = operand(ScalarInteger)
    stop = operand(ScalarInteger)
    step = operand(ScalarInteger)
    inits = operand(Anything, variadic=True)
    num_stages = attribute(int, default=0)
    outputs = result(variadic=True)
    body = region()

    def verify_op(self) -> None:
        if len({self.start.type, self.stop.type, self.step.type}) != 1:
            raise ValueError("bounds and step must have one type")
        carried = [v.type for v in self.inits]
        if [a.type for a in self.body.args] != [self.start.type, *carried]:
            raise ValueError("the region takes the index, then the carried values")
        if [r.type for r in self.results] != carried:
            raise ValueError("results must have the types of the carried values")
        _check_yield(self.body.terminator, carried)


@operation("condition", terminator=True)
class Condition(Operation):
    """End the first region of a `while`: go on if the scalar is true; hand the values on in both cases.

    condition %c, %a
    """

    condition = operand(ScalarBool)
    values = operand(Anything, variadic=True)


@operation("while")
class While(ControlFlow):
    """Run the first region; while its condition holds, run the second and repeat. The values of the
    condition are the arguments of the second region, and the results at the end.

    %r = while %init : f32 {
      (%a: f32):
      condition %c, %a
    } {
      (%b: f32):
      yield %b
    }
    """

    inits = operand(Anything, variadic=True)
    outputs = result(variadic=True)
    before = region()
    after = region()

    def verify_op(self) -> None:
        carried = [v.type for v in self.inits]
        passed = [r.type for r in self.results]
        if [a.type for a in self.before.args] != carried or [a.type for a in self.after.args] != passed:
            raise ValueError("the regions' arguments must be the carried and the passed values")
        end = self.before.terminator
        if not isinstance(end, Condition):
            raise ValueError("the first region must end in a condition")
        if [v.type for v in end.values] != passed:
            raise ValueError("the condition must pass the results on")
        _check_yield(self.after.terminator, carried)


def _check_yield(terminator: Operation | None, types: list[object]) -> None:
    if not isinstance(terminator, Yield):
        raise ValueError("the region must end in a yield")
    if [v.type for v in terminator.operands] != types:
        raise ValueError(f"the region must yield {', '.join(map(str, types)) or 'nothing'}")
