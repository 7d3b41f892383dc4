"""The compiled forms of one version of a kernel on disk: one entry for each alias class of its arrays.

A version is kept only if its digest covers everything that the frontend read while it built it: what it found
on another way than the byte code shows (a module under a local name) would change unseen.
"""

from __future__ import annotations

import hashlib
import os
import types
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from blocklang.abi import KernelAbi
from blocklang.cache.entries import Entry
from blocklang.cache.store import Store, shared_store
from blocklang.jit.aliasing import CLASSES
from blocklang.jit.capture import Captured
from blocklang.jit.identity import Unidentified, kernel_identity
from blocklang.jit.specialisation import ConstantSpec, Spec, TupleSpec, TypedSpec, constants_in
from blocklang.jit.stored import Unstorable, abi_from, describe_abi

if TYPE_CHECKING:
    from blocklang.frontend import Dependency


class KeptVersion(NamedTuple):
    """What a launch needs of a compiled version.

    Attributes:
        stored_through: the arguments that the kernel stores to, as Block IR says.
        abi: its interface.
        object_code: its machine code.
    """

    stored_through: frozenset[str]
    abi: KernelAbi
    object_code: bytes


class Shelf:
    """The entries of one version.

    Args:
        store: where they are.
        identify: gives the digest of the version from what it reads.
        captured: what the version reads.
        recapture: what it reads now.

    Raises:
        Unidentified: something that it depends on has no content that can be told.
    """

    def __init__(
        self,
        store: Store,
        identify: Callable[[Captured], str],
        captured: Captured,
        recapture: Callable[[], Captured],
    ) -> None:
        self._store = store
        self._identify = identify
        self._identity = identify(captured)
        self._captured = captured
        self._recapture = recapture
        self._found: dict[str, KeptVersion | None] = {}

    def find_any(self) -> KeptVersion | None:
        """What is kept for some alias class."""
        return next((kept for alias in CLASSES if (kept := self.find(alias)) is not None), None)

    def find(self, alias: str) -> KeptVersion | None:
        """What is kept for an alias class."""
        if alias not in self._found:
            entry = self._store.find(self._key(alias))
            self._found[alias] = None if entry is None else self._version_from(entry)
        return self._found[alias]

    def _version_from(self, entry: Entry) -> KeptVersion:
        stored = frozenset(entry.description["stored_through"])
        return KeptVersion(stored, abi_from(entry.description["abi"], self._captured), entry.object_code)

    def keep(self, alias: str, version: KeptVersion) -> None:
        """Keep a version for an alias class, if all that it depends on is still what it was."""
        if self._identity_now() != self._identity:
            return
        try:
            abi = describe_abi(version.abi, self._captured)
        except Unstorable:
            _note(f"{version.abi.name} is not kept on disk: it names a place outside of its functions")
            return
        description = {"stored_through": sorted(version.stored_through), "abi": abi}
        self._store.keep(self._key(alias), Entry(description, version.object_code))

    def _identity_now(self) -> str | None:
        try:
            return self._identify(self._recapture())
        except (Unidentified, RecursionError):
            return None

    def _key(self, alias: str) -> str:
        return hashlib.sha256(f"{self._identity} {alias}".encode()).hexdigest()


def _note(message: str) -> None:
    import logging  # 5 ms that nobody needs who finds kernels

    logging.getLogger("blocklang.cache").info(message)


def open_shelf(
    kernel: Any, captured: Captured, specs: Sequence[Spec], switches: tuple[object, ...]
) -> Shelf | None:
    """The shelf of a version; None if nothing of it can be kept.

    Args:
        kernel: a `JITFunction`.
        captured: what it reads, the constants of the specialisation included.
        specs: one per parameter.
        switches: what else the code depends on: all fields of `Switches`, and `strict`.
    """
    store = shared_store()
    if store is None:
        return None
    from blocklang.cache.identity import compiler_identity

    compiled_in = (*switches, os.environ.get("BLOCKLANG_CPU") or "host", *map(_parts_of, specs))

    def identify(read: Captured) -> str:
        return f"{compiler_identity()} {kernel_identity(kernel, read, compiled_in)}"

    try:
        return Shelf(store, identify, captured, lambda: Captured([kernel.fn, *constants_in(specs)]))
    except (Unidentified, OSError, RecursionError) as error:
        _note(f"{kernel.__name__} is not kept on disk: it depends on {error}")
        return None


def _parts_of(spec: Spec) -> tuple[object, ...]:
    """A spec as plain values."""
    if isinstance(spec, TypedSpec):
        return ("typed", str(spec.type), spec.divisible)
    if isinstance(spec, ConstantSpec):
        return ("constant", spec.value)
    assert isinstance(spec, TupleSpec)
    return ("tuple", spec.kind, *map(_parts_of, spec.items))


def is_covered(captured: Captured, dependencies: Iterable[Dependency]) -> bool:
    """True if the digest of a kernel covers all that the frontend read."""
    places = {watched.place for reads in captured.reads for watched in reads.watched}
    functions = {id(reads.function) for reads in captured.reads}
    return all(_is_seen(dependency, places, functions) for dependency in dependencies)


def _is_seen(dependency: Dependency, places: set[tuple[int, str | None]], functions: set[int]) -> bool:
    container, name = dependency.container, dependency.name.rpartition(".")[2]
    if isinstance(container, types.CellType):
        return (id(container), None) in places
    if isinstance(container, types.FunctionType):
        return id(container) in functions or container.__module__.startswith("blocklang.")
    if isinstance(container, dict):
        return (id(container), name) in places
    is_own = getattr(container, "__name__", "").split(".")[0] == "blocklang"
    return is_own or (id(vars(container)), name) in places
