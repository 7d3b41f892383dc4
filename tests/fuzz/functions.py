"""Random functions of scalars, with control flow of their own, and what takes them: folds, scans, maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I1, I32, ScalarType, with_shape
from blocklang.ops import control, elementwise, reduction, scan
from tests.fuzz.choices import Choices

Shape = tuple[int, ...]

_LONGEST_ROW = 300  # elements that are scanned one after another by the reference


class Functions:
    """The part of `Expressions` that makes functions."""

    choices: Choices
    builder: Builder
    pool: list[Value]
    in_combiner: bool

    def expression(self, element: ScalarType, wanted: Shape = (), depth: int = 3) -> Value:
        raise NotImplementedError

    def constant(self, value: object, type_: ScalarType = I32) -> Value:
        raise NotImplementedError

    def add(self, cls: type[Operation], *operands: Value, **named: object) -> Value:
        raise NotImplementedError

    def widened(self, wanted: Shape) -> tuple[Shape, int]:
        raise NotImplementedError

    def inside(self, region: Region) -> AbstractContextManager[None]:
        raise NotImplementedError

    def elements_with(self, element: ScalarType, most: int) -> list[ScalarType]:
        raise NotImplementedError

    # ---- functions ----

    def function_of(self, taken: Sequence[ScalarType], given: Sequence[ScalarType], names: str) -> Region:
        """A region from scalars to scalars that reads nothing else."""
        region = Region(taken, [f"{names}{i}" for i in range(len(taken))])
        with self.inside(region):
            self.pool = [*region.args]
            before, self.in_combiner = self.in_combiner, True
            if self.choices.chance(25):
                found = self.branch_or_loop(given)
                self.pool += found
            results = [self.expression(e, (), 2) for e in given]
            self.in_combiner = before
            self.builder.create(control.Yield, results)
        return region

    def branch_or_loop(self, types: Sequence[ScalarType], depth: int = 2) -> list[Value]:
        """An `if`, `for` or `while` whose ways depend on what stands in the pool, and nested ones."""
        kind = self.choices.below(3)
        return (self.branch, self.range_loop, self.countdown)[kind](types, depth)

    def yields(self, types: Sequence[ScalarType], depth: int) -> list[Value]:
        """Values for the end of a region, perhaps by more control flow."""
        if depth > 1 and self.choices.chance(25):
            found = self.branch_or_loop(types, depth - 1)
            self.pool += found
        return [self.expression(t, (), 1) for t in types]

    def branch(self, types: Sequence[ScalarType], depth: int) -> list[Value]:
        condition = self.expression(I1, (), 2)
        arms = [Region(), Region()]
        for arm in arms:
            with self.inside(arm):
                self.builder.create(control.Yield, self.yields(types, depth))
        return self.builder.create(control.If, condition, result_types=types, regions=arms).results

    def small(self, low: int, count: int) -> Value:
        """An i32 in [low, low + count) that may differ from lane to lane."""
        any_number = self.expression(I32, (), 1)
        rest = self.add(elementwise.And, any_number, self.constant(7))
        return self.add(
            elementwise.Add,
            self.add(elementwise.Rem, rest, self.constant(count)),
            self.constant(low),
        )

    def range_loop(self, types: Sequence[ScalarType], depth: int) -> list[Value]:
        step = self.constant(1)
        if self.choices.chance(40):  # 1, 2 or 3, up or down
            size = self.small(1, 3)
            down = self.add(elementwise.Sub, self.constant(0), size)
            step = self.add(elementwise.Select, self.expression(I1, (), 1), size, down)
        bounds = [self.small(-2, 4), self.small(0, 5), step]
        inits = [self.expression(t, (), 1) for t in types]
        region = Region([I32, *types], ["k", *(f"c{i}" for i in range(len(types)))])
        with self.inside(region):
            self.pool = [*self.pool, *region.args]
            self.builder.create(control.Yield, self.yields(types, depth))
        return self.builder.create(
            control.For, *bounds, inits=inits, result_types=types, regions=[region]
        ).results

    def countdown(self, types: Sequence[ScalarType], depth: int) -> list[Value]:
        """A `while` that counts down from a number of each lane's own; it may end sooner."""
        carried = [I32, *types]
        inits = [self.small(0, 5), *(self.expression(t, (), 1) for t in types)]
        before, after = Region(carried, ["n"]), Region(carried, ["m"])
        with self.inside(before):
            self.pool = [*self.pool, *before.args]
            going = self.add(elementwise.Compare, before.args[0], self.constant(0), predicate="gt")
            if self.choices.chance(40):
                going = self.add(elementwise.And, going, self.expression(I1, (), 1))
            passed = self.yields(types, 1) if self.choices.chance(30) else before.args[1:]
            self.builder.create(control.Condition, going, [before.args[0], *passed])
        with self.inside(after):
            self.pool = [*self.pool, *after.args]
            left = self.add(elementwise.Sub, after.args[0], self.constant(1))
            self.builder.create(control.Yield, [left, *self.yields(types, depth)])
        op = self.builder.create(control.While, inits, result_types=carried, regions=[before, after])
        return op.results[1:]

    # ---- what takes them ----

    def reduced_with(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        source, axis = self.widened(wanted)
        elements = self.elements_with(element, 2)
        inputs = [self.expression(e, source, depth) for e in elements]
        op = self.builder.create(
            reduction.ReduceWith,
            inputs,
            axis=axis,
            result_types=[with_shape(e, wanted) for e in elements],
            regions=[self.function_of(elements * 2, elements, "a")],
        )
        self.pool += op.results[1:]
        return op.results[0]

    def scanned(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        axis = self.choices.below(len(wanted))
        elements = self.elements_with(element, 1)
        inputs = [self.expression(e, wanted, depth) for e in elements]
        op = self.builder.create(
            scan.Scan,
            inputs,
            axis=axis,
            reverse=self.choices.chance(40),
            result_types=[v.type for v in inputs],
            regions=[self.function_of(elements * 2, elements, "a")],
        )
        self.pool += op.results[1:]
        return op.results[0]

    def mapped(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        packs = [n for n in (1, 2, 3, 4) if wanted[-1] % n == 0]
        pack = self.choices.pick(packs) if self.choices.chance(30) else 1
        taken, given = self.elements_with(element, 2), self.elements_with(element, 1)
        inputs = [self.expression(e, wanted, depth) for e in taken]
        op = self.builder.create(
            scan.MapElementwise,
            inputs,
            pack=pack,
            result_types=[with_shape(e, wanted) for e in given],
            regions=[
                self.function_of(
                    [e for e in taken for _ in range(pack)], [e for e in given for _ in range(pack)], "x"
                )
            ],
        )
        self.pool += op.results[1:]
        return op.results[0]

    @staticmethod
    def can_scan(wanted: Shape) -> bool:
        """True for blocks whose reference does not take long."""
        return bool(wanted) and math.prod(wanted) > 0 and max(wanted) <= _LONGEST_ROW
