"""Section 3: operators by class of dtype, broadcasting, subscripts, attributes and methods of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from docs.conformance.kernels import DTYPES, Kernel, Refuses, ulp
from docs.conformance.model import Row

INTS = tuple(f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64))
FLOATS = ("fp16", "bf16", "fp32", "fp64")
_FLOAT_OPERATORS: dict[str, Callable[..., Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _trunc_divide(x: Any, y: Any) -> Any:
    # Truncation, from NumPy's floor.
    quotient = np.floor_divide(x, y)
    return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)


def _divide(x: Any, y: Any) -> Any:
    wide = np.float64 if x.dtype == np.float64 else np.float32
    return x.astype(wide) / y.astype(wide)


def _remainder(x: Any, y: Any) -> Any:
    return np.fmod(x.astype(np.float32), y.astype(np.float32)) if x.dtype.itemsize == 2 else np.fmod(x, y)


def _shift(x: Any, up: bool) -> Any:
    return np.left_shift(x, x.dtype.type(3)) if up else np.right_shift(x, x.dtype.type(3))


def _binary_rows() -> list[Row]:
    rows: list[Row] = []
    bitwise: dict[str, Callable[..., Any]] = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
    logical: dict[str, Callable[..., Any]] = {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor}

    def add(symbol: str, dtype: str, out: str, function: Callable[..., Any], timed: bool = True) -> None:
        kernel = Kernel(f"r = x {symbol} y", (dtype, dtype), out, wanted=function, numpy=timed)
        rows.append(Row("Operators", f"{dtype} {symbol} {dtype}", kernel))

    for dtype in (*INTS, *FLOATS):
        for symbol, function in _FLOAT_OPERATORS.items():
            add(symbol, dtype, dtype, function)
        out = "fp64" if dtype == "fp64" else "fp32"
        add("/", dtype, out, _divide)
        add("%", dtype, dtype if dtype in INTS or dtype in ("fp32", "fp64") else "fp32", _remainder)
        for symbol, function in _COMPARISONS.items():
            add(symbol, dtype, "int1", function)
    for dtype in INTS:
        add("//", dtype, dtype, _trunc_divide)
        for symbol, function in bitwise.items():
            add(symbol, dtype, dtype, function)
        for symbol, up in {"<<": True, ">>": False}.items():
            kernel = Kernel(
                f"r = x {symbol} 3", (dtype,), dtype, wanted=lambda x, up=up: _shift(x, up), numpy=True
            )
            rows.append(Row("Operators", f"{dtype} {symbol}", kernel))
        rows.append(
            Row("Operators", f"~{dtype}", Kernel("r = ~x", (dtype,), dtype, wanted=np.invert, numpy=True))
        )
    for symbol, function in logical.items():
        add(symbol, "int1", "int1", function)
    for symbol, function in _COMPARISONS.items():
        add(symbol, "int1", "int1", function)
    rows.append(
        Row("Operators", "~int1", Kernel("r = ~x", ("int1",), "int1", wanted=np.logical_not, numpy=True))
    )
    for dtype in (*INTS, *FLOATS):
        kind = DTYPES[dtype].type
        wanted = lambda x, kind=kind: kind(0) - x  # noqa: E731
        rows.append(
            Row("Operators", f"-{dtype}", Kernel("r = -x", (dtype,), dtype, wanted=wanted, numpy=True))
        )
    return rows


def _rules() -> list[Row]:
    group = "Rules of operators"
    floats, ints = ("fp32",), ("int32",)
    both = ("int1", "int1")
    accepted: list[tuple[str, str, tuple[str, ...], str, Callable[..., Any] | None]] = [
        (
            "// of constexprs floors",
            "k: tl.constexpr = -7 // 2\nr = x * 0 + k",
            ints,
            "int32",
            lambda x: x * 0 - 4,
        ),
        (
            "% of constexprs is Python's",
            "k: tl.constexpr = -7 % 3\nr = x * 0 + k",
            ints,
            "int32",
            lambda x: x * 0 + 2,
        ),
        ("** of constexprs", "k: tl.constexpr = 2 ** 5\nr = x + k", ints, "int32", lambda x: x + 32),
        ("NaN != NaN", "n = x * float('nan')\nr = n != n", floats, "int1", lambda x: x == x),
        ("NaN < x is false", "r = x * float('nan') < x", floats, "int1", lambda x: x != x),
        ("not", "r = not x", ("int1",), "int1", np.logical_not),
        ("and", "r = x and y", both, "int1", np.logical_and),
        ("or", "r = x or y", both, "int1", np.logical_or),
        (
            "and, or of constexprs are short",
            "r = x\nif N is None and N.no_such_name:\n    r = x * 2",
            floats,
            "fp32",
            lambda x: x,
        ),
        (
            "is None",
            "q: tl.constexpr = None\nif q is None:\n    r = x\nelse:\n    r = no_such_name",
            floats,
            "fp32",
            lambda x: x,
        ),
        (
            "is not None",
            "q: tl.constexpr = None\nr = x\nif q is not None:\n    r = no_such_name",
            floats,
            "fp32",
            lambda x: x,
        ),
        ("reflected +", "r = 2.0 + x", floats, "fp32", lambda x: 2 + x),
        ("reflected -", "r = 2.0 - x", floats, "fp32", lambda x: 2 - x),
        ("reflected *", "r = 2.0 * x", floats, "fp32", lambda x: 2 * x),
        ("reflected /", "r = 2.0 / x", floats, "fp32", lambda x: 2 / x),
        ("reflected //", "r = 100 // x", ints, "int32", lambda x: _trunc_divide(x * 0 + 100, x)),
        ("reflected %", "r = 100 % x", ints, "int32", lambda x: np.fmod(100, x)),
        ("reflected <<", "r = 1 << (x & 7)", ints, "int32", lambda x: 1 << (x & 7)),
        ("reflected >>", "r = 4096 >> (x & 7)", ints, "int32", lambda x: 4096 >> (x & 7)),
        ("reflected &", "r = 6 & x", ints, "int32", lambda x: 6 & x),
        ("reflected |", "r = 6 | x", ints, "int32", lambda x: 6 | x),
        ("reflected ^", "r = 6 ^ x", ints, "int32", lambda x: 6 ^ x),
        ("shift by the width", "r = x >> (y * 0 + 40)", ("int32", "int32"), "int32", lambda x, y: x >> 31),
        ("division by zero", "r = x // (y * 0)", ("int32", "int32"), "int32", lambda x, y: x * 0),
        ("remainder by zero", "r = x % (y * 0)", ("int32", "int32"), "int32", lambda x, y: x),
        ("x[None, :]", "r = tl.sum(x[None, :], 0)", floats, "fp32", lambda x: x),
        ("x[:, None]", "r = tl.sum(x[:, None], 1)", floats, "fp32", lambda x: x),
        ("t[k] of a tuple", "r = (i, x)[1]", floats, "fp32", lambda x: x),
        ("t[a:b] of a tuple", "r = (i, x, x)[1:2][0]", floats, "fp32", lambda x: x),
        (
            "scalars splat",
            "r = x + tl.load(Y)",
            ("fp32", np.full(1, 3, np.float32)),
            "fp32",
            lambda x, y: x + 3,
        ),  # type: ignore[list-item]
        (
            "ranks are padded on the left",
            "r = tl.sum(x[None, :] + tl.zeros([2, N], tl.float32), 0) * 0.5",
            floats,
            "fp32",
            lambda x: x,
        ),
        (
            "extent 1 is repeated",
            "r = tl.sum(x[:, None] + tl.zeros([N, 2], tl.float32), 1) * 0.5",
            floats,
            "fp32",
            lambda x: x,
        ),
        (".T", "r = tl.sum(x[None, :].T, 1)", floats, "fp32", lambda x: x),
        (".shape", "tl.static_assert(x.shape[0] == N)\nr = x", floats, "fp32", lambda x: x),
        (".dtype", "tl.static_assert(x.dtype == tl.float32)\nr = x", floats, "fp32", lambda x: x),
        (".type", "tl.static_assert(x.type.scalar == tl.float32)\nr = x", floats, "fp32", lambda x: x),
        (".numel", "tl.static_assert(x.numel == N)\nr = x", floats, "fp32", lambda x: x),
        (".handle", "tl.static_assert(x.handle is not None)\nr = x", floats, "fp32", lambda x: x),
    ]
    rows = [Row(group, n, Kernel(code, inputs, out, wanted=w)) for n, code, inputs, out, w in accepted]
    rows += [
        Row(group, f"{name} is refused", Refuses(Kernel(code, inputs), message))
        for name, code, inputs, message in (
            ("float // float", "r = x // 2.0", floats, r"unexpected type|integer|//"),
            ("& of floats", "r = x & 1.0", floats, "(?i)float|fp32|integer"),
            ("| of floats", "r = x | 1.0", floats, "(?i)float|fp32|integer"),
            ("^ of floats", "r = x ^ 1.0", floats, "(?i)float|fp32|integer"),
            ("~ of floats", "r = ~x", floats, "(?i)float|fp32|integer"),
            ("<< of floats", "r = x << 1", floats, "(?i)float|fp32|integer"),
            ("- of a pointer", "r = tl.load(-X)", floats, "(?i)pointer"),
            ("not of wide integers", "r = not x", ints, "(?i)bit|bool|int1"),
            ("a chained comparison", "r = 0 < x < 1", floats, "(?i)comparison|chain"),
            ("`in`", "r = x in (1, 2)", floats, "(?i)in\\b"),
            ("x[0]", "r = x[0]", floats, "(?i)subscript|index|unsupported"),
            ("x[...]", "r = x[...]", floats, "(?i)ellipsis|subscript|unsupported|\\.\\.\\."),
            ("x[k] = v", "x[0] = 1.0\nr = x", floats, "(?i)assign|item"),
            ("** of blocks", "r = x ** 2.0", floats, r"(?i)\*\*|pow"),
            (
                "shapes that do not fit",
                "r = x + tl.zeros([2 * N], tl.float32)",
                floats,
                "(?i)shape|broadcast|extent",
            ),
            ("broadcast_to of another rank", "r = tl.broadcast_to(x, [2, N])", floats, "(?i)rank"),
        )
    ]
    return rows


def _method_rows() -> list[Row]:
    group = "Methods of a block"
    grid = "g = x.reshape(8, N // 8)\n"
    table: dict[str, tuple[str, Any]] = {
        "to": ("r = x.to(tl.int32).to(tl.float32)", np.trunc),
        "cast": ("r = x.cast(tl.float32)", lambda x: x),
        "abs": ("r = (-x).abs()", lambda x: x),
        "exp": ("r = x.exp()", np.exp),
        "exp2": ("r = x.exp2()", np.exp2),
        "log": ("r = x.log()", np.log),
        "log2": ("r = x.log2()", np.log2),
        "sin": ("r = x.sin()", np.sin),
        "cos": ("r = x.cos()", np.cos),
        "sqrt": ("r = x.sqrt()", np.sqrt),
        "sqrt_rn": ("r = x.sqrt_rn()", np.sqrt),
        "rsqrt": ("r = x.rsqrt()", lambda x: 1 / np.sqrt(x)),
        "erf": ("r = (x * 0).erf()", lambda x: x * 0),
        "floor": ("r = x.floor()", np.floor),
        "ceil": ("r = x.ceil()", np.ceil),
        "sigmoid": ("r = x.sigmoid()", lambda x: 1 / (1 + np.exp(-x))),
        "softmax": ("r = x.softmax()", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        "cdiv": ("r = x.to(tl.int32).cdiv(2).to(tl.float32)", lambda x: (x.astype(int) + 1) // 2),
        "logical_and": ("r = (x > 1).logical_and(x < 2).to(tl.float32)", lambda x: (x > 1) & (x < 2)),
        "logical_or": ("r = (x < 1).logical_or(x > 2).to(tl.float32)", lambda x: (x < 1) | (x > 2)),
        "flip": ("r = x.flip()", lambda x: x[:, ::-1]),
        "sort": ("r = x.sort()", np.sort),
        "cumsum": ("r = x.cumsum()", lambda x: np.cumsum(x, 1)),
        "cumprod": ("r = x.cumprod()", lambda x: np.cumprod(x, 1)),
        "gather": ("r = x.gather(N - 1 - tl.arange(0, N), 0)", lambda x: x[:, ::-1]),
        "broadcast_to": ("r = tl.max(x[None, :].broadcast_to(2, N), 0)", lambda x: x),
        "expand_dims": ("r = tl.max(x.expand_dims(0), 0)", lambda x: x),
        "reshape": (f"{grid}r = g.reshape(N)", lambda x: x),
        "view": (f"{grid}r = g.view(N)", lambda x: x),
        "ravel": (f"{grid}r = g.ravel()", lambda x: x),
        "trans": (f"{grid}r = g.trans().trans().reshape(N)", lambda x: x),
        "permute": (f"{grid}r = g.permute(1, 0).permute(1, 0).reshape(N)", lambda x: x),
        "split": ("a, b = x.reshape(N // 2, 2).split()\nr = tl.interleave(a, b)", lambda x: x),
    }
    rows = [
        Row(group, name, Kernel(code, wanted=wanted, rtol=ulp("fp32", 16)))
        for name, (code, wanted) in table.items()
        if code
    ]
    scan = "@triton.jit\ndef add(a, b):\n    return a + b\n"
    rows += [
        Row(
            group,
            "associative_scan",
            Kernel(
                "r = x.associative_scan(0, add)", prelude=scan, rtol=1e-5, wanted=lambda x: np.cumsum(x, 1)
            ),
        ),
        Row(
            group,
            "item",
            Kernel(
                "r = tl.sum(x, 0, keep_dims=True).item()",
                shape="programs",
                rtol=1e-5,
                wanted=lambda x: x.sum(1),
            ),
        ),
        Row(group, "store", Kernel("(O + i).store(x)", stores=True, wanted=lambda x: x)),
        Row(
            group,
            "advance",
            Kernel(
                "p = tl.make_block_ptr(X, [N], [1], [0], [N // 2], [0])\nr = tl.load(p.advance([N // 2]))",
                shape=(32,),
                wanted=lambda x: x[32:],
            ),
        ),
        Row(
            group,
            "histogram",
            Kernel(
                "r = x.histogram(64)",
                (np.arange(64, dtype=np.int32) // 2,),
                "int32",
                (64,),
                wanted=lambda x: np.bincount(x, minlength=64),
            ),
        ),
    ]
    reductions: dict[str, tuple[str, Callable[..., Any], str]] = {
        "sum": ("r = x.sum(0)", lambda x: x.sum(1), "fp32"),
        "max": ("r = x.max(0)", lambda x: x.max(1), "fp32"),
        "min": ("r = x.min(0)", lambda x: x.min(1), "fp32"),
        "argmax": ("r = x.argmax(0)", lambda x: x.argmax(1), "int32"),
        "argmin": ("r = x.argmin(0)", lambda x: x.argmin(1), "int32"),
        "reduce": ("r = x.reduce(0, add)", lambda x: x.sum(1), "fp32"),
        "xor_sum": (
            "r = x.to(tl.int32).xor_sum(0)",
            lambda x: np.bitwise_xor.reduce(x.astype(int), 1),
            "int32",
        ),
        "reduce_or": (
            "r = x.to(tl.int32).reduce_or(0)",
            lambda x: np.bitwise_or.reduce(x.astype(int), 1),
            "int32",
        ),
    }
    rows += [
        Row(group, n, Kernel(code, out=out, shape="programs", wanted=w, prelude=scan, rtol=1e-5))
        for n, (code, w, out) in reductions.items()
    ]
    operations: dict[str, tuple[str, Callable[..., Any]]] = {
        "atomic_add": ("5", lambda x: x + 5),
        "atomic_max": ("5", lambda x: np.maximum(x, 5)),
        "atomic_min": ("5", lambda x: np.minimum(x, 5)),
        "atomic_and": ("5", lambda x: x & 5),
        "atomic_or": ("5", lambda x: x | 5),
        "atomic_xor": ("5", lambda x: x ^ 5),
        "atomic_xchg": ("5", lambda x: x * 0 + 5),
    }
    for n, (value, w) in operations.items():
        code = f"tl.store(O + i, x)\n(O + i).{n}({value})"
        rows.append(Row(group, n, Kernel(code, ("int32",), "int32", stores=True, wanted=w)))
    rows.append(
        Row(
            group,
            "atomic_cas",
            Kernel(
                "tl.store(O + i, x)\n(O + i).atomic_cas(x, 5)",
                ("int32",),
                "int32",
                stores=True,
                wanted=lambda x: x * 0 + 5,
            ),
        )
    )
    return rows


ROWS = [*_binary_rows(), *_rules(), *_method_rows()]
