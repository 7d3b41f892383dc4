"""Scans and mapped functions: the published orders, and control flow in each lane, on IR."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import blocklang.ops  # noqa: F401 - declares the operations
from blocklang.diagnostics import VerifyError
from blocklang.interpreter import run_kernel
from blocklang.ir import parse_kernel, verify
from tests.interpreter.harness import Array

SCAN = """
kernel @scanned(%out: ptr<f32>, %x: ptr<f32>) {
  %i = arange start=0, end=LENGTH : block<LENGTHxi32>
  %p = offset %x, %i : block<LENGTHxptr<f32>>
  %a = load %p : block<LENGTHxf32>
  %s = reshape %a, shape=SHAPE : block<TYPExf32>
  %r = scan %s, axis=AXIS, reverse=REVERSE : block<TYPExf32> {
    (%l: f32, %e: f32):
    %h = constant value=0.5 : f32
    %m = mul %l, %h : f32
    %n = sub %m, %e : f32
    yield %n
  }
  %y = reshape %r, shape=[LENGTH] : block<LENGTHxf32>
  %q = offset %out, %i : block<LENGTHxptr<f32>>
  store %q, %y
  return
}
"""


def run_scan(x: Array, axis: int, reverse: bool) -> Array:
    words = {
        "LENGTH": str(x.size),
        "SHAPE": str(list(x.shape)),
        "TYPE": "x".join(map(str, x.shape)),
        "AXIS": str(axis),
        "REVERSE": str(reverse).lower(),
    }
    text = SCAN
    for word, value in words.items():
        text = text.replace(word, value)
    kernel = parse_kernel(text)
    verify(kernel)
    out = np.zeros(x.size, np.float32)
    run_kernel(kernel, [out, x.reshape(-1)], [1])
    return out.reshape(x.shape)


def combine(a: Any, b: Any) -> Any:
    return a * np.float32(0.5) - b


def by_groups(row: list[Any]) -> list[Any]:
    """The order of the documentation, step by step."""
    results: list[Any] = []
    for start in range(0, len(row), 16):
        t = row[start : start + 16]
        for d in (1, 2, 4, 8):
            t = [combine(t[i - d], t[i]) if i >= d else t[i] for i in range(len(t))]
        results += [combine(results[start - 1], x) for x in t] if start else t
    return results


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1,), 0), ((16,), 0), ((37,), 0), ((3, 40), 1), ((40, 3), 0), ((40, 1), 0), ((2, 3, 5), 1)],
)
def test_scans_have_the_published_order(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    actual = np.moveaxis(run_scan(x, axis, reverse), axis, -1).reshape(-1, shape[axis])
    rows = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
    grouped = all(n == 1 for n in shape[axis + 1 :])
    for row, scanned in zip(rows, actual, strict=True):
        ordered = list(row[::-1] if reverse else row)
        expected = by_groups(ordered) if grouped else list(itertools.accumulate(ordered, combine))
        assert scanned.tolist() == [float(v) for v in (expected[::-1] if reverse else expected)]


BUFFERS = """
placed @scanned(%out: ptr<i32>, %x: ptr<i32>) {
  %b = buffer : buffer<3x5xi32>
  %zero = constant value=0 : i64
  %three = constant value=3 : i64
  %five = constant value=5 : i64
  group %zero, %three {
    (%i: i64):
    lanes %zero, %five, width=4 {
      (%j: i64):
      %row = mul %i, %five : i64
      %at = add %row, %j : i64
      %p = offset %x, %at : ptr<i32>
      %v = load %p : i32
      write %b, %v, %i, %j
      yield
    }
    yield
  }
  scan_buffers %b, axis=0, reverse=true {
    (%l: i32, %r: i32):
    %s = sub %l, %r : i32
    yield %s
  }
  group %zero, %three {
    (%i2: i64):
    lanes %zero, %five, width=4 {
      (%j2: i64):
      %row2 = mul %i2, %five : i64
      %at2 = add %row2, %j2 : i64
      %q = offset %out, %at2 : ptr<i32>
      %w = read %b, %i2, %j2 : i32
      store %q, %w
      yield
    }
    yield
  }
  return
}
"""


def test_buffers_are_scanned_in_place() -> None:
    kernel = parse_kernel(BUFFERS)
    verify(kernel)
    x = np.arange(15, dtype=np.int32) ** 2
    out = np.zeros(15, np.int32)
    run_kernel(kernel, [out, x], [1])
    rows = x.reshape(3, 5)
    expected = [rows[2] - rows[1] - rows[0], rows[2] - rows[1], rows[2]]
    assert out.reshape(3, 5).tolist() == np.array(expected).tolist()


MAP = """
kernel @mapped(%out: ptr<i32>, %x: ptr<i32>) {
  %i = arange start=0, end=12 : block<12xi32>
  %p = offset %x, %i : block<12xptr<i32>>
  %a = load %p : block<12xi32>
  %r = map_elementwise %a, pack=2 : block<12xi32> {
    (%f: i32, %s: i32):
    %zero = constant value=0 : i32
    %one = constant value=1 : i32
    %rounds = for %zero, %f, %one, %s : i32 {
      (%k: i32, %c: i32):
      %d = add %c, %k : i32
      yield %d
    }
    %n = while %f : i32 {
      (%u: i32):
      %more = cmp %u, %s, predicate="gt" : i1
      condition %more, %u
    } {
      (%v: i32):
      %less = sub %v, %s : i32
      yield %less
    }
    yield %n, %rounds
  }
  %q = offset %out, %i : block<12xptr<i32>>
  store %q, %r
  return
}
"""


def test_every_call_goes_its_own_way() -> None:
    kernel = parse_kernel(MAP)
    verify(kernel)
    x = np.array([5, 2, 0, 3, 9, 4, 1, 1, 7, 7, 30, 7], np.int32)
    out = np.zeros(12, np.int32)
    run_kernel(kernel, [out, x], [1])
    expected: list[int] = []
    for first, second in x.reshape(-1, 2).tolist():
        n = first
        while n > second:
            n -= second
        expected += [n, second + sum(range(first))]
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pack=2", "pack=5", "5 does not divide"),
        ("(%f: i32, %s: i32):", "(%f: i32, %s: i32, %t: i32):", "takes `pack` elements"),
        ("yield %n, %rounds", "yield %n", "yields `pack` elements"),
        (
            "%zero = constant value=0 : i32",
            "store %out, %f\n    %zero = constant value=0 : i32",
            "and nothing else",
        ),
    ],
)
def test_maps_that_are_wrong(old: str, new: str, message: str) -> None:
    kernel = parse_kernel(MAP.replace(old, new))
    with pytest.raises(VerifyError, match=message):
        verify(kernel)


def test_scans_that_are_wrong() -> None:
    good = (
        SCAN.replace("LENGTH", "4").replace("SHAPE", "[4]").replace("TYPE", "4").replace("REVERSE", "false")
    )
    with pytest.raises(VerifyError, match="axis 1 is out of range"):
        verify(parse_kernel(good.replace("AXIS", "1")))
    with pytest.raises(VerifyError, match="one scalar per input"):
        verify(parse_kernel(good.replace("AXIS", "0").replace("yield %n", "yield %n, %n")))
