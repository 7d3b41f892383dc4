"""How the kernels of this directory are launched: a name, what is expected, and a function that launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A launch, or several, and the kind of finding that is planted; "" of a clean one."""

    launch: Callable[[], Any]
    kind: str = ""
    words: tuple[str, ...] = ()


@dataclass
class Cases:
    """Cases by name, filled by a decorator."""

    by_name: dict[str, Case] = field(default_factory=dict)

    def __call__(self, kind: str = "", *words: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Add the decorated launch."""

        def add(launch: Callable[[], Any]) -> Callable[[], Any]:
            self.by_name[launch.__name__] = Case(launch, kind, words)
            return launch

        return add
