"""`cached_property`, as Python has it from 3.12: computed on first use, kept on the instance, without a lock.

Python 3.11's holds one lock for all instances while it computes. A process that is forked meanwhile inherits
the lock held by a thread that does not live there, and its first kernel waits forever.

Invariant: an attribute is one object for every reader, also if two threads computed it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A method without arguments as an attribute; instances need a `__dict__`."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        # Having no `__set__`, this is asked only as long as the instance has no attribute of the name.
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
