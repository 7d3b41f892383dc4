"""Every function of libdevice, of every row of types: both modes alike, and right where one answer is.

The functions of one float with a recipe are walked by `test_maths.py`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.diagnostics import CompilationError
from blocklang.language.extra import libdevice
from blocklang.ops.elementwise import FUNCTIONS
from tests.numerics.kernels import binary, quaternary, ternary, unary
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.libdevice_reference import reference_of
from tests.numerics.values import NUMPY_DTYPES, TYPES, numbers

COUNT = 150
KERNELS = {1: unary, 2: binary, 3: ternary, 4: quaternary}
Row = tuple[tuple[str, ...], str]


def rows(name: str) -> list[Row]:
    """The types that the documentation of a function states."""
    text = re.search(r"Types: (.*?)\.\n", getattr(libdevice, name).__doc__, re.DOTALL)
    if text is None:
        return []
    parts = [part.split(" gives ") for part in text[1].replace("\n", " ").split(";")]
    return [(tuple(t.strip() for t in left.split(",")), right.strip()) for left, right in parts]


def groups() -> list[tuple[tuple[str, ...], Row]]:
    """A few functions of the same types to a kernel."""
    by_row: dict[Row, list[str]] = {}
    for name in libdevice.__all__:
        if name not in FUNCTIONS:
            for row in rows(name):
                by_row.setdefault(row, []).append(name)
    return [(tuple(ns[i : i + 8]), row) for row, ns in by_row.items() for i in range(0, len(ns), 8)]


def arguments(type_: str, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    kind = NUMPY_DTYPES[type_]
    special = generator.choice(numbers(type_), COUNT)
    if kind.kind == "f":
        powers = np.exp2(generator.integers(-4, 40, COUNT))
        moderate = (generator.standard_normal(COUNT) * powers).astype(kind)
        halves = (generator.integers(-9, 9, COUNT) / 2).astype(kind)
        patterns = generator.integers(0, 2**63, COUNT, dtype=np.uint64) * np.uint64(2)
        arbitrary = (patterns >> np.uint64(64 - 8 * kind.itemsize)).astype(f"u{kind.itemsize}").view(kind)
        return np.concatenate([special, moderate, halves, arbitrary])
    info = np.iinfo(kind)
    arbitrary = generator.integers(info.min, info.max, 2 * COUNT, dtype=kind, endpoint=True)
    small = generator.integers(max(info.min, -70), 70, COUNT).astype(kind)
    return np.concatenate([special, arbitrary, small])


@pytest.mark.parametrize("group", groups(), ids=lambda g: f"{g[0][0]}-{'-'.join(g[1][0])}")
def test_functions(group: tuple[tuple[str, ...], Row]) -> None:
    names, (types, result) = group
    values = [arguments(t, 10 + i) for i, t in enumerate(types)]
    size = len(values[0])
    results = launch_one(
        KERNELS[len(types)], bl.cdiv(size, 77), *values, Out((len(names), size), result), size,
        BLOCK=77, OPS=tuple(getattr(libdevice, n) for n in names), RESULT=TYPES[result],
    )  # fmt: skip
    lists = [v.tolist() for v in values]
    for name, got in zip(names, results, strict=True):
        reference = reference_of(name, types)
        if reference is None:
            continue
        wanted = [reference(*lane) for lane in zip(*lists, strict=True)]
        known = np.array([w is not None for w in wanted])
        with np.errstate(all="ignore"):
            expected = np.array([w for w in wanted if w is not None], object).astype(got.dtype)
        assert_same_bits(got[known], expected, f"{name} of {types}")


def apply_one(function: Any, *values: Array, result: str) -> Array:
    size = len(values[0])
    (row,) = launch_one(
        KERNELS[len(values)], 3, *values, Out((1, size), result), size,
        BLOCK=size // 2, OPS=(function,), RESULT=TYPES[result],
    )  # fmt: skip
    return np.asarray(row)


def test_every_name_has_a_place() -> None:
    """198 names, as in Triton 3.7.1, of which two are refused."""
    assert len(libdevice.__all__) == 198
    untyped = {name for name in libdevice.__all__ if not rows(name)}
    assert untyped - {"jn", "yn"} <= {name for name in libdevice.__all__ if hasattr(tl, name)} | {"tan"} | {
        *("expm1", "tanh", "trunc")
    }


@pytest.mark.parametrize("module", ["cuda", "hip"])
def test_names_of_other_devices_are_the_same_functions(module: str) -> None:
    theirs = getattr(tl.extra, module).libdevice
    assert all(getattr(theirs, name) is getattr(tl.extra.libdevice, name) for name in libdevice.__all__)


@pytest.mark.parametrize("type_", ["fp16", "bf16"])
def test_small_floats_are_rounded_once_from_fp32(type_: str) -> None:
    x = np.linspace(-3, 3, 200).astype(NUMPY_DTYPES[type_])
    got = apply_one(libdevice.atan2, x, x[::-1].copy(), result=type_)
    wide = apply_one(libdevice.atan2, x.astype(np.float32), x[::-1].astype(np.float32), result="fp32")
    assert_same_bits(got, wide.astype(NUMPY_DTYPES[type_]))
    assert apply_one(libdevice.isnan, x, result="int32").sum() == 0


def test_mixed_types_are_promoted() -> None:
    """fp32 beside fp64 takes the row of fp64; an integer exponent has a row of its own."""
    x, y = np.linspace(0.1, 3, 100).astype(np.float32), np.linspace(-2, 2, 100)
    got = apply_one(libdevice.pow, x, y, result="fp64")
    assert np.allclose(got, x.astype(np.float64) ** y, rtol=1e-14)
    n = np.arange(-30, 70, dtype=np.int32) // 2
    assert np.allclose(apply_one(libdevice.pow, x, n, result="fp32"), x.astype(np.float64) ** n, rtol=1e-6)
    big = np.full(2, 2**24 + 1, np.int32)
    assert apply_one(libdevice.pow, np.full(2, -1.0, np.float32), big, result="fp32").tolist() == [-1.0] * 2


def test_wrong_types_are_refused() -> None:
    x = np.zeros(4, np.int32)
    with pytest.raises(CompilationError, match="sinh: input arg type does not match: expected one of"):
        apply_one(libdevice.sinh, x, result="int32")
    with pytest.raises(CompilationError, match=r"`libdevice.jn` is not supported: the recurrence"):
        apply_one(libdevice.jn, x, np.zeros(4, np.float32), result="fp32")
