"""Counted kernels count exactly what the interpreter moves, and compute what plain kernels compute."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blocklang.diagnostics import InterpreterError, Location
from blocklang.emulation.profile import Counts, Profile
from blocklang.interpreter import run_kernel
from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.verifier import verify
from blocklang.jit import JITFunction, emulate, record_launches
from blocklang.passes.assign_spaces import assign_spaces
from blocklang.passes.count_accesses import count_accesses
from blocklang.passes.pipeline import run_pipeline
from blocklang.target import current_target, find_device
from tests.emulator import kernels
from tests.emulator.counting import Bytes, counted_bytes, interpreted_bytes, watching
from tests.fuzz.cases import Case, Memory, Pointer
from tests.fuzz.execution import InvalidCase, difference, interpret
from tests.fuzz.generator import make_case

TRN2 = find_device("trn2")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def copies(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in arguments.items()}


def placed(source: Kernel) -> Kernel:
    kernel = run_pipeline(clone_kernel(source), current_target(), share=False).kernel
    assign_spaces(kernel)
    return kernel


def bytes_of(counts: Counts) -> Bytes:
    found: Bytes = Counter()
    for (_, line), each in counts.lines.items():
        for space, traffic in each.memory.items():
            found[line, space, False] += traffic.bytes_read
            found[line, space, True] += traffic.bytes_written
    return +found


def profiled(function: JITFunction, grid: Sequence[int], arguments: dict[str, Any]) -> Profile:
    with emulate(TRN2) as profile:
        function[tuple(grid)](**arguments)
    return profile


def check(function: JITFunction, grid: Sequence[int], **arguments: Any) -> Counts:
    """The counts of one launch, whose results must be those of a plain launch, and whose counts must be what
    the interpreter moves.
    """
    plain, counted, interpreted, again = (copies(arguments) for _ in range(4))
    with record_launches() as launches:
        function[tuple(grid)](**plain)
    profile = profiled(function, grid, counted)
    for name, value in plain.items():
        np.testing.assert_array_equal(counted[name], value, err_msg=name)

    compiled = launches[0].compiled
    kernel = placed(compiled.source)
    names = compiled.abi.argument_names
    expected = interpreted_bytes(kernel, [interpreted[n] for n in names], grid)
    (launch,) = profile.launches
    assert bytes_of(launch.counts) == expected

    counts = count_accesses(kernel)
    verify(kernel)
    counters = np.zeros(math.prod(grid) * counts.counters, np.int64)
    run_kernel(kernel, [*(again[n] for n in names), counters], grid)
    total = counters.reshape(-1, counts.counters).sum(axis=0)
    assert counted_bytes(counts, total.tolist()) == expected
    return launch.counts


# ---- by hand ----


@pytest.mark.parametrize("n", [0, 1, 63, 64, 1000, 1024])
def test_vector_add(n: int) -> None:
    counts = check(kernels.add, (4,), x=numbers(1024), y=numbers(1024), out=zeros(1024), n=n, BLOCK=256)
    assert counts.memory["global"].bytes_read == 8 * n
    assert counts.memory["global"].bytes_written == 4 * n
    assert counts.dma.bytes == 12 * n
    assert counts.dma.transfers == 3 * -(-n // 256)  # one for each array and program with lanes


def test_no_programs() -> None:
    counts = check(kernels.add, (0,), x=numbers(4), y=numbers(4), out=zeros(4), n=4, BLOCK=4)
    assert counts.memory["global"].bytes == 0


@pytest.mark.parametrize("columns", [1, 33, 100, 128])
def test_softmax(columns: int) -> None:
    arguments = {"x": numbers(5, columns), "out": zeros(5, columns), "n": columns, "x_row": columns}
    counts = check(kernels.softmax, (5,), **arguments, out_row=columns, BLOCK=128)
    assert counts.memory["global"].bytes_written == 4 * 5 * columns
    assert counts.memory["global"].bytes_read in (4 * 5 * columns, 2 * 4 * 5 * columns)  # kept, or read again


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (65, 30, 50), (1, 1, 1), (100, 70, 0)])
def test_matmul(m: int, n: int, k: int) -> None:
    blocks = {"BM": 32, "BN": 32, "BK": 16}
    grid = (-(-m // 32), -(-n // 32))
    counts = check(
        kernels.matmul, grid, a=numbers(m, k), b=numbers(k, n), c=zeros(m, n), M=m, N=n, K=k, **blocks
    )
    programs, steps = grid[0] * grid[1], -(-k // 16)
    assert counts.memory["global"].bytes_written == 4 * m * n
    assert counts.memory["global"].bytes_read >= 4 * k * (m * grid[1] + n * grid[0])
    # Each product reads its accumulator once and writes it once; it is set at first and stored at last. Where
    # K is the constant 1 there is one product and no loop: it starts from 0, and nothing is set or read.
    accumulator = counts.memory["accumulator"]
    block = 4 * 32 * 32
    assert accumulator.bytes_written == programs * block * (steps + (k != 1))
    assert accumulator.bytes_read == programs * block * steps * (k != 1) + 4 * m * n
    assert counts.memory["scratch"].bytes_read == programs * steps * 4 * (32 * 16 + 16 * 32)


@pytest.mark.parametrize(("extent", "k"), [(100, 7), (64, 64)])
def test_sorts_histograms_and_gathers_count_their_buffers_once(extent: int, k: int) -> None:
    counts = check(
        kernels.order,
        (1,),
        x=numbers(extent),
        out=zeros(extent + k),
        counts=zeros(8, dtype=np.int32),
        BLOCK=extent,
        K=k,
    )
    assert counts.memory["global"].bytes_written == 4 * (extent + k + 8)


def test_gather_counts_each_lane_as_a_transfer() -> None:
    where = np.random.default_rng(1).integers(0, 100, 90).astype(np.int32)
    arguments = {"x": numbers(100), "where": where, "out": zeros(90), "n": 90, "limit": 40}
    counts = check(kernels.gather, (2,), **arguments, BLOCK=64)
    gathered = int((where < 40).sum())
    assert counts.memory["global"].bytes_read == 4 * 90 + 4 * gathered
    assert counts.dma.transfers == 2 + gathered + 2


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 5, 1), (0, 0, 1), (5, 2, 1), (7, 0, -3), (0, 7, 3)])
def test_loops(start: int, stop: int, step: int) -> None:
    arguments = {"x": numbers(200), "out": zeros(100), "start": start, "stop": stop, "step": step}
    counts = check(kernels.rounds, (1,), **arguments, BLOCK=100)
    trips = len(range(start, stop, step))
    assert counts.memory["global"].bytes_read == 4 * 100 * trips
    assert counts.dma.transfers == trips + 1


def test_fold_of_buffers() -> None:
    counts = check(kernels.products, (3,), x=numbers(3, 100), out=zeros(3), BLOCK=100)
    # 100, 50, 25, 13, 7, 4, 2, 1: two reads and a write a pair, one of each for an odd last one.
    pairs, odd = 50 + 25 + 12 + 6 + 3 + 2 + 1, 3
    assert counts.memory["scratch"].bytes_read == 3 * 4 * (2 * pairs + odd + 1)
    assert counts.memory["scratch"].bytes_written == 3 * 4 * (100 + pairs + odd)


# ---- against the interpreter ----


def test_scans() -> None:
    check(kernels.running_sums, (2,), x=numbers(2, 7, 33), out=zeros(2, 7, 33), M=7, N=33)


def test_loads_in_a_loop_of_each_lane() -> None:
    table = np.random.default_rng(0).permutation(64).astype(np.int32)
    x = np.random.default_rng(1).integers(0, 64, 50).astype(np.int32)
    check(kernels.chased, (1,), table=table, x=x, out=zeros(50, dtype=np.int32), n=45, BLOCK=50)


def test_irregular_masks() -> None:
    counts = check(kernels.even_lanes, (1,), x=numbers(101), out=zeros(101), BLOCK=101)
    assert counts.memory["global"].bytes_read == 4 * 51
    assert counts.dma.transfers == 2 * 51


@pytest.mark.parametrize(("rows", "columns"), [(7, 50), (8, 64), (1, 1), (0, 64)])
def test_reductions_over_rows(rows: int, columns: int) -> None:
    arguments = {"x": numbers(8, 64), "out": zeros(64), "rows": rows, "columns": columns}
    counts = check(kernels.column_sums, (2,), **arguments, R=8, C=32)
    assert counts.memory["global"].bytes_read == 4 * rows * columns


def test_irregular_masks_in_a_loop_of_lanes() -> None:
    x = numbers(8, 50)
    counts = check(kernels.positive_column_sums, (1,), x=x, out=zeros(50), columns=50, R=8, C=64)
    assert counts.memory["global"].bytes_read in (4 * (x.size + int((x > 0).sum())), 4 * (2 * x.size))


@pytest.mark.parametrize("limit", [-1.0, 60.0, 500.0])
def test_while_and_branches(limit: float) -> None:
    x = np.abs(numbers(50))
    check(kernels.until, (1,), x=x, out=zeros(51, dtype=np.int32), limit=limit, BLOCK=50)


def test_transpose() -> None:
    check(kernels.transpose, (1,), x=numbers(24, 40), out=zeros(40, 24), M=24, N=40)


def test_masks_from_a_result() -> None:
    check(kernels.sum_of_largest, (1,), x=numbers(128), out=zeros(1), n=100, BLOCK=128)


@pytest.mark.parametrize("seed", range(6, 36))
def test_random_kernels(seed: int) -> None:
    try:
        case = make_case(random.Random(seed))
        interpret(parse_kernel(case.kernel), case)
    except (InvalidCase, InterpreterError):
        pytest.skip("the kernel leaves its arrays")
    check_case(case)


def check_case(case: Case) -> None:
    """The counts of a random kernel, interpreted (`python -m tests.fuzz` compares machine code)."""
    kernel = placed(parse_kernel(case.kernel))
    for line, op in enumerate(kernel.walk(), 1):
        op.location = Location("<random>", line)
    expected: Bytes = Counter()
    with watching(expected):
        memories = interpret(kernel, case)

    counts = count_accesses(kernel)
    verify(kernel)
    counters = Memory("i64", max(math.prod(case.grid) * counts.counters, 1), fill="ramp")
    counted = replace(
        case, arguments=(*case.arguments, Pointer(len(case.memories))), memories=(*case.memories, counters)
    )
    *others, after = interpret(kernel, counted)
    moved = after.view(np.int64) - counters.contents().view(np.int64)
    if counts.counters:
        moved = moved.reshape(-1, counts.counters).sum(axis=0)
    assert counted_bytes(counts, moved.tolist()) == +expected
    assert not difference(case, memories, others)


def test_launches_in_debug_mode_count_the_same() -> None:
    """What a launch has besides the user's arguments is not the counters' place."""
    x = np.arange(40, dtype=np.float32)
    counts = []
    for debug in (False, True):
        out = np.zeros(40, np.float32)
        with emulate(TRN2) as profile:
            kernels.add[(5,)](x=x, y=x, out=out, n=37, BLOCK=8, debug=debug)
        assert out.tolist() == [*(2 * x[:37]), 0, 0, 0]
        counts.append(profile.to_dict())
    assert counts[0] == counts[1]
