"""Sort, topk, gather and histogram: the published meaning, one number at a time; and their placed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang.ops  # noqa: F401 - declares the operations
from blocklang.interpreter import run_kernel
from blocklang.interpreter.dtypes import DTYPES, widen
from blocklang.ir import parse_kernel, verify
from blocklang.ir.types import SCALARS, ScalarType
from blocklang.ops import order as ops
from tests.interpreter.harness import Array, apply, assert_same_bits, integers
from tests.interpreter.harness import numbers as some_numbers


def key(x: Any) -> tuple[bool, float, bool]:
    """The place of a number in the order: NaN last, then by value, -0.0 first."""
    if x.dtype.kind in "biu":
        return False, int(x), False
    number = float(widen(np.asarray(x)))
    return (True, 0.0, False) if number != number else (False, number, not np.signbit(number))


def numbers(type_: ScalarType) -> Array:
    """Numbers of a type; every code of an 8-bit float."""
    if type_.is_float8:
        return np.arange(256, dtype=np.uint8).view(DTYPES[type_.name])
    return some_numbers(type_)


def in_order(row: Array, *, descending: bool = False) -> Array:
    return np.array(sorted(row, key=key, reverse=descending), row.dtype)


@pytest.mark.parametrize("type_", SCALARS.values(), ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_follows_the_published_order(type_: ScalarType, descending: bool) -> None:
    row = np.random.default_rng(1).permutation(np.repeat(numbers(type_), 2))
    block = np.stack([row, row[::-1]])
    expected = in_order(row, descending=descending)
    actual = apply(ops.Sort, block, descending=descending)
    assert_same_bits(actual, np.stack([expected, expected]))


@pytest.mark.parametrize("type_", SCALARS.values(), ids=str)
@pytest.mark.parametrize("k", [1, 2])
def test_topk_is_the_head_of_the_descending_sort(type_: ScalarType, k: int) -> None:
    block = np.stack([numbers(type_), numbers(type_)[::-1]])
    expected = in_order(numbers(type_), descending=True)[:k]
    assert_same_bits(apply(ops.TopK, block, k=k), np.stack([expected, expected]))


def test_every_nan_is_last() -> None:
    words = np.array([0xFFC00001, 0x7F800000, 0x7FC00000, 0xFF800001, 0xFF800000, 0x80000000, 0], np.uint32)
    ordered = apply(ops.Sort, words.view(np.float32))
    assert np.isnan(ordered[4:]).all()
    assert_same_bits(ordered[:4], np.array([-np.inf, -0.0, 0.0, np.inf], np.float32))
    assert np.isnan(apply(ops.TopK, words.view(np.float32), k=3)).all()


@pytest.mark.parametrize("type_", [t for t in SCALARS.values() if t.is_integer and t.bits > 1], ids=str)
@pytest.mark.parametrize("extent", [1, 4, 1000])
def test_gather_clamps_indices(type_: ScalarType, extent: int) -> None:
    source = np.arange(2 * extent, dtype=np.float32).reshape(2, extent)
    index = np.stack([integers(type_), integers(type_)[::-1]])
    expected = [
        [row[min(max(int(i), 0), extent - 1)] for i in at] for row, at in zip(source, index, strict=True)
    ]
    assert_same_bits(apply(ops.Gather, source, index, axis=1), np.array(expected, np.float32))


def test_gather_along_the_first_axis() -> None:
    source, index = np.arange(12, dtype=np.int16).reshape(4, 3), np.array([[3, 0, 1], [0, 9, -1]], np.int8)
    assert_same_bits(apply(ops.Gather, source, index, axis=0), np.array([[9, 1, 5], [0, 10, 2]], np.int16))


@pytest.mark.parametrize("type_", [t for t in SCALARS.values() if t.is_integer], ids=str)
def test_histogram_counts_what_is_in_range(type_: ScalarType) -> None:
    values = np.repeat(integers(type_), 3)
    mask = np.arange(values.size) % 4 != 0
    for bins in (1, 4, 300):
        expected = [sum(int(v) == b for v in values) for b in range(bins)]
        assert_same_bits(apply(ops.Histogram, values, bins=bins), np.array(expected, np.int32))
        expected = [sum(int(v) == b for v, m in zip(values, mask, strict=True) if m) for b in range(bins)]
        assert_same_bits(apply(ops.Histogram, values, mask=mask, bins=bins), np.array(expected, np.int32))


PLACED = """
placed @t(%out: ptr<f32>, %counts: ptr<i32>, %x: ptr<f32>) {
  %source = buffer : buffer<2x5xf32>
  %keys = buffer : buffer<8xi32>
  %top = buffer : buffer<2x3xf32>
  %numbers = buffer : buffer<10xi32>
  %tables = buffer : buffer<2x5xi32>
  %h = buffer : buffer<4xi32>
  %flat = view %source : buffer<10xf32>
  %flat_top = view %top : buffer<6xf32>
  %c0 = constant value=0 : i64
  %c4 = constant value=4 : i64
  %c6 = constant value=6 : i64
  %c10 = constant value=10 : i64
  lanes %c0, %c10, width=4 {
    (%i: i64):
    %p = offset %x, %i : ptr<f32>
    %v = load %p : f32
    write %flat, %v, %i
    %n = cast %v : i32
    write %numbers, %n, %i
    yield
  }
  sort_buffer %source, %keys, %top, descending=true
  histogram_buffer %numbers, %tables, %h
  lanes %c0, %c6, width=4 {
    (%j: i64):
    %w = read %flat_top, %j : f32
    %q = offset %out, %j : ptr<f32>
    store %q, %w
    yield
  }
  lanes %c0, %c4, width=4 {
    (%k: i64):
    %c = read %h, %k : i32
    %r = offset %counts, %k : ptr<i32>
    store %r, %c
    yield
  }
  return
}
"""


def test_placed_forms() -> None:
    kernel = parse_kernel(PLACED)
    verify(kernel)
    x = np.array([1, 4, 0, 2, 3, 0, 0, 4, 1, 2], np.float32)
    out, counts = np.zeros(6, np.float32), np.zeros(4, np.int32)
    run_kernel(kernel, [out, counts, x], (1,))
    np.testing.assert_array_equal(out, [4, 3, 2, 4, 2, 1])
    np.testing.assert_array_equal(counts, [3, 2, 2, 1])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%y = topk %x, k=9 : block<2x9xf32>", "k is 9"),
        ("%y = gather %x, %x, axis=0 : block<2x8xf32>", "integers as indices"),
        ("%y = gather %x, %i, axis=1 : block<3x8xf32>", "every axis but the gathered one"),
        ("%y = gather %x, %i, axis=2 : block<3x8xf32>", "along axis 2"),
        ("%y = histogram %i, bins=4 : block<4xi32>", "of rank 1"),
        ("%y = sort %p : block<4xptr<f32>>", "no order"),
    ],
)
def test_what_does_not_verify(text: str, reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        verify(
            parse_kernel(
                f"""
                kernel @k(%x: block<2x8xf32>, %i: block<3x8xi32>, %p: block<4xptr<f32>>) {{
                  {text}
                  return
                }}
                """
            )
        )
