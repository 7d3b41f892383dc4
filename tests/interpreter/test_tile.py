"""Tile IR: abstract and placed forms of small kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang.ops  # noqa: F401 - declares the operations
from blocklang.diagnostics import InterpreterError
from blocklang.interpreter import run_kernel
from blocklang.interpreter.buffers import Buffer, unwritten
from blocklang.ir import Kernel, parse_kernel, verify
from blocklang.ir.types import F32, BufferType
from tests.interpreter.harness import Array, assert_same_bits
from tests.interpreter.reference import fma_chain
from tests.interpreter.test_reduction import BRANCHING, ordered_sum, tree


def parsed(text: str) -> Kernel:
    kernel = parse_kernel(text)
    verify(kernel)
    return kernel


ABSTRACT = """
tile @t(%out: ptr<f32>, %x: ptr<f32>, %best: ptr<i32>, %n: i32) {
  %v = iterate space=[40, 3] : block<40x3xf32> {
    (%i: i64, %j: i64):
    %three = constant value=3 : i64
    %a = mul %i, %three : i64
    %b = add %a, %j : i64
    %c = cast %b : i32
    %m = cmp %c, %n, predicate="lt" : i1
    %p = offset %x, %c : ptr<f32>
    %l = load %p, mask=%m : f32
    yield %l
  }
  %w = iterate %v, space=[3, 40], maps=[map<2: d1, d0>] : block<3x40xf32> {
    (%i1: i64, %j1: i64, %x1: f32):
    %d = neg %x1 : f32
    yield %d
  }
  %s = iterate %w, space=[3, 40], maps=[map<2: d0, d1>], combine="sum", reduced=1 : block<3xf32> {
    (%i2: i64, %j2: i64, %x2: f32):
    yield %x2
  }
  %r = iterate %v, space=[120], maps=[map<1: d0 // 3, d0 % 3>], combine="max", reduced=0 : f32 {
    (%i3: i64, %x3: f32):
    yield %x3
  }
  %av, %ai = iterate %v, space=[40, 3], maps=[map<2: d0, d1>], combine="argmin", reduced=0 :
      block<3xf32>, block<3xi32> {
    (%i4: i64, %j4: i64, %x4: f32):
    %k4 = cast %i4 : i32
    yield %x4, %k4
  }
  %f = iterate %v, space=[40, 3], maps=[map<2: d0, d1>], combine="custom", reduced=0 : block<3xf32> {
    (%i5: i64, %j5: i64, %x5: f32):
    yield %x5
  } {
    (%l6: f32, %r6: f32):
    %t6 = sub %l6, %r6 : f32
    yield %t6
  }
  iterate %s, %f, %av, %ai, space=[3], maps=[map<1: d0>, map<1: d0>, map<1: d0>, map<1: d0>] {
    (%i7: i64, %s7: f32, %f7: f32, %v7: f32, %k7: i32):
    %five = constant value=3 : i64
    %ten = constant value=6 : i64
    %nine = constant value=9 : i64
    %zero = constant value=0 : i64
    %p7 = offset %out, %i7 : ptr<f32>
    store %p7, %s7
    %q7 = offset %p7, %five : ptr<f32>
    store %q7, %f7
    %u7 = offset %p7, %ten : ptr<f32>
    store %u7, %v7
    %b7 = offset %best, %i7 : ptr<i32>
    store %b7, %k7
    %first = cmp %i7, %zero, predicate="eq" : i1
    %z7 = offset %out, %nine : ptr<f32>
    store %z7, %r, mask=%first
    yield
  }
  return
}
"""


def test_iterations() -> None:
    x = np.random.default_rng(0).standard_normal(120, np.float32)
    out, best = np.zeros(10, np.float32), np.zeros(3, np.int32)
    run_kernel(parsed(ABSTRACT), [out, x, best, 100], [1])
    x[100:] = 0
    block = x.reshape(40, 3)
    assert_same_bits(out[:3], np.array([ordered_sum(-block[:, j], True) for j in range(3)], np.float32))
    assert out[3:6].tolist() == [float(tree(list(block[:, j]), lambda a, b: a - b)) for j in range(3)]
    assert out[6:9].tolist() == block.min(0).tolist()
    assert out[9] == x.max()
    assert best.tolist() == block.argmin(0).tolist()


LANES = """
placed @t(%out: ptr<f32>, %x: ptr<f32>, %n: i64) {
  %zero = constant value=0 : i64
  %cols = constant value=50 : i64
  %rows = constant value=4 : i64
  %pad = constant value=PAD : f32
  %ipad = constant value=50 : i32
  %buf = buffer space="scratch", offset=64 : buffer<4x50xf32>
  %flat = view %buf : buffer<200xf32>
  group %zero, %rows {
    (%r: i64):
    %base = mul %r, %cols : i64
    lanes %zero, %n, width=8 {
      (%i: i64):
      %k = add %base, %i : i64
      %p = offset %x, %k : ptr<f32>
      %v = load %p : f32
      write %buf, %v, %r, %i
      yield
    }
    %s, %m, %a, %ai = lanes %zero, %n, pads=%pad, width=32, extent=50 : f32, f32, f32, i32 {
      (%i2: i64):
      %k2 = add %base, %i2 : i64
      %v2 = read %flat, %k2 : f32
      %c2 = cast %i2 : i32
      yield %v2, %v2, %v2, %c2
    }
    %q = offset %out, %r : ptr<f32>
    store %q, %s
    %q1 = offset %q, %rows : ptr<f32>
    store %q1, %m
    %q2 = offset %q1, %rows : ptr<f32>
    store %q2, %a
    %q3 = offset %q2, %rows : ptr<f32>
    %f = cast %ai : f32
    store %q3, %f
    yield
  }
  return
}
"""
LANES = LANES.replace(
    "pads=%pad, width=32, extent=50",
    '%pad, %pad, %pad, %ipad, width=32, combines=["sum", "max", "argmax"], extent=50',
)


@pytest.mark.parametrize("n", [1, 32, 33, 50])
@pytest.mark.parametrize("pad", [0.0, -3.0, 9.0])
def test_folded_lanes_see_the_padding(n: int, pad: float) -> None:
    x = np.random.default_rng(n).standard_normal((4, 50), np.float32)
    out = np.zeros((4, 4), np.float32)
    run_kernel(parsed(LANES.replace("PAD", str(pad))), [out, x, n], [1])
    x[:, n:] = pad
    assert_same_bits(out[0], np.array([ordered_sum(row, True) for row in x], np.float32))
    assert out[1].tolist() == x.max(1).tolist()
    assert out[2].tolist() == x.max(1).tolist()
    first = x.argmax(1)
    assert out[3].tolist() == np.where(first >= n, 50, first).tolist()


def test_no_lanes_fold_to_the_neutral_element() -> None:
    text = """
placed @t(%out: ptr<f32>, %n: i64) {
  %zero = constant value=0 : i64
  %s, %m, %x = lanes %zero, %n, width=8, combines=["sum", "max", "and"] : f32, f32, i32 {
    (%i: i64):
    %v = cast %i : f32
    %w = cast %i : i32
    yield %v, %v, %w
  }
  %one = constant value=1 : i64
  %two = constant value=2 : i64
  store %out, %s
  %p = offset %out, %one : ptr<f32>
  store %p, %m
  %q = offset %out, %two : ptr<f32>
  %y = cast %x : f32
  store %q, %y
  return
}
"""
    out = np.zeros(3, np.float32)
    run_kernel(parsed(text), [out, 0], [1])
    assert out[0] == 0
    assert np.isnan(out[1])
    assert out[2] == -1


def test_lanes_that_hold_lanes_run_one_by_one() -> None:
    text = """
placed @t(%out: ptr<i32>) {
  %zero = constant value=0 : i64
  %n = constant value=5 : i64
  lanes %zero, %n, width=4 {
    (%i: i64):
    %s = lanes %zero, %i, width=4, combines=["sum"] : i32 {
      (%j: i64):
      %v = cast %j : i32
      yield %v
    }
    %p = offset %out, %i : ptr<i32>
    store %p, %s
    yield
  }
  return
}
"""
    out = np.zeros(5, np.int32)
    run_kernel(parsed(text), [out], [1])
    assert out.tolist() == [0, 0, 1, 3, 6]


def test_control_flow_per_lane_in_lanes() -> None:
    """Collatz steps: a while that lanes leave one by one, and an if that touches memory for some lanes."""
    text = """
placed @t(%out: ptr<i32>, %x: ptr<i32>, %n: i64) {
  %zero = constant value=0 : i64
  %low = constant value=2 : i64
  %high = constant value=20 : i64
  lanes %zero, %n, width=8 {
    (%i: i64):
    %in = in_bounds %i, %low, %high : i1
    %p = offset %x, %i : ptr<i32>
    %q = offset %out, %i : ptr<i32>
    if %in {
      %one = constant value=1 : i32
      %two = constant value=2 : i32
      %three = constant value=3 : i32
      %none = constant value=0 : i32
      %v = load %p : i32
      %end, %steps = while %v, %none : i32, i32 {
        (%c: i32, %k: i32):
        %more = cmp %c, %one, predicate="gt" : i1
        condition %more, %c, %k
      } {
        (%c1: i32, %k1: i32):
        %odd = rem %c1, %two : i32
        %is = cmp %odd, %one, predicate="eq" : i1
        %next = if %is : i32 {
          %t = mul %c1, %three : i32
          %t1 = add %t, %one : i32
          yield %t1
        } {
          %h = idiv %c1, %two : i32
          yield %h
        }
        %k2 = add %k1, %one : i32
        yield %next, %k2
      }
      store %q, %steps
      yield
    }
    yield
  }
  return
}
"""
    x = np.arange(1, 25, dtype=np.int32)
    out = np.full(24, -7, np.int32)
    # Lanes outside of [2, 20) touch nothing: the arrays need not reach so far.
    run_kernel(parsed(text), [out[:20], x[:20], 24], [1])

    def steps(value: int) -> int:
        count = 0
        while value > 1:
            value, count = (value * 3 + 1 if value % 2 else value // 2), count + 1
        return count

    assert out.tolist() == [-7] * 2 + [steps(int(v)) for v in x[2:20]] + [-7] * 4


CONTRACT = """
placed @t(%out: ptr<f32>, %x: ptr<f32>, %y: ptr<f32>) {
  %zero = constant value=0 : i64
  %m = constant value=5 : i64
  %k = constant value=7 : i64
  %n = constant value=10 : i64
  %half = constant value=0.5 : f32
  %a = buffer offset=0 : buffer<5x7xf32>
  %b = buffer offset=192, panel=4 : buffer<7x10xf32>
  %acc = buffer space="accumulator", offset=0 : buffer<5x10xf32>
  group %zero, %m {
    (%i: i64):
    lanes %zero, %k, width=8 {
      (%j: i64):
      %r = mul %i, %k : i64
      %e = add %r, %j : i64
      %p = offset %x, %e : ptr<f32>
      %v = load %p : f32
      write %a, %v, %i, %j
      yield
    }
    lanes %zero, %n, width=8 {
      (%j2: i64):
      write %acc, %half, %i, %j2
      yield
    }
    yield
  }
  group %zero, %k {
    (%i3: i64):
    lanes %zero, %n, width=8 {
      (%j3: i64):
      %r3 = mul %i3, %n : i64
      %e3 = add %r3, %j3 : i64
      %p3 = offset %y, %e3 : ptr<f32>
      %v3 = load %p3 : f32
      write %b, %v3, %i3, %j3
      yield
    }
    yield
  }
  contract_buffers %a, %b, %acc, rows=6, columns=16, start="START"
  group %zero, %m {
    (%i4: i64):
    lanes %zero, %n, width=8 {
      (%j4: i64):
      %r4 = mul %i4, %n : i64
      %e4 = add %r4, %j4 : i64
      %p4 = offset %out, %e4 : ptr<f32>
      %v4 = read %acc, %i4, %j4 : f32
      store %p4, %v4
      yield
    }
    yield
  }
  return
}
"""


@pytest.mark.parametrize("start", ["acc", "add"])
def test_contractions_of_buffers(start: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 7), np.float32), rng.standard_normal((7, 10), np.float32)
    out = np.zeros((5, 10), np.float32)
    run_kernel(parsed(CONTRACT.replace("START", start)), [out, x, y], [1])
    first = np.float32(0.5 if start == "acc" else 0.0)
    last = np.float32(0.5 if start == "add" else 0.0)
    expected = [[fma_chain(x[i], y[:, j], first) + last for j in range(10)] for i in range(5)]
    assert_same_bits(out, np.array(expected, np.float32))


def test_tree_reduce_uses_up_its_buffers() -> None:
    text = """
placed @t(%out: ptr<f32>, %x: ptr<f32>) {
  %zero = constant value=0 : i64
  %n = constant value=11 : i64
  %one = constant value=1 : i64
  %b = buffer : buffer<16xf32>
  lanes %zero, %n, width=8 {
    (%i: i64):
    %p = offset %x, %i : ptr<f32>
    %v = load %p : f32
    write %b, %v, %i
    yield
  }
  %r = tree_reduce %b, extent=11 : f32 {
    (%l: f32, %m: f32):
    %t = sub %l, %m : f32
    yield %t
  }
  store %out, %r
  %w = read %b, %zero : f32
  %q = offset %out, %one : ptr<f32>
  store %q, %w
  return
}
"""
    x, out = np.random.default_rng(0).standard_normal(11, np.float32), np.zeros(2, np.float32)
    run_kernel(parsed(text), [out, x], [1])
    assert out[0] == tree(list(x), lambda a, b: a - b)
    assert np.isnan(out[1])


def test_buffers_with_one_offset_share_their_bytes() -> None:
    text = """
placed @t(%out: ptr<f32>) {
  %zero = constant value=0 : i64
  %a = buffer offset=4 : buffer<2xf32>
  %b = buffer offset=4 : buffer<1xf32>
  %v = constant value=2.5 : f32
  write %b, %v, %zero
  %w = read %a, %zero : f32
  store %out, %w
  return
}
"""
    out = np.zeros(1, np.float32)
    run_kernel(parsed(text), [out], [1])
    assert out[0] == 2.5


def test_an_index_outside_of_a_buffer_is_an_error() -> None:
    text = """
placed @t(%out: ptr<f32>) {
  %two = constant value=2 : i64
  %a = buffer : buffer<2xf32>
  %w = read %a, %two : f32
  store %out, %w
  return
}
"""
    with pytest.raises(InterpreterError, match="an index is outside of buffer<2xf32>"):
        run_kernel(parsed(text), [np.zeros(1, np.float32)], [1])


def test_panels_are_the_same_matrix_elsewhere() -> None:
    type_ = BufferType(F32, (3, 5))
    plain = Buffer(unwritten(60), type_)
    panels = Buffer(unwritten(3 * 8 * 4), type_, panel=4)
    value: Array = np.arange(15, dtype=np.float32).reshape(3, 5)
    plain.set_matrix(value)
    panels.set_matrix(value)
    assert panels.matrix().tolist() == plain.matrix().tolist() == value.tolist()
    where: list[Any] = [np.array([2]), np.array([4])]
    assert panels.read(where, None).tolist() == [14.0]
    assert panels.elements[(4 // 4) * 3 * 4 + 2 * 4 + 4 % 4] == 14.0


def test_lowering_keeps_a_users_combine_function() -> None:
    """The same kernel at Block IR and Tile IR level."""
    from blocklang.passes.lower_to_tile import lower_to_tile

    x = np.random.default_rng(4).integers(0, 50, 30, np.int32)
    block, tile = np.zeros(3, np.int32), np.zeros(3, np.int32)
    run_kernel(parsed(BRANCHING), [block, x], [1])
    kernel = parsed(BRANCHING)
    lower_to_tile(kernel)
    run_kernel(kernel, [tile, x], [1])
    assert tile.tolist() == block.tolist()
