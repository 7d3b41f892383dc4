"""Every rule of the frontend, compiled and interpreted."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.frontend.building import define
from tests.frontend.rules import HELPERS, RULES, Rule

MODES = pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
NAMES = {
    "NamedTuple": NamedTuple,
    "aggregate": bl.aggregate,
    "constexpr_function": bl.constexpr_function,
    "enum": enum,
    "math": math,
    "np": np,
    "__name__": __name__,
}


def kernel_of(body: str, signature: str, **options: Any) -> bl.JITFunction:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    function = define(f"{HELPERS}\ndef kernel({signature}):\n{lines}", "kernel", **NAMES)
    return bl.jit(**options)(function)


@MODES
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule(rule: Rule, interpret: bool) -> None:
    kernel = kernel_of(rule.body, "out, n, one, N: tl.constexpr", interpret=interpret)
    out = np.full(len(rule.stored) + 1, -99, np.int32)
    kernel[1](out, 4, 1, N=3)
    assert out.tolist() == [*rule.stored, -99]


class Point(NamedTuple):
    array: Any
    size: Any


ARGUMENTS: list[tuple[str, str, Any, list[int]]] = [
    ("numbers", "tl.store(out, t[0] + t[1])", (5, 7), [12]),
    ("an array in a tuple in a tuple", "tl.store(out, tl.load(t[1][0] + 1) + t[0])", (5, ("array",)), [9]),
    ("a namedtuple", "tl.store(out, tl.load(t.array) + t.size)", Point("array", 9), [12]),
    ("None", "if t[1] is None:\n    tl.store(out, t[0])", (5, None), [5]),
    ("1 is a run-time value", "tl.store(out, t[0].to(tl.int32) + 1)", (1,), [2]),
    ("a constexpr leaf", "tl.store(out + tl.arange(0, t[0]), t[1])", (tl.constexpr(2), 9), [9, 9]),
    ("stores go through it", "tl.store(t[0] + 1, 6)\ntl.store(out, tl.load(t[0] + 1))", ("array",), [6]),
    ("a string", "if t[0] == 'sum':\n    tl.store(out, len(t))", ("sum", 3.5), [2]),
    ("an empty tuple", "tl.store(out, len(t))", (), [0]),
    ("dtypes", "tl.store(out, tl.full((), 300, t[0]).to(tl.int32))", (tl.int16,), [300]),
]


def _with_arrays(value: Any) -> Any:
    if isinstance(value, str) and value == "array":
        return np.array([3, 4], np.int32)
    if isinstance(value, tuple):
        items = map(_with_arrays, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


@MODES
@pytest.mark.parametrize(("name", "body", "argument", "stored"), ARGUMENTS, ids=[a[0] for a in ARGUMENTS])
def test_a_tuple_as_an_argument(
    name: str, body: str, argument: Any, stored: list[int], interpret: bool
) -> None:
    kernel = kernel_of(body, "out, t", interpret=interpret)
    for _ in range(3):  # the third launch would be a warm one
        out = np.full(len(stored), -99, np.int32)
        kernel[1](out, _with_arrays(argument))
        assert out.tolist() == stored


@MODES
def test_a_tuple_of_constants_is_compiled_in(interpret: bool) -> None:
    body = "tl.store(out + tl.arange(0, t[0]), t[1])"
    kernel = kernel_of(body, "out, t: tl.constexpr", interpret=interpret)
    out = np.zeros(2, np.int32)
    kernel[1](out, (2, 9))
    assert out.tolist() == [9, 9]


def test_items_that_cannot_be_arguments() -> None:
    kernel = kernel_of("pass", "t")
    with pytest.raises(bl.LaunchError, match=r"argument 't\[1\]' is a list"):
        kernel[1]((1, [2]))


def test_a_read_only_array_in_a_tuple() -> None:
    kernel = kernel_of("tl.store(t[0], 1)", "t")
    array = np.zeros(1, np.int32)
    array.flags.writeable = False
    with pytest.raises(bl.LaunchError, match="read-only array"):
        kernel[1]((array,))


@MODES
def test_functions_as_constexpr_arguments(interpret: bool) -> None:
    out = np.zeros(2, np.int32)
    kernel = kernel_of("tl.store(out, f(n))", "out, n, f: tl.constexpr", interpret=interpret)
    twice = bl.jit(define("def twice(a):\n    return 2 * a\n", "twice"))
    thrice = bl.jit(define("def thrice(a):\n    return 3 * a\n", "thrice"))
    kernel[1](out, 5, twice)
    kernel[1](out[1:], 5, thrice)
    assert out.tolist() == [10, 15]


@MODES
@pytest.mark.parametrize("count", [300])
def test_a_long_elif_chain(count: int, interpret: bool) -> None:
    arms = "".join(f"elif n == {i}:\n    r = {i * 2}\n" for i in range(1, count))
    kernel = kernel_of(
        f"if n == 0:\n    r = 0\n{arms}else:\n    r = -1\ntl.store(out, r)", "out, n", interpret=interpret
    )
    for n in (0, 7, count - 1, count):
        out = np.zeros(1, np.int32)
        kernel[1](out, n)
        assert out[0] == (2 * n if n < count else -1)


@MODES
def test_many_early_returns(interpret: bool) -> None:
    body = "".join(f"if n == {i}:\n    tl.store(out, {i})\n    return\n" for i in range(200))
    kernel = kernel_of(body, "out, n", interpret=interpret)
    for n in (0, 150, 199, 200):
        out = np.full(1, -99, np.int32)
        kernel[1](out, n)
        assert out[0] == (n if n < 200 else -99)


@MODES
def test_the_recursion_limit_is_the_users_again(interpret: bool) -> None:
    import sys

    before = sys.getrecursionlimit()
    kernel_of("tl.store(out, 1)", "out", interpret=interpret)[1](np.zeros(1, np.int32))
    assert sys.getrecursionlimit() == before


REFUSALS = [
    ("cdiv by zero", "tl.store(out, tl.cdiv(5, 0))", "`cdiv` cannot be computed: integer division"),
    ("an integer of many digits", "tl.store(out, 2**1000000000)", "would have more than 4096 bits"),
    ("a shift to many digits", "tl.store(out, 1 << 10**12)", "would have more than 4096 bits"),
    ("a name of one branch", "if n > 2:\n    y = 1\ntl.store(out, y)", "is assigned only if"),
    ("two types", "if n > 2:\n    y = 1\nelse:\n    y = 2.0", "`y` is i32"),
    (
        "another type in a loop",
        "x = 1\nfor i in range(n):\n    x = 2.0",
        "Loop-carried variable .* initial type",
    ),
    ("another type in a while", "x = 1\nwhile x < n:\n    x = x.to(tl.int64) + 1", "Loop-carried variable"),
    (
        "a constexpr in a loop",
        "x: tl.constexpr = 1\nfor i in range(n):\n    x = 2",
        "cannot change in a loop",
    ),
    ("a parameter in a loop", "for i in range(n):\n    N = N + 1", "cannot change in a loop"),
    ("redeclared", "x: tl.constexpr = 1\nx: tl.constexpr = 2", "cannot be reassigned"),
    ("a block as a condition", "if tl.arange(0, 4) > 2:\n    pass", "must be a scalar"),
    ("a static step of 0", "for i in range(0, 5, 0):\n    pass", "must not be 0"),
    ("a float bound", "for i in range(0.5):\n    pass", "must be an integer scalar"),
    ("endless recursion", "endless(n)", "do not end"),
    ("a run-time index of a tuple", "t = (1, 2)\ntl.store(out, t[n])", "known at compile time"),
    ("in, at run time", "if n in (1, 2):\n    pass", "`in` on run-time values"),
    ("mixed signs /", "a = n / n.to(tl.uint32)", "sign"),
    ("mixed signs //", "a = n // n.to(tl.uint32)", "sign"),
    ("mixed signs %", "a = n.to(tl.uint32) % n", "sign"),
    ("a negative number beside unsigned", "a = tl.zeros((4,), tl.uint32) + -1", "-1"),
    ("a number out of range", "a = tl.zeros((4,), tl.int8) + 300", "does not fit into int8"),
    ("float //", "a = n.to(tl.float32) // 2", "//"),
    ("a power at run time", "a = n ** 2", r"\*\*"),
    ("a pointer and a float", "a = out + 1.0", "pointer"),
    ("two pointers", "a = out + out", "pointer"),
    ("a difference of pointers", "a = out - out", "pointer"),
    ("disagreeing returns", "a = disagree(n)", "the returned value"),
    ("a global dictionary", "tl.store(out, TABLE[1])", "dict"),
    ("a plain function", "tl.store(out, plain(1))", "plain Python function"),
    ("an undefined name", "tl.store(out, undefined)", "not defined"),
    ("a later name", "tl.store(out, q)\nq = 1", "before it is assigned"),
    ("a failing static_assert", "tl.static_assert(N == 4, 'N is wrong')", "N is wrong"),
    ("too few values", "a, b = (1, 2, 3)", "unpacked"),
    ("keywords spread", "tl.store(out, **{'value': 1})", r"\*\*"),
    ("a truth at compile time", "a = tl.static_assert(n > 1)", "known"),
]
_MORE = """
TABLE = {1: 2}

def plain(x):
    return x

@jit
def endless(n):
    return endless(n)

@jit
def disagree(n):
    if n > 2:
        return 3.0
    return n
"""


@MODES
@pytest.mark.parametrize(("name", "body", "message"), REFUSALS, ids=[r[0] for r in REFUSALS])
def test_a_refusal(name: str, body: str, message: str, interpret: bool) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"{HELPERS}{_MORE}\ndef kernel(out, n, N: tl.constexpr):\n{lines}"
    kernel = bl.jit(interpret=interpret)(define(text, "kernel", **NAMES))
    with pytest.raises(bl.CompilationError, match=message) as caught:
        kernel[1](np.zeros(4, np.int32), 4, N=3)
    assert caught.value.error_message == caught.value.message
    assert caught.value.location is not None
    if interpret:
        assert isinstance(
            caught.value,
            (bl.InterpreterError, bl.UnsupportedLanguageConstruct, bl.CompileTimeAssertionFailure),
        )


@MODES
def test_promotion(interpret: bool) -> None:
    """Section 2: what is weak, and what computes in fp32."""
    body = """
s = 2
b = tl.full((4,), 3, tl.int8)
h, g = b.to(tl.float16), b.to(tl.bfloat16)
tl.static_assert((b + s).dtype == tl.int32)
tl.static_assert((b + 2).dtype == tl.int8)
tl.static_assert((b + 2.0).dtype == tl.float32)
tl.static_assert((b + 1e300).dtype == tl.float64)
tl.static_assert((h * 2.0).dtype == tl.float16)
tl.static_assert((h * f).dtype == tl.float32)
for x in (h, g):
    tl.static_assert((x / x).dtype == tl.float32)
    tl.static_assert((x / 2).dtype == tl.float32)
    tl.static_assert((x % 2.0).dtype == tl.float32)
    tl.static_assert((x % x).dtype == tl.float32)
    tl.static_assert((x * x).dtype == x.dtype)
tl.static_assert((h * g).dtype == tl.float16)
tl.static_assert((g * b).dtype == tl.float32)
tl.static_assert((h * b).dtype == tl.float16)
tl.static_assert((b / b).dtype == tl.float32)
tl.static_assert((b + b.to(tl.uint8)).dtype == tl.uint8)
x = 2147483648
tl.static_assert(x.dtype == tl.uint32)
x = 4294967296
tl.static_assert(x.dtype == tl.int64)
tl.store(out, -7 // 2)
tl.store(out + 1, -7 % 3)
m = -7
tl.store(out + 2, m // 2)
tl.store(out + 3, m % 3)
"""
    out = np.zeros(4, np.int32)
    kernel_of(body, "out, f", interpret=interpret)[1](out, 0.5)
    assert out.tolist() == [-4, 2, -3, -1]
