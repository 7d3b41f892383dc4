"""Colours are only added: taking them away gives back the text."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocklang.cli.highlight import highlight

IR = 'tile @f(%x: ptr<f32> divisible=16) {\n  %c = constant value=-1.5e-3 : block<8xf32>  // "note"\n}\n'


@given(st.text(), st.sampled_from(["ir", "llvm", "asm"]))
def test_text_is_kept(text: str, language: str) -> None:
    plain = click.unstyle(text)
    assert click.unstyle(highlight(plain, language)) == plain


@pytest.mark.parametrize(
    ("piece", "style"),
    [
        ("@f", {"fg": "blue", "bold": True}),
        ("%x", {"fg": "cyan"}),
        ("ptr<f32>", {"fg": "yellow"}),
        ("block<8xf32>", {"fg": "yellow"}),
        ("constant", {"bold": True}),
        ("divisible", {"dim": True}),
        ("-1.5e-3", {"fg": "magenta"}),
        ('// "note"', {"dim": True}),
    ],
)
def test_pieces_of_ir(piece: str, style: dict[str, object]) -> None:
    assert click.style(piece, **style) in highlight(IR, "ir")  # type: ignore[arg-type]


def test_llvm_and_assembly_are_coloured() -> None:
    llvm = "define void @f(ptr %x) {\n  %a = load <8 x float>, ptr %x ; note\n}\n"
    assert click.style("<8 x float>", fg="yellow") in highlight(llvm, "llvm")
    assert click.style("load", bold=True) in highlight(llvm, "llvm")
    assembly = "f:\n\tvaddps\t(%rdi), %ymm0, %ymm1 # note\n"
    assert click.style("vaddps", bold=True) in highlight(assembly, "asm")
    assert click.style("%ymm0", fg="cyan") in highlight(assembly, "asm")
