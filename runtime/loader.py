"""Object code to callable machine code.

A linker serves several objects; every object is a library of its own in it, so equal symbol names do not
meet, and its machine code is freed when its `LoadedObject` is dropped. A linker keeps the name table of every
library that it ever held (9 KiB each), so it takes `_OBJECTS_PER_LINKER` of them and goes when the last one
is dropped: memory is bounded by what is alive. Measured: 0.3 ms for a small kernel; a linker or MCJIT engine
for each takes 0.8 ms.

Symbols that an object does not define (C and Python functions) are looked up in this process. llvmlite is
imported with the first object.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

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
    """Compile the runtime's own LLVM IR to an object, in little time: it runs once a launch."""
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
        self._linker, name = _linkers.take()
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        self._library = builder.link(self._linker, name)
        self._addresses = {symbol: int(self._library[symbol]) for symbol in symbols}

    def address(self, symbol: str) -> int:
        """The address of one of the symbols asked for."""
        return self._addresses[symbol]
