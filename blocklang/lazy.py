"""What is made when it is first asked for: `cached_property` and `on_demand`.

`on_demand` gives a package names whose modules are imported when one is used: most processes never do.

`cached_property` is as Python has it from 3.12: computed on first use, kept on the instance, without a lock.

Python 3.11's holds one lock for all instances while it computes. A process that is forked meanwhile inherits
the lock held by a thread that does not live there, and its first kernel waits forever.

Invariant: an attribute is one object for every reader, also if two threads computed it at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
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


def on_demand(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package that imports what a name stands for.

    Args:
        package: its `__name__`.
        places: for each name the module that defines it, or is it: `package.name`.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(places[name])
        found = module if places[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return found

    return find
