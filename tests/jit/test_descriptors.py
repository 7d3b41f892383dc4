"""`TensorDescriptor` as an argument: compiled and interpreted, specialised, refused."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang import LaunchError, TensorDescriptor


def product(a, b, c, K, BK: bl.constexpr):
    i, j = tl.program_id(0) * a.block_shape[0], tl.program_id(1) * b.block_shape[1]
    total = tl.zeros((a.block_shape[0], b.block_shape[1]), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total)


def shift(x, out, scale, at):
    tl.static_assert(isinstance(x, tl.tensor_descriptor))
    out.store([0], x.load([at]) * scale)


def facts(x, out):
    tl.store(out, x.shape[0])
    tl.store(out + 1, x.shape[1])
    tl.store(out + 2, x.strides[0])
    tl.store(out + 3, x.strides[1])
    tl.static_assert(x.dtype == tl.float16)


def either(x, out, use_first):
    value = tl.zeros([8], tl.float32)
    if use_first:
        value = x.load([0])
    out.store([2], value)


def count(x, out):
    row = tl.program_id(0) % 2
    out.atomic_add([row - 1, 0], x.load([0, 0]))
    out.atomic_max([0, 4], 7 * (x.load([0, 0]) > 1).to(tl.int32))


BOTH = pytest.mark.parametrize("interpret", [False, True])


@BOTH
def test_a_matrix_product(interpret: bool) -> None:
    kernel = bl.jit(interpret=interpret)(product)
    random = np.random.default_rng(1)
    a, b = (random.integers(-3, 4, s).astype(np.float32) for s in ((50, 70), (70, 33)))
    c = np.zeros((50, 33), np.float32)
    ends = [TensorDescriptor.from_tensor(x, s) for x, s in ((a, [16, 16]), (b, [16, 8]), (c, [16, 8]))]
    for _ in range(1 if interpret else 40):  # cold and warm
        kernel[(4, 5)](*ends, 70, BK=16)
        assert (c == a @ b).all()
        c[...] = 0


@BOTH
def test_padding_and_views(interpret: bool) -> None:
    kernel = bl.jit(interpret=interpret)(shift)
    x, out = np.arange(10, dtype=np.float32), np.zeros(8, np.float32)
    to = TensorDescriptor.from_tensor(out, [8])
    kernel[1](TensorDescriptor.from_tensor(x[3:], [8], padding="nan"), to, 2, 1)
    np.testing.assert_array_equal(out, [8, 10, 12, 14, 16, 18, np.nan, np.nan])
    kernel[1](TensorDescriptor(x, [4], [1], [8]), to, 3, -1)  # other padding, other extent
    np.testing.assert_array_equal(out, [0, 0, 3, 6, 9, 0, 0, 0])


@BOTH
def test_shape_and_strides_are_run_time_numbers(interpret: bool) -> None:
    kernel = bl.jit(interpret=interpret)(facts)
    x, out = np.zeros((9, 40), np.float16), np.zeros(4, np.int64)
    kernel[1](TensorDescriptor.from_tensor(x[::2], [2, 8]), out)
    assert out.tolist() == [5, 40, 80, 1]
    kernel[1](TensorDescriptor.from_tensor(x[:1], [2, 8]), out)
    assert out.tolist() == [1, 40, 40, 1]


def test_what_is_compiled_in() -> None:
    kernel: Any = bl.jit(shift)
    x, out = np.zeros(32, np.float32), np.zeros(32, np.float32)
    to = TensorDescriptor.from_tensor(out, [8])
    first = kernel[1](TensorDescriptor.from_tensor(x, [8]), to, 2, 3)
    assert kernel[1](TensorDescriptor(x, [7], [1], [8]), to, 2, 5) is first
    source = TensorDescriptor.from_tensor(x, [8])
    source.padding = "nan"
    assert kernel[1](source, to, 2, 0) is not first
    source.padding, source.block_shape = "zero", [4]
    to.block_shape = [4]
    assert kernel[1](source, to, 2, 0) is not first


@BOTH
def test_descriptors_of_one_array(interpret: bool) -> None:
    """What is loaded first is not what is stored, where both are the same memory."""
    kernel = bl.jit(interpret=interpret)(either)
    x = np.arange(12, dtype=np.float32)
    kernel[1](TensorDescriptor.from_tensor(x, [8]), TensorDescriptor.from_tensor(x, [8]), True)
    assert x.tolist() == [0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 10, 11]


@BOTH
def test_atomics_on_an_argument(interpret: bool) -> None:
    kernel = bl.jit(interpret=interpret)(count)
    x, out = np.array([[1, 2, 3, 4]], np.int32), np.zeros((2, 6), np.int32)
    kernel[10](TensorDescriptor.from_tensor(x, [1, 4]), TensorDescriptor.from_tensor(out, [1, 4]))
    assert out.tolist() == [[5, 10, 15, 20, 0, 7], [0] * 6]


def test_a_read_only_array() -> None:
    kernel = bl.jit(shift)
    x, out = np.zeros(8, np.float32), np.zeros(8, np.float32)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only array"):
        kernel[1](TensorDescriptor.from_tensor(x, [8]), TensorDescriptor.from_tensor(out, [8]), 2, 0)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("1 to 5 axes, not 0", {"shape": [], "strides": [], "block_shape": []}),
        ("1 to 5 axes, not 6", {"shape": [1] * 6, "strides": [1] * 6, "block_shape": [4] * 6}),
        ("1 strides and 2 block extents", {"strides": [1]}),
        ("the last stride of a TensorDescriptor is 1, not 8", {"strides": [1, 8]}),
        ("no meaning", {"block_shape": [0, 8]}),
        ("no meaning", {"shape": [2**31, 8]}),
        ("'zero' or 'nan', not 'one'", {"padding": "one"}),
        ("is an array, not a list", {"base": [1, 2]}),
        ("no meaning for i32", {"base": np.zeros((4, 8), np.int32), "padding": "nan"}),
    ],
)
def test_a_wrong_descriptor(message: str, changes: dict[str, Any]) -> None:
    right: dict[str, Any] = {
        "base": np.zeros((4, 8), np.float32), "shape": [4, 8], "strides": [8, 1], "block_shape": [2, 4],
    }  # fmt: skip
    TensorDescriptor(**right)
    with pytest.raises(LaunchError, match=message):
        TensorDescriptor(**right | changes)


def test_a_descriptor_that_was_changed_is_looked_at_again() -> None:
    x = np.zeros(8, np.float32)
    source = TensorDescriptor.from_tensor(x, [8])
    source.block_shape = [2]
    with pytest.raises(LaunchError, match="argument 'x': the last block extent"):
        bl.jit(shift)[1](source, TensorDescriptor.from_tensor(x, [8]), 2, 0)


def test_a_block_shape_may_come_later() -> None:
    """The hook of a tuned kernel sets it; only at a launch must a row have 16 bytes."""
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    source, target = (TensorDescriptor.from_tensor(a, [1]) for a in (x, out))
    with pytest.raises(LaunchError, match="takes at least 16 bytes, not 1 \\* 4"):
        bl.jit(shift)[1](source, target, 2, 0)
    source.block_shape = target.block_shape = [8]
    bl.jit(shift)[1](source, target, 2, 0)
    assert out.any()


def test_columns_cannot_be_described() -> None:
    with pytest.raises(LaunchError, match="last stride"):
        TensorDescriptor.from_tensor(np.zeros((4, 8), np.float32).T, [4, 4])
