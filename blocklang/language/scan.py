"""Scans along an axis, and functions of scalars mapped over blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir import Region
from blocklang.ir.declaration import Effect
from blocklang.ir.types import with_shape
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import broadcast_together, spread
from blocklang.language.casting import cast_element, to_dtype
from blocklang.language.constexpr import describe, static_bool, static_int, unwrap
from blocklang.language.context import current_builder
from blocklang.language.reduction import blocks_of, check_scalars_only, combiner_of, promoted_sum
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape, normal_axis
from blocklang.language.tensor import is_block, tensor, to_tensor
from blocklang.ops.control import Yield
from blocklang.ops.scan import MapElementwise, Scan


def _axis(axis: Any, rank: int, what: str) -> int:
    if unwrap(axis) is None:
        raise CompilationError(
            f"{what} needs an axis, got None", help=f"flatten first: tl.{what}(tl.ravel(x), 0, ...)"
        )
    return normal_axis(axis, rank, what)


def _scan(sources: Sequence[tensor], axis: Any, function: Callable[..., Any], reverse: Any, what: str) -> Any:
    number = _axis(axis, len(block_shape(sources[0])), what)
    backwards = static_bool(reverse, "reverse")
    region = combiner_of(function, [v.dtype for v in sources])
    op = current_builder().create(
        Scan,
        [v.value for v in sources],
        axis=number,
        reverse=backwards,
        result_types=[v.value.type for v in sources],
        regions=[region],
    )
    return tuple(tensor(r) for r in op.results)


@builtin
def associative_scan(input: Any, axis: Any, combine_fn: Callable[..., Any], reverse: Any = False) -> Any:
    """Running results along an axis with a function of your own, the own element included.

    Args:
        input: a block, or a tuple of k blocks of one shape.
        axis: compile-time axis.
        combine_fn: a function of 2k scalars, first those of what has been scanned, then those of an element,
            that returns k scalars of the same types. The order is published (docs/semantics.md); the
            function must be associative, and need not be commutative.
        reverse: True scans from the end; what has been scanned is the first operand then too, and results
            stay at their elements' places.

    Returns:
        A block of the input's shape and type, or a tuple of k. No type is promoted.

    Raises:
        CompilationError: a scalar, shapes that differ, an axis out of range, a function that returns
            another number of values.

    Example:
        products = tl.associative_scan(tl.arange(1, 9), 0, lambda a, b: a * b)
    """
    results = _scan(blocks_of(input, "associative_scan"), axis, combine_fn, reverse, "associative_scan")
    return results if isinstance(unwrap(input), (tuple, list)) else results[0]


@builtin
def cumsum(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> tensor:
    """Running sums along an axis, in the order of `associative_scan`.

    Args:
        input: a block.
        axis: compile-time axis.
        reverse: True adds from the end.
        dtype: the type to add in and to return. Without it, bool and integers under 32 bits add in int32 or
            uint32 and bf16 in fp32; fp16 stays, each addition rounded.

    Example:
        ends = tl.cumsum(tl.arange(0, 8), axis=0)
    """
    (value,) = blocks_of(to_tensor(input), "cumsum")
    value = _from_bf16(value)
    value = promoted_sum(value) if unwrap(dtype) is None else cast_element(value, to_dtype(dtype))
    result: tensor = _scan([value], axis, lambda a, b: a + b, reverse, "cumsum")[0]
    return result


@builtin
def cumprod(input: Any, axis: Any = 0, reverse: Any = False) -> tensor:
    """Running products along an axis, in the order of `associative_scan`.

    Args:
        input: a block; bf16 is multiplied in fp32, any other type in itself.
        axis: compile-time axis.
        reverse: True multiplies from the end.

    Example:
        factorials = tl.cumprod(tl.arange(1, 9), axis=0)
    """
    value = _from_bf16(blocks_of(to_tensor(input), "cumprod")[0])
    result: tensor = _scan([value], axis, lambda a, b: a * b, reverse, "cumprod")[0]
    return result


def _from_bf16(value: tensor) -> tensor:
    return cast_element(value, tl.float32) if value.dtype.is_bf16() else value


@builtin
def map_elementwise(scalar_fn: Callable[..., Any], *args: Any, pack: Any = 1) -> Any:
    """Call a function of scalars for every element; it may branch and loop for each on its own.

    Args:
        scalar_fn: a function that takes a scalar of each block and returns a scalar or a tuple of them. It
            may load, and must not store.
        args: blocks and scalars, which broadcast.
        pack: how many neighbours along the last axis each call takes. The function then takes `pack` scalars
            of the first block, `pack` of the second and so on, and returns `pack` scalars for each result;
            the last extent must be a multiple of it.

    Returns:
        A block of the common shape, or a tuple of blocks, as the function returns.

    Raises:
        CompilationError: no block among `args`, shapes that do not broadcast, a pack that does not divide the
            last extent, a function that returns blocks, nothing, or not `pack` values per result.

    Example:
        collatz = tl.map_elementwise(lambda n: n // 2 if n % 2 == 0 else 3 * n + 1, tl.arange(1, 9))
    """
    if not callable(scalar_fn):
        raise CompilationError(f"scalar_fn must be a function, got {describe(scalar_fn)}")
    values = broadcast_together(*(to_tensor(a) for a in args))
    shape = next((block_shape(v) for v in values if is_block(v)), None)
    if shape is None:
        raise CompilationError(
            "map_elementwise needs a block among its arguments", help="call the function itself on scalars"
        )
    blocks = [spread(v, shape) for v in values]
    count = static_int(pack, "pack")
    if count < 1 or shape[-1] % count:
        raise CompilationError(
            f"pack must divide the last extent, which is {shape[-1]}, got {count}",
            help="choose another pack, or another block size",
        )
    mapped = getattr(scalar_fn, "mapped", None)  # the interpreter's functions are called with data, now
    if mapped is not None:
        return mapped(blocks, count)
    region, is_single = _mapped_region(scalar_fn, blocks, count)
    assert region.terminator is not None
    types = [v.type for v in region.terminator.operands]
    op = current_builder().create(
        MapElementwise,
        [b.value for b in blocks],
        pack=count,
        result_types=[with_shape(t, shape) for t in types[::count]],  # type: ignore[arg-type]
        regions=[region],
    )
    results = [tensor(r) for r in op.results]
    return results[0] if is_single else tuple(results)


def _mapped_region(function: Callable[..., Any], blocks: Sequence[tensor], pack: int) -> tuple[Region, bool]:
    """The region that a function of scalars becomes, and whether it returns one value, not a tuple."""
    types = [tl.element_ir_type(b.dtype) for b in blocks for _ in range(pack)]
    region = Region(types, [f"x{i}" for i in range(len(types))])
    builder = current_builder()
    with builder.at(region), builder.per_lane():
        returned = unwrap(function(*(tensor(a) for a in region.args)))
        if any(op.effects - {Effect.READ} for op in region.walk()):
            raise CompilationError(
                "scalar_fn must not write memory", help="return the values, and store the block that results"
            )
        is_single = not isinstance(returned, (tuple, list))
        values = [_scalar(v) for v in ([returned] if is_single else returned)]
        if not values or len(values) % pack:
            raise CompilationError(
                f"scalar_fn returned {len(values)} values for pack={pack}",
                help="it returns `pack` values for each result",
            )
        for first in range(0, len(values), pack):
            given = [v.dtype for v in values[first : first + pack]]
            if len(set(given)) != 1:
                raise CompilationError(
                    f"the {pack} values of a result must have one type, got {', '.join(map(str, given))}"
                )
        builder.create(Yield, [v.value for v in values])
    check_scalars_only(region, "scalar_fn")
    return region, is_single


def _scalar(value: Any) -> tensor:
    if unwrap(value) is None:
        raise CompilationError("scalar_fn returned nothing", help="return a scalar, or a tuple of scalars")
    result = to_tensor(value)
    if is_block(result):
        raise CompilationError(f"scalar_fn must return scalars, got {result.value.type}")
    return result
