"""Names from outside: what may be read, what is recorded, and what a change means."""

from __future__ import annotations

import enum
import types
from typing import Any

import numpy as np
import pytest

import blocklang.language as tl
from blocklang.diagnostics import CompilationError
from blocklang.frontend import Argument, BuiltKernel, KernelSource, build_with_dependencies
from blocklang.ir.types import I32, PointerType
from tests.frontend.building import build, define, run


class Colour(enum.Enum):
    RED = 3


def built(function: Any) -> BuiltKernel:
    source = KernelSource.from_function(function)
    return build_with_dependencies(source, [Argument("out", PointerType(I32))])


@pytest.mark.parametrize(
    ("value", "expression", "result"),
    [
        (5, "VALUE", 5),
        (tl.constexpr(5), "VALUE", 5),
        (np.int64(5), "VALUE", 5),
        ((1, (2, 3)), "VALUE[1][0]", 2),
        (Colour, "7", 7),
        (types.SimpleNamespace(width=4), "VALUE.width", 4),
        (tl.int8, "VALUE.primitive_bitwidth", 8),
        ("text", "len(VALUE)", 4),
    ],
)
def test_values_that_a_kernel_may_read(value: Any, expression: str, result: int) -> None:
    function = define(f"def kernel(out): tl.store(out, {expression})\n", "kernel", VALUE=value)
    assert run(build(function, "ptr<i32>"), 1).tolist() == [result]


@pytest.mark.parametrize("value", [[np.zeros(3)], {"a": 1}, object(), np.zeros(3), 2j])
def test_values_that_a_kernel_may_not_read(value: Any) -> None:
    function = define("def kernel(out): tl.store(out, VALUE)\n", "kernel", VALUE=value)
    with pytest.raises(CompilationError, match="the global `VALUE` is of type"):
        build(function, "ptr<i32>")


def test_a_changed_global_is_noticed() -> None:
    function = define("VALUE = 5\ndef kernel(out): tl.store(out, VALUE)\n", "kernel")
    dependencies = {d.name: d for d in built(function).dependencies}
    assert dependencies["VALUE"].value == 5
    assert dependencies["VALUE"].is_current()
    function.__globals__["VALUE"] = 6
    assert not dependencies["VALUE"].is_current()
    del function.__globals__["VALUE"]
    assert not dependencies["VALUE"].is_current()


def test_true_is_not_one() -> None:
    function = define("VALUE = 1\ndef kernel(out): tl.store(out, VALUE)\n", "kernel")
    (dependency,) = built(function).dependencies
    function.__globals__["VALUE"] = True
    assert not dependency.is_current()


def test_captured_variables_and_modules_are_recorded() -> None:
    text = "def make(width):\n    def kernel(out): tl.store(out, width + config.DEPTH)\n    return kernel\n"
    config = types.ModuleType("config")
    config.DEPTH = 3  # type: ignore[attr-defined]
    function = define(text, "make", config=config)(4)
    kernel = built(function)
    assert {d.name: d.value for d in kernel.dependencies} == {"width": 4, "config.DEPTH": 3}
    assert run(kernel.kernel, 1).tolist() == [7]


def test_called_kernels_are_recorded_with_what_they_read() -> None:
    text = "K = 2\n@jit\ndef helper(x): return x * K\ndef kernel(out): tl.store(out, helper(21))\n"
    function = define(text, "kernel")
    names = {d.name for d in built(function).dependencies}
    assert names == {"helper", "K"}
    assert run(build(function, "ptr<i32>"), 1).tolist() == [42]


def test_helpers_may_be_defined_later() -> None:
    text = "def kernel(out): tl.store(out, helper(20))\n@jit\ndef helper(x): return x + 1\n"
    assert run(build(define(text, "kernel"), "ptr<i32>"), 1).tolist() == [21]


def test_functions_are_values() -> None:
    text = """
@jit
def double(x): return 2 * x
@jit
def apply(f, x, times: tl.constexpr):
    for _ in tl.static_range(times):
        x = f(x)
    return x
def kernel(out):
    f = (double, lambda x: x + 1)
    tl.store(out, apply(f[0], f[1](2), 3))
"""
    assert run(build(define(text, "kernel"), "ptr<i32>"), 1).tolist() == [24]


def test_recursion_over_constexprs() -> None:
    text = """
@jit
def power(x, n: tl.constexpr):
    if n == 0:
        return 1
    return x * power(x, n - 1)
def kernel(out, n): tl.store(out, power(n, 5))
"""
    assert run(build(define(text, "kernel"), "ptr<i32>", "i32"), 1, 3).tolist() == [243]


@pytest.mark.parametrize("stride", [1, 3])
def test_an_argument_of_value_one_is_like_every_other(stride: int) -> None:
    text = """
def kernel(out, stride):
    narrow = tl.full((4,), 100, tl.int8) + stride
    tl.store(out + tl.arange(0, 4), narrow * 100 + (stride - 8) // 2 + stride.to(tl.int64).to(tl.int32))
"""
    function = define(text, "kernel")
    expected = (100 + stride) * 100 + int((stride - 8) / 2) + stride
    at_run_time = build(function, "ptr<i32>", "i32")
    compiled_in = build(function, "ptr<i32>", stride=stride)
    assert run(at_run_time, 4, stride).tolist() == [expected] * 4
    assert run(compiled_in, 4).tolist() == [expected] * 4


def test_none_and_bools_are_known_at_compile_time() -> None:
    text = """
def kernel(out, bias, flag):
    if bias is None and flag:
        tl.store(out, 1)
    else:
        tl.store(out, nothing)
"""
    kernel = build(define(text, "kernel"), "ptr<i32>", bias=None, flag=True)
    assert run(kernel, 1).tolist() == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([Argument("out", PointerType(I32))], "needs an argument for `n`"),
        ([Argument("out", PointerType(I32)), Argument("m", I32)], "has no parameter `m`"),
        ([Argument("out", PointerType(I32)), Argument("n", I32)], "`n` of kernel `kernel` is constexpr"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[Argument], message: str) -> None:
    source = KernelSource.from_function(define("def kernel(out, n: tl.constexpr): pass\n", "kernel"))
    with pytest.raises(CompilationError, match=message):
        build_with_dependencies(source, arguments)


def test_facts_about_arguments_stand_in_the_ir() -> None:
    source = KernelSource.from_function(define("def kernel(out): pass\n", "kernel"))
    argument = Argument("out", PointerType(I32), {"divisible": 16})
    kernel = build_with_dependencies(source, [argument], name="other").kernel
    assert str(kernel).startswith("kernel @other(%out: ptr<i32> divisible=16) {")


def test_too_long_a_chain_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python parses longer chains than a recursion of limited depth can walk."""
    monkeypatch.setattr("blocklang.depth.LIMIT", 1000)
    with pytest.raises(CompilationError, match="nested too deeply to compile"):
        build(define("def kernel(out):\n    x = " + " + ".join(["1"] * 990) + "\n", "kernel"), "ptr<i32>")
