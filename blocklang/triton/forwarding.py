"""Modules that show the names of others: the parts of Triton's language are all one module here.

A name is looked up when it is asked for, so that a module shows what its sources have now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from blocklang.diagnostics import CompilationError


def forward(name: str, *sources: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `name`, which shows the names of `sources`.

    Args:
        sources: modules, or objects in modules (`blocklang.language:math`), the first that has a name wins.
            One that does not exist is passed over.
    """

    def look_up(attribute: str) -> Any:
        refusal: CompilationError | None = None
        for source in _found(sources):
            try:
                return getattr(source, attribute)
            except AttributeError:
                continue
            except CompilationError as error:  # known, and not built yet
                refusal = refusal or error
        if refusal is not None and not attribute.startswith("__"):
            raise refusal
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    def list_names() -> list[str]:
        return sorted({n for source in _found(sources) for n in dir(source) if not n.startswith("_")})

    return look_up, list_names


def _found(sources: tuple[str, ...]) -> Iterator[ModuleType]:
    for source in sources:
        module, _, attribute = source.partition(":")
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            if not module.startswith(error.name or " "):
                raise
            continue
        if not attribute:
            yield found
        elif attribute in vars(found):
            yield vars(found)[attribute]
