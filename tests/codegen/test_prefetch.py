"""Memory that a loop asks for ahead of time: only where an array is read again."""

from __future__ import annotations

from blocklang import jit
from blocklang import language as tl
from examples.softmax import softmax
from examples.vector_add import add
from tests.codegen.test_assembly import compile_at


@jit
def weighted(x_ptr, w_ptr, out_ptr, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    row, lanes = tl.program_id(0), tl.arange(0, N)
    inside = lanes < n
    x = tl.load(x_ptr + row * n + lanes, mask=inside, other=0)
    w = tl.load(w_ptr + lanes, mask=inside, other=0)
    tl.store(out_ptr + row * n + lanes, (x - tl.sum(x * w, 0)) * w, mask=inside)


@jit
def rows_in_turn(x_ptr, out_ptr, n_rows, N: tl.constexpr):  # type: ignore[no-untyped-def]
    lanes = tl.arange(0, N)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * N + lanes)
        tl.store(out_ptr + row * N + lanes, x - tl.sum(x, 0))


@jit
def rows_by_index(x_ptr, out_ptr, index_ptr, n_rows, N: tl.constexpr):  # type: ignore[no-untyped-def]
    lanes = tl.arange(0, N)
    for i in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        row = tl.load(index_ptr + i).to(tl.int32)
        x = tl.load(x_ptr + row * N + lanes)
        tl.store(out_ptr + row * N + lanes, x - tl.sum(x, 0))


def test_rows_that_are_read_again_ask_for_the_next() -> None:
    """One of the loops over a row, for each line of what a step reads: 32 floats."""
    compiled = compile_at(softmax, "x86-64-v3", BLOCK=1024)
    assert compiled.forms.schedule.count("prefetching 1024 ahead") == 1
    assert compiled.assembly.count("prefetcht0") == 2


def test_what_is_read_once_or_by_all_programs_is_not_asked_for() -> None:
    assert "prefetch" not in compile_at(add, "x86-64-v3", BLOCK=1024).assembly
    schedule = compile_at(weighted, "x86-64-v3", N=1024).forms.schedule
    assert schedule.count("prefetching") == 1


def test_rows_that_a_round_reads_again_ask_for_the_next_round() -> None:
    """What a step reads, in both versions of the loop that stores, and what it stores if not past the caches;
    a round may lie anywhere.
    """
    assembly = compile_at(rows_in_turn, "x86-64-v3", N=1024).assembly
    assert assembly.count("prefetch") == 3


def test_rounds_whose_place_is_loaded_are_not_asked_for() -> None:
    assert "prefetch" not in compile_at(rows_by_index, "x86-64-v3", N=1024).assembly


def test_short_and_long_blocks_ask_for_nothing() -> None:
    """A row ahead is too little or too much; what a long fold meets next is asked for all the same."""
    for block in (128, 16384):
        assert "prefetching" not in compile_at(softmax, "x86-64-v3", BLOCK=block).forms.schedule
    assert "prefetch" not in compile_at(softmax, "x86-64-v3", BLOCK=128).assembly
