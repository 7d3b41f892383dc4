"""Atomic operations on arrays: read and write an element in one step."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import shape_of
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import broadcast_block
from blocklang.language.constexpr import describe, unwrap
from blocklang.language.memory import check_fits, checked_mask, checked_pointer, converted
from blocklang.language.registry import builtin
from blocklang.language.tensor import emit, tensor
from blocklang.ops.atomics import SCOPES, SEMANTICS, AtomicCas, AtomicRmw


def _option(value: Any, what: str, choices: tuple[str, ...]) -> str:
    plain = unwrap(value)
    if plain is None:
        return choices[0]
    if isinstance(plain, str) and plain in choices:
        return plain
    raise CompilationError(
        f"{what} {describe(value)} not supported",
        help=f"one of {', '.join(map(repr, choices))}; {choices[0]!r} is the default",
    )


def _place(pointer: Any, name: str) -> tensor:
    address = checked_pointer(pointer, name)
    _check_writable(name, address)
    return address


def _check_writable(name: str, address: tensor) -> None:
    if address.dtype.is_const():
        raise CompilationError(
            f"{name} through a const pointer", help="annotate the parameter without `tl.const`"
        )


def check_atomic(name: str, address: tensor) -> None:
    """Raise CompilationError unless an atomic operation of this name can change what lies there."""
    _check_writable(name, address)
    _check_element(name, address.dtype.element_ty)


def _lanes(value: Any, what: str, address: tensor) -> tensor:
    """A value or mask in the shape of the pointers."""
    check_fits(value, what, address, shape_of(address.value.type))
    return broadcast_block(value, shape_of(address.value.type))


def _refuse(name: str, element: tl.dtype, help: str) -> CompilationError:
    return CompilationError(f"{name} does not support {element}", help=help)


def _check_element(name: str, element: tl.dtype) -> None:
    kind = name.removeprefix("atomic_")
    if element.is_floating() and element.primitive_bitwidth < 32:
        if kind != "add" or element.primitive_bitwidth < 16:
            raise _refuse(name, element, "16-bit floats have `atomic_add` only; use tl.float32")
    elif element.primitive_bitwidth < 32:
        raise _refuse(name, element, "use an array of tl.int32: 8- and 16-bit integers have no atomics")
    elif element.is_floating() and kind in ("and", "or", "xor"):
        raise _refuse(name, element, "bits of floats: give the kernel a view of the array as integers")


def _rmw(kind: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> tensor:
    name = f"atomic_{kind}"
    address = _place(pointer, name)
    element = address.dtype.element_ty
    _check_element(name, element)
    live = checked_mask(mask)
    return emit(
        AtomicRmw,
        address,
        _lanes(converted(val, element), "value", address),
        mask=None if live is None else _lanes(live, "mask", address),
        kind=kind,
        sem=_option(sem, "memory semantic", SEMANTICS),
        scope=_option(scope, "memory scope", SCOPES),
    )


@builtin
def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Add to elements of an array.

    Floats round as `+` does; integers wrap. For fp16 and bf16 too.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_add(x_ptr + tl.arange(0, 8), 1.0)
    """
    return _rmw("add", pointer, val, mask, sem, scope)


@builtin
def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Replace elements of an array by the larger of them and the values.

    Floats compare by their bits: -0.0 is less than +0.0, and a positive NaN is larger than inf.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_max(x_ptr + tl.arange(0, 8), 1.0)
    """
    return _rmw("max", pointer, val, mask, sem, scope)


@builtin
def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Replace elements of an array by the smaller of them and the values.

    Floats compare by their bits: -0.0 is less than +0.0, and a negative NaN is less than -inf.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_min(x_ptr + tl.arange(0, 8), 1.0)
    """
    return _rmw("min", pointer, val, mask, sem, scope)


@builtin
def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Combine elements of an array of integers with the values by `&`.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_and(x_ptr.to(tl.pointer_type(tl.int32)) + tl.arange(0, 8), 255)
    """
    return _rmw("and", pointer, val, mask, sem, scope)


@builtin
def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Combine elements of an array of integers with the values by `|`.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_or(x_ptr.to(tl.pointer_type(tl.int32)) + tl.arange(0, 8), 1)
    """
    return _rmw("or", pointer, val, mask, sem, scope)


@builtin
def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Combine elements of an array of integers with the values by `^`.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_xor(x_ptr.to(tl.pointer_type(tl.int32)) + tl.arange(0, 8), 1)
    """
    return _rmw("xor", pointer, val, mask, sem, scope)


@builtin
def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """Replace elements of an array by the values.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order, all
    of them also where they share an address.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape.
        val: cast to the element type and broadcast to the pointers.
        mask: int1, broadcast to the pointers; where it is false, memory is not touched.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before; 0 where the mask is false.

    Example:
        old = tl.atomic_xchg(x_ptr + tl.arange(0, 8), 1.0)
    """
    return _rmw("xchg", pointer, val, mask, sem, scope)


@builtin
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
    """Replace elements of an array where they are equal to a value, bit for bit.

    Each lane is one step that nothing can come between; lanes take effect in ascending row-major order.

    Args:
        pointer: a pointer, or a block of pointers, which decides the shape; elements of 16, 32 or 64 bits.
        cmp: what the element is compared with, cast to the element type and broadcast to the pointers.
        val: what is stored where they are equal, cast and broadcast likewise.
        sem: 'acq_rel' (default), 'acquire', 'release' or 'relaxed': how other accesses are ordered around it.
        scope: 'gpu' (default), 'cta' or 'sys'.

    Returns:
        What stood there before, replaced or not.

    Example:
        while tl.atomic_cas(x_ptr, 0, 1) == 1:
            pass
    """
    address = _place(pointer, "atomic_cas")
    element = address.dtype.element_ty
    if element.primitive_bitwidth not in (16, 32, 64):
        raise CompilationError(
            f"atomic_cas only supports elements with width 16, 32 or 64, got {element}", help="use tl.int32"
        )
    return emit(
        AtomicCas,
        address,
        _lanes(converted(cmp, element), "value", address),
        _lanes(converted(val, element), "value", address),
        sem=_option(sem, "memory semantic", SEMANTICS),
        scope=_option(scope, "memory scope", SCOPES),
    )
