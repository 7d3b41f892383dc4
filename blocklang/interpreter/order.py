"""The meaning of sort, topk, gather and histogram.

Floats are ordered as integers: their bits, those of negative numbers flipped but for the sign, grow with the
number, and every NaN becomes one that is larger than infinity. In the formats where 0x80 is NaN, bits up to
that go one down, so that NaN wraps to the largest.
"""

from __future__ import annotations

import numpy as np

from blocklang.interpreter.buffers import Buffer, unwritten
from blocklang.interpreter.dtypes import Array, dtype_of
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ir.types import ScalarType, Type, element_type
from blocklang.ops import order as ops


def _sign_flipped(keys: Array) -> Array:
    """Negative integers with all bits but the sign flipped; it is its own inverse."""
    return np.where(keys < 0, keys ^ np.iinfo(keys.dtype).max, keys)


def sorted_rows(type_: Type, lanes: Array, *, descending: bool) -> Array:
    """The lanes sorted along the last axis, as `sort` defines it."""
    element = element_type(type_)
    assert isinstance(element, ScalarType)
    ordered = np.sort(_keys(element, lanes) if element.is_float else lanes, axis=-1)
    if descending:
        ordered = ordered[..., ::-1]
    if element.is_float:
        ordered = np.ascontiguousarray(_bits(element, ordered)).view(dtype_of(type_))
    return np.asarray(ordered)


def _keys(element: ScalarType, lanes: Array) -> Array:
    bits = np.ascontiguousarray(lanes).view(f"i{element.bytes}")
    if not ops.has_negative_zero(element):
        return np.where(bits.view(np.uint8) <= 0x80, bits - np.int8(1), _sign_flipped(bits))
    is_nan = (bits & np.iinfo(bits.dtype).max) > ops.top_bits(element)
    return np.where(is_nan, bits.dtype.type(ops.nan_bits(element)), _sign_flipped(bits))


def _bits(element: ScalarType, keys: Array) -> Array:
    if not ops.has_negative_zero(element):
        return np.where(keys > -2, keys + np.int8(1), _sign_flipped(keys))
    return _sign_flipped(keys)


@evaluates(ops.Sort)
def sort(op: ops.Sort, machine: Machine) -> Array:
    return sorted_rows(op.source.type, machine[op.source], descending=op.descending)


@evaluates(ops.TopK)
def topk(op: ops.TopK, machine: Machine) -> Array:
    return sorted_rows(op.source.type, machine[op.source], descending=True)[..., : op.k]


@evaluates(ops.Gather)
def gather(op: ops.Gather, machine: Machine) -> Array:
    source, index = machine[op.source], machine[op.index]
    last = source.shape[op.axis] - 1
    # Clamped in its own type: an int8 has no 1000, and a uint64 need not fit an int64.
    limit = min(last, np.iinfo(index.dtype).max)
    inside = np.clip(index, 0, limit).astype(np.int64)
    return np.take_along_axis(source, inside, axis=op.axis)


@evaluates(ops.Histogram)
def histogram(op: ops.Histogram, machine: Machine) -> Array:
    lanes, mask = machine[op.source], machine.optional(op.mask)
    counted = (lanes >= 0) & (lanes.astype(np.uint64) < op.bins)
    if mask is not None:
        counted &= mask
    return np.bincount(lanes[counted].astype(np.int64), minlength=op.bins).astype(np.int32)


# ---- placed ----


@evaluates(ops.SortBuffer)
def sort_buffer(op: ops.SortBuffer, machine: Machine) -> None:
    source, output, keys = machine[op.source], machine[op.output], machine[op.keys]
    ordered = sorted_rows(op.source.type, source.matrix(), descending=op.descending)
    output.set_matrix(ordered[..., : op.output.type.shape[-1]])
    keys.bytes[:] = unwritten(keys.bytes.size)


@evaluates(ops.HistogramBuffer)
def histogram_buffer(op: ops.HistogramBuffer, machine: Machine) -> None:
    tables: Buffer = machine[op.tables]
    counts = np.bincount(machine[op.source].matrix(), minlength=op.output.type.numel + 1)
    machine[op.output].set_matrix(counts[:-1].astype(np.int32))
    tables.bytes[:] = unwritten(tables.bytes.size)
