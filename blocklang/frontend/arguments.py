"""`Argument`: what one launch, or the command line, says of one parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from blocklang.ir.types import Type

NOT_CONSTEXPR: Any = type("NotConstexpr", (), {"__repr__": lambda self: "NOT_CONSTEXPR"})()
_NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Argument:
    """A run-time argument with a type, or a value known at compile time.

    A parameter without `tl.constexpr` may be given a number at compile time too (specialisation on 1): it
    keeps the methods and the promotion of a run-time scalar.

    Attributes:
        name: the parameter.
        type: the IR type of a run-time argument; of a compile-time number, the type that it would have at run
            time.
        attributes: facts about a run-time argument, such as `divisible=16`.
        constexpr: the compile-time value; `NOT_CONSTEXPR` for a run-time argument.
        items: of a tuple, an argument for each item, named `name.0`, `name.1`; None for anything else.
        kind: the class of a tuple: `tuple`, or a namedtuple's.
    """

    name: str
    type: Type | None = None
    attributes: Mapping[str, Any] = field(default_factory=lambda: _NO_ATTRIBUTES, hash=False)
    constexpr: Any = NOT_CONSTEXPR
    items: tuple[Argument, ...] | None = None
    kind: Any = tuple

    def __post_init__(self) -> None:
        if self.type is None and self.items is None and not self.is_constexpr:
            raise ValueError(f"argument {self.name!r} needs a type or a constexpr value")

    @property
    def is_constexpr(self) -> bool:
        return self.constexpr is not NOT_CONSTEXPR

    def run_time_leaves(self) -> Iterator[Argument]:
        """The run-time arguments that this one is or holds, in order."""
        if self.items is not None:
            for item in self.items:
                yield from item.run_time_leaves()
        elif not self.is_constexpr:
            yield self

    def made_of(self, values: list[Any]) -> Any:
        """The tuple of the items' values, of its class."""
        return self.kind(*values) if hasattr(self.kind, "_fields") else tuple(values)
