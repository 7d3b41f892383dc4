"""Whole kernels at Block IR level: vector add, softmax and matmul against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import blocklang.ops  # noqa: F401 - declares the operations
from blocklang.diagnostics import InterpreterError, LaunchError
from blocklang.interpreter import run_kernel
from blocklang.ir import Kernel, parse_kernel, verify

VECTOR_ADD = """
kernel @add(%out: ptr<f32>, %x: ptr<f32>, %y: ptr<f32>, %n: i32) {
  %pid = program_id axis=0 : i32
  %block = constant value=100 : i32
  %start = mul %pid, %block : i32
  %lane = arange start=0, end=100 : block<100xi32>
  %i = add %start, %lane : block<100xi32>
  %m = cmp %i, %n, predicate="lt" : block<100xi1>
  %px = offset %x, %i : block<100xptr<f32>>
  %py = offset %y, %i : block<100xptr<f32>>
  %po = offset %out, %i : block<100xptr<f32>>
  %a = load %px, mask=%m : block<100xf32>
  %b = load %py, mask=%m : block<100xf32>
  %c = add %a, %b : block<100xf32>
  store %po, %c, mask=%m
  return
}
"""

SOFTMAX = """
kernel @softmax(%out: ptr<f32>, %x: ptr<f32>, %n: i32, %stride: i32) {
  %row = program_id axis=0 : i32
  %lane = arange start=0, end=50 : block<50xi32>
  %m = cmp %lane, %n, predicate="lt" : block<50xi1>
  %base = mul %row, %stride : i32
  %i = add %base, %lane : block<50xi32>
  %px = offset %x, %i : block<50xptr<f32>>
  %pad = constant value=-inf : f32
  %v = load %px, mask=%m, other=%pad : block<50xf32>
  %max = reduce %v, combine="max", axis=0 : f32
  %d = sub %v, %max : block<50xf32>
  %e = exp %d : block<50xf32>
  %s = reduce %e, combine="sum", axis=0 : f32
  %y = div %e, %s : block<50xf32>
  %po = offset %out, %i : block<50xptr<f32>>
  store %po, %y, mask=%m
  return
}
"""

MATMUL = """
kernel @matmul(%c: ptr<f32>, %a: ptr<f32>, %b: ptr<f32>, %k: i32) {
  %zero = constant value=0 : i32
  %step = constant value=8 : i32
  %width = constant value=16 : i32
  %rows = arange start=0, end=12 : block<12xi32>
  %cols = arange start=0, end=16 : block<16xi32>
  %ks = arange start=0, end=8 : block<8xi32>
  %r1 = expand_dims %rows, axis=1 : block<12x1xi32>
  %c1 = expand_dims %cols, axis=0 : block<1x16xi32>
  %ka = expand_dims %ks, axis=0 : block<1x8xi32>
  %kb = expand_dims %ks, axis=1 : block<8x1xi32>
  %ra = mul %r1, %k : block<12x1xi32>
  %ra2 = broadcast %ra, shape=[12, 8] : block<12x8xi32>
  %ka2 = broadcast %ka, shape=[12, 8] : block<12x8xi32>
  %kb2 = broadcast %kb, shape=[8, 16] : block<8x16xi32>
  %cb2 = broadcast %c1, shape=[8, 16] : block<8x16xi32>
  %none = constant value=0.0 : block<12x16xf32>
  %acc = for %zero, %k, %step, %none : block<12x16xf32> {
    (%k0: i32, %part: block<12x16xf32>):
    %kk = add %ka2, %k0 : block<12x8xi32>
    %kl = add %kb2, %k0 : block<8x16xi32>
    %ma = cmp %kk, %k, predicate="lt" : block<12x8xi1>
    %mb = cmp %kl, %k, predicate="lt" : block<8x16xi1>
    %ia = add %ra2, %kk : block<12x8xi32>
    %row = mul %kl, %width : block<8x16xi32>
    %ib = add %row, %cb2 : block<8x16xi32>
    %pa = offset %a, %ia : block<12x8xptr<f32>>
    %pb = offset %b, %ib : block<8x16xptr<f32>>
    %va = load %pa, mask=%ma : block<12x8xf32>
    %vb = load %pb, mask=%mb : block<8x16xf32>
    %next = dot %va, %vb, %part : block<12x16xf32>
    yield %next
  }
  %ro = mul %r1, %width : block<12x1xi32>
  %ro2 = broadcast %ro, shape=[12, 16] : block<12x16xi32>
  %co2 = broadcast %c1, shape=[12, 16] : block<12x16xi32>
  %io = add %ro2, %co2 : block<12x16xi32>
  %po = offset %c, %io : block<12x16xptr<f32>>
  store %po, %acc
  return
}
"""


def parsed(text: str) -> Kernel:
    kernel = parse_kernel(text)
    verify(kernel)
    return kernel


def guarded(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """A copy inside a larger array, and that array: what is around must not change."""
    around = np.full(array.size + 64, 77, array.dtype)
    inner = around[32 : 32 + array.size].reshape(array.shape)
    inner[...] = array
    return inner, around


@pytest.mark.parametrize("n", [0, 1, 99, 100, 101, 250, 300])
def test_vector_add(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n), np.float32)
    out, around = guarded(np.zeros(n, np.float32))
    run_kernel(parsed(VECTOR_ADD), [out, x, y, n], [3])
    np.testing.assert_array_equal(out, x + y)
    assert (around[:32] == 77).all()
    assert (around[32 + n :] == 77).all()


def test_softmax_of_rows_with_a_stride() -> None:
    x = np.random.default_rng(0).standard_normal((5, 60)).astype(np.float32)
    out, around = guarded(np.full((5, 60), 5, np.float32))
    run_kernel(parsed(SOFTMAX), [out, x, 37, 60], (5,))
    wide = np.exp(x[:, :37].astype(np.float64))
    np.testing.assert_allclose(out[:, :37], wide / wide.sum(1, keepdims=True), rtol=1e-6)
    assert (out[:, 37:] == 5).all()
    assert (around[:32] == 77).all()


def test_softmax_of_rows_without_a_number() -> None:
    x = np.full((1, 50), -np.inf, np.float32)
    out = np.zeros((1, 50), np.float32)
    run_kernel(parsed(SOFTMAX), [out, x, 50, 50], [1])
    assert np.isnan(out).all()


@pytest.mark.parametrize("k", [1, 8, 13, 40])
def test_matmul_has_exactly_the_published_order(k: int) -> None:
    from tests.interpreter.reference import fma_chain

    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((12, k), np.float32), rng.standard_normal((k, 16), np.float32)
    c = np.empty((12, 16), np.float32)
    run_kernel(parsed(MATMUL), [c, a, b, k], [1])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-5)
    for i, j in ((0, 0), (5, 7), (11, 15)):
        assert c[i, j] == fma_chain(a[i], b[:, j], np.float32(0))


def test_programs_run_in_ascending_linear_id_with_axis_0_fastest() -> None:
    text = """
kernel @order(%out: ptr<i32>, %next: ptr<i32>) {
  %x = program_id axis=0 : i32
  %y = program_id axis=1 : i32
  %z = program_id axis=2 : i32
  %ten = constant value=10 : i32
  %one = constant value=1 : i32
  %zt = mul %z, %ten : i32
  %zy = add %zt, %y : i32
  %zyt = mul %zy, %ten : i32
  %id = add %zyt, %x : i32
  %n = load %next : i32
  %p = offset %out, %n : ptr<i32>
  store %p, %id
  %m = add %n, %one : i32
  store %next, %m
  return
}
"""
    out, count = np.zeros(12, np.int32), np.zeros((), np.int32)
    run_kernel(parsed(text), [out, count], (3, 2, 2))
    assert out.tolist() == [0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112]
    assert count == 12
    run_kernel(parsed(text), [out, count], (3, 2, 0))
    assert count == 12


def test_chosen_programs() -> None:
    out, x = np.zeros(300, np.float32), np.ones(300, np.float32)
    run_kernel(parsed(VECTOR_ADD), [out, x, x, 300], [3], programs=[1])
    assert out.tolist() == [0.0] * 100 + [2.0] * 100 + [0.0] * 100


def test_an_access_outside_of_every_array_is_an_error_that_says_which_lane() -> None:
    x = np.ones(150, np.float32)
    out = np.zeros(200, np.float32)
    with pytest.raises(
        InterpreterError, match=r"load out of bounds, lane \[50\]: element offset 150 .*'x'|'y'"
    ):
        run_kernel(parsed(VECTOR_ADD), [out, x, x, 200], [2])
    with pytest.raises(InterpreterError, match="store out of bounds"):
        run_kernel(parsed(VECTOR_ADD), [out[:150], *np.ones((2, 200), np.float32), 200], [2])


def test_a_store_to_a_read_only_array_is_an_error() -> None:
    out = np.zeros(100, np.float32)
    out.flags.writeable = False
    x = np.ones(100, np.float32)
    with pytest.raises(InterpreterError, match=r"'out' .* is read-only"):
        run_kernel(parsed(VECTOR_ADD), [out, x, x, 100], [1])
    assert not out.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 2), "takes 4 arguments"),
        ((np.zeros(3), np.zeros(3), np.zeros(3), 1), "must be an array of f32"),
        ((1, 2, 3, 4), "must be an array for a ptr<f32>"),
        ((*np.zeros((3, 4), np.float32), 1 << 40), "out of the range of i32"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        run_kernel(parsed(VECTOR_ADD), arguments, [1])


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (-1,)])
def test_grids_that_do_not_fit(grid: tuple[int, ...]) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(LaunchError, match="one to three extents"):
        run_kernel(parsed(VECTOR_ADD), [x, x, x, 4], grid)
