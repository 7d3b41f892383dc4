"""How an operation is declared: once, as a class, from which everything else follows.

    @operation("add")
    class Add(Operation):
        '''Lane-wise sum; integers wrap.

            %c = add %a, %b : block<128xf32>
        '''
        lhs = operand(Arithmetic)
        rhs = operand(Arithmetic)
        result = result(same_type_as("lhs", "rhs"))

The decorator collects the fields in the order of the class body and registers the class. Builder, printer,
parser, verifier and `docs/ops.md` read the declaration; meaning and machine code are registered elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from blocklang.ir.core import Attribute, Operation, Region, Value
from blocklang.ir.types import Type


class Effect(enum.Enum):
    """What an operation does besides computing its results."""

    READ = "reads global memory"
    WRITE = "writes global memory"
    READ_BUFFER = "reads a buffer"
    WRITE_BUFFER = "writes a buffer"
    FENCE = "orders memory accesses"
    RECORD = "records an event"


PURE: frozenset[Effect] = frozenset()


@dataclass(frozen=True)
class Constraint:
    """A condition on a type, with the words an error uses for it."""

    description: str
    accepts: Callable[[Type], bool]


class OperandField:
    """A declared operand. Read from an operation: a Value, None if absent, or a list if variadic."""

    def __init__(self, constraint: Constraint, *, optional: bool = False, variadic: bool = False) -> None:
        self.name = ""
        self.constraint = constraint
        self.optional = optional
        self.variadic = variadic

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        start, count = op.segments[self.name]
        if self.variadic:
            return op.operands[start : start + count]
        return op.operands[start] if count else None


class AttributeField:
    """A declared attribute: its Python type(s), default, and the values it may have."""

    def __init__(
        self, type: type | tuple[type, ...], *, default: Attribute = ..., choices: Iterable[Attribute] = ()
    ) -> None:
        self.name = ""
        self.type = type
        self.default = default
        self.choices = tuple(choices)

    @property
    def required(self) -> bool:
        return self.default is ...

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        return op.attributes.get(self.name, self.default)


TypeRule = Callable[[Any], Type]


class ResultField:
    """A declared result. `rule` computes its type from the operation; None means the builder is told.

    A variadic result takes the place of all results.
    """

    def __init__(self, rule: TypeRule | None = None, *, variadic: bool = False) -> None:
        self.name = ""
        self.rule = rule
        self.variadic = variadic

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        if self.variadic:
            return op.results
        return op.results[[f.name for f in op.result_fields].index(self.name)]


class RegionField:
    """A declared region. Reading it from an operation gives the Region, or None if it is absent."""

    def __init__(self, *, optional: bool = False) -> None:
        self.name = ""
        self.optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        index = [f.name for f in op.region_fields].index(self.name)
        return op.regions[index] if index < len(op.regions) else None


def operand(constraint: Constraint, *, optional: bool = False, variadic: bool = False) -> Any:
    """Declare an operand whose type meets `constraint`."""
    return OperandField(constraint, optional=optional, variadic=variadic)


def attribute(
    type: type | tuple[type, ...], *, default: Attribute = ..., choices: Iterable[Attribute] = ()
) -> Any:
    """Declare a compile-time attribute."""
    return AttributeField(type, default=default, choices=choices)


def result(rule: TypeRule | None = None, *, variadic: bool = False) -> Any:
    """Declare a result; `rule` computes its type from the operation."""
    return ResultField(rule, variadic=variadic)


def region(*, optional: bool = False) -> Any:
    """Declare a region."""
    return RegionField(optional=optional)


def same_type_as(*names: str) -> TypeRule:
    """Result rule: the named operands have one type, and the result has it too."""

    def rule(op: Operation) -> Type:
        types = [op.segment(name)[0].type for name in names]
        if any(type_ != types[0] for type_ in types[1:]):
            raise ValueError(f"{op.name} needs equal types, got {' and '.join(sorted({*map(str, types)}))}")
        return types[0]

    return rule


OperationT = TypeVar("OperationT", bound=Operation)

OPERATIONS: dict[str, type[Operation]] = {}


def operation(name: str, *, terminator: bool = False) -> Callable[[type[OperationT]], type[OperationT]]:
    """Class decorator: collect the declared fields and register the operation under `name`."""

    def declare(cls: type[OperationT]) -> type[OperationT]:
        if name in OPERATIONS:
            raise ValueError(f"operation {name!r} is declared twice")
        cls.name = name
        cls.is_terminator = terminator
        fields: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            fields |= vars(base)
        cls.operand_fields = tuple(f for f in fields.values() if isinstance(f, OperandField))
        cls.attribute_fields = tuple(f for f in fields.values() if isinstance(f, AttributeField))
        cls.attribute_defaults = {f.name: f.default for f in cls.attribute_fields}
        cls.result_fields = tuple(f for f in fields.values() if isinstance(f, ResultField))
        cls.region_fields = tuple(f for f in fields.values() if isinstance(f, RegionField))
        OPERATIONS[name] = cls
        return cls

    return declare


def infer_result_types(op: Operation, given: Iterable[Type] = ()) -> list[Type]:
    """The types of `op`'s results: by rule where the declaration has one, else from `given`.

    Raises:
        ValueError: the rule does not accept the operands, or too few types are given.
    """
    fields = op.result_fields
    if len(fields) == 1 and (rule := fields[0].rule) is not None:
        return [rule(op)]
    remaining = list(given)
    types: list[Type] = []
    for field in fields:
        if field.variadic:
            return types + remaining
        if field.rule is not None:
            types.append(field.rule(op))
        elif remaining:
            types.append(remaining.pop(0))
        else:
            raise ValueError(f"{op.name} needs the type of its result {field.name!r}")
    return types


def _flatten(values: Iterable[Value | Iterable[Value]]) -> list[Value]:
    return [v for item in values for v in ([item] if isinstance(item, Value) else item)]


def _without_defaults(cls: type[Operation], named: dict[str, Attribute]) -> dict[str, Attribute]:
    """The attributes that differ from their defaults; True and 1 differ."""
    defaults = cls.attribute_defaults
    unknown = named.keys() - defaults.keys()
    assert not unknown, f"{cls.name} has no attribute {sorted(unknown)}"
    return {
        k: v
        for k, v in named.items()
        if defaults[k] is ... or v != defaults[k] or type(v) is not type(defaults[k])
    }


def make_operation(
    cls: type[Operation],
    *positional: Value | Iterable[Value],
    location: Any,
    result_types: Iterable[Type] = (),
    regions: Iterable[Region] = (),
    **named: Any,
) -> Operation:
    """Create a detached operation from positional operands, and named operands and attributes.

    Positional values fill the declared operands in order; a variadic operand takes the remaining ones
    (lists are flattened). A named attribute equal to its default is not stored.
    """
    operands: dict[str, Any] = {}
    taken, count = 0, len(positional)
    for field in cls.operand_fields:
        name = field.name
        if name in named:
            operands[name] = named.pop(name)
        elif field.variadic:
            operands[name], taken = _flatten(positional[taken:]), count
        elif taken < count:
            operands[name] = positional[taken]
            taken += 1
    assert taken == count, f"too many operands for {cls.name}"
    op = cls(operands, _without_defaults(cls, named) if named else None, (), regions, location)
    op.results = [Value(t, op) for t in infer_result_types(op, result_types)]
    return op
