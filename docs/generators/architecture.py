"""The walk through one kernel in ARCHITECTURE.md, printed by the compiler.

Only the part between the two markers is generated; the rest of the page is written by hand.
"""

from __future__ import annotations

from pathlib import Path

import blocklang as bl
import blocklang.language as tl
from blocklang.compiler import CompileOptions, compile_kernel
from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.ir.types import F32, I32, PointerType
from blocklang.target import target_for

TARGET = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
START, END = "<!-- generated: walk -->", "<!-- end of walk -->"


@bl.jit
def softmax(out, x, n_cols, stride, BLOCK: bl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x + row * stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + cols, e / tl.sum(e, 0), mask=mask)


def _fenced(title: str, text: str, language: str = "") -> str:
    return f"### {title}\n\n```{language}\n{text.rstrip()}\n```\n"


def _main_loop(assembly: str) -> str:
    """The loop of the assembly that divides: from its label to the jump back."""
    lines = [line for line in assembly.splitlines() if not line.strip().startswith((".p2align", ".cfi"))]
    at = next(i for i, line in enumerate(lines) if "vdivps" in line and "ymm" in line)
    start = max(i for i in range(at) if lines[i].startswith(".LBB"))
    end = next(i for i in range(at, len(lines)) if lines[i].lstrip().startswith("j"))
    return "\n".join(lines[start : end + 1])


def render_walk() -> str:
    """Source, Block IR, Tile IR, schedule, placed Tile IR, and the loop that divides, as assembly."""
    source = softmax.source
    assert isinstance(source, KernelSource)
    pointer = PointerType(F32)
    arguments = [
        Argument("out", type=pointer),
        Argument("x", type=pointer),
        Argument("n_cols", type=I32),
        Argument("stride", type=I32),
        Argument("BLOCK", constexpr=1000),
    ]
    kernel = build_kernel(source, arguments)
    kernel.attributes["alias"] = "disjoint"
    compiled = compile_kernel(kernel, options=CompileOptions(target=target_for("x86-64-v3")))
    forms = compiled.forms
    text = Path(__file__).read_text("utf-8")
    text = text.replace("  # type: ignore[no-untyped-def]", "")
    python = text[text.index("@bl.jit\n") : text.index("\n\n\ndef _fenced")]
    return "\n".join(
        [
            _fenced("Python", python, "python"),
            _fenced("Block IR", forms.block),
            _fenced("Abstract Tile IR, from the exponential on", forms.tile[forms.tile.index("  %e =") :]),
            _fenced("Schedule", forms.schedule),
            _fenced("Placed Tile IR, before functions become arithmetic", forms.after["narrow_loops"]),
            _fenced("Assembly: the loop that divides and stores", _main_loop(compiled.assembly), "asm"),
        ]
    )


def render() -> str:
    """ARCHITECTURE.md with a fresh walk."""
    page = TARGET.read_text("utf-8")
    head, tail = page[: page.index(START) + len(START)], page[page.index(END) :]
    return f"{head}\n\n{render_walk()}\n{tail}"
