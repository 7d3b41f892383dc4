"""Section 4, blocks: creation, shapes, products, selection, reductions, scans, orders; an argument a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from docs.conformance.kernels import DTYPES, Array, Kernel, Refuses, ulp
from docs.conformance.model import Row
from docs.conformance.rows.types import TL_NAMES

_GRID = "g = x.reshape(8, N // 8)\n"
_HALF = (32,)
_SQUARE = (8, 8)
Case = tuple[str, Any, Any]


def _plain(group: str, table: dict[str, tuple[Any, ...]], **common: Any) -> list[Row]:
    """Rows of (code, shape, wanted[, out])."""
    rows = []
    for name, (code, shape, wanted, *rest) in table.items():
        out = rest[0] if rest else "fp32"
        rows.append(Row(group, name, Kernel(code, shape=shape, wanted=wanted, out=out, **common)))
    return rows


def _square(x: Array) -> Array:
    return x.reshape(8, 8)


def _creation() -> list[Row]:
    group = "Programs and creation"
    lanes = "lanes"
    table = {
        "program_id(0)": ("r = tl.program_id(0)", "programs", lambda x: np.arange(len(x)), "int32"),
        "program_id(1)": ("r = tl.program_id(1)", "programs", lambda x: np.zeros(len(x)), "int32"),
        "program_id(2)": ("r = tl.program_id(axis=2)", "programs", lambda x: np.zeros(len(x)), "int32"),
        "num_programs(0)": ("r = tl.num_programs(0)", "programs", lambda x: np.full(len(x), len(x)), "int32"),
        "num_programs(1)": ("r = tl.num_programs(1)", "programs", lambda x: np.ones(len(x)), "int32"),
        "num_programs(2)": ("r = tl.num_programs(axis=2)", "programs", lambda x: np.ones(len(x)), "int32"),
        "arange(start, end)": ("r = tl.arange(4, 36)", _HALF, lambda x: np.arange(4, 36), "int32"),
        "full(shape, value, dtype)": ("r = tl.full([N], 3, tl.float32)", (64,), lambda x: np.full(64, 3)),
        "full(value of size 1)": (
            "r = tl.full([N], tl.load(X), tl.float32)",
            (64,),
            lambda x: np.full(64, x[0]),
        ),
        "full(shape as a tuple)": (
            "r = tl.full((8, 8), 3, tl.float32)",
            _SQUARE,
            lambda x: np.full((8, 8), 3),
        ),
        "zeros(shape, dtype)": ("r = tl.zeros([N], tl.float32)", (64,), lambda x: x * 0),
        "zeros_like(input)": ("r = tl.zeros_like(x)", (64,), lambda x: x * 0),
        "to_tensor(x)": ("r = x + tl.to_tensor(2)", (64,), lambda x: x + 2),
        "swizzle2d(i, j, size_i, size_j, size_g)": (
            "j, k = tl.swizzle2d(i // 8, i % 8, 8, 8, 4)\nr = j * 8 + k",
            (64,),
            _swizzled,
            "int32",
        ),
        "cdiv(x, div)": ("r = tl.cdiv(i, 3)", (64,), lambda x: (np.arange(64) + 2) // 3, "int32"),
        "cdiv of constexprs": ("k: tl.constexpr = tl.cdiv(N, 10)\nr = x * 0 + k", lanes, lambda x: x * 0 + 7),
        "next_power_of_2 of constexprs": (
            "k: tl.constexpr = triton.next_power_of_2(N - 1)\nr = x * 0 + k",
            (64,),
            lambda x: x * 0 + 64,
        ),
    }
    rows = _plain(group, table)
    refused = {
        "program_id(3) is refused": ("r = x + tl.program_id(3)", "(?i)ax[ie]s"),
        "arange of an extent that is no power of two is refused": (
            "r = tl.arange(0, 48)",
            "power of 2|power of two",
        ),
        "arange with end <= start is refused": ("r = tl.arange(4, 4)", "(?i)end|greater"),
        "a block above the numel limit is refused": (
            "r = tl.zeros([2097152], tl.float32)",
            "(?i)numel|exceeds",
        ),
    }
    return rows + [Row(group, n, Refuses(Kernel(c), m)) for n, (c, m) in refused.items()]


def _swizzled(x: Array) -> Array:
    flat = np.arange(64)
    group, within = flat // 32, flat % 32
    return (group * 4 + within % 4) * 8 + within // 4


def _casts() -> list[Row]:
    group = "cast"
    rows = []
    names = [n for n in DTYPES if not n.startswith("fp8")]
    for source in names:
        for target in names:
            if source == target:
                continue

            def wanted(x: Array, target: str = target) -> Array:
                return x != 0 if target == "int1" else x.astype(DTYPES[target])

            code = f"r = tl.cast(x, tl.{TL_NAMES[target]})"
            inputs: tuple[Any, ...] = (source,)
            if DTYPES[source].kind == "f" or source == "bf16":
                inputs = (
                    np.linspace(0, 50, 64).astype(DTYPES[source]),
                )  # the same in signed and unsigned types
            kernel = Kernel(code, inputs, target, wanted=wanted, numpy="bf16" not in (source, target))
            rows.append(Row(group, f"{source} to {target}", kernel))
    for kind in ("fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16"):
        for wide in ("fp16", "bf16", "fp32", "fp64"):
            up = Kernel(
                f"r = tl.cast(x, tl.{TL_NAMES[wide]})",
                (kind,),
                wide,
                wanted=lambda x, w=wide: x.astype(DTYPES[w]),
            )
            down = Kernel(
                f"r = tl.cast(x, tl.{TL_NAMES[kind]})",
                (wide,),
                kind,
                wanted=lambda x, k=kind: x.astype(np.float32).astype(DTYPES[k]),
            )
            rows += [Row(group, f"{kind} to {wide}", up), Row(group, f"{wide} to {kind}", down)]
    more: dict[str, Kernel] = {
        "fp32 to float8e4b15": Kernel(
            "r = tl.cast(x, tl.float8e4b15).to(tl.uint8, bitcast=True)",
            ((1 + np.arange(7) / 8).astype(np.float32),),
            "uint8",
            wanted=lambda x: 120 + np.rint((x - 1) * 8),
        ),
        "fp_downcast_rounding='rtne'": Kernel(
            "r = tl.cast(x, tl.float16, fp_downcast_rounding='rtne')",
            out="fp16",
            wanted=lambda x: x.astype(np.float16),
        ),
        "fp_downcast_rounding='rtz'": Kernel(
            "r = tl.cast(x, tl.float16, fp_downcast_rounding='rtz')",
            out="fp16",
            wanted=lambda x: (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float16),
        ),
        "bitcast=True": Kernel(
            "r = tl.cast(x, tl.int32, bitcast=True)",
            out="int32",
            wanted=lambda x: x.view(np.int32),
            numpy=lambda x: x.view(np.int32).copy(),
        ),
        "pointer to int64": Kernel(
            "r = ((X + i).to(tl.int64) - X.to(tl.int64)).to(tl.int32)",
            out="int32",
            wanted=lambda x: np.arange(x.size).reshape(x.shape) * 4,
        ),
        "int64 to pointer": Kernel(
            "r = tl.load((X.to(tl.int64) + i * 4).to(tl.pointer_type(tl.float32)))", wanted=lambda x: x
        ),
        "fp8 saturates": Kernel(
            "r = tl.cast(x * 1e30, tl.float8e4nv).to(tl.float32)", wanted=lambda x: x * 0 + 448
        ),
    }
    rows += [Row(group, n, k) for n, k in more.items()]
    refused = {
        "rtz of a widening is refused": (
            "r = tl.cast(x, tl.float64, fp_downcast_rounding='rtz')",
            "(?i)round|downcast",
        ),
        "bitcast to another width is refused": (
            "r = tl.cast(x, tl.int16, bitcast=True)",
            "(?i)bitcast|width|bits",
        ),
        "pointer to int32 is refused": ("r = (X + i).to(tl.int32)", "(?i)pointer|64"),
    }
    return rows + [Row(group, n, Refuses(Kernel(c, out="fp32"), m)) for n, (c, m) in refused.items()]


def _shapes() -> list[Row]:
    pairs = "a, b = x.reshape(N // 2, 2).split()\n"
    table = {
        "broadcast(input, other)": (
            "a, b = tl.broadcast(x[None, :], tl.zeros([2, 1], tl.float32))\nr = a + b",
            (2, 64),
            lambda x: np.stack([x, x]),
        ),
        "broadcast_to(input, *shape)": (
            "r = tl.broadcast_to(x[None, :], 2, N)",
            (2, 64),
            lambda x: np.stack([x, x]),
        ),
        "broadcast_to(input, shape)": (
            "r = tl.broadcast_to(x[None, :], (2, N))",
            (2, 64),
            lambda x: np.stack([x, x]),
        ),
        "expand_dims(input, axis)": ("r = tl.expand_dims(x, -1)", (64, 1), lambda x: x[:, None]),
        "expand_dims(input, axes)": ("r = tl.expand_dims(x, (0, 2))", (1, 64, 1), lambda x: x[None, :, None]),
        "squeeze(x, dim)": ("r = tl.squeeze(x[None, :], 0)", (64,), lambda x: x),
        "unsqueeze(x, dim)": ("r = tl.unsqueeze(x, 0)", (1, 64), lambda x: x[None]),
        "reshape(input, *shape)": ("r = tl.reshape(x, 8, 8)", _SQUARE, _square),
        "reshape(input, shape)": ("r = tl.reshape(x, [8, 8])", _SQUARE, _square),
        "reshape(can_reorder=True)": (
            "r = tl.sum(tl.reshape(x, [8, 8], can_reorder=True) * 0 + 1)",
            (),
            lambda x: 64,
        ),
        "view(input, *shape)": ("r = tl.view(x, 8, 8)", _SQUARE, _square),
        "ravel(x)": (f"{_GRID}r = tl.ravel(g)", (64,), lambda x: x),
        "ravel(can_reorder=True)": (
            f"{_GRID}r = tl.sum(tl.ravel(g, can_reorder=True) * 0 + 1)",
            (),
            lambda x: 64,
        ),
        "trans(input)": (f"{_GRID}r = tl.trans(g)", _SQUARE, lambda x: _square(x).T),
        "trans(input, *dims)": (
            "r = tl.trans(x.reshape(4, 2, 8), 2, 0, 1)",
            (8, 4, 2),
            lambda x: x.reshape(4, 2, 8).transpose(2, 0, 1),
        ),
        "permute(input, *dims)": (
            "r = tl.permute(x.reshape(4, 2, 8), (1, 2, 0))",
            (2, 8, 4),
            lambda x: x.reshape(4, 2, 8).transpose(1, 2, 0),
        ),
        "cat(input, other)": ("r = tl.cat(x, x + 1)", (128,), lambda x: np.concatenate([x, x + 1])),
        "cat(can_reorder=True)": (
            "r = tl.sort(tl.cat(x, x, can_reorder=True))",
            (128,),
            lambda x: np.sort(np.concatenate([x, x])),
        ),
        "cat(dim)": (
            f"{_GRID}r = tl.cat(g, g + 1, dim=1)",
            (8, 16),
            lambda x: np.concatenate([_square(x), _square(x) + 1], 1),
        ),
        "join(a, b)": ("r = tl.join(x, x + 1)", (64, 2), lambda x: np.stack([x, x + 1], -1)),
        "join broadcasts": ("r = tl.join(x, 1.0)", (64, 2), lambda x: np.stack([x, x * 0 + 1], -1)),
        "join of scalars": ("r = tl.join(tl.load(X), tl.load(X + 1))", (2,), lambda x: x[:2]),
        "split(a)": (f"{pairs}r = a - b", _HALF, lambda x: x[::2] - x[1::2]),
        "split of rank 1": ("a, b = tl.split(tl.join(tl.load(X), 2.0))\nr = a + b", (), lambda x: x[0] + 2),
        "interleave(a, b)": (
            "r = tl.interleave(x, x + 1)",
            (128,),
            lambda x: np.stack([x, x + 1], -1).ravel(),
        ),
        "core.item(input)": (
            "r = tl.reshape(tl.load(X + 3 + tl.arange(0, 1)), 1, 1).item()",
            (),
            lambda x: x[3],
        ),
        "flip(x)": ("r = tl.flip(x)", (64,), lambda x: x[::-1]),
        "flip(dim)": (f"{_GRID}r = tl.flip(g, dim=0)", _SQUARE, lambda x: _square(x)[::-1]),
        "gather(src, index, axis)": (
            "r = tl.gather(x, (i * 7) % N, 0)",
            (64,),
            lambda x: x[np.arange(64) * 7 % 64],
        ),
        "gather(axis=1)": (
            f"{_GRID}k = tl.broadcast_to((tl.arange(0, 8) ^ 3)[None, :], 8, 8)\nr = tl.gather(g, k, 1)",
            _SQUARE,
            lambda x: _square(x)[:, np.arange(8) ^ 3],
        ),
    }
    rows = _plain("Shapes", table)
    refused = {
        "reshape to another numel is refused": ("r = tl.reshape(x, [8, 4])", "(?i)reshape|element"),
        "split of another last extent is refused": ("a, b = tl.split(x.reshape(8, 8))\nr = a", "(?i)2|last"),
        "gather of another rank is refused": ("r = tl.gather(x.reshape(8, 8), i, 0)", "(?i)rank|dim"),
    }
    return rows + [Row("Shapes", n, Refuses(Kernel(c), m)) for n, (c, m) in refused.items()]


def _odd_lanes(x: Array) -> Array:
    return np.where(np.arange(x.size).reshape(x.shape) % 2 == 0, np.nan, x)


def _on_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(np.arange(64), 3)


def _selection() -> list[Row]:
    group = "Selection and arithmetic functions"
    lanes = "lanes"
    nan = "x = tl.where(i % 2 == 0, float('nan'), x)\n"
    odd = _odd_lanes
    one = np.float32(1)
    table: dict[str, tuple[Any, ...]] = {
        "where(condition, x, y)": ("r = tl.where(x > 1, x, 0.0)", lanes, lambda x: np.where(x > 1, x, 0)),
        "where of a non-bool condition": (
            "r = tl.where(i % 2, x, 0.0)",
            lanes,
            lambda x: np.where(np.arange(x.size).reshape(x.shape) % 2, x, 0),
        ),
        "where of pointers": (
            "r = tl.load(tl.where(i % 2 == 0, X + i, X))",
            (64,),
            lambda x: np.where(np.arange(64) % 2 == 0, x, x[0]),
        ),
        "minimum(x, y)": ("r = tl.minimum(x, 1.0)", lanes, lambda x: np.minimum(x, one)),
        "maximum(x, y)": ("r = tl.maximum(x, 1.0)", lanes, lambda x: np.maximum(x, one)),
        "minimum(propagate_nan=NONE)": (
            f"{nan}r = tl.minimum(x, 1.0, propagate_nan=tl.PropagateNan.NONE)",
            lanes,
            lambda x: np.fmin(odd(x), 1),
        ),
        "minimum(propagate_nan=ALL)": (
            f"{nan}r = tl.minimum(x, 1.0, propagate_nan=tl.PropagateNan.ALL)",
            lanes,
            lambda x: np.minimum(odd(x), 1),
        ),
        "maximum(propagate_nan=NONE)": (
            f"{nan}r = tl.maximum(x, 1.0, propagate_nan=tl.PropagateNan.NONE)",
            lanes,
            lambda x: np.fmax(odd(x), 1),
        ),
        "maximum(propagate_nan=ALL)": (
            f"{nan}r = tl.maximum(x, 1.0, propagate_nan=tl.PropagateNan.ALL)",
            lanes,
            lambda x: np.maximum(odd(x), 1),
        ),
        "clamp(x, min, max)": (
            "r = tl.clamp(x, 0.5, 1.5)",
            lanes,
            lambda x: np.minimum(np.maximum(x, np.float32(0.5)), np.float32(1.5)),
        ),
        "clamp(propagate_nan)": (
            f"{nan}r = tl.clamp(x, 0.5, 1.5, propagate_nan=tl.PropagateNan.ALL)",
            lanes,
            lambda x: np.clip(odd(x), 0.5, 1.5),
        ),
        "add(x, y)": ("r = tl.add(x, 1.0)", lanes, lambda x: x + one),
        "sub(x, y)": ("r = tl.sub(x, 1.0)", lanes, lambda x: x - one),
        "mul(x, y)": ("r = tl.mul(x, 3.0)", lanes, lambda x: x * np.float32(3)),
        **{
            f"{name}(sanitize_overflow)": (
                f"r = tl.{name}(i, 3, sanitize_overflow=False)",
                (64,),
                _on_indices(f),
                "int32",
            )
            for name, f in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply))
        },
        "map_elementwise(scalar_fn, *args)": (
            "r = tl.map_elementwise(grow, x)",
            lanes,
            lambda x: np.where(x > 1, x * 2, x),
        ),
        "map_elementwise(pack)": ("r = tl.map_elementwise(two, x, pack=2)[0]", lanes, lambda x: x),
        "map_elementwise of several outputs": (
            "a, b = tl.map_elementwise(both, x, x + 1)\nr = a - b",
            lanes,
            lambda x: (x + one) - x,
        ),
    }
    prelude = """
@triton.jit
def grow(a):
    if a > 1:
        a = a * 2
    return a

@triton.jit
def two(a, b):
    return a, b

@triton.jit
def both(a, b):
    return b, a
"""
    timed = {
        "where(condition, x, y)",
        "minimum(x, y)",
        "maximum(x, y)",
        "clamp(x, min, max)",
        "add(x, y)",
        "sub(x, y)",
        "mul(x, y)",
    }
    rows = [
        Row(
            group,
            n,
            Kernel(c, shape=s, wanted=w, out=rest[0] if rest else "fp32", prelude=prelude, numpy=n in timed),
        )
        for n, (c, s, w, *rest) in table.items()
    ]
    rows += [
        Row(
            group,
            "minimum of bf16 is fp32",
            Kernel(
                "r = tl.minimum(x, y)\ntl.static_assert(r.dtype == tl.float32)",
                ("bf16", "bf16"),
                wanted=lambda x, y: np.minimum(x, y),
            ),
        ),
        Row(
            group,
            "clamp of integers is refused",
            Refuses(Kernel("r = tl.clamp(x, 1, 2)", ("int32",)), "(?i)float"),
        ),
    ]
    return rows


_PRELUDE = """
@triton.jit
def add(a, b):
    return a + b

@triton.jit
def first(a, b):
    return a

@triton.jit
def larger(a, i, b, j):
    return tl.where(b > a, b, a), tl.where(b > a, j, i)

@triton.jit
def linear(a, b, c, d):
    return a * c, b * c + d
"""


def _linear_scan(x: Array) -> Array:
    state, out = np.float32(0), []
    for v in x:
        state = np.float32(np.float32(state * np.float32(0.5)) + v)
        out.append(state)
    return np.array(out)


def _folds() -> list[Row]:
    group = "Reductions and scans"
    programs, lanes = "programs", "lanes"
    near = ulp("fp32", 64)
    table: dict[str, tuple[Any, ...]] = {
        "reduce(input, axis, combine_fn)": ("r = tl.reduce(x, 0, add)", programs, lambda x: x.sum(1)),
        "reduce(axis=None)": (f"{_GRID}r = tl.reduce(g, None, add)", programs, lambda x: x.sum(1)),
        "reduce(keep_dims)": (
            "r = tl.reduce(x, 0, add, keep_dims=True) + x * 0",
            lanes,
            lambda x: x * 0 + x.sum(1, keepdims=True),
        ),
        "reduce of a tuple": ("a, r = tl.reduce((x, i), 0, larger)", (), lambda x: x.argmax(), "int32"),
        "reduce of a user's function keeps order": (
            "r = tl.reduce(x, 0, first)",
            programs,
            lambda x: x[:, 0],
        ),
        "sum(input)": ("r = tl.sum(x)", programs, lambda x: x.sum(1)),
        "sum(axis)": (f"{_GRID}r = tl.sum(g, axis=1)", (8,), lambda x: _square(x).sum(1)),
        "sum(keep_dims)": (
            f"{_GRID}r = tl.sum(g, 1, keep_dims=True)",
            (8, 1),
            lambda x: _square(x).sum(1)[:, None],
        ),
        "sum(dtype)": (
            "r = tl.sum(x, dtype=tl.float64)",
            programs,
            lambda x: x.sum(1, dtype=np.float64),
            "fp64",
        ),
        **{
            f"{n}(input)": (f"r = tl.{n}(x)", programs, lambda x, n=n: getattr(x, n)(1))
            for n in ("max", "min")
        },
        **{
            f"{n}(axis)": (f"{_GRID}r = tl.{n}(g, axis=0)", (8,), lambda x, n=n: getattr(_square(x), n)(0))
            for n in ("max", "min")
        },
        **{
            f"{n}(return_indices)": (
                f"a, r = tl.{n}(x, 0, return_indices=True)",
                programs,
                lambda x, n=n: getattr(x, f"arg{n}")(1),
                "int32",
            )
            for n in ("max", "min")
        },
        **{
            f"{n}(return_indices_tie_break_left)": (
                f"a, r = tl.{n}(x, 0, return_indices=True, return_indices_tie_break_left=False)",
                programs,
                lambda x, n=n: getattr(x, f"arg{n}")(1),
                "int32",
            )
            for n in ("max", "min")
        },
        **{
            f"{n}(keep_dims)": (
                f"{_GRID}r = tl.{n}(g, 0, keep_dims=True)",
                (1, 8),
                lambda x, n=n: getattr(_square(x), n)(0)[None],
            )
            for n in ("max", "min")
        },
        **{
            f"arg{n}(input, axis)": (
                f"r = tl.arg{n}(x, 0)",
                programs,
                lambda x, n=n: getattr(x, f"arg{n}")(1),
                "int32",
            )
            for n in ("max", "min")
        },
        **{
            f"arg{n}(tie_break_left)": (
                f"r = tl.arg{n}(x, 0, tie_break_left=False)",
                programs,
                lambda x, n=n: getattr(x, f"arg{n}")(1),
                "int32",
            )
            for n in ("max", "min")
        },
        **{
            f"arg{n}(keep_dims)": (
                f"{_GRID}r = tl.arg{n}(g, 0, keep_dims=True)",
                (1, 8),
                lambda x, n=n: getattr(_square(x), f"arg{n}")(0)[None],
                "int32",
            )
            for n in ("max", "min")
        },
        "xor_sum(input)": (
            "r = tl.xor_sum(x.to(tl.int32))",
            programs,
            lambda x: np.bitwise_xor.reduce(x.astype(int), 1),
            "int32",
        ),
        "xor_sum(axis)": (
            "r = tl.xor_sum(i.reshape(8, 8), axis=0)",
            (8,),
            lambda x: np.bitwise_xor.reduce(np.arange(64).reshape(8, 8), 0),
            "int32",
        ),
        "xor_sum(keep_dims)": (
            "r = tl.xor_sum(i.reshape(8, 8), 0, keep_dims=True)",
            (1, 8),
            lambda x: np.bitwise_xor.reduce(np.arange(64).reshape(8, 8), 0)[None],
            "int32",
        ),
        "reduce_or(input, axis)": (
            "r = tl.reduce_or(i.reshape(8, 8), 0)",
            (8,),
            lambda x: np.bitwise_or.reduce(np.arange(64).reshape(8, 8), 0),
            "int32",
        ),
        "reduce_or(keep_dims)": (
            "r = tl.reduce_or(i.reshape(8, 8), 0, keep_dims=True)",
            (1, 8),
            lambda x: np.bitwise_or.reduce(np.arange(64).reshape(8, 8), 0)[None],
            "int32",
        ),
        "associative_scan(input, axis, combine_fn)": (
            "r = tl.associative_scan(x, 0, add)",
            lanes,
            lambda x: np.cumsum(x, 1),
        ),
        "associative_scan(reverse)": (
            "r = tl.associative_scan(x, 0, add, reverse=True)",
            lanes,
            lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1],
        ),
        "associative_scan of a tuple": (
            "a, r = tl.associative_scan((x * 0 + 0.5, x), 0, linear)",
            (64,),
            _linear_scan,
        ),
        "associative_scan(axis=1)": (
            f"{_GRID}r = tl.associative_scan(g, 1, add)",
            _SQUARE,
            lambda x: np.cumsum(_square(x), 1),
        ),
        "cumsum(input)": ("r = tl.cumsum(x)", lanes, lambda x: np.cumsum(x, 1)),
        "cumsum(axis)": (f"{_GRID}r = tl.cumsum(g, axis=1)", _SQUARE, lambda x: np.cumsum(_square(x), 1)),
        "cumsum(reverse)": (
            "r = tl.cumsum(x, reverse=True)",
            lanes,
            lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1],
        ),
        "cumsum(dtype)": (
            "r = tl.cumsum(x, dtype=tl.float64)",
            lanes,
            lambda x: np.cumsum(x, 1, np.float64),
            "fp64",
        ),
        "cumprod(input)": ("r = tl.cumprod(x)", lanes, lambda x: np.cumprod(x, 1)),
        "cumprod(axis)": (f"{_GRID}r = tl.cumprod(g, axis=1)", _SQUARE, lambda x: np.cumprod(_square(x), 1)),
        "cumprod(reverse)": (
            "r = tl.cumprod(x, reverse=True)",
            lanes,
            lambda x: np.cumprod(x[:, ::-1], 1)[:, ::-1],
        ),
    }
    timed = {
        "sum(input)",
        "sum(dtype)",
        "max(input)",
        "min(input)",
        "argmax(input, axis)",
        "argmin(input, axis)",
        "cumsum(input)",
        "cumprod(input)",
        "cumsum(reverse)",
        "cumsum(dtype)",
        "cumprod(reverse)",
        "xor_sum(input)",
    }
    rows = [
        Row(
            group,
            n,
            Kernel(
                c,
                shape=s,
                wanted=w,
                out=rest[0] if rest else "fp32",
                prelude=_PRELUDE,
                rtol=near,
                numpy=n in timed,
            ),
        )
        for n, (c, s, w, *rest) in table.items()
    ]
    promoted = {
        "sum": {
            "int1": "uint32",
            "int8": "int32",
            "uint16": "uint32",
            "int64": "int64",
            "fp16": "fp16",
            "bf16": "bf16",
            "fp64": "fp64",
        },
        "max": {
            "bf16": "fp32",
            "fp16": "fp32",
            "int8": "int32",
            "uint8": "int32",
            "int64": "int64",
            "fp64": "fp64",
        },
        "min": {
            "bf16": "fp32",
            "fp16": "fp32",
            "int8": "int32",
            "uint8": "int32",
            "int64": "int64",
            "fp64": "fp64",
        },
    }
    for name, types in promoted.items():
        for dtype, out in types.items():

            def wanted(x: Array, name: str = name, out: str = out) -> Array:
                return np.asarray(
                    getattr(x.astype(DTYPES[out]), name)(
                        1, **({"dtype": DTYPES[out]} if name == "sum" else {})
                    )
                )

            small = dtype in ("fp16", "bf16") and name == "sum"
            code = f"r = tl.{name}(x, 0)\ntl.static_assert(r.dtype == tl.{TL_NAMES[out]})"
            rows.append(
                Row(
                    group,
                    f"{name} of {dtype} is {out}",
                    Kernel(
                        code,
                        (dtype,),
                        out,
                        "programs",
                        wanted=None if small else wanted,
                        rtol=1e-12,
                        numpy=not small and dtype not in ("int1", "bf16"),
                    ),
                )
            )
    rows += [
        Row(
            group,
            "cumsum of int8 is int32",
            Kernel(
                "r = tl.cumsum(x)\ntl.static_assert(r.dtype == tl.int32)",
                ("int8",),
                "int32",
                wanted=lambda x: np.cumsum(x, 1, np.int32),
                numpy=True,
            ),
        ),
        Row(
            group,
            "cumsum of bf16 is fp32",
            Kernel(
                "r = tl.cumsum(x)\ntl.static_assert(r.dtype == tl.float32)",
                ("bf16",),
                rtol=near,
                wanted=lambda x: np.cumsum(x.astype(np.float32), 1),
            ),
        ),
        Row(
            group,
            "max skips NaN",
            Kernel(
                "r = tl.max(tl.where(i % 2 == 0, float('nan'), x))",
                shape="programs",
                wanted=lambda x: x[:, 1::2].max(1),
            ),
        ),
        Row(
            group,
            "xor_sum of floats is refused",
            Refuses(Kernel("r = tl.xor_sum(x)", shape="programs"), "(?i)integer"),
        ),
        Row(
            group,
            "reduce_or of floats is refused",
            Refuses(Kernel("r = tl.reduce_or(x, 0)", shape="programs"), "(?i)integer"),
        ),
    ]
    return rows


def _orders() -> list[Row]:
    group = "Orders"
    counts = (np.arange(64, dtype=np.int32) * 5 % 16,)
    table: dict[str, tuple[Any, ...]] = {
        "sort(x)": ("r = tl.sort(x)", "lanes", lambda x: np.sort(x, 1)),
        "sort(dim)": (f"{_GRID}r = tl.sort(g, dim=1)", _SQUARE, lambda x: np.sort(_square(x), 1)),
        "sort(descending)": ("r = tl.sort(x, descending=True)", "lanes", lambda x: np.sort(x, 1)[:, ::-1]),
        "topk(x, k)": ("r = tl.topk(x, 8)", (8,), lambda x: np.sort(x)[::-1][:8]),
        "topk(dim)": (
            f"{_GRID}r = tl.topk(g, 4, dim=1)",
            (8, 4),
            lambda x: np.sort(_square(x), 1)[:, ::-1][:, :4],
        ),
        "bitonic_merge(x)": (
            "r = tl.bitonic_merge(tl.cat(tl.sort(x), tl.sort(x, descending=True)))",
            (128,),
            lambda x: np.sort(np.concatenate([x, x])),
        ),
        "bitonic_merge(descending)": (
            "r = tl.bitonic_merge(tl.cat(tl.sort(x), tl.sort(x, descending=True)), descending=True)",
            (128,),
            lambda x: np.sort(np.concatenate([x, x]))[::-1],
        ),
        "bitonic_merge(dim)": (
            f"{_GRID}r = tl.bitonic_merge(tl.cat(tl.sort(g), tl.sort(g, descending=True), dim=1), dim=1)",
            (8, 16),
            lambda x: np.sort(np.concatenate([_square(x)] * 2, 1), 1),
        ),
    }
    rows = [
        Row(group, n, Kernel(c, shape=s, wanted=w, numpy=n in ("sort(x)", "sort(descending)")))
        for n, (c, s, w) in table.items()
    ]
    rows += [
        Row(
            group,
            "histogram(input, num_bins)",
            Kernel(
                "r = tl.histogram(x, 16)",
                counts,
                "int32",
                (16,),
                wanted=lambda x: np.bincount(x, minlength=16),
            ),
        ),
        Row(
            group,
            "histogram(mask)",
            Kernel(
                "r = tl.histogram(x, 16, mask=i < 10)",
                counts,
                "int32",
                (16,),
                wanted=lambda x: np.bincount(x[:10], minlength=16),
            ),
        ),
        Row(
            group,
            "histogram ignores what is out of range",
            Kernel(
                "r = tl.histogram(x * 100 - 100, 16)",
                counts,
                "int32",
                (16,),
                wanted=lambda x: np.bincount((x * 100 - 100)[x == 1], minlength=16),
            ),
        ),
        Row(
            group,
            "sort along another dim is refused",
            Refuses(Kernel("r = tl.sort(x.reshape(8, 8), dim=0)"), "(?i)last|minor"),
        ),
    ]
    return rows


def _products() -> list[Row]:
    group = "dot"
    load = "a = x.reshape(8, 8)\nb = y.reshape(8, 8)\n"
    rows: list[Row] = []

    def product(x: Array, y: Array, out: Any = np.float32) -> Array:
        return np.asarray(x.reshape(8, 8).astype(out) @ y.reshape(8, 8).astype(out))

    def add(
        name: str,
        arguments: str,
        dtype: str = "fp32",
        out: str = "fp32",
        rtol: float = 1e-5,
        after: str = "",
        wanted: Callable[..., Any] | None = None,
        strict: bool = True,
    ) -> None:
        wide = DTYPES["fp32"] if out in ("fp16", "bf16") else DTYPES[out]
        function = wanted or (lambda x, y: product(x, y, wide))
        code = f"{load}r = tl.dot(a, b{arguments}){after}\ntl.static_assert(r.dtype == tl.{TL_NAMES[out]})"
        rows.append(Row(group, name, Kernel(code, (dtype, dtype), out, _SQUARE, wanted=function, rtol=rtol)))

    add("dot(input, other)", "")
    add("dot(acc)", ", tl.full([8, 8], 1, tl.float32)", wanted=lambda x, y: product(x, y) + 1)
    add("dot(out_dtype=float32)", ", out_dtype=tl.float32", "fp16")
    add("dot(out_dtype=float16)", ", out_dtype=tl.float16", "fp16", "fp16", 1e-2)
    for precision in ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"):
        add(f"dot(input_precision={precision!r})", f", input_precision='{precision}'", rtol=2e-2)
    add("dot(allow_tf32)", ", allow_tf32=False")
    add("dot(max_num_imprecise_acc)", ", max_num_imprecise_acc=0")
    for dtype, out in (("fp16", "fp32"), ("bf16", "fp32"), ("fp64", "fp64"), ("int8", "int32")):
        add(f"{dtype} gives {out}", "", dtype, out)
    for dtype in ("fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16"):
        add(f"{dtype} gives fp32", "", dtype)
    for a, b in (("fp8e5", "fp8e4nv"),):
        rows.append(
            Row(
                group,
                f"{a} and {b} may mix",
                Kernel(f"{load}r = tl.dot(a, b)", (a, b), "fp32", _SQUARE, wanted=product, rtol=1e-5),
            )
        )
    rows.append(
        Row(
            group,
            "dot of rank 3",
            Kernel(
                "r = tl.dot(x.reshape(4, 4, 4), y.reshape(4, 4, 4))",
                ("fp32", "fp32"),
                shape=(4, 4, 4),
                wanted=lambda x, y: x.reshape(4, 4, 4) @ y.reshape(4, 4, 4),
                rtol=1e-5,
            ),
        )
    )
    rows.append(
        Row(
            group,
            "dot of rank 4",
            Kernel(
                "r = tl.dot(x.reshape(2, 2, 4, 4), y.reshape(2, 2, 4, 4))",
                ("fp32", "fp32"),
                shape=(2, 2, 4, 4),
                wanted=lambda x, y: x.reshape(2, 2, 4, 4) @ y.reshape(2, 2, 4, 4),
                rtol=1e-5,
            ),
        )
    )
    refused = {
        "unequal dtypes are refused": (
            "r = tl.dot(a, b.to(tl.float64))",
            "fp32",
            "(?i)same|dtype|one element type",
        ),
        "uint8 is refused": ("r = tl.dot(a, b)", "uint8", "(?i)uint8|int8|unsupported"),
        "extents that do not fit are refused": (
            "r = tl.dot(a, b.reshape(16, 4))",
            "fp32",
            "(?i)dimension|shape|extent",
        ),
        "acc of another dtype is refused": (
            "r = tl.dot(a, b, tl.zeros([8, 8], tl.float64))",
            "fp32",
            "(?i)acc|dtype",
        ),
        "allow_tf32 beside input_precision is refused": (
            "r = tl.dot(a, b, allow_tf32=True, input_precision='ieee')",
            "fp32",
            "(?i)allow_tf32|input_precision",
        ),
        "an unknown input_precision is refused": (
            "r = tl.dot(a, b, input_precision='xx')",
            "fp32",
            "(?i)precision",
        ),
    }
    rows += [
        Row(group, n, Refuses(Kernel(load + c, (d, d), "fp32", _SQUARE), m))
        for n, (c, d, m) in refused.items()
    ]

    group = "dot_scaled"
    ones = np.full(64, 127, np.uint8)
    half = np.full(64, 126, np.uint8)
    for name in ("e4m3", "e5m2", "bf16", "fp16"):
        dtype = {"e4m3": "fp8e4nv", "e5m2": "fp8e5"}.get(name, name)
        code = (
            "j = tl.arange(0, 32)\nm = tl.arange(0, 2)\n"
            "a = tl.load(X + m[:, None] * 32 + j[None, :])\nb = tl.load(Y + j[:, None] + m[None, :] * 32)\n"
            "s = tl.load(Z + m[:, None])\n"
            f"r = tl.dot_scaled(a, s, '{name}', b, {{rhs}}, '{name}')"
        )

        def wanted(x: Array, y: Array, z: Array) -> Array:
            return (
                np.asarray(
                    x[:64].reshape(2, 32).astype(np.float32) @ y[:64].reshape(2, 32).astype(np.float32).T
                )
                / 2
            )

        for side, text in (("no rhs_scale", "None"), ("rhs_scale", "s * 0 + 127")):
            rows.append(
                Row(
                    group,
                    f"{name}, {side}",
                    Kernel(
                        code.format(rhs=text).replace("s * 0 + 127", "(s * 0 + 127).to(tl.uint8)"),
                        (dtype, dtype, half),
                        "fp32",
                        (2, 2),
                        wanted=wanted,
                        rtol=1e-5,
                    ),
                )
            )
    packed = (
        "j = tl.arange(0, 16)\nm = tl.arange(0, 2)\n"
        "a = tl.load(X + m[:, None] * 16 + j[None, :])\nb = tl.load(Y + j[:, None] + m[None, :] * 16)\n"
        "s = tl.load(Z + m[:, None])\nr = tl.dot_scaled(a, s, 'e2m1', b, s, 'e2m1'{})"
    )
    nibbles = np.full(64, 0x42, np.uint8)  # 1.0 in the low half, 2.0 in the high one
    for name, arguments, value in (
        ("e2m1", "", 80.0),
        ("acc", ", acc=tl.full([2, 2], 1, tl.float32)", 81.0),
        ("fast_math", ", fast_math=True", 80.0),
        ("lhs_k_pack, rhs_k_pack", ", lhs_k_pack=True, rhs_k_pack=True", 80.0),
        ("out_dtype", ", out_dtype=tl.float32", 80.0),
    ):
        rows.append(
            Row(
                group,
                name,
                Kernel(
                    packed.format(arguments),
                    (nibbles, nibbles, ones),
                    "fp32",
                    (2, 2),
                    wanted=lambda x, y, z, v=value: np.full((2, 2), v),
                ),
            )
        )
    rows.append(
        Row(
            group,
            "a scale of 0xFF is NaN",
            Kernel(
                packed.format(""),
                (nibbles, nibbles, ones | 255),
                "fp32",
                (2, 2),
                wanted=lambda x, y, z: np.full((2, 2), np.nan),
            ),
        )
    )
    return rows


ROWS = [*_creation(), *_casts(), *_shapes(), *_selection(), *_folds(), *_orders(), *_products()]
