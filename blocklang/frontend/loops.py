"""Loops. `for` over a range becomes a `for` operation, `while` a `while`.

A loop that may be left early (`break`, `return`) is a `while` that tests a flag before its condition; a range
then counts its remaining rounds, so that the index never runs past the bound. Loops over compile-time items
are unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import Any

from blocklang.frontend.branches import Branches, discard
from blocklang.frontend.carry import Carry
from blocklang.frontend.names import assigned_names
from blocklang.frontend.scope import BREAK, CONTINUE, RETURN, STOPPED, Loop
from blocklang.frontend.values import describe_kind, is_number
from blocklang.ir import Region, Value
from blocklang.ir.types import U64, shape_of
from blocklang.language import dtypes as tl
from blocklang.language.arithmetic import compare, logical, logical_not
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import unwrap
from blocklang.language.maths import where
from blocklang.language.promotion import integer_promote, literal_type
from blocklang.language.tensor import constant, tensor, to_tensor
from blocklang.ops.control import Condition, For, If, While, Yield

_BROKEN = "<broken>"
Bounds = tuple[tensor, tensor, tensor]


def implicit_continue(last: ast.stmt) -> ast.stmt:
    """The `continue` in which every round ends."""
    node = ast.copy_location(ast.Continue(), last)
    node.is_implicit = True  # type: ignore[attr-defined]
    return node


class Loops(Branches):
    """Loops at run time, and unrolled ones."""

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a target to a value as it is."""
        raise NotImplementedError

    def range_loop(self, node: ast.For, bounds: tuple[Any, Any, Any], num_stages: int) -> None:
        """`for target in range(...)` at run time."""
        start, stop, step = typed = self._bounds(bounds)
        targets = assigned_names([ast.Expr(node.target)])
        carry = Carry(self, targets | assigned_names(node.body), (targets, start.value.type))
        region = Region([start.value.type])
        index = region.args[0]
        with self.branch(region, carry.enter(region)):
            self.assign(node.target, tensor(index))
            ends = self._body(node.body, carry)
            yields = [v.value for v in carry.leave(ends)]
            if not carry.flags:
                self.builder.create(Yield, yields)
        inits = [v.value for v in carry.inits]
        types = [v.type for v in inits]
        if carry.flags:
            literal = int(unwrap(bounds[2])) if is_number(bounds[2]) else None
            results = self._counted_while(typed, literal, region, carry, yields)
        else:
            loop = self.builder.create(
                For,
                *(start.value, stop.value, step.value),
                inits,
                num_stages=num_stages,
                result_types=types,
                regions=[region],
            )
            results = loop.results
        self._after(carry, results, node.orelse)

    def _bounds(self, bounds: tuple[Any, Any, Any]) -> Bounds:
        """Start, stop and step in their common integer type."""
        types = [self._bound_type(b, what) for b, what in zip(bounds, ("start", "stop", "step"), strict=True)]
        if is_number(bounds[2]) and unwrap(bounds[2]) == 0:
            self.fail("the step of range must not be 0")
        common = reduce(integer_promote, types, tl.int32)
        if common.is_int_unsigned():
            common = self._unsigned_bounds(common, bounds, types)
        start, stop, step = (self._converted(b, common) for b in bounds)
        return start, stop, step

    def _bound_type(self, bound: Any, what: str) -> tl.dtype:
        """The type of a bound, an integer scalar."""
        plain = bound if isinstance(bound, tensor) else unwrap(bound)
        if isinstance(plain, (bool, int)):
            return literal_type(plain)
        if isinstance(plain, tensor) and plain.dtype.is_int() and not shape_of(plain.value.type):
            return plain.dtype
        self.fail(
            f"the {what} of range must be an integer scalar, got {describe_kind(plain)}",
            help="convert a float with `.to(tl.int32)`; reduce a block to a scalar first",
        )

    def _unsigned_bounds(
        self, common: tl.dtype, bounds: tuple[Any, Any, Any], types: list[tl.dtype]
    ) -> tl.dtype:
        """Unsigned bounds stay so unless one may be negative: a range counts numbers, not bits."""
        negative = (
            unwrap(bound) < 0 if is_number(bound) else type_.is_int_signed()
            for bound, type_ in zip(bounds, types, strict=True)
        )
        if not any(negative):
            return common
        if common.int_bitwidth < 64:
            return tl.int64
        self.fail("the bounds of range are uint64 and signed", help="cast all of them to tl.int64")

    @staticmethod
    def _converted(bound: Any, common: tl.dtype) -> tensor:
        return constant(unwrap(bound), common) if is_number(bound) else cast_element(to_tensor(bound), common)

    def _body(self, body: list[ast.stmt], carry: Carry) -> dict[str, Any]:
        """Compile the body, which ends in a `continue`; the result is the environment at its end."""
        self.frame.loops.append(Loop(frozenset(carry.names)))
        try:
            self.statements([*body, implicit_continue(body[-1])])
        finally:
            self.frame.loops.pop()
        return self.env

    def _counted_while(
        self, bounds: Bounds, step_literal: int | None, region: Region, carry: Carry, yields: list[Value]
    ) -> list[Value]:
        """A range as a `while` over the rounds that remain. `region` is the body, still without its end."""
        start, _, step = bounds
        rounds = self._trip_count(bounds, step_literal)
        index, *carried = region.args
        region.args = [Value(U64, region, "remaining"), *carried, index]
        with self.builder.at(region):
            remaining, following = tensor(region.args[0]) - 1, tensor(index) + step
            self.builder.create(Yield, [remaining.value, *yields, following.value])
        inits = [rounds.value, *(v.value for v in carry.inits), start.value]
        types = [v.type for v in inits]
        before = Region(types, ["remaining", *carry.labels, index.name])
        with self.builder.at(before):
            go_on = compare("!=", tensor(before.args[0]), 0)
            for slot in carry.flags.values():
                go_on = logical("and", go_on, logical_not(tensor(before.args[1 + slot])))
            self.builder.create(Condition, go_on.value, before.args)
        loop = self.builder.create(While, inits, result_types=types, regions=[before, region])
        return loop.results[1:-1]

    def _trip_count(self, bounds: Bounds, step_literal: int | None) -> tensor:
        """How many rounds a range makes, as uint64, in which the differences of 64-bit bounds do not wrap."""
        start, stop, step = bounds
        low, high, stride = (cast_element(v, tl.uint64) for v in bounds)
        zero = constant(0, tl.uint64)

        def up() -> tensor:
            rounds = high - low if step_literal == 1 else (high - low - 1) // stride + 1
            return where(compare("<", start, stop), rounds, zero)

        def down() -> tensor:
            rounds = low - high if step_literal == -1 else (low - high - 1) // (zero - stride) + 1
            return where(compare(">", start, stop), rounds, zero)

        if step_literal is not None:
            return up() if step_literal > 0 else down()
        if step.dtype.is_int_unsigned():
            return up()
        falling = where(compare("<", step, 0), down(), zero)
        return where(compare(">", step, 0), up(), falling)

    def while_loop(self, node: ast.While, condition: Callable[[ast.expr], Any]) -> None:
        """`while`; `condition` compiles the test to an int1 scalar or to a compile-time value."""
        carry = Carry(self, assigned_names(node.body))
        before, after = Region(), Region()
        with self.branch(before, carry.enter(before)):
            test = condition(node.test)
            endless = not isinstance(test, tensor) and bool(unwrap(test))
            go_on = to_tensor(True) if endless else test
        if not isinstance(test, tensor):
            self.refuse_strictly("static while", at=node.test)
        if not isinstance(go_on, tensor):
            discard(before)
            self.statements(node.orelse)
            return
        with self.branch(after, carry.enter(after)):
            yields = [v.value for v in carry.leave(self._body(node.body, carry))]
            self.builder.create(Yield, yields)
        if endless and not carry.flags:
            self.fail("this loop never ends", at=node.test, help="leave it with `break` or `return`")
        self._end_test(before, carry.current(go_on), carry)
        inits = [v.value for v in carry.inits]
        loop = self.builder.create(
            While, inits, result_types=[v.type for v in inits], regions=[before, after]
        )
        self._after(carry, loop.results, node.orelse)

    def _end_test(self, before: Region, go_on: tensor, carry: Carry) -> None:
        """End the region of a `while`'s test; where a flag is set, the test does not run."""
        present = len(before.args)
        for init, label in zip(carry.inits[present:], carry.labels[present:], strict=True):
            before.add_argument(init.value.type, label)
        if carry.flags:
            go_on = self._test_unless_left(before, go_on, carry)
        with self.builder.at(before):
            self.builder.create(Condition, go_on.value, before.args)

    def _test_unless_left(self, before: Region, go_on: tensor, carry: Carry) -> tensor:
        test = [op.detach() for op in list(before.ops)]
        with self.builder.at(before):
            flags = [tensor(before.args[slot]) for slot in carry.flags.values()]
            left = flags[0] if len(flags) == 1 else logical("or", *flags)
            inside = logical_not(left)
            if all(op.is_pure for op in test):
                for op in test:
                    self.builder.insert(op)
                return logical("and", inside, go_on)
            run, skip = Region(), Region()
            for op in test:
                run.append(op)
            with self.builder.at(run):
                self.builder.create(Yield, [go_on.value])
            with self.builder.at(skip):
                self.builder.create(Yield, [to_tensor(False).value])
            choice = self.builder.create(
                If, inside.value, result_types=[go_on.value.type], regions=[run, skip]
            )
            return tensor(choice.result)

    def _after(self, carry: Carry, values: list[Value], orelse: list[ast.stmt]) -> None:
        """Give the names their values after a loop, then compile its `else`."""
        results = [tensor(v) for v in values]
        carry.bind(results)
        self._otherwise(carry.broken(results), orelse)

    def _otherwise(self, broken: Any, orelse: list[ast.stmt]) -> None:
        """The `else` of a loop runs unless a `break` ended the loop."""
        if not orelse or self.frame.stopped() or broken is True:
            return
        if isinstance(broken, tensor):
            self.branches(logical_not(broken), lambda: self.statements(orelse), lambda: None)
        else:
            self.statements(orelse)

    def unrolled_loop(self, node: ast.For, items: list[Any]) -> None:
        """A loop over compile-time items: its body once for each."""
        broken = self._unroll(node, items)
        self._otherwise(broken, node.orelse)

    def _unroll(self, node: ast.For, items: list[Any]) -> Any:
        """Compile the rounds; the result says whether a `break` ended them."""
        for position, item in enumerate(items):
            self._round(node, item)
            broken, returned = self.env[BREAK], self.env[RETURN]
            self.env[CONTINUE], self.env[STOPPED] = False, returned is True
            left = self.pending()
            if broken is True or returned is True:
                self.env[BREAK] = False
                return broken
            if left is not None:
                return self._unroll_unless(left, broken, node, items[position + 1 :])
        return False

    def _round(self, node: ast.For, item: Any) -> None:
        self.frame.loops.append(Loop(None))
        try:
            self.assign(node.target, item)
            self.statements([*node.body, implicit_continue(node.body[-1])])
        finally:
            self.frame.loops.pop()

    def _unroll_unless(self, left: tensor, broken: Any, node: ast.For, items: list[Any]) -> Any:
        def go_on() -> None:
            self.frame.reset_flags()
            self.env[_BROKEN] = self._unroll(node, items)

        def stop() -> None:
            self.env[_BROKEN] = broken
            self.env[BREAK] = False

        self.branches(logical_not(left), go_on, stop)
        return self.env.pop(_BROKEN)
