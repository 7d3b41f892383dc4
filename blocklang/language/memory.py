"""Access to the user's arrays: `load` and `store` through pointers and blocks of pointers."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import shape_of
from blocklang.language import dtypes as tl
from blocklang.language.block_pointers import block_pointer, lanes_of, padding_of
from blocklang.language.broadcasting import broadcast_block, common_shape, spread
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import describe, static_bool, static_choice, unwrap
from blocklang.language.context import current_builder
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape
from blocklang.language.tensor import constant, emit, is_block, tensor, to_tensor
from blocklang.language.windows import Window
from blocklang.ops.memory import CACHE_MODIFIERS_LOAD, CACHE_MODIFIERS_STORE, EVICTION_POLICIES, Load, Store


def checked_pointer(value: Any, what: str) -> tensor:
    """`value` if it is a pointer or a block of pointers; `what` needs one."""
    if isinstance(value, tensor) and value.dtype.is_ptr():
        return value
    help = "pass the array itself to the kernel, and add offsets to it"
    if isinstance(unwrap(value), Window):
        help = f"call its own method, `desc.{what}(offsets{', value' if what == 'store' else ''})`"
    accepted = "a pointer, a block of pointers or a block pointer"
    if what not in ("load", "store"):
        accepted = "a pointer or a block of pointers"
    raise CompilationError(f"{what} needs {accepted}, got {describe(value)}", help=help)


def checked_mask(value: Any) -> tensor | None:
    """A mask as a value of the kernel; None if there is none."""
    plain = unwrap(value)
    if plain is None:
        return None
    if isinstance(plain, (bool, int)):
        return constant(bool(plain), tl.int1)
    if isinstance(plain, tensor) and plain.dtype.is_int1():
        return plain
    raise CompilationError(
        f"a mask must be int1, got {describe(value)}", help="compare, for instance `mask != 0`"
    )


def _refuse_block_pointer_options(boundary_check: Any, padding_option: Any) -> None:
    if any(unwrap(option) or unwrap(option) == 0 for option in (boundary_check, padding_option)):
        raise CompilationError(
            "`boundary_check` and `padding_option` are for block pointers",
            help="write a mask, or make a block pointer with `tl.make_block_ptr`",
        )


def _refuse_mask(*given: Any) -> None:
    if any(unwrap(option) is not None for option in given):
        raise CompilationError(
            "`mask` and `other` cannot be given with a block pointer",
            help="name the axes that may leave the array in `boundary_check`",
        )


def _option(value: Any, what: str, choices: tuple[str, ...]) -> str:
    return static_choice("" if unwrap(value) is None else value, what, choices)


@builtin
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
) -> tensor:
    """Read elements of an array.

    Args:
        pointer: a pointer, a block of pointers, or a block pointer.
        mask: int1; where it is false, memory is not touched. Broadcast with the pointers.
        other: the value of masked lanes, cast to the element type; 0 without it.
        boundary_check: of a block pointer, the axes along which lanes outside of the array are masked; along
            the others the block must lie inside.
        padding_option: what such lanes hold: '' or 'zero' for 0, 'nan' of floats.
        cache_modifier: '', '.ca', '.cg' or '.cv'; no effect on the values.
        eviction_policy: '', 'evict_first', 'evict_last' or 'evict_normal'; no effect on the values.
        volatile: True: read memory again, whatever is known of it.

    Returns:
        The elements, in the common shape of pointer, mask and other; a scalar for a scalar pointer.

    Example:
        x = tl.load(x_ptr + tl.arange(0, 8), mask=tl.arange(0, 8) < 5, other=0.0)
    """
    options: dict[str, Any] = {
        "cache_modifier": _option(cache_modifier, "cache_modifier", CACHE_MODIFIERS_LOAD),
        "eviction_policy": _option(eviction_policy, "eviction_policy", EVICTION_POLICIES),
        "volatile": static_bool(volatile, "volatile"),
    }
    block = unwrap(pointer)
    if isinstance(block, block_pointer):
        _refuse_mask(mask, other)
        pointers, inside = lanes_of(block, boundary_check)
        padding = padding_of(block, padding_option)
        return emit(Load, pointers, mask=inside, other=None if inside is None else padding, **options)
    _refuse_block_pointer_options(boundary_check, padding_option)
    address = checked_pointer(pointer, "load")
    lanes = checked_mask(mask)
    if lanes is None and unwrap(other) is not None:
        raise CompilationError(
            "`other` without `mask` has no meaning", help="give a mask, or leave `other` out"
        )
    otherwise = None if unwrap(other) is None else converted(other, address.dtype.element_ty)
    given = [v for v in (address, lanes, otherwise) if v is not None]
    shape = common_shape([shape_of(v.value.type) for v in given])
    return emit(
        Load,
        spread(address, shape),
        mask=None if lanes is None else broadcast_block(lanes, shape),
        other=None if otherwise is None else broadcast_block(otherwise, shape),
        **options,
    )


def converted(value: Any, element: tl.dtype) -> tensor:
    """A value as it goes to memory. Other than an operand, a number is cast: one that does not fit wraps."""
    plain = unwrap(value)
    if isinstance(plain, (bool, int, float)) and element.is_floating():
        return constant(plain, element)
    return cast_element(to_tensor(value), element)


@builtin
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
) -> None:
    """Write elements of an array.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape; or a block pointer.
        value: what to write, cast to the element type (integers wrap) and broadcast to the pointers.
            Through a block pointer: a block of its shape and element type, or a scalar.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        boundary_check: of a block pointer, the axes along which lanes outside of the array are not written.
        cache_modifier: '', '.wb', '.cg', '.cs' (streaming) or '.wt'; no effect on the values.
        eviction_policy: '', 'evict_first', 'evict_last' or 'evict_normal'; no effect on the values.

    Example:
        tl.store(out_ptr + tl.arange(0, 8), 1.0, mask=tl.arange(0, 8) < 5)
    """
    options = {
        "cache_modifier": _option(cache_modifier, "cache_modifier", CACHE_MODIFIERS_STORE),
        "eviction_policy": _option(eviction_policy, "eviction_policy", EVICTION_POLICIES),
    }
    block = unwrap(pointer)
    if isinstance(block, block_pointer):
        _refuse_mask(mask)
        _refuse_const(block.base)
        pointers, inside = lanes_of(block, boundary_check)
        write_block(pointers, _of_block(value, block), inside, **options)
        return
    _refuse_block_pointer_options(boundary_check, "")
    address = checked_pointer(pointer, "store")
    _refuse_const(address)
    stored, lanes = converted(value, address.dtype.element_ty), checked_mask(mask)
    shape = shape_of(address.value.type)
    for operand, what in ((stored, "value"), (lanes, "mask")):
        if operand is not None:
            check_fits(operand, what, address, shape)
    write_block(
        address,
        broadcast_block(stored, shape),
        None if lanes is None else broadcast_block(lanes, shape),
        **options,
    )


def _refuse_const(address: tensor) -> None:
    if address.dtype.is_const():
        raise CompilationError(
            "cannot store through a const pointer", help="annotate the parameter without `tl.const`"
        )


def write_block(pointers: tensor, value: tensor, mask: tensor | None, **options: Any) -> None:
    """Store a value of the pointers' shape and element type."""
    operands = [v.value for v in (pointers, value, mask) if v is not None]
    current_builder().create(Store, *operands, **options)


def _of_block(value: Any, block: block_pointer) -> tensor:
    """A value that is stored through a block pointer: of its shape and element type, or a number."""
    plain = unwrap(value)
    stored = converted(value, block.element) if isinstance(plain, (bool, int, float)) else to_tensor(value)
    if stored.dtype != block.element:
        raise CompilationError(
            f"Block element type {block.element} and value element type {stored.dtype} mismatch",
            help="cast the value, `x.to(p.dtype.element_ty)`",
        )
    if is_block(stored) and block_shape(stored) != block.extents:
        raise CompilationError(
            f"cannot store {stored.value.type} through {block}",
            help="the shapes must be equal; broadcast the value with `tl.broadcast_to`",
        )
    return spread(stored, block.extents)


def check_fits(operand: tensor, what: str, address: tensor, shape: tuple[int, ...]) -> None:
    """Raise CompilationError unless a value or mask broadcasts to the pointers' shape."""
    own = shape_of(operand.value.type)
    fits = len(own) <= len(shape) and all(
        n in (1, m) for n, m in zip(reversed(own), reversed(shape), strict=False)
    )
    if fits:
        return
    pointers = address.value.type
    if what == "value":
        message = f"cannot store {operand.value.type} through {pointers}"
    else:
        message = f"a mask of {operand.value.type} does not fit {pointers}"
    lanes = f"has shape [{', '.join(map(str, shape))}]" if shape else "is a single pointer"
    raise CompilationError(
        message, help=f"the pointer {lanes}; add offsets of the {what}'s shape to it, or change the {what}"
    )
