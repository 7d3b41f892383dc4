"""Object code to callable machine code.

On Linux an object is loaded by `image`, without LLVM: 0.1 ms for a small kernel, 4 KiB and more of memory,
given back when its `LoadedObject` is dropped. Objects of another format, or with something that `image` does
not know, go through LLVM's linker.

A linker serves several objects; every object is a library of its own in it, so equal symbol names do not
meet, and its machine code is freed when its `LoadedObject` is dropped. A linker keeps the name table of every
library that it ever held (9 KiB each), so it takes `_OBJECTS_PER_LINKER` of them and goes when the last one
is dropped: memory is bounded by what is alive. Measured: 0.3 ms for a small kernel; a linker or MCJIT engine
for each takes 0.8 ms.

Symbols that an object does not define (C and Python functions) are looked up in this process. llvmlite is
imported when something is compiled, or linked by it.

A fork waits for threads that are inside LLVM, the compiler's included: llvmlite has one lock for all of LLVM,
and a child that inherits it held by a thread that does not live there could never compile.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from blocklang.cache.entries import Entry
from blocklang.cache.identity import compiler_identity
from blocklang.cache.store import shared_store
from blocklang.runtime.elf import UnsupportedObject
from blocklang.runtime.image import Image

_OBJECTS_PER_LINKER = 16


class _Linkers:
    """Hands out the linker for the next object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._linker: Any = None

    def take(self) -> tuple[Any, str]:
        """A linker and a name that is free in it."""
        with self._lock:
            number = next(self._numbers)
            if self._linker is None or number % _OBJECTS_PER_LINKER == 0:
                import llvmlite.binding as llvm

                self._linker = llvm.create_lljit_compiler(host_target_machine())
            return self._linker, f"blocklang.{number}"

    def renew_lock(self) -> None:
        """In a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()


_linkers = _Linkers()


def host_target_machine(optimisation: int = 2) -> Any:
    """An llvmlite target machine for this CPU with all its features, for objects that this process loads."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=optimisation,
        reloc="pic",
        codemodel="default",
    )


def assemble(llvm_ir: str) -> bytes:
    """The object of the runtime's own LLVM IR, from the disk cache if it was compiled before."""
    store = shared_store()
    if store is None:
        return _assemble(llvm_ir)
    try:
        identity = compiler_identity()
    except OSError:  # blocklang's own sources cannot be read
        return _assemble(llvm_ir)
    key = hashlib.sha256(f"{identity} assemble {llvm_ir}".encode()).hexdigest()
    entry = store.find(key)
    if entry is None:
        entry = Entry({}, _assemble(llvm_ir))
        store.keep(key, entry)
    return entry.object_code


def _assemble(llvm_ir: str) -> bytes:
    """Compile in little time: this code runs once a launch."""
    import llvmlite.binding as llvm

    machine = host_target_machine(optimisation=0)
    module = llvm.parse_assembly(llvm_ir)
    module.verify()
    return bytes(machine.emit_object(module))


class LoadedObject:
    """Machine code in memory. Addresses are valid as long as this object lives.

    Args:
        object_code: a relocatable object for this machine.
        symbols: the functions whose addresses are wanted.
    """

    def __init__(self, object_code: bytes, symbols: Sequence[str]) -> None:
        self._code: Image | _Linked
        try:
            self._code = Image(object_code, symbols)
        except UnsupportedObject:
            self._code = _Linked(object_code, symbols)

    def address(self, symbol: str) -> int:
        """The address of one of the symbols asked for."""
        return self._code.address(symbol)


class _Linked:
    """Machine code that LLVM's linker put into memory."""

    def __init__(self, object_code: bytes, symbols: Sequence[str]) -> None:
        self._linker, name = _linkers.take()
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        self._library = builder.link(self._linker, name)
        self._addresses = {symbol: int(self._library[symbol]) for symbol in symbols}

    def address(self, symbol: str) -> int:
        return self._addresses[symbol]


_locks_held: list[AbstractContextManager[None]] = []  # LLVM's, while this process forks


def _hold_llvm() -> None:
    # llvmlite has no public way to take its lock; one of our own would miss finalisers and others' calls.
    lib = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)  # absent while it is being imported
    if lib is not None:
        lock: AbstractContextManager[None] = lib._lock
        lock.__enter__()
        _locks_held.append(lock)


def _release_llvm() -> None:
    if _locks_held:
        _locks_held.pop().__exit__(None, None, None)


def _renew_in_child() -> None:
    _release_llvm()
    _linkers.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_llvm, after_in_parent=_release_llvm, after_in_child=_renew_in_child)
