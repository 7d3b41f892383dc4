"""Kernels with `autotune` and `heuristics` as programs have them: hooks, pruning, values kept and reset."""

# mypy: ignore-errors
from __future__ import annotations

import time

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, in_both_modes, normal


def bench(call, quantiles):
    """Three launches, the median, the fastest and the slowest."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[1], min(times), max(times)


def early_prune(configs, named_args, **kwargs):
    """No blocks far larger than the problem."""
    kept = [c for c in configs if c.kwargs["BLOCK_M"] <= max(16, 2 * named_args["M"])]
    return kept or configs[:1]


def modelled_time(BLOCK_M, BLOCK_N, BLOCK_K, num_warps, **kwargs):
    return 1 / (BLOCK_M * BLOCK_N * BLOCK_K)


@triton.jit
def leaky_relu(x, slope):
    return tl.where(x >= 0, x, slope * x)


@triton.jit
def matmul_source(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr, EVEN_K: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    pid_z = tl.program_id(1)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_in_group = GROUP_M * num_pid_n
    group = pid // num_in_group
    first_m = group * GROUP_M
    group_m = min(num_pid_m - first_m, GROUP_M)
    pid_m = first_m + (pid % num_in_group) % group_m
    pid_n = (pid % num_in_group) // group_m
    tl.assume(pid_m >= 0)
    tl.assume(pid_n >= 0)

    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = pid_z * BLOCK_K + tl.arange(0, BLOCK_K)
    a = a_ptr + (ram[:, None] * stride_am + rk[None, :] * stride_ak)
    b = b_ptr + (rk[:, None] * stride_bk + rbn[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K * SPLIT_K)):
        if EVEN_K:
            a_block = tl.load(a)
            b_block = tl.load(b)
        else:
            left = K - k * (BLOCK_K * SPLIT_K)
            a_block = tl.load(a, mask=rk[None, :] < left, other=0.0)
            b_block = tl.load(b, mask=rk[:, None] < left, other=0.0)
        acc += tl.dot(a_block, b_block, input_precision="ieee")
        a += BLOCK_K * SPLIT_K * stride_ak
        b += BLOCK_K * SPLIT_K * stride_bk
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc, 0.01)
    acc = acc.to(c_ptr.dtype.element_ty)
    c = c_ptr + stride_cm * rm[:, None] + stride_cn * rn[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(c, acc, mask=mask)
    else:
        tl.atomic_add(c, acc, mask=mask)


def tuned_matmul(kernel, split):
    configs = [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 16, "GROUP_M": 2, "SPLIT_K": split}, num_stages=s
        )
        for m, n, s in ((16, 16, 2), (32, 16, 3), (256, 64, 3))
    ]
    tune = triton.autotune(
        configs=configs,
        key=["M", "N", "K"],
        prune_configs_by={"early_config_prune": early_prune, "perf_model": modelled_time, "top_k": 2},
        reset_to_zero=["c_ptr"] if split > 1 else None,
        do_bench=bench,
    )
    heuristics = triton.heuristics(
        {"EVEN_K": lambda args: args["K"] % (args["BLOCK_K"] * args["SPLIT_K"]) == 0}
    )
    return tune(heuristics(kernel))


@pytest.mark.parametrize("activation", ["", "leaky_relu"])
@pytest.mark.parametrize("sizes", [(40, 24, 32), (17, 33, 50)])
def test_matmul(sizes, activation):
    M, N, K = sizes
    a, b = normal(1, M, K, dtype="fp16"), np.ascontiguousarray(normal(2, N, K, dtype="fp16")).T
    tuned = tuned_matmul(matmul_source, 1)
    c = np.full((M, N), np.nan, np.float16)
    strides = [s // x.itemsize for x in (a, b, c) for s in x.strides]
    for _ in range(2):
        tuned[
            lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]), meta["SPLIT_K"])
        ](a, b, c, M, N, K, *strides, ACTIVATION=activation)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    close(c, np.where((expected >= 0) | (not activation), expected, 0.01 * expected), "fp16")
    assert len(tuned.cache) == 1
    assert tuned.best_config.kwargs["BLOCK_M"] <= 2 * M


@pytest.mark.parametrize("sizes", [(40, 24, 64), (17, 33, 50)])
def test_split_sums_are_reset_between_trials(sizes):
    M, N, K = sizes
    a, b = normal(1, M, K), normal(2, K, N)
    tuned = tuned_matmul(matmul_source, 2)
    c = np.zeros((M, N), np.float32)
    strides = [s // x.itemsize for x in (a, b, c) for s in x.strides]
    tuned[lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]), meta["SPLIT_K"])](
        a, b, c, M, N, K, *strides, ACTIVATION=""
    )
    close(c, a.astype(np.float64) @ b.astype(np.float64))


def test_both_modes():
    a, b = normal(1, 17, 21, dtype="bf16"), normal(2, 21, 19, dtype="bf16")

    def launch(mode):
        c = np.full((17, 19), np.nan, np.float32)
        strides = [s // x.itemsize for x in (a, b, c) for s in x.strides]
        blocks = {"BLOCK_M": 16, "BLOCK_N": 8, "BLOCK_K": 8, "GROUP_M": 2}
        mode(matmul_source)[(6, 1)](
            a, b, c, 17, 19, 21, *strides, **blocks, SPLIT_K=1, EVEN_K=False, ACTIVATION="leaky_relu"
        )
        return (c,)

    in_both_modes(launch)


@triton.jit
def step_source(p_ptr, g_ptr, counter_ptr, n, lr, BLOCK: tl.constexpr, IS_EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if IS_EVEN else i < n
    p = tl.load(p_ptr + i, mask=mask)
    tl.store(p_ptr + i, p - lr * tl.load(g_ptr + i, mask=mask), mask=mask)
    if tl.program_id(0) == 0:
        tl.atomic_add(counter_ptr, 1)


@pytest.mark.parametrize("n", [100, 128])
def test_values_in_place_are_restored_and_hooks_run(n):
    seen = []

    def pre_hook(args):
        seen.append(args["BLOCK"])
        args["counter_ptr"][:] = 0

    tuned = triton.autotune(
        configs=[triton.Config({"BLOCK": b}, pre_hook=pre_hook) for b in (32, 64, 128)],
        key=["n"], restore_value=["p_ptr"], do_bench=bench,
    )(triton.heuristics({"IS_EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(step_source))  # fmt: skip
    p, g, counter = normal(1, n), normal(2, n), np.zeros(1, np.int32)
    expected = p.astype(np.float64) - 0.5 * g.astype(np.float64)
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](p, g, counter, n, 0.5)
    close(p, expected)
    assert counter[0] == 1
    assert set(seen) == {32, 64, 128}
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](p, g, counter, n, 0.5)
    close(p, expected - 0.5 * g)
    assert seen[-1] == tuned.best_config.kwargs["BLOCK"]
