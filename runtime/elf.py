"""Relocatable ELF objects, as LLVM writes them for 64-bit Linux: sections, symbols, relocations.

Only what machine code needs is read. An object that holds anything else (thread-local variables,
constructors, common symbols) is refused by name: `UnsupportedObject`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

X86_64 = 62
AARCH64 = 183

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE = 1
_UNDEFINED, _FIRST_RESERVED, _ABSOLUTE = 0, 0xFF00, 0xFFF1
_PROGBITS, _SYMTAB, _RELA, _NOTE, _NOBITS = 1, 2, 4, 7, 8
_MACHINES_OWN = 0x6000_0000  # types of sections from here on are for unwinding
_WRITE, _ALLOCATE, _THREAD_LOCAL = 1, 2, 0x400
_PLAIN_SYMBOLS = (0, 1, 2, 3)  # no type, data, function, section


class UnsupportedObject(Exception):
    """The object holds what this loader does not know."""


class Section(NamedTuple):
    """Bytes that belong into memory.

    Attributes:
        number: its place in the object.
        data: what it holds; shorter than `size` if the rest is zero.
        alignment: of its address, in bytes.
        is_writable: True for variables.
    """

    number: int
    data: memoryview
    size: int
    alignment: int
    is_writable: bool


class Symbol(NamedTuple):
    """A name for a place: `value` bytes into the section, or an external one if `section` is None."""

    name: str
    section: int | None
    value: int


class Relocation(NamedTuple):
    """A place that depends on addresses: `offset` bytes into the section, and what it refers to."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int


class ElfObject(NamedTuple):
    """What an object holds of interest."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def read_object(code: bytes) -> ElfObject:
    """Read a relocatable object.

    Raises:
        UnsupportedObject: it is none, or holds what is not known.
    """
    try:
        return _read(memoryview(code))
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise UnsupportedObject(f"not an object that can be read: {error}") from error


def _read(code: memoryview) -> ElfObject:
    if len(code) < _HEADER.size:
        raise UnsupportedObject("too short for an object")
    identity, kind, machine, _, _, _, table, _, _, _, _, _, count, _ = _HEADER.unpack_from(code)
    if not identity.startswith(_MAGIC) or kind != _RELOCATABLE or machine not in (X86_64, AARCH64):
        raise UnsupportedObject("not a relocatable ELF object of 64 bits for x86-64 or AArch64")
    headers = [_SECTION.unpack_from(code, table + _SECTION.size * n) for n in range(count)]
    sections = tuple(_sections(code, headers))
    loaded = {section.number for section in sections}
    symbols: tuple[Symbol, ...] = ()
    for header in headers:
        if header[1] == _SYMTAB:
            symbols = tuple(_symbols(code, header, headers[header[6]]))
    return ElfObject(machine, sections, symbols, tuple(_relocations(code, headers, loaded, symbols)))


def _sections(code: memoryview, headers: list[tuple[int, ...]]) -> Iterator[Section]:
    for number, (_, kind, flags, _, offset, size, _, _, alignment, _) in enumerate(headers):
        # What is no plain data is for unwinding and linking: nothing unwinds through a kernel.
        if not flags & _ALLOCATE or kind == _NOTE or kind >= _MACHINES_OWN:
            continue
        if flags & _THREAD_LOCAL or kind not in (_PROGBITS, _NOBITS):
            raise UnsupportedObject(f"section {number} is of type {kind:#x} with flags {flags:#x}")
        data = code[offset : offset + size] if kind == _PROGBITS else code[:0]
        if kind == _PROGBITS and len(data) != size:
            raise UnsupportedObject("a section goes beyond the end of the object")
        yield Section(number, data, size, max(alignment, 1), bool(flags & _WRITE))


def _symbols(code: memoryview, table: tuple[int, ...], names: tuple[int, ...]) -> Iterator[Symbol]:
    text = bytes(code[names[4] : names[4] + names[5]])
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name_at, information, _, section, value, _ = _SYMBOL.unpack_from(code, at)
        name = text[name_at : text.index(b"\0", name_at)].decode()
        is_external = section == _UNDEFINED
        if section >= _FIRST_RESERVED:  # absolute ones name the source file
            if section != _ABSOLUTE:
                raise UnsupportedObject(f"symbol {name!r} is common")
            is_external = True
        elif information & 0xF not in _PLAIN_SYMBOLS:
            raise UnsupportedObject(f"symbol {name!r} is of type {information & 0xF}")
        yield Symbol(name, None if is_external else section, value)


def _relocations(
    code: memoryview, headers: list[tuple[int, ...]], loaded: set[int], symbols: tuple[Symbol, ...]
) -> Iterator[Relocation]:
    for _, kind, _, _, offset, size, _, section, _, _ in headers:
        if kind != _RELA or section not in loaded:
            continue
        for at in range(offset, offset + size, _RELOCATION.size):
            place, information, addend = _RELOCATION.unpack_from(code, at)
            symbol = symbols[information >> 32]
            if symbol.section is not None and symbol.section not in loaded:
                raise UnsupportedObject(f"a reference to section {symbol.section}, which is not loaded")
            yield Relocation(section, place, information & 0xFFFFFFFF, symbol, addend)
