"""Lanes with a period: quotients and remainders of a loop's index, and accesses to every other element.

A loop over lanes starts each step at a multiple of its width. So `i // 64` is one number in all lanes,
`i % 64` is a base and a step, `i % 2` is the constant 0, 1, 0, 1, ... and `i // 2` holds every number
twice: what is loaded there is loaded once and spread by a shuffle. Elements that stand backwards, or at every
second place, are loaded as whole vectors and shuffled too: in a register, a permutation costs less than lanes
one by one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from blocklang.codegen.emitter import llvm_scalar, llvm_type, vector_of
from blocklang.codegen.values import Lane, Repeated, is_true
from blocklang.ir.core import Operation
from blocklang.ir.types import I64, PointerType, ScalarType, Type
from blocklang.ops.elementwise import Add, IntegerDiv, Mul, Sub

if TYPE_CHECKING:
    from blocklang.codegen.lanes import LaneEmitter


def _number(lane: Lane) -> int | None:
    """The value of a constant."""
    return int(lane.text) if lane.is_uniform and lane.text.lstrip("-").isdigit() else None


# ---- integers ----


def multiple_of_sum(op: Operation, args: list[Lane], type: Type) -> int:
    """What divides the base of a sum of which neither side is negative."""
    if type != I64 or not isinstance(op, Add):
        return 0
    known = [_number(lane) if lane.is_uniform else lane.multiple or None for lane in args]
    if any(n is None or n < 0 for n in known):
        return 0
    divisor = math.gcd(*(n for n in known if n is not None))
    return divisor & -divisor


def divided(lanes: LaneEmitter, op: Operation, args: list[Lane]) -> Lane | None:
    """`i // r` or `i % r` of consecutive numbers from a multiple of the width on; None if they have no period
    of that kind.
    """
    dividend, r = args[0], _number(args[1])
    width, type = lanes.width, dividend.type
    if type != I64 or dividend.step != "1" or r is None or r < 1 or not width:
        return None
    if dividend.multiple < width:
        return None
    emit, is_quotient = lanes.emit, isinstance(op, IntegerDiv)
    if r % width == 0:
        text = emit.op(f"{'udiv' if is_quotient else 'urem'} i64 {dividend.text}, {r}")
        return Lane(text, type) if is_quotient else Lane(text, type, 0, "1", min(dividend.multiple, r & -r))
    if width % r:
        return None
    if not is_quotient:
        return Lane(_constants([lane % r for lane in range(width)]), type, width)
    base = emit.op(f"udiv i64 {dividend.text}, {r}")
    return _spread(lanes, type, Repeated(base, "1", r))


def _constants(numbers: list[int]) -> str:
    return f"<{', '.join(f'i64 {n}' for n in numbers)}>"


def _spread(lanes: LaneEmitter, type: Type, repeated: Repeated) -> Lane:
    """The vector of a repeated 64-bit value, or of repeated addresses."""
    emit, width = lanes.emit, lanes.width
    kind = vector_of("i64", width)
    counts = _constants([lane // repeated.times for lane in range(width)])
    offsets = counts
    if repeated.step != "1":
        offsets = emit.op(f"mul {kind} {emit.splat('i64', repeated.step, width)}, {counts}")
    if isinstance(type, PointerType):
        text = emit.op(f"getelementptr i8, ptr {repeated.base}, {kind} {offsets}")
    else:
        text = emit.op(f"add {kind} {emit.splat('i64', repeated.base, width)}, {offsets}")
    return Lane(text, type, width, repeated=repeated)


def repeated(lanes: LaneEmitter, op: Operation, args: list[Lane]) -> Lane | None:
    """A sum or product of a repeated 64-bit value and a uniform one."""
    if op.results[0].type != I64 or len(args) != 2 or not isinstance(op, (Add, Sub, Mul)):
        return None
    one, other = args
    if other.repeated is not None and not isinstance(op, Sub):
        one, other = other, one
    if one.repeated is None or not other.is_uniform:
        return None
    emit, own = lanes.emit, one.repeated
    if isinstance(op, Mul):
        base, step = emit.mul(own.base, other.text), emit.mul(own.step, other.text)
        return _spread(lanes, I64, Repeated(base, step, own.times))
    base = emit.op(f"{'sub' if isinstance(op, Sub) else 'add'} i64 {own.base}, {other.text}")
    return _spread(lanes, I64, Repeated(base, own.step, own.times))


def repeated_offset(lanes: LaneEmitter, pointer: Lane, offset: Lane, type: PointerType) -> Lane:
    """A uniform pointer plus a repeated offset in elements."""
    return _moved(lanes, pointer, offset, type.element.bytes, type)


def repeated_address(lanes: LaneEmitter, pointer: Lane, index: Lane, size: int) -> Lane:
    """A uniform address plus a repeated index times `size` bytes."""
    return _moved(lanes, pointer, index, size, pointer.type)


def _moved(lanes: LaneEmitter, pointer: Lane, offset: Lane, size: int, type: Type) -> Lane:
    own = offset.repeated
    assert own is not None
    emit = lanes.emit
    base = emit.offset(pointer.text, emit.mul(own.base, size))
    if isinstance(type, PointerType):
        return _spread(lanes, type, Repeated(base, emit.mul(own.step, size), own.times))
    raise AssertionError("an address has a pointer type")


# ---- accesses ----


def load(
    lanes: LaneEmitter, pointer: Lane, element: ScalarType | PointerType, mask: Lane, passthru: str
) -> str | None:
    """The vector at addresses that are not consecutive, by whole vectors and shuffles; None if there is no
    such way.
    """
    size, width = element.bytes, lanes.width
    if pointer.repeated is not None:
        own = pointer.repeated
        if own.step != str(size) or not is_true(mask):
            return None
        part = _vector_at(lanes, element, own.base, width // own.times)
        spread = [lane // own.times for lane in range(width)]
        return _shuffled(lanes, element, width // own.times, part, "poison", spread)
    if pointer.step == str(-size):
        return _load_backwards(lanes, pointer, element, mask, passthru)
    if pointer.step == str(2 * size) and is_true(mask) and width > 1:
        # The second vector ends with the last element that is asked for: behind it there may be no memory.
        first = _vector_at(lanes, element, pointer.text, width)
        second = _vector_at(lanes, element, lanes.emit.offset(pointer.text, str((width - 1) * size)), width)
        places = [2 * k if 2 * k < width else 2 * k + 1 for k in range(width)]
        return _shuffled(lanes, element, width, first, second, places)
    return None


def _load_backwards(
    lanes: LaneEmitter, pointer: Lane, element: ScalarType | PointerType, mask: Lane, passthru: str
) -> str:
    width, size = lanes.width, element.bytes
    turn = list(reversed(range(width)))
    low = lanes.emit.offset(pointer.text, str(-(width - 1) * size))
    if is_true(mask):
        text = _vector_at(lanes, element, low, width)
    else:
        bits = vector_of("i1", width)
        turned = lanes.emit.op(f"shufflevector {bits} {lanes.vector(mask)}, {bits} poison, {_places(turn)}")
        other = passthru
        if passthru != "zeroinitializer":
            other = _shuffled(lanes, element, width, passthru, "poison", turn)
        text = lanes.masked_load(llvm_type(element, width), low, 1, turned, other, element)
    return _shuffled(lanes, element, width, text, "poison", turn)


def backwards(
    lanes: LaneEmitter, pointer: Lane, element: ScalarType | PointerType, text: str
) -> tuple[str, Lane]:
    """A vector that is stored backwards: turned, and where it goes."""
    width, size = lanes.width, element.bytes
    low = lanes.emit.offset(pointer.text, str(-(width - 1) * size))
    turned = _shuffled(lanes, element, width, text, "poison", list(reversed(range(width))))
    return turned, Lane(low, pointer.type, 0, str(size))


def _vector_at(lanes: LaneEmitter, element: ScalarType | PointerType, address: str, count: int) -> str:
    return lanes.emit.op(f"load {vector_of(llvm_scalar(element), count)}, ptr {address}, align 1")


def _shuffled(
    lanes: LaneEmitter,
    element: ScalarType | PointerType,
    count: int,
    first: str,
    second: str,
    places: list[int],
) -> str:
    kind = vector_of(llvm_scalar(element), count)
    return lanes.emit.op(f"shufflevector {kind} {first}, {kind} {second}, {_places(places)}")


def _places(places: list[int]) -> str:
    return f"<{len(places)} x i32> <{', '.join(f'i32 {place}' for place in places)}>"
