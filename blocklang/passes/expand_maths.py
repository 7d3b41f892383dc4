"""Write mathematical functions out as their recipes, so that every target computes the same bits.

    kernel @k(%p: ptr<f32>, %x: f32) {
      %y = rsqrt %x : f32
      store %p, %y
      return
    }

becomes

    kernel @k(%p: ptr<f32>, %x: f32) {
      %v0 = constant value=1.0 : f32
      %v1 = sqrt %x : f32
      %y = div %v0, %v1 : f32
      store %p, %y
      return
    }

A function of a float of 8 or 16 bits is computed in f32 and rounded once at the end. `sqrt`, `floor`, `ceil`,
`trunc` and `rint` stay: they are single instructions, or codegen knows how to do them exactly. A function
without a recipe stays too.

Requires: nothing; after it, constants are repeated, and what is uniform stands inside the loops.
Keeps: the result's name and shape; every level.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import F32, SCALARS, BlockType, ScalarType, element_type, with_element
from blocklang.maths.registry import RECIPES, Recipe
from blocklang.maths.steps import DType
from blocklang.ops import elementwise as ops
from blocklang.ops.control import If, Yield
from blocklang.passes.uniform import make_constant

_KEPT = frozenset({"sqrt", "floor", "ceil", "trunc", "rint"})
_FUNCTIONS = (
    *(cls for name, cls in ops.FUNCTIONS.items() if name not in _KEPT),
    *ops.FUNCTIONS_OF_SEVERAL.values(),
)


def expand_maths(kernel: Kernel) -> None:
    """Replace every function that has a recipe."""
    for op in list(kernel.walk()):
        if isinstance(op, _FUNCTIONS):
            recipe = RECIPES.get((op.name, str(_computed_in(op))))
            if recipe is not None:
                _expand(op, recipe)


def _computed_in(op: Operation) -> ScalarType:
    element = element_type(op.result.type)
    assert isinstance(element, ScalarType)
    return F32 if element.is_small_float else element


def _expand(op: Operation, recipe: Recipe) -> None:
    steps = IrSteps(Builder.before_op(op))
    wide = _computed_in(op).name
    arguments = [steps.convert(value, wide) for value in op.operands]
    result = steps.convert(recipe.apply(steps, *arguments), str(element_type(op.result.type)))
    result.name = op.result.name
    op.replace_with(result)


class IrSteps:
    """`blocklang.maths.steps.Steps` over SSA values: every step becomes an operation, or a few.

    Constants are scalars, which stand beside blocks as they are.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def convert(self, a: Value, element: str) -> Value:
        """Cast to an element type, if it is another one."""
        type_ = with_element(a.type, SCALARS[element])
        return a if type_ == a.type else self.builder.value(ops.Cast, a, result_types=[type_])

    def reinterpret(self, a: Value, element: str) -> Value:
        type_ = with_element(a.type, SCALARS[element])
        return a if type_ == a.type else self.builder.value(ops.Bitcast, a, result_types=[type_])

    def constant(self, dtype: DType, value: float | int) -> Value:
        return make_constant(self.builder, value, SCALARS[dtype])

    def _function(self, name: str, a: Value) -> Value:
        return self.builder.value(ops.FUNCTIONS[name], a)

    def _compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Compare, a, b, predicate=predicate)

    def _shift_right(self, kind: str, a: Value, count: Value) -> Value:
        """Shift as the integer type of that kind, `i` or `u`, does."""
        element = element_type(a.type)
        assert isinstance(element, ScalarType)
        shifted_as = f"{kind}{element.bits}"
        operands = [self.reinterpret(v, shifted_as) for v in (a, count)]
        return self.reinterpret(self.builder.value(ops.Shr, *operands), element.name)

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Add, a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Sub, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Mul, a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Div, a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.builder.value(ops.Fma, a, b, c)

    def scale(self, a: Value, shifted: Value) -> Value:
        return self.builder.value(ops.Scale, a, shifted)

    def sqrt(self, a: Value) -> Value:
        return self._function("sqrt", a)

    def minimum(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Minimum, a, b)

    def maximum(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Maximum, a, b)

    def abs(self, a: Value) -> Value:
        return self.builder.value(ops.Abs, a)

    def neg(self, a: Value) -> Value:
        return self.builder.value(ops.Neg, a)

    def round_even(self, a: Value) -> Value:
        return self._function("rint", a)

    def floor(self, a: Value) -> Value:
        return self._function("floor", a)

    def ceil(self, a: Value) -> Value:
        return self._function("ceil", a)

    def trunc(self, a: Value) -> Value:
        return self._function("trunc", a)

    def iadd(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Add, a, b)

    def isub(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Sub, a, b)

    def imul(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Mul, a, b)

    def umulhi32(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.UnsignedMulHigh, a, b)

    def iand(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.And, a, b)

    def ior(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Or, a, b)

    def ixor(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Xor, a, b)

    def shl(self, a: Value, count: Value) -> Value:
        return self.builder.value(ops.Shl, a, count)

    def lshr(self, a: Value, count: Value) -> Value:
        return self._shift_right("u", a, count)

    def ashr(self, a: Value, count: Value) -> Value:
        return self._shift_right("i", a, count)

    def bitcast(self, a: Value, dtype: DType) -> Value:
        return self.reinterpret(a, dtype)

    def cast(self, a: Value, dtype: DType) -> Value:
        return self.convert(a, dtype)

    def lt(self, a: Value, b: Value) -> Value:
        return self._compare("lt", a, b)

    def le(self, a: Value, b: Value) -> Value:
        return self._compare("le", a, b)

    def gt(self, a: Value, b: Value) -> Value:
        return self._compare("gt", a, b)

    def ge(self, a: Value, b: Value) -> Value:
        return self._compare("ge", a, b)

    def eq(self, a: Value, b: Value) -> Value:
        return self._compare("eq", a, b)

    def ne(self, a: Value, b: Value) -> Value:
        return self._compare("ne", a, b)

    def logical_and(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.And, a, b)

    def logical_or(self, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Or, a, b)

    def logical_not(self, a: Value) -> Value:
        return self.builder.value(ops.Xor, a, self.constant("i1", 1))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.builder.value(ops.Select, condition, a, b)

    def rarely(
        self, condition: Value, compute: Callable[[], tuple[Value, ...]], usual: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        """A branch, which a loop over lanes takes if any lane needs it; for blocks, both and a choice."""
        if isinstance(condition.type, BlockType):
            return tuple(self.select(condition, a, b) for a, b in zip(compute(), usual, strict=True))
        then, otherwise = Region(), Region()
        with self.builder.at(then):
            self.builder.create(Yield, compute())
        with self.builder.at(otherwise):
            self.builder.create(Yield, usual)
        types = [value.type for value in usual]
        return tuple(
            self.builder.create(If, condition, result_types=types, regions=[then, otherwise]).results
        )
