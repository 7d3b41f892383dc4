"""Matrix product for any M, N and K, with blocks of the result spread over programs.

    python examples/matmul.py            # the cosine transform of a photograph, which is two matrix products
    python examples/matmul.py 1000 700 333

The kernel is written as one writes it for a GPU: grouped program ids, offsets wrapped by `%`, pointers that a
loop over K carries along, and a mask for its last step. Nothing in it is there for the CPU.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_sample_image

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import format_times, time_in_turns


@bl.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: bl.constexpr,
    BLOCK_N: bl.constexpr,
    BLOCK_K: bl.constexpr,
    GROUP_M: bl.constexpr,
):
    # Which block of C is ours? Programs with neighbouring ids run at about the same time. Walking down
    # GROUP_M rows of blocks before going one column to the right lets them share A and B in the cache.
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * blocks_n
    first_m = (pid // per_group) * GROUP_M
    group_m = min(blocks_m - first_m, GROUP_M)
    pid_m = first_m + (pid % per_group) % group_m
    pid_n = (pid % per_group) // group_m

    # Rows and columns past the end wrap around: they read valid memory, and what they compute is not stored.
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    cols = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        # K need not be a multiple of BLOCK_K: in the last step what lies past the end counts as 0.
        left = K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def launch(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Write a @ b into `c`: float32 arrays with any strides, transposed views included."""
    m, k = a.shape
    _, n = b.shape

    # A grid may be a function of the constants below, so that it follows when they change.
    def grid(constants: dict[str, int]) -> tuple[int]:
        return (bl.cdiv(m, constants["BLOCK_M"]) * bl.cdiv(n, constants["BLOCK_N"]),)

    matmul[grid](
        a, b, c, m, n, k, *bl.strides(a), *bl.strides(b), *bl.strides(c),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8,
    )  # fmt: skip


def check(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product a @ b, checked against NumPy in float64."""
    c = np.empty((a.shape[0], b.shape[1]), np.float32)
    launch(a, b, c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # Each element is a chain of K fused multiply-adds: its error is at most K roundings of the sum of |a||b|.
    bound = a.shape[1] * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    share = (np.abs(c - exact) / bound).max()
    print(f"matmul {a.shape} @ {b.shape}: largest error {share:.1%} of K roundings (allowed: 100%)")
    assert share <= 1
    return c


def cosine_basis(n: int) -> np.ndarray:
    """The orthonormal n x n matrix of the cosine transform (DCT-II)."""
    k, i = np.arange(n)[:, None], np.arange(n)
    basis = np.cos(np.pi * (2 * i + 1) * k / (2 * n)) * np.sqrt(2 / n)
    basis[0] = np.sqrt(1 / n)
    return basis.astype(np.float32)


def transform_photograph() -> tuple[np.ndarray, np.ndarray]:
    """Transform a grey photograph by rows and by columns; the operands of the first product."""
    grey = load_sample_image("china.jpg").mean(axis=2).astype(np.float32)
    height, width = grey.shape
    by_rows = cosine_basis(height)
    spectrum = check(check(by_rows, grey), cosine_basis(width).T)
    energy = np.sort((spectrum.astype(np.float64) ** 2).ravel())[::-1]
    share = energy[: energy.size // 20].sum() / energy.sum()
    print(f"5% of the {height}x{width} coefficients hold {share:.1%} of the picture's energy")
    return by_rows, grey


def main() -> None:
    if len(sys.argv) == 4:
        m, n, k = map(int, sys.argv[1:])
        random = np.random.default_rng(0)
        a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
        check(a, b)
    elif len(sys.argv) == 1:
        a, b = transform_photograph()
    else:
        sys.exit("usage: python examples/matmul.py [M N K]")

    c = np.empty((a.shape[0], b.shape[1]), np.float32)
    into = np.empty_like(c)
    times = time_in_turns({"blocklang": lambda: launch(a, b, c), "NumPy": lambda: np.matmul(a, b, out=into)})
    print(f"median times (blocklang with up to {bl.get_num_threads()} threads):")
    print(format_times(times))


if __name__ == "__main__":
    main()
