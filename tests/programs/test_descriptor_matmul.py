"""Matrix products over tensor descriptors: made in the kernel, made by the host, and tuned."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.triton.tools.tensor_descriptor import TensorDescriptor
from tests.programs.running import assert_close, compiled, in_both_modes


@triton.jit
def _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M):
    group_id = tile_id // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + (tile_id % group_size_m)
    pid_n = (tile_id % num_pid_in_group) // group_size_m
    return pid_m, pid_n


@triton.jit
def matmul_kernel_tma(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """B lies transposed. The descriptors come from the host."""
    dtype = c_desc.dtype
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m, pid_n = _compute_pid(pid, GROUP_SIZE_M * num_pid_n, num_pid_m, GROUP_SIZE_M)
    k_tiles = tl.cdiv(K, BLOCK_SIZE_K)
    offs_am = pid_m * BLOCK_SIZE_M
    offs_bn = pid_n * BLOCK_SIZE_N
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in tl.range(k_tiles, warp_specialize=WARP_SPECIALIZE):
        offs_k = k * BLOCK_SIZE_K
        a = a_desc.load([offs_am, offs_k])
        b = b_desc.load([offs_bn, offs_k])
        accumulator = tl.dot(a, b.T, accumulator)
    c = accumulator.to(dtype)
    c_desc.store([pid_m * BLOCK_SIZE_M, pid_n * BLOCK_SIZE_N], c)


@triton.jit
def matmul_kernel_descriptor_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr, EPILOGUE_SUBTILE: tl.constexpr, NUM_SMS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """B lies transposed. The descriptors are made here; the result may be stored in two halves."""
    dtype = c_ptr.dtype.element_ty
    start_pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    k_tiles = tl.cdiv(K, BLOCK_SIZE_K)
    num_tiles = num_pid_m * num_pid_n
    a_desc = tl.make_tensor_descriptor(
        a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_SIZE_M, BLOCK_SIZE_K]
    )
    b_desc = tl.make_tensor_descriptor(
        b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_SIZE_N, BLOCK_SIZE_K]
    )
    c_desc = tl.make_tensor_descriptor(
        c_ptr,
        shape=[M, N],
        strides=[N, 1],
        block_shape=[BLOCK_SIZE_M, BLOCK_SIZE_N if not EPILOGUE_SUBTILE else BLOCK_SIZE_N // 2],
    )
    tile_id_c = start_pid - NUM_SMS
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS, flatten=FLATTEN):
        pid_m, pid_n = _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
        offs_am = pid_m * BLOCK_SIZE_M
        offs_bn = pid_n * BLOCK_SIZE_N
        accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
        for ki in range(k_tiles):
            offs_k = ki * BLOCK_SIZE_K
            a = a_desc.load([offs_am, offs_k])
            b = b_desc.load([offs_bn, offs_k])
            accumulator = tl.dot(a, b.T, accumulator)
        tile_id_c += NUM_SMS
        pid_m, pid_n = _compute_pid(tile_id_c, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
        offs_cm = pid_m * BLOCK_SIZE_M
        offs_cn = pid_n * BLOCK_SIZE_N
        if EPILOGUE_SUBTILE:
            acc = tl.reshape(accumulator, (BLOCK_SIZE_M, 2, BLOCK_SIZE_N // 2))
            acc = tl.permute(acc, (0, 2, 1))
            acc0, acc1 = tl.split(acc)
            c0 = acc0.to(dtype)
            c_desc.store([offs_cm, offs_cn], c0)
            c1 = acc1.to(dtype)
            c_desc.store([offs_cm, offs_cn + BLOCK_SIZE_N // 2], c1)
        else:
            c_desc.store([offs_cm, offs_cn], accumulator.to(dtype))


def set_block_sizes(nargs):
    tall, wide, deep = nargs["BLOCK_SIZE_M"], nargs["BLOCK_SIZE_N"], nargs["BLOCK_SIZE_K"]
    nargs["a_desc"].block_shape = [tall, deep]
    nargs["b_desc"].block_shape = [wide, deep]
    nargs["c_desc"].block_shape = [tall, wide]


def configs(hook, **more):
    return [
        triton.Config(
            {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 8, **more},
            num_stages=s,
            num_warps=w,
            pre_hook=hook,
        )
        for m, n, k, s, w in [(32, 32, 16, 2, 4), (16, 64, 32, 3, 8), (64, 16, 16, 4, 4)]
    ]


def run_from_host(mode, a, b, tuned):
    (m, k), n = a.shape, b.shape[0]
    c = np.full((m, n), 7, a.dtype)
    dummy_block = [1, 1]
    a_desc, b_desc, c_desc = (TensorDescriptor(x, x.shape, [x.shape[1], 1], dummy_block) for x in (a, b, c))
    kernel = triton.autotune(configs=configs(set_block_sizes)[: 3 if tuned else 1], key=["M", "N", "K"])(
        mode(matmul_kernel_tma)
    )

    def grid(META):
        return (triton.cdiv(m, META["BLOCK_SIZE_M"]) * triton.cdiv(n, META["BLOCK_SIZE_N"]),)

    kernel[grid](a_desc, b_desc, c_desc, m, n, k, WARP_SPECIALIZE=False)
    return (c,)


def run_persistent(mode, a, b, programs, subtile):
    (m, k), n = a.shape, b.shape[0]
    c = np.full((m, n), 7, a.dtype)
    triton.set_allocator(lambda size, alignment, stream: np.empty(size, np.int8))

    def grid(META):
        tiles = triton.cdiv(m, META["BLOCK_SIZE_M"]) * triton.cdiv(n, META["BLOCK_SIZE_N"])
        return (min(programs, tiles),)

    mode(matmul_kernel_descriptor_persistent)[grid](
        a, b, c, m, n, k, BLOCK_SIZE_M=32, BLOCK_SIZE_N=32, BLOCK_SIZE_K=16, GROUP_SIZE_M=2,
        EPILOGUE_SUBTILE=subtile, NUM_SMS=programs, FLATTEN=True,
    )  # fmt: skip
    return (c,)


def numbers(*shape, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


TOLERANCES = {np.dtype(np.float16): 1e-3, np.dtype(np.float32): 1e-5}
SIZES = [(40, 56, 24), (64, 32, 32), (33, 48, 40)]  # rows of 16 bytes, as descriptors want them


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("size", SIZES)
def test_descriptors_from_the_host(dtype, size):
    m, n, k = size
    a, b = numbers(m, k, dtype=dtype), numbers(n, k, dtype=dtype, seed=1)
    (c,) = in_both_modes(run_from_host, a, b, False)
    assert_close(c, a.astype(np.float64) @ b.T.astype(np.float64), TOLERANCES[c.dtype])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_descriptors_from_the_host_tuned(dtype):
    a, b = numbers(72, 40, dtype=dtype), numbers(48, 40, dtype=dtype, seed=1)
    (tuned,) = run_from_host(compiled, a, b, True)
    (single,) = run_from_host(compiled, a, b, False)
    assert_close(tuned, a.astype(np.float64) @ b.T.astype(np.float64), TOLERANCES[a.dtype])
    assert (tuned == single).all()  # the order along K does not depend on the block


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("subtile", [True, False])
def test_descriptors_made_in_the_kernel(dtype, size, subtile):
    m, n, k = size
    a, b = numbers(m, k, dtype=dtype), numbers(n, k, dtype=dtype, seed=1)
    (c,) = in_both_modes(run_persistent, a, b, 3, subtile)
    assert_close(c, a.astype(np.float64) @ b.T.astype(np.float64), TOLERANCES[c.dtype])
