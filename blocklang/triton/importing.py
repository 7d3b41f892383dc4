"""`import triton` that finds `blocklang.triton`: for scripts that are not to be changed.

While it is installed, `triton` and every module below it *are* the modules below `blocklang.triton`: one
object under two names, so classes are the same whichever name a library imports. A Triton in site-packages
is shadowed, also if it was imported before, and is back after `uninstall`.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from blocklang.triton.version import VERSION

_NAME = "triton"
_HERE = "blocklang.triton"


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata.version("triton")` finds."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {VERSION}\n"

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


class _Alias(Loader):
    """Loads a module by importing the one that it is."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._target)
        self._own = {n: getattr(module, n, None) for n in ("__spec__", "__loader__", "__package__")}
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has written the alias's facts over the module's own.
        for name, value in self._own.items():
            setattr(module, name, value)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _NAME and not fullname.startswith(f"{_NAME}."):
            return None
        own = _HERE + fullname.removeprefix(_NAME)
        try:
            found = sys.modules.get(own) or find_spec(own)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(
                f"blocklang serves no module named {fullname!r}: docs/triton.md says what there is",
                name=fullname,
            )
        is_package = hasattr(sys.modules.get(own, found), "__path__") or bool(
            getattr(found, "submodule_search_locations", None)
        )
        return ModuleSpec(fullname, _Alias(own), is_package=is_package)

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        wanted = None if context is None else context.name
        return [_Distribution()] if wanted is not None and wanted.lower() == _NAME else []


_finder = _Finder()
_shadowed: dict[str, ModuleType] = {}


def _modules() -> list[str]:
    return [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]


def is_installed() -> bool:
    """True if `import triton` finds this package."""
    return _finder in sys.meta_path


def install() -> None:
    """Let `import triton` find this package, in every module imported from now on."""
    if is_installed():
        return
    for name in _modules():
        _shadowed[name] = sys.modules.pop(name)
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Let `import triton` find what it found before."""
    if not is_installed():
        return
    sys.meta_path.remove(_finder)
    for name in _modules():
        del sys.modules[name]
    sys.modules.update(_shadowed)
    _shadowed.clear()


@contextmanager
def installed() -> Iterator[None]:
    """Let `import triton` find this package while the context lasts."""
    before = is_installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()
