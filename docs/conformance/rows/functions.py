"""Section 4, functions of a lane: `tl.math`, libdevice, random numbers, inline assembly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import blocklang.language as tl
from docs.conformance.kernels import DTYPES, Array, Kernel, Refuses, ulp
from docs.conformance.model import Host, Row

_MATHS = [
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "sqrt",
    "sqrt_rn",
    "rsqrt",
    "erf",
    "floor",
    "ceil",
    "abs",
]


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's numbers, over arrays."""
    return lambda *arrays: np.vectorize(function, otypes=[np.float64])(
        *(a.astype(np.float64) for a in arrays)
    )


def _special(name: str) -> Callable[..., Any] | None:
    """A function of SciPy; None if it is not installed."""
    try:
        import scipy.special
    except ImportError:
        return None
    function: Callable[..., Any] = getattr(scipy.special, name)
    return lambda *arrays: function(*(a.astype(np.float64) for a in arrays))


_NUMPY: dict[str, Callable[..., Any]] = {
    **{
        n: getattr(np, n)
        for n in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "floor", "ceil", "abs")
    },
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def _maths() -> list[Row]:
    group = "Functions of tl.math"
    rows = []
    for name in _MATHS:
        for dtype in ("fp32",) if name == "sqrt_rn" else ("fp32", "fp64"):
            wanted = _NUMPY.get(name) or _each(math.erf)
            rows.append(
                Row(
                    group,
                    f"{name} {dtype}",
                    Kernel(
                        f"r = tl.{name}(x)",
                        (dtype,),
                        dtype,
                        wanted=wanted,
                        rtol=ulp(dtype),
                        numpy=name in _NUMPY,
                    ),
                )
            )
        rows.append(Row(group, f"tl.math.{name}", Host(lambda n=name: getattr(tl.math, n) is getattr(tl, n))))  # type: ignore[misc]
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "fp16", "bf16"):
        rows.append(
            Row(
                group,
                f"abs {dtype}",
                Kernel("r = tl.abs(x)", (dtype,), dtype, wanted=np.abs, numpy=dtype != "bf16"),
            )
        )
    for dtype in ("fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16"):
        rows.append(Row(group, f"abs {dtype}", Kernel("r = tl.abs(x)", (dtype,), dtype, wanted=lambda x: x)))
    rows.append(
        Row(
            group,
            "abs fp8e4b15",
            Kernel(
                "r = tl.abs(x.to(tl.float8e4b15, bitcast=True)).to(tl.uint8, bitcast=True)",
                (np.arange(64, dtype=np.uint8) * 3,),
                "uint8",
                wanted=lambda x: x & 127,
            ),
        )
    )
    for dtype in ("fp16", "bf16", "fp32", "fp64"):
        rows.append(
            Row(
                group,
                f"fma {dtype}",
                Kernel(
                    "r = tl.fma(x, y, z)",
                    (dtype,) * 3,
                    dtype,
                    rtol=ulp(dtype),
                    wanted=lambda x, y, z: x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64),
                ),
            )
        )
    for dtype in ("fp32", "fp64"):
        rows.append(
            Row(
                group,
                f"fdiv {dtype}",
                Kernel("r = tl.fdiv(x, y)", (dtype,) * 2, dtype, wanted=np.divide, numpy=True),
            )
        )
    rows += [
        Row(
            group,
            "fdiv(ieee_rounding)",
            Kernel("r = tl.fdiv(x, y, ieee_rounding=True)", ("fp32",) * 2, wanted=np.divide),
        ),
        Row(group, "div_rn fp32", Kernel("r = tl.div_rn(x, y)", ("fp32",) * 2, wanted=np.divide, numpy=True)),
        Row(
            group,
            "sigmoid",
            Kernel("r = tl.sigmoid(x)", wanted=lambda x: 1 / (1 + np.exp(-x)), rtol=ulp("fp32"), numpy=True),
        ),
        Row(group, "softmax(x)", Kernel("r = tl.softmax(x)", wanted=_softmax, rtol=1e-5, numpy=True)),
        Row(
            group,
            "softmax(dim)",
            Kernel(
                "r = tl.softmax(x.reshape(8, 8), dim=1)",
                shape=(8, 8),
                rtol=1e-5,
                wanted=lambda x: _softmax(x.reshape(8, 8)),
            ),
        ),
        Row(
            group,
            "softmax's default dim is 0",
            Kernel(
                "r = tl.softmax(x.reshape(8, 8))",
                shape=(8, 8),
                rtol=1e-5,
                wanted=lambda x: _softmax(x.reshape(8, 8).T).T,
            ),
        ),
        Row(
            group,
            "softmax(keep_dims)",
            Kernel("r = tl.softmax(x, keep_dims=True)", wanted=_softmax, rtol=1e-5),
        ),
        Row(
            group,
            "softmax(ieee_rounding)",
            Kernel("r = tl.softmax(x, ieee_rounding=True)", wanted=_softmax, rtol=1e-5),
        ),
        Row(group, "exp of fp16 is refused", Refuses(Kernel("r = tl.exp(x)", ("fp16",)), "(?i)fp32|fp16")),
        Row(group, "exp of bf16 is refused", Refuses(Kernel("r = tl.exp(x)", ("bf16",)), "(?i)fp32|bf16")),
        Row(
            group,
            "sqrt_rn of fp64 is refused",
            Refuses(Kernel("r = tl.sqrt_rn(x)", ("fp64",)), "(?i)fp32|fp64"),
        ),
        Row(
            group,
            "exp of integers is refused",
            Refuses(Kernel("r = tl.exp(x)", ("int32",)), "(?i)fp32|int32|floats"),
        ),
    ]
    for dtype in ("int32", "uint32", "int64", "uint64"):
        rows.append(
            Row(
                group,
                f"umulhi {dtype}",
                Kernel(
                    "r = tl.umulhi(x * 123456789, y * 123456789)", (dtype,) * 2, dtype, wanted=_upper_half
                ),
            )
        )
    for name in ("fma", "fdiv", "div_rn", "umulhi"):
        rows.append(Row(group, f"tl.math.{name}", Host(lambda n=name: getattr(tl.math, n) is getattr(tl, n))))  # type: ignore[misc]
    return rows


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def _upper_half(x: Array, y: Array) -> Array:
    kind, bits = x.dtype, x.dtype.itemsize * 8
    factor = kind.type(123456789)
    with np.errstate(all="ignore"):
        pairs = zip((x * factor).ravel().tolist(), (y * factor).ravel().tolist(), strict=True)
    # The upper half of the unsigned product, whatever the sign of the type.
    mask = (1 << bits) - 1
    upper = [((a & mask) * (b & mask)) >> bits for a, b in pairs]
    return np.array(upper, f"u{bits // 8}").view(kind).reshape(x.shape)


# ---- libdevice ----

# Names by the types that they take and give. `f` is float or double, alike in every place.
LIBDEVICE: dict[str, str] = {
    "f -> f": (
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf "
        "erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 floor j0 j1 lgamma log log10 log1p log2 "
        "logb nearbyint normcdf normcdfinv rcbrt rcp_rd rcp_rn rcp_ru rcp_rz rint round rsqrt sin "
        "sinh sinpi sqrt sqrt_rd sqrt_rn sqrt_ru sqrt_rz tan tanh tgamma trunc y0 y1 abs"
    ),
    "fp32 -> fp32": (
        "fast_cosf fast_exp10f fast_expf fast_log10f fast_log2f fast_logf fast_sinf fast_tanf "
        "fast_tanhf rsqrt_rn saturatef"
    ),
    "fp32 fp32 -> fp32": "fast_dividef fast_powf",
    "f f -> f": (
        "add_rd add_rn add_ru add_rz atan2 copysign div_rd div_rn div_ru div_rz fdim fmod hypot "
        "mul_rd mul_rn mul_ru mul_rz nextafter pow remainder rhypot sub_rd sub_rn sub_ru sub_rz"
    ),
    "f f f -> f": "fma fma_rd fma_rn fma_ru fma_rz norm3d rnorm3d",
    "f f f f -> f": "norm4d rnorm4d",
    "f -> int32": "ilogb isinf isnan signbit",
    "f -> int64": "llrint llround",
    "fp32 -> int32": (
        "finitef float2int_rd float2int_rn float2int_ru float2int_rz float2uint_rd float2uint_rn "
        "float2uint_ru float2uint_rz float_as_int float_as_uint"
    ),
    "fp32 -> int64": (
        "float2ll_rd float2ll_rn float2ll_ru float2ll_rz float2ull_rd float2ull_rn float2ull_ru float2ull_rz"
    ),
    "fp64 -> fp32": "double2float_rd double2float_rn double2float_ru double2float_rz",
    "fp64 -> int32": (
        "double2hiint double2int_rd double2int_rn double2int_ru double2int_rz double2loint "
        "double2uint_rd double2uint_rn double2uint_ru double2uint_rz isfinited"
    ),
    "fp64 -> int64": (
        "double2ll_rd double2ll_rn double2ll_ru double2ll_rz double2ull_rd double2ull_rn "
        "double2ull_ru double2ull_rz double_as_longlong"
    ),
    "fp64 -> fp64": "rcp64h",
    "f int32 -> f": "ldexp scalbn",
    "int32 f -> f": "jn yn",
    "int32 -> int32": "brev clz ffs popc",
    "int32 int32 -> int32": "hadd mul24 mulhi rhadd",
    "int32 int32 int32 -> int32": "byte_perm",
    "int32 int32 uint32 -> int32": "sad",
    "int32 int32 -> fp64": "hiloint2double",
    "int32 -> fp64": "int2double_rn",
    "int32 -> fp32": "int2float_rd int2float_rn int2float_ru int2float_rz int_as_float",
    "uint32 -> fp64": "uint2double_rn",
    "uint32 -> fp32": "uint2float_rd uint2float_rn uint2float_ru uint2float_rz uint_as_float",
    "int64 -> fp64": "ll2double_rd ll2double_rn ll2double_ru ll2double_rz longlong_as_double",
    "int64 -> fp32": "ll2float_rd ll2float_rn ll2float_ru ll2float_rz",
    "uint64 -> fp64": "ull2double_rd ull2double_rn ull2double_ru ull2double_rz",
    "uint64 -> fp32": "ull2float_rd ull2float_rn ull2float_ru ull2float_rz",
}
NAMES = tuple(sorted(name for names in LIBDEVICE.values() for name in names.split()))
# What an argument is drawn from, where a sample in [0.1, 2.1) leaves the function's domain.
_UNIT = ("asin", "acos", "atanh", "erfinv", "normcdfinv")


def _bits(value: int) -> int:
    return value & 0xFFFFFFFF


def _signed(value: int) -> int:
    value = _bits(value)
    return value - (1 << 32) if value >> 31 else value


_INTEGERS: dict[str, Callable[..., int]] = {
    "brev": lambda x: _signed(int(f"{_bits(x):032b}"[::-1], 2)),
    "clz": lambda x: 32 - _bits(x).bit_length(),
    "ffs": lambda x: (x & -x).bit_length(),
    "popc": lambda x: _bits(x).bit_count(),
    "hadd": lambda x, y: (x + y) >> 1,
    "rhadd": lambda x, y: (x + y + 1) >> 1,
    "mul24": lambda x, y: _signed(x * y),
    "mulhi": lambda x, y: (x * y) >> 32,
    "sad": lambda x, y, z: abs(x - y) + z,
}
# Names that NumPy has under this or another one, computed in the arguments' type.
_THEIRS: dict[str, Callable[..., Any]] = {
    **{
        n: getattr(np, n)
        for n in (
            "ceil",
            "cos",
            "cosh",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "log",
            "log10",
            "log1p",
            "log2",
            "rint",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "trunc",
            "cbrt",
            "abs",
            "copysign",
            "fmod",
            "hypot",
            "nextafter",
            "isnan",
            "isinf",
            "signbit",
            "ldexp",
        )
    },
    **{n: getattr(np, f"arc{n[1:]}") for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2")},
    **{
        f"{n}_rn": getattr(np, f)
        for n, f in (
            ("add", "add"),
            ("sub", "subtract"),
            ("mul", "multiply"),
            ("div", "divide"),
            ("sqrt", "sqrt"),
        )
    },
    **{f"fast_{n}f": getattr(np, n) for n in ("cos", "exp", "log10", "log2", "log", "sin", "tan", "tanh")},
    "fast_dividef": np.divide,
    "fast_powf": np.power,
    "pow": np.power,
    "scalbn": np.ldexp,
    "nearbyint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp_rn": lambda x: 1 / x,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
}
_IN_DOUBLE: dict[str, Callable[..., Any]] = {
    "cospi": lambda x: np.cos(np.pi * x),
    "sinpi": lambda x: np.sin(np.pi * x),
    "exp10": lambda x: 10**x,
    "fast_exp10f": lambda x: 10**x,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "saturatef": lambda x: np.clip(x, 0, 1),
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": lambda *v: np.sqrt(sum(a * a for a in v)),
    "norm4d": lambda *v: np.sqrt(sum(a * a for a in v)),
    "rnorm3d": lambda *v: 1 / np.sqrt(sum(a * a for a in v)),
    "rnorm4d": lambda *v: 1 / np.sqrt(sum(a * a for a in v)),
    "erf": np.vectorize(math.erf),
    "erfc": np.vectorize(math.erfc),
    "tgamma": np.vectorize(math.gamma),
    "lgamma": np.vectorize(math.lgamma),
    "logb": lambda x: np.floor(np.log2(x)),
    "ilogb": lambda x: np.floor(np.log2(x)),
    "round": lambda x: np.floor(x + 0.5),
    "remainder": np.vectorize(math.remainder),
    "llrint": np.rint,
    "llround": lambda x: np.floor(x + 0.5),
    "fma": lambda x, y, z: x * y + z,
}
_SCIPY = {
    "cyl_bessel_i0": "i0",
    "cyl_bessel_i1": "i1",
    "j0": "j0",
    "j1": "j1",
    "y0": "y0",
    "y1": "y1",
    "erfcx": "erfcx",
    "erfinv": "erfinv",
    "erfcinv": "erfcinv",
    "normcdf": "ndtr",
    "normcdfinv": "ndtri",
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}
_ROUND = {"rd": np.floor, "ru": np.ceil, "rz": np.trunc, "rn": np.rint}
_VIEWS = {
    "float_as_int": np.int32,
    "float_as_uint": np.int32,
    "int_as_float": np.float32,
    "uint_as_float": np.float32,
    "double_as_longlong": np.int64,
    "longlong_as_double": np.float64,
}


def _reference(name: str) -> Callable[..., Any] | None:
    """What a function gives on the arrays of a sample; None if only the modes can be compared."""
    if name in _THEIRS:
        return _THEIRS[name]
    if name in _VIEWS:
        return lambda x: x.view(_VIEWS[name])
    if name in _INTEGERS:
        function = np.vectorize(_INTEGERS[name], otypes=[np.int64])
        return lambda *arrays: function(*(a.astype(np.int64).astype(object) for a in arrays))
    if name in _IN_DOUBLE:
        return lambda *arrays: _IN_DOUBLE[name](*(a.astype(np.float64) for a in arrays))
    if name in _SCIPY:
        return _special(_SCIPY[name])
    words = {"double2hiint": 1, "double2loint": 0}
    if name in words:
        return lambda x: x.view(np.int32).reshape(*x.shape, 2)[..., words[name]]
    base, _, direction = name.rpartition("_")
    if base in _PLAIN:
        return lambda *arrays: _PLAIN[base](*(a.astype(np.float64) for a in arrays))
    if base in (
        "float2int",
        "float2uint",
        "float2ll",
        "float2ull",
        "double2int",
        "double2uint",
        "double2ll",
        "double2ull",
    ):
        return _ROUND[direction]
    if base.endswith(("2float", "2double")):
        return lambda x: x.astype(np.float64)
    return None


def _libdevice() -> list[Row]:
    rows = []
    for types, names in LIBDEVICE.items():
        left, _, right = types.partition(" -> ")
        for name in names.split():
            for dtype in ("fp32", "fp64") if "f" in types.split() else ("",):
                inputs = [dtype if t == "f" else t for t in left.split()]
                out = dtype if right == "f" else right
                label = f"{name} {dtype}".strip()
                rows.append(Row("libdevice", label, _function(name, inputs, out)))
    for dtype in ("int32", "int64"):
        rows.append(Row("libdevice", f"abs {dtype}", _function("abs", [dtype], dtype)))
    module = "tl.extra.{0}.libdevice.{1}"
    for device in ("cuda", "hip"):
        kernel = Kernel("r = " + module.format(device, "exp(x)"), wanted=np.exp, rtol=ulp("fp32"))
        rows.append(Row("libdevice", f"tl.extra.{device}.libdevice", kernel))
    return rows


def _function(name: str, inputs: list[str], out: str) -> Kernel:
    arguments = ["x", "y", "z", "x"][: len(inputs)]
    if name in _UNIT:
        arguments = ["x * 0.4"]
    elif name == "acosh":
        arguments = ["x + 1.0"]
    elif name == "byte_perm":
        arguments = ["x", "y", "z * 0 + 0x5410"]
    elif name in ("ldexp", "scalbn"):
        arguments = ["x", "(y & 7)"]
    wanted = _reference(name)
    scaled: Callable[..., Any] | None = wanted
    if wanted is not None:
        function = wanted
        if name in _UNIT:
            scaled = lambda x: function(x * x.dtype.type(0.4))  # noqa: E731
        elif name == "acosh":
            scaled = lambda x: function(x + x.dtype.type(1))  # noqa: E731
        elif name in ("ldexp", "scalbn"):
            scaled = lambda x, y: function(x, y & 7)  # noqa: E731
        elif name in ("norm4d", "rnorm4d"):
            scaled = lambda x, y, z: function(x, y, z, x)  # noqa: E731
    elif name == "byte_perm":
        scaled = lambda x, y, z: ((x & 0xFFFF) | (y << 16)).astype(np.int32)  # noqa: E731
    elif name == "hiloint2double":
        scaled = _two_words
    elif name == "rcp64h":
        scaled = _rcp64h
    tolerance = ulp(out, 32) if out in ("fp32", "fp64") else 0.0
    code = f"r = tl.extra.libdevice.{name}({', '.join(arguments)})"
    return Kernel(
        code,
        tuple(inputs[:3]),
        out,
        wanted=scaled,
        rtol=tolerance,
        numpy=scaled if name in _THEIRS and scaled else False,
    )


def _two_words(x: Array, y: Array) -> Array:
    words: Array = (x.astype(np.int64) << 32) | (y.astype(np.int64) & 0xFFFFFFFF)
    return words.view(np.float64)


def _rcp64h(x: Array) -> Array:
    def upper(value: Array) -> Array:
        return (value.view(np.int64) >> 32 << 32).view(np.float64)

    return upper(1 / upper(x))


# ---- random numbers ----


def _philox(c: list[Array], k0: int, k1: int, rounds: int = 10) -> list[Array]:
    """Philox4x32 on uint32 counters, in 64-bit integers."""
    mask = np.uint64(0xFFFFFFFF)
    a, b = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
    w = [v.astype(np.uint64) for v in c]
    for _ in range(rounds):
        p, q = w[0] * a, w[2] * b
        w = [
            (q >> np.uint64(32)) ^ w[1] ^ np.uint64(k0),
            q & mask,
            (p >> np.uint64(32)) ^ w[3] ^ np.uint64(k1),
            p & mask,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [v.astype(np.uint32) for v in w]


def _words(x: Array, seed: int = 42, rounds: int = 10) -> list[Array]:
    index = np.arange(x.size, dtype=np.uint32).reshape(x.shape)
    zero = np.zeros_like(index)
    return _philox([index, zero, zero, zero], seed, 0, rounds)


def _uniform(word: Array) -> Array:
    signed = word.view(np.int32)
    signed = np.where(signed < 0, -signed - 1, signed)
    return np.asarray(signed.astype(np.float32) * np.float32(4.6566127342e-10))


def _normal(u: Array, v: Array) -> tuple[Array, Array]:
    radius = np.sqrt(-2 * np.log(np.maximum(u, np.float32(1e-7))))
    angle = np.float32(2 * math.pi) * v
    return radius * np.cos(angle), radius * np.sin(angle)


def _random() -> list[Row]:
    group = "Random numbers"
    four = "a, b, c, d = tl.{0}(42, i)\nr = {1}"
    near = 1e-4
    table: dict[str, tuple[str, str, Callable[..., Any], float]] = {
        "randint(seed, offset)": ("r = tl.randint(42, i)", "uint32", lambda x: _words(x)[0], 0),
        "randint(n_rounds)": (
            "r = tl.randint(42, i, n_rounds=7)",
            "uint32",
            lambda x: _words(x, rounds=7)[0],
            0,
        ),
        "randint4x(seed, offset)": (four.format("randint4x", "d"), "uint32", lambda x: _words(x)[3], 0),
        "randint4x(n_rounds)": (
            "a, b, c, r = tl.randint4x(42, i, n_rounds=7)",
            "uint32",
            lambda x: _words(x, rounds=7)[3],
            0,
        ),
        "rand(seed, offset)": ("r = tl.rand(42, i)", "fp32", lambda x: _uniform(_words(x)[0]), 0),
        "rand(n_rounds)": (
            "r = tl.rand(42, i, n_rounds=7)",
            "fp32",
            lambda x: _uniform(_words(x, rounds=7)[0]),
            0,
        ),
        "rand4x(seed, offsets)": (four.format("rand4x", "c"), "fp32", lambda x: _uniform(_words(x)[2]), 0),
        "rand4x(n_rounds)": (
            "a, b, r, d = tl.rand4x(42, i, n_rounds=7)",
            "fp32",
            lambda x: _uniform(_words(x, rounds=7)[2]),
            0,
        ),
        "randn(seed, offset)": (
            "r = tl.randn(42, i)",
            "fp32",
            lambda x: _normal(_uniform(_words(x)[0]), _uniform(_words(x)[1]))[0],
            near,
        ),
        "randn(n_rounds)": (
            "r = tl.randn(42, i, n_rounds=7)",
            "fp32",
            lambda x: _normal(_uniform(_words(x, rounds=7)[0]), _uniform(_words(x, rounds=7)[1]))[0],
            near,
        ),
        "randn4x(seed, offset)": (
            four.format("randn4x", "d"),
            "fp32",
            lambda x: _normal(_uniform(_words(x)[2]), _uniform(_words(x)[3]))[1],
            near,
        ),
        "randn4x(n_rounds)": (
            "a, r, c, d = tl.randn4x(42, i, n_rounds=7)",
            "fp32",
            lambda x: _normal(_uniform(_words(x, rounds=7)[0]), _uniform(_words(x, rounds=7)[1]))[1],
            near,
        ),
        "philox(seed, c0, c1, c2, c3)": (
            "a, r, c, d = tl.philox(42, i.to(tl.uint32), i.to(tl.uint32) * 0, "
            "i.to(tl.uint32) * 0, i.to(tl.uint32) * 0)",
            "uint32",
            lambda x: _words(x)[1],
            0,
        ),
        "philox(n_rounds)": (
            "z = i.to(tl.uint32)\na, r, c, d = tl.philox(42, z, z * 0, z * 0, z * 0, n_rounds=6)",
            "uint32",
            lambda x: _words(x, rounds=6)[1],
            0,
        ),
        "philox_impl(c0, c1, c2, c3, k0, k1)": (
            "z = i.to(tl.uint32)\na, b, r, d = tl.philox_impl(z, z * 0, z * 0, z * 0, z * 0 + 42, z * 0)",
            "uint32",
            lambda x: _words(x)[2],
            0,
        ),
        "philox_impl(n_rounds)": (
            "z = i.to(tl.uint32)\n"
            "a, b, r, d = tl.philox_impl(z, z * 0, z * 0, z * 0, z * 0 + 42, z * 0, n_rounds=5)",
            "uint32",
            lambda x: _words(x, rounds=5)[2],
            0,
        ),
        "pair_uniform_to_normal(u1, u2)": (
            "r, b = tl.pair_uniform_to_normal(x * 0.4, x * 0.3)",
            "fp32",
            lambda x: _normal(x * np.float32(0.4), x * np.float32(0.3))[0],
            near,
        ),
        "uint_to_uniform_float(x)": (
            "r = tl.uint_to_uniform_float(i.to(tl.uint32) * 100000000)",
            "fp32",
            lambda x: _uniform((np.arange(x.size, dtype=np.uint32) * np.uint32(100000000)).reshape(x.shape)),
            0,
        ),
        "int64 offsets": (
            "r = tl.randint(42, i.to(tl.int64) + (1 << 32))",
            "uint32",
            lambda x: _philox(
                [
                    np.arange(x.size, dtype=np.uint32).reshape(x.shape),
                    np.ones(x.shape, np.uint32),
                    np.zeros(x.shape, np.uint32),
                    np.zeros(x.shape, np.uint32),
                ],
                42,
                0,
            )[0],
            0,
        ),
        "a seed of 64 bits": (
            "r = tl.randint(0x123456789, i)",
            "uint32",
            lambda x: _philox(
                [np.arange(x.size, dtype=np.uint32).reshape(x.shape)] + [np.zeros(x.shape, np.uint32)] * 3,
                0x23456789,
                1,
            )[0],
            0,
        ),
    }
    rows = [Row(group, n, Kernel(c, out=out, wanted=w, rtol=t)) for n, (c, out, w, t) in table.items()]
    rows += [
        Row(
            group,
            "64-bit counters",
            Kernel("z = i.to(tl.uint64)\na, r, c, d = tl.philox(42, z, z * 0, z * 0, z * 0)", out="uint64"),
        ),
        Row(group, "tl.random", Host(lambda: tl.random.rand is tl.rand)),
        Row(group, "a float seed is refused", Refuses(Kernel("r = tl.rand(1.5, i)"), "(?i)seed|int")),
    ]
    return rows


def _assembly() -> list[Row]:
    group = "Inline assembly"
    call = "r = tl.inline_asm_elementwise({!r}, {!r}, [{}], dtype={}, is_pure=True, pack=1)"
    table: dict[str, tuple[str, str, str, str, tuple[str, ...], str, Callable[..., Any]]] = {
        "add.f32": ("add.f32 $0, $1, $2;", "=f,f,f", "x, y", "tl.float32", ("fp32",) * 2, "fp32", np.add),
        "mul.rn.f32": (
            "mul.rn.f32 $0, $1, $2;",
            "=f,f,f",
            "x, y",
            "tl.float32",
            ("fp32",) * 2,
            "fp32",
            np.multiply,
        ),
        "fma.rn.f32": (
            "fma.rn.f32 $0, $1, $2, $1;",
            "=f,f,f",
            "x, y",
            "tl.float32",
            ("fp32",) * 2,
            "fp32",
            lambda x, y: (x.astype(np.float64) * y + x).astype(np.float32),
        ),
        "and.b32": (
            "and.b32 $0, $1, $2;",
            "=r,r,r",
            "x, y",
            "tl.int32",
            ("int32",) * 2,
            "int32",
            np.bitwise_and,
        ),
        "shl.b32": ("shl.b32 $0, $1, 3;", "=r,r", "x", "tl.int32", ("int32",), "int32", lambda x: x << 3),
        "prmt.b32": (
            "prmt.b32 $0, $1, $2, 0x5410;",
            "=r,r,r",
            "x, y",
            "tl.int32",
            ("int32",) * 2,
            "int32",
            lambda x, y: (x & 0xFFFF) | (y << 16),
        ),
        "lop3.b32": (
            "lop3.b32 $0, $1, $2, $2, 0xC0;",
            "=r,r,r",
            "x, y",
            "tl.int32",
            ("int32",) * 2,
            "int32",
            np.bitwise_and,
        ),
        "cvt.rzi.s32.f32": (
            "cvt.rzi.s32.f32 $0, $1;",
            "=r,f",
            "x",
            "tl.int32",
            ("fp32",),
            "int32",
            lambda x: x.astype(np.int32),
        ),
        "ex2.approx.f32": ("ex2.approx.f32 $0, $1;", "=f,f", "x", "tl.float32", ("fp32",), "fp32", np.exp2),
        "lg2.approx.f32": ("lg2.approx.f32 $0, $1;", "=f,f", "x", "tl.float32", ("fp32",), "fp32", np.log2),
        "tanh.approx.f32": ("tanh.approx.f32 $0, $1;", "=f,f", "x", "tl.float32", ("fp32",), "fp32", np.tanh),
        "mov.b32": ("mov.b32 $0, $1;", "=r,r", "x", "tl.int32", ("int32",), "int32", lambda x: x),
        "setp and selp": (
            "{ .reg .pred p; setp.lt.f32 p, $1, $2; selp.f32 $0, $1, $2, p; }",
            "=f,f,f",
            "x, y",
            "tl.float32",
            ("fp32",) * 2,
            "fp32",
            np.minimum,
        ),
    }
    rows = [
        Row(
            group,
            n,
            Kernel(
                call.format(asm, constraints, args, dtype),
                inputs,
                out,
                wanted=w,
                rtol=ulp("fp32", 16) if out == "fp32" else 0,
            ),
        )
        for n, (asm, constraints, args, dtype, inputs, out, w) in table.items()
    ]
    code = "r = tl.inline_asm_elementwise({!r}, {!r}, [x], dtype={}, is_pure={}, pack={}){}"
    add = "add.s32 $0, $1, 1;"
    rows += [
        Row(
            group,
            "inline_asm_elementwise(is_pure=False)",
            Kernel(
                code.format(add, "=r,r", "tl.int32", False, 1, ""),
                ("int32",),
                "int32",
                wanted=lambda x: x + 1,
            ),
        ),
        Row(
            group,
            "inline_asm_elementwise(pack)",
            Kernel(
                code.format("add.s32 $0, $2, 1; add.s32 $1, $3, 1;", "=r,=r,r,r", "tl.int32", True, 2, ""),
                ("int32",),
                "int32",
                wanted=lambda x: x + 1,
            ),
        ),
        Row(
            group,
            "inline_asm_elementwise(several dtypes)",
            Kernel(
                code.format(
                    "add.s32 $0, $2, 1; add.s32 $1, $2, 2;", "=r,=r,r", "(tl.int32, tl.int32)", True, 1, "[1]"
                ),
                ("int32",),
                "int32",
                wanted=lambda x: x + 2,
            ),
        ),
        Row(
            group,
            "memory is refused",
            Refuses(
                Kernel(
                    code.format("ld.global.b32 $0, [$1];", "=r,r", "tl.int32", True, 1, ""),
                    ("int32",),
                    "int32",
                ),
                "ld",
            ),
        ),
        Row(
            group,
            "branches are refused",
            Refuses(
                Kernel(code.format("bra done;", "=r,r", "tl.int32", True, 1, ""), ("int32",), "int32"), "bra"
            ),
        ),
    ]
    return rows


ROWS = [*_maths(), *_libdevice(), *_random(), *_assembly()]
__all__ = ["DTYPES", "LIBDEVICE", "NAMES", "ROWS"]
