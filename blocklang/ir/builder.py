"""Creates operations at an insertion point, with the current location."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from blocklang.diagnostics import UNKNOWN_LOCATION, Location
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.declaration import make_operation
from blocklang.ir.types import Type


class Builder:
    """Appends operations to a region, or inserts them before a given operation.

    Attributes:
        region: where operations go; None for a builder that has not been placed yet.
        before: insert before this operation of the region, or append if None.
        location: given to every operation that is created.
        debug: whether run-time assertions are wanted.
        sanitize_overflow: whether sums, differences and products of integers are to be checked.
        hints: whether what hints promise is to be checked.
        is_per_lane: a function that is called for every lane is being built; it can say nothing.
    """

    debug = False
    sanitize_overflow = False
    hints = False
    is_per_lane = False

    def __init__(
        self,
        region: Region | None = None,
        before: Operation | None = None,
        location: Location = UNKNOWN_LOCATION,
    ) -> None:
        self.region = region
        self.before = before
        self.location = location

    @classmethod
    def before_op(cls, op: Operation) -> Builder:
        """A builder that inserts right before `op`, with its location."""
        return cls(op.parent, op, op.location)

    @classmethod
    def after_op(cls, op: Operation) -> Builder:
        """A builder that inserts right after `op`, with its location."""
        assert op.parent is not None
        position = op.parent.index_of(op) + 1
        follower = op.parent.ops[position] if position < len(op.parent.ops) else None
        return cls(op.parent, follower, op.location)

    def insert(self, op: Operation) -> Operation:
        """Put a detached operation at the insertion point."""
        assert self.region is not None, "the builder has no insertion point"
        if self.before is None:
            self.region.append(op)
        else:
            self.region.insert(self.region.index_of(self.before), op)
        return op

    def create(
        self,
        cls: type[Operation],
        *operands: Value | Iterable[Value],
        result_types: Iterable[Type] = (),
        regions: Iterable[Region] = (),
        name: str = "",
        **named: Any,
    ) -> Operation:
        """Create and insert an operation; `named` holds named operands and attributes.

        Args:
            name: hint for the printed name of the (first) result.

        Raises:
            ValueError: the operands do not fit the declaration.
        """
        op = make_operation(
            cls, *operands, location=self.location, result_types=result_types, regions=regions, **named
        )
        if name and op.results:
            op.results[0].name = name
        return self.insert(op)

    def value(self, cls: type[Operation], *operands: Value | Iterable[Value], **named: Any) -> Value:
        """Create an operation with one result and return that result."""
        return self.create(cls, *operands, **named).result

    @contextmanager
    def per_lane(self) -> Iterator[None]:
        """Build a function that is called for every lane inside the `with` block."""
        saved, self.is_per_lane = self.is_per_lane, True
        try:
            yield
        finally:
            self.is_per_lane = saved

    @contextmanager
    def at(self, region: Region) -> Iterator[None]:
        """Append to `region` inside the `with` block."""
        saved = self.region, self.before
        self.region, self.before = region, None
        try:
            yield
        finally:
            self.region, self.before = saved
