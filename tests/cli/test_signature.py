"""`--sig` and `-D`: what they mean, and what a wrong one is answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import blocklang.language as tl
from blocklang.cli.signature import ArgumentType, parse_definition, parse_definitions, parse_signature
from blocklang.diagnostics import UsageError
from blocklang.ir.types import BF16, F16, F32, F64, I1, I32, U8, PointerType, ScalarType

GoldenCheck = Callable[[str, str], None]


def message_of(call: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        call()
    return caught.value.render() + "\n"


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("*fp32", PointerType(F32)),
        ("*const float32", PointerType(F32, const=True)),
        (" * bf16 ", PointerType(BF16)),
        ("*float16", PointerType(F16)),
        ("bool", I1),
        ("int1", I1),
        ("i32", I32),
        ("int32", I32),
        ("uint8", U8),
        ("u8", U8),
        ("f64", F64),
    ],
)
def test_spellings(text: str, type_: ScalarType | PointerType) -> None:
    assert parse_signature(text) == [ArgumentType(type_)]


@pytest.mark.parametrize("name", ["fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15"])
def test_8_bit_floats(name: str) -> None:
    (entry,) = parse_signature(f"*{name}")
    assert str(entry.type) == f"ptr<f{name.removeprefix('fp')}>"


def test_several_entries() -> None:
    assert parse_signature("*fp32:16, *fp32, i32 : 16") == [
        ArgumentType(PointerType(F32), 16),
        ArgumentType(PointerType(F32)),
        ArgumentType(I32, 16),
    ]


def test_empty_signature_has_no_entries() -> None:
    assert parse_signature(" ") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sig_unknown_dtype", "*fp32,*fp31,i32"),
        ("sig_no_dtype", "*fp32,*"),
        ("sig_empty_entry", "*fp32,,i32"),
        ("sig_no_type", "fp32*, i32"),
        ("sig_hint", "*fp32:16, i32:8"),
    ],
)
def test_wrong_signatures(golden: GoldenCheck, name: str, text: str) -> None:
    golden(f"{name}.txt", message_of(lambda: parse_signature(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("BLOCK=1024", 1024),
        ("EPS = 1e-5", 1e-5),
        ("FLAG=True", True),
        ("ACTIVATION='relu'", "relu"),
        ("SHAPE=(2, 3)", (2, 3)),
        ("NOTHING=None", None),
        ("TYPE=fp32", tl.float32),
        ("TYPE=tl.bfloat16", tl.bfloat16),
    ],
)
def test_definitions(text: str, value: object) -> None:
    assert parse_definition(text)[1] == value


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("define_no_value", ("BLOCK",)),
        ("define_no_name", ("=3",)),
        ("define_word", ("BLOCK=big",)),
        ("define_twice", ("BLOCK=1", "BLOCK=2")),
    ],
)
def test_wrong_definitions(golden: GoldenCheck, name: str, texts: tuple[str, ...]) -> None:
    golden(f"{name}.txt", message_of(lambda: parse_definitions(texts)))
