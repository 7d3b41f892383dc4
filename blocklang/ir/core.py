"""Values, operations, regions and kernels: the SSA data structure of every level of IR.

Control flow is structured: an operation may hold regions, a region is one list of operations that ends in a
terminator, and there are no phis and no jumps. A value is a result of an operation or an argument of a
region; it knows its uses, and carries the name that the user gave it so that printed IR stays readable.

Not here: what operations exist (`blocklang.ops`), their text (`printer`, `parser`), their rules (`verifier`).

Invariants, kept by every method: `value.uses` lists exactly the operand slots that hold the value;
`operation.parent` is the region that lists it; erasing an operation needs all its results unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from blocklang.diagnostics import UNKNOWN_LOCATION, Location
from blocklang.ir.types import Type

if TYPE_CHECKING:
    from blocklang.ir.declaration import AttributeField, Effect, OperandField, RegionField, ResultField

Attribute = Any  # int, float, bool, str, Type, IndexMap, or a tuple of these


class Value:
    """An SSA value: one definition, any number of uses."""

    __slots__ = ("name", "owner", "type", "uses")

    def __init__(self, type: Type, owner: Operation | Region, name: str = "") -> None:
        self.type = type
        self.owner = owner
        self.name = name
        self.uses: list[Use] = []

    @property
    def defining_op(self) -> Operation | None:
        """The operation this value is a result of; None for an argument of a region."""
        return self.owner if isinstance(self.owner, Operation) else None

    def replace_all_uses_with(self, other: Value) -> None:
        """Make every user read `other`; `other` inherits the name if it has none."""
        for use in list(self.uses):
            use.operation.set_operand(use.index, other)
        if not other.name:
            other.name = self.name

    @property
    def users(self) -> list[Operation]:
        """The operations that read this value, each once, in order of first use."""
        return list(dict.fromkeys(use.operation for use in self.uses))

    def __repr__(self) -> str:
        return f"<%{self.name or '?'}: {self.type}>"


class Use:
    """One operand slot that holds a value."""

    __slots__ = ("index", "operation")

    def __init__(self, operation: Operation, index: int) -> None:
        self.operation = operation
        self.index = index


class Region:
    """A list of operations with arguments, held by an operation or a kernel."""

    __slots__ = ("_hint", "args", "ops", "parent")

    def __init__(self, arg_types: Iterable[Type] = (), names: Iterable[str] = ()) -> None:
        self.parent: Operation | Kernel | None = None
        self.ops: list[Operation] = []
        self._hint = 0  # where an operation was looked up last
        self.args: list[Value] = [Value(t, self) for t in arg_types]
        for arg, name in zip(self.args, names, strict=False):
            arg.name = name

    def add_argument(self, type: Type, name: str = "") -> Value:
        self.args.append(Value(type, self, name))
        return self.args[-1]

    def remove_argument(self, index: int) -> None:
        """Remove an argument that has no uses."""
        assert not self.args[index].uses, "a used argument cannot be removed"
        del self.args[index]

    @property
    def terminator(self) -> Operation | None:
        return self.ops[-1] if self.ops and self.ops[-1].is_terminator else None

    def index_of(self, operation: Operation) -> int:
        """The position of an operation; fast near the position that was asked for last."""
        for position in range(max(self._hint - 4, 0), min(self._hint + 5, len(self.ops))):
            if self.ops[position] is operation:
                self._hint = position
                return position
        self._hint = self.ops.index(operation)
        return self._hint

    def append(self, operation: Operation) -> None:
        assert operation.parent is None, "the operation is already in a region"
        operation.parent = self
        self.ops.append(operation)

    def insert(self, position: int, operation: Operation) -> None:
        assert operation.parent is None, "the operation is already in a region"
        operation.parent = self
        self.ops.insert(position, operation)

    def walk(self) -> Iterator[Operation]:
        """Yield every operation in this region and in nested ones, each before what it holds."""
        pending = [iter(list(self.ops))]  # nested generators would cost the depth of the nest per operation
        while pending:
            for operation in pending[-1]:
                yield operation
                if operation.regions:
                    pending.append(_held_by(operation))
                    break
            else:
                pending.pop()

    @property
    def parent_op(self) -> Operation | None:
        return self.parent if isinstance(self.parent, Operation) else None

    def encloses(self, operation: Operation) -> bool:
        """True if `operation` lies in this region, at any depth."""
        region = operation.parent
        while region is not None:
            if region is self:
                return True
            owner = region.parent
            region = owner.parent if isinstance(owner, Operation) else None
        return False


def _held_by(operation: Operation) -> Iterator[Operation]:
    """What the regions of an operation list, when it is asked for."""
    for region in operation.regions:
        yield from list(region.ops)


class Operation:
    """One operation. Subclasses are declared with `blocklang.ir.declaration.operation`.

    Operands are stored flat; `segments` says which slots each declared operand occupies, so an optional
    operand may be absent and a variadic one may have any length.
    """

    name: ClassVar[str] = ""
    operand_fields: ClassVar[tuple[OperandField, ...]] = ()
    attribute_fields: ClassVar[tuple[AttributeField, ...]] = ()
    attribute_defaults: ClassVar[Mapping[str, Attribute]] = {}  # by name; ... for a required one
    result_fields: ClassVar[tuple[ResultField, ...]] = ()
    region_fields: ClassVar[tuple[RegionField, ...]] = ()
    effects: ClassVar[frozenset[Effect]] = frozenset()
    is_terminator: ClassVar[bool] = False
    levels: ClassVar[frozenset[str]] = frozenset({"block", "tile", "placed"})  # where it is legal
    block_levels: ClassVar[frozenset[str]] = frozenset({"block"})  # where its results may be blocks

    def __init__(
        self,
        operands: Mapping[str, Value | Iterable[Value] | None],
        attributes: Mapping[str, Attribute] | None = None,
        result_types: Iterable[Type] = (),
        regions: Iterable[Region] = (),
        location: Location = UNKNOWN_LOCATION,
    ) -> None:
        self.parent: Region | None = None
        self.location = location
        self.operands: list[Value] = []
        self.segments: dict[str, tuple[int, int]] = {}
        self.attributes: dict[str, Attribute] = dict(attributes) if attributes else {}
        slots, segments = self.operands, self.segments  # this runs for every operation of every pass
        for field in self.operand_fields:
            given, start = operands.get(field.name), len(slots)
            if isinstance(given, Value):
                given.uses.append(Use(self, start))
                slots.append(given)
                segments[field.name] = (start, 1)
                continue
            for value in given or ():
                value.uses.append(Use(self, len(slots)))
                slots.append(value)
            segments[field.name] = (start, len(slots) - start)
        self.results: list[Value] = [Value(t, self) for t in result_types]
        self.regions: list[Region] = list(regions)
        for region in self.regions:
            assert region.parent is None, "the region already belongs to an operation"
            region.parent = self

    @property
    def result(self) -> Value:
        """The only result."""
        assert len(self.results) == 1, f"{self.name} has {len(self.results)} results"
        return self.results[0]

    def set_operand(self, index: int, value: Value) -> None:
        old = self.operands[index]
        old.uses = [u for u in old.uses if not (u.operation is self and u.index == index)]
        self.operands[index] = value
        value.uses.append(Use(self, index))

    def set_segment(self, name: str, values: Iterable[Value]) -> None:
        """Replace all values of one declared operand; other segments keep theirs."""
        current = {f.name: self.segment(f.name) for f in self.operand_fields}
        current[name] = list(values)
        self.drop_operands()
        for field in self.operand_fields:
            self.segments[field.name] = (len(self.operands), len(current[field.name]))
            for value in current[field.name]:
                value.uses.append(Use(self, len(self.operands)))
                self.operands.append(value)

    def segment(self, name: str) -> list[Value]:
        """The values of one declared operand."""
        start, count = self.segments[name]
        return self.operands[start : start + count]

    def drop_operands(self) -> None:
        """Forget all operands, removing the uses."""
        for value in set(self.operands):
            value.uses = [u for u in value.uses if u.operation is not self]
        self.operands = []

    def detach(self) -> Operation:
        """Take the operation out of its region, keeping operands and uses."""
        assert self.parent is not None
        del self.parent.ops[self.parent.index_of(self)]
        self.parent = None
        return self

    def erase(self) -> None:
        """Remove the operation and all it holds. Its results must be unused."""
        assert not any(r.uses for r in self.results), f"{self.name} still has uses"
        for region in self.regions:
            for inner in region.walk():
                inner.drop_operands()
        self.drop_operands()
        if self.parent is not None:
            self.detach()

    def replace_with(self, *values: Value) -> None:
        """Make users of the results read `values` and erase the operation."""
        assert len(values) == len(self.results)
        for old, new in zip(self.results, values, strict=True):
            old.replace_all_uses_with(new)
        self.erase()

    @property
    def parent_op(self) -> Operation | None:
        return self.parent.parent_op if self.parent is not None else None

    def verify_op(self) -> None:
        """Check rules that the declared fields do not express. Raise ValueError with the reason."""

    def has_effect(self, *effects: Effect) -> bool:
        """True if this operation, or one it holds, has any of `effects`."""
        wanted = frozenset(effects)
        if self.effects & wanted:
            return True
        return any(op.effects & wanted for region in self.regions for op in region.walk())

    @property
    def is_pure(self) -> bool:
        """True if neither this operation nor any that it holds reads, writes or synchronises."""
        return not self.effects and not any(op.effects for region in self.regions for op in region.walk())

    def __repr__(self) -> str:
        from blocklang.ir.printer import print_operation

        return print_operation(self)


class Kernel:
    """A whole kernel at one level of IR.

    Attributes:
        name: the user's function name.
        level: 'block', 'tile' or 'placed'.
        body: its region; arguments are the run-time arguments (constexprs are folded in).
        argument_attributes: per argument, facts known at specialisation (`divisible=16`, `writable`).
        attributes: facts about the whole kernel, such as the alias class of its arguments.
        frontend_seconds: how long it took to build from Python; 0 for IR that was read.
    """

    def __init__(
        self,
        name: str,
        arg_types: Iterable[Type] = (),
        arg_names: Iterable[str] = (),
        *,
        level: str = "block",
        location: Location = UNKNOWN_LOCATION,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        self.name = name
        self.level = level
        self.location = location
        self.body = Region(arg_types, arg_names)
        self.body.parent = self
        self.argument_attributes: list[dict[str, Attribute]] = [{} for _ in self.body.args]
        self.attributes: dict[str, Attribute] = dict(attributes or {})
        self.frontend_seconds = 0.0

    @property
    def args(self) -> list[Value]:
        return self.body.args

    def walk(self) -> Iterator[Operation]:
        return self.body.walk()

    def __str__(self) -> str:
        from blocklang.ir.printer import print_kernel

        return print_kernel(self)
