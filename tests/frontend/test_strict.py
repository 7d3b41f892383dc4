"""Strict mode: legal Triton kernels run; the rule of globals holds, at launches too."""

from __future__ import annotations

import enum
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.frontend.building import define

MODES = pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])


class Pair(NamedTuple):
    x: Any
    y: Any


class Kind(enum.IntEnum):
    SUM = 1


_LEGAL = """
@jit
def add(a, b):
    return a + b

@jit
def choose(a, KIND: tl.constexpr):
    if KIND == 1:
        return a
    elif KIND == 2:
        return -a
    else:
        return a * 2

def kernel(x, out, n, BLOCK: tl.constexpr = 8):
    # A legal kernel.
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = (offs < n) & (offs >= 0)
    a = tl.load(x + offs, mask=mask, other=0.0)
    total = tl.reduce(a, 0, add)
    pair = Pair(total, (total, n))
    for i in tl.static_range(2):
        if n > 100:
            return
    for i in range(0, n, 3):
        total += 1.0
    for i in range(3, 0, -1):
        total = choose(total, 1)
    i = 0
    while i < n and i < 2:
        i += 1
        total = add(*(total, 0.5))
    ones = [v + 1 for v in (0, n)]
    if not (n > 50) or n == 3:
        total += min(ones[1], 4) if n > 2 else max(ones[0], 2)
    scale: tl.constexpr = 2 ** LEVEL
    tl.store(out + offs, (a * scale + total + pair.y[1]).to(tl.float32), mask=mask)
"""


@MODES
def test_a_legal_kernel(interpret: bool) -> None:
    globals_ = {"Pair": Pair, "LEVEL": tl.constexpr(3)}
    usual, strict = (
        bl.jit(strict=s, interpret=interpret)(define(_LEGAL, "kernel", **globals_)) for s in (False, True)
    )
    x = np.arange(5, dtype=np.float32)
    results = [np.zeros(5, np.float32) for _ in range(2)]
    usual[1](x, results[0], 5)
    strict[1](x, results[1], 5)
    assert results[0].tobytes() == results[1].tobytes()
    assert results[0].tolist() == [8 * v + 10 + 2 + 1 + 4 + 5 for v in range(5)]


_MODULE = ModuleType("settings")
_MODULE.LEVEL = 3  # type: ignore[attr-defined]
GLOBALS: list[tuple[str, Any, str, bool]] = [
    ("a constexpr", tl.constexpr(5), "G", True),
    ("a module's number", _MODULE, "G.LEVEL", True),
    ("a dtype", tl.int32, "tl.zeros((1,), G).numel", True),
    ("a namedtuple's class", Pair, "G(1, 2).y", True),
    ("a function", bl.jit(define("def f(a):\n    return a\n", "f")), "G(3)", True),
    ("a builtin", tl.cdiv, "G(7, 2)", True),
    ("Python's len", len, "G((1, 2))", True),
    ("a number", 5, "G", False),
    ("a string", "5", "len(G)", False),
    ("a tuple of constexprs", (tl.constexpr(5),), "G[0]", False),
    ("an enumeration", Kind, "G.SUM", False),
    ("None", None, "1 if G is None else 2", False),
]


@MODES
@pytest.mark.parametrize(("name", "value", "expression", "accepted"), GLOBALS, ids=[g[0] for g in GLOBALS])
def test_a_global(name: str, value: Any, expression: str, accepted: bool, interpret: bool) -> None:
    function = define(f"def kernel(out):\n    tl.store(out, {expression})\n", "kernel", G=value)
    out = np.zeros(1, np.int32)
    bl.jit(interpret=interpret)(function)[1](out)
    again = np.zeros(1, np.int32)
    strict = bl.jit(strict=True, interpret=interpret)(function)
    if accepted:
        strict[1](again)
        assert again == out
    else:
        with pytest.raises(bl.CompilationError, match="Cannot access global variable G"):
            strict[1](again)


@MODES
def test_a_changed_global(interpret: bool) -> None:
    function: Any = define("def kernel(out, n):\n    tl.store(out, G)\n", "kernel", G=tl.constexpr(5))
    usual, strict = (bl.jit(strict=s, interpret=interpret)(function) for s in (False, True))
    out = np.zeros(1, np.int32)
    for _ in range(3):
        usual[1](out, 2)
        strict[1](out, 2)
    function.__globals__["G"] = tl.constexpr(5)
    strict[1](out, 2)
    function.__globals__["G"] = tl.constexpr(6)
    usual[1](out, 2)
    assert out[0] == 6
    for n in (2, 16):  # a version that exists, and one that would be new
        with pytest.raises(
            RuntimeError, match="global variable G has changed since kernel was compiled"
        ) as caught:
            strict[1](out, n)
        assert isinstance(caught.value, bl.ChangedGlobalError)
    function.__globals__["G"] = tl.constexpr(5)
    strict[1](out, 2)
    assert out[0] == 5


def test_strictness_holds_for_what_a_kernel_calls() -> None:
    helper = bl.jit(define("def helper(n):\n    return 1 < n < 5\n", "helper"))
    function = define("def kernel(out, n):\n    tl.store(out, helper(n))\n", "kernel", helper=helper)
    with pytest.raises(bl.CompilationError, match="chained comparison") as caught:
        bl.jit(strict=True)(function)[1](np.zeros(1, np.int32), 3)
    assert "called at" in str(caught.value)


def test_branches_not_taken_do_not_exist() -> None:
    text = (
        "def kernel(out, N: tl.constexpr):\n    if N == 2:\n        x = (lambda: 1)()\n    tl.store(out, N)\n"
    )
    out = np.zeros(1, np.int32)
    bl.jit(strict=True)(define(text, "kernel"))[1](out, N=3)
    assert out[0] == 3
