"""A value of interpreter mode: it holds its data, and what the debug mode knows of it."""

from __future__ import annotations

from blocklang.interpreter.dtypes import Array
from blocklang.ir import Operation, Region, Value
from blocklang.ir.types import Type

NOWHERE = Region()


class EagerValue(Value):
    """A value that has been computed.

    Attributes:
        data: an array of the value's dtype and shape. While a function is called for many lanes at once, a
            scalar's array holds one element per lane.
        origins: in debug mode, the arguments that a pointer may come from; None for any.
        exact: in debug mode, what arithmetic without wrapping gives: an integer, or how many bytes the
            address of a pointer would lie above. None if that is the same.
        live: where NaN are looked for, the lanes that are no padding (`ops.births`); None if all are.
    """

    __slots__ = ("data", "exact", "live", "origins")

    def __init__(self, type: Type, data: Array, owner: Operation | Region = NOWHERE) -> None:
        super().__init__(type, owner)
        self.data = data
        self.origins: frozenset[str] | None = None
        self.exact: Array | None = None
        self.live: Array | None = None
