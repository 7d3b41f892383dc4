"""The eager driver: the user's own lines, with the language's rules, pdb, print and errors."""

from __future__ import annotations

import io
import linecache
import pdb  # noqa: T100
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang.language as tl
from blocklang.diagnostics import CompileTimeAssertionFailure, DeviceAssertionError, InterpreterError
from blocklang.frontend.source import KernelSource
from blocklang.interpreter import LaunchArgument, interpret_launch
from blocklang.ir.types import F32, I1, I32, I64, SCALARS, PointerType
from tests.interpreter import kernels
from tests.interpreter.harness import Array, type_of


def code_of(function: object) -> KernelSource | None:
    return KernelSource.from_function(function) if function in kernels.CALLABLE else None


def argument(value: Any) -> LaunchArgument:
    if isinstance(value, LaunchArgument):
        return value
    if isinstance(value, np.ndarray):
        return LaunchArgument(value, PointerType(type_of(value)))
    if isinstance(value, bool):
        return LaunchArgument(value, I1)
    return LaunchArgument(value, I32 if isinstance(value, int) else F32)


def launch(
    function: Callable[..., Any], grid: tuple[int, ...], *, debug: bool = False, **arguments: Any
) -> None:
    source = KernelSource.from_function(function)
    given = {name: argument(value) for name, value in arguments.items()}
    interpret_launch(source, given, grid, code_of=code_of, debug=debug)


def static(value: Any) -> LaunchArgument:
    return LaunchArgument(value)


def run(function: Callable[..., Any], *, size: int = 1, dtype: Any = np.int32, **arguments: Any) -> Array:
    """Launch a kernel on one program with an array `out` of `size` elements."""
    out = np.zeros(size, dtype)
    launch(function, (1,), out=out, **arguments)
    return out


# ---- whole kernels ----


def test_vector_add() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 250), np.float32)
    out = np.zeros(250, np.float32)
    launch(kernels.add_kernel, (3,), out=out, x=x, y=y, n=250, BLOCK=static(100))
    assert out.tolist() == (x + y).tolist()


def test_softmax() -> None:
    x = np.random.default_rng(0).standard_normal((4, 40)).astype(np.float32)
    out = np.zeros_like(x)
    launch(kernels.softmax_kernel, (4,), out=out, x=x, n=37, stride=40, BLOCK=static(64))
    wide = np.exp(x[:, :37].astype(float))
    np.testing.assert_allclose(out[:, :37], wide / wide.sum(1, keepdims=True), rtol=1e-6)
    assert not out[:, 37:].any()


def test_matmul() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 21), np.float32), rng.standard_normal((21, 16), np.float32)
    c = np.zeros((8, 16), np.float32)
    launch(kernels.matmul_kernel, (1,), c=c, a=a, b=b, K=21, BM=static(8), BN=static(16), BK=static(8))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


# ---- the language's rules on the user's lines ----


def test_assigned_numbers_are_run_time_scalars() -> None:
    out = run(kernels.assigned_numbers, size=8, x=np.zeros(1, np.int8))
    assert out.tolist() == list(range(5, 13))


def test_division_truncates_at_run_time_and_floors_at_compile_time() -> None:
    assert run(kernels.division, size=4, a=-7, b=2, A=static(-7), B=static(2)).tolist() == [-3, -1, -4, 1]


@pytest.mark.parametrize(("n", "expected"), [(0, [0, 1, 1, 1, 1, 20]), (1, [1, 1, 0, 0, 1, 10])])
def test_scalar_conditions(n: int, expected: list[int]) -> None:
    x = np.array([0, 9], np.int32)[: 2 if n else 0]
    assert run(kernels.scalar_logic, size=6, n=n, x=x).tolist() == expected


@pytest.mark.parametrize(("n", "expected"), [(0, [0, 5, 7, 12, -5]), (4, [5, 5, 5, 12, -5])])
def test_the_operand_that_decides_has_the_common_type(n: int, expected: list[int]) -> None:
    out = run(kernels.deciding_operands, size=5, n=n, x=np.array([5], np.int8))
    assert out.tolist() == expected


def test_blocks_of_bools_are_joined_lane_by_lane() -> None:
    out = run(kernels.block_logic, size=16)
    assert out.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("n", "total"), [(0, 100), (4, 104), (9, 8)])
def test_loops(n: int, total: int) -> None:
    wide = LaunchArgument(3, I64)
    out = run(kernels.loops, size=12, n=n, step=-4, wide=wide)
    assert out[:2].tolist() == [total, 62]
    assert out[2:5].tolist() == [0, 1, 2]
    assert out[5] == next(t for t in (total >> k for k in range(10)) if t <= 3)
    assert out[6] == 2
    assert out[9] == 5


def test_calls() -> None:
    assert run(kernels.calls, size=5, n=4).tolist() == [7, 11, 32, 8, 4]
    assert run(kernels.calls, size=5, n=20).tolist() == [20, 23, 160, 23, 20]


def test_closures_by_value() -> None:
    assert run(kernels.make_closure(41)).tolist() == [41]


def test_programs_run_in_order() -> None:
    def order(out: Any, count: Any) -> None:
        n = tl.load(count)
        tl.store(out + n, tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.num_programs(0))
        tl.store(count, n + 1)

    out = np.zeros(6, np.int32)
    launch(order, (3, 2), out=out, count=np.zeros((), np.int32))
    assert out.tolist() == [300, 301, 302, 310, 311, 312]


# ---- combine functions ----


def tree(items: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    while len(items) > 1:
        pairs = [combine(items[i], items[i + 1]) for i in range(0, len(items) - 1, 2)]
        items = pairs + items[2 * len(pairs) :]
    return items[0]


def test_reductions_by_a_users_function() -> None:
    x = np.random.default_rng(0).integers(0, 30, 35, np.int32)
    out = run(kernels.reductions, size=9, x=x, BLOCK=static(35))
    values = [int(v) for v in x]
    wrapped = np.array([tree(values, lambda a, b: a * 3 + b)]).astype(np.int32)
    assert out[0] == wrapped[0]
    assert out[1] == tree(values, kernels.branching)
    assert out[2:4].tolist() == [min(values), max(values)]
    assert out[4:].tolist() == [tree(values[j::5], kernels.branching) for j in range(5)]


# ---- seen from outside ----


def test_print_shows_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    launch(kernels.printing, (1,), x=np.array([1.5, 2, 3], np.float32))
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) idx (0): 1.500000",
        "pid (0, 0, 0) idx (1): 2.000000",
        "pid (0, 0, 0) idx (2): 3.000000",
        "pid (0, 0, 0) idx () sum: 6.500000",
    ]


def test_breakpoint_stops_on_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, shown = io.StringIO("where\nnext\np v\nw\ncontinue\n"), io.StringIO()
    debugger = pdb.Pdb(stdin=commands, stdout=shown, nosigint=True, readrc=False)
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    x = np.array([1, 2, 3], np.int32)
    launch(kernels.stopping, (1,), x=x)
    monkeypatch.undo()
    text = shown.getvalue()
    assert "-> tl.store(x + tl.arange(0, 3), v * 2)" in text
    assert "tensor([1 2 3], int32)" in text
    assert f"kernels.py({kernels.stopping.__code__.co_firstlineno + 3})stopping()" in text
    assert x.tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("function", "message", "caret"),
    [
        (
            kernels.failing_load,
            "load out of bounds, lane [3]: element offset 3",
            "tl.load(x + i, mask=i != 1)",
        ),
        (kernels.failing_shapes, "cannot broadcast shapes", "tl.arange(0, 4) + tl.arange(0, 5)"),
        (kernels.failing_condition, "a condition must be a scalar", "tl.arange(0, 4) > 2"),
        (kernels.failing_in_helper, "`<<` needs integers", "v << 1.5"),
    ],
)
def test_errors_point_at_the_users_line(
    function: Callable[..., Any], message: str, caret: str | None
) -> None:
    arguments: dict[str, Any] = {"x": np.zeros(3, np.int32)}
    with pytest.raises(InterpreterError) as raised:
        launch(function, (1,), **arguments)
    error = raised.value
    assert message in str(error)
    assert error.location is not None
    assert error.location.file == kernels.__file__
    line = linecache.getline(kernels.__file__, error.location.line)
    if caret is not None:
        assert line[error.location.column : error.location.end_column] == caret
        assert "^" * len(caret) in str(error)
    assert "in program [0, 0, 0]" in error.__notes__


def test_assertions_are_checked_in_debug_mode() -> None:
    launch(kernels.failing_assertion, (1,), x=np.zeros(3, np.int32), n=2)
    with pytest.raises(DeviceAssertionError, match=r"does not hold in program .0, 0, 0.: n is too small"):
        launch(kernels.failing_assertion, (1,), debug=True, x=np.zeros(3, np.int32), n=2)


def test_static_assertions_stay_themselves() -> None:
    with pytest.raises(CompileTimeAssertionFailure, match="N is too small"):
        launch(kernels.failing_static, (1,), x=np.zeros(1, np.int32), N=static(2))


def test_other_exceptions_stay_themselves_with_a_note() -> None:
    with pytest.raises(KeyError) as raised:
        launch(kernels.failing_python, (1,), x=np.zeros(1, np.int32))
    assert "in kernel `failing_python` at kernels.py" in raised.value.__notes__[0]


def test_compile_time_names_refuse_run_time_values() -> None:
    def wrong(out: Any, n: Any) -> None:
        N: tl.constexpr = n + 1
        tl.store(out, N)

    with pytest.raises(InterpreterError, match="must be known at compile time"):
        run(wrong, n=1)


def test_masked_canaries_and_all_dtypes() -> None:
    def copy(out: Any, x: Any, n: Any) -> None:
        i = tl.arange(0, 64)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

    from blocklang.interpreter.dtypes import DTYPES

    for name in SCALARS:
        x = np.arange(50).astype(DTYPES[name])
        around = np.ones(70, DTYPES[name])
        launch(copy, (1,), out=around[10:60], x=x, n=50)
        assert around[10:60].tobytes() == x.tobytes()
        assert (around[:10] == 1).all()
        assert (around[60:] == 1).all()
