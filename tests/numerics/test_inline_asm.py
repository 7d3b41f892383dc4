"""Inline PTX: what each instruction computes, packs, predicates, and what is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
from blocklang.diagnostics import CompilationError
from tests.numerics.inline_asm_kernels import one, two, unpack_and_max
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import NUMPY_DTYPES, TYPES, numbers

GENERATOR = np.random.default_rng(2)
SIZE = 301


def run(asm: str, constraints: str, *inputs: Array, result: str, pack: int = 1) -> Array:
    size = len(inputs[0])
    return launch_one(
        (one, two)[len(inputs) - 1], bl.cdiv(size, 77), *inputs, Out((size,), result), size,
        BLOCK=77, ASM=asm, C=constraints, T=TYPES[result], P=pack,
    )  # fmt: skip


def some(name: str) -> Array:
    kind = NUMPY_DTYPES[name]
    special = GENERATOR.choice(numbers(name), SIZE // 2)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        rest = GENERATOR.integers(info.min, info.max, SIZE - len(special), dtype=kind, endpoint=True)
        return np.concatenate([special, rest])
    return np.concatenate([special, (GENERATOR.standard_normal(SIZE - len(special)) * 9).astype(kind)])


def f32(function: Callable[..., Any]) -> Callable[..., Array]:
    def compute(*values: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*values)).astype(np.float32)

    return compute


def i32(function: Callable[..., int]) -> Callable[..., Array]:
    """A function of unsigned integers, wrapped to 32 bits."""

    def compute(*values: Array) -> Array:
        rows = zip(*((v.view(np.uint32)).tolist() for v in values), strict=True)
        return np.array([function(*row) & 0xFFFFFFFF for row in rows], np.uint32).view(np.int32)

    return compute


def signed(value: int) -> int:
    return value - (value >> 31 << 32)


FLOATS_OF_TWO = {
    "add.f32 $0, $1, $2;": f32(np.add),
    "sub.rn.f32 $0, $1, $2;": f32(np.subtract),
    "mul.rn.f32 $0, $1, $2;": f32(np.multiply),
    "div.full.f32 $0, $1, $2;": f32(np.divide),
    "max.f32 $0, $1, $2;": f32(lambda a, b: np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))),
    "min.NaN.f32 $0, $1, $2;": f32(
        lambda a, b: np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))
    ),
    "add.sat.f32 $0, $1, $2;": f32(lambda a, b: np.where(a + b > 0, np.minimum(a + b, 1), 0)),
    "{ .reg .pred p; setp.gt.f32 p, $1, $2; selp.f32 $0, $1, $2, p; }": f32(
        lambda a, b: np.where(a > b, a, b)
    ),
    "{ .reg .pred p; setp.ltu.f32 p, $1, $2; mov.f32 $0, $2; @p mov.f32 $0, $1; }": f32(
        lambda a, b: np.where(~(a >= b), a, b)
    ),
    "{ .reg .f32 t; neg.f32 t, $2; abs.f32 $0, t; }": f32(lambda a, b: np.abs(b)),
    "fma.rn.f32 $0, $1, $2, 0f3F800000;": f32(
        lambda a, b: (a.astype(np.longdouble) * b + np.longdouble(1)).astype(np.float32)
    ),
}


@pytest.mark.parametrize("asm", FLOATS_OF_TWO)
def test_floats(asm: str) -> None:
    a, b = some("fp32"), some("fp32")
    for constraints in ("=f,f,f", "=r,r,r"):
        assert_same_bits(run(asm, constraints, a, b, result="fp32"), FLOATS_OF_TWO[asm](a, b), asm)


def test_ftz_flushes_subnormal_operands_and_results() -> None:
    a = np.array([1e-40, -1e-40, 1.5e-38, 1.0, -3e-39], np.float32)
    got = run("mul.ftz.f32 $0, $1, $2;", "=f,f,f", a, np.full(5, 0.5, np.float32), result="fp32")
    assert_same_bits(got, np.array([0.0, -0.0, 0.0, 0.5, -0.0], np.float32))


def test_rounding_suffixes() -> None:
    a, b = np.full(4, 1.0, np.float32), np.full(4, 2.0**-30, np.float32)
    one_up, near = np.nextafter(np.float32(1), np.float32(2)), np.float32(1)
    for suffix, want in (("rn", near), ("rz", near), ("rm", near), ("rp", one_up)):
        got = run(f"add.{suffix}.f32 $0, $1, $2;", "=f,f,f", a, b, result="fp32")
        assert got.tolist() == [want] * 4, suffix
    third = run("rcp.rm.f32 $0, $1;", "=f,f", np.full(2, 3.0, np.float32), result="fp32")
    assert third.tolist() == [np.nextafter(np.float32(1) / np.float32(3), np.float32(0))] * 2


INTEGERS_OF_TWO = {
    "add.s32 $0, $1, $2;": i32(lambda a, b: a + b),
    "mul.lo.u32 $0, $1, $2;": i32(lambda a, b: a * b),
    "mul.hi.u32 $0, $1, $2;": i32(lambda a, b: a * b >> 32),
    "mul.hi.s32 $0, $1, $2;": i32(lambda a, b: signed(a) * signed(b) >> 32),
    "mad.lo.s32 $0, $1, $2, 7;": i32(lambda a, b: a * b + 7),
    "and.b32 $0, $1, $2;": i32(lambda a, b: a & b),
    "xor.b32 $0, $1, 0xff00ff00;": i32(lambda a, b: a ^ 0xFF00FF00),
    "not.b32 $0, $2;": i32(lambda a, b: ~b),
    "shl.b32 $0, $1, $2;": i32(lambda a, b: a << b if b < 32 else 0),
    "shr.s32 $0, $1, $2;": i32(lambda a, b: signed(a) >> min(b, 31)),
    "shr.u32 $0, $1, 5;": i32(lambda a, b: a >> 5),
    "lop3.b32 $0, $1, $2, 0x0f0f0f0f, 0xea;": i32(lambda a, b: (a & b) | 0x0F0F0F0F),
    "lop3.b32 $0, $1, $2, $1, 0x96;": i32(lambda a, b: b),
    "prmt.b32 $0, $1, $2, 0x5410;": i32(lambda a, b: (a & 0xFFFF) | (b & 0xFFFF) << 16),
    "prmt.b32 $0, $1, $2, 0x7632;": i32(lambda a, b: a >> 16 | (b >> 16) << 16),
    "prmt.b32 $0, $1, $2, 0xba98;": i32(
        lambda a, b: sum((255 if a >> (8 * i + 7) & 1 else 0) << (8 * i) for i in range(4))
    ),
    "bfe.u32 $0, $1, 4, 9;": i32(lambda a, b: a >> 4 & 511),
    "bfe.s32 $0, $1, 4, 9;": i32(lambda a, b: (a >> 4 & 511) - ((a >> 12 & 1) << 9)),
    "bfi.b32 $0, $1, $2, 8, 12;": i32(lambda a, b: (b & ~0xFFF00) | (a & 0xFFF) << 8),
    "popc.b32 $0, $1;": i32(lambda a, b: a.bit_count()),
    "clz.b32 $0, $2;": i32(lambda a, b: 32 - b.bit_length()),
    "min.s32 $0, $1, $2;": i32(lambda a, b: min(signed(a), signed(b))),
    "max.u32 $0, $1, $2;": i32(max),
    "{ .reg .pred p, q; setp.lo.u32 p|q, $1, $2; selp.b32 $0, 1, 2, q; }": i32(
        lambda a, b: 2 if a < b else 1
    ),
    "{ .reg .b16 l, h; mov.b32 {l, h}, $1; mov.b32 $0, {h, l}; }": i32(
        lambda a, b: a >> 16 | (a & 0xFFFF) << 16
    ),
    "{ .reg .u64 t; mul.wide.u32 t, $1, $2; cvt.u32.u64 $0, t; }": i32(lambda a, b: a * b),
    "{ .reg .s16 t; cvt.s16.s32 t, $1; cvt.s32.s16 $0, t; }": i32(
        lambda a, b: (a & 0xFFFF) - ((a >> 15 & 1) << 16)
    ),
    "/* none */ mov.u32 ${0}, $1; // end": i32(lambda a, b: a),
}


@pytest.mark.parametrize("asm", INTEGERS_OF_TWO)
def test_integers(asm: str) -> None:
    a, b = some("int32"), some("int32")
    b[::3] %= 40
    assert_same_bits(run(asm, "=r,r,r", a, b, result="int32"), INTEGERS_OF_TWO[asm](a, b), asm)


CONVERSIONS: list[tuple[str, str, str, str, Callable[[Array], Any]]] = [
    ("cvt.rni.s32.f32 $0, $1;", "=r,f", "fp32", "int32", lambda x: np.rint(x)),
    ("cvt.rzi.s32.f32 $0, $1;", "=r,f", "fp32", "int32", lambda x: np.trunc(x)),
    ("cvt.rmi.f32.f32 $0, $1;", "=f,f", "fp32", "fp32", lambda x: np.floor(x)),
    ("cvt.rn.f32.s32 $0, $1;", "=f,r", "int32", "fp32", lambda x: x),
    ("cvt.f64.f32 $0, $1;", "=d,f", "fp32", "fp64", lambda x: x),
    ("cvt.rn.f32.f64 $0, $1;", "=f,d", "fp64", "fp32", lambda x: x),
    ("{.reg .b16 t; cvt.rn.f16.f32 t, $1; mov.b32 $0, {t, t};}", "=r,f", "fp32", "fp16", lambda x: x),
    ("{.reg .b16 t; cvt.rn.bf16.f32 t, $1; mov.b16 $0, t;}", "=h,f", "fp32", "bf16", lambda x: x),
    ("cvt.f32.f16 $0, $1;", "=f,h", "fp16", "fp32", lambda x: x),
]


@pytest.mark.parametrize("case", CONVERSIONS, ids=lambda c: c[0])
def test_conversions(case: tuple[str, str, str, str, Callable[[Array], Any]]) -> None:
    asm, constraints, source, result, function = case
    x = some(source)
    if result == "int32":
        x = np.where(np.abs(x) < 2.0**31, x, np.float32(3))
    with np.errstate(all="ignore"):
        expected = np.asarray(function(x)).astype(NUMPY_DTYPES[result])
    assert_same_bits(run(asm, constraints, x, result=result), expected, asm)


def test_tf32_rounds_ties_away() -> None:
    x = some("fp32")
    bits = x.view(np.uint32)
    finite = np.isfinite(x)
    expected = np.where(finite, (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), bits).view(np.float32)
    got = run("cvt.rna.tf32.f32 $0, $1;", "=r,r", x, result="fp32")
    assert_same_bits(got, expected)


def test_pairs_of_16_bit_floats() -> None:
    """pack=2: two fp32 registers become one of bf16x2, and halves are computed side by side."""
    x = some("fp32")
    got = run("cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,r,r", x, result="bf16", pack=2)
    with np.errstate(all="ignore"):
        assert_same_bits(got, x.astype(ml_dtypes.bfloat16))
    a, b = some("fp16"), some("fp16")
    got = run("add.f16x2 $0, $1, $2;", "=r,r,r", a, b, result="fp16", pack=2)
    with np.errstate(all="ignore"):
        assert_same_bits(got, (a.astype(np.float32) + b.astype(np.float32)).astype(np.float16))


@pytest.mark.parametrize("size", [1, 4, 301])
def test_several_results_of_a_pack(size: int) -> None:
    x = GENERATOR.integers(0, 256, size).astype(np.uint8)
    y = (GENERATOR.standard_normal(size) * 100).astype(np.float32)
    outputs = (Out((size,), "int32"), Out((size,), "fp32"))
    ints, largest = launch_both(unpack_and_max, bl.cdiv(size, 77), x, y, *outputs, size, BLOCK=77)
    assert_same_bits(ints, x.astype(np.int32))
    assert_same_bits(largest, np.maximum(x.astype(np.float32), y))


def test_dequantised_nibbles() -> None:
    """Four bytes a run, their upper nibbles moved down and made 16-bit floats by magic bits."""
    asm = """{ .reg .b32 t; shr.u32 t, $2, 4; and.b32 t, t, 0x0f0f0f0f;
               prmt.b32 $0, t, 0x64646464, 0x5140; prmt.b32 $1, t, 0x64646464, 0x7362; }"""
    x = GENERATOR.integers(0, 256, SIZE).astype(np.uint8)
    got = run(asm, "=r,=r,r", x, result="fp16", pack=4)
    assert got.tolist() == [1024.0 + (v >> 4) for v in x.tolist()]


def test_approximate_functions_are_accurate() -> None:
    x = np.linspace(0.01, 9, SIZE).astype(np.float32)
    for name, function in (
        *(("ex2", np.exp2), ("lg2", np.log2), ("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh)),
        *(("sqrt", np.sqrt), ("rsqrt", lambda v: 1 / np.sqrt(v)), ("rcp", lambda v: 1 / v)),
    ):
        got = run(f"{name}.approx{'' if name == 'tanh' else '.ftz'}.f32 $0, $1;", "=f,f", x, result="fp32")
        assert np.abs(got - function(x.astype(np.float64))).max() < 4e-5, name
        assert np.abs(got / function(x.astype(np.float64)) - 1).max() < 2e-6 or name in ("sin", "cos", "lg2")


REFUSED = {
    "ld.global.f32 $0, [$1];": "`ld.global.f32` is not supported: it accesses memory",
    "mov.u32 $0, %tid.x;": "the special register `%tid.x` is not supported",
    "L: bra L;": "the label `L` is not supported: nothing may jump",
    "@p bra DONE;": "`p` is not declared",
    "bar.sync 0;": "`bar.sync` is not supported: it synchronises threads",
    "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;": "it exchanges values between threads",
    "v_add_f32 $0, $1, $1;": "`v_add_f32` is not supported: the instruction is not known",
    "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $1;": "`.e4m3x2`",
    "frob.f32 $0, $1;": "`frob` is not supported",
    "add.cc.u32 $0, $1, $1;": "`.cc` of",
    "add.f32 $0, $1": "`;` expected after `add.f32`",
    "mov.b32 $0, t;": "`t` is not declared",
    "{ mov.b32 $0, $1;": "a `{` without its `}`",
    ".shared .b32 x; mov.b32 $0, $1;": "the directive `.shared` is not supported",
    "mov.b32 $1, $1;": "the text does not write `$0`",
    "{ .reg .b32 t; add.u32 $0, $1, t; }": "`t` is read before it is written",
}


@pytest.mark.parametrize("asm", REFUSED)
def test_refused(asm: str) -> None:
    with pytest.raises(CompilationError, match=re.escape(REFUSED[asm])):
        run(asm, "=r,r", np.zeros(4, np.int32), result="int32")


def test_elements_of_a_pack_may_not_meet() -> None:
    x = np.zeros(4, np.int32)
    with pytest.raises(CompilationError, match="element 0 of a result depends on another element"):
        run("add.s32 $0, $2, $3; mov.b32 $1, $3;", "=r,=r,r,r", x, result="int32", pack=2)
    with pytest.raises(CompilationError, match="element 0 of a result depends on another element"):
        run("shr.u32 $0, $1, 8;", "=r,r", x.astype(np.uint8), result="uint8", pack=4)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("=r,r,r", "1 outputs and 2 inputs in the constraints, but pack=1 of these types needs 1 and 1"),
        ("=r,m", "the constraint `m` is not supported"),
        ("=v,v", "the constraint `=v` is not supported"),
    ],
)
def test_wrong_constraints(constraints: str, message: str) -> None:
    with pytest.raises(CompilationError, match=re.escape(message)):
        run("mov.b32 $0, $1;", constraints, np.zeros(4, np.int32), result="int32")
