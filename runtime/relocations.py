"""The relocations of x86-64 and AArch64 that LLVM's position-independent code has, and stubs for far calls.

Notation of the ABI documents: S the symbol's address, A the addend, P the place, G the address of the
symbol's slot in the table of addresses. A call of an external function goes through a stub, which jumps to
where the function's slot says: it may be farther away than a call reaches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from blocklang.runtime.elf import AARCH64, X86_64, UnsupportedObject


class Reference(NamedTuple):
    """What a relocation refers to.

    Attributes:
        target: S + A; of an external function that is called, of its stub.
        slot: G + A; 0 if the symbol has no slot.
        place: P.
    """

    target: int
    slot: int
    place: int


# Writes the bits of one relocation into the memory of the image, at an offset.
Apply = Callable[[memoryview, int, Reference], None]


class Machine(NamedTuple):
    """How one machine refers to addresses.

    Attributes:
        kinds: what to do for each number of a relocation.
        calls: the numbers that call or jump: an external target needs a stub.
        slots: the numbers that read an address from a slot.
        stub: the code of a stub from the distance to its slot and its own address.
        stub_bytes: its size.
    """

    kinds: dict[int, Apply]
    calls: frozenset[int]
    slots: frozenset[int]
    stub: Callable[[int, int], bytes]
    stub_bytes: int


def _signed(value: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise UnsupportedObject(f"a distance of {value} bytes does not fit {bits} bits")
    return value


def _absolute_64(memory: memoryview, at: int, ref: Reference) -> None:
    struct.pack_into("<Q", memory, at, ref.target & 0xFFFF_FFFF_FFFF_FFFF)


def _relative_64(memory: memoryview, at: int, ref: Reference) -> None:
    struct.pack_into("<q", memory, at, ref.target - ref.place)


def _relative_32(memory: memoryview, at: int, ref: Reference) -> None:
    struct.pack_into("<i", memory, at, _signed(ref.target - ref.place, 32))


def _slot_relative_32(memory: memoryview, at: int, ref: Reference) -> None:
    struct.pack_into("<i", memory, at, _signed(ref.slot - ref.place, 32))


def _stub_x86(slot: int, place: int) -> bytes:
    return b"\xff\x25" + struct.pack("<i", _signed(slot - place - 6, 32)) + b"\xcc\xcc"  # jmp [rip + slot]


_X86 = Machine(
    kinds={
        1: _absolute_64,  # R_X86_64_64
        2: _relative_32,  # PC32
        4: _relative_32,  # PLT32
        24: _relative_64,  # PC64
        9: _slot_relative_32,  # GOTPCREL
        41: _slot_relative_32,  # GOTPCRELX
        42: _slot_relative_32,  # REX_GOTPCRELX
    },
    calls=frozenset({4}),
    slots=frozenset({9, 41, 42}),
    stub=_stub_x86,
    stub_bytes=8,
)


def _insert(memory: memoryview, at: int, field: int) -> None:
    """Set bits of an instruction that are 0 in the object."""
    (instruction,) = struct.unpack_from("<I", memory, at)
    struct.pack_into("<I", memory, at, instruction | field)


def _pages(target: int, place: int) -> int:
    """The field of an ADRP: the distance in pages of 4 KiB, low two bits apart."""
    pages = _signed((target >> 12) - (place >> 12), 21)
    return (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _page(memory: memoryview, at: int, ref: Reference) -> None:
    _insert(memory, at, _pages(ref.target, ref.place))


def _slot_page(memory: memoryview, at: int, ref: Reference) -> None:
    _insert(memory, at, _pages(ref.slot, ref.place))


def _in_page(size: int) -> Apply:
    """The offset in the page, counted in elements of `size` bytes."""

    def apply(memory: memoryview, at: int, ref: Reference) -> None:
        offset = ref.target & 0xFFF
        if offset % size:
            raise UnsupportedObject("an address is not aligned as its access wants it")
        _insert(memory, at, offset // size << 10)

    return apply


def _slot_in_page(memory: memoryview, at: int, ref: Reference) -> None:
    _insert(memory, at, (ref.slot & 0xFFF) // 8 << 10)


def _branch(memory: memoryview, at: int, ref: Reference) -> None:
    _insert(memory, at, _signed(ref.target - ref.place, 28) >> 2 & 0x3FF_FFFF)


def _stub_arm(slot: int, place: int) -> bytes:
    adrp = 0x9000_0010 | _pages(slot, place)  # adrp x16, slot
    load = 0xF940_0210 | (slot & 0xFFF) // 8 << 10  # ldr x16, [x16, offset]
    return struct.pack("<III", adrp, load, 0xD61F_0200)  # br x16


_ARM = Machine(
    kinds={
        257: _absolute_64,  # R_AARCH64_ABS64
        260: _relative_64,  # PREL64
        261: _relative_32,  # PREL32
        275: _page,  # ADR_PREL_PG_HI21
        277: _in_page(1),  # ADD_ABS_LO12_NC
        278: _in_page(1),  # LDST8_ABS_LO12_NC
        284: _in_page(2),
        285: _in_page(4),
        286: _in_page(8),
        299: _in_page(16),
        282: _branch,  # JUMP26
        283: _branch,  # CALL26
        311: _slot_page,  # ADR_GOT_PAGE
        312: _slot_in_page,  # LD64_GOT_LO12_NC
    },
    calls=frozenset({282, 283}),
    slots=frozenset({311, 312}),
    stub=_stub_arm,
    stub_bytes=16,
)

MACHINES = {X86_64: _X86, AARCH64: _ARM}
