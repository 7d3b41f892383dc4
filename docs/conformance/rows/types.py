"""Section 1 and 2 of the surface: dtypes, what they know of themselves, and promotion."""

from __future__ import annotations

import numpy as np

import blocklang.language as tl
from docs.conformance.kernels import DTYPES, Array, Kernel, Refuses
from docs.conformance.model import Host, Row

TL_NAMES = {name: name.replace("fp8", "float8").replace("bf16", "bfloat16") for name in DTYPES}
TL_NAMES |= {f"fp{n}": f"float{n}" for n in (16, 32, 64)}
FP8 = ("fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16")
STANDARD = tuple(name for name in DTYPES if name not in FP8)


def _dtype_rows() -> list[Row]:
    rows = []
    for short, name in TL_NAMES.items():
        row = Kernel(f"r = x.to(tl.{name})", (short,), short, wanted=lambda x: x)
        rows.append(Row("Types", name, row))
    rows.append(
        Row(
            "Types",
            "float8e4b15",
            Kernel(
                "r = x.to(tl.float8e4b15, bitcast=True).to(tl.float32)",
                (np.arange(0x40, 0x60, dtype=np.uint8),),
                wanted=lambda x: np.ldexp(1 + (x & 7) / 8, (x >> 3).astype(int) - 15),
            ),
        )
    )
    others = {
        "pointer_type": "p = (X + i).to(tl.pointer_type(tl.int32), bitcast=True)\n"
        "r = tl.load(p).to(tl.float32, bitcast=True)",
        "pi32_t": "r = tl.load((X + i).to(tl.pi32_t, bitcast=True)).to(tl.float32, bitcast=True)",
        "constexpr": "k: tl.constexpr = tl.constexpr(0)\nr = x + k",
        "tensor": "tl.static_assert(isinstance(x, tl.tensor))\nr = x",
        "tuple": "t = tl.tuple((x, i))\nr = t[0]",
        "block_type": "tl.static_assert(x.type == tl.block_type(tl.float32, [N]))\nr = x",
        "dtype": "tl.static_assert(isinstance(x.dtype, tl.dtype))\nr = x",
        "void": "tl.static_assert(tl.void != tl.int32)\nr = x",
        "slice": "t = (i, x, x)[tl.slice(1, 2, None)]\nr = t[0]",
        "tuple_type": None,
        "constexpr_type": None,
        "PropagateNan": "r = tl.maximum(x, x, propagate_nan=tl.PropagateNan.ALL)",
        "str_to_ty": None,
        "tensor_descriptor": "d = tl.make_tensor_descriptor(X, [1024], [1], [N])\n"
        "tl.static_assert(isinstance(d, tl.tensor_descriptor))\nr = d.load([tl.program_id(0) * N])",
        "tensor_descriptor_type": "d = tl.make_tensor_descriptor(X, [1024], [1], [N])\n"
        "tl.static_assert(isinstance(d.type, tl.tensor_descriptor_type))\nr = d.load([tl.program_id(0) * N])",
        "TRITON_MAX_TENSOR_NUMEL": None,
    }
    for name, code in others.items():
        if code is not None:
            size = 128 if "make_tensor_descriptor" in code else 0
            code = code.replace("1024", str(size)) if size else code
            rows.append(Row("Types", name, Kernel(code, wanted=lambda x: x)))
    rows.append(Row("Types", "str_to_ty", Host(_reads_types)))
    rows.append(
        Row("Types", "tuple_type", Host(lambda: tl.tuple_type([tl.int8]) == tl.tuple_type((tl.int8,))))
    )
    rows.append(Row("Types", "constexpr_type", Host(lambda: tl.constexpr_type(3) == tl.constexpr_type(3))))
    rows.append(Row("Types", "TRITON_MAX_TENSOR_NUMEL", Host(_has_limit)))
    rows.append(
        Row(
            "Types",
            "const",
            Refuses(
                Kernel("tl.store(P, 1.0)\nr = x", arguments="P: tl.const", values=(np.zeros(1, np.float32),)),
                "(?i)const.* pointer",
            ),
        )
    )
    return rows


def _reads_types() -> bool:
    return bool(
        tl.str_to_ty("*fp32", None).element_ty == tl.float32
        and tl.str_to_ty("*ki8", None).is_const()
        and tl.str_to_ty("i64", None) == tl.int64
    )


def _has_limit() -> bool:
    import blocklang.triton.language as theirs

    return theirs.TRITON_MAX_TENSOR_NUMEL == 2**20


_API = {
    "scalar": "tl.float32.scalar == tl.float32",
    "element_ty": "X.dtype.element_ty == tl.float32",
    "primitive_bitwidth": "x.dtype.primitive_bitwidth == 32",
    "int_bitwidth": "i.dtype.int_bitwidth == 32",
    "int_signedness": "tl.int8.int_signedness == tl.dtype.SIGNEDNESS.SIGNED",
    "fp_mantissa_width": "x.dtype.fp_mantissa_width == 23",
    "exponent_bias": "x.dtype.exponent_bias == 127",
    "is_floating": "x.dtype.is_floating() and not i.dtype.is_floating()",
    "is_standard_floating": "x.dtype.is_standard_floating()",
    "is_int": "i.dtype.is_int() and not x.dtype.is_int()",
    "is_int_signed": "i.dtype.is_int_signed()",
    "is_int_unsigned": "tl.uint8.is_int_unsigned()",
    "is_bool": "(i > 0).dtype.is_bool()",
    "is_ptr": "X.dtype.is_ptr() and not x.dtype.is_ptr()",
    "is_block": "x.type.is_block() and not x.dtype.is_block()",
    "is_const": "not X.dtype.is_const()",
    "is_void": "not x.dtype.is_void()",
    "is_dtype": "tl.dtype.is_dtype('fp32')",
    "is_fp8": "tl.float8e5.is_fp8() and not x.dtype.is_fp8()",
    **{
        f"is_{name}": f"tl.{TL_NAMES.get(name, 'float8e4b15')}.is_{name}() and not "
        f"tl.{'int16' if name == 'int8' else 'int8'}.is_{name}()"
        for name in (*DTYPES, "fp8e4b15")
    },
    "kind": "x.dtype.kind() == tl.dtype.KIND.FLOATING",
    "get_block_shapes": "x.type.get_block_shapes()[0] == N",
    "with_element_ty": "x.type.with_element_ty(tl.int8).element_ty == tl.int8",
    "name": "x.dtype.name == 'fp32'",
    "str": "str(x.dtype) == 'fp32'",
    "get_int_max_value": "tl.int8.get_int_max_value() == 127",
    "get_int_min_value": "tl.int8.get_int_min_value() == -128",
    "codegen_name": "x.dtype.codegen_name() == 'fp32'",
    "nbytes": "x.type.nbytes == 4 * N",
    "mangle": "isinstance(x.dtype.mangle(), str)",
    "cache_key_part": "x.dtype.cache_key_part == 'fp32'",
    "SINT_TYPES": "'int8' in tl.dtype.SINT_TYPES",
    "UINT_TYPES": "'uint8' in tl.dtype.UINT_TYPES",
    "FP_TYPES": "'fp32' in tl.dtype.FP_TYPES",
    "STANDARD_FP_TYPES": "'fp32' in tl.dtype.STANDARD_FP_TYPES",
    "OTHER_TYPES": "'void' in tl.dtype.OTHER_TYPES",
    "KIND": "tl.dtype.KIND.BOOLEAN == tl.int1.kind()",
    "SIGNEDNESS": "tl.dtype.SIGNEDNESS.UNSIGNED == tl.uint8.int_signedness",
}
_API["to_ir"] = ""


def _api_rows() -> list[Row]:
    rows = []
    for name, test in _API.items():
        if not test:
            continue
        if name in ("mangle", "cache_key_part", "codegen_name", "is_dtype", "str") or name.isupper():
            # Asked by the host more than by kernels.
            text = test.replace("x.dtype", "tl.float32")
            rows.append(Row("dtype attributes", name, Host(lambda text=text: eval(text, {"tl": tl}))))  # type: ignore[misc]
        else:
            rows.append(
                Row("dtype attributes", name, Kernel(f"tl.static_assert({test})\nr = x", wanted=lambda x: x))
            )
    return rows


# Types of two run-time values, and of their sum.
PROMOTIONS = {
    ("fp64", "fp32"): "fp64",
    ("fp32", "fp16"): "fp32",
    ("fp32", "int64"): "fp32",
    ("fp16", "bf16"): "fp16",
    ("bf16", "bf16"): "bf16",
    ("bf16", "int32"): "fp32",
    ("bf16", "fp8e5"): "fp32",
    ("fp16", "int64"): "fp16",
    ("fp16", "fp8e4nv"): "fp16",
    ("fp8e5", "fp8e4nv"): "fp16",
    ("fp8e5", "fp8e5"): "fp8e5",
    ("int8", "int8"): "int8",
    ("int8", "int32"): "int32",
    ("int32", "uint32"): "uint32",
    ("int64", "uint32"): "int64",
    ("int16", "uint8"): "int16",
    ("int8", "uint16"): "uint16",
    ("int1", "int1"): "int1",
    ("int1", "int8"): "int8",
    ("int1", "fp16"): "fp16",
}


def _promotion_rows() -> list[Row]:
    group = "Promotion"
    rows = []
    for (one, other), result in PROMOTIONS.items():
        code = f"r = x + y\ntl.static_assert(r.dtype == tl.{TL_NAMES[result]})"
        exact = result not in FP8
        kernel = Kernel(code, (one, other), result, wanted=_sum_of(result) if exact else None)
        rows.append(Row(group, f"{one} + {other}", kernel))
    rows += [
        Row(group, name, Kernel(code, inputs, out, wanted=wanted))
        for name, code, inputs, out, wanted in (
            (
                "a literal takes the block's type",
                "r = x + 2\ntl.static_assert(r.dtype == tl.int8)",
                ("int8",),
                "int8",
                lambda x: x + np.int8(2),
            ),
            (
                "a variable is a run-time value",
                "s = 2\nr = x + s\ntl.static_assert(r.dtype == tl.int32)",
                ("int8",),
                "int32",
                lambda x: x + np.int32(2),
            ),
            (
                "a float literal with integers is fp32",
                "r = x + 2.5\ntl.static_assert(r.dtype == tl.float32)",
                ("int64",),
                "fp32",
                lambda x: x.astype(np.float32) + np.float32(2.5),
            ),
            (
                "a huge float literal with integers is fp64",
                "r = x + 1e300\ntl.static_assert(r.dtype == tl.float64)",
                ("int32",),
                "fp64",
                lambda x: x + 1e300,
            ),
            (
                "a float literal with fp16",
                "r = x + 2.5\ntl.static_assert(r.dtype == tl.float16)",
                ("fp16",),
                "fp16",
                lambda x: x + np.float16(2.5),
            ),
            (
                "a literal above int32",
                "s = 3000000000\ntl.static_assert(s.dtype == tl.uint32)\nr = x",
                ("int32",),
                "int32",
                lambda x: x,
            ),
            (
                "a literal above uint32",
                "s = 5000000000\ntl.static_assert(s.dtype == tl.int64)\nr = x",
                ("int32",),
                "int32",
                lambda x: x,
            ),
            (
                "a literal above int64",
                "s = 9300000000000000000\ntl.static_assert(s.dtype == tl.uint64)\nr = x",
                ("int32",),
                "int32",
                lambda x: x,
            ),
            (
                "fp16 / fp16 is fp32",
                "r = x / y\ntl.static_assert(r.dtype == tl.float32)",
                ("fp16", "fp16"),
                "fp32",
                lambda x, y: x.astype(np.float32) / y.astype(np.float32),
            ),
            (
                "bf16 % bf16 is fp32",
                "r = x % y\ntl.static_assert(r.dtype == tl.float32)",
                ("bf16", "bf16"),
                "fp32",
                lambda x, y: np.fmod(x.astype(np.float32), y.astype(np.float32)),
            ),
            (
                "a comparison gives int1",
                "r = x < y\ntl.static_assert(r.dtype == tl.int1)",
                ("fp32", "int32"),
                "int1",
                lambda x, y: x < y.astype(np.float32),
            ),
            (
                "where promotes its arms",
                "r = tl.where(i > 3, x, y)\ntl.static_assert(r.dtype == tl.float32)",
                ("fp32", "int32"),
                "fp32",
                None,
            ),
        )
    ]
    rows += [
        Row(group, name, Refuses(Kernel(code, inputs), message))
        for name, code, inputs, message in (
            ("/ of mixed signedness is refused", "r = x / y", ("int32", "uint32"), "(?i)sign"),
            ("// of mixed signedness is refused", "r = x // y", ("int32", "uint32"), "(?i)sign"),
            ("% of mixed signedness is refused", "r = x % y", ("int32", "uint32"), "(?i)sign"),
            (
                "a negative literal with unsigned is refused",
                "r = x + -1",
                ("uint32",),
                "(?i)negative|range|sign",
            ),
            ("a literal out of range is refused", "r = x + 300", ("int8",), "(?i)range|fit"),
            ("pointer + pointer is refused", "r = tl.load(X + X)", ("int32",), "(?i)pointer"),
            ("pointer + float is refused", "r = tl.load(X + 1.5)", ("int32",), "(?i)float|fp32|pointer"),
            ("pointer - pointer is refused", "r = X - X", ("int32",), "(?i)pointer"),
        )
    ]
    rows += [
        Row(group, "integer + pointer", Kernel("r = tl.load(i + X)", wanted=lambda x: x)),
        Row(group, "pointer - integer", Kernel("r = tl.load(X + 2 * i - i)", wanted=lambda x: x)),
        Row(
            group,
            "an unsigned offset is zero-extended",
            Kernel("r = tl.load(X + i.to(tl.uint8))", wanted=lambda x: x),
        ),
    ]
    return rows


def _sum_of(result: str):  # type: ignore[no-untyped-def]
    kind = DTYPES[result]

    def add(x: Array, y: Array) -> Array:
        if kind == np.bool_:
            return x ^ y
        if kind.kind in "iu":
            return np.asarray(x.astype(kind) + y.astype(kind))
        return np.asarray(x.astype(kind) + y.astype(kind))

    return add


ROWS = [*_dtype_rows(), *_api_rows(), *_promotion_rows()]
