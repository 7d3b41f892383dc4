"""Prints and assertions, operation by operation, and their text."""

from __future__ import annotations

import numpy as np
import pytest

from blocklang.diagnostics import DeviceAssertionError
from blocklang.ir.types import F32, I1, I8, U64, PointerType
from blocklang.ops.events import DeviceAssert, DevicePrint, index_of, text_of
from tests.interpreter.harness import apply


def test_a_print_says_every_lane(capsys: pytest.CaptureFixture[str]) -> None:
    apply(DevicePrint, np.array([[1, -2]], np.int16), title=" x: ")
    apply(DevicePrint, np.array(0.5, np.float16), title=": ", hex=True)
    apply(DevicePrint, title=" done")
    assert capsys.readouterr().out.splitlines() == [
        "pid (3, 1, 2) idx (0, 0) x: 1",
        "pid (3, 1, 2) idx (0, 1) x: -2",
        "pid (3, 1, 2) idx (): 0x3800",
        "pid (3, 1, 2) idx () done",
    ]


def test_an_assertion_names_program_and_lane() -> None:
    apply(DeviceAssert, np.array(6, np.int32), shape=(2, 3), message="no")
    with pytest.raises(DeviceAssertionError, match=r"in program \[3, 1, 2\], lane \[1, 1\]: no"):
        apply(DeviceAssert, np.array(4, np.int32), shape=(2, 3), message="no")
    with pytest.raises(DeviceAssertionError, match=r"in program \[3, 1, 2\]$"):
        apply(DeviceAssert, np.array(0, np.int32))


def test_texts() -> None:
    assert text_of(0xFF, I8, hex=False) == "-1"
    assert text_of(0xFF, I8, hex=True) == "0xff"
    assert text_of(1, I1, hex=False) == "1"
    assert text_of(1, I1, hex=True) == "0x1"
    assert text_of(2**64 - 1, U64, hex=False) == str(2**64 - 1)
    assert text_of(0xFF800000, F32, hex=False) == "-inf"
    assert text_of(0xFFC00000, F32, hex=False) == "nan"
    assert text_of(0x7FFF12345678, PointerType(F32), hex=False) == "0x00007fff12345678"
    assert [index_of(lane, (2, 3)) for lane in range(6)] == [(i, j) for i in range(2) for j in range(3)]
    assert index_of(0, ()) == ()
