"""Streaming stores: where they are chosen, the instructions they become, and that they change no bit."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.compiler import CompiledKernel
from blocklang.jit import JITFunction
from blocklang.passes import streaming
from blocklang.target import target_for
from examples.vector_add import add
from tests.codegen.test_assembly import compile_at
from tests.numerics.launching import Guarded

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
STREAMING_STORE = re.compile(r"\bv?movnt(ps|dq|pd)\b")


@bl.jit
def double_in_place(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@bl.jit
def one_program_over(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)


@bl.jit
def asked(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1, cache_modifier=".cs")


@bl.jit
def asked_to_evict(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1, eviction_policy="evict_first")


@bl.jit
def narrow_rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, 32)[None, :]
    at = (tl.program_id(0) * BLOCK + rows) * stride + columns
    tl.store(out_ptr + at, tl.load(x_ptr + at) + 1)


@bl.jit
def flagged(x_ptr, out_ptr, flag_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)
    tl.atomic_xchg(flag_ptr + tl.program_id(0), 1.0)


def streams(kernel: CompiledKernel) -> bool:
    return bool(STREAMING_STORE.search(kernel.assembly))


@pytest.mark.parametrize("level", LEVELS)
def test_large_launches_stream(level: str) -> None:
    """Both kinds of store are there, a test on the grid before them, and a fence behind."""
    compiled = compile_at(add, level, BLOCK=4096)
    assert "streamed from 1024 programs of axis 0" in compiled.forms.schedule
    assert streams(compiled)
    assert len(re.findall(r"\bsfence\b", compiled.assembly)) == 1
    assert re.search(r"cmp[lq]\s+\$1024,|cmp[lq]\s+\$1023,", compiled.assembly)


@pytest.mark.parametrize("kernel", [asked, asked_to_evict], ids=["modifier", "policy"])
def test_the_user_may_ask(kernel: JITFunction) -> None:
    assert streams(compile_at(kernel, "x86-64-v3", BLOCK=64))


@pytest.mark.parametrize(
    ("kernel", "block"),
    [(double_in_place, 4096), (one_program_over, 4096), (narrow_rows, 64)],
    ids=["in place", "one block", "narrow rows"],
)
def test_what_does_not_stream(kernel: JITFunction, block: int) -> None:
    assert not streams(compile_at(kernel, "x86-64-v3", BLOCK=block))


def test_unknown_aliases_do_not_stream() -> None:
    assert not streams(compile_at(add, "x86-64-v3", "unknown", BLOCK=4096))


def test_other_processors_do_not_stream() -> None:
    """AArch64's hint has not been measured."""
    target = replace(
        target_for("x86-64-v2"),
        triple="aarch64-unknown-linux-gnu",
        cpu="generic",
        vector_registers=32,
        has_fma=True,
        has_f16c=True,
        has_streaming_stores=False,
    )
    assembly = compile_at(add, target, BLOCK=4096).assembly
    assert "stnp" not in assembly
    assert "fadd" in assembly


def test_a_fence_stands_before_an_atomic() -> None:
    assembly = compile_at(flagged, "x86-64-v3", BLOCK=4096).assembly
    assert streams(compile_at(flagged, "x86-64-v3", BLOCK=4096))
    assert re.search(r"sfence\n(?!.*:\n)(.*\n){0,6}?\s+xchgl", assembly)


@pytest.mark.parametrize("misaligned", [0, 4, 8, 16, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64, np.int16])
def test_streaming_changes_no_bit(dtype: type, misaligned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays anywhere, ends inside of a block; nothing around the result is touched."""
    monkeypatch.setattr(streaming, "LAUNCH_BYTES", 1 << 14)

    @bl.jit
    def triad(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        total = tl.load(x + i, mask=i < n) * 3 + tl.load(y + i, mask=i < n)
        tl.store(out + i, total.to(out.dtype.element_ty), mask=i < n)

    generator = np.random.default_rng(1)
    n, block = 20_011, 2048
    x, y = generator.integers(-20, 20, (2, n)).astype(np.dtype(dtype))
    out = Guarded(np.zeros(n, dtype), misaligned)
    triad[(-(-n // block),)](x, y, out.array, n, BLOCK=block)
    assert (out.array == (x * 3 + y).astype(dtype)).all()
    assert out.is_whole()
