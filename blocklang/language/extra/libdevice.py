"""NVIDIA's libdevice by name, as Triton offers it: `tl.extra.libdevice.tanh(x)`.

Every function is compiled to vector code of our own: accuracy is in docs/maths.md. The table says for each
name which types it takes and gives. `fast_` functions are the accurate ones; what a conversion does with
numbers out of range is what `tl.cast` does: it saturates, and NaN gives 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language import maths
from blocklang.language.casting import bitcast_element, cast_element
from blocklang.language.extra import bits, conversions
from blocklang.language.extra.conversions import DIRECTIONS
from blocklang.language.extra.library import define, floats, same
from blocklang.language.registry import library_function
from blocklang.language.tensor import emit, tensor, to_tensor
from blocklang.ops import elementwise as ops

_TABLE: dict[str, Callable[..., Any]] = {}
_NAMES = {"rn": "to nearest, ties to even", "rz": "toward zero", "rd": "down", "ru": "up"}
_FP32 = same("fp32")
_TO_INT = "fp32 -> int32; fp64 -> int32"


def _add(name: str, what: str, rows: str, body: Callable[..., Any]) -> None:
    _TABLE[name] = define(name, what, rows, body)


def _function(name: str) -> Callable[..., tensor]:
    """The function of an operation of this name."""
    operation = ops.FUNCTIONS.get(name) or ops.FUNCTIONS_OF_SEVERAL[name]
    return lambda *values: emit(operation, *values)


# Names that mean what they mean in `tl`.
for _builtin in (
    *(maths.abs, maths.floor, maths.rsqrt, maths.ceil, maths.trunc, maths.exp2, maths.sqrt, maths.rint),
    *(maths.sin, maths.cos, maths.tan, maths.log2, maths.exp, maths.tanh, maths.log, maths.log10),
    *(maths.log1p, maths.expm1, maths.erf),
):
    _TABLE[_builtin.__name__] = _builtin

for _name in (
    *("sinpi", "cospi", "exp10", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("cbrt", "rcbrt", "erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv", "tgamma", "lgamma"),
    *("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1", "round"),
):
    _text = (ops.FUNCTIONS[_name].__doc__ or "").partition("\n")[0]
    _add(_name, _text, floats(), _function(_name))

for _name, _operation in ops.FUNCTIONS_OF_SEVERAL.items():
    _text = (_operation.__doc__ or "").partition("\n")[0]
    if _name != "pow":
        _add(_name, _text, floats(len(_operation.operand_fields)), _function(_name))


# ---- arithmetic with a direction of rounding ----


def _negated(y: tensor) -> tensor:
    return emit(ops.Neg, y)


def _one_like(x: tensor) -> tensor:
    return cast_element(to_tensor(1.0), x.dtype)


def _subtraction(direction: str) -> Callable[[tensor, tensor], tensor]:
    add = _function(f"add_{direction}")
    return lambda x, y: add(x, _negated(y))


def _reciprocal(direction: str) -> Callable[[tensor], tensor]:
    if direction == "rn":
        return lambda x: emit(ops.Div, _one_like(x), x)
    divide = _function(f"div_{direction}")
    return lambda x: divide(_one_like(x), x)


_add("fma_rn", "x * y + z rounded once, to nearest.", floats(3), lambda x, y, z: emit(ops.Fma, x, y, z))
_add("fma", "x * y + z rounded once, to nearest.", floats(3), lambda x, y, z: emit(ops.Fma, x, y, z))
_add("div_rn", "The quotient rounded to nearest.", floats(2), lambda x, y: emit(ops.Div, x, y))
_add("sqrt_rn", "The square root rounded to nearest.", floats(), _function("sqrt"))
for _direction in DIRECTIONS:
    _text = _NAMES[_direction]
    _add(f"sub_{_direction}", f"The difference rounded {_text}.", floats(2), _subtraction(_direction))
    _add(f"rcp_{_direction}", f"1 / x rounded {_text}.", floats(), _reciprocal(_direction))
for _direction in DIRECTIONS[1:]:
    _text = _NAMES[_direction]
    _add(f"sqrt_{_direction}", f"The square root rounded {_text}.", floats(), _function(f"sqrt_{_direction}"))


def _rsqrt_rn(x: tensor) -> tensor:
    """In fp64 and rounded once: of all significands, none comes so near a tie that two roundings differ."""
    return cast_element(1.0 / maths.sqrt(cast_element(x, tl.float64)), tl.float32)


def _rcp64h(x: tensor) -> tensor:
    def upper(value: tensor) -> tensor:
        word = bitcast_element(value, tl.int64) >> 32 << 32
        return bitcast_element(word, tl.float64)

    return upper(1.0 / upper(x))


def _saturate(x: tensor) -> tensor:
    return maths.where(x > 0.0, maths.where(x < 1.0, x, 1.0), 0.0)


_add("rsqrt_rn", "1 / sqrt(x) rounded to nearest.", _FP32, _rsqrt_rn)
_add("rcp64h", "1 / x from and to the upper 32 bits of an fp64; the lower ones are 0.", same("fp64"), _rcp64h)
_add("saturatef", "x limited to [0, 1]; NaN gives 0.", _FP32, _saturate)

# ---- functions with integers ----


def _power(x: tensor, y: tensor) -> tensor:
    power = _function("pow")
    if y.dtype.is_int():  # fp64 holds every exponent, and so its parity
        wide = power(cast_element(x, tl.float64), cast_element(y, tl.float64))
        return cast_element(wide, x.dtype)
    return power(x, y)


def _remainder(x: tensor, y: tensor) -> tensor:
    """x - n y, n the nearest integer to x / y, ties to even: from the remainder over 2 y, which is exact."""
    size, divisor = maths.abs(x), maths.abs(y)
    double = divisor + divisor
    # Twice a huge divisor is infinite, and leaves x.
    rest = emit(ops.Rem, size, double)
    half = divisor * 0.5
    tiny = divisor < (2.0**-125 if x.dtype == tl.float32 else 2.0**-1021)
    over = maths.where(tiny, rest + rest > divisor, rest > half)
    first = maths.where(over, rest - divisor, rest)
    again = maths.where(tiny, first + first >= divisor, first >= half) & over
    second = maths.where(again, first - divisor, first)
    flipped = emit(ops.Neg, second)
    value = maths.where(bits.signbit(x) != 0, flipped, second)
    invalid = (y == 0.0) | (size == float("inf")) | (x != x) | (y != y)
    return maths.where(invalid, float("nan"), value)


_WITH_EXPONENT = "fp32, int32 -> fp32; fp64, int32 -> fp64"
_add("pow", "x to the power of y; y may be int32.", f"{_WITH_EXPONENT}; {floats(2)}", _power)
_add("ldexp", "x 2**n, rounded once.", _WITH_EXPONENT, bits.ldexp)
_add("scalbn", "x 2**n, rounded once.", _WITH_EXPONENT, bits.ldexp)
_add("ilogb", "The exponent of x; the smallest int32 for 0 and NaN.", _TO_INT, bits.ilogb)
_add("logb", "The exponent of x as a float.", floats(), bits.logb)
_add("fmod", "The remainder with the sign of x.", floats(2), lambda x, y: emit(ops.Rem, x, y))
_add("remainder", "x - n y with n the nearest integer to x / y, ties to even.", floats(2), _remainder)
_add("nextafter", "The neighbour of x toward y.", floats(2), bits.nextafter)
_add("copysign", "The size of x with the sign of y.", floats(2), bits.copysign)
_add("nearbyint", "The nearest integral value, ties to even.", floats(), _function("rint"))

# ---- tests, which give 1 or 0 ----


def _is_finite(x: tensor) -> tensor:
    return cast_element(maths.abs(x) < float("inf"), tl.int32)


_add("isnan", "1 for NaN.", _TO_INT, lambda x: cast_element(x != x, tl.int32))
_add("isinf", "1 for an infinity.", _TO_INT, lambda x: cast_element(maths.abs(x) == float("inf"), tl.int32))
_add("finitef", "1 for a finite number.", "fp32 -> int32", _is_finite)
_add("isfinited", "1 for a finite number.", "fp64 -> int32", _is_finite)
_add("signbit", "1 where the sign bit is set.", _TO_INT, bits.signbit)

# ---- integers ----

_INTS = same("int32", "int64")
_COUNTS = "int32 -> int32; int64 -> int32"
_WORDS = same("int32", "uint32", count=2)
_add("clz", "The number of leading zero bits.", _COUNTS, bits.clz)
_add("popc", "The number of bits that are 1.", _COUNTS, bits.popc)
_add("ffs", "The position of the lowest 1, from 1 on; 0 if there is none.", _COUNTS, bits.ffs)
_add("brev", "The bits in reverse order.", _INTS, bits.brev)
_add("byte_perm", "Four of the eight bytes of y:x.", same("int32", count=3), bits.byte_perm)
_add(
    "mulhi",
    "The upper half of the product.",
    same("int32", "uint32", "int64", "uint64", count=2),
    bits.mulhi,
)
_add("mul24", "The product of the low 24 bits.", _WORDS, bits.mul24)
_add("sad", "|x - y| + z.", "int32, int32, uint32 -> int32; uint32, uint32, uint32 -> uint32", bits.sad)
_add("hadd", "(x + y) >> 1 without overflow.", _WORDS, bits.hadd)
_add("rhadd", "(x + y + 1) >> 1 without overflow.", _WORDS, bits.rhadd)

# ---- conversions ----

for _direction in DIRECTIONS:
    _text = _NAMES[_direction]
    _add(
        f"double2float_{_direction}",
        f"fp64 to fp32, rounded {_text}.",
        "fp64 -> fp32",
        conversions.double_to_float(_direction),
    )
    for _word, _source in (("float", "fp32"), ("double", "fp64")):
        for _suffix, _target in (("int", "int32"), ("uint", "uint32"), ("ll", "int64"), ("ull", "uint64")):
            _result = _target.lstrip("u")
            _add(
                f"{_word}2{_suffix}_{_direction}",
                f"{_source} to {_target}, rounded {_text}"
                + (f"; the bits as {_result}." if _result != _target else "."),
                f"{_source} -> {_result}",
                conversions.float_to_integer(_direction, tl.dtype(_target)),
            )
    for _suffix, _source in (("int", "int32"), ("uint", "uint32"), ("ll", "int64"), ("ull", "uint64")):
        for _word, _target in (("float", "fp32"), ("double", "fp64")):
            if _direction == "rn" or _word == "float" or _source.endswith("64"):
                _add(
                    f"{_suffix}2{_word}_{_direction}",
                    f"{_source} to {_target}, rounded {_text}.",
                    f"{_source} -> {_target}",
                    conversions.integer_to_float(_direction, tl.dtype(_target)),
                )

for _name, _source, _target in (
    ("int_as_float", "int32", "fp32"),
    ("float_as_int", "fp32", "int32"),
    ("uint_as_float", "uint32", "fp32"),
    ("float_as_uint", "fp32", "int32"),
    ("longlong_as_double", "int64", "fp64"),
    ("double_as_longlong", "fp64", "int64"),
):
    _add(
        _name,
        f"The bits of {_source} as {_target}.",
        f"{_source} -> {_target}",
        conversions.bits(tl.dtype(_target)),
    )

_add("hiloint2double", "fp64 of its upper and lower word.", "int32, int32 -> fp64", bits.double_of_words)
_add("double2loint", "The lower word of fp64.", "fp64 -> int32", bits.low_word)
_add("double2hiint", "The upper word of fp64.", "fp64 -> int32", bits.high_word)
_TO_LONG = "fp32 -> int64; fp64 -> int64"
_add(
    "llrint",
    "The nearest integer, ties to even, as int64.",
    _TO_LONG,
    conversions.float_to_integer("rn", tl.int64),
)
_add(
    "llround",
    "The nearest integer, ties away from zero, as int64.",
    _TO_LONG,
    lambda x: cast_element(emit(ops.FUNCTIONS["round"], x), tl.int64),
)

# ---- fast names: the accurate functions ----

for _name in ("sin", "cos", "log2", "log", "exp", "tan", "exp10", "log10", "tanh"):
    _add(f"fast_{_name}f", f"The same as `{_name}`.", _FP32, _function(_name))
_add("fast_powf", "The same as `pow`.", same("fp32", count=2), _function("pow"))
_add("fast_dividef", "The quotient.", same("fp32", count=2), lambda x, y: emit(ops.Div, x, y))

# ---- what is not here ----

_REFUSED = {
    "jn": "the recurrence over its order needs a loop in every lane",
    "yn": "the recurrence over its order needs a loop in every lane",
}


def _refusal(name: str, reason: str) -> Callable[..., Any]:
    def function(arg0: Any, arg1: Any) -> tensor:
        raise CompilationError(
            f"`libdevice.{name}` is not supported: {reason}",
            help="use j0, j1, y0 and y1 and write the recurrence for a fixed order in the kernel",
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Not supported: {reason}."
    return library_function(function)


for _name, _reason in _REFUSED.items():
    _TABLE[_name] = _refusal(_name, _reason)

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    if name in _TABLE:
        return _TABLE[name]
    raise AttributeError(f"libdevice has no {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
