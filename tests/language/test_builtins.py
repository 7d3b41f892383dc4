"""Every function of the language: its documentation, its example, and the operations that it records."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import blocklang.language as tl
from blocklang.diagnostics import CompilationError, CompileTimeAssertionFailure
from blocklang.ir.types import F32, I32, BlockType, PointerType
from blocklang.language.registry import BUILTINS, is_builtin
from blocklang.language.unsupported import NOT_BUILT_YET
from tests.frontend.building import build, define
from tests.language.recording import record

_PROLOGUE = """
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, N: tl.constexpr):
    total = 0
"""
_DOCUMENTED: dict[str, Any] = {**BUILTINS, "range": tl.range, "static_range": tl.static_range}


@pytest.mark.parametrize("name", _DOCUMENTED)
def test_the_example_compiles(name: str) -> None:
    doc = inspect.getdoc(_DOCUMENTED[name]) or ""
    assert "Example:" in doc, f"{name} has no example"
    example = textwrap.dedent(doc.split("Example:\n")[1])
    assert name in example
    kernel = define(_PROLOGUE + textwrap.indent(example, "    "), "kernel")
    build(kernel, "ptr<f32>", "ptr<f32>", "i32", BLOCK=64, N=100)


@pytest.mark.parametrize("name", BUILTINS)
def test_it_is_public_and_typed(name: str) -> None:
    function = BUILTINS[name]
    assert getattr(tl, name) is function
    assert is_builtin(function)
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty


def test_everything_public_exists() -> None:
    for name in tl.__all__:
        assert hasattr(tl, name), name
    assert tl.math.exp is tl.exp


@pytest.mark.parametrize("name", NOT_BUILT_YET)
def test_a_name_that_is_not_built_says_so(name: str) -> None:
    assert name not in tl.__all__
    with pytest.raises(CompilationError, match=f"`tl.{name}` is not built yet"):
        getattr(tl, name)


def test_functions_outside_of_a_kernel_say_so() -> None:
    with pytest.raises(CompilationError, match="inside a kernel"):
        tl.arange(0, 8)


def test_numbers_alone_need_no_kernel() -> None:
    assert tl.cdiv(10, 4) == 3
    assert tl.next_power_of_2(100) == 128


ROW = BlockType(F32, (8,))
TABLE = BlockType(F32, (4, 8))
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "broadcast_row_and_table": (lambda a, b: a + b, (ROW, TABLE)),
    "outer_sum": (lambda a: a[:, None] + a[None, :], (ROW,)),
    "new_axes": (lambda a: a[None, :, None], (ROW,)),
    "transpose": (lambda a: a.T, (TABLE,)),
    "permute_negative": (lambda a: tl.permute(a, -1, 0), (TABLE,)),
    "reshape": (lambda a: tl.reshape(a, 2, 16), (TABLE,)),
    "ravel": (tl.ravel, (TABLE,)),
    "expand_two_axes": (lambda a: tl.expand_dims(a, (0, 2)), (ROW,)),
    "keep_dims": (lambda a: a - tl.max(a, axis=-1, keep_dims=True), (TABLE,)),
    "sum_of_all": (lambda a: tl.sum(a), (TABLE,)),
    "argmax": (lambda a: tl.argmax(a, axis=1), (TABLE,)),
    "value_and_index": (lambda a: tl.min(a, axis=0, return_indices=True), (TABLE,)),
    "softmax": (lambda a: tl.softmax(a, dim=1), (TABLE,)),
    "sigmoid": (tl.sigmoid, (ROW,)),
    "clamp": (lambda a: tl.clamp(a, 0.0, 1.0), (ROW,)),
    "unary": (lambda a: (-a, +a), (ROW,)),
    "invert_bool": (lambda a: ~(a > 0), (ROW,)),
    "where_numbers": (lambda a: tl.where(a > 0, 1, 0.5), (ROW,)),
    "full_of_a_scalar": (lambda a: tl.full((2, 2), a, tl.float16), (F32,)),
    "masked_load": (
        lambda p, n: tl.load(p + tl.arange(0, 8), tl.arange(0, 8) < n, 0),
        (PointerType(F32), I32),
    ),
    "store_converts": (lambda p: tl.store(p + tl.arange(0, 8), tl.arange(0, 8)), (PointerType(F32),)),
    "store_of_a_number": (lambda p: tl.store(p, 1), (PointerType(F32),)),
    "reduce_with_a_pair": (
        lambda a, b: tl.reduce((a, b), 0, lambda x, i, y, j: (x + y, tl.maximum(i, j))),
        (ROW, ROW),
    ),
    "dot_with_accumulator": (lambda a, acc: tl.dot(a, a.T, acc), (TABLE, BlockType(F32, (4, 4)))),
    "pointer_minus_number": (lambda p: p - 3, (PointerType(F32),)),
    "truncated_quotient": (lambda a: (a // 2, a % 2, a / 2), (I32,)),
    "shift_of_bool": (lambda a: (a > 0).to(tl.int32) << 3, (I32,)),
    "bitcast": (lambda a: a.to(tl.uint32, bitcast=True), (ROW,)),
    "rounding_toward_zero": (lambda a: a.to(tl.float16, fp_downcast_rounding="rtz"), (ROW,)),
    "cdiv": (lambda n: tl.cdiv(n, 16), (I32,)),
    "fma_of_numbers": (lambda a: tl.fma(a, 2.0, 1), (ROW,)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_operations(name: str, golden: Callable[[str, str], None]) -> None:
    function, types = CASES[name]
    _, kernel = record(function, *types)
    golden(f"{name}.blir", str(kernel))


def test_constexprs_fold_as_python_does() -> None:
    a, b = tl.constexpr(-7), tl.constexpr(2)
    assert (a // b).value == -4
    assert (a % b).value == 1
    assert (a / b).value == -3.5
    assert (2**b).value == 4
    assert (a < b).value is True
    assert list(range(10))[b] == 2
    assert f"{a:+d} {b}" == "-7 2"


def test_a_typed_constexpr_computes_at_run_time_and_compares_at_compile_time() -> None:
    one = tl.constexpr(1, tl.int32)
    assert (one == 1).value is True
    result, _ = record(lambda: (one - 8) // 2)
    assert result.dtype == tl.int32
    assert result.value.defining_op.name == "idiv"
    converted, _ = record(lambda: one.to(tl.int64))
    assert converted.dtype == tl.int64


def test_a_constant_scalar_serves_where_a_constexpr_is_needed() -> None:
    result, _ = record(lambda: tl.arange(0, tl.to_tensor(16)))
    assert [n.value for n in result.shape] == [16]


def test_static_assert() -> None:
    tl.static_assert(tl.constexpr(4) == 4)
    with pytest.raises(CompileTimeAssertionFailure, match="too small"):
        tl.static_assert(False, "too small")


def test_static_print(capsys: pytest.CaptureFixture[str]) -> None:
    tl.static_print("BLOCK", tl.constexpr(64), sep="=")
    assert capsys.readouterr().out == "BLOCK=64\n"


def test_dtypes_answer_as_in_triton() -> None:
    assert str(tl.float32) == "fp32"
    assert tl.bfloat16.primitive_bitwidth == 16
    assert tl.float16.fp_mantissa_width == 10
    assert tl.bfloat16.exponent_bias == 127
    assert tl.int1.is_int_unsigned()
    assert tl.int8.int_signedness == tl.dtype.SIGNEDNESS.SIGNED
    assert tl.float32.kind() == tl.dtype.KIND.FLOATING
    pointer = tl.pointer_type(tl.int8, const=True)
    assert (pointer.is_ptr(), pointer.is_const(), pointer.element_ty) == (True, True, tl.int8)
    table = tl.block_type(tl.float32, [4, 8])
    assert (table.is_block(), table.numel, table.get_block_shapes()) == (True, 32, (4, 8))
    assert table.with_element_ty(tl.int32) == tl.block_type(tl.int32, (4, 8))
    assert tl.dtype("int32") == tl.int32
