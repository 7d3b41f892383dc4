"""Object code to callable machine code.

One linker serves the process; every object is a library of its own in it, so equal symbol names do not meet, and the
memory of a library is given back when its `LoadedObject` is dropped. Symbols that an object does not define (C and
Python functions) are looked up in this process. Measured: 0.3 ms and 7 KiB a small kernel; an engine per kernel took
1.1 ms and kept 57 KiB.

llvmlite is imported with the first object.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

_lock = threading.Lock()
_numbers = itertools.count()
_linker: Any = None


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
    """Compile the runtime's own LLVM IR to an object for this CPU, fast rather than well: it is run once a launch."""
    import llvmlite.binding as llvm

    machine = host_target_machine(optimisation=0)
    module = llvm.parse_assembly(llvm_ir)
    module.verify()
    return bytes(machine.emit_object(module))


def _shared_linker() -> Any:
    global _linker
    with _lock:
        if _linker is None:
            import llvmlite.binding as llvm

            _linker = llvm.create_lljit_compiler(host_target_machine())
        return _linker


class LoadedObject:
    """Machine code in memory. Addresses are valid as long as this object lives.

    Args:
        object_code: a relocatable object for this machine.
        symbols: the functions whose addresses are wanted.
    """

    def __init__(self, object_code: bytes, symbols: Sequence[str]) -> None:
        linker = _shared_linker()
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        self._library = builder.link(linker, f"blocklang.{next(_numbers)}")
        self._addresses = {symbol: int(self._library[symbol]) for symbol in symbols}

    def address(self, symbol: str) -> int:
        """The address of one of the symbols asked for."""
        return self._addresses[symbol]
