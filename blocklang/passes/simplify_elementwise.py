"""Rules of `canonicalise` for lane-wise operations: identities that keep every bit, constants on the right.

    %a = add %c1, %x : i32
    %b = add %a, %c2 : i32

becomes

    %a = add %x, %c1 : i32
    %b = add %x, %c12 : i32

Integers are a ring modulo 2 to the width; floats have only the identities that hold for zeros of both
signs, infinities and NaN (whose payload nobody promises): x - 0.0, x + -0.0, x * 1.0, x / 1.0. What holds
for all lanes at once is computed as a scalar: a splat stays outside, and beside a block it is not needed at
all.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Value
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import ScalarType, ShapedType, element_type
from blocklang.ops import elementwise as ops
from blocklang.ops.atomics import Atomic
from blocklang.ops.memory import Load, Store
from blocklang.passes.fold import fold, fold_integers, is_foldable
from blocklang.passes.uniform import Number, constant_of, is_uniform, make_constant, replace, scalar_of

_COMMUTATIVE = (ops.Add, ops.Mul, ops.Minimum, ops.Maximum, ops.And, ops.Or, ops.Xor, ops.UnsignedMulHigh)
_ASSOCIATIVE = (ops.Add, ops.Mul, ops.Minimum, ops.Maximum, ops.And, ops.Or, ops.Xor)  # on integers
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def elementwise_rules(kind: type[Operation]) -> tuple[Rule, ...]:
    """The rules for a class of operations that are lane-wise or access memory, in order; none for others."""
    if not issubclass(kind, (ops.Elementwise, Store, Atomic)):
        return ()
    folding = (_fold,) if is_foldable(kind) else ()
    return (*folding, _keep_scalars, *_RULES.get(kind, ()))


def _fold(op: Operation) -> bool:
    number = fold(op)
    if number is None:
        return False
    replace(op, make_constant(Builder.before_op(op), number, op.result.type))
    return True


def _keep_scalars(op: Operation) -> bool:
    """Read scalars in place of uniform blocks: beside a block of other lanes, or all under one splat."""
    if not any(isinstance(v.type, ShapedType) for v in op.operands):
        return False
    uniform = [i for i, v in enumerate(op.operands) if isinstance(v.type, ShapedType) and is_uniform(v)]
    others = [v for v in op.operands if not is_uniform(v)]
    if isinstance(op, (Load, Store, Atomic)):
        uniform = [i for i in uniform if i != 0]  # the pointers give the shape
    elif not others:
        return bool(uniform) and _compute_scalar(op)
    builder = Builder.before_op(op)
    for index in uniform:
        op.set_operand(index, _scalar(op.operands[index], builder))
    return bool(uniform)


def _scalar(value: Value, builder: Builder) -> Value:
    scalar = scalar_of(value, builder)
    assert scalar is not None, "the value is uniform"
    return scalar


def _compute_scalar(op: Operation) -> bool:
    builder = Builder.before_op(op)
    operands = [_scalar(v, builder) for v in op.operands]
    scalar = builder.create(type(op), *operands, result_types=[element_type(op.result.type)], **op.attributes)
    replace(op, scalar.result)
    return True


# ---- binary operations ----


def _all_ones(element: ScalarType) -> int:
    return -1 if element.is_signed else element.maximum


# x op constant = x
_IDENTITY: dict[type[Operation], Callable[[ScalarType], int]] = {
    ops.Add: lambda _: 0,
    ops.Sub: lambda _: 0,
    ops.Mul: lambda _: 1,
    ops.IntegerDiv: lambda _: 1,
    ops.Rem: lambda _: 0,
    ops.And: _all_ones,
    ops.Or: lambda _: 0,
    ops.Xor: lambda _: 0,
    ops.Shl: lambda _: 0,
    ops.Shr: lambda _: 0,
    ops.Minimum: lambda element: element.maximum,
    ops.Maximum: lambda element: element.minimum,
}
_FLOAT_IDENTITY: dict[type[Operation], str] = {
    ops.Add: "-0.0",
    ops.Sub: "0.0",
    ops.Mul: "1.0",
    ops.Div: "1.0",
}

# x op constant = another constant
_ABSORBING: dict[type[Operation], Callable[[ScalarType], tuple[int, int]]] = {
    ops.Mul: lambda _: (0, 0),
    ops.IntegerDiv: lambda _: (0, 0),
    ops.Rem: lambda _: (1, 0),
    ops.And: lambda _: (0, 0),
    ops.Or: lambda element: (_all_ones(element), _all_ones(element)),
    ops.Minimum: lambda element: (element.minimum, element.minimum),
    ops.Maximum: lambda element: (element.maximum, element.maximum),
}


def _element(value: Value) -> ScalarType:
    element = element_type(value.type)
    assert isinstance(element, ScalarType)
    return element


def _constant_to_the_right(op: Operation) -> bool:
    lhs, rhs = op.operands
    if constant_of(lhs) is None or constant_of(rhs) is not None:
        return False
    op.set_operand(0, rhs)
    op.set_operand(1, lhs)
    if isinstance(op, ops.Compare):
        op.attributes["predicate"] = _MIRRORED[op.predicate]
    return True


def _neutral(op: Operation) -> bool:
    """Drop an operation that changes nothing."""
    lhs, rhs = op.operands
    number, element = constant_of(rhs), _element(rhs)
    if number is None:
        return False
    if element.is_float8:
        return False  # an infinity saturates
    if element.is_float:
        # Text tells 0.0 from -0.0.
        neutral = type(op) in _FLOAT_IDENTITY and repr(number) == _FLOAT_IDENTITY[type(op)]
    else:
        neutral = number == _IDENTITY[type(op)](element)
    if neutral:
        replace(op, lhs)
    return neutral


def _absorbed(op: Operation) -> bool:
    """Replace an operation that gives one number whatever x is."""
    number, element = constant_of(op.operands[1]), _element(op.operands[1])
    if number is None or element.is_float:
        return False
    absorbing, result = _ABSORBING[type(op)](element)
    if number != absorbing:
        return False
    _replace_by_number(op, result)
    return True


def _replace_by_number(op: Operation, number: Number) -> None:
    replace(op, make_constant(Builder.before_op(op), number, op.result.type))


def _of_itself(op: Operation) -> bool:
    """x op x, for integers; a minimum or maximum of any type."""
    lhs, rhs = op.operands
    if lhs is not rhs or (_element(lhs).is_float and not isinstance(op, (ops.Minimum, ops.Maximum))):
        return False
    if isinstance(op, (ops.Sub, ops.Xor, ops.Rem)):
        _replace_by_number(op, 0)
    else:
        replace(op, lhs)
    return True


def _chained(op: Operation) -> bool:
    """(x op c1) op c2 = x op (c1 op c2), for integers."""
    lhs, rhs = op.operands
    inner, second = lhs.owner, constant_of(rhs)
    if type(inner) is not type(op) or second is None or _element(lhs).is_float:
        return False
    x, first = inner.operands[0], constant_of(inner.operands[1])
    if first is None:
        return False
    builder, element = Builder.before_op(op), _element(rhs)
    constant = make_constant(builder, fold_integers(type(op), int(first), int(second), element), element)
    replace(op, builder.value(type(op), x, constant))
    return True


def _subtracted_constant(op: Operation) -> bool:
    """x - c = x + -c, for signed integers, so that chains of both meet."""
    lhs, rhs = op.operands
    number, element = constant_of(rhs), _element(rhs)
    if number is None or not element.is_signed:
        return False
    builder = Builder.before_op(op)
    replace(op, builder.value(ops.Add, lhs, make_constant(builder, -int(number), rhs.type)))
    return True


def _negated_compare(op: Operation) -> bool:
    """not (x < y) = x >= y; for floats only equality can be negated, since NaN fails the others."""
    compare = op.operands[0].owner
    if constant_of(op.operands[1]) is not True or not isinstance(compare, ops.Compare):
        return False
    element = element_type(compare.lhs.type)
    ordered = isinstance(element, ScalarType) and element.is_float
    if ordered and compare.predicate not in ("eq", "ne"):
        return False
    predicate = _NEGATED[compare.predicate]
    replace(op, Builder.before_op(op).value(ops.Compare, compare.lhs, compare.rhs, predicate=predicate))
    return True


# ---- comparison, choice, conversion ----


def _compared_with_itself(op: Operation) -> bool:
    lhs, rhs = op.operands
    if lhs is not rhs:
        return False
    element = element_type(lhs.type)
    strict = op.attributes["predicate"] in ("lt", "gt")
    if isinstance(element, ScalarType) and element.is_float and not strict:
        return False  # a NaN is not equal to itself
    _replace_by_number(op, op.attributes["predicate"] in ("le", "ge", "eq"))
    return True


def _decided_select(op: Operation) -> bool:
    condition, if_true, if_false = op.operands
    decided = constant_of(condition)
    if decided is not None:
        replace(op, if_true if decided else if_false)
    elif if_true is if_false:
        replace(op, if_true)
    elif (constant_of(if_true), constant_of(if_false)) == (True, False) and _is_bool(if_true):
        replace(op, condition)
    else:
        return False
    return True


def _is_bool(value: Value) -> bool:
    element = element_type(value.type)
    return isinstance(element, ScalarType) and element.bits == 1


def _same_type(op: Operation) -> bool:
    if op.operands[0].type != op.result.type:
        return False
    replace(op, op.operands[0])
    return True


_PRECISION = {name: form.fraction + 1 for name, form in FLOAT8.items()} | {
    "f16": 11,
    "bf16": 8,
    "f32": 24,
    "f64": 53,
}


def is_exact(source: ScalarType, target: ScalarType) -> bool:
    """True if every value of `source` is one of `target`."""
    if source == target:
        return True
    if source.is_float:
        return target.is_float and target.bits > source.bits
    magnitude = source.bits - source.is_signed
    if target.is_float:
        return magnitude <= _PRECISION[target.name]
    return magnitude <= target.bits - target.is_signed and (target.is_signed or not source.is_signed)


def _cast_of_cast(op: Operation) -> bool:
    """Cast once, where the type between loses nothing that the last one keeps."""
    inner = op.operands[0].owner
    if not isinstance(inner, ops.Cast):
        return False
    types = [element_type(v.type) for v in (inner.source, inner.result, op.result)]
    scalars = [t for t in types if isinstance(t, ScalarType)]
    if scalars[0].is_float8 and types[0] == types[2]:
        return False  # an infinity saturates on its way back
    if len(scalars) != len(types) or not _may_skip(*scalars):
        return False
    if op.attributes and scalars[0].is_integer:
        return False  # an integer has no rounding toward zero
    builder = Builder.before_op(op)
    replace(op, builder.value(ops.Cast, inner.source, result_types=[op.result.type], **op.attributes))
    return True


def _may_skip(source: ScalarType, between: ScalarType, target: ScalarType) -> bool:
    if not is_exact(source, between):
        whole = source.is_integer and between.is_integer and target.is_integer
        return whole and between.bits >= target.bits > 1
    if source.is_integer and between.is_float:
        # A float saturates where an integer wraps, and may be rounded on the way to a half.
        return is_exact(source, target) or target.bits == 1 or (target.is_float and target.bits > 16)
    return True


def _bitcast_of_bitcast(op: Operation) -> bool:
    inner = op.operands[0].owner
    if not isinstance(inner, ops.Bitcast):
        return False
    replace(op, Builder.before_op(op).value(ops.Bitcast, inner.source, result_types=[op.result.type]))
    return True


def _involution(op: Operation) -> bool:
    """-(-x) = x"""
    inner = op.operands[0].owner
    if not isinstance(inner, ops.Neg):
        return False
    replace(op, inner.source)
    return True


def _idempotent(op: Operation) -> bool:
    """| |x| | = |x|"""
    if not isinstance(op.operands[0].owner, ops.Abs):
        return False
    replace(op, op.operands[0])
    return True


Rule = Callable[[Operation], bool]

_SELF = (ops.Sub, ops.Rem, ops.And, ops.Or, ops.Xor, ops.Minimum, ops.Maximum)


def _rules_of(cls: type[Operation]) -> tuple[Rule, ...]:
    rules: list[tuple[bool, Rule]] = [
        (cls in _COMMUTATIVE, _constant_to_the_right),
        (cls in _IDENTITY or cls in _FLOAT_IDENTITY, _neutral),
        (cls in _ABSORBING, _absorbed),
        (cls in _SELF, _of_itself),
        (cls in _ASSOCIATIVE, _chained),
        (cls is ops.Sub, _subtracted_constant),
        (cls is ops.Xor, _negated_compare),
    ]
    return tuple(rule for applies, rule in rules if applies)


_RULES: dict[type[Operation], tuple[Rule, ...]] = {
    cls: _rules_of(cls) for cls in (*_IDENTITY, ops.Div, ops.UnsignedMulHigh)
} | {
    ops.Compare: (_constant_to_the_right, _compared_with_itself),
    ops.Select: (_decided_select,),
    ops.Cast: (_same_type, _cast_of_cast),
    ops.Bitcast: (_same_type, _bitcast_of_bitcast),
    ops.Neg: (_involution,),
    ops.Abs: (_idempotent,),
}
