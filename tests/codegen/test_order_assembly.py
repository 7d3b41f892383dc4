"""What the machine code of sorts, histograms and gathers looks like, at several CPU levels."""

# mypy: ignore-errors
from __future__ import annotations

import pytest

import blocklang as bl
import blocklang.language as tl
from tests.codegen.test_assembly import LEVELS, calls, compile_at, innermost_loops


@bl.jit
def sort(x_ptr, out_ptr, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


@bl.jit
def gather(x_ptr, out_ptr, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.gather(x, x.to(tl.int32), 0))


@pytest.mark.parametrize("level", LEVELS)
def test_a_sort_compares_whole_vectors_in_registers(level: str) -> None:
    assembly = compile_at(sort, level, BLOCK=4096).assembly
    assert not calls(assembly)
    loops = [loop for loop in innermost_loops(assembly) if loop.count(r"vpminsd") >= 12]
    assert loops
    for loop in loops:
        assert loop.count(r"vpminsd") == loop.count(r"vpmaxsd")
        assert loop.count(r"\(%rsp") <= 2, "spills"  # the ends of loops, a constant; no keys


@pytest.mark.parametrize("level", LEVELS)
def test_the_code_of_a_sort_does_not_grow_with_the_row(level: str) -> None:
    short, long = (len(compile_at(sort, level, BLOCK=n).assembly.splitlines()) for n in (1 << 16, 1 << 20))
    assert long < 1.2 * short


def test_a_gather_is_a_gather() -> None:
    # x86-64-v3 has the instruction too, and LLVM knows that one load per lane is faster there.
    assert "vgatherqps" in compile_at(gather, "x86-64-v4", BLOCK=1024).assembly


@bl.jit
def transpose(x_ptr, out_ptr, M, N, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + i * N + j, mask=(i < M) & (j < N))
    tl.store(out_ptr + j * M + i, x, mask=(i < M) & (j < N))


@pytest.mark.parametrize("level", ["x86-64-v2", *LEVELS])
def test_a_transpose_turns_squares_in_registers(level: str) -> None:
    """Whole vectors are loaded, shuffled and stored; none of it lane by lane."""
    assembly = compile_at(transpose, level, BLOCK=64).assembly
    side = {"x86-64-v2": 4, "x86-64-v3": 8}.get(level, 16)
    loops = [loop for loop in innermost_loops(assembly) if loop.count(r"unpck|shuf|perm|insert") >= side]
    assert loops
    for loop in loops:
        assert loop.count(r"\(%r") >= 2 * side, "loads, some within shuffles, and stores"
        assert not loop.count(r"extract|gather|scatter|pextr|pinsr|mov[ls]ss|\bvmovss")
