"""Expressions. Operators are Python's own: a `tensor` records operations, numbers are folded."""

from __future__ import annotations

import ast
import enum
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import BlocklangError
from blocklang.frontend.base import fields
from blocklang.frontend.branches import MISSING, discard
from blocklang.frontend.lookup import Lookup
from blocklang.frontend.scope import Undefined
from blocklang.frontend.values import describe_kind, is_number, same_compile_time
from blocklang.ir import Region
from blocklang.ir.types import shape_of
from blocklang.language import dtypes as tl
from blocklang.language.arithmetic import logical, logical_not, truth
from blocklang.language.casting import cast_element
from blocklang.language.compound import Compound, children, equal, is_alike, remake, unequal
from blocklang.language.constexpr import constexpr, is_compile_time, unwrap
from blocklang.language.hints import condition as tl_condition
from blocklang.language.promotion import computation_type
from blocklang.language.shape import item
from blocklang.language.tensor import is_block, tensor, to_tensor
from blocklang.ops.control import If, Yield

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
    ast.Invert: ("~", operator.invert),
}
# What Python raises when an operator or function does not accept its operands.
PYTHON_REFUSALS = (TypeError, ValueError, ArithmeticError, LookupError)

# Plain integers are of any size; `2**1000000000` would hold up the compiler, and Python refuses to print it.
_MOST_BITS = 4096


def _bits_of_result(symbol: str, *operands: Any) -> int:
    """About how many bits a power or shift of plain integers has; 0 for anything else."""
    if symbol not in ("**", "<<") or not all(type(operand) is int for operand in operands):
        return 0
    base, amount = operands
    if symbol == "**":
        return (abs(base).bit_length() - 1) * amount if base else 0
    return base.bit_length() + amount if base else 0


@dataclass(frozen=True)
class _Arm:
    """The place of a leaf among the results of a conditional expression."""

    index: int


class Expressions(Lookup):
    """Every kind of expression but calls."""

    @fields("value")
    def visit_Constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, (bool, int, float, str)):
            return node.value
        kind = "`...`" if node.value is ... else f"a literal of type {type(node.value).__name__}"
        self.refuse(kind)

    @fields("elts")
    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.items(node.elts))

    @fields("elts")
    def visit_List(self, node: ast.List) -> Any:
        return tuple(self.items(node.elts))

    def items(self, nodes: list[ast.expr]) -> list[Any]:
        """The values of a list of expressions, with `*tuple` spread out."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                spread = unwrap(self.visit(node.value))
                if not isinstance(spread, (tuple, list)):
                    self.fail(f"`*` needs a tuple, got {describe_kind(spread)}", at=node)
                values += spread
            else:
                values.append(self.visit(node))
        return values

    @fields("left", "op", "right")
    def visit_BinOp(self, node: ast.BinOp) -> Any:
        symbol, function = _BINARY.get(type(node.op), (None, None))
        if symbol is None or function is None:
            self.refuse("`@`", help="multiply matrices with `tl.dot`")
        return self.apply(symbol, function, self.visit(node.left), self.visit(node.right))

    def apply(self, symbol: str, function: Callable[..., Any], *operands: Any) -> Any:
        """Apply an operator; what Python does not accept becomes an error on the user's line."""
        for operand in operands:
            self._check_operand(symbol, operand)
        if _bits_of_result(symbol, *map(unwrap, operands)) > _MOST_BITS:
            self.fail(f"`{symbol}` cannot be computed: the integer would have more than {_MOST_BITS} bits")
        try:
            return function(*operands)
        except BlocklangError:
            raise
        except PYTHON_REFUSALS as error:
            self.fail(f"`{symbol}` cannot be computed: {error}")

    def _check_operand(self, symbol: str, operand: Any) -> None:
        plain = unwrap(operand)
        if plain is None:
            self.fail(f"`{symbol}` cannot take None", help="test `x is None` first")
        if not isinstance(
            plain, (tensor, bool, int, float, str, tuple, list, tl.dtype, enum.Enum, Compound)
        ) and not hasattr(plain, "__index__"):
            self.check_visible(plain, "this value")

    @fields("op", "operand")
    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(value, tensor):
                self._check_bool("not", value)
                return logical_not(value)
            return not unwrap(value)
        symbol, function = _UNARY[type(node.op)]
        if symbol == "+" and isinstance(value, tensor):
            self.refuse_strictly("unary plus")
        return self.apply(symbol, function, value)

    @fields("left", "ops", "comparators")
    def visit_Compare(self, node: ast.Compare) -> Any:
        return self._chain(self.visit(node.left), node.ops, node.comparators)

    def _chain(self, left: Any, ops: list[ast.cmpop], nodes: list[ast.expr]) -> Any:
        right = self.visit(nodes[0])
        first = self._compare(left, ops[0], right)
        if len(ops) == 1:
            return first
        return self.short_circuit("and", first, lambda: self._chain(right, ops[1:], nodes[1:]))

    def _compare(self, left: Any, op: ast.cmpop, right: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = unwrap(left) is unwrap(right)
            return same if isinstance(op, ast.Is) else not same
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._contains(left, right) == isinstance(op, ast.In)
        symbol, function = _COMPARE[type(op)]
        if symbol in ("==", "!=") and children(unwrap(left)) is not None:
            if not is_compile_time(left) or not is_compile_time(right):
                self.refuse_strictly("compared tuples")
            return self.apply(symbol, equal if symbol == "==" else unequal, left, right)
        if unwrap(left) is None or unwrap(right) is None:
            if symbol not in ("==", "!="):
                self.fail(f"`{symbol}` cannot take None", help="test `x is None` first")
            return (unwrap(left) is unwrap(right)) == (symbol == "==")
        return self.apply(symbol, function, left, right)

    def _contains(self, value: Any, container: Any) -> bool:
        if not is_compile_time(value) or not is_compile_time(container):
            self.refuse("`in` on run-time values", help="compare with each: `x == 1 or x == 2`")
        try:
            return unwrap(value) in [unwrap(v) for v in unwrap(container)]
        except TypeError as error:
            self.fail(f"`in` cannot be computed: {error}")

    # ---- and, or, conditional expressions ----

    @fields("op", "values")
    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._bool_op("and" if isinstance(node.op, ast.And) else "or", node.values)

    def _bool_op(self, name: str, nodes: list[ast.expr]) -> Any:
        first = self.visit(nodes[0])
        if len(nodes) == 1:
            return first
        return self.short_circuit(name, first, lambda: self._bool_op(name, nodes[1:]))

    def short_circuit(self, name: str, first: Any, rest: Callable[[], Any]) -> Any:
        """`first and rest` or `first or rest`, as Python: the rest is evaluated only if it decides."""
        if not isinstance(first, tensor):
            decided = bool(unwrap(first)) == (name == "or")
            return first if decided else rest()
        self._check_bool(name, first)
        if is_block(first):
            return logical(name, first, rest())
        region = Region()
        with self.builder.at(region):
            second = rest()
        if not isinstance(second, tensor) and not is_number(second):
            discard(region)
            self.fail(f"`{name}` cannot give {describe_kind(first)} or {describe_kind(second)}")
        if isinstance(second, tensor):
            self._check_bool(name, second)
        both_bool = first.dtype.is_int1() and (is_number(second) or to_tensor(second).dtype.is_int1())
        if both_bool and all(op.is_pure for op in region.ops):
            for op in list(region.ops):
                self.builder.insert(op.detach())
            return logical(name, first, bool(unwrap(second)) if is_number(second) else second)
        return self._branching(name, first, region, second)

    def _check_bool(self, name: str, value: tensor) -> None:
        if not value.dtype.is_int1():
            self.refuse_strictly(
                "operand of and, or, not", name, value.dtype, value.dtype.primitive_bitwidth, at=None
            )

    def _branching(self, name: str, first: tensor, region: Region, second: Any) -> tensor:
        """The operand that decides, from an `if`: both in their common type."""
        own = to_tensor(second) if isinstance(second, tensor) else None
        with self.builder.at(region):
            second = own if own is not None else to_tensor(second)
        if is_block(second) and not (first.dtype.is_int1() and second.dtype.is_int1()):
            self.fail(f"`{name}` cannot mix {first.value.type} and {second.value.type}", help="compare first")
        weak = own is None
        common = computation_type(first.dtype, False, second.dtype, weak)
        other = Region()
        with self.builder.at(region):
            taken = cast_element(second, common)
            self.builder.create(Yield, [taken.value])
        with self.builder.at(other):
            kept = cast_element(first, common)
            if is_block(second):
                from blocklang.language.broadcasting import spread

                kept = spread(kept, shape_of(second.value.type))
            self.builder.create(Yield, [kept.value])
        regions = [region, other] if name == "and" else [other, region]
        condition = truth(first, name)
        return tensor(
            self.builder.create(If, condition.value, result_types=[taken.value.type], regions=regions).result
        )

    def condition(self, node: ast.expr) -> Any:
        """The test of an `if` or `while`: an int1 scalar, or a compile-time value."""
        value = self.visit(node)
        if isinstance(value, tl_condition):
            value = value.arg1
        if not isinstance(value, tensor):
            return value
        if is_block(value):
            if value.numel.value != 1:
                self.fail(
                    f"a condition must be a scalar, got {value.value.type}",
                    at=node,
                    help="choose lane by lane with `tl.where`, or reduce with `tl.max(x, axis=0)`",
                )
            value = item(value)
        if value.dtype.is_ptr():
            return cast_element(value, tl.int1)
        return truth(value, "if")

    @fields("test", "body", "orelse")
    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.condition(node.test)
        if not isinstance(test, tensor):
            return self.visit(node.body if unwrap(test) else node.orelse)
        regions, values = (Region(), Region()), []
        for region, side in zip(regions, (node.body, node.orelse), strict=True):
            with self.builder.at(region):
                values.append(self.visit(side))
        sides: tuple[list[tensor], list[tensor]] = ([], [])
        merged = self._merged_arms(values[0], values[1], regions, sides)
        for region, side_values in zip(regions, sides, strict=True):
            with self.builder.at(region):
                self.builder.create(Yield, [v.value for v in side_values])
        types = [v.value.type for v in sides[0]]
        op = self.builder.create(If, test.value, result_types=types, regions=regions)
        results = [tensor(r) for r in op.results]

        def fill(value: Any) -> Any:
            if isinstance(value, _Arm):
                return results[value.index]
            items = children(value)
            return value if items is None else remake(value, [fill(item) for item in items])

        return fill(merged)

    def _merged_arms(
        self, a: Any, b: Any, regions: tuple[Region, Region], sides: tuple[list[tensor], list[tensor]]
    ) -> Any:
        """Both arms as one tree, with an `_Arm` for each leaf whose values are added to `sides`."""
        if is_alike(a, b):
            self.refuse_strictly("ternary", describe_kind(a), describe_kind(b))
            pairs = zip(children(a) or (), children(b) or (), strict=True)
            return remake(a, [self._merged_arms(x, y, regions, sides) for x, y in pairs])
        if children(a) is not None or children(b) is not None:
            self.fail(
                f"the two values are {describe_kind(a)} and {describe_kind(b)}",
                help="both must have one form",
            )
        first, second = self._arm(a, b, regions[0]), self._arm(b, a, regions[1])
        if first is None or second is None:
            self.refuse_strictly("ternary", describe_kind(a), describe_kind(b))
        if first is None and second is None and same_compile_time(a, b):
            return a
        if first is None or second is None or first.value.type != second.value.type:
            self.fail(
                f"the two values are {describe_kind(a)} and {describe_kind(b)}",
                help="both must have one type; cast with `.to(...)`",
            )
        sides[0].append(first)
        sides[1].append(second)
        return _Arm(len(sides[0]) - 1)

    def _arm(self, value: Any, other: Any, region: Region) -> tensor | None:
        if isinstance(value, tensor):
            return value
        if not is_number(value):
            return None
        with self.builder.at(region):
            own = to_tensor(value)
            if isinstance(other, tensor) and not is_block(other) and not other.dtype.is_ptr():
                common = computation_type(own.dtype, True, other.dtype, False)
                if common == other.dtype:
                    from blocklang.language.tensor import constant

                    return constant(unwrap(value), common)
            return own

    # ---- parts of values ----

    @fields("value", "attr")
    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.visit(node.value), node)

    @fields("value", "slice")
    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(value, tensor):
            return value[index]
        plain, place = unwrap(value), unwrap(index)
        if not isinstance(plain, (tuple, list, str)):
            self.fail(f"{describe_kind(value)} has no parts", help="tuples and blocks can be indexed")
        if isinstance(place, tensor):
            self.fail(
                "a tuple is indexed with a number known at compile time",
                help="loop with `tl.static_range`, or annotate the index `: tl.constexpr`",
            )
        try:
            return plain[place]
        except PYTHON_REFUSALS as error:
            self.fail(f"{error}", at=node.slice)

    @fields("lower", "upper", "step")
    def visit_Slice(self, node: ast.Slice) -> Any:
        parts = [
            None if part is None else unwrap(self.visit(part)) for part in (node.lower, node.upper, node.step)
        ]
        return slice(*parts)

    @fields("values")
    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return "".join(str(self.visit(part)) for part in node.values)

    @fields("value", "conversion", "format_spec")
    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        value = self.visit(node.value)
        if not is_compile_time(value):
            self.refuse(
                f"a run-time value ({describe_kind(value)}) in an f-string",
                help="only values known at compile time can be formatted",
            )
        plain = unwrap(value)
        converted = {-1: plain, 115: str(plain), 114: repr(plain), 97: ascii(plain)}[node.conversion]
        specification = "" if node.format_spec is None else self.visit(node.format_spec)
        try:
            return format(converted, specification)
        except PYTHON_REFUSALS as error:
            self.fail(f"cannot format {plain!r}: {error}")

    @fields("elt", "generators")
    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node)

    @fields("elt", "generators")
    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        if len(node.generators) != 1:
            self.refuse("a comprehension with several `for`", help="nest the loops with `tl.static_range`")
        generator = node.generators[0]
        if generator.is_async:
            self.refuse("an `async` comprehension")
        iterable = self.visit_iterable(generator.iter)
        if not isinstance(unwrap(iterable), (tuple, list)):
            self.refuse_strictly("comprehension over range", at=generator.iter)
        items = self.static_items(iterable, generator.iter)
        names = [n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)]
        saved = {name: self.env.get(name, MISSING) for name in names}
        values: list[Any] = []
        for element in items:
            self.assign(generator.target, element)
            if all(self._static_test(test) for test in generator.ifs):
                values.append(self.visit(node.elt))
        for name, value in saved.items():
            self.env[name] = value
            if value is MISSING:
                del self.env[name]
        return tuple(values)

    def _static_test(self, node: ast.expr) -> bool:
        value = self.visit(node)
        if isinstance(value, tensor):
            self.fail("the condition of a comprehension must be known at compile time", at=node)
        return bool(unwrap(value))

    def visit_iterable(self, node: ast.expr) -> Any:
        """What a loop runs over."""
        raise NotImplementedError

    def static_items(self, iterable: Any, node: ast.expr) -> list[Any]:
        """The items of a compile-time iterable."""
        raise NotImplementedError

    @fields("id")
    def visit_Name(self, node: ast.Name) -> Any:
        value = self.lookup(node.id)
        if isinstance(value, Undefined):
            self.fail(f"`{node.id}` {value.reason}", help=value.help)
        return value


def is_typed(value: Any) -> bool:
    """True for a `constexpr` that stands for a run-time argument."""
    return isinstance(value, constexpr) and value.type is not None
