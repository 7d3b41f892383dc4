"""ELF objects become code without LLVM: what they compute, what is refused, how memory is protected."""

from __future__ import annotations

import ctypes
import random
import struct
from pathlib import Path

import pytest

from blocklang.runtime import image
from blocklang.runtime.elf import AARCH64, X86_64, UnsupportedObject, read_object
from blocklang.runtime.image import Image
from blocklang.runtime.loader import assemble
from blocklang.runtime.relocations import MACHINES, Reference

elf_only = pytest.mark.skipif(
    image._own_machine() is None, reason="objects of this system are not ELF: LLVM's linker loads them"
)

# Code, constants, a variable, a table of addresses, zeroed memory, calls and data of the C library.
_MODULE = """
@table = internal constant [3 x i64] [i64 10, i64 20, i64 30]
@counter = internal global i64 5
@zeros = internal global [5000 x i64] zeroinitializer
@functions = internal constant [2 x ptr] [ptr @one, ptr @two]
@environ = external global ptr
declare i64 @labs(i64)
declare ptr @memset(ptr, i32, i64)
define internal i64 @one(i64 %x) {
  %y = add i64 %x, 1
  ret i64 %y
}
define internal i64 @two(i64 %x) {
  %y = call i64 @labs(i64 %x)
  ret i64 %y
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  ret i64 %new
}
define i64 @pick(i64 %index) {
  %at = getelementptr i64, ptr @table, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}
define i64 @apply(i64 %which, i64 %x) {
  %at = getelementptr ptr, ptr @functions, i64 %which
  %function = load ptr, ptr %at
  %y = call i64 %function(i64 %x)
  ret i64 %y
}
define i64 @last() {
  %at = getelementptr i64, ptr @zeros, i64 4999
  %before = load i64, ptr %at
  %ignored = call ptr @memset(ptr %at, i32 1, i64 8)
  %after = load i64, ptr %at
  %sum = add i64 %before, %after
  ret i64 %sum
}
define double @constant(double %x) {
  %y = fmul double %x, 1.1
  ret double %y
}
define ptr @environment() {
  ret ptr @environ
}
"""
_SYMBOLS = ["count", "pick", "apply", "last", "constant", "environment"]


def call(code: Image, name: str, *arguments: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))(code.address(name))
    return int(function(*arguments))


@elf_only
def test_code_constants_variables_and_external_functions() -> None:
    code = Image(assemble(_MODULE), _SYMBOLS)
    assert [call(code, "count") for _ in range(3)] == [6, 7, 8]
    assert [call(code, "pick", index) for index in range(3)] == [10, 20, 30]
    assert call(code, "apply", 0, -5) == -4
    assert call(code, "apply", 1, -5) == 5
    assert call(code, "last") == 0x0101010101010101
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("constant"))(2.0) == 2.2
    own = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(None), "environ"))
    assert call(code, "environment") == own


@elf_only
def test_two_images_have_variables_of_their_own() -> None:
    object_code = assemble(_MODULE)
    first, second = Image(object_code, _SYMBOLS), Image(object_code, _SYMBOLS)
    assert [call(first, "count"), call(first, "count"), call(second, "count")] == [6, 7, 6]


@elf_only
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads the mappings from /proc")
def test_no_page_is_writable_and_executable() -> None:
    def mode_at(address: int) -> str:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, mode = line.split()[:2]
            low, high = (int(end, 16) for end in span.split("-"))
            if low <= address < high:
                return mode
        raise AssertionError(f"nothing is mapped at {address:#x}")

    text = "@v = global i64 1\ndefine ptr @place() {\n  ret ptr @v\n}\n"
    code = Image(assemble(text), ["place"])
    assert mode_at(code.address("place")) == "r-xp"
    assert mode_at(call(code, "place")) == "rw-p"


@elf_only
def test_a_missing_symbol_is_refused() -> None:
    unknown = "declare void @nowhere()\ndefine void @f() {\n  call void @nowhere()\n  ret void\n}\n"
    with pytest.raises(UnsupportedObject, match="nowhere"):
        Image(assemble(unknown), ["f"])
    with pytest.raises(UnsupportedObject, match="does not define 'g'"):
        Image(assemble("define void @f() {\n  ret void\n}\n"), ["g"])


@elf_only
@pytest.mark.parametrize(
    "module",
    [
        "@t = thread_local global i64 1\ndefine ptr @f() {\n  ret ptr @t\n}\n",
        "@c = common global i64 0\ndefine ptr @f() {\n  ret ptr @c\n}\n",
    ],
)
def test_what_is_not_known_is_left_to_llvm(module: str) -> None:
    with pytest.raises(UnsupportedObject):
        Image(assemble(module), ["f"])


@elf_only
def test_damaged_objects_are_refused_or_read_but_never_crash() -> None:
    object_code = assemble(_MODULE)
    generator = random.Random(0)
    for length in range(0, len(object_code), 37):
        with pytest.raises(UnsupportedObject):
            read_object(object_code[:length])
    for _ in range(300):
        changed = bytearray(object_code)
        for _ in range(3):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        try:
            read_object(bytes(changed))
        except UnsupportedObject:
            continue


def _applied(machine: int, kind: int, before: bytes, reference: Reference) -> bytes:
    memory = bytearray(before)
    MACHINES[machine].kinds[kind](memoryview(memory), 0, reference)
    return bytes(memory)


def test_x86_distances_are_signed_and_checked() -> None:
    place = 0x7F00_0000_0000
    assert _applied(X86_64, 2, bytes(4), Reference(place - 4, 0, place)) == struct.pack("<i", -4)
    assert _applied(X86_64, 42, bytes(4), Reference(0, place + 16, place)) == struct.pack("<i", 16)
    assert _applied(X86_64, 1, bytes(8), Reference(place, 0, 0)) == place.to_bytes(8, "little")
    with pytest.raises(UnsupportedObject, match="does not fit"):
        _applied(X86_64, 4, bytes(4), Reference(place + (1 << 31), 0, place))
    stub = MACHINES[X86_64].stub(place + 64, place)
    assert stub[:2] == b"\xff\x25"
    assert struct.unpack_from("<i", stub, 2)[0] == 64 - 6


@pytest.mark.parametrize(
    ("kind", "before", "target", "place", "after"),
    [
        # The instructions as `llvm-mc -arch=aarch64` encodes them.
        (283, 0x94000000, 0x1000, 0x2000, 0x97FFFC00),  # bl #-0x1000
        (283, 0x94000000, 0x2008, 0x2000, 0x94000002),  # bl #8
        (282, 0x14000000, 0x2004, 0x2000, 0x14000001),  # b #4
        (275, 0x90000000, 0x5123, 0x2FFC, 0xF0000000),  # adrp x0, #0x3000
        (275, 0x90000000, 0x1000, 0x2000, 0xF0FFFFE0),  # adrp x0, #-0x1000
        (277, 0x91000000, 0x5123, 0, 0x91048C00),  # add x0, x0, #0x123
        (286, 0xF9400000, 0x5128, 0, 0xF9409400),  # ldr x0, [x0, #0x128]
        (285, 0xB9400000, 0x5124, 0, 0xB9412400),  # ldr w0, [x0, #0x124]
        (299, 0x3DC00000, 0x5120, 0, 0x3DC04800),  # ldr q0, [x0, #0x120]
    ],
)
def test_fields_of_aarch64_instructions(kind: int, before: int, target: int, place: int, after: int) -> None:
    memory = _applied(AARCH64, kind, struct.pack("<I", before), Reference(target, 0, place))
    assert struct.unpack("<I", memory)[0] == after


def test_aarch64_distances_are_checked() -> None:
    with pytest.raises(UnsupportedObject, match="does not fit"):
        _applied(AARCH64, 283, bytes(4), Reference(1 << 28, 0, 0))
    with pytest.raises(UnsupportedObject, match="does not fit"):
        _applied(AARCH64, 275, bytes(4), Reference(1 << 33, 0, 0))
    with pytest.raises(UnsupportedObject, match="not aligned"):
        _applied(AARCH64, 286, bytes(4), Reference(0x5124, 0, 0))
    stub = struct.unpack("<III", MACHINES[AARCH64].stub(0x5128, 0x2000))
    assert stub == (0xF0000010, 0xF9409610, 0xD61F0200)  # adrp x16, #0x3000; ldr x16, [x16, #0x128]; br x16
