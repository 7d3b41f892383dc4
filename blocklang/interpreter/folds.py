"""The published orders of reductions and contractions, over NumPy arrays (see `blocklang.ops.reduction`).

Every function folds axis 0 away and works on all other axes at once. Float inputs of 16 bits are the caller's
to widen, sums excepted, which round once at their end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blocklang.interpreter import exact
from blocklang.interpreter.dtypes import BOOL, F64, Array, convert_float, is_float, restore_float, widen
from blocklang.interpreter.numpy_steps import maximum, minimum

PARTIALS = 32

Combiner = Callable[[list[Array], list[Array]], list[Array]]


def fold(combine: str, lanes: Array, *, interleaved: bool) -> Array:
    """Fold with one of `blocklang.ops.reduction.COMBINES`.

    Args:
        lanes: an array whose axis 0 is folded; it may be empty, which gives the neutral element.
        interleaved: for float sums, whether 32 partial results are kept or one.
    """
    if combine == "sum":
        if is_float(lanes.dtype):
            return _float_sum(lanes, PARTIALS if interleaved else 1)
        return _integer_sum(lanes)
    if combine in ("max", "min"):
        return _extreme(lanes, combine == "max")
    operation = {"xor": np.bitwise_xor, "and": np.bitwise_and, "or": np.bitwise_or}[combine]
    return np.asarray(operation.reduce(lanes, axis=0), lanes.dtype)


def _integer_sum(lanes: Array) -> Array:
    if lanes.dtype == BOOL:
        return np.asarray(np.logical_xor.reduce(lanes, axis=0))
    return np.asarray(np.add.reduce(lanes, axis=0, dtype=lanes.dtype))


def _float_sum(lanes: Array, partials: int) -> Array:
    wide = widen(lanes)
    total = np.zeros((partials, *wide.shape[1:]), wide.dtype)
    for start in range(0, len(wide), partials):
        part = wide[start : start + partials]
        total[: len(part)] += part
    while len(total) > 1:
        half = len(total) // 2
        total = total[:half] + total[half:]
    return convert_float(np.asarray(total[0]), lanes.dtype)


def _extreme(lanes: Array, largest: bool) -> Array:
    """The largest or smallest element; NaN only where there is nothing else."""
    if not is_float(lanes.dtype):
        low, high = (
            (False, True) if lanes.dtype == BOOL else (np.iinfo(lanes.dtype).min, np.iinfo(lanes.dtype).max)
        )
        reduce = np.maximum.reduce if largest else np.minimum.reduce
        return np.asarray(reduce(lanes, axis=0, initial=low if largest else high), lanes.dtype)
    combine = maximum if largest else minimum
    wide = widen(lanes)
    if not len(wide):
        wide = np.full((1, *wide.shape[1:]), np.nan, wide.dtype)
    while len(wide) > 1:
        half = len(wide) // 2
        wide = np.concatenate([combine(wide[:half], wide[half : 2 * half]), wide[2 * half :]])
    return restore_float(np.asarray(wide[0]), lanes.dtype)


def arg_fold(combine: str, lanes: Array, indices: Array) -> tuple[Array, Array]:
    """The largest ("max") or smallest ("min") element and the index of the first lane where it stands.

    Args:
        lanes: at least one element along axis 0, which is folded.
        indices: the index of each lane, of the same shape.
    """
    wide = widen(lanes)
    best = _extreme(wide, combine == "max")
    position = np.argmax((wide == best) | np.isnan(best), axis=0)[None]
    picked = np.take_along_axis(lanes, position, axis=0), np.take_along_axis(indices, position, axis=0)
    return np.asarray(picked[0][0]), np.asarray(picked[1][0])


def tree_fold(combine: Combiner, lanes: Sequence[Array]) -> list[Array]:
    """Fold arrays together by a function, as a tree over neighbours that keeps the order of operands."""
    current = list(lanes)
    while len(current[0]) > 1:
        pairs = len(current[0]) // 2
        left = [x[0 : 2 * pairs : 2] for x in current]
        right = [x[1 : 2 * pairs : 2] for x in current]
        folded = [np.broadcast_to(y, x.shape) for x, y in zip(left, combine(left, right), strict=True)]
        rest = [x[2 * pairs :] for x in current]
        current = [np.concatenate(parts) for parts in zip(folded, rest, strict=True)]
    return [np.asarray(x[0]) for x in current]


def matrix_chain(a: Array, b: Array, start: Array) -> Array:
    """`start + a @ b`, for each element a chain of fused multiply-adds, k ascending. Leading axes are a
    batch.

    float64 and 8-bit integers compute as they are (the latter in the dtype of `start`), other floats in
    float32.
    """
    if a.dtype == F64:
        total = start
        for k in range(a.shape[-1]):
            total = exact.fma_f64(a[..., k, None], b[..., None, k, :], total)
        return np.asarray(total)
    if not is_float(a.dtype):
        return np.asarray(start + np.matmul(a.astype(start.dtype), b.astype(start.dtype)))
    left, right = widen(a).astype(F64), widen(b).astype(F64)
    total = start
    for k in range(a.shape[-1]):
        total = exact.add_product_f32(np.multiply(left[..., k, None], right[..., None, k, :]), total)
    return np.asarray(total)
