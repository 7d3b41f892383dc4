"""Making two shapes one: missing axes are added on the left, axes of extent 1 are repeated.

Scalars stay scalars: a lane-wise operation takes a scalar beside a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import shape_of
from blocklang.language.tensor import emit, tensor
from blocklang.ops.creation import Splat
from blocklang.ops.shape import Broadcast, ExpandDims

Shape = tuple[int, ...]


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape to which all shapes broadcast. Raises CompilationError if there is none."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    common: list[int] = []
    for axis, extents in enumerate(zip(*padded, strict=True)):
        wanted = {n for n in extents if n != 1}
        if len(wanted) > 1:
            listed = " and ".join(_text(s) for s in dict.fromkeys(shapes) if s)
            raise CompilationError(
                f"cannot broadcast shapes {listed}: axis {axis - rank} has extents "
                f"{' and '.join(map(str, sorted(wanted)))}",
                help="extents must be equal or 1; add an axis with `x[:, None]`, or use blocks of one size",
            )
        common.append(wanted.pop() if wanted else 1)
    return tuple(common)


def _text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def broadcast_block(value: tensor, shape: Shape) -> tensor:
    """A block broadcast to `shape`, which it fits; scalars come back as they are."""
    own = shape_of(value.value.type)
    if not own or own == shape:
        return value
    for _ in range(len(shape) - len(own)):
        value = emit(ExpandDims, value, axis=0)
    if shape_of(value.value.type) == shape:
        return value
    return emit(Broadcast, value, shape=shape)


def broadcast_together(*values: tensor) -> tuple[tensor, ...]:
    """All blocks among the values in their common shape; scalars as they are."""
    shape = common_shape([shape_of(v.value.type) for v in values])
    return tuple(broadcast_block(v, shape) for v in values)


def spread(value: tensor, shape: Shape) -> tensor:
    """The value as a block of exactly `shape`, a scalar in every lane."""
    if not shape or shape_of(value.value.type):
        return broadcast_block(value, shape)
    from blocklang.ir.types import with_shape

    element = value.value.type
    return emit(Splat, value, result_types=[with_shape(element, shape)])  # type: ignore[arg-type]
