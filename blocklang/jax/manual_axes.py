"""Axes of a mesh along which an array differs, inside of `jax.shard_map`.

JAX keeps them in an array's type, and wants those of all arguments of a foreign call to be equal and those
of its results said. Releases give them different names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax


def _axes(array: Any) -> frozenset[Any]:
    type_ = jax.typeof(array)
    manual = getattr(type_, "manual_axis_type", None)  # from JAX 0.10 on
    axes: frozenset[Any] = manual.varying if manual is not None else getattr(type_, "vma", frozenset())
    return axes


def vary_alike(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, said to differ along every axis along which one of them does."""
    axes = [_axes(array) for array in arrays]
    every = frozenset[Any]().union(*axes)
    return [
        _cast(a, tuple(sorted(every - own))) if every - own else a
        for a, own in zip(arrays, axes, strict=True)
    ]


def _cast(array: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, axes, to="varying")
    return jax.lax.pvary(array, axes)


def shape_like(shape: tuple[int, ...], dtype: Any, array: Any) -> Any:
    """A `jax.ShapeDtypeStruct` of what differs along the axes along which `array` does."""
    if not _axes(array):
        return jax.ShapeDtypeStruct(shape, dtype)
    type_ = jax.typeof(array)
    if hasattr(type_, "manual_axis_type"):
        spec = jax.sharding.PartitionSpec(*[None] * len(shape))
        sharding = jax.sharding.NamedSharding(type_.sharding.mesh, spec)
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, manual_axis_type=type_.manual_axis_type)
    return jax.ShapeDtypeStruct(shape, dtype, vma=type_.vma)
