"""What the functions of libdevice mean, on Python's numbers: integers and exact fractions.

Functions that are approximations are judged elsewhere (tests/maths); here are those with one right answer.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.maths.test_directed import rounded

KINDS: dict[str, Any] = {"fp32": np.float32, "fp64": np.float64}
Number = int | float
Reference = Callable[..., Number | None]


def bits(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def signed(value: int, width: int) -> int:
    value = bits(value, width)
    return value - (1 << width) if value >> (width - 1) else value


def width_of(type_: str) -> int:
    return int(type_.lstrip("uintfp"))


def byte_perm(x: int, y: int, selector: int) -> int:
    source = bits(y, 32) << 32 | bits(x, 32)
    parts = [(source >> (8 * ((selector >> (4 * i)) & 7))) & 0xFF for i in range(4)]
    return signed(sum(part << (8 * i) for i, part in enumerate(parts)), 32)


def saturated(value: float, direction: str, target: str) -> int:
    """Round to an integral value, then to the nearest end of the range; NaN gives 0."""
    width = width_of(target)
    low, high = (0, (1 << width) - 1) if target[0] == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        whole = high if value > 0 else low
    else:
        functions: dict[str, Callable[[Fraction], int]] = {
            "rn": round,
            "rz": math.trunc,
            "rd": math.floor,
            "ru": math.ceil,
        }
        whole = functions[direction](Fraction(value))
    return signed(min(max(whole, low), high), width)


def half_away(x: float) -> float:
    if not abs(x) < 2.0**52:
        return x
    return math.copysign(float(math.floor(abs(Fraction(x)) + Fraction(1, 2))), x)


def reinterpreted(x: float, source: str, target: str) -> Number | None:
    """The bits of a number as another type; those of a NaN are promised to nobody."""
    return None if math.isnan(x) else struct.unpack(f"<{target}", struct.pack(f"<{source}", x))[0]


def number(exact: Fraction, direction: str, target: str, zero: float = 0.0) -> float:
    kind = KINDS[target]
    if exact == 0:
        return zero
    if direction != "rn":
        return rounded(exact, direction, kind)
    # The nearer of the two neighbours, the even one in the middle.
    low, high = kind(rounded(exact, "rd", kind)), kind(rounded(exact, "ru", kind))
    with np.errstate(all="ignore"):
        if low == high:
            return float(low)
        largest = Fraction(float(np.finfo(kind).max))
        step = largest - Fraction(float(np.nextafter(np.finfo(kind).max, kind(0))))
    below = Fraction(float(low)) if np.isfinite(low) else -largest - step
    above = Fraction(float(high)) if np.isfinite(high) else largest + step
    if exact - below != above - exact:
        return float(low) if exact - below < above - exact else float(high)
    word = np.uint32 if target == "fp32" else np.uint64
    return float(low) if int(low.view(word)) % 2 == 0 else float(high)


def narrow(value: float, direction: str) -> float:
    if not math.isfinite(value):
        return value
    return number(Fraction(value), direction, "fp32", math.copysign(0.0, value))


def subtract(x: float, y: float, direction: str, target: str) -> float | None:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x - y
    exact = Fraction(x) - Fraction(y)
    if exact:
        return number(exact, direction, target)
    signs = (math.copysign(1, x), -math.copysign(1, y))
    negative = min(signs) < 0 if direction == "rd" else max(signs) < 0
    return -0.0 if negative else 0.0


def reciprocal(x: float, direction: str, target: str) -> float:
    if x == 0 or not math.isfinite(x):
        return math.copysign(math.inf, x) if x == 0 else math.nan if math.isnan(x) else math.copysign(0.0, x)
    return number(1 / Fraction(x), direction, target)


def reciprocal_root(x: float) -> float:
    """The fp32 nearest to 1 / sqrt(x): its neighbours' middles are compared with squares."""
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return math.copysign(math.inf, x) if x == 0 else 0.0
    guess = np.float32(1 / math.sqrt(x))
    for candidate in (guess, np.nextafter(guess, np.float32(0)), np.nextafter(guess, np.float32(np.inf))):
        middle = [
            (Fraction(float(candidate)) + Fraction(float(np.nextafter(candidate, np.float32(end))))) / 2
            for end in (0, np.inf)
        ]
        if middle[0] ** 2 * Fraction(x) <= 1 <= middle[1] ** 2 * Fraction(x):
            return float(candidate)
    raise AssertionError(x)


def scaled(x: float, n: int, target: str) -> float:
    if not math.isfinite(x) or x == 0:
        return x
    return number(Fraction(x) * Fraction(2) ** max(min(n, 3000), -3000), "rn", target)


def exponent(x: float) -> int:
    if x == 0 or math.isnan(x):
        return -(2**31)
    return 2**31 - 1 if math.isinf(x) else math.frexp(x)[1] - 1


def exponent_as_float(x: float) -> float:
    if x == 0:
        return -math.inf
    return float(exponent(x)) if math.isfinite(x) else abs(x)


def ieee_remainder(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    return math.remainder(x, y)


def truncated_remainder(x: float, y: float) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0 else math.fmod(x, y)


def next_after(x: float, y: float, target: str) -> float:
    kind = KINDS[target]
    with np.errstate(all="ignore"):
        return float(np.nextafter(kind(x), kind(y)))


def upper_word(x: float) -> float:
    word = struct.unpack("<Q", struct.pack("<d", x))[0] & 0xFFFFFFFF00000000
    return float(struct.unpack("<d", struct.pack("<Q", word))[0])


def rcp64h(x: float) -> float:
    upper = upper_word(x)
    if math.isnan(upper):
        return math.nan
    return upper_word(1 / upper) if upper else math.copysign(math.inf, upper)


def reference_of(name: str, types: tuple[str, ...]) -> Reference | None:
    """The meaning of a function on arguments of these types; None if it is judged elsewhere."""
    width = width_of(types[0])
    unsigned = types[0][0] == "u"

    def wrapped(value: int) -> int:
        return bits(value, width) if unsigned else signed(value, width)

    table: dict[str, Reference] = {
        "clz": lambda x: width - bits(x, width).bit_length(),
        "popc": lambda x: bits(x, width).bit_count(),
        "ffs": lambda x: (x & -x).bit_length(),
        "brev": lambda x: signed(int(f"{bits(x, width):0{width}b}"[::-1], 2), width),
        "byte_perm": byte_perm,
        "mulhi": lambda x, y: (x * y) >> width,
        "mul24": lambda x, y: (
            wrapped((x & 0xFFFFFF) * (y & 0xFFFFFF)) if unsigned else wrapped(signed(x, 24) * signed(y, 24))
        ),
        "sad": lambda x, y, z: wrapped(abs(x - y) + z),
        "hadd": lambda x, y: (x + y) >> 1,
        "rhadd": lambda x, y: (x + y + 1) >> 1,
        "isnan": lambda x: int(math.isnan(x)),
        "isinf": lambda x: int(math.isinf(x)),
        "finitef": lambda x: int(math.isfinite(x)),
        "isfinited": lambda x: int(math.isfinite(x)),
        "signbit": lambda x: None if math.isnan(x) else int(math.copysign(1, x) < 0),
        "copysign": lambda x, y: None if math.isnan(y) else math.copysign(x, y),
        "nextafter": lambda x, y: next_after(x, y, types[0]),
        "ldexp": lambda x, n: scaled(x, n, types[0]),
        "scalbn": lambda x, n: scaled(x, n, types[0]),
        "ilogb": exponent,
        "logb": exponent_as_float,
        "fmod": truncated_remainder,
        "remainder": ieee_remainder,
        "saturatef": lambda x: 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0),
        "rcp64h": rcp64h,
        "rsqrt_rn": reciprocal_root,
        "nearbyint": lambda x: math.copysign(round(x), x) if math.isfinite(x) else x,
        "llrint": lambda x: saturated(x, "rn", "int64"),
        "llround": lambda x: (
            saturated(math.copysign(math.floor(abs(Fraction(x)) + Fraction(1, 2)), x), "rz", "int64")
            if math.isfinite(x) and abs(x) < 2.0**62
            else saturated(x, "rz", "int64")
        ),
        "hiloint2double": lambda high, low: struct.unpack("<d", struct.pack("<Ii", bits(low, 32), high))[0],
        "double2loint": lambda x: None if math.isnan(x) else struct.unpack("<ii", struct.pack("<d", x))[0],
        "double2hiint": lambda x: None if math.isnan(x) else struct.unpack("<ii", struct.pack("<d", x))[1],
        "int_as_float": lambda x: struct.unpack("<f", struct.pack("<i", x))[0],
        "uint_as_float": lambda x: struct.unpack("<f", struct.pack("<I", x))[0],
        "longlong_as_double": lambda x: struct.unpack("<d", struct.pack("<q", x))[0],
        "float_as_int": lambda x: None if math.isnan(x) else struct.unpack("<i", struct.pack("<f", x))[0],
        "float_as_uint": lambda x: None if math.isnan(x) else struct.unpack("<i", struct.pack("<f", x))[0],
        "double_as_longlong": lambda x: (
            None if math.isnan(x) else struct.unpack("<q", struct.pack("<d", x))[0]
        ),
    }
    if name in table:
        return table[name]
    base, _, direction = name.rpartition("_")
    if base == "sub":
        return lambda x, y: subtract(x, y, direction, types[0])
    if base == "rcp":
        return lambda x: reciprocal(x, direction, types[0])
    source, two, target = base.partition("2")
    names = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
    if base == "double2float":
        return lambda x: narrow(x, direction)
    if two and target in names:
        return lambda x: saturated(x, direction, names[target])
    if two and source in names:
        floating = {"float": "fp32", "double": "fp64"}[target]
        return lambda x: number(Fraction(x), direction, floating)
    return None
