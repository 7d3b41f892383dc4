"""Packed tiles that programs share: found again in one launch, never across launches, never when written."""

from __future__ import annotations

import numpy as np
import pytest

from blocklang.codegen.memoise import FIND_TILE
from tests.codegen.kernels import product, square_in_place

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def multiply(a: Matrix, b: Matrix, BM: int = 16, BN: int = 16, BK: int = 16, **options: int) -> Matrix:
    (M, K), N = a.shape, b.shape[1]
    c = np.full((M + 1, N), np.nan, np.float32)
    product[(-(-M // BM), -(-N // BN))](a, b, c, M, N, K, BM, BN, BK, **options)
    assert np.isnan(c[M]).all()
    return c[:M]


def matrices(M: int, N: int, K: int, seed: int = 0) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((M, K)).astype(np.float32), rng.standard_normal((K, N)).astype(np.float32))


def is_right(found: Matrix, a: Matrix, b: Matrix) -> bool:
    expected = a.astype(np.float64) @ b.astype(np.float64)
    bound = 1e-6 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)) + 1e-12
    return bool((np.abs(found - expected) <= bound).all())


@pytest.mark.parametrize(("M", "N", "K"), [(1, 1, 1), (33, 65, 17), (128, 96, 200), (257, 130, 64)])
@pytest.mark.parametrize("threads", [1, 2])
def test_any_shape(M: int, N: int, K: int, threads: int) -> None:
    a, b = matrices(M, N, K)
    assert is_right(multiply(a, b, num_threads=threads), a, b)


def test_more_tiles_than_there_is_room_for() -> None:
    """Each of 1600 tiles of A is found by 3 programs; the table has room for 512 and starts over."""
    a, b = matrices(640, 48, 640, seed=1)
    assert is_right(multiply(a, b), a, b)


def test_tiles_that_never_come_back() -> None:
    """One column of programs: every tile of A is new, and after 512 the table closes."""
    a, b = matrices(4096, 16, 80, seed=2)
    assert is_right(multiply(a, b), a, b)


def test_contents_that_change_between_launches() -> None:
    a, b = matrices(64, 64, 64, seed=3)
    for factor in (1.0, -2.0, 3.0):
        a[:] *= factor
        b[5] = factor
        assert is_right(multiply(a, b), a, b)


def test_kernels_that_take_turns_in_one_arena() -> None:
    a, b = matrices(96, 96, 96, seed=4)
    for block in (16, 32, 16, 64, 32, 16):
        a += 1
        assert is_right(multiply(a, b, BM=block, BN=block, BK=block), a, b)


def test_arrays_of_one_launch_that_swap() -> None:
    a, b = matrices(64, 64, 64, seed=5)
    assert is_right(multiply(a, b), a, b)
    assert is_right(multiply(b, a), b, a)
    assert is_right(multiply(a, a), a, a)


def test_an_operand_that_is_written() -> None:
    a, _ = matrices(32, 32, 32, seed=6)
    expected = a.astype(np.float64) @ a
    square_in_place[(1,)](a, 32)
    np.testing.assert_allclose(a, expected, rtol=1e-4, atol=1e-4)


def test_output_that_overlaps_an_operand() -> None:
    """The second row of programs reads what the first has stored: the launch knows that they may meet."""
    n = 64
    memory = np.zeros(2 * n * n, np.float32)
    a, c = memory[: n * n].reshape(n, n), memory[n * n // 2 : n * n // 2 + n * n].reshape(n, n)
    rng = np.random.default_rng(7)
    a[:] = rng.standard_normal((n, n))
    b = rng.standard_normal((n, n)).astype(np.float32)
    expected = memory.copy()
    x, z = expected[: n * n].reshape(n, n), expected[n * n // 2 : n * n // 2 + n * n].reshape(n, n)
    for j in range(0, n, 16):  # programs in ascending order: axis 0 varies fastest
        for i in range(0, n, 16):
            z[i : i + 16, j : j + 16] = x[i : i + 16].astype(np.float64) @ b[:, j : j + 16]
    product[(4, 4)](a, b, c, n, n, n, 16, 16, 16, num_threads=1)
    np.testing.assert_allclose(memory, expected, rtol=1e-3, atol=1e-3)


def test_the_search_is_in_the_code() -> None:
    """What the tests above run is the shared form."""
    a, b = matrices(48, 48, 48)
    kernel = product.warmup(a, b, np.empty((48, 48), np.float32), 48, 48, 48, 16, 16, 16, grid=(3, 3))
    assert FIND_TILE.splitlines()[1] in kernel.llvm_ir
