"""Random kernels whose loops and branches move pointers and indices: what `split_pointers` is for.

Three values walk: a block of pointers, a scalar pointer and a block of integers. A move is a step (uniform,
of an invariant block, or different in every lane), a use, or a loop or `if` with moves inside. No walk leaves
the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from blocklang.interpreter import run_kernel
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Region, Value
from blocklang.ir.types import I8, I32, I64, U8, U32, BlockType, PointerType, ScalarType, shape_of
from blocklang.ops import control, creation, elementwise, memory

LANES = 4
SIZE = 4096
OUTPUTS = 256


class _Walk:
    def __init__(self, draw: Any, kernel: Kernel) -> None:
        self.draw = draw
        self.builder = Builder(kernel.body)
        self.x, self.out, self.n = kernel.args
        self.stored = 0
        middle = self.number(I32, SIZE // 2)
        lanes = self.builder.value(creation.Arange, start=0, end=LANES)
        pointer = self.builder.value(memory.Offset, self.x, middle)
        self.state = [
            self.builder.value(memory.Offset, pointer, lanes),
            pointer,
            self.builder.value(elementwise.Add, lanes, middle),
        ]
        self.invariant = self.builder.value(elementwise.And, lanes, self.n)

    def one_of(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def number(self, element: ScalarType, value: int, lanes: bool = False) -> Value:
        type_ = BlockType(element, (LANES,)) if lanes else element
        return self.builder.value(creation.Constant, value=value, result_types=[type_])

    def small(self, element: ScalarType) -> Value:
        """A uniform number of -2 to 3, as a scalar, a constant block, or a splat."""
        value = self.draw(st.integers(0 if element.kind == "uint" else -2, 3))
        form = self.one_of(["scalar", "block", "splat"])
        number = self.number(element, value, form == "block")
        if form != "splat":
            return number
        type_ = BlockType(element, (LANES,))
        return self.builder.value(creation.Splat, number, result_types=[type_])

    # ---- moves: each takes the three values and gives the three after it ----

    def step(self, state: list[Value], depth: int) -> list[Value]:
        index = self.draw(st.integers(0, 2))
        value = state[index]
        if index == 2:
            addend = self.small(I32)
            cls = self.one_of([elementwise.Add, elementwise.Sub])
            swapped = cls is elementwise.Add and self.draw(st.booleans())
            moved = self.builder.value(cls, *((addend, value) if swapped else (value, addend)))
        else:
            addend = self.small(self.one_of([I8, I32, I64, U8, U32]))
            if shape_of(value.type) == () and shape_of(addend.type):
                addend = self.number(I32, 1)
            if index == 0:
                addend = self.one_of([addend, addend, self.invariant, self.varying(value)])
            moved = self.builder.value(memory.Offset, value, addend)
        return [moved if i == index else v for i, v in enumerate(state)]

    def varying(self, pointers: Value) -> Value:
        loaded = self.builder.value(memory.Load, pointers)
        return self.builder.value(elementwise.And, loaded, self.number(I32, 1))

    def use(self, state: list[Value], depth: int) -> list[Value]:
        index = self.draw(st.integers(0, 2))
        data = state[2] if index == 2 else self.builder.value(memory.Load, state[index])
        place = self.builder.value(creation.Arange, start=self.stored, end=self.stored + LANES)
        self.stored = (self.stored + LANES) % OUTPUTS
        pointers = self.builder.value(memory.Offset, self.out, place)
        old = self.builder.value(memory.Load, pointers)
        mixed = self.builder.value(elementwise.Mul, old, self.number(I32, 31))
        self.builder.create(memory.Store, pointers, self.builder.value(elementwise.Add, mixed, data))
        return state

    def body(self, state: list[Value], depth: int) -> list[Value]:
        for _ in range(self.draw(st.integers(0, 3))):
            moves = [self.step, self.step, self.step, self.use]
            moves += [self.for_, self.while_, self.if_] if depth < 3 else []
            state = self.one_of(moves)(state, depth + 1)
        return state

    def for_(self, state: list[Value], depth: int) -> list[Value]:
        types = [v.type for v in state]
        region = Region([I32, *types])
        bounds = [self.number(I32, 0), self.one_of([self.n, self.number(I32, 2)]), self.number(I32, 1)]
        with self.builder.at(region):
            self.builder.create(control.Yield, self.body(region.args[1:], depth))
        loop = self.builder.create(control.For, *bounds, state, result_types=types, regions=[region])
        return loop.results

    def while_(self, state: list[Value], depth: int) -> list[Value]:
        types = [I32, *(v.type for v in state)]
        before, after = Region(types), Region(types)
        count = self.number(I32, self.draw(st.integers(0, 2)))
        with self.builder.at(before):
            go = self.builder.value(elementwise.Compare, before.args[0], self.number(I32, 0), predicate="gt")
            passed = self.body(before.args[1:], depth)
            self.builder.create(control.Condition, go, [before.args[0], *passed])
        with self.builder.at(after):
            less = self.builder.value(elementwise.Sub, after.args[0], self.number(I32, 1))
            self.builder.create(control.Yield, [less, *self.body(after.args[1:], depth)])
        loop = self.builder.create(
            control.While, [count, *state], result_types=types, regions=[before, after]
        )
        return loop.results[1:]

    def if_(self, state: list[Value], depth: int) -> list[Value]:
        condition = self.builder.value(
            elementwise.Compare,
            self.n,
            self.number(I32, self.draw(st.integers(0, 3))),
            predicate=self.one_of(elementwise.PREDICATES),
        )
        regions = [Region(), Region()]
        for region in regions:
            with self.builder.at(region):
                self.builder.create(control.Yield, self.body(state, depth))
        types = [v.type for v in state]
        return self.builder.create(control.If, condition, result_types=types, regions=regions).results


@st.composite
def random_walks(draw: st.DrawFn) -> Kernel:
    """A kernel of level block with arguments x, out and n."""
    kernel = Kernel("walk", [PointerType(I32), PointerType(I32), I32], ["x", "out", "n"])
    walk = _Walk(draw, kernel)
    state = walk.state
    for _ in range(draw(st.integers(1, 2))):
        state = walk.one_of([walk.for_, walk.while_, walk.for_, walk.body])(state, 0)
    for _ in range(3):
        walk.use(state, 0)
    walk.builder.create(control.Return)
    return kernel


def outputs_of_walk(kernel: Kernel, n: int = 2) -> list[npt.NDArray[Any]]:
    """What a walk writes, for fixed inputs."""
    x = (np.arange(SIZE, dtype=np.int64) * 2654435761 % 1000003).astype(np.int32)
    out = np.zeros(OUTPUTS, np.int32)
    run_kernel(kernel, [x, out, n], (1,))
    return [out]
