"""An ELF object as machine code in this process, without LLVM.

The sections lie in one private mapping: code, constants and the table of external addresses first, then
variables. It is written, then the first part is made executable and read-only; no page is ever both writable
and executable. The mapping goes with its `Image`.

External symbols (C and Python functions) are looked up in this process.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import sys
from collections.abc import Iterable, Sequence

from blocklang.runtime.elf import AARCH64, X86_64, ElfObject, Section, Symbol, UnsupportedObject, read_object
from blocklang.runtime.relocations import MACHINES, Machine, Reference

_SLOT_BYTES = 8


def _up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


@functools.cache
def _own_machine() -> int | None:
    """The number of this process' machine; None where objects are not ELF or the loader does not work."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    return {"x86_64": X86_64, "aarch64": AARCH64}.get(platform.machine())


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _external(name: str) -> int:
    """The address of a symbol of this process."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(_process(), name))
    except ValueError:
        raise UnsupportedObject(f"no symbol {name!r} in this process") from None


class Image:
    """Machine code in memory; addresses are valid as long as this object lives.

    Args:
        object_code: a relocatable object for this machine.
        symbols: the functions whose addresses are wanted.

    Raises:
        UnsupportedObject: the object is for another machine, or needs what this loader does not do.
    """

    def __init__(self, object_code: bytes, symbols: Sequence[str]) -> None:
        read = read_object(object_code)
        if read.machine != _own_machine():
            raise UnsupportedObject("the object is for another machine")
        layout = _Layout(read, MACHINES[read.machine])
        self._mapping = _map(layout.size)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        with memoryview(self._mapping) as memory:
            layout.write(memory, base)
        _make_executable(base, layout.code_size)
        defined = {s.name: s for s in read.symbols if s.section is not None}
        self._addresses = {name: base + layout.offset_of(_named(defined, name)) for name in symbols}

    def address(self, symbol: str) -> int:
        """The address of one of the symbols asked for."""
        return self._addresses[symbol]


def _named(defined: dict[str, Symbol], name: str) -> Symbol:
    if name not in defined:
        raise UnsupportedObject(f"the object does not define {name!r}")
    return defined[name]


def _map(size: int) -> mmap.mmap:
    """Private memory of this process, readable and writable."""
    flags, prot = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
    try:
        return mmap.mmap(-1, size, flags=flags, prot=prot)
    except (OSError, OverflowError, ValueError) as error:
        raise UnsupportedObject(f"no memory of {size} bytes: {error}") from error


def _make_executable(base: int, size: int) -> None:
    protect = _process().mprotect
    protect.argtypes, protect.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int], ctypes.c_int
    if protect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnsupportedObject(f"the system refuses executable memory (error {ctypes.get_errno()})")


class _Layout:
    """Where everything lies in the mapping, as offsets from its start."""

    def __init__(self, code: ElfObject, machine: Machine) -> None:
        self._code = code
        self._machine = machine
        self._places: dict[int, int] = {}
        called = [r for r in code.relocations if r.kind in machine.calls and r.symbol.section is None]
        through_slot = [r for r in code.relocations if r.kind in machine.slots]
        end = self._place((s for s in code.sections if not s.is_writable), 0)
        self._stubs, end = _row([r.symbol for r in called], _up(end, 16), machine.stub_bytes)
        slotted = [r.symbol for r in (*called, *through_slot)]
        self._slots, end = _row(slotted, _up(end, _SLOT_BYTES), _SLOT_BYTES)
        self.code_size = max(_up(end, mmap.PAGESIZE), mmap.PAGESIZE)
        end = self._place((s for s in code.sections if s.is_writable), self.code_size)
        self.size = _up(end, mmap.PAGESIZE)

    def _place(self, sections: Iterable[Section], end: int) -> int:
        for section in sections:
            if section.alignment > mmap.PAGESIZE:
                raise UnsupportedObject(f"a section is aligned to {section.alignment} bytes")
            self._places[section.number] = _up(end, section.alignment)
            end = self._places[section.number] + section.size
        return end

    def offset_of(self, symbol: Symbol) -> int:
        """Where a symbol that the object defines lies."""
        assert symbol.section is not None
        if symbol.section not in self._places:
            raise UnsupportedObject(f"symbol {symbol.name!r} is in a section that is not loaded")
        return self._places[symbol.section] + symbol.value

    def write(self, memory: memoryview, base: int) -> None:
        """Fill the mapping, which starts at address `base`."""
        for section in self._code.sections:
            at = self._places[section.number]
            memory[at : at + len(section.data)] = section.data
        for symbol, at in self._slots.items():
            address = _external(symbol.name) if symbol.section is None else base + self.offset_of(symbol)
            memory[at : at + _SLOT_BYTES] = address.to_bytes(_SLOT_BYTES, "little")
        for symbol, at in self._stubs.items():
            stub = self._machine.stub(base + self._slots[symbol], base + at)
            memory[at : at + len(stub)] = stub
        self._relocate(memory, base)

    def _relocate(self, memory: memoryview, base: int) -> None:
        kinds = self._machine.kinds
        for relocation in self._code.relocations:
            apply = kinds.get(relocation.kind)
            if apply is None:
                raise UnsupportedObject(f"relocation {relocation.kind} is not known")
            symbol = relocation.symbol
            at = self._places[relocation.section] + relocation.offset
            slot = base + self._slots[symbol] + relocation.addend if symbol in self._slots else 0
            target = 0
            if relocation.kind not in self._machine.slots:
                target = self._target(symbol, relocation.kind, base) + relocation.addend
            apply(memory, at, Reference(target, slot, base + at))

    def _target(self, symbol: Symbol, kind: int, base: int) -> int:
        if symbol.section is not None:
            return base + self.offset_of(symbol)
        return base + self._stubs[symbol] if kind in self._machine.calls else _external(symbol.name)


def _row(symbols: Sequence[Symbol], start: int, size: int) -> tuple[dict[Symbol, int], int]:
    """One place of `size` bytes for each symbol, and the end."""
    places = {symbol: start + size * number for number, symbol in enumerate(dict.fromkeys(symbols))}
    return places, start + size * len(places)
