"""What docs/semantics.md says of types and integers is what a kernel does."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl


def _types(out: Any) -> None:
    tl.static_assert((tl.zeros((4,), tl.int32) / tl.zeros((4,), tl.int32)).dtype == tl.float32)
    tl.static_assert((tl.zeros((4,), tl.int32) + tl.zeros((4,), tl.float32)).dtype == tl.float32)
    tl.static_assert((tl.zeros((4,), tl.int8) + tl.zeros((4,), tl.uint8)).dtype == tl.uint8)
    tl.static_assert((tl.zeros((4,), tl.int64) + tl.zeros((4,), tl.uint64)).dtype == tl.uint64)
    tl.static_assert((tl.zeros((4,), tl.float16) % tl.zeros((4,), tl.float16)).dtype == tl.float32)
    tl.static_assert((tl.zeros((4,), tl.bfloat16) + tl.zeros((4,), tl.float16)).dtype == tl.float16)
    tl.static_assert((tl.zeros((4,), tl.bfloat16) + tl.zeros((4,), tl.int32)).dtype == tl.float32)
    tl.static_assert(tl.max(tl.zeros((4,), tl.float16), 0).dtype == tl.float32)
    tl.static_assert(tl.sum(tl.zeros((4,), tl.int8), 0).dtype == tl.int32)
    tl.static_assert(tl.sum(tl.zeros((4,), tl.int1), 0).dtype == tl.uint32)
    s = 2
    tl.static_assert((tl.zeros((4,), tl.int8) + s).dtype == tl.int32)
    tl.static_assert((tl.zeros((4,), tl.int8) + 2).dtype == tl.int8)
    tl.static_assert(-7 // 2 == -4)
    tl.static_assert(-7 % 2 == 1)
    yes = tl.full((4,), True, tl.int1)
    tl.store(out + tl.arange(0, 4), (yes + yes).to(tl.int32))


def _integers(out: Any, a: Any, b: Any, n: Any) -> None:
    i = tl.arange(0, 8)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, x // y)
    tl.store(out + 8 + i, x % y)
    tl.store(out + 16 + i, x >> y)


def test_types() -> None:
    for mode in (False, True):
        out = np.ones(4, np.int32)
        bl.jit(interpret=mode)(_types)[1](out)
        assert not out.any()


def test_integers() -> None:
    low = np.iinfo(np.int32).min
    a = np.array([-7, 7, 5, low, 0, -1, low, 9], np.int32)
    b = np.array([2, -2, 0, -1, 0, 40, 32, 3], np.int32)
    for mode in (False, True):
        out = np.zeros(24, np.int32)
        bl.jit(interpret=mode)(_integers)[1](out, a, b, 8)
        assert out[:8].tolist() == [-3, -3, 0, low, 0, 0, low // 32, 3]
        assert out[8:16].tolist() == [-1, 1, 5, 0, 0, -1, 0, 0]
        assert out[16:].tolist() == [-2, 0, 5, -1, 0, -1, -1, 1]
