"""What running programs print and assert: the same lines and the same error in both modes."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.diagnostics import CompileTimeAssertionFailure, DeviceAssertionError
from tests.numerics import event_kernels as kernels
from tests.numerics.launching import interpreted
from tests.numerics.values import ALL, FLOAT8, NUMPY_DTYPES, numbers

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, kernel: Any, grid: Any, *arguments: Any, **named: Any) -> tuple[list[str], str]:
    """The lines and the error, compiled and interpreted alike; arrays are copied."""
    results = []
    for run in (kernel, interpreted(kernel)):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        error = ""
        try:
            run[grid](*copies, **named)
        except DeviceAssertionError as raised:
            error = str(raised)
        results.append((capsys.readouterr().out.splitlines(), error))
    assert results[0] == results[1]
    return results[0]


@pytest.mark.parametrize("name", [*ALL, *FLOAT8])
def test_elements_of_every_type(capsys: Capture, name: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(NUMPY_DTYPES[name]) if name in FLOAT8 else numbers(name)
    n = len(x)
    lines, _ = said(capsys, kernels.values, (1,), x, BLOCK=n)
    width = x.dtype.itemsize
    digits = 1 if name == "int1" else 2 * width
    for lane in range(n):
        start = f"pid (0, 0, 0) idx ({lane}) "
        is_float = name.startswith(("fp", "bf"))
        if is_float:
            number = float(x[lane])
            text = "nan" if math.isnan(number) else f"{number:f}"
        else:
            text = str(int(x[lane]))
        assert lines[lane] == f"{start}v: {text}"
        bits = int(x[lane : lane + 1].view(f"u{width}")[0])
        if not (is_float and math.isnan(float(x[lane]))):
            assert lines[n + lane] == f"{start}bits: 0x{bits:0{digits}x}"
    assert len(lines) == 2 * n


def test_forms(capsys: Capture) -> None:
    lines, _ = said(capsys, kernels.forms, (2, 2), np.arange(3, dtype=np.int32), 3, BLOCK=3)
    first = lines[: len(lines) // 4]
    at = "pid (0, 0, 0) idx "
    assert first[:5] == [
        f"{at}() pid: (operand 0) 0",
        f"{at}() pid: (operand 1) 3",
        f"{at}() pid: (operand 2) 3",
        f"{at}() pid: (operand 3) 1.500000",
        f"{at}() pid: (operand 4) 1",
    ]
    assert first[5:8] == [f"{at}({i}) block: (operand 0) {2 * i}" for i in range(3)]
    table = [f"{at}({i}, {j}) block: (operand 1) {int(i < j)}" for i in range(3) for j in range(3)]
    assert first[8:17] == table
    assert first[17:21] == [f"{at}() nothing", *(f"{at}({i}): {int(i > 0)}" for i in range(3))]
    assert first[21:23] == [f"{at}(0, {j}) computed: 0x3f800000" for j in range(2)]
    assert first[23:] == [f"{at}() sum: 3"]
    programs = [line.split(" idx")[0] for line in lines]
    assert list(dict.fromkeys(programs)) == [
        "pid (0, 0, 0)",
        "pid (1, 0, 0)",
        "pid (0, 1, 0)",
        "pid (1, 1, 0)",
    ]


@pytest.mark.parametrize("block", [1, 5, 33])
def test_prints_stand_between_other_effects(capsys: Capture, block: int) -> None:
    x = np.arange(block, dtype=np.int32)
    lines, _ = said(capsys, kernels.around_effects, (1,), x, block, BLOCK=block)
    assert lines[:block] == [f"pid (0, 0, 0) idx ({i}) before: {i}" for i in range(block)]
    sums = [line for line in lines if "k: (operand 1)" in line]
    assert sums == [
        f"pid (0, 0, 0) idx ({i}) k: (operand 1) {i + k * (i + 1)}" for k in (1, 2) for i in range(block)
    ]
    assert lines.count("pid (0, 0, 0) idx () again") == 2
    old = [line for line in lines if "old" in line]
    assert old == [f"pid (0, 0, 0) idx ({i}) old: {4 if i == 0 else i + 1}" for i in range(block)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_lines_follow_the_programs(capsys: Capture, threads: int) -> None:
    programs = 2000
    for _ in range(3):
        out = np.zeros(1, np.int32)
        kernels.many[programs,](out, BLOCK=3, num_threads=threads)
        wanted = []
        for pid in range(programs):
            wanted.append(f"pid ({pid}, 0, 0) idx () pid: {pid}")
            if pid % 7 == 3:
                wanted += [f"pid ({pid}, 0, 0) idx ({i}) block: {pid + i}" for i in range(3)]
        assert capsys.readouterr().out.splitlines() == wanted
        assert out[0] == programs


def test_nothing_is_asserted_without_debug(capsys: Capture) -> None:
    x = np.full(12, -1, np.int32)
    lines, error = said(capsys, kernels.asserts, (3,), x, np.zeros(3, np.int32), 4, LAST=0, BLOCK=4)
    assert not error
    assert len(lines) == 6


@pytest.mark.parametrize("threads", [1, 3])
def test_a_program_stops_at_its_assertion(capsys: Capture, threads: int) -> None:
    x = np.arange(40, dtype=np.int32)
    x[7], x[17], x[25] = -1, -1, -1  # the mask hides the first of them
    named = {"LAST": 8, "BLOCK": 4, "debug": True, "num_threads": threads}
    lines, error = said(capsys, kernels.asserts, (10,), x, np.zeros(10, np.int32), 4, **named)
    assert "event_kernels.py" in error
    assert "the assertion does not hold in program [4, 0, 0], lane [1]: negative" in error
    caret = 'tl.device_assert(v >= 0, "negative", mask=i < n - 1)'
    assert f"    {caret}\n    {'^' * len(caret)}" in error
    assert lines == [
        *(f"pid ({p}, 0, 0) idx () {word}: {p}" for p in range(4) for word in ("starts", "ends")),
        "pid (4, 0, 0) idx () starts: 4",
    ]
    for _ in range(3):
        out = np.zeros(10, np.int32)
        with pytest.raises(DeviceAssertionError):
            kernels.asserts[10,](x, out, 4, **named)
        assert (out[[4, 6, 8, 9]] == 0).all()
        assert (out[:4] == 1).all()


def test_python_assertions(capsys: Capture) -> None:
    named = {"LAST": 2, "BLOCK": 4, "debug": True}
    x, out = np.zeros(12, np.int32), np.zeros(3, np.int32)
    _, error = said(capsys, kernels.asserts, (3,), x, out, 4, **named)
    assert "the assertion does not hold in program [2, 0, 0]: no program may be 2" in error
    assert 'assert pid < LAST, f"no program may be {LAST}"\n    ^^^^^^^' in error
    _, error = said(capsys, kernels.no_message, (1,), np.zeros(1, np.int32), debug=True)
    assert re.search(r"does not hold in program \[0, 0, 0\]\n", error)
    assert said(capsys, kernels.no_message, (1,), np.ones(1, np.int32), debug=True) == ([], "")


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 33)])
def test_the_first_lane_that_fails(capsys: Capture, shape: tuple[int, int]) -> None:
    m, n = shape
    x = np.arange(1, m * n + 1, dtype=np.int32).reshape(m, n)
    named = {"M": m, "N": n, "debug": True}
    assert said(capsys, kernels.assert_of_two_axes, (1,), x, **named) == ([], "")
    x[0] = 0
    assert said(capsys, kernels.assert_of_two_axes, (1,), x, **named) == ([], "")
    if m > 1:
        x[1, n - 2] = -2
        _, error = said(capsys, kernels.assert_of_two_axes, (1,), x, **named)
        assert f"in program [0, 0, 0], lane [1, {n - 2}]" in error


def test_assertions_of_constants_need_no_debug_mode() -> None:
    for kernel in (kernels.compile_time, interpreted(kernels.compile_time)):
        with pytest.raises(CompileTimeAssertionFailure, match="the assertion failed: N is too small"):
            kernel[1,](np.zeros(1, np.int32), N=2)
        kernel[1,](np.zeros(1, np.int32), N=4)


@pytest.mark.parametrize("variable", ["BLOCKLANG_DEBUG", "TRITON_DEBUG"])
@pytest.mark.parametrize("interpret", [False, True])
def test_debug_mode_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, interpret: bool
) -> None:
    x = np.zeros(1, np.int32)
    monkeypatch.setenv(variable, "1")
    kernel = bl.jit(interpret=interpret)(kernels.no_message.fn)
    with pytest.raises(DeviceAssertionError):
        kernel[1,](x)
    kernel[1,](x, debug=False)
    monkeypatch.setenv(variable, "0")
    bl.jit(interpret=interpret)(kernels.no_message.fn)[1,](x)


def test_the_error_is_an_assertion_error_at_every_launch() -> None:
    """Also of a kernel that has been launched often enough for a launch without Python."""
    x = np.zeros(1, np.int32)
    kernel = bl.jit(debug=True)(kernels.no_message.fn)
    for _ in range(40):
        with pytest.raises(AssertionError):
            kernel[1,](x)
